"""The task that finds private labels: it reads counts of distinct labels, and draws which are shown."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from pdprivacy.core import noise
from pdprivacy.core.accounting import Event
from pdprivacy.core.gate.spec import Price, Task
from pdprivacy.core.mechanisms.partition_selection import PartitionSelection
from pdprivacy.core.noise import Source
from pdprivacy.core.privacy import Approx, Neighbors, Pure
from pdprivacy.core.statistics import Read
from pdprivacy.declaration.domain import Column
from pdprivacy.types import Integers


@dataclass(frozen=True, slots=True)
class LabelSearch(Task):
    """Find the labels of columns, by `PartitionSelection`.

    Each unit counts for one label. With ``several``, a unit may have several records: one of those that have
    a label is drawn, each with the same probability. The draw depends on the records of this unit alone, so
    for each outcome of the draws of the other units the counts of neighbours differ by one in one label (in
    two under "replace_one"), and the loss of the mixture is at most that of its parts.

    The outcome is the labels that were found, in order, and their noisy counts. Labels are sorted before they
    are drawn, so that the order of the records does not matter.
    """

    columns: tuple[Column, ...]
    loss: Pure | Approx
    neighbors: Neighbors
    several: bool = False

    @property
    def cost(self) -> Pure | Approx:
        """The loss of all labels together."""
        return self.loss

    @property
    def reads(self) -> tuple[Read, ...]:
        """The records per label, or the label and the unit of each record."""
        return (Read("labels_of_units" if self.several else "labels", (self.columns,)),)

    def price(self, cost: Pure | Approx) -> Price:
        """Return the mechanism at this cost.

        Raises ParameterError where delta is 0 or too small.
        """
        mechanism = PartitionSelection(cost.epsilon, cost.delta, self.neighbors)
        return Price(cost, "partition_selection", ((Event(mechanism.loss), 1),), (mechanism,))

    def draw(self, exact: Any, price: Price, source: Source) -> tuple[list[tuple[Any, ...]], Integers]:
        """Return the labels that were found, and their noisy counts."""
        counts = exact.counts(noise.shuffled_keys(len(exact.units), source)) if self.several else exact
        # the texts of one column are sorted faster than tuples of one
        labels = sorted(counts, key=itemgetter(0)) if len(self.columns) == 1 else sorted(counts)
        exact_counts = np.array([counts[label] for label in labels], dtype=np.int64)
        noisy: Integers = price.mechanisms[0].draw(exact_counts, source)
        return [label for label, count in zip(labels, noisy.tolist(), strict=True) if count], noisy[noisy > 0]
