"""Pieces of HTML for what a notebook shows: tables, marks, and small error bars.

Nothing is fetched and nothing runs: no script, no link, no sheet of styles. Colours are those of the page,
light or dark, and where a piece has a background of its own it has a text colour, too. What a page strips of
styles and pictures is told in words as well.
"""

from __future__ import annotations

import html
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Markup", "Spanning", "bar", "escape", "note", "page", "printable", "table", "warning"]

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
    """HTML that is put in as it is; all other text is escaped."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Spanning:
    """A cell of a head that stands over several columns."""

    text: Any
    columns: int = 1


def printable(value: object) -> str:
    r"""The text of a label, with what cannot be printed, such as a new line, spelled out, and not too long.

    >>> printable("a\nb"), printable(("age", 1)), printable(None)
    ('a\\nb', "('age', 1)", '')
    """
    if value is None:
        return ""
    text = str(value)
    if len(text) > MOST_TEXT:
        text = text[: MOST_TEXT - 1] + "…"
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def escape(value: object) -> Markup:
    """Any value as HTML that shows its text; None as nothing, and `Markup` as it is.

    >>> escape('<a href="x">'), escape(Markup("<b>x</b>"))
    ('&lt;a href=&quot;x&quot;&gt;', '<b>x</b>')
    """
    return value if isinstance(value, Markup) else Markup(html.escape(printable(value)))


def table(
    head: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    caption: object = "",
    heads: int = 1,
    text: Collection[int] = (),
    above: Sequence[Sequence[Spanning]] = (),
) -> Markup:
    """A table of these cells, numbers to the right.

    ``head``: the labels of the columns; ``above``: rows of the head over them. ``heads``: how many cells of
    each row are its labels. ``text``: the numbers of the columns that hold text, which stands to the left. A
    row may be shorter than the head.

    >>> table(["", "epsilon"], [["total", 1]]).count("<td>1</td>")
    1
    """
    left = {*range(heads), *text}
    lines = [f'<table class="pdp-table" cellpadding="5" style="{TABLE}">']
    if caption:
        lines.append(f'<caption style="{CAPTION}">{escape(caption)}</caption>')
    over = [_over(row, left) for row in above]
    named = "".join(
        f'<th scope="col"{LEFT if place in left else ""}>{escape(one)}</th>' for place, one in enumerate(head)
    )
    lines += [f'<thead style="{HEAD}">', *(f"<tr>{row}</tr>" for row in (*over, named) if row), "</thead>"]
    lines.append("<tbody>")
    for row in rows:
        cells = (
            f'<th scope="row"{LEFT}>{escape(one)}</th>'
            if place < heads
            else f"<td{LEFT if place in left else ''}>{escape(one)}</td>"
            for place, one in enumerate(row)
        )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return Markup("".join([*lines, "</tbody></table>"]))


def _over(row: Sequence[Spanning], left: Collection[int]) -> str:
    """The cells of a row of the head, each over one column or more."""
    cells, place = [], 0
    for one in row:
        kind = f'scope="col"{LEFT if place in left else ""}'
        if one.columns > 1:
            kind = f'scope="colgroup" colspan="{one.columns}"'
        cells.append(f"<th {kind}>{escape(one.text)}</th>")
        place += one.columns
    return "".join(cells)


def warning(text: object, *, confidential: bool = False) -> Markup:
    """A line that cannot be overlooked, in colours of its own."""
    kind = "confidential" if confidential else "warning"
    style = CONFIDENTIAL if confidential else WARNING
    said = escape(str(text).replace("\n", " "))  # an error and its hint are two lines
    return Markup(f'<p style="margin:.3em 0"><strong class="pdp-{kind}" style="{style}">{said}</strong></p>')


def note(text: object) -> Markup:
    """A line of plain text."""
    return Markup(f'<p class="pdp-note" style="margin:.3em 0">{escape(text)}</p>')


def page(*pieces: Markup) -> str:
    """The pieces one under the other; wide ones scroll by themselves."""
    return f'<div class="pdp" style="overflow-x:auto;color:inherit">{"".join(pieces)}</div>'


def bar(lower: float, value: float, upper: float, low: float, high: float) -> Markup:
    """An error bar on the scale from ``low`` to ``high``; nothing where one of the numbers is not finite.

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
