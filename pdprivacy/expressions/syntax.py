"""The text of an expression as the syntax tree that both Python and `DataFrame.query` read."""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from pdprivacy.errors import QueryError


@dataclass(frozen=True, slots=True)
class Syntax:
    """A syntax tree; ``names`` are the labels of the columns that stand in it under placeholders."""

    text: str
    node: ast.expr
    names: Mapping[str, Hashable]

    def show(self, node: ast.AST) -> str:
        """A part of the expression, with names as they were written."""
        text = ast.unparse(node)
        for key, name in self.names.items():
            text = text.replace(key, f"`{name}`")
        return text


def read_syntax(text: str, what: str, shape: str) -> Syntax:
    """Parse an expression; ``what`` and ``shape`` name it and its grammar in errors.

    Raises
    ------
    QueryError : no valid syntax, a variable, or operators that `DataFrame.query` ranks otherwise.
    """
    python, words, names = _scan(text, what)
    if not python:
        raise QueryError(f"the {what} is empty.", shape)
    node = _parsed(python)
    if node is None:
        raise QueryError(f"the {what} {text!r} is not valid syntax.", shape)
    if words != python:
        # DataFrame.query gives & and | the rank of `and` and `or`, Python a higher one.
        other = _parsed(words)
        if other is None or ast.dump(node) != ast.dump(other):
            raise QueryError(
                f"'&' and '|' bind differently in Python and in DataFrame.query in the {what} {text!r}.",
                "write 'and' and 'or', or put every comparison in parentheses: (age >= 30) & (age < 50)",
            )
    return Syntax(text, node, names)


def _parsed(python: str) -> ast.expr | None:
    """The syntax tree, None for invalid syntax; the error of the parser quotes the rewritten text."""
    try:
        body = ast.parse(python, mode="eval").body
    except (SyntaxError, ValueError, MemoryError):
        return None
    flat = _Flat().visit(body)
    assert isinstance(flat, ast.expr)
    return flat


# strings and comments, which are passed over unread; names in backticks; and what reads otherwise
_PIECES = re.compile(
    r"""(?P<quote>'{3}|"{3}|'|")(?:\\.|(?!(?P=quote)).)*(?:(?P=quote)|\Z)"""
    r"""|\#[^\n]*|`(?P<name>[^`]*)(?P<close>`?)|[@&|]""",
    re.DOTALL,
)


def _scan(text: str, what: str) -> tuple[str, str, dict[str, str]]:
    """Python text with backticked names replaced, the same with & and | as words, and the names."""
    prefix = "_name"
    while prefix in text:
        prefix += "_"
    keys: dict[str, str] = {}

    def piece(match: re.Match[str], joints: Mapping[str, str]) -> str:
        if match["name"] is not None:
            if not match["close"]:
                raise QueryError(f"a backtick is not closed in the {what} {text!r}.")
            return f" {keys.setdefault(match['name'], f'{prefix}{len(keys)}_')} "
        if match[0] == "@":
            raise QueryError(
                f"the {what} {text!r} refers to a variable by '@', whose value may depend on the data.",
                'put the constant into the text: private.dp.query(f"age >= {limit}")',
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
