"""Protected frames: frames bound to a declaration and a budget, with their row steps and contents."""

from pdprivacy.protection.column import ProtectedColumn
from pdprivacy.protection.frame import ROW_STEPS, ProtectedFrame, divide, draw, find, transformed, unprotected
from pdprivacy.protection.protected import REFUSED, Protected, Step, declared, lineage, refusal

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
