"""Declared transforms: steps that treat each record by itself, and so keep the guarantee and cost nothing."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import pandas as pd

from pdprivacy import transform
from pdprivacy.protection import Protected, ProtectedFrame, apply
from pdprivacy.releases.call import Labels

__all__ = ["assign", "clip", "cut", "dropna", "fillna", "query", "recode", "select"]


def query(protected: Protected, expr: str) -> pd.DataFrame | ProtectedFrame:
    """A protected frame of the records that meet a declared condition; costs nothing by itself.

    The grammar of `DataFrame.query` cut down to what looks at one record: comparisons of declared
    columns with constants, ``and``, ``or``, ``not``, ``in``, ``.isna()``. The domain is narrowed
    accordingly. The number of rows that meet it is private, whatever was public before.

    Raises QueryError for everything else, with the reason.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.dp.query("age >= 30 and age < 65").dp.domain["age"].bounds("mean")
    (30.0, 64.0)
    """
    return apply(protected, transform.query(protected.domain, expr), condition=expr)


def clip(
    protected: Protected,
    lower: float | Mapping[Hashable, float] | None = None,
    upper: float | Mapping[Hashable, float] | None = None,
    *,
    columns: Labels | None = None,
) -> pd.DataFrame | ProtectedFrame:
    """A protected frame with numbers moved into public bounds, as `DataFrame.clip`, and bounds declared so.

    ``lower``, ``upper``: a number for all numeric columns (or ``columns``), or a mapping from column to
    number. Narrower bounds need less noise, and bias what lies outside.

    Raises ParameterError for bounds that leave nothing, or are not those of the column's kind.

    >>> import pandas as pd, pandera.pandas as pa
    >>> schema = pa.DataFrameSchema({"age": pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})})
    >>> private = pd.DataFrame({"age": [31, 87]}).dp.protect(schema, epsilon=1)
    >>> private.dp.clip(upper=80).dp.domain["age"].bounds("mean")
    (0.0, 80.0)
    """
    return apply(protected, transform.clip(protected.domain, lower, upper, columns=columns))


def assign(
    protected: Protected, /, *, bounds: Mapping[str, Sequence[float]] | None = None, **expressions: str
) -> pd.DataFrame | ProtectedFrame:
    """A protected frame with new columns: arithmetic of declared ones, as `DataFrame.assign`.

    ``expressions``: per new column, text such as ``"capital_gain - capital_loss"`` (``+ - * / // % **``,
    ``abs``, constants, declared columns; a condition gives truth values). Functions and Series are refused:
    they may look at other records. The bounds of a new column follow from those of its columns; ``bounds``
    states narrower public ones by column, into which values are clipped, and is needed where a denominator
    may be zero.

    Raises QueryError for an expression that looks at other records or at undeclared columns.

    >>> import pandas as pd, pandera.pandas as pa
    >>> pay = pa.Column(float, pa.Check.in_range(0, 100), metadata={"dp": {}})
    >>> private = pd.DataFrame({"pay": [10.0, 20.0]}).dp.protect(pa.DataFrameSchema({"pay": pay}), epsilon=1)
    >>> private.dp.assign(yearly="12 * pay").dp.domain["yearly"].bounds("mean")
    (0.0, 1200.0)
    """
    return apply(protected, transform.assign(protected.domain, expressions, bounds))


def cut(
    protected: Protected,
    column: Hashable,
    bins: Sequence[float],
    *,
    right: bool = True,
    labels: Sequence[Any] | None = None,
    include_lowest: bool = False,
) -> pd.DataFrame | ProtectedFrame:
    """A protected frame whose ``column`` holds the interval of its number, as `pandas.cut` with edges.

    Labels are texts such as ``"(18, 30]"``, or ``labels``. What lies in no interval becomes null. A number
    of bins is refused, because pandas takes their edges from the data.

    Raises ParameterError for edges that are not increasing, labels that do not fit, a column without numbers.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.dp.cut("age", [0, 40, 120]).dp.domain["age"].labels("count")
    ('(0, 40]', '(40, 120]')
    """
    made = transform.cut(
        protected.domain, column, bins, right=right, labels=labels, include_lowest=include_lowest
    )
    return apply(protected, made)


def recode(
    protected: Protected, column: Hashable, mapping: Mapping[Any, Any]
) -> pd.DataFrame | ProtectedFrame:
    """A protected frame whose ``column`` holds other labels; those that are not in ``mapping`` stay.

    A label that is mapped to None becomes null. The declared labels are what they are mapped to.

    Raises ParameterError for labels that are not declared.

    >>> import pandas as pd, pandera.pandas as pa
    >>> region = pa.Column(str, pa.Check.isin(["north", "south"]), metadata={"dp": {}})
    >>> frame = pd.DataFrame({"region": ["north"] * 90 + ["south"] * 10})
    >>> private = frame.dp.protect(pa.DataFrameSchema({"region": region}), epsilon=2)
    >>> private.dp.recode("region", {"north": "up"}).dp.domain["region"].categories
    ('up', 'south')
    """
    return apply(protected, transform.recode(protected.domain, column, mapping))


def fillna(protected: Protected, value: Any) -> pd.DataFrame | ProtectedFrame:
    """A protected frame without nulls in the columns of ``value``, as `DataFrame.fillna`.

    ``value``: a constant for all columns that may hold nulls, or a mapping from column to constant. It is
    public, and widens bounds and labels that do not hold it. A mean or a mode of the data is no constant.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(float, pa.Check.in_range(0, 120), nullable=True, metadata={"dp": {}})
    >>> private = pd.DataFrame({"age": [31, None]}).dp.protect(pa.DataFrameSchema({"age": age}), epsilon=1)
    >>> private.dp.fillna({"age": 40}).dp.domain["age"].nullable
    False
    """
    return apply(protected, transform.fillna(protected.domain, value))


def dropna(
    protected: Protected, subset: Labels | None = None, *, how: Literal["any", "all"] = "any"
) -> pd.DataFrame | ProtectedFrame:
    """A protected frame of the records without a null, as `DataFrame.dropna`; how many they are is private.

    ``subset``: columns to look at, by default all that are declared. ``how``: "any" or "all".

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(float, pa.Check.in_range(0, 120), nullable=True, metadata={"dp": {}})
    >>> private = pd.DataFrame({"age": [31, None]}).dp.protect(pa.DataFrameSchema({"age": age}), epsilon=1)
    >>> private.dp.dropna("age").dp.domain["age"].nullable
    False
    """
    return apply(protected, transform.dropna(protected.domain, subset, how))


def select(protected: Protected, columns: Labels) -> pd.DataFrame | ProtectedFrame:
    """A protected frame of these declared columns, in this order.

    >>> import pandas as pd, pandera.pandas as pa
    >>> flag = pa.Column(bool, metadata={"dp": {}})
    >>> frame = pd.DataFrame({"ill": [True, False] * 50, "member": [True] * 100})
    >>> private = frame.dp.protect(pa.DataFrameSchema({"ill": flag, "member": flag}), epsilon=1)
    >>> list(private.dp.select(["ill"]).columns)
    ['ill']
    """
    return apply(protected, transform.select(protected.domain, columns))
