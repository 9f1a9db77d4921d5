"""Modules that the collection of doctests leaves out."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

TESTS = Path(__file__).parent / "tests"
ENGINES = {Path(__file__).parent / "pdprivacy" / f"{name}.py" for name in ("dask", "polars", "spark")}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore the module of an engine that cannot be imported here; any other failed import is an error.

    With ``-m fast``, ignore all examples in documentation.
    """
    if config.option.markexpr == "fast" and TESTS not in (collection_path, *collection_path.parents):
        return True if collection_path.is_file() else None
    if collection_path not in ENGINES:
        return None
    from pdprivacy.errors import MissingExtraError

    try:
        import_module(f"pdprivacy.{collection_path.stem}")
    except MissingExtraError:
        return True
    return None
