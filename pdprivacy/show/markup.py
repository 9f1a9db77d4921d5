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
    "Markup",
    "Spanning",
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
        text = text[: most - 1] + "…"
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def escape(value: object) -> Markup:
    """Escape any value for HTML; None becomes an empty string, and `Markup` stays as it is.

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
    """Return a table with numbers aligned to the right.

    ``head``: the column labels; ``above``: header rows above them. ``heads``: the number of label cells at
    the start of each row. ``text``: the positions of text columns, aligned to the left. A row may be shorter
    than the head.

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
