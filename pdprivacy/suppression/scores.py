"""How far each record is from the others, and with what probability suppression keeps it.

The score of a record is its mean distance, in [0, 1], to all records of the database, itself included (at
distance 0). Scores and probabilities are made of the confidential records, and are confidential too.

Source: "The adverse effects of omitting records in differential privacy", Section 5.3.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdprivacy.errors import ParameterError, check_one_of
from pdprivacy.privacy import Rational, rational
from pdprivacy.suppression.outliers import check_spread

__all__ = ["Distance", "keep_probabilities", "outlier_scores"]

Floats: TypeAlias = NDArray[np.float64]
Distance: TypeAlias = Literal["absolute", "discrete", "euclidean"]

WORKING_SET = 1 << 20
"""Distances that are held at a time."""


def outlier_scores(values: ArrayLike, distance: Distance = "absolute", bounds: Any = None) -> Floats:
    """(n,) mean distances of each record to all records, itself included; in [0, 1].

    ``"absolute"``: (n,) numbers with ``bounds=(lower, upper)``, ``|x - y| / (upper - lower)``, in O(n log n).
    ``"discrete"``: (n,) labels without bounds, 1 where two differ, in O(n). ``"euclidean"``: (n, d) numbers
    with one pair of bounds per column; each column is brought to [0, 1], and the distance divided by the
    square root of d; in O(n^2 d), within a bounded memory. Numbers outside the bounds are clipped to them.
    Equal records have equal scores; the error is about 1e-15 times the root of n.

    Source: "The adverse effects of omitting records in differential privacy", Section 5.3.

    Raises
    ------
    ParameterError : unknown distance, an array of another shape or kind, NaN or infinite values, bounds that
        are absent, not finite, or not in order. No message holds a value.

    >>> outlier_scores([0, 5, 10], bounds=(0, 10))
    array([0.5       , 0.33333333, 0.5       ])
    >>> outlier_scores(["a", "a", "b"], "discrete")
    array([0.33333333, 0.33333333, 0.66666667])
    """
    check_one_of("distance", distance, get_args(Distance))
    if distance == "discrete":
        if bounds is not None:
            raise ParameterError("'bounds' must be None for the discrete distance.")
        return _discrete(values)
    shape = 1 if distance == "absolute" else 2
    numbers = _numbers(values, shape)
    if distance == "absolute":
        return _absolute(_scaled(numbers, *_pair(bounds)))
    pairs = _pairs(bounds, numbers.shape[1])
    columns = [_scaled(column, *pair) for column, pair in zip(numbers.T, pairs, strict=True)]
    return _euclidean(np.array(columns).reshape(numbers.shape[::-1]))


def keep_probabilities(scores: ArrayLike, m: Rational, M: Rational) -> Floats:
    """(n,) probabilities ``1 - (m + (M - m) * score)`` with which each record is kept.

    Between 1 - M and 1 - m; each record by an independent coin. The privacy of what is then released is that
    of `outlier_epsilon`.

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
    kept = float(1 - low) - float(high - low) * array
    return np.asarray(np.clip(kept, float(1 - high), float(1 - low)))


def _absolute(scaled: Floats) -> Floats:
    """By sorting: the values below and above each one, counted and summed."""
    if not scaled.size:
        return scaled
    distinct, place, times = np.unique(scaled, return_inverse=True, return_counts=True)
    upto = np.cumsum(times)
    sums = np.cumsum(distinct * times)
    total = distinct * (2 * upto - scaled.size) - 2 * sums + sums[-1]
    return np.asarray(np.clip(total / scaled.size, 0.0, 1.0)[place.reshape(-1)])


def _discrete(values: ArrayLike) -> Floats:
    """By counting the records that are alike."""
    array = _array(values)
    if array.ndim != 1 or array.dtype.kind not in "biufSUO":
        raise ParameterError("'values' must be a column of labels, (n,).")
    labels = array.tolist()
    try:
        counts = Counter(labels)
        unlike = any(label is None or label != label for label in counts)
    except (TypeError, ValueError):
        raise ParameterError("'values' must be a column of labels, (n,).") from None
    if unlike:
        raise ParameterError("'values' must not be missing.")
    times = np.fromiter((counts[label] for label in labels), dtype=np.float64, count=len(labels))
    return np.asarray((len(labels) - times) / max(1, len(labels)))


def _euclidean(columns: Floats) -> Floats:
    """From (d, n) columns in [0, 1]: block by block of the records."""
    width, n = columns.shape
    scores = np.empty(n)
    step = max(1, WORKING_SET // max(1, n))
    for start in range(0, n, step):
        squares = np.zeros((min(step, n - start), n))
        for column in columns:
            squares += (column[start : start + step, np.newaxis] - column) ** 2
        scores[start : start + step] = np.sqrt(squares).sum(axis=1)
    return np.asarray(np.clip(scores / (max(1, n) * np.sqrt(width)), 0.0, 1.0))


def _array(values: ArrayLike) -> NDArray[Any]:
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
    numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ParameterError(f"{name!r} must be finite.")
    return numbers


def _scaled(values: Floats, lower: float, upper: float) -> Floats:
    """Clipped to the bounds and brought to [0, 1]."""
    clipped: Floats = np.clip(values, lower, upper)
    return (clipped - lower) / (upper - lower)


def _pair(bounds: Any) -> tuple[float, float]:
    hint = "bounds=(0, 100), from the declaration and never from the data."
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise ParameterError("'bounds' must be a pair of numbers.", hint)
    lower, upper = rational(bounds[0], "bounds"), rational(bounds[1], "bounds")
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
    return [_pair(pair) for pair in bounds]
