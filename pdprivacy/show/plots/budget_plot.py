"""Plots of a budget: what each release cost, and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pdprivacy.errors import ParameterError, got
from pdprivacy.privacy import ZCDP, Approx, Loss, Pure
from pdprivacy.show.markup import printable
from pdprivacy.show.numbers import cost, many
from pdprivacy.show.plots.canvas import Canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOUR, GROUPED, LEFT = "#0072B2", "#56B4E9", "white"
MOST_ROWS = 16
SMALL = 8.0  # points of height that a row needs at least


@dataclass(frozen=True)
class SpentBar:
    """One bar: its label, its amount, and the number of charges in it."""

    label: str
    amount: float
    charges: int = 1


def draw_budget(
    entries: pd.DataFrame, total: Loss, left: tuple[float, float], ax: Axes | None = None
) -> Axes:
    """Draw the charges of a budget: a bar per release, from the end of the one before, and what is left.

    The unit is that of the cap, epsilon or rho. If the accounting of a cap in epsilon counts squares, the
    bars are of rho, which it counts, and a note says what is left. If there are many charges, those with the
    same label share a bar, and then the smallest ones.

    Parameters
    ----------
    entries, total, left : attributes of a `pdprivacy.Budget`.
    ax : where to draw, by default on a new figure.

    Raises
    ------
    ParameterError : arguments that are not of a budget; ``ax`` is not a matplotlib axes.
    MissingExtraError : matplotlib is not installed.
    """
    spent = _spent(entries, total, left)
    few = _grouped(spent.rows, MOST_ROWS)
    canvas = Canvas.of(ax, (6.4, 1.6 + 0.27 * (len(few) + 1)), grid="x")
    align = canvas.entitle("Privacy budget", _notes(spent, few))
    room = int(canvas.height / SMALL) - 1
    if room < len(few):
        few = _grouped(spent.rows, max(room, 1))
    _bars(canvas.ax, few, spent)
    canvas.settle()
    letters = canvas.letters(0.42, 12)
    labels = [printable(row.label, letters) for row in few]
    canvas.rows([*labels, "left"] if spent.is_part else labels)
    canvas.ax.tick_params(axis="y", length=0)
    canvas.ax.set_xlabel(spent.unit, fontsize=canvas.points)
    align()
    canvas.scale(0, spent.end * 1.02)
    _write(canvas, few, spent)
    align()
    drawn: Axes = canvas.ax
    return drawn


@dataclass(frozen=True)
class SpentBars:
    """What was spent and is left, in one unit; ``is_part``: whether both are parts of the cap."""

    rows: list[SpentBar]
    unit: str
    cap: float
    left: float
    is_part: bool
    said: list[str]

    @property
    def sum(self) -> float:
        """The total cost of all charges."""
        return float(sum(row.amount for row in self.rows))

    @property
    def end(self) -> float:
        """The end of the axis."""
        return (self.cap if self.is_part else self.sum) or 1.0


def _spent(entries: pd.DataFrame, total: Loss, left: tuple[float, float]) -> SpentBars:
    """Return the charges in the unit that adds up to the cap, or in rho."""
    needed = {"release", "epsilon", "delta", "rho"}
    if not isinstance(entries, pd.DataFrame) or not needed <= set(entries.columns):
        raise ParameterError("'entries' must be those of a budget.", "draw_budget(budget.entries, ...).")
    if not isinstance(total, Pure | Approx | ZCDP):
        raise ParameterError(
            f"'total' must be the cap of a budget (got {got(total)}).", "total=budget.total."
        )
    try:
        left_amount, left_delta = (float(one) for one in left)
    except (TypeError, ValueError):
        raise ParameterError(f"'left' must be two numbers (got {got(left)}).", "left=budget.left.") from None
    in_rho = isinstance(total, ZCDP)
    cap = float(total.rho if isinstance(total, ZCDP) else total.epsilon)
    counted = entries["rho"].notna().any()
    amounts = entries["rho" if in_rho or counted else "epsilon"].fillna(0.0).to_numpy(dtype=np.float64)
    named = "rho" if in_rho else "epsilon"
    is_part = in_rho or not (counted or abs(cap - amounts.sum() - left_amount) > 1e-6 * cap)
    charges = many(len(amounts), "charge")
    said = [f"total {named} {cost(cap)}, left {left_amount:.6g}; {charges}"]
    if not is_part:
        said = [f"total epsilon {cost(cap)}; left: epsilon {left_amount:.6g} of one more release; {charges}"]
    if not isinstance(total, ZCDP) and total.delta:
        said.append(f"delta: total {cost(float(total.delta))}, left {left_delta:.6g}")
    rows = [
        SpentBar(printable(label, 100), one)
        for label, one in zip(entries["release"], amounts.tolist(), strict=True)
    ]
    unit = named if is_part or not counted else "rho, which the accounting of this budget counts"
    return SpentBars(rows, unit, cap, left_amount, is_part, said)


def _grouped(rows: Sequence[SpentBar], most: int) -> list[SpentBar]:
    """Return at most ``most`` rows: charges with the same label together, then the smallest ones."""
    if len(rows) <= most:
        return list(rows)
    found: dict[str, SpentBar] = {}
    for row in rows:
        before = found.get(row.label, SpentBar(row.label, 0.0, 0))
        found[row.label] = SpentBar(row.label, before.amount + row.amount, before.charges + 1)
    joined = [
        row if row.charges == 1 else SpentBar(f"{row.charges} × {row.label}", row.amount, row.charges)
        for row in found.values()
    ]
    if len(joined) <= most:
        return joined
    order = np.argsort([-row.amount for row in joined], kind="stable")
    large, rest = sorted(order[: most - 1].tolist()), order[most - 1 :]
    charges = sum(joined[place].charges for place in rest)
    others = SpentBar(f"{charges} others", sum(joined[place].amount for place in rest), charges)
    return [*(joined[place] for place in large), others]


def _notes(spent: SpentBars, few: Sequence[SpentBar]) -> list[str]:
    """Return the lines under the title."""
    grouped = any(row.charges > 1 for row in few)
    return [*spent.said, *(["pale: several charges together"] if grouped else [])]


def _starts(few: Sequence[SpentBar]) -> list[float]:
    """Return where each bar begins, and where the last one ends."""
    return [0.0, *np.cumsum([row.amount for row in few]).tolist()]


def _bars(ax: Any, few: Sequence[SpentBar], spent: SpentBars) -> None:
    """Draw the bars one below the other, and what is left up to the cap."""
    starts = _starts(few)
    for place, (row, start) in enumerate(zip(few, starts, strict=False)):
        colour = COLOUR if row.charges == 1 else GROUPED
        ax.barh(
            place, row.amount, 0.7, left=start, facecolor=colour, edgecolor=COLOUR, linewidth=0.6, zorder=2
        )
    if spent.is_part:
        ax.barh(
            len(few), spent.left, 0.7, left=spent.cap - spent.left, facecolor=LEFT, edgecolor="0.4",
            hatch="///", linewidth=0.8, zorder=2,
        )  # fmt: skip
        ax.axvline(spent.cap, color="black", linewidth=1.2, zorder=3)
    rows = len(few) + spent.is_part
    ax.set_ylim(max(rows, 1) - 0.4, -0.6)
    ax.set_xlim(0, spent.end * 1.02)


def _write(canvas: Canvas, few: Sequence[SpentBar], spent: SpentBars) -> None:
    """Write the amounts beside their bars if there is room."""
    size = 0.95 * canvas.points
    bars = [(start, start + row.amount, row.amount) for row, start in zip(few, _starts(few), strict=False)]
    if spent.is_part:
        bars.append((spent.cap - spent.left, spent.cap, spent.left))
    edge = canvas.pixel(spent.end, 0)[0]
    for place, (start, end, amount) in enumerate(bars):
        text = f"{amount:.6g}"
        wide = canvas.size_of(text, size)[0] + 6 * canvas.dot
        at, side, shift, shade = end, "left", 4, "0.2"
        if canvas.pixel(end, 0)[0] + wide > edge:
            side, shift = "right", -4
            if canvas.pixel(start, 0)[0] - wide > canvas.ax.bbox.x0:
                at = start
            else:
                shade = "white" if place < len(few) and few[place].charges == 1 else "black"
        written = canvas.write(text, (at, place), (shift, 0), size=size, color=shade, ha=side, zorder=4)
        if shade == "black":
            written.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
