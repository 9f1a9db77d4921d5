"""Several tables of the same people, which share one budget and one unit."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import pandas as pd

from pdprivacy.checks import whole
from pdprivacy.core import noise
from pdprivacy.core.accounting import Accounting
from pdprivacy.core.conform import Fate
from pdprivacy.core.gate.parts import with_common_units
from pdprivacy.core.privacy import Neighbors, Rational, Unit
from pdprivacy.errors import ParameterError, PrivacyError, got, kind
from pdprivacy.frames.frame import ProtectedFrame
from pdprivacy.frames.protect import Arguments, bound_frame, most_rows, opener
from pdprivacy.frames.unit_steps import unit_name
from pdprivacy.hints.suggestions import with_hints
from pdprivacy.ledger import Budget, Ledger

_EXAMPLE = 'protect_tables({"persons": (df, schema), "visits": (df2, schema2)}, unit="person_id", epsilon=1)'


@with_hints
def protect_tables(
    tables: Mapping[str, tuple[Any, Any]],
    *,
    unit: Hashable = None,
    max_rows: Mapping[str, int] | None = None,
    epsilon: Rational | None = None,
    delta: Rational = 0,
    rho: Rational | None = None,
    accounting: Accounting | None = None,
    budget: Budget | Ledger | None = None,
    name: str | None = None,
    redeclare: bool = False,
    neighbors: Neighbors = "add_remove",
    on_invalid: Fate = "raise",
    rng: noise.RandomState = None,
) -> dict[str, ProtectedFrame]:
    """Protect several tables of the same people: frames that share one budget and one unit.

    Neighbours differ in all records of one unit, in every table. `ProtectedFrame.per_unit` makes one row per
    unit of a table with several, and `ProtectedFrame.merge` adds its columns to another table.

    Parameters
    ----------
    tables : a pandas frame and its schema by name; as `protect` takes them.
    unit : the column of every table that names the unit of each record, such as a person.
    max_rows : by name of the table, so many records of each unit are kept, chosen uniformly; 1 for a table
        that is not in it. Choose them without looking at the data. Where a table is read by ``per_unit``
        alone, whose result has one row per unit, a large number costs nothing.
    epsilon, delta, rho, accounting, budget, name, redeclare, neighbors, on_invalid, rng : as of `protect`.

    Returns
    -------
    The protected frames by name, in the order of ``tables``.

    Raises
    ------
    ParameterError : no mapping of pairs, or frames of other engines than pandas. InvalidDataError : a unit
        is null, or its names are of another type in another table. Else as `protect`.

    >>> import pandas as pd, pandera.pandas as pa
    >>> import pdprivacy
    >>> flag, amount = pa.Column(bool, metadata={"dp": {}}), pa.Check.in_range(0, 500)
    >>> persons = pd.DataFrame({"person_id": range(100), "insured": [True, False] * 50})
    >>> visits = pd.DataFrame({"person_id": [7, 7, 9], "cost": [120.0, 80.0, 60.0]})
    >>> schemas = (
    ...     pa.DataFrameSchema({"insured": flag}),
    ...     pa.DataFrameSchema({"cost": pa.Column(float, amount, metadata={"dp": {}})}),
    ... )
    >>> private = pdprivacy.protect_tables(
    ...     {"persons": (persons, schemas[0]), "visits": (visits, schemas[1])},
    ...     unit="person_id", max_rows={"visits": 1000}, epsilon=1,
    ... )
    >>> spent = private["visits"].per_unit({"spent": ("cost", "sum")}, bounds={"spent": (0, 1000)})
    >>> both = private["persons"].merge(spent, on="person_id", how="left").fillna({"spent": 0})
    >>> both.dp.domain["spent"].bounds("mean")
    (0.0, 1000.0)
    >>> mean = both.dp.groupby("insured").mean("spent", epsilon=0.5)
    >>> private["visits"].dp.budget.left
    (0.5, 0.0)
    """
    if not isinstance(tables, Mapping) or not tables:
        raise ParameterError(f"'tables' must map names to frames and schemas (got {kind(tables)}).", _EXAMPLE)
    most = {} if max_rows is None else max_rows
    if not isinstance(most, Mapping):
        raise ParameterError(
            f"'max_rows' must map names of tables to numbers of rows (got {got(max_rows)}).",
            f"max_rows={{{list(tables)[-1]!r}: 10}}",
        )
    for title, number in most.items():
        if title not in tables:
            raise ParameterError(f"'max_rows' names {title!r}, which is no table.")
        whole(number, "max_rows", 1)
    whose = Unit(neighbors, unit_name(unit))
    names: list[pd.Series[Any]] = []
    if whose.column is None:
        raise ParameterError("'unit' must be the label of one column of every table.", 'unit="person_id".')
    open_budget = opener(epsilon, delta, rho, accounting, budget, name, redeclare)
    for title, table in tables.items():
        if not isinstance(title, str) or not isinstance(table, tuple) or len(table) != 2:
            raise ParameterError("each table must be a pair of a frame and a schema, by a name.", _EXAMPLE)
        if not isinstance(table[0], pd.DataFrame):
            raise ParameterError(
                f"'protect_tables' is for pandas frames, and {title!r} is of type {kind(table[0])}.",
                "the frame as a pandas DataFrame",
            )
    frames = []
    for title, (frame, schema) in tables.items():
        bound = most_rows(unit, most.get(title, 1), None)
        arguments = Arguments(whose, None, unit, bound, on_invalid, names=names, title=title)
        # the common budget is opened once every table is accepted
        try:
            frames.append(bound_frame(frame, schema, None, arguments, _spare_budget, rng))
        except PrivacyError as error:
            error.add_note(f"The table is {title!r}.")
            raise
    declaration = blake2b(digest_size=16)
    for title, frame in sorted(zip(tables, frames, strict=True), key=lambda pair: pair[0]):
        declaration.update(repr((title, frame._protected.domain.fingerprint())).encode())
    contents = [frame._protected for frame in frames]
    common = with_common_units(contents, names)
    purse = open_budget(whose, declaration.hexdigest())
    return {
        title: ProtectedFrame(replace(facts, budget=purse))
        for title, facts in zip(tables, common, strict=True)
    }


def _spare_budget(unit: Unit, declaration: str) -> Budget:
    """Return a budget that nothing is charged to, for the time until all tables are accepted."""
    budget = Budget(epsilon=1)
    budget.bind(unit, declaration)
    return budget
