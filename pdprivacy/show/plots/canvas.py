"""The canvas of a plot: axes, title, notes, labels, ticks and texts that stay readable in little room.

matplotlib is imported when something is drawn; none of its settings is changed.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pdprivacy.errors import MetadataError, MissingExtraError, ParameterError, got
from pdprivacy.text.numbers import plain, printable, short, tick_texts
from pdprivacy.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARK = "CONFIDENTIAL: made of exact counts"
POINTS = 8.5  # the size of what is written into a picture, where that is wide enough
NUMBERS = 17.0  # points under each of several axes, for the numbers of its scale
NAME = 14.0  # points above each, for its name
LEAST = 5.0  # the smallest type of the labels of rows and columns

# Colours of Okabe and Ito; dashes, markers and hatches tell the same things apart in grey.
ORDERS = (
    ("#0072B2", "--", "o", ""),
    ("#E69F00", "-.", "s", "///"),
    ("#009E73", (0, (3, 1, 1, 1, 1, 1)), "^", "..."),
    ("#CC79A7", (0, (6, 1)), "v", "xxx"),
    ("#56B4E9", (0, (2, 1)), "D", "+++"),
)


class Canvas:
    """Axes to draw on, and their texts.

    ``dot``: the pixels of a point. Sizes of type, and ``height`` and ``width`` of the axes, are in points.
    """

    def __init__(self, ax: Any) -> None:
        self.ax = ax

    @classmethod
    def of(
        cls, ax: Axes | None, size: tuple[float, float] | None = None, grid: Literal["x", "y", ""] = "y"
    ) -> Canvas:
        """Return the canvas of ``ax``, or of the axes of a new figure of this size in inches.

        ``grid``: which of its axes has grid lines.

        Raises ParameterError for something else than axes, MissingExtraError without matplotlib.
        """
        try:
            import matplotlib.axes
        except ModuleNotFoundError:
            raise MissingExtraError(
                "A picture needs matplotlib, which is not installed.", 'pip install "pdprivacy[plot]"'
            ) from None
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots(figsize=size, layout="constrained")
        if not isinstance(ax, matplotlib.axes.Axes):
            raise ParameterError(
                f"'ax' must be the axes of a matplotlib figure (got {got(ax)}).",
                "ax=plt.figure().subplots()",
            )
        canvas = cls(ax)
        canvas.frame(grid)
        return canvas

    def frame(self, grid: Literal["x", "y", ""], *more: str) -> None:
        """Hide the frame at the top, on the right and at ``more`` sides; draw grid lines below the rest."""
        self.ax.spines[["top", "right", *more]].set_visible(False)
        if grid:
            self.ax.grid(axis=grid, color="0.92")
        self.ax.set_axisbelow(True)

    # ------------------------------------------------------------ sizes

    @property
    def dot(self) -> float:
        """The pixels of a point."""
        return float(self.ax.figure.dpi / 72)

    @property
    def height(self) -> float:
        """The height of the axes."""
        return float(self.ax.bbox.height / self.dot)

    @property
    def width(self) -> float:
        """The width of the axes."""
        return float(self.ax.bbox.width / self.dot)

    @property
    def points(self) -> float:
        """The size of type: smaller if the axes have a narrow part of the figure."""
        spec, width = self.ax.get_subplotspec(), self.ax.bbox.width / 0.75
        if spec is not None:
            width = self.ax.figure.bbox.width * len(spec.colspan) / spec.get_gridspec().ncols
        return float(POINTS * np.clip(width / self.dot / 400, 0.76, 1.0))

    def letters(self, share: float, least: int) -> int:
        """Return how many letters of a label take this share of the width of the figure."""
        room = share * self.ax.figure.bbox.width / self.dot
        return int(np.clip(room / (0.55 * self.points), least, 60))

    def size_of(self, text: str, size: float) -> tuple[float, float]:
        """Return the width and height of a text, in pixels."""
        probe = self.ax.text(0, 0, text, fontsize=size, parse_math=False)
        box = probe.get_window_extent()
        probe.remove()
        return float(box.width), float(box.height)

    def pixel(self, x: float, y: float) -> tuple[float, float]:
        """Return where a place of the data is drawn, in pixels."""
        right, up = self.ax.transData.transform((x, y))
        return float(right), float(up)

    # ------------------------------------------------------------ layout

    def lay_out(self) -> None:
        """Lay out the figure, so that sizes can be measured; fit axes that are alone without an engine."""
        figure = self.ax.figure.canvas.figure
        engine = figure.get_layout_engine()
        if engine is not None:
            engine.execute(figure)
        elif figure.axes == [self.ax] and self.ax.get_subplotspec() is not None:
            self._fit(figure)

    def _fit(self, figure: Any) -> None:
        """Widen the margins for text beside the only axes that would be cut off."""
        # title and labels are broken to the width that there is: their own width asks for no room
        box, whole, space = self.ax.get_tightbbox(for_layout_only=True), figure.bbox, 3 * self.dot
        now = figure.subplotpars
        sides = [whole.x0 - box.x0, box.x1 - whole.x1, whole.y0 - box.y0, box.y1 - whole.y1]
        beyond = np.array(sides) + space
        if (beyond <= 0).all():
            return
        before, after, under, over = np.maximum(beyond, 0)
        left, right = now.left + before / whole.width, now.right - after / whole.width
        bottom, top = now.bottom + under / whole.height, now.top - over / whole.height
        if left < right and bottom < top:
            figure.subplots_adjust(left=left, right=right, bottom=bottom, top=top)

    def inset(self, extents: Callable[[], tuple[float, float, float, float]], at: Sequence[float]) -> Any:
        """Return axes within these axes, laid out anew each time they are drawn.

        ``extents`` returns left, bottom, right and top in pixels; ``at``: those before the first layout.
        """
        from matplotlib.transforms import Bbox

        part = self.ax.inset_axes(at)
        part.set_axes_locator(
            lambda axes, _: Bbox.from_extents(*extents()).transformed(axes.figure.transSubfigure.inverted())
        )
        return part

    def below_each_other(self, weights: Sequence[float], *, titled: bool = False) -> list[Canvas]:
        """Return canvases that share the place of this, with heights by weight; its axes become invisible."""
        shares = np.array(weights, dtype=np.float64) / sum(weights)
        before = np.concatenate([[0.0], np.cumsum(shares)[:-1]])
        above, under = NAME * titled, NUMBERS
        self.ax.set_axis_off()

        def place(number: int) -> tuple[float, float, float, float]:
            box, dot, count = self.ax.bbox, self.dot, len(weights)
            free = max(box.height - (count * above + (count - 1) * under) * dot, 0.2 * box.height)
            top = box.y1 - before[number] * free - ((number + 1) * above + number * under) * dot
            return box.x0, top - shares[number] * free, box.x1, top

        parts = []
        for number in range(len(weights)):
            part = self.inset(partial(place, number), [0, 0, 1, 1])
            part.apply_aspect(part.get_axes_locator()(part, None))
            parts.append(Canvas(part))
        return parts

    def beside(self) -> Any:
        """Return narrow axes to the right, with the same height."""

        def place() -> tuple[float, float, float, float]:
            box, dot = self.ax.bbox, self.dot
            return box.x1 + 7 * dot, box.y0, box.x1 + 15 * dot, box.y1

        return self.inset(place, [1, 0, 0.1, 1])

    # ------------------------------------------------------------ title, labels, legend, texts

    def entitle(self, title: str, notes: Sequence[str]) -> Callable[[], None]:
        """Write a title, and notes in smaller type under it, above the axes, aligned with its labels.

        Returns a function that aligns them again, after labels were added.
        """
        from matplotlib.transforms import ScaledTranslation

        ax, dot, small = self.ax, self.dot, self.points
        printable_notes = [printable(note, 200) for note in notes if note]
        under = self.write("", (0, 1), (0, 5), over="axes fraction", size=small, color="0.3", va="bottom")
        under.set_linespacing(1.15)
        under.set_in_layout(False)  # the title's pad has room for it, and its width takes none from the axes

        def align(again: bool = False) -> None:
            self.lay_out()
            box = ax.get_tightbbox(for_layout_only=True)
            left = min(box.x0, ax.bbox.x0)
            width = min(max(box.x1, ax.bbox.x1), ax.figure.bbox.x1 - 3 * dot) - left
            under.set_text("\n".join(self._wrapped(note, width, small) for note in printable_notes))
            under.set_x((left - ax.bbox.x0) / dot)
            above = ax.set_title(
                self._wrapped(title, width, small + 2), loc="left", fontsize=small + 2, parse_math=False,
                pad=9 + under.get_window_extent().height / dot,
            )  # fmt: skip
            shift = ScaledTranslation((left - ax.bbox.x0) / ax.figure.dpi, 0, ax.figure.dpi_scale_trans)
            above.set_transform(ax.transAxes + ax.titleOffsetTrans + shift)
            if (
                again or ax.figure.canvas.figure.get_layout_engine() is None
            ):  # else it is done when it is drawn
                self.lay_out()

        align(again=True)
        return align

    def _wrapped(self, text: str, width: float, size: float, most: int = 3) -> str:
        """Break a text into lines of ``width`` pixels, cut after ``most`` lines."""
        whole = self.size_of(text, size)[0]
        if whole <= width:
            return text
        letters = max(int(len(text) * width / whole), 8)
        joined = text.replace(" %", "\u00a0%").replace("± ", "±\u00a0")  # stay together
        while True:
            lines = [line.replace("\u00a0", " ") for line in textwrap.wrap(joined, letters)]
            if len(lines) > most:
                lines = [*lines[: most - 1], lines[most - 1][: max(letters - 1, 1)] + "…"]
            if letters <= 8 or self.size_of("\n".join(lines), size)[0] <= width:
                return "\n".join(lines)
            letters -= 1

    def name(self, name: str) -> None:
        """Write the name of one of several axes above it."""
        self.ax.set_title(name, loc="left", fontsize=self.points, pad=2, parse_math=False)

    def label(self, below: str, beside: str, size: float | None = None) -> None:
        """Label the axes, with line breaks if they are short; then lay out the figure."""
        for text, label, side in (
            (below, self.ax.xaxis.label, "width"),
            (beside, self.ax.yaxis.label, "height"),
        ):
            if size is not None:
                label.set_size(size)
            self._broken(text, label, side)
        self.lay_out()

    def _broken(self, text: str, label: Any, side: str) -> None:
        """Write a label of an axis with the line breaks that it needs; cut it if there is no room at all."""

        def is_long() -> bool:
            return bool(getattr(label.get_window_extent(), side) > getattr(self.ax.bbox, side))

        label.set_text(text)
        for width in (26, 16):
            if not is_long():
                break
            parts = text.replace(" (", "\n(").split("\n")
            label.set_text("\n".join(textwrap.fill(part, width) for part in parts))
        longest = max(map(len, label.get_text().split("\n")), default=0)
        while longest > 4 and is_long():
            longest -= 1
            label.set_text("\n".join(printable(part, longest) for part in text.split("\n")))

    def legend(
        self, handles: Sequence[Any], names: Sequence[str], at: tuple[float, float], down: float, **more: Any
    ) -> Any:
        """Write a legend as wide as the axes, from a corner of them and so many points below it."""
        from matplotlib.transforms import offset_copy

        under = offset_copy(self.ax.transAxes, self.ax.figure, y=-down, units="points")
        legend: Any = None
        for columns in range(len(handles), 0, -1):
            legend = self.ax.legend(
                handles, names, ncols=columns, loc="upper left", bbox_to_anchor=at, bbox_transform=under,
                fontsize=self.points, frameon=False, borderaxespad=0, handlelength=2.8, columnspacing=1.2,
                **more,
            )  # fmt: skip
            if legend.get_window_extent().width <= self.ax.bbox.width:
                break
        return legend

    def write(
        self,
        text: str,
        at: tuple[float, float],
        shift: tuple[float, float] = (0, 0),
        *,
        over: Any = "data",
        size: float | None = None,
        **look: Any,
    ) -> Any:
        """Write a text at a place, moved by so many points; ``over``: the coordinates of the place."""
        look = {"ha": "left", "va": "center", "color": "0.2", "parse_math": False, **look}
        points = self.points if size is None else size
        return self.ax.annotate(
            text, at, xytext=shift, xycoords=over, textcoords="offset points", fontsize=points, **look
        )

    # ------------------------------------------------------------ ticks

    def log_epsilon(self, epsilon: Floats) -> None:
        """Set a log axis of epsilon with plain numbers, as wide as the rows."""
        from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullFormatter

        self.ax.set_xscale("log")
        axis = self.ax.xaxis
        if epsilon[0] == epsilon[-1]:
            axis.set_major_locator(FixedLocator([epsilon[0]]))
        else:
            self.ax.set_xlim(epsilon[0], epsilon[-1])
            if epsilon[-1] < 100 * epsilon[0]:  # powers of ten alone would be too few
                tight = epsilon[-1] < 10 * epsilon[0]
                axis.set_major_locator(MaxNLocator(5) if tight else LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(lambda value, _: short(value))
        axis.set_minor_formatter(NullFormatter())

    def scale(
        self,
        low: float,
        high: float,
        at: Sequence[float] = (),
        labels: Sequence[str] = (),
        dates: Callable[[float, float, int], tuple[Floats, list[str]]] | None = None,
    ) -> None:
        """Set a horizontal axis from ``low`` to ``high``, with as many ticks as there is room for.

        ``at``: preferred ticks, such as the edges of bins, with their labels. ``dates``: what gives ticks in
        the place of round numbers.
        """
        self.ax.set_xlim(low, high)
        size = 0.9 * self.points
        self.ax.tick_params(axis="x", length=2.5, pad=2, labelsize=size)
        trials = [(np.array(at), list(labels))] if len(at) else []
        for most in range(7, 0, -1):
            ticks = linear_ticks(low, high, most)
            trials.append((ticks, tick_texts(ticks)) if dates is None else dates(low, high, most))
        for ticks, texts in trials:
            widths = np.array([self.size_of(text, size)[0] + 9 for text in texts])
            positions = self.ax.transData.transform(np.column_stack([ticks, np.zeros(len(ticks))]))[:, 0]
            if ticks.size and (np.diff(positions) >= (widths[1:] + widths[:-1]) / 2).all():
                self.ax.set_xticks(ticks, texts, fontsize=size)
                return
        self.ax.set_xticks([])

    def upright(self, ticks: Floats) -> None:
        """Set these ticks on the axis on the left."""
        from matplotlib.ticker import NullLocator

        self.ax.yaxis.set_minor_locator(NullLocator())
        self.ax.set_yticks(ticks, [plain(float(tick)) for tick in ticks], fontsize=0.9 * self.points)

    def percent(self) -> None:
        """Write the shares on the axis on the left in percent."""
        self.ax.yaxis.set_major_formatter(lambda share, _: f"{short(100 * share)} %")

    def rows(self, labels: Sequence[str]) -> None:
        """Label the rows 0, 1, ... beside the axes; in smaller type, and not all, if there is little room."""
        shown, size = self._thinned(len(labels), self.height)
        self.ax.set_yticks(list(shown), [labels[row] for row in shown], fontsize=size, parse_math=False)

    def columns(self, labels: Sequence[str]) -> None:
        """Label the columns 0, 1, ... below the axes; if there is little room, upright and then as `rows`."""
        widest = max(self.size_of(label, self.points)[0] for label in labels) if len(labels) <= 60 else np.inf
        shown, size, turn = range(len(labels)), self.points, 0
        if widest + 4 > self.ax.bbox.width / len(labels):
            (shown, size), turn = self._thinned(len(labels), self.width), 90
        texts = [labels[column] for column in shown]
        self.ax.set_xticks(list(shown), texts, fontsize=size, rotation=turn, parse_math=False)

    def _thinned(self, count: int, room: float) -> tuple[range, float]:
        """Return which of many labels there is room for, and in which size."""
        each = room / count
        size = float(np.clip(0.85 * each, LEAST, self.points))
        return range(0, count, max(1, math.ceil(1.15 * size / each))), size


def linear_ticks(low: float, high: float, most: int) -> Floats:
    """Return at most ``most`` round numbers from ``low`` to ``high``."""
    ticks = round_numbers(low, high, most)
    return ticks[(ticks >= low - 1e-9 * (high - low)) & (ticks <= high + 1e-9 * (high - low))]


def round_numbers(low: float, high: float, most: int) -> Floats:
    """Return round numbers that cover ``low`` to ``high`` in at most ``most`` steps."""
    from matplotlib.ticker import MaxNLocator

    return np.array(MaxNLocator(nbins=max(most, 1), steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))


def log_ticks(low: float, high: float, most: int) -> Floats:
    """Return about ``most`` numbers such as 1, 2, 5 or powers of ten from ``low`` to ``high``."""
    decades = np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for every, digits in (
        (1, (1, 2, 5)),
        (1, (1, 3)),
        *((step, (1,)) for step in range(1, len(decades) + 1)),
    ):
        ticks = np.array([digit * 10.0**power for power in decades[::every] for digit in digits])
        ticks = ticks[(ticks >= low) & (ticks <= high)]
        if len(ticks) <= most and ticks.size:
            return ticks
    return np.array([low, high])


def mixed(colour: str, white: float) -> tuple[float, float, float]:
    """Return a colour mixed with a share of white."""
    from matplotlib.colors import to_rgb

    red, green, blue = (part + (1 - part) * white for part in to_rgb(colour))
    return red, green, blue


def luminance(colour: Sequence[float]) -> float:
    """Return the luminance of a colour, from 0 to 1 (sRGB)."""
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    return float(np.dot(parts, (0.2126, 0.7152, 0.0722)))


def changed(kind: str, requirement: str, instead: str) -> MetadataError:
    """Return the error for a marked frame whose rows or columns are not those that it was made with."""
    return MetadataError(
        f"The frame is marked as {kind}, but its rows or columns were changed: {requirement}.", instead
    )


# ---------------------------------------------------------------- ticks of dates, in seconds since 1970

FIRST_DATE, LAST_DATE = -62_135_510_400.0, 253_402_128_000.0
"""The seconds of a day in the year 1 and of one in 9999."""

DATE_STEPS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("s", (1, 5, 15, 30)),
    ("m", (1, 5, 15, 30)),
    ("h", (1, 3, 6, 12)),
    ("D", (1, 2, 7, 14)),
    ("M", (1, 2, 3, 6)),
    ("Y", (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000)),
)
"""The units of ticks, and how many of them may lie between two ticks."""


def date_ticks(low: float, high: float, most: int) -> tuple[Floats, list[str]]:
    """Return at most ``most`` dates from ``low`` to ``high``, with texts as short as they can be.

    >>> date_ticks(0.0, 100 * 86_400.0, 4)[1]
    ['1970-01', '1970-02', '1970-03', '1970-04']
    """
    low, high = math.ceil(max(low, FIRST_DATE)), math.floor(min(high, LAST_DATE))
    ends = np.array([low, high], dtype="datetime64[s]")
    for unit, steps in DATE_STEPS:
        first, last = ends.astype(f"datetime64[{unit}]").astype(np.int64)
        for step in steps:
            if (last - first) // step > most + 1:
                continue
            since = 1970 if unit == "Y" else 0  # round years
            start = -(-(first + since) // step) * step - since
            ticks = np.arange(start, last + 1, step).astype(f"datetime64[{unit}]")
            dates = ticks.astype("datetime64[s]")
            dates = dates[(dates >= ends[0]) & (dates <= ends[1])]
            if len(dates) <= most:
                shown = dates.astype("datetime64[m]" if unit == "h" else ticks.dtype)
                return dates.astype(np.float64), [str(date).replace("T", " ") for date in shown]
    return np.array([]), []
