"""Plans: how far off a release would be, before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.errors import ParameterError, got
from pdprivacy.hints import EXAMPLES
from pdprivacy.metadata import KEY
from pdprivacy.protection import Protected
from pdprivacy.recognition import PLAN
from pdprivacy.releases import moments, tables
from pdprivacy.releases.supposed import Supposed

__all__ = ["plan"]

COUNTED = {"count", "value_counts", "histogram", "crosstab"}
SQUARED = {"var", "std", "describe", "pooled_var"}
MOST = 1e15
VERBS = {name: getattr(module, name) for module in (moments, tables) for name in module.__all__}


def plan(
    protected: Protected,
    /,
    statistic: str,
    *args: Any,
    epsilon: Any,
    bounding: Any = None,
    rows: int | None = None,
    at: float | None = None,
    **options: Any,
) -> pd.DataFrame:
    """How far off a release would be, for several ``epsilon`` and ``bounding``; nothing is read or charged.

    ``statistic`` and ``args``: the release and its arguments, as in ``plan("mean", "age", epsilon=[0.1,
    1], bounding=[None, "bit", "truncated"])``; ``options`` are its other keywords. ``rows``: the
    number of records, where it is not public: a guess of yours. ``at``: the value that the
    statistic is supposed to have (of a sum, the mean of its terms; of a table, the count of every
    cell; of a description, the standard deviation); by default the middle of the bounds, the variance of
    uniform values, and even tables.
    ``bounds`` and ``calibration="published"`` count where there is bounding, or truncation.
    Releases by group cannot be planned.

    Returns a DataFrame indexed by epsilon and bounding (and by released number, where there are
    several): ``scale`` of the noise, ``bias`` and ``rmse`` at the supposed value, the largest of both
    over the bounds (``worst_bias``, ``worst_rmse``), and the width of the 95 % ``interval``. Where a
    number is made of several noisy ones, ``scale`` and the largest errors are NaN, and bias and rmse
    hold to first order; of sums and shares of bounded counts they are NaN, too.

    With a number of rows n the error of a mean, proportion, variance or covariance falls as 1 / n:
    their sensitivities do (Liu 2019, Proposition 2).

    ``frame.dp.plot()`` draws it. What was asked, with your guesses, is in ``attrs["dp_plan"]``.

    Raises ParameterError for an unknown release, or a private number of rows without ``rows``; and
    what the release itself would raise, but for the budget.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.dp.plan("mean", "age", epsilon=[0.1, 1], rows=1000)["interval"].round(1).tolist()
    [7.2, 0.7]
    """
    if not isinstance(statistic, str) or statistic not in VERBS:
        raise ParameterError(
            f"'statistic' must be one of {', '.join(map(repr, sorted(VERBS)))} (got {got(statistic)}).",
            EXAMPLES["plan"],
        )
    held = _rows(protected, rows)
    if "rng" in options or "release_id" in options:
        raise ParameterError("A plan takes no 'rng' and no 'release_id': it draws and charges nothing.")
    if "releases" in options:
        raise ParameterError("A plan takes no 'releases'.", "plan one: the epsilon of all, divided by them.")
    value = _value(at, least_zero=statistic in COUNTED or statistic in SQUARED)
    if value is not None and options.get("normalize"):
        raise ParameterError("'at' is for counts, not for shares.", "leave at or normalize out.")
    if value is not None and statistic in ("std", "describe"):
        value *= value
    if value is not None and statistic == "count":
        held = round(value)
    sketch = replace(protected, supposed=Supposed(held, value))
    found: dict[tuple[float, str], pd.DataFrame] = {}
    stored: dict[str, Any] = {}
    levels, kinds = _list("epsilon", epsilon), _list("bounding", bounding)
    for level in levels:
        for kind in kinds:
            fitting = {name: given for name, given in options.items() if _fits(name, given, kind)}
            try:
                released = VERBS[statistic](sketch, *args, epsilon=level, bounding=kind, **fitting)
            except ArithmeticError:
                raise ParameterError(
                    f"{statistic!r} cannot be planned for so few records.", "more rows."
                ) from None
            stored = released.attrs[KEY]
            found[float(stored["epsilon"]), kind or "none"] = _errors(released)
    table = pd.concat(found, names=["epsilon", "bounding"]).pipe(_flat)
    told = {name: stored[name] for name in ("statistic", "columns", "mechanism", "filters", "lineage")}
    supposed = {"rows": held, "at": None if at is None else float(at)}
    table.attrs[PLAN] = {**told, "normalize": stored["normalize"], **supposed}
    return table


def _list(name: str, value: Any) -> list[Any]:
    listed = isinstance(value, Sequence | np.ndarray | pd.Index | pd.Series) and not isinstance(value, str)
    listed = listed and getattr(value, "ndim", 1) > 0  # an array of no dimension is one value
    items = list(value) if listed else [value]
    if not items:
        raise ParameterError(f"{name!r} must not be empty.")
    return items


def _rows(protected: Protected, rows: Any) -> int:
    """The public number of rows, or the guess of the caller."""
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1):
        raise ParameterError(f"'rows' must be a positive whole number (got {got(rows)}).")
    public = protected.scope.held()[1]
    if public is not None and rows not in (None, public):
        raise ParameterError("The number of rows is public, and not what 'rows' says.", "leave rows out.")
    held = public if rows is None else rows
    if held is None:
        raise ParameterError(
            "The number of rows is private, and a plan must not read it.", "rows=1000, a guess of yours."
        )
    return max(int(held), 1)


def _fits(name: str, given: Any, bounding: str | None) -> bool:
    """Whether a keyword is for this bounding: bounds need one, the published calibration truncation."""
    if name == "bounds":
        return bounding is not None
    published = name == "calibration" and isinstance(given, str) and given == "published"
    return not published or bounding == "truncated"


def _value(at: Any, *, least_zero: bool) -> float | None:
    if at is None:
        return None
    number = isinstance(at, int | float | np.integer | np.floating) and not isinstance(at, bool)
    if not number or not abs(at) <= MOST or (least_zero and at < 0):
        kind = "a finite number, not negative" if least_zero else "a finite number"
        raise ParameterError(f"'at' must be {kind} (got {got(at)}).")
    return float(at)


def _errors(released: pd.Series[Any] | pd.DataFrame) -> pd.DataFrame:
    """One row per released number."""
    stored = released.attrs[KEY]
    error, scale = stored["error"], stored["scale"]
    # a description may have as many noisy parts as numbers, and these are not those
    own = stored["statistic"] != "describe"
    several = isinstance(scale, dict) and not (own and len(scale) == released.size)
    if isinstance(scale, dict):
        # one noise per number, or several that no single scale stands for
        scale = math.nan if several else [*scale.values()]
    made = several or stored["statistic"] == "std" or stored["normalize"] or stored["margins"]
    unbounded = {"bias": 0.0, "rmse": error["standard_error"]}
    here = unbounded if stored["bounding"] is None else error
    worst = error.get("worst_case")
    if stored["bounding"] is None and not made:
        worst = unbounded
    fields = {"scale": scale, "bias": here["bias"], "rmse": here["rmse"]}
    for name in ("bias", "rmse"):
        fields[f"worst_{name}"] = math.nan if worst is None else worst[name]
    fields["interval"] = 2 * np.array(error["plus_minus"], np.float64)
    numbers = released.stack() if isinstance(released, pd.DataFrame) else released
    columns = {
        name: np.broadcast_to(np.array(value, np.float64), released.shape).ravel()
        for name, value in fields.items()
    }
    return pd.DataFrame(columns, index=numbers.index)


def _flat(table: pd.DataFrame) -> pd.DataFrame:
    """The table without the levels of released numbers where there is only one of them."""
    labels = [label[:2] for label in table.index]
    if table.index.nlevels == 2 or len(table) > len(set(labels)):
        return table
    return table.set_axis(pd.MultiIndex.from_tuples(labels, names=table.index.names[:2]), axis=0)
