"""Protected frames: which frame is protected, by what declaration and budget, and what is made of it."""

from pdprivacy.protection.core import Protected, Step, declared, lineage
from pdprivacy.protection.elsewhere import ProtectedFrame
from pdprivacy.protection.identity import find
from pdprivacy.protection.protect import protect
from pdprivacy.protection.steps import apply, divide, draw

__all__ = [
    "Protected",
    "ProtectedFrame",
    "Step",
    "apply",
    "declared",
    "divide",
    "draw",
    "find",
    "lineage",
    "protect",
]
