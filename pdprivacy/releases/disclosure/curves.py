"""The disclosure risk of a table against epsilon, and the epsilon that keeps it low."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Unpack, get_args

import numpy as np
import pandas as pd

from pdprivacy import risk
from pdprivacy.domain import Column
from pdprivacy.errors import ParameterError, check_one_of
from pdprivacy.metadata import KEY
from pdprivacy.noise import RandomState, simulator
from pdprivacy.privacy import Confidential, Rational, positive
from pdprivacy.protection import Protected
from pdprivacy.release.spec import spelled
from pdprivacy.releases.columns import Labels, cell_index
from pdprivacy.releases.curator import marked
from pdprivacy.releases.disclosure.asked import TableRisk
from pdprivacy.releases.disclosure.options import (
    DEFAULTS,
    MARK,
    NOISE,
    Alpha,
    Measured,
    Noise,
    Overall,
    check_average,
    check_share,
    epsilon_range,
    levels_of,
)

__all__ = ["choose_epsilon", "dr_ha", "risk_curve"]


@marked
@spelled(Noise, NOISE)
def dr_ha(
    protected: Protected,
    by: Labels,
    sensitive: Labels,
    epsilon: Rational | Sequence[Rational],
    measure: risk.Measure = "local",
    average: risk.Average | None = "cells",
    method: risk.Method = "exact",
    alpha: Alpha = None,
    sizes: risk.SizeModel = "observed",
    *,
    overall: Overall = "max",
    zero_truncated: bool = True,
    partial: bool = False,
    attack: risk.Attack = "homogeneity",
    threshold: float = 0.5,
    draws: int = 1000,
    postprocess: Callable[[Any], Any] | None = None,
    rng: RandomState = None,
    progress: bool | None = None,
    **noise: Unpack[Noise],
) -> Any:
    """CONFIDENTIAL, for the curator: the homogeneity-attack disclosure risk of a table with noise.

    The probability that a cell of the quasi-identifiers ``by`` shows one single label of ``sensitive``
    after noise, and that some of its records have it. Nothing is charged.

    measure : "local", of the counts as they are; "expected", over multinomial counts of the cell's
        size; "shrinkage", over Dirichlet(``alpha``) proportions too (None: fitted); "marginal" and
        "marginal_shrinkage", over the ``sizes`` of cells too ("observed", "poisson" or "negative_binomial",
        given one record or more with ``zero_truncated``).
    average : over non-empty cells ("cells") or their records ("records"); None: the risk of each cell.
    method : "exact"; "published", the source's closed forms; "monte_carlo", by ``draws`` tables of one
        sensitive column (``postprocess``: what is done to each noisy table, cells by labels; ``rng``: a seed
        or generator).
    overall : of several sensitive columns, per cell the largest risk ("max") or the sum of risks ("sum").
    partial, attack, threshold : as in `pdprivacy.risk.dr_ha`, which does the arithmetic.
    progress : a bar, which needs tqdm; None: where it is long, and somebody looks
        (``pdprivacy.show.progress``).

    Returns a float for one epsilon, a Series indexed by epsilon for several; with ``average=None`` a
    Series over the cells (NaN where empty), or a DataFrame, cells by epsilon. "monte_carlo": a DataFrame
    with the columns "risk" and "standard_error".

    Source: Liu, Zhao (2023), definitions 6 to 11 and section 4.3, exact for heterogeneous cells too.

    Raises ParameterError, DeclarationError, TableTooLargeError (above 1e8 cells).

    >>> import pandas as pd
    >>> from pdprivacy import Column, Domain
    >>> sex = Column("sex", "category", categories=("f", "m"), role="quasi_identifier")
    >>> domain = Domain((sex, Column("ill", "boolean", role="sensitive")))
    >>> frame = pd.DataFrame({"sex": ["f", "f", "m"], "ill": [True, False, True]})
    >>> private = frame.dp.protect(domain, epsilon=1)
    >>> private.dp.dr_ha("sex", "ill", epsilon=[0.1, 1, 10]).round(2)
    epsilon
    0.1     0.39
    1.0     0.46
    10.0    0.50
    Name: dr_ha (confidential), dtype: float64
    """
    levels, many = levels_of(epsilon)
    check_one_of("average", average, ("cells", "records", None))
    options = {
        **noise,
        "measure": measure,
        "method": method,
        "alpha": alpha,
        "sizes": sizes,
        "overall": overall,
        "zero_truncated": zero_truncated,
        "partial": partial,
        "attack": attack,
        "threshold": threshold,
    }
    check_one_of("method", method, get_args(risk.Method))
    if method == "monte_carlo":
        options |= {"draws": draws, "postprocess": postprocess, "rng": simulator(rng), "progress": progress}
    elif postprocess is not None:
        raise ParameterError("'postprocess' needs simulation.", 'method="monte_carlo".')
    asked = TableRisk.of(protected, by, sensitive, "dr_ha", options)
    noises = [asked.noise.at(level) for level in levels]
    index: pd.Index[Any] = pd.Index([float(positive(level, "epsilon")) for level in levels], name="epsilon")
    if asked.simulated:
        found = asked.simulated_risks(noises, average)
        return _simulated(found, asked.by, index, many=many, each_cell=average is None)
    risks = asked.count().risks(noises, average, progress)
    name = f"dr_ha ({MARK})"
    if average is not None:
        return pd.Series(risks, index=index, name=name) if many else Confidential(risks[0])
    cells = cell_index(asked.by, "dr_ha")
    if not many:
        return pd.Series(risks[0], index=cells, name=name)
    return pd.DataFrame(risks.T, index=cells, columns=index.rename(f"epsilon ({MARK})"))


def _simulated(
    found: risk.Simulated, by: Sequence[Column], index: pd.Index[Any], *, many: bool, each_cell: bool
) -> pd.DataFrame:
    pieces = dict(zip(("risk", "standard_error"), map(np.asarray, found), strict=True))
    if not each_cell:
        frame = pd.DataFrame(pieces, index=index)
    else:
        cells = cell_index(by, "dr_ha")
        if not many:
            frame = pd.DataFrame({name: values[0] for name, values in pieces.items()}, index=cells)
        else:
            frames = {
                name: pd.DataFrame(values.T, index=cells, columns=index) for name, values in pieces.items()
            }
            return pd.concat(frames, axis=1, names=[f"dr_ha ({MARK})", "epsilon"])
    frame.columns.name = f"dr_ha ({MARK})"
    return frame


@spelled(Measured, DEFAULTS)
def risk_curve(
    protected: Protected,
    by: Labels,
    sensitive: Labels,
    epsilon: Rational | Sequence[Rational] | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[Measured],
) -> pd.DataFrame:
    """CONFIDENTIAL, for the curator: the disclosure risk against epsilon, with its limits.

    ``epsilon``: by default 51 numbers from 0.001 to 100 (0.999 for the classic calibration), evenly on a
    logarithmic scale. ``progress``: a bar, which needs tqdm (None: where it is long).

    Returns a DataFrame indexed by epsilon in ascending order, with both averages as columns, over "cells"
    and over "records"; the first row, 0.0, is the limit of ever more noise, the last, inf, that of none: for
    the local risk the share of homogeneous cells. ``curve.dp.plot()`` draws it.

    Source: Liu, Zhao (2023), sections 4 and 5.

    Raises as `dr_ha`.

    >>> import pandas as pd
    >>> from pdprivacy import Column, Domain
    >>> sex = Column("sex", "category", categories=("f", "m"), role="quasi_identifier")
    >>> domain = Domain((sex, Column("ill", "boolean", role="sensitive")))
    >>> frame = pd.DataFrame({"sex": ["f", "f", "m"], "ill": [True, False, True]})
    >>> private = frame.dp.protect(domain, epsilon=1)
    >>> private.dp.risk_curve("sex", "ill", epsilon=1).round(2)
    local risk (confidential)  cells  records
    epsilon
    0.0                         0.38     0.42
    1.0                         0.46     0.44
    inf                         0.50     0.33
    """
    levels, _ = levels_of(epsilon_range(options) if epsilon is None else epsilon)
    asked = TableRisk.of(protected, by, sensitive, "risk_curve", options)
    numbers = sorted({positive(level, "epsilon") for level in levels})
    between = [asked.noise.at(number) for number in numbers]
    noises = [asked.noise.widest, *between, risk.NoNoise()]
    counted = asked.count()
    index = pd.Index([0.0, *map(float, numbers), math.inf], name="epsilon")
    curve = pd.DataFrame(counted.averages(noises, progress), index=index)
    curve.columns.name = f"{asked.measured['measure']} risk ({MARK})"
    curve.attrs[KEY] = {MARK: "risk_curve", **asked.words}
    return curve


@spelled(Measured, DEFAULTS)
def choose_epsilon(
    protected: Protected,
    by: Labels,
    sensitive: Labels,
    max_risk: float = 0.4,
    *,
    average: risk.Average = "cells",
    progress: bool | None = None,
    **options: Unpack[Measured],
) -> Confidential:
    """CONFIDENTIAL, for the curator: the largest epsilon whose disclosure risk is at most ``max_risk``.

    Looked for from 0.001 to 100 (0.999 for the classic calibration), to six digits; inf where even no noise
    keeps the risk that low. The risk of a table with mixed cells may fall and rise again: the largest
    epsilon counts. Found on 51 numbers and between them; a dip narrower than a step may be missed.

    The choice depends on the confidential table, so the number itself tells something of it: publish
    a rounded one, and take this for guidance. ``progress``: bars, which need tqdm (None: where it is long).

    >>> import pandas as pd
    >>> from pdprivacy import Column, Domain
    >>> sex = Column("sex", "category", categories=("f", "m"), role="quasi_identifier")
    >>> domain = Domain((sex, Column("ill", "boolean", role="sensitive")))
    >>> frame = pd.DataFrame({"sex": ["f", "f", "m"], "ill": [True, False, True]})
    >>> private = frame.dp.protect(domain, epsilon=10)
    >>> epsilon = round(private.dp.choose_epsilon("sex", "ill", max_risk=0.45), 1)

    Raises as `dr_ha`; ParameterError where no such epsilon is found.
    """
    most = check_share("max_risk", max_risk, options["overall"])
    check_average(average)
    asked = TableRisk.of(protected, by, sensitive, "choose_epsilon", options)
    grid = [float(f"{level:.6g}") for level in epsilon_range(options)]
    for level in grid:
        asked.noise.at(level)  # refuses before any count is read
    counted = asked.count()

    def risk_at(level: float) -> float:
        return float(counted.risks([asked.noise.at(level)], average, progress)[0])

    risks = counted.risks([asked.noise.at(level) for level in grid], average, progress)
    if risks[-1] <= most:
        limit = counted.risks([risk.NoNoise()], average, progress)[0]
        return Confidential(math.inf if limit <= most else grid[-1])
    for place in range(len(grid) - 2, -1, -1):
        low = grid[place]
        if risks[place] > most and place and risks[place - 1] >= risks[place] <= risks[place + 1]:
            low = _lowest(risk_at, grid[place - 1], grid[place + 1])  # the curve falls and rises here
        if risks[place] <= most or risk_at(low) <= most:
            return Confidential(_last(risk_at, low, grid[place + 1], most))
    raise ParameterError(
        f"No epsilon from {grid[0]:g} to {grid[-1]:g} keeps the risk at or below 'max_risk'.",
        "a larger max_risk, fewer columns in by, or coarser bins.",
    )


def _last(risk_at: Callable[[float], float], low: float, high: float, most: float) -> float:
    """Between an epsilon that meets ``most`` and one that does not, the last of six digits that does."""
    while low < (middle := float(f"{math.sqrt(low * high):.6g}")) < high:
        if risk_at(middle) <= most:
            low = middle
        else:
            high = middle
    return low


def _lowest(risk_at: Callable[[float], float], low: float, high: float) -> float:
    """Where the risk is lowest between the two, by golden sections of the logarithm."""
    share = (math.sqrt(5) - 1) / 2
    a, b = math.log(low), math.log(high)
    c, d = b - share * (b - a), a + share * (b - a)
    at_c, at_d = risk_at(math.exp(c)), risk_at(math.exp(d))
    for _ in range(25):
        if at_c < at_d:
            b, d, at_d = d, c, at_c
            c = b - share * (b - a)
            at_c = risk_at(math.exp(c))
        else:
            a, c, at_c = c, d, at_d
            d = a + share * (b - a)
            at_d = risk_at(math.exp(d))
    return float(f"{math.exp(c if at_c < at_d else d):.6g}")
