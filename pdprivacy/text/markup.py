"""HTML for notebooks: tables, warnings, and small error bars.

No script, no link, no style sheet. Colours are those of the page, light or dark; an element with a background
of its own has a text colour, too. What styles and bars show is also said in words, for pages that strip them.
"""

from __future__ import annotations

import html
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

import pandas as pd

from pdprivacy.text.numbers import label, printable

TABLE = (
    "border-collapse:collapse;border:0;color:inherit;background:transparent;text-align:right;"
    "font-variant-numeric:tabular-nums;margin:.4em 0"
)
CAPTION = "caption-side:top;text-align:left;color:inherit;padding:.2em 0;white-space:normal"
HEAD = "border-bottom:1px solid currentColor"
LEFT = ' style="text-align:left"'
MARK = "display:inline-block;padding:.15em .6em;border-radius:.2em;font-weight:bold;"
CONFIDENTIAL = f"{MARK}background:#a80f1a;color:#fff;letter-spacing:.05em"
WARNING = f"{MARK}background:#ffd24d;color:#000"
WIDTH, HEIGHT = 90, 11


class Markup(str):
    """HTML that is inserted as it is, also by templates; all other text is escaped."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


class Barred(str):
    """The text of a cell with an error bar beside it, which a prompt does not have."""

    bar: Markup

    @classmethod
    def of(cls, text: str, bar: Markup) -> Barred:
        """Return a text with a bar."""
        barred = cls(text)
        barred.bar = bar
        return barred

    def __html__(self) -> str:
        return f'<span style="white-space:nowrap">{escape(str(self))} {self.bar}</span>'


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page, as text for a prompt and as HTML for a notebook."""

    plain: str
    html: Markup


@dataclass(frozen=True, slots=True)
class Spanning:
    """A header cell above several columns."""

    text: Any
    columns: int = 1


def escape(value: object) -> Markup:
    """Escape any value for HTML; None becomes an empty string, and `Markup` and `Barred` stay HTML.

    >>> escape('<a href="x">'), escape(Markup("<b>x</b>"))
    ('&lt;a href=&quot;x&quot;&gt;', '<b>x</b>')
    """
    if isinstance(value, Markup | Barred):  # what else calls itself HTML may be a label
        return Markup(value.__html__())
    return Markup(html.escape(printable(value)))


def embedded(page: str, title: str) -> Markup:
    """Return a page of HTML within a page, without scripts."""
    return Markup(
        f'<iframe title="{escape(title)}" sandbox="" style="width:100%;height:40em" '
        f'srcdoc="{html.escape(page)}"></iframe>'
    )


@dataclass(frozen=True)
class Table:
    """Rows of cells under a head, for a prompt, a notebook or a report.

    ``heads``: the number of label cells at the start of each row, which may be shorter than the head.
    ``text``: the positions of text columns, aligned to the left; numbers are aligned to the right.
    ``above``: header rows above the head. ``last``: whether the last row is a total. ``note``: what is
    missing.
    """

    head: Sequence[object]
    rows: Sequence[Sequence[object]]
    caption: object = ""
    heads: int = 1
    text: Collection[int] = ()
    above: Sequence[Sequence[Spanning]] = ()
    last: bool = False
    note: str = ""

    @property
    def left(self) -> set[int]:
        """The positions of the columns aligned to the left."""
        return {*range(self.heads), *self.text}

    def plain(self) -> str:
        """Return head and rows as lines of text."""
        over = [
            [part for cell in row for part in (cell.text, *[""] * (cell.columns - 1))] for row in self.above
        ]
        return aligned([row for row in (*over, self.head, *self.rows) if row], self.left)

    def html(self) -> Markup:
        """Return the table for a notebook."""
        left = self.left
        lines = [f'<table class="pdp-table" cellpadding="5" style="{TABLE}">']
        if self.caption:
            lines.append(f'<caption style="{CAPTION}">{escape(self.caption)}</caption>')
        above = [_header_cells(row, left) for row in self.above]
        above.append(_header_cells([Spanning(cell) for cell in self.head], left))
        lines += [f'<thead style="{HEAD}">', *(f"<tr>{row}</tr>" for row in above if row), "</thead>"]
        lines.append("<tbody>")
        for row in self.rows:
            cells = (
                f'<th scope="row"{LEFT}>{escape(cell)}</th>'
                if column < self.heads
                else f"<td{LEFT if column in left else ''}>{escape(cell)}</td>"
                for column, cell in enumerate(row)
            )
            lines.append(f"<tr>{''.join(cells)}</tr>")
        return Markup("".join([*lines, "</tbody></table>"]))


def table(head: Sequence[object], rows: Iterable[Sequence[object]], **more: Any) -> Markup:
    """Return a `Table` of these cells for a notebook.

    >>> table(["", "epsilon"], [["total", 1]]).count("<td>1</td>")
    1
    """
    return Table(head, list(rows), **more).html()


def aligned(rows: Sequence[Sequence[object]], left: Collection[int]) -> str:
    r"""Return equally long rows as lines of text; the columns ``left`` are aligned to the left.

    >>> aligned([["age", 31], ["income", 5]], {0})
    'age     31\nincome   5'
    """
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in texts
    )


def _header_cells(row: Sequence[Spanning], left: Collection[int]) -> str:
    """Return the cells of a header row, each above one or more columns."""
    cells, column = [], 0
    for header in row:
        kind = f'scope="col"{LEFT if column in left else ""}'
        if header.columns > 1:
            kind = f'scope="colgroup" colspan="{header.columns}"'
        cells.append(f"<th {kind}>{escape(header.text)}</th>")
        column += header.columns
    return "".join(cells)


def warning(text: object, *, confidential: bool = False) -> Markup:
    """Return a line of text in warning colours."""
    kind = "confidential" if confidential else "warning"
    style = CONFIDENTIAL if confidential else WARNING
    escaped = escape(str(text).replace("\n", " "))  # an error and its hint are two lines
    return Markup(
        f'<p style="margin:.3em 0"><strong class="pdp-{kind}" style="{style}">{escaped}</strong></p>'
    )


def note(text: object) -> Markup:
    """Return a line of plain text."""
    return Markup(f'<p class="pdp-note" style="margin:.3em 0">{escape(text)}</p>')


def page(*pieces: Markup) -> str:
    """Stack the pieces on a page; wide ones scroll."""
    return f'<div class="pdp" style="overflow-x:auto;color:inherit">{"".join(pieces)}</div>'


def bar(lower: float, value: float, upper: float, low: float, high: float) -> Markup:
    """Return an error bar on a scale from ``low`` to ``high``; empty if a number is not finite.

    A dot at ``value``, a line from ``lower`` to ``upper``, and a tick at zero.

    >>> bar(1, 2, 3, 0, 4).count("<path"), bar(1, 2, float("inf"), 0, 4)
    (2, '')
    """
    ends = (lower, value, upper, low, high)
    width = high - low
    if not all(map(math.isfinite, ends)) or not 0 < width < math.inf:
        return Markup("")

    def place(number: float) -> float:
        share = min(max((number - low) / width, 0.0), 1.0)
        return round(4 + (WIDTH - 8) * share, 1)

    middle = HEIGHT / 2
    zero = f"M{place(0)} 1V{HEIGHT - 1}" if low <= 0 <= high else ""
    left, dot, right = place(lower), place(value), place(upper)
    return Markup(
        f'<svg class="pdp-bar" width="{WIDTH}" height="{HEIGHT}" aria-hidden="true" fill="currentColor" '
        f'stroke="currentColor" style="vertical-align:middle">'
        f'<path d="M4 {middle}H{WIDTH - 4}{zero}" stroke-opacity=".3"/>'
        f'<path d="M{left} {middle}H{right}M{left} 2.5V{HEIGHT - 2.5}M{right} 2.5V{HEIGHT - 2.5}" '
        f'stroke-width="1.5"/><circle cx="{dot}" cy="{middle}" r="2.2" stroke="none"/></svg>'
    )


# ---------------------------------------------------------------- the cells that are shown of a frame

_Item = TypeVar("_Item")

GAP = "..."
AUTOMATIC = {"max_rows": 60, "max_columns": 20}
"""The defaults of pandas in a notebook; 0 fits a terminal."""


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
    limit: int | None = pd.get_option(f"display.{name}")
    return AUTOMATIC[name] if limit == 0 else limit


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
    left = {
        index.nlevels + at for at, is_text in enumerate(_with_gaps(window.columns, text, False)) if is_text
    }
    return Table(head, rows, heads=index.nlevels, text=left, above=above)


def _with_gaps(positions: Sequence[int | None], items: Sequence[_Item], gap: _Item) -> list[_Item]:
    """Return what is shown at the places, with the gaps between."""
    rest = iter(items)
    return [gap if position is None else next(rest) for position in positions]


def _parts(index: pd.Index[Any], positions: Sequence[int | None]) -> list[tuple[str, ...]]:
    """Return the labels at some places, one text per level."""
    levels = [index.get_level_values(level) for level in range(index.nlevels)]
    return [
        tuple(GAP if position is None else label(level[position]) for level in levels)
        for position in positions
    ]


def _heads(
    index: pd.Index[Any], columns: pd.Index[Any], positions: Sequence[int | None]
) -> tuple[list[list[Spanning]], list[str]]:
    """Return the header rows, with equal labels side by side joined, and the last one."""
    names = ["" if name is None else label(name) for name in index.names]
    parts = _parts(columns, positions)
    titles = ["" if name is None else label(name) for name in columns.names]
    if columns.nlevels == 1 and not titles[0]:
        return [], [*names, *(part for (part,) in parts)]
    above = []
    for level, title in enumerate(titles):
        runs = [
            (run[-1], sum(1 for _ in group)) for run, group in groupby(part[: level + 1] for part in parts)
        ]
        last = level == columns.nlevels - 1
        spans = [Spanning(part[-1]) for part in parts] if last else [Spanning(*run) for run in runs]
        corner = [Spanning(title if at == index.nlevels - 1 else "") for at in range(index.nlevels)]
        above.append([*corner, *spans])
    return above, [*names, *[""] * len(parts)] if any(names) else []
