"""Plots of released numbers and counts (`canvas`), against the released objects."""

from __future__ import annotations

import re
import sys
import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

import pdprivacy  # noqa: F401 - registers the accessor
from pdprivacy import Column, Domain
from pdprivacy.errors import MetadataError, MissingExtraError, OpaqueFrameError, ParameterError
from pdprivacy.show import plots
from pdprivacy.show.plots.canvas import luminance
from pdprivacy.show.plots.charts import edges_of, label_of
from pdprivacy.text.numbers import half_width, paired, printable, span
from tests.support.pictures import check_texts

if find_spec("matplotlib") is None:
    pytest.skip("pictures need matplotlib", allow_module_level=True)
with warnings.catch_warnings():
    # what an older matplotlib uses of its own dependencies is not ours
    warnings.simplefilter("ignore", DeprecationWarning)
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import to_rgb
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

LONG = "text $x$ and a long name"
ROWS = 600
PLACES = np.arange(ROWS)
FRAME = pd.DataFrame(
    {
        "age": 20.0 + PLACES % 41,
        "income": 1e5 * (1 + PLACES % 7),
        "region": np.array(["north", "south", "east"], dtype=object)[PLACES % 3],
        "rare": np.where(PLACES < 4, "rare", "often").astype(object),
        "year": 1.0 * (PLACES % 10),
        "gap": np.where(PLACES % 5 == 0, np.nan, 1.0 * (PLACES % 8)),
        LONG: "a\nb",
    }
)
DOMAIN = Domain(
    (
        Column("age", "float", lower=16, upper=65, bins=(16, 30, 45, 65)),
        Column("income", "float", lower=0, upper=1e6),
        Column("region", "category", categories=("north", "south", "east", "west")),
        Column("rare", "category", categories=("rare", "often", "never")),
        Column("year", "float", lower=-1, upper=10.5),
        Column("gap", "float", nullable=True, lower=-1, upper=9, bins=(-1, 4, 9)),
        Column(LONG, "category", categories=("a\nb", "$c$ " * 20)),
    )
)


@pytest.fixture(autouse=True)
def closed():
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def private():
    return FRAME.dp.protect(DOMAIN, epsilon=10**6)


def laid(released, size=(6.4, 4.8)):
    """The axes of a picture on a figure without a layout, which is quick."""
    return released.dp.plot(ax=Figure(figsize=size).subplots())


def said(ax):
    """All that stands above the axes, on one line."""
    return " ".join(
        text for text in [ax.get_title(loc="left"), *(artist.get_text() for artist in ax.texts)]
    ).replace("\n", " ")


def panels(ax):
    """The axes that hold numbers."""
    return ax.child_axes or [ax]


def bars(ax):
    """The intervals in an axes, (N, 2), and the points, (N, 2) of x and y."""
    ends = np.array([segment for lines in ax.collections for segment in lines.get_segments()])
    (points,) = (line for line in ax.get_lines() if line.get_marker() == "o")
    return ends[:, :, 0], points.get_xydata()


def rectangles(ax):
    """The bars as left, bottom, width and height."""
    return np.array([(*patch.get_xy(), patch.get_width(), patch.get_height()) for patch in ax.patches])


# ---------------------------------------------------------------- numbers


NUMBERS = {
    "one mean": lambda dp: dp.mean("age", epsilon=1),
    "means": lambda dp: dp.mean(["age", "income", "year"], epsilon=1),
    "sums": lambda dp: dp.sum(["age", "income"], epsilon=1),
    "variances": lambda dp: dp.var(["age", "income"], epsilon=5, bounding="clamp"),
    "a share": lambda dp: dp.proportion("region", "north", epsilon=1),
    "counts": lambda dp: dp.count(["age", "gap"], epsilon=1),
    "rows": lambda dp: dp.count(epsilon=1),
    "pooled": lambda dp: dp.pooled_var(["age", "year"], by="region", epsilon=5),
}


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("name", NUMBERS)
def test_points_and_bars_are_the_numbers_and_their_intervals(private, name):
    released = NUMBERS[name](private.dp)
    interval = released.dp.interval()
    drawn = [bars(ax) for ax in panels(laid(released))]
    ends, points = (np.concatenate(each) for each in zip(*drawn, strict=True))
    assert ends == pytest.approx(interval[["lower", "upper"]].to_numpy())
    assert points[:, 0] == pytest.approx(released.to_numpy())


@pytest.mark.full
def test_numbers_of_different_units_have_an_axis_each_and_of_one_unit_a_common_one(private):
    ax = laid(private.dp.mean(["age", "income", "year"], epsilon=1))
    assert len(ax.child_axes) == 3
    labels = [[label.get_text() for label in part.get_yticklabels()] for part in ax.child_axes]
    assert labels == [["age"], ["income"], ["year"]]
    for part, (lower, upper) in zip(
        ax.child_axes, (bars(child)[0][0] for child in ax.child_axes), strict=True
    ):
        low, high = part.get_xlim()
        assert low < lower < upper < high
        assert upper - lower > 0.5 * (high - low)  # seen, though income is 1e5 times as large
        assert len(part.get_xticks()) >= 2
    assert not laid(private.dp.count(["age", "gap"], epsilon=1)).child_axes


@pytest.mark.full
def test_groups_are_rows_and_columns_have_an_axis_each(private):
    released = private.dp.groupby("region").mean(["age", "income"], epsilon=5)
    interval = released.dp.interval()
    ax = laid(released)
    assert [part.get_title(loc="left") for part in ax.child_axes] == ["age", "income"]
    for part, column in zip(ax.child_axes, released, strict=True):
        ends, points = bars(part)
        assert ends == pytest.approx(interval[[("lower", column), ("upper", column)]].to_numpy())
        assert points == pytest.approx(np.column_stack([released[column], [0, 1, 2, 3]]))
        assert part.yaxis_inverted()  # the first group above
        assert [label.get_text() for label in part.get_yticklabels()] == released.index.tolist()
    assert "Mean of age and income by region" in said(ax)


@pytest.mark.full
def test_a_description_has_an_axis_per_number(private):
    released = private.dp.describe(["age", "year"], epsilon=5)
    ax = laid(released)
    names = [part.get_yticklabels()[0].get_text() for part in ax.child_axes]
    assert names == [
        f"{statistic} of {column}" for column in ("age", "year") for statistic in ("count", "mean", "std")
    ]
    points = [bars(part)[1][0, 0] for part in ax.child_axes]
    assert points == pytest.approx(released.to_numpy().T.ravel())


@pytest.mark.full
def test_several_releases_are_side_by_side(private):
    released = private.dp.mean(["age", "year"], epsilon=5, releases=3)
    ax = laid(released)
    for part, column in zip(ax.child_axes, released.index, strict=True):
        ends, points = bars(part)
        assert points[:, 0] == pytest.approx(released.loc[column].to_numpy())
        assert len(set(points[:, 1])) == 3
        assert np.abs(points[:, 1]).max() < 0.5
        interval = released.dp.interval()
        assert ends == pytest.approx(interval.loc[column, ["lower", "upper"]].to_numpy().reshape(2, 3).T)
    assert "3 releases together" in said(ax)


def test_the_picture_says_what_it_is(private):
    ax = laid(private.dp.query("age >= 30").dp.mean("income", epsilon=0.25))
    assert ax.get_title(loc="left") == "Mean of income"
    for text in ("epsilon 0.25, Laplace noise", "where age >= 30", "bars: 95 % margin of error, noise only"):
        assert text in said(ax)
    assert plots.MARK not in said(ax)
    assert "seeded" not in said(ax)
    assert "seeded: not private" in said(laid(private.dp.mean("age", epsilon=1, rng=1)))


def test_each_number_is_written_with_its_error(private):
    released = private.dp.mean("age", epsilon=1)
    half = float(released.attrs["dp"]["error"]["plus_minus"])
    (text,) = (artist.get_text() for artist in laid(released).texts if "±" in artist.get_text())
    value, error = (float(part) for part in text.split(" ± "))
    assert value == pytest.approx(released["age"], abs=half / 10)
    last_digit = 10.0 ** -len(text.partition(".")[2].partition(" ")[0])  # of the last digit
    assert half <= error <= half + 2 * last_digit  # rounded up, with what rounding moves the number
    share = private.dp.proportion("region", "north", epsilon=1)
    (text,) = (artist.get_text() for artist in laid(share).texts if "±" in artist.get_text())
    assert float(text.split(" ± ")[0]) == pytest.approx(share["north"], abs=0.005)


@pytest.mark.parametrize(
    "release",
    [
        lambda dp: dp.mean(["age", "income"], epsilon=1),
        lambda dp: dp.proportion("region", "north", epsilon=1),
        lambda dp: dp.groupby("region").mean(["age", "income"], epsilon=5),
        lambda dp: dp.describe("age", epsilon=5),
        lambda dp: dp.quantile("income", [0.25, 0.5], epsilon=5),
    ],
)
def test_numbers_are_written_as_at_the_prompt(private, release):
    released = release(private.dp)
    words = re.sub(" +", " ", repr(released.dp).replace(" ± ", "±"))
    ax = laid(released)
    texts = [artist.get_text() for part in (ax, *ax.child_axes) for artist in part.texts if artist.get_text()]
    numbers = [text.replace(" ± ", "±") for text in texts if re.match(r"^-?[\d,.]+( ±| unknown|$)", text)]
    assert len(numbers) == released.size
    for number in numbers:
        assert number in words or number.replace("±", " ") in words


def test_parts_beyond_the_bounds_are_hatched(private):
    clamped = private.dp.proportion("rare", "never", epsilon=0.005, bounding="clamp", rng=2)
    assert clamped.iloc[0] - clamped.dp.metadata.error["plus_minus"] < 0
    ax = laid(clamped)
    spans = sorted(
        tuple(patch.get_extents().transformed(ax.transData.inverted()).intervalx) for patch in ax.patches
    )
    assert np.array(spans) == pytest.approx(np.array([(ax.get_xlim()[0], 0), (1, ax.get_xlim()[1])]))
    assert all(patch.get_hatch() for patch in ax.patches)
    assert "hatched: beyond the bounds" in said(ax)
    assert "bounding 'clamp' biases numbers near their bounds" in said(ax)
    inside = laid(private.dp.mean("age", epsilon=100))
    assert not inside.patches
    assert "beyond" not in said(inside)


@pytest.mark.full
def test_selected_numbers_have_points_and_no_bars(private):
    released = private.dp.quantile(["age", "year"], [0.25, 0.5], epsilon=5)
    ax = laid(released)
    for part, column in zip(ax.child_axes, released, strict=True):
        assert not any(len(lines.get_segments()) for lines in part.collections)
        (points,) = part.get_lines()
        assert list(points.get_xdata()) == released[column].tolist()
        assert [label.get_text() for label in part.get_yticklabels()] == ["q = 0.25", "q = 0.5"]
    assert "no bars: With 95 % probability the released value is within" in said(ax)
    for off in released.attrs["dp"]["error"]["below_best"].values():
        assert half_width(off, whole=True) in said(ax)
    assert "exponential mechanism" in said(ax)
    least = private.dp.min(["age", "year"], epsilon=5)
    for name, rank in least.attrs["dp"]["error"]["rank"].items():
        written = f"{half_width(rank, whole=True)}"
        assert f"{written} ({name})" in said(laid(least)) or f"rank {written} from the lower end" in said(
            laid(least)
        )


@pytest.mark.parametrize("name", ["mode", "top_k"])
def test_labels_have_no_picture(private, name):
    released = (
        private.dp.mode("region", epsilon=1) if name == "mode" else private.dp.top_k("region", 2, epsilon=1)
    )
    with pytest.raises(MetadataError, match=f"'{name}' releases labels and no numbers") as caught:
        released.dp.plot()
    assert "value_counts" in caught.value.hint
    assert plt.get_fignums() == []


@pytest.mark.full
def test_without_room_numbers_are_told_in_units_of_their_noise(private):
    released = private.dp.groupby("region").mean(["age", "income", "year"], epsilon=5)
    ax = laid(released, (3, 1.8))
    assert not ax.child_axes
    interval = released.dp.interval()
    half = np.array(released.dp.metadata.error["plus_minus"])
    ends, points = bars(ax)
    assert points[:, 0] == pytest.approx((released.to_numpy() / half).T.ravel())
    for end, name in zip(ends.T, ("lower", "upper"), strict=True):
        assert end == pytest.approx((interval[name].to_numpy() / half).T.ravel())
    assert "in units of the noise of each (95 %)" in ax.get_xlabel()


# ---------------------------------------------------------------- counts


@pytest.mark.full
def test_bars_stand_at_the_edges_of_bins_of_one_width(private):
    released = private.dp.histogram("year", [0, 2.5, 5, 7.5, 10], epsilon=1)
    ax = laid(released)
    assert rectangles(ax) == pytest.approx(
        np.column_stack([[0, 2.5, 5, 7.5], np.zeros(4), np.full(4, 2.5), released.to_numpy()])
    )
    (lines,) = ax.collections
    ends = np.array(lines.get_segments())
    assert ends[:, :, 0] == pytest.approx(np.array([[1.25] * 2, [3.75] * 2, [6.25] * 2, [8.75] * 2]))
    assert ends[:, :, 1] == pytest.approx(released.dp.interval()[["lower", "upper"]].to_numpy())
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "2.5", "5", "7.5", "10"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("year", "records")
    assert ax.get_ylim()[0] <= 0


@pytest.mark.full
def test_bins_of_different_widths_have_areas_by_count(private):
    released = private.dp.histogram("age", epsilon=1)
    ax = laid(released)
    shapes = rectangles(ax)
    assert shapes[:, 0].tolist() == [16, 30, 45]
    assert shapes[:, 2].tolist() == [14, 15, 20]
    assert shapes[:, 2] * shapes[:, 3] == pytest.approx(released.to_numpy())
    (lines,) = ax.collections
    ends = np.array(lines.get_segments())[:, :, 1] * np.array([[14], [15], [20]])
    assert ends == pytest.approx(released.dp.interval()[["lower", "upper"]].to_numpy())
    assert ax.get_ylabel() == "records / width of the bin"
    texts = [artist.get_text() for artist in ax.texts]
    assert all(f"{count:,}" in texts for count in released)


@pytest.mark.full
def test_bins_sorted_by_their_counts_are_drawn_where_they_are(private):
    released = private.dp.value_counts("age", epsilon=1)
    shapes = rectangles(laid(released))
    assert shapes[:, 0].tolist() == [16, 30, 45]
    assert shapes[:, 2] * shapes[:, 3] == pytest.approx(released.sort_index().to_numpy())


def test_nulls_have_a_bar_beside_the_bins_or_are_told(private):
    released = private.dp.value_counts("gap", epsilon=1, sort=False)
    ax = laid(released)
    assert rectangles(ax)[:, 0].tolist() == [-1, 4, 11.5]
    assert rectangles(ax)[:, 3].tolist() == released.tolist()
    assert [label.get_text() for label in ax.get_xticklabels()][-1] == "NaN"
    uneven = private.dp.histogram("gap", [-1, 1, 9], epsilon=1)
    assert f"NaN: {uneven.iloc[-1]:,}" in said(laid(uneven))


def test_edges_of_bins_are_written_as_they_were_declared():
    domain = Domain((Column("pay", "float", lower=0, upper=1234567, bins=(0, 300000.5, 1234567)),))
    private = pd.DataFrame({"pay": [1.0, 4e5, 1e6]}).dp.protect(domain, epsilon=1)
    ax = laid(private.dp.histogram("pay", epsilon=1))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "300000.5", "1234567"]


@pytest.mark.full
def test_shares_are_written_as_released(private):
    released = private.dp.value_counts("region", epsilon=1, normalize=True)
    ax = laid(released)
    assert ax.get_xlabel() == "share of the records"
    assert rectangles(ax)[:, 2] == pytest.approx(released.to_numpy())
    assert all(0 <= float(label.get_text()) <= 1 for label in ax.get_xticklabels())
    assert "(shares of all)" in ax.get_title(loc="left")


def test_labels_are_bars_as_released_with_intervals(private):
    released = private.dp.value_counts("region", epsilon=0.5)
    ax = laid(released)
    shapes = rectangles(ax)
    shapes = shapes[np.argsort(shapes[:, 1])]
    assert shapes[:, 1] + shapes[:, 3] / 2 == pytest.approx(np.arange(4))
    assert shapes[:, 2].tolist() == released.tolist()
    (lines,) = ax.collections
    assert np.array(lines.get_segments())[:, :, 0] == pytest.approx(
        released.dp.interval()[["lower", "upper"]].to_numpy()
    )
    assert [label.get_text() for label in ax.get_yticklabels()] == released.index.tolist()
    half = released.attrs["dp"]["error"]["plus_minus"]
    assert f"lines: 95 % margin of error, noise only, each ± {half:g}" in said(ax)
    assert "Count by region" in said(laid(private.dp.groupby("region").count(epsilon=1)))


@pytest.mark.full
def test_counts_within_their_noise_are_hatched_and_paler_in_grey(private):
    released = private.dp.value_counts("rare", epsilon=0.2, rng=1)
    interval = released.dp.interval()
    within = (interval["lower"] <= 0) & (interval["upper"] >= 0)
    assert 0 < within.sum() < 3
    ax = laid(released)
    hatched = {round(patch.get_y() + patch.get_height() / 2): patch for patch in ax.patches}
    for row, pale in enumerate(within):
        assert bool(hatched[row].get_hatch()) == pale
    shades = {bool(patch.get_hatch()): luminance(patch.get_facecolor()) for patch in ax.patches}
    assert shades[True] - shades[False] > 0.3
    assert "hatched: within the margin of error of 0" in said(ax)
    assert "hatched" not in said(laid(private.dp.value_counts("region", epsilon=100).iloc[:]))


@pytest.mark.full
def test_releases_of_counts_share_the_place_of_a_bar(private):
    released = private.dp.histogram("year", [0, 5, 10], epsilon=1, releases=2)
    ax = laid(released)
    shapes = rectangles(ax)[np.argsort(rectangles(ax)[:, 0])]
    assert shapes[:, 0].tolist() == [0, 2.5, 5, 7.5]
    assert shapes[:, 3] == pytest.approx(released.to_numpy().ravel())
    shades = sorted({round(luminance(patch.get_facecolor()), 3) for patch in ax.patches})
    assert len(shades) == 2
    assert shades[1] - shades[0] > 0.1


@pytest.mark.full
def test_very_many_bins_are_an_outline(private):
    released = private.dp.histogram("year", 500, epsilon=1)
    ax = laid(released)
    (outline,) = (patch for patch in ax.patches if not isinstance(patch, Rectangle))
    assert outline.get_data().values == pytest.approx(released.to_numpy())
    assert outline.get_data().edges[[0, -1]].tolist() == [-1, 10.5]


@pytest.mark.full
def test_of_very_many_labels_the_largest_are_shown_and_the_picture_says_so():
    codes = [f"c{number:03}" for number in range(200)]
    frame = pd.DataFrame(
        {"code": [code for number, code in enumerate(codes) for _ in range(number % 50 + 1)]}
    )
    domain = Domain((Column("code", "category", categories=tuple(codes)),))
    released = frame.dp.protect(domain, epsilon=10).dp.value_counts("code", epsilon=10)
    ax = laid(released, (6.4, 12))
    assert len(ax.patches) == 60
    assert sorted(rectangles(ax)[:, 2]) == sorted(released.iloc[:60])
    assert "the 60 largest of 200 labels" in said(ax)


# ---------------------------------------------------------------- what all share


RELEASES = {
    "mean": lambda dp: dp.mean(["age", "income"], epsilon=1),
    "groups": lambda dp: dp.groupby("region").mean(["age", "income"], epsilon=1, releases=2),
    "labels": lambda dp: dp.value_counts(LONG, epsilon=0.1, rng=3),
    "bins": lambda dp: dp.histogram("age", epsilon=1),
    "quantile": lambda dp: dp.quantile(["age", "year"], [0.1, 0.9], epsilon=1),
    "table": lambda dp: dp.crosstab(
        ["region", "rare"], "text $x$ and a long name", epsilon=0.3, margins=True
    ),
    "matrix": lambda dp: dp.corr(["age", "income", "year"], epsilon=50),
}
SIZES = {"narrow": (3, 2.8), "wide": (12, 4)}


def texts_of(ax):
    """Where each text of the picture is, in pixels; those of ticks only where they are in sight."""
    extents = {}
    for part in [ax, *ax.child_axes]:
        labels = [part.title, part._left_title, *part.texts]
        if part.axison:
            labels += [part.xaxis.label, part.yaxis.label]
            for axis in (part.xaxis, part.yaxis):
                low, high = sorted(axis.get_view_interval())
                ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
                labels += [tick.label1 for tick in ticks if tick.label1.get_visible()]
        extents |= {
            id(label): (label.get_text(), label.get_window_extent()) for label in labels if label.get_text()
        }
    return list(extents.values())


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(
    ("name", "size", "layout"),
    [
        *((name, "narrow", "constrained") for name in RELEASES),
        *((name, "narrow", None) for name in ("labels", "table")),
        ("table", "wide", "constrained"),
    ],
)
def test_no_text_lies_on_another_or_out_of_the_figure(private, name, size, layout):
    figure = plt.figure(figsize=SIZES[size], layout=layout)
    ax = RELEASES[name](private.dp).dp.plot(ax=figure.subplots())
    figure.canvas.draw()
    check_texts(figure, texts_of(ax))


@pytest.mark.full
@pytest.mark.parametrize("name", ["groups", "table"])
def test_given_axes_are_returned_and_no_setting_is_changed(private, name, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *args, **kwargs: pytest.fail("shown"))
    released = RELEASES[name](private.dp)
    copy, attrs = released.copy(deep=True), str(released.attrs)
    before = dict(matplotlib.rcParams)
    _, (left, right) = plt.subplots(1, 2, layout="constrained")
    assert released.dp.plot(ax=right) is right
    assert not left.get_lines()
    assert not left.patches
    assert dict(matplotlib.rcParams) == before
    assert str(released.attrs) == attrs
    assert released.equals(copy)
    with pytest.raises(ParameterError, match="'ax' must be the axes"):
        released.dp.plot(ax=right.figure)


@pytest.mark.full
def test_without_axes_there_is_a_new_figure_of_a_fitting_height(private):
    heights = []
    for columns in (["age"], ["age", "income", "year"]):
        ax = private.dp.mean(columns, epsilon=1).dp.plot()
        assert ax.figure.axes == [ax]
        assert len(ax.child_axes) == (len(columns) if len(columns) > 1 else 0)
        heights.append(ax.figure.get_figheight())
    assert heights[0] < heights[1]
    assert len(plt.get_fignums()) == 2


@pytest.mark.full
def test_axes_may_be_those_of_a_subfigure(private):
    inner = plt.figure(layout="constrained").subfigures(1, 2)[1].subplots()
    assert private.dp.mean(["age", "income"], epsilon=1).dp.plot(ax=inner) is inner
    for part in inner.child_axes:
        assert inner.bbox.x0 - 1 <= part.bbox.x0 <= part.bbox.x1 <= inner.bbox.x1 + 1
        assert inner.bbox.y0 - 1 <= part.bbox.y0 <= part.bbox.y1 <= inner.bbox.y1 + 1


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_that_was_changed_has_no_picture(private, name):
    released = RELEASES[name](private.dp)
    for changed in (released.round(0) + 0.25, released * 2):
        assert changed.attrs == released.attrs
        with pytest.raises(MetadataError, match="not those that were released") as caught:
            changed.dp.plot()
        assert "as it was returned" in caught.value.hint
    assert plt.get_fignums() == []


def test_a_release_without_its_metadata_has_no_picture(private):
    released = private.dp.mean("age", epsilon=1)
    for other in (pd.Series(released.to_numpy()), FRAME, released.dp.interval()):
        with pytest.raises(MetadataError, match="This frame has no picture") as caught:
            other.dp.plot()
        assert "private.dp.mean(...).dp.plot()" in caught.value.hint
    short = released.copy()
    short.attrs = {"dp": {name: value for name, value in released.attrs["dp"].items() if name != "epsilon"}}
    with pytest.raises(MetadataError, match="lacks 'epsilon'"):
        short.dp.plot()


def test_columns_of_a_protected_frame_have_no_picture(private):
    for draw in (lambda: private.plot(), lambda: private["age"].plot(), lambda: private["age"].dp.plot()):
        with pytest.raises(OpaqueFrameError, match="reads cells"):
            draw()


@pytest.mark.parametrize("name", RELEASES)
def test_without_matplotlib_the_hint_names_the_extra(private, name, monkeypatch):
    released = RELEASES[name](private.dp)
    for module in [loaded for loaded in sys.modules if loaded.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match="matplotlib") as caught:
        released.dp.plot()
    assert 'pip install "pdprivacy[plot]"' in caught.value.hint


def test_colours_are_those_of_okabe_and_ito_and_differ_in_grey():
    from pdprivacy.show.plots import budget_plots, charts, count_plots

    okabe_ito = {"#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"}
    assert {count_plots.FILL, count_plots.EDGE, charts.COLOUR, charts.BOUND} <= okabe_ito
    shades = [luminance(to_rgb(colour)) for colour, _, _ in budget_plots.STYLES.values()]
    assert min(abs(shade - other) for index, shade in enumerate(shades) for other in shades[:index]) > 0.05
    assert len({(dashes, marker) for _, dashes, marker in budget_plots.STYLES.values()}) == 4
    assert luminance(to_rgb(count_plots.FILL)) - luminance(to_rgb(count_plots.EDGE)) > 0.2


# ---------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("north", "north"),
        (None, "NaN"),
        (np.nan, "NaN"),
        (("north", None), "north, NaN"),
        (("All", ""), "All"),
        ("[35.6, 45.400000000000006)", "[35.6, 45.4)"),
        ("[1234567, 2345678.5]", "[1234567, 2345678.5]"),
        ("a\nb", "a\\nb"),
        ("x" * 60, "x" * 39 + "…"),
        (0.1 + 0.2, "0.3"),
        (True, "True"),
    ],
)
def test_labels_are_short_and_on_one_line(label, text):
    assert label_of(label) == text


@pytest.mark.parametrize(
    ("label", "edges"),
    [
        ("[16, 30)", (16, 30)),
        ("[-1.5e3, 2]", (-1500, 2)),
        ("(0, 1]", (0, 1)),
        ("[a, b)", None),
        ("16-30", None),
        (3, None),
        (None, None),
        ("[0, inf)", None),
    ],
)
def test_bins_are_read_from_their_labels(label, edges):
    assert edges_of(label) == edges


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (38.950947, 0.083479, "38.951 ± 0.084"),
        (3, 6.0, "3 ± 6"),
        (3, 2.4, "3 ± 2.4"),
        (1234567.8, 1200.0, "1,234,568 ± 1,201"),
        (-0.001, 0.5, "0.00 ± 0.51"),
        (-2.5, 0.5, "-2.50 ± 0.51"),
        (np.nan, np.nan, "NaN"),
        (2.25, np.nan, "2.25"),
        (1.0, 0.0, "1 ± 0"),
        (1e-9, 1e-16, "1e-09 ± 1.0e-16"),
    ],
)
def test_a_number_has_the_digits_that_its_error_leaves(value, half, text):
    assert " ± ".join(filter(None, paired(value, half))) == text


def test_small_texts():
    assert printable("abcdef", 4) == "abc…"
    assert span(np.array([6.0, 6.0]), whole=True) == "± 6"
    assert span(np.array([0.01, 0.0249])) == "± 0.011 to 0.026"
    assert span(np.array([1234.0]), whole=True) == "± 1,234"
    assert span(np.array([np.nan])) == ""
