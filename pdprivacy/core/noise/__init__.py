"""The only random numbers of pdprivacy: exact noise on the integers.

Exact means that no rounding shapes a distribution: a draw is decided by
comparing uniform random bits with a probability that is known to any number of
bits, and where the bits drawn so far leave it open, more are drawn. So
floating-point arithmetic leaks nothing (Mironov 2012).

The discrete laws, P(z) ∝ exp(-|z|^power / divisor) on all integers, are drawn
by one of three methods; which one depends on the distribution and on the
number of draws only, so that a seed says everything.

Few draws: the integer samplers of Canonne, Kamath, Steinke (2020).
Many draws on few integers: inversion of a table of the distribution function.
Many draws on many integers: the line is cut into strips of 2^shift integers;
a table draws the strip, random bits draw a place in it, and the place is
accepted with the ratio of its probability to the greatest of its strip.

Between bounds, discrete Laplace noise is folded back, without rejection; the
rounded generalized normal law, with bounds or without, is drawn by inverting
its distribution function; the staircase is a geometric number of whole steps,
an exact coin and a uniform place.

`simulator` is the exception: ordinary floating-point draws for simulations, which
release nothing.
"""

from __future__ import annotations

from pdprivacy.core.noise.bits import SUMMED_NOISE, RandomState, Source, noise_sums, simulator, source
from pdprivacy.core.noise.choice import coins, draw_without_replacement, shuffled_keys, weighted_coins
from pdprivacy.core.noise.discrete import (
    UNBOUNDED,
    discrete_gaussian,
    discrete_laplace,
    staircase,
    truncated_laplace,
)
from pdprivacy.core.noise.inverse import generalized_normal

__all__ = [
    "SUMMED_NOISE",
    "UNBOUNDED",
    "RandomState",
    "Source",
    "coins",
    "discrete_gaussian",
    "discrete_laplace",
    "draw_without_replacement",
    "generalized_normal",
    "noise_sums",
    "shuffled_keys",
    "simulator",
    "source",
    "staircase",
    "truncated_laplace",
    "weighted_coins",
]
