"""Plans of quantiles: how many ranks a selected number would be off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from pdprivacy.checks import proportion
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.spec import LEVEL, Drawn, Release
from pdprivacy.core.gate.tasks import Selections
from pdprivacy.core.statistics import Quantile
from pdprivacy.errors import ParameterError
from pdprivacy.hints.examples import Example
from pdprivacy.releases import metadata
from pdprivacy.releases.grouped import DeclaredGroups
from pdprivacy.releases.metadata import Metadata, attach_plan
from pdprivacy.releases.plan_calls import PLAN_OF_GROUPS, Levels, begin_plan, plan_of, price_of, rows_of
from pdprivacy.releases.required_epsilon import required_epsilon

Ranks: TypeAlias = "float | Sequence[float] | np.ndarray[Any, Any] | pd.Index[Any] | pd.Series[Any]"

MEASURES = {"below_best": "ranks", "rank": "rank", "cut": "cut"}
"""The errors of a selected number that a plan shows, and their columns."""


@dataclass(frozen=True, slots=True)
class _Planned:
    """A selection of numbers whose errors are planned: its call without loss."""

    verb: Callable[..., Release[Any]]
    facts: Facts | DeclaredGroups
    args: tuple[Any, ...]
    options: dict[str, Any]
    rows: int | None
    level: float

    def at(self, epsilon: Any) -> tuple[pd.DataFrame, Metadata]:
        """Return the errors at this loss, one row per quantile of a column, and the metadata of the release.

        The errors depend on declared facts alone, so any candidate stands for the selected one.
        """
        release = self.verb(self.facts, *self.args, epsilon=epsilon, **self.options)
        task = release.task
        assert isinstance(task, Selections)
        choices = [choice for choice in task.choices if isinstance(choice, Quantile)]
        outcomes = [[(choice.grid.low,) * choice.groups] * task.choosing.releases for choice in choices]
        drawn = Drawn(price_of(release), task.cost, outcomes, level=self.level)
        facts = metadata.read(release.publish(release, drawn)[0])
        known = {name: facts.error[key] for key, name in MEASURES.items() if key in facts.error}
        columns = {
            name: [*each.values()] if isinstance(each, dict) else [each]
            for name, each in {"scale": facts.scale, **known}.items()
        }
        numbers = [choice for choice in choices if choice.side is None]
        labels = [(choice.grid.column.name, float(choice.q)) for choice in numbers]
        table = pd.DataFrame(columns, index=pd.MultiIndex.from_tuples(labels, names=["column", "q"]))
        if self.rows is not None and facts.weights is None:
            table["share"] = table["ranks"] / self.rows
        return table, facts

    def ranks(self, epsilon: Any) -> pd.Series[Any]:
        """Return how many ranks each number is off at this loss."""
        return self.at(epsilon)[0]["ranks"]


def _ranks_alone(statistic: str, *, by_group: bool) -> ParameterError:
    """The error of a plan by a margin in value."""
    prefix = PLAN_OF_GROUPS if by_group else "private.dp.plan"
    return ParameterError(
        f"'plus_minus' is a distance in value, and the error of {statistic!r} is known in ranks alone: how "
        "far apart the values of so many ranks are depends on the data, which a plan must not read.",
        Example(f'{prefix}.{statistic}("age", ranks=20)'),
    )


def planned_by_rank(statistic: str, verb: Callable[..., Release[Any]]) -> Callable[..., pd.DataFrame]:
    """Return the plan of a selection of numbers: a function with its signature, and what a plan adds."""

    def method(
        facts: Facts | DeclaredGroups,
        *args: Any,
        epsilon: Levels | None = None,
        rows: int | None = None,
        ranks: Ranks | None = None,
        level: float = LEVEL,
        **options: Any,
    ) -> pd.DataFrame:
        if "plus_minus" in options:
            raise _ranks_alone(statistic, by_group=isinstance(facts, DeclaredGroups))
        protected, choices, choose = begin_plan(statistic, facts, options, epsilon, ranks, "ranks")
        private = rows is None and protected.scope.row_bounds()[1] is None
        records = None if private else rows_of(protected, rows)
        plan = _Planned(verb, facts, args, options, records, proportion(level, "level"))
        errors: dict[float, pd.DataFrame] = {}
        for choice in choices:
            loss = required_epsilon(plan.ranks, choice, "ranks") if choose else choice
            table, released = plan.at(loss)
            errors[released.epsilon] = table
        joined = pd.concat(errors, names=["epsilon"])
        if len(table) == 1:
            joined = joined.droplevel(["column", "q"])
        elif statistic != "quantile":
            joined = joined.droplevel("q")
        by = [str(key.name) for key in facts.keys] if isinstance(facts, DeclaredGroups) else []
        attach_plan(joined, released, by=by, rows=records, at=None, level=plan.level)
        return joined

    return plan_of(method, verb)
