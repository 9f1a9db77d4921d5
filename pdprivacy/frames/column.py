"""Symbolic columns of a protected frame, which hold no cell, and refusals with the call to write instead."""

from __future__ import annotations

import ast
import datetime
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import pandas as pd

from pdprivacy.checks import flag, has_hash, is_function, items, one_of
from pdprivacy.core import rows as expressions
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.rows import branches
from pdprivacy.core.rows.functions import ALIASES, FUNCTIONS
from pdprivacy.core.rows.label_mappings import PREDICATES, TEXT_METHODS
from pdprivacy.core.rows.reader import FUNCTION_SHAPE
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.declaration.timeline import FIELDS
from pdprivacy.errors import (
    ParameterError,
    PrivacyError,
    QueryError,
    UnknownNameError,
    kind,
    short_tracebacks,
)
from pdprivacy.frames.opaque import Opaque, example_filter
from pdprivacy.hints.examples import EXAMPLES, quoted

_PLAIN = (bool, int, float, str, datetime.date, datetime.datetime, type(None))
"""The types of constants. A value of NumPy or pandas may be a cell, or made of cells."""

MOST_CONSTANTS = 10**5
"""The largest number of constants in ``isin``; each is in the lineage of every later release."""

_ENDS: dict[str, tuple[type[ast.cmpop], type[ast.cmpop]]] = {
    "both": (ast.LtE, ast.LtE),
    "neither": (ast.Lt, ast.Lt),
    "left": (ast.LtE, ast.Lt),
    "right": (ast.Lt, ast.LtE),
}


def _comparison(symbol: type[ast.cmpop]) -> Callable[[ProtectedColumn, object], ProtectedColumn]:
    def method(self: ProtectedColumn, other: object) -> ProtectedColumn:
        column = self._beside(other)
        return column._condition(ast.Compare(column._node, [symbol()], [column._operand(other)]))

    return method


def _arithmetic(
    symbol: type[ast.operator], swapped: bool = False
) -> Callable[[ProtectedColumn, object], ProtectedColumn]:
    def method(self: ProtectedColumn, other: object) -> ProtectedColumn:
        column = self._beside(other)
        left, right = column._node, column._operand(other)
        if swapped:
            left, right = right, left
        return column._made(ast.BinOp(left, symbol(), right))

    return method


def _boolean(symbol: type[ast.boolop]) -> Callable[[ProtectedColumn, object], ProtectedColumn]:
    def method(self: ProtectedColumn, other: object) -> ProtectedColumn:
        parts: list[ast.expr] = []
        column = self._beside(other)
        for side in (self, other):
            if not isinstance(side, ProtectedColumn):
                raise ParameterError(
                    f"a condition is joined with another condition (got {kind(side)}).",
                    f"parentheses around comparisons, ({column._source_text()}.notna()) & (...)",
                )
            node = column._operand(side)
            if isinstance(node, ast.BoolOp) and isinstance(node.op, symbol):
                parts.extend(node.values)
            else:
                parts.append(side._is_condition())
        return column._of(ast.BoolOp(symbol(), parts))

    return method


_UFUNCS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "square": lambda column: column**2,
    "negative": operator.neg,
    "positive": operator.pos,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    **dict.fromkeys(("logical_and", "bitwise_and"), operator.and_),
    **dict.fromkeys(("logical_or", "bitwise_or"), operator.or_),
    **dict.fromkeys(("logical_not", "invert"), operator.invert),
    "isnan": lambda column: column.isna(),
}
"""Functions of NumPy that are operators of a column."""


_FUNCTIONS_OF_NUMPY = {"round": "round", "around": "round", "clip": "clip"}
"""Functions of NumPy that are methods of a column."""


def check_constants(hint: str, *given: object) -> None:
    """Refuse constants of a row step that are not plain Python values; those of lists and mappings, too."""
    for value in given:
        if isinstance(value, Mapping):
            check_constants(hint, *value.values())
        elif isinstance(value, list | tuple):
            check_constants(hint, *value)
        elif type(value) not in (*_PLAIN, range):
            raise ParameterError(
                f"A protected frame takes plain Python values alone as constants (got {kind(value)}).",
                f"{hint}; of a released number x, x.item(); of an array, array.tolist(); of a date, "
                '"2020-01-31".',
            )


def refuse_unpacked_releases(*given: object) -> None:
    """Refuse a Series of one number as a constant of a row step, also within lists and mappings."""
    for value in given:
        if isinstance(value, Mapping):
            refuse_unpacked_releases(*value.values())
        elif isinstance(value, list | tuple):
            refuse_unpacked_releases(*value)
        elif isinstance(value, pd.Series) and value.size == 1:
            raise ParameterError(
                "A protected frame takes plain Python values alone as constants (got Series).",
                "released.item(), the number of a release of one.",
            )


@short_tracebacks
class ProtectedColumn(Opaque):
    """A column of a protected frame, or an expression of such columns.

    It holds the expression and no cell. Comparisons and null tests make conditions, which choose records by
    ``private[condition]``; arithmetic makes columns for ``private.assign``. Operands are columns of the same
    frame, or of an earlier one if no step since then has changed them, and plain Python values.

    >>> import pandas as pd, pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=120),))
    >>> private = pdprivacy.protect(pd.DataFrame({"age": [31, 54]}), domain, epsilon=1)
    >>> (private["age"] >= 18) & ~private["age"].isin([20, 21])
    age >= 18 and (not age in [20, 21])
    """

    __slots__ = ("__weakref__", "_node", "_protected")
    _kind = "a protected column"

    _node: ast.expr
    _protected: Facts

    def __init__(self, protected: Facts, node: ast.expr) -> None:
        self._protected = protected
        self._node = node

    @classmethod
    def _named(cls, protected: Facts, name: Hashable) -> ProtectedColumn:
        """The column of this name."""
        label = protected.domain[name].name
        return cls(protected, ast.Name(protected.written.get(label, str(label))))

    def _declared(self) -> Domain:
        """The declaration of the column, or of the frame of an expression."""
        domain = self._protected.domain
        if not isinstance(self._node, ast.Name):
            return domain
        return Domain((domain[self._protected.names.get(self._node.id, self._node.id)],))

    def _syntax(self) -> expressions.Syntax:
        """The expression, to be read against the declaration of its frame."""
        try:
            return expressions.Syntax(ast.unparse(self._node), self._node, self._protected.names)
        except RecursionError:
            raise QueryError("the expression is nested too deeply.") from None

    def __repr__(self) -> str:
        return self._syntax().text

    def _instead_of_array(self) -> str:
        """Return a filter of the protected frame for a condition, as in ``df[condition]``; else a release."""
        if not isinstance(self._node, ast.Name | ast.BinOp):
            return f"a condition filters the protected frame: {self._example_filter()}"
        return super()._instead_of_array()

    def _source_text(self) -> str:
        """The column as a user writes it."""
        return f"private[{quoted(self._declared().names[0])}]"

    def _missing_attribute(self, name: str) -> PrivacyError:
        """The error for a name of pandas; a filter counts a condition, and a proportion is its share."""
        read, text = self._read(), quoted(repr(self))
        instead = None
        if isinstance(self._node, ast.Name):
            others = [column for column in self._protected.domain.columns if column != read[0]]
            if name in ("corr", "cov"):
                instead = EXAMPLES[name].of([*read, *others])
            elif name == "mean" and read[0].kind == "boolean":
                instead = f"private.dp.proportion({quoted(read[0].name)}, epsilon=0.1)"
        elif all(str(column.name).isidentifier() for column in read) and self._is_truth():
            if name == "sum":
                instead = f"private.query({text}).dp.count(epsilon=0.1)"
            elif name == "mean":
                instead = f'private.assign(new={text}).dp.proportion("new", epsilon=0.1)'
        return (
            super()._missing_attribute(name) if instead is None else self._opaque_error(repr(name), instead)
        )

    # ---------------------------------------------------------------- the frame of an expression

    def _is_kept_by(self, protected: Facts) -> bool:
        """Whether a frame is the expression's own, or a later one with the same cells in its columns."""
        if protected is self._protected:
            return True
        return protected.keeps([column.name for column in self._read()], self._protected)

    def _read(self) -> list[Column]:
        """The columns that the expression names."""
        names = self._protected.names
        read = {names.get(node.id, node.id) for node in ast.walk(self._node) if isinstance(node, ast.Name)}
        return [column for column in self._protected.domain.columns if column.name in read]

    def _not_kept_by(self, protected: Facts, instead: str) -> ParameterError:
        """The error for a frame without these cells; ``instead``: a filter of that frame."""
        dropped = [column for column in self._read() if column.name not in protected.domain]
        if dropped and protected.origin is self._protected.origin:
            return ParameterError(
                f"Column {dropped[0].name!r} is of another protected frame: a step dropped or renamed it.",
                f"use it before that step: {example_filter(dropped)}.",
            )
        return ParameterError(
            "The columns belong to another protected frame.",
            f"take them from the frame that is changed: {instead}.",
        )

    def _beside(self, *others: object) -> ProtectedColumn:
        """The expression in the latest of its frame and those of the other operands that keep its cells."""
        latest = self
        for other in others:
            if isinstance(other, ProtectedColumn) and latest._is_kept_by(other._protected):
                latest = other._of(latest._node)
        return latest

    # ---------------------------------------------------------------- parts of an expression

    def _of(self, node: ast.expr) -> ProtectedColumn:
        return ProtectedColumn(self._protected, node)

    def _reader(self, what: str = "filter") -> expressions.ExpressionReader:
        return expressions.ExpressionReader(self._syntax(), self._protected.domain, what)

    def _condition(self, node: ast.expr) -> ProtectedColumn:
        column = self._of(node)
        column._is_condition()
        return column

    def _is_condition(self) -> ast.expr:
        """The node; QueryError where it is no condition."""
        if not isinstance(self._node, ast.BoolOp):  # whose parts are conditions
            self._reader().condition(self._node)
        return self._node

    def _is_truth(self) -> bool:
        """Return whether the expression is a condition."""
        try:
            self._is_condition()
        except PrivacyError:
            return False
        return True

    def _made(self, node: ast.expr) -> ProtectedColumn:
        """The column of a node; QueryError where it is not record by record."""
        column = self._of(node)
        column._reader("expression").node(node)
        return column

    def _operand(self, value: Any) -> ast.expr:
        """A column of the same frame, or of an earlier one, a date or a plain Python value, as a node."""
        if isinstance(value, ProtectedColumn):
            if not value._is_kept_by(self._protected):
                raise value._not_kept_by(self._protected, self._example_filter())
            return value._node
        if type(value) in (datetime.date, datetime.datetime):
            return ast.Constant(str(value))
        if type(value) not in _PLAIN:
            raise ParameterError(
                f"a protected column is combined with plain Python values alone (got {kind(value)}).",
                'a constant such as 18 or "2020-01-31"; of a released number x, x.item().',
            )
        if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
            return ast.UnaryOp(ast.USub(), ast.Constant(-value))
        return ast.Constant(value)

    # ---------------------------------------------------------------- conditions

    __lt__ = _comparison(ast.Lt)
    __le__ = _comparison(ast.LtE)
    __gt__ = _comparison(ast.Gt)
    __ge__ = _comparison(ast.GtE)
    if TYPE_CHECKING:  # pyright takes the types of methods alone in place of those of object

        def __eq__(self, other: object) -> ProtectedColumn: ...  # type: ignore[override]
        def __ne__(self, other: object) -> ProtectedColumn: ...  # type: ignore[override]
    else:
        __eq__ = _comparison(ast.Eq)
        __ne__ = _comparison(ast.NotEq)

    lt, le, gt, ge, eq, ne = __lt__, __le__, __gt__, __ge__, __eq__, __ne__

    __and__ = __rand__ = _boolean(ast.And)
    __or__ = __ror__ = _boolean(ast.Or)

    def __invert__(self) -> ProtectedColumn:
        return self._of(ast.UnaryOp(ast.Not(), self._is_condition()))

    def isin(self, values: Iterable[bool | float | str]) -> ProtectedColumn:
        """Return whether the value is one of these, as ``Series.isin``; False for nulls.

        At most 100,000 values.
        """
        if not isinstance(values, list | tuple | set | frozenset | range):
            raise ParameterError(
                f"'values' must be a list of plain Python values (got {kind(values)}).",
                f"{self._source_text()}.isin([VALUE, ...])",
            )
        constants = items(values, "values", most=MOST_CONSTANTS)
        if isinstance(values, set | frozenset):  # in an order that is the same in every process
            constants = sorted(constants, key=lambda value: (type(value).__name__, repr(value)))
        listed = ast.List(list(map(self._operand, constants)))
        return self._condition(ast.Compare(self._node, [ast.In()], [listed]))

    def between(
        self,
        left: float,
        right: float,
        inclusive: Literal["both", "neither", "left", "right"] = "both",
    ) -> ProtectedColumn:
        """Return whether the value lies between two constants, as ``Series.between``; unknown for nulls."""
        one_of(inclusive, "inclusive", tuple(_ENDS))
        symbols = [symbol() for symbol in _ENDS[inclusive]]
        column = self._beside(left, right)
        nodes = [column._node, column._operand(right)]
        return column._condition(ast.Compare(column._operand(left), symbols, nodes))

    def isna(self) -> ProtectedColumn:
        """Return whether the value is null."""
        return self._condition(ast.Call(ast.Attribute(self._node, "isna"), [], []))

    def notna(self) -> ProtectedColumn:
        """Return whether the value is not null."""
        return self._condition(ast.Call(ast.Attribute(self._node, "notna"), [], []))

    isnull, notnull = isna, notna

    # ---------------------------------------------------------------- arithmetic

    __add__, __radd__ = _arithmetic(ast.Add), _arithmetic(ast.Add, swapped=True)
    __sub__, __rsub__ = _arithmetic(ast.Sub), _arithmetic(ast.Sub, swapped=True)
    __mul__, __rmul__ = _arithmetic(ast.Mult), _arithmetic(ast.Mult, swapped=True)
    __truediv__, __rtruediv__ = _arithmetic(ast.Div), _arithmetic(ast.Div, swapped=True)
    __floordiv__, __rfloordiv__ = _arithmetic(ast.FloorDiv), _arithmetic(ast.FloorDiv, swapped=True)
    __mod__, __rmod__ = _arithmetic(ast.Mod), _arithmetic(ast.Mod, swapped=True)
    __pow__, __rpow__ = _arithmetic(ast.Pow), _arithmetic(ast.Pow, swapped=True)

    add, sub, mul, pow = __add__, __sub__, __mul__, __pow__
    radd, rsub, rmul, rpow = __radd__, __rsub__, __rmul__, __rpow__
    div = truediv = divide = __truediv__
    rdiv = rtruediv = __rtruediv__
    floordiv, rfloordiv, mod, rmod = __floordiv__, __rfloordiv__, __mod__, __rmod__
    subtract, multiply = __sub__, __mul__

    def __neg__(self) -> ProtectedColumn:
        return self._made(ast.UnaryOp(ast.USub(), self._node))

    def __pos__(self) -> ProtectedColumn:
        return self._made(ast.UnaryOp(ast.UAdd(), self._node))

    def __abs__(self) -> ProtectedColumn:
        """Return the absolute values, as ``Series.abs``."""
        return self._made(ast.Call(ast.Name("abs"), [self._node], []))

    abs = __abs__

    def clip(self, lower: float | None = None, upper: float | None = None) -> ProtectedColumn:
        """Clip the values to public bounds, as ``Series.clip``; for ``private.assign``."""
        return self._called("clip", lower=lower, upper=upper)

    def fillna(self, value: bool | float | str) -> ProtectedColumn:
        """Replace nulls by a constant, as ``Series.fillna``; for ``private.assign``."""
        return self._called("fillna", value=value)

    def _called(self, method: str, **constants: object) -> ProtectedColumn:
        operands = {name: self._operand(value) for name, value in constants.items() if value is not None}
        call = ast.Call(
            ast.Attribute(self._node, method),
            [],
            [ast.keyword(name, value) for name, value in operands.items()],
        )
        return self._made(call)

    def round(self, decimals: int = 0) -> ProtectedColumn:
        """Round the values, halves to the even number, as ``Series.round``; for ``private.assign``.

        Without decimals the results are whole numbers.
        """
        node = self._operand(decimals)
        return self._made(
            ast.Call(ast.Name("round"), [self._node, node] if decimals != 0 else [self._node], [])
        )

    def __round__(self, ndigits: int | None = None) -> ProtectedColumn:
        return self.round(0 if ndigits is None else ndigits)

    def __floor__(self) -> ProtectedColumn:
        return self._made(ast.Call(ast.Name("floor"), [self._node], []))

    def __ceil__(self) -> ProtectedColumn:
        return self._made(ast.Call(ast.Name("ceil"), [self._node], []))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> ProtectedColumn:
        """Apply a function of NumPy to columns and constants, such as ``np.log(private["pay"])``."""
        name = ufunc.__name__
        if method != "__call__":
            raise self._opaque_error(f"'np.{name}.{method}'", self._example_call("sum"))
        column = next(value for value in inputs if isinstance(value, ProtectedColumn))._beside(*inputs)
        operands = [column._operand(value) for value in inputs]
        if options:
            raise ParameterError(
                f"'np.{name}' of a protected column takes no {next(iter(options))!r}.",
                f"private.assign(new=np.{name}({self._source_text()}))" if len(inputs) == 1 else None,
            )
        if name in FUNCTIONS:
            return column._made(ast.Call(ast.Name(ALIASES.get(name, name)), operands, []))
        if name not in _UFUNCS:
            raise UnknownNameError(f"'np.{name}' of a protected column is not offered.", FUNCTION_SHAPE)
        return _UFUNCS[name](*inputs)  # type: ignore[no-any-return]

    def __array_function__(self, func: Any, _: Any, args: Any, options: Any) -> Any:
        """Apply a function of NumPy that is a method of the column, such as ``np.round``; refuse others."""
        if func.__name__ == "where" and len(args) == 3:
            return self._selected([args[0]], [args[1]], args[2])
        if func.__name__ == "select":
            return self._selected(*args, **options)
        name = _FUNCTIONS_OF_NUMPY.get(func.__name__)
        if name is None or not args or args[0] is not self:
            raise self._missing_attribute(func.__name__)
        words = {"a_min": "lower", "min": "lower", "a_max": "upper", "max": "upper"} if name == "clip" else {}
        given = {words.get(option, option): value for option, value in options.items() if value is not None}
        constants = [constant for constant in args[1:] if constant is not None or name == "clip"]
        try:
            return getattr(self, name)(*constants, **given)
        except TypeError as error:
            if isinstance(error, PrivacyError):
                raise
        raise ParameterError(
            f"'np.{func.__name__}' of a protected column does not take these arguments.", FUNCTION_SHAPE
        )

    # ---------------------------------------------------------------- one of two values

    def where(
        self, cond: ProtectedColumn | Callable[[ProtectedColumn], ProtectedColumn], other: Any = None
    ) -> ProtectedColumn:
        """Keep the values where a condition is true, as ``Series.where``; ``other`` elsewhere.

        As in pandas, also where the condition is unknown, because a null is compared. The bounds or labels of
        the result hold those of both, the values only as far as the condition lets them.

        cond : a condition, or a function of this column that returns one.
        other : a column, an expression or a constant; by default null.
        """
        return self._chosen(branches.kept_where, self._applied(cond), self._applied(other))

    def mask(
        self, cond: ProtectedColumn | Callable[[ProtectedColumn], ProtectedColumn], other: Any = None
    ) -> ProtectedColumn:
        """Replace the values where a condition is true or unknown, as ``Series.mask``; see `where`.

        In text, ``x if condition else y`` takes the second value where the condition is unknown.
        """
        return self._chosen(branches.kept_unless, self._applied(cond), self._applied(other))

    def case_when(self, caselist: Sequence[tuple[ProtectedColumn, Any]]) -> ProtectedColumn:
        """Replace the values by that of the first condition that is met, as ``Series.case_when``.

        A condition that is unknown counts as met, as there. Each pair is a condition and a column, an
        expression or a constant.
        """
        if (
            not isinstance(caselist, list | tuple)
            or not caselist
            or not all(isinstance(case, tuple) and len(case) == 2 for case in caselist)
        ):
            raise ParameterError(
                f"'caselist' must be a list of pairs (condition, value) (got {kind(caselist)}).",
                f"{self._source_text()}.case_when([({self._source_text()}.notna(), VALUE)])",
            )
        flat = [self._applied(value) for pair in caselist for value in pair]
        return self._chosen(
            lambda default, *nodes: branches.by_cases(
                list(zip(nodes[::2], nodes[1::2], strict=True)), default
            ),
            *flat,
        )

    def _selected(self, condlist: Any, choicelist: Any, default: Any = 0) -> ProtectedColumn:
        """``np.select``: the value of the first condition that is true; see `branches`."""
        if not (isinstance(condlist, list) and isinstance(choicelist, list)):
            raise ParameterError(
                f"'np.select' of protected columns takes two lists (got {kind(condlist)} first).",
                "np.select([CONDITION, ...], [VALUE, ...], VALUE)",
            )
        column = self._beside(*condlist, *choicelist, default)
        conditions, values = (list(map(column._operand, listed)) for listed in (condlist, choicelist))
        if len(conditions) != len(values):
            raise ParameterError("'condlist' and 'choicelist' must have the same length.")
        return column._made(branches.first_true(conditions, values, column._operand(default)))

    def _applied(self, value: Any) -> Any:
        """The result of a function of this column; any other value as it is."""
        return value(self) if is_function(value) else value

    def _chosen(self, build: Callable[..., ast.expr], *values: Any) -> ProtectedColumn:
        column = self._beside(*values)
        return column._made(build(column._node, *map(column._operand, values)))

    def map(self, arg: Mapping[Any, Any], na_action: Literal["ignore"] | None = None) -> ProtectedColumn:
        """Replace declared labels by others, as ``Series.map``; labels without a new one become null.

        ``na_action`` makes no difference: nulls stay null.
        """
        one_of(na_action, "na_action", ("ignore", None))
        return self._made(ast.Call(ast.Attribute(self._node, "map"), [self._dictionary(arg, "arg")], []))

    def replace(self, to_replace: Any, value: Any = None) -> ProtectedColumn:
        """Replace declared labels by others, as ``Series.replace``; other labels stay.

        ``to_replace``: a mapping; or a label or a list of labels, each of which becomes ``value``.
        """
        if value is not None:
            labels = to_replace if isinstance(to_replace, list | tuple) else [to_replace]
            to_replace = dict.fromkeys(filter(has_hash, labels), value)
        node = self._dictionary(to_replace, "to_replace")
        return self._made(ast.Call(ast.Attribute(self._node, "replace"), [node], []))

    def _dictionary(self, mapping: Any, option: str) -> ast.Dict:
        if not isinstance(mapping, Mapping):
            raise ParameterError(
                f"{option!r} must be a mapping from label to label (got {kind(mapping)}): a function may "
                "remember other rows.",
                f"{self._source_text()}.map({{LABEL: LABEL}})",
            )
        return ast.Dict(list(map(self._operand, mapping)), list(map(self._operand, mapping.values())))

    @property
    def dt(self) -> DateFields:
        """Fields of dates, as ``Series.dt``; for ``private.assign``."""
        return DateFields(self)

    @property
    def str(self) -> TextMethods:
        """Methods of texts, as ``Series.str``, applied to each declared label."""
        return TextMethods(self)

    # ---------------------------------------------------------------- refusals

    def __bool__(self) -> NoReturn:
        first = self._declared().columns[0]
        is_number = first.kind in ("integer", "float") and first.timeline is None
        condition = "between(18, 65)" if is_number else "isin([VALUE, ...])"
        raise self._opaque_error(
            "A truth value", f"{self._source_text()}.{condition}; and for conditions a & b, a | b, ~a"
        )

    def __iter__(self) -> NoReturn:
        raise self._opaque_error("Iteration", self._example_call("histogram"))

    def __contains__(self, _: object) -> NoReturn:
        raise self._opaque_error("'in'", f"{self._source_text()}.isin([VALUE, ...]), which makes a condition")

    def __hash__(self) -> int:
        raise self._opaque_error("A hash", f"the label of the column, {quoted(self._declared().names[0])}")


def _relabelled(column: Column) -> str:
    """A recoding of the first declared label."""
    label = (column.categories or ("",))[0]
    return f"other labels by private.recode({quoted(column.name)}, {{{label!r}: 'other'}})"


@short_tracebacks
@dataclass(frozen=True, slots=True, repr=False)
class TextMethods:
    """Methods of texts of a column of labels; labels are public, so each is computed once for each label.

    Methods such as ``contains`` make conditions, and ``upper`` or ``[:3]`` columns for ``private.assign``.

    >>> import pandas as pd, pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("town", "category", categories=("Aa", "Ab", "Ba")),))
    >>> private = pdprivacy.protect(pd.DataFrame({"town": ["Aa", "Ba"]}), domain, epsilon=1)
    >>> private[private["town"].str.startswith("A")].dp.domain["town"].categories
    ('Aa', 'Ab')
    """

    _column: ProtectedColumn

    def __repr__(self) -> str:
        return f"{self._column!r}.str: {', '.join(sorted(TEXT_METHODS))}"

    def __getitem__(self, key: slice) -> ProtectedColumn:
        """The characters of a slice, such as ``[:3]``."""
        column = self._column
        if not isinstance(key, slice):
            raise ParameterError(
                f"'.str[...]' takes a slice (got {kind(key)}).", f"{column._source_text()}.str[:3]"
            )
        ends = [None if end is None else column._operand(end) for end in (key.start, key.stop, key.step)]
        return column._made(ast.Subscript(ast.Attribute(column._node, "str"), ast.Slice(*ends)))

    def __getattr__(self, name: str) -> Callable[..., ProtectedColumn]:
        if name not in TEXT_METHODS:
            if name.startswith("_") or not hasattr(pd.Series.str, name):  # type: ignore[call-overload]
                raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
            raise UnknownNameError(
                f"'.str.{name}' is not offered.",
                _relabelled(self._column._read()[0]),
            )
        column = self._column

        def method(*constants: Any, **options: Any) -> ProtectedColumn:
            for_nulls = options.pop("na", None) if name in PREDICATES else None
            if for_nulls is not None:
                condition = method(*constants, **options)
                is_true = flag(for_nulls, "na")
                return condition | column.isna() if is_true else condition & column.notna()
            keywords = [ast.keyword(option, column._operand(value)) for option, value in options.items()]
            func = ast.Attribute(ast.Attribute(column._node, "str"), name)
            return column._made(ast.Call(func, list(map(column._operand, constants)), keywords))

        return method


@short_tracebacks
@dataclass(frozen=True, slots=True, repr=False)
class DateFields:
    """The fields of a column of dates as columns of whole numbers, in the declared time zone.

    >>> import pandas as pd, pandera.pandas as pa
    >>> when = pa.Column("datetime64[ns]", pa.Check.in_range("2020-01-01", "2021-12-31"), metadata={"dp": {}})
    >>> frame = pd.DataFrame({"when": pd.to_datetime(["2020-02-29", "2021-07-14"])}).astype("datetime64[ns]")
    >>> private = frame.dp.protect(pa.DataFrameSchema({"when": when}), epsilon=1)
    >>> private.assign(year=private["when"].dt.year).dp.domain["year"].labels("count")
    (2020, 2021)
    """

    _column: ProtectedColumn

    def __repr__(self) -> str:
        return f"{self._column!r}.dt: year, {', '.join(FIELDS)}"

    if not TYPE_CHECKING:  # a type checker refuses unknown names itself

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_") or not hasattr(pd.Series.dt, name):
                raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
            column = self._column
            dates = quoted(column._read()[0].name)
            raise UnknownNameError(
                f"{name!r} of dates is not offered.",
                f'periods by private.cut({dates}, freq="M"); fields are year, {", ".join(FIELDS)}',
            )

    def _field(self, name: str) -> ProtectedColumn:
        column = self._column
        node = ast.Attribute(ast.Attribute(column._node, "dt"), name)
        return column._made(node)

    @property
    def year(self) -> ProtectedColumn:
        """The year."""
        return self._field("year")

    @property
    def quarter(self) -> ProtectedColumn:
        """The quarter of the year, 1 to 4."""
        return self._field("quarter")

    @property
    def month(self) -> ProtectedColumn:
        """The month, 1 to 12."""
        return self._field("month")

    @property
    def day(self) -> ProtectedColumn:
        """The day of the month, 1 to 31."""
        return self._field("day")

    @property
    def dayofyear(self) -> ProtectedColumn:
        """The day of the year, 1 to 366."""
        return self._field("dayofyear")

    @property
    def dayofweek(self) -> ProtectedColumn:
        """The day of the week, 0 (Monday) to 6."""
        return self._field("dayofweek")

    weekday = day_of_week = dayofweek
    day_of_year = dayofyear

    def day_name(self, locale: None = None) -> ProtectedColumn:
        """The name of the weekday, in English."""
        return self._name("day_name", locale)

    def month_name(self, locale: None = None) -> ProtectedColumn:
        """The name of the month, in English."""
        return self._name("month_name", locale)

    def _name(self, method: str, locale: None) -> ProtectedColumn:
        column = self._column
        if locale is not None:
            raise ParameterError("'locale' is not offered: names are in English.")
        return column._made(ast.Call(ast.Attribute(ast.Attribute(column._node, "dt"), method), [], []))

    @property
    def hour(self) -> ProtectedColumn:
        """The hour, 0 to 23."""
        return self._field("hour")
