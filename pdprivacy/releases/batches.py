"""Several releases asked for one after the other, charged together and read at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from itertools import combinations
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import pandas as pd

from pdprivacy.accounting.reports import Method
from pdprivacy.checks import whole
from pdprivacy.domain import Column
from pdprivacy.errors import DeclarationError, ParameterError, UnknownNameError
from pdprivacy.noise import RandomState, simulator
from pdprivacy.privacy import Rational, positive, rational
from pdprivacy.protection import Protected, declared
from pdprivacy.release.publish import Released
from pdprivacy.releases.bundle import (
    VERBS,
    Priced,
    ReleasePlan,
    paid_as_a_whole,
    planned,
    planned_release,
    priced,
)
from pdprivacy.releases.columns import Labels, columns_of
from pdprivacy.request import MechanismName
from pdprivacy.show.tracebacks import short_traceback, short_tracebacks

if TYPE_CHECKING:
    from pdprivacy.signatures import BatchMethods
else:  # a batch makes them by name
    BatchMethods = object

__all__ = ["Batch", "Pending", "batch", "marginals"]

R = TypeVar("R", bound=Released)


@short_tracebacks
class Pending(Generic[R]):
    """A release that a batch will make at its end."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._released: R | None = None

    @property
    def result(self) -> R:
        """The released object; ParameterError before the batch has ended."""
        if self._released is None:
            raise ParameterError(
                f"The batch has not released {self._label!r} yet.", "take the result after the with block."
            )
        return self._released

    def __repr__(self) -> str:
        return f"{'pending' if self._released is None else 'released'}: {self._label}"


@short_tracebacks
class Batch(BatchMethods):
    """Releases that are made together when the ``with`` block ends; see `batch`.

    Its methods are the releases of a protected frame, and give a `Pending` each.
    """

    def __init__(
        self, protected: Protected, delta: Rational | None, accounting: Method, release_id: str | None
    ) -> None:
        self._protected, self._facts = protected, paid_as_a_whole(protected)
        self._delta, self._accounting, self._release_id = delta, accounting, release_id
        self._releases: list[Priced] = []
        self._waiting: list[Pending[Any]] = []
        self._open = self._used = False

    def __enter__(self) -> Batch:
        if self._used:
            raise ParameterError("A batch is used once.", "with private.dp.batch() as batch: ...")
        self._open = self._used = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        was_open, self._open = self._open, False
        if kind is not None or not self._releases or not was_open:
            return
        released = self.plan().release(self._release_id)
        for pending, one in zip(self._waiting, released, strict=True):
            pending._released = one

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *VERBS])

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Pending[Any]]:
            if name not in VERBS:
                raise UnknownNameError(f"A batch has no {name!r}; it makes {', '.join(sorted(VERBS))}.")

            @short_traceback
            @functools.wraps(VERBS[name])
            def ask(*args: Any, **options: Any) -> Pending[Any]:
                return self._ask(name, args, options)

            return ask

    def _ask(self, verb: str, args: tuple[Any, ...], options: dict[str, Any]) -> Pending[Any]:
        if not self._open:
            raise ParameterError("The batch is not open.", "with private.dp.batch() as batch: ...")
        release = planned_release((verb, *args, options), self._facts)
        self._releases.append(priced(release))  # refused here, where it is asked
        pending: Pending[Any] = Pending(release.label)
        self._waiting.append(pending)
        return pending

    def plan(self) -> ReleasePlan:
        """What has been asked so far, and what it costs together; nothing is charged."""
        if not self._releases:
            raise ParameterError("Nothing has been asked of the batch yet.", "batch.count(epsilon=0.1).")
        return planned(self._protected, self._releases, self._delta, self._accounting)


def batch(
    protected: Protected,
    *,
    delta: Rational | None = None,
    accounting: Method = "basic",
    release_id: str | None = None,
) -> Batch:
    """Several releases, charged together and read at once: by one pass over the data on any engine.

    ``with private.dp.batch() as batch:`` opens it; ``batch.mean(...)``, ``batch.crosstab(...)`` and so on ask
    for releases and give a `Pending` each, whose ``result`` is there after the block. What a call would
    refuse is refused where it stands. At the end of the block all are charged as one, or none; an error in
    the block charges nothing. None of them can be chosen after seeing the answer of another.

    On frames of other engines than pandas, all sums and tables are computed by one query. Selections
    (quantiles, modes) are asked for one by one.

    Parameters
    ----------
    delta, accounting : as of `plan_releases`; by default losses and deltas add up as they would one by one.
    release_id : as of a release, for all of them.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> member = pa.Column(bool, metadata={"dp": {}})
    >>> frame = pd.DataFrame({"age": [31, 54, 27], "member": [True, False, True]})
    >>> private = frame.dp.protect(pa.DataFrameSchema({"age": age, "member": member}), epsilon=1)
    >>> with private.dp.batch() as batch:
    ...     mean, table = batch.mean("age", epsilon=0.5), batch.value_counts("member", epsilon=0.25)
    >>> mean.result.index.tolist(), private.dp.budget.left
    (['age'], (0.25, 0.0))
    """
    return Batch(protected, delta, accounting, release_id)


def marginals(
    protected: Protected,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    order: int = 2,
    delta: Rational = 0,
    mechanism: MechanismName = "geometric",
    rng: RandomState = None,
    release_id: str | None = None,
) -> dict[tuple[Hashable, ...], pd.Series[Any]]:
    """The counts of all tables of ``order`` columns, each as of `value_counts`, in declared order.

    Charged as one, and on other engines than pandas read by one query.

    ``columns``: by default all declared columns that have cells (labels, bins, or few integers).
    ``epsilon``, ``delta``: of all tables together, shared equally. ``mechanism``, ``rng``, ``release_id``: as
    of a release.

    Returns a dict from column labels to the released counts; the tables need not agree with each other.

    Raises ParameterError for an order out of range; else as `value_counts`.

    >>> import pandas as pd, pandera.pandas as pa
    >>> flag = pa.Column(bool, metadata={"dp": {}})
    >>> frame = pd.DataFrame({"a": [True], "b": [False], "c": [True]})
    >>> private = frame.dp.protect(pa.DataFrameSchema(dict.fromkeys("abc", flag)), epsilon=1)
    >>> list(private.dp.marginals(order=2, epsilon=0.3))
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    chosen = _with_cells(protected) if columns is None else columns_of(protected, columns, "marginals")
    order = whole(order, "order", 1, len(chosen), "a table has one column at least, and all at most.")
    keys = list(combinations([column.name for column in chosen], order))
    each, slack = positive(epsilon, "epsilon") / len(keys), rational(delta, "delta") / len(keys)
    # one generator for all: a seed for each would give all tables the same noise
    state = rng if rng is None else simulator(rng)
    options = {"epsilon": each, "delta": slack, "mechanism": mechanism, "rng": state, "sort": False}
    facts = paid_as_a_whole(protected)
    calls = [priced(planned_release(("value_counts", list(key), options), facts)) for key in keys]
    released = planned(protected, calls, None, "basic").release(release_id)
    return cast("dict[tuple[Hashable, ...], pd.Series[Any]]", dict(zip(keys, released, strict=True)))


def _with_cells(protected: Protected) -> tuple[Column, ...]:
    """The declared columns that a table may have."""
    found = []
    for column in protected.domain.columns:
        if declared(protected, column.name):
            try:
                column.labels("marginals")
            except DeclarationError:
                continue
            found.append(column)
    return tuple(found)
