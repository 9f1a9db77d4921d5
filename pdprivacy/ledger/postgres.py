"""Records in the database of a PostgreSQL server, shared by several machines.

Each thread of each process has a connection of its own, which is opened at its first transaction. A forked
process never uses a connection of its parent.
"""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pdprivacy import checks, errors
from pdprivacy.ledger.store import NOTHING, UNKNOWN, Row, Store, T, Writer, are_rows

# The user, the host with the database, and the query. A password with "@" or "/" in it does not match.
URL = re.compile(r"postgres(?:ql)?(?:\+psycopg)?://(?:([^:@/?]*)(?::[^@/]*)?@)?([^@?]*)(?:\?(.*))?")
EXAMPLE = '"postgresql://user@host/database", with "@" and "/" within a part as "%40" and "%2F".'
SHOWN = "(host|port|dbname|service|options)="  # parts of the query that hold no secret

# Options of a connection, which those of the URL replace: a server that vanishes is noticed after a minute.
OPTIONS = {"keepalives_idle": 30, "keepalives_interval": 10, "tcp_user_timeout": 60_000}

# These settings end with the transaction, so a pool of connections in front of the server stays as it is. The
# server ends the turn of a machine that vanishes, and COMMIT means durable. A limit on statements would cut
# short the wait of COMMIT for a standby, and report success.
BEGIN = """BEGIN ISOLATION LEVEL {}; SET LOCAL lock_timeout = {}; SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = '60s';
SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"""

FORMAT = 1  # the layout of the tables
REFUSE = "\nBEGIN RAISE EXCEPTION 'records of a ledger are never changed or removed'; END "
ANSWERS = "CREATE TABLE pdprivacy_answers (digest text PRIMARY KEY, answer bytea NOT NULL)"
TABLES = f"""CREATE TABLE pdprivacy_ledger (format bigint PRIMARY KEY, turn bigint NOT NULL);
INSERT INTO pdprivacy_ledger VALUES ({FORMAT}, 0); {ANSWERS};
CREATE TABLE pdprivacy_records (number bigint PRIMARY KEY, budget text COLLATE "C" NOT NULL,
kind text COLLATE "C" NOT NULL, release text COLLATE "C", body text COLLATE "C" NOT NULL, hash bytea NOT NULL,
UNIQUE (budget, release)); CREATE INDEX pdprivacy_records_kind ON pdprivacy_records (kind, budget, number);
CREATE INDEX pdprivacy_records_budget ON pdprivacy_records (budget, number);
CREATE OR REPLACE FUNCTION pdprivacy_append_only() RETURNS trigger LANGUAGE plpgsql AS $${REFUSE}$$;
CREATE TRIGGER pdprivacy_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON pdprivacy_records
FOR EACH STATEMENT EXECUTE FUNCTION pdprivacy_append_only()"""

# The catalog itself: to_regclass() answers from a cache, which may be out of date after the wait for a lock.
EXISTS = "SELECT 1 FROM pg_class WHERE relname = %s AND pg_table_is_visible(oid)"
CATALOG = """SELECT format('the index %L', relname), '' FROM pg_index JOIN pg_class c ON c.oid = indexrelid
WHERE indrelid = 'pdprivacy_records'::regclass AND indisvalid
UNION ALL SELECT format('the trigger %L', tgname), concat(tgtype, tgattr, tgqual, prosrc)
FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid
WHERE tgrelid = 'pdprivacy_records'::regclass AND NOT tgisinternal AND tgenabled IN ('O', 'A')"""
INDEXES = ("pkey", "budget_release_key", "kind", "budget")
GUARDS = {f"the index 'pdprivacy_records_{name}'": "" for name in INDEXES}
# 58 stands for BEFORE UPDATE OR DELETE OR TRUNCATE, FOR EACH STATEMENT
GUARDS["the trigger 'pdprivacy_append_only'"] = f"58{REFUSE}"

SELECT = "SELECT number, budget, kind, release, body, hash FROM pdprivacy_records"

EXTRA = 'pip install "pdprivacy[server]"'
GRANT = "GRANT SELECT, INSERT ON pdprivacy_records, pdprivacy_answers; SELECT, UPDATE ON pdprivacy_ledger"

# Predicates and hints by the first characters of an SQLSTATE or of a word: the first entry that fits counts.
REASONS: tuple[tuple[str | tuple[str, ...], str, str], ...] = (
    ("format", "uses {}; this version of pdprivacy reads format 1", "pip install --upgrade pdprivacy"),
    ("record", "holds a record that is not what was entered", "restore the database from a copy."),
    ("08001", "cannot be reached", "check host, port, database, user and password; is the server running?"),
    (("08", "57P"), "lost the connection to its server", "try again."),
    ("22", "cannot store this value", "use text without NUL characters, in a UTF-8 database."),
    ("23505", "holds a record of this number or release already", "read the last record and try again."),
    ("25000", "was used after its transaction failed or ended, or in another process", "begin a new one."),
    ("25006", "is on a read-only server", "use the URL of the primary server."),
    ("25P03", "was idle for 60 seconds in a transaction, which the server ended", "try again."),
    (("40", "57014"), "cannot be used: its server rolled the transaction back", "try again."),
    ("42501", "denies this user a permission", f"{GRANT}; CREATE ON SCHEMA to make them."),
    ("42P01", "does not exist yet", "df.dp.protect(schema, epsilon=1.0, budget=ledger, name=...) makes it."),
    ("42", "has tables that are not those of a ledger", "use a database or schema for the ledger alone."),
    ("53", "cannot be used: its server lacks disk space, memory or connections", "look at its log."),
    ("55P03", "is in use by another transaction", "try again; pg_stat_activity lists who is connected."),
    ("XX", "is damaged, as its server reports", "restore the database from a copy."),
    ("", "cannot be used: its server reports SQLSTATE {}", "look at the log of the server."),
)
KINDS = {"42P01": errors.MissingLedgerError, "record": errors.TamperedLedgerError}


def refusal(address: str, fate: str, code: str) -> errors.LedgerError:
    """Return the error for an SQLSTATE; the text of the server may hold values, and is left out."""
    predicate, hint = next(texts for codes, *texts in REASONS if code.startswith(codes))
    reason = f"The ledger at {address} {predicate.format(code)}."
    return KINDS.get(code, errors.LedgerError)(reason, hint, fate)


class PostgresStore(Store):
    """Records in a PostgreSQL database: many machines write, one at a time.

    Parameters
    ----------
    url : the URL of the database, as libpq reads it.
    patience : seconds to wait for other transactions, and for a connection.

    Raises
    ------
    ParameterError : the URL or the patience is invalid.
    MissingExtraError : psycopg is not installed.

    A writing transaction begins with an update of the only row of ``pdprivacy_ledger``, which stays locked
    until its end; each later statement sees all that was committed before. A reading transaction sees one
    snapshot and waits for no writer. A trigger refuses changes to records; the owner of the tables can drop
    it, which an audit reports. Records are as durable as the server keeps them: leave its ``fsync`` on.

    >>> PostgresStore("postgresql://ada:secret@db.example.org/budgets")
    PostgresStore('postgresql://ada@db.example.org/budgets')
    """

    def __init__(self, url: str, patience: float = 60.0) -> None:
        try:
            from psycopg import connect, conninfo
        except ImportError:
            raise errors.MissingExtraError("A ledger on a server needs psycopg.", EXTRA) from None
        self._patience = checks.real(patience, "patience", 0.001, 2e6)  # a server counts 2**31 milliseconds
        options: dict[str, Any] = {**OPTIONS, "client_encoding": "utf8", "connect_timeout": int(patience) + 2}
        match = None
        with suppress(Exception):
            options |= conninfo.conninfo_to_dict(url.replace("+psycopg://", "://"))
            match = URL.fullmatch(url)
        if match is None or options.get("port", "").strip("0123456789,"):
            raise errors.ParameterError("'url' must be the URL of a PostgreSQL database.", EXAMPLE)
        # in closures: the repr of an attribute must not show the password
        self._url: Callable[[], str] = lambda: url
        self._connect: Callable[[], Any] = lambda: connect(**options, autocommit=True, prepare_threshold=None)
        user, host, query = match.groups("")
        shown = "&".join(part for part in query.split("&") if re.match(SHOWN, part))
        self.address = f"postgresql://{user}{'@' * bool(user)}{host}{'?' * bool(shown)}{shown}"
        self._local = threading.local()

    def __reduce__(self) -> Any:
        return PostgresStore, (self._url(), self._patience)

    def close(self) -> None:
        """Close the connection of this thread; that of another thread is closed when the thread ends."""
        for session in vars(self._local).values():
            session.close()

    def _run(self, work: Callable[[Any], T], *, writes: bool, create: bool) -> T:
        level, fate = ("READ COMMITTED", NOTHING) if writes else ("REPEATABLE READ READ ONLY", "")
        session = self._begin(BEGIN.format(level, int(1000 * self._patience)), fate)
        try:
            session.take_turn(create)
            result = work(session)
            session.ask("COMMIT", fate=fate and UNKNOWN)
            return result
        finally:
            session.end()
            self._local.session = session

    def _begin(self, statements: str, fate: str) -> _Session:
        """Begin a transaction on the connection of this thread, or on a new one where that is lost."""
        with suppress(KeyError, errors.LedgerError):
            session: _Session = vars(self._local).pop("session")
            return session.begin(statements, fate)
        try:
            raw = self._connect()
        except Exception as error:
            raise refusal(self.address, fate, getattr(error, "sqlstate", None) or "08001") from None
        return _Session(self.address, raw).begin(statements, fate)


class _Session(Writer):
    """A connection of one thread in one process; within a transaction a `Reader` or a `Writer`."""

    def __init__(self, address: str, raw: Any) -> None:
        self._address, self._raw, self._owner = address, raw, (pid := os.getpid())
        # a child leaves the connection to its parent: psycopg finishes it only in the process that opened it
        self.close = weakref.finalize(self, lambda: (raw.close if pid == os.getpid() else vars(raw).clear)())

    def begin(self, statements: str, fate: str) -> _Session:
        self._fate, self._sound = fate, True
        self.ask(statements)
        return self

    def take_turn(self, create: bool) -> None:
        """Check the format; a writer waits for its turn before, and makes the tables where there are none."""
        for statement in ("SELECT pg_advisory_xact_lock(1885630578)", TABLES):
            if create and not self.ask(EXISTS, "pdprivacy_ledger"):
                self.ask(statement)
        turn = "UPDATE pdprivacy_ledger SET turn = turn + 1 RETURNING format"
        formats = self.ask(turn if self._fate else "SELECT format FROM pdprivacy_ledger")
        if formats != [(FORMAT,)]:
            raise refusal(self._address, self._fate, f"format {max(formats, default=('unknown',))[0]}")

    def end(self) -> None:
        """Undo what was not committed. After a failed statement or an interrupt, close the connection."""
        reusable, self._sound = self._sound and self._owner == os.getpid(), False
        try:
            (self._raw.rollback if reusable else self.close)()
        except Exception:
            self.close()

    def ask(self, statement: str, *values: object, fate: str = "") -> list[Any]:
        """Return all rows of a statement; ``fate``: of the records, if it fails."""
        if not self._sound or self._owner != os.getpid():
            raise refusal(self._address, self._fate, "25000")
        self._sound = False  # until the server has answered
        try:
            cursor = self._raw.execute(statement, values or None)
            rows = list(cursor) if cursor.description else []
        except Exception as error:
            code = getattr(error, "sqlstate", None) or ("08" if self._raw.closed else "22")
            raise refusal(self._address, fate or self._fate, code) from None
        self._sound = True
        return rows

    def rows(self, condition: str, *values: object) -> list[Row]:
        rows = self.ask(f"{SELECT} WHERE {condition.replace('?', '%s')}", *values)
        if not are_rows(rows):
            raise refusal(self._address, "", "record")
        return list(map(Row._make, rows))

    def make_durable(self) -> None:
        """Do nothing: a transaction is durable before another one sees its records."""

    def stored(self, digest: str) -> bytes | None:
        query = "SELECT answer FROM pdprivacy_answers WHERE digest = %s"
        answers = self.ask(EXISTS, "pdprivacy_answers") and self.ask(query, digest)
        return bytes(answers[0][0]) if answers else None

    def damage(self, until: int) -> list[str]:  # noqa: ARG002 - the server checks its pages itself
        guards = dict(self.ask(CATALOG))
        wrong = [f"{key} is missing or was changed" for key in GUARDS if guards.pop(key, 0) != GUARDS[key]]
        return wrong + ["a trigger was added"] * any(guards.values())

    def append(self, row: Row) -> None:
        self.ask("INSERT INTO pdprivacy_records VALUES (%s, %s, %s, %s, %s, %s)", *row)

    def store(self, digest: str, answer: bytes) -> None:
        if not self.ask(EXISTS, "pdprivacy_answers"):
            self.ask(ANSWERS)
        self.ask("INSERT INTO pdprivacy_answers VALUES (%s, %s) ON CONFLICT DO NOTHING", digest, answer)
