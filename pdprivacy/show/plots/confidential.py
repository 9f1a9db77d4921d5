"""Plots of confidential frames: risk against epsilon, distances of marginals, omission, class sizes.

Each is marked as made of exact counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from pdprivacy.errors import MetadataError
from pdprivacy.releases.view import mechanism_text, title_of
from pdprivacy.show.plots.canvas import MARK, ORDERS, POINTS, Canvas, changed, round_numbers
from pdprivacy.text.numbers import cost, percent, short
from pdprivacy.types import Floats, Mask

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Name: TypeAlias = tuple[float, str, str]  # of a horizontal line: its height, a text, its colour

EPSILON = "epsilon of the table (less noise to the right)"
AVERAGES = {"cells": ("#0072B2", "-"), "records": ("#D55E00", "-.")}


def _altered(facts: Mapping[str, Any], requirement: str) -> MetadataError:
    kind = facts["confidential"]
    return changed(f"'{kind}'", requirement, f"{call_of(kind)}, before anything is renamed.")


def _numbers(frame: pd.DataFrame, facts: Mapping[str, Any]) -> tuple[Floats, Floats, Floats]:
    """Return (E,) epsilon, ascending, (E, C) numbers, and (2, C) numbers at epsilon 0 and inf, or NaN."""
    try:
        epsilon = frame.index.to_numpy(dtype=np.float64)
        values = frame.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise _altered(facts, "the index must hold epsilon, and the columns numbers") from None
    ends = np.full((2, values.shape[1]), np.nan)
    for row, end in enumerate((0.0, np.inf)):
        if (epsilon == end).any():
            ends[row] = values[epsilon == end][0]
    inner = np.flatnonzero((epsilon > 0) & np.isfinite(epsilon))
    inner = inner[np.argsort(epsilon[inner], kind="stable")]
    if not inner.size:
        raise _altered(facts, "the index must hold a positive, finite epsilon")
    if not np.isfinite(values[inner]).any(axis=0).all():
        raise _altered(facts, "each column must hold a number at a positive, finite epsilon")
    return epsilon[inner], values[inner], ends


def _risk_curve(frame: pd.DataFrame, facts: Mapping[str, Any], ax: Axes | None) -> Any:
    names = list(frame.columns)
    if not names or len(set(names)) < len(names) or not set(names) <= set(AVERAGES):
        raise _altered(facts, "the columns must be 'cells', 'records', or one of them")
    epsilon, risks, ends = _numbers(frame, facts)
    canvas = Canvas.of(ax)
    on = canvas.ax
    handles = []
    limits: tuple[list[Name], list[Name]] = ([], [])
    for name, risk, end in zip(names, risks.T, ends.T, strict=True):
        colour, dashes = AVERAGES[name]
        handles += on.plot(
            epsilon,
            risk,
            color=colour,
            linestyle=dashes,
            marker=_single_point_marker(epsilon),
            linewidth=2.2,
            zorder=3,
        )
        for lines, limit, value in zip(limits, ("0", "∞"), end, strict=True):
            if np.isfinite(value):
                on.axhline(value, color=colour, linestyle=(0, (5, 4)), linewidth=0.9, zorder=2)
                lines.append((float(value), f"as epsilon → {limit}: {percent(value)} of {name}", colour))
    canvas.log_epsilon(epsilon)
    canvas.percent()
    words = [facts.get("measure"), facts.get("mechanism") and mechanism_text(str(facts["mechanism"]))]
    words += ["partial"] if facts.get("partial") else []
    words += ["published form"] if facts.get("method") == "published" else []
    attack = facts.get("attack", "homogeneity")
    quantity = "sum of disclosure risks" if facts.get("overall") == "sum" else "disclosure risk"
    details = ", ".join(str(word).replace("_", " ") for word in words if word)
    canvas.label(EPSILON, f"{quantity} by {attack} attack" + (f"\n({details})" if details else ""))
    top = float(np.nanmax(np.concatenate([risks, ends])))
    taken = _head(canvas, top, handles, [f"average over {name}" for name in names], rows=1.1)
    for lines, side in zip(limits, ("left", "right"), strict=True):
        _name_lines(canvas, lines, side, taken)
    return on


def _single_point_marker(epsilon: Floats) -> str:
    """Return a marker for a single point, which has no line."""
    return "o" if len(epsilon) == 1 else ""


def _utility(frame: pd.DataFrame, facts: Mapping[str, Any], ax: Axes | None) -> Any:
    expected_columns = "the index must be (order, marginal), and the columns 'tvd' by epsilon"
    if (
        frame.index.nlevels != 2
        or frame.columns.nlevels != 2
        or "tvd" not in frame.columns.get_level_values(0)
    ):
        raise _altered(facts, expected_columns)
    try:
        epsilon = frame["tvd"].columns.to_numpy(dtype=np.float64)
        distances = frame["tvd"].to_numpy(dtype=np.float64)[:, np.argsort(epsilon)]
        order = frame.index.get_level_values(0).to_numpy(dtype=np.int64)
    except (TypeError, ValueError):
        raise _altered(facts, expected_columns) from None
    if not np.isfinite(distances).any():
        raise _altered(facts, expected_columns)
    canvas = Canvas.of(ax)
    on = canvas.ax
    orders = np.unique(order)
    width = 0.8 / len(orders)
    handles = []
    for position, order_of_margin in enumerate(orders):
        colour, _, _, hatch = ORDERS[position % len(ORDERS)]
        drawn = on.boxplot(
            [column[np.isfinite(column)] for column in distances[order == order_of_margin].T],
            positions=np.arange(len(epsilon)) + (position - (len(orders) - 1) / 2) * width,
            widths=0.8 * width, manage_ticks=False, patch_artist=True,
            boxprops={"facecolor": colour, "hatch": hatch, "edgecolor": "black", "linewidth": 0.8},
            medianprops={"color": "black", "linewidth": 1.6},
            flierprops={"marker": "o", "markersize": 3, "markerfacecolor": colour, "markeredgecolor": "0.3"},
        )  # fmt: skip
        handles.append(drawn["boxes"][0])
    on.set_xticks(np.arange(len(epsilon)), [short(value) for value in np.sort(epsilon)])
    on.set_xlim(-0.5, len(epsilon) - 0.5)
    canvas.label(EPSILON, "expected total variation distance")
    _head(
        canvas,
        float(np.nanmax(distances)),
        handles,
        [f"{order_of_margin}-way marginals" for order_of_margin in orders],
        rows=0.8,
    )
    return on


def _tradeoff(frame: pd.DataFrame, facts: Mapping[str, Any], ax: Axes | None) -> Any:
    distances = [name for name in frame.columns if str(name).startswith("tvd ")]
    if not distances or sorted(map(str, frame.columns)) != sorted(["risk", "recommended", *distances]):
        raise _altered(facts, "the columns must be 'risk', 'tvd 1-way' and the like, 'recommended'")
    epsilon, numbers, _ = _numbers(frame[["risk", *distances, "recommended"]], facts)
    dotted: list[Name] = [
        (float(facts[name]), f"{name} = {short(facts[name])}", "0.25")
        for name in ("max_risk", "max_tvd")
        if isinstance(facts.get(name), int | float) and np.isfinite(facts[name])
    ]
    canvas = Canvas.of(ax)
    on = canvas.ax
    handles = on.plot(
        epsilon, numbers[:, 0], color="black", marker=_single_point_marker(epsilon), linewidth=2.4, zorder=3
    )
    for position, distance in enumerate(numbers[:, 1:-1].T):
        colour, dashes, marker, _ = ORDERS[position % len(ORDERS)]
        handles += on.plot(
            epsilon, distance, color=colour, linestyle=dashes, marker=marker, markersize=4, linewidth=1.6
        )
    for value, _, colour in dotted:
        on.axhline(value, color=colour, linestyle=":", linewidth=1.1, zorder=2)
    canvas.log_epsilon(epsilon)
    canvas.label(EPSILON, "risk, expected total variation distance (tvd)")
    top = max([float(np.nanmax(numbers[:, :-1])), *(value for value, *_ in dotted)])
    taken = _head(canvas, top, handles, ["risk", *distances], rows=2.5)
    taken.append(_recommend(canvas, epsilon, numbers[:, -1] == 1, top))
    _name_lines(canvas, dotted, "right", taken)
    return on


def _recommend(canvas: Canvas, epsilon: Floats, recommended: Mask, top: float) -> Any:
    """Shade the recommended rows and label the widest run; return the box of the label."""
    ax = canvas.ax
    ends = np.flatnonzero(np.diff(np.concatenate([[False], recommended, [False]]).astype(int)))
    runs = [(epsilon[first], epsilon[end - 1]) for first, end in zip(ends[::2], ends[1::2], strict=True)]
    high = ax.get_ylim()[1]
    for lower, upper in runs:
        linewidth = 5 if lower == upper else 0  # points; a span of no width would not be seen
        ax.axvspan(lower, upper, 0, top / high, color="#56B4E9", alpha=0.3, linewidth=linewidth, zorder=1)
    text, at = "recommended: none\n(no epsilon here meets both limits)", 0.5
    if runs:
        lower, upper = max(runs, key=lambda run: run[1] / run[0])
        text, middle = "recommended", canvas.pixel((lower * upper) ** 0.5, top)
        at = ax.transAxes.inverted().transform(middle)[0]
    side = "left" if at < 0.15 else "right" if at > 0.85 else "center"
    over = ax.get_yaxis_transform()
    named = canvas.write(text, (at, top), (0, 2), over=over, ha=side, va="bottom", color="#0072B2")
    named.set_in_layout(False)
    return named.get_window_extent()


def _comparison(frame: pd.DataFrame, facts: Mapping[str, Any], names: list[str]) -> tuple[Floats, Floats]:
    """Return (R, K) epsilon and the arguments of an omission, ascending, and (R, 5) errors."""
    heads = ["error", "lower", "upper", "without", "without_upper"]
    requirement = f"the index must be (epsilon, {', '.join(names)}), and the columns hold {', '.join(heads)}"
    if list(frame.index.names) != ["epsilon", *names] or not set(heads) <= set(frame.columns):
        raise _altered(facts, requirement)
    try:
        keys = np.array(frame.index.to_list(), dtype=np.float64)
        values = frame[heads].to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise _altered(facts, requirement) from None
    if not np.isfinite(values).all(axis=1).any():
        raise _altered(facts, "a row must hold numbers")
    order = np.lexsort(keys.T[::-1])
    return keys[order], values[order]


def _compared(frame: pd.DataFrame, facts: Mapping[str, Any], ax: Axes | None) -> Any:
    sampled = facts["confidential"] == "compare_sampling"
    alike = "noise" if facts.get("spend") == "epsilon" else "guarantee"
    keys, values = _comparison(frame, facts, ["rate"] if sampled else ["m", "M"])
    known: Mask = np.asarray(np.isfinite(values).all(axis=1))
    if not sampled:  # infeasible pairs take no room
        keys, values, known = keys[known], values[known], known[known]
    levels, pairs = np.unique(keys[:, 0]), np.unique(keys[:, 1:], axis=0)
    canvas = Canvas.of(ax)
    on = canvas.ax
    handles, labels, dotted = [], [], None
    for position, level in enumerate(levels):
        colour, dashes, marker, _ = ORDERS[position % len(ORDERS)]
        rows = keys[:, 0] == level
        positions = keys[rows, 1]
        if not sampled:  # side by side at each pair
            at = [int(np.flatnonzero((pairs == key).all(axis=1))[0]) for key in keys[rows, 1:]]
            positions = np.array(at) + 0.6 * ((position + 0.5) / len(levels) - 0.5)
        error, lower, upper, without, _ = values[rows].T
        if sampled:
            alone = marker if known[rows].sum() == 1 else ""
            handles += on.plot(positions, error, color=colour, linestyle=dashes, marker=alone, zorder=3)
            on.fill_between(positions, lower, upper, color=colour, alpha=0.2, linewidth=0, zorder=2)
        else:
            handles += on.plot(positions, error, color=colour, linestyle="", marker=marker, zorder=3)
            on.vlines(positions, lower, upper, color=colour, linewidth=1.2, zorder=2)
        labels.append(f"epsilon {cost(level)}")
        dotted = on.axhline(float(without[0]), color=colour, linestyle=":", linewidth=1.2, zorder=2)
    if sampled:
        if len(pairs) > 1:
            on.set_xlim(pairs[0, 0], pairs[-1, 0])
        below = f"sampling rate (the same {alike} at each)"
    else:
        names = [f"{short(m)}, {short(M)}" for m, M in pairs]
        small = min(POINTS, 0.9 * canvas.width / len(pairs))
        on.set_xticks(np.arange(len(pairs)), names, rotation=90, fontsize=max(small, 4))
        on.set_xlim(-0.5, len(pairs) - 0.5)
        below = f"probability to be left out, m and M (the same {alike} at each)"
    title = title_of(str(facts["statistic"]), facts.get("columns") or []) if "statistic" in facts else ""
    error_name = str(facts.get("error", "error"))
    if error_name.startswith(("mean percent", "probability")):
        canvas.percent()
    canvas.label(below, f"{error_name}\n({title})" if title else error_name)
    _head(canvas, float(np.nanmax(values[known])), [*handles, dotted], [*labels, "all records"], rows=0.3)
    return on


MOST_BARS = 60

LARGE = 0.01
"""The share of the classes that may lie beyond the picture, so that the small ones can be told apart."""


def _class_sizes(frame: pd.DataFrame, facts: Mapping[str, Any], ax: Axes | None) -> Any:
    requirement = "the index must hold the sizes of classes, and the column 'classes' their numbers"
    if "classes" not in frame.columns or frame.index.nlevels != 1 or not len(frame):
        raise _altered(facts, requirement)
    try:
        sizes = frame.index.to_numpy(dtype=np.int64)
        classes = frame["classes"].to_numpy(dtype=np.int64)
    except (TypeError, ValueError):
        raise _altered(facts, requirement) from None
    if sizes.min() < 1 or classes.min() < 1:
        raise _altered(facts, requirement)
    order = np.argsort(sizes)
    sizes, classes = sizes[order], classes[order]
    last = int(sizes[np.searchsorted(np.cumsum(classes), (1 - LARGE) * classes.sum())])
    last = max(last, min(int(sizes[-1]), MOST_BARS))
    width = -(-last // MOST_BARS)
    bins = -(-last // width)
    edges = 0.5 + width * np.arange(bins + 1)
    heights, _ = np.histogram(sizes, edges, weights=classes)
    beyond = int(classes[sizes > edges[-1]].sum())
    canvas = Canvas.of(ax)
    bars = canvas.ax.bar(
        edges[:-1], heights, width, align="edge", color="#0072B2", edgecolor="white", linewidth=0.4
    )
    ticks = [tick for tick in round_numbers(1, last, 8) if 1 < tick <= last and tick % 1 == 0]
    canvas.ax.set_xticks([1, *ticks])
    canvas.ax.set_xlim(edges[0], edges[-1])
    canvas.label("records of a class" + (f" (bars of {width} sizes)" if width > 1 else ""), "classes")
    count = int(classes.sum())
    said = f"{count:,} classes, the smallest of {sizes[0]:,}" if count > 1 else f"1 class, of {sizes[0]:,}"
    said += f"\n{beyond:,} not drawn, the largest of {sizes[-1]:,}" if beyond else ""
    _head(canvas, float(heights.max()), [bars], [said], rows=0.3)
    return canvas.ax


PAINTERS: dict[str, Callable[[pd.DataFrame, Mapping[str, Any], Axes | None], Any]] = {
    "risk_curve": _risk_curve,
    "utility": _utility,
    "tradeoff": _tradeoff,
    "compare_sampling": _compared,
    "compare_suppression": _compared,
    "class sizes": _class_sizes,
}
"""The function that draws each kind of frame."""


def call_of(kind: str) -> str:
    """Return a call that draws a kind of frame."""
    return f"private.dp.{'anonymity(...).sizes' if kind == 'class sizes' else f'{kind}(...)'}.dp.plot()"


# ---------------------------------------------------------------- the mark, the legend and names of lines


def _head(
    canvas: Canvas, top: float, handles: Sequence[Any], labels: Sequence[str], rows: float
) -> list[Any]:
    """Write the mark and the legend, on a y axis from 0 with room for them; return their boxes.

    top : the largest number drawn; rows : how many rows of text to leave free above it.
    """
    ax, size = canvas.ax, canvas.points
    mark = canvas.write(MARK, (0, 1), (4, -2), over="axes fraction", va="top", color="0.35")
    mark.set_in_layout(False)
    legend = canvas.legend(handles, labels, (0, 1), 1.6 * size, borderpad=0.3)
    needed = legend.get_window_extent().height + (1.6 + 1.4 * rows) * size * canvas.dot
    ax.set_ylim(0, (top or 1.0) / (1 - min(needed / ax.bbox.height, 0.6)))
    ticks = round_numbers(0, top or 1.0, 6)
    ax.set_yticks([tick for tick in ticks if 0 <= tick <= ax.get_ylim()[1]])  # others would widen the axis
    return [mark.get_window_extent(), legend.get_window_extent()]


def _name_lines(canvas: Canvas, lines: Sequence[Name], side: str, taken: list[Any]) -> None:
    """Write a text at each horizontal line; add their boxes to ``taken``.

    All are at one end of the axes, at ``side`` if both ends are equally free, each above or under its line,
    or further off if lines or texts are in the way.
    """
    from matplotlib.patheffects import withStroke

    lines, tracks = sorted(lines, reverse=True), _tracks(canvas.ax)
    trials = []
    for end in (side, "right" if side == "left" else "left"):
        boxes: list[Any] = []
        total = 0.0
        for value, text, _ in lines:
            cost, box = _spot(canvas, value, text, end, tracks, [*taken, *boxes])
            boxes.append(box)
            total += cost
        trials.append((total, end, boxes))
    _, end, boxes = min(trials, key=lambda trial: trial[0])
    taken += boxes
    heights = sorted((box.y0 for box in boxes), reverse=True)  # the higher line has the higher text
    around = [withStroke(linewidth=2.5, foreground="white")]
    for (value, text, colour), height in zip(lines, heights, strict=True):
        shift = (-4 if end == "right" else 4, (height - canvas.pixel(1.0, value)[1]) / canvas.dot)
        named = canvas.write(
            text, (float(end == "right"), value), shift, over=canvas.ax.get_yaxis_transform(), ha=end,
            va="bottom", color=colour, zorder=4, path_effects=around,
        )  # fmt: skip
        named.set_in_layout(False)


def _tracks(ax: Any) -> Floats:
    """Return (M, 2) points along all lines drawn, in pixels."""
    tracks = []
    for line in ax.get_lines():
        drawn = line.get_transform().transform(np.asarray(line.get_xydata(), dtype=np.float64))
        steps, indices = np.linspace(0, max(len(drawn) - 1, 0), 500), np.arange(len(drawn))
        if len(drawn):
            tracks.append(np.column_stack([np.interp(steps, indices, way) for way in drawn.T]))
    return np.concatenate(tracks)


def _spot(
    canvas: Canvas, value: float, text: str, side: str, tracks: Floats, taken: Sequence[Any]
) -> tuple[float, Any]:
    """Return the box of a text at a horizontal line that covers least, and what it covers."""
    from matplotlib.transforms import Bbox

    (wide, high), dot, inside = canvas.size_of(text, canvas.points), canvas.dot, canvas.ax.bbox
    left = inside.x0 + 4 * dot if side == "left" else inside.x1 - 4 * dot - wide
    boxes: list[tuple[float, Any]] = []
    for row in range(4):
        for offset in (1.5 * dot + row * high, -1.5 * dot - (row + 1) * high):
            box = Bbox.from_bounds(left, canvas.pixel(1.0, value)[1] + offset, wide, high)
            covered = ((tracks > box.min) & (tracks < box.max)).all(axis=1).sum()
            met = sum(box.expanded(1.1, 1).overlaps(other) for other in taken)
            out = box.y0 < inside.y0 or box.y1 > inside.y1
            boxes.append((float(covered + 10 * row + 1000 * met + 10000 * out), box))
    return min(boxes, key=lambda spot: spot[0])
