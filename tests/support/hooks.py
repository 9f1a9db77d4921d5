"""Where the recorder takes hold of the package: the one file to rewrite when the package moves inside.

`attached` replaces the last function before each random number, and the one that enters a charge, for as long
as its block runs. What it tells the recorder are plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from typing import Any, Protocol
from unittest.mock import patch

import numpy as np

from pdprivacy.core import noise
from pdprivacy.core.gate import tasks
from pdprivacy.core.mechanisms import exponential
from pdprivacy.core.mechanisms.support import first_step, in_steps, last_step
from pdprivacy.core.noise.bits import Source
from pdprivacy.core.noise.choice import Weights
from pdprivacy.core.privacy import ZCDP
from pdprivacy.core.statistics.candidates import Quantile
from pdprivacy.ledger import Budget
from pdprivacy.releases import clustering, publish
from tests.support.records import Charge, Coins, Draw, Event, Law, Selection

__all__ = ["Listener", "attached"]


class Listener(Protocol):
    """A listener to each charge and each random number."""

    def charged(self, charge: Charge) -> None: ...
    def draws(self, draw: Draw) -> list[int] | None:
        """The noise to take in place of random noise, in grid steps; None for random noise."""

    def drew(self, steps: list[int]) -> None: ...
    def selects(self, choice: Selection) -> int | None:
        """The place of the candidate to take in place of a random one; None for a random one."""

    def selected(self, position: int) -> None: ...
    def throws(self, coins: Coins) -> np.ndarray | None:
        """The coins to take in place of random coins; None for random ones."""

    def publishes(self, make: Callable[[], Any]) -> Any:
        """The published object of noisy numbers, which ``make`` makes."""


@contextmanager
def attached(listener: Listener) -> Iterator[None]:
    """Tell the listener of all charges and random numbers until the block ends."""
    state: dict[str, Any] = {"parts": {}, "part": None, "runs": None, "first": False}
    with ExitStack() as stack:

        def replace(owner: Any, name: str, make: Any) -> None:
            stack.enter_context(patch.object(owner, name, make(getattr(owner, name))))

        replace(tasks, "calibrate", lambda own: _calibrating(own, state))
        for owner, name in ((tasks, "add"), (tasks, "add_within"), (exponential, "add")):
            replace(owner, name, lambda own: _adding(own, state))
        for name, law in LAWS.items():
            replace(noise, name, lambda own, law=law: _drawing(own, law, state, listener))
        for mechanism in (exponential.ExponentialMechanism, exponential.PermuteAndFlip):
            replace(mechanism, "select", lambda own: _selecting(own, listener))
        replace(Quantile, "runs_near_target", lambda own: _nearing(own, state))
        replace(exponential.ExponentialMechanism, "_weights", lambda own: _weighing(own, state))
        replace(Weights, "draw", lambda own: _weighted(own, state, listener))
        replace(Source, "below", lambda own: lambda self, n: 0 if state["first"] else own(self, n))
        replace(
            noise,
            "coins",
            lambda own: (
                lambda n, p, source: _thrown(Coins("coins", n, (p,)), lambda: own(n, p, source), listener)
            ),
        )
        replace(
            noise,
            "weighted_coins",
            lambda own: (
                lambda p, source: _thrown(
                    Coins("weighted coins", len(p), tuple(p.tolist())), lambda: own(p, source), listener
                )
            ),
        )
        replace(
            noise,
            "draw_without_replacement",
            lambda own: (
                lambda n, size, source: _thrown(
                    Coins("without replacement", n, (size,)), lambda: own(n, size, source), listener
                )
            ),
        )
        replace(
            noise,
            "shuffled_keys",
            lambda own: lambda n, source: _thrown(Coins("shuffle", n, ()), lambda: own(n, source), listener),
        )
        replace(
            clustering, "packed", lambda own: lambda n, axes, source: _packed(own, n, axes, source, listener)
        )
        replace(
            publish,
            "published",
            lambda own: lambda *args, **words: listener.publishes(lambda: own(*args, **words)),
        )
        replace(Budget, "charge", lambda own: _charging(own, listener))
        yield


# ---------------------------------------------------------------- integers that meet noise


def _calibrating(own: Any, state: dict[str, Any]) -> Any:
    """The part of each mechanism, known from its calibration on."""

    def calibrate(parts: Any, request: Any) -> Any:
        mechanisms = own(parts, request)
        # with the mechanism itself, so that no other one has its id
        state["parts"] |= {
            id(mechanism): (part, mechanism) for part, mechanism in zip(parts, mechanisms, strict=True)
        }
        return mechanisms

    return calibrate


def _adding(own: Any, state: dict[str, Any]) -> Any:
    """A part, its mechanism and its exact integers, known while its noise is drawn."""

    def add(whole: Any, unit: Any, mechanism: Any, *rest: Any) -> Any:
        part, _ = state["parts"][id(mechanism)]
        assert unit == part.unit
        state["part"] = (whole, part, mechanism, rest[0] if len(rest) == 2 else None)
        try:
            return own(whole, unit, mechanism, *rest)
        finally:
            state["part"] = None

    return add


LAWS: dict[str, Any] = {
    "discrete_laplace": lambda scale, size: (Law("laplace", (scale,)), size, None),
    "discrete_gaussian": lambda variance, size: (Law("gaussian", (variance,)), size, None),
    "staircase": lambda epsilon, width, step, size: (
        Law("staircase", (epsilon, Fraction(width), Fraction(step))), size, None),
    "truncated_laplace": lambda scale, below, above: (
        Law("laplace", (scale,)), len(below), (below, above)),
    "generalized_normal": lambda power, divisor, below, above: (
        Law("rounded normal", (power, divisor)), len(below), (below, above)),
}  # fmt: skip
"""The last functions before noise: their arguments as a law in grid steps, a size and distances to bounds."""


def _drawing(own: Any, law: Any, state: dict[str, Any], listener: Listener) -> Any:
    def draw(*args: Any) -> Any:
        assert state["part"] is not None, "noise that is added to nothing known"
        drawn, size, distances = law(*args[:-1])
        override = listener.draws(_draw(drawn, size, distances, *state["part"]))
        steps = own(*args) if override is None else np.array(override, np.int64)
        assert len(steps) == size
        listener.drew(steps.tolist())
        return steps

    return draw


def _draw(law: Law, size: int, distances: Any, whole: Any, part: Any, mechanism: Any, limits: Any) -> Draw:
    integers = [int(number) for number in whole]
    centers = in_steps(whole, part.unit, mechanism.grid)
    below = above = None
    if distances is not None:
        below, above = (_finite(side) for side in distances)
        if limits is not None:
            centers = [
                _center(number, lower, upper, *ends)
                for number, lower, upper, ends in zip(
                    centers, below, above, _ends(limits, mechanism.grid, size), strict=True
                )
            ]
    assert len(integers) == size
    return Draw(
        part=part.name,
        weight=part.weight,
        l1=part.l1,
        l2_squared=part.l2_squared,
        moves=part.l0,
        unit=part.unit,
        mechanism=mechanism.name,
        epsilon=mechanism.epsilon,
        delta=getattr(mechanism, "delta", Fraction(0)),
        scale=mechanism.scale,
        grid=mechanism.grid,
        law=law,
        integers=tuple(integers),
        centers=tuple(centers),
        below=below if below is None else tuple(below),
        above=above if above is None else tuple(above),
    )


def _finite(side: Any) -> list[int | None]:
    return [None if distance == noise.UNBOUNDED else int(distance) for distance in np.asarray(side).tolist()]


def _ends(limits: Any, grid: Fraction, size: int) -> list[tuple[int | None, int | None]]:
    lower, upper = (np.broadcast_to(np.asarray(limit, object), (size,)).tolist() for limit in limits)
    return [(first_step(low, grid), last_step(high, grid)) for low, high in zip(lower, upper, strict=True)]


def _center(number: int, below: int | None, above: int | None, low: int | None, high: int | None) -> int:
    """Where a clamped number lies, by its distances to its bounds."""
    if below is not None and low is not None:
        return low + below
    if above is not None and high is not None:
        return high - above
    return number


# ---------------------------------------------------------------- selections


def _selecting(own: Any, listener: Listener) -> Any:
    def select(self: Any, scores: Any, source: Any) -> int:
        numbers = tuple(np.asarray(scores).tolist())
        starts = tuple(range(len(numbers)))
        choice = Selection(
            self.name, self.steps, self.sensitivity, self.monotone, 1, starts, (1,) * len(numbers), numbers
        )
        override = listener.selects(choice)
        position = own(self, scores, source) if override is None else override
        listener.selected(int(position))
        return int(position)

    return select


def _nearing(own: Any, state: dict[str, Any]) -> Any:
    """All runs of a quantile, also those that hardly any draw looks at."""

    def near(self: Any, ranks: Any, *args: Any) -> Any:
        runs, others, least, beyond = own(self, ranks, *args)
        every = runs.followed_by(beyond()) if others else runs
        state["first"] = False
        order = np.argsort(every.starts, kind="stable")
        state["runs"] = [
            getattr(every, name)[order].tolist() for name in ("starts", "lengths", "deficits")
        ] + [runs]
        return runs, others, least, beyond

    return near


def _weighing(own: Any, state: dict[str, Any]) -> Any:
    def weights(self: Any, lengths: Any, deficits: Any, parts: int = 1, rest: Any = None) -> Any:
        result = own(self, lengths, deficits, parts, rest)
        if isinstance(state["runs"], list):
            starts, sizes, far, near = state["runs"]
            nonempty = [position for position, size in enumerate(sizes) if size]
            choice = Selection(
                self.name,
                self.steps,
                self.sensitivity,
                self.monotone,
                parts,
                tuple(starts[position] for position in nonempty),
                tuple(sizes[position] for position in nonempty),
                tuple(-far[position] for position in nonempty),
            )
            state["runs"] = (choice, near)
        return result

    return weights


def _weighted(own: Any, state: dict[str, Any], listener: Listener) -> Any:
    def draw(self: Any, source: Any) -> int:
        if not isinstance(state["runs"], tuple):
            return own(self, source)
        choice, near = state["runs"]
        override = listener.selects(choice)
        if override is None:
            position = own(self, source)
        else:
            nonempty = np.flatnonzero(near.lengths > 0)
            position = int(nonempty[np.argmin(near.deficits[nonempty])])
            state["first"] = True  # the first step of the run is taken
        listener.selected(position)
        return position

    return draw


# ---------------------------------------------------------------- coins, starts and charges


def _thrown(coins: Coins, own: Any, listener: Listener) -> Any:
    override = listener.throws(coins)
    return own() if override is None else override


def _packed(own: Any, count: int, axes: int, source: Any, listener: Listener) -> Any:
    override = listener.throws(Coins("centres", count, (axes,)))
    return own(count, axes, source) if override is None else (override, 0.0)


def _charging(own: Any, listener: Listener) -> Any:
    def charge(self: Any, cost: Any, label: str, mechanism: str = "", **more: Any) -> Any:
        entry = own(self, cost, label, mechanism, **more)
        events = []
        for event, times in entry.events:
            gaussian = event.noise and (event.noise.multiplier, event.noise.l0_sensitivity, event.noise.steps)
            events.append(Event(*_loss(event.loss), times, gaussian, event.group is not None))
        listener.charged(
            Charge(*_loss(cost), more.get("count", 1), label, mechanism, tuple(events), self.of_group)
        )
        return entry

    return charge


def _loss(loss: Any) -> tuple[Fraction | None, Fraction | None, Fraction | None]:
    return (None, None, loss.rho) if isinstance(loss, ZCDP) else (loss.epsilon, loss.delta, None)
