"""The chain of records: each one holds a hash of all before it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from pdprivacy.errors import TamperedLedgerError
from pdprivacy.ledger.store import Head, Row

__all__ = ["ROOT", "altered", "canonical", "check", "digest", "link", "parse"]

ROOT = bytes(32)
"""The hash before the first record."""


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical(body: Mapping[str, Any] | list[Any]) -> str:
    """The one text of a JSON object or list: sorted keys, no spaces, ASCII, no float that is no number."""
    return _ENCODER.encode(body)


def digest(before: bytes, number: int, body: str) -> bytes:
    """The hash of a record: 32 bytes of BLAKE2b over the hash before it, its number and its text."""
    return blake2b(before + number.to_bytes(8, "big") + body.encode(), digest_size=32).digest()


def link(
    before: Head | Row | None, budget: str, kind: str, release: str | None, body: Mapping[str, Any] | str
) -> Row:
    """The record that follows ``before``. ``body``: without these three, or the canonical text with them."""
    number, hashed = (1, ROOT) if before is None else (before.number + 1, before.hash)
    if not isinstance(body, str):
        body = canonical({**body, "budget": budget, "kind": kind, "release": release})
    return Row(number, budget, kind, release, body, digest(hashed, number, body))


def parse(row: Row) -> dict[str, Any]:
    """The body of a record.

    Raises TamperedLedgerError where it is no JSON object, or contradicts the columns beside it.
    """
    try:
        body = json.loads(row.body)
    except (TypeError, ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or any(
        body.get(name, "") != getattr(row, name) for name in ("budget", "kind", "release")
    ):
        raise altered(row)
    return body


def altered(row: Row) -> TamperedLedgerError:
    """For a record that is not what was entered."""
    return TamperedLedgerError(
        f"Record {row.number} of the ledger is not what was entered.",
        "restore the ledger from a copy; ledger.audit() says what else was altered.",
    )


def check(row: Row, before: bytes) -> None:
    """Refuse a record whose hash is not that of the record and of the hash ``before``."""
    if digest(before, row.number, row.body) != row.hash:
        raise TamperedLedgerError(
            f"Record {row.number} of the ledger does not follow from the one before it.",
            "restore the ledger from a copy; ledger.audit() says what else was altered.",
        )
