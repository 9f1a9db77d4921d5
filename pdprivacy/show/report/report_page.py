"""The page of a report: what the templates show, as one file without scripts that fetches nothing."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import import_module
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pdprivacy._version import __version__
from pdprivacy.core.privacy import Confidential
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.errors import MissingExtraError, NoPictureError
from pdprivacy.ledger import Entry
from pdprivacy.releases.metadata import COUNTS, Released
from pdprivacy.releases.view import View, mechanism_text, title_of_charge
from pdprivacy.risk.equivalence_classes import Anonymity
from pdprivacy.risk.table_risk import ConfidentialTables
from pdprivacy.show import plots
from pdprivacy.show.report.costs import Charges, Total, payments
from pdprivacy.text.markup import Table
from pdprivacy.text.numbers import (
    cost,
    joined,
    label,
    listed,
    many,
    number_text,
    percent,
    plain,
    printable,
    signed,
)

if TYPE_CHECKING:
    import jinja2
    from matplotlib.axes import Axes

    from pdprivacy.show.report import Edition, ReportedRelease


MOST_LABELS = 12
ROLES: dict[str | None, str] = {
    "quasi_identifier": "quasi-identifier: others may know it of a person",
    "sensitive": "sensitive: others should not learn it",
    "identifier": "identifier: never released",
}
SAMPLES = ("sample(", "suppress_outliers(")


@dataclass(frozen=True)
class Contents:
    """The contents of a report."""

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
        return [release for release in self.releases if release.facts.seeded]

    @property
    def sampled(self) -> list[ReportedRelease]:
        """The releases of a secret sample."""
        return [
            release
            for release in self.releases
            if any(step.startswith(SAMPLES) for step in release.facts.lineage)
        ]

    @property
    def columns(self) -> list[str]:
        """The released columns."""
        return list(dict.fromkeys(name for release in self.releases for name in release.facts.columns))

    @property
    def undeclared(self) -> list[str]:
        """The released columns that the declaration lacks."""
        declared = {str(name) for name in self.domain} if self.domain is not None else set()
        return [name for name in self.columns if name not in declared]

    @property
    def waiting(self) -> list[int]:
        """The charges without a known answer, by number."""
        entries = () if self.charges is None else self.charges.entries
        return [entry.number for entry in entries if not entry.answered]

    @property
    def exposed(self) -> list[ReportedRelease]:
        """The releases with an estimated disclosure risk."""
        return [release for release in self.releases if "by_column" in (release.facts.dr_ha or {})]

    @property
    def unestimated(self) -> list[tuple[str, str]]:
        """The name of each release whose disclosure risk is not known, and the reason."""
        risks = [(release.name, release.facts.dr_ha or {}) for release in self.releases]
        return [(name, str(risk["reason"])) for name, risk in risks if "reason" in risk]

    @property
    def versions(self) -> list[str]:
        """The versions of pdprivacy that made the releases."""
        return sorted({release.facts.version for release in self.releases})

    @property
    def newer(self) -> list[str]:
        """The versions above the one that makes the report."""
        return [version for version in self.versions if _order(version) > _order(__version__)]

    def figure_tables(self, name: str) -> list[Table]:
        """Return the numbers of a confidential figure."""
        figure, caption = self.figures[name], f"{name} (confidential)"
        if isinstance(figure, ConfidentialTables):
            return [frame_table(frame, f"{caption}: {part}") for part, frame in figure.tables()]
        if isinstance(figure, Confidential):
            figure = pd.Series({name: float(figure)}, name="value")
        return [frame_table(figure, caption)]

    def costs_table(self) -> Table:
        """Return the cost of each release."""
        rows = [
            [
                release.name,
                mechanism_text(release.facts.mechanism, release.facts.p),
                cost(release.loss.epsilon),
                cost(release.loss.delta),
            ]
            for release in self.releases
        ]
        return Table(["Result", "Mechanism", "epsilon", "delta"], rows, "Cost of each result", text={1})

    def accuracy_table(self) -> Table:
        """Return the margins of error of each release."""
        rows = []
        for release in self.releases:
            error = (
                "selected: see the result"
                if release.view.without_margins
                else release.view.span or "not known"
            )
            rows.append([release.name, f"{release.view.released.size:,}", error])
        return Table(["Result", "Numbers", "±"], rows, "Margins of error", text={2})

    def risk_table(self) -> Table:
        """Return the estimated disclosure risk of tables."""
        rows = []
        for release in self.exposed:
            risk = release.facts.dr_ha or {}
            known_names, learned_names = (", ".join(risk[part]) for part in ("by", "by_column"))
            shares = [percent(min(float(risk[name]), 1.0)) for name in ("by_cells", "by_records")]
            rows.append([release.name, known_names, learned_names, *shares])
        head = ["Result", "Known to the attacker", "Learned", "of the cells", "of the records"]
        caption = "Homogeneity attacks, estimated from the released counts alone"
        return Table(head, rows, caption, text={1, 2})

    def declared_table(self) -> Table:
        """Return the declaration."""
        columns = () if self.domain is None else self.domain.columns
        rows = [
            [
                str(column.name),
                column.kind,
                _declared(column),
                "yes" if column.nullable else "no",
                ROLES.get(column.role, "none"),
            ]
            for column in columns
        ]
        head = ["Column", "Kind", "Declared values", "May be missing", "Role"]
        return Table(head, rows, "The declared columns", text={1, 2, 3, 4})

    def versions_table(self) -> Table:
        """Return versions and fingerprints."""
        rows = [[release.name, release.facts.version, release.facts.fingerprint] for release in self.releases]
        head = ["Result", "Made by pdprivacy", "Fingerprint of the numbers"]
        return Table(head, rows, "Versions and fingerprints", text={1, 2})

    def charges_table(self) -> Table:
        """Return the charges of the budget."""
        entries = () if self.charges is None else self.charges.entries
        paid: dict[int, list[str]] = {}
        names = {release.number: release.name for release in self.releases}
        for position, number in payments(self.releases, entries).items():
            paid.setdefault(number, []).append(names[position])
        risks = accumulate((entry.dr_ha or 0.0 for entry in entries[:MOST_ROWS]), max)
        rows = [
            _charge(entry, risk, paid.get(entry.number, ()))
            for entry, risk in zip(entries, risks, strict=False)
        ]
        head = ["No.", "What", "Mechanism", "epsilon", "delta", "When (UTC)", "Answered"]
        head += ["Risk of all tables so far", "Id", "In this report"]
        note = f"The first {MOST_ROWS} of {len(entries):,} charges; ledger.entries(name) has all of them."
        note = note if len(entries) > MOST_ROWS else ""
        return Table(head, rows, "All charges", text={1, 2, 5, 6, 8, 9}, note=note)


def _order(version: str) -> tuple[int, ...]:
    """The leading numbers of a version."""
    digits = (part[: len(part) - len(part.lstrip("0123456789"))][:9] for part in version.split("."))
    return tuple(map(int, takewhile(bool, digits)))


def _declared(column: Column) -> str:
    """The declared values of a column in words."""
    texts = []
    if column.categories is not None:
        texts.append(_first([label(category, None) for category in column.categories], "labels"))
    elif column.lower is not None or column.upper is not None:
        low, high = ("" if end is None else column.end_text(end) for end in (column.lower, column.upper))
        texts.append(f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}")
    if column.bins is not None:
        texts.append(f"bins at {_first([number_text(edge) for edge in column.bins], 'edges')}")
    return "; ".join(texts) or "none"


def _first(texts: list[str], noun: str) -> str:
    more = len(texts) - MOST_LABELS
    return ", ".join(texts[:MOST_LABELS]) + (f" and {more:,} more {noun}" if more > 0 else "")


def _charge(entry: Entry, risk: float, paid: Iterable[str]) -> list[object]:
    """Return the cells of a charge; ``risk``: the largest so far, 0 where none was estimated."""
    epsilon, delta, rho = entry.amounts
    return [
        entry.number,
        title_of_charge(entry.label),
        entry.mechanism,
        f"rho {cost(rho)}" if epsilon is None else cost(epsilon),
        "" if not delta else cost(delta),
        f"{entry.time:%Y-%m-%d %H:%M}",
        "yes" if entry.answered else "no",
        percent(risk) if risk else "" if entry.risk_unknown is None else "not known",
        entry.release or "",
        ", ".join(paid),
    ]


def check_extras(pictures: bool) -> None:
    """Raise MissingExtraError if Jinja2 is not installed, or matplotlib, which ``pictures`` need."""
    needed = [("jinja2", "A report needs Jinja2", 'pip install "pdprivacy[report]"')]
    without = 'pip install "pdprivacy[plot]", or report(..., pictures=False).'
    if pictures:
        needed.append(("matplotlib", "The pictures of a report need matplotlib", without))
    for module, need, hint in needed:
        try:
            import_module(module)
        except ModuleNotFoundError:
            raise MissingExtraError(f"{need}, which is not installed. Nothing was written.", hint) from None


def _printable_value(value: object) -> object:
    """Spell out what cannot be printed; HTML of a template stays as it is."""
    return value if hasattr(value, "__html__") else printable(value, None)


@cache
def _template() -> jinja2.Template:
    """Return the template of the page, compiled once."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pdprivacy.show.report"),
        autoescape=True,
        finalize=_printable_value,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    used = (cost, listed, many, release_table, release_picture, figure_picture, budget_picture)
    environment.globals |= {function.__name__: function for function in used}
    environment.filters |= {"percent": percent, "kinds": kinds, "is_short": is_short}
    return environment.get_template("page.html")


def page(contents: Contents) -> str:
    """Return the whole page as HTML."""
    return str(_template().render(report=contents, version=__version__))


# ---------------------------------------------------------------- tables of releases and other frames

MOST_ROWS = 200
"""Rows of one table; a note says if there are more."""

WHOLE = 14
"""Rows of a table that is not broken over pages."""

LETTERS = 90
"""Letters in a line of A4; a column whose share is shorter than one of its words breaks words."""

MOST_WIDE = 4
"""Columns of released numbers side by side on A4; more are listed with one number per row."""

MOST_PLAIN = 9
"""Columns of any other frame, with its labels."""


def is_short(table: Table) -> bool:
    """Return whether a table is not broken over pages."""
    return len(table.rows) <= WHOLE


def kinds(table: Table) -> list[str]:
    """Return the class of each column: numbers, text, or text with words that have to be broken."""
    most = max(8, LETTERS // len(table.head))
    classes = []
    for column, head in enumerate(table.head):
        cells = [head, *(row[column] for row in table.rows)]
        broken = any(len(word) > most for cell in cells for word in str(cell).split())
        classes.append("long" if broken else "" if column in table.left else "n")
    return classes


def labels_of(key: object) -> list[str]:
    """Return the labels of a row or a column, one per level."""
    levels = key if isinstance(key, tuple) else (key,)
    return [label(level, None) if str(level).strip() else "(blank)" for level in levels]


def _names(index: pd.Index[Any], default: str) -> list[str]:
    """Return the names of the levels; ``default`` for a level without one."""
    return [default if name is None else labels_of(name)[0] for name in index.names]


def _omission_note(whole: int, noun: str) -> str:
    """Return a note if there are more rows than shown."""
    if whole <= MOST_ROWS:
        return ""
    return f"The first {MOST_ROWS} of {whole:,} {noun}; the release itself holds all of them."


def _numbers(view: View) -> tuple[list[list[str]], list[list[str]], list[list[tuple[str, str]]]]:
    """Return the labels of rows and columns, none of a Series, and the numbers with their errors."""
    frame = view.table
    rows, columns = (list(range(min(length, MOST_ROWS))) for length in frame.shape)
    keys = [labels_of(key) for key in frame.index[: len(rows)].tolist()]
    tops = [labels_of(top) for top in frame.columns[: len(columns)].tolist()]
    return keys, [[]] if isinstance(view.released, pd.Series) else tops, view.pairs(rows, columns)


def release_table(release: ReportedRelease) -> Table:
    """Return the released numbers with their margins of error, side by side or one per row."""
    view, caption = release.view, f"{release.number}. {release.view.title}, as released"
    frame, series = view.table, isinstance(view.released, pd.Series)
    heads = _names(frame.index, "of" if series or view.without_margins else "row")
    keys, tops, pairs = _numbers(view)
    if not series and (view.without_margins or (frame.columns.nlevels == 1 and len(tops) <= MOST_WIDE)):
        across = frame.columns.names[0]
        named = [", ".join(top) if across is None else f"{across}: {', '.join(top)}" for top in tops]
        rows = [[*key, *map(joined, line)] for key, line in zip(keys, pairs, strict=True)]
        return Table([*heads, *named], rows, caption, len(heads), note=_omission_note(len(frame), "rows"))
    heads += [] if series else _names(frame.columns, "column")
    ends = ["released", "±"][: 1 if view.without_margins and not view.unknown else 2]
    none = "" if view.without_margins else "not known"
    cells = [[[value, signed(half) if half else none][: len(ends)] for value, half in line] for line in pairs]
    return _long_table(heads, ends, keys, tops, cells, caption, frame.size)


def _long_table(
    heads: list[str],
    ends: list[str],
    keys: list[list[str]],
    tops: list[list[str]],
    cells: list[list[list[str]]],
    caption: str,
    size: int,
) -> Table:
    """Return a table with a row per number: the labels of its row and column, and its cells."""
    rows = [
        [*key, *top, *cell]
        for key, line in zip(keys, cells, strict=True)
        for top, cell in zip(tops, line, strict=True)
    ]
    note = _omission_note(size, "numbers")
    return Table([*heads, *ends], rows[:MOST_ROWS], caption, len(heads), note=note)


def frame_table(frame: Released, caption: str) -> Table:
    """Return any frame; one of many columns with a number per row."""
    whole = frame.to_frame(frame.name or "value") if isinstance(frame, pd.Series) else frame
    keys = [labels_of(key) for key in whole.index[:MOST_ROWS].tolist()]
    tops = [", ".join(labels_of(name)) for name in whole.columns.tolist()]
    cells = [[plain(whole.iat[line, column]) for column in range(len(tops))] for line in range(len(keys))]
    heads = _names(whole.index, "row")
    if len(tops) + len(heads) <= MOST_PLAIN:
        rows = [[*key, *line] for key, line in zip(keys, cells, strict=True)]
        return Table([*heads, *tops], rows, caption, len(heads), note=_omission_note(len(whole), "rows"))
    each = [[[cell] for cell in line] for line in cells]
    return _long_table(
        [*heads, "column"], ["value"], keys, [[top] for top in tops], each, caption, whole.size
    )


# ---------------------------------------------------------------- pictures

WIDE = 5.4
LEAST, MOST = 2.2, 7.5
"""Inches of a picture."""

MOST_DRAWING = 250_000
"""Bytes of an SVG drawing; a larger one becomes a PNG image."""

MOST_TOLD = 12
"""Numbers that the words of a picture list one by one."""

MOST_COUNTS, MOST_CELLS = 60, 600
"""Rows of counts, and cells of a table, that are drawn."""

MOST_CHARGES = 60
"""Charges that are drawn one by one."""


@dataclass(frozen=True)
class Picture:
    """An image as data of a page, its size in pixels, and its content in words."""

    source: str
    width: int
    height: int
    words: str


def release_picture(view: View) -> Picture | None:
    """Draw a release; None for one number, for labels, and for more numbers than can be seen."""
    released = view.released
    counted = view.facts.statistic in COUNTS
    each = 0.95 if not counted else 0.26 if isinstance(released, pd.DataFrame) else 0.35
    if not 1 < released.size <= MOST_CELLS or len(released) > (MOST_COUNTS if counted else MOST_TOLD):
        return None
    return _picture(lambda ax: plots.draw(released, ax=ax), _words(view), 1.5 + each * len(released))


def figure_picture(name: str, frame: Any) -> Picture | None:
    """Draw a confidential figure; None if it has no picture."""
    frame = frame.sizes if isinstance(frame, Anonymity) else frame
    if not isinstance(frame, pd.DataFrame):
        return None
    words = f"CONFIDENTIAL. {name}, drawn; the table below has the numbers."
    return _picture(lambda ax: plots.draw(frame, ax=ax), words)


def budget_picture(charges: Charges) -> Picture | None:
    """Draw the charges of a budget, for the curator; None for none, and for too many."""
    account = charges.account
    if account is None or not 0 < len(charges.entries) <= MOST_CHARGES:
        return None
    from pdprivacy.show.pages import entry_table

    rest, total, entries = account.left, account.terms.total, entry_table(charges.entries)
    words = (
        f"CONFIDENTIAL. {many(len(entries), 'charge')} to the budget, drawn; the table below has the numbers."
    )
    return _picture(lambda ax: plots.draw_budget(entries, total, rest, ax=ax), words)


def _picture(draw: Callable[[Axes], Any], words: str, high: float = 4.0) -> Picture | None:
    """Draw on new axes in the default style."""
    import matplotlib
    import matplotlib.style
    from matplotlib.figure import Figure

    with matplotlib.style.context("default"), matplotlib.rc_context({"svg.hashsalt": "pdprivacy"}):
        figure = Figure(figsize=(WIDE, min(max(high, LEAST), MOST)), layout="constrained")
        try:
            draw(figure.subplots())
        except NoPictureError:
            return None
        kind, data = "svg+xml", _saved(figure, "svg")
        if len(data) > MOST_DRAWING:
            kind, data = "png", _saved(figure, "png")
    width, height = (round(96 * inches) for inches in figure.get_size_inches())
    return Picture(f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}", width, height, words)


def _saved(figure: Any, kind: str) -> bytes:
    buffer = io.BytesIO()
    without = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    figure.savefig(buffer, format=kind, dpi=160, metadata=without)
    return buffer.getvalue()


def _words(view: View) -> str:
    """Return the content of a picture in words."""
    frame = view.table
    if frame.size > MOST_TOLD:
        return f"{view.title}: {_range(frame)} Each is in the table below."
    keys, tops, pairs = _numbers(view)
    numbers = [
        f"{', '.join([*key, *top])} {joined(pair)}"
        for key, line in zip(keys, pairs, strict=True)
        for top, pair in zip(tops, line, strict=True)
    ]
    return f"{view.title}: {'; '.join(numbers)}."


def _range(frame: pd.DataFrame) -> str:
    numbers = frame.to_numpy(dtype=np.float64)
    finite = numbers[np.isfinite(numbers)]
    ends = f", from {plain(finite.min())} to {plain(finite.max())}" if finite.size else ""
    return f"{many(frame.size, 'number')}{ends}."
