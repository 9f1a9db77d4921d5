"""Functions that tests run in processes of their own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pdprivacy.errors import BudgetError

ROOT = Path(__file__).parents[2]

STORE_ALONE = f"""
import os, sys, types
for name in ("pdprivacy", "pdprivacy.ledger"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [os.path.join({str(ROOT)!r}, *name.split("."))]
"""
"""The first lines of a script that imports the modules that store records, and not the whole package."""


def refused_in_a_fork(call: Callable[[], object]) -> bytes:
    """Make a call in a forked process; return the text of the BudgetError that it ends in, or nothing."""
    answer, into = os.pipe()
    child = os.fork()
    if not child:
        try:
            call()
        except BudgetError as error:
            os.write(into, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(into)
    with os.fdopen(answer, "rb") as heard:
        return heard.read()
