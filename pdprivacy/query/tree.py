"""A filter once it is read: comparisons of columns with constants, and how they are joined."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from pdprivacy.domain import Column

__all__ = ["COMPLEMENT", "ORDERINGS", "All", "Columns", "Either", "Leaf", "Not", "Tree"]


class Columns(Protocol):
    """Declared columns by name, such as a `Domain`."""

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The declared names, in order."""

    def __getitem__(self, name: Hashable, /) -> Column: ...


ORDERINGS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COMPLEMENT = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class Leaf:
    """``name symbol constants``; the symbol is an ordering, ``in`` or ``null``.

    False for a null cell, save ``null``.
    """

    name: str
    symbol: str
    constants: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Not:
    """What the part is not."""

    part: Tree


@dataclass(frozen=True, slots=True)
class All:
    """All of the parts: ``and``."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """At least one of the parts: ``or``."""

    parts: tuple[Tree, ...]


Tree: TypeAlias = "Leaf | Not | All | Either"
