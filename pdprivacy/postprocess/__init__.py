"""Consistent results from released numbers: arrays in, arrays out, no data and no noise.

Every function here works on what a mechanism has already released and on public
facts (bounds, totals, the layout of a tree), so by post-processing it costs no
privacy. What keeps values within bounds makes them biased: it moves those near a
bound inwards, and by more the larger the noise is.

Conventions of this page, which the docstrings do not repeat:

- Arrays of integers or floats of any shape go in; a new array comes out, floats
  as float64. The input is never changed. Booleans, objects and text are refused.
- ``total`` is a public or released number, at least 0. With ``axis`` it may be an array, one number for each
  sum: counts that were released before, for example, of which these cells are parts.
- ``axis`` is the axis that is summed, as in numpy: None for one total of the
  whole array, 1 for a table each of whose rows sums to ``total``, 0 for one each
  of whose columns does.
- A sum is met to the rounding of floats, a bound exactly.
- ParameterError is raised for arrays that are empty, not numeric, NaN or beyond
  1e150, for shapes that do not fit, and for constraints that cannot be met. No
  message holds a value of an array.

"Liu" is F. Liu, "Statistical properties of sanitized results from differentially
private Laplace mechanism with univariate bounding constraints"; "Hay" is Hay,
Rastogi, Miklau, Suciu 2010, "Boosting the accuracy of differentially private
histograms through consistency".
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from pdprivacy.checks import flag, instance, items, pair, proportion, whole
from pdprivacy.core.privacy import Rational, rational
from pdprivacy.declaration.linear import LinearConstraint
from pdprivacy.errors import ParameterError, got, short_public
from pdprivacy.postprocess.least_distance import nearest_within
from pdprivacy.types import Floats, Integers

__all__ = [
    "LinearConstraint",
    "Tree",
    "all_but_one",
    "bound_covariances",
    "clamp",
    "correlation",
    "covariance_limit",
    "equality_bounds",
    "hierarchy",
    "integers",
    "linear_constraints",
    "nearest_correlation",
    "nearest_covariance",
    "nearest_psd",
    "nonnegative",
    "rescale",
    "simplex",
]

Numbers: TypeAlias = npt.NDArray[Any]  # of integers, in their own dtype, or of float64

HUGE = 1e150  # sums, and products of two, stay finite below it
FARTHEST = 10.0  # rounds to the nearest correlation matrix grow with what is beyond 1: under 1000 here
PSD_ROUNDING = 1e-12  # an eigenvalue of a correlation matrix above -this is zero up to rounding


def _numbers(values: npt.ArrayLike, name: str = "values", *, infinite: bool = False) -> Numbers:
    if isinstance(values, range):  # of any length in no memory
        values = items(values, name)
    try:
        array = np.asarray(values)
    except ValueError:  # a ragged list; numpy's own text is not repeated, it may quote the list
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "iuf":
        raise ParameterError(f"{name!r} must be an array of numbers.")
    if array.dtype.kind == "f":
        array = array.astype(np.float64, copy=False)
        usual = not np.isnan(array).any() if infinite else bool((np.abs(array) <= HUGE).all())
        if not usual:
            raise ParameterError(
                f"{name!r} must not hold NaN."
                if infinite
                else f"{name!r} must hold finite numbers of at most {HUGE:g} in size."
            )
    return array


def _total(total: Rational) -> Fraction:
    number = rational(total, "total")
    if not 0 <= number <= HUGE:
        raise ParameterError(f"'total' must be from 0 to {HUGE:g} (got {got(total)}).")
    return number


def _totals(
    total: Rational | npt.ArrayLike, lines: Floats, shape: tuple[int, ...], axis: int | None
) -> Floats:
    """The total of each line, (N, 1)."""
    if isinstance(total, str) or (not isinstance(total, Sequence) and getattr(total, "ndim", 0) == 0):
        return np.full((len(lines), 1), float(_total(cast("Rational", total))))
    goals = _numbers(cast("npt.ArrayLike", total), "total").astype(np.float64)
    if axis is None or goals.shape != tuple(np.delete(shape, axis)):
        raise ParameterError("'total' must be a number, or hold one number for each sum along 'axis'.")
    if (goals < 0).any():
        raise ParameterError("'total' must hold no negative numbers.", "nonnegative(total)")
    return goals.reshape(-1, 1)


def _lines(array: Numbers, axis: int | None) -> Floats:
    """A table of floats whose rows are what is summed along ``axis``."""
    if axis is not None:
        axis = whole(axis, "axis", -array.ndim, array.ndim - 1)
    moved = array.reshape(-1) if axis is None else np.moveaxis(array, axis, -1)
    if moved.shape[-1] == 0:
        raise ParameterError("'values' must hold at least one cell for each total.")
    return moved.reshape(-1, moved.shape[-1]).astype(np.float64)


def _back(lines: Floats, shape: tuple[int, ...], axis: int | None) -> Floats:
    if axis is None:
        return lines.reshape(shape)
    moved = [size for index, size in enumerate(shape) if index != axis % len(shape)]
    return np.moveaxis(lines.reshape(*moved, lines.shape[-1]), -1, axis)


def clamp(values: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike) -> Numbers:
    """Move each value to the nearest point of [lower, upper].

    The bounds are numbers or arrays that broadcast to the shape of ``values``,
    may be infinite, and must not be read off the data. Integers with integer
    bounds stay integers; infinite values are allowed.

    Source: the boundary-inflated mechanism is this, applied to an unbounded one
    (Liu, Definition 2b).

    >>> from pdprivacy import postprocess
    >>> postprocess.clamp([-0.2, 0.4, 1.3], 0.0, 1.0)
    array([0. , 0.4, 1. ])
    """
    array = _numbers(values, infinite=True)
    bounds = [_numbers(lower, "lower", infinite=True), _numbers(upper, "upper", infinite=True)]
    try:
        low, high = (np.broadcast_to(bound, array.shape) for bound in bounds)
    except ValueError:
        raise ParameterError("'lower' and 'upper' must be numbers or of the shape of 'values'.") from None
    if (low > high).any():
        raise ParameterError("'lower' must not be above 'upper'.")
    return np.asarray(np.clip(array, low, high))


def nonnegative(values: npt.ArrayLike) -> Numbers:
    """Set negative values to zero. Integers stay integers.

    >>> from pdprivacy import postprocess
    >>> postprocess.nonnegative([3, -2, 0])
    array([3, 0, 0])
    """
    array = _numbers(values)
    return np.where(array > 0, array, np.zeros((), array.dtype))  # also -0.0 becomes 0.0


def integers(values: npt.ArrayLike, total: Rational | None = None) -> Integers:
    """Round to whole numbers (halves to even); with a ``total``, to whole numbers that sum to it exactly.

    ``total``: a whole number that the values sum to already, up to a rounding
    of 1e-6 relative and 0.5 absolute; else ParameterError (``rescale`` and
    ``simplex`` make it so). Every value is then rounded down, and the units
    that are missing go to the largest remainders, to the first cell of equal
    ones. Each cell moves by less than 1, and none that was at least 0 becomes
    negative. No whole numbers with that sum are nearer, in any l_p distance.

    Sizes must sum to less than 2^62.

    Source: the method of largest remainders (Hamilton, Hare).

    >>> from pdprivacy import postprocess
    >>> postprocess.integers([3.4, 3.3, 3.3], total=10)
    array([4, 3, 3])
    """
    array = _numbers(values)
    goal = None if total is None else _total(total)
    if goal is not None and (goal.denominator != 1 or goal >= 2**62):
        raise ParameterError(f"'total' must be a whole number below 2**62 (got {got(total)}).")
    rounded = np.rint if goal is None else np.floor
    whole = array if array.dtype.kind in "iu" else rounded(array)
    if np.abs(whole.astype(np.float64)).sum() >= 2.0**62:
        raise ParameterError("'values' must have sizes that sum to less than 2**62.")
    result = whole.astype(np.int64, order="C")
    if goal is None:
        return result
    remainders = (array - whole).astype(np.float64).reshape(-1)
    missing = int(goal) - int(result.sum())
    # Below 1 it also keeps `missing` between 0 and the number of positive remainders.
    if abs(missing - float(remainders.sum())) > min(0.5, 1e-6 * max(1.0, float(goal))):
        raise ParameterError("'values' must sum to 'total'.", "integers(rescale(values, total), total)")
    flat = result.reshape(-1)
    flat[np.argsort(-remainders, kind="stable")[:missing]] += 1
    return result


def rescale(values: npt.ArrayLike, total: Rational | npt.ArrayLike = 1.0, axis: int | None = None) -> Floats:
    """Set negative values to zero, and scale the others by one factor so that they sum to ``total``.

    Ratios of positive cells are kept. If no value is positive, the total is
    spread evenly over all cells.

    Source: Liu, section 4.2, re-scaling and normalization.

    >>> from pdprivacy import postprocess
    >>> postprocess.rescale([0.6, -0.1, 0.2])
    array([0.75, 0.  , 0.25])
    """
    array = _numbers(values)
    lines = _lines(array, axis)
    goals = _totals(total, lines, array.shape, axis)
    positive = np.where(lines > 0, lines, 0.0)
    sums = positive.sum(axis=1, keepdims=True)
    empty = sums == 0
    # Divided first: a cell is at most the sum, so the result is at most the total.
    shares = np.where(empty, 1 / lines.shape[1], positive / np.where(empty, 1.0, sums))
    return _back(shares * goals, array.shape, axis)


def simplex(values: npt.ArrayLike, total: Rational | npt.ArrayLike = 1.0, axis: int | None = None) -> Floats:
    """Return the nearest point, in Euclidean distance, without negative cells and with the sum ``total``.

    One number is subtracted from every cell and negative results become zero.
    It is the least-squares estimate under these constraints for noise of equal
    variance, and never farther from the true cells than the values were.

    Source: Held, Wolfe, Crowder 1974; Duchi, Shalev-Shwartz, Singer, Chandra 2008, Figure 1.

    >>> from pdprivacy import postprocess
    >>> postprocess.simplex([0.75, -0.25, 0.5])
    array([0.625, 0.   , 0.375])
    >>> postprocess.simplex([[2.5, -1.5], [4.0, 3.0]], total=[2, 6], axis=1)
    array([[2. , 0. ],
           [3.5, 2.5]])
    """
    array = _numbers(values)
    lines = _lines(array, axis)
    goals = _totals(total, lines, array.shape, axis)
    if (empty := goals == 0).any():  # the others, and zeros where nothing is left to share
        result = np.zeros(lines.shape)
        others = ~empty[:, 0]
        if others.any():
            result[others] = simplex(lines[others], goals[others, 0], axis=1)
        return _back(result, array.shape, axis)
    # The threshold is at least the largest value less the total, so cells below that are zero
    # wherever they lie: raised to it, they cannot drown the others in rounding.
    shifted = np.maximum(lines - lines.max(axis=1, keepdims=True), -goals)
    falling = np.sort(shifted, axis=1)[:, ::-1]
    sums = np.cumsum(falling, axis=1) - goals
    kept = np.count_nonzero(falling * np.arange(1, lines.shape[1] + 1) > sums, axis=1, keepdims=True)
    threshold = np.take_along_axis(sums, kept - 1, axis=1) / kept
    for _ in range(2):  # Newton steps, which take out the rounding of the cumulative sums
        result = np.maximum(shifted - threshold, 0.0)
        support = np.maximum(np.count_nonzero(result, axis=1, keepdims=True), 1)
        threshold = threshold + (result.sum(axis=1, keepdims=True) - goals) / support
    return _back(np.clip(shifted - threshold, 0.0, goals), array.shape, axis)


def all_but_one(
    values: npt.ArrayLike,
    total: Rational | npt.ArrayLike = 1.0,
    axis: int | None = None,
    *,
    bounded: bool = True,
) -> Floats:
    """Keep every cell but the last, and set the last one to the rest of ``total``.

    The last value is ignored and may be anything, also NaN: it need not have
    been released. So that no cell is negative the others are clamped one after
    the other into [0, what the cells before have left]; the order of the cells
    matters once the total is used up. The error of the last cell is that of all
    the others together.

    ``bounded=False`` is the rule as printed: the others stay as they are, and the
    last cell, the total less their sum, is negative where they exceed the total.
    Its bias is minus the sum of theirs: more than the bias of rescaling in the study of
    the source, which says less.

    Source: Liu, section 4.2, and Remark 1 applied to each cell in turn.

    >>> from pdprivacy import postprocess
    >>> postprocess.all_but_one([0.25, -0.1, 0.5, float("nan")])
    array([0.25, 0.  , 0.5 , 0.25])
    >>> postprocess.all_but_one([0.75, 0.5, 0.25, 0.0])
    array([0.75, 0.25, 0.  , 0.  ])
    >>> postprocess.all_but_one([0.75, 0.5, 0.25, 0.0], bounded=False)
    array([ 0.75,  0.5 ,  0.25, -0.5 ])
    """
    if isinstance(values, range):  # of any length in no memory
        values = items(values, "values")
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "iuf":
        raise ParameterError("'values' must be an array of numbers.")
    flag(bounded, "bounded")
    lines = _lines(array, axis)
    goals = _totals(total, lines, array.shape, axis)
    others = _numbers(lines[:, :-1])
    if not bounded:
        return _back(np.append(others, goals - others.sum(axis=1, keepdims=True), axis=1), array.shape, axis)
    others = np.maximum(others, 0.0)
    used = np.cumsum(others, axis=1)
    left = np.maximum(goals - np.pad(used, ((0, 0), (1, 0))), 0.0)
    result = np.append(np.where(used <= goals, others, left[:, :-1]), left[:, -1:], axis=1)
    return _back(result, array.shape, axis)


def linear_constraints(
    values: npt.ArrayLike, coefficients: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike
) -> Floats:
    """Return the nearest numbers, in Euclidean distance, whose linear combinations lie within limits.

    ``values``: n numbers. ``coefficients``: (k, n), a row for each combination. ``lower`` and ``upper``: its
    public limits, k numbers or one for all, which may be infinite. No numbers within the limits, such as the
    true ones, are farther from the result than from ``values``. Limits are met to the rounding of floats.
    ParameterError where no numbers meet all limits. `LinearConstraint` names numbers by their labels.

    Source: Liu, Remark 1; the least distance problem of Lawson, Hanson (1974), chapter 23.

    >>> from pdprivacy import postprocess
    >>> postprocess.linear_constraints([2.0, 4.0, 1.0], [[1, 1, 1]], lower=10, upper=10).round(6)
    array([3., 5., 2.])
    """
    numbers = _numbers(values).astype(np.float64)
    rows = _numbers(coefficients, "coefficients").astype(np.float64)
    fits = rows.ndim == 2 and numbers.shape == rows.shape[1:] and rows.size
    if not fits or not rows.any(axis=1).all():
        raise ParameterError("'coefficients' must hold a row, not all 0, for each constraint of 'values'.")
    least, most = (_limits(limits, name, rows) for limits, name in ((lower, "lower"), (upper, "upper")))
    if (least > most).any() or (least == math.inf).any() or (most == -math.inf).any():
        raise ParameterError("'lower' must not be above 'upper', and both must leave a number.")
    if (result := nearest_within(numbers, rows, least, most)) is None:
        raise ParameterError("'lower' and 'upper' leave no numbers that meet all of them.")
    return result


def _limits(limits: npt.ArrayLike, name: str, rows: Floats) -> Floats:
    array = _numbers(limits, name, infinite=True)
    if array.shape not in ((), (len(rows),)):
        raise ParameterError(f"{name!r} must be a number, or hold one for each row of 'coefficients'.")
    return np.broadcast_to(array.astype(np.float64), len(rows))


def equality_bounds(
    first: Sequence[Rational], second: Sequence[Rational], total: Rational
) -> tuple[float, float]:
    """Return the bounds of s₁ when s₁ lies in ``first``, s₂ in ``second``, and s₁ + s₂ = ``total``.

    [max(lo₁, total - hi₂), min(hi₁, total - lo₂)]. Pairs (lo, hi) may be infinite
    on either side and ``total`` may be negative. Release s₁ within these bounds;
    then total - s₁ lies within its own, which are ``equality_bounds(second, first,
    total)``. The differences are exact in the decimals that a person writes.

    ParameterError: no two such numbers exist.

    Source: Liu, Remark 1.

    >>> from pdprivacy import postprocess
    >>> postprocess.equality_bounds((0, 0.75), (0.5, 1), 1)
    (0.0, 0.5)
    """
    (low, high), (other_low, other_high) = _ends(first, "first"), _ends(second, "second")
    whole = rational(total, "total")
    least, most = max(low, whole - other_high), min(high, whole - other_low)
    if least > most:
        raise ParameterError("'first', 'second' and 'total' leave no numbers that meet them.")
    return float(least), float(most)


def _ends(ends: Sequence[Rational], name: str) -> tuple[Fraction | float, Fraction | float]:
    def bound(value: Rational) -> Fraction | float:
        endless = isinstance(value, float) and math.isinf(value)
        return float(value) if endless else rational(value, name, item=True)

    low, high = (bound(end) for end in pair(ends, name))
    if low > high or low == math.inf or high == -math.inf:
        raise ParameterError(f"{name!r} must have its lower bound first, and a number within.")
    return low, high


@dataclass(frozen=True)
class Tree:
    """The layout of a tree over cells: each node is the sum of a run of nodes of the level below.

    Parameters
    ----------
    cells : the number of leaves, in a public order in which neighbours are alike.
    branching : the number of consecutive nodes with one parent, at least 2; the last
        run may be shorter.
    root : whether the root, the sum of all cells, is measured too: True where
        the total is private. False where it is public; it is then no node of ``levels``.

    A record of one cell is in one node of each level, so the l1 sensitivity of
    all node values is ``len(levels)`` times that of the cells, the l2
    sensitivity the root of that number times. Where ``cells`` is at most
    ``branching`` the leaves are the children of the root.

    Source: Hay, section 4 (complete trees of equal depth); runs that are shorter
    are what is left of one.

    >>> from pdprivacy.postprocess import Tree
    >>> Tree(cells=5, branching=2).levels
    (5, 3, 2)
    >>> Tree(cells=5, branching=2, root=True).sums([1, 2, 3, 4, 5])
    array([ 1,  2,  3,  4,  5,  3,  7,  5, 10,  5, 15])
    """

    cells: int
    branching: int = 2
    root: bool = False

    def __post_init__(self) -> None:
        for name, least in (("cells", 1), ("branching", 2)):
            whole(getattr(self, name), name, least)
        flag(self.root, "root")

    @property
    def levels(self) -> tuple[int, ...]:
        """Number of nodes of each measured level, from the leaves upwards."""
        sizes = [int(self.cells)]
        while sizes[-1] > self.branching:
            sizes.append(-(-sizes[-1] // int(self.branching)))
        return (*sizes, 1) if self.root else tuple(sizes)

    @property
    def nodes(self) -> int:
        """Number of measured nodes: the length of the array that ``sums`` returns."""
        return sum(self.levels)

    def sums(self, leaves: npt.ArrayLike) -> Numbers:
        """Return the values of all measured nodes, level by level from the leaves upwards.

        ``leaves``: one value for each cell. Integers give exact int64 sums;
        their sizes must sum to less than 2^62.
        """
        level = _numbers(leaves, "leaves")
        if level.shape != (self.cells,):
            raise ParameterError("'leaves' must hold one value for each cell of the tree.")
        if level.dtype.kind in "iu":
            if np.abs(level.astype(np.float64)).sum() >= 2.0**62:
                raise ParameterError("'leaves' must have sizes that sum to less than 2**62.")
            level = level.astype(np.int64)
        levels = [level]
        for _ in self.levels[1:]:
            levels.append(_sum_runs(levels[-1], self.branching))
        return np.concatenate(levels)


def _sum_runs(level: Numbers, branching: int) -> Numbers:
    return np.asarray(np.add.reduceat(level, np.arange(0, level.size, branching)))


def hierarchy(
    tree: Tree,
    nodes: npt.ArrayLike,
    total: Rational | None = None,
    variance: npt.ArrayLike | None = None,
) -> Floats:
    """Return non-negative leaves that sum to ``total``, from noisy values of all nodes of a tree.

    ``nodes``: the released values in the order of ``Tree.sums``.
    ``total``: the public sum of the leaves; None where the tree's root is
    measured, and only there: the estimate of the root, at least 0, takes its place.
    ``variance``: the variance of the noise: None where it is the same everywhere, else
    one positive number for each level or for each node; only ratios matter.

    Upwards, the estimate of a node from its subtree is the mean of its own value
    and the sum of its children's estimates, weighted by inverse variance.
    Downwards, what the children's estimates lack to their parent's is shared
    between them in proportion to the variances of their estimates. For
    uncorrelated noise that is generalised least squares under all sums of the
    tree: unbiased, and of the least variance for every sum of leaves. Then no
    node is negative: at each step down negative children are set to zero and
    their siblings rescaled to sum to the parent, evenly where all are zero. As
    the parent's value is corrected before its children's, a correction reaches
    the leaves as any other difference does.

    Source: Hay, section 4, steps z and h-bar, which it equals for complete trees with
    equal variances where nothing is negative; Liu, section 4.2, for the fixed root and
    the footnote to step 4, for non-negativity. The estimates of the inner nodes are
    ``tree.sums`` of the result.

    >>> from pdprivacy.postprocess import Tree, hierarchy
    >>> hierarchy(Tree(4), [10.0, 20.0, 30.0, 40.0, 36.0, 70.0], total=100)
    array([11., 21., 29., 39.])
    """
    instance(tree, Tree, "tree")
    if tree.root != (total is None):
        raise ParameterError(
            "'total' must be given unless the root of the tree is measured, and only then.",
            "hierarchy(Tree(cells), nodes, total=100) or hierarchy(Tree(cells, root=True), nodes)",
        )
    own = _numbers(nodes, "nodes").astype(np.float64)
    if own.shape != (tree.nodes,):
        raise ParameterError("'nodes' must hold one value for each measured node of the tree.")
    cuts = np.cumsum(tree.levels)[:-1]
    estimates = np.split(own, cuts)
    spreads = np.split(_node_variances(tree, variance), cuts)
    below, spreads_below = [], []  # the sum of each node's children
    for level in range(len(estimates)):
        below.append(_sum_runs(estimates[level], tree.branching))
        spreads_below.append(_sum_runs(spreads[level], tree.branching))
        if level + 1 < len(estimates):
            # weight of the children's sum, its own variance's share of both
            weight = spreads[level + 1] / (spreads[level + 1] + spreads_below[level])
            estimates[level + 1] = estimates[level + 1] + weight * (below[level] - estimates[level + 1])
            spreads[level + 1] = weight * spreads_below[level]
    top = estimates.pop() if total is None else np.array([float(_total(total))])
    parents: Floats = np.maximum(top, 0.0)
    for level in reversed(range(len(estimates))):
        share = (parents - below[level]) / spreads_below[level]
        children = estimates[level] + spreads[level] * _repeat(share, tree, level)
        parents = _meet_parents(children, parents, tree, level)
    return parents


def _node_variances(tree: Tree, variance: npt.ArrayLike | None) -> Floats:
    if variance is None:
        return np.ones(tree.nodes)
    array = _numbers(variance, "variance").astype(np.float64)
    if array.shape == (len(tree.levels),):
        array = np.repeat(array, tree.levels)
    if array.shape != (tree.nodes,):
        raise ParameterError("'variance' must hold one number for each level, or for each node, of the tree.")
    if not (array >= 1 / HUGE).all():
        raise ParameterError(f"'variance' must hold positive numbers, at least {1 / HUGE:g}.")
    return array


def _repeat(parents: Floats, tree: Tree, level: int) -> Floats:
    return np.repeat(parents, tree.branching)[: tree.levels[level]]


def _meet_parents(children: Floats, parents: Floats, tree: Tree, level: int) -> Floats:
    """The children, none negative, scaled to sum to their parents."""
    positive = np.maximum(children, 0.0)
    sums = _sum_runs(positive, tree.branching)
    sizes = np.full(sums.size, tree.branching)
    sizes[-1] = children.size - (sums.size - 1) * tree.branching
    shares = positive / _repeat(np.where(sums == 0, 1.0, sums), tree, level)
    shares += _repeat(np.where(sums == 0, 1 / sizes, 0.0), tree, level)
    return np.asarray(shares * _repeat(parents, tree, level))


def _symmetric(matrix: npt.ArrayLike, name: str) -> Floats:
    array = _numbers(matrix, name).astype(np.float64)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.size == 0:
        raise ParameterError(f"{name!r} must be a square matrix.")
    if np.abs(array - array.T).max() > 1e-9 * np.abs(array).max():
        raise ParameterError(f"{name!r} must be symmetric.", "(matrix + matrix.T) / 2")
    return np.asarray((array + array.T) / 2)


def covariance_limit(variances: npt.ArrayLike) -> Floats:
    """Return the largest size that each covariance can have: √(vᵢvⱼ), with the variances on the diagonal.

    ``variances``: one for each of k variables; negative ones, which noise can
    make, count as zero. A k × k matrix.

    Source: the correlation lies in [-1, 1] (Liu, Table 1).

    >>> from pdprivacy import postprocess
    >>> postprocess.covariance_limit([1.0, 4.0])
    array([[1., 2.],
           [2., 4.]])
    """
    array = _numbers(variances, "variances").astype(np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ParameterError("'variances' must hold one number for each variable.")
    positive = np.where(array > 0, array, 0.0)
    limit = np.sqrt(np.outer(positive, positive))
    np.fill_diagonal(limit, positive)
    return np.asarray(limit)


def bound_covariances(matrix: npt.ArrayLike, largest: npt.ArrayLike | None = None) -> Floats:
    """Clamp a covariance matrix: variances into [0, largest], correlations into [-1, 1].

    ``matrix``: a released covariance matrix, symmetric. ``largest``: the largest
    variances that the declared bounds allow, n R²/(4 (n - 1)) for n rows of
    range R; a number or one for each variable; None for no limit. Variances are
    clamped first, covariances then into ±√(vᵢvⱼ) of the clamped ones. Two
    variables are then consistent; three or more may need ``nearest_psd``.

    Source: Liu, section 4.1.

    >>> from pdprivacy import postprocess
    >>> postprocess.bound_covariances([[1.0, 3.0], [3.0, 9.0]], largest=4.0)
    array([[1., 2.],
           [2., 4.]])
    """
    result = _symmetric(matrix, "matrix")
    most = _numbers(math.inf if largest is None else largest, "largest", infinite=True)
    if most.shape not in ((), result.shape[:1]) or (most < 0).any():
        raise ParameterError("'largest' must be a number of at least 0, or one for each variable.")
    limit = covariance_limit(np.minimum(np.diagonal(result), most))
    return np.clip(result, -limit, limit)


def correlation(covariance: npt.ArrayLike) -> Floats:
    """Return the correlation matrix of a covariance matrix, within [-1, 1], with ones on the diagonal.

    ``covariance``: symmetric. A variable whose variance is not positive has no
    correlation: its row and column are NaN, the diagonal too.

    >>> from pdprivacy import postprocess
    >>> postprocess.correlation([[4.0, 3.0], [3.0, 9.0]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    matrix = _symmetric(covariance, "covariance")
    variances = np.diagonal(matrix)
    deviations = np.sqrt(np.where(variances > 0, variances, np.nan))
    with np.errstate(over="ignore"):  # infinite is beyond 1 as well
        result = matrix / deviations / deviations[:, None]
    result = np.clip((result + result.T) / 2, -1.0, 1.0)
    np.fill_diagonal(result, np.where(variances > 0, 1.0, np.nan))
    return result


def _positive_part(matrix: Floats) -> Floats:
    """The nearest positive semidefinite matrix: negative eigenvalues set to zero."""
    values, vectors = np.linalg.eigh(matrix)
    part = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray((part + part.T) / 2)


def nearest_correlation(matrix: npt.ArrayLike, tolerance: float = 1e-10, iterations: int = 2000) -> Floats:
    """Return the nearest correlation matrix in Frobenius norm: positive semidefinite, ones on the diagonal.

    ``matrix``: symmetric; its diagonal is not read, and what is off it is at most
    10 in size. One that is a correlation matrix already, with eigenvalues of at
    least -1e-12, comes back unchanged.
    ``tolerance``: the relative change at which the iteration stops, and
    ``iterations`` how often it may go round. After either, negative eigenvalues
    are set to zero and the diagonal is scaled to one, so the result is a
    correlation matrix (to rounding) in every case; stopped early, it is not the
    nearest one.

    Alternating projections with Dykstra's correction converge linearly; a
    round is one eigendecomposition. They are written out here because scipy has no
    such function, and statsmodels, whose ``corr_nearest`` only clips
    eigenvalues until none is negative and is not the nearest, is a heavy
    dependency for it.

    Source: Higham 2002, "Computing the nearest correlation matrix - a problem from
    finance", Algorithm 3.3.

    >>> from pdprivacy import postprocess
    >>> postprocess.nearest_correlation([[1, 1, 0], [1, 1, 1], [0, 1, 1]]).round(4)
    array([[1.    , 0.7607, 0.1573],
           [0.7607, 1.    , 0.7607],
           [0.1573, 0.7607, 1.    ]])
    """
    proportion(tolerance, "tolerance")
    rounds = whole(iterations, "iterations", 0)
    unit = _symmetric(matrix, "matrix")
    np.fill_diagonal(unit, 0.0)
    if np.abs(unit).max() > FARTHEST:
        raise ParameterError(
            f"'matrix' must have correlations of at most {FARTHEST:g} in size.",
            "nearest_correlation(clamp(matrix, -1, 1))",
        )
    np.fill_diagonal(unit, 1.0)  # its distance to the ones of the result is the same for all of them
    if np.linalg.eigvalsh(unit)[0] >= -PSD_ROUNDING:
        return unit
    correction = np.zeros_like(unit)
    for _ in range(rounds):
        start = unit - correction
        psd = _positive_part(start)
        correction = psd - start
        before, unit = unit, psd.copy()
        np.fill_diagonal(unit, 1.0)
        change = max(np.linalg.norm(unit - before), np.linalg.norm(unit - psd))
        if change <= tolerance * np.linalg.norm(unit):
            break
    # The positive part of a matrix is never below it: the diagonal is at least 1 before it is scaled.
    psd = _positive_part(unit)
    scale = np.sqrt(np.diagonal(psd))
    result = np.clip(psd / np.outer(scale, scale), -1.0, 1.0)
    np.fill_diagonal(result, 1.0)
    return np.asarray(result)


def nearest_covariance(
    matrix: npt.ArrayLike, largest: npt.ArrayLike, tolerance: float = 1e-10, iterations: int = 2000
) -> Floats:
    """Return the nearest covariance matrix: positive semidefinite, with variances of at most ``largest``.

    ``matrix``: symmetric, as released. ``largest``: the largest variances that the
    declared bounds allow, one for each variable. A variable whose largest variance
    is 0 has variance and covariances 0. A matrix that meets the conditions already,
    to rounding, comes back unchanged.

    It is nearest in the Frobenius norm of the entries divided by
    sqrt(largest_i largest_j), so that the units of the variables do not matter. A
    matrix that meets the conditions, such as that of the data, is in this norm not
    farther from the result than from ``matrix``. It may be farther in single entries.

    Negative eigenvalues become zero. That is the nearest matrix unless a variance
    is then too large; if so, alternating projections with Dykstra's correction
    find it. ``tolerance`` and ``iterations`` as in `nearest_correlation`; after
    either, variances are scaled down to the largest ones, so the result meets the
    conditions in every case; stopped early, it is not the nearest one.

    Source: Higham 1988, "Computing a nearest symmetric positive semidefinite
    matrix", Theorem 2.1; Boyle, Dykstra 1986.

    >>> from pdprivacy import postprocess
    >>> postprocess.nearest_covariance([[1.0, 3.0], [3.0, 1.0]], [4.0, 4.0])
    array([[2., 2.],
           [2., 2.]])
    """
    proportion(tolerance, "tolerance")
    original, rounds = _symmetric(matrix, "matrix"), whole(iterations, "iterations", 0)
    most = _numbers(largest, "largest").astype(np.float64)
    if most.shape != original.shape[:1] or most.min() < 0:
        raise ParameterError("'largest' must be a variance of at least 0 for each variable.")
    result = np.zeros_like(original)
    some = np.flatnonzero(most > 0)
    block = np.ix_(some, some)
    if some.size:
        result[block] = _nearest_within(original[block], most[some], tolerance, rounds)
    return result


def _nearest_within(original: Floats, most: Floats, tolerance: float, rounds: int) -> Floats:
    """The nearest covariance matrix, for positive largest variances."""
    roots, variances = np.sqrt(most), np.diagonal(original)
    unit = original / roots / roots[:, np.newaxis]
    size = max(float(np.abs(unit).max()), 1.0)
    if ((variances >= 0) & (variances <= most)).all() and np.linalg.eigvalsh(unit)[0] >= -PSD_ROUNDING * size:
        return original
    psd = _positive_part(unit)
    correction, excess = unit - psd, np.zeros_like(unit)  # Dykstra's corrections of the cone and the limits
    for _ in range(rounds):
        if (np.diagonal(psd) <= 1).all() and not excess.any():
            break
        before, unit = unit, psd + excess
        np.fill_diagonal(unit, np.minimum(np.diagonal(unit), 1.0))
        excess += psd - unit
        change = max(np.abs(unit - before).max(), np.abs(unit - psd).max())
        if change <= tolerance * np.abs(unit).max():
            break
        start = unit + correction
        psd = _positive_part(start)
        correction = start - psd
    scale = roots / np.sqrt(np.maximum(np.diagonal(psd), 1.0))
    ceiling = np.outer(roots, roots)
    np.fill_diagonal(ceiling, most)
    scaled = psd * scale * scale[:, np.newaxis]
    return np.asarray(np.clip((scaled + scaled.T) / 2, -ceiling, ceiling))


def nearest_psd(covariance: npt.ArrayLike) -> Floats:
    """Return a covariance matrix with the same variances and the nearest possible correlations.

    ``covariance``: symmetric, as released. Negative variances become zero, and
    so do the covariances of a variable without variance; then the correlations
    are replaced by the nearest correlation matrix. A matrix that is positive
    semidefinite already, to rounding, comes back unchanged.

    It is nearest in the norm that divides each covariance by the two standard
    deviations, so that the units of the variables do not matter, among matrices
    with these variances.

    Source: Liu, section 4.1; Higham 2002.

    >>> from pdprivacy import postprocess
    >>> postprocess.nearest_psd([[4.0, 7.0], [7.0, 9.0]])
    array([[4., 6.],
           [6., 9.]])
    """
    result = bound_covariances(_symmetric(covariance, "covariance"))
    variances = np.diagonal(result).copy()
    some = np.flatnonzero(variances > 0)
    if not some.size:
        return result
    block = np.ix_(some, some)
    present = correlation(result[block])
    nearest = nearest_correlation(present)
    if not np.array_equal(present, nearest):
        result[block] = nearest * covariance_limit(variances[some])
    return result


short_public(sys.modules[__name__], __all__)
