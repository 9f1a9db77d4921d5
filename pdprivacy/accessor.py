"""The surface: ``df.dp`` on every DataFrame and Series, and on protected frames of other engines.

An accessor keeps no state, because pandas may make a new one at every ``df.dp``:
what stands behind a frame is looked up by identity in `pdprivacy.protection`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import pandas as pd

from pdprivacy import metadata, protection, releases
from pdprivacy.accounting import Accounting
from pdprivacy.conform import Fate
from pdprivacy.domain import Domain
from pdprivacy.errors import NotProtectedError
from pdprivacy.ledger import Budget, Ledger
from pdprivacy.metadata import Metadata
from pdprivacy.noise import RandomState
from pdprivacy.privacy import Neighbors, Rational
from pdprivacy.protection import Protected, ProtectedFrame
from pdprivacy.transform.refused import REFUSED, refusal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DataFrameDP", "SeriesDP"]

P = ParamSpec("P")
R = TypeVar("R")


def _release(function: Callable[Concatenate[Protected, P], R]) -> Callable[Concatenate[DataFrameDP, P], R]:
    """The method of an accessor that forwards to a release."""

    @functools.wraps(function)
    def method(self: DataFrameDP, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return function(self._protected(), *args, **kwargs)

    signature = inspect.signature(function)
    _, *parameters = signature.parameters.values()
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__signature__ = signature.replace(parameters=[itself, *parameters])  # type: ignore[attr-defined]
    return method


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

    def protect(
        self,
        schema: Any,
        *,
        epsilon: Rational | None = None,
        delta: Rational = 0,
        rho: Rational | None = None,
        accounting: Accounting | None = None,
        budget: Budget | Ledger | None = None,
        name: str | None = None,
        redeclare: bool = False,
        neighbors: Neighbors = "add_remove",
        public_rows: int | None = None,
        unit: Hashable = None,
        max_rows: int | None = None,
        on_invalid: Fate = "raise",
        rng: RandomState = None,
    ) -> pd.DataFrame | ProtectedFrame:
        """The frame bound to its declaration and a budget: a protected frame.

        Parameters
        ----------
        schema : a pandera ``DataFrameSchema`` or ``DataFrameModel`` (or a `pdprivacy.Domain`);
            columns opt in by ``metadata={"dp": {...}}``.
        epsilon : the total budget, for a new `pdprivacy.Budget`.
        delta : the delta of that budget.
        rho : in their place, a total in rho (zero-concentrated losses).
        accounting : how losses add up under the total: "basic" (None), "filter" or "zcdp"; see
            `pdprivacy.Budget`.
        budget : a budget to share with other protections of the same data, instead; or a
            `pdprivacy.Ledger`, which keeps the budget of that ``name`` for other processes and days. The
            total is stated when the name is new, and need not be again.
        name : in a ledger, of the data: one for all protections of the same data.
        redeclare : in a ledger, that data of that name is meant to be declared anew: other columns, bounds or
            labels than before. Other neighbours only before the first charge.
        neighbors : "add_remove" (one record more or less; the number of rows is private) or
            "replace_one" (one record with other values; the number of rows is public).
        public_rows : under "add_remove", a number of rows that everybody knows the table to have
            at least.
        unit : the column that names whose each record is, where one person may have several: neighbours then
            differ in all records of one unit. It need not be declared, and must not hold nulls.
        max_rows : with ``unit``, how many records of a unit are kept, any of them with the same probability;
            all sensitivities grow with it. How many were left out is in `quality`.
        on_invalid : what happens to values that do not meet the declaration: "raise"; "clip"
            (numbers to the nearest bound, all else raises); "drop" (the record is left out).
        rng : of the choice among the records of a unit; as of a release.

        Returns
        -------
        A DataFrame of the same cells. It is protected itself; what pandas makes of it is not.

        Raises
        ------
        DeclarationError, InvalidDataError, ParameterError, BudgetError, LedgerError. Warns
        (DeclarationWarning) where a declared bound equals the data's own extreme.

        >>> import pandas as pd, pandera.pandas as pa
        >>> import pdprivacy
        >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
        >>> schema = pa.DataFrameSchema({"age": age})
        >>> private = pd.DataFrame({"age": [31, 54, 27, 39]}).dp.protect(schema, epsilon=1.0)
        >>> noisy = private.dp.mean("age", epsilon=0.5)
        >>> private.dp.budget.left
        (0.5, 0.0)
        """
        return protection.protect(
            self._frame,
            schema,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            accounting=accounting,
            budget=budget,
            name=name,
            redeclare=redeclare,
            neighbors=neighbors,
            public_rows=public_rows,
            unit=unit,
            max_rows=max_rows,
            on_invalid=on_invalid,
            rng=rng,
        )

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
