"""Plots of budgets and of plans, against the charges and the planned numbers."""

from __future__ import annotations

import json
import re
import sys
import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import ZCDP, Approx, Column, Domain, Pure
from pdprivacy.errors import MetadataError, MissingExtraError, OmissionWarning, ParameterError
from pdprivacy.releases.metadata import PLAN
from pdprivacy.show import plots
from pdprivacy.show.plots import budget_plots
from pdprivacy.show.plots.canvas import luminance
from tests.support.pictures import check_texts

if find_spec("matplotlib") is None:
    pytest.skip("pictures need matplotlib", allow_module_level=True)
with warnings.catch_warnings():
    # what an older matplotlib uses of its own dependencies is not ours
    warnings.simplefilter("ignore", DeprecationWarning)
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure
    from matplotlib.text import Text

ROWS = 200
FRAME = pd.DataFrame(
    {
        "age": 20.0 + np.arange(ROWS) % 41,
        "year": 1.0 * (np.arange(ROWS) % 10),
        "region": np.array(["north", "south"], dtype=object)[np.arange(ROWS) % 2],
    }
)
DOMAIN = Domain(
    (
        Column("age", "float", lower=16, upper=65),
        Column("year", "float", lower=-1, upper=10.5),
        Column("region", "category", categories=("north", "south")),
    )
)


@pytest.fixture(autouse=True)
def closed():
    plt.close("all")
    yield
    plt.close("all")


def protect(**cap):
    return FRAME.dp.protect(DOMAIN, **cap)


def bare(source, size=(6.4, 4.8)):
    """The picture on a figure without a layout, which is quick."""
    ax = Figure(figsize=size).subplots()
    return source.plot(ax) if isinstance(source, pdprivacy.Budget) else source.dp.plot(ax)


def bars(ax):
    """(left, width) of each bar from above, that of what is left last."""
    patches = sorted(ax.patches, key=lambda patch: patch.get_y())
    return [(patch.get_x(), patch.get_width()) for patch in patches]


def labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def said(ax):
    return ax.texts[0].get_text().replace("\n", " ")


# ---------------------------------------------------------------- budgets


def test_each_release_has_a_bar_from_where_the_one_before_ended():
    private = protect(epsilon=2)
    private.dp.mean("age", epsilon=0.2)
    private.dp.count(epsilon=0.5)
    private.dp.value_counts("region", epsilon=0.25)
    ax = bare(private)
    assert labels(ax) == ["Mean of age", "Count", "Counts of region", "left"]
    assert np.array(bars(ax)) == pytest.approx(np.array([(0, 0.2), (0.2, 0.5), (0.7, 0.25), (0.95, 1.05)]))
    *spent, left = (width for _, width in bars(ax))
    assert sum(spent) == pytest.approx(private.dp.budget.spent[0])
    assert left == pytest.approx(private.dp.budget.left[0])
    assert ax.get_xlabel() == "epsilon"
    assert "total epsilon 2, left 1.05; 3 charges" in said(ax)
    assert "delta" not in said(ax)
    (cap,) = {float(x) for line in ax.get_lines() for x in line.get_xdata()}
    assert cap == 2
    assert ax.yaxis_inverted()


def test_the_remaining_budget_is_distinct_in_grey():
    private = protect(epsilon=2)
    private.dp.count(epsilon=0.5)
    spent, left = sorted(bare(private).patches, key=lambda patch: patch.get_y())
    assert luminance(left.get_facecolor()) - luminance(spent.get_facecolor()) > 0.5
    assert left.get_hatch()
    assert not spent.get_hatch()


def test_the_amounts_are_written_at_their_bars():
    private = protect(epsilon=2)
    for epsilon in (0.125, 1.5, 0.375):
        private.dp.count(epsilon=epsilon)
    ax = bare(private)
    written = {round(text.xy[1]): text.get_text() for text in ax.texts[1:]}
    assert written == {0: "0.125", 1: "1.5", 2: "0.375", 3: "0"}


def test_a_budget_reads_the_same_in_text_notebook_plot_and_release():
    """Nothing shows less than was spent, or more than is left."""
    domain = Domain((Column("age", "integer", lower=0, upper=99),))
    private = pdprivacy.protect(pd.DataFrame({"age": [31, 54, 27]}), domain, epsilon=2)
    mean = private.dp.mean("age", epsilon="1/3")
    private.dp.count(epsilon="1/7")
    budget = private.dp.budget
    drawn = [written.get_text() for written in budget.plot().figure.findobj(Text)]
    for shown in (repr(budget), budget._repr_html_(), " ".join(drawn)):
        assert {"0.333334", "0.142858", "1.5238"} <= set(re.findall(r"[0-9.]+[0-9]", shown))
    assert "spent  epsilon 0.476191 " in repr(budget)
    assert "epsilon 0.333334" in repr(mean.dp)


def test_charges_that_share_a_bar_are_added_as_they_are_printed():
    budget = pdprivacy.Budget(epsilon=3)
    for _ in range(20):
        budget.charge(Pure(0.1), "mean of age", "laplace")
    drawn = [written.get_text() for written in budget.plot().figure.findobj(Text)]
    assert "20 × Mean of age" in drawn
    assert "2" in drawn


def test_a_budget_without_charges_is_left_whole():
    ax = bare(protect(epsilon=3))
    assert bars(ax) == [(0, 3)]
    assert labels(ax) == ["left"]
    assert "0 charges" in said(ax)


def test_delta_is_noted():
    private = protect(epsilon=2, delta=1e-5)
    private.dp.mean("age", epsilon=0.5, delta=1e-6, mechanism="gaussian")
    assert "delta: total 1e-05, left 9e-06" in said(bare(private))


def test_a_budget_in_rho_is_drawn_in_rho():
    private = protect(rho=0.5)
    private.dp.mean("age", epsilon=0.2)
    private.dp.count(epsilon=0.5)
    ax = bare(private)
    assert np.array(bars(ax)) == pytest.approx(np.array([(0, 0.02), (0.02, 0.125), (0.145, 0.355)]))
    assert ax.get_xlabel() == "rho"
    assert "total rho 0.5, left 0.355" in said(ax)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("accounting", ["zcdp", "filter"])
def test_where_squares_are_counted_what_is_left_is_told_in_words(accounting):
    private = protect(epsilon=2, delta=1e-5, accounting=accounting)
    private.dp.mean("age", epsilon=0.2)
    private.dp.count(epsilon=0.05)
    ax = bare(private)
    assert [width for _, width in bars(ax)] == pytest.approx([0.2**2 / 2, 0.05**2 / 2])
    assert labels(ax) == ["Mean of age", "Count"]  # what is left is no part of these
    assert ax.get_xlabel() == "rho, which the accounting of this budget counts"
    left, delta = private.dp.budget.left
    assert f"total epsilon 2; left: epsilon {left:.6g} of one more release" in said(ax)
    assert f"left {delta:.6g}" in said(ax)


@pytest.mark.full
def test_of_many_charges_those_of_one_label_and_the_smallest_share_a_bar():
    private = protect(epsilon=100)
    for _ in range(150):
        private.dp.count(epsilon=0.02)
    for age in range(20, 50):
        private.dp.query(f"age >= {age}").dp.mean("year", epsilon=0.01)
    private.dp.describe("age", epsilon=7)
    private.dp.value_counts("region", epsilon=5)
    ax = bare(private)
    rows, spans = labels(ax), bars(ax)
    assert len(rows) <= 17
    assert rows[0] == "150 × Count"
    assert "Summary of age" in rows
    assert rows[-2].endswith(" others")
    *spent, left = (width for _, width in spans)
    assert sum(spent) == pytest.approx(private.dp.budget.spent[0])
    assert left == pytest.approx(private.dp.budget.left[0])
    assert spent[0] == pytest.approx(3)
    assert spent[rows.index("Summary of age")] == 7
    lone = [row for row in rows if row.startswith("Mean of year")]
    assert int(rows[-2].split()[0]) == 30 - len(lone)
    assert "pale: several charges together" in said(ax)
    assert "182 charges" in said(ax)
    starts = [start for start, _ in spans]
    assert starts == pytest.approx([0, *np.cumsum(spent)])
    shades = [
        luminance(patch.get_facecolor()) for patch in sorted(ax.patches, key=lambda patch: patch.get_y())
    ]
    assert shades[0] - shades[rows.index("Summary of age")] > 0.2


def test_a_secret_part_and_a_partition_sum_to_what_was_spent():
    private = protect(epsilon=4)
    with pytest.warns(OmissionWarning):
        private.dp.sample(frac=0.5, rng=1).dp.count(epsilon=0.5)
    private.dp.partition("region", epsilon=0.75)
    *spent, left = (width for _, width in bars(bare(private)))
    assert sum(spent) == pytest.approx(private.dp.budget.spent[0])
    assert left == pytest.approx(private.dp.budget.left[0])


@pytest.mark.full
@pytest.mark.parametrize("size", [(3, 2.6), (12, 4)])
def test_no_text_of_a_budget_lies_on_another_or_out_of_the_figure(size):
    private = protect(epsilon=2, delta=1e-6)
    for epsilon in (0.1, 0.4, 0.9, 0.6):
        private.dp.query("age >= 30 and region == 'south'").dp.mean(["age", "year"], epsilon=epsilon)
    figure = plt.figure(figsize=size, layout="constrained")
    ax = private.dp.plot(ax=figure.subplots())
    figure.canvas.draw()
    texts = [*ax.texts, ax._left_title, ax.xaxis.label, *ax.get_xticklabels(), *ax.get_yticklabels()]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text()]
    check_texts(figure, boxes)


@pytest.mark.full
def test_a_protected_frame_and_its_budget_have_the_same_picture():
    private = protect(epsilon=2)
    private.dp.count(epsilon=0.5)
    ax = plt.figure().subplots()
    before = dict(matplotlib.rcParams)
    assert private.dp.plot(ax=ax) is ax
    assert dict(matplotlib.rcParams) == before
    assert bars(private.dp.budget.plot()) == bars(ax)
    budget = private.dp.budget
    assert bars(plots.draw_budget(budget.entries, budget.total, budget.left)) == bars(ax)
    assert budget.spent == (0.5, 0)
    with pytest.raises(ParameterError, match="'ax' must be the axes"):
        budget.plot(ax="axes")


def test_other_objects_than_budgets_are_refused():
    budget = pdprivacy.Budget(epsilon=1)
    for entries, total, left, name in (
        (budget.entries[["release"]], Pure(1), (1, 0), "entries"),
        ({}, Pure(1), (1, 0), "entries"),
        (budget.entries, 1.0, (1, 0), "total"),
        (budget.entries, Approx(1, 1e-6), 1.0, "left"),
        (budget.entries, ZCDP(1), (1, 0, 0), "left"),
    ):
        with pytest.raises(ParameterError, match=f"'{name}' must be"):
            plots.draw_budget(entries, total, left)
    assert plt.get_fignums() == []


def test_without_matplotlib_a_budget_and_a_plan_name_the_extra(monkeypatch):
    private = protect(epsilon=1)
    plan = private.dp.plan.mean("age", epsilon=0.1, rows=100)
    for module in [loaded for loaded in sys.modules if loaded.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, module, None)
    for source in (private.dp, private.dp.budget, plan.dp):
        with pytest.raises(MissingExtraError) as caught:
            source.plot()
        assert 'pip install "pdprivacy[plot]"' in caught.value.hint


# ---------------------------------------------------------------- plans


KINDS = [None, "clamp", "truncated"]
LEVELS = [0.5, 0.005, 0.05]


@pytest.fixture(scope="module")
def share():
    return protect(epsilon=1).dp.plan.proportion(
        "region", "north", epsilon=LEVELS, bounding=KINDS, rows=8000, at=0.07
    )


def lines(ax):
    """The lines of an axes through points, by their style."""
    kinds = {(colour, marker): kind for kind, (colour, _, marker) in budget_plots.STYLES.items()}
    points = {}
    for line in ax.get_lines():
        if line.get_marker() not in ("", "None"):
            points[kinds[line.get_color(), line.get_marker()]] = line.get_xydata()
    return points


@pytest.mark.full
def test_error_and_bias_of_a_plan_are_drawn_against_epsilon(share):
    ax = bare(share)
    above, below = ax.child_axes
    assert above.get_title(loc="left") == "root mean squared error"
    assert below.get_title(loc="left") == "bias"
    for part, name in ((above, "rmse"), (below, "bias")):
        drawn = lines(part)
        assert set(drawn) == {"none", "clamp", "truncated"}
        for kind, points in drawn.items():
            assert points[:, 0].tolist() == sorted(LEVELS)
            expected = share[name].xs(kind, level="bounding").sort_index()
            assert points[:, 1] == pytest.approx(expected.to_numpy())
        assert part.get_xscale() == "log"
    assert above.get_yscale() == "log"  # over two powers of ten
    assert below.get_yscale() == "linear"  # of both signs, and 0
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["no bounding", "bounding clamp", "bounding truncated"]
    assert below.get_xlabel() == "epsilon (less noise to the right)"
    assert ax.get_title(loc="left") == "Plan: Proportion of region"
    assert "assumed: 8,000 records and a value of 0.07" in said(ax)
    assert "Laplace noise" in said(ax)


@pytest.mark.full
def test_the_ticks_of_a_plan_are_plain_numbers(share):
    for part in bare(share).child_axes:
        texts = [label.get_text() for label in part.get_yticklabels()]
        assert len(texts) >= 2
        positions = [label.get_position()[1] for label in part.get_yticklabels()]
        assert [float(text.replace("−", "-")) for text in texts] == pytest.approx(positions)


@pytest.mark.full
def test_a_choice_of_a_plan_that_was_rounded_is_drawn(share):
    some = share.loc[[0.05, 0.5], ["bias", "rmse", "plus_minus"]].round(4)
    ax = bare(some)
    expected = some["rmse"].xs("clamp", level="bounding").sort_index()
    assert lines(ax.child_axes[0])["clamp"] == pytest.approx(np.column_stack([expected.index, expected]))
    single = bare(share.loc[[0.05]])
    assert all(len(points) == 1 for points in lines(single.child_axes[0]).values())


@pytest.mark.full
def test_numbers_of_different_units_have_axes_of_their_own():
    plan = protect(epsilon=1).dp.plan.mean(["age", "year"], epsilon=[0.1, 1], rows=300)
    ax = bare(plan)
    names = [part.get_title(loc="left") for part in ax.child_axes]
    assert names == ["root mean squared error of age", "root mean squared error of year"]
    assert "there is no bias" in said(ax)
    for part, name in zip(ax.child_axes, ("age", "year"), strict=True):
        assert lines(part)["project"][:, 1] == pytest.approx(plan["rmse"].xs(name, level=2).to_numpy())
    (only,) = bare(plan.xs("year", level=2)).child_axes
    assert lines(only)["project"][:, 1] == pytest.approx(plan["rmse"].xs("year", level=2).to_numpy())


@pytest.mark.full
def test_numbers_that_are_alike_share_axes():
    plan = protect(epsilon=1).dp.plan.value_counts("region", epsilon=[0.1, 1], rows=300)
    ax = bare(plan)
    assert len(ax.child_axes) == 1
    assert lines(ax.child_axes[0])["none"][:, 1] == pytest.approx(plan["rmse"].to_numpy())
    counts = protect(epsilon=1).dp.plan.count(["age", "year"], epsilon=[0.1, 1], rows=300)
    (curve,) = budget_plots.curves_of(counts)
    assert curve.name == "age and 1 more"
    domain = Domain((*DOMAIN.columns, Column("member", "boolean")))
    private = FRAME.assign(member=True).dp.protect(domain, epsilon=1)
    margins = private.dp.plan.crosstab("region", "member", epsilon=1, rows=300, margins=True)
    names = [curve.name for curve in budget_plots.curves_of(margins)]
    assert bare(margins).get_title(loc="left") == "Plan: Contingency table of member by region"
    assert names == ["north, False and 3 more", "north, All and 3 more", "All, All"]


@pytest.mark.full
def test_a_plan_of_too_many_numbers_is_drawn_one_by_one():
    columns = tuple(Column(f"x{number}", "float", lower=0, upper=2.0**number) for number in range(6))
    frame = pd.DataFrame({column.name: [0.3, 0.4] for column in columns})
    plan = frame.dp.protect(Domain(columns), epsilon=1).dp.plan.sum(epsilon=0.1, rows=10)
    with pytest.raises(MetadataError, match="6 distinct numbers") as caught:
        plan.dp.plot()
    assert 'plan.xs("age", level=2).dp.plot()' in caught.value.hint
    assert bare(plan.xs("x3", level=2)).child_axes
    assert plt.get_fignums() == []


def test_without_room_a_plan_is_refused(share):
    with pytest.raises(ParameterError, match="no room for 2 axes"):
        bare(share, (3, 1.2))


CHANGED = {
    "no index": lambda plan: plan.reset_index(),
    "no bias": lambda plan: plan.drop(columns="bias"),
    "words": lambda plan: plan.astype(object).where(plan["rmse"] < 0, "0.77 secret"),
    "no row": lambda plan: plan.iloc[:0],
    "no number": lambda plan: plan * np.nan,
    "a negative epsilon": lambda plan: plan.rename(index={0.05: -0.05}, level=0),
    "another bounding": lambda plan: plan.rename(index={"clamp": "byte"}, level=1),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_plan_whose_numbers_are_not_there_is_refused(share, name):
    changed = CHANGED[name](share)
    changed.attrs = share.attrs
    with pytest.raises(MetadataError, match="is marked as a plan") as caught:
        changed.dp.plot()
    assert "private.dp.plan.mean(...).dp.plot()" in caught.value.hint
    assert "secret" not in str(caught.value)
    assert plt.get_fignums() == []


@pytest.mark.full
def test_what_a_plan_says_of_itself_is_declared_or_guessed():
    private = protect(epsilon=1).dp.query("age >= 30")
    guess = private.dp.plan.mean("age", epsilon=0.1, rows=77, at=33)
    assert guess.attrs == {
        PLAN: {
            "statistic": "mean", "columns": ["age"], "by": [], "mechanism": "laplace", "releases": 1,
            "filters": ["age >= 30"], "lineage": [], "normalize": None, "rows": 77, "at": 33.0,
            "level": 0.95,
        }
    }  # fmt: skip
    json.dumps(guess.attrs)
    other = FRAME.iloc[: ROWS // 2].dp.protect(DOMAIN, epsilon=1).dp.query("age >= 30")
    assert other.dp.plan.mean("age", epsilon=0.1, rows=77, at=33).attrs == guess.attrs
    assert "where age >= 30" in said(bare(guess))
    assert re.search(r"assumed: 77 records and a value of 33", said(bare(guess)))
    with pytest.raises(MetadataError):
        guess.dp.metadata  # noqa: B018
