"""The HTML formatter of a notebook: releases and confidential frames as pages, all other frames as before.

IPython is not imported here: if it runs, it has been imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pandas as pd

from pdprivacy.show.pages import html_of_marked

__all__ = ["load_ipython_extension", "register_where_running", "unload_ipython_extension"]

FORMAT = "text/html"
KINDS: tuple[type, ...] = (pd.DataFrame, pd.Series)


class Formatter:
    """The HTML of a frame that carries a mark; that of ``before`` for every other frame."""

    def __init__(self, before: Callable[[Any], Any] | None) -> None:
        self.before = before

    def __call__(self, frame: Any) -> Any:
        """Return HTML, or what was shown before; no mark makes it fail."""
        try:
            found = html_of_marked(frame) if pd.get_option("display.notebook_repr_html") else None
        except Exception:  # a damaged mark can hold anything
            found = None
        return self._as_before(frame) if found is None else found

    def _as_before(self, frame: Any) -> Any:
        if self.before is not None:
            return self.before(frame)
        method = getattr(frame, "_repr_html_", None)
        return method() if callable(method) else None


def load_ipython_extension(ipython: Any) -> None:
    """Show releases with their errors and costs, and mark confidential frames: ``%load_ext pdprivacy``.

    ``ipython``: the running shell. ``import pdprivacy`` in a notebook does this, too. Other frames are shown
    as before.
    """
    formatter = ipython.display_formatter.formatters[FORMAT]
    for kind in KINDS:
        before = formatter.for_type(kind)
        formatter.for_type(kind, Formatter(before.before if _is_ours(before) else before))


def unload_ipython_extension(ipython: Any) -> None:
    """Show all frames as without pdprivacy: ``%unload_ext pdprivacy``."""
    formatter = ipython.display_formatter.formatters[FORMAT]
    for kind in KINDS:
        found = formatter.for_type(kind)
        if _is_ours(found):
            formatter.pop(kind)
            if found.before is not None:
                formatter.for_type(kind, found.before)


def register_where_running() -> None:
    """Call `load_ipython_extension` if IPython is running; leave a shell without displays alone."""
    shell_of = getattr(sys.modules.get("IPython"), "get_ipython", None)
    try:
        shell = None if shell_of is None else shell_of()
        if shell is not None:
            load_ipython_extension(shell)
    except Exception:  # importing must not depend on what shell this is
        return


def _is_ours(formatter: object) -> bool:
    """Whether a formatter is of this module, also of one that was loaded before."""
    kind = type(formatter)
    return (kind.__module__, kind.__qualname__) == (Formatter.__module__, Formatter.__qualname__)
