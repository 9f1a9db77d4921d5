"""Logarithms and exponentials, correctly rounded: the double nearest to the exact result.

A correctly rounded function depends on its argument alone. The functions of NumPy and of C libraries do not:
NumPy computes eight neighbours at once and those at the end of an array otherwise, and each library errs in
other cells, so that a record more or less could change the cells of all others. Correct rounding keeps order:
an increasing function stays increasing, and its values at two bounds bound all values between them.

The method is that of Ziv: the results are computed in extended precision with a bound of their error. Where
the numbers within this bound round to two different doubles, in about 1 % of cells, Python's `decimal`, whose
functions are correctly rounded, decides with 50 digits. Doubles have no results so near to the middle of two
doubles that more digits would be needed; the nearest are about 1e-35 off.

Source: A. Ziv, Fast evaluation of elementary mathematical functions with correctly rounded last bit (1991);
V. Lefèvre and J.-M. Muller, Worst cases for correct rounding of the elementary functions in double precision
(2001).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import numpy as np

from pdprivacy.exact import decimals
from pdprivacy.types import Floats

_DIGITS, _EXACT = decimals(50), decimals(1200)
_DIFFERENCE = decimals(75)
"""The precision of ``exp(x) - 1``, of which up to 19 digits cancel where x is at least `_TINY`."""

_TINY = Decimal(2.0**-60)
"""The size up to which ``log(1 + x)`` and ``exp(x) - 1`` round to x."""


def _log1p(number: Decimal) -> Decimal:
    return number if abs(number) < _TINY else _DIGITS.ln(_EXACT.add(number, 1))


def _expm1(number: Decimal) -> Decimal:
    return number if abs(number) < _TINY else _DIFFERENCE.subtract(_DIFFERENCE.exp(number), 1)


_DECIMAL: dict[str, Callable[[Decimal], Decimal]] = {
    "exp": _DIGITS.exp,
    "expm1": _expm1,
    "log": _DIGITS.ln,
    "log10": _DIGITS.log10,
    "log1p": _log1p,
    "log2": lambda number: _DIGITS.divide(_DIGITS.ln(number), _DIGITS.ln(Decimal(2))),
}

ELEMENTARY = tuple(_DECIMAL)
"""The names of the functions."""

_ERROR = 8 * np.finfo(np.longdouble).eps
"""A bound of the relative error of extended precision, of which the GNU C library states an eighth."""


def correctly_rounded(name: str, numbers: Floats) -> Floats:
    """Return a function of each number, rounded to the nearest double; NaN for NaN.

    >>> correctly_rounded("log10", np.array([1.0, 1000.0])).tolist()
    [0.0, 3.0]
    """
    array = np.atleast_1d(np.asarray(numbers, dtype=np.float64))
    with np.errstate(all="ignore"):
        extended = getattr(np, name)(array.astype(np.longdouble))
        least: Floats = (extended * (1 - _ERROR)).astype(np.float64)
        most = (extended * (1 + _ERROR)).astype(np.float64)
    between = np.flatnonzero((least != most) & ~np.isnan(least))
    if len(between):
        distinct, positions = np.unique(array[between], return_inverse=True)
        exact = [float(_DECIMAL[name](Decimal(number))) for number in distinct.tolist()]
        least[between] = np.array(exact)[positions]
    return np.reshape(least, np.shape(numbers))
