"""What a pandera schema checks beyond what its domain says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pdprivacy.domain import Column, Domain
from pdprivacy.schema.declared import allowed, check_text, ends, implied_by_dates, reaches
from pdprivacy.schema.opening import Schema, opened
from pdprivacy.schema.pandera_reader import domain_of


def unchecked(schema: Schema) -> tuple[str, ...]:
    """What the schema checks or changes beyond its domain, and nobody does where pandera is not run.

    Frames of other engines than pandas are held to the domain alone. Told are, each by where it is declared
    and what: checks that bound or label no declared column (functions, patterns, checks by group, checks of
    other columns, of the index or of the whole frame), checks that ``metadata`` overrides by something wider,
    uniqueness, ``strict``, ``ordered``, ``add_missing_columns``, ``coerce`` and defaults. Not told are checks
    that only warn; of dtypes, all but the kind; an open end of a float column, which the domain closes; and
    that columns of which nothing is released are there, with their dtype and without nulls.

    The values of a check are shown for declared columns only: elsewhere an inferred schema has those of the
    data. Empty for a `Domain`.

    Raises
    ------
    ParameterError, DeclarationError : as `read_schema`.

    >>> import pandera.pandas as pa
    >>> age = pa.Column(int, [pa.Check.in_range(18, 65), pa.Check.ne(40)], unique=True, metadata={"dp": {}})
    >>> unchecked(pa.DataFrameSchema({"age": age}, strict=True))
    ("column 'age': not_equal_to(40)", "column 'age': unique=True", 'schema: strict=True')
    """
    if isinstance(schema, Domain):
        return ()
    read = opened(schema)
    domain = domain_of(read)
    return tuple(dict.fromkeys([*_of_columns(read, domain), *_of_index(read), *_of_whole(read)]))


def _of_columns(schema: Any, domain: Domain) -> Iterator[str]:
    declarations = {column.name: column for column in domain.columns}
    for name, column in schema.columns.items():
        declared = declarations.get(name)
        for what in _of_part(column, declared, typed=(schema.dtype or column.dtype) is not None):
            yield f"column {name!r}: {what}"


def _of_index(schema: Any) -> Iterator[str]:
    index = schema.index
    if index is None:
        return
    levels = getattr(index, "indexes", None)
    for level in [index] if levels is None else levels:
        for what in _of_part(level, None, typed=level.dtype is not None):
            yield f"index: {what}" if level.name is None else f"index {level.name!r}: {what}"
    if levels is not None:
        for option in ("unique", "strict", "coerce"):
            if value := getattr(index, option, None):
                yield f"index: {option}={value!r}"


def _of_part(part: Any, declared: Column | None, *, typed: bool) -> Iterator[str]:
    """What is asked of a column or index beyond its declaration, None where there is none."""
    for check in part.checks:
        if not check.raise_warning and (declared is None or not _said(check, declared)):
            yield check_text(check, values=declared is not None)
    if part.unique:
        yield "unique=True"
    if part.coerce and typed:
        yield "coerce=True"
    if getattr(part, "default", None) is not None:
        yield "a default in place of nulls"


def _of_whole(schema: Any) -> Iterator[str]:
    for check in schema.checks:
        if not check.raise_warning:
            yield f"schema: {check_text(check, values=False)}"
    for option in ("unique", "strict", "ordered", "add_missing_columns", "coerce"):
        if value := getattr(schema, option, None):
            yield f"schema: {option}={value!r}"


def _said(check: Any, column: Column) -> bool:
    """Whether every value of the declared column meets the check; of an open end, the end itself aside."""
    if check.groupby is not None or (column.nullable and not check.ignore_na):
        return False
    if column.timeline is not None:
        return implied_by_dates(check, column)
    lower, upper = column.lower, column.upper
    if column.categories is not None and column.kind != "category":
        lower, upper = min(column.categories), max(column.categories)
    low, high = ends(check)
    if low is not None or high is not None:
        return (low is None or reaches(lower, (low[0], True), 1)) and (
            high is None or reaches(upper, (high[0], True), -1)
        )
    labels = allowed(check)
    return labels is not None and column.categories is not None and set(column.categories) <= set(labels)
