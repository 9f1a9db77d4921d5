"""Exact sufficient statistics of frames of Polars, DuckDB, Dask, Spark and PyArrow; no noise here."""

from pdprivacy.engine_narwhals.engine_frame import EngineFrame, SteppedEngine
from pdprivacy.engine_narwhals.narwhals_engine import NarwhalsEngine
from pdprivacy.engine_narwhals.native_frames import Piecewise

__all__ = ["EngineFrame", "NarwhalsEngine", "Piecewise", "SteppedEngine"]
