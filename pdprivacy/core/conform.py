"""Records that do not meet the declaration: each kind of fault has one declared fate.

    fault            "raise"   "clip"                    "drop"
    out of bounds    refused   moved to nearest bound    record left out
    infinite         refused   moved to that bound, or   record left out
                               refused where it has none
    null, undeclared refused   refused                   record left out
    unseen label     refused   refused                   record left out
    fraction in an   refused   refused                   record left out
    integer column
    wrong type       refused   refused                   refused

Every fate but "refused" looks at one record alone, so it is a transform that a later privacy guarantee may
rest on. Errors name columns and faults, never a value.

A wrong type is no fault of single records: the reader of the file chose it in the light of all cells, and
one of them decided for the others. A column that has a type is judged by it as a whole, and no cell is
looked at (`pdprivacy.declaration.cell_types`). A column of objects has none. It is refused where any cell
is not of the declared kind, or is of a type that no declared label has: readers that work in pieces leave
numbers in one piece and text in the next, so leaving out such cells would leave out all records of a piece
for one of them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Set
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.checks import is_number, one_of
from pdprivacy.core.privacy import rational, show
from pdprivacy.core.rows.cells import clipped_dates, counted, double, label_position, label_positions
from pdprivacy.core.rows.missing import without_codes
from pdprivacy.declaration.cell_types import (
    cell_type_name,
    conversion_hint,
    declared_as,
    is_float,
    label_types,
    pandas_type_name,
    refuse_other_types,
    refuse_rounded,
    refuse_unstorable,
)
from pdprivacy.declaration.domain import Column, Domain, declaration_hint
from pdprivacy.declaration.intervals import Interval
from pdprivacy.declaration.timeline import DATE_UNITS, first_and_last
from pdprivacy.errors import DeclarationError, InvalidDataError
from pdprivacy.exact import EXACT
from pdprivacy.types import Floats, Mask

Fate: TypeAlias = Literal["raise", "clip", "drop"]


FAULTS = ("null", "outside", "unseen", "broken", "mistyped", "endless")


@dataclass(slots=True)
class FaultyCells:
    """A declared column as it is read, and which of its cells have each fault.

    ``numbers``: the cells as doubles, None in a column of labels. ``renewed``: the column where pandas could
    not read it cell by cell before, or where missing-value codes became nulls.
    """

    column: Column
    values: pd.Series[Any]
    null: Mask
    outside: Mask
    unseen: Mask
    broken: Mask  # with a fraction, in an integer column
    mistyped: Mask
    endless: Mask  # infinite where no bound is declared; outside, too
    below: Mask  # the lower bound; outside, too
    least: float = math.inf  # of the numbers that are no label, where both bounds are declared
    most: float = -math.inf
    numbers: Floats | None = None
    renewed: pd.Series[Any] | None = None

    @property
    def faulty(self) -> Mask:
        """The cells that have any fault."""
        bad = self.outside | self.unseen | self.broken | self.mistyped
        return bad if self.column.nullable else bad | self.null

    @property
    def masks(self) -> dict[str, Mask]:
        """The cells that have each fault, by its name."""
        return {
            "wrong type": self.mistyped,
            "null": np.zeros_like(self.null) if self.column.nullable else self.null,
            "undeclared label": self.unseen,
            "fraction": self.broken,
            "infinite": self.endless,
            "out of bounds": self.outside & ~self.endless,
        }


@dataclass(frozen=True, slots=True)
class Tally:
    """Number of cells of a column with each fault; ``faulty``: with any fault."""

    null: int = 0
    outside: int = 0
    unseen: int = 0
    broken: int = 0
    mistyped: int = 0
    endless: int = 0
    faulty: int = 0
    least: float = math.inf
    most: float = -math.inf

    @classmethod
    def of(cls, cells: FaultyCells) -> Tally:
        """Count the faults of a column."""
        counts = {name: int(np.count_nonzero(getattr(cells, name))) for name in (*FAULTS, "faulty")}
        return cls(**counts, least=cells.least, most=cells.most)

    def __add__(self, other: Tally) -> Tally:
        counts = {name: getattr(self, name) + getattr(other, name) for name in (*FAULTS, "faulty")}
        return Tally(**counts, least=min(self.least, other.least), most=max(self.most, other.most))


@dataclass(frozen=True, slots=True)
class Survey:
    """Number of faults of each kind in each declared column, of a frame or summed over its pieces.

    ``dropped``: records with a fault that may not stay.
    """

    rows: int
    dropped: int
    columns: Mapping[Hashable, Tally]

    def __add__(self, other: Survey) -> Survey:
        columns = {name: tally + other.columns[name] for name, tally in self.columns.items()}
        return Survey(self.rows + other.rows, self.dropped + other.dropped, columns)

    def meet(self, domain: Domain, on_invalid: Fate, engine: str = "pandas") -> None:
        """Raise InvalidDataError where a fault has no fate; names columns and faults.

        ``engine``: whose frame it is; the hint is code for pandas alone.
        """
        refused = self._refused_faults(domain, on_invalid)
        if not refused:
            return
        mistyped = [column for column in domain.columns if self.columns[column.name].mistyped]
        if mistyped:
            name, target = mistyped[0].name, declared_as(mistyped[0])
            hint = f"convert column {name!r} to {target} in {engine} before it is protected."
            if engine == "pandas":
                hint = conversion_hint(mistyped[0], None)
        else:
            moved = on_invalid == "raise" and not self._refused_faults(domain, "clip")
            clips = 'on_invalid="clip" moves out-of-bounds numbers to the nearest bound, ' if moved else ""
            hint = (
                f'{clips}on_invalid="drop" leaves faulty records out; or correct the data or the declaration.'
            )
        raise InvalidDataError("The data does not meet its declaration: " + "; ".join(refused) + ".", hint)

    def _refused_faults(self, domain: Domain, on_invalid: Fate) -> list[str]:
        lines = []
        for column in domain.columns:
            tally = self.columns[column.name]
            reasons = []
            if tally.mistyped:
                reasons.append(f"cells of another type than declared ({declared_as(column)})")
            if on_invalid != "drop":
                if tally.broken:
                    reasons.append("numbers that are not whole")
                if tally.null and not column.nullable:
                    reasons.append("nulls, which are not declared (nullable=True would)")
                if tally.unseen:
                    reasons.append("labels that are not declared")
                if on_invalid == "raise" and tally.outside > tally.endless:
                    reasons.append(f"values outside [{_end(column, 'lower')}, {_end(column, 'upper')}]")
                if tally.endless:
                    reasons.append("infinite values, and no bound to clip them to")
            if reasons:
                lines.append(f"column {column.name!r} has {' and '.join(reasons)}")
        return lines

    def quality(self, on_invalid: Fate) -> pd.DataFrame:
        """Per declared column, for the curator: what was clipped, null, unseen, and dropped for it."""
        rows = [
            {
                "clipped": tally.outside if on_invalid == "clip" else 0,
                "null": tally.null,
                "unseen": tally.unseen,
                "dropped": tally.faulty if on_invalid == "drop" else 0,
            }
            for tally in self.columns.values()
        ]
        index = pd.Index(list(self.columns), name="column", tupleize_cols=False)
        return pd.DataFrame(rows, index=index, columns=["clipped", "null", "unseen", "dropped"])

    def touching(self, domain: Domain) -> tuple[Hashable, ...]:
        """The columns of which a declared bound is the data's own extreme, and not confirmed as public."""
        return tuple(
            name
            for name, tally in self.columns.items()
            if tally.least == domain[name].lower or tally.most == domain[name].upper
            if not domain[name].public_bounds
        )


def _end(column: Column, end: Literal["lower", "upper"]) -> str:
    bound: float | int | None = getattr(column, end)
    if bound is None:
        return "..."
    return show(rational(bound, "bound")) if column.timeline is None else column.end_text(bound)


@dataclass(frozen=True, slots=True)
class Conformed:
    """A frame that meets its declaration, and what was done to make it so (for the curator).

    ``quality``: per declared column the number of values clipped, null, unseen and of records
    dropped because of it. ``touching``: columns whose declared bound is the data's own extreme.
    ``dropped``: the records that were left out.
    """

    frame: pd.DataFrame
    quality: pd.DataFrame
    touching: tuple[Hashable, ...]
    dropped: int


def conform(frame: pd.DataFrame, domain: Domain, on_invalid: Fate = "raise") -> Conformed:
    """Return ``frame`` with every declared column within its declaration; the frame itself stays as it was.

    Raises
    ------
    ParameterError : unknown ``on_invalid``.
    DeclarationError : the domain has no columns, or a label that is no text (a lone surrogate).
    InvalidDataError : a declared column is missing or appears twice, is of another type than declared, or
        has a fault that ``on_invalid`` does not mend; names columns and faults.
    """
    check(frame.columns, domain, on_invalid)
    check_types(frame, domain)
    faults = faulty_cells(frame, domain)
    summary = _survey(len(frame), faults)
    summary.meet(domain, on_invalid)
    changed = {name: cells.renewed for name, cells in faults.items() if cells.renewed is not None}
    if on_invalid != "drop":
        for column in domain.columns:
            if faults[column.name].outside.any():
                changed[column.name] = (
                    _clipped_column(faults[column.name])
                    if column.timeline is None
                    else clipped_dates(frame[column.name], column)
                )
    conformed = frame.assign() if not changed else frame.copy(deep=False)
    for name, values in changed.items():
        conformed[name] = values
    if on_invalid == "drop" and summary.dropped:
        conformed = conformed.loc[~_dropped_records(faults, len(frame))]
    for column in domain.columns:
        conformed = _restored_integers(conformed, column)
    dropped = summary.dropped if on_invalid == "drop" else 0
    return Conformed(conformed, summary.quality(on_invalid), summary.touching(domain), dropped)


def check(columns: pd.Index[Any], domain: Domain, on_invalid: Fate) -> None:
    """Refuse arguments and columns that `conform` refuses without looking at a cell."""
    one_of(on_invalid, "on_invalid", get_args(Fate))
    if not len(domain):
        raise DeclarationError("no column is declared for release.", declaration_hint("age", None))
    refuse_unstorable(domain)
    texts = columns.is_unique and columns.inferred_type == "string"
    for name in domain:
        count = int(name in columns)
        if count and not (texts and isinstance(name, str)):
            count = int((columns == name).sum())
        if count != 1:
            fault = "appears more than once" if count else "is declared but not in the frame"
            raise InvalidDataError(
                f"Column {name!r} {fault}.", "the frame needs exactly one column of that label."
            )


def check_types(frame: pd.DataFrame, domain: Domain) -> None:
    """Refuse columns that are there and of another type than declared; looks at no cell.

    Raises InvalidDataError.
    """
    dtypes = {name: dtype for name, dtype in zip(frame.columns, frame.dtypes, strict=True) if name in domain}
    refuse_other_types({name: pandas_type_name(dtype) for name, dtype in dtypes.items()}, domain)
    refuse_rounded({name for name, dtype in dtypes.items() if is_float(dtype)}, domain)
    inner_dtypes = {
        name: getattr(getattr(dtype, "categories", None), "dtype", dtype) for name, dtype in dtypes.items()
    }
    _refuse_nanoseconds({name for name, dtype in inner_dtypes.items() if "[ns" in str(dtype)}, domain)


def _refuse_nanoseconds(names: Set[Hashable], domain: Domain) -> None:
    """Refuse columns of nanoseconds that hold no date between the declared bounds, to which cells move."""
    for column in domain.columns:
        timeline = column.timeline
        if column.name in names and timeline is not None:
            size = DATE_UNITS[timeline.unit]
            low, high = ((end + timeline.origin) * size for end in column.interval)
            if first_and_last("ns", None).intersect(Interval(low, high)).empty:
                raise InvalidDataError(
                    f"column {column.name!r} is of nanoseconds, which hold no date between its bounds.",
                    f'df[{column.name!r}] = df[{column.name!r}].astype("datetime64[us]").',
                )


def survey(frame: pd.DataFrame, domain: Domain) -> Survey:
    """The faults of a frame, or of a piece of one, that has the declared columns."""
    return _survey(len(frame), faulty_cells(frame, domain))


def valid_records(frame: pd.DataFrame, domain: Domain) -> Mask:
    """Return a mask of the records of a frame, or a piece of one, without faults, ``(len(frame),)``."""
    return ~_dropped_records(faulty_cells(frame, domain), len(frame))


def clipped(frame: pd.DataFrame, domain: Domain) -> dict[Hashable, pd.Series[Any]]:
    """Return the declared columns of a frame, or of a piece of one, with values clipped to the bounds."""
    return {name: _clipped_column(cells) for name, cells in faulty_cells(frame, domain).items()}


def faulty_cells(frame: pd.DataFrame, domain: Domain) -> dict[Hashable, FaultyCells]:
    """The faults of each declared column of a frame, or of a piece of one, cell by cell."""
    faults = {}
    for column in domain.columns:
        renewed = _readable(frame[column.name])
        coded = without_codes(frame[column.name] if renewed is None else renewed, column)
        renewed = renewed if coded is None else coded
        read = counted(frame[column.name] if renewed is None else renewed, column)
        faults[column.name] = _faults(read, column)
        faults[column.name].renewed = renewed
    return faults


def _survey(rows: int, faults: Mapping[Hashable, FaultyCells]) -> Survey:
    columns = {name: Tally.of(cells) for name, cells in faults.items()}
    some = any(tally.faulty for tally in columns.values())
    dropped = int(np.count_nonzero(_dropped_records(faults, rows))) if some else 0
    return Survey(rows, dropped, columns)


def _dropped_records(faults: Mapping[Hashable, FaultyCells], rows: int) -> Mask:
    """The records with a fault that may not stay."""
    dropped = np.zeros(rows, dtype=bool)
    for cells in faults.values():
        dropped |= cells.faulty
    return dropped


def _readable(values: pd.Series[Any]) -> pd.Series[Any] | None:
    """The column as pandas can read it cell by cell, None where it is that already.

    Nulls that pandas does not tell by itself become its own: the signalling NaN of decimals, which
    raises when compared, and NaN in nullable floats. Decimals of Arrow become those of Python, which are
    numbers to pandas. Views of strings, of which Arrow can neither look up nor leave out any, become strings.
    """
    if values.dtype == object:
        try:
            values.isna()
        except ArithmeticError:
            cells = values.to_numpy(dtype=object, copy=True)
            cells[[isinstance(cell, Decimal) and cell.is_snan() for cell in cells]] = None
            return pd.Series(cells, index=values.index, dtype=object)
    elif values.dtype.kind == "f" and not isinstance(values.dtype, np.dtype):
        unmasked = np.isnan(values.to_numpy(dtype=np.float64, na_value=np.nan)) & ~_isna(values)
        if unmasked.any():
            array: Any = values.array.copy()
            array[unmasked] = pd.NA
            return pd.Series(array, index=values.index)
    elif str(values.dtype).startswith("decimal"):
        return values.astype(object)
    elif str(values.dtype) == "string_view[pyarrow]":
        texts: Any = values.array
        return pd.Series(texts.astype("large_string[pyarrow]"), index=values.index)
    return None


def _isna(values: pd.Series[Any]) -> Mask:
    return np.asarray(values.isna().to_numpy(dtype=bool))


def _faults(values: pd.Series[Any], column: Column) -> FaultyCells:
    null = _isna(values)
    none = np.zeros(len(values), dtype=bool)
    cells = FaultyCells(column, values, null, none, none, none, none, none, none)
    if column.kind == "category":
        if column.categories is not None:
            unknown = ~null & ~_is_declared_label(values, column.categories)
            cells.mistyped = _of_other_types(values, column, unknown)
            cells.unseen = unknown & ~cells.mistyped
        elif column.private_labels:
            cells.mistyped = _of_other_types(values, column, ~null)
        return cells
    array, typed = _as_numbers(values, boolean=column.kind == "boolean")
    cells.mistyped = ~null & ~typed
    good = ~null & typed
    if column.kind == "integer" and values.dtype.kind not in "iu":
        with np.errstate(invalid="ignore"):
            cells.broken = good & np.isfinite(array) & (array != np.rint(array))
        good &= ~cells.broken
    if column.categories is not None:
        if all(abs(label) < EXACT for label in column.categories):
            declared = np.isin(array, np.asarray(column.categories, dtype=np.float64))
        else:  # doubles would not tell them apart
            declared = _is_declared_label(values, column.categories)
        cells.unseen = good & ~declared
    below, above = _beyond(values, array, column)
    cells.below, cells.outside = good & below, good & (below | above)
    for bound, end in ((column.lower, -np.inf), (column.upper, np.inf)):
        if bound is None:
            cells.endless = cells.endless | (good & (array == end))
    cells.outside = cells.outside | cells.endless
    if column.categories is None and good.any() and column.lower is not None and column.upper is not None:
        clean = array[good]
        cells.least, cells.most = float(clean.min()), float(clean.max())
    cells.outside = cells.outside & ~cells.unseen
    cells.endless = cells.endless & ~cells.unseen
    cells.numbers = array
    return cells


def _beyond(values: pd.Series[Any], array: Floats, column: Column) -> tuple[Mask, Mask]:
    """Return masks of the cells below the lower and above the upper bound; False for nulls.

    Whole numbers are compared with the bounds of an integer column exactly, all others as doubles.
    """
    lower, upper = column.interval
    with np.errstate(invalid="ignore"):
        below, above = array < lower, array > upper
    ends = [end for end in (column.lower, column.upper) if end is not None]
    if column.kind == "integer" and any(abs(end) >= EXACT for end in ends):
        at = np.flatnonzero(np.isfinite(array) & (np.abs(array) >= EXACT))
        exact = _exact_integers(values.iloc[at], array[at])
        below[at], above[at] = exact < lower, exact > upper
    return below, above


def _exact_integers(values: pd.Series[Any], doubles: Floats) -> NDArray[Any]:
    """Return finite numbers as integers where they are whole, and as doubles elsewhere."""
    if values.dtype.kind in "iu":
        plain: Any = getattr(values.dtype, "numpy_dtype", values.dtype)
        return values.to_numpy(dtype=plain)
    if values.dtype != object:
        return doubles
    pairs = zip(values, doubles.tolist(), strict=True)
    cells = [int(cell) if int(cell) == cell else double for cell, double in pairs]
    return np.array(cells, dtype=object)


def _as_numbers(values: pd.Series[Any], *, boolean: bool) -> tuple[Floats, Mask]:
    """A column as doubles, and which cells are numbers (truth values where ``boolean``)."""
    if values.dtype.kind in ("b" if boolean else "iuf"):
        array = values.to_numpy(dtype=np.float64, na_value=np.nan)
        return array, np.ones(len(array), dtype=bool)
    if values.dtype != object:
        return np.full(len(values), np.nan), np.zeros(len(values), dtype=bool)

    def number(cell: object) -> float:
        if boolean:
            return float(cell) if isinstance(cell, bool | np.bool_) else np.nan
        return double(cell) if is_number(cell) or isinstance(cell, Decimal) else np.nan

    array = np.array([number(cell) for cell in values], dtype=np.float64)
    return array, ~np.isnan(array)


_TEXT = ("str", "string", "string[pyarrow]", "large_string[pyarrow]")


def _is_declared_label(values: pd.Series[Any], categories: tuple[Any, ...]) -> Mask:
    """Return a mask of the declared labels, compared by hash and equality, as the engine does."""
    positions = label_positions(categories)
    if isinstance(values.dtype, pd.CategoricalDtype):
        is_declared = (
            np.array([*(label_position(label, positions) for label in values.cat.categories), -1]) >= 0
        )
        return is_declared[values.cat.codes.to_numpy()]
    if values.dtype != object and str(values.dtype) not in _TEXT:
        values = pd.Series(np.asarray(values.array, dtype=object), dtype=object)
    # pandas looks up texts only: of other labels it infers one type from all of them or all cells
    if all(type(label) is str for label in categories):
        try:
            return np.asarray(values.isin(list(categories)).to_numpy(dtype=bool))
        except Exception:  # cells without a hash, or labels that this dtype cannot hold
            pass
    return np.array([label_position(cell, positions) >= 0 for cell in values], dtype=bool)


def _of_other_types(values: pd.Series[Any], column: Column, unknown: Mask) -> Mask:
    """Return a mask of the unknown cells whose type no declared label has; all False for a typed column."""
    mistyped = np.zeros(len(values), dtype=bool)
    suitable = label_types(column)
    if suitable is not None and pandas_type_name(values.dtype) is None:
        at = np.flatnonzero(unknown)
        mistyped[at] = [cell_type_name(cell) not in suitable for cell in values.iloc[at].tolist()]
    return mistyped


def _clipped_column(cells: FaultyCells) -> pd.Series[Any]:
    """Return the column with values outside moved to the nearest bound.

    A dtype that does not hold the bound exactly gives way to doubles.
    """
    column, values, array = cells.column, cells.values, cells.numbers
    assert array is not None
    low = cells.outside & cells.below
    moves = [(low, column.lower), (cells.outside & ~low, column.upper)]
    moves = [(where, bound) for where, bound in moves if where.any()]
    clipped: Any
    dtype = values.dtype
    if all(_holds(dtype, bound) for _, bound in moves):
        clipped = values.to_numpy(copy=True) if isinstance(dtype, np.dtype) else values.array.copy()
    elif isinstance(dtype, np.dtype | pd.SparseDtype):
        clipped, dtype = array.copy(), np.dtype(np.float64)
    else:
        clipped = pd.arrays.FloatingArray(array.copy(), cells.null.copy())
        dtype = clipped.dtype
    for where, bound in moves:
        clipped[where] = int(bound) if dtype.kind in "iu" else bound  # type: ignore[arg-type]
    return pd.Series(clipped, index=values.index, dtype=dtype)


def _holds(dtype: Any, bound: Any) -> bool:
    """Return whether a column of this dtype takes in exactly this number, cell by cell."""
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        return True
    plain = getattr(dtype, "numpy_dtype", dtype)
    if not isinstance(plain, np.dtype):
        return False
    if plain.kind == "f":
        with np.errstate(over="ignore"):
            return bool(float(np.asarray(bound, dtype=np.float64).astype(plain)) == bound)
    limits = np.iinfo(plain)
    return bool(bound == int(bound) and int(limits.min) <= bound <= int(limits.max))


def _restored_integers(frame: pd.DataFrame, column: Column) -> pd.DataFrame:
    """Make a column of integers, which nulls had made one of floats, integer again once they are gone."""
    values = frame[column.name]
    floating = column.kind == "integer" and column.timeline is None and values.dtype == np.float64
    if floating and bool((np.abs(values.to_numpy()) < 2.0**63).all()):
        frame = frame.copy(deep=False)
        frame[column.name] = values.astype(np.int64)
    return frame
