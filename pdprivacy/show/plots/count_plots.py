"""Plots of counts as bars, and of tables, covariances and correlations as heat maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.show.plots.canvas import ORDERS, Canvas, linear_ticks, log_ticks, luminance, mixed
from pdprivacy.show.plots.charts import Cube, edge_texts, edges_of, label_of, names_of
from pdprivacy.text.numbers import plain, span
from pdprivacy.types import Floats, Integers, Mask

if TYPE_CHECKING:
    from matplotlib.axes import Axes


FILL, EDGE, PALE = "#56B4E9", "#0072B2", "#E6F3FB"
MOST_DRAWN = 400  # bars; of more there is an outline
MOST_BARS = 60
WITHIN = "hatched: within the margin of error of 0"
MOST_BAR_TEXTS = 30


def draw_counts(cube: Cube, ax: Axes | None) -> Any:
    """Draw bars at the edges of bins, or one below the other for labels."""
    edges = [edges_of(label) for label in cube.rows]
    bins = [pair for pair in edges if pair is not None]
    nulls = [row for row, label in enumerate(cube.rows) if label is None or label != label]
    if bins and len(bins) + len(nulls) == len(edges) and len(nulls) <= 1 and _side_by_side(bins):
        return _bins(cube, np.array(bins), nulls, ax)
    return _labels(cube, ax)


def _side_by_side(bins: list[tuple[float, float]]) -> bool:
    """Return whether each bin begins where another ends."""
    ordered = np.sort(np.array(bins), axis=0)
    return bool((ordered[:, 0] < ordered[:, 1]).all() and (ordered[1:, 0] == ordered[:-1, 1]).all())


@dataclass(frozen=True)
class Bars:
    """The bars of some rows, (R, M) by row and release, as they are drawn on a canvas.

    ``upright``: whether they stand on the horizontal axis. ``places``: their middles on the axis of the
    rows, ``thick``: how much of it each takes, ``unit``: what their numbers are divided by.
    """

    canvas: Canvas
    cube: Cube
    rows: Sequence[int]
    places: Floats
    thick: Floats
    upright: bool = False
    unit: Any = 1.0

    def of(self, numbers: Floats) -> Floats:
        """Return numbers of the cube as lengths of the bars."""
        return np.asarray(numbers[self.rows, 0] / self.unit)

    @property
    def upper(self) -> Floats:
        """The upper ends of the intervals."""
        return self.of(self.cube.ends[1])

    @property
    def texts(self) -> list[list[str]]:
        """The numbers as they are written, row by row."""
        return [self.cube.texts((row, 0)) for row in self.rows]

    def draw(self) -> bool:
        """Draw the bars, the intervals and a line at 0; return whether any is hatched.

        Each release is paler than the one before, and hatched within its noise.
        """
        ax, values, within = self.canvas.ax, self.of(self.cube.values), self.cube.within[self.rows, 0]
        bar, line, zero = (
            (ax.bar, ax.vlines, ax.axhline) if self.upright else (ax.barh, ax.hlines, ax.axvline)
        )
        for release in range(self.cube.many):
            plain = {"facecolor": mixed(FILL, 0.7 * release / self.cube.many)}
            for chosen, style in (
                (~within[:, release], plain),
                (within[:, release], {"facecolor": PALE, "hatch": "////"}),
            ):
                if chosen.any():
                    drawn = (each[chosen, release] for each in (self.places, values, self.thick))
                    bar(*drawn, edgecolor=EDGE, linewidth=0.6, zorder=2, **style)
        line(self.places, self.of(self.cube.ends[0]), self.upper, color="black", linewidth=1.2, zorder=3)
        zero(0, color="0.3", linewidth=0.8, zorder=3)
        return bool(within.any())

    def write(self, size: float) -> None:
        """Write the numbers beyond the upper ends of the intervals."""
        for row, texts in enumerate(self.texts):
            for release, text in enumerate(texts):
                end, position = max(self.upper[row, release], 0), self.places[row, release]
                if self.upright:
                    self.canvas.write(text, (position, end), (0, 2), size=size, ha="center", va="bottom")
                else:
                    self.canvas.write(text, (end, position), (4, 0), size=size)


def _notes(cube: Cube, hatched: bool, *more: str) -> list[str]:
    """Return the lines under the title."""
    noise = f"lines: {cube.noise}, each {cube.view.span}"
    return cube.notes("; ".join([noise, *more, *([WITHIN] if hatched else [])]))


def _bins(cube: Cube, bins: Floats, nulls: list[int], ax: Axes | None) -> Any:
    """Draw bars at the edges of bins; if the widths differ, the areas are the counts."""
    canvas = Canvas.of(ax, (6.4, 4.2))
    on = canvas.ax
    rows = np.array([row for row in range(len(cube.rows)) if row not in nulls])
    rows, bins = rows[order := np.argsort(bins[:, 0])], bins[order]
    edges = [edge_texts(cube.rows[row]) for row in rows]
    left, width = bins[:, 0], bins[:, 1] - bins[:, 0]
    even = bool(np.allclose(width, width[0], rtol=1e-6, atol=0))
    if nulls and even:  # a bar of its own beside the others
        rows, width = np.append(rows, nulls), np.append(width, width[-1])
        left = np.append(left, bins[-1, 1] + width[-1] / 2)
    part = width[:, None] / cube.many
    positions = left[:, None] + part * (np.arange(cube.many) + 0.5)
    unit = 1.0 if even else width[:, None]
    bars = Bars(canvas, cube, rows.tolist(), positions, np.broadcast_to(part, positions.shape), True, unit)
    hatched = bars.draw() if positions.size <= MOST_DRAWN else _outline(bars, left, width)
    on.margins(x=0.01)
    on.tick_params(axis="y", labelsize=0.9 * canvas.points)
    notes = [f"NaN: {' and '.join(cube.texts((nulls[0], 0)))}"] if nulls and not even else []
    align = canvas.entitle(cube.view.title, _notes(cube, hatched, *notes))
    canvas.label(names_of(cube.rows), cube.unit + ("" if even else " / width of the bin"), canvas.points)
    names = [first for first, _ in edges] + [edges[-1][1]]
    low, high = on.get_xlim()
    canvas.scale(low, high, [*bins[:, 0], bins[-1, 1]], names)
    if nulls and even:
        ticks = [label.get_text() for label in on.get_xticklabels()]
        on.set_xticks([*on.get_xticks(), left[-1] + width[-1] / 2], [*ticks, "NaN"])
    _write_above(bars)
    align()
    return on


def _outline(bars: Bars, left: Floats, width: Floats) -> bool:
    """Draw very many bins, none of them hatched: an outline per release, and a band for its intervals."""
    ax, cube, edges = bars.canvas.ax, bars.cube, np.append(left, left[-1] + width[-1])
    drawn = (bars.of(numbers).T for numbers in (cube.values, *cube.ends))
    for release, (value, low, high) in enumerate(zip(*drawn, strict=True)):
        colour, dashes, *_ = ORDERS[release % len(ORDERS)]
        ax.stairs(value, edges, color=colour, linestyle=dashes if release else "-", linewidth=1.1, zorder=3)
        ends = [np.append(end, end[-1]) for end in (low, high)]
        ax.fill_between(edges, *ends, step="post", color=colour, alpha=0.25, linewidth=0, zorder=2)
    ax.axhline(0, color="0.3", linewidth=0.8, zorder=3)
    return False


def _write_above(bars: Bars) -> None:
    """Write the counts above their bars if all of them fit."""
    canvas, size = bars.canvas, 0.95 * bars.canvas.points
    room = canvas.pixel(float(bars.thick.min()), 0)[0] - canvas.pixel(0, 0)[0]
    if bars.thick.size > MOST_BAR_TEXTS or _widest(bars, size) > room:
        return
    bars.write(size)
    low, high = canvas.ax.get_ylim()
    canvas.ax.set_ylim(low, high + 1.5 * size / canvas.height * (high - low))


def _widest(bars: Bars, size: float) -> float:
    """Return the width of the longest number, in pixels."""
    return max(bars.canvas.size_of(text, size)[0] for texts in bars.texts for text in texts)


def _labels(cube: Cube, ax: Axes | None) -> Any:
    """Draw bars one below the other, as released; of very many labels only the largest."""
    rows = len(cube.rows)
    height = 1.5 + 0.26 * (1 + 0.5 * (cube.many - 1)) * min(rows, MOST_BARS)
    canvas = Canvas.of(ax, (6.4, height), grid="x")
    on, shown, texts = canvas.ax, list(range(rows)), []
    if rows > (most := max(min(MOST_BARS, int(canvas.height / 8)), 1)):
        shown = sorted(np.argsort(-cube.values[:, 0].mean(axis=1), kind="stable")[:most].tolist())
        texts.append(f"the {most} largest of {rows} labels")
    thick = 0.78 / cube.many
    positions = np.arange(len(shown))[:, None] + (np.arange(cube.many) - (cube.many - 1) / 2) * thick
    bars = Bars(canvas, cube, shown, positions, np.full(positions.shape, thick))
    hatched = bars.draw()
    on.set_ylim(len(shown) - 0.5, -0.5)
    canvas.lay_out()
    letters = canvas.letters(0.4, 10)  # leaves room for the bars
    canvas.rows([label_of(cube.rows[row], letters) for row in shown])
    on.tick_params(axis="y", length=0)
    align = canvas.entitle(cube.view.title, _notes(cube, hatched, *texts))
    canvas.label(cube.unit, names_of(cube.rows), canvas.points)
    low = float(min(bars.of(cube.ends[0]).min(), 0))
    high = float(max(bars.upper.max(), 0)) or 1.0
    size = 0.95 * canvas.points
    written_here = positions.size <= MOST_BAR_TEXTS and canvas.height / len(shown) * thick >= 0.95 * size
    wide = _widest(bars, size) + 8 if written_here else 4
    low *= 1.05
    canvas.scale(low, low + (high - low) / max(1 - wide / on.bbox.width, 0.4))
    if written_here:
        bars.write(size)
    align()
    return on


# ---------------------------------------------------------------- heat maps

SHADES = ("#FFFFFF", "#9ECAE8", "#0072B2", "#00304B")
NEGATIVE, POSITIVE = ("#004C77", "#3D9BD1", "#B5DAF0"), ("#F5C99B", "#D55E00", "#6B2F00")
UNDER, NOTHING = "#EAE2C8", "#EFEFEF"
MOST_WRITTEN = 2000
MOST_HATCHED = 20_000
SMALLEST = 4.5  # points of a number in a cell


@dataclass(frozen=True)
class HeatMap:
    """A table as it is drawn, (R, C * M), the releases side by side.

    ``sums``: which cells are sums. ``within``: which are within their noise.
    """

    rows: pd.Index[Any]
    columns: pd.Index[Any]
    values: Floats
    half: Floats
    sums: Mask
    within: Mask
    many: int

    def labels(self) -> list[str]:
        """Return the column labels, release by release."""
        names = [label_of(label, 24) for label in self.columns]
        if self.many == 1:
            return names
        return [f"{name} ({release})" for release in range(1, self.many + 1) for name in names]


def grid_of(cube: Cube) -> HeatMap | None:
    """Return the table of a release; the last level of a Series as columns. None if cells are missing."""
    rows, columns = cube.rows, cube.columns
    values, half, within = cube.values, cube.half, cube.within
    if columns is None:
        pivoted = _pivoted(rows)
        if pivoted is None:
            return None
        rows, columns, order = pivoted
        shape = (len(rows), len(columns), cube.many)
        values, half = (numbers[order, 0].reshape(shape) for numbers in (values, half))
        within = within[order, 0].reshape(shape)
    sums = np.zeros(values.shape, dtype=bool)
    facts = cube.view.facts
    if facts.margins:
        sums[-1:] |= facts.normalize != "columns"
        sums[:, -1:] |= facts.normalize != "index"

    def flat(numbers: NDArray[Any]) -> NDArray[Any]:
        return numbers.transpose(0, 2, 1).reshape(len(rows), -1)

    return HeatMap(rows, columns, flat(values), flat(half), flat(sums), flat(within), cube.many)


def _pivoted(index: pd.Index[Any]) -> tuple[pd.Index[Any], pd.Index[Any], Integers] | None:
    """Return the last level as columns, the others as rows, and the order of cells; None if some lack."""
    ranks = np.column_stack([_label_ranks(index.get_level_values(level)) for level in range(index.nlevels)])
    order = np.lexsort(ranks.T[::-1])
    wide = int(ranks[:, -1].max()) + 1
    ordered = ranks[order]
    whole = len(order) % wide == 0 and bool((ordered[:, -1] == np.arange(len(order)) % wide).all())
    if not whole or len(np.unique(ordered[:, :-1], axis=0)) * wide != len(order):
        return None
    rows: pd.MultiIndex = index[order[::wide]]  # type: ignore[assignment]
    return rows.droplevel(-1), index[order[:wide]].get_level_values(-1), order


def _label_ranks(labels: pd.Index[Any]) -> Integers:
    """Return the rank of each label: bins and numbers by size, others in their order, nulls last."""
    codes, uniques = pd.factorize(labels, use_na_sentinel=True)
    edges = [pair for label in uniques if (pair := edges_of(label)) is not None]
    order = np.arange(len(uniques))
    if edges and len(edges) == len(uniques):
        order = np.array(sorted(range(len(edges)), key=edges.__getitem__))
    elif uniques.size and all(isinstance(label, int | float | np.number) for label in uniques):
        order = np.argsort(np.asarray(uniques, dtype=np.float64), kind="stable")
    ranks = np.empty(len(uniques), dtype=np.int64)
    ranks[order] = np.arange(len(uniques))
    return np.where(codes < 0, len(uniques), ranks[codes])


def draw_table(cube: Cube, ax: Axes | None) -> Any:
    """Draw counts or shares by colour, with the numbers if they fit, and their margin of error."""
    grid = grid_of(cube)
    if grid is None:
        return draw_counts(cube, ax)
    canvas = Canvas.of(ax, _size(grid), grid="")
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    inner = grid.values[~grid.sums & np.isfinite(grid.values)]
    colours = LinearSegmentedColormap.from_list("counts", SHADES).with_extremes(under=UNDER, bad=NOTHING)
    norm = Normalize(0, float(inner.max(initial=0)) or 1.0)
    quantity = "share" if cube.view.facts.normalize else "count"
    whole = cube.view.whole
    noise = f"each {quantity} {span(grid.half[~grid.sums], whole)}: {cube.noise}"
    if grid.sums.any():
        noise += f"; sums {span(grid.half[grid.sums], whole)}"
    return _paint(canvas, grid, cube, norm, colours, noise)


def draw_matrix(cube: Cube, ax: Axes | None) -> Any:
    """Draw covariances or correlations by colour around 0; without numbers, negative ones are lined."""
    grid = grid_of(cube)
    assert grid is not None
    canvas = Canvas.of(ax, _size(grid, square=True), grid="")
    from matplotlib.colors import LinearSegmentedColormap, Normalize, SymLogNorm

    known = np.abs(grid.values[np.isfinite(grid.values)])
    most = float(known.max(initial=0)) or 1.0
    ends = [*NEGATIVE, "#FFFFFF", *POSITIVE]
    colours = LinearSegmentedColormap.from_list("signed", ends).with_extremes(bad=NOTHING)
    norm: Any = Normalize(-1, 1)
    if cube.view.facts.statistic != "corr":
        least = float(known[known > 0].min(initial=most))
        norm = Normalize(-most, most) if most < 30 * least else SymLogNorm(least, vmin=-most, vmax=most)
    noise = f"each {span(grid.half[grid.half > 0])}: {cube.noise}"
    return _paint(canvas, grid, cube, norm, colours, noise, signed=True)


def _size(grid: HeatMap, square: bool = False) -> tuple[float, float]:
    """Return the size of a figure, in inches."""
    rows, columns = grid.values.shape
    width = float(np.clip(2.6 + 0.65 * columns, 4.8, 14))
    return width, float(np.clip(1.6 + (0.6 if square else 0.32) * rows, 2.6, 16))


def _paint(
    canvas: Canvas, grid: HeatMap, cube: Cube, norm: Any, colours: Any, noise: str, signed: bool = False
) -> Any:
    """Draw the cells by colour with their numbers, the colour bar, title, notes and labels."""
    on = canvas.ax
    masked = np.ma.masked_array(grid.values, mask=grid.sums | ~np.isfinite(grid.values))
    image = on.imshow(masked, cmap=colours, norm=norm, aspect="auto", interpolation="nearest")
    on.spines[:].set_visible(False)
    on.tick_params(length=0)
    _lines(on, grid)
    _key(canvas, image, "" if signed else "share" if cube.view.facts.normalize else "records")
    within = grid.within
    if within.any():
        few = within.sum() <= MOST_HATCHED
        noise += f"; {WITHIN if few else 'too many cells are within the margin of error of 0 to hatch them'}"
    notes = cube.notes(noise)
    if grid.many > 1:
        notes.insert(1, "in brackets: the release")
    align = canvas.entitle(cube.view.title, notes)
    canvas.label(names_of(grid.columns), names_of(grid.rows), canvas.points)
    for _ in range(3):  # labels below take room from those beside, and the other way round
        before = on.bbox.bounds
        canvas.rows([label_of(label, 28) for label in grid.rows])
        canvas.columns(grid.labels())
        canvas.lay_out()
        if np.allclose(before, on.bbox.bounds, atol=1):
            break
    texts = _cell_texts(grid, cube, alike=not signed) if grid.values.size <= MOST_WRITTEN else []
    size = _fitting(canvas, grid, texts) if texts else None
    if size is not None:
        _write(on, grid, texts, size, lambda value: colours(norm(value)))
    _hatch(on, within, "//////", "0.65" if size is None else "0.8")
    if signed and size is None:
        _hatch(on, grid.values < 0, "---", "0.2")
    align()
    return on


def _lines(ax: Any, grid: HeatMap) -> None:
    """Draw white lines between cells, and dark ones before sums and between releases."""
    from matplotlib.collections import LineCollection

    rows, columns = grid.values.shape
    if max(rows, columns) <= 80:
        down = [[(column - 0.5, -0.5), (column - 0.5, rows - 0.5)] for column in range(1, columns)]
        along = [[(-0.5, row - 0.5), (columns - 0.5, row - 0.5)] for row in range(1, rows)]
        ax.add_collection(LineCollection([*down, *along], colors="white", linewidths=0.8), autolim=False)
    each, sums = columns // grid.many, np.asarray(grid.sums.all(axis=0))
    for column in range(each, columns, each):
        ax.axvline(column - 0.5, color="0.2", linewidth=1.6)
    for first in np.flatnonzero(sums[1:] & ~sums[:-1]):
        ax.axvline(first + 0.5, color="0.2", linewidth=0.8)
    if rows > 1 and grid.sums[-1].all():
        ax.axhline(rows - 1.5, color="0.2", linewidth=0.8)


def _key(canvas: Canvas, image: Any, label: str) -> None:
    """Draw the colour bar beside the axes."""
    size, beside = 0.9 * canvas.points, canvas.beside()
    below = bool(image.norm.vmin == 0 and (image.get_array().compressed() < 0).any())
    bar = canvas.ax.figure.colorbar(image, cax=beside, extend="min" if below else "neither")
    bar.outline.set_visible(False)
    beside.tick_params(labelsize=size, length=2)
    bar.set_ticks(_ticks(image.norm, max(int(canvas.height / (4 * size)), 1)), minor=False)
    bar.set_ticks([], minor=True)
    beside.yaxis.set_major_formatter(lambda value, _: plain(float(value)))
    bar.set_label(label, fontsize=size)


def _ticks(norm: Any, most: int) -> Floats:
    """Return round numbers of a colour scale; of a log scale on both sides of 0."""
    threshold = getattr(norm, "linthresh", None)
    if threshold is None:
        return linear_ticks(norm.vmin, norm.vmax, most)
    above = log_ticks(threshold, norm.vmax, max(most // 2, 1))
    return np.concatenate([-above[::-1], [0.0], above])


def _cell_texts(grid: HeatMap, cube: Cube, alike: bool) -> list[str]:
    """Return the numbers of the cells row by row; ``alike``: with equally many digits."""
    halves = grid.half
    if alike:
        known = halves[np.isfinite(halves) & (halves > 0)]
        halves = np.full(halves.shape, np.median(known) if known.size else np.nan)
    return [cube.text(value, half) for value, half in zip(grid.values.flat, halves.flat, strict=True)]


def _fitting(canvas: Canvas, grid: HeatMap, texts: list[str]) -> float | None:
    """Return the font size in which all numbers fit into their cells; None if no readable size does."""
    rows, columns = grid.values.shape
    large, box = canvas.points, canvas.ax.bbox
    wide, high = canvas.size_of(max(texts, key=len), large)
    size = large * min(1.0, 0.9 * box.width / columns / wide, 0.8 * box.height / rows / high)
    return float(size) if size >= SMALLEST else None


def _write(ax: Any, grid: HeatMap, texts: list[str], size: float, colour: Callable[[float], Any]) -> None:
    """Write the numbers into their cells, dark on light and light on dark, those within the noise paler."""
    from matplotlib.patheffects import withStroke

    within, columns = grid.within, grid.values.shape[1]
    for index, text in enumerate(texts):
        row, column = divmod(index, columns)
        bare = bool(grid.sums[row, column]) or not np.isfinite(grid.values[row, column])
        behind = (1.0, 1.0, 1.0) if bare else colour(float(grid.values[row, column]))[:3]
        light = luminance(behind)
        shade = "black" if light > 0.18 else "white"  # where both can be read as well
        written = ax.text(column, row, text, ha="center", va="center", fontsize=size, color=shade, zorder=4)
        written.set_in_layout(False)  # measured already
        if within[row, column]:
            written.set_color("0.35" if light > 0.7 else shade)
            written.set_path_effects([withStroke(linewidth=2, foreground=behind)])


def _hatch(ax: Any, cells: Mask, hatch: str, colour: str) -> None:
    """Hatch these cells."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    rows, columns = np.nonzero(cells)
    corners = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5), (-0.5, -0.5)])
    if not 0 < len(rows) <= MOST_HATCHED:
        return
    squares = np.column_stack([columns, rows])[:, None, :] + corners
    codes = np.tile([Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY], len(rows))
    lined = PathPatch(
        Path(squares.reshape(-1, 2), codes),
        facecolor="none",
        edgecolor=colour,
        hatch=hatch,
        linewidth=0,
        zorder=3,
    )
    lined.set_in_layout(False)
    ax.add_artist(lined)  # does not move the limits
