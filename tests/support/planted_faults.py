"""Faults planted in the package one by one, each with the tests that must catch it.

A planted fault replaces a fragment of one module as that module is imported; no file changes. To plant one
and to run the tests that must catch it::

    python -m tests.support.planted_faults "histogram under replacement moves by 1"
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

import pytest

PACKAGE = Path(__file__).parents[2] / "pdprivacy"


@dataclass(frozen=True)
class PlantedFault:
    """A fault: the fragment ``before`` of a module of the package, which occurs once, becomes ``after``."""

    name: str
    module: str
    before: str
    after: str
    tests: tuple[str, ...]

    def source(self) -> str:
        """Return the source of the module with the fault."""
        text = (PACKAGE / self.module).read_text(encoding="utf-8")
        if text.count(self.before) != 1:
            raise ValueError(f"The fragment of {self.name!r} must occur once in {self.module}.")
        return text.replace(self.before, self.after)

    def plant(self) -> None:
        """Import the module with the fault from now on, in this process."""
        sys.meta_path.insert(0, _Finder(self))


class _Finder(MetaPathFinder):
    def __init__(self, fault: PlantedFault) -> None:
        self._fault = fault
        self._name = ".".join((PACKAGE.name, *Path(fault.module).with_suffix("").parts))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _Loader(self._fault, fullname, spec.origin)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, fault: PlantedFault, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self._fault = fault

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._fault.source(), self.path, "exec", dont_inherit=True)


class _Outcomes:
    """The outcome of each test of a run."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)
        elif report.when == "call" and report.passed:
            self.passed.append(report.nodeid)


def missed(fault: PlantedFault) -> list[str]:
    """Plant a fault in this process, run its tests, and return those of them that do not fail."""
    fault.plant()
    outcomes = _Outcomes()
    pytest.main(
        [*fault.tests, "--full", "-n0", "--tb=no", "--no-header", "-p", "no:cacheprovider"],
        plugins=[outcomes],
    )
    return [test for test in fault.tests if not any(one.startswith(test) for one in outcomes.failed)]


FAULTS = (
    PlantedFault(
        "noise of Laplace 10 % too small",
        "mechanism/laplace.py",
        "                return moved / eps\n",
        "                return moved / eps * 9 / 10\n",
        ("tests/test_mechanism.py::test_noise_is_independent_of_the_value_and_between_coordinates",),
    ),
    PlantedFault(
        "truncated Laplace with the plain scale",
        "mechanism/laplace.py",
        "            return truncated_laplace_scale(eps, moved, width, count or 1)\n",
        "            return moved / eps\n",
        ("tests/test_bounded_mechanism.py::test_the_printed_error_of_the_truncated_law_is_another_number",),
    ),
    PlantedFault(
        "published calibration charged as stated",
        "mechanism/laplace.py",
        ('        if calibration == "published":\n            loss = truncated_laplace_loss'),
        ('        if calibration == "never":\n            loss = truncated_laplace_loss'),
        ("tests/test_bounded_privacy.py::test_the_published_scale_loses_more_and_says_so",),
    ),
    PlantedFault(
        "truncated geometric scale for an open side only",
        "mechanism/geometric.py",
        ("    def loses_less(b: float) -> bool:\n        # C(lower"),
        ("    each *= 1.02\n\n    def loses_less(b: float) -> bool:\n        # C(lower"),
        ("tests/test_bounded_geometric.py::test_truncated_noise_loses_epsilon_and_no_more",),
    ),
    PlantedFault(
        "Gaussian noise 2 % too small",
        "mechanism/gaussian.py",
        "        return Fraction(smallest(lambda m: _meets(m, eps, slack, calibration))) * SAFE",
        (
            "        return Fraction(smallest(lambda m: _meets(m, eps, slack, calibration))) * "
            "Fraction(98, 100)"
        ),
        ("tests/test_mechanism.py::test_analytic_gaussian_noise_has_its_delta_on_the_grid",),
    ),
    PlantedFault(
        "classic Gaussian calibration without its factor 2",
        "mechanism/gaussian.py",
        "math.sqrt(2 * math.log(1.25 / slack)) / eps",
        "math.sqrt(math.log(1.25 / slack)) / eps",
        ("tests/test_mechanism.py::test_classic_scales_are_safe_below_one",),
    ),
    PlantedFault(
        "generalized Gaussian delta not shared by the moved numbers",
        "mechanism/generalized_gaussian.py",
        "float(slack) / moves)) * float(SAFE)",
        "float(slack))) * float(SAFE)",
        ("tests/test_bounded_privacy.py::test_moved_numbers_share_delta",),
    ),
    PlantedFault(
        "discrete Laplace noise drawn at 0.9 of its scale",
        "noise/tables.py",
        "    return _draw(_Law(1, Fraction(scale)), size, source)",
        "    return _draw(_Law(1, Fraction(scale) * 9 / 10), size, source)",
        ("tests/test_noise.py::test_the_public_functions_draw_what_they_say",),
    ),
    PlantedFault(
        "discrete Gaussian drawn with half the variance",
        "noise/tables.py",
        "    return _draw(_Law(2, 2 * Fraction(variance)), size, source)",
        "    return _draw(_Law(2, Fraction(variance)), size, source)",
        ("tests/test_noise.py::test_the_public_functions_draw_what_they_say",),
    ),
    PlantedFault(
        "many draws accept every proposal",
        "noise/tables.py",
        "    accepted[rest] = gap > 0\n",
        "    accepted[rest] = True\n",
        ("tests/test_noise.py::test_an_acceptance_within_the_margin_is_decided_exactly",),
    ),
    PlantedFault(
        "exponential mechanism at half its scale",
        "mechanism/selection.py",
        "        steps = moved * (1 if monotone else 2) / eps",
        "        steps = moved / eps",
        ("tests/test_selection_mechanism.py::test_the_exponential_mechanism_has_its_weights",),
    ),
    PlantedFault(
        "report noisy max without the doubled sensitivity",
        "mechanism/selection.py",
        "        noise = Geometric(epsilon, moved if monotone else 2 * moved)",
        "        noise = Geometric(epsilon, moved)",
        ("tests/test_selection_mechanism.py::test_counts_lose_what_is_stated_and_nearly_all_of_it",),
    ),
    PlantedFault(
        "labels taken to be monotone under replacement",
        "statistic/selection.py",
        ('        return self.scope.neighbors == "add_remove"\n\n    @property\n    def counts'),
        ("        return True\n\n    @property\n    def counts"),
        ("tests/test_selection_releases.py::test_the_metadata_is_plain_and_says_the_scale",),
    ),
    PlantedFault(
        "k-median costs taken to be monotone under replacement",
        "statistic/medians.py",
        '        return self.scope.neighbors == "add_remove"',
        "        return True",
        ("tests/test_clustering.py::test_the_loss_of_a_walk_over_all_neighbours_is_within_epsilon",),
    ),
    PlantedFault(
        "weights of parts ignored",
        "measure.py",
        "    epsilon, delta = cost.epsilon * part.weight, cost.delta * part.weight\n",
        "    epsilon, delta = cost.epsilon, cost.delta\n",
        ("tests/test_measure.py::test_laplace_scales_follow_from_sensitivity_and_weight",),
    ),
    PlantedFault(
        "truncated parts clamped after the noise only",
        "measure.py",
        (
            '            if request.bounding == "truncated" and limits is not None:\n'
            "                values = _add_within(whole, part, mechanism, limits, source)\n"
            "            else:"
        ),
        ("            if False:\n                pass\n            else:"),
        (
            "tests/test_bounded_releases.py::test_one_record_alone_moves_a_rounded_sum_no_further_than_is_paid_for",
        ),
    ),
    PlantedFault(
        "rounding to a coarser grid left out of the sensitivity",
        "measure.py",
        "    coarse = (math.floor(moved / grid) + part.moves) * grid\n",
        "    coarse = math.floor(moved / grid) * grid\n",
        ("tests/test_measure.py::test_laplace_scales_follow_from_sensitivity_and_weight",),
    ),
    PlantedFault(
        "Gaussian events with too large a multiplier",
        "measure.py",
        "        min(mechanism.multiplier for mechanism in noisy),\n",
        "        2 * min(mechanism.multiplier for mechanism in noisy),\n",
        ("tests/test_oracle.py::test_each_verb_charges_and_reads_what_the_oracle_says",),
    ),
    PlantedFault(
        "centred sum's sensitivity off by 2",
        "sensitivity.py",
        "    alone = width / 2 if flag(centered",
        "    alone = width / 4 if flag(centered",
        ("tests/test_sensitivity.py::test_sums_are_tight",),
    ),
    PlantedFault(
        "sum under add_remove moves by the range",
        "sensitivity.py",
        ("    if not _replaces(neighbors):\n        return alone\n"),
        ("    if not _replaces(neighbors):\n        return width\n"),
        ("tests/test_sensitivity.py::test_sums_are_tight",),
    ),
)


if __name__ == "__main__":
    (fault,) = (one for one in FAULTS if one.name == sys.argv[1])
    sys.exit(f"not caught by {', '.join(tests)}" if (tests := missed(fault)) else 0)
