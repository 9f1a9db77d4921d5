"""Neighbouring tables at random, with cells that are hard to read."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import pdprivacy
from pdprivacy import errors
from tests.support import oracle_cases as cases
from tests.support.oracle_frames import DOMAIN, ENGINES, RECORDS

__all__ = ["RELEASES", "SETTINGS", "pair", "protected"]

Records = dict[str, list[Any]]
NAN, INF = float("nan"), float("inf")

SETTINGS: dict[str, dict[str, Any]] = {
    "add_remove": {},
    "replace_one": {"neighbors": "replace_one"},
    "public_rows": {"public_rows": 4},
    "unit": {"unit": "p", "max_rows": 2},
    "unit, replace_one": {"unit": "p", "max_rows": 2, "neighbors": "replace_one"},
    "clip": {"on_invalid": "clip"},
    "clip, replace_one": {"on_invalid": "clip", "neighbors": "replace_one"},
    "drop": {"on_invalid": "drop"},
    "drop, replace_one": {"on_invalid": "drop", "neighbors": "replace_one"},
}

FITTING: Records = {
    "x": [None, NAN, -3.0, 10.0, -0.0, 5e-324, 3.3, 9.999999999, 10.0, -3.0],
    "y": [-1.0, 1.5, 0.0, 0.3, -0.0, 0.1 + 0.2, 1.5, -1.0],
    "n": [None, 1, 9, 4, 9, 1],
    "m": [0, 5, 2, 5, 0],
    "g": [None, "a", "b", "a"],
    "k": ["u", "v", "w", "u"],
    "h": [None, True, False],
    "e": [True, False],
    "s": ["yes", "no"],
}
"""Cells that meet the declaration: nulls, both bounds, zeros of both signs, numbers between two steps."""
BEYOND: Records = {
    "x": [99.0, -99.0, 1e300, -1e300],
    "y": [2.0, -7.5, 1e300],
    "n": [12, -4, 2**53],
    "m": [-1, 6, 10**9],
}
"""Numbers out of bounds, where these are clipped; records that hold one are dropped elsewhere."""
WILD: Records = {"x": [INF, -INF], "y": [INF, NAN, -INF], "g": ["unseen", ""], "s": ["never"]}
"""Cells that meet nothing, where their records are dropped."""


def _record(draw: random.Random, setting: str, unit: str) -> dict[str, Any]:
    record = {}
    for name, cells in FITTING.items():
        pool = list(cells)
        if setting.startswith(("clip", "drop")) and name in BEYOND:
            pool += BEYOND[name]
        if setting.startswith("drop") and name in WILD and draw.random() < 0.3:
            pool += WILD[name]
        record[name] = draw.choice(pool)
    record["p"] = unit
    return record


def pair(seed: int, setting: str) -> tuple[Records, Records]:
    """Two neighbouring tables of a setting; each may be the larger one.

    No unit but the one that changes has more records than are kept: which of them are is drawn anew for each
    frame, and two frames of one draw are compared.
    """
    draw = random.Random(seed)
    rows = draw.choice([0, 1, 1, 2, 5, 12] if setting != "public_rows" else [4, 5, 12])
    table = [_record(draw, setting, f"p{position // 2}") for position in draw.sample(range(rows), rows)]
    if draw.random() < 0.3:  # duplicates
        table = [{**table[0], "p": record["p"]} for record in table]
    other = [dict(record) for record in table]
    position = draw.randrange(len(table) + 1)
    if setting.startswith("unit"):
        more = [_record(draw, setting, "own") for _ in range(draw.choice([1, 2, 3]))]
        other[position:position] = more
        if "replace_one" in setting:
            own = [_record(draw, setting, "own") for _ in range(draw.choice([1, 2, 3]))]
            table[position:position] = own
    elif "replace_one" in setting:
        other.insert(position, _record(draw, setting, "one more"))
        table.insert(position, _record(draw, setting, "one more"))
    else:
        other.insert(position, _record(draw, setting, "one more"))
    both = [{name: [record[name] for record in each] for name in RECORDS} for each in (table, other)]
    draw.shuffle(both)
    return both[0], both[1]


def protected(engine: str, setting: str, records: Records) -> Any:
    """The frame of these records, protected as the setting says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.DeclarationWarning)
        return pdprivacy.protect(
            ENGINES[engine](records), DOMAIN, epsilon=10**12, delta=0.9, **SETTINGS[setting]
        )


def _specs() -> dict[str, Callable[[Any], Any]]:
    specs: dict[str, Callable[[Any], Any]] = {}
    families = [
        (cases.MOMENTS, {**cases.NOISE, **cases.PARTICULAR}),
        (cases.TABLES, {**cases.LAPLACE, **cases.NOISE, **cases.PARTICULAR}),
        (cases.GROUPS, {**cases.NOISE, **cases.PARTICULAR}),
        (cases.SELECTIONS, cases.CHOICES),
        (cases.CLUSTERINGS, {}),
        (cases.WEIGHTED, {**cases.NOISE, **cases.PARTICULAR}),
        (cases.WEIGHTED_SELECTIONS, {"two releases": {"releases": 2}}),
        (cases.INTERVALS_OF_RANKS, {"two releases": {"releases": 2}}),
    ]
    for verbs, noises in families:
        for name, (make, args, words) in verbs.items():
            specs[name] = make(*args, **words)
            if "mechanism" not in words and not name.startswith(("kme", "marginals")):
                for noise, more in noises.items():
                    specs[f"{name}, {noise}"] = make(*args, **{**words, **more})
    for name, step in cases.STEPS.items():
        specs[f"step {name}"] = cases.stepped(step)
    specs["batch"] = cases.together
    specs["partition"] = cases.parted("k", cases.COUNT, cases.MEAN, cases.verb("median", "x"))
    return specs


RELEASES = _specs()
"""Every release with every noise, steps before releases, batches and partitions."""
