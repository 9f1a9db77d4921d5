"""Which of the pages a frame has."""

from __future__ import annotations

from typing import Any

import pandas as pd

from pdprivacy import markup
from pdprivacy.display import confidential as curators
from pdprivacy.display import standing as steps
from pdprivacy.display.released import Release
from pdprivacy.display.standing import Standing
from pdprivacy.errors import MetadataError, PrivacyError
from pdprivacy.recognition import recognized

__all__ = ["of_frame", "page", "text"]

MOST_CHECKED = 100_000
"""Labels of a release that a display reads to see whether it is unchanged: four seconds per million."""

DAMAGED = "What the frame says about itself cannot be read: attrs['dp'] is damaged ({})."


def of_frame(frame: pd.DataFrame | pd.Series[Any]) -> str | None:
    """The page of a release, of a frame of exact counts, or of a lineage; None for every other frame.

    A release that was changed since has none: what it said no longer holds of its numbers.
    """
    known = recognized(frame)
    if known.what == "confidential":
        return curators.html(frame, known.kind)
    if known.what == "lineage" and isinstance(frame, pd.DataFrame):
        return steps.lineage(frame)
    release = Release.of(frame) if known.what == "release" and len(frame) <= MOST_CHECKED else None
    return release.html() if release is not None and release.unchanged else None


def page(frame: Any, standing: Standing | PrivacyError) -> str:
    """What ``frame.dp`` shows in a notebook: something of every frame, whatever its ``attrs`` hold."""
    if isinstance(standing, Standing):
        return standing.html()
    try:
        known = recognized(frame)
        if known.what == "confidential":
            return curators.html(frame, known.kind)
        if known.what == "lineage":
            return steps.lineage(frame)
        return Release.of(frame).html() if known.what == "release" else _why(standing)
    except MetadataError as error:
        return _why(error)
    except Exception as error:  # a damaged mark can hold anything
        return markup.page(markup.warning(DAMAGED.format(type(error).__name__)))


def text(frame: Any, standing: Standing | PrivacyError) -> str:
    """The same at a prompt."""
    if isinstance(standing, Standing):
        return standing.text()
    try:
        known = recognized(frame)
        if known.what == "confidential":
            return curators.text(frame, known.kind)
        if known.what == "lineage":
            return str(frame.to_string())
        return Release.of(frame).text() if known.what == "release" else str(standing)
    except MetadataError as error:
        return str(error)
    except Exception as error:  # a damaged mark can hold anything
        return DAMAGED.format(type(error).__name__)


def _why(error: PrivacyError) -> str:
    """Why there is nothing to show, and what to write instead."""
    return markup.page(*map(markup.note, str(error).split("\n")))
