"""Excerpts of releases: each number keeps its own error, by `label_matching` and texts of `frame_json`."""

from __future__ import annotations

import json
import time

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.errors import IndexingError

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.errors import MetadataError, ParameterError
from pdprivacy.releases.frame_json import pack, unpack
from tests.support.released import RELEASES

NUMBERS = {name: release for name, release in RELEASES.items() if name not in ("mode", "top")}
EXACT = [name for name in NUMBERS if name not in ("quantiles", "median", "centres")]
ENDS = ["standard_error", "lower", "upper"]


def _largest_first(r):
    values = r if isinstance(r, pd.Series) else r.iloc[:, 0]
    return np.argsort(-values.to_numpy(), kind="stable")


# What pandas does to the labels alone, so that it can be done to the places of the numbers, too.
LABELS_ALONE = {
    "sort_values": lambda r, like: like.iloc[_largest_first(r)],
    "sort and head": lambda r, like: like.iloc[_largest_first(r)].head(3),
    "head": lambda r, like: like.head(2),
    "tail": lambda r, like: like.tail(1),
    "loc": lambda r, like: like.loc[like.index[::-1]],
    "iloc": lambda r, like: like.iloc[len(like) // 2 :],
    "T": lambda r, like: like.T,
    "one row": lambda r, like: like.loc[like.index[0]],
    "one column": lambda r, like: like[like.columns[0]],
    "columns": lambda r, like: like[like.columns[:1]],
    "columns reversed": lambda r, like: like.iloc[:, ::-1],
    "reindex": lambda r, like: like.reindex(like.index[::-1]),
    "drop": lambda r, like: like.drop(index=like.index[0]),
    "mask of rows": lambda r, like: like[like.index == like.index[-1]],
    "unstack": lambda r, like: like.unstack(),
    "stack": lambda r, like: like.stack(),
    "swap": lambda r, like: like.swaplevel(),
    "concat": lambda r, like: pd.concat([like.tail(1), like.head(2)]),
    "rename_axis": lambda r, like: like.rename_axis(index=[f"new {n}" for n in range(like.index.nlevels)]),
    "reset and set": lambda r, like: like.reset_index().set_index(list(like.index.names)),
}


def done(operation, released, like):
    """What pandas makes of a frame; a skip where it makes no frame of one of this shape, or loses attrs."""
    try:
        changed = LABELS_ALONE[operation](released, like)
    except (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError, IndexingError):
        pytest.skip("pandas does not do this to a release of this shape")
    if not isinstance(changed, pd.Series | pd.DataFrame) or changed.empty or "dp" not in changed.attrs:
        pytest.skip("pandas makes no frame with attrs of it")
    return changed


def places(released):
    """The place of each number, in a frame of the same labels."""
    numbers = np.arange(released.size, dtype=float).reshape(released.shape)
    kind = type(released)
    labels = {"index": released.index}
    labels |= {"columns": released.columns} if kind is pd.DataFrame else {"name": released.name}
    like = kind(numbers, **labels)
    like.attrs = dict(released.attrs)
    return like


def pieces(intervals, width, names=("released", *ENDS)):
    """Each part of an interval, by name, row by row."""
    cells = [intervals.iloc[:, at : at + width].to_numpy(float).ravel() for at in range(0, 4 * width, width)]
    return dict(zip(names, cells, strict=True))


def width(frame):
    return 1 if isinstance(frame, pd.Series) else frame.shape[1]


@pytest.mark.full(keep=24)
@pytest.mark.parametrize("operation", LABELS_ALONE)
@pytest.mark.parametrize("name", EXACT)
def test_each_number_keeps_its_interval(private, name, operation):
    released = NUMBERS[name](private.dp)
    whole = pieces(released.dp.interval(), width(released))
    changed = done(operation, released, released)
    at = done(operation, released, places(released)).to_numpy().ravel().astype(int)
    if operation == "one row" and released.index.nlevels > 1 and "labels are missing" in changed.dp.changes:
        return  # a clear refusal, where the same numbers have other labels, too
    intervals = changed.dp.interval()
    parts = pieces(intervals, intervals.shape[1] // 4)
    for piece, cells in whole.items():
        np.testing.assert_array_equal(parts[piece], cells[at])
    assert changed.dp.verify() or changed.dp.changes
    frame = changed.dp.to_frame()
    np.testing.assert_array_equal(np.sort(frame["upper"]), np.sort(whole["upper"][at]))
    assert released.dp.verify()


@pytest.mark.full(keep=10)
@pytest.mark.parametrize("name", EXACT)
def test_rounding_is_added(private, name):
    released = NUMBERS[name](private.dp)
    for digits, half in ((1, 0.05), (0, 0.5)):
        rounded = released.round(digits)
        if rounded.equals(released):
            continue
        try:
            parts = pieces(rounded.dp.interval(), width(released))
        except MetadataError:  # all numbers are less than half a step
            assert float(np.nanmax(np.abs(released.to_numpy(float)))) < half
            continue
        whole = pieces(released.dp.interval(), width(released))
        inside = ~np.isnan(whole["lower"])
        assert (parts["lower"][inside] <= whole["lower"][inside] + 1e-9).all()
        assert (parts["upper"][inside] >= whole["upper"][inside] - 1e-9).all()
        assert "rounded" in rounded.dp.changes


@pytest.fixture
def counts():
    labels = ("a", "b", "c", "d")
    domain = Domain((Column("x", "category", categories=labels), Column("y", "boolean")))
    frame = pd.DataFrame({"x": list("aabbcccd") * 10, "y": [True, False] * 40})
    return frame.dp.protect(domain, epsilon=100).dp.groupby("x").count(epsilon=1, rng=2)


def test_a_changed_number_has_no_error_and_refuses_the_frame(counts):
    for changed in (counts + 1, counts * 2, counts.cumsum(), counts.where(counts != counts.iloc[0], 0)):
        assert "have other values than were released" in changed.dp.changes
        for use in (changed.dp.interval, changed.dp.to_markdown, changed.dp.plot, changed.dp.to_frame):
            with pytest.raises(MetadataError, match="not those that were released"):
                use()
    more = pd.concat([counts, counts.rename({"a": "total"}).head(1) * 3])
    with pytest.raises(MetadataError, match="labels are new"):
        more.dp.interval()


def test_swapped_labels_never_give_an_error_to_another_number(private):
    means = private.dp.groupby("region").mean("age", epsilon=1, rng=1)
    first, second = means.index[:2]
    swapped = means.rename({first: second, second: first})
    with pytest.raises(MetadataError, match="2 of 4 numbers have other values"):
        swapped.dp.interval()
    with pytest.raises(MetadataError, match="labels are new") as caught:
        means.rename({first: "elsewhere"}).dp.interval()
    assert "relabel" in caught.value.hint


@given(st.lists(st.integers(0, 3), min_size=3, max_size=6), st.data())
def test_repeated_counts_keep_the_place_that_their_label_says(numbers, data):
    labels = [f"r{number}" for number in range(len(numbers))]
    released = pd.Series(numbers, index=pd.Index(labels, name="x"))
    errors = [float(number + 1) for number in range(len(numbers))]
    attach(released, errors)
    order = data.draw(st.permutations(labels))
    part = released.loc[order[: data.draw(st.integers(1, len(order)))]]
    intervals = part.dp.interval()
    for label in part.index:
        at = labels.index(label)
        assert intervals.loc[label, "upper"] == numbers[at] + errors[at]
    shuffled = released.set_axis(pd.Index(order, name="x"))
    try:
        intervals = shuffled.dp.interval()
    except MetadataError:
        assert any(numbers[labels.index(label)] != shuffled[label] for label in order)
    else:  # the same numbers under the same labels
        assert all(
            intervals.loc[label, "upper"] == numbers[at] + errors[at] for at, label in enumerate(labels)
        )


def attach(released, errors):
    """Metadata of a release whose numbers have these margins of error."""
    from pdprivacy.releases import metadata

    domain = Domain((Column("x", "category", categories=("a", "b")),))
    private = pd.DataFrame({"x": ["a"]}).dp.protect(domain, epsilon=10)
    facts = private.dp.value_counts("x", epsilon=1).attrs["dp"]
    error = {"level": 0.95, "standard_error": errors, "plus_minus": errors}
    metadata.attach(released, {**facts, "error": error, "bounds": None, "bounding": None})


@given(st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_sums_over_a_level_are_no_numbers_of_it(numbers):
    index = pd.MultiIndex.from_product([["a", "b"], ["f", "m"]], names=["x", "y"])
    released = pd.Series(numbers, index=index)
    attach(released, 1.0)
    sums = released.groupby("y").sum()
    sums.attrs = released.attrs
    with pytest.raises(MetadataError, match="labels are missing"):
        sums.dp.interval()
    table = released.to_frame().unstack()
    assert table.dp.interval().shape == (2, 8)


def test_what_is_said_of_a_part(counts):
    top = counts.sort_values(ascending=False).head(2)
    assert top.dp.verify() is False
    assert top.dp.changes.startswith("2 of 4 numbers")
    assert top.dp.changes.endswith("chosen by their noisy values, the errors are those before the choice")
    for text in (top.dp.to_markdown(), top.dp.to_latex(), repr(top.dp), top.dp._repr_html_()):
        assert "2 of 4 numbers" in text
    assert "for all 4 numbers" in top.dp.to_markdown()
    assert counts.iloc[::-1].dp.changes == "in another order"
    assert counts.astype(float).dp.changes == "the same numbers in another form"
    assert counts.rename({"a": "A"}).dp.changes == "labels changed"
    assert counts.rename({"a": "A"}).dp.interval().loc["A", "upper"] == counts.dp.interval().loc["a", "upper"]


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_a_part_is_saved_without_what_is_not_in_it(counts, tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    part = counts.sort_values().tail(2)
    part.dp.save(tmp_path / f"part.{suffix}")
    back = pdprivacy.read_release(tmp_path / f"part.{suffix}")
    assert back.equals(part)
    assert back.dp.verify() is False
    assert back.dp.changes == part.dp.changes
    assert unpack(back.attrs["dp"]["original"]).equals(part)
    again = back.iloc[::-1].head(1)
    assert again.dp.interval().equals(part.dp.interval().iloc[::-1].head(1))
    assert "2 of 4 numbers" in again.dp.changes
    with pytest.raises(MetadataError):
        pdprivacy.combine(back, within=0)


def test_new_labels_by_relabel(private):
    table = private.dp.crosstab("region", "health", epsilon=1, normalize="index")
    named = table.dp.relabel({"yes": "ill", "north": "N"})
    assert list(named.columns) == ["no", "ill"]
    assert named.columns.name == "health"
    np.testing.assert_array_equal(named.dp.interval().to_numpy(), table.dp.interval().to_numpy())
    assert named.dp.changes == "labels changed"
    assert named.iloc[::-1].dp.to_frame()["upper"].sum() == pytest.approx(table.dp.to_frame()["upper"].sum())
    by_level = table.dp.relabel({"health": {"yes": "ill"}})
    assert list(by_level.columns) == ["no", "ill"]
    assert table.iloc[::-1].dp.relabel({"yes": "ill"}).dp.interval().shape == (4, 8)
    for wrong in (
        {"maybe": "x"},
        {"health": {"maybe": "x"}},
        {"age": {"yes": "x"}},
        {"yes": "no"},
        {},
        ["yes"],
    ):
        with pytest.raises(ParameterError):
            table.dp.relabel(wrong)


def test_intervals_of_other_levels(counts):
    part = counts.iloc[::-1].head(2)
    assert part.dp.interval(level=0.5).equals(counts.dp.interval(level=0.5).iloc[::-1].head(2))


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("name", NUMBERS)
def test_parts_have_displays(private, name):
    pytest.importorskip("matplotlib")
    import matplotlib.pyplot as plt

    released = NUMBERS[name](private.dp)
    for part in (released.iloc[::-1], released.head(1), released.reset_index()):
        assert "|" in part.dp.to_markdown()
        assert part.dp._repr_html_()
        part.dp.plot()
        plt.close("all")


def test_numbers_and_labels_as_one_text():
    dates = pd.date_range("2026-01-01", periods=200)
    index = pd.MultiIndex.from_product([range(40), list("abcde")], names=["n", None])
    for frame in (
        pd.Series([3], index=["rows"], name="count"),
        pd.Series(np.arange(200) % 7, index=index),
        pd.DataFrame({"a": [0.1, np.nan] * 100, "b": 1 / 3}, index=dates),
        pd.DataFrame({"a": [1, 2] * 200, "b": [0.5, 1.0] * 200}),
        pd.DataFrame({"when": dates}),
        pd.Series([2**62, -(2**62)] * 100),
    ):
        text = pack(frame)
        check = (
            pd.testing.assert_series_equal if isinstance(frame, pd.Series) else pd.testing.assert_frame_equal
        )
        check(unpack(text), frame, check_freq=False)
    for text in ("", "{}", "x", pack(frame)[:-8]):
        with pytest.raises(MetadataError, match="does not hold the released numbers"):
            unpack(text)


def test_the_text_of_ten_thousand_counts_is_short_and_copied_at_no_cost():
    released = pd.Series(np.arange(10_000) % 900, index=pd.RangeIndex(10_000, name="cell").astype(str))
    attach(released, 6.0)
    assert len(json.dumps(released.attrs)) < 120_000
    plain = released.copy()
    plain.attrs = {}

    def seconds(frame):
        start = time.perf_counter()
        for _ in range(20):
            frame.sort_values(ascending=False).head(10).round(1)
        return time.perf_counter() - start

    ratio = min(seconds(released) for _ in range(5)) / min(seconds(plain) for _ in range(5))
    assert ratio < 5


def test_a_sum_over_a_level_whose_other_numbers_cancel_is_no_number_of_it(full):
    """The sum is equal to one number, but has the noise of three."""
    domain = Domain(
        (Column("c", "category", categories=("a", "b")), Column("i", "integer", lower=0, upper=2))
    )
    frame = pd.DataFrame({"c": ["a", "b"] * 50, "i": [1] * 100})
    private = pdprivacy.protect(frame, domain, epsilon=10**9)
    cancelled, kept = 0, 0
    for seed in range(400 if full else 100):
        counts = private.dp.value_counts(["c", "i"], epsilon=2, sort=False, rng=seed)
        sums, of_one = counts.groupby(level="c").sum(), counts.xs(1, level="i")
        if np.array_equal(sums, of_one):
            cancelled += 1
            with pytest.raises(MetadataError):
                sums.dp.interval()
        elif kept == 0 and (sums != of_one).all():
            kept = len(of_one.dp.interval())
    assert (cancelled > (5 if full else 0), kept) == (True, 2)


def test_nulls_among_the_labels_of_columns():
    domain = Domain(
        (
            Column("c", "category", categories=("a", "b")),
            Column("e", "category", categories=("u", "v")),
            Column("i", "integer", lower=0, upper=2, nullable=True),
        )
    )
    cells = {"c": ["a", "b"] * 6, "e": ["u", "v", "u"] * 4, "i": pd.array([1, None] * 6, dtype="Int64")}
    private = pdprivacy.protect(pd.DataFrame(cells), domain, epsilon=10)
    table = private.dp.crosstab("c", ["e", "i"], epsilon=1, rng=1)
    whole = table.dp.interval()
    for part in (table.head(1), table.sort_index(ascending=False)):
        ends = part.dp.interval()
        assert ends.shape[1] == whole.shape[1]
        assert np.array_equal(ends, whole.loc[ends.index])


def test_dates_as_texts_have_no_interval_and_say_so():
    when = pd.date_range("2020-02-01", periods=40, unit="us").to_series(index=range(40))
    schema = pa.DataFrameSchema(
        {"d": pa.Column("datetime64[us]", pa.Check.in_range("2020-01-01", "2020-12-31"), metadata={"dp": {}})}
    )
    mean = pd.DataFrame({"d": when}).dp.protect(schema, epsilon=10).dp.mean("d", epsilon=1)
    for dtype in (str, object):
        with pytest.raises(MetadataError, match="are texts or objects"):
            mean.astype(dtype).dp.interval()


def test_relabel_refuses_what_is_no_label(counts):
    with pytest.raises(ParameterError, match="must map labels to labels"):
        counts.dp.relabel({counts.index[0]: ["a"]})
