"""Finishes of a table: shares of its counts, margins as their sums, and consistent numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd

from pdprivacy import checks, postprocess
from pdprivacy.errors import ParameterError, got
from pdprivacy.release.publish import Errors, Floats, Result
from pdprivacy.release.spec import Call
from pdprivacy.statistic import Answer, CellCounts, Statistic, TreeCells, WeightedCells
from pdprivacy.statistic.confidence import Ends, Noisy, of_shares

__all__ = ["Constraint", "constrained", "with_margins"]

Constraint: TypeAlias = Literal["rescale", "all_but_one", "hierarchy", "simplex", "nonnegative"]
CONSTRAINTS: tuple[str, ...] = get_args(Constraint)

AXES = {"all": None, "index": 1, "columns": 0}
"""The axis of a table over which shares sum to one."""


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

    made = Answer(shares[kept], error[kept], 0.0, 0.0, 1.0, interval)
    if answer.effective is not None:
        effective = np.broadcast_to(answer.effective(wholes[0], members), shares.shape)
        made = replace(made, effective_rows=effective[kept])
    return result.transformed(lambda _: made, bias_known=False)


def with_margins(
    table: Result, call: Call, labels: list[pd.Index[Any]], shape: Callable[[Result], Result]
) -> tuple[Result, list[pd.Index[Any]], Errors]:
    """The table with "All", and its labels and errors.

    These are sums of noisy counts, and what pandas makes of them where normalized; with a constraint, sums of
    the consistent numbers that ``shape`` makes, so that they are consistent, too.
    """
    size = _summed(np.ones(np.shape(table.answer.values)))
    names = [_all_label(label) for label in labels]
    if call.normalize is None:
        made = _counts_with_margins(table, size)
        errors = _errors_of_sums(made.errors, table.errors, size, float(table.answer.standard_error))
    else:
        # as pandas: shares per row have no column of ones, shares per column no row of them
        kept = {"all": (True, True), "index": (True, False), "columns": (False, True)}[call.normalize]
        names = [name if keep else label for name, label, keep in zip(names, labels, kept, strict=True)]
        made = _shares_with_margins(table, call.normalize, size)
        errors = made.errors
    if call.constraint is not None:
        made = made.projected(_summed(np.asarray(shape(table).answer.values)))
        errors = made.errors
    return made, names, errors


def _counts_with_margins(table: Result, size: Floats) -> Result:
    """The counts with their sums, each of ``size`` cells."""
    std, tail = float(table.answer.standard_error), table.noisy[0].tail
    whole, measured = _summed(np.asarray(table.answer.values)), _summed(_measured(table))

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
    counts = [_summed(np.asarray(table.answer.values)), _summed(_measured(table))]
    place = {"all": np.s_[-1:, -1:], "index": np.s_[:, -1:], "columns": np.s_[-1:, :]}[normalize]
    kept = {"all": np.s_[:, :], "index": np.s_[:, :-1], "columns": np.s_[:-1, :]}[normalize]
    return _noisy_shares(table, counts, [cells[place] for cells in counts], size, size[place], kept)


def _errors_of_sums(sums: Errors, cells: Errors, size: Floats, std: float) -> Errors:
    """The errors of a table with its sums: of a bias that adds up, the largest is known, and no other."""
    if cells.bias is None:
        return sums

    def with_cells(of_cells: Any, of_sums: Any) -> Floats:
        found = np.array(np.broadcast_to(of_sums, size.shape), dtype=np.float64)
        shape = (size.shape[0] - 1, size.shape[1] - 1)
        found[:-1, :-1] = np.broadcast_to(of_cells, shape)
        return found

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


def _summed(cells: Floats) -> Floats:
    """A table with the sums of its rows and columns."""
    across = cells.sum(axis=1, keepdims=True)
    return np.block([[cells, across], [cells.sum(axis=0, keepdims=True), across.sum(keepdims=True)]])


def _all_label(index: pd.Index[Any]) -> pd.Index[Any]:
    """The index with "All" at its end, as `pandas.crosstab` names it."""
    if isinstance(index, pd.MultiIndex):
        last = ("All", *[""] * (index.nlevels - 1))
        return pd.MultiIndex.from_tuples([*index.tolist(), last], names=index.names)
    return pd.Index([*index.tolist(), "All"], name=index.name, dtype=object, tupleize_cols=False)


def constrained(
    cells: CellCounts | WeightedCells, call: Call, branching: int
) -> tuple[Statistic, Callable[[Result], Result]]:
    """Return the measured statistic of a constraint, and the function that makes the released table."""
    constraint, normalize, total = call.constraint, call.normalize, cells.scope.held()[1]
    axis = None if normalize is None else AXES[normalize]
    checks.whole(branching, "branching", 2)
    if call.bounds is not None and (normalize or constraint not in (None, "nonnegative")):
        raise ParameterError(
            "'bounds' are of counts; shares and counts with a constraint have bounds of their own.",
            "leave bounds out.",
        )
    if constraint is None:
        return cells, partial(_shares_of, axis=axis, total=None) if normalize else _unchanged
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
    if not isinstance(constraint, str) or constraint not in CONSTRAINTS:
        raise ParameterError(
            f"'constraint' must be one of {', '.join(map(repr, CONSTRAINTS))} (got {got(constraint)})."
        )
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
    kept = constraint not in ("nonnegative", "hierarchy")
    if kept and not normalize and total is None:
        what = "number of rows" if call.weights is None else "sum of the weights"
        raise ParameterError(
            f"constraint={constraint!r} needs the {what}, which is private here.",
            "normalize=True for shares that sum to one, or constraint='nonnegative'.",
        )


def _unchanged(result: Result) -> Result:
    return result


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
