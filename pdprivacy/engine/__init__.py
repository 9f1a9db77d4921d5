"""Exact sufficient statistics of declared columns, per engine; engines add no noise."""

from pdprivacy.engine.blocks import BLOCK
from pdprivacy.engine.pandas_engine import Columns, PandasEngine

__all__ = ["BLOCK", "Columns", "PandasEngine"]
