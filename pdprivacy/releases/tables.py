"""Contingency tables: their cells, shares, margins and constraints, and the risk of a released table."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias, Unpack, get_args

import numpy as np
import pandas as pd

from pdprivacy import postprocess
from pdprivacy.checks import flag, one_of, whole
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.parts import with_step
from pdprivacy.core.gate.request import Options
from pdprivacy.core.gate.spec import (
    AnswerLabels,
    Call,
    Release,
    cell_index,
    check_cells,
    columns_of,
    passed_on,
    weighted_columns,
    with_noise_keywords,
)
from pdprivacy.core.privacy import Rational
from pdprivacy.core.statistics import (
    Answer,
    CellCounts,
    Scope,
    Statistic,
    TreeCells,
    WeightedCells,
    weight_of,
)
from pdprivacy.core.statistics.confidence import Ends, Noisy, of_shares
from pdprivacy.declaration.domain import Column
from pdprivacy.declaration.linear import LinearConstraint
from pdprivacy.errors import ParameterError, got
from pdprivacy.hints.examples import EXAMPLES, Example
from pdprivacy.releases.consistency import linearly
from pdprivacy.releases.derivations import complete_records
from pdprivacy.releases.margins import margin_label, summed, with_all
from pdprivacy.releases.moments import Aggregate, pivot_table
from pdprivacy.releases.publish import release_of
from pdprivacy.releases.results import Errors, Result
from pdprivacy.risk.released_risk import CountRisk
from pdprivacy.types import Floats, Labels

Normalize: TypeAlias = bool | Literal["all", "index", "columns"]
NamedConstraint: TypeAlias = Literal["rescale", "all_but_one", "hierarchy", "simplex", "nonnegative"]
Constraint: TypeAlias = NamedConstraint | LinearConstraint | Sequence[LinearConstraint]
CONSTRAINTS: tuple[str, ...] = get_args(NamedConstraint)

AXES = {"all": None, "index": 1, "columns": 0}
"""The axis of a table over which shares sum to one."""

SUMS_AT = {"all": np.s_[-1:, -1:], "index": np.s_[:, -1:], "columns": np.s_[-1:, :]}
"""The denominators of shares in a table with margins."""

KEPT = {"all": np.s_[:, :], "index": np.s_[:, :-1], "columns": np.s_[:-1, :]}
"""The shares in a table with margins that are not 1 throughout."""


def whole_counts(result: Result) -> Result:
    """Return counts as integers if the noise is on the integers."""
    if not result.price.mechanisms[0].integer:
        return result
    answer = replace(result.answer, values=np.asarray(result.answer.values, np.int64))
    return replace(result, answer=answer, stated_errors=result.errors)


def noise_of_cells(noise: Options, weight: Column | None) -> Options:
    """The noise of a table: of sums of weights, which are no whole numbers, Laplace where it is geometric."""
    integer = weight is not None and noise["mechanism"] == "geometric"
    return {**noise, "mechanism": "laplace"} if integer else noise


def cells_of(
    scope: Scope,
    columns: tuple[Column, ...],
    method: str,
    weight: Column | None,
    edges: tuple[float, ...] | None = None,
) -> CellCounts | WeightedCells:
    """The counts of declared cells, or the sums of their records' weights."""
    if weight is None:
        return CellCounts(columns, scope, method, edges)
    return WeightedCells(columns, scope, method, weight_of(weight, method), edges)


@with_noise_keywords("geometric")
def crosstab(
    protected: Facts,
    index: Labels,
    columns: Labels,
    *,
    epsilon: Rational,
    normalize: Normalize = False,
    margins: bool = False,
    margins_name: str | None = None,
    constraint: Constraint | None = None,
    branching: int = 2,
    weights: Hashable | None = None,
    values: Labels | None = None,
    aggfunc: Aggregate | Sequence[Aggregate] | None = None,
    dropna: bool = False,
    **noise: Unpack[Options],
) -> Release[pd.DataFrame]:
    """A contingency table of declared cells, the empty ones too, as `pandas.crosstab`.

    ``normalize`` (True or "all", "index", "columns") and ``margins`` (row and column ``margins_name``, by
    default "All", which is no declared label) are made of the noisy counts at no further cost. Without
    ``bounding`` or ``constraint`` counts are not clamped: a negative one is noise. Each share is moved
    between 0 and 1 (``bounding=None``: it is not), so that shares may no longer sum to one. Bounding biases
    each count, and margins and shares by the sum of these biases (a `pdprivacy.errors.BoundingWarning` says
    so); their intervals include it, and their bias is not stated.

    ``constraint`` makes the numbers consistent, by arithmetic on the noisy ones alone: non-negative shares
    that sum to one, or non-negative whole counts that sum to the number of rows where that is public
    (``neighbors="replace_one"``).

    - "rescale": negative numbers to zero, the others divided by their sum.
    - "simplex": the nearest such numbers (Euclidean).
    - "all_but_one": each number but the last as it is, up to what is left of the total; the last is the rest.
    - "hierarchy": sums of ``branching`` neighbouring cells, of that many sums, and so on get noise
      too, each level its share of the loss, and all are made consistent by least squares. Better
      for sums over many neighbouring cells, worse for single ones. The total may be private.
    - "nonnegative": for counts only: negative ones to zero, in whole numbers. No total is kept.

    - a `pdprivacy.postprocess.LinearConstraint`, or a list of them: the nearest cells (Euclidean) whose
      weighted sums lie within public limits; see below.

    Standard errors are those before the constraint; ``plus_minus`` is around the numbers after it.

    Linear constraints name cells by their labels. With ``LinearConstraint({("north", "yes"): 1,
    ("north", ...): -0.2}, upper=0)``, at most 20 % of the north have "yes". Counts are then at least 0, at
    most the number of rows where that is public, and no whole numbers any more; shares (``normalize=True``)
    sum to one. With ``bounding=None`` only the sums are constrained, which has no bias where they are known
    exactly. A table that meets the constraints, as the exact one does, is not farther from the released table
    than from the noisy one; a single cell may be. The bias of a cell depends on the exact counts and is not
    stated; ``unprojected()`` returns the noisy table. Labels that are not declared, and constraints that no
    table meets, are refused before the charge. Margins, and shares of rows or columns, are not supported.

    ``weights``: a column whose sums are released instead of counts, as in `value_counts`. Their total is
    private, and they are not whole: the constraint "nonnegative" applies to such sums, "rescale", "simplex"
    and "all_but_one" to their shares, "hierarchy" to counts only. No disclosure risk is estimated from them.

    ``values`` and ``aggfunc``: the label of a numeric column and a statistic, such as "mean", for the table
    of `pivot_table` instead of counts, with Laplace noise instead of geometric.

    ``dropna``: without the records that have a null in one of the columns. By default the table has a row
    and a column of nulls where nulls are declared, unlike that of pandas.

    Returns a DataFrame. With a quasi-identifier and a sensitive column among its columns,
    ``attrs["dp"]["dr_ha"]`` holds the expected homogeneity-attack disclosure risk, estimated from released
    counts alone, or the reason why it is not known. Sensitivity as `value_counts`.

    Source of the constraints: Liu (2019), sections 3.1 and 4.2; Hay et al. (2010).

    Raises DeclarationError for a column without declared cells, TableTooLargeError above 1e8 cells,
    ParameterError for a constraint that cannot be met.

    >>> import pandas as pd, pandera.pandas as pa
    >>> flag = pa.Column(bool, metadata={"dp": {}})
    >>> frame = pd.DataFrame({"ill": [True, False] * 50, "member": [True] * 100})
    >>> private = frame.dp.protect(pa.DataFrameSchema({"ill": flag, "member": flag}), epsilon=1)
    >>> private.dp.crosstab("ill", "member", epsilon=0.5, rng=1)
    member  False  True
    ill
    False      -1     49
    True        0     50
    """
    sides = [columns_of(protected, side, "crosstab") for side in (index, columns)]
    if (step := complete_records(protected, [*sides[0], *sides[1]], dropna)) is not None:
        protected = with_step(protected, step)
    if values is not None or aggfunc is not None:
        given = {"normalize": normalize, "constraint": constraint, "weights": weights}
        options = {"epsilon": epsilon, "margins": margins, "margins_name": margins_name, **passed_on(noise)}
        return _cells_of_values(protected, values, index, columns, aggfunc, given, options)
    rows, weight = weighted_columns(protected, index, weights, "crosstab")
    tops, _ = weighted_columns(protected, columns, weights, "crosstab")
    if not isinstance(normalize, bool | str) or normalize not in (False, True, "all", "index", "columns"):
        raise ParameterError(
            f"'normalize' must be False, True, 'all', 'index' or 'columns' (got {got(normalize)}).",
            "normalize=True for shares of all, 'index' of each row",
        )
    flag(margins, "margins")
    margins_name = margin_label(margins_name)
    if {column.name for column in rows} & {column.name for column in tops}:
        raise ParameterError("'index' and 'columns' share a column.", EXAMPLES["crosstab"])
    axes = (*rows, *tops)
    check_cells(axes, "crosstab")
    call = Call.of("crosstab", epsilon, noise_of_cells(noise, weight), tops, rows, constraint, weight)
    way = "all" if normalize is True else normalize or None
    call = replace(call, normalize=way, margins=bool(margins))
    cells = cells_of(protected.scope, axes, "crosstab", weight)
    statistic, shape = constrained(cells, call, branching)
    labels = [cell_index(side, "crosstab") for side in (rows, tops)]
    shape_of_cells = tuple(map(len, labels))
    if margins:
        # as pandas: shares per row have no column of ones, shares per column no row of them
        without = ("columns", "index")
        labels = [
            index if way == axis else with_all(index, margins_name)
            for index, axis in zip(labels, without, strict=True)
        ]

    def numbers(result: Result) -> Result:
        table = result.reshaped(shape_of_cells)
        table = with_margins(table, call, shape) if margins else shape(table)
        return possible_shares(table, call) if way or call.linear else whole_counts(table)

    risk_of = CountRisk.of(protected, call, axes, statistic)
    return release_of(protected, call, statistic, AnswerLabels(labels[0], labels[1]), numbers, risk=risk_of)


def _cells_of_values(
    protected: Facts,
    values: Labels | None,
    index: Labels,
    columns: Labels,
    aggfunc: Any,
    counted: Mapping[str, Any],
    options: dict[str, Any],
) -> Release[pd.DataFrame]:
    """The pivot table of a crosstab with values; ``counted``: arguments that are for counts."""
    if values is None or aggfunc is None:
        raise ParameterError(
            "'values' and 'aggfunc' go together: a numeric column and a statistic of it.",
            Example('private.dp.crosstab("region", "health", values="age", aggfunc="mean", epsilon=0.1)'),
        )
    for name, value in counted.items():
        if value is not None and value is not False:
            raise ParameterError(
                f"{name!r} is for counts, not for {got(aggfunc)} of 'values'.", f"leave {name} out."
            )
    if options["mechanism"] == "geometric":
        options["mechanism"] = "laplace"
    return pivot_table(protected, values, index, columns, aggfunc, **options)


# ---------------------------------------------------------------- shares, margins and constraints


def _measured(result: Result) -> Floats:
    """The noisy cells whose errors are known; of a bounded tree not those that are made of its nodes."""
    values = np.asarray(result.answer.values)
    if result.bounding is None:
        return values
    return result.noisy[0].values[: values.size].reshape(values.shape)


def _shares_of(result: Result, *, axis: int | None, total: int | None) -> Result:
    """Shares of the public total, or of noisy totals (of all, of rows or of columns), with their errors."""
    values = np.asarray(result.answer.values)
    if total is None:
        measured, members = _measured(result), values.size if axis is None else values.shape[axis]
        wholes = [cells.sum(axis=axis, keepdims=axis is not None) for cells in (values, measured)]
        return _noisy_shares(result, (values, measured), wholes, 1.0, members)
    rows = max(total, 1)

    def interval(level: float) -> Ends:
        lower, upper = result.interval(level)
        return lower / rows, upper / rows

    error = np.full(values.shape, float(result.answer.standard_error) / rows)
    shares = Answer(values / rows, error, 0.0, 0.0, 1.0, interval)
    return result.transformed(lambda _: shares, bias_known=False)


def _noisy_shares(
    result: Result,
    counts: Sequence[Floats],
    wholes: Sequence[Floats],
    size: Any,
    members: Any,
    kept: Any = ...,
) -> Result:
    """Shares of counts of ``size`` cells each in noisy wholes of ``members`` cells, those that are ``kept``.

    Counts and wholes: first as they are released, then as they were measured.
    """
    answer, std = result.answer, float(result.answer.standard_error)
    measured = Noisy(counts[1], std, result.noisy[0].tail)
    divisor = np.maximum(wholes[0], answer.largest_term)
    shares = counts[0] / divisor
    # to first order
    spread = np.maximum(size * (1 - 2 * shares) + members * shares**2, 0.0)
    error = std * np.sqrt(spread) / divisor

    def interval(level: float) -> Ends:
        lower, upper = of_shares(level, measured, wholes[1], size, members)
        return lower[kept], upper[kept]

    outcome = Answer(shares[kept], error[kept], 0.0, 0.0, 1.0, interval)
    if answer.effective_rows_of_sums is not None:
        effective_rows = np.broadcast_to(answer.effective_rows_of_sums(wholes[0], members), shares.shape)
        outcome = replace(outcome, effective_rows=effective_rows[kept])
    return result.transformed(lambda _: outcome, bias_known=result.bounding is None)


def possible_shares(table: Result, call: Call) -> Result:
    """Return shares moved between 0 and 1, unless the call has another bounding or a constraint."""
    if call.normalize is None or call.constraint is not None or not call.request.projects:
        return table
    return table.within_bounds()


def with_margins(table: Result, call: Call, shape: Callable[[Result], Result]) -> Result:
    """The table with its sums.

    These are sums of noisy counts, and what pandas makes of them where normalized; with a constraint, sums of
    the consistent numbers that ``shape`` makes, so that they are consistent, too.
    """
    size = summed(np.ones(np.shape(table.answer.values)))
    if call.normalize is None:
        result = _counts_with_margins(table, size)
        std = float(table.answer.standard_error)
        result = replace(result, stated_errors=_errors_of_sums(result.errors, table.errors, size, std))
    else:
        result = _shares_with_margins(table, call.normalize, size)
    if call.constraint is not None:
        result = result.projected(summed(np.asarray(shape(table).answer.values)))
    return result


def _counts_with_margins(table: Result, size: Floats) -> Result:
    """The counts with their sums, each of ``size`` cells."""
    std, tail = float(table.answer.standard_error), table.noisy[0].tail
    whole, measured = summed(np.asarray(table.answer.values)), summed(_measured(table))

    def interval(level: float) -> Ends:
        half = tail.half(level, np.full((*size.shape, 1), std), size[..., np.newaxis])
        ends = measured - half, measured + half
        for end, own in zip(ends, table.interval(level), strict=True):
            end[:-1, :-1] = own
        return ends

    # sums of bounded counts: not below zero, but of as many as there are cells
    sums = Answer(whole, std * np.sqrt(size), 0.0, 0.0, math.inf, interval)
    sums = replace(sums, effective_rows=table.answer.effective_rows)
    return table.transformed(lambda _: sums, bias_known=False)


def _shares_with_margins(table: Result, normalize: str, size: Floats) -> Result:
    """The shares of counts and of their sums, each of ``size`` cells, of all, a row or a column."""
    counts = [summed(np.asarray(table.answer.values)), summed(_measured(table))]
    sums = SUMS_AT[normalize]
    return _noisy_shares(table, counts, [cells[sums] for cells in counts], size, size[sums], KEPT[normalize])


def _errors_of_sums(sums: Errors, cells: Errors, size: Floats, std: float) -> Errors:
    """The errors of a table with its sums: of a bias that adds up, the largest is known, and no other."""
    if cells.bias is None:
        return sums

    def with_cells(of_cells: Any, of_sums: Any) -> Floats:
        combined = np.array(np.broadcast_to(of_sums, size.shape), dtype=np.float64)
        shape = (size.shape[0] - 1, size.shape[1] - 1)
        combined[:-1, :-1] = np.broadcast_to(of_cells, shape)
        return combined

    if cells.worst_bias is None:
        return replace(sums, bias=with_cells(cells.bias, np.nan), rmse=with_cells(cells.rmse, np.nan))
    worst = size * cells.worst_bias
    # neither clamping nor truncation makes the variance of log-concave noise larger
    return replace(
        sums,
        bias=with_cells(cells.bias, np.nan),
        rmse=with_cells(cells.rmse, np.nan),
        worst_bias=worst,
        worst_rmse=with_cells(cells.worst_rmse, np.sqrt(size * std**2 + worst**2)),
    )


def constrained(
    cells: CellCounts | WeightedCells, call: Call, branching: int
) -> tuple[Statistic, Callable[[Result], Result]]:
    """Return the measured statistic of a constraint, and the function that makes the released table."""
    constraint, normalize, total = call.constraint, call.normalize, cells.scope.row_bounds()[1]
    axis = None if normalize is None else AXES[normalize]
    whole(branching, "branching", 2)
    if call.bounds is not None and (normalize or constraint not in (None, "nonnegative")):
        raise ParameterError(
            "'bounds' are of counts; shares and counts with a constraint have bounds of their own.",
            "leave bounds out.",
        )
    if call.linear:
        return cells, linearly(cells, call, _shares_of)
    if constraint is None:
        return cells, partial(_shares_of, axis=axis, total=None) if normalize else lambda result: result
    _check_constraint(constraint, call, total)
    if constraint == "nonnegative":
        return cells, partial(_nonnegative, whole=call.weights is None)
    if constraint == "hierarchy":
        assert isinstance(cells, CellCounts)
        return TreeCells(cells, branching), partial(_of_tree, normalize=bool(normalize), total=total)
    project = getattr(postprocess, constraint)

    def shape_of(result: Result) -> Result:
        if not normalize:
            values = postprocess.integers(project(result.answer.values, total), total)
            return result.projected(values)
        shares = _shares_of(result, axis=axis, total=total if axis is None else None)
        values = project(shares.answer.values, 1.0, axis)
        return shares.projected(values)

    return cells, shape_of


def _check_constraint(constraint: str, call: Call, total: int | None) -> None:
    """Refuse an unknown constraint, or one that cannot be met, before anything is charged."""
    normalize = call.normalize
    if call.margins and normalize in ("index", "columns"):
        raise ParameterError("'margins' of shares per row or column cannot be kept with a constraint.")
    one_of(constraint, "constraint", CONSTRAINTS)
    if constraint == "nonnegative" and normalize:
        raise ParameterError(
            "constraint='nonnegative' is for counts.", "constraint='simplex' for shares that sum to one."
        )
    if constraint == "hierarchy" and call.weights is not None:
        raise ParameterError(
            "constraint='hierarchy' is for counts, not for sums of weights.",
            "leave constraint or weights out.",
        )
    if constraint == "hierarchy" and normalize in ("index", "columns"):
        raise ParameterError("constraint='hierarchy' is for a whole table, not for each row or column.")
    keeps_total = constraint not in ("nonnegative", "hierarchy")
    if keeps_total and not normalize and total is None:
        quantity = "number of rows" if call.weights is None else "sum of the weights"
        raise ParameterError(
            f"constraint={constraint!r} needs the {quantity}, which is private here.",
            "normalize=True for shares that sum to one, or constraint='nonnegative'.",
        )


def _nonnegative(result: Result, *, whole: bool) -> Result:
    values = postprocess.nonnegative(result.answer.values)
    return result.projected(postprocess.integers(values) if whole else values)


def _of_tree(result: Result, *, normalize: bool, total: int | None) -> Result:
    """Whole counts, or shares of their total, of the consistent leaves of a tree."""
    leaves = np.asarray(result.answer.values)
    if normalize:
        shares = _shares_of(result, axis=None, total=None)
        even = postprocess.rescale(shares.answer.values)  # where all leaves are zero
        return shares.projected(even)
    whole = int(np.rint(leaves.sum())) if total is None else total
    counts = postprocess.integers(postprocess.rescale(leaves, whole), whole)
    return result.projected(counts)
