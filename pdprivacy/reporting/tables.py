"""Tables of a report: of released numbers with how exact they are, and of anything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.markup import Markup
from pdprivacy.reporting.figures import decimals_of, released, width
from pdprivacy.reporting.prose import escape
from pdprivacy.reporting.reading import Floats, Release

__all__ = ["MOST_ROWS", "Shown", "frame_table", "labels_of", "release_table", "table"]

MOST_ROWS = 200
"""Of one table; what is beyond is left out, and said to be."""

WHOLE = 14
"""Rows of a table that is not broken over pages."""

LETTERS = 90
"""In a line of A4; a column whose share does not hold a word of it breaks words."""

LARGE = 2.0**53

MOST_WIDE = 6
"""Columns that stand side by side on A4; more are told one number per row."""


MOST_PLAIN = 9
"""Columns of any other frame, with its labels."""


@dataclass(frozen=True)
class Shown:
    """Cells of a table. ``heads``: how many of the first are labels of their row. ``text``: cells of text."""

    caption: str
    head: Sequence[object]
    rows: Sequence[Sequence[object]]
    heads: int = 1
    text: frozenset[int] = frozenset()
    note: str = ""
    last: bool = False


def table(shown: Shown, name: str) -> Markup:
    """A table that scrolls by itself where it is wide. ``name``: another one for each table of a page."""
    kinds = _kinds(shown)

    def cell(place: int, value: object) -> str:
        if place < shown.heads:
            return f'<th scope="row"{kinds[place]}>{escape(value)}</th>'
        return f"<td{kinds[place]}>{escape(value)}</td>"

    tops = "".join(
        f'<th scope="col"{kinds[place]}>{escape(one)}</th>' for place, one in enumerate(shown.head)
    )
    body = []
    for number, row in enumerate(shown.rows, 1):
        mark = ' class="sum"' if shown.last and number == len(shown.rows) else ""
        body.append(f"<tr{mark}>{''.join(cell(place, one) for place, one in enumerate(row))}</tr>")
    note = f'<p class="small soft">{escape(shown.note)}</p>' if shown.note else ""
    short = " short" if len(shown.rows) <= WHOLE else ""
    return Markup(
        f'<div class="scroll{short}" role="region" tabindex="0" aria-labelledby="{name}"><table>'
        f'<caption id="{name}">{escape(shown.caption)}</caption><thead><tr>{tops}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>{note}"
    )


def _kinds(shown: Shown) -> list[str]:
    """The class of the cells of each column: numbers, text, or text with words that have to be broken."""
    left = {*range(shown.heads), *shown.text}
    most = max(8, LETTERS // len(shown.head))
    found = []
    for place, head in enumerate(shown.head):
        cells = [head, *(row[place] for row in shown.rows)]
        words = (word for one in cells for word in str(one).split())
        broken = any(len(word) > most for word in words)
        found.append(' class="long"' if broken else "" if place in left else ' class="n"')
    return found


def _label(value: object) -> str:
    """A label as it is; what is missing is said to be."""
    if value is None or value is pd.NaT or value is pd.NA:
        return "no value"
    text = str(value)
    if isinstance(value, float | np.floating):
        if value != value:
            return "no value"
        if float(value).is_integer() and -LARGE < value < LARGE:
            text = str(int(value))  # pandas makes floats of integers beside a null
    return text if text.strip() else "(blank)"


def labels_of(key: object) -> list[str]:
    """The labels of a row or a column, one per level."""
    return [_label(one) for one in key] if isinstance(key, tuple) else [_label(key)]


def _names(index: pd.Index[Any], what: str) -> list[str]:
    """The names of the levels; of one without a name, what it is of."""
    return [what if name is None else _label(name) for name in index.names]


def _cut(whole: int, what: str) -> str:
    """A note where there are more rows than are shown."""
    if whole <= MOST_ROWS:
        return ""
    return f"The first {MOST_ROWS} of {whole:,} {what}; the release itself holds all of them."


def release_table(release: Release, caption: str) -> Shown:
    """The released numbers, each with its half width."""
    halves = release.halves
    if release.selected or halves is None:
        return _selection(release, caption)
    found = release.released
    if isinstance(found, pd.DataFrame) and _is_wide(found, halves):
        return _wide(found, halves, caption)
    return _long(found, halves, caption)


def _is_wide(found: pd.DataFrame, halves: Floats) -> bool:
    """Whether the columns fit side by side, and one half width is that of all numbers."""
    alike = halves.size > 0 and bool(np.all(halves == halves.flat[0]))
    return alike and found.columns.nlevels == 1 and found.shape[1] + found.index.nlevels <= MOST_WIDE + 1


def _places(found: pd.Series[Any] | pd.DataFrame, half: float) -> int | None:
    """With how many decimals a number of this half width is told; whole numbers with none."""
    kinds = [found.dtype] if isinstance(found, pd.Series) else list(found.dtypes)
    return 0 if all(kind.kind in "iu" for kind in kinds) else decimals_of(half)


def _wide(found: pd.DataFrame, halves: Floats, caption: str) -> Shown:
    half = float(halves.flat[0])
    places = _places(found, half)
    shown = found.iloc[:MOST_ROWS]
    rows = [
        [*labels_of(key), *(released(value, places) for value in line)]
        for key, line in zip(shown.index.tolist(), shown.to_numpy(dtype=object), strict=True)
    ]
    across = found.columns.names[0]
    heads = [_label(name) if across is None else f"{across}: {_label(name)}" for name in found.columns]
    note = " ".join(filter(None, [f"Each number ± {width(half, places)}.", _cut(len(found), "rows")]))
    return Shown(caption, [*_names(found.index, "row"), *heads], rows, found.index.nlevels, note=note)


def _long(found: pd.Series[Any] | pd.DataFrame, halves: Floats, caption: str) -> Shown:
    """A row per number."""
    shown, spread = found.iloc[:MOST_ROWS], halves.reshape(len(found), -1)
    tops: list[Any] = [()]
    heads = _names(found.index, "of")
    if isinstance(found, pd.DataFrame):
        tops, heads = found.columns[:MOST_ROWS].tolist(), [*heads, *_names(found.columns, "column")]
    values = shown.to_numpy(dtype=object).reshape(len(shown), -1)
    rows: list[list[str]] = []
    for line, key in enumerate(shown.index.tolist()):
        for place, top in enumerate(tops):
            half = float(spread[line, place])
            places = _places(found, half)
            labels = [*labels_of(key), *(labels_of(top) if isinstance(found, pd.DataFrame) else [])]
            rows.append([*labels, released(values[line, place], places), f"± {width(half, places)}"])
        if len(rows) >= MOST_ROWS:
            break
    note = _cut(found.size, "numbers")
    return Shown(caption, [*heads, "released", "±"], rows[:MOST_ROWS], len(heads), note=note)


def _selection(release: Release, caption: str) -> Shown:
    """What was selected; labels as they are."""
    found = release.released
    frame = found.to_frame("released") if isinstance(found, pd.Series) else found
    numbers, shown = release.facts.statistic not in ("mode", "top_k"), frame.iloc[:MOST_ROWS]
    rows = [
        [*labels_of(key), *(released(value) if numbers else _label(value) for value in line)]
        for key, line in zip(shown.index.tolist(), shown.to_numpy(dtype=object), strict=True)
    ]
    tops = [", ".join(labels_of(name)) for name in frame.columns]
    heads = [*_names(frame.index, "of"), *tops]
    return Shown(caption, heads, rows, frame.index.nlevels, note=_cut(len(frame), "rows"))


def frame_table(frame: pd.DataFrame | pd.Series[Any], caption: str) -> Shown:
    """Any frame, its numbers in four digits; one of many columns with a row per number."""
    whole = frame.to_frame(frame.name or "value") if isinstance(frame, pd.Series) else frame
    if whole.shape[1] + whole.index.nlevels > MOST_PLAIN:
        return _stacked(whole, caption)
    rows = [
        [*_keys(key), *(_plain(whole.iat[line, place]) for place in range(whole.shape[1]))]
        for line, key in enumerate(whole.index[:MOST_ROWS].tolist())
    ]
    tops = [", ".join(labels_of(name)) for name in whole.columns]
    heads = [*_names(whole.index, "row"), *tops]
    return Shown(caption, heads, rows, whole.index.nlevels, note=_cut(len(whole), "rows"))


def _stacked(whole: pd.DataFrame, caption: str) -> Shown:
    rows: list[list[str]] = []
    for line, key in enumerate(whole.index[:MOST_ROWS].tolist()):
        for place, top in enumerate(whole.columns.tolist()):
            rows.append([*_keys(key), ", ".join(_keys(top)), _plain(whole.iat[line, place])])
        if len(rows) >= MOST_ROWS:
            break
    heads = [*_names(whole.index, "row"), "column", "value"]
    note = _cut(whole.size, "numbers")
    return Shown(caption, heads, rows[:MOST_ROWS], whole.index.nlevels + 1, note=note)


def _keys(key: Any) -> list[str]:
    return [_short(one) for one in key] if isinstance(key, tuple) else [_short(key)]


def _plain(value: Any) -> str:
    if value is None or value is pd.NA or value is pd.NaT:
        return "none"
    return _short(value) if isinstance(value, float | np.floating) else released(value)


def _short(value: Any) -> str:
    """A label or a number in four digits."""
    return f"{value:.4g}" if isinstance(value, float | np.floating) and value == value else _label(value)
