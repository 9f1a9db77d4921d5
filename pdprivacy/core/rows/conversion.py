"""Columns of other labels, types and names: numbers cut into intervals, labels put in place of labels."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.extensions import ExtensionDtype

from pdprivacy.checks import flag, is_number, items, label, plain
from pdprivacy.core.rows.cells import Read, category_column, floats
from pdprivacy.core.rows.label_mappings import mapped_labels
from pdprivacy.core.rows.nodes import NUMERIC, Node, cast
from pdprivacy.core.rows.steps import Transform, call, example, own, shown
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.declaration.intervals import Interval
from pdprivacy.errors import DeclarationError, ParameterError, got, kind
from pdprivacy.exact import EXACT
from pdprivacy.types import Floats

# ---------------------------------------------------------------- cut


def cut(
    domain: Domain,
    column: Hashable,
    bins: Sequence[float] | None = None,
    *,
    right: bool = True,
    labels: Sequence[str] | None = None,
    include_lowest: bool = False,
    freq: str | None = None,
) -> Transform:
    """Replace the numbers of a column by the intervals that contain them, as `pandas.cut` with edges.

    The column becomes a category of the texts that pandas writes, such as ``"(18, 30]"``, or of ``labels``.
    The edges are written as they were given, also where pandas rounds or lowers them: ``"[18, 30]"`` with
    ``include_lowest``. A number outside all intervals becomes null; the result is nullable only where such a
    number, or a null, can occur.

    Parameters
    ----------
    bins : strictly increasing edges, of which the outer ones may be infinite. A number of bins is refused:
        pandas takes their edges from the least and the greatest value of the data.
    right, include_lowest : whether the right edges belong to the intervals, and the first left one.
    freq : for dates, instead of ``bins``: the calendar periods between the bounds, "D", "W" (weeks end on
        Sundays), "M", "Q" or "Y".

    Raises
    ------
    ParameterError : invalid edges, or not one label per interval.
    DeclarationError : the column is not declared, not numeric, or an identifier.

    >>> domain = Domain((Column("age", "integer", lower=18, upper=65),))
    >>> step = cut(domain, "age", [17, 30, 65])
    >>> step.domain["age"].categories, step.domain["age"].nullable
    (('(17, 30]', '(30, 65]'), False)
    """
    declared = own(domain[column], "cut")
    right, include_lowest = flag(right, "right"), flag(include_lowest, "include_lowest")
    if declared.timeline is not None or freq is not None:
        return _periods(domain, declared, bins, labels, freq)
    if declared.kind not in NUMERIC:
        raise DeclarationError(
            f"'cut' needs a numeric column, and column {column!r} is of kind {declared.kind!r}.",
            example("recode", Domain((declared,))),
        )
    given, edges = _edges(column, bins)
    texts = _texts(given, right, include_lowest) if labels is None else _checked_labels(column, labels, edges)
    text = call(
        "cut",
        column,
        given,
        right=None if right else False,
        labels=None if labels is None else list(texts),
        include_lowest=include_lowest or None,
    )
    made = _cut(Node.of(declared), texts, edges, right=right, include_lowest=include_lowest)
    return Transform.of(text, domain, made)


def _periods(domain: Domain, declared: Column, bins: Any, labels: Any, freq: str | None) -> Transform:
    """Dates as the period that each is in."""
    timeline, lower, upper = declared.timeline, declared.lower, declared.upper
    if timeline is None:
        raise DeclarationError(
            f"'freq' is for dates, and column {declared.name!r} is of kind {declared.kind!r}.",
            f"private.cut({declared.name!r}, [LOWER, ..., UPPER])",
        )
    if bins is not None or labels is not None or freq is None:
        raise ParameterError(
            f"column {declared.name!r} holds dates, which 'cut' takes by 'freq' alone.",
            f'private.cut({declared.name!r}, freq="M")',
        )
    texts, first = timeline.periods(freq, int(lower or 0), int(upper or 0))
    edges = np.array([*first, np.inf])
    text = call("cut", declared.name, freq=freq)
    return Transform.of(text, domain, _cut(Node.of(declared), texts, edges, right=False))


def _cut(
    node: Node, texts: tuple[Any, ...], edges: Floats, *, right: bool, include_lowest: bool = False
) -> Node:
    """Return the interval between edges that holds each number; null for none."""
    interval_of = functools.partial(
        _interval_positions, edges=edges, right=right, include_lowest=include_lowest
    )
    column, most = node.column, np.finfo(np.float64).max
    ends = np.clip(np.array([*column.hull], dtype=np.float64), -most, most)
    nullable = column.nullable or bool((interval_of(ends) < 0).any())
    renewed = Column(column.name, "category", nullable, categories=texts, role=column.role, ordered=True)

    def cells(read: Read, index: pd.Index[Any]) -> pd.Series[Any]:
        positions = interval_of(floats(node.cells(read, index), column))
        return category_column(positions, texts, index, ordered=True)

    return Node(renewed, cells)


def _edges(name: Hashable, bins: Any) -> tuple[list[int | float], Floats]:
    """The edges as they were given, and as doubles."""
    if bins is None:
        raise ParameterError("'cut' needs 'bins'.", f"private.cut({name!r}, [0, 50, 100])")
    single = bins[()] if isinstance(bins, np.ndarray) and bins.ndim == 0 else bins
    if is_number(single):
        raise ParameterError(
            f"'bins' must be edges (got {got(bins)}): a number of bins has edges that pandas takes from the "
            "least and the greatest value of the data.",
            f"private.cut({name!r}, [0, 50, 100])",
        )
    if single is not bins or not isinstance(bins, list | tuple | range | np.ndarray):
        raise ParameterError(
            f"'bins' must be a list of edges (got {got(bins)}).", f"private.cut({name!r}, [0, 50, 100])"
        )
    listed = items(bins, "bins")
    edges = list(map(plain, listed))
    for edge, item in zip(edges, listed, strict=True):
        if not is_number(edge) or edge != edge or getattr(item, "confidential", False) is True:
            raise ParameterError(f"'bins' must be public numbers (got {kind(item)}).")
    try:
        doubles = np.array([float(edge) for edge in edges], dtype=np.float64)
    except OverflowError:
        raise ParameterError("an edge of 'bins' is beyond the largest number; write inf.") from None
    if len(edges) < 2 or any(right <= left for left, right in pairwise(doubles.tolist())):
        raise ParameterError("'bins' must be at least two strictly increasing edges.")
    return edges, doubles


def _texts(edges: list[int | float], right: bool, include_lowest: bool) -> tuple[str, ...]:
    """The intervals as pandas writes them, but with all digits of the edges.

    pandas rounds edges to three digits, and writes 17.999 for a lowest edge of 18 that is included.
    """
    whole_numbers = all(isinstance(edge, int) for edge in edges)
    written = [repr(edge if whole_numbers else float(edge)) for edge in edges]
    first = "[" if include_lowest or not right else "("
    ends = "(]" if right else "[)"
    pairs = enumerate(pairwise(written))
    return tuple(f"{ends[0] if index else first}{low}, {high}{ends[1]}" for index, (low, high) in pairs)


def _checked_labels(name: Hashable, labels: Any, edges: Floats) -> tuple[Any, ...]:
    single = isinstance(labels, np.ndarray) and labels.ndim == 0
    if single or not isinstance(labels, list | tuple | np.ndarray):
        raise ParameterError(
            f"'labels' must be a list of labels, one per interval (got {got(labels)}).",
            f"private.cut({name!r}, [0, 50, 100], labels=['low', 'high'])",
        )
    checked = tuple(label(item, "each of 'labels'") for item in labels)
    if len(checked) != len(edges) - 1:
        raise ParameterError(
            f"'labels' must hold one label per interval ({len(edges) - 1}, got {len(checked)})."
        )
    if len(set(checked)) < len(checked):
        raise ParameterError("'labels' must be different from each other.")
    return checked


def _interval_positions(
    numbers: Floats, edges: Floats, *, right: bool, include_lowest: bool
) -> NDArray[np.signedinteger[Any]]:
    """The interval of each number as `pandas.cut` finds it, -1 for none."""
    # an infinite edge that belongs to no interval is never reached: columns hold finite numbers
    indices = np.searchsorted(edges, numbers, side="left" if right else "right")  # NaN is above all edges
    if include_lowest:
        indices[numbers == edges[0]] = 1
    intervals = np.array([-1, *range(len(edges) - 1), -1], dtype=np.min_scalar_type(-len(edges)))
    return intervals[indices]


# ---------------------------------------------------------------- recode


def recode(domain: Domain, column: Hashable, mapping: Mapping[Any, Any]) -> Transform:
    """Replace declared labels by others, as `Series.replace` with a mapping; other labels stay.

    The new labels are declared in the order of the old ones, each once. Numbers alone make a numeric column,
    bounded by the least and the greatest: of integers if all are whole, unless the column was one of floats.
    Truth values alone make a boolean column, and everything else a category. Ordered labels stay ordered
    where the mapping keeps their order. A label that is mapped to None becomes null.

    Raises
    ------
    ParameterError : not a mapping, a key that is not a declared label, or a value that is not a label.
    DeclarationError : the column is not declared, has no declared labels, or is an identifier.

    >>> domain = Domain((Column("region", "category", categories=("south", "north", "west")),))
    >>> recode(domain, "region", {"north": "other", "west": "other"}).domain["region"].categories
    ('south', 'other')
    >>> recode(domain, "region", {"south": 1, "north": 2, "west": 3}).domain["region"].bounds("mean")
    (1.0, 3.0)
    """
    declared = own(domain[column], "recode")
    if not isinstance(mapping, Mapping):
        raise ParameterError(
            f"'mapping' must be a mapping from label to label (got {got(mapping)}): "
            "a function may remember other rows.",
            example("recode", Domain((declared,))) or example("recode", domain),
        )
    return Transform.of(
        call("recode", column, shown(mapping)), domain, mapped_labels(Node.of(declared), mapping)
    )


# ---------------------------------------------------------------- rename


def rename(domain: Domain, columns: Mapping[Hashable, Hashable]) -> Transform:
    """Rename declared columns, as `DataFrame.rename`; everything else that is declared stays.

    Raises
    ------
    ParameterError : not a mapping, an invalid name, or a name that another column has or gets.
    DeclarationError : a column that is not declared, or an identifier.

    >>> domain = Domain((Column("age", "integer", lower=18, upper=65),))
    >>> rename(domain, {"age": "years"}).domain["years"].bounds("mean")
    (18.0, 65.0)
    """
    if not isinstance(columns, Mapping):
        raise ParameterError(
            f"'columns' of 'rename' must be a mapping from name to name (got {kind(columns)}).",
            example("rename", domain),
        )
    renewed: dict[Hashable, Column] = {}
    taken: set[Hashable] = set()
    for name, new in columns.items():
        column = own(domain[name], "rename")
        new = label(new, f"the new name of column {name!r}")
        if new == name:
            continue
        if new in domain or new in taken:
            raise ParameterError(
                f"'rename' cannot call column {name!r} {new!r}: another column has that name.",
                "rename that column first, in a step of its own",
            )
        renewed[name] = replace(column, name=new)
        taken.add(new)
    cells = {column.name: replace(Node.of(domain[name]), column=column) for name, column in renewed.items()}
    renamed = Domain(tuple(renewed.get(column.name, column) for column in domain.columns))
    sources = {column.name: (name,) for name, column in renewed.items()}
    text = call("rename", columns=shown(columns))
    return Transform(text, renamed, tuple(renewed), cells, sources=sources)


# ---------------------------------------------------------------- astype

KINDS = {
    **dict.fromkeys(("float", "float64", "Float64"), "float"),
    **dict.fromkeys(("int", "int64", "Int64"), "integer"),
    **dict.fromkeys(("bool", "boolean"), "boolean"),
    **dict.fromkeys(("str", "string", "category", "object"), "category"),
}
"""The declared kind of a column of each dtype."""

WIDER = {("boolean", "integer"), ("boolean", "float"), ("integer", "float")}
"""Kinds of columns whose every cell is one of another kind, too."""


def astype(domain: Domain, dtype: Any) -> Transform:
    """Convert columns to a type that holds every declared cell, as `DataFrame.astype`.

    Truth values become integers or floats, and integers floats. Bounds and bins stay, labels become numbers.

    Parameters
    ----------
    dtype : a type for all columns, or a mapping from column to type: "float64", "int64", "bool", "str",
        "category" and their like; in a mapping ``pd.CategoricalDtype([...], ordered=True)`` for labels, which
        states their order.

    Raises
    ------
    ParameterError : an unknown type, or one that does not hold what is declared, such as integers for floats.
    DeclarationError : a column that is not declared, or an identifier; integers without bounds within 2**53.

    >>> domain = Domain((Column("age", "integer", lower=18, upper=65),))
    >>> astype(domain, {"age": "float64"}).domain["age"].kind
    'float'
    """
    single = None if isinstance(dtype, Mapping) else _name(dtype)
    if single is None:
        type_names = {name: _of_labels(type_name) or _name(type_name) for name, type_name in dtype.items()}
    else:
        type_names = {column.name: single for column in domain.columns}
    nodes = []
    for name, wanted in type_names.items():
        if isinstance(wanted, pd.CategoricalDtype):
            nodes.append(_in_order(own(domain[name], "astype"), wanted))
            continue
        column, target = own(domain[name], "astype"), KINDS[wanted]
        if column.timeline is not None:
            raise ParameterError(
                f"'astype' is for numbers, labels and truth values, and column {name!r} holds dates.",
                f"days since a date are numbers: private.assign(days=private[{name!r}] - "
                f'"{column.end_text(column.lower or 0)}")',
            )
        if target == column.kind:
            continue
        if (column.kind, target) not in WIDER:
            raise ParameterError(
                f"'astype' cannot make column {name!r}, of kind {column.kind!r}, one of kind {target!r}.",
                _valid_call(column, target),
            )
        nodes.append(_converted_column(column, target))
    texts = {plain(name): _text_of(type_name) for name, type_name in type_names.items()}
    text = call("astype", texts if single is None else single)
    return Transform.of(text, domain, *nodes)


class _Code(str):
    """Source code, which stands in a call as it is."""

    __slots__ = ()
    __repr__ = str.__str__


def _text_of(dtype: str | pd.CategoricalDtype) -> str:
    """A type as a person writes it."""
    if isinstance(dtype, str):
        return dtype
    return _Code(f"pd.CategoricalDtype({[plain(label) for label in dtype.categories]!r}, {dtype.ordered})")


def _of_labels(dtype: Any) -> pd.CategoricalDtype | None:
    """A type that names its labels; None for any other."""
    named = isinstance(dtype, pd.CategoricalDtype) and dtype.categories is not None
    return dtype if named else None


def _in_order(column: Column, dtype: pd.CategoricalDtype) -> Node:
    """Return a column of labels in the order of a dtype, which has these labels and no others."""
    labels = [plain(label) for label in dtype.categories]
    if column.kind != "category":
        _name(dtype)  # which raises
    declared = column.categories
    if declared is None or set(labels) != set(declared):
        raise ParameterError(
            f"'astype' orders declared labels, and the type has others than column {column.name!r}.",
            None
            if declared is None
            else f"pd.CategoricalDtype({list(declared)!r}, ordered=True), in their order",
        )
    renewed = replace(column, categories=tuple(labels), ordered=bool(dtype.ordered))
    return replace(Node.of(column), column=renewed, declared=False)


def _name(dtype: Any) -> str:
    """The name of a dtype, one of `KINDS`; ParameterError for any other."""
    name = dtype
    if isinstance(dtype, type):
        name = dtype.__name__
    elif isinstance(dtype, np.dtype | ExtensionDtype):
        named = isinstance(dtype, pd.CategoricalDtype) and (dtype.categories is not None or dtype.ordered)
        name = None if named else str(dtype)  # categories and their order are those of the declaration
    if not isinstance(name, str) or name not in KINDS:
        raise ParameterError(f"'astype' does not know this type (got {got(dtype)}).", None)
    return name


def _valid_call(column: Column, target: str) -> str:
    """Return a valid call in place of a type that does not hold the cells."""
    if column.kind == "category":
        return f"private.recode({column.name!r}, ...) puts numbers in place of labels"
    if target == "boolean":
        return f'private.assign(new="{column.name} > 0") makes truth values'
    return f"private.cut({column.name!r}, [...]) makes labels of ranges"


def _converted_column(column: Column, target: Any) -> Node:
    """Return a column of whole numbers or truth values as one of a wider kind."""
    wide = column.kind == "integer" and not column.hull.within(Interval(-EXACT, EXACT))
    if target == "float" and wide:
        raise DeclarationError(
            f"'astype' needs bounds of column {column.name!r} that floats hold.",
            "declare bounds within 2**53",
        )
    return cast(Node.of(column), target)
