"""How far neighbours move the exact numbers of a release, and how far its parts claim that they do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import pdprivacy  # noqa: F401 - registers the accessor
from pdprivacy.core.statistics import Part


class CapturedError(Exception):
    pass


def captured(private: pd.DataFrame, call: Callable[[Any], Any]) -> Any:
    """The statistic that a call of the accessor hands to the gate."""
    seen = []

    def gate(release: Any, *_: Any) -> None:
        seen.append(release.task.statistic)
        raise CapturedError

    with mock.patch("pdprivacy.core.gate.execute.execute", gate), pytest.raises(CapturedError):
        call(private.dp)
    return seen[0]


def numbers(read: list[Any]) -> list[list[int]]:
    return [[int(number) for number in part] for part in read]


@dataclass
class Moved:
    """The largest observed move of each part of a statistic."""

    l1: list[int]
    l2_squared: list[int]
    numbers: list[int]

    @classmethod
    def none(cls, parts: tuple[Part, ...]) -> Moved:
        return cls([0] * len(parts), [0] * len(parts), [0] * len(parts))

    @classmethod
    def between(cls, parts: tuple[Part, ...], read: list[list[list[int]]], pairs: Any) -> Moved:
        """The same as to ``see`` every pair of what was read, all at once."""
        moved = cls.none(parts)
        for index in range(len(parts)):
            table = np.array([answers[index] for answers in read], dtype=object)
            largest = max(map(abs, table.ravel().tolist()), default=0)
            if 4 * largest**2 * max(table.shape[1], 1) < 2**63:  # otherwise integers of Python
                table = table.astype(np.int64)
            steps = np.abs(table[pairs[:, 0]] - table[pairs[:, 1]])
            if steps.size:
                moved.numbers[index] = int((steps != 0).sum(axis=1).max())
                moved.l1[index] = int(steps.sum(axis=1).max())
                moved.l2_squared[index] = int((steps * steps).sum(axis=1).max())
        return moved

    def see(self, left: list[list[int]], right: list[list[int]]) -> None:
        for index, (first, second) in enumerate(zip(left, right, strict=True)):
            steps = [a - b for a, b in zip(first, second, strict=True) if a != b]
            if steps:
                self.numbers[index] = max(self.numbers[index], len(steps))
                self.l1[index] = max(self.l1[index], sum(map(abs, steps)))
                self.l2_squared[index] = max(self.l2_squared[index], sum(step * step for step in steps))


def check_claims(parts: tuple[Part, ...], moved: Moved, where: Any = "") -> None:
    assert sum((part.weight for part in parts), Fraction(0)) == 1
    for part, l1, l2_squared, many in zip(parts, moved.l1, moved.l2_squared, moved.numbers, strict=True):
        assert part.weight > 0
        assert many <= part.l0, (part.name, where)
        assert l1 <= part.l1, (part.name, where)
        assert l2_squared <= part.l2_squared, (part.name, where)


def check_attained(parts: tuple[Part, ...], moved: Moved, share: Fraction) -> None:
    """Some pair of neighbours moves every part as far as it claims, up to ``share``."""
    for part, l1, l2_squared in zip(parts, moved.l1, moved.l2_squared, strict=True):
        exact = Fraction(1) if part.counts or part.name.startswith("sum") else share
        assert l1 >= part.l1 * exact, part.name
        assert l2_squared >= part.l2_squared * exact**2, part.name


def check_shape(parts: tuple[Part, ...], read: list[list[int]]) -> None:
    assert [len(numbers) for numbers in read] == [part.size for part in parts]
