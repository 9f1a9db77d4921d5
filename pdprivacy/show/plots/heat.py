"""Heat maps of tables of counts, and of covariances and correlations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.show.numbers import plain, span
from pdprivacy.show.plots.canvas import Canvas, linear_ticks, log_ticks, luminance
from pdprivacy.show.plots.charts import WITHIN, draw_counts
from pdprivacy.show.plots.cube import Cube, edges_of, label_of, names_of, within_noise
from pdprivacy.show.view import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHADES = ("#FFFFFF", "#9ECAE8", "#0072B2", "#00304B")
NEGATIVE, POSITIVE = ("#004C77", "#3D9BD1", "#B5DAF0"), ("#F5C99B", "#D55E00", "#6B2F00")
UNDER, NOTHING = "#EAE2C8", "#EFEFEF"
MOST_WRITTEN = 2000
MOST_HATCHED = 20_000
SMALLEST = 4.5  # points of a number in a cell


@dataclass(frozen=True)
class HeatMap:
    """A table as it is drawn, (R, C * M), the releases side by side; ``sums``: which cells are sums."""

    rows: pd.Index[Any]
    columns: pd.Index[Any]
    values: Floats
    half: Floats
    sums: NDArray[np.bool_]
    many: int

    @property
    def within(self) -> NDArray[np.bool_]:
        """Whether the interval of each number contains 0."""
        return within_noise(self.values, self.half)

    def labels(self) -> list[str]:
        """Return the column labels, release by release."""
        names = [label_of(label, 24) for label in self.columns]
        if self.many == 1:
            return names
        return [f"{name} ({release})" for release in range(1, self.many + 1) for name in names]


def grid_of(cube: Cube) -> HeatMap | None:
    """Return the table of a release; the last level of a Series as columns. None if cells are missing."""
    rows, columns = cube.rows, cube.columns
    values, half = cube.values, cube.half
    if columns is None:
        found = _pivoted(rows)
        if found is None:
            return None
        rows, columns, order = found
        shape = (len(rows), len(columns), cube.many)
        values, half = (numbers[order, 0].reshape(shape) for numbers in (values, half))
    sums = np.zeros(values.shape, dtype=bool)
    facts = cube.view.facts
    if facts.margins:
        sums[-1:] |= facts.normalize != "columns"
        sums[:, -1:] |= facts.normalize != "index"

    def flat(numbers: NDArray[Any]) -> NDArray[Any]:
        return numbers.transpose(0, 2, 1).reshape(len(rows), -1)

    return HeatMap(rows, columns, flat(values), flat(half), flat(sums), cube.many)


def _pivoted(index: pd.Index[Any]) -> tuple[pd.Index[Any], pd.Index[Any], NDArray[np.int64]] | None:
    """Return the last level as columns, the others as rows, and the order of cells; None if some lack."""
    ranks = np.column_stack([_ranked(index.get_level_values(level)) for level in range(index.nlevels)])
    order = np.lexsort(ranks.T[::-1])
    wide = int(ranks[:, -1].max()) + 1
    ordered = ranks[order]
    whole = len(order) % wide == 0 and bool((ordered[:, -1] == np.arange(len(order)) % wide).all())
    if not whole or len(np.unique(ordered[:, :-1], axis=0)) * wide != len(order):
        return None
    rows: pd.MultiIndex = index[order[::wide]]  # type: ignore[assignment]
    return rows.droplevel(-1), index[order[:wide]].get_level_values(-1), order


def _ranked(labels: pd.Index[Any]) -> NDArray[np.int64]:
    """Return the rank of each label: bins and numbers by size, others in their order, nulls last."""
    codes, found = pd.factorize(labels, use_na_sentinel=True)
    edges = [pair for label in found if (pair := edges_of(label)) is not None]
    order = np.arange(len(found))
    if edges and len(edges) == len(found):
        order = np.array(sorted(range(len(edges)), key=edges.__getitem__))
    elif found.size and all(isinstance(label, int | float | np.number) for label in found):
        order = np.argsort(np.asarray(found, dtype=np.float64), kind="stable")
    places = np.empty(len(found), dtype=np.int64)
    places[order] = np.arange(len(found))
    return np.where(codes < 0, len(found), places[codes])


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
    one = "share" if cube.view.facts.normalize else "count"
    whole = cube.view.whole
    noise = f"each {one} {span(grid.half[~grid.sums], whole)}: {cube.noise}"
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
    shown = np.ma.masked_array(grid.values, mask=grid.sums | ~np.isfinite(grid.values))
    image = on.imshow(shown, cmap=colours, norm=norm, aspect="auto", interpolation="nearest")
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
        canvas.settle()
        if np.allclose(before, on.bbox.bounds, atol=1):
            break
    texts = _written(grid, cube, alike=not signed) if grid.values.size <= MOST_WRITTEN else []
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


def _written(grid: HeatMap, cube: Cube, alike: bool) -> list[str]:
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
    for place, text in enumerate(texts):
        row, column = divmod(place, columns)
        bare = bool(grid.sums[row, column]) or not np.isfinite(grid.values[row, column])
        behind = (1.0, 1.0, 1.0) if bare else colour(float(grid.values[row, column]))[:3]
        light = luminance(behind)
        shade = "black" if light > 0.18 else "white"  # where both can be read as well
        said = ax.text(column, row, text, ha="center", va="center", fontsize=size, color=shade, zorder=4)
        said.set_in_layout(False)  # measured already
        if within[row, column]:
            said.set_color("0.35" if light > 0.7 else shade)
            said.set_path_effects([withStroke(linewidth=2, foreground=behind)])


def _hatch(ax: Any, cells: NDArray[np.bool_], hatch: str, colour: str) -> None:
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
