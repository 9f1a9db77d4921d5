"""Speed of filters and other declared steps against pandas, runs interleaved; run by hand.

    python tests/benchmarks/transform_speed.py [rows]

Ten million rows by default. A ratio is the median over rounds of one run of ours over one run of pandas right
after it, without numexpr; below 1 ours takes less time.
"""

from __future__ import annotations

import gc
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import pandera.pandas as pa

import pdprivacy  # noqa: F401  (puts dp on every frame)
from pdprivacy.core import rows as transform
from pdprivacy.declaration.domain import Column, Domain

MASK = 0.7
WHOLE = 1.5
LARGER = 20
REGIONS = ("midwest", "northeast", "south", "west")
WORDS = ("no", "yes", "maybe")

DOMAIN = Domain(
    (
        Column("age", "integer", lower=18, upper=65),
        Column("income", "float", nullable=True, lower=-4, upper=4),
        Column("region", "category", categories=REGIONS),
        Column("word", "category", categories=WORDS),
        Column("code", "category", categories=WORDS),
        Column("member", "boolean"),
        Column("hours", "integer", nullable=True, lower=0, upper=99),
    )
)
FILTERS = (
    "age >= 40",
    "income > 0.5",
    "region == 'south'",
    "region in ['south', 'west']",
    "word == 'yes'",
    "word != 'no'",
    "code == 'yes'",
    "code in ['yes', 'no']",
    "member",
    "hours < 40",
    "age >= 30 and income < 1 and region != 'west'",
    "30 <= age < 50 and word == 'yes'",
    "age < 25 or income > 2 or code == 'maybe'",
)

missed = 0


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def versus(
    label: str, ours: Callable[[], object], theirs: Callable[[], object], target: float, rounds: int
) -> None:
    """The ratio of two runs, interleaved, after one run of each that is not counted."""
    global missed
    ours()
    theirs()
    gc.collect()
    ratios = [seconds(ours) / seconds(theirs) for _ in range(rounds)]
    middle = statistics.median(ratios)
    met = middle <= target
    missed += not met
    spread = f"({min(ratios):.3f}..{max(ratios):.3f})"
    print(f"{label:<76}{middle:>8.3f}{spread:>18}{target:>8.3g}  {'ok' if met else 'MISSED'}", flush=True)


def records(rows: int) -> pd.DataFrame:
    generator = np.random.default_rng(1)
    words = np.array(WORDS, dtype=object)[generator.integers(0, 3, rows)]
    frame = pd.DataFrame(
        {
            "age": generator.integers(18, 66, rows),
            "income": generator.normal(size=rows).clip(-4, 4),
            "region": pd.Categorical.from_codes(generator.integers(0, 4, rows, dtype=np.int8), list(REGIONS)),
            "word": pd.Series(words, dtype="string[pyarrow]"),
            "code": pd.Series(words, dtype=object),
            "member": generator.random(rows) > 0.5,
            "hours": pd.arrays.IntegerArray(generator.integers(0, 100, rows), generator.random(rows) > 0.95),
        }
    )
    frame.loc[::100, "income"] = np.nan
    return frame


def masks(frame: pd.DataFrame, rounds: int) -> None:
    for text in FILTERS:
        condition = transform.query(DOMAIN, text)
        versus(
            f"mask / DataFrame.query: {text}",
            lambda condition=condition: condition.keep(frame),
            lambda text=text: frame.query(text),
            MASK,
            rounds,
        )


def steps(frame: pd.DataFrame, rounds: int) -> None:
    def line(label: str, step: transform.Transform, theirs: Callable[[], object]) -> None:
        assert step.columns is not None
        versus(label, lambda: step.made(frame), theirs, WHOLE, rounds)

    numbers = frame[["age", "income"]]
    line(
        "clip of two columns / DataFrame.clip",
        transform.clip(DOMAIN, 20, 60, columns=["age"]),
        lambda: numbers[["age"]].clip(20, 60),
    )
    line(
        "assign / DataFrame.assign of the same arithmetic",
        transform.assign(DOMAIN, {"new": "income * 2 + age / 3"}),
        lambda: frame.assign(new=lambda table: table.income * 2 + table.age / 3)["new"],
    )
    edges = [17, 30, 45, 65]
    line("cut / pandas.cut", transform.cut(DOMAIN, "age", edges), lambda: pd.cut(frame["age"], edges))
    line(
        "recode of categories / Series.cat.rename_categories",
        transform.recode(DOMAIN, "word", {"maybe": "unsure"}),
        lambda: frame["word"].replace({"maybe": "unsure"}),
    )
    line(
        "fillna / Series.fillna",
        transform.fillna(DOMAIN, {"income": 0.0}),
        lambda: frame["income"].fillna(0.0),
    )


def whole(rows: int, rounds: int) -> None:
    """``private.dp.query`` on a frame that is protected, with all that this takes."""
    frame = records(rows)[["age", "income", "region", "member"]].fillna({"income": 0.0})
    schema = pa.DataFrameSchema(
        {
            "age": pa.Column(int, pa.Check.in_range(18, 65), metadata={"dp": {}}),
            "income": pa.Column(float, pa.Check.in_range(-4, 4), metadata={"dp": {}}),
            "region": pa.Column(None, pa.Check.isin(REGIONS), metadata={"dp": {}}),
            "member": pa.Column(bool, metadata={"dp": {}}),
        }
    )
    private = frame.dp.protect(schema, epsilon=1)
    for text in ("age >= 40", "region == 'south'", "age >= 30 and income < 1 and region != 'west'"):
        versus(
            f"private.dp.query / DataFrame.query: {text}",
            lambda text=text: private.dp.query(text),
            lambda text=text: frame.query(text),
            WHOLE,
            rounds,
        )


def declarations(rounds: int) -> None:
    """Steps of a declaration ten times as large, which may take ten times as long, not a hundred times."""

    def made(size: int) -> list[Callable[[], object]]:
        labels = tuple(f"l{number}" for number in range(size))
        domain = Domain((Column("c", "category", categories=labels),))
        wide = Domain(tuple(Column(f"v{number}", "float", lower=0, upper=1) for number in range(size // 4)))
        return [
            lambda: transform.query(domain, f"c in {list(labels)}"),
            lambda: transform.query(domain, " or ".join(f"c == {label!r}" for label in labels[:500])),
            lambda: transform.recode(domain, "c", {label: f"{label}x" for label in labels}),
            lambda: transform.assign(wide, {f"n{number}": "v1 + v2" for number in range(200)}),
        ]

    names = ("query, in all labels", "query, 500 conditions", "recode of all labels", "200 new columns")
    for name, large, small in zip(names, made(10_000), made(1_000), strict=True):
        versus(f"{name}: 10,000 labels / 1,000", large, small, LARGER, rounds)


def main() -> None:
    rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**7
    pd.set_option("compute.use_numexpr", False)
    print(
        f"{rows:,} rows, pandas {pd.__version__}, numpy {np.__version__}, Python "
        f"{platform.python_version()}, {os.cpu_count()} processors"
    )
    print(f"{'what':<76}{'median':>8}{'(min..max)':>18}{'target':>8}")
    frame = records(rows)
    masks(frame, 5)
    steps(frame, 5)
    del frame
    whole(rows, 5)
    declarations(5)
    print(f"{missed} missed" if missed else "all within target")


if __name__ == "__main__":
    main()
