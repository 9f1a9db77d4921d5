"""Every planted fault is caught by the tests that are listed for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.support.planted_faults import FAULTS

ROOT = Path(__file__).parents[1]
PANDAS_2 = pd.__version__.startswith("2.")


def test_planted_faults_fit_the_package():
    broken = []
    for fault in FAULTS:
        try:
            compile(fault.source(), fault.module, "exec")
        except (ValueError, SyntaxError) as error:
            broken.append(f"{fault.name}: {error}")
    assert not broken
    assert len(FAULTS) >= 60
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert all(fault.tests for fault in FAULTS)


@pytest.mark.full
@pytest.mark.skipif(PANDAS_2, reason="planted faults are caught with the newest dependencies")
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=fault.name, marks=pytest.mark.xdist_group(f"planted faults {place % 8}"))
        for place, fault in enumerate(FAULTS)
    ],
)
def test_planted_fault_is_caught(fault):
    command = [sys.executable, "-m", "tests.support.planted_faults", fault.name]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert found.returncode == 0, found.stderr[-2000:] + found.stdout[-2000:]
