"""Any text as HTML that shows it, whole: nothing of a report is cut without saying so."""

from __future__ import annotations

import html

from pdprivacy.markup import Markup

__all__ = ["escape"]


def escape(value: object) -> Markup:
    r"""Any value as HTML that shows its text; what cannot be printed, such as a new line, is spelled out.

    `Markup` stays as it is. Characters that change the direction of text are not printable either.

    >>> escape("<b> \u202e & \n"), escape(Markup("<b>x</b>")), escape(None)
    ('&lt;b&gt; \\u202e &amp; \\n', '<b>x</b>', '')
    """
    if isinstance(value, Markup):
        return value
    text = "" if value is None else str(value)
    if not text.isprintable():
        text = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
    return Markup(html.escape(text))
