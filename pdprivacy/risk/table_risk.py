"""A question about the disclosure risk of a table: its arguments, its noise and its counts."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice, product
from numbers import Number
from typing import Any, ClassVar, Literal, TypeAlias, TypedDict, TypeVar, cast, get_args

import numpy as np
import pandas as pd

from pdprivacy import risk
from pdprivacy.checks import one_of, proportion
from pdprivacy.core.accounting import Event
from pdprivacy.core.distributions import GeneralizedNormal
from pdprivacy.core.gate import curator
from pdprivacy.core.gate.facts import Facts, declared
from pdprivacy.core.gate.request import Bounding, CalibrationName, MechanismName, Request
from pdprivacy.core.gate.spec import cell_index, check_cells, columns_of
from pdprivacy.core.gate.tasks import calibrate, events, released_by
from pdprivacy.core.mechanisms import MECHANISMS, Calibration
from pdprivacy.core.mechanisms.support import Bounds
from pdprivacy.core.privacy import Approx, Confidential, Pure, Rational, positive, rational
from pdprivacy.core.statistics import CellCounts
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import DeclarationError, ParameterError
from pdprivacy.risk.compositions import readings
from pdprivacy.risk.disclosure import FittedRisk, RiskMeasure
from pdprivacy.risk.likelihood import checked_alpha
from pdprivacy.text.marks import KEY, MARK
from pdprivacy.text.progress import shown
from pdprivacy.types import Floats, Integers, Labels

Alpha: TypeAlias = float | Sequence[float] | Literal["flat"] | None
Overall: TypeAlias = Literal["max", "sum"]

Frame = TypeVar("Frame", "pd.Series[Any]", pd.DataFrame)

MOST_LEVELS = 10_000


class Noise(TypedDict, total=False):
    """The keywords of the noise, which is the noise that `crosstab` adds with the same ones.

    mechanism : "geometric", "laplace", "gaussian", "generalized_gaussian", "staircase" or
        "discrete_gaussian".
    delta, p, calibration, bounding : as there.
    """

    mechanism: MechanismName
    delta: Rational
    p: Rational | None
    calibration: CalibrationName | None
    bounding: Bounding | None


class Measured(Noise, total=False):
    """The other keywords are those of `dr_ha`; ``method`` is "exact" or "published"."""

    measure: risk.Measure
    method: Literal["exact", "published"]
    alpha: Alpha
    sizes: risk.SizeModel
    overall: Overall
    zero_truncated: bool
    partial: bool
    attack: risk.Attack


DEFAULTS: dict[str, Any] = {
    "measure": "local",
    "method": "exact",
    "alpha": None,
    "sizes": "observed",
    "overall": "max",
    "zero_truncated": True,
    "partial": False,
    "attack": "homogeneity",
    "mechanism": "geometric",
    "delta": 0,
    "p": None,
    "calibration": None,
    "bounding": None,
}

NOISE = {name: DEFAULTS[name] for name in Noise.__annotations__}


def confidential(frame: Frame, kind: str, **words: Any) -> Frame:
    """Return the frame marked as confidential, in its print and in its ``attrs``, with words about it."""
    if isinstance(frame, pd.DataFrame) and not any(frame.columns.names):
        frame.columns.name = MARK
    frame.attrs[KEY] = {MARK: kind, **words}
    return frame


MOST_ROWS = 20
"""Rows of a frame that a prompt shows of several."""


class ConfidentialTables(ABC):
    """Frames that are made of exact counts and belong together."""

    __slots__ = ()
    confidential: ClassVar[bool] = True

    @abstractmethod
    def tables(self) -> list[tuple[str, pd.DataFrame]]:
        """Return the frames with their captions."""

    def __repr__(self) -> str:
        with pd.option_context("display.max_rows", MOST_ROWS):
            parts = [f"{caption}\n{frame}" for caption, frame in self.tables()]
        return "\n\n".join(["CONFIDENTIAL", *parts])

    def _repr_html_(self) -> str:
        from pdprivacy.show import pages  # at the moment of display

        return pages.pages_of(self.tables())


def cells_at(columns: Sequence[Column], positions: Integers, method: str) -> pd.Index[Any]:
    """`cell_index` at some positions, without the other cells."""
    if len(columns) == 1:
        return cell_index(columns, method)[positions]
    codes = np.unravel_index(positions, [column.cells(method) for column in columns])
    levels = [
        cell_index([column], method).to_numpy(dtype=object)[code]
        for column, code in zip(columns, codes, strict=True)
    ]
    return pd.MultiIndex.from_arrays(levels, names=[column.name for column in columns])


def levels_of(epsilon: Any) -> tuple[list[Rational], bool]:
    """The privacy losses, and whether there may be several; what a column holds by mistake is not shown."""
    several = isinstance(epsilon, list | tuple | range | np.ndarray | pd.Index | pd.Series)
    if not several:
        level = unwrapped(epsilon)
        positive(level, "epsilon")
        return [level], False
    listed = cast("Sequence[Rational]", epsilon) if getattr(epsilon, "ndim", 1) == 1 else []
    levels = list(islice(listed, MOST_LEVELS + 1))
    good = 1 <= len(levels) <= MOST_LEVELS and all(isinstance(level, Number) for level in levels)
    try:
        good = good and all(positive(unwrapped(level), "epsilon") for level in levels)
    except ParameterError:
        good = False
    if not good:
        raise ParameterError(
            "'epsilon' must be a number or a list of numbers, all positive and finite, and at most "
            f"{MOST_LEVELS:,} of them.",
            "epsilon=[0.1, 1, 10].",
        )
    return [unwrapped(level) for level in levels], True


def unwrapped(epsilon: Any) -> Any:
    """Return a confidential number as a plain one, for results that stay with the curator."""
    return float(epsilon) if isinstance(epsilon, Confidential) else epsilon


LEAST, MOST, CLASSIC = 1e-3, 1e2, 0.999
"""Ends of a search for epsilon; the classic calibration of Gaussian noise holds below 1 only."""


def epsilon_range(options: Measured, least: float = LEAST, number: int = 51) -> Floats:
    """Return the default values of epsilon, evenly spaced on a logarithmic scale."""
    one_of(options["calibration"], "calibration", (*get_args(Calibration), "published", None))
    return np.geomspace(least, CLASSIC if options["calibration"] == "classic" else MOST, number)


def check_average(average: object) -> None:
    """Refuse an unknown average over cells."""
    one_of(average, "average", get_args(risk.Average))


def check_share(name: str, value: Any, overall: object = "max") -> float:
    """Return a number strictly between 0 and 1; a sum of risks may be larger. Raises ParameterError."""
    one_of(overall, "overall", get_args(Overall))
    if overall == "sum":
        return float(positive(value, name))
    return proportion(value, name, f"{name}=0.4 is 40 %.")


JOINT = 10**7
"""The largest table of all sensitive columns; above it there is one table per column."""

AT_ONCE = 2**17
"""Compositions whose local risk is computed at a time."""

WORK, FEWEST = 2**19, 32
"""Work of averaged risks at a time: compositions times the size of each; and the fewest compositions."""


@dataclass(frozen=True, slots=True)
class _Reads:
    """Noise so wide that every count reads as empty with the same probability."""

    empty: float

    def cdf(self, x: Any, /) -> Floats:
        """The same everywhere."""
        return np.full(np.shape(x), self.empty)


@dataclass(frozen=True, slots=True)
class _Normal:
    """Gaussian noise of any scale, within bounds or without."""

    law: GeneralizedNormal
    limits: Bounds

    @property
    def bounding(self) -> Bounding | None:
        """The bounding method."""
        return self.limits.bounding

    def cdf(self, x: Any, s: Any = None) -> Floats:
        """The distribution function of the noise, or of the number released for ``s``."""
        return self.limits.cdf(self.law, x, s)


@dataclass(frozen=True, slots=True)
class TableNoise:
    """The noise that `crosstab` would add, at any loss."""

    counts: CellCounts
    options: Noise

    @classmethod
    def of(cls, protected: Facts, columns: tuple[Column, ...], options: Mapping[str, Any]) -> TableNoise:
        """Return the noise of a table of these columns; ``options`` may hold other keywords too."""
        keywords: Any = {name: unwrapped(options[name]) for name in Noise.__annotations__}
        return cls(CellCounts(columns, protected.scope, "crosstab"), keywords)

    def at(self, epsilon: Rational, delta: Rational | None = None) -> Any:
        """The mechanism, calibrated as in the release."""
        keywords: Any = self.options if delta is None else {**self.options, "delta": delta}
        part = self.counts.parts[0]
        (mechanism,) = calibrate((part,), Request(epsilon, **keywords))
        return released_by(mechanism, part, self.options["bounding"])

    def event(self, cost: Pure | Approx) -> Event:
        """The release of a table at this loss, with its noise where an accounting knows it."""
        if not self.takes_delta:
            return Event(cost)
        keywords: Any = {**self.options, "delta": cost.delta}
        request, parts = Request(cost.epsilon, **keywords), self.counts.parts
        ((event, _),) = events(parts, calibrate(parts, request), request)
        return Event(cost, event.noise)

    @property
    def name(self) -> str:
        """The name of the mechanism."""
        return self.options["mechanism"]

    @property
    def takes_delta(self) -> bool:
        """Whether it needs a delta; else it takes none."""
        known = MECHANISMS.get(self.name) if isinstance(self.name, str) else None
        # the constructor of the mechanism refuses an invalid name or order
        return known is not None and known.takes_delta(self.options["p"])

    @property
    def widest(self) -> Any:
        """The limit of the noise as epsilon goes to 0."""
        part, truncated = self.counts.parts[0], self.options["bounding"] == "truncated"
        upper, mechanism = part.upper, MECHANISMS[self.name]
        delta = rational(self.options["delta"], "delta")
        sigma = mechanism._limit_scale(part, delta, self.options["calibration"])
        if math.isfinite(sigma):
            ends = (0, math.inf if upper is None else upper)
            limits = Bounds.of(ends, "truncated") if truncated else Bounds.of(None, None)
            return _Normal(GeneralizedNormal.gaussian(sigma), limits)
        if not truncated:
            return risk.OnlyNoise()
        if upper is None:
            return _Reads(0.0)
        # even between the bounds, and read as the nearest whole number
        return _Reads(1 / (float(upper) + 1) if mechanism.integer else min(0.5 / float(upper), 1.0))


@dataclass(frozen=True, slots=True)
class TableRisk:
    """A question about tables: declared columns, their noise, and the measure of the risk."""

    protected: Facts
    by: tuple[Column, ...]
    sensitive: tuple[Column, ...]
    method: str
    noise: TableNoise
    overall: Overall
    risk_measure: RiskMeasure

    @classmethod
    def of(
        cls,
        protected: Facts,
        by: Labels | None,
        sensitive: Labels | None,
        method: str,
        options: Mapping[str, Any],
    ) -> TableRisk:
        """Refuses, before any count is read, what cannot be answered."""
        if protected.in_secret:
            raise ParameterError(
                f"{method!r} is about noise alone, and in a secret part chance hides who is there, too.",
                "ask the frame that the part was drawn from.",
            )
        rows = _columns(protected, by, "by", method)
        tops = _columns(protected, sensitive, "sensitive", method)
        if by is None:
            rows = tuple(column for column in rows if column not in tops)
        elif sensitive is None:
            tops = tuple(column for column in tops if column not in rows)
        shared = [column.name for column in tops if column in rows]
        if shared:
            raise ParameterError(
                f"{shared[0]!r} is both in 'by' and in 'sensitive'.", f"leave {shared[0]!r} out of by."
            )
        one_of(options["overall"], "overall", get_args(Overall))
        names = [field.name for field in fields(RiskMeasure) if field.name in options]
        risk_measure = RiskMeasure(**{name: options[name] for name in names})
        for column in tops:
            check_cells((*rows, column), method)
            if column.cells(method) < 2:
                raise ParameterError(
                    f"'sensitive' must have at least two labels; {column.name!r} is declared with one."
                )
            if risk_measure.alpha is not None:
                checked_alpha(risk_measure.alpha, None, column.cells(method))
        if risk_measure.method == "monte_carlo":
            if method != "dr_ha":
                raise ParameterError("'method' must be one of 'exact', 'published' here (got 'monte_carlo').")
            if len(tops) > 1:
                raise ParameterError("method='monte_carlo' is for one sensitive column at a time.")
        noise = TableNoise.of(protected, rows + tops, options)
        return cls(protected, rows, tops, method, noise, options["overall"], risk_measure)

    @property
    def words(self) -> dict[str, Any]:
        """The arguments, for ``attrs``: names alone, and no number of the data."""
        return {
            "measure": self.risk_measure.measure,
            "method": self.risk_measure.method,
            "attack": self.risk_measure.attack,
            "partial": self.risk_measure.partial,
            "overall": self.overall,
            "mechanism": self.noise.name,
            "by": [str(column.name) for column in self.by],
            "sensitive": [str(column.name) for column in self.sensitive],
        }

    def tables(self) -> list[Integers]:
        """(N, K) records per cell of ``by`` and label, per sensitive column; read at once if few enough."""
        facts, method = self.protected, self.method
        rows = math.prod(column.cells(method) for column in self.by)
        labels = [column.cells(method) for column in self.sensitive]
        if rows * math.prod(labels) <= JOINT or len(labels) == 1:
            counts = curator.counts(facts, (*self.by, *self.sensitive), method)
            tables = by_label(counts.reshape(rows, *labels))
        else:
            tables = [
                curator.counts(facts, (*self.by, sensitive), method).reshape(rows, -1)
                for sensitive in self.sensitive
            ]
        if not tables[0].any():
            raise ParameterError("The table holds no record, so nobody is at risk.")
        return tables

    def classes(self) -> tuple[Integers, list[Integers], Integers]:
        """The non-empty cells: positions, (N, K) records by label per sensitive column, and (N,) records."""
        tables = self.tables()
        filled = np.flatnonzero(tables[0].any(axis=1))
        tables = [table[filled] for table in tables]
        return filled, tables, tables[0].sum(axis=1)

    def count(self) -> CountedTables:
        """The tables, counted once."""
        return CountedTables.of(self, self.tables())


@dataclass(frozen=True, slots=True)
class CountedTables:
    """A question and the counts that it is about, with what all kinds of noise share.

    Cells whose compositions agree in every sensitive column have one risk: they are one kind.

    ``fitted``: per sensitive column, with its compositions. ``kinds``: (V, columns), the composition of
    each kind. ``which``: (N,), the kind of each cell of ``by``, -1 where it is empty. ``sizes``: (N,), its
    records.
    """

    question: TableRisk
    fitted: list[FittedRisk]
    kinds: Integers
    which: Integers
    sizes: Integers

    @classmethod
    def of(cls, question: TableRisk, tables: Sequence[Integers]) -> CountedTables:
        """Fit the risk model to tables (N, K), one per sensitive column."""
        fitted = [question.risk_measure.fit(table) for table in tables]
        cells = [table_cells.cells for table_cells in fitted]
        which, kinds = cells[0].which, np.arange(len(cells[0].cells))[:, np.newaxis]
        filled = which >= 0
        for table_cells in cells[1:]:
            pairs = which[filled] * len(table_cells.cells) + table_cells.which[filled]
            distinct, inverse = np.unique(pairs, return_inverse=True)
            kinds = np.column_stack(
                [kinds[distinct // len(table_cells.cells)], distinct % len(table_cells.cells)]
            )
            which = np.full(len(which), -1, dtype=np.int64)
            which[filled] = inverse.reshape(-1)
        return cls(question, fitted, kinds, which, np.asarray(cells[0].all_sizes))

    def risks(
        self, noises: Sequence[Any], average: risk.Average | None, progress: bool | None = False
    ) -> Floats:
        """The risk under each noise: (E,), or (E, N) without an average, NaN where a cell is empty."""
        kinds = self._risk_by_kind(noises, progress)
        if average is None:
            nobody = np.full((len(noises), 1), np.nan)
            return np.hstack([kinds, nobody])[:, self.which]
        return self._averaged(kinds, average)

    def averages(self, noises: Sequence[Any], progress: bool | None = False) -> dict[str, Floats]:
        """Both averages, (E,) each."""
        kinds = self._risk_by_kind(noises, progress)
        names: tuple[risk.Average, ...] = ("cells", "records")
        return {name: self._averaged(kinds, name) for name in names}

    def _averaged(self, kinds: Floats, average: risk.Average) -> Floats:
        filled = self.which >= 0
        weights = np.bincount(
            self.which[filled], self.sizes[filled] if average == "records" else None, len(self.kinds)
        )
        weights = weights / weights.sum()
        # one by one: the last digit must not depend on how many are asked for at once
        return np.array([each @ weights for each in kinds])

    def _risk_by_kind(self, noises: Sequence[Any], progress: bool | None) -> Floats:
        """(E, V): per kind the largest risk of the sensitive columns, or the sum (section 4.3)."""
        together = np.maximum if self.question.overall == "max" else np.add
        risks = self._risk_of_compositions(noises, 0, progress)
        if self.kinds.shape[1] == 1:
            return risks
        risks = risks[:, self.kinds[:, 0]]
        for column in range(1, self.kinds.shape[1]):
            more = self._risk_of_compositions(noises, column, progress)
            together(risks, more[:, self.kinds[:, column]], out=risks)
        return risks

    def _risk_of_compositions(self, noises: Sequence[Any], column: int, progress: bool | None) -> Floats:
        """(E, U), the risk of each composition of one sensitive column, some at a time.

        An interrupt waits for those that are computed, a second or so.
        """
        read, _ = readings(noises, self.question.risk_measure.threshold)
        fitted = self.fitted[column]
        pieces, each = _pieces(fitted)
        risks = np.empty((len(read), len(fitted.cells.cells)))
        turns = list(product(pieces, range(0, len(read), each)))
        for rows, level in shown(turns, len(turns), "risks", progress, long=True, timed=True):
            some = replace(fitted, cells=fitted.cells._at(rows))
            risks[level : level + each, rows] = some.risks(read[level : level + each])
        return risks


def _pieces(fitted: FittedRisk) -> tuple[list[Integers], int]:
    """Return the compositions that are computed at a time, and the number of kinds of noise.

    All of them, where they share more than they would take apart: the priors of a shrinkage risk, the laws of
    released counts of an attack.
    """
    measure, cells = fitted.risk_measure, fitted.cells
    labels, positions = cells.compositions.shape[1], np.arange(len(cells.cells))
    size, each = len(positions), min(os.cpu_count() or 1, 8)
    if measure.method == "exact" and measure.attack == "homogeneity":
        if measure.measure == "local":
            size, each = AT_ONCE, 64
        elif measure.measure == "expected":
            size, each = max(WORK // (labels * math.isqrt(int(cells.sizes.max()))), FEWEST), 8
        elif measure.measure == "marginal":
            assert fitted.sizes is not None
            size, each = max(WORK // (labels * int(fitted.sizes.values.max())), FEWEST), 8
            # compositions of equal proportions are computed once
            positions = np.lexsort((cells.compositions / cells.sizes[:, np.newaxis]).T[::-1])
    return [positions[start : start + size] for start in range(0, len(positions), size)], each


def _columns(protected: Facts, labels: Any, name: str, method: str) -> tuple[Column, ...]:
    if labels is None:
        role = {"by": "quasi_identifier", "sensitive": "sensitive"}[name]
        chosen = [
            column
            for column in protected.domain.columns
            if column.role == role
            and declared(protected, column.name)
            and (role != "sensitive" or _has_labels(protected, column, method))
        ]
        if not chosen:
            raise ParameterError(
                f"{name!r} was left out, and no column is declared with the role {role!r}.",
                f'metadata={{"dp": {{"role": {role!r}}}}}, or name the columns.',
            )
        return tuple(chosen)
    if isinstance(labels, tuple) and labels not in protected.domain:
        typed = all(type(label) is str for label in labels)
        raise ParameterError(
            f"{name!r} must be a column label or a list of labels.",
            f"{name}={list(labels)!r}." if typed else None,
        )
    return columns_of(protected, labels, method)


def _has_labels(protected: Facts, column: Column, method: str) -> bool:
    """Return whether a sensitive column has several labels; a single one is public.

    A column that a row step made, as the logarithm of incomes, may be declared without labels.
    """
    try:
        return column.cells(method) > 1
    except DeclarationError:
        if any(column.name in step.made for step in protected.lineage):
            return False
        raise


def by_label(joint: Integers) -> list[Integers]:
    """(N, K) per sensitive column, from the table (N, K, ...) of all of them."""
    axes = range(1, joint.ndim)
    return [joint.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes]
