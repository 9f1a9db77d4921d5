"""What tests run in processes of their own."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]

STORE_ALONE = f"""
import os, sys, types
for name in ("pdprivacy", "pdprivacy.ledger"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [os.path.join({str(ROOT)!r}, *name.split("."))]
"""
"""The first lines of a script that imports the modules that store records, and not the whole package."""
