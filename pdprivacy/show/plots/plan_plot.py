"""Plots of plans: the error of a release against epsilon, by bounding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pdprivacy.errors import MetadataError, ParameterError
from pdprivacy.show.numbers import many, plain
from pdprivacy.show.plots.canvas import Canvas, changed, linear_ticks, log_ticks
from pdprivacy.show.plots.cube import label_of
from pdprivacy.show.view import Floats, mechanism_text, records_text, title_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = {"none": ("black", "-", "o"), "clamp": ("#0072B2", "--", "s"), "truncated": ("#D55E00", "-.", "^")}
RMSE, BIAS = "root mean squared error", "bias"
MOST_NUMBERS = 4  # that differ, each with axes of its own
LEAST = 62.0  # points of height that axes need


@dataclass(frozen=True)
class Curves:
    """A planned number: by bounding, (E,) epsilon, root mean squared error and bias."""

    name: str
    by_bounding: dict[str, tuple[Floats, Floats, Floats]]

    def drawn(self, what: str) -> dict[str, tuple[Floats, Floats]]:
        """Return epsilon and one of the errors, by bounding."""
        place = 1 if what == RMSE else 2
        return {kind: (each[0], each[place]) for kind, each in self.by_bounding.items()}

    @property
    def biased(self) -> bool:
        """Whether there is a bias at all."""
        return any(bool((np.nan_to_num(bias) != 0).any()) for _, _, bias in self.by_bounding.values())


def curves_of(plan: pd.DataFrame) -> list[Curves]:
    """Return the distinct numbers of a plan, each named by its label.

    Raises MetadataError if the rows are not epsilon and bounding, or a column is missing.
    """
    wanted = "the index must begin with epsilon and bounding, and the columns hold 'bias' and 'rmse'"
    if "plus_minus" in plan.columns and not {"bias", "rmse"} & set(plan.columns):
        raise MetadataError(
            "The plan holds no bias and no root mean squared error, so it has no picture.",
            "plan['plus_minus'] holds the margins of error.",
        )
    if list(plan.index.names[:2]) != ["epsilon", "bounding"] or not {"bias", "rmse"} <= set(plan.columns):
        raise _altered(wanted)
    try:
        table: Any = plan[["rmse", "bias"]]
        days = table / pd.Timedelta(days=1) if _of_dates(plan) else table
        numbers = days.to_numpy(dtype=np.float64)
        epsilon = plan.index.get_level_values(0).to_numpy(dtype=np.float64)
        cells = np.broadcast_to(np.asarray(plan.get("cells", 1), dtype=np.int64), len(plan))
    except (TypeError, ValueError):
        raise _altered(wanted) from None
    kinds = plan.index.get_level_values(1)
    if not len(plan) or not (np.isfinite(epsilon) & (epsilon > 0)).all() or not set(kinds) <= set(STYLES):
        raise _altered("epsilon must be positive, and bounding one of 'none', 'clamp', 'truncated'")
    labels = [label[2:] for label in plan.index]
    rows = pd.Series(range(len(plan))).groupby(pd.factorize(pd.Series(labels, dtype=object))[0])
    found: dict[bytes, tuple[str, int, dict[str, tuple[Floats, Floats, Floats]]]] = {}
    for _, chosen in rows:
        places = chosen.to_numpy()
        by_bounding = {}
        for kind in dict.fromkeys(kinds[places]):
            own = places[kinds[places] == kind]
            own = own[np.argsort(epsilon[own], kind="stable")]
            by_bounding[kind] = (epsilon[own], *numbers[own].T)
        key = b"".join(part.tobytes() for each in by_bounding.values() for part in each)
        name, many, _ = found.get(key, (label_of(labels[places[0]]), 0, None))
        if any(bool(np.isfinite(rmse).any()) for _, rmse, _ in by_bounding.values()):
            found[key] = (name, many + int(cells[places[0]]), by_bounding)
    if not found:
        raise _altered("a row must hold numbers")
    return [
        Curves(name and name + f" and {many - 1} more" * (many > 1), each)
        for name, many, each in found.values()
    ]


def _of_dates(plan: pd.DataFrame) -> bool:
    """Whether the errors of a plan are times."""
    return all(plan[name].dtype.kind == "m" for name in ("rmse", "bias"))


def _altered(wanted: str) -> MetadataError:
    return changed("a plan", wanted, "private.dp.plan.mean(...).dp.plot(), or a choice of its rows.")


def draw_plan(plan: pd.DataFrame, facts: Mapping[str, Any], ax: Axes | None) -> Any:
    """Draw root mean squared error and bias against epsilon, a line per bounding, number by number."""
    curves = curves_of(plan)
    if len(curves) > MOST_NUMBERS:
        raise MetadataError(
            f"The plan has {len(curves)} distinct numbers, and a picture holds {MOST_NUMBERS}.",
            'plan.xs("age", level=2).dp.plot() for one of them.',
        )
    asked = [(curve, what) for curve in curves for what in ([RMSE, BIAS] if curve.biased else [RMSE])]
    canvas = Canvas.of(ax, (6.4, 1.6 + 1.7 * len(asked)), grid="")
    of, by = facts.get("columns") or [], facts.get("by") or []
    title = title_of(str(facts.get("statistic")), of, by, facts.get("normalize"))
    align = canvas.entitle(f"Plan: {title}", _notes(facts, curves))
    if canvas.height / len(asked) < LEAST:
        raise ParameterError(
            f"'ax' has no room for {len(asked)} axes, one below the other.",
            "no ax, for a figure of the right height; or one number: plan.xs(label, level=2).",
        )
    parts = canvas.below_each_other([1.0] * len(asked), titled=True)
    handles: dict[str, Any] = {}
    for part, (curve, what) in zip(parts, asked, strict=True):
        part.frame("y")
        unit = " in days" if _of_dates(plan) else ""
        part.name(f"{what}{unit} of {curve.name}" if len(curves) > 1 else what + unit)
        handles |= _draw(part, curve.drawn(what), what == RMSE)
    canvas.settle()
    parts[-1].ax.set_xlabel("epsilon (less noise to the right)", fontsize=parts[-1].points)
    names = [f"bounding {kind}" if kind != "none" else "no bounding" for kind in handles]
    canvas.legend([*handles.values()], names, (0, 0), 14 + 2.2 * canvas.points)
    align()
    canvas.settle()
    return canvas.ax


def _notes(facts: Mapping[str, Any], curves: Sequence[Curves]) -> list[str]:
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


def _draw(part: Canvas, drawn: Mapping[str, tuple[Floats, Floats]], positive: bool) -> dict[str, Any]:
    """Draw the lines of one error; return the handles of the legend."""
    ax, handles = part.ax, {}
    for kind, (epsilon, error) in drawn.items():
        colour, dashes, marker = STYLES[kind]
        (handles[kind],) = ax.plot(
            epsilon, error, color=colour, linestyle=dashes, marker=marker, markersize=4, linewidth=1.6
        )
    every = np.unique(np.concatenate([epsilon for epsilon, _ in drawn.values()]))
    part.log_epsilon(every)
    if len(every) > 1:
        margin = (every[-1] / every[0]) ** 0.03
        ax.set_xlim(every[0] / margin, every[-1] * margin)
    ax.tick_params(which="both", labelsize=0.9 * part.points, length=2.5, pad=2)
    errors = np.concatenate([error for _, error in drawn.values()])
    _heights(part, errors[np.isfinite(errors)], positive)
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
