"""A small survey with a column of every role."""

from __future__ import annotations

import numpy as np
import pandas as pd

import pdprivacy  # noqa: F401 - registers the accessor
from pdprivacy import Column, Domain
from tests.support.every_dtype import NAN

SURVEY = Domain(
    (
        Column("age", "integer", lower=18, upper=90),
        Column("pay", "float", nullable=True, lower=0.0, upper=8.0),
        Column("town", "category", categories=("a", "b"), role="quasi_identifier"),
        Column("ill", "boolean", role="sensitive"),
    )
)
SURVEYED = pd.DataFrame(
    {
        "age": np.arange(20) + 30,
        "pay": [NAN, *np.linspace(1, 7, 19)],
        "town": ["a", "b"] * 10,
        "ill": [True, False, False, False] * 5,
    }
)
