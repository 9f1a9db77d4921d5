"""What draws a frame: found by what the frame says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from pdprivacy.errors import MetadataError
from pdprivacy.plot.bars import draw_counts
from pdprivacy.plot.curator import PAINTERS
from pdprivacy.plot.heat import draw_matrix, draw_table
from pdprivacy.plot.numbers import draw_numbers
from pdprivacy.plot.planned import draw_plan
from pdprivacy.plot.reading import Read, read
from pdprivacy.recognition import recognized

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MATRICES = ("corr", "cov", "pooled_cov")
COUNTS = ("value_counts", "histogram")


def draw(frame: pd.DataFrame | pd.Series[Any], ax: Axes | None = None) -> Axes:
    """The picture of a released object, a plan, or a frame of the curator, on ``ax`` or in a new figure.

    numbers : (mean, sum, quantile, ...) a point each, with the interval of the noise; each column on an axis
        of its own, within ``ax``, because its unit is its own. Selected numbers have no interval.
    counts of one column : bars with the intervals of the noise; bins at their edges, and where their widths
        differ, their areas are the counts.
    counts of several columns : a heat map with the counts and the level of their noise.
    corr, cov : a heat map around 0, of correlations from -1 to 1.
    plan : root mean squared error and bias against epsilon, by bounding.
    risk_curve : the risk against epsilon, a line per column; dashed, its limits (the rows 0 and inf).
    utility : box plots over the marginals of each order, at each epsilon.
    tradeoff : the risk and the mean distances against epsilon; shaded, the recommended rows.
    compare_sampling : the error against the rate, a line with its 95 % band per epsilon; dotted, that of all
        records.
    compare_suppression : the error with its interval at each (m, M); dotted, as before.

    The last five are CONFIDENTIAL, and say so. Several releases are drawn side by side.

    Raises
    ------
    MetadataError : the frame is none of these, its numbers are not those that were released or not where
        they were, or it holds labels (`mode`, `top_k`).
    ParameterError : ``ax`` is something else than axes.
    MissingExtraError : matplotlib is not installed.

    >>> import pandas as pd
    >>> draw(pd.DataFrame({"cells": [0.25, 1.0]}))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    pdprivacy.errors.MetadataError: This frame has no picture.
    Hint: ...private.dp.mean(...).dp.plot()...
    """
    known = recognized(frame)
    drawn: Axes
    if known.kind in PAINTERS and isinstance(frame, pd.DataFrame):
        drawn = PAINTERS[known.kind](frame, known.facts, ax)
    elif known.what == "release" and isinstance(known.facts.get("error"), Mapping):
        drawn = _released(read(frame), ax)
    elif known.what == "plan" and isinstance(frame, pd.DataFrame):
        drawn = draw_plan(frame, known.facts, ax)
    else:
        raise MetadataError(
            "This frame has no picture.",
            "these have: private.dp.mean(...).dp.plot() and other releases, private.dp.plan(...).dp.plot(), "
            + ", ".join(f"private.dp.{name}(...).dp.plot()" for name in PAINTERS)
            + ", on the objects as they were returned; private.dp.plot() draws the budget.",
        )
    return drawn


def _released(found: Read, ax: Axes | None) -> Any:
    """The picture of a release, by its statistic and shape."""
    statistic = found.facts["statistic"]
    if statistic in MATRICES:
        return draw_matrix(found, ax)
    counted = statistic in COUNTS or (statistic == "count" and found.by)
    if statistic == "crosstab" or (counted and found.rows.nlevels > 1):
        return draw_table(found, ax)
    return draw_counts(found, ax) if counted else draw_numbers(found, ax)
