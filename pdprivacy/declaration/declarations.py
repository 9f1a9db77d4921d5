"""Declarations of pandera schemas, by the names and statistics of their checks; the same for every engine.

The module of the class of a schema tells its engine, so that reading a schema imports no engine but its own.
"""

from __future__ import annotations

import datetime
import inspect
import math
import re
import typing
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd

from pdprivacy.checks import finite, is_number
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.declaration.intervals import LINE, Interval
from pdprivacy.declaration.nullable import with_nulls_for_codes
from pdprivacy.declaration.timeline import DATE_UNITS, Timeline, TimeUnit, nanoseconds, timestamp, zone_of
from pdprivacy.errors import DeclarationError, ParameterError, PrivacyError, got

if TYPE_CHECKING:
    from pandera.api.dataframe.container import DataFrameSchema
    from pandera.api.dataframe.model import DataFrameModel


Schema: TypeAlias = "DataFrameSchema[Any] | type[DataFrameModel[Any, Any]] | Domain"

_ENGINES = {"pandas": "pandas", "polars": "Polars", "pyspark": "PySpark"}
KEYS = ("role", "bins", "bounds", "categories", "resolution", "missing", "labels")
"""The keys of ``metadata={"dp": {...}}``."""
AN_EXAMPLE = (
    "import pandera.pandas as pa\n"
    '      schema = pa.DataFrameSchema({"age": pa.Column(int, pa.Check.in_range(18, 65), '
    'metadata={"dp": {}})})'
)
"""Code that makes a schema."""


def engine_of(schema: Any) -> str:
    """The part of pandera that a schema or model is of: ``"pandas"``, ``"polars"`` or ``"pyspark"``.

    Raises
    ------
    ParameterError : not a schema, or one of another engine.
    """
    model = inspect.isclass(schema)
    kind = schema if model else type(schema)
    of_pandera = [base.__module__ for base in kind.__mro__ if base.__module__.startswith("pandera.")]
    named = {part for module in of_pandera for part in module.split(".")}
    for engine in _ENGINES:
        if engine in named:
            part = import_module(f"pandera.{engine}")
            if issubclass(kind, part.DataFrameModel if model else part.DataFrameSchema):
                return engine
    name = f"{kind.__module__}.{kind.__name__}" if kind.__module__.startswith("pandera.") else kind.__name__
    raise ParameterError(
        "'schema' must be a pandera DataFrameSchema or DataFrameModel class, of pandera.pandas, "
        f"pandera.polars or pandera.pyspark, or a Domain (got {name}).",
        AN_EXAMPLE,
    )


def refuse_other_engines(schema: Any) -> None:
    """Refuse a schema that pandera cannot run on a pandas frame.

    Raises
    ------
    ParameterError : not a schema, or one of Polars or PySpark.
    """
    engine = engine_of(schema)
    if engine != "pandas":
        raise ParameterError(
            f"a pandera.{engine} schema validates {_ENGINES[engine]} frames; "
            "a pandas frame needs a pandera.pandas schema.",
            "write the schema with 'import pandera.pandas as pa', or pass pdprivacy.read_schema(schema): "
            "its declared columns alone are checked then",
        )


def opened(schema: Any) -> Any:
    """The pandera ``DataFrameSchema`` of a schema or model; nullable where missing-value codes are declared.

    Raises
    ------
    ParameterError : as `engine_of`.
    DeclarationError : a model that pandera cannot read.
    """
    engine_of(schema)
    if not inspect.isclass(schema):
        return with_nulls_for_codes(schema)
    model: Any = schema
    _refuse_literals(model)
    try:
        return with_nulls_for_codes(model.to_schema())
    except Exception as error:
        raise DeclarationError(f"pandera cannot read the model {model.__name__!r}: {error}") from error


def _refuse_literals(model: type[Any]) -> None:
    """Refuse ``Literal`` annotations.

    pandera refuses ``Literal[...]`` and takes the first label of ``Series[Literal[...]]`` for a dtype.
    """
    try:
        annotations = typing.get_type_hints(model, include_extras=True)
    except Exception:  # only pandera can resolve the name; its result is read instead
        return
    for name, annotation in annotations.items():
        if labels := _literal(annotation):
            raise DeclarationError(
                f"pandera cannot check the annotation Literal of field {name!r}.",
                f'{name}: {type(labels[0]).__name__} = pa.Field(isin={labels!r}, metadata={{"dp": {{}}}})',
            )


def _literal(annotation: Any) -> list[Any]:
    """The labels of the first ``Literal`` anywhere in an annotation."""
    parts = typing.get_args(annotation)
    if typing.get_origin(annotation) is Literal:
        return list(parts)
    return next((labels for part in parts if (labels := _literal(part))), [])


# ---------------------------------------------------------------- blanks


_WRITTEN = {
    "greater_than_or_equal_to": "pa.Check.ge(...)",
    "greater_than": "pa.Check.gt(...)",
    "less_than_or_equal_to": "pa.Check.le(...)",
    "less_than": "pa.Check.lt(...)",
    "in_range": "pa.Check.in_range(..., ...)",
    "isin": "pa.Check.isin([...])",
    "equal_to": "pa.Check.eq(...)",
}


def refuse_blanks(schema: Any) -> None:
    """Refuse a schema with a blank in any column, released or not: pandera could not run it.

    Raises DeclarationError, which names the columns and says what to write in the first of them.
    """
    blank_columns = {name: blanks for name, column in schema.columns.items() if (blanks := _blanks(column))}
    if not blank_columns:
        return
    name, blanks = next(iter(blank_columns.items()))
    others = ", ".join(repr(other) for other in blank_columns if other != name)
    raise DeclarationError(
        f"column {name!r} is not filled in yet ({', '.join(blanks)}){others and f'; nor are {others}'}.",
        f"{_instead(name, blanks, schema.columns[name].dtype)}: what everybody may know without the data; "
        "or delete the line",
    )


def _blanks(column: Any) -> list[str]:
    """Return the blanks of a column declaration, as they are written there."""
    blanks = [
        _WRITTEN.get(check.name, f"a check {check.name!r}")
        for check in column.checks
        if any(map(_blank, (getattr(check, "statistics", None) or {}).values()))
    ]
    options = (column.metadata or {}).get("dp")
    if isinstance(options, Mapping):
        blanks += [f'"{key}" of metadata' for key, value in options.items() if _blank(value)]
    return blanks


def _blank(value: Any) -> bool:
    listed = isinstance(value, list | tuple | set | frozenset)
    return value is ... or (listed and any(item is ... for item in value))


def _instead(name: Hashable, blanks: list[str], dtype: Any) -> str:
    first = blanks[0]
    if "isin" in first or "eq(" in first or '"categories"' in first:
        written = '"categories": ["no", "yes"]' if first.startswith('"') else 'pa.Check.isin(["no", "yes"])'
        return f"write all labels that {name!r} can hold, as in {written}"
    if '"role"' in first:
        return 'write "role": "quasi_identifier" or "sensitive", or leave the role out'
    if '"bins"' in first:
        return f'write the edges of the cells of {name!r}, as in "bins": [0, 18, 65, 120]'
    if "datetime" in str(dtype):
        written = 'pa.Check.ge(pd.Timestamp("2020-01-01")), pa.Check.le(pd.Timestamp("2030-12-31"))'
        return f"write the earliest and the latest date that {name!r} can have, as in {written}"
    written = '"bounds": [0, 120]' if first.startswith('"') else "pa.Check.ge(0), pa.Check.le(120)"
    return f"write the lowest and the highest value that {name!r} can have, as in {written}"


# ---------------------------------------------------------------- built-in checks


def check_text(check: Any, *, values: bool = True) -> str:
    """Return a check as its declaration writes it; without ``values`` only its name."""
    if isinstance(check, str):
        public = re.fullmatch(r"[a-z_]+|(?:coerce_)?dtype\(.*\)|field_name\(.*\)", check)
        return check if public else "validation"
    name = check.name if isinstance(check.name, str) and check.name.isidentifier() else None
    statistics = getattr(check, "statistics", None) or {}
    if name and statistics and values:
        shown = [
            in_order(value) if isinstance(value, set | frozenset) else value
            for key, value in statistics.items()
            if value is not None and not (key in ("include_min", "include_max") and value)
        ]
        return f"{name}({', '.join(map(repr, shown))})"
    return name or (check.error if isinstance(check.error, str) else "a check without a name")


def built_in(check: Any) -> str | None:
    """Return the name of the built-in check that every cell has to meet; None for any other check.

    A check that only warns, or that looks at groups, binds no cell. The function of a check tells whether
    it is built in; its ``name`` and ``statistics`` may be anything.
    """
    from pandera.api.function_dispatch import Dispatcher

    function = getattr(check, "_check_fn", None)
    if check.raise_warning or check.groupby is not None or not isinstance(function, Dispatcher):
        return None
    return str(function.__name__)


def stated(check: Any) -> Interval:
    """The interval of numbers that a built-in check declares; infinite ends declare nothing."""
    low, high = (end if is_number(end) and finite(end) else None for end in bounds_of(check))
    closed_below, closed_above = closed(check)
    interval = Interval.between(low, high)
    open_lower, open_upper = low is not None and not closed_below, high is not None and not closed_above
    return replace(interval, open_lower=open_lower, open_upper=open_upper)


def closed(check: Any) -> tuple[bool, bool]:
    """Return whether the lower and the upper end that a built-in check names belong to the interval."""
    statistics, name = check.statistics or {}, built_in(check)
    below = name != "greater_than" and bool(statistics.get("include_min", True))
    above = name != "less_than" and bool(statistics.get("include_max", True))
    return below, above


BOUNDS = {"in_range", "greater_than_or_equal_to", "greater_than", "less_than_or_equal_to", "less_than"}


def bounds_of(check: Any) -> tuple[Any, Any]:
    """Return the lower and the upper end of a built-in check, of any type; None where it has none."""
    statistics = (check.statistics or {}) if built_in(check) in BOUNDS else {}
    return statistics.get("min_value"), statistics.get("max_value")


def implied_by_dates(check: Any, column: Column) -> bool:
    """Return whether a check is a bound that every date of a column meets, except an open end itself.

    Dates and ends are rounded down to the resolution of the column.
    """
    bounds = bounds_of(check)
    if column.timeline is None or all(end is None for end in bounds):
        return False
    if column.nullable and not check.ignore_na:
        return False
    low, high = (None if end is None else column.timeline.position(end) for end in bounds)
    # an open end excludes its own unit
    interval = Interval.between(None if low is None else math.floor(low), high)
    return column.interval.within(replace(interval, open_upper=not closed(check)[1]).whole())


def allowed(check: Any) -> list[Any] | None:
    """The labels that ``isin`` or ``eq`` declares, in order and without nulls; else None."""
    if built_in(check) == "isin":
        return [value for value in in_order(check.statistics["allowed_values"]) if not pd.isna(value)]
    return [check.statistics["value"]] if built_in(check) == "equal_to" else None


def excluded(check: Any) -> list[Any]:
    """The labels that ``notin`` or ``ne`` excludes, without nulls; empty for any other check."""
    if built_in(check) == "notin":
        return [value for value in in_order(check.statistics["forbidden_values"]) if not pd.isna(value)]
    return [check.statistics["value"]] if built_in(check) == "not_equal_to" else []


def common_labels(lists: Sequence[Sequence[Any]], checks: Sequence[Any], missing: Iterable[Any]) -> list[Any]:
    """The labels that are in all lists, are no missing-value code and that no check excludes.

    They are in the order of the first list.
    """
    barred = [*missing, *(value for check in checks for value in excluded(check))]
    return [label for label in lists[0] if all(label in other for other in lists) and label not in barred]


def in_order(values: Iterable[Any]) -> list[Any]:
    """Return the values as declared; those of a set, which has no order, sorted by type name and text."""
    if isinstance(values, set | frozenset):
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))
    return list(dict.fromkeys(values))


# ---------------------------------------------------------------- bounds that are dates


Ends: TypeAlias = tuple[Any, bool]
"""A bound of any type, and whether it belongs to the interval."""

SPANS = {
    "pandas": "df[{name}] = df[{name}] / pd.Timedelta(days=1)",
    "polars": "df = df.with_columns(pl.col({name}).dt.total_microseconds() / 86_400_000_000)",
    "pyspark": 'df = df.withColumn({name}, F.col({name}).cast("long") / 86_400)',
}
"""Code that converts a column of durations to numbers of days, by engine."""


def is_date(value: object) -> bool:
    """Return whether it is a date, a time or a duration.

    >>> is_date(pd.Timestamp("2020-01-01")), is_date(2020)
    (True, False)
    """
    dates = datetime.date | datetime.time | datetime.timedelta | np.datetime64 | np.timedelta64 | pd.Period
    return isinstance(value, dates)


def date_column(
    name: Hashable, dtype: Any, lows: Sequence[Ends], highs: Sequence[Ends], resolution: Any
) -> tuple[Timeline, int] | None:
    """The dates of a column, and the number of the last one; None where it has no such bounds.

    Parameters
    ----------
    lows, highs : the declared ends, with and without time zone.
    resolution : the declared unit of time; None for the coarsest of seconds, ms, us and ns that tells the
        bounds, or for days where the dtype or the bounds are days.

    Raises
    ------
    DeclarationError : bounds with a time zone beside some without, or bounds in the wrong order.
    """
    ends: list[list[tuple[Any, bool]]] = [
        [(timestamp(value), closed) for value, closed in side] for side in (lows, highs)
    ]
    if not all(ends) or any(instant is None for side in ends for instant, _ in side):
        return None
    zone = _zone(name, dtype, [instant for side in ends for instant, _ in side])
    lowest = [Interval(lower=nanoseconds(instant)) for instant, _ in ends[0]]
    highest = [Interval(upper=nanoseconds(instant), open_upper=not closed) for instant, closed in ends[1]]
    within = LINE.intersect(*lowest, *highest)
    days = _holds_days(dtype) or (dtype is None and all(_is_day(value) for value, _ in (*lows, *highs)))
    unit = _unit(name, resolution, days, zone, (within.lower, within.upper))
    size = DATE_UNITS[unit]
    last, rest = divmod(within.upper, size)
    last -= rest == 0 and within.open_upper  # an open end that is a whole unit is not reached
    first = within.lower // size
    if first > last:
        raise DeclarationError(f"the bounds of column {name!r} leave no date.", "the lower bound comes first")
    return Timeline(first, unit, zone), last - first


def _zone(name: Hashable, dtype: Any, instants: Sequence[pd.Timestamp]) -> str | None:
    """The time zone of the column: that of its dtype, or of its bounds."""
    native = getattr(dtype, "type", None)
    zones = [getattr(source, key, None) for source in (dtype, native) for key in ("tz", "time_zone")]
    declared = next((zone for zone in zones if zone is not None), None)
    aware = {instant.tzinfo is not None for instant in instants}
    if len(aware) > 1 or (declared is not None and aware == {False}):
        raise DeclarationError(
            f"the bounds of column {name!r} need a time zone, as the column has one.",
            f'pd.Timestamp("2020-01-01", tz="{declared or "UTC"}") for both bounds',
        )
    if aware == {False}:
        return None
    try:
        return zone_of(instants[0] if declared is None else instants[0].tz_convert(declared))
    except PrivacyError as error:
        refusal = DeclarationError(f"column {name!r}: {error.message}", error.hint)
    raise refusal


def _unit(name: Hashable, resolution: Any, days: bool, zone: str | None, ends: tuple[int, int]) -> TimeUnit:
    """The declared unit, or the one that tells the ends."""
    if resolution is not None and resolution not in get_args(TimeUnit):
        units = ", ".join(map(repr, get_args(TimeUnit)))
        raise DeclarationError(
            f'"resolution" of column {name!r} must be one of {units} (got {got(resolution)}).',
            'metadata={"dp": {"resolution": "s"}}',
        )
    if resolution == "D" and zone is not None:
        raise DeclarationError(
            f'"resolution" of column {name!r} must be finer than days, whose lengths differ in a time zone.',
            'metadata={"dp": {"resolution": "h"}}',
        )
    if resolution is not None:
        declared: TimeUnit = resolution
        return declared
    fine: tuple[TimeUnit, ...] = ("s", "ms", "us", "ns")
    telling = (unit for unit in fine if all(end % DATE_UNITS[unit] == 0 for end in ends))
    return "D" if days and zone is None else next(telling)


def _holds_days(dtype: Any) -> bool:
    """Return whether a dtype is of days, in whatever schema."""
    return str(dtype).lower().startswith("date") and not str(dtype).lower().startswith("datetime")


def _is_day(value: Any) -> bool:
    return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)


def refuse_dates(name: Hashable, engine: str, ends: Sequence[Any], *, nullable: bool) -> None:
    """Refuse bounds that are durations, and dates that declare no column of dates.

    Parameters
    ----------
    engine : of the schema, "pandas", "polars" or "pyspark"; the hint is written for its frames.
    ends : the declared lower and upper end, None where there is none.

    Raises
    ------
    DeclarationError : one of them is no number; the hint makes numbers of durations and declares them, or
        declares dates.
    """
    if not any(map(is_date, ends)):
        return
    spans = [_span(end) for end in ends]
    if any(span is not None for span in spans):
        line = SPANS[engine].format(name=repr(name))
        raise DeclarationError(
            f"the bounds of column {name!r} are durations, and only numbers or dates are bounds.",
            f"{line}, declared as {_declared(engine, spans, nullable)}; or cut it to labels.",
        )
    low, high = (
        repr(end) if is_date(end) else text for end, text in zip(ends, ("LOWER", "UPPER"), strict=True)
    )
    raise DeclarationError(
        f"the bounds of column {name!r} are dates: a column of dates has a dtype of dates, a lower and an "
        "upper bound, and no bins.",
        f"pa.Column(DTYPE, pa.Check.in_range({low}, {high}), ...); periods are made by "
        f'private.cut({name!r}, freq="M").',
    )


def _span(end: Any) -> Any:
    """A duration as pandas has it; None for anything else."""
    if not isinstance(end, datetime.timedelta | np.timedelta64):
        return None
    duration: Any = pd.Timedelta(end)
    return None if pd.isna(duration) else duration


def _declared(engine: str, spans: Sequence[Any], nullable: bool) -> str:
    """The declaration of durations as days."""
    ends = zip(spans, ("LOWER", "UPPER"), strict=True)
    texts = [blank if span is None else repr(float(span / pd.Timedelta(days=1))) for span, blank in ends]
    options = ", nullable=True" if nullable else ""
    options += ", coerce=True" if nullable and engine == "pandas" else ""
    return f'pa.Column(float, pa.Check.in_range({", ".join(texts)}){options}, metadata={{"dp": {{}}}})'
