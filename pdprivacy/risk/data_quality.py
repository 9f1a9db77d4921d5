"""Faults of records against their declaration, for the curator: before and after they are protected."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from pdprivacy.checks import is_null, whole
from pdprivacy.core.conform import FaultyCells, check_types, faulty_cells
from pdprivacy.core.gate import curator
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.rows.cells import double
from pdprivacy.core.rows.missing import frame_without_codes, without_codes
from pdprivacy.declaration import schema as schemas
from pdprivacy.declaration.cell_types import declared_as, is_float, pandas_type_name, refuse_rounded
from pdprivacy.declaration.domain import Column, Domain, values_text
from pdprivacy.errors import EngineError, InvalidDataError, ParameterError, short_traceback
from pdprivacy.frames import ProtectedFrame
from pdprivacy.frames.protect import refuse_no_frame
from pdprivacy.text.marks import KEY, MARK
from pdprivacy.text.numbers import many, number_text, percent, printable
from pdprivacy.types import Floats, Mask

EXAMPLES = 5
"""Cells shown of a fault by default."""
KEPT = 100
"""The number of distinct cells kept of a fault in each piece of a frame, the most frequent ones."""
LETTERS = 40
"""The largest number of letters of a cell that are shown."""
FAILED = "failed check"
"""The fault where a check of pandera fails that no other fault explains; in keys followed by the check."""
WHOLE = "(schema)"
"""The entry in place of a column where a check is of the whole schema or index."""


@dataclass(slots=True)
class _Tally:
    """The records with one fault of one column.

    ``records``: None where it is not known. ``least``, ``most``: of numbers. ``cells``: others, by how many
    records hold them. ``stored_type``: the type of the column. ``declared``: what the records do not meet.
    """

    records: int | None = 0
    least: float = math.inf
    most: float = -math.inf
    cells: Counter[str] = field(default_factory=Counter)
    stored_type: str = ""
    declared: str | None = None

    def add(self, other: _Tally) -> None:
        """Count the records of another piece, too."""
        self.records = (self.records or 0) + (other.records or 0)
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)
        self.cells.update(other.cells)
        self.stored_type = other.stored_type

    @property
    def ranked(self) -> list[tuple[str, int]]:
        """The cells and their numbers of records, the most frequent first."""
        return sorted(self.cells.items(), key=lambda item: (-item[1], item[0]))

    @property
    def frequent(self) -> str | None:
        """The cell that makes up at least half of the records, two of them or more; None where none does."""
        cell, times = self.ranked[0] if self.cells else ("", 0)
        return cell if times > 1 and 2 * times >= (self.records or 0) else None

    def examples(self, most: int) -> str:
        """The most frequent cells, or the ends of the numbers unless one of them is frequent."""
        numeric = self.least <= self.most
        ends = " to ".join(dict.fromkeys(map(number_text, (self.least, self.most)))) if numeric else ""
        cells = ends
        if self.frequent is not None and numeric and self.least < self.most:
            counts = ", ".join(f"{cell} ({times:,})" for cell, times in self.ranked[:most])
            cells = f"{counts}; {ends}" if most else ends
        elif not numeric:
            cells = ", ".join(cell for cell, _ in self.ranked[:most])
        return ": ".join(filter(None, (self.stored_type, cells)))


_Findings: TypeAlias = dict[tuple[Hashable, str], _Tally]


class CuratorFrame(pd.DataFrame):
    """A confidential DataFrame, with a line above its print that says what it adds up to.

    What pandas makes of it is a plain DataFrame, which keeps the mark. The line is in no ``attrs``, which
    pandas hands on and stores in files.
    """

    _metadata = ["summary"]  # noqa: RUF012
    summary: str

    @classmethod
    def of(cls, frame: pd.DataFrame, kind: str, summary: str) -> CuratorFrame:
        """Return the frame with this line, marked as confidential."""
        marked = cls(frame)
        marked.columns.name, marked.summary = MARK, summary
        marked.attrs[KEY] = {MARK: kind}
        return marked

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def __repr__(self) -> str:
        return f"Confidential: {self.summary}\n{self.to_string(max_rows=pd.options.display.max_rows)}"


def quality(protected: Facts) -> CuratorFrame:
    """CONFIDENTIAL, for the curator: count clipped, null and undeclared values and dropped records by column.

    The counts were taken when the frame was protected, without noise: do not publish them. The line above the
    table says how many records were left out in all; a record with several faults counts in each of their
    columns.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.dp.quality()
    Confidential: 0 of 1,000 records left out, 0 values clipped
    confidential  clipped  null  unseen  dropped
    column
    age                 0     0       0        0
    """
    quality, (dropped, rows) = curator.quality(protected)
    share = f" ({percent(dropped / rows)})" if dropped else ""
    clipped = int(quality["clipped"].sum())
    line = f"{dropped:,} of {many(rows, 'record')}{share} left out, {many(clipped, 'value')} clipped"
    return CuratorFrame.of(quality, "quality", line)


@short_traceback
def check(
    frame: Any, schema: Any = None, *, columns: schemas.Overlay | None = None, examples: int = EXAMPLES
) -> pd.DataFrame:
    """CONFIDENTIAL, for the curator: list the faults of a frame against a declaration, and count them.

    Use it to correct the declaration or the data before the frame is protected. It shows exact counts, labels
    and numbers of the data, so do not publish it. Bounds that are widened to fit the data are not public
    knowledge: declare what is known without the data. Nothing is charged.

    Parameters
    ----------
    frame : a raw frame of any engine that `protect` takes.
    schema, columns : as of `protect`. For pandas frames the checks of pandera are run, too.
    examples : the number of cells that are listed of a fault, at most 100.

    Returns
    -------
    A DataFrame with a row per column and fault: ``fault``; ``declared``, what the records should meet;
    ``records``, how many do not (NA where that is not known), and their ``share``; ``examples``, the most
    frequent cells, or the smallest and the largest number. Where one number makes up at least half of the
    records out of bounds, it may be a code of missing values, and the numbers are listed by how many records
    have them. The line above says how many records have any fault, and which number or label is so frequent
    in several columns. A column that is missing or of another type than declared counts for all of them.

    Raises
    ------
    DeclarationError, ParameterError : as `protect`. MissingExtraError, EngineError : of other engines.

    >>> import pandas as pd, pandera.pandas as pa
    >>> import pdprivacy
    >>> schema = pa.DataFrameSchema({
    ...     "age": pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}}),
    ...     "health": pa.Column(str, pa.Check.isin(["no", "yes"]), metadata={"dp": {}}),
    ... })
    >>> frame = pd.DataFrame({"age": [31, 999, 54, -1], "health": ["no", "yes", "Yes", "no"]})
    >>> pdprivacy.check(frame, schema)
    Confidential: 3 of 4 records (75 %) do not meet the declaration
    confidential             fault     declared  records  share   examples
    column
    age              out of bounds     0 to 120        2   0.50  -1 to 999
    health        undeclared label  'no', 'yes'        1   0.25      'Yes'
    """
    if isinstance(frame, ProtectedFrame):
        raise ParameterError(
            "The frame is protected, and was held to its declaration then.", "private.dp.quality()"
        )
    refuse_no_frame(frame)
    listed = whole(examples, "examples", 0, KEPT)
    given = schemas.schema_of(frame, "df.dp.check(schema)") if schema is None else schema
    declared = schemas.overlaid(given, columns)
    domain = schemas.read_schema(declared)
    schemas.warn_of_lost_columns(given, domain)
    if isinstance(frame, pd.DataFrame):
        domain = schemas.present(domain, declared, frame.columns)
        findings, failing, rows = _of_pandas(frame, declared, domain)
    else:
        findings, failing, rows = _of_engine(frame, declared, domain)
    share = f" ({percent(failing / rows)})" if failing else ""
    line = f"{failing:,} of {many(rows, 'record')}{share} do not meet the declaration"
    if any(fault.startswith(FAILED) for _, fault in findings):
        line += ", not counting failed checks"
    return CuratorFrame.of(_table(findings, domain, rows, listed), "check", line + _frequent(findings))


def _frequent(findings: _Findings) -> str:
    """The cells that are frequent among the faults of several columns, such as codes of missing values."""
    columns: dict[str, set[Hashable]] = {}
    for (name, fault), tally in findings.items():
        if fault in ("out of bounds", "undeclared label") and tally.frequent is not None:
            columns.setdefault(tally.frequent, set()).add(name)
    several = {cell: len(names) for cell, names in columns.items() if len(names) > 1}
    ranked = sorted(several.items(), key=lambda item: (-item[1], item[0]))
    return "".join(f"; {cell} in {count} columns" for cell, count in ranked[:EXAMPLES])


def _table(findings: _Findings, domain: Domain, rows: int, examples: int) -> pd.DataFrame:
    """A row per column and fault, the columns as they are declared."""
    positions: dict[Hashable, int] = {name: position for position, name in enumerate(domain)}
    ordered = sorted(findings.items(), key=lambda item: positions.get(item[0][0], len(positions)))
    lines = [
        {
            "fault": fault.partition(":")[0],
            "declared": tally.declared if tally.declared is not None else _declared(domain[name], fault),
            "records": tally.records,
            "share": None if tally.records is None else tally.records / max(rows, 1),
            "examples": tally.examples(examples),
        }
        for (name, fault), tally in ordered
    ]
    index = pd.Index([name for (name, _), _ in ordered], name="column", dtype=object, tupleize_cols=False)
    table = pd.DataFrame(lines, index=index, columns=["fault", "declared", "records", "share", "examples"])
    return table.astype({"records": "Int64", "share": float})


def _declared(column: Column, fault: str) -> str:
    """Return the declaration that a fault of a column breaks."""
    if fault in ("out of bounds", "infinite", "undeclared label"):
        return values_text(column)
    rules = {"null": "no nulls", "fraction": "whole numbers", "missing": "a column", "repeated": "one column"}
    return rules.get(fault, declared_as(column))


# ---------------------------------------------------------------- pandas


def _of_pandas(frame: pd.DataFrame, schema: Any, domain: Domain) -> tuple[_Findings, int, int]:
    """The faults of a pandas frame, how many records have any, and of how many."""
    rows = len(frame)
    findings: _Findings = {}
    coerced, typed = frame.copy(deep=False), []
    for column in domain.columns:
        name, times = column.name, int((frame.columns == column.name).sum())
        if times != 1:
            findings[name, "repeated" if times else "missing"] = _Tally(rows)
            continue
        try:
            refuse_rounded({name} if is_float(frame[name].dtype) else (), Domain((column,)))
            typed_frame = schemas.coerce(frame_without_codes(frame[[name]], domain), schema)
            typed_frame = frame_without_codes(typed_frame, domain)
            check_types(typed_frame, Domain((column,)))
        except InvalidDataError:
            findings[name, "wrong type"] = _of_other_type(frame[name], column)
        else:
            coerced[name] = typed_frame[name]
            typed.append(column)
    failing = np.full(rows, bool(findings))
    in_cells, faulty = _of_piece(coerced, Domain(tuple(typed)))
    findings |= _some(in_cells)
    failing |= faulty
    if not frame.columns.is_unique:  # which pandera cannot read
        findings.setdefault((WHOLE, "repeated"), _Tally(rows, declared="labels that differ"))
        return findings, rows, rows
    failed = _failed(coerced, schema, findings)
    failing |= any(fault == "wrong type" for _, fault in failed)
    return findings | failed, int(np.count_nonzero(failing)), rows


def _of_other_type(values: pd.Series[Any], column: Column) -> _Tally:
    """A column of another type than declared: for text that should be numbers, the texts that are not."""
    dtype_name = pandas_type_name(values.dtype) or "objects"
    nulled = without_codes(values, column)
    values = values if nulled is None else nulled
    cells = values[[not is_null(cell) for cell in values]] if dtype_name == "objects" else values.dropna()
    if column.kind in ("float", "integer") and dtype_name in ("text", "objects"):
        cells = cells[[math.isnan(double(cell)) for cell in cells]]
    return _Tally(len(values), cells=_cells(cells), stored_type=dtype_name)


def _failed(frame: pd.DataFrame, schema: Any, findings: Mapping[tuple[Hashable, str], _Tally]) -> _Findings:
    """The checks of pandera that no other fault explains."""
    faulty = {name for name, _ in findings}
    unread = {name for name, fault in findings if fault in ("missing", "wrong type")}
    failed: _Findings = {}
    for failure in schemas.failed_checks(frame, schema, unread):
        if failure.column in unread or (failure.mended and failure.column in faulty):
            continue
        name = WHOLE if failure.column is None else failure.column
        if failure.column is not None and (
            dtype := re.fullmatch(r"(?:coerce_)?dtype\('(.*)'\)", failure.check)
        ):
            failed[name, "wrong type"] = _Tally(
                len(frame), stored_type=str(frame[failure.column].dtype), declared=dtype[1]
            )
            continue
        records = None if failure.cells is None else len(failure.cells)
        cells = Counter[str]() if failure.cells is None else _cells(failure.cells)
        failed[name, f"{FAILED}: {failure.check}"] = _Tally(records, cells=cells, declared=failure.check)
    return failed


# ---------------------------------------------------------------- other engines


def _of_engine(frame: Any, schema: Any, domain: Domain) -> tuple[_Findings, int, int]:
    """The faults of a frame of another engine, how many records have any, and of how many."""
    from pdprivacy.core.engines.other import EngineFrame

    source = EngineFrame.of(frame)
    domain = schemas.present(domain, schema, source.names)
    findings: _Findings = {}
    typed = []
    for column in domain.columns:
        if column.name not in source.names:
            findings[column.name, "missing"] = _Tally()
            continue
        try:
            source.select([column.name]).check(Domain((column,)))
        except InvalidDataError:
            findings[column.name, "wrong type"] = _of_other_type_there(source, column)
        else:
            typed.append(column)
    part = Domain(tuple(typed))
    read = source.select(list(part) or list(source.names[:1]))
    pieces = read.each("the check of the declaration", lambda piece: _counted(piece, part))
    rows = sum(rows_of_piece for _, _, rows_of_piece in pieces)
    failing = rows if findings else sum(failing_rows for _, failing_rows, _ in pieces)
    for tally in findings.values():
        tally.records = rows
    whole: _Findings = {}
    for piece_findings, _, _ in pieces:
        for key, tally in piece_findings.items():
            whole.setdefault(key, _Tally()).add(tally)
    return findings | _some(whole), failing, rows


def _of_other_type_there(source: Any, column: Column) -> _Tally:
    """A column of another engine that is of another type than declared; of some types no cell is shown."""
    total, read = _Tally(), source.select([column.name])
    with suppress(EngineError):
        for tally in read.each("a check of cells", lambda piece: _of_other_type(piece[column.name], column)):
            total.add(tally)
    return total


def _counted(piece: pd.DataFrame, domain: Domain) -> tuple[_Findings, int, int]:
    findings, faulty = _of_piece(piece, domain)
    return findings, int(np.count_nonzero(faulty)), len(piece)


# ---------------------------------------------------------------- cells


def _of_piece(frame: pd.DataFrame, domain: Domain) -> tuple[_Findings, Mask]:
    """All faults of columns of the declared types, also those of no record; and which records have any."""
    findings: _Findings = {}
    failing = np.zeros(len(frame), dtype=bool)
    for name, column in faulty_cells(frame, domain).items():
        for fault, mask in column.masks.items():
            findings[name, fault] = _tally(column, fault, mask) if mask.any() else _Tally()
            failing |= mask
    return findings, failing


def _some(findings: _Findings) -> _Findings:
    """Return the findings that have records."""
    return {key: tally for key, tally in findings.items() if tally.records}


def _tally(column: FaultyCells, fault: str, mask: Mask) -> _Tally:
    tally = _Tally(int(np.count_nonzero(mask)))
    if fault in ("out of bounds", "infinite", "fraction"):
        assert column.numbers is not None
        numbers = column.numbers[mask]
        tally.least, tally.most = float(numbers.min()), float(numbers.max())
        if fault == "out of bounds" and column.column.timeline is None:
            tally.cells = _numbers(numbers)
    elif fault != "null":
        tally.cells = _cells(column.values[mask])
    return tally


def _numbers(numbers: Floats) -> Counter[str]:
    """The most frequent numbers, as texts, and how many records hold each."""
    values, times = np.unique(numbers, return_counts=True)
    most = np.argsort(-times, kind="stable")[:KEPT]
    return Counter({number_text(float(values[i])): int(times[i]) for i in most})


def _cells(values: pd.Series[Any]) -> Counter[str]:
    """The most frequent cells, as texts, and how many records hold each."""
    try:
        counts = values.value_counts().head(KEPT)
        pairs = list(zip(counts.index.tolist(), counts.tolist(), strict=True))
    except Exception:  # cells without a hash or an equality
        pairs = [(cell, 1) for cell in values.iloc[:KEPT].tolist()]
    records: Counter[str] = Counter()
    for cell, times in pairs:
        with suppress(Exception):  # an object that cannot be shown
            records[printable(repr(cell), LETTERS)] += times
    return records
