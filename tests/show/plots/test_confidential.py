"""Plots, against frames that are made by hand."""

from __future__ import annotations

import re
import sys
import warnings
from functools import cache
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from pdprivacy.errors import MetadataError, MissingExtraError, ParameterError
from pdprivacy.show import plots

if find_spec("matplotlib") is None:
    pytest.skip("pictures need matplotlib", allow_module_level=True)
with warnings.catch_warnings():
    # what an older matplotlib uses of its own dependencies is not ours
    warnings.simplefilter("ignore", DeprecationWarning)
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import to_rgba
    from matplotlib.figure import Figure
    from matplotlib.patches import PathPatch
    from matplotlib.text import Annotation

GRID = np.logspace(-3, 2, 26)
SIZES = {"default": (6.4, 4.8), "narrow": (3.6, 3.0)}


@pytest.fixture(autouse=True)
def closed():
    plt.close("all")
    yield
    plt.close("all")


def curve(*ends, names=("cells", "records"), grid=GRID):
    """A logistic curve from each lower to its upper end."""
    epsilon = np.array([0.0, *grid, np.inf])
    with np.errstate(divide="ignore"):
        rise = 1 / (1 + epsilon**-2.0)
    columns = {name: low + (high - low) * rise for name, (low, high) in zip(names, ends, strict=True)}
    frame = pd.DataFrame(columns, index=pd.Index(epsilon, name="epsilon"))
    frame.columns.name = "local risk (confidential)"
    frame.attrs["dp"] = {
        "confidential": "risk_curve",
        "measure": "marginal_shrinkage",
        "mechanism": "geometric",
        "by": ["age"],
        "sensitive": ["health"],
    }
    return frame


CURVES = {
    "close below": curve((0.16, 0.69), (0.18, 0.57)),
    "homogeneous": curve((0.25, 1.0), (0.25, 1.0)),
    "falling": curve((0.375, 0.0), (0.375, 0.02)),
    "nearly flat": curve((0.3, 0.31), (0.29, 0.32)),
    "near nothing": curve((0.002, 0.11), (0.0015, 0.38)),
    "one": curve((0.16, 0.69), names=["cells"]),
    "the other": curve((0.25, 0.5), names=["records"]),
}

MARGINALS = {1: ["age", "health", "sex"], 2: ["age × health", "age × sex", "health × sex"], 3: ["all"]}


def distances(epsilon=(0.1, 1.0, 10.0), orders=(1, 2, 3)):
    """Distances that grow with the order, shrink with epsilon, and all differ."""
    rows = {
        (order, name): [order * (1 + index / 10) / (8 + 4 * level) for level in epsilon]
        for order in orders
        for index, name in enumerate(MARGINALS[order])
    }
    table = pd.DataFrame.from_dict(rows, orient="index", columns=list(epsilon))
    table.index = pd.MultiIndex.from_tuples(rows, names=["order", "marginal"])
    frame = pd.concat({"tvd": table, "standard_error": table / 50}, axis=1, names=[None, "epsilon"])
    frame.attrs["dp"] = {"confidential": "utility"}
    return frame


def both(recommended, max_risk=0.4, max_tvd=0.1):
    """A rising risk and falling distances; the named rows of nine are recommended."""
    epsilon = np.logspace(-2, 2, 9)
    risk = 0.2 + 0.6 * epsilon / (1 + epsilon)
    columns = {f"tvd {order}-way": 0.2 * order / (1 + 5 * epsilon) for order in (1, 2, 3)}
    frame = pd.DataFrame({"risk": risk, **columns}, index=pd.Index(epsilon, name="epsilon"))
    frame["recommended"] = np.isin(np.arange(9), recommended)
    frame.columns.name = "confidential"
    frame.attrs["dp"] = {"confidential": "tradeoff", "max_risk": max_risk, "max_tvd": max_tvd}
    return frame


def omission(pairs=False, levels=(0.25, 2.0)):
    """Errors that fall with the rate, or rise with (m, M), above those of all records."""
    settings = [(0.1, 0.1), (0.1, 0.2), (0.5, 0.5)] if pairs else [(0.05,), (0.3,), (0.6,), (1.0,)]
    rows = {
        (level, *setting): [
            (base := 0.02 / level) + 0.2 * (0.2 + n),
            base + 0.15 * (0.2 + n),
            base + 0.3 + n / 9,
        ]
        for level in levels
        for n, setting in enumerate(settings if pairs else settings[::-1])
    }
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=["error", "lower", "upper"])
    frame.index = pd.MultiIndex.from_tuples(rows, names=["epsilon", *(["m", "M"] if pairs else ["rate"])])
    frame["without"] = [0.02 / level for level, *_ in rows]
    frame["without_upper"] = 1.1 * frame["without"]
    kind = "compare_suppression" if pairs else "compare_sampling"
    frame.attrs["dp"] = {
        "confidential": kind,
        "statistic": "mode",
        "columns": ["age"],
        "error": "probability of a wrong mode",
    }
    return frame


FRAMES = {
    **{f"curve, {name}": frame for name, frame in CURVES.items()},
    "distances": distances(),
    "distances of one order": distances((1.0,), (2,)),
    "some recommended": both([4, 5]),
    "one recommended": both([4]),
    "none recommended": both([]),
    "all recommended": both(range(9), 0.9, 0.6),
    "close limits": both([0], 0.3, 0.29),
}


@cache
def picture(name, size="default"):
    """The axes of a frame, as they are when the figure is drawn; for looking only."""
    figure = plt.figure(figsize=SIZES[size], layout="constrained")
    ax = plots.draw(FRAMES[name], figure.subplots())
    figure.canvas.draw()
    return ax


def bare(frame):
    """The axes of a frame on a figure without a layout, which is quick."""
    return plots.draw(frame, Figure().subplots())


def texts(ax):
    return [text.get_text() for text in ax.texts]


def lines(ax):
    """The lines that are no straight ones across the axes."""
    return [line for line in ax.get_lines() if line.get_transform() == ax.transData]


def across(ax):
    """The heights of the straight lines across the axes."""
    straight = [line for line in ax.get_lines() if line.get_transform() != ax.transData]
    assert all(list(line.get_xdata()) == [0, 1] for line in straight)
    assert all(line.get_ydata()[0] == line.get_ydata()[1] for line in straight)
    return [(line.get_ydata()[0], line.get_color(), line.get_linestyle()) for line in straight]


@pytest.mark.full
@pytest.mark.parametrize("name", CURVES)
def test_a_curve_is_drawn_through_the_finite_rows(name):
    frame = CURVES[name]
    ax = picture(f"curve, {name}")
    assert ax.get_xscale() == "log"
    assert len(lines(ax)) == frame.shape[1]
    for line, column in zip(lines(ax), frame, strict=True):
        assert line.get_xdata() == pytest.approx(GRID)
        assert line.get_ydata() == pytest.approx(frame[column].to_numpy()[1:-1])
    assert ax.get_xlim() == pytest.approx((GRID[0], GRID[-1]))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [f"average over {column}" for column in frame]


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("name", CURVES)
def test_the_limits_are_dashed_lines_of_the_colour_of_their_curve(name):
    frame = CURVES[name]
    ax = picture(f"curve, {name}")
    colours = {column: line.get_color() for line, column in zip(lines(ax), frame, strict=True)}
    expected = {(frame[column].loc[end], colours[column], "--") for column in frame for end in (0, np.inf)}
    assert set(across(ax)) == expected
    assert len(across(ax)) == 2 * frame.shape[1]


def test_each_limit_is_named_with_its_value_at_its_line():
    ax = picture("curve, close below")
    assert sorted(texts(ax)) == sorted(
        [
            plots.MARK,
            "as epsilon → 0: 16 % of cells",
            "as epsilon → 0: 18 % of records",
            "as epsilon → ∞: 69 % of cells",
            "as epsilon → ∞: 57 % of records",
        ]
    )
    heights = {text.get_text(): text.xy[1] for text in ax.texts if isinstance(text, Annotation)}
    assert heights["as epsilon → 0: 16 % of cells"] == 0.16
    assert heights["as epsilon → ∞: 57 % of records"] == 0.57
    colours = {text.get_text(): text.get_color() for text in ax.texts}
    cells, records = (line.get_color() for line in lines(ax))
    assert colours["as epsilon → ∞: 69 % of cells"] == cells != records
    assert colours["as epsilon → 0: 18 % of records"] == records


@pytest.mark.full
def test_a_limit_is_named_where_its_curve_is_not_in_the_way():
    (rising,) = (text for text in picture("curve, one").texts if "∞" in text.get_text())
    assert (rising.xy[0], rising.get_ha()) == (1.0, "right")  # the side where epsilon is large, above all
    ends = {text.get_text()[13]: text.xy[0] for text in picture("curve, homogeneous").texts[1:]}
    assert ends == {"0": 0.0, "∞": 0.0}  # on the right, the curves would cross the second text


def boxes(ax):
    """Where each text is, in pixels, and the legend under no name."""
    extents = {text.get_text(): text.get_window_extent() for text in ax.texts}
    return {**extents, "": ax.get_legend().get_window_extent()}


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(
    ("name", "size"),
    [(name, "default") for name in FRAMES]
    + [
        (name, "narrow")
        for name in ("curve, close below", "curve, homogeneous", "distances", "none recommended")
    ],
)
def test_no_text_lies_on_another_or_out_of_the_axes(name, size):
    ax = picture(name, size)
    figure, extents = ax.figure, boxes(ax)
    inside = ax.bbox.padded(1)
    for text, box in extents.items():
        assert inside.x0 <= box.x0 <= box.x1 <= inside.x1, text
        assert inside.y0 <= box.y0 <= box.y1 <= inside.y1, text
        for other, other_box in extents.items():
            assert other == text or not box.padded(-0.5).overlaps(other_box.padded(-0.5)), (text, other)
    for label in (ax.xaxis.label, ax.yaxis.label):
        box = label.get_window_extent()
        assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1, label.get_text()
        assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1, label.get_text()


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("name", [name for name in FRAMES if "distances" not in name])
def test_no_line_lies_under_a_text(name):
    ax = picture(name)
    extents = boxes(ax)
    for line in ax.get_lines():
        path = line.get_transform().transform(line.get_xydata())
        steps = np.linspace(0, len(path) - 1, 3000)
        points = np.column_stack([np.interp(steps, np.arange(len(path)), way) for way in path.T])
        for text, box in extents.items():
            low, high = box.padded(-1).min, box.padded(-1).max
            assert not ((points > low) & (points < high)).all(axis=1).any(), text


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("name", FRAMES)
def test_the_axis_begins_at_nothing_and_ends_just_above_what_is_drawn(name):
    ax = picture(name)
    highest = max(np.nanmax(line.get_ydata()) for line in ax.get_lines() if len(line.get_ydata()))
    lower, upper = ax.get_ylim()
    assert lower == 0
    assert highest < upper < 1.35 * highest
    assert all(tick <= 1 for tick in ax.get_yticks())


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("grid", [[0.2, 0.4, 0.9], [0.31, 0.32], [0.3, 3, 4], [0.02, 1.9], [0.3, 40], GRID])
def test_epsilon_is_read_from_plain_numbers_however_narrow_its_range(grid):
    ax = bare(curve((0.2, 0.7), names=["cells"], grid=grid))
    ax.figure.canvas.draw()
    ticks = [label for label in ax.get_xticklabels() if grid[0] <= label.get_position()[0] <= grid[-1]]
    assert len(ticks) >= 2
    for label in ticks:
        assert float(label.get_text()) == pytest.approx(label.get_position()[0])


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("top", [0.0004, 0.405, 0.61, 0.81, 1.7])
def test_ticks_do_not_widen_the_axis(top):
    ax = bare(curve((0.1 * top, top), names=["cells"]))
    assert ax.get_yticks()[-1] <= ax.get_ylim()[1] < 1.3 * top


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("name", FRAMES)
def test_every_picture_is_marked_confidential_and_says_what_its_axes_are(name):
    ax = picture(name)
    assert texts(ax).count("CONFIDENTIAL: made of exact counts") == 1
    assert "epsilon of the table" in ax.get_xlabel()
    assert ("distance" if "curve" not in name else "risk by homogeneity attack") in ax.get_ylabel()


def test_a_curve_says_which_risk_and_which_noise_in_percent():
    ax = picture("curve, homogeneous")
    assert "(marginal shrinkage, geometric noise)" in ax.get_ylabel()
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == [f"{100 * tick:g} %" for tick in ax.get_yticks()]
    assert labels[0] == "0 %"
    assert labels[-1] == "100 %"
    assert {"0.001", "0.1", "10"} <= {text.get_text() for text in ax.get_xticklabels()}
    frame = CURVES["homogeneous"].copy()
    frame.attrs["dp"] = {"confidential": "risk_curve"}
    assert bare(frame).get_ylabel() == "disclosure risk by homogeneity attack"


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.0, "0 %"),
        (0.00002, "< 0.1 %"),
        (0.0156, "1.56 %"),
        (0.161, "16.1 %"),
        (0.9999, "> 99.9 %"),
        (1.0, "100 %"),
        (1.31, "131 %"),
    ],
)
def test_a_share_is_said_in_percent(share, said):
    ax = bare(curve((share, 0.5), names=["cells"]))
    assert f"as epsilon → 0: {said} of cells" in texts(ax)


@pytest.mark.full
def test_without_the_limits_there_are_no_dashed_lines_and_rows_come_in_any_order():
    frame = CURVES["close below"].iloc[1:-1].sample(frac=1, random_state=3)
    ax = bare(frame)
    assert across(ax) == []
    assert texts(ax) == [plots.MARK]
    for line, column in zip(lines(ax), frame, strict=True):
        assert line.get_xdata() == pytest.approx(GRID)
        assert line.get_ydata() == pytest.approx(CURVES["close below"][column].to_numpy()[1:-1])


def test_lines_are_distinct_without_colour():
    for name, count in (("curve, close below", 2), ("some recommended", 4)):
        drawn = {(str(line.get_linestyle()), str(line.get_marker())) for line in lines(picture(name))}
        assert len(drawn) == count
    assert len({patch.get_hatch() for patch in picture("distances").patches}) == 3


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("risk", [0.3, 0.0])
def test_a_single_row_is_a_point(risk):
    frame = curve((risk, risk), names=["cells"], grid=[0.5])
    (line,) = lines(bare(frame))
    assert line.get_marker() == "o"
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([0.5], [risk])


def test_rows_without_a_number_are_left_out_of_the_line():
    frame = CURVES["one"].copy()
    frame.iloc[20:] = np.nan  # as where the noise does not exist at this epsilon
    ax = bare(frame)
    assert np.isnan(lines(ax)[0].get_ydata()[19:]).all()
    assert [text for text in texts(ax) if "∞" in text] == []


# ------------------------------------------------------------------ sizes of classes


def class_sizes(classes):
    """The number of classes of each size, as `anonymity` returns it."""
    sizes = pd.Index(list(classes), name="size")
    numbers = list(classes.values())
    frame = pd.DataFrame({"classes": numbers, "records": sizes * numbers}, index=sizes)
    frame.columns.name = "confidential"
    frame.attrs["dp"] = {"confidential": "class sizes"}
    return frame


def bars(ax):
    """The ends and the height of each bar."""
    return [(bar.get_x(), bar.get_x() + bar.get_width(), bar.get_height()) for bar in ax.patches]


def test_sizes_of_classes_have_a_bar_each():
    ax = bare(class_sizes({1: 5, 4: 2, 3: 7}).sample(frac=1, random_state=1))
    assert bars(ax) == [(0.5, 1.5, 5), (1.5, 2.5, 0), (2.5, 3.5, 7), (3.5, 4.5, 2)]
    assert texts(ax) == [plots.MARK]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["14 classes, the smallest of 1"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("records of a class", "classes")
    assert ax.get_ylim()[0] == 0


def test_few_large_classes_do_not_squeeze_the_small_ones():
    ax = bare(class_sizes({1: 400, 2: 300, 110: 295, 90_000: 5}))
    ends, starts = [end for _, end, _ in bars(ax)], [start for start, _, _ in bars(ax)]
    assert ends[:-1] == starts[1:]
    assert ends[-1] < 200
    assert sum(height for _, _, height in bars(ax)) == 995
    assert next(height for start, end, height in bars(ax) if start < 110 < end) == 295
    assert bars(ax)[0][2] == 700
    assert ax.get_legend().get_texts()[0].get_text().endswith("5 not drawn, the largest of 90,000")
    assert ax.get_xlabel() == "records of a class (bars of 2 sizes)"


def test_a_single_class_has_a_picture():
    ax = bare(class_sizes({7: 1}))
    assert bars(ax)[-1] == (6.5, 7.5, 1)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["1 class, of 7"]


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.drop(columns="classes"),
        lambda frame: frame.iloc[:0],
        lambda frame: frame.assign(classes="many"),
        lambda frame: frame - 5,
        lambda frame: frame.set_index("records", append=True),
    ],
)
def test_changed_sizes_of_classes_have_no_picture(change):
    with pytest.raises(MetadataError, match="the index must hold the sizes of classes") as caught:
        plots.draw(change(class_sizes({1: 5, 3: 7})))
    assert "private.dp.anonymity(...).sizes.dp.plot()" in caught.value.hint


# ------------------------------------------------------------------ distances


def quartiles(ax):
    """The boxes, from the lower to the upper quartile."""
    return [patch for patch in ax.patches if isinstance(patch, PathPatch)]


def test_there_is_a_box_for_each_order_at_each_epsilon():
    ax = picture("distances")
    assert len(quartiles(ax)) == 9
    assert len({patch.get_facecolor() for patch in quartiles(ax)}) == 3
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        f"{order}-way marginals" for order in (1, 2, 3)
    ]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0.1", "1", "10"]


@pytest.mark.full
def test_the_boxes_are_of_the_distances_of_their_order_and_epsilon():
    epsilon = (10.0, 0.1, 1.0)  # drawn in ascending order
    frame = distances(epsilon)
    ax = bare(frame)
    legend = [to_rgba(patch.get_facecolor()) for patch in ax.get_legend().get_patches()]
    expected = {}
    for position, level in enumerate(sorted(epsilon)):
        for order in (1, 2, 3):
            of_order = frame["tvd"].loc[order, level].to_numpy()
            expected[position, order] = np.quantile(of_order, [0.25, 0.75])
    heights = {}
    for patch in quartiles(ax):
        corners = patch.get_path().vertices
        middle = (corners[:, 0].min() + corners[:, 0].max()) / 2
        assert abs(middle - round(middle)) < 0.5  # in its group
        key = round(middle), legend.index(to_rgba(patch.get_facecolor())) + 1
        heights[key] = corners[:, 1].min(), corners[:, 1].max()
    assert heights.keys() == expected.keys()
    for key, ends in expected.items():
        assert heights[key] == pytest.approx(tuple(ends))
    sides = sorted((xs.min(), xs.max()) for xs in (box.get_path().vertices[:, 0] for box in quartiles(ax)))
    assert all(right < left for (_, right), (left, _) in pairwise(sides))  # none on another


def test_a_distance_that_is_not_there_is_left_out():
    frame = distances()
    frame.loc[(3, "all"), ("tvd", 1.0)] = np.nan
    frame.loc[(1, "sex"), ("tvd", 1.0)] = np.nan
    ax = bare(frame)
    rest = frame["tvd"].loc[1, 1.0].dropna().to_numpy()
    drawn = [patch.get_path().vertices[:, 1] for patch in quartiles(ax)]
    assert any(box.max() == pytest.approx(np.quantile(rest, 0.75)) for box in drawn)


# ------------------------------------------------------------------ the two together


def test_risk_and_distances_share_an_axis():
    frame, ax = FRAMES["some recommended"], picture("some recommended")
    assert ax.get_xscale() == "log"
    names = ["risk", "tvd 1-way", "tvd 2-way", "tvd 3-way"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == names
    for line, name in zip(lines(ax), names, strict=True):
        assert line.get_xdata() == pytest.approx(frame.index.to_numpy())
        assert line.get_ydata() == pytest.approx(frame[name].to_numpy())
    assert ax.figure.axes == [ax]


def test_the_limits_are_dotted_and_named():
    ax = bare(both([4], max_risk=0.35, max_tvd=0.125))
    assert {(height, style) for height, _, style in across(ax)} == {(0.35, ":"), (0.125, ":")}
    heights = {text.get_text(): text.xy[1] for text in ax.texts if isinstance(text, Annotation)}
    assert heights["max_risk = 0.35"] == 0.35
    assert heights["max_tvd = 0.125"] == 0.125


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("runs", [[(2, 5)], [(0, 1), (4, 7)], [(0, 8)], [(3, 3)], [(1, 1), (3, 4), (8, 8)]])
def test_the_recommended_rows_are_shaded_and_named(runs):
    rows = [row for first, last in runs for row in range(first, last + 1)]
    frame = both(rows)
    ax = bare(frame)
    ends = []
    for patch in ax.patches:
        shaded = patch.get_extents().transformed(ax.transData.inverted())
        ends.append((shaded.x0, shaded.x1))
    expected = [(frame.index[first], frame.index[last]) for first, last in runs]
    assert np.array(ends) == pytest.approx(np.array(expected))
    for patch, (first, last) in zip(ax.patches, runs, strict=True):
        assert (patch.get_linewidth() > 0) == (first == last)  # one row is seen, too
    (text,) = (text for text in ax.texts if text.get_text() == "recommended")
    widest = max(runs, key=lambda run: run[1] - run[0])
    center = ax.transData.inverted().transform(ax.transAxes.transform((text.xy[0], 0)))[0]
    middle = frame.index[widest[0]] ** 0.5 * frame.index[widest[1]] ** 0.5
    assert center == pytest.approx(middle)


def test_where_nothing_is_recommended_the_picture_says_so():
    ax = picture("none recommended")
    assert list(ax.patches) == []
    assert [text for text in texts(ax) if text.startswith("recommended: none")]
    assert "recommended" not in texts(ax)
    assert not [text for text in texts(picture("some recommended")) if "none" in text]


def test_limits_that_are_not_known_are_not_drawn():
    frame = both([4])
    frame.attrs["dp"] = {"confidential": "tradeoff", "max_risk": None}
    ax = bare(frame)
    assert across(ax) == []
    assert sorted(texts(ax)) == sorted([plots.MARK, "recommended"])


# ------------------------------------------------------------------ axes, settings, refusals


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("name", ["curve, close below", "distances", "some recommended"])
def test_given_axes_are_drawn_on_and_returned(name):
    figure, (left, right) = plt.subplots(1, 2)
    assert plots.draw(FRAMES[name], ax=right) is right
    assert plt.get_fignums() == [figure.number]
    assert not left.get_lines()
    assert not left.patches


def test_axes_may_be_those_of_a_subfigure():
    inner = plt.figure(layout="constrained").subfigures(1, 2)[1].subplots()
    assert plots.draw(CURVES["one"], inner) is inner
    assert inner.get_lines()


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("name", ["curve, one", "distances"])
def test_without_axes_there_is_a_new_figure_each_time(name):
    first, second = plots.draw(FRAMES[name]), plots.draw(FRAMES[name])
    assert first.figure is not second.figure
    assert len(plt.get_fignums()) == 2
    assert first.figure.axes == [first]
    assert first.figure.get_layout_engine() is not None


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("name", ["curve, close below", "distances", "some recommended"])
def test_no_setting_is_changed_nothing_is_shown_and_the_frame_stays(name, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *args, **kwargs: pytest.fail("shown"))
    before, backend = dict(matplotlib.rcParams), matplotlib.get_backend()
    frame = FRAMES[name].copy(deep=True)
    plots.draw(frame)
    assert dict(matplotlib.rcParams) == before
    assert matplotlib.get_backend() == backend
    pd.testing.assert_frame_equal(frame, FRAMES[name])
    assert frame.attrs == FRAMES[name].attrs


@pytest.mark.parametrize("ax", [1, "axes", [None]])
def test_something_else_than_axes_is_refused(ax):
    with pytest.raises(ParameterError, match="'ax' must be the axes of a matplotlib figure"):
        plots.draw(CURVES["one"], ax)
    with pytest.raises(ParameterError, match="got Figure"):
        plots.draw(CURVES["one"], plt.figure())


UNMARKED = pd.DataFrame({"cells": [0.123456], "records": [0.1]}, index=[1.0])


def marked(dp):
    frame = UNMARKED.copy()
    frame.attrs["dp"] = dp
    return frame


@pytest.mark.parametrize(
    "frame",
    [
        UNMARKED,
        marked({"confidential": "dr_ha"}),
        marked({"confidential": ["risk_curve"]}),
        marked({"statistic": "mean"}),
        marked("risk_curve"),
        CURVES["one"]["cells"],
        None,
    ],
)
def test_other_frames_have_no_picture(frame):
    with pytest.raises(MetadataError) as caught:
        plots.draw(frame)
    for method in ("risk_curve", "utility", "tradeoff"):
        assert f"private.dp.{method}(...).dp.plot()" in caught.value.hint
    assert "0.123456" not in str(caught.value)
    assert plt.get_fignums() == []


ALTERED = {
    "a column renamed": CURVES["close below"].rename(columns={"cells": "rows"}),
    "a column added": CURVES["close below"].assign(mine=1.0),
    "a column twice": CURVES["close below"][["cells", "cells"]],
    "no column": CURVES["close below"][[]],
    "no epsilon": CURVES["close below"].iloc[[0, -1]],
    "no row": CURVES["close below"].iloc[:0],
    "no number": CURVES["close below"].mask(CURVES["close below"] < 2),
    "words": CURVES["close below"].astype(object).where(CURVES["close below"] < 0, "0.7713 secret"),
    "an index of words": CURVES["close below"].set_axis([f"row {i}" for i in range(28)]),
    "two levels": CURVES["close below"].set_axis(pd.MultiIndex.from_product([[1.0, 2.0], range(14)])),
    "distances without tvd": distances()[["standard_error"]],
    "distances at one epsilon": distances()["tvd"],
    "distances without order": distances().droplevel(0),
    "distances of words": distances().rename(index={1: "one"}, level=0),
    "distances by words": distances().rename(columns={0.1: "little"}, level=1),
    "no distance": distances() * np.nan,
    "risk renamed": both([4]).rename(columns={"risk": "danger"}),
    "distances renamed": both([4]).rename(columns=lambda name: name.replace("tvd", "distance")),
    "no recommendation": both([4]).drop(columns="recommended"),
    "risk only": both([4])[["risk", "recommended"]],
    "risk not a number": both([4]).assign(risk=np.nan),
}


@pytest.mark.parametrize("name", ALTERED)
def test_a_frame_whose_numbers_are_not_there_is_refused(name):
    frame = ALTERED[name]
    kind = frame.attrs["dp"]["confidential"]
    with pytest.raises(MetadataError, match=f"is marked as '{kind}'") as caught:
        plots.draw(frame)
    assert f"private.dp.{kind}(...).dp.plot()" in caught.value.hint
    assert not re.search(r"0\.\d|secret", str(caught.value))
    assert plt.get_fignums() == []  # nothing is left half drawn


def test_without_matplotlib_the_hint_names_the_extra(monkeypatch):
    frame, ax = CURVES["one"], plt.figure().subplots()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for on in (None, ax):
        with pytest.raises(MissingExtraError, match="matplotlib") as caught:
            plots.draw(frame, on)
        assert 'pip install "pdprivacy[plot]"' in caught.value.hint
    with pytest.raises(MetadataError):  # what would have no picture anyway is told first
        plots.draw(UNMARKED)


# ------------------------------------------------------------------ what omission costs


def bands(ax):
    """The lower and the upper edge of each band, from the left."""
    edges = []
    for band in ax.collections:
        ((*edge,),) = ([tuple(point) for point in path.vertices] for path in band.get_paths())
        rates = sorted({x for x, _ in edge})
        edges.append(
            [[min(y for x, y in edge if x == rate), max(y for x, y in edge if x == rate)] for rate in rates]
        )
    return np.array(edges)


def test_the_error_is_drawn_against_the_rate_with_its_band_and_that_of_all_records():
    frame = omission()
    ax = bare(frame)
    ordered = frame.sort_index()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "epsilon 0.25",
        "epsilon 2",
        "all records",
    ]
    for index, (level, line) in enumerate(zip([0.25, 2.0], lines(ax), strict=True)):
        assert list(line.get_xdata()) == [0.05, 0.3, 0.6, 1.0]
        assert line.get_ydata() == pytest.approx(ordered.loc[level, "error"].to_numpy())
        assert bands(ax)[index] == pytest.approx(ordered.loc[level, ["lower", "upper"]].to_numpy())
        assert across(ax)[index] == (0.02 / level, line.get_color(), ":")
    assert ax.get_xlim() == (0.05, 1.0)
    assert "sampling rate" in ax.get_xlabel()
    assert "same guarantee" in ax.get_xlabel()
    assert ax.get_ylabel() == "probability of a wrong mode\n(Mode of age)"
    assert texts(ax) == [plots.MARK]
    assert len({line.get_linestyle() for line in lines(ax)}) == 2


def test_suppression_is_drawn_pair_by_pair_and_what_is_not_feasible_left_out():
    frame = omission(pairs=True)
    frame.loc[(0.25, 0.1, 0.2), ["error", "lower", "upper"]] = np.nan
    ax = bare(frame)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0.1, 0.1", "0.1, 0.2", "0.5, 0.5"]
    for level, line, spans in zip([0.25, 2.0], lines(ax), ax.collections, strict=True):
        assert list(np.round(line.get_xdata())) == ([0, 2] if level == 0.25 else [0, 1, 2])
        expected = frame.loc[level, ["error", "lower", "upper"]].dropna().to_numpy()
        assert line.get_ydata() == pytest.approx(expected[:, 0])
        ends = [segment[:, 1] for segment in spans.get_segments()]
        assert np.array(ends) == pytest.approx(expected[:, 1:])
    first, second = (line.get_xdata() for line in lines(ax))
    assert (first < second[[0, 2]]).all()  # side by side
    frame.loc[(2.0, 0.1, 0.2), "error"] = np.nan
    labels = [text.get_text() for text in bare(frame).get_xticklabels()]
    assert labels == ["0.1, 0.1", "0.5, 0.5"]
    frame.attrs["dp"]["spend"] = "epsilon"
    assert "the same noise at each" in bare(frame).get_xlabel()


def test_a_comparison_whose_rows_hold_nothing_has_no_picture():
    frame = omission()
    frame["error"] = np.nan
    with pytest.raises(MetadataError, match="a row must hold numbers"):
        bare(frame)
    for changed in (omission().reset_index(), omission().drop(columns="lower")):
        changed.attrs = omission().attrs
        with pytest.raises(MetadataError, match="must be"):
            bare(changed)


@pytest.mark.full
@pytest.mark.parametrize("pairs", [False, True])
def test_a_comparison_is_marked_and_no_text_lies_on_another(pairs):
    for size in SIZES.values():
        figure = plt.figure(figsize=size, layout="constrained")
        ax = plots.draw(omission(pairs), figure.subplots())
        figure.canvas.draw()
        extents = boxes(ax)
        assert set(extents) == {plots.MARK, ""}
        assert not extents[plots.MARK].padded(-0.5).overlaps(extents[""].padded(-0.5))
        for box in extents.values():
            assert ax.bbox.x0 - 1 <= box.x0 <= box.x1 <= ax.bbox.x1 + 1
        top = ax.transData.transform((1, omission(pairs)["upper"].max()))[1]
        assert top <= extents[""].y0 + 1
