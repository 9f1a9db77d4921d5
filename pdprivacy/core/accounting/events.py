"""Events: releases in the form that accountings compose, and their plain JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from pdprivacy import checks
from pdprivacy.core.privacy import ZCDP, Approx, Loss, Pure, check_loss, loss, positive
from pdprivacy.errors import ParameterError, got, kind
from pdprivacy.types import settle

NUMBER = re.compile(r"(0|[1-9][0-9]{0,3999})(?:/([1-9][0-9]{0,3999}))?", re.ASCII)
"""Rational numbers, below the number of digits that Python refuses to read or write."""

LARGEST = 10**3999


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Discrete Gaussian noise on a grid, not truncated, independent for each number.

    Parameters
    ----------
    multiplier : the standard deviation over the l2 sensitivity of all numbers, at most the true quotient.
    l0_sensitivity : the largest number of released numbers that one unit can change.
    steps : the smallest standard deviation of a number in steps of its grid, rounded down; at least 1.

    Raises
    ------
    ParameterError : a number is not positive, or ``l0_sensitivity`` or ``steps`` is not a whole number.

    Notes
    -----
    Numbers with different grids and deviations are one release of this kind after each is divided by its
    deviation: ``multiplier`` is then one over the l2 norm of the quotients that a unit can move.

    The rho is that of continuous noise for every grid. A privacy loss distribution adds the loss of the grid.
    If this loss is too large, as for noise on the integers, it uses the discrete noise itself, provided that
    one number moves, by whole steps, and that ``multiplier`` is the exact quotient and at least 1. Otherwise
    it uses the stated loss.

    >>> GaussianNoise(2, l0_sensitivity=1, steps=2**20).multiplier
    Fraction(2, 1)
    """

    multiplier: Fraction
    l0_sensitivity: int
    steps: int

    def __post_init__(self) -> None:
        settle(
            self,
            multiplier=positive(self.multiplier, "multiplier"),
            l0_sensitivity=checks.whole(self.l0_sensitivity, "l0_sensitivity", 1),
            steps=checks.whole(self.steps, "steps", 1),
        )


@dataclass(frozen=True, slots=True)
class Event:
    """A release, given by a valid privacy loss, and by its noise if that implies a smaller loss.

    The caller states both: an epsilon of events is valid only if all statements are true. ``group``: a name
    for releases that are one mechanism with the sum of their losses, such as those of one secret sample. The
    loss of a single release of a group is not valid by itself.

    >>> from pdprivacy import Pure
    >>> Event(Pure(0.5)).loss
    Pure(epsilon=Fraction(1, 2))
    """

    loss: Loss
    noise: GaussianNoise | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        if self.group is not None and (
            not isinstance(self.group, str) or isinstance(self.loss, ZCDP) or self.noise is not None
        ):
            raise ParameterError("An event of a group must have a name, a loss in epsilon and no noise.")
        check_loss(self.loss, "The loss of an event must be")
        if self.noise is not None and not isinstance(self.noise, GaussianNoise):
            raise ParameterError(
                f"The noise of an event must be GaussianNoise or None (got {kind(self.noise)})."
            )


Events: TypeAlias = Sequence[tuple[Event, int]]
"""Events with their counts."""


def tally(events: Events) -> list[tuple[Event, int]]:
    """Return each distinct event once, with its total count, in a fixed order.

    Only this function adds up counts: for every accounting, n equal events are one event of count n. The
    events of a group become one event with their summed loss.

    Raises
    ------
    ParameterError : anything but a sequence of pairs of an event and a positive whole number.

    >>> tally([(Event(Pure(1)), 2), (Event(Pure(1)), 1)]) == [(Event(Pure(1)), 3)]
    True
    """
    if isinstance(events, Mapping | str | bytes) or not isinstance(events, Iterable):
        raise _no_events(events)
    counts: dict[Event, int] = {}
    groups: dict[str, tuple[Fraction, Fraction]] = {}
    for pair in checks.items(events, "events"):
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[0], Event):
            raise _no_events(pair)
        event, times = pair
        count = times if type(times) is int and times > 0 else checks.whole(times, "count", 1)
        if event.group is None or isinstance(event.loss, ZCDP):
            counts[event] = counts.get(event, 0) + count
        else:
            epsilon, delta = groups.get(event.group, (Fraction(0), Fraction(0)))
            groups[event.group] = epsilon + event.loss.epsilon * count, delta + event.loss.delta * count
    for name, (epsilon, delta) in groups.items():
        counts[Event(loss(epsilon, delta), group=name)] = 1
    return sorted(counts.items(), key=_order) if len(counts) > 1 else list(counts.items())


def to_json(events: Events) -> list[dict[str, Any]]:
    """Return events as plain JSON, pair by pair, with rational numbers as strings such as ``"1/10"``.

    Raises
    ------
    ParameterError : anything but a sequence of pairs; a number of 4000 digits or more.

    >>> from pdprivacy import Pure
    >>> to_json([(Event(Pure(0.1)), 3)])
    [{'loss': {'epsilon': '1/10'}, 'count': 3}]
    """
    tally(events)
    entries = []
    for event, count in events:
        entry: dict[str, Any] = {"loss": loss_json(event.loss), "count": _integer(int(count))}
        if event.noise is not None:
            entry["noise"] = {
                "multiplier": _text(event.noise.multiplier),
                "moves": _integer(event.noise.l0_sensitivity),
                "steps": _integer(event.noise.steps),
            }
        if event.group is not None:
            entry["group"] = event.group
        entries.append(entry)
    return entries


def from_json(entries: object) -> list[tuple[Event, int]]:
    """Return the events that `to_json` wrote, equal to the original events.

    Raises
    ------
    ParameterError : JSON that `to_json` does not write.

    >>> from pdprivacy import Pure
    >>> from_json([{"loss": {"epsilon": "1/10"}, "count": 3}]) == [(Event(Pure(0.1)), 3)]
    True
    """
    if not isinstance(entries, list):
        raise _malformed(f"they are a list (got {got(entries)})")
    events = []
    for entry in entries:
        fields = _fields(entry, {"loss", "count"}, {"noise", "group"})
        noise = None
        if "noise" in fields:
            of_noise = _fields(fields["noise"], {"multiplier", "moves", "steps"})
            noise = GaussianNoise(
                number_of(of_noise["multiplier"]), _whole(of_noise["moves"]), _whole(of_noise["steps"])
            )
        group = fields.get("group")
        if "group" in fields and not isinstance(group, str):
            raise _malformed(f"the name of a group is a string (got {got(group)})")
        events.append((Event(_loss_of(fields["loss"]), noise, group), _whole(fields["count"])))
    return events


def _order(counted: tuple[Event, int]) -> tuple[Any, ...]:
    """Return the sort key of an event, which keeps float arithmetic independent of the order of events."""
    event, _ = counted
    item, noise = event.loss, event.noise
    size = (
        (2, item.rho, 0) if isinstance(item, ZCDP) else (isinstance(item, Approx), item.epsilon, item.delta)
    )
    steps = (noise.multiplier, noise.l0_sensitivity, noise.steps) if noise else ()
    return (*size, noise is not None, *steps, event.group or "")


def _no_events(value: object) -> ParameterError:
    return ParameterError(
        f"'events' must be a list of pairs of an event and a count (got {kind(value)}).",
        "[(Event(Pure(0.1)), 3)].",
    )


def _malformed(fact: str) -> ParameterError:
    return ParameterError(f"The JSON does not hold valid events: {fact}.")


def loss_json(item: Loss) -> dict[str, str]:
    """Return a loss as plain JSON."""
    if isinstance(item, ZCDP):
        return {"rho": _text(item.rho)}
    if isinstance(item, Pure):
        return {"epsilon": _text(item.epsilon)}
    return {"epsilon": _text(item.epsilon), "delta": _text(item.delta)}


def _loss_of(entry: object) -> Loss:
    if isinstance(entry, dict) and "rho" in entry:
        return ZCDP(number_of(_fields(entry, {"rho"})["rho"]))
    fields = _fields(entry, {"epsilon"}, {"delta"})
    if "delta" in fields:
        return Approx(number_of(fields["epsilon"]), number_of(fields["delta"]))
    return Pure(number_of(fields["epsilon"]))


def _fields(entry: object, needed: set[str], others: set[str] | None = None) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise _malformed(f"a {' and '.join(sorted(needed))} in an object (got {got(entry)})")
    if not needed <= set(entry) <= needed | (others or set()):
        raise _malformed(f"an object has other fields than {', '.join(sorted(needed))}")
    return entry


def _text(number: Fraction) -> str:
    _integer(number.numerator)
    _integer(number.denominator)
    return str(number)


def _integer(number: int) -> int:
    if number >= LARGEST:
        raise ParameterError("The numbers of an event must have fewer than 4000 digits.")
    return number


def number_of(text: object) -> Fraction:
    """Return the fraction in a text, which must be in lowest terms, so that each number has one text."""
    if isinstance(text, str) and (written := NUMBER.fullmatch(text)) is not None:
        number = Fraction(int(written[1]), int(written[2] or 1))
        if str(number) == text:
            return number
    raise _malformed(f"numbers are like '1/10' in lowest terms (got {got(text)})")


def _whole(number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number < LARGEST:
        raise _malformed(f"counts are positive whole numbers (got {got(number)})")
    return number
