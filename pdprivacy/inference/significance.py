"""Tests of hypotheses from released numbers, with the noise in the distribution under the null hypothesis.

Everything here is post-processing: it reads released numbers and the noise that their metadata state, and
costs nothing. A p-value is the share of simulated releases whose statistic is at least as extreme as the
released one; they are of samples of a population that meets the null hypothesis, and what the hypothesis
leaves open is estimated from the released numbers. So the p-value counts the sample and the noise. A p-value
of scipy, of the same numbers, counts the sample alone, and rejects too often.

Sources: Gaboardi, Lim, Rogers, Vadhan, "Differentially private chi-squared hypothesis testing: goodness of
fit and independence testing" (2016), for the Monte Carlo test of a noisy table; Davison, Hinkley, "Bootstrap
methods and their application" (1997), chapter 4, for p-values by simulation.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.checks import doubles, has_hash, whole
from pdprivacy.core.mechanisms import MECHANISMS
from pdprivacy.core.noise import SUMMED_NOISE, RandomState, noise_sums, simulator
from pdprivacy.errors import MetadataError, ParameterError, got
from pdprivacy.releases import metadata, projection
from pdprivacy.releases.metadata import Metadata
from pdprivacy.types import Floats

DRAWS, MOST_DRAWS = 9999, 10**6
NUMBERS = 10**6
"""The number of cells of tables that are simulated at a time."""

LEAST_EXPECTED = 5.0
"""The smallest expected count of a table, by the usual rule for Pearson's test (Cochran 1954)."""

RARE = (
    "no p-value: an expected count is below 5; merge rare labels by private.recode, or leave them out by "
    "private.query"
)

LARGEST_NOISE = 0.2
"""The largest standard error of the noise in a correlation, and in a standard deviation as a share of it."""

CLEAR = 3.0
"""The expected count in standard deviations of the noise from which the test nearly has its level."""


@dataclass(frozen=True, slots=True)
class Significance:
    """A test of a hypothesis from released numbers.

    Attributes
    ----------
    statistic : the test statistic of the released numbers.
    pvalue : the share of simulated releases under the null hypothesis that are at least as extreme, within
        1 / (draws + 1) and 1; NaN where ``note`` says why there is none.
    draws : the number of simulated releases.
    note : what the p-value accounts for, or why there is none.
    """

    statistic: float
    pvalue: float
    draws: int
    note: str


def chi2_contingency(table: pd.DataFrame, *, draws: int = DRAWS, rng: RandomState = None) -> Significance:
    """Test whether the rows and the columns of a released contingency table are independent.

    The statistic is Pearson's, of the noisy counts around the expected ones of their margins. Its
    distribution under independence is simulated: tables of the noisy total with the noisy margins, each with
    noise of its own (Gaboardi et al. 2016, the Monte Carlo test of independence). A table of two columns
    tests whether two or more proportions are equal.

    table : a release of `crosstab` whose numbers are noisy counts: no shares, margins, bounds or constraints.
        Cells of nulls are left out, as `pandas.crosstab` leaves them out.
    draws : the number of simulated tables. rng : a seed or generator of the simulation.

    The p-value is NaN if an expected count is below 5. If one is below three standard deviations of the
    noise, ``note`` says so: a p-value is stated more often where the noise raised a margin, so that stated
    ones may reject too often, while the test as a whole rejects no more often than its level.

    Raises
    ------
    MetadataError : no such release, or one that was changed.
    ParameterError : one row or column, noise whose distribution is not simulated, or several releases.

    >>> import pandas as pd, pdprivacy
    >>> domain = pdprivacy.Domain(tuple(pdprivacy.Column(name, "boolean") for name in ("smokes", "ill")))
    >>> frame = pd.DataFrame({"smokes": [True, False] * 500, "ill": [True, False, False, False] * 250})
    >>> private = pdprivacy.protect(frame, domain, epsilon=1)
    >>> chi2_contingency(private.dp.crosstab("smokes", "ill", epsilon=1, rng=1), rng=1).pvalue
    0.0001
    """
    table, facts, scales = _noises(table, "crosstab", "chi2_contingency", "private.dp.crosstab(...)")
    if len(scales) != 1:
        raise MetadataError("The release metadata does not hold one scale of the noise.")
    (scale,) = scales.values()
    if facts.weights is not None:
        raise ParameterError("The table holds sums of weights, not counts of records.", "leave weights out.")
    if facts.normalize is not None or facts.margins:
        raise ParameterError("The table must hold counts without margins.", "normalize=False, margins=False.")
    counts = table.to_numpy(dtype=np.float64)[
        np.ix_(_known_positions(table.index), _known_positions(table.columns))
    ]
    if min(counts.shape) < 2:
        raise ParameterError("The table must have at least two rows and two columns.")
    generator, size = simulator(rng), whole(draws, "draws", 99, MOST_DRAWS)
    expected = _expected(counts[np.newaxis])[0]
    if not expected.min() >= LEAST_EXPECTED:
        return Significance(math.nan, math.nan, 0, RARE)
    statistic = float(_pearson(counts[np.newaxis])[0])
    simulated = _simulated(counts, expected, facts.mechanism, scale, size, generator)
    counted = "the sample and the noise"
    if expected.min() < CLEAR * _deviation(facts.mechanism, scale):
        counted += ", which is large beside an expected count: of tables with a p-value, too many may reject"
    return _result(statistic, simulated, counted)


def _known_positions(labels: pd.Index[Any]) -> list[int]:
    """The places of the labels without null."""
    parts = [label if isinstance(label, tuple) else (label,) for label in labels]
    return [position for position, label in enumerate(parts) if not any(pd.isna(part) for part in label)]


def _expected(tables: Floats) -> Floats:
    """The expected counts under independence, by margins that are not negative; (..., R, C)."""
    rows, columns = (np.maximum(tables.sum(axis=axis, keepdims=True), 0.0) for axis in (2, 1))
    totals = np.maximum(tables.sum(axis=(1, 2), keepdims=True), 1.0)
    return np.asarray(rows * columns / totals)


def _simulated(
    counts: Floats, expected: Floats, mechanism: str, scale: float, draws: int, generator: np.random.Generator
) -> Floats:
    """Pearson's statistics of tables with these expected counts and their noise."""
    total = max(round(float(counts.sum())), 1)
    shares = (expected / expected.sum()).ravel()
    statistics = []
    each = max(1, NUMBERS // counts.size)
    for start in range(0, draws, each):
        tables = generator.multinomial(total, shares, size=min(each, draws - start)).astype(np.float64)
        tables += noise_sums(mechanism, scale, 1, tables.shape, generator)
        statistics.append(_pearson(tables.reshape(-1, *counts.shape)))
    return np.concatenate(statistics)


def _pearson(tables: Floats) -> Floats:
    """Pearson's statistic of each table; expected counts below 1 count as 1."""
    expected = _expected(tables)
    return np.asarray(((tables - expected) ** 2 / np.maximum(expected, 1.0)).sum(axis=(1, 2)))


def ttest_ind(
    first: pd.DataFrame,
    second: pd.DataFrame,
    column: Hashable,
    *,
    draws: int = DRAWS,
    rng: RandomState = None,
) -> Significance:
    """Test whether a column has equal means in two populations, by released descriptions of two samples.

    Welch's statistic: the difference of the means by the root of its variance, of the samples and the noise.
    For a Boolean column the means are proportions. The samples must have no record in common.

    first, second : releases of `describe`, such as those of records that meet two conditions.
    draws : the number of simulated differences. rng : a seed or generator of the simulation.

    The p-value is NaN if a standard deviation or a count does not stand out of its noise. Near that limit
    stated p-values may reject too often, while the test as a whole does not.

    Raises
    ------
    MetadataError : no such release, or one that was changed.
    ParameterError : a column that is not in both, noise whose distribution is not simulated, or several
        releases.

    >>> import pandas as pd, pdprivacy
    >>> columns = pdprivacy.Column("age", "integer", lower=0, upper=99), pdprivacy.Column("ill", "boolean")
    >>> frame = pd.DataFrame({"age": [10, 20, 90, 60] * 500, "ill": [False, True, True, False] * 500})
    >>> private = pdprivacy.protect(frame, pdprivacy.Domain(columns), epsilon=2)
    >>> ill, others = (private.query(one).dp.describe("age", epsilon=1) for one in ("ill", "not ill"))
    >>> ttest_ind(ill, others, "age", rng=1).pvalue
    0.0001
    """
    generator, size = simulator(rng), whole(draws, "draws", 99, MOST_DRAWS)
    difference, variance, simulated = 0.0, 0.0, np.zeros(size)
    seen: set[str] = set()
    for sign, released in ((1, first), (-1, second)):
        released, facts, scales = _noises(released, "describe", "ttest_ind", "private.dp.describe(...)")
        if not has_hash(column) or column not in released.columns:
            raise ParameterError(f"'column' is not a column of both releases (got {got(column)}).")
        if facts.fingerprint in seen:
            raise ParameterError("The two releases must be of different records, and they are the same.")
        seen.add(facts.fingerprint)
        if [str(label) for label in released.columns].count(str(column)) > 1:
            raise ParameterError(f"Two columns of the release read {str(column)!r}.", "rename one.")
        position = _position(released.columns, column)
        rows, mean, std = released.to_numpy(dtype=np.float64)[:, position].tolist()
        errors = facts.error_of_each("standard_error", released.shape)[:, position]
        if not (rows > 10 and std > 0 and errors[0] < rows / 5 and errors[2] < LARGEST_NOISE * std):
            return Significance(
                math.nan, math.nan, 0, "no p-value: the noise hides a standard deviation or count"
            )
        by_sum = scales.get(f"sum of {column}")
        if by_sum is None:
            raise MetadataError("The release metadata does not hold the scale of the noise.")
        noise = noise_sums(facts.mechanism, by_sum, 1, (1, size), generator)[0] / rows
        own = _deviation(facts.mechanism, by_sum) / rows
        rest = math.sqrt(max(float(errors[1]) ** 2 - own**2, 0.0))  # of the count
        noise += rest * _standard(facts.mechanism, size, generator)
        simulated += std / math.sqrt(rows) * generator.standard_t(rows - 1, size) + noise
        difference += sign * mean
        variance += std**2 / rows + float(errors[1]) ** 2
    root = math.sqrt(variance)
    return _result(difference / root, np.abs(simulated) / root, "the samples and the noise")


def pearsonr(
    released: pd.DataFrame,
    x: Hashable,
    y: Hashable,
    *,
    rows: Any = None,
    draws: int = DRAWS,
    rng: RandomState = None,
) -> Significance:
    """Test whether two columns of a released correlation matrix are uncorrelated.

    The statistic is the released correlation. Under the null hypothesis it is sampling error of variance
    1 / (rows - 1), as of independent columns, plus the noise, whose standard error the release states.

    released : a release of `corr` without constraint.
    rows : the number of records without a null in the columns of the matrix: a number or a released count.
        Taken from the metadata where it is public.
    draws : the number of simulated correlations. rng : a seed or generator of the simulation.

    The p-value is NaN if the standard error of the noise is above 0.2.

    Raises
    ------
    MetadataError : no such release, or one that was changed.
    ParameterError : columns that are not in the matrix, no number of records, noise whose distribution is not
        simulated, several releases.

    >>> import pandas as pd, pdprivacy
    >>> columns = (pdprivacy.Column(name, "float", lower=-1, upper=2) for name in ("a", "b"))
    >>> frame = pd.DataFrame({"a": [0.0, 1.0] * 2000, "b": [0.0, 1.0] * 2000})
    >>> private = pdprivacy.protect(frame, pdprivacy.Domain(tuple(columns)), epsilon=2)
    >>> pearsonr(private.dp.corr(epsilon=1), "a", "b", rows=private.dp.count(epsilon=1), rng=1).pvalue
    0.0001
    """
    released, facts, _ = _noises(released, "corr", "pearsonr", "private.dp.corr(...)")
    generator, size = simulator(rng), whole(draws, "draws", 99, MOST_DRAWS)
    known = has_hash(x) and has_hash(y)
    if not known or x not in released.index or y not in released.columns or x == y:
        raise ParameterError(f"'x' and 'y' must be two columns of the matrix (got {got(x)} and {got(y)}).")
    records = _records(facts, rows)
    cell = _position(released.index, x), _position(released.columns, y)
    correlation = float(released.to_numpy(dtype=np.float64)[cell])
    error = float(facts.error_of_each("standard_error", released.shape)[cell])
    if not (math.isfinite(correlation) and error <= LARGEST_NOISE):
        return Significance(correlation, math.nan, 0, "no p-value: the noise of the correlation is too large")
    simulated = generator.standard_normal(size) / math.sqrt(records - 1)
    simulated += error * _standard(facts.mechanism, size, generator)
    return _result(correlation, np.abs(simulated), "the sample and the noise")


def _records(facts: Metadata, rows: Any) -> float:
    if rows is None:
        rows = facts.rows
    if rows is None:
        raise ParameterError(
            "The number of rows is not public, and 'rows' is not given.",
            f"rows=private.dropna({facts.columns!r}).dp.count(epsilon=0.1).",
        )
    count = doubles(rows, "'rows'").ravel()
    if count.shape != (1,) or not 10 <= count[0] < math.inf:
        raise ParameterError("'rows' must be one number, at least 10.")
    return float(count[0])


def _position(labels: pd.Index[Any], label: Hashable) -> int:
    """The place of a label that is there."""
    return [*labels].index(label)


def _noises(
    released: Any, statistic: str, test: str, example: str
) -> tuple[pd.DataFrame, Metadata, dict[str, float]]:
    """A release of such a statistic before any projection, its metadata, and the scale of each noisy part."""
    if not isinstance(released, pd.DataFrame):
        raise ParameterError(f"{test!r} takes a released DataFrame (got {type(released).__name__}).", example)
    facts = metadata.read(released)
    metadata.check(facts)
    if facts.part is not None or facts.fingerprint != metadata.fingerprint(released):
        raise MetadataError(
            "The numbers are not those that were released, so their noise is not known.",
            "test the released frame before changing it.",
        )
    released = projection.unprojected(released)
    facts = metadata.read(released)
    if facts.statistic != statistic:
        raise MetadataError(f"{test!r} does not test a released {facts.statistic!r}.", example)
    if facts.mechanism not in SUMMED_NOISE or facts.bounding is not None or facts.constraint is not None:
        raise ParameterError(
            f"{test!r} simulates Laplace, geometric and Gaussian noise without bounding or constraint.",
            'mechanism="laplace".',
        )
    if facts.releases != 1:
        raise ParameterError(f"{test!r} takes a single release.", "releases=1.")
    if facts.unit is not None:
        raise ParameterError(
            f"{test!r} takes the records for independent, and those of one unit ({facts.unit!r}) are not.",
            "test releases of one record per unit, protected without 'unit'.",
        )
    scales = facts.scale if isinstance(facts.scale, dict) else {"": facts.scale}
    if not all(isinstance(scale, int | float) and 0 <= scale < math.inf for scale in scales.values()):
        raise MetadataError("The release metadata does not hold the scale of the noise.")
    return released, facts, {name: float(scale) for name, scale in scales.items()}


def _deviation(mechanism: str, scale: float) -> float:
    """The standard deviation of noise; of geometric noise of a large scale, nearly."""
    return scale * MECHANISMS[mechanism].std_per_scale


def _standard(mechanism: str, size: int, generator: np.random.Generator) -> Floats:
    """Noise of standard deviation 1."""
    scale = 1 / _deviation(mechanism, 1.0)
    return np.asarray(noise_sums(mechanism, scale, 1, (1, size), generator)[0])


def _result(statistic: float, simulated: Floats, counted: str) -> Significance:
    """The test of a statistic by the sizes of simulated ones."""
    extreme = int((simulated >= abs(statistic)).sum())
    pvalue = (1 + extreme) / (1 + len(simulated))
    return Significance(statistic, pvalue, len(simulated), f"the p-value counts {counted}")
