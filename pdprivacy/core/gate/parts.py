"""Protected frames made of others: after a row step, of a declared group, of a secret part.

The public facts of the result follow from declared facts and the step alone; its records are chosen or
changed here, and sealed again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from pdprivacy.core import noise
from pdprivacy.core.gate.facts import Facts, Step
from pdprivacy.core.gate.records import Records, Sealed, records_of
from pdprivacy.core.noise import Source
from pdprivacy.declaration.domain import Column, Domain, Role
from pdprivacy.types import Floats, Integers, Mask

if TYPE_CHECKING:
    from pdprivacy.amplification.sampling import Secret
    from pdprivacy.core.engines.other import EngineFrame
    from pdprivacy.core.rows import Transform
    from pdprivacy.core.rows.per_unit import Feature
    from pdprivacy.ledger import Budget


# ---------------------------------------------------------------- row steps


def transformed(
    facts: Facts, transform: Transform, condition: str | None = None, *, seeded: bool = False
) -> Facts:
    """Return the frame after a transform of each record.

    ``condition``: in the words of the user, where it only leaves records out. ``seeded``: whether the
    transform rests on a release with noise from a seed.
    """
    after = replace(_facts_after(facts, transform, condition), seeded=facts.seeded or seeded)
    return _with(after, records_of(facts).after(transform))


def with_step(facts: Facts, transform: Transform) -> Facts:
    """Return the frame of a release that reads the records after a transform, which is made when it reads."""
    return read_after(_facts_after(facts, transform), transform)


def read_after(facts: Facts, transform: Transform) -> Facts:
    """Return the frame with these facts, whose records are transformed when a release reads them."""
    records = records_of(facts)
    return _with(facts, replace(records, pending=(*records.pending, transform)))


def _facts_after(facts: Facts, transform: Transform, condition: str | None = None) -> Facts:
    """Return the facts after a transform, with the records before it."""
    scope = facts.scope if transform.keep is None else facts.scope.of_subset()
    step = Step(
        transform.text,
        condition=condition,
        made=frozenset(transform.columns),
        decided_by=_deciding(facts, transform, condition),
        mixed=frozenset(_mixed(facts, transform)),
        without_nulls=frozenset(
            name
            for name in (transform.reads if transform.keep is not None and condition is None else ())
            if facts.domain[name].role == "sensitive"
        ),
        domain=transform.domain,
    )
    return replace(facts, domain=transform.domain, scope=scope, lineage=(*facts.lineage, step))


def _deciding(
    facts: Facts, transform: Transform, condition: str | None
) -> tuple[tuple[Hashable, Role | None], ...]:
    """Return the name and the role of each column that decides which records stay.

    A null as it was declared says nothing of a value; one that a row step made does.
    """
    if transform.keep is None:
        return ()
    names = [name for name in transform.reads if condition is not None or name in facts.made]
    return tuple([(name, facts.domain[name].role) for name in names])


def _mixed(facts: Facts, transform: Transform) -> Iterator[Hashable]:
    """Yield the new columns that are made of a sensitive column and of another one, or of such a column."""
    mixed = set(facts.mixed)
    for name in transform.columns:
        sources = transform.sources.get(name, transform.reads)
        roles = {facts.domain[source].role for source in sources if source in facts.domain}
        if mixed & {*sources} or ("sensitive" in roles and len(roles) > 1):
            mixed.add(name)
            yield name


def _with(facts: Facts, records: Records) -> Facts:
    return replace(facts, sealed=Sealed(records))


# ---------------------------------------------------------------- units


def per_unit(facts: Facts, features: Sequence[Feature], text: str) -> Facts:
    """Return the frame of one row for each unit that has a record.

    A row is made of the records of its unit alone, so that one unit more or less is one row more or less.
    """
    from pdprivacy.core.rows.per_unit import values_of

    records = records_of(facts)
    assert records.units is not None
    cells, units = values_of(features, records.snapshot, records.units)
    domain = Domain(tuple(feature.column for feature in features))
    mixed = {
        feature.column.name
        for feature in features
        if feature.source is not None and feature.source.name in facts.mixed
    }
    return replace(
        facts,
        domain=domain,
        scope=replace(facts.scope.of_subset(), contribution=1),
        sealed=Sealed(replace(records, cells=cells, units=units)),
        lineage=(*facts.lineage, Step(text, made=frozenset(domain), mixed=frozenset(mixed), domain=domain)),
    )


def with_common_units(each: Sequence[Facts], names: Sequence[pd.Series[Any]]) -> list[Facts]:
    """Return the frames of several tables, in which equal names are one unit.

    ``names``: of each table, the name of the unit of each record.

    Raises InvalidDataError where the names are of several types.
    """
    from pdprivacy.core.engines.unit_codes import codes_of_tables, several_types

    tables = object()
    units = codes_of_tables(names)
    of_tables = np.split(units, np.cumsum([len(listed) for listed in names])[:-1])
    result = []
    for facts, codes in zip(each, of_tables, strict=True):
        records = records_of(facts)
        assert records.units is not None
        both = pd.DataFrame({"alone": records.units, "together": codes}).drop_duplicates()
        if (codes < 0).any() or both["alone"].duplicated().any() or both["together"].duplicated().any():
            raise several_types()
        sealed = Sealed(replace(records, units=codes))
        result.append(replace(facts, sealed=sealed, tables=tables))
    return result


def joined(facts: Facts, other: Facts, names: Sequence[Hashable], how: str) -> Facts:
    """Return the frame with columns of another one that has at most one row for each unit.

    ``names``: the columns. ``how``: "left" makes nulls where a unit has no row in the other frame; "inner"
    leaves its records out. Each record gets the row of its own unit, so that one unit changes as many records
    as before.

    Whether a unit has a row in the other frame says what the conditions there say.
    """
    from pdprivacy.core.rows.cells import frame_of
    from pdprivacy.core.rows.per_unit import looked_up

    records, rows = records_of(facts), records_of(other)
    assert records.units is not None
    assert rows.units is not None
    order = np.argsort(rows.units)
    known = rows.units[order]
    places = np.searchsorted(known, records.units)
    known, order = np.append(known, -1), np.append(order, -1)  # a unit that nobody is
    places = np.where(known[places] == records.units, order[places], -1)
    nullable = how == "left"
    decided_by = _deciding_all(other)
    secretly = any(role == "sensitive" for _, role in decided_by)
    added = [
        replace(
            column,
            nullable=column.nullable or nullable,
            role="sensitive" if secretly and column.role != "identifier" else column.role,
        )
        for column in (other.domain[name] for name in names)
    ]
    new = {
        column.name: looked_up(rows.snapshot[column.name], column, places, records.snapshot.index)
        for column in added
    }
    kept = {name: records.snapshot[name] for name in facts.domain}
    domain = Domain((*facts.domain.columns, *added))
    after = replace(records, cells=frame_of({**kept, **new}, records.snapshot.index))
    chosen = {column.name for column in added if column.role == "sensitive"} if decided_by else set()
    step = Step(
        f"merge({list(new)}, how={how!r}, {_history(other)})",
        condition=None if nullable else "has a row in the merged table",
        made=frozenset(new),
        mixed=frozenset(chosen | (other.mixed & new.keys())),
        decided_by=() if nullable else decided_by,
        domain=domain,
    )
    return replace(
        facts,
        domain=domain,
        scope=facts.scope if nullable else facts.scope.of_subset(),
        sealed=Sealed(after if nullable else after.selected(places >= 0)),
        lineage=(*facts.lineage, step),
        seeded=facts.seeded or other.seeded,
    )


LONGEST_TEXT = 1000
"""The longest text of the steps of a merged frame that a lineage repeats."""


def _history(facts: Facts) -> str:
    """Return the steps of a merged frame as text, with a digest that tells those from any other."""
    steps = [(step.text, step.declaration) for step in facts.lineage]
    digest = blake2b(repr(steps).encode(), digest_size=6).hexdigest()
    written = "; ".join(text for text, _ in steps)
    return f"digest={digest!r}, of {written if len(written) <= LONGEST_TEXT else f'{len(steps)} steps'}"


def _deciding_all(facts: Facts) -> tuple[tuple[Hashable, Role | None], ...]:
    """Return the name and the role of each column that decided on a record in any step."""
    decided: dict[tuple[Hashable, Role | None], None] = {}
    for step in facts.lineage:
        decided.update(dict.fromkeys(step.decided_by))
        decided.update(dict.fromkeys((name, "sensitive") for name in step.without_nulls))
    return tuple(decided)


# ---------------------------------------------------------------- declared groups


def divided(facts: Facts, column: Column, purse: Callable[[], Budget]) -> dict[Hashable, Facts]:
    """Return the records of each declared label of a column, each with a budget of its own."""
    labels: list[Hashable] = [*column.labels("partition"), *([None] if column.nullable else [])]
    parts = _groups(records_of(facts), column, len(labels))
    name = facts.written.get(column.name, column.name)
    groups = {}
    for records, label in zip(parts, labels, strict=True):
        budget = purse()
        budget.bind(facts.unit)
        condition = f"{name} is {label!r}"
        step = Step(condition, condition=condition, decided_by=((column.name, column.role),))
        groups[label] = replace(
            facts,
            sealed=Sealed(records),
            scope=facts.scope.of_subset(),
            budget=budget,
            secret=None,  # paid for as a whole
            lineage=(*facts.lineage, step),
        )
    return groups


def _groups(records: Records, column: Column, count: int) -> list[Records]:
    """Return the records of each cell of a column."""
    from pdprivacy.core.engines import PandasEngine

    source = records.source
    if source is not None:
        from pdprivacy.core.engines.other import Piecewise

        def part(code: int) -> EngineFrame:
            def keep(frame: pd.DataFrame, _: object) -> tuple[dict[Hashable, pd.Series[Any]], Mask]:
                return {}, PandasEngine(frame).codes(column, "partition") == code

            return source.then(Piecewise((column.name,), (), keep, filters=True))

        return [replace(records, cells=part(code), units=None) for code in range(count)]
    codes = PandasEngine(records.snapshot).codes(column, "partition")
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(count + 1))
    return [records.taken(order[start:stop]) for start, stop in pairwise(ends)]


# ---------------------------------------------------------------- secret parts


class Coins(Protocol):
    """How the records of a secret part are chosen."""

    def of(self, records: Records) -> Callable[[Source], Mask]:
        """Return the function that chooses among these records anew at each call."""


@dataclass(frozen=True, slots=True)
class AlikeCoins:
    """One coin of this probability per record, or per unit for all its records."""

    rate: Fraction

    def of(self, records: Records) -> Callable[[Source], Mask]:
        """Return the throw."""
        units = records.units
        if units is None:
            return lambda source: noise.coins(len(records.snapshot), self.rate, source)
        return lambda source: noise.coins(int(units.max(initial=-1)) + 1, self.rate, source)[units]


@dataclass(frozen=True, slots=True)
class LabelCoins:
    """One coin per record, of the rate of its label; the last rate is that of undeclared values."""

    column: Column
    rates: Sequence[Fraction]

    def of(self, records: Records) -> Callable[[Source], Mask]:
        """Return the throw."""
        codes = records.engine.codes(self.column, "sample")

        def throw(source: Source) -> Mask:
            kept = np.zeros(len(codes), dtype=bool)
            for cell, rate in zip([*range(len(self.rates) - 1), -1], self.rates, strict=True):
                members = codes == cell
                kept[members] = noise.coins(int(members.sum()), rate, source)
            return kept

        return throw


@dataclass(frozen=True, slots=True)
class SomeOf:
    """A public number of the records, without replacement."""

    rows: int

    def of(self, records: Records) -> Callable[[Source], Mask]:
        """Return the draw."""
        return lambda source: noise.draw_without_replacement(len(records.snapshot), self.rows, source)


@dataclass(frozen=True, slots=True)
class WeightedCoins:
    """One coin per record, of a probability that depends on all records.

    ``columns``: what the probabilities are made of. ``coded``: whether as the codes of declared labels, or as
    numbers. ``probabilities``: from these arrays to the probability of each record to stay.
    """

    columns: Sequence[Column]
    coded: bool
    probabilities: Callable[[list[Integers | Floats]], Floats]

    def of(self, records: Records) -> Callable[[Source], Mask]:
        """Return the throw."""
        probabilities = self.probabilities(_arrays(records, self.columns, self.coded))
        return lambda source: noise.weighted_coins(probabilities, source)


def _arrays(records: Records, columns: Sequence[Column], coded: bool) -> list[Integers | Floats]:
    if coded:
        return [records.engine.codes(column, "suppress_outliers") for column in columns]
    return [records.snapshot[column.name].to_numpy(dtype=np.float64) for column in columns]


def drawn(
    facts: Facts, coins: Coins, source: Source, step: Step, secret: Secret, *, rows: int | None = None
) -> Facts:
    """Return a secret part of the records; ``rows``: their number, where it is public."""
    records = records_of(facts)
    chosen = records.selected(coins.of(records)(source))
    return replace(
        facts,
        sealed=Sealed(chosen),
        scope=facts.scope.of_subset() if rows is None else replace(facts.scope, rows=rows),
        secret=secret,
        seeded=facts.seeded or source.seeded,
        lineage=(*facts.lineage, step),
    )
