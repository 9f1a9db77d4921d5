"""Releases as a step of a pipeline: each is charged once, however often the step is tried, and stored.

`release_step` makes a step of a function of a protected frame. Its releases are stored one by one as they are
made, under release ids that the ledger charges once; `pdprivacy.read_release` reads a release from its file.
"""

from pdprivacy.step.pipeline import release_step

__all__ = ["release_step"]
