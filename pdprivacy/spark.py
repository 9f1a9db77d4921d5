"""Puts ``dp`` on every DataFrame of Spark's pandas API; `pdprivacy.protect` needs no import of it."""

from importlib.util import find_spec

from pdprivacy.accessor import DataFrameDP
from pdprivacy.errors import MissingExtraError

try:
    from pyspark.pandas.extensions import register_dataframe_accessor
except ImportError:
    if find_spec("pyspark") is None:
        raise MissingExtraError(
            "Frames of Spark need their library.", 'pip install "pdprivacy[spark]"'
        ) from None
    raise MissingExtraError(
        "The pandas API of this Spark does not work with this version of pandas.",
        'pip install "pandas<3"; or pdprivacy.protect(frame, schema, epsilon=1.0) of a frame of pyspark.sql, '
        "without this import",
    ) from None

__all__: list[str] = []

register_dataframe_accessor("dp")(DataFrameDP)
