"""What all plots share: axes, colours, titles, labels, ticks, and text that stays readable in little room.

matplotlib is imported when something is drawn; none of its settings is changed.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pdprivacy.errors import MissingExtraError, ParameterError, got
from pdprivacy.show.numbers import plain
from pdprivacy.show.view import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARK = "CONFIDENTIAL: made of exact counts"
POINTS = 8.5  # the size of what is written into a picture, where that is wide enough

# Colours of Okabe and Ito; dashes, markers and hatches tell the same things apart in grey.
ORDERS = (
    ("#0072B2", "--", "o", ""),
    ("#E69F00", "-.", "s", "///"),
    ("#009E73", (0, (3, 1, 1, 1, 1, 1)), "^", "..."),
    ("#CC79A7", (0, (6, 1)), "v", "xxx"),
    ("#56B4E9", (0, (2, 1)), "D", "+++"),
)


def axes_of(
    ax: Axes | None, size: tuple[float, float] | None = None, grid: Literal["x", "y", ""] = "y"
) -> Any:
    """Return ``ax``, or the axes of a new figure of this size in inches; ``grid``: which has grid lines."""
    try:
        import matplotlib.axes
    except ModuleNotFoundError:
        raise MissingExtraError(
            "A picture needs matplotlib, which is not installed.", 'pip install "pdprivacy[plot]"'
        ) from None
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(figsize=size, layout="constrained")
    if not isinstance(ax, matplotlib.axes.Axes):
        raise ParameterError(
            f"'ax' must be the axes of a matplotlib figure (got {got(ax)}).", "ax=plt.figure().subplots()"
        )
    ax.spines[["top", "right"]].set_visible(False)
    if grid:
        ax.grid(axis=grid, color="0.92")
    ax.set_axisbelow(True)
    return ax


def label_axes(ax: Any, below: str, beside: str, size: float | None = None) -> None:
    """Label the axes, with line breaks if they are short; then lay out the figure."""
    if size is not None:
        ax.xaxis.label.set_size(size)
        ax.yaxis.label.set_size(size)
    for text, label, side in ((below, ax.xaxis.label, "width"), (beside, ax.yaxis.label, "height")):
        label.set_text(text)
        for width in (26, 16):
            if getattr(label.get_window_extent(), side) <= getattr(ax.bbox, side):
                break
            parts = text.replace(" (", "\n(").split("\n")
            label.set_text("\n".join(textwrap.fill(part, width) for part in parts))
        longest = max(map(len, label.get_text().split("\n")), default=0)
        while longest > 4 and getattr(label.get_window_extent(), side) > getattr(ax.bbox, side):
            longest -= 1  # no room at all: cut
            kept = [part if len(part) <= longest else part[: longest - 1] + "…" for part in text.split("\n")]
            label.set_text("\n".join(kept))
    settle(ax)


def settle(ax: Any) -> None:
    """Lay out the figure, so that sizes can be measured; fit axes that are alone without an engine."""
    figure = ax.figure.canvas.figure
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    elif figure.axes == [ax] and ax.get_subplotspec() is not None:
        _fit(ax, figure)


def _fit(ax: Any, figure: Any) -> None:
    """Widen the margins for text beside the only axes that would be cut off."""
    box, whole, space = ax.get_tightbbox(), figure.bbox, 3 * figure.dpi / 72
    now = figure.subplotpars
    beyond = np.array([whole.x0 - box.x0, box.x1 - whole.x1, whole.y0 - box.y0, box.y1 - whole.y1]) + space
    if (beyond <= 0).all():
        return
    before, after, under, over = np.maximum(beyond, 0)
    left, right = now.left + before / whole.width, now.right - after / whole.width
    bottom, top = now.bottom + under / whole.height, now.top - over / whole.height
    if left < right and bottom < top:
        figure.subplots_adjust(left=left, right=right, bottom=bottom, top=top)


def size_of(ax: Any, text: str, size: float) -> tuple[float, float]:
    """Return the width and height of a text, in pixels."""
    probe = ax.text(0, 0, text, fontsize=size, parse_math=False)
    box = probe.get_window_extent()
    probe.remove()
    return float(box.width), float(box.height)


def wrapped(ax: Any, text: str, width: float, size: float, most: int = 3) -> str:
    """Break a text into lines of ``width`` pixels, cut after ``most`` lines."""
    whole = size_of(ax, text, size)[0]
    if whole <= width:
        return text
    letters = max(int(len(text) * width / whole), 8)
    kept = text.replace(" %", "\u00a0%").replace("± ", "±\u00a0")  # stay together
    while True:
        lines = [line.replace("\u00a0", " ") for line in textwrap.wrap(kept, letters)]
        if len(lines) > most:
            lines = [*lines[: most - 1], lines[most - 1][: max(letters - 1, 1)] + "…"]
        if letters <= 8 or size_of(ax, "\n".join(lines), size)[0] <= width:
            return "\n".join(lines)
        letters -= 1


def entitle(ax: Any, title: str, notes: Sequence[str]) -> Callable[[], None]:
    """Write a title, and notes in smaller type under it, above the axes, aligned with its labels.

    Returns a function that aligns them again, after labels were added.
    """
    from matplotlib.transforms import ScaledTranslation

    dot, small = ax.figure.dpi / 72, points(ax)
    under = ax.annotate(
        "", (0, 1), xycoords="axes fraction", xytext=(0, 5), textcoords="offset points", va="bottom",
        fontsize=small, color="0.3", linespacing=1.15, parse_math=False,
    )  # fmt: skip
    under.set_in_layout(False)  # the title's pad has room for it, and its width takes none from the axes

    def align(again: bool = False) -> None:
        settle(ax)
        box = ax.get_tightbbox(for_layout_only=True)
        left = min(box.x0, ax.bbox.x0)
        width = min(max(box.x1, ax.bbox.x1), ax.figure.bbox.x1 - 3 * dot) - left
        under.set_text("\n".join(wrapped(ax, note, width, small) for note in notes))
        under.set_x((left - ax.bbox.x0) / dot)
        above = ax.set_title(
            wrapped(ax, title, width, small + 2), loc="left", fontsize=small + 2, parse_math=False,
            pad=9 + under.get_window_extent().height / dot,
        )  # fmt: skip
        shift = ScaledTranslation((left - ax.bbox.x0) / ax.figure.dpi, 0, ax.figure.dpi_scale_trans)
        above.set_transform(ax.transAxes + ax.titleOffsetTrans + shift)
        if again or ax.figure.canvas.figure.get_layout_engine() is None:  # else it is done when it is drawn
            settle(ax)

    align(again=True)
    return align


def points(ax: Any) -> float:
    """Return the font size: smaller if the axes have a narrow part of the figure."""
    spec, width = ax.get_subplotspec(), ax.bbox.width / 0.75
    if spec is not None:
        width = ax.figure.bbox.width * len(spec.colspan) / spec.get_gridspec().ncols
    return float(POINTS * np.clip(width * 72 / ax.figure.dpi / 400, 0.76, 1.0))


def log_axis(ax: Any, epsilon: Floats) -> None:
    """Set a log axis of epsilon with plain numbers, as wide as the rows."""
    from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullFormatter

    ax.set_xscale("log")
    if epsilon[0] == epsilon[-1]:
        ax.xaxis.set_major_locator(FixedLocator([epsilon[0]]))
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.xaxis.set_minor_formatter(NullFormatter())
        return
    ax.set_xlim(epsilon[0], epsilon[-1])
    if epsilon[-1] < 100 * epsilon[0]:  # powers of ten alone would be too few
        tight = epsilon[-1] < 10 * epsilon[0]
        ax.xaxis.set_major_locator(MaxNLocator(5) if tight else LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def mixed(colour: str, white: float) -> tuple[float, float, float]:
    """Return a colour mixed with a share of white."""
    from matplotlib.colors import to_rgb

    red, green, blue = (part + (1 - part) * white for part in to_rgb(colour))
    return red, green, blue


def luminance(colour: Sequence[float]) -> float:
    """Return the luminance of a colour, from 0 to 1 (sRGB)."""
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    return float(np.dot(parts, (0.2126, 0.7152, 0.0722)))


# ---------------------------------------------------------------- several axes, ticks and labels

NUMBERS = 17.0  # points under each of several axes, for the numbers of its scale
NAME = 14.0  # points above each, for its name


class _Place:
    """Locates one of several axes within common axes of any size."""

    def __init__(
        self, whole: Any, shares: tuple[float, float], number: tuple[int, int], titled: bool
    ) -> None:
        self.whole, self.shares, self.number, self.titled = whole, shares, number, titled

    def __call__(self, axes: Any, renderer: Any) -> Any:  # noqa: ARG002
        from matplotlib.transforms import Bbox

        box, dot = self.whole.bbox, axes.figure.dpi / 72
        place, many = self.number
        above, under = NAME * dot * self.titled, NUMBERS * dot
        gaps = many * above + (many - 1) * under
        free = max(box.height - gaps, 0.2 * box.height)
        before, own = self.shares
        top = box.y1 - before * free - (place + 1) * above - place * under
        inside = Bbox.from_extents(box.x0, top - own * free, box.x1, top)
        return inside.transformed(axes.figure.transSubfigure.inverted())


def below_each_other(whole: Any, weights: Sequence[float], *, titled: bool = False) -> list[Any]:
    """Return axes that share the place of others, with heights by weight; the others become invisible."""
    shares = np.array(weights, dtype=np.float64) / sum(weights)
    before = np.concatenate([[0.0], np.cumsum(shares)[:-1]])
    whole.set_axis_off()
    parts = []
    for place, pair in enumerate(zip(before.tolist(), shares.tolist(), strict=True)):
        part = whole.inset_axes([0, 0, 1, 1])
        part.set_axes_locator(_Place(whole, pair, (place, len(weights)), titled))
        part.apply_aspect(part.get_axes_locator()(part, None))
        parts.append(part)
    return parts


def scale(ax: Any, low: float, high: float, at: Sequence[float] | None = None) -> None:
    """Set a horizontal axis from ``low`` to ``high``, with as many ticks as there is room for.

    ``at``: preferred ticks, such as the edges of bins.
    """
    ax.set_xlim(low, high)
    size = 0.9 * points(ax)
    ax.tick_params(axis="x", length=2.5, pad=2, labelsize=size)
    trials = [] if at is None else [np.array(at)]
    for most in range(7, 0, -1):
        trials.append(linear_ticks(low, high, most))
    for ticks in trials:
        labels = _numbered(ticks)
        widths = [size_of(ax, label, size)[0] + 9 for label in labels]
        places = ax.transData.transform(np.column_stack([ticks, np.zeros(len(ticks))]))[:, 0]
        free = np.diff(places) - (np.array(widths[1:]) + np.array(widths[:-1])) / 2
        if ticks.size and (free >= 0).all():
            ax.set_xticks(ticks, labels, fontsize=size)
            return
    ax.set_xticks([])


def beside_them(whole: Any) -> Any:
    """Return narrow axes to the right of others, with the same height."""
    from matplotlib.transforms import Bbox

    part = whole.inset_axes([1, 0, 0.1, 1])

    def place(axes: Any, renderer: Any) -> Any:  # noqa: ARG001
        box, dot = whole.bbox, axes.figure.dpi / 72
        inside = Bbox.from_extents(box.x1 + 7 * dot, box.y0, box.x1 + 15 * dot, box.y1)
        return inside.transformed(axes.figure.transSubfigure.inverted())

    part.set_axes_locator(place)
    return part


def linear_ticks(low: float, high: float, most: int) -> Floats:
    """Return at most ``most`` round numbers from ``low`` to ``high``."""
    from matplotlib.ticker import MaxNLocator

    ticks = np.array(MaxNLocator(nbins=max(most, 1), steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
    return ticks[(ticks >= low - 1e-9 * (high - low)) & (ticks <= high + 1e-9 * (high - low))]


def log_ticks(low: float, high: float, most: int) -> Floats:
    """Return about ``most`` numbers such as 1, 2, 5 or powers of ten from ``low`` to ``high``."""
    decades = np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for every, digits in (
        (1, (1, 2, 5)),
        (1, (1, 3)),
        *((step, (1,)) for step in range(1, len(decades) + 1)),
    ):
        ticks = np.array([digit * 10.0**power for power in decades[::every] for digit in digits])
        ticks = ticks[(ticks >= low) & (ticks <= high)]
        if len(ticks) <= most and ticks.size:
            return ticks
    return np.array([low, high])


def upright(ax: Any, ticks: Floats) -> None:
    """Set these ticks on the axis on the left."""
    from matplotlib.ticker import NullLocator

    size = 0.9 * points(ax)
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_yticks(ticks, [plain(float(tick)) for tick in ticks], fontsize=size)


def _numbered(ticks: Floats) -> list[str]:
    """Return the numbers of ticks with as few digits as tell them apart."""
    size = float(np.abs(ticks).max(initial=0))
    step = float(np.diff(ticks).min()) if len(ticks) > 1 else size
    for digits in range(8):
        if np.abs(np.round(ticks, digits) - ticks).max(initial=0) <= 1e-3 * step:
            break
    if size >= 1e7 or digits > 5:  # by powers of ten
        digits = max(int(np.ceil(np.log10(size / step) - 1e-9)), 0) + 1 if size and step else 0
        return [f"{tick:.{digits + 1}g}" for tick in ticks]
    return [f"{tick:,.{digits}f}" for tick in ticks]


def thinned(ax: Any, labels: Sequence[str], least: float = 5.0) -> None:
    """Label the rows 0, 1, ... beside the axes; in smaller type, and not all, if there is little room."""
    room = ax.bbox.height * 72 / ax.figure.dpi / len(labels)
    size = float(np.clip(0.85 * room, least, points(ax)))
    shown = range(0, len(labels), max(1, math.ceil(1.15 * size / room)))
    ax.set_yticks(list(shown), [labels[row] for row in shown], fontsize=size, parse_math=False)


def across(ax: Any, labels: Sequence[str], least: float = 5.0) -> None:
    """Label the columns 0, 1, ... below the axes; upright, and then as `thinned`, if there is little room."""
    room, size = ax.bbox.width / len(labels), points(ax)
    widest = max(size_of(ax, label, size)[0] for label in labels) if len(labels) <= 60 else np.inf
    if widest + 4 <= room:
        ax.set_xticks(range(len(labels)), labels, fontsize=size, parse_math=False)
        return
    room *= 72 / ax.figure.dpi
    size = float(np.clip(0.85 * room, least, size))
    shown = range(0, len(labels), max(1, math.ceil(1.15 * size / room)))
    texts = [labels[column] for column in shown]
    ax.set_xticks(list(shown), texts, fontsize=size, rotation=90, parse_math=False)
