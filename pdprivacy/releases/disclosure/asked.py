"""A question about a table, checked before it is counted, and the counts with what all noise shares."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from pdprivacy import risk
from pdprivacy.distributions import GeneralizedNormal
from pdprivacy.domain import Column
from pdprivacy.errors import ParameterError, check_one_of
from pdprivacy.mechanism import MECHANISMS, Bounding, Bounds
from pdprivacy.privacy import Rational, rational
from pdprivacy.protection import Protected
from pdprivacy.release.calibration import calibrate, released_by
from pdprivacy.releases.columns import Labels, check_cells, columns_of
from pdprivacy.releases.disclosure.options import MEASURED, Noise, Overall, unwrapped
from pdprivacy.request import Request
from pdprivacy.risk.disclosure import Question, check_question
from pdprivacy.risk.reading import readings
from pdprivacy.show.progress import shown
from pdprivacy.statistic import CellCounts

__all__ = ["Counted", "TableNoise", "TableRisk", "by_label", "tables_of"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

JOINT = 10**7
"""Up to this size the table of all sensitive columns together is counted, and else one per column."""

AT_ONCE = 2**17
"""Compositions whose local risk is computed at a time."""

WORK, FEWEST = 2**19, 32
"""Of averaged risks: compositions at a time, times what one takes by labels and records; and the fewest."""


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
        """How the bounds are kept."""
        return self.limits.bounding

    def cdf(self, x: Any, s: Any = None) -> Floats:
        """Of the noise, or of the number released for ``s``."""
        return self.limits.cdf(self.law, x, s)


@dataclass(frozen=True, slots=True)
class TableNoise:
    """The noise that `crosstab` would add, at any loss."""

    counts: CellCounts
    options: Noise

    @classmethod
    def of(cls, protected: Protected, columns: tuple[Column, ...], options: Mapping[str, Any]) -> TableNoise:
        """Of these columns; ``options`` may hold other keywords too."""
        kept: Any = {name: unwrapped(options[name]) for name in Noise.__annotations__}
        return cls(CellCounts(columns, protected.scope, "crosstab"), kept)

    def at(self, epsilon: Rational, delta: Rational | None = None) -> Any:
        """The mechanism, calibrated as in the release."""
        kept: Any = self.options if delta is None else {**self.options, "delta": delta}
        part = self.counts.parts[0]
        (mechanism,) = calibrate((part,), Request(epsilon, **kept))
        return released_by(mechanism, part, self.options["bounding"])

    @property
    def name(self) -> str:
        """The name of the mechanism."""
        return self.options["mechanism"]

    @property
    def takes_delta(self) -> bool:
        """Whether it needs a delta; else it takes none."""
        known = MECHANISMS.get(self.name) if isinstance(self.name, str) else None
        # what is no name or no order is refused where the mechanism is made
        return known is not None and known.takes_delta(self.options["p"])

    @property
    def widest(self) -> Any:
        """What remains of the noise as epsilon goes to 0."""
        part, truncated = self.counts.parts[0], self.options["bounding"] == "truncated"
        upper, mechanism = part.upper, MECHANISMS[self.name]
        delta = rational(self.options["delta"], "delta")
        sigma = mechanism.limit_scale(part, delta, self.options["calibration"])
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

    protected: Protected
    by: tuple[Column, ...]
    sensitive: tuple[Column, ...]
    method: str
    noise: TableNoise
    overall: Overall
    measured: dict[str, Any]

    @classmethod
    def of(
        cls, protected: Protected, by: Labels, sensitive: Labels, method: str, options: Mapping[str, Any]
    ) -> TableRisk:
        """Refuses, before any count is read, what cannot be answered."""
        if protected.in_secret:
            raise ParameterError(
                f"{method!r} is about noise alone, and in a secret part chance hides who is there, too.",
                "ask the frame that the part was drawn from.",
            )
        rows, tops = (
            _columns(protected, by, "by", method),
            _columns(protected, sensitive, "sensitive", method),
        )
        both = [column.name for column in tops if column in rows]
        if both:
            raise ParameterError(
                f"{both[0]!r} is both in 'by' and in 'sensitive'.", f"leave {both[0]!r} out of by."
            )
        for column in tops:
            check_cells((*rows, column), method)
            if column.cells(method) < 2:
                raise ParameterError(
                    f"'sensitive' must have at least two labels; {column.name!r} is declared with one."
                )
        check_one_of("overall", options["overall"], get_args(Overall))
        measured = {name: options[name] for name in options if name in MEASURED}
        asked = cls(
            protected,
            rows,
            tops,
            method,
            TableNoise.of(protected, rows + tops, options),
            options["overall"],
            measured,
        )
        asked._check()
        return asked

    def _check(self) -> None:
        names = ("measure", "method", "sizes", "attack", "partial", "zero_truncated")
        asked = {name: self.measured[name] for name in names}
        check_question(average=None, threshold=self.threshold, **asked)
        if self.simulated:
            if self.method != "dr_ha":
                raise ParameterError("'method' must be one of 'exact', 'published' here (got 'monte_carlo').")
            if len(self.sensitive) > 1:
                raise ParameterError("method='monte_carlo' is for one sensitive column at a time.")
            return
        # the same question about one record: refuses arguments that do not fit each other
        alpha = self.measured["alpha"]
        trial = {**self.measured, "sizes": "observed"}
        if alpha is None and "shrinkage" in self.measured["measure"]:
            trial["alpha"] = "flat"
        for column in self.sensitive:
            one = risk.Cells.of(np.eye(1, column.cells(self.method), dtype=np.int64))
            risk.dr_ha(one, risk.OnlyNoise(), **trial)

    @property
    def simulated(self) -> bool:
        """Whether the risk is found by Monte Carlo."""
        return bool(self.measured["method"] == "monte_carlo")

    @property
    def words(self) -> dict[str, Any]:
        """What was asked, for ``attrs``: words, and no number of the data."""
        return {
            "measure": self.measured["measure"],
            "method": self.measured["method"],
            "attack": self.measured["attack"],
            "partial": self.measured["partial"],
            "overall": self.overall,
            "mechanism": self.noise.name,
            "by": [str(column.name) for column in self.by],
            "sensitive": [str(column.name) for column in self.sensitive],
        }

    def tables(self) -> list[Integers]:
        """(N, K) records per cell of ``by`` and label, per sensitive column."""
        return tables_of(self.protected, self.by, self.sensitive, self.method)

    @property
    def threshold(self) -> Any:
        """Below which released counts read as empty."""
        return self.measured.get("threshold", 0.5)

    def question(self, table: Integers, average: risk.Average | None) -> Question:
        """What is asked about one table (N, K) of any shape, with what is fitted to it."""
        names = ("measure", "alpha", "sizes", "zero_truncated", "partial", "attack")
        asked = {name: self.measured[name] for name in names}
        return Question.of(risk.Cells.of(table), table, average=average, threshold=self.threshold, **asked)

    def simulated_risks(self, noises: Sequence[Any], average: risk.Average | None) -> risk.Simulated:
        """By Monte Carlo, one entry per noise."""
        read, _ = readings(noises, self.threshold)
        (table,) = self.tables()
        asked = {name: self.measured[name] for name in ("draws", "postprocess", "rng", "progress")}
        return self.question(table, average).simulated(table, read, **asked)

    def count(self) -> Counted:
        """The tables, counted once."""
        return Counted.of(self, self.tables())


@dataclass(frozen=True, slots=True)
class Counted:
    """A question and the counts that it is about, with what all kinds of noise share.

    Cells whose compositions agree in every sensitive column have one risk: they are one kind.

    ``questions``: per sensitive column, with its compositions. ``kinds``: (V, columns), the composition of
    each kind. ``which``: (N,), the kind of each cell of ``by``, -1 where it is empty. ``sizes``: (N,), its
    records.
    """

    asked: TableRisk
    questions: list[Question]
    kinds: Integers
    which: Integers
    sizes: Integers

    @classmethod
    def of(cls, asked: TableRisk, tables: Sequence[Integers]) -> Counted:
        """Of tables (N, K), one per sensitive column; fits what is asked to be fitted."""
        questions = [asked.question(table, None) for table in tables]
        cells = [question.cells for question in questions]
        which, kinds = cells[0].which, np.arange(len(cells[0].cells))[:, np.newaxis]
        filled = which >= 0
        for one in cells[1:]:
            pairs = which[filled] * len(one.cells) + one.which[filled]
            distinct, inverse = np.unique(pairs, return_inverse=True)
            kinds = np.column_stack([kinds[distinct // len(one.cells)], distinct % len(one.cells)])
            which = np.full(len(which), -1, dtype=np.int64)
            which[filled] = inverse.reshape(-1)
        return cls(asked, questions, kinds, which, np.asarray(cells[0].all_sizes))

    def risks(
        self, noises: Sequence[Any], average: risk.Average | None, progress: bool | None = False
    ) -> Floats:
        """The risk under each noise: (E,), or (E, N) without an average, NaN where a cell is empty."""
        kinds = self._of_kinds(noises, progress)
        if average is None:
            nobody = np.full((len(noises), 1), np.nan)
            return np.hstack([kinds, nobody])[:, self.which]
        return self._averaged(kinds, average)

    def averages(self, noises: Sequence[Any], progress: bool | None = False) -> dict[str, Floats]:
        """Both averages, (E,) each."""
        kinds = self._of_kinds(noises, progress)
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

    def _of_kinds(self, noises: Sequence[Any], progress: bool | None) -> Floats:
        """(E, V): per kind the largest risk of the sensitive columns, or the sum (section 4.3)."""
        together = np.maximum if self.asked.overall == "max" else np.add
        found = self._of_compositions(noises, 0, progress)
        if self.kinds.shape[1] == 1:
            return found
        found = found[:, self.kinds[:, 0]]
        for place in range(1, self.kinds.shape[1]):
            more = self._of_compositions(noises, place, progress)
            together(found, more[:, self.kinds[:, place]], out=found)
        return found

    def _of_compositions(self, noises: Sequence[Any], place: int, progress: bool | None) -> Floats:
        """(E, U), the risk of each composition of one sensitive column, some at a time.

        An interrupt waits for those that are computed, a second or so.
        """
        read, _ = readings(noises, self.asked.threshold)
        question, published = self.questions[place], self.asked.measured["method"] == "published"
        pieces, each = _pieces(question, published)
        found = np.empty((len(read), len(question.cells.cells)))
        turns = list(product(pieces, range(0, len(read), each)))
        for rows, level in shown(turns, len(turns), "risks", progress, long=True, timed=True):
            some = replace(question, cells=question.cells.at(rows))
            found[level : level + each, rows] = some.of_compositions(read[level : level + each], published)
        return found


def _pieces(question: Question, published: bool) -> tuple[list[Integers], int]:
    """Which compositions are computed at a time, and for how many kinds of noise.

    All of them, where they share more than they would take apart: the priors of a shrinkage risk, the laws of
    released counts of an attack.
    """
    cells = question.cells
    labels, place = cells.compositions.shape[1], np.arange(len(cells.cells))
    size, each = len(place), min(os.cpu_count() or 1, 8)
    if not published and question.attack == "homogeneity":
        if question.measure == "local":
            size, each = AT_ONCE, 64
        elif question.measure == "expected":
            size, each = max(WORK // (labels * math.isqrt(int(cells.sizes.max()))), FEWEST), 8
        elif question.measure == "marginal":
            assert question.sizes is not None
            size, each = max(WORK // (labels * int(question.sizes.values.max())), FEWEST), 8
            # those of the same proportions are computed once
            place = np.lexsort((cells.compositions / cells.sizes[:, np.newaxis]).T[::-1])
    return [place[start : start + size] for start in range(0, len(place), size)], each


def _columns(protected: Protected, labels: Any, name: str, method: str) -> tuple[Column, ...]:
    if labels is None:
        raise ParameterError(f"{name!r} must be a column label or a list of labels.")
    if isinstance(labels, tuple) and labels not in protected.domain:
        typed = all(type(label) is str for label in labels)
        raise ParameterError(
            f"{name!r} must be a column label or a list of labels.",
            f"{name}={list(labels)!r}." if typed else None,
        )
    return columns_of(protected, labels, method)


def tables_of(
    protected: Protected, by: Sequence[Column], sensitive: Sequence[Column], method: str
) -> list[Integers]:
    """(N, K) records per cell of ``by`` and label, per sensitive column; all read at once if few enough."""
    rows = math.prod(column.cells(method) for column in by)
    labels = [column.cells(method) for column in sensitive]
    if rows * math.prod(labels) <= JOINT or len(labels) == 1:
        tables = by_label(protected.engine.table((*by, *sensitive), method).reshape(rows, *labels))
    else:
        tables = [protected.engine.table((*by, column), method).reshape(rows, -1) for column in sensitive]
    if not tables[0].any():
        raise ParameterError("The table holds no record, so nobody is at risk.")
    return tables


def by_label(joint: Integers) -> list[Integers]:
    """(N, K) per sensitive column, from the table (N, K, ...) of all of them."""
    axes = range(1, joint.ndim)
    return [joint.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes]
