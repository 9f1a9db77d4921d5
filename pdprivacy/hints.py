"""Suggestions for misspelled or invalid calls: a valid call of each method, and the nearest known name."""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar, cast

from pdprivacy.errors import ArgumentError, UnknownNameError

F = TypeVar("F", bound=Callable[..., Any])


def _calls(prefix: str, arguments: Mapping[str, str]) -> dict[str, str]:
    """Return calls by the name of their method; ``arguments``: the arguments of each method, by its name."""
    return {name: f"{prefix}{name}{call}" for names, call in arguments.items() for name in names.split()}


_METHODS = {
    "mean sum var std median min max quantile histogram describe": '("age", epsilon=0.1)',
    "cov corr": '(["age", "income"], epsilon=0.1)',
    "value_counts mode nunique": '("region", epsilon=0.1)',
    "agg": '(["mean", "std"], "age", epsilon=0.1)',
    "pivot_table": '("age", index="region", columns="health", epsilon=0.1)',
    "dr_ha risk_curve tradeoff": '("region", "health", epsilon=[0.1, 1, 10])',
    "count": "(epsilon=0.1)",
    "proportion": '("health", "yes", epsilon=0.1)',
    "crosstab": '("region", "health", epsilon=0.1)',
    "top_k": '("region", 2, epsilon=0.1)',
    "groupby": '("region").mean("age", epsilon=0.1)',
    "partition": '("region", epsilon=0.1)',
    "marginals": '(["region", "health"], epsilon=0.1)',
    "ols": '("income", ["age"], epsilon=0.1)',
    "pooled_var": '("age", by="region", epsilon=0.1)',
    "pooled_cov": '(["age", "income"], by="region", epsilon=0.1)',
    "kmeans": '(["age", "income"], 3, epsilon=0.1)',
    "kmedian": '("age", 2, epsilon=0.1)',
    "sample": "(frac=0.1)",
    "choose_epsilon": '("region", "health", max_risk=0.4)',
    "homogeneity": '("region", "health")',
    "plan": '.mean("age", epsilon=[0.1, 1], rows=1000)',
    "split": "(1, 3)",
}
_ROW_STEPS = {
    "query": '("age >= 30")',
    "clip": '(upper={"age": 80})',
    "assign": '(yearly="12 * income")',
    "cut": '("age", [18, 30, 65])',
    "recode": '("region", {"north": "other"})',
    "fillna": "(0)",
    "dropna": '("age")',
    "select": '(["age", "region"])',
    "rename": '(columns={"age": "years"})',
    "astype": '({"age": "float64"})',
}
EXAMPLES: Mapping[str, str] = MappingProxyType(
    {
        "protect": "df.dp.protect(schema, epsilon=1.0)",
        "check": "df.dp.check(schema)",
        **_calls("private.dp.", _METHODS),
        "save": 'released.dp.save("table.parquet")',
        "to_excel": 'released.dp.to_excel("table.xlsx")',
        **_calls("private.", _ROW_STEPS),
    }
)
"""A valid call of each method, for a frame with these columns; groups have a table of their own."""

_GROUPS = {
    "count": "(epsilon=0.1)",
    "sum mean var std describe quantile median": '("age", epsilon=0.1)',
    "value_counts mode": '("health", epsilon=0.1)',
    "proportion": '("health", "yes", epsilon=0.1)',
    "agg": '(["mean", "std"], "age", epsilon=0.1)',
}
_OTHER_WORDS = {
    "count": "size shape len nrows info",
    "value_counts": "unique counts freq",
    "crosstab": "pivot table contingency unstack",
    "mean": "average avg mu",
    "histogram": "hist bar",
    "quantile": "percentile quantiles iqr",
    "var": "variance sem",
    "std": "stddev sd",
    "sum": "total",
    "agg": "aggregate",
    "corr": "correlation corrwith",
    "ols": "regression linregress lstsq OLS fit",
    "groupby": "group_by by",
    "query": "where isin between",
}
"""Methods of the package, and their names in pandas, NumPy or SQL."""


_NUMBERS, _LABELS = ("integer", "float"), ("category", "boolean")
_KINDS = {"age": _NUMBERS, "income": _NUMBERS, "region": _LABELS, "health": _LABELS}
_VALUES = {"north": "region", "yes": "health"}  # labels of these columns


def own(example: str, columns: Iterable[Any]) -> str | None:
    """Return an example with declared columns, labels and bounds in place of its own; None where none fits.

    >>> from pdprivacy.domain import Column
    >>> own('private.query("age >= 30")', [Column("rent", "float", lower=5, upper=9)])
    'private.query("rent >= 5")'
    >>> own('private.query("age >= 30")', [Column("debt", "integer", lower=-9, upper=0)])
    'private.query("debt >= -9")'
    """
    free = [column for column in columns if column.role != "identifier" and column.timeline is None]
    texts: dict[str, str] = {}
    for name, kinds in _KINDS.items():
        if not re.search(rf"\b{name}\b", example):
            continue
        fits = [
            column for column in free if column.kind in kinds and (kinds is _NUMBERS or column.categories)
        ]
        if not fits:
            return None
        column = next((column for column in fits if column.name == name), fits[0])
        free.remove(column)
        texts[f'"{name}"'] = _quoted(column.name)
        for label in (label for label, owner in _VALUES.items() if owner == name):
            texts[f'"{label}"'] = _quoted(label if label in column.categories else column.categories[0])
        if f" {name}" in example or f'"{name} ' in example:  # in an expression
            if not isinstance(column.name, str) or set(column.name) & {"`", '"', "\\"}:
                return None
            code = column.name if column.name.isidentifier() else f"`{column.name}`"
            lower, upper = (30 if end is None else end for end in (column.lower, column.upper))
            texts["age >= 30"] = f"{code} >= {30 if lower <= 30 <= upper else min(lower, upper)}"
            texts["12 * income"] = f"12 * {code}"
    pattern = "|".join(map(re.escape, texts))
    return re.sub(pattern, lambda match: texts[match[0]], example) if texts else example


def _quoted(value: object) -> str:
    return (
        f'"{value}"'
        if isinstance(value, str) and value.isprintable() and not set(value) & {'"', "\\"}
        else repr(value)
    )


def nearest(name: object, known: Iterable[object]) -> str | None:
    """Return the known text nearest to ``name``; None if all differ much, or ``name`` is not text.

    >>> nearest("Age", ["age", "region"]), nearest("x", ["age"])
    ('age', None)
    """
    if not isinstance(name, str):
        return None
    texts = {text.lower(): text for text in known if isinstance(text, str)}
    matches = difflib.get_close_matches(name.strip().lower(), list(texts), n=1, cutoff=0.7)
    return texts[matches[0]] if matches else None


def unknown(kind: str, name: str, known: Iterable[str], prefix: str = "private.dp") -> UnknownNameError:
    """The error for a name that is not offered: an AttributeError with the name that was meant.

    >>> print(unknown("DataFrameDP", "average", ["mean", "sum"]))
    'DataFrameDP' has no attribute 'average'.
    Hint: private.dp.mean("age", epsilon=0.1)
    """
    offered = list(known)
    intended = next((method for method, words in _OTHER_WORDS.items() if name in words.split()), name)
    close = intended if intended in offered else nearest(intended, offered)
    if close is not None:
        hint = _example(close, prefix)
    else:
        hint = f"{_example('mean', prefix)}; dir({prefix}) lists what there is"
    return UnknownNameError(f"{kind!r} has no attribute {name!r}.", hint)


def _example(name: str, prefix: str, columns: Iterable[Any] | None = None) -> str | None:
    if prefix in ("private.dp", "private.dp.plan"):
        example = EXAMPLES.get(name, f"private.dp.{name}").replace("private.dp", prefix)
    else:
        example = _calls(f"{prefix}.", _GROUPS).get(name, f"{prefix}.{name}(...)")
    planned = prefix.startswith("private.dp.plan")
    example = example.replace("0.1)", "[0.1, 1], rows=1000)") if planned else example
    return example if columns is None else own(example, columns)


def with_hints(function: F, prefix: str = "private.dp") -> F:
    """Return the function with the error of `misuse` for calls with invalid arguments."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError:
            declared = args[0]._declared().columns if args and hasattr(args[0], "_declared") else None
            wrong = misuse(function.__name__, signature, args, kwargs, prefix, declared)
            if wrong is None:
                raise
        raise wrong  # outside the except block: one error, not two

    called.__signature__ = signature  # type: ignore[attr-defined]
    return cast("F", called)


def misuse(
    name: str,
    signature: inspect.Signature,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    prefix: str = "private.dp",
    columns: Iterable[Any] | None = None,
) -> ArgumentError | None:
    """Return the error of a call that does not fit a signature, with a valid call; None where it fits.

    The first parameter is the object of the method, and is not mentioned. Called after a TypeError only,
    so that a call that is right costs nothing more.
    """
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        text = str(error)
    else:
        return None
    hint = _example(name, prefix, columns)
    _, *known = signature.parameters
    if missing := re.search(r"missing a required .*'(\w+)'", text):
        costs = ", what the call may cost" if missing[1] == "epsilon" else ""
        return ArgumentError(f"{name!r} needs {missing[1]!r}{costs}.", hint)
    if more := re.search(r"unexpected keyword argument '(.*)'", text, re.DOTALL):
        close = nearest(more[1], known)
        if close and hint and f"{close}=" not in hint:
            hint = f"{close}=..., as in {hint}"
        return ArgumentError(f"{name!r} got an unexpected keyword argument {more[1]!r}.", hint)
    if "too many positional" in text:
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        placed = [
            parameter.name
            for parameter in signature.parameters.values()
            if parameter.kind in kinds and parameter.name in known
        ]
        first = " and ".join(map(repr, placed)) or "nothing"
        return ArgumentError(f"{name!r} takes {first} by position, and all other arguments by name.", hint)
    return ArgumentError(f"{name!r}: {text}.", hint)
