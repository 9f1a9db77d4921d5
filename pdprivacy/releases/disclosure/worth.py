"""What a noisy table is worth: how far its marginals are from the true ones, beside its risk."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy import risk
from pdprivacy.domain import Column
from pdprivacy.errors import DeclarationError, ParameterError, check_one_of, kind
from pdprivacy.metadata import KEY
from pdprivacy.noise import RandomState, simulator
from pdprivacy.privacy import Rational, positive
from pdprivacy.protection import Protected
from pdprivacy.release.spec import spelled
from pdprivacy.releases.columns import Labels, check_cells, columns_of
from pdprivacy.releases.disclosure.asked import Counted, TableNoise, TableRisk, by_label
from pdprivacy.releases.disclosure.options import (
    DEFAULTS,
    MARK,
    NOISE,
    Measured,
    Noise,
    check_average,
    check_share,
    epsilon_range,
    levels_of,
)
from pdprivacy.show.progress import shown
from pdprivacy.utility import LAWS, batches, distances, marginals, total_variation

__all__ = ["tradeoff", "utility"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


def _check_draws(draws: Any, noise: TableNoise, epsilon: Rational) -> None:
    """Refuse noise whose sums are not drawn, before any count is read."""
    check_one_of("mechanism", noise.name, LAWS)
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
    found = np.empty((len(margins), len(noises), draws))

    def drawn() -> Iterator[None]:
        for place, margin in enumerate(margins):
            counts = table.sum(axis=tuple(axis for axis in axes if axis not in margin)).ravel()
            for level, noise in enumerate(noises):
                start = 0
                for some in distances(counts, noise, table.size // counts.size, draws, generator):
                    found[place, level, start : start + len(some)] = some
                    start += len(some)
                    yield

    work = sum(batches(math.prod(table.shape[axis] for axis in margin), draws) for margin in margins)
    for _ in shown(drawn(), work * len(noises), "simulated tables", progress, long=True, timed=True):
        pass
    return found.mean(axis=2), found.std(axis=2, ddof=1) / math.sqrt(draws)


def _margins(order: Any, columns: Sequence[Column]) -> list[tuple[int, ...]]:
    whole = isinstance(order, int | np.integer)
    if not whole and not isinstance(order, list | tuple | range):  # other arrays may be cells
        raise ParameterError(
            f"'order' must be a whole number or a list of them (got {kind(order)}).", "order=(1, 2, 3)."
        )
    orders: Any = order if whole else list(order)
    margins = marginals(range(len(columns)), orders)
    if not margins:
        raise ParameterError(f"'order' must be at most the number of columns ({len(columns)}).")
    return margins


def _table(protected: Protected, columns: Sequence[Column], method: str) -> Integers:
    table = protected.engine.table(columns, method)
    if not table.any():
        raise ParameterError("The table holds no record, so it has no distribution.")
    return table.reshape([column.cells(method) for column in columns])


@spelled(Noise, NOISE)
def utility(
    protected: Protected,
    columns: Labels | None = None,
    order: int | Sequence[int] = (1, 2, 3),
    epsilon: Rational | Sequence[Rational] = (0.1, 1, 10),
    *,
    draws: int = 200,
    rng: RandomState = None,
    progress: bool | None = None,
    **noise: Unpack[Noise],
) -> pd.DataFrame:
    """CONFIDENTIAL, for the curator: how far the marginals of one noisy table are from the true ones.

    The table of all ``columns`` (by default the quasi-identifiers and the sensitive columns) gets
    noise; sums of it are its marginals, negative ones are set to 0 and all rescaled to a distribution. Its
    total variation distance to the true one is simulated ``draws`` times. ``progress``: a bar, which needs
    tqdm (None: where it is long).

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
            one.name for one in protected.domain.columns if one.role in ("quasi_identifier", "sensitive")
        ]
        if not names:
            raise DeclarationError(
                "'utility' found no column with the role quasi_identifier or sensitive.",
                'utility(["age", "health"]), or metadata={"dp": {"role": "sensitive"}} in the schema.',
            )
        columns = names
    chosen = columns_of(protected, columns, "utility")
    check_cells(chosen, "utility")
    margins = _margins(order, chosen)
    asked = TableNoise.of(protected, chosen, noise)
    noises = [asked.at(level) for level in levels]
    _check_draws(draws, asked, levels[0])
    table = _table(protected, chosen, "utility")
    found = _distances(table, margins, noises, draws, rng, progress)
    names = [" × ".join(str(chosen[axis].name) for axis in margin) for margin in margins]
    index = pd.MultiIndex.from_arrays(
        [[len(margin) for margin in margins], names], names=["order", "marginal"]
    )
    heads = pd.Index([float(positive(level, "epsilon")) for level in levels], name="epsilon")
    frame = pd.concat(
        {
            name: pd.DataFrame(values, index=index, columns=heads)
            for name, values in zip(("tvd", "standard_error"), found, strict=True)
        },
        axis=1,
        names=[MARK, "epsilon"],
    )
    frame.attrs[KEY] = {
        MARK: "utility",
        "mechanism": asked.name,
        "columns": [str(column.name) for column in chosen],
    }
    return frame


@spelled(Measured, DEFAULTS)
def tradeoff(
    protected: Protected,
    by: Labels,
    sensitive: Labels,
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

    ``epsilon``: by default 17 numbers from 0.01 to 100 (0.999 for the classic calibration), evenly on a
    logarithmic scale. ``progress``: a bar, which needs tqdm (None: where it is long).

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
    asked = TableRisk.of(protected, by, sensitive, "tradeoff", options)
    both = (*asked.by, *asked.sensitive)
    check_cells(both, "tradeoff")
    margins = _margins(order, both)
    numbers = sorted({positive(level, "epsilon") for level in levels})
    noises = [asked.noise.at(number) for number in numbers]
    _check_draws(draws, asked.noise, numbers[0])
    table = _table(protected, both, "tradeoff")
    counted = Counted.of(asked, by_label(table.reshape(-1, *table.shape[len(asked.by) :])))
    frame = pd.DataFrame(
        {"risk": counted.risks(noises, average, progress)},
        index=pd.Index(map(float, numbers), name="epsilon"),
    )
    apart, _ = _distances(table, margins, noises, draws, rng, progress)
    orders = np.array([len(margin) for margin in margins])
    recommended = frame["risk"].to_numpy() <= most_risk
    for one in np.unique(orders):
        mean = apart[orders == one].mean(axis=0)
        frame[f"tvd {one}-way"] = mean
        recommended &= mean <= most_distance
    frame["recommended"] = recommended
    frame.columns.name = MARK
    frame.attrs[KEY] = {
        MARK: "tradeoff",
        **asked.words,
        "average": average,
        "max_risk": most_risk,
        "max_tvd": most_distance,
    }
    return frame
