"""Bounds of columns that nobody knows, released at a cost, for `ProtectedFrame.use`."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Unpack

import numpy as np
import pandas as pd

from pdprivacy.checks import one_of
from pdprivacy.core.gate.facts import Facts, declared
from pdprivacy.core.gate.spec import (
    AnswerLabels,
    Call,
    Drawn,
    Release,
    Split,
    columns_of,
    name_index,
    weights_of,
    with_keywords,
)
from pdprivacy.core.gate.tasks import BoundSearches
from pdprivacy.core.mechanisms.exponential import Choosing
from pdprivacy.core.noise import RandomState
from pdprivacy.core.privacy import Rational
from pdprivacy.core.statistics.private_bounds import STAGES, BoundSearch, WideGrid
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import DeclarationError
from pdprivacy.frames.use import declared_as
from pdprivacy.releases.publish import attach, risk_noted
from pdprivacy.types import Labels

NOTE = "No bound of the number of records outside holds for all data; typically it is a few over epsilon."
"""What the metadata say in place of an error."""


class BoundsOptions(TypedDict, total=False):
    """Keywords that a search for bounds takes in addition to ``epsilon``.

    delta : must be zero.
    mechanism : "exponential", the exponential mechanism.
    rng : None for real releases; a seed or generator for tests.
    release_id : a name for the release. A repeated call with this name is refused
        (`pdprivacy.errors.AlreadyCharged`), so it is neither charged nor released twice.
    """

    delta: Rational
    mechanism: Literal["exponential"]
    rng: RandomState
    release_id: str | None


@with_keywords(BoundsOptions, {"delta": 0, "mechanism": "exponential", "rng": None, "release_id": None})
def find_bounds(
    protected: Facts,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    method: Literal["reach"] = "reach",
    **options: Unpack[BoundsOptions],
) -> Release[pd.DataFrame]:
    """Find bounds of numeric columns that nobody knows, for sums and means of values clipped to them.

    ``private.use(bounds)`` declares the released bounds, at no further cost. They are not those of the data:
    a few records lie outside, and are clipped. How many is not known, and no bound of their number holds for
    all data; typically it is a few divided by the column's share of epsilon. Bounds that everybody knows
    without the data cost nothing and clip nobody: declare those wherever there are any.

    Each column needs about 200 records divided by its share of epsilon. With less than half of that, the
    bounds may be far too narrow or too wide. Every column gets bounds, whatever its records are.

    "reach" selects three numbers per column by the exponential mechanism. A centre c, with 2/5 of the loss,
    by the smaller of the numbers of records up to it and from it on, so that a median is likeliest. A spread
    s, with 1/5, a power of two, by the smaller of the numbers of records whose distance from c is at most s
    and above s / 2; records hardly different from c do not count. A reach s 2**j, with 2/5: each doubling
    must leave so many fewer records outside. The bounds are c minus and plus the reach, within the declared
    bounds of the column, if there are any.

    The sensitivity of these numbers of records is 1, and under "add_remove" all of them move the same way,
    which needs only half the noise. With ``unit=`` it is the number of records that a unit may have.

    Parameters
    ----------
    columns : a label, a list of labels, or None for all numeric columns that lack a bound. A column that has
        bounds gets narrower ones, which helps where the declared ones are very wide. Not for dates, labels
        and truth values. Numbers beyond 2**298 (whole numbers beyond 2**62) count as these.
    split : weights by column for sharing ``epsilon``; equal by default.
    method : "reach".

    Returns a DataFrame indexed by column, with the columns ``lower`` and ``upper``.

    Raises DeclarationError for a column without numbers.

    Source: McSherry, Talwar (2007); the depth is that of Tukey (1975).

    >>> import pandas as pd, pandera.pandas as pa
    >>> schema = pa.DataFrameSchema({"income": pa.Column(float, metadata={"dp": {}})})
    >>> frame = pd.DataFrame({"income": [900.0, 1000.0, 1100.0, 2000.0] * 500})
    >>> private = frame.dp.protect(schema, epsilon=100)
    >>> bounds = private.dp.find_bounds("income", epsilon=50)
    >>> bool(bounds.at["income", "lower"] < 900), bool(2000 < bounds.at["income", "upper"] < 5000)
    (True, True)
    >>> mean = private.use(bounds).dp.mean("income", epsilon=50)
    >>> bool(1200 < mean["income"] < 1300)
    True
    """
    one_of(method, "method", ("reach",))
    one_of(options["mechanism"], "mechanism", ("exponential",))
    chosen = _columns_without_bounds(protected) if columns is None else _numeric(protected, columns)
    choosing = Choosing(epsilon, options["delta"], mechanism="exponential")
    searches = tuple(
        BoundSearch(WideGrid(column), protected.scope, weight)
        for column, weight in zip(chosen, weights_of(chosen, split), strict=True)
    )
    call = Call.of_selection(
        "find_bounds", choosing.cost, chosen, rng=options["rng"], release_id=options["release_id"]
    )
    labels = AnswerLabels(name_index(chosen), pd.Index(["lower", "upper"]))
    task = BoundSearches(searches, choosing)
    return Release(protected, call, call.label(protected), task, labels, _bounds_answer)


def _columns_without_bounds(protected: Facts) -> tuple[Column, ...]:
    """Return the numeric columns that lack a bound; raise DeclarationError where there are none."""
    chosen = tuple(
        column
        for column in protected.domain.columns
        if declared(protected, column.name)
        and column.kind in ("float", "integer")
        and column.categories is None
        and None in (column.lower, column.upper)
    )
    if not chosen:
        raise DeclarationError("'find_bounds' found no numeric column that lacks a bound.")
    return chosen


def _numeric(protected: Facts, columns: Labels) -> tuple[Column, ...]:
    """Return the declared columns of these labels; raise DeclarationError for one without numbers."""
    chosen = columns_of(protected, columns, "find_bounds")
    for column in chosen:
        column._refuse_identifier("find_bounds")
        if column.kind not in ("float", "integer") or column.timeline is not None:
            raise DeclarationError(
                f"'find_bounds' is for numbers, and column {column.name!r} is of kind {column.noun!r}."
            )
        if column.categories is not None:
            raise DeclarationError(
                f"'find_bounds' is for numbers without labels, and column {column.name!r} has some."
            )
    return chosen


def _bounds_answer(release: Release[Any], drawn: Drawn) -> tuple[pd.DataFrame, str | None]:
    """Return the bounds of all columns, with their metadata."""
    task = release.task
    assert isinstance(task, BoundSearches)
    released = release.labels.to_pandas(np.array(task.bounds(drawn.outcomes)))
    columns = release.call.columns
    names = [f"{stage} of {column.name}" for column in columns for stage in STAGES]
    mechanisms = drawn.price.mechanisms
    shares = [float(search.weight * share) for search in task.searches for share in STAGES.values()]
    attach(
        release.facts,
        release.call,
        drawn,
        released,
        sensitivity={name: float(each.sensitivity) for name, each in zip(names, mechanisms, strict=True)},
        scale={name: each.scale for name, each in zip(names, mechanisms, strict=True)},
        split=dict(zip(names, shares, strict=True)),
        error={"level": drawn.level, "note": NOTE},
        rows=release.facts.scope.row_bounds()[1],
        found={"kind": "bounds", "method": "reach", "declared": [declared_as(column) for column in columns]},
    )
    return released, risk_noted(release.facts, release.call, drawn)
