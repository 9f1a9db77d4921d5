"""Releases in files: what is read is what was saved, to the last bit, or an error."""

from __future__ import annotations

import copy
import csv
import datetime
import gzip
import io
import itertools
import json
import math
import os
import resource
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal, assert_series_equal

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.errors import MetadataError, MissingExtraError, ParameterError
from pdprivacy.pipeline import shapes, storage
from pdprivacy.pipeline.storage import BESIDE
from pdprivacy.releases import metadata
from tests.support.released import RELEASES

PARQUET = pytest.mark.skipif(find_spec("pyarrow") is None, reason="Parquet files need pyarrow")
SUFFIXES = [pytest.param(".parquet", marks=PARQUET), ".csv", ".csv.gz", ".json", ".json.gz"]
TEXTS = [".csv", ".json"]
PANDAS_2 = pd.__version__.startswith("2.")


def bits(released):
    """All numbers to the last bit, but for those of NaN, of which a release has one."""
    frame = released.to_frame() if isinstance(released, pd.Series) else released
    encoded = []
    for position in range(frame.shape[1]):
        column = frame.iloc[:, position]
        if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
            numbers = column.to_numpy(copy=True)
            numbers[np.isnan(numbers)] = np.nan if numbers.dtype.kind == "f" else numbers[:0]
            encoded.append(numbers.tobytes())
        else:
            encoded.append(list(map(repr, column.tolist())))
    return encoded


def same(back, released):
    """One object is the other: type, numbers, labels, dtypes, names, ``attrs``."""
    assert type(back) is type(released)
    if isinstance(released, pd.Series):
        assert_series_equal(back, released, check_exact=True)
        assert type(back.name) is type(released.name)
    else:
        assert_frame_equal(back, released, check_exact=True)
    for first, second in zip(back.axes, released.axes, strict=True):
        assert type(first) is type(second)
        assert [type(name) for name in first.names] == [type(name) for name in second.names]
        assert [type(label) for label in first] == [type(label) for label in second]
    assert bits(back) == bits(released)
    assert back.attrs == released.attrs
    assert back.dp.verify() is True


def saved(released, path, **options):
    released.dp.save(path, **options)
    return pdprivacy.read_release(path, **options)


# ------------------------------------------------------------------ what is read is what was saved


@pytest.mark.full(keep=30)
@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_release_is_read_as_it_was(private, tmp_path, name, suffix):
    released = RELEASES[name](private.dp)
    before = copy.deepcopy(released.attrs), released.copy()
    same(saved(released, tmp_path / f"r{suffix}"), released)
    assert released.attrs == before[0]
    same(released, before[1])


def made(values, index, columns=None):
    """A release of these numbers and labels, with the metadata of a real one."""
    domain = Domain((Column("x", "boolean"),))
    facts = pd.DataFrame({"x": [True]}).dp.protect(domain, epsilon=9).dp.count(epsilon=1, rng=1).attrs["dp"]
    if columns is None:
        released = pd.Series(values, index=index)
    else:
        released = pd.DataFrame(dict(enumerate(values)), index=index).set_axis(columns, axis=1)
    metadata.attach(released, facts)
    return released


FLOATS = st.one_of(st.floats(), st.sampled_from([-0.0, math.inf, -math.inf, math.nan, 5e-324, 1 / 3]))
VALUES = {
    "float64": FLOATS,
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "bool": st.booleans(),
    "Int64": st.one_of(st.integers(-(2**63), 2**63 - 1), st.just(pd.NA)),
    "float32": st.floats(width=32),
    "object": st.one_of(st.text(max_size=3).filter(str.isprintable), st.integers(), st.booleans()),
    "datetime64[us]": st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)),
}
NAMES = st.one_of(
    st.none(),
    st.text(max_size=3),
    st.integers(-3, 3),
    st.tuples(st.integers(0, 3), st.text("ab", max_size=1)),
)
AXES = {
    "texts": lambda n: pd.Index([f'a,"{turn}"\n|' for turn in range(n)]),
    "range": lambda n: pd.RangeIndex(3, 3 + 2 * n, 2),
    "whole numbers": lambda n: pd.Index(range(n, 0, -1)),
    "floats": lambda n: pd.Index([0.1 * turn for turn in range(n)]),
    "truth": lambda n: pd.Index([True, False, None][:n] if n < 4 else range(n), dtype=object),
    "categories": lambda n: pd.CategoricalIndex(
        [f"c{n - turn}" for turn in range(n)], [f"c{turn}" for turn in range(n + 2, -1, -1)], ordered=True
    ),
    "unordered numbers": lambda n: pd.CategoricalIndex(range(n)),
    "intervals": lambda n: pd.interval_range(0, n, n, closed="left"),
    "days": lambda n: pd.date_range("2024-02-28", periods=n, freq="D", tz="Europe/Berlin"),
    "months": lambda n: pd.period_range("2024-11", periods=n, freq="M"),
    "hours": lambda n: pd.timedelta_range("1h", periods=n, freq="h"),
    "pairs": lambda n: pd.Index([(turn, "x") for turn in range(n)], tupleize_cols=False),
    "levels": lambda n: pd.MultiIndex.from_arrays(
        [[None, *"abcdefgh"[: n - 1]], pd.interval_range(0, n, n), pd.Categorical(range(n))]
    ),
}  # fmt: skip


@st.composite
def released(draw):
    """A release of any shape, labels and numbers."""
    rows, width = draw(st.integers(1, 4)), draw(st.integers(0, 3))

    def axis(length):
        labels = AXES[draw(st.sampled_from(sorted(AXES)))](length)
        return labels.set_names([draw(NAMES) for _ in range(labels.nlevels)])

    def column():
        dtype = draw(st.sampled_from(sorted(VALUES)))
        return pd.array(draw(st.lists(VALUES[dtype], min_size=rows, max_size=rows)), dtype=dtype)

    if width:
        index = axis(rows)
        return made([pd.Series(column(), index=index) for _ in range(width)], index, axis(width))
    return made(column(), axis(rows)).rename(draw(NAMES))


@pytest.mark.full
@pytest.mark.parametrize("suffix", SUFFIXES)
@given(released())
def test_a_release_of_any_shape_is_read_as_it_was(tmp_path_factory, suffix, release):
    same(saved(release, tmp_path_factory.mktemp("any") / f"r{suffix}"), release)


@pytest.mark.full(keep=20)
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("axis", AXES)
def test_every_kind_of_labels_is_read_as_it_was(tmp_path, suffix, axis):
    values = [-0.0, math.nan, 1 / 3]
    column = made(values, AXES[axis](3).set_names([("n", 1)] * AXES[axis](3).nlevels))
    same(saved(column, tmp_path / f"r{suffix}"), column)
    table = made([pd.Series([1.0, 2.0], index=["a", "b"])] * 3, ["a", "b"], AXES[axis](3))
    same(saved(table, tmp_path / f"t{suffix}"), table)


def test_a_file_is_replaced_and_others_are_left(private, tmp_path):
    first, second = private.dp.mean("age", epsilon=1), private.dp.crosstab("region", "health", epsilon=1)
    (tmp_path / "other.csv").write_text("mine")
    for released in (first, second):
        same(saved(released, tmp_path / "r.csv"), released)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.csv", "r.csv", "r.csv" + BESIDE]
    assert (tmp_path / "other.csv").read_text() == "mine"


def test_a_format_may_be_named(private, tmp_path):
    released = private.dp.mean("age", epsilon=1)
    same(saved(released, tmp_path / "release", format="json"), released)
    same(saved(released, str(tmp_path / "MEAN.JSON")), released)
    assert json.loads((tmp_path / "release").read_text())["dp"] == released.attrs["dp"]
    with pytest.raises(ParameterError, match=r"end in \.parquet, \.csv, \.csv\.gz, \.json or \.json\.gz"):
        pdprivacy.read_release(tmp_path / "release")


@PARQUET
def test_a_parquet_file_of_any_name_is_known_by_its_content(private, tmp_path):
    released = private.dp.mean("age", epsilon=1)
    released.dp.save(tmp_path / "release", format="parquet")
    same(pdprivacy.read_release(tmp_path / "release"), released)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_pandas_reads_the_numbers_of_a_csv_file(private, tmp_path, suffix):
    path = tmp_path / f"r{suffix}"
    means = private.dp.mean(["age", "family"], epsilon=1)
    means.dp.save(path)
    back = pd.read_csv(path, index_col=0, **({"float_precision": "round_trip"} if PANDAS_2 else {}))
    assert back["mean"].tolist() == means.tolist()
    assert back.index.tolist() == means.index.tolist()
    table = RELEASES["table of four"](private.dp)
    table.dp.save(path)
    back = pd.read_csv(path, index_col=[0, 1], header=[0, 1])
    assert back.to_numpy().tolist() == table.to_numpy().tolist()
    assert back.index.equals(table.index)
    assert back.columns.names == table.columns.names


# ------------------------------------------------------------------ what was changed is told


def refused(path, words=r"^The file "):
    with pytest.raises(MetadataError, match=words) as caught:
        pdprivacy.read_release(path)
    return str(caught.value)


def leaves(part, path=()):
    """The places of all texts, numbers, truth values and nulls of JSON."""
    if isinstance(part, dict | list):
        for key, inner in part.items() if isinstance(part, dict) else enumerate(part):
            yield from leaves(inner, (*path, key))
    else:
        yield path


def other(leaf):
    """Another value of the kind of this one."""
    if isinstance(leaf, bool):
        return not leaf
    if isinstance(leaf, int | float):
        return leaf + 1
    return "other" if leaf is None else leaf + "x"


CHANGED = ["mean", "margins", "table of four", "mode", "truth values"]


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("name", CHANGED)
@pytest.mark.parametrize("suffix", TEXTS)
def test_no_part_of_the_metadata_or_of_json_can_be_changed(private, tmp_path, name, suffix):
    released = RELEASES[name](private.dp)
    path = tmp_path / f"r{suffix}"
    released.dp.save(path)
    changed = path if suffix == ".json" else tmp_path / f"r.csv{BESIDE}"
    whole = json.loads(changed.read_text())
    for leaf in leaves(whole):
        altered = copy.deepcopy(whole)
        inner = altered
        for key in leaf[:-1]:
            inner = inner[key]
        inner[leaf[-1]] = other(inner[leaf[-1]])
        changed.write_text(json.dumps(altered))
        refused(path)
    for part in ("dp", "dp_shape"):
        changed.write_text(json.dumps({key: value for key, value in whole.items() if key != part}))
        refused(path, "no JSON of a release")
    changed.write_text(json.dumps(whole))
    same(pdprivacy.read_release(path), released)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_labels_with_the_ends_of_lines_are_read_as_they_were(tmp_path, suffix):
    labels = ("a\rb", "\r", "\n", "\r\n", "c\n", '"\r', "plain")
    domain = pdprivacy.Domain((pdprivacy.Column("g\r", "category", categories=labels),))
    private = pdprivacy.protect(pd.DataFrame({"g\r": [*labels] * 9}), domain, epsilon=1)
    released = private.dp.value_counts("g\r", epsilon=1)
    same(saved(released, tmp_path / f"counts{suffix}"), released)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("name", CHANGED)
def test_no_cell_of_a_csv_file_can_be_changed(private, tmp_path, name):
    released = RELEASES[name](private.dp)
    path = tmp_path / "r.csv"
    released.dp.save(path)
    whole = list(csv.reader(io.StringIO(path.read_text())))

    def write(grid):
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows(grid)

    changes = []
    for row, column in itertools.product(range(len(whole)), range(len(whole[0]))):
        cell = whole[row][column]
        for changed in ("1", "", cell + "0", cell + "x", f"-{cell}"):
            if changed != cell:
                grid = copy.deepcopy(whole)
                grid[row][column] = changed
                changes.append(grid)
    changes += [whole[:-1], [*whole, whole[-1]], whole[1:], whole[::-1], [line[:-1] for line in whole], []]
    for grid in changes:
        write(grid)
        refused(path)
    write(whole)  # other line endings, and the same cells
    same(pdprivacy.read_release(path), released)


@PARQUET
@pytest.mark.parametrize("name", ["mean", "margins"])
def test_a_changed_parquet_file_is_told(private, tmp_path, name):
    path = tmp_path / "r.parquet"
    released = RELEASES[name](private.dp)
    released.dp.save(path)
    for change in ("number", "metadata", "label", "kind"):
        frame = pd.read_parquet(path)
        if change == "number":
            frame.iloc[0, 0] += 1
        elif change == "metadata":
            frame.attrs["dp"]["epsilon"] = 0.5
        elif change == "label":
            frame.attrs["dp_shape"]["rows"]["labels"][0][0] += "x"
        else:
            frame.attrs["dp_shape"]["series"] ^= True
        frame.to_parquet(tmp_path / "changed.parquet")
        refused(tmp_path / "changed.parquet")
    same(pdprivacy.read_release(path), released)


def test_the_two_files_of_csv_belong_together(private, tmp_path):
    first, second = (private.dp.mean("age", epsilon=1) for _ in range(2))
    first.dp.save(tmp_path / "a.csv")
    second.dp.save(tmp_path / "b.csv")
    beside = tmp_path / ("a.csv" + BESIDE)
    (tmp_path / ("b.csv" + BESIDE)).replace(beside)
    refused(tmp_path / "a.csv", "does not hold the numbers and labels that were released")
    beside.unlink()
    message = refused(tmp_path / "a.csv", r"has no file of metadata beside it \(a\.csv\.dp\.json\)")
    assert "Hint: keep the two files together" in message
    same(saved(first, tmp_path / "a.csv"), first)
    refused(beside, "holds the metadata of a CSV file, and no numbers")


DAMAGES = {
    "cut off": lambda data: data[: len(data) // 2],
    "nothing": lambda data: b"",
    "garbage": lambda data: bytes(range(256)) * 3,
    "a list": lambda data: b"[1, 2]",
    "deep": lambda data: b"[" * 100_000,
    "a quote": lambda data: data[:-1] + b'"',
}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_told_and_shows_no_cell(tmp_path, suffix, damage):
    released = made([4242.5, 1.0], pd.Index(["CANARYx7", "b"]))
    path = tmp_path / f"r{suffix}"
    released.dp.save(path)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    message = refused(path)
    assert "CANARY" not in message
    assert "4242" not in message
    if "csv" in suffix:
        released.dp.save(path)
        beside = tmp_path / f"r{suffix}{BESIDE}"
        beside.write_bytes(DAMAGES[damage](beside.read_bytes()))
        assert "CANARY" not in refused(path, "The file of metadata beside the file .* is damaged")


# ------------------------------------------------------------------ crafted files

CRAFTED = {
    "a product of levels": {"labels": [[0, 1]] * 31, "dtypes": ["int64"] * 31, "names": [None] * 31},
    "a range": {"range": [0, 2**40, 1], "names": [None]},
    "codes": {"labels": [[0], [0]], "dtypes": ["int64"] * 2, "names": [None] * 2, "codes": [[0], [0] * 9]},
    "long texts": {"labels": [["a"]], "dtypes": ["U400000000"], "names": [None]},
    "a dtype in a list": {"labels": [["a"]], "dtypes": [["str"]], "names": [None]},
    "a structure": {"labels": [["a"]], "dtypes": ["(400000000,)i8"], "names": [None]},
    "a decimal": {"labels": [[{"decimal": "1e999999999"}]], "dtypes": ["int64"], "names": [None]},
    "a fraction": {"labels": [[{"fraction": "1e999999999"}]], "dtypes": ["object"], "names": [None]},
}


def within(mib, call):
    """Run a call in a process of its own, which may take so much more memory, and five seconds."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + mib * 2**20,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 6,) * 2)
    try:
        call()
        os._exit(0)
    except BaseException:
        os._exit(1)


LINUX = pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"), reason="the limits of a process are those of Linux"
)


@pytest.mark.full(keep=8)
@LINUX
@pytest.mark.parametrize("digest", ["right", "wrong", "none"])
@pytest.mark.parametrize("axis", CRAFTED)
def test_a_crafted_json_costs_no_memory_and_no_time(private, tmp_path, axis, digest):
    released = private.dp.count(epsilon=1)
    content = json.loads(storage.write_json(released))
    content["dp_shape"]["rows"] = CRAFTED[axis]
    if digest == "right":  # whoever writes a file can compute it
        content["dp_shape"]["digest"] = shapes._digest(content["dp"], content["dp_shape"])
    elif digest == "none":
        del content["dp_shape"]["digest"]
    path = tmp_path / "r.json"
    path.write_text(json.dumps(content))
    words = "does not hold the metadata" if digest == "wrong" else "labels cannot be read"
    assert within(512, lambda: refused(path, words)) == 0
    assert "MemoryError" not in refused(path, words)


@pytest.mark.full(keep=1)
@LINUX
@pytest.mark.parametrize("suffix", [".json.gz", ".csv.gz"])
def test_a_file_that_unpacks_to_gigabytes_is_refused(private, tmp_path, suffix):
    path = tmp_path / f"r{suffix}"
    private.dp.count(epsilon=1).dp.save(path)
    start = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(start) + gzip.compress(b" " * 2**26) * 64)  # 4 GiB
    assert path.stat().st_size < 2**23
    assert within(512, lambda: refused(path, "holds more than 128 MiB of (JSON|CSV), the limit")) == 0


@LINUX
@PARQUET
def test_a_parquet_file_of_gigabytes_is_refused_by_its_sizes(private, tmp_path, monkeypatch):
    import pyarrow
    from pyarrow import parquet

    path = tmp_path / "r.parquet"
    released = private.dp.count(epsilon=1)
    rows = pyarrow.array(np.zeros(2**16, dtype=np.int32))
    texts = pyarrow.DictionaryArray.from_arrays(rows, pyarrow.array(["x" * 2**16]))
    many = {f"n{number}": np.zeros(2**16) for number in range(16)}
    for columns, kind in (({"text": texts}, "texts"), (many, "numbers")):
        attrs = {storage.ATTRS: json.dumps(released.attrs)}
        table = pyarrow.table(columns).replace_schema_metadata(attrs)
        parquet.write_table(table, path, store_schema=False)
        assert path.stat().st_size < 2**19
        if kind == "numbers":  # so many would take minutes to write
            monkeypatch.setattr(storage, "LARGEST", 2**23)
        assert within(512, lambda kind=kind: refused(path, rf"more than .*GiB of {kind}, the limit")) == 0


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".json", ".json.gz"])
def test_a_release_too_large_for_text_is_not_saved_as_text(private, tmp_path, monkeypatch, suffix):
    released, path = private.dp.crosstab("region", "health", epsilon=1), tmp_path / f"r{suffix}"
    released.dp.save(path)
    same(pdprivacy.read_release(path), released)
    names = sorted(tmp_path.iterdir())
    largest = len(storage.write_json(released)) if "json" in suffix else len(storage.write_csv(released)[1])
    monkeypatch.setattr(storage, "MOST_TEXT", largest)
    same(saved(released, path), released)
    monkeypatch.setattr(storage, "MOST_TEXT", largest - 1)
    with pytest.raises(ParameterError, match=r"takes more than .* the limit\. Nothing was written\."):
        released.dp.save(path)
    refused(path, "holds more than")
    assert sorted(tmp_path.iterdir()) == names


# ------------------------------------------------------------------ what is not saved


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_changed_releases_and_other_objects_are_not_saved(private, survey, tmp_path, suffix):
    table = private.dp.crosstab("region", "health", epsilon=1)
    changed = table.copy()
    changed.iloc[0, 0] += 1
    for source, words in (
        (changed, "not those that were released, and are not saved as a release"),
        (table.assign(yes=table["no"]), "not those that were released"),
        (private.dp.quality(), "CONFIDENTIAL: it is no release, and is not saved"),
        (private.dp.risk_curve("region", "health", epsilon=[1]), "CONFIDENTIAL"),
        (private.dp.quality().iloc[:1], "CONFIDENTIAL"),
        (private.dp.plan.mean("age", epsilon=1, rows=100), "carries no release metadata"),
        (private.query("age > 30").dp.lineage, "carries no release metadata"),
        (table.dp.interval(), "carries no release metadata"),
        (survey, "carries no release metadata"),
        (survey["age"], "carries no release metadata"),
        (private, "carries no release metadata"),
    ):
        with pytest.raises(MetadataError, match=words) as caught:
            source.dp.save(tmp_path / f"r{suffix}")
        assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_paths_and_formats_are_checked(private, tmp_path):
    released = private.dp.mean("age", epsilon=1)
    for path, words in (
        ("mean.xlsx", r"must end in \.parquet.*\(got 'mean\.xlsx'\)"),
        ("mean", r"must end in \.parquet"),
        ("mean.parquet.gz", r"must end in \.parquet"),
        ("", "must be the path of a file"),
        (3, "must be the path of a file"),
        (None, "must be the path of a file"),
        (tmp_path / "no" / "mean.csv", r"'path' cannot be written: No such file or directory\. Nothing was"),
    ):
        with pytest.raises(ParameterError, match=words):
            released.dp.save(path)
    for kind in ("pickle", 3, ["csv"]):
        for call in (released.dp.save, pdprivacy.read_release):
            with pytest.raises(ParameterError, match="'format' must be one of"):
                call(tmp_path / "mean.csv", format=kind)
    (tmp_path / "mean.json").mkdir()
    with pytest.raises(ParameterError, match="'path' cannot be written"):
        released.dp.save(tmp_path / "mean.json")
    assert [path.name for path in tmp_path.iterdir()] == ["mean.json"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_is_whole_or_the_one_before(private, tmp_path, monkeypatch, suffix):
    first, second = (private.dp.mean("age", epsilon=1) for _ in range(2))
    path = tmp_path / f"r{suffix}"
    first.dp.save(path)
    names = sorted(tmp_path.iterdir())

    def fail(*_):
        raise OSError(28, "No space left on device")

    for function, after in (("replace", 0), ("fsync", 0), ("fsync", 1)):
        if after and "csv" not in suffix:
            continue
        with monkeypatch.context() as patched:
            works = iter([getattr(os, function)] * after)
            patched.setattr(os, function, lambda *args, works=works: next(works, fail)(*args))
            with pytest.raises(ParameterError, match=r"cannot be written: No space left on device"):
                second.dp.save(path)
        assert sorted(tmp_path.iterdir()) == names
        same(pdprivacy.read_release(path), first)


def test_two_files_of_which_one_was_replaced_are_told(private, tmp_path, monkeypatch):
    """The system fails between the two renames: what is there is not read as either release."""
    first, second = (private.dp.mean("age", epsilon=1) for _ in range(2))
    path = tmp_path / "r.csv"
    first.dp.save(path)
    replace, replaced = os.replace, []

    def once(*paths):
        if replaced:
            raise OSError(5, "Input/output error")
        replaced.append(replace(*paths))

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", once)
        with pytest.raises(ParameterError, match="Input/output error"):
            second.dp.save(path)
    refused(path)
    same(saved(second, path), second)


def test_without_arrow_text_is_saved_and_parquet_is_not(private, tmp_path, monkeypatch):
    released = private.dp.mean("age", epsilon=1)
    monkeypatch.setattr(pdprivacy.pipeline.storage, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'pip install "pdprivacy\[parquet\]"'):
        released.dp.save(tmp_path / "r.parquet")
    assert list(tmp_path.iterdir()) == []
    same(saved(released, tmp_path / "r.csv"), released)
    same(saved(released, tmp_path / "r.json"), released)


def test_labels_that_no_file_can_hold_are_refused(tmp_path):
    class Odd:
        pass

    for suffix in TEXTS:
        with pytest.raises(ParameterError, match="label of type Odd cannot be kept in a file"):
            made([1.0], pd.Index([Odd()])).dp.save(tmp_path / f"r{suffix}")
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ what pandas wrote


@pytest.mark.full(keep=8)
@pytest.mark.parametrize("name", RELEASES)
def test_a_pickle_of_pandas_is_the_release(private, tmp_path, name):
    released = RELEASES[name](private.dp)
    released.to_pickle(tmp_path / "r.pkl")
    same(pd.read_pickle(tmp_path / "r.pkl"), released)
    with pytest.raises(ParameterError, match=r"must end in \.parquet.*\nHint: .*pd\.read_pickle"):
        pdprivacy.read_release(tmp_path / "r.pkl")


LOST = {"table of four", "mode", "rows"}
"""Pandas cannot write them to Parquet, or reads other labels: truth values as labels of columns, levels of
columns, cells of several types."""


@PARQUET
@pytest.mark.full(keep=10)
@pytest.mark.parametrize("name", sorted({*RELEASES} - LOST))
def test_a_parquet_file_of_pandas_verifies(private, tmp_path, name):
    """A Series as a frame of one column, which the accessor and files take for the Series."""
    released = RELEASES[name](private.dp)
    path = tmp_path / "r.parquet"
    frame = released.to_frame() if isinstance(released, pd.Series) else released
    assert frame.dp.verify() is True
    frame.to_parquet(path)
    plain = pd.read_parquet(path)
    assert plain.dp.verify() is True
    back = pdprivacy.read_release(path)
    assert type(back) is type(released)
    assert back.dp.verify() is True
    assert back.attrs == released.attrs
    assert bits(back) == bits(released)
    if "below_best" not in released.attrs["dp"]["error"]:
        for other_ in (plain, back):
            np.testing.assert_array_equal(other_.dp.interval().to_numpy(), released.dp.interval().to_numpy())
    assert plain.dp.to_markdown().partition("\n")[2] == back.dp.to_markdown().partition("\n")[2]
    if plain.iloc[:, 0].dtype.kind in "if":
        plain.iloc[0, 0] += 1
        assert plain.dp.verify() is False
        plain.to_parquet(path)
        refused(path, "does not hold the numbers and labels that were released")


def test_the_schema_of_a_frame_that_was_a_series_is_that_of_the_series(private):
    released = private.dp.mean(["age", "family"], epsilon=1, bounding="clamp")
    frame = released.to_frame()
    schema = frame.dp.schema()
    assert schema.validate(frame.iloc[:, 0]).tolist() == released.tolist()
    assert [str(check) for check in schema.checks] == [str(check) for check in released.dp.schema().checks]


def test_a_frame_of_more_than_the_series_is_changed(private):
    released = private.dp.mean(["age", "family"], epsilon=1)
    frame = released.to_frame()
    assert frame.dp.verify() is True
    frame["again"] = frame.iloc[:, 0]
    assert frame.dp.verify() is False
    table = private.dp.crosstab("region", "health", epsilon=1)
    assert table[["yes"]].dp.verify() is False
    assert released.to_frame().rename(index={"age": "other"}).dp.verify() is False


def test_a_table_of_one_column_is_no_series(private):
    """A released frame keeps its column label: without that it is another release."""
    released = private.dp.groupby("region").mean(["age"], epsilon=1)
    assert released.dp.verify() is True
    if isinstance(released, pd.DataFrame):
        alone = released.iloc[:, 0]
        alone.attrs = released.attrs
        assert alone.dp.verify() is False
        assert released.rename(columns={"age": "other"}).dp.verify() is False


# ------------------------------------------------------------------ who reads files


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_report_reads_what_was_saved(private, tmp_path, suffix):
    pytest.importorskip("jinja2")
    for name in ("mean", "margins"):
        released = RELEASES[name](private.dp)
        path = tmp_path / f"{name}{suffix}"
        released.dp.save(path)
        of_file, of_object = (
            pdprivacy.report({"x": given_}, pictures=False).html for given_ in (path, released)
        )  # fmt: skip
        assert of_file.split("<main")[-1][:200] == of_object.split("<main")[-1][:200]
        assert released.attrs["dp"]["fingerprint"] in of_file
    if suffix == ".csv":
        path.write_text(path.read_text().replace("All", "Sum"))
        with pytest.raises(MetadataError):
            pdprivacy.report(path, pictures=False)


def test_a_file_of_a_step_and_a_saved_one_are_the_same(private):
    pytest.importorskip("pyarrow")
    released = private.dp.mean("age", epsilon=1)
    data, _ = pdprivacy.pipeline.storage.to_bytes(released)
    same(pdprivacy.pipeline.storage.from_bytes(data), released)


def test_a_file_without_a_digest_is_read(private):
    """As earlier versions wrote it."""
    released = private.dp.mean("age", epsilon=1)
    content = json.loads(storage.write_json(released))
    del content["dp_shape"]["digest"]
    same(storage.read_json(json.dumps(content).encode(), "The file"), released)


def test_no_path_reaches_an_error_as_a_cell(tmp_path):
    with pytest.raises(MetadataError, match=r"cannot be read: No such file or directory"):
        pdprivacy.read_release(Path(tmp_path) / "none.json")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_whole_numbers_beyond_doubles_beside_a_null_are_read_as_they_were(tmp_path, suffix):
    wide = pd.array([0, 2**53 + 1, 2**63 - 513, None], dtype="Int64")
    table = made([pd.Series(wide), pd.Series([True, False, True, False])], list("abcd"), ["x", "y"])
    same(saved(table, tmp_path / f"t{suffix}"), table)
