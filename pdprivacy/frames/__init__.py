"""Protected frames: frames bound to a declaration and a budget, with their row steps and contents."""

from pdprivacy.core.gate.contents import REFUSED, Protected, Step, declared, lineage, refusal
from pdprivacy.frames.column import ProtectedColumn
from pdprivacy.frames.frame import ROW_STEPS, ProtectedFrame, find, unprotected

__all__ = [
    "REFUSED",
    "ROW_STEPS",
    "Protected",
    "ProtectedColumn",
    "ProtectedFrame",
    "Step",
    "declared",
    "find",
    "lineage",
    "refusal",
    "unprotected",
]
