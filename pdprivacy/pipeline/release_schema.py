"""The pandera schema of a release: what its numbers and labels are, made of what may be published."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from pdprivacy.checks import is_null
from pdprivacy.errors import MetadataError
from pdprivacy.releases import metadata
from pdprivacy.releases.metadata import Released

if TYPE_CHECKING:
    from pandera.pandas import DataFrameSchema, SeriesSchema


ReleasedSchema: TypeAlias = "DataFrameSchema | SeriesSchema"


def released_schema(released: Released) -> ReleasedSchema:
    """A pandera schema that the release meets: labels in their order, dtypes, and bounds where it has some.

    Another release of the same call meets it, too, unless labels are ordered by the numbers. It is made of
    the release and its metadata alone, so that it may be published with them. Whether the numbers are still
    the released ones, ``released.dp.verify()`` tells.

    Returns a ``DataFrameSchema``, for a Series a ``SeriesSchema``; strict and ordered.

    Raises MetadataError for a frame that is no release, or whose numbers are not the released ones.

    >>> import pandas as pd, pandera.pandas as pa
    >>> import pdprivacy
    >>> flag = pa.DataFrameSchema({"member": pa.Column(bool, metadata={"dp": {}})})
    >>> private = pd.DataFrame({"member": [True, False]}).dp.protect(flag, epsilon=1)
    >>> share = private.dp.proportion("member", epsilon=1, bounding="clamp")
    >>> share.dp.schema().checks[0]
    <Check in_range: in_range(0.0, 1.0)>
    """
    import pandera.pandas as pa

    facts, kept = metadata.read(released), metadata.as_released(released)
    if kept is None:
        raise MetadataError(
            "The numbers are not those that were released, so no schema of the release can be made of them.",
            "take the schema from the released frame before changing it.",
        )
    released = _bare(kept)
    labels = _labels_check(released)
    index, bounds = _index_of(released.index), None if "unit" in facts.error else facts.bounds
    if isinstance(released, pd.Series):
        return pa.SeriesSchema(
            _dtype(released.dtype),
            [*_within(bounds), labels],
            index=index,
            nullable=bool(released.isna().any()),
            name=released.name,  # type: ignore[arg-type]
            title=facts.statistic,
        )
    by_column = [_of_column(bounds, position) for position in range(released.shape[1])]
    parts = [
        pa.Column(_dtype(column.dtype), list(_within(pairs)), nullable=bool(column.isna().any()))
        for (_, column), pairs in zip(released.items(), by_column, strict=True)
    ]
    names = released.columns.tolist()
    if any(map(_has_null, names)):  # pandera has no column without a label
        return pa.DataFrameSchema(
            checks=[labels, _by_place(parts)], index=index, name=facts.statistic, title=facts.statistic
        )
    return pa.DataFrameSchema(
        dict(zip(names, parts, strict=True)),
        [labels],
        index=index,
        strict=True,
        ordered=True,
        name=facts.statistic,
        title=facts.statistic,
    )


def violations(released: Any, schema: ReleasedSchema) -> tuple[str, ...]:
    """Return the names of the parts of a schema that an object does not meet, without any cell."""
    from pandera.config import ValidationDepth, config_context
    from pandera.errors import SchemaError, SchemaErrors

    with (
        warnings.catch_warnings(),
        config_context(validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA),
    ):
        warnings.simplefilter("ignore")
        try:
            schema.validate(_bare(released), lazy=True)
        except SchemaErrors as errors:
            return tuple(dict.fromkeys(error.reason_code.name.lower() for error in errors.schema_errors))
        except (SchemaError, TypeError) as error:
            return (type(error).__name__,)
    return ()


def _dtype(dtype: Any) -> Any:
    """The dtype of a column of the schema: of dates without a time zone pandera takes the unit by itself."""
    from pandera.engines import pandas_engine

    of_pandera: Any = pandas_engine.DateTime
    dates = isinstance(dtype, np.dtype) and dtype.kind == "M"
    return of_pandera(unit=np.datetime_data(dtype)[0]) if dates else dtype


def _bare(released: Any) -> Any:
    """The same without ``attrs``, which pandas would copy at each step."""
    if isinstance(released, pd.Series):
        return pd.Series(released)
    return pd.DataFrame(released) if isinstance(released, pd.DataFrame) else released


def _has_null(name: Any) -> bool:
    """Return whether the name of a column is null, or one of its parts."""
    return any(map(is_null, name)) if isinstance(name, tuple) else is_null(name)


# ---------------------------------------------------------------- labels


def _index_of(axis: pd.Index[Any]) -> Any:
    """The index of a schema: each level with its labels; None where pandera cannot look at them."""
    import pandera.pandas as pa

    levels = []
    if isinstance(axis, pd.MultiIndex) and any(
        level.dtype.kind in "biu" and (codes < 0).any()
        for level, codes in zip(axis.levels, axis.codes, strict=True)
    ):
        return None  # pandera converts such a level to whole numbers, which have no null
    for number, name in enumerate(axis.names):
        level = axis.get_level_values(number)
        allowed = [label for label in dict.fromkeys(level.tolist()) if not is_null(label)]
        nullable = bool(level.isna().any())
        # pandera makes a Series of labels that are objects, with the dtype that pandas infers
        dtype = None if level.dtype == object else level.dtype
        levels.append(pa.Index(dtype, pa.Check.isin(allowed), nullable=nullable, name=name))
    return levels[0] if len(levels) == 1 else pa.MultiIndex(levels)


def _labels_check(released: Released) -> Any:
    """A check of all labels: which ones, in which order, of which dtypes, under which names."""
    import pandera.pandas as pa

    axes = [axis.copy() for axis in released.axes]
    name = released.name if isinstance(released, pd.Series) else None

    def same_labels(other: Released) -> bool:
        named = not isinstance(other, pd.Series) or _alike(other.name, name)
        return named and all(map(_same_axis, other.axes, axes))

    return pa.Check(same_labels, name="same_labels", error="the labels of the release, in their order")


def _same_axis(axis: pd.Index[Any], other: pd.Index[Any]) -> bool:
    if axis.nlevels != other.nlevels or not all(map(_alike, axis.names, other.names)):
        return False
    dtypes = [
        [index.get_level_values(level).dtype for level in range(index.nlevels)] for index in (axis, other)
    ]
    return dtypes[0] == dtypes[1] and bool(axis.equals(other))


def _alike(left: Any, right: Any) -> bool:
    return (type(left) is type(right) and left == right) or (is_null(left) and is_null(right))


def _by_place(parts: list[Any]) -> Any:
    """Return a check of columns by their place, for a column without a label."""
    import pandera.pandas as pa

    def same_columns(frame: pd.DataFrame) -> bool:
        if frame.shape[1] != len(parts):
            return False
        return all(
            column.dtype == part.dtype.type
            and (part.nullable or not column.isna().any())
            and all(bool(check(column).check_passed) for check in part.checks)
            for (_, column), part in zip(frame.items(), parts, strict=True)
        )

    return pa.Check(same_columns, name="same_columns", error="the dtypes and bounds of the release")


# ---------------------------------------------------------------- bounds


def _of_column(bounds: Any, position: int) -> Any:
    """The bounds of a column: one pair for all, or one of each number."""
    if bounds is None or not isinstance(bounds[0], list):
        return bounds
    if not isinstance(bounds[0][0], list):  # the same in all rows
        return bounds[position]
    return [row[position] for row in bounds]


def _within(bounds: Any) -> Iterator[Any]:
    """Yield the checks of the bounds of a column: none, pandera's own, or one number by number."""
    import pandera.pandas as pa

    if bounds is None:
        return
    if isinstance(bounds[0], list):
        lower, upper = (
            np.array([empty if pair[end] is None else pair[end] for pair in bounds], np.float64)
            for end, empty in ((0, -math.inf), (1, math.inf))
        )
        if len({*lower.tolist()}) > 1 or len({*upper.tolist()}) > 1:
            yield _within_each(lower, upper)
            return
        bounds = [None if math.isinf(end) else float(end) for end in (lower[0], upper[0])]
    low, high = bounds
    if low is not None and high is not None:
        yield pa.Check.in_range(low, high)
    elif low is not None:
        yield pa.Check.ge(low)
    elif high is not None:
        yield pa.Check.le(high)


def _within_each(lower: Any, upper: Any) -> Any:
    import pandera.pandas as pa

    def within_bounds(values: pd.Series[Any]) -> bool:
        if len(values) != len(lower):
            return False
        numbers = values.to_numpy(np.float64, na_value=math.nan)
        return bool((np.isnan(numbers) | ((numbers >= lower) & (numbers <= upper))).all())

    error = "each number within its bounds"
    return pa.Check(within_bounds, name="within_bounds", error=error, ignore_na=False)
