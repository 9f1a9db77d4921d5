"""Releases that are fixed beforehand, and charged as one."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from itertools import groupby
from typing import Any, TypeAlias

from pdprivacy import accounting, noise
from pdprivacy.accounting import Events
from pdprivacy.accounting.reports import Method
from pdprivacy.errors import ParameterError, check_one_of, got
from pdprivacy.hints import told
from pdprivacy.privacy import Approx, Pure, Rational, loss, rational, show
from pdprivacy.protection import Protected
from pdprivacy.release.execute import charge, measured, telling_charges
from pdprivacy.release.publish import Released
from pdprivacy.release.spec import Price, Release
from pdprivacy.releases import clustering
from pdprivacy.releases.planning import VERBS as PLANNED
from pdprivacy.releases.selection import SELECTORS
from pdprivacy.show.markup import table
from pdprivacy.show.tracebacks import short_tracebacks

__all__ = ["ReleasePlan", "plan_releases"]

CLUSTERINGS = {name: getattr(clustering, name) for name in clustering.__all__}
VERBS = {name: told(verb) for name, verb in {**PLANNED, **SELECTORS, **CLUSTERINGS}.items()}

Priced: TypeAlias = tuple[Release[Any], Price]

LEAST = Fraction(1, 10**9)
"""The smallest epsilon of a plan; at a large delta none is needed."""


@short_tracebacks
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

    _facts: Protected = field(repr=False)
    _releases: tuple[Priced, ...] = field(repr=False)
    cost: Pure | Approx
    apart: Pure | Approx

    def __repr__(self) -> str:
        size = len(self._releases)
        lines = [f"Plan of {size} release{'s'[: size != 1]}, not yet charged"]
        for what, cost in (("together", self.cost), ("one by one", self.apart)):
            lines.append(f"  {what:<10}  epsilon {show(cost.epsilon):<20} delta {show(cost.delta)}")
        terms = self._facts.budget.account.terms
        if terms.in_rho:
            lines[1] = f"  counted one by one in the budget, by its accounting ({terms.accounting})"
        for (label, cost), run in groupby(self._labels):
            times = f"{sum(1 for _ in run)} x"
            lines.append(f"  {times:>6}  {label}  epsilon {show(cost.epsilon)}  delta {show(cost.delta)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        first, together, *_ = repr(self).splitlines()
        rows = [
            [what, show(cost.epsilon), show(cost.delta)]
            for what, cost in (("together", self.cost), ("one by one", self.apart))
        ]
        if self._facts.budget.account.terms.in_rho:
            rows[0] = [together.strip()]
        for (label, cost), run in groupby(self._labels):
            rows.append([f"{sum(1 for _ in run)} x {label}", show(cost.epsilon), show(cost.delta)])
        return table(["", "epsilon", "delta"], rows, caption=first)

    @telling_charges()
    def release(self, release_id: str | None = None) -> list[Released]:
        """Charge all releases as one, and make them, in the order of the plan.

        ``release_id``: as of a release, for all of them.

        Raises what the releases raise: BudgetExceeded, where nothing is charged; what fails later stays
        charged.
        """
        title = ", ".join(dict.fromkeys(price.title for _, price in self._releases))
        taken_place = [pair for _, price in self._releases for pair in price.events]
        runs = [(label, sum(1 for _ in run)) for label, run in groupby(label for label, _ in self._labels)]
        label = "plan: " + "; ".join(label if times == 1 else f"{times} x {label}" for label, times in runs)
        sources = [noise.source(release.call.rng) for release, _ in self._releases]
        _, entry = charge(
            self._facts, self.cost, lambda cost: Price(cost, title, taken_place), label, release_id
        )
        answers = self._facts.engine.collect(
            read
            for release, _ in self._releases
            if release.facts.derived is None
            for read in release.task.reads
        )
        made = [
            measured(release, price, entry, source, answers, release_id)
            for (release, price), source in zip(self._releases, sources, strict=True)
        ]
        self._facts.budget.answered(
            entry.number, max((risk for _, risk in made if risk is not None), default=None)
        )
        return [released for released, _ in made]

    @property
    def _labels(self) -> list[tuple[str, Pure | Approx]]:
        return [(release.label, price.cost) for release, price in self._releases]


def planned_release(call: Any, facts: Protected) -> Release[Any]:
    """Return the release that a tuple spells out: its name, its arguments, and a mapping of its keywords.

    Raises ParameterError for anything else, ArgumentError for arguments that do not fit, and what the
    release itself would raise.
    """
    parts = list(call) if isinstance(call, tuple | list) else []
    options = parts.pop() if parts and isinstance(parts[-1], Mapping) else {}
    if not parts or not isinstance(parts[0], str) or "epsilon" not in options:
        raise ParameterError(
            "Each of 'calls' must be a release, its arguments, and at the end a mapping of its keywords, "
            "'epsilon' among them.",
            'plan_releases([("mean", "age", {"epsilon": 0.1})], delta=1e-6).',
        )
    name, *arguments = parts
    check_one_of("the release", name, sorted(VERBS))
    if not all(isinstance(word, str) for word in options):
        raise ParameterError("The keywords of a release must be strings.", '{"epsilon": 0.1}.')
    if "release_id" in options:
        raise ParameterError(
            "A release of a plan has no 'release_id': it is charged with the others.",
            'plan.release(release_id="...").',
        )
    # later changes of what was given change nothing
    fixed = {word: given if word == "rng" else copy.deepcopy(given) for word, given in options.items()}
    release: Release[Any] = VERBS[name](facts, *copy.deepcopy(arguments), **fixed)
    return release


def paid_as_a_whole(protected: Protected) -> Protected:
    """Return the facts of releases that are charged together: a secret part pays for all of them at once.

    Raises ParameterError for a secret part whose releases pay what they state.
    """
    if protected.secret is not None and protected.secret.spend == "noise":
        raise ParameterError(
            "A plan cannot split the loss of several releases of one secret part.",
            'release them one at a time, or draw the part with spend="epsilon".',
        )
    return replace(protected, secret=None)


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
        ``("mean", "age", {"epsilon": 0.1})``. Releases by group are not among them.
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
    facts = paid_as_a_whole(protected)
    releases = [priced(planned_release(one, facts)) for one in calls]
    return planned(protected, releases, delta, accounting)


def planned(
    protected: Protected, releases: Sequence[Priced], delta: Rational | None, accounting: Method
) -> ReleasePlan:
    """The plan of these releases; see `plan_releases`. ``delta``: None for that of the releases alone."""
    prices = [price for _, price in releases]
    apart = loss(sum(price.cost.epsilon for price in prices), sum(price.cost.delta for price in prices))
    slack = apart.delta if delta is None else delta
    cost = _together([pair for price in prices for pair in price.events], apart, slack, accounting)
    return ReleasePlan(protected, tuple(releases), cost, apart)


def priced(release: Release[Any]) -> Priced:
    """Return a release with its price; refuses what the release would, before anything is charged."""
    noise.source(release.call.rng)
    return release, release.task.price(release.task.cost)


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
