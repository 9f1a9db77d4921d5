"""The disclosure risk of several publications, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy import accounting, risk
from pdprivacy.domain import Column
from pdprivacy.errors import ParameterError
from pdprivacy.privacy import Approx, Pure, loss
from pdprivacy.protection import Protected, ProtectedFrame, find
from pdprivacy.release.spec import spelled
from pdprivacy.releases.columns import check_cells, check_flag
from pdprivacy.releases.curator import marked
from pdprivacy.releases.disclosure.asked import TableRisk
from pdprivacy.releases.disclosure.options import DEFAULTS, MARK, Measured, check_average, unwrapped

__all__ = ["repeated_risk"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@marked
@spelled(Measured, DEFAULTS)
def repeated_risk(
    protected: Protected,
    publications: Sequence[Mapping[str, Any]],
    *,
    average: risk.Average = "cells",
    spent: bool = False,
    progress: bool | None = None,
    **options: Unpack[Measured],
) -> pd.DataFrame:
    """CONFIDENTIAL, for the curator: the disclosure risk of several publications, one after the other.

    publications : mappings with the keys ``by``, ``sensitive``, ``epsilon`` and, if wanted, ``delta`` (by
        default the keyword of the call) and ``frame``: another protected frame of new records, a cohort of
        its own (vertical growth); by default this one. Later publications of a cohort may have other or
        more columns (horizontal growth).
    overall : per cell, over sensitive columns and over the publications of a cohort so far: the largest risk
        ("max", the bounded measure) or the sum of risks ("sum", the unbounded one).
    spent : whether the losses start from what the budget of each frame has spent already.
    progress : bars, one per publication, which need tqdm; None: where it is long.

    Each publication is evaluated at the composed loss of all publications so far of its cohort, which
    is at least what was lost about the columns of this one (footnote 3 of the source). Noise that takes
    no delta is that of the composed epsilon alone: a delta spent by others is then not counted.

    Returns a DataFrame indexed by "publication": ``cohort``, ``by``, ``sensitive``, ``epsilon``, the ``risk``
    of the publication, averaged over its own cells, the ``overall`` risk of its cohort, averaged over the
    non-empty cells of all ``by`` columns so far (in each, a publication counts with the risk of the cell of
    its own that holds it), ``epsilon_so_far`` and ``delta_so_far``. The overall risk of
    a cell never falls; the average over cells may, where new columns split cells into unlike numbers of
    them, and that over records does not.

    Source: Liu, Zhao (2023), section 4.3.

    Raises as `dr_ha`; ParameterError for a frame that shares its budget with another cohort, whose
    records are not new ones then.

    >>> import pandas as pd
    >>> from pdprivacy import Column, Domain
    >>> sex = Column("sex", "category", categories=("f", "m"), role="quasi_identifier")
    >>> domain = Domain((sex, Column("ill", "boolean", role="sensitive")))
    >>> frame = pd.DataFrame({"sex": ["f", "f", "m"], "ill": [True, False, True]})
    >>> private = frame.dp.protect(domain, epsilon=1)
    >>> twice = [{"by": "sex", "sensitive": "ill", "epsilon": 0.5}] * 2
    >>> private.dp.repeated_risk(twice)["epsilon_so_far"].tolist()
    [0.5, 1.0]
    """
    check_average(average)
    check_flag("spent", spent)
    steps = _steps(protected, publications, spent, options)
    rows, held = [], {}
    for step in steps:
        key = (
            step.cohort,
            *(tuple(one.name for one in side) for side in (step.asked.by, step.asked.sensitive)),
        )
        if key not in held:
            held[key] = step.asked.count()
        cells = held[key].risks([step.noise], None, progress)[0]
        step.past.append((step.asked.by, cells))
        sizes = held[key].sizes
        rows.append(
            {
                "cohort": step.cohort,
                "by": ", ".join(str(column.name) for column in step.asked.by),
                "sensitive": ", ".join(str(column.name) for column in step.asked.sensitive),
                "epsilon": step.epsilon,
                "risk": _mean(cells[sizes > 0], sizes[sizes > 0], average),
                "overall": _overall(step, average),
                "epsilon_so_far": float(step.so_far.epsilon),
                "delta_so_far": float(step.so_far.delta),
            }
        )
    index = pd.RangeIndex(1, len(rows) + 1, name="publication")
    frame = pd.DataFrame(rows, index=index)
    frame.columns.name = MARK
    return frame


@dataclass(frozen=True, slots=True)
class _Step:
    """One publication: what is asked, the composed loss so far, and all columns of its cohort so far.

    ``past``: of the cohort, the columns and the risks of their cells (N,), one pair per publication.
    """

    cohort: int
    asked: TableRisk
    epsilon: float
    so_far: Pure | Approx
    noise: Any
    union: tuple[Column, ...]
    past: list[tuple[tuple[Column, ...], Floats]] = field(repr=False)


KEYS = ("by", "sensitive", "epsilon", "delta", "frame")


def _steps(protected: Protected, publications: Any, spent: bool, options: Measured) -> list[_Step]:
    """All publications, checked before any count is read."""
    if isinstance(publications, Mapping | str) or not isinstance(publications, Sequence) or not publications:
        raise ParameterError(
            "'publications' must be a list of mappings.",
            'repeated_risk([{"by": "age", "sensitive": "health", "epsilon": 0.5}]).',
        )
    cohorts: list[Protected] = []
    losses: dict[int, list[Pure | Approx]] = {}
    unions: dict[int, tuple[Column, ...]] = {}
    pasts: dict[int, list[tuple[tuple[Column, ...], Floats]]] = {}
    steps = []
    for one in publications:
        if not isinstance(one, Mapping) or not set(KEYS[:3]) <= set(one) <= set(KEYS):
            raise ParameterError(
                "Each of 'publications' must map 'by', 'sensitive' and 'epsilon', if wanted 'delta', 'frame'."
            )
        facts = _facts(protected, one.get("frame"))
        cohort = _cohort(cohorts, facts)
        cost = loss(unwrapped(one["epsilon"]), unwrapped(one.get("delta", options["delta"])))
        if cohort not in losses:
            before = facts.budget.composed if spent else None
            losses[cohort] = [] if before is None else [before]
            unions[cohort], pasts[cohort] = (), []
        losses[cohort].append(cost)
        so_far = accounting.compose(losses[cohort])
        assert isinstance(so_far, Pure | Approx)
        # the noise itself is asked for below, at the composed loss
        asked = TableRisk.of(facts, one["by"], one["sensitive"], "repeated_risk", options)
        noise = asked.noise.at(so_far.epsilon, so_far.delta if asked.noise.takes_delta else 0)
        new = [column for column in asked.by if column not in unions[cohort]]
        unions[cohort] = (*unions[cohort], *new)
        check_cells(unions[cohort], "repeated_risk")
        steps.append(_Step(cohort, asked, float(cost.epsilon), so_far, noise, unions[cohort], pasts[cohort]))
    return steps


def _facts(protected: Protected, frame: Any) -> Protected:
    if frame is None:
        return protected
    if not isinstance(frame, pd.DataFrame | ProtectedFrame):
        raise ParameterError(f"'frame' must be a protected DataFrame (got {type(frame).__name__}).")
    return find(frame)


def _cohort(cohorts: list[Protected], facts: Protected) -> int:
    """The number of the cohort, from 1; a new one is noted."""
    for number, known in enumerate(cohorts, 1):
        if known is facts:
            return number
        if known.budget == facts.budget:
            raise ParameterError(
                "A 'frame' shares its budget with another one, so its records are not new ones.",
                "protect new records with a budget of their own.",
            )
    cohorts.append(facts)
    return len(cohorts)


def _mean(risks: Floats, sizes: Integers, average: risk.Average) -> float:
    return float(np.average(risks, weights=sizes if average == "records" else None))


def _overall(step: _Step, average: risk.Average) -> float:
    """The risk of all publications of the cohort so far, over the finest cells."""
    shape = [column.cells("repeated_risk") for column in step.union]
    sizes = step.asked.protected.engine.table(step.union, "repeated_risk")
    filled = np.flatnonzero(sizes)
    codes = dict(zip((column.name for column in step.union), np.unravel_index(filled, shape), strict=True))
    together = np.maximum if step.asked.overall == "max" else np.add
    total = np.zeros(len(filled))
    for by, risks in step.past:
        place = np.ravel_multi_index(
            tuple(codes[column.name] for column in by), [column.cells("repeated_risk") for column in by]
        )
        total = together(total, risks[place])
    return _mean(total, sizes[filled], average)
