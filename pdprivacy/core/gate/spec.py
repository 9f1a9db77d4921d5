"""A release as a value: its call, its loss, its reads and the shape of its answer.

A method of ``private.dp`` makes a `Release`, and `pdprivacy.core.gate.execute` charges, reads and draws.
Plans, batches and steps of pipelines look at such values, group them or execute them. The functions below
check the columns of a call, share the loss among them, and return their labels as an index.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

import numpy as np
import pandas as pd

from pdprivacy.checks import has_hash, is_number
from pdprivacy.core.accounting import Events
from pdprivacy.core.accounting.rules import shares
from pdprivacy.core.gate.facts import Facts, declared
from pdprivacy.core.gate.request import PROJECT, BoundingName, MechanismName, Options, Request
from pdprivacy.core.noise import RandomState, Source
from pdprivacy.core.privacy import Approx, Pure, Rational
from pdprivacy.core.statistics import BoundedStatistic, Part, Read, Statistic
from pdprivacy.declaration.domain import Column, declaration_hint
from pdprivacy.declaration.intervals import INT64
from pdprivacy.declaration.linear import LinearConstraint, checked
from pdprivacy.errors import DeclarationError, ParameterError, TableTooLargeError, got, kind
from pdprivacy.hints.examples import EXAMPLES, Example
from pdprivacy.types import Labels

if TYPE_CHECKING:
    from pdprivacy.ledger import Entry

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

MAX_CELLS = 10**8
LEVEL = 0.95
"""The coverage of the intervals of releases; a plan may have another."""

LINEAR = "linear"
"""The constraint of a release that is a list of linear ones."""

DEFAULTS: dict[str, Any] = {"delta": 0, "releases": 1, "bounding": PROJECT}


@dataclass(frozen=True, slots=True)
class Price:
    """The mechanisms of a release and its privacy loss, from declared facts alone.

    ``times``: the number of such losses that are charged. ``parts``: the part of each mechanism.
    """

    cost: Pure | Approx
    title: str
    events: Events
    mechanisms: tuple[Any, ...] = ()
    parts: tuple[Part, ...] = ()
    times: int = 1


class Task:
    """One round of a release: its reads and its draw of noise.

    `draw` is the only function that is given exact numbers together with a source of noise; `after` makes the
    next round of released outcomes alone.
    """

    __slots__ = ()

    @property
    def cost(self) -> Pure | Approx:
        """The requested loss of the whole release."""
        raise NotImplementedError

    @property
    def rounds(self) -> int:
        """Number of rounds from this one on."""
        return 1

    @property
    def reads(self) -> tuple[Read, ...]:
        """The reads of the table; empty where noise is added to the exact numbers of the round before."""
        raise NotImplementedError

    def price(self, cost: Pure | Approx) -> Price:
        """Return the mechanisms of the whole release at this cost, from declared facts alone."""
        raise NotImplementedError

    def exact(self, answers: Sequence[Any]) -> Any:
        """Return the exact numbers that noise is drawn for, made of the answers to `reads`."""
        return answers[0]

    def draw(self, exact: Any, price: Price, source: Source) -> Any:
        """Return the outcome of this round."""
        raise NotImplementedError

    def after(self, outcome: Any) -> Task | None:  # noqa: ARG002
        """Return the next round; None after the last one."""
        return None


@dataclass(frozen=True, slots=True)
class Drawn:
    """The outcomes of all rounds of a release, and the charge that paid for them (None in a plan).

    ``cost``: the requested loss; the price may differ, for a secret part or the published calibration.
    ``level``: the coverage of the intervals.
    """

    price: Price
    cost: Pure | Approx
    outcomes: list[Any]
    seeded: bool = False
    entry: Entry | None = None
    release_id: str | None = None
    level: float = LEVEL


@dataclass(frozen=True, slots=True)
class MethodCall:
    """The method that made a release, and its arguments."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def arguments(self) -> dict[str, Any]:
        """Return all arguments but the first by name, defaults included; of groups their keys, too."""
        bound = inspect.signature(self.function).bind(*self.args, **self.kwargs)
        bound.apply_defaults()
        (_, first), *named = bound.arguments.items()
        for parameter in bound.signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:  # each by its own name
                named = [pair for pair in named if pair[0] != parameter.name]
                named += bound.arguments[parameter.name].items()
        if isinstance(first, Facts):
            return dict(named)
        return {**dict(named), "by": [key.name for key in first.keys], "selected": first.selected}


@dataclass(frozen=True, slots=True, eq=False)
class AnswerLabels:
    """The labels of one answer: of a DataFrame, or of a Series, which has no ``columns``."""

    index: pd.Index[Any]
    columns: pd.Index[Any] | None = None
    name: Hashable = None

    @property
    def axes(self) -> tuple[pd.Index[Any], ...]:
        """The index, and the columns of a DataFrame."""
        return (self.index,) if self.columns is None else (self.index, self.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the answer."""
        return tuple(map(len, self.axes))

    def __eq__(self, other: object) -> bool:
        """Compare the names and labels; an `Index` compares label by label."""
        if not isinstance(other, AnswerLabels) or (self.name, self.shape) != (other.name, other.shape):
            return False
        return all(axis.identical(its) for axis, its in zip(self.axes, other.axes, strict=True))

    def to_pandas(self, values: Any) -> Any:
        """Return an array, or a list of columns of different types, as a Series or DataFrame."""
        if self.columns is None:
            return pd.Series(values, index=self.index, name=self.name)
        if isinstance(values, np.ndarray):
            return pd.DataFrame(values, index=self.index, columns=self.columns)
        return pd.DataFrame(dict(enumerate(values)), index=self.index).set_axis(self.columns, axis=1)


@dataclass(frozen=True, slots=True)
class Release(Generic[R]):
    """A release before its execution.

    Equal calls on one frame make equal releases, except for clusterings with random starts, and for a
    weighted `ols`, whose transformed records belong to the call.

    Attributes
    ----------
    facts : the protected records.
    call : the statistic and its arguments.
    label : the release as the budget lists it.
    task : the first round.
    labels : the labels of the answer; of one of them, where several releases come side by side.
    publish : from this release and its drawn outcomes to the released object, and to the disclosure risk for
        the budget.
    progress : whether a bar shows the rounds; None shows one if they take long.
    method_call : the method and arguments that made a release of a plan.
    """

    facts: Facts = field(repr=False)
    call: Call
    label: str
    task: Task = field(repr=False)
    labels: AnswerLabels = field(repr=False)
    publish: Callable[[Release[R], Drawn], tuple[R, float | str | None]] = field(repr=False, compare=False)
    progress: bool | None = False
    method_call: MethodCall | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """The call of a release: its statistic, noise and bounds, and the columns once they are known."""

    statistic: str
    request: Request
    bounds: Any = field(default=None, compare=False)  # an array does not compare; the task holds them, too
    rng: RandomState = None
    columns: tuple[Column, ...] = ()
    by: tuple[Column, ...] = ()
    constraint: str | None = None
    linear: tuple[LinearConstraint, ...] = ()
    normalize: str | None = None
    margins: bool = False
    sort: bool = False
    release_id: str | None = None
    weights: Column | None = None

    @classmethod
    def of(
        cls,
        statistic: str,
        epsilon: Rational,
        noise: Options,
        columns: tuple[Column, ...] = (),
        by: tuple[Column, ...] = (),
        constraint: str | LinearConstraint | Sequence[LinearConstraint] | None = None,
        weights: Column | None = None,
    ) -> Call:
        """Return the call of a release with these keywords."""
        words: Any = dict(noise)
        bounds, rng = words.pop("bounds", None), words.pop("rng", None)
        release_id = words.pop("release_id", None)
        request = Request(epsilon, **words)
        if bounds is not None and request.bounding is None:
            raise ParameterError(
                "'bounds' need a 'bounding', which says how they are kept.",
                'bounding="truncated" or bounding="clamp".',
            )
        linear: tuple[LinearConstraint, ...] = ()
        if isinstance(constraint, LinearConstraint | list | tuple):
            constraint, linear = LINEAR, checked(constraint)
        name: Any = constraint  # what is no text is refused with the statistic
        return cls(
            statistic, request, bounds, rng, columns, by, name, linear, release_id=release_id, weights=weights
        )

    @classmethod
    def of_selection(
        cls,
        statistic: str,
        cost: Pure | Approx,
        columns: tuple[Column, ...],
        *,
        rng: RandomState,
        release_id: str | None,
        releases: int = 1,
        bounding: BoundingName | None = None,
        by: tuple[Column, ...] = (),
        weights: Column | None = None,
    ) -> Call:
        """Return the call of a release whose task selects: its request says the cost, and no noise."""
        request = Request(cost.epsilon, mechanism="laplace", releases=releases, bounding=bounding)
        return cls(
            statistic, request, rng=rng, columns=columns, by=by, release_id=release_id, weights=weights
        )

    def label(self, facts: Facts) -> str:
        """Return the release as the budget lists it."""
        text = self.statistic
        if self.columns:
            text += " of " + ", ".join([str(column.name) for column in self.columns])
        if self.by:
            text += " by " + ", ".join([str(column.name) for column in self.by])
        if self.weights is not None:
            text += f" weighted by {self.weights.name}"
        if facts.lineage:
            text = label_with_steps(text, facts.filters, facts.brief)
        if self.request.releases > 1:
            text += f", {self.request.releases} releases"
        return text


def label_with_steps(text: str, filters: Sequence[str], steps: Sequence[str]) -> str:
    """Return the label of a release with its row steps."""
    if filters:
        text += " where " + " and ".join(f"({condition})" for condition in filters)
    return text + " after " + ", ".join(steps) if steps else text


def with_keywords(keywords: type, defaults: Mapping[str, Any]) -> Callable[[F], F]:
    """Decorate a function whose last parameter, such as ``**noise``, stands for keywords of a TypedDict.

    The signature spells them out with their ``defaults``, in that order, the docstring explains them,
    and any other keyword is a TypeError.
    """
    hints: dict[str, Any] = keywords.__annotations__
    parameters = [
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
        *positional, _ = signature.parameters.values()
        complete = signature.replace(parameters=[*positional, *parameters])

        @functools.wraps(function)
        def method(*args: Any, **kwargs: Any) -> Any:
            for name in kwargs:
                if name not in complete.parameters:
                    raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
            return function(*args, **{**defaults, **kwargs})

        method.__signature__ = complete  # type: ignore[attr-defined]
        method.__doc__ = f"{inspect.getdoc(function)}\n\n{inspect.getdoc(keywords)}"
        return cast("F", method)

    return decorate


def with_noise_keywords(mechanism: MechanismName) -> Callable[[F], F]:
    """Decorate a release with the ``**noise`` keywords of `Options` and this default mechanism.

    ``bounding="project"`` in a call is refused where it moves no number.
    """
    defaults = {**DEFAULTS, "mechanism": mechanism}
    decorate = with_keywords(Options, {name: defaults.get(name) for name in Options.__annotations__})

    def decorated(function: F) -> F:
        verb = decorate(function)

        @functools.wraps(verb)
        def method(*args: Any, **kwargs: Any) -> Any:
            release = verb(*args, **kwargs)
            if _projects(kwargs.get("bounding")):
                _refuse_idle_projection(release)
            return release

        return cast("F", method)

    return decorated


def _projects(bounding: object) -> bool:
    return isinstance(bounding, str) and bounding == PROJECT


def _refuse_idle_projection(release: Release[Any]) -> None:
    """Refuse the projection of a release whose numbers are all counts, sums or coefficients."""
    call, statistic = release.call, getattr(release.task, "statistic", None)
    if statistic is None or statistic.limits is not None or call.linear or call.normalize is not None:
        return
    raise ParameterError(
        f"bounding={PROJECT!r} moves no number of {call.statistic!r} here: biases of counts and sums add up.",
        'leave bounding out, or bounding="clamp" for numbers within their bounds.',
    )


def passed_on(noise: Options) -> Options:
    """Return the keywords for another release, without the default bounding."""
    kept: Any = {name: value for name, value in noise.items() if name != "bounding" or not _projects(value)}
    return cast("Options", kept)


Split: TypeAlias = Mapping[Hashable, Rational] | None

FEW_LABELS = 1000
"""Labels of which an index is kept for the next release."""


def columns_of(
    protected: Facts, columns: Labels | None, method: str, keys: Sequence[Column] = ()
) -> tuple[Column, ...]:
    """The declared columns of these labels; all numeric ones with bounds but the keys where None."""
    domain = protected.domain
    if columns is None:
        chosen = tuple(
            column
            for column in domain.columns
            if declared(protected, column.name)
            and column.lower is not None
            and column.upper is not None
            and column.timeline is None
        )
        if not chosen:
            raise DeclarationError(
                f"{method!r} found no declared column with bounds.",
                declaration_hint(next(iter(domain), "age"), "float", "bounds"),
            )
        return _others(protected, chosen, keys, method, "the keys") if keys else chosen
    names = list(columns) if isinstance(columns, list | pd.Index) else [columns]
    if not names:
        raise ParameterError(f"{method!r} needs at least one column.")
    if isinstance(columns, pd.Index) and not all(name in domain for name in names):
        raise DeclarationError(f"{method!r} got an Index that holds what is not declared for release.")
    if not all(map(has_hash, names)):
        raise ParameterError(
            f"{method!r} takes a column label or a list of labels.",
            EXAMPLES.get(method, Example('a label such as "age", not the cells of the column')),
        )
    if len(set(names)) < len(names):
        raise ParameterError(f"{method!r} got a column twice.")
    return tuple([domain[name] for name in names])


def weighted_columns(
    protected: Facts,
    columns: Labels | None,
    weights: Hashable | None,
    method: str,
    keys: Sequence[Column] = (),
) -> tuple[tuple[Column, ...], Column | None]:
    """The declared columns of these labels, none of them a key if None, and the one of the weights.

    The column of the weights is not among the others.
    """
    chosen = columns_of(protected, columns, method, keys)
    if weights is None:
        return chosen, None
    if isinstance(weights, list | pd.Index) or not has_hash(weights):
        raise ParameterError(f"'weights' must be the label of one declared column (got {kind(weights)}).")
    (weight,) = columns_of(protected, [weights], method)
    if columns is None and method == "count":  # of all records, and of no column
        return (), weight
    if columns is None:
        chosen = _others(protected, chosen, [weight], method, "its weights")
    if weight.name in {column.name for column in chosen}:
        raise ParameterError(f"{method!r} got column {weight.name!r} both as a value and as its weights.")
    return chosen, weight


def _others(
    protected: Facts, chosen: Sequence[Column], taken: Sequence[Column], method: str, description: str
) -> tuple[Column, ...]:
    """The columns without those that are taken for something else.

    Raises DeclarationError where no column is left.
    """
    names = [column.name for column in taken]
    remaining = tuple(column for column in chosen if column.name not in names)
    if not remaining:
        listed = ", ".join(map(repr, names))
        raise DeclarationError(
            f"{method!r} found no declared column with bounds beside {description}, {listed}.",
            declaration_hint(
                next((name for name in protected.domain if name not in names), "age"), "float", "bounds"
            ),
        )
    return remaining


def weights_of(columns: Sequence[Column], split: Split) -> tuple[Any, ...]:
    """Each column's share of the loss."""
    if split is None:
        return (Fraction(1, len(columns)),) * len(columns)
    names = [column.name for column in columns]
    if not isinstance(split, Mapping) or set(split) != set(names):
        named = ", ".join(repr(name) for name in names)
        raise ParameterError(f"'split' must map each column of the call to its weight ({named}).")
    return shares([split[name] for name in names])


def cell_index(columns: Sequence[Column], method: str) -> pd.Index[Any]:
    """The declared cells as an index: one level per column, the null cell last.

    Whole numbers stay whole beside a null, as those of the pandas type "Int64".
    """
    levels: list[Any] = []
    for column in columns:
        labels = list(column.labels(method))
        if (
            column.nullable
            and {int}.issuperset(map(type, labels))
            and all(label in INT64 for label in labels)
        ):
            levels.append(pd.array([*labels, None], dtype="Int64"))
        else:
            levels.append([*labels, None] if column.nullable else labels)
    if len(columns) == 1:
        return _index_of(levels[0], columns[0].name)
    index: pd.Index[Any] = pd.MultiIndex.from_product(levels, names=[column.name for column in columns])
    return index


def check_cells(columns: Sequence[Column], method: str) -> None:
    """Refuse a table of more than `MAX_CELLS` declared cells."""
    cells = math.prod(column.cells(method) for column in columns)
    if cells > MAX_CELLS:
        raise TableTooLargeError(
            f"The table has {cells} declared cells, more than {MAX_CELLS}.",
            "release fewer columns at once, or declare coarser bins.",
        )


def refuse_shared(chosen: Sequence[Column], keys: Sequence[Column], method: str) -> None:
    """Refuse a column that is both a value and a key, and keys with too many cells."""
    if {column.name for column in chosen} & {key.name for key in keys}:
        raise ParameterError(f"{method!r} got a column both as a value and as a key.")
    if keys:
        check_cells(keys, method)


def refuse_bounds(call: Call) -> None:
    """Refuse ``bounds`` in a call for several statistics, which have bounds of their own."""
    if call.bounds is not None:
        raise ParameterError(
            "'bounds' can be given for a single statistic only.", "private.dp.mean(column, bounds=...)."
        )


def with_bounds(statistic: Statistic, call: Call) -> Statistic:
    """Return the statistic with the bounds of the call."""
    if any(column.timeline for column in call.columns):
        raise ParameterError(
            "'bounds' are for numbers, and the columns hold dates.",
            "private.clip of the dates, before the release",
        )
    if not isinstance(call.bounds, Mapping):
        return BoundedStatistic(statistic, (pair_of(call.bounds),))
    names = [column.name for column in call.columns]
    if np.shape(statistic.ends[0]) != (len(names),):
        raise ParameterError("'bounds' must be one pair for all numbers here.", "bounds=(0, 100).")
    if not call.bounds or not set(call.bounds) <= set(names):
        raise ParameterError(
            f"'bounds' must be a pair, or map columns of the call to one ({', '.join(map(repr, names))})."
        )
    return BoundedStatistic(statistic, tuple(pair_of(call.bounds.get(name, (None, None))) for name in names))


def pair_of(bounds: Any) -> tuple[float, float]:
    """Return a lower and an upper bound as doubles, infinite where a side is open."""
    if isinstance(bounds, str | bytes) or not isinstance(bounds, Sequence | np.ndarray) or len(bounds) != 2:
        raise ParameterError(f"'bounds' must be a pair of numbers (got {got(bounds)}).", "bounds=(0, 1).")
    ends = []
    for value, without in zip(bounds, (-math.inf, math.inf), strict=True):
        number = is_number(value) and isinstance(value, int | float | np.number)
        if value is not None and not number:
            raise ParameterError(f"'bounds' must be numbers or None (got {kind(value)}).")
        try:
            ends.append(without if value is None else float(value))
        except OverflowError:
            raise ParameterError("'bounds' must be numbers that doubles hold.") from None
    if not ends[0] < ends[1]:  # a NaN is not below anything
        raise ParameterError("'bounds' must be a lower and a higher number.")
    return ends[0], ends[1]


def name_index(columns: Sequence[Column]) -> pd.Index[Any]:
    """The labels of the columns as an index."""
    return _index_of([column.name for column in columns])


def _index_of(labels: Sequence[Hashable], name: Hashable = None) -> pd.Index[Any]:
    """These labels as an index of that name."""
    if len(labels) <= FEW_LABELS and {str}.issuperset(map(type, labels)):
        # a deep copy: what its holder writes into it reaches no other release
        index = _index_of_texts(tuple(labels)).copy(name="", deep=True)  # a missing name takes pandas longer
        index.name = name
        return index
    return pd.Index(labels, name=name, tupleize_cols=False)


@lru_cache(maxsize=256)
def _index_of_texts(labels: tuple[str, ...]) -> pd.Index[Any]:
    """The index of these texts, which takes pandas longer to find the kind of than a release its numbers."""
    return pd.Index(labels, tupleize_cols=False)
