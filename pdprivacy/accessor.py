"""The surface: ``df.dp`` on every DataFrame and Series, and on protected frames of other engines.

An accessor keeps no state, because pandas may make a new one at every ``df.dp``:
what stands behind a frame is looked up by identity in `pdprivacy.protection`.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar

import numpy as np
import pandas as pd

from pdprivacy import display, metadata, protection, releases
from pdprivacy.domain import Domain
from pdprivacy.errors import (
    ArgumentError,
    DeclarationError,
    NotProtectedError,
    ParameterError,
    PrivacyError,
)
from pdprivacy.hints import EXAMPLES, misuse, unknown
from pdprivacy.ledger import Budget
from pdprivacy.metadata import KEY, Metadata
from pdprivacy.protection import Protected, ProtectedFrame
from pdprivacy.recognition import LINEAGE
from pdprivacy.releases.call import kept
from pdprivacy.transform.refused import REFUSED, refusal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandera.pandas import DataFrameSchema, SeriesSchema

__all__ = ["DataFrameDP", "SeriesDP"]

P = ParamSpec("P")
R = TypeVar("R")


def _method(
    function: Callable[..., R], given: Callable[[DataFrameDP], Any]
) -> Callable[Concatenate[DataFrameDP, ...], R]:
    """The method of an accessor that forwards to a function, with what it is given in the first place."""

    @functools.wraps(function)
    def method(self: DataFrameDP, /, *args: Any, **kwargs: Any) -> R:
        wrong: PrivacyError | None
        try:
            return function(given(self), *args, **kwargs)
        except (ParameterError, DeclarationError) as error:
            wrong = _without_cells(error, function.__name__, (*args, *kwargs.values()))
            if wrong is None:
                raise
        except TypeError:
            wrong = misuse(function.__name__, known, (self, *args), kwargs)
            if wrong is None:
                raise
        raise wrong  # outside the except block: one error, not two

    signature = inspect.signature(function)
    _, *parameters = signature.parameters.values()
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    known = signature.replace(parameters=[itself, *parameters])
    method.__signature__ = known  # type: ignore[attr-defined]
    return method


def _without_cells(
    error: ParameterError | DeclarationError, name: str, given: Sequence[Any]
) -> PrivacyError | None:
    """The error without what it shows of columns or rows that were given; None where it shows none of it."""
    text = str(error)
    shown = {*re.findall(r"[^\s()\[\],;:='\"]+", text), *re.findall(r"'([^']*)'", text)}
    shown |= {one.rstrip(".") for one in shown}
    kinds = [type(one).__name__ for one in given if _may_hold_cells(one) and _holds_any(one, shown)]
    if not kinds or any(f"(got {kind})" in text for kind in kinds):  # named by its type alone
        return None
    return type(error)(
        f"{name!r} got {' and '.join(f'a {kind}' for kind in kinds)}, which holds what does not fit, and may "
        "be cells of the data.",
        EXAMPLES.get(name, 'labels such as "age", and public numbers'),
    )


def _may_hold_cells(value: object) -> bool:
    """Whether an argument is a column of a frame, or a row as `DataFrame.itertuples` gives it."""
    columns = (np.ndarray, pd.Series, pd.Index, pd.DataFrame, pd.api.extensions.ExtensionArray)
    return isinstance(value, columns) or (isinstance(value, tuple) and type(value) is not tuple)


def _holds_any(value: Any, texts: set[str]) -> bool:
    """Whether a cell is written as one of these texts."""
    cells = value.to_numpy(dtype=object).ravel() if isinstance(value, pd.DataFrame) else value
    return np.ndim(cells) > 0 and any(str(cell) in texts or repr(cell) in texts for cell in cells)


def _release(function: Callable[Concatenate[Protected, P], R]) -> Callable[Concatenate[DataFrameDP, P], R]:
    """The method that forwards to a release."""
    return _method(function, lambda accessor: accessor._protected().admitted(function.__name__))


def _of_frame(function: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[DataFrameDP, P], R]:
    """The method that forwards to a function of the frame itself."""
    return _method(function, lambda accessor: accessor._frame)


class _Result:
    """What every released object can say about itself."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __repr__(self) -> str:
        return display.text(self._frame, self._standing())

    def _repr_html_(self) -> str:
        return display.page(self._frame, self._standing())

    def _standing(self) -> display.Standing | PrivacyError:
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

        ``ax``: where to draw, by default on a new figure. Needs matplotlib. See `pdprivacy.plot.draw`.

        Raises MetadataError for any other frame and for a release that was changed, MissingExtraError
        without matplotlib.
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

    def plot(self, ax: Axes | None = None) -> Axes:
        """The picture of what was released, of a plan, or of a protected frame: what its budget went on.

        ``ax``: where to draw, by default on a new figure. Needs matplotlib. See `pdprivacy.plot.draw` and
        `pdprivacy.plot.draw_budget`.

        Raises MetadataError for any other frame and for a release that was changed, DerivedFrameError for
        what pandas made of a protected frame, MissingExtraError without matplotlib.
        """
        protected = None
        try:
            protected = self._protected()
        except NotProtectedError as error:
            if type(error) is not NotProtectedError:  # it was protected once
                raise
        if protected is None:
            return super().plot(ax=ax)
        return protected.budget.plot(ax=ax)

    def _standing(self) -> display.Standing | PrivacyError:
        try:
            facts = self._protected()
        except PrivacyError as error:
            return error
        return display.Standing(
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
        raise ArgumentError("'dp' has no columns to choose from: a release is told which.", EXAMPLES["mean"])

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
    kmeans = _release(kept(releases.kmeans))
    kmedian = _release(kept(releases.kmedian))
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
    ProtectedFrame.dp = property(DataFrameDP)
    for groups in (pd.api.typing.DataFrameGroupBy, pd.api.typing.SeriesGroupBy):
        groups.dp = property(_of_groups)  # type: ignore[union-attr]
