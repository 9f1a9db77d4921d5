"""The cells of a frame as a page or a prompt shows them: as many as pandas would, with all labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pandas as pd

from pdprivacy.display.digits import label
from pdprivacy.markup import Markup, Spanning, escape, table

__all__ = ["Grid", "Places", "Window"]

Places = list[int | None]
"""Positions along an axis; None where some are left out."""

GAP = "..."
AUTOMATIC = {"max_rows": 60, "max_columns": 20}
"""What pandas takes in a notebook; 0 fits them to a terminal."""


@dataclass(frozen=True, slots=True)
class Window:
    """The rows and columns that are shown of a frame of this shape, by pandas' options of display."""

    rows: Places
    columns: Places
    shape: tuple[int, int]

    @classmethod
    def of(cls, rows: int, columns: int) -> Window:
        """As ``display.max_rows``, ``display.min_rows`` and ``display.max_columns`` say."""
        most = _option("max_rows")
        fewer = pd.get_option("display.min_rows")
        shown = most if most is None or fewer is None else min(most, fewer)
        wide = _option("max_columns")
        return cls(_places(rows, most, shown), _places(columns, wide, wide), (rows, columns))

    @property
    def cells(self) -> int:
        """How many are shown."""
        return len(self.rows) * len(self.columns)

    @property
    def note(self) -> str:
        """The shape of the whole, where some of it is left out."""
        if None not in self.rows and None not in self.columns:
            return ""
        return f"{self.shape[0]} rows × {self.shape[1]} columns"


def _option(name: str) -> int | None:
    found: int | None = pd.get_option(f"display.{name}")
    return AUTOMATIC[name] if found == 0 else found


def _places(length: int, most: int | None, shown: int | None) -> Places:
    if most is None or shown is None or length <= most:
        return list(range(length))
    last = shown // 2
    return [*range(shown - last), None, *range(length - last, length)]


@dataclass(frozen=True)
class Grid:
    """A frame as rows of text: its labels, and what stands in its cells.

    ``heads``: the columns of labels. ``text``: the numbers of those that hold text.
    """

    above: list[list[Spanning]]
    head: list[str]
    rows: list[list[str]]
    heads: int
    text: set[int] = field(default_factory=set)

    @classmethod
    def of(
        cls,
        window: Window,
        index: pd.Index[Any],
        columns: pd.Index[Any],
        cell: Callable[[int, int], str],
        text: Sequence[int] = (),
    ) -> Grid:
        """What is in the window; ``cell`` makes a cell of its row and column. ``text``: columns of text."""
        above, head = _heads(index, columns, window.columns)
        sides = _parts(index, window.rows)
        rows = []
        for place, side in zip(window.rows, sides, strict=True):
            cells = [GAP if None in (place, at) else cell(place, at) for at in window.columns]  # type: ignore[arg-type]
            rows.append([*side, *cells])
        left = {index.nlevels + shown for shown, at in enumerate(window.columns) if at in text}
        return cls(above, head, rows, index.nlevels, left)

    def html(self, caption: str = "") -> Markup:
        """As a table."""
        return table(
            self.head, self.rows, caption=caption, heads=self.heads, text=self.text, above=self.above
        )

    def plain(self) -> str:
        """As lines, labels to the left and numbers to the right."""
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


def _parts(index: pd.Index[Any], places: Places) -> list[tuple[str, ...]]:
    """The labels at some places, one text per level."""
    levels = [index.get_level_values(level) for level in range(index.nlevels)]
    return [tuple(GAP if place is None else label(level[place]) for level in levels) for place in places]


def _heads(
    index: pd.Index[Any], columns: pd.Index[Any], places: Places
) -> tuple[list[list[Spanning]], list[str]]:
    """The rows above the columns, equal labels side by side as one; and the last row of the head."""
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


def joined(text: str, picture: Markup) -> Markup:
    """A cell of text with a picture beside it."""
    if not picture:
        return escape(text)
    return Markup(f'<span style="white-space:nowrap">{escape(text)} {picture}</span>')
