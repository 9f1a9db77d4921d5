"""Suggestions for misspelled or invalid calls: the nearest known name, and a valid call."""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from pdprivacy.errors import ArgumentError, UnknownNameError
from pdprivacy.hints.examples import EXAMPLES, GROUPS, Example, calls

F = TypeVar("F", bound=Callable[..., Any])


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


_OTHER_ARGUMENTS = {
    ("value_counts", "bins"): 'private.dp.histogram("age", bins=10, epsilon=0.1)',
    ("pivot_table", "dropna"): (
        'private.dropna("region").dp.pivot_table("age", index="region", columns="health", epsilon=0.1)'
    ),
    ("groupby", "as_index"): 'private.dp.groupby("region").mean("age", epsilon=0.1).reset_index()',
}
"""Calls in place of arguments of pandas, by method and argument."""


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
        hint = example_of(close, prefix)
    else:
        hint = Example(f"{example_of('mean', prefix)}; dir({prefix}) lists what there is")
    return UnknownNameError(f"{kind!r} has no attribute {name!r}.", hint)


def example_of(name: str, prefix: str) -> Example:
    """Return a valid call of a method; of a plan, with several epsilons and a number of rows."""
    if prefix in ("private.dp", "private.dp.plan"):
        example = EXAMPLES.get(name, f"private.dp.{name}").replace("private.dp", prefix)
    else:
        example = calls(f"{prefix}.", {**GROUPS, "report": "(delta=1e-6)"}).get(name, f"{prefix}.{name}(...)")
    planned = prefix.startswith("private.dp.plan")
    return Example(example.replace("0.1)", "[0.1, 1], rows=1000)") if planned else example)


def with_hints(function: F, prefix: str = "private.dp") -> F:
    """Return the function with the error of `misuse` for calls with invalid arguments."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError:
            wrong = misuse(function.__name__, signature, args, kwargs, prefix)
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
) -> ArgumentError | None:
    """Return the error of a call that does not fit a signature, with a valid call; None where it fits.

    The first parameter is the object of the method, and is not mentioned. Called after a TypeError only,
    so that a call that is right costs nothing more.
    """
    try:
        signature.bind_partial(*args, **kwargs)  # first, as a misspelled argument is missing, too
        signature.bind(*args, **kwargs)
    except TypeError as error:
        text = str(error)
    else:
        return None
    hint = example_of(name, prefix)
    _, *known = signature.parameters
    if missing := re.search(r"missing a required .*'(\w+)'", text):
        costs = ", what the call may cost" if missing[1] == "epsilon" else ""
        return ArgumentError(f"{name!r} needs {missing[1]!r}{costs}.", hint)
    if more := re.search(r"unexpected keyword argument '(.*)'", text, re.DOTALL):
        if more[1] == "plus_minus" and prefix == "private.dp.plan" and "ranks" in known:
            return None  # the plan says why it has none
        close = nearest(more[1], known)
        if prefix == "private.dp" and (name, more[1]) in _OTHER_ARGUMENTS:
            hint = Example(_OTHER_ARGUMENTS[name, more[1]])
        elif close and f"{close}=" not in hint:
            hint = Example(f"{close}=..., as in {hint}")
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
