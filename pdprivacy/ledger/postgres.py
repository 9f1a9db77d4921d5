"""The tables of a ledger on a PostgreSQL server, and what the errors of the server mean."""

from __future__ import annotations

import re
from functools import cache
from types import SimpleNamespace
from typing import Any

from pdprivacy.errors import LedgerError, MissingLedgerError, TamperedLedgerError
from pdprivacy.ledger.store import Row

__all__ = [
    "APPEND_ONLY",
    "FORMAT",
    "INDEXES",
    "LARGEST",
    "PAGE",
    "record",
    "refused",
    "sentence",
    "statements",
    "unreachable",
]

FORMAT = 1
"""The layout of the tables; a ledger of another one is refused."""

INDEXES = (
    "pdprivacy_records_pkey",
    "pdprivacy_records_budget_release_key",
    "pdprivacy_records_kind",
    "pdprivacy_records_budget",
)

PAGE = 200  # records that are in memory at a time
IDLE = 60  # seconds after which a writer that does nothing (a suspended machine) loses its turn
LARGEST = 2**63 - 1  # number that the server holds

# What a server or its client library says when there is no connection, which comes without a code.
UNREACHABLE = {
    r"password authentication|no password|authentication failed|role .* does not exist|no pg_hba": (
        "the server refuses the user or the password",
        "check user and password of the URL, and pg_hba.conf of the server.",
    ),
    r"database .* does not exist": (
        "the server has no such database",
        "create it with createdb, or check the name at the end of the URL.",
    ),
    r"translate host|resolve|name or service|getaddrinfo": (
        "its host is not known",
        "check the host of the URL.",
    ),
    r"too many|remaining connection slots|QueuePool": (
        "there are too many connections",
        "close stores that are not used any more, or raise max_connections of the server.",
    ),
    r"starting up|shutting down|recovery": ("the server is starting or stopping", "try again in a moment."),
}
NO_ANSWER = ("no server answers", "check host and port of the URL, and that the server is running.")

# What a server says of a statement: the start of its SQLSTATE, the longest that fits counts.
REFUSED = {
    "08": ("the connection to the server was lost", "try again."),
    "57P": ("the server ended the connection", "try again."),
    "25P03": (f"the writer did nothing for {IDLE} seconds and lost its turn", "try again."),
    "55P03": (
        "others hold the ledger",
        "try again; SELECT * FROM pg_stat_activity says who is connected.",
    ),
    "57014": ("the server cancelled a statement", "raise statement_timeout of the user, or try again."),
    "42501": (
        "its user lacks a permission",
        "GRANT SELECT, INSERT ON pdprivacy_records and GRANT SELECT, UPDATE ON pdprivacy_ledger to the user; "
        "CREATE on the schema for the first use.",
    ),
    "25006": ("the server takes no writes", "use the URL of the primary server, not of a standby."),
    "22": ("it holds no such text or number", "use names without NUL characters, in an UTF-8 database."),
    "23505": ("there is a record of that number or release already", "read the last record and try again."),
    "40": ("the server undid the transaction", "try again."),
    "53100": ("the disk of the server is full", "make room on the server and try again."),
    "53": ("the server ran out of a resource", "look into the log of the server."),
    "54": ("a name is longer than the server can index", "use names of at most a few hundred characters."),
    "42P01": ("there is no ledger there yet", "it is made when the first budget is opened in it."),
    "42": ("its tables are not those of a ledger", "use a database or schema of its own for the ledger."),
    "XX": ("the server found its data damaged", "restore the database from a copy."),
}

APPEND_ONLY = """
CREATE OR REPLACE FUNCTION pdprivacy_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'records of a ledger are never changed or removed'; END $$;
CREATE TRIGGER pdprivacy_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON pdprivacy_records
FOR EACH STATEMENT EXECUTE FUNCTION pdprivacy_append_only();
"""

# Asked of the catalog: to_regclass() answers from a cache, which is stale after the wait for a lock.
EXISTS = """EXISTS (SELECT FROM pg_catalog.pg_class WHERE relname IN ('pdprivacy_ledger', 'pdprivacy_records')
AND pg_catalog.pg_table_is_visible(oid))"""

# Which indexes and triggers guard the records, and what the triggers do.
GUARDS = """
SELECT relname, NULL FROM pg_catalog.pg_index JOIN pg_catalog.pg_class ON pg_class.oid = indexrelid
WHERE indrelid = 'pdprivacy_records'::regclass AND indisvalid
UNION ALL SELECT tgname, prosrc FROM pg_catalog.pg_trigger JOIN pg_catalog.pg_proc ON pg_proc.oid = tgfoid
WHERE tgrelid = 'pdprivacy_records'::regclass AND NOT tgisinternal AND tgenabled IN ('O', 'A')
"""

# For this transaction only, so that a pool of connections in front of the server is not confused. Commit
# means durable; a machine that vanished lets go of the ledger after a minute, not after two hours. A limit on
# statements would also cut short the wait of a commit for a standby, and call that a success.
SETTINGS = f"""
SELECT {EXISTS},
set_config('lock_timeout', :patience, true), set_config('statement_timeout', '0', true),
set_config('idle_in_transaction_session_timeout', '{IDLE}s', true),
set_config('tcp_keepalives_idle', '30', true), set_config('tcp_keepalives_interval', '10', true),
set_config('tcp_keepalives_count', '3', true),
CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END
"""

# An advisory lock ("pdpr") of the schema: the server serves those who wait in the order of their arrival.
QUEUE = """
SELECT pg_advisory_xact_lock(1885630578, oid::int) FROM pg_catalog.pg_namespace
WHERE nspname = current_schema()
"""


@cache
def statements() -> SimpleNamespace:
    """The tables, and the statements on them."""
    import sqlalchemy as sa

    text = sa.Text(collation="C")  # bytes: no order that changes with the libraries of the server
    metadata = sa.MetaData()
    ledger = sa.Table(
        "pdprivacy_ledger",
        metadata,
        sa.Column("format", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("turn", sa.BigInteger, nullable=False),
    )
    records = sa.Table(
        "pdprivacy_records",
        metadata,
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("budget", text, nullable=False),
        sa.Column("kind", text, nullable=False),
        sa.Column("release", text),
        sa.Column("body", text, nullable=False),
        sa.Column("hash", sa.LargeBinary(32), nullable=False),
        sa.UniqueConstraint("budget", "release"),
        sa.Index("pdprivacy_records_kind", "kind", "budget", "number"),
        sa.Index("pdprivacy_records_budget", "budget", "number"),
    )
    number, budget, kind, release = (records.c[name] for name in ("number", "budget", "kind", "release"))
    after, own, one = number > sa.bindparam("after"), budget == sa.bindparam("budget"), sa.select(records)
    return SimpleNamespace(
        metadata=metadata,
        settings=sa.text(SETTINGS),
        queue=sa.text(QUEUE),
        guards=sa.text(GUARDS),
        exists=sa.text(f"SELECT {EXISTS}"),
        first=sa.insert(ledger),
        format=sa.select(ledger.c.format),
        turn=sa.update(ledger)
        .where(ledger.c.format == sa.bindparam("known"))
        .values(turn=ledger.c.turn + 1)
        .returning(ledger.c.turn),
        last=one.order_by(number.desc()).limit(1),
        at=one.where(number == sa.bindparam("number")),
        latest=one.where(own, kind == sa.bindparam("kind")).order_by(number.desc()).limit(1),
        released=one.where(own, release == sa.bindparam("release")),
        all=one.where(after).order_by(number).limit(PAGE),
        backwards=one.where(number <= sa.bindparam("last"))
        .order_by(number.desc())
        .limit(sa.bindparam("many")),
        own=one.where(own, after).order_by(number).limit(PAGE),
        opened=one.where(kind == "open").order_by(number),
        append=sa.insert(records),
    )


def record(found: Any) -> Row:
    """A record, if every column is of its type."""
    number, budget, kind, release, body, value = found
    value = bytes(value) if isinstance(value, memoryview | bytearray) else value
    if (
        type(number) is not int
        or not all(isinstance(text, str) for text in (budget, kind, body))
        or not isinstance(release, str | None)
        or not isinstance(value, bytes)
        or len(value) != 32
    ):
        where = f"Record {number}" if type(number) is int else "A record"
        raise TamperedLedgerError(
            f"{where} of the ledger is not what was entered.",
            "restore the ledger from a copy; ledger.audit() says what else was altered.",
        )
    return Row(number, budget, kind, release, body, value)


def unreachable(address: str, effect: str, error: Exception) -> LedgerError:
    """What an error of a connection means; its own text may hold parts of the URL and is not shown."""
    said = str(getattr(error, "orig", None) or error)
    fact, hint = next((what for sign, what in UNREACHABLE.items() if re.search(sign, said, re.I)), NO_ANSWER)
    return LedgerError(sentence(f"The ledger at {address} cannot be reached: {fact}.", effect), hint)


def refused(address: str, effect: str, error: Exception | None) -> LedgerError:
    """What an error of a statement means; its own text may hold values and is not shown."""
    orig = getattr(error, "orig", None)
    code = getattr(orig, "sqlstate", None) or getattr(orig, "pgcode", None) or ""
    if error is None:
        fact, hint = "an error before ended the transaction", "let errors leave the block."
    elif not code and getattr(error, "connection_invalidated", False):
        fact, hint = REFUSED["08"]
    elif not code and (isinstance(error, ValueError) or type(error).__name__ == "DataError"):
        fact, hint = REFUSED["22"]
    else:
        fact, hint = next(
            (REFUSED[code[:end]] for end in range(len(code), 1, -1) if code[:end] in REFUSED),
            (f"the server refused (SQLSTATE {code or 'unknown'})", "look into the log of the server."),
        )
    kind = MissingLedgerError if code == "42P01" else LedgerError
    return kind(sentence(f"The ledger at {address} cannot be used: {fact}.", effect), hint)


def sentence(fact: str, effect: str) -> str:
    """A fact, and what it means for what was to be entered, if anything was."""
    return f"{fact} {effect}" if effect else fact
