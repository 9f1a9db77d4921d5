"""Suppression on small finite universes by enumeration: exact losses, bounds and stability.

A database is a tuple of records; the order means nothing to what is measured. A suppression gives, for a
database, the probability of each set of kept positions; a mechanism gives, for a database, the probability
of each output. All databases up to a size, all kept sets and all outputs are enumerated, so the work grows
exponentially with the size: it is meant for five records, not for five hundred. Sums are in floating point,
to about 1e-14 of themselves.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, combinations_with_replacement, compress
from typing import NamedTuple, TypeAlias, TypeVar

from pdprivacy.amplification.suppression.amplification import check_epsilon
from pdprivacy.checks import function, items, one_of, whole
from pdprivacy.core.privacy import Neighbors, Rational, check_delta, rational
from pdprivacy.errors import ParameterError, got

Database: TypeAlias = tuple[Hashable, ...]
Kept: TypeAlias = frozenset[int]
Outputs: TypeAlias = Mapping[Hashable, float]
Suppression: TypeAlias = Callable[[Database], Mapping[Kept, float]]
Mechanism: TypeAlias = Callable[[Database], Outputs]

Halves: TypeAlias = Mapping[Kept, tuple[float, float]]
"""Probabilities of each set of the common records, without and with the additional record."""

_Key = TypeVar("_Key", bound=Hashable)

MOST_DATABASES = 10**7
"""The largest number of databases that are enumerated."""

MOST_RECORDS = 20
"""The largest number of records of a database whose subsets are enumerated."""

LONGEST = 700
"""The largest epsilon of which the exponential is a float."""


def databases(universe: Iterable[Hashable], size: int) -> Iterator[Database]:
    """Return all databases of at most ``size`` records, each in one order; records may repeat.

    Raises
    ------
    ParameterError : an empty universe, records that repeat in it, or a size below 0.

    >>> list(databases("ab", 2))
    [(), ('a',), ('b',), ('a', 'a'), ('a', 'b'), ('b', 'b')]
    """
    records = _records(universe)
    counts = range(_checked_size(records, size) + 1)
    return chain.from_iterable(combinations_with_replacement(records, count) for count in counts)


def neighbor_pairs(
    universe: Iterable[Hashable], size: int, neighbors: Neighbors = "add_remove"
) -> Iterator[tuple[Database, Database]]:
    """Return all pairs of neighbours of at most ``size`` records; they differ in the last record.

    ``add_remove``: the second has one record more. ``replace_one``: the last records are different, and each
    pair comes once.

    Raises
    ------
    ParameterError : as `databases`, or unknown neighbours.

    >>> list(neighbor_pairs("ab", 1))
    [((), ('a',)), ((), ('b',))]
    >>> list(neighbor_pairs("ab", 1, "replace_one"))
    [(('a',), ('b',))]
    """
    one_of(neighbors, "neighbors", ("add_remove", "replace_one"))
    records = _records(universe)
    most = _checked_size(records, size)

    def pairs() -> Iterator[tuple[Database, Database]]:
        for common in databases(records, most - 1) if most else ():
            if neighbors == "add_remove":
                yield from ((common, (*common, record)) for record in records)
            else:
                yield from (
                    ((*common, first), (*common, second)) for first, second in combinations(records, 2)
                )

    return pairs()


def independent(keep: Callable[[Database], Sequence[float]]) -> Suppression:
    """Return the suppression that keeps each record by a coin of its own, with the probabilities of ``keep``.

    Poisson sampling gives the same probability to all; an outlier score gives each its own, which depends on
    the database.

    Raises
    ------
    ParameterError : when it is used: not one probability per record, one outside [0, 1], or more than 20
        records.

    >>> law = independent(lambda database: [0.25] * len(database))(("a", "b"))
    >>> law[frozenset({1})]
    0.1875
    """
    function(keep, "keep")

    def law(database: Database) -> dict[Kept, float]:
        chances = _floats(keep(database))
        if len(chances) != len(database) or not all(0 <= chance <= 1 for chance in chances):
            raise ParameterError("'keep' must give one probability per record.")
        if len(database) > MOST_RECORDS:
            raise ParameterError(f"'database' must hold at most {MOST_RECORDS} records.")
        masses: dict[Kept, float] = {frozenset(): 1.0}
        for position, chance in enumerate(chances):
            without = {kept: mass * (1 - chance) for kept, mass in masses.items()}
            masses = without | {kept | {position}: mass * chance for kept, mass in masses.items()}
        return {kept: mass for kept, mass in masses.items() if mass > 0}

    return law


def without_replacement(count: int) -> Suppression:
    """Return the sampling of ``count`` records, or of all where there are fewer; all sets are alike.

    Raises
    ------
    ParameterError : a count that is not a whole number of 0 or more; when it is used, more than 2**20 sets.

    >>> len(without_replacement(2)(("a", "b", "c")))
    3
    """
    sampled = whole(count, "count", 0)

    def law(database: Database) -> dict[Kept, float]:
        count = min(sampled, len(database))
        if math.comb(len(database), count) > 2**MOST_RECORDS:
            raise ParameterError(f"'database' must have at most {2**MOST_RECORDS:,} sets of {count} records.")
        sets = list(combinations(range(len(database)), count))
        return {frozenset(kept): 1 / len(sets) for kept in sets}

    return law


def output_law(database: Database, suppression: Suppression, mechanism: Mechanism) -> dict[Hashable, float]:
    """Return the probability of each output of a mechanism that is run on the records that are kept.

    Raises
    ------
    ParameterError : probabilities that are negative or do not add up to 1.

    >>> tells_size = lambda database: {len(database): 1.0}
    >>> output_law(("a", "b"), independent(lambda database: [0.5] * len(database)), tells_size)[1]
    0.5
    """
    function(suppression, "suppression"), function(mechanism, "mechanism")
    database = tuple(items(database, "database"))
    masses: dict[Hashable, list[float]] = {}
    for kept, chance in checked_law(suppression(database), "suppression").items():
        part = tuple(database[index] for index in sorted(kept))
        for output, mass in checked_law(mechanism(part), "mechanism").items():
            masses.setdefault(output, []).append(chance * mass)
    return {output: math.fsum(parts) for output, parts in masses.items()}


def hockey_stick(left: Outputs, right: Outputs, epsilon: float) -> float:
    """Return the delta of two laws: the sum over outputs of ``left`` above ``e^epsilon`` times ``right``.

    Source: Balle, Barthe, Gaboardi (2018), Theorem 1. Raises ParameterError where epsilon is not in
    [0, 700].

    >>> hockey_stick({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}, epsilon=0)
    0.5
    """
    ratio = math.exp(_size(epsilon))
    left, right = checked_law(left, "left"), checked_law(right, "right")
    return math.fsum(max(0.0, mass - ratio * right.get(output, 0.0)) for output, mass in left.items())


def least_epsilon(left: Outputs, right: Outputs, delta: float = 0.0) -> float:
    """Return the least epsilon, not below 0, at which `hockey_stick` is at most ``delta``; may be infinite.

    Exactly, from the sorted ratios of the two laws. Raises ParameterError where delta is not in [0, 1).

    >>> round(least_epsilon({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}), 4)
    1.0986
    """
    slack = float(check_delta(delta))
    left, right = checked_law(left, "left"), checked_law(right, "right")
    pairs = [(mass, right.get(output, 0.0)) for output, mass in left.items()]
    pairs.sort(key=lambda pair: math.inf if pair[1] == 0 else pair[0] / pair[1], reverse=True)
    most, above, below = 1.0, 0.0, 0.0
    for mass, other in pairs:  # the outputs above a ratio are the worst set of outputs
        above, below = above + mass, below + other
        if above > slack:
            most = max(most, math.inf if below == 0 else (above - slack) / below)
    return math.log(most)


def exact_epsilon(
    universe: Iterable[Hashable],
    size: int,
    suppression: Suppression,
    mechanism: Mechanism,
    delta: float = 0.0,
    neighbors: Neighbors = "add_remove",
) -> float:
    """Return the least epsilon of the whole at ``delta``, over all neighbours of at most ``size`` records.

    Raises
    ------
    ParameterError : as `neighbor_pairs`, `output_law` and `least_epsilon`.

    >>> import math
    >>> keeps = independent(lambda database: [0.5] * len(database))
    >>> tells = lambda database: {0: 0.75, 1: 0.25} if "b" in database else {0: 0.25, 1: 0.75}
    >>> round(math.exp(exact_epsilon("ab", 2, keeps, tells)), 9)  # 1 + (3 - 1) / 2
    2.0
    """
    laws = _output_laws(universe, size, suppression, mechanism, neighbors)
    return max((least_epsilon(left, right, delta) for left, right in laws), default=0.0)


def exact_delta(
    universe: Iterable[Hashable],
    size: int,
    suppression: Suppression,
    mechanism: Mechanism,
    epsilon: float,
    neighbors: Neighbors = "add_remove",
) -> float:
    """Return the least delta of the whole at ``epsilon``, over all neighbours of at most ``size`` records.

    Raises
    ------
    ParameterError : as `neighbor_pairs`, `output_law` and `hockey_stick`.

    >>> keeps = independent(lambda database: [0.5] * len(database))
    >>> exact_delta("ab", 2, keeps, lambda database: {"b" in database: 1.0}, epsilon=1)
    0.5
    """
    laws = _output_laws(universe, size, suppression, mechanism, neighbors)
    return max((hockey_stick(left, right, epsilon) for left, right in laws), default=0.0)


class SuppressionBound(NamedTuple):
    """An epsilon and a delta for which a mechanism on what a suppression keeps is private."""

    epsilon: float
    delta: float


def suppression_bound(
    universe: Iterable[Hashable],
    size: int,
    suppression: Suppression,
    epsilon: Rational,
    delta: Rational = 0,
) -> SuppressionBound:
    """A bound for every mechanism of loss (epsilon, delta) on what a suppression keeps of small databases.

    For neighbours ``add_remove`` of at most ``size`` records. Each kept set that has no counterpart in the
    neighbour is assigned the nearest one that has; where every set has one (the support condition)
    this is Theorem 5.3, else Theorem B.6, whose epsilon or delta may be useless. Epsilon is the logarithm of
    the maxima, of which one side is printed without.

    Source: "The adverse effects of omitting records in differential privacy", Theorems 5.3 and B.6.

    Raises
    ------
    ParameterError : as `neighbor_pairs`; epsilon not positive or so large that floats overflow, delta not in
        [0, 1), probabilities that do not add up to 1.

    >>> import math
    >>> from pdprivacy.suppression import independent
    >>> keeps = independent(lambda database: [0.5] * len(database))
    >>> bound = suppression_bound("ab", 3, keeps, epsilon=math.log(3), delta=0.01)
    >>> round(math.exp(bound.epsilon), 9), round(bound.delta, 9)  # those of Poisson sampling
    (2.0, 0.005)
    """
    level, slack = check_epsilon(epsilon), float(check_delta(delta))
    if level * (whole(size, "size", 0) + 1) > LONGEST:
        raise ParameterError("'epsilon' times 'size' is too large for floats.", "a smaller epsilon.")
    ratio = math.exp(level)
    most, slacks = 1.0, 0.0
    function(suppression, "suppression")
    for left, right in neighbor_pairs(universe, size):
        smaller = checked_law(suppression(left), "suppression")
        larger = _split(checked_law(suppression(right), "suppression"), len(left))
        for factor, extra in (
            _split_without_record(smaller, larger, ratio),
            _split_with_record(smaller, larger, ratio),
        ):
            most, slacks = max(most, factor), max(slacks, extra)
    return SuppressionBound(math.log(most), slack * slacks)


def suppression_floor(
    universe: Iterable[Hashable],
    size: int,
    suppression: Suppression,
    epsilon: Rational,
    delta: Rational = 0,
) -> SuppressionBound:
    """Return a loss that some mechanism of loss (epsilon, delta) has on what a suppression keeps.

    No bound for all mechanisms is below it. For neighbours ``add_remove`` of at most ``size`` records. It is
    the loss of Poisson sampling at the largest probability with which a record is kept, so that nothing
    amplifies more than such sampling. A database that holds the record twice does not count: its neighbour
    without one of the two holds the other, so that a mechanism cannot tell them apart by this record.

    Source: "The adverse effects of omitting records in differential privacy", Proposition B.8.

    Raises
    ------
    ParameterError : as `suppression_bound`.

    >>> import math
    >>> from pdprivacy.suppression import independent
    >>> keeps = independent(lambda database: [1 / (1 + len(database))] * len(database))
    >>> floor = suppression_floor("ab", 3, keeps, epsilon=math.log(3), delta=0.01)
    >>> round(math.exp(floor.epsilon), 9), round(floor.delta, 9)  # one record alone is kept most often
    (2.0, 0.005)
    """
    level, slack = float(check_epsilon(epsilon)), float(check_delta(delta))
    if level > LONGEST:
        raise ParameterError("'epsilon' is too large for floats.", "a smaller epsilon.")
    function(suppression, "suppression")
    rate = 0.0
    for left, right in neighbor_pairs(universe, size):
        if right[-1] not in left:
            law = checked_law(suppression(right), "suppression")
            rate = max(rate, math.fsum(mass for kept, mass in law.items() if len(left) in kept))
    return SuppressionBound(math.log1p(rate * math.expm1(level)), rate * slack)


def stability_factor(
    keeps: Callable[[Database], Sequence[bool]], universe: Iterable[Hashable], size: int
) -> int:
    """Return the stability of a fixed rule, over all databases of up to ``size`` records.

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
    parts = ((_kept_records(keeps, left), _kept_records(keeps, right)) for left, right in pairs)
    return max(((first - second) + (second - first)).total() for first, second in parts)


def _output_laws(
    universe: Iterable[Hashable],
    size: int,
    suppression: Suppression,
    mechanism: Mechanism,
    neighbors: Neighbors,
) -> Iterator[tuple[Outputs, Outputs]]:
    """The laws of all neighbours, in both orders."""
    for pair in neighbor_pairs(universe, size, neighbors):
        left, right = (output_law(database, suppression, mechanism) for database in pair)
        yield left, right
        yield right, left


def _records(universe: Iterable[Hashable]) -> tuple[Hashable, ...]:
    records = tuple(items(universe, "universe"))
    try:
        different = len(set(records)) == len(records)
    except TypeError:
        different = False
    if not records or not different:
        raise ParameterError("'universe' must be one or more records, all different and hashable.")
    return records


def _checked_size(records: tuple[Hashable, ...], size: int) -> int:
    """Return the size if the databases are few enough to be enumerated."""
    most = whole(size, "size", 0)
    if most > MOST_DATABASES or math.comb(len(records) + most, most) > MOST_DATABASES:
        raise ParameterError(f"'size' must leave at most {MOST_DATABASES:,} databases.", "size=4.")
    return most


def _floats(numbers: Iterable[float]) -> list[float]:
    """Return the results of a function of the caller as floats; NaN for anything but a number."""
    try:
        return [float(number) for number in numbers]
    except (TypeError, ValueError, OverflowError):
        return [math.nan]


def checked_law(law: Mapping[_Key, float], name: str) -> dict[_Key, float]:
    """The positive probabilities of a law, as floats; raises ParameterError where they do not add up to 1."""
    if not isinstance(law, Mapping):
        raise ParameterError(f"{name!r} must map to probabilities (got {got(law)}).")
    masses = dict(zip(law, _floats(law.values()), strict=False))
    if (
        len(masses) < len(law)
        or not all(mass >= 0 for mass in masses.values())
        or abs(math.fsum(masses.values()) - 1) > 1e-9
    ):
        raise ParameterError(f"{name!r} must give probabilities that add up to 1.")
    return {key: mass for key, mass in masses.items() if mass > 0}


def _size(epsilon: float) -> float:
    size = rational(epsilon, "epsilon")
    if not 0 <= size <= LONGEST:
        raise ParameterError(f"'epsilon' must be in [0, 700] (got {got(epsilon)}).")
    return float(size)


def _split(law: Mapping[Kept, float], last: int) -> Halves:
    """Return the probabilities of each set of the common records, without and with the last record."""
    common = {kept - {last} for kept in law}
    return {kept: (law.get(kept, 0.0), law.get(kept | {last}, 0.0)) for kept in common}


def _split_without_record(smaller: Mapping[Kept, float], larger: Halves, ratio: float) -> tuple[float, float]:
    """e^epsilon and the sum beside delta for the smaller database against the larger one."""
    weights, extra = dict.fromkeys(larger, 0.0), 0.0
    for kept, mass in smaller.items():
        nearest, apart = _nearest(kept, larger)
        weights[nearest] += ratio**apart * mass
        extra += mass * _geometric(ratio, apart)
    factor = 0.0
    for kept, weight in weights.items():
        without, with_last = larger[kept]
        share = weight / (without + with_last / ratio)
        factor = max(factor, share)
        extra += share * with_last / ratio
    return factor, extra


def _split_with_record(smaller: Mapping[Kept, float], larger: Halves, ratio: float) -> tuple[float, float]:
    """e^epsilon and the sum beside delta for the larger database against the smaller one."""
    weights, extra = dict.fromkeys(smaller, 0.0), 0.0
    for kept, (without, with_last) in larger.items():
        nearest, apart = _nearest(kept, smaller)
        weights[nearest] += ratio**apart * (without + ratio * with_last)
        extra += without * _geometric(ratio, apart) + with_last * _geometric(ratio, apart + 1)
    return max(weight / smaller[kept] for kept, weight in weights.items()), extra


def _nearest(kept: Kept, possible: Iterable[Kept]) -> tuple[Kept, int]:
    """The possible set that differs from this one in the fewest records, and in how many."""
    best = min(possible, key=lambda other: (len(kept ^ other), sorted(other)))
    return best, len(kept ^ best)


def _geometric(ratio: float, terms: int) -> float:
    return math.fsum(ratio**power for power in range(terms))


def _kept_records(keeps: Callable[[Database], Sequence[bool]], database: Database) -> Counter[Hashable]:
    answers = items(keeps(database), "keeps")
    if len(answers) != len(database):
        raise ParameterError("'keeps' must give one answer per record.")
    return Counter(compress(database, answers))
