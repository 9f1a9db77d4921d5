"""New columns: their names, bounds and nulls, and expressions that use those before them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pdprivacy import Column, Domain
from pdprivacy.core import rows as transform
from pdprivacy.errors import QueryError

MOST = float(np.finfo(np.float64).max)


def test_a_number_that_is_none_becomes_null_where_that_is_declared():
    domain = Domain(
        (Column("x", "float", lower=0, upper=1), Column("y", "float", lower=0, upper=1), Column("z", "float"))
    )
    frame = pd.DataFrame({"x": [0.0, 1.0, -0.0], "y": [0.0, 0.0, 1.0], "z": [MOST, -MOST, 2.0]})
    for text, nullable, values in [
        ("x / y", True, [None, 9.0, -0.0]),
        ("(1 + x) / y", False, [9.0, 9.0, 1.0]),
        ("z * 2", False, [9.0, -9.0, 4.0]),
        ("z * 2 + z", False, [9.0, -9.0, 6.0]),
        ("z * 2 - z * 4", True, [None, None, -4.0]),
        ("x * (z * 2)", True, [None, -9.0, -0.0]),
        ("z % 3", False, [MOST % 3, -MOST % 3, 2.0]),
        ("x % y", True, [None, None, 0.0]),
    ]:
        step = transform.assign(domain, {"n": text}, {"n": (-9, 9)})
        assert step.domain["n"].nullable is nullable, text
        result = step.apply(frame)["n"]
        assert [None if pd.isna(cell) else cell for cell in result] == values, text


def test_the_bounds_given_are_met_by_clipping():
    domain = Domain((Column("n", "integer", lower=0, upper=100),))
    step = transform.assign(domain, {"m": "n - 50", "h": "n / 2"}, {"m": (-10, None), "h": (60, 70)})
    assert (step.domain["m"].lower, step.domain["m"].upper) == (-10, 50)
    assert (step.domain["h"].lower, step.domain["h"].upper) == (60, 60)
    result = step.apply(pd.DataFrame({"n": [0, 45, 100]}))
    assert result["m"].tolist() == [-10, -5, 50]
    assert result["m"].dtype == np.int64
    assert result["h"].tolist() == [60.0] * 3


def test_pandas_warns_of_no_fragments_however_many_columns_are_new():
    domain = Domain((Column("a", "integer", lower=0, upper=9),))
    step = transform.assign(domain, {f"n{index}": f"a + {index}" for index in range(150)})
    result = step.apply(pd.DataFrame({"a": [1, 2]}, index=[5, 5]))
    assert tuple(result.columns) == step.domain.names
    assert result["n149"].tolist() == [150, 151]
    assert result.index.tolist() == [5, 5]


@pytest.mark.parametrize("new", ["u", ("v", "w"), ("v", "w", "x")])
def test_a_new_name_stands_beside_names_of_several_levels(new):
    frame = pd.DataFrame({("a", "x"): [1, 2], ("a", "y"): [3, 4]})
    domain = Domain(tuple(Column(name, "integer", lower=0, upper=9) for name in frame.columns))
    result = transform.rename(domain, {("a", "x"): new}).apply(frame)
    assert (result[new].tolist(), result[("a", "y")].tolist()) == ([1, 2], [3, 4])


def test_names_that_are_no_python_names():
    domain = Domain((Column("a b", "integer", lower=0, upper=2), Column(("x", 1), "float", lower=0, upper=1)))
    frame = pd.DataFrame([[1, 0.5]]).set_axis(pd.Index(["a b", ("x", 1)], tupleize_cols=False), axis=1)
    step = transform.assign(domain, {"c d": "`a b` * 3"})
    assert step.text == "assign(**{'c d': '`a b` * 3'})"
    assert step.apply(frame)["c d"].tolist() == [3]
    assert transform.select(domain, ("x", 1)).domain.names == (("x", 1),)
    assert transform.clip(domain, upper={("x", 1): 0.25}).apply(frame)[("x", 1)].tolist() == [0.25]


def test_later_expressions_see_earlier_ones_and_refusals_name_them():
    domain = Domain((Column("a", "integer", lower=0, upper=2), Column("b", "integer", lower=0, upper=1)))
    step = transform.assign(domain, {"c": "a + 1", "a": "c * 2", "d": "a + b"})
    assert step.domain.names == ("a", "b", "c", "d")
    assert step.domain["d"].bounds("mean") == (2, 7)
    assert step.apply(pd.DataFrame({"a": [0, 2], "b": [1, 0]})).to_numpy().tolist() == [
        [2, 1, 1, 3],
        [6, 0, 3, 6],
    ]
    with pytest.raises(QueryError, match="declared: 'a', 'b', 'c'"):
        transform.assign(domain, {"c": "a + 1", "d": "e"})


def test_a_column_of_the_frame_is_not_one_that_the_same_call_replaces():
    domain = Domain(tuple(Column(name, "integer", lower=0, upper=20) for name in ("a", "b")))
    frame = pd.DataFrame({"a": [1, 2], "b": [19, 3]})
    private = frame.dp.protect(domain, epsilon="1e7")
    with pytest.raises(QueryError, match="reads column 'a', which the same call replaces before"):
        private.assign(a=private["b"], z=private["a"])
    assigned = private.assign(z=private["a"], a=private["b"])
    assert assigned.query("a > 9 and z < 2").dp.count(epsilon="1e6").item() == 1
    assigned = private.assign(a="b", z="a")  # texts read what stands before them
    assert assigned.query("a == z").dp.count(epsilon="1e6").item() == 2
