"""Noise mechanisms: from a sensitivity and a privacy loss to noise of a stated scale.

Every mechanism adds noise that lives on a grid, a power of two well below its
scale, and is drawn exactly with integers (`pdprivacy.noise`), so that no
rounding of floating-point numbers tells anything about the value underneath
(Mironov 2012, "On significance of the least significant bits for differential
privacy"). The distribution functions given here are those of the continuous
noise for `Laplace` and `Gaussian` (the grid is about a millionth of the scale),
and exact for the integer mechanisms `Geometric` and `DiscreteGaussian`.

All mechanisms share: ``loss``, ``scale``, ``std``, ``grid``, ``sample(values,
rng=None)``, ``pdf`` or ``pmf``, ``cdf``, ``ppf``, ``interval(level)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, get_args, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdprivacy import noise
from pdprivacy.errors import ParameterError
from pdprivacy.noise import RandomState, Source
from pdprivacy.privacy import Approx, Pure, Rational, rational

__all__ = ["Calibration", "DiscreteGaussian", "Gaussian", "Geometric", "Laplace", "Mechanism"]

Calibration: TypeAlias = Literal["analytic", "classic", "pdp"]
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

GRID_BITS = 20
"""A grid is at most 2**-20 of the scale of the noise."""

ROUNDING_STEPS = 2**10
"""Where values are rounded to the grid on the way in, the sensitivity grows by this many steps
(2**-20 of it): enough for 2**10 rounded coordinates in the l1 norm and 2**20 in the l2 norm."""

SAFE = Fraction(1 + 2**-30)
"""Calibrated Gaussian scales grow by this factor: it exceeds the rounding of the calibration
and what a grid of 2**-20 sigma adds to the privacy loss of the continuous density."""


@runtime_checkable
class Mechanism(Protocol):
    """What a release needs of its noise."""

    name: ClassVar[str]

    @property
    def loss(self) -> Pure | Approx: ...
    @property
    def scale(self) -> float: ...
    @property
    def std(self) -> float: ...
    @property
    def grid(self) -> Fraction: ...
    def draw(self, size: int, source: Source) -> Integers: ...
    def cdf(self, x: ArrayLike) -> Floats: ...
    def interval(self, level: float = 0.95) -> tuple[float, float]: ...


def _positive(value: Rational, name: str) -> Fraction:
    number = rational(value, name)
    if number <= 0:
        raise ParameterError(f"{name!r} must be positive (got {value}).")
    return number


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ParameterError(f"'level' must be strictly between 0 and 1 (got {level}).")


def _check_probabilities(q: ArrayLike) -> Floats:
    probabilities = np.asarray(q, dtype=np.float64)
    if not bool(np.all((probabilities >= 0) & (probabilities <= 1))):
        raise ParameterError("Probabilities must be in [0, 1].")
    return probabilities


def power_below(size: Fraction) -> Fraction:
    """The largest power of two that is at most ``size``."""
    power = Fraction(2) ** (size.numerator.bit_length() - size.denominator.bit_length())
    return power if power <= size else power / 2


def _rounding_grid(sensitivity: Fraction, scale: Fraction) -> Fraction:
    return power_below(min(sensitivity, scale)) / (2**GRID_BITS * ROUNDING_STEPS)


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise ParameterError(
            f"Rounding to the grid is accounted for up to {most} values (got {size}).",
            "pass grid=, a power of two of which all values are multiples (1 for counts).",
        )


def _check_grid(grid: Rational, sensitivity: Fraction) -> Fraction:
    step = _positive(grid, "grid")
    if step.numerator & (step.numerator - 1) or step.denominator & (step.denominator - 1):
        raise ParameterError(f"'grid' must be a power of two (got {grid}).")
    if (sensitivity / step).denominator != 1:
        raise ParameterError("'sensitivity' must be a whole number of grid steps.")
    return step


def _add_noise(
    values: ArrayLike, grid: Fraction, exact: bool, draw: Callable[[int, Source], Integers], rng: RandomState
) -> Floats:
    """``values`` put on the grid, plus ``draw``n grid steps, as multiples of the grid."""
    step = float(grid)
    array = np.asarray(values, dtype=np.float64)
    if not bool(np.all(np.isfinite(array))):
        raise ParameterError("Values must be finite.")
    units = array / step
    if not bool(np.all(np.abs(units) < 2.0**62)):
        raise ParameterError(f"Values must be below 2**62 grid steps of {step}.")
    rounded = np.rint(units)
    if exact and not np.array_equal(rounded, units):
        raise ParameterError(f"Values must be multiples of the grid {step}.")
    steps = draw(array.size, noise.source(rng)).reshape(array.shape)
    # Both are integers; their sum is an integer, and so a multiple of the grid also where the
    # conversion to a double rounds it.
    return np.asarray((rounded.astype(np.int64) + steps).astype(np.float64) * step)


def _add_integers(values: ArrayLike, draw: Callable[[int, Source], Integers], rng: RandomState) -> Integers:
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ParameterError(f"Values must be integers (got dtype {array.dtype}).")
    steps = draw(array.size, noise.source(rng)).reshape(array.shape)
    return np.asarray(array.astype(np.int64) + steps)


@dataclass(frozen=True, slots=True)
class Laplace:
    """Laplace noise of scale ``sensitivity / epsilon``: epsilon-differentially private.

    Parameters
    ----------
    epsilon : privacy loss, positive; a float, a decimal or fraction as text, or a Fraction.
    sensitivity : l1 sensitivity of the values, positive, in their unit.
    grid : a power of two of which all values are multiples and ``sensitivity`` is a whole number.
        By default 2**-30 below scale and sensitivity; values are then rounded to it, which can
        move two neighbouring vectors a step per coordinate further apart: the scale grows by
        2**-20 of itself for that, which is enough for 1024 values.

    Raises
    ------
    ParameterError : epsilon or sensitivity not positive and finite, a grid that is none.

    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), Proposition 1. On the grid the noise is the discrete
    Laplace distribution of Ghosh, Roughgarden, Sundararajan (2009).

    >>> mechanism = Laplace(epsilon=0.5, sensitivity=1)
    >>> round(mechanism.scale, 4), round(mechanism.std, 4)
    (2.0, 2.8284)
    >>> round(float(mechanism.cdf(0.0)), 2)
    0.5
    """

    name: ClassVar[str] = "laplace"
    epsilon: Fraction
    sensitivity: Fraction
    grid: Fraction
    exact: bool

    def __init__(self, epsilon: Rational, sensitivity: Rational, grid: Rational | None = None) -> None:
        eps, sens = _positive(epsilon, "epsilon"), _positive(sensitivity, "sensitivity")
        step = _rounding_grid(sens, sens / eps) if grid is None else _check_grid(grid, sens)
        object.__setattr__(self, "epsilon", eps)
        object.__setattr__(self, "sensitivity", sens)
        object.__setattr__(self, "grid", step)
        object.__setattr__(self, "exact", grid is not None)

    @property
    def loss(self) -> Pure:
        """What one sample costs."""
        return Pure(self.epsilon)

    @property
    def steps(self) -> Fraction:
        """The scale in grid steps, exact."""
        extra = 0 if self.exact else ROUNDING_STEPS
        return (self.sensitivity / self.grid + extra) / self.epsilon

    @property
    def scale(self) -> float:
        """The scale b of the noise, in the unit of the values."""
        return float(self.steps * self.grid)

    @property
    def std(self) -> float:
        """Standard deviation of the noise, ``sqrt(2) b``."""
        return math.sqrt(2) * self.scale

    def draw(self, size: int, source: Source) -> Integers:
        """``size`` exact draws of the noise in grid steps."""
        return noise.discrete_laplace(self.steps, size, source)

    def sample(self, values: ArrayLike, rng: RandomState = None) -> Floats:
        """``values`` plus independent noise, on the grid; same shape, float64.

        Raises ParameterError where a value is not finite (without the value).
        """
        if not self.exact:
            _check_size(np.size(values), ROUNDING_STEPS)
        return _add_noise(values, self.grid, self.exact, self.draw, rng)

    def pdf(self, x: ArrayLike) -> Floats:
        """Density of the noise."""
        b = self.scale
        return np.asarray(np.exp(-np.abs(np.asarray(x, dtype=np.float64)) / b) / (2 * b))

    def cdf(self, x: ArrayLike) -> Floats:
        """Distribution function of the noise."""
        z = np.asarray(x, dtype=np.float64) / self.scale
        tail = np.exp(-np.abs(z)) / 2
        return np.asarray(np.where(z < 0, tail, 1 - tail))

    def ppf(self, q: ArrayLike) -> Floats:
        """Quantile function of the noise."""
        p = _check_probabilities(q)
        with np.errstate(divide="ignore"):
            return np.asarray(
                self.scale * np.where(p < 0.5, np.log(2 * p), -np.log(2 * (1 - p)))
            )

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The central interval that holds the noise with probability ``level``."""
        _check_level(level)
        half = -self.scale * math.log1p(-level)
        return -half, half


@dataclass(frozen=True, slots=True)
class Geometric:
    """Two-sided geometric (discrete Laplace) noise on the integers: epsilon-differentially private.

    Parameters
    ----------
    epsilon : privacy loss, positive.
    sensitivity : l1 sensitivity of the integer values, a positive whole number.

    Raises
    ------
    ParameterError : epsilon not positive and finite, sensitivity not a positive whole number.

    References
    ----------
    Ghosh, Roughgarden, Sundararajan (2009), "Universally utility-maximizing privacy mechanisms",
    Definition 2.1, with ratio exp(-epsilon / sensitivity).

    >>> mechanism = Geometric(epsilon=1, sensitivity=1)
    >>> mechanism.interval(0.95)
    (-3.0, 3.0)
    >>> round(float(mechanism.pmf(0) / mechanism.pmf(1)), 4)  # exp(1)
    2.7183
    """

    name: ClassVar[str] = "geometric"
    epsilon: Fraction
    sensitivity: Fraction

    def __init__(self, epsilon: Rational, sensitivity: Rational = 1) -> None:
        sens = _positive(sensitivity, "sensitivity")
        if sens.denominator != 1:
            raise ParameterError(f"'sensitivity' must be a whole number (got {sensitivity}).")
        object.__setattr__(self, "epsilon", _positive(epsilon, "epsilon"))
        object.__setattr__(self, "sensitivity", sens)

    @property
    def loss(self) -> Pure:
        """What one sample costs."""
        return Pure(self.epsilon)

    @property
    def grid(self) -> Fraction:
        """The integers."""
        return Fraction(1)

    @property
    def scale(self) -> float:
        """The scale b in P(z) proportional to exp(-abs(z)/b)."""
        return float(self.sensitivity / self.epsilon)

    @property
    def std(self) -> float:
        """Standard deviation of the noise, ``sqrt(2 r) / (1 - r)`` with r = exp(-1/b)."""
        b = self.scale
        return math.sqrt(2) * math.exp(-0.5 / b) / -math.expm1(-1 / b)

    def draw(self, size: int, source: Source) -> Integers:
        """``size`` exact draws of the noise."""
        return noise.discrete_laplace(self.sensitivity / self.epsilon, size, source)

    def sample(self, values: ArrayLike, rng: RandomState = None) -> Integers:
        """Integer ``values`` plus independent noise; same shape, int64."""
        return _add_integers(values, self.draw, rng)

    def pmf(self, z: ArrayLike) -> Floats:
        """Probability of the noise at integers, zero elsewhere."""
        x = np.asarray(z, dtype=np.float64)
        b = self.scale
        mass = math.tanh(0.5 / b) * np.exp(-np.abs(x) / b)
        return np.asarray(np.where(x == np.rint(x), mass, 0.0))

    def cdf(self, x: ArrayLike) -> Floats:
        """Distribution function of the noise."""
        k = np.floor(np.asarray(x, dtype=np.float64))
        b = self.scale
        share = 1 / (1 + math.exp(-1 / b))
        return np.asarray(np.where(k < 0, share * np.exp(k / b), 1 - share * np.exp(-(k + 1) / b)))

    def ppf(self, q: ArrayLike) -> Floats:
        """Smallest integer whose cdf reaches ``q``."""
        p = _check_probabilities(q)
        b = self.scale
        share = 1 / (1 + math.exp(-1 / b))
        with np.errstate(divide="ignore"):
            low = np.ceil(b * np.log(p / share))
            high = np.ceil(-b * np.log((1 - p) / share) - 1)
        k = np.where(p <= share * math.exp(-1 / b), low, high)
        # the logarithm may land one integer off: settle it with the cdf itself
        with np.errstate(invalid="ignore"):
            k = np.where(np.isfinite(k) & (self.cdf(k - 1) >= p), k - 1, k)
            return np.asarray(np.where(np.isfinite(k) & (self.cdf(k) < p), k + 1, k))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The smallest symmetric integer interval that holds the noise with at least ``level``."""
        _check_level(level)
        half = float(max(self.ppf((1 + level) / 2), 0.0))
        while half > 0 and float(self.cdf(half - 1) - self.cdf(-half)) >= level:
            half -= 1
        return -half, half


def gaussian_delta(epsilon: float, multiplier: float) -> float:
    """The smallest delta of Gaussian noise of standard deviation ``multiplier`` times the l2 sensitivity.

    Source: Balle, Wang (2018), "Improving the Gaussian mechanism for differential privacy",
    Theorem 8, written with scaled complementary error functions so that neither a large epsilon
    nor a small delta cancels.

    >>> round(gaussian_delta(1.0, 3.7304), 8)
    1e-05
    """
    from scipy.special import erfcx, ndtr

    upper = 1 / (2 * multiplier) - epsilon * multiplier
    lower = -1 / (2 * multiplier) - epsilon * multiplier
    scaled = math.exp(-upper * upper / 2) / 2  # exp(epsilon) phi(lower) = phi(upper)
    second = scaled * float(erfcx(-lower / math.sqrt(2)))
    if upper < 0:
        return scaled * float(erfcx(-upper / math.sqrt(2))) - second
    return float(ndtr(upper)) - second


def _smallest(meets: Callable[[float], bool]) -> float:
    """The smallest positive number that meets a monotone condition, from the side that meets it."""
    low, high = 0.0, 1.0
    while not meets(high):
        low, high = high, high * 2
    if low == 0.0:
        low = high / 2
        while meets(low):
            low, high = low / 2, low
    while high - low > high * 2.0**-44:
        middle = (low + high) / 2
        if meets(middle):
            high = middle
        else:
            low = middle
    return high


@lru_cache(maxsize=1024)
def noise_multiplier(epsilon: Fraction, delta: Fraction, calibration: Calibration = "analytic") -> Fraction:
    """Standard deviation of Gaussian noise per unit of l2 sensitivity, on the safe side.

    ``"analytic"``: the smallest one (Balle, Wang 2018, Algorithm 1). ``"classic"``:
    ``sqrt(2 ln(1.25/delta)) / epsilon`` (Dwork, Roth 2014, Theorem A.1), epsilon below 1 only.
    ``"pdp"``: probabilistic differential privacy, Liu (2019), the formula
    ``(sqrt(z^2 + 2 epsilon) - z) / (2 epsilon)`` with z the delta/2 quantile of the normal.

    Raises
    ------
    ParameterError : unknown calibration, delta zero, "classic" with epsilon of 1 or more.
    """
    if calibration not in get_args(Calibration):
        raise ParameterError(
            f"'calibration' must be one of 'analytic', 'classic', 'pdp' (got {calibration!r})."
        )
    if delta <= 0:
        raise ParameterError(
            "'delta' must be positive for Gaussian noise (got 0).",
            'pass delta=1e-6, or mechanism="laplace", which needs none.',
        )
    eps, slack = float(epsilon), float(delta)
    if calibration == "classic":
        if epsilon >= 1:
            raise ParameterError(
                f"calibration='classic' holds for 'epsilon' below 1 only (got {eps:g}).",
                'use calibration="analytic", which holds everywhere and needs less noise.',
            )
        multiplier = math.sqrt(2 * math.log(1.25 / slack)) / eps
    elif calibration == "pdp":
        from scipy.special import ndtri

        z = float(ndtri(slack / 2))
        multiplier = (math.sqrt(z * z + 2 * eps) - z) / (2 * eps)
    else:
        # a relative margin of 1e-9 is above the rounding of `gaussian_delta`
        multiplier = _smallest(lambda m: gaussian_delta(eps, m) <= slack * (1 - 1e-9))
    return Fraction(multiplier) * SAFE


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Gaussian noise: (epsilon, delta)-differentially private for any epsilon.

    Parameters
    ----------
    epsilon : privacy loss, positive.
    delta : slack, in (0, 1).
    sensitivity : l2 sensitivity of the values (of the whole vector), positive, in their unit.
    calibration : "analytic" (least noise), "classic" (epsilon below 1 only) or "pdp"
        (probabilistic differential privacy).
    grid : as for `Laplace`; sigma must be at least 2**20 grid steps.

    Raises
    ------
    ParameterError : a parameter out of range; "classic" with epsilon of 1 or more.

    References
    ----------
    Balle, Wang (2018); Dwork, Roth (2014), Appendix A; Liu (2019) for "pdp". On the grid the
    noise is the discrete Gaussian of Canonne, Kamath, Steinke (2020).

    >>> round(Gaussian(epsilon=1, delta=1e-5, sensitivity=1).scale, 3)
    3.73
    >>> round(Gaussian(epsilon=1, delta=1e-5, sensitivity=1, calibration="pdp").scale, 4)
    4.5276
    """

    name: ClassVar[str] = "gaussian"
    epsilon: Fraction
    delta: Fraction
    sensitivity: Fraction
    calibration: Calibration
    grid: Fraction
    exact: bool
    multiplier: Fraction

    def __init__(
        self,
        epsilon: Rational,
        delta: Rational,
        sensitivity: Rational,
        calibration: Calibration = "analytic",
        grid: Rational | None = None,
    ) -> None:
        loss = Approx(epsilon, delta)
        sens = _positive(sensitivity, "sensitivity")
        multiplier = noise_multiplier(loss.epsilon, loss.delta, calibration)
        if grid is None:
            step = _rounding_grid(sens, sens * multiplier)
        else:
            step = _check_grid(grid, rational(grid, "grid"))
            if sens * multiplier < step * 2**GRID_BITS:
                raise ParameterError("'grid' must be at most 2**-20 of the scale.")
        object.__setattr__(self, "epsilon", loss.epsilon)
        object.__setattr__(self, "delta", loss.delta)
        object.__setattr__(self, "sensitivity", sens)
        object.__setattr__(self, "calibration", calibration)
        object.__setattr__(self, "grid", step)
        object.__setattr__(self, "exact", grid is not None)
        object.__setattr__(self, "multiplier", multiplier)

    @property
    def loss(self) -> Approx:
        """What one sample costs."""
        return Approx(self.epsilon, self.delta)

    @property
    def steps(self) -> Fraction:
        """Sigma in grid steps, exact."""
        extra = 0 if self.exact else ROUNDING_STEPS
        return (self.sensitivity / self.grid + extra) * self.multiplier

    @property
    def scale(self) -> float:
        """The standard deviation sigma of the noise, in the unit of the values."""
        return float(self.steps * self.grid)

    @property
    def std(self) -> float:
        """The same as ``scale``."""
        return self.scale

    def draw(self, size: int, source: Source) -> Integers:
        """``size`` exact draws of the noise in grid steps."""
        return noise.discrete_gaussian(self.steps**2, size, source)

    def sample(self, values: ArrayLike, rng: RandomState = None) -> Floats:
        """``values`` plus independent noise, on the grid; same shape, float64."""
        if not self.exact:
            _check_size(np.size(values), ROUNDING_STEPS**2)
        return _add_noise(values, self.grid, self.exact, self.draw, rng)

    def pdf(self, x: ArrayLike) -> Floats:
        """Density of the noise."""
        z = np.asarray(x, dtype=np.float64) / self.scale
        return np.asarray(np.exp(-z * z / 2) / (self.scale * math.sqrt(2 * math.pi)))

    def cdf(self, x: ArrayLike) -> Floats:
        """Distribution function of the noise."""
        from scipy.special import ndtr

        return np.asarray(ndtr(np.asarray(x, dtype=np.float64) / self.scale))

    def ppf(self, q: ArrayLike) -> Floats:
        """Quantile function of the noise."""
        from scipy.special import ndtri

        return np.asarray(self.scale * ndtri(_check_probabilities(q)))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The central interval that holds the noise with probability ``level``."""
        _check_level(level)
        half = float(self.ppf((1 + level) / 2))
        return -half, half


def _discrete_masses(sigma: float, reach: int) -> tuple[Floats, Floats]:
    """The integers within ``reach`` and their discrete Gaussian probabilities."""
    z = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(-z * z / (2 * sigma * sigma))
    return z, weights / math.fsum(weights)


def discrete_gaussian_delta(epsilon: float, sigma: float, sensitivity: int) -> float:
    """The smallest delta of one integer query under discrete Gaussian noise, by exact summation.

    Source: Canonne, Kamath, Steinke (2020), Theorem 7.
    """
    # beyond 40 sigma a term is below the smallest double
    z, p = _discrete_masses(sigma, math.ceil(40 * sigma) + sensitivity)
    shifted = np.zeros_like(p)
    shifted[sensitivity:] = p[:-sensitivity]
    with np.errstate(over="ignore"):
        gain = shifted - np.exp(min(epsilon, 700.0)) * p
    return float(math.fsum(gain[gain > 0]))


@lru_cache(maxsize=256)
def _discrete_sigma(epsilon: Fraction, delta: Fraction, sensitivity: int) -> Fraction:
    start = float(noise_multiplier(epsilon, delta)) * sensitivity
    if start > 2.0**16:
        # the grid of the integers is then below 2**-16 sigma and the continuous calibration,
        # grown by far more than the lattice adds, is as good
        return Fraction(start * (1 + 1e-6))
    sigma = start * 0.9 if start < 64 else start
    # delta is not exactly monotone in sigma on a lattice: walk up until it is met, so that the
    # value returned has been checked itself
    while discrete_gaussian_delta(float(epsilon), sigma, sensitivity) > float(delta) * (1 - 1e-9):
        sigma *= 1.001
    return Fraction(sigma)


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Discrete Gaussian noise on the integers for one query: (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : privacy loss, positive.
    delta : slack, in (0, 1).
    sensitivity : sensitivity of the single integer query, a positive whole number. (For a
        vector the exact loss depends on its direction; use `Gaussian`.)

    Raises
    ------
    ParameterError : a parameter out of range.

    References
    ----------
    Canonne, Kamath, Steinke (2020), "The discrete Gaussian for differential privacy", Theorem 7:
    sigma is the smallest of a fine ladder whose exact delta is at most the stated one.

    >>> mechanism = DiscreteGaussian(epsilon=1, delta=1e-5)
    >>> bool(abs(mechanism.scale - Gaussian(1, 1e-5, 1).scale) < 0.05)
    True
    """

    name: ClassVar[str] = "discrete_gaussian"
    epsilon: Fraction
    delta: Fraction
    sensitivity: Fraction
    sigma: Fraction

    def __init__(self, epsilon: Rational, delta: Rational, sensitivity: Rational = 1) -> None:
        loss = Approx(epsilon, delta)
        sens = _positive(sensitivity, "sensitivity")
        if sens.denominator != 1:
            raise ParameterError(f"'sensitivity' must be a whole number (got {sensitivity}).")
        object.__setattr__(self, "epsilon", loss.epsilon)
        object.__setattr__(self, "delta", loss.delta)
        object.__setattr__(self, "sensitivity", sens)
        object.__setattr__(self, "sigma", _discrete_sigma(loss.epsilon, loss.delta, int(sens)))

    @property
    def loss(self) -> Approx:
        """What one sample costs."""
        return Approx(self.epsilon, self.delta)

    @property
    def grid(self) -> Fraction:
        """The integers."""
        return Fraction(1)

    @property
    def scale(self) -> float:
        """The parameter sigma in P(z) proportional to exp(-z^2 / (2 sigma^2))."""
        return float(self.sigma)

    @property
    def std(self) -> float:
        """Standard deviation of the noise, slightly below sigma."""
        z, p = self._masses()
        return math.sqrt(math.fsum(z * z * p))

    def _masses(self) -> tuple[Floats, Floats]:
        return _discrete_masses(self.scale, math.ceil(40 * self.scale) + 1)

    def draw(self, size: int, source: Source) -> Integers:
        """``size`` exact draws of the noise."""
        return noise.discrete_gaussian(self.sigma**2, size, source)

    def sample(self, values: ArrayLike, rng: RandomState = None) -> Integers:
        """Integer ``values`` plus independent noise; same shape, int64."""
        return _add_integers(values, self.draw, rng)

    def pmf(self, z: ArrayLike) -> Floats:
        """Probability of the noise at integers, zero elsewhere."""
        x = np.asarray(z, dtype=np.float64)
        grid, p = self._masses()
        mass = p[len(p) // 2] * np.exp(-x * x / (2 * self.scale**2))
        return np.asarray(np.where(x == np.rint(x), mass, 0.0))

    def cdf(self, x: ArrayLike) -> Floats:
        """Distribution function of the noise."""
        z, p = self._masses()
        k = np.floor(np.asarray(x, dtype=np.float64)) - z[0]
        total = np.concatenate([[0.0], np.minimum(np.cumsum(p), 1.0)])
        return np.asarray(total[np.clip(k + 1, 0, len(p)).astype(np.int64)])

    def ppf(self, q: ArrayLike) -> Floats:
        """Smallest integer whose cdf reaches ``q``."""
        probabilities = _check_probabilities(q)
        z, p = self._masses()
        index = np.searchsorted(np.minimum(np.cumsum(p), 1.0), probabilities, side="left")
        return np.asarray(np.where(index < len(z), z[np.minimum(index, len(z) - 1)], np.inf))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The smallest symmetric integer interval that holds the noise with at least ``level``."""
        _check_level(level)
        z, p = self._masses()
        middle = len(p) // 2
        held = np.cumsum(np.concatenate([[p[middle]], 2 * p[middle + 1 :]]))
        half = float(np.searchsorted(held, level, side="left"))
        return -half, half


MECHANISMS: dict[str, Any] = {
    kind.name: kind for kind in (Laplace, Geometric, Gaussian, DiscreteGaussian)
}
"""The mechanisms by the name that releases and metadata use."""
