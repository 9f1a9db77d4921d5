"""Releases as a step of a pipeline: validated in and out, charged once however often it is tried, stored.

A step is a function of a protected frame, decorated by `release_step`. Its releases are stored one by one as
they are made, under a release id that the ledger charges once; `read_release` reads them from their files.
"""

from pdprivacy.step.parquet import read_release
from pdprivacy.step.running import release_step

__all__ = ["read_release", "release_step"]
