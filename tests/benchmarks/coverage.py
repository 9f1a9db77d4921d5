"""Coverage: how often the 95 % intervals that releases state hold the exact statistic, over a grid.

    python -m tests.benchmarks.coverage                       # mechanisms and epsilons take turns
    python -m tests.benchmarks.coverage --every --draws 1000  # every mechanism with every epsilon
    python -m tests.benchmarks.coverage --only std

A line of the table is a release with its neighbours: for every bounding the mean coverage over rows, values,
mechanisms and epsilons, and the lowest one in brackets; then where the lowest of all is. Coverage is averaged
over the numbers of a release, so that its simulation error is at most that of one number. ``below``:
combinations more than 3 such errors below 95 %.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from concurrent.futures import ProcessPoolExecutor

import pandas as pd

from tests.support.coverage import CASES, grid


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


def main() -> None:
    """Print the table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200, help="releases of each combination")
    parser.add_argument("--only", help="releases whose name holds this")
    parser.add_argument("--every", action="store_true", help="every mechanism with every epsilon")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--rows", help="write every combination to this CSV file")
    options = parser.parse_args()
    started = time.time()
    warnings.simplefilter("ignore")
    chosen = [index for index, case in enumerate(CASES) if (options.only or "") in case.name]
    with ProcessPoolExecutor(options.jobs) as pool:
        results = pool.map(grid, chosen, itertools.repeat(options.draws), itertools.repeat(options.every))
        rows = pd.DataFrame(itertools.chain.from_iterable(results))
    if options.rows:
        rows.to_csv(options.rows, index=False)
    lines = table(rows)
    print("| " + " | ".join(lines.columns) + " |")
    print("| --- " * len(lines.columns) + "|")
    for line in lines.itertuples(index=False):
        print("| " + " | ".join(map(str, line)) + " |")
    print(
        f"\n{len(rows)} combinations, {options.draws} draws each, {int(rows['short'].sum())} below; "
        f"{time.time() - started:.0f} s"
    )


if __name__ == "__main__":
    main()
