"""Labels of every type."""

from __future__ import annotations

import datetime

import pandas as pd
from hypothesis import strategies as st

SCALARS = st.one_of(
    st.text(max_size=4).filter(lambda text: not text or text.isprintable()),
    st.integers(-(2**70), 2**70),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.dates(datetime.date(1700, 1, 1), datetime.date(2200, 1, 1)),
    st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)).map(pd.Timestamp),
    st.timedeltas(datetime.timedelta(-9), datetime.timedelta(9)),
    st.decimals(-9, 9, places=3),
    st.fractions(-9, 9),
    st.uuids(),
    st.binary(max_size=3),
)
