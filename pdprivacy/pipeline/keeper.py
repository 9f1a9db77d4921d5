"""The releases of a run of a step: each is charged and stored once, and read from the ledger afterwards.

Calls and their arguments are compared as text (`pdprivacy.frames.call_texts`).
"""

from __future__ import annotations

import copy
import shutil
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pandas as pd

from pdprivacy.core.gate.spec import MethodCall, Release
from pdprivacy.errors import (
    AlreadyCharged,
    BudgetError,
    ChangedStepError,
    LedgerError,
    ParameterError,
    PrivacyError,
    StepError,
)
from pdprivacy.frames import ROW_STEPS
from pdprivacy.frames.call_texts import call_texts, differing
from pdprivacy.ledger import Budget, Ledger
from pdprivacy.ledger.account import Risk
from pdprivacy.pipeline.folder import Folder, check_file_name
from pdprivacy.pipeline.release_schema import ReleasedSchema, released_schema, violations
from pdprivacy.pipeline.shapes import check_labels
from pdprivacy.pipeline.storage import from_bytes, to_bytes
from pdprivacy.releases import metadata
from pdprivacy.releases.batches import VERBS
from pdprivacy.releases.metadata import Released
from pdprivacy.text.marks import KEY

ROOM = 4 * 2**20
"""The room on the disk of the ledger, in bytes, without which no release is paid for."""

LOST = "The release was charged, and is lost: nobody has seen it, and it is not made again."
ANEW = "another release_id, which is charged anew"
STAYS = "No result was written; the releases that were made stay charged, and stored."
RETURN = (
    'return {"age": private.dp.mean("age", epsilon=0.1)}, or one release, as it was released; call again '
    "with the same release_id: what is stored is not charged again."
)

ADMITTED = {*map(str, VERBS), *ROW_STEPS, "groupby", "split", "plan"}
"""The methods that a body may call: releases that are charged one by one, and methods that cost nothing."""

_TOGETHER = "makes several releases of one charge, which a step cannot keep one by one"
_ANOTHER = "draws another part each time the step is tried again"
_REASONS = {
    **dict.fromkeys(("batch", "marginals", "plan_releases", "partition"), _TOGETHER),
    **dict.fromkeys(("sample", "suppress_outliers"), _ANOTHER),
    "remaining": "returns another number each time the step is tried again",
}
_CONFIDENTIAL = "returns confidential numbers to the curator, which cannot be results of a step"


Make: TypeAlias = Callable[[str], tuple[Released, int, float | str | None]]
"""What makes a release under an id: it returns the number of the charge and the disclosure risk, too."""


class StoredRelease(NamedTuple):
    """A stored release: its number, its file, its metadata and its schema."""

    number: int
    data: bytes
    attrs: dict[str, Any]
    schema: ReleasedSchema


class StepKeeper:
    """The `Keeper` of the releases of a step, while the body of the step runs.

    The ledger stores the releases, or the folder where the ledger cannot.

    Parameters
    ----------
    folder, budget, ledger : of the step. The budget then pays for releases of the step alone.
    terms : what must be the same in each run, beside the calls.
    note : called before a release is charged, and when one was stored.
    """

    def __init__(
        self, folder: Folder, budget: Budget, ledger: Ledger, terms: dict[str, str], note: Callable[[], None]
    ) -> None:
        self._folder, self._budget, self._ledger = folder, budget, ledger
        self._terms, self._note = terms, note
        self._paying_for: str | None = None
        budget._check = self._check_charge
        self._step = f"step {folder.release_id!r}"
        self._kept: dict[str, StoredRelease] = {}
        self._turn = threading.RLock()
        self._over = False

    @property
    def made(self) -> int:
        """The number of releases of this run that are stored."""
        return len(self._kept)

    def close(self) -> None:
        """Refuse all further releases."""
        self._over = True

    def admits(self, method: str) -> bool:
        """Implement `Keeper.admits`."""
        return method in ADMITTED

    def admit(self, method: str) -> None:
        """Implement `Keeper.admit`; raise StepError once the body has ended."""
        self._check_open()
        if not self.admits(method):
            raise ParameterError(
                f"{method!r} is not for steps: it {_REASONS.get(method, _CONFIDENTIAL)}. "
                "Nothing was charged.",
                "ask for releases one by one within a step; use the rest outside, on df.dp.protect(...).",
            )

    def _check_charge(self, release_id: str | None) -> None:
        """Refuse a charge for anything but the release that is being made."""
        if release_id is None or release_id != self._paying_for:
            raise BudgetError(
                "The budget of a step pays for releases of its frame alone, one by one. Nothing was charged.",
                "private.dp.count(epsilon=0.1), or another release of the frame that the step was given.",
            )

    def _check_open(self) -> None:
        if self._over:
            raise StepError(
                f"The {self._step} is over, and its frame with it. Nothing was charged.",
                "release within the body of the step, or protect the frame for releases outside of it.",
            )

    def keep(self, release: Release[Any], method_call: MethodCall, make: Make) -> Any:
        """Implement `Keeper.keep`.

        Raises ChangedStepError where the stored release is another one; AlreadyCharged where the release was
        charged before and is not stored. Nothing is charged then.
        """
        protected, arguments = release.facts, method_call.arguments()
        with self._turn:
            self._check_open()
            if arguments.pop("release_id", None) is not None:
                raise ParameterError(
                    "The releases of a step are named by the step. Nothing was charged.",
                    "leave release_id out within the body of a step.",
                )
            check_labels(protected.domain)
            number = self.made + 1
            release_id = f"{self._folder.release_id}/{number}"
            call = call_texts(protected, method_call.function.__qualname__, arguments)
            data = self._stored(number, release_id, call)
            if data is None:
                data, released = self._make(number, call, make)
            else:
                released = from_bytes(data, f"{release_id}.parquet")
            facts = copy.deepcopy(released.attrs[KEY])  # the body may change what it is given
            self._kept[release_id] = StoredRelease(number, data, facts, released_schema(released))
            return released

    def _request(self, call: dict[str, str]) -> dict[str, str]:
        """Return what a stored answer is for: the terms of the step, and the call."""
        return {**self._terms, **call}

    def _stored(self, number: int, release_id: str, call: dict[str, str]) -> bytes | None:
        """Return the file of a stored release, None where it was not charged yet."""
        in_folder, request = self._folder.kept(number), self._request(call)
        try:
            answer = self._budget.stored_answer(release_id, request)
        except AlreadyCharged:
            if in_folder is None:
                raise self._lost(release_id) from None
        else:
            if answer is None and in_folder is not None:
                raise another_ledger(self._folder.release_id)
            return answer
        note, data = in_folder
        if changed := differing(note["call"], call):
            raise ChangedStepError(
                f"The stored release {release_id!r} was made with another "
                f"{', another '.join(map(repr, changed))}. Nothing was charged.",
                "ask for the same release as before, or choose another release_id.",
            )
        with suppress(PrivacyError):  # the file is as good
            self._budget.store_answer(release_id, data, request, note["risk"])
        return data

    def _make(self, number: int, call: dict[str, str], make: Make) -> tuple[bytes, Released]:
        """Charge, make and store a release; return its file, and the release as it is read from the file."""
        self._check_room()
        self._note()
        release_id = f"{self._folder.release_id}/{number}"
        self._paying_for = release_id
        try:
            released, charge, risk = make(release_id)
        except AlreadyCharged:  # meanwhile
            raise self._lost(release_id) from None
        finally:
            self._paying_for = None
        data, stored = to_bytes(released)
        self._store(number, release_id, call, data, charge, risk)
        self._note()
        if failed := violations(stored, released_schema(released)):
            raise StepError(
                f"The release {release_id!r} is charged and stored, and does not meet its schema "
                f"({', '.join(failed)})."
            )
        return data, stored

    def _store(
        self, number: int, release_id: str, call: dict[str, str], data: bytes, charge: int, risk: Risk
    ) -> None:
        """Store a release in the ledger, or in the folder where the ledger cannot store it."""
        try:
            self._budget.store_answer(release_id, data, self._request(call), risk)
        except (LedgerError, ParameterError):
            self._folder.keep(number, data, {"call": call, "risk": risk}, LOST, ANEW)
            try:
                self._budget.answered(charge, risk)
            except LedgerError as error:
                raise StepError(
                    f"The release {release_id!r} is charged, and stored in the folder of the step, as the "
                    f"ledger could not take it: {error.reason}",
                    "call the step again with the same release_id: what is stored is free.",
                ) from None

    def _check_room(self) -> None:
        """Refuse a release while the disk of the ledger has no room to store it."""
        path = Path(self._ledger.address)
        if path.is_file() and shutil.disk_usage(path.parent).free < ROOM:
            raise StepError(
                f"The disk of the ledger {self._ledger.address!r} has less than {ROOM >> 20} MiB left, so "
                "that a release could be paid for and not be stored. Nothing was charged for this release.",
                "make room there, and call again with the same release_id.",
            )

    def _lost(self, release_id: str) -> AlreadyCharged:
        return AlreadyCharged(
            f"The release {release_id!r} was charged before, and its answer is not stored: another run is "
            "making it, or the run that paid for it was cut off, or the charge was made outside of the step. "
            "Nothing was charged again.",
            "call again when no other run is under way; if the answer is lost, another release_id pays for "
            "all releases of the step anew.",
        )

    def rescue(self) -> Path:
        """Write the releases of this run to files, for a step that cannot go on; return their folder."""
        for kept in self._kept.values():
            self._folder.keep(kept.number, kept.data, None, "Nothing was charged again.")
        return self._folder.release(1).parent

    # ------------------------------------------------------------ what the body returns

    def results(self, named: Mapping[Any, Any]) -> dict[str, StoredRelease]:
        """Return the stored release for each that the body returned under a name.

        Raises StepError for any other object, and for a release that was changed: nothing is a result then.
        """
        stored_releases: dict[str, StoredRelease] = {}
        numbers: set[int] = set()
        for number, (name, returned) in enumerate(named.items(), 1):
            kept, fault = self._stored_release_of(returned)
            if kept is not None:  # only then may the name be shown
                plain = check_file_name(name, "the name of a result", RETURN)
                if plain.casefold() not in map(str.casefold, stored_releases) and kept.number not in numbers:
                    stored_releases[plain] = kept
                    numbers.add(kept.number)
                    continue
                fault = "its name or its release is a result already"
            raise StepError(
                f"The body of the {self._step} returned a {type(returned).__name__} that cannot be a result "
                f"(number {number} of them): {fault}. {STAYS}",
                RETURN,
            )
        if not stored_releases:
            raise StepError(f"The body of the {self._step} returned no release. {STAYS}", RETURN)
        return stored_releases

    def _stored_release_of(self, returned: Any) -> tuple[StoredRelease | None, str]:
        """Return the stored release that an object is, or None and why it is not one."""
        attrs = getattr(returned, "attrs", {}).get(KEY)
        kept = self._kept.get(str(attrs.get("release_id"))) if isinstance(attrs, dict) else None
        if not isinstance(returned, pd.Series | pd.DataFrame) or kept is None:
            return None, "it is not a release of this step's frame"
        if attrs != kept.attrs or not metadata.verify(returned) or violations(returned, kept.schema):
            return None, "it was changed after it was released"
        return kept, ""


def another_ledger(release_id: str) -> StepError:
    """Return the error for a ledger that lacks the charge of a stored release."""
    return StepError(
        f"The ledger does not hold the charges of the stored releases of the step {release_id!r}: it is "
        "another ledger, or an older copy. Nothing was charged.",
        "name the ledger that paid for them.",
    )
