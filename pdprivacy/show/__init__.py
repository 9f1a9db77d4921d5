"""Displays: prompts, notebooks, plots, reports and progress bars, all from one view of a release."""

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """Import ``pdprivacy.show.plots`` or ``pdprivacy.show.report`` when it is first used."""
    if name not in ("plots", "report"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
