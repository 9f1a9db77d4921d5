"""Conditions and arithmetic once they are read: frozen trees over declared columns and constants."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeAlias

from pdprivacy.domain import Column
from pdprivacy.expressions.intervals import Range

__all__ = ["COMPLEMENT", "ORDERINGS", "Comparison", "Condition", "Joined", "Negated", "Term"]


ORDERINGS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COMPLEMENT = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """``name symbol constants``; the symbol is an ordering, ``in`` or ``null``.

    False for a null cell, except ``null``.
    """

    name: Hashable
    symbol: str
    constants: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Negated:
    """The negation of a condition."""

    part: Condition


@dataclass(frozen=True, slots=True)
class Joined:
    """Conditions joined by ``and`` (``every``) or by ``or``."""

    parts: tuple[Condition, ...]
    every: bool


Condition: TypeAlias = "Comparison | Negated | Joined"


@dataclass(frozen=True, slots=True)
class Term:
    """A column, a constant, or an operation on other terms.

    ``within``: where its values lie. ``whole``: int64, else doubles. ``finite``: none of them is infinite,
    even if an end of ``within`` is. ``nullable``: whether some may be null. ``leaf``: the column or the
    constant; of an operation None, and then ``run`` is computed from the values of ``parts``. ``fills``:
    whether ``run`` replaces nulls, so that it is told where they are.
    """

    within: Range
    whole: bool
    finite: bool
    nullable: bool
    leaf: Column | int | float | None = None
    run: Callable[..., Any] | None = None
    parts: tuple[Term, ...] = ()
    fills: bool = False
