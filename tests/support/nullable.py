"""Conditions of nullable columns of pandas by the operators of columns: the meaning that conditions have."""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

__all__ = ["by_operators", "truths"]

OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: lambda values, listed: values.isin(listed),
    ast.NotIn: lambda values, listed: ~values.isin(listed),
}


def _by_operators(node: ast.expr, frame: pd.DataFrame, names: Mapping[str, str]) -> Any:
    def of(part: ast.expr) -> Any:
        return _by_operators(part, frame, names)

    match node:
        case ast.Name(id=name):
            return frame[names.get(name, name)]
        case ast.BinOp(left=left, op=symbol, right=right):
            return OPERATORS[type(symbol)](of(left), of(right))
        case ast.BoolOp(op=joint, values=parts):
            join = operator.and_ if isinstance(joint, ast.And) else operator.or_
            return functools.reduce(join, map(of, parts))
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            return ~of(operand)
        case ast.Call(func=ast.Attribute(value=owner, attr=method)):
            return getattr(of(owner), method)()
        case ast.Compare(left=left, ops=symbols, comparators=others):
            sides = [of(left), *map(of, others)]
            results = []
            for first, symbol, second in zip(sides, symbols, sides[1:], strict=False):
                listed = {ast.Eq: ast.In, ast.NotEq: ast.NotIn} if isinstance(second, list) else {}
                truth = OPERATORS[listed.get(type(symbol), type(symbol))](first, second)
                results.append(truth.astype("boolean"))  # that of texts may be one of Arrow
            return functools.reduce(operator.and_, results)
    return ast.literal_eval(node)


def by_operators(text: str, frame: pd.DataFrame) -> pd.Series[Any]:
    """Return a condition of a frame of nullable dtypes; `DataFrame.eval` reads == of texts as `isin`."""
    names = {name.replace(" ", "_"): name for name in re.findall(r"`(.*?)`", text)}
    source = re.sub(r"`(.*?)`", lambda match: match[1].replace(" ", "_"), text)
    result: pd.Series[Any] = _by_operators(ast.parse(source, mode="eval").body, frame, names)
    return result


def truths(values: pd.Series[Any]) -> list[bool | None]:
    """The truth values of a column; None for a null."""
    return [None if pd.isna(cell) else bool(cell) for cell in values.astype(object)]
