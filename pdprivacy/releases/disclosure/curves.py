"""The disclosure risk of a table against epsilon, and the epsilon that keeps it low."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import pandas as pd

from pdprivacy import risk
from pdprivacy.domain import Column
from pdprivacy.errors import ParameterError
from pdprivacy.metadata import KEY
from pdprivacy.noise import RandomState, simulator
from pdprivacy.privacy import Rational, positive
from pdprivacy.protection import Protected
from pdprivacy.releases.call import Labels, cell_index
from pdprivacy.releases.disclosure.asked import Asked
from pdprivacy.releases.disclosure.options import (
    MARK,
    Alpha,
    Measured,
    Noise,
    Overall,
    check_average,
    check_share,
    levels_of,
    one_of,
    spelled,
)

__all__ = ["Confidential", "choose_epsilon", "dr_ha", "risk_curve"]

LEAST, MOST = 1e-3, 1e2
"""Where an epsilon is looked for."""


class Confidential(float):
    """A number made of confidential counts, as its text says; arithmetic makes plain floats of it.

    >>> Confidential(1.02), round(Confidential(1.02), 1)
    (1.02 (confidential), 1.0)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{float.__repr__(self)} (confidential)"


@spelled(Noise)
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
    draws: int = 1000,
    rng: RandomState = None,
    progress: bool = False,
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
    method : "exact"; "published", the source's closed forms; "monte_carlo", by ``draws`` tables (``rng``: a
        seed or generator; ``progress``: a progress bar).
    overall : of several sensitive columns, per cell the largest risk ("max") or the sum of risks ("sum").
    partial, attack : as in `pdprivacy.risk.dr_ha`, which does the arithmetic.

    Returns a float for one epsilon, a Series indexed by epsilon for several; with ``average=None`` a
    Series over the cells (NaN where empty), or a DataFrame, cells by epsilon. "monte_carlo": a DataFrame
    with the columns "risk" and "standard_error".

    Source: Liu, Zhao (2023), definitions 6 to 11 and section 4.3, exact for heterogeneous cells too.

    Raises ParameterError, DeclarationError, TableTooLargeError (above 1e8 cells).
    """
    levels, many = levels_of(epsilon)
    one_of("average", average, ("cells", "records", None))
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
    }
    if method == "monte_carlo":
        options |= {"draws": draws, "rng": simulator(rng), "progress": progress}
    asked = Asked.of(protected, by, sensitive, "dr_ha", options)
    noises = [asked.noise.at(level) for level in levels]
    index: pd.Index[Any] = pd.Index([float(positive(level, "epsilon")) for level in levels], name="epsilon")
    if asked.simulated:
        (table,) = asked.tables()
        # empty cells change nothing, and an array with more labels than cells would be refused
        more = np.zeros((max(table.shape[1] - len(table), 0), table.shape[1]), dtype=np.int64)
        found = risk.dr_ha(np.vstack([table, more]), noises, average=average, **asked.measured)
        if average is None:
            found = risk.Simulated(*(each[:, : len(table)] for each in found))
        return _simulated(found, asked.by, index, many=many, each_cell=average is None)
    risks = asked.count().risks(noises, average)
    name = f"dr_ha ({MARK})"
    if average is not None:
        return pd.Series(risks, index=index, name=name) if many else Confidential(risks[0])
    cells = cell_index(asked.by, "dr_ha")
    if not many:
        return pd.Series(risks[0], index=cells, name=name)
    return pd.DataFrame(risks.T, index=cells, columns=index)


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
            return pd.concat(frames, axis=1)
    frame.columns.name = f"dr_ha ({MARK})"
    return frame


@spelled(Measured)
def risk_curve(
    protected: Protected,
    by: Labels,
    sensitive: Labels,
    epsilon: Rational | Sequence[Rational] | None = None,
    **options: Unpack[Measured],
) -> pd.DataFrame:
    """CONFIDENTIAL, for the curator: the disclosure risk against epsilon, with its limits.

    ``epsilon``: by default 51 numbers from 0.001 to 100, evenly on a logarithmic scale.

    Returns a DataFrame indexed by epsilon in ascending order, with the averages over "cells" and over
    "records"; the first row, 0.0, is the limit of ever more noise, the last, inf, that of none: for the local
    risk the share of homogeneous cells. ``curve.dp.plot()`` draws it.

    Source: Liu, Zhao (2023), sections 4 and 5.

    Raises as `dr_ha`.
    """
    levels, _ = levels_of(np.logspace(-3, 2, 51) if epsilon is None else epsilon)
    asked = Asked.of(protected, by, sensitive, "risk_curve", options)
    numbers = sorted({positive(level, "epsilon") for level in levels})
    between = [asked.noise.at(number) for number in numbers]
    noises = [asked.noise.widest, *between, risk.NoNoise()]
    counted = asked.count()
    index = pd.Index([0.0, *map(float, numbers), math.inf], name="epsilon")
    curve = pd.DataFrame(counted.averages(noises), index=index)
    curve.columns.name = f"{asked.measured['measure']} risk ({MARK})"
    curve.attrs[KEY] = {MARK: "risk_curve", **asked.words}
    return curve


@spelled(Measured)
def choose_epsilon(
    protected: Protected,
    by: Labels,
    sensitive: Labels,
    max_risk: float = 0.4,
    *,
    average: risk.Average = "cells",
    **options: Unpack[Measured],
) -> Confidential:
    """CONFIDENTIAL, for the curator: the largest epsilon whose disclosure risk is at most ``max_risk``.

    Looked for from 0.001 to 100, to six digits; inf where even no noise keeps the risk that low. The risk
    of a table with mixed cells may rise and fall again: the largest epsilon counts.

    The choice depends on the confidential table, so the number itself tells something of it: publish
    a rounded one, and take this for guidance.

    >>> from pdprivacy import Column, Domain
    >>> sex = Column("sex", "category", categories=("f", "m"), role="quasi_identifier")
    >>> domain = Domain((sex, Column("ill", "boolean", role="sensitive")))
    >>> frame = pd.DataFrame({"sex": ["f", "f", "m"], "ill": [True, False, True]})
    >>> private = frame.dp.protect(domain, epsilon=10)
    >>> epsilon = round(private.dp.choose_epsilon("sex", "ill", max_risk=0.45), 1)

    Raises as `dr_ha`; ParameterError where no such epsilon is found.
    """
    most = check_share("max_risk", max_risk)
    check_average(average)
    asked = Asked.of(protected, by, sensitive, "choose_epsilon", options)
    grid = [float(f"{level:.6g}") for level in np.logspace(math.log10(LEAST), math.log10(MOST), 51)]
    noises = [asked.noise.at(level) for level in grid]
    counted = asked.count()
    met = np.flatnonzero(counted.risks(noises, average) <= most)
    if not met.size:
        raise ParameterError(
            f"No epsilon from {LEAST:g} to {MOST:g} keeps the risk at or below 'max_risk'.",
            "a larger max_risk, fewer columns in by, or coarser bins.",
        )
    last = int(met[-1])
    if last == len(grid) - 1:
        limit = counted.risks([risk.NoNoise()], average)[0]
        return Confidential(math.inf if limit <= most else grid[-1])
    low, high = grid[last], grid[last + 1]
    while low < (middle := float(f"{math.sqrt(low * high):.6g}")) < high:
        if counted.risks([asked.noise.at(middle)], average)[0] <= most:
            low = middle
        else:
            high = middle
    return Confidential(low)
