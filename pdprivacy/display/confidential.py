"""What is shown of frames that are made of exact counts: the same numbers, under a mark that stays."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy import markup
from pdprivacy.display.digits import label, plain
from pdprivacy.display.grid import Grid, Window, joined
from pdprivacy.markup import Markup
from pdprivacy.metadata import KEY

__all__ = ["MARK", "html", "pages_of", "text"]

Frame: TypeAlias = "pd.Series[Any] | pd.DataFrame"
Floats: TypeAlias = NDArray[np.float64]

NAME = "confidential"
MARK = "CONFIDENTIAL: made of exact counts, for the curator alone"

NORMAL = 1.959963984540054
MOST_BARS = 200
SIMULATED = "bars: 1.96 standard errors of the simulation around each number"
COMPARED = "bars: from lower to upper"
DIGITS = 6


def html(frame: Frame, kind: str) -> str:
    """For a notebook; the mark alone where the frame holds what cannot be shown."""
    try:
        return pages_of([(kind, frame)])
    except Exception:
        return markup.page(markup.warning(MARK, confidential=True), markup.note("It cannot be shown here."))


def pages_of(frames: Sequence[tuple[str, Frame]]) -> str:
    """Several frames under one mark."""
    pieces = [markup.warning(MARK, confidential=True)]
    for kind, frame in frames:
        pieces += _pieces(frame, kind)
    return markup.page(*pieces)


def text(frame: Frame, kind: str) -> str:
    """For a prompt."""
    grid, window, _ = _grid(frame, bars=False)
    lines = [MARK, *_told(frame, kind), "", grid.plain(), *([window.note] if window.note else [])]
    return "\n".join(lines)


def _pieces(frame: Frame, kind: str) -> list[Markup]:
    grid, window, legend = _grid(frame, bars=True)
    told = [markup.note(line) for line in _told(frame, kind)]
    return [*told, grid.html(), *(markup.note(line) for line in (window.note, legend) if line)]


def _told(frame: Frame, kind: str) -> list[str]:
    """What the frame is of, and how it was asked for."""
    stored = frame.attrs.get(KEY)
    words = stored if isinstance(stored, Mapping) else {}
    said = [
        f"{name} {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in words.items()
        if name != NAME and value is not None
    ]
    if said:
        return [markup.printable(f"{kind}: {'; '.join(said)}")]
    return [] if kind == NAME else [kind]


def _grid(frame: Frame, *, bars: bool) -> tuple[Grid, Window, str]:
    """The cells, and what the bars beside some of them are."""
    table = frame.to_frame(_title(frame)) if isinstance(frame, pd.Series) else frame
    window = Window.of(*table.shape)
    rows = [place for place in window.rows if place is not None]
    columns = [place for place in window.columns if place is not None]
    shown = {at: table.iloc[:, at].iloc[rows].tolist() for at in columns}
    where = {place: at for at, place in enumerate(rows)}
    spans: dict[int, tuple[Floats, Floats]] = {}
    legend = ""
    if bars and window.cells <= MOST_BARS:
        with suppress(TypeError, ValueError):  # numbers that were made texts have no bars
            spans, legend = _spans(table, rows)
    drawn = {at: span for at, span in spans.items() if at in shown}
    ends = [end for span in drawn.values() for end in span if end.size]
    low = min((float(np.fmin.reduce(end)) for end in ends), default=0.0)
    high = max((float(np.fmax.reduce(end)) for end in ends), default=0.0)

    def cell(row: int, column: int) -> str:
        value = shown[column][where[row]]
        said = f"{value:.{DIGITS}g}" if isinstance(value, float) and value == value else plain(value)
        if column not in drawn or not isinstance(value, float):
            return said
        lower, upper = (float(end[where[row]]) for end in drawn[column])
        return joined(said, markup.bar(lower, value, upper, min(low, 0.0), max(high, 0.0)))

    texts = [at for at, cells in shown.items() if not all(isinstance(one, int | float) for one in cells)]
    index = table.index
    if index.nlevels == 1 and index.dtype.kind == "f":
        index = pd.Index([f"{one:.{DIGITS}g}" for one in index], name=index.name)
    return Grid.of(window, index, table.columns, cell, texts), window, legend if drawn else ""


def _title(series: pd.Series[Any]) -> str:
    return "" if series.name is None else label(series.name)


def _spans(table: pd.DataFrame, rows: list[int]) -> tuple[dict[int, tuple[Floats, Floats]], str]:
    """Lower and upper ends by column, where other columns hold them, and what they are."""
    at: dict[Any, int] = {one: place for place, one in enumerate(table.columns)}
    if len(at) < table.shape[1]:
        return {}, ""

    def numbers(name: Hashable) -> Floats:
        column: pd.Series[Any] = table.iloc[:, at[name]]
        return column.iloc[rows].to_numpy(dtype=np.float64, na_value=np.nan)

    if {"error", "lower", "upper"} <= set(at):
        return {at["error"]: (numbers("lower"), numbers("upper"))}, COMPARED
    found = {}
    for one, place in at.items():
        first, *rest = one if isinstance(one, tuple) else (one,)
        name = ("standard_error", *rest) if isinstance(one, tuple) else "standard_error"
        if first in ("risk", "tvd") and name in at:
            half = NORMAL * numbers(name)
            found[place] = (numbers(one) - half, numbers(one) + half)
    return found, SIMULATED
