"""Answers to a range of charges, without the charges themselves."""

from __future__ import annotations

import math
import sys
from array import array

import numpy as np
from numpy.typing import NDArray

__all__ = ["Answers"]


class Answers:
    """Which charges of a range were answered, and at which risk; nine bytes per charge.

    Charges are counted in order, each before its answer. ``pick``: the range, as positions in a list of
    ``charges`` charges; without a stop, it also takes charges that are counted beyond these.
    """

    def __init__(self, pick: slice, charges: int) -> None:
        self.start, stop, _ = pick.indices(charges)
        self._stop = sys.maxsize if pick.stop is None else stop
        self.charges = 0
        """Charges counted so far, before and after the range too."""
        self._answered = bytearray()
        self._risks = array(
            "d", [math.nan]
        )  # the largest of all charges before the range, then one per charge

    def charge(self) -> bool:
        """Count a charge; return whether the range holds it."""
        within = self.start <= self.charges < self._stop
        if within:
            self._answered.append(False)
            self._risks.append(math.nan)
        self.charges += 1
        return within

    def answer(self, number: int, risk: float | None) -> None:
        """Note the answer to a charge; of several risks the largest stands."""
        place = max(0, number - self.start)
        if place >= len(self._risks):
            return
        if place:
            self._answered[place - 1] = True
        if risk is not None and not risk <= self._risks[place]:
            self._risks[place] = risk

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Whether each charge of the range was answered."""
        return np.array(self._answered, dtype=bool)

    @property
    def risks(self) -> list[float | None]:
        """The risk of each charge of the range, where one is known."""
        return [None if math.isnan(risk) else risk for risk in self._risks[1:]]

    @property
    def reached(self) -> NDArray[np.float64]:
        """The largest risk up to each charge of the range; NaN before the first that has one."""
        return np.fmax.accumulate(np.array(self._risks))[1:]
