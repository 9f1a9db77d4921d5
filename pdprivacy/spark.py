"""Puts ``dp`` on every DataFrame of Spark's pandas API; `pdprivacy.protect` needs no import of it."""

from pdprivacy.accessor import DataFrameDP
from pdprivacy.errors import MissingExtraError

try:
    from pyspark.pandas.extensions import register_dataframe_accessor
except ImportError:
    raise MissingExtraError("Frames of Spark need their library.", 'pip install "pdprivacy[spark]"') from None

__all__: list[str] = []

register_dataframe_accessor("dp")(DataFrameDP)
