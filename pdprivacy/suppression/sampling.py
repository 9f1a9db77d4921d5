"""What sampling, and a fixed rule, do to a privacy loss: that of a mechanism that is run on a part.

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

A rule that keeps or suppresses each record for certain turns neighbours into databases that are some steps
apart, at most its stability factor. A rule that looks at one record alone (an age above 100 is left out) has
the factor 1 and costs nothing. A rule that looks at the whole database may have no finite factor: whoever
leaves out the records that are far from all others, or the furthest tenth, has no privacy at all.

Source: Li, Qardaji, Su (2012), Theorem 1, for Poisson sampling; Balle, Barthe, Gaboardi (2018), Theorems 8
and 9, for both.
"""

from __future__ import annotations

from decimal import Context
from fractions import Fraction

from pdprivacy.checks import whole
from pdprivacy.errors import ParameterError, got
from pdprivacy.exact import decimal, decimals_of_product, moved_down, moved_up
from pdprivacy.privacy import Approx, Pure, Rational, check_delta, loss, positive, rational

__all__ = ["amplified", "check_epsilon", "check_rate", "sampling_epsilon", "sampling_target", "sharpened"]
__all__ += ["stable_epsilon"]

SMALLEST, LARGEST = Fraction(1, 10**300), Fraction(10**300)
"""The limits of an epsilon and of a sampling rate."""


def check_epsilon(epsilon: Rational, name: str = "epsilon") -> Fraction:
    """Return an epsilon within the limits; raise ParameterError for any other."""
    number = positive(epsilon, name)
    if not SMALLEST <= number <= LARGEST:
        raise ParameterError(f"{name!r} must be in [1e-300, 1e300] (got {got(epsilon)}).")
    return number


def check_rate(rate: Rational, name: str = "rate") -> Fraction:
    """Return a sampling rate in (0, 1]; raise ParameterError for any other."""
    number = rational(rate, name)
    if not 0 < number <= 1:
        raise ParameterError(
            f"{name!r} must be in (0, 1] (got {got(rate)}).", f"{name}='1/3', or {name}=0.1."
        )
    if number < SMALLEST:
        raise ParameterError(f"{name!r} must be at least 1e-300.")
    return number


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


def stable_epsilon(epsilon: Rational, stability: int, delta: Rational = 0) -> Pure | Approx:
    """The loss of the whole when a mechanism of loss (epsilon, delta) is run on what a rule has kept.

    Epsilon ``stability * epsilon``, exactly; delta ``delta * (1 + e^epsilon + ... + e^((stability - 1)
    epsilon))``, rounded up by less than 1e-28 of it. The rule is deterministic, and turns neighbours into
    databases that are at most ``stability`` steps of the same kind of neighbours apart. Both are met by some
    mechanism: this is group privacy. A mechanism that has a smaller loss on what the rule can keep enters
    with that one.

    Source: "The adverse effects of omitting records in differential privacy", Theorem 5.1 and
    Proposition B.1.

    Raises
    ------
    ParameterError : epsilon not positive or outside [1e-300, 1e300], stability not a whole number of 1 or
        more, delta not in [0, 1), or a delta of the whole that is not below 1.

    >>> whole = stable_epsilon(0.5, stability=3, delta=1e-6)
    >>> float(whole.epsilon), float(whole.delta) > 3e-6
    (1.5, True)
    """
    size, slack = check_epsilon(epsilon), check_delta(delta)
    steps = whole(stability, "stability", 1)
    if slack and steps > 1:
        context = decimals_of_product(size)
        # the last of the added numbers alone; its logarithm does not overflow
        last = context.add(context.ln(decimal(slack, context)), decimal(size * (steps - 1), context))
        slack = Fraction(1) if last > 0 else _grown(slack, size, steps, context)
        if slack >= 1:
            raise ParameterError(
                "The delta of the whole must be below 1.",
                "a smaller delta, or a rule of a smaller stability.",
            )
    return loss(size * steps, slack)


def amplified(epsilon: Fraction, rate: Fraction) -> Fraction:
    """At least ln(1 + rate (e^epsilon - 1)), of checked numbers; epsilon itself at rate 1.

    >>> amplified(Fraction(1, 3), Fraction(1))
    Fraction(1, 3)
    """
    if rate == 1:
        return epsilon
    context = decimals_of_product(epsilon, rate)
    size, share, rest = (decimal(number, context) for number in (epsilon, rate, 1 - rate))
    inner = context.add(share, context.multiply(rest, context.exp(size.copy_negate())))
    return min(epsilon, moved_up(context.add(size, context.ln(inner))))


def sharpened(epsilon: Fraction, rate: Fraction) -> Fraction:
    """At most ln((e^epsilon - 1 + rate) / rate), of checked numbers; epsilon itself at rate 1.

    >>> float(sharpened(amplified(Fraction(2), Fraction(1, 3)), Fraction(1, 3)))
    2.0
    """
    if rate == 1:
        return epsilon
    context = decimals_of_product(epsilon, rate)
    size, share, rest = (decimal(number, context) for number in (epsilon, rate, 1 - rate))
    inner = context.subtract(1, context.multiply(rest, context.exp(size.copy_negate())))
    return moved_down(context.add(size, context.ln(context.divide(inner, share))))


def _grown(delta: Fraction, epsilon: Fraction, steps: int, context: Context) -> Fraction:
    """At least delta (e^(steps epsilon) - 1) / (e^epsilon - 1)."""
    top = context.subtract(context.exp(decimal(epsilon * steps, context)), 1)
    bottom = context.subtract(context.exp(decimal(epsilon, context)), 1)
    return moved_up(context.multiply(decimal(delta, context), context.divide(top, bottom)))
