"""A valid call of each method, and the same call with the declared columns of a frame in place of its own."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any


class Example(str):
    """A hint with the columns of the documentation, which public methods replace by those of their frame."""

    __slots__ = ()

    def of(self, columns: Iterable[Any]) -> str | None:
        """Return the hint with declared columns, labels and bounds in place of its own; None where none fits.

        >>> from pdprivacy.declaration.domain import Column
        >>> Example('private.query("age >= 30")').of([Column("rent", "float", lower=5, upper=9)])
        'private.query("rent >= 5")'
        >>> Example('private.query("age >= 30")').of([Column("debt", "integer", lower=-9, upper=0)])
        'private.query("debt >= -9")'
        """
        free = [column for column in columns if column.role != "identifier"]
        chosen: dict[str, Any] = {}
        tokens = [match.groupdict() for match in _TOKENS.finditer(self)]
        for name in ("age", "income", "region", "health", "when", "city"):
            if not any(name in (token["word"], token["bare"]) for token in tokens):
                continue
            is_in_text = any(name == token["bare"] for token in tokens)
            fitting = [
                column
                for column in free
                if self._fits(name, column) and (not is_in_text or _code(column.name) is not None)
            ]
            if not fitting:
                return None
            chosen[name] = next((column for column in fitting if column.name == name), fitting[0])
            free.remove(chosen[name])
        return _TOKENS.sub(lambda match: _written(match, chosen), self)

    def _fits(self, name: str, column: Any) -> bool:
        """Return whether a column can stand in the place of one of the documentation."""
        if name == "when" or column.timeline is not None:
            return name == "when" and column.timeline is not None
        if name == "city" or column.private_labels:
            return name == "city" and column.private_labels
        if name in ("region", "health"):
            return column.kind in ("category", "boolean") and len(column.categories or ()) > 1
        if "kmedian" in self and isinstance(column.enumerated(), str) and column.bins is None:
            return False
        bounded = None not in (column.lower, column.upper) and column.lower < column.upper
        if "find_bounds" in self:
            return column.kind in ("integer", "float") and column.categories is None
        return column.kind in ("integer", "float") and (bounded or not re.search("epsilon|assign", self))


_TOKENS = re.compile(
    r"""(?P<quote>["'])(?P<word>age|income|region|health|when|city|north|south|yes)(?P=quote)"""
    r"""|(?<![\w.])(?P<bare>age|income)(?!\w)|(?<=[=:] )(?P<number>18|30|80|90)\b"""
)
"""The columns of examples, quoted and in expressions, their labels, and constants of the first of them."""

_LABELS = {"north": ("region", 0), "south": ("region", 1), "yes": ("health", 0)}
"""The column of each label, and which of the declared labels stands in its place."""


def _written(match: re.Match[str], chosen: Mapping[str, Any]) -> str:
    """Return what stands in the place of a part of an example; ``chosen``: the columns by their places."""
    word = match["word"]
    if match["bare"]:
        return str(_code(chosen[match["bare"]].name))
    if word in chosen:
        return quoted(chosen[word].name)
    if word:
        name, position = _LABELS[word]
        labels = chosen[name].categories
        return quoted(word if word in labels else labels[position])
    number, ends = int(match["number"]), [chosen["age"].lower, chosen["age"].upper]
    if (ends[0] is None or ends[0] <= number) and (ends[1] is None or number <= ends[1]):
        return str(number)
    return str(next(end for end in (ends if number <= 30 else ends[::-1]) if end is not None))


def _code(name: object) -> str | None:
    """Return the name of a column as an expression has it; None where none can name it."""
    if not isinstance(name, str) or not name.isprintable() or set(name) & {"`", '"', "\\"}:
        return None
    return name if name.isidentifier() and not keyword.iskeyword(name) else f"`{name}`"


def quoted(value: object) -> str:
    """Return a label as a user writes it, a text in double quotes where that needs no escape.

    >>> quoted("my rent"), quoted(5)
    ('"my rent"', '5')
    """
    plain = isinstance(value, str) and value.isprintable() and not set(value) & {'"', "\\"}
    return f'"{value}"' if plain else repr(value)


# ---------------------------------------------------------------- a call of each method


def calls(prefix: str, arguments: Mapping[str, str]) -> dict[str, Example]:
    """Return calls by the name of their method; ``arguments``: the arguments of each method, by its name."""
    return {
        name: Example(f"{prefix}{name}{call}") for names, call in arguments.items() for name in names.split()
    }


_METHODS = {
    "mean sum var std median min max quantile histogram describe": '("age", epsilon=0.1)',
    "cov corr": '(["age", "income"], epsilon=0.1)',
    "find_bounds": '(["age", "income"], epsilon=0.1)',
    "value_counts mode nunique": '("region", epsilon=0.1)',
    "agg": '(["mean", "std"], "age", epsilon=0.1)',
    "pivot_table": '("age", index="region", columns="health", epsilon=0.1)',
    "dr_ha risk_curve tradeoff": '("region", "health", epsilon=[0.1, 1, 10])',
    "count": "(epsilon=0.1)",
    "proportion": '("health", "yes", epsilon=0.1)',
    "crosstab": '("region", "health", epsilon=0.1)',
    "top_k": '("region", 2, epsilon=0.1)',
    "find_labels": '("city", epsilon=1, delta=1e-6)',
    "groupby": '("region").mean("age", epsilon=0.1)',
    "partition": '("region", epsilon=0.1)',
    "marginals": '(["region", "health"], epsilon=0.1)',
    "ols": '("income", ["age"], epsilon=0.1)',
    "pooled_var": '("age", by="region", epsilon=0.1)',
    "pooled_cov": '(["age", "income"], by="region", epsilon=0.1)',
    "kmeans": '(["age", "income"], 3, epsilon=0.1)',
    "kmedian": '("age", 1, epsilon=0.1)',
    "sample": "(frac=0.1)",
    "suppress_outliers": '("age", m=0.5, M=0.9)',
    "plan_releases": '([("mean", "age", {"epsilon": 0.1})])',
    "batch remaining quality": "()",
    "repeated_risk": '([{"by": "region", "sensitive": "health", "epsilon": 0.5}])',
    "compare_sampling compare_suppression": '("mean", "age", epsilon=[0.1, 1])',
    "utility": '(["region", "health"], order=2, epsilon=[0.1, 1])',
    "choose_epsilon": '("region", "health", max_risk=0.4)',
    "anonymity homogeneity": '("region", "health")',
    "plan": '.mean("age", epsilon=[0.1, 1], rows=1000)',
    "split": "(1, 3)",
}
_ROW_STEPS = {
    "query": '("age >= 30")',
    "clip": '(upper={"age": 80})',
    "assign": '(yearly="12 * income")',
    "cut": '("age", [18, 30, 65])',
    "recode": '("region", {"north": "other"})',
    "fillna": '({"age": 0})',
    "dropna": '("age")',
    "drop": '(columns=["age"])',
    "select": '(["age", "region"])',
    "filter": '(items=["age", "region"])',
    "merge": '(pd.DataFrame({"region": ["north"], "capital": ["Oslo"]}), on="region")',
    "per_unit": '({"total": ("age", "sum")})',
    "rename": '(columns={"age": "years"})',
    "use": '(private.dp.find_bounds("age", epsilon=0.1))',
    "astype": '({"age": "float64"})',
}
EXAMPLES: Mapping[str, Example] = MappingProxyType(
    {
        "protect": Example("df.dp.protect(schema, epsilon=1.0)"),
        "check": Example("df.dp.check(schema)"),
        **calls("private.dp.", _METHODS),
        "plot": Example('private.dp.histogram("age", epsilon=0.1).dp.plot()'),
        "relabel": Example('released.dp.relabel({"rows": "records"})'),
        "save": Example('released.dp.save("table.parquet")'),
        "to_excel": Example('released.dp.to_excel("table.xlsx")'),
        **calls("private.", _ROW_STEPS),
    }
)
"""A valid call of each method, for a frame with these columns; groups have a table of their own."""

_DECLARED = "private.dp.domain says what is declared of each column"
_NUMBERED = "private.dp.count(epsilon=0.1) says how many records there are"
_NO_INDEX = 'there is no index; columns are private.columns, and private.dp.groupby("region") groups by one'
INSTEAD: Mapping[str, Example] = MappingProxyType(
    {
        **{
            name: Example(text)
            for names, text in {
                "dtypes info memory_usage ndim": _DECLARED,
                "shape empty size": _NUMBERED,
                "index set_index reset_index reindex_like swaplevel droplevel": _NO_INDEX,
                "add_prefix add_suffix set_axis": 'private.rename(columns={"age": "years"})',
                "select_dtypes": 'private[["age"]]',
                "pop": 'private.drop(columns=["age"])',
                "get": 'private["age"]',
                "insert": 'private.assign(yearly="12 * age")',
                "convert_dtypes infer_objects": 'private.astype({"age": "float64"})',
                "cat": 'private.dp.domain["region"].categories; private.recode("region", {"north": "other"})',
                "hist": 'private.dp.histogram("age", epsilon=0.1)',
                "pivot": 'private.dp.pivot_table("age", index="region", epsilon=0.1)',
                "unique": 'private.dp.domain["region"].categories',
                "between_time at_time": 'private[private["when"].dt.month == 6]',
                "isna isnull notna notnull": 'one column at a time: private["age"].isna()',
                "isin": 'private[private["region"].isin(["north"])]',
                "idxmax argmax": 'private.dp.max("age", epsilon=0.1)',
                "idxmin argmin": 'private.dp.min("age", epsilon=0.1)',
                "corrwith": 'private.dp.corr(["age", "income"], epsilon=0.1)',
            }.items()
            for name in names.split()
        }
    }
)
"""What to write in place of names of pandas that a protected frame or column does not have."""

GROUPS = {
    "count size": "(epsilon=0.1)",
    "sum mean var std describe quantile median min max": '("age", epsilon=0.1)',
    "value_counts mode nunique": '("health", epsilon=0.1)',
    "proportion": '("health", "yes", epsilon=0.1)',
    "agg": '(["mean", "std"], "age", epsilon=0.1)',
}
"""The arguments of each release of groups."""
