"""Tables and pictures of a report: released numbers with their margins of error, and anything else."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pdprivacy.errors import MetadataError, MissingExtraError
from pdprivacy.show import plots
from pdprivacy.show.markup import Table
from pdprivacy.show.numbers import joined, label, many, plain
from pdprivacy.show.view import Released, View

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pdprivacy.show.report.costs import Charges

__all__ = [
    "MOST_ROWS",
    "Picture",
    "budget_picture",
    "check_pictures",
    "figure_picture",
    "frame_table",
    "is_short",
    "kinds",
    "labels_of",
    "release_picture",
    "release_table",
]

MOST_ROWS = 200
"""Rows of one table; a note says if there are more."""

WHOLE = 14
"""Rows of a table that is not broken over pages."""

LETTERS = 90
"""Letters in a line of A4; a column whose share is shorter than one of its words breaks words."""

MOST_WIDE = 4
"""Columns of released numbers side by side on A4; more are listed with one number per row."""

MOST_PLAIN = 9
"""Columns of any other frame, with its labels."""


def is_short(table: Table) -> bool:
    """Return whether a table is not broken over pages."""
    return len(table.rows) <= WHOLE


def kinds(table: Table) -> list[str]:
    """Return the class of each column: numbers, text, or text with words that have to be broken."""
    most = max(8, LETTERS // len(table.head))
    found = []
    for place, head in enumerate(table.head):
        cells = [head, *(row[place] for row in table.rows)]
        broken = any(len(word) > most for one in cells for word in str(one).split())
        found.append("long" if broken else "" if place in table.left else "n")
    return found


def labels_of(key: object) -> list[str]:
    """Return the labels of a row or a column, one per level."""
    levels = key if isinstance(key, tuple) else (key,)
    return [label(one, None) if str(one).strip() else "(blank)" for one in levels]


def _names(index: pd.Index[Any], what: str) -> list[str]:
    """Return the names of the levels, or what they are of."""
    return [what if name is None else labels_of(name)[0] for name in index.names]


def _omitted(whole: int, what: str) -> str:
    """Return a note if there are more rows than shown."""
    if whole <= MOST_ROWS:
        return ""
    return f"The first {MOST_ROWS} of {whole:,} {what}; the release itself holds all of them."


def _numbers(view: View) -> tuple[list[list[str]], list[list[str]], list[list[tuple[str, str]]]]:
    """Return the labels of rows and columns, none of a Series, and the numbers with their errors."""
    found = view.table
    rows, columns = (list(range(min(length, MOST_ROWS))) for length in found.shape)
    keys = [labels_of(key) for key in found.index[: len(rows)].tolist()]
    tops = [labels_of(top) for top in found.columns[: len(columns)].tolist()]
    return keys, [[]] if isinstance(view.released, pd.Series) else tops, view.pairs(rows, columns)


def release_table(view: View, caption: str) -> Table:
    """Return the released numbers with their margins of error, side by side or one per row."""
    found, series = view.table, isinstance(view.released, pd.Series)
    heads = _names(found.index, "of" if series or view.selected else "row")
    keys, tops, pairs = _numbers(view)
    if not series and (view.selected or (found.columns.nlevels == 1 and len(tops) <= MOST_WIDE)):
        across = found.columns.names[0]
        named = [", ".join(top) if across is None else f"{across}: {', '.join(top)}" for top in tops]
        lines = [[*key, *map(joined, line)] for key, line in zip(keys, pairs, strict=True)]
        return Table([*heads, *named], lines, caption, len(heads), note=_omitted(len(found), "rows"))
    heads += [] if series else _names(found.columns, "column")
    lines = [
        [*key, *top, value, *([] if view.selected else [f"± {half}" if half else "not known"])]
        for key, line in zip(keys, pairs, strict=True)
        for top, (value, half) in zip(tops, line, strict=True)
    ]
    end = ["released", *([] if view.selected else ["±"])]
    note = _omitted(found.size, "numbers")
    return Table([*heads, *end], lines[:MOST_ROWS], caption, len(heads), note=note)


def frame_table(frame: Released, caption: str) -> Table:
    """Return any frame; one of many columns with a number per row."""
    whole = frame.to_frame(frame.name or "value") if isinstance(frame, pd.Series) else frame
    keys = [labels_of(key) for key in whole.index[:MOST_ROWS].tolist()]
    tops = [", ".join(labels_of(name)) for name in whole.columns.tolist()]
    cells = [[plain(whole.iat[line, place]) for place in range(len(tops))] for line in range(len(keys))]
    heads = _names(whole.index, "row")
    if len(tops) + len(heads) <= MOST_PLAIN:
        rows = [[*key, *line] for key, line in zip(keys, cells, strict=True)]
        return Table([*heads, *tops], rows, caption, len(heads), note=_omitted(len(whole), "rows"))
    rows = [
        [*key, top, cell]
        for key, line in zip(keys, cells, strict=True)
        for top, cell in zip(tops, line, strict=True)
    ]
    note = _omitted(whole.size, "numbers")
    return Table([*heads, "column", "value"], rows[:MOST_ROWS], caption, len(heads) + 1, note=note)


# ---------------------------------------------------------------- pictures

WIDE = 5.4
LEAST, MOST = 2.2, 7.5
"""Inches of a picture."""

MOST_DRAWING = 250_000
"""Bytes of an SVG drawing; a larger one becomes a PNG image."""

MOST_TOLD = 12
"""Numbers that the words of a picture list one by one."""

MOST_COUNTS, MOST_CELLS = 60, 600
"""Rows of counts, and cells of a table, that are drawn."""

MOST_CHARGES = 60
"""Charges that are drawn one by one."""

NO_PICTURE = "has no picture"
"""In the error for a frame that is not drawn; any other error is raised."""

COUNTED = ("crosstab", "value_counts", "histogram", "count")


@dataclass(frozen=True)
class Picture:
    """An image as data of a page, its size in pixels, and its content in words."""

    source: str
    width: int
    height: int
    words: str


def check_pictures() -> None:
    """Raise MissingExtraError if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError(
            "The pictures of a report need matplotlib, which is not installed. Nothing was written.",
            'pip install "pdprivacy[plot]", or report(..., pictures=False).',
        ) from None


def release_picture(view: View) -> Picture | None:
    """Draw a release; None for one number, for labels, and for more numbers than can be seen."""
    found = view.released
    counted = view.facts.statistic in COUNTED
    each = 0.95 if not counted else 0.26 if isinstance(found, pd.DataFrame) else 0.35
    if not 1 < found.size <= MOST_CELLS or len(found) > (MOST_COUNTS if counted else MOST_TOLD):
        return None
    return _picture(lambda ax: plots.draw(found, ax=ax), _words(view), 1.5 + each * len(found))


def figure_picture(name: str, frame: Any) -> Picture | None:
    """Draw a confidential figure; None if it has no picture."""
    if not isinstance(frame, pd.DataFrame):
        return None
    words = f"CONFIDENTIAL. {name}, drawn; the table below has the numbers."
    return _picture(lambda ax: plots.draw(frame, ax=ax), words)


def budget_picture(charges: Charges) -> Picture | None:
    """Draw the charges of a budget, for the curator; None for none, and for too many."""
    account = charges.account
    if account is None or not 0 < len(charges.entries) <= MOST_CHARGES:
        return None
    from pdprivacy.ledger.account import doubles
    from pdprivacy.show.budget_text import table

    rest, total, entries = doubles(account.left), account.terms.total, table(charges.entries)
    words = (
        f"CONFIDENTIAL. {many(len(entries), 'charge')} to the budget, drawn; the table below has the numbers."
    )
    return _picture(lambda ax: plots.draw_budget(entries, total, rest, ax=ax), words)


def _picture(draw: Callable[[Axes], Any], words: str, high: float = 4.0) -> Picture | None:
    """Draw on new axes in the default style."""
    import matplotlib
    import matplotlib.style
    from matplotlib.figure import Figure

    with matplotlib.style.context("default"), matplotlib.rc_context({"svg.hashsalt": "pdprivacy"}):
        figure = Figure(figsize=(WIDE, min(max(high, LEAST), MOST)), layout="constrained")
        try:
            draw(figure.subplots())
        except MetadataError as error:
            if NO_PICTURE in str(error):
                return None
            raise
        kind, data = "svg+xml", _saved(figure, "svg")
        if len(data) > MOST_DRAWING:
            kind, data = "png", _saved(figure, "png")
    width, height = (round(96 * inches) for inches in figure.get_size_inches())
    return Picture(f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}", width, height, words)


def _saved(figure: Any, kind: str) -> bytes:
    held = io.BytesIO()
    without = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    figure.savefig(held, format=kind, dpi=160, metadata=without)
    return held.getvalue()


def _words(view: View) -> str:
    """Return the content of a picture in words."""
    frame = view.table
    if frame.size > MOST_TOLD:
        return f"{view.title}: {_range(frame)} Each is in the table below."
    keys, tops, pairs = _numbers(view)
    told = [
        f"{', '.join([*key, *top])} {joined(pair)}"
        for key, line in zip(keys, pairs, strict=True)
        for top, pair in zip(tops, line, strict=True)
    ]
    return f"{view.title}: {'; '.join(told)}."


def _range(frame: pd.DataFrame) -> str:
    numbers = frame.to_numpy(dtype=np.float64)
    known = numbers[np.isfinite(numbers)]
    ends = f", from {plain(known.min())} to {plain(known.max())}" if known.size else ""
    return f"{many(frame.size, 'number')}{ends}."
