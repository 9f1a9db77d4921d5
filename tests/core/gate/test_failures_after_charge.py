"""A release that `protect` let pass succeeds whatever the cells are: a failure after the charge would tell.

Each engine is asked every way of reading a frame, of a frame with plain cells and of others with hard ones:
nulls, NaN, signed zeros, subnormal numbers, integers that no double holds, all-null and empty frames.
"""

from __future__ import annotations

import datetime as dt
import sys
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain, Ledger, errors
from pdprivacy.ledger.store import UNKNOWN
from tests.support.engine_frames import ON_NEWEST_PANDAS, frame_of

pa = pytest.importorskip("pyarrow", reason="the frames of these tests are made of Arrow tables")

ROWS = 12
NAN = float("nan")
DAYS = (dt.date(2024, 1, 1), dt.date(2024, 5, 1))
TIMES = (dt.datetime(2024, 1, 1), dt.datetime(2024, 5, 1, 12))


def domain(*, nullable: bool) -> Domain:
    return Domain(
        (
            Column("x", "float", nullable, lower=-3.0, upper=10.0, bins=(-3.0, 0.0, 4.0, 10.0)),
            Column("n", "integer", nullable, lower=1, upper=9),
            Column("w", "integer", nullable, lower=-(2**63), upper=2**63 - 1),
            Column("g", "category", nullable, categories=("b", "a")),
            Column("h", "boolean", nullable),
            Column("t", "category", nullable, categories=DAYS),
            Column("z", "category", nullable, categories=TIMES),
            Column("k", "category", nullable, categories=(1, 2)),
        )
    )


PLAIN: dict[str, list[Any]] = {
    "x": [1.0, 2.5, -1.0, 9.0] * 3,
    "n": [1, 2, 9] * 4,
    "w": [5, 7, 0] * 4,
    "g": ["a", "b"] * 6,
    "h": [True, False] * 6,
    "t": [*DAYS] * 6,
    "z": [*TIMES] * 6,
    "k": [1, 2] * 6,
    "who": [1, 2, 2, 3] * 3,
}
TYPES: dict[str, dict[str, Any]] = {
    "plain types": {
        "x": pa.float64(),
        "n": pa.int64(),
        "w": pa.int64(),
        "g": pa.string(),
        "h": pa.bool_(),
        "t": pa.date32(),
        "z": pa.timestamp("us"),
        "k": pa.int64(),
        "who": pa.int64(),
    }
}
TYPES["narrow types, dictionaries"] = {
    **TYPES["plain types"],
    "x": pa.float32(),
    "n": pa.int8(),
    "w": pa.uint64(),
    "g": pa.dictionary(pa.int32(), pa.string()),
    "z": pa.timestamp("ns"),
    "k": pa.float64(),
    "who": pa.bool_(),
}
TYPES["decimals, numbers as floats"] = {
    **TYPES["plain types"],
    "x": pa.decimal128(12, 2),
    "n": pa.float64(),
    "g": pa.large_string(),
    "k": pa.decimal128(9, 1),
    "who": pa.float64(),
}


def hard_cells(name: str, kind: Any) -> list[Any]:
    """Cells that meet a declaration with nulls, for each of which an engine has arithmetic of its own."""
    if name == "who":
        return {"double": [-0.0, 0.0, 5e-324], "int64": [2**53 + 1, -(2**63)], "bool": [True]}[str(kind)]
    cells: list[Any] = [None]
    if kind in (pa.float64(), pa.float32()):
        cells += [NAN]
        cells += [-0.0, 6e-39] if name == "x" else []
    if name == "w" and kind == pa.int64():
        cells += [2**53 + 1, 2**63 - 1, -(2**63)]
    if name == "w" and kind == pa.uint64():
        cells += [2**53 + 1, 2**63 - 1]
    return cells


def table(types: str, cells: Callable[[str, Any], list[Any]]) -> Any:
    columns = {}
    for name, kind in TYPES[types].items():
        values = [Decimal(str(cell)) for cell in PLAIN[name]] if "decimal" in str(kind) else PLAIN[name]
        values = [cell > 1 for cell in values] if name == "who" and kind == pa.bool_() else values
        hard = cells(name, kind)
        values = [*hard, *values[len(hard) :]] if hard else values
        encoded = "dictionary" in str(kind)
        array = pa.array(values, pa.string() if encoded else kind)
        columns[name] = array.dictionary_encode() if encoded else array
    return pa.table(columns)


def all_null(name: str, kind: Any) -> list[Any]:
    return [] if name == "who" else [None] * ROWS


FRAMES: dict[str, Callable[[str], Any]] = {
    "plain cells": lambda types: table(types, lambda *_: []),
    "hard cells": lambda types: table(types, hard_cells),
    "all null": lambda types: table(types, all_null),
    "half null": lambda types: table(types, lambda name, kind: all_null(name, kind)[: ROWS // 2]),
    "empty": lambda types: table(types, lambda name, kind: []).slice(0, 0),
    "one record": lambda types: table(types, hard_cells).slice(0, 1),
}


def release(name: str, *args: Any, **words: Any) -> Callable[[Any], Any]:
    return lambda dp: getattr(dp, name)(*args, **{"epsilon": 1, **words})


RELEASES: dict[str, Callable[[Any], Any]] = {
    "count": release("count"),
    "present": release("count", ["x", "h", "g"]),
    "sum": release("sum", ["x", "n", "w", "h"]),
    "mean": release("mean", "h"),
    "corr": release("corr", ["x", "n", "h"]),
    "histogram": release("histogram", "x", bins=5),
    "histogram of integers": release("histogram", "w", bins=[-(2.0**63), 0, 10, 2.0**62, 2.0**63]),
    "crosstab": release("crosstab", ["g", "h", "t"], "z"),
    "tables of one column": lambda dp: [dp.value_counts(name, epsilon=1) for name in ("g", "h", "k")],
    "crosstab of numbers": release("crosstab", ["x", "n"], "k"),
    "groupby": lambda dp: dp.groupby(["g", "k", "h"]).mean(["x", "w"], epsilon=1),
    "quantile": release("quantile", "x", [0.1, 0.5]),
    "median": release("median", ["n", "w", "h"]),
    "mode": release("mode", ["t", "z"]),
    "proportion": release("proportion", "k", 1),
    "partition": lambda dp: [part.dp.mean("x", epsilon=1) for part in dp.partition("g", epsilon=1).values()],
    "plan": lambda dp: dp.plan_releases(
        [("mean", "x", {"epsilon": 0.1}), ("crosstab", "h", {"columns": "k", "epsilon": 0.1})], delta=1e-6
    ).release(),
}


NUMBERS = ("float", "integer", "boolean")


def stepped(step: Callable[[Any], Any], *, together: bool = False) -> Callable[[Any], Any]:
    """Read all that is left: the rows, the numbers, and the labels in one table.

    A table of several columns reads each as a table of it alone does, which `RELEASES` has for each.
    ``together``: in one query.
    """

    def run(dp: Any) -> None:
        after = step(dp).dp
        left = {name for name in ("x", "n", "h", "g", "v") if name in after.domain}
        numbers = [name for name in ("x", "n", "v") if name in left and after.domain[name].kind in NUMBERS]
        labels = [
            name for name in ("h", "g", "v") if name in left and after.domain[name].categories is not None
        ]
        with after.batch() if together else nullcontext(after) as reader:
            reader.count(epsilon=1)
            if numbers:
                reader.sum(numbers, epsilon=1)
            if labels:
                reader.value_counts(labels, epsilon=1)

    return run


STEPS: dict[str, Callable[[Any], Any]] = {
    "query": lambda dp: dp.query("x > 1.5 or n >= 3 and g == 'a'"),
    "query of nulls": lambda dp: dp.query("not h or x.isna() or w > 3 or k in [1, 2]"),
    "clip": lambda dp: dp.clip(lower={"x": 0, "n": 2}),
    "assign": lambda dp: dp.assign(v="x * 2 + n"),
    "assign a copy": lambda dp: dp.assign(v="h", x="w * 1.0"),
    "assign divisions": lambda dp: dp.assign(x="x / n", n="n % 3 + 1", v="w // 2"),
    "assign powers": lambda dp: dp.assign(x="abs(x) ** 2", v="x > 1"),
    "cut": lambda dp: dp.cut("x", [-3, 0, 5, 10]).dp.select(["x", "g", "h"]),
    "recode": lambda dp: dp.recode("g", {"a": None, "b": "c"}),
    "recode truth values": lambda dp: dp.recode("h", {True: "yes", False: "no"}),
    "recode numbers": lambda dp: dp.recode("k", {1: 2}),
    "fillna": lambda dp: dp.fillna({"x": 1.5, "n": 5, "g": "a", "h": True}),
    "fillna of numbers": lambda dp: dp.fillna({"x": 0, "w": 0, "k": 1}),
    "dropna": lambda dp: dp.dropna(["x", "t", "g"], how="all"),
}
EVERYTHING = {**RELEASES, **{name: stepped(step) for name, step in STEPS.items()}}
TOGETHER = {**RELEASES, **{name: stepped(step, together=True) for name, step in STEPS.items()}}
"""For engines that take long for a query: a batch asks for all that its releases ask for one by one."""


def outcomes(engine: str, frame: Any, *, nullable: bool, unit: bool, releases: Any) -> dict[str, str] | None:
    """The outcome of each release; None where `protect` refuses the frame."""
    words: dict[str, Any] = {"unit": "who", "max_rows": 2} if unit else {}
    if not nullable:
        words["on_invalid"] = "drop"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.DeclarationWarning)
        try:
            private = pdprivacy.protect(
                frame_of(engine, frame), domain(nullable=nullable), epsilon=10**9, delta=0.5, **words
            )
        except errors.PrivacyError:
            return None
    results = {}
    every = TOGETHER if engine in ("DuckDB", "Dask") else EVERYTHING
    for name in releases:
        try:
            every[name](private.dp)
        except errors.PrivacyError as error:
            results[name] = f"{type(error).__name__}: {error}"
        else:
            results[name] = "answered"
    return results


FEW = ("mean", "groupby", "assign a copy")
SHORT = [
    (engine, name) for engine in ("pandas of Arrow", "lazy Polars", "DuckDB", "PyArrow") for name in FRAMES
][::2]
LONG = [
    (engine, types, name, nullable, (row + position + nullable) % 2 == 0)
    for row, engine in enumerate(("pandas of Arrow", "Polars", "lazy Polars", "DuckDB", "Dask", "PyArrow"))
    for turn, types in enumerate(TYPES)
    for position, name in enumerate(FRAMES)
    for nullable in (True, False)
    if engine != "Dask" or (position + turn + nullable) % len(TYPES) == 0  # it takes twenty times as long
]


@pytest.mark.full(keep=5)
@pytest.mark.parametrize(("engine", "name"), SHORT)
def test_hard_cells_are_answered(engine, name):
    frame = FRAMES[name]("plain types")
    results = outcomes(engine, frame, nullable=True, unit=True, releases=FEW)
    assert results == dict.fromkeys(FEW, "answered")


def test_dask_answers_of_a_truth_value_that_is_missing():
    """Its records are chosen by hashes of all their cells, also where Arrow holds a truth value and none."""
    frame = FRAMES["half null"]("plain types")
    results = outcomes("Dask", frame, nullable=True, unit=True, releases=["count"])
    assert results == {"count": "answered"}


@pytest.mark.full
@ON_NEWEST_PANDAS
@pytest.mark.parametrize(("engine", "types", "name", "nullable", "unit"), LONG)
def test_every_release_of_plain_cells_is_made_of_hard_ones(engine, types, name, nullable, unit):
    results = outcomes(engine, FRAMES[name](types), nullable=nullable, unit=unit, releases=EVERYTHING)
    # hard cells may be refused with the frame, plain ones never
    assert results == dict.fromkeys(EVERYTHING, "answered") or (results is None and name != "plain cells")


@pytest.mark.parametrize("ledger", [False, True])
def test_an_error_after_a_charge_names_the_charge(tmp_path, ledger):
    polars = pytest.importorskip("polars", reason="the frame fails when it is read")
    failing = []

    def read(batch):
        if failing:
            raise RuntimeError("the disk is gone")
        return batch

    frame = polars.LazyFrame({"n": [1, 2], "g": ["a", "b"]}).map_batches(read)
    options = {"budget": Ledger(tmp_path / "budgets.ledger"), "name": "survey"} if ledger else {}
    private = pdprivacy.protect(
        frame,
        Domain((Column("n", "integer", lower=0, upper=9), Column("g", "category", categories=("a", "b")))),
        epsilon=10,
        **options,
    )
    planned = private.dp.plan_releases([("mean", "n", {"epsilon": 1})])
    failing.append(True)
    releases = [
        lambda: private.dp.mean("n", epsilon=1),
        lambda: private.dp.groupby("g").sum("n", epsilon=1),
        lambda: private.dp.mode("g", epsilon=1),
        lambda: private.dp.median("n", epsilon=1),
        planned.release,
    ]
    for number, make in enumerate(releases, 1):
        with pytest.raises(errors.EngineError) as caught:
            make()
        charge = f"Charge {number} of the budget 'survey'" if ledger else f"Charge {number}"
        assert caught.value.__notes__ == [f"{charge} is entered, but its answer was not handed out."]
        assert private.dp.budget.spent == (number, 0)
    with pytest.raises(errors.BudgetExceeded) as caught:
        private.dp.mean("n", epsilon=100)
    assert not hasattr(caught.value, "__notes__")


def test_an_interrupt_within_a_charge_says_that_its_fate_is_not_known(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "budgets.ledger")
    budget = ledger.open("survey", pdprivacy.Pure(1))

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(ledger.chain.store), "write", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        budget.charge(pdprivacy.Pure("0.1"), "count")
    assert caught.value.__notes__ == [
        "It is unknown whether the charge is entered: look at the entries of the budget."
    ]


def test_a_release_that_was_answered_within_another_is_not_told_of():
    frame = pd.DataFrame({"n": [1, 2]})
    domain = Domain((Column("n", "integer", lower=0, upper=9),))
    private, other = (frame.dp.protect(domain, epsilon=1) for _ in range(2))

    class Shares(list):
        def __iter__(self):
            other.dp.count(epsilon="0.1")
            return iter([0.5, 2.0])

    with pytest.raises(errors.ParameterError) as caught:
        private.dp.quantile("n", Shares([0.5, 2.0]), epsilon="0.1")
    assert not hasattr(caught.value, "__notes__")


PLACES = tuple(f"pdprivacy/ledger/{name}.py" for name in ("book", "budget", "store", "sqlite"))
PLACES += ("pdprivacy/core/gate/execute.py",)


@pytest.mark.parametrize("ledger", [False, True])
def test_an_error_and_the_entries_agree_on_the_answer_wherever_an_interrupt_comes(tmp_path, ledger):
    """An interrupt that comes while the answer is noted may come before the note, or after it."""
    frame, domain = pd.DataFrame({"n": [1, 2]}), Domain((Column("n", "integer", lower=0, upper=9),))
    options = {"budget": Ledger(tmp_path / "budgets.ledger"), "name": "survey"} if ledger else {}
    private = frame.dp.protect(domain, epsilon=100, **options)

    def released(at: int | None = None) -> int:
        """Release a count, interrupted at a call of a function; return the number of calls."""
        calls = 0

        def call(frame, *_):
            nonlocal calls
            calls += frame.f_code.co_filename.endswith(PLACES)
            if calls == at:
                sys.settrace(None)
                raise KeyboardInterrupt

        sys.settrace(call)
        try:
            private.dp.count(epsilon=0.125)
        finally:
            sys.settrace(None)
        return calls

    released()
    calls = released()
    known, charged = set(), 2
    # the answer is noted near the end
    for at in sorted({*range(1, calls, 7 if ledger else 3), *range(max(1, calls - 60), calls, 2)}):
        with pytest.raises(KeyboardInterrupt) as caught:
            released(at)
        entries, notes = private.dp.budget.entries, "; ".join(getattr(caught.value, "__notes__", []))
        entered = len(entries) - charged
        charged = len(entries)
        answered = bool(entered and entries["answered"].iloc[-1])
        known.add((answered, notes.partition("its answer ")[2]))
        assert answered <= ("was not handed out" not in notes)
        assert entered or "is entered, but" not in notes
        assert answered or not entered or notes
    assert (ledger, "may not have been handed out.") in known


def test_an_answer_of_which_it_is_not_known_whether_it_was_noted_may_not_have_been_handed_out(tmp_path):
    ledger = Ledger(tmp_path / "budgets.ledger")
    budget = ledger.open("survey", pdprivacy.Pure(1))
    number = budget.charge(pdprivacy.Pure("0.1"), "count", release_id="a").number
    store = type(ledger.chain.store)

    def lost(self, work, *, create=True):
        written(self, work, create=create)
        raise errors.LedgerError("The connection was lost.", fate=UNKNOWN)

    written = store.write
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "write", lost)
        with pytest.raises(errors.LedgerError, match="its answer may not have been handed out"):
            budget.answered(number)
        with pytest.raises(errors.LedgerError, match="its answer may not have been stored"):
            budget.store_answer("a", b"17", {"count": "n"})
    assert budget.entries["answered"].tolist() == [True]
    assert budget.stored_answer("a", {"count": "n"}) == b"17"
