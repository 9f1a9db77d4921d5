"""Exact sufficient statistics of declared columns, per engine; engines add no noise."""

from pdprivacy.core.engines.blocks import BLOCK
from pdprivacy.core.engines.pandas_engine import Columns, PandasEngine

__all__ = ["BLOCK", "Columns", "PandasEngine"]
