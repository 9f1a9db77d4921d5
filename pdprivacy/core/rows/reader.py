"""The reader of expressions: their text as a syntax tree, and this tree as nodes, conditions and arithmetic.

The syntax is the one that both Python and `DataFrame.query` read. Whatever is not record by record is refused
here.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from pdprivacy.checks import finite
from pdprivacy.core.rows import arithmetic, functions
from pdprivacy.core.rows.arithmetic import OPERATIONS, Term
from pdprivacy.core.rows.branches import branches_of, chosen
from pdprivacy.core.rows.cells import as_compared
from pdprivacy.core.rows.conditions import (
    ORDERINGS,
    BooleanOperation,
    Comparison,
    Condition,
    DeclaredLabels,
    Negation,
    outcomes,
)
from pdprivacy.core.rows.functions import ALIASES, ARGUMENTS, FUNCTIONS, MOST_DIGITS
from pdprivacy.core.rows.label_mappings import (
    PREDICATES,
    TEXT_METHODS,
    date_names,
    labels_that,
    mapped_labels,
    texts_of_labels,
)
from pdprivacy.core.rows.nodes import Node, clipped, date_field, filled, holding
from pdprivacy.core.rows.regions import bits
from pdprivacy.declaration.domain import Column, Domain, undeclared
from pdprivacy.errors import ParameterError, QueryError


@dataclass(frozen=True, slots=True)
class Syntax:
    """A syntax tree; ``names``: the labels of columns that stand in it under other names.

    ``placeholders``: whether these names replace names in backticks.
    """

    text: str
    node: ast.expr
    names: Mapping[str, Hashable]
    placeholders: bool = False

    def show(self, node: ast.AST) -> str:
        """A part of the expression, with names as they were written."""
        text = ast.unparse(node)
        for key, name in self.names.items() if self.placeholders else ():
            text = text.replace(key, f"`{name}`")
        return text


def read_syntax(text: str, subject: str, shape: str) -> Syntax:
    """Parse an expression; ``subject`` and ``shape`` name it and its grammar in errors.

    Raises
    ------
    QueryError : no valid syntax, a variable, or operators that `DataFrame.query` ranks otherwise.
    """
    python, words, names = _scan(text, subject)
    if not python:
        raise QueryError(f"the {subject} is empty.", shape)
    node = _parsed(python)
    if node is None:
        raise QueryError(f"the {subject} {text!r} is not valid syntax.", shape)
    if words != python:
        # DataFrame.query gives & and | the rank of `and` and `or`, Python a higher one.
        other = _parsed(words)
        if other is None or ast.dump(node) != ast.dump(other):
            raise QueryError(
                f"'&' and '|' bind differently in Python and in DataFrame.query in the {subject} {text!r}.",
                "write 'and' and 'or', or put every comparison in parentheses: (...) & (...)",
            )
    return Syntax(text, node, names, placeholders=True)


def _parsed(python: str) -> ast.expr | None:
    """The syntax tree, None for invalid syntax; the error of the parser quotes the rewritten text."""
    try:
        body = ast.parse(python, mode="eval").body
    except (SyntaxError, ValueError, MemoryError):
        return None
    flat: ast.expr = _Flat().visit(body)
    return flat


PASSED_OVER = (
    r"""(?P<quote>'{3}|"{3}|'|")(?:\\.|(?!(?P=quote)).)*(?:(?P=quote)|\Z)"""
    r"""|\#[^\n]*|`(?P<name>[^`]*)(?P<close>`?)"""
)
"""Strings and comments, which are passed over unread, and names in backticks."""

_PIECES = re.compile(PASSED_OVER + "|[@&|]", re.DOTALL)


def _scan(text: str, subject: str) -> tuple[str, str, dict[str, str]]:
    """Python text with backticked names replaced, the same with & and | as words, and the names."""
    prefix = "_name"
    while prefix in text:
        prefix += "_"
    keys: dict[str, str] = {}

    def piece(match: re.Match[str], joints: Mapping[str, str]) -> str:
        if match["name"] is not None:
            if not match["close"]:
                raise QueryError(f"a backtick is not closed in the {subject} {text!r}.")
            return f" {keys.setdefault(match['name'], f'{prefix}{len(keys)}_')} "
        if match[0] == "@":
            raise QueryError(
                f"the {subject} {text!r} refers to a variable by '@', whose value may depend on the data.",
                "put the constant into the text: f" + repr(re.sub(r"@(\w+)", r"{\1}", text)),
            )
        return joints.get(match[0], match[0])

    python = _PIECES.sub(lambda match: piece(match, {}), text)
    words = _PIECES.sub(lambda match: piece(match, {"&": " and ", "|": " or "}), text)
    return python.strip(), words.strip(), {key: name for name, key in keys.items()}


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


# ---------------------------------------------------------------- conditions and arithmetic

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
NULL_TESTS = {"isna": False, "isnull": False, "notna": True, "notnull": True}
AGGREGATES = frozenset((
    "agg", "aggregate", "all", "any", "autocorr", "corr", "count", "cov", "describe", "first",
    "idxmax", "idxmin", "kurt", "kurtosis", "last", "max", "mean", "median", "min", "mode",
    "nlargest", "nsmallest", "nunique", "prod", "product", "quantile", "sem", "size", "skew",
    "std", "sum", "value_counts", "var",
))  # fmt: skip
"""Methods of a column that read all of its rows."""

SHAPE = "a filter compares declared columns, or arithmetic of them, with constants"

ARITHMETIC_SHAPE = (
    "an expression is arithmetic of declared columns and constants (+ - * / // % **, log(x)), a condition, "
    "or x if condition else y"
)

FUNCTION_SHAPE = f"functions are {', '.join(f'{name}({ARGUMENTS[name]})' for name in sorted(ARGUMENTS))}"

MOST_EXPONENT = 1000

METHODS = {"clip": ("lower", "upper"), "fillna": ("value",)}
"""Methods of a column or of arithmetic, and the constants that they take."""


class ExpressionReader:
    """One pass over one expression: from its syntax to a `Node`, a `Condition` or a `Term`.

    ``what``: the name of the expression in errors. ``columns``: those that were read so far, in order.
    """

    def __init__(self, syntax: Syntax, domain: Domain, what: str = "filter") -> None:
        self.what = what
        self.domain = domain
        self.columns: dict[Hashable, None] = {}
        self.show = syntax.show
        self._names = syntax.names

    def node(self, syntax: ast.expr) -> Node:
        """The node of a syntax tree; QueryError for anything that is not record by record."""
        if (node := self._cells(syntax)) is not None:
            return node
        return arithmetic.result(self.term(syntax), self.show(syntax), tuple(self.columns))

    def _cells(self, syntax: ast.expr) -> Node | None:
        """The node of a column, of what is made of one, or of a condition; None for arithmetic."""
        match syntax:
            case ast.Name():
                return Node.of(self.column(syntax))
            case ast.Attribute(value=ast.Attribute(value=owner, attr="dt"), attr=field):
                return date_field(self.node(owner), field)
            case ast.Call(func=ast.Attribute(value=owner, attr=method)) if method in METHODS:
                return self._clipped_or_filled(self.node(owner), method, self.arguments(syntax))
            case ast.Call(
                func=ast.Attribute(value=owner, attr="map" | "replace" as method), args=[ast.Dict() as labels]
            ) if not syntax.keywords:
                return mapped_labels(self.node(owner), self._mapping(labels), others_null=method == "map")
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Attribute(value=owner, attr="dt"), attr="day_name" | "month_name" as name
                ),
                args=[],
                keywords=[],
            ):
                return date_names(self.node(owner), name)
            case ast.Call(func=ast.Attribute(value=ast.Attribute(value=owner, attr="str"), attr=method)) if (
                method in TEXT_METHODS and method not in PREDICATES
            ):
                return texts_of_labels(self.node(owner), method, *self._text_arguments(syntax))
            case ast.Subscript(value=ast.Attribute(value=owner, attr="str"), slice=ast.Slice() as part):
                ends = (self._end(end) for end in (part.lower, part.upper, part.step))
                return texts_of_labels(self.node(owner), "slice", tuple(ends), {})
            case ast.IfExp(test=test, body=first, orelse=second):
                return chosen(
                    self.condition(test), self._branch(first), self._branch(second), self.show(syntax)
                )
            case ast.Call(func=ast.Attribute(value=owner, attr="where" | "mask" | "case_when" as method)):
                return self.node(branches_of(owner, method, syntax, self.show))
            case (
                ast.Compare()
                | ast.BoolOp()
                | ast.UnaryOp(op=ast.Not() | ast.Invert())
                | ast.Call(
                    func=ast.Attribute(attr="isna" | "isnull" | "notna" | "notnull" | "isin" | "between")
                    | ast.Attribute(value=ast.Attribute(attr="str"))
                )
            ):
                return outcomes(self.condition(syntax), self.show(syntax))
        return None

    def _branch(self, node: ast.expr) -> Any:
        """A value of a conditional expression: a constant, None for a null, or a node."""
        if isinstance(node, ast.Constant) or self._is_constant(node):
            return self._constant_or_none(node)
        return self.node(node)

    def _clipped_or_filled(self, node: Node, method: str, constants: dict[str, Any]) -> Node:
        """A node after ``clip`` or ``fillna``, of a kind that holds the constants."""
        wide = functools.reduce(holding, constants.values(), node)
        if method == "clip":
            return clipped(wide, **constants)
        made = filled(wide, **constants)
        return made if node.column.nullable else node

    def condition(self, node: ast.expr) -> Condition:
        """The condition of a syntax tree; QueryError for anything else."""
        match node:
            case ast.BoolOp(op=joint, values=values):
                return BooleanOperation(tuple(map(self.condition, values)), every=isinstance(joint, ast.And))
            case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
                return Negation(self.condition(operand))
            case ast.Compare():
                return self._comparison(node)
            case ast.Call(func=ast.Attribute(attr="isin" | "between")):
                return self._comparison(self._compared(node))
            case ast.Call(func=ast.Attribute(value=owner, attr=attribute), args=[], keywords=[]) if (
                attribute in NULL_TESTS
            ):
                null = Comparison(self.node(owner), "null")
                return Negation(null) if NULL_TESTS[attribute] else null
            case ast.Call(func=ast.Attribute(value=ast.Attribute(value=owner, attr="str"), attr=method)) if (
                method in PREDICATES
            ):
                texts = self.node(owner)
                met, positions = labels_that(texts, method, *self._text_arguments(node))
                return Comparison(texts, "==", met, bits(positions))
            case (
                ast.Name()
                | ast.IfExp()
                | ast.Call(func=ast.Attribute(attr="clip" | "fillna" | "map" | "replace"))
                | ast.Call(func=ast.Attribute(attr="where" | "mask" | "case_when"))
            ):
                truth = self.node(node)
                name, kind = truth.column.name, truth.column.kind
                if kind != "boolean":
                    reason = f"column {name!r} alone is not a condition (it is of kind {kind!r})."
                    raise QueryError(reason, SHAPE)
                return self._leaf(truth, "==", (True,))
        raise self._refusal(node)

    def _comparison(self, node: ast.Compare) -> Condition:
        operands = [node.left, *node.comparators]
        parts = [
            self._pair(left, operator_, right, node)
            for left, operator_, right in zip(operands, node.ops, operands[1:], strict=False)
        ]
        return parts[0] if len(parts) == 1 else BooleanOperation(tuple(parts), every=True)

    def _compared(self, node: ast.Call) -> ast.Compare:
        """The comparison that a call of ``isin`` or ``between`` stands for."""
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="isin"), args=[listed], keywords=[]):
                return ast.Compare(owner, [ast.In()], [listed])
            case ast.Call(func=ast.Attribute(value=owner, attr="between"), args=[left, right], keywords=[]):
                return ast.Compare(left, [ast.LtE(), ast.LtE()], [owner, right])
        raise QueryError(
            f"{self.show(node)!r} has other arguments than column.isin([CONSTANT, ...]) and "
            "column.between(LOWER, UPPER).",
            SHAPE,
        )

    def _pair(self, left: ast.expr, operator_: ast.cmpop, right: ast.expr, node: ast.Compare) -> Condition:
        for side in (left, right):
            if isinstance(side, ast.Constant) and side.value is None:
                raise QueryError(
                    f"{self.show(node)!r} compares with None, which nothing equals.",
                    "write column.isna() or column.notna()",
                )
        if (symbol := _SYMBOLS.get(type(operator_))) is None:
            raise QueryError(f"'is' is not a comparison of values, in {self.show(node)!r}.", "write == or !=")
        if self._is_constant(left) and symbol in _FLIPPED:
            left, right, symbol = right, left, _FLIPPED[symbol]
        if self._is_constant(left):
            if self._is_constant(right):
                raise QueryError(f"{self.show(node)!r} compares constants only.", SHAPE)
            raise QueryError(
                f"the column stands on the left of {symbol!r}, not as in {self.show(node)!r}.",
                f"write column {symbol} [CONSTANT, ...]",
            )
        if not self._is_constant(right):
            if symbol not in _FLIPPED:
                raise self._refusal(right)
            # numbers are in the order that their difference has to zero, unless whole numbers become doubles
            whole, left = self.term(left).whole and self.term(right).whole, ast.BinOp(left, ast.Sub(), right)
            if whole and not self.term(left).whole:
                raise QueryError(f"{self.show(node)!r} compares whole numbers more than 64 bits apart.")
            right = ast.Constant(0)
        listed = isinstance(right, ast.List | ast.Tuple | ast.Set)
        if listed != (symbol in ("in", "not in")) and not (listed and symbol in ("==", "!=")):
            raise QueryError(
                f"{symbol!r} takes {'one constant, not a list' if listed else 'a list of constants'}, "
                f"in {self.show(node)!r}.",
                None if listed else f"write {self.show(left)} {symbol} [{self.show(right)}]",
            )
        elements = right.elts if isinstance(right, ast.List | ast.Tuple | ast.Set) else [right]
        constants = tuple(self._constant(element) for element in elements)
        if listed:  # pandas reads == and != with a list as these
            symbol = {"==": "in", "!=": "not in"}.get(symbol, symbol)
        return self._leaf(self.node(left), symbol, constants)

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
        if not isinstance(value, str) and not finite(value):
            reason = f"a constant of the {self.what} is not a finite number."
            raise QueryError(reason, "nulls are those of column.isna()" if value != value else None)
        return value

    def _constant_or_none(self, node: ast.expr | None) -> Any:
        """A constant, or None for None."""
        if node is None or (isinstance(node, ast.Constant) and node.value is None):
            return None
        return self._constant(node)

    def _mapping(self, node: ast.Dict) -> dict[Any, Any]:
        """The labels by label of a literal mapping."""
        keys = [self._constant(key) for key in node.keys if key is not None]
        if len(keys) < len(node.keys):
            raise QueryError(f"{self.show(node)!r} is not a mapping from constant to constant.", SHAPE)
        return dict(zip(keys, map(self._constant_or_none, node.values), strict=True))

    def _end(self, node: ast.expr | None) -> int | None:
        """An end of a slice of texts."""
        end = self._constant_or_none(node)
        if end is not None and type(end) is not int:
            raise QueryError("the ends of a slice of texts are whole constants.", "region.str[:3]")
        return end

    def _text_arguments(self, call: ast.Call) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The constants that a method of texts is called with."""
        constants = tuple(map(self._constant_or_none, call.args))
        return constants, {
            keyword.arg: self._constant_or_none(keyword.value) for keyword in call.keywords if keyword.arg
        }

    def column(self, node: ast.Name) -> Column:
        """Return the declared column of a name; QueryError for an unknown name or an identifier."""
        name = self._names.get(node.id, node.id)
        if name not in self.domain:
            raise self._undeclared(name)
        column = self.domain[name]
        if column.role == "identifier":
            reason = f"column {name!r} has the role 'identifier': nothing is released by it."
            raise QueryError(reason, "filter by other columns")
        self.columns[name] = None
        return column

    def _undeclared(self, name: Hashable) -> QueryError:
        others = [label for label in self.domain.names if not isinstance(label, str)]
        error = undeclared(self.domain, name)
        message, hint, written = error.message, error.hint, str(name).replace(" ", "")
        matches = [label for label in others if written in (repr(label).replace(" ", ""), str(label))]
        related = matches or [label for label in others if isinstance(label, tuple) and name in label]
        if not related:
            return QueryError(message, f'declare it, {hint}; a constant goes into the text, f"... {{limit}}"')
        if matches:
            message = (
                f"the label of column {matches[0]!r} is not a string, and the {self.what} names strings only."
            )
        return QueryError(
            message, f'private.rename(columns={{{related[0]!r}: "NAME"}}), and then its new name.'
        )

    def _leaf(self, node: Node, symbol: str, constants: tuple[Any, ...]) -> Condition:
        column, name = node.column, node.column.name
        if column.timeline is not None:
            constants = tuple(self._position(column, value) for value in constants)
        for value in constants:
            truth = isinstance(value, bool)
            fits = truth if column.kind == "boolean" else not (truth or isinstance(value, str))
            if not fits and column.kind != "category":
                raise QueryError(
                    f"column {name!r} of kind {column.kind!r} cannot be compared with {value!r}.",
                    "True and False are its constants" if column.kind == "boolean" else None,
                )
        constants = tuple(as_compared(value, column) for value in constants)
        if symbol in ORDERINGS and column.ordered:
            labels = column.categories or ()
            limit = DeclaredLabels.of(column).position(constants[0])
            positions = [position for position in range(len(labels)) if ORDERINGS[symbol](position, limit)]
            return Comparison(node, "==", tuple(labels[position] for position in positions), bits(positions))
        if symbol in ORDERINGS:
            if column.kind in ("boolean", "category"):
                raise QueryError(
                    f"column {name!r} of kind {column.kind!r} has no order, so {symbol!r} does not apply.",
                    f"write {name} in [LABEL, ...]",
                )
            return Comparison(node, symbol, constants)
        equality = "in" if symbol in ("in", "not in") else "=="
        among = Comparison(node, equality, constants)
        if column.categories is not None:
            positions = list(map(DeclaredLabels.of(column).position, constants))
            labels = tuple(column.categories[position] for position in positions)
            among = Comparison(node, equality, labels, bits(positions))
        return Negation(among) if symbol in ("!=", "not in") else among

    def _position(self, column: Column, value: Any) -> int | float:
        """The number of a date that a column of dates is compared with."""
        try:
            assert column.timeline is not None
            return column.timeline.position(value, f"what column {column.name!r} is compared with")
        except ParameterError as error:
            known = "2020-01-31" if column.timeline is None else column.timeline.nearest(value)
            valid = f"private[private[{column.name!r}] >= {known!r}]"
            refused = QueryError(error.message, valid)
        raise refused  # outside the except block: one error, not two

    # ---------------------------------------------------------------- arithmetic

    def term(self, node: ast.expr) -> Term:
        """The arithmetic of a syntax tree; QueryError for anything else."""
        match node:
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int() | float() as value):
                if (number := arithmetic.constant(value)) is None:
                    raise QueryError(f"a constant of the {self.what} is not a finite number.")
                return number
            case ast.BinOp(left=left, op=ast.Sub(), right=right) if self._are_dates(left, right):
                return self._days(left, right)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.term(operand)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return arithmetic.negated(self.term(operand))
            case ast.Call() if (called := self._function(node)) is not None:
                return self._applied(*called, node)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return arithmetic.raised(self.term(left), self._exponent(right))
            case ast.BinOp(left=left, op=operation, right=right) if type(operation) in OPERATIONS:
                return arithmetic.operation_term(
                    OPERATIONS[type(operation)], self.term(left), self.term(right)
                )
        if (cells := self._cells(node)) is None:
            raise self._refusal(node)
        return arithmetic.term_of(cells)

    def _function(self, call: ast.Call) -> tuple[str, list[ast.expr]] | None:
        """The function of numbers that is called, and its arguments; None for any other call.

        It is called by its name, as a method of its first argument, or as a function of NumPy.
        """
        match call.func:
            case ast.Name(id=name) if name in FUNCTIONS:
                return ALIASES.get(name, name), list(call.args)
            case ast.Attribute(value=ast.Name(id="np" | "numpy" | "math" as module), attr=name) if (
                name in FUNCTIONS and module not in self.domain
            ):
                return ALIASES.get(name, name), list(call.args)
            case ast.Attribute(value=owner, attr="abs" | "round" as name):
                return name, [owner, *call.args]
        return None

    def _applied(self, name: str, arguments: list[ast.expr], call: ast.Call) -> Term:
        """The term of a function of numbers."""
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        digits: ast.expr = ast.Constant(0)
        if name == "round" and len(arguments) == 2:
            digits = arguments.pop()
        elif name == "round":
            digits = keywords.pop("decimals", digits)
        if keywords or len(arguments) != ARGUMENTS[name].count(",") + (name != "round"):
            raise QueryError(
                f"{self.show(call)!r} has other arguments than {name}({ARGUMENTS[name]}).", FUNCTION_SHAPE
            )
        shown = self.show(arguments[0])
        shown = f"({shown})" if isinstance(arguments[0], ast.BinOp | ast.UnaryOp) else shown
        return functions.applied(name, list(map(self.term, arguments)), self._digits(digits), shown)

    def _digits(self, node: ast.expr) -> int:
        """The constant number of digits of `round`."""
        digits = self._constant(node) if self._is_constant(node) else None
        if type(digits) is not int or abs(digits) > MOST_DIGITS:
            raise QueryError(
                f"the digits {self.show(node)!r} of 'round' are not a whole constant "
                f"from -{MOST_DIGITS} to {MOST_DIGITS}.",
                "round(x, 1)",
            )
        return digits

    def _dates(self, syntax: ast.expr) -> Node | None:
        """The node of a column of dates, perhaps clipped or filled; None for anything else."""
        match syntax:
            case ast.Name():
                return self.node(syntax) if self.column(syntax).timeline is not None else None
            case ast.Call(func=ast.Attribute(value=owner, attr=method)) if method in METHODS:
                return self.node(syntax) if self._dates(owner) is not None else None
        return None

    def _are_dates(self, left: ast.expr, right: ast.expr) -> bool:
        """Return whether the difference is one of dates: of two columns, or of a column and a constant."""
        texts = [isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (left, right)]
        dates = [self._dates(side) is not None for side in (left, right)]
        return any(dates) and all(is_date or text for is_date, text in zip(dates, texts, strict=True))

    def _days(self, left: ast.expr, right: ast.expr) -> Term:
        """The difference of two dates in days."""
        nodes = [self._dates(side) for side in (left, right)]
        columns = [node.column for node in nodes if node is not None]
        zones = {column.timeline.zone is None for column in columns if column.timeline}
        if len(zones) > 1:
            raise QueryError("a date with a time zone and one without have no difference.")
        starts = [
            node if node is not None else self._position(columns[0], self._constant(side))
            for side, node in zip((left, right), nodes, strict=True)
        ]
        return arithmetic.days_between(starts[0], starts[1])

    def arguments(self, node: ast.Call) -> dict[str, Any]:
        """The constants that ``clip`` or ``fillna`` of a column is called with, by name."""
        assert isinstance(node.func, ast.Attribute)
        names = METHODS[node.func.attr]
        given: dict[str | None, ast.expr] = dict(zip(names, node.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in node.keywords}
        if len(node.args) > len(names) or not given or not set(given) <= set(names):
            raise QueryError(
                f"{node.func.attr!r} takes {' and '.join(names)}, in {self.show(node)!r}.",
                f"{node.func.attr}({', '.join(f'{name}=CONSTANT' for name in names)})",
            )
        return {name: self._constant(given[name]) for name in names if name in given}

    def _exponent(self, node: ast.expr) -> int:
        exponent = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(exponent, int) or isinstance(exponent, bool) or exponent > MOST_EXPONENT:
            raise QueryError(
                f"the exponent {self.show(node)!r} is not a whole constant from 0 to {MOST_EXPONENT}.",
                "a negative power is 1 / x ** n",
            )
        return exponent

    # ---------------------------------------------------------------- refusals

    def _refusal(self, node: ast.expr) -> QueryError:
        shown, arithmetic = self.show(node), self.what != "filter"
        hint = ARITHMETIC_SHAPE if arithmetic else SHAPE
        other_rows = "calls a method, which may look at other rows"
        match node:
            case _ if (aggregate := self._aggregate(node)) is not None:
                shown = aggregate
                if arithmetic:
                    reason = f"{other_rows}: one record may change the new cells of all others"
                    hint = "a constant in its place, such as a number that was released before"
                else:
                    reason = (
                        f"{other_rows}: a filter against an aggregate has infinite sensitivity, because one "
                        "record may change which others pass"
                    )
                    hint = (
                        "a filter takes constants: a declared bound, or a number that was released before, "
                        'f"... {limit}"'
                    )
            case ast.Call(func=ast.Attribute()):
                reason = other_rows
            case ast.Call():
                reason, hint = "calls a function that expressions do not have", FUNCTION_SHAPE
            case ast.Attribute():
                reason = "reads an attribute, and an expression reads columns only"
            case ast.Subscript():
                reason = "reads by position or label, which may be another row"
            case _ if arithmetic:
                reason = "is not arithmetic of declared columns and constants"
            case _:
                reason = "is not a comparison of a declared column with a constant"
        return QueryError(f"{shown!r} {reason}.", hint)

    def _aggregate(self, node: ast.expr) -> str | None:
        """The part of an expression that is an aggregate of all rows, None where it holds none."""
        for part in ast.walk(node):
            match part:
                case ast.Call(func=ast.Attribute(attr=method)) if method in AGGREGATES:
                    return self.show(part)
        return None
