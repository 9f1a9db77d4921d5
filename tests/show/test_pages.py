"""Displays (`view`, `markup`, `numbers`): numbers with errors, marks of confidential frames, and no cell."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import types
from decimal import Decimal
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import pdprivacy
from pdprivacy import Column, Domain, Ledger
from pdprivacy.errors import MetadataError, NotProtectedError
from pdprivacy.releases import MODULES, RELEASING
from pdprivacy.releases.view import TITLES, View, title_of_charge
from pdprivacy.show.pages import (
    html_of_marked,
    load_ipython_extension,
    register_where_running,
    unload_ipython_extension,
)
from pdprivacy.text import markup
from pdprivacy.text.numbers import half_width, label, paired, percent, plain, printable

pytestmark = pytest.mark.filterwarnings("ignore::pdprivacy.errors.OmissionWarning")

MARK = "CONFIDENTIAL: made of exact counts, for the curator alone"
SEEDED = "seeded: not private"
ALTERED = "changed since it was released"
BY = ["region", "age"]

# what every helper of a display may use; whatever fetches, runs or asks is not among them
TAGS = {"div", "p", "strong", "span", "svg", "path", "circle"}
TAGS |= {"table", "caption", "thead", "tbody", "tr", "th", "td"}
ATTRIBUTES = {"class", "style", "scope", "colspan", "cellpadding", "aria-hidden", "width", "height"}
ATTRIBUTES |= {"fill", "stroke", "stroke-opacity", "stroke-width", "d", "cx", "cy", "r"}


class Page(HTMLParser):
    """A page, refused unless it is well formed and holds nothing but text, tables and lines."""

    def __init__(self, html):
        super().__init__()
        self.tables, self.text, self.classes, self.bars = [], [], [], []
        self._open, self._width = [], 0
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs, *, closed=False):
        assert tag in TAGS
        assert {name for name, _ in attrs} <= ATTRIBUTES
        attributes = dict(attrs)
        self.classes += attributes.get("class", "").split()
        check_style(attributes.get("style", ""))
        if tag == "path" and "stroke-width" in attributes:  # from the lower to the upper end
            left, _, right = attributes["d"].removeprefix("M").partition("M")[0].partition("H")
            self.bars.append([float(left.split()[0]), float(right)])
        elif tag == "circle":
            self.bars[-1].insert(1, float(attributes["cx"]))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1] += [""] * int(attributes.get("colspan", 1))
        if not closed:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs, closed=True)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if {"td", "th"} & set(self._open):
            self.tables[-1][-1][-1] += data

    @property
    def words(self):
        return " ".join(self.text)


def check_style(style):
    """No address, and a text colour of its own only on a background of its own."""
    rules = dict(rule.split(":") for rule in style.split(";") if rule)
    assert "url" not in style
    assert "@" not in style
    fixed = {
        name: rules.get(name, "inherit") not in ("inherit", "transparent") for name in ("color", "background")
    }
    assert fixed["color"] == fixed["background"]


def of(frame):
    """The page of an accessor."""
    return Page(frame.dp._repr_html_())


# ---------------------------------------------------------------- releases


def releases(private):
    """A release of every shape: name to frame."""
    dp = private.dp
    return {
        "count": dp.count(epsilon=1),
        "mean": dp.mean(epsilon=1),
        "one": dp.mean("age", epsilon=1),
        "bounded": dp.mean("age", epsilon=1, bounding="clamp"),
        "several": dp.mean(["age", "family"], epsilon=1, releases=3),
        "value_counts": dp.value_counts("region", epsilon=1),
        "nullable": dp.histogram("income", 4, epsilon=1),
        "laplace": dp.value_counts("region", epsilon=1, mechanism="laplace"),
        "crosstab": dp.crosstab(BY, "health", epsilon=1),
        "shares": dp.crosstab("region", "health", epsilon=1, normalize=True),
        "margins": dp.crosstab("region", "health", epsilon=1, margins=True),
        "tables": dp.crosstab("region", "health", epsilon=1, releases=2),
        "constrained": dp.crosstab("region", "health", epsilon=1, constraint="hierarchy"),
        "corr": dp.corr(["age", "family", "income"], epsilon=10),
        "cov": dp.cov(["age", "family"], epsilon=10, delta=1e-6, mechanism="gaussian"),
        "describe": dp.describe(["age", "family"], epsilon=10),
        "groups": dp.groupby("region").mean(["age", "family"], epsilon=5),
        "proportion": dp.proportion("health", "no", epsilon=1),
        "kmeans": dp.kmeans(["age", "family"], 2, epsilon=10),
    }


def selections(private):
    """Releases that have no error of their own value."""
    dp = private.dp
    return {
        "mode": dp.mode(["region", "age"], epsilon=1),
        "top_k": dp.top_k("region", 2, epsilon=1),
        "tops": dp.top_k(["region", "health"], 2, epsilon=1, releases=2),
        "quantile": dp.quantile(["age", "income"], [0.25, 0.5], epsilon=5),
        "max": dp.max("age", epsilon=5),
        "kmedian": dp.kmedian("family", 2, epsilon=10, steps=3),
    }


MECHANISMS = {
    "laplace": "Laplace noise",
    "geometric": "geometric noise",
    "gaussian": "Gaussian noise",
    "exponential": "exponential mechanism",
    "permute_and_flip": "permute-and-flip",
}

RELEASES = ["count", "mean", "one", "bounded", "several", "value_counts", "nullable", "laplace", "crosstab"]
RELEASES += ["shares", "margins", "tables", "constrained", "corr", "cov", "describe", "groups", "proportion"]
RELEASES += ["kmeans"]
SELECTIONS = ["mode", "top_k", "tops", "quantile", "max", "kmedian"]


@pytest.fixture(scope="module")
def guarded(schema):
    """Two thousand records, far more than the noise, protected once with a budget for everything below."""
    rows = np.arange(2000)
    frame = pd.DataFrame(
        {
            "age": 20 + (rows * 17) % 60,
            "region": np.array(["north", "east", "south", "west"], dtype=object)[(rows * 7) % 4],
            "health": np.array(["no", "yes"], dtype=object)[(rows % 5 == 0).astype(int)],
            "family": 2 + (rows * 5) % 9,
            "income": np.where(rows % 7 == 0, np.nan, 100.0 + 20.5 * (rows % 40)),
            "member": rows % 3 == 0,
            "weight": 50.0 + rows,
            "town": np.array(["Aa", "Bb", "Cc"], dtype=object)[rows % 3],
            "person": 500 + rows,
            "visits": rows % 6,
        }
    )
    return frame.dp.protect(schema, epsilon=1000, delta=0.01)


@pytest.fixture(scope="module")
def made(guarded):
    return {**releases(guarded), **selections(guarded)}


def test_the_list_of_releases_is_whole(made):
    assert list(made) == [*RELEASES, *SELECTIONS]


def test_a_budget_titles_a_charge_as_its_release(guarded):
    before, dp = len(guarded.dp.budget.entries), guarded.dp
    made = [*releases(guarded).values(), *selections(guarded).values()]
    made += [dp.ols("income", ["age", "family"], epsilon=9), dp.groupby(BY).count(epsilon=1)]
    made += [dp.agg(["mean", "std"], "age", epsilon=1), dp.nunique("region", epsilon=1)]
    made += [dp.pooled_var("age", by="region", epsilon=1), dp.sum("age", weights="family", epsilon=1)]
    labels = guarded.dp.budget.entries["release"].tolist()[before:]
    for released, stored in zip(made, labels, strict=True):
        view = View.of(released)
        title = re.sub(r", \d (releases|iterations|steps)$", "", title_of_charge(stored))
        assert title == view.title.partition(" (shares")[0]


@pytest.mark.parametrize(
    ("stored", "title"),
    [
        ("mean of age", "Mean of age"),
        ("corr of wage, age, tenure", "Correlation of wage, age and tenure"),
        ("ols of wage, tenure", "Regression of wage on tenure"),
        ("kmeans of age, wage, 5 iterations", "k-means centres of age and wage, 5 iterations"),
        ("sum of age by region, 3 releases", "Sum of age by region, 3 releases"),
        ("mean of age by region weighted by w", "Mean of age by region, weighted by w"),
        (
            "count where (age > 1) and (x == 'a, by b') after clip",
            "Count where (age > 1) and (x == 'a, by b') after clip",
        ),
        ("var of a where (b > 1), 2 releases", "Variance of a where (b > 1), 2 releases"),
    ],
)
def test_titles_of_charges(stored, title):
    assert title_of_charge(stored) == title


@pytest.mark.parametrize(
    "stored", ["", "lost", "partition by region", "plan: 4 x count", "count people", "of"]
)
def test_other_labels_of_charges_are_shown_as_they_are(stored):
    assert title_of_charge(stored) == stored


WORDS = ["mean", "ols", "age", "", "of", "by", "weighted", "where", "(age > 1)", "after", ",", ", 2 releases"]


@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=3))).map(" ".join))
def test_any_label_of_a_charge_can_be_shown(stored):
    assert title_of_charge(stored) == stored or stored.startswith(tuple(TITLES))


def test_each_statistic_has_a_title():
    released = {name for module in RELEASING for name in MODULES[module]} - {"pivot_table"}  # a mean, say
    assert set(TITLES) == released


def shown(released):
    """The numbers and errors in the cells of a page, row by row, as texts."""
    table = of(released).tables[0][-len(released) :]
    levels = released.index.nlevels
    if isinstance(released, pd.Series):
        return [[(row[levels], row[levels + 1].strip() or None)] for row in table]
    return [[(*cell.strip().split(" ± "), None)[:2] for cell in row[levels:]] for row in table]


def number_of(text):
    """The value of a number that is shown with commas between thousands."""
    return Decimal(text.replace(",", ""))


def check_within(pair, value, lower, upper):
    """The interval shown contains the exact interval, and is hardly wider."""
    number, error = pair
    if "unknown (0 to " in (text := error or number):  # a count that is all noise
        half = (upper - lower) / 2
        assert value <= half
        assert number_of(text.rpartition(" to ")[2].rstrip(")")) == max(value, 0) + half
        return
    if error is None:
        assert math.isnan(upper) or upper == value
        return
    middle, half = number_of(number), number_of(error)
    step = Decimal(1).scaleb(min(middle.as_tuple().exponent, half.as_tuple().exponent))
    assert abs(middle - Decimal(value)) <= step / 2
    true = (Decimal(upper) - Decimal(lower)) / 2
    assert middle - half <= Decimal(lower) + Decimal("1e-9")
    assert middle + half >= Decimal(upper) - Decimal("1e-9")
    assert half <= true * Decimal("1.2") + Decimal("1e-9")


@pytest.mark.full(keep=9)
@pytest.mark.parametrize("name", RELEASES)
def test_numbers_and_errors_are_those_of_the_interval(made, name):
    released = made[name]
    interval = released.dp.interval()
    if isinstance(released, pd.Series):
        ends = [interval[field].to_numpy()[:, None] for field in ("released", "lower", "upper")]
    else:
        ends = [interval[field].to_numpy() for field in ("released", "lower", "upper")]
    cells = shown(released)
    assert len(cells) == len(released)
    for at, row in enumerate(cells):
        assert len(row) == ends[0].shape[1]
        for index, pair in enumerate(row):
            check_within(pair, *(end[at, index] for end in ends))


@pytest.mark.full(keep=14)
@pytest.mark.parametrize("name", RELEASES)
def test_there_is_a_bar_for_every_error_and_it_is_explained(made, name):
    released, page = made[name], of(made[name])
    half = np.asarray(released.attrs["dp"]["error"]["plus_minus"], dtype=float)
    errors = np.isfinite(np.broadcast_to(half, released.shape)).sum()
    assert page.classes.count("pdp-bar") == errors > 0
    assert "bars: the margin of error around each number (dot)" in page.words
    assert "not of a population" in page.words


def drawn(values, halves, low, high):
    """Where the ends and the dot of each bar are, to the tenth of a point."""
    ends = np.stack([values - halves, values, values + halves], axis=-1)
    return 4 + 82 * (ends - low) / (high - low)


def test_a_bar_is_the_interval_on_a_scale_that_holds_zero(made):
    counts = made["crosstab"].dp.interval()
    value, low, high = (counts[field].to_numpy().ravel() for field in ("released", "lower", "upper"))
    expected = drawn(value, (high - low) / 2, min(0, low.min()), max(0, high.max()))
    assert of(made["crosstab"]).bars == [pytest.approx(bar, abs=0.06) for bar in expected]
    for name in ("mean", "several"):  # each column has units of its own
        interval = made[name].dp.interval()
        value, low, high = (
            interval[field].to_numpy().reshape(len(interval), -1) for field in ("released", "lower", "upper")
        )
        bars = iter(of(made[name]).bars)
        for row in zip(value, low, high, strict=True):
            half = (row[2] - row[1]) / 2
            for bar in drawn(row[0], half, min(0, row[1].min()), max(0, row[2].max())):
                assert next(bars) == pytest.approx(bar, abs=0.06)
    groups = made["groups"].dp.interval()
    value, low, high = (groups[field].to_numpy() for field in ("released", "lower", "upper"))
    for at, bar in enumerate(of(made["groups"]).bars):
        row, column = divmod(at, 2)
        ends = min(0, low[:, column].min()), max(0, high[:, column].max())
        half = (high - low)[row, column] / 2
        assert bar == pytest.approx(drawn(value[row, column], half, *ends), abs=0.06)


def test_labels_stand_where_the_frame_has_them(made):
    table = made["crosstab"]
    rows = of(table).tables[0]
    assert rows[:2] == [["", "health", "no", "yes"], ["region", "age", "", ""]]
    assert [tuple(row[:2]) for row in rows[2:]] == table.index.tolist()
    several = of(made["tables"]).tables[0]
    assert several[0] == ["release", "", "1", "", "2"]  # each over two columns
    assert several[1] == ["health", "no", "yes", "no", "yes"]


@pytest.mark.full(keep=11)
@pytest.mark.parametrize("name", [*RELEASES, *SELECTIONS])
def test_labels_and_cost_are_told_at_a_prompt_too(made, name):
    released = made[name]
    page, text = of(released), repr(released.dp)
    stored = released.attrs["dp"]
    spent, total = stored["budget"]["spent"], stored["budget"]["total"]
    pieces = [*(name for name in stored["columns"]), f"epsilon {stored['epsilon']:g}"]
    pieces += [MECHANISMS[stored["mechanism"]], "add_remove: one record more or less"]
    pieces += [f"delta {stored['delta']:g}"] * (stored["delta"] > 0)
    pieces += [f"epsilon {spent[0]:g} of {total[0]:g}, delta {spent[1]:g} of {total[1]:g} spent"]
    for name in [*released.index, *(released.columns if isinstance(released, pd.DataFrame) else [])]:
        parts = name if isinstance(name, tuple) else (name,)
        pieces += ["NaN" if pd.isna(part) else str(part) for part in parts]
    for piece in pieces:
        assert piece in page.words
        assert piece in text
    assert [SEEDED in view for view in (page.words, text)] == [False, False]
    assert [ALTERED in view for view in (page.words, text)] == [False, False]


def test_text_and_page_show_the_same_numbers(made):
    text = repr(made["crosstab"].dp)
    for row in shown(made["crosstab"]):
        assert all(part in text for pair in row for part in pair if part)


@pytest.mark.parametrize("name", SELECTIONS)
def test_a_selection_has_no_error_of_its_value(made, name):
    released, page = made[name], of(made[name])
    table = page.tables[0]
    assert "±" not in page.words
    assert "pdp-bar" not in page.classes
    cells = [cell for row in table[-len(released) :] for cell in row[released.index.nlevels :]]
    assert cells == [plain(value) for value in released.to_numpy(dtype=object).ravel()]
    stored = released.attrs["dp"]["error"]["below_best"]
    (message,) = (row[1] for row in page.tables[1] if row[0] == "error")
    assert "With 95 % probability" in message
    for each in stored.values() if isinstance(stored, dict) else [stored]:
        assert half_width(each, whole=True) in message
        assert each <= number_of(half_width(each, whole=True)) <= 1.2 * each


def test_bias_risk_and_the_steps_are_told(survey, schema):
    private = survey.dp.protect(schema, epsilon=100, unit="person", max_rows=1)
    steps = private.dp.query("age > 30").dp.recode("region", {"north": "up"})
    table = steps.dp.crosstab("region", "health", epsilon=1, release_id="of May", bounding="clamp")
    rows = {row[0]: row[1] for row in of(table).tables[1]}
    share = percent(table.attrs["dp"]["dr_ha"]["by_records"])
    assert rows["risk"] == f"{share} of records in this table (dr_ha, estimated from the released counts)"
    assert rows["neighbors"] == "add_remove: all records of one person more or less"
    assert rows["where"] == "age > 30"
    assert rows["after"] == ", ".join(table.attrs["dp"]["lineage"])
    assert rows["release id"] == "of May"
    assert rows["mechanism"] == "geometric noise, bounding clamp"
    worst = max(np.abs(np.ravel(table.attrs["dp"]["error"]["bias"])))
    stated = float(rows["bias"].removeprefix("at most ").split()[0])
    assert worst <= stated <= 1.2 * worst + 1e-12
    public = survey.dp.protect(schema, epsilon=9, neighbors="replace_one").dp.mean("age", epsilon=1)
    rows = {row[0]: row[1] for row in of(public).tables[1]}
    assert rows["rows"] == "40 (public)"
    assert rows["neighbors"] == "replace_one: one record with other values"


def test_a_budget_in_rho_is_told_in_rho(survey, schema):
    budget = pdprivacy.Budget(rho=2)
    private = survey.dp.protect(schema, budget=budget)
    mean = private.dp.mean("age", epsilon=1, delta=1e-6, mechanism="gaussian")
    rows = {row[0]: row[1] for row in of(mean).tables[1]}
    spent = mean.attrs["dp"]["budget"]["spent"][0]
    stated, rest = rows["budget"].removeprefix("rho ").split(" ", 1)
    assert rest == "of 2 spent"
    assert spent <= float(stated) <= spent * (1 + 1e-5)


# ---------------------------------------------------------------- numbers


@given(
    st.one_of(st.integers(-(10**14), 10**14), st.floats(-1e14, 1e14, allow_nan=False)),
    st.floats(1e-11, 1e14, allow_nan=False),
)
def test_the_shown_interval_holds_the_exact_interval_and_is_hardly_wider(value, half):
    number, error = (number_of(text) for text in paired(value, half))
    exact, true = Decimal(repr(value)), Decimal(repr(half))
    assert number - error <= exact - true
    assert number + error >= exact + true
    assert error <= true * Decimal("1.2") + (1 if half >= 1 else 0)
    if isinstance(value, int):
        assert number == value


@given(st.floats(), st.floats(min_value=0))
def test_any_number_and_error_can_be_shown(value, half):
    number, error = paired(value, half)
    known = math.isfinite(value) and math.isfinite(half)
    assert (error != "") == known
    assert len(number) + len(error) < 60
    if known:
        assert number_of(error) + abs(number_of(number) - Decimal(repr(value))) >= Decimal(repr(half))
        assert not number.startswith("-") or number_of(number) != 0


@given(st.floats(-1e14, 1e14), st.floats(-1e14, 1e14), st.floats(1e-11, 1e14))
def test_equal_errors_look_equal_beside_every_number(value, other, half):
    assert paired(value, half)[1] == paired(other, half)[1] == half_width(half)


@given(st.floats(1e-15, 1e16, exclude_min=True), st.booleans())
@example(0.0996, False)
@example(0.0999999, True)
@example(9.96, False)
@example(9.96, True)
@example(9.96e-12, False)
def test_a_margin_of_error_has_two_digits_and_is_never_shown_smaller(half, whole):
    text = half_width(half, whole)
    shown, true = number_of(text), Decimal(repr(half))
    digits = text.partition("e")[0].replace(",", "").replace(".", "").lstrip("0")
    assert len(digits) <= 2 or text.replace(",", "").isdigit()  # or those before the point
    assert true <= shown <= true * Decimal("1.15")


def test_a_margin_of_error_that_is_rounded_to_a_power_of_ten_loses_a_digit():
    assert [half_width(half, whole=True) for half in (0.0996, 0.0999999, 9.96)] == ["0.10", "0.10", "10"]
    # a number that is rounded, too, moves by up to half a step
    assert paired(48.4442, 0.0996) == ("48.44", "0.11")
    assert paired(48.4442, 9.96) == ("48", "11")


# ---------------------------------------------------------------- what is confidential


def curators(private):
    """Everything made of exact counts: name to object."""
    dp = private.dp
    simulated = {"method": "monte_carlo", "draws": 3, "rng": 1}
    return {
        "quality": dp.quality(),
        "dr_ha": dp.dr_ha(BY, "health", [1, 2]),
        "cells": dp.dr_ha(BY, "health", 1, average=None),
        "cells by epsilon": dp.dr_ha(BY, "health", [1, 2], average=None),
        "simulated": dp.dr_ha(BY, "health", [1, 2], **simulated),
        "simulated cells": dp.dr_ha(BY, "health", 1, average=None, **simulated),
        "simulated cells by epsilon": dp.dr_ha(BY, "health", [1, 2], average=None, **simulated),
        "risk_curve": dp.risk_curve(BY, "health", [1, 2]),
        "utility": dp.utility(["region", "health"], draws=2, rng=1),
        "tradeoff": dp.tradeoff("region", "health", [1, 2], draws=2, rng=1),
        "repeated_risk": dp.repeated_risk([{"by": "age", "sensitive": "health", "epsilon": 1}]),
        "compare_sampling": dp.compare_sampling("mean", "age", epsilon=1, rates=[0.5], repetitions=3, rng=1),
        "compare_suppression": dp.compare_suppression(
            "mode", "region", epsilon=1, spreads=[(0.5, 0.5)], repetitions=3, rng=1
        ),
        "summary": dp.homogeneity(BY, "health").summary,
        "exposed": dp.homogeneity(BY, "health").exposed,
        "few records": (classes := dp.anonymity(BY, "health")).summary,
        "diversity": classes.diversity,
        "risky": classes.risky,
        "sizes": classes.sizes,
    }


@pytest.fixture(scope="module")
def exact(guarded):
    return curators(guarded)


CURATORS = ["quality", "dr_ha", "cells", "cells by epsilon", "simulated", "simulated cells"]
CURATORS += ["simulated cells by epsilon", "risk_curve", "utility", "tradeoff", "repeated_risk"]
CURATORS += ["compare_sampling", "compare_suppression", "summary", "exposed"]
CURATORS += ["few records", "diversity", "risky", "sizes"]


def test_the_list_of_the_curator_is_whole(exact):
    assert list(exact) == CURATORS


@pytest.mark.full(keep=11)
@pytest.mark.parametrize("name", CURATORS)
def test_exact_results_are_marked_as_confidential(exact, name):
    frame = exact[name]
    page, text = of(frame), repr(frame.dp)
    assert page.classes.count("pdp-confidential") == 1
    assert page.text[0] == MARK
    assert text.startswith(MARK)
    names = frame.columns if isinstance(frame, pd.DataFrame) else [frame.name]
    for name in names:
        for title in name if isinstance(name, tuple) else (name,):
            assert label(title) in page.words
            assert label(title) in text


@pytest.mark.full(keep=11)
@pytest.mark.parametrize("name", CURATORS)
def test_the_numbers_of_the_curator_are_all_there(exact, name):
    frame = exact[name]
    table = frame.to_frame() if isinstance(frame, pd.Series) else frame
    rows = of(frame).tables[0][-len(table) :]
    for row, values in zip(rows, table.itertuples(index=False), strict=True):
        for cell, value in zip(row[table.index.nlevels :], values, strict=True):
            if isinstance(value, float):
                assert float(cell.replace(",", "")) == pytest.approx(value, rel=1e-5, nan_ok=True)
            else:
                assert cell.strip() == plain(value)


@pytest.mark.parametrize("name", ["quality", "cells", "risk_curve", "tradeoff", "summary"])
def test_a_piece_of_what_is_confidential_keeps_the_mark(exact, name):
    assert MARK in of(exact[name].iloc[:1]).words
    assert MARK in of(exact[name].iloc[:1] * 2).words


def bare(frame):
    """The frame without its ``attrs``, which pandas drops in ``concat``, and which files do not hold."""
    stripped = frame.copy()
    stripped.attrs = {}
    return stripped


@pytest.mark.parametrize("name", CURATORS)
def test_confidential_results_keep_the_mark_without_their_attrs(exact, name):
    for frame in (bare(exact[name]), bare(exact[name]).iloc[:1]):
        assert of(frame).text[0] == MARK
        assert repr(frame.dp).startswith(MARK)
        assert Page(html_of_marked(frame)).text[0] == MARK


def test_several_frames_stand_under_one_mark(guarded):
    result = guarded.dp.homogeneity(BY, "health", top=3)
    page = Page(result._repr_html_())
    assert page.text[0] == MARK
    assert page.classes.count("pdp-confidential") == 1
    assert [row[0] for row in page.tables[0][-3:]] == ["homogeneous", "heterogeneous", "all"]
    assert len(page.tables[1]) == 2 + 3
    assert "most exposed" in page.words


def test_bars_of_the_curator_are_simulation_errors_or_comparisons(exact):
    for name in ("simulated", "simulated cells", "simulated cells by epsilon", "utility"):
        assert "1.96 standard errors of the simulation" in of(exact[name]).words
    risks = exact["simulated"]
    half = 1.959963984540054 * risks["standard_error"].to_numpy()
    values = risks["risk"].to_numpy()
    ends = min(0, (values - half).min()), (values + half).max()
    assert of(risks).bars == [pytest.approx(bar, abs=0.06) for bar in drawn(values, half, *ends)]
    for name in ("compare_sampling", "compare_suppression"):
        page = of(exact[name])
        assert "bars: from lower to upper" in page.words
        assert page.classes.count("pdp-bar") == len(exact[name])
    for name in ("dr_ha", "risk_curve", "tradeoff", "quality"):
        assert "pdp-bar" not in of(exact[name]).classes


@pytest.mark.full(keep=11)
@pytest.mark.parametrize("name", [*RELEASES, *SELECTIONS])
def test_releases_are_not_marked_as_confidential(made, name):
    for view in (made[name].dp._repr_html_(), repr(made[name].dp), made[name].dp.metadata._repr_html_()):
        assert "confidential" not in view.lower()


def test_a_name_alone_makes_nothing_confidential(survey):
    """pandas names columns after what they were made of, and a table may have a column of that name."""
    survey["confidential"] = survey["member"]
    table = pd.crosstab(survey["region"], survey["confidential"])
    assert table.columns.name == "confidential"
    for frame in (table, survey, survey["confidential"], survey["age"].rename("risk (confidential)")):
        assert "CONFIDENTIAL" not in frame.dp._repr_html_()
        assert "CONFIDENTIAL" not in repr(frame.dp)
    domain = Domain((Column("confidential", "boolean"), Column("region", "category", categories=("a", "b"))))
    frame = pd.DataFrame({"confidential": [True, False], "region": ["a", "b"]})
    released = frame.dp.protect(domain, epsilon=1).dp.crosstab("region", "confidential", epsilon=1)
    assert "pdp-confidential" not in of(released).classes


# ---------------------------------------------------------------- seeds and changes


def test_a_seed_stands_out(guarded):
    seeded = guarded.dp.mean("age", epsilon=1, rng=1)
    page = of(seeded)
    assert page.classes.count("pdp-warning") == 1
    assert page.text[:2] == ["Mean of age", SEEDED]
    assert repr(seeded.dp).splitlines()[1].strip() == SEEDED
    assert SEEDED in Page(seeded.dp.metadata._repr_html_()).words
    drawn = guarded.dp.sample(frac=0.5, rng=1)
    assert SEEDED in of(drawn).words
    assert SEEDED in repr(drawn.dp)
    assert SEEDED in of(drawn.dp.count(epsilon=1)).words


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table * 2,
        lambda table: table.iloc[::-1] + 1,
        lambda table: table.assign(raw=54321),
        lambda table: table.rename(columns={"no": "yes", "yes": "no"}),
    ],
    ids=["scaled", "turned", "raw column", "renamed"],
)
def test_a_changed_release_says_so_and_shows_no_number_of_its_own(made, change):
    changed = change(made["crosstab"])
    assert "dp" in changed.attrs
    page, text = of(changed), repr(changed.dp)
    assert page.classes.count("pdp-warning") == 1
    assert "pdp-bar" not in page.classes
    assert len(page.tables) == 1  # what is told of the release, and no cell
    for view in (page.words, text):
        assert ALTERED in view
        assert "not of what is here" in view
        assert "54321" not in view
    assert "geometric" in page.words


# ---------------------------------------------------------------- frames that are protected, or nothing


def canaries():
    """Cells that are nowhere else, in columns of every kind, and 389 records."""
    rows = np.arange(389)
    return pd.DataFrame(
        {
            "pay": 700001 + rows,
            "rent": 0.123456 + rows,
            "area": np.where(rows % 2 == 0, "north", "south"),
            "town": [f"canary{row}" for row in rows],
            "extra": [f"undeclared{row}" for row in rows],
        },
        index=pd.Index([f"row{row}" for row in rows], name="person"),
    )


CANARIES = ("7000", "7001", "7002", "7003", "123456", "canary", "undeclared", "row1", "389")
DECLARED = Domain(
    (
        Column("pay", "integer", lower=0, upper=10**6),
        Column("rent", "float", lower=0, upper=500),
        Column("area", "category", categories=("north", "south")),
        Column("town", "category"),
    )
)


def test_a_protected_frame_shows_what_is_declared_and_spent_and_no_cell():
    private = canaries().dp.protect(DECLARED, epsilon=50)
    private.dp.mean("pay", epsilon=0.5)
    steps = private.dp.query("area == 'south'").dp.clip(upper={"pay": 800000})
    (part, _) = private.dp.partition("area", epsilon=1).values()
    for frame in (private, steps, part, private.dp.sample(frac=0.5)):
        page, text = of(frame), repr(frame.dp)
        for view in (page.words, text):
            assert not [canary for canary in CANARIES if canary in view]
            for piece in ("pay", "rent", "area", "town", "'south'", "add_remove: one record more or less"):
                assert piece in view
        assert [row[0] for row in page.tables[0]][1:5] == ["pay", "rent", "area", "town"]
    assert "Mean of pay" in of(private).words
    assert "Lineage" not in of(private).words
    page = of(steps)
    assert [row[1] for row in page.tables[-1][1:]] == steps.dp.lineage["step"].tolist()
    for step in steps.dp.lineage["step"]:
        assert step in repr(steps.dp)
    drawn = of(private.dp.sample(frac=0.5)).tables[-1]
    assert drawn[-1] == ["1", "sample(frac=0.5)", "a secret part", "ln(1 + 0.5 (e^epsilon - 1))"]


def test_the_number_of_rows_is_shown_where_it_is_public():
    public = canaries().dp.protect(DECLARED, epsilon=1, neighbors="replace_one")
    assert ["rows", "389 (public)"] in of(public).tables[1]
    private = canaries().dp.protect(DECLARED, epsilon=1)
    assert ["rows", "private"] in of(private).tables[1]
    assert ["rows", "private"] in of(public.dp.query("pay > 3")).tables[1]


def test_a_frame_that_is_not_protected_is_told_how():
    raw = canaries()
    private = raw.dp.protect(DECLARED, epsilon=1)
    for view in (of(raw).words, repr(raw.dp)):
        assert "df.dp.protect(schema" in view
        assert not [canary for canary in CANARIES if canary in view]
    for view in (of(raw["pay"]).words, repr(raw["pay"].dp)):
        assert "carries no release metadata" in view
        assert not [canary for canary in CANARIES if canary in view]
    for view in (repr(private["pay"]), f"{private['pay'] > 3}", repr(private[private["pay"] > 3])):
        assert "pay" in view
        assert not [canary for canary in CANARIES if canary in view]


def test_frames_of_other_engines_show_as_much():
    pl = pytest.importorskip("polars", reason="Polars is not installed")
    pytest.importorskip("narwhals", reason="narwhals is not installed")
    private = pdprivacy.protect(pl.from_pandas(canaries()), DECLARED, epsilon=2)
    page, text = of(private), repr(private.dp)
    for view in (page.words, text):
        assert "Protected frame of Polars" in view
        assert not [canary for canary in CANARIES if canary in view]
    assert private._repr_html_() == private.dp._repr_html_()


def test_a_lineage_is_a_table_of_steps(guarded):
    steps = guarded.dp.query("age > 30").dp.sample(frac=0.25)
    frame = steps.dp.lineage
    page = of(frame)
    assert page.tables[0][0] == ["", "step", "stability", "cost"]
    assert page.tables[0][1] == ["1", frame["step"].iloc[0], "1", "epsilon"]
    assert page.tables[0][2][2] == "a secret part"
    assert "sample(frac=0.25)" in repr(frame.dp)


# ---------------------------------------------------------------- budgets, ledgers, plans, metadata


def test_a_ledger_lists_its_budgets(tmp_path, survey, schema):
    path = tmp_path / "a&b.db"
    ledger = Ledger(path)
    assert "no budget is open yet" in Page(ledger._repr_html_()).words
    first = survey.dp.protect(schema, epsilon=2, delta=1e-6, budget=ledger, name="<b>survey")
    first.dp.mean("age", epsilon=0.5)
    total = pdprivacy.ZCDP("0.25")
    ledger.open("in rho", total)
    page = Page(ledger._repr_html_())
    assert "a&b.db" in page.words
    assert page.tables[0][0] == ["name", "total", "spent", "left", "accounting", "neighbors", "charges"]
    amounts = ["epsilon 2, delta 1e-06", "epsilon 0.5, delta 0", "epsilon 1.5, delta 1e-06"]
    assert ["<b>survey", *amounts, "basic", "add_remove", "1"] in page.tables[0]
    assert ["in rho", "rho 0.25", "rho 0", "rho 0.25", "basic", "", "0"] in page.tables[0]
    stored = Page(first.dp.budget._repr_html_())
    assert stored.tables[0][-1][0] == "1. Mean of age"
    first.dp.budget.charge(pdprivacy.Pure(0.25), "lost")
    assert Page(first.dp.budget._repr_html_()).tables[0][-1][0] == "2. lost (not answered)"
    assert "<b>survey" in of(first).words
    ledger.close()
    path.write_bytes(b"no ledger at all" * 100)
    assert "pdp-warning" in Page(Ledger(path)._repr_html_()).classes
    assert Page(Ledger(path)._repr_html_()).tables == []


def test_a_ledger_that_cannot_be_read_hides_nothing_else(tmp_path, survey, schema):
    path = tmp_path / "budget.db"
    ledger = Ledger(path)
    private = survey.dp.protect(schema, epsilon=2, budget=ledger, name="survey")
    ledger.close()
    path.write_bytes(b"no ledger at all" * 100)
    page = of(private)
    assert "pdp-warning" in page.classes
    assert "\\n" not in page.words
    assert page.tables[0][1][0] == "age"
    assert "add_remove" in repr(private.dp)


def test_a_plan_tells_what_it_would_cost(guarded, survey, schema):
    calls = [("mean", "age", {"epsilon": 0.05})] * 40 + [("count", {"epsilon": 1})]
    plan = guarded.dp.plan_releases(calls, delta=1e-6)
    table = Page(plan._repr_html_()).tables[0]
    assert table[0] == ["", "epsilon", "delta"]
    assert [row[0] for row in table[1:]] == ["together", "one by one", "40 x mean of age", "1 x count"]
    assert float(table[1][1]) == pytest.approx(float(plan.cost.epsilon))
    assert table[2][1:] == ["3", "0"]
    private = survey.dp.protect(schema, epsilon=3, delta=1e-3, accounting="zcdp")
    plan = private.dp.plan_releases(calls[:1], delta=1e-6)
    assert "counted one by one in the budget" in Page(plan._repr_html_()).tables[0][1][0]


def test_metadata_is_a_table_of_what_is_known(made):
    facts = made["mean"].dp.metadata
    rows = dict(Page(facts._repr_html_()).tables[0])
    assert rows["mechanism"] == "laplace"
    assert rows["epsilon"] == "1.0"
    assert rows["columns"].startswith('["age", ')
    assert rows["fingerprint"] == facts.fingerprint
    assert rows["bounding"] == "project"
    assert "constraint" not in rows
    assert len(Page(made["corr"].dp.metadata._repr_html_()).words) < 6000


# ---------------------------------------------------------------- any label, any size

LABELS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(['<script>alert("1")</script>', "a&amp;b", "'\"", "]]>", "<!--", "\u202e", "x" * 2000]),
)


@given(name=LABELS, labels=st.lists(LABELS, min_size=2, max_size=4, unique=True))
def test_labels_are_text_and_nothing_else(name, labels):
    domain = Domain(
        (Column(name, "category", categories=tuple(labels)), Column(("of", name), "boolean", nullable=True))
    )
    frame = pd.DataFrame({0: labels, 1: True}, dtype=object)
    frame.columns = pd.Index([name, ("of", name)], tupleize_cols=False)
    private = frame.dp.protect(domain, epsilon=9)
    steps = private.dp.dropna(subset=[name])
    released = private.dp.value_counts(name, epsilon=1)
    page = of(released)
    assert [row[0] for row in page.tables[0][1:]] == [printable(label) for label in released.index]
    assert page.tables[0][0][0] == printable(name)
    table = private.dp.crosstab(name, [("of", name)], epsilon=1)
    assert {row[0] for row in of(table).tables[0]} >= {printable(label) for label in labels}
    selected = private.dp.mode(name, epsilon=1)
    assert of(selected).tables[0][-1][1] == printable(selected.iloc[0])
    for frame in (private, steps, steps.dp.lineage, private.dp.quality()):
        of(frame)
    for source in (private.dp.budget, private.dp.domain, released.dp.metadata):
        Page(source._repr_html_())
    for frame in (released, table, selected, private):
        assert all(character.isprintable() or character == "\n" for character in repr(frame.dp))


def test_null_labels_and_missing_numbers_are_shown_as_pandas_does(guarded):
    counts = guarded.dp.histogram("income", 2, epsilon=1)
    assert [row[0] for row in of(counts).tables[0][1:]] == [*counts.index[:2], "NaN"]
    attrs = counts.attrs
    odd = pd.Series([1.5, np.nan, np.inf], index=pd.Index([None, np.nan, None], dtype=object), name="count")
    pdprivacy.releases.metadata.attach(
        odd, {**attrs["dp"], "error": {"level": 0.95, "standard_error": 1, "plus_minus": 2}}
    )
    page = of(odd)
    assert page.tables[0][1:] == [
        ["NaN", "1.5", "unknown (0 to 3.5) "],
        ["NaN", "NaN", ""],
        ["NaN", "inf", ""],
    ]
    assert page.classes.count("pdp-bar") == 1


def test_errors_that_are_not_known_are_not_made_up(guarded):
    mean = guarded.dp.mean(["age", "family"], epsilon=1)
    mean[:] = [40.0, 5.5]
    error = {"level": 0.95, "standard_error": [None, 0.5], "plus_minus": [None, 1.0]}
    pdprivacy.releases.metadata.attach(mean, {**mean.attrs["dp"], "error": error})
    page = of(mean)
    assert [row[2].strip() for row in page.tables[0][1:]] == ["", "1.1"]
    assert "not known of all numbers" in page.words
    none = {"level": 0.95, "standard_error": None, "plus_minus": None}
    pdprivacy.releases.metadata.attach(mean, {**mean.attrs["dp"], "error": none})
    assert ["error", "not known"] in of(mean).tables[1]
    assert "±" not in of(mean).words


def wide(rows, columns):
    """A release of any size."""
    table = pd.DataFrame(np.arange(rows * columns).reshape(rows, columns))
    table.columns = [f"c{number}" for number in range(columns)]
    stored = {
        "statistic": "crosstab",
        "columns": ["x"],
        "mechanism": "geometric",
        "epsilon": 1.0,
        "delta": 0.0,
        "neighbors": "add_remove",
        "sensitivity": 1.0,
        "scale": 1.0,
        "split": {},
        "error": {"level": 0.95, "standard_error": 1.4, "plus_minus": 3.0},
        "budget": {"total": [1, 0], "spent": [1, 0]},
        "seeded": False,
        "version": "0",
    }
    pdprivacy.releases.metadata.attach(table, stored)
    return table


def test_large_tables_are_cut_as_pandas_cuts_them():
    released = wide(1000, 50)
    page = of(released)
    table = page.tables[0]
    assert [row[0] for row in table[1:]] == [
        "0",
        "1",
        "2",
        "3",
        "4",
        "...",
        "995",
        "996",
        "997",
        "998",
        "999",
    ]
    assert table[0][1:] == [
        *(f"c{number}" for number in range(10)),
        "...",
        *(f"c{number}" for number in range(40, 50)),
    ]
    hidden = [f"{number}, unknown (0 to {number + 3})" for number in range(4)]
    assert table[1][1:12] == [*hidden, *(f"{number} ± 3" for number in range(4, 10)), "..."]
    assert "pdp-bar" not in page.classes  # of hundreds, each some hundred bytes
    assert table[-1][-1] == "49,999 ± 3"
    assert "1000 rows × 50 columns" in page.words
    assert "1000 rows × 50 columns" in repr(released.dp)
    with pd.option_context("display.max_rows", 4, "display.min_rows", 3, "display.max_columns", 2):
        table = of(released).tables[0]
        assert [row[0] for row in table[1:]] == ["0", "1", "...", "999"]
        assert table[0][1:] == ["c0", "...", "c49"]
    with pd.option_context("display.max_rows", None, "display.max_columns", None):
        page = of(wide(100, 30))
        assert len(page.tables[0]) == 101
        assert "100 rows" not in page.words
    with pd.option_context("display.max_rows", 0, "display.max_columns", 0):
        assert len(of(wide(61, 2)).tables[0]) == 1 + 11


def test_a_page_of_a_large_table_is_small():
    assert len(wide(20000, 50).dp._repr_html_()) < 30_000
    assert len(wide(60, 20).dp._repr_html_()) < 100_000
    assert len(wide(50, 4).dp._repr_html_()) < 80_000


# ---------------------------------------------------------------- notebooks


@pytest.fixture
def shell():
    """A shell of IPython, as a notebook has one, without its history; left as it was."""
    interactive = pytest.importorskip("IPython.core.interactiveshell", reason="IPython is not installed")
    config = pytest.importorskip("traitlets.config")
    settings = config.Config()
    settings.HistoryManager.enabled = False
    return interactive.InteractiveShell(config=settings)


def html_of(shell, value):
    """The HTML that a notebook would show, or None."""
    data, _ = shell.display_formatter.format(value, include={"text/html"})
    return data.get("text/html")


def printers(shell):
    return dict(shell.display_formatter.formatters["text/html"].type_printers)


@pytest.mark.full
def test_a_notebook_shows_marked_frames_by_their_page(shell, made, exact, guarded):
    load_ipython_extension(shell)
    for frame in [*made.values(), *exact.values(), guarded.dp.query("age > 30").dp.lineage]:
        assert html_of(shell, frame) == frame.dp._repr_html_()


def test_all_other_frames_are_shown_as_before(shell, made, guarded, survey):
    class Own(pd.DataFrame):
        def _repr_html_(self):
            return "own"

    changed = made["crosstab"].assign(raw=1)
    others = [
        survey,
        guarded,
        survey["age"],
        made["mean"] * 2,
        changed,
        Own(survey),
        pd.DataFrame(),
        guarded["age"],
    ]
    others += [
        pdprivacy.protect(survey, guarded.dp.domain, epsilon=1)[["age"]],
        pd.Series([1], index=["_repr_html_"]),
    ]
    others += [pd.crosstab(survey["region"], survey["member"].rename("confidential"))]
    before = [html_of(shell, frame) for frame in others]
    assert before[1] is not None
    assert before[2] is None
    assert before[5] == "own"
    load_ipython_extension(shell)
    assert [html_of(shell, frame) for frame in others] == before


DAMAGED = [
    5,
    [],
    "dp",
    {},
    {"statistic": "mean"},
    {"confidential": object()},
    {"declared": "lineage"},
    {"error": None},
    {"error": {"plus_minus": "x"}},
    {"error": {"plus_minus": [1, 2, 3, 4, 5]}},
    {"error": {"below_best": {"a": "<b>"}}},
    {"budget": {}},
    {"epsilon": "<script>"},
    {"columns": None},
    {"fingerprint": 5},
    {"seeded": "perhaps"},
    {"dr_ha": {}},
    {"releases": "many"},
    {"filters": 5},
    {"statistic": ["mean"]},
]


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("damage", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_mark_never_fails(shell, guarded, damage):
    load_ipython_extension(shell)
    formatter = shell.display_formatter.formatters["text/html"]
    for released in (guarded.dp.mean("age", epsilon=1), guarded.dp.crosstab("region", "health", epsilon=1)):
        stored = released.attrs["dp"]
        whole = (
            isinstance(damage, dict)
            and damage
            and set(damage) <= set(stored)
            and damage != {"statistic": "mean"}
        )
        released.attrs["dp"] = {**stored, **damage} if whole else damage
        html = formatter.lookup(released)(released)  # of which IPython would hide what it raises
        if html is not None and html == released.dp._repr_html_():
            Page(html)  # the damage is where no display looks
        elif isinstance(released, pd.DataFrame):
            assert html == released._repr_html_()
        else:
            assert html is None
        own_html = released.dp._repr_html_()
        Page(own_html)
        assert "<script" not in own_html
        assert repr(released.dp)


def test_a_label_that_calls_itself_html_is_escaped():
    class Bold(str):
        __slots__ = ()

        def __html__(self):
            return "<b>"

    assert markup.escape(Bold("<b>")) == "&lt;b&gt;"
    assert "<b>" not in markup.table(["", "n"], [[Bold("<b>"), 1]])


@pytest.mark.parametrize("name", ["columns", "budget", "seeded", "dr_ha"])
def test_of_damaged_metadata_the_field_is_named(guarded, name):
    released = guarded.dp.mean("age", epsilon=1)
    released.attrs["dp"][name] = 5
    assert repr(released.dp) == f"The release metadata is not that of a release: {name!r}."
    with pytest.raises(MetadataError, match=name):
        released.dp.plot()


def test_a_formatter_of_somebody_else_is_kept_and_called(shell, made, survey):
    html = shell.display_formatter.formatters["text/html"]
    html.for_type(pd.DataFrame, lambda frame: f"theirs {len(frame)}")
    html.for_type(pd.Series, lambda _: None)
    load_ipython_extension(shell)
    assert html_of(shell, survey) == "theirs 40"
    assert html_of(shell, survey["age"]) is None
    assert html_of(shell, made["crosstab"]) == made["crosstab"].dp._repr_html_()
    html.for_type(pd.DataFrame, lambda _: "later")  # whoever comes last is asked first
    assert html_of(shell, made["crosstab"]) == "later"


def test_loading_twice_is_loading_once_and_unloading_takes_it_back(shell, survey, made):
    html = shell.display_formatter.formatters["text/html"]
    html.for_type(pd.DataFrame, lambda _: "theirs")
    before = printers(shell)
    load_ipython_extension(shell)
    load_ipython_extension(shell)
    assert printers(shell)[pd.DataFrame].before is before[pd.DataFrame]
    unload_ipython_extension(shell)
    assert printers(shell) == before
    assert html_of(shell, made["crosstab"]) == "theirs"
    unload_ipython_extension(shell)
    assert printers(shell) == before


def test_the_option_of_pandas_turns_pages_off(shell, made, survey):
    load_ipython_extension(shell)
    with pd.option_context("display.notebook_repr_html", False):
        assert html_of(shell, survey) is None
        assert html_of(shell, made["crosstab"]) is None
        assert html_of(shell, made["mean"]) is None


@pytest.mark.full
def test_a_release_of_very_many_labels_is_left_to_pandas(shell):
    load_ipython_extension(shell)
    large = wide(100_001, 1)
    assert html_of(shell, large) == large._repr_html_()


@pytest.mark.parametrize("kind", ["no shell", "no displays", "raises", "no IPython"])
def test_importing_does_not_depend_on_the_shell(monkeypatch, kind):
    def fail():
        raise RuntimeError

    shells = {"no shell": lambda: None, "no displays": lambda: types.SimpleNamespace(), "raises": fail}
    module = types.SimpleNamespace(get_ipython=shells[kind]) if kind in shells else None
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert register_where_running() is None


CODE = """
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
settings = Config()
settings.HistoryManager.enabled = False
shell = InteractiveShell.instance(config=settings)
import pandas as pd
html = shell.display_formatter.formatters["text/html"]
before = pd.DataFrame in html.type_printers
{use}
print(before, pd.DataFrame in html.type_printers, pd.Series in html.type_printers)
"""


@pytest.mark.full
@pytest.mark.parametrize(
    "use",
    [
        "shell.run_cell('import pdprivacy')",
        "InteractiveShell.clear_instance(); import pdprivacy; shell.run_line_magic('load_ext', 'pdprivacy')",
    ],
    ids=["import", "load_ext"],
)
def test_a_notebook_is_told_by_the_import_or_by_the_magic(use):
    pytest.importorskip("IPython", reason="IPython is not installed")
    process = subprocess.run(
        [sys.executable, "-c", CODE.format(use=use)], capture_output=True, text=True, check=False
    )
    assert process.stdout.split()[-3:] == ["False", "True", "True"], process.stderr


def test_an_accessor_keeps_its_errors(survey):
    """A display says why there is nothing to show; a call still refuses."""
    with pytest.raises(NotProtectedError):
        survey.dp.mean("age", epsilon=1)
    for name in ("_ipython_display_", "_repr_mimebundle_", "_ipython_canary_method_should_not_exist_"):
        assert not hasattr(survey.dp, name)


@pytest.mark.parametrize("options", [{"margins": True}, {"normalize": "index"}, {"normalize": True}])
def test_a_part_of_a_table_says_what_was_released(private, options):
    """Also where each number has an error of its own, and the part fewer of them."""
    table = private.dp.crosstab("region", "health", epsilon=10, **options)
    (error,) = (line for line in str(table.dp).splitlines() if line.strip().startswith("error"))
    for part in (table.head(1), table.T, table["yes"], table.sum() + 1, pd.concat([table, table])):
        changed = "not those that were released" in part.dp.changes
        for view in (str(part.dp), part.dp._repr_html_()):
            assert (ALTERED in view) == changed
            assert "metadata" not in view
            assert "epsilon 10" in view
        if changed:
            assert error in str(part.dp).splitlines()
        else:
            assert part.dp.changes in " ".join(str(part.dp).split())
