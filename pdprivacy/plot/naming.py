"""What is written into a picture of lines: the mark, the legend, and a name at each horizontal line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from pdprivacy.plot.canvas import MARK, Floats, points

Name: TypeAlias = tuple[float, str, str]  # of a horizontal line: its height, a text, its colour


def head(ax: Any, top: float, handles: Sequence[Any], labels: Sequence[str], rows: float) -> list[Any]:
    """The mark and the legend, on a y axis from 0 that leaves room for them; their boxes.

    top : the largest number drawn; rows : how many rows of text to leave free above it.
    """
    from matplotlib.ticker import MaxNLocator
    from matplotlib.transforms import offset_copy

    size = points(ax)
    mark = ax.annotate(
        MARK, (0, 1), xycoords="axes fraction", xytext=(4, -2), textcoords="offset points", va="top",
        fontsize=size, color="0.35",
    )  # fmt: skip
    mark.set_in_layout(False)
    under = offset_copy(ax.transAxes, ax.figure, y=-1.6 * size, units="points")
    legend: Any = None
    for columns in range(len(handles), 0, -1):
        legend = ax.legend(
            handles, labels, ncols=columns, loc="upper left", bbox_to_anchor=(0, 1), bbox_transform=under,
            fontsize=size, frameon=False, borderaxespad=0, borderpad=0.3, handlelength=2.8, columnspacing=1.2,
        )  # fmt: skip
        if legend.get_window_extent().width <= ax.bbox.width:
            break
    needed = legend.get_window_extent().height + (1.6 + 1.4 * rows) * size * ax.figure.dpi / 72
    ax.set_ylim(0, (top or 1.0) / (1 - min(needed / ax.bbox.height, 0.6)))
    ticks = MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]).tick_values(0, top or 1.0)
    ax.set_yticks([tick for tick in ticks if 0 <= tick <= ax.get_ylim()[1]])  # others would widen the axis
    return [mark.get_window_extent(), legend.get_window_extent()]


def name_lines(ax: Any, lines: Sequence[Name], side: str, taken: list[Any]) -> None:
    """A text at each horizontal line; the boxes that they take go to ``taken``.

    All are written at one end of the axes, at ``side`` if that is as free as the other, and each right
    above or under its line, or further off where lines or texts are in the way.
    """
    from matplotlib.patheffects import withStroke

    dot, lines = ax.figure.dpi / 72, sorted(lines, reverse=True)
    tracks = _tracks(ax)
    trials = []
    for end in (side, "right" if side == "left" else "left"):
        boxes: list[Any] = []
        total = 0.0
        for value, text, _ in lines:
            cost, box = _spot(ax, value, text, end, tracks, [*taken, *boxes])
            boxes.append(box)
            total += cost
        trials.append((total, end, boxes))
    _, end, boxes = min(trials, key=lambda trial: trial[0])
    taken += boxes
    heights = sorted((box.y0 for box in boxes), reverse=True)  # the higher line has the higher text
    for (value, text, colour), height in zip(lines, heights, strict=True):
        named = ax.annotate(
            text, (float(end == "right"), value), xycoords=ax.get_yaxis_transform(), ha=end, va="bottom",
            xytext=(-4 if end == "right" else 4, (height - _pixel(ax, value)) / dot), color=colour,
            textcoords="offset points", fontsize=points(ax), zorder=4,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
        )  # fmt: skip
        named.set_in_layout(False)


def _pixel(ax: Any, value: float) -> float:
    """Where a height is, in pixels."""
    return float(ax.transData.transform((1.0, value))[1])


def _tracks(ax: Any) -> Floats:
    """(M, 2) points along all lines drawn, in pixels."""
    tracks = []
    for line in ax.get_lines():
        drawn = line.get_transform().transform(np.asarray(line.get_xydata(), dtype=np.float64))
        steps, places = np.linspace(0, max(len(drawn) - 1, 0), 500), np.arange(len(drawn))
        if len(drawn):
            tracks.append(np.column_stack([np.interp(steps, places, way) for way in drawn.T]))
    return np.concatenate(tracks)


def _spot(
    ax: Any, value: float, text: str, side: str, tracks: Floats, taken: Sequence[Any]
) -> tuple[float, Any]:
    """Where a text at a horizontal line covers least: what it covers, and its box in pixels."""
    from matplotlib.transforms import Bbox

    probe = ax.text(0, 0, text, fontsize=points(ax))
    size, dot = probe.get_window_extent(), ax.figure.dpi / 72
    probe.remove()
    left = ax.bbox.x0 + 4 * dot if side == "left" else ax.bbox.x1 - 4 * dot - size.width
    found: list[tuple[float, Any]] = []
    for row in range(4):
        for offset in (1.5 * dot + row * size.height, -1.5 * dot - (row + 1) * size.height):
            box = Bbox.from_bounds(left, _pixel(ax, value) + offset, size.width, size.height)
            covered = ((tracks > box.min) & (tracks < box.max)).all(axis=1).sum()
            met = sum(box.expanded(1.1, 1).overlaps(other) for other in taken)
            out = box.y0 < ax.bbox.y0 or box.y1 > ax.bbox.y1
            found.append((float(covered + 10 * row + 1000 * met + 10000 * out), box))
    return min(found, key=lambda spot: spot[0])
