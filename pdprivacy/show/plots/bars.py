"""Plots of counts by label or bin: bars, each with its margin of error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pdprivacy.show.plots.canvas import ORDERS, Canvas, mixed
from pdprivacy.show.plots.cube import Cube, edge_texts, edges_of, label_of
from pdprivacy.show.view import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOUR, EDGE, PALE = "#56B4E9", "#0072B2", "#E6F3FB"
MOST_DRAWN = 400  # bars; of more there is an outline
MOST_BARS = 60
MOST_WRITTEN = 30
WITHIN = "hatched: within the margin of error of 0"


def draw_counts(cube: Cube, ax: Axes | None) -> Any:
    """Draw bars at the edges of bins, or one below the other for labels."""
    edges = [edges_of(label) for label in cube.rows]
    bins = [pair for pair in edges if pair is not None]
    nulls = [row for row, label in enumerate(cube.rows) if label is None or label != label]
    if bins and len(bins) + len(nulls) == len(edges) and len(nulls) <= 1 and _side_by_side(bins):
        return _bins(cube, np.array(bins), nulls, ax)
    return _labels(cube, ax)


def _side_by_side(bins: list[tuple[float, float]]) -> bool:
    """Whether each bin begins where another ends."""
    ordered = np.sort(np.array(bins), axis=0)
    return bool((ordered[:, 0] < ordered[:, 1]).all() and (ordered[1:, 0] == ordered[:-1, 1]).all())


@dataclass(frozen=True)
class Bars:
    """The bars of some rows, (R, M) by row and release, as they are drawn on a canvas.

    ``upright``: whether they stand on the horizontal axis. ``places``: their middles on the axis of the
    rows, ``thick``: how much of it each takes, ``unit``: what their numbers are divided by.
    """

    canvas: Canvas
    cube: Cube
    rows: Sequence[int]
    places: Floats
    thick: Floats
    upright: bool = False
    unit: Any = 1.0

    def of(self, numbers: Floats) -> Floats:
        """Return numbers of the cube as lengths of the bars."""
        return np.asarray(numbers[self.rows, 0] / self.unit)

    @property
    def upper(self) -> Floats:
        """The upper ends of the intervals."""
        return self.of(self.cube.ends[1])

    @property
    def texts(self) -> list[list[str]]:
        """The numbers as they are written, row by row."""
        return [texts_of(self.cube, row) for row in self.rows]

    def draw(self) -> bool:
        """Draw the bars, the intervals and a line at 0; return whether any is hatched.

        Each release is paler than the one before, and hatched within its noise.
        """
        ax, values, within = self.canvas.ax, self.of(self.cube.values), self.cube.within[self.rows, 0]
        bar, line, zero = (
            (ax.bar, ax.vlines, ax.axhline) if self.upright else (ax.barh, ax.hlines, ax.axvline)
        )
        for release in range(self.cube.many):
            plain = {"facecolor": mixed(COLOUR, 0.7 * release / self.cube.many)}
            for chosen, style in (
                (~within[:, release], plain),
                (within[:, release], {"facecolor": PALE, "hatch": "////"}),
            ):
                if chosen.any():
                    drawn = (each[chosen, release] for each in (self.places, values, self.thick))
                    bar(*drawn, edgecolor=EDGE, linewidth=0.6, zorder=2, **style)
        line(self.places, self.of(self.cube.ends[0]), self.upper, color="black", linewidth=1.2, zorder=3)
        zero(0, color="0.3", linewidth=0.8, zorder=3)
        return bool(within.any())

    def write(self, size: float) -> None:
        """Write the numbers beyond the upper ends of the intervals."""
        for row, texts in enumerate(self.texts):
            for release, text in enumerate(texts):
                end, place = max(self.upper[row, release], 0), self.places[row, release]
                if self.upright:
                    self.canvas.write(text, (place, end), (0, 2), size=size, ha="center", va="bottom")
                else:
                    self.canvas.write(text, (end, place), (4, 0), size=size)


def texts_of(cube: Cube, row: int) -> list[str]:
    """Return the numbers of a row as they are written, one per release."""
    return [cube.text(*pair) for pair in zip(cube.values[row, 0], cube.half[row, 0], strict=True)]


def _unit(cube: Cube) -> str:
    return "share of the records" if cube.view.facts.normalize else "records"


def _notes(cube: Cube, hatched: bool, *more: str) -> list[str]:
    """Return the lines under the title."""
    noise = f"lines: {cube.noise}, each {cube.view.span}"
    return cube.notes("; ".join([noise, *more, *([WITHIN] if hatched else [])]))


def _bins(cube: Cube, bins: Floats, nulls: list[int], ax: Axes | None) -> Any:
    """Draw bars at the edges of bins; if the widths differ, the areas are the counts."""
    canvas = Canvas.of(ax, (6.4, 4.2))
    on = canvas.ax
    rows = np.array([row for row in range(len(cube.rows)) if row not in nulls])
    rows, bins = rows[order := np.argsort(bins[:, 0])], bins[order]
    edges = [edge_texts(cube.rows[row]) for row in rows]
    left, width = bins[:, 0], bins[:, 1] - bins[:, 0]
    even = bool(np.allclose(width, width[0], rtol=1e-6, atol=0))
    if nulls and even:  # a bar of its own beside the others
        rows, width = np.append(rows, nulls), np.append(width, width[-1])
        left = np.append(left, bins[-1, 1] + width[-1] / 2)
    part = width[:, None] / cube.many
    places = left[:, None] + part * (np.arange(cube.many) + 0.5)
    unit = 1.0 if even else width[:, None]
    bars = Bars(canvas, cube, rows.tolist(), places, np.broadcast_to(part, places.shape), True, unit)
    hatched = bars.draw() if places.size <= MOST_DRAWN else _outline(bars, left, width)
    on.margins(x=0.01)
    on.tick_params(axis="y", labelsize=0.9 * canvas.points)
    said = [f"NaN: {' and '.join(texts_of(cube, nulls[0]))}"] if nulls and not even else []
    align = canvas.entitle(cube.view.title, _notes(cube, hatched, *said))
    name = "" if cube.rows.name is None else label_of(cube.rows.name)
    canvas.label(name, _unit(cube) + ("" if even else " / width of the bin"), canvas.points)
    names = [first for first, _ in edges] + [edges[-1][1]]
    low, high = on.get_xlim()
    canvas.scale(low, high, [*bins[:, 0], bins[-1, 1]], names)
    if nulls and even:
        ticks = [label.get_text() for label in on.get_xticklabels()]
        on.set_xticks([*on.get_xticks(), left[-1] + width[-1] / 2], [*ticks, "NaN"])
    _write_above(bars)
    align()
    return on


def _outline(bars: Bars, left: Floats, width: Floats) -> bool:
    """Draw very many bins, none of them hatched: an outline per release, and a band for its intervals."""
    ax, cube, edges = bars.canvas.ax, bars.cube, np.append(left, left[-1] + width[-1])
    drawn = (bars.of(numbers).T for numbers in (cube.values, *cube.ends))
    for place, (value, low, high) in enumerate(zip(*drawn, strict=True)):
        colour, dashes, *_ = ORDERS[place % len(ORDERS)]
        ax.stairs(value, edges, color=colour, linestyle=dashes if place else "-", linewidth=1.1, zorder=3)
        ends = [np.append(end, end[-1]) for end in (low, high)]
        ax.fill_between(edges, *ends, step="post", color=colour, alpha=0.25, linewidth=0, zorder=2)
    ax.axhline(0, color="0.3", linewidth=0.8, zorder=3)
    return False


def _write_above(bars: Bars) -> None:
    """Write the counts above their bars if all of them fit."""
    canvas, size = bars.canvas, 0.95 * bars.canvas.points
    room = canvas.pixel(float(bars.thick.min()), 0)[0] - canvas.pixel(0, 0)[0]
    if bars.thick.size > MOST_WRITTEN or _widest(bars, size) > room:
        return
    bars.write(size)
    low, high = canvas.ax.get_ylim()
    canvas.ax.set_ylim(low, high + 1.5 * size / canvas.height * (high - low))


def _widest(bars: Bars, size: float) -> float:
    """Return the width of the longest number, in pixels."""
    return max(bars.canvas.size_of(text, size)[0] for texts in bars.texts for text in texts)


def _labels(cube: Cube, ax: Axes | None) -> Any:
    """Draw bars one below the other, as released; of very many labels only the largest."""
    rows = len(cube.rows)
    height = 1.5 + 0.26 * (1 + 0.5 * (cube.many - 1)) * min(rows, MOST_BARS)
    canvas = Canvas.of(ax, (6.4, height), grid="x")
    on, shown, said = canvas.ax, list(range(rows)), []
    if rows > (most := max(min(MOST_BARS, int(canvas.height / 8)), 1)):
        shown = sorted(np.argsort(-cube.values[:, 0].mean(axis=1), kind="stable")[:most].tolist())
        said.append(f"the {most} largest of {rows} labels")
    thick = 0.78 / cube.many
    places = np.arange(len(shown))[:, None] + (np.arange(cube.many) - (cube.many - 1) / 2) * thick
    bars = Bars(canvas, cube, shown, places, np.full(places.shape, thick))
    hatched = bars.draw()
    on.set_ylim(len(shown) - 0.5, -0.5)
    canvas.settle()
    letters = canvas.letters(0.4, 10)  # leaves room for the bars
    canvas.rows([label_of(cube.rows[row], letters) for row in shown])
    on.tick_params(axis="y", length=0)
    align = canvas.entitle(cube.view.title, _notes(cube, hatched, *said))
    names = [label_of(name) for name in cube.rows.names if name is not None]
    canvas.label(_unit(cube), ", ".join(names), canvas.points)
    low = float(min(bars.of(cube.ends[0]).min(), 0))
    high = float(max(bars.upper.max(), 0)) or 1.0
    size = 0.95 * canvas.points
    written_here = places.size <= MOST_WRITTEN and canvas.height / len(shown) * thick >= 0.95 * size
    wide = _widest(bars, size) + 8 if written_here else 4
    low *= 1.05
    canvas.scale(low, low + (high - low) / max(1 - wide / on.bbox.width, 0.4))
    if written_here:
        bars.write(size)
    align()
    return on
