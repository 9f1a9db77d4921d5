"""The charges of a budget as a table."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pdprivacy.ledger.account import Account, Entry, near
from pdprivacy.show import budget_text

if TYPE_CHECKING:
    from pdprivacy.ledger.book import Book

__all__ = ["ALL", "read", "table"]

ALL = slice(None)
START = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class _Columns:
    """The columns of `Budget.entries`, charge by charge; no charge is kept."""

    def __init__(self) -> None:
        self._texts: list[tuple[str, str, str | None]] = []
        self._amounts = array("d")
        self._times = array("q")

    def add(self, entry: Entry) -> None:
        """Add a row; equal labels are kept once."""
        self._texts.append((sys.intern(str(entry.label)), sys.intern(str(entry.mechanism)), entry.release))
        epsilon, delta, rho = entry.amounts
        self._amounts.extend(
            math.nan if amount is None else near(amount) for amount in (epsilon, delta, rho or None)
        )
        self._times.append((entry.time - START) // MICROSECOND)

    def frame(self, first: int, answered: Any, reached: Any) -> pd.DataFrame:
        """Return the table; ``first`` is the number of the first charge."""
        index = pd.RangeIndex(first, first + len(self._texts), name="charge")
        labels, mechanisms, releases = zip(*self._texts, strict=True) if self._texts else ((), (), ())
        amounts = np.array(self._amounts).reshape(-1, 3)
        columns = {
            "release": pd.Series(labels, index, dtype=str),
            "mechanism": pd.Series(mechanisms, index, dtype=str),
            "epsilon": amounts[:, 0],
            "delta": amounts[:, 1],
            "rho": amounts[:, 2],
            "time": pd.to_datetime(np.array(self._times).view("datetime64[us]"), utc=True),
            "answered": np.array(answered, dtype=bool),
            "dr_ha": np.array(reached, dtype="float64"),
            "release_id": pd.Series(releases, index, dtype=object),
        }
        return pd.DataFrame(columns, index=index)


def read(book: Book, pick: slice = ALL) -> tuple[Account, pd.DataFrame]:
    """Return the account, and one row per picked charge; see `Budget.entries`."""
    columns = _Columns()
    account, answered, risks = book.read(columns.add, pick)
    start = pick.indices(account.charges)[0]
    return account, columns.frame(start + 1, answered[pick], np.fmax.accumulate(risks)[pick])


def table(entries: Sequence[Entry]) -> pd.DataFrame:
    """Return one row per charge; see `Budget.entries`."""
    columns = _Columns()
    for entry in entries:
        columns.add(entry)
    return columns.frame(1, [entry.answered for entry in entries], budget_text.reached(entries))
