"""What sampling does to a privacy loss: the loss of a mechanism that is run on a secret sample.

Each kind of sampling goes with one kind of neighbours:

- Poisson sampling at rate p, each record by a coin of its own, with ``add_remove``;
- sampling without replacement, n of N records and p = n/N, with ``replace_one``.

The mechanism has its loss for the same neighbours, on every sample. What does not hold:

- Poisson sampling with ``replace_one``: a mechanism that is private for replaced records alone may tell how
  many records were sampled, and then nothing is amplified;
- sampling without replacement with ``add_remove``: a record more takes the place of another one in the
  sample, which are two steps, not one;
- several releases from one sample, each amplified: the sample is drawn once, so compose the losses of the
  releases first and amplify what they cost together, once;
- a sample that is told, or can be seen by other means: it amplifies nothing.

Source: Li, Qardaji, Su (2012), Theorem 1, for Poisson sampling; Balle, Barthe, Gaboardi (2018), Theorems 8
and 9, for both.
"""

from __future__ import annotations

from fractions import Fraction

from pdprivacy.errors import ParameterError, got
from pdprivacy.privacy import Approx, Pure, Rational, check_delta, loss
from pdprivacy.suppression.decimals import (
    at_least,
    at_most,
    check_epsilon,
    check_rate,
    digits,
    of,
)

__all__ = ["amplified", "sampling_epsilon", "sampling_target", "sharpened"]


def sampling_epsilon(epsilon: Rational, rate: Rational, delta: Rational = 0) -> Pure | Approx:
    """The loss of the whole when a mechanism of loss (epsilon, delta) is run on a secret sample.

    Epsilon ``ln(1 + rate (e^epsilon - 1))``, rounded up by less than 1e-28 of it; delta ``rate * delta``,
    exactly. For Poisson sampling with neighbours ``add_remove``, or sampling without replacement, n of N and
    ``rate = Fraction(n, N)``, with ``replace_one``; **not** for the other pairs. Both are met by some
    mechanism. Several releases from the same sample: compose their losses first, and amplify once.

    Source: Balle, Barthe, Gaboardi (2018), Theorems 8 and 9.

    Raises
    ------
    ParameterError : epsilon not positive or outside [1e-300, 1e300], rate not in (0, 1] or below 1e-300,
        delta not in [0, 1).

    >>> whole = sampling_epsilon(1, 0.1, delta=1e-6)
    >>> round(float(whole.epsilon), 4), float(whole.delta)
    (0.1586, 1e-07)
    """
    size, share, slack = check_epsilon(epsilon), check_rate(rate), check_delta(delta)
    return loss(amplified(size, share), slack * share)


def sampling_target(epsilon: Rational, rate: Rational, delta: Rational = 0) -> Pure | Approx:
    """The loss that a mechanism on a secret sample may have, so that the whole has (epsilon, delta).

    Epsilon ``ln((e^epsilon - 1 + rate) / rate)``, rounded down by 1e-20 of it; delta ``delta / rate``,
    exactly. The neighbours and the sampling are those of `sampling_epsilon`, which of the result never
    exceeds what was asked.

    Source: as `sampling_epsilon`, solved for the loss of the mechanism.

    Raises
    ------
    ParameterError : as `sampling_epsilon`; delta / rate not below 1.

    >>> inner = sampling_target(1, 0.1, delta=1e-6)
    >>> round(float(inner.epsilon), 4), float(inner.delta)
    (2.9005, 1e-05)
    >>> sampling_epsilon(inner.epsilon, 0.1, inner.delta).epsilon <= 1
    True
    """
    size, share, slack = check_epsilon(epsilon), check_rate(rate), check_delta(delta)
    if slack >= share:
        raise ParameterError(
            f"'delta' must be below 'rate' (got {got(delta)} and {got(rate)}).",
            "a delta of a mechanism is below 1, and so is delta / rate; take a smaller delta.",
        )
    return loss(sharpened(size, share), slack / share)


def amplified(epsilon: Fraction, rate: Fraction) -> Fraction:
    """At least ln(1 + rate (e^epsilon - 1)), of checked numbers; epsilon itself at rate 1.

    >>> amplified(Fraction(1, 3), Fraction(1))
    Fraction(1, 3)
    """
    if rate == 1:
        return epsilon
    context = digits(epsilon, rate)
    size, share = of(epsilon, context), of(rate, context)
    rest = of(1 - rate, context)
    inner = context.add(share, context.multiply(rest, context.exp(size.copy_negate())))
    return min(epsilon, at_least(context.add(size, context.ln(inner))))


def sharpened(epsilon: Fraction, rate: Fraction) -> Fraction:
    """At most ln((e^epsilon - 1 + rate) / rate), of checked numbers; epsilon itself at rate 1.

    >>> float(sharpened(amplified(Fraction(2), Fraction(1, 3)), Fraction(1, 3)))
    2.0
    """
    if rate == 1:
        return epsilon
    context = digits(epsilon, rate)
    size, share = of(epsilon, context), of(rate, context)
    inner = context.subtract(1, context.multiply(of(1 - rate, context), context.exp(size.copy_negate())))
    return at_most(context.add(size, context.ln(context.divide(inner, share))))
