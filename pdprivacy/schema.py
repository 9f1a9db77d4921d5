"""A pandera schema read as a `pdprivacy.domain.Domain`, and run without showing a cell.

Only what is declared is read: dtypes, nullability, the built-in checks by name and
statistics, and ``metadata={"dp": {...}}``. Checks written as functions bound nothing.
pandera is imported when the first schema is read, not with the package.
"""

from __future__ import annotations

import inspect
import math
import numbers
import re
import typing
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pandas as pd

from pdprivacy.domain import Column, Domain, Kind, declaration_hint
from pdprivacy.errors import DeclarationError, InvalidDataError, ParameterError, got

if TYPE_CHECKING:
    from pandera.pandas import DataFrameModel, DataFrameSchema

__all__ = ["Schema", "coerce", "read_schema", "validate"]

Schema: TypeAlias = "DataFrameSchema | type[DataFrameModel] | Domain"

_KEYS = ("role", "bins", "bounds", "categories")
_AN_EXAMPLE = (
    "import pandera.pandas as pa\n"
    '      schema = pa.DataFrameSchema({"age": pa.Column(int, pa.Check.in_range(18, 65), '
    'metadata={"dp": {}})})'
)


def read_schema(schema: Schema) -> Domain:
    """The domain that a pandera schema declares.

    A column belongs to the domain if its ``metadata`` has the key ``"dp"``: a dict, empty or with

    - ``role``: ``"quasi_identifier"``, ``"sensitive"`` or ``"identifier"``,
    - ``bins``: edges of the cells of a numeric column,
    - ``bounds``: the pair of lower and upper bound,
    - ``categories``: the labels in order.

    These override what the checks say. Bounds come from ``in_range``, ``ge``, ``gt``, ``le``, ``lt``,
    ``eq`` and ``isin``, all of them intersected; an open end of an integer column is moved to the next
    integer, an open end of a float column is kept as a closed one (a superset of what is declared).
    Where only bins are given, their outer edges are the bounds. Categories come from ``isin`` and ``eq``,
    from a categorical dtype (an ``Enum`` is one), and are ``(False, True)`` for truth values.

    Accepts a pandera ``DataFrameSchema`` or ``DataFrameModel`` class; a `Domain` is returned as it is.

    Raises
    ------
    ParameterError : not a schema.
    DeclarationError : no column is declared for release, the declaration contradicts itself, or it
        changes rows (parsers, ``drop_invalid_rows``).

    >>> import pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(18, 65), metadata={"dp": {"bins": [18, 30, 65]}})
    >>> read_schema(pa.DataFrameSchema({"age": age}))["age"].bins
    (18.0, 30.0, 65.0)
    """
    if isinstance(schema, Domain):
        return schema
    return _domain(_pandera_schema(schema))


def validate(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The frame as pandera validated (and, where declared, coerced) it; ``frame`` itself is not changed.

    The schema is run whole, whatever pandera's global configuration says, and its warnings are kept
    back, as they may hold cells. A `Domain` checks nothing: its frame is returned as it is.

    Raises
    ------
    ParameterError : not a frame, or not a schema.
    DeclarationError : as `read_schema`.
    InvalidDataError : the frame does not meet the schema. The message names columns and checks; neither
        it nor its cause and context hold a cell, an index label or a count of rows.

    >>> import pandas as pd, pandera.pandas as pa
    >>> schema = pa.DataFrameSchema({"age": pa.Column(int, coerce=True, metadata={"dp": {}})})
    >>> validate(pd.DataFrame({"age": [18.0, 65.0]}), schema)["age"].tolist()
    [18, 65]
    """
    if not isinstance(frame, pd.DataFrame):
        raise ParameterError(f"'frame' must be a pandas DataFrame (got {type(frame).__name__}).")
    if isinstance(schema, Domain):
        return frame
    declared = _pandera_schema(schema)
    domain = _domain(declared)
    _refuse_duplicates(frame, declared)
    _refuse_guesses(frame, declared)
    validated, failures = _run(frame, declared, domain)
    if validated is not None and not failures:
        failures = {
            name: {"column_in_dataframe": _NO_FATE} for name in domain if name not in validated.columns
        }
        if not failures:
            return validated
    # Raised here, outside every except block, so that no pandera error is its context.
    named = "; ".join(f"{where}: {', '.join(what)}" for where, what in _named(failures))
    count = len(failures)
    raise InvalidDataError(
        f"the data does not meet its schema in {count} {'place' if count == 1 else 'places'} ({named}).",
        _hint(failures),
    )


def _hint(failures: _Failures) -> str:
    """What to do about all failures; a fate of faulty records only where it mends every one."""
    hint = "declare what the data may hold"
    mended = frozenset.intersection(*(fates for what in failures.values() for fates in what.values()))
    if mended:
        passed = " or ".join(f'on_invalid="{fate}"' for fate in ("clip", "drop") if fate in mended)
        return f"{hint}, or pass {passed}"
    if "column_in_schema" in failures.get(_WHOLE, ()):
        return f"{hint}, or leave other columns out before df.dp.protect(...)"
    return f"{hint}, or correct the data before df.dp.protect(...)"


def coerce(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The frame with the columns that the schema coerces in their declared dtypes; the rest as it is.

    A column whose cells cannot all be coerced is refused: leaving it as it is would let one record
    decide what becomes of the others.

    Raises
    ------
    ParameterError : not a frame, or not a schema.
    InvalidDataError : names the columns and their dtypes, never a cell.

    >>> import pandas as pd, pandera.pandas as pa
    >>> schema = pa.DataFrameSchema({"age": pa.Column(int, coerce=True, metadata={"dp": {}})})
    >>> coerce(pd.DataFrame({"age": ["18", "65"]}), schema)["age"].tolist()
    [18, 65]
    """
    if not isinstance(frame, pd.DataFrame):
        raise ParameterError(f"'frame' must be a pandas DataFrame (got {type(frame).__name__}).")
    if isinstance(schema, Domain):
        return frame
    declared = _pandera_schema(schema)
    _refuse_duplicates(frame, declared)
    _refuse_guesses(frame, declared)
    coerced = frame.copy(deep=False)
    refused = []
    for name, column in declared.columns.items():
        dtype = declared.dtype or column.dtype
        if dtype is None or not (declared.coerce or column.coerce) or name not in frame.columns:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                coerced[name] = dtype.coerce(frame[name])
        except Exception:
            refused.append(f"column {name!r} to {dtype}")
    if refused:  # outside the except block, so that no error that holds cells is the context
        raise InvalidDataError(
            f"the data cannot be coerced ({'; '.join(refused)}).",
            "correct the cells, or convert the columns before they are protected",
        )
    return coerced


# What failed, by column name, and the fates of faulty records that mend it; the schema as a whole and the
# index have keys of their own.
_WHOLE, _INDEX = object(), object()
_Fates: TypeAlias = frozenset[str]
_Failures: TypeAlias = dict[Any, dict[str, _Fates]]
_NO_FATE: _Fates = frozenset()


def _named(failures: _Failures) -> Iterator[tuple[str, Iterable[str]]]:
    for where, what in failures.items():
        yield "schema" if where is _WHOLE else "index" if where is _INDEX else f"column {where!r}", what


def _run(frame: pd.DataFrame, schema: Any, domain: Domain) -> tuple[pd.DataFrame | None, _Failures]:
    """The validated frame, or what failed; every exception of pandera ends here."""
    from pandera.config import ValidationDepth, config_context
    from pandera.errors import SchemaError, SchemaErrors

    failures: _Failures = {}
    try:
        with (
            warnings.catch_warnings(),
            config_context(validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA),
        ):
            warnings.simplefilter("ignore")
            return schema.validate(frame, lazy=True, inplace=False), failures
    except SchemaErrors as errors:
        for error in errors.schema_errors:
            _record(failures, error, frame, schema, domain)
    except SchemaError as error:
        _record(failures, error, frame, schema, domain)
    except Exception as error:
        failures[_WHOLE] = {f"pandera stopped with {type(error).__name__}": _NO_FATE}
    return None, failures or {_WHOLE: {"pandera refused it": _NO_FATE}}


def _record(failures: _Failures, error: Any, frame: pd.DataFrame, schema: Any, domain: Domain) -> None:
    check = error.check
    if check == "column_in_dataframe":
        for name, column in schema.columns.items():
            if column.required and not column.regex and name not in frame.columns:
                failures.setdefault(name, {})[check] = _NO_FATE
        return
    where: Any = _WHOLE
    part = type(error.schema).__name__
    if part in ("Index", "MultiIndex"):
        where = _INDEX
    elif part != "DataFrameSchema" and error.schema is not None:
        # A column found by a regex has a name that is not declared.
        where = error.schema.name if error.schema.name in schema.columns else _WHOLE
    fates = _mending(error, frame[where], domain[where]) if where in domain else _NO_FATE
    what, text = failures.setdefault(where, {}), _check_text(check)
    what[text] = what.get(text, fates) & fates


def _mending(error: Any, values: pd.Series[Any], column: Column) -> _Fates:
    """Which fates of faulty records mend what failed in a declared column; see `pdprivacy.conform`."""
    check = error.check
    drops: _Fates = frozenset(["drop"])
    if isinstance(check, str):
        # nulls and fractions make a column of integers one of doubles, which it is without them no more
        floating = column.kind == "integer" and str(values.dtype) == "float64" and check == "dtype('int64')"
        return drops if floating or check == "not_nullable" else _NO_FATE
    if check.groupby is not None:
        return _NO_FATE
    low, high = _ends(check)
    if low is not None or high is not None:
        within = (low is None or _reaches(column.lower, low, 1)) and (
            high is None or _reaches(column.upper, high, -1)
        )
        clips = column.categories is None and values.dtype.kind in "iuf"
        return _NO_FATE if not within else drops | {"clip"} if clips else drops
    labels = _allowed(check)
    if labels is None or column.categories is None:
        return _NO_FATE
    same = list(column.categories) == labels
    return drops if same or (check.name == "isin" and set(column.categories) <= set(labels)) else _NO_FATE


def _reaches(bound: float | None, end: _End, sign: int) -> bool:
    """Whether a declared bound is on the right side of the end of a check."""
    value, closed = end
    if bound is None:
        return False
    return sign * bound > sign * value or (closed and bound == value)


def _check_text(check: Any) -> str:
    """What was declared, in words of the declaration."""
    if isinstance(check, str):
        known = re.fullmatch(r"[a-z_]+|(?:coerce_)?dtype\(.*\)|field_name\(.*\)", check)
        return check if known else "validation"
    name = check.name if isinstance(check.name, str) and check.name.isidentifier() else None
    statistics = getattr(check, "statistics", None) or {}
    if name and statistics:
        values = [
            _in_order(value) if isinstance(value, set | frozenset) else value
            for key, value in statistics.items()
            if value is not None and not (key in ("include_min", "include_max") and value)
        ]
        return f"{name}({', '.join(map(repr, values))})"
    return name or (check.error if isinstance(check.error, str) else "a check without a name")


def _refuse_duplicates(frame: pd.DataFrame, schema: Any) -> None:
    if frame.columns.is_unique:
        return
    twice = set(frame.columns[frame.columns.duplicated()])
    declared = [repr(name) for name in schema.columns if name in twice]
    which = f" ({', '.join(declared)})" if declared else ""
    raise InvalidDataError(
        f"a column label appears more than once{which}.", "rename the columns before they are protected"
    )


def _refuse_guesses(frame: pd.DataFrame, schema: Any) -> None:
    """Refuse coercions in which one record decides what becomes of others.

    pandas guesses the format of dates from the first of them, and writes whole numbers as text with
    a decimal point where any of them is null.
    """
    from pandera import dtypes

    guesses = []
    for name, column in schema.columns.items():
        dtype = schema.dtype or column.dtype
        wanted = dtype is not None and (schema.coerce or column.coerce) and "dp" in (column.metadata or {})
        if not wanted or name not in frame.columns:
            continue
        held = frame[name].dtype.kind
        timed = dtypes.is_datetime(dtype) or dtypes.is_timedelta(dtype) or str(dtype).startswith("date")
        texts = not (timed or dtypes.is_numeric(dtype) or dtypes.is_bool(dtype))
        if (timed and held not in "mM") or (texts and held in "iufcmM"):
            guesses.append(f"column {name!r} to {dtype}")
    if guesses:
        raise InvalidDataError(
            f"coercing {'; '.join(guesses)} would look at other records to decide how.",
            "convert before protecting: pd.to_datetime(df[column], format=...), "
            "df[column].map(str) and the like",
        )


def _pandera_schema(schema: Any) -> Any:
    """The pandera ``DataFrameSchema`` of a schema or model."""
    from pandera.pandas import DataFrameModel, DataFrameSchema

    if isinstance(schema, DataFrameSchema):
        return schema
    if not (inspect.isclass(schema) and issubclass(schema, DataFrameModel)):
        got = schema.__name__ if inspect.isclass(schema) else type(schema).__name__
        raise ParameterError(
            "'schema' must be a pandera DataFrameSchema, a pandera DataFrameModel class or a Domain "
            f"(got {got}).",
            _AN_EXAMPLE,
        )
    _refuse_literals(schema)
    try:
        return schema.to_schema()
    except Exception as error:
        raise DeclarationError(f"pandera cannot read the model {schema.__name__!r}: {error}") from error


def _refuse_literals(model: type) -> None:
    """Refuse ``Literal`` annotations.

    pandera refuses ``Literal[...]`` and takes the first label of ``Series[Literal[...]]`` for a dtype.
    """
    try:
        annotations = typing.get_type_hints(model, include_extras=True)
    except Exception:  # a name that only pandera can resolve; what it makes of it is read instead
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


def _domain(schema: Any) -> Domain:
    _refuse_row_changes(schema)
    columns = [
        _column(name, column, schema.dtype)
        for name, column in schema.columns.items()
        if "dp" in (column.metadata or {})
    ]
    if not columns:
        name = next(iter(schema.columns), "age")
        raise DeclarationError("no column is declared for release.", declaration_hint(name, None))
    return Domain(tuple(columns))


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


def _column(name: Hashable, column: Any, schema_dtype: Any) -> Column:
    given = _metadata(name, column)
    if column.regex:
        raise DeclarationError(
            f"column {name!r} is a regular expression, which declares no column by name.",
            "declare each column that is released",
        )
    dtype = schema_dtype or column.dtype
    checks = [check for check in column.checks if check.groupby is None]
    kind = _kind(dtype, checks, given)
    if kind not in ("float", "integer"):
        for key in ("bounds", "bins"):
            if key in given:
                raise DeclarationError(
                    f'"{key}" of column {name!r} needs a numeric column (it is of kind {kind!r}).',
                    declaration_hint(name, "float", "bounds"),
                )
        lower = upper = bins = None
        categories = given.get("categories", _checked_labels(name, kind, dtype, checks))
    else:
        lower, upper, categories = _numeric(name, kind, checks, given)
        bins = given.get("bins")
    return Column(
        name=name,
        kind=kind,
        nullable=column.nullable,
        lower=lower,
        upper=upper,
        categories=categories,
        bins=bins,
        role=given.get("role"),
    )


def _metadata(name: Hashable, column: Any) -> dict[str, Any]:
    given = column.metadata["dp"]
    allowed = ", ".join(f'"{key}"' for key in _KEYS)
    if not isinstance(given, Mapping):
        raise DeclarationError(
            f'metadata "dp" of column {name!r} must be a dict (got {got(given)}).',
            f'metadata={{"dp": {{}}}}, with any of the keys {allowed}',
        )
    if unknown := [key for key in given if key not in _KEYS]:
        raise DeclarationError(
            f'metadata "dp" of column {name!r} has the unknown key {unknown[0]!r} (allowed: {allowed}).'
        )
    options = {key: value for key, value in given.items() if value is not None}
    if "categories" in options:
        labels = options["categories"]
        if isinstance(labels, str) or not isinstance(labels, Iterable) or getattr(labels, "ndim", 1) == 0:
            raise DeclarationError(
                f'"categories" of column {name!r} must be a list of labels (got {got(labels)}).',
                'metadata={"dp": {"categories": [LABEL, ...]}}',
            )
        options["categories"] = tuple(_in_order(labels) if isinstance(labels, set | frozenset) else labels)
    return options


def _kind(dtype: Any, checks: list[Any], given: dict[str, Any]) -> Kind:
    from pandera import dtypes

    if dtype is None:
        bounded = any(_ends(check) != (None, None) for check in checks)
        return "float" if bounded or "bounds" in given or "bins" in given else "category"
    if dtypes.is_bool(dtype):
        return "boolean"
    if dtypes.is_int(dtype):
        return "integer"
    return "float" if dtypes.is_float(dtype) else "category"


_End: TypeAlias = tuple[int | float, bool]  # a bound, and whether it belongs to the interval


def _ends(check: Any) -> tuple[_End | None, _End | None]:
    """The lower and upper end that a built-in check declares; infinite ends declare nothing."""
    statistics = check.statistics or {}
    match check.name:
        case "in_range":
            low = statistics.get("min_value"), bool(statistics.get("include_min", True))
            high = statistics.get("max_value"), bool(statistics.get("include_max", True))
            return _end(*low), _end(*high)
        case "greater_than_or_equal_to" | "greater_than":
            return _end(statistics.get("min_value"), check.name != "greater_than"), None
        case "less_than_or_equal_to" | "less_than":
            return None, _end(statistics.get("max_value"), check.name != "less_than")
    return None, None


def _end(value: Any, closed: bool) -> _End | None:
    return (value, closed) if _is_number(value) and math.isfinite(value) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _allowed(check: Any) -> list[Any] | None:
    """The labels that ``isin`` or ``eq`` declares, in order and without nulls; else None."""
    statistics = check.statistics or {}
    if check.name == "isin" and "allowed_values" in statistics:
        values = statistics["allowed_values"]
        return [value for value in _in_order(values) if not pd.isna(value)]
    if check.name == "equal_to" and "value" in statistics:
        return [statistics["value"]]
    return None


def _in_order(values: Iterable[Any]) -> list[Any]:
    """The values as declared; those of a set, which has no order, by type name and text."""
    if isinstance(values, set | frozenset):
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))
    return list(dict.fromkeys(values))


def _contradiction(name: Hashable, checks: list[Any]) -> DeclarationError:
    texts = ", ".join(_check_text(check) for check in checks)
    return DeclarationError(f"no value of column {name!r} can meet all of its checks ({texts}).")


def _checked_labels(name: Hashable, kind: Kind, dtype: Any, checks: list[Any]) -> tuple[Any, ...] | None:
    declared: list[list[Any]] = [labels for check in checks if (labels := _allowed(check)) is not None]
    if kind == "boolean":
        declared.append([False, True])
    elif (categories := getattr(dtype, "categories", None)) is not None:
        declared.append(list(categories))
    if not declared:
        return None
    labels = [label for label in declared[0] if all(label in other for other in declared[1:])]
    if not labels:
        raise _contradiction(name, checks)
    if kind == "boolean":
        return tuple(bool(label) for label in labels)
    return tuple(labels)


def _numeric(
    name: Hashable, kind: Kind, checks: list[Any], given: dict[str, Any]
) -> tuple[int | float | None, int | float | None, tuple[Any, ...] | None]:
    """The bounds and labels of a numeric column: the metadata, else all checks intersected."""
    whole = kind == "integer"
    lower: int | float | None
    upper: int | float | None
    if "bounds" in given:
        low, high = _pair(name, given["bounds"])
        lower, upper = (math.ceil(low), math.floor(high)) if whole else (low, high)
        if lower > upper:
            raise DeclarationError(
                f'"bounds" of the integer column {name!r} hold no integer (got {given["bounds"]!r}).'
            )
    else:
        lower, upper = _checked_bounds(name, whole, checks)
    if "categories" in given:
        categories = given["categories"]
        if "bounds" in given or not all(map(_is_number, categories)) or not categories:
            return lower, upper, categories
        return min(categories), max(categories), categories
    declared = [labels for check in checks if (labels := _allowed(check)) is not None]
    if not declared:
        return lower, upper, None
    labels = [
        label
        for label in declared[0]
        if _is_number(label)
        and all(label in other for other in declared[1:])
        and (lower is None or label >= lower)
        and (upper is None or label <= upper)
        and (not whole or label == math.floor(label))
    ]
    if not labels:
        raise _contradiction(name, checks)
    if "bounds" not in given:
        lower, upper = min(labels), max(labels)
    return lower, upper, tuple(labels)


def _pair(name: Hashable, bounds: Any) -> tuple[int | float, int | float]:
    single = isinstance(bounds, str) or not hasattr(bounds, "__len__") or getattr(bounds, "ndim", 1) == 0
    if single or len(bounds) != 2:
        raise DeclarationError(
            f'"bounds" of column {name!r} must be a pair of numbers (got {got(bounds)}).',
            'metadata={"dp": {"bounds": [LOWER, UPPER]}}',
        )
    lower, upper = bounds
    for bound in (lower, upper):
        if not _is_number(bound) or not math.isfinite(bound):
            raise DeclarationError(f'"bounds" of column {name!r} must be finite numbers (got {got(bound)}).')
    if lower > upper:
        raise DeclarationError(
            f'the lower of the "bounds" of column {name!r} must be below the upper (got {got(bounds)}).'
        )
    return lower, upper


def _checked_bounds(
    name: Hashable, whole: bool, checks: list[Any]
) -> tuple[int | float | None, int | float | None]:
    lows, highs = [], []
    for check in checks:
        low, high = _ends(check)
        if low is not None:
            lows.append(low)
        if high is not None:
            highs.append(high)
    if whole:
        lows = [(math.ceil(value) if closed else math.floor(value) + 1, True) for value, closed in lows]
        highs = [(math.floor(value) if closed else math.ceil(value) - 1, True) for value, closed in highs]
    # Of equal ends the open one is the narrower.
    lower, has_lower = max(lows, key=lambda end: (end[0], not end[1]), default=(None, True))
    upper, has_upper = min(highs, key=lambda end: (end[0], end[1]), default=(None, True))
    closed = has_lower and has_upper
    if lower is not None and upper is not None and (lower > upper or (lower == upper and not closed)):
        raise _contradiction(name, checks)
    return lower, upper
