"""Exact sufficient statistics of declared columns of Polars, DuckDB, Dask and PyArrow; no noise here."""

from pdprivacy.engine_narwhals.frame import NarwhalsEngine

__all__ = ["NarwhalsEngine"]
