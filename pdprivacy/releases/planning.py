"""Plans: the error of a release before anything is spent."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from pdprivacy import releases
from pdprivacy.checks import proportion, real
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.request import PROJECT, BoundingName
from pdprivacy.core.gate.spec import LEVEL, Drawn, Release
from pdprivacy.core.gate.tasks import NoisyNumbers, noiseless
from pdprivacy.core.statistics import GroupedSums, Quantity, Read
from pdprivacy.declaration.domain import Column
from pdprivacy.declaration.timeline import times
from pdprivacy.errors import (
    BoundingWarning,
    IntervalWarning,
    ParameterError,
    short_traceback,
    short_tracebacks,
    warn,
)
from pdprivacy.hints.examples import Example
from pdprivacy.hints.suggestions import unknown, with_hints
from pdprivacy.releases import PLANNED, RANKED
from pdprivacy.releases.bounds_plans import planned_bounds
from pdprivacy.releases.grouped import VERBS_BY_GROUP, DeclaredGroups
from pdprivacy.releases.metadata import attach_plan, cell_labels
from pdprivacy.releases.plan_calls import (
    PLAN_OF_GROUPS,
    Levels,
    begin_plan,
    listed,
    plan_of,
    price_of,
    rows_of,
)
from pdprivacy.releases.rank_plans import planned_by_rank
from pdprivacy.releases.required_epsilon import Margin, required_epsilon
from pdprivacy.releases.view import View
from pdprivacy.types import Integers, Labels

if TYPE_CHECKING:
    from pdprivacy.signatures import GroupPlanMethods
else:  # a plan makes them by name
    GroupPlanMethods = object


Margins: TypeAlias = "Margin | Sequence[Margin] | np.ndarray[Any, Any] | pd.Index[Any] | pd.Series[Any]"
Boundings: TypeAlias = BoundingName | Sequence[BoundingName | None] | None

COUNTED = {"count", "value_counts", "histogram", "crosstab", "nunique"}
SQUARED = {"var", "std", "describe", "pooled_var"}
SEVERAL = {"agg", "ols"}
"""Releases of several statistics, for which ``at`` is ambiguous."""
TABLES = {"value_counts", "histogram", "crosstab"}
MOST = 1e15


@dataclass(frozen=True, slots=True)
class Planned:
    """A release whose errors are planned: its call without loss and bounding, and the assumed table."""

    statistic: str
    verb: Callable[..., Release[Any]]
    facts: Facts | DeclaredGroups
    args: tuple[Any, ...]
    options: dict[str, Any]
    assumption: Assumption
    level: float

    def at(self, epsilon: Any, bounding: Any) -> View:
        """Return the release of the assumed table without noise, at this loss."""
        fitting = {name: value for name, value in self.options.items() if _fits(name, value, bounding)}
        if not (isinstance(bounding, str) and bounding == PROJECT):
            fitting["bounding"] = bounding
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", IntervalWarning)  # the plan says it of all its choices
                release = self.verb(self.facts, *self.args, epsilon=epsilon, **fitting)
            return View.of(_assumed(release, self.assumption, self.level))
        except ArithmeticError:
            reason = f"{self.statistic!r} cannot be planned for so few records."
            raise ParameterError(reason, "more rows.") from None

    def reaching(self, margin: Any, bounding: Any) -> View:
        """Return the release at the smallest loss with a margin of error of at most ``margin``."""
        if _is_published(self.options.get("calibration")):
            raise ParameterError(
                "'plus_minus' cannot be combined with calibration='published'.", "leave calibration out."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BoundingWarning)  # issued again by the release that is returned
            epsilon = required_epsilon(
                lambda epsilon: _errors_of_each(self.at(epsilon, bounding))["plus_minus"], margin
            )
        return self.at(epsilon, bounding)


def _planned(statistic: str, verb: Callable[..., Release[Any]]) -> Callable[..., pd.DataFrame]:
    """The plan of a release: a function with the signature of the release, and what `PlanDP` adds."""

    def method(
        facts: Facts | DeclaredGroups,
        *args: Any,
        epsilon: Levels | None = None,
        bounding: Boundings = PROJECT,
        rows: int | None = None,
        at: float | None = None,
        plus_minus: Margins | None = None,
        level: float = LEVEL,
        **options: Any,
    ) -> pd.DataFrame:
        protected, choices, choose = begin_plan(statistic, facts, options, epsilon, plus_minus)
        normalize = options.get("normalize")
        shares = isinstance(normalize, bool | str) and bool(normalize)  # the release refuses any other
        assumption = _assumption(protected, statistic, rows, at, shares=shares)
        plan = Planned(statistic, verb, facts, args, options, assumption, proportion(level, "level"))
        errors: dict[tuple[float, str], pd.DataFrame] = {}
        notes: dict[str, list[str]] = {}
        for choice, kind in product(choices, listed("bounding", bounding)):
            view = plan.reaching(choice, kind) if choose else plan.at(choice, kind)
            errors[view.facts.epsilon, view.facts.bounding or "none"] = _errors(view)
            if view.facts.regression and (note := view.facts.regression["note"]):
                notes.setdefault(note, []).append(f"{view.facts.epsilon:g}")
        for note, losses in notes.items():
            where = ", ".join(losses)
            warn(f"'ols' states, at epsilon {where}, no standard errors and {note}.", IntervalWarning)
        table = pd.concat(errors, names=["epsilon", "bounding"]).pipe(_flat).dropna(axis=1, how="all")
        assumed = {"rows": assumption.rows, "at": None if at is None else float(at), "level": plan.level}
        attach_plan(table, view.facts, by=view.by, **assumed)
        return table

    return plan_of(method, verb)


def _assumption(facts: Facts, statistic: str, rows: Any, at: Any, *, shares: bool) -> Assumption:
    """The table that a plan assumes."""
    private = rows is None and facts.scope.row_bounds()[1] is None
    public_records = None if private else rows_of(facts, rows)
    if at is None:
        return Assumption(public_records)
    if statistic in SEVERAL:
        raise ParameterError(
            f"'at' can be given for a single statistic only, not for {statistic!r}.", "leave at out."
        )
    if shares:
        raise ParameterError("'at' is for counts, not for shares.", "leave at or normalize out.")
    value = real(at, "at", 0 if statistic in COUNTED | SQUARED else -MOST, MOST)
    if statistic in ("std", "describe"):
        value *= value
    return Assumption(round(value) if statistic == "count" else public_records, value)


def _assumed(release: Release[Any], assumption: Assumption, level: float) -> Any:
    """Return the release of assumed numbers without noise; one of those that share a cost."""
    if assumption.at is not None and any(column.timeline for column in release.call.columns):
        raise ParameterError("'at' is for numbers, and the columns hold dates.", "leave at out.")
    task = release.task
    if not isinstance(task, NoisyNumbers):  # a selection by `agg`
        name = release.call.statistic
        raise ParameterError(
            f"A plan of {name!r} is by ranks, and not one of 'agg'.",
            Example(f'private.dp.plan.{name}("age", epsilon=0.1)'),
        )
    price = price_of(release)
    if assumption.rows is None and not _errors_are_fixed(release, assumption.at):
        rows_of(release.facts, None)  # refuses
    exact = task.exact([assumption.answer(read) for read in task.reads])
    drawn = Drawn(price, task.cost, [[noiseless(exact, price, task.request)]], level=level)
    return release.publish(release, drawn)[0]


def _errors_are_fixed(release: Release[Any], at: float | None) -> bool:
    """Return whether the errors depend on the noise alone, or on the noise and the assumed count.

    So they are where the released numbers are noisy counts and sums, without a constraint. The bias of
    bounding depends on the number itself.
    """
    call, task = release.call, release.task
    if not isinstance(task, NoisyNumbers):
        return False
    sums = call.statistic == "agg" and task.statistic.limits is None
    if (
        not (sums or task.statistic.offsets is not None)
        or call.normalize is not None
        or call.constraint is not None
    ):
        return False
    return call.request.bounding is None or (at is not None and call.statistic in COUNTED)


def _fits(name: str, value: Any, bounding: str | None) -> bool:
    """Return whether a keyword suits a bounding: bounds need another, published calibration truncation.

    Whatever is no name of a bounding suits none, and is refused by the request.
    """
    known = bounding if isinstance(bounding, str) else None
    if name == "bounds":
        return known not in (None, PROJECT)
    return name != "calibration" or not _is_published(value) or known == "truncated"


def _is_published(calibration: Any) -> bool:
    """Return whether a calibration costs more than is asked for."""
    return isinstance(calibration, str) and calibration == "published"


def _errors(view: View) -> pd.DataFrame:
    """One row per released number; of a table, one for its cells of equal errors."""
    errors = _errors_of_each(view)
    return _distinct(errors) if view.facts.statistic in TABLES else errors


def _errors_of_each(view: View) -> pd.DataFrame:
    """One row per released number."""
    released, facts, error = view.released, view.facts, view.facts.error
    scale: Any = facts.scale
    # the noisy parts of a description are not its numbers, even if there are as many
    own = facts.statistic not in ("agg", "describe")
    size = released.size
    if view.by:  # one noise per column, or several
        own, size = facts.statistic == "sum", released.shape[-1]
    several = isinstance(scale, dict) and not (own and len(scale) == size)
    if isinstance(scale, dict):
        # one noise per number, or several without a common scale
        scale = math.nan if several else [*scale.values()]
    derived = several or facts.statistic == "std" or facts.normalize or facts.margins
    unknown: dict[str, Any] = {"bias": math.nan, "rmse": math.nan}
    here, worst = error, error.get("worst_case") or unknown
    if facts.bounding is None:
        here = {"bias": 0.0, "rmse": error["standard_error"]}
        worst = unknown if derived else here
    fields = {
        "scale": scale,
        "bias": here["bias"],
        "rmse": here["rmse"],
        "worst_bias": worst["bias"],
        "worst_rmse": worst["rmse"],
        "plus_minus": error["plus_minus"],
    }
    columns: dict[str, Any] = {
        name: np.broadcast_to(np.array(value, np.float64), released.shape).ravel()
        for name, value in fields.items()
    }
    if "unit" in error:  # dates, with errors that are times
        columns |= {name: times(value) for name, value in columns.items() if name != "scale"}
    return pd.DataFrame(columns, index=cell_labels(released.axes))


def _without_last_bits(errors: pd.Series[Any]) -> pd.Series[Any]:
    """Return errors with 12 digits: sums of the same numbers in another order differ in their last bits."""
    return errors.map("{:.12g}".format) if errors.dtype.kind == "f" else errors


def _distinct(errors: pd.DataFrame) -> pd.DataFrame:
    """The distinct rows of a table, by the first cell of each; ``cells``: how many cells a row is of."""
    kind = errors.apply(_without_last_bits).groupby([*errors.columns], dropna=False, sort=False).ngroup()
    cells = kind.map(kind.value_counts())
    return errors.assign(cells=cells)[~kind.duplicated().to_numpy()]


def _flat(table: pd.DataFrame) -> pd.DataFrame:
    """The table without the levels of released numbers where there is only one of them."""
    labels = [label[:2] for label in table.index]
    if table.index.nlevels == 2 or len(table) > len(set(labels)):
        return table
    return table.set_axis(pd.MultiIndex.from_tuples(labels, names=table.index.names[:2]), axis=0)


# ---------------------------------------------------------------- assumed sums, in place of the records


@dataclass(frozen=True, slots=True)
class Assumption:
    """A table of ``rows`` records without nulls, spread evenly over all cells; None where it is not known.

    ``at``: the mean of each number, or its variance in a plan of variances. By default
    the middle of the bounds, and the variance of uniform values; covariances are zero.
    """

    rows: int | None
    at: float | None = None

    @property
    def records(self) -> int:
        """The number of records, which is known where it matters."""
        return 1 if self.rows is None else self.rows

    def answer(self, read: Read) -> Any:
        """Return the answer to a read, of this table; ParameterError where ``at`` is out of bounds."""
        match read.name, read.args:
            case ("rows", ()) | ("present", _):
                return self.records
            case "table", (columns, method):
                return self._cells(math.prod(column.cells(method) for column in columns))
            case "bins", (column, edges):
                return self._cells(len(edges) - 1 + int(column.nullable))
        quantities, keys, method = read.args
        return self._grouped(quantities, keys, method, products=dict(read.options)["products"])

    def _cells(self, cells: int) -> Integers:
        if self.at is not None:
            return np.full(cells, round(self.at))
        counts = np.full(cells, self.records // cells)
        counts[: self.records % cells] += 1
        return counts

    def _mean(self, quantity: Quantity) -> int:
        if self.at is None:
            return 0 if quantity.low <= 0 <= quantity.high else (quantity.low + quantity.high) // 2
        _check(self.at, quantity.lower, quantity.upper)
        steps = round((self.at - quantity.center) / quantity.grid)
        return min(max(steps, quantity.low), quantity.high)

    def _square(self, quantity: Quantity) -> int:
        """The mean square about the centre, in steps."""
        if self.at is not None:
            _check(self.at, 0.0, (quantity.upper - quantity.lower) ** 2 / 2)
        middle = (quantity.high + quantity.low) / 2  # about 0, unless the quantity is not centred
        variance = (quantity.high - quantity.low) ** 2 / 12 + middle**2
        if self.at is not None:
            variance = self.at / quantity.grid**2
        return round(min(variance, quantity.reach**2))

    def _grouped(
        self, quantities: Sequence[Quantity], keys: Sequence[Column], method: str, *, products: bool
    ) -> GroupedSums:
        rows = Assumption(self.rows)._cells(math.prod(key.cells(method) for key in keys)).tolist()
        if quantities[0].weighs and (len(quantities) == 2 or method != "groupby"):
            return self._weighted(quantities, rows, products=products)
        sums = [[0 if products else n * self._mean(quantity) for n in rows] for quantity in quantities]
        if not products:
            return GroupedSums(rows, sums, {})
        spare = 0 if keys else 1  # the divisor of a variance of all records is n - 1
        squares = {
            (i, j): [max(n - spare, 0) * self._square(quantities[i]) if i == j else 0 for n in rows]
            for i in range(len(quantities))
            for j in range(i, len(quantities))
        }
        return GroupedSums(rows, sums, squares)

    def _weighted(self, quantities: Sequence[Quantity], rows: list[int], *, products: bool) -> GroupedSums:
        """Sums for weights in the middle of their bounds; ``at``: the weight of a cell, or the mean."""
        weight, middle = quantities[0], (quantities[0].low + quantities[0].high) // 2
        if not products:
            total = None if self.at is None else round(self.at / weight.grid)
            return GroupedSums(rows, [[n * middle if total is None else total for n in rows]], {})
        mean = self._mean(quantities[1])
        sums = [[n * middle for n in rows], [n * mean for n in rows]]
        return GroupedSums(rows, sums, {(0, 1): [n * middle * mean for n in rows]})


def _check(at: float, lower: float, upper: float) -> None:
    if not lower <= at <= upper:
        raise ParameterError(f"'at' must be between {lower:g} and {upper:g} (got {at:g}).")


# ---------------------------------------------------------------- plans by name


def _plan(name: str, verb: Callable[..., Release[Any]]) -> Callable[..., pd.DataFrame]:
    """Return the plan of a release."""
    if name == "find_bounds":
        return planned_bounds(verb)
    return planned_by_rank(name, verb) if name in RANKED else _planned(name, verb)


PLANS = {name: _plan(name, getattr(releases, name)) for name in PLANNED}
"""The plan of each release by name; see `PlanDP` of the accessor."""

PLANS_BY_GROUP = {name: _plan(name, verb) for name, verb in VERBS_BY_GROUP.items() if name in PLANNED}
"""The plan of each release per key; selections of labels cannot be planned."""


@short_tracebacks
class GroupPlans(DeclaredGroups, GroupPlanMethods):
    """Errors of planned releases per declared key, as in ``plan.groupby("region").mean(...)``; see `PlanDP`.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> member = pa.Column(bool, metadata={"dp": {}})
    >>> frame = pd.DataFrame({"age": [31, 54] * 500, "member": [True, False] * 500})
    >>> private = frame.dp.protect(pa.DataFrameSchema({"age": age, "member": member}), epsilon=1)
    >>> plan = private.dp.plan.groupby("member").mean("age", epsilon=[0.5, 1], rows=1000)
    >>> plan["plus_minus"].round(2).tolist()
    [1.44, 1.44, 0.72, 0.72]
    """

    def _as_series(self, columns: Labels | None) -> bool:  # noqa: ARG002
        return False  # a plan is a frame

    def _count(self) -> str:
        return f"private.dp.plan.{self._written()}.count(epsilon=[0.1, 1], rows=1000)"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"'GroupPlans' has no attribute {name!r}")
            raise unknown("plan", name, tuple(PLANS_BY_GROUP), PLAN_OF_GROUPS)

    def __repr__(self) -> str:
        return f"plan by group: {', '.join(PLANS_BY_GROUP)}"


for _name, _planner in PLANS_BY_GROUP.items():
    setattr(GroupPlans, _name, short_traceback(with_hints(_planner, PLAN_OF_GROUPS)))
