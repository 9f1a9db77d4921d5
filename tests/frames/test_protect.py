"""Protected frames: no later change of any frame reaches a release, and the charge comes before the read."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

from pdprivacy import Budget, Column, Domain, releases
from pdprivacy.core.engines import PandasEngine
from pdprivacy.core.gate.execute import execute
from pdprivacy.errors import (
    BudgetError,
    BudgetExceeded,
    DeclarationWarning,
    InvalidDataError,
    InvalidDataWarning,
    NotProtectedError,
    ParameterError,
)
from pdprivacy.frames import find
from tests.support.engine_frames import sum_of
from tests.support.released import numbers, released
from tests.support.snapshots import records_of

PANDAS_2 = pd.__version__.startswith("2.")


# ------------------------------------------------------------------ an opaque frame


def test_the_original_is_left_as_it_was_and_unprotected(survey, schema):
    before = survey.copy(deep=True)
    survey.attrs["source"] = "field work"
    survey.dp.protect(schema, epsilon=1)
    pd.testing.assert_frame_equal(survey, before)
    assert survey.attrs == {"source": "field work"}
    with pytest.raises(NotProtectedError):
        survey.dp.mean("age", epsilon=0.1)


def test_two_protections_are_two_frames(survey, schema):
    first, second = survey.dp.protect(schema, epsilon=1), survey.dp.protect(schema, epsilon=2)
    first.dp.mean("age", epsilon=0.5)
    assert (first.dp.budget.left, second.dp.budget.left) == ((0.5, 0.0), (2.0, 0.0))
    assert first is not second


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("index", [[7] * 40, list("ab") * 20, pd.date_range("2020", periods=40)])
def test_any_index_will_do(survey, schema, index):
    plain = survey.dp.protect(schema, epsilon=100)
    assert released(survey.set_axis(index).dp.protect(schema, epsilon=100)) == released(plain)


def test_other_columns_may_be_called_anything(survey, schema):
    odd = survey.assign(dp=1)
    odd[3] = 1
    odd[None] = 1
    odd[("a", 1)] = 1
    private = odd.dp.protect(schema, epsilon=100)
    assert released(private) == released(survey.dp.protect(schema, epsilon=100))


@pytest.mark.parametrize("name", [3, ("a", 1), "dp", 2.5, pd.Timestamp("2020"), "a b", ""])
def test_a_declared_column_may_be_called_anything(name):
    domain = Domain((Column(name, "integer", lower=0, upper=9), Column("other", "float", lower=0, upper=1)))
    frame = pd.DataFrame([[4, 0.25], [5, 0.5]])
    frame.columns = pd.Index([name, "other"], tupleize_cols=False)
    private = frame.dp.protect(domain, epsilon=10**6)
    assert private.dp.mean([name], epsilon=10**4, rng=1).tolist() == pytest.approx([4.5], abs=0.1)
    assert private.dp.value_counts([name], epsilon=100, sort=False, rng=1).tolist()[4:6] == [1, 1]
    assert private.dp.cov([name, "other"], epsilon=10**4, rng=1).shape == (2, 2)
    chosen = private[(private[name] >= 5) & (private["other"] > 0.25)]
    assert chosen.dp.domain[name].lower == 5
    assert chosen.dp.count(epsilon=10**4, rng=1).tolist() == [1]
    doubled = private.assign(doubled=2 * private[name])
    assert doubled.dp.domain["doubled"].upper == 18


def test_columns_of_several_levels_are_named_by_tuples():
    frame = pd.DataFrame({("a", "x"): [1, 2], ("a", "y"): [3, 4]})
    domain = Domain((Column(("a", "x"), "integer", lower=0, upper=9),))
    assert frame.columns.nlevels == 2
    private = frame.dp.protect(domain, epsilon=10**6)
    assert private.dp.mean([("a", "x")], epsilon=10**5, rng=1).tolist() == pytest.approx([1.5], abs=0.01)
    with pytest.raises(InvalidDataError, match="'a'"):
        frame.dp.protect(Domain((Column("a", "integer", lower=0, upper=9),)), epsilon=1)


@pytest.mark.parametrize("frame", [pd.DataFrame({"age": [30]}), pd.DataFrame(), pd.DataFrame({"dp": [1]})])
def test_a_raw_frame_is_told_to_protect(frame):
    for use in (
        lambda: frame.dp.mean("age", epsilon=0.1),
        lambda: frame.dp.groupby("age"),
        lambda: frame.dp.domain,
        lambda: frame.dp.dr_ha("age", "age", 1),
    ):
        with pytest.raises(NotProtectedError, match="not protected") as caught:
            use()
        assert "df.dp.protect(schema, epsilon=" in caught.value.hint


# ------------------------------------------------------------------ changed in place


def _write(array, value) -> None:
    array.setflags(write=True)
    array[0] = value


CHANGES = {
    "column": lambda f: f.__setitem__("age", 33),
    "column from array": lambda f: f.__setitem__("age", f["age"].to_numpy()[::-1].copy()),
    "column of other rows": lambda f: f.__setitem__("income", f["income"].shift(1)),
    "attribute": lambda f: setattr(f, "age", 33),
    "loc": lambda f: f.loc.__setitem__((0, "age"), 33),
    "loc of rows": lambda f: f.loc.__setitem__((f["age"] > 30, "age"), 33),
    "loc of all rows": lambda f: f.loc.__setitem__((slice(None), "age"), 33),
    "iloc": lambda f: f.iloc.__setitem__((0, 0), 33),
    "iloc of a column": lambda f: f.iloc.__setitem__((slice(None), 0), 33),
    "at": lambda f: f.at.__setitem__((0, "age"), 33),
    "iat": lambda f: f.iat.__setitem__((0, 0), 33),
    "at of text": lambda f: f.at.__setitem__((0, "region"), "west"),
    "isetitem": lambda f: f.isetitem(0, 33),
    "boolean frame": lambda f: f.__setitem__(f[["age"]] > 30, 33),
    "new row": lambda f: f.loc.__setitem__(99, f.iloc[0]),
    "new column": lambda f: f.__setitem__("extra", 1),
    "insert": lambda f: f.insert(0, "extra", 1),
    "drop a column": lambda f: f.drop(columns="town", inplace=True),
    "drop a row": lambda f: f.drop(index=0, inplace=True),
    "dropna": lambda f: f.dropna(inplace=True),
    "drop_duplicates": lambda f: f.drop_duplicates("region", inplace=True),
    "pop": lambda f: f.pop("age"),
    "del": lambda f: f.__delitem__("town"),
    "columns": lambda f: setattr(f, "columns", ["family", "region", "health", "age", *f.columns[4:]]),
    "set_axis by name": lambda f: f.rename_axis(columns={}, inplace=True) or f.pop("town"),
    "sort_values": lambda f: f.sort_values("income", inplace=True),
    "sort_index": lambda f: f.sort_index(ascending=False, inplace=True),
    "sort columns": lambda f: f.sort_index(axis=1, inplace=True),
    "set_index": lambda f: f.set_index("age", inplace=True),
    "reset_index": lambda f: f.reset_index(inplace=True),
    "fillna": lambda f: f.fillna({"income": 3.0}, inplace=True),
    "ffill": lambda f: f.bfill(inplace=True),
    "interpolate": lambda f: f[["income"]].interpolate(inplace=True) or f.__setitem__("income", 1.0),
    "replace": lambda f: f.replace({"health": {"yes": "no"}}, inplace=True),
    "mask": lambda f: f.mask(f["income"] > 300, f.iloc[::-1].set_axis(f.index), inplace=True),
    "where": lambda f: f.where(f["income"] > 300, f.iloc[::-1].set_axis(f.index), inplace=True),
    "clip": lambda f: f.__setitem__("age", f["age"].clip(30, 40)),
    "update": lambda f: f.update(pd.DataFrame({"age": [33] * 40})),
    "eval": lambda f: f.eval("age = age + 1", inplace=True),
    "query": lambda f: f.query("age > 30", inplace=True),
    "augmented": lambda f: f.__setitem__("age", f["age"].__iadd__(1)),
    "augmented frame": lambda f: f.__iadd__(f[["age", "family"]] * 0 + 1),
    "dtype": lambda f: f.__setitem__("age", f["age"].astype("int32")),
    "categories": lambda f: f.__setitem__("region", f["region"].astype("category")),
}
# Through memory that pandas hands out: pandas may refuse, or forget to look.
WRITES = {
    "values": lambda f: f["age"].values.__setitem__(0, 33),
    "to_numpy": lambda f: f["age"].to_numpy().__setitem__(0, 33),
    "asarray": lambda f: np.asarray(f["income"]).__setitem__(0, 33.0),
    "array": lambda f: f["age"].array.__setitem__(0, 33),
    "array of floats": lambda f: f["income"].array.__setitem__(1, 33.0),
    "array of text": lambda f: f["region"].array.__setitem__(0, "west"),
    "frame values": lambda f: f[["age"]].values.__setitem__((0, 0), 33),
    "writable": lambda f: _write(f["age"].to_numpy(), 33),
    "writable floats": lambda f: _write(f["income"].to_numpy(), 33.0),
    "chained": lambda f: f["age"].__setitem__(0, 33),
    "chained inplace": lambda f: f["income"].fillna(0, inplace=True),
    "series": lambda f: f["age"].iloc.__setitem__(0, 33),
    "view": lambda f: f.iloc[:].iloc.__setitem__((0, 0), 33),
    "shallow copy": lambda f: f.copy(deep=False).iloc.__setitem__((0, 0), 33),
    "buffer": lambda f: memoryview(f["age"].to_numpy()).__setitem__(0, 33),
}


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("change", {**CHANGES, **WRITES}.values(), ids={**CHANGES, **WRITES})
def test_a_protected_frame_cannot_be_changed(private, change, quietly):
    before = released(private)
    assert quietly(lambda: change(private)) is not None
    assert released(private) == before


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    ("change", "schemed"),
    # what writes to memory is tried on both, what pandas changes on either in turn
    [
        pytest.param(change, schemed, id=f"{name}-{'schema' if schemed else 'domain'}")
        for position, (name, change) in enumerate({**CHANGES, **WRITES}.items())
        for schemed in (True, False)
        if name in WRITES or schemed == (position % 2 == 0)
    ],
)
def test_no_change_of_the_original_reaches_a_release(survey, schema, change, schemed, writing, quietly):
    from pdprivacy import read_schema

    private = survey.dp.protect(schema if schemed else read_schema(schema), epsilon=100)
    before = released(private)
    quietly(lambda: change(survey))
    assert released(private) == before


@pytest.mark.parametrize("way", ["DataFrame", "dict", "Series"])
def test_no_change_of_an_array_beneath_the_frame_reaches_a_release(way, writing):
    cells = np.arange(10.0)
    frame = {
        "DataFrame": lambda: pd.DataFrame(cells.reshape(-1, 1), columns=["x"], copy=False),
        "dict": lambda: pd.DataFrame({"x": cells}, copy=False),
        "Series": lambda: pd.Series(cells, name="x", copy=False).to_frame(),
    }[way]()
    private = frame.dp.protect(Domain((Column("x", "float", lower=-1, upper=10),)), epsilon=100)
    stands = find(private)
    before = execute(releases.mean(stands, "x", epsilon=0.1, rng=1)).tolist()
    cells[:] = 10.0
    assert execute(releases.mean(stands, "x", epsilon=0.1, rng=1)).tolist() == before


KINDS = {
    "int8": (["int8"], [3, 4, 5], 6),
    "uint64": (["uint64"], [3, 4, 5], 6),
    "float32": (["float32"], [3.0, np.nan, 5.0], 6.0),
    "Int64": (["Int64"], [3, None, 5], 6),
    "Float64": (["Float64"], [3, None, 5], 6),
    "int64[pyarrow]": (["int64[pyarrow]"], [3, None, 5], 6),
    "double[pyarrow]": (["double[pyarrow]"], [3, None, 5], 6),
    "Sparse": ([pd.SparseDtype("float64")], [3.0, np.nan, 5.0], 6.0),
    "object numbers": (["object"], [3, None, Decimal("5")], 6),
    "object NA": (["object"], [3, pd.NA, 5], 6),
    "object NaN": (["object"], [3, float("nan"), 5], 6),
    "object text": (["object"], ["a", None, "b"], "b"),
    "str": (["str", "object"], ["a", None, "b"], "b"),
    "string": (["string"], ["a", None, "b"], "b"),
    "string[python]": (["string[python]"], ["a", None, "b"], "b"),
    "string[pyarrow]": (["string[pyarrow]"], ["a", None, "b"], "b"),
    "category": (["category"], ["a", None, "b"], "b"),
    "ordered category": ([pd.CategoricalDtype(["b", "a"], ordered=True)], ["a", None, "b"], "b"),
    "bool": (["bool"], [True, False, True], False),
    "boolean": (["boolean"], [True, None, True], False),
    "bool[pyarrow]": (["bool[pyarrow]"], [True, None, True], False),
    "object bool": (["object"], [True, None, True], False),
    "datetime": (["datetime64[ns]"], ["2020-01-01", None, "2020-01-02"], pd.Timestamp("2020-01-02")),
    "zoned": (
        ["datetime64[ns, UTC]"],
        ["2020-01-01", None, "2020-01-02"],
        pd.Timestamp("2020-01-02", tz="UTC"),
    ),
    "period": (["period[D]"], ["2020-01-01", None, "2020-01-02"], pd.Period("2020-01-02", "D")),
    "timedelta": (["timedelta64[ns]"], ["1D", None, "2D"], pd.Timedelta("2D")),
    "interval": (["interval"], [pd.Interval(0, 1), None, pd.Interval(1, 2)], pd.Interval(1, 2)),
}


def _of_kind(kind: str) -> tuple[pd.DataFrame, Domain, object]:
    (dtype, *_), cells, other = KINDS[kind]
    if "pyarrow" in str(dtype):
        pytest.importorskip("pyarrow")
    values = pd.Series(pd.array(cells, dtype=dtype)) if dtype != "object" else pd.Series(cells, dtype=object)
    if isinstance(cells[0], bool):
        column = Column("x", "boolean", nullable=True)
    elif isinstance(cells[0], int | float):
        column = Column("x", "float", nullable=True, lower=-9, upper=9)
    else:
        labels = tuple(dict.fromkeys([*values.dropna().tolist(), other]))
        column = Column("x", "category", nullable=True, categories=labels)
    frame = pd.DataFrame({"x": values, "y": [1, 2, 3]})
    return frame, Domain((column, Column("y", "integer", lower=0, upper=9))), other


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("kind", KINDS)
def test_no_change_of_a_column_of_any_kind_reaches_a_release(kind, writing, quietly):
    frame, domain, other = _of_kind(kind)
    make = (domain["x"].kind != "category" and "mean") or "value_counts"

    def number(protected):
        if make == "mean":
            return execute(releases.mean(protected, "x", epsilon=0.1, rng=1)).tolist()
        return execute(releases.value_counts(protected, "x", epsilon=0.1, sort=False, rng=1)).tolist()

    changes = (
        lambda f: f.iloc.__setitem__((0, 0), other),
        lambda f: f.at.__setitem__((0, "x"), other),
        lambda f: f.loc.__setitem__(([0, 1], "x"), other),
        lambda f: f.__setitem__("x", f["x"].iloc[::-1].set_axis(f.index)),
        lambda f: f["x"].array.__setitem__(0, other),
        lambda f: f.fillna({"x": other}, inplace=True),
    )
    for change in changes:
        original = frame.copy(deep=True)
        protected = find(original.dp.protect(domain, epsilon=100))
        before = number(protected)
        quietly(lambda change=change, original=original: change(original))
        assert number(protected) == before


@pytest.mark.skipif(not PANDAS_2, reason="pandas 3 has one way to write")
@pytest.mark.parametrize(("before", "after"), [(True, False), (False, True)])
def test_switching_the_way_to_write_opens_no_door(survey, schema, before, after, quietly):
    with pd.option_context("mode.copy_on_write", before):
        private = survey.dp.protect(schema, epsilon=100)
        stands = find(private)
        expected = numbers(stands)
    with pd.option_context("mode.copy_on_write", after):
        assert released(private) == expected
        survey.iloc[0, 0] = 33
        assert numbers(stands) == expected


# ------------------------------------------------------------------ budgets


def test_two_protections_share_one_budget(survey, schema):
    budget = Budget(1)
    first = survey.dp.protect(schema, budget=budget)
    second = survey.head(20).dp.protect(schema, budget=budget)
    assert first.dp.budget is second.dp.budget is budget
    first.dp.mean("age", epsilon=0.75)
    with pytest.raises(BudgetExceeded, match=r"0\.25"):
        second.dp.mean("age", epsilon=0.5)
    second.dp.mean("age", epsilon=0.25)
    assert budget.left == (0.0, 0.0)
    assert budget.entries["release"].tolist() == ["mean of age"] * 2


def test_a_protected_frame_is_not_protected_again(private, schema):
    frames = (private, private.query("age > 30"), private.copy())
    for options in ({"epsilon": 1}, {"budget": Budget(100, 1e-3)}, {"budget": private.dp.budget}):
        for frame in frames:
            with pytest.raises(ParameterError, match="protected already") as caught:
                frame.dp.protect(schema, **options)
            assert "budget=private.dp.budget" in caught.value.hint
    assert len(private.dp.budget.entries) == 0


def test_the_raw_frame_may_be_protected_again_with_the_same_budget(survey, private, schema):
    repeated = survey.dp.protect(schema, budget=private.dp.budget)
    repeated.dp.mean("age", epsilon=1)
    assert private.dp.budget.spent == (1.0, 0.0)


def test_one_budget_counts_one_kind_of_neighbours(survey, schema):
    budget = Budget(1)
    survey.dp.protect(schema, budget=budget)
    with pytest.raises(BudgetError, match="add_remove") as caught:
        survey.dp.protect(schema, budget=budget, neighbors="replace_one")
    assert "neighbors=" in caught.value.hint
    assert budget.left == (1.0, 0.0)


def test_a_protection_that_fails_does_not_bind_the_budget(survey, schema):
    budget = Budget(1)
    with pytest.raises(InvalidDataError):
        survey.assign(age=5).dp.protect(schema, budget=budget, neighbors="replace_one")
    survey.dp.protect(schema, budget=budget, neighbors="add_remove")
    assert budget.unit.neighbors == "add_remove"


def test_a_total_given_twice_must_be_the_same(survey, schema):
    assert survey.dp.protect(schema, epsilon=1, budget=Budget("1.0")).dp.budget.left == (1.0, 0.0)
    for options in ({"epsilon": 2}, {"epsilon": 1, "delta": 1e-6}, {"delta": 1e-6}):
        with pytest.raises(ParameterError, match="'budget'"):
            survey.dp.protect(schema, budget=Budget(1), **options)


def test_a_declared_bound_that_is_the_datas_own_is_warned_about(survey):
    schema = pa.DataFrameSchema(
        {"age": pa.Column(int, pa.Check.in_range(20, 90), metadata={"dp": {}}), "family": pa.Column(int)}
    )
    with pytest.warns(DeclarationWarning, match="'age'") as caught:
        survey.dp.protect(schema, epsilon=1)
    assert len(caught) == 1
    assert caught[0].filename == __file__  # it points at the call
    assert "family" not in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        survey.assign(age=survey["age"] + 1).dp.protect(schema, epsilon=1)


def test_bounds_that_are_confirmed_as_public_are_not_warned_about(survey):
    declared = pa.Column(int, pa.Check.in_range(20, 90), metadata={"dp": {"bounds": "public"}})
    column = Column("age", "integer", lower=20, upper=90, public_bounds=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        private = survey.dp.protect(pa.DataFrameSchema({"age": declared}), epsilon=1)
        survey.dp.protect(Domain((column,)), epsilon=1)
    assert private.dp.domain["age"].bounds("mean") == (20.0, 90.0)
    plain = Domain((Column("age", "integer", lower=20, upper=90),))
    assert private.dp.domain.fingerprint() == plain.fingerprint()
    family = Column("family", "integer", lower=1, upper=int(survey["family"].max()))
    with pytest.warns(DeclarationWarning, match="'family'") as caught:
        survey.dp.protect(Domain((column, family)), epsilon=1)
    assert "'age'" not in str(caught[0].message)


CLEAN = pd.DataFrame({"age": [31, 54, 27], "pay": [1.0, 2.0, 3.0]})
MESSY = pd.DataFrame({"age": [31, 999, -5], "pay": [1.0, -2.0, math.inf]})


@pytest.mark.parametrize("on_invalid", ["clip", "drop"])
def test_the_warning_of_what_is_left_out_is_the_same_whatever_the_data_is(on_invalid):
    texts = set()
    for frame in (CLEAN, MESSY, CLEAN[:0]):
        with pytest.warns(InvalidDataWarning) as caught:
            frame.dp.protect(DOMAIN, epsilon=1, on_invalid=on_invalid)
        (issued,) = (warning for warning in caught if warning.category is InvalidDataWarning)
        assert issued.filename == __file__
        texts.add(str(issued.message))
    with (
        pytest.warns(InvalidDataWarning) as caught,
        pytest.raises(InvalidDataError),
    ):  # the same before a refusal
        CLEAN.astype(str).dp.protect(DOMAIN, epsilon=1, on_invalid=on_invalid)
    texts.add(str(caught[0].message))
    (text,) = texts
    assert f'on_invalid="{on_invalid}"' in text
    assert "private.dp.quality()" in text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", InvalidDataWarning)
        CLEAN.dp.protect(DOMAIN, epsilon=1, on_invalid=on_invalid)
        CLEAN.dp.protect(DOMAIN, epsilon=1)  # which gives none


def test_a_refusal_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ParameterError, match="'on_invalid'"):
            CLEAN.dp.protect(DOMAIN, epsilon=1, on_invalid="keep")


def test_quality_says_in_one_line_what_became_of_the_records():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InvalidDataWarning)
        dropped = MESSY.dp.protect(DOMAIN, epsilon=1, on_invalid="drop")
        clipped = MESSY.dp.protect(DOMAIN, epsilon=1, on_invalid="clip")
    line = "Confidential: 2 of 3 records (66.7 %) left out, 0 values clipped"
    assert repr(dropped.dp.quality()).splitlines()[0] == line
    assert repr(clipped.dp.quality()).startswith("Confidential: 0 of 3 records left out, 4 values clipped")
    assert repr(clipped.query("age > 30").dp.quality()) == repr(clipped.dp.quality())
    twice = pd.concat([CLEAN.assign(who=1), CLEAN.assign(who=2)])
    units = twice.dp.protect(DOMAIN, epsilon=1, unit="who", max_rows=1)
    assert repr(units.dp.quality()).startswith("Confidential: 4 of 6 records (66.7 %) left out")
    for quality in (dropped.dp.quality(), dropped.dp.quality().head(1)):
        assert quality.attrs["dp"]["confidential"] == "quality"
    assert "2 of 3 records (66.7 %) left out" in dropped.dp.quality().dp._repr_html_()


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("on_invalid", ["raise", "clip", "drop"])
def test_every_fate_of_records_is_of_use_under_both_kinds_of_neighbours(neighbors, on_invalid):
    """No combination is one that no release can use, so none is refused."""
    private = CLEAN.dp.protect(DOMAIN, epsilon=10**6, neighbors=neighbors, on_invalid=on_invalid)
    for name in ("sum", "mean", "var", "median", "min"):
        assert np.isfinite(getattr(private.dp, name)("age", epsilon=10**4, rng=1)["age"])


# ------------------------------------------------------------------ clamping


DOMAIN = Domain((Column("age", "integer", lower=18, upper=90), Column("pay", "float", lower=0, upper=10)))


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("dtype", ["int64", "float64", "object", "Int64"])
@pytest.mark.parametrize("outlier", [100_000, -100_000, 2**62])
def test_an_outlier_moves_a_release_as_a_bound_would(neighbors, dtype, outlier):
    ages = [20, 30, 40, 50, 60]

    def moved(last):
        cells = pd.Series([*ages, last]).astype(dtype)
        frame = pd.DataFrame({"age": cells, "pay": np.arange(6.0) + 1})
        private = frame.dp.protect(DOMAIN, epsilon=10**6, neighbors=neighbors, on_invalid="clip")
        return [
            *private.dp.mean("age", epsilon=10**4, rng=3),
            *private.dp.sum("age", epsilon=10**4, rng=3),
            *private.dp.var("age", epsilon=10**4, rng=3),
            *private.dp.cov(["age", "pay"], epsilon=10**4, rng=3).to_numpy().ravel(),
            *private.dp.histogram("age", 4, epsilon=10**4, rng=3),
        ]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeclarationWarning)
        assert moved(outlier) == moved(90 if outlier > 0 else 18)
        assert moved(outlier) != moved(54)  # there is something to be moved


def test_bounds_clip_at_every_read_whatever_was_validated():
    """The engine trusts no validation: the same column, unclipped, gives the same sums."""
    from pdprivacy.core.statistics import quantity

    age = DOMAIN["age"]
    wild = pd.DataFrame({"age": [20, 100_000, -5]})
    tame = pd.DataFrame({"age": [20, 90, 18]})
    q = quantity(age, "mean")
    assert sum_of(PandasEngine(wild), q) == sum_of(PandasEngine(tame), q)
    counted = Column("age", "integer", lower=18, upper=90, bins=(18, 45, 90))
    assert (
        PandasEngine(wild).table([counted], "m").tolist() == PandasEngine(tame).table([counted], "m").tolist()
    )


def test_a_null_that_pandas_does_not_call_one_moves_no_sum_further_than_its_sensitivity():
    """NaN inside a masked or Arrow column is no null to isna() everywhere."""
    pyarrow = pytest.importorskip("pyarrow")
    domain = Domain((Column("x", "float", lower=18, upper=90),))
    masked = pd.arrays.FloatingArray(np.array([20.0, np.nan, 40.0]), np.array([False] * 3))
    arrow = pd.arrays.ArrowExtensionArray(pyarrow.array([20.0, float("nan"), 40.0]))
    for cells in (masked, arrow):
        with pytest.raises(InvalidDataError, match="null"):
            pd.DataFrame({"x": cells}).dp.protect(domain, epsilon=1, neighbors="replace_one")
        private = pd.DataFrame({"x": cells}).dp.protect(domain, epsilon=1, on_invalid="drop")
        assert records_of(private)["x"].tolist() == [20.0, 40.0]


# ------------------------------------------------------------------ the order: charge, read, noise

CALLS = {
    "count": lambda p: p.dp.count(epsilon=0.5),
    "count of": lambda p: p.dp.count(["income", "age"], epsilon=0.5),
    "sum": lambda p: p.dp.sum(["age", "income"], epsilon=0.5),
    "mean": lambda p: p.dp.mean(["age", "income"], epsilon=0.5),
    "var": lambda p: p.dp.var("age", epsilon=0.5),
    "std": lambda p: p.dp.std("age", epsilon=0.5),
    "cov": lambda p: p.dp.cov(["age", "income"], epsilon=0.5),
    "corr": lambda p: p.dp.corr(["age", "income"], epsilon=0.5),
    "proportion": lambda p: p.dp.proportion("health", "yes", epsilon=0.5),
    "value_counts": lambda p: p.dp.value_counts("region", epsilon=0.5),
    "histogram": lambda p: p.dp.histogram("income", 5, epsilon=0.5),
    "crosstab": lambda p: p.dp.crosstab(["region", "age"], "health", epsilon=0.5),
    "pooled_var": lambda p: p.dp.pooled_var("family", by="region", epsilon=0.5),
    "pooled_cov": lambda p: p.dp.pooled_cov(["family", "age"], by="region", epsilon=0.5),
    "groupby count": lambda p: p.dp.groupby("region").count(epsilon=0.5),
    "groupby sum": lambda p: p.dp.groupby("region").sum("family", epsilon=0.5),
    "groupby mean": lambda p: p.dp.groupby("region").mean(["family", "income"], epsilon=0.5),
    "groupby var": lambda p: p.dp.groupby("region").var("family", epsilon=0.5),
}
READS = ("present", "table", "bins", "grouped")


def _spy(monkeypatch, look) -> None:
    """Call ``look`` before every read of the engine."""

    def wrapped(original):
        def method(self, *arguments, **options):
            look()
            return original(self, *arguments, **options)

        return method

    for name in READS:
        monkeypatch.setattr(PandasEngine, name, wrapped(getattr(PandasEngine, name)))
    rows = PandasEngine.rows.fget
    monkeypatch.setattr(PandasEngine, "rows", property(lambda self: (look(), rows(self))[1]))


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_charge_comes_before_the_first_read(survey, schema, call, neighbors, monkeypatch):
    private = survey.dp.protect(schema, epsilon=100, neighbors=neighbors)
    if call is CALLS["count"] and neighbors == "replace_one":
        private = private.dp.query("age > 30")
    seen: list[int] = []
    _spy(monkeypatch, lambda: seen.append(len(private.dp.budget.entries)))
    call(private)
    assert seen
    assert set(seen) == {1}
    assert private.dp.budget.spent == (0.5, 0.0)  # one epsilon is the whole cost


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_failure_after_the_charge_stays_charged(private, call, monkeypatch):
    def fail():
        raise MemoryError

    _spy(monkeypatch, fail)
    with pytest.raises(MemoryError):
        call(private)
    assert private.dp.budget.spent == (0.5, 0.0)


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_release_that_the_budget_refuses_reads_nothing(survey, schema, call, monkeypatch):
    private = survey.dp.protect(schema, epsilon=0.25)

    def fail():
        raise AssertionError("read")

    _spy(monkeypatch, fail)
    with pytest.raises(BudgetExceeded, match=r"0\.25") as caught:
        call(private)
    assert "epsilon=0.25" in caught.value.hint
    assert private.dp.budget.left == (0.25, 0.0)
    assert len(private.dp.budget.entries) == 0


def test_transforms_and_the_curators_own_are_not_charged(private):
    private.dp.query("age > 30")
    private.dp.quality()
    private.dp.dr_ha(["region"], "health", [0.1, 1])
    private.dp.risk_curve("region", "health", 1)
    private.dp.choose_epsilon("region", "health")
    private.dp.utility(["region", "health"], draws=2)
    private.dp.tradeoff("region", "health", 1, draws=2)
    private.dp.homogeneity("region", "health")
    private.dp.anonymity("region", "health")
    private.dp.repeated_risk([{"by": "region", "sensitive": "health", "epsilon": 1}])
    private.dp.groupby("region")
    assert len(private.dp.budget.entries) == 0
