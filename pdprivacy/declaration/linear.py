"""Public limits of weighted sums of released numbers, and whether any numbers meet them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pdprivacy.checks import is_null, real
from pdprivacy.errors import ParameterError, kind, short_public
from pdprivacy.types import Floats, settle

__all__ = ["LinearConstraint"]

HUGE = 1e150
"""The largest coefficient and limit, so that products of two stay finite."""

SHOWN = 12
"""The most terms of a constraint that are shown."""

EXAMPLE = "pdprivacy.postprocess.LinearConstraint({...: 1}, lower=0)"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class LinearConstraint:
    """Public limits of a weighted sum of released numbers, which are named by their labels.

    ``coefficients``: a mapping from labels of the release to numbers. In a table of several columns, a label
    is a tuple with one label of each, of the rows first; ``...`` in it stands for all labels of that column,
    and ``...`` alone for all cells. Coefficients of the same cell add up. ``lower`` and ``upper``: the
    limits of the sum, of which None leaves its side open; or ``equals``, which the sum is.

    The limits must be public, such as a total from another source, or true of all data. Limits that are read
    off the protected data tell about the records.

    Used as ``constraint=`` of `crosstab` and `value_counts`, and by `Batch.constrain`.

    ParameterError: no coefficient but 0, numbers that are not finite or beyond 1e150, no limit, or ``lower``
    above ``upper``.

    >>> from pdprivacy.postprocess import LinearConstraint
    >>> LinearConstraint({"north": 1, "east": -1}, lower=0)
    LinearConstraint({'north': 1, 'east': -1}, lower=0)
    >>> print(LinearConstraint({("north", ...): 1}, equals=1200))
    ('north', ...) = 1200
    """

    terms: tuple[tuple[Any, float], ...]
    lower: float
    upper: float

    def __init__(
        self,
        coefficients: Mapping[Any, float],
        *,
        lower: float | None = None,
        upper: float | None = None,
        equals: float | None = None,
    ) -> None:
        if not isinstance(coefficients, Mapping):
            raise ParameterError(
                f"'coefficients' must map labels to numbers (got {kind(coefficients)}).", EXAMPLE
            )
        terms = tuple(
            (label, real(number, "coefficients", -HUGE, HUGE)) for label, number in coefficients.items()
        )
        if not any(number for _, number in terms):
            raise ParameterError("'coefficients' must hold a number that is not 0.", EXAMPLE)
        if equals is not None and not (lower is upper is None):
            raise ParameterError("'equals' cannot be combined with 'lower' or 'upper'.", EXAMPLE)
        if lower is upper is equals is None:
            raise ParameterError("A linear constraint needs 'lower', 'upper' or 'equals'.", EXAMPLE)
        ends = (lower, upper) if equals is None else (equals, equals)
        names = ("lower", "upper") if equals is None else ("equals", "equals")
        low, high = (
            open_end if end is None else real(end, name, -HUGE, HUGE)
            for end, name, open_end in zip(ends, names, (-math.inf, math.inf), strict=True)
        )
        if low > high:
            raise ParameterError("'lower' must not be above 'upper'.", EXAMPLE)
        settle(self, terms=terms, lower=low, upper=high)

    @property
    def limits(self) -> dict[str, float]:
        """The limits by the names of their arguments."""
        if self.lower == self.upper:
            return {"equals": self.lower}
        ends = {"lower": self.lower, "upper": self.upper}
        return {name: end for name, end in ends.items() if math.isfinite(end)}

    def _renamed(self, name: Callable[[Any], Any]) -> LinearConstraint:
        """Return the same limits of the sum, with other labels."""
        renamed = object.__new__(LinearConstraint)
        terms = tuple((name(label), number) for label, number in self.terms)
        settle(renamed, terms=terms, lower=self.lower, upper=self.upper)
        return renamed

    def __repr__(self) -> str:
        terms = ", ".join(f"{_label(label)}: {_number(number)}" for label, number in self.terms)
        limits = ", ".join(f"{name}={_number(end)}" for name, end in self.limits.items())
        return f"{type(self).__name__}({{{terms}}}, {limits})"

    def __str__(self) -> str:
        text = ""
        for label, number in self.terms[:SHOWN]:
            sign = " - " if number < 0 else " + "
            factor = "" if abs(number) == 1 else f"{_number(abs(number))} * "
            text += f"{sign if text else sign.strip().replace('+', '')}{factor}{_label(label)}"
        if len(self.terms) > SHOWN:
            text += f" + ... ({len(self.terms)} terms)"
        if self.lower == self.upper:
            return f"{text} = {_number(self.lower)}"
        left = f"{_number(self.lower)} <= " if math.isfinite(self.lower) else ""
        right = f" <= {_number(self.upper)}" if math.isfinite(self.upper) else ""
        return f"{text} >= {_number(self.lower)}" if left and not right else f"{left}{text}{right}"


def _label(label: Any) -> str:
    if label is ...:
        return "..."
    if isinstance(label, tuple):
        return f"({', '.join(map(_label, label))}{',' if len(label) == 1 else ''})"
    return "None" if is_null(label) else repr(label)


def _number(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


@dataclass(frozen=True, eq=False)
class LinearLimits:
    """Numbers between bounds whose weighted sums lie between limits.

    ``rows``: (k, n), a row of weights for each of k sums of n numbers. ``least``, ``most``: the limits of the
    sums. ``lower``, ``upper``: the bounds of the numbers. ``texts``: the constraints, for readers.
    """

    rows: Floats
    least: Floats
    most: Floats
    lower: Floats
    upper: Floats
    texts: tuple[str, ...] = ()

    def contradict(self) -> bool:
        """Return whether no numbers meet all limits and bounds, by linear programming.

        >>> ones, ends = np.ones((1, 2)), (np.zeros(2), np.ones(2))
        >>> LinearLimits(ones, np.array([3.0]), np.array([3.0]), *ends).contradict()
        True
        """
        from scipy.optimize import linprog

        size = np.abs(self.rows).max(axis=1)
        rows, least, most = self.rows / size[:, np.newaxis], self.least / size, self.most / size
        used = self.rows.any(axis=0)
        equal = least == most
        low, high = np.isfinite(least) & ~equal, np.isfinite(most) & ~equal
        sides = np.concatenate([rows[high], -rows[low]])[:, used]
        ends: Any = np.stack([self.lower[used], self.upper[used]], axis=1)
        answer = linprog(
            np.zeros(np.count_nonzero(used)),
            sides if len(sides) else None,
            np.concatenate([most[high], -least[low]]) if len(sides) else None,
            rows[equal][:, used] if equal.any() else None,
            least[equal] if equal.any() else None,
            ends,
        )
        return bool(answer.status == 2)


def checked(constraints: Any) -> tuple[LinearConstraint, ...]:
    """Return one or several linear constraints as a tuple, at least one; refuse anything else."""
    listed: Sequence[Any] = [constraints] if isinstance(constraints, LinearConstraint) else constraints
    if not listed or not all(isinstance(each, LinearConstraint) for each in listed):
        raise ParameterError(
            f"'constraint' must be a name such as 'simplex', or one or more linear constraints "
            f"(got {kind(constraints)}).",
            EXAMPLE,
        )
    return tuple(listed)


def positions(key: Any, levels: Sequence[Mapping[Hashable, int]]) -> tuple[Any, ...] | None:
    """Return where the cells of a label are: a number or a slice for each level; None for an unknown label.

    ``levels``: the labels of each level with their positions, None for the null label.

    >>> positions(("b", ...), [{"a": 0, "b": 1}, {True: 0}])
    (1, slice(None, None, None))
    """
    parts = (...,) * len(levels) if key is ... else key if len(levels) > 1 else (key,)
    if len(levels) == 1 and isinstance(key, tuple) and len(key) == 1:
        parts = key
    if not isinstance(parts, tuple) or len(parts) != len(levels):
        return None
    numbers: list[Any] = []
    for part, level in zip(parts, levels, strict=True):
        try:
            numbers.append(slice(None) if part is ... else level[None if is_null(part) else part])
        except (KeyError, TypeError):
            return None
    return tuple(numbers)


short_public(sys.modules[__name__], __all__)
