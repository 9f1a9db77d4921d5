"""Plots of a budget, what each release cost and what is left; and of a plan, its error against epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from pdprivacy.core.privacy import ZCDP, Approx, Loss, Pure
from pdprivacy.errors import MetadataError, NoPictureError, ParameterError, got
from pdprivacy.releases.view import mechanism_text, records_text, title_of, title_of_charge
from pdprivacy.show.plots.canvas import Canvas, changed, linear_ticks, log_ticks
from pdprivacy.show.plots.charts import label_of
from pdprivacy.text.numbers import cost, many, plain, printable, remaining
from pdprivacy.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Number: TypeAlias = Fraction | float

CHARGED, GROUPED = "#0072B2", "#56B4E9"
LEFT = {"facecolor": "white", "edgecolor": "0.4", "hatch": "///", "linewidth": 0.8}
MOST_ROWS = 16
SMALL = 8.0  # points of height that a row needs at least


@dataclass(frozen=True)
class SpentBar:
    """One bar: its label, its amount, and the number of charges in it, 0 for what is left."""

    label: str
    amount: float
    charges: int = 1


def draw_budget(
    entries: pd.DataFrame,
    total: Loss,
    left: tuple[Number, Number],
    ax: Axes | None = None,
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
    few = _merged_rows(spent.rows, MOST_ROWS)
    canvas = Canvas.of(ax, (6.4, 1.6 + 0.27 * (len(few) + 1)), grid="x")
    grouped = any(row.charges > 1 for row in few)
    align = canvas.entitle("Privacy budget", [*spent.said, "pale: several charges together" * grouped])
    room = int(canvas.height / SMALL) - 1
    if room < len(few):
        few = _merged_rows(spent.rows, max(room, 1))
    placed = _bars_with_starts(few, spent)
    _bars(canvas.ax, placed, spent)
    canvas.lay_out()
    letters = canvas.letters(0.42, 12)
    canvas.rows([printable(row.label, letters) for row, _ in placed])
    canvas.ax.tick_params(axis="y", length=0)
    canvas.ax.set_xlabel(spent.unit, fontsize=canvas.points)
    align()
    canvas.scale(0, spent.end * 1.02)
    _write(canvas, placed, spent)
    align()
    drawn: Axes = canvas.ax
    return drawn


@dataclass(frozen=True)
class SpentBars:
    """Bars of the spent and the remaining budget, in one unit; ``is_part``: both are parts of the cap."""

    rows: list[SpentBar]
    unit: str
    cap: float
    left: Number
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


def _spent(entries: pd.DataFrame, total: Loss, left: tuple[Number, Number]) -> SpentBars:
    """Return the charges in the unit that adds up to the cap, or in rho."""
    needed = {"release", "epsilon", "delta", "rho"}
    if not isinstance(entries, pd.DataFrame) or not needed <= set(entries.columns):
        raise ParameterError("'entries' must be those of a budget.", "draw_budget(budget.entries, ...).")
    if not isinstance(total, Pure | Approx | ZCDP):
        raise ParameterError(
            f"'total' must be the cap of a budget (got {got(total)}).", "total=budget.total."
        )
    try:
        left_amount, left_delta = (
            amount if isinstance(amount, Fraction) else float(amount) for amount in left
        )
    except (TypeError, ValueError):
        raise ParameterError(f"'left' must be two numbers (got {got(left)}).", "left=budget.left.") from None
    in_rho = isinstance(total, ZCDP)
    cap = total.rho if isinstance(total, ZCDP) else total.epsilon
    counted = entries["rho"].notna().any()
    amounts = entries["rho" if in_rho or counted else "epsilon"].fillna(0.0).to_numpy(dtype=np.float64)
    named = "rho" if in_rho else "epsilon"
    is_part = in_rho or not (counted or abs(float(cap - left_amount) - amounts.sum()) > 1e-6 * cap)
    charges = many(len(amounts), "charge")
    rest = remaining(left_amount)
    notes = [f"total {named} {cost(cap)}, left {rest}; {charges}"]
    if not is_part:
        notes = [f"total epsilon {cost(cap)}; left: epsilon {rest} of one more release; {charges}"]
    if not isinstance(total, ZCDP) and total.delta:
        notes.append(f"delta: total {cost(total.delta)}, left {remaining(left_delta)}")
    rows = [
        SpentBar(printable(title_of_charge(str(label)), 100), amount)
        for label, amount in zip(entries["release"], amounts.tolist(), strict=True)
    ]
    unit = named if is_part or not counted else "rho, which the accounting of this budget counts"
    return SpentBars(rows, unit, float(cap), left_amount, is_part, notes)


def _merged_rows(rows: Sequence[SpentBar], most: int) -> list[SpentBar]:
    """Return at most ``most`` rows: charges with the same label together, then the smallest ones."""
    if len(rows) <= most:
        return list(rows)
    amounts: dict[str, list[float]] = {}
    for row in rows:
        amounts.setdefault(row.label, []).append(row.amount)
    joined = [
        SpentBar(f"{len(each)} × {label}" if len(each) > 1 else label, _sum(each), len(each))
        for label, each in amounts.items()
    ]
    if len(joined) <= most:
        return joined
    order = np.argsort([-row.amount for row in joined], kind="stable")
    large, rest = sorted(order[: most - 1].tolist()), order[most - 1 :]
    charges = sum(joined[row].charges for row in rest)
    others = SpentBar(f"{charges} others", _sum([joined[row].amount for row in rest]), charges)
    return [*(joined[row] for row in large), others]


def _sum(amounts: Sequence[float]) -> float:
    """Return the sum of numbers as they are printed: 0.1 and 0.2 make 0.3."""
    return float(sum(Decimal(repr(amount)) for amount in amounts))


def _bars_with_starts(few: Sequence[SpentBar], spent: SpentBars) -> list[tuple[SpentBar, float]]:
    """Return each bar and where it begins: where the one before ends; last, what is left up to the cap."""
    starts = np.cumsum([0.0, *(row.amount for row in few)]).tolist()
    placed, left = list(zip(few, starts, strict=False)), float(spent.left)
    return [*placed, (SpentBar("left", left, 0), spent.cap - left)] if spent.is_part else placed


def _bars(ax: Any, placed: Sequence[tuple[SpentBar, float]], spent: SpentBars) -> None:
    """Draw the bars one below the other."""
    for position, (row, start) in enumerate(placed):
        colour = GROUPED if row.charges > 1 else CHARGED
        charged = {"facecolor": colour, "edgecolor": CHARGED, "linewidth": 0.6}
        ax.barh(position, row.amount, 0.7, left=start, zorder=2, **(charged if row.charges else LEFT))
    if spent.is_part:
        ax.axvline(spent.cap, color="black", linewidth=1.2, zorder=3)
    ax.set_ylim(max(len(placed), 1) - 0.4, -0.6)
    ax.set_xlim(0, spent.end * 1.02)


def _write(canvas: Canvas, placed: Sequence[tuple[SpentBar, float]], spent: SpentBars) -> None:
    """Write the amounts beside their bars if there is room."""
    size, edge = 0.95 * canvas.points, canvas.pixel(spent.end, 0)[0]
    for position, (row, start) in enumerate(placed):
        end, text = start + row.amount, cost(row.amount) if row.charges else remaining(spent.left)
        wide = canvas.size_of(text, size)[0] + 6 * canvas.dot
        at, side, shift, shade = end, "left", 4, "0.2"
        if canvas.pixel(end, 0)[0] + wide > edge:
            side, shift = "right", -4
            if canvas.pixel(start, 0)[0] - wide > canvas.ax.bbox.x0:
                at = start
            else:
                shade = "white" if row.charges == 1 else "black"
        written = canvas.write(text, (at, position), (shift, 0), size=size, color=shade, ha=side, zorder=4)
        if shade == "black":
            written.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})


# ---------------------------------------------------------------- plans

STYLES = {
    "none": ("black", "-", "o"),
    "project": ("#E69F00", ":", "D"),
    "clamp": ("#0072B2", "--", "s"),
    "truncated": ("#D55E00", "-.", "^"),
}
ERRORS = {1: "root mean squared error", 2: "bias"}  # by their place beside epsilon
MOST_NUMBERS = 4  # that differ, each with axes of its own
LEAST = 62.0  # points of height that axes need


@dataclass(frozen=True)
class Curves:
    """A planned number: by bounding, (E,) epsilon, root mean squared error and bias."""

    name: str
    by_bounding: dict[str, tuple[Floats, Floats, Floats]]

    @property
    def biased(self) -> bool:
        """Whether there is a bias at all."""
        return any(bool((np.nan_to_num(bias) != 0).any()) for _, _, bias in self.by_bounding.values())


def curves_of(plan: pd.DataFrame) -> list[Curves]:
    """Return the distinct numbers of a plan, each named by its label.

    Raises MetadataError if the rows are not epsilon and bounding, or a column is missing.
    """
    requirement = "the index must begin with epsilon and bounding, and the columns hold 'bias' and 'rmse'"
    if "plus_minus" in plan.columns and not {"bias", "rmse"} & set(plan.columns):
        raise NoPictureError(
            "The plan holds no bias and no root mean squared error, so it has no picture.",
            "plan['plus_minus'] holds the margins of error.",
        )
    if "enough" in plan.columns:
        raise NoPictureError(
            "A plan of bounds has no picture.", "plan['enough'] says whether the rows suffice."
        )
    if "ranks" in plan.columns:
        raise NoPictureError("A plan of ranks has no picture.", "plan['ranks'] holds the ranks.")
    if list(plan.index.names[:2]) != ["epsilon", "bounding"] or not {"bias", "rmse"} <= set(plan.columns):
        raise _altered(requirement)
    try:
        table: Any = plan[["rmse", "bias"]]
        days = table / pd.Timedelta(days=1) if _of_dates(plan) else table
        numbers = days.to_numpy(dtype=np.float64)
        epsilon = plan.index.get_level_values(0).to_numpy(dtype=np.float64)
        cells = np.broadcast_to(np.asarray(plan.get("cells", 1), dtype=np.int64), len(plan))
    except (TypeError, ValueError):
        raise _altered(requirement) from None
    kinds = plan.index.get_level_values(1)
    if not len(plan) or not (np.isfinite(epsilon) & (epsilon > 0)).all() or not set(kinds) <= set(STYLES):
        raise _altered(
            "epsilon must be positive, and bounding one of 'none', 'project', 'clamp', 'truncated'"
        )
    labels = [label[2:] for label in plan.index]
    rows = pd.Series(range(len(plan))).groupby(pd.factorize(pd.Series(labels, dtype=object))[0])
    curves: dict[bytes, tuple[str, int, dict[str, tuple[Floats, Floats, Floats]]]] = {}
    for _, chosen in rows:
        positions = chosen.to_numpy()
        by_bounding = {}
        for kind in dict.fromkeys(kinds[positions]):
            own = positions[kinds[positions] == kind]
            own = own[np.argsort(epsilon[own], kind="stable")]
            by_bounding[kind] = (epsilon[own], *numbers[own].T)
        key = b"".join(part.tobytes() for each in by_bounding.values() for part in each)
        name, count, _ = curves.get(key, (label_of(labels[positions[0]]), 0, None))
        if any(bool(np.isfinite(rmse).any()) for _, rmse, _ in by_bounding.values()):
            curves[key] = (name, count + int(cells[positions[0]]), by_bounding)
    if not curves:
        raise _altered("a row must hold numbers")
    return [
        Curves(name and name + f" and {count - 1} more" * (count > 1), each)
        for name, count, each in curves.values()
    ]


def _of_dates(plan: pd.DataFrame) -> bool:
    """Return whether the errors of a plan are times."""
    return all(plan[name].dtype.kind == "m" for name in ("rmse", "bias"))


def _altered(requirement: str) -> MetadataError:
    return changed("a plan", requirement, "private.dp.plan.mean(...).dp.plot(), or a choice of its rows.")


def draw_plan(plan: pd.DataFrame, facts: Mapping[str, Any], ax: Axes | None) -> Any:
    """Draw root mean squared error and bias against epsilon, a line per bounding, number by number."""
    curves = curves_of(plan)
    if len(curves) > MOST_NUMBERS:
        raise MetadataError(
            f"The plan has {len(curves)} distinct numbers, and a picture holds {MOST_NUMBERS}.",
            'plan.xs("age", level=2).dp.plot() for one of them.',
        )
    panels = [(curve, error) for curve in curves for error in (1, 2)[: 1 + curve.biased]]
    canvas = Canvas.of(ax, (6.4, 1.6 + 1.7 * len(panels)), grid="")
    of, by = facts.get("columns") or [], facts.get("by") or []
    title = title_of(str(facts.get("statistic")), of, by, facts.get("normalize"))
    align = canvas.entitle(f"Plan: {title}", _plan_notes(facts, curves))
    if canvas.height / len(panels) < LEAST:
        raise ParameterError(
            f"'ax' has no room for {len(panels)} axes, one below the other.",
            "no ax, for a figure of the right height; or one number: plan.xs(label, level=2).",
        )
    parts = canvas.below_each_other([1.0] * len(panels), titled=True)
    handles: dict[str, Any] = {}
    for part, (curve, error) in zip(parts, panels, strict=True):
        part.frame("y")
        quantity = ERRORS[error] + (" in days" if _of_dates(plan) else "")
        part.name(f"{quantity} of {curve.name}" if len(curves) > 1 else quantity)
        handles |= _lines(part, curve, error)
    canvas.lay_out()
    parts[-1].ax.set_xlabel("epsilon (less noise to the right)", fontsize=parts[-1].points)
    names = [f"bounding {kind}" if kind != "none" else "no bounding" for kind in handles]
    canvas.legend([*handles.values()], names, (0, 0), 14 + 2.2 * canvas.points)
    align()
    canvas.lay_out()
    return canvas.ax


def _plan_notes(facts: Mapping[str, Any], curves: Sequence[Curves]) -> list[str]:
    """Return the noise, the records, and what was assumed of them."""
    rows, at = facts.get("rows"), facts.get("at")
    assumed = [many(rows, "record")] if isinstance(rows, int) else []
    assumed += [f"a value of {plain(at)}"] if isinstance(at, int | float) else []
    biased = [curve.biased for curve in curves]
    some = "numbers without a bias have no plot of it" if any(biased) else "there is no bias"
    return [
        mechanism_text(str(facts.get("mechanism"))),
        records_text(facts.get("filters") or [], facts.get("lineage") or []),
        f"assumed: {' and '.join(assumed)}" if assumed else "",
        "" if all(biased) else some,
    ]


def _lines(part: Canvas, curve: Curves, error: int) -> dict[str, Any]:
    """Draw the lines of one error; return the handles of the legend."""
    ax, handles = part.ax, {}
    for kind, drawn in curve.by_bounding.items():
        colour, dashes, marker = STYLES[kind]
        style = {"color": colour, "linestyle": dashes, "marker": marker, "markersize": 4, "linewidth": 1.6}
        (handles[kind],) = ax.plot(drawn[0], drawn[error], **style)
    every = np.unique(np.concatenate([drawn[0] for drawn in curve.by_bounding.values()]))
    part.log_epsilon(every)
    if len(every) > 1:
        margin = (every[-1] / every[0]) ** 0.03
        ax.set_xlim(every[0] / margin, every[-1] * margin)
    ax.tick_params(which="both", labelsize=0.9 * part.points, length=2.5, pad=2)
    errors = np.concatenate([drawn[error] for drawn in curve.by_bounding.values()])
    _heights(part, errors[np.isfinite(errors)], positive=error == 1)
    return handles


def _heights(part: Canvas, errors: Floats, positive: bool) -> None:
    """Set a log axis if root mean squared errors differ by more than a factor of ten, else one with 0."""
    most = max(int(part.height / (2.2 * part.points)), 2)
    low, high = float(errors.min(initial=0)), float(errors.max(initial=0))
    least = float(errors.min(initial=np.inf))
    if positive and 0 < 10 * least < high:
        part.ax.set_yscale("log")
        part.ax.set_ylim(least / 1.2, high * 1.2)
        part.upright(log_ticks(least, high, most))
        return
    margin = 0.08 * (high - low) or 1.0
    part.ax.set_ylim(low if positive else low - margin, high + margin)
    part.upright(linear_ticks(low, high, most))
    if not positive:
        part.ax.axhline(0, color="0.5", linewidth=0.8, zorder=1)
