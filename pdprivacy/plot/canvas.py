"""What all pictures share: their axes, colours, sizes of text, labels, and a scale of epsilon.

matplotlib is imported when something is drawn; none of its settings is changed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.errors import MissingExtraError, ParameterError, got

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats: TypeAlias = NDArray[np.float64]

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
    """``ax``, or the axes of a new figure of this size in inches; ``grid``: of which axis it has lines."""
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
    """What the axes are, broken into lines where they are short; then the layout, for sizes to hold."""
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
    """The layout of the figure, for sizes to hold; axes that are alone are fitted in without an engine."""
    figure = ax.figure.canvas.figure
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    elif figure.axes == [ax] and ax.get_subplotspec() is not None:
        _fit(ax, figure)


def _fit(ax: Any, figure: Any) -> None:
    """Make the margins as wide as what stands beside the only axes, where it would be cut off."""
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
    """Width and height of a text, in pixels."""
    probe = ax.text(0, 0, text, fontsize=size, parse_math=False)
    box = probe.get_window_extent()
    probe.remove()
    return float(box.width), float(box.height)


def wrapped(ax: Any, text: str, width: float, size: float, most: int = 3) -> str:
    """A text in lines of so many pixels, cut after so many lines."""
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
    """A title, and notes in smaller type under it, both above the axes, from where its labels begin.

    Returns what puts them there again, after a new layout, when labels were added later.
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


def percent(share: float) -> str:
    """A share in percent; one that is not quite 0 or 1 is never written as such."""
    text = f"{100 * share:.3g}"
    if text == "100" and share < 1:
        return "> 99.9 %"
    return "< 0.1 %" if 0 < share < 0.001 else f"{text} %"


def points(ax: Any) -> float:
    """The size of what is written into a picture: smaller where its part of the figure is narrow."""
    spec, width = ax.get_subplotspec(), ax.bbox.width / 0.75
    if spec is not None:
        width = ax.figure.bbox.width * len(spec.colspan) / spec.get_gridspec().ncols
    return float(POINTS * np.clip(width * 72 / ax.figure.dpi / 400, 0.76, 1.0))


def log_axis(ax: Any, epsilon: Floats) -> None:
    """A log axis of epsilon with plain numbers, as wide as the rows."""
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
    """A colour with so large a share of white."""
    from matplotlib.colors import to_rgb

    red, green, blue = (part + (1 - part) * white for part in to_rgb(colour))
    return red, green, blue


def luminance(colour: Sequence[float]) -> float:
    """How light a colour looks in grey, from 0 to 1 (sRGB)."""
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    return float(np.dot(parts, (0.2126, 0.7152, 0.0722)))
