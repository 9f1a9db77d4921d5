"""The numbers of a release as plots read them, and what plots say of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.errors import MetadataError
from pdprivacy.metadata import Metadata, Released
from pdprivacy.show import numbers
from pdprivacy.show.numbers import printable
from pdprivacy.show.view import LABELS, SEEDED, Floats, View, mechanism_text

__all__ = ["Cube", "edge_texts", "edges_of", "label_of", "names_of", "within_noise"]

LONGEST = 40
"""Characters of a label; a longer one is cut."""

LONGEST_EDGE = 12
"""Characters of the edge of a bin; a longer one, which nobody declared by hand, has six digits."""

EDGE = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
BIN = re.compile(rf"^([\[(])({EDGE}), ?({EDGE})([\])])$")


@dataclass(frozen=True)
class Cube:
    """Released numbers, (R, C, M): by row, column (one if ``columns`` is None) and release.

    Dates are seconds since 1970, of the clock of their time zone.

    ``half``: margins of error, NaN where they are not known. ``ends``: lower and upper ends of the intervals.
    ``bounds``: the lower and upper limits of each number, kept by bounding or declared for the values of
    a mean; NaN for none.
    """

    view: View
    columns: pd.Index[Any] | None
    values: Floats
    half: Floats
    ends: tuple[Floats, Floats]
    bounds: tuple[Floats, Floats]

    @classmethod
    def of(cls, released: Released) -> Cube:
        """Read a release.

        Raises
        ------
        MetadataError : no release, numbers that were changed, or labels.
        """
        view = View.of(released)
        if not view.unchanged:
            raise MetadataError(
                "The numbers are not those that were released: there is no picture of them, because their "
                "errors are not known.",
                "released.dp.plot() on the object as it was returned, before it is rounded or sorted.",
            )
        if view.facts.statistic in LABELS:
            raise MetadataError(
                f"{view.facts.statistic!r} releases labels and no numbers, so it has no picture.",
                "private.dp.value_counts(column, epsilon=...).dp.plot() draws counts, at their own cost.",
            )
        try:
            values = seconds_of(view.table) if view.dates else view.table.to_numpy(dtype=np.float64)
        except (TypeError, ValueError):
            raise MetadataError("The release holds labels or objects, so it has no picture.") from None
        if not values.size:
            raise MetadataError("The release holds no number, so it has no picture.")
        limits = view.facts.bounds_of_each("bounds" if view.facts.bounds else "value_bounds", released.shape)
        lower, upper = (limit.reshape(len(released), -1) for limit in limits)
        columns, order = _order(released, view.facts)
        ends = view.facts.ends_of_each(*(each.reshape(released.shape) for each in (values, view.half)))
        return cls(
            view, columns, order(values), order(view.half),
            ends=(order(ends[0]), order(ends[1])), bounds=(order(lower), order(upper)),
        )  # fmt: skip

    @property
    def rows(self) -> pd.Index[Any]:
        """The row labels."""
        return self.view.released.index

    @property
    def many(self) -> int:
        """The number of releases side by side."""
        return int(self.values.shape[2])

    @property
    def within(self) -> NDArray[np.bool_]:
        """Whether the interval of each number contains 0."""
        return within_noise(self.values, self.half)

    @property
    def noise(self) -> str:
        """A note on the margins of error: their level, and the errors that they cover."""
        counted = "noise and sample" if self.view.regressions else "noise only"
        return f"{self.view.level} margin of error, {counted}"

    def text(self, value: float, half: float, error: bool = False) -> str:
        """Format a number to the digits that its error leaves; with ``error``, followed by this."""
        known = bool(np.isfinite(value))
        if self.view.dates and known:
            pair = numbers.dated(pd.Timestamp(np.datetime64(round(value), "s")), float(half))
        else:
            pair = numbers.paired(int(value) if self.view.whole and known else float(value), float(half))
        return numbers.joined(pair) if error else pair[0]

    def texts(self, at: Any, error: bool = False) -> list[str]:
        """Format the numbers at some places, in their order, as `text` does."""
        pairs = zip(self.values[at].flat, self.half[at].flat, strict=True)
        return [self.text(value, half, error) for value, half in pairs]

    def notes(self, noise: str) -> list[str]:
        """Return the lines under the title: cost, records, ``noise`` in words, and what limits them."""
        facts = self.view.facts
        together = f", {facts.releases} releases together" if facts.releases > 1 else ""
        return [
            f"{self.view.cost}, {mechanism_text(facts.mechanism, facts.p)}{together}",
            self.view.records,
            noise,
            f"bounding {facts.bounding!r} biases numbers near their bounds" if facts.bounding else "",
            f"errors are those before constraint={facts.constraint!r}" if facts.constraint else "",
            SEEDED if facts.seeded else "",
        ]


def seconds_of(table: pd.DataFrame) -> Floats:
    """Return dates as seconds since 1970, of the clock of their time zone; NaN for NaT."""
    columns = [table.iloc[:, place].dt.tz_localize(None).dt.as_unit("us") for place in range(table.shape[1])]
    found = np.stack([column.to_numpy().astype(np.int64) / 1e6 for column in columns], axis=-1)
    return np.where(table.isna().to_numpy(), np.nan, found)


def within_noise(values: Floats, half: Floats) -> NDArray[np.bool_]:
    """Return whether the interval of each number contains 0."""
    return (np.abs(values) <= half) & (half > 0)


def _order(released: Released, facts: Metadata) -> tuple[pd.Index[Any] | None, Any]:
    """The columns of one release, and what brings numbers to (R, C, M)."""
    rows = len(released)
    if isinstance(released, pd.Series):
        return None, lambda values: values.reshape(rows, 1, 1)
    many, names = facts.releases, released.columns
    whole = isinstance(many, int) and many > 1 and len(names) % many == 0
    if not whole or names.names[0] != "release":
        return names, lambda values: values.reshape(rows, -1, 1)
    first = names[: len(names) // many]
    inner = first.droplevel(0) if isinstance(first, pd.MultiIndex) else None
    return inner, lambda values: values.reshape(rows, many, -1).transpose(0, 2, 1)


def edges_of(label: object) -> tuple[float, float] | None:
    """Return the edges of a bin such as ``[16, 30)``; None for another label."""
    found = BIN.match(label) if isinstance(label, str) else None
    return None if found is None else (float(found[2]), float(found[3]))


def edge_texts(label: str) -> tuple[str, str]:
    """Return the edges of a bin as they were declared; those of bins of equal width with few digits."""
    _, *edges, _ = BIN.fullmatch(label).groups()  # type: ignore[union-attr]
    first, last = (edge if len(edge) <= LONGEST_EDGE else f"{float(edge):.6g}" for edge in edges)
    return first, last


def label_of(label: object, most: int = LONGEST) -> str:
    """Return a label of an axis: its levels joined, long edges of a bin shortened."""
    if isinstance(label, tuple):
        parts = [label_of(part, most) for part in label if not (isinstance(part, str) and part == "")]
        return printable(", ".join(parts), most)
    if isinstance(label, str) and edges_of(label) is not None:
        return printable(f"{label[0]}{', '.join(edge_texts(label))}{label[-1]}", most)
    if isinstance(label, float) and label == label:
        return f"{label:.6g}"
    return numbers.label(label, most)


def names_of(index: pd.Index[Any]) -> str:
    """Return the label of an axis: the names of its levels, joined."""
    return ", ".join(label_of(name) for name in index.names if name is not None)
