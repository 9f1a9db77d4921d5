"""Statistics: what is summed, which bounds clip and calibrate, and how sums become the answer.

A statistic lists its `Part`s (vectors of whole numbers in grid units with their
l1 and l2 sensitivities), reads them from an engine, and turns the noisy vectors
into values with their standard errors. Sensitivities are computed here from
declared facts alone; noise is added in `pdprivacy.measure` and nowhere else.

Two ways lead to a mean or a variance. Where a number of rows is public, the
statistic itself is computed exactly and gets the paper's sensitivity
(*direct*). Where it is private, centred sums and a count each get noise, and
the answer is made of them (*by sums*).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy import sensitivity
from pdprivacy.domain import Column
from pdprivacy.engine import PRODUCT_BITS, Engine, Quantity
from pdprivacy.errors import ParameterError
from pdprivacy.privacy import Neighbors

__all__ = [
    "Answer",
    "Cells",
    "Covariance",
    "Direct",
    "GroupedMoments",
    "Means",
    "Noisy",
    "Part",
    "PooledCovariance",
    "Rows",
    "Scope",
    "Statistic",
    "Sums",
    "Variances",
]

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = "Sequence[int] | NDArray[np.int64]"


@dataclass(frozen=True, slots=True)
class Scope:
    """What is public about the rows that a statistic sees.

    ``rows``: under "replace_one" their number; under "add_remove" a public lower bound of it;
    None where it is private. ``filtered``: a record may leave the rows by changing its values.
    """

    neighbors: Neighbors
    rows: int | None
    filtered: bool = False

    def direct(self, columns: Sequence[Column]) -> int | None:
        """The public number of records complete in ``columns``, or None."""
        if self.filtered or any(column.nullable for column in columns):
            return None
        return self.rows

    def term(self, low: int, high: int, *, nullable: bool) -> int:
        """How far a sum moves whose terms lie in [low, high]; at least one step."""
        if low == high:
            return max(abs(low), 1)
        moved = sensitivity.sum(
            Fraction(low), Fraction(high), neighbors=self.neighbors, may_vanish=self.filtered or nullable
        )
        return int(moved)

    def disjoint(self, low: int, high: int) -> tuple[int, int]:
        """The same for one such sum per group: l1, and squared l2.

        A replaced record may leave one group and enter another, or stay in its own.
        """
        reach = max(abs(low), abs(high), 1)
        if self.neighbors == "add_remove":
            return reach, reach**2
        return max(2 * reach, high - low), max(2 * reach**2, (high - low) ** 2)

    def cells(self) -> tuple[int, int]:
        """How far a table of counts moves: l1, and squared l2."""
        l1 = sensitivity.histogram(neighbors=self.neighbors)
        return int(l1), int(sensitivity.histogram(neighbors=self.neighbors, norm="l2", squared=True))


@dataclass(frozen=True, slots=True)
class Part:
    """A vector of whole numbers that gets noise of one scale.

    Parameters
    ----------
    name : what it is, for the metadata.
    weight : its share of the loss (of all parts together: one).
    l1, l2_squared : sensitivities of the vector, in ``unit`` and its square.
    unit : what one whole number stands for, a power of two.
    size : length of the vector.
    counts : whether the numbers count records.
    """

    name: str
    weight: Fraction
    l1: int
    l2_squared: int
    unit: Fraction
    size: int = 1
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Noisy:
    """A part with its noise: values in the unit of the statistic, and the noise's standard deviation."""

    values: Floats
    std: float


@dataclass(frozen=True, slots=True)
class Answer:
    """Released values and the standard error that the noise gives each (not sampling error)."""

    values: Any
    standard_error: Any
    linear: bool


class Statistic(Protocol):
    """What `pdprivacy.measure` needs of a statistic."""

    @property
    def parts(self) -> tuple[Part, ...]: ...
    def read(self, engine: Engine) -> list[Whole]: ...
    def finish(self, noisy: Sequence[Noisy]) -> Answer: ...


def _scalar(name: str, weight: Fraction, moved: int, unit: Fraction, *, counts: bool = False) -> Part:
    return Part(name, weight, moved, moved**2, unit, counts=counts)


def _named(what: str, *columns: Column) -> str:
    return f"{what} of {', '.join(str(column.name) for column in columns)}"


# ------------------------------------------------------------------ counts


@dataclass(frozen=True, slots=True)
class Cells:
    """Counts per declared cell of one or more columns; ``edges`` for bins given in the call."""

    columns: tuple[Column, ...]
    scope: Scope
    method: str
    edges: tuple[float, ...] | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        l1, l2 = self.scope.cells()
        if self.edges is None:
            size = math.prod(column.cells(self.method) for column in self.columns)
        else:
            size = len(self.edges) - 1 + int(self.columns[0].nullable)
        return (Part("counts", Fraction(1), l1, l2, Fraction(1), size, counts=True),)

    def read(self, engine: Engine) -> list[Whole]:
        if self.edges is None:
            return [engine.table(self.columns, self.method)]
        return [engine.bins(self.columns[0], self.edges)]

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        return Answer(noisy[0].values, noisy[0].std, linear=True)


@dataclass(frozen=True, slots=True)
class Rows:
    """The number of records, or of records without null per column."""

    columns: tuple[Column, ...]
    weights: tuple[Fraction, ...]
    scope: Scope

    @property
    def parts(self) -> tuple[Part, ...]:
        moved = sensitivity.count(neighbors=self.scope.neighbors)
        if not self.columns:
            return (_scalar("rows", Fraction(1), moved, Fraction(1), counts=True),)
        return tuple(
            _scalar(_named("count", column), weight, moved, Fraction(1), counts=True)
            for column, weight in zip(self.columns, self.weights, strict=True)
        )

    def read(self, engine: Engine) -> list[Whole]:
        if not self.columns:
            return [[engine.rows]]
        return [[engine.present(column)] for column in self.columns]

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        return Answer(
            np.array([part.values[0] for part in noisy]), np.array([part.std for part in noisy]), linear=True
        )


# ------------------------------------------------------------------ sums and means


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums of columns: each moves by its largest term, or by its range where a record is replaced."""

    quantities: tuple[Quantity, ...]
    weights: tuple[Fraction, ...]
    scope: Scope

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(
            _scalar(
                _named("sum", q.column),
                weight,
                self.scope.term(q.low, q.high, nullable=q.column.nullable),
                q.unit,
            )
            for q, weight in zip(self.quantities, self.weights, strict=True)
        )

    def read(self, engine: Engine) -> list[Whole]:
        return [[engine.sum(quantity)[1]] for quantity in self.quantities]

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        return Answer(
            np.array([part.values[0] for part in noisy]), np.array([part.std for part in noisy]), linear=True
        )


@dataclass(frozen=True, slots=True)
class _Counts:
    """The counts that several columns need: one for all columns without nulls, one per other column."""

    columns: tuple[Column, ...]
    weights: tuple[Fraction, ...]

    def keys(self) -> list[Hashable]:
        """Which count each column uses."""
        return [(column.name,) if column.nullable else () for column in self.columns]

    def parts(self, moved: int = 1, l2_squared: int = 1, size: int = 1) -> list[Part]:
        held: dict[Hashable, list[int]] = {}
        for place, key in enumerate(self.keys()):
            held.setdefault(key, []).append(place)
        return [
            Part(
                "count" if key == () else _named("count", self.columns[places[0]]),
                sum((self.weights[place] for place in places), Fraction(0)),
                moved,
                l2_squared,
                Fraction(1),
                size,
                counts=True,
            )
            for key, places in held.items()
        ]

    def places(self) -> list[int]:
        """The part that holds the count of each column."""
        keys = self.keys()
        distinct = list(dict.fromkeys(keys))
        return [distinct.index(key) for key in keys]


@dataclass(frozen=True, slots=True)
class Means:
    """Means by centred noisy sums and noisy counts: centre + sum / count.

    Half of each column's share goes to its sum, half to its count; columns without nulls share
    one count and pool what they give it. Source: the noisy average of Li, Lyu, Su, Yang (2016),
    Algorithm 2.3, centred, which halves the sum's sensitivity.
    """

    quantities: tuple[Quantity, ...]
    weights: tuple[Fraction, ...]
    scope: Scope

    @property
    def _counts(self) -> _Counts:
        return _Counts(tuple(q.column for q in self.quantities), tuple(w / 2 for w in self.weights))

    @property
    def parts(self) -> tuple[Part, ...]:
        sums = [
            _scalar(
                _named("sum", q.column),
                weight / 2,
                self.scope.term(q.low, q.high, nullable=q.column.nullable),
                q.unit,
            )
            for q, weight in zip(self.quantities, self.weights, strict=True)
        ]
        return (*self._counts.parts(), *sums)

    def read(self, engine: Engine) -> list[Whole]:
        found = [engine.sum(quantity) for quantity in self.quantities]
        places = self._counts.places()
        counts = [found[places.index(part)][0] for part in range(max(places) + 1)]
        return [*([count] for count in counts), *([total] for _, total in found)]

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        places = self._counts.places()
        start = max(places) + 1
        values, errors = [], []
        for column, quantity in enumerate(self.quantities):
            count, total = noisy[places[column]], noisy[start + column]
            rows = max(float(count.values[0]), 1.0)
            offset = float(total.values[0]) / rows
            values.append(quantity.center + offset)
            errors.append(math.hypot(total.std, offset * count.std) / rows)
        return Answer(np.array(values), np.array(errors), linear=False)


def _second_moment(reach: int) -> int:
    """What is subtracted from each square so that its bounds are symmetric: half the largest square."""
    return reach * reach // 2


@dataclass(frozen=True, slots=True)
class Variances:
    """Variances by noisy sums of centred values and of their squares, and noisy counts.

    A third of each column's share goes to its count, its sum and its sum of squares; half the
    largest square is subtracted from each square, which halves what one record can do.
    """

    quantities: tuple[Quantity, ...]
    weights: tuple[Fraction, ...]
    scope: Scope

    @property
    def _counts(self) -> _Counts:
        return _Counts(tuple(q.column for q in self.quantities), tuple(w / 3 for w in self.weights))

    @property
    def parts(self) -> tuple[Part, ...]:
        found = self._counts.parts()
        for q, weight in zip(self.quantities, self.weights, strict=True):
            nullable, shift = q.column.nullable, _second_moment(q.reach)
            moved = self.scope.term(q.low, q.high, nullable=nullable)
            found.append(_scalar(_named("sum", q.column), weight / 3, moved, q.unit))
            moved = self.scope.term(-shift, q.reach**2 - shift, nullable=nullable)
            found.append(_scalar(_named("squares", q.column), weight / 3, moved, q.unit**2))
        return tuple(found)

    def read(self, engine: Engine) -> list[Whole]:
        moments = [engine.moments([quantity]) for quantity in self.quantities]
        places = self._counts.places()
        found: list[Whole] = [[moments[places.index(part)].rows] for part in range(max(places) + 1)]
        for quantity, moment in zip(self.quantities, moments, strict=True):
            found.append([moment.sums[0]])
            found.append([moment.products[0][0] - moment.rows * _second_moment(quantity.reach)])
        return found

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        places = self._counts.places()
        start = max(places) + 1
        values, errors = [], []
        for column, quantity in enumerate(self.quantities):
            count = noisy[places[column]]
            total, squares = noisy[start + 2 * column : start + 2 * column + 2]
            shift = _second_moment(quantity.reach) * float(quantity.unit) ** 2
            value, error = _covariance(count, total, total, squares, shift)
            values.append(value)
            errors.append(error)
        return Answer(np.array(values), np.array(errors), linear=False)


def _covariance(
    count: Noisy, first: Noisy, second: Noisy, products: Noisy, shift: float
) -> tuple[float, float]:
    """(sum of products - product of sums / n) / (n - 1) and its standard error to first order.

    For a variance (``first`` is ``second``) the square of the noisy sum is too large by the
    variance of its noise on average; that is known, and taken off.
    """
    rows = max(float(count.values[0]), 2.0)
    a, b = float(first.values[0]), float(second.values[0])
    same = first is second
    cross = a * b - (first.std**2 if same else 0.0)
    value = (float(products.values[0]) + shift * rows - cross / rows) / (rows - 1)
    by_count = (shift + cross / rows**2 - value) * count.std
    by_sums = 2 * a * first.std / rows if same else math.hypot(b * first.std, a * second.std) / rows
    return value, math.hypot(products.std, by_sums, by_count) / (rows - 1)


@dataclass(frozen=True, slots=True)
class Covariance:
    """A covariance matrix by noisy sums: one count, d sums and d(d+1)/2 sums of products, equal shares.

    Records with a null in any of the columns are left out of all entries.
    """

    quantities: tuple[Quantity, ...]
    scope: Scope

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        size = len(self.quantities)
        return [(i, j) for i in range(size) for j in range(i, size)]

    @property
    def parts(self) -> tuple[Part, ...]:
        size = len(self.quantities)
        share = Fraction(1, 1 + size + len(self._pairs))
        nullable = any(q.column.nullable for q in self.quantities)
        found = [_scalar("count", share, 1, Fraction(1), counts=True)]
        for q in self.quantities:
            moved = self.scope.term(q.low, q.high, nullable=nullable)
            found.append(_scalar(_named("sum", q.column), share, moved, q.unit))
        for i, j in self._pairs:
            first, second = self.quantities[i], self.quantities[j]
            most = first.reach * second.reach
            shift = _second_moment(first.reach) if i == j else 0
            moved = self.scope.term(-shift if i == j else -most, most - shift, nullable=nullable)
            name = _named("squares", first.column) if i == j else _named("products", first.column, second.column)
            found.append(_scalar(name, share, moved, first.unit * second.unit))
        return tuple(found)

    def read(self, engine: Engine) -> list[Whole]:
        moments = engine.moments(self.quantities)
        found: list[Whole] = [[moments.rows], *([total] for total in moments.sums)]
        for i, j in self._pairs:
            shift = _second_moment(self.quantities[i].reach) if i == j else 0
            found.append([moments.products[i][j] - moments.rows * shift])
        return found

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        size = len(self.quantities)
        values, errors = np.empty((size, size)), np.empty((size, size))
        for place, (i, j) in enumerate(self._pairs):
            quantity = self.quantities[i]
            shift = _second_moment(quantity.reach) * float(quantity.unit) ** 2 if i == j else 0.0
            value, error = _covariance(noisy[0], noisy[1 + i], noisy[1 + j], noisy[1 + size + place], shift)
            values[i, j] = values[j, i] = value
            errors[i, j] = errors[j, i] = error
        return Answer(values, errors, linear=False)


# ------------------------------------------------------------------ direct, with a public number of rows


@dataclass(frozen=True, slots=True)
class Direct:
    """Means, variances, covariances or pooled ones, each exact and then given its own noise.

    ``kind``: "mean", "var" or "cov"; with ``keys`` the pooled form of the last two. ``rows``:
    the public number of rows, or its lower bound.
    """

    kind: str
    quantities: tuple[Quantity, ...]
    weights: tuple[Fraction, ...]
    scope: Scope
    rows: int
    keys: tuple[Column, ...] = ()

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        size = len(self.quantities)
        if self.kind == "cov":
            return [(i, j) for i in range(size) for j in range(i, size)]
        return [(i, i) for i in range(size)]

    @property
    def groups(self) -> int:
        return math.prod(key.cells(f"pooled_{self.kind}") for key in self.keys)

    def _moved(self, i: int, j: int) -> Fraction:
        """The sensitivity of one entry, in grid steps or their products."""
        neighbors = self.scope.neighbors
        first, second = self.quantities[i], self.quantities[j]
        bounds = Fraction(first.low), Fraction(max(first.high, first.low + 1))
        if self.kind == "mean":
            return sensitivity.mean(*bounds, self.rows, neighbors=neighbors)
        if i == j:
            if self.keys:
                return sensitivity.pooled_var(*bounds, self.rows, self.groups, neighbors=neighbors)
            return sensitivity.var(*bounds, self.rows, neighbors=neighbors)
        others = Fraction(second.low), Fraction(max(second.high, second.low + 1))
        if self.keys:
            return sensitivity.pooled_cov(*bounds, *others, self.rows, self.groups, neighbors=neighbors)
        return sensitivity.cov(*bounds, *others, self.rows, neighbors=neighbors)

    def _refinement(self, moved: Fraction) -> int:
        """Steps per whole unit of the statistic: a power of two that makes its rounding negligible."""
        return max(1, 2 ** (21 + moved.denominator.bit_length() - moved.numerator.bit_length()))

    @property
    def parts(self) -> tuple[Part, ...]:
        found = []
        shares = self.weights if self.kind != "cov" else [Fraction(1, len(self._pairs))] * len(self._pairs)
        for (i, j), weight in zip(self._pairs, shares, strict=True):
            moved = self._moved(i, j)
            finer = self._refinement(moved)
            first, second = self.quantities[i], self.quantities[j]
            unit = first.unit if self.kind == "mean" else first.unit * second.unit
            columns = (first.column,) if i == j else (first.column, second.column)
            what = self.kind if i != j or self.kind == "mean" else "var"
            name = _named(f"pooled {what}" if self.keys else what, *columns)
            # the statistic is rounded to the finer unit, which can add one step to a difference
            steps = math.floor(moved * finer) + 1
            found.append(_scalar(name, weight, steps, unit / finer))
        return tuple(found)

    def read(self, engine: Engine) -> list[Whole]:
        return [
            [round(entry * self._refinement(self._moved(i, j)))]
            for (i, j), entry in zip(self._pairs, self._entries(engine), strict=True)
        ]

    def _entries(self, engine: Engine) -> list[Fraction]:
        """The exact statistic per entry, in grid steps or their products."""
        rows = engine.rows  # the columns are without nulls
        if self.kind == "mean":
            return [Fraction(engine.sum(quantity)[1], rows) for quantity in self.quantities]
        if self.keys:
            grouped = engine.grouped(self.quantities, self.keys, f"pooled_{self.kind}", products=True)
            spare = rows - self.groups
            return [
                sum(
                    (
                        grouped.products[i, j][group]
                        - Fraction(grouped.sums[i][group] * grouped.sums[j][group], held)
                        for group, held in enumerate(grouped.rows)
                        if held
                    ),
                    Fraction(0),
                )
                / spare
                for i, j in self._pairs
            ]
        if self.kind == "cov":
            together = engine.moments(self.quantities)
            entries = [(together, i, j) for i, j in self._pairs]
        else:
            entries = [(engine.moments([quantity]), 0, 0) for quantity in self.quantities]
        return [
            Fraction(rows * m.products[i][j] - m.sums[i] * m.sums[j], rows * (rows - 1))
            for m, i, j in entries
        ]

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        if self.kind != "cov":
            values = np.array([part.values[0] for part in noisy])
            if self.kind == "mean":
                values += [quantity.center for quantity in self.quantities]
            return Answer(values, np.array([part.std for part in noisy]), linear=True)
        size = len(self.quantities)
        matrix, errors = np.empty((size, size)), np.empty((size, size))
        for (i, j), part in zip(self._pairs, noisy, strict=True):
            matrix[i, j] = matrix[j, i] = part.values[0]
            errors[i, j] = errors[j, i] = part.std
        return Answer(matrix, errors, linear=True)


# ------------------------------------------------------------------ by group


@dataclass(frozen=True, slots=True)
class GroupedMoments:
    """Sums, means or variances per declared group, charged once: groups are disjoint.

    Source: parallel composition (McSherry 2009, Theorem 4) under "add_remove"; under
    "replace_one" a record may move, so that two groups change, which the sensitivities hold.
    """

    kind: str
    quantities: tuple[Quantity, ...]
    weights: tuple[Fraction, ...]
    keys: tuple[Column, ...]
    scope: Scope

    @property
    def groups(self) -> int:
        return math.prod(key.cells("groupby") for key in self.keys)

    @property
    def _pieces(self) -> int:
        return {"sum": 1, "mean": 2, "var": 3}[self.kind]

    @property
    def _counts(self) -> _Counts:
        weights = tuple(weight / self._pieces for weight in self.weights)
        return _Counts(tuple(q.column for q in self.quantities), weights)

    @property
    def parts(self) -> tuple[Part, ...]:
        size = self.groups
        found = [] if self.kind == "sum" else self._counts.parts(*self.scope.cells(), size)
        for q, weight in zip(self.quantities, self.weights, strict=True):
            share = weight / self._pieces
            found.append(Part(_named("sum", q.column), share, *self.scope.disjoint(q.low, q.high), q.unit, size))
            if self.kind == "var":
                shift = _second_moment(q.reach)
                moved = self.scope.disjoint(-shift, q.reach**2 - shift)
                found.append(Part(_named("squares", q.column), share, *moved, q.unit**2, size))
        return tuple(found)

    def read(self, engine: Engine) -> list[Whole]:
        held = [
            engine.grouped([quantity], self.keys, "groupby", products=self.kind == "var")
            for quantity in self.quantities
        ]
        found: list[Whole] = []
        if self.kind != "sum":
            places = self._counts.places()
            found += [held[places.index(part)].rows for part in range(max(places) + 1)]
        for quantity, grouped in zip(self.quantities, held, strict=True):
            found.append(grouped.sums[0])
            if self.kind == "var":
                shift = _second_moment(quantity.reach)
                squares = grouped.products[0, 0]
                found.append([square - shift * n for square, n in zip(squares, grouped.rows, strict=True)])
        return found

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        size, columns = self.groups, len(self.quantities)
        values, errors = np.empty((size, columns)), np.empty((size, columns))
        if self.kind == "sum":
            for column, part in enumerate(noisy):
                values[:, column], errors[:, column] = part.values, part.std
            return Answer(values, errors, linear=True)
        places = self._counts.places()
        start = max(places) + 1
        for column, quantity in enumerate(self.quantities):
            count = noisy[places[column]]
            if self.kind == "mean":
                total = noisy[start + column]
                rows = np.maximum(count.values, 1.0)
                offset = total.values / rows
                values[:, column] = quantity.center + offset
                errors[:, column] = np.hypot(total.std, offset * count.std) / rows
                continue
            total, squares = noisy[start + 2 * column : start + 2 * column + 2]
            shift = _second_moment(quantity.reach) * float(quantity.unit) ** 2
            for group in range(size):
                one = [Noisy(part.values[group : group + 1], part.std) for part in (count, total, squares)]
                values[group, column], errors[group, column] = _covariance(one[0], one[1], one[1], one[2], shift)
        return Answer(values, errors, linear=False)


@dataclass(frozen=True, slots=True)
class PooledCovariance:
    """Pooled variances or a pooled covariance matrix by noisy counts and sums per group.

    Counts and sums get noise per declared group, sums of products as one total each. All parts
    have equal shares of their column's (variances) or of the call's loss (matrix). Records with a
    null in any of the columns are left out.
    """

    quantities: tuple[Quantity, ...]
    keys: tuple[Column, ...]
    scope: Scope
    matrix: bool

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        size = len(self.quantities)
        return [(i, j) for i in range(size) for j in range(i, size if self.matrix else i + 1)]

    @property
    def method(self) -> str:
        return "pooled_cov" if self.matrix else "pooled_var"

    @property
    def groups(self) -> int:
        return math.prod(key.cells(self.method) for key in self.keys)

    @property
    def parts(self) -> tuple[Part, ...]:
        size = self.groups
        share = Fraction(1, 1 + len(self.quantities) + len(self._pairs))
        nullable = any(q.column.nullable for q in self.quantities)
        found = [Part("counts", share, *self.scope.cells(), Fraction(1), size, counts=True)]
        for q in self.quantities:
            found.append(Part(_named("sums", q.column), share, *self.scope.disjoint(q.low, q.high), q.unit, size))
        for i, j in self._pairs:
            first, second = self.quantities[i], self.quantities[j]
            most = first.reach * second.reach
            shift = _second_moment(first.reach) if i == j else 0
            moved = self.scope.term(-shift if i == j else -most, most - shift, nullable=nullable)
            name = _named("squares", first.column) if i == j else _named("products", first.column, second.column)
            found.append(_scalar(name, share, moved, first.unit * second.unit))
        return tuple(found)

    def read(self, engine: Engine) -> list[Whole]:
        grouped = engine.grouped(self.quantities, self.keys, self.method, products=True)
        found: list[Whole] = [grouped.rows, *grouped.sums]
        for i, j in self._pairs:
            shift = _second_moment(self.quantities[i].reach) if i == j else 0
            found.append([sum(grouped.products[i, j]) - shift * sum(grouped.rows)])
        return found

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        size = len(self.quantities)
        counts = noisy[0]
        rows = np.maximum(counts.values, 1.0)
        total = float(counts.values.sum())
        spare = max(total - self.groups, 1.0)
        values, errors = np.full((size, size), np.nan), np.full((size, size), np.nan)
        for place, (i, j) in enumerate(self._pairs):
            a, b = noisy[1 + i], noisy[1 + j]
            cross = a.values * b.values - (a.std**2 if i == j else 0.0)
            quantity = self.quantities[i]
            shift = _second_moment(quantity.reach) * float(quantity.unit) ** 2 if i == j else 0.0
            products = noisy[1 + size + place]
            value = (float(products.values[0]) + shift * total - float((cross / rows).sum())) / spare
            by_count = (shift + cross / rows**2 - value) * counts.std
            if i == j:
                by_sums = 2 * a.values * a.std / rows
            else:
                by_sums = np.hypot(b.values * a.std, a.values * b.std) / rows
            error = math.sqrt(products.std**2 + float((by_count**2 + by_sums**2).sum())) / spare
            values[i, j] = values[j, i] = value
            errors[i, j] = errors[j, i] = error
        if self.matrix:
            return Answer(values, errors, linear=False)
        return Answer(np.diagonal(values).copy(), np.diagonal(errors).copy(), linear=False)


def quantity(
    column: Column, method: str, *, centered: bool = True, products: bool = False, value: Any = None
) -> Quantity:
    """The bounded number that ``method`` reads from ``column``; ``value`` for the share of a label."""
    if value is not None:
        if value not in column.labels(method):
            declared = ", ".join(repr(label) for label in column.labels(method))
            raise ParameterError(f"{value!r} is not a declared label of column {column.name!r} ({declared}).")
        return Quantity(column, 0.0, 1.0, centered=centered, value=value)
    lower, upper = column.bounds(method)
    if products:
        return Quantity(column, lower, upper, centered=centered, bits=PRODUCT_BITS)
    return Quantity(column, lower, upper, centered=centered)
