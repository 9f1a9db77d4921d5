"""The homogeneous cells of a confidential table."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.checks import whole
from pdprivacy.domain import Column
from pdprivacy.errors import ParameterError
from pdprivacy.metadata import KEY
from pdprivacy.protection import Protected
from pdprivacy.releases.columns import Labels, cell_index
from pdprivacy.releases.disclosure.asked import TableRisk, tables_of
from pdprivacy.releases.disclosure.options import DEFAULTS, MARK
from pdprivacy.show import pages

__all__ = ["Homogeneity", "homogeneity"]

Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Homogeneity:
    """CONFIDENTIAL: how many cells and records a homogeneity attack would disclose without noise.

    summary : rows "homogeneous", "heterogeneous" and "all"; columns "cells" (non-empty ones), "records"
        and "share of records".
    exposed : the most exposed cells, by their labels: the "label" that most of their records have, their
        "records", and the "share" of them that have it. Homogeneous cells first, larger ones first.
    """

    summary: pd.DataFrame
    exposed: pd.DataFrame

    confidential: ClassVar[bool] = True

    def __repr__(self) -> str:
        return f"CONFIDENTIAL\n{self.summary}\n\nmost exposed\n{self.exposed}"

    def _repr_html_(self) -> str:
        return pages.pages_of([("homogeneity", self.summary), ("most exposed", self.exposed)])


def homogeneity(protected: Protected, by: Labels, sensitive: Hashable, top: int = 10) -> Homogeneity:
    """CONFIDENTIAL, for the curator: the homogeneous cells of the confidential table, and the most exposed.

    ``top``: how many cells are listed. Returns `Homogeneity`.

    Source: Liu, Zhao (2023), definitions 4 and 5.

    Raises ParameterError, DeclarationError, TableTooLargeError.

    >>> import pandas as pd
    >>> from pdprivacy import Column, Domain
    >>> sex = Column("sex", "category", categories=("f", "m"), role="quasi_identifier")
    >>> domain = Domain((sex, Column("ill", "boolean", role="sensitive")))
    >>> frame = pd.DataFrame({"sex": ["f", "f", "m"], "ill": [True, False, True]})
    >>> private = frame.dp.protect(domain, epsilon=1)
    >>> private.dp.homogeneity("sex", "ill").exposed
    confidential  label  records  share
    sex
    m              True        1    1.0
    f             False        2    0.5
    """
    top = whole(top, "top", 1)
    asked = TableRisk.of(protected, by, sensitive, "homogeneity", DEFAULTS)
    if len(asked.sensitive) > 1:
        raise ParameterError("'sensitive' must be one column here.")
    (table,) = tables_of(protected, asked.by, asked.sensitive, "homogeneity")
    filled = np.flatnonzero(table.any(axis=1))
    table = table[filled]
    sizes, largest = table.sum(axis=1), table.max(axis=1)
    same = sizes == largest
    cells = np.array([same.sum(), (~same).sum(), len(same)])
    records = np.array([sizes[same].sum(), sizes[~same].sum(), sizes.sum()])
    summary = pd.DataFrame(
        {"cells": cells, "records": records, "share of records": records / records[-1]},
        index=pd.Index(["homogeneous", "heterogeneous", "all"]),
    )
    summary.columns.name = MARK
    shares = largest / sizes
    first = np.lexsort((-sizes, -shares))[:top]  # stable: ties in the order of the table
    labels = cell_index(asked.sensitive, "homogeneity").to_numpy(dtype=object)
    exposed = pd.DataFrame(
        {"label": labels[table[first].argmax(axis=1)], "records": sizes[first], "share": shares[first]},
        index=_cells_at(asked.by, filled[first], "homogeneity"),
    )
    exposed.columns.name = MARK
    summary.attrs[KEY], exposed.attrs[KEY] = {MARK: "homogeneity"}, {MARK: "most exposed"}
    return Homogeneity(summary, exposed)


def _cells_at(columns: Sequence[Column], places: Integers, method: str) -> pd.Index[Any]:
    """`cell_index` at some places, without the others."""
    if len(columns) == 1:
        return cell_index(columns, method)[places]
    codes = np.unravel_index(places, [column.cells(method) for column in columns])
    levels = [
        cell_index([column], method).to_numpy(dtype=object)[code]
        for column, code in zip(columns, codes, strict=True)
    ]
    return pd.MultiIndex.from_arrays(levels, names=[column.name for column in columns])
