"""A secret part of a protected frame: what its releases cost the budget of the whole."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from pdprivacy.accounting import Event, Events
from pdprivacy.errors import BudgetError, ParameterError
from pdprivacy.ledger import Entry
from pdprivacy.privacy import Approx, Pure, loss
from pdprivacy.suppression.amplification import Amplification

__all__ = ["Secret", "Spend"]

Spend: TypeAlias = Literal["noise", "epsilon"]

LEAST = Fraction(1, 10**30)


@dataclass(eq=False)
class Secret:
    """A part that was drawn once: its releases are one group, whose summed loss is amplified.

    ``law``: how it was drawn. ``spend``: "noise", where the epsilon of a release is what the whole pays, and
    the noise is less for it; "epsilon", where it calibrates the noise, and the whole pays less.
    ``inner``, ``outer``: the epsilons of all releases so far, as of the part and as charged.
    """

    law: Amplification
    spend: Spend
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    inner: Fraction = Fraction(0)
    outer: Fraction = Fraction(0)
    closed: bool = False
    process: int = field(default_factory=os.getpid, repr=False)
    lock: Any = field(default_factory=threading.RLock, repr=False)

    def __reduce__(self) -> Any:
        raise ParameterError(
            "A secret part of a frame cannot be copied or pickled: the copy would not know of later releases."
        )

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Price and charge one release at a time.

        Raises BudgetError in a forked process, which would not know of releases of the other one.
        """
        if os.getpid() != self.process:
            raise BudgetError(
                "A secret part belongs to the process that drew it: others do not know what was released.",
                "release there, or draw another part here.",
            )
        with self.lock:
            yield

    def within(self, cost: Pure | Approx) -> Pure | Approx:
        """Return the loss that a release of this cost may have for the part.

        Raises ParameterError where a delta does not fit earlier releases, or nothing is left.
        """
        if self.closed or (self.law.one_delta and cost.delta and self.inner):
            raise ParameterError(
                "A release with a delta must be the only release of this part.",
                "plan several: private.dp.plan_releases([...]) charges them as one; or draw another part.",
            )
        if self.spend == "epsilon":
            return cost
        epsilon = self.law.part(self.outer + cost.epsilon) - self.inner
        delta = cost.delta / self.law.delta_share(self.inner)
        if delta >= 1:
            raise ParameterError(
                "'delta' must be below the sampling rate: a release of the part has delta / rate.",
                "a smaller delta, or more records.",
            )
        return loss(max(epsilon, LEAST), delta)

    def costing(self, within: Pure | Approx) -> Pure | Approx:
        """Return the loss that the whole pays for one more release of this loss to the part."""
        epsilon = self.law.whole(self.inner + within.epsilon) - self.outer
        return loss(max(epsilon, LEAST), within.delta * self.law.delta_share(self.inner))

    def room(self, left: Fraction) -> float:
        """The largest epsilon that a release can state where so much is left to the whole, or a bit more."""
        most = self.law.most
        if most is not None and self.outer + left > self.law.whole(most):
            left = self.law.whole(most) - self.outer
        try:
            within = self.law.part(self.outer + left) - self.inner
        except ParameterError:
            return 0.0
        return float(left if self.spend == "noise" else within)

    def stated(self, entry: Entry | None, asked: Pure | Approx) -> Pure | Approx:
        """Return the loss of a release to the whole, for its metadata; a plan has no entry."""
        if entry is not None and isinstance(entry.loss, Pure | Approx):
            return entry.loss
        return asked if self.spend == "noise" else self.costing(asked)

    def charged(
        self, within: Pure | Approx, stated: Pure | Approx, enter: Callable[[Pure | Approx, Events], Entry]
    ) -> Entry:
        """Charge what the whole pays for this loss of the part, by ``enter``, and remember both.

        Raises ParameterError where the whole would pay more than the release ``stated``.
        """
        outer = self.costing(within)
        if self.spend == "noise":
            if outer.epsilon > stated.epsilon or outer.delta > stated.delta:
                raise ParameterError(
                    "The release costs more than its epsilon, which a secret part cannot state beforehand.",
                    'another calibration, or spend="epsilon".',
                )
            outer = stated
        entry = enter(outer, [(Event(outer, group=self.name), 1)])
        self.inner += within.epsilon
        self.outer += outer.epsilon
        self.closed = self.law.one_delta and bool(within.delta)
        return entry
