"""Every planted fault is caught by the tests that are listed for it."""

from __future__ import annotations

import multiprocessing
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.planted_faults import FAULTS, missed

ROOT = Path(__file__).parents[1]
PARTS = 4


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
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=fault.name, marks=pytest.mark.xdist_group(f"planted faults {position % 8}"))
        for position, fault in enumerate(FAULTS)
    ],
)
def test_planted_fault_is_caught(fault, processes):
    assert missed_in(processes, fault, "--full") == []


@pytest.mark.full
@pytest.mark.parametrize("part", range(PARTS))
def test_tests_of_faults_pass_where_none_is_planted(part, processes):
    """With parameters and examples that run by default: with all, they pass as tests of their own.

    Each test runs once, beside others of its module, in one of few processes.
    """
    every = sorted({test for fault in FAULTS for test in fault.tests})
    tests = tuple(every[len(every) * part // PARTS : len(every) * (part + 1) // PARTS])
    none = replace(FAULTS[0], after=FAULTS[0].before, tests=tests)
    assert missed_in(processes, none) == list(tests)


def missed_in(processes, fault, *options):
    """The tests of a fault that do not fail in a process where it is planted."""
    receiver, sender = processes.Pipe(duplex=False)
    process = processes.Process(target=_tell_missed, args=(sender, fault, *options))
    with pytest.MonkeyPatch.context() as patch:
        # the process would first run what this one was started with, and import the package
        patch.delattr(sys.modules["__main__"], "__file__", raising=False)
        patch.setattr(sys.modules["__main__"], "__spec__", None)
        process.start()
    sender.close()
    assert receiver.poll(600), "the tests of the fault do not end"
    failures = receiver.recv()
    process.join()
    return failures


def _tell_missed(tell, fault, *options):
    os.chdir(ROOT)
    tell.send(missed(fault, *options))


@pytest.fixture(scope="module")
def processes():
    """Processes that have imported what takes long, and nothing of the package."""
    context = multiprocessing.get_context("forkserver")
    modules = ["pandera.pandas", "scipy.stats", "scipy.signal", "pyarrow.compute"]
    context.set_forkserver_preload([*modules, "pytest", "xdist.plugin", "hypothesis"])
    return context
