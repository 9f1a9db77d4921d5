"""Protected frames: which frame is protected, by what declaration and budget.

A protected frame is known by identity, and by nothing that pandas could copy.
Releases read a snapshot taken at protection, so no later change of any frame
can reach them; a frame whose columns are no longer those of the snapshot is
refused all the same, because its owner would expect other numbers.
"""

from __future__ import annotations

import operator
import uuid
import warnings
import weakref
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy import noise
from pdprivacy import schema as schemas
from pdprivacy.accounting import Accounting
from pdprivacy.conform import Conformed, Fate, conform
from pdprivacy.domain import Column, Domain
from pdprivacy.engine import PandasEngine
from pdprivacy.errors import (
    DeclarationWarning,
    DerivedFrameError,
    InvalidDataError,
    ModifiedFrameError,
    NotProtectedError,
    ParameterError,
    got,
)
from pdprivacy.ledger import Budget, BudgetRequest, Ledger
from pdprivacy.ledger.budget import printable
from pdprivacy.metadata import KEY
from pdprivacy.privacy import Approx, Neighbors, Pure, Rational, Unit
from pdprivacy.query import nulls
from pdprivacy.secret import Secret
from pdprivacy.statistic import Engine, Scope
from pdprivacy.transform import Transform

__all__ = ["Protected", "Step", "apply", "divide", "draw", "find", "lineage", "protect"]

_MARK = "protected"

MOST_ROWS = 10**9
"""Of a unit."""

Mask: TypeAlias = NDArray[np.bool_]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Step:
    """What was done to the records between the raw frame and a release.

    ``stability``: how many records of the result one unit more, less or replaced can touch; None where the
    records are a secret part, which `law` says. ``condition``: what the records left meet.
    """

    text: str
    stability: int | None = 1
    condition: str | None = None
    law: str | None = None


@dataclass(frozen=True, eq=False)
class Protected:
    """What stands behind a protected frame; everything a release needs.

    ``snapshot``: the declared columns in memory of their own, so that no write reaches a release.
    ``units``: the unit of each record, as a number, where a column names it. ``lineage``: the steps that led
    here. ``secret``: the secret part that the records are. ``seeded``: whether its coins can be thrown again.
    ``frame``: the protected frame, as long as it is alive. ``supposed``: in a plan, what is read in place of
    the snapshot; nothing is charged then.
    """

    snapshot: pd.DataFrame = field(repr=False)
    domain: Domain
    unit: Unit
    budget: Budget
    scope: Scope
    quality: pd.DataFrame = field(repr=False)
    units: Integers | None = field(default=None, repr=False)
    lineage: tuple[Step, ...] = ()
    secret: Secret | None = None
    seeded: bool = False
    frame: weakref.ref[pd.DataFrame] | None = field(default=None, repr=False)
    supposed: Engine | None = field(default=None, repr=False)

    @property
    def in_secret(self) -> bool:
        """Whether the records are a secret part, or of one that was paid for as a whole."""
        return any(step.stability is None for step in self.lineage)

    @property
    def filters(self) -> tuple[str, ...]:
        """The conditions that the records meet."""
        return tuple(step.condition for step in self.lineage if step.condition is not None)

    @property
    def steps(self) -> tuple[str, ...]:
        """All other steps."""
        return tuple(step.text for step in self.lineage if step.condition is None)

    @property
    def brief(self) -> tuple[str, ...]:
        """The same in few words: a step that changes what a release costs in full, of others the name."""
        return tuple(
            step.text.partition("(")[0] if step.stability == 1 else step.text
            for step in self.lineage
            if step.condition is None
        )

    @property
    def engine(self) -> PandasEngine:
        """The exact sufficient statistics of the snapshot."""
        return PandasEngine(self.snapshot)

    def paying(self, cost: Pure | Approx) -> AbstractContextManager[tuple[Pure | Approx, Budget]]:
        """What a release that is to cost this may cost itself, and the budget to charge with that."""
        if self.secret is None:
            return nullcontext((cost, self.budget))
        return self.secret.paying(cost, self.budget)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A protected frame in the registry.

    ``guard`` shares the frame's memory where pandas copies on write: its being there makes any
    write to the frame a copy, which ``buffers`` tells by its other address. ``blocks`` are the
    arrays that pandas keeps: where all of them are still the same objects, nothing was written.
    """

    frame: weakref.ref[pd.DataFrame]
    protected: Protected
    guard: pd.DataFrame | None
    columns: pd.Index[Any]
    buffers: tuple[Any, ...]
    blocks: tuple[Any, ...]


_registry: dict[int, _Entry] = {}


def protect(
    frame: pd.DataFrame,
    schema: Any,
    *,
    epsilon: Rational | None = None,
    delta: Rational = 0,
    rho: Rational | None = None,
    accounting: Accounting | None = None,
    budget: Budget | Ledger | None = None,
    name: str | None = None,
    redeclare: bool = False,
    neighbors: Neighbors = "add_remove",
    public_rows: int | None = None,
    unit: Hashable = None,
    max_rows: int | None = None,
    on_invalid: Fate = "raise",
    rng: noise.RandomState = None,
) -> pd.DataFrame:
    """The frame, bound to its declaration and a budget; see `DataFrame.dp.protect`."""
    most = _most_rows(unit, max_rows, public_rows)
    whose = Unit(neighbors, _name_of(unit))
    source = noise.source(rng)
    if not isinstance(frame, pd.DataFrame):
        raise ParameterError(f"'frame' must be a pandas DataFrame (got {type(frame).__name__}).")
    if unit is not None and sum(bool(label == unit) for label in frame.columns) != 1:
        raise ParameterError("'unit' must be the label of one column of the frame.", 'unit="person_id".')
    asked = BudgetRequest.of(epsilon, delta, rho, accounting, budget, name, redeclare)
    _refuse_reprotection(frame, asked)
    domain = schemas.read_schema(schema)
    found = _meet(frame, schema, domain, on_invalid)
    rows = None if unit is not None else _public_rows(len(found.frame), whose, public_rows, on_invalid)
    codes = None if unit is None else _units(found.frame, unit)
    if found.touching:
        named = ", ".join(repr(name) for name in found.touching)
        warnings.warn(
            f"A declared bound of {named} equals the data's own minimum or maximum. Bounds read off the "
            "data are not public knowledge; declare what is known without looking.",
            DeclarationWarning,
            stacklevel=3,
        )
    purse = asked.open(whose, domain.fingerprint())
    if codes is not None:
        # how many records a unit has is private, so the number of all of them is
        kept = _bounded(codes, most, source)
        quality = _with_dropped(found.quality, unit, int(len(kept) - kept.sum()))
        scope = Scope(neighbors, None, filtered=True, contribution=most)
        lineage = (Step(f"protect(unit={unit!r}, max_rows={most})", most),)
        left = found.frame if kept.all() else found.frame.loc[kept]
        facts = Protected(_copied(left, domain), domain, whose, purse, scope, quality, codes[kept], lineage)
        return _register(left, replace(facts, seeded=source.seeded))
    # how many records are left out is private: a neighbour's record may be one of them
    filtered = on_invalid == "drop"
    scope = Scope(neighbors, None if filtered else rows, filtered)
    return _register(
        found.frame, Protected(_copied(found.frame, domain), domain, whose, purse, scope, found.quality)
    )


def _most_rows(unit: Hashable, max_rows: Any, public_rows: Any) -> int:
    """How many records of a unit are kept: one where each record is a unit."""
    if (unit is None) != (max_rows is None):
        raise ParameterError(
            "'unit' and 'max_rows' go together: whose records they are, and how many of each are kept.",
            'unit="person_id", max_rows=3.',
        )
    if unit is None:
        return 1
    if isinstance(max_rows, bool) or not isinstance(max_rows, int | np.integer) or max_rows < 1:
        raise ParameterError(f"'max_rows' must be a positive whole number (got {got(max_rows)}).")
    if public_rows is not None:
        raise ParameterError(
            "'public_rows' cannot be combined with 'unit': how many rows are kept is private."
        )
    if max_rows > MOST_ROWS:
        raise ParameterError(f"'max_rows' must be at most {MOST_ROWS} (got {got(max_rows)}).")
    return int(max_rows)


def _name_of(unit: Any) -> str | None:
    """The label of the column of the unit as text, another one for each label."""
    if unit is None or isinstance(unit, str):
        return unit if unit is None else printable(unit)
    if not isinstance(unit, int | float | tuple | date | np.generic) or isinstance(unit, bool):
        raise ParameterError(
            f"'unit' must be a column label (got {type(unit).__name__}).", 'unit="person_id".'
        )
    try:
        return printable(f"{type(unit).__name__} {unit!r}")
    except ValueError:  # a whole number of more digits than Python writes
        raise ParameterError("'unit' must be the label of one column of the frame.") from None


def _units(frame: pd.DataFrame, unit: Hashable) -> Integers:
    """The unit of each record, as a number; refuses records of nobody."""
    if unit not in frame.columns:
        raise ParameterError(
            "The schema leaves the column of the unit out.",
            'declare it, or strict=False in place of "filter".',
        )
    names: Any = frame[unit]
    try:
        codes, _ = pd.factorize(names)
    except Exception:  # whatever pandas or Arrow raise for cells that have no order and no hash
        codes = None
    if codes is None:
        raise InvalidDataError("The column of the unit must hold names: text, numbers or dates.")
    if (codes < 0).any() or nulls(names).any():
        raise InvalidDataError(
            "The column of the unit holds nulls, and a record of nobody cannot be counted.",
            "leave such records out before df.dp.protect(...), or give each a name of its own.",
        )
    return np.asarray(codes, dtype=np.int64)


def _bounded(codes: Integers, most: int, source: noise.Source) -> Mask:
    """Which records are kept: at most so many of each unit, any of them with the same probability."""
    kept = np.ones(len(codes), dtype=bool)
    times = np.bincount(codes)
    crowded = np.flatnonzero(times[codes] > most)
    if len(crowded):
        # sorted by unit, in random order within each: the first ones stay
        order = crowded[np.lexsort((noise.shuffled_keys(len(crowded), source), codes[crowded]))]
        of = codes[order]
        first = np.flatnonzero(np.r_[True, of[1:] != of[:-1]])
        place = np.arange(len(of)) - np.repeat(first, np.diff(np.r_[first, len(of)]))
        kept[order[place >= most]] = False
    return kept


def _with_dropped(quality: pd.DataFrame, unit: Hashable, dropped: int) -> pd.DataFrame:
    """The curator's figures with the records that were too many of their unit."""
    names = list(quality.index)
    rows = dict(zip(names, quality.to_dict("records"), strict=True))
    row = rows.setdefault(unit, dict.fromkeys(quality.columns, 0))
    row["dropped"] += dropped
    index = pd.Index(list(rows), name=quality.index.name, tupleize_cols=False)
    return pd.DataFrame(list(rows.values()), index=index, columns=quality.columns)


def _refuse_reprotection(frame: pd.DataFrame, asked: BudgetRequest) -> None:
    if not _known(frame) and not _marked(frame):
        return
    protected = find(frame)
    if not asked.serves(protected.budget):
        raise ParameterError(
            "The frame is protected already, and a new budget would not know what was spent.",
            "pass budget=private.dp.budget to go on with the same one, or protect the raw frame again.",
        )
    if protected.scope.filtered or protected.lineage:
        raise ParameterError(
            "The frame was made of a protected one, and which records it holds may be private; protected "
            "anew, it would look like a table of its own.",
            "protect the raw frame, with the budget of the whole table, and take the same steps from there.",
        )


def _meet(frame: pd.DataFrame, schema: Any, domain: Domain, on_invalid: Fate) -> Conformed:
    """The frame made to meet the declaration, then the whole schema."""
    if isinstance(on_invalid, str) and on_invalid == "raise":
        return conform(schemas.validate(frame, schema), domain, on_invalid)
    found = conform(schemas.coerce(frame, schema), domain, on_invalid)
    return replace(found, frame=schemas.validate(found.frame, schema))


def _public_rows(rows: int, unit: Unit, public_rows: int | None, on_invalid: Fate) -> int | None:
    """What a release may know of the number of rows."""
    if public_rows is None:
        return rows if unit.neighbors == "replace_one" else None
    if isinstance(public_rows, bool) or not isinstance(public_rows, int | np.integer) or public_rows < 1:
        raise ParameterError(f"'public_rows' must be a positive whole number (got {got(public_rows)}).")
    if on_invalid == "drop":
        raise ParameterError(
            "'public_rows' cannot be combined with on_invalid='drop': how many records are left is private."
        )
    if unit.neighbors == "replace_one":
        raise ParameterError(
            "'public_rows' is for neighbors='add_remove'; under 'replace_one' the number of rows is public."
        )
    if rows < public_rows:
        raise InvalidDataError(
            f"The frame has fewer rows than public_rows={public_rows} states.",
            "public_rows is a number of rows that everybody knows the table to have at least.",
        )
    return int(public_rows)


def apply(protected: Protected, transform: Transform, condition: str | None = None) -> pd.DataFrame:
    """A protected frame of what a transform makes of each record.

    ``condition``: in the words of the user, where it only leaves records out.
    """
    scope = protected.scope if transform.keep is None else protected.scope.narrowed()
    made = {} if transform.columns is None else transform.columns(protected.snapshot)
    places = None if transform.keep is None else np.flatnonzero(transform.keep(protected.snapshot))
    step = Step(transform.text, condition=condition)
    facts = replace(protected, domain=transform.domain, scope=scope, lineage=(*protected.lineage, step))
    return _remake(protected, facts, places, made)


def draw(
    protected: Protected, held: Mask, step: Step, secret: Secret, *, rows: int | None, seeded: bool
) -> pd.DataFrame:
    """A protected frame of a secret part of the records; ``rows``: their number, where it is public."""
    scope = protected.scope.narrowed()
    if rows is not None:
        scope = replace(protected.scope, rows=rows)
    facts = replace(
        protected,
        scope=scope,
        secret=secret,
        seeded=protected.seeded or seeded,
        lineage=(*protected.lineage, step),
    )
    return _remake(protected, facts, np.flatnonzero(held), {})


def _remake(
    protected: Protected, facts: Protected, places: Integers | None, made: dict[Hashable, pd.Series[Any]]
) -> pd.DataFrame:
    """A protected frame with these facts: of the records at these places, with new or replaced columns."""
    whole = protected.frame() if protected.frame is not None else None
    visible = protected.snapshot if whole is None else whole
    alike = visible.columns.equals(protected.snapshot.columns)
    snapshot, units = protected.snapshot, protected.units
    if places is not None:
        snapshot = snapshot.take(places)  # in memory of its own
        visible = snapshot.copy() if alike else visible.take(places)
        made = {name: values.take(places) for name, values in made.items()}
        units = None if units is None else units[places]
    snapshot, visible = _assigned(snapshot, made), _assigned(visible, made)
    if any(name not in facts.domain for name in protected.domain):
        visible = visible[list(facts.domain)]
    kept = _copied(snapshot, facts.domain) if places is None else snapshot[list(facts.domain)]
    kept.attrs = {}
    return _register(visible, replace(facts, snapshot=kept, units=units))


def _assigned(frame: pd.DataFrame, made: dict[Hashable, pd.Series[Any]]) -> pd.DataFrame:
    """The frame with these columns, by position: an index may hold a label twice."""
    if not made:
        return frame
    found = frame.copy(deep=False)
    for name, values in made.items():
        found[name] = values.array
    return found


def lineage(protected: Protected) -> pd.DataFrame:
    """The steps between the raw frame and this one, and how far each takes neighbours apart.

    Returns a DataFrame with a row per step: ``step``; ``stability``, the records of the result that one
    record more, less or replaced can touch (of a unit, where several may be one's), NA for a secret part;
    ``cost``: what the whole pays for releases whose epsilons add up to ``epsilon``.

    Source: "The adverse effects of omitting records in differential privacy", Definition 4 and Theorem 5.1.
    """
    steps = protected.lineage
    return pd.DataFrame(
        {
            "step": np.array([step.text for step in steps], dtype=object),
            "stability": pd.array([step.stability for step in steps], dtype="Int64"),
            "cost": np.array(["epsilon" if step.law is None else step.law for step in steps], dtype=object),
        },
        index=pd.RangeIndex(1, len(steps) + 1),
    )


def divide(protected: Protected, column: Column, purse: Callable[[], Budget]) -> dict[Hashable, pd.DataFrame]:
    """A protected frame of the records of each declared label of a column, each with a budget of its own."""
    codes = protected.engine.codes(column, "partition")
    labels: list[Hashable] = [*column.labels("partition"), *([None] if column.nullable else [])]
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(labels) + 1))
    groups = {}
    for code, label in enumerate(labels):
        budget = purse()
        budget.bind(protected.unit)
        condition = f"{column.name} is {label!r}"
        facts = replace(
            protected,
            scope=protected.scope.narrowed(),
            budget=budget,
            secret=None,  # paid for as a whole
            lineage=(*protected.lineage, Step(condition, condition=condition)),
        )
        groups[label] = _remake(protected, facts, order[ends[code] : ends[code + 1]], {})
    return groups


# ---------------------------------------------------------------- identity


COPY_ON_WRITE = int(pd.__version__.split(".")[0]) >= 3
"""Whether pandas always copies a column that is shared before it writes to it."""


def _copied(frame: pd.DataFrame, domain: Domain) -> pd.DataFrame:
    """The declared columns in memory of their own."""
    copied = frame[list(domain)].copy(deep=True)
    copied.attrs = {}
    return copied


def _register(frame: pd.DataFrame, protected: Protected) -> pd.DataFrame:
    """A new frame of the same cells, known by identity from now on."""
    private = frame.copy(deep=not COPY_ON_WRITE)
    guard = private.copy(deep=False) if COPY_ON_WRITE else None
    private.attrs = {**frame.attrs, KEY: {_MARK: uuid.uuid4().hex}}
    buffers = () if guard is None else tuple(_buffer(guard[name].array) for name in protected.domain)
    key = id(private)
    reference = weakref.ref(private, lambda _: _registry.pop(key, None))
    blocks = _blocks(private) if COPY_ON_WRITE else ()
    known = replace(protected, frame=reference)
    _registry[key] = _Entry(reference, known, guard, private.columns, buffers, blocks)
    return private


def _buffer(array: Any) -> Any:
    """What identifies the memory behind a column: a new one after any write (copy on write)."""
    inner = getattr(array, "_pa_array", None)
    if inner is not None:
        return ("arrow", id(inner))
    inner = getattr(array, "_ndarray", getattr(array, "_codes", getattr(array, "_data", None)))
    if isinstance(inner, np.ndarray):
        return tuple(
            (part.__array_interface__["data"][0], part.shape, part.strides, str(part.dtype))
            for part in (inner, getattr(array, "_mask", None))
            if isinstance(part, np.ndarray)
        )
    return None


def _blocks(frame: pd.DataFrame) -> tuple[Any, ...]:
    """The arrays behind a frame where pandas shows them (it need not), else none."""
    blocks = getattr(getattr(frame, "_mgr", None), "blocks", ())
    arrays = tuple(getattr(block, "values", None) for block in blocks)
    return () if any(array is None for array in arrays) else arrays


def _same(frame: Any, entry: _Entry) -> bool:
    """Whether the declared columns of a protected frame are those of its snapshot."""
    if entry.blocks and frame.columns is entry.columns:
        now = _blocks(frame)
        if len(now) == len(entry.blocks) and all(map(operator.is_, now, entry.blocks)):
            return True
    snapshot = entry.protected.snapshot
    if len(frame) != len(snapshot) or not frame.columns.equals(entry.columns):
        return False
    if not entry.buffers:
        return all(_equal(frame[name], snapshot[name]) for name in entry.protected.domain)
    for name, buffer in zip(entry.protected.domain, entry.buffers, strict=True):
        if buffer is None:
            if not _equal(frame[name], snapshot[name]):
                return False
        elif _buffer(frame[name].array) != buffer:
            return False
    return True


def _equal(first: pd.Series[Any], second: pd.Series[Any]) -> bool:
    return first.dtype == second.dtype and bool(first.array.equals(second.array))


def _known(frame: Any) -> _Entry | None:
    """The registry's entry of this very frame."""
    entry = _registry.get(id(frame))
    return entry if entry is not None and entry.frame() is frame else None


def _marked(frame: Any) -> bool:
    mark = frame.attrs.get(KEY)
    return isinstance(mark, dict) and _MARK in mark


def _derived() -> DerivedFrameError:
    return DerivedFrameError(
        "This frame was made by pandas from a protected one, and how is not known; a filter or a sum "
        "may depend on other records.",
        "release from the protected frame itself: private.dp.mean(...); for a filter, "
        'private.dp.query("age >= 30") first. To start anew with a budget of its own, clear '
        "frame.attrs and protect it.",
    )


def find(frame: Any) -> Protected:
    """What stands behind a protected frame.

    Raises
    ------
    NotProtectedError : the frame was never protected.
    DerivedFrameError : pandas made it from a protected one.
    ModifiedFrameError : it was changed in place since.
    """
    entry = _known(frame)
    if entry is None:
        if _marked(frame):
            raise _derived()
        raise NotProtectedError(
            "The frame is not protected: nothing is declared about it.",
            'private = df.dp.protect(schema, epsilon=1.0); private.dp.mean("age", epsilon=0.1).',
        )
    if not _same(frame, entry):
        raise ModifiedFrameError(
            "The protected frame was changed in place, so it no longer is what was protected.",
            "make the change before df.dp.protect(...), and keep the protected frame as it is.",
        )
    return entry.protected


def declared(protected: Protected, name: Hashable) -> bool:
    """Whether a column may be released at all."""
    return name in protected.domain and protected.domain[name].role != "identifier"
