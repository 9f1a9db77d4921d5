"""Releases of statistics that a test makes up, executed by the gate of the package."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pandas as pd

from pdprivacy import Unit
from pdprivacy.core.gate.execute import execute
from pdprivacy.core.gate.records import seal
from pdprivacy.core.gate.request import Request
from pdprivacy.core.gate.spec import AnswerLabels, Call, Drawn, Release
from pdprivacy.core.gate.tasks import NoisyNumbers, Selections
from pdprivacy.core.statistics import Scope

__all__ = ["Measured", "drawn", "exact", "measured", "selected"]


def exact(statistic: Any, engine: Any) -> list[Any]:
    """The whole numbers of a statistic, read from an engine."""
    return statistic.exact([read.on(engine) for read in statistic.reads])


def drawn(
    task: Any, engine: Any, budget: Any, label: str = "a release", rng: Any = 1, unit: Unit | None = None
) -> Drawn:
    """The outcomes that the gate draws of a task, charged to this budget."""
    cells: Any = SimpleNamespace(engine="a test", in_turn=nullcontext, statistics=lambda: engine)
    statistic = task.statistic if isinstance(task, NoisyNumbers) else getattr(task, "choices", [task])[0]
    facts: Any = SimpleNamespace(
        scope=getattr(statistic, "scope", Scope("add_remove", None)),
        sealed=seal(cells, pd.DataFrame(), (0, 0)),
        budget=budget,
        unit=Unit() if unit is None else unit,
        secret=None,
        keeper=None,
    )
    call = Call("a statistic", Request(1, mechanism="laplace"), rng=rng)
    return execute(
        Release(facts, call, label, task, AnswerLabels(pd.Index([])), lambda _, outcomes: (outcomes, None))
    )


@dataclass(frozen=True)
class Measured:
    """One release: its parts and mechanisms, the noisy parts, and the charge."""

    parts: tuple[Any, ...]
    mechanisms: tuple[Any, ...]
    noisy: tuple[Any, ...]
    cost: Any
    seeded: bool
    entry: Any


def measured(
    statistic: Any,
    engine: Any,
    budget: Any,
    request: Request,
    rng: Any = 1,
    label: str = "a release",
    unit: Unit | None = None,
) -> list[Measured]:
    """The releases of a statistic."""
    draws = drawn(NoisyNumbers(statistic, request), engine, budget, label, rng, unit)
    price = draws.price
    return [
        Measured(price.parts, price.mechanisms, noisy, price.cost, draws.seeded, draws.entry)
        for noisy in draws.outcomes[0]
    ]


def selected(choices: Sequence[Any], engine: Any, budget: Any, request: Any, rng: Any) -> list[Any]:
    """The selection of each release of each choice."""
    draws = drawn(Selections(tuple(choices), request), engine, budget, rng=rng)
    return [tuple(outcome) for outcome in zip(*draws.outcomes, strict=True)]
