"""The Dirichlet prior of the proportions of labels: given, flat, or by maximum likelihood from a table.

An estimate is returned only if it is a maximum; a likelihood that is highest in a limit has no estimate,
and that is an error. The estimates are computed from confidential counts and are confidential too.

Source: F. Liu, X. Zhao, "Disclosure risk from homogeneity attack in differentially privately sanitized
frequency distribution", sections 3.2 and S2. The moment estimates of S2 divide by zero for two labels;
nothing here uses them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdprivacy.errors import ParameterError, got
from pdprivacy.risk.compositions import checked_counts
from pdprivacy.risk.likelihood import Steps, log_grid, moments_of, peaks_of, tally_of

__all__ = ["checked_alpha", "dirichlet_alpha"]

Floats: TypeAlias = NDArray[np.float64]

MOST_ALPHA = 1e15
"""Beyond it a prior is the proportions themselves."""

FLAT = "'alpha' may be given: alpha=\"flat\", or alpha=[...] with one positive number per label."


def _no_alpha(reason: str) -> ParameterError:
    return ParameterError(f"'alpha' has no maximum-likelihood estimate: {reason}.", FLAT)


@dataclass(frozen=True, slots=True, eq=False)
class _Labels:
    """The Dirichlet-multinomial likelihood at alpha = p / phi, with the best p for each phi.

    ``start`` is p at phi = 0; ``extra``, how many labels cells hold beyond the first, summed.
    """

    labels: Steps
    sizes: Steps
    start: Floats
    extra: int

    def proportions(self, phi: float) -> Floats:
        """(K,) the best p, summing to 1.

        The likelihood is concave in p: G_k(p_k) = 1 / (its derivative in p_k) has the same value for
        all k. Each G_k is concave and increasing, so Newton's method on these equations converges.
        """
        shares = self.start
        for _ in range(200):
            inverse = 1 / (shares[self.labels.of] + self.labels.points * phi)
            first = self.labels.sums(inverse)
            second = self.labels.sums(inverse**2)
            slope = first**2 / second
            offset = first / second - shares
            step = slope * ((1 + offset.sum()) / slope.sum()) - offset - shares
            longest = float((-step / shares).max())
            if longest >= 1:  # to within the positive numbers
                step *= 0.9 / longest
            shares = np.asarray(shares + step)
            shares /= shares.sum()
            if abs(step / shares).max() < 1e-9:
                return shares
        raise _no_alpha("the search for it did not converge")

    def slope(self, phi: float) -> float:
        """The derivative of the log-likelihood in phi, p being the best."""
        x, y = self.labels.points, self.sizes.points
        shares = self.proportions(phi)[self.labels.of]
        own, whole = 1 / (shares + x * phi), 1 / (1 + y * phi)
        if self.sizes.sums(whole)[0] > self.sizes.sums(1 - whole)[0]:
            return float(self.labels.sums(x * own).sum() - self.sizes.sums(y * whole)[0])
        # The same with what cancels left out: x phi / (p + x phi) = 1 - p / (p + x phi).
        rest = self.sizes.sums(whole * (y > 0))[0] - self.labels.sums(shares * own * (x > 0)).sum()
        return float(rest - self.extra) / phi

    def value(self, phi: float) -> float:
        """The log-likelihood, p being the best, but for a constant."""
        shares = self.proportions(phi)[self.labels.of]
        mixed = self.labels.sums(np.log(shares + self.labels.points * phi)).sum()
        return float(mixed - self.sizes.sums(np.log1p(self.sizes.points * phi)).sum())

    def relative_score(self, alpha: Floats) -> float:
        """The derivatives in log alpha, relative to what they are the difference of; the largest."""
        total = alpha.sum()
        own = self.labels.sums(alpha[self.labels.of] / (alpha[self.labels.of] + self.labels.points))
        share = alpha / total
        whole = share * self.sizes.sums(total / (total + self.sizes.points)).sum()
        return float((np.abs(own - whole) / own).max())


def dirichlet_alpha(counts: ArrayLike) -> Floats:
    """(K,) maximum-likelihood alpha of Dirichlet-multinomial cells, from counts (N, K).

    The labels of a cell are multinomial given its size, with proportions drawn from a
    Dirichlet(alpha) for each cell. Empty cells add nothing. The best of all maxima is returned,
    to a relative score of 1e-9 or better. A million cells take a second.

    Raises
    ------
    ParameterError : as `Cells.of`; or the likelihood has no maximum:
        no cell holds two records (alpha. is not seen), a label has no record (its alpha falls to
        0), every cell is homogeneous (alpha falls to 0), or the cells differ no more than draws
        from common proportions do (alpha grows without end). No message holds a count.

    Source: the likelihood of section S2; Minka 2000, "Estimating a Dirichlet distribution".

    >>> dirichlet_alpha([[2, 0], [0, 2], [1, 1]]).round(9)
    array([1., 1.])
    """
    table = checked_counts(counts)
    sizes = table.sum(axis=1)
    if sizes.max() < 2:
        raise _no_alpha("no cell of the table has two records, so how much cells differ is not seen")
    if not table.any(axis=0).all():
        raise _no_alpha("a label of the table has no record")
    extra = int((table > 0).sum()) - int((sizes > 0).sum())
    if not extra:
        raise _no_alpha(
            "every cell of the table is homogeneous, and the likelihood grows as alpha falls to 0"
        )
    tallies = [tally_of(table[:, label]) for label in range(table.shape[1])]
    total = tally_of(sizes)
    records, pairs = moments_of(total)
    moments = [moments_of(tally) for tally in tallies]
    share = np.array([own / records for own, _ in moments])
    model = _Labels(Steps.over(tallies), Steps.over([total]), share, extra)

    # At phi = 0 the slope is a rational number.
    slope = sum((Fraction(both * records, own) for own, both in moments), start=Fraction(-pairs))
    # The likelihood is smooth below `low`. From `high` on the slope is negative:
    # phi * slope < (sum over j >= 1 of the cells larger than j, divided by j) / phi - extra.
    low = 1e-3 * min(part / float(values[-1]) for part, (values, _) in zip(share, tallies, strict=True))
    inner = model.sizes.points > 0
    high = 1.01 * float((model.sizes.weights[inner] / model.sizes.points[inner]).sum()) / extra
    grid = [0.0, *log_grid(low, high, per_decade=4)]
    slopes = [float(slope / 2), *(model.slope(phi) for phi in grid[1:])]
    peaks = peaks_of(lambda phi: model.slope(phi) if phi else slopes[0], grid, slopes)
    best = max(peaks, key=model.value, default=0.0)
    if slope <= 0 and best:  # the multinomial is a maximum too
        limit = records * float(share @ np.log(share))
        best = best if model.value(best) > limit + 1e-12 * abs(limit) else 0.0
    if not best:
        raise _no_alpha(
            "the cells of the table differ no more than draws from common proportions do, "
            "and the likelihood grows with alpha without end"
        )
    alpha = model.proportions(best) / best
    if not model.relative_score(alpha) < 1e-9:
        raise _no_alpha("the search for it did not converge")
    return alpha


def checked_alpha(alpha: Any, counts: ArrayLike | None, labels: int) -> Floats:
    """(K,) positive alpha, one per label.

    Parameters
    ----------
    alpha : None, the maximum-likelihood estimate from ``counts`` (N, K); ``"flat"``, 1 for each
        label; a positive number, for each label; or K positive numbers.

    Raises
    ------
    ParameterError : anything else, a wrong number of numbers; as `dirichlet_alpha`.

    >>> checked_alpha("flat", None, 3)
    array([1., 1., 1.])
    """
    if alpha is None:
        if counts is None:
            raise ParameterError("'alpha' cannot be estimated without counts.", FLAT)
        return dirichlet_alpha(counts)
    if isinstance(alpha, str):
        if alpha != "flat":
            raise ParameterError(
                f"'alpha' must be None, 'flat' or positive numbers (got {got(alpha)}).", FLAT
            )
        return np.ones(labels)
    try:
        array = np.asarray(alpha)
    except ValueError:  # a ragged list
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "iuf" or array.ndim > 1:
        raise ParameterError(f"'alpha' must be None, 'flat' or positive numbers (got {got(alpha)}).", FLAT)
    if array.ndim and len(array) != labels:
        raise ParameterError(f"'alpha' must have one number for each of {labels} labels (got {len(array)}).")
    values = np.full(labels, array, dtype=np.float64)
    wrong = ~((values > 0) & (values <= MOST_ALPHA))
    if wrong.any():
        value = f"{values[wrong][0]:g}"
        raise ParameterError(f"'alpha' must be positive and at most {MOST_ALPHA:g} (got {value}).")
    return values
