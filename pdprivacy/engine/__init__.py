"""Exact sufficient statistics of declared columns, per engine; no noise here."""

from pdprivacy.engine.frame import BLOCK, PandasEngine

__all__ = ["BLOCK", "PandasEngine"]
