"""Releases end to end: with the noise taken away they are what pandas computes, and with it only
the numbers depend on the data."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pdprivacy  # noqa: F401 - registers the accessor
from pdprivacy import Column, Domain, noise
from pdprivacy.errors import BudgetExceeded, DeclarationError, DeclarationWarning, ParameterError

NAN = float("nan")
LARGE = 10**6  # an epsilon at which the known variance of the noise is nothing


def protected(frame: pd.DataFrame, domain: Domain, **options: Any) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeclarationWarning)  # data at the bounds is the point here
        return frame.dp.protect(domain, **{"epsilon": 10**9, "delta": "0.5", **options})


@pytest.fixture
def silent(monkeypatch):
    """All noise is zero."""
    for name in ("discrete_laplace", "discrete_gaussian"):
        monkeypatch.setattr(noise, name, lambda scale, size, source: np.zeros(size, dtype=np.int64))


# ---------------------------------------------------------------- a table of every dtype

ROWS = 60
RNG = np.random.default_rng(11)


def some_null(cells: list[Any]) -> list[Any]:
    return [None if place % 7 == 3 else cell for place, cell in enumerate(cells)]


WHOLE = RNG.integers(0, 21, ROWS).tolist()
REAL = (RNG.integers(-800, 2400, ROWS) / 64).tolist()  # exact in every floating dtype
TRUTH = (RNG.random(ROWS) < 0.4).tolist()
LABEL = RNG.choice(["north", "south", "west"], ROWS, p=[0.6, 0.3, 0.1]).tolist()
GROUP = RNG.choice(["a", "b"], ROWS).tolist()
DTYPES: dict[str, Any] = {
    "int64": (WHOLE, "int64"),
    "int8": (WHOLE, "int8"),
    "uint8": (WHOLE, "uint8"),
    "float32": (REAL, "float32"),
    "float64": (some_null(REAL), "float64"),
    "Int64": (some_null(WHOLE), "Int64"),
    "Float64": (some_null(REAL), "Float64"),
    "decimal": ([Decimal(cell) for cell in REAL], "object"),
    "int64[pyarrow]": (some_null(WHOLE), "int64[pyarrow]"),
    "double[pyarrow]": (some_null(REAL), "double[pyarrow]"),
    "bool": (TRUTH, "bool"),
    "boolean": (some_null(TRUTH), "boolean"),
    "category": (some_null(LABEL), pd.CategoricalDtype(["west", "never", "north", "south"])),
    "object": (some_null(LABEL), "object"),
    "str": (some_null(LABEL), "str" if pd.__version__ >= "3" else "string"),
    "string[pyarrow]": (LABEL, "string[pyarrow]"),
    "string arrow": (some_null(GROUP), "string[pyarrow]"),
    "group": (GROUP, "category"),
}
NUMBERS = {name: cells for name, (cells, _) in DTYPES.items() if not isinstance(cells[0], str | bool)}
LABELS = {name: cells for name, (cells, _) in DTYPES.items() if isinstance(cells[0], str)}
TRUTHS = {"bool": TRUTH, "boolean": some_null(TRUTH)}
LOWER, UPPER = -10.0, 33.0  # below -10 and above 33 the reals are clamped


def declared(name: str) -> Column:
    cells, _ = DTYPES[name]
    nullable = None in cells
    if name in TRUTHS:
        return Column(name, "boolean", nullable)
    if name in LABELS:
        labels = ("a", "b") if "a" in cells else ("south", "east", "north", "west")
        return Column(name, "category", nullable, categories=labels)
    if cells[0] in WHOLE and isinstance(cells[0], int):
        return Column(name, "integer", nullable, 2, 18)
    return Column(name, "float", nullable, LOWER, UPPER)


FRAME = pd.DataFrame(
    {name: pd.Series(cells, dtype=object).astype(dtype) for name, (cells, dtype) in DTYPES.items()}
)
DOMAIN = Domain(tuple(declared(name) for name in DTYPES))
VALID = FRAME.copy()
for column in DOMAIN.columns:
    if column.name in NUMBERS and column.name != "decimal":
        VALID[column.name] = VALID[column.name].clip(column.lower, column.upper)
VALID["decimal"] = [min(max(cell, Decimal(LOWER)), Decimal(UPPER)) for cell in FRAME["decimal"]]


def plain(name: str) -> pd.Series[Any]:
    """The column in the simplest dtype, clamped."""
    column = DOMAIN[name]
    cells = DTYPES[name][0]
    if name in LABELS:
        return pd.Series(["(null)" if cell is None else cell for cell in cells], name=name)
    numbers = pd.Series([NAN if cell is None else float(cell) for cell in cells], name=name)
    return numbers.clip(column.lower, column.upper)


PLAIN = pd.DataFrame({name: plain(name) for name in DTYPES})
LABELLED = PLAIN.assign(bool=TRUTH)


def labels_of(name: str) -> list[Any]:
    column = DOMAIN[name]
    return [*column.labels("test"), *(["(null)"] if column.nullable else [])]


def named(released: pd.Index[Any]) -> list[Any]:
    """The labels of an index with the null label by name."""

    def one(label: Any) -> Any:
        return "(null)" if label is None or label != label else label

    return [tuple(map(one, label)) if isinstance(label, tuple) else one(label) for label in released.tolist()]


SCOPES: dict[str, dict[str, Any]] = {
    "private rows": {},
    "public rows": {"public_rows": 50},
    "replacement": {"neighbors": "replace_one"},
}
MECHANISMS: list[dict[str, Any]] = [{"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": "1e-5"}]


@pytest.fixture(params=SCOPES, scope="module")
def private(request):
    return protected(VALID, DOMAIN, **SCOPES[request.param])


@pytest.fixture(params=MECHANISMS, ids=lambda options: options["mechanism"])
def cost(request, silent):
    return {"epsilon": LARGE, **request.param}


NUMERIC = [*NUMBERS, *TRUTHS]
WITHOUT_NULLS = [name for name in NUMERIC if not DOMAIN[name].nullable]
GRID = 2.0**-15  # relative to the range: more than the coarsest grid rounds


def test_counts_are_those_of_pandas(silent):
    private = protected(VALID, DOMAIN)
    assert private.dp.count(epsilon=1).to_dict() == {"rows": ROWS}
    names = list(DTYPES)
    for options in ({}, {"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": "1e-5"}):
        pd.testing.assert_series_equal(
            private.dp.count(names, epsilon=LARGE, **options), VALID.count(), check_dtype=not options
        )


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("method", ["sum", "mean", "var", "std"])
def test_moments_are_those_of_pandas(method, private, cost):
    expected = getattr(PLAIN[NUMERIC], method)()
    released = getattr(private.dp, method)(NUMERIC, **cost)
    spans = pd.Series({name: DOMAIN[name].upper - DOMAIN[name].lower for name in NUMERIC})
    scale = {"sum": ROWS * 33, "mean": spans, "var": spans**2, "std": spans}[method]
    assert ((released - expected).abs() <= GRID * scale).all()
    assert released.index.tolist() == NUMERIC
    assert released.dtype == np.float64
    # every column alone, and without naming any
    for name in WITHOUT_NULLS:
        alone = getattr(private.dp, method)(name, **cost)
        assert alone[name] == pytest.approx(expected[name], abs=float(np.max(GRID * scale)))
    every = getattr(private.dp, method)(**cost)
    assert every.index.tolist() == [column.name for column in DOMAIN.columns if column.lower is not None]


@pytest.mark.full(keep=15)
@pytest.mark.parametrize("names", [WITHOUT_NULLS, ["int64", "bool"]], ids=["all", "two"])
@pytest.mark.parametrize("method", ["cov", "corr"])
def test_covariances_and_correlations_are_those_of_pandas(method, names, private, cost):
    expected = getattr(PLAIN[names], method)()
    released = getattr(private.dp, method)(names, **cost)
    spans = np.array([DOMAIN[name].upper - DOMAIN[name].lower for name in names])
    scale = np.outer(spans, spans) if method == "cov" else 20.0
    assert (np.abs(released.to_numpy() - expected.to_numpy()) <= GRID * scale).all()
    assert released.index.tolist() == released.columns.tolist() == names
    assert (released.to_numpy() == released.to_numpy().T).all()


def test_a_covariance_matrix_leaves_out_records_with_any_null(silent):
    names = ["float64", "Int64", "bool"]
    private = protected(VALID, DOMAIN)
    expected = PLAIN[names].dropna().cov()
    released = private.dp.cov(names, epsilon=LARGE)
    np.testing.assert_allclose(released, expected, atol=GRID * 43**2)


@pytest.mark.full(keep=13)
@pytest.mark.parametrize("name", [*LABELS, *TRUTHS])
def test_proportions_are_those_of_pandas(name, private, cost):
    known = PLAIN[name][(PLAIN[name] != "(null)") & PLAIN[name].notna()]
    for value in DOMAIN[name].labels("test"):
        released = private.dp.proportion(name, value, **cost)
        assert released.iloc[0] == pytest.approx((known == value).mean(), abs=1e-6)
        assert released.index.tolist() == [value]
        assert released.index.name == name


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("name", [*LABELS, "bool", "int8"])
def test_value_counts_are_those_of_pandas(name, silent):
    private = protected(VALID, DOMAIN)
    cells = labels_of(name)
    expected = PLAIN[name].value_counts().reindex(cells, fill_value=0)
    released = private.dp.value_counts(name, epsilon=LARGE, sort=False)
    assert named(released.index) == cells
    assert released.tolist() == expected.tolist()
    assert (released.name, released.dtype) == ("count", np.int64)
    ranked = private.dp.value_counts(name, epsilon=LARGE)
    assert ranked.tolist() == sorted(expected, reverse=True)
    assert dict(zip(named(ranked.index), ranked, strict=True)) == expected.to_dict()
    shares = private.dp.value_counts(name, epsilon=50, normalize=True)
    assert dict(zip(named(shares.index), shares, strict=True)) == pytest.approx((expected / ROWS).to_dict())
    assert shares.name == "proportion"


def test_value_counts_of_several_columns_are_those_of_pandas(silent):
    names = ["object", "group", "bool"]
    released = protected(VALID, DOMAIN).dp.value_counts(names, epsilon=1, sort=False)
    every = list(itertools.product(*map(labels_of, names)))
    assert named(released.index) == every
    expected = LABELLED[names].value_counts().to_dict()
    assert released.tolist() == [expected.get(cell, 0) for cell in every]
    assert released.index.names == names


# ---------------------------------------------------------------- histograms


def bins_of(released: pd.Series[Any], column: Column) -> list[int]:
    if column.nullable:
        assert named(released.index)[-1] == "(null)"
        return released.iloc[:-1].tolist()
    return released.tolist()


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("name", [*NUMBERS, "bool"])
@pytest.mark.parametrize(
    "bins",
    [
        None,
        1,
        50,
        [-10.0, 0, 18, 33],
        [3, 5.5, 6, 11],
        [-500, 1.5, 2, 2.5, 18, 400],
        np.linspace(-10, 33, 51).tolist(),
        np.sort(np.random.default_rng(2).uniform(-10, 33, 51)).tolist(),
    ],
    ids=["declared", "one", "50", "wide", "narrow", "beyond", "50 even", "50 uneven"],
)
def test_histograms_are_those_of_numpy(name, bins, silent):
    column = DOMAIN[name]
    released = protected(VALID, DOMAIN).dp.histogram(name, bins, epsilon=1)
    if bins is None or isinstance(bins, int):
        edges = np.linspace(float(column.lower), float(column.upper), (bins or 10) + 1)
    else:
        edges = np.array(bins, dtype=float)
    values = PLAIN[name].dropna().to_numpy()
    assert bins_of(released, column) == np.histogram(values, edges)[0].tolist()
    if column.nullable:
        assert released.iloc[-1] == PLAIN[name].isna().sum()
    assert named(released.index)[0].startswith("[")
    assert named(released.index)[len(edges) - 2].endswith("]")
    assert (released.name, released.index.name) == ("count", name)


def test_the_right_edge_belongs_to_the_last_bin_and_no_other_right_edge(silent):
    domain = Domain((Column("x", "float", lower=0, upper=4, bins=(0, 1, 3, 4)),))
    private = protected(pd.DataFrame({"x": [0.0, 1.0, 3.0, 4.0, 4.0, math.nextafter(1, 0)]}), domain)
    assert private.dp.histogram("x", epsilon=1).to_dict() == {"[0, 1)": 2, "[1, 3)": 1, "[3, 4]": 3}
    assert private.dp.histogram("x", [0, 1, 3], epsilon=1).to_dict() == {"[0, 1)": 2, "[1, 3]": 2}
    assert private.dp.value_counts("x", epsilon=1, sort=False).tolist() == [2, 1, 3]


def test_edges_that_rounding_could_cross(silent):
    edges = np.linspace(0.1, 0.7, 50)
    around = np.concatenate([edges, np.nextafter(edges, 1), np.nextafter(edges, 0)]).clip(0.1, 0.7)
    private = protected(pd.DataFrame({"x": around}), Domain((Column("x", "float", lower=0.1, upper=0.7),)))
    for wanted in (49, edges):
        released = private.dp.histogram("x", wanted, epsilon=1)
        assert released.tolist() == np.histogram(around, edges)[0].tolist()


def test_a_null_record_moves_no_other_record_to_another_bin(silent):
    """0.7 as a narrow float is below 0.7: whether it counts as clamped may depend on it alone."""
    domain = Domain((Column("x", "float", nullable=True, lower=0.0, upper=1.0),))
    released = []
    for last in ([], [NAN]):
        frame = pd.DataFrame({"x": np.array([0.7] * 50 + last, dtype=np.float32)})
        private = protected(frame, domain).dp.query("not x < 0.7")
        released.append(private.dp.histogram("x", [0, 0.7, 1.0], epsilon=1).to_numpy())
    assert np.abs(released[0] - released[1]).sum() == 1
    assert released[0][2] == 0
    assert released[1][2] == 1


# ---------------------------------------------------------------- contingency tables


def pandas_table(index: list[str], columns: list[str], **options: Any) -> pd.DataFrame:
    return pd.crosstab(
        [LABELLED[name] for name in index], [LABELLED[name] for name in columns], dropna=False, **options
    )


def cells_of(names: list[str]) -> list[Any]:
    cells = list(itertools.product(*map(labels_of, names)))
    return cells if len(names) > 1 else [cell for (cell,) in cells]


def check_table(released: pd.DataFrame, expected: pd.DataFrame, index: list[str], columns: list[str]) -> None:
    """The cells of pandas where it has one (it knows the observed ones only), zero elsewhere."""
    rows, tops = cells_of(index), cells_of(columns)
    inner = expected.to_numpy(), expected.index.tolist(), expected.columns.tolist()
    table = pd.DataFrame(
        inner[0], pd.Index(inner[1], tupleize_cols=False), pd.Index(inner[2], tupleize_cols=False)
    )
    sides = []
    for axis, cells in ((table.index, rows), (table.columns, tops)):
        sides.append(
            cells + [name for name in axis if name == "All" or (isinstance(name, tuple) and "All" in name)]
        )
    table = table.reindex(index=sides[0], columns=sides[1], fill_value=0)
    assert [named(released.index), named(released.columns)] == sides
    np.testing.assert_allclose(released.to_numpy(dtype=float), table.to_numpy(dtype=float), atol=1e-12)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("margins", [False, True])
@pytest.mark.parametrize("normalize", [False, True, "all", "index", "columns"])
@pytest.mark.parametrize(
    ("index", "columns"),
    [
        (["object"], ["group"]),
        (["category"], ["str"]),
        (["group", "string[pyarrow]"], ["bool"]),
        (["string arrow"], ["group", "category"]),
        (["bool", "group"], ["object", "string arrow"]),
    ],
    ids=str,
)
def test_crosstabs_are_those_of_pandas(index, columns, normalize, margins, silent):
    released = protected(VALID, DOMAIN).dp.crosstab(
        index, columns, epsilon=50, normalize=normalize, margins=margins
    )
    check_table(released, pandas_table(index, columns, normalize=normalize, margins=margins), index, columns)
    assert released.index.names == index
    assert released.columns.names == columns
    if not normalize:
        assert set(released.dtypes) == {np.dtype(np.int64)}


def test_a_label_and_a_list_of_one_label_are_the_same_crosstab(silent):
    private = protected(VALID, DOMAIN)
    pd.testing.assert_frame_equal(
        private.dp.crosstab("group", "bool", epsilon=1), private.dp.crosstab(["group"], ["bool"], epsilon=1)
    )


# ---------------------------------------------------------------- groups


@pytest.mark.full(keep=7)
@pytest.mark.parametrize("by", [["group"], ["object"], ["string arrow", "bool"]], ids=str)
@pytest.mark.parametrize("method", ["count", "sum", "mean", "var"])
def test_groups_are_those_of_pandas(method, by, cost, private):
    names = ["int64", "float64", "Int64", "decimal"]
    grouped = LABELLED.groupby(by if len(by) > 1 else by[0])
    every = cells_of(by)
    if method == "count":
        released = private.dp.groupby(by).count(epsilon=1)
        sizes = grouped.size().to_dict()
        assert released.tolist() == [sizes.get(cell, 0) for cell in every]
        assert named(released.index) == every
        return
    released = getattr(private.dp.groupby(by), method)(names, **cost)
    assert named(released.index) == every
    assert released.columns.tolist() == names
    expected = getattr(grouped[names], method)()
    held = grouped[names].count()
    span = {"sum": 33 * ROWS, "mean": 43, "var": 43**2}[method]
    for cell, name in itertools.product(expected.index, names):
        if held.loc[cell, name] >= (2 if method == "var" else 1):
            value = released[name].iloc[every.index(cell)]
            assert value == pytest.approx(expected.loc[cell, name], abs=GRID * span)
    for cell in set(every) - set(expected.index):
        if method == "sum":
            assert (released.iloc[every.index(cell)] == 0).all()


def pooled(names: list[str], by: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Within-group sums of products about the group means over n less the declared groups."""
    complete = frame[[*names, by]].dropna()
    centred = complete[names] - complete.groupby(by)[names].transform("mean")
    return centred.T @ centred / (len(complete) - len(labels_of(by)))


@pytest.mark.full(keep=8)
@pytest.mark.parametrize(
    ("names", "by"),
    [(["int64", "float32", "bool"], "group"), (["uint8", "decimal"], "object")],
    ids=str,
)
def test_pooled_moments_are_those_of_numpy(names, by, private, cost):
    expected = pooled(names, by, PLAIN)
    matrix = private.dp.pooled_cov(names, by=by, **cost)
    np.testing.assert_allclose(matrix, expected, atol=GRID * 43**2)
    assert matrix.index.tolist() == matrix.columns.tolist() == names
    variances = private.dp.pooled_var(names, by=by, **cost)
    np.testing.assert_allclose(variances, np.diagonal(expected), atol=GRID * 43**2)
    assert variances.index.tolist() == names


def test_pooled_moments_leave_out_records_with_any_null(silent):
    names = ["float64", "Int64", "int8"]
    private = protected(VALID, DOMAIN)
    expected = pooled(names, "object", PLAIN)
    np.testing.assert_allclose(private.dp.pooled_cov(names, by="object", epsilon=LARGE), expected, atol=0.1)
    variances = private.dp.pooled_var(names, by="object", epsilon=LARGE)
    np.testing.assert_allclose(variances, np.diagonal(expected), atol=0.1)


def test_releases_after_a_filter_are_those_of_the_filtered_frame(silent):
    private = protected(VALID, DOMAIN).dp.query("int64 >= 7 and group == 'a'")
    kept = PLAIN[(PLAIN["int64"] >= 7) & (PLAIN["group"] == "a")]
    assert private.dp.count(epsilon=1)["rows"] == len(kept)
    assert private.dp.mean("int64", epsilon=LARGE)["int64"] == pytest.approx(kept["int64"].mean(), abs=1e-4)
    assert private.dp.sum("int64", epsilon=LARGE).attrs["dp"]["sensitivity"] == 18
    released = private.dp.value_counts(["group", "int8"], epsilon=1, sort=False)
    assert released.index.levels[0].tolist() == ["a"]
    assert released.sum() == len(kept)


# ---------------------------------------------------------------- only the numbers depend on the data

NEIGHBOURLY = Domain(
    (
        Column("x", "float", nullable=True, lower=-1.0, upper=3.0),
        Column("y", "integer", nullable=True, lower=0, upper=6),
        Column("g", "category", nullable=True, categories=("a", "b"), role="quasi_identifier"),
        Column("s", "boolean", role="sensitive"),
    )
)


def table(rows: list[tuple[Any, ...]], **dtypes: Any) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["x", "y", "g", "s"])
    kinds = {"x": "float64", "y": "float64", "g": "object", "s": "bool", **dtypes}
    return frame.astype(kinds)


ORDINARY = [(0.5, 3, "a", True), (2.5, 6, "b", False), (-1.0, 0, "a", True), (NAN, None, None, False)]
TABLES = {
    "ordinary": table(ORDINARY),
    "one record less": table(ORDINARY[:-1]),
    "without nulls": table(ORDINARY[:-1], y="int64"),
    "one record": table(ORDINARY[:1]),
    "empty": table([]),
    "nulls only": table([(NAN, None, None, True)] * 3),
    "nulls only, no dtype": table([(None, None, None, True)] * 3, x="object", y="object"),
    "one value": table([(3.0, 6, "b", True)] * 40),
    "extension dtypes": table(ORDINARY, x="Float64", y="Int64", g="string", s="boolean"),
    "arrow": table(ORDINARY, x="double[pyarrow]", y="int64[pyarrow]", g="string[pyarrow]", s="bool[pyarrow]"),
    "categories": table(ORDINARY, g=pd.CategoricalDtype(["b", "a"])),
    "observed categories": table(ORDINARY[:1], g=pd.CategoricalDtype(["a"])),
}
RELEASES: dict[str, Callable[[Any], Any]] = {
    "count": lambda dp: dp.count(epsilon=1, rng=1),
    "count of columns": lambda dp: dp.count(["x", "y", "g", "s"], epsilon=1, rng=1),
    "sum": lambda dp: dp.sum(epsilon=1, rng=1),
    "mean": lambda dp: dp.mean(epsilon=1, rng=1),
    "mean, hardly any noise": lambda dp: dp.mean(epsilon=10**5, rng=1),
    "var": lambda dp: dp.var(epsilon=1, rng=1),
    "std": lambda dp: dp.std(epsilon=1, rng=1),
    "std, hardly any noise": lambda dp: dp.std(epsilon=10**5, rng=1),
    "cov": lambda dp: dp.cov(epsilon=1, rng=1),
    "corr": lambda dp: dp.corr(epsilon=1, rng=1),
    "corr, hardly any noise": lambda dp: dp.corr(["x", "y"], epsilon=10**5, rng=1),
    "corr, gaussian": lambda dp: dp.corr(["x", "y"], epsilon=1, delta="0.01", mechanism="gaussian", rng=1),
    "proportion": lambda dp: dp.proportion("g", "a", epsilon=1, rng=1),
    "value_counts": lambda dp: dp.value_counts("g", epsilon=1, sort=False, rng=1),
    "value_counts, shares": lambda dp: dp.value_counts(
        ["g", "y"], epsilon=1, sort=False, normalize=True, rng=1
    ),
    "histogram": lambda dp: dp.histogram("x", epsilon=1, rng=1),
    "histogram of integers": lambda dp: dp.histogram("y", [0, 2.5, 4], epsilon=1, rng=1),
    "crosstab": lambda dp: dp.crosstab("g", "s", epsilon=1, rng=1),
    "crosstab with margins": lambda dp: dp.crosstab(
        "g", ["s", "y"], epsilon=1, margins=True, normalize="index", rng=1
    ),
    "groupby count": lambda dp: dp.groupby(["g", "s"]).count(epsilon=1, rng=1),
    "groupby sum": lambda dp: dp.groupby("g").sum(["x", "y"], epsilon=1, rng=1),
    "groupby mean": lambda dp: dp.groupby("g").mean(["x", "y"], epsilon=1, rng=1),
    "groupby var": lambda dp: dp.groupby(["g", "s"]).var(["x", "y"], epsilon=1, rng=1),
    "pooled_var": lambda dp: dp.pooled_var(["x", "y"], by="g", epsilon=1, rng=1),
    "pooled_cov": lambda dp: dp.pooled_cov(["x", "y"], by="g", epsilon=1, rng=1),
}


def public_facts(released: Any) -> Any:
    """All of a release but its numbers and what is computed from them."""
    axes = [(named(axis), axis.dtype, axis.names) for axis in released.axes]
    dtypes = released.dtypes.tolist() if isinstance(released, pd.DataFrame) else [released.dtype]
    facts = {
        key: value
        for key, value in released.attrs["dp"].items()
        if key not in ("error", "fingerprint", "dr_ha", "budget")
    }
    return (
        type(released),
        released.shape,
        axes,
        dtypes,
        getattr(released, "name", None),
        facts,
        sorted(released.attrs["dp"]),
        sorted(released.attrs["dp"]["error"]),
        sorted(released.attrs),
    )


@lru_cache
def neighbourly(kind: str, query: str | None) -> pd.DataFrame:
    private = protected(TABLES[kind], NEIGHBOURLY)
    return private if query is None else private.dp.query(query)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize("query", [None, "x >= 0 or s"])
def test_all_but_the_numbers_of_a_release_is_the_same_for_every_table(name, query):
    """No dtype, label, error or warning tells an empty table from a full one."""
    seen = {}
    for kind in TABLES:
        private = neighbourly(kind, query)
        released = RELEASES[name](private.dp)
        seen[kind] = public_facts(released)
        json.dumps(released.attrs["dp"], allow_nan=False)
        assert released.dp.verify()
        released.dp.interval()
    assert all(facts == seen["ordinary"] for facts in seen.values())


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("mechanism", ["laplace", "geometric", "gaussian"])
def test_the_order_of_released_counts_is_the_order_of_the_released_numbers(mechanism):
    delta = "0.01" if mechanism == "gaussian" else 0
    for seed in range(5):
        private = protected(TABLES["one value"], NEIGHBOURLY)
        released = private.dp.value_counts("y", epsilon=0.5, delta=delta, mechanism=mechanism, rng=seed)
        unsorted = private.dp.value_counts(
            "y", epsilon=0.5, delta=delta, mechanism=mechanism, rng=seed, sort=False
        )
        assert (np.diff(released) <= 0).all()
        assert dict(zip(named(released.index), released, strict=True)) == dict(
            zip(named(unsorted.index), unsorted, strict=True)
        )


# ---------------------------------------------------------------- what a release says about itself

SURVEY = Domain(
    (
        Column("age", "integer", lower=18, upper=90),
        Column("pay", "float", nullable=True, lower=0.0, upper=8.0),
        Column("town", "category", categories=("a", "b"), role="quasi_identifier"),
        Column("ill", "boolean", role="sensitive"),
    )
)
SURVEYED = pd.DataFrame(
    {
        "age": np.arange(20) + 30,
        "pay": [NAN, *np.linspace(1, 7, 19)],
        "town": ["a", "b"] * 10,
        "ill": [True, False, False, False] * 5,
    }
)


def test_metadata_states_sensitivity_scale_and_split_of_every_part():
    private = SURVEYED.dp.protect(SURVEY, epsilon=100)

    def facts(released: Any) -> tuple[Any, Any, Any]:
        stored = released.attrs["dp"]
        return stored["sensitivity"], stored["scale"], stored["split"]

    sensitivity, scale, split = facts(private.dp.count(epsilon=0.5))
    assert (sensitivity, scale, split) == (1, 2, {"rows": 1})
    sensitivity, scale, split = facts(private.dp.sum(["age", "pay"], epsilon=1, split={"age": 3, "pay": 1}))
    assert split == {"sum of age": 0.75, "sum of pay": 0.25}
    assert sensitivity == {"sum of age": 90, "sum of pay": 8}
    assert scale == pytest.approx({"sum of age": 120, "sum of pay": 32}, rel=1e-9)
    sensitivity, scale, split = facts(private.dp.mean("age", epsilon=1))
    assert sensitivity == {"count": 1, "sum of age": 36}  # centred: half of 90 - 18
    assert scale == pytest.approx({"count": 2, "sum of age": 72}, rel=1e-9)
    assert split == {"count": 0.5, "sum of age": 0.5}
    split = private.dp.mean(["age", "pay"], epsilon=1).attrs["dp"]["split"]
    assert split == {"count": 0.25, "count of pay": 0.25, "sum of age": 0.25, "sum of pay": 0.25}
    sensitivity, _, split = facts(private.dp.var("age", epsilon=1))
    assert sensitivity == pytest.approx({"count": 1, "sum of age": 36, "squares of age": 36**2 / 2}, rel=1e-4)
    assert split == pytest.approx(dict.fromkeys(split, 1 / 3))
    sensitivity, _, split = facts(private.dp.cov(["age", "pay"], epsilon=1))
    assert sensitivity["products of age, pay"] == pytest.approx(36 * 4, rel=1e-4)
    assert split == pytest.approx(dict.fromkeys(split, 1 / 6))
    assert len(split) == 6
    sensitivity, scale, split = facts(private.dp.crosstab("town", "ill", epsilon=0.5))
    assert (sensitivity, scale, split) == (1, 2, {"counts": 1})
    sensitivity, _, split = facts(private.dp.groupby("town").var("age", epsilon=1))
    assert sensitivity == pytest.approx({"count": 1, "sum of age": 36, "squares of age": 648}, rel=1e-4)


def test_metadata_under_replacement_and_for_gaussian_noise():
    private = SURVEYED.dp.protect(SURVEY, epsilon=100, delta="0.1", neighbors="replace_one")
    assert private.dp.mean("age", epsilon=1).attrs["dp"]["sensitivity"] == pytest.approx(72 / 20, rel=1e-6)
    assert private.dp.var("age", epsilon=1).attrs["dp"]["sensitivity"] == pytest.approx(72**2 / 20, rel=1e-4)
    assert private.dp.sum("age", epsilon=1).attrs["dp"]["sensitivity"] == 72
    assert private.dp.sum("pay", epsilon=1).attrs["dp"]["sensitivity"] == 8
    assert private.dp.crosstab("town", "ill", epsilon=1).attrs["dp"]["sensitivity"] == 2
    assert private.dp.crosstab("town", "ill", epsilon=0.5).attrs["dp"]["scale"] == 4
    released = private.dp.crosstab("town", "ill", epsilon=1, delta="1e-5", mechanism="gaussian")
    assert released.attrs["dp"]["sensitivity"] == pytest.approx(math.sqrt(2))
    assert released.attrs["dp"]["delta"] == 1e-5
    pooled_var = private.dp.pooled_var("age", by="town", epsilon=1).attrs["dp"]
    assert pooled_var["sensitivity"] == pytest.approx(72**2 / 18, rel=1e-4)
    groups = private.dp.groupby("town").mean("age", epsilon=1).attrs["dp"]
    assert groups["sensitivity"] == {"count": 2, "sum of age": 72}


def test_metadata_names_the_call_and_the_budget():
    private = SURVEYED.dp.protect(SURVEY, epsilon=2)
    stored = private.dp.crosstab("town", "ill", epsilon="0.5", mechanism="laplace", rng=3).attrs["dp"]
    assert stored["statistic"] == "crosstab"
    assert stored["columns"] == ["town", "ill"]
    assert (stored["mechanism"], stored["epsilon"], stored["delta"]) == ("laplace", 0.5, 0)
    assert stored["neighbors"] == "add_remove"
    assert stored["budget"] == {"total": [2, 0], "spent": [0.5, 0]}
    assert stored["seeded"] is True
    assert stored["error"]["standard_error"] == pytest.approx(2 * math.sqrt(2), rel=1e-9)
    assert stored["error"]["plus_minus"] == pytest.approx(2 * math.log(20), rel=1e-9)
    assert private.dp.mean("age", epsilon=0.5).attrs["dp"]["seeded"] is False
    assert private.dp.budget.entries["release"].tolist() == ["crosstab of ill by town", "mean of age"]
    assert private.dp.budget.left == (1, 0)


def test_errors_of_sorted_counts_stay_with_their_numbers():
    private = protected(SURVEYED, SURVEY)
    for normalize in (False, True):
        options = {"epsilon": 0.3, "normalize": normalize, "rng": 5}
        released = private.dp.value_counts("age", **options)
        unsorted = private.dp.value_counts("age", sort=False, **options)
        errors = released.dp.interval()["standard_error"]
        expected = unsorted.dp.interval()["standard_error"].reindex(errors.index)
        pd.testing.assert_series_equal(errors, expected)


@pytest.mark.parametrize(
    "release",
    [
        lambda dp: dp.mean(["a", "b"], epsilon=1).index,
        lambda dp: dp.value_counts("k", epsilon=1, sort=False).index,
        lambda dp: dp.crosstab("k", "k2", epsilon=1).columns,
    ],
    ids=["columns", "cells", "table"],
)
@pytest.mark.parametrize(
    "cells",
    [lambda labels: labels.values, lambda labels: pd.Series(labels, copy=False).array],
    ids=["values", "array"],
)
def test_a_label_that_is_written_into_a_release_reaches_no_other_release(release, cells):
    texts = ("u", "v")
    columns = (Column("a", "boolean"), Column("b", "boolean"))
    columns += tuple(Column(name, "category", categories=texts) for name in ("k", "k2"))
    frame = pd.DataFrame({"a": [True, False], "b": True, "k": ["u", "v"], "k2": "u"})
    private = protected(frame, Domain(columns))
    labels = release(private.dp)
    before = labels.tolist()
    with contextlib.suppress(ValueError):  # pandas 3 refuses to write into the values
        cells(labels)[0] = "w"
    assert release(private.dp).tolist() == before


# ---------------------------------------------------------------- refusals


def test_a_proportion_without_its_label_hints_at_the_labels():
    private = SURVEYED.dp.protect(SURVEY, epsilon=2)
    with pytest.raises(ParameterError) as caught:
        private.dp.proportion("town", epsilon=1)
    first = private.dp.domain["town"].categories[0]
    assert f"private.dp.proportion('town', {first!r}, epsilon=0.1)" in caught.value.hint
    assert all(repr(label) in caught.value.hint for label in private.dp.domain["town"].categories)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda dp: dp.mean("age", epsilon=3), BudgetExceeded),
        (lambda dp: dp.mean("age", epsilon=0), ParameterError),
        (lambda dp: dp.mean("age", epsilon=1, mechanism="geometric"), ParameterError),
        (lambda dp: dp.mean("age", epsilon=1, mechanism="normal"), ParameterError),
        (lambda dp: dp.mean("age", epsilon=1, mechanism="gaussian"), ParameterError),
        (lambda dp: dp.mean("age", epsilon=1, delta="1e-6"), ParameterError),
        (lambda dp: dp.mean("age", epsilon=1, rng="seed"), ParameterError),
        (lambda dp: dp.mean("town", epsilon=1), DeclarationError),
        (lambda dp: dp.mean("nothing", epsilon=1), DeclarationError),
        (lambda dp: dp.mean(["age", "age"], epsilon=1), ParameterError),
        (lambda dp: dp.mean([], epsilon=1), ParameterError),
        (lambda dp: dp.mean(["age", "pay"], epsilon=1, split={"age": 1}), ParameterError),
        (lambda dp: dp.mean(["age", "pay"], epsilon=1, split={"age": 1, "pay": 0}), ParameterError),
        (lambda dp: dp.cov("age", epsilon=1), ParameterError),
        (lambda dp: dp.proportion("town", "z", epsilon=1), ParameterError),
        (lambda dp: dp.proportion(["town", "ill"], "a", epsilon=1), ParameterError),
        (lambda dp: dp.value_counts("pay", epsilon=1), DeclarationError),
        (lambda dp: dp.crosstab("town", ["ill", "town"], epsilon=1), ParameterError),
        (lambda dp: dp.crosstab("town", "ill", epsilon=1, normalize="rows"), ParameterError),
        (lambda dp: dp.histogram("age", 0, epsilon=1), ParameterError),
        (lambda dp: dp.histogram("age", [3, 3], epsilon=1), ParameterError),
        (lambda dp: dp.histogram("age", [3, NAN, 5], epsilon=1), ParameterError),
        (lambda dp: dp.histogram(["age", "pay"], epsilon=1), ParameterError),
        (lambda dp: dp.pooled_var("age", by="age", epsilon=1), ParameterError),
        (lambda dp: dp.pooled_cov(["age", "town"], by="ill", epsilon=1), DeclarationError),
        (lambda dp: dp.groupby("pay").count(epsilon=1), DeclarationError),
        (lambda dp: dp.groupby("town").mean("town", epsilon=1), ParameterError),
        (lambda dp: dp.groupby("town").mean("age", epsilon=1, mechanism="geometric"), ParameterError),
    ],
)
def test_a_refused_call_costs_nothing(call, error):
    private = SURVEYED.dp.protect(SURVEY, epsilon=2)
    with pytest.raises(error):
        call(private.dp)
    assert private.dp.budget.spent == (0, 0)
    assert private.dp.budget.entries.empty


def test_the_number_of_rows_is_public_under_replacement():
    private = SURVEYED.dp.protect(SURVEY, epsilon=2, neighbors="replace_one")
    with pytest.raises(ParameterError, match="public"):
        private.dp.count(epsilon=1)
    assert private.dp.budget.spent == (0, 0)
    assert private.dp.query("age >= 40").dp.count(epsilon=1).attrs["dp"]["sensitivity"] == 1


@pytest.mark.full(keep=8)
@pytest.mark.parametrize("epsilon", ["1e-5", "1e5"])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", RELEASES)
def test_any_epsilon_between_a_hundred_thousandth_and_a_hundred_thousand(name, neighbors, epsilon):
    """A charged release is published."""
    if name == "count" and neighbors == "replace_one":
        return  # public
    private = protected(TABLES["one value"], NEIGHBOURLY, neighbors=neighbors)

    class Scaled:
        """The accessor with another epsilon."""

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, method: str) -> Any:
            found = getattr(self.inner, method)
            if method == "groupby":
                return lambda by: Scaled(found(by))
            return lambda *args, **options: found(*args, **{**options, "epsilon": epsilon})

    try:
        released = RELEASES[name](Scaled(private.dp))
    except ParameterError:  # a scale that cannot be drawn is refused like any other argument
        assert private.dp.budget.spent == (0, 0)
        return
    assert released.attrs["dp"]["epsilon"] == float(epsilon)
    assert private.dp.budget.spent[0] == float(epsilon)


@pytest.mark.full(keep=7)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("ends", [(-1e89, 1e89), (0.0, 1e-89), (1e80, 2e80)])
@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "cov", "corr", "pooled_var", "pooled_cov"])
def test_bounds_of_any_size_that_may_be_declared(name, ends, mechanism):
    lower, upper = ends
    columns = [Column(name, "float", lower=lower, upper=upper) for name in "xy"]
    domain = Domain((*columns, Column("g", "boolean")))
    share = np.linspace(0, 1, 50)
    frame = pd.DataFrame({"x": lower + share * (upper - lower), "y": upper - share * (upper - lower)})
    frame = frame.clip(lower, upper).assign(g=[True, False] * 25)
    options = {"by": "g"} if "pooled" in name else {}
    private = protected(frame, domain)
    delta = "0.01" if mechanism == "gaussian" else 0
    released = getattr(private.dp, name)(
        ["x", "y"], epsilon=1, delta=delta, mechanism=mechanism, rng=1, **options
    )
    assert released.shape[0] == 2
    json.dumps(released.attrs["dp"], allow_nan=False)


# ---------------------------------------------------------------- disclosure risk


def local_risk(counts: list[int], empty: Callable[[float], float]) -> float:
    """The chance that a noisy cell shows one label, and one that it holds.

    ``empty``: the chance that a count reads as none.
    """
    hidden = [empty(count) for count in counts]
    return sum(
        (1 - hidden[place]) * math.prod(hidden[:place] + hidden[place + 1 :])
        for place, count in enumerate(counts)
        if count > 0
    )


def expected_risk(counts: list[int], empty: Callable[[float], float]) -> float:
    """Its mean over multinomial counts of the same size and shares, by listing them."""
    size = sum(counts)
    total = 0.0
    for drawn in itertools.product(range(size + 1), repeat=len(counts)):
        if sum(drawn) == size:
            ways = math.factorial(size)
            for number, count in zip(drawn, counts, strict=True):
                ways = ways / math.factorial(number) * (count / size) ** number
            total += ways * local_risk(list(drawn), empty)
    return total


def geometric_empty(epsilon: float, sensitivity: int) -> Callable[[float], float]:
    """P(count + noise < 1/2) for P(noise = z) proportional to exp(-epsilon |z| / sensitivity)."""
    ratio = math.exp(-epsilon / sensitivity)
    return lambda count: ratio**count / (1 + ratio) if count > 0 else 1 - ratio / (1 + ratio)


def laplace_empty(epsilon: float, sensitivity: int) -> Callable[[float], float]:
    scale = sensitivity / epsilon
    return lambda count: (
        math.exp((0.5 - count) / scale) / 2 if count > 0.5 else 1 - math.exp(-(0.5 - count) / scale) / 2
    )


def gaussian_empty(sigma: float) -> Callable[[float], float]:
    return lambda count: math.erfc((count - 0.5) / sigma / math.sqrt(2)) / 2


RISKY = Domain(
    (
        Column("q", "integer", lower=0, upper=4, role="quasi_identifier"),
        Column("s", "category", categories=("u", "v", "w"), role="sensitive"),
    )
)
COUNTS = [[3, 0, 0], [2, 1, 1], [0, 0, 0], [0, 4, 1], [1, 0, 0]]
RISKS = pd.DataFrame(
    [
        (row, label)
        for row, counts in enumerate(COUNTS)
        for label, n in zip("uvw", counts, strict=True)
        for _ in range(n)
    ],
    columns=["q", "s"],
)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("mechanism", ["laplace", "geometric", "gaussian"])
def test_the_curators_risk_is_that_of_the_confidential_counts(mechanism, neighbors):
    private = protected(RISKS, RISKY, neighbors=neighbors)
    moved = 1 if neighbors == "add_remove" else 2
    filled = [counts for counts in COUNTS if sum(counts)]
    delta = "1e-3" if mechanism == "gaussian" else 0
    for epsilon in (0.3, 1.0, 5.0):
        if mechanism == "gaussian":
            empty = gaussian_empty(
                private.dp.crosstab("q", "s", epsilon=epsilon, delta=delta, mechanism=mechanism).attrs["dp"][
                    "scale"
                ]
            )
        else:
            empty = {"laplace": laplace_empty, "geometric": geometric_empty}[mechanism](epsilon, moved)
        risks = [local_risk(counts, empty) for counts in filled]
        sizes = [sum(counts) for counts in filled]
        for average, expected in (
            ("cells", sum(risks) / len(risks)),
            ("records", sum(r * n for r, n in zip(risks, sizes, strict=True)) / sum(sizes)),
        ):
            found = private.dp.dr_ha("q", "s", epsilon, mechanism=mechanism, delta=delta, average=average)
            assert found == pytest.approx(expected, rel=1e-6)
    several = private.dp.dr_ha("q", "s", [0.3, 1], mechanism=mechanism, delta=delta)
    assert several.index.tolist() == [0.3, 1.0]
    assert several.iloc[1] == private.dp.dr_ha("q", "s", 1, mechanism=mechanism, delta=delta)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("mechanism", ["laplace", "geometric"])
def test_the_risk_that_is_published_follows_from_the_released_counts(mechanism, neighbors):
    private = protected(RISKS, RISKY, neighbors=neighbors)
    moved = 1 if neighbors == "add_remove" else 2
    empty = {"laplace": laplace_empty, "geometric": geometric_empty}[mechanism](1.0, moved)
    for seed in range(4):
        released = private.dp.crosstab("q", "s", epsilon=1, mechanism=mechanism, rng=seed)
        seen = [[max(round(count), 0) for count in row] for row in released.to_numpy().tolist()]
        filled = [counts for counts in seen if sum(counts)]
        risks = [expected_risk(counts, empty) for counts in filled]
        sizes = [sum(counts) for counts in filled]
        stored = released.attrs["dp"]["dr_ha"]
        assert (stored["measure"], stored["source"]) == ("expected", "released counts")
        assert stored["by_cells"] == pytest.approx(sum(risks) / len(risks), rel=1e-9)
        records = sum(r * n for r, n in zip(risks, sizes, strict=True)) / sum(sizes)
        assert stored["by_records"] == pytest.approx(records, rel=1e-9)


def test_risk_is_published_only_where_sensitive_labels_meet_quasi_identifiers(silent):
    private = protected(SURVEYED, SURVEY)
    assert "dr_ha" in private.dp.crosstab("town", "ill", epsilon=1).attrs["dp"]
    assert "dr_ha" not in private.dp.crosstab("ill", "town", epsilon=1).attrs["dp"]
    assert "dr_ha" not in private.dp.crosstab(["town", "age"], "ill", epsilon=1).attrs["dp"]
    nobody = protected(SURVEYED.iloc[:0], SURVEY)
    assert nobody.dp.crosstab("town", "ill", epsilon=1).attrs["dp"]["dr_ha"] is None
    with pytest.raises(ParameterError):
        private.dp.dr_ha("town", "town", 1)
    assert nobody.dp.budget.spent == (1, 0)


@pytest.mark.parametrize("mechanism", ["laplace", "geometric"])
def test_large_cells_have_no_risk_and_raise_no_warning(mechanism):
    frame = pd.DataFrame({"q": [0, 1] * 3000, "s": ["u", "v", "w"] * 2000})
    private = protected(frame, RISKY)
    released = private.dp.crosstab("q", "s", epsilon=1, mechanism=mechanism, rng=2)
    assert 0 <= released.attrs["dp"]["dr_ha"]["by_records"] < 0.01
    exact = private.dp.dr_ha("q", "s", 1, mechanism=mechanism)
    assert exact == pytest.approx(0, abs=1e-100)


def test_the_curators_view_costs_nothing_and_stays_out_of_releases():
    private = protected(RISKS, RISKY)
    private.dp.dr_ha("q", "s", 1)
    private.dp.quality()
    assert private.dp.budget.spent == (0, 0)
    assert Fraction(private.dp.budget.left[0]) == 10**9


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("bounding", [None, "clamp", "truncated"])
def test_sums_far_from_zero_are_as_exact_as_their_interval_says(bounding):
    """With a public number of rows the terms are taken from the middle of their bounds."""
    values = pd.DataFrame({"x": np.full(100_000, 1e6 + 0.3001)})
    domain = Domain((Column("x", "float", lower=1e6, upper=1e6 + 1),))
    private = values.dp.protect(domain, epsilon=10**9, neighbors="replace_one")
    off = []
    for seed in range(40):
        released = private.dp.sum("x", epsilon=10, bounding=bounding, rng=seed)
        off.append(abs(float(released.iloc[0]) - math.fsum(values["x"])))
    half = released.attrs["dp"]["error"]["plus_minus"]
    assert half < 0.6  # three to six scales of 0.1
    # 95 % of forty: more than eight outside is a chance of one in ten thousand
    assert sum(one > half for one in off) <= 8
    # within every declared bound the answer to a very large epsilon is the sum itself
    exact = private.dp.sum("x", epsilon=10**6, rng=1)
    assert float(exact.iloc[0]) == pytest.approx(math.fsum(values["x"]), abs=1e-3)
