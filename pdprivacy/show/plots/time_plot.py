"""Plots of numbers by the periods of a calendar: a line over time, with margins of error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pdprivacy.show.plots.canvas import ORDERS, Canvas, linear_ticks
from pdprivacy.show.plots.cube import Cube, label_of
from pdprivacy.show.plots.date_ticks import date_ticks
from pdprivacy.show.view import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["are_periods", "draw_series"]

COLOUR = "#0072B2"
MOST_BARS = 60  # margins of error as lines; of more there is a band
PERIOD = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2}(?:/\d{4}-\d{2}-\d{2})?)?|Q[1-4])?\Z")
LENGTHS = {4: (12, "M"), 6: (3, "M"), 7: (1, "M"), 10: (1, "D"), 21: (7, "D")}
"""How many months or days a period has, by the length of its name."""


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
    drawn = "lines" if len(rows) <= MOST_BARS else "bands"
    known = np.isfinite(cube.half).any()
    notes = cube.notes(f"{drawn}: {cube.noise}" if known else "no margins: the error is not known")
    missing = [cube.text(*pair) for row in range(len(cube.rows)) if row not in set(places)
               for pair in zip(cube.values[row].ravel(), cube.half[row].ravel(), strict=True)]  # fmt: skip
    align = canvas.entitle(cube.view.title, [*notes, f"no date: {', '.join(missing)}" if missing else ""])
    parts = [canvas] if len(names) == 1 else canvas.below_each_other([1] * len(names), titled=True)
    for column, (part, name) in enumerate(zip(parts, names, strict=True)):
        if len(names) > 1:
            part.frame("y")
            part.name(name)
        _draw(part, cube, rows, at, column)
    if len(names) == 1:
        of = "share of the records" if cube.view.facts.normalize else "records"
        canvas.label(
            label_of(cube.rows.name) if cube.rows.name else "",
            of if cube.columns is None else names[0],
            canvas.points,
        )
    align()
    return canvas.ax


def _draw(part: Canvas, cube: Cube, rows: Any, at: Floats, column: int) -> None:
    ax = part.ax
    values, half = cube.values[rows, column], np.nan_to_num(cube.half[rows, column])
    for release in range(cube.many):
        colour, dashes, *_ = ORDERS[(release - 1) % len(ORDERS)] if release else (COLOUR, "-")
        line, margin = values[:, release], half[:, release]
        ax.plot(at, line, color=colour, linestyle=dashes, linewidth=1.2, zorder=3,
                marker="o" if len(rows) <= MOST_BARS else "", markersize=3.5)  # fmt: skip
        if len(rows) <= MOST_BARS:
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
