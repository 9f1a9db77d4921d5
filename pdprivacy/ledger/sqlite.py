"""Records in one SQLite file, shared by the processes of one machine."""

# ruff: noqa: D102 - a store is documented on the protocol
from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from pdprivacy import checks
from pdprivacy.errors import LedgerError, ParameterError, TamperedLedgerError, got
from pdprivacy.ledger import database
from pdprivacy.ledger.database import FAULTS, Records, told
from pdprivacy.ledger.files import refuse_odd_file
from pdprivacy.ledger.shared import Reading, Shared, shared
from pdprivacy.ledger.store import NOTHING

__all__ = ["SQLiteStore"]

PATIENCE = 60.0  # seconds that a transaction waits for others


class Writing:
    """A transaction: entered if its block ends without an error. Like `Turn`, it survives interrupts."""

    def __init__(self, here: Shared, patience: float) -> None:
        self._here, self._patience = here, patience
        self._turn = here.alone(patience)
        self._until = 0.0
        self._records: Records | None = None
        self._taken = False

    def __enter__(self) -> Records:
        try:
            self._until = self._turn.__enter__()
            self._taken = True
            self._records = self._here.begin(self._until, self._patience)
            return self._records
        except BaseException:
            self._leave_twice()
            raise

    def __exit__(self, kind: object, *_: object) -> None:
        records = self._records
        try:
            if kind is None and records is not None:
                records.end()
                self._here.commit(records, self._until)
        finally:
            self._leave_twice()

    def _leave_twice(self) -> None:
        left = False
        try:
            self._leave()
            left = True
        finally:
            if not left:
                self._leave()

    def _leave(self) -> None:
        if not self._taken:  # an error of the turn itself gives back what it took
            return
        records = self._records
        if records is not None:
            records.end()
        self._here.rollback(records is None or records.failed)
        self._turn.__exit__()
        self._taken = False


class SQLiteStore:
    """Records in a file of SQLite: durable, and shared by all processes of one machine.

    Parameters
    ----------
    path : the file; the first transaction makes it where nothing is. Symbolic links are followed. Not on a
        network file system.
    patience : seconds that a transaction waits for others before it gives up with a LedgerError.

    The directory has to be one that may be written to: SQLite keeps a log (``-wal``) and its index (``-shm``)
    beside the file while it is used, and ``-lock`` is locked. Copy a ledger with ``backup``.
    """

    def __init__(self, path: str | os.PathLike[str], *, patience: float = PATIENCE) -> None:
        text = checks.path(path, "path", 'Ledger("budget.db").')
        if not isinstance(patience, int | float) or not 0 <= patience < math.inf:
            raise ParameterError(f"'patience' must be a number of seconds (got {got(patience)}).")
        self._path = os.path.abspath(os.path.expanduser(text))
        self._here: Shared | None = None
        self._patience = min(float(patience), 1e6)

    def __reduce__(self) -> Any:
        return partial(SQLiteStore, patience=self._patience), (self._path,)  # connections stay here

    def __repr__(self) -> str:
        return f"SQLiteStore({self._path!r})"

    @property
    def address(self) -> str:
        return self._path

    def _shared(self) -> Shared:
        here = self._here
        try:  # links on the way to the file are followed each time, unless they lead to the one that is open
            if here is None or not here.leads_here(self._path):
                self._here = here = shared(os.path.realpath(self._path))
        except FAULTS as error:
            raise told(error, self._path, NOTHING) from None
        return here

    def writing(self) -> Writing:
        return Writing(self._shared(), self._patience)

    @contextmanager
    def reading(self) -> Iterator[Records]:
        with self._reading() as reading:
            records = Records(reading.connection, self._path)
            try:
                yield records
            finally:
                records.end()

    @contextmanager
    def _reading(self) -> Iterator[Reading]:
        here, reading = self._shared(), None
        try:
            try:
                reading = here.read(self._patience)
            except FAULTS as error:
                raise told(error, self._path) from None
            try:
                yield reading
            except TamperedLedgerError:
                here.refuse_torn(reading)
                raise
            here.refuse_torn(reading)
        finally:
            if reading is not None:
                here.leave(reading)

    def close(self) -> None:
        with suppress(LedgerError):
            self._shared().close(self._patience)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the ledger as it is at this moment into a new file, a ledger itself, durably.

        Waits for nobody, and nobody waits for it. Raises LedgerError where something is at the path already.
        """
        target = SQLiteStore(path).address
        with self._reading() as reading:
            try:
                if os.path.lexists(target) or refuse_odd_file(target, "No copy was made."):
                    raise FileExistsError(target)
                database.copy(reading.connection, target)
            except FileExistsError:
                raise LedgerError(
                    f"{target!r} exists already. No copy was made.", "name a new file for the copy."
                ) from None
            except FAULTS as error:
                raise told(error, target, "No copy was made.") from None
