"""The place of a ledger."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> str:
    """The path of a ledger that does not exist yet, in a folder of its own."""
    (tmp_path / "folder").mkdir()
    return str(tmp_path / "folder" / "budget.db")
