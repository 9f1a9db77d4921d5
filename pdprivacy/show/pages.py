"""What ``frame.dp`` shows of each kind of frame, as text and as HTML."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.domain import Domain
from pdprivacy.errors import LedgerError, MetadataError, PrivacyError
from pdprivacy.ledger import Budget
from pdprivacy.metadata import KEY
from pdprivacy.privacy import Unit
from pdprivacy.show import markup
from pdprivacy.show.grid import Grid, Window
from pdprivacy.show.markup import Markup, printable
from pdprivacy.show.numbers import label, plain
from pdprivacy.show.recognition import MARK, Recognized, recognized
from pdprivacy.show.view import ALTERED, SEEDED, Floats, Released, View, neighbors_text

__all__ = ["CONFIDENTIAL", "Standing", "html", "html_of_marked", "pages_of", "text"]

CONFIDENTIAL = "CONFIDENTIAL: made of exact counts, for the curator alone"
LEGEND = "bars: the margin of error around each number (dot), on a scale that holds 0 (tick)"
SIMULATED = "bars: 1.96 standard errors of the simulation around each number"
COMPARED = "bars: from lower to upper"
STEPS = (
    "stability: the records of the result that one record can touch; cost: what the whole pays for releases "
    "whose epsilons add up to epsilon"
)
SECRET = "a secret part"
DAMAGED = "The metadata of this frame cannot be read: attrs['dp'] is damaged ({})."

MOST_CHECKED = 100_000
"""Labels of a release that a display reads to see whether it is unchanged: four seconds per million."""

MOST_BARS = 200
"""Error bars of one table: each is about 400 bytes."""

NORMAL = 1.959963984540054

ALIKE = {"count", "value_counts", "histogram", "crosstab", "proportion", "corr"}
"""Statistics whose numbers share a scale."""


@dataclass(frozen=True)
class Part:
    """A part of a page, as text and as HTML."""

    plain: str
    html: Markup


Parts = Iterator[Part]


def _text(parts: Parts) -> str:
    return "\n".join(part.plain for part in parts if part.plain)


def _page(parts: Parts) -> str:
    return markup.page(*(part.html for part in parts))


def _note(line: str) -> Part:
    return Part(line, markup.note(line))


def _seen(line: str) -> Part:
    """A line of HTML alone: it explains what only HTML shows."""
    return Part("", markup.note(line))


def _warning(line: str) -> Part:
    return Part(f"  {line}", markup.warning(line))


def _facts(rows: Sequence[tuple[str, str]], more: Sequence[tuple[str, str]] = ()) -> Part:
    """Names and values; ``more``: rows of HTML alone, after the first."""
    width = max(len(name) for name, _ in rows)
    lines = [f"  {name:<{width}}  {value}" for name, value in rows]
    return Part("\n".join(lines), markup.table([], [*rows[:1], *more, *rows[1:]], text={1}))


def _grid(grid: Grid, window: Window) -> Part:
    note = [markup.note(window.note)] if window.note else []
    lines = ["", grid.plain(), *([window.note] if window.note else []), ""]
    return Part("\n".join(lines), Markup("".join([grid.html(), *note])))


# ---------------------------------------------------------------- releases


def _release(view: View) -> Parts:
    """The numbers with their errors, and what they cost; of a changed release no number."""
    yield _note(printable(view.title))
    if view.facts.seeded is not False:
        yield _warning(SEEDED)
    grid = None
    if view.unchanged:
        grid, window = _numbers(view)
        yield _grid(grid, window)
    else:
        yield _warning(ALTERED)
    yield _facts(view.rows, [("", LEGEND)] if grid is not None and grid.bars else [])


def _numbers(view: View) -> tuple[Grid, Window]:
    """The released numbers, each with its error."""
    table = view.table
    window = Window.of(*table.shape)
    rows, columns = window.at
    pairs = view.pairs(rows, columns)
    line, place = ({at: shown for shown, at in enumerate(axis)} for axis in (rows, columns))
    bars = _Bars.of(view, rows, columns) if window.cells <= MOST_BARS else None

    def pair(row: int, column: int) -> tuple[str, str]:
        return pairs[line[row]][place[column]]

    def bar(row: int, column: int) -> Markup:
        known = bars is not None and pair(row, column)[1]
        return bars.bar(line[row], place[column]) if bars is not None and known else Markup("")

    texts = [at for at in columns if table.dtypes.iloc[at].kind not in "iuf"]
    if isinstance(view.released, pd.DataFrame):

        def cell(row: int, column: int) -> str:
            return " ± ".join(filter(None, pair(row, column)))

        return Grid.of(window, table.index, table.columns, cell, texts, bar), window
    name = view.released.name
    heads = ["released" if name is None else printable(name)]
    heads += ["±"] * any(half for ((_, half),) in pairs)
    whole = Window(window.rows, list(range(len(heads))), window.shape)

    def beside(row: int, column: int) -> Markup:
        return bar(row, 0) if column == 1 else Markup("")

    found = Grid.of(
        whole, table.index, pd.Index(heads), lambda row, column: pair(row, 0)[column], texts, beside
    )
    return found, window


@dataclass(frozen=True)
class _Bars:
    """The error bars of the numbers shown, (R, C), each on a scale from ``low`` to ``high``."""

    values: Floats
    half: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, view: View, rows: Sequence[int], columns: Sequence[int]) -> _Bars:
        shown = view.table.iloc[list(rows), list(columns)]
        values = np.full(shown.shape, np.nan)
        for place in range(len(columns)):
            if shown.dtypes.iloc[place].kind in "iuf":
                values[:, place] = shown.iloc[:, place].to_numpy(dtype=np.float64, na_value=np.nan)
        half = view.half[np.ix_(rows, columns)]
        axis = _shared_axes(view)
        ends = []
        for end, find in ((values - half, np.fmin), (values + half, np.fmax)):
            known = np.where(np.isfinite(end), end, np.nan)
            found = known if axis is None or not known.size else find.reduce(known, axis=axis, keepdims=True)
            ends.append(np.broadcast_to(find(found, 0.0), values.shape))
        return cls(values, half, ends[0], ends[1])

    def bar(self, row: int, column: int) -> Markup:
        value, half, low, high = (
            float(numbers[row, column]) for numbers in (self.values, self.half, self.low, self.high)
        )
        return markup.bar(value - half, value, value + half, low, high)


def _shared_axes(view: View) -> int | tuple[int, ...] | None:
    """The axes along which numbers share a scale; None if each has its own."""
    facts, released = view.facts, view.released
    if facts.statistic in ALIKE:
        return (0, 1)
    names = set(map(str, facts.columns))
    rows = len(released) <= len(names) and set(map(str, released.index)) <= names
    columns = (
        isinstance(released, pd.DataFrame)
        and {str(one[-1] if isinstance(one, tuple) else one) for one in released.columns} <= names
    )
    if facts.statistic == "describe" or (rows and columns):
        return None
    if rows:
        return 1
    return 0 if columns else (0, 1)


# ---------------------------------------------------------------- frames made of exact counts


def pages_of(frames: Sequence[tuple[str, Released]]) -> str:
    """Return several confidential frames as HTML under one mark."""
    parts = [part for kind, frame in frames for part in _confidential(frame, kind)]
    return markup.page(markup.warning(CONFIDENTIAL, confidential=True), *(part.html for part in parts))


def _marked(frame: Released, kind: str) -> str:
    """A confidential frame as HTML; the mark alone if the frame holds what cannot be shown."""
    try:
        return pages_of([(kind, frame)])
    except Exception:
        return markup.page(
            markup.warning(CONFIDENTIAL, confidential=True), markup.note("It cannot be shown here.")
        )


def _confidential(frame: Released, kind: str) -> Parts:
    """The arguments and the cells of a confidential frame."""
    stored = frame.attrs.get(KEY)
    said = [
        f"{name} {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in (stored if isinstance(stored, Mapping) else {}).items()
        if name != MARK and value is not None
    ]
    if said or kind != MARK:
        yield _note(printable(f"{kind}: {'; '.join(said)}" if said else kind))
    named = isinstance(frame, pd.Series) and frame.name is not None
    table = frame.to_frame(label(frame.name) if named else "") if isinstance(frame, pd.Series) else frame
    window = Window.of(*table.shape)
    rows, columns = window.at
    shown = {at: table.iloc[:, at].iloc[rows].tolist() for at in columns}
    line = {at: place for place, at in enumerate(rows)}
    spans, legend = _spans(table, rows) if window.cells <= MOST_BARS else ({}, "")
    drawn = {at: span for at, span in spans.items() if at in shown}
    ends = [end for span in drawn.values() for end in span if end.size]
    low = min((float(np.fmin.reduce(end)) for end in ends), default=0.0)
    high = max((float(np.fmax.reduce(end)) for end in ends), default=0.0)

    def bar(row: int, column: int) -> Markup:
        value = shown[column][line[row]]
        if column not in drawn or not isinstance(value, float):
            return Markup("")
        lower, upper = (float(end[line[row]]) for end in drawn[column])
        return markup.bar(lower, value, upper, min(low, 0.0), max(high, 0.0))

    texts = [at for at, cells in shown.items() if not all(isinstance(one, int | float) for one in cells)]
    index = table.index
    if index.nlevels == 1 and index.dtype.kind == "f":
        index = pd.Index([plain(one) for one in index], name=index.name)
    grid = Grid.of(window, index, table.columns, lambda row, at: plain(shown[at][line[row]]), texts, bar)
    yield _grid(grid, window)
    if grid.bars:
        yield _seen(legend)


def _spans(table: pd.DataFrame, rows: list[int]) -> tuple[dict[int, tuple[Floats, Floats]], str]:
    """Return lower and upper ends by column, where other columns hold them, and what they are."""
    at: dict[Any, int] = {one: place for place, one in enumerate(table.columns)}
    if len(at) < table.shape[1]:
        return {}, ""

    def numbers(name: Hashable) -> Floats:
        column: pd.Series[Any] = table.iloc[:, at[name]]
        return column.iloc[rows].to_numpy(dtype=np.float64, na_value=np.nan)

    found = {}
    with suppress(TypeError, ValueError):  # numbers that were made texts have no bars
        if {"error", "lower", "upper"} <= set(at):
            return {at["error"]: (numbers("lower"), numbers("upper"))}, COMPARED
        for one, place in at.items():
            first, *rest = one if isinstance(one, tuple) else (one,)
            name = ("standard_error", *rest) if isinstance(one, tuple) else "standard_error"
            if first in ("risk", "tvd") and name in at:
                half = NORMAL * numbers(name)
                found[place] = (numbers(one) - half, numbers(one) + half)
    return found, SIMULATED


# ---------------------------------------------------------------- protected frames


@dataclass(frozen=True)
class Standing:
    """The public facts of a protected frame: its declaration, its budget and its row steps.

    ``engine``: the engine of the records. ``lineage``: as of `pdprivacy.protection.lineage`. ``rows``: the
    number of records if it is public. ``seeded``: whether a secret sample can be drawn again.
    """

    engine: str
    domain: Domain
    unit: Unit
    budget: Budget
    lineage: pd.DataFrame
    rows: int | None
    seeded: bool

    def parts(self) -> Parts:
        """Yield the parts of its page."""
        yield _note(f"Protected frame of {self.engine}")
        if self.seeded:
            yield _warning(SEEDED)
        yield Part(f"\n{self.domain!r}\n", Markup(self.domain._repr_html_()))
        known = "private" if self.rows is None else f"{self.rows} (public)"
        yield _facts([("neighbors", neighbors_text(self.unit.neighbors, self.unit.column)), ("rows", known)])
        yield self._budget()
        if len(self.lineage):
            yield Part("\nLineage", markup.note("Lineage"))
            yield from _lineage(self.lineage)

    def _budget(self) -> Part:
        """The budget, or why its ledger cannot be read."""
        try:
            return Part(f"\n{self.budget!r}", Markup(self.budget._repr_html_()))
        except LedgerError as error:
            return Part(f"\n{error}", markup.warning(error))


def _lineage(frame: pd.DataFrame) -> Parts:
    """The steps between the raw frame and a protected one."""
    rows = [
        (str(number), printable(step), SECRET if stability is pd.NA else plain(stability), printable(cost))
        for number, (step, stability, cost) in enumerate(
            zip(*(frame[name].tolist() for name in ("step", "stability", "cost")), strict=True), 1
        )
    ]
    lines = [
        f"  {number}  {step}  stability {stability}  cost {cost}" for number, step, stability, cost in rows
    ]
    yield Part("\n".join(lines), markup.table(["", "step", "stability", "cost"], rows, text={1, 3}))
    yield _seen(STEPS)


# ---------------------------------------------------------------- any frame


def html_of_marked(frame: Released) -> str | None:
    """Return the HTML of a release, a confidential frame or a lineage; None for every other frame.

    A release that was changed has none: its metadata no longer describe its numbers.
    """
    known = recognized(frame)
    if known.what == "confidential":
        return _marked(frame, known.kind)
    if known.what == "lineage" and isinstance(frame, pd.DataFrame):
        return _page(_lineage(frame))
    view = View.of(frame) if known.what == "release" and len(frame) <= MOST_CHECKED else None
    return _page(_release(view)) if view is not None and view.unchanged else None


def html(frame: Any, standing: Standing | PrivacyError) -> str:
    """Return what ``frame.dp`` shows in a notebook, whatever the frame holds in ``attrs``."""
    if isinstance(standing, Standing):
        return _page(standing.parts())
    try:
        known = recognized(frame)
        if known.what == "confidential":
            return _marked(frame, known.kind)
        return _page(_known(frame, known, standing))
    except MetadataError as error:
        return _page(_reason(error))
    except Exception as error:  # a damaged mark can hold anything
        return markup.page(markup.warning(DAMAGED.format(type(error).__name__)))


def text(frame: Any, standing: Standing | PrivacyError) -> str:
    """Return what ``frame.dp`` shows at a prompt."""
    if isinstance(standing, Standing):
        return _text(standing.parts())
    try:
        known = recognized(frame)
        if known.what == "confidential":
            return f"{CONFIDENTIAL}\n{_text(_confidential(frame, known.kind))}"
        return _text(_known(frame, known, standing))
    except MetadataError as error:
        return str(error)
    except Exception as error:  # a damaged mark can hold anything
        return DAMAGED.format(type(error).__name__)


def _known(frame: Any, known: Recognized, error: PrivacyError) -> Parts:
    """The parts of a lineage or a release; of another frame why there is nothing to show."""
    if known.what == "lineage":
        return _lineage(frame)
    return _release(View.of(frame)) if known.what == "release" else _reason(error)


def _reason(error: PrivacyError) -> Parts:
    """Why there is nothing to show, and what to write instead."""
    return map(_note, str(error).split("\n"))
