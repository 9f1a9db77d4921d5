"""What the sections of a report share: what it is made of, and pieces of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pdprivacy.domain import Domain
from pdprivacy.markup import Markup
from pdprivacy.reporting.costs import Charges, Total
from pdprivacy.reporting.figures import cost
from pdprivacy.reporting.prose import escape
from pdprivacy.reporting.reading import Edition, Release

__all__ = ["Contents", "box", "first_upper", "items", "many", "pairs", "paragraphs", "quoted", "stated"]


@dataclass(frozen=True)
class Contents:
    """What a report is made of."""

    title: str
    edition: Edition
    releases: tuple[Release, ...]
    figures: dict[str, Any]
    charges: Charges | None
    totals: tuple[Total, ...]
    domain: Domain | None
    pictures: bool
    time: datetime

    @property
    def seeded(self) -> list[Release]:
        """The releases whose noise can be repeated."""
        return [one for one in self.releases if one.facts.seeded]


def paragraphs(texts: Sequence[object]) -> Markup:
    """A paragraph each."""
    return Markup("".join(f"<p>{escape(one)}</p>" for one in texts))


def items(texts: Sequence[object]) -> Markup:
    """A list."""
    return Markup(f"<ul>{''.join(f'<li>{escape(one)}</li>' for one in texts)}</ul>")


def box(texts: Sequence[object]) -> Markup:
    """What must not be overlooked."""
    return Markup(f'<div class="box">{paragraphs(texts)}</div>')


def pairs(given: Sequence[tuple[str, object]]) -> Markup:
    """Names with their values, without those that have none."""
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in given if value)
    return Markup(f'<dl class="facts">{listed}</dl>')


def many(number: int, what: str) -> str:
    """How many, in words."""
    return f"{number:,} {what}{'s'[: number != 1]}"


def quoted(releases: Sequence[Release]) -> str:
    """The names of releases in a sentence."""
    return ", ".join(f"“{one.name}”" for one in releases)


def first_upper(text: str) -> str:
    """The beginning of a sentence."""
    return text[:1].upper() + text[1:]


def stated(epsilon: Any, delta: Any) -> str:
    """A cost in words."""
    return f"epsilon {cost(epsilon)}" + (f", delta {cost(delta)}" if delta else "")
