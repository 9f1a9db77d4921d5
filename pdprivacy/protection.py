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
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy import query as queries
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
from pdprivacy.metadata import KEY
from pdprivacy.privacy import Neighbors, Rational, Unit
from pdprivacy.statistic import Engine, Scope

__all__ = ["Protected", "divide", "find", "protect", "restrict"]

_MARK = "protected"


@dataclass(frozen=True, eq=False)
class Protected:
    """What stands behind a protected frame; everything a release needs.

    ``snapshot``: the declared columns in memory of their own, so that no write reaches a release.
    ``filters``: the conditions that its records meet. ``frame``: the protected frame, as long as it is
    alive. ``supposed``: in a plan, what is read in place of the snapshot; nothing is charged then.
    """

    snapshot: pd.DataFrame = field(repr=False)
    domain: Domain
    unit: Unit
    budget: Budget
    scope: Scope
    filters: tuple[str, ...]
    quality: pd.DataFrame = field(repr=False)
    frame: weakref.ref[pd.DataFrame] | None = field(default=None, repr=False)
    supposed: Engine | None = field(default=None, repr=False)

    @property
    def engine(self) -> PandasEngine:
        """The exact sufficient statistics of the snapshot."""
        return PandasEngine(self.snapshot)


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
    on_invalid: Fate = "raise",
) -> pd.DataFrame:
    """The frame, bound to its declaration and a budget; see `DataFrame.dp.protect`."""
    unit = Unit(neighbors)
    if not isinstance(frame, pd.DataFrame):
        raise ParameterError(f"'frame' must be a pandas DataFrame (got {type(frame).__name__}).")
    asked = BudgetRequest.of(epsilon, delta, rho, accounting, budget, name, redeclare)
    _refuse_reprotection(frame, asked)
    domain = schemas.read_schema(schema)
    found = _meet(frame, schema, domain, on_invalid)
    rows = _public_rows(len(found.frame), unit, public_rows, on_invalid)
    if found.touching:
        named = ", ".join(repr(name) for name in found.touching)
        warnings.warn(
            f"A declared bound of {named} equals the data's own minimum or maximum. Bounds read off the "
            "data are not public knowledge; declare what is known without looking.",
            DeclarationWarning,
            stacklevel=3,
        )
    purse = asked.open(unit, domain.fingerprint())
    # how many records are left out is private: a neighbour's record may be one of them
    filtered = on_invalid == "drop"
    scope = Scope(neighbors, None if filtered else rows, filtered)
    snapshot = _copied(found.frame, domain)
    return _register(found.frame, Protected(snapshot, domain, unit, purse, scope, (), found.quality))


def _refuse_reprotection(frame: pd.DataFrame, asked: BudgetRequest) -> None:
    if not _known(frame) and not _marked(frame):
        return
    protected = find(frame)
    if not asked.serves(protected.budget):
        raise ParameterError(
            "The frame is protected already, and a new budget would not know what was spent.",
            "pass budget=private.dp.budget to go on with the same one, or protect the raw frame again.",
        )
    if protected.scope.filtered:
        raise ParameterError(
            "The frame holds some records of a protected one, and how many is private; protected anew, "
            "it would look like a table of its own.",
            "protect the raw frame, with the budget of the whole table, and query that.",
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


def restrict(protected: Protected, expression: str) -> pd.DataFrame:
    """A protected frame of the records that meet ``expression``; see `DataFrame.dp.query`."""
    condition = queries.parse(expression, protected.domain)
    narrowed = condition.narrow()
    held = condition.mask(protected.snapshot)
    whole = protected.frame() if protected.frame is not None else None
    visible = protected.snapshot if whole is None else whole
    snapshot = _copied(protected.snapshot.loc[held], narrowed)
    scope = Scope(protected.scope.neighbors, None, filtered=True)
    filters = (*protected.filters, expression)
    narrow = replace(protected, snapshot=snapshot, domain=narrowed, scope=scope, filters=filters)
    return _register(visible.loc[held], narrow)


def divide(protected: Protected, column: Column, purse: Callable[[], Budget]) -> dict[Hashable, pd.DataFrame]:
    """A protected frame of the records of each declared label of a column, each with a budget of its own."""
    codes = protected.engine.codes(column, "partition")
    labels: list[Hashable] = [*column.labels("partition"), *([None] if column.nullable else [])]
    whole = protected.frame() if protected.frame is not None else None
    visible = protected.snapshot if whole is None else whole
    scope = Scope(protected.scope.neighbors, None, filtered=True)
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(labels) + 1))
    groups = {}
    for code, label in enumerate(labels):
        held = order[ends[code] : ends[code + 1]]
        budget = purse()
        budget.bind(protected.unit)
        snapshot = _copied(protected.snapshot.iloc[held], protected.domain)
        filters = (*protected.filters, f"{column.name} is {label!r}")
        group = replace(protected, snapshot=snapshot, scope=scope, budget=budget, filters=filters)
        groups[label] = _register(visible.iloc[held], group)
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
