"""Speed of bounded noise on a million values, over unbounded Laplace noise on the same values.

A ratio below 1 means that bounded draws take less time. diffprivlib, where it is installed, draws the
same noise in floating point, one number at a time: fewer values are timed and the time scaled up.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable

import numpy as np

from pdprivacy.core.mechanisms import Gaussian, GeneralizedGaussian, Laplace

SIZE = 10**6
ROUNDS = 11
SLOW = 3
ALONE = 20_000
TARGET = 1.5
GRID = 2.0**-40
COARSE = 2.0**-30  # about 2^30 steps of scale, as by default
# Bounds, sensitivity and epsilon: sensitivity/epsilon is 10, 1, 1/10 and 1/1000 of the range, or of 1.
RANGES = {
    "0.1": ((0, 1), 1.0, 0.1),
    "1": ((0, 1), 1.0, 1.0),
    "10": ((0, 1), 2.0**-4, 0.625),
    "1000": ((0, 1), 2.0**-10, 0.9765625),
    "one-sided, 1": ((0, math.inf), 1.0, 1.0),
    "one-sided, 10": ((0, math.inf), 2.0**-4, 0.625),
}
DELTA = 1e-6


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def compare(run: Callable[[], object], reference: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median seconds of ``run`` and median ratio to ``reference``, interleaved."""
    run()
    reference()
    times, ratios = [], []
    for _ in range(rounds):
        times.append(seconds(run))
        ratios.append(times[-1] / seconds(reference))
    return statistics.median(times), statistics.median(ratios)


def line(name: str, range_over_scale: str, duration: float, ratio: float, note: str = "") -> None:
    print(f"{name:<34}{range_over_scale:>15}{1000 * duration:>10.0f}{ratio:>10.2f}  {note}")


def main() -> None:
    # Multiples of the grid, anywhere between the bounds.
    values = np.random.default_rng(0).integers(0, 2**40, SIZE, endpoint=True) * GRID
    header = f"{'mechanism':<34}{'range/scale':>15}{'ms':>10}{'ratio':>10}"
    print(f"{SIZE:,} values, entropy of the operating system, medians of interleaved rounds; the ratio")
    print(f"is to unbounded Laplace, the target {TARGET} for bounded Laplace\n\n{header}")
    for name, (bounds, sensitivity, epsilon) in RANGES.items():
        plain = Laplace(epsilon, sensitivity, GRID)
        for bounding in ("truncated", "clamp"):
            bounded = Laplace(epsilon, sensitivity, GRID, bounds=bounds, bounding=bounding, l0_sensitivity=1)
            duration, ratio = compare(
                lambda bounded=bounded: bounded.sample(values),
                lambda plain=plain: plain.sample(values),
                ROUNDS,
            )
            width = min(bounds[1], 1) / bounded.scale
            share = f"{width:.2g}" if math.isfinite(bounds[1]) else f"inf ({width:.2g})"
            note = "" if ratio <= TARGET else "over the target"
            line(f"Laplace {bounding} ({name})", share, duration, ratio, note)
    print(f"\nWithout a target\n{header}")
    bounds, sensitivity, epsilon = RANGES["10"]
    plain = Laplace(epsilon, sensitivity, COARSE)
    coarse = np.rint(values / COARSE) * COARSE
    for bounding in ("truncated", "clamp"):
        limits = {"grid": COARSE, "bounds": bounds, "bounding": bounding, "l0_sensitivity": 1}
        others = {
            "Gaussian": Gaussian(epsilon, DELTA, sensitivity, **limits),
            "GeneralizedGaussian 1.5": GeneralizedGaussian(epsilon, DELTA, sensitivity, 1.5, **limits),
            "GeneralizedGaussian 3": GeneralizedGaussian(epsilon, DELTA, sensitivity, 3, **limits),
        }
        for name, other in others.items():
            duration, ratio = compare(
                lambda other=other: other.sample(coarse), lambda: plain.sample(coarse), SLOW
            )
            line(f"{name} {bounding}", f"{1 / other.scale:.2g}", duration, ratio)
    print("\nOne value, microseconds (median)")
    for name, (bounds, sensitivity, epsilon) in RANGES.items():
        for bounding in ("truncated", "clamp"):
            noise = Laplace(epsilon, sensitivity, GRID, bounds=bounds, bounding=bounding, l0_sensitivity=1)
            cost = statistics.median(
                seconds(lambda noise=noise: noise.sample(values[0])) for _ in range(1000)
            )
            print(f"{f'Laplace {bounding} ({name})':<34}{1e6 * cost:>10.1f}")
    others_draws(values)


def others_draws(values: np.ndarray) -> None:
    """The same by diffprivlib, or word that it is missing."""
    try:
        from diffprivlib.mechanisms import LaplaceBoundedDomain, LaplaceTruncated
    except ImportError as error:
        print(f"\ndiffprivlib cannot be imported ({error}): nothing to compare with")
        return
    few = values[:ALONE].tolist()
    print(f"\ndiffprivlib, {ALONE:,} values one by one, times scaled to {SIZE:,}; ratio: its time over ours")
    pairs = ((LaplaceBoundedDomain, "truncated"), (LaplaceTruncated, "clamp"))
    for name, (bounds, sensitivity, epsilon) in RANGES.items():
        for theirs, bounding in pairs:
            ours = Laplace(epsilon, sensitivity, GRID, bounds=bounds, bounding=bounding, l0_sensitivity=1)
            limits = {"lower": bounds[0], "upper": bounds[1]}
            try:
                other = theirs(epsilon=epsilon, delta=0.0, sensitivity=sensitivity, **limits)
                duration = seconds(lambda other=other: [other.randomise(value) for value in few])
            except (ValueError, OverflowError) as error:
                print(f"{f'{theirs.__name__} ({name})':<34}refused: {error}")
                continue
            duration *= SIZE / ALONE
            mine = statistics.median(seconds(lambda ours=ours: ours.sample(values)) for _ in range(SLOW))
            line(f"{theirs.__name__} ({name})", "", duration, duration / mine)


if __name__ == "__main__":
    main()
