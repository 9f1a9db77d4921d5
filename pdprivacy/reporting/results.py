"""What was released, how exact it is, and what an attack on it still gains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pdprivacy.markup import Markup
from pdprivacy.plot.canvas import percent
from pdprivacy.reporting import words
from pdprivacy.reporting.pictures import release_picture
from pdprivacy.reporting.pieces import Contents, box, first_upper, many, pairs, paragraphs, stated
from pdprivacy.reporting.prose import escape
from pdprivacy.reporting.reading import Release
from pdprivacy.reporting.tables import Shown, release_table, table

__all__ = ["accuracies", "disclosure", "released"]


def released(contents: Contents) -> Markup:
    """Each release with its numbers, picture and facts."""
    return Markup("".join(_release(one, contents) for one in contents.releases))


def _release(release: Release, contents: Contents) -> Markup:
    facts = release.facts
    pieces = [Markup(f'<h3 id="release-{release.place}">{release.place}. {escape(release.name)}</h3>')]
    if facts.seeded:
        pieces.append(box(["Not private: made with noise from a seed."]))
    if release.alike is not None:
        pieces.append(
            paragraphs(
                [
                    f"It says the same of itself as “{release.alike}”. Equal numbers may come of different "
                    "noise, so its cost is counted again. If it is the same result, hand it in once."
                ]
            )
        )
    pieces.append(
        pairs(
            [
                ("What", first_upper(release.label)),
                ("Of the records where", _joined(facts.filters)),
                ("After", "; ".join(facts.lineage)),
                ("As shares", _normalized(facts.normalize)),
                ("With", words.noise(release)),
                ("Cost", stated(release.loss.epsilon, release.loss.delta)),
                ("Number of records (public)", "" if facts.rows is None else f"{facts.rows:,}"),
                ("Its id", facts.release_id),
            ]
        )
    )
    picture = release_picture(release) if contents.pictures else None
    if picture is not None:
        pieces.append(picture)
    pieces.append(
        table(
            release_table(release, f"{release.place}. {first_upper(release.label)}, as released"),
            f"t{release.place}",
        )
    )
    pieces.append(Markup(f'<div class="small">{paragraphs(words.accuracy(release))}</div>'))
    return Markup("".join(pieces))


def _joined(conditions: Sequence[str]) -> str:
    return conditions[0] if len(conditions) == 1 else " and ".join(f"({one})" for one in conditions)


def _normalized(way: str | None) -> str:
    known = {"all": "of all records", "index": "of each row", "columns": "of each column"}
    return "" if way is None else known.get(way, way)


def accuracies(contents: Contents) -> Markup:
    """The size of the noise of each release."""
    rows = [[one.name, f"{one.released.size:,}", words.spread(one)] for one in contents.releases]
    shown = Shown("The size of the noise", ["Result", "Numbers", "±"], rows, text=frozenset({2}))
    return Markup(
        paragraphs(
            [
                "± is half of an interval for the noise: how far a released number may be from the one that "
                "the same data would give without noise. It does not tell how far the data are from the "
                "population."
            ]
        )
        + table(shown, "accuracy")
        + paragraphs(
            [
                "Where a number is made of several noisy ones, as a mean whose number of records is "
                "private, ± is an approximation: good where the noise is small beside the count, and rough "
                "for tiny groups."
            ]
        )
    )


def disclosure(contents: Contents) -> Markup:
    """What a homogeneity attack on each table gains."""
    known = [one for one in contents.releases if one.facts.dr_ha is not None]
    lead = (
        "The attack: somebody knows a few things about a person, such as age and region, and so in which "
        "cell of a table this person is counted. If the noisy counts show one single label there, they take "
        "it to be that of the person. A count that is released as less than one half is read as nobody."
    )
    if not known:
        return paragraphs(
            [
                lead,
                "For none of the results here a risk was estimated. That is done for a table of counts of "
                "sensitive columns by quasi-identifiers, released once; without an estimate nothing is "
                "known, and not that there is no risk.",
            ]
        )
    rows = [
        [one.name, ", ".join(_names(one, rows=True)), ", ".join(_names(one, rows=False)), *_shares(one)]
        for one in known
    ]
    shown = Shown(
        "Homogeneity attacks, as estimated from the released counts alone",
        ["Result", "Known to the attacker", "Learned", "of the cells", "of the records"],
        rows,
        text=frozenset({1, 2}),
    )
    others = len(contents.releases) - len(known)
    told = [
        "The shares are expected ones: of the cells, and of the records in them, for which the noisy "
        "counts show one single label, and a label that at least one record in the cell really has. A "
        "mixed cell that reads so counts in full, although it tells the truth about some of its records "
        "only.",
        "They are estimates by a model, rough where the noise is large beside the counts, and of this one "
        "attack on this one table. They are no guarantee: what holds whatever an attacker knows or tries "
        "is epsilon. A label that nearly everybody has is guessed right without any table, too.",
    ]
    if others:
        told.append(
            f"For the other {many(others, 'result')} no such figure is known, which does not mean no risk."
        )
    return Markup(paragraphs([lead]) + table(shown, "attack") + paragraphs(told))


def _names(release: Release, *, rows: bool) -> list[str]:
    axes: Any = release.released.axes
    index = axes[0] if rows else axes[-1]
    return [str(name) for name in index.names if name is not None]


def _shares(release: Release) -> list[str]:
    found = release.facts.dr_ha or {}
    return [percent(min(float(found[name]), 1.0)) for name in ("by_cells", "by_records")]
