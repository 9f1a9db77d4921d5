"""Protected frames: frames bound to a declaration and a budget, with their row steps and contents."""

from pdprivacy.protection.column import REFUSED, ProtectedColumn, refusal
from pdprivacy.protection.frame import ROW_STEPS, ProtectedFrame, divide, draw, find, transformed, unprotected
from pdprivacy.protection.protected import Protected, Step, declared, lineage

__all__ = [
    "REFUSED",
    "ROW_STEPS",
    "Protected",
    "ProtectedColumn",
    "ProtectedFrame",
    "Step",
    "declared",
    "divide",
    "draw",
    "find",
    "lineage",
    "refusal",
    "transformed",
    "unprotected",
]
