"""The audit of a ledger: every record, and whether it is what was entered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import gcd
from typing import TypeAlias

from pdprivacy.core.accounting import Spent
from pdprivacy.core.accounting.rules import sums_with
from pdprivacy.core.privacy import Loss
from pdprivacy.errors import BudgetError, ParameterError, TamperedLedgerError
from pdprivacy.ledger.account import Terms, answer_of, entry_of, terms_of, time_of
from pdprivacy.ledger.store import ROOT, Chain, Row, altered, canonical, decoded, digest, parse
from pdprivacy.text.progress import shown

HEAD = re.compile(r"([1-9][0-9]{0,17}):[0-9a-f]{64}", re.ASCII)

MOST_PROBLEMS = 10
MOST_KINDS = 10_000
"""The largest number of different charges whose effect is cached."""


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit that found no fault.

    ``unanswered``: charges whose answers are not known to have been handed out. ``head``: the last record, as
    `Ledger.head` tells it.
    """

    records: int
    charges: int
    budgets: int
    unanswered: int
    head: str


Added: TypeAlias = tuple[tuple[int, tuple[int, int]], ...]
"""The positions of sums, each with the numerator and denominator of what a charge adds to it."""


@dataclass
class _Budget:
    """The sums of a budget, as numbers and as the texts that the last charge must hold.

    They are epsilon, delta, squares and rho of `Spent`, then epsilon and delta as asked for. ``name``: the
    text of the name in records.
    """

    name: str
    terms: Terms
    sums: list[tuple[int, int]] = field(default_factory=lambda: [(0, 1)] * 6)
    texts: list[str] = field(default_factory=lambda: ["0"] * 6)
    unstated: bool = False
    charges: int = 0
    unanswered: set[int] = field(default_factory=set)
    releases: set[str] = field(default_factory=set)

    def add(self, added: Added) -> None:
        """Add to the sums; in whole numbers, which takes a tenth of the time of fractions."""
        before: object = None
        for position, term in added:
            if before != (self.sums[position], term):  # else this sum is the one before: asked, and counted
                before = (above, below), (over, under) = self.sums[position], term
                above, below = above * under + over * below, below * under
                common = gcd(above, below)
                total = above // common, below // common
                text = str(total[0]) if total[1] == 1 else f"{total[0]}/{total[1]}"
            self.sums[position], self.texts[position] = total, text

    def fits(self) -> bool:
        """Return whether the sums are within the cap. Sums never fall, so all sums before them were, too."""
        spent = Spent(*(Fraction(*pair) for pair in self.sums[:4]))
        try:
            return not self.charges or self.terms.rule.holds(spent)
        except BudgetError:  # the rule cannot count such losses
            return False


@dataclass
class _Walk:
    """The state of the audit after some records."""

    number: int = 0
    hash: bytes = ROOT
    budgets: dict[str, _Budget] = field(default_factory=dict)
    kinds: dict[tuple[type[Loss], str, str, str], tuple[Added, bool]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def take(self, row: Row) -> None:
        """Check the next record."""
        if row.number != self.number + 1:
            self.problems.append(missing(self.number + 1, row.number - 1))
        elif digest(self.hash, row.number, row.body) != row.hash:
            self.problems.append(f"record {row.number} does not follow from the one before it")
        self.number, self.hash = row.number, row.hash
        try:
            self._meaning(row)
        except (TamperedLedgerError, BudgetError, ValueError):
            self.problems.append(f"record {row.number} does not hold what a record of its place can")

    def end(self) -> None:
        """Check the sums of all charges against the caps."""
        above = (name for name, budget in self.budgets.items() if not budget.fits())
        self.problems += [f"the charges of {name!r} are above its cap" for name in above]

    def _meaning(self, row: Row) -> None:
        """Apply a record to its budget; raise TamperedLedgerError or BudgetError where it does not fit."""
        budget = self.budgets.get(row.budget)
        if row.kind == "charge" and budget is not None:
            self._charged(row, budget)
        elif row.kind == "answer" and budget is not None:
            number, _ = answer_of(row)
            if not 1 <= number <= budget.charges:
                raise altered(row)
            budget.unanswered.discard(number)
        elif row.kind == "redeclare" and budget is not None:
            old, new = budget.terms, terms_of(row)
            moved = old.unit not in (None, new.unit) and budget.charges > 0
            if moved or (old.total, old.accounting) != (new.total, new.accounting):
                raise altered(row)
            budget.terms = new
        elif row.kind == "open" and budget is None and row.budget:
            self.budgets[row.budget] = _Budget(canonical(row.budget), terms_of(row))
        elif row.kind == "ledger" and row.number == 1 and not row.budget:
            parse(row)
        else:
            raise altered(row)

    def _charged(self, row: Row, budget: _Budget) -> None:
        """Apply a charge; refuse one whose text is not that of the next charge of its kind."""
        release = "null" if row.release is None else canonical(row.release)
        if row.release is not None and release in budget.releases:
            raise altered(row)
        budget.releases.add(release)
        budget.charges += 1
        budget.unanswered.add(budget.charges)
        requested, _, rest = row.body.partition(f',"budget":{budget.name},"charge":{budget.charges},')
        events, _, rest = rest.partition('"kind":"charge","label":')
        label, _, rest = rest.partition(',"loss":')
        rest, _, end = rest.rpartition(f',"release":{release},"spent":["')
        loss, _, mechanism = rest.rpartition(',"mechanism":')
        spent, _, end = end.partition('"],"time":"')
        time, _, unstated = end.partition('","unstated":')
        plain = time.isascii() and time.isprintable() and '"' not in time and "\\" not in time
        if not (plain and is_text(label) and is_text(mechanism)):
            raise altered(row)
        time_of(time)
        added, is_unstated = self._effect(row, events, loss, budget.terms)
        budget.add(added)
        budget.unstated = budget.unstated or is_unstated
        texts = budget.texts
        stated = f'{{"asked":["{texts[4]}","{texts[5]}"]', '","'.join(texts[:4])
        if (requested, spent, unstated) != (*stated, "true}" if budget.unstated else "false}"):
            raise altered(row)

    def _effect(self, row: Row, events: str, loss: str, terms: Terms) -> tuple[Added, bool]:
        """Return what a charge adds to the sums, and whether it states no epsilon.

        ``events``, ``loss``: the texts of the only parts that it depends on, by which it is cached.
        """
        key = type(terms.total), terms.accounting, events, loss
        if key in self.kinds:
            return self.kinds[key]
        parts = decoded(f'{{{events}"loss":{loss}}}')
        if not isinstance(parts, dict) or not parts.keys() <= {"counted", "events", "loss"}:
            raise altered(row)
        entry = entry_of(row, terms)
        if entry.counted != terms.rule._counted(entry.loss, entry.count, entry.events):
            raise altered(row)
        epsilon, delta, _ = entry.amounts
        sums = enumerate((*sums_with(Spent(), entry.counted), epsilon, delta))
        added = ((position, term.as_integer_ratio()) for position, term in sums if term)
        # requested sums follow counted ones, which are mostly equal
        effect = tuple(sorted(added, key=lambda pair: pair[0] % 4)), epsilon is None
        if len(self.kinds) < MOST_KINDS:
            self.kinds[key] = effect
        return effect


@lru_cache(maxsize=MOST_KINDS)
def is_text(text: str) -> bool:
    """Return whether this is the only JSON text of a string."""
    return isinstance(decoded(text), str)


def audit(chain: Chain, head: str | None = None, progress: bool | None = None) -> Audit:
    """Check every record of the chain; see `Ledger.audit`. ``progress``: a bar (None: if it takes long)."""
    remembered = 0 if head is None else _number(head)
    walk = _Walk()
    end = chain.head()
    last = 0 if end is None else end.number
    walk.problems += chain.read(lambda reader: reader.damage(last))
    for row in with_bar(_indexed_rows(chain, end, walk.problems), end, "audit", progress):
        walk.take(row)
        if row.number == remembered and row.label != head:
            walk.problems.append(f"record {row.number} is not the one that was remembered")
        if len(walk.problems) >= MOST_PROBLEMS:
            break
    else:
        least = max(last, remembered)
        if walk.number < least:
            walk.problems.append(missing(walk.number + 1, least))
        walk.end()
    if walk.problems:
        raise TamperedLedgerError(
            f"The ledger is not what was entered: {'; '.join(walk.problems)}.",
            "restore the latest copy of the ledger; what was charged since must be charged again.",
        )
    budgets = walk.budgets.values()
    return Audit(
        walk.number,
        sum(budget.charges for budget in budgets),
        len(budgets),
        sum(len(budget.unanswered) for budget in budgets),
        "" if end is None else end.label,
    )


def _indexed_rows(chain: Chain, end: Row | None, problems: list[str]) -> Iterator[Row]:
    """Yield all records up to ``end``; add a problem for those that an index does not find."""
    for rows, faults in chain.spans(end, lambda reader, *span: (reader.span(*span), reader.unindexed(*span))):
        problems += faults
        yield from rows


def with_bar(rows: Iterable[Row], end: Row | None, label: str, progress: bool | None) -> Iterable[Row]:
    """Show a progress bar over the records up to ``end``; their number reveals nothing about the data."""
    return shown(rows, 0 if end is None else end.number, label, progress, long=True, timed=True)


def missing(first: int, last: int) -> str:
    """Describe missing records."""
    return f"record {first} is missing" if first == last else f"records {first} to {last} are missing"


def _number(head: str) -> int:
    match = HEAD.fullmatch(head) if isinstance(head, str) else None
    if match is None:
        raise ParameterError("'head' must be what ledger.head gave: a number, a colon and 64 hex digits.")
    return int(match[1])
