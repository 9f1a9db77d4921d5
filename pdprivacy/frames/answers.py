"""Answers that a protected frame gives again, at no cost, where an equal call is repeated in a process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import pandas as pd

from pdprivacy.core.gate.execute import noting_charges
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.spec import MethodCall, Price, Release
from pdprivacy.declaration.domain import Domain
from pdprivacy.errors import ParameterError
from pdprivacy.frames.call_texts import call_texts
from pdprivacy.text.marks import ANSWERED_BEFORE, KEY

Make: TypeAlias = Callable[[str | None], tuple[Any, int, float | str | None]]
"""What charges and makes a release: it returns the number of the charge and the disclosure risk, too."""

_SHOWN_ONLY = ("progress",)
"""Arguments that change no answer."""


class AnswerMemory:
    """The `Keeper` of a frame that is protected with ``reuse=True``.

    It answers a call again by a copy of the earlier release, with its metadata and a mark for displays, and
    charges nothing. Calls are equal if their method, all arguments with defaults filled in, declaration, unit
    and row steps are; the records are those of one protected frame, which never change. So are plans of equal
    calls. Calls with a seed, of a seeded frame, and with arguments that have no text of their own are charged
    each time; so are batches with constraints, and methods that draw or divide records.

    The guarantee of the budget is unchanged. An answer given again is a function of an earlier release, and
    so post-processing. Whether a call is charged is a function of the calls before it, which the analyst
    made, and of those among them that raised an error, which the analyst saw: the key is made of public facts
    and arguments, and no cell, exact number or noise is compared, hashed or stored. So the next charge
    depends on the data through earlier answers alone, as every charge that an analyst decides on does.

    A memory belongs to the process: a forked process knows the answers until the fork.
    """

    def __init__(self) -> None:
        self._answers: dict[tuple[Hashable, ...], tuple[list[Any], Any]] = {}
        self._turns: dict[tuple[Hashable, ...], threading.RLock] = {}

    def admits(self, method: str) -> bool:  # noqa: ARG002
        """Implement `Keeper.admits`: all methods apply."""
        return True

    def admit(self, method: str) -> None:
        """Implement `Keeper.admit`."""

    def keep(self, release: Release[Any], method_call: MethodCall | None, make: Make) -> Any:
        """Implement `Keeper.keep`. Equal calls of several threads are charged once."""
        key = _key(release, method_call)
        if key is None:
            return _made(release, make)
        return self._answer(key, [release], lambda: [_made(release, make)])[0]

    def keep_together(
        self,
        priced: Sequence[tuple[Release[Any], Price]],
        terms: tuple[Hashable, ...],
        secret: object,
        make: Callable[[], list[Any]],
    ) -> list[Any]:
        """Return the answers of an equal plan again, or those that ``make`` charges as one and returns.

        ``terms``: the cost of all releases, their label and their name, which belong to the request.
        ``secret``: the secret part that the records are, which pays for all releases at once.
        """
        releases = [release for release, _ in priced]
        keys = [_key(release, release.method_call) for release in releases]
        if None in keys:
            return make()
        return self._answer((id(secret), *terms, *keys), releases, make, secret)

    def _answer(
        self,
        key: tuple[Hashable, ...],
        releases: Sequence[Release[Any]],
        make: Callable[[], list[Any]],
        secret: object = None,
    ) -> list[Any]:
        """Return copies of the earlier answers to a key, or the answers that ``make`` charges and returns."""
        if key not in self._answers:
            # a turn that another thread has during a fork is never over in the new process
            with self._turns.setdefault((os.getpid(), *key), threading.RLock()):
                if key not in self._answers:
                    released = make()
                    # an object whose id is in the key must live as long as the key
                    owners = [secret, *((each.facts.budget, each.facts.secret) for each in releases)]
                    self._answers[key] = [copy_of(each) for each in released], owners
                    return released
        answers = [copy_of(each) for each in self._answers[key][0]]
        for number, each in enumerate(answers):
            each.attrs[ANSWERED_BEFORE] = number
        return answers


def _made(release: Release[Any], make: Make) -> Any:
    """Charge and make a release, and note its answer in the budget."""
    with noting_charges():
        released, charge, risk = make(release.call.release_id)
        release.facts.budget.answered(charge, risk)
    return released


def _key(release: Release[Any], method_call: MethodCall | None) -> tuple[Hashable, ...] | None:
    """Return what equal calls on equal frames have in common; None for a call that is charged each time."""
    if method_call is None:
        return None
    facts, arguments = release.facts, method_call.arguments()
    if release.call.rng is not None or arguments.get("rng") is not None or facts.seeded:
        return None
    for name in _SHOWN_ONLY:
        arguments.pop(name, None)
    try:
        texts = call_texts(facts, method_call.function.__qualname__, arguments)
    except ParameterError:  # an argument has no text of its own
        return None
    first = method_call.args[0]
    groups = "" if isinstance(first, Facts) else Domain(first.keys).fingerprint()
    steps = tuple([(step.text, step.declaration) for step in facts.lineage])
    return (*texts.items(), groups, steps, facts.scope, id(facts.budget), id(facts.secret))


def copy_of(released: Any) -> Any:
    """Return a release in memory of its own: no change of it reaches another copy."""
    copied = released.copy(deep=True)
    copied.index = released.index.copy(deep=True)  # pandas shares the labels
    if isinstance(copied, pd.DataFrame):
        copied.columns = released.columns.copy(deep=True)
    return copied


def was_answered_before(released: Any) -> bool:
    """Return whether this is the answer of an earlier call, given again at no cost."""
    return ANSWERED_BEFORE in getattr(released, "attrs", {})


def gives_again(released: Any, other: Any) -> bool:
    """Return whether an answer of an earlier call is the same release as another object."""
    number, attrs = released.attrs[ANSWERED_BEFORE], getattr(other, "attrs", {})
    return bool(attrs.get(KEY) == released.attrs.get(KEY) and attrs.get(ANSWERED_BEFORE, number) == number)
