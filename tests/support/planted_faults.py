"""Faults planted in the package one by one, each with the tests that must catch it.

A planted fault replaces a fragment of one module as that module is imported; no file changes. To plant one
and to run the tests that must catch it::

    python -m tests.support.planted_faults "histogram under replacement moves by 1"
"""

from __future__ import annotations

import gc
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
        module = ".".join((PACKAGE.name, *Path(fault.module).with_suffix("").parts))
        self._name = module.removesuffix(".__init__")

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


class _Missed:
    """The tests of a fault that have not failed so far; what is left of a test that has failed is skipped."""

    def __init__(self, tests: tuple[str, ...]) -> None:
        self.tests = tests

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if not item.nodeid.startswith(self.tests):
            pytest.skip("the test has caught the fault")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.tests = tuple(test for test in self.tests if not report.nodeid.startswith(test))


QUIET = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""For processes that have imported a plugin before pytest."""


def missed(fault: PlantedFault, *options: str) -> list[str]:
    """Plant a fault in this process, run its tests, and return those of them that do not fail."""
    fault.plant()
    outcomes = _Missed(fault.tests)
    gc.freeze()  # pytest collects garbage at its end, several times
    pytest.main(
        [*fault.tests, *options, "-n0", "--tb=no", "--no-header", "-p", "no:cacheprovider", *QUIET],
        plugins=[outcomes],
    )
    return list(outcomes.tests)


FAULTS = (
    PlantedFault(
        "noise of Laplace 10 % too small",
        "core/mechanisms/laplace.py",
        "            return moved / self.epsilon\n",
        "            return moved / self.epsilon * 9 / 10\n",
        (
            "tests/core/mechanisms/test_mechanisms.py::test_noise_is_independent_of_the_value_and_between_coordinates",
        ),
    ),
    PlantedFault(
        "sum of a unit declared as narrow as that of one record",
        "core/rows/per_unit.py",
        "for times in (1, most)]",
        "for times in (1, 1)]",
        ("tests/core/rows/test_per_unit.py::test_declared_sums_are_reached_and_are_no_wider",),
    ),
    PlantedFault(
        "number of records of a unit unbounded",
        "core/rows/per_unit.py",
        'Column(name, "integer", lower=1, upper=most), "size", None)',
        'Column(name, "integer", lower=1, upper=1), "size", None)',
        ("tests/core/rows/test_per_unit.py::test_rows_are_those_that_the_contribution_bound_and_steps_left",),
    ),
    PlantedFault(
        "one row of each unit without records of its own",
        "core/rows/per_unit.py",
        '        order = np.argsort(units, kind="stable") if keys is None',
        "        order = np.arange(len(units)) if keys is None",
        (
            "tests/core/rows/test_per_unit.py::test_the_first_and_the_last_are_those_in_the_order_of_the_table",
        ),
    ),
    PlantedFault(
        "rows of another unit merged",
        "core/gate/parts.py",
        "    places = np.where(known[places] == records.units, order[places], -1)\n",
        "    places = order[places]\n",
        (
            "tests/frames/test_protected_tables.py::test_a_merge_has_the_domain_budget_and_stability_of_what_it_adds",
        ),
    ),
    PlantedFault(
        "groups with budgets of their own merged",
        "frames/unit_steps.py",
        "    if facts.budget is not other.budget:\n",
        "    if False:\n",
        ("tests/frames/test_protected_tables.py::test_groups_with_budgets_of_their_own_are_not_merged",),
    ),
    PlantedFault(
        "several rows of a unit merged into one record",
        "frames/unit_steps.py",
        "    if other.scope.contribution > 1:\n",
        "    if False:\n",
        ("tests/frames/test_protected_tables.py::test_frames_that_do_not_belong_together_are_refused",),
    ),
    PlantedFault(
        "looked up fractions with the bounds of the integers that they were",
        "core/rows/lookup.py",
        "tuple(stated if integers else map(float, stated))",
        "tuple(stated)",
        (
            "tests/core/rows/test_lookup.py::test_a_table_without_a_row_for_each_label_makes_nulls_or_leaves_records_out",
        ),
    ),
    PlantedFault(
        "records with a null key looked up",
        "core/rows/lookup.py",
        "        return np.where(missing | (self.joint[at] != joint), -1, self.order[at])\n",
        "        return np.where(self.joint[at] != joint, -1, self.order[at])\n",
        (
            "tests/core/rows/test_lookup.py::test_a_table_without_a_row_for_each_label_makes_nulls_or_leaves_records_out",
        ),
    ),
    PlantedFault(
        "truncated Laplace with the plain scale",
        "core/mechanisms/laplace.py",
        "        return exact_laplace_scale(self.epsilon, moved, width, self.l0_sensitivity or 1)\n",
        "        return moved / self.epsilon\n",
        (
            "tests/core/mechanisms/test_support.py::test_the_printed_error_of_the_truncated_law_is_another_number",
        ),
    ),
    PlantedFault(
        "published calibration charged as stated",
        "core/mechanisms/laplace.py",
        '        if self.calibration != "published":\n            return Pure',
        "        if True:\n            return Pure",
        ("tests/core/mechanisms/test_bounded_privacy.py::test_the_published_scale_loses_more_and_says_so",),
    ),
    PlantedFault(
        "truncated geometric scale for an open side only",
        "core/mechanisms/geometric.py",
        ("    def loses_less(b: float) -> bool:\n        # C(lower"),
        ("    each *= 1.02\n\n    def loses_less(b: float) -> bool:\n        # C(lower"),
        ("tests/core/mechanisms/test_geometric.py::test_truncated_noise_loses_epsilon_and_no_more",),
    ),
    PlantedFault(
        "Gaussian noise 2 % too small",
        "core/mechanisms/gaussian.py",
        "gaussian_delta(eps, m) <= slack * (1 - 1e-9))) * SAFE",
        "gaussian_delta(eps, m) <= slack * (1 - 1e-9))) * Fraction(98, 100)",
        ("tests/core/mechanisms/test_gaussian.py::test_analytic_gaussian_noise_has_its_delta_on_the_grid",),
    ),
    PlantedFault(
        "classic Gaussian calibration without its factor 2",
        "core/mechanisms/gaussian.py",
        "math.sqrt(2 * math.log(1.25 / slack)) / eps",
        "math.sqrt(math.log(1.25 / slack)) / eps",
        ("tests/core/mechanisms/test_gaussian.py::test_classic_scales_are_safe_below_one",),
    ),
    PlantedFault(
        "generalized Gaussian delta not shared by the moved numbers",
        "core/mechanisms/generalized_gaussian.py",
        "delta / count)) * float(SAFE)",
        "delta)) * float(SAFE)",
        ("tests/core/mechanisms/test_bounded_privacy.py::test_moved_numbers_share_delta",),
    ),
    PlantedFault(
        "joint loss of several numbers one step too small",
        "core/mechanisms/joint_loss.py",
        "+ zero, 0, last + 1)",
        "+ zero - 2, 0, last + 1)",
        ("tests/core/mechanisms/test_joint_loss.py::test_the_law_of_a_joint_loss_of_order_two_is_normal",),
    ),
    PlantedFault(
        "discrete Laplace noise drawn at 0.9 of its scale",
        "core/noise/discrete.py",
        "    scale = Fraction(scale)\n    if whole",
        "    scale = Fraction(scale) * 9 / 10\n    if whole",
        ("tests/core/noise/test_noise.py::test_the_public_functions_draw_what_they_say",),
    ),
    PlantedFault(
        "discrete Gaussian drawn with half the variance",
        "core/noise/discrete.py",
        "    variance = Fraction(variance)\n",
        "    variance = Fraction(variance) / 2\n",
        ("tests/core/noise/test_noise.py::test_the_public_functions_draw_what_they_say",),
    ),
    PlantedFault(
        "many draws accept every proposal",
        "core/noise/discrete.py",
        "    accepted[rest] = gap > 0\n",
        "    accepted[rest] = True\n",
        ("tests/core/noise/test_noise.py::test_an_acceptance_within_the_margin_is_decided_exactly",),
    ),
    PlantedFault(
        "exponential mechanism at half its scale",
        "core/mechanisms/exponential.py",
        "        return self._difference_sensitivity / self.epsilon",
        "        return self.sensitivity / self.epsilon",
        ("tests/core/mechanisms/test_exponential.py::test_the_exponential_mechanism_has_its_weights",),
    ),
    PlantedFault(
        "report noisy max without the doubled sensitivity",
        "core/mechanisms/exponential.py",
        "noise=Geometric(self.epsilon, self._difference_sensitivity)",
        "noise=Geometric(self.epsilon, self.sensitivity)",
        ("tests/core/mechanisms/test_exponential.py::test_counts_lose_what_is_stated_and_nearly_all_of_it",),
    ),
    PlantedFault(
        "labels taken to be monotone under replacement",
        "core/statistics/candidates.py",
        ('        return self.scope.neighbors == "add_remove"\n\n    @property\n    def counts'),
        ("        return True\n\n    @property\n    def counts"),
        ("tests/releases/test_selection.py::test_the_metadata_is_plain_and_says_the_scale",),
    ),
    PlantedFault(
        "private labels: a replaced record taken to change one label",
        "core/mechanisms/partition_selection.py",
        '        return 2 if self.neighbors == "replace_one" else 1',
        "        return 1",
        (
            "tests/core/mechanisms/test_partition_selection.py::test_a_replaced_record_changes_two_labels",
            "tests/releases/test_label_discovery.py::test_a_replaced_record_costs_half_of_the_loss_per_label",
        ),
    ),
    PlantedFault(
        "private labels: a draw counted from 0",
        "core/mechanisms/partition_selection.py",
        "            drawn = reached + 1",
        "            drawn = reached",
        ("tests/core/mechanisms/test_partition_selection.py::test_every_draw_is_decided_by_192_bits",),
    ),
    PlantedFault(
        "private labels: two records of a unit counted",
        "core/engines/distinct_labels.py",
        "lowest_of_each(self.units, keys, 1)",
        "lowest_of_each(self.units, keys, 2)",
        ("tests/releases/test_label_discovery.py::test_a_unit_counts_for_one_label",),
    ),
    PlantedFault(
        "private labels: an integer beyond 64 bits is a label of its own",
        "core/rows/raw_labels.py",
        "        return INT64.clip(int(cell))",
        "        return int(cell)",
        ("tests/releases/test_label_discovery.py::test_an_integer_beyond_64_bits_is_the_nearest_label",),
    ),
    PlantedFault(
        "private labels: cells of other types put together by their own equality",
        "core/rows/raw_labels.py",
        "        if not set(map(type, cells)) <= PUT_TOGETHER:",
        "        if not set(map(type, cells)):",
        (
            "tests/releases/test_label_discovery.py"
            "::test_a_text_that_equals_all_others_is_put_together_with_none",
        ),
    ),
    PlantedFault(
        "private labels: the label of a text is what its type shows",
        "core/rows/raw_labels.py",
        "text = str.__str__(cell) if",
        "text = str(cell) if",
        (
            "tests/releases/test_label_discovery.py"
            "::test_a_text_of_another_type_changes_the_label_of_no_other_record",
        ),
    ),
    PlantedFault(
        "bounds: spreads above the distance of the declared bounds",
        "core/statistics/private_bounds.py",
        "math.frexp(self.center)[1] - 14) if self.center else smallest, largest)",
        "math.frexp(self.center)[1] - 14) if self.center else smallest, 10**4)",
        ("tests/releases/test_found_bounds.py::test_any_declared_bounds_are_narrowed_at_most",),
    ),
    PlantedFault(
        "the centre of bounds taken to be monotone under replacement",
        "core/statistics/private_bounds.py",
        'or (stage == "reach" and self.scope.contribution == 1)',
        'or (stage != "spread" and self.scope.contribution == 1)',
        ("tests/core/statistics/test_private_bounds.py::test_no_stage_loses_more_than_its_share",),
    ),
    PlantedFault(
        "a search for bounds takes a unit for a record",
        "core/statistics/private_bounds.py",
        "        return Fraction(self.scope.contribution)",
        "        return Fraction(1)",
        ("tests/core/statistics/test_private_bounds.py::test_a_unit_of_three_equal_records_loses_no_more",),
    ),
    PlantedFault(
        "a stage of a search for bounds spends the share of another",
        "core/gate/tasks.py",
        "choosing.cost.epsilon * search.weight * share, search.sensitivity",
        "choosing.cost.epsilon * search.weight, search.sensitivity",
        ("tests/core/statistics/test_private_bounds.py::test_no_stage_loses_more_than_its_share",),
    ),
    PlantedFault(
        "quantiles by group: a replaced record taken to leave its group alone",
        "core/sensitivities.py",
        "        return weight * alone * disjoint_groups(neighbors=neighbors)",
        "        return weight * alone",
        (
            "tests/releases/test_grouped.py"
            "::test_the_sensitivity_of_quantiles_by_group_is_that_of_records_that_come_and_go",
        ),
    ),
    PlantedFault(
        "numbers of labels: a unit taken for a record",
        "core/statistics/counts.py",
        "        largest = sensitivity.nunique(neighbors=self.scope.neighbors) * self.scope.contribution",
        "        largest = sensitivity.nunique(neighbors=self.scope.neighbors)",
        ("tests/releases/test_grouped.py::test_the_number_of_labels_moves_as_far_as_is_stated",),
    ),
    PlantedFault(
        "sums as they are beside centred ones: the centre left out of the sensitivity",
        "core/statistics/sums.py",
        "            terms = q.low + shift, q.high + shift, q.unit",
        "            terms = q.low, q.high, q.unit",
        ("tests/core/statistics/test_statistics.py::test_random_tables_and_all_their_neighbours",),
    ),
    PlantedFault(
        "k-median costs taken to be monotone under replacement",
        "core/statistics/clusters.py",
        '        return self.scope.neighbors == "add_remove"',
        "        return True",
        ("tests/releases/test_clustering.py::test_the_loss_of_a_walk_over_all_neighbours_is_within_epsilon",),
    ),
    PlantedFault(
        "weights of parts ignored",
        "core/mechanisms/laplace.py",
        "        epsilon = request.each.epsilon * part.weight\n",
        "        epsilon = request.each.epsilon\n",
        ("tests/core/gate/test_execute.py::test_laplace_scales_follow_from_sensitivity_and_weight",),
    ),
    PlantedFault(
        "truncated parts clamped after the noise only",
        "core/gate/tasks.py",
        (
            '        if request.bounding == "truncated" and limits is not None:\n'
            "            values = add_within(whole, part.unit, mechanism, limits, source)\n"
            "        else:"
        ),
        ("        if False:\n            pass\n        else:"),
        (
            "tests/releases/test_bounding.py::test_one_record_alone_moves_a_rounded_sum_no_further_than_is_paid_for",
        ),
    ),
    PlantedFault(
        "rounding to a coarser grid left out of the sensitivity",
        "core/mechanisms/support.py",
        "    coarse = (math.floor(moved / grid) + part.l0) * grid\n",
        "    coarse = math.floor(moved / grid) * grid\n",
        ("tests/core/gate/test_execute.py::test_laplace_scales_follow_from_sensitivity_and_weight",),
    ),
    PlantedFault(
        "Gaussian events with too large a multiplier",
        "core/gate/tasks.py",
        "GaussianNoise(min(multipliers), ",
        "GaussianNoise(2 * min(multipliers), ",
        ("tests/test_oracle.py::test_each_verb_charges_and_reads_what_the_oracle_says",),
    ),
    PlantedFault(
        "centred sum's sensitivity off by 2",
        "core/sensitivities.py",
        "    alone = width / 2 if flag(centered",
        "    alone = width / 4 if flag(centered",
        ("tests/core/test_sensitivities.py::test_sums_are_tight",),
    ),
    PlantedFault(
        "sum under add_remove moves by the range",
        "core/sensitivities.py",
        ("    if not _replaces(neighbors):\n        return alone\n"),
        ("    if not _replaces(neighbors):\n        return width\n"),
        ("tests/core/test_sensitivities.py::test_sums_are_tight",),
    ),
    PlantedFault(
        "histogram under replacement moves by 1",
        "core/sensitivities.py",
        '    cells = disjoint_groups(neighbors=neighbors) * _at_least(1, levels, "levels")',
        '    cells = _at_least(1, levels, "levels")',
        ("tests/core/test_sensitivities.py::test_histograms_are_tight",),
    ),
    PlantedFault(
        "a replaced record leaves its group and enters no other",
        "core/sensitivities.py",
        "    return 2 if _replaces(neighbors) else 1\n\n\ndef disjoint_sums",
        "    return 1\n\n\ndef disjoint_sums",
        ("tests/core/test_sensitivities.py::test_disjoint_groups_are_tight",),
    ),
    PlantedFault(
        "rank in groups: a replaced record moves one score",
        "core/sensitivities.py",
        '    return groups if flag(grouped, "grouped") else 1',
        '    return 1 if flag(grouped, "grouped") else 1',
        ("tests/core/test_sensitivities.py::test_scores_in_groups_are_tight",),
    ),
    PlantedFault(
        "variance's sensitivity off by 2",
        "core/sensitivities.py",
        "    return width * width / _at_least(2 if _replaces(neighbors) else 3, n)",
        "    return width * width / _at_least(2 if _replaces(neighbors) else 3, n) / 2",
        ("tests/core/test_sensitivities.py::test_var_is_tight",),
    ),
    PlantedFault(
        "covariance's sensitivity divided by n + 1",
        "core/sensitivities.py",
        "    return area / _at_least(2 if _replaces(neighbors) else 3, n)",
        "    return area / (_at_least(2 if _replaces(neighbors) else 3, n) + 1)",
        ("tests/core/test_sensitivities.py::test_cov_is_tight",),
    ),
    PlantedFault(
        "pooled variance's sensitivity divided by n",
        "core/sensitivities.py",
        "    bound = width * width / (rows - cells)",
        "    bound = width * width / rows",
        ("tests/core/test_sensitivities.py::test_pooled_var_bound_and_supremum",),
    ),
    PlantedFault(
        "centred products of a replaced record move by one term",
        "core/sensitivities.py",
        "    return max(width, alone) if vanishes else width",
        "    return alone",
        ("tests/core/test_sensitivities.py::test_sums_of_centred_products_are_tight",),
    ),
    PlantedFault(
        "tight conversion of rho takes its last term twice",
        "core/accounting/rules.py",
        "log_up(1 / (alpha * slack)) / t + log_up(t / alpha))",
        "log_up(1 / (alpha * slack)) / t + 2 * log_up(t / alpha))",
        ("tests/core/accounting/test_rules.py::test_epsilons_are_those_of_another_search",),
    ),
    PlantedFault(
        "pure loss counted as a quarter of its square in rho",
        "core/accounting/rules.py",
        "        return self.squares / 2 + self.rho",
        "        return self.squares / 4 + self.rho",
        ("tests/core/accounting/test_rules.py::test_the_filter_is_the_inequality",),
    ),
    PlantedFault(
        "releases charged together counted once",
        "core/accounting/rules.py",
        "            self.epsilon + epsilons,",
        "            self.epsilon + item.epsilon,",
        ("tests/core/accounting/test_rules.py::test_the_filter_is_the_inequality",),
    ),
    PlantedFault(
        "deltas not added up",
        "core/accounting/rules.py",
        "            self.delta + number * item.delta if item.delta else self.delta,",
        "            item.delta if item.delta else self.delta,",
        ("tests/core/accounting/test_rules.py::test_slack_that_adds_up_to_one_is_refused",),
    ),
    PlantedFault(
        "cap on sums without its delta",
        "core/accounting/rules.py",
        " and after.delta <= self.total.delta",
        "",
        ("tests/core/accounting/test_rules.py::test_a_refusal_leaves_room_for_less",),
    ),
    PlantedFault(
        "sums among the parts of moments without a share",
        "core/statistics/sums.py",
        "        share = Fraction(1, 1 + len(summed) + len(self._pairs))",
        "        share = Fraction(1, 1 + len(self._pairs))",
        (
            "tests/core/statistics/test_least_squares.py::test_no_neighbour_moves_weighted_moments_further_than_claimed",
        ),
    ),
    PlantedFault(
        "interval of a regression without the sample",
        "core/statistics/least_squares.py",
        "        total = noise + sample",
        "        total = noise",
        ("tests/core/statistics/test_least_squares.py::test_errors_are_those_of_many_samples",),
    ),
    PlantedFault(
        "interval of a deviation not the root of the variance's",
        "core/statistics/sums.py",
        "        return np.sqrt(np.maximum(widened[0], 0.0)), np.sqrt(np.maximum(widened[1], 0.0))",
        "        return np.maximum(widened[0], 0.0), np.maximum(widened[1], 0.0)",
        ("tests/core/statistics/test_accuracy.py::test_intervals_of_variances_hold_what_rounding_moves",),
    ),
    PlantedFault(
        "partition under replacement charges one group",
        "amplification/sampling.py",
        '    times = min(columns[0].cells("partition"), protected.scope.l0)',
        "    times = 1",
        ("tests/releases/test_spending.py::test_groups_are_charged_once",),
    ),
    PlantedFault(
        "partition charges one group too few",
        "amplification/sampling.py",
        '        return Price(each, "", [(Event(each), times)], times=times)',
        '        return Price(each, "", [(Event(each), times)], times=max(times - 1, 1))',
        ("tests/releases/test_spending.py::test_groups_are_charged_once",),
    ),
    PlantedFault(
        "hash of a record not checked before the next charge",
        "ledger/store.py",
        "    if (row.number, row.hash) != (number, digest(hashed, number, row.body)):",
        "    if row.number != number:",
        ("tests/ledger/test_audit.py::test_an_altered_last_charge_is_refused_before_the_next_one",),
    ),
    PlantedFault(
        "hash of the record before not checked by the audit",
        "ledger/audit.py",
        "        elif digest(self.hash, row.number, row.body) != row.hash:",
        "        elif False:",
        ("tests/ledger/test_audit.py::test_a_byte_of_any_record_is_found",),
    ),
    PlantedFault(
        "audit believes the sums that a charge holds",
        "ledger/audit.py",
        '        if (requested, spent, unstated) != (*stated, "true}" if budget.unstated else "false}"):',
        '        if unstated != ("true}" if budget.unstated else "false}"):',
        (
            "tests/ledger/test_audit.py::test_sums_that_are_not_those_of_the_charges_are_found_in_a_whole_new_chain",
        ),
    ),
    PlantedFault(
        "audit takes a sum for the one before it",
        "ledger/audit.py",
        "            if before != (self.sums[position], term):",
        "            if before is None:",
        ("tests/ledger/test_budget.py::test_an_audit_adds_up_each_accounting_as_the_charges_do",),
    ),
    PlantedFault(
        "charges of other processes forgotten",
        "ledger/book.py",
        '            if later.budget == self.name and later.kind != "answer":',
        '            if later.budget == self.name and later.kind == "redeclare":',
        ("tests/ledger/test_budget.py::test_charges_in_turns_through_two_ledgers_add_up",),
    ),
    PlantedFault(
        "declaration anew forgotten by who charged before",
        "ledger/book.py",
        '            if later.budget == self.name and later.kind != "answer":',
        '            if later.budget == self.name and later.kind == "charge":',
        ("tests/ledger/test_budget.py::test_charges_in_turns_through_two_ledgers_add_up",),
    ),
    PlantedFault(
        "audit passes charges above the cap",
        "ledger/audit.py",
        "            return not self.charges or self.terms.rule.holds(spent)",
        "            return True",
        ("tests/ledger/test_audit.py::test_charges_above_the_cap_are_found_in_a_whole_new_chain",),
    ),
    PlantedFault(
        "audit does not ask the store for damage",
        "ledger/audit.py",
        "    walk.problems += chain.read(lambda reader: reader.damage(last))\n",
        "",
        ("tests/ledger/test_audit.py::test_an_audit_finds_an_index_that_lacks_a_release",),
    ),
    PlantedFault(
        "added trigger not looked for",
        "ledger/files.py",
        '    if any(kind == "trigger" and name not in SCHEMA for name, kind, _ in objects):',
        "    if False:",
        ("tests/ledger/test_audit.py::test_an_audit_finds_what_no_longer_guards_the_records",),
    ),
    PlantedFault(
        "missing record not told by the audit",
        "ledger/audit.py",
        "            self.problems.append(missing(self.number + 1, row.number - 1))",
        "            pass",
        ("tests/ledger/test_audit.py::test_records_removed_swapped_or_mislabelled_are_found",),
    ),
    PlantedFault(
        "remembered head not compared",
        "ledger/audit.py",
        "and row.label != head:",
        "and False:",
        ("tests/ledger/test_audit.py::test_only_a_head_kept_elsewhere_tells_a_whole_new_chain",),
    ),
    PlantedFault(
        "shortened ledger not told from a remembered head",
        "ledger/audit.py",
        "        least = max(last, remembered)",
        "        least = last",
        ("tests/command/test_command.py::test_audit_with_a_head_tells_an_older_copy",),
    ),
    PlantedFault(
        "release id charged twice in a ledger",
        "ledger/book.py",
        '(row := writer.find(self.name, "charge", release)) is not None:',
        "(row := None) is not None:",
        ("tests/ledger/test_budget.py::test_a_ledger_and_memory_keep_the_same_accounts",),
    ),
    PlantedFault(
        "last charge taken from the index alone",
        "ledger/book.py",
        "        if last is None and reader.last_charge(self.name, number) is not None:",
        "        if False:",
        ("tests/ledger/test_audit.py::test_an_index_that_hides_the_last_charge_is_found",),
    ),
    PlantedFault(
        "charge of a budget in memory forgotten",
        "ledger/book.py",
        "            self._account = entry.after\n",
        "",
        ("tests/ledger/test_ledger.py::test_three_tenths_fit_into_three_tenths_and_nothing_else_does",),
    ),
    PlantedFault(
        "transaction of a parent used in a forked process",
        "ledger/sqlite.py",
        "        transaction.disown()\n",
        "        pass\n",
        ("tests/ledger/test_sqlite.py::test_a_fork_within_a_transaction_leaves_it_to_the_parent",),
    ),
    PlantedFault(
        "unit keeps max_rows + 1 records",
        "core/engines/unit_codes.py",
        "lowest_of_each(codes[crowded], keys, most)",
        "lowest_of_each(codes[crowded], keys, most + 1)",
        ("tests/frames/test_units.py::test_at_most_so_many_records_of_a_unit_stay_and_all_of_smaller_ones",),
    ),
    PlantedFault(
        "first records of a unit kept in place of any",
        "core/engines/unit_codes.py",
        "        keys = noise.shuffled_keys(len(crowded), source)",
        "        keys = np.arange(len(crowded))",
        ("tests/frames/test_units.py::test_any_records_of_a_unit_stay_with_the_same_probability",),
    ),
    PlantedFault(
        "public_rows trusted where units have several records",
        "frames/protect.py",
        "    if public_rows is not None:",
        "    if False:",
        ("tests/frames/test_units.py::test_a_call_that_does_not_fit_is_refused",),
    ),
    PlantedFault(
        "signed zeros as two units",
        "core/engines/unit_codes.py",
        "np.unique(array, return_inverse=True)[1] if array.dtype.kind",
        'np.unique(array.view(f"u{array.itemsize}"), return_inverse=True)[1] if array.dtype.kind',
        ("tests/core/engines/test_unit_codes.py::test_equal_names_are_one_unit_in_every_column_of_pandas",),
    ),
    PlantedFault(
        "nulls counted as present",
        "core/engines/pandas_engine.py",
        "        return self.rows - int(nulls(self._frame[column.name]).sum())",
        "        return self.rows",
        ("tests/core/engines/test_pandas_engine.py::test_every_dtype_of_strings_reads_the_same",),
    ),
    PlantedFault(
        "nulls of a sum counted",
        "core/engines/pandas_engine.py",
        "                count -= int(np.count_nonzero(nulls))",
        "                count -= 0",
        (
            "tests/core/engines/test_pandas_engine.py::test_numbers_are_clamped_and_rounded_to_the_grid_at_every_read",
        ),
    ),
    PlantedFault(
        "record without a declared cell counted",
        "core/engines/blocks.py",
        "            kept = np.flatnonzero(column.cells >= 0)",
        "            kept = np.flatnonzero(column.cells >= -1)",
        ("tests/core/engines/test_pandas_engine.py::test_every_dtype_of_numbers_reads_the_same",),
    ),
    PlantedFault(
        "records of a negative sum miscounted",
        "core/engines/pandas_engine.py",
        "(steps + (1 << RECORD - 1)) >> RECORD",
        "steps >> RECORD",
        (
            "tests/core/engines/test_pandas_engine.py::test_sums_per_group_are_exact_where_all_records_are_at_a_bound",
        ),
    ),
    PlantedFault(
        "values not clamped to their bounds",
        "core/statistics/interface.py",
        "        np.clip(block, self.lower, self.upper, out=out)",
        "        np.copyto(out, block)",
        (
            "tests/core/engines/test_pandas_engine.py::test_numbers_are_clamped_and_rounded_to_the_grid_at_every_read",
        ),
    ),
    PlantedFault(
        "neighbours swapped in what one unit moves",
        "core/sensitivities.py",
        "    return 2 if _replaces(neighbors) else 1\n\n\ndef disjoint_sums",
        "    return 1 if _replaces(neighbors) else 2\n\n\ndef disjoint_sums",
        ("tests/releases/test_spending.py::test_groups_are_charged_once",),
    ),
    PlantedFault(
        "l2 of a unit's cells not squared",
        "core/statistics/interface.py",
        "int(l2_squared) * self.contribution**2",
        "int(l2_squared) * self.contribution",
        ("tests/frames/test_units.py::test_noise_grows_with_the_records_of_a_unit",),
    ),
    PlantedFault(
        "filtered record cannot vanish from a sum",
        "core/statistics/interface.py",
        "may_vanish=self.filtered or nullable",
        "may_vanish=nullable",
        (
            "tests/core/statistics/test_statistics.py::test_a_replaced_record_that_leaves_by_a_filter_moves_a_sum_by_its_whole_value",
        ),
    ),
    PlantedFault(
        "number of rows public after a filter",
        "core/statistics/interface.py",
        "        return replace(self, rows=None, filtered=True)",
        "        return self",
        ("tests/frames/test_frame.py::test_a_filter_makes_the_number_of_rows_private",),
    ),
    PlantedFault(
        "noisy numbers not clamped to their bounds",
        "core/gate/tasks.py",
        (
            "            values = add(whole, part.unit, mechanism, source)\n"
            "        if limits is not None:\n"
            "            values = np.clip(values, *(np.asarray(limit, np.float64) for limit in limits))"
        ),
        "            values = add(whole, part.unit, mechanism, source)",
        (
            "tests/releases/test_bounding.py::test_released_numbers_lie_within_the_bounds_that_the_metadata_states",
        ),
    ),
    PlantedFault(
        "several releases charged once",
        "core/gate/request.py",
        "        return loss(self.cost.epsilon / self.releases, self.cost.delta / self.releases)",
        "        return self.cost",
        ("tests/releases/test_bounding.py::test_truncated_laplace_noise_of_all_parts_loses_epsilon_at_most",),
    ),
    PlantedFault(
        "fingerprint without the numbers",
        "releases/metadata.py",
        "        digest.update(whole.dtype.str.encode() + whole.tobytes())",
        "        digest.update(whole.dtype.str.encode())",
        ("tests/releases/test_metadata.py::test_other_numbers_do_not_verify",),
    ),
    PlantedFault(
        "fingerprint without the labels",
        "releases/metadata.py",
        "        digest.update(_labels(axis).encode())",
        "        pass",
        ("tests/releases/test_metadata.py::test_other_numbers_do_not_verify",),
    ),
    PlantedFault(
        "numbers verified whatever they are",
        "releases/metadata.py",
        "    return as_released(released) is not None and read(released).part is None",
        "    return bool(read(released))",
        ("tests/releases/test_metadata.py::test_a_raw_column_put_into_a_result_is_seen",),
    ),
    PlantedFault(
        "interval half as wide",
        "releases/metadata.py",
        "(before - half, before + half)",
        "(before - half / 2, before + half / 2)",
        ("tests/releases/test_metadata.py::test_an_interval_surrounds_each_number",),
    ),
    PlantedFault(
        "intervals that shrink to a limit",
        "releases/metadata.py",
        "before = np.clip(before, low, high)\n",
        "\n",
        (
            "tests/releases/test_projection.py"
            "::test_an_interval_ends_at_the_limits_and_one_beyond_them_keeps_its_margin_of_error",
        ),
    ),
    PlantedFault(
        "intervals of correlations that end at 0",
        "releases/metadata.py",
        "_of_shape(np.array(-1.0), shape), _of_shape(np.array(1.0), shape)",
        "_of_shape(np.array(0.0), shape), _of_shape(np.array(0.99), shape)",
        ("tests/core/statistics/test_confidence.py::test_intervals_end_at_public_limits_and_hold_as_often",),
    ),
    PlantedFault(
        "seeded noise stated as private",
        "releases/publish.py",
        '        "seeded": drawn.seeded or facts.seeded,',
        '        "seeded": facts.seeded,',
        ("tests/releases/test_moments.py::test_metadata_names_the_call_and_the_budget",),
    ),
    PlantedFault(
        "releases of a plan made at the price of the first",
        "core/gate/execute.py",
        "            read_and_draw(release, price, entry, source, answers, release_id)",
        "            read_and_draw(release, priced[0][1], entry, source, answers, release_id)",
        ("tests/releases/test_spending.py::test_a_plan_makes_its_releases_in_their_order",),
    ),
    PlantedFault(
        "batch charges its first call alone",
        "releases/batches.py",
        "        return _plan_of(self._protected, self._releases, self._delta, self._accounting)",
        "        return _plan_of(self._protected, self._releases[:1], self._delta, self._accounting)",
        (
            "tests/releases/test_batches.py::test_a_batch_releases_what_its_calls_would_and_charges_their_sum_at_once",
        ),
    ),
    PlantedFault(
        "label that fills nulls not declared",
        "core/rows/regions.py",
        "        labels = None if self.labels is None else {**self.labels, value: None}",
        "        labels = self.labels",
        ("tests/core/rows/test_steps.py::test_fillna_widens_what_is_declared",),
    ),
    PlantedFault(
        "number that fills nulls does not widen the bounds",
        "core/rows/regions.py",
        "else self.interval.hull(Interval(value, value))",
        "else self.interval",
        ("tests/core/rows/test_steps.py::test_fillna_widens_what_is_declared",),
    ),
    PlantedFault(
        "cut at the wrong side of an edge",
        "core/rows/conversion.py",
        'side="left" if right else "right"',
        'side="right" if right else "left"',
        ("tests/core/rows/test_steps.py::test_cut_is_that_of_pandas",),
    ),
    PlantedFault(
        "logarithms in the rounding of extended precision",
        "core/rows/elementary.py",
        "_ERROR = 8 * np",
        "_ERROR = 0 * np",
        ("tests/core/rows/test_functions.py::test_results_are_the_doubles_nearest_to_the_exact_ones",),
    ),
    PlantedFault(
        "functions of NumPy as they are",
        "core/rows/functions.py",
        "functools.partial(correctly_rounded, name)",
        "getattr(np, name)",
        ("tests/core/rows/test_functions.py::test_a_result_is_a_function_of_its_cell_wherever_it_lies",),
    ),
    PlantedFault(
        "logarithms of zero",
        "core/rows/functions.py",
        "    if lower > least or (",
        "    if lower >= least or (",
        ("tests/core/rows/test_functions.py::test_bounds_hold_by_brute_force",),
    ),
    PlantedFault(
        "ordered labels compared by one too many",
        "core/rows/reader.py",
        "if ORDERINGS[symbol](position, limit)]",
        "if ORDERINGS[symbol](position, limit) or position == limit]",
        ("tests/core/rows/test_label_mappings.py::test_ordered_labels_are_compared_as_in_pandas",),
    ),
    PlantedFault(
        "nulls that cut makes not declared",
        "core/rows/conversion.py",
        "    nullable = column.nullable or bool((interval_of(ends) < 0).any())",
        "    nullable = column.nullable",
        ("tests/core/rows/test_steps.py::test_cut_declares_nulls_only_where_they_occur",),
    ),
    PlantedFault(
        "clip leaves the declared bound",
        "declaration/intervals.py",
        "        return min(max(number, self.lower), self.upper)",
        "        return max(number, self.lower)",
        ("tests/core/rows/test_steps.py::test_clip_declares_what_it_leaves",),
    ),
    PlantedFault(
        "clip narrows the declared bound too far",
        "declaration/intervals.py",
        "        return min(max(number, self.lower), self.upper)",
        "        return self.upper if self.upper < math.inf else max(number, self.lower)",
        ("tests/core/rows/test_steps.py::test_clip_declares_what_it_leaves",),
    ),
    PlantedFault(
        "strict comparison narrows by one too many",
        "declaration/intervals.py",
        "math.ceil(upper) - 1 if self.open_upper else",
        "math.ceil(upper) - 2 if self.open_upper else",
        ("tests/core/rows/test_conditions.py::test_integer_bounds_and_bins_after_the_filter",),
    ),
    PlantedFault(
        "alternative narrows to the larger of two lower bounds",
        "declaration/intervals.py",
        "        lower, open_lower = min(",
        "        lower, open_lower = max(",
        ("tests/core/rows/test_conditions.py::test_integer_bounds_and_bins_after_the_filter",),
    ),
    PlantedFault(
        "nulls that pass a filter not declared",
        "core/rows/conditions.py",
        "    declared = Region(True, column.nullable and of_null in truths, column.interval)",
        "    declared = Region(True, False, column.interval)",
        ("tests/core/rows/test_conditions.py::test_nulls_stay_declared_only_where_they_can_pass",),
    ),
    PlantedFault(
        "geometric noise 10 % too small",
        "core/mechanisms/geometric.py",
        "        return noise.discrete_laplace(self.steps, size, source)",
        "        return noise.discrete_laplace(self.steps * 9 / 10, size, source)",
        ("tests/core/mechanisms/test_mechanisms.py::test_integer_draws_have_the_claimed_scale_and_no_other",),
    ),
    PlantedFault(
        "discrete Gaussian noise 10 % too small",
        "core/mechanisms/discrete_gaussian.py",
        "        return noise.discrete_gaussian(self.sigma**2, size, source)",
        "        return noise.discrete_gaussian(self.sigma**2 * 81 / 100, size, source)",
        ("tests/core/mechanisms/test_mechanisms.py::test_integer_draws_have_the_claimed_scale_and_no_other",),
    ),
    PlantedFault(
        "discrete Gaussian noise for twice the delta",
        "core/mechanisms/discrete_gaussian.py",
        "slack = float(delta) * (1 - 1e-9) / ",
        "slack = 2 * float(delta) / ",
        (
            "tests/core/mechanisms/test_discrete_gaussian.py::test_discrete_gaussian_noise_has_at_most_its_delta",
        ),
    ),
    PlantedFault(
        "discrete Gaussian noise of several numbers for the move of one",
        "core/mechanisms/discrete_gaussian.py",
        "    return discrete_gaussian_delta(epsilon, sigma * root / divisor, squared // divisor)",
        "    return discrete_gaussian_delta(epsilon, sigma, math.isqrt(squared))",
        (
            "tests/core/mechanisms/test_discrete_gaussian.py::test_discrete_gaussian_noise_for_several_numbers_has_at_most_its_delta",
        ),
    ),
    PlantedFault(
        "discrete Gaussian noise for twice the rho",
        "core/mechanisms/discrete_gaussian.py",
        " / (2 * rho)))",
        " / (4 * rho)))",
        (
            "tests/core/mechanisms/test_discrete_gaussian.py::test_zcdp_noise_has_the_largest_rho_that_converts_to_its_loss",
        ),
    ),
    PlantedFault(
        "tables of discrete Gaussian noise that do not share rho",
        "core/mechanisms/discrete_gaussian.py",
        "        share = root_above(part.l2_squared / part.weight)",
        "        share = root_above(part.l2_squared / part.weight**0)",
        (
            "tests/core/mechanisms/test_in_releases.py::test_several_tables_of_discrete_gaussian_noise_share_rho",
        ),
    ),
    PlantedFault(
        "staircase noise for several changed numbers",
        "core/mechanisms/staircase.py",
        "        if part.l0 > 1:",
        "        if False:",
        ("tests/core/mechanisms/test_in_releases.py::test_an_impossible_claim_is_refused_before_the_charge",),
    ),
    PlantedFault(
        "staircase on a coarse grid without the step of rounding",
        "core/mechanisms/staircase.py",
        "        moved = sensitivity_on_grid(part, grid, truncated=False)",
        "        moved = moved // grid * grid",
        ("tests/core/mechanisms/test_in_releases.py::test_a_coarse_grid_widens_the_stair_by_a_step",),
    ),
    PlantedFault(
        "moments of a staircase without its last stair",
        "core/distributions.py",
        " + last * decay * stair ** (k - i))",
        ")",
        (
            "tests/core/mechanisms/test_staircase.py::test_partial_moments_of_the_staircase_are_sums_over_its_blocks",
        ),
    ),
    PlantedFault(
        "intervals of sums of coarse noise without a step",
        "core/statistics/confidence.py",
        "        return (width + self.law.coarseness / std) * unit",
        "        return width * unit",
        ("tests/core/mechanisms/test_in_releases.py::test_the_tail_of_coarse_noise_bounds_sums",),
    ),
    PlantedFault(
        "gain of truncation without its rounding",
        "core/mechanisms/generalized_gaussian.py",
        "ROUNDING = 2.0**-50",
        "ROUNDING = 0.0",
        (
            "tests/core/mechanisms/test_bounded_privacy.py::test_the_rounding_of_the_gain_of_truncation_is_accounted_for",
        ),
    ),
    PlantedFault(
        "staircase steeper by a tenth",
        "core/mechanisms/staircase.py",
        "        return noise.staircase(self.epsilon, self.stair, self.step, size, source)",
        "        return noise.staircase(self.epsilon * 10 / 9, self.stair, self.step, size, source)",
        ("tests/core/mechanisms/test_staircase.py::test_staircase_draws_have_the_claimed_law_and_no_other",),
    ),
    PlantedFault(
        "Laplace noise without the steps of rounding",
        "core/mechanisms/additive.py",
        "support.ROUNDING_STEPS if self._leaves_room",
        "0 if self._leaves_room",
        (
            "tests/core/mechanisms/test_laplace.py::test_laplace_on_the_default_grid_covers_the_rounding_of_1024_values",
        ),
    ),
    PlantedFault(
        "Gaussian noise without the steps of rounding",
        "core/mechanisms/gaussian.py",
        "        return True\n",
        "        return False\n",
        (
            "tests/core/mechanisms/test_gaussian.py::test_gaussian_on_the_default_grid_covers_the_rounding_of_a_million_values",
        ),
    ),
    PlantedFault(
        "Gaussian noise without the rounding to a coarser grid",
        "core/mechanisms/support.py",
        "    return moved if grid <= part.unit else moved + ",
        "    return moved if grid else moved + ",
        ("tests/core/gate/test_execute.py::test_rounding_to_a_grid_coarser_than_the_unit_is_paid_for",),
    ),
    PlantedFault(
        "values off the grid taken",
        "core/mechanisms/support.py",
        "    if exact and not np.array_equal(rounded, units):",
        "    if False:",
        (
            "tests/core/mechanisms/test_mechanisms.py::test_values_off_a_given_grid_are_refused_without_a_value",
        ),
    ),
    PlantedFault(
        "each of several labels selected at the loss of all",
        "core/gate/tasks.py",
        "        epsilon = share.epsilon * choice.weight / times",
        "        epsilon = share.epsilon * choice.weight",
        ("tests/releases/test_selection.py::test_a_selection_costs_what_it_says_and_is_listed",),
    ),
    PlantedFault(
        "each selection of a walk at the loss of all",
        "core/gate/tasks.py",
        "        epsilon = choosing.cost.epsilon / walk.selections",
        "        epsilon = choosing.cost.epsilon",
        ("tests/releases/test_clustering.py::test_the_loss_of_a_walk_over_all_neighbours_is_within_epsilon",),
    ),
    PlantedFault(
        "ranks of all sorted quantiles taken for those of each",
        "releases/quantile_order.py",
        "    together = 1 - (1 - level) / max(sorted_quantiles, 1)",
        "    together = level",
        ("tests/releases/test_quantile_order.py::test_the_ranks_are_those_of_a_union_bound",),
    ),
    PlantedFault(
        "a minimum beside quantiles sorted among them",
        "releases/quantile_order.py",
        "for at in ranking.tolist() if choices[at].end is None]",
        "for at in ranking.tolist()]",
        (
            "tests/releases/test_quantile_order.py"
            "::test_a_minimum_and_a_maximum_are_the_ends_and_move_no_quantile",
        ),
    ),
    PlantedFault(
        "score of a quantile moves by the smaller share",
        "core/sensitivities.py",
        '    weight, alone = positive(weight_upper, "weight_upper"), max(share, 1 - share)',
        '    weight, alone = positive(weight_upper, "weight_upper"), min(share, 1 - share)',
        ("tests/core/statistics/test_candidates.py::test_a_record_moves_no_score_further_than_is_stated",),
    ),
    PlantedFault(
        "score of a weighted quantile moves as one of records",
        "core/statistics/candidates.py",
        "        largest = 1 if self.weights is None else self.weights.high",
        "        largest = 1",
        (
            "tests/core/statistics/test_weighted.py::test_a_record_moves_no_weighted_score_further_than_is_stated",
        ),
    ),
    PlantedFault(
        "table of weights moves by the smallest weight",
        "core/statistics/weighted.py",
        "        terms, bounds = (self.weight.low, self.weight.high, self.weight.unit)",
        "        terms, bounds = (self.weight.low, self.weight.low + 1, self.weight.unit)",
        (
            "tests/core/statistics/test_weighted.py"
            "::test_no_neighbour_moves_a_weighted_statistic_further_than_its_parts_claim",
        ),
    ),
    PlantedFault(
        "weighted term bounded by the smallest weight",
        "core/sensitivities.py",
        "max(weight_lower * upper, weight_upper * upper)",
        "weight_lower * upper",
        ("tests/core/test_sensitivities.py::test_the_range_of_weighted_terms_is_tight",),
    ),
    PlantedFault(
        "null weights count as no reason to leave a record out",
        "core/statistics/weighted.py",
        "            nullable = q.column.nullable or weight.column.nullable",
        "            nullable = q.column.nullable",
        (
            "tests/core/statistics/test_weighted.py"
            "::test_no_neighbour_moves_a_weighted_statistic_further_than_its_parts_claim",
        ),
    ),
    PlantedFault(
        "design effect of the mean weight alone",
        "core/statistics/weighted.py",
        "((a + b) * totals - known * a * b)",
        "(a * totals)",
        ("tests/core/statistics/test_weighted.py::test_the_effective_number_is_never_above_the_one_of_kish",),
    ),
    PlantedFault(
        "rounding of weights left out of the interval of a mean",
        "core/statistics/weighted.py",
        "[rows * term for term in terms]",
        "[0 * term for term in terms]",
        ("tests/core/statistics/test_weighted.py::test_intervals_hold_the_rounding_of_weights_and_values",),
    ),
    PlantedFault(
        "bounded cells raise the effective number of a table",
        "core/statistics/weighted.py",
        "effective_rows(sums - raised * cells,",
        "effective_rows(sums + 0 * cells,",
        ("tests/core/statistics/test_weighted.py::test_bounded_cells_do_not_raise_the_effective_number",),
    ),
    PlantedFault(
        "score of a quantile not moved by max_rows records",
        "core/statistics/candidates.py",
        "        return change * self.scope.contribution",
        "        return change * (self.scope.contribution if self.keys else 1)",
        (
            "tests/core/statistics/test_candidates.py::test_a_unit_of_two_records_moves_no_score_further_than_is_stated",
        ),
    ),
    PlantedFault(
        "sums of k-means take the share of the counts, too",
        "core/statistics/clusters.py",
        "        each = (1 - self.share) / len(self.quantities)",
        "        each = 1 / Fraction(len(self.quantities))",
        ("tests/releases/test_clustering.py::test_shares_add_up_to_one",),
    ),
    PlantedFault(
        "costs of k-median not moved by max_rows records",
        "core/statistics/clusters.py",
        "        return self.scope.sum_sensitivity(0, DIAMETER, nullable=False)",
        "        return DIAMETER",
        ("tests/releases/test_clustering.py::test_no_record_moves_a_cost_further_than_the_sensitivity",),
    ),
    PlantedFault(
        "levels of a tree of counts taken to be one",
        "core/statistics/counts.py",
        "        l1, l2_squared = self.cells.scope.table_sensitivities(levels)",
        "        l1, l2_squared = self.cells.scope.table_sensitivities()",
        (
            "tests/releases/test_bounding.py::test_neighbours_move_no_part_further_and_no_more_numbers_than_it_says",
        ),
    ),
    PlantedFault(
        "variance divided by n",
        "core/statistics/direct.py",
        "rows * (rows - 1),\n",
        "rows * rows,\n",
        ("tests/releases/test_moments.py::test_moments_are_those_of_pandas",),
    ),
    PlantedFault(
        "secret part shared with a forked process",
        "amplification/sampling.py",
        "        if os.getpid() != self.process:",
        "        if False:",
        ("tests/amplification/test_sampling.py::test_a_forked_process_cannot_release_a_part",),
    ),
    PlantedFault(
        "delta of a part amplified as if nothing was released before",
        "amplification/suppression/amplification.py",
        "        if not before or self.rate == 1:",
        "        if True:",
        (
            "tests/amplification/test_sampling.py::test_deltas_of_a_part_and_of_the_whole_are_charged_on_one_scale",
        ),
    ),
    PlantedFault(
        "local risk without the noise",
        "risk/exact_risk.py",
        ("        hidden = reading.empty(values)\n        seen"),
        ("        hidden = np.where(values > 0, 0.0, 1.0)\n        seen"),
        ("tests/risk/test_risk.py::test_local_risk_is_its_definition",),
    ),
    PlantedFault(
        "homogeneity of all labels but the last",
        "risk/exact_risk.py",
        "        for label, at in enumerate(positions):",
        "        for label, at in enumerate(positions[:-1]):",
        ("tests/risk/test_risk.py::test_local_risk_is_its_definition",),
    ),
    PlantedFault(
        "risk averaged over cells in place of records",
        "risk/compositions.py",
        "            weights *= self.sizes",
        "            pass",
        ("tests/risk/test_risk.py::test_without_noise_the_risk_is_the_share_of_homogeneous_cells",),
    ),
    PlantedFault(
        "curator's frames without their mark",
        "risk/table_risk.py",
        "    frame.attrs[KEY] = {MARK: kind, **words}",
        "    pass",
        ("tests/risk/test_disclosure_risk.py::test_nothing_is_charged_and_nothing_is_stored",),
    ),
    PlantedFault(
        "confidential number printed as a plain one",
        "core/privacy.py",
        '        return f"{float.__repr__(self)} (confidential){meaning}"',
        "        return float.__repr__(self)",
        ("tests/risk/test_disclosure_risk.py::test_a_confidential_number_says_so_and_is_a_number",),
    ),
    PlantedFault(
        "confidential number taken as a public constant",
        "core/rows/nodes.py",
        '    if getattr(value, "confidential", False) is True:',
        "    if False:",
        ("tests/core/rows/test_steps.py::test_numbers_made_of_confidential_counts_are_no_constants",),
    ),
    PlantedFault(
        "changed call of a step accepted",
        "pipeline/keeper.py",
        '        if changed := differing(note["call"], call):',
        "        if changed := []:",
        ("tests/pipeline/test_step.py::test_files_of_an_earlier_version_are_checked",),
    ),
    PlantedFault(
        "a step goes on with another ledger",
        "pipeline/step.py",
        '        if not self._holds(before.get("head")):',
        "        if False:",
        ("tests/pipeline/test_step.py::test_another_ledger_does_not_go_on",),
    ),
    PlantedFault(
        "terms of a step not stored with its releases",
        "pipeline/keeper.py",
        "self._terms, self._note = terms, note\n",
        "self._terms, self._note = {}, note\n",
        ("tests/pipeline/test_step.py::test_a_wrong_call_does_not_block_the_right_one",),
    ),
    PlantedFault(
        "damaged file of a stored release accepted",
        "pipeline/folder.py",
        "            if digest_of(data) != digest:",
        "            if False:",
        ("tests/pipeline/test_step.py::test_a_damaged_result_is_told",),
    ),
    PlantedFault(
        "changed numbers of a saved release accepted",
        "pipeline/shapes.py",
        "    if original is None or not alike:",
        "    original = released\n    if False:",
        ("tests/pipeline/test_storage.py::test_no_cell_of_a_csv_file_can_be_changed",),
    ),
    PlantedFault(
        "changed metadata of a saved release accepted",
        "pipeline/shapes.py",
        '    if shape.get("digest", digest := _digest(attrs.get(KEY), shape)) != digest:',
        '    if shape.get("digest", digest := _digest(attrs.get(KEY), shape)) == "":',
        ("tests/pipeline/test_storage.py::test_no_part_of_the_metadata_or_of_json_can_be_changed",),
    ),
    PlantedFault(
        "confidential figures saved as releases",
        "releases/excerpts.py",
        '    if recognized(released).what == "confidential":',
        "    if False:",
        ("tests/pipeline/test_storage.py::test_changed_releases_and_other_objects_are_not_saved",),
    ),
    PlantedFault(
        "weighted sum beside a mean calibrated as a centred one",
        "core/statistics/weighted.py",
        "                shift = shift_to(q, piece)",
        "                shift = 0",
        (
            "tests/core/statistics/test_weighted.py::test_no_neighbour_moves_a_weighted_statistic_further_than_its_parts_claim[add_remove-agg]",
        ),
    ),
    PlantedFault(
        "answer of another filter given again",
        "frames/answers.py",
        "    return (*texts.items(), groups, steps, facts.scope",
        "    return (*[pair for pair in texts.items() if pair[0] != 'after'], groups, facts.scope",
        ("tests/frames/test_answers.py::test_every_other_request_is_charged",),
    ),
    PlantedFault(
        "answer of one secret sample given for another",
        "frames/answers.py",
        ", id(facts.budget), id(facts.secret))",
        ")",
        ("tests/frames/test_answers.py::test_secret_parts_and_groups_of_partitions_are_told_apart",),
    ),
    PlantedFault(
        "seed written into the notes of a step",
        "frames/call_texts.py",
        '("None" if value is None else "given") if name == SEED else',
        "",
        ("tests/pipeline/test_step.py::test_seeded_releases_are_marked_and_their_seed_is_not_kept",),
    ),
    PlantedFault(
        "hints name the columns of the documentation",
        "errors.py",
        'isinstance(error.hint, Example) and hasattr(owner, "_declared"):',
        'isinstance(error.hint, Example) and hasattr(owner, "_undeclared"):',
        ("tests/frames/test_own_hints.py::test_hints_name_declared_columns_in_calls_that_run",),
    ),
    PlantedFault(
        "budget of a step pays for anything",
        "pipeline/keeper.py",
        "        if release_id is None or release_id != self._paying_for:",
        "        if False:",
        ("tests/pipeline/test_step.py::test_the_budget_pays_for_nothing_else",),
    ),
    PlantedFault(
        "changed release accepted as a result of a step",
        "pipeline/keeper.py",
        (
            "        if attrs != kept.attrs or not metadata.verify(returned) or violations(returned, "
            "kept.schema):"
        ),
        "        if False:",
        ("tests/pipeline/test_step.py::test_only_releases_of_the_step_are_results",),
    ),
    PlantedFault(
        "snapshot shares its memory with the owner",
        "frames/protect.py",
        "    records = copied_columns(left, domain)",
        "    records = left[list(domain)]",
        (
            "tests/core/gate/test_facts.py::test_no_write_to_memory_of_the_owner_reaches_a_release_of_a_pandas_frame",
        ),
    ),
    PlantedFault(
        "objects of the snapshot shared with the owner",
        "core/gate/copies.py",
        "            cells[index] = _own_cell(cell, column)",
        "            pass",
        ("tests/core/gate/test_facts.py::test_no_change_of_an_object_of_the_owner_reaches_a_release",),
    ),
    PlantedFault(
        "mask of another frame accepted",
        "frames/frame.py",
        "        if not column._is_kept_by(self._protected):",
        "        if False:",
        ("tests/frames/test_column.py::test_a_column_belongs_to_its_frame",),
    ),
    PlantedFault(
        "mask over a column that a later step changed accepted",
        "core/gate/facts.py",
        "            name in self.domain and name not in made and ",
        "            name in self.domain and ",
        (
            "tests/frames/test_earlier_columns.py::test_columns_of_unrelated_later_and_changed_frames_are_refused",
        ),
    ),
    PlantedFault(
        "mask of a frame of other records accepted",
        "core/gate/facts.py",
        "        if not all(map(operator.is_, self.lineage, earlier.lineage)):",
        "        if False:",
        (
            "tests/frames/test_earlier_columns.py::test_columns_of_unrelated_later_and_changed_frames_are_refused",
        ),
    ),
    PlantedFault(
        "NumPy scalars taken as literals of symbolic columns",
        "frames/column.py",
        "        if type(value) not in _PLAIN:",
        "        if not isinstance(value, _PLAIN):",
        ("tests/frames/test_column.py::test_operands_of_numpy_and_pandas_are_refused_in_both_orders",),
    ),
    PlantedFault(
        "group of a partition charges the budget of the whole",
        "core/gate/parts.py",
        "            budget=budget,\n",
        "",
        ("tests/releases/test_spending.py::test_groups_are_charged_once",),
    ),
    PlantedFault(
        "number of records of a group taken to be public",
        "core/gate/parts.py",
        "            scope=facts.scope.of_subset(),\n            budget=budget,",
        "            budget=budget,",
        ("tests/releases/test_spending.py::test_groups_are_charged_once",),
    ),
    PlantedFault(
        "infinite values not refused",
        "core/conform.py",
        "                if tally.endless:",
        "                if False:",
        ("tests/core/test_conform.py::test_infinity_is_never_within_what_is_declared",),
    ),
    PlantedFault(
        "upper bound of values not checked",
        "core/conform.py",
        "good & below, good & (below | above)",
        "good & below, good & below",
        ("tests/core/test_conform.py::test_every_fault_has_its_fate",),
    ),
    PlantedFault(
        "labels that are not declared kept",
        "core/conform.py",
        "        cells.unseen = good & ~declared",
        "        cells.unseen = none",
        ("tests/core/test_conform.py::test_every_fault_has_its_fate",),
    ),
    PlantedFault(
        "nulls that are not declared kept",
        "core/conform.py",
        "        return bad if self.column.nullable else bad | self.null",
        "        return bad",
        ("tests/core/test_conform.py::test_every_fault_has_its_fate",),
    ),
    PlantedFault(
        "values of engines not clamped",
        "core/engines/other/column_expressions.py",
        "        return value.clip(lower, upper)",
        "        return value",
        ("tests/core/engines/other/test_narwhals_engine.py::test_frames_in_slices_give_the_same",),
    ),
    PlantedFault(
        "NaN of engines taken as no null",
        "core/engines/other/column_expressions.py",
        "    return at.is_null() | at.is_nan() if dtype.is_float() else at.is_null()",
        "    return at.is_null()",
        ("tests/core/engines/other/test_narwhals_engine.py::test_frames_in_slices_give_the_same",),
    ),
    PlantedFault(
        "NaN of engines summed up",
        "core/engines/other/column_expressions.py",
        "        conditions.append(~self._selected.is_nan())",
        "        pass",
        ("tests/core/engines/other/test_narwhals_engine.py::test_frames_in_slices_give_the_same",),
    ),
    PlantedFault(
        "labels of engines in another order",
        "core/engines/other/column_expressions.py",
        ("    labels = dict(zip(column.categories or (), range(len(column.categories or ())), strict=True))"),
        (
            "    labels = dict(zip(sorted(column.categories or ()), range(len(column.categories or "
            "())), strict=True))"
        ),
        ("tests/core/engines/other/test_narwhals_engine.py::test_the_cell_of_each_record_is_that_of_pandas",),
    ),
    PlantedFault(
        "answers of several reads taken for another",
        "core/engines/other/narwhals_engine.py",
        "        return [[part[index] for part in parts] for index in range(len(plans))]",
        "        return [[part[0] for part in parts] for _ in range(len(plans))]",
        (
            "tests/core/engines/other/test_narwhals_engine.py"
            "::test_reads_that_are_collected_together_are_one_query_with_the_same_answers",
        ),
    ),
    PlantedFault(
        "large sums of engines not cut into two",
        "core/engines/other/queries.py",
        "    return 1 << ((reach.bit_length() + 1) // 2)",
        "    return 0",
        (
            "tests/core/engines/other/test_narwhals_engine.py::test_sums_beyond_the_precision_of_a_double_are_exact",
        ),
    ),
    PlantedFault(
        "one record of a unit too many in a frame of Polars",
        "core/engines/other/native_frames.py",
        ".over(unit) <= most)",
        ".over(unit) <= most + 1)",
        ("tests/core/engines/other/test_engines.py::test_units_of_every_kind_are_told_apart_as_in_pandas",),
    ),
    PlantedFault(
        "one record of a unit too many in a table of Arrow",
        "core/engines/unit_codes.py",
        "    return np.sort(order[rank < most])",
        "    return np.sort(order[rank <= most])",
        ("tests/core/engines/other/test_engines.py::test_each_unit_keeps_as_many_records_as_it_may",),
    ),
    PlantedFault(
        "release id charged twice in memory",
        "ledger/book.py",
        "        if 0 < number <= self._account.charges and self._entries[number - 1].release == release:",
        "        if False:",
        ("tests/ledger/test_budget.py::test_a_ledger_and_memory_keep_the_same_accounts",),
    ),
    PlantedFault(
        "budget in memory charged in a forked process",
        "ledger/book.py",
        "        if os.getpid() != self._process:",
        "        if False:",
        ("tests/ledger/test_ledger.py::test_a_budget_in_memory_is_not_charged_in_a_forked_process",),
    ),
    PlantedFault(
        "older copy of a ledger taken for the ledger",
        "ledger/store.py",
        "                if seen_head is not None and (row is None or row.hash != seen_head.hash):",
        "                if False:",
        ("tests/ledger/test_audit.py::test_an_older_copy_is_told_by_the_head",),
    ),
    PlantedFault(
        "total that was declared anew believed",
        "ledger/book.py",
        "        if (terms.total, terms.accounting) != (first.total, first.accounting):",
        "        if False:",
        (
            "tests/ledger/test_audit.py::test_a_declaration_anew_with_another_total_is_refused_where_it_is_used",
        ),
    ),
    PlantedFault(
        "sum not moved by max_rows records",
        "core/statistics/interface.py",
        "        return int(change) * self.contribution",
        "        return int(change)",
        (
            "tests/core/statistics/test_statistics.py::test_no_unit_moves_a_statistic_further_than_its_parts_claim",
        ),
    ),
    PlantedFault(
        "number of records not moved by max_rows records",
        "core/statistics/interface.py",
        "        return sensitivity.count(neighbors=self.neighbors) * self.contribution",
        "        return sensitivity.count(neighbors=self.neighbors)",
        (
            "tests/core/statistics/test_statistics.py::test_no_unit_moves_a_statistic_further_than_its_parts_claim",
        ),
    ),
    PlantedFault(
        "sums of disjoint groups moved by half of a replaced record",
        "core/sensitivities.py",
        "    return max(2 * most, width), max(2 * most**2, width**2)",
        "    return most, most**2",
        (
            "tests/core/statistics/test_statistics.py::test_no_neighbour_moves_a_statistic_further_than_its_parts_claim",
        ),
    ),
    PlantedFault(
        "sums of k-means moved by half of a replaced record",
        "core/statistics/clusters.py",
        "*self.scope.disjoint_sum_sensitivities(q.low, q.high),",
        "self.scope.contribution * q.reach, (self.scope.contribution * q.reach) ** 2,",
        ("tests/releases/test_clustering.py::test_laplace_noise_has_the_stated_scales_and_no_others",),
    ),
    PlantedFault(
        "what is left shown as what was spent",
        "ledger/account.py",
        '"spent": [*doubles(spent)]',
        '"spent": [*doubles(self.left)]',
        ("tests/releases/test_metadata.py::test_attrs_hold_plain_json_and_little_of_it",),
    ),
    PlantedFault(
        "cap not enforced",
        "ledger/account.py",
        "        if not terms.rule.holds(spent):",
        "        if False:",
        ("tests/ledger/test_ledger.py::test_three_tenths_fit_into_three_tenths_and_nothing_else_does",),
    ),
    PlantedFault(
        "rho of Gaussian noise rounded down",
        "core/accounting/rules.py",
        "    return ZCDP(rounded_up(1 / (2 * multiplier**2), RHO_DIGITS))",
        "    return ZCDP(-rounded_up(-1 / (2 * multiplier**2), RHO_DIGITS))",
        ("tests/releases/test_spending.py::test_gaussian_noise_counts_by_its_rho",),
    ),
    PlantedFault(
        "losses of other units added up",
        "ledger/account.py",
        "        if unit is not None and self.unit is not None and unit != self.unit:",
        "        if False:",
        ("tests/ledger/test_ledger.py::test_one_budget_serves_one_kind_of_neighbours",),
    ),
    PlantedFault(
        "losses asked for together summed up once",
        "ledger/account.py",
        "Spent(*self.requested).add(cost, count)",
        "Spent(*self.requested).add(cost)",
        ("tests/ledger/test_ledger.py::test_requested_losses_are_summed_up_where_the_noise_is_counted",),
    ),
    PlantedFault(
        "marginals of one seed have one noise",
        "releases/batches.py",
        "    state = rng if rng is None else noise.simulator(rng)",
        "    state = rng",
        ("tests/releases/test_batches.py::test_marginals_of_one_seed_have_noise_of_their_own",),
    ),
    PlantedFault(
        "selections in a row at the loss of one",
        "core/mechanisms/exponential.py",
        (
            '        return type(self)(self.epsilon / whole(count, "count", 1), self.sensitivity, '
            "self.monotone)"
        ),
        "        return type(self)(self.epsilon, self.sensitivity, self.monotone)",
        ("tests/core/mechanisms/test_exponential.py::test_selections_in_a_row_share_the_loss_of_one",),
    ),
    PlantedFault(
        "error shows a number of NumPy",
        "errors.py",
        "        is_literal = type(value) in (bool, float, type(None))",
        "        is_literal = isinstance(value, bool | float | None)",
        ("tests/core/gate/test_random_calls.py::test_what_comes_out_of_a_table_is_named_by_its_type",),
    ),
    PlantedFault(
        "confidential number taken as an epsilon",
        "core/privacy.py",
        ("    if isinstance(value, Confidential):\n        rounded"),
        ("    if False:\n        rounded"),
        ("tests/risk/test_disclosure_risk.py::test_a_confidential_number_says_so_and_is_a_number",),
    ),
    PlantedFault(
        "public report lists every charge",
        "show/report/report_page.py",
        '        return self.edition == "curator"',
        "        return True",
        ("tests/show/report/test_report.py::test_the_public_edition_holds_nothing_confidential",),
    ),
    PlantedFault(
        "public report takes figures of the curator",
        "show/report/__init__.py",
        '            if edition == "public":',
        "            if False:",
        ("tests/show/report/test_report.py::test_confidential_figures_are_refused_by_name_or_shown_as_such",),
    ),
    PlantedFault(
        "report without its warning of a seed",
        "show/report/report_page.py",
        "        return [release for release in self.releases if release.facts.seeded]",
        "        return []",
        ("tests/show/report/test_report.py::test_a_seed_takes_every_promise_away",),
    ),
    PlantedFault(
        "staircase without the step of rounding",
        "core/mechanisms/additive.py",
        "else self.l0_sensitivity or 1)",
        "else 0)",
        (
            "tests/core/mechanisms/test_staircase.py::test_staircase_noise_loses_epsilon_at_a_stair_and_more_beyond",
        ),
    ),
    PlantedFault(
        "release of a secret part amplified as if it were the first",
        "amplification/sampling.py",
        "        epsilon = self.law.whole(self.inner + within.epsilon) - self.outer",
        "        epsilon = self.law.whole(within.epsilon)",
        (
            "tests/amplification/test_sampling.py::test_charges_of_a_part_add_up_to_what_its_summed_loss_costs",
        ),
    ),
    PlantedFault(
        "earlier releases of a secret part forgotten",
        "amplification/sampling.py",
        "        self.inner += within.epsilon",
        "        self.inner = within.epsilon",
        (
            "tests/amplification/test_sampling.py::test_charges_of_a_part_add_up_to_what_its_summed_loss_costs",
        ),
    ),
    PlantedFault(
        "dropped records leave the number of rows public",
        "frames/protect.py",
        '        filtered = self.on_invalid == "drop" or self.unit is not None or lazy',
        "        filtered = self.unit is not None or lazy",
        ("tests/core/gate/test_neighbours.py::test_a_record_that_is_left_out_loses_at_most_the_charge",),
    ),
    PlantedFault(
        "more public_rows believed than there are rows",
        "frames/protect.py",
        "        if rows < public:",
        "        if False:",
        ("tests/test_bad_input.py::test_a_bad_protection_is_refused",),
    ),
    PlantedFault(
        "optimal composition of one loss less",
        "core/accounting/optimal.py",
        "            counts[item.epsilon] += count\n",
        "            counts[item.epsilon] += max(count - 1, 1)\n",
        ("tests/core/accounting/test_optimal.py::test_deltas_are_those_of_all_outcomes_and_not_below",),
    ),
    PlantedFault(
        "optimal composition with one delta of several",
        "core/accounting/optimal.py",
        "                kept *= (1 - item.delta) ** count",
        "                kept *= 1 - item.delta",
        ("tests/core/accounting/test_optimal.py::test_deltas_are_those_of_all_outcomes_and_not_below",),
    ),
    PlantedFault(
        "conversion of rho takes the deltas of losses, too",
        "core/accounting/reports.py",
        "    return _finite(zcdp_epsilon(rho, delta - slack))",
        "    return _finite(zcdp_epsilon(rho, delta))",
        ("tests/core/accounting/test_events.py::test_losses_are_what_they_are_elsewhere",),
    ),
    PlantedFault(
        "filter gives losses the delta of its slack",
        "core/accounting/rules.py",
        "        if after.delta > self.total.delta - self.slack:",
        "        if after.delta > self.total.delta:",
        ("tests/core/accounting/test_rules.py::test_deltas_of_losses_fit_into_what_the_slack_leaves",),
    ),
    PlantedFault(
        "sample amplified by the square of its rate",
        "amplification/suppression/amplification.py",
        ("in (epsilon, rate, 1 - rate))\n    inner = context.add("),
        ("in (epsilon, rate * rate, 1 - rate))\n    inner = context.add("),
        (
            "tests/amplification/suppression/test_amplification.py::test_amplified_epsilons_are_the_formula_rounded_up",
        ),
    ),
    PlantedFault(
        "suppressed outliers cost what a sample does",
        "amplification/suppression/amplification.py",
        ("    if low == high:\n        return amplified(epsilon, 1 - low)"),
        ("    if True:\n        return amplified(epsilon, 1 - low)"),
        ("tests/amplification/suppression/test_amplification.py::test_epsilons_are_the_maximum_over_p",),
    ),
    PlantedFault(
        "interval of combined releases without the noise",
        "inference/combining.py",
        "    total = np.hypot(half(within, known), noise)",
        "    total = half(within, known)",
        ("tests/inference/test_combining.py::test_one_release_adds_the_known_noise",),
    ),
    PlantedFault(
        "mean rounded to a finer unit for free",
        "core/statistics/direct.py",
        "            steps = math.floor(sensitivity_in_steps * finer) + 1",
        "            steps = math.floor(sensitivity_in_steps * finer)",
        (
            "tests/core/statistics/test_statistics.py::test_no_neighbour_moves_a_direct_statistic_further_than_it_claims",
        ),
    ),
    PlantedFault(
        "clock that cannot be right believed",
        "ledger/account.py",
        ("    if not FIRST_YEAR < time.year < LAST_YEAR:\n        raise LedgerError"),
        ("    if False:\n        raise LedgerError"),
        ("tests/ledger/test_intrusions.py::test_a_clock_that_cannot_be_right_enters_nothing",),
    ),
    PlantedFault(
        "another total of an open budget accepted",
        "ledger/account.py",
        "        if total is not None and Terms(total).total != self.total:",
        "        if False:",
        ("tests/ledger/test_budget.py::test_terms_are_fixed_when_a_budget_is_opened",),
    ),
    PlantedFault(
        "report of the curator without its mark",
        "show/report/report_page.py",
        '        return self.edition == "curator"',
        "        return False",
        ("tests/show/report/test_report.py::test_the_page_is_well_made_and_needs_nothing_else",),
    ),
    PlantedFault(
        "loss distribution without what the grid adds",
        "core/accounting/reports.py",
        "                slack = slack.add(grid_slack(event.noise), count)",
        "                pass",
        ("tests/core/accounting/test_reports.py::test_a_coarser_grid_costs_its_slack",),
    ),
    PlantedFault(
        "losses of noise on the integers rounded down",
        "core/accounting/reports.py",
        "        cells = np.ceil(losses / interval + ROUNDING).astype(np.int64)",
        "        cells = np.floor(losses / interval).astype(np.int64)",
        ("tests/core/accounting/test_reports.py::test_noise_on_the_integers_composes_exactly",),
    ),
    PlantedFault(
        "sums of noise on the integers that move as far as one",
        "core/accounting/reports.py",
        "(2 * noise + count * self.shift) /",
        "(2 * noise + self.shift) /",
        ("tests/core/accounting/test_reports.py::test_noise_on_the_integers_composes_exactly",),
    ),
    PlantedFault(
        "sums of noise on the integers without their gain",
        "core/accounting/reports.py",
        "        return Fraction(math.exp(total) * (1 + RELATIVE))",
        "        return Fraction(1)",
        (
            "tests/core/accounting/test_reports.py::test_sums_of_noise_on_the_integers_exceed_one_noise_by_no_more_than_the_gain",
        ),
    ),
    PlantedFault(
        "risk that was reached that of the last table alone",
        "risk/released_risk.py",
        "        reached = None if entry is None else float(min(so_far, 1.0))",
        "        reached = None if entry is None else float(min(own, 1.0))",
        (
            "tests/risk/test_disclosure_risk.py::test_the_budget_tells_the_risk_of_released_counts_at_all_that_was_spent",
        ),
    ),
    PlantedFault(
        "neighbours declared anew after a charge",
        "ledger/account.py",
        "        if terms.unit is not None and self.charges:",
        "        if False:",
        ("tests/ledger/test_budget.py::test_neighbors_are_declared_anew_only_before_the_first_charge",),
    ),
    PlantedFault(
        "tables of a ledger not looked at",
        "ledger/sqlite.py",
        "        if problems:\n            raise self._tampered(",
        "        if False:\n            raise self._tampered(",
        ("tests/ledger/test_sqlite.py::test_tables_without_their_triggers_are_not_written_to",),
    ),
    PlantedFault(
        "copy of altered records made",
        "ledger/store.py",
        "            check(row, before)\n",
        "",
        ("tests/ledger/test_audit.py::test_no_copy_is_made_of_altered_records",),
    ),
    PlantedFault(
        "stored answer returned for another request",
        "ledger/book.py",
        "    if changed:",
        "    if False:",
        ("tests/ledger/test_book.py::test_an_answer_is_returned_to_the_same_request_alone",),
    ),
    PlantedFault(
        "stored answer that was changed returned",
        "ledger/book.py",
        "            if body is None or _mark(body) != mark:",
        "            if body is None:",
        ("tests/ledger/test_book.py::test_an_answer_that_was_changed_is_refused",),
    ),
    PlantedFault(
        "journal of another ledger rolled back",
        "ledger/files.py",
        "    if not sound or first_pages != 1:\n",
        "    if False:\n",
        ("tests/ledger/test_flips.py::test_a_journal_of_another_ledger_is_refused",),
    ),
    PlantedFault(
        "lock file not held",
        "ledger/disk.py",
        "            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "            pass",
        ("tests/ledger/test_sqlite.py::test_a_suspended_writer_keeps_others_waiting",),
    ),
    PlantedFault(
        "journal that a killed process cleared used before it is durable",
        "ledger/store.py",
        "                reader.make_durable()\n",
        "",
        (
            "tests/ledger/test_sqlite.py::test_a_journal_that_another_process_cleared_is_made_durable_before_it_is_used",
        ),
    ),
    PlantedFault(
        "charge entered before it is durable",
        "ledger/sqlite.py",
        '"synchronous=FULL"',
        '"synchronous=NORMAL"',
        ("tests/ledger/test_sqlite.py::test_a_commit_is_set_to_be_durable",),
    ),
    PlantedFault(
        "selection charged a thousandth of its loss",
        "core/gate/tasks.py",
        "Price(choosing.cost, choosing.title, event_counts, mechanisms)",
        "Price(Pure(choosing.cost.epsilon / 1000), choosing.title, event_counts, mechanisms)",
        ("tests/releases/test_selection.py::test_a_selection_costs_what_it_says_and_is_listed",),
    ),
    PlantedFault(
        "release charged a thousandth of its loss",
        "core/gate/execute.py",
        "            loss,\n            label,\n",
        "            Pure(loss.epsilon / 1000),\n            label,\n",
        ("tests/releases/test_metadata.py::test_the_budget_is_that_after_the_release",),
    ),
    PlantedFault(
        "walk of selections charged for one of them",
        "core/gate/tasks.py",
        "Price(choosing.cost, choosing.title, ((Event(mechanism.loss)",
        "Price(mechanism.loss, choosing.title, ((Event(mechanism.loss)",
        ("tests/releases/test_clustering.py::test_all_of_a_release_is_charged_once_before_anything_is_read",),
    ),
    PlantedFault(
        "last image of recode not declared",
        "core/rows/label_mappings.py",
        "_recoded_column(node.column, images, after)",
        "_recoded_column(node.column, images, after[:-1] or after)",
        ("tests/core/rows/test_steps.py::test_recode_declares_the_images_in_declared_order",),
    ),
    PlantedFault(
        "confirmed bounds of one column silence the warning of all",
        "core/conform.py",
        "            if not domain[name].public_bounds",
        "            if not any(domain[one].public_bounds for one in domain)",
        ("tests/frames/test_protect.py::test_bounds_that_are_confirmed_as_public_are_not_warned_about",),
    ),
    PlantedFault(
        "records with faults of several columns counted once per fault by the check",
        "risk/data_quality.py",
        "            failing |= mask",
        "            failing ^= mask",
        ("tests/risk/test_data_quality.py::test_every_fault_of_every_cell_is_counted",),
    ),
    PlantedFault(
        "numbers beyond their bounds not clipped",
        "core/conform.py",
        "            if faults[column.name].outside.any():",
        "            if False:",
        ("tests/core/test_conform.py::test_every_fault_has_its_fate",),
    ),
    PlantedFault(
        "first records in a sample in place of any",
        "core/noise/choice.py",
        "        drawn[np.argpartition(shuffled_keys(n, source), size - 1)[:size]] = True",
        "        drawn[:size] = True",
        ("tests/amplification/test_sampling.py::test_all_parts_of_a_size_are_drawn_alike",),
    ),
    PlantedFault(
        "last edge of few bins taken for none of them",
        "core/engines/blocks.py",
        "            at_least[-1] += np.count_nonzero(piece > end)",
        "            at_least[-1] += np.count_nonzero(piece >= end)",
        (
            "tests/core/engines/test_blocks.py::test_bins_of_any_width_within_and_beyond_the_bounds_count_as_numpy_does",
        ),
    ),
    PlantedFault(
        "bins between the ends of the data",
        "core/engines/blocks.py",
        "    edges = np.asarray(bins, dtype=np.float64)",
        "    edges = np.linspace(np.nanmin(values.to_numpy()), np.nanmax(values.to_numpy()), len(bins))",
        ("tests/core/engines/test_blocks.py::test_nearly_even_bins_are_settled_by_their_edges",),
    ),
    PlantedFault(
        "declaration known by the names of its columns alone",
        "declaration/domain.py",
        '            digest.update(column._canonical().encode() + b"\\n")',
        '            digest.update(repr(column.name).encode() + b"\\n")',
        ("tests/declaration/test_domain.py::test_the_fingerprint_sees_every_field_and_the_order",),
    ),
    PlantedFault(
        "nulls meet a comparison",
        "core/rows/conditions.py",
        "    met = met if null is None else met & ~null",
        "    met = met if null is None else met | null",
        ("tests/core/rows/test_conditions.py::test_every_null_has_one_fate",),
    ),
    PlantedFault(
        "nulls meet the negation of a comparison",
        "core/rows/conditions.py",
        "        false = ~self.met if self.unknown is None else ~(self.met | self.unknown)",
        "        false = ~self.met",
        ("tests/core/rows/test_conditions.py::test_every_null_has_one_fate",),
    ),
    PlantedFault(
        "dates after the upper bound count as it",
        "declaration/timeline.py",
        "np.where(above, upper + 1, numbers)",
        "np.where(above, upper, numbers)",
        (
            "tests/declaration/test_timeline.py::test_stored_dates_are_counted_as_by_exact_integers",
            "tests/releases/test_publish.py::test_dates_out_of_bounds_have_their_declared_fate",
        ),
    ),
    PlantedFault(
        "a period begins in UTC",
        "declaration/timeline.py",
        '            begin = begin.tz_localize(self.zone, nonexistent="shift_forward", ambiguous=early)',
        '            begin = begin.tz_localize("UTC", ambiguous=early)',
        ("tests/declaration/test_timeline.py::test_periods_are_those_of_pandas_and_each_date_is_in_its_own",),
    ),
    PlantedFault(
        "margins of error of dates in their resolution",
        "releases/publish.py",
        "        plus_minus=(np.asarray(errors.plus_minus) + rounding) * seconds,",
        "        plus_minus=np.asarray(errors.plus_minus) + rounding,",
        ("tests/releases/test_publish.py::test_errors_are_times_and_intervals_are_dates",),
    ),
    PlantedFault(
        "sums of dates are released as numbers",
        "declaration/domain.py",
        "        if self.timeline is not None and method not in DATE_METHODS:",
        "        if False:",
        (
            "tests/releases/test_publish.py::test_statistics_of_numbers_or_labels_are_refused_and_cost_nothing",
        ),
    ),
)


if __name__ == "__main__":
    (fault,) = (candidate for candidate in FAULTS if candidate.name == sys.argv[1])
    sys.exit(f"not caught by {', '.join(tests)}" if (tests := missed(fault, "--full")) else 0)
