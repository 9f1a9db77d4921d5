"""Generalized Gaussian noise by inversion: integrals in all digits, exact decisions, and the law of draws."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import special

from pdprivacy.core.noise import UNBOUNDED, Source, generalized_normal, inverse, source, truncated_laplace
from tests.support.statistics import Distribution, accepts, accepts_counts, accepts_only
from tests.support.tape import Tape


def seeded(seed: int) -> Source:
    return source(np.random.default_rng([21, seed]))


def decimal(x: Fraction | int) -> Decimal:
    return Decimal(Fraction(x).numerator) / Decimal(Fraction(x).denominator)


# Generalized normal: the distribution function.

POWERS = [Fraction(1), Fraction(5, 4), Fraction(3, 2), Fraction(2), Fraction(3), Fraction(8), Fraction(40)]


def divisor_of(power: Fraction, scale: int | Fraction) -> Fraction:
    """The divisor of the given scale, rounded where it is irrational."""
    with localcontext(prec=60):
        return Fraction(decimal(scale) ** decimal(power))


@pytest.mark.full(keep=9)
@pytest.mark.parametrize("power", POWERS, ids=str)
@pytest.mark.parametrize("scale", [Fraction(1, 3), 5, 2**30], ids=str)
def test_the_integral_agrees_with_the_incomplete_gamma_function(power, scale):
    integrals = inverse._exact(power, divisor_of(power, scale), 60)
    a, b = 1 / float(power), float(scale)
    with localcontext(integrals.context):
        for s in (1e-9, 0.01, 0.5, 1.0, 1.7, 4.0, 30.0):
            x = Decimal(s) * decimal(scale)
            y = s ** float(power)
            # Where exp(-y) is one in double precision, y itself may underflow.
            expected = b * s if y < 1e-17 else b * math.gamma(1 + a) * special.gammainc(a, y)
            assert float(integrals.integral(x)) == pytest.approx(expected, rel=1e-12)
            assert integrals.integral(-x) == -integrals.integral(x)
        assert float(integrals.full) == pytest.approx(b * math.gamma(1 + a), rel=1e-12)
        assert integrals.integral(Decimal(0)) == 0


@pytest.mark.parametrize("scale", [Fraction(1, 7), Fraction(10, 3), Fraction(2**40)], ids=str)
def test_the_integral_of_laplace_is_an_exponential_in_all_digits(scale):
    integrals = inverse._exact(Fraction(1), scale, 80)
    with localcontext(prec=120):
        for s in (Decimal("1e-6"), Decimal(1), Decimal(17), Decimal(300)):
            expected = decimal(scale) * (1 - (-s).exp())
            with localcontext(integrals.context):
                actual = integrals.integral(s * decimal(scale))
            assert abs(actual / expected - 1) < Decimal(10) ** -76


def arctangent(x: Decimal) -> Decimal:
    total = term = x
    n = 1
    while abs(term) > Decimal(10) ** -130:
        term *= -x * x
        n += 2
        total += term / n
    return total


@pytest.mark.parametrize("count", [50, 100])
def test_the_whole_integrals_are_those_known_in_closed_form(count):
    # Of exp(-x²): half the root of pi, by Machin's formula; of exp(-x): one.
    with localcontext(prec=130):
        pi = 4 * (4 * arctangent(Decimal(1) / 5) - arctangent(Decimal(1) / 239))
        expected = pi.sqrt() / 2
    with localcontext(prec=130):
        full = inverse._exact(Fraction(2), Fraction(1), count).full
        assert abs(full / expected - 1) < Decimal(10) ** (4 - count)
        assert abs(inverse._exact(Fraction(1), Fraction(1), count).full - 1) < Decimal(10) ** (4 - count)


@pytest.mark.full(keep=19)
@pytest.mark.parametrize("power", POWERS, ids=str)
@pytest.mark.parametrize("s", [0.3, 2.0, 5.0])
def test_more_digits_refine_fewer_digits(power, s):
    # The last digits that a decision relies on are 18 beyond those of the bits, out of 30 and more.
    coarse, fine = (inverse._exact(power, divisor_of(power, 2**30), count) for count in (50, 120))
    x = Decimal(round(s * 2**30)) + Decimal("0.5")
    with localcontext(coarse.context):
        actual = coarse.integral(x)
    with localcontext(fine.context):
        assert abs(actual / fine.integral(x) - 1) < Decimal(10) ** -45


# Generalized normal: double precision against all digits.


def exact_inverse(law: inverse._Rounded, word: int, below: int, above: int, start: float) -> Decimal:
    """The x with E(x) = (word + 1/2)/2^64, in the current context."""
    half = Decimal("0.5")
    integrals = inverse._exact(law.power, law.divisor, 60)
    left, right = integrals.integral(below + half), integrals.integral(above + half)
    target = (word + half) * (left + right) / 2**64 - left
    x = integrals.inverse(abs(target), Decimal(abs(start)))
    for _ in range(4):  # from less than a quarter away to all digits, where the scale is one or more
        x += (abs(target) - integrals.integral(x)) * integrals.exponent(x).exp()
    return x if target > 0 else -x


RANGES = {
    "unbounded": (UNBOUNDED, UNBOUNDED),
    "right": (0, UNBOUNDED),
    "left": (UNBOUNDED, 3),
    "tiny": (1, 2),
    "lopsided": (0, 5),
    "tenth": (0.1, 0.13),
    "uneven": (0.001, 3),
    "even": (1, 1),
    "wide": (8, 9),
    "huge": (10**4, 10**3),
}


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("power", [*POWERS, Fraction(11, 10), Fraction(1000)], ids=str)
@pytest.mark.parametrize("kind", RANGES)
def test_the_double_inverse_is_far_within_its_error(power, kind):
    rng = np.random.default_rng([22, POWERS.index(power) if power in POWERS else 99])
    for scale in (50, 2**30, 2**46):
        law = inverse._rounded(power, divisor_of(power, scale))
        sides = RANGES[kind]
        relative = kind in ("tenth", "uneven", "even", "wide", "huge")
        below, above = (int(side * scale) if relative else side for side in sides)
        # Anywhere, in both tails, and around the place of zero.
        words = rng.integers(0, 2**64, 12, dtype=np.uint64)
        words[:3] >>= rng.integers(0, 16, 3, dtype=np.uint64)
        words[3:6] = ~(words[3:6] >> rng.integers(0, 16, 3, dtype=np.uint64))
        edges = law.magnitude.inside((np.array([below, above]) + 0.5) / law.scale)
        zero = edges[0] / edges.sum()
        spread = min(zero, 1 - zero) * rng.uniform(-1, 1, 3) * 2.0 ** -rng.uniform(1, 50, 3)
        words[6:9] = ((zero + spread) * 2.0**64).clip(2.0**48, 2.0**64 - 2.0**49).astype(np.uint64)
        words = words[(words > inverse._END) & (words < 2**64 - inverse._END)]
        n = words.size
        x, error = law.estimate(words, np.full(n, below), np.full(n, above))
        with localcontext(prec=60):
            for i in range(n):
                expected = exact_inverse(law, int(words[i]), below, above, float(x[i]))
                # Seen are 1/28 of the error where gamma functions are needed, 1/80 where not.
                assert abs(Decimal(float(x[i])) - expected) < Decimal(float(error[i])) / 8


CASES = [
    (power, scale, below, above)
    for power in (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(8))
    for scale, below, above in (
        (Fraction(1, 2), UNBOUNDED, UNBOUNDED),
        (Fraction(3), 4, 6),
        (Fraction(2**30), 2**29, 2**31),
        (Fraction(2**30), 0, UNBOUNDED),
        (Fraction(2**40), UNBOUNDED, UNBOUNDED),
        (Fraction(2**50), 5, 1000),
    )
]


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(("power", "scale", "below", "above"), CASES, ids=str)
def test_exact_decisions_are_those_of_double_precision(monkeypatch, power, scale, below, above):
    divisor = divisor_of(power, scale)
    low, high = np.full(40, below), np.full(40, above)
    expected = generalized_normal(power, divisor, low, high, source(2))
    decided = []
    decide = inverse._decide
    monkeypatch.setattr(inverse, "_ERROR_PLAIN", 1e200)
    monkeypatch.setattr(inverse, "_ERROR_GAMMA", 1e200)
    monkeypatch.setattr(inverse, "_decide", lambda *args: decided.append(1) or decide(*args))
    np.testing.assert_array_equal(generalized_normal(power, divisor, low, high, source(2)), expected)
    assert len(decided) == 40


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(("power", "scale", "below", "above"), CASES, ids=str)
@pytest.mark.parametrize("start", [0.0, 1e6, 1e15])
def test_a_decision_does_not_depend_on_where_it_starts(power, scale, below, above, start):
    law = inverse._rounded(power, divisor_of(power, scale))
    for word in (0, 2**20, 2**62 + 12345, 2**63, 2**64 - 2**40, 2**64 - 1):
        assert inverse._decide(law, word, below, above, start, source(1)) == inverse._decide(
            law, word, below, above, 0.3 * float(scale), source(1)
        )


EDGES = [
    (Fraction(1), Fraction(7, 2), 3, 9),
    (Fraction(1), Fraction(7, 2), UNBOUNDED, UNBOUNDED),
    (Fraction(3, 2), Fraction(20), 5, 4),
    (Fraction(2), Fraction(50), 0, UNBOUNDED),
    (Fraction(2), Fraction(2**60), 2**29, 2**31),
    (Fraction(7), Fraction(10**5), 6, 8),
]


@pytest.mark.full(keep=3)
@pytest.mark.parametrize(("power", "divisor", "below", "above"), EDGES, ids=str)
@pytest.mark.parametrize("eighths", [-2, 0, 3])
def test_edges_between_integers_are_where_the_distribution_function_puts_them(
    power, divisor, below, above, eighths
):
    # u on one side of E(z + 1/2) draws z, on the other z + 1, by as many bits as that needs.
    z = eighths * max(1, int(float(divisor) ** (1 / float(power)) / 8))
    if not -below <= z < above:
        z = 0
    half = Decimal("0.5")
    integrals = inverse._exact(power, divisor, 120)
    with localcontext(integrals.context):
        left, right = integrals.integral(below + half), integrals.integral(above + half)
        edge = int((integrals.integral(z + half) + left) / (left + right) * 2**192)
    full = 2**64 - 1
    tie = edge >> 128
    law = inverse._rounded(power, divisor)

    def drawn(*words: int) -> int:
        tape = Tape(*words)
        out = np.empty(1, np.int64)
        inverse._fill(law, np.array([below]), np.array([above]), out, tape.source)
        assert tape.data == b""
        return int(out[0])

    for offset in (-1, 1):
        expected = z if offset < 0 else z + 1
        assert drawn(tie + offset) == expected
        assert drawn(tie, (edge >> 64) + offset & full) == expected
        assert drawn(tie, edge >> 64 & full, edge + offset & full) == expected


def test_the_far_tail_is_drawn_by_more_bits():
    # 64 zeros leave all integers open down to no bound: 128 and 192 bits tell.
    law = inverse._rounded(Fraction(1), Fraction(10))
    for words in ((0, 2**40), (0, 0, 3 * 2**61)):
        out = np.empty(1, np.int64)
        tape = Tape(*words)
        inverse._fill(law, np.array([UNBOUNDED]), np.array([UNBOUNDED]), out, tape.source)
        assert tape.data == b""
        share = Fraction(words[-1], 2 ** (64 * len(words)))
        # E(x) = exp(x/10)/2 on the left.
        expected = 10 * math.log(2 * share)
        assert out[0] == round(expected)
        assert abs(expected - round(expected)) < 0.49


@pytest.mark.parametrize("end", [0, 2**64 - 1])
@pytest.mark.parametrize("power", [Fraction(1), Fraction(3, 2), Fraction(2)], ids=str)
def test_the_tails_reach_every_integer(power, end):
    # At 2^-44 from an end numbers of 64 bits leave hundreds of integers out: further bits draw them.
    law = inverse._rounded(power, divisor_of(power, 2**30))
    out = np.empty(2, np.int64)
    for i, extra in enumerate((0, 2**64 - 1)):
        tape = Tape(end ^ 2**20, extra)
        inverse._fill(law, np.array([UNBOUNDED]), np.array([UNBOUNDED]), out[i : i + 1], tape.source)
        assert tape.data == b""
    # The width of the interval over the density there.
    y = special.gammainccinv(1 / float(power), 2.0**-43)
    width = 2.0**30 * 2 * math.gamma(1 + 1 / float(power)) * math.exp(y) * 2.0**-64
    assert out[1] - out[0] == pytest.approx(width, abs=2)
    assert width > 50


@pytest.mark.full
def test_few_of_many_draws_need_an_exact_decision(monkeypatch):
    # The claim is some hundreds in a million; here at most 100 in 100,000 (expected: below 45).
    n = 100_000
    rng = np.random.default_rng(23)
    low = rng.integers(0, 2**31, n)
    for power in (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3)):
        decided = []
        monkeypatch.setattr(inverse, "_decide", lambda *args, decided=decided: decided.append(1) or 0)
        generalized_normal(power, divisor_of(power, 2**30), low, 2**31 - low, seeded(11))
        assert len(decided) < 100


# Generalized normal: the law of the draws.


def normal_law(power: Fraction, scale: float, below: int, above: int) -> Distribution:
    """Generalized normal noise rounded to integers and truncated, by the incomplete gamma function."""

    def signed(x: np.ndarray) -> np.ndarray:
        return np.sign(x) * special.gammainc(1 / float(power), np.abs(x / scale) ** float(power))

    low, high = signed(np.array([-below - 0.5, above + 0.5]))
    return lambda z: (signed(np.clip(z, -below - 1, above) + 0.5) - low) / (high - low)


NORMALS = [
    (power, scale, below, above)
    for power in (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3), Fraction(8))
    for scale, below, above in (
        (Fraction(1), UNBOUNDED, UNBOUNDED),
        (Fraction(6), 9, 14),
        (Fraction(6), 0, UNBOUNDED),
        (Fraction(2**30), 2**30, 3 * 2**30),
    )
]


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(("power", "scale", "below", "above"), NORMALS, ids=str)
def test_generalized_normal_has_the_claimed_scale_and_no_other(power, scale, below, above):
    # more where the law is cut off within its scale and says little of it
    n = 60_000 if power == 1 and above != UNBOUNDED else 25_000
    drawn = generalized_normal(
        power, divisor_of(power, scale), np.full(n, below), np.full(n, above), seeded(0)
    )
    accepts_only(drawn, lambda factor: normal_law(power, factor * float(scale), below, above))


def test_a_tiny_range_within_a_huge_scale_is_uniform():
    n = 100_000
    for power in (Fraction(1), Fraction(3, 2), Fraction(2)):
        for draws in (
            generalized_normal(power, divisor_of(power, 2**48), np.full(n, 3), np.full(n, 4), seeded(12)),
            truncated_laplace(Fraction(2**48), np.full(n, 3), np.full(n, 4), seeded(13)),
        ):
            assert accepts_counts(np.bincount(draws + 3, minlength=8), np.full(8, 1 / 8))


@pytest.mark.full
def test_the_exact_path_alone_has_the_law():
    law = inverse._rounded(Fraction(3, 2), divisor_of(Fraction(3, 2), 2))
    bits = seeded(14)
    drawn = np.array(
        [inverse._decide(law, int.from_bytes(bits.bytes(8), "little"), 3, 5, 0.0, bits) for _ in range(2000)]
    )
    assert accepts(drawn, normal_law(Fraction(3, 2), 2.0, 3, 5))


def test_pairs_of_thresholds_cover_the_unit_interval():
    # The cells of a small law, each from its own edges, add up to one in all digits.
    integrals = inverse._exact(Fraction(3, 2), Fraction(20), 80)
    with localcontext(integrals.context):
        edges = [integrals.integral(Decimal(z) - Decimal("0.5")) for z in range(-5, 8)]
        assert all(b > a for a, b in pairwise(edges))
        cells = normal_law(Fraction(3, 2), 20 ** (2 / 3), 5, 6)(np.arange(-6, 7))
        whole = edges[-1] - edges[0]
        for edge, expected in zip(edges, cells, strict=True):
            assert float((edge - edges[0]) / whole) == pytest.approx(expected, abs=1e-12)
