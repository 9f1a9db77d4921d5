"""Exact sufficient statistics of frames of Polars, DuckDB, Dask, Spark and PyArrow; no noise here."""

from pdprivacy.engine_narwhals.engine_frame import EngineFrame
from pdprivacy.engine_narwhals.narwhals_engine import NarwhalsEngine
from pdprivacy.engine_narwhals.pieces import Piecewise

__all__ = ["EngineFrame", "NarwhalsEngine", "Piecewise"]
