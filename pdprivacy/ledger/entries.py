"""The charges of a budget as a table, read one by one, with the answers to them."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy import budget_text
from pdprivacy.ledger.entry import Account, Entry, near

if TYPE_CHECKING:
    from pdprivacy.ledger.book import Book

__all__ = ["ALL", "Answers", "read", "table"]

ALL = slice(None)
START = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class Answers:
    """The answers to a range of charges: whether, and at which risk; nine bytes per charge.

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


class _Columns:
    """The columns of `Budget.entries`, charge by charge; no charge is kept."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}  # equal labels are one string
        self._labels: list[str] = []
        self._mechanisms: list[str] = []
        self._releases: list[str | None] = []
        self._amounts = array("d")
        self._times = array("q")

    def add(self, entry: Entry) -> None:
        """Add a row."""
        self._labels.append(self._texts.setdefault(entry.label, entry.label))
        self._mechanisms.append(self._texts.setdefault(entry.mechanism, entry.mechanism))
        self._releases.append(entry.release)
        epsilon, delta, rho = entry.amounts
        self._amounts.extend(math.nan if one is None else near(one) for one in (epsilon, delta, rho or None))
        self._times.append((entry.time - START) // MICROSECOND)

    def frame(self, first: int, answered: Any, reached: Any) -> pd.DataFrame:
        """Return the table; ``first`` is the number of the first charge."""
        index = pd.RangeIndex(first, first + len(self._labels), name="charge")
        amounts = np.array(self._amounts).reshape(-1, 3)
        columns = {
            "release": pd.Series(self._labels, index, dtype=str),
            "mechanism": pd.Series(self._mechanisms, index, dtype=str),
            "epsilon": amounts[:, 0],
            "delta": amounts[:, 1],
            "rho": amounts[:, 2],
            "time": pd.to_datetime(np.array(self._times).view("datetime64[us]"), utc=True),
            "answered": np.array(answered, dtype=bool),
            "dr_ha": np.array(reached, dtype="float64"),
            "release_id": pd.Series(self._releases, index, dtype=object),
        }
        return pd.DataFrame(columns, index=index)


def read(book: Book, pick: slice = ALL) -> tuple[Account, pd.DataFrame]:
    """The account, and one row per picked charge; see `Budget.entries`."""
    columns = _Columns()
    account, answers = book.read(columns.add, pick)
    return account, columns.frame(answers.start + 1, answers.answered, answers.reached)


def table(entries: Sequence[Entry]) -> pd.DataFrame:
    """One row per charge; see `Budget.entries`."""
    columns = _Columns()
    for entry in entries:
        columns.add(entry)
    return columns.frame(1, [entry.answered for entry in entries], budget_text.reached(entries))
