"""Private bounds: the error of a mean within found bounds, beside other algorithms, and the time they take.

    python tests/benchmarks/private_bounds.py [--draws DRAWS] [--only error|widths|speed]

The error is the root mean squared error of the mean of clipped records with Laplace noise, at a total epsilon
of 1, of which the bounds take a part. It is divided by that of the best reach around the median that is fixed
before the records are drawn, at the whole epsilon. The other algorithms are written here from their
documentation: approximate bounds of Google's differential-privacy library (noisy counts in bins of powers of
two, the outermost above a threshold of success probability 1 - 1e-9; if no bin is above it, the largest), and
bounds of Tumult Core (a sparse vector over powers of two until 95 % of the records are inside). Generators
and seeds are fixed.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import pdprivacy
from pdprivacy import Column, Domain

Floats = NDArray[np.float64]
Generator = np.random.Generator

SETTINGS = ((2000, 0.2, 6.5), (20_000, 0.1, 4.5))
"""Numbers of records, the epsilon of the bounds, and the target of the geometric mean."""
LARGEST = {"years of birth": 4.0, "60 % zeros": 2.5}
"""Targets of single distributions."""
SIZE, TIMES = 10**7, 3.0
WHOLE = ("integers, code -99", "years of birth", "0 and 1")


def zeros(share: float) -> Callable[[Generator, int], Floats]:
    return lambda g, n: np.where(g.random(n) < share, 0.0, g.lognormal(7, 1, n))


DISTRIBUTIONS: dict[str, Callable[[Generator, int], Floats]] = {
    "normal": lambda g, n: g.normal(0, 1, n),
    "lognormal 1": lambda g, n: g.lognormal(0, 1, n),
    "lognormal 2": lambda g, n: g.lognormal(0, 2, n),
    "Pareto 1.1": lambda g, n: (1 - g.random(n)) ** (-1 / 1.1),
    "Cauchy": lambda g, n: g.standard_cauchy(n),
    "uniform at 1e6": lambda g, n: 1e6 + g.uniform(0, 1000, n),
    "bimodal, far cluster": lambda g, n: np.where(g.random(n) < 0.9, g.normal(0, 1, n), g.normal(1000, 1, n)),
    "integers, code -99": lambda g, n: np.where(g.random(n) < 0.05, -99.0, g.integers(18, 91, n)),
    "negative": lambda g, n: -g.lognormal(5, 1, n),
    "years of birth": lambda g, n: np.rint(np.clip(g.normal(1970, 18, n), 1920, 2010)),
    "60 % zeros": zeros(0.6),
    "92 % zeros": zeros(0.92),
    "55 % at one value": lambda g, n: np.where(g.random(n) < 0.55, 12.5, g.lognormal(2.5, 1, n)),
    "0 and 1": lambda g, n: (g.random(n) < 0.3).astype(float),
}


def reach(name: str, values: Floats, epsilon: float, seed: int) -> tuple[float, float]:
    """The bounds of this package."""
    column = Column("x", "integer" if name in WHOLE else "float")
    frame = pd.DataFrame({"x": values.astype(np.int64) if name in WHOLE else values})
    private = pdprivacy.protect(frame, Domain((column,)), epsilon=10)
    lower, upper = private.dp.find_bounds("x", epsilon=epsilon, rng=seed).loc["x"]
    return float(lower), float(upper)


def google(name: str, values: Floats, epsilon: float, seed: int) -> tuple[float, float]:
    """Approximate bounds: bins [2**(k - 1), 2**k) of both signs, and Laplace noise of each count."""
    g, low, high = np.random.default_rng(seed), -1022, 1024
    powers = np.clip(np.frexp(values)[1], low, high)
    bins = high - low + 1
    counts = np.zeros(2 * bins)
    np.add.at(counts, np.where(values < 0, bins - 1 - (powers - low), bins + powers - low), 1)
    noisy = counts + g.laplace(0, 1 / epsilon, 2 * bins)
    threshold = -math.log(2 * -math.expm1(math.log1p(-1e-9) / (2 * bins - 1))) / epsilon
    above = np.flatnonzero(noisy > threshold)
    first, last = (above[0], above[-1]) if len(above) else (noisy.argmax(),) * 2

    def end(at: int, outer: bool) -> float:
        power = low + (bins - 1 - at if at < bins else at - bins)
        inner = 0.0 if power == low else 2.0 ** (power - 1)
        size = min(2.0 ** min(power, 1023), 2.0**1023) if outer else inner
        return -size if at < bins else size

    return end(first, outer=first < bins), end(last, outer=last >= bins)


def tumult(name: str, values: Floats, epsilon: float, seed: int) -> tuple[float, float]:
    """Bounds of plus and minus a power of two: the first that holds 95 %, by a sparse vector."""
    g = np.random.default_rng(seed)
    powers = np.arange(0, 64) if name in WHOLE else np.arange(-100, 101)
    inside = (np.abs(values) < 2.0 ** powers[:, np.newaxis]).sum(axis=1)

    def noise(scale: float, size: int) -> Floats:
        success = -math.expm1(-1 / scale)
        return (g.geometric(success, size) - g.geometric(success, size)).astype(np.float64)

    noisy = inside - 0.95 * len(values) + noise(4 / epsilon, len(powers))
    enough = np.flatnonzero(noisy >= noise(2 / epsilon, 1)[0])
    bound = 2.0 ** powers[enough[0] if len(enough) else -1]
    return -bound, bound


ALGORITHMS = {"reach": reach, "google": google, "tumult": tumult}


def squared_error(values: Floats, lower: float, upper: float, epsilon: float) -> float:
    """The mean squared error of the mean: clipping, and noise of the clipped sum and of the count."""
    deviation = (upper - lower) / (len(values) * epsilon)
    return float((np.clip(values, lower, upper).mean() - values.mean()) ** 2 + 2 * deviation**2)


def best_fixed(samples: list[Floats]) -> float:
    """The error of the best reach around the median of all samples, at the whole epsilon."""
    middle = float(np.median(np.concatenate(samples)))
    reaches = 2.0 ** np.arange(-6, 34, 0.5)
    return min(
        math.sqrt(statistics.fmean(squared_error(x, middle - r, middle + r, 1.0) for x in samples))
        for r in reaches
    )


def geometric_mean(ratios: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, ratios)))


def errors(draws: int) -> None:
    for rows, epsilon, target in SETTINGS:
        print(
            f"\n{rows:,} records, bounds at epsilon {epsilon}, {draws} draws: error over the best fixed reach"
        )
        print(f"{'distribution':<24}" + "".join(f"{name:>12}" for name in ALGORITHMS))
        ratios: dict[str, list[float]] = {name: [] for name in ALGORITHMS}
        for number, (name, generate) in enumerate(DISTRIBUTIONS.items()):
            g = np.random.default_rng([2026, rows, number])
            samples = [generate(g, rows) for _ in range(draws)]
            best = best_fixed(samples)
            for algorithm, bounds in ALGORITHMS.items():
                squares = [
                    squared_error(x, *bounds(name, x, epsilon, seed), 1 - epsilon)
                    for seed, x in enumerate(samples)
                ]
                ratios[algorithm].append(math.sqrt(statistics.fmean(squares)) / best)
            own = ratios["reach"][-1]
            note = f"  over {LARGEST[name]}" if own > LARGEST.get(name, math.inf) else ""
            print(f"{name:<24}" + "".join(f"{ratios[each][-1]:>12.3g}" for each in ALGORITHMS) + note)
        means = {name: geometric_mean(each) for name, each in ratios.items()}
        print(f"{'geometric mean':<24}" + "".join(f"{mean:>12.3g}" for mean in means.values()))
        fits = means["reach"] <= min(target, means["google"] / 2, means["tumult"] / 2)
        print(f"target {target}, and at most half of the others: {'met' if fits else 'missed'}")


def widths(draws: int) -> None:
    """The largest width over the range of the records, and the smallest, where n epsilon is 400."""
    print(f"\nwidths over the range of the records, {draws} draws of 2,000 records at epsilon 0.2")
    for number, (name, generate) in enumerate(DISTRIBUTIONS.items()):
        g = np.random.default_rng([7, number])
        ratios = []
        for seed in range(draws):
            values = generate(g, 2000)
            lower, upper = reach(name, values, 0.2, seed)
            ratios.append((upper - lower) / np.ptp(values))
        print(
            f"{name:<24}{min(ratios):>12.2g}{max(ratios):>12.3g}{'  over 100' if max(ratios) > 100 else ''}"
        )


def speed() -> None:
    g = np.random.default_rng(0)
    print(f"\n{SIZE:,} records, over Series.min() + Series.max(); the target is {TIMES}")
    for name, values in (("lognormal", g.lognormal(7, 1, SIZE)), ("integers", g.integers(0, 100, SIZE))):
        column = Column("x", "float" if name == "lognormal" else "integer")
        frame = pd.DataFrame({"x": values})
        private = pdprivacy.protect(frame, Domain((column,)), epsilon=10**6)
        seconds: dict[str, list[float]] = {"found": [], "ends": []}
        for _ in range(5):
            start = time.perf_counter()
            private.dp.find_bounds("x", epsilon=0.1)
            middle = time.perf_counter()
            frame["x"].min() + frame["x"].max()
            seconds["found"].append(middle - start)
            seconds["ends"].append(time.perf_counter() - middle)
        bounds, ends = (statistics.median(each) for each in seconds.values())
        note = "  over" if bounds > TIMES * ends else ""
        print(f"{name:<24}{1000 * bounds:>8.0f} ms{bounds / ends:>8.2f}{note}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--only", choices=("error", "widths", "speed"))
    arguments = parser.parse_args()
    if arguments.only in (None, "error"):
        errors(arguments.draws)
    if arguments.only in (None, "widths"):
        widths(5 * arguments.draws)
    if arguments.only in (None, "speed"):
        speed()


if __name__ == "__main__":
    main()
