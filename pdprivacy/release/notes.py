"""Notes on errors, that name the charges which are entered although nothing is handed out."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from pdprivacy.ledger.budget import ENTERED, charging

__all__ = ["tells_charges"]

F = TypeVar("F", bound=Callable[..., Any])


def tells_charges(function: F) -> F:
    """A release whose errors have a note on each charge that is entered although nothing is handed out."""

    @functools.wraps(function)
    def release(*args: Any, **kwargs: Any) -> Any:
        if ENTERED.get() is not None:  # part of another release
            return function(*args, **kwargs)
        with charging() as entered:
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                for (_, number), name in entered.items():
                    charge = f"Charge {number}" + (f" of the budget {name!r}" if name else "")
                    if not str(error).startswith(charge):
                        error.add_note(f"{charge} is entered, but its answer was not handed out.")
                raise

    return cast("F", release)
