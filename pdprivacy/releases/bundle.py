"""Releases that are fixed beforehand, and charged as one."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from itertools import groupby
from typing import Any

from pdprivacy import accounting
from pdprivacy.accounting import Events
from pdprivacy.accounting.reports import Method
from pdprivacy.engine_narwhals import Source
from pdprivacy.errors import BudgetError, ParameterError, check_one_of, got
from pdprivacy.ledger import Budget, Entry
from pdprivacy.markup import table
from pdprivacy.privacy import Approx, Pure, Rational, loss, rational, show
from pdprivacy.protection import Protected
from pdprivacy.releases import clustering
from pdprivacy.releases.call import Released
from pdprivacy.releases.notes import tells_charges
from pdprivacy.releases.planning import VERBS as PLANNED
from pdprivacy.releases.selection import SELECTORS
from pdprivacy.releases.supposed import Asked, Supposed
from pdprivacy.statistic import Read

__all__ = ["ReleasePlan", "plan_releases"]

CLUSTERINGS = {name: getattr(clustering, name) for name in clustering.__all__}
VERBS = {**PLANNED, **SELECTORS, **CLUSTERINGS}

LEAST = Fraction(1, 10**9)
"""The smallest epsilon of a plan; at a large delta none is needed."""

SUPPOSED_ROWS = 10**9
"""Where their number is private; what a release costs does not depend on it."""


@dataclass(frozen=True)
class ReleasePlan:
    """Releases that are fixed, and what they cost together; nothing is charged before `release`.

    They are of the records as they were protected, whatever happens to the frame later.

    Attributes
    ----------
    cost : what is charged for all of them. A budget whose accounting is not "basic" counts each release
        by itself instead, which is less than ``apart`` too. For a secret part the loss of the part, of which
        the whole pays less.
    apart : what they would cost one by one, by sums.
    """

    protected: Protected = field(repr=False)
    calls: tuple[Call, ...] = field(repr=False)
    asked: tuple[Asked, ...] = field(repr=False)
    reads: tuple[Read, ...] = field(repr=False)
    cost: Pure | Approx
    apart: Pure | Approx

    def __repr__(self) -> str:
        lines = [f"Plan of {len(self.asked)} release{'s'[: len(self.asked) != 1]}, not yet charged"]
        for what, cost in (("together", self.cost), ("one by one", self.apart)):
            lines.append(f"  {what:<10}  epsilon {show(cost.epsilon):<20} delta {show(cost.delta)}")
        terms = self.protected.budget.account.terms
        if terms.in_rho:
            lines[1] = f"  counted one by one in the budget, by its accounting ({terms.accounting})"
        for (label, cost), run in groupby((one.label, one.cost) for one in self.asked):
            times = f"{sum(1 for _ in run)} x"
            lines.append(f"  {times:>6}  {label}  epsilon {show(cost.epsilon)}  delta {show(cost.delta)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        first, together, *_ = repr(self).splitlines()
        rows = [
            [what, show(cost.epsilon), show(cost.delta)]
            for what, cost in (("together", self.cost), ("one by one", self.apart))
        ]
        if self.protected.budget.account.terms.in_rho:
            rows[0] = [together.strip()]
        for (label, cost), run in groupby((one.label, one.cost) for one in self.asked):
            rows.append([f"{sum(1 for _ in run)} x {label}", show(cost.epsilon), show(cost.delta)])
        return table(["", "epsilon", "delta"], rows, caption=first)

    @tells_charges
    def release(self, release_id: str | None = None) -> list[Released]:
        """Charge all releases as one, and make them, in the order of the plan.

        ``release_id``: as of a release, for all of them.

        Raises what the releases raise: BudgetExceeded, where nothing is charged; what fails later stays
        charged.
        """
        mechanisms = ", ".join(dict.fromkeys(one.mechanism for one in self.asked))
        with self.protected.paying(self.cost) as (cost, purse):
            entry = purse.charge(
                cost,
                self._label,
                mechanisms,
                events=self._events,
                release_id=release_id,
                unit=self.protected.unit,
            )
        paid = _Paid(self.protected.budget, entry, self.asked)
        facts = replace(self.protected, budget=paid, secret=None)  # a secret part is paid for as a whole
        if isinstance(facts.records, Source):
            facts = replace(facts, records=facts.records.ahead(self.reads))
        released = [call.on(facts) for call in self.calls]
        self.protected.budget.answered(entry.number, paid.risk)
        return released

    @property
    def _label(self) -> str:
        """The releases, equal ones in a row counted."""
        runs = [(label, sum(1 for _ in run)) for label, run in groupby(one.label for one in self.asked)]
        return "plan: " + "; ".join(label if times == 1 else f"{times} x {label}" for label, times in runs)

    @property
    def _events(self) -> Events:
        return [pair for one in self.asked for pair in one.events]


@dataclass(frozen=True)
class Call:
    """One release of a plan."""

    verb: str
    args: tuple[Any, ...]
    options: Mapping[str, Any]

    @classmethod
    def of(cls, one: Any) -> Call:
        """The call that a tuple spells out."""
        parts = list(one) if isinstance(one, tuple | list) else []
        options = parts.pop() if parts and isinstance(parts[-1], Mapping) else {}
        if not parts or not isinstance(parts[0], str) or "epsilon" not in options:
            raise ParameterError(
                "Each of 'calls' must be a release, its arguments, and at the end a mapping of its keywords, "
                "'epsilon' among them.",
                'plan_releases([("mean", "age", {"epsilon": 0.1})], delta=1e-6).',
            )
        check_one_of("the release", parts[0], sorted(VERBS))
        if not all(isinstance(name, str) for name in options):
            raise ParameterError("The keywords of a release must be strings.", '{"epsilon": 0.1}.')
        if "release_id" in options:
            raise ParameterError(
                "A release of a plan has no 'release_id': it is charged with the others.",
                'plan.release(release_id="...").',
            )
        fixed = {name: given if name == "rng" else copy.deepcopy(given) for name, given in options.items()}
        return cls(parts[0], copy.deepcopy(tuple(parts[1:])), fixed)

    def on(self, protected: Protected) -> Released:
        """The release of these facts."""
        released: Released = VERBS[self.verb](protected, *self.args, **self.options)
        return released


class _Paid(Budget):
    """The budget of releases that are paid for: each may be made once, in the order of the plan."""

    def __init__(self, budget: Budget, entry: Entry, asked: Sequence[Asked]) -> None:
        self._book = budget._book
        self._entry, self._waiting = entry, deque(asked)
        self.risk: float | None = None

    def charge(self, cost: Any, label: str, mechanism: str = "", **more: Any) -> Entry:
        """The one entry of the plan, if the next release is the planned one."""
        planned = self._waiting.popleft() if self._waiting else None
        given = Asked(label, mechanism, cost, more["events"])
        if planned is None or given != planned:
            raise BudgetError(
                "The release is not the one that was planned, so it is not made; the plan stays charged."
            )
        return self._entry

    def answered(self, number: int, risk: float | None = None) -> None:  # noqa: ARG002
        """Keep the largest risk; the answer is handed out when all are made."""
        if risk is not None:
            self.risk = risk if self.risk is None else max(self.risk, risk)


def plan_releases(
    protected: Protected, calls: Sequence[Any], *, delta: Rational = 0, accounting: Method = "best"
) -> ReleasePlan:
    """Several releases fixed beforehand, charged as one: for less than they cost one by one.

    The epsilon of many releases together grows like the square root of their number, at a small ``delta``, as
    long as none of them is chosen after seeing the answer of another; that is why they are listed here.
    Nothing is read or charged: look at the plan, then call its ``release()``.

    Parameters
    ----------
    calls : one tuple per release: its name, its arguments, and a mapping of its keywords, such as
        ``("mean", "age", {"epsilon": 0.1})``. Releases by group cannot be planned.
    delta : of all releases together; it includes the deltas of the releases themselves.
    accounting : "best" (the least valid epsilon), or "basic", "optimal", "zcdp", "pld" (extra ``pld``);
        see `pdprivacy.accounting.epsilon`.

    Raises
    ------
    ParameterError : an unknown release, or an accounting that does not apply; a secret part whose releases
        pay what they state; and what the releases themselves would raise.

    >>> import pandas as pd, pandera.pandas as pa
    >>> schema = pa.DataFrameSchema({"member": pa.Column(bool, metadata={"dp": {}})})
    >>> private = pd.DataFrame({"member": [True, False]}).dp.protect(schema, epsilon=3, delta=1e-6)
    >>> plan = private.dp.plan_releases([("count", {"epsilon": 0.1})] * 60, delta=1e-6)
    >>> plan.apart.epsilon == 6, 2 < plan.cost.epsilon < 4
    (True, True)
    """
    if isinstance(calls, str | Mapping) or not isinstance(calls, Sequence) or not calls:
        raise ParameterError(
            f"'calls' must be a list of releases, one at least (got {got(calls)}).",
            'plan_releases([("mean", "age", {"epsilon": 0.1})], delta=1e-6).',
        )
    return planned(protected, tuple(Call.of(one) for one in calls), delta, accounting)


def planned(
    protected: Protected, calls: tuple[Call, ...], delta: Rational | None, accounting: Method
) -> ReleasePlan:
    """The plan of these calls; see `plan_releases`. ``delta``: None for that of the releases alone."""
    if protected.secret is not None and protected.secret.spend == "noise":
        raise ParameterError(
            "What several releases of this secret part allow in noise cannot be shared out beforehand.",
            'sample(..., spend="epsilon"): then the plan costs less.',
        )
    asked, reads = sketched(protected, calls)
    events = [pair for one in asked for pair in one.events]
    apart = loss(sum(one.cost.epsilon for one in asked), sum(one.cost.delta for one in asked))
    slack = apart.delta if delta is None else delta
    cost = _together(events, apart, slack, accounting)
    return ReleasePlan(protected, calls, tuple(asked), tuple(reads), cost, apart)


def sketched(protected: Protected, calls: Sequence[Call]) -> tuple[list[Asked], list[Read]]:
    """What the releases would charge, and read; refuses what they would, before anything is charged."""
    asked: list[Asked] = []
    reads: list[Read] = []
    rows = protected.scope.held()[1]
    supposed = Supposed(SUPPOSED_ROWS if rows is None else rows, asked=asked, reads=reads)
    sketch = replace(protected, secret=None, supposed=supposed)
    for call in calls:
        try:
            call.on(sketch)
        except ArithmeticError:
            raise ParameterError(f"{call.verb!r} cannot be planned for so few records.") from None
    return asked, reads


def _rounded_up(epsilon: float) -> Fraction:
    """At least this, in nine digits, so that what a budget shows stays short."""
    return max(Fraction(Context(prec=9, rounding=ROUND_CEILING).create_decimal(epsilon)), LEAST)


def _together(events: Events, apart: Pure | Approx, delta: Rational, method: Method) -> Pure | Approx:
    """What is charged: the sums, where no accounting finds less."""
    slack = rational(delta, "delta")
    found = _rounded_up(accounting.epsilon(events, slack, method))
    if method in ("best", "basic") and apart.epsilon <= found and apart.delta <= slack:
        return apart
    return loss(found, slack)
