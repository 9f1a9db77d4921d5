"""Plots of released numbers: a point each, with its margin of error.

Numbers of different columns have different units, so each column has its own axis, one below the other. If
there is no room for that, all share one axis, in units of the noise of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pdprivacy.show.plots.canvas import POINTS, Canvas
from pdprivacy.show.plots.cube import Cube, label_of
from pdprivacy.show.plots.date_ticks import date_ticks
from pdprivacy.show.view import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOUR, BOUND = "#0072B2", "#D55E00"
ALIKE = {"count", "proportion"}  # numbers of one unit, whatever the column
SEVERAL = {"agg", "describe"}  # rows of different units, where they are no groups
PREFIXES = {"quantile": "q = ", "kmeans": "centre ", "kmedian": "centre "}
MOST_PANELS = 40
LEAST = 26.0  # points of height that an axis of its own needs


@dataclass(frozen=True)
class Panel:
    """Numbers of one unit, (R, M): R rows of M releases each, with the labels of the rows.

    ``name``: of all of them; empty if the rows say it. ``texts``: the numbers in words, row by row.
    ``bounds``: NaN for none.
    """

    name: str
    labels: list[str]
    values: Floats
    half: Floats
    ends: tuple[Floats, Floats]
    texts: list[str]
    bounds: tuple[float, float] = (np.nan, np.nan)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which numbers are known."""
        return np.isfinite(self.values)

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of an axis a little wider than the intervals."""
        drawn = np.concatenate([self.values, *self.ends], axis=None)
        drawn = drawn[np.isfinite(drawn)]
        low, high = (float(drawn.min()), float(drawn.max())) if drawn.size else (0.0, 1.0)
        margin = 0.12 * (high - low) or max(abs(low) / 10, 0.5)
        return low - margin, high + margin

    @property
    def beyond(self) -> list[tuple[float, float]]:
        """The parts of the axis beyond a bound, from the bound on."""
        low, high = self.limits
        return [
            (bound, end) for bound, end in zip(self.bounds, (low, high), strict=True) if low <= bound <= high
        ]

    @property
    def places(self) -> Floats:
        """The height of each number from above; the releases of a row are close to each other."""
        rows, many = self.values.shape
        places: Floats = np.arange(rows)[:, None] + (np.arange(many) - (many - 1) / 2) * 0.7 / many
        return places


def panels_of(cube: Cube) -> list[Panel]:
    """Return the numbers by their unit: all together, by column, or one by one."""
    rows = [label_of(label) for label in cube.rows]
    statistic = cube.view.facts.statistic
    if cube.columns is None and statistic in ALIKE:
        return [_panel(cube, "", rows, slice(None), 0)]
    if cube.columns is None:
        return [_panel(cube, "", [row], [place], 0) for place, row in enumerate(rows)]
    names = [label_of(label) for label in cube.columns]
    grouped = bool(cube.view.by)
    if statistic in SEVERAL and not grouped:
        return [
            _panel(cube, "", [f"{row} of {name}"], [place], column)
            for column, name in enumerate(names)
            for place, row in enumerate(rows)
        ]
    rows = rows if grouped else [PREFIXES.get(statistic, "") + row for row in rows]
    return [_panel(cube, name, rows, slice(None), column) for column, name in enumerate(names)]


def _panel(cube: Cube, name: str, labels: list[str], rows: Any, column: int) -> Panel:
    ends = [np.unique(end[rows, column]) for end in cube.bounds]
    lower, upper = (float(end[0]) if len(end) == 1 else np.nan for end in ends)
    values, half = cube.values[rows, column], cube.half[rows, column]
    drawn = cube.ends[0][rows, column], cube.ends[1][rows, column]
    pairs = zip(values.flat, half.flat, strict=True)
    texts = [cube.text(value, error, error=True) for value, error in pairs]
    return Panel(name, labels, values, half, drawn, texts, (lower, upper))


def draw_numbers(cube: Cube, ax: Axes | None) -> Any:
    """Draw points with margins of error, one axis per unit; selected numbers as points alone."""
    panels = panels_of(cube)
    if len(panels) == 1:
        panels = [replace(panels[0], name="")]  # the title says it
    rows = sum(len(panel.labels) for panel in panels) * (1 + 0.4 * (cube.many - 1))
    height = 0.9 + 0.22 * rows + len(panels) * (0.5 if panels[0].name else 0.3)
    height = max(height, _needed(panels) / 72 + 0.6, 1.9)
    canvas = Canvas.of(ax, (6.4, min(height, 40.0)), grid="")
    if not _have_room(canvas, panels):
        panels = [_together(panels)]
        unit = f"in units of the noise of each ({cube.view.level})"
        below = "no room for separate axes" if cube.view.selected else unit
        canvas.ax.set_xlabel(below, fontsize=canvas.points)
    beyond = any(panel.beyond for panel in panels)
    notes = cube.notes(_bars_are(cube) + ("; hatched: beyond the bounds" if beyond else ""))
    align = canvas.entitle(cube.view.title, notes)
    parts = [canvas]
    if len(panels) > 1:
        weights = [len(panel.labels) for panel in panels]
        parts = canvas.below_each_other(weights, titled=bool(panels[0].name))
    for part, panel in zip(parts, panels, strict=True):
        _draw(part, panel)
        room = part.height / panel.values.size
        if room >= 1.05 * part.points or not panel.known.any():
            size, right = min(0.9 * part.points, room), part.ax.get_yaxis_transform()
            for text, place in zip(panel.texts, panel.places.flat, strict=True):
                part.write(
                    text, (1, place), (5, 0), over=right, size=size, color="0.25", annotation_clip=False
                )
    align()
    for part, panel in zip(parts, panels, strict=True):
        if panel.known.any():
            part.scale(*panel.limits, dates=date_ticks if cube.view.dates else None)
        else:
            part.ax.set_xticks([])
    align()
    return canvas.ax


def _needed(panels: Sequence[Panel], size: float = POINTS) -> float:
    """Points of height that separate axes need, with the title and its notes."""
    each = LEAST + 5 * len(panels[0].labels) + 8 * bool(panels[0].name)
    return each * len(panels) + 6 * size


def _have_room(canvas: Canvas, panels: Sequence[Panel]) -> bool:
    """Whether each panel can have its own axis, below the title and its notes."""
    if len(panels) == 1:
        return True
    canvas.settle()
    return len(panels) <= MOST_PANELS and canvas.height >= _needed(panels, canvas.points)


def _bars_are(cube: Cube) -> str:
    """What the bars are, or why there are none."""
    if cube.view.selected:
        return f"no bars: {cube.view.error}"
    if not np.isfinite(cube.half).any():
        return "no bars: the error is not known"
    return f"bars: {cube.noise}"


def _draw(part: Canvas, panel: Panel) -> None:
    ax = part.ax
    part.frame("x", "left")
    ax.set_ylim(len(panel.labels) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    part.rows(panel.labels)
    if panel.name:
        part.name(panel.name)
    places, known = panel.places, panel.known
    bars = known & np.isfinite(panel.half)
    ax.hlines(places[bars], panel.ends[0][bars], panel.ends[1][bars], color=COLOUR, linewidth=1.6, zorder=2)
    ax.plot(
        panel.values[known], places[known], linestyle="", marker="o", markersize=5, color=COLOUR,
        markeredgecolor="white", markeredgewidth=0.6, zorder=3,
    )  # fmt: skip
    for bound, end in panel.beyond:
        ax.axvline(bound, color=BOUND, linestyle=(0, (4, 3)), linewidth=1.2, zorder=1)
        ax.axvspan(bound, end, facecolor="0.93", hatch="///", edgecolor="0.8", linewidth=0, zorder=0)


def _together(panels: Sequence[Panel]) -> Panel:
    """Put all numbers on one axis, each in units of its own noise; none without noise."""
    labels = [", ".join(filter(None, (panel.name, label))) for panel in panels for label in panel.labels]
    values, half = (np.concatenate([getattr(panel, name) for panel in panels]) for name in ("values", "half"))
    ends = [np.concatenate([panel.ends[side] for panel in panels]) for side in (0, 1)]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios, lower, upper = (np.where(half > 0, each / half, np.nan) for each in (values, *ends))
    texts = [text for panel in panels for text in panel.texts]
    return Panel("", labels, ratios, np.ones_like(ratios), (lower, upper), texts)
