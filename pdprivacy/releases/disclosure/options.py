"""The arguments that the curator's functions share: noise, the measure of the risk, and privacy losses."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any, Literal, TypeAlias, TypedDict, cast, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy import risk
from pdprivacy.checks import proportion
from pdprivacy.errors import ParameterError, check_one_of
from pdprivacy.mechanism import Calibration
from pdprivacy.privacy import Confidential, Rational, positive
from pdprivacy.request import Bounding, CalibrationName, MechanismName

__all__ = [
    "DEFAULTS",
    "MARK",
    "MEASURED",
    "NOISE",
    "Alpha",
    "Measured",
    "Noise",
    "Overall",
    "check_average",
    "check_share",
    "epsilon_range",
    "levels_of",
]

Alpha: TypeAlias = float | Sequence[float] | Literal["flat"] | None
Overall: TypeAlias = Literal["max", "sum"]

MARK = "confidential"
MOST_LEVELS = 10_000


class Noise(TypedDict, total=False):
    """The keywords of the noise, which is the noise that `crosstab` adds with the same ones.

    mechanism : "geometric", "laplace", "gaussian", "generalized_gaussian", "staircase" or
        "discrete_gaussian".
    delta, p, calibration, bounding : as there.
    """

    mechanism: MechanismName
    delta: Rational
    p: Rational | None
    calibration: CalibrationName | None
    bounding: Bounding | None


class Measured(Noise, total=False):
    """The other keywords are those of `dr_ha`; ``method`` is "exact" or "published"."""

    measure: risk.Measure
    method: Literal["exact", "published"]
    alpha: Alpha
    sizes: risk.SizeModel
    overall: Overall
    zero_truncated: bool
    partial: bool
    attack: risk.Attack


DEFAULTS: dict[str, Any] = {
    "measure": "local",
    "method": "exact",
    "alpha": None,
    "sizes": "observed",
    "overall": "max",
    "zero_truncated": True,
    "partial": False,
    "attack": "homogeneity",
    "mechanism": "geometric",
    "delta": 0,
    "p": None,
    "calibration": None,
    "bounding": None,
}

NOISE = {name: DEFAULTS[name] for name in Noise.__annotations__}

MEASURED = (
    "measure",
    "method",
    "alpha",
    "sizes",
    "zero_truncated",
    "partial",
    "attack",
    "threshold",
    "draws",
    "postprocess",
    "rng",
    "progress",
)
"""What `pdprivacy.risk.dr_ha` is told."""


def levels_of(epsilon: Any) -> tuple[list[Rational], bool]:
    """The privacy losses, and whether there may be several; what a column holds by mistake is not shown."""
    many = isinstance(epsilon, list | tuple | range | np.ndarray | pd.Index | pd.Series)
    if not many:
        level = unwrapped(epsilon)
        positive(level, "epsilon")
        return [level], False
    levels = list(cast("Sequence[Rational]", epsilon)) if getattr(epsilon, "ndim", 1) == 1 else []
    good = 1 <= len(levels) <= MOST_LEVELS and all(isinstance(level, Number) for level in levels)
    try:
        good = good and all(positive(unwrapped(level), "epsilon") for level in levels)
    except ParameterError:
        good = False
    if not good:
        raise ParameterError(
            "'epsilon' must be a number or a list of numbers, all positive and finite.",
            "epsilon=[0.1, 1, 10].",
        )
    return [unwrapped(level) for level in levels], True


def unwrapped(epsilon: Any) -> Any:
    """A confidential number as a plain one: what is made of it stays with the curator."""
    return float(epsilon) if isinstance(epsilon, Confidential) else epsilon


LEAST, MOST, CLASSIC = 1e-3, 1e2, 0.999
"""Where an epsilon is looked for; the classic calibration of Gaussian noise holds below 1 only."""


def epsilon_range(options: Measured, least: float = LEAST, number: int = 51) -> NDArray[np.float64]:
    """Where nothing else is asked for: evenly on a logarithmic scale."""
    check_one_of("calibration", options["calibration"], (*get_args(Calibration), "published", None))
    return np.geomspace(least, CLASSIC if options["calibration"] == "classic" else MOST, number)


def check_average(average: object) -> None:
    """Refuse what is no average over cells."""
    check_one_of("average", average, get_args(risk.Average))


def check_share(name: str, value: Any, overall: object = "max") -> float:
    """A number strictly between 0 and 1, or ParameterError; a sum of risks may be larger."""
    check_one_of("overall", overall, get_args(Overall))
    if overall == "sum":
        return float(positive(value, name))
    return proportion(value, name, f"{name}=0.4 is 40 %.")
