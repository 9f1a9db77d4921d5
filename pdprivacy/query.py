"""A filter in the language of `DataFrame.query`, cut down to what is record by record.

Comparisons of declared columns with constants, joined by ``and``, ``or`` and ``not``: whether a
record passes depends on this record alone, so a filtered frame has the same neighbours as the
whole one. What the filter says about the bounds and categories narrows the declaration.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import date
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api import types

from pdprivacy.domain import Column, Domain
from pdprivacy.errors import DeclarationError, InvalidDataError, ParameterError, QueryError

__all__ = ["Query", "parse"]

_Mask: TypeAlias = npt.NDArray[np.bool_]

_ORDERINGS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SYMBOLS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.In: "in",
    ast.NotIn: "not in",
}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_COMPLEMENT = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_NULL_TESTS = {"isna": False, "isnull": False, "notna": True, "notnull": True}
_SHAPE = "a filter compares declared columns with constants, such as age >= 30 and region == 'south'"


@dataclass(frozen=True, slots=True)
class _Leaf:
    """``name symbol constants``; the symbol is an ordering, ``in`` or ``null``.

    False for a null cell, save ``null``.
    """

    name: str
    symbol: str
    constants: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class _Not:
    part: _Tree


@dataclass(frozen=True, slots=True)
class _All:
    parts: tuple[_Tree, ...]


@dataclass(frozen=True, slots=True)
class _Any:
    parts: tuple[_Tree, ...]


_Tree: TypeAlias = "_Leaf | _Not | _All | _Any"


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
    _tree: _Tree = field(repr=False)
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
        return _evaluate(self._tree, read)


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
    if not isinstance(expression, str):
        raise ParameterError(
            f"'expression' must be a string (got {type(expression).__name__}).",
            'private.dp.query("age >= 30")',
        )
    reader = _Reader(expression, domain)
    try:
        tree = reader.read()
        narrowed = _narrow(tree, False, domain)
    except RecursionError:
        raise QueryError("the filter is nested too deeply.") from None
    if narrowed is None:
        raise QueryError(f"no declared record can meet the filter {expression!r}.")
    columns = [_narrowed_column(domain[name], region) for name, region in narrowed.items()]
    return Query(expression, tuple(reader.columns), tree, domain.replace(*columns))


# ---------------------------------------------------------------- reading


def _scan(text: str) -> tuple[str, str, dict[str, str]]:
    """Python text with backticked names replaced, the same with & and | as words, and the names.

    Strings and comments are passed over unread.
    """
    prefix = "_name"
    while prefix in text:
        prefix += "_"
    names: dict[str, str] = {}
    python: list[str] = []
    words: list[str] = []
    place = 0
    while place < len(text):
        sign = text[place]
        end = place + 1
        piece = word = sign
        if sign in "'\"":
            end = _string_end(text, place)
            piece = word = text[place:end]
        elif sign == "#":
            end = text.find("\n", place) if "\n" in text[place:] else len(text)
            piece = word = text[place:end]
        elif sign == "`":
            close = text.find("`", end)
            if close < 0:
                raise QueryError(f"a backtick is not closed in the filter {text!r}.")
            name = text[end:close]
            known = [key for key, value in names.items() if value == name]
            key = known[0] if known else f"{prefix}{len(names)}_"
            names[key] = name
            piece = word = f" {key} "
            end = close + 1
        elif sign == "@":
            raise QueryError(
                f"the filter {text!r} refers to a variable by '@', whose value may depend on the data.",
                'put the constant into the text: private.dp.query(f"age >= {limit}")',
            )
        elif sign in "&|":
            word = " and " if sign == "&" else " or "
        python.append(piece)
        words.append(word)
        place = end
    return "".join(python).strip(), "".join(words).strip(), names


def _string_end(text: str, place: int) -> int:
    quote = text[place : place + 3]
    if quote not in ("'''", '"""'):
        quote = text[place]
    end = place + len(quote)
    while end < len(text) and not text.startswith(quote, end):
        end += 2 if text[end] == "\\" else 1
    return min(end + len(quote), len(text))


class _Flat(ast.NodeTransformer):
    """One form for ``(a) & (b)`` and ``a and b``, however nested."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.BitAnd | ast.BitOr):
            joint = ast.And() if isinstance(node.op, ast.BitAnd) else ast.Or()
            return self._flatten(ast.BoolOp(joint, [node.left, node.right]))
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        return self._flatten(node)

    def _flatten(self, node: ast.BoolOp) -> ast.BoolOp:
        parts: list[ast.expr] = []
        for part in node.values:
            same = isinstance(part, ast.BoolOp) and type(part.op) is type(node.op)
            parts.extend(part.values if same and isinstance(part, ast.BoolOp) else [part])
        return ast.BoolOp(node.op, parts)


class _Reader:
    """One pass over one expression: syntax tree in, `_Tree` out; every refusal is made here."""

    def __init__(self, text: str, domain: Domain) -> None:
        self.text = text
        self.domain = domain
        self.columns: dict[str, None] = {}
        self.names: dict[str, str] = {}

    def read(self) -> _Tree:
        python, words, self.names = _scan(self.text)
        if not python:
            raise QueryError("the filter is empty.", _SHAPE)
        node = self._syntax(python)
        if words != python:
            # DataFrame.query gives & and | the rank of `and` and `or`, Python a higher one.
            other = self._syntax(words, ambiguous=True)
            if ast.dump(node) != ast.dump(other):
                raise self._ambiguous()
        return self._condition(node)

    def _ambiguous(self) -> QueryError:
        return QueryError(
            f"'&' and '|' bind differently in Python and in DataFrame.query in the filter {self.text!r}.",
            "write 'and' and 'or', or put every comparison in parentheses: (age >= 30) & (age < 50)",
        )

    def _syntax(self, python: str, ambiguous: bool = False) -> ast.expr:
        try:
            body = ast.parse(python, mode="eval").body
        except (SyntaxError, ValueError, MemoryError):
            body = None
        if body is None:
            # Outside the except block: the error of the parser quotes the rewritten text.
            if ambiguous:
                raise self._ambiguous()
            raise QueryError(f"the filter {self.text!r} is not valid syntax.", _SHAPE)
        flat = _Flat().visit(body)
        assert isinstance(flat, ast.expr)
        return flat

    def _show(self, node: ast.AST) -> str:
        text = ast.unparse(node)
        for key, name in self.names.items():
            text = text.replace(key, f"`{name}`")
        return text

    def _condition(self, node: ast.expr) -> _Tree:
        match node:
            case ast.BoolOp(op=ast.And(), values=values):
                return _All(tuple(self._condition(value) for value in values))
            case ast.BoolOp(values=values):
                return _Any(tuple(self._condition(value) for value in values))
            case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
                return _Not(self._condition(operand))
            case ast.Compare():
                return self._comparison(node)
            case ast.Call(
                func=ast.Attribute(value=ast.Name() as owner, attr=attribute), args=[], keywords=[]
            ) if attribute in _NULL_TESTS:
                leaf = _Leaf(str(self._column(owner).name), "null")
                return _Not(leaf) if _NULL_TESTS[attribute] else leaf
            case ast.Name():
                column = self._column(node)
                if column.kind != "boolean":
                    raise QueryError(
                        f"column {column.name!r} alone is not a condition (it is of kind {column.kind!r}).",
                        _SHAPE,
                    )
                return self._leaf(column, "==", (True,))
        raise self._refusal(node)

    def _comparison(self, node: ast.Compare) -> _Tree:
        operands = [node.left, *node.comparators]
        parts = [
            self._pair(left, operator_, right, node)
            for left, operator_, right in zip(operands, node.ops, operands[1:], strict=False)
        ]
        return parts[0] if len(parts) == 1 else _All(tuple(parts))

    def _pair(self, left: ast.expr, operator_: ast.cmpop, right: ast.expr, node: ast.Compare) -> _Tree:
        for side in (left, right):
            if isinstance(side, ast.Constant) and side.value is None:
                raise QueryError(
                    f"{self._show(node)!r} compares with None, which nothing equals.",
                    "write column.isna() or column.notna()",
                )
        symbol = _SYMBOLS.get(type(operator_))
        if symbol is None:
            raise QueryError(
                f"'is' is not a comparison of values, in {self._show(node)!r}.", "write == or !="
            )
        if not isinstance(left, ast.Name) and isinstance(right, ast.Name) and symbol in _FLIPPED:
            left, right, symbol = right, left, _FLIPPED[symbol]
        if not isinstance(left, ast.Name):
            if isinstance(right, ast.Name) and self._is_constant(left):
                raise QueryError(
                    f"the column stands on the left of {symbol!r}, not as in {self._show(node)!r}.",
                    f"write column {symbol} [CONSTANT, ...]",
                )
            for side in (left, right):
                if not self._is_constant(side):
                    raise self._refusal(side)
            raise QueryError(f"{self._show(node)!r} compares constants only.", _SHAPE)
        column = self._column(left)
        if isinstance(right, ast.Name):
            self._column(right)
            raise QueryError(
                f"{self._show(node)!r} compares two columns; only constants narrow the declaration.", _SHAPE
            )
        if not self._is_constant(right):
            raise self._refusal(right)
        listed = isinstance(right, ast.List | ast.Tuple | ast.Set)
        if listed != (symbol in ("in", "not in")) and not (listed and symbol in ("==", "!=")):
            raise QueryError(
                f"{symbol!r} takes {'one constant, not a list' if listed else 'a list of constants'}, "
                f"in {self._show(node)!r}.",
                None if listed else f"write {self._show(left)} {symbol} [{self._show(right)}]",
            )
        elements = right.elts if isinstance(right, ast.List | ast.Tuple | ast.Set) else [right]
        return self._leaf(column, symbol, tuple(self._constant(element) for element in elements))

    def _is_constant(self, node: ast.expr) -> bool:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            return isinstance(node.operand, ast.Constant)
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return all(self._is_constant(element) for element in node.elts)
        return isinstance(node, ast.Constant)

    def _constant(self, node: ast.expr) -> Any:
        value = None
        if isinstance(node, ast.Constant):
            value = node.value
        elif isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            number = node.operand.value
            if isinstance(number, int | float) and not isinstance(number, bool):
                value = -number if isinstance(node.op, ast.USub) else number
        if not isinstance(value, bool | int | float | str):
            raise QueryError(f"{self._show(node)!r} is not a number, a string, True or False.", _SHAPE)
        try:
            finite = isinstance(value, str) or math.isfinite(value)
        except OverflowError:  # an integer beyond the largest float
            finite = False
        if not finite:
            raise QueryError("a constant of the filter is not a finite number.")
        return value

    def _column(self, node: ast.Name) -> Column:
        name = self.names.get(node.id, node.id)
        try:
            column = self.domain[name]
        except DeclarationError as error:
            message, hint = str(error.args[0]).split("\nHint:")[0], error.hint
            refused = QueryError(
                message, f'declare it, {hint}; a constant goes into the text, f"... {{limit}}"'
            )
            column = None
        if column is None:
            raise refused
        if column.role == "identifier":
            raise QueryError(
                f"column {name!r} has the role 'identifier': it is not a condition of a release.",
                "filter by other columns",
            )
        self.columns[name] = None
        return column

    def _leaf(self, column: Column, symbol: str, constants: tuple[Any, ...]) -> _Tree:
        name = str(column.name)
        for value in constants:
            fits = {
                "boolean": isinstance(value, bool),
                "category": True,
            }.get(column.kind, not isinstance(value, bool | str))
            if not fits:
                raise QueryError(
                    f"column {name!r} of kind {column.kind!r} cannot be compared with {value!r}.",
                    "True and False are its constants" if column.kind == "boolean" else None,
                )
        if symbol in _ORDERINGS:
            if column.kind in ("boolean", "category"):
                raise QueryError(
                    f"column {name!r} of kind {column.kind!r} has no order, so {symbol!r} does not apply.",
                    f"write {name} in [LABEL, ...]",
                )
            return _Leaf(name, symbol, constants)
        leaf = _Leaf(name, "in", tuple(_declared_label(column, value) for value in constants))
        return _Not(leaf) if symbol in ("!=", "not in") else leaf

    def _refusal(self, node: ast.expr) -> QueryError:
        shown = self._show(node)
        match node:
            case ast.Call(func=ast.Attribute()):
                return QueryError(f"{shown!r} calls a method, which may look at other rows.", _SHAPE)
            case ast.Call():
                return QueryError(f"{shown!r} calls a function, and a filter has none.", _SHAPE)
            case ast.Attribute():
                return QueryError(f"{shown!r} reads an attribute, and a filter reads columns only.", _SHAPE)
            case ast.Subscript():
                return QueryError(f"{shown!r} reads by position or label, which may be another row.", _SHAPE)
            case ast.BinOp():
                return QueryError(f"{shown!r} is arithmetic; only columns themselves are compared.", _SHAPE)
        return QueryError(f"{shown!r} is not a comparison of a declared column with a constant.", _SHAPE)


def _declared_label(column: Column, value: Any) -> Any:
    """The declared category that a constant means: equal, the value of an Enum, a date as a string."""
    if column.categories is None:
        return value
    for label in column.categories:
        if label == value and isinstance(label, bool) == isinstance(value, bool):
            return label
        if isinstance(label, Enum) and label.value == value:
            return label
        if isinstance(value, str) and isinstance(label, date) and _is_date(value, label):
            return label
    shown = ", ".join(map(repr, column.categories[:10])) + (", ..." if len(column.categories) > 10 else "")
    raise QueryError(f"{value!r} is not a declared category of column {column.name!r} (declared: {shown}).")


def _is_date(text: str, label: Any) -> bool:
    try:
        return bool(pd.Timestamp(text) == pd.Timestamp(label))
    except (ValueError, TypeError):
        return False


# ---------------------------------------------------------------- narrowing


@dataclass(frozen=True, slots=True)
class _Region:
    """What a column may hold: non-null values (between the ends, among the labels) and null, or not."""

    values: bool
    null: bool
    lower: float | int | None = None
    upper: float | int | None = None
    labels: tuple[Any, ...] | None = None

    def both(self, other: _Region) -> _Region:
        lower = max((end for end in (self.lower, other.lower) if end is not None), default=None)
        upper = min((end for end in (self.upper, other.upper) if end is not None), default=None)
        labels = self.labels if other.labels is None else other.labels
        if self.labels is not None and other.labels is not None:
            labels = tuple(label for label in self.labels if label in other.labels)
        values = self.values and other.values
        if (lower is not None and upper is not None and lower > upper) or labels == ():
            values = False
        return _Region(values, self.null and other.null, lower, upper, labels)

    def either(self, other: _Region) -> _Region:
        null = self.null or other.null
        if not (self.values and other.values):
            return replace(self if self.values else other, null=null)
        lower = upper = labels = None
        if self.lower is not None and other.lower is not None:
            lower = min(self.lower, other.lower)
        if self.upper is not None and other.upper is not None:
            upper = max(self.upper, other.upper)
        if self.labels is not None and other.labels is not None:
            labels = self.labels + tuple(label for label in other.labels if label not in self.labels)
        return _Region(True, null, lower, upper, labels)


_Regions: TypeAlias = dict[str, _Region]  # of the columns that are narrowed; the others are as declared


def _narrow(tree: _Tree, negated: bool, domain: Domain) -> _Regions | None:
    """What the records hold for which the tree is true (false, if negated); None if there are none."""
    if isinstance(tree, _Not):
        return _narrow(tree.part, not negated, domain)
    if isinstance(tree, _Leaf):
        region = _leaf_region(tree, negated, domain[tree.name])
        return {tree.name: region} if region.values or region.null else None
    parts = [_narrow(part, negated, domain) for part in tree.parts]
    if isinstance(tree, _All) != negated:
        met: _Regions = {}
        for part in parts:
            if part is None:
                return None
            for name, region in part.items():
                met[name] = met[name].both(region) if name in met else region
                if not (met[name].values or met[name].null):
                    return None
        return met
    possible = [part for part in parts if part is not None]
    if not possible:
        return None
    first, *rest = possible
    return {
        name: _union([region, *(part[name] for part in rest)])
        for name, region in first.items()
        if all(name in part for part in rest)
    }


def _union(regions: Iterable[_Region]) -> _Region:
    first, *rest = regions
    for region in rest:
        first = first.either(region)
    return first


def _leaf_region(leaf: _Leaf, negated: bool, column: Column) -> _Region:
    null = column.nullable and negated != (leaf.symbol == "null")
    declared = _Region(True, null, column.lower, column.upper, column.categories)
    if leaf.symbol == "null":
        return replace(declared, values=negated)
    whole = column.kind == "integer"
    if leaf.symbol in _ORDERINGS:
        symbol = _COMPLEMENT[leaf.symbol] if negated else leaf.symbol
        (constant,) = leaf.constants
        compare = _ORDERINGS[symbol]
        # No declared value is on the right side of the constant if the nearest bound is not.
        nearest = column.lower if symbol in ("<", "<=") else column.upper
        possible = nearest is None or compare(nearest, constant)
        if symbol in ("<", "<="):
            end = (math.ceil(constant) - 1 if symbol == "<" else math.floor(constant)) if whole else constant
            met = _Region(True, null, None, end)
        else:
            end = (math.floor(constant) + 1 if symbol == ">" else math.ceil(constant)) if whole else constant
            met = _Region(True, null, end, None)
        if column.categories is not None:
            met = replace(met, labels=tuple(label for label in column.categories if compare(label, constant)))
        region = declared.both(met)
        return region if possible else replace(region, values=False)
    if negated:
        return _without(declared, leaf.constants, whole, column.kind)
    return _among(declared, leaf.constants, whole, column.kind)


def _among(declared: _Region, constants: tuple[Any, ...], whole: bool, kind: str) -> _Region:
    held = [
        constant
        for constant in dict.fromkeys(constants)
        if kind in ("category", "boolean")
        or (
            (declared.lower is None or constant >= declared.lower)
            and (declared.upper is None or constant <= declared.upper)
            and not (whole and constant != math.floor(constant))
        )
    ]
    if not held:
        return replace(declared, values=False)
    labels = tuple(held) if kind == "category" or declared.labels is not None else None
    if kind == "category":
        return declared.both(_Region(True, declared.null, labels=labels))
    if kind == "boolean":
        return declared.both(_Region(True, declared.null, int(min(held)), int(max(held)), labels))
    return declared.both(_Region(True, declared.null, min(held), max(held), labels))


def _without(declared: _Region, constants: tuple[Any, ...], whole: bool, kind: str) -> _Region:
    if declared.labels is not None:
        labels = tuple(label for label in declared.labels if label not in constants)
        if not labels:
            return replace(declared, values=False, labels=())
        if kind == "boolean":
            return replace(declared, lower=int(min(labels)), upper=int(max(labels)), labels=labels)
        return replace(declared, labels=labels)
    lower, upper = declared.lower, declared.upper
    if whole:
        while lower is not None and lower in constants and (upper is None or lower <= upper):
            lower += 1
        while upper is not None and upper in constants and (lower is None or lower <= upper):
            upper -= 1
        values = lower is None or upper is None or lower <= upper
    else:
        values = lower is None or lower != upper or lower not in constants
    return replace(declared, values=values, lower=lower, upper=upper)


def _narrowed_column(column: Column, region: _Region) -> Column:
    if not region.values:  # nulls only, which a column has no words for
        return column
    if column.kind == "boolean":
        return replace(
            column, nullable=region.null, lower=None, upper=None, categories=_ordered(column, region)
        )
    lower = region.lower if column.kind == "float" or region.lower is None else int(region.lower)
    upper = region.upper if column.kind == "float" or region.upper is None else int(region.upper)
    return replace(
        column,
        nullable=region.null,
        lower=lower,
        upper=upper,
        categories=_ordered(column, region),
        bins=_cropped(column, lower, upper),
    )


def _ordered(column: Column, region: _Region) -> tuple[Any, ...] | None:
    """The labels in declared order, or in the order of the filter where none are declared."""
    if column.categories is None or region.labels is None:
        return region.labels
    return tuple(label for label in column.categories if label in region.labels)


def _cropped(
    column: Column, lower: float | int | None, upper: float | int | None
) -> tuple[float, ...] | None:
    bins = column.bins
    if bins is None or (lower == column.lower and upper == column.upper):
        return bins
    first = bins[0] if lower is None or lower == column.lower else float(lower)
    last = bins[-1] if upper is None or upper == column.upper else float(upper)
    if first == last:  # one value; its bin stays whole, as a bin of no width is none
        place = min(int(np.searchsorted(bins, first, side="right")), len(bins) - 1)
        return bins[place - 1 : place + 1]
    return (first, *(edge for edge in bins if first < edge < last), last)


# ---------------------------------------------------------------- evaluation


def _evaluate(tree: _Tree, read: dict[str, pd.Series[Any]]) -> _Mask:
    if isinstance(tree, _Not):
        return ~_evaluate(tree.part, read)
    if isinstance(tree, _Leaf):
        values = read[tree.name]
        if tree.symbol == "null":
            return _nulls(values)
        if tree.symbol == "in":
            return _equal(values, tree.constants)
        return _ordering(values, tree.symbol, tree.constants[0])
    join = np.logical_and if isinstance(tree, _All) else np.logical_or
    first, *rest = tree.parts
    met = _evaluate(first, read)
    for part in rest:
        met = join(met, _evaluate(part, read))
    return met


def _nulls(values: pd.Series[Any]) -> _Mask:
    null = values.isna().to_numpy(dtype=bool)
    if types.is_float_dtype(values.dtype) and types.is_extension_array_dtype(values.dtype):
        # Arrow and masked columns may hold NaN beside NA.
        null = null | np.isnan(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return null


def _by_category(values: pd.Series[Any], compare: Callable[[pd.Series[Any]], _Mask]) -> _Mask:
    """The comparison made once per category of the dtype; a null has the code -1, the last place."""
    of_categories = compare(pd.Series(values.cat.categories))
    return np.append(of_categories, False)[values.cat.codes.to_numpy()]


def _plain(result: Any) -> _Mask:
    """A pandas truth column as an array; nulls are False."""
    if isinstance(result.dtype, np.dtype):
        return np.asarray(result, dtype=bool)
    return np.asarray(result.to_numpy(dtype=bool, na_value=False), dtype=bool)


def _cell_by_cell(values: pd.Series[Any], met: Callable[[Any], Any]) -> _Mask:
    """The slow path, for cells that pandas refuses to compare as a whole: such a cell is False."""

    def outcome(cell: Any) -> bool:
        try:
            return bool(met(cell))
        except Exception:
            return False

    null = _nulls(values)
    cells = values.to_numpy(dtype=object)
    return np.fromiter(
        (not missing and outcome(cell) for cell, missing in zip(cells, null, strict=True)),
        dtype=bool,
        count=len(cells),
    )


def _ordering(values: pd.Series[Any], symbol: str, constant: float) -> _Mask:
    if isinstance(values.dtype, pd.CategoricalDtype):
        return _by_category(values, lambda categories: _ordering(categories, symbol, constant))
    if types.is_integer_dtype(values.dtype) and constant != int(constant):
        # Exact for integers beyond 2**53, which a comparison with a float would round.
        constant = math.floor(constant) if symbol in ("<", "<=") else math.ceil(constant)
        symbol = "<=" if symbol in ("<", "<=") else ">="
    elif types.is_integer_dtype(values.dtype):
        constant = int(constant)
    compare = _ORDERINGS[symbol]
    try:
        return _plain(compare(values, constant))
    except Exception:
        return _cell_by_cell(values, lambda cell: compare(cell, constant))


def _equal(values: pd.Series[Any], constants: tuple[Any, ...]) -> _Mask:
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _by_category(values, lambda categories: _equal(categories, constants))
    if types.is_integer_dtype(dtype):
        limits = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
        constants = tuple(
            int(constant)
            for constant in constants
            if isinstance(constant, int | float)
            and constant == math.floor(constant)
            and limits.min <= constant <= limits.max
        )
    met = np.zeros(len(values), dtype=bool)
    try:
        if types.is_object_dtype(dtype):
            return _plain(values.isin(np.fromiter(constants, dtype=object)))
        if len(constants) > 8 and types.is_integer_dtype(dtype):
            # Of the dtype of the column: large integers take no detour over floats.
            return _plain(values.isin(np.array(constants, dtype=limits.dtype)))
        if len(constants) > 8 and types.is_float_dtype(dtype):
            # As numpy numbers, since Arrow tells 0.0 from -0.0 here; of the width that == compares in.
            arrow = isinstance(dtype, pd.ArrowDtype)
            width: Any = np.float64 if arrow else getattr(dtype, "numpy_dtype", dtype)
            numbers = pd.Series(values.to_numpy(dtype=width, na_value=np.nan))
            return _plain(numbers.isin(np.array(constants, dtype=width)))
        if len(constants) > 8 and types.is_string_dtype(dtype):
            return _plain(values.isin(list(constants)))
        for constant in constants:
            met |= _plain(values == constant)
    except Exception:
        return _cell_by_cell(values, lambda cell: any(bool(cell == constant) for constant in constants))
    return met
