"""How a secret part of the records was chosen, and what releases of it cost together.

The part is drawn once, so its releases are one mechanism: their losses are added up first, and the sum is
amplified. ``whole`` of the sum is what all releases so far cost, whatever was asked when: along any course of
answers the likelihood of the answers, given the part, changes by the exponential of the summed epsilons, and
a mean over parts amplifies that number. Other releases of all records may come between: likelihoods multiply.

Deltas need more care, because they are lost in the mean over parts: see ``delta_share`` of each class.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from pdprivacy.exact import decimal, decimals_of_product, moved_up
from pdprivacy.privacy import show
from pdprivacy.suppression.outliers import LARGEST_EPSILON, suppressed, unsuppressed
from pdprivacy.suppression.sampling import amplified, sharpened

__all__ = ["Amplification", "Outliers", "Poisson", "WithoutReplacement"]

ZERO = Fraction(0)

ROUNDED = Fraction(1, 2000)
"""What the rounding of suppression probabilities to doubles may cost, for up to 2**31 records.

Each probability, to be kept or not, is off by less than 1e-13 of itself (`keep_probabilities`), for both of
two neighbours. A delta is not larger for it: by Theorem 5.3 it is multiplied by a probability to be kept at
most, and none is above 1 - m.
"""


class Amplification(Protocol):
    """What `pdprivacy.secret` needs of the way in which a part is chosen."""

    @property
    def one_delta(self) -> bool:
        """Whether a release with a delta has to be the only one of the part."""

    @property
    def most(self) -> Fraction | None:
        """The largest sum of epsilons of which it is known what it costs; None where all are."""

    def whole(self, epsilon: Fraction) -> Fraction:
        """At least what releases of the part cost that add up to ``epsilon``; increasing."""

    def part(self, epsilon: Fraction) -> Fraction:
        """At most what releases of the part may add up to so that they cost ``epsilon`` in all.

        Raises ParameterError where that is too little for any release.
        """

    def delta_share(self, before: Fraction) -> Fraction:
        """What a delta of the part is of the whole, after releases of it that add up to ``before``.

        Exact where ``before`` is 0, rounded up else.
        """


@dataclass(frozen=True, slots=True)
class _Sampling:
    """What both ways of sampling share: the amplification of a summed epsilon, by the rate alone."""

    rate: Fraction

    def __str__(self) -> str:
        return f"ln(1 + {show(self.rate)} (e^epsilon - 1))"

    @property
    def most(self) -> None:
        """None."""

    def whole(self, epsilon: Fraction) -> Fraction:
        """As `Amplification`."""
        return amplified(epsilon, self.rate) if epsilon else ZERO

    def part(self, epsilon: Fraction) -> Fraction:
        """As `Amplification`."""
        return sharpened(epsilon, self.rate)


@dataclass(frozen=True, slots=True)
class Poisson(_Sampling):
    """Each record (or unit) by a coin of its own, True with probability ``rate``; for "add_remove".

    Source: Li, Qardaji, Su (2012), Theorem 1; `pdprivacy.suppression.sampling_epsilon`.

    >>> float(Poisson(Fraction(1, 10)).delta_share(Fraction(0)))
    0.1
    """

    @property
    def one_delta(self) -> bool:
        """No: see `delta_share`."""
        return False

    def delta_share(self, before: Fraction) -> Fraction:
        """The largest probability, given the answers so far, that the record is in the part.

        Rate e^before / (1 - rate + rate e^before), by Bayes. Proof: let f and f' be the likelihoods of the
        answers so far given a part without the record, and with it, each without what deltas have taken; the
        record's table has the mean of (1 - rate) f + rate f'. A delta of the next release takes that much of
        rate f', which is this share of the sum, as f' is at most e^before f. For the table without the
        record the loss is smaller: there a mass b that delta has taken from f is still covered up to
        (1 - rate) e^whole b, so that 1 - (1 - rate) e^whole <= rate of it is lost.
        """
        if not before or self.rate == 1:
            return self.rate
        context = decimals_of_product(self.rate)
        rate, rest = decimal(self.rate, context), decimal(1 - self.rate, context)
        shrunk = context.multiply(rest, context.exp(decimal(before, context).copy_negate()))
        return min(Fraction(1), moved_up(context.divide(rate, context.add(rate, shrunk))))


@dataclass(frozen=True, slots=True)
class WithoutReplacement(_Sampling):
    """So many of a public number of records (or units), ``rate`` of them; for "replace_one".

    Source: Balle, Barthe, Gaboardi (2018), Theorem 9.
    """

    @property
    def one_delta(self) -> bool:
        """Yes: what deltas take is compared with a mixture that depends on the sum of all epsilons."""
        return self.rate < 1

    def delta_share(self, before: Fraction) -> Fraction:  # noqa: ARG002
        """The rate."""
        return self.rate


@dataclass(frozen=True, slots=True)
class Outliers:
    """Each record is left out by a coin of its own, with probability m + (M - m) score; for "add_remove".

    Source: "The adverse effects of omitting records in differential privacy", Theorem 5.4;
    `pdprivacy.suppression.outlier_epsilon`. 1/2000 is added for probabilities that are doubles.

    >>> float(Outliers(Fraction(1, 10), Fraction(2, 10)).whole(Fraction(0)))
    0.0
    """

    m: Fraction
    M: Fraction

    def __str__(self) -> str:
        return f"outlier_epsilon(epsilon, m={show(self.m)}, M={show(self.M)})"

    @property
    def one_delta(self) -> bool:
        """Yes: the theorem is about releases that are fixed together."""
        return True

    @property
    def most(self) -> Fraction:
        """As of `outlier_epsilon`."""
        return Fraction(LARGEST_EPSILON)

    def whole(self, epsilon: Fraction) -> Fraction:
        """As `Amplification`; more than `outlier_floor` at once, and 0 only where nothing was released."""
        if not epsilon:
            return ZERO
        found = suppressed(epsilon, self.m, self.M)
        return found if self.m == self.M else found + ROUNDED

    def part(self, epsilon: Fraction) -> Fraction:
        """As `Amplification`."""
        level = epsilon if self.m == self.M else max(epsilon - ROUNDED, ROUNDED)
        return unsuppressed(min(level, self.most), self.m, self.M)

    def delta_share(self, before: Fraction) -> Fraction:  # noqa: ARG002
        """1 - m."""
        return 1 - self.m
