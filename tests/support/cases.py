"""Many small cases of one fact in one test."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def check_each(cases: Iterable[Any], check: Callable[[Any], object]) -> None:
    """Check every case, and fail once with all the cases that failed and their reasons."""
    failures = []
    for case in cases:
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as error:
            failures.append(f"{case}: {type(error).__name__}: {error}")
    assert failures == [], "\n".join(failures)


def each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Callable[..., None]], Any]:
    """Parametrize a test as ``pytest.mark.parametrize`` does, but check all cases in one item.

    The cases share the fixtures of the test, so that a test that changes them is parametrized instead.
    """

    parameters = (names,) if isinstance(names, str) else names
    rows = [(case,) if isinstance(names, str) else case for case in cases]

    def wrap(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def looped(**fixtures: Any) -> None:
            check_each(rows, lambda row: test(**fixtures, **dict(zip(parameters, row, strict=True))))

        signature = inspect.signature(test)
        left = [value for name, value in signature.parameters.items() if name not in parameters]
        looped.__signature__ = signature.replace(parameters=left)
        return looped

    return wrap
