"""The surface: ``df.dp`` on every DataFrame and Series, and on protected frames of other engines.

An accessor keeps no state, because pandas may make a new one at every ``df.dp``: what stands behind a
protected frame is kept by the frame.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar

import pandas as pd

from pdprivacy import metadata, protection, releases
from pdprivacy.domain import Domain
from pdprivacy.errors import (
    ArgumentError,
    NotProtectedError,
    PrivacyError,
)
from pdprivacy.expressions import REFUSED, refusal
from pdprivacy.hints import EXAMPLES, misuse, unknown
from pdprivacy.ledger import Budget
from pdprivacy.metadata import KEY, Metadata
from pdprivacy.protection import Protected, ProtectedFrame
from pdprivacy.release.execute import executed
from pdprivacy.release.spec import Release
from pdprivacy.releases.planning import PLANS
from pdprivacy.show import pages
from pdprivacy.show.recognition import LINEAGE
from pdprivacy.show.tracebacks import ShortTraceback

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandera.pandas import DataFrameSchema, SeriesSchema

__all__ = ["DataFrameDP", "PlanDP", "SeriesDP"]

P = ParamSpec("P")
R = TypeVar("R")


def _method(
    function: Callable[..., R], given: Callable[[Any], Any], prefix: str = "private.dp"
) -> Callable[Concatenate[Any, ...], R]:
    """The method of an accessor that forwards to a function, with what it is given in the first place."""

    @functools.wraps(function)
    def method(self: Any, /, *args: Any, **kwargs: Any) -> R:
        __tracebackhide__ = _rich_traceback_omit = True
        wrong: PrivacyError | None
        with ShortTraceback():
            try:
                return function(given(self), *args, **kwargs)
            except TypeError:
                wrong = misuse(function.__name__, known, (self, *args), kwargs, prefix)
                if wrong is None:
                    raise
            raise wrong  # outside the except block: one error, not two

    signature = inspect.signature(function)
    _, *parameters = signature.parameters.values()
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    known = signature.replace(parameters=[itself, *parameters])
    method.__signature__ = known  # type: ignore[attr-defined]
    return method


def _release(function: Callable[Concatenate[Protected, P], R]) -> Callable[Concatenate[DataFrameDP, P], R]:
    """The method that forwards to a release."""
    return _method(function, lambda accessor: accessor._protected().admitted(function.__name__))


def _executed(
    function: Callable[Concatenate[Protected, P], Release[R]],
) -> Callable[Concatenate[DataFrameDP, P], R]:
    """The method that makes a release, and executes it."""
    return _release(executed(function))


def _row_step(function: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[DataFrameDP, P], R]:
    """The method that forwards to a row step of the protected frame."""
    return _method(function, lambda accessor: ProtectedFrame(accessor._protected()))


def _of_frame(function: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[DataFrameDP, P], R]:
    """The method that forwards to a function of the frame itself."""
    return _method(function, lambda accessor: accessor._frame)


class _Result:
    """What every released object can say about itself."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __repr__(self) -> str:
        return pages.text(self._frame, self._standing())

    def _repr_html_(self) -> str:
        return pages.html(self._frame, self._standing())

    def _standing(self) -> pages.Standing | PrivacyError:
        """What stands behind a protected frame, as far as it may be shown; or why nothing does."""
        try:
            metadata.read(self._frame)
        except PrivacyError as error:
            return error
        return NotProtectedError("A release is not protected: its numbers may be published.")

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

    def schema(self) -> DataFrameSchema | SeriesSchema:
        """A pandera schema that the release meets: its labels in order, dtypes, and bounds where it has some.

        For whoever takes the release on: a changed label or dtype, or a number out of bounds, fails it.
        Raises MetadataError for a frame that is no release, or was changed.
        """
        from pdprivacy.schema.released import released_schema

        return released_schema(self._frame)

    def plot(self, ax: Axes | None = None) -> Axes:
        """The picture of what was released, with its noise, of a `plan`, or of a frame of the curator.

        ``ax``: where to draw, by default on a new figure. Needs matplotlib. See `pdprivacy.show.plots.draw`.

        Raises MetadataError for any other frame and for a release that was changed, MissingExtraError
        without matplotlib.
        """
        from pdprivacy.show.plots import draw

        return draw(self._frame, ax=ax)


class DataFrameDP(_Result):
    """Differential privacy for a DataFrame.

    A raw frame offers `protect`; a protected one the releases; a released one `metadata`,
    `verify` and `interval`.
    """

    protect = _of_frame(protection.protect)

    def _protected(self) -> Protected:
        return protection.find(self._frame)

    def plot(self, ax: Axes | None = None) -> Axes:
        """The picture of what was released, of a plan, or of a protected frame: what its budget went on.

        ``ax``: where to draw, by default on a new figure. Needs matplotlib. See `pdprivacy.show.plots.draw`
        and `pdprivacy.show.plots.draw_budget`.

        Raises MetadataError for any other frame and for a release that was changed, MissingExtraError
        without matplotlib.
        """
        if isinstance(self._frame, ProtectedFrame):
            return self._protected().budget.plot(ax=ax)
        return super().plot(ax=ax)

    def _standing(self) -> pages.Standing | PrivacyError:
        try:
            facts = self._protected()
        except PrivacyError as error:
            return error
        return pages.Standing(
            engine="pandas" if isinstance(facts.records, pd.DataFrame) else facts.records.engine,
            domain=facts.domain,
            unit=facts.unit,
            budget=facts.budget,
            lineage=protection.lineage(facts),
            rows=facts.scope.held()[1],
            seeded=facts.seeded,
        )

    def __getattr__(self, name: str) -> Any:
        if name in REFUSED:
            raise refusal(name)
        if name.startswith("_"):  # asked for by Python and by notebooks
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        raise unknown(type(self).__name__, name, _offered())

    def __getitem__(self, columns: object) -> NoReturn:
        """Refused: columns are an argument of each release."""
        raise ArgumentError("'dp' cannot be indexed: columns are arguments of releases.", EXAMPLES["mean"])

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
        """The steps between the raw frame and this one, and how far each takes neighbours apart.

        A DataFrame with a row per step: ``step``; ``stability``, the records of the result that one record
        more, less or replaced can touch (of a unit, where several may be one's), NA for a secret part;
        ``cost``, what the whole pays for releases whose epsilons add up to ``epsilon``.
        """
        found = protection.lineage(self._protected())
        found.attrs[KEY] = dict(LINEAGE)
        return found

    @property
    def plan(self) -> PlanDP:
        """How far off a release would be, as ``plan.mean(...)``; see `PlanDP`."""
        return PlanDP(self._protected().admitted("plan"))

    count = _executed(releases.count)
    sum = _executed(releases.sum)
    mean = _executed(releases.mean)
    var = _executed(releases.var)
    std = _executed(releases.std)
    describe = _executed(releases.describe)
    cov = _executed(releases.cov)
    corr = _executed(releases.corr)
    proportion = _executed(releases.proportion)
    quantile = _executed(releases.quantile)
    median = _executed(releases.median)
    min = _executed(releases.min)
    max = _executed(releases.max)
    mode = _executed(releases.mode)
    top_k = _executed(releases.top_k)
    value_counts = _executed(releases.value_counts)
    histogram = _executed(releases.histogram)
    crosstab = _executed(releases.crosstab)
    pooled_var = _executed(releases.pooled_var)
    pooled_cov = _executed(releases.pooled_cov)
    groupby = _release(releases.groupby)
    kmeans = _executed(releases.kmeans)
    kmedian = _executed(releases.kmedian)
    query = _row_step(ProtectedFrame.query)
    clip = _row_step(ProtectedFrame.clip)
    assign = _row_step(ProtectedFrame.assign)
    cut = _row_step(ProtectedFrame.cut)
    recode = _row_step(ProtectedFrame.recode)
    fillna = _row_step(ProtectedFrame.fillna)
    dropna = _row_step(ProtectedFrame.dropna)
    select = _row_step(ProtectedFrame.select)
    sample = _release(releases.sample)
    suppress_outliers = _release(releases.suppress_outliers)
    compare_sampling = _release(releases.compare_sampling)
    compare_suppression = _release(releases.compare_suppression)
    batch = _release(releases.batch)
    marginals = _release(releases.marginals)
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


class PlanDP:
    """How far off releases would be, for several ``epsilon`` and ``bounding``; nothing is read or charged.

    Each method has the arguments of the release of its name, and ``rows`` and ``at``, as in
    ``private.dp.plan.mean("age", epsilon=[0.1, 1], bounding=[None, "clamp", "truncated"], rows=1000)``.
    ``rows``: the number of records, where it is not public: a guess of yours. ``at``: the value that the
    statistic is assumed to have (of a sum, the mean of its terms; of a table, the count of every cell; of a
    description, the standard deviation); by default the middle of the bounds, the variance of uniform
    values, and even tables. ``bounds`` and ``calibration="published"`` count where there is bounding, or
    truncation. Releases by group cannot be planned.

    A method returns a DataFrame indexed by epsilon and bounding (and by released number, where there are
    several): ``scale`` of the noise, ``bias`` and ``rmse`` at the assumed value, the largest of both
    over the bounds (``worst_bias``, ``worst_rmse``), and the width of the 95 % ``interval``. Where a
    number is made of several noisy ones, ``scale`` and the largest errors are NaN, and bias and rmse
    hold to first order; of sums and shares of bounded counts they are NaN, too.

    With a number of rows n the error of a mean, proportion, variance or covariance falls as 1 / n:
    their sensitivities do (Liu 2019, Proposition 2).

    ``frame.dp.plot()`` draws it. What was asked, with your guesses, is in ``attrs["dp_plan"]``.

    Raises ParameterError for a private number of rows without ``rows``; UnknownNameError for a release that
    cannot be planned; and what the release itself would raise, but for the budget.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.dp.plan.mean("age", epsilon=[0.1, 1], rows=1000)["interval"].round(1).tolist()
    [7.2, 0.7]
    """

    def __init__(self, facts: Protected) -> None:
        self._facts = facts

    def __repr__(self) -> str:
        return f"plan: {', '.join(PLANS)}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"'PlanDP' has no attribute {name!r}")
        raise unknown("plan", name, PLANS, "private.dp.plan")


for _name, _plan in PLANS.items():
    setattr(PlanDP, _name, _method(_plan, lambda plans: plans._facts, "private.dp.plan"))


class SeriesDP(_Result):
    """Differential privacy for a Series: what a released one says about itself."""

    def __getattr__(self, name: str) -> Any:
        if name in _offered():
            of = "a DataFrame" if name == "protect" else "a protected DataFrame"
            raise NotProtectedError(f"{name!r} is a method of {of}, not of a Series.", self._instead(name))
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def _instead(self, name: str) -> str:
        """What to write for a method of frames; the name of a Series may be the label of a row."""
        if name == "protect":
            return "private = df.dp.protect(schema, epsilon=1.0) of the whole frame, once"
        if not callable(getattr(DataFrameDP, name)):
            return f"private.dp.{name} of the protected frame itself, not of one column."
        example = EXAMPLES.get(name, f"private.dp.{name}(...)")
        return f"{example} on the protected frame itself."


def _offered() -> list[str]:
    return [name for name in dir(DataFrameDP) if not name.startswith("_")]


def missing(name: str) -> AttributeError:
    """The error for a name that the package itself does not have, such as that of a release."""
    if name.startswith("_"):
        return AttributeError(f"module 'pdprivacy' has no attribute {name!r}")
    return unknown("pdprivacy", name, _offered())


def _of_groups(groups: Any) -> Any:
    """The column "dp" of what pandas grouped; NotProtectedError where there is none.

    pandas finds the groups in the data; declared ones are there whether anybody is in them or not.
    """
    if "dp" in getattr(groups.obj, "columns", ()):
        return groups["dp"]
    raise NotProtectedError(
        "Groups made by pandas are not protected: which there are would tell who is in the data.",
        f"private = {EXAMPLES['protect']}; {EXAMPLES['groupby']}",
    )


def register() -> None:
    """Put ``dp`` on pandas' DataFrame and Series, and on protected frames of other engines."""
    pd.api.extensions.register_dataframe_accessor("dp")(DataFrameDP)
    pd.api.extensions.register_series_accessor("dp")(SeriesDP)
    ProtectedFrame.dp = property(DataFrameDP)  # type: ignore[assignment]
    for groups in (pd.api.typing.DataFrameGroupBy, pd.api.typing.SeriesGroupBy):
        groups.dp = property(_of_groups)  # type: ignore[union-attr]
