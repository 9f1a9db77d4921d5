"""Capabilities: how each verb works on each engine, or the text of its refusal.

``python -m tests.support.capabilities --write`` writes `tests/oracle/capabilities.txt` from the package as
it is; without ``--write`` it says what differs. One line per verb and outcome: its ways and engines.
Ways: "plain", a release in a "plan" or in "plan_releases", in a "batch" and in a "step" of a pipeline; of the
records of a "sample", of what "suppress_outliers" leaves, and of one group of a "partition".
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

import pdprivacy
from pdprivacy import errors
from tests.support import spark
from tests.support.oracle_frames import DATED, DOMAIN, ENGINES, available, frame_of, protected

__all__ = ["FILE", "WAYS", "Cell", "computed", "stored"]

FILE = Path(__file__).parents[1] / "oracle" / "capabilities.txt"
COLUMNS = [engine for engine in ENGINES if engine not in ("nullable", "Arrow-backed")]

Cell = tuple[str, str, str]
"""A verb, a way and an engine."""

COST = {"epsilon": 0.5, "rng": 1}
QUIET = {"progress": False}
VERBS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    **{
        name: (name, arguments, {**COST, **words})
        for name, arguments, words in [
            ("count", (), {}),
            ("sum", ("y",), {}),
            ("mean", ("y",), {}),
            ("var", ("y",), {}),
            ("std", ("y",), {}),
            ("describe", ("y",), {}),
            ("agg", (["mean", "std"], "y"), {}),
            ("pivot_table", ("y", "k", "e"), {}),
            ("nunique", ("s",), {}),
            ("cov", (["y", "m"],), {}),
            ("corr", (["y", "m"],), {}),
            ("ols", ("y", ["m"]), {}),
            ("proportion", ("e",), {}),
            ("pooled_var", ("y",), {"by": "e"}),
            ("pooled_cov", (["y", "m"],), {"by": "e"}),
            ("value_counts", ("s",), {}),
            ("histogram", ("y",), {}),
            ("crosstab", ("g", "s"), {}),
            ("marginals", (["s", "e"],), {}),
            ("mode", ("s",), {}),
            ("top_k", ("m", 2), {}),
            ("quantile", ("y", 0.25), {}),
            ("median", ("y",), {}),
            ("find_bounds", ("y",), {}),
            ("min", ("y",), {}),
            ("max", ("y",), {}),
            ("kmeans", ("y", 2), {"iterations": 1, **QUIET}),
            ("kmedian", ("m", 2), {"steps": 1, **QUIET}),
        ]
    },
    "mean, staircase": ("mean", ("y",), {**COST, "mechanism": "staircase"}),
    "crosstab, staircase": ("crosstab", ("g", "s"), {**COST, "mechanism": "staircase"}),
    "crosstab, discrete Gaussian": (
        "crosstab", ("g", "s"), {**COST, "mechanism": "discrete_gaussian", "delta": 1e-6}),
    **{
        f"groupby.{name}": (f"groupby.{name}", arguments, COST)
        for name, arguments in [
            ("count", ()),
            ("sum", ("y",)),
            ("mean", ("y",)),
            ("var", ("y",)),
            ("std", ("y",)),
            ("proportion", ("e",)),
            ("describe", ("y",)),
            ("agg", (["mean", "std"], "y")),
            ("value_counts", ("s",)),
            ("mode", ("s",)),
            ("quantile", ("y", 0.25)),
            ("median", ("y",)),
            ("size", ()),
            ("min", ("y",)),
            ("max", ("y",)),
            ("nunique", ("s",)),
        ]
    },
    **{
        f"{name}, weights": (name, arguments, {**COST, "weights": "m"})
        for name, arguments in [
            ("sum", ("y",)), ("mean", ("y",)), ("proportion", ("e",)), ("value_counts", ("s",)),
            ("histogram", ("y",)), ("crosstab", ("g", "s")), ("quantile", ("y", 0.25)),
            ("groupby.count", ()), ("groupby.sum", ("y",)), ("groupby.mean", ("y",)), ("median", ("y",)),
            ("groupby.value_counts", ("s",)),
        ]
    },
    **{
        f"{name}, dates": (name, arguments, COST)
        for name, arguments in [
            ("count", ("when",)), ("mean", (["when", "day"],)), ("quantile", ("zoned", 0.25)),
            ("median", ("when",)), ("min", ("day",)), ("max", ("zoned",)), ("sum", ("when",)),
            ("groupby.mean", ("when",)), ("groupby.median", ("zoned",)), ("value_counts", ("when",)),
        ]
    },
    "pivot_table, margins": ("pivot_table", ("y", "k", "e"), {**COST, "margins": True}),
    "crosstab, dropna": ("crosstab", ("g", "s"), {**COST, "dropna": True}),
    "value_counts, periods": ("value_counts", ("when",), {**COST, "freq": "M"}),
    "histogram, periods": ("histogram", ("day",), {**COST, "freq": "Q"}),
    "cut, dates": ("cut", ("when",), {"freq": "M"}),
    "assign, dates": ("assign", (), {"d": "day - when"}),
    "query, dates": ("query", ("when >= '2022-01-01'",), {}),
    "query": ("query", ("y > 0",), {}),
    "clip": ("clip", (0, 1), {"columns": ["y"]}),
    "assign": ("assign", (), {"z": "y * m"}),
    "cut": ("cut", ("y", [-1, 0, 2]), {}),
    "merge": ("merge", (pd.DataFrame({"s": ["no"], "v": [3]}),), {"on": "s"}),
    "per_unit": ("per_unit", ({"v": ("y", "max")},), {}),
    "recode": ("recode", ("s", {"no": "yes"}), {}),
    "fillna": ("fillna", ({"x": 0},), {}),
    "rename": ("rename", ({"x": "z"},), {}),
    "astype": ("astype", ({"m": "float64"},), {}),
    "dropna": ("dropna", (), {}),
    "select": ("select", (["y"],), {}),
    "sample": ("sample", (), {"frac": 0.5}),
    "suppress_outliers": ("suppress_outliers", ("m", 0.5, 0.5), {}),
    "partition": ("partition", ("s",), {"epsilon": 0.5}),
    "plan_releases": ("plan_releases", ([("count", {"epsilon": 0.1})],), {}),
    "plan": ("plan", ("count",), {"epsilon": [0.1], "rows": 24}),
    "split": ("split", (1,), {"into": 2}),
    "remaining": ("remaining", (), {}),
    "quality": ("quality", (), {}),
    "dr_ha": ("dr_ha", ("g", "s"), {"epsilon": 1}),
    "risk_curve": ("risk_curve", ("g", "s"), {"epsilon": [1], **QUIET}),
    "choose_epsilon": ("choose_epsilon", ("g", "s"), QUIET),
    "utility": ("utility", (["g", "s"],), {"order": 1, "epsilon": 1, "draws": 2, "rng": 1, **QUIET}),
    "tradeoff": ("tradeoff", ("g", "s"), {"order": 1, "epsilon": 1, "draws": 2, "rng": 1, **QUIET}),
    "homogeneity": ("homogeneity", ("g", "s"), {}),
    "anonymity": ("anonymity", ("g", "s"), {}),
    "repeated_risk": ("repeated_risk", ([{"by": "g", "sensitive": "s", "epsilon": 1}],), QUIET),
    "compare_sampling": (
        "compare_sampling", ("mean", "y"),
        {"epsilon": 1, "rates": [0.5], "repetitions": 2, "rng": 1, **QUIET},
    ),
    "compare_suppression": (
        "compare_suppression", ("mean", "y"),
        {"epsilon": 1, "spreads": [(0.5, 0.5)], "repetitions": 2, "rng": 1, **QUIET},
    ),
}  # fmt: skip


def _ask(dp: Any, name: str, arguments: tuple[Any, ...], words: dict[str, Any]) -> Any:
    if name.startswith("groupby."):
        dp, name = dp.groupby("k"), name.partition(".")[2]
    if name == "plan" and not callable(dp.plan):  # of a batch it is a method
        dp, (name, *arguments) = dp.plan, arguments
    return getattr(dp, name)(*arguments, **words)


def _planned(dp: Any, name: str, arguments: tuple[Any, ...], words: dict[str, Any]) -> Any:
    more = {key: value for key, value in words.items() if key not in ("rng", "progress")}
    plan = dp.plan
    if name.startswith("groupby."):
        plan, name = plan.groupby("k"), name.partition(".")[2]
    return getattr(plan, name)(*arguments, **{"epsilon": 0.5, "rows": 24, **more})


def _charged_together(dp: Any, name: str, arguments: tuple[Any, ...], words: dict[str, Any]) -> Any:
    return dp.plan_releases([(name, *arguments, {"epsilon": 0.5, **words})]).release()


def _batched(dp: Any, name: str, arguments: tuple[Any, ...], words: dict[str, Any]) -> Any:
    with dp.batch() as batch:
        _ask(batch, name, arguments, words)


def _of_sample(dp: Any, *call: Any) -> Any:
    return _ask(dp.sample(frac=0.5, rng=1).dp, *call)


def _of_suppressed(dp: Any, *call: Any) -> Any:
    return _ask(dp.suppress_outliers("m", 0.5, 0.5, rng=1).dp, *call)


def _of_group(dp: Any, *call: Any) -> Any:
    return _ask(dp.partition("e", epsilon=5)[True].dp, *call)


WAYS: dict[str, Callable[..., Any]] = {
    "plain": _ask,
    "plan": _planned,
    "plan_releases": _charged_together,
    "batch": _batched,
    "step": _ask,
    "sample": _of_sample,
    "suppress_outliers": _of_suppressed,
    "partition": _of_group,
}


def setting_of(verb: str) -> str:
    """The setting whose table a verb is asked of."""
    return "dates" if verb.endswith(", dates") else "add_remove"


def _stepped(frame: Any, schema: Any, folder: str, call: Any) -> None:
    """A step that makes the release, or asks what is no release and then makes one."""
    where = Path(folder)

    @pdprivacy.release_step(
        schema=schema, ledger=where / "ledger.db", name="table", epsilon=100, delta=0.1, to=where / "released"
    )
    def step(private: Any) -> Any:
        result = _ask(private.dp, *call)
        return result if "rng" in call[2] and call[0] not in _CURATED else private.dp.count(epsilon=0.1)

    step(frame, release_id=call[0].replace(".", " "))


_CURATED = ("utility", "tradeoff", "compare_sampling", "compare_suppression")


def _outcome(action: Callable[[], Any]) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            action()
        except (errors.PrivacyError, AttributeError, TypeError) as error:
            return f"{type(error).__name__}: " + " // ".join(str(error).splitlines())
    return "works"


def computed(engine: str, ways: tuple[str, ...] = tuple(WAYS)) -> dict[Cell, str]:
    """The outcome of each verb on an engine, in these ways."""
    outcomes: dict[Cell, str] = {}
    frames = {setting: protected(engine, setting) for setting in map(setting_of, VERBS)}
    with tempfile.TemporaryDirectory() as folder:
        for verb, call in VERBS.items():
            for way in ways:
                if way == "step":
                    path = Path(folder) / verb
                    path.mkdir()
                    frame = frame_of(engine, setting_of(verb))
                    schema = DATED if setting_of(verb) == "dates" else DOMAIN
                    outcomes[verb, way, engine] = _outcome(
                        lambda path=path, call=call, frame=frame, schema=schema: _stepped(
                            frame, schema, str(path), call
                        )
                    )
                else:
                    of = frames[setting_of(verb)].dp
                    outcomes[verb, way, engine] = _outcome(
                        lambda way=way, of=of, call=call: WAYS[way](of, *call)
                    )
                assert folder not in outcomes[verb, way, engine]
    return outcomes


def stored() -> dict[Cell, str]:
    """The outcome of each cell, as the file says."""
    outcomes = {}
    for line in FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else ():
        verb, ways, engines, outcome = line.split(" | ", 3)
        for way in ways.split(", "):
            for engine in engines.split(", "):
                outcomes[verb, way, engine] = outcome
    return outcomes


def _lines(cells: dict[Cell, str]) -> Iterator[str]:
    """One line per verb, outcome and engines that have it in the same ways."""
    for verb in sorted({cell[0] for cell in cells}):
        outcomes: dict[tuple[str, str], list[str]] = {}
        for engine in COLUMNS:
            by_outcome: dict[str, list[str]] = {}
            for way in WAYS:
                if (verb, way, engine) in cells:
                    by_outcome.setdefault(cells[verb, way, engine], []).append(way)
            for outcome, ways in by_outcome.items():
                outcomes.setdefault((", ".join(ways), outcome), []).append(engine)
        for (ways, outcome), engines in sorted(outcomes.items(), key=lambda item: item[0][1] != "works"):
            yield f"{verb} | {ways} | {', '.join(engines)} | {outcome}"


def main(arguments: list[str]) -> int:
    """Compare, or with ``--write`` write; of all engines, or of those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="*", help=", ".join(COLUMNS))
    parser.add_argument("--write", action="store_true", help="write what is found into the file")
    options = parser.parse_args(arguments)
    every: dict[Cell, str] = {}
    if not spark.missing():
        spark.session()
    for engine in options.engines or COLUMNS:
        if available(engine):
            every |= computed(engine)
            print(f"{engine}: {len(every)} cells so far", flush=True)
        else:
            print(f"{engine}: not here")
    expected = stored()
    if options.write:
        verbs = {cell: text for cell, text in expected.items() if cell[0] in VERBS}
        FILE.write_text("\n".join(_lines(verbs | every)) + "\n", encoding="utf-8")
        return 0
    wrong = {cell: text for cell, text in every.items() if expected.get(cell) != text}
    for cell, text in wrong.items():
        print(" | ".join(cell), f"\n  was: {expected.get(cell)}\n  is:  {text}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
