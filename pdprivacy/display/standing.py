"""What is shown of a protected frame: what is declared and spent, the steps that led to it, and no cell."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from pdprivacy import markup
from pdprivacy.display.digits import plain
from pdprivacy.display.released import SEEDED, neighbors
from pdprivacy.domain import Domain
from pdprivacy.errors import LedgerError
from pdprivacy.ledger import Budget
from pdprivacy.markup import Markup
from pdprivacy.privacy import Unit

__all__ = ["Standing", "lineage"]

STEPS = (
    "stability: the records of the result that one record can touch; cost: what the whole pays for releases "
    "whose epsilons add up to epsilon"
)

SECRET = "a secret part"


@dataclass(frozen=True)
class Standing:
    """What stands behind a protected frame, as far as it may be shown.

    ``engine``: what holds the records. ``lineage``: as of `pdprivacy.protection.lineage`. ``rows``: their
    number, where it is public. ``seeded``: whether the coins of a secret part can be thrown again.
    """

    engine: str
    domain: Domain
    unit: Unit
    budget: Budget
    lineage: pd.DataFrame
    rows: int | None
    seeded: bool

    def text(self) -> str:
        """For a prompt."""
        lines = [self._title, *([f"  {SEEDED}"] if self.seeded else []), "", repr(self.domain), ""]
        lines += [f"{what:<9}  {said}" for what, said in self._facts]
        lines += ["", _of_budget(self.budget, "__repr__")]
        for number, (step, stability, cost) in enumerate(_steps(self.lineage), 1):
            lines += ["", "Lineage"] if number == 1 else []
            lines.append(f"  {number}  {step}  stability {stability}  cost {cost}")
        return "\n".join(lines)

    def html(self) -> str:
        """For a notebook."""
        pieces = [markup.note(self._title), *([markup.warning(SEEDED)] if self.seeded else [])]
        pieces += [Markup(self.domain._repr_html_()), markup.table([], self._facts, text={1})]
        pieces.append(Markup(_of_budget(self.budget, "_repr_html_")))
        if len(self.lineage):
            pieces += [markup.note("Lineage"), *_lineage(self.lineage)]
        return markup.page(*pieces)

    @property
    def _title(self) -> str:
        return f"Protected frame of {self.engine}"

    @property
    def _facts(self) -> list[tuple[str, str]]:
        known = "private" if self.rows is None else f"{self.rows} (public)"
        return [("neighbors", neighbors(self.unit.neighbors, self.unit.column)), ("rows", known)]


def _of_budget(budget: Budget, shown: str) -> str:
    """The budget, or why its ledger cannot be read."""
    try:
        return str(getattr(budget, shown)())
    except LedgerError as error:
        return str(error) if shown == "__repr__" else markup.warning(error)


def _steps(frame: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Step, stability and cost as texts."""
    columns = [frame[name].tolist() for name in ("step", "stability", "cost")]
    return [
        (markup.printable(step), SECRET if stability is pd.NA else plain(stability), markup.printable(cost))
        for step, stability, cost in zip(*columns, strict=True)
    ]


def _lineage(frame: pd.DataFrame) -> list[Markup]:
    rows = [(str(number), *step) for number, step in enumerate(_steps(frame), 1)]
    return [markup.table(["", "step", "stability", "cost"], rows, text={1, 3}), markup.note(STEPS)]


def lineage(frame: pd.DataFrame) -> str:
    """The page of a lineage."""
    return markup.page(*_lineage(frame))
