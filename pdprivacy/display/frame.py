"""Which of the pages a frame has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from pdprivacy import markup
from pdprivacy.display import confidential as curators
from pdprivacy.display import standing as steps
from pdprivacy.display.released import Release
from pdprivacy.display.standing import LINEAGE, Standing
from pdprivacy.errors import MetadataError, PrivacyError
from pdprivacy.metadata import KEY

__all__ = ["of_frame", "page", "text"]

MOST_CHECKED = 100_000
"""Labels of a release that a display reads to see whether it is unchanged: four seconds per million."""

DAMAGED = "What the frame says about itself cannot be read: attrs['dp'] is damaged ({})."


def of_frame(frame: pd.DataFrame | pd.Series[Any]) -> str | None:
    """The page of a release, of a frame of exact counts, or of a lineage; None for every other frame.

    A release that was changed since has none: what it said no longer holds of its numbers.
    """
    kind = curators.kind_of(frame)
    if kind is not None:
        return curators.html(frame, kind)
    if isinstance(frame, pd.DataFrame) and _is_lineage(frame):
        return steps.lineage(frame)
    release = _release(frame) if len(frame) <= MOST_CHECKED else None
    return release.html() if release is not None and release.unchanged else None


def page(frame: Any, standing: Standing | PrivacyError) -> str:
    """What ``frame.dp`` shows in a notebook: something of every frame, whatever its ``attrs`` hold."""
    if isinstance(standing, Standing):
        return standing.html()
    try:
        kind, release = curators.kind_of(frame), _release(frame)
        if kind is not None:
            return curators.html(frame, kind)
        if _is_lineage(frame):
            return steps.lineage(frame)
        return _why(standing) if release is None else release.html()
    except MetadataError as error:
        return _why(error)
    except Exception as error:  # a damaged mark can hold anything
        return markup.page(markup.warning(DAMAGED.format(type(error).__name__)))


def text(frame: Any, standing: Standing | PrivacyError) -> str:
    """The same at a prompt."""
    if isinstance(standing, Standing):
        return standing.text()
    try:
        kind, release = curators.kind_of(frame), _release(frame)
        if kind is not None:
            return curators.text(frame, kind)
        if _is_lineage(frame):
            return str(frame.to_string())
        return str(standing) if release is None else release.text()
    except MetadataError as error:
        return str(error)
    except Exception as error:  # a damaged mark can hold anything
        return DAMAGED.format(type(error).__name__)


def _release(frame: Any) -> Release | None:
    """The release that a frame says it is; MetadataError where it cannot be read."""
    stored = frame.attrs.get(KEY)
    known = isinstance(stored, Mapping) and "statistic" in stored and "confidential" not in stored
    return Release.of(frame) if known else None


def _is_lineage(frame: Any) -> bool:
    return isinstance(frame, pd.DataFrame) and frame.attrs.get(KEY) == LINEAGE


def _why(error: PrivacyError) -> str:
    """Why there is nothing to show, and what to write instead."""
    return markup.page(*map(markup.note, str(error).split("\n")))
