"""A declaration of every kind of column, and the filters on it."""

from __future__ import annotations

from pdprivacy import Column, Domain
from pdprivacy.core.rows import Transform, query

LABELS = ("south", "north", "it's", "a`b", "&|")
DOMAIN = Domain(
    (
        Column("age", "integer", nullable=True, lower=18, upper=65, bins=(18, 30, 45, 65)),
        Column("family size", "integer", nullable=True, lower=1, upper=5, categories=(5, 4, 3, 2, 1)),
        Column("income", "float", nullable=True, lower=-1.5, upper=2.5),
        Column("region", "category", nullable=True, categories=LABELS),
        Column("town", "category", nullable=True),
        Column("member", "boolean", nullable=True),
        Column("id", "integer", lower=0, upper=9, role="identifier"),
    )
)


def parse(text: str, domain: Domain) -> Transform:
    return query(domain, text)
