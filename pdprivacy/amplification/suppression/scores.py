"""Outlier scores of records, and the probabilities with which suppression keeps them.

The score of a record is its mean distance, in [0, 1], to all records of the database, itself included (at
distance 0). Scores and probabilities are made of the confidential records, and are confidential too.

Distances are whole numbers divided by the largest one that there can be. Numbers are brought to a grid first,
each by itself, and where a distance between grid points is no whole number of steps, it is rounded up, by
which it stays a metric: rounded up, two sides of a triangle are not less than the third. (Records that share
a grid point are at distance 0, as in a limit of metrics.) So a score is a ratio of two integers, and exactly
the mean of a distance that Theorem 5.4 covers. The integers are added up without error, and divided once: of
up to 2**24 records a score is the double next to it, whatever the order of the records.

Source: "The adverse effects of omitting records in differential privacy", Section 5.3.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations_with_replacement
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdprivacy.amplification.suppression.amplification import check_spread
from pdprivacy.checks import items, one_of, pair
from pdprivacy.core.privacy import Rational, rational
from pdprivacy.declaration.intervals import INT64, Interval
from pdprivacy.errors import ParameterError
from pdprivacy.exact import next_down
from pdprivacy.text.progress import shown
from pdprivacy.types import Floats

Distance: TypeAlias = Literal["absolute", "discrete", "euclidean"]

BITS = 29
"""Bits of the steps of a number: the sum of 2**24 distances is at most 2**53."""

PLACE = 33
"""Bits of the place of a record, beside its steps in one integer."""

SQUARE = 52
"""Bits of a squared distance: the root as a double is a whole number only where the root is."""

BLOCK = 1 << 16
"""Records at a time."""

TILE = 256
"""Records per tile of distances, which stays in the cache."""

LONG = 1 << 16
"""The number of records from which Euclidean distances take seconds."""


def outlier_scores(
    values: ArrayLike, distance: Distance = "absolute", bounds: Any = None, *, progress: bool | None = None
) -> Floats:
    """(n,) mean distances of each record to all records, itself included; in [0, 1].

    ``"absolute"``: (n,) numbers with ``bounds=(lower, upper)``, ``|x - y| / (upper - lower)``, in O(n log n).
    The grid has between 2**28 and 2**29 steps; whole numbers between whole bounds lie on it if the bounds are
    at most 2**29 apart.
    ``"discrete"``: (n,) labels without bounds, 1 where two differ, in O(n); codes that are integers at once.
    ``"euclidean"``: (n, d) numbers with one pair of bounds per column; each column is brought to [0, 1], and
    the distance divided by the square root of d; in O(n^2 d), within a bounded memory. The grid of a column
    has 2**26 steps for one column, 2**25 for up to four, and half as many for each four times more; the
    distance of two records is at most three of them off.

    Numbers outside the bounds are clipped to them. For up to 2**24 records the scores are the doubles next to
    the means of the distances on the grid, so that they are off by 2**-54 at most; of more, up to 2**33
    numbers, or 2**27 records for "euclidean", by less than 2**-51. Equal records have equal scores.

    Parameters
    ----------
    progress : whether to show a bar for "euclidean", which needs tqdm; None: for many records.

    Source: "The adverse effects of omitting records in differential privacy", Section 5.3.

    Raises
    ------
    ParameterError : unknown distance, an array of another shape or kind, NaN or infinite values, bounds that
        are absent, not finite, or not in order. No message holds a value.
    MissingExtraError : ``progress=True`` without tqdm.

    >>> outlier_scores([0, 5, 10], bounds=(0, 10))
    array([0.5       , 0.33333333, 0.5       ])
    >>> outlier_scores(["a", "a", "b"], "discrete")
    array([0.33333333, 0.33333333, 0.66666667])
    """
    one_of(distance, "distance", get_args(Distance))
    if distance == "discrete":
        if bounds is not None:
            raise ParameterError("'bounds' must be None for the discrete distance.")
        return _discrete(values)
    if distance == "absolute":
        return _absolute(_numbers(values, 1), *_pair(bounds))
    table = _numbers(values, 2)
    return _euclidean(table, _pairs(bounds, table.shape[1]), progress)


def keep_probabilities(scores: ArrayLike, m: Rational, M: Rational) -> Floats:
    """(n,) probabilities ``1 - (m + (M - m) * score)`` with which each record is kept.

    Between 1 - M and 1 - m, and never above 1 - m; each record by an independent coin. The privacy of what is
    then released is that of `outlier_epsilon`.

    Let u be 2**-53. From scores that are off by u / 2, as those of up to 2**24 records are, the probabilities
    are off by 3 u: 1 - m is rounded down (u), M - m rounded (u / 2), their scores are off (u / 2), and so are
    the product and the difference (u / 2 each). To keep and to suppress have a probability of at least 0.01
    both, so either is off by r = 300 u < 3.4e-14 of itself. A kept set of n records then is likelier or less
    likely by a factor of (1 + r)^n or (1 - r)^n at most, and an epsilon larger by 2 n (r + r^2), as there are
    two databases: 1.2e-6 for n = 2**24.

    Source: "The adverse effects of omitting records in differential privacy", Section 5.3.

    Raises
    ------
    ParameterError : scores that are not numbers in [0, 1], m or M not in [0.01, 0.99], or m above M.

    >>> keep_probabilities([0, 0.5, 1], 0.1, 0.3)
    array([0.9, 0.8, 0.7])
    """
    low, high = check_spread(m, M)
    array = _numbers(scores, 1, "scores")
    if not ((array >= 0) & (array <= 1)).all():
        raise ParameterError("'scores' must be in [0, 1].")
    most = float(1 - low)
    if most > 1 - low:
        most = next_down(most)
    probabilities = array * -float(high - low)
    probabilities += most
    return np.maximum(probabilities, min(float(1 - high), most), out=probabilities)


def _absolute(values: Floats, lower: float, upper: float) -> Floats:
    """Sums of absolute distances, by sorting: the steps below and above each record.

    The record at place k of the sorted ones is at x_k (2 k + 2 - n) - 2 (x_0 + ... + x_k) + (the sum of all)
    from all others together: equal ones add nothing, on either side.
    """
    n, total = len(values), 0
    most = round(math.ldexp(math.frexp(upper - lower)[0], BITS))
    keys = np.empty(n, dtype=np.int64)
    for start in range(0, n, BLOCK):
        steps = _steps(values[start : start + BLOCK], lower, upper, most)
        total += int(steps.sum())
        block = keys[start : start + BLOCK]
        block[:] = steps
        block <<= PLACE
        block += np.arange(start, start + len(block))
    keys.sort()
    scores = np.empty(n)
    below = 0
    for start in range(0, n, BLOCK):
        block = keys[start : start + BLOCK]
        positions = block & ((1 << PLACE) - 1)
        block >>= PLACE
        sums = np.cumsum(block)
        sums += below
        below = int(sums[-1])
        block *= np.arange(2 * start + 2 - n, 2 * (start + len(block)) + 2 - n, 2)
        sums *= -2
        block += sums
        block += total
        scores[positions] = block / float(n * most)
    return scores


def _discrete(values: ArrayLike) -> Floats:
    """Sums of discrete distances, by counting equal records."""
    array = _array(values)
    if array.ndim != 1 or array.dtype.kind not in "biufSUO":
        raise ParameterError("'values' must be a column of labels, (n,).")
    n = len(array)
    if array.dtype.kind in "biu" and n:
        least, most = int(array.min()), int(array.max())
        if most - least < 2 * n + BLOCK and Interval(least, most).within(INT64):
            codes = array.astype(np.int64, copy=False)
            if least:
                codes = codes - least
            return np.asarray(((n - np.bincount(codes)) / n)[codes])
    labels = array.tolist()
    try:
        counts = Counter(labels)
        unlike = any(label is None or label != label for label in counts)
    except (TypeError, ValueError):
        raise ParameterError("'values' must be a column of labels, (n,).") from None
    if unlike:
        raise ParameterError("'values' must not be missing.")
    times = np.fromiter((counts[label] for label in labels), dtype=np.float64, count=n)
    return np.asarray((n - times) / max(1, n))


def _euclidean(table: Floats, pairs: list[tuple[float, float]], progress: bool | None) -> Floats:
    """Sums of Euclidean distances, tile by tile; each pair of records once.

    With the steps counted from the middle of the bounds, |x|^2 + |y|^2 - 2 x y is a product of matrices whose
    parts add up to 2**52 at most: exact, however a library multiplies. Where the root of such an integer is
    none itself, it lies further above one than doubles lie apart there, and is rounded up as it should be.
    """
    n, width = table.shape
    bits = (SQUARE - (width - 1).bit_length()) // 2
    greatest = math.isqrt(width * 4**bits - 1) + 1  # the root, rounded up
    left, right = np.ones((n, width + 2)), np.ones((width + 2, n))
    for number, (column, ends) in enumerate(zip(table.T, pairs, strict=True)):
        left[:, number] = _steps(column, *ends, 2**bits) - 2 ** (bits - 1)
    np.multiply(left[:, :width].T, -2, out=right[:width])
    left[:, width] = right[width + 1] = np.square(left[:, :width]).sum(axis=1)
    scores, buffer = np.zeros(n), np.empty(TILE * TILE)
    count = -(-n // TILE)
    tiles = combinations_with_replacement(range(0, n, TILE), 2)
    for first, second in shown(tiles, count * (count + 1) // 2, "distances", progress, long=n >= LONG):
        rows, columns = left[first : first + TILE], right[:, second : second + TILE]
        tile = buffer[: len(rows) * columns.shape[1]].reshape(len(rows), -1)
        np.matmul(rows, columns, out=tile)
        np.ceil(np.sqrt(tile, out=tile), out=tile)
        scores[first : first + TILE] += tile.sum(axis=1)
        if first < second:
            scores[second : second + TILE] += tile.sum(axis=0)
    scores /= max(1, n) * greatest
    return scores


def _steps(values: Floats, lower: float, upper: float, most: int) -> Floats:
    """Clipped to the bounds and brought to whole numbers from 0 to ``most``."""
    steps: Floats = np.clip(values, lower, upper)
    steps -= lower
    steps /= upper - lower
    steps *= most
    return np.rint(steps, out=steps)


def _array(values: ArrayLike) -> NDArray[Any]:
    if isinstance(values, range):  # of any length in no memory
        values = items(values, "values")
    try:
        return np.asarray(values)
    except ValueError:  # rows of different lengths
        return np.empty((), dtype=object)


def _numbers(values: ArrayLike, dimensions: int, name: str = "values") -> Floats:
    shape = "(n,)" if dimensions == 1 else "(n, d) with at least one column"
    array = _array(values)
    rows = array.ndim == dimensions and (dimensions == 1 or array.shape[1] > 0)
    if not rows or (array.size and array.dtype.kind not in "iuf"):
        raise ParameterError(f"{name!r} must be numbers, {shape}.")
    numbers = array.astype(np.float64, copy=False)
    if not np.isfinite(numbers).all():
        raise ParameterError(f"{name!r} must be finite.")
    return numbers


def _pair(bounds: Any) -> tuple[float, float]:
    hint = "bounds=(0, 100), from the declaration and never from the data."
    lower, upper = (rational(end, "bounds") for end in pair(bounds, "bounds", hint))
    try:
        low, high = float(lower), float(upper)
    except OverflowError:
        low = high = 0.0
    if not low < high or not high - low < float("inf"):
        raise ParameterError("'bounds' must be in ascending order, and not too far apart.", hint)
    return low, high


def _pairs(bounds: Any, columns: int) -> list[tuple[float, float]]:
    if not isinstance(bounds, tuple | list) or len(bounds) != columns:
        raise ParameterError(
            "'bounds' must be one pair of numbers per column.", "bounds=[(0, 100), (0, 1)] for two columns."
        )
    return [_pair(ends) for ends in bounds]
