"""Statistics: sums of bounded terms, their sensitivities, and the answer made of noisy sums.

A statistic lists its `Part`s (vectors of whole numbers in grid units with their
l1 and l2 sensitivities), reads them from an engine, and turns the noisy vectors
into values with their standard errors. Sensitivities are computed here from
declared facts alone; noise is added in `pdprivacy.release` and nowhere else.

There are two ways to a mean or a variance. Where the number of rows is public,
the statistic itself is computed exactly and gets noise of the paper's
sensitivity (*direct*). Where that number is private, centred sums and a count
each get noise, and the answer is computed from them (*by sums*).
"""

from pdprivacy.statistic.candidates import LabelScores, Quantile, share
from pdprivacy.statistic.clusters import Clusters, Medians, count_share, numbers_of, packed
from pdprivacy.statistic.confidence import Noisy
from pdprivacy.statistic.counts import CellCounts, Distinct, Rows, TreeCells
from pdprivacy.statistic.direct import Direct
from pdprivacy.statistic.interface import (
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
from pdprivacy.statistic.least_squares import LeastSquares
from pdprivacy.statistic.narrow import BoundedStatistic
from pdprivacy.statistic.rank_grid import RankGrid
from pdprivacy.statistic.sums import PIECES, Covariance, Moments, Sums, deviations_of
from pdprivacy.statistic.weighted import Weighted, WeightedCells, quantile_bits, weight_of

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
