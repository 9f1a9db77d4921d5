"""Charges that are entered and not answered yet, so that an error can name each that stays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

Entered: TypeAlias = dict[tuple[Any, int], str]
"""Charges whose answers are not handed out, and what is known of the answer of each."""

NOT_HANDED_OUT = "was not handed out"
PERHAPS_HANDED_OUT = "may not have been handed out"

ENTERED: ContextVar[Entered | None] = ContextVar("entered", default=None)


@contextmanager
def charging() -> Iterator[Entered]:
    """Collect the charges within the block that are not answered."""
    entered: Entered = {}
    token = ENTERED.set(entered)
    try:
        yield entered
    finally:
        ENTERED.reset(token)


def handed_out(book: Any, number: int) -> None:
    """Mark a charge as handed out, or as named in an error, so that no note is added about it."""
    if (entered := ENTERED.get()) is not None:
        entered.pop((book, number), None)
