"""What ``frame.dp`` shows of each kind of frame, as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from pdprivacy.show.cell_grid import ShownCells, grid
from pdprivacy.show.markup import Barred, Block, Markup, Table, aligned, printable
from pdprivacy.show.numbers import label, plain
from pdprivacy.show.recognition import MARK, recognized
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


Blocks = Iterator[Block]


def _note(line: str) -> Block:
    return Block(line, markup.note(line))


def _seen(line: str) -> Block:
    """A line of HTML alone: it explains what only HTML shows."""
    return Block("", markup.note(line))


def _warning(line: str) -> Block:
    return Block(f"  {line}", markup.warning(line))


def _facts(rows: Sequence[tuple[str, str]], more: Sequence[tuple[str, str]] = ()) -> Block:
    """Names and values; ``more``: rows of HTML alone, after the first."""
    lines = aligned([("", *row) for row in rows], {0, 1, 2})
    return Block(lines, markup.table([], [*rows[:1], *more, *rows[1:]], text={1}))


def _shown(table: Table, window: ShownCells) -> Block:
    note = [window.note] if window.note else []
    lines = ["", table.plain(), *note, ""]
    return Block("\n".join(lines), Markup("".join([table.html(), *map(markup.note, note)])))


def _has_bars(table: Table) -> bool:
    return any(isinstance(one, Barred) for row in table.rows for one in row)


# ---------------------------------------------------------------- error bars


@dataclass(frozen=True)
class _Bars:
    """The error bars of the cells that are shown, (R, C); NaN for none.

    ``axis``: the axes along which they share a scale, which holds 0; None if each has its own.
    """

    lower: Floats
    value: Floats
    upper: Floats
    axis: int | tuple[int, ...] | None = (0, 1)

    def drawn(self) -> list[list[Markup]]:
        """Return the bar of each cell."""
        ends = []
        for end, find in ((self.lower, np.fmin), (self.upper, np.fmax)):
            known = np.where(np.isfinite(end), end, np.nan)
            if self.axis is not None and known.size:
                known = find.reduce(known, axis=self.axis, keepdims=True)
            ends.append(np.broadcast_to(find(known, 0.0), end.shape))
        of_each = np.stack([self.lower, self.value, self.upper, *ends], axis=-1).tolist()
        return [[markup.bar(*numbers) for numbers in line] for line in of_each]


def _floats(table: pd.DataFrame) -> Floats:
    """The cells of columns of numbers; NaN for others."""
    values = np.full(table.shape, np.nan)
    for place, dtype in enumerate(table.dtypes):
        if dtype.kind in "iuf":
            values[:, place] = table.iloc[:, place].to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def _cells(window: ShownCells, texts: Sequence[Sequence[str]], bars: _Bars | None) -> list[list[str]]:
    """Texts with their error bars, if the table has any and is small enough."""
    if bars is None or window.cells > MOST_BARS:
        return [list(line) for line in texts]
    return [
        [Barred.of(text, bar) if bar else text for text, bar in zip(line, drawn, strict=True)]
        for line, drawn in zip(texts, bars.drawn(), strict=True)
    ]


# ---------------------------------------------------------------- releases


def _release(view: View) -> Blocks:
    """The numbers with their errors, and what they cost; of a changed release no number."""
    yield _note(printable(view.title))
    if view.facts.seeded is not False:
        yield _warning(SEEDED)
    legend = []
    if view.unchanged:
        table, window = _numbers(view)
        legend = [("", LEGEND)] * _has_bars(table)
        yield _shown(table, window)
    else:
        yield _warning(ALTERED)
    yield _facts(view.rows, legend)


def _numbers(view: View) -> tuple[Table, ShownCells]:
    """The released numbers, each with its error; of a Series in a column beside them."""
    window = ShownCells.of(*view.table.shape)
    rows, columns = window.at
    values, half = _floats(view.table.iloc[rows, columns]), view.half[np.ix_(rows, columns)]
    bars = _Bars(values - half, values, values + half, _shared_axes(view))
    return view.grid(window, lambda texts: _cells(window, texts, bars)), window


def _shared_axes(view: View) -> int | tuple[int, ...] | None:
    """The axes along which numbers share a scale; None if each has its own."""
    facts, released = view.facts, view.released
    if facts.statistic in ALIKE:
        return (0, 1)
    names = set(map(str, facts.columns))
    rows = len(released) <= len(names) and set(map(str, released.index)) <= names
    rows = rows or facts.statistic == "ols"  # each coefficient has a unit of its own
    columns = (
        isinstance(released, pd.DataFrame)
        and {str(one[-1] if isinstance(one, tuple) else one) for one in released.columns} <= names
    )
    if facts.statistic in ("agg", "describe"):
        return 0 if view.by else None
    if rows and columns:
        return None
    if rows:
        return 1
    return 0 if columns else (0, 1)


# ---------------------------------------------------------------- frames made of exact counts

MARKED = Block(CONFIDENTIAL, markup.warning(CONFIDENTIAL, confidential=True))


def pages_of(frames: Sequence[tuple[str, Released]]) -> str:
    """Return several confidential frames as HTML under one mark."""
    return _html([MARKED, *(block for kind, frame in frames for block in _confidential(frame, kind))])


def _marked(frame: Released, kind: str) -> list[Block]:
    """A confidential frame; the mark alone if the frame holds what cannot be shown."""
    try:
        return [MARKED, *_confidential(frame, kind)]
    except Exception:
        return [MARKED, _note("It cannot be shown here.")]


def _confidential(frame: Released, kind: str) -> Blocks:
    """The arguments and the cells of a confidential frame."""
    stored = frame.attrs.get(KEY)
    said = [
        f"{name} {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in (stored if isinstance(stored, Mapping) else {}).items()
        if name != MARK and value is not None
    ]
    said += filter(None, [vars(frame).get("summary")])
    if said or kind != MARK:
        yield _note(printable(f"{kind}: {'; '.join(said)}" if said else kind))
    named = isinstance(frame, pd.Series) and frame.name is not None
    whole = frame.to_frame(label(frame.name) if named else "") if isinstance(frame, pd.Series) else frame
    window = ShownCells.of(*whole.shape)
    rows, columns = window.at
    shown = [whole.iloc[rows, at].tolist() for at in columns]
    texts = [[plain(column[line]) for column in shown] for line in range(len(rows))]
    words = [not all(isinstance(one, int | float) for one in column) for column in shown]
    index = whole.index
    if index.nlevels == 1 and index.dtype.kind == "f":
        index = pd.Index([plain(one) for one in index], name=index.name)
    bars, legend = _spans(whole.iloc[rows], columns)
    table = grid(window, index, whole.columns, _cells(window, texts, bars), words)
    yield _shown(table, window)
    if _has_bars(table):
        yield _seen(legend)


def _spans(table: pd.DataFrame, columns: list[int]) -> tuple[_Bars | None, str]:
    """Return the intervals of some columns, where other columns of the table hold them, and what they are."""
    names = list(table.columns)
    value, legend = _floats(table), SIMULATED
    if len(set(names)) < len(names):
        return None, ""
    lower, upper = (np.full(table.shape, np.nan) for _ in range(2))
    at = {name: place for place, name in enumerate(names)}
    if {"error", "lower", "upper"} <= set(names):
        legend = COMPARED
        for end, name in ((lower, "lower"), (upper, "upper")):
            end[:, at["error"]] = value[:, at[name]]
    else:
        for one, place in at.items():
            first, *rest = one if isinstance(one, tuple) else (one,)
            error = ("standard_error", *rest) if isinstance(one, tuple) else "standard_error"
            if first in ("risk", "tvd") and error in at:
                half = NORMAL * value[:, at[error]]
                lower[:, place], upper[:, place] = value[:, place] - half, value[:, place] + half
    return _Bars(lower[:, columns], value[:, columns], upper[:, columns]), legend


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

    def blocks(self) -> Blocks:
        """Yield the blocks of its page."""
        yield _note(f"Protected frame of {self.engine}")
        if self.seeded:
            yield _warning(SEEDED)
        yield Block(f"\n{self.domain!r}\n", Markup(self.domain._repr_html_()))
        known = "private" if self.rows is None else f"{self.rows} (public)"
        yield _facts([("neighbors", neighbors_text(self.unit.neighbors, self.unit.column)), ("rows", known)])
        yield self._budget()
        if len(self.lineage):
            yield Block("\nLineage", markup.note("Lineage"))
            yield from _lineage(self.lineage)

    def _budget(self) -> Block:
        """The budget, or why its ledger cannot be read."""
        try:
            return Block(f"\n{self.budget!r}", Markup(self.budget._repr_html_()))
        except LedgerError as error:
            return Block(f"\n{error}", markup.warning(error))


def _lineage(frame: pd.DataFrame) -> Blocks:
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
    yield Block("\n".join(lines), markup.table(["", "step", "stability", "cost"], rows, text={1, 3}))
    yield _seen(STEPS)


# ---------------------------------------------------------------- any frame


def html_of_marked(frame: Released) -> str | None:
    """Return the HTML of a release, a confidential frame or a lineage; None for every other frame.

    A release that was changed has none: its metadata no longer describe its numbers.
    """
    known = recognized(frame)
    if known.what == "confidential":
        return _html(_marked(frame, known.kind))
    if known.what == "lineage" and isinstance(frame, pd.DataFrame):
        return _html(_lineage(frame))
    view = View.of(frame) if known.what == "release" and len(frame) <= MOST_CHECKED else None
    return _html(_release(view)) if view is not None and view.unchanged else None


def html(frame: Any, standing: Standing | PrivacyError) -> str:
    """Return what ``frame.dp`` shows in a notebook, whatever the frame holds in ``attrs``."""
    return _html(_blocks(frame, standing))


def text(frame: Any, standing: Standing | PrivacyError) -> str:
    """Return what ``frame.dp`` shows at a prompt."""
    return "\n".join(block.plain for block in _blocks(frame, standing) if block.plain)


def _html(blocks: Iterable[Block]) -> str:
    return markup.page(*(block.html for block in blocks))


def _blocks(frame: Any, standing: Standing | PrivacyError) -> list[Block]:
    """The blocks of the page of any frame; of one that is nothing, why there is nothing to show."""
    if isinstance(standing, Standing):
        return list(standing.blocks())
    try:
        known = recognized(frame)
        if known.what == "confidential":
            return _marked(frame, known.kind)
        if known.what == "lineage":
            return list(_lineage(frame))
        return list(_release(View.of(frame)) if known.what == "release" else _reason(standing))
    except MetadataError as error:
        return list(_reason(error))
    except Exception as error:  # a damaged mark can hold anything
        line = DAMAGED.format(type(error).__name__)
        return [Block(line, markup.warning(line))]


def _reason(error: PrivacyError) -> Blocks:
    """Why there is nothing to show, and what to write instead."""
    return map(_note, str(error).split("\n"))
