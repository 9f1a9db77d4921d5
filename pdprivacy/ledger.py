"""The budget: an append-only list of charges under a cap, and the only mutable object.

A charge is made before a cell is read or noise is drawn. It is either entered
whole or refused, and a refusal leaves the budget as it was.
"""

from __future__ import annotations

import html
import math
import numbers
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import NoReturn, SupportsIndex

import pandas as pd

from pdprivacy import accounting
from pdprivacy.errors import BudgetError, BudgetExceeded, ParameterError
from pdprivacy.privacy import Approx, Confidential, Loss, Pure, Rational, Unit, loss, show

__all__ = ["Budget", "Entry"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One charge: what it cost, what for, and when.

    ``so_far``: what it and all charges before it cost together. ``dr_ha``: the disclosure risk of
    what was released, where it was estimated (see `Budget.reach`).
    """

    number: int
    label: str
    mechanism: str
    loss: Pure | Approx
    time: datetime
    so_far: Pure | Approx
    dr_ha: float | None = None


class Budget:
    """A privacy budget in memory: a total, what was spent on what, and what is left.

    Every protection of the same data should share one budget: pass the same object as
    ``budget=`` to each ``df.dp.protect``. Charges add up exactly (0.1 three times is 0.3). Safe
    to use from several threads of one process; it ends with the process.

    Parameters
    ----------
    epsilon : the cap on the sum of epsilons, positive.
    delta : the cap on the sum of deltas, in [0, 1).

    Raises
    ------
    ParameterError : epsilon not positive and finite, delta outside [0, 1).

    >>> budget = Budget(epsilon=0.3)
    >>> for _ in range(3):
    ...     _ = budget.charge(Pure(0.1), "mean of age")
    >>> budget.left
    (0.0, 0.0)
    """

    def __init__(self, epsilon: Rational, delta: Rational = 0) -> None:
        self._total = loss(epsilon, delta)
        if self._total.epsilon > 10**290:
            raise ParameterError("'epsilon' must be at most 1e290.")
        self._entries: list[Entry] = []
        self._spent: Pure | Approx | None = None
        self._unit: Unit | None = None
        self._lock = threading.Lock()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise BudgetError(
            "A budget in memory cannot be copied or pickled: the copy would not know of later charges.",
            "pass the budget itself, as budget=, to every protection of the same data.",
        )

    @property
    def total(self) -> Pure | Approx:
        """The cap."""
        return self._total

    def _sums(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta spent so far, exact."""
        return (Fraction(0), Fraction(0)) if self._spent is None else (self._spent.epsilon, self._spent.delta)

    @property
    def spent(self) -> tuple[float, float]:
        """Epsilon and delta spent so far."""
        with self._lock:
            epsilon, delta = self._sums()
        return float(epsilon), float(delta)

    @property
    def composed(self) -> Pure | Approx | None:
        """What all charges cost together, exact; None before the first."""
        with self._lock:
            return self._spent

    @property
    def left(self) -> tuple[float, float]:
        """Epsilon and delta still to spend."""
        with self._lock:
            epsilon, delta = self._sums()
        return float(self._total.epsilon - epsilon), float(self._total.delta - delta)

    @property
    def unit(self) -> Unit | None:
        """Whose data the charges protect; None before the first protection."""
        return self._unit

    def bind(self, unit: Unit) -> None:
        """Fix the unit of all charges: losses of different neighbours do not add up.

        Raises BudgetError where the budget already serves another one.
        """
        with self._lock:
            if self._unit is None:
                self._unit = unit
            elif self._unit != unit:
                raise BudgetError(
                    f"This budget counts losses between {self._unit.neighbors!r} neighbours; "
                    f"they do not add up with {unit.neighbors!r} ones.",
                    "use the same neighbors= for every protection that shares a budget.",
                )

    def charge(self, cost: Loss, label: str, mechanism: str = "") -> Entry:
        """Enter ``cost``, or refuse it and change nothing.

        Raises
        ------
        BudgetExceeded : the cost is larger than what is left; a smaller one may still fit.
        BudgetError : the cost is in a currency that this budget does not count.
        """
        if not isinstance(cost, Pure | Approx):
            raise BudgetError(
                f"This budget counts epsilon and delta (got {type(cost).__name__}).",
                "charge Pure(epsilon) or Approx(epsilon, delta).",
            )
        for name, text in (("label", label), ("mechanism", mechanism)):
            if not isinstance(text, str):
                raise ParameterError(f"{name!r} must be a string (got {type(text).__name__}).")
        with self._lock:
            epsilon, delta = self._sums()
            left_epsilon, left_delta = self._total.epsilon - epsilon, self._total.delta - delta
            if cost.epsilon > left_epsilon:
                raise BudgetExceeded(
                    f"The release asks for epsilon {show(cost.epsilon)}, but {show(left_epsilon)} of "
                    f"{show(self._total.epsilon)} is left.",
                    f"ask for epsilon={show(left_epsilon)} or less." if left_epsilon > 0 else None,
                )
            if cost.delta > left_delta:
                raise BudgetExceeded(
                    f"The release asks for delta {show(cost.delta)}, but {show(left_delta)} of "
                    f"{show(self._total.delta)} is left.",
                    'mechanism="laplace" and mechanism="geometric" need no delta.',
                )
            together = accounting.compose([cost] if self._spent is None else [self._spent, cost])
            assert isinstance(together, Pure | Approx)
            entry = Entry(len(self._entries) + 1, label, mechanism, cost, datetime.now(UTC), together)
            self._entries.append(entry)
            self._spent = together
            return entry

    def reach(self, number: int, risk: float) -> None:
        """Note the disclosure risk of what charge ``number`` paid for, made of released numbers alone.

        Nothing is charged, and what is left stays as it is. The risk that a budget has reached is the
        largest one so far.

        Raises
        ------
        ParameterError : no such charge, or a risk outside [0, 1].

        >>> budget = Budget(epsilon=1)
        >>> budget.reach(budget.charge(Pure(0.5), "crosstab of health by age").number, 0.125)
        >>> budget.entries["dr_ha"].tolist()
        [0.125]
        """
        known = isinstance(risk, numbers.Real) and not isinstance(risk, bool)
        if not known or isinstance(risk, Confidential) or not 0 <= risk <= 1:
            raise ParameterError("'risk' must be a probability, made of released numbers.")
        whole = isinstance(number, numbers.Integral) and not isinstance(number, bool)
        with self._lock:
            if not whole or not 1 <= number <= len(self._entries):
                raise ParameterError("'number' must be that of a charge in this budget.")
            entry = self._entries[int(number) - 1]
            most = float(risk) if entry.dr_ha is None else max(float(risk), entry.dr_ha)
            self._entries[int(number) - 1] = replace(entry, dr_ha=most)

    @property
    def entries(self) -> pd.DataFrame:
        """One row per charge: release, mechanism, epsilon, delta, time, dr_ha.

        ``dr_ha``: the largest disclosure risk from homogeneity attacks of the tables released so far,
        each at what the budget had spent by then: the expected risk, averaged over records, estimated
        from released counts alone; NaN before the first table of sensitive columns by
        quasi-identifiers. Source: Liu, Zhao (2023), section 4.3, the bounded measure.
        """
        entries = self._state()[0]
        return pd.DataFrame(
            {
                "release": [entry.label for entry in entries],
                "mechanism": [entry.mechanism for entry in entries],
                "epsilon": [float(entry.loss.epsilon) for entry in entries],
                "delta": [float(entry.loss.delta) for entry in entries],
                "time": pd.to_datetime([entry.time for entry in entries], utc=True),
                "dr_ha": pd.Series(_reached(entries), dtype="float64").to_numpy(),
            },
            index=pd.RangeIndex(1, len(entries) + 1, name="charge"),
        )

    def _state(self) -> tuple[list[Entry], Fraction, Fraction]:
        """The entries and their sums, of one moment."""
        with self._lock:
            return [*self._entries], *self._sums()

    def _summary(self, epsilon: Fraction, delta: Fraction) -> list[tuple[str, str, str]]:
        """(what, epsilon, delta) of total, spent and left."""
        total = self._total
        return [
            ("total", show(total.epsilon), show(total.delta)),
            ("spent", show(epsilon), show(delta)),
            ("left", show(total.epsilon - epsilon), show(total.delta - delta)),
        ]

    def _neighbors(self) -> str:
        return "" if self._unit is None else f", neighbors {self._unit.neighbors}"

    def __repr__(self) -> str:
        entries, *spent = self._state()
        lines = [f"Privacy budget{self._neighbors()}"]
        lines += [
            f"  {what:<6} epsilon {epsilon:<10} delta {delta}"
            for what, epsilon, delta in self._summary(*spent)
        ]
        width = max((len(entry.label) for entry in entries), default=0)
        named = max((len(entry.mechanism) for entry in entries), default=0)
        rows = [
            f"  {entry.number:>4}  {entry.label:<{width}}  epsilon {show(entry.loss.epsilon):<8} "
            f"delta {show(entry.loss.delta):<8} {entry.mechanism:<{named}}  {_percent(risk, 'risk ')}"
            for entry, risk in zip(entries, _reached(entries), strict=True)
        ]
        return "\n".join([*lines, *(row.rstrip() for row in rows)])

    def _repr_html_(self) -> str:
        entries, *spent = self._state()
        risks = _reached(entries)
        known = any(entry.dr_ha is not None for entry in entries)
        head = "".join(
            f"<tr><th>{what}</th><td>{epsilon}</td><td>{delta}</td></tr>"
            for what, epsilon, delta in self._summary(*spent)
        )
        rows = "".join(
            f"<tr><th>{entry.number}. {html.escape(entry.label)}</th><td>{show(entry.loss.epsilon)}</td>"
            f"<td>{show(entry.loss.delta)}</td><td>{html.escape(entry.mechanism)}</td>"
            f"{f'<td>{_percent(risk)}</td>' if known else ''}</tr>"
            for entry, risk in zip(entries, risks, strict=True)
        )
        return (
            f"<table><caption>Privacy budget{html.escape(self._neighbors())}</caption>"
            "<thead><tr><th></th><th>epsilon</th><th>delta</th><th>mechanism</th>"
            f"{'<th>risk</th>' if known else ''}</tr></thead>"
            f"<tbody>{head}{rows}</tbody></table>"
        )


def _reached(entries: Sequence[Entry]) -> list[float]:
    """The largest risk up to each entry; NaN before the first that has one."""
    risks, most = [], math.nan
    for entry in entries:
        if entry.dr_ha is not None and not entry.dr_ha <= most:
            most = entry.dr_ha
        risks.append(most)
    return risks


def _percent(risk: float, before: str = "") -> str:
    return "" if math.isnan(risk) else f"{before}{100 * risk:.1f} % of records"
