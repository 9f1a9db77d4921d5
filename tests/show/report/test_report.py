"""The report: what it says, against what was released, charged and declared; and what it never says."""

from __future__ import annotations

import hashlib
import math
import os
import re
import stat
import sys
from collections import Counter
from fractions import Fraction
from html import unescape
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdprivacy
from pdprivacy import Budget, Column, Domain, Ledger, Pure
from pdprivacy.core.privacy import Confidential
from pdprivacy.errors import (
    MetadataError,
    MissingExtraError,
    MissingLedgerError,
    NotProtectedError,
    OmissionWarning,
    ParameterError,
    TamperedLedgerError,
)
from pdprivacy.pipeline.storage import to_bytes
from pdprivacy.releases import metadata
from pdprivacy.show.report import Report, costs, report_page
from pdprivacy.text.numbers import cost, half_width, paired, remaining
from tests.support.report_pages import Page, fabricated, page, total_of

DRAWN = find_spec("matplotlib") is not None
PARQUET = pytest.mark.skipif(find_spec("pyarrow") is None, reason="Parquet files need pyarrow")


RELEASES = {
    "count": lambda p: p.dp.count(epsilon=0.5),
    "sums": lambda p: p.dp.sum(["age", "income"], epsilon=0.5),
    "means": lambda p: p.dp.mean(["age", "income"], epsilon=0.5),
    "gaussian mean": lambda p: p.dp.mean("age", epsilon=0.5, delta=1e-6, mechanism="gaussian"),
    "heavy": lambda p: p.dp.mean("age", epsilon=0.5, delta=1e-6, mechanism="generalized_gaussian", p=3),
    "description": lambda p: p.dp.describe("age", epsilon=0.5),
    "correlations": lambda p: p.dp.corr(["age", "family"], epsilon=0.5, constraint="psd"),
    "share": lambda p: p.dp.proportion("health", "yes", epsilon=0.5, bounding="clamp"),
    "shares": lambda p: p.dp.value_counts("region", epsilon=0.5, normalize=True, constraint="simplex"),
    "several": lambda p: p.dp.mean("age", epsilon=0.5, releases=3),
    "table": lambda p: p.dp.crosstab(["region", "age"], "health", epsilon=0.5),
    "margins": lambda p: p.dp.crosstab("region", "health", epsilon=0.5, margins=True),
    "wide": lambda p: p.dp.crosstab("health", ["region", "age"], epsilon=0.5),
    "by group": lambda p: p.dp.groupby(["region", "health"]).mean(["family", "income"], epsilon=0.5),
    "filtered": lambda p: p.dp.query("age >= 30 and health == 'yes'").dp.count(epsilon=0.5),
    "derived": lambda p: p.dp.assign(more="2 * family").dp.mean("more", epsilon=0.5),
    "median": lambda p: p.dp.median(["age", "income"], epsilon=0.5),
    "least": lambda p: p.dp.min("family", epsilon=0.5),
    "mode": lambda p: p.dp.mode(["region", "member"], epsilon=0.5),
    "top": lambda p: p.dp.top_k("region", 2, epsilon=0.5),
    "centres": lambda p: p.dp.kmeans(["age", "family"], 2, epsilon=0.5),
    "medians": lambda p: p.dp.kmedian("family", 2, epsilon=0.5, steps=3),
    "sampled": lambda p: p.dp.sample(frac=0.5).dp.count(epsilon=0.5),
}


@pytest.fixture
def released(private) -> dict[str, pd.Series | pd.DataFrame]:
    with pytest.warns(OmissionWarning):
        return {name: make(private) for name, make in RELEASES.items()}


# ------------------------------------------------------------------ what it says of releases


def test_every_kind_of_release_is_reported(released):
    report = page(released)
    assert pdprivacy.report(released, pictures=False).releases == tuple(released)
    costs = report.tables["Cost of each result"]
    assert [row[0] for row in costs[1:]] == list(released)
    for name, result in released.items():
        row = next(row for row in costs if row[0] == name)
        assert Fraction(row[2]) == Fraction(str(result.dp.metadata.epsilon))
        assert Fraction(row[3]) == Fraction(str(result.dp.metadata.delta))
    assert report.tables["Versions and fingerprints"][1:] == [
        [name, pdprivacy.__version__, result.dp.metadata.fingerprint] for name, result in released.items()
    ]


def numbers_of(cells: list[str]) -> list[float]:
    return [float(cell.replace(",", "")) for cell in cells]


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("name", ["sums", "means", "by group", "margins", "wide", "several", "shares"])
def test_a_row_per_number_with_its_half_width(released, name):
    result = released[name]
    half = result.dp.metadata.error_of_each("plus_minus", result.shape).ravel()
    (rows,) = (
        rows for caption, rows in page({name: result}).tables.items() if caption.endswith("as released")
    )
    if "±" not in rows[0]:  # side by side
        cells = [
            re.split(" ± |, (?=unknown)", cell) for row in rows[1:] for cell in row[result.index.nlevels :]
        ]
        values, texts = numbers_of([cell[0] for cell in cells]), [cell[1] for cell in cells]
    else:
        values = numbers_of([row[-2] for row in rows[1:]])
        texts = [row[-1].removeprefix("± ") for row in rows[1:]]
    known = np.array([not text.startswith("unknown") for text in texts])
    errors = numbers_of([text for text in texts if not text.startswith("unknown")])
    assert (~known).sum() <= result.dp.metadata.error["all_noise"]
    assert (np.abs(np.array(values) - result.to_numpy(dtype=float).ravel()) <= half / 10 + 1e-9).all()
    half = half[known]
    assert (np.array(errors) >= half - 1e-12).all()
    # two digits, rounded up after half a step for the rounding of the number: 15 % of 1.0 at most
    np.testing.assert_allclose(errors, half, rtol=0.151)


def test_margins_of_error_are_explained(private):
    text = page(private.dp.mean("age", epsilon=1)).text
    assert "Each ± is a 95 % margin of error of one number, of the noise alone." in text


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("name", ["means", "by group", "margins", "shares", "median", "description"])
def test_numbers_are_written_as_in_a_notebook(released, name):
    """The same number and the same margin of error in the table, under the picture and in a notebook."""
    result = released[name]
    words = re.sub(r"<[^>]*>", " ", result.dp._repr_html_())
    (rows,) = (
        rows for caption, rows in page({name: result}).tables.items() if caption.endswith("as released")
    )
    for cell in (cell for row in rows[1:] for cell in row):
        assert cell.removeprefix("± ") in unescape(words)


def test_labels_are_those_of_the_release(released):
    (rows,) = (rows for name, rows in page(released["by group"]).tables.items() if name.endswith("released"))
    assert rows[0] == ["region", "health", *released["by group"].columns]
    assert [tuple(row[:2]) for row in rows[1:]] == released["by group"].index.tolist()
    (rows,) = (rows for name, rows in page(released["wide"]).tables.items() if name.endswith("released"))
    keys = [(key, *top) for key in released["wide"].index for top in released["wide"].columns]
    assert [tuple(row[:3]) for row in rows[1:]] == keys


def test_a_long_table_is_cut_and_says_so():
    domain = Domain((Column("x", "integer", lower=1, upper=700),))
    private = pd.DataFrame({"x": [5, 6]}).dp.protect(domain, epsilon=10)
    counts = private.dp.value_counts("x", epsilon=1, sort=False)
    report = page(counts)
    (rows,) = (rows for name, rows in report.tables.items() if name.endswith("as released"))
    assert len(rows) - 1 == report_page.MOST_ROWS
    assert [row[0] for row in rows[1:]] == [str(label) for label in range(1, report_page.MOST_ROWS + 1)]
    assert "The first 200 of 700 numbers" in report.text


def test_a_label_that_is_a_number_is_no_quantity():
    domain = Domain((Column("year", "category", categories=(2025, 2026)),))
    private = pd.DataFrame({"year": [2025, 2026]}).dp.protect(domain, epsilon=10)
    report = page([private.dp.mode("year", epsilon=1), private.dp.value_counts("year", epsilon=1)])
    assert "2,025" not in report.text
    assert "2,026" not in report.text


def test_conditions_and_steps_are_told(released):
    report = page({name: released[name] for name in ("filtered", "derived", "sampled")})
    assert "age >= 30 and health == 'yes'" in report.text
    assert released["derived"].dp.metadata.lineage[0] in report.text
    assert "sample(frac=0.5)" in report.text


def test_bounded_and_consistent_numbers_are_said_to_be(released):
    assert "biases numbers towards the inside" in page(released["share"]).text
    assert "set to the bound" in page(released["share"]).text
    assert "made consistent (constraint simplex)" in page(released["shares"]).text
    assert "biases numbers" not in page(released["sums"]).text
    assert "3 independent releases" in page(released["several"]).text


def test_a_selection_is_told_in_records_and_not_as_a_width(released):
    report = page({"median": released["median"]})
    below = released["median"].dp.metadata.error["below_best"]
    assert report.tables["Margins of error"][1] == ["median", "2", "selected: see the result"]
    assert all(f"{half_width(value, whole=True)} ({name})" in report.text for name, value in below.items())
    assert "ranks of the true quantile" in report.text


def test_bounds_and_labels_that_were_found_are_shown_without_margins():
    domain = Domain((Column("city", "category", private_labels=True), Column("pay", "float")))
    frame = pd.DataFrame({"city": ["Bern", "Rome"] * 300, "pay": np.arange(600.0)})
    private = pdprivacy.protect(frame, domain, epsilon=100, delta=1e-3)
    bounds = private.dp.find_bounds("pay", epsilon=10)
    labels, counts = (
        private.dp.find_labels("city", epsilon=1, delta=1e-6, counts=counts) for counts in (False, True)
    )
    report = page({"bounds": bounds, "labels": labels, "counts": counts})
    margins = {name: error for name, _, error in report.tables["Margins of error"][1:]}
    assert margins["bounds"] == margins["labels"] == "selected: see the result"
    assert margins["counts"].startswith("±")
    cells = [cell for caption, rows in report.tables.items() if "Labels of city" in caption for cell in rows]
    assert {"Bern", "Rome"} <= {text for row in cells[:3] for text in row}
    assert "No bound of the number of records outside holds for all data" in report.text
    assert f"labels of {labels.dp.metadata.error['always']} records or more are always found" in report.text
    if DRAWN:
        assert "data:image" in pdprivacy.report([bounds, labels]).html


def test_the_estimated_risk_is_that_of_the_release(survey, schema):
    private = pd.concat([survey] * 50, ignore_index=True).dp.protect(schema, epsilon=100)
    table = private.dp.crosstab(["region", "age"], "health", epsilon=1)
    report = page({"table": table, "mean": private.dp.mean("age", epsilon=1)})
    (_, row) = report.tables["Homogeneity attacks, estimated from the released counts alone"]
    assert row[:3] == ["table", "region, age", "health"]
    risk = table.dp.metadata.dr_ha
    for cell, share in zip(row[3:], (risk["by_cells"], risk["by_records"]), strict=True):
        if not cell.startswith("<"):
            assert float(cell.removesuffix(" %")) == pytest.approx(100 * share, rel=0.01)
    assert "For the other 1 result no estimate is known" in report.text
    assert "no guarantee: epsilon is what holds whatever an attacker knows or tries" in report.text


def test_where_no_risk_is_known_none_is_denied(released):
    report = page(released["means"])
    assert "is not known for any of the results" in report.text
    assert "does not mean that there is no risk" in report.text


def test_without_a_budget_the_sum_says_what_it_supposes(released):
    assert "assumes that nothing else was released from the same data" in page(released["count"]).text


def test_every_kind_of_release_is_found_in_the_budget_that_paid(private, released):
    report = page(released, ledger=private.dp.budget)
    assert "Not known to be charged" not in report.text
    assert total_of(report)[0] == Fraction(str(private.dp.budget.spent[0]))


# ------------------------------------------------------------------ what epsilon means


def test_a_guess_and_a_test_are_those_of_randomized_response():
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(3), Fraction(9)):
        grown = np.exp(float(epsilon))
        told_true = grown / (1 + grown)  # the probability to answer truly
        assert costs.posterior(epsilon) == pytest.approx(told_true)
        for alarms in (0.01, 0.05, 0.3, 0.7):
            # the best test accuses on "yes", at first, and then, at random, on "no"
            best = alarms * grown if alarms <= 1 - told_true else told_true + (alarms - 1 + told_true) / grown
            assert costs.detected(epsilon, Fraction(0), alarms) == pytest.approx(best)
    assert costs.detected(Fraction(1), Fraction(1, 10), 0.05) == pytest.approx(0.05 * np.e + 0.1)
    assert costs.detected(Fraction(1000), Fraction(0)) == 1


def test_the_promise_is_told_in_numbers_rounded_up():
    text = page(fabricated(epsilon=0.7)).text
    assert "at most 2.02 times as likely" in text  # e^0.7 = 2.0137...
    assert "becomes at most 66.9 % and at least 33.1 %" in text  # 66.82 %
    assert "factor is at most 4.06" in text  # e^1.4 = 4.0552
    assert "rightly says yes in at most 10.1 % of" in text  # 10.07 %
    assert "as if epsilon were twice as large, 1.4" in text


def test_with_a_delta_no_odds_are_promised():
    text = page(fabricated(epsilon=0.7, delta=1e-6)).text
    assert "plus delta, 1e-06" in text
    assert "odds" not in text
    assert "fifty-fifty" not in text
    assert "no limit to what a single, very unlikely outcome may reveal" in text


def test_replacing_has_one_factor_and_says_contents():
    text = page(fabricated(epsilon=0.7, neighbors="replace_one")).text
    assert "at most 2.02 times as likely with one content of a record as with any other content" in text
    assert "4.06" not in text


def test_a_large_epsilon_is_called_loose():
    assert "This guarantee is loose" in page(fabricated(epsilon=6)).text
    assert "guarantees nothing of use" in page(fabricated(epsilon=25)).text
    assert "loose" not in page(fabricated(epsilon=1)).text


@given(st.fractions(Fraction(1, 10**15), 10**8), st.integers(1, 9))
def test_costs_are_rounded_up_and_what_is_left_down(number, digits):
    shown = Fraction(cost(number, digits))
    assert number <= shown <= number * (1 + Fraction(10) ** (1 - digits))
    left = Fraction(remaining(number, digits))
    assert number * (1 - Fraction(10) ** (1 - digits)) <= left <= number


@given(st.floats(1e-9, 1e9), st.floats(-1e9, 1e9))
def test_half_widths_are_rounded_up(half, value):
    number, stated = (float(text.replace(",", "")) for text in paired(value, half))
    step = Fraction(10) ** min(math.floor(math.log10(stated)) - 1, 0)  # two significant digits
    assert abs(number - value) <= step / 2 + 1e-15 * abs(value)
    # the interval that is shown holds the exact one, and is hardly wider
    assert half <= stated <= Fraction(half) + step * Fraction(3, 2) + Fraction(1e-9 * half)


# ------------------------------------------------------------------ seeds, versions, damage


def test_a_seed_takes_every_promise_away(private):
    unseeded, seeded = private.dp.mean("age", epsilon=0.5), private.dp.mean("age", epsilon=0.5, rng=1)
    report = page({"kept": unseeded, "seeded": seeded})
    assert "Not private." in report.text
    assert "“seeded” was made with noise from a seed" in report.text
    assert "no guarantee holds for the results as a whole" in report.text
    assert "fifty-fifty" not in report.text
    assert "times as likely" not in report.text
    assert "NOT PRIVATE" in pdprivacy.report(seeded, pictures=False).html  # on each printed page
    for clean in (page(unseeded).text, pdprivacy.report(unseeded, pictures=False).html):
        assert "not private" not in clean.lower()


def test_a_seed_takes_promises_of_other_comparisons_away_too(schema, survey):
    seeded = survey.dp.protect(schema, epsilon=10, neighbors="replace_one").dp.mean("age", epsilon=0.5, rng=1)
    report = page({"s": seeded, "f": survey.dp.protect(schema, epsilon=10).dp.mean("age", epsilon=0.5)})
    assert " sure." not in report.text
    assert "Any outcome of these releases" not in report.text


def test_a_confidential_number_names_no_release(private):
    with pytest.raises(ParameterError, match="confidential"):
        page({Confidential(0.43219): private.dp.mean("age", epsilon=0.5)})


def test_releases_of_several_versions_are_told_apart():
    report = page(
        [fabricated(number=1, version="0.0.9"), fabricated(number=2), fabricated(number=3, version="99.1")]
    )
    assert "made by 3 versions of pdprivacy" in report.text
    assert "Newer than the version that made this report: 99.1." in report.text
    assert [row[1] for row in report.tables["Versions and fingerprints"][1:]] == [
        "0.0.9",
        pdprivacy.__version__,
        "99.1",
    ]
    assert "versions of pdprivacy" not in page(fabricated()).text


def test_an_unknown_field_is_refused_by_name():
    odd = fabricated(format=2, version="99.0")
    with pytest.raises(MetadataError, match=r"releases\['odd'\] holds 'format'.*made by pdprivacy '99\.0'"):
        page({"odd": odd})


DAMAGE = {
    "epsilon": ["0.5", -1.0, 0.0, float("nan"), float("inf"), True, None],
    "delta": [1.0, -0.1, None],
    "neighbors": ["all", None, 3],
    "seeded": ["no", 0, None],
    "error": [
        None,
        [],
        {},
        {"standard_error": 1, "plus_minus": "x"},
        {"standard_error": 1, "plus_minus": [1, 2]},
    ],
    "p": ["<b>"],
    "budget": [{}, {"total": [1.0], "spent": [1.0, 0.0]}, {"total": ["x", 0], "spent": [1, 0]}],
    "columns": ["age", [1]],
    "version": [1],
    "dr_ha": [{}, {"by_cells": 2.0, "by_records": 0.1}, "low"],
    "releases": [0, 1.5],
    "lineage": [None, "sample"],
}


@pytest.mark.parametrize("name", DAMAGE)
def test_invalid_metadata_is_refused(name, tmp_path):
    for value in DAMAGE[name]:
        damaged = fabricated()
        damaged.attrs["dp"][name] = value
        with pytest.raises(MetadataError, match=rf"releases\['x'\].*'{name}'"):
            pdprivacy.report({"x": damaged}, path=tmp_path / "r.html", pictures=False)
    assert list(tmp_path.iterdir()) == []


def test_a_changed_release_is_named_and_nothing_is_written(private, tmp_path):
    good, bad = private.dp.mean("age", epsilon=1), private.dp.crosstab("region", "health", epsilon=1)
    bad.iloc[0, 0] += 1
    target = tmp_path / "report.html"
    target.write_text("of yesterday")
    before = private.dp.budget.spent
    for releases, pattern in (({"a": good, "b": bad}, r"releases\['b'\]"), ([good, bad], r"releases\[1\]")):
        with pytest.raises(MetadataError, match=rf"numbers or labels of {pattern} are not those"):
            pdprivacy.report(releases, ledger=private.dp.budget, path=target)
    assert target.read_text() == "of yesterday"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert private.dp.budget.spent == before


BAD = {
    "nothing": ([], ParameterError, "must hold at least one release"),
    "a raw frame": (pd.DataFrame({"a": [1]}), MetadataError, "cannot be read as a release"),
    "a number": (3.5, ParameterError, "must be a release"),
    "a number among releases": ([3.5], ParameterError, r"releases\[0\] must be a released"),
    "no such file": ("nowhere.parquet", ParameterError, "no such file"),
}


@pytest.mark.parametrize("name", BAD)
def test_other_objects_than_releases_are_refused(name):
    source, error, words_ = BAD[name]
    if name == "no such file" and find_spec("pyarrow") is None:
        pytest.skip("Parquet files need pyarrow")
    with pytest.raises(error, match=words_):
        page(source)


def test_protected_frames_are_no_releases(private):
    for frame in (private, private.query("age > 30")):
        with pytest.raises(MetadataError, match="is a protected frame"):
            page({"x": frame})


def test_the_only_budget_of_a_ledger_needs_no_name(tmp_path):
    with pdprivacy.Ledger(tmp_path / "budget.db") as ledger:
        with pytest.raises(pdprivacy.errors.PrivacyError):
            page(pd.Series([1.0]), ledger=ledger)
        frame, domain = (
            pd.DataFrame({"age": [31, 54]}),
            Domain((Column("age", "integer", lower=0, upper=90),)),
        )
        private = pdprivacy.protect(frame, domain, epsilon=1, budget=ledger, name="survey")
        mean = private.dp.mean("age", epsilon=0.25)
        private.dp.count(epsilon=0.25)
        assert page(mean, ledger=ledger) is not None
        by_name, alone = (
            pdprivacy.report(mean, ledger=ledger, pictures=False, **words).html
            for words in ({"name": "survey"}, {})
        )
        assert "0.5" in alone
        assert len(alone) == len(by_name)
        pdprivacy.protect(frame, domain, epsilon=1, budget=ledger, name="other")
        with pytest.raises(ParameterError, match="'name' is missing: the ledger has 2 budgets") as caught:
            page(mean, ledger=ledger)
        assert "name=" in caught.value.hint


def test_arguments_are_checked(private, tmp_path):
    mean = private.dp.mean("age", epsilon=1)
    for options, words_ in (
        ({"edition": "secret"}, "'edition'"),
        ({"edition": None}, "'edition'"),
        ({"title": " "}, "'title'"),
        ({"title": 3}, "'title'"),
        ({"name": "survey"}, "'name' needs a 'ledger'"),
        ({"ledger": 3, "name": "x"}, "'ledger' must be"),
        ({"ledger": private.dp.budget, "name": "x"}, "'name' differs"),
        ({"path": tmp_path}, "is a folder"),
        ({"path": tmp_path / "no" / "r.html"}, "folder that does not exist"),
        ({"path": 3}, "'path' must be"),
        ({"path": ""}, "'path' must be"),
        ({"path": "a\0b"}, "'path' must be"),
    ):
        with pytest.raises(ParameterError, match=re.escape(words_)):
            page(mean, **options)
    with pytest.raises(ParameterError, match="'pictures'"):
        pdprivacy.report(mean, pictures="yes")
    with pytest.raises(NotProtectedError):
        page(mean, declaration=pd.DataFrame({"age": [1]}))
    with pytest.raises(MissingLedgerError):
        page(mean, ledger=tmp_path / "b.db", name="x")
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ files and extras


@PARQUET
def test_releases_come_back_from_parquet_files(private, tmp_path):
    table, mean = (
        private.dp.crosstab("region", "health", epsilon=1),
        private.dp.mean(["age", "family"], epsilon=1),
    )
    table.to_parquet(tmp_path / "table.parquet")
    mean.to_frame().rename(columns={0: "mean"}).to_parquet(tmp_path / "mean.parquet")
    files = [tmp_path / "table.parquet", str(tmp_path / "mean.parquet")]
    report = page(files)
    assert [row[0] for row in report.tables["Versions and fingerprints"][1:]] == ["table", "mean"]
    assert total_of(report) == (2, 0)
    assert total_of(page([*files, tmp_path / "table.parquet"])) == (2, 0)  # the same file is the same release


@PARQUET
def test_a_file_of_a_step_is_the_release_as_it_was(tmp_path):
    domain = Domain((Column("x", "integer", nullable=True, lower=1, upper=3),))
    private = pd.DataFrame({"x": pd.array([2, None], dtype="Int64")}).dp.protect(domain, epsilon=10)
    counts = private.dp.value_counts("x", epsilon=1, sort=False)
    data, _ = to_bytes(counts)
    (tmp_path / "counts.parquet").write_bytes(data)
    report = page(tmp_path / "counts.parquet")
    (rows,) = (rows for name, rows in report.tables.items() if name.endswith("as released"))
    assert [row[0] for row in rows[1:]] == ["1", "2", "3", "NaN"]
    (tmp_path / "cut.parquet").write_bytes(data[:-50])
    with pytest.raises(MetadataError, match=r"cut\.parquet"):
        page(tmp_path / "cut.parquet")


@PARQUET
def test_files_that_hold_no_release_are_refused(private, tmp_path):
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "raw.parquet")
    (tmp_path / "text.parquet").write_text("no Parquet")
    changed = private.dp.crosstab("region", "health", epsilon=1)
    changed.iloc[0, 0] += 1
    changed.to_parquet(tmp_path / "changed.parquet")
    for name, words_ in (
        ("raw", "cannot be read as a release"),
        ("text", "cannot be read"),
        ("changed", "are not those"),
    ):
        with pytest.raises(MetadataError, match=rf"{name}\.parquet.*{words_}"):
            page(tmp_path / f"{name}.parquet")


@PARQUET
def test_no_report_replaces_what_it_is_made_of(private, tmp_path, schema, survey):
    ledger = Ledger(tmp_path / "budget.db")
    table = survey.dp.protect(schema, epsilon=2, budget=ledger, name="s").dp.crosstab(
        "region", "health", epsilon=1
    )
    table.to_parquet(tmp_path / "table.parquet")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for path in ("table.parquet", "budget.db"):
        with pytest.raises(ParameterError, match="would replace"):
            pdprivacy.report(
                tmp_path / "table.parquet", ledger=ledger, name="s", path=tmp_path / path, pictures=False
            )
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_file_is_whole_or_not_there(private, tmp_path, monkeypatch):
    mean, target = private.dp.mean("age", epsilon=1), tmp_path / "report.html"
    report = pdprivacy.report(mean, path=target, pictures=False)
    assert target.read_text("utf-8") == report.html
    assert isinstance(report, Report)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ParameterError, match=r"No space left on device\. Nothing was written"):
        pdprivacy.report(fabricated(), path=target, pictures=False)
    monkeypatch.undo()
    assert target.read_text("utf-8") == report.html
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
def test_the_edition_of_the_curator_is_the_owners_alone(tmp_path):
    old = os.umask(0o022)
    try:
        for edition, rights in (("public", 0o644), ("curator", 0o600)):
            path = tmp_path / edition
            pdprivacy.report(fabricated(), path=path, edition=edition, pictures=False)
            assert stat.S_IMODE(path.stat().st_mode) == rights
    finally:
        os.umask(old)


@pytest.mark.parametrize(
    ("missing", "extra"), [("matplotlib", "plot"), ("pyarrow", "parquet"), ("jinja2", "report")]
)
def test_a_missing_extra_is_named_before_anything_is_written(missing, extra, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    releases = tmp_path / "a.parquet" if missing == "pyarrow" else fabricated()
    with pytest.raises(MissingExtraError, match=rf"pdprivacy\[{extra}\]"):
        pdprivacy.report(releases, path=tmp_path / "r.html", pictures=missing == "matplotlib")
    assert list(tmp_path.iterdir()) == []
    if missing != "jinja2":
        pdprivacy.report(fabricated(), path=tmp_path / "r.html", pictures=False)


# ------------------------------------------------------------------ editions

HIDDEN = "where (town == 'Zzyzx')"


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "quokka-ledger.db") as opened:
        yield opened


@pytest.fixture
def counted():
    """Records whose exact counts are telling primes: 7919 of them, 1021 ill."""
    rows = np.arange(7919)
    return pd.DataFrame(
        {
            "region": np.array(["north", "south"], dtype=object)[(rows % 3 == 0).astype(int)],
            "ill": np.array(["no", "yes"], dtype=object)[(rows < 1021).astype(int)],
        }
    )


ILLNESS = Domain(
    (
        Column("region", "category", categories=("north", "south"), role="quasi_identifier"),
        Column("ill", "category", categories=("no", "yes"), role="sensitive"),
    )
)


def exact_numbers(frame: pd.DataFrame) -> set[str]:
    counts = [len(frame), *frame["ill"].value_counts(), *frame.groupby(["region", "ill"]).size()]
    return {text for count in counts for text in (str(count), f"{count:,}")}


def test_the_public_edition_holds_nothing_confidential(ledger, counted):
    private = counted.dp.protect(ILLNESS, epsilon=50, budget=ledger, name="wombat-name")
    released = {
        "table": private.dp.crosstab("region", "ill", epsilon=0.001, release_id="numbat"),
        "mode": None,
    }
    released["mode"] = private.dp.mode("ill", epsilon=0.5)
    budget = ledger.budget("wombat-name")
    budget.charge(Pure(0.125), f"count {HIDDEN}", "bandicoot", release_id="bilby")
    budget.answered(budget.entries.index[-1], risk=0.9321)  # more than that of any table of so much noise
    budget.charge(Pure(0.0625), "never answered")
    keywords = {"ledger": ledger, "name": "wombat-name", "declaration": private}
    public = pdprivacy.report(released, pictures=DRAWN, **keywords).html
    page_ = Page(public)
    secrets = [
        HIDDEN,
        "Zzyzx",
        "bandicoot",
        "bilby",
        "93.2",
        "never answered",
        "wombat",
        "quokka",
        ledger.head,
    ]
    secrets += [
        ledger.head.partition(":")[2][:12],
        "Audit",
        "CONFIDENTIAL",
        "not known to have been answered",
    ]
    for secret in secrets:
        assert secret not in unescape(public), secret
    # digits within a hash, and noisy counts, are exact numbers by chance at times
    by_chance = {text for count in released["table"].to_numpy().flat for text in (str(count), f"{count:,}")}
    assert not exact_numbers(counted) & set(re.findall(r"\b[\d,]+\b", page_.text)) - by_chance
    times = ledger.entries("wombat-name")["time"]
    assert not any(f"{time:%H:%M}" in page_.text for time in times)
    rows = {row[0]: row[1:] for row in page_.tables["Total cost"][1:]}
    assert rows["Charged for anything else from the same data"] == ["0.1875", "0"]
    # the same ledger, for the curator
    figures_ = {"quality": private.dp.quality(), "cells": private.dp.homogeneity("region", "ill", 3)}
    curator = Page(
        pdprivacy.report({**released, **figures_}, edition="curator", pictures=False, **keywords).html
    )
    for secret in [HIDDEN, "bandicoot", "bilby", "93.2 %", "never answered", "wombat-name", ledger.head]:
        assert secret in curator.text, secret
    assert "7,919" in curator.text
    assert "not known to have been answered: 4" in curator.text
    assert curator.text.count("CONFIDENTIAL") >= 2


def test_the_charges_are_those_of_the_ledger(ledger, counted):
    private = counted.dp.protect(ILLNESS, epsilon=50, budget=ledger, name="s")
    first = private.dp.mode("ill", epsilon=0.5, release_id="one")
    private.dp.crosstab("region", "ill", epsilon=0.25)
    report = page({"first": first}, ledger=ledger, name="s", edition="curator")
    rows = report.tables["All charges"][1:]
    entries = ledger.entries("s")
    assert entries["release"].tolist() == ["mode of ill", "crosstab of ill by region"]
    assert [row[1] for row in rows] == ["Mode of ill", "Contingency table of ill by region"]
    assert [float(row[3]) for row in rows] == entries["epsilon"].tolist()
    assert [row[-1] for row in rows] == ["first", ""]
    assert [row[8] for row in rows] == ["one", ""]
    assert f"no fault found in {ledger.audit().records} records" in report.text


BY = (["region", "age"], "health")
CURATED = {
    "curve": lambda p: p.dp.risk_curve(*BY, epsilon=[0.1, 1]),
    "exchange": lambda p: p.dp.tradeoff(*BY, epsilon=[0.1, 1], draws=2, rng=1),
    "distances": lambda p: p.dp.utility(["region", "health"], epsilon=[0.1, 1], draws=2, rng=1),
    "quality": lambda p: p.dp.quality(),
    "homogeneous": lambda p: p.dp.homogeneity(*BY),
    "classes": lambda p: p.dp.anonymity(*BY),
    "risks": lambda p: p.dp.dr_ha(*BY, epsilon=[0.1, 1]),
    "risk of cells": lambda p: p.dp.dr_ha(*BY, epsilon=[0.1, 1], average=None),
    "one risk": lambda p: p.dp.dr_ha(*BY, epsilon=1),
    "repeated": lambda p: p.dp.repeated_risk([{"by": BY[0], "sensitive": BY[1], "epsilon": 1}]),
    "sampled": lambda p: p.dp.compare_sampling("mean", "age", epsilon=1, rates=[0.5], repetitions=3, rng=1),
    "suppressed": lambda p: p.dp.compare_suppression(
        "mean", "age", epsilon=1, spreads=[(0.5, 0.5)], repetitions=3, rng=1
    ),
    "chosen": lambda p: p.dp.choose_epsilon(*BY, max_risk=0.9),
}


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("name", CURATED)
def test_confidential_figures_are_refused_by_name_or_shown_as_such(private, name, tmp_path):
    figure = CURATED[name](private)
    count = private.dp.count(epsilon=1)
    with pytest.raises(ParameterError, match=rf"releases\['{name}'\] is made of exact counts, CONFIDENTIAL"):
        pdprivacy.report({"count": count, name: figure}, path=tmp_path / "r.html", pictures=False)
    with pytest.raises(ParameterError, match=r"releases\[1\] is made of exact counts, CONFIDENTIAL"):
        page([count, figure])
    assert list(tmp_path.iterdir()) == []
    report = page({"count": count, name: figure}, edition="curator")
    assert any(caption.startswith(f"{name} (confidential)") for caption in report.tables)
    assert f"{name} (confidential)" not in page({"count": count}, edition="curator").text


@pytest.mark.parametrize("name", ["curve", "exchange", "distances", "sampled", "suppressed"])
def test_figures_that_lost_their_attrs_are_confidential_all_the_same(private, name):
    figure = CURATED[name](private)
    count, figure.attrs = private.dp.count(epsilon=1), {}
    with pytest.raises(ParameterError, match="is made of exact counts, CONFIDENTIAL"):
        page([count, figure])
    assert f"{name} (confidential)" in page({"count": count, name: figure}, edition="curator").text


def test_figures_alone_are_no_report(private):
    with pytest.raises(ParameterError, match="must hold at least one release"):
        page(private.dp.quality(), edition="curator")


def test_a_released_column_may_be_called_confidential():
    domain = Domain((Column("confidential", "boolean"), Column("region", "category", categories=("a", "b"))))
    private = pd.DataFrame({"confidential": [True, False], "region": ["a", "b"]}).dp.protect(
        domain, epsilon=5
    )
    assert (
        "Contingency table of confidential by region"
        in page(private.dp.crosstab("region", "confidential", epsilon=1)).text
    )


def test_a_ledger_that_was_altered_vouches_for_nothing(tmp_path, schema, survey):
    sqlite3 = pytest.importorskip("sqlite3")
    path = tmp_path / "budget.db"
    with Ledger(path) as ledger:
        private = survey.dp.protect(schema, epsilon=2, budget=ledger, name="s")
        count = private.dp.count(epsilon=0.5)
        private.dp.mean("age", epsilon=0.5)
    with sqlite3.connect(path) as database:
        database.execute("pragma journal_mode=memory")
        (table,) = (name for (name,) in database.execute("select name from sqlite_master where type='table'"))
        for (trigger,) in list(database.execute("select name from sqlite_master where type='trigger'")):
            database.execute(f"drop trigger {trigger}")
        changed = database.execute(
            f"update {table} set body = replace(body, 'count', 'tnuoc') where kind = 'charge'"
        )
        assert changed.rowcount > 0
    database.close()
    with pytest.raises(TamperedLedgerError):
        page(count, ledger=path, name="s")
    report = page(count, ledger=path, name="s", edition="curator")
    assert "The audit failed." in report.text
    assert "records of the ledger were changed" in report.text
    assert "Total cost: not known" in report.text
    assert "Total cost" not in report.tables


def test_reading_charges_nothing_and_writes_nothing(ledger, counted, tmp_path):
    private = counted.dp.protect(ILLNESS, epsilon=5, budget=ledger, name="s")
    mode = private.dp.mode("ill", epsilon=0.5)
    ledger.close()
    before = hashlib.sha256((tmp_path / "quokka-ledger.db").read_bytes()).digest()
    for source in (ledger, tmp_path / "quokka-ledger.db", ledger.budget("s")):
        for edition in ("public", "curator"):
            named = {} if isinstance(source, Budget) else {"name": "s"}
            page(mode, ledger=source, edition=edition, **named)
    ledger.close()
    assert hashlib.sha256((tmp_path / "quokka-ledger.db").read_bytes()).digest() == before
    assert ledger.audit().charges == 1


# ------------------------------------------------------------------ the declaration


def test_the_declaration_is_told_as_declared(private, schema):
    for declaration in (private, schema, private.dp.domain):
        report = page(fabricated(), declaration=declaration)
        rows = {row[0]: row[1:] for row in report.tables["The declared columns"][1:]}
        assert list(rows) == [str(name) for name in private.dp.domain]
        assert rows["age"][1] == "18 to 90; bins at 18, 30, 45, 65, 90"
        assert rows["region"][1] == "north, east, south, west"
        assert rows["income"][2] == "yes"
        assert rows["person"][3] == "identifier: never released"
        assert private.dp.domain.fingerprint() in report.text


def test_what_is_not_declared_there_is_said(private, ledger, survey, schema):
    report = page(private.dp.assign(twice="2 * family").dp.mean("twice", epsilon=1), declaration=schema)
    assert "Released, but not declared above: twice." in report.text
    in_ledger = survey.dp.protect(schema, epsilon=2, budget=ledger, name="s")
    mean = in_ledger.dp.mean("age", epsilon=1)
    keywords = {"ledger": ledger, "name": "s"}
    assert "last opened with this declaration" in page(mean, declaration=schema, **keywords).text
    assert "last opened with another declaration" in page(mean, declaration=ILLNESS, **keywords).text


def test_without_a_declaration_that_is_said():
    assert "This report was given no declaration" in page(fabricated()).text


# ------------------------------------------------------------------ the page itself

NASTY = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style><b>",
    "&amp;",
    "a\u202eb",
    "\x00\x1b[31m",
]
TEXT = st.one_of(st.sampled_from(NASTY), st.text(min_size=1, max_size=30))
ALLOWED = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "div",
        "header",
        "h1",
        "h2",
        "h3",
        "h4",
        "p",
        "nav",
        "ul",
    ),
    *("li", "a", "main", "section", "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "th", "td"),
    *("strong", "footer", "figure", "img", "aside", "code"),
}


@given(TEXT, TEXT, TEXT, TEXT, st.sampled_from(["public", "curator"]))
def test_no_text_becomes_markup(key, column, label, step, edition):
    facts = {
        "columns": [column],
        "filters": [step],
        "lineage": [step],
        "release_id": label,
        "mechanism": label,
    }
    released = pd.Series([1.0, 2.0], index=pd.Index([label, "other"], name=column))
    metadata.attach(released, {**fabricated(**facts).attrs["dp"]})
    budget = Budget(epsilon=5)
    budget.charge(Pure(1), step, label)
    domain = Domain((Column(column, "category", categories=(label, "the other one")),))
    options = {"ledger": budget, "declaration": domain, "edition": edition}
    report = page({key: released}, **options)
    plain = page({"key": fabricated()}, **options)
    assert {tag for tag, _ in report.elements} <= ALLOWED
    assert not [name for _, attributes in report.elements for name in attributes if name.startswith("on")]
    kinds = Counter(tag for tag, _ in report.elements)
    assert kinds["img"] == kinds["script"] == 0
    assert kinds["style"] == plain.all("style").__len__() == 1
    for text in (key, column, label, step):
        if text.isprintable() and text == " ".join(text.split()):
            assert text in report.text
        assert "\u202e" not in report.text
        assert "\x1b" not in report.text


def test_nothing_is_cut_without_saying_so():
    condition = " or ".join(f"age == {number}" for number in range(300))
    report = page({"k" * 900: fabricated(filters=[condition])})
    assert condition in report.text
    assert "k" * 900 in report.text
    assert "…" not in report.text


def test_a_title_is_text(private):
    report = page(fabricated(), title="<b>May</b> & \u201cJune\u201d")
    assert "<b>May</b> & \u201cJune\u201d" in report.text
    assert report.all("b") == []


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("edition", ["public", "curator"])
def test_the_page_is_well_made_and_needs_nothing_else(released, private, edition):
    options = {"ledger": private.dp.budget, "declaration": private, "edition": edition}
    more = {"quality": private.dp.quality()} if edition == "curator" else {}
    html = pdprivacy.report({**released, **more}, pictures=False, **options).html
    report = Page(html)
    assert html.startswith("<!DOCTYPE html>")
    assert report.all("html") == [{"lang": "en"}]
    levels = [int(tag[1]) for tag, _ in report.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(head.get("scope") in ("row", "col") for head in report.all("th"))
    assert len(report.all("caption")) == len(report.all("table")) == len(report.tables)
    ids = [attributes["id"] for _, attributes in report.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    assert {link["href"] for link in report.all("a")} <= {f"#{item}" for item in ids}
    assert not report.all("script") + report.all("link") + report.all("iframe")
    assert "url(" not in html
    assert "@import" not in html
    assert not re.search(r"https?://", re.sub(r"base64,[\w+/=]+", "", html))
    assert ("CONFIDENTIAL" in html) == (edition == "curator")
    marks = [item for item in report.all("aside") if item.get("class") == "mark"]
    assert len(marks) == (edition == "curator")
    assert "default-src 'none'" in next(
        item["content"] for item in report.all("meta") if "http-equiv" in item
    )


@pytest.mark.full
def test_the_same_report_twice_is_the_same_page(released):
    drawn = {name: released[name] for name in ("means",)}
    first, second = (pdprivacy.report(drawn, pictures=DRAWN).html for _ in range(2))
    assert first == second


@pytest.mark.full
@pytest.mark.skipif(not DRAWN, reason="pictures need matplotlib")
def test_pictures_tell_their_numbers_in_words(released):
    report = Page(pdprivacy.report({"means": released["means"], "top": released["top"]}).html)
    (picture,) = report.all("img")  # labels have none
    assert picture["src"].startswith("data:image/")
    assert picture["alt"].startswith("Mean of age and income: age ")
    half = released["means"].dp.metadata.error_of_each("plus_minus", (2,))
    matches = re.findall(r"(\w+) (-?[\d.,]+)(?: ± ([\d.,]+)|, unknown)", picture["alt"])
    assert [name for name, *_ in matches] == ["age", "income"]
    known = [bool(margin) for *_, margin in matches]
    assert len(known) - sum(known) == released["means"].dp.metadata.error["all_noise"]
    margins = numbers_of([margin.rstrip(".") for *_, margin in matches if margin])
    np.testing.assert_allclose(margins, half[known], rtol=0.1)


@pytest.mark.full
@pytest.mark.skipif(not DRAWN, reason="pictures need matplotlib")
def test_drawing_leaves_no_figure_and_no_setting_behind(released):
    import matplotlib
    from matplotlib import pyplot

    open_figures, settings_ = pyplot.get_fignums(), dict(matplotlib.rcParams)
    pdprivacy.report({name: released[name] for name in ("means",)})
    assert pyplot.get_fignums() == open_figures
    assert dict(matplotlib.rcParams) == settings_


def test_a_notebook_shows_the_page_in_a_frame():
    report = pdprivacy.report(fabricated(), pictures=False)
    (frame,) = Page(report._repr_html_()).all("iframe")
    assert frame["srcdoc"] == report.html
    assert frame["sandbox"] == ""
    assert len(repr(report)) < 100


# ------------------------------------------------------------------ the command line


@PARQUET
def test_the_command_writes_the_same_page(tmp_path, schema, survey, capsys):
    from pdprivacy.command import main

    with Ledger(tmp_path / "budget.db") as ledger:
        private = survey.dp.protect(schema, epsilon=2, budget=ledger, name="s")
        private.dp.crosstab("region", "health", epsilon=0.5).to_parquet(tmp_path / "table.parquet")
    arguments = [
        "report",
        str(tmp_path / "table.parquet"),
        "--ledger",
        str(tmp_path / "budget.db"),
        "--name",
        "s",
    ]
    arguments += ["--title", "Of May", "--no-pictures", "--output", str(tmp_path / "r.html")]
    assert main([*arguments, "--edition", "curator"]) == 0
    assert "1 release, curator edition, CONFIDENTIAL" in capsys.readouterr().out
    curator = Page((tmp_path / "r.html").read_text("utf-8"))
    assert main(arguments) == 0
    assert "public edition" in capsys.readouterr().out
    public = (tmp_path / "r.html").read_text("utf-8")
    report = pdprivacy.report(
        tmp_path / "table.parquet", ledger=tmp_path / "budget.db", name="s", title="Of May", pictures=False
    )
    assert public == report.html
    assert "All charges" in curator.tables
    assert main(["report", str(tmp_path / "none.parquet"), "--output", str(tmp_path / "n.html")]) == 2
    assert "no such file" in capsys.readouterr().err
    assert not (tmp_path / "n.html").exists()


def write_schema(path, name="schema", bounds="[pa.Check.ge(0), pa.Check.le(9)]"):
    lines = [
        "import pandera.pandas as pa",
        f"{name} = pa.DataFrameSchema({{'visits': pa.Column(float, {bounds}, metadata={{'dp': {{}}}})}})",
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def visits(tmp_path):
    """The command that reports on one stored release; it names no declaration."""
    pytest.importorskip("pyarrow")
    declared = pa.DataFrameSchema({"visits": pa.Column(float, pa.Check.in_range(0, 9), metadata={"dp": {}})})
    private = pd.DataFrame({"visits": [1.0, 2.0, 3.0]}).dp.protect(declared, epsilon=1)
    (tmp_path / "mean.parquet").write_bytes(to_bytes(private.dp.mean("visits", epsilon=1))[0])
    return [
        "report",
        str(tmp_path / "mean.parquet"),
        "--no-pictures",
        "--output",
        str(tmp_path / "page.html"),
    ]


@PARQUET
@pytest.mark.parametrize("name", ["schema", "survey"])
def test_the_command_shows_what_a_file_declares(tmp_path, visits, capsys, name):
    from pdprivacy.command import main

    file = write_schema(tmp_path / "declared.py", name)
    target = str(file) if name == "schema" else f"{file}:{name}"
    assert main([*visits, "--declaration", target]) == 0
    table = Page((tmp_path / "page.html").read_text("utf-8")).tables["The declared columns"]
    assert [cell.strip() for cell in table[1][:3]] == ["visits", "float", "0 to 9"]
    assert main(visits) == 0
    assert "The declared columns" not in Page((tmp_path / "page.html").read_text("utf-8")).tables


@pytest.mark.full(keep=2)
@PARQUET
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "is not a Python file"),
        ("schema = 1 +", "SyntaxError in line 1"),
        ("\n\nraise ValueError('secret-cell')", "ValueError in line 3"),
        ("other = 1", "defines no 'schema'"),
        ("schema = 17", "schema"),
        ("BLANKS", "visits"),
    ],
    ids=["absent", "syntax", "raises", "no name", "no schema", "blanks"],
)
def test_a_declaration_that_cannot_be_read_writes_nothing(tmp_path, visits, capsys, text, words):
    from pdprivacy.command import main

    file = tmp_path / "declared.py"
    if text == "BLANKS":
        write_schema(file, bounds="[pa.Check.ge(...), pa.Check.le(...)]")
    elif text is not None:
        file.write_text(text)
    assert main([*visits, "--declaration", str(file)]) == 2
    message = capsys.readouterr().err
    assert words in message
    assert "secret-cell" not in message
    assert message.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


@PARQUET
def test_the_file_of_a_declaration_is_not_replaced_by_a_report(tmp_path, visits, capsys):
    from pdprivacy.command import main

    file = write_schema(tmp_path / "declared.py")
    before = file.read_text()
    assert main([*visits[:-1], str(file), "--declaration", str(file)]) == 2
    assert "would be replaced" in capsys.readouterr().err
    assert file.read_text() == before
