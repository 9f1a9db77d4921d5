"""Statistics: sums of bounded terms, their sensitivities, and the answer made of noisy sums.

A statistic lists its `Part`s (vectors of whole numbers in grid units with their
l1 and l2 sensitivities), reads them from an engine, and turns the noisy vectors
into values with their standard errors. Sensitivities are computed here from
declared facts alone; noise is added in `pdprivacy.core.gate` and nowhere else.

There are two ways to a mean or a variance. Where the number of rows is public,
the statistic itself is computed exactly and gets noise of the paper's
sensitivity (*direct*). Where that number is private, centred sums and a count
each get noise, and the answer is computed from them (*by sums*).
"""

from pdprivacy.core.statistics.candidates import LabelScores, Quantile, share
from pdprivacy.core.statistics.clusters import Clusters, Medians, count_share, numbers_of, packed
from pdprivacy.core.statistics.confidence import Noisy
from pdprivacy.core.statistics.counts import CellCounts, Distinct, Rows, TreeCells
from pdprivacy.core.statistics.direct import Direct
from pdprivacy.core.statistics.interface import (
    Answer,
    GroupedSums,
    Part,
    Quantity,
    Ranks,
    Read,
    Scope,
    Statistic,
    Window,
    indicator,
    quantity,
)
from pdprivacy.core.statistics.least_squares import LeastSquares
from pdprivacy.core.statistics.narrow import BoundedStatistic
from pdprivacy.core.statistics.rank_grid import RankGrid
from pdprivacy.core.statistics.sums import PIECES, Covariance, Moments, Sums, deviations_of
from pdprivacy.core.statistics.weighted import Weighted, WeightedCells, quantile_bits, weight_of

__all__ = [
    "PIECES",
    "Answer",
    "BoundedStatistic",
    "CellCounts",
    "Clusters",
    "Covariance",
    "Direct",
    "Distinct",
    "GroupedSums",
    "LabelScores",
    "LeastSquares",
    "Medians",
    "Moments",
    "Noisy",
    "Part",
    "Quantile",
    "Quantity",
    "RankGrid",
    "Ranks",
    "Read",
    "Rows",
    "Scope",
    "Statistic",
    "Sums",
    "TreeCells",
    "Weighted",
    "WeightedCells",
    "Window",
    "count_share",
    "deviations_of",
    "indicator",
    "numbers_of",
    "packed",
    "quantile_bits",
    "quantity",
    "share",
    "weight_of",
]
