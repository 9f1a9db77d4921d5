"""A release is a value: its labels are those of what it publishes, and equal calls make equal releases."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from pdprivacy import errors
from pdprivacy.core.gate import execute
from pdprivacy.core.gate.spec import AnswerLabels
from tests.support import capabilities
from tests.support.oracle import Frames
from tests.support.oracle_cases import CASES
from tests.support.oracle_frames import protected


def executed(call: Callable[[], Any]) -> list[Any]:
    """The releases that a call executes, each with what it publishes."""
    pairs = []

    def noted(release: Any, *args: Any, **words: Any) -> Any:
        published, risk = read_and_draw(release, *args, **words)
        pairs.append((release, published))
        return published, risk

    read_and_draw = execute.read_and_draw
    with mock.patch.object(execute, "read_and_draw", noted), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()
    return pairs


def labels_of(published: Any) -> AnswerLabels:
    if isinstance(published, pd.DataFrame):
        return AnswerLabels(published.index, published.columns)
    return AnswerLabels(published.index, name=published.name)


def check(call: Callable[[], Any]) -> int:
    """The labels and the equality of all releases that a call executes; their number."""
    pairs = executed(call)
    for (release, published), (second, _) in zip(pairs, executed(call), strict=True):
        call_of_release, labels = release.call, release.labels
        if call_of_release.sort:
            assert labels.index.symmetric_difference(published.index, sort=False).empty
            labels = replace(labels, index=published.index)
        if call_of_release.request.releases == 1:
            assert labels == labels_of(published)
            assert release.labels.shape == published.shape
        else:
            width = np.prod(labels.shape[1:], dtype=int) * call_of_release.request.releases
            assert labels.index.identical(published.index)
            assert published.shape == (len(labels.index), width)
        # a row step in the call makes another frame, and marginals make generators
        second = replace(second, facts=release.facts, call=replace(second.call, rng=call_of_release.rng))
        assert second == release
    return len(pairs)


@pytest.mark.parametrize("setting", ["add_remove", "dates"])
def test_each_verb_makes_a_value_with_the_labels_of_its_answer(setting):
    dp = protected("pandas", setting).dp
    for verb, call in capabilities.VERBS.items():
        public = "epsilon" in call[2] and "rng" in call[2] and verb not in capabilities._CURATED
        works = capabilities.stored()[verb, "plain", "pandas"] == "works"
        if public and works and capabilities.setting_of(verb) == setting:
            assert check(lambda call=call: capabilities.WAYS["plain"](dp, *call)), verb


@pytest.mark.full
def test_each_call_of_the_oracle_makes_values_with_the_labels_of_their_answers():
    frames, number = Frames("pandas"), 0
    for case in CASES.values():
        if case.family not in ("budgets", "pipeline") and not case.fresh:
            with contextlib.suppress(errors.PrivacyError):
                number += check(lambda case=case: case.call(frames.of(case)))
    assert number > 1900


def test_other_arguments_make_other_values():
    dp = protected("pandas").dp
    calls = [
        partial(dp.value_counts, columns, epsilon=1, sort=sort)
        for sort in (True, False)
        for columns in ("s", ["s"], ["s", "e"])
    ]
    calls += [
        partial(dp.mean, "x", epsilon=1, bounding="clamp", bounds=bounds)
        for bounds in ((0, 1), np.array([0, 1]), (0, 2))
    ]
    values = [release for call in calls for release, _ in executed(call)]
    assert [values.index(value) for value in values] == [0, 0, 2, 3, 3, 5, 6, 6, 8]


def test_the_published_object_has_the_labels_of_the_value():
    ((release, _),) = executed(lambda: protected("pandas").dp.mean(["x", "y"], epsilon=1))
    other = replace(release, labels=AnswerLabels(pd.Index(["first", "second"]), name="means"))
    assert labels_of(execute.execute(other)) == other.labels != release.labels
