"""Records in one SQLite file, shared by the processes of one machine."""

# ruff: noqa: D102 - a store is documented on the protocol
from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from pdprivacy.errors import LedgerError, ParameterError, got
from pdprivacy.ledger import database
from pdprivacy.ledger.database import FAULTS, Records, told
from pdprivacy.ledger.files import NOTHING, refuse_odd_file
from pdprivacy.ledger.shared import Reading, Shared, shared

__all__ = ["SQLiteStore"]

PATIENCE = 60.0  # seconds that a transaction waits for others


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
        if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
            raise ParameterError(f"'path' must be a path (got {got(path)}).", 'SQLiteStore("budget.db")')
        if not os.fspath(path) or "\0" in os.fspath(path):
            raise ParameterError(f"'path' must name a file (got {got(path)}).", 'SQLiteStore("budget.db")')
        if not isinstance(patience, int | float) or not 0 <= patience < math.inf:
            raise ParameterError(f"'patience' must be a number of seconds (got {got(patience)}).")
        self._path = os.path.abspath(os.fspath(path))
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

    @contextmanager
    def writing(self) -> Iterator[Records]:
        here = self._shared()
        with here.alone(self._patience) as until:
            records = None
            try:
                records = here.begin(until, self._patience)
                yield records
                records.end()
                here.commit(records, until)
            finally:
                if records is not None:
                    records.end()
                here.rollback(records is None or records.failed)

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
        here = self._shared()
        try:
            reading = here.read(self._patience)
        except FAULTS as error:
            raise told(error, self._path) from None
        try:
            yield reading
            here.refuse_torn(reading)
        finally:
            here.leave(reading)

    def close(self) -> None:
        with suppress(LedgerError):
            self._shared().close(self._patience)

    def check(self) -> None:
        """Refuse with a LedgerError a database whose pages or indexes are damaged; reads all of it."""
        with self.reading() as records:
            if records.damage():
                raise LedgerError(
                    f"The ledger {self._path!r} is damaged.",
                    "restore it from a copy made by ledger.backup(path).",
                )

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the ledger as it is at this moment into a new file, a ledger itself, durably.

        Waits for nobody, and nobody waits for it. Raises LedgerError where something is at the path already.
        """
        target = SQLiteStore(path).address
        with self._reading() as reading:
            try:
                if os.path.lexists(target) or refuse_odd_file(target):
                    raise FileExistsError(target)
                database.copy(reading.connection, target)
            except FileExistsError:
                raise LedgerError(
                    f"{target!r} exists already. No copy was made.", "name a new file for the copy."
                ) from None
            except FAULTS as error:
                raise told(error, target, "No copy was made.") from None
