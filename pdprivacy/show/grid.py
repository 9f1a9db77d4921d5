"""The cells of a frame on a page or at a prompt: as many as pandas shows, with all labels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pandas as pd

from pdprivacy.show.markup import Markup, Spanning, escape, table
from pdprivacy.show.numbers import label

__all__ = ["Grid", "Window"]

GAP = "..."
AUTOMATIC = {"max_rows": 60, "max_columns": 20}
"""What pandas uses in a notebook; 0 fits a terminal."""


@dataclass(frozen=True, slots=True)
class Window:
    """The rows and columns shown of a frame, by the display options of pandas; None for a gap."""

    rows: list[int | None]
    columns: list[int | None]
    shape: tuple[int, int]

    @classmethod
    def of(cls, rows: int, columns: int) -> Window:
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


@dataclass(frozen=True)
class Grid:
    """A frame as rows of text.

    ``heads``: the number of label columns. ``text``: the positions of text columns. ``bars``: an error bar
    beside the text of a cell, by the row and the place in it; a prompt has none.
    """

    above: list[list[Spanning]]
    head: list[str]
    rows: list[list[str]]
    heads: int
    text: set[int]
    bars: dict[tuple[int, int], Markup] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        window: Window,
        index: pd.Index[Any],
        columns: pd.Index[Any],
        cell: Callable[[int, int], str],
        text: Collection[int] = (),
        bar: Callable[[int, int], Markup] | None = None,
    ) -> Grid:
        """Return what is in the window; ``cell`` and ``bar`` return those at a row and a column."""
        above, head = _heads(index, columns, window.columns)
        rows, bars = [], {}
        for line, (row, side) in enumerate(zip(window.rows, _parts(index, window.rows), strict=True)):
            cells = list(side)
            for column in window.columns:
                if row is None or column is None:
                    cells.append(GAP)
                    continue
                if bar is not None and (drawn := bar(row, column)):
                    bars[line, len(cells)] = drawn
                cells.append(cell(row, column))
            rows.append(cells)
        left = {index.nlevels + shown for shown, at in enumerate(window.columns) if at in text}
        return cls(above, head, rows, index.nlevels, left, bars)

    def html(self) -> Markup:
        """Return the grid as a table."""
        rows = [
            [self._joined(line, place, text) for place, text in enumerate(row)]
            for line, row in enumerate(self.rows)
        ]
        return table(self.head, rows, heads=self.heads, text=self.text, above=self.above)

    def _joined(self, line: int, place: int, text: str) -> Markup:
        drawn = self.bars.get((line, place))
        if drawn is None:
            return escape(text)
        return Markup(f'<span style="white-space:nowrap">{escape(text)} {drawn}</span>')

    def plain(self) -> str:
        """Return the grid as lines, labels to the left and numbers to the right."""
        over = [[part for one in row for part in (one.text, *[""] * (one.columns - 1))] for row in self.above]
        lines = [row for row in (*over, self.head, *self.rows) if row]
        widths = [max((len(row[at]) for row in lines), default=0) for at in range(len(lines[0]))]
        left = {*range(self.heads), *self.text}
        return "\n".join(
            "  ".join(
                one.ljust(width) if at in left else one.rjust(width)
                for at, (one, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in lines
        )


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
