"""Names that a protected frame does not have (`refused_steps`): one error, with a declared call."""

from __future__ import annotations

import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.errors import OpaqueFrameError, UnstableStepError

DOMAIN = Domain(
    (
        Column("hours", "integer", lower=0, upper=120, bins=(0, 60, 120)),
        Column("pay", "float", lower=0, upper=10),
        Column("zone", "category", categories=("n", "s"), role="quasi_identifier"),
        Column("ill", "boolean", role="sensitive"),
    )
)
FRAME = pd.DataFrame(
    {"hours": [31, 54] * 50, "pay": [1.0, 2.5] * 50, "zone": ["n", "s"] * 50, "ill": [True, False] * 50}
)
READING = [
    "iloc",
    "at",
    "iat",
    "head",
    "tail",
    "take",
    "values",
    "to_csv",
    "describe",
    "crosstab",
    "cov",
]


@pytest.fixture
def private():
    return pdprivacy.protect(FRAME, DOMAIN, epsilon=100)


@pytest.mark.parametrize("name", READING)
def test_names_that_read_cells_raise_one_error_with_a_call_that_runs(private, name):
    with pytest.raises(OpaqueFrameError) as caught:
        getattr(private, name)
    call = caught.value.hint.removeprefix("release it first, ").removesuffix(", and use the result")
    assert call.startswith("private.dp.")
    eval(call, {"private": private})


@pytest.mark.filterwarnings("ignore::pdprivacy.errors.OmissionWarning")
@pytest.mark.parametrize("name", ["suppress_outliers", "batch", "budget", "plan_releases", "remaining"])
def test_a_name_of_dp_is_found_there(private, name):
    with pytest.raises(OpaqueFrameError) as caught:
        getattr(private, name)
    assert f"private.dp.{name}" in caught.value.hint
    exec(caught.value.hint, {"private": private})


@pytest.mark.parametrize("name", ["sort_values", "join", "apply"])
def test_a_step_that_looks_at_other_records_says_so(private, name):
    with pytest.raises(UnstableStepError):
        getattr(private, name)
