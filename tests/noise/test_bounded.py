"""Truncated, generalized Gaussian and staircase noise: exact laws, exact decisions, and refusals."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from pdprivacy.errors import ParameterError
from pdprivacy.exact import SLIP
from pdprivacy.noise import (
    UNBOUNDED,
    Source,
    choice,
    generalized_normal,
    inverse,
    source,
    truncated_laplace,
)
from pdprivacy.noise import discrete as laws
from pdprivacy.noise import staircase as draw_staircase
from tests.support.statistics import Distribution, accepts, accepts_counts, accepts_only, discrete
from tests.support.tape import Tape


def seeded(seed: int) -> Source:
    return source(np.random.default_rng([21, seed]))


def silent(n: int) -> bytes:
    raise AssertionError("bits were drawn")


SILENT = Source(silent, seeded=True)


def decimal(x: Fraction | int) -> Decimal:
    return Decimal(Fraction(x).numerator) / Decimal(Fraction(x).denominator)


# Truncated Laplace.


def laplace_law(scale: float, below: int, above: int) -> Distribution:
    if above == UNBOUNDED:
        above = below + math.ceil(52 * scale)
    z = np.arange(-below, above + 1)
    return discrete(z, np.exp(-np.abs(z) / float(scale)))


def laplace_draws(path: str, scale: Fraction, below: int, above: int, n: int, bits: Source) -> np.ndarray:
    low, high = np.full(n, below), np.full(n, above)
    if path == "few":
        return laws._few_between(scale, low, high, bits)
    return truncated_laplace(scale, low, high, bits)


TELLING = [  # ranges that tell the scale from one tenth less or more
    (Fraction(4), 3, 9),
    (Fraction(11, 2), 20, 30),
    (Fraction(3), 0, 7),
    (Fraction(3), 8, 0),
    (Fraction(2, 3), 2, 2),
    (Fraction(5), 0, UNBOUNDED),
    (Fraction(5), 3, UNBOUNDED),
]
UNTELLING = [
    (Fraction(10**4), 3, 4),
    (Fraction(2**52), 2, 5),
    (Fraction(50), 1, 0),
    (Fraction(1, 4), 1, 1),
    (Fraction(1, 3), 0, 1),
]


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("path", ["few", "many"])
@pytest.mark.parametrize(("scale", "below", "above"), TELLING, ids=str)
def test_truncated_laplace_has_the_claimed_scale_and_no_other(path, scale, below, above):
    n = 30_000
    drawn = laplace_draws(path, scale, below, above, n, seeded(0))
    accepts_only(drawn, lambda factor: laplace_law(factor * float(scale), below, above))


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(("scale", "below", "above"), TELLING + UNTELLING, ids=str)
def test_large_samples_have_the_truncated_law(scale, below, above):
    law = laplace_law(scale, below, above)
    assert accepts(laplace_draws("many", scale, below, above, 400_000, seeded(3)), law)
    assert accepts(laplace_draws("few", scale, below, above, 20_000, seeded(4)), law)


def test_each_draw_has_its_own_bounds():
    n = 400_000
    lows, highs = np.array([0, 1, 4, 30, 0]), np.array([2, 6, 0, 30, UNBOUNDED])
    which = np.arange(n) % 5
    drawn = truncated_laplace(Fraction(6), lows[which], highs[which], seeded(5))
    for i in range(5):
        assert accepts(drawn[which == i], laplace_law(6, int(lows[i]), int(highs[i])))


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    ("below", "above"),
    [(0.02, 0.05), (0.3, 0.6), (0.9, 1.0), (0.3, 2.0), (3.0, 0.1), (0.5, None), (None, 2.0)],
)
def test_a_wide_grid_has_the_continuous_truncated_law(below, above):
    # Both ways of folding: ranges within the scale and beyond. On 2^40 steps of scale the law is the
    # continuous one but for 2^-40; forty cells of equal probability; false alarm 1e-6.
    scale, n = 2**40, 200_000
    steps = [UNBOUNDED if side is None else round(side * scale) for side in (below, above)]
    drawn = truncated_laplace(Fraction(scale), np.full(n, steps[0]), np.full(n, steps[1]), seeded(6))
    share = [1.0 if side is None else -math.expm1(-side) for side in (below, above)]
    x = drawn / scale
    uniform = (np.sign(x) * -np.expm1(-np.abs(x)) + share[0]) / sum(share)
    counts = np.bincount((uniform * 40).astype(int).clip(0, 39), minlength=40)
    assert accepts_counts(counts, np.full(40, 1 / 40))


@pytest.mark.parametrize("n", [1, 50, 3000])
@pytest.mark.parametrize("scale", [Fraction(1, 9), Fraction(7), Fraction(2**52)])
def test_a_single_integer_is_always_drawn(n, scale):
    nothing = np.zeros(n, np.int64)
    assert not truncated_laplace(scale, nothing, nothing, seeded(7)).any()
    assert not generalized_normal(Fraction(3, 2), scale, nothing, nothing, seeded(7)).any()


def test_a_tiny_scale_draws_zeros():
    for n in (100, 3000):
        wide = np.full(n, 10)
        for scale in (Fraction(1, 10**6), Fraction(1, 10**400)):
            assert not truncated_laplace(scale, wide, wide, seeded(8)).any()
        assert not generalized_normal(Fraction(2), Fraction(1, 10**700), wide, wide, seeded(8)).any()


distance = st.one_of(st.integers(0, 3), st.integers(0, 2**40), st.integers(0, 2**63 - 1), st.just(UNBOUNDED))


@given(
    st.fractions(min_value=Fraction(1, 100), max_value=2**52, max_denominator=1000),
    distance,
    distance,
    st.sampled_from([1, 7, 1025]),
    st.sampled_from([Fraction(1), Fraction(5, 4), Fraction(2), Fraction(9)]),
)
def test_draws_stay_within_bounds(scale, below, above, n, power):
    low, high = np.full(n, below), np.full(n, above)
    # At these scales many of 1025 draws of a power may need the exact path: a few are enough.
    for drawn in (
        truncated_laplace(scale, low, high, seeded(9)),
        generalized_normal(power, scale, low[:7], high[:7], seeded(9)),
    ):
        assert drawn.dtype == np.int64
        assert drawn.min() >= -below
        assert drawn.max() <= above


def test_without_bounds_it_is_the_discrete_laplace_law():
    # Nothing lies outside, so nothing is folded: the same bits give the same draws.
    from pdprivacy.noise import discrete_laplace

    for n in (100, 5000):
        free = np.full(n, UNBOUNDED)
        np.testing.assert_array_equal(
            truncated_laplace(Fraction(2**30), free, free, source(3)),
            discrete_laplace(Fraction(2**30), n, source(3)),
        )


def exact_share(scale: Fraction, below: int, above: int) -> Decimal:
    r = (-decimal(1 / scale)).exp()
    left, right = r * (1 - r**below), 1 - r ** (above + 1)
    return left / (left + right)


SIDES = [
    (Fraction(2**52), 1, 4),
    (Fraction(2**30), 2**20, 2**33),
    (Fraction(7, 3), 4, 3),
    (Fraction(1, 30), 2, 0),
    (Fraction(100), 50, UNBOUNDED),
]


@pytest.mark.parametrize(("scale", "below", "above"), SIDES, ids=str)
@pytest.mark.parametrize("bits", [192, 400])
def test_weights_of_the_sides_are_bounded_from_both_sides(scale, below, above, bits):
    least, most, least_right, most_right = laws._sides(scale, below, above)(bits)
    with localcontext(prec=300):
        r = (-decimal(1 / scale)).exp()
        left, right = r * (1 - r**below) * 2**bits, (1 - r ** (above + 1)) * 2**bits
        assert least <= left <= most
        assert least_right <= right <= most_right
    assert most - least <= 2 * SLIP
    assert most_right - least_right <= SLIP


@pytest.mark.parametrize(("scale", "below", "above"), SIDES, ids=str)
def test_the_side_is_decided_exactly_where_64_bits_tie(scale, below, above):
    odds = laws._sides(scale, below, above)
    with localcontext(prec=300):
        share = int(exact_share(scale, below, above) * 2**192)
    tie, full = share >> 128, 2**64 - 1
    for offset in (-1, 1):
        # 64 bits decide beside the tie, and no more are on the tape.
        if 0 <= tie + offset <= full:
            assert choice.heads(odds, tie + offset, Tape().source) == (offset < 0)
        # 128 bits are needed, and 192.
        word = (share >> 64) + offset & full
        assert choice.heads(odds, tie, Tape(word).source) == (offset < 0)
        words = Tape(share >> 64 & full, share + offset & full)
        assert choice.heads(odds, tie, words.source) == (offset < 0)
        assert words.data == b""


@given(
    st.fractions(min_value=Fraction(1, 20), max_value=2**52, max_denominator=10**6),
    st.integers(0, 2**54),
    st.integers(0, 2**54),
)
def test_the_double_share_of_a_side_is_far_within_its_margin(scale, below, above):
    rate = float(1 / scale)
    left, right = math.exp(-rate) * -math.expm1(-below * rate), -math.expm1(-(above + 1) * rate)
    with localcontext(prec=80):
        assert (
            abs(Decimal(left / (left + right)) - exact_share(scale, below, above))
            < Decimal(choice.MARGIN) / 256
        )


@pytest.mark.full(keep=3)
@pytest.mark.parametrize(("scale", "below", "above"), TELLING + SIDES, ids=str)
def test_exact_decisions_one_by_one_are_those_of_double_precision(monkeypatch, scale, below, above):
    low, high = np.full(300, below), np.full(300, above)
    expected = truncated_laplace(scale, low, high, source(1))
    asked = []
    monkeypatch.setattr(laws, "MARGIN", 2.0)
    monkeypatch.setattr(laws, "heads", lambda *args: asked.append(1) or choice.heads(*args))
    np.testing.assert_array_equal(truncated_laplace(scale, low, high, source(1)), expected)
    assert bool(asked) == (scale > Fraction(1, 30))  # where nothing lies outside, nothing is asked


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(("scale", "below", "above"), [*TELLING[:3], UNTELLING[1], TELLING[-1]], ids=str)
def test_exact_decisions_of_many_draws_have_the_same_law(monkeypatch, scale, below, above):
    asked = []
    monkeypatch.setattr(choice, "MARGIN", 2.0)
    monkeypatch.setattr(laws, "heads", lambda *args: asked.append(1) or choice.heads(*args))
    drawn = laplace_draws("many", scale, below, above, 10_000, seeded(10))
    assert asked
    assert accepts(drawn, laplace_law(scale, below, above))


def test_coins_agree_with_their_bits():
    # Eight bits and then 56: the coin is heads where the number they spell is below the probability.
    eighths = np.array([0.0, 1.0, 0.5, 100 / 256, 100.25 / 256, 1 - 2.0**-30])
    words = np.array([0, 255, 128, 100, 100, 255], np.uint8)
    rest = [0, 2**64 - 1, 0, 1 << 40, 1 << 62, 2**64 - 2**36]
    data = words.tobytes() + np.array(rest, np.uint64).tobytes()
    taken = []

    def read(n: int) -> bytes:
        start = sum(taken)
        taken.append(n)
        return data[start : start + n]

    asked = []

    def decide(i: int, value: int) -> bool:
        asked.append((i, value))
        return value < int(Fraction(float(eighths[i])) * 2**64)

    shown = choice.lazy_coins(eighths, decide, Source(read, seeded=True))
    values = [int(w) << 56 | r >> 8 for w, r in zip(words, rest, strict=True)]
    expected = [Fraction(v, 2**64) < Fraction(float(p)) for v, p in zip(values, eighths, strict=True)]
    assert shown.tolist() == expected
    assert sum(taken) == len(data)
    # Ties within 2^-40 were asked for, and those beyond it were not.
    near = [abs(Fraction(v, 2**64) - Fraction(float(p))) for v, p in zip(values, eighths, strict=True)]
    assert [i for i, _ in asked] == [i for i, gap in enumerate(near) if gap < Fraction(1, 2**40)]
    assert all(value == values[i] for i, value in asked)


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
                found = integrals.integral(s * decimal(scale))
            assert abs(found / expected - 1) < Decimal(10) ** -76


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
        found = coarse.integral(x)
    with localcontext(fine.context):
        assert abs(found / fine.integral(x) - 1) < Decimal(10) ** -45


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
@pytest.mark.parametrize("place", [-2, 0, 3])
def test_edges_between_integers_are_where_the_distribution_function_puts_them(
    power, divisor, below, above, place
):
    # u on one side of E(z + 1/2) draws z, on the other z + 1, by as many bits as that needs.
    z = place * max(1, int(float(divisor) ** (1 / float(power)) / 8))
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
        asked = []
        monkeypatch.setattr(inverse, "_decide", lambda *args, asked=asked: asked.append(1) or 0)
        generalized_normal(power, divisor_of(power, 2**30), low, 2**31 - low, seeded(11))
        assert len(asked) < 100


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


# Staircase.


def staircase_weight(epsilon: float, width: int, step: int, z: np.ndarray) -> np.ndarray:
    k, rest = np.divmod(np.abs(z), width)
    return np.exp(-epsilon * (k + (rest >= step)))


def staircase_law(epsilon: float, width: int, step: int) -> Distribution:
    reach = width * math.ceil(40 / epsilon) + width
    z = np.arange(-reach, reach + 1)
    return discrete(z, staircase_weight(epsilon, width, step, z))


STAIRS = [
    (Fraction(1), 4, 1),
    (Fraction(1, 2), 5, 2),
    (Fraction(3), 6, 1),
    (Fraction(2), 3, 3),
    (Fraction(1), 1, 1),
    (Fraction(13, 10), 10, 9),
]


def stairs_drawn(path: str, epsilon: Fraction, width: int, step: int, size: int, bits: Source) -> np.ndarray:
    draw = laws._few_stairs if path == "few" else draw_staircase
    return draw(epsilon, width, step, size, bits)


@pytest.mark.full
@pytest.mark.parametrize("path", ["few", "many"])
@pytest.mark.parametrize(("epsilon", "width", "step"), STAIRS, ids=str)
def test_the_staircase_has_the_claimed_epsilon_and_no_other(path, epsilon, width, step):
    n = 25_000 if path == "few" else 40_000
    drawn = stairs_drawn(path, epsilon, width, step, n, seeded(20))
    accepts_only(drawn, lambda factor: staircase_law(factor * float(epsilon), width, step))


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(("epsilon", "width", "step"), STAIRS, ids=str)
def test_a_large_sample_of_the_staircase_counts_zero_once(epsilon, width, step):
    n = 10**6
    drawn = draw_staircase(epsilon, width, step, n, seeded(24))
    assert drawn.shape == (n,)
    assert accepts(drawn, staircase_law(float(epsilon), width, step))
    z = np.arange(-200 * width, 200 * width + 1)
    law = staircase_weight(float(epsilon), width, step, z)
    share = float(1 / law.sum())
    # Five standard errors: false alarm below 1e-6.
    assert abs(np.mean(drawn == 0) - share) < 5 * math.sqrt(share * (1 - share) / n)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("path", ["few", "many"])
def test_wide_stairs_are_flat_within_and_fall_by_epsilon(path):
    width, step, n = 2**40, 2**38, 20_000
    drawn = np.abs(stairs_drawn(path, Fraction(1), width, step, n, seeded(25)))
    k, rest = np.divmod(drawn, width)
    part = 2 * k + (rest >= step)
    sizes = np.where(np.arange(24) % 2 == 0, step, width - step).astype(float)
    law = sizes * np.exp(-((np.arange(24) + 1) // 2))
    assert accepts_counts(np.bincount(part, minlength=24)[:24], law)
    place = np.where(rest < step, rest / step, (rest - step) / (width - step))
    counts = np.bincount((place * 20).astype(int), minlength=20)
    assert accepts_counts(counts, np.full(20, 1 / 20))


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("size", [500, 5000])
@pytest.mark.parametrize(
    ("epsilon", "width", "step"),
    [(Fraction(30), 2**40, 1), (Fraction(1000), 2**52, 2), (Fraction(10**6), 9, 1)],
)
def test_a_large_epsilon_needs_no_more_bits_than_a_small_one(size, epsilon, width, step):
    generator, used = np.random.default_rng(26), []

    def read(n: int) -> bytes:
        used.append(n)
        return generator.bytes(n)

    drawn = draw_staircase(epsilon, width, step, size, Source(read, seeded=True))
    # Even where nearly every second draw is minus zero.
    assert sum(used) < 150 * size + 10_000
    if epsilon >= 1000:
        assert np.abs(drawn).max() < step


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(("epsilon", "width", "step"), STAIRS, ids=str)
def test_exact_decisions_of_the_staircase_are_those_of_double_precision(monkeypatch, epsilon, width, step):
    expected = draw_staircase(epsilon, width, step, 300, source(4))
    monkeypatch.setattr(laws, "MARGIN", 2.0)
    np.testing.assert_array_equal(draw_staircase(epsilon, width, step, 300, source(4)), expected)
    # And of many draws: the bits differ, the law does not.
    monkeypatch.setattr(choice, "MARGIN", 2.0)
    drawn = draw_staircase(epsilon, width, step, 3000, seeded(27))
    assert accepts(drawn, staircase_law(float(epsilon), width, step))


@pytest.mark.parametrize(("epsilon", "width", "step"), STAIRS, ids=str)
def test_the_parts_of_a_step_are_bounded_from_both_sides(epsilon, width, step):
    least, most, least_far, most_far = laws._parts(epsilon, width, step)(200)
    with localcontext(prec=120):
        far = (width - step) * (-decimal(epsilon)).exp() * 2**200
        assert least == most == step * 2**200
        assert least_far <= far <= most_far


def test_uniform_integers_leave_out_what_would_count_twice():
    # 2^64 - 1 is 3 times a third of it, so that the word 2^64 - 1 alone is drawn again.
    tape = Tape(2**64 - 1, 2**64 - 2, 2**64 - 1, 4)
    assert laws._uniform(3, 2, tape.source).tolist() == [1, 2]
    assert tape.data == b"" or laws._uniform(3, 1, tape.source).tolist() == [1]


# All of them.


DRAWS = {
    "truncated_laplace": lambda low, high, bits: truncated_laplace(Fraction(50), low, high, bits),
    "generalized_normal": lambda low, high, bits: generalized_normal(
        Fraction(3, 2), Fraction(500), low, high, bits
    ),
    "staircase": lambda low, high, bits: draw_staircase(Fraction(1), 20, 3, len(low), bits),
}


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("n", [20, 2000, 2**16 + 7])
def test_a_seed_says_everything(name, n):
    low, high = np.full(n, 30), np.full(n, 80)
    first = DRAWS[name](low, high, source(11))
    np.testing.assert_array_equal(DRAWS[name](low, high, source(np.random.default_rng(11))), first)
    assert (DRAWS[name](low, high, source(12)) != first).any()
    empty = np.zeros(0, np.int64)
    assert DRAWS[name](empty, empty, source(11)).shape == (0,)
    assert DRAWS[name](empty, empty, source(11)).dtype == np.int64


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_independent_of_their_neighbours(name):
    n = 400_000
    drawn = DRAWS[name](np.full(n, 30), np.full(n, 80), seeded(28)).astype(float)
    for lag in (1, 2, 3):
        # Five standard errors: false alarm below 1e-6.
        assert abs(np.corrcoef(drawn[lag:], drawn[:-lag])[0, 1]) < 5 / math.sqrt(n)


def test_arguments_are_not_written_to():
    for n in (10, 3000):
        low, high = np.full(n, 3), np.full(n, 5)
        low.setflags(write=False)
        high.setflags(write=False)
        for name in ("truncated_laplace", "generalized_normal"):
            DRAWS[name](low, high, seeded(29))


ONES = np.ones(3, np.int64)


@pytest.mark.parametrize("scale", [0, -1, 2**52 + 1, math.nan, math.inf])
def test_scales_out_of_range_are_refused(scale):
    with pytest.raises(ParameterError, match=r"'scale' must be positive and at most 2\*\*52 \(got "):
        truncated_laplace(scale, ONES, ONES, SILENT)


@pytest.mark.parametrize("power", [0, -1, Fraction(99, 100), 1025, math.nan, math.inf])
def test_powers_out_of_range_are_refused(power):
    with pytest.raises(ParameterError, match="'power' must be between 1 and 1024"):
        generalized_normal(power, Fraction(1), ONES, ONES, SILENT)


@pytest.mark.parametrize(("power", "divisor"), [(1, 2**52 + 1), (2, 2**104 + 2**60), (Fraction(3, 2), 2**79)])
def test_wide_divisors_are_refused(power, divisor):
    with pytest.raises(ParameterError, match=r"'divisor' must be at most 2\*\*52 to the 'power'"):
        generalized_normal(Fraction(power), Fraction(divisor), ONES, ONES, SILENT)


def test_the_widest_divisors_can_be_drawn():
    free = np.full(20, UNBOUNDED)
    for power, divisor in ((1, 2**52), (2, 2**104), (Fraction(3, 2), 2**78)):
        drawn = generalized_normal(Fraction(power), Fraction(divisor), free, free, seeded(30))
        assert 2**49 < np.abs(drawn).mean() < 2**54


@pytest.mark.parametrize("divisor", [0, -1, math.nan, math.inf])
def test_divisors_that_are_not_positive_are_refused(divisor):
    with pytest.raises(ParameterError, match="'divisor' must be positive and finite"):
        generalized_normal(Fraction(2), divisor, ONES, ONES, SILENT)


@pytest.mark.parametrize(
    ("below", "above", "message"),
    [
        (ONES, -ONES, "'above' must not hold negative distances"),
        (-ONES, ONES, "'below' must not hold negative distances"),
        (ONES, ONES[:2], "must have the same shape"),
        (ONES.reshape(1, 3), ONES.reshape(1, 3), r"'below' must have shape \(n,\)"),
        (np.int64(1), np.int64(1), r"'below' must have shape \(n,\)"),
        (ONES.astype(float), ONES, "'below' must hold int64 distances"),
        (ONES, ONES.astype(np.uint64), "'above' must hold int64 distances"),
    ],
)
def test_distances_that_are_none_are_refused(below, above, message):
    for draw in (
        lambda: truncated_laplace(Fraction(1), below, above, SILENT),
        lambda: generalized_normal(Fraction(2), Fraction(1), below, above, SILENT),
    ):
        with pytest.raises(ParameterError, match=message):
            draw()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 4, 1, 1), "'epsilon' must be positive and finite"),
        ((math.nan, 4, 1, 1), "'epsilon' must be positive and finite"),
        ((math.inf, 4, 1, 1), "'epsilon' must be positive and finite"),
        ((1, 4, 0, 1), "'step' must be between 1 and 'width'"),
        ((1, 4, 5, 1), "'step' must be between 1 and 'width'"),
        ((1, 2**52 + 1, 5, 1), "must be at most"),
        ((Fraction(1, 2), 2**52, 5, 1), "must be at most"),
        ((1, 4, 1, -1), "'size' must be a whole number of at least 0"),
    ],
)
def test_stairs_that_are_none_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        draw_staircase(*arguments, SILENT)


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
