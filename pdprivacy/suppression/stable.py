"""What a fixed rule for leaving out records does to a privacy loss.

A rule that keeps or suppresses each record for certain turns neighbours into databases that are some steps
apart, at most its stability factor. A rule that looks at one record alone (an age above 100 is left out) has
the factor 1 and costs nothing. A rule that looks at the whole database may have no finite factor: whoever
leaves out the records that are far from all others, or the furthest tenth, has no privacy at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from decimal import Context
from fractions import Fraction
from itertools import compress

from pdprivacy.checks import function, items, whole
from pdprivacy.errors import ParameterError
from pdprivacy.privacy import Approx, Pure, Rational, check_delta, loss
from pdprivacy.suppression.decimals import at_least, check_epsilon, digits, of
from pdprivacy.suppression.finite import Database, neighbor_pairs

__all__ = ["stability_factor", "stable_epsilon"]


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
        context = digits(size)
        # the last of the added numbers alone; its logarithm does not overflow
        last = context.add(context.ln(of(slack, context)), of(size * (steps - 1), context))
        slack = Fraction(1) if last > 0 else _grown(slack, size, steps, context)
        if slack >= 1:
            raise ParameterError(
                "The delta of the whole is not below 1.", "a smaller delta, or a rule of a smaller stability."
            )
    return loss(size * steps, slack)


def _grown(delta: Fraction, epsilon: Fraction, steps: int, context: Context) -> Fraction:
    """At least delta (e^(steps epsilon) - 1) / (e^epsilon - 1)."""
    top = context.subtract(context.exp(of(epsilon * steps, context)), 1)
    bottom = context.subtract(context.exp(of(epsilon, context)), 1)
    return at_least(context.multiply(of(delta, context), context.divide(top, bottom)))


def stability_factor(
    keeps: Callable[[Database], Sequence[bool]], universe: Iterable[Hashable], size: int
) -> int:
    """How far apart a fixed rule takes neighbours, among all databases of up to ``size`` records.

    The number of records that are in one of the two kept databases only; for neighbours ``add_remove``.
    ``keeps`` says of each record of a database whether it is kept, and the same of equal records. Found by
    trying all pairs, so a lower bound of the factor for databases of any size: where it grows with ``size``
    there may be none.

    Source: "The adverse effects of omitting records in differential privacy", Section 5.1.

    Raises
    ------
    ParameterError : an empty universe, a size that is not a whole number of 1 or more, or answers of
        ``keeps`` that are not one per record.

    >>> stability_factor(lambda database: [record <= 100 for record in database], [20, 99, 110], size=3)
    1
    >>> stability_factor(lambda database: [len(database) < 3] * len(database), [20, 99], size=3)
    2
    """
    function(keeps, "keeps")
    pairs = neighbor_pairs(universe, whole(size, "size", 1))
    return max(_apart(_kept(keeps, left), _kept(keeps, right)) for left, right in pairs)


def _kept(keeps: Callable[[Database], Sequence[bool]], database: Database) -> Counter[Hashable]:
    answers = items(keeps(database), "keeps")
    if len(answers) != len(database):
        raise ParameterError("'keeps' must give one answer per record.")
    return Counter(compress(database, answers))


def _apart(left: Counter[Hashable], right: Counter[Hashable]) -> int:
    return ((left - right) + (right - left)).total()
