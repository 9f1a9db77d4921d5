"""Bounded and repeated releases have the law, the error and the coverage that they state.

All seeds are fixed. Where a test can fail by chance for another seed, its false-alarm rate is stated;
``Z`` standard deviations on either side stand for two in a million.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.errors import DeclarationWarning
from pdprivacy.releases.results import Result
from tests.support.statistics import accepts, accepts_only

pytestmark = pytest.mark.full

Z = 4.75
# So many that noise of 0.8 and 1.25 times the scale is told apart, which takes the more, the heavier its
# tails are, and the most where half of the numbers are clamped.
DRAWS = {"laplace": 2000, "laplace, clamped": 3000, "gaussian": 1000, "generalized": 700}
COUNTS = 1500
ROWS = 50

FRAME = pd.DataFrame(
    {
        "x": np.linspace(18, 30, ROWS),  # near the lower bound
        "y": np.full(ROWS, 10.0),  # at the upper one
        "w": np.where(np.arange(ROWS) % 2 == 0, 0.0, 10.0),  # the largest variance
        "g": np.where(np.arange(ROWS) < 48, "a", "b"),
        "h": np.array(["p", "q", "r"])[np.arange(ROWS) % 3],
        "b": np.arange(ROWS) % 10 == 0,
    }
)
DOMAIN = Domain(
    (
        Column("x", "float", lower=18, upper=90),
        Column("y", "float", lower=0, upper=10),
        Column("w", "float", lower=0, upper=10),
        Column("g", "category", categories=("a", "b", "c", "d")),
        Column("h", "category", categories=("p", "q", "r")),
        Column("b", "boolean"),
    )
)
SCOPES: dict[str, dict[str, Any]] = {
    "add_remove": {"neighbors": "add_remove"},
    "public rows": {"neighbors": "add_remove", "public_rows": 40},
    "replace_one": {"neighbors": "replace_one"},
}
LAWS: dict[str, dict[str, Any]] = {
    "laplace": {"mechanism": "laplace"},
    "gaussian": {"mechanism": "gaussian", "delta": "1e-6"},
    "generalized": {"mechanism": "generalized_gaussian", "p": 3, "delta": "1e-6"},
}


@lru_cache
def dp_of(scope: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeclarationWarning)  # data at the bounds is the point here
        private = FRAME.dp.protect(DOMAIN, epsilon=10**12, delta="0.999", **SCOPES[scope])
    kept.append(private)
    return private.dp


kept: list[pd.DataFrame] = []


def draws(home: str, call: Callable[..., Any], number: int, **options: Any) -> Any:
    """The numbers of many releases of this loss each, without the metadata of the call and their errors."""

    def numbers(_release: Any, _drawn: Any, results: Any, *_: Any) -> Any:
        return np.array([np.ravel(result.answer.values) for result in results])

    options["epsilon"] = Fraction(options["epsilon"]) * number
    options["delta"] = Fraction(options.get("delta", 0)) * number
    without = mock.patch.object(Result, "errors", None)
    with without, mock.patch("pdprivacy.releases.publish.published", numbers):
        return call(releases=number, **options)


def law_of(options: dict[str, Any], scale: float) -> Any:
    """The law of the noise of a stated scale."""
    return {
        "laplace": stats.laplace(scale=scale),
        "gaussian": stats.norm(scale=scale),
        "generalized_gaussian": stats.gennorm(options.get("p", 2), scale=scale),
    }[options["mechanism"]]


def moments(law: Any, s: float, low: float, high: float, bounding: str) -> tuple[float, float]:
    """Bias and mean squared error of a bounded number whose statistic is s, by quadrature."""
    spread = 60 * law.std()
    breaks = sorted({max(low - s, -spread), 0.0, min(high - s, spread)})
    below, above = law.cdf(low - s), law.sf(high - s)
    raw_moments = []
    for power in (1, 2):
        inside = sum(
            integrate.quad(lambda e, k=power: e**k * law.pdf(e), a, b, epsrel=1e-10, limit=300)[0]
            for a, b in itertools.pairwise(breaks)
        )
        if bounding == "truncated":
            raw_moments.append(inside / (1 - below - above))
            continue
        for mass, end in ((below, low - s), (above, high - s)):
            inside += mass * end**power if mass > 0 else 0.0
        raw_moments.append(inside)
    return raw_moments[0], raw_moments[1]


LARGEST = 100 * ROWS / (4 * (ROWS - 1))
BOUNDED: dict[str, tuple[str, Callable[..., Any], float, float, float]] = {
    # scope, release, statistic and its bounds
    "mean near a bound": ("replace_one", lambda dp, **o: dp.mean("x", **o), 24, 18, 90),
    "mean at a bound": ("replace_one", lambda dp, **o: dp.mean("y", **o), 10, 0, 10),
    "mean within narrow bounds": (
        "replace_one",
        lambda dp, **o: dp.mean("x", bounds=(20, 26), **o),
        24,
        20,
        26,
    ),
    "mean beyond narrow bounds": (
        "replace_one",
        lambda dp, **o: dp.mean("x", bounds=(30, 40), **o),
        30,
        30,
        40,
    ),
    "mean of public rows": ("public rows", lambda dp, **o: dp.mean("w", **o), 5, 0, 10),
    "proportion of all but few": ("replace_one", lambda dp, **o: dp.proportion("g", "a", **o), 0.96, 0, 1),
    "proportion of none": ("replace_one", lambda dp, **o: dp.proportion("g", "c", **o), 0, 0, 1),
    "variance of nothing": ("replace_one", lambda dp, **o: dp.var("y", **o), 0, 0, LARGEST),
    "largest variance": ("replace_one", lambda dp, **o: dp.var("w", **o), LARGEST, 0, LARGEST),
    "sum of private rows": ("add_remove", lambda dp, **o: dp.sum("x", **o), 1200, 0, math.inf),
}
# Every release with every law and with every bounding, which take turns: of the several releases whose
# statistic lies at a bound, and of those where it lies between, some have each law with each bounding. The
# one with one bound alone, and the one whose statistic is beyond its bounds, have all.
CASES = [
    (name, law, bounding)
    for row, name in enumerate(BOUNDED)
    for position_, law in enumerate(LAWS)
    for turn, bounding in enumerate(("clamp", "truncated"))
    # the noisy number is clamped, wherever the statistic is; truncated noise is that of the clamped one
    if (bounding == "truncated" if name == "mean beyond narrow bounds" else (row + position_ + turn) % 2 == 0)
    or name == "sum of private rows"
]


@lru_cache
def simulated(name: str, law: str, bounding: str) -> tuple[Any, float, float]:
    """Many released numbers, the scale that one of them states, and half its interval."""
    scope, call, *_ = BOUNDED[name]
    options = {**LAWS[law], "epsilon": "0.3", "bounding": bounding}
    stored = call(dp_of(scope), rng=1, **options).attrs["dp"]
    rng = np.random.default_rng([5, *f"{name} {law} {bounding}".encode()])
    number = DRAWS["laplace, clamped" if (law, bounding) == ("laplace", "clamp") else law]
    released = draws("moments", lambda **o: call(dp_of(scope), **o), number, rng=rng, **options)
    return released[:, 0], stored["scale"], float(np.ravel(stored["error"]["plus_minus"])[0])


@pytest.mark.parametrize(("name", "law", "bounding"), CASES)
def test_released_numbers_have_the_bounded_law_of_the_stated_scale(name, law, bounding):
    """Clamped numbers with the atoms at their bounds."""
    released, scale, _ = simulated(name, law, bounding)
    _, _, s, low, high = BOUNDED[name]
    noise = law_of(LAWS[law], scale)
    assert released.min() >= low
    assert released.max() <= high

    def law(x: np.ndarray) -> np.ndarray:
        below, above = (noise.cdf(low - s), noise.sf(high - s)) if bounding == "truncated" else (0.0, 0.0)
        inside = (noise.cdf(np.clip(x, low, high) - s) - below) / (1 - below - above)
        return np.where(x < low, 0.0, np.where(x >= high, 1.0, inside))

    assert accepts(released, law)


@pytest.mark.parametrize(("name", "law", "bounding"), CASES)
def test_bias_and_error_are_those_of_the_bounded_law(name, law, bounding):
    """Two false alarms in a million each; the noise of 0.8 and 1.25 times the scale has other errors."""
    released, scale, _ = simulated(name, law, bounding)
    _, _, s, low, high = BOUNDED[name]
    errors = released - s
    squares = errors**2
    chance = (errors.std() / math.sqrt(released.size), squares.std() / math.sqrt(released.size))
    for factor, fits in ((1.0, True), (0.8, False), (1.25, False)):
        bias, mse = moments(law_of(LAWS[law], factor * scale), s, low, high, bounding)
        bias_off, mse_off = abs(errors.mean() - bias) / chance[0], abs(squares.mean() - mse) / chance[1]
        if fits:
            assert bias_off <= Z
            assert mse_off <= Z
        elif scale < (high - low) / 4:  # a wide noise within narrow bounds is nearly even, whatever its scale
            assert max(bias_off, mse_off) > Z


@pytest.mark.parametrize(("name", "law", "bounding"), CASES)
def test_intervals_cover_wherever_the_statistic_lies(name, law, bounding):
    """At least 95 %, also for a statistic at a bound. Two false alarms in a million each."""
    released, _, half = simulated(name, law, bounding)
    s = BOUNDED[name][2]
    covered = (np.abs(released - s) <= half * (1 + 1e-9)).mean()
    assert covered >= 0.95 - Z * math.sqrt(0.95 * 0.05 / released.size)


@pytest.mark.parametrize(
    ("scope", "bounding", "law"),
    # every two of them together
    [
        (("add_remove", "replace_one")[(turn + index) % 2], bounding, law)
        for turn, bounding in enumerate(["clamp", "truncated"])
        for index, law in enumerate(["geometric", *LAWS])
    ],
)
def test_intervals_of_counts_cover_empty_cells_and_full_ones(scope, bounding, law):
    """Counts 48, 2, 0 and 0 of 50, each at least 95 %. Two false alarms in a million each."""
    options = {"epsilon": "0.3", "bounding": bounding, "sort": False}
    options |= LAWS.get(law, {"mechanism": "geometric"})
    dp = dp_of(scope)
    half = dp.value_counts("g", rng=1, **options).attrs["dp"]["error"]["plus_minus"]
    released = draws("tables", lambda **o: dp.value_counts("g", **o), COUNTS, rng=9, **options)
    assert (released >= 0).all()
    assert scope == "add_remove" or (released <= ROWS).all()
    covered = (np.abs(released - [48, 2, 0, 0]) <= half * (1 + 1e-9)).mean(axis=0)
    assert (covered >= 0.95 - Z * math.sqrt(0.95 * 0.05 / COUNTS)).all()


@pytest.mark.parametrize("bounding", ["clamp", "truncated"])
@pytest.mark.parametrize("name", ["mean", "var", "cov", "pooled_var"])
def test_intervals_of_numbers_made_of_bounded_noise_cover(name, bounding):
    """Noisy sums over noisy counts, each within its bounds: 93 % or more at a loss at which the first order
    is enough. Two false alarms in a million (the repetitions count once each). Twenty are released one by
    one, the others by one call, each with its own share of the loss."""
    calls: dict[str, Callable[..., Any]] = {
        "mean": lambda **o: dp_of("add_remove").mean(["x", "w"], **o),
        "var": lambda **o: dp_of("add_remove").var(["x", "w"], **o),
        "cov": lambda **o: dp_of("add_remove").cov(["x", "w"], **o),
        "pooled_var": lambda **o: dp_of("add_remove").pooled_var(["x", "w"], by="b", **o),
    }
    exact = calls[name](epsilon=10**7, rng=1).to_numpy()
    rng, covered = np.random.default_rng(17), []
    for together in (*[1] * 20, 380):
        released = calls[name](epsilon=20 * together, releases=together, bounding=bounding, rng=rng)
        half = np.array(released.attrs["dp"]["error"]["plus_minus"])
        # one next to the other: of each the same columns
        truth = np.tile(exact.reshape(len(exact), -1), together).reshape(released.shape)
        hits = np.abs(released.to_numpy() - truth) <= half
        covered += hits.reshape(len(exact), together, -1).mean(axis=(0, 2)).tolist()
    assert len(covered) == 400
    assert np.mean(covered) >= 0.93 - Z * math.sqrt(0.93 * 0.07 / 400)


# ---------------------------------------------------------------- several releases

CELLS = Domain((Column("i", "integer", lower=0, upper=99), Column("j", "integer", lower=0, upper=24)))
FEW = pd.DataFrame({"i": np.arange(25) * 4, "j": np.arange(25)})
M = 20


@lru_cache
def noise_of_releases(mechanism: str, neighbors: str) -> Any:
    """Released less exact counts: twenty releases of 2,500 cells for epsilon 10 (and delta 2e-4) in all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeclarationWarning)
        private = FEW.dp.protect(CELLS, epsilon=100, delta="0.5", neighbors=neighbors)
    delta = "2e-4" if mechanism == "gaussian" else 0
    released = private.dp.crosstab("i", "j", epsilon=10, delta=delta, mechanism=mechanism, releases=M, rng=4)
    assert private.dp.budget.spent == (10.0, float(delta))
    exact = np.zeros((100, 25))
    exact[FEW["i"], FEW["j"]] = 1
    return np.array([(released[number].to_numpy() - exact).ravel() for number in range(1, M + 1)])


def scale_of(mechanism: str, neighbors: str) -> float:
    """The scale of the noise of one release of epsilon 10 / 20 and delta 2e-4 / 20."""
    moved = 1 if neighbors == "add_remove" else 2
    if mechanism != "gaussian":
        return moved / (10 / M)
    low, high = 0.1, 100.0

    def delta(sigma: float) -> float:
        ratio = math.sqrt(moved) / sigma
        first = stats.norm.cdf(ratio / 2 - 0.5 / ratio)
        return float(first - math.exp(0.5) * stats.norm.cdf(-ratio / 2 - 0.5 / ratio))

    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) > 2e-4 / M else (low, middle)
    return high


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("mechanism", ["geometric", "laplace", "gaussian"])
def test_each_of_several_releases_has_the_noise_of_its_share(mechanism, neighbors):
    """All 50,000 numbers together; each release alone within the chance error of its mean size."""
    drawn = noise_of_releases(mechanism, neighbors)
    scale = scale_of(mechanism, neighbors)
    law = {
        "geometric": lambda scale: stats.dlaplace(1 / scale),
        "laplace": lambda scale: stats.laplace(scale=scale),
        "gaussian": lambda scale: stats.norm(scale=scale),
    }[mechanism]
    drawn = drawn.astype(int) if mechanism == "geometric" else drawn
    accepts_only(drawn, lambda factor: law(factor * scale).cdf)
    sizes = np.abs(drawn).mean(axis=1)
    spread = np.abs(drawn).std() / math.sqrt(drawn.shape[1])
    assert (np.abs(sizes - np.abs(drawn).mean()) <= Z * spread).all()


@pytest.mark.parametrize("mechanism", ["geometric", "laplace", "gaussian"])
def test_several_releases_are_independent(mechanism):
    """Correlations of all 190 pairs, two false alarms in a million each; of squares too; all differ."""
    drawn = noise_of_releases(mechanism, "add_remove")
    for values in (drawn, drawn**2):
        pairs = np.corrcoef(values)[np.triu_indices(M, 1)]
        # squares of Laplace noise have heavy tails, but a product of two independent ones has its variance
        assert (np.abs(pairs) <= (Z + 1) / math.sqrt(drawn.shape[1])).all()
    assert len({row.tobytes() for row in drawn}) == M


@pytest.mark.parametrize("law", LAWS)
def test_each_of_many_means_has_the_noise_of_its_share(law):
    """The mean size of the noises of a share of the loss against the law of a single release's scale:
    accepted within Z chance errors, rejected at 0.9 and 1.1 of the scale."""
    dp = dp_of("replace_one")
    options = {**LAWS[law], "epsilon": "0.3", "bounding": None}
    scale = dp.mean("x", rng=1, **options).attrs["dp"]["scale"]
    if law == "laplace":
        assert scale == pytest.approx(72 / ROWS / 0.3, rel=1e-5)
    number = {"laplace": 8000, "gaussian": 5000, "generalized": 3000}[law]
    released = draws("moments", lambda **o: dp.mean("x", **o), number, rng=18, **options)[:, 0]
    sizes = np.abs(released - FRAME["x"].mean())
    for factor, fits in ((1.0, True), (0.9, False), (1.1, False)):
        expected = law_of(LAWS[law], factor * scale).expect(np.abs)
        assert (abs(sizes.mean() - expected) <= Z * sizes.std() / math.sqrt(number)) == fits
    errors = released - FRAME["x"].mean()
    assert abs(np.corrcoef(errors[1:], errors[:-1])[0, 1]) <= Z / math.sqrt(number)


@pytest.mark.parametrize("known", [None, "known"])
def test_combined_releases_cover_the_statistic_of_the_data(known):
    """Five releases of a mean, 400 times: 95 % less the chance error, two false alarms in a million. The
    known normal law holds 94.7 % or so of the mean of five Laplace noises."""
    dp, exact = dp_of("replace_one"), FRAME["x"].mean()
    rng, covered, lengths = np.random.default_rng(21), [], []
    for _ in range(400):
        several = dp.mean("x", epsilon=5, releases=5, rng=rng)
        combined = pdprivacy.combine(several, within=0, noise=known).iloc[0]
        covered.append(combined["lower"] <= exact <= combined["upper"])
        lengths.append(combined["upper"] - combined["lower"])
    assert np.mean(covered) >= 0.945 - Z * math.sqrt(0.95 * 0.05 / 400)
    assert np.mean(lengths) < 20 * 72 / ROWS


# ---------------------------------------------------------------- constraints


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 5.0])
def test_the_nearest_shares_are_never_farther_from_the_true_ones(epsilon):
    """A projection to a convex set that holds the truth: for each draw, not on average."""
    dp = dp_of("replace_one")
    truth = FRAME.groupby(["g", "h"]).size().reindex(
        pd.MultiIndex.from_product([list("abcd"), list("pqr")]), fill_value=0
    ).to_numpy() / ROWS  # fmt: skip
    better = 0
    for seed in range(60):
        options = {"epsilon": epsilon, "mechanism": "laplace", "sort": False, "rng": seed}
        noisy = dp.value_counts(["g", "h"], **options).to_numpy() / ROWS
        shares = dp.value_counts(["g", "h"], normalize=True, constraint="simplex", **options).to_numpy()
        before, after = np.linalg.norm(noisy - truth), np.linalg.norm(shares - truth)
        assert after <= before * (1 + 1e-12)
        better += after < before * (1 - 1e-6)
    assert better > 50


@pytest.mark.parametrize("bounding", ["clamp", "truncated"])
@pytest.mark.parametrize("epsilon", [1.0, 5.0, 40.0])
def test_the_nearest_correlations_are_never_farther_from_the_true_ones(epsilon, bounding):
    """As above, for correlation matrices, up to the tolerance of the alternating projections."""
    rng = np.random.default_rng(2)
    base = rng.normal(size=(200, 1))
    cells = np.clip(0.5 + (0.9 * base + 0.45 * rng.normal(size=(200, 4))) / 5, 0, 1)
    names = list("abcd")
    domain = Domain(tuple(Column(name, "float", lower=0, upper=1) for name in names))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeclarationWarning)
        private = pd.DataFrame(cells, columns=names).dp.protect(
            domain, epsilon=10**6, neighbors="replace_one"
        )
    truth, changed = np.corrcoef(cells.T), 0
    for seed in range(40):
        options = {"epsilon": epsilon, "bounding": bounding, "rng": seed}
        noisy = private.dp.corr(names, **options).to_numpy()
        nearest = private.dp.corr(names, constraint="psd", **options).to_numpy()
        if np.isnan(noisy).any():
            continue
        before, after = np.linalg.norm(noisy - truth), np.linalg.norm(nearest - truth)
        assert after <= before * (1 + 1e-6)
        changed += after < before * (1 - 1e-6)
    assert epsilon > 1 or changed > 5


@pytest.mark.parametrize("normalize", [False, True])
def test_a_tree_tells_ranges_of_cells_better_than_the_cells_alone(normalize):
    """480 of 1000 cells, 40 releases of the same loss: the sum of 480 noises of variance 32 in the one, of 15
    of variance 128 at most in the other; three to one at least, with chance errors of 23 % each."""
    domain = Domain((Column("k", "integer", lower=0, upper=999),))
    frame = pd.DataFrame({"k": np.random.default_rng(4).integers(0, 1000, 200_000)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeclarationWarning)
        private = frame.dp.protect(domain, epsilon=10**6, neighbors="replace_one")
    truth = (frame["k"] < 480).sum()
    squares: dict[Any, list[float]] = {}
    for constraint in ("hierarchy", None):
        for seed in range(40):
            options = {"sort": False, "constraint": constraint, "branching": 32, "rng": seed}
            released = private.dp.value_counts("k", epsilon=0.5, normalize=normalize, **options).to_numpy()
            total = released[:480].sum() * (len(frame) if normalize else 1)
            squares.setdefault(constraint, []).append(float((total - truth) ** 2))
    assert np.mean(squares["hierarchy"]) < np.mean(squares[None]) / 3
