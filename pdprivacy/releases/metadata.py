"""Metadata of a released frame: plain JSON in ``attrs["dp"]``, and a typed view of it.

Only what may be published is stored: the mechanism, the cost, the error that the
noise makes, and a fingerprint of the released numbers. The fingerprint matters
because pandas keeps ``attrs`` through almost everything, also through
``released["x"] = raw``: the mark alone proves nothing.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.checks import doubles, one_of
from pdprivacy.core.privacy import loss
from pdprivacy.errors import MetadataError, ParameterError, PrivacyError, short_tracebacks
from pdprivacy.exact import EXACT
from pdprivacy.releases.frame_json import pack
from pdprivacy.releases.interval_frames import interval_of_dates, interval_of_quantiles
from pdprivacy.text import markup
from pdprivacy.text.marks import KEY, MARK
from pdprivacy.text.numbers import printable
from pdprivacy.types import Floats, Mask

Released: TypeAlias = "pd.Series[Any] | pd.DataFrame"

NO_ERROR = "The release metadata does not hold the error of each number ('error')."

NO_BOUNDS = "The release metadata does not hold the bounds of each number."

OPTIONAL = ("unit", "bounding", "constraint", "release_id", "normalize", "calibration", "weights", "original")
"""Fields that hold a text or None."""

SUMS, RISKS = ("total", "spent"), ("by_cells", "by_records")
"""Fields of ``budget`` and of ``dr_ha``."""

PROJECT, MOVED = "project", ("at", "values", "plus_minus", "missed")
"""The bounding by projection, and the fields of ``projection``."""

MATRICES = ("corr", "cov", "pooled_cov")
"""Statistics whose numbers are a symmetric matrix."""

COUNTS = ("count", "value_counts", "histogram", "crosstab")
"""Statistics whose numbers are counts of records."""

WHOLE = 1e-9
"""The part of a range that an interval may lack, by rounding, and be that range."""


@short_tracebacks
@dataclass(frozen=True, slots=True)
class Metadata:
    """A typed view of ``attrs["dp"]``.

    Attributes
    ----------
    statistic, columns : what was released of which columns.
    mechanism : the noise.
    epsilon, delta : the whole cost of the call. For a secret part it is what the whole frame pays; in a plan
        or a group of the part, which are paid for together, it is the loss of the part.
    neighbors : the kind of neighbouring datasets that the cost refers to.
    unit : the column that names the privacy unit of a record; None where each record is a unit.
    lineage : the steps from the raw records to the release, without filters.
    sensitivity, scale : a number, or one per part of the statistic by name.
    split : each part's share of the loss.
    error : ``level``, ``standard_error`` and ``plus_minus`` (half the interval around a released
        number); a number for all, or nested lists in the shape of the values. For a selection: ``level``
        and ``below_best``, how many records the score of what was selected is below the best one at
        most, and of quantiles in order ``below_best_before``, that of the drawn ones; of a number,
        the largest ``step`` between two candidates, and the largest as a part of the
        number, ``relative_step``; of a minimum or maximum also ``rank``, the records from the end, whether
        that was ``cut`` to half of the public ones, and the ``widest`` distance between two candidates; one
        for all, or one per choice; of quantiles with intervals also the ends, ``lower`` and ``upper``, in the
        shape of the values. For weighted sums and means also ``rounding_per_record``
        where the number n of records is private: ``plus_minus`` then leaves out that rounding weights and
        values moves a sum by at most n times as much, a mean by n times as much over the sum of the weights.
        ``all_noise``: how many of the numbers are all noise.
    budget : ``total`` and ``spent`` as [epsilon, delta], after this release; ``accounting`` where it is not
        "basic"; under a cap in rho, [rho, 0] and ``currency`` "rho". ``name``: that of the budget in its
        ledger, empty in memory. ``charge``: the number of the charge that paid for the release, as in
        ``budget.entries``; ``charge_id``: a hash of this charge.
    seeded : whether the noise can be repeated by whoever knows the seed; then nothing is private.
    version : the version of pdprivacy that made the release.
    fingerprint : a hash of the released numbers and labels.
    p, calibration, bounding, constraint : the keywords of the noise and of the bounds of the numbers; None
        where they were not given, and ``bounding`` also where there is nothing to project. With ``bounding``,
        ``error`` holds ``bias`` and ``rmse`` too: as if the statistic were the released number, and under
        ``worst_case`` the largest within the bounds. For sums and shares of bounded numbers they are None,
        and ``note`` says why.
    bounds : [lower, upper] of the numbers where they were bounded, of all, of each, or of each column of a
        table, or None; texts where these are dates. Of quantiles with intervals, the least and the largest
        candidate.
    constraints : with ``constraint`` "linear", the linear constraints as texts; else None. The numbers before
        are kept as those of a projection.
    projection : the numbers that a projection changed: their places ``at`` (from 0, row by row), and their
        ``values`` and ``plus_minus`` before it; ``released.dp.unprojected()`` puts them back. ``missed``: the
        places of those whose interval before lay beyond a limit as a whole. None where it changed nothing. Of
        quantiles, the numbers that sorting moved, as they were drawn, without ``plus_minus``; of those with
        intervals also the ends then, ``lower`` and ``upper``.
    value_bounds : [lower, upper] of the values whose means the numbers are, or None.
    normalize, margins : these arguments of `crosstab`.
    filters : the conditions of ``query`` that the records meet.
    releases : the number of independent releases.
    rows : the number of records where it is public, or None.
    release_id : the id of the release, or None.
    dr_ha : the homogeneity-attack disclosure risk estimated from the released counts, or None.
    weights : the column of the weights that records count by, or None.
    effective_rows : of weighted means and tables, the least effective number of records behind the numbers
        that the released sums of weights and the declared bounds allow; one for all, or one each, or None. Of
        shares of rows or columns, that of the row or column.
    regression : of coefficients, made of the same noisy numbers: ``records``, ``degrees_of_freedom``,
        ``residual_variance``, ``r_squared``, ``ridge``, ``weights``, and ``interval_of``: "population",
        because ``error`` counts the sample and the noise, with a penalty "population, given the regressors"
        of these records, or None
        where ``note`` says why there is no interval; of several releases a list. None of other statistics,
        whose ``error`` is of the noise alone.
    parts : the noisy numbers that the released ones were made of (``noisy``, one per release), and the public
        facts that an interval of another level needs besides (`interval`); None where the other fields tell.
    original : the released labels and numbers as one text, by which numbers that were sorted, selected or
        reshaped are matched: JSON, compressed where it is long; None where a label has no text.
    found : what `ProtectedFrame.use` declares of a release: its ``kind``, "bounds", and details; or None.
    part : of a part that was saved or relabelled: ``of``, the release's fingerprint (censored: its own one);
        ``numbers``, how many the release has; and ``changes``, texts. None of a whole release.

    >>> import pandas as pd, pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=120),))
    >>> private = pdprivacy.protect(pd.DataFrame({"age": [31, 54]}), domain, epsilon=1)
    >>> facts = private.dp.mean("age", epsilon=0.5).dp.metadata
    >>> facts.statistic, facts.epsilon, facts.scale
    ('mean', 0.5, {'count': 4.0, 'sum of age': 240.0})
    """

    statistic: str
    columns: list[str]
    mechanism: str
    epsilon: float
    delta: float
    neighbors: str
    sensitivity: float | dict[str, float]
    scale: float | dict[str, float]
    split: dict[str, float]
    error: dict[str, Any]
    budget: dict[str, Any]
    seeded: bool
    version: str
    fingerprint: str
    p: float | None = None
    calibration: str | None = None
    bounding: str | None = None
    bounds: Any = None
    projection: dict[str, list[Any]] | None = None
    value_bounds: Any = None
    normalize: str | None = None
    margins: bool = False
    filters: list[str] = field(default_factory=list)
    constraint: str | None = None
    constraints: list[str] | None = None
    unit: str | None = None
    lineage: list[str] = field(default_factory=list)
    releases: int = 1
    rows: int | None = None
    release_id: str | None = None
    dr_ha: dict[str, Any] | None = None
    weights: str | None = None
    effective_rows: Any = None
    regression: Any = None
    parts: dict[str, Any] | None = None
    original: str | None = None
    found: dict[str, Any] | None = None
    part: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}

    def error_of_each(self, name: str, shape: tuple[int, ...]) -> Floats:
        """Return an error, such as ``plus_minus``, of each number of this shape; MetadataError without it."""
        try:
            return np.broadcast_to(np.asarray(self.error[name], dtype=np.float64), shape)
        except (KeyError, TypeError, ValueError):
            raise MetadataError(NO_ERROR) from None

    def bounds_of_each(self, name: str, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Return ``bounds`` or ``value_bounds`` of each number of this shape, NaN where there is none."""
        one_of(name, "name", ("bounds", "value_bounds"))
        pairs = self._pairs(name)
        return _of_shape(pairs[..., 0], shape), _of_shape(pairs[..., 1], shape)

    def _pairs(self, name: str) -> Floats:
        """Return the stored bounds, (..., 2)."""
        # those of dates are texts, and selected numbers are never beyond theirs
        stored = None if {"unit", "below_best"} & {*self.error} else getattr(self, name)
        try:
            pairs = np.array(stored or (None, None), np.float64)
        except (TypeError, ValueError):
            raise MetadataError(NO_BOUNDS) from None
        if pairs.shape[-1:] != (2,):
            raise MetadataError(NO_BOUNDS)
        return pairs

    def limits_of_each(self, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Return the least and the largest that each statistic can be, infinite where nothing limits it."""
        if self.normalize is not None:
            return np.zeros(shape), np.ones(shape)
        if self.statistic == "corr":
            return _of_shape(np.array(-1.0), shape), _of_shape(np.array(1.0), shape)
        pairs = self._pairs("bounds" if self.bounding == PROJECT else "value_bounds")
        open_ends = np.where(np.isnan(pairs), [-np.inf, np.inf], pairs)
        return _of_shape(open_ends[..., 0], shape), _of_shape(open_ends[..., 1], shape)

    def ends_of_each(self, values: Floats, half: Floats) -> tuple[Floats, Floats]:
        """Return the ends of the interval of each released number, within the limits.

        The interval of a number beyond a limit is that around the limit, with the same margin of error, so
        that it holds as often and does not state certainty. A projected matrix, or linear constraints, may
        move a number elsewhere: its interval then extends to the number.
        """
        values, half = doubles(values, "'values'"), doubles(half, "'half'")
        if values.shape != half.shape:
            raise ParameterError("'values' and 'half' must have the same shape.")
        low, high = self.limits_of_each(values.shape)
        before, half = values.copy(), half.copy()
        if self.projection is not None:
            at = self.projection["at"]
            before.flat[at], half.flat[at] = self.projection["values"], self.projection["plus_minus"]
        before = np.clip(before, low, high)
        lower, upper = (np.clip(end, low, high) for end in (before - half, before + half))
        if self.statistic not in MATRICES and self.constraints is None:
            return lower, upper
        return np.minimum(lower, values), np.maximum(upper, values)

    def _repr_html_(self) -> str:
        fields = self.to_dict().items()
        pairs = [
            (name, value)
            for name, value in fields
            if name not in ("parts", "original") and value not in (None, [], {})
        ]
        rows = [
            (name, value if isinstance(value, str) else json.dumps(value, default=str))
            for name, value in pairs
        ]
        seeded = [markup.warning("seeded: not private")] if self.seeded is not False else []
        return markup.page(*seeded, markup.table([], rows, caption="Metadata of a release", text={1}))


def _labels(index: pd.Index[Any]) -> str:
    names = ["" if name is None else str(name) for name in index.names]
    cells = [
        [label_text(part) for part in (label if isinstance(label, tuple) else (label,))]
        for label in index.tolist()
    ]
    return json.dumps([names, cells])


def label_text(label: Any) -> str:
    """Return a label as text, empty for a null.

    Whole numbers beside a null may be read from a file as floats.
    """
    if label is None or label is pd.NA or label != label:
        return ""
    return str(int(label) if type(label) is float and label.is_integer() else label)


def _numbers_of_column(column: pd.Series[Any]) -> NDArray[Any]:
    """The numbers of a column in the widest kind that holds them."""
    if column.dtype.kind in "iu" and not column.hasnans:
        values = np.asarray(column.to_numpy())
        beyond = values.dtype.kind == "u" and values.max(initial=0) >= 2**63
        return values.astype("<u8" if beyond else "<i8")
    plain = np.array(column.to_numpy(dtype=np.float64, na_value=np.nan), dtype="<f8")
    plain[np.isnan(plain)] = np.nan  # one bit pattern
    return plain


def _are_floats(column: NDArray[Any]) -> bool:
    """Return whether floats hold all these numbers."""
    return column.dtype.kind == "f" or not ((column > EXACT) | (column < -EXACT)).any()


def _columns(released: Released) -> list[pd.Series[Any]]:
    if isinstance(released, pd.Series):
        return [released]
    return [released.iloc[:, position] for position in range(released.shape[1])]


def _numbers_in_one_array(released: Released) -> NDArray[Any] | None:
    """All numbers at once, where numpy holds them in one kind; None else."""
    dtypes = [released.dtype] if isinstance(released, pd.Series) else list(released.dtypes)
    kinds = {dtype.kind if isinstance(dtype, np.dtype) else "" for dtype in dtypes}
    if kinds == {"i"}:
        return np.ascontiguousarray(released.to_numpy(), dtype="<i8")
    if kinds == {"f"}:
        values = np.array(released.to_numpy(), dtype="<f8", order="C")
        values[np.isnan(values)] = np.nan  # one bit pattern
        return values
    return None


def _of_shape(values: Floats, shape: tuple[int, ...]) -> Floats:
    """Return bounds of each number of this shape, without copies; MetadataError where they do not fit it."""
    try:
        return np.broadcast_to(values, shape)
    except (TypeError, ValueError, ArithmeticError):  # the last of a decimal in place of a shape
        raise MetadataError(NO_BOUNDS) from None


def fingerprint(released: Released) -> str:
    """Return a hash of the numbers, their order and their labels; the same after a Parquet round trip."""
    digest = blake2b(digest_size=16)
    whole = _numbers_in_one_array(released)
    # by position: some versions of pandas do not find a column whose label is null
    columns = [] if whole is not None else _columns(released)
    if whole is not None:
        digest.update(whole.dtype.str.encode() + whole.tobytes())
    elif all(column.dtype.kind in "biuf" for column in columns):
        plain = [_numbers_of_column(column) for column in columns]
        kinds = {values.dtype.str for values in plain}
        if len(kinds) > 1 and all(map(_are_floats, plain)):
            plain, kinds = [values.astype("<f8") for values in plain], {"<f8"}
        if len(kinds) == 1:
            digest.update(kinds.pop().encode() + np.stack(plain, axis=-1).tobytes())
        else:  # no kind of number holds all of them
            for values in plain:
                digest.update(values.dtype.str.encode() + values.tobytes())
    else:
        digest.update(b"not numbers")
        for column in columns:
            digest.update(_labels(pd.Index(column.tolist(), dtype=object, tupleize_cols=False)).encode())
    axes = released.axes if isinstance(released, pd.DataFrame) else [released.index]
    for axis in axes:
        digest.update(_labels(axis).encode())
    return digest.hexdigest()


def attach(released: Released, metadata: Mapping[str, Any]) -> None:
    """Write ``metadata`` with the fingerprint and the text of the numbers into ``attrs["dp"]``.

    The error says how many of the numbers are all noise, where it states that of each number.
    """
    stored = {**metadata, "fingerprint": fingerprint(released), "original": pack(released)}
    released.attrs[KEY] = stored
    dtypes = [released.dtype] if isinstance(released, pd.Series) else released.dtypes
    if {"plus_minus", "lower"} & {*stored["error"]} and all(dtype.kind in "iufM" for dtype in dtypes):
        with suppress(MetadataError):
            hidden = int(all_noise(released, read(released)).sum())
            stored["error"] = {**stored["error"], "all_noise": hidden}


def no_risk(reason: str) -> dict[str, Any]:
    """Return the record of a disclosure risk that is not known."""
    known = {"measure": "expected", "source": "released counts"}
    return {**known, "by_cells": None, "by_records": None, "reason": reason}


def all_noise(released: Released, facts: Metadata) -> Mask:
    """Return a mask of the numbers of an unchanged release of which the noise leaves nothing known.

    A number within limits is all noise where its interval is all that is between them, such as the mean of
    a group whose count is within its own margin of error. A count is all noise where it is at most its margin
    of error (`unknown`).

    >>> import pandas as pd, pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=120),))
    >>> private = pdprivacy.protect(pd.DataFrame({"age": [31, 54]}), domain, epsilon=1)
    >>> mean = private.dp.mean("age", epsilon=0.1, rng=1)
    >>> all_noise(mean, mean.dp.metadata), mean.dp.metadata.error["all_noise"]
    (array([ True]), 1)
    """
    return unknown(released, facts)[0]


def unknown(released: Released, facts: Metadata) -> tuple[Mask, Floats, Floats]:
    """Return a mask of the numbers that are all noise, and the least and the largest that each may be.

    A count that is all noise may be from 0 to its margin of error above it; one without a margin is none. The
    limits of dates are in seconds since 1970.
    """
    if {"lower", "upper"} <= {*facts.error}:
        return _whole_ranges(released, facts)
    half = facts.error_of_each("plus_minus", released.shape)
    if "unit" in facts.error:
        values, low, high = _dates_in_seconds(released, facts)
        lower, upper = values - half, values + half
    else:
        values = released.to_numpy(np.float64, na_value=np.nan)
        (low, high), (lower, upper) = facts.limits_of_each(values.shape), facts.ends_of_each(values, half)
    with np.errstate(invalid="ignore"):
        missing = WHOLE * (high - low)
        whole = np.isfinite(missing) & (missing > 0) & (lower - low <= missing) & (high - upper <= missing)
        if np.any(counts := are_counts(released, facts)):
            hidden = counts & (values <= half) & (half > 0)
            low, high = np.where(hidden, 0.0, low), np.where(hidden, np.maximum(values, 0) + half, high)
            whole |= hidden
    return whole, low, high


def _whole_ranges(released: Released, facts: Metadata) -> tuple[Mask, Floats, Floats]:
    """`unknown` of quantiles with selected intervals, which may be the whole range of the candidates."""
    shape = released.shape
    pairs = np.full((*shape, 2), np.nan)
    try:
        if facts.bounds is not None:  # which releases of earlier versions do not have
            pairs = np.broadcast_to(_in_seconds(facts.bounds), pairs.shape)
        lower, upper = (_in_seconds(facts.error[name]).reshape(shape) for name in ("lower", "upper"))
    except (TypeError, ValueError):
        raise MetadataError(NO_BOUNDS) from None
    low, high = pairs[..., 0], pairs[..., 1]
    return (lower <= low) & (high <= upper) & (low < high), low, high


def are_counts(released: Released, facts: Metadata) -> Any:
    """Return whether the numbers are counts, all or each, for the shape of the release."""
    if facts.statistic in (*COUNTS, "nunique"):
        return facts.normalize is None
    if facts.statistic not in ("agg", "describe"):
        return False
    # the statistics are the labels of the rows, which have no name, or of the columns of groups
    if released.index.nlevels > 1 or released.index.name is not None:
        return (
            released.columns.get_level_values(-1) == "count" if isinstance(released, pd.DataFrame) else False
        )
    rows = np.asarray(released.index == "count")
    return rows.reshape(-1, *[1] * (released.ndim - 1))


def _dates_in_seconds(released: Released, facts: Metadata) -> tuple[Floats, Floats, Floats]:
    """Return dates and their bounds in seconds, NaN for NaT and without bounds."""
    values = _in_seconds(released)
    if facts.bounds is None:
        return values, np.full_like(values, np.nan), np.full_like(values, np.nan)
    try:
        pairs = np.broadcast_to(_in_seconds(facts.bounds), (*released.shape, 2))
    except (TypeError, ValueError):
        raise MetadataError(NO_BOUNDS) from None
    return values, pairs[..., 0], pairs[..., 1]


def _in_seconds(dates: Any) -> Floats:
    """Return dates and texts of dates in seconds since 1970, NaN for NaT; numbers as they are."""
    cells = np.asarray(dates, dtype=object)
    if all(isinstance(cell, int | float) for cell in cells.flat):
        return cells.astype(np.float64)
    seconds = [pd.Timestamp(cell).timestamp() if pd.notna(cell) else np.nan for cell in cells.flat]
    return np.array(seconds, np.float64).reshape(cells.shape)


def read(released: Released) -> Metadata:
    """Return the metadata of a released frame.

    Raises
    ------
    MetadataError : the frame carries none, or what it carries is not a release's.
    """
    stored = getattr(released, "attrs", {}).get(KEY)  # protected frames have none
    if not isinstance(stored, Mapping) or "statistic" not in stored:
        raise MetadataError(
            "This frame carries no release metadata.",
            "results of df.dp.protect(...).dp.mean(...) and the like carry it in attrs['dp']; "
            "pd.DataFrame(result), unstack of a Series, pd.concat of two releases and to_csv lose it; "
            "result.dp.save(path) and result.to_frame().unstack() keep it; "
            "pd.concat([first.dp.to_frame(), second.dp.to_frame()]) keeps the errors.",
        )
    fields = Metadata.__dataclass_fields__
    missing = [
        name
        for name, spec in fields.items()
        if name not in stored and spec.default is MISSING and spec.default_factory is MISSING
    ]
    if missing:
        raise MetadataError(f"The release metadata lacks {', '.join(map(repr, missing))}.")
    values: dict[str, Any] = {name: stored[name] for name in fields if name in stored}
    return Metadata(**values)


def check(facts: Metadata) -> None:
    """Refuse metadata whose values are not of the kinds that a release has.

    Raises
    ------
    MetadataError : a field of another kind, or no privacy loss.
    """
    known = {
        **{name: isinstance(getattr(facts, name), str) for name in ("statistic", "mechanism", "version")},
        **{name: _are_texts(getattr(facts, name)) for name in ("columns", "lineage", "filters")},
        **{name: _is_or_none(getattr(facts, name), str) for name in OPTIONAL},
        "rows": _is_or_none(facts.rows, int),
        "p": facts.p is None or _is_number(facts.p),
        "epsilon": _is_number(facts.epsilon, 0, sys.float_info.max) and facts.epsilon > 0,
        "delta": _is_number(facts.delta, 0) and facts.delta < 1,
        "neighbors": facts.neighbors in ("add_remove", "replace_one"),
        "seeded": isinstance(facts.seeded, bool),
        "error": isinstance(facts.error, dict),
        "budget": isinstance(facts.budget, dict)
        and all(_is_pair(facts.budget.get(part)) for part in SUMS)
        and _is_or_none(facts.budget.get("charge"), int),
        "releases": _is_number(facts.releases, 1) and isinstance(facts.releases, int),
        "dr_ha": facts.dr_ha is None or _is_risk(facts.dr_ha),
        "found": facts.found is None or (isinstance(facts.found, dict) and "kind" in facts.found),
        "constraints": facts.constraints is None or _are_texts(facts.constraints),
        "projection": facts.projection is None or _is_projection(facts.projection),
        "parts": facts.parts is None or isinstance(facts.parts, dict),
        "part": facts.part is None or _is_part(facts.part),
        "regression": facts.regression is None
        or all(isinstance(part, dict) for part in np.atleast_1d(facts.regression).tolist()),
    }
    wrong = [name for name, right in known.items() if not right]
    if wrong:
        raise MetadataError(f"The release metadata is not that of a release: {', '.join(map(repr, wrong))}.")
    try:
        loss(facts.epsilon, facts.delta)
    except PrivacyError:
        raise MetadataError("The release metadata states no privacy loss.") from None


def _is_number(value: Any, low: float = -math.inf, high: float = math.inf) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def _is_share(value: Any) -> bool:
    return _is_number(value, 0, 1 + 1e-9)


def _is_risk(value: Any) -> bool:
    """Return whether a value is an estimated risk, or the reason why there is none."""
    if not isinstance(value, dict):
        return False
    if "reason" in value:
        return isinstance(value["reason"], str) and all(value.get(part) is None for part in RISKS)
    return all(_is_share(value.get(part)) for part in RISKS)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_or_none(value: Any, kind: type) -> bool:
    return value is None or (isinstance(value, kind) and not isinstance(value, bool))


def _is_projection(value: Any) -> bool:
    if not isinstance(value, dict) or not all(isinstance(value.get(part), list) for part in MOVED):
        return False
    at, missed = ([_is_number(position, 0) for position in value[part]] for part in ("at", "missed"))
    return all(at) and all(missed) and len(at) == len(value["values"]) == len(value["plus_minus"])


def _is_part(value: Any) -> bool:
    if not isinstance(value, dict) or not _are_texts(value.get("changes")):
        return False
    return isinstance(value.get("of"), str) and _is_number(value.get("numbers"), 0)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(_is_number(number, 0) for number in value)


def cell_labels(axes: Sequence[pd.Index[Any]]) -> pd.Index[Any]:
    """Return the label of each cell of a released object, row by row: of its row, then of its column."""
    if len(axes) == 1:
        return axes[0]
    positions = np.indices(tuple(map(len, axes))).reshape(len(axes), -1)
    levels = [
        axis.get_level_values(level).take(position)
        for axis, position in zip(axes, positions, strict=True)
        for level in range(axis.nlevels)
    ]
    return pd.MultiIndex.from_arrays(levels, names=[name for axis in axes for name in axis.names])


def verify(released: Released) -> bool:
    """Return whether the numbers and labels are still those that were released, all of them and in order.

    It detects an honest mistake (a column assigned, rows reordered), not a forgery: whoever can
    write the numbers can write a fingerprint. A Series that pandas made a frame of one column, as
    for a Parquet file, is unchanged.
    """
    return as_released(released) is not None and read(released).part is None


def as_released(released: Released) -> Released | None:
    """Return a release as it was made; None where its numbers or labels are not those that were released.

    A Series that pandas made a frame of one column, as it does for a Parquet file, becomes a Series again.
    Raises MetadataError for a frame without metadata.
    """
    mark = read(released).fingerprint
    forms = [released]
    if isinstance(released, pd.DataFrame) and released.shape[1] == 1:
        forms.append(released.iloc[:, 0])
        forms[1].attrs = dict(released.attrs)
    return next((form for form in forms if fingerprint(form) == mark), None)


def interval(released: Released) -> Released:
    """Return the lower and upper end of the interval around each released number.

    A Series gives a DataFrame with columns ``released``, ``standard_error``, ``lower``, ``upper``;
    a DataFrame gives the same with these four as the outer level of the columns. The interval
    covers the statistic of the data, not of a population, with probability ``error["level"]``; of a
    regression, the coefficients of the population. It ends where the statistic cannot be: at the declared
    bounds of a mean or a proportion, at 0 and the largest value of a variance, at -1 and 1 of a correlation.
    For dates the ends are dates, and the standard error is a time. The ends of quantiles were selected with
    them (``interval=True``), and have no standard error.

    Raises
    ------
    MetadataError : no metadata, or the numbers are not those that were released.
    """
    metadata, within_bounds = read(released), as_released(released)
    if within_bounds is None:
        raise MetadataError(
            "The numbers are not those that were released, so their errors are not known.",
            "take the interval from the released frame before changing it.",
        )
    if isinstance(metadata.error, Mapping) and {"lower", "upper"} <= {*metadata.error}:
        return interval_of_quantiles(within_bounds, metadata.error)
    if metadata.found or (isinstance(metadata.error, Mapping) and "below_best" in metadata.error):
        raise MetadataError(
            "A selection has an error in counts or ranks, and no interval around its value.",
            "released.attrs['dp']['error'] says what is known.",
        )
    released = within_bounds
    error, half = (metadata.error_of_each(name, released.shape) for name in ("standard_error", "plus_minus"))
    if metadata.part is not None:  # whose nulls may stand for no released number
        error = np.where(pd.isna(released), np.nan, error)
    if "unit" in metadata.error:
        return interval_of_dates(released, error, half, metadata.bounds)
    values = released.to_numpy(dtype=np.float64)
    lower, upper = metadata.ends_of_each(values, half)
    pieces = {"released": values, "standard_error": error, "lower": lower, "upper": upper}
    if isinstance(released, pd.Series):
        return pd.DataFrame(pieces, index=released.index)
    frames = {
        name: pd.DataFrame(piece, index=released.index, columns=released.columns)
        for name, piece in pieces.items()
    }
    return pd.concat(frames, axis=1)


# ---------------------------------------------------------------- recognition

PLAN = "dp_plan"
"""The key in ``attrs`` of a plan: its arguments, and what was assumed of the data."""

PLANNED = ("statistic", "columns", "mechanism", "releases", "filters", "lineage", "normalize")
"""Metadata of a release that its plan has, too."""


def attach_plan(plan: pd.DataFrame, facts: Metadata, **assumed: Any) -> None:
    """Write what a plan is of, and what was ``assumed``, into ``attrs["dp_plan"]``."""
    plan.attrs[PLAN] = {name: getattr(facts, name) for name in PLANNED} | assumed


LINEAGE = {"declared": "lineage"}
"""The mark of a lineage."""

What: TypeAlias = Literal["release", "plan", "confidential", "lineage", "other"]

RISK = f" risk ({MARK})"
NAMED = (f"dr_ha ({MARK})", f"epsilon ({MARK})")

COMPARED = {
    *("error", "lower", "upper", "worse", "part_epsilon", "whole_epsilon"),
    *(f"{name}{end}" for name in ("without", "difference") for end in ("", "_lower", "_upper")),
}
DISTANCES = {"tvd", "standard_error"}
COUNTED = {
    *("clipped", "null", "unseen", "dropped"),
    *("cohort", "by", "sensitive", "epsilon", "risk", "overall", "epsilon_so_far", "delta_so_far"),
    *("cells", "records", "share of records", "label", "share", "column"),
    *("classes", "labels", "distinct l", "entropy l", "t", "distance"),
    *("fault", "declared", "examples"),
}


@dataclass(frozen=True)
class Recognized:
    """The kind of an object.

    Attributes
    ----------
    what : "confidential" is made of exact counts.
    kind : the method that made a confidential frame, or the name of its columns; "" for others.
    facts : the metadata of the object.
    """

    what: What
    kind: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def recognized(obj: Any) -> Recognized:
    """Return the kind of an object.

    ``attrs`` come first, so that a release of a column named "confidential" is a release. Without them, the
    names of columns identify a confidential frame. A table with the column name "confidential" alone is not
    one, unless its other columns are those of a confidential frame, too.

    >>> recognized(pd.DataFrame({"risk": [0.5]})).what
    'other'
    """
    if not isinstance(obj, pd.DataFrame | pd.Series):
        kind = type(obj).__name__.lower()
        marked = getattr(obj, MARK, False) is True
        return Recognized("confidential", kind, {MARK: kind}) if marked else Recognized("other")
    stored, plan = obj.attrs.get(KEY), obj.attrs.get(PLAN)
    facts: Mapping[str, Any] = stored if isinstance(stored, Mapping) else {}
    if MARK in facts:
        return Recognized("confidential", printable(facts[MARK]), facts)
    if "statistic" in facts:
        return Recognized("release", facts=facts)
    if facts == LINEAGE and isinstance(obj, pd.DataFrame):
        return Recognized("lineage", facts=facts)
    if isinstance(plan, Mapping) and isinstance(obj, pd.DataFrame):
        return Recognized("plan", facts=plan)
    kind = _kind_of_names(obj)
    if kind:
        return Recognized("confidential", kind, {**facts, MARK: kind})
    return Recognized("other", facts=facts)


def _kind_of_names(frame: pd.DataFrame | pd.Series[Any]) -> str:
    """Return the kind of a confidential frame by its names; "" for others."""
    if isinstance(frame, pd.Series):
        return str(frame.name) if isinstance(frame.name, str) and frame.name in NAMED else ""
    names = [name for name in frame.columns.names if isinstance(name, str)]
    for name in names:
        if name in NAMED:
            return name
        if name.endswith(RISK):
            return "risk_curve"
    if names[:1] != [MARK] or not len(frame.columns):
        return ""
    heads = set(frame.columns.get_level_values(0))
    if names == [MARK, "epsilon"] and heads <= DISTANCES:
        return "utility"
    if names != [MARK]:
        return ""
    if heads <= COMPARED:
        return "compare_sampling" if "rate" in frame.index.names else "compare_suppression"
    if heads <= COUNTED:
        return MARK
    distances = heads - {"risk", "recommended"}
    return "tradeoff" if all(re.fullmatch(r"tvd \d+-way", str(name)) for name in distances) else ""
