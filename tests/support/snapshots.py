"""The records behind a protected frame, which it shows nobody."""

from __future__ import annotations

from typing import Any

import pandas as pd

from pdprivacy import ProtectedFrame
from pdprivacy.core.gate.records import records_of as opened
from pdprivacy.frames import find

__all__ = ["engine_of", "records_of"]


def records_of(private: ProtectedFrame) -> pd.DataFrame:
    """The declared columns of a protected pandas frame."""
    return opened(find(private)).snapshot


def engine_of(private: ProtectedFrame) -> Any:
    """The exact sufficient statistics of the records."""
    return opened(find(private)).engine
