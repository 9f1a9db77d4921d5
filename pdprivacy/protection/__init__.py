"""Protected frames: a frame bound to its declaration and budget, its row steps, and what stands behind it."""

from pdprivacy.protection.column import ProtectedColumn
from pdprivacy.protection.frame import ROW_STEPS, Labels, ProtectedFrame, find, unprotected
from pdprivacy.protection.parts import divide, draw
from pdprivacy.protection.protect import protect
from pdprivacy.protection.protected import Protected, Step, declared, lineage
from pdprivacy.protection.row_steps import transformed

__all__ = [
    "ROW_STEPS",
    "Labels",
    "Protected",
    "ProtectedColumn",
    "ProtectedFrame",
    "Step",
    "declared",
    "divide",
    "draw",
    "find",
    "lineage",
    "protect",
    "transformed",
    "unprotected",
]
