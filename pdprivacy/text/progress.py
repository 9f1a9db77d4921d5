"""Progress bars of long computations, if tqdm is installed.

A bar shows which share of the work is done, and never how much work there is: the number of records, cells
or distances may be private, and others may read a log. Bars of releases show no times, either; those of
confidential functions do. A bar is cleared when the work ends, fails or is interrupted.

``progress=False`` shows none. ``TQDM_DISABLE=1`` in the environment, an option of tqdm, disables all of them.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pdprivacy.errors import MissingExtraError, ParameterError, got

_Item = TypeVar("_Item")

DELAY = 1.0
"""Seconds before a bar appears by default."""

PATIENCE = 0.1
"""Seconds that a bar waits for bars of other threads."""

SHARE = "{desc}: {percentage:3.0f}%|{bar}|"
TIMES = " {elapsed}, {remaining} left"


class _Lock:
    """A lock for the bars of several threads, with a short wait: an interrupt may leave it held."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def acquire(self, *_: object, **__: object) -> bool:
        """Wait a moment for the others, then go on."""
        self._lock.acquire(timeout=PATIENCE)
        return True

    def release(self) -> None:
        """Let the others go on."""
        with suppress(RuntimeError):  # not taken
            self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


_LOCK = _Lock()


@dataclass(frozen=True, slots=True)
class _Bar(Generic[_Item]):
    """Items with a bar, which appears with the first item and is cleared after the last.

    The loop over the items holds the only iterator of them, so that whatever ends the loop ends that, too.
    """

    drawn: Callable[[], Iterable[_Item]]

    def __iter__(self) -> Iterator[_Item]:
        try:
            yield from self.drawn()
        except KeyboardInterrupt:  # in the middle of a line, of which tqdm does not know yet
            _wipe()
            raise


def shown(
    items: Iterable[_Item],
    total: int,
    label: str,
    progress: bool | None,
    *,
    long: bool = False,
    timed: bool = False,
) -> Iterable[_Item]:
    """Return the items, with a bar that shows which share of ``total`` is done.

    ``progress=None`` shows it in a terminal or a notebook if the work is ``long`` and takes more than a
    second, and tqdm is installed. ``TQDM_DISABLE=1`` in the environment shows none. ``timed``: with times,
    which may depend on the data, for confidential functions. Nothing is drawn before the first item.

    Raises
    ------
    ParameterError : another value than True, False or None. MissingExtraError : ``progress=True`` without
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
    if os.environ.get("TQDM_DISABLE") or sys.stderr is None:
        return items
    if not (progress is True or _in_terminal() or _in_notebook()):
        return items

    def drawn() -> Iterable[_Item]:
        # tqdm's own lock is shared with forked processes, and a thread of its own waits for it: an interrupt
        # within it would leave both, and all other processes, waiting for ever
        kind = type("Bar", (tqdm.tqdm,), {"monitor_interval": 0, "_lock": _LOCK})
        bar: Iterable[_Item] = kind(
            items,
            total=total,
            desc=label,
            leave=False,
            bar_format=SHARE + TIMES * timed,
            delay=DELAY if progress is None else 0,
        )
        return bar

    return _Bar(drawn)


def _in_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # a stream of another kind, or a closed one
        return False


def _in_notebook() -> bool:
    """Return whether this is the kernel of a notebook, where text can be wiped off as in a terminal.

    No widgets: they would have to be installed, and are kept with the notebook.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return "IPKernelApp" in (getattr(shell, "config", None) or ())


def _wipe() -> None:
    """Clear the line."""
    with suppress(AttributeError, OSError, ValueError):
        width = 79
        with suppress(AttributeError, OSError, ValueError):
            width = os.get_terminal_size(sys.stderr.fileno()).columns - 1
        sys.stderr.write(f"\r{' ' * width}\r")
        sys.stderr.flush()
