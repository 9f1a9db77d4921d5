"""Zero-concentrated differential privacy, and its conversion to epsilon and delta.

A conversion is an infimum over an order alpha, and every alpha gives a bound. A search finds alpha in
floating point, and the bound at this alpha is computed in decimals that are rounded to the safe side.
The search misses the infimum by less than 1e-12 of the bound.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

from pdprivacy.errors import ParameterError, check_one_of, got
from pdprivacy.exact import bisect, exp_up, float_up, log_up, root_up
from pdprivacy.privacy import ZCDP, Loss, Rational, check_loss, positive, rational

__all__ = ["Conversion", "check_slack", "zcdp_delta", "zcdp_epsilon", "zcdp_of", "zcdp_rho"]

Conversion: TypeAlias = Literal["tight", "bun_steinke"]

CANCELS = Fraction(1, 10**6)
"""The epsilon below which the tight conversion cancels in doubles."""

LEAST_SLACK = Fraction(1, 10**290)
LARGEST = 10**290
REACCOUNTED = 1 - Fraction(1, 10**11)
"""The factor of a largest rho, which keeps its recomputed epsilon within the requested epsilon."""


def zcdp_of(item: Loss) -> ZCDP:
    """Return the zero-concentrated loss that ``item`` implies: epsilon^2 / 2 for a pure loss.

    Source: Bun, Steinke (2016), Proposition 1.4.

    Raises
    ------
    ParameterError : an approximate loss with a positive delta, which implies no zero-concentrated loss.

    >>> from pdprivacy import Pure
    >>> zcdp_of(Pure(0.1))
    ZCDP(rho=Fraction(1, 200))
    """
    if isinstance(item, ZCDP):
        return item
    check_loss(item, "A loss must be")
    if item.delta:
        raise ParameterError(
            "A loss with a positive delta is not zero-concentrated.",
            "Gaussian noise has rho = 1 / (2 * noise_multiplier**2); a pure loss has epsilon**2 / 2.",
        )
    return ZCDP(item.epsilon**2 / 2)


def zcdp_epsilon(rho: Rational, delta: Rational, conversion: Conversion = "tight") -> float:
    """Return an epsilon, rounded up, such that rho-zCDP is (epsilon, delta)-differentially private.

    ``"tight"``: the infimum over alpha > 1 of
    ``alpha rho + ln(1/(alpha delta)) / (alpha - 1) + ln(1 - 1/alpha)`` (Canonne, Kamath, Steinke 2020,
    Corollary 13); ``"bun_steinke"``: ``rho + 2 sqrt(rho ln(1/delta))`` (Bun, Steinke 2016,
    Proposition 1.3).

    Raises
    ------
    ParameterError : rho not positive, delta not in [1e-290, 1), unknown conversion.

    >>> round(zcdp_epsilon(0.1, 1e-6), 4), round(zcdp_epsilon(0.1, 1e-6, "bun_steinke"), 4)
    (2.1419, 2.4508)
    """
    number, slack = _check_rho(rho), check_slack(delta)
    return float_up(_epsilon(number, slack, _check_conversion(conversion)))


def zcdp_delta(rho: Rational, epsilon: Rational, conversion: Conversion = "tight") -> float:
    """Return a delta, rounded up, such that rho-zCDP is (epsilon, delta)-differentially private.

    ``"tight"``: the infimum over alpha > 1 of
    ``exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1/alpha)^alpha`` (Canonne, Kamath,
    Steinke 2020, Corollary 13); ``"bun_steinke"``: ``exp(-(epsilon - rho)^2 / (4 rho))`` (Bun,
    Steinke 2016, Proposition 1.3). At most 1.

    Raises
    ------
    ParameterError : rho not positive, epsilon negative, unknown conversion.

    >>> f"{zcdp_delta(0.1, 2):.3e}", f"{zcdp_delta(0.1, 2, 'bun_steinke'):.3e}"
    ('4.325e-06', '1.204e-04')
    """
    number, level = _check_rho(rho), rational(epsilon, "epsilon")
    if not 0 <= level <= LARGEST:
        raise ParameterError(f"'epsilon' must be in [0, 1e290] (got {got(epsilon)}).")
    if _check_conversion(conversion) == "bun_steinke":
        if level <= number:
            return 1.0
        return min(1.0, float_up(exp_up(-((level - number) ** 2) / (4 * number))))
    steepness, target = float(number), float(level)

    def rises(t: float) -> bool:  # the logarithm is convex in alpha
        return (2 * t + 1) * steepness - target + math.log(t) - math.log1p(t) > 0

    t = Fraction(bisect(rises, 1e-300, 1e300, logarithmic=True))
    alpha = 1 + t
    # ln(1 - 1/alpha) has the factors t and 1, both positive, so its upper bound is used
    exponent = t * (alpha * number - level) + t * log_up(t / alpha) + log_up(1 / alpha)
    return 1.0 if exponent >= 0 else min(1.0, float_up(exp_up(exponent)))


def zcdp_rho(epsilon: Rational, delta: Rational, conversion: Conversion = "tight") -> Fraction:
    """Return the largest rho that converts to ``epsilon`` at ``delta``, rounded down by up to 1e-9 of it.

    `zcdp_epsilon` of the result is at most ``epsilon``. For an epsilon below 1e-6, "tight" returns the
    smaller rho of "bun_steinke".

    Raises
    ------
    ParameterError : epsilon not positive, delta not in [1e-290, 1), unknown conversion.

    >>> round(float(zcdp_rho(1, 1e-6)), 5), round(float(zcdp_rho(1, 1e-6, "bun_steinke")), 5)
    (0.02436, 0.01747)
    """
    level, slack = _check_size(positive(epsilon, "epsilon"), "epsilon"), check_slack(delta)
    return _rho(level, slack, _check_conversion(conversion))


@lru_cache(maxsize=256)
def _rho(level: Fraction, slack: Fraction, conversion: Conversion) -> Fraction:
    """Return the largest rho of this epsilon and delta."""
    log = log_up(1 / slack)
    root = level / (root_up(log + level) + root_up(log))
    plain = root**2 * REACCOUNTED
    if conversion == "bun_steinke" or level < CANCELS:
        return plain
    asked, size = float(level), float(log)

    def too_much(rho: float) -> bool:
        t = _order(rho, size)
        epsilon = (1 + t) * rho + (size - math.log1p(t)) / t + math.log(t) - math.log1p(t)
        return epsilon > asked

    start = float(plain)
    found = bisect(too_much, start / 2, 100 * (asked + size + 10), logarithmic=True)
    t = Fraction(_order(found, size))
    alpha = 1 + t
    largest = (level - log_up(1 / (alpha * slack)) / t - log_up(t / alpha)) / alpha
    return max(plain, largest * REACCOUNTED)


def _epsilon(rho: Fraction, slack: Fraction, conversion: Conversion) -> Fraction:
    """Return an upper bound of the epsilon of this rho."""
    log = log_up(1 / slack)
    if conversion == "bun_steinke":
        return rho + 2 * root_up(rho * log)
    t = Fraction(_order(float(rho), float(log)))
    alpha = 1 + t
    return max(Fraction(0), alpha * rho + log_up(1 / (alpha * slack)) / t + log_up(t / alpha))


def _order(rho: float, log: float) -> float:
    """Return the best t = alpha - 1 for rho, where rho t^2 = log - ln(1 + t) with log = ln(1/delta)."""

    def past(t: float) -> bool:
        return rho * t * t + math.log1p(t) > log

    most = 1e300 if rho < 1e-300 else 2 * math.sqrt(log / rho) + 1e-150
    return bisect(past, 1e-160, most, logarithmic=True)


def check_slack(delta: Rational) -> Fraction:
    """Return a delta that a conversion can use; raise ParameterError for any other."""
    slack = rational(delta, "delta")
    if not 0 < slack < 1:
        raise ParameterError(f"'delta' must be in (0, 1) (got {got(delta)}).")
    if slack < LEAST_SLACK:
        raise ParameterError("'delta' must be at least 1e-290.")
    return slack


def _check_size(number: Fraction, name: str) -> Fraction:
    if number > LARGEST:
        raise ParameterError(f"{name!r} must be at most 1e290.")
    return number


def _check_rho(rho: Rational) -> Fraction:
    return _check_size(positive(rho, "rho"), "rho")


def _check_conversion(conversion: Conversion) -> Conversion:
    check_one_of("conversion", conversion, get_args(Conversion))
    return conversion
