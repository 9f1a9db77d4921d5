"""What a report says in plain words: whom a guarantee protects, what it promises, how exact numbers are."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from pdprivacy.privacy import Unit
from pdprivacy.reporting.figures import cost, decimals_of, factor, percent_up, width
from pdprivacy.reporting.reading import Release

__all__ = ["accuracy", "detected", "guess", "meaning", "noise", "posterior", "protected", "spread"]

NOISES = {
    "laplace": "Laplace noise",
    "geometric": "geometric noise (whole numbers)",
    "gaussian": "Gaussian noise",
    "generalized_gaussian": "generalized Gaussian noise",
    "exponential": "selection by the exponential mechanism",
    "permute_and_flip": "selection by permute-and-flip",
}
BOUNDINGS = {
    "bit": "Numbers that the noise moved beyond their bounds were set to the bound.",
    "truncated": "The noise was drawn so that no number leaves its bounds.",
}
FALSE_ALARMS = 0.05
LOOSE = 0.99


def noise(release: Release) -> str:
    """The noise, or how a selection was made."""
    name = release.facts.mechanism
    known = NOISES.get(name, name.replace("_", " "))
    return f"{known} of order {release.facts.p:g}" if release.facts.p is not None else known


def protected(unit: Unit) -> str:
    """Which data sets look alike."""
    replaced = unit.neighbors == "replace_one"
    if unit.column is None:
        if replaced:
            return "one record with other values (how many records there are is public)"
        return "one record more or less (how many records there are is private, too)"
    if replaced:
        return f"all records of one {unit.column}, replaced by others"
    return f"all records of one {unit.column}, there or not there"


def posterior(epsilon: Fraction) -> float:
    """The most that a fifty-fifty guess can become under a pure epsilon: e^epsilon / (1 + e^epsilon)."""
    return 1 / (1 + math.exp(-float(epsilon)))


def detected(epsilon: Fraction, delta: Fraction, false_alarms: float = FALSE_ALARMS) -> float:
    """The most that a test of one table against a neighbour detects, at this share of false alarms.

    Both ``P(S | x) <= e^epsilon P(S | y) + delta`` and the same of the complement, with x and y swapped.
    Source: Wasserman, Zhou (2010), "A statistical framework for differential privacy", Theorem 2.4; Kairouz,
    Oh, Viswanath (2015), "The composition theorem for differential privacy", Theorem 2.1.
    """
    power, slack = float(epsilon), float(delta)
    grown = math.exp(power) * false_alarms if power < 700 else math.inf
    return min(grown + slack, 1 - math.exp(-power) * max(1 - slack - false_alarms, 0.0), 1.0)


def meaning(unit: Unit, epsilon: Fraction, delta: Fraction) -> list[str]:
    """What a total promises, a paragraph each."""
    replaced = unit.neighbors == "replace_one"
    one = "a record" if unit.column is None else f"all records of one {unit.column}"
    grown = factor(epsilon)
    if grown is None:
        return [
            f"An epsilon of {cost(epsilon)} promises nothing that matters: what comes out may be hundreds of "
            "millions of times as likely, or more, with a record as without it. What the noise hides in "
            "fact has to be looked at release by release."
        ]
    if delta:
        told = [_approximate(one, replaced, grown, delta)]
    else:
        told = [_pure(one, replaced, grown), _odds(unit, epsilon, grown)]
    told.append(_test(one, replaced, epsilon, delta))
    if unit.column is None:
        told.append(
            "A record is taken to be all that the data hold about one person. Whoever has two records is "
            f"protected as if epsilon were twice as large, {cost(2 * epsilon)}"
            + ("." if not delta else ", and delta larger, too.")
        )
    if posterior(epsilon) > LOOSE:
        told.append(
            "This promise is loose: an epsilon of this size by itself leaves it open to learn nearly "
            "everything about a person. What the noise hides in fact has to be looked at release by release."
        )
    return told


def _pure(one: str, replaced: bool, grown: str) -> str:
    if replaced:
        return (
            f"Whatever may come out of these releases is at most {grown} times as likely with one content of "
            f"{one} as with any other content. The factor is e to the power of epsilon."
        )
    return (
        f"Whatever may come out of these releases is at most {grown} times as likely with {one} in the data "
        f"as without, and at most {grown} times as likely without as with. The factor is e to the power of "
        "epsilon."
    )


def _approximate(one: str, replaced: bool, grown: str, delta: Fraction) -> str:
    held = f"with one content of {one}" if replaced else f"with {one} in the data"
    other = "with any other content" if replaced else "without"
    return (
        f"The probability of whatever may come out of these releases {held} is at most {grown} times that "
        f"{other}, plus delta, {cost(delta)}; and the same the other way round. The factor is e to the power "
        "of epsilon. Because of delta there is no limit to what a single, very unlikely result may give "
        "away, so delta should be far below one divided by the number of persons in the data."
    )


def _odds(unit: Unit, epsilon: Fraction, grown: str) -> str:
    share, low = percent_up(posterior(epsilon)), _below(posterior(epsilon))
    this, its, it = (
        ("this record", "its", "it") if unit.column is None else ("these records", "their", "them")
    )
    replaced = unit.neighbors == "replace_one"
    what = f"between any two contents of {it}" if replaced else f"of {its} being in the data"
    told = (
        f"So whoever knows all of the data but {this}, and anything else besides, can change the odds {what} "
        f"by a factor of at most {grown} by seeing the releases. A guess of fifty-fifty becomes {share} at "
        f"most, and {low} at least."
    )
    twice = None if replaced else factor(epsilon, 2)
    if twice is not None:
        told += (
            f" Between two contents of {it} the factor is at most {twice}, e to the power of twice epsilon."
        )
    return told


def guess(unit: Unit, epsilon: Fraction) -> str:
    """The most that one fifty-fifty guess can become, in a sentence."""
    one = "one record" if unit.column is None else f"the records of one {unit.column}"
    verb = "is" if unit.column is None else "are"
    if unit.neighbors == "replace_one":
        what = f"which of two contents {one} {'has' if unit.column is None else 'have'}"
    else:
        what = f"whether {one} {verb} in the data"
    return (
        f"Someone who knows everything else about the data and guesses fifty-fifty {what} can become "
        f"{percent_up(posterior(epsilon))} sure at most."
    )


def _below(share: float) -> str:
    """What is left of 100 %, rounded down."""
    left = math.floor((1 - share) * 1000 + 1e-9) / 10
    return "nearly 0 %" if 0 < 1 - share < 0.001 else f"{left:g} %"


def _test(one: str, replaced: bool, epsilon: Fraction, delta: Fraction) -> str:
    most = percent_up(detected(epsilon, delta))
    if replaced:
        return (
            f"Put as a test: whoever tries to tell one content of {one} from another one by the releases, "
            f"and mistakes the second for the first in 5 % of cases, recognizes the first in at most {most} "
            "of cases."
        )
    return (
        f"Put as a test: whoever tries to tell by the releases whether {one} is in the data, and says so "
        f"wrongly in 5 % of the cases where it is not, says so rightly in at most {most} of the cases where "
        "it is."
    )


# ---------------------------------------------------------------- accuracy


def spread(release: Release) -> str:
    """The half widths of a release, from the smallest to the largest."""
    halves = release.halves
    if halves is None:
        return "selected: see the result"
    known = halves[np.isfinite(halves)]
    if not known.size:
        return "not known"
    low, high = float(known.min()), float(known.max())
    least, most = (f"± {width(one, decimals_of(one)).removesuffix('.0')}" for one in (low, high))
    if least == most:
        return most
    return f"up to {most}" if low == 0 else f"{least} to {most}"


def accuracy(release: Release) -> list[str]:
    """How exact the numbers of a release are, a sentence each."""
    facts = release.facts
    if release.selected:
        return [_selected(release)]
    level = facts.error.get("level")
    share = f"{100 * level:g} %" if isinstance(level, int | float) else "the stated level"
    told = [
        f"With a probability of {share} the noise moved a released number by at most its ±, each number by "
        "itself."
    ]
    if facts.statistic == "kmeans":
        told.append(
            "For centres of clusters that is the distance to the mean of the records nearest to the centre "
            "of the round before, and not to the best centres."
        )
    if facts.bounding is not None:
        told += [
            BOUNDINGS.get(facts.bounding, f"Numbers were kept in bounds ({facts.bounding})."),
            _bias(release),
        ]
    if facts.constraint is not None:
        told.append(
            f"The numbers were made consistent ({facts.constraint.replace('_', ' ')}) by arithmetic on the "
            "noisy ones; the ± is that from before."
        )
    if facts.releases > 1:
        told.append(f"There are {facts.releases} independent releases of the same, side by side.")
    return told


def _largest(value: object) -> float | None:
    try:
        numbers = np.abs(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        return None
    known = numbers[np.isfinite(numbers)]
    return float(known.max()) if known.size else None


def _bias(release: Release) -> str:
    """By how much bounding moves the numbers."""
    error = release.facts.error
    bias, rmse = _largest(error.get("bias")), _largest(error.get("rmse"))
    worst = error.get("worst_case")
    most = _largest(worst.get("bias")) if isinstance(worst, dict) else None
    if bias is None or rmse is None or "note" in error:
        return "That biases them near a bound; by how much is not known."
    told = (
        f"That biases them towards the inside: by {bias:.2g} at most if the data's own numbers were the "
        f"released ones (root mean squared error {rmse:.2g} at most)"
    )
    return f"{told}, and by {most:.2g} at most in any case." if most is not None else f"{told}."


def _selected(release: Release) -> str:
    """The error of a selection, which is one of counts, ranks or costs."""
    facts = release.facts
    error = facts.error
    level = error.get("level")
    share = f"{100 * level:g} %" if isinstance(level, int | float) else "the stated level"
    below = error["below_best"]
    parts = below if isinstance(below, dict) else {"": below}
    each = "; ".join(f"{name + ': ' if name else ''}{_records(value)}" for name, value in parts.items())
    if facts.statistic == "kmedian":
        return (
            f"The points were selected. With a probability of {share} their records are, in all, no further "
            f"away than for the best points tried, up to {each} (in lengths of a range)."
        )
    if facts.statistic in ("mode", "top_k"):
        return (
            f"The labels were selected. With a probability of {share} the count of a selected label is below "
            f"that of the best one left by at most so many records: {each}."
        )
    told = (
        f"The numbers were selected by rank. With a probability of {share} they are off by at most so many "
        f"records, in rank and not in value: {each}."
    )
    rank, cut = error.get("rank"), error.get("cut")
    ranks = rank if isinstance(rank, dict) else {"": rank}
    sought = "; ".join(
        f"{name + ': ' if name else ''}{_records(value)}"
        for name, value in ranks.items()
        if value is not None
    )
    if sought:
        told += f" What is looked for is the record of this rank from the end: {sought}."
    if cut is True or (isinstance(cut, dict) and any(one is True for one in cut.values())):
        told += " There were too few public records for that, so that a number may lie beyond all records."
    return told


def _records(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return f"{math.ceil(value * 10) / 10:,g}"
    return "not known"
