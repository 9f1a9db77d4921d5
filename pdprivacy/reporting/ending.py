"""What a report does not say, and how it was made."""

from __future__ import annotations

from pdprivacy._version import __version__
from pdprivacy.markup import Markup
from pdprivacy.reporting.pieces import Contents, items, paragraphs, quoted
from pdprivacy.reporting.tables import Shown, table

__all__ = ["limits", "made"]

PARTS = ("sample(", "suppress_outliers(")


def limits(contents: Contents) -> Markup:
    """What a reader must not take from the report."""
    told = [
        "What is true of many people is no secret of one. The results may well say something about a "
        "person who is not in the data at all; no epsilon prevents that.",
        "The report repeats what the results say of themselves, and checks that their numbers and labels "
        "are those that were released. That tells mistakes, not forgery: whoever can write a result can "
        "write what it says, too.",
        "Costs add up over everything ever released from the same data, under whatever name. A result or a "
        "budget that this report was not given is not in it.",
        "The guarantee is about what is released. It does not bind whoever holds the data, or can run "
        "programs beside them, and not what was said about the data elsewhere.",
        "± is of the noise alone: errors in the data, and those of a sample, come on top.",
        "Epsilon bounds what any attacker may gain, and the estimated risk is that of one attack. Neither "
        "is a judgement whether a publication is lawful or wise.",
    ]
    drawn = [one for one in contents.releases if any(step.startswith(PARTS) for step in one.facts.lineage)]
    if drawn:
        told.append(
            f"Made of records that were drawn by chance: {quoted(drawn)}. What that costs holds only as long "
            "as nobody knows which records were drawn."
        )
    if contents.edition == "public":
        told.append(
            "This is the public edition: made of the results, the declaration and the sums of the budget "
            "alone, without anything that was computed from the data and has no noise."
        )
    return items(told)


def made(contents: Contents) -> Markup:
    """By which versions, and what was checked."""
    rows = [[one.name, one.facts.version, one.facts.fingerprint] for one in contents.releases]
    versions = {one.facts.version for one in contents.releases}
    shown = Shown(
        "Versions and fingerprints", ["Result", "Made by pdprivacy", "Fingerprint of the numbers"], rows,
        text=frozenset({1, 2}),
    )  # fmt: skip
    told = [
        f"Made on {contents.time:%d %B %Y} (UTC) by pdprivacy {__version__}. The numbers and labels of every "
        "result are those of its fingerprint."
    ]
    if len(versions) > 1:
        told.append(
            f"The results were made by {len(versions)} versions of pdprivacy. Each is reported by what it "
            "says of itself."
        )
    newer = sorted(one for one in versions if _order(one) > _order(__version__))
    if newer:
        told.append(f"Newer than the version that made this report: {', '.join(newer)}.")
    return Markup(paragraphs(told) + table(shown, "versions"))


def _order(version: str) -> tuple[int, ...]:
    found = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        found.append(int(digits[:9]))
    return tuple(found)
