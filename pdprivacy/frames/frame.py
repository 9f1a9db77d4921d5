"""The protected frame: its declaration, row steps in pandas syntax, its parts, and releases under ``.dp``."""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, TypeVar, overload

import numpy as np
import pandas as pd

from pdprivacy.checks import has_hash, is_function
from pdprivacy.core import rows as steps
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.parts import transformed
from pdprivacy.core.privacy import Rational
from pdprivacy.core.rows.functions import ALIASES, FUNCTIONS
from pdprivacy.declaration.domain import Domain
from pdprivacy.errors import NotProtectedError, ParameterError, PrivacyError, kind, short_tracebacks
from pdprivacy.frames import unit_steps
from pdprivacy.frames.column import ProtectedColumn, check_constants, refuse_unpacked_releases
from pdprivacy.frames.label_declaration import OTHER
from pdprivacy.frames.opaque import Opaque
from pdprivacy.frames.use import use_step
from pdprivacy.frames.variables import with_constants
from pdprivacy.hints.examples import EXAMPLES, Example, quoted
from pdprivacy.hints.suggestions import with_hints
from pdprivacy.types import Labels

if TYPE_CHECKING:
    from pdprivacy.accessor import ProtectedDP
    from pdprivacy.core.rows import Syntax, Transform


End: TypeAlias = float | str | date
Piped = TypeVar("Piped")


ROW_STEPS = (
    "assign", "astype", "clip", "cut", "drop", "dropna", "fillna", "filter", "merge", "per_unit", "query",
    "recode", "rename", "select", "use",
)  # fmt: skip
"""Methods of a protected frame that treat each record, or each unit, by itself."""


@short_tracebacks
class ProtectedFrame(Opaque):
    """A frame bound to its declaration and a budget, as `pdprivacy.protect` and ``df.dp.protect`` return it.

    It is not a DataFrame and shows no cell: its ``repr`` shows what is declared and spent. Releases are
    under ``.dp``. Row steps are written as in pandas, with symbolic columns:
    ``private[private["age"] >= 18]``. Each treats a record by itself, carries the declaration of its
    result, and costs nothing. A frame of another engine stays in that engine, and a lazy one stays lazy.

    ``is`` compares two frames; ``==`` and all other operators of a whole frame raise OpaqueFrameError.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> adults = private[private["age"].between(18, 64)]
    >>> adults.dp.domain["age"].bounds("mean")
    (18.0, 64.0)
    """

    __slots__ = ("__weakref__", "_protected")
    _protected: Facts

    if TYPE_CHECKING:

        @property
        def dp(self) -> ProtectedDP:
            """Releases; put here by `pdprivacy.accessor`."""

    def __init__(self, protected: Facts) -> None:
        self._protected = protected

    def __repr__(self) -> str:
        return repr(self.dp)

    def _repr_html_(self) -> str:
        return str(self.dp._repr_html_())

    def _declared(self) -> Domain:
        return self._protected.domain

    def _offered(self) -> list[str]:
        return [name for name in dir(type(self.dp)) if not name.startswith("_")]

    def _example_of_function(self, function: str) -> str:
        for column in self._declared().columns if function in FUNCTIONS else ():
            symbol = ProtectedColumn._named(self._protected, column.name)
            with contextlib.suppress(PrivacyError):
                symbol._made(ast.Call(ast.Name(ALIASES.get(function, function)), [symbol._node], []))
                return f"private.assign(new=np.{function}(private[{quoted(column.name)}]))"
        return super()._example_of_function(function)

    @property
    def columns(self) -> pd.Index[Any]:
        """The names of the declared columns."""
        return pd.Index(list(self._protected.domain), tupleize_cols=False)

    def copy(self) -> ProtectedFrame:
        """Return the frame itself, which never changes."""
        return self

    # ---------------------------------------------------------------- row steps

    def _after(
        self, transform: Transform, condition: str | None = None, *, seeded: bool = False
    ) -> ProtectedFrame:
        protected = self._protected.admitted(transform.text.partition("(")[0])
        return ProtectedFrame(transformed(protected, transform, condition, seeded=seeded))

    def _with(self, transform: Transform, *constants: object) -> ProtectedFrame:
        """The frame after a step with these constants."""
        check_constants(self._example_call(transform.text.partition("(")[0]), *constants)
        return self._after(transform)

    def _filtered(self, condition: str | Syntax) -> ProtectedFrame:
        transform = steps.query(self._protected.domain, condition)
        return self._after(transform, condition if isinstance(condition, str) else condition.text)

    def _owned(self, column: ProtectedColumn) -> Syntax:
        """The expression of a column of this frame, or of an earlier one whose cells it keeps."""
        if not column._is_kept_by(self._protected):
            raise column._not_kept_by(self._protected, self._example_filter())
        return column._syntax()

    @overload
    def __getitem__(self, key: ProtectedColumn | list[Any]) -> ProtectedFrame: ...
    @overload
    def __getitem__(self, key: str | float | tuple[Hashable, ...]) -> ProtectedColumn: ...
    def __getitem__(self, key: Any) -> ProtectedColumn | ProtectedFrame:
        """A column by its label, the columns of a list, or the records that meet a condition.

        A function is called with this frame, as in ``private[lambda df: df["age"] >= 18]``.

        The number of records that meet a condition is private, whatever was public before. A condition may be
        of an earlier frame, as in ``private[private["age"] >= 18][private["member"]]``, if no step since then
        has changed the columns that it reads.

        Raises
        ------
        ParameterError : a mask of cells, a slice, or a condition of another frame.
        QueryError : no condition, or one that no declared record meets.
        """
        if inspect.isfunction(key):
            chosen: ProtectedColumn | ProtectedFrame = self[key(self)]
            return chosen
        if isinstance(key, ProtectedColumn):
            return self._filtered(self._owned(key))
        mask = isinstance(key, list) and len(key) > 0 and all(isinstance(item, bool) for item in key)
        if isinstance(key, list) and not mask:
            return self.select(key)
        if not has_hash(key):
            raise ParameterError(
                f"A protected frame takes a column, a list of columns or a condition (got {kind(key)}).",
                Example('private["age"], private[["age"]], private[private["age"] >= 30].'),
            )
        return ProtectedColumn._named(self._protected, key)

    @property
    def loc(self) -> ConditionalRows:
        """The records that meet a condition, and their columns, as `DataFrame.loc`.

        ``private.loc[condition]`` is ``private[condition]``, ``private.loc[condition, columns]`` has columns
        of these records. ``:`` stands for all. Index labels are refused, because they are not declared.
        """
        return ConditionalRows(self)

    def pipe(self, func: Callable[..., Piped], /, *args: Any, **kwargs: Any) -> Piped:
        """Return ``func(private, *args, **kwargs)``, as `DataFrame.pipe`; the function gets this frame.

        >>> import pandas as pd, pandera.pandas as pa
        >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
        >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
        >>> private = frame.dp.protect(schema, epsilon=1)
        >>> private.pipe(lambda adults: adults.query("age >= 18")).dp.domain["age"].bounds("mean")
        (18.0, 120.0)
        """
        if not callable(func):
            raise ParameterError(f"'func' must be a function of a protected frame (got {kind(func)}).")
        return func(self, *args, **kwargs)

    @with_hints
    def query(self, expr: str) -> ProtectedFrame:
        """Select the records that meet a condition, as `DataFrame.query`.

        The condition is written as in `DataFrame.query`, and looks at one record at a time: comparisons of
        declared columns with constants, ``and``, ``or``, ``not``, ``in``, ``.isna()``. The domain is narrowed
        accordingly. The number of rows that meet the condition is private, whatever was public before.
        ``@name`` is a variable of the caller that holds a number, a string, a date, True or False.

        Raises QueryError for everything else, with the reason.

        >>> import pandas as pd, pandera.pandas as pa
        >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
        >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
        >>> private = frame.dp.protect(schema, epsilon=1)
        >>> private.query("age >= 30 and age < 65").dp.domain["age"].bounds("mean")
        (30.0, 64.0)
        """
        return self._filtered(with_constants(expr))

    @with_hints
    def clip(
        self,
        lower: End | Mapping[Hashable, End] | None = None,
        upper: End | Mapping[Hashable, End] | None = None,
        *,
        columns: Labels | None = None,
    ) -> ProtectedFrame:
        """Clip numbers to public bounds, as `DataFrame.clip`, and declare these bounds.

        ``lower``, ``upper``: a number for all numeric columns (or ``columns``), a date for columns of dates,
        or a mapping from column to either. Narrower bounds need less noise, and bias values outside them.

        Raises ParameterError for a lower bound above the upper one, or one of another kind than the column.

        >>> import pandas as pd, pandera.pandas as pa
        >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
        >>> frame, schema = pd.DataFrame({"age": [31, 87]}), pa.DataFrameSchema({"age": age})
        >>> private = frame.dp.protect(schema, epsilon=1)
        >>> private.clip(upper=80).dp.domain["age"].bounds("mean")
        (0.0, 80.0)
        """
        refuse_unpacked_releases(lower, upper)
        made = steps.clip(self._protected.domain, lower, upper, columns=columns)
        return self._with(made, lower, upper)

    @with_hints
    def assign(
        self,
        /,
        *,
        bounds: Mapping[str, Sequence[float]] | None = None,
        **expressions: str | ProtectedColumn | Callable[[ProtectedFrame], str | ProtectedColumn],
    ) -> ProtectedFrame:
        """Add columns computed from declared ones by arithmetic or conditions, as `DataFrame.assign`.

        ``expressions``: one per new column, such as ``private["gain"] - private["loss"]`` or, as text,
        ``"gain - loss"`` (``+ - * / // % **``, ``.clip``, ``.fillna``, constants, declared columns; a
        condition gives truth values, and ``x if condition else y`` or ``x.where(condition, y)`` one of two
        values). Functions are abs, ceil, exp, expm1, floor, log, log10, log1p, log2,
        maximum, minimum, round, sign and sqrt, as ``"log(pay)"`` or ``np.log(private["pay"])``; floor, ceil,
        sign, and round without digits, give whole numbers. For dates a difference is a number of days, and a
        field such as ``private["joined"].dt.month`` a whole number. A function of Python is called with the
        protected frame and the new columns before its own, and returns an expression. Series are refused:
        they may have looked at other records. The bounds of a new column follow from those of its columns;
        ``bounds`` states narrower public ones by column, into which values are clipped, and is needed where a
        denominator may be zero.

        Raises QueryError for an expression that looks at other records or at undeclared columns.

        >>> import pandas as pd, pandera.pandas as pa
        >>> pay = pa.Column(float, pa.Check.in_range(0, 100), metadata={"dp": {}})
        >>> frame, schema = pd.DataFrame({"pay": [10.0, 20.0]}), pa.DataFrameSchema({"pay": pay})
        >>> private = frame.dp.protect(schema, epsilon=1)
        >>> private.assign(yearly=12 * private["pay"]).dp.domain["yearly"].bounds("mean")
        (0.0, 1200.0)
        """
        for index, (name, value) in enumerate(expressions.items()):
            if is_function(value) or isinstance(value, np.ufunc):
                named = list(expressions.items())
                before = dict(named[:index])
                current = self.assign(bounds=_some(bounds, before), **before) if before else self
                made = value(current)
                if callable(made):
                    raise ParameterError(
                        f"The function of column {name!r} must return an expression (got {kind(made)}).",
                        EXAMPLES["assign"],
                    )
                after = {name: made, **dict(named[index + 1 :])}
                return current.assign(bounds=_some(bounds, before, others=True), **after)
        owned: dict[str, Any] = {
            name: self._owned(value) if isinstance(value, ProtectedColumn) else with_constants(value)
            for name, value in expressions.items()
        }
        return self._with(steps.assign(self._protected.domain, owned, bounds), bounds)

    @with_hints
    def cut(
        self,
        column: Hashable,
        bins: Sequence[float] | None = None,
        *,
        right: bool = True,
        labels: Sequence[Any] | None = None,
        include_lowest: bool = False,
        freq: str | None = None,
    ) -> ProtectedFrame:
        """Replace the numbers of a column by the intervals that contain them, as `pandas.cut` with edges.

        Labels are texts such as ``"(18, 30]"``, or ``labels``. A number in no interval becomes null. A
        number of bins is refused, because pandas takes their edges from the data.

        For dates, ``freq`` ("D", "W", "M", "Q" or "Y") gives the calendar's periods between the bounds, the
        empty ones too. Labels are the texts of periods of pandas, such as ``"2020-02"``.

        Raises ParameterError for edges that are not increasing, labels that do not fit, a column without
        numbers.

        >>> import pandas as pd, pandera.pandas as pa
        >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
        >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
        >>> private = frame.dp.protect(schema, epsilon=1)
        >>> private.cut("age", [0, 40, 120]).dp.domain["age"].labels("count")
        ('(0, 40]', '(40, 120]')
        """
        refuse_unpacked_releases(bins)
        transform = steps.cut(
            self._protected.domain,
            column,
            bins,
            right=right,
            labels=labels,
            include_lowest=include_lowest,
            freq=freq,
        )
        return self._with(transform, bins, labels)

    @with_hints
    def recode(self, column: Hashable, mapping: Mapping[Any, Any]) -> ProtectedFrame:
        """Replace labels of a column by others; labels that are not in ``mapping`` stay.

        A label that is mapped to None becomes null. The declared labels are replaced in the same way.

        Raises ParameterError for labels that are not declared.

        >>> import pandas as pd, pandera.pandas as pa
        >>> region = pa.Column(str, pa.Check.isin(["north", "south"]), metadata={"dp": {}})
        >>> frame = pd.DataFrame({"region": ["north"] * 90 + ["south"] * 10})
        >>> private = frame.dp.protect(pa.DataFrameSchema({"region": region}), epsilon=2)
        >>> private.recode("region", {"north": "up"}).dp.domain["region"].categories
        ('up', 'south')
        """
        refuse_unpacked_releases(mapping)
        made = steps.recode(self._protected.domain, column, mapping)
        return self._with(made, *mapping, mapping)

    @with_hints
    def merge(
        self,
        right: pd.DataFrame | ProtectedFrame,
        how: Literal["left", "inner"] = "inner",
        on: Labels | None = None,
    ) -> ProtectedFrame:
        """Add the columns of another table to each record, by its keys, as `DataFrame.merge`.

        The step costs nothing. A pandas table is taken to be public: its labels, and the least and largest
        of its numbers, are declared of the new columns, and each record is looked up by itself. A protected
        frame, made of the same frame or of a table that was protected together with it by `protect_tables`,
        is looked up by the unit of each record.

        Parameters
        ----------
        right : a pandas table that everybody may know, with one row for each key; or a protected frame with
            at most one row for each unit, such as `per_unit` makes.
        how : "left" makes nulls where a record has no row in the table; "inner" leaves such records out.
        on : the columns of both tables that are the keys; by default all that both have. Keys are declared
            labels, truth values, texts or whole numbers, and are compared as labels are. Between protected
            frames the column of the unit, which need not be declared.

        A new column of a sensitive key is sensitive; any other of a public table has no role.

        Raises ParameterError for a table with a key or a unit twice, or with a column that is declared
        already.

        >>> import pandas as pd, pandera.pandas as pa
        >>> zips = pa.Column(str, pa.Check.isin(["8001", "3011"]), metadata={"dp": {}})
        >>> frame = pd.DataFrame({"zip": ["8001"] * 60 + ["3011"] * 40})
        >>> private = frame.dp.protect(pa.DataFrameSchema({"zip": zips}), epsilon=1)
        >>> towns = pd.DataFrame({"zip": ["8001", "3011"], "town": ["Zurich", "Bern"]})
        >>> private.merge(towns, on="zip").dp.domain["town"].categories
        ('Zurich', 'Bern')
        """
        if isinstance(right, ProtectedFrame):
            return ProtectedFrame(
                unit_steps.with_rows_of_the_unit(self._protected, right._protected, how, on)
            )
        step = steps.merge(self._protected.domain, right, how, on)
        keys = ", ".join(map(str, step.reads))
        return self._after(step, None if step.keep is None else f"{keys} in the merged table")

    @with_hints
    def per_unit(
        self,
        columns: Mapping[Hashable, Any] | None = None,
        bounds: Mapping[Hashable, tuple[Rational, Rational]] | None = None,
    ) -> ProtectedFrame:
        """Make one row of the records of each unit, such as a person's total of many purchases.

        The row of a unit is made of its own records, so that sensitivities are those of one record, however
        many records a unit has: the step costs nothing. For frames with ``protect(unit=, max_rows=)``;
        numbers are computed of the records that ``max_rows`` and earlier steps left. A unit without a record
        has no row.

        Parameters
        ----------
        columns : by new name, a pair of a declared column and a function, as in `DataFrameGroupBy.agg`:
            ``{"spent": ("amount", "sum")}``; or ``"size"``, the number of records. Functions are "sum",
            "mean", "min", "max", "first" and "last" (in the order of the table), "count", "nunique", "any"
            and "all". They leave nulls out, as in pandas.
        bounds : by new name, the bounds within which numbers are clipped. By default those that follow from
            the declaration and ``max_rows``, which are wide for sums.

        A function of a sensitive column is sensitive. Whole numbers are summed exactly.

        Raises ParameterError for frames without a unit, of other engines than pandas, or sampled;
        DeclarationError for a function that does not suit its column.

        >>> import pandas as pd, pandera.pandas as pa
        >>> cost = pa.Column(float, pa.Check.in_range(0, 500), metadata={"dp": {}})
        >>> visits = pd.DataFrame({"person_id": [7, 7, 9], "cost": [120.0, 80.0, 60.0]})
        >>> private = visits.dp.protect(
        ...     pa.DataFrameSchema({"cost": cost}), epsilon=1, unit="person_id", max_rows=1000
        ... )
        >>> persons = private.per_unit({"spent": ("cost", "sum"), "visits": "size"}, {"spent": (0, 2000)})
        >>> persons.dp.domain["spent"].bounds("mean"), persons.dp.domain["visits"].bounds("mean")
        ((0.0, 2000.0), (1.0, 1000.0))
        """
        check_constants("bounds={'total': (0, 1000)}", bounds)
        return ProtectedFrame(unit_steps.one_row_per_unit(self._protected, columns, bounds))

    @with_hints
    def rename(self, columns: Mapping[Hashable, Hashable]) -> ProtectedFrame:
        """Rename columns, as `DataFrame.rename`; everything else that is declared of them stays.

        Raises ParameterError for a name that another column has.

        >>> import pandas as pd, pandera.pandas as pa
        >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
        >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
        >>> private = frame.dp.protect(schema, epsilon=1)
        >>> private.rename(columns={"age": "years"}).dp.domain["years"].bounds("mean")
        (0.0, 120.0)
        """
        return self._with(steps.rename(self._protected.domain, columns), columns)

    @with_hints
    def astype(self, dtype: Any) -> ProtectedFrame:
        """Convert columns to a type that holds every declared cell, as `DataFrame.astype`.

        Truth values become integers or floats, and integers floats; bounds and bins stay. ``dtype``: a type
        for all columns, or a mapping from column to type.

        Raises ParameterError for a type that does not hold every declared cell, such as integers for floats.

        >>> import pandas as pd, pandera.pandas as pa
        >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
        >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
        >>> private = frame.dp.protect(schema, epsilon=1)
        >>> private.astype({"age": "float64"}).dp.domain["age"].kind
        'float'
        """
        return self._after(steps.astype(self._protected.domain, dtype))

    @with_hints
    def fillna(self, value: Any) -> ProtectedFrame:
        """Replace nulls by public constants, as `DataFrame.fillna`.

        ``value``: a constant for all columns that may hold nulls, or a mapping from column to constant. A
        constant outside the declared bounds or labels widens them. A mean or mode of the data is not public.

        >>> import pandas as pd, pandera.pandas as pa
        >>> age = pa.Column(float, pa.Check.in_range(0, 120), nullable=True, metadata={"dp": {}})
        >>> frame, schema = pd.DataFrame({"age": [31, None]}), pa.DataFrameSchema({"age": age})
        >>> private = frame.dp.protect(schema, epsilon=1)
        >>> private.fillna({"age": 40}).dp.domain["age"].nullable
        False
        """
        refuse_unpacked_releases(value)
        return self._with(steps.fillna(self._protected.domain, value), value)

    @with_hints
    def dropna(self, subset: Labels | None = None, *, how: Literal["any", "all"] = "any") -> ProtectedFrame:
        """Drop the records with nulls, as `DataFrame.dropna`; the number of remaining records is private.

        ``subset``: columns to look at, by default all that are declared. ``how``: "any" or "all".

        >>> import pandas as pd, pandera.pandas as pa
        >>> age = pa.Column(float, pa.Check.in_range(0, 120), nullable=True, metadata={"dp": {}})
        >>> frame, schema = pd.DataFrame({"age": [31, None]}), pa.DataFrameSchema({"age": age})
        >>> private = frame.dp.protect(schema, epsilon=1)
        >>> private.dropna("age").dp.domain["age"].nullable
        False
        """
        return self._after(steps.dropna(self._protected.domain, subset, how))

    @with_hints
    def select(self, columns: Labels) -> ProtectedFrame:
        """Keep these declared columns only, in this order.

        >>> import pandas as pd, pandera.pandas as pa
        >>> flag = pa.Column(bool, metadata={"dp": {}})
        >>> frame = pd.DataFrame({"ill": [True, False] * 50, "member": [True] * 100})
        >>> private = frame.dp.protect(pa.DataFrameSchema({"ill": flag, "member": flag}), epsilon=1)
        >>> list(private.select(["ill"]).columns)
        ['ill']
        """
        return self._after(steps.select(self._protected.domain, columns))

    @with_hints
    def drop(self, *, columns: Labels) -> ProtectedFrame:
        """Drop these declared columns, as `DataFrame.drop`.

        Raises ParameterError for a column that is not declared, and where none would be left.

        >>> import pandas as pd, pandera.pandas as pa
        >>> flag = pa.Column(bool, metadata={"dp": {}})
        >>> frame = pd.DataFrame({"ill": [True, False] * 50, "member": [True] * 100})
        >>> private = frame.dp.protect(pa.DataFrameSchema({"ill": flag, "member": flag}), epsilon=1)
        >>> list(private.drop(columns="member").columns)
        ['ill']
        """
        dropped = self.select(columns).columns
        left = [name for name in self._protected.domain if name not in dropped]
        if not left:
            raise ParameterError("'drop' would leave no declared column.")
        return self.select(left)

    @with_hints
    def use(
        self, released: pd.DataFrame | pd.Series[Any], *, other: str | int | None = OTHER
    ) -> ProtectedFrame:
        """Declare the bounds or labels that a release found, at no further cost.

        ``released``: the result of ``private.dp.find_bounds`` or ``private.dp.find_labels``, as it was
        released. Numbers outside the bounds are clipped to them. Labels that were not found become ``other``,
        which is declared as the last label, or null for None; in a column of whole numbers by default null.
        The lineage names the release and its charge. Releases after one that was ``seeded`` are, too.

        Raises ParameterError for any other release, MetadataError for one that was changed, and
        DeclarationError for a column that is declared otherwise than when its bounds were found.

        >>> import pandas as pd, pandera.pandas as pa
        >>> schema = pa.DataFrameSchema({"age": pa.Column(int, metadata={"dp": {}})})
        >>> private = pd.DataFrame({"age": [31, 54] * 500}).dp.protect(schema, epsilon=100)
        >>> bounds = private.dp.find_bounds("age", epsilon=50)
        >>> private.use(bounds).dp.lineage["step"].tolist()
        ['use(find_bounds of age, charge 1)']
        """
        step = use_step(self._protected.domain, released, other)
        return self._after(step, seeded=released.dp.metadata.seeded)

    @with_hints
    def filter(
        self,
        items: Labels | None = None,
        like: str | None = None,
        regex: str | None = None,
        axis: Literal[1, "columns"] | None = None,
    ) -> ProtectedFrame:
        """Keep the declared columns with these names, as `DataFrame.filter`; no cell is looked at.

        One of ``items``, a list of names; ``like``, a part of names; ``regex``, a pattern in names. Unlike
        in pandas, a name in ``items`` that is not declared is refused.

        >>> import pandas as pd, pandera.pandas as pa
        >>> flag = pa.Column(bool, metadata={"dp": {}})
        >>> frame = pd.DataFrame({"is_ill": [True, False] * 50, "member": [True] * 100})
        >>> private = frame.dp.protect(pa.DataFrameSchema({"is_ill": flag, "member": flag}), epsilon=1)
        >>> list(private.filter(like="is_").columns)
        ['is_ill']
        """
        if axis is not None and (type(axis) not in (int, str) or axis not in (1, "columns")):
            raise ParameterError("'axis' must be 1 or 'columns': rows have no labels.", EXAMPLES["filter"])
        if sum(option is not None for option in (items, like, regex)) != 1:
            raise ParameterError("'filter' takes one of items=, like= and regex=.", EXAMPLES["filter"])
        if items is not None:
            return self.select(items)
        pattern = like if regex is None else regex
        if not isinstance(pattern, str) or not pattern:
            raise ParameterError(
                f"'like' and 'regex' must be strings (got {kind(pattern)}).", EXAMPLES["filter"]
            )
        try:
            names = pd.DataFrame(columns=self.columns).filter(like=like, regex=regex, axis=1).columns
        except re.error:
            raise ParameterError(
                f"'regex' must be a regular expression (got {pattern!r}).", EXAMPLES["filter"]
            ) from None
        if not len(names):
            raise ParameterError("no declared column has such a name.", EXAMPLES["filter"])
        return self.select(list(names))

    # ---------------------------------------------------------------- refusals

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise ParameterError("A protected frame is not changed in place.", EXAMPLES["assign"])

    def __delitem__(self, key: object) -> NoReturn:
        raise ParameterError("A protected frame is not changed in place.", EXAMPLES["drop"])

    def __iter__(self) -> NoReturn:
        raise self._opaque_error("Iteration", "for name in private.columns: ...")

    def __contains__(self, _: object) -> NoReturn:
        raise self._opaque_error("'in'", "name in private.columns")

    def __bool__(self) -> NoReturn:
        raise self._opaque_error("A truth value", self._example_call("count"))


@short_tracebacks
class ConditionalRows:
    """The ``.loc`` of a protected frame: records by a condition, and their columns.

    ``private.loc[condition]`` is ``private[condition]``; ``private.loc[condition, columns]`` takes columns
    of these records: a label gives a symbolic column, a list of labels a frame. ``:`` stands for all.
    Index labels and places are refused, because they are not declared.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.loc[private["age"] >= 18, ["age"]].dp.domain["age"].bounds("mean")
    (18.0, 120.0)
    """

    __slots__ = ("_frame",)

    def __init__(self, frame: ProtectedFrame) -> None:
        self._frame = frame

    def __repr__(self) -> str:
        return "private.loc[CONDITION] or private.loc[CONDITION, COLUMNS]"

    @overload
    def __getitem__(
        self, key: ProtectedColumn | slice | tuple[ProtectedColumn | slice, list[Any] | slice]
    ) -> ProtectedFrame: ...
    @overload
    def __getitem__(self, key: tuple[ProtectedColumn | slice, str | float]) -> ProtectedColumn: ...
    def __getitem__(self, key: Any) -> ProtectedColumn | ProtectedFrame:
        """The records that meet a condition; see the class."""
        rows: Any = key
        columns: Any = slice(None)
        if isinstance(key, tuple) and len(key) == 2:
            rows, columns = key
        if inspect.isfunction(rows):
            rows = rows(self._frame)
        if isinstance(rows, ProtectedColumn):
            frame = self._frame[rows]
        elif _takes_all(rows):
            frame = self._frame
        else:
            raise self._frame._opaque_error("'loc' by index labels", self._frame._example_filter())
        return frame if _takes_all(columns) else frame[columns]

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise ParameterError("A protected frame is not changed in place.", EXAMPLES["assign"])


def _takes_all(key: object) -> bool:
    """Return whether a key is ``:``."""
    return isinstance(key, slice) and key.start is None and key.stop is None and key.step is None


def _some(bounds: Any, names: Mapping[str, object], others: bool = False) -> Any:
    """The bounds of these columns, or of all others; what is no mapping as it is."""
    if not isinstance(bounds, Mapping):
        return bounds
    return {name: ends for name, ends in bounds.items() if (name in names) != others} or None


def find(frame: Any) -> Facts:
    """Return the records, declaration and budget behind a protected frame.

    Raises
    ------
    NotProtectedError : the frame is not protected.
    """
    if isinstance(frame, ProtectedFrame):
        return frame._protected
    raise unprotected()


def unprotected() -> NotProtectedError:
    """The error for a frame that is not protected."""
    return NotProtectedError(
        "The frame is not protected: nothing is declared about it.",
        'private = df.dp.protect(schema, epsilon=1.0); private.dp.mean("age", epsilon=0.1). '
        '"python -m pdprivacy declare data.csv" writes a schema to fill in.',
    )
