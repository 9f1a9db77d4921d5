"""Puts ``dp`` on every DataFrame of Dask; `pdprivacy.protect` needs no import of it."""

from pdprivacy.accessor import DataFrameDP
from pdprivacy.errors import MissingExtraError

try:
    from dask.dataframe.extensions import register_dataframe_accessor
except ImportError:
    raise MissingExtraError("Frames of Dask need their library.", 'pip install "pdprivacy[dask]"') from None

__all__: list[str] = []

register_dataframe_accessor("dp")(DataFrameDP)
