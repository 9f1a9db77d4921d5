"""The releases of a report: found, read and checked."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pandas as pd

from pdprivacy import checks, metadata
from pdprivacy.errors import MetadataError, ParameterError, PrivacyError, got
from pdprivacy.metadata import KEY, Metadata
from pdprivacy.privacy import Approx, Confidential, Pure, Unit, loss
from pdprivacy.protection import ProtectedFrame
from pdprivacy.releases.disclosure.cells import Homogeneity
from pdprivacy.show.recognition import recognized
from pdprivacy.show.view import Released, View
from pdprivacy.step.parquet import SHAPE, check_pyarrow, from_bytes

__all__ = ["Edition", "Found", "Given", "Release", "collect"]

Edition: TypeAlias = Literal["public", "curator"]
Given: TypeAlias = "Released | str | os.PathLike[str]"

MORE = {"counts", "iterations", "steps"}
"""Further metadata of some releases: rounds, steps, and noisy numbers of records."""

TRY = 'pdprivacy.report({"mean age": mean, "risk by region": table}, path="report.html").'


@dataclass(frozen=True)
class Release:
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

    releases: tuple[Release, ...]
    confidential: dict[str, Any] = field(default_factory=dict)
    files: tuple[Path, ...] = ()


def collect(given: Any, edition: Edition) -> Found:
    """Return the releases and the confidential figures in the order in which they were given.

    Raises ParameterError for an empty list, for an object that is no release, and in the public edition for
    confidential figures; MetadataError for a release that was changed or has unreadable metadata.
    """
    named = _named(given)
    releases: list[Release] = []
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
        raise ParameterError("'releases' holds no release, so that there is nothing to report on.", TRY)
    return Found(tuple(releases), confidential, tuple(files))


def _of(found: Release, name: str | None, before: Sequence[Release]) -> Release:
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
    """Read the release of a Parquet file, written by a step or by pandas."""
    check_pyarrow()
    if not os.path.isfile(path):
        raise ParameterError(f"{called} is missing: no such file.", TRY)
    data, frame, failure = b"", None, ""
    try:
        data = Path(path).read_bytes()
        frame = pd.read_parquet(io.BytesIO(data))
    except Exception as error:  # whatever Arrow raises for bytes that are no Parquet
        failure = type(error).__name__
    if frame is None:
        raise MetadataError(
            f"{called} cannot be read as a Parquet file ({failure}).", "released.to_parquet(path) writes one."
        )
    return from_bytes(data, _called(path).strip("'")) if SHAPE in frame.attrs else frame


def _read(thing: Any, called: str) -> Release:
    """Check a release.

    A Series that went through a Parquet file comes back as a frame of one column: it becomes a Series again.
    """
    if isinstance(thing, ProtectedFrame):
        raise MetadataError(
            f"{called} is a protected frame, and no release.",
            "hand in what private.dp.mean(...) and the like give.",
        )
    if not isinstance(thing, pd.Series | pd.DataFrame):
        raise ParameterError(
            f"{called} must be a released Series or DataFrame (got {type(thing).__name__}).", TRY
        )
    released: Released = thing
    try:
        facts = metadata.read(released)
    except MetadataError as error:
        words = (
            str(error).partition("\n")[0].replace("This frame", "it").replace("The release metadata", "its")
        )
        raise MetadataError(f"{called} is no readable release: {words}", error.hint) from None
    _check_known(released.attrs[KEY], facts, called)
    _check_kinds(facts, called)
    if isinstance(released, pd.DataFrame) and released.shape[1] == 1 and not metadata.verify(released):
        alone = released.iloc[:, 0]
        alone.attrs = dict(released.attrs)
        released = alone if metadata.verify(alone) else released
    if not metadata.verify(released):
        raise MetadataError(
            f"The numbers or labels of {called} are not those that were released. Nothing was written.",
            "hand in the release as it was returned; verify() tells.",
        )
    return Release(_readable(View.of(released), called))


def _readable(view: View, called: str) -> View:
    """Refuse metadata that do not hold the error of each number."""
    with suppress(MetadataError):
        if view.selected or ("plus_minus" in view.facts.error and view.half.shape):
            return view
    raise MetadataError(
        f"The release metadata of {called} does not hold the error of each number: 'error'.",
        "hand in the release as it was returned.",
    )


def _check_known(stored: Mapping[str, Any], facts: Metadata, called: str) -> None:
    """Refuse metadata that this version cannot report."""
    unknown = sorted(set(map(str, stored)) - set(Metadata.__dataclass_fields__) - MORE)
    if unknown:
        raise MetadataError(
            f"The release metadata of {called} holds {', '.join(map(got, unknown[:3]))}, which this version "
            f"does not know; it was made by pdprivacy {got(facts.version)}.",
            "make the report with the version that made the release, or a later one.",
        )


def _number(value: Any, low: float = -math.inf, high: float = math.inf) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _or_none(value: Any, kind: type) -> bool:
    return value is None or (isinstance(value, kind) and not isinstance(value, bool))


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(_number(one, 0) for one in value)


def _is_risk(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, dict) and all(_number(value.get(name), 0, 1 + 1e-9) for name in RISKS)


RISKS = ("by_cells", "by_records")


def _check_kinds(facts: Metadata, called: str) -> None:
    """Refuse metadata of the wrong types."""
    known = {
        **{name: isinstance(getattr(facts, name), str) for name in ("statistic", "mechanism", "version")},
        **{name: _texts(getattr(facts, name)) for name in ("columns", "lineage", "filters")},
        **{name: _or_none(getattr(facts, name), str) for name in ("unit", "bounding", "constraint")},
        **{name: _or_none(getattr(facts, name), str) for name in ("release_id", "normalize", "calibration")},
        "rows": _or_none(facts.rows, int),
        "p": facts.p is None or _number(facts.p),
        "epsilon": _number(facts.epsilon, 0, math.nextafter(math.inf, 0)) and facts.epsilon > 0,
        "delta": _number(facts.delta, 0) and facts.delta < 1,
        "neighbors": facts.neighbors in ("add_remove", "replace_one"),
        "seeded": isinstance(facts.seeded, bool),
        "error": isinstance(facts.error, dict),
        "budget": isinstance(facts.budget, dict) and all(_is_pair(facts.budget.get(one)) for one in SUMS),
        "releases": _number(facts.releases, 1) and isinstance(facts.releases, int),
        "dr_ha": _is_risk(facts.dr_ha),
    }
    wrong = [name for name, right in known.items() if not right]
    if wrong:
        raise MetadataError(
            f"The release metadata of {called} is not that of a release: {', '.join(map(repr, wrong))}.",
            "hand in the release as it was returned.",
        )
    try:
        loss(facts.epsilon, facts.delta)
    except PrivacyError:
        raise MetadataError(f"The release metadata of {called} states no privacy loss.") from None


SUMS = ("total", "spent")
