"""The disclosure risk of released counts, estimated from these counts alone.

For each sensitive column the counts are read for this column alone, in two ways: a cell discloses a label if
no count of another label is positive, or if the counts, summed over the other sensitive columns, are positive
for one label only. The risk of the column is the larger of the two, and the risk of the table is that of the
column with the largest. It is the mean over plausible tables of exact counts (`plausible_counts`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pdprivacy import risk
from pdprivacy.core.distributions import GeneralizedNormal
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.request import Bounding, Request
from pdprivacy.core.gate.spec import LINEAR, Call, Price
from pdprivacy.core.gate.tasks import calibrate, released_by
from pdprivacy.core.mechanisms import MECHANISMS
from pdprivacy.core.mechanisms.additive import Additive
from pdprivacy.core.statistics import Answer, Noisy, Part, Statistic, TreeCells
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import PrivacyError
from pdprivacy.ledger import Entry
from pdprivacy.postprocess import hierarchy
from pdprivacy.risk.compositions import HasCdf, readings
from pdprivacy.risk.joint_counts import JointCells
from pdprivacy.risk.noise_sums import NoiseSum
from pdprivacy.risk.plausible_counts import plausible
from pdprivacy.types import Floats, Integers

MOST_WORK = 10**9
"""Multiply-adds spent on the risk of one sensitive column by quasi-identifiers: about a second."""

LITTLE_WORK, WORK_BY_CELL = 6 * 10**7, 200
"""Multiply-adds spent on the risk of other counts: about 50 ms, and for each cell as long as its release."""

DECIDED = "A condition on a sensitive column chose the records, and the table does not count all others."
"""Why a count of such records has no estimate."""

MIXED = "A column is made of a sensitive column and of others, so its counts do not show what is learned."
"""Why counts by such a column alone have no estimate."""

SHARES = "Shares do not show how many records have each label."
"""Why a share of the records with a label has no estimate."""

NO_COUNTS = "The release holds no counts of the cells."
"""Why other statistics by group have no estimate."""

MOST_RECORDS = 10**10
"""The largest number of records whose risk is estimated; a table of people has no more."""

MOST_DEVIATION = 10**4
"""The largest standard deviation of noise at which risk is estimated; more leaves no information."""


class Outcome(Protocol):
    """One result of a release: what it cost, its noisy parts, and the answer made of them."""

    @property
    def price(self) -> Price:
        """The mechanisms and the loss of the release."""

    @property
    def noisy(self) -> Sequence[Noisy]:
        """The noisy numbers of each part."""

    @property
    def answer(self) -> Answer:
        """The numbers that are published."""


@dataclass(frozen=True, slots=True)
class CountRisk:
    """The disclosure risk of a release with one count per cell of ``columns``.

    ``sensitive``: the places of the sensitive columns with several labels. All other columns divide the
    cells, whether they are quasi-identifiers or have no role. ``parts``: the places of the noisy parts that
    are such counts; the largest risk of them counts. ``most_work``: multiply-adds that may be spent.
    ``reason``: why there is no estimate for such a release; empty if there is one.
    """

    facts: Facts
    call: Call
    columns: tuple[Column, ...]
    sensitive: tuple[int, ...]
    statistic: Statistic
    parts: tuple[int, ...]
    most_work: int
    reason: str = ""

    @classmethod
    def of(
        cls,
        facts: Facts,
        call: Call,
        columns: Sequence[Column],
        statistic: Statistic,
        parts: Sequence[int] = (0,),
        reason: str = "",
    ) -> CountRisk | None:
        """Return the risk of counts by these columns.

        It is None if no sensitive column informs the cells, or no other column does: by its labels or by a
        condition that the records meet.
        """
        roles = {*(column.role for column in columns), *facts.decided_by.values()}
        mixed = facts.mixed & {*(column.name for column in columns), *facts.decided_by}
        left_out = bool(roles) and "sensitive" not in roles and bool(facts.without_nulls)
        if not left_out and ("sensitive" not in roles or (len(roles) == 1 and not mixed)):
            return None
        if left_out or "sensitive" in facts.decided_by.values():
            reason = DECIDED
        elif len(roles) == 1:
            reason = MIXED
        if reason:
            return cls(facts, call, tuple(columns), (), statistic, (), 0, reason)
        sizes = [column.cells(call.statistic) for column in columns]
        several = [
            axis
            for axis, (column, size) in enumerate(zip(columns, sizes, strict=True))
            if column.role == "sensitive" and size > 1
        ]
        plain = call.statistic == "crosstab" and len(several) == 1
        most = MOST_WORK if plain else LITTLE_WORK + WORK_BY_CELL * math.prod(sizes)
        return cls(facts, call, tuple(columns), tuple(several), statistic, tuple(dict.fromkeys(parts)), most)

    def __call__(
        self, results: Sequence[Outcome], entry: Entry | None
    ) -> tuple[dict[str, Any], float | str | None]:
        """Return the risk of a release, and the risk with the noise of the total loss so far.

        Both are estimated from released counts alone. The release publishes the first, and the budget notes
        the second, which is None in a plan. A paid release is published whether or not its risk can be
        estimated; without an estimate both are the reason. Source: Liu, Zhao (2023), section 4.3.
        """
        record: dict[str, Any] = {"measure": "expected", "source": "released counts"}
        estimate = self._unknown(results) or self._estimated(results, entry)
        if isinstance(estimate, str):
            return {
                "dr_ha": {**record, "by_cells": None, "by_records": None, "reason": estimate}
            }, None if entry is None else estimate
        by_cells, by_records = estimate
        names, (own, so_far) = [str(column.name) for column in self.columns], by_records.max(axis=0)
        record |= {"by_cells": float(by_cells[:, 0].max()), "by_records": float(own)}
        known = [name for axis, name in enumerate(names) if axis not in self.sensitive]
        record["by"] = [*dict.fromkeys([*known, *map(str, self.facts.decided_by)])]
        learned = [names[axis] for axis in self.sensitive]
        record["by_column"] = dict(zip(learned, by_records[:, 0].tolist(), strict=True))
        reached = None if entry is None else float(min(so_far, 1.0))
        return {"dr_ha": {**record, "at_total_loss": reached}}, reached

    def _unknown(self, results: Sequence[Outcome]) -> str:
        """Return the reason why no risk can be estimated of such a release; empty if it can."""
        if self.facts.in_secret:
            return "In a sample chance hides who is in it, which the estimate ignores."
        if self.call.weights is not None:
            return "Sums of weights do not show how many records a cell holds."
        if self.reason:
            return self.reason
        if not self.sensitive:
            return "Each sensitive column is declared with one label, which is public."
        in_tree = isinstance(self.statistic, TreeCells)
        if self.call.request.bounding is not None and (len(results) > 1 or in_tree):
            return "The noise of bounded counts is not known where several of them are combined."
        if all(results[0].price.mechanisms[part].std > MOST_DEVIATION for part in self.parts):
            return "The noise is so wide that the counts hold no information."
        return ""

    def _estimated(self, results: Sequence[Outcome], entry: Entry | None) -> tuple[Floats, Floats] | str:
        """Return the risks by cells and by records, (columns, 2) each, or why there are none.

        The first risk is that of the release, the second one has the noise of the total loss so far.
        """
        columns: list[list[ReadCounts]] = []
        work, in_tree = 0, isinstance(self.statistic, TreeCells)
        try:
            for part in self.parts:
                values = [result.answer if in_tree else result.noisy[part] for result in results]
                counts = np.mean([np.asarray(each.values, np.float64) for each in values], axis=0)
                total = np.clip(np.rint(counts), 0, None).sum()
                if not 0 < total <= MOST_RECORDS:
                    return "The counts are too large." if total else "No count is positive."
                for reads in self._tables(counts, self._noises(results, part, entry)):
                    columns.append(reads)
                    work += sum(read.work(noisy=False) for read in reads)
                    if work > self.most_work and self._takes_long(columns):
                        return "The estimate for so large a table takes longer than its release."
            estimates = [np.max([read.risks() for read in reads], axis=0)[:, [0, -1]] for reads in columns]
        except (PrivacyError, ArithmeticError, MemoryError):
            return "The estimate failed."
        by_part = np.reshape(estimates, (len(self.parts), len(self.sensitive), 2, 2))
        by_cells, by_records = np.moveaxis(by_part.max(axis=0), 1, 0)
        return by_cells, by_records

    def _takes_long(self, columns: Sequence[Sequence[ReadCounts]]) -> bool:
        """Return whether the work exceeds its limit without the cells whose risk is negligible."""
        return sum(read.work(noisy=True) for reads in columns for read in reads) > self.most_work

    def _noises(self, results: Sequence[Outcome], part: int, entry: Entry | None) -> list[CountNoise]:
        """Return the noise of a count of the release, and that of the total loss so far where it is known."""
        price, request = results[0].price, self.call.request
        mechanisms = [price.mechanisms[part]]
        mechanisms += [] if entry is None else _noise_so_far(price, part, request, entry)
        share = leaf_share(self.statistic) if isinstance(self.statistic, TreeCells) else None
        copies = [len(results), 1]  # the total loss is spent on one release
        return [
            CountNoise(mechanism, price.parts[part], request.bounding, number, share)
            for mechanism, number in zip(mechanisms, copies, strict=False)
        ]

    def _tables(self, counts: Floats, noises: Sequence[CountNoise]) -> Iterator[list[ReadCounts]]:
        """Yield the readings of each sensitive column."""
        shape = [column.cells(self.call.statistic) for column in self.columns]
        divide = [axis for axis in range(len(shape)) if axis not in self.sensitive]
        labels = [shape[axis] for axis in self.sensitive]
        table = np.reshape(counts, shape).transpose([*divide, *self.sensitive]).reshape(-1, *labels)
        for axis, number in enumerate(labels):
            rows = np.moveaxis(table, axis + 1, 1).reshape(len(table), number, -1)
            yield [*self._readings(rows, noises)]

    def _readings(self, rows: Floats, noises: Sequence[CountNoise]) -> Iterator[ReadCounts]:
        """Yield the readings of the counts (cells, labels, combinations of the other sensitive columns).

        Counts that are not negative sum to a positive number where one of them is positive: both readings
        are the same then.
        """
        combinations = rows.shape[2]
        by_count, released = [noise.of_count for noise in noises], noises[0]
        counts = released.plausible(rows, 1)
        if combinations == 1:
            yield ReadCounts(risk.Cells._of_checked(counts[:, :, 0]), by_count)
            return
        yield ReadCounts(JointCells.of_checked(counts), by_count)
        # with linear constraints, the metadata hold the noisy counts, too
        noisy = self.call.request.bounding is None and self.call.constraint in (None, LINEAR)
        sums = rows.sum(axis=2)
        if noisy and np.rint(sums).max() > 0:
            sums = released.plausible(sums, combinations)
            by_sum = [noise.of_sum(combinations) for noise in noises]
            yield ReadCounts(risk.Cells._of_checked(sums), by_sum)


@dataclass(frozen=True, slots=True)
class CountNoise:
    """The noise of a count, which is the mean of ``copies`` noisy ones.

    ``share``: of a count that was made consistent with others, the share of the variance that is left.
    """

    mechanism: Additive
    part: Part
    bounding: Bounding | None
    copies: int
    share: float | None

    @property
    def of_count(self) -> Any:
        """The noise of one count; that of a consistent one is taken as Gaussian."""
        if self.share is not None:
            return GeneralizedNormal.gaussian(self.mechanism.std * math.sqrt(self.share))
        if self.copies > 1:
            return self.of_sum(1)
        return released_by(self.mechanism, self.part, self.bounding)

    def plausible(self, counts: Floats, terms: int) -> Integers:
        """Return plausible numbers of records (more cells, ...) behind sums of counts (cells, ...)."""
        if self.share is None:
            noise: Any = self.mechanism if terms * self.copies == 1 else self.of_sum(terms)
            std = self.mechanism.std * math.sqrt(terms / self.copies)
        else:
            std = self.mechanism.std * math.sqrt(terms * self.share)
            noise = GeneralizedNormal.gaussian(std)
        cdf = noise.distribution.cdf if hasattr(noise, "distribution") else noise.cdf
        return plausible(counts, std, cdf, nonnegative=self.bounding is not None).reshape(
            -1, *counts.shape[1:]
        )

    def of_sum(self, terms: int) -> NoiseSum:
        """Return the noise of a sum of counts."""
        return NoiseSum(self.mechanism, terms * self.copies, self.copies)


def leaf_share(statistic: TreeCells) -> float:
    """Return the variance of a leaf of a tree over that of its noise, after least squares.

    The estimate is a projection of the nodes, so the share is the weight of a leaf in its own estimate. It is
    that of the first leaf; leaves near the end of an incomplete tree differ a little.
    """
    tree = statistic.tree
    level = np.full(tree.cells, float(tree.nodes))  # far above zero, where nothing is clamped
    nodes = np.asarray(tree.sums(level), np.float64)
    nodes[0] += 1
    leaves = hierarchy(tree, nodes, None if tree.root else round(float(level.sum())))
    return float(leaves[0] - level[0])


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """Counts of records by cell and label, and the noise that a reader sees them with."""

    cells: risk.Cells | JointCells
    noises: Sequence[HasCdf]

    def work(self, *, noisy: bool) -> int:
        """Return the work in multiply-adds; with ``noisy``, without cells whose risk is negligible."""
        if isinstance(self.cells, JointCells):
            return self.cells.cost(readings(self.noises)[0] if noisy else ())
        return risk.expected_cost(self.cells, self.noises if noisy else None)

    def risks(self) -> Floats:
        """Return the expected risk of each noise, by cells and by records: (2, noises)."""
        if isinstance(self.cells, JointCells):
            risks = self.cells.expected(readings(self.noises)[0])[:, self.cells.which]
        else:
            risks = risk.dr_ha(self.cells, self.noises, "expected", None)
        filled = self.cells.which >= 0
        risks, sizes = risks[:, filled], self.cells.all_sizes[filled]
        return np.stack([risks.mean(axis=1), (risks * sizes).sum(axis=1) / sizes.sum()])


def _noise_so_far(price: Price, part: int, request: Request, entry: Entry) -> list[Additive]:
    """Return the noise of the counts at the total loss so far; empty where the release is the only one.

    A mechanism without delta takes the spent epsilon alone. The risk of the release itself stands where
    no such noise is known: for truncated and generalized Gaussian noise.
    """
    so_far = entry.after.composed
    known = request.p is None and request.bounding != "truncated"
    if not known or so_far is None or so_far == price.cost:
        return []
    classic = request.calibration == "classic" and so_far.epsilon >= 1  # holds below 1 only
    spent_request = Request(
        so_far.epsilon,
        so_far.delta if MECHANISMS[request.mechanism].takes_delta() else 0,
        mechanism=request.mechanism,
        calibration=None if classic else request.calibration,
        bounding=request.bounding,
    )
    try:
        (noise,) = calibrate(price.parts[part : part + 1], spent_request)
    except (PrivacyError, ArithmeticError):  # an epsilon so large that there is no such noise
        return []
    return [] if noise.std > MOST_DEVIATION else [noise]
