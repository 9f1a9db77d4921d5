"""Plots of plans: the error of a release against epsilon, by bounding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pdprivacy.errors import MetadataError, ParameterError
from pdprivacy.show.numbers import many, plain
from pdprivacy.show.plots.canvas import (
    axes_of,
    below_each_other,
    entitle,
    linear_ticks,
    log_axis,
    log_ticks,
    points,
    settle,
    upright,
)
from pdprivacy.show.plots.cube import cut, label_of, records_text
from pdprivacy.show.view import Floats, mechanism_text, title_of

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
    if list(plan.index.names[:2]) != ["epsilon", "bounding"] or not {"bias", "rmse"} <= set(plan.columns):
        raise _altered(wanted)
    try:
        numbers = plan[["rmse", "bias"]].to_numpy(dtype=np.float64)
        epsilon = plan.index.get_level_values(0).to_numpy(dtype=np.float64)
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
            found[key] = (name, many + 1, by_bounding)
    if not found:
        raise _altered("a row must hold numbers")
    return [Curves(name + f" and {many - 1} more" * (many > 1), each) for name, many, each in found.values()]


def _altered(wanted: str) -> MetadataError:
    return MetadataError(
        f"The frame is marked as a plan, but its rows or columns were changed: {wanted}.",
        "private.dp.plan.mean(...).dp.plot(), or a choice of its rows.",
    )


def draw_plan(plan: pd.DataFrame, facts: Mapping[str, Any], ax: Axes | None) -> Any:
    """Draw root mean squared error and bias against epsilon, a line per bounding, number by number."""
    curves = curves_of(plan)
    if len(curves) > MOST_NUMBERS:
        raise MetadataError(
            f"The plan has {len(curves)} distinct numbers, and a picture holds {MOST_NUMBERS}.",
            'plan.xs("age", level=2).dp.plot() for one of them.',
        )
    asked = [(curve, what) for curve in curves for what in ([RMSE, BIAS] if curve.biased else [RMSE])]
    on = axes_of(ax, (6.4, 1.6 + 1.7 * len(asked)), grid="")
    title = title_of(str(facts.get("statistic")), facts.get("columns") or [], (), facts.get("normalize"))
    align = entitle(on, f"Plan: {title}", _notes(facts, curves))
    if (on.bbox.height * 72 / on.figure.dpi) / len(asked) < LEAST:
        raise ParameterError(
            f"'ax' has no room for {len(asked)} axes, one below the other.",
            "no ax, for a figure of the right height; or one number: plan.xs(label, level=2).",
        )
    parts = below_each_other(on, [1.0] * len(asked), titled=True)
    handles: dict[str, Any] = {}
    for part, (curve, what) in zip(parts, asked, strict=True):
        name = f"{what} of {curve.name}" if len(curves) > 1 else what
        handles |= _draw(part, curve.drawn(what), name, what == RMSE)
    settle(on)
    _legend(on, parts[-1], handles)
    align()
    settle(on)
    return on


def _notes(facts: Mapping[str, Any], curves: Sequence[Curves]) -> list[str]:
    """Return the noise, the records, and what was assumed of them."""
    filters = " and ".join(map(str, facts.get("filters") or []))
    notes = [mechanism_text(str(facts.get("mechanism")))]
    notes.append(records_text(filters, ", ".join(map(str, facts.get("lineage") or []))))
    rows, at = facts.get("rows"), facts.get("at")
    assumed = [many(rows, "record")] if isinstance(rows, int) else []
    assumed += [f"a value of {plain(at)}"] if isinstance(at, int | float) else []
    notes.append(f"assumed: {' and '.join(assumed)}" if assumed else "")
    if not any(curve.biased for curve in curves):
        notes.append("there is no bias")
    elif not all(curve.biased for curve in curves):
        notes.append("numbers without a bias have no plot of it")
    return [cut(note, 200) for note in notes if note]


def _draw(ax: Any, drawn: Mapping[str, tuple[Floats, Floats]], name: str, positive: bool) -> dict[str, Any]:
    """Draw the lines of one error; return the handles of the legend."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="0.92")
    ax.set_axisbelow(True)
    ax.set_title(name, loc="left", fontsize=points(ax), pad=2, parse_math=False)
    handles = {}
    for kind, (epsilon, error) in drawn.items():
        colour, dashes, marker = STYLES[kind]
        (handles[kind],) = ax.plot(
            epsilon, error, color=colour, linestyle=dashes, marker=marker, markersize=4, linewidth=1.6
        )
    every = np.unique(np.concatenate([epsilon for epsilon, _ in drawn.values()]))
    log_axis(ax, every)
    if len(every) > 1:
        margin = (every[-1] / every[0]) ** 0.03
        ax.set_xlim(every[0] / margin, every[-1] * margin)
    ax.tick_params(which="both", labelsize=0.9 * points(ax), length=2.5, pad=2)
    errors = np.concatenate([error for _, error in drawn.values()])
    _heights(ax, errors[np.isfinite(errors)], positive)
    return handles


def _heights(ax: Any, errors: Floats, positive: bool) -> None:
    """Set a log axis if root mean squared errors differ by more than a factor of ten, else one with 0."""
    most = max(int(ax.bbox.height * 72 / ax.figure.dpi / (2.2 * points(ax))), 2)
    low, high = float(errors.min(initial=0)), float(errors.max(initial=0))
    least = float(errors.min(initial=np.inf))
    if positive and 0 < 10 * least < high:
        ax.set_yscale("log")
        ax.set_ylim(least / 1.2, high * 1.2)
        upright(ax, log_ticks(least, high, most))
        return
    margin = 0.08 * (high - low) or 1.0
    ax.set_ylim(low if positive else low - margin, high + margin)
    upright(ax, linear_ticks(low, high, most))
    if not positive:
        ax.axhline(0, color="0.5", linewidth=0.8, zorder=1)


def _legend(ax: Any, last: Any, handles: Mapping[str, Any]) -> None:
    """Write the legend below all axes."""
    from matplotlib.transforms import offset_copy

    last.set_xlabel("epsilon (less noise to the right)", fontsize=points(ax))
    names = [f"bounding {kind}" if kind != "none" else "no bounding" for kind in handles]
    below = offset_copy(ax.transAxes, ax.figure, y=-14 - 2.2 * points(ax), units="points")
    for columns in range(len(names), 0, -1):
        legend = ax.legend(
            list(handles.values()), names, ncols=columns, loc="upper left", bbox_to_anchor=(0, 0),
            bbox_transform=below, fontsize=points(ax), frameon=False, borderaxespad=0, handlelength=2.8,
            columnspacing=1.2,
        )  # fmt: skip
        if legend.get_window_extent().width <= ax.bbox.width:
            break
