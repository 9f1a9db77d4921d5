"""Labels in place of labels: mappings, and methods of texts that are applied to each declared label.

Labels are public, so a mapping of labels may be any function of them, computed once for each.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.checks import finite, is_null, label, plain
from pdprivacy.core.rows.cells import Read, category_column, codes, column_of, floats, whole
from pdprivacy.core.rows.nodes import NUMERIC, Node, date_field
from pdprivacy.declaration.domain import Column, declaration_hint, find_labels_hint
from pdprivacy.declaration.intervals import INT64, Interval
from pdprivacy.errors import DeclarationError, ParameterError, QueryError
from pdprivacy.types import Integers

PREDICATES = (
    "contains", "endswith", "fullmatch", "isalnum", "isalpha", "isdecimal", "isdigit", "islower", "isnumeric",
    "isspace", "istitle", "isupper", "match", "startswith",
)  # fmt: skip
"""Methods of ``Series.str`` that make conditions."""

MOST_CHARACTERS = 10**4
"""The largest whole number that a method of texts is called with."""

TEXT_METHODS = (
    *PREDICATES,
    "capitalize", "casefold", "count", "find", "len", "lower", "lstrip", "removeprefix", "removesuffix",
    "replace", "rfind", "rstrip", "slice", "strip", "swapcase", "title", "upper", "zfill",
)  # fmt: skip
"""Methods of ``Series.str`` whose result for a label depends on that label alone."""


def mapped_labels(node: Node, mapping: Mapping[Any, Any], *, others_null: bool = False) -> Node:
    """Return other labels in place of the declared ones; the others stay, or become null.

    Raises
    ------
    ParameterError : a key that is no declared label, or a value that is not a label; all would be null.
    DeclarationError : no declared labels.
    """
    before = _labels(node.column)
    images = _new_labels(node.column, before, mapping)
    if others_null:
        keys = {(plain(key), isinstance(plain(key), bool)) for key in mapping}
        images = [
            image if (label, isinstance(label, bool)) in keys else None
            for label, image in zip(before, images, strict=True)
        ]
    return _with_images(node, before, images)


def _with_images(node: Node, before: tuple[Any, ...], images: list[Any]) -> Node:
    after = tuple(dict.fromkeys(image for image in images if image is not None))
    if not after:
        raise ParameterError(f"every label of column {node.column.name!r} would become null.")
    return _recoded(node, before, images, after)


def texts_of_labels(node: Node, method: str, constants: tuple[Any, ...], options: Mapping[str, Any]) -> Node:
    """Return the results of a method of texts for each declared label, null for labels that are no texts."""
    before = _text_labels(node.column)
    return _with_images(node, before, _results(before, method, constants, options))


def labels_that(
    node: Node, method: str, constants: tuple[Any, ...], options: Mapping[str, Any]
) -> tuple[tuple[Any, ...], list[int]]:
    """Return the declared labels for which a method of texts is true, and their positions."""
    before = _text_labels(node.column)
    results = _results(before, method, constants, options)
    positions = [position for position, result in enumerate(results) if result is True]
    return tuple(before[position] for position in positions), positions


_NAMES = {
    "day_name": ("dayofweek", 0, tuple(calendar.day_name)),
    "month_name": ("month", 1, tuple(calendar.month_name)[1:]),
}
"""The field that names are of, the number of the first one, and the names."""


def date_names(node: Node, method: str) -> Node:
    """Return the names of the weekdays or months of dates, in English; all of them are declared, in order."""
    field, first, names = _NAMES[method]
    numbers = date_field(node, field)
    ordered = replace(numbers.column, lower=first, upper=first + len(names) - 1)
    named = mapped_labels(replace(numbers, column=ordered), dict(enumerate(names, first)))
    return replace(named, column=replace(named.column, ordered=True))


def _text_labels(column: Column) -> tuple[Any, ...]:
    if column.kind != "category" or column.categories is None:
        raise QueryError(
            f"'.str' is for declared labels, and column {column.name!r} is of kind {column.kind!r}."
            if column.kind != "category"
            else f"'.str' needs the labels of column {column.name!r}, which has no categories.",
            None
            if column.kind != "category"
            else find_labels_hint(column.name)
            if column.private_labels
            else declaration_hint(column.name, column.kind, "labels"),
        )
    return column.categories


def _results(
    labels: tuple[Any, ...], method: str, constants: tuple[Any, ...], options: Mapping[str, Any]
) -> list[Any]:
    """The result of a method of ``Series.str`` for each label, None for a label that is no text."""
    if "na" in options:  # of labels, which are no nulls
        raise QueryError("'na' is not offered: a null stays null.", "a condition & b.notna(), or | b.isna().")
    if any(type(constant) is int and abs(constant) > MOST_CHARACTERS for constant in constants):
        raise QueryError(f"'.str.{method}' takes whole numbers up to {MOST_CHARACTERS:,}.")
    try:
        texts = pd.Series(list(labels), dtype=object)
        results = getattr(texts.str, method)(*constants, **options).tolist()
    except (TypeError, ValueError, AttributeError, re.error) as error:
        reason = f"'.str.{method}' cannot be called with these arguments: {error}."
    else:
        return [None if is_null(result) else plain(result) for result in results]
    raise QueryError(reason)


def _recoded(node: Node, before: tuple[Any, ...], images: list[Any], after: tuple[Any, ...]) -> Node:
    """Return the image of each label; null for a null."""
    column, renewed = node.column, _recoded_column(node.column, images, after)
    position = {image: position for position, image in enumerate(after)}
    table = np.array([*(-1 if image is None else position[image] for image in images), -1])

    def cells(read: Read, index: pd.Index[Any]) -> pd.Series[Any]:
        positions = table[_label_positions(node.cells(read, index), column, before)]
        if renewed.kind == "category":
            return category_column(positions, after, index, ordered=renewed.ordered)
        kind: Any = {"integer": np.int64, "float": np.float64, "boolean": np.bool_}[renewed.kind]
        numbers = np.array([*after, after[0]], dtype=kind)[positions]
        return column_of(numbers, positions < 0, renewed, index)

    return Node(renewed, cells)


def _labels(column: Column) -> tuple[Any, ...]:
    """The declared labels of a column: its categories, or its integers where these are few."""
    labels = column.enumerated()
    if not isinstance(labels, str):
        return labels
    raise DeclarationError(
        f"'recode' needs the labels of column {column.name!r}, which {labels}.",
        find_labels_hint(column.name)
        if column.private_labels
        else "put numbers together by private.cut(column, [EDGE, ..., EDGE])"
        if column.kind in NUMERIC
        else declaration_hint(column.name, column.kind, "labels"),
    )


def _new_labels(column: Column, labels: tuple[Any, ...], mapping: Mapping[Any, Any]) -> list[Any]:
    """Return the new value of each declared label; None is null."""
    positions = {(value, isinstance(value, bool)): position for position, value in enumerate(labels)}
    images = list(labels)
    for old, new in mapping.items():
        key = plain(old)
        position = positions.get((key, isinstance(key, bool)))
        if position is None:
            listed = ", ".join(map(repr, labels[:10])) + (", ..." if len(labels) > 10 else "")
            raise ParameterError(
                f"'mapping' has a label that column {column.name!r} does not declare (declared: {listed}).",
                "nulls are replaced by private.fillna({column: label})" if is_null(old) else None,
            )
        images[position] = None if is_null(new) else label(new, f"the image of {key!r}")
    kept = [image for image in images if image is not None]
    # True equals 1, and they are different labels
    if len(set(kept)) < len({(image, isinstance(image, bool)) for image in kept}):
        raise ParameterError(f"the images in column {column.name!r} must not mix truth values with 0 or 1.")
    return images


def _recoded_column(column: Column, images: list[Any], after: tuple[Any, ...]) -> Column:
    nullable = column.nullable or None in images
    truths = [isinstance(image, bool) for image in after]
    if all(truths):
        labels = tuple(value for value in (False, True) if value in after)
        return Column(column.name, "boolean", nullable, categories=labels, role=column.role)
    if not any(truths) and all(isinstance(image, int | float) and finite(image) for image in after):
        integers = all(isinstance(image, int) and image in INT64 for image in after)
        integers &= column.kind != "float"
        if not integers:
            after = tuple(dict.fromkeys(map(float, after)))
        lower, upper = Interval.around(after)
        return replace(
            column,
            kind="integer" if integers else "float",
            nullable=nullable,
            lower=lower,
            upper=upper,
            categories=after,
            bins=None,
        )
    position = {image: position for position, image in enumerate(after)}
    places = [position[image] for image in images if image is not None]
    ordered = column.ordered and places == sorted(places)
    return Column(column.name, "category", nullable, categories=after, role=column.role, ordered=ordered)


def _label_positions(values: pd.Series[Any], column: Column, labels: tuple[Any, ...]) -> Integers:
    """The place of each cell among the declared labels, -1 for a null."""
    if column.kind == "float":
        return codes(pd.Series(floats(values, column)), labels)
    if column.kind != "integer":
        return codes(values, labels)
    numbers, null = whole(values, column)
    if column.categories is None and numbers.dtype == np.int64:
        positions = numbers - np.int64(labels[0])
    else:
        positions = codes(pd.Series(numbers), labels)
    return positions if null is None else np.where(null, -1, positions)
