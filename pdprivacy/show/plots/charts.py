"""Charts of released numbers with their margins of error: bars of counts, points, and lines over time.

Numbers of different columns have different units, so each column of points or of a line has its own axis, one
below the other. If there is no room for that, all points share one axis, in units of the noise of each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.show.plots.canvas import ORDERS, POINTS, Canvas, date_ticks, linear_ticks, mixed
from pdprivacy.show.plots.cube import Cube, edge_texts, edges_of, label_of, names_of
from pdprivacy.show.view import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["are_periods", "draw_counts", "draw_numbers", "draw_series"]

FILL, EDGE, PALE = "#56B4E9", "#0072B2", "#E6F3FB"
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
    """Return whether each bin begins where another ends."""
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
        return [self.cube.texts((row, 0)) for row in self.rows]

    def draw(self) -> bool:
        """Draw the bars, the intervals and a line at 0; return whether any is hatched.

        Each release is paler than the one before, and hatched within its noise.
        """
        ax, values, within = self.canvas.ax, self.of(self.cube.values), self.cube.within[self.rows, 0]
        bar, line, zero = (
            (ax.bar, ax.vlines, ax.axhline) if self.upright else (ax.barh, ax.hlines, ax.axvline)
        )
        for release in range(self.cube.many):
            plain = {"facecolor": mixed(FILL, 0.7 * release / self.cube.many)}
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
    said = [f"NaN: {' and '.join(cube.texts((nulls[0], 0)))}"] if nulls and not even else []
    align = canvas.entitle(cube.view.title, _notes(cube, hatched, *said))
    canvas.label(names_of(cube.rows), _unit(cube) + ("" if even else " / width of the bin"), canvas.points)
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
    canvas.label(_unit(cube), names_of(cube.rows), canvas.points)
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


# ---------------------------------------------------------------- points

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
        """A mask of the known numbers."""
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
    at = rows, column
    drawn = cube.ends[0][at], cube.ends[1][at]
    texts = cube.texts(at, error=True)
    return Panel(name, labels, cube.values[at], cube.half[at], drawn, texts, (lower, upper))


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
        _points(part, panel)
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
    """Return whether each panel can have its own axis, below the title and its notes."""
    if len(panels) == 1:
        return True
    canvas.settle()
    return len(panels) <= MOST_PANELS and canvas.height >= _needed(panels, canvas.points)


def _bars_are(cube: Cube) -> str:
    """Return the meaning of the error bars, or the reason why there are none."""
    if cube.view.selected:
        return f"no bars: {cube.view.error}"
    if not np.isfinite(cube.half).any():
        return "no bars: the error is not known"
    return f"bars: {cube.noise}"


def _points(part: Canvas, panel: Panel) -> None:
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


# ---------------------------------------------------------------- lines over time

MOST_MARGINS = 60  # margins of error as lines; of more there is a band
PERIOD = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2}(?:/\d{4}-\d{2}-\d{2})?)?|Q[1-4])?\Z")
LENGTHS = {4: (12, "M"), 6: (3, "M"), 7: (1, "M"), 10: (1, "D"), 21: (7, "D")}
"""The number of months or days of a period, by the length of its name."""


def are_periods(labels: pd.Index[Any], lineage: Sequence[str]) -> bool:
    """Return whether labels are periods of one frequency, two at least, perhaps beside nulls.

    The steps before the release say so; other labels, such as postal codes, may look like years.
    """
    if not any(step.startswith(f"cut({labels.name!r}, freq=") for step in lineage):
        return False
    known = [label for label in labels if isinstance(label, str)]
    texts = all(PERIOD.match(label) for label in known)
    return labels.nlevels == 1 and len(known) > 1 and texts and len({len(label) for label in known}) == 1


def _middles(labels: Sequence[str]) -> Floats:
    """The middle of each period, in seconds since 1970."""
    firsts = [re.sub(r"Q(\d)", lambda quarter: f"-{3 * int(quarter[1]) - 2:02}", label) for label in labels]
    starts = np.array([first.partition("/")[0] for first in firsts], dtype="datetime64[D]")
    many, unit = LENGTHS[len(labels[0])]
    ends = starts.astype(f"datetime64[{unit}]") + many
    both = [side.astype("datetime64[s]").astype(np.float64) for side in (starts, ends)]
    return (both[0] + both[1]) / 2


def draw_series(cube: Cube, ax: Axes | None) -> Any:
    """Draw numbers over time; several columns one below the other, several releases as lines of their own."""
    places = [row for row, label in enumerate(cube.rows) if isinstance(label, str)]
    middles = _middles([cube.rows[row] for row in places])
    order = np.argsort(middles)
    rows, at = np.array(places)[order], middles[order]
    names = [""] if cube.columns is None else [label_of(name) for name in cube.columns]
    canvas = Canvas.of(ax, (6.4, 2.2 + 1.6 * len(names)))
    drawn = "lines" if len(rows) <= MOST_MARGINS else "bands"
    known = np.isfinite(cube.half).any()
    notes = cube.notes(f"{drawn}: {cube.noise}" if known else "no margins: the error is not known")
    missing = cube.texts(sorted({*range(len(cube.rows))} - {*places}))
    align = canvas.entitle(cube.view.title, [*notes, f"no date: {', '.join(missing)}" if missing else ""])
    parts = [canvas] if len(names) == 1 else canvas.below_each_other([1] * len(names), titled=True)
    for column, (part, name) in enumerate(zip(parts, names, strict=True)):
        if len(names) > 1:
            part.frame("y")
            part.name(name)
        _line(part, cube, rows, at, column)
    if len(names) == 1:
        beside = _unit(cube) if cube.columns is None else names[0]
        canvas.label(names_of(cube.rows), beside, canvas.points)
    align()
    return canvas.ax


def _line(part: Canvas, cube: Cube, rows: Any, at: Floats, column: int) -> None:
    ax = part.ax
    values, half = cube.values[rows, column], np.nan_to_num(cube.half[rows, column])
    for release in range(cube.many):
        colour, dashes, *_ = ORDERS[(release - 1) % len(ORDERS)] if release else (COLOUR, "-")
        line, margin = values[:, release], half[:, release]
        ax.plot(at, line, color=colour, linestyle=dashes, linewidth=1.2, zorder=3,
                marker="o" if len(rows) <= MOST_MARGINS else "", markersize=3.5)  # fmt: skip
        if len(rows) <= MOST_MARGINS:
            ax.vlines(at, line - margin, line + margin, color=colour, linewidth=1.2, zorder=2)
        else:
            ax.fill_between(at, line - margin, line + margin, color=colour, alpha=0.25, linewidth=0, zorder=2)
    space = 0.6 * float(np.diff(at).max())
    part.scale(at[0] - space, at[-1] + space, dates=date_ticks)
    low, high = ax.get_ylim()
    if cube.view.dates:
        ax.set_yticks(*date_ticks(low, high, 5), fontsize=0.9 * part.points)
    else:
        part.upright(linear_ticks(low, high, 6))
