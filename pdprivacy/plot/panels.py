"""Axes within axes, one below the other, and axes of numbers and labels that stay readable in little room."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pdprivacy.plot.canvas import Floats, points, size_of

NUMBERS = 17.0  # points under each of several axes, for the numbers of its scale
NAME = 14.0  # points above each, for its name


class _Place:
    """Where one of several axes is within their common ones, whatever the size of these."""

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
    """Axes that share the place of others, heights by weight; these show nothing of their own any more."""
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


def scale(ax: Any, low: float, high: float, percent: bool = False, at: Sequence[float] | None = None) -> None:
    """A horizontal axis from ``low`` to ``high``, with as many numbers as there is room for.

    ``at``: where the numbers are best, such as the edges of bins.
    """
    ax.set_xlim(low, high)
    size = 0.9 * points(ax)
    ax.tick_params(axis="x", length=2.5, pad=2, labelsize=size)
    trials = [] if at is None else [np.array(at)]
    for most in range(7, 0, -1):
        trials.append(linear_ticks(low, high, most))
    for ticks in trials:
        labels = _numbered(ticks, percent)
        widths = [size_of(ax, label, size)[0] + 9 for label in labels]
        places = ax.transData.transform(np.column_stack([ticks, np.zeros(len(ticks))]))[:, 0]
        free = np.diff(places) - (np.array(widths[1:]) + np.array(widths[:-1])) / 2
        if ticks.size and (free >= 0).all():
            ax.set_xticks(ticks, labels, fontsize=size)
            return
    ax.set_xticks([])


def beside_them(whole: Any) -> Any:
    """Narrow axes to the right of others, as high as these."""
    from matplotlib.transforms import Bbox

    part = whole.inset_axes([1, 0, 0.1, 1])

    def place(axes: Any, renderer: Any) -> Any:  # noqa: ARG001
        box, dot = whole.bbox, axes.figure.dpi / 72
        inside = Bbox.from_extents(box.x1 + 7 * dot, box.y0, box.x1 + 15 * dot, box.y1)
        return inside.transformed(axes.figure.transSubfigure.inverted())

    part.set_axes_locator(place)
    return part


def linear_ticks(low: float, high: float, most: int) -> Floats:
    """At most so many round numbers from ``low`` to ``high``."""
    from matplotlib.ticker import MaxNLocator

    ticks = np.array(MaxNLocator(nbins=max(most, 1), steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
    return ticks[(ticks >= low - 1e-9 * (high - low)) & (ticks <= high + 1e-9 * (high - low))]


def log_ticks(low: float, high: float, most: int) -> Floats:
    """Numbers such as 1, 2, 5 or powers of ten, at most about so many, from ``low`` to ``high``."""
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
    """Numbers at these places of the axis on the left."""
    from matplotlib.ticker import NullLocator

    size = 0.9 * points(ax)
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_yticks(ticks, [f"{tick:.4g}".replace("-", "−") for tick in ticks], fontsize=size)


def _numbered(ticks: Floats, percent: bool) -> list[str]:
    """The numbers of ticks, with as few digits as tell them apart."""
    numbers, sign = (100 * ticks, " %") if percent else (ticks, "")
    size = float(np.abs(numbers).max(initial=0))
    step = float(np.diff(numbers).min()) if len(numbers) > 1 else size
    for digits in range(8):
        if np.abs(np.round(numbers, digits) - numbers).max(initial=0) <= 1e-3 * step:
            break
    if size >= 1e7 or digits > 5:  # by powers of ten
        digits = max(int(np.ceil(np.log10(size / step) - 1e-9)), 0) + 1 if size and step else 0
        return [f"{number:.{digits + 1}g}".replace("-", "−") + sign for number in numbers]
    return [f"{number:,.{digits}f}".replace("-", "−") + sign for number in numbers]


def thinned(ax: Any, labels: Sequence[str], least: float = 5.0) -> None:
    """Labels of the rows 0, 1, ... beside the axes; in smaller type, and not each, where room is short."""
    room = ax.bbox.height * 72 / ax.figure.dpi / len(labels)
    size = float(np.clip(0.85 * room, least, points(ax)))
    shown = range(0, len(labels), max(1, math.ceil(1.15 * size / room)))
    ax.set_yticks(list(shown), [labels[row] for row in shown], fontsize=size, parse_math=False)


def across(ax: Any, labels: Sequence[str], least: float = 5.0) -> None:
    """Labels of the columns 0, 1, ... below the axes: upright, and then as `thinned`, where room is short."""
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
