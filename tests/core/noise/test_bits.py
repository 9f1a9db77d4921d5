"""Random bits of a source: unpredictable, never repeated, and uniform."""

from __future__ import annotations

import os
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdprivacy.core.noise import Source, discrete_laplace, source
from pdprivacy.errors import ParameterError
from tests.support.statistics import accepts_counts, accepts_share
from tests.support.tape import Tape


def seeded(seed: int) -> Source:
    return source(np.random.default_rng([20, seed]))


@pytest.mark.parametrize("size", [8, 3000])
def test_operating_system_entropy_does_not_repeat(size):
    # Equal draws have probability below 2^-200.
    draws = [discrete_laplace(Fraction(2**40), size, source(None)) for _ in range(2)]
    assert not source(None).seeded
    assert (draws[0] != draws[1]).any()
    bits = source(None)
    assert (
        discrete_laplace(Fraction(2**40), 8, bits).tolist()
        != discrete_laplace(Fraction(2**40), 8, bits).tolist()
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_repeat_its_parent():
    bits = source(None)
    discrete_laplace(Fraction(2**40), 8, bits)
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking a process with threads
        child = os.fork()
    if child == 0:
        os.write(writer, discrete_laplace(Fraction(2**40), 8, bits).tobytes())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        theirs = stream.read()
    os.waitpid(child, 0)
    assert len(theirs) == 64
    assert theirs != discrete_laplace(Fraction(2**40), 8, bits).tobytes()


def test_words_are_the_bytes_of_the_source():
    words = Tape(bytes(range(1, 17))).source.words(2, np.uint64)
    assert words.tobytes() == bytes(range(1, 17))
    assert source(1).words(5, np.uint8).dtype == np.uint8
    assert source(1).words(0, np.uint16).shape == (0,)
    assert len(source(None).bytes(33)) == 33


@given(st.integers(min_value=1, max_value=2**700), st.integers(min_value=0))
def test_below_is_below(n, seed):
    assert 0 <= source(seed).below(n) < n
    assert source(seed).below(1) == 0


def test_below_rejects_what_does_not_fit():
    # Three bits at a time, lowest first: 7, 6, 5 are not below 5, then 4.
    drawn = 7 | 6 << 3 | 5 << 6 | 4 << 9
    assert Tape(drawn.to_bytes(64, "little")).source.below(5) == 4
    # Bits that are left over are used before new ones: 512 = 170·3 + 2.
    tape = Tape(b"\xff" * 64, b"\x00" * 64)
    assert tape.source.below(5) == 3
    assert tape.data == b""


@pytest.mark.full
def test_below_and_bernoulli_are_uniform():
    bits = seeded(6)
    for n in (2, 5, 7, 3 * 2**64 // 2):
        drawn = np.array([bits.below(n) * 10 // n if n > 10 else bits.below(n) for _ in range(20_000)])
        bins = min(n, 10)
        assert accepts_counts(np.bincount(drawn, minlength=bins), np.full(bins, 1 / bins))
    hits = sum(bits.bernoulli(3, 7) for _ in range(20_000))
    assert accepts_share(hits, 20_000, 3 / 7)


def test_bernoulli_is_certain_at_the_ends():
    bits = seeded(7)
    assert all(bits.bernoulli(9, 9) for _ in range(50))
    assert not any(bits.bernoulli(0, 9) for _ in range(50))


@pytest.mark.parametrize(
    ("rng", "name"), [("7", "str"), (1.5, "float"), (True, "bool"), (np.random.RandomState(0), "RandomState")]
)
def test_other_random_states_are_refused(rng, name):
    message = rf"'rng' must be None, an integer seed or a numpy Generator \(got {name}\)\."
    with pytest.raises(ParameterError, match=message):
        source(rng)


def test_impossible_requests_to_a_source_are_refused():
    with pytest.raises(ParameterError, match=r"'rng' must not be a negative seed \(got -1\)\."):
        source(-1)
    with pytest.raises(ParameterError, match=r"'n' must be positive \(got 0\)\."):
        source(0).below(0)
    for ratio in ((-1, 2), (3, 2), (0, 0), (0, -1)):
        with pytest.raises(ParameterError, match=r"'numerator' must be between 0"):
            source(0).bernoulli(*ratio)
