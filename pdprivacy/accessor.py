"""The surface: ``df.dp`` on every DataFrame and Series, and on protected frames of other engines.

An accessor keeps no state, because pandas may make a new one at every ``df.dp``:
what stands behind a frame is looked up by identity in `pdprivacy.protection`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import pandas as pd

from pdprivacy import metadata, protection, releases
from pdprivacy.domain import Domain
from pdprivacy.errors import NotProtectedError
from pdprivacy.ledger import Budget
from pdprivacy.metadata import Metadata
from pdprivacy.protection import Protected, ProtectedFrame
from pdprivacy.transform.refused import REFUSED, refusal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DataFrameDP", "SeriesDP"]

P = ParamSpec("P")
R = TypeVar("R")


def _method(
    function: Callable[..., R], given: Callable[[DataFrameDP], Any]
) -> Callable[Concatenate[DataFrameDP, ...], R]:
    """The method of an accessor that forwards to a function, with what it is given in the first place."""

    @functools.wraps(function)
    def method(self: DataFrameDP, /, *args: Any, **kwargs: Any) -> R:
        return function(given(self), *args, **kwargs)

    signature = inspect.signature(function)
    _, *parameters = signature.parameters.values()
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__signature__ = signature.replace(parameters=[itself, *parameters])  # type: ignore[attr-defined]
    return method


def _release(function: Callable[Concatenate[Protected, P], R]) -> Callable[Concatenate[DataFrameDP, P], R]:
    """The method that forwards to a release."""
    return _method(function, lambda accessor: accessor._protected())


def _of_frame(function: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[DataFrameDP, P], R]:
    """The method that forwards to a function of the frame itself."""
    return _method(function, lambda accessor: accessor._frame)


class _Result:
    """What every released object can say about itself."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    @property
    def metadata(self) -> Metadata:
        """The typed view of ``attrs["dp"]``; MetadataError where there is none."""
        return metadata.read(self._frame)

    def verify(self) -> bool:
        """Whether the numbers and labels are still those that were released."""
        return metadata.verify(self._frame)

    def interval(self) -> Any:
        """Each released number with its standard error and 95 % interval (of the noise alone)."""
        return metadata.interval(self._frame)

    def plot(self, ax: Axes | None = None) -> Axes:
        """The picture of a `risk_curve`, `utility`, `tradeoff` or comparison, CONFIDENTIAL as these.

        ``ax``: where to draw, by default on a new figure. Needs matplotlib.

        Raises MetadataError for any other frame, MissingExtraError without matplotlib.
        """
        from pdprivacy.plot import draw

        return draw(self._frame, ax=ax)


class DataFrameDP(_Result):
    """Differential privacy for a DataFrame.

    A raw frame offers `protect`; a protected one the releases; a released one `metadata`,
    `verify` and `interval`.
    """

    protect = _of_frame(protection.protect)

    def _protected(self) -> Protected:
        return protection.find(self._frame)

    def __getattr__(self, name: str) -> Any:
        if name in REFUSED:
            raise refusal(name)
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    @property
    def budget(self) -> Budget:
        """What was spent on what, and what is left."""
        return self._protected().budget

    @property
    def domain(self) -> Domain:
        """What is declared about each column."""
        return self._protected().domain

    @property
    def lineage(self) -> pd.DataFrame:
        """The steps between the raw frame and this one; see `pdprivacy.protection.lineage`."""
        return protection.lineage(self._protected())

    count = _release(releases.count)
    sum = _release(releases.sum)
    mean = _release(releases.mean)
    var = _release(releases.var)
    std = _release(releases.std)
    describe = _release(releases.describe)
    cov = _release(releases.cov)
    corr = _release(releases.corr)
    proportion = _release(releases.proportion)
    quantile = _release(releases.quantile)
    median = _release(releases.median)
    min = _release(releases.min)
    max = _release(releases.max)
    mode = _release(releases.mode)
    top_k = _release(releases.top_k)
    value_counts = _release(releases.value_counts)
    histogram = _release(releases.histogram)
    crosstab = _release(releases.crosstab)
    pooled_var = _release(releases.pooled_var)
    pooled_cov = _release(releases.pooled_cov)
    groupby = _release(releases.groupby)
    kmeans = _release(releases.kmeans)
    kmedian = _release(releases.kmedian)
    query = _release(releases.query)
    clip = _release(releases.clip)
    assign = _release(releases.assign)
    cut = _release(releases.cut)
    recode = _release(releases.recode)
    fillna = _release(releases.fillna)
    dropna = _release(releases.dropna)
    select = _release(releases.select)
    sample = _release(releases.sample)
    suppress_outliers = _release(releases.suppress_outliers)
    compare_sampling = _release(releases.compare_sampling)
    compare_suppression = _release(releases.compare_suppression)
    batch = _release(releases.batch)
    marginals = _release(releases.marginals)
    plan = _release(releases.plan)
    plan_releases = _release(releases.plan_releases)
    partition = _release(releases.partition)
    split = _release(releases.split)
    remaining = _release(releases.remaining)
    quality = _release(releases.quality)
    dr_ha = _release(releases.dr_ha)
    risk_curve = _release(releases.risk_curve)
    choose_epsilon = _release(releases.choose_epsilon)
    utility = _release(releases.utility)
    tradeoff = _release(releases.tradeoff)
    homogeneity = _release(releases.homogeneity)
    repeated_risk = _release(releases.repeated_risk)


class SeriesDP(_Result):
    """Differential privacy for a Series: what a released one says about itself."""

    def __getattr__(self, name: str) -> Any:
        if name in dir(DataFrameDP) and not name.startswith("_"):
            label = self._frame.name
            called = (
                f"({label!r}, ...)" if callable(getattr(DataFrameDP, name)) else f", not private[{label!r}]"
            )
            raise NotProtectedError(
                f"{name!r} is a method of a protected DataFrame, not of a Series.",
                f"private.dp.{name}{called} on the protected frame itself.",
            )
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")


def register() -> None:
    """Put ``dp`` on pandas' DataFrame and Series, and on protected frames of other engines."""
    pd.api.extensions.register_dataframe_accessor("dp")(DataFrameDP)
    pd.api.extensions.register_series_accessor("dp")(SeriesDP)
    ProtectedFrame.dp = property(DataFrameDP)
