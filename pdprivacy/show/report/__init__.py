"""A report on releases: one page of HTML for those responsible for data protection.

The public edition is made of the releases, the declaration and the totals of the budget. The curator's
edition is CONFIDENTIAL: it also holds every charge, and figures made of exact counts.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import pandas as pd

from pdprivacy import checks
from pdprivacy.checks import check_name, flag, one_of
from pdprivacy.core.privacy import Approx, Confidential, Pure, Unit, loss
from pdprivacy.declaration.domain import Domain
from pdprivacy.declaration.schema import read_schema
from pdprivacy.errors import MetadataError, ParameterError, got, short_traceback, short_tracebacks
from pdprivacy.frames import ProtectedFrame, find
from pdprivacy.ledger import Budget, Ledger
from pdprivacy.pipeline.storage import check_pyarrow, load, write_or_refuse
from pdprivacy.releases import metadata
from pdprivacy.releases.metadata import Metadata, Released, recognized
from pdprivacy.releases.view import View
from pdprivacy.risk.table_risk import ConfidentialTables
from pdprivacy.show.report.costs import charges_of, totals
from pdprivacy.show.report.report_page import Contents, check_extras, page
from pdprivacy.text.marks import KEY
from pdprivacy.text.markup import embedded

__all__ = ["Collected", "Edition", "Given", "Report", "ReportedRelease", "collect", "report"]

TITLE = "Privacy report"
ALL, OWNER = 0o666, 0o600
"""File permissions, before the umask."""


@short_tracebacks
@dataclass(frozen=True)
class Report:
    """A report: one self-contained page of HTML.

    Attributes
    ----------
    html : the page.
    edition : "public", or "curator", which is CONFIDENTIAL.
    releases : the names of the releases, in their order.
    """

    html: str = field(repr=False)
    edition: Edition
    releases: tuple[str, ...]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page, whole or not at all; a file that is there is replaced.

        The curator's edition can be read by its owner alone. Raises ParameterError if the page cannot be
        written.
        """
        _check_path(path, [])
        rights = ALL if self.edition == "public" else OWNER
        write_or_refuse({Path(path).resolve(): self.html.encode()}, 'path="report.html".', rights)

    def _repr_html_(self) -> str:
        return embedded(self.html, TITLE)


@short_traceback
def report(
    releases: Given | Mapping[Any, Any] | Sequence[Any],
    *,
    ledger: Ledger | Budget | str | os.PathLike[str] | None = None,
    name: str | None = None,
    declaration: Any = None,
    path: str | os.PathLike[str] | None = None,
    edition: Edition = "public",
    title: str | None = None,
    pictures: bool = True,
) -> Report:
    """Write an HTML report of releases: what was released, its cost, its accuracy and the remaining risk.

    Nothing is charged and no cell of the data is read: the report is made of the metadata of the releases.
    Costs are those of the budget if there is one, and the sum of the releases otherwise. Needs Jinja2 (extra
    ``report``).

    Parameters
    ----------
    releases : a released Series or DataFrame, the path of a saved one, or a list or dict of these; the
        keys of a dict are their names in the report.
    ledger : the `Ledger` that was charged, its path or URL, or a `Budget`.
    name : the name of the budget in the ledger; may be left out where the ledger has only one.
    declaration : a pandera schema, a `Domain`, or the protected frame.
    path : where to write the page; an existing file is replaced.
    edition : "public" holds nothing confidential, and takes releases alone. It shows the limit and the totals
        of the budget, which the next release would publish in ``attrs["dp"]["budget"]`` anyway, split into
        the cost of the releases of the report and of everything else. It omits the other charges, their
        times, and whether they were answered: labels reveal what somebody looked for, and whether a call
        failed may depend on the data. "curator" is CONFIDENTIAL: every charge, the audit of the ledger, and
        results of `risk_curve`, `tradeoff`, `utility`, `quality`, `homogeneity`, `anonymity` and the like,
        passed among the releases.
    title : the title of the page.
    pictures : whether to draw; needs matplotlib (extra ``plot``).

    Raises
    ------
    MetadataError : a release was changed, or its metadata are unknown to this version.
    ParameterError : no release, or a confidential figure in the public edition.
    LedgerError, MissingExtraError : the budget cannot be read; Jinja2 or matplotlib is not installed. Nothing
        is written after any error.

    >>> import pandas as pd, pandera.pandas as pa
    >>> import pdprivacy
    >>> schema = pa.DataFrameSchema({"member": pa.Column(bool, metadata={"dp": {}})})
    >>> private = pd.DataFrame({"member": [True, False]}).dp.protect(schema, epsilon=1)
    >>> count = private.dp.count(epsilon=0.5)
    >>> pdprivacy.report({"members": count}, ledger=private.dp.budget, pictures=False)
    Report(edition='public', releases=('members',))
    """
    one_of(edition, "edition", get_args(Edition))
    pictures = flag(pictures, "pictures")
    heading = TITLE if title is None else check_name(title, "title")
    check_extras(pictures)
    collected = collect(releases, edition)
    if path is not None:
        _check_path(path, [*collected.files, *_files(ledger)])
    charges = charges_of(ledger, name, edition)
    contents = Contents(
        heading,
        edition,
        collected.releases,
        collected.confidential,
        charges,
        tuple(totals(collected.releases, charges)),
        _domain(declaration),
        pictures,
        datetime.now(UTC),
    )
    document = Report(page(contents), edition, tuple(release.name for release in collected.releases))
    if path is not None:
        document.write(path)
    return document


def _domain(declaration: Any) -> Domain | None:
    """Return the declaration."""
    if declaration is None:
        return None
    if isinstance(declaration, pd.DataFrame | ProtectedFrame):
        return find(declaration).domain
    return read_schema(declaration)


def _files(ledger: Any) -> list[Path]:
    """Return the file of a ledger, which no report may replace."""
    address = ledger.address if isinstance(ledger, Ledger) else ledger
    if isinstance(address, str) and "://" in address:
        return []
    return [Path(address).resolve()] if isinstance(address, str | os.PathLike) else []


def _check_path(path: Any, used_paths: Sequence[Path]) -> None:
    """Refuse a path that no report can be written to."""
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise ParameterError(f"'path' must be the path of a file (got {got(path)}).", 'path="report.html".')
    try:
        target = Path(path).resolve()
        is_folder, folder = target.is_dir(), target.parent.is_dir()
    except (OSError, ValueError):
        raise ParameterError("'path' must be the path of a file.", 'path="report.html".') from None
    if target in used_paths:
        raise ParameterError(
            "'path' is that of a release or of the ledger, which the report would replace. Nothing was "
            "written.",
            'path="report.html".',
        )
    if is_folder or not folder:
        fault = "is a folder" if is_folder else "is in a folder that does not exist"
        raise ParameterError(f"'path' {fault}. Nothing was written.", 'path="report.html".')


# ---------------------------------------------------------------- the releases of a report

Edition: TypeAlias = Literal["public", "curator"]
Given: TypeAlias = "Released | str | os.PathLike[str]"

MORE = {"counts", "iterations", "steps"}
"""Further metadata of some releases: rounds, steps, and noisy numbers of records."""

AS_RETURNED = "pass the release as it was returned."
TRY = 'pdprivacy.report({"mean age": mean, "risk by region": table}, path="report.html").'


@dataclass(frozen=True)
class ReportedRelease:
    """A release, checked: its numbers are those that were released, and its metadata are readable.

    ``name``: its name in the report. ``number``: 1, 2, 3, ... in the report. ``alike``: the name of an
    earlier release with equal metadata.
    """

    view: View
    name: str = ""
    number: int = 0
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
        return float((self.facts.dr_ha or {}).get("by_records") or 0)

    @property
    def loss(self) -> Pure | Approx:
        """The privacy loss by its metadata."""
        return loss(self.facts.epsilon, self.facts.delta)


@dataclass(frozen=True)
class Collected:
    """Releases, and confidential figures by name; ``files``: the paths of releases."""

    releases: tuple[ReportedRelease, ...]
    confidential: dict[str, Any] = field(default_factory=dict)
    files: tuple[Path, ...] = ()


def collect(given: Any, edition: Edition) -> Collected:
    """Return the releases and the confidential figures in the order in which they were given.

    Raises ParameterError for an empty list, for an object that is no release, and in the public edition for
    confidential figures; MetadataError for a release that was changed or has unreadable metadata.
    """
    releases: list[ReportedRelease] = []
    confidential: dict[str, Any] = {}
    seen: set[int | Path] = set()
    for source, name, item in _objects_with_names(given):
        path = Path(item).resolve() if isinstance(item, str | os.PathLike) else None
        identity = id(item) if path is None else path
        if identity in seen:  # the very same, handed in twice
            continue
        seen.add(identity)
        result = item if path is None else _load(item, source)
        if recognized(result).what == "confidential":
            if edition == "public":
                raise ParameterError(
                    f"{source} is made of exact counts, CONFIDENTIAL, and the public edition takes releases "
                    "alone. Nothing was written.",
                    "leave it out, or edition='curator'.",
                )
            key = name if name is not None else f"figure {len(confidential) + 1}"
            confidential[key] = result
            continue
        releases.append(_of(_read(result, source), name, releases))
    if not releases:
        raise ParameterError("'releases' must hold at least one release.", TRY)
    files = tuple(file for file in seen if isinstance(file, Path))
    return Collected(tuple(releases), confidential, files)


def _of(release: ReportedRelease, name: str | None, before: Sequence[ReportedRelease]) -> ReportedRelease:
    """Return the release with its number and a unique name."""
    alike = next((earlier.name for earlier in before if earlier.facts == release.facts), None)
    base = name if name is not None else release.view.title
    names = {earlier.name for earlier in before}
    unique, number = base, 2
    while unique in names:
        unique, number = f"{base} ({number})", number + 1
    return replace(release, name=unique, number=len(before) + 1, alike=alike)


def _objects_with_names(releases: Any) -> list[tuple[str, str | None, Any]]:
    """Return for each object its name in errors, the name it was given or None, and itself."""
    if isinstance(releases, pd.Series | pd.DataFrame | ConfidentialTables | Confidential | ProtectedFrame):
        return [("'releases'", None, releases)]
    if isinstance(releases, str | os.PathLike):
        return [(_file_name(releases), _stem(releases), releases)]
    if isinstance(releases, Mapping):
        if any(isinstance(name, Confidential) for name in releases):
            raise ParameterError(
                "A confidential number cannot be the name of a release.", 'releases={"age": ...}.'
            )
        return [
            (f"releases[{got(_printable_name(name))}]", _printable_name(name), item)
            for name, item in releases.items()
        ]
    if isinstance(releases, Sequence) and not isinstance(releases, bytes | bytearray):
        return [
            (_file_name(item), _stem(item), item)
            if isinstance(item, str | os.PathLike)
            else (f"releases[{position}]", None, item)
            for position, item in enumerate(releases)
        ]
    raise ParameterError(
        f"'releases' must be a release, or a list or dict of them (got {got(releases)}).", TRY
    )


def _stem(path: str | os.PathLike[str]) -> str:
    return Path(checks.path(path, "releases", TRY)).stem


def _file_name(path: str | os.PathLike[str]) -> str:
    """Return the last part of a path, for errors."""
    return got(_stem(path) + Path(path).suffix)


def _printable_name(name: Hashable) -> str:
    return ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _load(path: str | os.PathLike[str], source: str) -> Released:
    """Read the release of a file: as it was saved, or a frame that pandas wrote to Parquet."""
    if Path(path).suffix == ".parquet":
        check_pyarrow()
    if not os.path.isfile(path):
        raise ParameterError(f"{source} is missing: no such file.", TRY)
    return load(os.fspath(path))


def _read(released: Any, source: str) -> ReportedRelease:
    """Check a release."""
    if isinstance(released, ProtectedFrame):
        raise MetadataError(
            f"{source} is a protected frame, not a release.",
            "pass the object that private.dp.mean(...) or another release returned.",
        )
    if not isinstance(released, pd.Series | pd.DataFrame):
        raise ParameterError(
            f"{source} must be a released Series or DataFrame (got {type(released).__name__}).", TRY
        )
    try:
        facts = metadata.read(released)
    except MetadataError as error:
        raise MetadataError(f"{source} cannot be read as a release. {error.message}", error.hint) from None
    _check_known(released.attrs[KEY], facts, source)
    try:
        view = View.of(released)
        known = view.without_margins or ("plus_minus" in facts.error and view.half.shape)
    except MetadataError as error:
        raise MetadataError(f"{source} cannot be reported. {error.message}", AS_RETURNED) from None
    if not view.unchanged:
        raise MetadataError(
            f"The numbers or labels of {source} are not those that were released. Nothing was written.",
            "pass the release as it was returned; released.dp.verify() checks that.",
        )
    if not known:
        raise MetadataError(
            f"The release metadata of {source} does not hold the error of each number ('error').", AS_RETURNED
        )
    return ReportedRelease(view)


def _check_known(stored: Mapping[str, Any], facts: Metadata, source: str) -> None:
    """Refuse metadata that this version cannot report."""
    unknown = sorted(set(map(str, stored)) - set(Metadata.__dataclass_fields__) - MORE)
    if unknown:
        raise MetadataError(
            f"The release metadata of {source} holds {', '.join(map(got, unknown[:3]))}, which this version "
            f"does not know; it was made by pdprivacy {got(facts.version)}.",
            "make the report with the version that made the release, or a later one.",
        )
