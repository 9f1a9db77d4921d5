"""The disclosure risk of released counts, estimated from these counts alone.

For each sensitive column the counts are read for this column alone, in two ways: a cell discloses a label if
no count of another label is positive, or if the counts, summed over the other sensitive columns, are positive
for one label only. The risk of the column is the larger of the two, and the risk of the table is that of the
column with the largest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pdprivacy import risk
from pdprivacy.domain import Column
from pdprivacy.errors import PrivacyError
from pdprivacy.ledger import Entry
from pdprivacy.mechanism import MECHANISMS
from pdprivacy.mechanism.additive import Additive
from pdprivacy.protection import Protected
from pdprivacy.release.publish import Result
from pdprivacy.release.spec import Call, Price
from pdprivacy.release.tasks import calibrate, released_by
from pdprivacy.request import Request
from pdprivacy.risk.compositions import Reading, readings
from pdprivacy.risk.disclosure import RiskMeasure
from pdprivacy.risk.joint_counts import JointCells
from pdprivacy.risk.noise_sums import NoiseSum
from pdprivacy.types import Floats, Integers

MOST_WORK = 10**9
"""Multiply-adds spent on the risk of a released table: about a second."""

MOST_RECORDS = 10**10
"""The largest number of records whose risk is estimated; a table of people has no more."""

MOST_DEVIATION = 10**4
"""The largest standard deviation of noise at which risk is estimated; more leaves no information."""


@dataclass(frozen=True, slots=True)
class CountRisk:
    """The disclosure risk of a release with one count per cell of ``columns``.

    ``sensitive``: the places of the sensitive columns with several labels. All other columns divide the
    cells, whether they are quasi-identifiers or have no role.
    """

    facts: Protected
    call: Call
    columns: tuple[Column, ...]
    sensitive: tuple[int, ...]

    @classmethod
    def of(cls, facts: Protected, call: Call, columns: Sequence[Column]) -> CountRisk | None:
        """Return the risk of counts by these columns; None without a quasi-identifier or sensitive column."""
        roles = {column.role for column in columns}
        if not {"quasi_identifier", "sensitive"} <= roles:
            return None
        several = [
            place
            for place, column in enumerate(columns)
            if column.role == "sensitive" and column.cells(call.statistic) > 1
        ]
        return cls(facts, call, tuple(columns), tuple(several))

    def __call__(self, results: Sequence[Result], entry: Entry | None) -> tuple[dict[str, Any], float | None]:
        """Return the risk of a release, and the risk with the noise of the total loss so far.

        Both are estimated from released counts alone. The release publishes the first, and the budget notes
        the second, which is None in a plan. A paid release is published whether or not its risk can be
        estimated; without an estimate the first holds the reason. Source: Liu, Zhao (2023), section 4.3.
        """
        record: dict[str, Any] = {"measure": "expected", "source": "released counts"}
        estimate = self._unknown(results) or self._estimated(results[0], entry)
        if isinstance(estimate, str):
            return {"dr_ha": {**record, "by_cells": None, "by_records": None, "reason": estimate}}, None
        by_cells, by_records = estimate
        names, largest = [str(column.name) for column in self.columns], by_records.max(axis=0)
        record |= {"by_cells": float(by_cells[:, 0].max()), "by_records": float(largest[0])}
        record["by"] = [name for place, name in enumerate(names) if place not in self.sensitive]
        learned = [names[place] for place in self.sensitive]
        record["by_column"] = dict(zip(learned, by_records[:, 0].tolist(), strict=True))
        return {"dr_ha": record}, None if entry is None else float(min(largest[-1], 1.0))

    def _unknown(self, results: Sequence[Result]) -> str:
        """Return the reason why no risk can be estimated of such a release; empty if it can."""
        if self.facts.in_secret:
            return "In a sample chance hides who is in it, which the estimate ignores."
        if self.call.weights is not None:
            return "Sums of weights do not show how many records a cell holds."
        if not self.sensitive:
            return "Each sensitive column is declared with one label, which is public."
        if self.call.constraint == "hierarchy":
            return "The counts of a hierarchy have noise of several scales."
        if len(results) > 1:
            return "Several releases of the same counts are read together."
        if results[0].price.mechanisms[0].std > MOST_DEVIATION:
            return "The noise is so wide that the counts hold no information."
        return ""

    def _estimated(self, result: Result, entry: Entry | None) -> tuple[Floats, Floats] | str:
        """Return the risks by cells and by records, (columns, noises) each, or why there are none.

        The first noise is that of the release, the last one that of the total loss so far.
        """
        counts = np.asarray(result.answer.values, np.float64)
        total = np.clip(np.rint(counts), 0, None).sum()
        if total <= 0:
            return "No count is positive."
        if total > MOST_RECORDS:
            return "The counts are too large."
        noises = [result.price.mechanisms[0]]
        noises += [] if entry is None else _noise_so_far(result.price, self.call.request, entry)
        try:
            tables = self._tables(counts, noises, result.price)
            if sum(read.work for reads in tables for read in reads) > MOST_WORK:
                return "The estimate for so large a table takes longer than its release."
            estimates = [np.max([read.risks() for read in reads], axis=0) for reads in tables]
        except (PrivacyError, ArithmeticError, MemoryError):
            return "The estimate failed."
        by_cells, by_records = np.moveaxis(np.array(estimates), 1, 0)
        return by_cells, by_records

    def _tables(self, counts: Floats, noises: Sequence[Additive], price: Price) -> list[list[ReadCounts]]:
        """Return the readings of each sensitive column."""
        shape = [column.cells(self.call.statistic) for column in self.columns]
        divide = [place for place in range(len(shape)) if place not in self.sensitive]
        labels = [shape[place] for place in self.sensitive]
        table = np.reshape(counts, shape).transpose([*divide, *self.sensitive]).reshape(-1, *labels)
        tables = []
        for place, number in enumerate(labels):
            rows = np.moveaxis(table, place + 1, 1).reshape(len(table), number, -1)
            tables.append([*self._readings(rows, noises, price)])
        return tables

    def _readings(self, rows: Floats, noises: Sequence[Additive], price: Price) -> Iterator[ReadCounts]:
        """Yield the readings of the counts (cells, labels, combinations of the other sensitive columns).

        Counts that are not negative sum to a positive number where one of them is positive: both readings
        are the same then.
        """
        bounding, combinations = self.call.request.bounding, rows.shape[2]
        by_count, _ = readings([released_by(noise, price.parts[0], bounding) for noise in noises])
        if combinations == 1:
            yield ReadCounts(risk.Cells.of_checked(_records(rows[:, :, 0])), by_count)
            return
        yield ReadCounts(JointCells.of_checked(_records(rows)), by_count)
        sums = _records(rows.sum(axis=2))
        if bounding is None and self.call.constraint is None and sums.any():
            by_sum, _ = readings([NoiseSum(noise, combinations) for noise in noises])
            yield ReadCounts(risk.Cells.of_checked(sums), by_sum)


def _records(counts: Floats) -> Integers:
    """Return noisy counts as numbers of records."""
    return np.clip(np.rint(counts), 0, None).astype(np.int64)


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """Counts of records by cell and label, and the noise that a reader sees them with."""

    cells: risk.Cells | JointCells
    noises: Sequence[Reading]

    @property
    def work(self) -> int:
        """The work of the estimate, in multiply-adds."""
        return self.cells.cost() if isinstance(self.cells, JointCells) else risk.expected_cost(self.cells)

    def risks(self) -> Floats:
        """Return the expected risk of each noise, by cells and by records: (2, noises)."""
        if isinstance(self.cells, JointCells):
            risks = self.cells.expected(self.noises)
        else:
            risks = RiskMeasure("expected").fit(self.cells).risks(self.noises)
        filled = self.cells.which >= 0
        which, sizes = self.cells.which[filled], self.cells.all_sizes[filled]
        risks = risks[:, which]
        return np.stack([risks.mean(axis=1), (risks * sizes).sum(axis=1) / sizes.sum()])


def _noise_so_far(price: Price, request: Request, entry: Entry) -> list[Additive]:
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
        (noise,) = calibrate(price.parts, spent_request)
    except (PrivacyError, ArithmeticError):  # an epsilon so large that there is no such noise
        return []
    return [] if noise.std > MOST_DEVIATION else [noise]
