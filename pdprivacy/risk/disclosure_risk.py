"""Disclosure risk of a table before its release, for the curator.

CONFIDENTIAL: all of it is computed from the confidential counts. Nothing is charged, and nothing of it
may be released. What may leave with a release is the risk in its own metadata, and the column ``dr_ha``
of the budget's entries: these are made of released counts.

A table is that of `crosstab`: cells of quasi-identifiers (``by``) and labels of a sensitive column,
where nulls are a label if they are declared.

Source: F. Liu, X. Zhao (2023), "Disclosure risk from homogeneity attack in differentially privately
sanitized frequency distribution".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import pandas as pd

from pdprivacy import risk
from pdprivacy.checks import one_of, whole
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.spec import cell_index, with_keywords
from pdprivacy.core.noise import RandomState, simulator
from pdprivacy.core.privacy import Confidential, Rational, positive
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import ParameterError
from pdprivacy.risk.compositions import readings
from pdprivacy.risk.table_risk import (
    DEFAULTS,
    NOISE,
    Alpha,
    ConfidentialTables,
    Measured,
    Noise,
    Overall,
    TableRisk,
    cells_at,
    check_average,
    check_share,
    confidential,
    epsilon_range,
    levels_of,
)
from pdprivacy.text.marks import MARK
from pdprivacy.types import Integers, Labels


@with_keywords(Noise, NOISE)
def dr_ha(
    protected: Facts,
    by: Labels | None = None,
    sensitive: Labels | None = None,
    epsilon: Rational | Sequence[Rational] | None = None,
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

    That is the probability that a cell of the quasi-identifiers ``by`` shows one single label of
    ``sensitive`` after noise, and that some of its records have it. Nothing is charged.

    by, sensitive : column labels; by default the columns declared with the role "quasi_identifier", and those
        with the role "sensitive".
    measure : "local", of the counts as they are; "expected", over multinomial counts of the cell's
        size; "shrinkage", over Dirichlet(``alpha``) proportions too (None: fitted); "marginal" and
        "marginal_shrinkage", over the ``sizes`` of cells too ("observed", "poisson" or "negative_binomial",
        given one record or more with ``zero_truncated``).
    average : over non-empty cells ("cells") or their records ("records"); None: the risk of each cell.
    method : "exact"; "published", the source's closed forms; "monte_carlo", by ``draws`` tables of one
        sensitive column (``postprocess``: what is done to each noisy table, cells by labels; ``rng``: a seed
        or generator).
    overall : for several sensitive columns, the largest risk of a cell ("max") or the sum of its risks
        ("sum").
    partial, attack, threshold : as in `pdprivacy.risk.dr_ha`, which does the arithmetic.
    progress : whether to show a progress bar, which needs tqdm; None: in long calls of interactive sessions
        (``pdprivacy.text.progress``).

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
    levels, several = levels_of(epsilon)
    one_of(average, "average", ("cells", "records", None))
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
    question = TableRisk.of(protected, by, sensitive, "dr_ha", options)
    if postprocess is not None and method != "monte_carlo":
        raise ParameterError("'postprocess' needs simulation.", 'method="monte_carlo".')
    noises = [question.noise.at(level) for level in levels]
    index: pd.Index[Any] = pd.Index([float(positive(level, "epsilon")) for level in levels], name="epsilon")
    if method == "monte_carlo":
        generator, (table,) = simulator(rng), question.tables()
        read, _ = readings(noises, question.risk_measure.threshold)
        simulated = question.risk_measure.fit(table).simulated(
            table, read, average, draws, postprocess, generator, progress
        )
        return _simulated(simulated, question.by, index, many=several, each_cell=average is None)
    risks = question.count().risks(noises, average, progress)
    return _exact(risks, question.by, index, many=several, each_cell=average is None)


def _exact(risks: Any, by: Sequence[Column], index: pd.Index[Any], *, many: bool, each_cell: bool) -> Any:
    if not each_cell and not many:
        return Confidential(risks[0])
    name, cells = f"dr_ha ({MARK})", cell_index(by, "dr_ha") if each_cell else index
    if each_cell and many:
        frame = pd.DataFrame(risks.T, index=cells, columns=index.rename(f"epsilon ({MARK})"))
        return confidential(frame, "dr_ha")
    return confidential(pd.Series(risks[0] if each_cell else risks, index=cells, name=name), "dr_ha")


def _simulated(
    simulated: risk.Simulated, by: Sequence[Column], index: pd.Index[Any], *, many: bool, each_cell: bool
) -> pd.DataFrame:
    cells = cell_index(by, "dr_ha") if each_cell else index
    columns = {
        name: np.asarray(part) for name, part in zip(("risk", "standard_error"), simulated, strict=True)
    }
    if each_cell and many:
        frames = {name: pd.DataFrame(part.T, index=cells, columns=index) for name, part in columns.items()}
        frame = pd.concat(frames, axis=1, names=[f"dr_ha ({MARK})", "epsilon"])
    else:
        frame = pd.DataFrame({name: part[0] if each_cell else part for name, part in columns.items()}, cells)
        frame.columns.name = f"dr_ha ({MARK})"
    return confidential(frame, "dr_ha")


@with_keywords(Measured, DEFAULTS)
def risk_curve(
    protected: Facts,
    by: Labels | None = None,
    sensitive: Labels | None = None,
    epsilon: Rational | Sequence[Rational] | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[Measured],
) -> pd.DataFrame:
    """CONFIDENTIAL, for the curator: the disclosure risk against epsilon, with its limits.

    ``by``, ``sensitive``: by default the columns with these roles, as in `dr_ha`.
    ``epsilon``: by default 51 numbers from 0.001 to 100 (0.999 for the classic calibration), evenly on a
    logarithmic scale. ``progress``: whether to show a bar, which needs tqdm (None: in long calls).

    Returns a DataFrame indexed by epsilon in ascending order, with both averages as columns, over "cells"
    and over "records". The first row, 0.0, is the limit of ever more noise; the last, inf, is the risk
    without noise, which for the local risk is the share of homogeneous cells. ``curve.dp.plot()`` draws it.

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
    question = TableRisk.of(protected, by, sensitive, "risk_curve", options)
    numbers = sorted({positive(level, "epsilon") for level in levels})
    between = [question.noise.at(number) for number in numbers]
    noises = [question.noise.widest, *between, risk.NoNoise()]
    counted = question.count()
    index = pd.Index([0.0, *map(float, numbers), math.inf], name="epsilon")
    curve = pd.DataFrame(counted.averages(noises, progress), index=index)
    curve.columns.name = f"{question.risk_measure.measure} risk ({MARK})"
    return confidential(curve, "risk_curve", **question.words)


@with_keywords(Measured, DEFAULTS)
def choose_epsilon(
    protected: Facts,
    by: Labels | None = None,
    sensitive: Labels | None = None,
    max_risk: float = 0.4,
    *,
    average: risk.Average = "cells",
    progress: bool | None = None,
    **options: Unpack[Measured],
) -> Confidential:
    """CONFIDENTIAL, for the curator: the largest epsilon whose disclosure risk is at most ``max_risk``.

    ``by``, ``sensitive``: by default the columns with these roles, as in `dr_ha`.
    The search covers 0.001 to 100 (0.999 for the classic calibration), to six digits; the result is inf where
    the risk is that low even without noise, so that any epsilon will do. The risk of a table with mixed cells
    may fall and rise again: the largest epsilon counts. The search starts from 51 numbers, so a dip between
    two of them may be missed.

    The choice depends on the confidential table, so the number itself tells something of it: publish
    a rounded one, and take this for guidance. ``progress``: whether to show bars, which need tqdm (None: in
    long calls).

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
    question = TableRisk.of(protected, by, sensitive, "choose_epsilon", options)
    grid = [float(f"{level:.6g}") for level in epsilon_range(options)]
    for level in grid:
        question.noise.at(level)  # refuses before any count is read
    counted = question.count()

    def risk_at(level: float) -> float:
        return float(counted.risks([question.noise.at(level)], average, progress)[0])

    risks = counted.risks([question.noise.at(level) for level in grid], average, progress)
    if risks[-1] <= most:
        limit = counted.risks([risk.NoNoise()], average, progress)[0]
        return Confidential(math.inf if limit <= most else grid[-1])
    for position in range(len(grid) - 2, -1, -1):
        low = grid[position]
        if (
            risks[position] > most
            and position
            and risks[position - 1] >= risks[position] <= risks[position + 1]
        ):
            low = _lowest(risk_at, grid[position - 1], grid[position + 1])  # the curve falls and rises here
        if risks[position] <= most or risk_at(low) <= most:
            return Confidential(_last(risk_at, low, grid[position + 1], most))
    raise ParameterError(
        f"No epsilon from {grid[0]:g} to {grid[-1]:g} keeps the risk at or below 'max_risk'.",
        "a larger max_risk, fewer columns in by, or coarser bins.",
    )


def _last(risk_at: Callable[[float], float], low: float, high: float, most: float) -> float:
    """Return the largest epsilon of six digits that meets ``most``, by bisection."""
    while low < (middle := float(f"{math.sqrt(low * high):.6g}")) < high:
        if risk_at(middle) <= most:
            low = middle
        else:
            high = middle
    return low


def _lowest(risk_at: Callable[[float], float], low: float, high: float) -> float:
    """Return the epsilon of the lowest risk in an interval, by golden-section search on the log scale."""
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Homogeneity(ConfidentialTables):
    """CONFIDENTIAL: how many cells and records a homogeneity attack would disclose without noise.

    summary : rows "homogeneous", "heterogeneous" and "all"; columns "cells" (non-empty ones), "records"
        and "share of records". With several sensitive columns the rows are "completely homogeneous" (in
        every one), "partially homogeneous" (in some), "completely heterogeneous" (in none), "all", and
        "homogeneous in" each one.
    exposed : the most exposed cells, by their labels: the "label" that most of their records have, their
        "records", and the "share" of them that have it. Homogeneous cells first, larger ones first. With
        several sensitive columns a cell is listed for each, which "column" names.
    """

    summary: pd.DataFrame
    exposed: pd.DataFrame

    def tables(self) -> list[tuple[str, pd.DataFrame]]:
        """Return the frames with their captions."""
        return [("cells and records", self.summary), ("most exposed cells", self.exposed)]


def homogeneity(
    protected: Facts, by: Labels | None = None, sensitive: Labels | None = None, top: int = 10
) -> Homogeneity:
    """CONFIDENTIAL, for the curator: count the homogeneous cells of a table, and list the most exposed ones.

    ``by``, ``sensitive``: by default the columns with these roles, as in `dr_ha`. A cell is homogeneous in a
    sensitive column if all its records have one label there; of several columns each is judged alone.
    ``top``: how many cells are listed. Returns `Homogeneity`.

    Source: Liu, Zhao (2023), definitions 4 and 5.

    Raises ParameterError, DeclarationError, TableTooLargeError.

    >>> import pandas as pd
    >>> from pdprivacy import Column, Domain
    >>> sex = Column("sex", "category", categories=("f", "m"), role="quasi_identifier")
    >>> domain = Domain((sex, Column("ill", "boolean", role="sensitive")))
    >>> frame = pd.DataFrame({"sex": ["f", "f", "m"], "ill": [True, False, True]})
    >>> private = frame.dp.protect(domain, epsilon=1)
    >>> private.dp.homogeneity("sex", "ill").exposed
    confidential  label  records  share
    sex
    m              True        1    1.0
    f             False        2    0.5
    """
    top = whole(top, "top", 1)
    question = TableRisk.of(protected, by, sensitive, "homogeneity", DEFAULTS)
    filled, tables, sizes = question.classes()
    largest = np.stack([table.max(axis=1) for table in tables], axis=1)
    summary = _homogeneous_cells(question, sizes, largest == sizes[:, np.newaxis])
    exposed = _most_exposed(question, filled, tables, sizes, top)
    return Homogeneity(confidential(summary, "homogeneity"), confidential(exposed, "most exposed"))


def _homogeneous_cells(question: TableRisk, sizes: Integers, homogeneous: Any) -> pd.DataFrame:
    """Return the summary of cells of these sizes (N,), homogeneous in each sensitive column (N, columns)."""
    every, some = homogeneous.all(axis=1), homogeneous.any(axis=1)
    everything = np.ones(len(sizes), dtype=bool)
    if homogeneous.shape[1] == 1:
        kinds = {"homogeneous": every, "heterogeneous": ~every, "all": everything}
    else:
        kinds = {
            "completely homogeneous": every,
            "partially homogeneous": some & ~every,
            "completely heterogeneous": ~some,
            "all": everything,
        }
        names = [f"homogeneous in {column.name}" for column in question.sensitive]
        kinds |= dict(zip(names, homogeneous.T, strict=True))
    records = np.array([sizes[cells].sum() for cells in kinds.values()])
    return pd.DataFrame(
        {
            "cells": [int(cells.sum()) for cells in kinds.values()],
            "records": records,
            "share of records": records / sizes.sum(),
        },
        index=pd.Index(kinds),
    )


def _most_exposed(
    question: TableRisk, filled: Integers, tables: Sequence[Integers], sizes: Integers, top: int
) -> pd.DataFrame:
    """Return the cells and sensitive columns with the largest share of one label, larger cells first."""
    shares = np.stack([table.max(axis=1) for table in tables], axis=1) / sizes[:, np.newaxis]
    each, number = np.repeat(sizes, len(tables)), len(tables)
    first = np.lexsort((-each, -shares.ravel()))[:top]  # stable: ties in the order of the table
    cells, axes = first // number, first % number
    labels = [cell_index([column], "homogeneity").to_numpy(dtype=object) for column in question.sensitive]
    likely = [labels[axis][tables[axis][cell].argmax()] for cell, axis in zip(cells, axes, strict=True)]
    columns: dict[str, Any] = {}
    if number > 1:
        columns["column"] = [str(question.sensitive[axis].name) for axis in axes]
    columns["label"] = pd.Series(likely, dtype=object).to_numpy()
    columns |= {"records": sizes[cells], "share": shares[cells, axes]}
    return pd.DataFrame(columns, index=cells_at(question.by, filled[cells], "homogeneity"))
