"""The releases of a report: found, read and checked."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pandas as pd

from pdprivacy import checks, metadata
from pdprivacy.errors import MetadataError, ParameterError, got
from pdprivacy.metadata import KEY, Metadata
from pdprivacy.privacy import Approx, Confidential, Pure, Unit, loss
from pdprivacy.protection import ProtectedFrame
from pdprivacy.releases.disclosure_risk import Homogeneity
from pdprivacy.show.recognition import recognized
from pdprivacy.show.view import Released, View
from pdprivacy.storage.parquet import check_pyarrow
from pdprivacy.storage.release_files import load

__all__ = ["Edition", "Found", "Given", "ReportedRelease", "collect"]

Edition: TypeAlias = Literal["public", "curator"]
Given: TypeAlias = "Released | str | os.PathLike[str]"

MORE = {"counts", "iterations", "steps"}
"""Further metadata of some releases: rounds, steps, and noisy numbers of records."""

AS_RETURNED = "pass the release as it was returned."
TRY = 'pdprivacy.report({"mean age": mean, "risk by region": table}, path="report.html").'


@dataclass(frozen=True)
class ReportedRelease:
    """A release, checked: its numbers are those that were released, and its metadata are readable.

    ``name``: its name in the report. ``place``: 1, 2, 3, ... in the report. ``alike``: the name of an earlier
    release with equal metadata.
    """

    view: View
    name: str = ""
    place: int = 0
    alike: str | None = None

    @property
    def facts(self) -> Metadata:
        """The metadata."""
        return self.view.facts

    @property
    def unit(self) -> Unit:
        """The neighbouring datasets that the privacy loss compares."""
        return Unit(self.facts.neighbors, self.facts.unit)  # type: ignore[arg-type]

    @property
    def risk(self) -> float:
        """The estimated disclosure risk by records; 0 without an estimate."""
        return float((self.facts.dr_ha or {"by_records": 0})["by_records"])

    @property
    def loss(self) -> Pure | Approx:
        """The privacy loss by its metadata."""
        return loss(self.facts.epsilon, self.facts.delta)


@dataclass(frozen=True)
class Found:
    """Releases, and confidential figures by name; ``files``: the paths of releases."""

    releases: tuple[ReportedRelease, ...]
    confidential: dict[str, Any] = field(default_factory=dict)
    files: tuple[Path, ...] = ()


def collect(given: Any, edition: Edition) -> Found:
    """Return the releases and the confidential figures in the order in which they were given.

    Raises ParameterError for an empty list, for an object that is no release, and in the public edition for
    confidential figures; MetadataError for a release that was changed or has unreadable metadata.
    """
    named = _named(given)
    releases: list[ReportedRelease] = []
    confidential: dict[str, Any] = {}
    files: list[Path] = []
    seen: set[int | Path] = set()
    for called, name, one in named:
        if isinstance(one, str | os.PathLike):
            path = Path(one).resolve()
            again: int | Path = path
            files.append(path)
        else:
            again = id(one)
        if again in seen:  # the very same, handed in twice
            continue
        seen.add(again)
        thing = _loaded(one, called) if isinstance(one, str | os.PathLike) else one
        if recognized(thing).what == "confidential":
            if edition == "public":
                raise ParameterError(
                    f"{called} is made of exact counts, CONFIDENTIAL, and the public edition takes releases "
                    "alone. Nothing was written.",
                    "leave it out, or edition='curator'.",
                )
            key = name if name is not None else f"figure {len(confidential) + 1}"
            confidential[key] = thing
            continue
        releases.append(_of(_read(thing, called), name, releases))
    if not releases:
        raise ParameterError("'releases' must hold at least one release.", TRY)
    return Found(tuple(releases), confidential, tuple(files))


def _of(found: ReportedRelease, name: str | None, before: Sequence[ReportedRelease]) -> ReportedRelease:
    """Return the release with its place and a unique name."""
    alike = next((one.name for one in before if one.facts == found.facts), None)
    wanted = name if name is not None else found.view.title
    taken = {one.name for one in before}
    called, number = wanted, 2
    while called in taken:
        called, number = f"{wanted} ({number})", number + 1
    return replace(found, name=called, place=len(before) + 1, alike=alike)


def _named(given: Any) -> list[tuple[str, str | None, Any]]:
    """Return for each object its name in errors, the name it was given or None, and itself."""
    if isinstance(given, pd.Series | pd.DataFrame | Homogeneity | Confidential | ProtectedFrame):
        return [("'releases'", None, given)]
    if isinstance(given, str | os.PathLike):
        return [(_called(given), _stem(given), given)]
    if isinstance(given, Mapping):
        if any(isinstance(name, Confidential) for name in given):
            raise ParameterError(
                "A confidential number cannot be the name of a release.", 'releases={"age": ...}.'
            )
        return [(f"releases[{got(_spelled(name))}]", _spelled(name), one) for name, one in given.items()]
    if isinstance(given, Sequence) and not isinstance(given, bytes | bytearray):
        return [
            (_called(one), _stem(one), one)
            if isinstance(one, str | os.PathLike)
            else (f"releases[{place}]", None, one)
            for place, one in enumerate(given)
        ]
    raise ParameterError(f"'releases' must be a release, or a list or dict of them (got {got(given)}).", TRY)


def _stem(path: str | os.PathLike[str]) -> str:
    return Path(checks.path(path, "releases", TRY)).stem


def _called(path: str | os.PathLike[str]) -> str:
    """Return the last part of a path, for errors."""
    return got(_stem(path) + Path(path).suffix)


def _spelled(name: Hashable) -> str:
    return ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _loaded(path: str | os.PathLike[str], called: str) -> Released:
    """Read the release of a file: as it was saved, or a frame that pandas wrote to Parquet."""
    if Path(path).suffix == ".parquet":
        check_pyarrow()
    if not os.path.isfile(path):
        raise ParameterError(f"{called} is missing: no such file.", TRY)
    return load(os.fspath(path))


def _read(thing: Any, called: str) -> ReportedRelease:
    """Check a release."""
    if isinstance(thing, ProtectedFrame):
        raise MetadataError(
            f"{called} is a protected frame, not a release.",
            "pass the object that private.dp.mean(...) or another release returned.",
        )
    if not isinstance(thing, pd.Series | pd.DataFrame):
        raise ParameterError(
            f"{called} must be a released Series or DataFrame (got {type(thing).__name__}).", TRY
        )
    try:
        facts = metadata.read(thing)
    except MetadataError as error:
        words = (
            str(error).partition("\n")[0].replace("This frame", "it").replace("The release metadata", "its")
        )
        raise MetadataError(f"{called} cannot be read as a release: {words}", error.hint) from None
    _check_known(thing.attrs[KEY], facts, called)
    try:
        view = View.of(thing)
        known = view.selected or ("plus_minus" in facts.error and view.half.shape)
    except MetadataError as error:
        words = str(error).partition("\n")[0].replace("release metadata", f"release metadata of {called}")
        raise MetadataError(words, AS_RETURNED) from None
    if not view.unchanged:
        raise MetadataError(
            f"The numbers or labels of {called} are not those that were released. Nothing was written.",
            "pass the release as it was returned; released.dp.verify() checks that.",
        )
    if not known:
        raise MetadataError(
            f"The release metadata of {called} does not hold the error of each number ('error').", AS_RETURNED
        )
    return ReportedRelease(view)


def _check_known(stored: Mapping[str, Any], facts: Metadata, called: str) -> None:
    """Refuse metadata that this version cannot report."""
    unknown = sorted(set(map(str, stored)) - set(Metadata.__dataclass_fields__) - MORE)
    if unknown:
        raise MetadataError(
            f"The release metadata of {called} holds {', '.join(map(got, unknown[:3]))}, which this version "
            f"does not know; it was made by pdprivacy {got(facts.version)}.",
            "make the report with the version that made the release, or a later one.",
        )
