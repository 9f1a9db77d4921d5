"""Speed of exact integer noise against the floating-point samplers of numpy, runs interleaved.

A ratio below 1 means that the exact draws take less time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from pdprivacy.core.noise import discrete_gaussian, discrete_laplace, source

SIZE = 10**6
ROUNDS = 21
SCALES = (Fraction(1), Fraction(5), Fraction(20), Fraction(100), Fraction(1000))
GRID_SCALES = (2**20 + Fraction(1, 3), Fraction(2**38), Fraction(2**52))


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main() -> None:
    entropy = source(None)
    generator = np.random.default_rng(0)
    samplers = {
        "laplace": (lambda scale, size: discrete_laplace(scale, size, entropy), generator.laplace),
        "gaussian": (lambda scale, size: discrete_gaussian(scale * scale, size, entropy), generator.normal),
    }
    print(f"{SIZE:,} draws from operating-system entropy, median of {ROUNDS} interleaved rounds")
    print(f"{'distribution':<14}{'scale':>16}{'million/s':>12}{'ratio':>8}{'first call ms':>16}")
    for name, (exact, rounded) in samplers.items():
        for scale in SCALES + GRID_SCALES:
            first = seconds(lambda exact=exact, scale=scale: exact(scale, 2000))
            times, ratios = [], []
            for _ in range(ROUNDS):
                times.append(seconds(lambda exact=exact, scale=scale: exact(scale, SIZE)))
                ratios.append(times[-1] / seconds(lambda rounded=rounded: rounded(size=SIZE)))
            rate = SIZE / statistics.median(times) / 1e6
            print(
                f"{name:<14}{float(scale):>16.7g}{rate:>12.0f}"
                f"{statistics.median(ratios):>8.2f}{1000 * first:>16.1f}"
            )
    print("\nOne call, microseconds (median)")
    print(f"{'distribution':<14}{'scale':>16}{'1 draw':>12}{'6 draws':>12}")
    for name, (exact, _) in samplers.items():
        for scale in SCALES + GRID_SCALES:
            cost = [
                1e6
                * statistics.median(
                    seconds(lambda exact=exact, scale=scale, size=size: exact(scale, size))
                    for _ in range(2000)
                )
                for size in (1, 6)
            ]
            print(f"{name:<14}{float(scale):>16.7g}{cost[0]:>12.1f}{cost[1]:>12.1f}")


if __name__ == "__main__":
    main()
