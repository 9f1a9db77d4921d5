"""Global sensitivities in closed form: numbers in, numbers out.

The sensitivity of a statistic is how far it can move between two neighbouring
tables, over all tables whose values lie in their declared bounds. Every
function here depends on declared facts only, never on data.

Conventions of this page, which the docstrings do not repeat:

- ``neighbors="add_remove"``: one table has one record more than the other.
  ``neighbors="replace_one"``: both have n records and differ in one of them.
- ``n`` is a public number. Under "replace_one" it is the number of rows. Under
  "add_remove" it is a lower bound on the rows of the *larger* table; every
  formula falls as n grows, so it holds for all larger tables too. n must be
  large enough for both tables to have the statistic.
- R is ``upper - lower``, of the second column ``other_upper - other_lower``.
- For a single number the l1 and the l2 sensitivity are the same; functions
  whose statistic is a vector take ``norm``.
- *Tight* means that two neighbours attain the value; an *upper bound* is not
  attained, and the docstring says how far off it is.
- Neighbours that differ in one unit of at most k records are k steps apart, each of one record more,
  less or replaced: every l0, l1 and l2 sensitivity is k times the one of a record (Dwork, Roth 2014,
  Theorem 2.2). In l1 and l2 that is attained where records of a unit are in one cell or group, in l0 where
  each is in a cell or group of its own.
- Bounds may be floats or Fractions. Fractions in give a Fraction out, exactly;
  floats are rounded to nearest at each step. What needs no bounds is exact.
- ParameterError is raised for bounds that are not finite or not in order, for
  an n or a number of groups that is too small, and for an unknown name.

"Liu D" to "Liu H" are the appendices of F. Liu, "Statistical properties of
sanitized results from differentially private Laplace mechanism with univariate
bounding constraints".
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Literal, TypeAlias, TypeVar, get_args

from pdprivacy.checks import builtin, flag, is_number, one_of, whole
from pdprivacy.core.privacy import Neighbors, Rational, positive, rational
from pdprivacy.errors import ParameterError, got, short_public
from pdprivacy.exact import next_up

__all__ = [
    "Norm",
    "count",
    "cov",
    "disjoint_groups",
    "disjoint_sums",
    "extreme",
    "histogram",
    "mean",
    "nunique",
    "pooled_cov",
    "pooled_var",
    "quantile",
    "sum",
    "var",
    "weighted_range",
]

Norm: TypeAlias = Literal["l1", "l2"]
Number = TypeVar("Number", float, Fraction)
Exact = TypeVar("Exact", int, float, Fraction)

LARGEST = 10**150
"""The largest bound or number of rows, so that a product of two ranges is a finite double."""


def _replaces(neighbors: Neighbors) -> bool:
    one_of(neighbors, "neighbors", get_args(Neighbors))
    return neighbors == "replace_one"


def _range(lower: Number, upper: Number, prefix: str = "") -> Number:
    # Fixed-width integers of numpy are refused: upper - lower could wrap around.
    for name, bound in (("lower", lower), ("upper", upper)):
        exact = isinstance(bound, int | Fraction) and not isinstance(bound, bool)
        if not exact and not (isinstance(bound, float) and math.isfinite(bound)):
            raise ParameterError(
                f"'{prefix}{name}' must be a finite int, float or Fraction (got {got(bound)})."
            )
    if not lower < upper:
        raise ParameterError(
            f"'{prefix}lower' must be less than '{prefix}upper' (got {got(lower)} and {got(upper)})."
        )
    try:
        width: Number = builtin(upper) - builtin(lower)
    except OverflowError:
        raise _too_far() from None
    return width if isinstance(width, float) or width <= LARGEST else Fraction(width)


def _area(width: Number, other: Number) -> Number:
    try:
        return width * other
    except OverflowError:
        raise _too_far() from None


def _too_far() -> ParameterError:
    return ParameterError("The difference of the bounds must be a finite double where a bound is a float.")


def _at_least(least: int, value: int, name: str = "n") -> int:
    number = whole(value, name, least)
    return number if number <= LARGEST else whole(value, name, least, LARGEST)


def _moves(cells: int, norm: Norm, squared: bool) -> Fraction | float:
    """The norm of a vector in which so many ``cells`` move by 1 each; the l2 float is rounded up."""
    one_of(norm, "norm", get_args(Norm))
    flag(squared, "squared")
    if norm == "l1":
        return Fraction(cells**2 if squared else cells)
    if squared:
        return Fraction(cells)
    root = math.sqrt(cells)
    return root if Fraction(root) ** 2 >= cells else next_up(root)


def count(*, neighbors: Neighbors) -> int:
    """The sensitivity of a count of records that meet a condition: 1. Tight.

    Under "replace_one" the number of all records is public, and the replaced
    record may meet the condition before, after, both or neither.

    >>> from pdprivacy.core import sensitivities as sensitivity
    >>> sensitivity.count(neighbors="add_remove")
    1
    """
    _replaces(neighbors)
    return 1


def sum(  # noqa: A001 - named after the statistic, as numpy.sum
    lower: Number,
    upper: Number,
    *,
    neighbors: Neighbors,
    centered: bool = False,
    may_vanish: bool = False,
) -> Number:
    """The sensitivity of a sum: max(|lower|, |upper|) under "add_remove", R under "replace_one". Tight.

    ``centered``: the sum of x - (lower + upper)/2 over the records that
    contribute: R/2 under "add_remove", R under "replace_one".

    ``may_vanish``: a replaced record may also drop out of the sum (a null, a
    filter): max(R, |lower|, |upper|) under "replace_one", and R if centered. It
    changes nothing under "add_remove".

    Products are terms like any other: with c the middles of the bounds, (x - c)² - R²/8 lies in
    [-R²/8, R²/8], where the subtracted constant halves what one record more or less can do, and
    (x - c₁)(y - c₂) lies in [-R₁R₂/4, R₁R₂/4].

    Source: one record moves the sum by its own term; the centred form follows
    from bounds -R/2 and R/2.

    >>> from pdprivacy.core import sensitivities as sensitivity
    >>> sensitivity.sum(18.0, 65.0, neighbors="add_remove")
    65.0
    >>> sensitivity.sum(18.0, 65.0, neighbors="add_remove", centered=True)
    23.5
    """
    width, vanishes = _range(lower, upper), flag(may_vanish, "may_vanish")
    alone = width / 2 if flag(centered, "centered") else max(abs(builtin(lower)), abs(builtin(upper)))
    if not _replaces(neighbors):
        return alone
    return max(width, alone) if vanishes else width


def disjoint_groups(*, neighbors: Neighbors) -> int:
    """The l0 sensitivity of numbers of disjoint groups: 1 under "add_remove", 2 if replaced. Tight.

    It is the number of groups whose records differ, and so a bound for any statistic that has one number per
    group, such as a table of counts or of sums.

    Source: a record more or less is in one group. A replaced record leaves one group and enters another one,
    or stays in its own with other values.

    >>> from pdprivacy.core import sensitivities as sensitivity
    >>> sensitivity.disjoint_groups(neighbors="replace_one")
    2
    """
    return 2 if _replaces(neighbors) else 1


def disjoint_sums(lower: int, upper: int, *, neighbors: Neighbors) -> tuple[int, int]:
    """The l1 and squared l2 sensitivity of sums in disjoint groups, terms in [lower, upper]. Tight.

    With m = max(|lower|, |upper|): m and m² under "add_remove"; under "replace_one" max(2m, R) and
    max(2m², R²). The terms are whole numbers, and bounds may be equal. At least 1, so that sums
    that cannot move get noise too.

    Source: a record more or less is a term of one group, at most m in size. A replaced record leaves one
    group with a term x and enters another one with y, which moves two sums by |x| + |y| <= 2m in l1 and by
    x² + y² <= 2m² in squared l2; or it stays in its group, whose sum moves by at most R. All are attained.

    A table of weights in [a, b], 0 <= a <= b, holds such sums of the weights: b and b² under "add_remove".
    Under "replace_one" a record that changes its cell moves 2b (l1) and √2 b (l2), one that changes its
    weight alone b - a, which is less.

    >>> from pdprivacy.core import sensitivities as sensitivity
    >>> sensitivity.disjoint_sums(0, 10, neighbors="replace_one")
    (20, 200)
    """
    low = whole(lower, "lower")
    high = whole(upper, "upper", low)
    most, width = max(abs(low), abs(high), 1), high - low
    if not _replaces(neighbors):
        return most, most**2
    return max(2 * most, width), max(2 * most**2, width**2)


def weighted_range(
    lower: Exact, upper: Exact, weight_lower: Exact, weight_upper: Exact
) -> tuple[Exact, Exact]:
    """The range of w x for weights w in [a, b], 0 <= a <= b: the bounds of the terms of a weighted sum.

    Tight: from min(a lower, b lower) to max(a upper, b upper). A weighted sum is a `sum` of such terms, and
    moves as that does. With c the middle of the bounds, w (x - c) lies in [-b R/2, b R/2]: its sum moves by
    b R/2 under "add_remove" and by b R under "replace_one". The sum of the weights has terms in [a, b].

    A record with a null in x or in w is left out, so that a replaced one may vanish.

    Source: w x is linear in each of both, so that its extremes over intervals are at their ends; w and x may
    be any two numbers of theirs, so that both extremes are attained.

    >>> from pdprivacy.core import sensitivities as sensitivity
    >>> sensitivity.weighted_range(-1.0, 2.0, 0.5, 3.0)
    (-3.0, 6.0)
    >>> sensitivity.sum(*sensitivity.weighted_range(-1.0, 2.0, 0.5, 3.0), neighbors="replace_one")
    9.0
    """
    ends = (lower, upper, weight_lower, weight_upper)
    numbers = all(is_number(end) for end in ends)
    if not (
        numbers and -math.inf < lower <= upper < math.inf and 0 <= weight_lower <= weight_upper < math.inf
    ):
        raise ParameterError(
            "Bounds must be finite and in order, and those of weights at least 0 "
            f"(got {got(lower)} and {got(upper)}, {got(weight_lower)} and {got(weight_upper)})."
        )
    return min(weight_lower * lower, weight_upper * lower), max(weight_lower * upper, weight_upper * upper)


def quantile(
    q: Rational, *, neighbors: Neighbors, weight_upper: Rational = 1, grouped: bool = False
) -> Fraction:
    """The sensitivity of the score of a q quantile: max(q, 1 - q) under "add_remove", 1 if replaced. Tight.

    The score is minus the distance of the target T = q n to [L, R], where L of n records are below the
    value and R up to it: -max(L - T, T - R, 0).

    Where records have weights w in [0, b], b = ``weight_upper``, n, L and R are sums of weights, and the
    sensitivity is b times as large. A record adds w (1 - q) or -w q to L - T, and w (q - 1) or w q to
    T - R. One more or less moves each by b max(q, 1 - q) at most. All of these numbers, and the 0 of a record
    that is left out, lie in an interval of width b, [-b q, b (1 - q)] or [b (q - 1), b q], so that a replaced
    record moves each by b at most, also where its weight changes. Attained by records of weight b.

    ``grouped``: the sum over disjoint groups of the sensitivity of each group's score, which the losses of
    one selection per group add up to: max(q, 1 - q), times 2 if replaced. A replaced record that changes its
    group is a record less in one group and a record more in another one; one that stays moves the score of
    its group by 1, and 1 <= 2 max(q, 1 - q).

    Source: with a record x more, L - T moves by 1 - q if x is below the value and by -q if not, T - R by
    q - 1 if x is not above it and by q if it is, and a maximum moves by no more than what it is the maximum
    of. If x is replaced, T stays, and L and R move by 1 at most; or a record appears or vanishes, as above.
    Score: Smith (2011), "Privacy-preserving statistical estimation with optimal convergence rates",
    Algorithm 2.

    >>> from pdprivacy.core import sensitivities as sensitivity
    >>> sensitivity.quantile(0.25, neighbors="add_remove")
    Fraction(3, 4)
    """
    share = rational(q, "q")
    if not 0 <= share <= 1:
        raise ParameterError(f"'q' must be between 0 and 1 (got {got(q)}).")
    weight, alone = positive(weight_upper, "weight_upper"), max(share, 1 - share)
    if flag(grouped, "grouped"):
        return weight * alone * disjoint_groups(neighbors=neighbors)
    return weight if _replaces(neighbors) else weight * alone


def extreme(*, neighbors: Neighbors, grouped: bool = False) -> int:
    """The sensitivity of the score of a rank r counted from either end: 1. Tight.

    The score is that of `quantile` with the target T = r, a fixed number, or T = n - r, the same rank from
    the other end. ``grouped``, as there: 1 under "add_remove", 2 if replaced.

    Source: with T = r, a record more moves L and R by 0 or 1 each, a replaced one by 1 at most, and so each
    term of max(L - T, T - R, 0). With T = n - r the terms are r - (n - L) and (n - R) - r, and n - L and
    n - R, the numbers of records from the value on and above it, move as L and R do. In groups, a replaced
    record moves the scores of two groups by 1 each, or that of its own group by 1.

    >>> from pdprivacy.core import sensitivities as sensitivity
    >>> sensitivity.extreme(neighbors="replace_one")
    1
    """
    groups = disjoint_groups(neighbors=neighbors)
    return groups if flag(grouped, "grouped") else 1


def nunique(*, neighbors: Neighbors) -> int:
    """The sensitivity of the number of declared labels that some record holds: 1. Tight.

    Source: a record more or less can only make its own label appear or vanish. A replaced record
    takes its old label away, by which the number falls by 1 or not at all, and brings a new one, by
    which it rises by 1 or not at all: together it moves by 1 at most. The k records of a unit are k
    such steps; the number moves by k where each of them is the only one with its label.

    >>> from pdprivacy.core import sensitivities as sensitivity
    >>> sensitivity.nunique(neighbors="replace_one")
    1
    """
    _replaces(neighbors)
    return 1


def mean(lower: Number, upper: Number, n: int, *, neighbors: Neighbors) -> Number:
    """The sensitivity of the mean of a column: R/n. Tight.

    n is at least 1 under "replace_one", 2 under "add_remove".

    Source: Liu D. Under "add_remove" the mean moves by (x - mean of the others)/n.

    >>> from fractions import Fraction
    >>> from pdprivacy.core import sensitivities as sensitivity
    >>> sensitivity.mean(Fraction(18), Fraction(65), 100, neighbors="replace_one")
    Fraction(47, 100)
    """
    width = _range(lower, upper)
    return width / _at_least(1 if _replaces(neighbors) else 2, n)


def histogram(
    *, neighbors: Neighbors, norm: Norm = "l1", squared: bool = False, levels: int = 1
) -> Fraction | float:
    """The sensitivity of a table of disjoint cells: 1 under "add_remove"; 2 (l1), √2 (l2) if replaced. Tight.

    ``squared`` gives the square of the sensitivity, which is exact in l2 too.
    The l2 float is rounded up.

    ``levels``: the number of tables of one and the same records, such as the levels of a tree of counts. The
    l1 sensitivity is so many times that of a table, the l2 sensitivity the root of that number times. Tight
    under "add_remove", and where a replaced record can change its cell in each table; the count of a
    root, which a replaced record does not leave, moves by less.

    Source: Liu D for l1; a replaced record takes 1 from one cell and adds 1 to
    another, hence √2 in l2. The changes of several tables are those of one vector; for trees: Hay, Rastogi,
    Miklau, Suciu (2010), "Boosting the accuracy of differentially private histograms through consistency",
    section 4.

    >>> from pdprivacy.core import sensitivities as sensitivity
    >>> sensitivity.histogram(neighbors="replace_one")
    Fraction(2, 1)
    >>> sensitivity.histogram(neighbors="replace_one", norm="l2", squared=True)
    Fraction(2, 1)
    """
    cells = disjoint_groups(neighbors=neighbors) * _at_least(1, levels, "levels")
    return _moves(cells, norm, squared)


def var(lower: Number, upper: Number, n: int, *, neighbors: Neighbors) -> Number:
    """The sensitivity of the sample variance (divisor n - 1): R²/n. Tight.

    n is at least 2 under "replace_one", 3 under "add_remove".

    Source: Liu E. With m and s² of the n - 1 other records, a record at x adds
    (x - m)²/n - s²/(n - 1), and s²/(n - 1) is at most R²/(4(n - 2)).

    >>> from pdprivacy.core import sensitivities as sensitivity
    >>> sensitivity.var(0.0, 10.0, 50, neighbors="add_remove")
    2.0
    """
    width = _range(lower, upper)
    return width * width / _at_least(2 if _replaces(neighbors) else 3, n)


def cov(
    lower: Number,
    upper: Number,
    other_lower: Number,
    other_upper: Number,
    n: int,
    *,
    neighbors: Neighbors,
) -> Number:
    """The sensitivity of the sample covariance (divisor n - 1) of two columns: R₁R₂/n. Tight.

    n is at least 2 under "replace_one", 3 under "add_remove".

    Source: Liu F. For the proof under "add_remove" take R₁ = R₂ = 1 and, the
    change being linear in every value, all values at a bound; reflect the
    columns so that the added record is (0, 0). If shares a, b, c of the others
    have x = 1, y = 1 and both, the change is ab(1/n + 1/(n - 2)) - c/(n - 2) with
    max(0, a + b - 1) <= c <= min(a, b). Its largest value is at a = b = 1, where
    it is 1/n, or at a = b = 1/2, c = 0; its smallest is at least -1/(4(n - 2)).
    None exceeds 1/n for n >= 3.

    >>> from pdprivacy.core import sensitivities as sensitivity
    >>> sensitivity.cov(0.0, 10.0, 0.0, 1.0, 50, neighbors="add_remove")
    0.2
    """
    area = _area(_range(lower, upper), _range(other_lower, other_upper, "other_"))
    return area / _at_least(2 if _replaces(neighbors) else 3, n)


def _largest_group(largest: int | None, rows: int, cells: int) -> int | None:
    """The most records of a group, where that is public; refuse groups that cannot hold all records."""
    if largest is None:
        return None
    most = _at_least(1, largest, "largest_group")
    if most * cells < rows:
        raise ParameterError(
            f"'largest_group' must let {cells} groups hold {rows} records (got {got(largest)}).",
            f"largest_group={-(-rows // cells)} or more.",
        )
    return most


def pooled_var(
    lower: Number,
    upper: Number,
    n: int,
    groups: int,
    *,
    neighbors: Neighbors,
    largest_group: int | None = None,
) -> Number:
    """The sensitivity of the pooled within-group variance: R²/(n - J), an upper bound.

    The statistic is the sum over the J = ``groups`` declared groups of the sums
    of squares about the group means, divided by (records - J); a group with
    fewer than two records adds nothing. A replaced record may change its group.
    n is at least J + 1 under "replace_one", J + 2 under "add_remove".

    Under "add_remove" with fewer than 1 + 4J/3 records the value is larger,
    R²(n - 1) / (4(n - 1 - J)(n - J)): the divisor alone moves it that far.

    From n = 4(J + 1)/3 on the supremum is 1 - 1/n times R²/(n - J): all records
    in one group.

    ``largest_group``: a number m that no group of any possible table exceeds, as everybody
    knows; then R²(1 - 1/m)/(n - J), tight under "replace_one": half for pairs, 3 % less for 30.
    It must hold for both neighbours, so it is no number read off the data.

    Source: Liu G. A record enters a group of k others at distance d of their mean
    and adds kd²/(k + 1) to the sum of squares, between 0 and R²(1 - 1/n). Under
    "replace_one" one such term goes and one comes: the larger counts, in one
    group or in two. Under "add_remove" the change is (one term - old pooled
    variance)/(n - J), and the old one is at most R²(n - 1)/(4(n - 1 - J)).
    The paper's values depend on the group sizes, which are private. With groups of at
    most m records, with the record that enters, k + 1 <= m: the term is at most R²(1 - 1/m).

    >>> from pdprivacy.core import sensitivities as sensitivity
    >>> sensitivity.pooled_var(0.0, 10.0, 104, 4, neighbors="replace_one")
    1.0
    >>> sensitivity.pooled_var(0.0, 10.0, 104, 54, neighbors="replace_one", largest_group=2)
    1.0
    """
    width = _range(lower, upper)
    replaced = _replaces(neighbors)
    cells = _at_least(1, groups, "groups")
    rows = _at_least(cells + (1 if replaced else 2), n)
    most = _largest_group(largest_group, rows, cells)
    bound = width * width / (rows - cells)
    term = bound if most is None else bound - bound / most
    if replaced:
        return term
    return max(term, bound * (rows - 1) / (4 * (rows - 1 - cells)))


def pooled_cov(
    lower: Number,
    upper: Number,
    other_lower: Number,
    other_upper: Number,
    n: int,
    groups: int,
    *,
    neighbors: Neighbors,
    group_changes: bool = True,
    largest_group: int | None = None,
) -> Number:
    """The sensitivity of the pooled within-group covariance of two columns, J = ``groups``. Upper bounds.

    The statistic is that of `pooled_var` with products in place of squares.

    - "replace_one": 2R₁R₂/(n - J) for a group that belongs to the record and may
      be replaced with it; R₁R₂/(n - J) with ``group_changes=False``, where
      neighbours agree in every record's group. The suprema are
      2(n - 1)/(n + 1) and 1 - 1/n in place of 2 and 1 (the first for two or
      more groups and odd n).
    - "add_remove": R₁R₂/(n - J) · f(t), f(t) = 1 - 1/t + (n - t)/(4D), D = n - 1 - J, at
      the t where f is largest, the last with t(t - 1) <= 4D. f(t) is about
      5/4 - 1/√D in large tables. The supremum is as much if there are two or
      more groups, up to the rounding of odd group sizes.

    ``largest_group``: as in `pooled_var`, a public m that no group exceeds. Under "replace_one"
    the values are then 1 - 1/m times as large; with n = mJ all groups are full, so that no record can
    change its group. Under "add_remove", t is at most m.

    n is at least J + 1 under "replace_one", J + 2 under "add_remove".

    Source: Liu H for fixed groups. A record at distances d and e from the means
    of the k others of its group adds kde/(k + 1), at most R₁R₂ either way. A
    record that changes its group takes one such term away and brings one of the
    opposite sign.

    Under "add_remove" Liu H prints R₁R₂/(n - J), which is too small: the added
    record may raise the covariance in its group of t while the other groups hold a
    negative one that now counts for less. With R₁ = R₂ = 1 and C the old sum of
    products, the change is [kde/(k + 1) - C/D]/(n - J), k = t - 1. The n - t records of
    the other groups have at most (n - t)/4 of -C. As in `cov`, the rest of the bracket
    is at most k/(k + 1), which makes f(t), or (k/(k + 1) + k/D)/4, which makes less
    than 1/4 + (n - 1)/(4D) <= f(2). An empty group (k = 0) and the negative side give
    at most (n - 1)/(4D) <= f(2). f(t) - f(t - 1) = 1/(t(t - 1)) - 1/(4D). Attained by
    (1, 1) added to t - 1 records at (0, 0), the other groups half (0, 1), half (1, 0).
    As f rises up to its largest value, groups of at most m records leave f(min(t, m)).

    >>> from pdprivacy.core import sensitivities as sensitivity
    >>> sensitivity.pooled_cov(0.0, 10.0, 0.0, 1.0, 104, 4, neighbors="replace_one")
    0.2
    """
    area = _area(_range(lower, upper), _range(other_lower, other_upper, "other_"))
    replaced, changes = _replaces(neighbors), flag(group_changes, "group_changes")
    cells = _at_least(1, groups, "groups")
    rows = _at_least(cells + (1 if replaced else 2), n)
    most = _largest_group(largest_group, rows, cells)
    bound = area / (rows - cells)
    if replaced:
        term = bound if most is None else bound - bound / most
        full = most is not None and most * cells == rows
        return 2 * term if changes and not full else term
    spare = rows - 1 - cells
    worst = (1 + math.isqrt(1 + 16 * spare)) // 2  # the largest t with t(t - 1) <= 4 spare
    worst = worst if most is None else min(worst, most)
    return bound - bound / worst + bound * (rows - worst) / (4 * spare)


short_public(sys.modules[__name__], __all__)
