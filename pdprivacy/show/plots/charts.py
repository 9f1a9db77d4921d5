"""Charts of released numbers with their margins of error: points, and lines over time.

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

from pdprivacy.errors import MetadataError, NoPictureError
from pdprivacy.releases import metadata
from pdprivacy.releases.metadata import PROJECT, Metadata, Released
from pdprivacy.releases.view import LABELS, SEEDED, View, mechanism_text
from pdprivacy.show.plots.canvas import ORDERS, POINTS, Canvas, date_ticks, linear_ticks
from pdprivacy.text import numbers
from pdprivacy.text.numbers import printable
from pdprivacy.types import Floats, Mask

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST = 40
"""Characters of a label; a longer one is cut."""

LONGEST_EDGE = 12
"""Characters of the edge of a bin; a longer one, which nobody declared by hand, has six digits."""

EDGE = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
BIN = re.compile(rf"^([\[(])({EDGE}), ?({EDGE})([\])])$")


@dataclass(frozen=True)
class Cube:
    """Released numbers, (R, C, M): by row, column (one if ``columns`` is None) and release.

    Dates are seconds since 1970, of the clock of their time zone.

    ``half``: margins of error, NaN where they are not known. ``ends``: lower and upper ends of the intervals.
    ``unknown``: whether a number is all noise, and its interval all that is between its limits.
    ``bounds``: the lower and upper limits of each number, kept by bounding or declared for the values of
    a mean; NaN for none.
    """

    view: View
    columns: pd.Index[Any] | None
    values: Floats
    half: Floats
    ends: tuple[Floats, Floats]
    bounds: tuple[Floats, Floats]
    unknown: Mask

    @classmethod
    def of(cls, released: Released) -> Cube:
        """Read a release.

        Raises
        ------
        MetadataError : no release, numbers that were changed, or labels.
        """
        view = View.of(released)
        if not view.unchanged:
            raise MetadataError(
                "The numbers are not those that were released: there is no picture of them, because their "
                "errors are not known.",
                "released.dp.plot() on the object as it was returned; released.dp.changes says what differs.",
            )
        released = view.released
        if view.facts.statistic in LABELS:
            raise NoPictureError(
                f"{view.facts.statistic!r} releases labels and no numbers, so it has no picture.",
                "private.dp.value_counts(column, epsilon=...).dp.plot() draws counts, at their own cost.",
            )
        try:
            values = seconds_of(view.table) if view.dates else view.table.to_numpy(dtype=np.float64)
        except (TypeError, ValueError):
            raise NoPictureError("The release holds labels or objects, so it has no picture.") from None
        if not values.size:
            raise NoPictureError("The release holds no number, so it has no picture.")
        limits = view.facts.bounds_of_each("bounds" if view.facts.bounds else "value_bounds", released.shape)
        lower, upper = (limit.reshape(len(released), -1) for limit in limits)
        columns, order = _order(released, view.facts)
        ends = _ends(view, values)
        unknown = np.zeros(values.shape, dtype=bool)
        unknown[tuple(zip(*view.unknown, strict=True))] = bool(view.unknown)
        return cls(
            view, columns, order(values), order(view.half), unknown=order(unknown),
            ends=(order(ends[0]), order(ends[1])), bounds=(order(lower), order(upper)),
        )  # fmt: skip

    @property
    def rows(self) -> pd.Index[Any]:
        """The row labels."""
        return self.view.released.index

    @property
    def many(self) -> int:
        """The number of releases side by side."""
        return int(self.values.shape[2])

    @property
    def within(self) -> Mask:
        """Whether the interval of each number contains 0, or begins there."""
        return within_noise(self.values, self.half) | self.unknown

    @property
    def unit(self) -> str:
        """The unit of counts, or of their shares."""
        return "share of the records" if self.view.facts.normalize else "records"

    @property
    def noise(self) -> str:
        """A note on the margins of error: their level, and the errors that they cover."""
        counted = "noise and sample" if self.view.regressions else "noise only"
        return f"{self.view.level} margin of error, {counted}"

    def text(self, value: float, half: float, error: bool = False, unknown: bool = False) -> str:
        """Format a number to the digits that its error leaves; with ``error``, followed by this."""
        known = bool(np.isfinite(value))
        if self.view.dates and known:
            pair = numbers.dated(pd.Timestamp(np.datetime64(round(value), "s")), float(half))
        else:
            pair = numbers.paired(int(value) if self.view.whole and known else float(value), float(half))
        if not error:
            return pair[0]
        return numbers.joined((pair[0], numbers.UNKNOWN) if unknown else pair)

    def texts(self, at: Any, error: bool = False) -> list[str]:
        """Format the numbers at some places, in their order, as `text` does."""
        each = zip(self.values[at].flat, self.half[at].flat, self.unknown[at].flat, strict=True)
        return [self.text(value, half, error, unknown) for value, half, unknown in each]

    @property
    def _biases(self) -> bool:
        """Whether a bounding moved the numbers, or bent their noise; sorting selected ones does neither."""
        facts = self.view.facts
        if facts.bounding is None or self.view.selected:
            return False
        return facts.bounding != PROJECT or bool(self.view.projected)

    def notes(self, noise: str) -> list[str]:
        """Return the lines under the title: cost, records, ``noise`` in words, and what limits them."""
        facts = self.view.facts
        together = f", {facts.releases} releases together" if facts.releases > 1 else ""
        return [
            f"{self.view.cost}, {mechanism_text(facts.mechanism, facts.p)}{together}",
            self.view.records,
            noise,
            f"bounding {facts.bounding!r} biases numbers near their bounds" if self._biases else "",
            f"errors are those before constraint={facts.constraint!r}" if facts.constraint else "",
            SEEDED if facts.seeded else "",
        ]


def _ends(view: View, values: Floats) -> tuple[Floats, Floats]:
    """Return the ends of intervals, (R, C) each; NaN where they are not known."""
    if not {"lower", "upper"} <= {*view.facts.error}:
        return view.facts.ends_of_each(*(each.reshape(view.released.shape) for each in (values, view.half)))
    frame: Any = metadata.interval(view.released)
    width = values.shape[1]
    lower, upper = (frame.iloc[:, at : at + width] for at in (2 * width, 3 * width))
    if view.dates:
        return seconds_of(lower), seconds_of(upper)
    return lower.to_numpy(np.float64), upper.to_numpy(np.float64)


def seconds_of(table: pd.DataFrame) -> Floats:
    """Return dates as seconds since 1970, of the clock of their time zone; NaN for NaT."""
    columns = [
        table.iloc[:, position].dt.tz_localize(None).dt.as_unit("us") for position in range(table.shape[1])
    ]
    seconds = np.stack([column.to_numpy().astype(np.int64) / 1e6 for column in columns], axis=-1)
    return np.where(table.isna().to_numpy(), np.nan, seconds)


def within_noise(values: Floats, half: Floats) -> Mask:
    """Return whether the interval of each number contains 0."""
    return (np.abs(values) <= half) & (half > 0)


def _order(released: Released, facts: Metadata) -> tuple[pd.Index[Any] | None, Any]:
    """The columns of one release, and what brings numbers to (R, C, M)."""
    rows = len(released)
    if isinstance(released, pd.Series):
        return None, lambda values: values.reshape(rows, 1, 1)
    count, names = facts.releases, released.columns
    whole = isinstance(count, int) and count > 1 and len(names) % count == 0
    if not whole or names.names[0] != "release":
        return names, lambda values: values.reshape(rows, -1, 1)
    first = names[: len(names) // count]
    inner = first.droplevel(0) if isinstance(first, pd.MultiIndex) else None
    return inner, lambda values: values.reshape(rows, count, -1).transpose(0, 2, 1)


def edges_of(label: object) -> tuple[float, float] | None:
    """Return the edges of a bin such as ``[16, 30)``; None for another label."""
    match = BIN.match(label) if isinstance(label, str) else None
    return None if match is None else (float(match[2]), float(match[3]))


def edge_texts(label: str) -> tuple[str, str]:
    """Return the edges of a bin as they were declared; those of bins of equal width with few digits."""
    _, *edges, _ = BIN.fullmatch(label).groups()  # type: ignore[union-attr]
    first, last = (edge if len(edge) <= LONGEST_EDGE else numbers.short(float(edge)) for edge in edges)
    return first, last


def label_of(label: object, most: int = LONGEST) -> str:
    """Return a label of an axis: its levels joined, long edges of a bin shortened."""
    if isinstance(label, tuple):
        parts = [label_of(part, most) for part in label if not (isinstance(part, str) and part == "")]
        return printable(", ".join(parts), most)
    if isinstance(label, str) and edges_of(label) is not None:
        return printable(f"{label[0]}{', '.join(edge_texts(label))}{label[-1]}", most)
    if isinstance(label, float) and label == label:
        return numbers.short(label)
    return numbers.label(label, most)


def names_of(index: pd.Index[Any]) -> str:
    """Return the label of an axis: the names of its levels, joined."""
    return ", ".join(label_of(name) for name in index.names if name is not None)


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
    def known(self) -> Mask:
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
        rows, releases = self.values.shape
        heights: Floats = (
            np.arange(rows)[:, None] + (np.arange(releases) - (releases - 1) / 2) * 0.7 / releases
        )
        return heights


def panels_of(cube: Cube) -> list[Panel]:
    """Return the numbers by their unit: all together, by column, or one by one."""
    rows = [label_of(label) for label in cube.rows]
    statistic = cube.view.facts.statistic
    if cube.columns is None and statistic in ALIKE:
        return [_panel(cube, "", rows, slice(None), 0)]
    if cube.columns is None:
        return [_panel(cube, "", [row], [position], 0) for position, row in enumerate(rows)]
    names = [label_of(label) for label in cube.columns]
    grouped = bool(cube.view.by)
    if statistic in SEVERAL and not grouped:
        return [
            _panel(cube, "", [f"{row} of {name}"], [position], column)
            for column, name in enumerate(names)
            for position, row in enumerate(rows)
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
        panels = [_draw_on_one_axis(panels)]
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
            for text, position in zip(panel.texts, panel.places.flat, strict=True):
                part.write(
                    text, (1, position), (5, 0), over=right, size=size, color="0.25", annotation_clip=False
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
    canvas.lay_out()
    return len(panels) <= MOST_PANELS and canvas.height >= _needed(panels, canvas.points)


def _bars_are(cube: Cube) -> str:
    """Return the meaning of the error bars, or the reason why there are none."""
    if cube.view.selected and np.isfinite(cube.ends[0]).any():
        return f"bars: {cube.view.level} intervals, selected with the numbers"
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
    heights, known = panel.places, panel.known
    bars = known & np.isfinite(panel.ends[0]) & np.isfinite(panel.ends[1])
    ax.hlines(heights[bars], panel.ends[0][bars], panel.ends[1][bars], color=COLOUR, linewidth=1.6, zorder=2)
    ax.plot(
        panel.values[known], heights[known], linestyle="", marker="o", markersize=5, color=COLOUR,
        markeredgecolor="white", markeredgewidth=0.6, zorder=3,
    )  # fmt: skip
    for bound, end in panel.beyond:
        ax.axvline(bound, color=BOUND, linestyle=(0, (4, 3)), linewidth=1.2, zorder=1)
        ax.axvspan(bound, end, facecolor="0.93", hatch="///", edgecolor="0.8", linewidth=0, zorder=0)


def _draw_on_one_axis(panels: Sequence[Panel]) -> Panel:
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
    length, unit = LENGTHS[len(labels[0])]
    ends = starts.astype(f"datetime64[{unit}]") + np.asarray(length, dtype=f"timedelta64[{unit}]")
    edges = [side.astype("datetime64[s]").astype(np.float64) for side in (starts, ends)]
    return (edges[0] + edges[1]) / 2


def draw_series(cube: Cube, ax: Axes | None) -> Any:
    """Draw numbers over time; several columns one below the other, several releases as lines of their own."""
    dated = [row for row, label in enumerate(cube.rows) if isinstance(label, str)]
    middles = _middles([cube.rows[row] for row in dated])
    order = np.argsort(middles)
    rows, at = np.array(dated)[order], middles[order]
    names = [""] if cube.columns is None else [label_of(name) for name in cube.columns]
    canvas = Canvas.of(ax, (6.4, 2.2 + 1.6 * len(names)))
    drawn = "lines" if len(rows) <= MOST_MARGINS else "bands"
    known = np.isfinite(cube.half).any()
    notes = cube.notes(f"{drawn}: {cube.noise}" if known else "no margins: the error is not known")
    missing = cube.texts(sorted({*range(len(cube.rows))} - {*dated}))
    align = canvas.entitle(cube.view.title, [*notes, f"no date: {', '.join(missing)}" if missing else ""])
    parts = [canvas] if len(names) == 1 else canvas.below_each_other([1] * len(names), titled=True)
    for column, (part, name) in enumerate(zip(parts, names, strict=True)):
        if len(names) > 1:
            part.frame("y")
            part.name(name)
        _line(part, cube, rows, at, column)
    if len(names) == 1:
        beside = cube.unit if cube.columns is None else names[0]
        canvas.label(names_of(cube.rows), beside, canvas.points)
    align()
    return canvas.ax


def _line(part: Canvas, cube: Cube, rows: Any, at: Floats, column: int) -> None:
    ax = part.ax
    values = cube.values[rows, column]
    ends = [np.where(np.isnan(end[rows, column]), values, end[rows, column]) for end in cube.ends]
    for release in range(cube.many):
        colour, dashes, *_ = ORDERS[(release - 1) % len(ORDERS)] if release else (COLOUR, "-")
        line, lower, upper = values[:, release], ends[0][:, release], ends[1][:, release]
        ax.plot(at, line, color=colour, linestyle=dashes, linewidth=1.2, zorder=3,
                marker="o" if len(rows) <= MOST_MARGINS else "", markersize=3.5)  # fmt: skip
        if len(rows) <= MOST_MARGINS:
            ax.vlines(at, lower, upper, color=colour, linewidth=1.2, zorder=2)
        else:
            ax.fill_between(at, lower, upper, color=colour, alpha=0.25, linewidth=0, zorder=2)
    space = 0.6 * float(np.diff(at).max())
    part.scale(at[0] - space, at[-1] + space, dates=date_ticks)
    low, high = ax.get_ylim()
    if cube.view.dates:
        ax.set_yticks(*date_ticks(low, high, 5), fontsize=0.9 * part.points)
    else:
        part.upright(linear_ticks(low, high, 6))
