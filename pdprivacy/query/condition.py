"""A filter: its text, what it narrows, and which rows meet it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pdprivacy.domain import Domain
from pdprivacy.errors import InvalidDataError, ParameterError, QueryError, kind
from pdprivacy.query.masks import evaluate
from pdprivacy.query.narrowing import narrow, narrowed_column
from pdprivacy.query.reading import Reader
from pdprivacy.query.tree import Tree

__all__ = ["Query", "parse"]


@dataclass(frozen=True)
class Query:
    """A parsed filter; made by `parse`.

    Attributes
    ----------
    text : the expression as it was written.
    columns : the names of the columns it reads, in order of appearance.
    """

    text: str
    columns: tuple[str, ...]
    _tree: Tree = field(repr=False)
    _narrowed: Domain = field(repr=False)

    def narrow(self) -> Domain:
        """The domain of the records that pass: a superset of them, never less.

        Bounds and categories are intersected, over ``or`` the hull and the union are taken, bins are
        cropped to the new bounds. A strict comparison moves an integer bound by one and keeps a float
        bound closed. A column is not nullable any more where no null can pass.

        >>> from pdprivacy.domain import Column, Domain
        >>> age = Column("age", "integer", lower=18, upper=65, bins=(18, 30, 45, 65))
        >>> parse("age >= 35", Domain((age,))).narrow()["age"].bins
        (35.0, 45.0, 65.0)
        """
        return self._narrowed

    def mask(self, frame: pd.DataFrame) -> npt.NDArray[np.bool_]:
        """Which rows pass: shape ``(len(frame),)``; each outcome depends on its own row alone.

        Nulls of every dtype (NaN, None, NA, NaT) have one fate: a comparison with a null is False, save
        ``!=`` and ``not in``, which are True; ``not`` is plain negation.

        Raises
        ------
        ParameterError : not a frame.
        InvalidDataError : the frame lacks a column of the filter, or has it twice.

        >>> from pdprivacy.domain import Column, Domain
        >>> query = parse("not age < 30", Domain((Column("age", "float"),)))
        >>> query.mask(pd.DataFrame({"age": [20.0, 40.0, None]}))
        array([False,  True,  True])
        """
        if not isinstance(frame, pd.DataFrame):
            raise ParameterError(f"'frame' must be a pandas DataFrame (got {type(frame).__name__}).")
        read: dict[str, pd.Series[Any]] = {}
        for name in self.columns:
            if (count := int((frame.columns == name).sum())) != 1:
                reason = "is not in the frame" if count == 0 else "appears more than once in the frame"
                raise InvalidDataError(f"column {name!r} of the filter {reason}.")
            read[name] = frame[name]
        return evaluate(self._tree, read)


def parse(expression: str, domain: Domain) -> Query:
    """Read a filter such as ``"age >= 30 and region == 'south'"``.

    Allowed are comparisons of a declared column with a constant (``== != < <= > >=``, chained too),
    ``in`` and ``not in`` with a list of constants, ``column.isna()`` and ``column.notna()``, a boolean
    column alone, and ``and``, ``or``, ``not`` (or ``&``, ``|``, ``~`` with parentheses). Names that are
    not Python names stand in backticks, as in `DataFrame.query`.

    Raises
    ------
    ParameterError : the expression is not a string.
    QueryError : anything else in the expression, a constant that the column cannot hold, or a filter
        that no declared record can meet.

    >>> from pdprivacy.domain import Column, Domain
    >>> domain = Domain((Column("age", "integer", lower=18, upper=65),))
    >>> parse("30 <= age < 50", domain).narrow()["age"].bounds("mean")
    (30.0, 49.0)
    """
    if type(expression) is not str:  # a text of NumPy may be a cell
        raise ParameterError(
            f"'expression' must be a string (got {kind(expression)}).",
            'private.dp.query("age >= 30")',
        )
    reader = Reader(expression, domain)
    try:
        tree = reader.read()
        narrowed = narrow(tree, False, domain)
    except RecursionError:
        raise QueryError("the filter is nested too deeply.") from None
    if narrowed is None:
        raise QueryError(f"no declared record can meet the filter {expression!r}.")
    columns = [narrowed_column(domain[name], region) for name, region in narrowed.items()]
    return Query(expression, tuple(reader.columns), tree, domain.replace(*columns))
