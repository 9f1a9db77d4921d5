"""The recorder: what a release charges, and the exact integers, scales and grids at which noise is drawn.

Use it around any call of the package::

    with recording() as record:
        private.dp.mean("age", epsilon=0.2)
    record.charges, record.draws

In place of random numbers it can take none (`recording(noise="none")`: numbers come out exact, the best
candidate is selected, coins show a fixed pattern), or those that give the outcome of an earlier record
(`recording(outcome=record)`), so that each step of two neighbouring tables sees the same past.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tests.support.hooks import attached
from tests.support.records import Charge, Coins, Draw, Record, Selection

__all__ = ["Recorder", "recording"]


@dataclass
class Recorder:
    """All charges, draws, selections and coins of a block, in order, and what came out of each draw.

    ``outcomes``: per draw the released grid steps, per selection the place; in order. ``published``: the
    objects made of noisy numbers, with their disclosure risks.
    """

    noise: Literal["random", "none"] = "random"
    outcome: Recorder | None = None
    records: list[Record] = field(default_factory=list)
    outcomes: list[tuple[int, ...]] = field(default_factory=list)
    published: list[Any] = field(default_factory=list)

    @property
    def charges(self) -> list[Charge]:
        """The charges."""
        return [record for record in self.records if isinstance(record, Charge)]

    @property
    def steps(self) -> list[Draw | Selection]:
        """The draws and selections, one per entry of ``outcomes``."""
        return [record for record in self.records if isinstance(record, Draw | Selection)]

    @property
    def draws(self) -> list[Draw]:
        """The draws of noise."""
        return [record for record in self.records if isinstance(record, Draw)]

    def _given(self) -> tuple[int, ...] | None:
        """The outcome at this position of the earlier record."""
        return None if self.outcome is None else self.outcome.outcomes[len(self.outcomes)]

    def charged(self, charge: Charge) -> None:
        """Note a charge."""
        self.records.append(charge)

    def draws_of(self, draw: Draw) -> list[int] | None:
        """Note integers that get noise; the noise to take, if any."""
        self.records.append(draw)
        given = self._given()
        if given is not None:
            return [number - center for number, center in zip(given, draw.centers, strict=True)]
        return [0] * len(draw.centers) if self.noise == "none" else None

    def drew(self, steps: list[int]) -> None:
        """Note what was drawn."""
        draw = self.steps[-1]
        assert isinstance(draw, Draw)
        self.outcomes.append(tuple(a + b for a, b in zip(draw.centers, steps, strict=True)))

    def selects(self, choice: Selection) -> int | None:
        """Note candidates, one of which is selected; the one to take, if any."""
        self.records.append(choice)
        given = self._given()
        if given is not None:
            return given[0]
        return int(np.argmax(choice.scores)) if self.noise == "none" else None

    def selected(self, position: int) -> None:
        """Note what was selected."""
        self.outcomes.append((position,))

    def throws(self, coins: Coins) -> np.ndarray | None:
        """Note coins; what they show, in a fixed pattern.

        Also where noise is random: of two neighbouring tables, common records get the same coins.
        """
        if coins.kind != "shuffle":
            self.records.append(coins)
        if coins.kind == "shuffle":
            return np.arange(coins.size, dtype=np.uint64)
        if coins.kind == "centres":
            (axes,) = coins.parameters
            line = (2.0 * np.arange(coins.size) + 1) / coins.size - 1
            return np.repeat(line[:, np.newaxis], int(axes), axis=1)
        if coins.kind == "without replacement":
            return np.arange(coins.size) < int(coins.parameters[0])
        return np.arange(coins.size) % 3 != 1

    def publishes(self, make: Callable[[], Any]) -> Any:
        """Make an object of noisy numbers; take that of the earlier record, whose numbers are the same."""
        published = make() if self.outcome is None else self.outcome.published[len(self.published)]
        self.published.append(published)
        return published


@contextmanager
def recording(
    noise: Literal["random", "none"] = "random", outcome: Recorder | None = None
) -> Iterator[Recorder]:
    """A recorder of all that is charged and drawn in the block."""
    recorder = Recorder(noise, outcome)
    with attached(_Listening(recorder)):
        yield recorder


class _Listening:
    """A recorder as the package's hooks call it."""

    def __init__(self, recorder: Recorder) -> None:
        self.charged, self.draws, self.drew = recorder.charged, recorder.draws_of, recorder.drew
        self.selects, self.selected, self.throws = recorder.selects, recorder.selected, recorder.throws
        self.publishes = recorder.publishes
