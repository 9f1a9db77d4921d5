"""HTML for notebooks: tables, warnings, and small error bars.

No script, no link, no style sheet. Colours are those of the page, light or dark; an element with a background
of its own has a text colour, too. What styles and bars show is also said in words, for pages that strip them.
"""

from __future__ import annotations

import html
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "MOST_TEXT",
    "Barred",
    "Block",
    "Markup",
    "Spanning",
    "Table",
    "aligned",
    "bar",
    "escape",
    "note",
    "page",
    "printable",
    "table",
    "warning",
]

MOST_TEXT = 500
"""Characters of one cell; of a label that is longer, the beginning is shown."""

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
        made = cls(text)
        made.bar = bar
        return made

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


def printable(value: object, most: int | None = MOST_TEXT) -> str:
    r"""Format a label, with characters that cannot be printed, such as a new line, spelled out.

    Characters that change the direction of text cannot be printed either. A text longer than ``most`` is cut.

    >>> printable("a\nb"), printable(("age", 1)), printable(None)
    ('a\\nb', "('age', 1)", '')
    """
    if value is None:
        return ""
    text = str(value)
    if most is not None and len(text) > most:
        text = text[: most - 1].rstrip() + "…"
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def escape(value: object) -> Markup:
    """Escape any value for HTML; None becomes an empty string, and `Markup` and `Barred` stay HTML.

    >>> escape('<a href="x">'), escape(Markup("<b>x</b>"))
    ('&lt;a href=&quot;x&quot;&gt;', '<b>x</b>')
    """
    if isinstance(value, Markup | Barred):  # what else calls itself HTML may be a label
        return Markup(value.__html__())
    return Markup(html.escape(printable(value)))


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
        over = [[part for one in row for part in (one.text, *[""] * (one.columns - 1))] for row in self.above]
        return aligned([row for row in (*over, self.head, *self.rows) if row], self.left)

    def html(self) -> Markup:
        """Return the table for a notebook."""
        left = self.left
        lines = [f'<table class="pdp-table" cellpadding="5" style="{TABLE}">']
        if self.caption:
            lines.append(f'<caption style="{CAPTION}">{escape(self.caption)}</caption>')
        above = [_over(row, left) for row in self.above]
        above.append(_over([Spanning(one) for one in self.head], left))
        lines += [f'<thead style="{HEAD}">', *(f"<tr>{row}</tr>" for row in above if row), "</thead>"]
        lines.append("<tbody>")
        for row in self.rows:
            cells = (
                f'<th scope="row"{LEFT}>{escape(one)}</th>'
                if place < self.heads
                else f"<td{LEFT if place in left else ''}>{escape(one)}</td>"
                for place, one in enumerate(row)
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
    texts = [[str(one) for one in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return "\n".join(
        "  ".join(
            one.ljust(width) if at in left else one.rjust(width)
            for at, (one, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in texts
    )


def _over(row: Sequence[Spanning], left: Collection[int]) -> str:
    """Return the cells of a header row, each above one or more columns."""
    cells, place = [], 0
    for one in row:
        kind = f'scope="col"{LEFT if place in left else ""}'
        if one.columns > 1:
            kind = f'scope="colgroup" colspan="{one.columns}"'
        cells.append(f"<th {kind}>{escape(one.text)}</th>")
        place += one.columns
    return "".join(cells)


def warning(text: object, *, confidential: bool = False) -> Markup:
    """Return a line of text in warning colours."""
    kind = "confidential" if confidential else "warning"
    style = CONFIDENTIAL if confidential else WARNING
    said = escape(str(text).replace("\n", " "))  # an error and its hint are two lines
    return Markup(f'<p style="margin:.3em 0"><strong class="pdp-{kind}" style="{style}">{said}</strong></p>')


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
