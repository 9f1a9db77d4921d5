"""Type aliases that several modules share, and the setter of frozen dataclasses."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Words: TypeAlias = NDArray[np.uint64]
Whole: TypeAlias = Sequence[int] | Integers
"""Whole numbers of any size, or integers of 64 bits."""
Labels: TypeAlias = Hashable | Sequence[Hashable]
"""The label of a column, or several labels."""


def settle(frozen: object, /, **fields: object) -> None:
    """Set fields of a frozen dataclass: what its constructor checked, or what is computed once and kept.

    A constructor may accept more types than the fields have; no other place changes a frozen value.
    """
    for name, value in fields.items():
        object.__setattr__(frozen, name, value)
