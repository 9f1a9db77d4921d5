"""Shares of the counts of a table, and their sums as its margins."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.release.publish import Floats
from pdprivacy.release.result import Errors, Result
from pdprivacy.statistic import Answer
from pdprivacy.statistic.confidence import Ends, of_shares

__all__ = ["shares_of", "summed", "with_margins"]


def _measured(result: Result) -> Floats:
    """The noisy cells whose errors are known; of a bounded tree not those that are made of its nodes."""
    values = np.asarray(result.answer.values)
    if result.bounding is None:
        return values
    return result.noisy[0].values[: values.size].reshape(values.shape)


def shares_of(result: Result, *, axis: int | None, total: int | None) -> Result:
    """Shares of the public total, or of noisy totals (of all, of rows or of columns), with their errors."""
    answer = result.answer
    values, std = np.asarray(answer.values), float(answer.standard_error)
    if total is not None:
        rows: Any = max(total, 1)
        error = np.full(values.shape, std / rows)

        def interval(level: float) -> Ends:
            lower, upper = result.interval(level)
            return lower / rows, upper / rows

    else:
        size = values.size if axis is None else values.shape[axis]
        rows = np.maximum(values.sum(axis=axis, keepdims=axis is not None), answer.largest_term)
        # a share is one noisy count over a total of `size` of them, to first order
        spread = np.maximum(1 - 2 * values / rows + size * (values / rows) ** 2, 0.0)
        error = std * np.sqrt(spread) / rows
        cells, tail = _measured(result), result.noisy[0].tail
        wholes = cells.sum(axis=axis, keepdims=axis is not None)

        def interval(level: float) -> Ends:
            return of_shares(tail, level, cells, wholes, std, 1.0, size)

    shares = Answer(values / rows, error, 0.0, 0.0, 1.0, interval)
    if answer.effective is not None:
        whole = values.sum(axis=axis, keepdims=axis is not None)
        effective = answer.effective(whole, values.size if axis is None else values.shape[axis])
        shares = replace(shares, effective_rows=np.broadcast_to(effective, values.shape))
    return result.transformed(lambda _: shares, bias_known=False)


def with_margins(
    table: Result, normalize: str | None, labels: list[pd.Index[Any]]
) -> tuple[Result, list[pd.Index[Any]], Errors | None]:
    """The table with "All": sums of noisy counts, and what pandas makes of them where normalized."""
    rows, tops = np.asarray(table.answer.values).shape
    size = np.block(
        [
            [np.ones((rows, tops)), np.full((rows, 1), tops)],
            [np.full((1, tops), rows), np.full((1, 1), rows * tops)],
        ]
    )
    names = [_all_label(label) for label in labels]
    if normalize is None:
        made = _counts_with_margins(table, size)
        std = float(table.answer.standard_error)
        return made, names, _errors_of_sums(made.errors, table.errors, size, std)
    # as pandas: shares per row have no column of ones, shares per column no row of them
    kept = [
        labels[0] if normalize == "columns" else names[0],
        labels[1] if normalize == "index" else names[1],
    ]
    return _shares_with_margins(table, normalize, size), kept, None


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
    std, tail = float(table.answer.standard_error), table.noisy[0].tail
    whole, measured = summed(np.asarray(table.answer.values)), summed(_measured(table))
    place = {"all": np.s_[-1:, -1:], "index": np.s_[:, -1:], "columns": np.s_[-1:, :]}[normalize]
    least = table.answer.largest_term
    base, members, divisor = measured[place], size[place], np.maximum(whole[place], least)
    shares = whole / divisor
    spread = np.maximum(size * (1 - 2 * shares) + members * shares**2, 0.0)
    error = std * np.sqrt(spread) / divisor
    keep = (
        slice(None, -1 if normalize == "columns" else None),
        slice(None, -1 if normalize == "index" else None),
    )

    def interval(level: float) -> Ends:
        lower, upper = of_shares(tail, level, measured, base, std, size, members)
        return lower[keep], upper[keep]

    answer = Answer(shares[keep], error[keep], 0.0, 0.0, 1.0, interval)
    if table.answer.effective is not None:
        effective = np.broadcast_to(table.answer.effective(whole[place], members), whole.shape)
        answer = replace(answer, effective_rows=effective[keep])
    return table.transformed(lambda _: answer, bias_known=False)


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


def summed(cells: Floats) -> Floats:
    """A table with the sums of its rows and columns."""
    across = cells.sum(axis=1, keepdims=True)
    return np.block([[cells, across], [cells.sum(axis=0, keepdims=True), across.sum(keepdims=True)]])


def _all_label(index: pd.Index[Any]) -> pd.Index[Any]:
    """The index with "All" at its end, as `pandas.crosstab` names it."""
    if isinstance(index, pd.MultiIndex):
        last = ("All", *[""] * (index.nlevels - 1))
        return pd.MultiIndex.from_tuples([*index.tolist(), last], names=index.names)
    return pd.Index([*index.tolist(), "All"], name=index.name, dtype=object, tupleize_cols=False)
