"""Exact sufficient statistics of frames of Polars, DuckDB, Dask, Spark and PyArrow; no noise here."""

from pdprivacy.engine_narwhals.frame import NarwhalsEngine
from pdprivacy.engine_narwhals.pieces import Piecewise
from pdprivacy.engine_narwhals.source import Source

__all__ = ["NarwhalsEngine", "Piecewise", "Source"]
