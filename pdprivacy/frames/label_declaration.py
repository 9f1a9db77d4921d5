"""The row step that declares private labels that a release found."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from pdprivacy.checks import is_encodable, is_null, plain
from pdprivacy.core.rows import Node, Transform
from pdprivacy.core.rows.raw_labels import declared_labels
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.declaration.intervals import INT64
from pdprivacy.errors import DeclarationError, ParameterError, kind

OTHER = "(other)"
"""The label of texts that were not found."""


def labels_step(domain: Domain, released: Any, facts: Mapping[str, Any], other: Any = OTHER) -> Transform:
    """Declare the labels of each column that were found; all others become ``other``, or null for None.

    Raises
    ------
    DeclarationError : a column that is not declared as it was when its labels were found.
    ParameterError : ``other`` is a label that was found, or of another type; or no label is left.
    """
    nodes = []
    for (name, labels), declared in zip(_labels_by_column(released).items(), facts["declared"], strict=True):
        column = domain[name]
        if not column.private_labels or column.kind != declared:
            raise DeclarationError(
                f"column {name!r} is declared otherwise than when its labels were found.",
                "use the labels before any other step on the column",
            )
        nodes.append(declared_labels(Node.of(column), labels, _other(column, labels, other)))
    return Transform.of("use()", domain, *nodes)


def _labels_by_column(released: Any) -> dict[Hashable, list[Any]]:
    """The labels of each column, sorted, each once."""
    index = released.index
    if isinstance(released, pd.DataFrame):
        by_column = {name: released.iloc[:, at].tolist() for at, name in enumerate(released.columns)}
    else:
        by_column = {name: index.get_level_values(at).tolist() for at, name in enumerate(index.names)}
    return {name: sorted(set(map(plain, labels))) for name, labels in by_column.items()}


def _other(column: Column, labels: Sequence[Any], other: Any) -> Any:
    """The label of all that were not found, None for null; by default null in a column of whole numbers."""
    label = plain(other)
    if column.kind == "integer" and label == OTHER:
        label = None
    if is_null(label):
        if not labels:
            raise ParameterError(
                f"no label of column {column.name!r} was found, so every cell would become null.",
                "find_labels with a larger epsilon or delta",
            )
        return None
    whole_number = isinstance(label, int) and not isinstance(label, bool) and label in INT64
    fits = whole_number if column.kind == "integer" else isinstance(label, str) and is_encodable(label)
    if not fits:
        like = "a whole number" if column.kind == "integer" else "a text"
        raise ParameterError(
            f"'other' must be {like}, as are the labels of column {column.name!r}, or None "
            f"(got {kind(other)}).",
            "other=None, which makes them null",
        )
    if label in labels:
        raise ParameterError(
            f"'other' must not be a label that was found in column {column.name!r} (got {label!r}).",
            "another label, or other=None, which makes them null",
        )
    return label
