"""The closed forms of the source, as printed, for comparison with what is exact.

Source: F. Liu, X. Zhao, "Disclosure risk from homogeneity attack in differentially privately sanitized
frequency distribution", equations 13 to 17 (Laplace noise) and 22 to 26 (Gaussian noise), here for any
noise by q(n), the probability that a count of n reads as empty. In equations 13 and 22 the factor of the
first sum stands before both; it belongs to the first alone, as in equations 14 and 23, and is taken so.

What is wrong with them:

- A heterogeneous cell is taken for the composition (n - 1, 1, 0, ...). That is the worst with two labels
  only: a cell (2, 1, 1) has a risk of 0.372 at epsilon 0.01, and 0.251 here. For large mixed cells it is far
  too high: (10, 10, 10) at epsilon 1 has a risk below 1e-4, and 0.211 here. So it is no bound.
- Equations 16 and 25 weight each cell by the density of its own observed size. Definition 9 asks for the
  expectation over sizes.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.risk.compositions import Cells
from pdprivacy.risk.reading import Reading
from pdprivacy.risk.sizes import Sizes

__all__ = ["published"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


def published(
    cells: Cells, reading: Reading, measure: str, alpha: Floats | None, sizes: Sizes | None
) -> Floats:
    """(U,), the risk of each composition as published; of "marginal_shrinkage" the same for all.

    ``alpha``: (K,), for the shrinkage measures. ``sizes``: for the marginal ones; their sums have a weight
    per observed size.
    """
    labels, n = cells.compositions.shape[1], cells.sizes
    if measure == "marginal_shrinkage":
        assert alpha is not None
        assert sizes is not None
        first, second = _scenarios(reading, sizes.values, labels)
        same = _all_same(alpha, sizes.values)
        return np.full(len(n), float((first * same + second * (1 - same)) @ sizes.chances))
    first, second = _scenarios(reading, n, labels)
    if measure == "local":
        same = ((cells.compositions > 0).sum(axis=1) == 1).astype(np.float64)
    elif measure == "shrinkage":
        assert alpha is not None
        same = _all_same(alpha, n)
    else:
        same = ((cells.compositions / n[:, np.newaxis]) ** n[:, np.newaxis]).sum(axis=1)
    risks = first * same + second * (1 - same)
    if measure == "marginal":
        assert sizes is not None
        at = np.minimum(np.searchsorted(sizes.values, n), len(sizes.values) - 1)
        risks = risks * np.where(sizes.values[at] == n, sizes.chances[at], 0.0)
    return np.asarray(risks)


def _scenarios(reading: Reading, n: Integers, labels: int) -> tuple[Floats, Floats]:
    """The risk of a homogeneous cell of n records, and that of (n - 1, 1, 0, ...), 0 where n is 1."""
    q = reading.empty(np.array([0, 1]))
    hidden, one_less = reading.empty(n), reading.empty(np.maximum(n - 1, 1))
    first = q[0] ** (labels - 1) * (1 - hidden)
    second = q[0] ** (labels - 2) * ((1 - one_less) * q[1] + one_less * (1 - q[1]))
    return first, np.where(n >= 2, second, 0.0)


def _all_same(alpha: Floats, n: Integers) -> Floats:
    """A_n, the probability that n records have one label, for proportions ~ Dirichlet(alpha)."""
    from scipy.special import gammaln

    total = alpha.sum()
    each = gammaln(alpha[:, np.newaxis] + n) - gammaln(alpha)[:, np.newaxis]
    return np.asarray(np.exp(each + gammaln(total) - gammaln(total + n)).sum(axis=0))
