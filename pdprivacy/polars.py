"""Puts ``dp`` on every DataFrame and LazyFrame of Polars; `pdprivacy.protect` needs no import of it.

>>> import polars as pl, pandera.polars as pa
>>> import pdprivacy.polars
>>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
>>> private = pl.LazyFrame({"age": [31, 54, 27, 39]}).dp.protect(pa.DataFrameSchema({"age": age}), epsilon=1)
>>> private.dp.mean("age", epsilon=0.5).index.tolist()
['age']
"""

from pdprivacy.accessor import DataFrameDP
from pdprivacy.errors import MissingExtraError

try:
    import polars
except ImportError:
    raise MissingExtraError(
        "Frames of Polars need their library.", 'pip install "pdprivacy[polars]"'
    ) from None

__all__: list[str] = []

polars.api.register_dataframe_namespace("dp")(DataFrameDP)
polars.api.register_lazyframe_namespace("dp")(DataFrameDP)
