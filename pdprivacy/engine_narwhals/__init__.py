"""Exact sufficient statistics of frames of Polars, DuckDB, Dask, Spark and PyArrow; no noise here."""

from pdprivacy.engine_narwhals.narwhals_engine import EngineFrame, NarwhalsEngine
from pdprivacy.engine_narwhals.native_frames import Piecewise

__all__ = ["EngineFrame", "NarwhalsEngine", "Piecewise"]
