"""The budget: charges under a cap, in memory or in a ledger.

A charge is made before a cell is read or noise is drawn. It is either entered
whole or refused, and a refusal leaves the budget as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from pdprivacy.checks import check_name, instance, integer, is_number, printable, whole
from pdprivacy.core import accounting as accountings
from pdprivacy.core.accounting import Accounting, Event, Events
from pdprivacy.core.accounting.events import tally
from pdprivacy.core.accounting.rules import check_counted
from pdprivacy.core.gate.entered import ENTERED, NOT_HANDED_OUT, PERHAPS_HANDED_OUT, handed_out
from pdprivacy.core.privacy import (
    MOST,
    ZCDP,
    Approx,
    Confidential,
    Loss,
    Pure,
    Rational,
    Unit,
    loss,
    rational,
)
from pdprivacy.errors import BudgetError, LedgerError, ParameterError, PrivacyError, kind, short_tracebacks
from pdprivacy.hints.suggestions import with_hints
from pdprivacy.ledger.account import Account, Charge, Entry, Terms, doubles
from pdprivacy.ledger.book import Book, MemoryBook, Request, no_such_charge
from pdprivacy.ledger.store import UNKNOWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_ANSWER = 2**28
"""The largest stored answer, in bytes."""

MOST_REASON = 500
"""The largest number of characters of the reason why a risk is not known."""


def total_of(epsilon: Rational | None, delta: Rational = 0, rho: Rational | None = None) -> Loss:
    """Return a cap: in rho, or in epsilon and delta.

    Raises ParameterError for both or none of them, and for numbers out of range.
    """
    if rho is not None:
        if epsilon is not None or rational(delta, "delta"):
            raise ParameterError("A budget is stated in rho, or in epsilon and delta, not in both.")
        return ZCDP(rho)
    if epsilon is None:
        raise ParameterError("'epsilon' is missing: a budget needs a cap.", "Budget(epsilon=1.0).")
    return loss(epsilon, delta)


@short_tracebacks
class Budget:
    """A privacy budget: a total, the charges, and what is left.

    Every protection of the same data should share one budget: pass the same object as
    ``budget=`` to each ``df.dp.protect``. Charges add up exactly (0.1 three times is 0.3). Safe
    to use from several threads of one process. It ends with the process. A `pdprivacy.Ledger` keeps
    budgets that last, and that other processes share.

    Parameters
    ----------
    epsilon : the cap on the sum of epsilons, positive.
    delta : the cap on the sum of deltas, in [0, 1).
    rho : in their place, the cap on zero-concentrated losses; a pure loss counts as epsilon^2 / 2.
    accounting : how losses add up under the cap, also those that are chosen after seeing answers:
        "basic", sums; "filter" (needs a delta, of which half is for the deltas of losses), by their
        squares, so that many small losses cost less; "zcdp" (needs a delta or rho), the same by rho, for
        releases without delta and with Gaussian noise. See `pdprivacy.accounting.rule`.

    Raises
    ------
    ParameterError : epsilon or rho not positive and finite, delta outside [0, 1), an unknown accounting
        or one that has no meaning for the cap.

    >>> budget = Budget(epsilon=0.3)
    >>> for _ in range(3):
    ...     _ = budget.charge(Pure(0.1), "mean of age")
    >>> budget.left
    (0.0, 0.0)
    """

    _book: Book
    of_group: bool

    _check: Callable[[str | None], None] | None = None
    """Called before each charge with the id of its release, where a step holds the budget."""

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational = 0,
        *,
        rho: Rational | None = None,
        accounting: Accounting = "basic",
    ) -> None:
        self._book = MemoryBook(Terms(total_of(epsilon, delta, rho), accounting))
        self.of_group = False

    @classmethod
    def with_total(cls, total: Loss, accounting: Accounting = "basic", *, of_group: bool = False) -> Budget:
        """Return a budget in memory with this cap. ``of_group``: for a group of the records of a table."""
        return cls.of(MemoryBook(Terms(total, accounting)), of_group=of_group)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Budget) and self._book == other._book

    def __hash__(self) -> int:
        return hash(self._book)

    @classmethod
    def of(cls, book: Book, *, of_group: bool = False) -> Budget:
        """Return the budget whose charges are in this book."""
        budget = cls.__new__(cls)
        budget._book, budget.of_group = book, of_group
        return budget

    def __reduce__(self) -> Any:
        if isinstance(self._book, MemoryBook):
            raise BudgetError(
                "A budget in memory cannot be copied or pickled: the copy would not know of later charges.",
                "pass the budget itself, as budget=, to every protection of the same data; other "
                'processes share a budget in a ledger: budget=pdprivacy.Ledger("budget.db").',
            )
        if self._check is not None:
            raise BudgetError(
                "The budget of a step cannot be copied or pickled: the copy would pay for any release.",
                "use the frame that the step was given.",
            )
        return Budget.of, (self._book,)

    @property
    def total(self) -> Loss:
        """The cap."""
        return self.account.terms.total

    @property
    def accounting(self) -> Accounting:
        """The accounting: the rule by which losses add up under the cap."""
        return self.account.terms.accounting

    @property
    def spent(self) -> tuple[float, float]:
        """Epsilon and delta spent so far; under a cap in rho, rho and zero."""
        return doubles(self.account.used)

    @property
    def composed(self) -> Pure | Approx | None:
        """The exact sum of all requested losses; None before the first charge.

        It is also None if a charge was stated in rho.
        """
        return self.account.composed

    @property
    def left(self) -> tuple[float, float]:
        """Epsilon (of one more pure loss) and delta still to spend; under a cap in rho, rho and zero."""
        return doubles(self.account.left)

    @property
    def account(self) -> Account:
        """The terms and the exact sums at this moment."""
        return self._book.account()

    @property
    def unit(self) -> Unit | None:
        """The privacy unit of all charges; None before the first protection."""
        return self.account.terms.unit

    def bind(self, unit: Unit, declaration: str | None = None) -> None:
        """Fix the unit of all charges: losses of different neighbours do not add up.

        ``declaration``: the fingerprint of the declaration. A budget in a ledger, which is for the data of
        one name, keeps it; frames of several tables may share a budget in memory.

        Raises BudgetError if the budget already serves another unit or declaration.
        """
        in_memory = isinstance(self._book, MemoryBook)

        def bound(account: Account) -> Terms:
            account.terms.check_unit(unit)
            return account.declared(unit, None if in_memory else declaration)

        self._book.declare(bound)

    def charge(
        self,
        cost: Loss,
        label: str,
        mechanism: str = "",
        *,
        count: int = 1,
        events: Events | None = None,
        release_id: str | None = None,
        unit: Unit | None = None,
    ) -> Entry:
        """Enter ``cost``, ``count`` times, or refuse it and change nothing.

        Parameters
        ----------
        cost : the loss.
        label, mechanism : the release and its noise.
        count : the number of charges of ``cost``; n charges equal one of count n.
        events : the events of the release, where they say more than ``cost``: rules in rho and later
            accountings (`report`) count them in its place.
        release_id : a name for the release. The same name is never charged twice.
        unit : the privacy unit of the loss, which must be that of the budget.

        Raises
        ------
        BudgetExceeded : the cost is larger than what is left; a smaller cost may still fit.
        AlreadyCharged : the release was charged before.
        BudgetError : the cost is in a currency that this budget does not count.
        LedgerError : a budget in a ledger could not be written.
        """
        if self._check is not None:
            self._check(release_id)
        check_counted(cost)
        texts = printable(label, "label"), printable(mechanism, "mechanism")
        times = count if type(count) is int and count > 0 else whole(count, "count", 1)
        amount = cost.rho if isinstance(cost, ZCDP) else cost.epsilon
        if times > MOST or amount.numerator > MOST * amount.denominator:
            raise ParameterError("A loss and its count must be at most 1e290.")
        tallied = ((Event(cost), times),) if events is None else tuple(tally(events))
        if not tallied:
            raise ParameterError("'events' must hold at least one event.", "leave events out.")
        release = None if release_id is None else check_name(release_id, "release_id")
        try:
            entry = self._book.charge(Charge(cost, times, *texts, tallied, release, unit))
            if (entered := ENTERED.get()) is not None:
                entered[self._book, entry.number] = NOT_HANDED_OUT
        except PrivacyError:  # the message already says what was entered
            raise
        except BaseException as error:
            error.add_note("It is unknown whether the charge is entered: look at the entries of the budget.")
            raise
        return entry

    def answered(self, number: int, risk: float | str | None = None) -> None:
        """Note that the answer that charge ``number`` paid for is handed out.

        ``risk``: the disclosure risk of the release, computed from released numbers alone, or the reason why
        it is not known, as text. Nothing is charged. The risk that a budget has reached is the largest of all
        its releases.

        Raises
        ------
        ParameterError : no such charge, or a risk outside [0, 1].
        LedgerError : the ledger cannot be written; the charge stays entered.

        >>> budget = Budget(epsilon=1)
        >>> budget.answered(budget.charge(Pure(0.5), "crosstab of health by age").number, risk=0.125)
        >>> budget.entries["cumulative_dr_ha"].tolist()
        [0.125]
        """
        risk = None if risk is None else _risk(risk)
        if (integer(number) or 0) < 1:
            raise no_such_charge()
        entered = ENTERED.get() or {}
        if (self._book, int(number)) in entered:  # an interrupt may come before the note, or after it
            entered[self._book, int(number)] = PERHAPS_HANDED_OUT
        try:
            self._book.answer(int(number), risk)
        except LedgerError as error:
            handed_out(self._book, int(number))
            known = f"{NOT_HANDED_OUT}, because that could not be noted"
            if error.fate == UNKNOWN:
                known = f"{PERHAPS_HANDED_OUT}, as it is not known whether that was noted"
            raise type(error)(
                f"Charge {number} of the budget {self.name!r} is entered, but its answer {known}: "
                f"{error.reason}",
                "the charge stays; another release is charged anew.",
            ) from None
        handed_out(self._book, int(number))

    def store_answer(
        self, release_id: str, answer: bytes, request: dict[str, str], risk: float | str | None = None
    ) -> None:
        """Keep the answer to a charged release, for a process that tries the release again.

        The answer is durable, its digest is in the ledger, and the charge is noted as handed out. Keep
        nothing but what was released: neither a seed nor an exact number.

        Parameters
        ----------
        release_id : the release, which was charged under this name.
        answer : the release, at most 256 MiB.
        request : the arguments, as a text for each. `stored_answer` returns the answer to the same
            request alone, on data of the same declaration.
        risk : as of `answered`.

        Raises
        ------
        ParameterError : a release that was not charged, or an answer that is too large.
        BudgetError : the budget is in memory, where nothing outlives the process.
        LedgerError : the ledger cannot be written, or it keeps an answer to the release; the charge stays
            entered.

        >>> import tempfile
        >>> from pdprivacy import Ledger
        >>> folder = tempfile.TemporaryDirectory()
        >>> budget = Ledger(folder.name + "/budget.db").open("survey", Pure(1))
        >>> _ = budget.charge(Pure(0.5), "mean of age", release_id="2026-05")
        >>> budget.store_answer("2026-05", b"41.7", {"mean": "age"})
        >>> budget.stored_answer("2026-05", {"mean": "age"})
        b'41.7'
        >>> folder.cleanup()
        """
        release = check_name(release_id, "release_id")
        if not isinstance(answer, bytes) or len(answer) > MOST_ANSWER:
            raise ParameterError(f"'answer' must be at most {MOST_ANSWER} bytes (got {kind(answer)}).")
        request, risk = _texts(request), None if risk is None else _risk(risk)
        try:
            number = self._book.store(release, answer, request, risk)
        except LedgerError as error:
            known = "may not have been stored" if error.fate == UNKNOWN else "was not stored"
            raise type(error)(
                f"The release {release!r} stays charged, but its answer {known}: {error.reason}"
            ) from None
        handed_out(self._book, number)

    def stored_answer(self, release_id: str, request: dict[str, str]) -> bytes | None:
        """Return the answer that `store_answer` keeps for a release; None where it was not charged.

        Raises
        ------
        ChangedStepError : it was stored for another request, or for data declared otherwise.
        AlreadyCharged : the release was charged, and no answer to it is kept.
        LedgerError : the ledger cannot be read, or the answer is not what was stored.
        """
        return self._book.stored(check_name(release_id, "release_id"), _texts(request))

    @property
    def entries(self) -> pd.DataFrame:
        """One row per charge, with its release, its loss and the disclosure risk reached by then.

        The columns are release, mechanism, epsilon, delta, rho, time, answered, cumulative_dr_ha, release_id.
        ``release``: the label as it is stored; displays show its title. ``epsilon``, ``delta``: the
        requested loss; ``rho``: its equivalent under an accounting in rho, or by squares, else NaN.
        ``answered``: whether the answer is known to have been handed out: a charge without one is spent all
        the same. ``cumulative_dr_ha``: the largest disclosure risk from homogeneity attacks of all tables so
        far whose risk was estimated, each with the noise that its counts had at the total loss by then, its
        own included: the expected risk, averaged over records, estimated from released counts alone. NaN
        before the first release of counts by quasi-identifiers and sensitive columns. The
        risk of one release is in its ``attrs["dp"]["dr_ha"]``. Source: Liu, Zhao (2023), section 4.3, the
        bounded measure.
        """
        from pdprivacy.show import pages

        return pages.read_table(self._book)[1]

    @property
    def events(self) -> Events:
        """The events released so far, equal ones once, with their counts, as accountings take them."""
        return self._book.events()

    @partial(with_hints, prefix="private.dp.budget")
    def report(self, delta: Rational) -> pd.DataFrame:
        """The epsilon of all releases so far at this ``delta``, by every accounting, "best" last.

        Each charge keeps its noise, so a better accounting finds less than the budget counted. This epsilon
        is a guarantee if neither the releases nor their number depended on earlier answers; the cap, `total`,
        holds in any case. Nothing is given back to the budget.

        Returns a DataFrame indexed by accounting: ``epsilon``, and the ``reason`` where there is none.
        Raises ParameterError before the first charge, and for a delta outside [0, 1).

        >>> budget = Budget(epsilon=10)
        >>> _ = budget.charge(Pure(0.1), "counts", count=50)
        >>> budget.report(delta=1e-6)["epsilon"].round(2)[["basic", "optimal"]].to_dict()
        {'basic': 5.0, 'optimal': 3.17}
        """
        bounds = accountings.report(self.events, delta)
        table = pd.DataFrame(bounds, columns=["accounting", "epsilon", "reason"]).set_index("accounting")
        return table.astype({"epsilon": "float64"})

    def to_dp_events(self) -> Any:
        """Return the releases so far as an event of Google's dp-accounting (extra ``pld``).

        Raises ParameterError where a loss has no such event; MissingExtraError without dp-accounting.
        """
        return accountings.to_dp_events(self.events)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw what each release cost and what is left; needs matplotlib (extra ``plot``).

        ``ax``: where to draw, by default on a new figure. See `pdprivacy.show.plots.draw_budget`.

        Raises ParameterError for something else than axes, MissingExtraError without matplotlib.
        """
        from pdprivacy.show import pages, plots

        account, entries = pages.read_table(self._book)
        return plots.draw_budget(entries, account.terms.total, account.left, ax=ax)

    def __repr__(self) -> str:
        from pdprivacy.show import pages

        return pages.budget_block(self).plain

    def _repr_html_(self) -> str:
        from pdprivacy.show import pages

        return pages.budget_block(self).html

    @property
    def name(self) -> str:
        """Its name in a ledger; empty in memory."""
        return self._book.name


def _risk(risk: float | str) -> float | str:
    """Return a risk that may be published, or the reason why it is not known, which is a sentence."""
    if isinstance(risk, str):
        if " " in risk and len(risk) <= MOST_REASON:
            return risk
    elif is_number(risk) and not isinstance(risk, Confidential) and 0 <= risk <= 1:
        return float(risk)
    raise ParameterError("'risk' must be a probability, made of released numbers, or a reason.")


def _texts(request: Request) -> Request:
    texts = instance(request, dict, "request", '{"mean": "age"}.')
    if not all(type(text) is str for pair in texts.items() for text in pair):
        raise ParameterError("'request' must hold texts, by the names of arguments.", '{"mean": "age"}.')
    return texts
