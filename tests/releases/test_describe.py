"""Descriptions: counts, means and deviations of one set of noisy parts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pdprivacy.errors import ParameterError


def test_a_description_is_of_the_noisy_parts_of_the_deviations(survey, schema):
    first, second = (survey.dp.protect(schema, epsilon=100) for _ in range(2))
    described = first.dp.describe(["age", "income"], epsilon=2, rng=7)
    deviations = second.dp.std(["age", "income"], epsilon=2, rng=7)
    assert described.loc["std"].tolist() == deviations.tolist()
    assert described.dp.metadata.scale == deviations.dp.metadata.scale
    assert first.dp.budget.spent == second.dp.budget.spent == (2, 0)


def test_a_description_without_noise_to_speak_of_is_that_of_pandas(survey, schema):
    private = survey.dp.protect(schema, epsilon=10**9)
    described = private.dp.describe(["age", "family", "income"], epsilon=10**8)
    expected = survey[["age", "family", "income"]].describe().loc[["count", "mean", "std"]]
    pd.testing.assert_frame_equal(described, expected, rtol=1e-5)


@pytest.mark.parametrize("bounding", ["clamp", "truncated"])
def test_a_description_stays_within_what_the_declaration_allows(survey, schema, bounding):
    private = survey.dp.protect(schema, epsilon=100)
    for seed in range(30):
        description = private.dp.describe(["age", "income"], epsilon=0.01, rng=seed, bounding=bounding)
        assert (description.loc["count"] >= 0).all()
        assert ((description.loc["mean"] >= [18, 0]) & (description.loc["mean"] <= [90, 1000])).all()
        # of two values at the bounds, the largest of any number
        assert (
            (description.loc["std"] >= 0)
            & (description.loc["std"] <= np.array([72, 1000]) / 2**0.5 * (1 + 1e-12))
        ).all()


def test_a_description_is_planned_by_its_standard_deviation(private):
    plans = {
        name: getattr(private.dp.plan, name)("age", epsilon=1, rows=1000, at=5)
        for name in ("describe", "std")
    }
    described = plans["describe"].xs("std", level=-2)
    assert described["rmse"].tolist() == plans["std"]["rmse"].tolist()
    with pytest.raises(ParameterError, match="'at' must be a finite number from 0"):
        private.dp.plan.describe("age", epsilon=1, rows=1000, at=-5)


def test_bounds_of_a_description_are_refused_for_free(private):
    with pytest.raises(ParameterError, match="'bounds' can be given for a single statistic"):
        private.dp.describe("age", epsilon=1, bounding="clamp", bounds=(0, 5))
    assert private.dp.budget.spent == (0, 0)
