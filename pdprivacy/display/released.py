"""What is shown of a release: the numbers with their errors, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy import markup, metadata
from pdprivacy.display.digits import paired, plain, short
from pdprivacy.display.grid import Grid, Window, joined
from pdprivacy.markup import Markup
from pdprivacy.metadata import Metadata

__all__ = ["ALTERED", "SEEDED", "Release"]

Floats: TypeAlias = NDArray[np.float64]
Released: TypeAlias = "pd.Series[Any] | pd.DataFrame"

SEEDED = "seeded: not private"
ALTERED = "changed since it was released: cost and errors below are of what was released, not of what is here"
MOST_BARS = 200
"""Of one table: each is some 400 bytes."""

ALIKE = {"count", "value_counts", "histogram", "crosstab", "proportion", "corr"}
"""Statistics whose numbers are all on one scale."""

NEIGHBORS = {"add_remove": "one record more or less", "replace_one": "one record with other values"}
LEGEND = "bars: the interval around each number (dot), on a scale that holds 0 (tick)"


@dataclass(frozen=True)
class Release:
    """A released frame, what it says about itself, and whether its numbers are still those."""

    frame: Released
    facts: Metadata
    unchanged: bool

    @classmethod
    def of(cls, frame: Released) -> Release:
        """Raises MetadataError where the frame is no release."""
        facts = metadata.read(frame)
        return cls(frame, facts, facts.fingerprint == metadata.fingerprint(frame))

    def text(self) -> str:
        """For a prompt."""
        lines = [self._title, *(f"  {text}" for text in self._warnings)]
        if self.unchanged:
            grid, window = self._grid(bars=False)
            lines += ["", grid.plain(), *([window.note] if window.note else []), ""]
        rows = self._rows()
        width = max(len(what) for what, _ in rows)
        return "\n".join([*lines, *(f"  {what:<{width}}  {said}" for what, said in rows)])

    def html(self) -> str:
        """For a notebook."""
        pieces = [markup.note(self._title), *(markup.warning(text) for text in self._warnings)]
        if self.unchanged:
            grid, window = self._grid(bars=True)
            pieces += [grid.html(), *([markup.note(window.note)] if window.note else [])]
        rows = self._rows()
        if any("pdp-bar" in str(piece) for piece in pieces):
            rows.insert(1, ("", LEGEND))
        return markup.page(*pieces, markup.table([], rows, text={1}))

    @property
    def _title(self) -> str:
        of = f" of {', '.join(map(str, self.facts.columns))}" if self.facts.columns else ""
        return markup.printable(f"Release: {self.facts.statistic}{of}")

    @property
    def _warnings(self) -> list[str]:
        told = [SEEDED] if self.facts.seeded is not False else []
        return told if self.unchanged else [*told, ALTERED]

    def _grid(self, *, bars: bool) -> tuple[Grid, Window]:
        """The released numbers, each with its error."""
        frame = self.frame
        columns = pd.Index([None]) if isinstance(frame, pd.Series) else frame.columns
        window = Window.of(len(frame), len(columns))
        numbers = _Numbers.of(frame, self.facts, window)
        bars = bars and window.cells <= MOST_BARS
        low, high = numbers.scale(_scales(frame, self.facts))
        if not isinstance(frame, pd.Series):

            def cell(row: int, column: int) -> str:
                value, half = numbers.pair(row, column)
                text = f"{value} ± {half}" if half else value
                if not (bars and half):
                    return text
                at = (numbers.rows[row], numbers.columns[column])
                return joined(text, numbers.bar(*at, low, high))

            return Grid.of(window, frame.index, columns, cell, numbers.texts), window
        known = bool(np.isfinite(numbers.half).any())
        heads = [markup.printable(frame.name) or "released", *(["±"] if known else [])]

        def part(row: int, column: int) -> str:
            if column < 2:
                return numbers.pair(row, 0)[column]
            return numbers.bar(numbers.rows[row], 0, low, high)

        drawn = bars and known
        three = pd.Index([*heads, *([""] if drawn else [])], dtype=object)
        whole = Window(window.rows, list(range(len(three))), window.shape)
        return Grid.of(whole, frame.index, three, part, numbers.texts), window

    def _rows(self) -> list[tuple[str, str]]:
        """What the release says about itself, a line each."""
        facts = self.facts
        rows = [
            ("error", _error(facts)),
            ("cost", f"epsilon {short(facts.epsilon)}, delta {short(facts.delta)}"),
        ]
        rows.append(("mechanism", _mechanism(facts)))
        rows.append(("neighbors", neighbors(facts.neighbors, facts.unit)))
        rows.append(("budget", _budget(facts.budget)))
        if facts.bounding is not None:
            rows.append(("bias", _bias(facts.error)))
        if facts.dr_ha is not None:
            share = 100 * float(facts.dr_ha["by_records"])
            rows.append(("risk", f"dr_ha {share:.1f} % of records, estimated from the released counts"))
        if facts.releases > 1:
            rows.append(("releases", f"{facts.releases}, which share the cost"))
        if facts.rows is not None:
            rows.append(("rows", f"{facts.rows} (public)"))
        if facts.filters:
            rows.append(("where", " and ".join(f"({one})" for one in facts.filters)))
        if facts.lineage:
            rows.append(("after", ", ".join(map(str, facts.lineage))))
        if facts.release_id is not None:
            rows.append(("release id", str(facts.release_id)))
        return [(what, markup.printable(said)) for what, said in rows]


@dataclass(frozen=True)
class _Numbers:
    """The numbers in a window and their errors; ``rows`` and ``columns``: where in them a position stands."""

    cells: list[list[Any]]
    half: Floats
    rows: dict[int, int]
    columns: dict[int, int]
    texts: list[int]

    @classmethod
    def of(cls, frame: Released, facts: Metadata, window: Window) -> _Numbers:
        table = frame.to_frame() if isinstance(frame, pd.Series) else frame
        rows = [place for place in window.rows if place is not None]
        columns = [place for place in window.columns if place is not None]
        shown = table.iloc[rows, columns]
        cells = [shown.iloc[:, at].tolist() for at in range(len(columns))]
        half = np.full(shown.shape, np.nan)
        if "plus_minus" in facts.error:
            stored = np.asarray(facts.error["plus_minus"], np.float64)
            whole = np.broadcast_to(stored, frame.shape).reshape(table.shape)
            half = whole[np.ix_(rows, columns)]
        texts = [at for at, one in zip(columns, cells, strict=True) if not all(map(_is_number, one))]
        return cls(cells, half, _places(rows), _places(columns), texts)

    def pair(self, row: int, column: int) -> tuple[str, str]:
        """The number at a position and its error, as texts."""
        value, half = self.cells[self.columns[column]][self.rows[row]], self.half
        if not _is_number(value):
            return plain(value), ""
        return paired(value, float(half[self.rows[row], self.columns[column]]))

    def _values(self) -> Floats:
        values = [[float(one) if _is_number(one) else np.nan for one in column] for column in self.cells]
        return np.array(values, dtype=np.float64).reshape(self.half.shape[::-1]).T

    def scale(self, axis: int | tuple[int, ...] | None) -> tuple[Floats, Floats]:
        """The ends of the scale of each bar: from below all of a group, and 0, to above them."""
        values = self._values()
        ends = []
        for reached, find in ((values - self.half, np.fmin), (values + self.half, np.fmax)):
            end = np.where(np.isfinite(reached), reached, np.nan)
            found = end if axis is None or not end.size else find.reduce(end, axis=axis, keepdims=True)
            ends.append(np.broadcast_to(find(found, 0.0), values.shape))
        return ends[0], ends[1]

    def bar(self, row: int, column: int, low: Floats, high: Floats) -> Markup:
        """The interval of the number at a place of the window."""
        value = self.cells[column][row]
        if not _is_number(value):
            return Markup("")
        half, at = float(self.half[row, column]), (row, column)
        return markup.bar(value - half, value, value + half, float(low[at]), float(high[at]))


def _places(positions: list[int]) -> dict[int, int]:
    return {position: place for place, position in enumerate(positions)}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _scales(frame: Released, facts: Metadata) -> int | tuple[int, ...] | None:
    """The axes along which numbers share a scale; None where each has its own."""
    if facts.statistic in ALIKE:
        return (0, 1)
    names = set(map(str, facts.columns))
    rows = len(frame) <= len(names) and set(map(str, frame.index)) <= names
    columns = (
        isinstance(frame, pd.DataFrame)
        and {str(one[-1] if isinstance(one, tuple) else one) for one in frame.columns} <= names
    )
    if facts.statistic == "describe" or (rows and columns):
        return None
    if rows:
        return 1
    return 0 if columns else (0, 1)


def neighbors(named: str, unit: str | None) -> str:
    """Between whose data a loss is, in words.

    >>> neighbors("add_remove", None)
    'add_remove: one record more or less'
    """
    if unit is None:
        return f"{named}: {NEIGHBORS[named]}" if named in NEIGHBORS else str(named)
    kinds = {"add_remove": "more or less", "replace_one": "with other values"}
    return f"{named}: all records of one {unit} {kinds.get(named, '')}".rstrip()


def _error(facts: Metadata) -> str:
    """What is known of the error."""
    error = facts.error
    level = f"{100 * float(error.get('level', 0.95)):g} %"
    if "below_best" in error:
        return _selected(facts, level)
    half = np.asarray(error["plus_minus"], dtype=np.float64).ravel()
    known = half[np.isfinite(half)]
    if not known.size:
        return "not known"
    low, high = paired(0, known.min())[1], paired(0, known.max())[1]
    said = f"± {low}" if low == high else f"± {low} to {high}"
    more = "" if known.size == half.size else "; not known of all numbers"
    return f"{said}: the {level} interval of the noise of each number by itself, not of a population{more}"


def _selected(facts: Metadata, level: str) -> str:
    """What is known of the error of a selection."""
    stored = facts.error["below_best"]
    each = list(stored.values()) if isinstance(stored, Mapping) else [stored]
    known = [float(one) for one in each if one is not None]
    if not known:
        return "not known"
    most = paired(0, max(known))[1]
    if facts.statistic == "kmedian":
        return (
            f"not known; with {level} probability the set costs at most {most} lengths of a range more than "
            "the best one that the walk came by, up to rounding"
        )
    said = f"what was selected scores at most {most} records below the best, with {level} probability"
    if facts.statistic not in ("mode", "top_k"):
        said += "; by rank, not by distance in value"
    return said


def _mechanism(facts: Metadata) -> str:
    parts = [str(facts.mechanism)]
    for name in ("p", "calibration", "bounding", "constraint"):
        value = getattr(facts, name)
        if value is not None:
            parts.append(f"{name} {short(value) if isinstance(value, float) else value}")
    return ", ".join(parts)


def _budget(stored: Mapping[str, Any]) -> str:
    """What was spent of the budget after the release."""
    (spent, spent_delta), (total, total_delta) = stored["spent"], stored["total"]
    after = f", accounting {stored['accounting']}" if "accounting" in stored else ""
    if stored.get("currency") == "rho":
        return f"rho {short(spent)} of {short(total)} spent{after}"
    delta = f", delta {short(spent_delta)} of {short(total_delta)}"
    return f"epsilon {short(spent)} of {short(total)}{delta} spent{after}"


def _bias(error: Mapping[str, Any]) -> str:
    """What keeping bounds does to the numbers."""
    if "note" in error:
        return str(error["note"])
    worst = error.get("worst_case")
    here = _largest(error.get("bias"))
    said = f"up to {here} at these numbers, from keeping bounds"
    return said if worst is None else f"{said}; up to {_largest(worst['bias'])} within them"


def _largest(numbers: Any) -> str:
    found = np.abs(np.asarray(numbers, dtype=np.float64).ravel())
    known = found[np.isfinite(found)]
    return paired(0, known.max())[1] if known.size else "an unknown amount"
