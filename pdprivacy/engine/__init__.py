"""Exact sufficient statistics of declared columns, per engine; no noise here."""

from pdprivacy.engine.blocks import BLOCK
from pdprivacy.engine.frame import Columns, PandasEngine

__all__ = ["BLOCK", "Columns", "PandasEngine"]
