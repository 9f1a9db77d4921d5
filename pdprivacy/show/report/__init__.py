"""A report on releases: one page of HTML for whoever is responsible for data protection.

The public edition is made of the releases, the declaration and the totals of the budget. The curator's
edition is CONFIDENTIAL: it also holds every charge, and figures made of exact counts.
"""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pandas as pd

from pdprivacy.checks import check_name
from pdprivacy.domain import Domain
from pdprivacy.errors import ParameterError, check_one_of, got
from pdprivacy.ledger import Budget, Ledger
from pdprivacy.protection import ProtectedFrame, find
from pdprivacy.schema import read_schema
from pdprivacy.show.report.costs import charges_of, totals
from pdprivacy.show.report.exhibits import check_pictures
from pdprivacy.show.report.inputs import Edition, Given, collect
from pdprivacy.show.report.report_page import Contents, check_templates, page
from pdprivacy.show.tracebacks import short_traceback
from pdprivacy.storage.release_files import written

__all__ = ["Report", "report"]

TITLE = "Privacy report"
ALL, OWNER = 0o666, 0o600
"""File permissions, before the umask."""


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
        _write(self.html, path, shared=self.edition == "public")

    def _repr_html_(self) -> str:
        framed = html.escape(self.html)
        return (
            f'<iframe title="{TITLE}" sandbox="" style="width:100%;height:40em" srcdoc="{framed}"></iframe>'
        )


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
    releases : a released Series or DataFrame, the path of a file of one, or a list or dict of
        these; the keys of a dict are their names in the report.
    ledger : the `Ledger` that was charged, its path or URL, or a `Budget`. ``name``: of the budget in it.
    declaration : a pandera schema, a `Domain`, or the protected frame.
    path : where to write the page; an existing file is replaced.
    edition : "public" holds nothing confidential, and takes releases alone. It shows the limit and the totals
        of the budget, which the next release would publish in ``attrs["dp"]["budget"]`` anyway, split into
        the cost of the releases of the report and of everything else. It omits the other charges, their
        times, and whether they were answered: labels reveal what somebody looked for, and whether a call
        failed may depend on the data. "curator" is CONFIDENTIAL: every charge, the audit of the ledger, and
        results of `risk_curve`, `tradeoff`, `utility`, `quality`, `homogeneity` and the like, passed among
        the releases.
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
    check_one_of("edition", edition, get_args(Edition))
    if edition is None:
        raise ParameterError("'edition' must be one of 'public', 'curator' (got None).")
    if not isinstance(pictures, bool):
        raise ParameterError(f"'pictures' must be True or False (got {got(pictures)}).")
    heading = TITLE if title is None else check_name(title, "title")
    check_templates()
    if pictures:
        check_pictures()
    found = collect(releases, edition)
    if path is not None:
        _check_path(path, [*found.files, *_files(ledger)])
    charges = charges_of(ledger, name, edition)
    contents = Contents(
        heading,
        edition,
        found.releases,
        found.confidential,
        charges,
        tuple(totals(found.releases, charges)),
        _domain(declaration),
        pictures,
        datetime.now(UTC),
    )
    made = Report(page(contents), edition, tuple(one.name for one in found.releases))
    if path is not None:
        made.write(path)
    return made


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


def _check_path(path: Any, taken: Sequence[Path]) -> None:
    """Refuse a path that no report can be written to."""
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise ParameterError(f"'path' must be the path of a file (got {got(path)}).", 'path="report.html".')
    try:
        target = Path(path).resolve()
        there, folder = target.is_dir(), target.parent.is_dir()
    except (OSError, ValueError):
        raise ParameterError("'path' must be the path of a file.", 'path="report.html".') from None
    if target in taken:
        raise ParameterError(
            "'path' is that of a release or of the ledger, which the report would replace. Nothing was "
            "written.",
            'path="report.html".',
        )
    if there or not folder:
        what = "is a folder" if there else "is in a folder that does not exist"
        raise ParameterError(f"'path' {what}. Nothing was written.", 'path="report.html".')


def _write(text: str, path: str | os.PathLike[str], *, shared: bool) -> None:
    """Write a file, whole or not at all."""
    _check_path(path, [])
    written({Path(path).resolve(): text.encode()}, 'path="report.html".', ALL if shared else OWNER)
