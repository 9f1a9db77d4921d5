"""Accessors: ``df.dp`` on every DataFrame and Series, and on protected frames of any engine.

An accessor keeps no state, because every ``df.dp`` makes a new one: a protected frame keeps its
own records, declaration and budget. The methods are the functions of `pdprivacy.releases` and the row steps
of a protected frame. Type checkers read their signatures in ``signatures.pyi``, which is generated from them.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn

import pandas as pd

from pdprivacy import frames as protection
from pdprivacy import releases
from pdprivacy.core.gate import execute as gate
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.spec import MethodCall
from pdprivacy.declaration.domain import Domain
from pdprivacy.errors import (
    ArgumentError,
    NotProtectedError,
    ParameterError,
    PrivacyError,
    short_traceback,
    short_tracebacks,
    shorten,
)
from pdprivacy.frames import ROW_STEPS, ProtectedFrame
from pdprivacy.frames.protect import protect
from pdprivacy.frames.refused_steps import REFUSED, refusal
from pdprivacy.hints.examples import EXAMPLES
from pdprivacy.hints.suggestions import misuse, unknown, with_hints
from pdprivacy.ledger import Budget
from pdprivacy.releases import PLANNED, RELEASING, excerpts, metadata, projection
from pdprivacy.releases.metadata import Metadata
from pdprivacy.text.marks import KEY
from pdprivacy.types import Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandera.pandas import DataFrameSchema, SeriesSchema

    from pdprivacy.declaration.schema import Overlay
    from pdprivacy.releases.planning import GroupPlans
    from pdprivacy.show.pages import Standing
    from pdprivacy.signatures import PlanMethods, ProtectedMethods
else:  # attached below
    PlanMethods = ProtectedMethods = object


def _method(
    function: Callable[..., Any],
    receiver: Callable[[Any], Any],
    prefix: str = "private.dp",
    *,
    executed: bool = False,
) -> Callable[Concatenate[Any, ...], Any]:
    """Return the method of an accessor that forwards to a function; its first argument is ``receiver(self)``.

    ``executed``: the function makes a release, and the method executes it.
    """

    @functools.wraps(function)
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = _rich_traceback_omit = True
        handled = sys.exc_info()[1]
        try:
            try:
                first = receiver(self)
                result = function(first, *args, **kwargs)
                return (
                    gate.execute(result, MethodCall(function, (first, *args), kwargs)) if executed else result
                )
            except (TypeError, ParameterError):  # a plan checks its rows before other arguments
                wrong = misuse(function.__name__, complete, (self, *args), kwargs, prefix)
                if wrong is None:
                    raise
                raise wrong from None
        except PrivacyError as error:
            shorten(error, handled, self)
            raise

    signature = inspect.signature(function)
    _, *parameters = signature.parameters.values()
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    complete = signature.replace(parameters=[itself, *parameters])
    method.__signature__ = complete  # type: ignore[attr-defined]
    return method


class _Late:
    """A method that is made, with its imports, at its first use."""

    def __init__(self, owner: type, name: str, make: Callable[[str], Callable[..., Any]]) -> None:
        self._owner, self._name, self._make = owner, name, make
        setattr(owner, name, self)

    def __get__(self, instance: object, kind: type) -> Any:
        method = self._make(self._name)
        setattr(self._owner, self._name, method)
        return method if instance is None else method.__get__(instance)


def _public(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_")]


class _Accessor:
    """Base class of the accessors of all kinds of frames."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    @short_traceback
    def __repr__(self) -> str:
        from pdprivacy.show import pages

        return pages.text(self._frame, self._standing())

    def _repr_html_(self) -> str:
        from pdprivacy.show import pages

        return pages.html(self._frame, self._standing())

    def _standing(self) -> Standing | PrivacyError:
        """The public facts behind a protected frame, or the error that says why there are none."""
        raise NotImplementedError


@short_tracebacks
class _Result(_Accessor):
    """Base class of the accessors of released objects."""

    def __dir__(self) -> Iterable[str]:
        """The names that apply to this frame, and no other public ones."""
        kind, names = metadata.recognized(self._frame).what, set(super().__dir__())
        offered = {"release": _public(_Result), "plan": ["plot"], "confidential": ["plot"]}.get(kind, [])
        raw = {"check", "protect"} & names if kind == "other" else set()
        return sorted({name for name in names if name.startswith("_")} | {*offered} | raw)

    def _standing(self) -> Standing | PrivacyError:
        try:
            metadata.read(self._frame)
        except PrivacyError as error:
            return error
        return NotProtectedError("A release is not protected: its numbers may be published.")

    @property
    def metadata(self) -> Metadata:
        """The metadata of the release, ``attrs["dp"]``. Raises MetadataError for a frame without it."""
        return metadata.read(self._frame)

    def verify(self) -> bool:
        """Return whether the numbers and labels are still those that were released, all of them and in order.

        `changes` says what differs.

        >>> import pandas as pd, pdprivacy
        >>> domain = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=120),))
        >>> private = pdprivacy.protect(pd.DataFrame({"age": [31, 54]}), domain, epsilon=1)
        >>> mean = private.dp.mean("age", epsilon=0.5, rng=1)
        >>> mean.dp.verify(), (mean + 1).dp.verify()
        (True, False)
        """
        return metadata.verify(self._frame)

    @property
    def changes(self) -> str:
        """How the frame differs from the release that it was made of; an empty text for the release itself.

        Numbers that pandas sorted, selected, reshaped or rounded keep their errors: all displays, `interval`
        and `save` take such a frame. Numbers with other values than were released under their labels have no
        error.

        >>> import pandas as pd, pdprivacy
        >>> domain = pdprivacy.Domain((pdprivacy.Column("x", "category", categories=("a", "b", "c")),))
        >>> private = pdprivacy.protect(pd.DataFrame({"x": ["a", "b", "b"]}), domain, epsilon=1)
        >>> counts = private.dp.value_counts("x", epsilon=1, rng=1)
        >>> counts.dp.changes, counts.iloc[::-1].dp.changes
        ('', 'in another order')
        >>> (counts + 1).dp.changes.partition(": ")[2]
        '3 of 3 numbers have other values than were released under their labels'
        """
        return excerpts.changes(self._frame)

    @with_hints
    def relabel(self, labels: Mapping[Any, Any]) -> Any:
        """Return the release with other labels, each number with its error.

        ``labels``: the new label of each old one, in rows and columns; or by the name of a level, as in
        ``{"region": {"n": "north"}}``.

        >>> import pandas as pd, pdprivacy
        >>> domain = pdprivacy.Domain((pdprivacy.Column("x", "boolean"),))
        >>> private = pdprivacy.protect(pd.DataFrame({"x": [True, False]}), domain, epsilon=1)
        >>> counts = private.dp.value_counts("x", epsilon=1, sort=False)
        >>> counts.dp.relabel({True: "yes", False: "no"}).index.tolist()
        ['no', 'yes']
        """
        return excerpts.relabel(self._frame, labels)

    @with_hints
    def total(self, axis: int | str | None = None, level: float = 0.95) -> pd.DataFrame:
        """Return the sum of released counts or sums with its error, at no cost.

        See `pdprivacy.inference.derived.total`.

        >>> import pandas as pd, pdprivacy
        >>> domain = pdprivacy.Domain((pdprivacy.Column("x", "boolean"),))
        >>> private = pdprivacy.protect(pd.DataFrame({"x": [True, False]}), domain, epsilon=1000)
        >>> private.dp.value_counts("x", epsilon=1000).dp.total().round(3)
               estimate  standard_error  lower  upper
        total       2.0             0.0    2.0    2.0
        """
        from pdprivacy.inference import derived

        return derived.total(self._frame, axis, level)

    @with_hints
    def difference(self, first: Hashable, second: Hashable, level: float = 0.95) -> pd.DataFrame:
        """Return the released number of one label minus that of another one with its error, at no cost.

        See `pdprivacy.inference.derived.difference`.

        >>> import pandas as pd, pdprivacy
        >>> domain = pdprivacy.Domain((pdprivacy.Column("x", "boolean"),))
        >>> private = pdprivacy.protect(pd.DataFrame({"x": [True, True, False]}), domain, epsilon=1000)
        >>> private.dp.value_counts("x", epsilon=1000).dp.difference(True, False).round(3)
                      estimate  standard_error  lower  upper
        True - False       1.0             0.0    1.0    1.0
        """
        from pdprivacy.inference import derived

        return derived.difference(self._frame, first, second, level)

    @with_hints
    def ratio(self, first: Hashable, second: Hashable, level: float = 0.95) -> pd.DataFrame:
        """Return the released number of one label over that of another one with its error, at no cost.

        See `pdprivacy.inference.derived.ratio`.

        >>> import pandas as pd, pdprivacy
        >>> domain = pdprivacy.Domain((pdprivacy.Column("x", "boolean"),))
        >>> private = pdprivacy.protect(pd.DataFrame({"x": [True, True, False]}), domain, epsilon=1000)
        >>> private.dp.value_counts("x", epsilon=1000).dp.ratio(True, False).round(3)
                      estimate  standard_error  lower  upper
        True / False       2.0             0.0    2.0    2.0
        """
        from pdprivacy.inference import derived

        return derived.ratio(self._frame, first, second, level)

    @with_hints
    def censor(self, below: float) -> Any:
        """Return the released counts without those below a threshold, which leave the metadata, too.

        See `pdprivacy.releases.excerpts.censor`.

        >>> import pandas as pd, pdprivacy
        >>> domain = pdprivacy.Domain((pdprivacy.Column("x", "boolean"),))
        >>> private = pdprivacy.protect(pd.DataFrame({"x": [True] * 30 + [False]}), domain, epsilon=1000)
        >>> private.dp.value_counts("x", epsilon=1000).dp.censor(10).to_dict()
        {True: 30}
        """
        return excerpts.censor(self._frame, below)

    @with_hints
    def interval(self, level: float | None = None) -> Any:
        """Return each released number with its standard error and confidence interval, at no cost.

        Both account for the noise alone; those of a regression account for the sample and the noise.

        ``level``: the coverage, a number between 0 and 1; by default 0.95, which all displays show.
        The ends of ``quantile(..., interval=True)`` were selected at this level, and have no other; those of
        ``interval=0.99`` at 99 %.

        Raises MetadataError for numbers that were changed, for selections without an interval, and for a
        ``level`` other than 0.95 where the metadata lack the noisy numbers behind the release.

        >>> import pandas as pd, pdprivacy
        >>> domain = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=120),))
        >>> private = pdprivacy.protect(pd.DataFrame({"age": [31, 54]}), domain, epsilon=1)
        >>> mean = private.dp.mean("age", epsilon=0.5, rng=1)
        >>> mean.dp.interval().columns.tolist()
        ['released', 'standard_error', 'lower', 'upper']
        >>> count = private.dp.count(epsilon=0.5, rng=1)
        >>> count.dp.interval(level=0.99)[["lower", "upper"]] - count.iloc[0]
              lower  upper
        rows   -9.0    9.0
        """
        from pdprivacy.inference.interval_levels import interval

        return interval(self._frame, level)

    def unprojected(self) -> Any:
        """Return the release as ``bounding=None`` returns it: before projection onto what is possible.

        Averages, differences and sums of many numbers need these: projected ones are biased near a limit.

        >>> import pandas as pd, pdprivacy
        >>> domain = pdprivacy.Domain((pdprivacy.Column("member", "boolean"),))
        >>> private = pdprivacy.protect(pd.DataFrame({"member": [True] * 49 + [False]}), domain, epsilon=1)
        >>> share = private.dp.proportion("member", epsilon=1, rng=5)
        >>> float(share.iloc[0]), float(share.dp.unprojected().round(3).iloc[0])
        (1.0, 1.118)
        """
        return projection.unprojected(self._frame)

    def schema(self) -> DataFrameSchema | SeriesSchema:
        """Return a pandera schema that the release meets: its labels in order, its dtypes, and any bounds.

        Whoever receives the release can validate it: a changed label or dtype, or a number out of bounds,
        fails. Raises MetadataError for a frame that is not a release, or was changed.

        >>> import pandas as pd, pdprivacy
        >>> domain = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=120),))
        >>> private = pdprivacy.protect(pd.DataFrame({"age": [31, 54]}), domain, epsilon=1)
        >>> mean = private.dp.mean("age", epsilon=0.5, rng=1)
        >>> mean.dp.schema().validate(mean).equals(mean)
        True
        """
        from pdprivacy.pipeline.release_schema import released_schema

        return released_schema(self._frame)

    @with_hints
    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:  # noqa: A002
        """Write the release to a Parquet, CSV or JSON file, which `pdprivacy.read_release` reads unchanged.

        ``path``: its suffix sets the format (``.parquet``, ``.csv``, ``.csv.gz``, ``.json``), unless
        ``format`` does. See `pdprivacy.pipeline.storage.save`.

        >>> import pandas as pd, pdprivacy, tempfile
        >>> domain = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=120),))
        >>> private = pdprivacy.protect(pd.DataFrame({"age": [31, 54]}), domain, epsilon=1)
        >>> mean, folder = private.dp.mean("age", epsilon=0.5), tempfile.TemporaryDirectory()
        >>> mean.dp.save(folder.name + "/mean.json")
        >>> pdprivacy.read_release(folder.name + "/mean.json").dp.verify()
        True
        >>> folder.cleanup()
        """
        from pdprivacy.pipeline.storage import save

        save(self._frame, path, format)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each released number: the number, its standard error and its interval.

        The errors are those of `interval`; unknown ones, such as those of a quantile, are NaN. The column
        labels of a table become further levels of the index. See `pdprivacy.show.export.to_frame`.

        >>> import pandas as pd, pdprivacy
        >>> domain = pdprivacy.Domain((pdprivacy.Column("member", "boolean"),))
        >>> private = pdprivacy.protect(pd.DataFrame({"member": [True, False]}), domain, epsilon=1)
        >>> private.dp.value_counts("member", epsilon=0.5).dp.to_frame().columns.tolist()
        ['released', 'standard_error', 'lower', 'upper']
        """
        from pdprivacy.show import export

        return export.to_frame(self._frame)

    def to_markdown(self, *, note: bool = True) -> str:
        """Return the release as a Markdown table, each number with its margin of error.

        ``note``: whether a line below gives the title, the meaning of ±, and the cost. See
        `pdprivacy.show.export.markdown`.

        >>> import pandas as pd, pdprivacy
        >>> domain = pdprivacy.Domain((pdprivacy.Column("member", "boolean"),))
        >>> private = pdprivacy.protect(pd.DataFrame({"member": [True, False] * 50}), domain, epsilon=1)
        >>> print(private.dp.count(epsilon=0.5, rng=1).dp.to_markdown(note=False))
        |      | released |   ± |
        | :--- | -------: | --: |
        | rows |       99 |   6 |
        """
        from pdprivacy.show import export

        return export.markdown(self._frame, note=note)

    def to_latex(self, *, note: bool = True) -> str:
        """Return the release as a LaTeX ``tabular`` with booktabs, each number with its margin of error.

        ``note``: as in `to_markdown`. See `pdprivacy.show.export.latex`.

        >>> import pandas as pd, pdprivacy
        >>> domain = pdprivacy.Domain((pdprivacy.Column("member", "boolean"),))
        >>> private = pdprivacy.protect(pd.DataFrame({"member": [True, False] * 50}), domain, epsilon=1)
        >>> "rows & 99 & 6" in private.dp.count(epsilon=0.5, rng=1).dp.to_latex(note=False)
        True
        """
        from pdprivacy.show import export

        return export.latex(self._frame, note=note)

    @with_hints
    def to_excel(self, path: str | os.PathLike[str]) -> None:
        """Write the release to an Excel workbook: numbers, and margins of error in columns of their own.

        ``path``: ends in ``.xlsx``. Needs openpyxl (extra ``excel``). See `pdprivacy.show.export.excel`.
        """
        from pdprivacy.show import export

        export.excel(self._frame, path)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot a release with its noise, a `plan`, or a confidential frame of the curator.

        ``ax``: where to draw, by default on a new figure. Needs matplotlib. See `pdprivacy.show.plots.draw`.

        Raises MetadataError for any other frame or a release that was changed, and MissingExtraError
        without matplotlib.
        """
        from pdprivacy.show.plots import draw

        return draw(self._frame, ax=ax)


@short_tracebacks
class _OfFrame(_Accessor):
    """Base class of the accessors of frames: errors for methods that they do not have."""

    if not TYPE_CHECKING:  # a type checker refuses unknown names itself

        def __getattr__(self, name: str) -> Any:
            if name in REFUSED:
                raise refusal(name)
            if name.startswith("_"):  # looked up by Python and by notebooks
                raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
            for kind in (DataFrameDP, ProtectedDP):  # a method of the other kind of frame raises the reason
                if not isinstance(self, kind) and name in _public(kind):
                    return getattr(kind(self._frame), name)
            raise unknown(type(self).__name__, name, _offered())

        def __getitem__(self, columns: object) -> NoReturn:
            """Refused: columns are an argument of each release."""
            raise ArgumentError(
                "'dp' cannot be indexed: columns are arguments of releases.", EXAMPLES["mean"]
            )


def check(
    frame: Any, schema: Any = None, *, columns: Overlay | None = None, examples: int = 5
) -> pd.DataFrame:
    """CONFIDENTIAL, for the curator: list the faults of a frame against a declaration, and count them.

    As `pdprivacy.check`.

    >>> import pandas as pd, pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=120),))
    >>> found = pd.DataFrame({"age": [31, -1, 54]}).dp.check(domain)
    >>> found["fault"].tolist(), found["records"].tolist(), found["examples"].tolist()
    (['out of bounds'], [1], ['-1'])
    """
    from pdprivacy.risk import data_quality

    return data_quality.check(frame, schema, columns=columns, examples=examples)


@short_tracebacks
class DataFrameDP(_OfFrame, _Result):
    """Differential privacy for a DataFrame that is not protected.

    A raw frame offers `check` and `protect`, a released one its own methods: `metadata`, `verify`,
    `interval`, `schema` and `plot`; `save` and, for readers, `to_frame`, `to_markdown`, `to_latex` and
    `to_excel`.

    >>> import pandas as pd, pdprivacy
    >>> [name for name in dir(pd.DataFrame().dp) if not name.startswith("_")]
    ['check', 'protect']
    """

    protect = _method(protect, lambda accessor: accessor._frame)
    check = _method(check, lambda accessor: accessor._frame)

    def _standing(self) -> PrivacyError:
        if metadata.PLAN in self._frame.attrs:
            return NotProtectedError(
                "A plan holds the errors of releases before they are made.", "plan.dp.plot()"
            )
        return protection.unprotected()


@short_tracebacks
class ProtectedDP(_OfFrame, ProtectedMethods):
    """Differential privacy for a protected frame: releases, row steps, budget and plans.

    >>> import pandas as pd, pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=120),))
    >>> private = pdprivacy.protect(pd.DataFrame({"age": [31, 54]}), domain, epsilon=1)
    >>> private.dp.query("age >= 18").dp.mean("age", epsilon=0.5).index.tolist()
    ['age']
    """

    def __dir__(self) -> Iterable[str]:
        """The names that apply to this frame."""
        if "_frame" not in vars(self):  # made by IPython, which completes by the annotations of classes
            return super().__dir__()
        facts, methods = self._protected(), {*ROW_STEPS, *releases.__all__}
        return [name for name in super().__dir__() if name not in methods or facts.offers(name)]

    def _protected(self) -> Facts:
        return protection.find(self._frame)

    def _declared(self) -> Domain:
        return self.domain

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the charges of the budget.

        ``ax``: where to draw, by default on a new figure. Needs matplotlib. See
        `pdprivacy.show.plots.draw_budget`.
        """
        return self._protected().budget.plot(ax=ax)

    def _standing(self) -> Standing:
        from pdprivacy.show.pages import Standing

        facts = self._protected()
        return Standing(
            engine=facts.sealed.engine,
            domain=facts.domain,
            unit=facts.unit,
            budget=facts.budget,
            lineage=protection.lineage(facts),
            rows=facts.scope.row_bounds()[1],
            seeded=facts.seeded,
        )

    @property
    def budget(self) -> Budget:
        """The budget, with its charges and what is left."""
        return self._protected().budget

    @property
    def domain(self) -> Domain:
        """The declaration of each column."""
        return self._protected().domain

    @property
    def lineage(self) -> pd.DataFrame:
        """The steps from the raw frame to this one, with the stability of each.

        A DataFrame with a row per step: ``step``; ``stability``, the number of records of the result that one
        record more, less or replaced can change (or one unit, where a column names it), NA for a secret part;
        ``cost``, what the whole frame pays for releases of a total of ``epsilon``.
        """
        steps = protection.lineage(self._protected())
        steps.attrs[KEY] = dict(metadata.LINEAGE)
        return steps

    @property
    def plan(self) -> PlanDP:
        """Plans: the errors of releases before they are made, as in ``plan.mean(...)``; see `PlanDP`."""
        return PlanDP(self._protected().admitted("plan"))


@short_tracebacks
class PlanDP(PlanMethods):
    """Errors of planned releases, for several ``epsilon`` and ``bounding``; nothing is read or charged.

    Each method takes the arguments of the release of the same name, and ``rows``, ``at``, ``level`` and
    ``plus_minus``, as in
    ``private.dp.plan.mean("age", epsilon=[0.1, 1], bounding=[None, "clamp", "truncated"], rows=1000)``.
    ``rows``: the number of records, which you guess where it is not public. The errors of counts and sums do
    not depend on it, unless they are bounded. ``at``: the assumed value of the
    statistic (for a sum the mean of its terms, for a table the count of every cell, for a description the
    standard deviation; not for a regression). By default it is the middle of the bounds, the variance of
    uniform values, uncorrelated columns, and a table of equal counts. ``level``: the coverage of the margins
    of error. ``bounds`` apply to plans with bounding, ``calibration="published"`` to those with truncation.
    With ``releases``, which share the cost, the errors are those of one of them. ``rng`` and ``release_id``
    raise a TypeError, because a plan draws and charges nothing. ``plan.groupby(...)`` plans by group.

    ``plus_minus`` in place of ``epsilon`` is the largest margin of error that you accept, of dates a time; or
    several of them. The plan is then for the smallest epsilon of four digits at which no released number has
    a larger one. The index shows this epsilon.

    A method returns a DataFrame indexed by epsilon and bounding (and by released number, where there are
    several): ``scale`` of the noise, ``bias`` and ``rmse`` at the assumed value, the largest of both
    over the bounds (``worst_bias``, ``worst_rmse``), and ``plus_minus``, the margin of error. Where a
    number is made of several noisy ones, ``scale`` and the largest errors are not known, and bias and rmse
    hold to first order; for sums and shares of bounded counts they are not known, either. A column without
    any known number is left out. Cells of a table with equal errors share one row, labelled by the first of
    them; ``cells`` is their number.

    With a number of rows n the error of a mean, proportion, variance or covariance falls as 1 / n:
    their sensitivities do (Liu 2019, Proposition 2).

    Quantiles, medians, minima and maxima are off by ranks, not by a margin in value. Their plans take
    ``ranks`` in place of ``plus_minus``, and have the index epsilon, column and q, and the columns ``scale``,
    ``ranks`` (with probability ``level`` the number is within so many ranks; of `min` and `max`, of the
    ``rank`` from the end, which may be ``cut``), and ``share``, the ranks as a share of ``rows``, which are
    optional here.

    The plan of `find_bounds` judges whether ``rows`` suffice: ``needed`` is the number of records from which
    the bounds are good, and ``enough`` is "yes", "barely", or "no" for less than half as many.

    ``frame.dp.plot()`` draws a plan of margins. The arguments, with your guesses, are in
    ``attrs["dp_plan"]``.

    Raises ParameterError where the error depends on a private number of rows, without ``rows``; and for a
    ``plus_minus`` that no or every epsilon between 1e-6 and 1000 reaches; UnknownNameError for a release that
    cannot be planned; and the errors of the release itself, except those of the budget.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.dp.plan.mean("age", epsilon=[0.1, 1], rows=1000)["plus_minus"].round(2).tolist()
    [3.6, 0.36]
    >>> plan = private.dp.plan.mean("age", plus_minus=0.5, rows=1000)
    >>> [epsilon for epsilon, bounding in plan.index], plan["plus_minus"].round(4).tolist()
    ([0.7191], [0.4999])
    >>> plan = private.dp.plan.median("age", ranks=20)
    >>> [*plan.index], plan["ranks"].round(4).tolist()
    ([0.3896], [19.9988])
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def _declared(self) -> Domain:
        return self._facts.domain

    def __repr__(self) -> str:
        return f"plan: {', '.join(PLANNED)}"

    @functools.partial(with_hints, prefix="private.dp.plan")
    def groupby(
        self, by: Labels | pd.Grouper, *, freq: str | None = None, dropna: bool = False
    ) -> GroupPlans:
        """Plans of releases per declared key, as ``plan.groupby("region").mean(...)``.

        ``by``, ``freq`` and ``dropna`` as in ``private.dp.groupby``.
        """
        from pdprivacy.releases.planning import GroupPlans

        groups = releases.groupby(self._facts, by, freq=freq, dropna=dropna)
        return GroupPlans(groups._protected, groups.keys)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"'PlanDP' has no attribute {name!r}")
            raise unknown("plan", name, PLANNED, "private.dp.plan")


def _of_releases(name: str) -> Callable[..., Any]:
    """The method that forwards to a function of `pdprivacy.releases`, and executes a release."""
    executed = releases.HOMES[name] in RELEASING
    function = getattr(releases, name)
    return _method(function, lambda dp: protection.find(dp._frame).admitted(name), executed=executed)


def _of_steps(name: str) -> Callable[..., Any]:
    """The method that forwards to a row step of the protected frame."""
    step = getattr(ProtectedFrame, name)
    return _method(step, lambda accessor: ProtectedFrame(accessor._protected()))


def _of_plans(name: str) -> Callable[..., Any]:
    """The method that plans a release."""
    from pdprivacy.releases.planning import PLANS

    return _method(PLANS[name], lambda plans: plans._facts, "private.dp.plan")


for _name in filter(str.islower, releases.__all__):
    _Late(ProtectedDP, _name, _of_releases)
for _name in ROW_STEPS:
    _Late(ProtectedDP, _name, _of_steps)
for _name in PLANNED:
    _Late(PlanDP, _name, _of_plans)


@short_tracebacks
class SeriesDP(_Result):
    """Differential privacy for a released Series: its metadata, errors, files and plots."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _offered():
                frame = "a DataFrame" if name in _public(DataFrameDP) else "a protected frame"
                raise NotProtectedError(
                    f"{name!r} is a method of {frame}, not of a Series.", self._instead(name)
                )
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def _instead(self, name: str) -> str:
        """A valid call in place of a method of frames; the name of a Series may be the label of a row."""
        if name == "protect":
            return "private = df.dp.protect(schema, epsilon=1.0) of the whole frame, once"
        if name == "check":
            return f"{EXAMPLES[name]} of the whole frame"
        if not callable(getattr(ProtectedDP, name)):
            return f"private.dp.{name} of the protected frame itself, not of one column."
        example = EXAMPLES.get(name, f"private.dp.{name}(...)")
        return f"{example} on the protected frame itself."


def _offered() -> list[str]:
    """The names of the accessors of all frames."""
    return sorted({*_public(DataFrameDP), *_public(ProtectedDP)})


def missing(name: str) -> AttributeError:
    """Return the error for an unknown name of the package, such as the name of a release."""
    if name.startswith("_"):
        return AttributeError(f"module 'pdprivacy' has no attribute {name!r}")
    return unknown("pdprivacy", name, _offered())


def _of_groups(groups: Any) -> Any:
    """Return the column "dp" of a grouped frame; raise NotProtectedError without such a column.

    pandas finds the groups in the data; declared ones are there whether anybody is in them or not.
    """
    if "dp" in getattr(groups.obj, "columns", ()):
        return groups["dp"]
    raise NotProtectedError(
        "Groups made by pandas are not protected: the groups that exist would show who is in the data.",
        f"private = {EXAMPLES['protect']}; {EXAMPLES['groupby']}",
    )


class _Attribute:
    """The attribute ``dp`` of a pandas class; on the class itself it is the class of the accessors.

    It is assigned over the placeholder of the package, so that another thread finds one of the two at every
    moment. The registration of pandas would first ask the placeholder for its value, which is not there yet.
    """

    def __init__(self, accessor: Callable[[Any], _Accessor]) -> None:
        self._accessor = accessor

    def __get__(self, instance: object, kind: type) -> Any:
        return self._accessor if instance is None else self._accessor(instance)


def _register() -> None:
    """Put ``dp`` on pandas' DataFrame and Series, and on protected frames."""
    pd.DataFrame.dp = _Attribute(DataFrameDP)  # type: ignore[attr-defined]
    pd.Series.dp = _Attribute(SeriesDP)  # type: ignore[attr-defined]
    ProtectedFrame.dp = property(ProtectedDP)  # type: ignore[assignment, method-assign]
    # without Jedi, IPython calls no property, and completes by the annotations of the class
    ProtectedFrame.__annotations__["dp"] = ProtectedDP
    ProtectedDP.__annotations__ = {"budget": Budget, "domain": Domain, "plan": PlanDP}
    for groups in (pd.api.typing.DataFrameGroupBy, pd.api.typing.SeriesGroupBy):
        groups.dp = property(short_traceback(_of_groups))  # type: ignore[union-attr]


_register()
