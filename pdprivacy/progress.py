"""Progress bars of what takes long, where tqdm is installed."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any, TypeVar

from pdprivacy.errors import MissingExtraError, ParameterError, got

__all__ = ["shown"]

_Item = TypeVar("_Item")


def shown(
    items: Iterable[_Item], total: int, label: str, progress: bool | None, *, long: bool = False
) -> Iterable[_Item]:
    """The items, with a bar that shows how many of ``total`` are done.

    ``progress=None`` shows it where the work is ``long``, tqdm is installed, and a terminal is there.

    Raises
    ------
    ParameterError : something else than True, False or None. MissingExtraError : ``progress=True`` without
        tqdm.

    >>> list(shown(range(3), 3, "thirds", False))
    [0, 1, 2]
    """
    if not (progress is None or isinstance(progress, bool)):
        raise ParameterError(f"'progress' must be True, False or None (got {got(progress)}).")
    if not (long if progress is None else progress):
        return items
    try:
        tqdm: Any = importlib.import_module("tqdm")
    except ImportError:
        if progress is None:
            return items
        raise MissingExtraError(
            "A progress bar needs tqdm, which is not installed.", 'pip install "pdprivacy[progress]"'
        ) from None
    bar: Iterable[_Item] = tqdm.tqdm(
        items, total=total, desc=label, disable=None if progress is None else False
    )
    return bar
