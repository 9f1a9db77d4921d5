"""Private labels, with `label_search`, `distinct_labels`, `raw_labels` and `label_declaration`."""

from __future__ import annotations

import enum
import json
import unicodedata
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.core import noise
from pdprivacy.core.gate.execute import execute
from pdprivacy.core.gate.records import records_of, seal
from pdprivacy.core.mechanisms.partition_selection import PartitionSelection
from pdprivacy.core.rows import raw_labels
from pdprivacy.errors import (
    BudgetExceeded,
    DeclarationError,
    InvalidDataError,
    MetadataError,
    ParameterError,
    PrivacyError,
)
from pdprivacy.frames import find
from pdprivacy.releases.label_discovery import find_labels
from tests.support.engine_frames import ENGINES, each_engine, frame_of
from tests.support.statistics import counts_p_value

NFD = unicodedata.normalize("NFD", "Zürich")
TEXTS = ["a", "a ", "a,", "", "1", "1.0", "True", "Zürich", NFD, "A", "(other)", "x\ny", "nan", None]
NUMBERS = [0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63), None]
CITY = Column("city", "category", nullable=True, private_labels=True)
ZIP = Column("zip", "integer", nullable=True, private_labels=True)
SEX = Column("sex", "category", nullable=True, private_labels=True)


def table(rows: int = 700, seed: int = 1) -> Any:
    """An Arrow table of hard labels, each of them several times."""
    import pyarrow

    generator = np.random.default_rng(seed)
    return pyarrow.table(
        {
            "city": pyarrow.array([TEXTS[i] for i in generator.integers(len(TEXTS), size=rows)]),
            "zip": pyarrow.array([NUMBERS[i] for i in generator.integers(len(NUMBERS), size=rows)], "int64"),
            "sex": pyarrow.array([("f", "m", ",b", "b")[i] for i in generator.integers(4, size=rows)]),
        }
    )


def protected(frame: Any, *columns: Column, **words: Any) -> Any:
    words = {"epsilon": 100, "delta": 0.5, **words}
    return pdprivacy.protect(frame, Domain(columns or (CITY, ZIP, SEX)), **words)


def texts(cities: list[Any], **words: Any) -> Any:
    return protected(pd.DataFrame({"city": pd.Series(cities, dtype=object)}), CITY, **words)


def labels_read(private: Any, columns: Any, monkeypatch: pytest.MonkeyPatch) -> dict[Any, int]:
    """The counts that the mechanism is handed for each label, by a draw that shows them all."""
    with monkeypatch.context() as patch:
        patch.setattr(PartitionSelection, "draw", lambda self, counts, source: counts)
        found_labels = private.dp.find_labels(columns, epsilon=1, delta=1e-6, counts=True)
    return found_labels.to_dict()


# ---------------------------------------------------------------- reads


@pytest.mark.parametrize("engine", each_engine(ENGINES))
def test_every_engine_counts_the_same_labels(engine, monkeypatch, request):
    if engine == "Spark":
        request.getfixturevalue("spark")
    data = table()
    private, rows = protected(frame_of(engine, data)), data.to_pylist()
    for columns in ("city", "zip", ["city", "sex"], ["sex", "zip", "city"]):
        names = [columns] if isinstance(columns, str) else columns
        keys = [tuple(row[name] for name in names) for row in rows]
        counted = Counter(key if len(key) > 1 else key[0] for key in keys if None not in key)
        read = labels_read(private, columns, monkeypatch)
        assert read == counted
        assert list(read) == sorted(counted)
        assert {type(label) for label in read} == {type(label) for label in counted}


@pytest.mark.parametrize("engine", each_engine(ENGINES))
def test_the_labels_are_used_on_every_engine(engine, request):
    if engine == "Spark":
        request.getfixturevalue("spark")
    data = table()
    private, frame = protected(frame_of(engine, data)), data.to_pandas()
    labels = private.dp.find_labels(["city", "sex"], epsilon=1, delta=1e-3, rng=3)
    same = protected(data.to_pandas()).dp.find_labels(["city", "sex"], epsilon=1, delta=1e-3, rng=3)
    pd.testing.assert_frame_equal(labels, same)
    cities = sorted(set(labels["city"]))
    assert 0 < len(labels) < len(TEXTS) * 4
    used = private.use(labels, other="elsewhere")
    assert used.dp.domain["city"].categories == (*cities, "elsewhere")
    expected = frame["city"].map(lambda city: city if city in cities or pd.isna(city) else "elsewhere")
    counts = used.dp.value_counts("city", epsilon=20, rng=1, sort=False)
    listed = [int((expected == label).sum()) for label in (*cities, "elsewhere")]
    assert np.abs(counts.to_numpy() - [*listed, int(frame["city"].isna().sum())]).max() < 3
    numbers = private.dp.find_labels("zip", epsilon=1, delta=1e-3, rng=3)
    assert private.use(numbers).dp.domain["zip"].nullable
    assert private.use(numbers, other=7).dp.domain["zip"].categories == (*numbers["zip"], 7)
    some = private.use(numbers).dp.value_counts("zip", epsilon=20, rng=1, sort=False)
    exact = [data.column("zip").to_pylist().count(number) for number in numbers["zip"]]
    assert np.abs(some.to_numpy()[:-1] - exact).max() < 3


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([1.0, 1.0, np.nan, -0.0, 0.0, 3.0]),
        pd.Series([1, 1, None, 0, 0, 3], dtype="Int16"),
        pd.Series([1, 1.0, None, -0.0, 0, 3], dtype=object),
        pd.Series([1, 1, np.nan, 0, 0, 3], dtype=pd.SparseDtype(float)),
        pd.Series([1, 1, None, 0, 0, 3], dtype="double[pyarrow]"),
    ],
    ids=lambda values: str(values.dtype),
)
def test_a_whole_number_is_one_label_whatever_stores_it(values, monkeypatch):
    private = protected(pd.DataFrame({"zip": values}), ZIP)
    assert labels_read(private, "zip", monkeypatch) == {0: 2, 1: 2, 3: 1}


def test_an_integer_beyond_64_bits_is_the_nearest_label(monkeypatch):
    """As in the step that declares the labels, and as engines read such integers."""
    private = protected(pd.DataFrame({"zip": pd.Series([2**64, 2**63 - 1, -(2**70)], dtype=object)}), ZIP)
    assert labels_read(private, "zip", monkeypatch) == {2**63 - 1: 2, -(2**63): 1}
    used = private.use(private.dp.find_labels("zip", epsilon=10, delta=0.4, rng=1))
    assert set(used.dp.domain["zip"].categories) <= {2**63 - 1, -(2**63)}


@pytest.mark.parametrize("engine", each_engine(ENGINES))
def test_decimals_are_read_exactly(engine, monkeypatch, request):
    if engine == "Spark":
        request.getfixturevalue("spark")
    import pyarrow

    cells = [2**53, 2**53 + 1, 2**53 + 1, 2**70, None]
    zips = pyarrow.array(
        [None if cell is None else Decimal(cell) for cell in cells], pyarrow.decimal128(30, 2)
    )
    private = protected(frame_of(engine, pyarrow.table({"zip": zips})), ZIP)
    read = labels_read(private, "zip", monkeypatch)
    assert read == {2**53: 1, 2**53 + 1: 2, 2**63 - 1: 1}


@pytest.mark.parametrize(
    "dtype", ["object", "category", "string", "string[pyarrow]", "large_string[pyarrow]"]
)
def test_a_text_is_one_label_whatever_stores_it(dtype, monkeypatch):
    cities = pd.Series(["a", "a ", None, "a", "b"], dtype="object").astype(dtype)
    private = protected(pd.DataFrame({"city": cities}), CITY)
    assert labels_read(private, "city", monkeypatch) == {"a": 2, "a ": 1, "b": 1}
    assert private.use(private.dp.find_labels("city", epsilon=1, delta=0.4)).dp.domain["city"].nullable


def test_entries_of_a_dictionary_that_repeat_are_one_label(monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    repeated = pyarrow.DictionaryArray.from_arrays([0, 1, 2, None, 1], ["a", "b", "a"])
    array = pd.arrays.ArrowExtensionArray(pyarrow.chunked_array([repeated]))
    private = protected(pd.DataFrame({"city": pd.Series(array)}), CITY)
    assert labels_read(private, "city", monkeypatch) == {"a": 2, "b": 2}


@pytest.mark.parametrize("cut", [False, True])
def test_a_text_with_a_null_character_is_its_own_label(monkeypatch, cut):
    """pandas 2 ends such texts when it looks them up, so there they are compared by Python."""
    monkeypatch.setattr(raw_labels, "CUTS_TEXTS", cut or raw_labels.CUTS_TEXTS)
    cities = ["a\0b"] + ["a"] * 50 + ["a\0"]
    private = texts(cities)
    assert labels_read(private, "city", monkeypatch) == {"a": 50, "a\0": 1, "a\0b": 1}
    assert labels_read(texts(cities[::-1]), "city", monkeypatch) == {"a": 50, "a\0": 1, "a\0b": 1}
    used = private.use(private.dp.find_labels("city", epsilon=5, delta=1e-9))
    counts = used.dp.value_counts("city", epsilon=50, rng=1, sort=False)
    assert counts.tolist() == [50, 2, 0]
    frame = pd.DataFrame({"city": cities, "sex": ["f"] * len(cities)}, dtype=object)
    read = labels_read(protected(frame, CITY, SEX), ["sex", "city"], monkeypatch)
    assert read == {("f", "a"): 50, ("f", "a\0"): 1, ("f", "a\0b"): 1}


def test_a_text_that_no_file_can_hold_has_no_label(monkeypatch):
    assert labels_read(texts(["a", "\ud800", "a"]), "city", monkeypatch) == {"a": 2}


class Color(str, enum.Enum):  # noqa: UP042, whose `str` is not the text
    RED = "red"


class Boo(str):
    """A text that shows, and compares, as another one."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __str__(self) -> str:
        return "boo"

    def __eq__(self, other: object) -> bool:
        return True


class Digit(enum.IntEnum):
    ONE = 1


class Half(float):
    """A number that equals none."""

    __slots__ = ()
    __hash__ = float.__hash__

    def __eq__(self, other: object) -> bool:
        return False


@pytest.mark.parametrize("dtype", ["object", pd.StringDtype("python")], ids=str)
@pytest.mark.parametrize(
    "cell", [Color.RED, Boo("red"), np.str_("red")], ids=lambda cell: type(cell).__name__
)
def test_a_text_of_another_type_changes_the_label_of_no_other_record(cell, dtype, monkeypatch):
    for cells in ([cell, *["red"] * 9, "blue", None], ["blue", *["red"] * 9, None, cell]):
        frame = pd.DataFrame({"city": pd.Series(cells, dtype=dtype), "sex": "f"})
        private = protected(frame, CITY, SEX)
        assert labels_read(private, "city", monkeypatch) == {"blue": 1, "red": 10}
        pairs = labels_read(private, ["sex", "city"], monkeypatch)
        assert pairs == {("f", "blue"): 1, ("f", "red"): 10}
        used = private.use(private.dp.find_labels("city", epsilon=50, delta=1e-9), other="blue")
        counts = used.dp.value_counts("city", epsilon=40, sort=False)
        assert counts.tolist() == [10, 1, 1]
        units = frame.assign(person=range(len(frame)))
        read = labels_read(protected(units, CITY, unit="person", max_rows=2), "city", monkeypatch)
        assert read == {"blue": 1, "red": 10}


def test_a_text_that_equals_all_others_is_put_together_with_none():
    for own_hash in range(64):  # some of them are near that of "red" in the table of pandas

        class Equal(Boo):
            __slots__ = ()

            def __hash__(self, own_hash: int = own_hash) -> int:
                return own_hash

        cells = pd.Series([Equal("blue"), "red", None, "red"], dtype=object)
        codes, labels = raw_labels.label_codes(cells, CITY)
        assert [None if code < 0 else labels[code] for code in codes] == ["blue", "red", None, "red"]
        listed, times = raw_labels.counts_of_cells(cells, CITY)
        assert dict(zip(listed, times, strict=True)) == {"blue": 1, "red": 2}


@pytest.mark.parametrize("cell", [Digit.ONE, Half(1.0), np.float64(1), Decimal(1)], ids=repr)
def test_a_number_of_another_type_changes_the_label_of_no_other_record(cell, monkeypatch):
    for cells in ([cell, *[1] * 9, 2, None], [2, *[1] * 9, None, cell]):
        private = protected(pd.DataFrame({"zip": pd.Series(cells, dtype=object)}), ZIP)
        assert labels_read(private, "zip", monkeypatch) == {1: 10, 2: 1}
        used = private.use(private.dp.find_labels("zip", epsilon=50, delta=1e-9))
        assert used.dp.value_counts("zip", epsilon=40, sort=False).tolist() == [10, 2]


def test_combinations_are_told_apart(monkeypatch):
    frame = pd.DataFrame({"city": ["a,", "a", "a,"], "sex": ["b", ",b", "b"]})
    read = labels_read(protected(frame, CITY, SEX), ["city", "sex"], monkeypatch)
    assert read == {("a,", "b"): 2, ("a", ",b"): 1}


@pytest.mark.parametrize("cities", [["a", 1], ["a", True], [1.0], ["a", b"a"]])
def test_cells_of_another_type_are_refused_when_the_frame_is_protected(cities):
    with pytest.raises(InvalidDataError, match="column 'city'"):
        texts(cities)
    with pytest.raises(InvalidDataError, match="column 'zip'"):
        protected(pd.DataFrame({"zip": pd.Series(["1", 1], dtype=object)}), ZIP)


def test_the_order_of_records_does_not_matter():
    frame = table(3000, seed=5).to_pandas()
    shuffled = frame.sample(frac=1, random_state=1)
    first, second = (
        protected(each).dp.find_labels("city", epsilon=0.1, delta=1e-6, counts=True, rng=9)
        for each in (frame, shuffled)
    )
    pd.testing.assert_series_equal(first, second)


# ---------------------------------------------------------------- units


def visits(rows: dict[int, list[Any]], most: int, **words: Any) -> Any:
    frame = pd.DataFrame(
        {
            "person": [person for person, cities in rows.items() for _ in cities],
            "city": pd.Series([city for cities in rows.values() for city in cities], dtype=object),
        }
    )
    return protected(frame, CITY, unit="person", max_rows=most, **words)


def test_a_unit_counts_for_one_label(monkeypatch):
    private = visits({1: ["a"] * 1000, 2: ["a", "b", None, "c"], 3: [None], 4: []}, most=1000)
    for _ in range(5):
        read = labels_read(private, "city", monkeypatch)
        assert sum(read.values()) == 2
        assert read["a"] >= 1
    assert labels_read(visits({3: [None]}, most=2), "city", monkeypatch) == {}


def test_each_record_of_a_unit_with_a_label_is_equally_likely():
    private = visits({7: ["a", "b", None, "b", "c"]}, most=5)
    read, source = records_of(find(private)).engine.labels_of_units((CITY,)), noise.source(1)
    draws = [read.counts(noise.shuffled_keys(len(read.units), source)) for _ in range(5000)]
    counts = [draws.count({(label,): 1}) for label in "abc"]
    assert counts_p_value(counts, [0.25, 0.5, 0.25]) > 1e-6
    for share in (0.225, 0.275):
        assert counts_p_value(counts, [share, 1 - 2 * share, share]) < 1e-6


def test_other_engines_draw_no_record_of_a_unit():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"person": [1, 1, 2], "city": ["a", "b", "a"]})
    words = {"unit": "person", "epsilon": 1, "delta": 0.1}
    private = pdprivacy.protect(frame, Domain((CITY,)), max_rows=2, **words)
    with pytest.raises(ParameterError, match="max_rows=1"):
        private.dp.find_labels("city", epsilon=1, delta=0.1)
    single = pdprivacy.protect(frame, Domain((CITY,)), max_rows=1, **words)
    assert single.dp.find_labels("city", epsilon=1, delta=0.1).columns.tolist() == ["city"]


# ---------------------------------------------------------------- charges and metadata


def test_one_charge_with_epsilon_and_delta():
    private = texts(["a"] * 99, epsilon=1, delta=1e-5)
    for counts in (False, True):
        labels = private.dp.find_labels("city", epsilon=0.25, delta=1e-6, counts=counts)
        facts = labels.dp.metadata
        assert (facts.epsilon, facts.delta, facts.mechanism) == (0.25, 1e-6, "partition_selection")
        assert facts.found == {"kind": "labels", "declared": ["category"]}
        assert labels.dp.verify()
        assert json.loads(json.dumps(labels.attrs["dp"]))["error"]["always"] > 50
        assert "Labels of city" in repr(labels.dp)
    assert private.dp.budget.left == (0.5, 8e-6)
    assert len(private.dp.budget.entries) == 2
    with pytest.raises(BudgetExceeded):
        private.dp.find_labels("city", epsilon=0.6, delta=1e-6)
    with pytest.raises(BudgetExceeded):
        private.dp.find_labels("city", epsilon=0.1, delta=1e-5)


def test_the_charge_comes_before_the_read():
    private = texts(["a"] * 99, epsilon=1, delta=1e-5)
    release = find_labels(find(private), "city", epsilon=0.5, delta=1e-6)
    broken = replace(release.facts, sealed=seal(pd.DataFrame({"other": [1]}), pd.DataFrame(), (0, 0)))
    with pytest.raises(KeyError):
        execute(replace(release, facts=broken))
    assert private.dp.budget.left == (0.5, 9e-6)


def test_counts_show_the_same_labels_and_say_that_they_chose_them():
    private = texts(["a"] * 30 + ["b"] * 9 + ["c"] * 8 + ["d"] * 900)
    for seed in range(20):
        labels = private.dp.find_labels("city", epsilon=1, delta=1e-3, rng=seed)
        counts = private.dp.find_labels("city", epsilon=1, delta=1e-3, rng=seed, counts=True)
        assert labels["city"].tolist() == counts.index.tolist()
        assert (counts > PartitionSelection(1, 1e-3).threshold).all()
        assert "too high on average" in counts.attrs["dp"]["error"]["note"]
        assert {"a", "d"} <= set(counts.index) <= set("abcd")


def test_a_replaced_record_costs_half_of_the_loss_per_label():
    private = texts(["a"] * 99, neighbors="replace_one")
    labels = private.dp.find_labels("city", epsilon=1, delta=1e-6)
    assert labels.attrs["dp"]["error"]["always"] == PartitionSelection(0.5, 5e-7).certain
    assert labels.dp.metadata.scale == 2


@pytest.mark.parametrize("accounting", ["basic", "filter"])
def test_budgets_count_the_delta(accounting):
    private = texts(["a"] * 99, epsilon=1, delta=1e-5, accounting=accounting)
    private.dp.find_labels("city", epsilon=0.5, delta=4e-6)
    with pytest.raises(BudgetExceeded):
        private.dp.find_labels("city", epsilon=0.01, delta=7e-6)


@pytest.mark.parametrize("cities", [[], [None, None], ["a"]])
def test_no_label_is_an_answer_too(cities):
    private = texts(cities)
    for counts in (False, True):
        labels = private.dp.find_labels("city", epsilon=1, delta=1e-9, counts=counts, rng=1)
        assert len(labels) == 0
        assert labels.dp.verify()
        assert "damaged" not in repr(labels.dp)
        assert private.use(labels).dp.domain["city"].categories == ("(other)",)
        with pytest.raises(ParameterError, match="every cell would become null"):
            private.use(labels, other=None)
    several = protected(pd.DataFrame({"city": ["a"], "sex": ["b"]}), CITY, SEX)
    assert several.dp.find_labels(["city", "sex"], epsilon=1, delta=1e-9, counts=True, rng=1).empty


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("columns", ["city", ["city", "sex"]])
def test_no_label_can_be_saved_and_reported(columns, counts, tmp_path):
    private = protected(pd.DataFrame({"city": ["a"], "sex": ["b"]}), CITY, SEX)
    labels = private.dp.find_labels(columns, epsilon=1, delta=1e-9, counts=counts, rng=1)
    for suffix in ("csv", "json", "parquet"):
        labels.dp.save(tmp_path / f"labels.{suffix}")
        again = pdprivacy.read_release(tmp_path / f"labels.{suffix}")
        assert len(again) == 0
        assert private.use(again).dp.domain["city"].categories == ("(other)",)
    assert "Labels of city" in pdprivacy.report([labels], pictures=False).html


def test_numbers_of_private_labels_are_refused_with_the_call_that_counts_them():
    private = texts(["a"] * 99)
    for verb in ("mean", "describe"):
        with pytest.raises(DeclarationError, match="needs the bounds") as caught:
            getattr(private.dp, verb)("city", epsilon=0.1)
        counts: Any = eval(str(caught.value.hint), {"private": private})
        assert "(other)" in counts.index


def test_a_part_of_the_labels_is_refused_with_the_call_that_finds_them():
    private = texts(["a"] * 99 + ["b"] * 99)
    labels = private.dp.find_labels("city", epsilon=1, delta=1e-6)
    with pytest.raises(MetadataError, match="differs") as caught:
        private.use(labels.head(1))
    assert eval(str(caught.value.hint), {"private": private}).dp.domain["city"].categories[0] == "a"


def test_a_saved_release_is_used(tmp_path):
    private = texts(["a"] * 99 + ["b"] * 77)
    for counts in (False, True):
        labels = private.dp.find_labels("city", epsilon=1, delta=1e-6, counts=counts)
        labels.dp.save(tmp_path / "labels.parquet")
        loaded = pdprivacy.read_release(tmp_path / "labels.parquet")
        assert private.use(loaded).dp.domain["city"].categories == ("a", "b", "(other)")


# ---------------------------------------------------------------- use


def test_use_is_a_row_step_that_names_the_release():
    private = texts(["a"] * 99 + ["b"] * 77 + ["rare", None])
    labels = private.dp.find_labels("city", epsilon=1, delta=1e-6)
    used = private.use(labels)
    assert used.dp.lineage["step"].tolist() == ["use(find_labels of city, charge 1)"]
    assert used.dp.lineage["stability"].tolist() == [1]
    assert used.dp.budget == private.dp.budget
    assert not used.dp.domain["city"].private_labels
    assert used[used["city"] == "a"].dp.count(epsilon=40).item() == pytest.approx(99, abs=1)
    assert private.use(labels, other=None).dp.lineage["step"].tolist() == [
        "use(find_labels of city, charge 1, other=None)"
    ]
    gone = private.use(labels, other=None).dp.value_counts("city", epsilon=50, sort=False)
    assert [*gone] == [99, 77, 2]
    assert used.recode("city", {"b": "a"}).dp.domain["city"].categories == ("a", "(other)")


def test_use_after_other_steps():
    private = texts(["a"] * 99 + [None] * 50)
    labels = private.dp.find_labels("city", epsilon=1, delta=1e-6)
    filled = private.fillna({"city": "none"})
    assert filled.use(labels).dp.value_counts("city", epsilon=50, sort=False).to_dict() == {
        "a": 99,
        "(other)": 50,
    }
    assert private.dropna().dp.domain["city"].private_labels
    assert private.query("city in ['a', 'b']").dp.domain["city"].categories == ("a", "b")
    with pytest.raises(DeclarationError, match="otherwise"):
        private.use(labels).use(labels)


@pytest.mark.parametrize(
    ("other", "match"), [("a", "must not be a label"), (3, "a text"), (True, "a text"), ("\ud800", "a text")]
)
def test_other_is_refused(other, match):
    private = texts(["a"] * 99)
    labels = private.dp.find_labels("city", epsilon=1, delta=1e-6)
    with pytest.raises(ParameterError, match=match):
        private.use(labels, other=other)


def test_other_of_whole_numbers_is_one():
    private = protected(pd.DataFrame({"zip": [8001] * 99}), ZIP)
    labels = private.dp.find_labels("zip", epsilon=1, delta=1e-6)
    for other in ("none", 8001, 1.5, True, 2**64):
        with pytest.raises(ParameterError, match="'other' must"):
            private.use(labels, other=other)


def test_labels_that_were_looked_at_are_refused():
    private = texts(["a"] * 99)
    labels = private.dp.find_labels("city", epsilon=1, delta=1e-6)
    changed = labels.copy()
    changed.loc[0, "city"] = "b"
    for wrong in (["a"], np.array(["a"]), pd.DataFrame({"city": ["a"]}), changed, pd.Series(["a"])):
        with pytest.raises((ParameterError, MetadataError)):
            private.use(wrong)
    with pytest.raises(PrivacyError):
        private.dp.find_labels(pd.Series(["a"]), epsilon=1, delta=1e-6)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("columns", "words", "match"),
    [
        ("city", {"delta": 0}, "'delta' must be positive"),
        ("city", {"delta": "1e-40"}, "too small"),
        ("city", {"max_labels": 2}, "'max_labels' must be 1"),
        ("city", {"counts": "yes"}, "'counts'"),
        (["city", "city"], {}, "twice"),
        ("known", {}, "has declared labels"),
        ("age", {}, "is not declared with them"),
        ("nobody", {}, "not declared"),
    ],
)
def test_refused_before_anything_is_charged(columns, words, match):
    known = Column("known", "category", categories=("x", "y"))
    age = Column("age", "integer", lower=0, upper=120)
    frame = pd.DataFrame({"city": ["secret"] * 9, "known": ["x"] * 9, "age": range(20, 29)})
    private = protected(frame, CITY, known, age)
    with pytest.raises(PrivacyError, match=match) as refused:
        private.dp.find_labels(columns, **{"epsilon": 1, "delta": 1e-6, **words})
    assert "secret" not in str(refused.value)
    assert private.dp.budget.left == (100, 0.5)


@pytest.mark.parametrize(
    "release",
    [
        lambda dp: dp.value_counts("city", epsilon=1),
        lambda dp: dp.top_k("city", 2, epsilon=1),
        lambda dp: dp.mode("city", epsilon=1),
        lambda dp: dp.groupby("city").count(epsilon=1),
        lambda dp: dp.recode("city", {"a": "b"}),
    ],
)
def test_releases_are_refused_until_the_labels_are_known(release):
    private = texts(["a"] * 9)
    with pytest.raises(PrivacyError, match=r'private\.dp\.find_labels\("city", epsilon=1, delta=1e-6\)'):
        release(private.dp)
    assert private.dp.budget.left == (100, 0.5)


@pytest.mark.parametrize(
    ("column", "match"),
    [
        (pa.Column(str, metadata={"dp": {"labels": "public"}}), '"labels" of column'),
        (pa.Column(str, metadata={"dp": {"labels": ["a"]}}), '"labels" of column'),
        (pa.Column(float, metadata={"dp": {"labels": "private"}}), "texts and whole numbers"),
        (pa.Column(bool, metadata={"dp": {"labels": "private"}}), "texts and whole numbers"),
        (pa.Column(str, pa.Check.isin(["a"]), metadata={"dp": {"labels": "private"}}), "contradicts"),
        (pa.Column(int, metadata={"dp": {"labels": "private", "bins": [0, 5, 9]}}), "contradicts"),
        (pa.Column(str, metadata={"dp": {"labels": "private", "role": "identifier"}}), "contradicts"),
    ],
)
def test_declarations_that_contradict_private_labels(column, match):
    with pytest.raises(DeclarationError, match=match):
        pd.DataFrame({"c": ["a"]}).dp.protect(pa.DataFrameSchema({"c": column}), epsilon=1)


def test_declared_by_a_schema_and_beside_one():
    frame = pd.DataFrame({"city": ["a"] * 50, "zip": [8001] * 50})
    private_words = {"dp": {"labels": "private", "role": "quasi_identifier"}}
    schema = pa.DataFrameSchema(
        {"city": pa.Column(str, metadata=private_words), "zip": pa.Column(int, pa.Check.in_range(1, 9999))}
    )
    private = frame.dp.protect(schema, epsilon=2, delta=1e-5, columns={"zip": {"labels": "private"}})
    assert private.dp.domain["city"].role == "quasi_identifier"
    assert "private labels" in repr(private)
    labels = private.dp.find_labels("zip", epsilon=1, delta=1e-6)
    assert labels["zip"].tolist() == [8001]
    assert private.use(labels).dp.domain["zip"].categories == (8001,)
    assert Domain((CITY,)).fingerprint() != Domain((replace(CITY, private_labels=False),)).fingerprint()
