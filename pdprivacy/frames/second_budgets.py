"""The warning that a frame is protected twice, with a budget of its own each time.

Frames are compared by identity and held by weak references, so that no cell is read and no frame lives
longer for it.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

from pdprivacy.errors import DeclarationWarning, warn

_PROTECTED: dict[int, tuple[weakref.ref[Any], bool]] = {}
"""Frames that were protected with a new budget, by id, and whether a second time."""


def warn_of_second_budget(frame: Any) -> None:
    """Note that a frame was protected with a new budget; warn the first time that it was before.

    Only in interactive sessions, where a cell is run again: the code of a program shows both budgets. Frames
    of types without weak references are not noted.

    Warns (DeclarationWarning).
    """
    if not _is_typed():
        return
    key = id(frame)
    reference, warned = _PROTECTED.get(key, (None, False))
    if reference is None or reference() is not frame:
        try:
            own = weakref.ref(frame, lambda dead: _forget(key, dead))
        except TypeError:
            return
        _PROTECTED[key] = own, False
    elif not warned:
        _PROTECTED[key] = reference, True
        warn(
            "This frame was protected before, and has a second full budget now: the two add up. Go on with "
            "the first protected frame, or share its budget: "
            "df.dp.protect(schema, budget=private.dp.budget).",
            DeclarationWarning,
        )


def _is_typed() -> bool:
    """Return whether the caller of this package is typed at a prompt, or in a notebook."""
    frame = sys._getframe()
    while frame.f_back is not None and f"{frame.f_globals.get('__name__')}.".startswith("pdprivacy."):
        frame = frame.f_back
    # interpreters and kernels of notebooks have prompts, and run what is typed as the main module; so do the
    # examples of a docstring, without a prompt of their own
    is_example = frame.f_code.co_filename.startswith("<doctest")
    return hasattr(sys, "ps1") and frame.f_globals.get("__name__") == "__main__" and not is_example


def _forget(key: int, dead: weakref.ref[Any]) -> None:
    """Forget a frame that is gone, unless another one has its id by now."""
    if _PROTECTED.get(key, (None, False))[0] is dead:
        del _PROTECTED[key]
