"""The row step that declares what a release found, at no cost: its lineage names the release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from pdprivacy.core import rows as steps
from pdprivacy.core.rows import Transform
from pdprivacy.declaration.domain import Column, Domain, find_labels_hint
from pdprivacy.declaration.intervals import INT64
from pdprivacy.errors import DeclarationError, MetadataError, ParameterError, kind
from pdprivacy.frames.label_declaration import OTHER, labels_step
from pdprivacy.hints.examples import EXAMPLES


def use_step(domain: Domain, released: Any, other: Any = OTHER) -> Transform:
    """Return the step that declares what a release found; it reads the release, and no record.

    ``other``: what becomes of labels that were not found.

    Raises
    ------
    ParameterError : no release that finds bounds or labels.
    MetadataError : numbers or labels that are not those that were released.
    DeclarationError : a column that is not declared as it was when the release was made.
    """
    if not isinstance(released, pd.DataFrame | pd.Series):
        raise ParameterError(
            f"'use' takes the result of a release that finds bounds or labels (got {kind(released)}).",
            EXAMPLES["use"],
        )
    facts = released.dp.metadata
    declare = KINDS.get(str(facts.found["kind"])) if facts.found else None
    if declare is None:
        raise ParameterError(
            "'use' takes the result of a release that finds bounds or labels "
            f"(got one of {facts.statistic!r}).",
            EXAMPLES["use"],
        )
    if not released.dp.verify():
        raise MetadataError(
            f"'use' takes a release as it was made, and this one differs: {released.dp.changes}.",
            _call_that_finds(domain, facts.found["kind"], facts.columns),
        )
    step = declare(domain, released, facts.found, other)
    charge = facts.budget.get("charge")
    title = f"{facts.statistic} of {', '.join(facts.columns)}"
    paid = "" if charge is None else f", charge {charge}"
    named = "" if isinstance(other, str) and other == OTHER else f", other={other!r}"
    return replace(step, text=f"use({title}{paid}{named})")


def _call_that_finds(domain: Domain, result: Any, columns: Sequence[str]) -> str:
    """Return the call that releases "bounds" or "labels" again and uses them."""
    names = [name for name in domain if str(name) in columns]
    return find_labels_hint(names[0]) if result == "labels" and names else EXAMPLES["use"]


def declared_as(column: Column) -> list[Any]:
    """Return what a release that finds bounds notes of the declaration of a column, as plain JSON.

    >>> declared_as(Column("age", "integer", lower=0))
    ['integer', 0, None]
    """
    return [column.kind, column.lower, column.upper]


def _bounds(domain: Domain, released: Any, facts: Mapping[str, Any], other: Any) -> Transform:
    """Clip each column to the bounds that were found, and declare them; ``other`` is for labels alone."""
    if not (isinstance(other, str) and other == OTHER):
        raise ParameterError("'other' is for labels, and the release found bounds.", "private.use(released)")
    for name, declared in zip(released.index, facts["declared"], strict=True):
        if declared_as(domain[name]) != declared:
            raise DeclarationError(
                f"column {name!r} is declared otherwise than when its bounds were found.",
                "use the bounds before any other step on the column",
            )
    ends = {
        end: {name: _bound(domain[name], released.at[name, end], end) for name in released.index}
        for end in ("lower", "upper")
    }
    return steps.clip(domain, ends["lower"], ends["upper"])


def _bound(column: Column, number: float, end: str) -> int | float:
    """Return a released bound within the declared ones, of which a double may be a rounded one."""
    declared: int | float | None = getattr(column, end)
    if declared is not None and float(declared) == number:
        return declared
    return column.interval.intersect(INT64).clip(int(number)) if column.kind == "integer" else float(number)


KINDS: Mapping[str, Callable[[Domain, Any, Mapping[str, Any], Any], Transform]] = {
    "bounds": _bounds,
    "labels": labels_step,
}
"""The step of each kind of ``attrs["dp"]["found"]``: from declaration, release, entry and ``other``."""
