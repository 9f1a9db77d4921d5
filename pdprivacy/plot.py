"""Pictures of the curator's frames: risk against epsilon, distances of marginals, and what omission costs.

They are made of exact counts, and each says so. matplotlib (the extra ``plot``) is imported when
something is drawn; none of its settings is changed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.errors import MetadataError, MissingExtraError, ParameterError, got

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

Floats: TypeAlias = NDArray[np.float64]
Name: TypeAlias = tuple[float, str, str]  # of a horizontal line: its height, a text, its colour

MARK = "CONFIDENTIAL: made of exact counts"
EPSILON = "epsilon of the table (less noise to the right)"
POINTS = 8.5  # the size of what is written into a picture, where that is wide enough

# Colours of Okabe and Ito; dashes, markers and hatches tell the same things apart in grey.
AVERAGES = {"cells": ("#0072B2", "-"), "records": ("#D55E00", "-.")}
ORDERS = (
    ("#0072B2", "--", "o", ""),
    ("#E69F00", "-.", "s", "///"),
    ("#009E73", (0, (3, 1, 1, 1, 1, 1)), "^", "..."),
    ("#CC79A7", (0, (6, 1)), "v", "xxx"),
    ("#56B4E9", (0, (2, 1)), "D", "+++"),
)


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """The picture of a frame of one of these, on ``ax`` or in a new figure.

    risk_curve : the risk against epsilon, a line per column; dashed, its limits (the rows 0 and inf).
    utility : box plots over the marginals of each order, at each epsilon.
    tradeoff : the risk and the mean distances against epsilon; shaded, the recommended rows.
    compare_sampling : the error against the rate, a line with its 95 % band per epsilon; dotted, that of all
        records.
    compare_suppression : the error with its interval at each (m, M); dotted, as before.

    Raises
    ------
    MetadataError : the frame is none of these, or its numbers are not where they were.
    ParameterError : ``ax`` is something else than axes.
    MissingExtraError : matplotlib is not installed.

    >>> import pandas as pd
    >>> draw(pd.DataFrame({"cells": [0.25, 1.0]}))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    pdprivacy.errors.MetadataError: This frame has no picture.
    Hint: ...private.dp.risk_curve(...).dp.plot()...
    """
    stored = getattr(frame, "attrs", {}).get("dp")
    facts: Mapping[str, Any] = stored if isinstance(stored, Mapping) else {}
    kind = facts.get("confidential")
    painters = {
        "risk_curve": _risk_curve,
        "utility": _utility,
        "tradeoff": _tradeoff,
        "compare_sampling": _compared,
        "compare_suppression": _compared,
    }
    if not isinstance(frame, pd.DataFrame) or not isinstance(kind, str) or kind not in painters:
        raise MetadataError(
            "This frame has no picture.",
            "these have: "
            + ", ".join(f"private.dp.{name}(...).dp.plot()" for name in painters)
            + ", on the DataFrames as they were returned.",
        )
    drawn: Axes = painters[kind](frame, facts, ax)
    return drawn


def _altered(facts: Mapping[str, Any], wanted: str) -> MetadataError:
    kind = facts["confidential"]
    return MetadataError(
        f"The frame says that it is of '{kind}', but its numbers are not where they were: {wanted}.",
        f"private.dp.{kind}(...).dp.plot(), before anything is renamed.",
    )


def _numbers(frame: pd.DataFrame, facts: Mapping[str, Any]) -> tuple[Floats, Floats, Floats]:
    """(E,) epsilon, ascending; (E, C) the numbers; (2, C) the numbers at epsilon 0 and inf, NaN if none."""
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


def _axes(ax: Axes | None) -> Any:
    """``ax``, or the axes of a new figure."""
    try:
        import matplotlib.axes
    except ModuleNotFoundError:
        raise MissingExtraError(
            "A picture needs matplotlib, which is not installed.", 'pip install "pdprivacy[plot]"'
        ) from None
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(layout="constrained")
    if not isinstance(ax, matplotlib.axes.Axes):
        raise ParameterError(
            f"'ax' must be the axes of a matplotlib figure (got {got(ax)}).", "ax=plt.figure().subplots()"
        )
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="0.92")
    ax.set_axisbelow(True)
    return ax


def _label(ax: Any, below: str, beside: str) -> None:
    """What the axes are, broken into lines where they are short; then the layout, for sizes to hold."""
    for text, label, side in ((below, ax.xaxis.label, "width"), (beside, ax.yaxis.label, "height")):
        label.set_text(text)
        for width in (26, 16):
            if getattr(label.get_window_extent(), side) <= getattr(ax.bbox, side):
                break
            parts = text.replace(" (", "\n(").split("\n")
            label.set_text("\n".join(textwrap.fill(part, width) for part in parts))
    figure = ax.figure.canvas.figure
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)


def _percent(share: float) -> str:
    """A share in percent; one that is not quite 0 or 1 is never written as such."""
    text = f"{100 * share:.3g}"
    if text == "100" and share < 1:
        return "> 99.9 %"
    return "< 0.1 %" if 0 < share < 0.001 else f"{text} %"


def _points(ax: Any) -> float:
    """The size of what is written into a picture: smaller where the axes are narrow."""
    return float(POINTS * np.clip(ax.bbox.width * 72 / ax.figure.dpi / 290, 0.7, 1.0))


def _head(ax: Any, top: float, handles: Sequence[Any], labels: Sequence[str], rows: float) -> list[Any]:
    """The mark and the legend, on a y axis from 0 that leaves room for them; their boxes.

    top : the largest number drawn; rows : how many rows of text to leave free above it.
    """
    from matplotlib.ticker import MaxNLocator
    from matplotlib.transforms import offset_copy

    size = _points(ax)
    mark = ax.annotate(
        MARK, (0, 1), xycoords="axes fraction", xytext=(4, -2), textcoords="offset points", va="top",
        fontsize=size, color="0.35",
    )  # fmt: skip
    mark.set_in_layout(False)
    under = offset_copy(ax.transAxes, ax.figure, y=-1.6 * size, units="points")
    legend: Any = None
    for columns in range(len(handles), 0, -1):
        legend = ax.legend(
            handles, labels, ncols=columns, loc="upper left", bbox_to_anchor=(0, 1), bbox_transform=under,
            fontsize=size, frameon=False, borderaxespad=0, borderpad=0.3, handlelength=2.8, columnspacing=1.2,
        )  # fmt: skip
        if legend.get_window_extent().width <= ax.bbox.width:
            break
    needed = legend.get_window_extent().height + (1.6 + 1.4 * rows) * size * ax.figure.dpi / 72
    ax.set_ylim(0, (top or 1.0) / (1 - min(needed / ax.bbox.height, 0.6)))
    ticks = MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]).tick_values(0, top or 1.0)
    ax.set_yticks([tick for tick in ticks if 0 <= tick <= ax.get_ylim()[1]])  # others would widen the axis
    return [mark.get_window_extent(), legend.get_window_extent()]


def _log_axis(ax: Any, epsilon: Floats) -> None:
    """A log axis of epsilon with plain numbers, as wide as the rows."""
    from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullFormatter

    ax.set_xscale("log")
    if epsilon[0] == epsilon[-1]:
        ax.xaxis.set_major_locator(FixedLocator([epsilon[0]]))
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.xaxis.set_minor_formatter(NullFormatter())
        return
    ax.set_xlim(epsilon[0], epsilon[-1])
    if epsilon[-1] < 100 * epsilon[0]:  # powers of ten alone would be too few
        tight = epsilon[-1] < 10 * epsilon[0]
        ax.xaxis.set_major_locator(MaxNLocator(5) if tight else LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def _name(ax: Any, lines: Sequence[Name], side: str, taken: list[Any]) -> None:
    """A text at each horizontal line; the boxes that they take go to ``taken``.

    All are written at one end of the axes, at ``side`` if that is as free as the other, and each right
    above or under its line, or further off where lines or texts are in the way.
    """
    from matplotlib.patheffects import withStroke

    dot, lines = ax.figure.dpi / 72, sorted(lines, reverse=True)
    tracks = _tracks(ax)
    trials = []
    for end in (side, "right" if side == "left" else "left"):
        boxes: list[Any] = []
        total = 0.0
        for value, text, _ in lines:
            cost, box = _spot(ax, value, text, end, tracks, [*taken, *boxes])
            boxes.append(box)
            total += cost
        trials.append((total, end, boxes))
    _, end, boxes = min(trials, key=lambda trial: trial[0])
    taken += boxes
    heights = sorted((box.y0 for box in boxes), reverse=True)  # the higher line has the higher text
    for (value, text, colour), height in zip(lines, heights, strict=True):
        named = ax.annotate(
            text, (float(end == "right"), value), xycoords=ax.get_yaxis_transform(), ha=end, va="bottom",
            xytext=(-4 if end == "right" else 4, (height - _pixel(ax, value)) / dot), color=colour,
            textcoords="offset points", fontsize=_points(ax), zorder=4,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
        )  # fmt: skip
        named.set_in_layout(False)


def _pixel(ax: Any, value: float) -> float:
    """Where a height is, in pixels."""
    return float(ax.transData.transform((1.0, value))[1])


def _tracks(ax: Any) -> Floats:
    """(M, 2) points along all lines drawn, in pixels."""
    tracks = []
    for line in ax.get_lines():
        drawn = line.get_transform().transform(np.asarray(line.get_xydata(), dtype=np.float64))
        steps, places = np.linspace(0, max(len(drawn) - 1, 0), 500), np.arange(len(drawn))
        if len(drawn):
            tracks.append(np.column_stack([np.interp(steps, places, way) for way in drawn.T]))
    return np.concatenate(tracks)


def _spot(
    ax: Any, value: float, text: str, side: str, tracks: Floats, taken: Sequence[Any]
) -> tuple[float, Any]:
    """Where a text at a horizontal line covers least: what it covers, and its box in pixels."""
    from matplotlib.transforms import Bbox

    probe = ax.text(0, 0, text, fontsize=_points(ax))
    size, dot = probe.get_window_extent(), ax.figure.dpi / 72
    probe.remove()
    left = ax.bbox.x0 + 4 * dot if side == "left" else ax.bbox.x1 - 4 * dot - size.width
    found: list[tuple[float, Any]] = []
    for row in range(4):
        for offset in (1.5 * dot + row * size.height, -1.5 * dot - (row + 1) * size.height):
            box = Bbox.from_bounds(left, _pixel(ax, value) + offset, size.width, size.height)
            covered = ((tracks > box.min) & (tracks < box.max)).all(axis=1).sum()
            met = sum(box.expanded(1.1, 1).overlaps(other) for other in taken)
            out = box.y0 < ax.bbox.y0 or box.y1 > ax.bbox.y1
            found.append((float(covered + 10 * row + 1000 * met + 10000 * out), box))
    return min(found, key=lambda spot: spot[0])


def _risk_curve(frame: pd.DataFrame, facts: Mapping[str, Any], ax: Axes | None) -> Any:
    names = list(frame.columns)
    if not names or len(set(names)) < len(names) or not set(names) <= set(AVERAGES):
        raise _altered(facts, "the columns must be 'cells', 'records', or one of them")
    epsilon, risks, ends = _numbers(frame, facts)
    on = _axes(ax)
    handles = []
    limits: tuple[list[Name], list[Name]] = ([], [])
    for name, risk, end in zip(names, risks.T, ends.T, strict=True):
        colour, dashes = AVERAGES[name]
        handles += on.plot(
            epsilon, risk, color=colour, linestyle=dashes, marker=_alone(epsilon), linewidth=2.2, zorder=3
        )
        for lines, limit, value in zip(limits, ("0", "∞"), end, strict=True):
            if np.isfinite(value):
                on.axhline(value, color=colour, linestyle=(0, (5, 4)), linewidth=0.9, zorder=2)
                lines.append((float(value), f"as epsilon → {limit}: {_percent(value)} of {name}", colour))
    _log_axis(on, epsilon)
    on.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    words = [facts.get("measure"), facts.get("mechanism") and f"{facts['mechanism']} noise"]
    words += ["partial"] if facts.get("partial") else []
    words += ["published form"] if facts.get("method") == "published" else []
    attack = facts.get("attack", "homogeneity")
    what = "sum of disclosure risks" if facts.get("overall") == "sum" else "disclosure risk"
    said = ", ".join(str(word).replace("_", " ") for word in words if word)
    _label(on, EPSILON, f"{what} by {attack} attack" + (f"\n({said})" if said else ""))
    top = float(np.nanmax(np.concatenate([risks, ends])))
    taken = _head(on, top, handles, [f"average over {name}" for name in names], rows=1.1)
    for lines, side in zip(limits, ("left", "right"), strict=True):
        _name(on, lines, side, taken)
    return on


def _alone(epsilon: Floats) -> str:
    """A marker where there is no line between points."""
    return "o" if len(epsilon) == 1 else ""


def _utility(frame: pd.DataFrame, facts: Mapping[str, Any], ax: Axes | None) -> Any:
    wanted = "the index must be (order, marginal), and the columns 'tvd' by epsilon"
    if (
        frame.index.nlevels != 2
        or frame.columns.nlevels != 2
        or "tvd" not in frame.columns.get_level_values(0)
    ):
        raise _altered(facts, wanted)
    try:
        epsilon = frame["tvd"].columns.to_numpy(dtype=np.float64)
        distances = frame["tvd"].to_numpy(dtype=np.float64)[:, np.argsort(epsilon)]
        order = frame.index.get_level_values(0).to_numpy(dtype=np.int64)
    except (TypeError, ValueError):
        raise _altered(facts, wanted) from None
    if not np.isfinite(distances).any():
        raise _altered(facts, wanted)
    on = _axes(ax)
    orders = np.unique(order)
    width = 0.8 / len(orders)
    handles = []
    for place, one in enumerate(orders):
        colour, _, _, hatch = ORDERS[place % len(ORDERS)]
        drawn = on.boxplot(
            [column[np.isfinite(column)] for column in distances[order == one].T],
            positions=np.arange(len(epsilon)) + (place - (len(orders) - 1) / 2) * width,
            widths=0.8 * width, manage_ticks=False, patch_artist=True,
            boxprops={"facecolor": colour, "hatch": hatch, "edgecolor": "black", "linewidth": 0.8},
            medianprops={"color": "black", "linewidth": 1.6},
            flierprops={"marker": "o", "markersize": 3, "markerfacecolor": colour, "markeredgecolor": "0.3"},
        )  # fmt: skip
        handles.append(drawn["boxes"][0])
    on.set_xticks(np.arange(len(epsilon)), [f"{value:g}" for value in np.sort(epsilon)])
    on.set_xlim(-0.5, len(epsilon) - 0.5)
    _label(on, EPSILON, "expected total variation distance")
    _head(on, float(np.nanmax(distances)), handles, [f"{one}-way marginals" for one in orders], rows=0.8)
    return on


def _tradeoff(frame: pd.DataFrame, facts: Mapping[str, Any], ax: Axes | None) -> Any:
    distances = [name for name in frame.columns if str(name).startswith("tvd ")]
    if not distances or sorted(map(str, frame.columns)) != sorted(["risk", "recommended", *distances]):
        raise _altered(facts, "the columns must be 'risk', 'tvd 1-way' and the like, 'recommended'")
    epsilon, numbers, _ = _numbers(frame[["risk", *distances, "recommended"]], facts)
    dotted: list[Name] = [
        (float(facts[name]), f"{name} = {facts[name]:g}", "0.25")
        for name in ("max_risk", "max_tvd")
        if isinstance(facts.get(name), int | float) and np.isfinite(facts[name])
    ]
    on = _axes(ax)
    handles = on.plot(epsilon, numbers[:, 0], color="black", marker=_alone(epsilon), linewidth=2.4, zorder=3)
    for place, distance in enumerate(numbers[:, 1:-1].T):
        colour, dashes, marker, _ = ORDERS[place % len(ORDERS)]
        handles += on.plot(
            epsilon, distance, color=colour, linestyle=dashes, marker=marker, markersize=4, linewidth=1.6
        )
    for value, _, colour in dotted:
        on.axhline(value, color=colour, linestyle=":", linewidth=1.1, zorder=2)
    _log_axis(on, epsilon)
    _label(on, EPSILON, "risk, expected total variation distance (tvd)")
    top = max([float(np.nanmax(numbers[:, :-1])), *(value for value, *_ in dotted)])
    taken = _head(on, top, handles, ["risk", *distances], rows=2.5)
    taken.append(_recommend(on, epsilon, numbers[:, -1] == 1, top))
    _name(on, dotted, "right", taken)
    return on


def _recommend(ax: Any, epsilon: Floats, recommended: NDArray[np.bool_], top: float) -> Any:
    """Shade the runs of recommended rows and name the widest, or say that there is none; the text's box."""
    ends = np.flatnonzero(np.diff(np.concatenate([[False], recommended, [False]]).astype(int)))
    runs = [(epsilon[first], epsilon[end - 1]) for first, end in zip(ends[::2], ends[1::2], strict=True)]
    high = ax.get_ylim()[1]
    for lower, upper in runs:
        one = 5 if lower == upper else 0  # points; a span of no width would not be seen
        ax.axvspan(lower, upper, 0, top / high, color="#56B4E9", alpha=0.3, linewidth=one, zorder=1)
    text, at = "recommended: none\n(no epsilon here meets both limits)", 0.5
    if runs:
        lower, upper = max(runs, key=lambda run: run[1] / run[0])
        text = "recommended"
        at = ax.transAxes.inverted().transform(ax.transData.transform([(lower * upper) ** 0.5, top]))[0]
    side = "left" if at < 0.15 else "right" if at > 0.85 else "center"
    named = ax.annotate(
        text, (at, top), xycoords=ax.get_yaxis_transform(), xytext=(0, 2), textcoords="offset points",
        ha=side, va="bottom", fontsize=_points(ax), color="#0072B2",
    )  # fmt: skip
    named.set_in_layout(False)
    return named.get_window_extent()


def _compared(frame: pd.DataFrame, facts: Mapping[str, Any], ax: Axes | None) -> Any:
    sampled = facts["confidential"] == "compare_sampling"
    names = ["rate"] if sampled else ["m", "M"]
    heads = ["error", "lower", "upper", "without", "without_upper"]
    wanted = f"the index must be (epsilon, {', '.join(names)}), and the columns hold {', '.join(heads)}"
    if list(frame.index.names) != ["epsilon", *names] or not set(heads) <= set(frame.columns):
        raise _altered(facts, wanted)
    try:
        keys = np.array(frame.index.to_list(), dtype=np.float64)
        values = frame[heads].to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise _altered(facts, wanted) from None
    known = np.isfinite(values).all(axis=1)
    if not known.any():
        raise _altered(facts, "a row must hold numbers")
    order = np.lexsort(keys.T[::-1])
    keys, values, known = keys[order], values[order], known[order]
    if not sampled:  # what is feasible nowhere takes no room
        keys, values, known = keys[known], values[known], known[known]
    levels, pairs = np.unique(keys[:, 0]), np.unique(keys[:, 1:], axis=0)
    on = _axes(ax)
    handles, labels, dotted = [], [], None
    for place, level in enumerate(levels):
        colour, dashes, marker, _ = ORDERS[place % len(ORDERS)]
        rows = keys[:, 0] == level
        places = keys[rows, 1]
        if not sampled:  # side by side at each pair
            at = [int(np.flatnonzero((pairs == key).all(axis=1))[0]) for key in keys[rows, 1:]]
            places = np.array(at) + 0.6 * ((place + 0.5) / len(levels) - 0.5)
        error, lower, upper, without, _ = values[rows].T
        if sampled:
            alone = marker if known[rows].sum() == 1 else ""
            handles += on.plot(places, error, color=colour, linestyle=dashes, marker=alone, zorder=3)
            on.fill_between(places, lower, upper, color=colour, alpha=0.2, linewidth=0, zorder=2)
        else:
            handles += on.plot(places, error, color=colour, linestyle="", marker=marker, zorder=3)
            on.vlines(places, lower, upper, color=colour, linewidth=1.2, zorder=2)
        labels.append(f"epsilon {level:g}")
        dotted = on.axhline(float(without[0]), color=colour, linestyle=":", linewidth=1.2, zorder=2)
    if sampled:
        if len(pairs) > 1:
            on.set_xlim(pairs[0, 0], pairs[-1, 0])
        below = "sampling rate (the same guarantee at each)"
    else:
        names = [f"{m:g}, {M:g}" for m, M in pairs]
        small = min(POINTS, 0.9 * on.bbox.width * 72 / on.figure.dpi / len(pairs))
        on.set_xticks(np.arange(len(pairs)), names, rotation=90, fontsize=max(small, 4))
        on.set_xlim(-0.5, len(pairs) - 0.5)
        below = "probability to be left out, m and M (the same guarantee at each)"
    words = [facts.get("statistic"), ", ".join(facts.get("columns") or [])]
    what = " of ".join(str(word).replace("_", " ") for word in words if word)
    error_name = str(facts.get("error", "error"))
    if error_name.startswith(("mean percent", "probability")):
        on.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    _label(on, below, f"{error_name}\n({what})" if what else error_name)
    _head(on, float(np.nanmax(values[known])), [*handles, dotted], [*labels, "all records"], rows=0.3)
    return on
