"""The steps that all releases share: columns, shares, the measurement, its errors and its metadata."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy import accounting, metadata
from pdprivacy._version import __version__
from pdprivacy.domain import Column
from pdprivacy.errors import DeclarationError, ParameterError, TableTooLargeError, got
from pdprivacy.measure import Measurement, MechanismName, measure
from pdprivacy.mechanism import Gaussian, Geometric, Laplace
from pdprivacy.noise import RandomState
from pdprivacy.privacy import Rational, loss
from pdprivacy.protection import Protected, declared
from pdprivacy.statistic import (
    Answer,
    Statistic,
)

Labels: TypeAlias = Hashable | Sequence[Hashable]
Split: TypeAlias = Mapping[Hashable, Rational] | None
Floats: TypeAlias = NDArray[np.float64]
Released: TypeAlias = "pd.Series[Any] | pd.DataFrame"

MAX_CELLS = 10**8
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Call:
    """What every release is asked: its name, cost and noise, and the columns once they are known."""

    statistic: str
    epsilon: Rational
    delta: Rational
    mechanism: MechanismName
    rng: RandomState
    columns: tuple[Column, ...] = ()
    by: tuple[Column, ...] = ()

    def label(self) -> str:
        """The release as the budget lists it."""
        text = self.statistic
        if self.columns:
            text += " of " + ", ".join(str(column.name) for column in self.columns)
        if self.by:
            text += " by " + ", ".join(str(column.name) for column in self.by)
        return text


def run(protected: Protected, statistic: Statistic, call: Call) -> tuple[Answer, Measurement]:
    """Measure the statistic and make the answer of it."""
    measurement = measure(
        statistic,
        protected.engine,
        protected.budget,
        loss(call.epsilon, call.delta),
        call.mechanism,
        call.label(),
        call.rng,
    )
    return statistic.finish(measurement.noisy), measurement


def plus_minus(answer: Answer, measurement: Measurement) -> Any:
    """Half the width of the interval around each released number.

    One noise alone: exactly its own quantile. Several noises combined, or a nonlinear step:
    the standard error times the factor of the heaviest tail among them. Rounding comes on top.
    """
    halves = [mechanism.interval(LEVEL)[1] for mechanism in measurement.mechanisms]
    if isinstance(measurement.mechanisms[0], Geometric):
        return np.array(halves) if len(halves) > 1 else halves[0]
    factor = max(half / mechanism.std for half, mechanism in zip(halves, measurement.mechanisms, strict=True))
    return np.asarray(answer.standard_error) * factor + np.asarray(answer.rounding)


def errors_of(answer: Answer, measurement: Measurement) -> tuple[Any, Any]:
    """Standard errors and half the intervals, as `attach` takes them."""
    return answer.standard_error, plus_minus(answer, measurement)


def interval_factor(measurement: Measurement) -> float:
    """Half the interval per standard error, of the heaviest tail a sum of such noises can have."""
    mechanism = measurement.mechanisms[0]
    if isinstance(mechanism, Gaussian):
        return mechanism.interval(LEVEL)[1] / mechanism.std
    laplace = Laplace(1, 1)
    factor = laplace.interval(LEVEL)[1] / laplace.std
    if not isinstance(mechanism, Geometric):
        return factor
    # integer noise of a small scale has a wider interval per deviation; at the smallest it has none
    return max(factor, mechanism.interval(LEVEL)[1] / mechanism.std) if mechanism.std > 0 else factor


def _plain(values: Any) -> Any:
    """Numbers as JSON: one number where all are the same."""
    array = np.asarray(values, dtype=np.float64)
    if array.size and bool(np.all(array == array.flat[0])):
        return float(array.flat[0])
    plain = array.astype(object)
    plain[~np.isfinite(array)] = None  # JSON has no NaN
    return plain.tolist()


def _by_part(measurement: Measurement, number: Callable[[int], float]) -> Any:
    parts = measurement.parts
    if len(parts) == 1:
        return number(0)
    return {part.name: number(place) for place, part in enumerate(parts)}


def _sensitivity(measurement: Measurement, place: int) -> float:
    part = measurement.parts[place]
    if isinstance(measurement.mechanisms[place], Gaussian):
        return math.sqrt(part.l2_squared) * float(part.unit)
    return float(part.l1 * part.unit)


def attach(
    protected: Protected,
    call: Call,
    measurement: Measurement,
    released: Released,
    errors: tuple[Any, Any],
    **more: Any,
) -> None:
    """Write the release's metadata; ``errors`` are the standard errors and half the intervals."""
    total, (spent_epsilon, spent_delta) = protected.budget.total, protected.budget.spent
    standard_error, plus_minus = errors
    cost = loss(call.epsilon, call.delta)
    metadata.attach(
        released,
        {
            "statistic": call.statistic,
            "columns": [str(column.name) for column in (*call.by, *call.columns)],
            "mechanism": call.mechanism,
            "epsilon": float(cost.epsilon),
            "delta": float(cost.delta),
            "neighbors": protected.unit.neighbors,
            "sensitivity": _by_part(measurement, lambda i: _sensitivity(measurement, i)),
            "scale": _by_part(measurement, lambda i: measurement.mechanisms[i].scale),
            "split": {part.name: float(part.weight) for part in measurement.parts},
            "error": {
                "level": LEVEL,
                "standard_error": _plain(standard_error),
                "plus_minus": _plain(plus_minus),
            },
            "budget": {
                "total": [float(total.epsilon), float(total.delta)],
                "spent": [spent_epsilon, spent_delta],
            },
            "seeded": measurement.seeded,
            "version": __version__,
            **more,
        },
    )


def columns_of(protected: Protected, columns: Labels | None, method: str) -> tuple[Column, ...]:
    """The declared columns of these labels; all numeric ones with bounds where None."""
    domain = protected.domain
    if columns is None:
        chosen = tuple(
            column
            for column in domain.columns
            if declared(protected, column.name) and column.lower is not None and column.upper is not None
        )
        if not chosen:
            raise DeclarationError(f"{method!r} found no declared column with bounds.")
        return chosen
    names = list(columns) if isinstance(columns, list | pd.Index) else [columns]
    if not names:
        raise ParameterError(f"{method!r} needs at least one column.")
    if not all(isinstance(name, Hashable) for name in names):
        raise ParameterError(f"{method!r} takes a column label or a list of labels.")
    if len(set(names)) < len(names):
        raise ParameterError(f"{method!r} got a column twice.")
    return tuple(domain[name] for name in names)


def weights_of(columns: Sequence[Column], split: Split) -> tuple[Any, ...]:
    """Each column's share of the loss."""
    if split is None:
        return accounting.shares([1] * len(columns))
    names = [column.name for column in columns]
    if not isinstance(split, Mapping) or set(split) != set(names):
        named = ", ".join(repr(name) for name in names)
        raise ParameterError(f"'split' must map each column of the call to its weight ({named}).")
    return accounting.shares([split[name] for name in names])


def cell_index(columns: Sequence[Column], method: str) -> pd.Index[Any]:
    """The declared cells as an index: one level per column, the null cell last."""
    levels = []
    for column in columns:
        labels = list(column.labels(method))
        levels.append([*labels, None] if column.nullable else labels)
    if len(columns) == 1:
        single: pd.Index[Any] = pd.Index(levels[0], name=columns[0].name, tupleize_cols=False)
        return single
    return pd.MultiIndex.from_product(levels, names=[column.name for column in columns])


def check_cells(columns: Sequence[Column], method: str) -> None:
    """Refuse a table of more than `MAX_CELLS` declared cells."""
    cells = math.prod(column.cells(method) for column in columns)
    if cells > MAX_CELLS:
        raise TableTooLargeError(
            f"The table has {cells} declared cells, more than {MAX_CELLS}.",
            "release fewer columns at once, or declare coarser bins.",
        )


def check_flag(name: str, value: object) -> None:
    """Refuse anything but True and False before it is used as one."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name!r} must be True or False (got {got(value)}).")


def refuse_shared(chosen: Sequence[Column], keys: Sequence[Column], method: str) -> None:
    """Refuse a column that is both a value and a key, and keys with too many cells."""
    if {column.name for column in chosen} & {key.name for key in keys}:
        raise ParameterError(f"{method!r} got a column both as a value and as a key.")
    if keys:
        check_cells(keys, method)


def name_index(columns: Sequence[Column]) -> pd.Index[Any]:
    """The labels of the columns as an index."""
    return pd.Index([column.name for column in columns], tupleize_cols=False)


def whole_counts(values: Floats, mechanism: MechanismName) -> Any:
    """Counts as integers where the noise is."""
    return values.astype(np.int64) if mechanism == "geometric" else values
