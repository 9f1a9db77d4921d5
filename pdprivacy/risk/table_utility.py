"""Utility of a noisy table, for the curator: the distance of its marginals from the true ones.

A margin of a table sums ``pieces`` cells of it into each of its own cells. What is released is
the noisy table, so a cell of the margin carries the sum of as many independent draws. An analyst
sets negative sums to 0 and rescales all to a distribution; where nothing is left, it is uniform.
The total variation distance between the true and the noisy distribution is half the sum of the
absolute differences: the largest error of the share of any set of cells.

Computed from confidential counts, so confidential too.

Source: F. Liu, X. Zhao, "Disclosure risk from homogeneity attack in differentially privately
sanitized frequency distribution", section 5.3, footnote 8.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, TypeVar, Unpack

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from pdprivacy import risk
from pdprivacy.checks import integer, items, one_of, whole
from pdprivacy.core.gate import curator
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.spec import check_cells, columns_of, with_keywords
from pdprivacy.core.noise import SUMMED_NOISE, RandomState, noise_sums, simulator
from pdprivacy.core.privacy import Rational, positive
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import DeclarationError, ParameterError, kind
from pdprivacy.exact import EXACT
from pdprivacy.hints.examples import Example
from pdprivacy.risk.compositions import whole_numbers
from pdprivacy.risk.table_risk import (
    DEFAULTS,
    NOISE,
    CountedTables,
    Measured,
    Noise,
    TableNoise,
    TableRisk,
    by_label,
    check_average,
    check_share,
    confidential,
    epsilon_range,
    levels_of,
)
from pdprivacy.text.marks import MARK
from pdprivacy.text.progress import shown
from pdprivacy.types import Floats, Integers, Labels

NUMBERS = 2**18
"""Noise drawn at a time."""
MOST_ORDERS = 1000
"""The largest number of orders of marginals."""
MOST_PIECES, MOST_DRAWS = 2**32, 10**7
_Name = TypeVar("_Name")


def total_variation(
    counts: ArrayLike, mechanism: Any, pieces: int = 1, draws: int = 200, rng: RandomState = None
) -> tuple[float, float]:
    """The expected total variation distance of a noisy margin, simulated, and its standard error.

    Parameters
    ----------
    counts : (C,) the true margin, whole numbers, not all 0.
    mechanism : the noise on each cell of the table: `Laplace`, `Geometric` or `Gaussian` of
        `pdprivacy.mechanism`. Sums of their noise are drawn at once: differences of gamma or
        negative binomial numbers, and normal ones. Bounded noise is refused: its sums have no such law.
    pieces : how many cells of the table each cell of the margin is the sum of; 1 for the table itself.
    draws : how many, 2 or more.

    Raises
    ------
    ParameterError : another mechanism, or an argument is off. No message holds a count.

    >>> from pdprivacy.mechanism import Laplace
    >>> distance, error = total_variation([5000, 5000], Laplace(1, 1), draws=4000, rng=1)
    >>> bool(abs(distance - 1.5 / 20_000) < 4 * error)  # E|e1 - e2| = 1.5 for Laplace noise of scale 1
    True
    """
    values = np.concatenate(list(distances(counts, mechanism, pieces, draws, rng)))
    return float(values.mean()), float(values.std(ddof=1)) / math.sqrt(draws)


def batches(cells: int, draws: int) -> int:
    """Return the number of batches of draws that `distances` makes for a margin of so many cells."""
    return -(-draws // max(1, NUMBERS // cells))


def distances(
    counts: ArrayLike, mechanism: Any, pieces: int = 1, draws: int = 200, rng: RandomState = None
) -> Iterator[Floats]:
    """The distances that `total_variation` is the mean of, a batch of draws at a time; raises as that."""
    margin = _margin(counts)
    name, scale = _law(mechanism)
    pieces, draws = whole(pieces, "pieces", 1, MOST_PIECES), whole(draws, "draws", 2, MOST_DRAWS)
    generator = simulator(rng)
    shares = margin / margin.sum()
    each = max(1, NUMBERS // len(margin))
    for start in range(0, draws, each):
        size = min(each, draws - start)
        noise = np.concatenate(
            [  # of one draw in pieces, too: an interrupt waits for no more
                noise_sums(name, scale, int(pieces), (size, min(NUMBERS, len(margin) - cell)), generator)
                for cell in range(0, len(margin), NUMBERS)
            ],
            axis=1,
        )
        noisy = np.maximum(margin + noise, 0.0)
        totals = noisy.sum(axis=1, keepdims=True)
        noisy += totals == 0
        totals[totals == 0] = len(margin)
        yield np.abs(noisy / totals - shares).sum(axis=1) / 2


def marginals(columns: Sequence[_Name], orders: int | Sequence[int]) -> list[tuple[_Name, ...]]:
    """The combinations of 1, 2, ... columns, by their number and then as the columns are listed.

    An order above the number of columns has none.

    Raises
    ------
    ParameterError : an order that is not a positive whole number, or none.

    >>> marginals(["age", "region", "health"], (1, 2))[2:]
    [('health',), ('age', 'region'), ('age', 'health'), ('region', 'health')]
    """
    several = isinstance(orders, Iterable) and not isinstance(orders, str)
    requested: list[Any] = items(orders, "order", "order=(1, 2, 3).", MOST_ORDERS) if several else [orders]  # type: ignore[arg-type]
    each = [whole(order, "order", 1, hint="order=(1, 2, 3).") for order in requested]
    if not each:
        raise ParameterError("'order' must hold at least one number.", "order=(1, 2, 3).")
    return [
        combination
        for order in sorted(set(each))
        if order <= len(columns)
        for combination in combinations(columns, order)
    ]


def _margin(counts: ArrayLike) -> Floats:
    margin = whole_numbers(counts)
    if margin.ndim != 1:
        raise ParameterError(f"'counts' must have one dimension (got {margin.ndim}).")
    if not margin.any():
        raise ParameterError("'counts' must hold at least one record.")
    if margin.max() >= EXACT // len(margin):
        raise ParameterError("'counts' must add up to less than 2**53.")
    return margin.astype(np.float64)


def _law(mechanism: Any) -> tuple[str, float]:
    """The name and the scale of the noise, or ParameterError."""
    name = getattr(mechanism, "name", None)
    known = isinstance(name, str) and name in SUMMED_NOISE and not isinstance(mechanism, type)
    if not known or getattr(mechanism, "bounding", None) is not None:
        kind = f"bounded {name} noise" if known else type(mechanism).__name__
        raise ParameterError(
            f"'mechanism' must be Laplace, Geometric or Gaussian noise without bounds (got {kind}).",
            "pdprivacy.mechanism.Geometric(epsilon=1).",
        )
    return str(name), float(mechanism.scale)


def _check_draws(draws: Any, noise: TableNoise, epsilon: Rational) -> None:
    """Refuse noise whose sums are not drawn, before any count is read."""
    one_of(noise.name, "mechanism", SUMMED_NOISE)
    if noise.options["bounding"] is not None:
        raise ParameterError(
            "Distances are found for noise without bounds (got a 'bounding').", "leave bounding out."
        )
    total_variation([1], noise.at(epsilon), draws=draws, rng=0)


def _distances(
    table: Integers,
    margins: Sequence[tuple[int, ...]],
    noises: Sequence[Any],
    draws: int,
    rng: RandomState,
    progress: bool | None,
) -> tuple[Floats, Floats]:
    """(M, E), the expected distances of these margins (axes of the table), and their standard errors."""
    generator, axes = simulator(rng), range(table.ndim)
    samples = np.empty((len(margins), len(noises), draws))

    def drawn() -> Iterator[None]:
        for position, margin in enumerate(margins):
            counts = table.sum(axis=tuple(axis for axis in axes if axis not in margin)).ravel()
            for level, noise in enumerate(noises):
                start = 0
                for some in distances(counts, noise, table.size // counts.size, draws, generator):
                    samples[position, level, start : start + len(some)] = some
                    start += len(some)
                    yield

    work = sum(batches(math.prod(table.shape[axis] for axis in margin), draws) for margin in margins)
    for _ in shown(drawn(), work * len(noises), "simulated tables", progress, long=True, timed=True):
        pass
    return samples.mean(axis=2), samples.std(axis=2, ddof=1) / math.sqrt(draws)


def _margins(order: Any, columns: Sequence[Column]) -> list[tuple[int, ...]]:
    whole = integer(order)
    if whole is None and not isinstance(order, list | tuple | range):  # other arrays may be cells
        raise ParameterError(
            f"'order' must be a whole number or a list of them (got {kind(order)}).", "order=(1, 2, 3)."
        )
    orders: Any = items(order, "order", "order=(1, 2, 3).", MOST_ORDERS) if whole is None else whole
    margins = marginals(range(len(columns)), orders)
    if not margins:
        raise ParameterError(f"'order' must be at most the number of columns ({len(columns)}).")
    return margins


def _table(protected: Facts, columns: Sequence[Column], method: str) -> Integers:
    table = curator.counts(protected, columns, method)
    if not table.any():
        raise ParameterError("The table holds no record, so it has no distribution.")
    return table.reshape([column.cells(method) for column in columns])


@with_keywords(Noise, NOISE)
def utility(
    protected: Facts,
    columns: Labels | None = None,
    order: int | Sequence[int] = (1, 2, 3),
    epsilon: Rational | Sequence[Rational] = (0.1, 1, 10),
    *,
    draws: int = 200,
    rng: RandomState = None,
    progress: bool | None = None,
    **noise: Unpack[Noise],
) -> pd.DataFrame:
    """CONFIDENTIAL, for the curator: distances between the marginals of a noisy table and the true ones.

    The table of all ``columns`` (by default the quasi-identifiers and the sensitive columns) gets
    noise; sums of it are its marginals, negative ones are set to 0 and all rescaled to a distribution. Its
    total variation distance to the true one is simulated ``draws`` times. ``progress``: whether to show a
    bar, which needs tqdm (None: in long calls).

    Returns a DataFrame with a row per marginal of each ``order`` ("age × health" is of order 2), and columns
    ("tvd", epsilon) and ("standard_error", epsilon). ``frame.dp.plot()`` draws it.

    Source: Liu, Zhao (2023), section 5.3.

    Raises ParameterError (also for bounded noise), DeclarationError, TableTooLargeError.

    >>> import pandas as pd
    >>> from pdprivacy import Column, Domain
    >>> sex = Column("sex", "category", categories=("f", "m"), role="quasi_identifier")
    >>> domain = Domain((sex, Column("ill", "boolean", role="sensitive")))
    >>> frame = pd.DataFrame({"sex": ["f", "f", "m"], "ill": [True, False, True]})
    >>> private = frame.dp.protect(domain, epsilon=1)
    >>> private.dp.utility(order=1, epsilon=[0.1, 10], rng=1)["tvd"].round(1)
    epsilon         0.1   10.0
    order marginal
    1     sex        0.3   0.0
          ill        0.4   0.0
    """
    levels, _ = levels_of(epsilon)
    if columns is None:
        names = [
            declared.name
            for declared in protected.domain.columns
            if declared.role in ("quasi_identifier", "sensitive")
        ]
        if not names:
            raise DeclarationError(
                "'utility' found no column with the role quasi_identifier or sensitive.",
                Example(
                    'utility(["region", "health"]), or metadata={"dp": {"role": "sensitive"}} in the schema.'
                ),
            )
        columns = names
    chosen = columns_of(protected, columns, "utility")
    check_cells(chosen, "utility")
    margins = _margins(order, chosen)
    table_noise = TableNoise.of(protected, chosen, noise)
    noises = [table_noise.at(level) for level in levels]
    _check_draws(draws, table_noise, levels[0])
    table = _table(protected, chosen, "utility")
    estimates = _distances(table, margins, noises, draws, rng, progress)
    names = [" × ".join(str(chosen[axis].name) for axis in margin) for margin in margins]
    index = pd.MultiIndex.from_arrays(
        [[len(margin) for margin in margins], names], names=["order", "marginal"]
    )
    heads = pd.Index([float(positive(level, "epsilon")) for level in levels], name="epsilon")
    frame = pd.concat(
        {
            name: pd.DataFrame(values, index=index, columns=heads)
            for name, values in zip(("tvd", "standard_error"), estimates, strict=True)
        },
        axis=1,
        names=[MARK, "epsilon"],
    )
    columns_read = [str(column.name) for column in chosen]
    return confidential(frame, "utility", mechanism=table_noise.name, columns=columns_read)


@with_keywords(Measured, DEFAULTS)
def tradeoff(
    protected: Facts,
    by: Labels | None = None,
    sensitive: Labels | None = None,
    epsilon: Rational | Sequence[Rational] | None = None,
    *,
    max_risk: float = 0.4,
    max_tvd: float = 0.1,
    order: int | Sequence[int] = (1, 2, 3),
    average: risk.Average = "cells",
    draws: int = 200,
    rng: RandomState = None,
    progress: bool | None = None,
    **options: Unpack[Measured],
) -> pd.DataFrame:
    """CONFIDENTIAL, for the curator: disclosure risk and error of the marginals against epsilon.

    ``by``, ``sensitive``: by default the columns with these roles, as in `dr_ha`.
    ``epsilon``: by default 17 numbers from 0.01 to 100 (0.999 for the classic calibration), evenly on a
    logarithmic scale. ``progress``: whether to show a bar, which needs tqdm (None: in long calls).

    Returns a DataFrame indexed by epsilon in ascending order: "risk"; "tvd 1-way" and so on, the mean
    expected total variation distance of the marginals of each ``order`` of the table of ``by`` and
    ``sensitive`` (see `utility`); "recommended", where the risk is at most ``max_risk`` and each mean
    distance at most ``max_tvd``. ``frame.dp.plot()`` draws it.

    Source: Liu, Zhao (2023), section 5.3.

    Raises as `dr_ha` and `utility`.

    >>> import pandas as pd
    >>> from pdprivacy import Column, Domain
    >>> sex = Column("sex", "category", categories=("f", "m"), role="quasi_identifier")
    >>> domain = Domain((sex, Column("ill", "boolean", role="sensitive")))
    >>> frame = pd.DataFrame({"sex": ["f", "f", "m"], "ill": [True, False, True]})
    >>> private = frame.dp.protect(domain, epsilon=1)
    >>> private.dp.tradeoff("sex", "ill", epsilon=[0.1, 10], order=1, rng=1).columns.tolist()
    ['risk', 'tvd 1-way', 'recommended']
    """
    levels, _ = levels_of(epsilon_range(options, 0.01, 17) if epsilon is None else epsilon)
    most_risk = check_share("max_risk", max_risk, options["overall"])
    most_distance = check_share("max_tvd", max_tvd)
    check_average(average)
    question = TableRisk.of(protected, by, sensitive, "tradeoff", options)
    columns = (*question.by, *question.sensitive)
    check_cells(columns, "tradeoff")
    margins = _margins(order, columns)
    numbers = sorted({positive(level, "epsilon") for level in levels})
    noises = [question.noise.at(number) for number in numbers]
    _check_draws(draws, question.noise, numbers[0])
    table = _table(protected, columns, "tradeoff")
    counted = CountedTables.of(question, by_label(table.reshape(-1, *table.shape[len(question.by) :])))
    frame = pd.DataFrame(
        {"risk": counted.risks(noises, average, progress)},
        index=pd.Index(map(float, numbers), name="epsilon"),
    )
    apart, _ = _distances(table, margins, noises, draws, rng, progress)
    orders = np.array([len(margin) for margin in margins])
    recommended = frame["risk"].to_numpy() <= most_risk
    for degree in np.unique(orders):
        mean = apart[orders == degree].mean(axis=0)
        frame[f"tvd {degree}-way"] = mean
        recommended &= mean <= most_distance
    frame["recommended"] = recommended
    words = {**question.words, "average": average, "max_risk": most_risk, "max_tvd": most_distance}
    return confidential(frame, "tradeoff", **words)
