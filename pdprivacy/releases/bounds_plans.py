"""Plans of searches for bounds: whether the records suffice."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd

from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.spec import Drawn, Release
from pdprivacy.core.gate.tasks import BoundSearches
from pdprivacy.core.statistics.private_bounds import STAGES
from pdprivacy.releases import metadata
from pdprivacy.releases.metadata import attach_plan
from pdprivacy.releases.plan_calls import Levels, begin_plan, plan_of, price_of, rows_of

ENOUGH, TOO_FEW = 200, 100
"""Records times epsilon of a column: from the first on bounds are good, and below the second they are not."""


def planned_bounds(verb: Callable[..., Release[Any]]) -> Callable[..., pd.DataFrame]:
    """Return the plan of a search for bounds: a function with its signature, and ``rows``."""

    def method(
        facts: Facts, *args: Any, epsilon: Levels | None = None, rows: int | None = None, **options: Any
    ) -> pd.DataFrame:
        protected, levels, _ = begin_plan("find_bounds", facts, options, epsilon, None)
        records = rows_of(protected, rows)
        tables = {}
        for level in levels:
            release = verb(protected, *args, epsilon=level, **options)
            tables[float(release.task.cost.epsilon)] = _records_needed(release, records)
        plan = pd.concat(tables, names=["epsilon"])
        released, _ = release.publish(release, _supposed(release))
        attach_plan(plan, metadata.read(released), by=[], rows=records, at=None)
        return plan

    return plan_of(method, verb)


def _supposed(release: Release[Any]) -> Drawn:
    """Return any outcome: what a plan shows depends on declared facts alone."""
    task = release.task
    assert isinstance(task, BoundSearches)
    low = (search.grid.octaves[0] for search in task.searches)
    return Drawn(price_of(release), task.cost, [outcome for power in low for outcome in (0, power, power)])


def _records_needed(release: Release[Any], records: int) -> pd.DataFrame:
    """Return the scale of each column's centre, the records it needs, and whether there are as many.

    The scale includes what halves the effective epsilon or divides it: replaced records, and units with
    several records.
    """
    mechanisms = price_of(release).mechanisms[:: len(STAGES)]
    needed = [math.ceil(ENOUGH * mechanism.steps * STAGES["center"]) for mechanism in mechanisms]
    table = pd.DataFrame({"scale": [mechanism.scale for mechanism in mechanisms], "needed": needed})
    table["enough"] = [
        "yes" if records >= most else "barely" if records * ENOUGH >= most * TOO_FEW else "no"
        for most in needed
    ]
    return table.set_axis(release.labels.index.rename("column"))
