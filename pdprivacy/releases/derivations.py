"""Row steps that arguments of a release make: periods of dates, and records without nulls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pdprivacy.checks import flag
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.parts import with_step
from pdprivacy.core.gate.spec import columns_of
from pdprivacy.core.rows import Transform, cut, dropna
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import ParameterError
from pdprivacy.hints.examples import Example
from pdprivacy.types import Labels

PERIODS = {
    "groupby": Example('private.dp.groupby("when", freq="M").count(epsilon=0.1)'),
    "value_counts": Example('private.dp.value_counts("when", freq="M", epsilon=0.1)'),
    "histogram": Example('private.dp.histogram("when", freq="M", epsilon=0.1)'),
}
"""A valid call with ``freq``, by method."""


def periods(protected: Facts, labels: Labels, freq: str, method: str) -> Transform:
    """Return the step that makes periods of the one column of dates among these columns.

    Raises ParameterError for no or several columns of dates, and for an unknown ``freq``.
    """
    dates = [column.name for column in columns_of(protected, labels, method) if column.timeline is not None]
    if len(dates) != 1:
        columns = "the keys" if method == "groupby" else "its columns"
        raise ParameterError(f"'freq' needs one column of dates among {columns}.", PERIODS[method])
    protected.admitted("cut")
    return cut(protected.domain, dates[0], freq=freq)


def in_periods(protected: Facts, labels: Labels, freq: str | None, method: str) -> Facts:
    """Return the facts of a release that reads dates as periods; without ``freq`` the facts as they are."""
    return protected if freq is None else with_step(protected, periods(protected, labels, freq, method))


def complete_records(protected: Facts, columns: Sequence[Column], option: Any) -> Transform | None:
    """Return the step that drops the records with nulls in these columns; None where it would drop none.

    ``option``: the argument ``dropna``.
    """
    if not flag(option, "dropna") or not any(column.nullable for column in columns):
        return None
    protected.admitted("dropna")
    return dropna(protected.domain, [column.name for column in columns if column.nullable])
