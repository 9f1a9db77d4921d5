"""Truncated and staircase noise: exact laws and decisions; and draws and refusals of all bounded noise."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdprivacy.core.noise import UNBOUNDED, Source, choice, generalized_normal, source, truncated_laplace
from pdprivacy.core.noise import discrete as laws
from pdprivacy.core.noise import staircase as draw_staircase
from pdprivacy.errors import ParameterError
from pdprivacy.exact import SLIP
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


Law = dict[int, float]


def added(*given: Law) -> Law:
    """The sum of laws."""
    total: Law = {}
    for law in given:
        for drawn, share in law.items():
            total[drawn] = total.get(drawn, 0.0) + share
    return total


class OneDraw:
    """A pool whose Laplace draw and whose uniform number are given."""

    def __init__(self, z: int, value: int) -> None:
        self.z, self.value = z, value

    def laplace(self, t: int, s: int) -> int:
        return self.z

    def below(self, n: int) -> int:
        assert n == 2**64
        return self.value


def ones_of_few(monkeypatch, scale: Fraction, below: int, above: int, places: list[int]) -> list[Law]:
    """The law of one draw given each Laplace draw: its side changes at one value of the uniform number."""
    ends = np.array([below]), np.array([above])
    monkeypatch.setattr(laws, "heads", lambda odds, value, _: Fraction(value, 2**64) < share_of(odds))

    def drawn(z: int, value: int) -> int:
        monkeypatch.setattr(laws, "Pool", lambda _: OneDraw(z, value))
        return int(laws._few_between(scale, *ends, SILENT)[0])

    low, high = 0, 2**64 - 1  # of a draw beyond the upper bound, or else beyond the lower one
    outside = above + 1 if above < UNBOUNDED else -below - 1
    first = drawn(outside, low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if drawn(outside, middle) == first else (low, middle)
    if high == 2**64 - 1 or low == 0:  # one side only
        return [{drawn(z, low): 1.0} for z in places]
    share = high / 2**64
    return [added({drawn(z, low): share}, {drawn(z, high): 1 - share}) for z in places]


def share_of(odds: choice.Odds) -> Fraction:
    least, _, other, _ = odds(200)
    return Fraction(least, least + other)


def ones_of_many(monkeypatch, scale: Fraction, below: int, above: int, places: list[int]) -> list[Law]:
    """The law of one draw given each Laplace draw: of both sides of its coin, if it has a coin."""

    def drawn(z: int, side: bool) -> Law:
        shares = []

        def coin(probability, decide, bits):
            share = float(probability[0])
            shares.append(share if side else 1 - share)
            return np.array([side if shares[0] else not side])

        monkeypatch.setattr(laws, "lazy_coins", coin)
        draws = np.array([z])
        laws._fold(scale, draws, np.array([below]), np.array([above]), SILENT)
        return {int(draws[0]): shares[0] if shares else float(side)}

    return [added(drawn(z, side=True), drawn(z, side=False)) for z in places]


SMALL = [
    (scale, below, above)
    for scale in (Fraction(1, 3), Fraction(5, 2))
    for below, above in ((0, 0), (1, 0), (1, 1), (2, 1), (0, 6), (9, 2))
]
OPEN = [(Fraction(3, 2), 0, UNBOUNDED), (Fraction(2), UNBOUNDED, 1), (Fraction(1), 2, UNBOUNDED)]


@pytest.mark.parametrize("draws_of", [ones_of_few, ones_of_many])
@pytest.mark.parametrize(("scale", "below", "above"), SMALL + OPEN, ids=str)
def test_one_draw_has_the_truncated_law_to_twelve_digits(monkeypatch, draws_of, scale, below, above):
    """By its law given each Laplace draw, which double precision weighs."""
    far = math.ceil(30 * scale) + 12
    places = np.arange(-far, far + 1)
    weights = np.exp(-np.abs(places) / float(scale))
    weights /= weights.sum()
    drawn = added(
        *(
            {z: weight * share for z, share in law.items()}
            for law, weight in zip(
                draws_of(monkeypatch, scale, below, above, places.tolist()), weights.tolist(), strict=True
            )
        )
    )
    inside = places[(places >= -below) & (places <= above)]
    law = np.exp(-np.abs(inside) / float(scale))
    assert {z for z, weight in drawn.items() if weight > 0} <= set(inside.tolist())
    actual = np.array([drawn.get(z, 0.0) for z in inside.tolist()])
    assert np.abs(actual - law / law.sum()).max() < 1e-12


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
    from pdprivacy.core.noise import discrete_laplace

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
    decisions = []
    monkeypatch.setattr(laws, "MARGIN", 2.0)
    monkeypatch.setattr(laws, "heads", lambda *args: decisions.append(1) or choice.heads(*args))
    np.testing.assert_array_equal(truncated_laplace(scale, low, high, source(1)), expected)
    assert bool(decisions) == (scale > Fraction(1, 30))  # where nothing lies outside, nothing is asked


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(("scale", "below", "above"), [*TELLING[:3], UNTELLING[1], TELLING[-1]], ids=str)
def test_exact_decisions_of_many_draws_have_the_same_law(monkeypatch, scale, below, above):
    decisions = []
    monkeypatch.setattr(choice, "MARGIN", 2.0)
    monkeypatch.setattr(laws, "heads", lambda *args: decisions.append(1) or choice.heads(*args))
    drawn = laplace_draws("many", scale, below, above, 10_000, seeded(10))
    assert decisions
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

    decisions = []

    def decide(i: int, value: int) -> bool:
        decisions.append((i, value))
        return value < int(Fraction(float(eighths[i])) * 2**64)

    heads = choice.lazy_coins(eighths, decide, Source(read, seeded=True))
    values = [int(w) << 56 | r >> 8 for w, r in zip(words, rest, strict=True)]
    expected = [Fraction(v, 2**64) < Fraction(float(p)) for v, p in zip(values, eighths, strict=True)]
    assert heads.tolist() == expected
    assert sum(taken) == len(data)
    # Ties within 2^-40 were asked for, and those beyond it were not.
    near = [abs(Fraction(v, 2**64) - Fraction(float(p))) for v, p in zip(values, eighths, strict=True)]
    assert [i for i, _ in decisions] == [i for i, gap in enumerate(near) if gap < Fraction(1, 2**40)]
    assert all(value == values[i] for i, value in decisions)


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
    position = np.where(rest < step, rest / step, (rest - step) / (width - step))
    counts = np.bincount((position * 20).astype(int), minlength=20)
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
