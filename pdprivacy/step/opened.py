"""A step while its body runs: every release of its frame is kept, or was kept before and is given again."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from pdprivacy import metadata
from pdprivacy.errors import (
    AlreadyCharged,
    BudgetError,
    ChangedStepError,
    LedgerError,
    ParameterError,
    StepError,
)
from pdprivacy.ledger import Budget, Entry
from pdprivacy.metadata import KEY
from pdprivacy.protection import ROW_STEPS, Protected
from pdprivacy.release.spec import Asked, Release
from pdprivacy.releases.bundle import VERBS
from pdprivacy.schema.released import ReleasedSchema, released_schema, violations
from pdprivacy.step.folder import Folder, check_file_name
from pdprivacy.step.labels import check_labels
from pdprivacy.step.parquet import Released, to_bytes
from pdprivacy.step.texts import argument_texts, differing, text_of

__all__ = ["Opened", "Purse"]

STAYS = "No result was written; the releases that were made stay charged, and stored."
RETURN = (
    'return {"age": private.dp.mean("age", epsilon=0.1)}, or one release, as it was released; call again '
    "with the same release_id: what is stored is not charged again."
)

ADMITTED = {*map(str, VERBS), *ROW_STEPS, "groupby", "split", "plan"}
"""What a body may ask of its frame: releases that are charged one by one, and what costs nothing."""

_TOGETHER = "makes several releases of one charge, which a step cannot keep one by one"
_ANOTHER = "draws another part each time the step is tried again"
_REASONS = {
    **dict.fromkeys(("batch", "marginals", "plan_releases", "partition"), _TOGETHER),
    **dict.fromkeys(("sample", "suppress_outliers"), _ANOTHER),
    "remaining": "tells another number each time the step is tried again",
}
_CONFIDENTIAL = "gives confidential numbers to the curator, which are no result of a step"


class Purse(Budget):
    """The budget of a step: it pays for one release at a time, by the name that the step gives it."""

    def __init__(self, budget: Budget) -> None:
        self._book, self.of_group = budget._book, budget.of_group
        self._release_id: str | None = None
        self._answer: tuple[int, float | None] | None = None

    def pays_for(self, release_id: str | None) -> None:
        """Pay for the release of this name next; None: for nothing."""
        self._release_id, self._answer = release_id, None

    def charge(self, cost: Any, label: str, mechanism: str = "", **more: Any) -> Entry:
        """As `Budget.charge`, for the release that is being made alone."""
        if self._release_id is None or more.get("release_id") != self._release_id:
            raise BudgetError(
                "The budget of a step pays for releases of its frame alone, one by one. Nothing was charged.",
                'private.dp.mean("age", epsilon=0.1) on the frame that the step was given.',
            )
        return super().charge(cost, label, mechanism, **more)

    def answered(self, number: int, risk: float | None = None) -> None:
        """Keep what is to be noted once the answer is stored."""
        self._answer = (number, risk)

    @property
    def risk(self) -> float | None:
        """The disclosure risk of the release that was made."""
        return None if self._answer is None else self._answer[1]

    def stored(self) -> None:
        """Note that the answer is stored: that is what handing it out is, here."""
        if self._answer is not None:
            self.handed_out(self._answer[0])
            super().answered(*self._answer)


class _Kept(NamedTuple):
    """A release of the step, as it is stored."""

    number: int
    attrs: dict[str, Any]
    schema: ReleasedSchema


class Opened:
    """An open step; a `Keeper` of the releases of its frame."""

    def __init__(self, folder: Folder, purse: Purse) -> None:
        self._folder, self._purse = folder, purse
        self._kept: dict[str, _Kept] = {}
        self._turn = threading.RLock()
        self._over = False

    @property
    def made(self) -> int:
        """How many releases of the step are stored."""
        return len(self._kept)

    def close(self) -> None:
        """Make no more releases."""
        self._over = True

    def admit(self, method: str) -> None:
        """As `Keeper`: raises ParameterError, and StepError once the body has ended."""
        self._check_open()
        if method not in ADMITTED:
            raise ParameterError(
                f"{method!r} is not for steps: it {_REASONS.get(method, _CONFIDENTIAL)}. "
                "Nothing was charged.",
                "ask for releases one by one within a step; use the rest outside, on df.dp.protect(...).",
            )

    def _check_open(self) -> None:
        if self._over:
            raise StepError(
                f"The step {self._folder.release_id!r} is over, and its frame with it. Nothing was charged.",
                "release within the body of the step, or protect the frame for releases outside of it.",
            )

    def keep(self, release: Release[Any], asked: Asked, make: Callable[[str], Any]) -> Any:
        """As `Keeper`.

        Raises ChangedStepError where a release that is stored was another one; AlreadyCharged where it was
        charged before and is not stored. Nothing is charged then.
        """
        protected, arguments = release.facts, asked.arguments()
        with self._turn:
            self._check_open()
            if arguments.get("release_id") is not None:
                raise ParameterError(
                    "The releases of a step are named by the step. Nothing was charged.",
                    "leave release_id out within the body of a step.",
                )
            check_labels(protected.domain)
            number = len(self._kept) + 1
            call = _call(protected, asked.function.__qualname__, arguments)
            noted = self._folder.noted(number)
            if noted is None:
                released, schema = self._make(number, call, make)
            else:
                self._check_same(number, noted["call"], call)
                released = self._folder.read(number)
                schema = released_schema(released)
            facts = copy.deepcopy(released.attrs[KEY])  # the body may change what it is given
            self._kept[facts["release_id"]] = _Kept(number, facts, schema)
            return released

    def _make(
        self, number: int, call: dict[str, str], make: Callable[[str], Any]
    ) -> tuple[Released, ReleasedSchema]:
        """Charge and make a release, and store it at once; as it is stored, with its schema."""
        self._folder.reserve()
        release_id = f"{self._folder.release_id}/{number}"
        lost = False
        self._purse.pays_for(release_id)
        try:
            released = make(release_id)
            data, stored = to_bytes(released)
            self._folder.store(number, {"call": call, "risk": self._purse.risk}, data)
            try:
                self._purse.stored()
            except LedgerError as error:
                reason = str(error).partition("because that could not be noted: ")[2].partition("\n")[0]
                raise StepError(
                    f"Release {number} of the step {self._folder.release_id!r} is charged and stored, but "
                    f"that could not be noted: {reason}",
                    "call the step again with the same release_id: what is stored is free.",
                ) from None
        except AlreadyCharged:
            lost = True
        finally:
            self._purse.pays_for(None)
        if lost:
            raise self._lost(release_id)
        schema = released_schema(released)
        failed = violations(stored, schema)
        if failed:
            raise StepError(
                f"Release {number} of the step {self._folder.release_id!r} is charged and stored, and does "
                f"not meet its schema ({', '.join(failed)})."
            )
        return stored, schema

    def _lost(self, release_id: str) -> AlreadyCharged:
        made = self._folder.made()
        there = f" Stored are the releases {made}." if made else ""
        return AlreadyCharged(
            f"The release {release_id!r} was charged before, and its answer is not in "
            f"{str(self._folder.state)!r}: the run that paid for it ended before it could be stored, or it "
            f"was made elsewhere under this name. Nothing was charged again.{there}",
            "the answer is lost; another release_id pays for all releases of the step anew.",
        )

    def _check_same(self, number: int, before: dict[str, str], now: dict[str, str]) -> None:
        changed = differing(before, now)
        if changed:
            raise ChangedStepError(
                f"Release {number} of the step {self._folder.release_id!r} is stored, and was another one: "
                f"another {', another '.join(map(repr, changed))}. Nothing was charged.",
                "go on with the body as it was, or choose another release_id.",
            )

    # ------------------------------------------------------------ what the body returns

    def results(self, named: Mapping[Any, Any]) -> dict[str, dict[str, Any]]:
        """Number and file digest of each release that the body returned under a name.

        Raises StepError for what is none of them, or is no more what was released: nothing is a result then.
        """
        found: dict[str, dict[str, Any]] = {}
        for name, returned in named.items():
            kept = self._returned(len(found) + 1, returned)  # only then is the name one that may be shown
            plain = check_file_name(name, "the name of a result")
            facts = {"release": kept.number, "digest": self._folder.digest_of(kept.number)}
            if plain.casefold() in map(str.casefold, found) or facts in found.values():
                raise self._refused(len(found) + 1, returned, "the same name or release is there already")
            found[plain] = facts
        if not found:
            raise StepError(
                f"The body of the step {self._folder.release_id!r} returned no release. {STAYS}", RETURN
            )
        return found

    def _returned(self, place: int, returned: Any) -> _Kept:
        stored = getattr(returned, "attrs", {}).get(KEY)
        known = self._kept.get(str(stored.get("release_id"))) if isinstance(stored, dict) else None
        if not isinstance(returned, pd.Series | pd.DataFrame) or known is None:
            raise self._refused(place, returned, "it is no release of this step's frame")
        if stored != known.attrs or not metadata.verify(returned) or violations(returned, known.schema):
            raise self._refused(place, returned, "it was changed after it was released")
        return known

    def _refused(self, place: int, returned: Any, reason: str) -> StepError:
        return StepError(
            f"The body of the step {self._folder.release_id!r} returned a {type(returned).__name__} "
            f"that cannot be a result (number {place} of them): {reason}. {STAYS}",
            RETURN,
        )


def _call(protected: Protected, method: str, arguments: Mapping[str, Any]) -> dict[str, str]:
    """What is asked of which records, in the same words in every run; not what the records are."""
    asked = {name: value for name, value in arguments.items() if name != "release_id"}
    return {
        "release": method,
        **argument_texts(asked, arrays=True),
        "after": text_of([step.text for step in protected.lineage], "after"),
        "declaration": protected.domain.fingerprint(),
        "neighbors": str(protected.unit),
    }
