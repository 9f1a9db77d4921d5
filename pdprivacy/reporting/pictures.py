"""Pictures of a report as data within the page, each with its content in words."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pdprivacy import plot
from pdprivacy.errors import MetadataError, MissingExtraError
from pdprivacy.markup import Markup
from pdprivacy.reporting.costs import Charges
from pdprivacy.reporting.figures import decimals_of, released, width
from pdprivacy.reporting.prose import escape
from pdprivacy.reporting.reading import Release
from pdprivacy.reporting.tables import labels_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["budget_picture", "check_pictures", "figure_picture", "release_picture"]

WIDE = 5.4
LEAST, MOST = 2.2, 7.5
"""Inches of a picture."""

MOST_DRAWING = 250_000
"""Bytes of a drawing; a larger one is put in as a picture of points."""

MOST_TOLD = 12
"""Numbers that the words under a picture list one by one."""

NO_PICTURE = "has no picture"
"""What the error says of a frame that is not drawn; any other error is one."""

MOST_COUNTS, MOST_CELLS = 60, 600
"""Rows of counts, and cells of a table."""

MOST_CHARGES = 60
"""Charges that a picture shows one by one."""


COUNTED = ("crosstab", "value_counts", "histogram", "count")


def check_pictures() -> None:
    """Refuse to begin where there is nothing to draw with."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError(
            "The pictures of a report need matplotlib, which is not installed. Nothing was written.",
            'pip install "pdprivacy[plot]", or report(..., pictures=False).',
        ) from None


def release_picture(release: Release) -> Markup | None:
    """The picture of a release; None where it has none, of one number, and of too many to be seen."""
    found = release.released
    counted = release.facts.statistic in COUNTED
    each = 0.95 if not counted else 0.26 if isinstance(found, pd.DataFrame) else 0.35
    if not 1 < found.size <= MOST_CELLS or len(found) > (MOST_COUNTS if counted else MOST_TOLD):
        return None
    return _picture(lambda ax: plot.draw(found, ax=ax), _told(release), 1.5 + each * len(found))


def figure_picture(name: str, frame: Any) -> Markup | None:
    """The picture of a figure of the curator; None where it has none."""
    if not isinstance(frame, pd.DataFrame):
        return None
    return _picture(
        lambda ax: plot.draw(frame, ax=ax), f"CONFIDENTIAL. {name}, drawn; the table below has the numbers."
    )


def budget_picture(charges: Charges) -> Markup | None:
    """The picture of what a budget went on, for the curator; None where it has too many charges, or none."""
    account = charges.account
    if account is None or not 0 < len(charges.entries) <= MOST_CHARGES:
        return None
    from pdprivacy.ledger.entries import table

    left = account.terms.rule.left(account.spent)
    rest = (float(left.amount), float(left.delta))
    total = account.terms.total
    entries = table(charges.entries)
    words = (
        f"CONFIDENTIAL. What the {len(entries)} charges took of the budget; the table below has the numbers."
    )
    return _picture(lambda ax: plot.draw_budget(entries, total, rest, ax=ax), words)


def _picture(draw: Callable[[Axes], Any], words: str, high: float = 4.0) -> Markup | None:
    """What is drawn on axes of their own, in the default style, as an image within the page."""
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
    across, down = (round(96 * inches) for inches in figure.get_size_inches())
    encoded = base64.b64encode(data).decode("ascii")
    return Markup(
        f'<figure><img src="data:image/{kind};base64,{encoded}" width="{across}" height="{down}" '
        f'alt="{escape(words)}"></figure>'
    )


def _saved(figure: Any, kind: str) -> bytes:
    held = io.BytesIO()
    without = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    figure.savefig(held, format=kind, dpi=160, metadata=without)
    return held.getvalue()


def _told(release: Release) -> str:
    """The content of a picture in words."""
    found = release.released
    halves = release.halves
    frame = found.to_frame() if isinstance(found, pd.Series) else found
    spread = None if halves is None else halves.reshape(frame.shape)
    if frame.size > MOST_TOLD:
        return f"{release.label}: {_range(frame)} Each is in the table below."
    told = []
    for row, key in enumerate(frame.index.tolist()):
        for place, top in enumerate(frame.columns.tolist()):
            half = float("nan") if spread is None else float(spread[row, place])
            places = decimals_of(half)
            of = labels_of(key) if isinstance(found, pd.Series) else [*labels_of(key), *labels_of(top)]
            off = f" ± {width(half, places)}" if np.isfinite(half) else ""
            told.append(f"{', '.join(of)} {released(frame.iat[row, place], places)}{off}")
    return f"{release.label}: {'; '.join(told)}."


def _range(frame: pd.DataFrame) -> str:
    try:
        numbers = frame.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        return f"{frame.size:,} entries."
    known = numbers[np.isfinite(numbers)]
    ends = f", from {released(known.min())} to {released(known.max())}" if known.size else ""
    return f"{frame.size:,} numbers{ends}."
