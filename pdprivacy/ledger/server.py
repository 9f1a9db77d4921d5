"""A ledger in a database of a PostgreSQL server, for budgets that several machines share.

SQLAlchemy (the extra ``server``) is imported when a store is made, a connection is opened when it is used.
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pdprivacy.errors import LedgerError, MissingExtraError, ParameterError, got
from pdprivacy.ledger.postgres import (
    APPEND_ONLY,
    FORMAT,
    INDEXES,
    LARGEST,
    PAGE,
    record,
    refused,
    sentence,
    statements,
    unreachable,
)
from pdprivacy.ledger.store import NOTHING, UNKNOWN, Head, Row

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

__all__ = ["ServerStore"]


EXAMPLE = "postgresql://user:password@host/database"
SHOWN = ("host", "port", "dbname", "service", "options")  # parts of a query in a URL that hold no secret


class ServerStore:
    """The records in a PostgreSQL database: many machines write, one at a time, and each sees all before it.

    A writer waits for its turn on an advisory lock, where the server keeps the order of arrival, and then
    begins with ``UPDATE pdprivacy_ledger SET turn = turn + 1``. That one row stays locked until the
    transaction ends, and in READ COMMITTED every later statement sees all that was committed before
    it: writers are serial by the row lock alone, whoever else uses the advisory lock. The primary key guards
    on top. A reader sees one snapshot (REPEATABLE READ, read only), waits for nobody and delays nobody.

    The tables are made by the first writer. Triggers refuse to change or remove records; the owner of the
    tables can drop them, which the hashes of the chain then show. Durable is what the server calls
    so: leave its ``fsync`` on. Stores may be shared by threads, and used after a fork on both sides.

    Parameters
    ----------
    url : as SQLAlchemy writes it; ``postgresql://`` means the driver psycopg 3 where it is installed.
    patience : seconds to wait for the others, and for the server to answer.

    Raises
    ------
    ParameterError : no URL of a PostgreSQL server, or no positive patience.
    MissingExtraError : SQLAlchemy or the driver is not installed.

    >>> ServerStore("postgresql://ada:secret@db.example.org/budgets")
    ServerStore('postgresql+psycopg://ada@db.example.org/budgets')
    """

    def __init__(self, url: str, *, patience: float = 60.0) -> None:
        if isinstance(patience, bool) or not isinstance(patience, int | float) or not patience > 0:
            raise ParameterError(f"'patience' must be a positive number of seconds (got {got(patience)}).")
        self._patience = min(float(patience), 2e6)  # the server counts milliseconds in 32 bits
        parsed = _parsed(url)
        shown = {name: value for name, value in parsed.query.items() if name in SHOWN}
        # set(password=None) would leave the password as it is
        self.address: str = parsed._replace(password=None, query=shown).render_as_string()
        self._pool = _Pool(parsed, self._patience)
        # Connections are closed in good form with the store and at exit, not by the collector.
        weakref.finalize(self, self._pool.close)

    def __reduce__(self) -> Any:
        # connections stay here; the password goes along
        return partial(ServerStore, patience=self._patience), (self._pool.url(),)

    def __repr__(self) -> str:
        return f"ServerStore({self.address!r})"

    def close(self) -> None:
        """Close the connections of this process that are not in use."""
        self._pool.close()

    @contextmanager
    def reading(self) -> Iterator[_Session]:
        """The records of one moment.

        Raises LedgerError where the server does not answer, or holds no ledger or one of another format.
        """
        with self._session("", isolation_level="REPEATABLE READ", postgresql_readonly=True) as session:
            session.check_format()
            yield session

    @contextmanager
    def writing(self) -> Iterator[_Session]:
        """The records of the moment, which nobody else adds to; makes the tables where there are none.

        Raises LedgerError where the server does not answer, refuses, or others hold the ledger for longer
        than ``patience``; it says whether anything was entered.
        """
        with self._session(NOTHING, isolation_level="READ COMMITTED") as session:
            session.take_turn(self._patience)
            yield session
            session.commit()

    @contextmanager
    def _session(self, effect: str, **options: object) -> Iterator[_Session]:
        try:
            connection = self._pool.engine().connect()
        except Exception as error:
            raise unreachable(self.address, effect, error) from None
        session = _Session(connection, self.address, effect)
        try:
            session.begin(options)
            yield session
        finally:
            session.leave()


class _Session:
    """One transaction: a reader, or a writer."""

    def __init__(self, connection: Connection, address: str, effect: str) -> None:
        self._connection = connection
        self._address = address
        self._effect = effect  # what an error says of what was entered
        self._process = os.getpid()
        self._open = True
        self._sound = True  # every statement so far went well

    def last(self) -> Row | None:
        return self._one(statements().last)

    def head(self) -> Head | None:
        last = self.last()
        return None if last is None else Head(last.number, last.hash)

    def at(self, number: int) -> Row | None:
        return self._one(statements().at, number=int(number)) if 0 < number <= LARGEST else None

    def latest(self, budget: str, kind: str) -> Row | None:
        return self._one(statements().latest, budget=budget, kind=kind)

    def released(self, budget: str, release: str) -> Row | None:
        return self._one(statements().released, budget=budget, release=release)

    def rows(self, budget: str | None = None, after: int = 0) -> Iterator[Row]:
        # Page by page rather than by a cursor of the server: an iterator that is never finished holds
        # nothing, and other questions may be asked in between. All pages are of one snapshot (of one turn).
        statement, named = (
            (statements().all, {}) if budget is None else (statements().own, {"budget": budget})
        )
        after = max(after, 0)
        while after < LARGEST:
            page = self._ask(statement, after=int(after), **named)
            yield from map(record, page)
            if len(page) < PAGE:
                return
            after = page[-1][0]

    def backwards(self, number: int) -> Iterator[Row]:
        many = 4  # mostly the second record is the one that is looked for
        while page := self._ask(statements().backwards, last=number, many=many):
            yield from map(record, page)
            number, many = page[-1][0] - 1, PAGE

    def budgets(self) -> list[str]:
        return list(dict.fromkeys(record(found).budget for found in self._ask(statements().opened)))

    def damage(self) -> list[str]:
        found = dict(self._ask(statements().guards))
        index = [f"the index {name!r} is missing" for name in INDEXES if name not in found]
        sound = found.pop("pdprivacy_append_only", None) == APPEND_ONLY.split("$$")[1]
        trigger = [] if sound else ["the trigger 'pdprivacy_append_only' is missing or was changed"]
        added = any(source is not None for source in found.values())
        return index + trigger + ["a trigger was added"] * added

    def append(self, row: Row) -> None:
        self._ask(statements().append, **row._asdict())

    def begin(self, options: Mapping[str, object]) -> None:
        """Begin the transaction; nothing is sent before its first statement."""
        self._run(lambda: self._connection.execution_options(**options))

    def take_turn(self, patience: float) -> None:
        """Wait for the others, make the tables where there are none, and lock the row of turns."""
        tables = statements()
        known = self._ask(tables.settings, patience=str(math.ceil(1000 * patience)))[0][0]
        self._ask(tables.queue)
        if not known and not self._ask(tables.exists)[0][0]:  # asked again: another may have made them
            self._create()
        if not self._ask(tables.turn, known=FORMAT):
            self.check_format()

    def check_format(self) -> None:
        """Refuse a ledger of another format."""
        found = [number for (number,) in self._ask(statements().format)]
        if found == [FORMAT]:
            return
        if len(found) == 1 and isinstance(found[0], int):
            fact = f"has format {found[0]}; this version of pdprivacy reads format {FORMAT}"
            hint = "pip install --upgrade pdprivacy"
        else:
            fact = f"must hold its format once, in the table pdprivacy_ledger (found {len(found)} rows)"
            hint = "restore the database from a copy."
        raise LedgerError(sentence(f"The ledger at {self._address} {fact}.", self._effect), hint)

    def commit(self) -> None:
        """Make durable what was appended."""
        if not self._sound:  # an error that the caller caught; the server would undo all and call it success
            raise refused(self._address, self._effect, None)
        self._check_open()
        self._sound = False
        try:
            self._connection.commit()
        except Exception as error:
            raise refused(self._address, UNKNOWN, error) from None
        self._sound = True

    def leave(self) -> None:
        """End the transaction, without an error of its own."""
        self._open = False
        if self._process != os.getpid():  # a fork inside of the block: the transaction is the parent's
            _INHERITED.append(self._connection)
            return
        if self._sound:
            try:
                self._connection.rollback()
            except Exception:
                self._sound = False
        if not self._sound:  # it may be anywhere in its protocol
            with suppress(Exception):
                self._connection.invalidate()
        with suppress(Exception):
            self._connection.close()

    def _create(self) -> None:
        self._run(lambda: statements().metadata.create_all(self._connection))
        self._run(lambda: self._connection.exec_driver_sql(APPEND_ONLY))
        self._ask(statements().first, format=FORMAT, turn=0)

    def _check_open(self) -> None:
        if not self._open or self._process != os.getpid():
            raise LedgerError(
                "A reader or writer of a ledger was used after its block, or in another process.",
                "with store.reading() as records: ...",
            )

    def _one(self, statement: Any, **values: object) -> Row | None:
        found = self._ask(statement, **values)
        return record(found[0]) if found else None

    def _ask(self, statement: Any, **values: object) -> list[Any]:
        """All that a statement gives."""
        found: list[Any] = self._run(lambda: _fetched(self._connection.execute(statement, values)))
        return found

    def _run(self, call: Callable[[], Any]) -> Any:
        self._check_open()
        if not self._sound:
            raise refused(self._address, self._effect, None)
        self._sound = False
        try:
            result = call()
        except Exception as error:
            raise refused(self._address, self._effect, error) from None
        self._sound = True
        return result


class _Pool:
    """The connections of this process."""

    def __init__(self, url: Any, patience: float) -> None:
        self._url = url
        self._patience = patience
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._raw: weakref.WeakSet[Any] = weakref.WeakSet()  # connections of the driver
        self._made()  # refuses here, where a driver is missing
        _POOLS.add(self)

    def url(self) -> str:
        """With the password."""
        return str(self._url.render_as_string(hide_password=False))

    def engine(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self._engine = self._made()
            return self._engine

    def close(self) -> None:
        with self._lock:
            engine, self._engine = self._engine, None
        if engine is not None:
            with suppress(Exception):
                engine.dispose()

    def forget(self) -> None:
        """Let go of the connections of the parent, in a child process.

        Their descriptors are pointed elsewhere, so that nothing of the child can reach the server through
        them, and so that the server notices the end of the parent even while the child lives.
        """
        self._lock = threading.Lock()  # another thread of the parent may have held it
        _INHERITED.append(self._engine)
        self._engine = None
        nowhere = os.open(os.devnull, os.O_RDWR)
        for raw in list(self._raw):
            with suppress(Exception):
                os.dup2(nowhere, raw.fileno(), inheritable=False)
        self._raw = weakref.WeakSet()
        os.close(nowhere)

    def _made(self) -> Engine:
        import sqlalchemy

        seconds = max(2, math.ceil(self._patience))
        limits = {"connect_timeout": seconds, "keepalives_idle": 30, "keepalives_interval": 10}
        limits |= {"keepalives_count": 3, "tcp_user_timeout": 60_000}
        own: dict[str, int | None] = {k: v for k, v in limits.items() if k not in self._url.query}
        if self._url.get_driver_name() == "psycopg":
            own["prepare_threshold"] = None  # poolers in front of servers lose prepared statements
        try:
            engine = sqlalchemy.create_engine(
                self._url,
                connect_args=own,
                pool_pre_ping=True,
                pool_timeout=self._patience,
                hide_parameters=True,
            )
        except ImportError:
            raise _missing(f"the driver {self._url.get_driver_name()}") from None
        except Exception:
            raise ParameterError("'url' has a part that is not understood.", f'"{EXAMPLE}"') from None
        sqlalchemy.event.listen(engine, "connect", lambda raw, _: self._raw.add(raw))
        return engine


_POOLS: weakref.WeakSet[_Pool] = weakref.WeakSet()
_INHERITED: list[object] = []  # of the parent process: kept, because the collector would end its transactions


def _forked() -> None:
    for pool in list(_POOLS):
        pool.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _parsed(url: str) -> Any:
    """The URL, with its driver; no error shows a part that may be a password."""
    try:
        from sqlalchemy.engine import make_url
    except ImportError:
        raise _missing("SQLAlchemy") from None
    if not isinstance(url, str):
        raise ParameterError(f"'url' must be a text (got {type(url).__name__}).", f'"{EXAMPLE}"')
    try:
        parsed = make_url(url)
    except Exception:
        raise ParameterError("'url' is not a URL as SQLAlchemy writes it.", f'"{EXAMPLE}"') from None
    backend, _, driver = parsed.drivername.partition("+")
    if backend == "sqlite":
        raise ParameterError(
            "'url' is of an SQLite file, which is not on a server.",
            f"give the path alone: {parsed.database or 'budgets.ledger'!r}",
        )
    if not driver:
        driver = "psycopg2" if find_spec("psycopg") is None and find_spec("psycopg2") else "psycopg"
    if backend not in ("postgresql", "postgres") or driver not in ("psycopg", "psycopg2"):
        raise ParameterError(
            "'url' must be of a PostgreSQL server, with the driver psycopg or psycopg2.", f'"{EXAMPLE}"'
        )
    return parsed.set(drivername=f"postgresql+{driver}")


def _missing(what: str) -> MissingExtraError:
    return MissingExtraError(
        f"A ledger on a server needs {what}, which is not installed.", 'pip install "pdprivacy[server]"'
    )


def _fetched(result: Any) -> list[Any]:
    return list(result) if result.returns_rows else []
