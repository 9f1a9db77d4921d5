"""Metadata of released frames and their `marks`, and facts that must not be in them."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain, Metadata
from pdprivacy.core.mechanisms import Gaussian, Geometric, Laplace
from pdprivacy.errors import MetadataError
from pdprivacy.ledger import Entry
from pdprivacy.releases import metadata
from pdprivacy.risk import dr_ha

RELEASES = {
    "count": lambda p: p.dp.count(epsilon=0.5, rng=1),
    "count of": lambda p: p.dp.count(["income", "age"], epsilon=0.5, rng=1),
    "sum": lambda p: p.dp.sum(["age", "income"], epsilon=0.5, rng=1),
    "mean": lambda p: p.dp.mean(["age", "income"], epsilon=0.5, rng=1),
    "gaussian mean": lambda p: p.dp.mean("age", epsilon=0.5, delta=1e-6, mechanism="gaussian", rng=1),
    "var": lambda p: p.dp.var(["age", "family"], epsilon=0.5, rng=1),
    "std": lambda p: p.dp.std("age", epsilon=0.5, rng=1),
    "cov": lambda p: p.dp.cov(["age", "income"], epsilon=0.5, rng=1),
    "corr": lambda p: p.dp.corr(["age", "income"], epsilon=0.5, rng=1),
    "proportion": lambda p: p.dp.proportion("health", "yes", epsilon=0.5, rng=1),
    "value_counts": lambda p: p.dp.value_counts("region", epsilon=0.5, rng=1),
    "value_counts of two": lambda p: p.dp.value_counts(["region", "health"], epsilon=0.5, rng=1),
    "shares": lambda p: p.dp.value_counts("region", epsilon=0.5, normalize=True, rng=1),
    "histogram": lambda p: p.dp.histogram("income", 5, epsilon=0.5, rng=1),
    "crosstab": lambda p: p.dp.crosstab("region", "health", epsilon=0.5, rng=1),
    "crosstab of three": lambda p: p.dp.crosstab(["region", "age"], "health", epsilon=0.5, rng=1),
    "crosstab with margins": lambda p: p.dp.crosstab("region", "health", epsilon=0.5, margins=True, rng=1),
    "crosstab by row": lambda p: p.dp.crosstab("region", "health", epsilon=0.5, normalize="index", rng=1),
    "gaussian crosstab": lambda p: p.dp.crosstab(
        "region", "health", epsilon=0.5, delta=1e-6, mechanism="gaussian", rng=1
    ),
    "ols": lambda p: p.dp.ols("income", ["age"], epsilon=0.5, rng=1),
    "pooled_var": lambda p: p.dp.pooled_var("family", by="region", epsilon=0.5, rng=1),
    "pooled_cov": lambda p: p.dp.pooled_cov(["family", "age"], by="region", epsilon=0.5, rng=1),
    "groupby count": lambda p: p.dp.groupby("region").count(epsilon=0.5, rng=1),
    "groupby sum": lambda p: p.dp.groupby("region").sum("family", epsilon=0.5, rng=1),
    "groupby mean": lambda p: p.dp.groupby("region").mean(["family", "income"], epsilon=0.5, rng=1),
    "groupby var": lambda p: p.dp.groupby(["region", "health"]).var("family", epsilon=0.5, rng=1),
}
KEYS = {field.name for field in dataclasses.fields(Metadata)} - {"part"}  # of parts alone

ABSENT = dict.fromkeys(["dr_ha", "found", "regression"])
"""Fields of some releases alone."""

every_release = pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)


def plain(value) -> bool:
    """Whether a value is JSON as it stands: no numpy, no tuples, no keys but text."""
    if isinstance(value, dict):
        return all(type(key) is str and plain(part) for key, part in value.items())
    if isinstance(value, list):
        return all(plain(part) for part in value)
    return value is None or type(value) in (str, int, float, bool)


@pytest.mark.full(keep=2)
@every_release
def test_attrs_hold_plain_json_and_little_of_it(private, release):
    result = release(private)
    assert set(result.attrs) == {"dp"}
    stored = result.attrs["dp"]
    assert plain(stored)
    text = json.dumps(stored, allow_nan=False)
    assert json.loads(text) == stored
    assert KEYS - {"dr_ha", "found", "regression"} <= set(stored) <= KEYS
    assert stored["version"] == pdprivacy.__version__
    assert stored["seeded"] is True
    assert stored["epsilon"] == 0.5
    assert stored["budget"].items() >= {"total": [100.0, 0.001], "spent": [0.5, stored["delta"]]}.items()
    assert sum(stored["split"].values()) == pytest.approx(1)


def test_a_table_of_five_by_four_says_it_in_little():
    columns = (Column("a", "integer", lower=1, upper=5), Column("b", "category", categories=tuple("pqrs")))
    frame = pd.DataFrame({"a": [2, 3, 4] * 5, "b": list("pqrsp") * 3})
    private = frame.dp.protect(Domain(columns), epsilon=10)
    for options in ({}, {"margins": True}, {"normalize": "index", "margins": True}):
        table = private.dp.crosstab("a", "b", epsilon=1, **options)
        assert table.shape >= (5, 4)
        assert len(json.dumps(table.attrs["dp"])) < 4096


@pytest.mark.full(keep=3)
@every_release
def test_the_typed_view_is_what_is_stored(private, release):
    result = release(private)
    view = result.dp.metadata
    assert type(view) is Metadata
    stored = result.attrs["dp"]
    assert {name: getattr(view, name) for name in KEYS} == {**ABSENT, **stored}
    assert view.to_dict() == {**ABSENT, "part": None, **stored}
    assert view == metadata.read(result)
    with pytest.raises(dataclasses.FrozenInstanceError):
        view.epsilon = 1


# ------------------------------------------------------------------ verify

HARMLESS = {
    "itself": lambda r: r,
    "copy": lambda r: r.copy(),
    "deepcopy": copy.deepcopy,
    "pickle": lambda r: pickle.loads(pickle.dumps(r)),
    "whole slice": lambda r: r.iloc[:],
}


RELEASED = {}


@pytest.fixture
def once(request):
    """Results that are made once: nothing here changes them."""

    def made(release):
        if release not in RELEASED:
            RELEASED[release] = release(request.getfixturevalue("private"))
        return RELEASED[release]

    return made


@pytest.mark.full(keep=13)
@every_release
@pytest.mark.parametrize("way", HARMLESS.values(), ids=HARMLESS)
def test_the_same_numbers_verify(once, release, way):
    result = way(once(release))
    assert result.dp.verify() is True
    assert metadata.verify(result) is True


CHANGES = {
    "a number": lambda r: _set(r, lambda cells: cells + 1),
    "one number": lambda r: _set(r, lambda cells: np.where(np.arange(cells.size) == 0, cells + 1, cells)),
    "reversed rows": lambda r: r.iloc[::-1],
    "one row less": lambda r: r.iloc[:-1],
    "no rows": lambda r: r.iloc[:0],
    "a row label": lambda r: r.rename(index={r.index[0]: "other"}),
    "labels by place": lambda r: r.reset_index(drop=True),
    "a name of the rows": lambda r: r.rename_axis(index=["other"] * r.index.nlevels),
}


OTHER_NUMBERS = {"a number", "one number", "no rows"}


def _set(released, change):
    changed = released.copy()
    cells = change(released.to_numpy().astype(float).ravel()).reshape(released.shape)
    if isinstance(changed, pd.Series):
        changed = pd.Series(cells, index=changed.index, name=changed.name)
    else:
        changed = pd.DataFrame(cells, index=changed.index, columns=changed.columns)
    changed = changed.astype(released.dtypes if isinstance(changed, pd.DataFrame) else released.dtype)
    changed.attrs = dict(released.attrs)
    return changed


@pytest.mark.full(keep=25)
@every_release
@pytest.mark.parametrize("change", CHANGES)
def test_other_numbers_do_not_verify(once, release, change):
    result = once(release)
    changed = CHANGES[change](result)
    if changed.equals(result) and changed.index.names == result.index.names:
        pytest.skip("one row, reversed, is the same")
    assert "dp" in changed.attrs  # pandas carried the mark along
    assert changed.dp.verify() is False
    assert changed.dp.changes
    if change in OTHER_NUMBERS:
        with pytest.raises(MetadataError, match="not those that were released") as caught:
            changed.dp.interval()
        assert "before changing it" in caught.value.hint


def test_a_raw_column_put_into_a_result_is_seen(private, survey):
    table = private.dp.crosstab("region", "health", epsilon=1, rng=1)
    table["yes"] = survey.groupby("region").size()
    assert table.dp.verify() is False
    other = private.dp.crosstab("region", "health", epsilon=1, rng=1)
    other["raw"] = 1
    assert other.dp.verify() is False
    renamed = private.dp.crosstab("region", "health", epsilon=1, rng=1).rename(
        columns={"yes": "no", "no": "yes"}
    )
    assert renamed.dp.verify() is False
    swapped = private.dp.crosstab("region", "health", epsilon=1, rng=1)[["yes", "no"]]
    assert swapped.dp.verify() is False
    named = private.dp.crosstab("region", "health", epsilon=1, rng=1).rename_axis(columns="illness")
    assert named.dp.verify() is False


def test_labels_that_read_alike_are_told_apart():
    domain = Domain(
        (Column("x", "category", categories=("a,b", "c")), Column("y", "category", categories=("1",)))
    )
    private = pd.DataFrame({"x": ["a,b", "c"], "y": ["1", "1"]}).dp.protect(domain, epsilon=10)
    released = private.dp.value_counts("x", epsilon=1, sort=False, rng=1)
    moved = released.set_axis(pd.Index(["a", "b,c"], name="x"))
    assert moved.dp.verify() is False
    joined = released.set_axis(pd.Index(["a", 'b", "c'], name="x"))
    assert joined.dp.verify() is False


def test_fingerprints_tell_whole_and_broken_numbers_apart():
    index = ["a", "b"]
    whole, broken = pd.Series([1, 2], index=index), pd.Series([1.0, 2.5], index=index)
    prints = {metadata.fingerprint(series) for series in (whole, broken, whole + 1, whole.iloc[::-1])}
    assert len(prints) == 4
    assert metadata.fingerprint(whole.astype("int32")) == metadata.fingerprint(whole)
    assert metadata.fingerprint(pd.Series([0.0])) != metadata.fingerprint(pd.Series([np.nan]))


WIDE = {
    "beyond signed ones": (pd.Series([2**63 + 1], dtype="uint64"), pd.Series([2**63 + 3], dtype="uint64")),
    "as if signed": (pd.Series([2**63 + 1], dtype="uint64"), pd.Series([2**63 + 1 - 2**64])),
    "next to floats": (
        pd.DataFrame({"i": [2**53 + 1], "f": [0.5]}),
        pd.DataFrame({"i": [2**53], "f": [0.5]}),
    ),
    "next to truth": (
        pd.DataFrame({"i": [2**60 + 1], "b": [True]}),
        pd.DataFrame({"i": [2**60], "b": [True]}),
    ),
    "next to unsigned ones": (
        pd.DataFrame({"i": [-1, 2], "u": np.array([2**63 + 1, 5], dtype=np.uint64)}),
        pd.DataFrame({"i": [-1, 2], "u": np.array([2**63 + 3, 5], dtype=np.uint64)}),
    ),
    "a null": (pd.Series([1, None], dtype="Int64"), pd.Series([2, None], dtype="Int64")),
}


def test_every_null_label_is_one():
    """A label is null however pandas writes that, as it does in several ways."""
    prints = [
        metadata.fingerprint(pd.Series([1.0, 2.0], index=pd.Index(["a", null], dtype=object)))
        for null in (None, np.nan, pd.NA, pd.NaT)
    ]
    assert len(set(prints)) == 1
    assert prints[0] != metadata.fingerprint(pd.Series([1.0, 2.0], index=["a", "b"]))


@pytest.mark.parametrize("pair", WIDE.values(), ids=WIDE)
def test_a_fingerprint_keeps_all_digits(pair, tmp_path):
    prints = [metadata.fingerprint(released) for released in pair]
    assert prints[0] != prints[1]
    pytest.importorskip("pyarrow")
    for released, mark in zip(pair, prints, strict=True):
        frame = released.to_frame("x") if isinstance(released, pd.Series) else released
        frame.to_parquet(tmp_path / "r.parquet")
        back = pd.read_parquet(tmp_path / "r.parquet")
        assert metadata.fingerprint(back["x"] if isinstance(released, pd.Series) else back) == mark


def test_whole_numbers_that_are_floats_may_become_some():
    table = pd.DataFrame({"i": [1, 2], "f": [0.5, np.nan], "b": [True, False]})
    assert metadata.fingerprint(table) == metadata.fingerprint(table.astype(np.float64))
    assert metadata.fingerprint(table[["i"]]) != metadata.fingerprint(table[["i"]].astype(np.float64))


@pytest.mark.full(keep=2)
@every_release
def test_a_parquet_round_trip_keeps_all(private, release, tmp_path):
    pytest.importorskip("pyarrow")
    result = release(private)
    if isinstance(result, pd.Series):
        stored = result.rename(result.name or "value").to_frame()
        stored.attrs = dict(result.attrs)
        stored.to_parquet(tmp_path / "r.parquet")
        back = pd.read_parquet(tmp_path / "r.parquet")
        series = back.iloc[:, 0].rename(result.name)
        series.attrs = back.attrs
        assert series.dp.verify() is True
        assert series.dp.metadata == result.dp.metadata
        return
    result.to_parquet(tmp_path / "r.parquet")
    back = pd.read_parquet(tmp_path / "r.parquet")
    assert back.attrs == result.attrs
    assert back.dp.verify() is True
    assert back.dp.metadata == result.dp.metadata
    np.testing.assert_array_equal(back.dp.interval().to_numpy(), result.dp.interval().to_numpy())
    back.iloc[0, 0] = 1.0 if np.isnan(back.iloc[0, 0]) else back.iloc[0, 0] + 1
    assert back.dp.verify() is False


def test_results_can_be_put_together(private):
    first = private.dp.crosstab("region", "health", epsilon=1, rng=1)
    second = private.dp.crosstab("region", "health", epsilon=2, rng=2)
    both = pd.concat([first, second])
    assert both.shape == (8, 2)
    with pytest.raises(MetadataError):
        both.dp.interval()
    series = [private.dp.mean(name, epsilon=1, rng=1) for name in ("age", "family")]
    assert pd.concat(series).index.tolist() == ["age", "family"]
    assert pd.concat([first, first]).dp.verify() is False  # the mark is carried, the numbers are not
    assert pd.DataFrame({"a": first["no"], "b": second["no"]}).shape == (4, 2)
    assert (first + second).shape == (4, 2)
    assert first.merge(second, on="region").shape == (4, 4)


# ------------------------------------------------------------------ interval


@pytest.mark.full(keep=2)
@every_release
def test_an_interval_surrounds_each_number(private, release):
    result = release(private)
    interval = result.dp.interval()
    names = ["released", "standard_error", "lower", "upper"]
    assert isinstance(interval, pd.DataFrame)
    if isinstance(result, pd.Series):
        assert list(interval.columns) == names
        parts = {name: interval[name].to_numpy() for name in names}
    else:
        assert interval.columns.nlevels == 1 + result.columns.nlevels
        assert list(dict.fromkeys(interval.columns.get_level_values(0))) == names
        assert interval.shape == (len(result), 4 * result.shape[1])
        parts = {name: interval[name].to_numpy() for name in names}
        assert interval["lower"].columns.equals(result.columns)
    assert interval.index.equals(result.index)
    np.testing.assert_array_equal(parts["released"], result.to_numpy(dtype=float))
    known = ~np.isnan(parts["released"])
    if result.dp.metadata.regression is not None:  # too few records for an interval, which is said
        assert result.dp.metadata.regression["note"]
        known &= ~np.isnan(parts["standard_error"])
    error = result.attrs["dp"]["error"]
    assert error["level"] == 0.95
    half = np.broadcast_to(np.asarray(error["plus_minus"], dtype=float), result.shape)
    low, high = limits_of(result)
    if result.dp.metadata.bounding == "project" and result.dp.metadata.bounds is not None:
        low, high = result.dp.metadata.bounds_of_each("bounds", result.shape)
    for name, end in (("lower", parts["released"] - half), ("upper", parts["released"] + half)):
        np.testing.assert_allclose(parts[name], np.clip(end, low, high), rtol=1e-9, atol=1e-12)
    assert (parts["lower"] <= parts["upper"])[known].all()
    assert metadata.verify(result)  # looking changes nothing


DECLARED = {"age": (18, 90), "family": (1, 15), "income": (0, 1000), "health": (0, 1), "yes": (0, 1)}


def limits_of(result):
    """The public limits of each number, whatever the data."""
    statistic = result.attrs["dp"]["statistic"]
    if statistic == "corr":
        return -1, 1
    if statistic not in ("mean", "proportion"):
        return -np.inf, np.inf
    columns = result.index if isinstance(result, pd.Series) else result.columns
    return tuple(np.array([DECLARED[name] for name in columns], dtype=float).T)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    ("mechanism", "delta", "kind"),
    [("geometric", 0, Geometric), ("laplace", 0, Laplace), ("gaussian", 1e-6, Gaussian)],
)
def test_the_interval_of_counts_is_that_of_the_noise(private, mechanism, delta, kind):
    table = private.dp.crosstab("region", "health", epsilon=0.5, delta=delta, mechanism=mechanism)
    noise = kind(0.5, 1) if kind is not Gaussian else kind(0.5, delta, 1)
    assert table.dp.metadata.scale == pytest.approx(noise.scale, rel=1e-5)
    error = table.dp.metadata.error
    assert error["plus_minus"] == pytest.approx(noise.interval(0.95)[1], rel=1e-5)
    assert error["standard_error"] == pytest.approx(noise.std, rel=1e-5)
    assert table.dp.metadata.mechanism == mechanism
    assert table.dp.metadata.seeded is False


# ------------------------------------------------------------------ nothing confidential


def _without_roles(schema) -> Domain:
    """The same declaration without the estimate of risk, which is made of counts of a usual size."""
    domain = pdprivacy.read_schema(schema)
    return Domain(tuple(dataclasses.replace(column, role=None) for column in domain.columns))


def _absorb(monkeypatch) -> None:
    """Noise so large that whatever lies beneath is rounded away: released numbers tell nothing at all."""

    def wide(self, size, source):
        return np.array([2**300] * size, dtype=object)

    def wide_counts(self, size, source):
        return np.array([2**56] * size, dtype=object)  # 2**56 plus less than 8 is 2**56 in a double

    monkeypatch.setattr(Entry, "id", "0" * 16)  # which depends on the time
    monkeypatch.setattr(Laplace, "_noise", wide)
    monkeypatch.setattr(Gaussian, "_noise", wide)
    monkeypatch.setattr(Geometric, "_noise", wide_counts)


@pytest.mark.full(keep=3)
@every_release
def test_attrs_are_a_function_of_declared_facts_and_released_numbers(schema, survey, release, monkeypatch):
    """Two data sets of other sizes and cells, with the same released numbers, leave the same attrs."""
    _absorb(monkeypatch)
    first = survey.iloc[[0, 3, 5]].reset_index(drop=True)
    second = survey.iloc[[1, 2, 8, 14, 30, 31, 39]].assign(health="yes", region="east")
    domain = _without_roles(schema)
    left, right = (release(frame.dp.protect(domain, epsilon=100, delta=1e-3)) for frame in (first, second))
    np.testing.assert_array_equal(left.to_numpy(), right.to_numpy())  # else the test would test nothing
    assert left.attrs == right.attrs
    assert repr(left.dp.metadata) == repr(right.dp.metadata)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_attrs_do_not_tell_clipped_or_dropped_records(neighbors, monkeypatch):
    _absorb(monkeypatch)
    domain = Domain((Column("x", "integer", lower=0, upper=9),))
    frames = [pd.DataFrame({"x": [1, 2, 3]}), pd.DataFrame({"x": [1, 200, 3]})]
    for on_invalid in ("clip", "drop"):
        means = []
        for frame in frames:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                private = frame.dp.protect(domain, epsilon=9, neighbors=neighbors, on_invalid=on_invalid)
            means.append(private.dp.mean("x", epsilon=1, rng=1))
        assert means[0].attrs == means[1].attrs


def test_the_curators_own_numbers_are_not_stored(private):
    for result in (
        private.dp.dr_ha("region", "health", [0.1, 1.0]),
        private.dp.quality(),
    ):
        assert result.attrs["dp"].keys() == {"confidential"}
        with pytest.raises(MetadataError):
            result.dp.metadata  # noqa: B018


def test_the_risk_in_attrs_is_made_of_released_counts(survey, schema):
    private = survey.dp.protect(schema, epsilon=1000)
    table = private.dp.crosstab("region", "health", epsilon=1, rng=1)
    stated = table.attrs["dp"]["dr_ha"]
    assert stated["source"] == "released counts"
    assert 0 <= stated["by_records"] <= 1
    assert table.dp.metadata.dr_ha == stated
    exact = pd.crosstab(survey["region"], survey["health"]).to_numpy()
    for average in ("cells", "records"):
        expected = float(dr_ha(exact, Geometric(1, 1), "expected", average))
        for orders in (("region", "health"), ("health", "region")):
            tables = [private.dp.crosstab(*orders, epsilon=1, rng=seed) for seed in range(30)]
            risks = [table.dp.metadata.dr_ha[f"by_{average}"] for table in tables]
            assert len(set(risks)) > 1
            error = 4 * np.std(risks) / math.sqrt(len(risks))
            assert -0.05 - error < np.mean(risks) - expected < 0.25 + error  # of 40 records it is too high
    alone = private.dp.value_counts("health", epsilon=1, rng=1)
    assert "dr_ha" not in alone.attrs["dp"]
    assert alone.dp.metadata.dr_ha is None


# ------------------------------------------------------------------ what is no release


@pytest.mark.parametrize(
    "attrs",
    [
        {},
        {"dp": None},
        {"dp": "laplace"},
        {"dp": []},
        {"dp": {}},
        {"dp": {"protected": "x"}},
        {"source": "x"},
    ],
)
@pytest.mark.parametrize("shape", ["frame", "series"])
def test_objects_without_a_release_are_refused_with_the_reason(attrs, shape):
    values = pd.DataFrame({"x": [1]}) if shape == "frame" else pd.Series([1], name="x")
    values.attrs = attrs
    for use in (lambda: values.dp.metadata, lambda: values.dp.verify(), lambda: values.dp.interval()):
        with pytest.raises(MetadataError, match="carries no release metadata") as caught:
            use()
        assert "attrs['dp']" in caught.value.hint


ASKED_FOR = {field.name for field in dataclasses.fields(Metadata)} - {
    field.name
    for field in dataclasses.fields(Metadata)
    if field.default is field.default_factory is dataclasses.MISSING
}


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("name", sorted(KEYS - {"statistic"} - ASKED_FOR))
def test_metadata_that_lacks_a_part_names_it(private, name):
    result = private.dp.mean("age", epsilon=1)
    result.attrs = {"dp": {key: value for key, value in result.attrs["dp"].items() if key != name}}
    for use in (lambda: result.dp.metadata, lambda: result.dp.verify(), lambda: result.dp.interval()):
        with pytest.raises(MetadataError, match=f"lacks '{name}'"):
            use()


@pytest.mark.full(keep=3)
@pytest.mark.parametrize(
    "error",
    [{}, None, 1, {"level": 0.95}, {"level": 0.95, "standard_error": "x", "plus_minus": [1, 2, 3]}],
)
def test_metadata_of_another_shape_is_a_metadata_error(private, error):
    result = private.dp.mean("age", epsilon=1)
    result.attrs["dp"] = {**result.attrs["dp"], "error": error}
    with pytest.raises(MetadataError):
        result.dp.interval()


def test_text_in_a_result_is_a_change_like_any_other_and_is_not_shown(private, texts_of):
    result = private.dp.crosstab("region", "health", epsilon=1)
    result["note"] = "CANARYx7"
    with pytest.raises(MetadataError) as caught:
        result.dp.interval()
    assert not any("CANARYx7" in text for text in texts_of(caught.value))
    assert result.dp.verify() is False
    odd = private.dp.crosstab("region", "health", epsilon=1)
    odd["note"] = [1 + 1j, None, pd.Timestamp("2020"), [1]]
    assert odd.dp.verify() is False
    raw = private.dp.mean("age", epsilon=1).astype(str)
    raw.attrs = private.dp.mean("age", epsilon=1).attrs
    assert raw.dp.verify() is False


def test_an_unseeded_release_says_so(private):
    assert private.dp.mean("age", epsilon=1).dp.metadata.seeded is False
    assert private.dp.mean("age", epsilon=1, rng=np.random.default_rng(1)).dp.metadata.seeded is True


def test_the_budget_is_that_after_the_release(private):
    private.dp.mean("age", epsilon=1)
    second = private.dp.mean("age", epsilon="1/2", delta=1e-6, mechanism="gaussian")
    budget = second.dp.metadata.budget
    assert (budget["total"], budget["spent"], budget["charge"]) == ([100.0, 1e-3], [1.5, 1e-6], 2)
    assert (second.dp.metadata.epsilon, second.dp.metadata.delta) == (0.5, 1e-6)


def test_columns_without_a_label_have_a_fingerprint():
    columns = pd.MultiIndex.from_tuples([(1, "no"), (1, None), (2, "no"), (2, None)])
    for rows in ([[1.5, 2, 3, 4]], [[1, 2, 3, 4]], [[1, 2.5, True, 4]]):
        frame = pd.DataFrame(rows, columns=columns)
        assert metadata.fingerprint(frame) == metadata.fingerprint(frame.copy())
        changed = frame.copy()
        changed.iloc[0, 1] = 7
        assert metadata.fingerprint(frame) != metadata.fingerprint(changed)
