"""The gate: the only place where private data meets noise.

The order is the guarantee: sensitivities and scales from declared facts, then the charge, then the data, then
the noise.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from pdprivacy.core import noise
from pdprivacy.core.accounting import Events
from pdprivacy.core.gate.entered import ENTERED, charging
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.records import records_of
from pdprivacy.core.gate.spec import Drawn, MethodCall, Price, Release, Task
from pdprivacy.core.gate.verification import verified
from pdprivacy.core.noise import Source
from pdprivacy.core.privacy import Approx, Pure
from pdprivacy.core.statistics import Read
from pdprivacy.text.progress import shown

if TYPE_CHECKING:
    from pdprivacy.ledger import Entry

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def noting_charges() -> Iterator[None]:
    """Add a note to an error for each charge that is entered although nothing is handed out."""
    if ENTERED.get() is not None:  # part of another release
        yield
        return
    with charging() as entered:
        try:
            yield
        except BaseException as error:
            for (book, number), known in entered.items():
                title = f"Charge {number}" + (f" of the budget {book.name!r}" if book.name else "")
                error.add_note(f"{title} is entered, but its answer {known}.")
            raise


def execute(release: Release[R], method_call: MethodCall | None = None) -> R:
    """Charge a release, read, draw, and return the published object.

    The frame of a pipeline step returns the stored object where the same ``method_call`` was released before.

    Raises
    ------
    ParameterError : a mechanism that does not fit. Nothing is charged.
    DefectError : noise, reads and price contradict each other. Nothing is charged.
    BudgetExceeded, AlreadyCharged, LedgerError : nothing is read. What fails later stays charged.
    """
    if release.facts.keeper is not None:
        make = functools.partial(_made, release)
        return release.facts.keeper.keep(release, method_call, make)  # type: ignore[no-any-return]
    with noting_charges():
        released, number, risk = _made(release, release.call.release_id)
        release.facts.budget.answered(number, risk)
    return released


@noting_charges()
def _made(release: Release[R], release_id: str | None) -> tuple[R, int, float | str | None]:
    """Charge, read and draw a release; return the published object, the number of its charge and its risk."""
    facts, task, source = release.facts, release.task, noise.source(release.call.rng)
    with records_of(facts).in_turn():  # before the charge: an interrupt of the wait costs nothing
        price, entry = charge(
            facts, task.cost, lambda cost: verified(facts, task, task.price(cost)), release.label, release_id
        )
        released, risk = read_and_draw(release, price, entry, source, release_id=release_id)
    return released, entry.number, risk


def execute_together(
    facts: Facts,
    priced: Sequence[tuple[Release[Any], Price]],
    cost: Pure | Approx,
    label: str,
    release_id: str | None,
) -> list[Any]:
    """Charge releases of one frame as one, read them at once, draw, and return the published objects.

    ``priced``: each release with its price. ``cost``: of all together.

    Raises as `execute`.
    """
    title = ", ".join(dict.fromkeys(price.title for _, price in priced))
    events = [pair for _, price in priced for pair in price.events]
    with noting_charges(), records_of(facts).in_turn():
        sources = [noise.source(release.call.rng) for release, _ in priced]
        for release, price in priced:
            verified(release.facts, release.task, price)
        _, entry = charge(facts, cost, lambda cost: Price(cost, title, events), label, release_id)
        ready = [release for release, _ in priced if not records_of(release.facts).pending]
        answers = records_of(facts).engine.collect(read for release in ready for read in release.task.reads)
        releases = [
            read_and_draw(release, price, entry, source, answers, release_id)
            for (release, price), source in zip(priced, sources, strict=True)
        ]
        risks = [risk for _, risk in releases if isinstance(risk, float)]
        reasons = [risk for _, risk in releases if isinstance(risk, str)]
        facts.budget.answered(entry.number, max(risks, default=next(iter(reasons), None)))
    return [released for released, _ in releases]


def charge(
    facts: Facts,
    cost: Pure | Approx,
    price_of: Callable[[Pure | Approx], Price],
    label: str,
    release_id: str | None,
) -> tuple[Price, Entry]:
    """Charge a release of this cost, and return its price with the entry: one atomic step.

    A release of a secret part may have another loss than the whole pays, which depends on earlier releases.
    """

    def enter(loss: Pure | Approx, events: Events) -> Entry:
        return facts.budget.charge(
            loss,
            label,
            price.title,
            count=1 if facts.secret else price.times,
            events=events,
            release_id=release_id,
            unit=facts.unit,
        )

    if facts.secret is None:
        price = price_of(cost)
        return price, enter(price.cost, price.events)
    with facts.secret.turn():
        price = price_of(facts.secret.loss_of_part(cost))
        return price, facts.secret.charge(price.cost.times(price.times), cost, enter)


def read_and_draw(
    release: Release[R],
    price: Price,
    entry: Entry,
    source: Source,
    answers: Mapping[Read, Any] | None = None,
    release_id: str | None = None,
) -> tuple[R, float | str | None]:
    """Read and draw a release that was charged; return the published object and its disclosure risk.

    ``answers``: exact answers that were read ahead, for several releases at once. ``release_id``: that of the
    charge.
    """
    engine, first, exact = records_of(release.facts).engine, release.task, None
    task: Task | None = first
    outcomes: list[Any] = []
    rounds: Iterable[int] = range(first.rounds)
    if release.progress is not False:
        rounds = shown(rounds, first.rounds, release.call.statistic, release.progress, long=True)
    with closing(number for number in rounds) as numbers:  # no interrupt leaves a bar behind
        for _ in numbers:
            assert task is not None
            if reads := task.reads:
                exact = task.exact(
                    [answers[read] if answers and read in answers else read.on(engine) for read in reads]
                )
            outcomes.append(task.draw(exact, price, source))
            task = task.after(outcomes[-1])
    return release.publish(release, Drawn(price, first.cost, outcomes, source.seeded, entry, release_id))


def executed(function: Callable[P, Release[R]]) -> Callable[P, R]:
    """A function that makes a release, as the method that executes it."""

    @functools.wraps(function)
    def method(*args: P.args, **kwargs: P.kwargs) -> R:
        return execute(function(*args, **kwargs), MethodCall(function, args, kwargs))

    return method
