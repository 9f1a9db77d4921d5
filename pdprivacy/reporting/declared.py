"""What was declared of the data, which is public."""

from __future__ import annotations

from pdprivacy.domain import Column, Domain
from pdprivacy.markup import Markup
from pdprivacy.reporting.pieces import Contents, paragraphs
from pdprivacy.reporting.tables import Shown, labels_of, table

__all__ = ["declared"]

MOST_LABELS = 12

ROLES = {
    "quasi_identifier": "quasi-identifier: others may know it of a person",
    "sensitive": "sensitive: others should not learn it",
    "identifier": "identifier: never released",
}


def declared(contents: Contents) -> Markup:
    """The declaration, which is public, or that none was handed in."""
    domain = contents.domain
    lead = (
        "Bounds, labels and bins have to be known without a look at the data. They decide how much noise "
        "there is and which cells a table has, and they are public themselves. Values outside are refused, "
        "moved to the nearest bound, or left out. Whether all was really known without the data is for a "
        "person to judge: the program cannot tell."
    )
    if domain is None:
        return Markup(
            paragraphs([lead, "No declaration was handed to this report; the results name their columns."])
        )
    rows = [
        [
            str(one.name),
            one.kind,
            _values(one),
            "yes" if one.nullable else "no",
            ROLES.get(one.role or "", "none"),
        ]
        for one in domain.columns
    ]
    shown = Shown(
        "The declared columns", ["Column", "Kind", "Declared values", "May be missing", "Role"], rows,
        text=frozenset({1, 2, 3, 4}),
    )  # fmt: skip
    return Markup(paragraphs([lead]) + table(shown, "declared") + paragraphs(_compared(contents, domain)))


def _values(column: Column) -> str:
    told = []
    if column.categories is not None:
        names = [", ".join(labels_of(one)) for one in column.categories[:MOST_LABELS]]
        more = len(column.categories) - len(names)
        told.append(", ".join(names) + (f" and {more:,} more labels" if more else ""))
    elif column.lower is not None or column.upper is not None:
        low, high = ("" if end is None else f"{end:.15g}" for end in (column.lower, column.upper))
        told.append(f"{low} to {high}" if low and high else f"{low} and more" if low else f"{high} and less")
    if column.bins is not None:
        edges = [f"{edge:.15g}" for edge in column.bins[:MOST_LABELS]]
        more = len(column.bins) - len(edges)
        told.append(f"bins at {', '.join(edges)}" + (f" and {more:,} more edges" if more else ""))
    return "; ".join(told) or "none"


def _compared(contents: Contents, domain: Domain) -> list[str]:
    """Whether the declaration is that of the releases, as far as that can be told."""
    known = {str(name) for name in domain}
    others = list(
        dict.fromkeys(name for one in contents.releases for name in one.facts.columns if name not in known)
    )
    told = [f"Fingerprint of this declaration: {domain.fingerprint()}."]
    if others:
        told.append(
            f"Released, but not declared above: {', '.join(others)}. Made by a step that the result lists, "
            "or declared elsewhere."
        )
    account = None if contents.charges is None else contents.charges.account
    stated = None if account is None else account.terms.declaration
    if stated is not None:
        same = stated == domain.fingerprint()
        told.append(
            "The data of the budget were declared just so."
            if same
            else "The data of the budget were last declared otherwise than above."
        )
    return told
