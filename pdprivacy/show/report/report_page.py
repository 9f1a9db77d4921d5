"""The page of a report: what the templates show, as one file without scripts that fetches nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pandas as pd

from pdprivacy._version import __version__
from pdprivacy.domain import Column, Domain
from pdprivacy.errors import MissingExtraError
from pdprivacy.ledger import Entry
from pdprivacy.privacy import Confidential
from pdprivacy.releases.disclosure_risk import Homogeneity
from pdprivacy.show import numbers
from pdprivacy.show.markup import Table, printable
from pdprivacy.show.numbers import cost, label, number_text, percent
from pdprivacy.show.report.costs import Charges, Total, payments
from pdprivacy.show.report.exhibits import (
    MOST_ROWS,
    Picture,
    budget_picture,
    figure_picture,
    frame_table,
    is_short,
    kinds,
    release_picture,
    release_table,
)
from pdprivacy.show.report.inputs import Edition, ReportedRelease
from pdprivacy.show.view import mechanism_text

__all__ = ["Contents", "check_templates", "page"]

MOST_LABELS = 12
ROLES = {
    "quasi_identifier": "quasi-identifier: others may know it of a person",
    "sensitive": "sensitive: others should not learn it",
    "identifier": "identifier: never released",
}
SAMPLES = ("sample(", "suppress_outliers(")


@dataclass(frozen=True)
class Contents:
    """What a report is made of."""

    title: str
    edition: Edition
    releases: tuple[ReportedRelease, ...]
    figures: Mapping[str, Any]
    charges: Charges | None
    totals: tuple[Total, ...]
    domain: Domain | None
    pictures: bool
    time: datetime

    @property
    def curator(self) -> bool:
        """Whether this is the confidential edition."""
        return self.edition == "curator"

    @property
    def seeded(self) -> list[ReportedRelease]:
        """The releases whose noise can be repeated."""
        return [one for one in self.releases if one.facts.seeded]

    @property
    def sampled(self) -> list[ReportedRelease]:
        """The releases of a secret sample."""
        return [one for one in self.releases if any(step.startswith(SAMPLES) for step in one.facts.lineage)]

    @property
    def columns(self) -> list[str]:
        """The released columns."""
        return list(dict.fromkeys(name for one in self.releases for name in one.facts.columns))

    @property
    def undeclared(self) -> list[str]:
        """The released columns that the declaration lacks."""
        known = {str(name) for name in self.domain} if self.domain is not None else set()
        return [name for name in self.columns if name not in known]

    @property
    def waiting(self) -> list[int]:
        """The charges without a known answer, by number."""
        entries = () if self.charges is None else self.charges.entries
        return [entry.number for entry in entries if not entry.answered]

    @property
    def exposed(self) -> list[ReportedRelease]:
        """The releases with an estimated disclosure risk."""
        return [one for one in self.releases if one.facts.dr_ha is not None]

    @property
    def versions(self) -> list[str]:
        """The versions of pdprivacy that made the releases."""
        return sorted({one.facts.version for one in self.releases})

    @property
    def newer(self) -> list[str]:
        """The versions above the one that makes the report."""
        return [one for one in self.versions if _order(one) > _order(__version__)]

    def release_table(self, release: ReportedRelease) -> Table:
        """Return the numbers of a release."""
        return release_table(release.view, f"{release.place}. {release.view.title}, as released")

    def release_picture(self, release: ReportedRelease) -> Picture | None:
        """Draw a release."""
        return release_picture(release.view) if self.pictures else None

    def budget_picture(self) -> Picture | None:
        """Draw the budget."""
        return budget_picture(self.charges) if self.pictures and self.charges is not None else None

    def figure_picture(self, name: str) -> Picture | None:
        """Draw a confidential figure."""
        return figure_picture(name, self.figures[name]) if self.pictures else None

    def figure_tables(self, name: str) -> list[Table]:
        """Return the numbers of a confidential figure."""
        figure, caption = self.figures[name], f"{name} (confidential)"
        if isinstance(figure, Homogeneity):
            return [
                frame_table(figure.summary, f"{caption}: cells and records"),
                frame_table(figure.exposed, f"{caption}: most exposed cells"),
            ]
        if isinstance(figure, Confidential):
            figure = pd.Series({name: float(figure)}, name="value")
        return [frame_table(figure, caption)]

    def costs_table(self) -> Table:
        """Return the cost of each release."""
        rows = [
            [
                one.name,
                mechanism_text(one.facts.mechanism, one.facts.p),
                cost(one.loss.epsilon),
                cost(one.loss.delta),
            ]
            for one in self.releases
        ]
        return Table(["Result", "Mechanism", "epsilon", "delta"], rows, "Cost of each result", text={1})

    def accuracy_table(self) -> Table:
        """Return the margins of error of each release."""
        rows = []
        for one in self.releases:
            error = "selected: see the result" if one.view.selected else one.view.span or "not known"
            rows.append([one.name, f"{one.view.released.size:,}", error])
        return Table(["Result", "Numbers", "±"], rows, "Margins of error", text={2})

    def risk_table(self) -> Table:
        """Return the estimated disclosure risk of tables."""
        rows = []
        for one in self.exposed:
            found, axes = one.facts.dr_ha or {}, one.view.released.axes
            known, learned = (_names(axes[place]) for place in (0, -1))
            shares = [percent(min(float(found[name]), 1.0)) for name in ("by_cells", "by_records")]
            rows.append([one.name, known, learned, *shares])
        head = ["Result", "Known to the attacker", "Learned", "of the cells", "of the records"]
        caption = "Homogeneity attacks, estimated from the released counts alone"
        return Table(head, rows, caption, text={1, 2})

    def declared_table(self) -> Table:
        """Return the declaration."""
        columns = () if self.domain is None else self.domain.columns
        rows = [
            [str(one.name), one.kind, _declared(one), "yes" if one.nullable else "no", _role(one)]
            for one in columns
        ]
        head = ["Column", "Kind", "Declared values", "May be missing", "Role"]
        return Table(head, rows, "The declared columns", text={1, 2, 3, 4})

    def versions_table(self) -> Table:
        """Return versions and fingerprints."""
        rows = [[one.name, one.facts.version, one.facts.fingerprint] for one in self.releases]
        head = ["Result", "Made by pdprivacy", "Fingerprint of the numbers"]
        return Table(head, rows, "Versions and fingerprints", text={1, 2})

    def charges_table(self) -> Table:
        """Return the charges of the budget."""
        entries = () if self.charges is None else self.charges.entries
        paid: dict[int, list[str]] = {}
        names = {one.place: one.name for one in self.releases}
        for place, number in payments(self.releases, entries).items():
            paid.setdefault(number, []).append(names[place])
        rows = [_charge(entry, paid.get(entry.number, ())) for entry in entries[:MOST_ROWS]]
        head = ["No.", "What", "Mechanism", "epsilon", "delta", "When (UTC)", "Answered"]
        head += ["Cumulative risk", "Id", "In this report"]
        note = f"The first {MOST_ROWS} of {len(entries):,} charges; ledger.entries(name) has all of them."
        note = note if len(entries) > MOST_ROWS else ""
        return Table(head, rows, "All charges", text={1, 2, 5, 6, 8, 9}, note=note)


def _names(index: pd.Index[Any]) -> str:
    return ", ".join(str(name) for name in index.names if name is not None)


def _order(version: str) -> tuple[int, ...]:
    """The leading numbers of a version."""
    found = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        found.append(int(digits[:9]))
    return tuple(found)


def _role(column: Column) -> str:
    return ROLES.get(column.role or "", "none")


def _declared(column: Column) -> str:
    """The declared values of a column in words."""
    told = []
    if column.categories is not None:
        told.append(_first([label(one, None) for one in column.categories], "labels"))
    elif column.lower is not None or column.upper is not None:
        low, high = ("" if end is None else column.end_text(end) for end in (column.lower, column.upper))
        told.append(f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}")
    if column.bins is not None:
        told.append(f"bins at {_first([number_text(edge) for edge in column.bins], 'edges')}")
    return "; ".join(told) or "none"


def _first(texts: list[str], what: str) -> str:
    more = len(texts) - MOST_LABELS
    return ", ".join(texts[:MOST_LABELS]) + (f" and {more:,} more {what}" if more > 0 else "")


def _charge(entry: Entry, paid: Iterable[str]) -> list[object]:
    epsilon, delta, rho = entry.amounts
    return [
        entry.number,
        entry.label,
        entry.mechanism,
        f"rho {cost(rho)}" if epsilon is None else cost(epsilon),
        "" if not delta else cost(delta),
        f"{entry.time:%Y-%m-%d %H:%M}",
        "yes" if entry.answered else "no",
        "" if entry.dr_ha is None else percent(entry.dr_ha),
        entry.release or "",
        ", ".join(paid),
    ]


def check_templates() -> None:
    """Raise MissingExtraError if Jinja2 is not installed."""
    try:
        import jinja2  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError(
            "A report needs Jinja2, which is not installed. Nothing was written.",
            'pip install "pdprivacy[report]"',
        ) from None


def _spelled(value: object) -> object:
    """Spell out what cannot be printed; HTML of a template stays as it is."""
    return value if hasattr(value, "__html__") else printable(value, None)


def page(contents: Contents) -> str:
    """Return the whole page as HTML."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pdprivacy.show.report"),
        autoescape=True,
        finalize=_spelled,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {name: getattr(numbers, name) for name in ("cost", "listed", "loss_text", "many")}
    environment.filters |= {"percent": percent, "kinds": kinds, "is_short": is_short}
    return str(environment.get_template("page.html").render(report=contents, version=__version__))
