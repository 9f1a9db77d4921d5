"""The cells of a frame on a page or at a prompt: as many as pandas shows, with all labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

import pandas as pd

from pdprivacy.show.markup import Spanning, Table
from pdprivacy.show.numbers import label

__all__ = ["ShownCells", "grid"]

_Item = TypeVar("_Item")

GAP = "..."
AUTOMATIC = {"max_rows": 60, "max_columns": 20}
"""What pandas uses in a notebook; 0 fits a terminal."""


@dataclass(frozen=True, slots=True)
class ShownCells:
    """The rows and columns shown of a frame, by the display options of pandas; None for a gap."""

    rows: list[int | None]
    columns: list[int | None]
    shape: tuple[int, int]

    @classmethod
    def of(cls, rows: int, columns: int) -> ShownCells:
        """Apply ``display.max_rows``, ``display.min_rows`` and ``display.max_columns``."""
        most = _option("max_rows")
        fewer = pd.get_option("display.min_rows")
        shown = most if most is None or fewer is None else min(most, fewer)
        wide = _option("max_columns")
        return cls(_places(rows, most, shown), _places(columns, wide, wide), (rows, columns))

    @property
    def at(self) -> tuple[list[int], list[int]]:
        """The positions of the rows and columns that are shown."""
        return [row for row in self.rows if row is not None], [at for at in self.columns if at is not None]

    @property
    def cells(self) -> int:
        """The number of cells shown."""
        return len(self.rows) * len(self.columns)

    @property
    def note(self) -> str:
        """The shape of the frame if some of it is omitted."""
        if None not in self.rows and None not in self.columns:
            return ""
        return f"{self.shape[0]} rows × {self.shape[1]} columns"


def _option(name: str) -> int | None:
    found: int | None = pd.get_option(f"display.{name}")
    return AUTOMATIC[name] if found == 0 else found


def _places(length: int, most: int | None, shown: int | None) -> list[int | None]:
    if most is None or shown is None or length <= most:
        return list(range(length))
    last = shown // 2
    return [*range(shown - last), None, *range(length - last, length)]


def grid(
    window: ShownCells,
    index: pd.Index[Any],
    columns: pd.Index[Any],
    cells: Sequence[Sequence[str]],
    text: Sequence[bool],
) -> Table:
    """Return what is in the window; ``cells``, and which columns are ``text``, are without its gaps."""
    above, head = _heads(index, columns, window.columns)
    shown = [_with_gaps(window.columns, line, GAP) for line in cells]
    lines = _with_gaps(window.rows, shown, [GAP] * len(window.columns))
    rows = [[*labels, *line] for labels, line in zip(_parts(index, window.rows), lines, strict=True)]
    left = {index.nlevels + at for at, one in enumerate(_with_gaps(window.columns, text, False)) if one}
    return Table(head, rows, heads=index.nlevels, text=left, above=above)


def _with_gaps(places: Sequence[int | None], shown: Sequence[_Item], gap: _Item) -> list[_Item]:
    """Return what is shown at the places, with the gaps between."""
    rest = iter(shown)
    return [gap if place is None else next(rest) for place in places]


def _parts(index: pd.Index[Any], places: Sequence[int | None]) -> list[tuple[str, ...]]:
    """Return the labels at some places, one text per level."""
    levels = [index.get_level_values(level) for level in range(index.nlevels)]
    return [tuple(GAP if place is None else label(level[place]) for level in levels) for place in places]


def _heads(
    index: pd.Index[Any], columns: pd.Index[Any], places: Sequence[int | None]
) -> tuple[list[list[Spanning]], list[str]]:
    """Return the header rows, with equal labels side by side joined, and the last one."""
    names = ["" if name is None else label(name) for name in index.names]
    parts = _parts(columns, places)
    titles = ["" if name is None else label(name) for name in columns.names]
    if columns.nlevels == 1 and not titles[0]:
        return [], [*names, *(part for (part,) in parts)]
    above = []
    for level, title in enumerate(titles):
        runs = [
            (run[-1], sum(1 for _ in found)) for run, found in groupby(part[: level + 1] for part in parts)
        ]
        last = level == columns.nlevels - 1
        spans = [Spanning(part[-1]) for part in parts] if last else [Spanning(*run) for run in runs]
        corner = [Spanning(title if at == index.nlevels - 1 else "") for at in range(index.nlevels)]
        above.append([*corner, *spans])
    return above, [*names, *[""] * len(parts)] if any(names) else []
