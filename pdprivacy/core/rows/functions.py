"""Functions of numbers in expressions, such as ``log(pay)``: their bounds, and the values of all rows.

A result depends on the number alone, to the last bit: logarithms and exponentials are correctly rounded, and
all other functions are exact, or made of operations that IEEE 754 rounds correctly. Each is monotone or one
of `abs`, `minimum` and `maximum`, so its values at the ends of intervals bound the others.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pdprivacy.core.rows.arithmetic import Term, absolute
from pdprivacy.core.rows.elementary import ELEMENTARY, correctly_rounded
from pdprivacy.declaration.intervals import INT64, Interval
from pdprivacy.errors import QueryError
from pdprivacy.exact import EXACT
from pdprivacy.types import Floats

MOST_DIGITS = 20
"""The largest number of digits that `round` takes, before and after the point."""

WITH_FRACTIONS = 2.0**52
"""The least size of doubles of which all are whole numbers."""

_FLOORS = {"log": (0, 1), "log2": (0, 1), "log10": (0, 1), "log1p": (-1, 0), "sqrt": (0, 0)}
"""The least argument of a function, which only `sqrt` includes, and the floor that an error suggests."""

ALIASES = {"absolute": "abs", "fabs": "abs", "rint": "round", "around": "round"}
"""Other names that NumPy has for a function."""

ARGUMENTS = {
    **dict.fromkeys((*ELEMENTARY, "sqrt", "abs", "floor", "ceil", "sign"), "x"),
    "round": "x, digits",
    "minimum": "x, y",
    "maximum": "x, y",
}
"""The arguments of each function."""

FUNCTIONS = frozenset((*ARGUMENTS, *ALIASES))
"""The names of functions of numbers."""


def applied(name: str, terms: Sequence[Term], digits: int, shown: str) -> Term:
    """Return the term of a function; ``digits``: of `round`; ``shown``: its argument, in errors.

    Raises
    ------
    QueryError : numbers of which the function is not defined may occur, such as 0 for a logarithm.
    """
    term = terms[0]
    match name:
        case "abs":
            return absolute(term)
        case "minimum" | "maximum":
            return _extreme(np.minimum if name == "minimum" else np.maximum, term, terms[1])
        case "round" if digits:
            return _rounded(term, digits)
        case "round" | "floor" | "ceil" | "sign":
            return _whole(getattr(np, "rint" if name == "round" else name), term)
    run = np.sqrt if name == "sqrt" else functools.partial(correctly_rounded, name)
    _check_defined(name, term, shown)
    within = _ends(run, term)
    finite = term.finite if not name.startswith("exp") else all(map(math.isfinite, within))
    return Term(within, False, finite, term.nullable, run=_of_doubles(run), parts=(term,))


def _ends(run: Callable[[Floats], Any], term: Term) -> Interval:
    """The values of an increasing function at the ends of a term."""
    with np.errstate(all="ignore"):
        lower, upper = run(np.array([*term.within.map(float)])).tolist()
    return Interval(lower, upper)


def _of_doubles(run: Callable[[Floats], Any]) -> Callable[..., Any]:
    return lambda array, dtype: run(np.asarray(array, dtype=dtype))


def _check_defined(name: str, term: Term, shown: str) -> None:
    """Refuse a function of numbers of which it is not defined."""
    if name not in _FLOORS:
        return
    (least, floor), lower = _FLOORS[name], term.within.lower
    if lower > least or (name == "sqrt" and lower == least):
        return
    sign = "of at least" if name == "sqrt" else "above"
    number = shown if shown.isidentifier() or shown[-1] in "`)]" else f"({shown})"
    instead = f"a public floor: {name}({number}.clip(lower={floor}))"
    if name == "log" and lower == 0:
        instead = f"log1p({shown}), which is log(1 + x); or {instead}"
    declared = "has no lower bound" if lower == -math.inf else "may be less"
    if lower == least:
        declared = f"may be {least}"
    raise QueryError(f"{name!r} needs numbers {sign} {least}, and {shown!r} {declared}.", instead)


def _whole(run: Callable[[Floats], Any], term: Term) -> Term:
    """Return whole numbers of a function whose results are whole, where their bounds show that they fit."""
    if term.whole and run is not np.sign:
        return term
    within = _ends(run, term)
    if not within.within(Interval(-EXACT, EXACT)):  # doubles, of which all larger ones are whole numbers
        return Term(within, False, term.finite, term.nullable, run=_of_doubles(run), parts=(term,))
    return Term(within.map(int), True, True, term.nullable, run=run, parts=(term,))


def _rounded(term: Term, digits: int) -> Term:
    """Return numbers rounded to digits after the point, or before it; halves to the even one, as in NumPy."""
    if term.whole and digits > 0:
        return term
    unit = 10 ** abs(digits)
    if term.whole:
        run: Callable[[Any], Any] = functools.partial(_multiple, unit=unit)
        within = term.within.map(lambda end: round(end, digits))
        if within.within(INT64) and unit in INT64:
            return Term(within, True, True, term.nullable, run=run, parts=(term,))
    run = functools.partial(_to_digits, unit=float(unit), after=digits > 0)
    within = _ends(run, term)
    finite = term.finite if digits > 0 else all(map(math.isfinite, within))
    return Term(within, False, finite, term.nullable, run=_of_doubles(run), parts=(term,))


def _multiple(array: Any, unit: int) -> Any:
    """The nearest multiples of a unit of whole numbers."""
    quotient = array // unit
    rest = array - quotient * unit
    return (quotient + ((rest > unit - rest) | ((rest == unit - rest) & (quotient % 2 == 1)))) * unit


def _to_digits(array: Floats, unit: float, after: bool) -> Floats:
    if not after:
        return np.rint(array / unit) * unit
    with np.errstate(all="ignore"):
        rounded: Floats = np.rint(array * unit) / unit
    return np.where(np.abs(array) < WITH_FRACTIONS, rounded, array)


def _extreme(run: np.ufunc, first: Term, second: Term) -> Term:
    """Return the smaller or the larger of two numbers; null where either is."""
    nullable = first.nullable or second.nullable
    if first.whole and second.whole:
        lower, upper = (int(run(*ends)) for ends in zip(first.within, second.within, strict=True))
        return Term(Interval(lower, upper), True, True, nullable, run=run, parts=(first, second))
    doubles = zip(first.within.map(float), second.within.map(float), strict=True)
    low, high = (float(run(*ends)) for ends in doubles)
    within = Interval(low, high)
    finite = (first.finite and second.finite) or all(map(math.isfinite, within))
    # of two zeros of opposite sign, either may be the result: adding 0 makes both the positive one
    return Term(
        within,
        False,
        finite,
        nullable,
        run=lambda x, y, dtype: run(x, y, dtype=dtype) + 0.0,
        parts=(first, second),
    )
