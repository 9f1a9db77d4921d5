"""Exact sufficient statistics of frames of Polars, DuckDB, Dask, Spark and PyArrow; no noise here."""

from pdprivacy.core.engines.other.engine_frame import EngineFrame, SteppedEngine
from pdprivacy.core.engines.other.narwhals_engine import NarwhalsEngine
from pdprivacy.core.engines.other.native_frames import Piecewise

__all__ = ["EngineFrame", "NarwhalsEngine", "Piecewise", "SteppedEngine"]
