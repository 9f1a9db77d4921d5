"""A secret part of a protected frame: what its releases cost the budget of the whole."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from pdprivacy.accounting import Event
from pdprivacy.errors import BudgetError, ParameterError
from pdprivacy.ledger import Budget, Entry
from pdprivacy.privacy import Approx, Pure, loss
from pdprivacy.suppression.laws import Law

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

    law: Law
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
    def paying(self, cost: Pure | Approx, budget: Budget) -> Iterator[tuple[Pure | Approx, Budget]]:
        """What a release may cost the part, and the budget that takes it; one release at a time.

        Raises ParameterError where a delta does not fit earlier releases, or too little is left; BudgetError
        in a forked process, which would not know of releases of the other one.
        """
        if os.getpid() != self.process:
            raise BudgetError(
                "A secret part belongs to the process that drew it: others do not know what was released.",
                "release there, or draw another part here.",
            )
        with self.lock:
            self._check_delta(cost)
            within = self.within(cost)
            yield within, _Purse(budget, self, cost if self.spend == "noise" else None)

    def within(self, cost: Pure | Approx) -> Pure | Approx:
        """What a release of this cost may cost the part; raises ParameterError where that is nothing."""
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
        """What the whole pays for one more release that costs the part so much."""
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
        """What a release costs the whole, for its metadata; of a plan, where there is no entry."""
        if entry is not None and isinstance(entry.loss, Pure | Approx):
            return entry.loss
        return asked if self.spend == "noise" else self.costing(asked)

    def _check_delta(self, cost: Pure | Approx) -> None:
        if self.closed or (self.law.one_delta and cost.delta and self.inner):
            raise ParameterError(
                "A release with a delta has to be the only one of this part.",
                "plan several: private.dp.plan_releases([...]) charges them as one; or draw another part.",
            )

    def paid(self, within: Pure | Approx, outer: Pure | Approx) -> None:
        """Note that a release was charged."""
        self.inner += within.epsilon
        self.outer += outer.epsilon
        self.closed = self.law.one_delta and bool(within.delta)


class _Purse(Budget):
    """The budget of the whole, charged by losses of a part."""

    def __init__(self, budget: Budget, secret: Secret, stated: Pure | Approx | None) -> None:
        self._book, self.of_group = budget._book, budget.of_group
        self._secret, self._stated = secret, stated

    def charge(self, cost: Any, label: str, mechanism: str = "", **more: Any) -> Entry:
        """Charge what the whole pays for this loss of the part."""
        secret = self._secret
        within = cost.times(more.pop("count", 1))
        outer = secret.costing(within)
        if self._stated is not None:
            if outer.epsilon > self._stated.epsilon or outer.delta > self._stated.delta:
                raise ParameterError(
                    "The release costs more than its epsilon, which a secret part cannot state beforehand.",
                    'another calibration, or spend="epsilon".',
                )
            outer = self._stated
        more["events"] = [(Event(outer, group=secret.name), 1)]
        entry = super().charge(outer, label, mechanism, **more)
        secret.paid(within, outer)
        return entry
