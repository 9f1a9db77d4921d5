"""Coverage: how often the 95 % intervals that releases state hold the exact statistic, over a grid.

    python -m tests.benchmarks.coverage                       # mechanisms and epsilons take turns
    python -m tests.benchmarks.coverage --every --draws 1000  # every mechanism with every epsilon
    python -m tests.benchmarks.coverage --only std
    python -m tests.benchmarks.coverage --default --every --draws 1000   # releases without ``bounding``

A line of the table is a release with its neighbours: for every bounding the mean coverage over rows, values,
mechanisms and epsilons, and the lowest one in brackets; then where the lowest of all is. Coverage is averaged
over the numbers of a release, so that its simulation error is at most that of one number. ``below``:
combinations more than 3 such errors below 95 %.

With ``--default`` a line is of projected releases: the lowest and the mean coverage, where the lowest is, the
highest coverage of a combination in which no number is all noise, and the largest ratio of the median width
of the intervals of a number to that before the projection.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from concurrent.futures import ProcessPoolExecutor

import pandas as pd

from tests.support.coverage import CASES, default_grid, grid

LOWEST = 0.93
"""The coverage that every combination has by default."""


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per release and neighbours: mean and lowest coverage per bounding, and where the lowest is."""
    lines = []
    for (name, neighbors), group in rows.groupby(["release", "neighbors"], sort=False):
        stated = group.dropna(subset="coverage")
        line = {"release": name, "neighbors": neighbors}
        for bounding in ("none", "project", "clamp", "truncated"):
            values = stated.loc[stated["bounding"] == bounding, "coverage"]
            line[bounding] = f"{values.mean():.3f} ({values.min():.3f})" if len(values) else ""
        lowest = stated.loc[stated["coverage"].idxmin()]
        fields = ("bounding", "rows", "values", "mechanism", "epsilon")
        line["lowest at"] = "{}, {} rows, {}, {}, epsilon {:g}".format(*lowest[list(fields)])
        line["below"] = f"{int(group['short'].sum())} of {len(stated)}"
        lines.append(line)
    return pd.DataFrame(lines)


def table_of_defaults(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per release and neighbours, released by default."""
    lines = []
    for (name, neighbors), group in rows.groupby(["release", "neighbors"], sort=False):
        stated = group.dropna(subset="covered")
        lowest = stated.loc[stated["covered"].idxmin()]
        known = stated.loc[stated["known"] == 1, "covered"]
        where = "{} rows, {}, {}, epsilon {:g}".format(*lowest[["rows", "values", "mechanism", "epsilon"]])
        line = {
            "release": name,
            "neighbors": neighbors,
            "lowest": f"{lowest['covered']:.3f}",
            "lowest at": where,
            "mean": f"{stated['covered'].mean():.3f}",
            "highest, none all noise": f"{known.max():.3f}" if len(known) else "",
            "width": f"{stated['width'].max():.3f}",
            "combinations": len(stated),
        }
        lines.append(line)
    return pd.DataFrame(lines)


def print_table(lines: pd.DataFrame) -> None:
    """Print a table in Markdown."""
    print("| " + " | ".join(lines.columns) + " |")
    print("| --- " * len(lines.columns) + "|")
    for line in lines.itertuples(index=False):
        print("| " + " | ".join(map(str, line)) + " |")


def main() -> None:
    """Print the table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200, help="releases of each combination")
    parser.add_argument("--only", help="releases whose name holds this")
    parser.add_argument("--every", action="store_true", help="every mechanism with every epsilon")
    parser.add_argument("--default", action="store_true", help="releases without ``bounding``")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--rows", help="write every combination to this CSV file")
    options = parser.parse_args()
    started = time.time()
    warnings.simplefilter("ignore")
    chosen = [index for index, case in enumerate(CASES) if (options.only or "") in case.name]
    if options.default:  # `combine` starts from the numbers before the projection
        chosen = [
            index
            for index in chosen
            if "project" in CASES[index].boundings and not CASES[index].name.startswith("combine")
        ]
    draw = default_grid if options.default else grid
    with ProcessPoolExecutor(options.jobs) as pool:
        results = pool.map(draw, chosen, itertools.repeat(options.draws), itertools.repeat(options.every))
        rows = pd.DataFrame(itertools.chain.from_iterable(results))
    if options.rows:
        rows.to_csv(options.rows, index=False)
    print_table(table_of_defaults(rows) if options.default else table(rows))
    below = int((rows["covered"] < LOWEST).sum() if options.default else rows["short"].sum())
    print(
        f"\n{len(rows)} combinations, {options.draws} draws each, {below} below; "
        f"{time.time() - started:.0f} s"
    )


if __name__ == "__main__":
    main()
