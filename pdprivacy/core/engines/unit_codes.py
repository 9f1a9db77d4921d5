"""Units of records, and the choice of the records of a unit to keep.

Equal names are one unit, whatever type the column stores them in. A column of objects must hold names of one
type: a reader that works in pieces leaves 7 in one piece and "7" in the next, and one unit would be two.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import numbers
import uuid
import warnings
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.core import noise
from pdprivacy.core.rows.cells import dense, nulls
from pdprivacy.declaration.cell_types import NUMBERS, cell_type_name
from pdprivacy.errors import InvalidDataError, ParameterError
from pdprivacy.types import Integers, Mask

NAMES = (
    str,
    bytes,
    bool,
    numbers.Real,
    decimal.Decimal,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    uuid.UUID,
    pd.Period,
    np.bool_,
    np.datetime64,
    np.timedelta64,
)
"""Types of cells with a dependable hash and equality; for other objects, equality may change over time."""


def unit_codes(names: pd.Series[Any]) -> Integers:
    """Return the unit of each record as a number from 0, and -1 for a null.

    Two records belong to one unit if their names are equal: ``0.0`` and ``-0.0``; ``Decimal("1.0")`` and
    ``Decimal("1.00")``; categories and dictionary entries that repeat a name. Every engine whose records are
    read by pandas or Arrow calls this function; Polars, DuckDB and Spark group by the same equality.

    Raises InvalidDataError for cells that cannot be names, such as lists; for objects of several types; and
    for floats that may each stand for several integers.

    >>> unit_codes(pd.Series([0.0, -0.0, None, 2.5])).tolist()
    [0, 0, -1, 1]
    """
    dtype = names.dtype
    if isinstance(dtype, pd.SparseDtype):
        return unit_codes(dense(names))
    if isinstance(dtype, pd.CategoricalDtype):
        codes = unit_codes(pd.Series(dtype.categories, name=names.name))
        return np.append(codes, -1)[names.cat.codes.to_numpy()]
    if isinstance(dtype, pd.ArrowDtype) and str(dtype).startswith("dictionary"):
        return unit_codes(_decoded(names))
    if dtype.kind == "O" and (isinstance(dtype, np.dtype) or getattr(dtype, "storage", None) == "python"):
        return _of_objects(names)
    if dtype.kind in "biuf":
        return _of_numbers(names)
    if dtype.kind == "c" or isinstance(dtype, pd.IntervalDtype) or "arrow.json" in str(dtype):
        raise no_names()
    with contextlib.suppress(Exception):  # whatever pandas or Arrow raise for lists and the like
        return np.asarray(pd.factorize(names)[0], dtype=np.int64)
    raise no_names()


def lowest_of_each(units: Integers, keys: NDArray[Any], most: int) -> Integers:
    """Return the sorted positions of the records with the lowest keys of each unit, at most ``most`` of each.

    >>> lowest_of_each(np.array([0, 0, 1, 0]), np.array([3, 1, 5, 2]), 2).tolist()
    [1, 2, 3]
    """
    order = np.lexsort((keys, units))
    ordered = units[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    rank = np.arange(len(order)) - np.repeat(first, np.diff(np.r_[first, len(order)]))
    return np.sort(order[rank < most])


def _of_numbers(names: pd.Series[Any]) -> Integers:
    """Return the codes of numbers, compared by NumPy because Arrow tells a negative zero from a positive."""
    gone = nulls(names)
    array = filled(names)
    if array.dtype.kind == "f":
        _refuse_rounded(array, names.name)
    # pandas would convert wider floats to doubles
    codes = np.unique(array, return_inverse=True)[1] if array.dtype.kind == "f" else pd.factorize(array)[0]
    return np.where(gone, -1, codes)


def filled(numbers: pd.Series[Any]) -> NDArray[Any]:
    """Return numbers or truth values as a NumPy array of their own type, with nulls as zero."""
    plain: Any = getattr(numbers.dtype, "numpy_dtype", numbers.dtype)
    missing = numbers.isna().any() and not isinstance(numbers.dtype, np.dtype)
    # Arrow fills a missing truth value only with a truth value
    return numbers.to_numpy(plain, na_value=plain.type(0)) if missing else numbers.to_numpy(plain)


def _of_objects(names: pd.Series[Any]) -> Integers:
    """Return the codes of objects, compared by Python because pandas 2 ends texts at a null character."""
    cells = names.to_numpy(dtype=object)
    kinds = set(map(type, cells))
    try:
        gone = nulls(names)
    except ArithmeticError:  # a signalling NaN of decimals
        gone = None
    blank = (type(None), type(pd.NA), type(pd.NaT))
    if gone is None or not all(issubclass(kind, NAMES) or kind in blank for kind in kinds):
        raise no_names()
    _refuse_several_types(cells[~gone], names.name)
    if any(issubclass(kind, _TIMES) for kind in kinds):
        cells = _comparable(cells)
    code_of: dict[Any, int] = {}
    codes = np.fromiter((code_of.setdefault(cell, len(code_of)) for cell in cells), np.int64, len(cells))
    return np.where(gone, -1, codes)


def _refuse_several_types(cells: NDArray[np.object_], name: Hashable) -> None:
    """Refuse names of several types: they may be one unit's, and a piece with a null rounds its integers."""
    kinds = set(map(type, cells))
    # such cells may be of several types although they are of one class, or of one type and several classes
    varied = len(kinds) > 1 or any(issubclass(kind, (*_TIMES, pd.Period)) for kind in kinds)
    types = set(map(_name_type, cells)) if varied else set()
    if len(types) > 1:
        raise InvalidDataError(
            f"The column of the unit holds names of several types ({', '.join(sorted(types))}), so that one "
            "unit may have several names.",
            read_as_text(name),
        )
    for kind in kinds:
        if issubclass(kind, float | np.floating):
            dtype = np.float64 if issubclass(kind, float) else kind
            _refuse_rounded(np.fromiter(cells, dtype=dtype, count=len(cells)), name)


def _name_type(cell: Any) -> str:
    """Return the type of a name, finer than that of other cells: integers, floats and decimals are three."""
    if isinstance(cell, pd.Period):
        return f"periods of {cell.freqstr}"
    kind = cell_type_name(cell)
    if kind != NUMBERS:
        return kind
    if isinstance(cell, numbers.Integral):
        return "integers"
    return "floats" if isinstance(cell, float) else type(cell).__name__  # float32(0.1) differs from 0.1


_TIMES = (np.datetime64, np.timedelta64, datetime.datetime)


def _comparable(cells: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return the cells with times that are equal whenever they are the same instant.

    NumPy times have a hash of their own. Python finds a time in the repeated hour of a zone unequal to every
    time of another zone.
    """

    def comparable(cell: Any) -> Any:
        if isinstance(cell, np.datetime64):
            return pd.Timestamp(cell)
        if isinstance(cell, np.timedelta64):
            return pd.Timedelta(cell)
        zoned = isinstance(cell, datetime.datetime) and cell.tzinfo is not None
        return cell.astimezone(datetime.UTC) if zoned else cell

    with contextlib.suppress(ValueError, OverflowError):  # a time outside the range of Python
        return np.fromiter(map(comparable, cells), dtype=object, count=len(cells))
    raise no_names()


def _entries(names: pd.Series[Any]) -> pd.Series[Any]:
    """Return the names of a sparse, category or dictionary column without nulls, in a dtype of their own."""
    names = dense(names)
    if isinstance(names.dtype, pd.CategoricalDtype):
        return names.astype(names.dtype.categories.dtype)
    if isinstance(names.dtype, pd.ArrowDtype) and str(names.dtype).startswith("dictionary"):
        return _decoded(names)
    return names


def _decoded(names: pd.Series[Any]) -> pd.Series[Any]:
    """Return the entries of an Arrow dictionary column, which may repeat a name or be null."""
    chunks = names.array.__arrow_array__()
    return pd.Series(pd.arrays.ArrowExtensionArray(chunks.cast(chunks.type.value_type)), name=names.name)


def no_names() -> InvalidDataError:
    """Return the error for cells that cannot be names."""
    return InvalidDataError("The column of the unit must hold names: text, numbers or dates.")


def rounded_names(name: Hashable) -> InvalidDataError:
    """Return the error for floats that may each stand for several integers."""
    return InvalidDataError(
        "The column of the unit holds floats that may stand for several integers each.",
        f'read it as integers or as text: pd.read_csv(PATH, dtype={{{name!r}: "Int64"}}).',
    )


def read_as_text(name: Hashable) -> str:
    """Return the hint for names of several types."""
    return f"read it as text: pd.read_csv(PATH, dtype={{{name!r}: str}})."


def _refuse_rounded(floats: NDArray[Any], name: Hashable) -> None:
    """Refuse floats that may each stand for several integers: a null in a column of integers makes floats."""
    sizes = np.abs(floats)
    if bool((np.isfinite(sizes) & (sizes >= 2.0 ** (np.finfo(sizes.dtype).nmant + 1))).any()):
        raise rounded_names(name)


def codes_of(frame: pd.DataFrame, unit: Hashable) -> Integers:
    """Return the unit of each record as a number; refuse records without a unit."""
    if unit not in frame.columns:
        raise ParameterError(
            "The schema leaves the column of the unit out.",
            'declare it, or strict=False in place of "filter".',
        )
    codes = unit_codes(frame[unit])
    if (codes < 0).any():
        raise InvalidDataError(
            "The column of the unit holds nulls, and a record of nobody cannot be counted.",
            "leave such records out before df.dp.protect(...), or give each a name of its own.",
        )
    return codes


def several_types() -> InvalidDataError:
    """Return the error for names that tables hold in types which cannot be compared."""
    return InvalidDataError(
        "The columns of the unit hold names of several types, so that one unit may have several names.",
        "read them as text in every table: pd.read_csv(PATH, dtype=str).",
    )


def codes_of_tables(names: Sequence[pd.Series[Any]]) -> Integers:
    """Return the unit of each record of several tables as a number, one table after the other.

    Equal names have one number. Whole numbers are compared whatever type holds them, and floats of one width.

    Raises InvalidDataError for names of several types.

    >>> codes_of_tables([pd.Series([7, 9]), pd.Series([9, 7, 9], dtype="UInt64")]).tolist()
    [0, 1, 1, 0, 1]
    """
    listed = [_entries(each) for each in names if len(each)]
    if not listed:
        return np.zeros(0, dtype=np.int64)
    kinds = {each.dtype.kind for each in listed}
    # floats among objects are doubles, or of a type that is told from them
    floats = [each.dtype for each in listed if each.dtype.kind in "fO"]
    widths = {8 if dtype.kind == "O" else getattr(dtype, "itemsize", None) for dtype in floats}
    if len(widths) > 1:
        raise several_types()
    if kinds == {"i", "u"} or (kinds == {"u"} and len({str(each.dtype) for each in listed}) > 1):
        listed = [pd.Series(each.tolist(), dtype=object) for each in listed]  # no type holds all of both
    with warnings.catch_warnings(), contextlib.suppress(Exception):  # errors of pandas and Arrow show a name
        warnings.simplefilter("ignore")
        return unit_codes(pd.concat(listed, ignore_index=True))
    raise several_types()


def bounded(codes: Integers, most: int, source: noise.Source) -> Mask:
    """Return a mask of at most ``most`` records of each unit, drawn uniformly."""
    kept = np.ones(len(codes), dtype=bool)
    times = np.bincount(codes)
    crowded = np.flatnonzero(times[codes] > most)
    if len(crowded):
        kept[crowded] = False
        keys = noise.shuffled_keys(len(crowded), source)
        kept[crowded[lowest_of_each(codes[crowded], keys, most)]] = True
    return kept
