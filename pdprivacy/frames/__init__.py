"""Protected frames: frames bound to a declaration and a budget, with their row steps and contents."""

from pdprivacy.core.gate.facts import Facts, Step, declared, lineage
from pdprivacy.frames.column import ProtectedColumn
from pdprivacy.frames.frame import ROW_STEPS, ProtectedFrame, find, unprotected
from pdprivacy.frames.refused_steps import REFUSED, refusal

__all__ = [
    "REFUSED",
    "ROW_STEPS",
    "Facts",
    "ProtectedColumn",
    "ProtectedFrame",
    "Step",
    "declared",
    "find",
    "lineage",
    "refusal",
    "unprotected",
]
