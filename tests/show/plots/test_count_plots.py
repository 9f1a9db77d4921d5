"""Plots of released tables and matrices, against the released objects."""

from __future__ import annotations

import re
import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

import pdprivacy  # noqa: F401 - registers the accessor
from pdprivacy import Column, Domain
from pdprivacy.show.plots.canvas import luminance
from pdprivacy.text.numbers import half_width

if find_spec("matplotlib") is None:
    pytest.skip("pictures need matplotlib", allow_module_level=True)
with warnings.catch_warnings():
    # what an older matplotlib uses of its own dependencies is not ours
    warnings.simplefilter("ignore", DeprecationWarning)
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure
    from matplotlib.patches import PathPatch

ROWS = 1200
PLACES = np.arange(ROWS)
FRAME = pd.DataFrame(
    {
        "region": np.array(["north", "south", "east"], dtype=object)[PLACES % 3],
        "sex": np.array(["f", "m", None], dtype=object)[PLACES % 7 % 3],
        "age": 20.0 + PLACES % 41,
        "weight": 50.0 + PLACES % 37 + (PLACES % 41) / 2,
        "height": 180.0 - PLACES % 41,
    }
)
DOMAIN = Domain(
    (
        Column("region", "category", categories=("north", "south", "east", "west")),
        Column("sex", "category", nullable=True, categories=("f", "m")),
        Column("age", "float", lower=16, upper=65, bins=(16, 30, 45, 65)),
        Column("weight", "float", lower=30, upper=150),
        Column("height", "float", lower=100, upper=220),
    )
)


@pytest.fixture(scope="module")
def private():
    return FRAME.dp.protect(DOMAIN, epsilon=10**6, delta=1e-3)


def drawn(released, size=(8, 6)):
    return released.dp.plot(ax=Figure(figsize=size).subplots())


def array(ax):
    """The numbers of the cells, those of sums too."""
    (image,) = ax.images
    return np.ma.getdata(image.get_array())


def masked(ax):
    (image,) = ax.images
    return np.ma.getmaskarray(image.get_array())


def cells(ax):
    """The text of each cell."""
    texts = {}
    for text in ax.texts[1:]:  # the first one is below the title
        column, row = text.get_position()
        texts[round(row), round(column)] = text
    return texts


def said(ax):
    return ax.texts[0].get_text().replace("\n", " ")


def hatched(ax, hatch="/"):
    """The cells through which lines go."""
    positions = set()
    for patch in ax.get_children():
        if isinstance(patch, PathPatch) and (patch.get_hatch() or " ")[0] == hatch:
            corners = patch.get_path().vertices.reshape(-1, 5, 2)
            positions |= {(int(row), int(column)) for column, row in corners[:, :4].mean(axis=1)}
    return positions


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def number(text):
    return float(text.get_text().replace(",", ""))


@pytest.mark.full
def test_the_cells_are_those_of_the_table_as_it_is_printed(private):
    released = private.dp.crosstab("region", "sex", epsilon=1)
    ax = drawn(released)
    assert array(ax).tolist() == released.to_numpy().tolist()
    assert ax.yaxis_inverted()  # the first row above
    assert labels(ax.yaxis) == ["north", "south", "east", "west"]
    assert labels(ax.xaxis) == ["f", "m", "NaN"]
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("region", "sex")
    assert ax.get_title(loc="left") == "Contingency table of sex by region"
    texts = cells(ax)
    assert {cell: number(text) for cell, text in texts.items()} == {
        (row, column): released.iloc[row, column] for row in range(4) for column in range(3)
    }


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2])
def test_the_note_says_the_noise_of_a_count(private, epsilon):
    released = private.dp.crosstab("region", "sex", epsilon=epsilon)
    half = released.attrs["dp"]["error"]["plus_minus"]
    note = said(drawn(released))
    match = re.search(r"each count ± ([\d.,]+): 95 % margin of error, noise only", note)
    assert float(match[1].replace(",", "")) == pytest.approx(half, rel=0.05)
    assert f"epsilon {epsilon:g}, geometric noise" in note


@pytest.mark.full
def test_cells_within_the_noise_are_hatched_and_paler(private):
    released = private.dp.crosstab("region", ["sex", "age"], epsilon=0.05, rng=4)
    half = released.attrs["dp"]["error"]["plus_minus"]
    within = {
        (row, column) for row, column in zip(*np.nonzero(np.abs(released.to_numpy()) <= half), strict=True)
    }
    assert 9 <= len(within) < released.size
    ax = drawn(released)
    assert hatched(ax) == within
    assert "hatched: within the margin of error of 0" in said(ax)
    texts = cells(ax)
    white = {cell for cell, text in texts.items() if text.get_color() == "0.35"}
    assert white
    assert white <= within
    clear = private.dp.crosstab("sex", "age", epsilon=100)
    ax = drawn(clear)
    assert not hatched(ax)
    assert "hatched" not in said(ax)


@pytest.mark.full
def test_numbers_can_be_read_on_their_cells(private):
    ax = drawn(private.dp.crosstab("region", ["sex", "age"], epsilon=0.5))
    (image,) = ax.images
    shades = image.cmap(image.norm(array(ax)))
    for (row, column), text in cells(ax).items():
        ink = matplotlib.colors.to_rgb(text.get_color())
        light, dark = sorted([luminance(ink), luminance(shades[row, column])], reverse=True)
        assert (light + 0.05) / (dark + 0.05) > 4.5  # of contrast, as WCAG asks for


@pytest.mark.full
def test_larger_counts_are_darker_in_grey(private):
    (image,) = drawn(private.dp.crosstab("region", "sex", epsilon=1)).images
    grey = [luminance(image.cmap(share)) for share in np.linspace(0, 1, 50)]
    assert (np.diff(grey) < 0).all()
    assert grey[0] - grey[-1] > 0.9
    assert image.norm.vmin == 0


@pytest.mark.full
def test_sums_are_written_and_have_no_colour(private):
    released = private.dp.crosstab("region", "sex", epsilon=1, margins=True)
    ax = drawn(released)
    assert array(ax).tolist() == released.to_numpy().tolist()
    sums = np.zeros((5, 4), dtype=bool)
    sums[-1] = sums[:, -1] = True
    assert (masked(ax) == sums).all()
    (image,) = ax.images
    assert image.norm.vmax == released.iloc[:-1, :-1].to_numpy().max()
    assert number(cells(ax)[4, 3]) == released.loc["All", "All"]
    halves = np.array(released.attrs["dp"]["error"]["plus_minus"])
    ends = [half_width(halves[row, -1], whole=True) for row in (0, -1)]
    assert "sums ± {} to {}".format(*ends) in said(ax)


@pytest.mark.full
@pytest.mark.parametrize(
    ("way", "which"), [("index", (-1, None)), ("columns", (None, -1)), ("all", (-1, -1))]
)
def test_the_sums_of_shares_are_those_that_pandas_keeps(private, way, which):
    released = private.dp.crosstab("region", "sex", epsilon=5, margins=True, normalize=way)
    sums = np.zeros(released.shape, dtype=bool)
    row, column = which
    if row:
        sums[row] = True
    if column:
        sums[:, column] = True
    assert (masked(drawn(released)) == sums).all()


def test_shares_are_written_as_released(private):
    released = private.dp.crosstab("region", "sex", epsilon=5, normalize="index")
    ax = drawn(released)
    assert array(ax) == pytest.approx(released.to_numpy())
    for (row, column), text in cells(ax).items():
        assert number(text) == pytest.approx(released.iloc[row, column], abs=0.0051)
    halves = np.array(released.attrs["dp"]["error"]["plus_minus"])
    match = re.search(r"each share ± ([\d.]+) to ([\d.]+): 95 %", said(ax))
    assert [float(group) for group in match.groups()] == pytest.approx(
        [halves.min(), halves.max()], rel=0.151
    )
    (key,) = ax.child_axes
    assert key.get_ylabel() == "share"
    assert "(shares of each row)" in ax.get_title(loc="left")


@pytest.mark.full
def test_a_series_of_several_columns_is_a_table(private):
    for released in (
        private.dp.value_counts(["age", "sex"], epsilon=1),
        private.dp.value_counts(["age", "sex"], epsilon=1, sort=False),
        private.dp.groupby(["age", "sex"]).count(epsilon=1),
    ):
        ax = drawn(released)
        assert labels(ax.yaxis) == ["[16, 30)", "[30, 45)", "[45, 65]"]  # by size, whatever their counts
        assert set(labels(ax.xaxis)) == {"f", "m", "NaN"}
        assert labels(ax.xaxis)[-1] == "NaN"
        counts = {(age, "NaN" if pd.isna(sex) else sex): count for (age, sex), count in released.items()}
        for row, age in enumerate(labels(ax.yaxis)):
            for column, sex in enumerate(labels(ax.xaxis)):
                assert array(ax)[row, column] == counts[age, sex]


@pytest.mark.full
def test_three_columns_are_rows_by_the_first_two(private):
    released = private.dp.value_counts(["region", "sex", "age"], epsilon=1, sort=False)
    ax = drawn(released, (8, 9))
    assert array(ax).tolist() == released.to_numpy().reshape(12, 3).tolist()
    assert labels(ax.yaxis)[:4] == ["north, f", "north, m", "north, NaN", "south, f"]
    assert ax.get_ylabel() == "region, sex"


@pytest.mark.full
def test_releases_of_a_table_are_side_by_side(private):
    released = private.dp.crosstab("region", "sex", epsilon=3, releases=2)
    ax = drawn(released, (9, 5))
    assert array(ax).tolist() == released.to_numpy().tolist()
    assert labels(ax.xaxis) == ["f (1)", "m (1)", "NaN (1)", "f (2)", "m (2)", "NaN (2)"]
    assert "2 releases together" in said(ax)
    assert "in brackets: the release" in said(ax)
    series = private.dp.value_counts(["age", "sex"], epsilon=3, releases=2, sort=False)
    values = array(drawn(series, (9, 5)))
    assert (
        values.tolist()
        == np.hstack([series[1].to_numpy().reshape(3, 3), series[2].to_numpy().reshape(3, 3)]).tolist()
    )


def test_a_constraint_is_named(private):
    released = private.dp.crosstab("region", "sex", epsilon=1, constraint="nonnegative")
    assert "errors are those before constraint='nonnegative'" in said(drawn(released))


@pytest.mark.full
def test_a_large_table_has_colours_and_no_numbers():
    codes = tuple(f"c{position:02}" for position in range(40))
    frame = pd.DataFrame({"a": [codes[position % 31] for position in range(900)]})
    frame["b"] = [codes[position % 29] for position in range(900)]
    domain = Domain((Column("a", "category", categories=codes), Column("b", "category", categories=codes)))
    released = frame.dp.protect(domain, epsilon=10).dp.crosstab("a", "b", epsilon=1)
    ax = drawn(released, (4, 4))
    assert array(ax).tolist() == released.to_numpy().tolist()
    assert cells(ax) == {}
    half = released.attrs["dp"]["error"]["plus_minus"]
    assert len(hatched(ax)) == (released.to_numpy() <= half).sum()
    ticks = labels(ax.yaxis)
    assert 8 < len(ticks) < 40  # those that there is room for
    assert ticks == list(codes[:: codes.index(ticks[1])])


# ---------------------------------------------------------------- matrices


@pytest.mark.full
def test_correlations_have_colours_from_minus_one_to_one(private):
    released = private.dp.corr(["age", "weight", "height"], epsilon=1000)
    ax = drawn(released)
    assert array(ax) == pytest.approx(released.to_numpy())
    (image,) = ax.images
    assert (image.norm.vmin, image.norm.vmax) == (-1, 1)
    middle = luminance(image.cmap(0.5))
    assert middle > 0.95
    assert max(luminance(image.cmap(0.0)), luminance(image.cmap(1.0))) < 0.3
    assert number(cells(ax)[0, 2]) == pytest.approx(released.loc["age", "height"], abs=0.006)
    assert cells(ax)[0, 2].get_text().startswith("-")
    assert labels(ax.xaxis) == labels(ax.yaxis) == ["age", "weight", "height"]


@pytest.mark.full
def test_where_no_number_fits_negative_ones_are_lined(private):
    released = private.dp.corr(["age", "weight", "height"], epsilon=1000)
    ax = drawn(released, (1.2, 1.1))
    assert cells(ax) == {}
    assert hatched(ax, "-") == {
        (row, column) for row, column in zip(*np.nonzero(released.to_numpy() < 0), strict=True)
    }
    assert not hatched(drawn(released), "-")


@pytest.mark.full
def test_covariances_are_coloured_around_zero(private):
    released = private.dp.cov(["age", "weight", "height"], epsilon=1000)
    ax = drawn(released)
    (image,) = ax.images
    assert array(ax) == pytest.approx(released.to_numpy())
    assert image.norm.vmax == -image.norm.vmin == np.abs(released.to_numpy()).max()
    assert image.norm(0.0) == pytest.approx(0.5)
    halves = np.array(released.attrs["dp"]["error"]["plus_minus"])
    assert f"to {half_width(halves.max())}: 95 %" in said(ax)


@pytest.mark.full
def test_a_correlation_that_does_not_exist_is_grey_and_says_so(private):
    for seed in range(40):
        released = private.dp.corr(["age", "weight"], epsilon=0.005, rng=seed)
        if released.isna().any(axis=None):
            break
    ax = drawn(released)
    lacking = {(row, column) for row, column in zip(*np.nonzero(released.isna().to_numpy()), strict=True)}
    assert lacking
    assert {cell for cell, text in cells(ax).items() if text.get_text() == "NaN"} == lacking
    assert "seeded: not private" in said(ax)
