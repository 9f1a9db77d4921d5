"""Selection: the best of many candidates by whole-number scores, with a bounded privacy loss, drawn exactly.

A score's ``sensitivity`` is the most that it moves between neighbours. Scores are *monotone* if between
neighbours all of them move the same way, none up while another one moves down: counts of records, where
one record more or less is a neighbour. Then half the noise is enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from pdprivacy.checks import flag, one_of, proportion, real, reals, whole
from pdprivacy.core.mechanisms.additive import Additive, add, check_source, whole_sensitivity
from pdprivacy.core.mechanisms.geometric import Geometric
from pdprivacy.core.mechanisms.support import FURTHEST
from pdprivacy.core.noise import Source
from pdprivacy.core.noise.choice import Rest, Weights, flips
from pdprivacy.core.privacy import Approx, Pure, Rational, loss, positive
from pdprivacy.errors import ParameterError
from pdprivacy.types import Floats, Integers, settle

SelectionName: TypeAlias = Literal["permute_and_flip", "exponential", "noisy_max"]
SelectionNoise: TypeAlias = Literal["laplace", "exponential", "gaussian"]

SelectionCalibration: TypeAlias = Literal["published"]

LARGEST_SCALE = Fraction(10**100)
MOST_RELEASES = 10_000
"""The largest number of releases that share one loss."""

PANELS, NODES, AT_ONCE = 48, 64, 2**20
"""The quadrature: panels are halved towards zero, where a product of many factors has all its mass."""

NEGLIGIBLE = 45
"""Scales of Laplace noise beyond which its probability is below 2**-64."""


@lru_cache(maxsize=1)
def _quadrature() -> tuple[Floats, Floats]:
    """Nodes and weights of Gauss and Legendre on each of the panels [1/2, 1], [1/4, 1/2], ... of [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    high = 0.5 ** np.arange(PANELS)
    low = np.append(high[1:], 0.0)
    half = (high - low)[:, np.newaxis] / 2
    return (low[:, np.newaxis] + half * (nodes + 1)).ravel(), (half * weights).ravel()


def _checked(scores: Any) -> Integers:
    array = reals(scores, "'scores'")
    if array.dtype.kind not in "iu" or array.ndim != 1 or array.size == 0:
        raise ParameterError("'scores' must be a non-empty array of whole numbers of shape (n,).")
    if max(abs(int(array.max())), abs(int(array.min()))) >= FURTHEST:
        raise ParameterError("'scores' must be below 2**61 in size.")
    return array.astype(np.int64)


@dataclass(frozen=True)
class _Selection:
    """A mechanism that selects a candidate by its score."""

    epsilon: Fraction
    sensitivity: Fraction
    monotone: bool

    def __init__(self, epsilon: Rational, sensitivity: Rational = 1, monotone: bool = False) -> None:
        settle(
            self,
            epsilon=positive(epsilon, "epsilon"),
            sensitivity=positive(sensitivity, "sensitivity"),
            monotone=flag(monotone, "monotone"),
        )

    @property
    def _difference_sensitivity(self) -> Fraction:
        """The sensitivity of the difference of two scores."""
        return self.sensitivity * (1 if self.monotone else 2)

    @property
    def loss(self) -> Pure:
        """The privacy loss of one selection."""
        return Pure(self.epsilon)


@dataclass(frozen=True)
class _Decaying(_Selection):
    """A mechanism that weighs a score u as exp(u / scale)."""

    def __init__(self, epsilon: Rational, sensitivity: Rational = 1, monotone: bool = False) -> None:
        super().__init__(epsilon, sensitivity, monotone)
        if not 1 / LARGEST_SCALE <= self.steps <= LARGEST_SCALE:
            raise ParameterError("The scale of the selection must be between 1e-100 and 1e100.")

    @cached_property
    def steps(self) -> Fraction:
        """The scale, exact: 2 sensitivity / epsilon, and half of it for monotone scores."""
        return self._difference_sensitivity / self.epsilon

    @property
    def scale(self) -> float:
        """The scale of the scores."""
        return float(self.steps)

    def select(self, scores: Any, source: Source) -> int:
        """The index of a candidate, drawn exactly."""
        raise NotImplementedError

    def _best(self, counts: Integers, candidates: int, number: int, source: Source) -> tuple[int, ...]:
        """Return the positions of ``number`` of the first candidates, selected one after the other."""
        remaining, scores = np.arange(candidates), counts[:candidates]
        selected = []
        for _ in range(number):
            best = self.select(scores, source)
            selected.append(int(remaining[best]))
            remaining, scores = np.delete(remaining, best), np.delete(scores, best)
        return tuple(selected)

    def _below_best(self, candidates: int, number: int, level: float) -> float:
        """Return the distance from the best score left that each of ``number`` selected ones keeps."""
        return self.shortfall(candidates, 1 - (1 - level) / number)

    def times(self, count: int) -> Self:
        """The mechanism that costs an equal share of this one's loss, for ``count`` selections in a row."""
        return type(self)(self.epsilon / whole(count, "count", 1), self.sensitivity, self.monotone)

    def shortfall(self, candidates: float, level: float = 0.95) -> float:
        """Return the distance from the best score that the selected one keeps with probability ``level``."""
        level = proportion(level, "level")
        return self.scale * (math.log(real(candidates, "candidates", 1)) - math.log1p(-level))


@dataclass(frozen=True, init=False)
class ExponentialMechanism(_Decaying):
    """The exponential mechanism: candidate i with probability proportional to exp(u_i / scale).

    Its scale is 2 sensitivity / epsilon, for monotone scores sensitivity / epsilon. Epsilon-differentially
    private: between neighbours u_i / scale moves by d_i, and the logarithm of a probability by at
    most max d - min d (its own weight by d_i, the sum of all weights by a factor between exp(min d) and
    exp(max d)). For scores that move either way, max d - min d is at most 2 sensitivity / scale; of
    monotone ones, for which all d have one sign, at most sensitivity / scale.

    Parameters
    ----------
    epsilon : privacy loss, positive.
    sensitivity : the largest difference of a score between neighbours, positive.
    monotone : whether all scores move the same way between neighbours.

    Raises
    ------
    ParameterError : epsilon or sensitivity not positive and finite, or a scale out of range.

    References
    ----------
    McSherry, Talwar (2007), "Mechanism design via differential privacy", Theorem 6; the utility, which
    ``shortfall`` states, by Theorem 7 as in Dwork, Roth (2014), Theorem 3.11.

    >>> mechanism = ExponentialMechanism(epsilon=1, sensitivity=1, monotone=True)
    >>> mechanism.probabilities([0, 1]).round(4).tolist()  # odds of exp(1)
    [0.2689, 0.7311]
    """

    name: ClassVar[str] = "exponential"

    def select(self, scores: Any, source: Source) -> int:
        """The index of a candidate, drawn exactly."""
        array = _checked(scores)
        check_source(source)
        return self._weights(np.ones(len(array), np.int64), array.max() - array).draw(source)

    def _weights(
        self, lengths: Integers, deficits: Integers, parts: int = 1, rest: Rest | None = None
    ) -> Weights:
        """Runs of equal candidates, ``lengths`` many each, to draw from in proportion to their probability.

        ``deficits``: how far their scores are below the best one, in 1 / ``parts``.
        ``rest``: see ``Weights``.
        """
        return Weights(lengths, deficits, 1 / (self.steps * parts), rest)

    def probabilities(self, scores: Any) -> Floats:
        """The distribution of `select`, to fourteen digits."""
        array = _checked(scores)
        weights = np.exp((array - array.max()) / self.scale)
        return np.asarray(weights / math.fsum(weights))


@dataclass(frozen=True, init=False)
class PermuteAndFlip(_Decaying):
    """Permute-and-flip: the first candidate, in random order, whose coin exp((u_i - max u) / scale) shows.

    The same as report noisy max with one-sided exponential noise of that scale (Ding et al. 2021), and
    never worse than the exponential mechanism, whose scale it has: 2 sensitivity / epsilon, for monotone
    scores sensitivity / epsilon. Epsilon-differentially private: with the noise of all others fixed,
    candidate i wins if its own exceeds a threshold, which moves by at most 2 sensitivity between
    neighbours, and by at most sensitivity where all scores move the same way; the tail of exponential
    noise beyond a threshold that moves by t changes by a factor of at most exp(t / scale).

    The winner is drawn as one of the candidates whose coin shows, all with equal probability: the order is
    independent of the coins.

    Parameters and errors as for `ExponentialMechanism`.

    References
    ----------
    McKenna, Sheldon (2020), "Permute-and-flip: a new mechanism for differentially private selection",
    Algorithm 1; Ding, Kifer, Saghaian, Steinke, Wang, Xiao, Zhang (2021), "The permute-and-flip
    mechanism is identical to report-noisy-max with exponential noise".

    >>> PermuteAndFlip(epsilon=1, sensitivity=1, monotone=True).probabilities([0, 1]).round(4).tolist()
    [0.1839, 0.8161]
    """

    name: ClassVar[str] = "permute_and_flip"

    def select(self, scores: Any, source: Source) -> int:
        """The index of a candidate, drawn exactly."""
        array = _checked(scores)
        check_source(source)
        heads = np.flatnonzero(flips(array.max() - array, 1 / self.steps, source))
        return int(heads[source.below(len(heads))])

    def probabilities(self, scores: Any) -> Floats:
        """The distribution of `select`, to twelve digits: p_i = q_i ∫ Π_{j ≠ i} (1 - q_j s) ds over [0, 1].

        q are the coins, and 1 / (1 + others that show) is the integral of s to the power of the others.
        """
        array = _checked(scores)
        coins, which, times = np.unique(
            np.exp((array - array.max()) / self.scale), return_inverse=True, return_counts=True
        )
        nodes, weights = _quadrature()
        integrals = np.zeros(len(coins))
        size = max(AT_ONCE // len(coins), 1)
        for start in range(0, len(nodes), size):
            logs = np.log1p(-np.outer(nodes[start : start + size], coins))
            integrals += weights[start : start + size] @ np.exp((logs @ times)[:, np.newaxis] - logs)
        return np.asarray((coins * integrals)[which])


@dataclass(frozen=True)
class NoisyMax(_Selection):
    """Report noisy max with discrete Laplace noise: the first candidate with the largest noisy score.

    The scale of the noise is 2 sensitivity / epsilon, for monotone scores sensitivity / epsilon.
    Epsilon-differentially private: with the noise of all others fixed, candidate i wins if its own is at
    least a whole number m, which the fixed order of the candidates settles for ties too. Between
    neighbours m moves by a whole number of at most 2 sensitivity, of at most sensitivity where all scores
    move the same way, and P(noise >= m + t) >= exp(-t / scale) P(noise >= m) of discrete Laplace noise.

    With Gaussian noise, the largest count is one of a whole noisy histogram, which costs what the
    histogram does: see `Gaussian`.

    Parameters
    ----------
    epsilon : privacy loss, positive.
    sensitivity : the largest difference of a score between neighbours, a positive whole number.
    monotone : whether all scores move the same way between neighbours.

    Raises
    ------
    ParameterError : as `Geometric`.

    References
    ----------
    Dwork, Roth (2014), "The algorithmic foundations of differential privacy", Claim 3.9.

    >>> NoisyMax(epsilon=1, sensitivity=1, monotone=True).noise.scale
    1.0
    """

    name: ClassVar[str] = "noisy_max"
    noise: Geometric = field(init=False, repr=False, compare=False)
    """The noise of each score."""

    def __init__(self, epsilon: Rational, sensitivity: Rational = 1, monotone: bool = False) -> None:
        super().__init__(epsilon, whole_sensitivity(sensitivity), monotone)
        settle(self, noise=Geometric(self.epsilon, self._difference_sensitivity))

    @property
    def scale(self) -> float:
        """The scale of the noise."""
        return self.noise.scale

    def select(self, scores: Any, source: Source) -> int:
        """The index of a candidate, drawn exactly."""
        array = _checked(scores)
        return int(np.argmax(array + self.noise.draw(len(array), source)))

    def shortfall(self, candidates: float, level: float = 0.95) -> float:
        """Return the distance from the best score that the selected one keeps with probability ``level``.

        It is twice the bound that all noise stays below in absolute value with that probability.
        """
        level = proportion(level, "level")
        return 2 * self.noise.interval(1 - (1 - level) / real(candidates, "candidates", 1, 2**50))[1]

    def probabilities(self, scores: Any) -> Floats:
        """The distribution of `select`, to twelve digits, by the distribution function of the noise."""
        array = _checked(scores)
        reach = math.ceil((NEGLIGIBLE + math.log(len(array))) * self.scale) + 2
        # the largest noisy score is hardly ever farther than that from the largest score
        z = np.arange(int(array.max()) - reach, int(array.max()) + reach + 1) - array[:, np.newaxis]
        with np.errstate(divide="ignore"):
            # earlier candidates must be below, as they win ties; later ones may be equal
            below, most = np.log(self.noise.cdf(z - 1)), np.log(self.noise.cdf(z))
        others = np.zeros(z.shape)
        others[1:] += np.cumsum(below[:-1], axis=0)
        others[:-1] += np.cumsum(most[:0:-1], axis=0)[::-1]
        return np.asarray((self.noise.pmf(z) * np.exp(others)).sum(axis=1))


@dataclass(frozen=True)
class LargestCounts:
    """The largest of noisy counts: any selection from a noisy histogram is post-processing.

    Parameters
    ----------
    noise : the noise of each count, calibrated to the whole histogram.
    sensitivity : the sensitivity of the histogram that the noise is calibrated to.
    """

    noise: Additive
    sensitivity: float

    @property
    def scale(self) -> float:
        """The scale of the noise."""
        return self.noise.scale

    def _best(self, counts: Integers, candidates: int, number: int, source: Source) -> tuple[int, ...]:
        """Return the positions of the largest of the first candidates, in any order of equal numbers."""
        noisy = add(counts, Fraction(1), self.noise, source)[:candidates]
        return tuple(np.argsort(-noisy, kind="stable")[:number].tolist())

    def _below_best(self, candidates: int, number: int, level: float) -> float:  # noqa: ARG002
        """Return the distance from the best count left that each selected one keeps, however many there are.

        Two candidates may change places within twice the bound of all noise at this level.
        """
        return 2 * self.noise.interval(1 - (1 - level) / candidates)[1]


SELECTIONS: dict[str, type[PermuteAndFlip] | type[ExponentialMechanism]] = {
    "permute_and_flip": PermuteAndFlip,
    "exponential": ExponentialMechanism,
}
"""The mechanisms that weigh scores, by name."""


@dataclass(frozen=True)
class Choosing:
    """Parameters of a selection: its cost, mechanism and noise, checked before anything is charged.

    Parameters
    ----------
    epsilon, delta : the loss of all ``releases`` together; delta for Gaussian noise alone.
    mechanism : "permute_and_flip", "exponential" or "noisy_max".
    noise : of "noisy_max": "laplace" (None), "gaussian", or "exponential", which is permute-and-flip.
    releases : how many independent selections share the loss.
    calibration : "published" for the scale 2 sensitivity / epsilon for monotone scores, too, which need half.

    Raises
    ------
    ParameterError : an unknown name, or arguments that do not fit each other.

    >>> Choosing(1, mechanism="noisy_max", noise="exponential").drawn
    'permute_and_flip'
    """

    epsilon: Fraction
    delta: Fraction
    mechanism: SelectionName
    noise: SelectionNoise | None
    releases: int
    calibration: SelectionCalibration | None

    def __init__(
        self,
        epsilon: Rational,
        delta: Rational = 0,
        *,
        mechanism: SelectionName = "permute_and_flip",
        noise: SelectionNoise | None = None,
        releases: int = 1,
        calibration: SelectionCalibration | None = None,
    ) -> None:
        one_of(calibration, "calibration", ("published", None))
        one_of(mechanism, "mechanism", ("permute_and_flip", "exponential", "noisy_max"))
        one_of(noise, "noise", ("laplace", "exponential", "gaussian", None))
        if noise is not None and mechanism != "noisy_max":
            raise ParameterError(
                "'noise' is for report noisy max.", f'mechanism="noisy_max", noise="{noise}".'
            )
        releases = whole(releases, "releases", 1, MOST_RELEASES)
        if mechanism == "noisy_max" and noise is None:
            noise = "laplace"
        if calibration is not None and noise in ("laplace", "gaussian"):
            raise ParameterError(
                "calibration='published' is for the exponential mechanism and for exponential noise.",
                'mechanism="exponential", calibration="published".',
            )
        cost = loss(epsilon, delta)
        if (cost.delta > 0) != (noise == "gaussian"):
            raise ParameterError(
                "'delta' is for Gaussian noise, and needed there.",
                'mechanism="noisy_max", noise="gaussian", delta=1e-6.',
            )
        settle(
            self,
            epsilon=cost.epsilon,
            delta=cost.delta,
            mechanism=mechanism,
            noise=noise,
            releases=releases,
            calibration=calibration,
        )

    @property
    def cost(self) -> Pure | Approx:
        """The loss of all releases together."""
        return loss(self.epsilon, self.delta)

    def with_cost(self, cost: Pure | Approx) -> Choosing:
        """The same selection at another cost."""
        return replace(self, epsilon=cost.epsilon, delta=cost.delta)

    @property
    def drawn(self) -> str:
        """The mechanism that is drawn: that of `SELECTIONS`, or the noise on a histogram."""
        if self.mechanism == "noisy_max" and self.noise != "exponential":
            return "geometric" if self.noise == "laplace" else "gaussian"
        return "permute_and_flip" if self.mechanism == "noisy_max" else self.mechanism

    @property
    def title(self) -> str:
        """The mechanism as the budget lists it."""
        title = self.mechanism if self.noise is None else f"{self.mechanism}, {self.noise} noise"
        return title if self.calibration is None else f"{title}, {self.calibration} scale"

    @property
    def each(self) -> Pure | Approx:
        """The loss of one of the releases."""
        return loss(self.cost.epsilon / self.releases, self.cost.delta / self.releases)
