"""Excerpts: what pandas makes of a release by sorting, selecting, reshaping, relabelling and rounding.

Each number keeps its error. The metadata hold the released labels and numbers as one text; an excerpt is
matched with them (`pdprivacy.releases.label_matching`) and becomes a release with metadata of its own
numbers alone, which say of what it is a part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.checks import has_hash, real
from pdprivacy.errors import MetadataError, ParameterError, got
from pdprivacy.releases import metadata
from pdprivacy.releases.frame_json import pack, unpack
from pdprivacy.releases.label_matching import Match, match
from pdprivacy.releases.metadata import Metadata, Released, as_released, read, recognized
from pdprivacy.releases.projection import numbers_as_json
from pdprivacy.text.marks import KEY
from pdprivacy.types import Floats, Integers

ERRORS = ("standard_error", "plus_minus", "bias", "rmse", "rounding_per_record")
"""Errors that may be stated of each number."""

COUNTS = ("count", "value_counts", "histogram", "crosstab")
"""Releases of which small counts may be left out."""

ENDS = ("lower", "upper")
"""Ends of intervals that were selected, stated of each number."""

CHOSEN = "if chosen by their noisy values, the errors are those before the choice"
ROUNDED = "rounded, by which the margins of error are wider"
RELABELLED = "labels changed"
REPEATED = "numbers repeated"
SAME = "the same numbers in another form"
LEFT_OUT = "Small counts were left out, and the estimate is made of all counts."
NOT_RELEASED = "The numbers are not those that were released, so their errors are not known"
TAKE = "take released.dp.interval() of the release before changing it; released.dp.changes says what differs."
NAME = 'released.dp.relabel({"a": "b"}) of the release itself, then sort and select.'


def as_release(frame: Released) -> Released | None:
    """Return a release as it was made, or an excerpt with metadata of its own numbers.

    None for other numbers. Raises MetadataError for a frame without metadata.

    >>> import pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("area", "category", categories=("a", "b", "c")),))
    >>> private = pdprivacy.protect(pd.DataFrame({"area": ["a", "b", "b"]}), domain, epsilon=1)
    >>> counts = private.dp.value_counts("area", epsilon=1)
    >>> as_release(counts.tail(2).round(1)).attrs["dp"]["part"]["numbers"], as_release(counts + 1)
    (3, None)
    """
    whole = as_released(frame)
    if whole is not None:
        return whole
    try:
        return excerpt(frame).settled
    except MetadataError:
        return None


def excerpt(frame: Released) -> Excerpt:
    """Return what a frame is of a release.

    Raises MetadataError for a frame without metadata, and for numbers that are not released ones, with the
    reason.
    """
    facts = read(frame)
    if not isinstance(facts.original, str):
        raise MetadataError(f"{NOT_RELEASED}.", TAKE)
    original: Released = unpack(facts.original)
    if metadata.fingerprint(original) != facts.fingerprint:
        raise MetadataError("The release metadata are damaged: they do not hold the released numbers.")
    try:
        matched = match(_plain(frame), original, _uniform(facts))
        original.attrs[KEY] = frame.attrs[KEY]
        return Excerpt(matched, original, facts)
    except MetadataError as error:
        hint = NAME if "labels are new" in error.message else TAKE
        raise MetadataError(f"{NOT_RELEASED}: {error.message}.", hint) from None


def changes(frame: Released) -> str:
    """Return how a frame differs from the release that it was made of; empty for the release itself."""
    facts = read(frame)
    if as_released(frame) is not None:
        return "" if facts.part is None else part_text(facts)
    try:
        return part_text(read(excerpt(frame).settled))
    except MetadataError as error:
        return error.message.removesuffix(".")


def part_text(facts: Metadata) -> str:
    """Return of what an excerpt is a part, and what was changed; empty for a whole release."""
    return "" if facts.part is None else "; ".join(map(str, facts.part["changes"]))


def check_release(released: Any, purpose: str) -> pd.DataFrame | pd.Series[Any]:
    """Return a release or an excerpt, so that it can be saved or written for readers.

    ``purpose``: what becomes of it, for errors. Raises MetadataError for a frame that is made of exact
    counts, for any other that is no release, and for numbers or labels that are not the released ones.

    >>> check_release(pd.DataFrame({"risk": [0.5]}), "saved")
    Traceback (most recent call last):
        ...
    pdprivacy.errors.MetadataError: This frame carries no release metadata.
    Hint: results of df.dp.protect(...).dp.mean(...) and the like carry it in attrs['dp'];
    pd.DataFrame(result), unstack of a Series, pd.concat of two releases and to_csv lose it;
    result.dp.save(path) and result.to_frame().unstack() keep it;
    pd.concat([first.dp.to_frame(), second.dp.to_frame()]) keeps the errors.
    """
    if recognized(released).what == "confidential":
        raise MetadataError(
            f"This is made of exact counts, CONFIDENTIAL: it is no release, and is not {purpose} as one.",
            "plot() and pdprivacy.report(..., edition='curator') show it to the curator.",
        )
    original = as_release(released)
    if original is None:
        raise MetadataError(
            f"The numbers or labels are not those that were released, and are not {purpose} as a release.",
            "take the release as it was returned; released.dp.changes says what differs.",
        )
    return original


def relabel(released: Released, labels: Mapping[Any, Any]) -> Released:
    """Return a release or an excerpt with other labels, each number with its error.

    ``labels``: the new label of each old one, in rows and columns; or of a level by its name, as in
    ``{"area": {"n": "north"}}``, where several levels have the same label.

    Raises ParameterError for a label that is not there, and for labels that would become equal; MetadataError
    for numbers that are not released ones.

    >>> import pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("area", "category", categories=("n", "s")),))
    >>> private = pdprivacy.protect(pd.DataFrame({"area": ["n"] * 99}), domain, epsilon=1)
    >>> named = relabel(private.dp.value_counts("area", epsilon=1, rng=1), {"n": "north"})
    >>> named.index.tolist(), named.dp.interval().index.tolist()
    (['north', 's'], ['north', 's'])
    """
    if not isinstance(labels, Mapping) or not labels:
        raise ParameterError(
            f"'labels' must be a dict of new labels by old ones (got {got(labels)}).", 'relabel({"a": "b"}).'
        )
    given = [
        each for new in labels.values() for each in (new.values() if isinstance(new, Mapping) else [new])
    ]
    if not all(map(has_hash, given)):
        raise ParameterError(
            "'labels' must map labels to labels, and a list is none.", 'relabel({"a": "b"}).'
        )
    whole = as_released(released)
    settled = excerpt(released).settled if whole is None else whole
    by_level = all(isinstance(new, Mapping) for new in labels.values())
    changed, used = _plain(settled), set[Any]()
    for axis in range(settled.ndim):
        index = settled.axes[axis]
        levels = [index.get_level_values(at) for at in range(index.nlevels)]
        for at, level in enumerate(levels):
            there = set(level)
            new = (
                labels.get(level.name, {})
                if by_level
                else {old: labels[old] for old in labels if old in there}
            )
            used |= {level.name} & {*labels} if by_level else {*new}
            levels[at] = _renamed(level, new)
        renamed = levels[0] if len(levels) == 1 else pd.MultiIndex.from_arrays(levels)
        changed = changed.set_axis(renamed, axis=axis)
    if missing := [label for label in labels if label not in used]:
        raise ParameterError(f"The release has no label {missing[0]!r}.", TAKE_LABELS)
    facts = read(settled)
    return _attached(changed, {**settled.attrs[KEY], "part": _part(facts, settled.size, [RELABELLED])})


def censor(released: Released, below: float) -> Released:
    """Return the released counts without those below a threshold, which leave the metadata, too.

    ``below``: a public number; noisy counts below it are left out. A table becomes a Series by column and
    row. The counts that are left keep their errors, and the metadata say that small ones were left out.
    Nothing in the metadata depends on the counts that were left out, so ``dr_ha``, ``effective_rows`` and the
    fingerprint of the whole release leave them, too; `verify` is False, as of any part of a release.

    This costs nothing, and protects nobody: the noise does. It keeps readers from numbers that are mostly
    noise.

    Raises MetadataError for anything but counts, for counts with margins or a constraint on several of them,
    from which left-out counts could be computed, and where no count is left.

    >>> import pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("area", "category", categories=("a", "b", "c")),))
    >>> private = pdprivacy.protect(pd.DataFrame({"area": ["a", "b", "b"] * 20}), domain, epsilon=1000)
    >>> censor(private.dp.value_counts("area", epsilon=1000), 10).to_dict()
    {'b': 40, 'a': 20}
    """
    least = real(below, "below")
    whole = as_released(released)
    settled = excerpt(released).settled if whole is None else whole
    facts = read(settled)
    if facts.statistic not in COUNTS or facts.normalize or facts.margins or facts.parts is not None:
        raise MetadataError(
            f"'censor' is for counts without margins, not for a released {facts.statistic!r}.",
            "release the counts without margins=True and normalize=.",
        )
    if facts.constraint not in (None, "nonnegative"):
        raise MetadataError(
            "'censor' is for counts that do not depend on each other: a constraint shows what was left out.",
            "release the counts without constraint=.",
        )
    plain: Any = pd.DataFrame(settled).unstack() if settled.ndim == 2 else pd.Series(settled)
    plain.attrs = settled.attrs
    left = plain[plain >= least]
    if not len(left):
        raise MetadataError("No count is left.", "a smaller threshold.")
    if isinstance(left.index, pd.MultiIndex):
        left.index = left.index.remove_unused_levels()
    part = as_release(left)
    assert part is not None
    note = _part(read(part), settled.size, [f"counts below {least:g} are left out"])
    # what is made of all counts would show those that were left out
    note["of"] = metadata.fingerprint(part)
    risk = facts.dr_ha
    if risk is not None:
        public: dict[str, Any] = {name: risk[name] for name in ("measure", "source") if name in risk}
        risk = {**public, "by_cells": None, "by_records": None, "reason": LEFT_OUT}
    metadata.attach(part, {**part.attrs[KEY], "part": note, "dr_ha": risk, "effective_rows": None})
    return part


TAKE_LABELS = "released.index and released.columns show its labels."


def _plain(frame: Released) -> Any:
    """Return a frame without ``attrs``."""
    return pd.Series(frame) if isinstance(frame, pd.Series) else pd.DataFrame(frame)


def _renamed(level: pd.Index[Any], new: Mapping[Any, Any]) -> pd.Index[Any]:
    """Return a level with new labels of the same number; ParameterError for labels that are not there."""
    if not new:
        return level
    if missing := [label for label in new if label not in level]:
        raise ParameterError(f"The release has no label {missing[0]!r}.", TAKE_LABELS)
    labels: pd.Index[Any] = pd.Index(
        [new.get(label, label) for label in level.tolist()], name=level.name, tupleize_cols=False
    )
    if labels.nunique(dropna=False) < level.nunique(dropna=False):
        raise ParameterError("Labels that differ must not become the same.", 'relabel({"a": "b"}).')
    return level.rename_categories(dict(new)) if isinstance(level, pd.CategoricalIndex) else labels


def _attached(frame: Released, stored: Mapping[str, Any]) -> Released:
    """Return a frame with metadata, its fingerprint and its text."""
    mark = {"fingerprint": metadata.fingerprint(frame), "original": pack(frame)}
    frame.attrs = {KEY: {**stored, **mark}}
    return frame


def _part(facts: Metadata, size: int, changed: list[str]) -> dict[str, Any]:
    """Return what is stored of a part; ``size``: of the release, unless it is a part itself."""
    before = facts.part or {"of": facts.fingerprint, "numbers": size, "changes": []}
    texts = [*before["changes"], *changed]
    return {**before, "changes": list(dict.fromkeys(texts))}


def _uniform(facts: Metadata) -> bool:
    """Return whether all numbers have the same error, and the same limits."""
    errors = [facts.error.get(name) for name in (*ERRORS, *ENDS)]
    limits = [facts.bounds, facts.value_bounds]
    alike = not any(isinstance(error, list) for error in (*errors, facts.effective_rows))
    return (
        alike and facts.projection is None and all(np.ndim(pair) < 2 for pair in limits if pair is not None)
    )


@dataclass(frozen=True)
class Excerpt:
    """Numbers of a frame, each with its place in the release; ``facts``: the metadata of the release."""

    match: Match
    original: Released
    facts: Metadata

    @property
    def places(self) -> Integers:
        """The place of each number, the first for a null that stands for none; row by row."""
        return np.maximum(self.match.at, 0).ravel()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the frame."""
        return self.match.frame.shape

    @property
    def settled(self) -> Released:
        """The frame with metadata of its own numbers, which hold nothing of those that are not here."""
        facts = self.facts
        error = {name: self._of_each(facts.error[name]) for name in ERRORS if name in facts.error}
        error |= {name: self._of_each(facts.error[name], False) for name in ENDS if name in facts.error}
        if isinstance(worst := facts.error.get("worst_case"), Mapping):
            error["worst_case"] = {name: self._of_each(value) for name, value in worst.items()}
        if "plus_minus" in error and self.match.rounding.any():
            half = facts.error_of_each("plus_minus", self.original.shape).ravel()[self.places]
            error["plus_minus"] = self._json(half + self.match.rounding.ravel())
        if facts.error.get("all_noise"):
            masked = metadata.all_noise(self.original, facts).ravel()[self.places]
            error["all_noise"] = int((masked & (self.match.at.ravel() >= 0)).sum())
        stored = {
            **self.original.attrs[KEY],
            "error": {**facts.error, **error},
            "bounds": self._pairs(facts.bounds),
            "value_bounds": self._pairs(facts.value_bounds),
            "effective_rows": self._of_each(facts.effective_rows),
            "projection": self._projection(),
            "part": _part(facts, self.original.size, self.changes),
        }
        return _attached(_plain(self.match.frame), stored)

    @property
    def changes(self) -> list[str]:
        """How the frame differs from the release."""
        match, at = self.match, self.match.at.ravel()
        shown = np.unique(at[at >= 0])
        texts = []
        if len(shown) < self.original.size:
            texts.append(f"{len(shown):,} of {self.original.size:,} numbers")
        texts += [REPEATED] * (len(shown) < int((at >= 0).sum()))
        texts += match.fixed
        if self.original.ndim != len(self.shape):
            texts.append("in another shape")
        elif bool((np.diff(at[at >= 0]) < 0).any()):
            texts.append("in another order")
        texts += [ROUNDED] * bool(match.rounding.any()) + [RELABELLED] * match.relabelled
        texts += [CHOSEN] * self._chosen(shown)
        return texts or [SAME]

    def _chosen(self, shown: Integers) -> bool:
        """Return whether the numbers shown are the largest or smallest of all, or of a column."""
        try:
            values = self.original.to_numpy(np.float64, na_value=np.nan).reshape(len(self.original), -1)
        except (TypeError, ValueError):
            return False
        here = np.zeros(values.size, dtype=bool)
        here[shown] = True
        here = here.reshape(values.shape)
        parts = [(values[:, at], here[:, at]) for at in range(values.shape[1])]
        if bool((self.match.at < 0).any()):
            parts.append((values.ravel(), here.ravel()))
        return any(_are_extreme(each[mask], each[~mask]) for each, mask in parts)

    def _json(self, values: Floats) -> Any:
        return numbers_as_json(np.reshape(values, self.shape), self.shape)

    def _of_each(self, stored: Any, numbers: bool = True) -> Any:
        """Return what the metadata state of each number of the release, of those that are here.

        ``numbers``: whether these are numbers, of which equal ones are stored once.
        """
        if not isinstance(stored, list):
            return stored
        each = np.empty(self.original.shape, dtype=object)
        each[...] = np.array(stored, dtype=object).reshape(self.original.shape)
        taken = each.ravel()[self.places].reshape(self.shape).tolist()
        return self._json(np.array(taken, dtype=np.float64)) if numbers else taken

    def _pairs(self, stored: Any) -> Any:
        """Return the limits of the numbers that are here."""
        if stored is None or np.ndim(np.array(stored, dtype=object)) < 2:
            return stored
        pairs = np.broadcast_to(np.array(stored, dtype=object), (*self.original.shape, 2)).reshape(-1, 2)
        return pairs[self.places].reshape(*self.shape, 2).tolist()

    def _projection(self) -> dict[str, list[Any]] | None:
        """Return the numbers that are here and that a projection moved."""
        stored = self.facts.projection
        if stored is None:
            return None
        moved = {position: number for number, position in enumerate(stored["at"])}
        at, rounding = self.match.at.ravel().tolist(), self.match.rounding.ravel().tolist()
        here = [cell for cell, number in enumerate(at) if number in moved]
        kept: dict[str, list[Any]] = {
            name: [stored[name][moved[at[cell]]] for cell in here]
            for name in ("values", "plus_minus", "lower", "upper")
            if name in stored  # the ends of quantiles
        }
        halves = zip(kept["plus_minus"], here, strict=True)
        return {
            "at": here,
            **kept,
            "plus_minus": [None if half is None else half + rounding[cell] for half, cell in halves],
            "missed": [cell for cell, number in enumerate(at) if number in set(stored["missed"])],
        }


def _are_extreme(shown: Floats, others: Floats) -> bool:
    """Return whether all numbers are at least, or at most, as large as all others."""
    shown, others = shown[~np.isnan(shown)], others[~np.isnan(others)]
    if not shown.size or not others.size:
        return False
    return bool(shown.min() >= others.max() or shown.max() <= others.min())
