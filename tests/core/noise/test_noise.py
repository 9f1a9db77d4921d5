"""Noise on the integers (`discrete`), from bits to draws: exact laws and decisions, and seeds."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import erf

from pdprivacy.core.noise import Source, discrete, discrete_gaussian, discrete_laplace, source
from pdprivacy.core.noise.bits import Pool
from pdprivacy.core.noise.choice import FEW, MARGIN
from pdprivacy.errors import ParameterError
from pdprivacy.exact import SLIP, exponential
from tests.support.statistics import accepts, accepts_counts, accepts_only
from tests.support.tape import Tape

Law = discrete._Discrete
FULL = 2**64 - 1

SMALL_SCALES = [
    Fraction(1, 3),
    Fraction(37, 100),
    Fraction(3, 7),
    Fraction(1),
    Fraction(11, 2),
    Fraction(100),
]
LARGE_SCALES = [Fraction(300), 2**20 + Fraction(1, 3), Fraction(2**38), Fraction(2**52)]


def law_of(name: str, scale: Fraction) -> discrete._Discrete:
    return Law(1, scale) if name == "laplace" else Law(2, 2 * scale**2)


def drawn_from(law: discrete._Discrete, size: int, bits: Source) -> np.ndarray:
    if law.power == 1:
        return discrete_laplace(law.divisor, size, bits)
    return discrete_gaussian(law.divisor / 2, size, bits)


LAWS = [law_of(name, scale) for name in ("laplace", "gaussian") for scale in SMALL_SCALES + LARGE_SCALES]
NEARLY_ZERO = [Law(1, Fraction(1, 50)), Law(2, Fraction(1, 60))]  # one 64-bit threshold
STRIPS = [law for law in LAWS if law.shift > 0]


def seeded(seed: int) -> Source:
    return source(np.random.default_rng([20, seed]))


def more(value: int) -> bytes:
    return value.to_bytes(8, "little")


def rest48(value: int) -> np.ndarray:
    """The word that supplies the lower 48 of the 64 bits ``value``."""
    return np.array([(value & (2**48 - 1)) << 16], np.uint64)


# Reference, independent of the module: one Decimal exponential per integer, no recurrence.


@cache
def weight(law: discrete._Discrete, magnitude: int) -> Decimal:
    exponent = Fraction(magnitude**law.power) / law.divisor
    with localcontext(prec=130):
        return (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()


def cumulative(law: discrete._Discrete, count: int) -> Iterator[Decimal]:
    """The distribution function at the first ``count`` strips 0, ~0, 1, ~1, ..., in the current context."""
    width = 2**law.shift
    starts = [(j // 2) * width + j % 2 for j in range(count)]
    if law.power == 1:
        # Two geometric series with ratio exp(-width/scale), starting at 1 and exp(-1/scale).
        total = (1 + weight(law, 1)) / (1 - weight(law, width))
    else:
        total, k = Decimal(0), 0
        while (term := weight(law, k * width) + weight(law, k * width + 1)) > Decimal(10) ** -120:
            total += term
            k += 1
    return (part / total for part in accumulate(weight(law, start) for start in starts))


def unfold(j: int) -> int:
    return j // 2 if j % 2 == 0 else -1 - j // 2


# The exactness of what draws are compared with.


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("law", NEARLY_ZERO + LAWS, ids=str)
def test_thresholds_are_the_floor_of_the_distribution_function(law):
    thresholds = discrete._table(law, law.shift).thresholds.tolist()
    with localcontext(prec=60):
        expected = [int(part * 2**64) for part in cumulative(law, len(thresholds))]
    assert thresholds == expected
    assert thresholds[-1] == FULL
    assert FULL not in thresholds[:-1]


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("law", [Law(1, Fraction(3, 7)), Law(2, Fraction(121, 2)), STRIPS[1]], ids=str)
@pytest.mark.parametrize("bits", [8, 128, 300])
def test_thresholds_at_other_numbers_of_bits(law, bits):
    thresholds = discrete._thresholds(law, law.shift, bits)
    with localcontext(prec=40 + bits * 3 // 10):
        expected = [int(part * 2**bits) for part in cumulative(law, len(thresholds))]
    assert thresholds == expected


@pytest.mark.parametrize("law", [Law(1, Fraction(11, 2)), Law(2, Fraction(200)), STRIPS[0]], ids=str)
def test_thresholds_do_not_depend_on_the_working_precision(law):
    assert discrete._thresholds(law, law.shift, 64, guard=1) == discrete._thresholds(law, law.shift, 64)


positive = st.fractions(min_value=Fraction(1, 50), max_value=150, max_denominator=10**6)


@given(positive, st.sampled_from(["laplace", "gaussian"]))
def test_more_bits_refine_fewer_bits(scale, name):
    law = law_of(name, scale)
    coarse = discrete._thresholds(law, law.shift, 64)
    fine = discrete._thresholds(law, law.shift, 192)
    assert coarse == [t >> 128 for t in fine[: len(coarse)]]


@pytest.mark.full(keep=15)
@pytest.mark.parametrize("law", NEARLY_ZERO + LAWS, ids=str)
def test_buckets_of_16_bits_agree_with_the_thresholds(law):
    table = discrete._table(law, law.shift)
    low = np.arange(2**16, dtype=np.uint64) << np.uint64(48)
    first = np.searchsorted(table.thresholds, low, side="left")
    beyond = np.searchsorted(table.thresholds, low + np.uint64(2**48 - 1), side="right")
    undecided = first != beyond
    np.testing.assert_array_equal(table.lookup == discrete._OPEN, undecided)
    values = np.where(first % 2 == 0, first // 2, -1 - first // 2)
    np.testing.assert_array_equal(table.lookup[~undecided], values[~undecided])


@given(
    st.fractions(min_value=0, max_value=400, max_denominator=2**60),
    st.integers(min_value=1, max_value=400),
)
def test_exponentials_are_bounded_from_both_sides(x, bits):
    lower = exponential(x, bits)
    with localcontext(prec=400):
        exact = (-Decimal(x.numerator) / Decimal(x.denominator)).exp() * 2**bits
    assert lower <= exact <= lower + SLIP
    assert exponential(Fraction(0), bits) == 2**bits


@given(
    st.fractions(min_value=128, max_value=2**52, max_denominator=1000),
    st.sampled_from(["laplace", "gaussian"]),
    st.integers(min_value=0, max_value=6000),
    st.booleans(),
    st.floats(min_value=0, max_value=1),
)
def test_double_acceptance_is_far_within_its_margin(scale, name, strip, mirrored, share):
    law = law_of(name, scale)
    start = (strip << law.shift) + mirrored
    step = round(share * (2**law.shift - 1))
    gamma = law.exponents(np.array([start]), np.array([step]))
    with localcontext(prec=60):
        exponent = law.exponent(start, start + step)
        exact = (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
        # Sixty-four times less than the margin also covers the rounding of the bits.
        assert abs(Decimal(float(np.exp(-gamma)[0])) - exact) < Decimal(MARGIN) / 64


# Rare paths, by playing back bits.


def inverse(law: discrete._Discrete, value: int, bits: int) -> int:
    """The strip of the uniform number value/2^bits, which no distribution value may share its bits with."""
    with localcontext(prec=130):
        for j, part in enumerate(cumulative(law, 4000)):
            floor = int(part * 2**bits)
            assert floor != value
            if value < floor:
                return unfold(j)
    raise AssertionError


TIE_LAWS = [
    Law(1, Fraction(1, 3)),
    Law(1, Fraction(3, 7)),
    Law(1, Fraction(11, 2)),
    Law(2, Fraction(1)),
    Law(2, Fraction(121, 2)),
    Law(2, 2 * (2**20 + Fraction(1, 3)) ** 2),
]


@cache
def threshold(law: discrete._Discrete, strip: int) -> int:
    """The distribution function at a strip, in 128 bits."""
    with localcontext(prec=130):
        return int([*cumulative(law, strip + 1)][strip] * 2**128)


@pytest.mark.full(keep=6)
@pytest.mark.parametrize("law", TIE_LAWS, ids=str)
@pytest.mark.parametrize("position", [0, 1, 5, -2, -1])
@pytest.mark.parametrize("offset", [-1, 1, -(2**30), 2**30])
def test_a_tie_with_a_threshold_is_decided_by_more_bits(law, position, offset):
    table = discrete._table(law, law.shift)
    j = range(len(table.thresholds))[position]
    tie = int(table.thresholds[j])
    exact = threshold(law, j)
    assert exact >> 64 == tie
    value = exact + offset
    assert value >> 64 == tie
    tape = Tape(np.array([tie >> 48], np.uint16), rest48(tie), more(value & FULL))
    out = np.empty(1, np.int64)
    table.fill(out, tape.source)
    assert out[0] == inverse(law, value, 128)
    if position not in (-1, -2):
        assert out[0] == unfold(j if offset < 0 else j + 1)
    assert tape.data == b""


@pytest.mark.full(keep=11)
@pytest.mark.parametrize("law", TIE_LAWS, ids=str)
@pytest.mark.parametrize("offset", [-1, 1])
def test_a_tie_of_128_bits_draws_further_bits(law, offset):
    table = discrete._table(law, law.shift)
    with localcontext(prec=130):
        value = int([*cumulative(law, 3)][2] * 2**192) + offset
    tie = value >> 128
    parts = [more(value >> 64 & FULL), more(value & FULL)]
    tape = Tape(np.array([tie >> 48], np.uint16), rest48(tie), *parts)
    out = np.empty(1, np.int64)
    table.fill(out, tape.source)
    assert out[0] == unfold(2 if offset < 0 else 3) == inverse(law, value, 192)
    assert tape.data == b""


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("law", NEARLY_ZERO + TIE_LAWS, ids=str)
@pytest.mark.parametrize("tail", [0, 1, 2**63, FULL - 2**40, FULL - 1000])
def test_the_tail_beyond_64_bits(law, tail):
    value = FULL << 64 | tail
    table = discrete._table(law, law.shift)
    tape = Tape(np.array([2**16 - 1], np.uint16), rest48(FULL), more(tail))
    out = np.empty(1, np.int64)
    table.fill(out, tape.source)
    assert out[0] == inverse(law, value, 128)
    # The same beyond 128 bits.
    value = (2**128 - 1) << 64 | tail
    parts = [more(FULL), more(tail)]
    tape = Tape(np.array([2**16 - 1], np.uint16), rest48(FULL), *parts)
    table.fill(out, tape.source)
    assert out[0] == inverse(law, value, 192)


def strip_word(table: discrete._Table, strip: int) -> int:
    """Sixteen bits that draw ``strip`` at once."""
    return int(np.flatnonzero(table.lookup == strip)[0])


def proposal(
    law: discrete._Discrete, strip: int, step: int, coin: int, *parts: np.ndarray | bytes
) -> list[int]:
    """The result of one proposal whose acceptance the given bits decide."""
    table = discrete._table(law, law.shift)
    word = np.array([step << 16 | coin], np.uint32 if law.shift <= 16 else np.uint64)
    tape = Tape(np.array([strip_word(table, strip)], np.uint16), word, *parts)
    drawn = discrete._strips(table, 1, tape.source).tolist()
    assert tape.data == b""
    return drawn


@pytest.mark.full(keep=25)
@pytest.mark.parametrize("law", STRIPS, ids=str)
@pytest.mark.parametrize("strip", [0, -1, 3, -40, 77])
@pytest.mark.parametrize("fraction", [Fraction(1, 7), Fraction(1)])
def test_an_acceptance_within_the_margin_is_decided_exactly(law, strip, fraction):
    step = int((2**law.shift - 1) * fraction) or 1
    size = strip if strip >= 0 else -1 - strip
    start = (size << law.shift) + (strip < 0)
    magnitude = start + step
    with localcontext(prec=130):
        exact = int(weight(law, magnitude) / weight(law, start) * 2**192)
    z = magnitude if strip >= 0 else -magnitude
    tie = exact >> 128
    for offset in (-1000, 1000):
        # The first 64 bits are those of the probability, the next 64 differ from it.
        parts = [rest48(tie), more((exact >> 64) + offset & FULL)]
        assert proposal(law, strip, step, tie >> 48, *parts) == ([z] if offset < 0 else [])
        # The first 128 bits are those of the probability: further bits decide.
        parts = [rest48(tie), more(exact >> 64 & FULL), more(exact + offset & FULL)]
        assert proposal(law, strip, step, tie >> 48, *parts) == ([z] if offset < 0 else [])
        # Beyond the margin 64 bits are enough: no more are on the tape.
        value = tie + (2**26 if offset > 0 else -(2**26))
        expected = [z] if offset < 0 else []
        assert proposal(law, strip, step, value >> 48, rest48(value)) == expected


@pytest.mark.parametrize("law", STRIPS, ids=str)
def test_the_member_nearest_to_zero_is_never_rejected(law):
    for strip, z in ((0, 0), (-1, -1), (2, 2 << law.shift)):
        assert proposal(law, strip, 0, 0) == [z]
        assert proposal(law, strip, 0, 2**16 - 1, rest48(FULL), more(FULL)) == [z]


# The strips make up the distribution.


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [Fraction(128), Fraction(1500, 7), Fraction(900)])
def test_strips_and_steps_reach_every_integer_once_with_its_probability(name, scale):
    law = law_of(name, scale)
    table = discrete._table(law, law.shift)
    width = 2**law.shift
    strips = range(-200, 200)
    pairs = [(strip, step) for strip in strips for step in range(width)]
    words = np.array([strip_word(table, strip) for strip, _ in pairs], np.uint16)
    steps = np.array([step << 16 for _, step in pairs], np.uint32)
    drawn = discrete._strips(table, len(pairs), Tape(words, steps).source)
    np.testing.assert_array_equal(np.sort(drawn), np.arange(-200 * width, 200 * width))

    # P(strip)·exp(-gamma)/width is proportional to exp(-|z|^power/divisor), to 40 digits.
    thresholds = [0, *discrete._thresholds(law, law.shift, 512)]
    with localcontext(prec=200):
        for (strip, step), z in list(zip(pairs, drawn.tolist(), strict=True))[:: 41 * width + 1]:
            j = 2 * strip if strip >= 0 else -2 * strip - 1
            start = min(abs(strip * width), abs(strip * width + width - 1))
            exponent = law.exponent(start, start + step)
            accepted = (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
            ratio = Decimal(thresholds[j + 1] - thresholds[j]) / Decimal(thresholds[1]) * accepted
            assert abs(ratio / weight(law, abs(z)) - 1) < Decimal(10) ** -40


def within_first_half(name: str, units: int) -> float:
    """Probability of the lower half of a strip, counted from zero, where scale or sigma is ``units`` strips.

    In the limit of wide strips, whose error is about the inverse of the width.
    """
    halves = np.arange(0, 2 * 12 * units + 1) / 2 / units
    below = 1 - np.exp(-halves) if name == "laplace" else erf(halves / math.sqrt(2))
    return float(np.diff(below)[::2].sum())


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [2**24, 2**38])
def test_acceptance_shapes_the_inside_of_strips(name, scale):
    # Scale or sigma is 64 strips; false alarm below 1e-6, and no rejection at all would be noticed.
    law = law_of(name, Fraction(scale))
    n = 4 * 10**6
    drawn = discrete._many(law, n, seeded(1))
    distance = np.where(drawn >= 0, drawn, ~drawn)
    share = float(np.mean(distance & (2**law.shift - 1) < 2 ** (law.shift - 1)))
    error = 0.5 / math.sqrt(n)
    assert scale >> law.shift == 64
    assert abs(share - within_first_half(name, 64)) < 5 * error
    assert abs(share - 0.5) > 5 * error


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("law", [law for law in STRIPS if law.shift >= 8], ids=str)
def test_low_bits_are_uniform_and_independent(law):
    drawn = discrete._many(law, 400_000, seeded(2))
    # The probability varies by less than 1e-5 over 16 neighbours at these scales.
    joint = np.bincount((drawn & 15) * 2 + (drawn >= 0), minlength=32)
    assert accepts_counts(joint, np.full(32, 1 / 32))


# Accept the claimed scale, reject 0.9 and 1.1 of it, by the same test.


def distribution(name: str, scale: Fraction | float) -> Callable[[np.ndarray], np.ndarray]:
    """P(Z <= z) in doubles."""
    s = float(scale)
    if name == "laplace":
        r = math.exp(-1 / s)
        return lambda z: np.where(
            z < 0, np.exp(np.minimum(z, 0) / s) / (1 + r), 1 - np.exp(-(np.maximum(z, 0) + 1) / s) / (1 + r)
        )
    if scale > 1000:
        # The midpoint rule: the relative error of the sum over an interval is below 1/sigma².
        return lambda z: (1 + erf((z + 0.5) / s / math.sqrt(2))) / 2
    reach = math.ceil(12 * s) + 12
    mass = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * s * s))
    below = np.cumsum(mass / mass.sum())
    return lambda z: below[np.clip(z, -reach, reach).astype(int) + reach]


@pytest.mark.full
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", SMALL_SCALES + LARGE_SCALES, ids=str)
def test_one_by_one_has_the_claimed_scale_and_no_other(monkeypatch, name, scale):
    n = 15_000 if name == "laplace" else 8000  # the heavier the tails, the less a draw says of the scale
    monkeypatch.setattr(discrete, "FEW", n)
    drawn = drawn_from(law_of(name, scale), n, seeded(0))
    accepts_only(drawn, lambda factor: distribution(name, factor * float(scale)))


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", SMALL_SCALES + LARGE_SCALES, ids=str)
def test_tables_and_strips_have_the_claimed_scale_and_no_other(name, scale):
    drawn = discrete._many(law_of(name, scale), 20_000, seeded(0))
    accepts_only(drawn, lambda factor: distribution(name, factor * float(scale)))
    # A larger sample of the claimed scale: finer deviations would show.
    assert accepts(discrete._many(law_of(name, scale), 10**6, seeded(3)), distribution(name, scale))


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [Fraction(3, 7), Fraction(5), 2**20 + Fraction(1, 3)], ids=str)
@pytest.mark.parametrize("rng", [None, 5])
def test_the_public_functions_draw_what_they_say(name, scale, rng):
    # Entropy of the operating system cannot be seeded: this fails once in a million runs.
    for size in (FEW, 50_000):
        bits = source(rng)
        drawn = (
            discrete_laplace(scale, size, bits)
            if name == "laplace"
            else discrete_gaussian(scale**2, size, bits)
        )
        assert drawn.shape == (size,)
        assert drawn.dtype == np.int64
        assert accepts(drawn, distribution(name, scale))


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("law", [Law(1, Fraction(5)), Law(2, Fraction(50)), Law(1, Fraction(5000))], ids=str)
def test_draws_are_independent_of_their_neighbours(law):
    drawn = discrete._many(law, 10**6, seeded(4)).astype(float)
    for lag in (1, 2, 3, 4):
        # The correlation has standard error 1/1000: false alarm below 1e-6.
        assert abs(np.corrcoef(drawn[lag:], drawn[:-lag])[0, 1]) < 0.005


def test_a_tiny_scale_draws_zeros_and_a_huge_one_fits():
    for n in (100, 5000):
        assert not discrete_laplace(Fraction(1, 10**6), n, seeded(5)).any()
        assert not discrete_gaussian(Fraction(1, 10**12), n, seeded(5)).any()
        widest = discrete_laplace(Fraction(2**52), n, seeded(5))
        assert 2**51 < np.abs(widest).mean() < 2**53
        assert 2**51 < discrete_gaussian(Fraction(2**104), n, seeded(5)).std() < 2**53


# Privacy loss, from the distribution that the thresholds make.


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(7, 2)])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_the_privacy_loss_of_discrete_laplace_is_epsilon(epsilon, sensitivity):
    law = Law(1, sensitivity / epsilon)
    thresholds = discrete._thresholds(law, 0, 512)
    used = discrete._table(law, 0).thresholds.tolist()
    assert used == [t >> 448 for t in thresholds[: len(used)]]
    with localcontext(prec=60):
        reach = len(used) // 2 + sensitivity
        far = [0, *thresholds[: 2 * (reach + sensitivity + 1)]]  # on both sides, beyond all that is compared
        mass = {unfold(j): Decimal(b - a).ln() for j, (a, b) in enumerate(pairwise(far))}
        losses = [abs(mass[z] - mass[z - sensitivity]) for z in range(-reach, reach + 1)]
        exact = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
        assert abs(max(losses) - exact) < Decimal(10) ** -30


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("scale", [Fraction(128), Fraction(1000, 3)])
def test_the_privacy_loss_across_strips_is_epsilon(scale):
    law = Law(1, scale)
    sensitivity, width = 5, 2**law.shift
    thresholds = [0, *discrete._thresholds(law, law.shift, 512)]

    @cache
    def log_mass_of_strip(j: int) -> Decimal:
        return Decimal(thresholds[j + 1] - thresholds[j]).ln()

    def log_mass(z: int) -> Decimal:
        distance = z if z >= 0 else ~z
        gamma = law.exponent(0, distance % width)
        return log_mass_of_strip(2 * (distance >> law.shift) + (z < 0)) - Decimal(gamma.numerator) / Decimal(
            gamma.denominator
        )

    with localcontext(prec=120):
        logs = {z: log_mass(z) for z in range(-2000, 2001)}
        losses = [abs(logs[z] - logs[z - sensitivity]) for z in range(-1995, 2001)]
        exact = Decimal((sensitivity / scale).numerator) / Decimal((sensitivity / scale).denominator)
        assert abs(max(losses) - exact) < Decimal(10) ** -30


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(4), Fraction(121, 4)])
@pytest.mark.parametrize("alpha", [2, 3, 5])
def test_the_renyi_divergence_of_discrete_gaussian_is_that_of_zcdp(variance, alpha):
    # Canonne, Kamath, Steinke (2020), Theorem 4: alpha·d²/(2 sigma²), attained at integer alpha.
    sensitivity = 1
    thresholds = [0, *discrete._thresholds(Law(2, 2 * variance), 0, 1500)]
    with localcontext(prec=500):
        mass = {unfold(j): Decimal(b - a) / 2**1500 for j, (a, b) in enumerate(pairwise(thresholds))}
        reach = math.ceil(25 * math.sqrt(variance))
        moment = sum(
            mass[z] ** alpha / mass[z - sensitivity] ** (alpha - 1) for z in range(-reach, reach + 1)
        )
        rho = Decimal(variance.denominator) / Decimal(2 * variance.numerator)
        assert abs(moment.ln() / (alpha - 1) - alpha * rho) < Decimal(10) ** -30


# Where bits come from.


@pytest.mark.full(keep=5)
@pytest.mark.parametrize(
    "law", [Law(1, Fraction(1000)), Law(2, Fraction(10**6)), Law(1, Fraction(5))], ids=str
)
@pytest.mark.parametrize("size", [20, 2000, 2**16 + 7])
def test_a_seed_says_everything(law, size):
    first = drawn_from(law, size, source(11))
    discrete._table.cache_clear()
    np.testing.assert_array_equal(drawn_from(law, size, source(11)), first)
    np.testing.assert_array_equal(drawn_from(law, size, source(np.int64(11))), first)
    np.testing.assert_array_equal(drawn_from(law, size, source(np.random.default_rng(11))), first)
    assert (drawn_from(law, size, source(12)) != first).any()


def test_a_generator_advances_and_a_seed_starts_anew():
    generator = np.random.default_rng(3)
    scale = Fraction(10**9)
    first = discrete_laplace(scale, 5, source(generator))
    assert (discrete_laplace(scale, 5, source(generator)) != first).all()
    bits = source(3)
    np.testing.assert_array_equal(discrete_laplace(scale, 5, bits), first)
    assert (discrete_laplace(scale, 5, bits) != first).all()


def test_decays_has_the_probability_of_an_exponential():
    pool = Pool(seeded(8))
    for numerator, denominator in ((0, 1), (1, 3), (1, 1), (5, 2)):
        p = math.exp(-numerator / denominator)
        hits = sum(pool.decays(numerator, denominator) for _ in range(20_000))
        # Five standard errors: false alarm below 1e-6.
        assert abs(hits - 20_000 * p) <= 5 * math.sqrt(20_000 * p * (1 - p))


def test_memory_beyond_the_result_is_small():
    for law in (Law(1, Fraction(20)), Law(2, Fraction(2**60))):
        discrete._many(law, 2000, seeded(9))
        tracemalloc.start()
        drawn = discrete._many(law, 10**6, seeded(9))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak - drawn.nbytes < 8e6


# Bad input.


@pytest.mark.parametrize("scale", [0, -1, Fraction(-1, 3), 2**52 + 1, 2**52 + Fraction(1, 10), math.nan])
def test_scales_out_of_range_are_refused(scale):
    with pytest.raises(ParameterError, match=r"'scale' must be positive and at most 2\*\*52 \(got "):
        discrete_laplace(scale, 1, source(0))
    with pytest.raises(ParameterError, match=r"'variance' must be positive and at most 2\*\*104 \(got "):
        discrete_gaussian(scale if scale <= 0 or scale != scale else scale**2, 1, source(0))


def test_a_negative_size_is_refused_and_zero_is_empty():
    for draw in (discrete_laplace, discrete_gaussian):
        with pytest.raises(ParameterError, match=r"'size' must be a whole number of at least 0 \(got -1\)\."):
            draw(Fraction(1), -1, source(0))
        assert draw(Fraction(1), 0, source(0)).shape == (0,)
