"""Disclosure risk of several publications of the same records, for the curator.

CONFIDENTIAL: all of it is computed from the confidential counts, as in `disclosure_risk`.

Source: F. Liu, X. Zhao (2023), "Disclosure risk from homogeneity attack in differentially privately
sanitized frequency distribution", section 4.3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeAlias, Unpack, get_args

import numpy as np
import pandas as pd

from pdprivacy import risk
from pdprivacy.checks import flag, one_of
from pdprivacy.core.accounting import Event, compose
from pdprivacy.core.accounting import epsilon as composed_epsilon
from pdprivacy.core.gate import curator
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.spec import check_cells, with_keywords
from pdprivacy.core.privacy import ZCDP, Approx, Pure, Rational, check_delta, loss, rational
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import ParameterError, got
from pdprivacy.frames import ProtectedFrame, find
from pdprivacy.hints.examples import Example
from pdprivacy.risk.table_risk import DEFAULTS, Measured, TableRisk, check_average, confidential, unwrapped
from pdprivacy.types import Floats, Integers

Composition: TypeAlias = Literal["basic", "advanced", "zcdp", "optimal"]


@with_keywords(Measured, DEFAULTS)
def repeated_risk(
    protected: Facts,
    publications: Sequence[Mapping[str, Any]],
    *,
    average: risk.Average = "cells",
    spent: bool = False,
    accounting: Composition = "basic",
    slack: Rational | None = None,
    progress: bool | None = None,
    **options: Unpack[Measured],
) -> pd.DataFrame:
    """CONFIDENTIAL, for the curator: the disclosure risk of several successive publications.

    publications : mappings with the key ``epsilon`` and, if wanted, ``by`` and ``sensitive`` (by default the
        columns with these roles, as in `dr_ha`), ``delta`` (by default the keyword of the call) and
        ``frame``: another protected frame of new records, a cohort of its own (vertical growth); by default
        this one. Later publications of a cohort may have other or more columns (horizontal growth).
    overall : per cell, over sensitive columns and over the publications of a cohort so far: the largest risk
        ("max", the bounded measure) or the sum of risks ("sum", the unbounded one).
    spent : whether the losses start from what the budget of each frame has spent already.
    accounting : how the losses so far are composed: "basic", by their sums; with a ``slack``, the delta that
        composition itself may use, by "advanced" composition, by "zcdp" (of Gaussian noise by its rho, of
        other losses by epsilon^2 / 2) or by "optimal" composition of the losses. The composed delta is the
        sum of the deltas and the slack; the composed epsilon is never above the sum.
    progress : whether to show bars, one per publication, which need tqdm; None: in long calls.

    Each publication is evaluated at the composed loss of all publications so far of its cohort, which
    is at least what was lost about the columns of this one (footnote 3 of the source). Noise that takes
    no delta is that of the composed epsilon alone: a delta spent by others, or by composition, is then not
    counted. All but "basic" compose losses that are fixed beforehand.

    Returns a DataFrame indexed by "publication": ``cohort``, ``by``, ``sensitive``, ``epsilon``, the ``risk``
    of the publication, averaged over its own cells, the ``overall`` risk of its cohort, averaged over the
    non-empty cells of all ``by`` columns so far (in each, a publication counts with the risk of the cell of
    its own that holds it), ``epsilon_so_far`` and ``delta_so_far``. The overall risk of
    a cell never falls; the average over cells may, where new columns split cells into unlike numbers of
    them, and that over records does not.

    Source: Liu, Zhao (2023), section 4.3; advanced composition: Dwork, Rothblum, Vadhan (2010), with the mean
    of Kairouz, Oh, Viswanath (2015), Theorem 3.5; the others: `pdprivacy.accounting.epsilon`.

    Raises as `dr_ha`; ParameterError for a frame that shares its budget with another cohort, whose
    records are not new ones then, and for a slack that leaves no epsilon.

    >>> import pandas as pd
    >>> from pdprivacy import Column, Domain
    >>> sex = Column("sex", "category", categories=("f", "m"), role="quasi_identifier")
    >>> domain = Domain((sex, Column("ill", "boolean", role="sensitive")))
    >>> frame = pd.DataFrame({"sex": ["f", "f", "m"], "ill": [True, False, True]})
    >>> private = frame.dp.protect(domain, epsilon=1)
    >>> twice = [{"by": "sex", "sensitive": "ill", "epsilon": 0.5}] * 2
    >>> private.dp.repeated_risk(twice)["epsilon_so_far"].tolist()
    [0.5, 1.0]
    >>> often = [{"by": "sex", "sensitive": "ill", "epsilon": 0.1}] * 100
    >>> totals = private.dp.repeated_risk(often, accounting="advanced", slack=1e-6)["epsilon_so_far"]
    >>> totals.iloc[[0, -1]].round(2).tolist()
    [0.1, 5.76]
    """
    check_average(average)
    flag(spent, "spent")
    composition = _Composition.of(accounting, slack)
    steps = _steps(protected, publications, spent, composition, options)
    rows, counted = [], {}
    for step in steps:
        question = step.question
        names = [tuple(column.name for column in side) for side in (question.by, question.sensitive)]
        key = (step.cohort.number, *names)
        if key not in counted:
            counted[key] = question.count()
        cells, sizes = counted[key].risks([step.noise], None, progress)[0], counted[key].sizes
        step.cohort.past.append((question.by, cells))
        rows.append(
            {
                "cohort": step.cohort.number,
                "by": ", ".join(str(column.name) for column in question.by),
                "sensitive": ", ".join(str(column.name) for column in question.sensitive),
                "epsilon": step.epsilon,
                "risk": _mean(cells[sizes > 0], sizes[sizes > 0], average),
                "overall": _overall(step, average),
                "epsilon_so_far": float(step.so_far.epsilon),
                "delta_so_far": float(step.so_far.delta),
            }
        )
    frame = pd.DataFrame(rows, index=pd.RangeIndex(1, len(rows) + 1, name="publication"))
    return confidential(frame, "repeated_risk", accounting=accounting)


@dataclass(frozen=True, slots=True)
class _Composition:
    """How the losses of a cohort become one; ``slack``: the delta that composition itself may use."""

    accounting: Composition
    slack: Fraction

    @classmethod
    def of(cls, accounting: Composition, slack: Rational | None) -> _Composition:
        one_of(accounting, "accounting", get_args(Composition))
        if accounting == "basic":
            if slack is not None:
                raise ParameterError(
                    "'slack' is for another accounting than sums.", 'accounting="advanced", slack=1e-6.'
                )
            return cls(accounting, Fraction(0))
        number = Fraction(0) if slack is None else rational(slack, "slack")
        if not 0 < number < 1:
            raise ParameterError(
                f"'slack' must be in (0, 1) for the accounting {accounting!r} (got {got(slack)}).",
                "slack=1e-6.",
            )
        return cls(accounting, number)

    def total(self, events: Sequence[Event]) -> Pure | Approx:
        """Return the composed loss of these releases."""
        whole = compose([event.loss for event in events])
        assert isinstance(whole, Pure | Approx)
        if self.accounting == "basic":
            return whole
        delta = check_delta(whole.delta + self.slack)
        if self.accounting == "advanced":
            epsilon = _advanced(events, float(self.slack))
        else:
            epsilon = composed_epsilon([(event, 1) for event in events], delta, self.accounting)
        if epsilon == 0:
            raise ParameterError(
                "'slack' is so large that composition leaves no epsilon.", "a smaller one, such as 1e-6."
            )
        return Approx(min(whole.epsilon, rational(epsilon, "epsilon")), delta)


def _advanced(events: Sequence[Event], slack: float) -> float:
    """Return the epsilon of advanced composition, rounded up.

    The loss of each release is within its epsilon, and at most epsilon tanh(epsilon / 2) on average whatever
    came before it. Hoeffding's inequality bounds their sum.
    """
    epsilons = [float(event.loss.epsilon) for event in events if not isinstance(event.loss, ZCDP)]
    mean = math.fsum(epsilon * math.tanh(epsilon / 2) for epsilon in epsilons)
    squares = math.fsum(epsilon * epsilon for epsilon in epsilons)
    return (mean + math.sqrt(-2 * math.log(slack) * squares)) * (1 + 1e-12)


@dataclass(slots=True, eq=False)
class _Cohort:
    """The records of one frame, and what its publications so far have in common.

    ``events``: of each publication. ``columns``: of all of them. ``past``: for each publication whose risk is
    known the columns and the risks of their cells (N,).
    """

    number: int
    facts: Facts
    events: list[Event]
    columns: tuple[Column, ...] = ()
    past: list[tuple[tuple[Column, ...], Floats]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Step:
    """One publication: its call, the composed loss so far, and all columns of its cohort so far."""

    cohort: _Cohort
    question: TableRisk
    epsilon: float
    so_far: Pure | Approx
    noise: Any
    columns: tuple[Column, ...]


KEYS = {"by", "sensitive", "epsilon", "delta", "frame"}


def _steps(
    protected: Facts, publications: Any, spent: bool, composition: _Composition, options: Measured
) -> list[_Step]:
    """All publications, checked before any count is read."""
    if isinstance(publications, Mapping | str) or not isinstance(publications, Sequence) or not publications:
        raise ParameterError(
            "'publications' must be a list of mappings.",
            Example('repeated_risk([{"by": "region", "sensitive": "health", "epsilon": 0.5}]).'),
        )
    cohorts: list[_Cohort] = []
    steps = []
    for publication in publications:
        if not isinstance(publication, Mapping) or not {"epsilon"} <= set(publication) <= KEYS:
            raise ParameterError(
                "Each of 'publications' must map 'epsilon', if wanted 'by', 'sensitive', 'delta', 'frame'."
            )
        cohort = _cohort(cohorts, _facts(protected, publication.get("frame")), spent)
        cost = loss(unwrapped(publication["epsilon"]), unwrapped(publication.get("delta", options["delta"])))
        # the noise itself is asked for below, at the composed loss
        question = TableRisk.of(
            cohort.facts, publication.get("by"), publication.get("sensitive"), "repeated_risk", options
        )
        known = composition.accounting == "zcdp"
        cohort.events.append(question.noise.event(cost) if known else Event(cost))
        so_far = composition.total(cohort.events)
        noise = question.noise.at(so_far.epsilon, so_far.delta if question.noise.takes_delta else 0)
        cohort.columns += tuple(column for column in question.by if column not in cohort.columns)
        check_cells(cohort.columns, "repeated_risk")
        steps.append(_Step(cohort, question, float(cost.epsilon), so_far, noise, cohort.columns))
    return steps


def _facts(protected: Facts, frame: Any) -> Facts:
    if frame is None:
        return protected
    if not isinstance(frame, pd.DataFrame | ProtectedFrame):
        raise ParameterError(f"'frame' must be a protected frame (got {type(frame).__name__}).")
    return find(frame)


def _cohort(cohorts: list[_Cohort], facts: Facts, spent: bool) -> _Cohort:
    """The cohort of these records; a new one is noted."""
    for known in cohorts:
        if known.facts is facts:
            return known
        if known.facts.budget == facts.budget:
            raise ParameterError(
                "A 'frame' shares its budget with another one, so its records are not new ones.",
                "protect new records with a budget of their own.",
            )
    before = facts.budget.composed if spent else None
    cohorts.append(_Cohort(len(cohorts) + 1, facts, [] if before is None else [Event(before)]))
    return cohorts[-1]


def _mean(risks: Floats, sizes: Integers, average: risk.Average) -> float:
    return float(np.average(risks, weights=sizes if average == "records" else None))


def _overall(step: _Step, average: risk.Average) -> float:
    """The risk of all publications of the cohort so far, over the finest cells."""
    sizes = curator.counts(step.question.protected, step.columns, "repeated_risk")
    filled = np.flatnonzero(sizes)
    codes = np.unravel_index(filled, [column.cells("repeated_risk") for column in step.columns])
    code_of = dict(zip((column.name for column in step.columns), codes, strict=True))
    together = np.maximum if step.question.overall == "max" else np.add
    total = np.zeros(len(filled))
    for by, risks in step.cohort.past:
        shape = [column.cells("repeated_risk") for column in by]
        cells = np.ravel_multi_index(tuple(code_of[column.name] for column in by), shape)
        total = together(total, risks[cells])
    return _mean(total, sizes[filled], average)
