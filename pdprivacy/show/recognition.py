"""Kinds of objects: a release, a plan, a confidential frame, a lineage, or something else.

A confidential frame is marked in ``attrs``, and by the names of its columns if pandas drops ``attrs``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import pandas as pd

from pdprivacy import metadata
from pdprivacy.errors import MetadataError
from pdprivacy.metadata import KEY
from pdprivacy.show.markup import printable

__all__ = ["LINEAGE", "MARK", "PLAN", "Recognized", "check_release", "recognized"]

MARK = "confidential"
PLAN = "dp_plan"
"""The key in ``attrs`` of a plan: its arguments, and what was assumed of the data."""

LINEAGE = {"declared": "lineage"}
"""The mark of a lineage."""

What: TypeAlias = Literal["release", "plan", "confidential", "lineage", "other"]

RISK = f" risk ({MARK})"
NAMED = (f"dr_ha ({MARK})", f"epsilon ({MARK})")

COMPARED = {
    *("error", "lower", "upper", "worse", "part_epsilon"),
    *(f"{name}{end}" for name in ("without", "difference") for end in ("", "_lower", "_upper")),
}
DISTANCES = {"tvd", "standard_error"}
COUNTED = {
    *("clipped", "null", "unseen", "dropped"),
    *("cohort", "by", "sensitive", "epsilon", "risk", "overall", "epsilon_so_far", "delta_so_far"),
    *("cells", "records", "share of records", "label", "share"),
    *("fault", "declared", "examples"),
}


@dataclass(frozen=True)
class Recognized:
    """The kind of an object.

    Attributes
    ----------
    what : "confidential" is made of exact counts.
    kind : the method that made a confidential frame, or the name of its columns; "" for others.
    facts : the metadata of the object.
    """

    what: What
    kind: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def recognized(thing: Any) -> Recognized:
    """Return the kind of an object.

    ``attrs`` come first, so that a release of a column named "confidential" is a release. Without them, the
    names of columns identify a confidential frame. A table with the column name "confidential" alone is not
    one, unless its other columns are those of a confidential frame, too.

    >>> recognized(pd.DataFrame({"risk": [0.5]})).what
    'other'
    """
    if not isinstance(thing, pd.DataFrame | pd.Series):
        kind = type(thing).__name__.lower()
        marked = getattr(thing, MARK, False) is True
        return Recognized("confidential", kind, {MARK: kind}) if marked else Recognized("other")
    stored, plan = thing.attrs.get(KEY), thing.attrs.get(PLAN)
    facts: Mapping[str, Any] = stored if isinstance(stored, Mapping) else {}
    if MARK in facts:
        return Recognized("confidential", printable(facts[MARK]), facts)
    if "statistic" in facts:
        return Recognized("release", facts=facts)
    if facts == LINEAGE and isinstance(thing, pd.DataFrame):
        return Recognized("lineage", facts=facts)
    if isinstance(plan, Mapping) and isinstance(thing, pd.DataFrame):
        return Recognized("plan", facts=plan)
    kind = _kind_of_names(thing)
    if kind:
        return Recognized("confidential", kind, {**facts, MARK: kind})
    return Recognized("other", facts=facts)


def check_release(thing: Any, purpose: str) -> pd.DataFrame | pd.Series[Any]:
    """Return a release as it was made, so that it can be saved or written for readers.

    ``purpose``: what becomes of it, for errors. Raises MetadataError for a frame that is made of exact
    counts, for any other that is no release, and for a release whose numbers or labels were changed.

    >>> check_release(pd.DataFrame({"risk": [0.5]}), "saved")
    Traceback (most recent call last):
        ...
    pdprivacy.errors.MetadataError: This frame carries no release metadata.
    Hint: results of df.dp.protect(...).dp.mean(...) and the like carry it in attrs['dp'];
    pd.DataFrame(result), pd.concat and to_csv lose it, result.dp.save(path) keeps it.
    """
    if recognized(thing).what == "confidential":
        raise MetadataError(
            f"This is made of exact counts, CONFIDENTIAL: it is no release, and is not {purpose} as one.",
            "plot() and pdprivacy.report(..., edition='curator') show it to the curator.",
        )
    kept = metadata.as_released(thing)
    if kept is None:
        raise MetadataError(
            f"The numbers or labels are not those that were released, and are not {purpose} as a release.",
            "take the release as it was returned; verify() tells.",
        )
    return kept


def _kind_of_names(frame: pd.DataFrame | pd.Series[Any]) -> str:
    """Return the kind of a confidential frame by its names; "" for others."""
    if isinstance(frame, pd.Series):
        return str(frame.name) if isinstance(frame.name, str) and frame.name in NAMED else ""
    names = [name for name in frame.columns.names if isinstance(name, str)]
    for name in names:
        if name in NAMED:
            return name
        if name.endswith(RISK):
            return "risk_curve"
    if names[:1] != [MARK] or not len(frame.columns):
        return ""
    held = set(frame.columns.get_level_values(0))
    if names == [MARK, "epsilon"] and held <= DISTANCES:
        return "utility"
    if names != [MARK]:
        return ""
    if held <= COMPARED:
        return "compare_sampling" if "rate" in frame.index.names else "compare_suppression"
    if held <= COUNTED:
        return MARK
    distances = {one for one in held if isinstance(one, str) and re.fullmatch(r"tvd \d+-way", one)}
    return "tradeoff" if held <= {"risk", "recommended"} | distances else ""
