"""Contingency tables: those of pandas where no noise is added, and the disclosure risks of their counts."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.errors import ParameterError
from pdprivacy.mechanism import Geometric, Laplace
from pdprivacy.risk.plausible_counts import plausible
from tests.support.every_dtype import DOMAIN, LABELLED, VALID, cells_of, named, protected
from tests.support.surveys import SURVEY, SURVEYED

# ---------------------------------------------------------------- contingency tables


def pandas_table(index: list[str], columns: list[str], **options: Any) -> pd.DataFrame:
    return pd.crosstab(
        [LABELLED[name] for name in index], [LABELLED[name] for name in columns], dropna=False, **options
    )


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


# ---------------------------------------------------------------- disclosure risk


def local_risk(counts: list[int], empty: Callable[[float], float]) -> float:
    """The chance that a noisy cell shows one label, and one that it holds.

    ``empty``: the chance that a count reads as none.
    """
    hidden = [empty(count) for count in counts]
    return sum(
        (1 - hidden[position]) * math.prod(hidden[:position] + hidden[position + 1 :])
        for position, count in enumerate(counts)
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
            value = private.dp.dr_ha("q", "s", epsilon, mechanism=mechanism, delta=delta, average=average)
            assert value == pytest.approx(expected, rel=1e-6)
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
        noise = {"laplace": Laplace, "geometric": Geometric}[mechanism](epsilon=1, sensitivity=moved)
        drawn = plausible(released.to_numpy(), noise.std, noise.cdf).reshape(-1, released.shape[1])
        filled = [counts for counts in drawn.tolist() if sum(counts)]
        risks = [expected_risk(counts, empty) for counts in filled]
        sizes = [sum(counts) for counts in filled]
        stored = released.attrs["dp"]["dr_ha"]
        assert (stored["measure"], stored["source"]) == ("expected", "released counts")
        assert stored["by_cells"] == pytest.approx(sum(risks) / len(risks), rel=1e-9)
        records = sum(r * n for r, n in zip(risks, sizes, strict=True)) / sum(sizes)
        assert stored["by_records"] == pytest.approx(records, rel=1e-9)


def test_risk_is_published_where_sensitive_labels_meet_other_columns(silent):
    private = protected(SURVEYED, SURVEY)
    assert "by_records" in private.dp.crosstab("town", "ill", epsilon=1).attrs["dp"]["dr_ha"]
    assert "by_records" in private.dp.crosstab("ill", "town", epsilon=1).attrs["dp"]["dr_ha"]
    assert "by_records" in private.dp.crosstab(["town", "age"], "ill", epsilon=1).attrs["dp"]["dr_ha"]
    assert "by_records" in private.dp.crosstab("age", "ill", epsilon=1).attrs["dp"]["dr_ha"]
    assert "dr_ha" not in private.dp.crosstab("town", "age", epsilon=1).attrs["dp"]
    nobody = protected(SURVEYED.iloc[:0], SURVEY)
    unknown = nobody.dp.crosstab("town", "ill", epsilon=1).attrs["dp"]["dr_ha"]
    assert unknown["by_records"] is None
    assert unknown["reason"] == "No count is positive."
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


@pytest.mark.parametrize("index", ["b", ["b", "n"], "n"])
def test_a_declared_label_is_no_name_of_the_margins(index):
    """As in pandas, where two rows of one name would not be told apart."""
    labels = {"a": ("All", "x"), "b": ("u", "v"), "n": (1, 2)}
    columns = [Column(name, "category", name == "n", categories=each) for name, each in labels.items()]
    frame = pd.DataFrame({"a": ["All", "x"], "b": ["u", "v"], "n": pd.array([1, None], dtype="Int64")})
    private = frame.dp.protect(Domain(tuple(columns)), epsilon=100)
    for sides in ((index, "a"), ("a", index)):
        with pytest.raises(ValueError, match="margins"):
            pd.crosstab(
                *(frame[side] if side != ["b", "n"] else [frame.b, frame.n] for side in sides), margins=True
            )
        with pytest.raises(
            ParameterError, match="'margins_name' must be no declared label of column 'a'"
        ) as caught:
            private.dp.crosstab(*sides, epsilon=1, margins=True)
        hint = re.fullmatch("margins_name='(.*)'.", caught.value.hint)[1]
        assert private.dp.budget.entries.empty
        table = private.dp.crosstab(*sides, epsilon=10**-3, margins=True, margins_name=hint)
        assert all(axis[-1] in (hint, (hint, "")) for axis in table.axes)
        assert not private.dp.crosstab(*sides, epsilon=1).empty
        private = frame.dp.protect(Domain(tuple(columns)), epsilon=100)
    with pytest.raises(ParameterError, match="'margins_name' must be a string"):
        private.dp.crosstab("b", "n", epsilon=1, margins=True, margins_name=3)


def test_whole_labels_beside_a_null_stay_whole(tmp_path):
    domain = Domain(
        (
            Column("n", "category", nullable=True, categories=(1, 2)),
            Column("m", "integer", nullable=True, lower=3, upper=5),
            Column("b", "category", categories=("u", "v")),
        )
    )
    frame = pd.DataFrame({"n": [1.0, None], "m": pd.array([4, None], dtype="Int64"), "b": ["u", "v"]})
    private = frame.dp.protect(domain, epsilon=100)
    released = {
        "counts": private.dp.value_counts("n", epsilon=1, sort=False),
        "several": private.dp.value_counts(["b", "n"], epsilon=1, sort=False),
        "table": private.dp.crosstab("n", "m", epsilon=1),
        "margins": private.dp.crosstab(["b", "m"], "n", epsilon=1, margins=True),
        "groups": private.dp.groupby(["n", "b"]).sum("m", epsilon=1),
    }
    for name, table in released.items():
        for axis in table.axes:
            for level in range(axis.nlevels):
                numbers = [label for label in axis.get_level_values(level) if not isinstance(label, str)]
                kinds = {type(label) for label in numbers if not pd.isna(label)}
                assert all(issubclass(kind, int | np.integer) for kind in kinds), (name, kinds)
        for suffix in (".csv", ".json"):
            table.dp.save(tmp_path / f"r{suffix}")
            back = pdprivacy.read_release(tmp_path / f"r{suffix}")
            for mine, other in zip(table.axes, back.axes, strict=True):
                pd.testing.assert_index_equal(mine, other, exact=True)
            assert not re.search(
                r"\b[1-4]\.0\b", (tmp_path / f"r{suffix}").read_text().partition("dp_shape")[2]
            )
    released["counts"].dp.save(tmp_path / "r.csv")
    assert [line.split(",")[0] for line in (tmp_path / "r.csv").read_text().split()] == ["n", "1", "2", ""]
    assert released["counts"].loc[1] == released["counts"].iloc[0]
    assert released["counts"].sort_index().index.tolist()[:2] == [1, 2]
