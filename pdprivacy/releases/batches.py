"""Several releases that are charged as one, and the split of a budget between releases."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, groupby
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, TypeVar, cast

import numpy as np
import pandas as pd

from pdprivacy import checks, releases
from pdprivacy.checks import integer, one_of
from pdprivacy.core import noise
from pdprivacy.core.accounting import Concentrated, Event, GaussianNoise, shares
from pdprivacy.core.accounting import epsilon as epsilon_of
from pdprivacy.core.accounting.reports import Method
from pdprivacy.core.gate.execute import execute_together, noting_charges
from pdprivacy.core.gate.facts import Facts, declared
from pdprivacy.core.gate.request import MechanismName
from pdprivacy.core.gate.spec import MethodCall, Price, Release, columns_of
from pdprivacy.core.mechanisms.gaussian import LEAST_EPSILON, exact_multiplier
from pdprivacy.core.noise import RandomState
from pdprivacy.core.privacy import Approx, Pure, Rational, check_delta, loss, positive, rational
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.declaration.linear import LinearConstraint, checked
from pdprivacy.errors import (
    DeclarationError,
    ParameterError,
    UnknownNameError,
    got,
    kind,
    short_traceback,
    short_tracebacks,
)
from pdprivacy.exact import next_down, rounded_up
from pdprivacy.frames.answers import AnswerMemory
from pdprivacy.hints.examples import EXAMPLES
from pdprivacy.hints.suggestions import with_hints
from pdprivacy.releases import MODULES, RELEASING
from pdprivacy.releases.consistency import JointLimits
from pdprivacy.releases.metadata import Released
from pdprivacy.text.markup import table
from pdprivacy.text.numbers import cost
from pdprivacy.types import Labels

if TYPE_CHECKING:
    from pdprivacy.signatures import BatchMethods
else:  # a batch makes them by name
    BatchMethods = object


VERBS: dict[str, Callable[..., Release[Any]]] = {
    name: with_hints(getattr(releases, name)) for module in RELEASING for name in MODULES[module]
}

R = TypeVar("R", bound=Released)
Priced: TypeAlias = tuple[Release[Any], Price]

LEAST = Fraction(1, 10**9)
"""The smallest epsilon of a plan, which at a large delta would need none."""

LARGEST = 2.0**40
"""The largest epsilon of a search."""


@short_tracebacks
@dataclass(frozen=True)
class ReleasePlan:
    """Fixed releases and their total cost; nothing is charged before `release`.

    The releases read the records as they were protected, whatever happens to the frame later.

    Attributes
    ----------
    cost : the charge for all releases together. A budget whose accounting is not "basic" counts each release
        by itself instead, which is also less than ``apart``. For a secret part, this is the loss of the part,
        and the charge to the whole is smaller.
    apart : the sum of the costs of the releases one by one.
    """

    _facts: Facts = field(repr=False)
    _releases: tuple[Priced, ...] = field(repr=False)
    cost: Pure | Approx
    apart: Pure | Approx
    _joint: JointLimits | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        lines = [self._title]
        for heading, *texts in self._totals():
            lines.append(
                f"  {heading:<10}  epsilon {texts[0]:<20} delta {texts[1]}" if texts else f"  {heading}"
            )
        for times, label, epsilon, delta in self._runs():
            lines.append(f"  {times:>6}  {label}  epsilon {epsilon}  delta {delta}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        runs = [[f"{times} {label}", *texts] for times, label, *texts in self._runs()]
        return table(["", "epsilon", "delta"], [*self._totals(), *runs], caption=self._title)

    @property
    def _title(self) -> str:
        size = len(self._releases)
        return f"Plan of {size} release{'s'[: size != 1]}, not yet charged"

    def _totals(self) -> list[list[str]]:
        """Return the epsilon and delta of all releases together, and one by one."""
        totals = [
            [heading, cost(price.epsilon), cost(price.delta)]
            for heading, price in (("together", self.cost), ("one by one", self.apart))
        ]
        terms = self._facts.budget.account.terms
        if terms.rule.in_rho:
            totals[0] = [f"counted one by one in the budget, by its accounting ({terms.accounting})"]
        return totals

    def _runs(self) -> list[list[str]]:
        """Return runs of equal releases: their number, label, epsilon and delta."""
        pairs = [(release.label, price.cost) for release, price in self._releases]
        return [
            [f"{sum(1 for _ in run)} x", label, cost(price.epsilon), cost(price.delta)]
            for (label, price), run in groupby(pairs)
        ]

    def release(self, release_id: str | None = None) -> list[Released]:
        """Charge all releases together, and return them in the order of the plan.

        ``release_id``: as for a release, for all of them.

        Raises the errors of the releases, such as BudgetExceeded, after which nothing is charged. A plan that
        fails after the charge stays charged.
        """
        labels = groupby(release.label for release, _ in self._releases)
        runs = [(label, sum(1 for _ in run)) for label, run in labels]
        label = "plan: " + "; ".join(label if times == 1 else f"{times} x {label}" for label, times in runs)
        if self._joint is None and isinstance(self._facts.keeper, AnswerMemory):
            make = functools.partial(self._execute, label, release_id)
            terms = (self.cost, label, release_id)
            return self._facts.keeper.keep_together(self._releases, terms, self._facts.secret, make)
        return self._execute(label, release_id)

    def _execute(self, label: str, release_id: str | None) -> list[Released]:
        """Charge all releases together, and return them."""
        with noting_charges():
            released = execute_together(self._facts, self._releases, self.cost, label, release_id)
            return released if self._joint is None else self._joint.moved(released)


def plan_releases(
    protected: Facts, calls: Sequence[Any], *, delta: Rational = 0, accounting: Method = "best"
) -> ReleasePlan:
    """Plan several fixed releases, which are charged as one and cost less than one by one.

    At a small ``delta``, the epsilon of many releases together grows like the square root of their number, as
    long as none of them is chosen after seeing the answer of another; so the plan lists them beforehand.
    Planning reads and charges nothing: look at the plan, then call its ``release()``.

    Parameters
    ----------
    calls : one tuple per release: its name, its arguments, and a mapping of its keywords, such as
        ``("mean", "age", {"epsilon": 0.1})``. Releases by group are unsupported.
    delta : the delta of all releases together, which includes the deltas of the releases themselves.
    accounting : "best" (the least valid epsilon), or "basic", "optimal", "zcdp", "pld" (extra ``pld``);
        see `pdprivacy.accounting.epsilon`.

    Raises
    ------
    ParameterError : an unknown release, an accounting that does not apply, or a secret part with
        ``spend="noise"``; also the errors of the releases themselves.

    >>> import pandas as pd, pandera.pandas as pa
    >>> schema = pa.DataFrameSchema({"member": pa.Column(bool, metadata={"dp": {}})})
    >>> private = pd.DataFrame({"member": [True, False]}).dp.protect(schema, epsilon=3, delta=1e-6)
    >>> plan = private.dp.plan_releases([("count", {"epsilon": 0.1})] * 60, delta=1e-6)
    >>> plan.apart.epsilon == 6, 2 < plan.cost.epsilon < 4
    (True, True)
    """
    if isinstance(calls, str | Mapping) or not isinstance(calls, Sequence) or not calls:
        raise ParameterError(
            f"'calls' must be a list of releases, at least one (got {got(calls)}).",
            EXAMPLES["plan_releases"],
        )
    facts = _paid_as_a_whole(protected)
    return _plan_of(protected, [_priced_tuple(call, facts) for call in calls], delta, accounting)


def _paid_as_a_whole(protected: Facts) -> Facts:
    """Return the facts of releases that are charged together, for which a secret part pays at once.

    Raises ParameterError for a secret part with ``spend="noise"``, whose releases pay their stated epsilon.
    """
    if protected.secret is not None and protected.secret.spend == "noise":
        raise ParameterError(
            "A plan cannot split the loss of several releases of one secret part.",
            'release them one at a time, or draw the part with spend="epsilon".',
        )
    return replace(protected, secret=None)


def _priced_tuple(call: Any, facts: Facts) -> Priced:
    """Return the release that a tuple spells out: its name, its arguments, and a mapping of its keywords."""
    parts = list(call) if isinstance(call, tuple | list) else []
    options = parts.pop() if parts and isinstance(parts[-1], Mapping) else {}
    if not parts or not isinstance(parts[0], str) or "epsilon" not in options:
        raise ParameterError(
            "Each of 'calls' must be a release, its arguments, and finally a mapping of its keywords, "
            "including 'epsilon'.",
            EXAMPLES["plan_releases"],
        )
    name, *arguments = parts
    one_of(name, "the release", sorted(VERBS))
    if not all(isinstance(word, str) for word in options):
        raise ParameterError("The keywords of a release must be strings.", '{"epsilon": 0.1}.')
    return _priced_call(facts, name, arguments, options)


def _priced_call(facts: Facts, name: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> Priced:
    """Return the release of this name with its price; raise the errors that the release itself raises."""
    if "release_id" in options:
        raise ParameterError(
            "A release of a plan has no 'release_id': it is charged with the others.",
            'plan.release(release_id="...").',
        )
    # copies, so that later changes of the arguments do not change the release
    fixed = {word: value if word == "rng" else copy.deepcopy(value) for word, value in options.items()}
    call = MethodCall(VERBS[name], (facts, *copy.deepcopy(arguments)), fixed)
    return with_price(replace(call.function(*call.args, **call.kwargs), method_call=call))


def with_price(release: Release[Any]) -> Priced:
    """Return a release with its price; raise the errors of the release before anything is charged."""
    noise.source(release.call.rng)
    return release, release.task.price(release.task.cost)


def _plan_of(
    protected: Facts, releases: Sequence[Priced], delta: Rational | None, accounting: Method
) -> ReleasePlan:
    """Return the plan of these releases; see `plan_releases`. ``delta``: None for the sum of their deltas."""
    prices = [price for _, price in releases]
    apart = loss(sum(price.cost.epsilon for price in prices), sum(price.cost.delta for price in prices))
    slack = apart.delta if delta is None else rational(delta, "delta")
    least = epsilon_of([pair for price in prices for pair in price.events], slack, accounting)
    # in nine digits, so that what a budget shows stays short
    together = max(rounded_up(Fraction(least), 9), LEAST)
    if accounting in ("best", "basic") and apart.epsilon <= together and apart.delta <= slack:
        return ReleasePlan(protected, tuple(releases), apart, apart)  # no accounting is below the sums
    return ReleasePlan(protected, tuple(releases), loss(together, slack), apart)


@dataclass(frozen=True, slots=True, repr=False)
class PendingNumbers:
    """Numbers of a release that a batch will make at its end, by their label: keys of linear constraints."""

    pending: Pending[Any]
    label: Any

    def __repr__(self) -> str:
        label = "..." if self.label is ... else repr(self.label).replace("Ellipsis", "...")
        return f"{self.pending._label}[{label}]"


@short_tracebacks
class Pending(Generic[R]):
    """A release that a batch will make at its end."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._released: R | None = None

    def __getitem__(self, label: Any) -> PendingNumbers:
        """Name numbers of the release by a label, as `Batch.constrain` takes them; `...` names all."""
        return PendingNumbers(self, label)

    def __iter__(self) -> NoReturn:
        raise ParameterError(f"{self._label!r} is not released yet.", "take its result after the with block.")

    @property
    def result(self) -> R:
        """The released object; ParameterError before the end of the batch."""
        if self._released is None:
            raise ParameterError(
                f"The batch has not released {self._label!r} yet.", "take the result after the with block."
            )
        return self._released

    def __repr__(self) -> str:
        return f"{'pending' if self._released is None else 'released'}: {self._label}"


@short_tracebacks
class Batch(BatchMethods):
    """Releases that are made together when the ``with`` block ends; see `batch`.

    The methods of a batch are the releases of a protected frame; each returns a `Pending`.
    """

    def __init__(
        self, protected: Facts, delta: Rational | None, accounting: Method, release_id: str | None
    ) -> None:
        self._protected, self._facts = protected, _paid_as_a_whole(protected)
        self._delta, self._accounting, self._release_id = delta, accounting, release_id
        self._releases: list[Priced] = []
        self._waiting: list[Pending[Any]] = []
        self._constraints: list[LinearConstraint] = []
        self._open = self._used = False

    def __enter__(self) -> Batch:
        if self._used:
            raise ParameterError("A batch is used once.", "with private.dp.batch() as batch: ...")
        self._open = self._used = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        was_open, self._open = self._open, False
        if kind is not None or not self._releases or not was_open:
            return
        released = self.plan().release(self._release_id)
        for pending, result in zip(self._waiting, released, strict=True):
            pending._released = result

    def _declared(self) -> Domain:
        return self._protected.domain

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *VERBS])

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Pending[Any]]:
            if name not in VERBS:
                raise UnknownNameError(f"A batch has no {name!r}; it makes {', '.join(sorted(VERBS))}.")

            @short_traceback
            @functools.wraps(VERBS[name])
            def add_release(batch: Batch, /, *args: Any, **options: Any) -> Pending[Any]:
                return batch._add(name, args, options)

            return add_release.__get__(self)

    def _add(self, verb: str, args: tuple[Any, ...], options: dict[str, Any]) -> Pending[Any]:
        if not self._open:
            raise ParameterError("The batch is not open.", "with private.dp.batch() as batch: ...")
        release = _priced_call(self._facts, verb, args, options)  # refused here, where it is asked
        self._releases.append(release)
        pending: Pending[Any] = Pending(release[0].label)
        self._waiting.append(pending)
        return pending

    def constrain(self, *constraints: LinearConstraint) -> None:
        """Move the numbers of several releases onto public limits of their weighted sums, at no cost.

        ``constraints``: each a `pdprivacy.postprocess.LinearConstraint` whose keys are numbers of pending
        releases: ``pending["north"]`` for a label, ``pending[...]`` for all numbers, ``pending`` for a
        release of one number. Labels are as in `crosstab`.

        At the end of the block, the numbers of all releases that are named become the nearest ones that
        meet all constraints of the batch, within the bounds of each release (none with ``bounding=None``).
        Distances divide each number by its standard error, so that units do not matter and numbers with more
        noise move more. Numbers that meet the constraints, such as the exact ones, are not farther from the
        result than from the noisy numbers in this distance; a single number may be. Biases are not stated,
        standard errors are those of the noise, and ``unprojected()`` returns each release without
        constraints. Counts are no whole numbers any more.

        Releases of counts, sums, means, proportions and variances can be constrained, without margins,
        shares, ``releases`` and another ``constraint``.

        Raises ParameterError, before anything is charged, for other releases, for unknown labels, and for
        constraints that no numbers meet.

        >>> import pandas as pd, pandera.pandas as pa
        >>> from pdprivacy.postprocess import LinearConstraint
        >>> member = pa.Column(bool, metadata={"dp": {}})
        >>> frame = pd.DataFrame({"member": [True, False, True] * 30})
        >>> private = frame.dp.protect(pa.DataFrameSchema({"member": member}), epsilon=1)
        >>> with private.dp.batch() as batch:
        ...     total = batch.count(epsilon=0.2, rng=1)
        ...     parts = batch.value_counts("member", epsilon=0.2, rng=2)
        ...     batch.constrain(LinearConstraint({total: 1, parts[...]: -1}, equals=0))
        >>> float(round(total.result.sum() - parts.result.sum(), 6)) + 0
        0.0
        """
        if not self._open:
            raise ParameterError("The batch is not open.", "with private.dp.batch() as batch: ...")
        every = [*self._constraints, *(each._renamed(self._numbers) for each in checked(constraints))]
        if self._joint(every).limits.contradict():
            raise ParameterError(
                "'constraints' hold linear constraints that no numbers meet.",
                "constrain with fewer of them, or wider limits.",
            )
        self._constraints = every

    def _joint(self, constraints: Sequence[LinearConstraint]) -> JointLimits:
        """Return the limits that constraints set to the numbers of the releases so far."""
        numbers = {id(pending): number for number, pending in enumerate(self._waiting)}
        terms = [
            [(numbers[id(cells.pending)], cells.label, weight) for cells, weight in constraint.terms]
            for constraint in constraints
        ]
        return JointLimits.of(constraints, terms, [release for release, _ in self._releases])

    def _numbers(self, key: Any) -> PendingNumbers:
        """Return the numbers that a key of a constraint names, of a release of this batch."""
        cells = PendingNumbers(key, ...) if isinstance(key, Pending) else key
        if not isinstance(cells, PendingNumbers) or not any(each is cells.pending for each in self._waiting):
            raise ParameterError(
                f"'constraints' must name releases of this batch (got {kind(key)}).",
                "LinearConstraint({parts[...]: 1}, lower=0), of parts = batch.value_counts(...).",
            )
        number = next(number for number, each in enumerate(self._waiting) if each is cells.pending)
        if cells is not key and math.prod(self._releases[number][0].labels.shape) != 1:
            raise ParameterError(
                f"{cells.pending._label!r} holds several numbers.",
                "pending[label] for those of a label, or pending[...] for all.",
            )
        return cells

    def plan(self) -> ReleasePlan:
        """Return the plan of the releases so far, with their total cost; nothing is charged."""
        if not self._releases:
            raise ParameterError("The batch has no releases yet.", "batch.count(epsilon=0.1).")
        if not self._constraints:
            return _plan_of(self._protected, self._releases, self._delta, self._accounting)
        joint = self._joint(self._constraints)
        priced = [
            (joint.in_declared_order(number, release), price)
            for number, (release, price) in enumerate(self._releases)
        ]
        plan = _plan_of(self._protected, priced, self._delta, self._accounting)
        return replace(plan, _joint=joint)


def batch(
    protected: Facts,
    *,
    delta: Rational | None = None,
    accounting: Method = "basic",
    release_id: str | None = None,
) -> Batch:
    """Open a batch of releases, which are charged together and read the data in one pass on any engine.

    In a block ``with private.dp.batch() as batch:``, ``batch.mean(...)``, ``batch.crosstab(...)`` and so on
    add releases. Each call returns a `Pending`, whose ``result`` is available after the block, and raises its
    errors at once. The end of the block charges all releases as one, or none; an error in the block charges
    nothing. No release of a batch can be chosen after seeing the answer of another.

    On engines other than pandas, one query computes all sums and tables. Selections (quantiles, modes) are
    computed one by one.

    Parameters
    ----------
    delta, accounting : as for `plan_releases`; by default losses and deltas add up as they do one by one.
    release_id : as for a release, for all of them.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> member = pa.Column(bool, metadata={"dp": {}})
    >>> frame = pd.DataFrame({"age": [31, 54, 27], "member": [True, False, True]})
    >>> private = frame.dp.protect(pa.DataFrameSchema({"age": age, "member": member}), epsilon=1)
    >>> with private.dp.batch() as batch:
    ...     mean, table = batch.mean("age", epsilon=0.5), batch.value_counts("member", epsilon=0.25)
    >>> mean.result.index.tolist(), private.dp.budget.left
    (['age'], (0.25, 0.0))
    """
    return Batch(protected, delta, accounting, release_id)


def marginals(
    protected: Facts,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    order: int = 2,
    delta: Rational = 0,
    mechanism: MechanismName = "geometric",
    rng: RandomState = None,
    release_id: str | None = None,
) -> dict[tuple[Hashable, ...], pd.Series[Any]]:
    """Release the counts of all tables of ``order`` columns, each as `value_counts` in declared order.

    The tables are charged as one release, and engines other than pandas read them by one query.

    ``columns``: by default all declared columns with cells (labels, bins, or few integers).
    ``epsilon``, ``delta``: the cost of all tables together, shared equally. ``mechanism``, ``rng``,
    ``release_id``: as for a release.

    Returns a dict from tuples of column labels to the released counts; the tables need not be consistent.

    Raises ParameterError for an order out of range, and the errors of `value_counts`.

    >>> import pandas as pd, pandera.pandas as pa
    >>> flag = pa.Column(bool, metadata={"dp": {}})
    >>> frame = pd.DataFrame({"a": [True], "b": [False], "c": [True]})
    >>> private = frame.dp.protect(pa.DataFrameSchema(dict.fromkeys("abc", flag)), epsilon=1)
    >>> list(private.dp.marginals(order=2, epsilon=0.3))
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    chosen = _with_cells(protected) if columns is None else columns_of(protected, columns, "marginals")
    for column in chosen:
        column.labels("marginals")
    order = checks.whole(order, "order", 1, len(chosen), "a table has at least one column, and at most all.")
    keys = list(combinations([column.name for column in chosen], order))
    each, slack = positive(epsilon, "epsilon") / len(keys), rational(delta, "delta") / len(keys)
    # one generator for all tables: the same seed for each would give them the same noise
    state = rng if rng is None else noise.simulator(rng)
    options = {"epsilon": each, "delta": slack, "mechanism": mechanism, "rng": state, "sort": False}
    facts = _paid_as_a_whole(protected)
    calls = [_priced_call(facts, "value_counts", [list(key)], options) for key in keys]
    released = _plan_of(protected, calls, None, "basic").release(release_id)
    return cast("dict[tuple[Hashable, ...], pd.Series[Any]]", dict(zip(keys, released, strict=True)))


def _with_cells(protected: Facts) -> tuple[Column, ...]:
    """Return the declared columns with cells, which tables may have."""
    columns = []
    for column in protected.domain.columns:
        if declared(protected, column.name):
            try:
                column.labels("marginals")
            except DeclarationError:
                continue
            columns.append(column)
    return tuple(columns)


def split(
    protected: Facts,  # noqa: ARG001
    epsilon: Rational,
    into: int | Sequence[Rational] | Mapping[Hashable, Rational],
) -> list[Fraction] | dict[Hashable, Fraction]:
    """Return shares of ``epsilon`` that sum to it exactly; nothing is charged.

    ``into``: the number of equal shares, or their weights; weights by name give shares by name.

    Raises ParameterError for an epsilon or a weight that is not positive.

    >>> import pandas as pd, pandera.pandas as pa
    >>> schema = pa.DataFrameSchema({"member": pa.Column(bool, metadata={"dp": {}})})
    >>> private = pd.DataFrame({"member": [True, False]}).dp.protect(schema, epsilon=1)
    >>> [str(share) for share in private.dp.split(1, into=[2, 1])]
    ['2/3', '1/3']
    """
    whole = positive(epsilon, "epsilon")
    number = integer(into)
    if number is not None:
        if not 1 <= number <= 10**6:
            raise ParameterError(f"'into' must be from 1 to 1e6 shares (got {got(into)}).")
        return [whole / number] * number
    if isinstance(into, Mapping):
        return dict(zip(into, (whole * share for share in shares(list(into.values()), "into")), strict=True))
    is_sequence = isinstance(into, Sequence | pd.Series) or (isinstance(into, np.ndarray) and into.ndim > 0)
    if isinstance(into, str | bool | int) or not is_sequence:
        raise ParameterError(
            f"'into' must be a number of shares, or weights (got {got(into)}).", "into=[2, 1]."
        )
    return [whole * share for share in shares(into, "into")]


def remaining(protected: Facts, delta: Rational = 0) -> float:
    """Return the largest epsilon, up to a relative 1e-9, of one more release with this ``delta``; or 0.0.

    Without a delta, this is for a release with Laplace or geometric noise. With a delta, it is for Gaussian
    noise, which an accounting in rho counts by its rho. For a secret part it is the epsilon that the release
    states; after suppression of outliers a smaller epsilon may be refused, because nothing can be released
    below `outlier_floor`. If others charge the same budget, less may be left when the release comes.

    Raises ParameterError for a delta outside [0, 1).

    >>> import pandas as pd, pandera.pandas as pa
    >>> schema = pa.DataFrameSchema({"member": pa.Column(bool, metadata={"dp": {}})})
    >>> private = pd.DataFrame({"member": [True, False]}).dp.protect(schema, epsilon=1)
    >>> _ = private.dp.count(epsilon=0.25)
    >>> private.dp.remaining()
    0.75
    """
    slack = check_delta(delta)
    account = protected.budget.account
    rule, spent = account.terms.rule, account.spent
    secret = protected.secret
    inward = secret is not None and secret.spend == "epsilon"

    def fits(epsilon: float) -> bool:
        if epsilon <= 0:
            return False
        cost = loss(Fraction(repr(epsilon)), slack)
        if secret is not None and inward:
            try:
                cost = secret.cost_of_whole(cost)
            except ParameterError:  # above the largest epsilon with a known loss
                return False
        noise = GaussianNoise(exact_multiplier(cost.epsilon, slack), 1, 1) if slack and rule.in_rho else None
        ((counted, count),) = rule._counted(cost, 1, [(Event(cost, noise), 1)])
        return rule.fits(spent, counted, count)

    if not slack or not rule.in_rho:
        left = rule.left(spent)
        if secret is not None and left.amount:
            return _largest_fitting(fits, secret.largest_epsilon(left.amount))
        bound = math.sqrt(2 * left.amount) if isinstance(rule, Concentrated) else float(left.amount)
        return _largest_fitting(fits, bound)
    return _largest_fitting(fits, None)


def _largest_fitting(fits: Callable[[float], bool], near: float | None) -> float:
    """Return the largest double that fits: at or just below ``near``, or found by a search if it is None."""
    if near is not None:
        for candidate in (near, next_down(near), near * (1 - 1e-12)):
            if fits(candidate):
                return candidate
        return 0.0
    low, high = float(LEAST_EPSILON), LARGEST
    if not fits(low):
        return 0.0
    if fits(high):
        return high
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
