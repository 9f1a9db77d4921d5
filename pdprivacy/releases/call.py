"""The steps that all releases share: columns, shares, the measurement, its errors and its metadata."""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy import accounting, metadata, noise
from pdprivacy._version import __version__
from pdprivacy.checks import flag
from pdprivacy.domain import Column, declaration_hint, has_hash
from pdprivacy.errors import (
    BoundingWarning,
    DeclarationError,
    ParameterError,
    TableTooLargeError,
    got,
    kind,
)
from pdprivacy.hints import EXAMPLES
from pdprivacy.measure import Measurement, measure
from pdprivacy.mechanism import Gaussian
from pdprivacy.noise import RandomState
from pdprivacy.privacy import Rational
from pdprivacy.protection import Protected, declared
from pdprivacy.releases.errors import Errors, own_half, pairs_as_json
from pdprivacy.releases.notes import tells_charges
from pdprivacy.releases.supposed import Supposed, suppose
from pdprivacy.request import Bounding, MechanismName, Options, Request
from pdprivacy.statistic import Answer, Cells, Narrowed, Statistic, TreeCells
from pdprivacy.statistic.confidence import Ends

Labels: TypeAlias = Hashable | Sequence[Hashable]
Split: TypeAlias = Mapping[Hashable, Rational] | None
Floats: TypeAlias = NDArray[np.float64]
Released: TypeAlias = "pd.Series[Any] | pd.DataFrame"
F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R", "pd.Series[Any]", pd.DataFrame)
# Made[R]: a released object and the errors of its numbers
Made: TypeAlias = tuple[R, Errors]

MAX_CELLS = 10**8
DEFAULTS: dict[str, Any] = {"delta": 0, "releases": 1}


def spelled(keywords: type, defaults: Mapping[str, Any]) -> Callable[[F], F]:
    """A function whose last parameter, ``**noise`` or the like, stands for these keywords of a TypedDict.

    The signature spells them out with their ``defaults``, in that order, the docstring explains them,
    and a keyword that is none of them is a TypeError. What takes a ``release_id`` is a release, and `kept`.
    """
    hints: dict[str, Any] = keywords.__annotations__
    more = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=getattr(hints[name], "__forward_arg__", hints[name]),
        )
        for name, default in defaults.items()
    ]

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        *named, _ = signature.parameters.values()
        whole = signature.replace(parameters=[*named, *more])

        @functools.wraps(function)
        def method(*args: Any, **kwargs: Any) -> Any:
            for name in kwargs:
                if name not in whole.parameters:
                    raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
            return function(*args, **{**defaults, **kwargs})

        method.__signature__ = whole  # type: ignore[attr-defined]
        method.__doc__ = f"{inspect.getdoc(function)}\n\n{inspect.getdoc(keywords)}"
        return cast("F", kept(method) if "release_id" in hints else method)

    return decorate


def kept(function: F) -> F:
    """A release that passes through the keeper of its frame, where there is one, and tells its charges."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def method(first: Any, /, *args: Any, **kwargs: Any) -> Any:
        protected: Protected = first if isinstance(first, Protected) else first.protected  # of groups
        if protected.keeper is None or protected.supposed is not None:
            return function(first, *args, **kwargs)
        bound = signature.bind(first, *args, **kwargs)
        bound.apply_defaults()
        asked = dict(list(bound.arguments.items())[1:])
        if first is not protected:
            asked["by"] = [key.name for key in first.keys]
            asked["selected"] = first.selected
        return protected.keeper.keep(
            protected,
            function.__qualname__,
            asked,
            lambda release_id: function(first, *args, **{**kwargs, "release_id": release_id}),
        )

    return tells_charges(cast("F", method))


def release(mechanism: MechanismName) -> Callable[[F], F]:
    """A release whose ``**noise`` keywords are those of `Options`, with this default mechanism."""
    given = {**DEFAULTS, "mechanism": mechanism}
    return spelled(Options, {name: given.get(name) for name in Options.__annotations__})


def labelled(text: str, filters: Sequence[str], steps: Sequence[str]) -> str:
    """What is released, with the steps that led to the records."""
    if filters:
        text += " where " + " and ".join(f"({condition})" for condition in filters)
    return text + " after " + ", ".join(steps) if steps else text


@dataclass(frozen=True, slots=True)
class Call:
    """What a release is asked: its name, noise and bounds, and the columns once they are known."""

    statistic: str
    request: Request
    bounds: Any = None
    rng: RandomState = None
    columns: tuple[Column, ...] = ()
    by: tuple[Column, ...] = ()
    constraint: str | None = None
    normalize: str | None = None
    margins: bool = False
    release_id: str | None = None

    @classmethod
    def of(
        cls,
        statistic: str,
        epsilon: Rational,
        noise: Options,
        columns: tuple[Column, ...] = (),
        by: tuple[Column, ...] = (),
        constraint: str | None = None,
    ) -> Call:
        """The call of a release with these keywords."""
        request = Request(
            epsilon,
            noise.get("delta", 0),
            mechanism=noise["mechanism"],
            p=noise.get("p"),
            calibration=noise.get("calibration"),
            bounding=noise.get("bounding"),
            releases=noise.get("releases", 1),
        )
        bounds = noise.get("bounds")
        if bounds is not None and request.bounding is None:
            raise ParameterError(
                "'bounds' need a 'bounding', which says how they are kept.",
                'bounding="truncated" or bounding="bit".',
            )
        named = noise.get("release_id")
        return cls(statistic, request, bounds, noise.get("rng"), columns, by, constraint, release_id=named)

    def label(self, filters: Sequence[str] = (), steps: Sequence[str] = ()) -> str:
        """The release as the budget lists it."""
        text = self.statistic
        if self.columns:
            text += " of " + ", ".join(str(column.name) for column in self.columns)
        if self.by:
            text += " by " + ", ".join(str(column.name) for column in self.by)
        text = labelled(text, filters, steps)
        if self.request.releases > 1:
            text += f", {self.request.releases} releases"
        return text

    def narrow(self, statistic: Statistic) -> Statistic:
        """The statistic within the bounds of the call."""
        if self.bounds is None:
            return statistic
        if not isinstance(self.bounds, Mapping):
            return Narrowed(statistic, (pair_of(self.bounds),))
        names = [column.name for column in self.columns]
        if np.shape(statistic.ends[0]) != (len(names),):
            raise ParameterError("'bounds' must be one pair for all numbers here.", "bounds=(0, 100).")
        if not self.bounds or not set(self.bounds) <= set(names):
            raise ParameterError(
                f"'bounds' must be a pair, or map columns of the call to one ({', '.join(map(repr, names))})."
            )
        return Narrowed(statistic, tuple(pair_of(self.bounds.get(name, (None, None))) for name in names))


def pair_of(bounds: Any) -> tuple[float, float]:
    """A lower and an upper bound as doubles, infinite or None where there is none."""
    if isinstance(bounds, str | bytes) or not isinstance(bounds, Sequence | np.ndarray) or len(bounds) != 2:
        raise ParameterError(f"'bounds' must be a pair of numbers (got {got(bounds)}).", "bounds=(0, 1).")
    ends = []
    for value, without in zip(bounds, (-math.inf, math.inf), strict=True):
        number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if value is not None and not number:
            raise ParameterError(f"'bounds' must be numbers or None (got {kind(value)}).")
        try:
            ends.append(without if value is None else float(value))
        except OverflowError:
            raise ParameterError("'bounds' must be numbers that doubles hold.") from None
    if not ends[0] < ends[1]:  # a NaN is not below anything
        raise ParameterError("'bounds' must be a lower and a higher number.")
    return ends[0], ends[1]


@dataclass(frozen=True)
class Result:
    """One release of a statistic: its numbers, bounded as asked, and how they were measured.

    ``offsets``: as of a statistic; None once the numbers are made of the statistic's. ``ends``: what the
    declaration says that the statistic cannot leave. ``bias_known``: whether the bias that bounding makes is;
    biases of several numbers add up, and depend on the exact ones.
    """

    answer: Answer
    measurement: Measurement
    offsets: tuple[float, ...] | None
    bounding: Bounding | None
    ends: tuple[Any, Any]
    bias_known: bool = True

    @property
    def errors(self) -> Errors:
        """How far off the numbers may be."""
        return Errors.of(
            self.answer, self.measurement, self.offsets, self.bounding, bias_known=self.bias_known
        )

    def interval(self, level: float) -> Ends:
        """The ends of the intervals of this level, before rounding."""
        if self.answer.interval is not None:
            return self.answer.interval(level)
        values, half = self.answer.values, own_half(self.measurement, level)
        return values - half, values + half

    def reshaped(self, shape: tuple[int, ...]) -> Result:
        """The result in this shape; its errors are the same for all numbers, or of the same shape."""

        def interval(level: float) -> Ends:
            lower, upper = (np.reshape(end, shape) for end in self.interval(level))
            return lower, upper

        answer = replace(self.answer, values=np.reshape(self.answer.values, shape), interval=interval)
        return replace(self, answer=answer)

    def projected(self, values: Any) -> Result:
        """The result with consistent numbers in the place of its own, and intervals around them."""
        return self.transformed(lambda answer: replace(answer, values=values), bias_known=False)

    def transformed(self, transform: Callable[[Answer], Answer], *, bias_known: bool = True) -> Result:
        """The result whose numbers are made of these."""
        answer = transform(replace(self.answer, interval=self.interval))
        return replace(self, answer=answer, offsets=None, bias_known=self.bias_known and bias_known)


def run(protected: Protected, statistic: Statistic, call: Call) -> list[Result]:
    """Measure the statistic once per release, and make the answers of it."""
    narrowed, request = call.narrow(statistic), call.request
    if request.bounding is not None and isinstance(statistic, Cells | TreeCells):
        warnings.warn(
            "Bounding biases each count, and the biases add up in totals and other sums of the counts; "
            "release a sum by itself, or the counts without bounding.",
            BoundingWarning,
            stacklevel=6,
        )
    size = sum(part.size for part in narrowed.parts) * request.releases
    if size > MAX_CELLS:
        raise TableTooLargeError(
            f"All releases together would hold {size} noisy numbers, more than {MAX_CELLS}.",
            "fewer releases, or fewer columns at once.",
        )
    label = call.label(protected.filters, protected.brief)
    with protected.paying(request.cost) as (cost, purse):
        asked = request.costing(cost)
        if isinstance(protected.supposed, Supposed):
            noise.source(call.rng)  # refused before a plan is charged
            measured = [suppose(narrowed, asked, protected.supposed, label)] * request.releases
        else:
            engine, unit = protected.engine, protected.unit
            measured = measure(narrowed, engine, purse, unit, asked, label, call.rng, call.release_id)
    results, offsets, ends = [], narrowed.offsets, statistic.ends
    for measurement in measured:
        answer = narrowed.finish(measurement.noisy)
        if request.bounding is not None:
            answer = replace(answer, values=np.clip(answer.values, answer.lower, answer.upper))
        results.append(Result(answer, measurement, offsets, request.bounding, ends))
    return results


def publish(
    protected: Protected,
    call: Call,
    results: Sequence[Result],
    make: Callable[[Result], Made[R]],
    *,
    arrange: Callable[[Made[Any]], Made[Any]] | None = None,
    more: Callable[[Result], tuple[dict[str, Any], float | None]] | None = None,
) -> R:
    """The released object with its metadata: what ``make`` makes of each release.

    Several releases come side by side in one DataFrame, whatever the type of one is. ``arrange``
    reorders the numbers; ``more`` adds to the metadata of a single release, and says the disclosure
    risk that was reached. That there is an answer is noted last, when nothing more can fail.
    """
    made: list[Made[Any]] = [make(result) for result in results]
    released, errors = made[0] if len(made) == 1 else _side_by_side(made)
    if arrange is not None:
        released, errors = arrange((released, errors))
    added, reached = more(results[0]) if more is not None and len(results) == 1 else ({}, None)
    attach(protected, call, results[0], released, errors, **added)
    entry = results[0].measurement.entry
    if entry is not None:
        protected.budget.answered(entry.number, reached)
    return cast("R", released)


def _side_by_side(made: Sequence[Made[Any]]) -> Made[Any]:
    """Several releases as columns, under a level named "release" that counts from 1."""
    frames: dict[Any, Any] = {number: released for number, (released, _) in enumerate(made, 1)}
    together: Any = pd.concat(frames, axis=1, names=["release"])
    return together, Errors.side_by_side([(released.shape, errors) for released, errors in made])


def series(result: Result, index: pd.Index[Any], name: str | None = None) -> Made[pd.Series[Any]]:
    """The numbers as a Series."""
    return pd.Series(result.answer.values, index=index, name=name), result.errors


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


def _value_bounds(call: Call, result: Result, released: Released) -> Any:
    """The bounds of the values that means are made of, which `pdprivacy.combine` needs."""
    if call.statistic not in ("mean", "proportion"):
        return None
    # one per column: the labels of a Series, the inner columns of a table
    lower, upper = (np.atleast_1d(np.asarray(end, np.float64)) for end in result.ends)
    if call.by:
        lower, upper = (np.tile(end, call.request.releases) for end in (lower, upper))
    elif call.request.releases > 1:
        lower, upper = lower[:, np.newaxis], upper[:, np.newaxis]
    return pairs_as_json(lower, upper, released.shape)


def _rows(protected: Protected, call: Call) -> int | None:
    """The number of records behind each number, where that is public."""
    nullable = any(column.nullable for column in (*call.columns, *call.by))
    grouped = bool(call.by) and call.statistic != "crosstab"
    return None if nullable or grouped else protected.scope.held()[1]


def attach(
    protected: Protected, call: Call, result: Result, released: Released, errors: Errors, **more: Any
) -> None:
    """Write the release's metadata."""
    measurement, request = result.measurement, call.request
    account = protected.budget.account if measurement.entry is None else measurement.entry.after
    cost = measurement.cost
    if protected.secret is not None:
        cost = protected.secret.stated(measurement.entry, request.cost)
    metadata.attach(
        released,
        {
            "statistic": call.statistic,
            "columns": [str(column.name) for column in (*call.by, *call.columns)],
            "mechanism": request.mechanism,
            "epsilon": float(cost.epsilon),
            "delta": float(cost.delta),
            "neighbors": protected.unit.neighbors,
            "unit": protected.unit.column,
            "lineage": list(protected.steps),
            "sensitivity": _by_part(measurement, lambda i: _sensitivity(measurement, i)),
            "scale": _by_part(measurement, lambda i: measurement.mechanisms[i].scale),
            "split": {part.name: float(part.weight) for part in measurement.parts},
            "error": {**errors.to_json(released.shape), **_note(call)},
            "budget": account.to_json(),
            "seeded": measurement.seeded or protected.seeded,
            "version": __version__,
            "p": None if request.p is None else float(request.p),
            "calibration": request.calibration,
            "bounding": request.bounding,
            "bounds": pairs_as_json(errors.lower, errors.upper, released.shape) if request.bounding else None,
            "value_bounds": _value_bounds(call, result, released),
            "normalize": call.normalize or None,
            "margins": call.margins,
            "filters": list(protected.filters),
            "constraint": call.constraint,
            "releases": request.releases,
            "rows": _rows(protected, call),
            "release_id": call.release_id,
            **more,
        },
    )


SUMS = "The biases of bounded numbers add up in sums and shares; they depend on the exact numbers."
"""Why no bias is stated of a number that is made of several bounded ones."""


def _note(call: Call) -> dict[str, str]:
    summed = call.margins or call.normalize or call.constraint not in (None, "psd")
    return {"note": SUMS} if call.request.bounding is not None and summed else {}


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
            raise DeclarationError(
                f"{method!r} found no declared column with bounds.",
                declaration_hint(next(iter(domain), "age"), "float", "bounds"),
            )
        return chosen
    names = list(columns) if isinstance(columns, list | pd.Index) else [columns]
    if not names:
        raise ParameterError(f"{method!r} needs at least one column.")
    if isinstance(columns, pd.Index) and not all(name in domain for name in names):
        raise DeclarationError(f"{method!r} got an Index that holds what is not declared for release.")
    if not all(has_hash(name) for name in names):
        raise ParameterError(
            f"{method!r} takes a column label or a list of labels.",
            EXAMPLES.get(method, 'a label such as "age", not the cells of the column'),
        )
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
    flag(value, name)


def refuse_shared(chosen: Sequence[Column], keys: Sequence[Column], method: str) -> None:
    """Refuse a column that is both a value and a key, and keys with too many cells."""
    if {column.name for column in chosen} & {key.name for key in keys}:
        raise ParameterError(f"{method!r} got a column both as a value and as a key.")
    if keys:
        check_cells(keys, method)


def name_index(columns: Sequence[Column]) -> pd.Index[Any]:
    """The labels of the columns as an index."""
    return pd.Index([column.name for column in columns], tupleize_cols=False)


def whole_counts(released: R, mechanism: MechanismName) -> R:
    """Counts as integers where the noise is."""
    return released.astype(np.int64) if mechanism == "geometric" else released


def counts(call: Call, index: pd.Index[Any], name: str | None, result: Result) -> Made[pd.Series[Any]]:
    """Counts as a Series, of integers where the noise is."""
    released, errors = series(result, index, name)
    return whole_counts(released, call.request.mechanism), errors
