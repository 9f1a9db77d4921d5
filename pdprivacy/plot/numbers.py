"""Pictures of released numbers: a point each, and the interval that the noise makes around it.

Numbers of different columns have different units, so each column has an axis of its own, one under the other.
Where there is no room for that, all share one axis, on which each is told in units of its own noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pdprivacy.plot.canvas import POINTS, Floats, axes_of, entitle, points, settle
from pdprivacy.plot.panels import below_each_other, scale, thinned
from pdprivacy.plot.reading import Read
from pdprivacy.plot.wording import label_of, level_of, notes_of, title_of, told

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOUR, BOUND = "#0072B2", "#D55E00"
ALIKE = {"count", "proportion"}  # numbers of one unit, whatever the column
MOST_PANELS = 40
LEAST = 26.0  # points of height that an axis of its own needs
MOST_WRITTEN = 60


@dataclass(frozen=True)
class Panel:
    """Numbers of one unit: (R, M), of R rows in M releases each, and the labels of the rows.

    ``name``: of all of them; empty where the rows say it. ``bounds``: NaN where there is none.
    """

    name: str
    labels: list[str]
    values: Floats
    lower: Floats
    upper: Floats
    bounds: tuple[float, float]
    percent: bool = False

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which numbers there are."""
        return np.isfinite(self.values)

    @property
    def view(self) -> tuple[float, float]:
        """The ends of an axis as wide as the intervals, and a little more."""
        drawn = np.concatenate([self.values, self.lower, self.upper], axis=None)
        drawn = drawn[np.isfinite(drawn)]
        low, high = (float(drawn.min()), float(drawn.max())) if drawn.size else (0.0, 1.0)
        margin = 0.12 * (high - low) or max(abs(low) / 10, 0.5)
        return low - margin, high + margin

    @property
    def beyond(self) -> list[tuple[float, float]]:
        """The parts of it that are beyond a bound, from the bound on."""
        low, high = self.view
        return [
            (bound, end) for bound, end in zip(self.bounds, (low, high), strict=True) if low <= bound <= high
        ]

    @property
    def places(self) -> Floats:
        """Where each number is, from above: the releases of a row close to each other."""
        rows, many = self.values.shape
        places: Floats = np.arange(rows)[:, None] + (np.arange(many) - (many - 1) / 2) * 0.7 / many
        return places


def panels_of(read: Read) -> list[Panel]:
    """The numbers by their unit: all together, or each column, or each number, for itself."""
    rows = [label_of(label) for label in read.rows]
    statistic = read.facts["statistic"]
    if read.columns is None and statistic in ALIKE:
        return [_panel(read, "", rows, slice(None), 0)]
    if read.columns is None:
        return [_panel(read, "", [row], [place], 0) for place, row in enumerate(rows)]
    names = [label_of(label) for label in read.columns]
    if statistic == "describe":
        return [
            _panel(read, "", [f"{row} of {name}"], [place], column)
            for column, name in enumerate(names)
            for place, row in enumerate(rows)
        ]
    before = {"quantile": "q = ", "kmeans": "centre ", "kmedian": "centre "}.get(statistic, "")
    rows = [before + row for row in rows]
    return [_panel(read, name, rows, slice(None), column) for column, name in enumerate(names)]


def _panel(read: Read, name: str, labels: list[str], rows: Any, column: int) -> Panel:
    ends = [np.unique(end[rows, column]) for end in read.bounds]
    lower, upper = (float(end[0]) if len(end) == 1 else np.nan for end in ends)
    values, low, high = (cube[rows, column] for cube in (read.values, read.lower, read.upper))
    share = read.facts["statistic"] == "proportion"
    return Panel(name, labels, values, low, high, (lower, upper), share)


def draw_numbers(read: Read, ax: Axes | None) -> Any:
    """Points with intervals, one axis per unit; selected numbers have points alone."""
    panels = panels_of(read)
    if len(panels) == 1:
        panels = [replace(panels[0], name="")]  # the title says it
    named = bool(panels[0].name)
    rows = sum(len(panel.labels) for panel in panels) * (1 + 0.4 * (read.many - 1))
    height = 0.9 + 0.22 * rows + len(panels) * (0.5 if named else 0.3)
    height = max(height, _needed(panels) / 72 + 0.6, 1.9)
    on = axes_of(ax, (6.4, min(height, 40.0)), grid="")
    drawn, texts = panels, [_texts(panel) for panel in panels]
    if not _have_room(on, panels):
        drawn, texts = [_together(panels)], [[text for each in texts for text in each]]
        unit = f"in units of the noise of each ({level_of(read.facts)})"
        on.set_xlabel(unit if read.half is not None else "no room for an axis each", fontsize=points(on))
    notes = notes_of(read.facts, _said(read, any(panel.beyond for panel in drawn)))
    align = entitle(on, title_of(read.facts, read.by), notes)
    parts = [on]
    if len(drawn) > 1:
        parts = below_each_other(on, [len(panel.labels) for panel in drawn], titled=named)
    for part, panel, text in zip(parts, drawn, texts, strict=True):
        _draw(part, panel)
        room = part.bbox.height * 72 / part.figure.dpi / panel.values.size
        if room >= 1.05 * points(part) or not panel.known.any():
            _write(part, panel, text, min(0.9 * points(part), room))
    align()
    for part, panel in zip(parts, drawn, strict=True):
        if panel.known.any():
            scale(part, *panel.view, percent=panel.percent)
        else:
            part.set_xticks([])
    align()
    return on


def _needed(panels: Sequence[Panel], size: float = POINTS) -> float:
    """Points of height that axes of their own need, with the title and its notes."""
    each = LEAST + 5 * len(panels[0].labels) + 8 * bool(panels[0].name)
    return each * len(panels) + 6 * size


def _have_room(ax: Any, panels: Sequence[Panel]) -> bool:
    """Whether each of several panels can have an axis of its own, below the title and its notes."""
    if len(panels) == 1:
        return True
    settle(ax)
    return len(panels) <= MOST_PANELS and ax.bbox.height * 72 / ax.figure.dpi >= _needed(panels, points(ax))


def _said(read: Read, beyond: bool) -> str:
    """What the bars are, or why there are none."""
    bars = _bars_are(read)
    return f"{bars}; hatched: beyond the bounds" if beyond else bars


def _bars_are(read: Read) -> str:
    error = read.facts["error"]
    if read.half is not None:
        known = np.isfinite(read.half).any()
        return (
            f"bars: {level_of(read.facts)} of the noise alone" if known else "no bars: the error is not known"
        )
    if read.facts["statistic"] == "kmedian":
        return "no bars: these points were selected by their cost"
    rank = error.get("rank")
    near = "" if rank is None else f" near record {_most(rank):.0f} from the end"
    off = f"up to {_most(error['below_best']):.0f} records off with {level_of(read.facts)}"
    return f"no bars: selected by rank{near}, {off}"


def _most(numbers: Any) -> float:
    """The largest of several numbers by name, or the only one."""
    known = [
        one for one in (numbers.values() if isinstance(numbers, Mapping) else [numbers]) if one is not None
    ]
    return float(max(known, default=np.nan))


def _draw(ax: Any, panel: Panel) -> None:
    ax.spines[["left", "top", "right"]].set_visible(False)
    ax.grid(axis="x", color="0.92")
    ax.set_axisbelow(True)
    ax.set_ylim(len(panel.labels) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    thinned(ax, panel.labels)
    if panel.name:
        ax.set_title(panel.name, loc="left", fontsize=points(ax), pad=2, parse_math=False)
    places, known = panel.places, panel.known
    bars = known & np.isfinite(panel.upper)
    ax.hlines(places[bars], panel.lower[bars], panel.upper[bars], color=COLOUR, linewidth=1.6, zorder=2)
    ax.plot(
        panel.values[known], places[known], linestyle="", marker="o", markersize=5, color=COLOUR,
        markeredgecolor="white", markeredgewidth=0.6, zorder=3,
    )  # fmt: skip
    for bound, end in panel.beyond:
        ax.axvline(bound, color=BOUND, linestyle=(0, (4, 3)), linewidth=1.2, zorder=1)
        ax.axvspan(bound, end, facecolor="0.93", hatch="///", edgecolor="0.8", linewidth=0, zorder=0)


def _texts(panel: Panel) -> list[str]:
    """The numbers in words, row by row."""
    half = (panel.upper - panel.lower) / 2
    pairs = zip(panel.values.flat, half.flat, strict=True)
    return [told(float(value), float(error), panel.percent) for value, error in pairs]


def _write(ax: Any, panel: Panel, texts: Sequence[str], size: float) -> None:
    """The numbers as text, to the right of the axes."""
    for text, place in zip(texts, panel.places.flat, strict=True):
        ax.annotate(
            text, (1, place), xycoords=ax.get_yaxis_transform(), xytext=(5, 0), textcoords="offset points",
            va="center", fontsize=size, color="0.25", annotation_clip=False,
        )  # fmt: skip


def _together(panels: Sequence[Panel]) -> Panel:
    """All numbers on one axis, each in units of its own noise, half of its interval; none without noise."""
    labels = [", ".join(filter(None, (panel.name, label))) for panel in panels for label in panel.labels]
    values, upper = (np.concatenate([getattr(panel, end) for panel in panels]) for end in ("values", "upper"))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.where(upper > values, values / (upper - values), np.nan)
    return Panel("", labels, ratios, ratios - 1, ratios + 1, (np.nan, np.nan))
