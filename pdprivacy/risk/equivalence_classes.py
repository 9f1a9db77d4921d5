"""Classical disclosure control of the confidential table: k-anonymity, l-diversity and t-closeness.

CONFIDENTIAL, for the curator: all of it is computed from the exact counts. Nothing is charged, and nothing of
it may be released. These measures describe the records as they are, without noise; none of them is a
privacy guarantee.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pdprivacy.checks import whole
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.spec import columns_of
from pdprivacy.core.privacy import Confidential
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import ParameterError
from pdprivacy.hints.examples import Example
from pdprivacy.risk.classes import distinct_labels, entropy_labels, equal_distances, ordered_distances
from pdprivacy.risk.table_risk import DEFAULTS, ConfidentialTables, TableRisk, cells_at, confidential
from pdprivacy.types import Floats, Integers, Labels, Mask

LIMITS = (2, 3, 5, 10)
"""Sizes below which classes are counted."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Anonymity(ConfidentialTables):
    """CONFIDENTIAL: k-anonymity, l-diversity and t-closeness of the records, and the classes at risk.

    k : the number of records of the smallest class.
    summary : rows "below 2", "below 3", "below 5" and "below 10" (classes of fewer records), "risky" and
        "all"; columns "classes", "records" and "share of records".
    diversity : a row per sensitive column; columns "distinct l", "entropy l", "t", and the "distance" between
        labels that "t" is based on: "ordered" or "equal".
    risky : the largest risky classes, by their quasi-identifiers: their "records", and the number of distinct
        "labels". With several sensitive columns it is the smallest number, and "column" names the column.
    sizes : the number of "classes" of each size, and their "records"; ``report.sizes.dp.plot()`` draws the
        histogram.
    """

    k: Confidential
    summary: pd.DataFrame
    diversity: pd.DataFrame
    risky: pd.DataFrame
    sizes: pd.DataFrame

    def tables(self) -> list[tuple[str, pd.DataFrame]]:
        """Return the frames with their captions."""
        return [
            (f"classes of few records (k = {self.k:.0f})", self.summary),
            ("l-diversity and t-closeness", self.diversity),
            ("largest risky classes", self.risky),
            ("classes by size", self.sizes),
        ]


def anonymity(
    protected: Facts,
    by: Labels | None = None,
    sensitive: Labels | None = None,
    top: int = 10,
    *,
    min_records: int = 5,
    min_labels: int = 2,
    ordered: Labels | None = None,
) -> Anonymity:
    """CONFIDENTIAL, for the curator: k-anonymity, l-diversity and t-closeness of the records without noise.

    A class is the set of records with equal quasi-identifiers: a non-empty cell of their table. Nulls are a
    label where they are declared. Nothing is charged. Returns `Anonymity`.

    by, sensitive : column labels; by default the columns declared with the role "quasi_identifier", and those
        with the role "sensitive".
    top : how many risky classes are listed, larger ones first, because they disclose more people.
    min_records, min_labels : a class is risky if it has fewer records, or fewer distinct labels of a
        sensitive column.
    ordered : sensitive columns whose labels are declared in a meaningful order, such as levels of education.

    k : the smallest class has k records, so each record shares its quasi-identifiers with k - 1 others or
        more (Sweeney 2002).
    distinct l : every class has l distinct labels or more.
    entropy l : the entropy of the labels of every class is log(l) or more. For both (Machanavajjhala et al.
        2007), each sensitive column is judged alone, in the classes of ``by``.
    t : the earth mover's distance between the shares of the labels in a class and those in all records is at
        most t (Li et al. 2007). For numbers, bins and ``ordered`` columns it is the "ordered" distance:
        labels are as far apart as their ranks, the first and the last by 1. For other labels it is the
        "equal" distance, 1 between any two: half the l1 distance of the shares. A null has no rank, so the
        distance of a column with nulls among its records is "equal", which is never smaller.

    Sources: L. Sweeney (2002), "k-anonymity: a model for protecting privacy"; A. Machanavajjhala, D. Kifer,
    J. Gehrke, M. Venkitasubramaniam (2007), "l-diversity: privacy beyond k-anonymity"; N. Li, T. Li, S.
    Venkatasubramanian (2007), "t-closeness: privacy beyond k-anonymity and l-diversity". The histogram of
    sizes is figure 2 of F. Liu, X. Zhao (2023), "Disclosure risk from homogeneity attack in differentially
    privately sanitized frequency distribution".

    Raises ParameterError, DeclarationError, TableTooLargeError.

    >>> import pandas as pd
    >>> from pdprivacy import Column, Domain
    >>> sex = Column("sex", "category", categories=("f", "m"), role="quasi_identifier")
    >>> domain = Domain((sex, Column("ill", "boolean", role="sensitive")))
    >>> frame = pd.DataFrame({"sex": ["f", "f", "m"], "ill": [True, False, True]})
    >>> report = frame.dp.protect(domain, epsilon=1).dp.anonymity()
    >>> report.k
    1.0 (confidential)
    >>> report.diversity.round(2)
    confidential  distinct l  entropy l     t distance
    sensitive
    ill                    1        1.0  0.33    equal
    """
    top, min_records = whole(top, "top", 1), whole(min_records, "min_records", 1)
    min_labels = whole(min_labels, "min_labels", 1)
    question = TableRisk.of(protected, by, sensitive, "anonymity", DEFAULTS)
    ranked = _ranked(protected, ordered, question)
    filled, tables, records = question.classes()
    labels = np.stack([distinct_labels(table) for table in tables], axis=1)
    risky = (records < min_records) | (labels.min(axis=1) < min_labels)
    frames = (
        _summary(records, risky),
        _diversity(question, tables, labels, ranked),
        _largest(question, filled, records, labels, risky, top),
        _sizes(records),
    )
    kinds = ("classes of few records", "diversity", "risky classes", "class sizes")
    marked = (confidential(frame, kind) for frame, kind in zip(frames, kinds, strict=True))
    return Anonymity(Confidential(records.min()), *marked)


def _ranked(protected: Facts, ordered: Labels | None, question: TableRisk) -> list[Integers | None]:
    """Return the positions of the labels of each sensitive column in order; None where they have no order."""
    names = [] if ordered is None else [column.name for column in columns_of(protected, ordered, "anonymity")]
    if not set(names) <= {column.name for column in question.sensitive}:
        raise ParameterError(
            "'ordered' must name columns of 'sensitive'.",
            Example('anonymity("region", "health", ordered="health").'),
        )
    return [_order(column, column.name in names) for column in question.sensitive]


def _order(column: Column, declared: bool) -> Integers | None:
    labels = column.labels("anonymity")
    if column.kind in ("integer", "float") and column.bins is None:
        return np.array(sorted(range(len(labels)), key=labels.__getitem__))
    return np.arange(len(labels)) if declared or column.bins is not None else None


def _summary(records: Integers, risky: Mask) -> pd.DataFrame:
    kinds = {f"below {limit}": records < limit for limit in LIMITS}
    kinds |= {"risky": risky, "all": np.ones(len(records), dtype=bool)}
    of_kinds = np.array([records[classes].sum() for classes in kinds.values()])
    columns = {
        "classes": [int(classes.sum()) for classes in kinds.values()],
        "records": of_kinds,
        "share of records": of_kinds / records.sum(),
    }
    return pd.DataFrame(columns, index=pd.Index(kinds))


def _diversity(
    question: TableRisk, tables: Sequence[Integers], labels: Integers, ranked: Sequence[Integers | None]
) -> pd.DataFrame:
    distances = [_distances(table, order) for table, order in zip(tables, ranked, strict=True)]
    names: list[object] = [column.name for column in question.sensitive]
    return pd.DataFrame(
        {
            "distinct l": labels.min(axis=0),
            "entropy l": [float(entropy_labels(table).min()) for table in tables],
            "t": [float(each.max()) for each, _ in distances],
            "distance": [kind for _, kind in distances],
        },
        index=pd.Index(names, name="sensitive", tupleize_cols=False),
    )


def _distances(table: Integers, order: Integers | None) -> tuple[Floats, str]:
    """Return the distance of each class from all records, and its kind; a declared null is the last label."""
    if order is None or len(order) < 2 or table[:, len(order) :].any():
        return equal_distances(table), "equal"
    return ordered_distances(table[:, order]), "ordered"


def _largest(
    question: TableRisk, filled: Integers, records: Integers, labels: Integers, risky: Mask, top: int
) -> pd.DataFrame:
    """Return the risky classes, the larger ones first, and of equal ones those with fewer labels."""
    fewest, classes = labels.min(axis=1), np.flatnonzero(risky)
    classes = classes[np.lexsort((fewest[classes], -records[classes]))][:top]
    columns: dict[str, object] = {"records": records[classes], "labels": fewest[classes]}
    if len(question.sensitive) > 1:
        names = [str(column.name) for column in question.sensitive]
        columns["column"] = [names[axis] for axis in labels[classes].argmin(axis=1)]
    return pd.DataFrame(columns, index=cells_at(question.by, filled[classes], "anonymity"))


def _sizes(records: Integers) -> pd.DataFrame:
    sizes, classes = np.unique(records, return_counts=True)
    return pd.DataFrame({"classes": classes, "records": sizes * classes}, index=pd.Index(sizes, name="size"))
