"""One of two values by a condition on the same record: ``pay if age >= 18 else 0`` and `Series.where`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.core.rows.cells import Read, category_column, codes, column_of, floats, whole
from pdprivacy.core.rows.conditions import (
    FALSE,
    TRUE,
    UNKNOWN,
    Condition,
    Regions,
    narrowed_column,
    regions_where,
    truths_of,
)
from pdprivacy.core.rows.nodes import Node, cast, mapped, number
from pdprivacy.core.rows.regions import Region, declared_in
from pdprivacy.declaration.domain import Column, declaration_hint
from pdprivacy.declaration.intervals import INT64
from pdprivacy.errors import QueryError
from pdprivacy.types import Integers, Mask


def constant_node(value: bool | float | str) -> Node:
    """Return the node of a public constant, the same for every record.

    >>> constant_node(3).column.bounds("mean"), constant_node("low").column.categories
    ((3.0, 3.0), ('low',))
    """
    name = repr(value)
    if isinstance(value, str):
        labels = Column(name, "category", categories=(value,))
        return Node(labels, lambda _, index: category_column(np.zeros(len(index), dtype=int), [value], index))
    if isinstance(value, bool):
        column = Column(name, "boolean", categories=(value,))
    elif isinstance(value, int) and value in INT64:
        column = Column(name, "integer", lower=value, upper=value, categories=(value,))
    else:
        value = float(value)
        column = Column(name, "float", lower=value, upper=value, categories=(value,))
    return Node(column, lambda _, index: column_of(np.full(len(index), value), None, column, index))


def chosen(condition: Condition, first: Any, second: Any, name: str) -> Node:
    """Return the first value where a condition is true, and the second one where it is false or unknown.

    The declaration of the result is the least that holds both; a declared column counts as far as the
    condition lets it. ``first``, ``second``: nodes or constants, of which None is null. ``name``: of the
    result, in errors.

    Raises
    ------
    QueryError : values of different kinds, such as a number and a label; labels that are not declared.
    ParameterError : a constant that is no date, beside a column of dates.
    """
    dates = next((node.column for node in (first, second) if _holds_dates(node)), None)
    values = [_node(value, dates) for value in (first, second)]
    regions_by_value = [regions_where(condition, truths) for truths in (TRUE, FALSE | UNKNOWN)]
    values = [
        None if regions is None else value for value, regions in zip(values, regions_by_value, strict=True)
    ]
    nodes = [_narrowed(value, regions or {}) for value, regions in zip(values, regions_by_value, strict=True)]
    if None in regions_by_value:  # the condition decides for all declared records
        nodes = [next((node for node in nodes if node is not None), None)] * 2
    kinds = {node.column.kind for node in nodes if node is not None}
    if not kinds:
        raise QueryError(f"{name!r} is null for every record.", "one of the two is a column or a constant")
    if "category" in kinds and len(kinds) > 1:
        raise QueryError(
            f"one of the values of {name!r} is a label and the other one a number.",
            "two numbers, or two labels; None makes the other records null: x if condition else None",
        )
    declared = [value.column for value in (first, second) if isinstance(value, Node)]
    if kinds == {"category"}:
        return _chosen_labels(condition, nodes, name, declared)
    bins = {column.bins for column in declared}
    return _chosen_numbers(condition, nodes, name, bins.pop() if len(bins) == 1 else None)


def _holds_dates(value: Any) -> bool:
    return isinstance(value, Node) and value.column.timeline is not None


def _node(value: Any, dates: Column | None) -> Node | None:
    if isinstance(value, Node) or value is None:
        return value
    if dates is None:
        return constant_node(value)
    day = constant_node(int(number(value, dates, "a value")))
    return replace(day, column=replace(day.column, categories=None, timeline=dates.timeline))


def _narrowed(node: Node | None, regions: Regions) -> Node | None:
    """A declared column as it is in these regions."""
    region = regions.get(node.column.name) if node is not None and node.declared else None
    if node is None or region is None or not region.values:
        return node
    return replace(node, column=narrowed_column(node.column, region), declared=False)


# ---------------------------------------------------------------- syntax


def branches_of(owner: ast.expr, method: str, call: ast.Call, show: Callable[[ast.AST], str]) -> ast.expr:
    """Return the conditional expression that ``where``, ``mask`` or ``case_when`` of a column stands for.

    As in pandas, all three put the other value where the condition is unknown.
    """
    match call:
        case ast.Call(args=[ast.List(elts=cases)], keywords=[]) if method == "case_when" and cases:
            pairs = [case.elts for case in cases if isinstance(case, ast.Tuple) and len(case.elts) == 2]
            if len(pairs) == len(cases):
                return by_cases([(condition, value) for condition, value in pairs], owner)
        case ast.Call(args=[condition, *others], keywords=keywords) if method != "case_when":
            named = [keyword.value for keyword in keywords if keyword.arg == "other"]
            values = [*others, *named]
            if len(values) < 2 and len(named) == len(keywords):
                other = values[0] if values else ast.Constant(None)
                return (
                    kept_where(owner, condition, other)
                    if method == "where"
                    else kept_unless(owner, condition, other)
                )
    raise QueryError(
        f"{show(call)!r} has other arguments than column.where(condition, other), column.mask(condition, "
        "other) and column.case_when([(condition, value), ...]).",
        "x if condition else y",
    )


def kept_where(value: ast.expr, condition: ast.expr, other: ast.expr) -> ast.expr:
    """``value.where(condition, other)``."""
    return ast.IfExp(condition, value, other)


def kept_unless(value: ast.expr, condition: ast.expr, other: ast.expr) -> ast.expr:
    """``value.mask(condition, other)``."""
    return ast.IfExp(ast.UnaryOp(ast.Not(), condition), value, other)


def first_true(conditions: Sequence[ast.expr], values: Sequence[ast.expr], default: ast.expr) -> ast.expr:
    """The value of the first condition that is true, else the default."""
    for condition, value in reversed(list(zip(conditions, values, strict=True))):
        default = ast.IfExp(condition, value, default)
    return default


def by_cases(cases: Sequence[tuple[ast.expr, ast.expr]], default: ast.expr) -> ast.expr:
    """``default.case_when(cases)``: the value of the first condition that is not false."""
    for condition, value in reversed(cases):
        default = kept_unless(default, condition, value)
    return default


# ---------------------------------------------------------------- numbers, truth values and dates


def _chosen_numbers(
    condition: Condition, nodes: Sequence[Node | None], name: str, bins: tuple[float, ...] | None
) -> Node:
    """One of two numbers, truth values or dates; ``bins``: of the columns among them."""
    alike = _of_one_kind(nodes, name)
    present = [node for node in alike if node is not None]
    column = _hull([node.column for node in present], name, bins)
    column = replace(column, nullable=column.nullable or None in alike)

    def cells(read: Read, index: pd.Index[Any]) -> pd.Series[Any]:
        met = truths_of(condition, read, index).met
        if column.kind == "float":
            doubles = [_doubles(node, read, index) for node in alike]
            return column_of(np.where(met, *doubles), None, column, index)
        (first, without), (second, also_without) = (_integers(node, read, index) for node in alike)
        array = np.where(met, first, second)
        null = np.where(met, without, also_without)
        return column_of(array.astype(bool) if column.kind == "boolean" else array, null, column, index)

    return Node(column, cells, all(node.finite for node in present))


def _of_one_kind(nodes: Sequence[Node | None], name: str) -> list[Node | None]:
    """The nodes as those of one kind: dates of one timeline, else the widest of truth values and numbers."""
    present = [node for node in nodes if node is not None]
    timelines = {node.column.timeline for node in present}
    if timelines != {None}:
        if len({None if line is None else (line.unit, line.zone) for line in timelines}) > 1:
            raise QueryError(
                f"one of the values of {name!r} is a date, and the other one a number, or a date of another "
                "resolution or time zone.",
                "a difference of dates is a number: private[DATE] - '2020-01-31'",
            )
        return [None if node is None else _moved(node, present[0].column) for node in nodes]
    kinds = [node.column.kind for node in present]
    kind = "float" if "float" in kinds else "integer" if "integer" in kinds else "boolean"
    if kind == "boolean":
        return list(nodes)
    return [
        node if node is None or node.column.kind == kind else cast(node, kind)  # type: ignore[arg-type]
        for node in nodes
    ]


def _moved(node: Node, target: Column) -> Node:
    """A node of dates, counted from the origin of another one."""
    column, timeline = node.column, target.timeline
    assert column.timeline is not None
    assert timeline is not None
    apart = column.timeline.origin - timeline.origin
    if apart == 0:
        return node
    lower, upper = (int(end) + apart for end in column.interval)
    return mapped(
        node, replace(column, lower=lower, upper=upper, timeline=timeline), lambda array: array + apart
    )


def _hull(columns: Sequence[Column], name: str, bins: tuple[float, ...] | None) -> Column:
    """The declaration of the values of columns of one kind, whose bins are those of the whole columns."""
    region = Region.hull([replace(Region.of(column), interval=column.hull) for column in columns])
    if region.labels is not None:
        region = replace(region, labels=dict.fromkeys(sorted(region.labels)))
    column = declared_in(replace(columns[0], role=None, bins=None), region)
    if bins is not None and None not in region.interval.bounds:
        binned = Column(name, columns[0].kind, lower=bins[0], upper=bins[-1], bins=bins)
        column = replace(column, bins=declared_in(binned, region).bins)
    return replace(column, name=name)


def _doubles(node: Node | None, read: Read, index: pd.Index[Any]) -> Any:
    return np.nan if node is None else floats(node.cells(read, index), node.column)


def _integers(node: Node | None, read: Read, index: pd.Index[Any]) -> tuple[NDArray[Any] | int, Mask | bool]:
    if node is None:
        return 0, True
    array, null = whole(node.cells(read, index), node.column)
    return array, False if null is None else null


# ---------------------------------------------------------------- labels


def _chosen_labels(
    condition: Condition, nodes: Sequence[Node | None], name: str, declared: Sequence[Column]
) -> Node:
    """One of two labels; those of the declared columns come first, in their order."""
    present = [node.column for node in nodes if node is not None]
    for column in present:
        if column.categories is None:
            raise QueryError(
                f"{name!r} needs the labels of column {column.name!r}, which has no categories.",
                declaration_hint(column.name, column.kind, "labels"),
            )
    listed = [label for column in present for label in column.categories or ()]
    used = set(listed)
    in_order = (label for column in declared for label in column.categories or ())
    labels = [label for label in dict.fromkeys((*in_order, *listed)) if label in used]
    if len(labels) < len(dict.fromkeys((isinstance(label, bool), label) for label in listed)):
        raise QueryError(f"the labels of {name!r} must not mix truth values with 0 or 1.")
    nullable = None in nodes or any(column.nullable for column in present)
    ordered = bool(declared) and declared[0].ordered and used <= set(declared[0].categories or ())
    column = Column(name, "category", nullable, categories=tuple(labels), ordered=ordered)
    position = {label: index for index, label in enumerate(labels)}

    def cells(read: Read, index: pd.Index[Any]) -> pd.Series[Any]:
        met = truths_of(condition, read, index).met
        first, second = (_positions(node, position, read, index) for node in nodes)
        return category_column(np.where(met, first, second), labels, index, ordered=column.ordered)

    return Node(column, cells)


def _positions(
    node: Node | None, position: dict[Any, int], read: Read, index: pd.Index[Any]
) -> Integers | int:
    """The position of each cell among all labels, -1 for a null."""
    if node is None:
        return -1
    labels = node.column.categories or ()
    table = np.array([*(position[label] for label in labels), -1])
    return np.asarray(table[codes(node.cells(read, index), labels)])
