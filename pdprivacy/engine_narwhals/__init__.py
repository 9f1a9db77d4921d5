"""Exact sufficient statistics of frames of Polars, DuckDB, Dask, Spark and PyArrow; no noise here."""

from pdprivacy.engine_narwhals.chunks import Piecewise
from pdprivacy.engine_narwhals.engine_frame import EngineFrame
from pdprivacy.engine_narwhals.narwhals_engine import NarwhalsEngine

__all__ = ["EngineFrame", "NarwhalsEngine", "Piecewise"]
