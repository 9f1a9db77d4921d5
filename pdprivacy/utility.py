"""How far a noisy margin is from the true one: the expected total variation distance.

A margin of a table sums ``pieces`` cells of it into each of its own cells. What is released is
the noisy table, so a cell of the margin carries the sum of as many independent draws. An analyst
sets negative sums to 0 and rescales all to a distribution; where nothing is left, it is uniform.
The total variation distance between the true and the noisy distribution is half the sum of the
absolute differences: the largest error of the share of any set of cells.

Computed from confidential counts, so confidential too.

Source: F. Liu, X. Zhao, "Disclosure risk from homogeneity attack in differentially privately
sanitized frequency distribution", section 5.3, footnote 8.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdprivacy.checks import whole
from pdprivacy.errors import ParameterError
from pdprivacy.noise import RandomState, simulator
from pdprivacy.risk.compositions import whole_numbers

__all__ = ["LAWS", "batches", "distances", "marginals", "noise_sums", "total_variation"]

Floats: TypeAlias = NDArray[np.float64]

NUMBERS = 2**18
"""Noise drawn at a time."""
MOST_PIECES, MOST_DRAWS = 2**32, 10**7
SMOOTH = 2.0**30
"""Geometric noise of this scale is Laplace noise rounded to whole numbers, which nobody sees."""

LAWS = ("laplace", "geometric", "gaussian")

_Name = TypeVar("_Name")


def total_variation(
    counts: ArrayLike, mechanism: Any, pieces: int = 1, draws: int = 200, rng: RandomState = None
) -> tuple[float, float]:
    """The expected total variation distance of a noisy margin, simulated, and its standard error.

    Parameters
    ----------
    counts : (C,) the true margin, whole numbers, not all 0.
    mechanism : the noise on each cell of the table: `Laplace`, `Geometric` or `Gaussian` of
        `pdprivacy.mechanism`. Sums of their noise are drawn at once: differences of gamma or
        negative binomial numbers, and normal ones. Bounded noise is refused: its sums have no such law.
    pieces : how many cells of the table each cell of the margin is the sum of; 1 for the table itself.
    draws : how many, 2 or more.

    Raises
    ------
    ParameterError : another mechanism, or an argument is off. No message holds a count.

    >>> from pdprivacy.mechanism import Laplace
    >>> distance, error = total_variation([5000, 5000], Laplace(1, 1), draws=4000, rng=1)
    >>> bool(abs(distance - 1.5 / 20_000) < 4 * error)  # E|e1 - e2| = 1.5 for Laplace noise of scale 1
    True
    """
    found = np.concatenate(list(distances(counts, mechanism, pieces, draws, rng)))
    return float(found.mean()), float(found.std(ddof=1)) / math.sqrt(draws)


def batches(cells: int, draws: int) -> int:
    """How many batches of draws `distances` makes for a margin of so many cells."""
    return -(-draws // max(1, NUMBERS // cells))


def distances(
    counts: ArrayLike, mechanism: Any, pieces: int = 1, draws: int = 200, rng: RandomState = None
) -> Iterator[Floats]:
    """The distances that `total_variation` is the mean of, a batch of draws at a time; raises as that."""
    margin = _margin(counts)
    name, scale = _law(mechanism)
    pieces, draws = whole(pieces, "pieces", 1, MOST_PIECES), whole(draws, "draws", 2, MOST_DRAWS)
    generator = simulator(rng)
    shares = margin / margin.sum()
    each = max(1, NUMBERS // len(margin))
    for start in range(0, draws, each):
        size = min(each, draws - start)
        noise = np.concatenate(
            [  # of one draw in pieces, too: an interrupt waits for no more
                noise_sums(name, scale, int(pieces), (size, min(NUMBERS, len(margin) - cell)), generator)
                for cell in range(0, len(margin), NUMBERS)
            ],
            axis=1,
        )
        kept = np.maximum(margin + noise, 0.0)
        totals = kept.sum(axis=1, keepdims=True)
        kept += totals == 0
        totals[totals == 0] = len(margin)
        yield np.abs(kept / totals - shares).sum(axis=1) / 2


def marginals(columns: Sequence[_Name], orders: int | Sequence[int]) -> list[tuple[_Name, ...]]:
    """The combinations of 1, 2, ... columns, by their number and then as the columns are listed.

    An order above the number of columns has none.

    Raises
    ------
    ParameterError : an order that is not a positive whole number, or none.

    >>> marginals(["age", "region", "health"], (1, 2))[2:]
    [('health',), ('age', 'region'), ('age', 'health'), ('region', 'health')]
    """
    several = isinstance(orders, Iterable) and not isinstance(orders, str)
    given: list[Any] = list(orders) if several else [orders]  # type: ignore[arg-type]
    each = [whole(order, "order", 1, hint="order=(1, 2, 3).") for order in given]
    if not each:
        raise ParameterError("'order' must hold at least one number.", "order=(1, 2, 3).")
    return [
        found
        for order in sorted(set(each))
        if order <= len(columns)
        for found in combinations(columns, order)
    ]


def _margin(counts: ArrayLike) -> Floats:
    margin = whole_numbers(counts)
    if margin.ndim != 1:
        raise ParameterError(f"'counts' must have one dimension (got {margin.ndim}).")
    if not margin.any():
        raise ParameterError("'counts' must hold at least one record.")
    if margin.max() >= 2**53 // len(margin):
        raise ParameterError("'counts' must add up to less than 2**53.")
    return margin.astype(np.float64)


def _law(mechanism: Any) -> tuple[str, float]:
    """The name and the scale of the noise, or ParameterError."""
    name = getattr(mechanism, "name", None)
    known = isinstance(name, str) and name in LAWS and not isinstance(mechanism, type)
    if not known or getattr(mechanism, "bounding", None) is not None:
        kind = f"bounded {name} noise" if known else type(mechanism).__name__
        raise ParameterError(
            f"'mechanism' must be Laplace, Geometric or Gaussian noise without bounds (got {kind}).",
            "pdprivacy.mechanism.Geometric(epsilon=1).",
        )
    return str(name), float(mechanism.scale)


def noise_sums(
    name: str, scale: float, pieces: int, shape: tuple[int, int], generator: np.random.Generator
) -> Floats:
    """Sums of ``pieces`` independent draws of the noise."""
    if name == "gaussian":
        return generator.normal(scale=scale * math.sqrt(pieces), size=shape)
    # exponential numbers sum up to a gamma number, and a Laplace number is the difference of two
    gammas = generator.standard_gamma(pieces, size=(2, *shape))
    if name == "geometric" and scale < SMOOTH:
        # a geometric number is a Poisson number of exponential mean r / (1 - r), r = exp(-1 / scale)
        mean = math.exp(-1 / scale) / -math.expm1(-1 / scale)
        whole = generator.poisson(gammas * mean)
        return np.asarray(whole[0] - whole[1], dtype=np.float64)
    return np.asarray(scale * (gammas[0] - gammas[1]))
