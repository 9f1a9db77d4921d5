"""Statistical inference from released numbers: the noise and, where wanted, the sampling error together.

Everything here is post-processing: it reads released numbers and their metadata, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from pdprivacy.checks import doubles, proportion
from pdprivacy.errors import MetadataError, ParameterError, got
from pdprivacy.frames.answers import gives_again, was_answered_before
from pdprivacy.releases import metadata, projection
from pdprivacy.releases.metadata import Metadata, Released
from pdprivacy.types import Floats

Numbers: TypeAlias = "float | ArrayLike | pd.Series[Any] | pd.DataFrame"

NORMAL_ABOVE = 1e9
"""Degrees of freedom from which on the normal quantile is used: Student's differs by 1e-9 of itself,
and older scipy has no quantile beyond 1e10."""


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """A combined estimate, its total variance, and the degrees of freedom of Student's t for it.

    All three have the shape of one set's estimates; infinite degrees of freedom are the normal law.
    """

    estimate: Floats
    variance: Floats
    degrees_of_freedom: Floats

    @property
    def standard_error(self) -> Floats:
        """The root of the total variance."""
        return np.sqrt(self.variance)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return both ends: the estimate minus and plus Student's quantile times the standard error.

        Raises ParameterError for a level that is not strictly between 0 and 1.
        """
        from scipy.special import ndtri, stdtrit

        proportion(level, "level")
        # the lower tail: (1 - level) / 2 keeps its digits where (1 + level) / 2 would round to 1
        tail = (1 - level) / 2
        df = np.asarray(self.degrees_of_freedom)
        quantile = -np.where(df > NORMAL_ABOVE, ndtri(tail), stdtrit(np.minimum(df, NORMAL_ABOVE), tail))
        half = quantile * self.standard_error
        return self.estimate - half, self.estimate + half


def pool(estimates: ArrayLike, within: ArrayLike) -> Pooled:
    """Combine the estimates of m sets, by the rule for partially synthetic and for MODIPS data.

    The estimate is the mean, its variance T = W + B / m, with W the mean of the sampling variances
    within the sets and B the variance between the m estimates (divisor m - 1); degrees of freedom
    (m - 1) (1 + m W / B)^2, infinite where B = 0. T is unbiased where each estimate is that of the same data
    plus independent noise of mean 0.

    The degrees of freedom match the first two moments of T to a chi-squared law, with W taken as known.
    They are exact for W = 0 and normal noise, and too many for few sets: with normal noise and a W of
    some tenths of B / m or less, but not 0, a 95 % interval holds 87 % for m = 2, 92 % for m = 3, 94 % for
    m = 5 and 94.8 % for m = 10. Take m = 5 or more, or a variance that is known.

    estimates : shape (m, ...), m at least 2. A NaN gives NaN in its place.
    within : sampling variances, of the same shape or broadcast to it by numpy's rules (a number; shape
        (...) for the same in every set); at least 0. 0: the estimate is of the statistic of these data.

    Raises ParameterError for one set alone, which has no variance between, and for negative or
    infinite variances.

    Sources: Liu, "Model-based differentially private data synthesis and statistical inference in
    multiple synthetic datasets" (2016); Reiter, Survey Methodology 29 (2003), the same rule.

    >>> pooled = pool([0.4, 0.5, 0.6], 0.01)
    >>> [round(float(part), 4) for part in (pooled.estimate, pooled.variance, pooled.degrees_of_freedom)]
    [0.5, 0.0133, 32.0]
    """
    values = doubles(estimates, "'estimates'")
    if values.ndim == 0 or len(values) < 2:
        raise ParameterError(
            "'estimates' needs at least two sets along its first axis: one has no variance between sets.",
            "combine(released) takes the noise of a single release from its metadata.",
        )
    sampling = doubles(within, "'within'")
    if bool(np.any(sampling < 0)) or bool(np.any(np.isinf(sampling))):
        raise ParameterError("'within' must be finite variances of at least 0.")
    try:
        sampling = np.broadcast_to(sampling, values.shape)
    except ValueError:
        raise ParameterError(
            f"'within' has shape {sampling.shape}, 'estimates' {values.shape}.",
            "one number, or the shape of the estimates.",
        ) from None
    m = len(values)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        # about the first set, so that equal estimates have B = 0 exactly
        moved = values - values[0]
        estimate = values[0] + moved.mean(axis=0)
        between = moved.var(axis=0, ddof=1)
        W = sampling.mean(axis=0)
        ratio = np.where(between == 0, np.inf, m * W / between)
        return Pooled(estimate, W + between / m, (m - 1) * (1 + ratio) ** 2)


Noise: TypeAlias = Literal["between", "known"] | None

NORMAL_HALF = 1.959963984540054
"""Half the 95 % interval of normal noise of standard deviation 1."""


def combine(
    released: Released | Sequence[Released],
    *,
    rows: Numbers | None = None,
    variance: Numbers | None = None,
    within: Numbers | None = None,
    noise: Noise = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Combine releases of one statistic into an estimate with an interval per label.

    With a sampling variance the interval is for the statistic of the population that the records are
    an independent random sample of; with ``within=0`` it is for the statistic of these data.

    released : a released Series or DataFrame, which may hold m releases side by side, or a list of
        released objects with the same labels, in any order. Objects in a list are separate releases,
        each with a loss of its own: their losses add up. They are weighted equally. `combine`
        itself draws and spends nothing.
    rows : the records behind each number; taken from the metadata where it is public. A number, a
        released count (a Series of one number), or one per label. An effective number for a survey
        with a design. For a release with ``weights`` the least effective number, (sum of w)^2 / (sum of w^2)
        (Kish), that its released sum of weights and the declared bounds of the weights allow: the sampling
        variance then includes the design effect of unequal weights. It is conservative; of released sums of w
        and w^2 take ``rows=sums["w"]**2 / sums["w2"]``.
    variance : the variance of a record's value in the population, for "mean". Where it is left out, the
        largest that the mean and the declared bounds allow, (upper - mean) (mean - lower) (Bhatia and Davis,
        American Mathematical Monthly 107, 2000). That is conservative: three times the variance for values
        spread evenly between the bounds, far more where they lie close together. Values are clamped to their
        bounds, so mean and variance are those of clamped values.
    within : the sampling variance of the statistic itself, in place of ``rows`` and ``variance``.
        Needed for statistics other than "mean", "proportion" and shares (`value_counts` and `crosstab` with
        ``normalize=``). For the last two it is p (1 - p) / rows with p clipped into [0, 1], the mean over the
        releases; ``rows`` are those of the whole that a share is of: of shares per row or column, those of
        the row or column.
        ``rows``, ``variance`` and ``within`` are a number, an array in the shape of one release, a
        Series by label (of a table: by row, by column or by cell) or a DataFrame.
    noise : "between" (default for several releases): T = W + B / m and Student's t, as in ``pool``. The
        noise is measured by the differences between releases, so it counts whatever was done to
        each release on its own (bounds, rescaling). "known" (default for one release, which has no
        between): T = W + v / m and the normal law, v the mean squared standard error of the noise
        in the metadata. Known noise gives shorter intervals from few releases: without sampling
        error the 95 % quantile is 1.96 in place of 12.71, 4.30 and 2.78 for m = 2, 3 and 5.
    level : the coverage of the interval.

    Numbers that were projected onto their limits are taken as they were before, as by
    ``released.dp.unprojected()``: a mean of projected numbers would be biased.

    Returns a DataFrame with columns ``estimate``, ``variance``, ``standard_error``,
    ``degrees_of_freedom`` (infinite: normal law), ``lower`` and ``upper``, one row per label of the
    release; of a table one row per cell, in the order of ``table.stack()``, row levels before
    column levels, so that ``result["estimate"].unstack()`` holds the cells of the table again. Ends
    are not cut at bounds: cutting would hide how little is known. NaN stays NaN.

    Several releases cost accuracy. At a fixed loss each of m gets 1/m of it, so the mean of m
    Laplace releases has sqrt(m) times the standard error of a single one. What they buy is a
    variance that need not be known.

    The half widths of the sampling error and of the noise are added up as squares (Howe 1974), which covers
    at least as often as the level states where the sampling error is normal. The noise of a single release
    is as wide as its own interval states; of several bounded or constrained ones, too, because averaging does
    not take a bias away (Liu, "Statistical properties of sanitized results from differentially private
    Laplace mechanism with bounding constraints", section 4.2). ``variance`` and ``degrees_of_freedom`` are
    those of ``pool``.

    Limits. For several releases and "known" the normal law stands in for that of the noise. Standard errors
    of ratios (means and shares with a private number of rows) are first-order. The normal law of a
    proportion wants some ten records of each kind: a share released as 0 has the sampling variance 0, so
    intervals for the population cover rare kinds too seldom where the noise is small (of 1,000 equally likely
    cells with 100 records in all, 83 % at epsilon 20 and 13 % at epsilon 1,000, and fewer with several
    releases of geometric noise). Intervals for these data, ``within=0``, do not depend on it. Releases drawn
    with one seed share one noise, which `combine` cannot tell.

    Raises
    ------
    MetadataError : no metadata, numbers that are not those released, or no error of each number.
    ParameterError : an empty list, objects of different statistics or labels, the same object twice,
        a sampling variance that is not known, and arguments out of range.

    >>> import pandas as pd, pdprivacy
    >>> ages = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=18, upper=90),))
    >>> private = pd.DataFrame({"age": [25, 41, 67] * 50}).dp.protect(ages, epsilon=2)
    >>> five = [private.dp.mean("age", epsilon=0.4) for _ in range(5)]
    >>> combine(five, rows=150, variance=300).columns[:4].tolist()
    ['estimate', 'variance', 'standard_error', 'degrees_of_freedom']
    """
    proportion(level, "level")
    if noise is not None and not (isinstance(noise, str) and noise in ("between", "known")):
        raise ParameterError(f"'noise' must be 'between', 'known' or None (got {got(noise)}).")
    sets = _collected(released)
    m = len(sets.values)
    if noise == "between" and m == 1:
        raise ParameterError(
            "noise='between' needs at least two releases.", "noise='known', or release several times."
        )
    sampling = _sampling_variance(sets, rows, variance, within)
    if noise == "between" or (noise is None and m > 1):
        pooled = pool(sets.values, sampling)
    else:
        if "standard_error" not in sets.numbers:
            raise MetadataError(
                metadata.NO_ERROR,
                "several releases and noise='between'." if m == 1 else "noise='between'.",
            )
        total = np.broadcast_to(sampling, sets.values.shape).mean(axis=0)
        total = total + (sets.numbers["standard_error"] ** 2).mean(axis=0) / m
        pooled = Pooled(sets.values.mean(axis=0), total, np.full(total.shape, np.inf))
    lower, upper = _ends(pooled, sets, sampling, level)
    columns = {
        "estimate": pooled.estimate,
        "variance": pooled.variance,
        "standard_error": pooled.standard_error,
        "degrees_of_freedom": pooled.degrees_of_freedom,
        "lower": lower,
        "upper": upper,
    }
    return pd.DataFrame({name: np.ravel(part) for name, part in columns.items()}, index=sets.labels())


def _ends(pooled: Pooled, sets: _Sets, sampling: Floats, level: float) -> tuple[Floats, Floats]:
    """The ends of the intervals: half widths of the sampling error and of the noise, as squares added up.

    Source: Howe (1974), "Approximate confidence limits on the mean of X + Y where X and Y are two tabled
    independent random variables", JASA 69.
    """
    m = len(sets.values)
    within = np.broadcast_to(sampling, sets.values.shape).mean(axis=0)
    known = np.full(within.shape, np.inf)

    def half(variance: Any, degrees: Floats) -> Floats:
        zero = np.zeros(within.shape)
        return Pooled(zero, np.asarray(variance) + zero, degrees).interval(level)[1]

    normal = m == 1 or bool(np.isinf(pooled.degrees_of_freedom).all())
    degrees = known if normal else np.full(within.shape, m - 1.0)
    noise = half(np.maximum(pooled.variance - within, 0.0), degrees)
    if "plus_minus" in sets.numbers and (m == 1 or sets.biased):
        # the noise of a release is as wide as it states; a bias does not become less by averaging
        noise = np.maximum(noise, half(((sets.numbers["plus_minus"] / NORMAL_HALF) ** 2).mean(axis=0), known))
    elif sets.biased:
        noise = np.full(within.shape, np.nan)
    total = np.hypot(half(within, known), noise)
    return pooled.estimate - total, pooled.estimate + total


SAME = ("statistic", "columns", "normalize", "margins", "filters", "lineage", "unit", "constraint", "weights")
"""Facts that must be equal in all releases of one statistic."""


@dataclass(frozen=True, slots=True)
class _Sets:
    """The numbers of m releases of one statistic; arrays have shape (m, labels) or (m, rows, columns).

    ``facts``: the metadata of the first release. ``tops``: the column labels of a table, None for a Series.
    ``numbers``: the released ``values``; and, where they are known, the ``standard_error`` and the
    ``plus_minus`` of their noise, the bounds ``lower`` and ``upper`` of the values that means are made of
    (NaN where there is none), and the ``effective_rows`` of weighted records. ``biased``: kept within bounds,
    or made consistent.
    """

    facts: Metadata
    index: pd.Index[Any]
    tops: pd.Index[Any] | None
    numbers: dict[str, Floats]
    biased: bool

    @property
    def values(self) -> Floats:
        """The released numbers."""
        return self.numbers["values"]

    @property
    def asked(self) -> tuple[Any, ...]:
        """The released statistic, its columns and its records."""
        return tuple(getattr(self.facts, name) or None for name in SAME)

    def labels(self) -> pd.Index[Any]:
        """One label per cell: those of the Series, or row and column labels together, row by row."""
        return metadata.cell_labels([self.index] if self.tops is None else [self.index, self.tops])

    def taken(self, index: pd.Index[Any], tops: pd.Index[Any] | None) -> dict[str, Floats] | None:
        """The numbers in the order of these labels; None where the labels are others."""
        by_row = _order(self.index, index)
        if by_row is None or (tops is None) != (self.tops is None):
            return None
        numbers = {name: array[:, by_row] for name, array in self.numbers.items()}
        if tops is None or self.tops is None:
            return numbers
        by_column = _order(self.tops, tops)
        return (
            None if by_column is None else {name: array[:, :, by_column] for name, array in numbers.items()}
        )


def _order(index: pd.Index[Any], target: pd.Index[Any]) -> NDArray[np.intp] | None:
    """Return the position in ``index`` of each label of ``target``; None where their labels differ."""
    if index.equals(target):
        return np.arange(len(target))
    if len(index) != len(target) or index.nlevels != target.nlevels:
        return None
    if not (index.is_unique and target.is_unique):
        return None
    try:
        positions = index.get_indexer(target)
    except (TypeError, ValueError):  # labels of kinds that have no order, or no equality
        return None
    return None if bool((positions < 0).any()) else positions


def _collected(released: Released | Sequence[Released]) -> _Sets:
    """All the releases as one stack, in the label order of the first object."""
    objects: list[Any] = list(released) if isinstance(released, list | tuple) else [released]
    if not objects:
        raise ParameterError(
            "'released' holds no release.", "combine(private.dp.mean(...)), or a list of such results."
        )
    if len({id(release) for release in objects}) < len(objects):
        raise ParameterError(
            "'released' holds the same object twice, which is one release.",
            "release the statistic several times; each release has its own noise and its own loss.",
        )
    _refuse_answers_given_again(objects)
    first, *others = (_read(release) for release in objects)
    stacks = [first.numbers]
    for release in others:
        if release.asked != first.asked:
            raise ParameterError(
                "'released' holds releases of different statistics, columns, filters or shares.",
                "the same call several times.",
            )
        if release.facts.rows != first.facts.rows:
            raise ParameterError("'released' holds releases of different numbers of rows.")
        numbers = release.taken(first.index, first.tops)
        if numbers is None:
            raise ParameterError("'released' holds releases with different labels.")
        stacks.append(numbers)
    known = [name for name in first.numbers if all(name in release for release in stacks)]
    joined = {name: np.concatenate([release[name] for release in stacks]) for name in known}
    return replace(first, numbers=joined, biased=any(release.biased for release in (first, *others)))


def _refuse_answers_given_again(objects: Sequence[Any]) -> None:
    """Refuse one release twice, where one of the two is the answer of an earlier call of a frame."""
    for release in filter(was_answered_before, objects):
        if any(gives_again(release, other) for other in objects if other is not release):
            raise ParameterError(
                "'released' holds one release twice: an equal call was answered again, with the same noise.",
                'private.dp.mean("age", epsilon=0.1, release_id="second"), which is charged and is new.',
            )


def _checked(released: Released) -> Metadata:
    """The metadata of a released object, checked against its fingerprint."""
    if not isinstance(released, pd.Series | pd.DataFrame):
        raise ParameterError(
            "'released' must be a released Series or DataFrame, or a list of them "
            f"(got {type(released).__name__}).",  # not its value: a list may be one of cells
            "combine(private.dp.mean(...), ...).",
        )
    view = metadata.read(released)
    if view.part is not None or view.fingerprint != metadata.fingerprint(released):
        raise MetadataError(
            "The numbers are not those that were released, so their errors are not known.",
            "combine the released frames before changing them.",
        )
    if view.regression is not None:
        raise ParameterError(
            "The standard errors of a regression count the sample already, so it cannot be combined.",
            "released.dp.interval() is for the population.",
        )
    return view


def _read(released: Released) -> _Sets:
    """The releases that one released object holds."""
    _checked(released)
    released = projection.unprojected(released)
    facts = metadata.read(released)
    number: Any = facts.releases
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise MetadataError("The release metadata does not hold the number of releases.")
    if "unit" in facts.error:
        raise MetadataError(
            "The release holds dates, and only numbers are combined.",
            'a mean of private.assign(days=private["when"] - "2020-01-01"), which are numbers',
        )
    try:
        flat = released.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise MetadataError("The release does not hold numbers.") from None
    tops = released.columns if isinstance(released, pd.DataFrame) else None
    positions = None
    if number > 1:
        positions, tops = _side_by_side(tops, number)
    sides = _SideBySide(flat, positions, tops is None)
    error: Mapping[str, Any] = facts.error if isinstance(facts.error, Mapping) else {}
    ends = _stored(facts.value_bounds)
    if ends is None or ends.ndim == 0 or ends.shape[-1] != 2:
        ends = None
    numbers = {
        "values": sides.values,
        "standard_error": sides.spread(_stored(error.get("standard_error"))),
        "plus_minus": sides.spread(_stored(error.get("plus_minus"))),
        "effective_rows": sides.spread(_stored(facts.effective_rows)),
        "lower": None if ends is None else sides.spread(ends[..., 0]),
        "upper": None if ends is None else sides.spread(ends[..., 1]),
    }
    known = {name: array for name, array in numbers.items() if array is not None}
    return _Sets(facts, released.index, tops, known, bool(facts.bounding or facts.constraint))


@dataclass(frozen=True)
class _SideBySide:
    """The numbers of one released object, with its releases along the first dimension of an array.

    ``numbers``: as the object holds them. ``places``: the columns of each release; None for a single release.
    ``series``: whether a release is a Series.
    """

    numbers: Floats
    places: list[NDArray[np.intp]] | None
    series: bool

    @cached_property
    def values(self) -> Floats:
        """The released numbers."""
        return self.split(self.numbers)

    def split(self, array: Floats) -> Floats:
        """Return numbers in the shape of the object by release."""
        if self.places is None:
            return array[np.newaxis]
        stack = np.stack([array[:, columns] for columns in self.places])
        return stack[..., 0] if self.series else stack

    def spread(self, array: Floats | None) -> Floats | None:
        """Return by release a number for all, or numbers in the shape of the object or of a release."""
        if array is None or array.ndim == 0:
            return None if array is None else np.full(self.values.shape, float(array))
        if array.shape == self.numbers.shape:
            return self.split(array)
        fits = array.shape == self.values.shape[1:]
        return np.broadcast_to(array, self.values.shape) if fits else None


def _stored(value: Any) -> Floats | None:
    """Numbers out of JSON, NaN for null among them; None where there is no array of numbers."""
    try:
        return None if value is None else np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _side_by_side(
    columns: pd.Index[Any] | None, number: int
) -> tuple[list[NDArray[np.intp]], pd.Index[Any] | None]:
    """The column places of each release, and the column labels that they share (None for Series)."""
    damaged = MetadataError(
        "The release metadata names several releases that the columns do not hold side by side.",
        "combine the released frames as they were returned.",
    )
    if columns is None:
        raise damaged
    # compared as text: Parquet may give column labels back as text
    outer = np.array([str(label) for label in columns.get_level_values(0)], dtype=object)
    positions = [
        np.flatnonzero(outer == str(number_of_release)) for number_of_release in range(1, number + 1)
    ]
    if (
        sum(map(len, positions)) != len(columns)
        or len({len(number_of_release) for number_of_release in positions}) != 1
    ):
        raise damaged
    if not isinstance(columns, pd.MultiIndex):
        if len(columns) != number:
            raise damaged
        return positions, None
    inner = [columns[number_of_release].droplevel(0) for number_of_release in positions]
    if not all(labels.equals(inner[0]) for labels in inner):
        raise damaged
    return positions, inner[0]


def _sampling_variance(
    sets: _Sets, rows: Numbers | None, variance: Numbers | None, within: Numbers | None
) -> Floats:
    """The variance of the statistic from one sample of the population to another."""
    if within is not None:
        if rows is not None or variance is not None:
            raise ParameterError("'within' takes the place of 'rows' and 'variance'; give one or the other.")
        return _aligned("within", within, sets, least=0)
    statistic = sets.facts.statistic
    if variance is not None and statistic != "mean":
        raise ParameterError(
            f"'variance' is for means, not for {statistic!r}.", "within=, the sampling variance itself."
        )
    if statistic == "mean":
        if variance is not None:
            return _aligned("variance", variance, sets, least=0) / _rows(sets, rows)
        ends = [sets.numbers.get(name) for name in ("lower", "upper")]
        if not all(end is not None and bool(np.isfinite(end).all()) for end in ends):
            raise ParameterError(
                "The variance of the records is neither given nor limited by declared bounds.",
                "variance=, or within=0 for the mean of these data.",
            )
        lower, upper = sets.numbers["lower"], sets.numbers["upper"]
        means = np.clip(sets.values, lower, upper)
        return (upper - means) * (means - lower) / _rows(sets, rows)
    if statistic == "proportion" or sets.facts.normalize is not None:
        shares = np.clip(sets.values, 0.0, 1.0)
        return shares * (1 - shares) / _rows(sets, rows)
    raise ParameterError(
        f"The sampling variance of this {statistic!r} is not known.",
        "within=, its sampling variance, or within=0 for the statistic of these data.",
    )


def _rows(sets: _Sets, rows: Numbers | None) -> Floats:
    if rows is None and "effective_rows" in sets.numbers:
        return np.asarray(np.maximum(sets.numbers["effective_rows"], 1.0).mean(axis=0))
    if rows is None and sets.facts.normalize in ("index", "columns"):
        side = "row" if sets.facts.normalize == "index" else "column"
        raise ParameterError(
            f"'rows' is not given, and these are shares of each {side}.",
            f"rows=counts by {side}, such as a release of groupby(...).count; or within=0 for these data.",
        )
    if rows is None:
        if not isinstance(sets.facts.rows, int | float):
            raise ParameterError(
                "The number of rows is not public, and 'rows' is not given.",
                "rows=private.dp.count(epsilon=...), or within=0 for the statistic of these data.",
            )
        rows = sets.facts.rows
    if isinstance(rows, pd.Series) and len(rows) == 1:
        rows = float(doubles(rows, "'rows'")[0])  # a released count, labelled "rows"
    return _aligned("rows", rows, sets, least=1)


def _aligned(name: str, argument: Numbers, sets: _Sets, *, least: int) -> Floats:
    """An argument in the shape of one release, its labels matched; all of it finite and large enough."""
    cells = sets.values.shape[1:]
    numbers: Floats | None
    if isinstance(argument, pd.Series):
        numbers = _by_label(name, argument, sets)
    elif isinstance(argument, pd.DataFrame):
        rows = _order(argument.index, sets.index)
        tops = None if sets.tops is None else _order(argument.columns, sets.tops)
        numbers = None
        if rows is not None and tops is not None:
            numbers = doubles(argument, repr(name))[np.ix_(rows, tops)]
    else:
        numbers = doubles(argument, repr(name))
        if numbers.ndim == 0:
            numbers = np.full(cells, float(numbers))
    if numbers is None or numbers.shape != cells:
        raise ParameterError(
            f"{name!r} must be a number, or one per label of the release.",
            "a Series with the labels of the release.",
        )
    if not bool(np.all((numbers >= least) & np.isfinite(numbers))):
        hint = None
        if name == "variance":
            hint = "a released variance may be negative; without one the declared bounds are used."
        raise ParameterError(f"{name!r} must be finite and at least {least}.", hint)
    return numbers


def _by_label(name: str, argument: pd.Series[Any], sets: _Sets) -> Floats | None:
    """A Series in the shape of one release: by cell, or of a table by row or by column."""
    array = doubles(argument, repr(name))
    order = _order(argument.index, sets.labels())
    if order is not None:
        return array[order].reshape(sets.values.shape[1:])
    if sets.tops is None:
        return _by_group(array, argument.index, sets)
    by_row, by_column = _order(argument.index, sets.index), _order(argument.index, sets.tops)
    if sets.facts.normalize in ("index", "columns") and by_row is not None and by_column is not None:
        # the rows of shares are those of the whole that they are shares of
        by_row, by_column = (by_row, None) if sets.facts.normalize == "index" else (None, by_column)
    if by_row is not None and by_column is not None:
        raise ParameterError(
            f"{name!r} may be by row or by column: the labels of both are the same.",
            "a DataFrame with the labels of the release.",
        )
    if by_row is not None:
        return np.broadcast_to(array[by_row][:, np.newaxis], sets.values.shape[1:])
    if by_column is not None:
        return np.broadcast_to(array[by_column], sets.values.shape[1:])
    return None


def _by_group(array: Floats, groups: pd.Index[Any], sets: _Sets) -> Floats | None:
    """Numbers per group in the shape of a release of shares per group and label; None for other releases."""
    levels = groups.nlevels
    if sets.facts.normalize != "index" or levels >= sets.index.nlevels or not groups.is_unique:
        return None
    inner: list[Any] = [*range(levels, sets.index.nlevels)]
    outer = sets.index.droplevel(inner)
    try:
        positions = groups.get_indexer(outer)
    except (TypeError, ValueError):
        return None
    return None if bool((positions < 0).any()) else array[positions]
