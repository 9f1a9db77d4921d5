"""Bounds that are dates or durations: refused, with the number that can be declared in their place."""

from __future__ import annotations

import datetime
import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.errors import DeclarationError

__all__ = ["is_date", "refuse_dates"]

DAYS = {
    "pandas": "df[{name}] = (pd.to_datetime(df[{name}]) - {start}).dt.days",
    "polars": "df = df.with_columns((pl.col({name}) - {start}).dt.total_days())",
    "pyspark": "df = df.withColumn({name}, F.datediff({name}, F.lit({start})))",
}
"""How a column becomes days since a public day, by the engine of the schema."""

SPANS = {
    "pandas": "df[{name}] = df[{name}] / pd.Timedelta(days=1)",
    "polars": "df = df.with_columns(pl.col({name}).dt.total_microseconds() / 86_400_000_000)",
    "pyspark": 'df = df.withColumn({name}, F.col({name}).cast("long") / 86_400)',
}
"""How a column of durations becomes numbers of days."""


def is_date(value: object) -> bool:
    """Whether it is a date, a time or a duration.

    >>> is_date(pd.Timestamp("2020-01-01")), is_date(2020)
    (True, False)
    """
    dates = datetime.date | datetime.time | datetime.timedelta | np.datetime64 | np.timedelta64 | pd.Period
    return isinstance(value, dates)


def refuse_dates(name: Hashable, engine: str, ends: Sequence[Any], *, nullable: bool) -> None:
    """Refuse bounds of a column that are dates or durations.

    Parameters
    ----------
    engine : of the schema, "pandas", "polars" or "pyspark"; the hint is written for its frames.
    ends : the declared lower and upper end, None where there is none.

    Raises
    ------
    DeclarationError : one of them is no number; the hint makes numbers of the column and declares them.
    """
    if not any(map(is_date, ends)):
        return
    span = any(isinstance(end, datetime.timedelta | np.timedelta64) for end in ends)
    instants = [_instant(end, span) for end in ends]
    since = next((end for end in instants if end is not None), None)
    hint = "declare a number made of the column, or labels."
    if since is not None:
        start = "" if span else _start(since, engine)
        line = (SPANS if span else DAYS)[engine].format(name=repr(name), start=start)
        hint = (
            f"{line}, declared as {_declared(engine, instants, since, span, nullable)}; or cut it to labels."
        )
    raise DeclarationError(
        f"the bounds of column {name!r} are {'durations' if span else 'dates'}, and only numbers are bounds.",
        hint,
    )


def _instant(end: Any, span: bool) -> Any:
    """The end as pandas has it, None where that is unknown."""
    kind: Any = pd.Timedelta if span else pd.Timestamp
    try:
        found: Any = kind(end.start_time if isinstance(end, pd.Period) else end)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if pd.isna(found) else found


def _start(since: Any, engine: str) -> str:
    """The public day in code."""
    if engine == "pyspark":
        return repr(str(since)[:10])
    return f"pd.{since!r}" if engine == "pandas" else repr(since.to_pydatetime())


def _declared(engine: str, instants: Sequence[Any], since: Any, span: bool, nullable: bool) -> str:
    """The declaration of the days."""
    texts = []
    for end, blank, whole in zip(instants, ("LOWER", "UPPER"), (math.floor, math.ceil), strict=True):
        try:
            days = None if end is None else (end if span else end - since) / pd.Timedelta(days=1)
        except TypeError:  # one with a time zone, and one without
            days = None
        texts.append(blank if days is None else repr(float(days)) if span else str(whole(days)))
    masked = nullable and engine == "pandas"
    dtype = "float" if span else '"Int64"' if masked else "int"
    options = ", nullable=True" if nullable else ""
    options += ", coerce=True" if masked else ""
    return f'pa.Column({dtype}, pa.Check.in_range({", ".join(texts)}){options}, metadata={{"dp": {{}}}})'
