"""Functions of numbers: correctly rounded (`elementary`), of the cell alone, and within their bounds."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.core import rows as transform
from pdprivacy.core.rows.elementary import ELEMENTARY, correctly_rounded
from pdprivacy.core.rows.functions import ARGUMENTS
from pdprivacy.errors import OpaqueFrameError, ParameterError, QueryError, UnknownNameError
from tests.support.engine_frames import BESIDE_PANDAS, each_engine, frame_of
from tests.support.snapshots import records_of

MANY = decimal.Context(prec=400, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
EXACT_RESULTS = {
    "exp": lambda x: MANY.exp(x),
    "expm1": lambda x: MANY.subtract(MANY.exp(x), 1),
    "log": lambda x: MANY.ln(x),
    "log10": lambda x: MANY.divide(MANY.ln(x), MANY.ln(Decimal(10))),
    "log1p": lambda x: MANY.ln(MANY.add(1, x)),
    "log2": lambda x: MANY.divide(MANY.ln(x), MANY.ln(Decimal(2))),
}
RANGES = {"exp": (-700, 700), "expm1": (-30, 700), "log1p": (-0.99, 500)}


def nearest_to_ties(name: str, numbers: np.ndarray, most: int) -> np.ndarray:
    """The numbers whose results are nearest to the middle of two doubles."""
    results = getattr(np, name)(numbers.astype(np.longdouble))
    doubles = results.astype(np.float64)
    halves = np.abs(results - doubles).astype(np.float64) / np.spacing(np.abs(doubles))
    return numbers[np.argsort(np.abs(halves - 0.5))[:most]]


@pytest.mark.parametrize("name", ELEMENTARY)
def test_results_are_the_doubles_nearest_to_the_exact_ones(name):
    random = np.random.default_rng(35)
    lower, upper = RANGES.get(name, (1e-3, 1e6))
    spread = random.uniform(lower, upper, 100_000)
    near_one = (0.0 if name in ("exp", "expm1", "log1p") else 1.0) + random.normal(0, 1e-9, 20_000)
    hard = np.concatenate([nearest_to_ties(name, numbers, 60) for numbers in (spread, near_one)])
    for number, result in zip(hard.tolist(), correctly_rounded(name, hard).tolist(), strict=True):
        exact = EXACT_RESULTS[name](Decimal(number))
        error = abs(MANY.subtract(Decimal(result), exact))
        for neighbour in (math.nextafter(result, -math.inf), math.nextafter(result, math.inf)):
            assert error <= abs(MANY.subtract(Decimal(neighbour), exact)), (name, number)


def test_results_that_are_known_exactly_and_those_at_the_ends():
    smallest, tiny, most = 5e-324, 1e-310, float(np.finfo(np.float64).max)
    for name, number, result in [
        ("log", 1.0, 0.0),
        ("log10", 1e15, 15.0),
        ("log2", 2.0**-1074, -1074.0),
        ("log1p", tiny, tiny),
        ("log1p", -smallest, -smallest),
        ("expm1", tiny, tiny),
        ("exp", 0.0, 1.0),
        ("exp", -1e308, 0.0),
        ("exp", 2.0**-54, 1.0),
        ("exp", -(2.0**-54), 1.0),
        ("exp", 2.0**-53, 1 + 2.0**-52),
        ("exp", -745.0, smallest),
        ("exp", 710.0, math.inf),
        ("log", most, 709.782712893384),
    ]:
        assert correctly_rounded(name, np.array([number])).tolist() == [result], (name, number)
    assert np.isnan(correctly_rounded("log", np.array([np.nan, 1.0]))).tolist() == [True, False]


X = Column("x", "float", lower=0.25, upper=40, nullable=True)
N = Column("n", "integer", lower=-7, upper=9)
TEXTS = [
    *(f"{name}(x)" for name in ELEMENTARY),
    "sqrt(x) + floor(x) - ceil(n / 3) * sign(n)",
    "round(x, 1) + round(n / 3)",
    "minimum(x, n) + maximum(n, 3) - x.round(-1)",
    "abs(n) + (x - 7).abs()",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_result_is_a_function_of_its_cell_wherever_it_lies(text):
    random = np.random.default_rng(35)
    frame = pd.DataFrame({"x": random.uniform(0.25, 40, 5000), "n": random.integers(-7, 10, 5000)})
    step = transform.assign(Domain((X, N)), {"y": text})

    def bits(records):
        cells = step.apply(records)["y"]
        return np.asarray(cells, dtype=np.float64).view(np.int64)

    whole = bits(frame)
    order = random.permutation(len(frame))
    assert (bits(frame.iloc[order]) == whole[order]).all()
    assert (bits(frame[::-1]) == whole[::-1]).all()
    strided = pd.DataFrame({"x": np.repeat(frame["x"].to_numpy(), 3)[1::3], "n": frame["n"]}, copy=False)
    assert (bits(strided) == whole).all()
    for size in (1, 3, 7, 100):
        pieces = [bits(frame[start : start + size]) for start in range(0, 100, size)]
        assert (np.concatenate(pieces)[:100] == whole[:100]).all()


@pytest.mark.parametrize("engine", each_engine(BESIDE_PANDAS))
def test_every_engine_has_the_same_bits(engine, request, full):
    """A result with another last bit is not among those of pandas; by default, of every third text."""
    if engine == "Spark":
        request.getfixturevalue("spark")
    random = np.random.default_rng(35)
    frame = pd.DataFrame({"x": random.uniform(0.3, 39, 200), "n": random.integers(-6, 9, 200)})
    domain = Domain((X, N))
    private = pdprivacy.protect(frame_of(engine, frame), domain, epsilon=10**9)
    for text in TEXTS if full else TEXTS[::3]:
        expected = transform.assign(domain, {"y": text}).apply(frame)["y"].tolist()
        same = private.query(f"({text}) in {expected!r}")
        assert same.dp.count(epsilon=1000, rng=1).item() == 200, text
        first = private.assign(y=text).query(f"y == {expected[0]!r}")
        assert first.dp.count(epsilon=1000, rng=1).item() == expected.count(expected[0]), text


def test_bounds_hold_by_brute_force(full):
    random = np.random.default_rng(35)
    for _ in range(60 if full else 20):
        low, high = sorted(random.choice([-9.0, -2.5, -1.0, 0.0, 0.5, 1.0, 3.0, 30.0], 2, replace=False))
        domain = Domain((Column("x", "float", lower=low, upper=high), N))
        cells = np.unique([low, high, *random.uniform(low, high, 40), *np.clip(np.arange(-9, 9), low, high)])
        frame = pd.DataFrame({"x": np.repeat(cells, 17), "n": np.tile(np.arange(-7, 10), len(cells))})
        for name, arguments in ARGUMENTS.items():
            texts = {"x": [f"{name}(x)"], "x, y": [f"{name}(x, n)", f"{name}(n, 3)", f"{name}(x, 2)"]}
            for text in texts.get(arguments, ["round(x)", "round(x, 1)", "round(x, -1)", "round(n, -1)"]):
                least = {"log1p": -1, "sqrt": -1e-9}.get(name, 0 if name.startswith("log") else -10)
                if low <= least:
                    with pytest.raises(QueryError, match=f"'{name}' needs numbers"):
                        transform.assign(domain, {"y": text})
                    continue
                step = transform.assign(domain, {"y": text})
                results = step.apply(frame)["y"]
                column = step.domain["y"]
                assert (column.lower, column.upper) == (results.min(), results.max()), text
                assert column.nullable is False
                assert (column.kind == "integer") is (results.dtype.kind == "i")


def test_results_are_those_of_numpy_up_to_the_last_bit():
    numbers = np.array([0.25, 0.5, 1.5, 2.5, 7.25, 39.95, 12.345])
    whole = np.array([-7, -5, 0, 5, 9, 4, -6])
    step = transform.assign(
        Domain((X, N)), {**{f"y{index}": text for index, text in enumerate(TEXTS)}, "tens": "round(n, -1)"}
    )
    result = step.apply(pd.DataFrame({"x": numbers, "n": whole}))
    names = {name: getattr(np, name) for name in ARGUMENTS}

    def theirs(text):
        series = {"x": pd.Series(numbers), "n": pd.Series(whole)}
        return eval(text, {**names, **series})

    for index, text in enumerate(TEXTS):
        np.testing.assert_array_max_ulp(
            result[f"y{index}"].to_numpy(dtype=float), np.asarray(theirs(text), dtype=float), maxulp=4
        )
    assert result["tens"].tolist() == np.round(whole, -1).tolist()


def test_nulls_stay_null_and_whole_results_are_whole():
    domain = Domain((X, Column("m", "integer", lower=0, upper=9, nullable=True)))
    frame = pd.DataFrame({"x": [1.5, None, 40.0], "m": pd.array([None, 2, 3], dtype="Int64")})
    step = transform.assign(
        domain,
        {
            "a": "floor(x)",
            "b": "log(x)",
            "c": "maximum(x, m)",
            "d": "minimum(m, 2)",
            "e": "sign(x)",
            "f": "floor(m)",
        },
    )
    result = step.apply(frame)
    assert {name: [None if pd.isna(cell) else cell for cell in result[name]] for name in "acdef"} == {
        "a": [1, None, 40],
        "c": [None, None, 40.0],
        "d": [None, 2, 2],
        "e": [1, None, 1],
        "f": [None, 2, 3],
    }
    assert result["b"].isna().tolist() == [False, True, False]
    assert [step.domain[name].kind for name in "abcdef"] == [
        "integer", "float", "float", "integer", "integer", "integer"
    ]  # fmt: skip
    assert [step.domain[name].nullable for name in "abcdef"] == [True] * 6


@pytest.mark.parametrize(
    ("text", "reason", "hint"),
    [
        ("log(m)", "'log' needs numbers above 0, and 'm' may be 0", "log1p(m)"),
        ("log2(n)", "'log2' needs numbers above 0, and 'n' may be less", "log2(n.clip(lower=1))"),
        ("log1p(n + 1)", "'log1p' needs numbers above -1", "log1p((n + 1).clip(lower=0))"),
        ("sqrt(free)", "at least 0, and 'free' has no lower bound", "free.clip(lower=0)"),
        ("exp(m * 100)", "results without bounds", "bounds="),
        ("log(m, 2)", "has other arguments than log(x)", "functions are"),
        ("minimum(m)", "has other arguments than minimum(x, y)", "functions are"),
        ("round(m, n)", "not a whole constant", "round(x, 1)"),
        ("log(g)", "is not numeric", None),
        ("np.sin(m)", "calls a method", None),
    ],
)  # fmt: skip
def test_refusals_name_what_to_write(text, reason, hint):
    columns = (N, Column("m", "integer", lower=0, upper=9), Column("free", "float"))
    domain = Domain((*columns, Column("g", "category", categories=("a",))))
    with pytest.raises(QueryError) as caught:
        transform.assign(domain, {"y": text})
    assert reason in str(caught.value)
    assert hint is None or hint in caught.value.hint


@pytest.fixture
def private():
    frame = pd.DataFrame({"x": [1.0, 2.5, 30.0] * 50, "n": [1, 2, 3] * 50})
    return pdprivacy.protect(frame, Domain((X, N)), epsilon=100)


SYMBOLS = {
    'np.log(f["x"])': "log(x)",
    'np.sqrt(f["x"] + 1) * 2': "sqrt(x + 1) * 2",
    'np.minimum(f["x"], f["n"])': "minimum(x, n)",
    'np.maximum(3, f["n"])': "maximum(3, n)",
    'np.round(f["x"], 1)': "round(x, 1)",
    'f["x"].round()': "round(x)",
    'round(f["x"])': "round(x)",
    'math.floor(f["x"])': "floor(x)",
    'np.rint(f["x"])': "round(x)",
    'np.absolute(f["n"])': "abs(n)",
    'np.add(f["n"], 1)': "n + 1",
    'np.square(f["n"])': "n ** 2",
    'np.greater(f["n"], 1) & ~np.isnan(f["x"])': "n > 1 and not x.isna()",
    'np.clip(f["n"], 1, 3)': "n.clip(1, 3)",
    '"np.log(x)"': "log(x)",
    "np.abs": None,
}


@pytest.mark.parametrize(("symbolic", "text"), SYMBOLS.items())
def test_functions_of_numpy_are_those_of_the_same_text(private, symbolic, text):
    made = eval(symbolic, {"f": private, "np": np, "math": math})
    if text is None:
        with pytest.raises(OpaqueFrameError, match=r"'np\.absolute' reads cells") as caught:
            private.assign(new=made)
        assert caught.value.hint == 'private.assign(new=np.absolute(private["x"]))'
        return
    by_symbols, by_text = private.assign(new=made), private.assign(new=text)
    assert by_symbols.dp.domain == by_text.dp.domain
    pd.testing.assert_series_equal(records_of(by_symbols)["new"], records_of(by_text)["new"])
    again = private.assign(new=str(made))
    assert again.dp.domain == by_text.dp.domain


@pytest.mark.parametrize(
    ("use", "error", "reason"),
    [
        (lambda f: np.sin(f["x"]), UnknownNameError, r"'np\.sin' of a protected column is not offered"),
        (lambda f: np.add.reduce(f["x"]), OpaqueFrameError, r"'np\.add\.reduce' reads cells"),
        (lambda f: np.sqrt(f["x"], out=np.zeros(3)), ParameterError, "takes no 'out'"),
        (lambda f: np.minimum(f["x"], np.arange(3)), ParameterError, "plain Python values alone"),
        (lambda f: np.log(f["n"]), QueryError, "'log' needs numbers above 0"),
        (lambda f: np.median(f["x"]), OpaqueFrameError, "'median' reads cells"),
        (np.sqrt, OpaqueFrameError, r"'np\.sqrt' reads cells"),
        (lambda f: f.assign(y=np.sqrt), OpaqueFrameError, r"'np\.sqrt' reads cells"),
    ],
)
def test_functions_that_are_refused_charge_nothing(private, use, error, reason):
    with pytest.raises(error, match=reason):
        use(private)
    assert private.dp.budget.entries.empty


def test_conditions_compare_results():
    step = transform.query(Domain((X, N)), "log(x) > 1 and minimum(n, 3) == 3")
    frame = pd.DataFrame({"x": [2.0, 3.0, 40.0, 40.0], "n": [5, 5, 2, 3]})
    assert step.apply(frame).index.tolist() == [1, 3]


DIVISIONS = [
    "n // ceil(y)",
    "5 // minimum(n, ceil(y))",
    "5 // ceil(exp(y / 100))",
    "5 // sign(y)",
    "5 // ceil(n / 2)",
    "5 % ceil(y)",
    "1 // ceil(c.map({'a': 0.5, 'b': None}))",
    "round(y) // floor(y + 1)",
]


@pytest.mark.full(keep=8)
@pytest.mark.parametrize("text", DIVISIONS)
@pytest.mark.parametrize("engine", ["pandas", "lazy Polars", "DuckDB"])
def test_no_warning_tells_of_a_null(engine, text):
    """A null would tell by a division by 0 in its place, before anything is charged."""
    columns = (
        Column("n", "integer", lower=1, upper=9, nullable=True),
        Column("y", "float", lower=0.5, upper=80, nullable=True),
        Column("c", "category", categories=("a", "b")),
    )
    cells = {"n": pd.array([2, 8, 3], dtype="Int64"), "y": [0.75, 79.0, 2.5], "c": ["a", "a", "a"]}
    full = pd.DataFrame(cells)
    empty = full.assign(n=pd.array([None] * 3, dtype="Int64"), y=np.nan, c="b")
    for frame in (full, pd.concat([full, empty], ignore_index=True), empty):
        private = pdprivacy.protect(frame_of(engine, frame), Domain(columns), epsilon=1)
        with np.errstate(all="raise"):
            private.assign(z=text).dp.count(epsilon=1)


def test_clip_and_round_of_numpy_take_the_names_of_numpy():
    domain = Domain((Column("age", "integer", lower=0, upper=120), Column("x", "float", lower=0, upper=9)))
    private = pdprivacy.protect(pd.DataFrame({"age": [31], "x": [2.5]}), domain, epsilon=1)
    age, x = private["age"], private["x"]
    made = {
        "a": np.clip(age, a_min=1, a_max=3),
        "c": np.clip(age, 1, None),
        "d": np.clip(age, None, 50),
        "e": np.round(x, 1, None),
    }
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        made["b"] = np.clip(age, min=1, max=3)
    bounds = {"a": (1, 3), "b": (1, 3), "c": (1, 120), "d": (0, 50), "e": (0, 9)}
    for name, each in made.items():
        assert private.assign(z=each).dp.domain["z"].bounds("mean") == bounds[name], name
    with pytest.raises(
        ParameterError, match=r"'np.clip' of a protected column does not take these arguments"
    ):
        np.clip(age, 1, 3, casting="unsafe")
