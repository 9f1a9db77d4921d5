"""Private labels: the release that finds the labels of columns of which nobody knows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from pdprivacy.checks import flag, whole
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.label_search import LabelSearch
from pdprivacy.core.gate.spec import AnswerLabels, Call, Drawn, Release, columns_of, name_index
from pdprivacy.core.mechanisms.partition_selection import PartitionSelection
from pdprivacy.core.noise import RandomState
from pdprivacy.core.privacy import Rational, loss
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import DeclarationError, ParameterError
from pdprivacy.hints.examples import quoted
from pdprivacy.releases.publish import attach, risk_noted
from pdprivacy.types import Labels

CHOSEN = (
    "A label is shown if its noisy count is above a threshold, so the counts of rare labels are too high on "
    "average."
)
"""The note on counts of labels that were chosen by these counts."""


def find_labels(
    protected: Facts,
    columns: Labels,
    *,
    epsilon: Rational,
    delta: Rational = 0,
    counts: bool = False,
    max_labels: int = 1,
    rng: RandomState = None,
    release_id: str | None = None,
) -> Release[pd.DataFrame | pd.Series[Any]]:
    """Find the labels of columns of texts or whole numbers whose labels nobody knows without the data.

    Each label of the data is found with a probability that grows with its number of records, and only labels
    of the data are found. No mechanism of this epsilon and delta finds a label with a larger probability. A
    label of one record is found with probability ``delta`` (half of it under "replace_one"), and one of
    ``error["always"]`` records or more with certainty. ``private.use(found)`` declares the labels.

    A text is the label that it is: "a" and "a " are two labels. A whole number is one label, also if it is
    stored as a float. Nulls are no labels. Labels are sorted in the result.

    Several columns have combinations of labels, each of which is found by its own number of records. A column
    then gets the labels of all combinations that were found. For the labels of each column by itself, call
    `find_labels` for each, with a part of the epsilon.

    Under "replace_one", a record changes two labels, each of which has half of epsilon and delta. With
    ``unit=``, a unit counts for one label: that of one of its records, which is drawn at random.

    The memory that is needed grows with the number of distinct labels of the data.

    Parameters
    ----------
    columns : a column declared with ``metadata={"dp": {"labels": "private"}}``, or a list of such columns.
    epsilon, delta : the cost; ``delta`` must be positive, and should be far below one over the number of
        records.
    counts : whether to return the noisy number of records of each label, at no further cost: the labels are
        the same with and without counts. As a label is shown if its noisy count is above a threshold, the
        counts of rare labels are too high on average; for unbiased counts, declare the labels and release
        `value_counts`.
    max_labels : the number of labels that a unit counts for; 1.
    rng, release_id : as for all releases.

    Returns a DataFrame with the labels, one column for each of ``columns``; with ``counts``, a Series of the
    counts, labelled as by `DataFrame.value_counts`.

    Raises
    ------
    DeclarationError : a column without private labels.
    ParameterError : ``delta`` is 0 or too small, or several records of a unit on another engine than pandas.

    Source: Desfontaines, Voss, Gipson, Mandayam (2022), "Differentially private partition selection",
    Theorem 1; ``PartitionSelection`` has the proof for whole numbers and counts.

    >>> import pandas as pd, pandera.pandas as pa
    >>> city = pa.Column(str, metadata={"dp": {"labels": "private"}})
    >>> frame = pd.DataFrame({"city": ["Bern"] * 500 + ["Rome"] * 900 + ["my address"]})
    >>> private = frame.dp.protect(pa.DataFrameSchema({"city": city}), epsilon=2, delta=1e-6)
    >>> labels = private.dp.find_labels("city", epsilon=1, delta=1e-6, rng=1)
    >>> labels["city"].tolist()
    ['Bern', 'Rome']
    >>> private.use(labels).dp.domain["city"].categories
    ('Bern', 'Rome', '(other)')
    """
    chosen = columns_of(protected, columns, "find_labels")
    for column in chosen:
        _check(column)
    cost, counted = loss(epsilon, delta), flag(counts, "counts")
    example = f"private.dp.find_labels({_written(chosen)}, epsilon=1, delta=1e-6)"
    if whole(max_labels, "max_labels", 1) > 1:
        raise ParameterError(
            "'max_labels' must be 1: a unit counts for one of its labels, which is drawn at random.", example
        )
    several = protected.scope.contribution > 1
    if several and not protected.in_memory:
        raise ParameterError(
            f"'find_labels' draws one record of each unit, which frames of {protected.sealed.engine} keep no "
            "names of.",
            "protect the frame with max_rows=1, or as a pandas frame.",
        )
    task = LabelSearch(chosen, cost, protected.unit.neighbors, several)
    task.price(cost)  # refused before anything is charged
    call = Call.of_selection("find_labels", cost, chosen, rng=rng, release_id=release_id)

    def publish(release: Release[Any], drawn: Drawn) -> tuple[Any, str | None]:
        return _published(release, drawn, counted), risk_noted(protected, call, drawn)

    return Release(protected, call, call.label(protected), task, AnswerLabels(name_index(chosen)), publish)


def _check(column: Column) -> None:
    """Refuse a column whose labels are declared, or that has none."""
    if not column.private_labels:
        labels = "has declared labels" if column.categories is not None else "is not declared with them"
        raise DeclarationError(
            f"'find_labels' is for columns with private labels, and column {column.name!r} {labels}.",
            f'{quoted(column.name)}: pa.Column(str, metadata={{"dp": {{"labels": "private"}}}})',
        )


def _written(columns: Sequence[Column]) -> str:
    """The names of columns as an argument."""
    names = [quoted(column.name) for column in columns]
    return names[0] if len(names) == 1 else f"[{', '.join(names)}]"


def _combinations(listed: list[list[Any]], names: list[Any]) -> pd.MultiIndex:
    """Return labels of several columns as an index; pandas 2 would end a text at its first null character."""
    levels = [sorted(set(labels)) for labels in listed]
    places = [{label: position for position, label in enumerate(level)} for level in levels]
    codes = [[known[label] for label in labels] for known, labels in zip(places, listed, strict=True)]
    of_type: Any = [pd.Index(level, dtype=None if level else object, tupleize_cols=False) for level in levels]
    return pd.MultiIndex(of_type, codes, names=names, verify_integrity=False)


def _published(release: Release[Any], drawn: Drawn, counted: bool) -> Any:
    """Return the labels that were found with their metadata, or their counts."""
    columns = release.call.columns
    labels, noisy = drawn.outcomes[0]
    names = [column.name for column in columns]
    listed = [[label[position] for label in labels] for position in range(len(columns))]
    mechanism: PartitionSelection = drawn.price.mechanisms[0]
    error: dict[str, Any] = {"level": drawn.level, "always": mechanism.certain}
    released: Any
    if counted:
        index: pd.Index[Any] = (
            pd.Index(listed[0], dtype=None if labels else object, name=names[0], tupleize_cols=False)
            if len(names) == 1
            else _combinations(listed, names)
        )
        released = pd.Series(noisy, index=index, name="count")
        half = mechanism.plus_minus(drawn.level)
        error |= {"standard_error": mechanism.std, "plus_minus": float(half), "note": CHOSEN}
    else:
        released = pd.DataFrame(dict(enumerate(listed)), dtype=None if labels else object)
        released.columns = pd.Index(names, tupleize_cols=False)
    attach(
        release.facts,
        release.call,
        drawn,
        released,
        sensitivity=1.0,
        scale=mechanism.scale,
        split={"labels": 1.0},
        error=error,
        found={"kind": "labels", "declared": [column.kind for column in columns]},
    )
    return released
