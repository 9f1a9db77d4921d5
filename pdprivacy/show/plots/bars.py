"""Plots of counts by label or bin: bars, each with its margin of error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pdprivacy.show.plots.canvas import (
    ORDERS,
    axes_of,
    entitle,
    label_axes,
    mixed,
    points,
    scale,
    settle,
    size_of,
    thinned,
)
from pdprivacy.show.plots.cube import Cube, cut, edges_of, label_of
from pdprivacy.show.view import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOUR, EDGE, PALE = "#56B4E9", "#0072B2", "#E6F3FB"
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
    """Whether each bin begins where another ends."""
    ordered = np.sort(np.array(bins), axis=0)
    return bool((ordered[:, 0] < ordered[:, 1]).all() and (ordered[1:, 0] == ordered[:-1, 1]).all())


def _is_share(cube: Cube) -> bool:
    return bool(cube.view.facts.normalize)


def _unit(cube: Cube) -> str:
    return "share of the records" if _is_share(cube) else "records"


def _notes(cube: Cube, hatched: bool, *more: str) -> list[str]:
    """Return the lines under the title."""
    noise = f"lines: {cube.noise}, each {cube.view.span}"
    return cube.notes("; ".join([noise, *more, *([WITHIN] if hatched else [])]))


def _bars(draw: Any, places: Floats, sizes: Floats, thick: Floats, within: Any) -> None:
    """Draw a column of bars per release, each paler than the one before; hatched within their noise."""
    many = places.shape[1]
    for release in range(many):
        colour = mixed(COLOUR, 0.7 * release / many)
        for chosen, style in (
            (~within[:, release], {"facecolor": colour, "edgecolor": EDGE}),
            (within[:, release], {"facecolor": PALE, "edgecolor": EDGE, "hatch": "////"}),
        ):
            if chosen.any():
                drawn = (numbers[chosen, release] for numbers in (places, sizes, thick))
                draw(*drawn, linewidth=0.6, zorder=2, **style)


def _bins(cube: Cube, bins: Floats, nulls: list[int], ax: Axes | None) -> Any:
    """Draw bars at the edges of bins; if the widths differ, the areas are the counts."""
    on = axes_of(ax, (6.4, 4.2))
    rows = np.array([row for row in range(len(cube.rows)) if row not in nulls])
    rows, bins = rows[order := np.argsort(bins[:, 0])], bins[order]
    left, width = bins[:, 0], bins[:, 1] - bins[:, 0]
    even = bool(np.allclose(width, width[0], rtol=1e-6, atol=0))
    if nulls and even:  # a bar of its own beside the others
        rows, width = np.append(rows, nulls), np.append(width, width[-1])
        left = np.append(left, bins[-1, 1] + width[-1] / 2)
    unit = np.ones_like(width) if even else width
    values, lower, upper = (
        numbers[rows, 0] / unit[:, None] for numbers in (cube.values, cube.lower, cube.upper)
    )
    part = width[:, None] / cube.many
    starts = left[:, None] + part * np.arange(cube.many)
    thick = np.broadcast_to(part, starts.shape)
    within = cube.within[rows, 0] & (starts.size <= MOST_DRAWN)
    if starts.size <= MOST_DRAWN:
        _bars(lambda x, y, w, **style: on.bar(x, y, w, align="edge", **style), starts, values, thick, within)
        on.vlines(starts + thick / 2, lower, upper, color="black", linewidth=1.2, zorder=3)
    else:
        _outlined(on, left, width, values, lower, upper)
    on.axhline(0, color="0.3", linewidth=0.8, zorder=3)
    on.margins(x=0.01)
    on.tick_params(axis="y", labelsize=0.9 * points(on))
    said = [f"NaN: {' and '.join(_texts(cube, nulls[0]))}"] if nulls and not even else []
    align = entitle(on, cube.view.title, _notes(cube, bool(within.any()), *said))
    name = "" if cube.rows.name is None else label_of(cube.rows.name)
    label_axes(on, name, _unit(cube) + ("" if even else " / width of the bin"), points(on))
    low, high = on.get_xlim()
    scale(on, low, high, at=[*bins[:, 0], bins[-1, 1]])
    if nulls and even:
        on.set_xticks([*on.get_xticks(), left[-1] + width[-1] / 2], [*_ticks(on), "NaN"])
    _write_above(on, cube, rows, starts + thick / 2, upper, thick)
    align()
    return on


def _ticks(ax: Any) -> list[str]:
    return [label.get_text() for label in ax.get_xticklabels()]


def _outlined(ax: Any, left: Floats, width: Floats, *numbers: Floats) -> None:
    """Draw very many bins as an outline per release, with a band for its margins of error."""
    edges = np.append(left, left[-1] + width[-1])
    for place, (value, low, high) in enumerate(zip(*(one.T for one in numbers), strict=True)):
        colour, dashes, *_ = ORDERS[place % len(ORDERS)]
        ax.stairs(value, edges, color=colour, linestyle=dashes if place else "-", linewidth=1.1, zorder=3)
        ends = [np.append(end, end[-1]) for end in (low, high)]
        ax.fill_between(edges, *ends, step="post", color=colour, alpha=0.25, linewidth=0, zorder=2)


def _texts(cube: Cube, row: int) -> list[str]:
    """Return the numbers of a row as they are written, one per release."""
    pairs = zip(cube.values[row, 0], cube.half[row, 0], strict=True)
    return [cube.text(value, half) for value, half in pairs]


def _write_above(ax: Any, cube: Cube, rows: Any, places: Floats, tops: Floats, thick: Floats) -> None:
    """Write the counts above their bars if all of them fit."""
    texts = [_texts(cube, row) for row in rows]
    size = 0.95 * points(ax)
    ways = ax.transData.transform(np.column_stack([thick.ravel(), np.zeros(thick.size)]))
    room = ways[:, 0].min() - ax.transData.transform((0, 0))[0]
    if thick.size > MOST_WRITTEN or max(size_of(ax, one, size)[0] for row in texts for one in row) > room:
        return
    for row, text in enumerate(texts):
        for place, one in enumerate(text):
            ax.annotate(
                one, (places[row, place], max(tops[row, place], 0)), xytext=(0, 2), ha="center", va="bottom",
                textcoords="offset points", fontsize=size, color="0.2",
            )  # fmt: skip
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + 1.5 * size * ax.figure.dpi / 72 / ax.bbox.height * (high - low))


def _labels(cube: Cube, ax: Axes | None) -> Any:
    """Draw bars one below the other, as released; of very many labels only the largest."""
    rows = len(cube.rows)
    thick = 1 + 0.5 * (cube.many - 1)
    on = axes_of(ax, (6.4, 1.5 + 0.26 * thick * min(rows, MOST_BARS)), grid="x")
    room = int(on.bbox.height * 72 / on.figure.dpi / 8)
    shown = list(range(rows))
    said = []
    if rows > (most := max(min(MOST_BARS, room), 1)):
        shown = sorted(np.argsort(-cube.values[:, 0].mean(axis=1), kind="stable")[:most].tolist())
        said.append(f"the {most} largest of {rows} labels")
    values, lower, upper = (numbers[shown, 0] for numbers in (cube.values, cube.lower, cube.upper))
    within = cube.within[shown, 0]
    height = 0.78 / cube.many
    places = np.arange(len(shown))[:, None] + (np.arange(cube.many) - (cube.many - 1) / 2) * height
    sizes = np.full(places.shape, height)
    _bars(lambda y, x, h, **style: on.barh(y, x, h, **style), places, values, sizes, within)
    on.hlines(places, lower, upper, color="black", linewidth=1.2, zorder=3)
    on.axvline(0, color="0.3", linewidth=0.8, zorder=3)
    on.set_ylim(len(shown) - 0.5, -0.5)
    settle(on)
    thinned(on, [label_of(cube.rows[row], _letters(on)) for row in shown])
    on.tick_params(axis="y", length=0)
    names = [cut(name) for name in cube.rows.names if name is not None]
    align = entitle(on, cube.view.title, _notes(cube, bool(within.any()), *said))
    label_axes(on, _unit(cube), ", ".join(names), points(on))
    low, high = float(min(lower.min(), 0)), float(max(upper.max(), 0)) or 1.0
    texts = [_texts(cube, row) for row in shown]
    size = 0.95 * points(on)
    each = on.bbox.height * 72 / on.figure.dpi / len(shown) * height
    written_here = places.size <= MOST_WRITTEN and each >= 0.95 * size
    wide = max(size_of(on, one, size)[0] for row in texts for one in row) + 8 if written_here else 4
    low *= 1.05
    scale(on, low, low + (high - low) / max(1 - wide / on.bbox.width, 0.4))
    for row, text in enumerate(texts if written_here else []):
        for place, one in enumerate(text):
            on.annotate(
                one, (max(upper[row, place], 0), places[row, place]), xytext=(4, 0), va="center",
                textcoords="offset points", fontsize=size, color="0.2",
            )  # fmt: skip
    align()
    return on


def _letters(ax: Any) -> int:
    """Return how many letters of a label leave room for the bars."""
    return int(np.clip(0.4 * ax.figure.bbox.width * 72 / ax.figure.dpi / (0.55 * points(ax)), 10, 60))
