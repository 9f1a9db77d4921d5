"""A pandera schema read as a `pdprivacy.declaration.domain.Domain`, and what it checks beyond that."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Hashable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.checks import MOST_ITEMS, finite, is_list, is_number
from pdprivacy.declaration.declarations import (
    KEYS,
    Ends,
    Schema,
    allowed,
    bounds_of,
    check_text,
    closed,
    common_labels,
    date_column,
    engine_of,
    excluded,
    implied_by_dates,
    in_order,
    opened,
    refuse_blanks,
    refuse_dates,
    stated,
)
from pdprivacy.declaration.domain import Column, Domain, Kind, declaration_hint
from pdprivacy.declaration.intervals import LINE, Interval
from pdprivacy.declaration.overlay import Overlay, overlaid
from pdprivacy.declaration.timeline import Timeline
from pdprivacy.errors import DeclarationError, got
from pdprivacy.hints.suggestions import nearest

CONFIRMED = "public"
"""The word in place of a pair of bounds: the bounds of the checks are public."""


def read_schema(schema: Schema, columns: Overlay | None = None) -> Domain:
    """Return the domain that a pandera schema declares.

    A column belongs to the domain if its ``metadata`` has the key ``"dp"``: a dict, empty or with

    - ``role``: ``"quasi_identifier"``, ``"sensitive"`` or ``"identifier"``,
    - ``bins``: edges of the cells of a numeric column,
    - ``bounds``: the pair of lower and upper bound; or ``"public"``, which confirms that the bounds of the
      checks or bins are known without the data, also where they equal its minimum or maximum,
    - ``categories``: the labels in order,
    - ``resolution``: for dates, the unit of time that they are rounded down to,
    - ``labels``: ``"private"`` where nobody knows the labels of a column of texts or whole numbers without
      the data; ``private.dp.find_labels`` finds them,
    - ``missing``: codes of missing values, numbers and texts such as ``[-99, "n/a"]``. They are null in the
      protected frame, and the column is nullable; labels of the checks that are codes are left out.

    These override what the checks say. Bounds come from ``in_range``, ``ge``, ``gt``, ``le``, ``lt``,
    ``eq`` and ``isin``, all of them intersected; an open end of an integer column is moved to the next
    integer, an open end of a float column is kept as a closed one (a superset of what is declared).
    Where only bins are given, their outer edges are the bounds. Bounds that are dates declare a column of
    dates (docs/dates.md). Categories come from ``isin`` and ``eq``,
    from a categorical dtype (an ``Enum`` is one), and are ``(False, True)`` for truth values; ``ne`` and
    ``notin`` exclude some of them. Checks that only warn (``raise_warning=True``) and functions, whatever
    their name, bound nothing.

    Accepts a ``DataFrameSchema`` or ``DataFrameModel`` class of ``pandera.pandas``, ``pandera.polars`` or
    ``pandera.pyspark``: the same declaration gives the same domain. Decimals are of kind ``"category"`` in
    all of them. A `Domain` is returned as it is. ``columns`` declares columns beside the schema, by the same
    words (`protect`).

    Raises
    ------
    ParameterError : not a schema, or one of another engine; or ``columns`` that do not fit it.
    DeclarationError : no column is declared for release, the declaration contradicts itself, holds a blank
        (``...``), bounds that are durations, or dates on one side only, or changes rows (parsers,
        ``drop_invalid_rows``).

    >>> import pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(18, 65), metadata={"dp": {"bins": [18, 30, 65]}})
    >>> read_schema(pa.DataFrameSchema({"age": age}))["age"].bins
    (18.0, 30.0, 65.0)
    """
    read = overlaid(schema, columns)
    return read if isinstance(read, Domain) else domain_of(opened(read))


def domain_of(schema: Any) -> Domain:
    """The domain of an opened schema; errors as `read_schema`."""
    _refuse_row_changes(schema)
    refuse_blanks(schema)
    engine = engine_of(schema)
    columns = [
        _column(name, column, schema.dtype, engine)
        for name, column in schema.columns.items()
        if "dp" in (column.metadata or {})
    ]
    if not columns:
        name = next(iter(schema.columns), "age")
        raise DeclarationError(
            'no column is declared for release: each that is needs metadata={"dp": {}}, and bounds or labels '
            'known without the data ("python -m pdprivacy declare data.csv" writes lines to fill in).',
            f"{declaration_hint(name, None)}; or, where pandera dropped it (in YAML, of a field declared "
            f"again): df.dp.protect(schema, epsilon=1.0, columns={{{name!r}: {{}}}})",
        )
    return Domain(tuple(columns))


def present(domain: Domain, schema: Schema, columns: Collection[Hashable]) -> Domain:
    """Return the domain without its columns that the schema does not require and that are not there.

    Where none is there, all are kept.

    >>> import pandera.pandas as pa
    >>> age, pay = pa.Column(int, metadata={"dp": {}}), pa.Column(int, required=False, metadata={"dp": {}})
    >>> schema = pa.DataFrameSchema({"age": age, "pay": pay})
    >>> present(read_schema(schema), schema, ["age"]).names
    ('age',)
    """
    if isinstance(schema, Domain):
        return domain
    declared, labels = opened(schema).columns, set(columns)
    kept = [c for c in domain.columns if declared[c.name].required or c.name in labels]
    return Domain(tuple(kept)) if kept else domain


def _refuse_row_changes(schema: Any) -> None:
    parts = [schema, *schema.columns.values(), *([] if schema.index is None else [schema.index])]
    for option in ("parsers", "drop_invalid_rows"):
        if any(getattr(part, option, None) for part in parts):
            raise DeclarationError(
                f"a schema with {option!r} may change records in the light of other records.",
                f"apply schema.validate(df) first, and protect the result by a schema without {option!r}",
            )
    if schema.index is not None:
        for level in getattr(schema.index, "indexes", [schema.index]):
            if "dp" in (getattr(level, "metadata", None) or {}):
                raise DeclarationError(
                    f"the index {level.name!r} is declared for release, which only columns can be.",
                    "make it a column with df.reset_index()",
                )


def _column(name: Hashable, column: Any, schema_dtype: Any, engine: str) -> Column:
    options = _metadata(name, column)
    confirmed = isinstance(options.get("bounds"), str) and options["bounds"] == CONFIRMED
    if confirmed:
        del options["bounds"]
    if column.regex:
        raise DeclarationError(
            f"column {name!r} is a regular expression, which declares no column by name.",
            "declare each column that is released",
        )
    dtype = schema_dtype or column.dtype
    checks = column.checks
    kind = _kind(dtype, checks, options)
    declared = _declared_ends(dtype, checks, options)
    dates = _dates(name, dtype, checks, options) if any(end is not None for end in declared) else None
    if dates is not None:
        timeline, last = dates
        nullable, role = column.nullable, options.get("role")
        missing = options.get("missing", ())
        return Column(
            name,
            "integer",
            nullable,
            lower=0,
            upper=last,
            role=role,
            timeline=timeline,
            missing=missing,
            private_labels="labels" in options,
        )
    if "resolution" in options:
        raise DeclarationError(
            f'"resolution" of column {name!r} is for dates with a lower and an upper bound.',
            f'{name!r}: pa.Column("datetime64[ns]", pa.Check.in_range(LOWER, UPPER), metadata=...)',
        )
    refuse_dates(name, engine, declared, nullable=column.nullable)
    _refuse_unread(name, kind, declared, options)
    if kind not in ("float", "integer"):
        _refuse_numeric(name, kind, options)
        lower = upper = bins = None
        categories = options.get("categories", _checked_labels(name, kind, dtype, checks, options))
    else:
        interval, categories = _numeric(name, kind, checks, options)
        lower, upper = interval.bounds
        bins = options.get("bins")
    if confirmed and bins is None and (lower is None or upper is None):
        raise DeclarationError(
            f'"bounds": "{CONFIRMED}" of column {name!r} confirms bounds, and it declares none.',
            declaration_hint(name, kind if kind == "integer" else "float", "bounds"),
        )
    return Column(
        name=name,
        kind=kind,
        nullable=column.nullable,
        lower=lower,
        upper=upper,
        categories=categories,
        bins=bins,
        role=options.get("role"),
        public_bounds=confirmed,
        missing=options.get("missing", ()),
        ordered=_in_order(dtype, categories),
        private_labels="labels" in options,
    )


def _in_order(dtype: Any, categories: tuple[Any, ...] | None) -> bool:
    """Return whether a dtype orders labels, and the declared ones are in this order."""
    if categories is None or getattr(dtype, "ordered", None) is not True:
        return False
    known = list(getattr(dtype, "categories", None) or ())
    positions = [known.index(label) if label in known else -1 for label in categories]
    return -1 not in positions and positions == sorted(positions)


def _refuse_numeric(name: Hashable, kind: str, options: Mapping[str, Any]) -> None:
    """Refuse bounds and bins of a column that is not numeric."""
    for key in ("bounds", "bins"):
        if key in options:
            raise DeclarationError(
                f'"{key}" of column {name!r} needs a numeric column (it is of kind {kind!r}).',
                declaration_hint(name, "float", "bounds"),
            )


def _metadata(name: Hashable, column: Any) -> dict[str, Any]:
    given = column.metadata["dp"]
    known = ", ".join(f'"{key}"' for key in KEYS)
    if not isinstance(given, Mapping):
        raise DeclarationError(
            f'metadata "dp" of column {name!r} must be a dict (got {got(given)}).',
            f'metadata={{"dp": {{}}}}, with any of the keys {known}',
        )
    if unknown := [key for key in given if key not in KEYS]:
        raise DeclarationError(
            f'metadata "dp" of column {name!r} has the unknown key {unknown[0]!r} (allowed: {known}).',
            f'metadata={{"dp": {{"{nearest(unknown[0], KEYS) or "role"}": ...}}}}',
        )
    options = {key: value for key, value in given.items() if value is not None}
    if "categories" in options:
        labels = options["categories"]
        if not is_list(labels):
            raise DeclarationError(
                f'"categories" of column {name!r} must be a list of labels (got {got(labels)}).',
                'metadata={"dp": {"categories": [LABEL, ...]}}',
            )
        if isinstance(labels, set | frozenset):
            labels = in_order(labels)
        options["categories"] = tuple(itertools.islice(labels, MOST_ITEMS + 1))  # more are refused
    if "labels" in options and not (isinstance(options["labels"], str) and options["labels"] == "private"):
        raise DeclarationError(
            f'"labels" of column {name!r} must be "private" (got {got(options["labels"])}).',
            'metadata={"dp": {"labels": "private"}}; known labels are "categories"',
        )
    codes = options.get("missing", ())
    if not is_list(codes) or isinstance(codes, Mapping):
        raise DeclarationError(
            f'"missing" of column {name!r} must be a list of codes (got {got(codes)}).',
            'metadata={"dp": {"missing": [-99, "n/a"]}}',
        )
    return options


def _kind(dtype: Any, checks: list[Any], options: dict[str, Any]) -> Kind:
    from pandera import dtypes

    if dtype is None:
        bounded = any(stated(check) != LINE for check in checks)
        return "float" if bounded or "bounds" in options or "bins" in options else "category"
    if dtypes.is_bool(dtype):
        return "boolean"
    if dtypes.is_int(dtype) or _is_wide(dtype):
        return "integer"
    return "float" if dtypes.is_float(dtype) else "category"


def _declared_ends(dtype: Any, checks: list[Any], options: dict[str, Any]) -> list[Any]:
    """Return the declared lower and upper end, of any type; texts of dates as dates.

    None of a column whose labels are declared, or that is never released: its checks are no bounds.
    """
    from pandera import dtypes

    for key in ("bounds", "bins"):
        pair = options.get(key)
        if isinstance(pair, list | tuple | np.ndarray | pd.Index) and len(pair) > 1:
            return [pair[0], pair[-1]]
    labels = "categories" in options or any(allowed(check) is not None for check in checks)
    if labels or options.get("role") == "identifier":
        return [None, None]
    named = [(None, None), *map(bounds_of, checks)]
    pair = [next((end for end in side if end is not None), None) for side in zip(*named, strict=True)]
    if dtype is None or dtypes.is_datetime(dtype):
        pair = [_of_text(end, pd.Timestamp) for end in pair]
    elif dtypes.is_timedelta(dtype):
        pair = [_of_text(end, pd.Timedelta) for end in pair]
    return pair


def _dates(
    name: Hashable, dtype: Any, checks: list[Any], options: dict[str, Any]
) -> tuple[Timeline, int] | None:
    """The dates of a column that is bounded by dates on both sides; None for any other."""
    from pandera import dtypes

    days = str(dtype).lower().startswith("date")
    if "bins" in options or not (dtype is None or days or dtypes.is_datetime(dtype)):
        return None
    lows: list[Ends] = []
    highs: list[Ends] = []
    if "bounds" in options:
        lows, highs = ([(end, True)] for end in options["bounds"])
    for check in [] if "bounds" in options else checks:
        for side, end, whole in zip((lows, highs), bounds_of(check), closed(check), strict=True):
            if end is not None:
                side.append((end, whole))
    return date_column(name, dtype, lows, highs, options.get("resolution"))


def _refuse_unread(name: Hashable, kind: Kind, declared: list[Any], options: dict[str, Any]) -> None:
    """Refuse bounds that no release would read: decimals, and numbers of a column that is not numeric."""
    decimals = any(isinstance(end, Decimal) for end in declared)
    numbers = kind == "category" and any(map(is_number, declared)) and not {"bounds", "bins"} & set(options)
    if decimals or numbers:
        why = "are decimals" if decimals else "need a numeric column (it is of kind 'category')"
        raise DeclarationError(
            f"the bounds of column {name!r} {why}.", declaration_hint(name, "float", "bounds")
        )


def _of_text(end: Any, kind: Any) -> Any:
    if not isinstance(end, str):
        return end
    try:
        return kind(end)
    except ValueError:
        return end


def _is_wide(dtype: Any) -> bool:
    """Return whether it is an integer type of Polars without a name in pandera, such as 128 bits."""
    native = getattr(dtype, "type", None)
    kind = native if isinstance(native, type) else type(native)
    return kind.__module__.startswith("polars.") and bool(native.is_integer())  # type: ignore[union-attr]


def _contradiction(name: Hashable, checks: list[Any]) -> DeclarationError:
    texts = ", ".join(check_text(check) for check in checks)
    return DeclarationError(
        f"no value of column {name!r} can meet all of its checks ({texts}).",
        "write checks that have values in common",
    )


def _checked_labels(
    name: Hashable, kind: Kind, dtype: Any, checks: list[Any], options: Mapping[str, Any]
) -> tuple[Any, ...] | None:
    declared: list[list[Any]] = [labels for check in checks if (labels := allowed(check)) is not None]
    if kind == "boolean":
        declared.append([False, True])
    elif (categories := getattr(dtype, "categories", None)) is not None:
        declared.append(list(categories))
    if not declared:
        return None
    labels = common_labels(declared, checks, () if kind == "boolean" else options.get("missing", ()))
    if not labels:
        raise _contradiction(name, checks)
    if kind == "boolean":
        return tuple(bool(label) for label in labels)
    return tuple(labels)


def _numeric(
    name: Hashable, kind: Kind, checks: list[Any], options: dict[str, Any]
) -> tuple[Interval, tuple[Any, ...] | None]:
    """The bounds and labels of a numeric column: the metadata, else all checks intersected."""
    whole = kind == "integer"
    if "bounds" in options:
        interval = _pair(name, options["bounds"])
        interval = interval.whole() if whole else interval
        if interval.empty:
            raise DeclarationError(
                f'"bounds" of the integer column {name!r} hold no integer (got {options["bounds"]!r}).'
            )
    else:
        interval = _checked_bounds(name, whole, checks)
    if "categories" in options:
        categories = options["categories"]
        if "bounds" in options or not all(map(is_number, categories)) or not categories:
            return interval, categories
        return Interval.around(categories), categories
    declared = [labels for check in checks if (labels := allowed(check)) is not None]
    if not declared:
        return interval, None
    labels = [
        label
        for label in common_labels(declared, checks, options.get("missing", ()))
        if is_number(label) and label in interval and (not whole or label == math.floor(label))
    ]
    if not labels:
        raise _contradiction(name, checks)
    return interval if "bounds" in options else Interval.around(labels), tuple(labels)


def _pair(name: Hashable, bounds: Any) -> Interval:
    ends = tuple(itertools.islice(bounds, 3)) if is_list(bounds) else ()
    if len(ends) != 2:
        raise DeclarationError(
            f'"bounds" of column {name!r} must be a pair of numbers (got {got(bounds)}).',
            'metadata={"dp": {"bounds": [LOWER, UPPER]}}',
        )
    for bound in ends:
        if not is_number(bound) or not finite(bound):
            raise DeclarationError(f'"bounds" of column {name!r} must be finite numbers (got {got(bound)}).')
    interval = Interval(*ends)
    if interval.empty:
        raise DeclarationError(
            f'the lower of the "bounds" of column {name!r} must be below the upper (got {got(bounds)}).',
            'metadata={"dp": {"bounds": [LOWER, UPPER]}}',
        )
    return interval


def _checked_bounds(name: Hashable, whole: bool, checks: list[Any]) -> Interval:
    """The intersection of the bounds of all checks, with its ends."""
    # made whole first: NumPy compares large integers with floats as doubles
    intervals = [stated(check).whole() if whole else stated(check) for check in checks]
    interval = LINE.intersect(*intervals)
    if interval.empty:
        raise _contradiction(name, checks)
    return interval.closed()


# ---------------------------------------------------------------- beyond the domain


def unchecked(schema: Schema) -> tuple[str, ...]:
    """Return checks and changes of the schema beyond its domain, which need pandera to run.

    Frames of other engines than pandas are checked against the domain alone. The result lists, each with the
    place of its declaration: checks that bound or label no declared column (functions, patterns, checks by
    group, checks of other columns, of the index or of the whole frame), checks that ``metadata`` overrides by
    something wider, uniqueness, ``strict``, ``ordered``, ``add_missing_columns``, ``coerce`` and defaults. It
    omits checks that only warn; dtypes, except their kind; an open end of a float column, which the domain
    closes; and the presence, dtype and nulls of columns that are never released.

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
        for check in _of_part(column, declared, typed=(schema.dtype or column.dtype) is not None):
            yield f"column {name!r}: {check}"


def _of_index(schema: Any) -> Iterator[str]:
    index = schema.index
    if index is None:
        return
    levels = getattr(index, "indexes", None)
    for level in [index] if levels is None else levels:
        for check in _of_part(level, None, typed=level.dtype is not None):
            yield f"index: {check}" if level.name is None else f"index {level.name!r}: {check}"
    if levels is not None:
        for option in ("unique", "strict", "coerce"):
            if value := getattr(index, option, None):
                yield f"index: {option}={value!r}"


def _of_part(part: Any, declared: Column | None, *, typed: bool) -> Iterator[str]:
    """Yield the checks of a column or index beyond its declaration; None where it is not declared."""
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
    """Return whether every value of the declared column meets the check, except an open end itself."""
    if column.nullable and not check.ignore_na:
        return False
    if column.timeline is not None:
        return implied_by_dates(check, column)
    if (interval := stated(check)) != LINE:
        return column.hull.within(interval.closed())
    labels = set(column.categories or ())
    if barred := excluded(check):
        return bool(labels) and labels.isdisjoint(barred)
    return bool(labels) and labels <= set(allowed(check) or ())
