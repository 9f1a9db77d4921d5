"""A table with columns of every dtype, protected in every scope, and what pandas makes of it."""

from __future__ import annotations

import itertools
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

import pdprivacy  # noqa: F401 - registers the accessor
from pdprivacy import Column, Domain
from pdprivacy.errors import DeclarationWarning

NAN = float("nan")
LARGE = 10**6  # an epsilon at which the known variance of the noise is nothing


def protected(frame: pd.DataFrame, domain: Domain, **options: Any) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeclarationWarning)  # data at the bounds is the point here
        return frame.dp.protect(domain, **{"epsilon": 10**9, "delta": "0.5", **options})


ROWS = 60
RNG = np.random.default_rng(11)


def some_null(cells: list[Any]) -> list[Any]:
    return [None if position % 7 == 3 else cell for position, cell in enumerate(cells)]


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
        return "(null)" if label is None or label is pd.NA or label != label else label

    return [tuple(map(one, label)) if isinstance(label, tuple) else one(label) for label in released.tolist()]


SCOPES: dict[str, dict[str, Any]] = {
    "private rows": {},
    "public rows": {"public_rows": 50},
    "replacement": {"neighbors": "replace_one"},
}
MECHANISMS: list[dict[str, Any]] = [{"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": "1e-5"}]


NUMERIC = [*NUMBERS, *TRUTHS]
WITHOUT_NULLS = [name for name in NUMERIC if not DOMAIN[name].nullable]
GRID = 2.0**-15  # relative to the range: more than the coarsest grid rounds


def cells_of(names: list[str]) -> list[Any]:
    cells = list(itertools.product(*map(labels_of, names)))
    return cells if len(names) > 1 else [cell for (cell,) in cells]
