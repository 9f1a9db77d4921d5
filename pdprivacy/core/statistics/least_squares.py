"""Least squares from noisy moments, with intervals that include both the noise and the sampling error.

The residuals at the coefficients b of the population are uncorrelated with the regressors. So the noisy sums
of residuals times regressors are sampling error plus a linear combination of the noise of the moments, with
known weights. To first order, the covariance of the coefficients is the covariance of these sums between two
inverses of the moments A of the regressors: s^2 A^-1 + A^-1 V(b) A^-1, with the residual variance s^2 and the
covariance V(b) of the noise. Noise that is not normal has the quantile of Cornish and Fisher (1938), by its
fourth cumulant.

The expansion holds while the noise N in the moments of the regressors is small compared with them. The size
of N is the root of the expected squared Frobenius norm of A^-1/2 N A^-1/2; beyond `NOISE_LIMIT` no interval
is stated. This size depends only on released numbers and on the scale of the noise.

Sources: Wang, "Revisiting differentially private linear regression: optimal and adaptive prediction &
estimation in unbounded domain" (2018), for the release of noisy moments; Fuller, "Measurement error models"
(1987), for the covariance of coefficients whose moments have errors of known covariance; Ferrando, Wang,
Sheldon, "Parametric bootstrap for differentially private confidence intervals" (2022), for intervals of a
population that include the noise and the sampling error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pdprivacy.core.statistics.confidence import NO_NOISE, Ends, Noisy
from pdprivacy.core.statistics.interface import Answer, Part, Quantity, Read, Scope, Statistic, pairs
from pdprivacy.core.statistics.sums import Covariance, shift_of
from pdprivacy.types import Floats, Whole

NOISE_LIMIT = 0.3
"""The largest size of the noise, relative to the moments of the regressors, with a stated interval."""

FEWEST = 10
"""The fewest degrees of freedom with a stated interval."""

GIVEN = "population, given the regressors"
"""The estimand of intervals with a penalty, which makes coefficients depend on the sample's regressors."""

DEPENDENT = "no interval: records of one unit are not independent"

FEW = f"no interval: so few records leave fewer than {FEWEST} degrees of freedom"

NO_INTERVAL = (
    "no interval: the noise is too large for the moments of the regressors; more records, a larger "
    "epsilon, fewer regressors or narrower bounds help"
)


@dataclass(frozen=True)
class LeastSquares(Statistic):
    """Coefficients of least squares, computed from the noisy parts of `Covariance`.

    Parameters
    ----------
    quantities : the regressors, then the response. With weights, the root of the weights comes first, and the
        others are multiplied by this root, in units of half ranges from the middle.
    ranges : the middle and half the range of each regressor, and of the response.
    ridge : the penalty on the squared coefficients except the intercept, in the units of the columns.
    weights : the name of the column of weights and the largest weight, which counts as 1; or None.
    """

    quantities: tuple[Quantity, ...]
    scope: Scope
    ranges: tuple[tuple[float, float], ...]
    ridge: float = 0.0
    weights: tuple[str, float] | None = None
    offsets = None

    @property
    def weighted(self) -> bool:
        """Whether records have weights."""
        return self.weights is not None

    @cached_property
    def covariance(self) -> Covariance:
        """The statistic to whose parts noise is added; with weights, its first products are the sums."""
        return Covariance(self.quantities, self.scope, summed=not self.weighted)

    @property
    def note_beforehand(self) -> str | None:
        """Why there will be no interval, as far as public facts tell; None where there may be one."""
        if self.scope.contribution > 1:
            return DEPENDENT
        rows = self.scope.row_bounds()[1]
        return None if rows is None or rows - len(self.ranges) >= FEWEST else FEW

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.covariance.parts

    @property
    def reads(self) -> tuple[Read, ...]:
        return self.covariance.reads

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        return self.covariance.exact(answers)

    @np.errstate(over="ignore", invalid="ignore")  # noise may be as large as doubles
    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        fit = _Fit(self._moments(noisy), self._penalty(), self._back(), self.scope.contribution == 1)
        center, half = self.ranges[-1]
        name, largest = self.weights or (None, 1.0)
        values = fit.back @ fit.coefficients
        values[0] += center
        error, excess = fit.errors()

        def interval(level: float) -> Ends:
            from scipy.special import ndtri

            z = float(ndtri((1 + level) / 2))
            width = error * (z + excess * (z**3 - 3 * z) / 24)
            return values - width, values + width

        regression = {
            "records": float(fit.moments.rows),
            "degrees_of_freedom": float(fit.freedom),
            "residual_variance": fit.variance * half**2 * largest,
            "r_squared": fit.r_squared,
            "ridge": self.ridge,
            "weights": name,
            "interval_of": (GIVEN if self.ridge else "population") if fit.known else None,
            "note": None if fit.known else NO_INTERVAL if fit.independent else DEPENDENT,
        }
        return Answer(values, error, 0.0, -math.inf, math.inf, interval, regression=regression)

    def _penalty(self) -> Floats:
        """Return the ridge term of the moments of the regressors, in units of half ranges."""
        ridge = self.ridge if self.weights is None else self.ridge / self.weights[1]
        return np.diag([0.0, *(ridge / half**2 for _, half in self.ranges[:-1])])

    def _back(self) -> Floats:
        """Return the matrix that converts coefficients from half ranges to the units of the columns."""
        half = self.ranges[-1][1]
        back = np.diag([half, *(half / width for _, width in self.ranges[:-1])])
        back[0, 1:] = [-half * center / width for center, width in self.ranges[:-1]]
        return back

    def _moments(self, noisy: Sequence[Noisy]) -> _Moments:
        """Return the noisy moments as a matrix."""
        first = 0 if self.weighted else 1  # the place of the first quantity in the matrix
        units = np.ones(first + len(self.quantities))
        if not self.weighted:
            units[1:] = [half for _, half in self.ranges]
        values, std = np.zeros((2, len(units), len(units)))
        shares = np.zeros(len(units))
        count, *others = noisy
        rows = float(count.values[0])
        if not self.weighted:
            values[0, 0], shares[0] = rows, 1.0
        cells = [(0, index + 1) for index in range(len(self.quantities) if first else 0)]
        cells += [(i + first, j + first) for i, j in pairs(len(self.quantities))]
        for (i, j), part in zip(cells, others, strict=True):
            unit = units[i] * units[j]
            values[i, j] = values[j, i] = part.values[0] / unit
            std[i, j] = std[j, i] = part.std / unit
            if i == j:
                q = self.quantities[i - first]
                shares[i] = shift_of(q) / unit
                values[i, i] += shares[i] * rows
        law = count.tail.law
        kurtosis = 0.0 if law.std < NO_NOISE else 2 * law.half_moment(4) / law.std**4 - 3
        return _Moments(values, std, shares, rows, count.std, kurtosis)


@dataclass(frozen=True, slots=True)
class _Moments:
    """The noisy moments of (1, regressors, response), in units of half ranges.

    ``std``: the standard deviation of each entry's own noise. ``shares``: the factor of the noise of the
    count, of standard deviation ``count_std``, in each entry of the diagonal. ``kurtosis``: the excess
    kurtosis of the noise.
    """

    values: Floats
    std: Floats
    shares: Floats
    rows: float
    count_std: float
    kurtosis: float

    @property
    def floor(self) -> float:
        """The size of the noise in the moments of the regressors, as an eigenvalue."""
        noise = self.std[:-1, :-1] ** 2 + np.diag((self.shares[:-1] * self.count_std) ** 2)
        return float(np.sqrt(noise.sum(axis=1).max()))

    def noise_size(self, inverse: Floats) -> float:
        """Return the root of the expected squared Frobenius norm of noise between roots of ``inverse``."""
        own, diagonal, shares = self.std[:-1, :-1] ** 2, np.diagonal(inverse), self.shares[:-1]
        crossed = inverse**2 + np.outer(diagonal, diagonal)
        np.fill_diagonal(crossed, diagonal**2)
        by_count = self.count_std**2 * (np.outer(shares, shares) * inverse**2).sum()
        return math.sqrt(float((own * crossed).sum() + by_count))

    def noise_of(self, weights: Floats, along: Floats) -> tuple[Floats, Floats]:
        """Return the variance and the excess kurtosis of the noise in ``weights @ moments @ along``, per row.

        ``weights``: rows of weights of the regressors; the row of moments with the response has weight 0.
        """
        rows = np.concatenate([weights, np.zeros((len(weights), 1))], axis=1)
        crossed = rows[:, :, np.newaxis] * along
        crossed = crossed + np.swapaxes(crossed, 1, 2)
        i, j = np.triu_indices(len(along), 1)
        diagonal = rows * along
        own = np.concatenate(
            [
                crossed[:, i, j] * self.std[i, j],
                diagonal * np.diagonal(self.std),
                (diagonal @ self.shares)[:, np.newaxis] * self.count_std,
            ],
            axis=1,
        )
        variance = (own**2).sum(axis=1)
        shares = own**2 / np.where(variance > 0, variance, 1.0)[:, np.newaxis]
        return variance, self.kurtosis * (shares**2).sum(axis=1)

    def noise_of_square(self, along: Floats) -> float:
        """Return the standard deviation of the noise in ``along @ moments @ along``."""
        own = np.outer(along, along) * self.std
        variance = 2 * (own**2).sum() - (np.diagonal(own) ** 2).sum()
        return math.sqrt(float(variance + ((along**2 @ self.shares) * self.count_std) ** 2))


@dataclass(frozen=True)
class _Fit:
    """The least squares fit of noisy moments, and its errors.

    ``penalty``: the matrix added to the moments of the regressors. ``back``: the matrix that converts
    coefficients to the units of the columns. ``independent``: whether the records are an independent sample.
    """

    moments: _Moments
    penalty: Floats
    back: Floats
    independent: bool = True

    @cached_property
    def _spectrum(self) -> tuple[Floats, Floats]:
        values, vectors = np.linalg.eigh(self.moments.values[:-1, :-1] + self.penalty)
        return values, vectors

    @cached_property
    def inverse(self) -> Floats:
        """The inverse of the moments of the regressors, with eigenvalues raised to at least the noise."""
        values, vectors = self._spectrum
        return np.asarray((vectors / np.maximum(values, self.moments.floor)) @ vectors.T)

    @cached_property
    def coefficients(self) -> Floats:
        """The coefficients, in units of half ranges."""
        return np.asarray(self.inverse @ self.moments.values[:-1, -1])

    @property
    def along(self) -> Floats:
        """The vector that turns moments into moments with the residuals."""
        return np.append(-self.coefficients, 1.0)

    @property
    def freedom(self) -> float:
        """The degrees of freedom."""
        return max(self.moments.rows - len(self.coefficients), 1.0)

    @cached_property
    def variance(self) -> float:
        """The residual variance, between 0 and the largest possible in the range of the response.

        The noise in the coefficients makes the sum of squared residuals too small on average; the expected
        difference is added.
        """
        values, vectors = self._spectrum
        roots = (vectors / np.sqrt(np.maximum(values, self.moments.floor))).T
        moved = float(self.moments.noise_of(roots, self.along)[0].sum())
        squares = float(self.along @ self.moments.values @ self.along)
        return min(1.0, max(0.0, (squares + moved) / self.freedom))  # 0 and not NaN beyond doubles

    @property
    def r_squared(self) -> float | None:
        """The explained share of the variance of the response; None if this variance is not positive."""
        moments = self.moments.values
        total = moments[-1, -1] - moments[0, -1] ** 2 / max(moments[0, 0], 1.0)
        return None if total <= 0 else float(min(1.0, max(0.0, 1 - self.variance * self.freedom / total)))

    @cached_property
    def known(self) -> bool:
        """Whether the noise is small enough for errors to first order."""
        enough = self.moments.rows - len(self.coefficients) >= FEWEST
        clear = float(self._spectrum[0][0]) > self.moments.floor
        return self.independent and enough and clear and self.moments.noise_size(self.inverse) <= NOISE_LIMIT

    @property
    def _sample_variance(self) -> float:
        """The residual variance that intervals use: without penalty, and enlarged by its own noise.

        Where the noise t of the residual variance s^2 is as large as s^2, s^2 may be 0 by chance. So
        t^2 / (s^2 + t) is added to s^2: 0 to first order where t is small, and t where s^2 is 0.
        """
        plain = replace(self, penalty=np.zeros_like(self.penalty))
        noise = self.moments.noise_of_square(plain.along) / self.freedom
        variance = plain.variance
        return min(1.0, variance + (noise**2 / (variance + noise) if noise > 0 else 0.0))

    def errors(self) -> tuple[Floats, Floats]:
        """Return the standard errors and excess kurtoses of the coefficients, in the units of the columns."""
        if not self.known:
            none = np.full(len(self.coefficients), np.nan)
            return none, none
        weights = self.back @ self.inverse
        noise, kurtosis = self.moments.noise_of(weights, self.along)
        squares = np.einsum("ij,jk,ik->i", weights, self.moments.values[:-1, :-1], weights)
        sample = self._sample_variance * np.maximum(squares, 0.0)
        total = noise + sample
        shares = np.stack([noise, sample]) / np.where(total > 0, total, 1.0)
        # the sample contributes the excess kurtosis of Student's t
        return np.sqrt(total), kurtosis * shares[0] ** 2 + 6 / (self.freedom - 4) * shares[1] ** 2
