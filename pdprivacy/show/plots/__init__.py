"""Pictures of releases, plans and budgets, and of confidential frames, which say that they are.

matplotlib (the extra ``plot``) is imported when something is drawn; none of its settings is changed. Colours
are those of Okabe and Ito; dashes, markers, hatches and shades tell the same things apart in grey.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pdprivacy.errors import NoPictureError, short_public
from pdprivacy.releases.metadata import COUNTS, MATRICES, recognized
from pdprivacy.show.plots.budget_plots import draw_budget, draw_plan
from pdprivacy.show.plots.canvas import MARK
from pdprivacy.show.plots.charts import Cube, are_periods, draw_numbers, draw_series
from pdprivacy.show.plots.confidential import PAINTERS, call_of
from pdprivacy.show.plots.count_plots import draw_counts, draw_matrix, draw_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MARK", "draw", "draw_budget"]


def draw(frame: pd.DataFrame | pd.Series[Any], ax: Axes | None = None) -> Axes:
    """Draw a release, a plan, or a confidential frame, on ``ax`` or in a new figure.

    numbers : (mean, sum, quantile, ...) points with their margins of error, the columns on separate axes
        within ``ax``, because their units differ. Selected numbers have no margin of error.
    counts of one column : bars with their margins of error; bins at their edges. If the widths of bins
        differ, the areas are the counts.
    numbers by period : (`groupby` and counts by the ``freq`` of dates) a line over time with margins of
        error, the columns one below the other.
    counts of several columns : a heat map with the counts and their margins of error.
    corr, cov : a heat map around 0; of correlations from -1 to 1.
    plan : root mean squared error and bias against epsilon, by bounding.
    risk_curve : the risk against epsilon, a line per column; dashed, its limits (the rows 0 and inf).
    utility : box plots over the marginals of each order, at each epsilon.
    tradeoff : the risk and the mean distances against epsilon; shaded, the recommended rows.
    compare_sampling : the error against the rate, a line with its 95 % band per epsilon; dotted, that of all
        records.
    compare_suppression : the error with its interval at each (m, M); dotted, that of all records.

    sizes of `anonymity` : a histogram of the records of each class; the largest hundredth may be left out.

    The last six are marked CONFIDENTIAL. Several releases are drawn side by side.

    Raises
    ------
    MetadataError : an unsupported frame, numbers that were changed or moved, or labels (`mode`, `top_k`).
    ParameterError : ``ax`` is not a matplotlib axes.
    MissingExtraError : matplotlib is not installed.

    >>> import pandas as pd
    >>> draw(pd.DataFrame({"cells": [0.25, 1.0]}))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    pdprivacy.errors.NoPictureError: This frame has no picture.
    Hint: ...private.dp.mean(...).dp.plot()...
    """
    known = recognized(frame)
    drawn: Axes
    if known.kind in PAINTERS and isinstance(frame, pd.DataFrame):
        drawn = PAINTERS[known.kind](frame, known.facts, ax)
    elif known.what == "release" and isinstance(known.facts.get("error"), Mapping):
        drawn = _released(Cube.of(frame), ax)
    elif known.what == "plan" and isinstance(frame, pd.DataFrame):
        drawn = draw_plan(frame, known.facts, ax)
    else:
        raise NoPictureError(
            "This frame has no picture.",
            "these have: private.dp.mean(...).dp.plot() and other releases, "
            "private.dp.plan.mean(...).dp.plot(), "
            + ", ".join(map(call_of, PAINTERS))
            + ", on the objects as they were returned; private.dp.plot() draws the budget.",
        )
    return drawn


def _released(cube: Cube, ax: Axes | None) -> Any:
    """Draw a release by its statistic and shape."""
    statistic, part = cube.view.facts.statistic, cube.view.facts.part is not None
    if statistic in MATRICES:
        square = cube.columns is not None and cube.rows.equals(cube.columns)
        return draw_matrix(cube, ax) if square or not part else draw_numbers(cube, ax)
    counted = statistic in COUNTS and (statistic != "count" or cube.view.by)
    if part and np.isnan(cube.values).any():
        return draw_numbers(cube, ax)
    if (counted or cube.view.by) and are_periods(cube.rows, cube.view.facts.lineage):
        return draw_series(cube, ax)
    line = part and cube.columns is None and cube.rows.nlevels == 1
    if (statistic == "crosstab" and not line) or (counted and cube.rows.nlevels > 1):
        return draw_table(cube, ax)
    return draw_counts(cube, ax) if counted else draw_numbers(cube, ax)


short_public(sys.modules[__name__], __all__)
