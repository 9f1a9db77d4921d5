"""What stands behind a protected frame after a declared step."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.expressions import Transform
from pdprivacy.protection.protected import Protected, Step

if TYPE_CHECKING:
    from pdprivacy.engine_narwhals import EngineFrame

__all__ = ["taken", "transformed"]

Mask: TypeAlias = NDArray[np.bool_]
Integers: TypeAlias = NDArray[np.int64]


def transformed(protected: Protected, transform: Transform, condition: str | None = None) -> Protected:
    """The facts after a transform of each record.

    ``condition``: in the words of the user, where it only leaves records out.
    """
    scope = protected.scope if transform.keep is None else protected.scope.narrowed()
    step = Step(transform.text, condition=condition)
    facts = replace(protected, domain=transform.domain, scope=scope, lineage=(*protected.lineage, step))
    if protected.source is not None:
        return replace(facts, records=_then(protected.source, transform))
    made = transform.made(protected.snapshot)
    places = None if transform.keep is None else np.flatnonzero(transform.keep(protected.snapshot))
    facts = replace(facts, records=_assigned(protected.snapshot, made)[list(transform.domain)])
    return facts if places is None else taken(facts, places)


def taken(facts: Protected, places: Integers) -> Protected:
    """The facts of the records at these places."""
    units = None if facts.units is None else facts.units[places]
    return replace(facts, records=facts.snapshot.take(places), units=units)


def _assigned(frame: pd.DataFrame, made: dict[Hashable, pd.Series[Any]]) -> pd.DataFrame:
    """The frame with these columns, by position: an index may hold a label twice."""
    found = frame.copy(deep=False)  # snapshots may share memory, which nobody can reach
    for name, values in made.items():
        found[name] = values.array
    return found


def _then(source: EngineFrame, transform: Transform) -> EngineFrame:
    """The frame of another engine after a transform."""
    from pdprivacy.engine_narwhals import Piecewise

    names = list(transform.domain)
    if not transform.columns and transform.keep is None:
        return source.select(names)

    def run(frame: pd.DataFrame) -> tuple[dict[Hashable, pd.Series[Any]], Mask | None]:
        return transform.made(frame), None if transform.keep is None else transform.keep(frame)

    columns = tuple(transform.domain[name] for name in transform.columns)
    reads = transform.reads or tuple(source.names[:1])  # one column tells the number of rows
    found = source.then(Piecewise(reads, columns, run)).select(names)
    found.check(transform.domain.counted)
    return found
