"""Releases in files: Parquet, CSV and JSON that give a release back unchanged, with its metadata.

`read_release` reads and verifies what ``released.dp.save(path)`` and the steps of pipelines write.
"""

from pdprivacy.storage.release_files import read_release, save

__all__ = ["read_release", "save"]
