"""The text of a filter as a tree; everything that is not record by record is refused here."""

from __future__ import annotations

import ast
import math
from datetime import date
from enum import Enum
from typing import Any

import pandas as pd

from pdprivacy.domain import Column
from pdprivacy.errors import DeclarationError, QueryError
from pdprivacy.hints import nearest
from pdprivacy.query.tree import ORDERINGS, All, Columns, Either, Leaf, Not, Tree

__all__ = ["AGGREGATES", "SHAPE", "Reader", "scan"]

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
_NULL_TESTS = {"isna": False, "isnull": False, "notna": True, "notnull": True}
AGGREGATES = frozenset(
    [
        "agg",
        "aggregate",
        "all",
        "any",
        "autocorr",
        "corr",
        "count",
        "cov",
        "describe",
        "first",
        "idxmax",
        "idxmin",
        "kurt",
        "kurtosis",
        "last",
        "max",
        "mean",
        "median",
        "min",
        "mode",
        "nlargest",
        "nsmallest",
        "nunique",
        "prod",
        "product",
        "quantile",
        "sem",
        "size",
        "skew",
        "std",
        "sum",
        "value_counts",
        "var",
    ]
)
"""Methods of a column that read all of its rows."""

SHAPE = "a filter compares declared columns with constants, such as age >= 30 and region == 'south'"


def scan(text: str, what: str = "filter") -> tuple[str, str, dict[str, str]]:
    """Python text with backticked names replaced, the same with & and | as words, and the names.

    Strings and comments are passed over unread.
    """
    prefix = "_name"
    while prefix in text:
        prefix += "_"
    keys: dict[str, str] = {}
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
                raise QueryError(f"a backtick is not closed in the {what} {text!r}.")
            name = text[end:close]
            key = keys.setdefault(name, f"{prefix}{len(keys)}_")
            piece = word = f" {key} "
            end = close + 1
        elif sign == "@":
            raise QueryError(
                f"the {what} {text!r} refers to a variable by '@', whose value may depend on the data.",
                'put the constant into the text: private.dp.query(f"age >= {limit}")',
            )
        elif sign in "&|":
            word = " and " if sign == "&" else " or "
        python.append(piece)
        words.append(word)
        place = end
    return "".join(python).strip(), "".join(words).strip(), {key: name for name, key in keys.items()}


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


class Reader:
    """One pass over one expression: syntax tree in, `Tree` out; every refusal is made here."""

    def __init__(self, text: str, domain: Columns, what: str = "filter", shape: str = SHAPE) -> None:
        self.text = text
        self.what = what
        self.shape = shape
        self.domain = domain
        self.columns: dict[str, None] = {}
        self.names: dict[str, str] = {}
        self._labels: dict[str, _Labels] = {}

    def read(self) -> Tree:
        """The tree; QueryError for what is none."""
        return self.condition(self.syntax())

    def syntax(self) -> ast.expr:
        """What Python reads, where `DataFrame.query` reads the same."""
        python, words, self.names = scan(self.text, self.what)
        if not python:
            raise QueryError(f"the {self.what} is empty.", self.shape)
        node = self._parsed(python)
        if words != python:
            # DataFrame.query gives & and | the rank of `and` and `or`, Python a higher one.
            other = self._parsed(words, ambiguous=True)
            if ast.dump(node) != ast.dump(other):
                raise self._ambiguous()
        return node

    def _ambiguous(self) -> QueryError:
        return QueryError(
            f"'&' and '|' bind differently in Python and in DataFrame.query "
            f"in the {self.what} {self.text!r}.",
            "write 'and' and 'or', or put every comparison in parentheses: (age >= 30) & (age < 50)",
        )

    def _parsed(self, python: str, ambiguous: bool = False) -> ast.expr:
        try:
            body = ast.parse(python, mode="eval").body
        except (SyntaxError, ValueError, MemoryError):
            body = None
        if body is None:
            # Outside the except block: the error of the parser quotes the rewritten text.
            if ambiguous:
                raise self._ambiguous()
            raise QueryError(f"the {self.what} {self.text!r} is not valid syntax.", self.shape)
        flat = _Flat().visit(body)
        assert isinstance(flat, ast.expr)
        return flat

    def show(self, node: ast.AST) -> str:
        """A part of the text, with names as they were written."""
        text = ast.unparse(node)
        for key, name in self.names.items():
            text = text.replace(key, f"`{name}`")
        return text

    def condition(self, node: ast.expr) -> Tree:
        """The tree of a condition; QueryError for what is none."""
        match node:
            case ast.BoolOp(op=ast.And(), values=values):
                return All(tuple(self.condition(value) for value in values))
            case ast.BoolOp(values=values):
                return Either(tuple(self.condition(value) for value in values))
            case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
                return Not(self.condition(operand))
            case ast.Compare():
                return self._comparison(node)
            case ast.Call(
                func=ast.Attribute(value=ast.Name() as owner, attr=attribute), args=[], keywords=[]
            ) if attribute in _NULL_TESTS:
                leaf = Leaf(str(self.column(owner).name), "null")
                return Not(leaf) if _NULL_TESTS[attribute] else leaf
            case ast.Name():
                column = self.column(node)
                if column.kind != "boolean":
                    raise QueryError(
                        f"column {column.name!r} alone is not a condition (it is of kind {column.kind!r}).",
                        SHAPE,
                    )
                return self._leaf(column, "==", (True,))
        raise self._refusal(node)

    def _comparison(self, node: ast.Compare) -> Tree:
        operands = [node.left, *node.comparators]
        parts = [
            self._pair(left, operator_, right, node)
            for left, operator_, right in zip(operands, node.ops, operands[1:], strict=False)
        ]
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _pair(self, left: ast.expr, operator_: ast.cmpop, right: ast.expr, node: ast.Compare) -> Tree:
        for side in (left, right):
            if isinstance(side, ast.Constant) and side.value is None:
                raise QueryError(
                    f"{self.show(node)!r} compares with None, which nothing equals.",
                    "write column.isna() or column.notna()",
                )
        symbol = _SYMBOLS.get(type(operator_))
        if symbol is None:
            raise QueryError(f"'is' is not a comparison of values, in {self.show(node)!r}.", "write == or !=")
        if not isinstance(left, ast.Name) and isinstance(right, ast.Name) and symbol in _FLIPPED:
            left, right, symbol = right, left, _FLIPPED[symbol]
        if not isinstance(left, ast.Name):
            if isinstance(right, ast.Name) and self._is_constant(left):
                raise QueryError(
                    f"the column stands on the left of {symbol!r}, not as in {self.show(node)!r}.",
                    f"write column {symbol} [CONSTANT, ...]",
                )
            for side in (left, right):
                if not self._is_constant(side):
                    raise self._refusal(side)
            raise QueryError(f"{self.show(node)!r} compares constants only.", SHAPE)
        column = self.column(left)
        if isinstance(right, ast.Name):
            self.column(right)
            raise QueryError(
                f"{self.show(node)!r} compares two columns; only constants narrow the declaration.", SHAPE
            )
        if not self._is_constant(right):
            raise self._refusal(right)
        listed = isinstance(right, ast.List | ast.Tuple | ast.Set)
        if listed != (symbol in ("in", "not in")) and not (listed and symbol in ("==", "!=")):
            raise QueryError(
                f"{symbol!r} takes {'one constant, not a list' if listed else 'a list of constants'}, "
                f"in {self.show(node)!r}.",
                None if listed else f"write {self.show(left)} {symbol} [{self.show(right)}]",
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
            raise QueryError(f"{self.show(node)!r} is not a number, a string, True or False.", SHAPE)
        try:
            finite = isinstance(value, str) or math.isfinite(value)
        except OverflowError:  # an integer beyond the largest float
            finite = False
        if not finite:
            raise QueryError(f"a constant of the {self.what} is not a finite number.")
        return value

    def column(self, node: ast.Name) -> Column:
        """The declared column of a name; QueryError where there is none, or it is an identifier."""
        name = self.names.get(node.id, node.id)
        try:
            column = self.domain[name]
        except DeclarationError as error:
            refused = self._undeclared(name, error)
            column = None
        if column is None:
            raise refused
        if column.role == "identifier":
            raise QueryError(
                f"column {name!r} has the role 'identifier': nothing is released by it.",
                "filter by other columns",
            )
        self.columns[name] = None
        return column

    def _undeclared(self, name: str, error: DeclarationError) -> QueryError:
        others = [label for label in self.domain.names if not isinstance(label, str)]
        message, hint = str(error.args[0]).split("\nHint:")[0], error.hint
        if not others:
            return QueryError(message, f'declare it, {hint}; a constant goes into the text, f"... {{limit}}"')
        written = name.replace(" ", "")
        meant = [label for label in others if written in (repr(label).replace(" ", ""), str(label))]
        if meant:
            message = f"the label of column {meant[0]!r} is no string, and a {self.what} names strings only."
        return QueryError(
            message,
            f"only columns with strings as labels can be named in a {self.what}; rename the others before "
            "df.dp.protect(...): df.columns = [...]",
        )

    def _leaf(self, column: Column, symbol: str, constants: tuple[Any, ...]) -> Tree:
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
        if symbol in ORDERINGS:
            if column.kind in ("boolean", "category"):
                raise QueryError(
                    f"column {name!r} of kind {column.kind!r} has no order, so {symbol!r} does not apply.",
                    f"write {name} in [LABEL, ...]",
                )
            return Leaf(name, symbol, constants)
        if column.categories is not None:
            if name not in self._labels:
                self._labels[name] = _Labels(column, column.categories)
            constants = tuple(map(self._labels[name].meant, constants))
        leaf = Leaf(name, "in", constants)
        return Not(leaf) if symbol in ("!=", "not in") else leaf

    def _refusal(self, node: ast.expr) -> QueryError:
        shown = self.show(node)
        aggregate = self.aggregate(node)
        if aggregate is not None:
            return QueryError(
                f"{aggregate!r} calls a method, which may look at other rows: a filter against an aggregate "
                "has infinite sensitivity, because one record may change which others pass.",
                "a filter takes constants: a declared bound, or a number that was released before, "
                'f"... {limit}"',
            )
        match node:
            case ast.Call(func=ast.Attribute()):
                return QueryError(f"{shown!r} calls a method, which may look at other rows.", SHAPE)
            case ast.Call():
                return QueryError(f"{shown!r} calls a function, and a filter has none.", SHAPE)
            case ast.Attribute():
                return QueryError(f"{shown!r} reads an attribute, and a filter reads columns only.", SHAPE)
            case ast.Subscript():
                return QueryError(f"{shown!r} reads by position or label, which may be another row.", SHAPE)
            case ast.BinOp():
                return QueryError(
                    f"{shown!r} is arithmetic; only columns themselves are compared.",
                    f"{SHAPE}; arithmetic makes a column first, private.dp.assign(new={shown!r})",
                )
        return QueryError(f"{shown!r} is not a comparison of a declared column with a constant.", SHAPE)

    def aggregate(self, node: ast.expr) -> str | None:
        """The part of an expression that is an aggregate of all rows, None where it holds none."""
        for part in ast.walk(node):
            match part:
                case ast.Call(func=ast.Attribute(attr=method)) if method in AGGREGATES:
                    return self.show(part)
        return None


class _Labels:
    """The declared categories of a column, to be found by the constants that mean them.

    A constant means the first of those that equal it, are an Enum of this value, or are this date.
    """

    def __init__(self, column: Column, categories: tuple[Any, ...]) -> None:
        self.column = column
        self.categories = categories
        # True equals 1, and they are different labels
        self.equal = {(isinstance(label, bool), label): place for place, label in enumerate(categories)}
        self.values: dict[Any, int] = {}
        self.dates: dict[pd.Timestamp, int] = {}
        for place, label in enumerate(categories):
            if isinstance(label, Enum) and isinstance(label.value, bool | int | float | str):
                self.values.setdefault(label.value, place)
            if isinstance(label, date) and (day := _timestamp(label)) is not None:
                self.dates.setdefault(day, place)

    def meant(self, value: Any) -> Any:
        """The label; QueryError where none is meant."""
        places = [self.equal.get((isinstance(value, bool), value)), self.values.get(value)]
        if self.dates and isinstance(value, str) and (day := _timestamp(value)) is not None:
            places.append(self.dates.get(day))
        place = min((place for place in places if place is not None), default=None)
        if place is not None:
            return self.categories[place]
        shown = ", ".join(map(repr, self.categories[:10])) + (", ..." if len(self.categories) > 10 else "")
        close = nearest(value, self.categories)
        raise QueryError(
            f"{value!r} is not a declared category of column {self.column.name!r} (declared: {shown}).",
            f"one of these, such as {self.categories[0] if close is None else close!r}",
        )


def _timestamp(value: Any) -> pd.Timestamp | None:
    try:
        return pd.Timestamp(value)
    except (ValueError, TypeError):
        return None
