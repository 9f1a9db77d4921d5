"""Released numbers kept within bounds: two simulation studies, repeated with exact mechanisms.

    python examples/bounding_study.py [--repetitions 500] [--seed 2019] [--out DIR] [--quick]

The studies are those of section 4 of F. Liu (2019), "Statistical properties of sanitized results from
differentially private Laplace mechanism with univariate bounding constraints": a covariance matrix
whose correlation stays within [-1, 1], and four proportions that sum to one. `docs/bounding_study.md`
tells what came out. Tables are printed; DIR (the current folder) gets all numbers as CSV files, and pictures.

Everything is drawn from one seed, so that a run can be repeated. That is for studies of made-up data
like these; whoever knows the seed of a release can subtract its noise.
"""

import argparse
import sys
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from pdprivacy import postprocess, sensitivity
from pdprivacy.core import noise
from pdprivacy.core.mechanisms import Laplace
from pdprivacy.inference import combining as inference

# "published" is truncation as the paper has it. Its scale is too small for the epsilon it is said to
# cost: `loss` is printed beside the results. "corrected" costs what it says, with a larger scale.
MECHANISMS = {
    "published": {"bounding": "truncated", "calibration": "published"},
    "corrected": {"bounding": "truncated"},
    "clamp": {"bounding": "clamp"},
}
LONG = {
    "published": "truncated, published scale",
    "corrected": "truncated, corrected scale",
    "clamp": "boundary inflated (BIT)",
    "original": "without noise",
}
Rng = np.random.Generator
Floats = np.ndarray

# Told apart by people who see fewer colours, too (Okabe and Ito).
COLOURS = {"published": "#D55E00", "corrected": "#0072B2", "clamp": "#009E73", "original": "#555555"}


class Progress:
    """A bar on the terminal; nothing where there is no terminal."""

    def __init__(self, steps: int) -> None:
        self.steps, self.done = steps, 0

    def step(self) -> None:
        """One setting more is done."""
        self.done += 1
        if sys.stderr.isatty():
            filled = 40 * self.done // self.steps
            end = "\n" if self.done == self.steps else ""
            bar = "#" * filled + "." * (40 - filled)
            print(f"\r[{bar}] {self.done}/{self.steps}", end=end, file=sys.stderr, flush=True)


def release(mechanism: Laplace, values: Floats, rng: Rng) -> Floats:
    """Every row of ``values`` released.

    Each row stands for a data set of its own, so neighbours differ in one row only, and in at most
    ``l0_sensitivity`` numbers of it: that all rows are drawn in one call is for speed. Where there is no grid
    on which the values lie exactly, a mechanism rounds at most 1024 numbers in a call.
    """
    if mechanism.exact:
        return mechanism.sample(values, rng)
    parts = np.array_split(values, len(values) // 1000 + 1)
    return np.concatenate([mechanism.sample(part, rng) for part in parts])


# ---------------------------------------------------------------- 1. a covariance matrix

VARIANCES = (1.0, 2.0)
LIMITS = ((-3.0, 3.0), (-4.5, 4.5))  # declared bounds of the two variables
CORRELATIONS = (0.0, -0.4, 0.7)  # the paper's third number; the covariance is sqrt(2) times that
EACH = Fraction(1, 3)  # of epsilon 1, for each of two variances and a covariance
ROWS = (50, 75, 100, 150, 200, 300, 400, 600, 800)
PERCENTILES = (2.5, 25, 75, 97.5)


def largest_variance(n: int, variable: int) -> float:
    """The largest variance of n values within the declared bounds: half of them at either end."""
    lower, upper = LIMITS[variable]
    return n * (upper - lower) ** 2 / (4 * (n - 1))


def variance_mechanism(n: int, variable: int, how: dict[str, str]) -> Laplace:
    moved = sensitivity.var(*LIMITS[variable], n, neighbors="replace_one")
    return Laplace(EACH, moved, bounds=(0, largest_variance(n, variable)), l0_sensitivity=1, **how)


def release_covariances(n: int, covariance: float, limit: Floats, how: dict[str, str], rng: Rng) -> Floats:
    """The covariance, once for each ``limit``, within plus and minus that limit.

    The limits are made of released variances, so they are public by now.
    """
    moved = sensitivity.cov(*LIMITS[0], *LIMITS[1], n, neighbors="replace_one")
    if how["bounding"] == "clamp":  # the noisy number is clamped, which needs no mechanism
        noisy = release(Laplace(EACH, moved), np.full(limit.size, covariance), rng)
        return postprocess.clamp(noisy, -limit, limit)
    # Each repetition has bounds of its own. What truncation costs grows with the range, so a scale
    # that is right for an open side is right for all of them.
    mechanism = Laplace(EACH, moved, bounds=(0, np.inf), l0_sensitivity=1, **how)
    step = float(mechanism.grid)
    half = np.floor(limit / step).astype(np.int64)
    # The noisy limits may miss the covariance, and a truncated law is centred within its bounds.
    centre = np.clip(np.int64(np.rint(covariance / step)), -half, half)
    drawn = mechanism.draw_within(centre + half, half - centre, noise.source(rng))
    return (centre + drawn) * step


def release_matrices(n: int, correlation: float, name: str, repetitions: int, rng: Rng) -> dict[str, Floats]:
    """Variances, covariance and correlation of ``repetitions`` releases of one matrix."""
    how = MECHANISMS[name]
    first, second = (
        release(variance_mechanism(n, index, how), np.full(repetitions, variance), rng)
        for index, variance in enumerate(VARIANCES)
    )
    limit = np.sqrt(first * second)
    covariance = release_covariances(n, correlation * np.sqrt(2), limit, how, rng)
    # a variance of zero, which "clamp" releases often, has no correlation
    ratio = np.divide(covariance, limit, out=np.full(repetitions, np.nan), where=limit > 0)
    return {"S11": first, "S22": second, "S12": covariance, "r": np.clip(ratio, -1, 1)}


def summary(values: Floats) -> dict[str, float]:
    """Mean with its standard error and percentiles, of what is defined."""
    known = values[np.isfinite(values)]
    figures = np.full(2 + len(PERCENTILES), np.nan)
    if known.size:
        error = known.std() / np.sqrt(known.size)
        figures = np.array([known.mean(), error, *np.percentile(known, PERCENTILES)])
    names = ["mean", "error", *(f"{q}%" for q in PERCENTILES)]
    return dict(zip(names, figures, strict=True)) | {"undefined": 1 - known.size / values.size}


def covariance_study(repetitions: int, sizes: tuple[int, ...], rng: Rng, progress: Progress) -> pd.DataFrame:
    rows = []
    for correlation in CORRELATIONS:
        truths = {"S11": 1.0, "S22": 2.0, "S12": correlation * np.sqrt(2), "r": correlation}
        for n in sizes:
            for name in MECHANISMS:
                released = release_matrices(n, correlation, name, repetitions, rng)
                limit = np.sqrt(released["S11"] * released["S22"])
                ends = {"S11": (0, largest_variance(n, 0)), "S22": (0, largest_variance(n, 1)),
                        "S12": (-limit, limit), "r": (-1, 1)}  # fmt: skip
                for statistic, values in released.items():
                    lower, upper = ends[statistic]
                    at_bound = ((values == lower) | (values == upper)).mean()
                    setting = {"correlation": correlation, "statistic": statistic, "n": n, "mechanism": name}
                    rows.append(
                        setting | {"truth": truths[statistic]} | summary(values) | {"at_bound": at_bound}
                    )
            progress.step()
    return pd.DataFrame(rows)


# ---------------------------------------------------------------- 2. four proportions

PROPORTIONS = np.array([0.1, 0.2, 0.3, 0.4])
EPSILONS = (Fraction("0.1"), Fraction("0.5"), Fraction(1))
SIZES = (50, 100, 150, 200, 250, 300, 350, 400, 450, 500)
SETS = 5
TREE = postprocess.Tree(cells=4, branching=2)  # (1, 2), (3, 4); its root, the sum of all, is public
NODES = np.stack([TREE.sums(leaf) for leaf in np.eye(4, dtype=np.int64)])

# What is looked at: each proportion, and sums of two. The other sums of two are one minus these.
TARGETS = {
    "p1": (1, 0, 0, 0), "p2": (0, 1, 0, 0), "p3": (0, 0, 1, 0), "p4": (0, 0, 0, 1),
    "p1+p2": (1, 1, 0, 0), "p1+p3": (1, 0, 1, 0), "p1+p4": (1, 0, 0, 1),
}  # fmt: skip
LEAVES, SUMS = list(TARGETS)[:4], list(TARGETS)[4:]
CELLS = np.array(list(TARGETS.values()), dtype=float)
TRUTHS = CELLS @ PROPORTIONS

# A grid on which counts lie exactly, as does their sensitivity of one.
GRID = 2.0**-24


def count_mechanism(n: int, epsilon: Fraction, name: str, levels: int = 1) -> Laplace:
    """For the counts of disjoint cells, once or at several levels of a tree.

    A proportion here is a count divided by the public n. The paper's sensitivity of 1/n is that of a
    count that moves by one, in one cell of each level, while the divisor stays: a record more or less.
    Where a record may be replaced, or the divisor is the number of records itself, all
    proportions together move by 2/n.
    """
    return Laplace(epsilon, levels, grid=GRID, bounds=(0, n), l0_sensitivity=levels, **MECHANISMS[name])


def rescaled(counts: Floats, n: int, epsilon: Fraction, name: str, rng: Rng) -> Floats:
    noisy = release(count_mechanism(n, epsilon, name), counts, rng)
    return postprocess.rescale(noisy / n, axis=1)


def all_but_one(
    counts: Floats, n: int, epsilon: Fraction, name: str, rng: Rng, last: int = 3, *, bounded: bool = True
) -> Floats:
    order = [cell for cell in range(4) if cell != last] + [last]
    noisy = release(count_mechanism(n, epsilon, name), counts[:, order[:3]], rng)
    complete = np.column_stack([noisy / n, np.full(len(noisy), np.nan)])
    result = np.empty_like(complete)
    result[:, order] = postprocess.all_but_one(complete, axis=1, bounded=bounded)
    return result


def all_but_first(counts: Floats, n: int, epsilon: Fraction, name: str, rng: Rng) -> Floats:
    return all_but_one(counts, n, epsilon, name, rng, last=0)


def universal_histogram(counts: Floats, n: int, epsilon: Fraction, name: str, rng: Rng) -> Floats:
    # a record is in one leaf and in the node above it, hence two levels
    noisy = release(count_mechanism(n, epsilon, name, levels=2), counts @ NODES, rng)
    return np.array([postprocess.hierarchy(TREE, row, total=1) for row in noisy / n])


def other_tree(counts: Floats, n: int, epsilon: Fraction, name: str, rng: Rng) -> Floats:
    """The paper's second way to build the tree: p1 and p4 have one parent, p2 and p3 the other."""
    order = [0, 3, 1, 2]
    result = np.empty(counts.shape)
    result[:, order] = universal_histogram(counts[:, order], n, epsilon, name, rng)
    return result


def noise_first(counts: Floats, n: int, epsilon: Fraction, name: str, rng: Rng) -> Floats:
    """Footnote 4 of the paper: plain noise at all nodes, and no node negative after the tree is consistent.

    The noise is that of "clamp", which has the plain scale. There is no truncated form: to draw again until
    all nodes fit after the last step is a law of its own, whose loss nobody states.
    """
    assert name == "clamp"
    noisy = release(Laplace(epsilon, 2, grid=GRID), counts @ NODES, rng)
    return np.array([postprocess.hierarchy(TREE, row, total=1) for row in noisy / n])


PROCEDURES = {
    "rescaling": rescaled,
    "all but p4": all_but_one,
    "all but p1": all_but_first,
    "hierarchy": universal_histogram,
}


# What the paper did in other ways, beside the procedure that each is compared with.
VARIANTS = {
    "rescaling": rescaled,
    "all but p1": all_but_first,
    "all but p1, as printed": partial(all_but_one, last=0, bounded=False),
    "all but p4": all_but_one,
    "all but p4, as printed": partial(all_but_one, bounded=False),
    "hierarchy": universal_histogram,
    "hierarchy, p1 with p4": other_tree,
    "hierarchy, noise first": noise_first,
}


def noise_variance(procedure: str, estimates: Floats, variance: float) -> Floats:
    """Variance of the noise in each target, by public facts: bounding left out, rescaling to first order.

    ``variance`` is that of the noise of one released proportion, before any bounding.
    """
    members = CELLS.sum(axis=1)
    if procedure == "rescaling":  # q / sum(q) moves by e - q sum(e)
        return variance * (members * (1 - estimates) ** 2 + (4 - members) * estimates**2)
    if procedure == "hierarchy":  # generalised least squares on the tree of equal variances
        return variance * np.broadcast_to([7 / 12] * 4 + [1 / 3, 1, 1], estimates.shape)
    last = 3 if procedure == "all but p4" else 0
    # the proportions that a target is made of, or that are missing to one if it holds the last
    terms = np.where(CELLS[:, last] == 1, 4 - members, members)
    return variance * np.broadcast_to(terms, estimates.shape)


def covers(centre: Floats, variance: Floats) -> Floats:
    """Whether the 95 % intervals of the normal law hold the true proportions."""
    return np.abs(centre - TRUTHS) <= 1.959964 * np.sqrt(variance)


def measures(procedure: str, sets: Floats, n: int, mechanism: Laplace | None) -> pd.DataFrame:
    """Bias, root mean squared error and coverage of estimates of shape (sets, repetitions, targets)."""
    within = np.clip(sets * (1 - sets), 0, None) / n
    if len(sets) > 1:
        pooled = inference.pool(sets, within)
        estimates = pooled.estimate
        low, high = pooled.interval(0.95)
        plain = with_noise = (low <= TRUTHS) & (high >= TRUTHS)  # the noise shows between the sets
    else:
        estimates = sets[0]
        added = 0.0 if mechanism is None else noise_variance(procedure, estimates, (mechanism.std / n) ** 2)
        plain, with_noise = covers(estimates, within[0]), covers(estimates, within[0] + added)
    error = estimates - TRUTHS
    return pd.DataFrame(
        {
            "target": list(TARGETS), "bias": error.mean(axis=0), "rmse": np.sqrt((error**2).mean(axis=0)),
            "error": error.std(axis=0) / np.sqrt(len(error)),
            "coverage": plain.mean(axis=0), "coverage_with_noise": with_noise.mean(axis=0),
        }
    )  # fmt: skip


def settings() -> Iterator[tuple[Fraction, str, int, str]]:
    for epsilon in EPSILONS:
        for procedure in PROCEDURES:
            for sets in (1, SETS):
                for name in MECHANISMS:
                    yield epsilon, procedure, sets, name


def proportion_study(repetitions: int, sizes: tuple[int, ...], rng: Rng, progress: Progress) -> pd.DataFrame:
    """All procedures, on the same data sets of each size."""
    tables = []
    for n in sizes:
        counts = rng.multinomial(n, PROPORTIONS, size=repetitions)
        exact = measures("", (counts @ CELLS.T / n)[np.newaxis], n, None)
        tables.append(exact.assign(n=n, epsilon=np.inf, procedure="none", sets=1, mechanism="original"))
        for epsilon, procedure, sets, name in settings():
            share = epsilon / sets  # the sets are of the same data, so their losses add up
            make = PROCEDURES[procedure]
            released = [make(counts, n, share, name, rng) for _ in range(sets)]
            levels = 2 if procedure == "hierarchy" else 1
            mechanism = count_mechanism(n, share, name, levels)
            table = measures(procedure, np.stack(released) @ CELLS.T, n, mechanism)
            tables.append(
                table.assign(n=n, epsilon=float(epsilon), procedure=procedure, sets=sets, mechanism=name)
            )
            progress.step()
    return pd.concat(tables, ignore_index=True)


def variant_study(repetitions: int, sizes: tuple[int, ...], rng: Rng, progress: Progress) -> pd.DataFrame:
    """One release by each variant, on the same data sets of each size: bias, error, and negative cells."""
    tables = []
    for n in sizes:
        counts = rng.multinomial(n, PROPORTIONS, size=repetitions)
        for epsilon, procedure, name in product(EPSILONS, VARIANTS, MECHANISMS):
            if procedure == "hierarchy, noise first" and name != "clamp":
                continue
            released = VARIANTS[procedure](counts, n, epsilon, name, rng) @ CELLS.T
            errors = released - TRUTHS
            tables.append(
                pd.DataFrame(
                    {
                        "n": n, "epsilon": float(epsilon), "procedure": procedure, "mechanism": name,
                        "target": list(TARGETS), "bias": errors.mean(axis=0),
                        "rmse": np.sqrt((errors**2).mean(axis=0)),
                        "negative": (released < 0).mean(axis=0),
                    }
                )
            )  # fmt: skip
        progress.step()
    return pd.concat(tables, ignore_index=True)


# ---------------------------------------------------------------- 3. tables


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def print_losses() -> None:
    heading("What truncation at the published scale costs")
    costs = {}
    for epsilon in EPSILONS:
        published, corrected = (count_mechanism(500, epsilon, name) for name in ("published", "corrected"))
        costs[float(epsilon)] = (float(published.loss.epsilon), corrected.scale / published.scale)
    table = pd.DataFrame(costs, index=["true loss", "scale that costs the stated one, times as large"]).T
    print(table.rename_axis("stated epsilon").round(3).to_string())


def print_covariances(table: pd.DataFrame) -> None:
    sizes = table["n"].unique()
    selected = table[table["n"].isin(sizes[:: max(len(sizes) // 4, 1)])]
    index = ["statistic", "n", "mechanism"]
    columns = ["truth", "mean", "2.5%", "25%", "75%", "97.5%", "at_bound", "undefined"]
    for correlation in CORRELATIONS:
        heading(f"Variances 1 and 2, correlation {correlation:g}: what was released, epsilon 1 in all")
        part = selected[selected["correlation"] == correlation].sort_values(index, key=_in_order)
        print(part.set_index(index)[columns].round(2).to_string())
    print("\nat_bound: share released exactly at a bound")
    print("undefined: correlations with a variance that was released as zero; the row is of the others")


def _in_order(column: pd.Series) -> pd.Series:
    if column.name == "n":
        return column
    order = ["S11", "S22", "S12", "r", *MECHANISMS]
    return column.map(order.index)


def kind(sets: int) -> str:
    return "one release" if sets == 1 else f"{sets} releases of epsilon/{sets} each, pooled"


def print_proportions(table: pd.DataFrame) -> None:
    selected = table[table["n"].isin((50, 100, 300, 500))]
    for procedure in PROCEDURES:
        for sets in (1, SETS):
            heading(f"Proportions .1 .2 .3 .4 by {procedure}, {kind(sets)}")
            part = selected[(selected["procedure"] == procedure) & (selected["sets"] == sets)]
            print(_wide(part, with_noise=sets == 1).to_string())
    print("\ncover: share of 95 % intervals that hold the true proportion; of one release they are")
    print("made of the released proportion alone, and under +noise the variance of the noise is added")
    heading("Sums of two proportions: root mean squared error, one release")
    part = selected[(selected["sets"] == 1) & selected["target"].isin(SUMS)]
    part = part[part["procedure"].isin(["rescaling", "hierarchy"])]
    wide = part.pivot_table("rmse", ["epsilon", "mechanism", "n"], ["target", "procedure"])
    print(wide.round(3).to_string())


def print_variants(table: pd.DataFrame) -> None:
    """All but one as printed and clamped, and the ways to build and to bound the tree."""
    heading(
        "All but one, as printed (1 less the sum of the others) and clamped, beside rescaling: epsilon 0.1"
    )
    last = {"rescaling": ("p1", "p4"), "all but p1": ("p1",), "all but p1, as printed": ("p1",),
            "all but p4": ("p4",), "all but p4, as printed": ("p4",)}  # fmt: skip
    rows = [(procedure, target) for procedure, targets in last.items() for target in targets]
    part = table[table["epsilon"] == 0.1].set_index(["procedure", "target"]).loc[rows].reset_index()
    index = ["target", "procedure", "n"]
    wide = part.pivot_table(["bias", "rmse", "negative"], index, "mechanism", sort=False)
    print(wide[["bias", "rmse", "negative"]].round(3).to_string())
    heading(
        "Hierarchies: root mean squared error of p1 with p2 and of p1 with p4 under one node; noise first"
    )
    part = table[table["procedure"].str.startswith("hierarchy")]
    targets = [*LEAVES, *SUMS]
    wide = part.pivot_table("rmse", ["epsilon", "mechanism", "n", "procedure"], "target", sort=False)
    print(wide[targets].sort_index(level="epsilon", sort_remaining=False).round(3).to_string())


def _wide(part: pd.DataFrame, *, with_noise: bool) -> pd.DataFrame:
    """One row per epsilon, mechanism and n; measures of some targets side by side."""
    measured = ["bias", "rmse", "coverage", "coverage_with_noise"]
    cells = part.pivot_table(measured, ["epsilon", "mechanism", "n"], "target", sort=False)
    columns = {("bias", name): cells["bias"][name] for name in ("p1", "p4")}
    columns |= {("rmse", name): cells["rmse"][name] for name in ("p1", "p4")}
    columns |= {("cover", name): cells["coverage"][name] for name in LEAVES}
    if with_noise:
        columns |= {("+noise", name): cells["coverage_with_noise"][name] for name in LEAVES}
    wide = pd.DataFrame(columns)
    return wide.sort_index(level="epsilon", sort_remaining=False).round(3)


# ---------------------------------------------------------------- 4. pictures


def finish(figure: plt.Figure, axes: np.ndarray, path: Path) -> None:
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color="0.92")
        ax.set_axisbelow(True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw_covariances(table: pd.DataFrame, correlation: float, path: Path) -> None:
    """Rows: statistics. Columns: mechanisms. Mean, middle half and 95 % of the released numbers."""
    table = table[table["correlation"] == correlation]
    statistics = ["S11", "S22", "S12", "r"]
    figure, axes = plt.subplots(4, 3, figsize=(10, 10.5), sharex=True, sharey="row", layout="constrained")
    for row, statistic in zip(axes, statistics, strict=True):
        for ax, name in zip(row, MECHANISMS, strict=True):
            part = table[(table["statistic"] == statistic) & (table["mechanism"] == name)]
            n, colour = part["n"], COLOURS[name]
            ax.fill_between(n, part["2.5%"], part["97.5%"], color=colour, alpha=0.15, linewidth=0)
            ax.fill_between(n, part["25%"], part["75%"], color=colour, alpha=0.35, linewidth=0)
            ax.plot(n, part["mean"], color=colour, marker="o", markersize=3.5, linewidth=1.8)
            ax.axhline(part["truth"].iloc[0], color="black", linestyle="--", linewidth=1.2)
            ax.set_xscale("log")
            ax.set_xticks([50, 100, 200, 400, 800], labels=["50", "100", "200", "400", "800"])
            ax.minorticks_off()
        row[0].set_ylabel({"S11": "variance $S_{11}$", "S22": "variance $S_{22}$",
                           "S12": "covariance $S_{12}$", "r": "correlation $r$"}[statistic])  # fmt: skip
    for ax, name in zip(axes[0], MECHANISMS, strict=True):
        ax.set_title(LONG[name], loc="left", fontsize=11, color=COLOURS[name])
    for ax in axes[-1]:
        ax.set_xlabel("number of rows n")
    figure.suptitle(
        f"Released covariance matrix, correlation {correlation:g}, epsilon 1 in all\n"
        "line: mean; bands: middle 50 % and 95 %; dashed: true value",
        x=0.01, ha="left", fontsize=11,
    )  # fmt: skip
    finish(figure, axes, path)


def draw_proportions(table: pd.DataFrame, procedure: str, sets: int, path: Path) -> None:
    """Rows: bias, error and coverage. Columns: epsilon. The smallest and the largest proportion."""
    rows = {"bias": "bias", "rmse": "root mean squared error", "coverage": "coverage, 95 % interval"}
    if sets == 1:
        rows["coverage"] = "coverage, noise ignored"
        rows["coverage_with_noise"] = "coverage, noise variance added"
    styles = {"p1": ("-", "o"), "p4": ("--", "s")}
    size = (10, 2.6 * len(rows) + 1)
    figure, axes = plt.subplots(len(rows), 3, figsize=size, sharex=True, sharey="row", layout="constrained")
    chosen = table[(table["procedure"] == procedure) & (table["sets"] == sets)]
    for row, (measure, label) in zip(axes, rows.items(), strict=True):
        for ax, epsilon in zip(row, EPSILONS, strict=True):
            for name in ("original", *MECHANISMS):
                part = table[table["mechanism"] == name] if name == "original" else chosen[
                    (chosen["mechanism"] == name) & (chosen["epsilon"] == float(epsilon))]  # fmt: skip
                for target, (line, marker) in styles.items():
                    curve = part[part["target"] == target]
                    ax.plot(curve["n"], curve[measure], linestyle=line, marker=marker, markersize=3.5,
                            color=COLOURS[name], linewidth=1.6, label=f"{LONG[name]}, {target}")  # fmt: skip
            if measure.startswith("coverage"):
                ax.axhline(0.95, color="black", linewidth=0.8, linestyle=":")
                ax.set_ylim(0, 1.02)
        row[0].set_ylabel(label)
    for ax, epsilon in zip(axes[0], EPSILONS, strict=True):
        ax.set_title(f"epsilon {float(epsilon):g}", loc="left", fontsize=11)
    for ax in axes[-1]:
        ax.set_xlabel("number of rows n")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    title = f"Proportions p1 = 0.1 and p4 = 0.4 by {procedure}, {kind(sets)}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    finish(figure, axes, path)


def draw_sums(table: pd.DataFrame, path: Path) -> None:
    """Root mean squared error of sums of two proportions. Rows: mechanisms. Columns: epsilon."""
    lines = {"rescaling": ("#0072B2", "-"), "hierarchy": ("#E69F00", "--")}
    markers = {"p1+p2": "o", "p1+p3": "^", "p1+p4": "s"}
    figure, axes = plt.subplots(3, 3, figsize=(10, 9), sharex=True, sharey="col", layout="constrained")
    for row, name in zip(axes, MECHANISMS, strict=True):
        for ax, epsilon in zip(row, EPSILONS, strict=True):
            part = table[
                (table["mechanism"] == name) & (table["epsilon"] == float(epsilon)) & (table["sets"] == 1)
            ]
            for procedure, (colour, line) in lines.items():
                for target, marker in markers.items():
                    curve = part[(part["procedure"] == procedure) & (part["target"] == target)]
                    ax.plot(curve["n"], curve["rmse"], color=colour, linestyle=line, marker=marker,
                            markersize=4, linewidth=1.5, label=f"{procedure}, {target}")  # fmt: skip
        row[0].set_ylabel(LONG[name] + "\nroot mean squared error")
    for ax, epsilon in zip(axes[0], EPSILONS, strict=True):
        ax.set_title(f"epsilon {float(epsilon):g}", loc="left", fontsize=11)
        ax.set_ylim(bottom=0)
    for ax in axes[-1]:
        ax.set_xlabel("number of rows n")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=9, frameon=False)
    title = "Sums of two proportions; p1+p2 has a node of its own in the tree"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    finish(figure, axes, path)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Simulation studies of bounded releases.")
    parser.add_argument("--repetitions", type=int, help="of each setting (500; 40 with --quick)")
    parser.add_argument("--seed", type=int, default=2019, help="of all data and noise, to repeat a run")
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the CSV files and pictures")
    parser.add_argument("--quick", action="store_true", help="two sizes and few repetitions")
    options = parser.parse_args(arguments)
    repetitions = options.repetitions or (40 if options.quick else 500)
    if repetitions < 2:
        parser.error("--repetitions must be at least 2")
    rows, sizes = (ROWS[::8], SIZES[::9]) if options.quick else (ROWS, SIZES)
    options.out.mkdir(parents=True, exist_ok=True)

    rng = np.random.default_rng(options.seed)
    few = sizes[:1] + sizes[-1:]
    progress = Progress(len(CORRELATIONS) * len(rows) + len(list(settings())) * len(sizes) + len(few))
    covariances = covariance_study(repetitions, rows, rng, progress)
    proportions = proportion_study(repetitions, sizes, rng, progress)
    variants = variant_study(repetitions, few, rng, progress)

    print(f"{repetitions} repetitions of each setting, seed {options.seed}.")
    print_losses()
    print_covariances(covariances)
    print_proportions(proportions)
    print_variants(variants)

    paths = []
    tables = {"covariances": covariances, "proportions": proportions, "variants": variants}
    for name, table in tables.items():
        paths.append(options.out / f"bounding_study_{name}.csv")
        table.to_csv(paths[-1], index=False)
    for correlation in CORRELATIONS:
        paths.append(options.out / f"bounding_study_correlation_{correlation:g}.png")
        draw_covariances(covariances, correlation, paths[-1])
    for procedure in PROCEDURES:
        for sets in (1, SETS):
            name = procedure.replace(" ", "_") + ("" if sets == 1 else "_pooled")
            paths.append(options.out / f"bounding_study_{name}.png")
            draw_proportions(proportions, procedure, sets, paths[-1])
    paths.append(options.out / "bounding_study_sums.png")
    draw_sums(proportions, paths[-1])
    heading("Files")
    for path in paths:
        print(path)


if __name__ == "__main__":
    main()
