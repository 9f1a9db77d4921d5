"""Declared transforms, and what is for the curator alone."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from numbers import Number
from typing import Any, Literal, cast

import numpy as np
import pandas as pd

from pdprivacy import risk
from pdprivacy.errors import ParameterError, got
from pdprivacy.mechanism import Gaussian, Geometric, Laplace
from pdprivacy.privacy import Rational, loss, rational
from pdprivacy.protection import Protected, restrict
from pdprivacy.releases.call import (
    Labels,
    check_cells,
    columns_of,
)

__all__ = ["dr_ha", "quality", "query"]


def query(protected: Protected, expr: str) -> pd.DataFrame:
    """A protected frame of the records that meet a declared condition; costs nothing by itself.

    The grammar of `DataFrame.query` cut down to what looks at one record: comparisons of declared
    columns with constants, ``and``, ``or``, ``not``, ``in``, ``.isna()``. The domain is narrowed
    accordingly. The number of rows that meet it is private, whatever was public before.

    Raises QueryError for everything else, with the reason.
    """
    return restrict(protected, expr)


def quality(protected: Protected) -> pd.DataFrame:
    """CONFIDENTIAL, for the curator: values clipped, null and unseen, and records dropped, per column.

    Counted at protection, exact and without noise: not for release.
    """
    return protected.quality.copy()


def dr_ha(
    protected: Protected,
    by: Labels,
    sensitive: Hashable,
    epsilon: Rational | Sequence[Rational],
    mechanism: Literal["laplace", "gaussian", "geometric"] = "laplace",
    *,
    delta: Rational = 0,
    weights: Literal["records", "cells"] = "records",
) -> float | pd.Series[Any]:
    """CONFIDENTIAL, for the curator: the exact local homogeneity-attack disclosure risk of a table.

    The probability that a cell of the quasi-identifiers ``by`` shows one single label of
    ``sensitive`` after noise, and that some of its records hold it; averaged over non-empty cells
    (``weights="cells"``) or over their records. Computed from the confidential counts for the noise
    that the table would get at each ``epsilon``: nothing is charged, and nothing of it may be
    released.

    Returns a float for one epsilon, a Series indexed by epsilon for several. Source: Liu, Zhao
    (2023), Definition 6, exact for heterogeneous cells too.

    Raises ParameterError, DeclarationError, TableTooLargeError (above 1e8 cells).
    """
    rows, top = columns_of(protected, by, "dr_ha"), columns_of(protected, sensitive, "dr_ha")
    if not isinstance(weights, str) or weights not in ("records", "cells"):
        raise ParameterError(f"'weights' must be 'records' or 'cells' (got {got(weights)}).")
    if not isinstance(mechanism, str) or mechanism not in ("laplace", "gaussian", "geometric"):
        raise ParameterError(
            f"'mechanism' must be one of 'laplace', 'gaussian', 'geometric' (got {got(mechanism)})."
        )
    if mechanism != "gaussian" and rational(delta, "delta") != 0:
        raise ParameterError(f"'delta' must be 0 for {mechanism} noise.", "leave delta out.")
    if len(top) != 1 or top[0].name in {column.name for column in rows}:
        raise ParameterError("'sensitive' must be one column that is not in 'by'.")
    check_cells((*rows, *top), "dr_ha")
    many = isinstance(epsilon, list | tuple | np.ndarray | pd.Index | pd.Series)
    levels: list[Any] = list(cast("Sequence[Rational]", epsilon)) if many else [epsilon]
    if many and not all(isinstance(level, Number) for level in levels):
        # what a column holds by mistake is not shown
        raise ParameterError("'epsilon' must be a number or a list of numbers.")
    l1, l2_squared = protected.scope.cells()
    noises: list[Any] = []
    for level in levels:
        cost = loss(level, delta)
        if mechanism == "gaussian":
            noises.append(Gaussian(cost.epsilon, cost.delta, math.sqrt(l2_squared)))
        else:
            noises.append((Laplace if mechanism == "laplace" else Geometric)(cost.epsilon, l1))
    counts = protected.engine.table((*rows, *top), "dr_ha").reshape(-1, top[0].cells("dr_ha"))
    cells = risk.Cells.of(counts)
    risks = [risk.local_risk(cells, noise.cdf, average=weights) for noise in noises]
    if not many:
        return float(risks[0])
    index: pd.Index[Any] = pd.Index([float(loss(level).epsilon) for level in levels], name="epsilon")
    return pd.Series([float(value) for value in risks], index=index, name="dr_ha (confidential)")
