"""Signatures of the methods of ``private.dp``, of plans and of batches, for type checkers.

Made by ``python -m tests.support.signatures --write``.
"""

# mypy: disable-error-code="overload-overlap"
# pyright: reportOverlappingOverload=false

import numpy as np
import pandas as pd
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Mapping
from collections.abc import Sequence
from fractions import Fraction
from pdprivacy import risk
from pdprivacy.amplification.sampling import Spend
from pdprivacy.amplification.suppression.scores import Distance
from pdprivacy.core.accounting.reports import Method
from pdprivacy.core.gate.request import BoundingName
from pdprivacy.core.gate.request import CalibrationName
from pdprivacy.core.gate.spec import Split
from pdprivacy.core.mechanisms import MechanismName
from pdprivacy.core.mechanisms.exponential import SelectionCalibration
from pdprivacy.core.mechanisms.exponential import SelectionName
from pdprivacy.core.mechanisms.exponential import SelectionNoise
from pdprivacy.core.mechanisms.gaussian import Calibration
from pdprivacy.core.mechanisms.support import Bounding
from pdprivacy.core.noise.bits import RandomState
from pdprivacy.core.privacy import Confidential
from pdprivacy.core.privacy import Rational
from pdprivacy.frames.column import ProtectedColumn
from pdprivacy.frames.frame import End
from pdprivacy.frames.frame import ProtectedFrame
from pdprivacy.releases.batches import Batch
from pdprivacy.releases.batches import Pending
from pdprivacy.releases.batches import ReleasePlan
from pdprivacy.releases.clustering import RoundNoise
from pdprivacy.releases.clustering import WalkSelection
from pdprivacy.releases.covariances import MatrixConstraint
from pdprivacy.releases.grouped import GroupBy
from pdprivacy.releases.moments import Aggregate
from pdprivacy.releases.moments import Aggregates
from pdprivacy.releases.moments import Selection
from pdprivacy.releases.plan_calls import Levels
from pdprivacy.releases.planning import Boundings
from pdprivacy.releases.planning import Margins
from pdprivacy.releases.rank_plans import Ranks
from pdprivacy.releases.tables import Constraint
from pdprivacy.releases.tables import Normalize
from pdprivacy.risk.data_quality import CuratorFrame
from pdprivacy.risk.disclosure_risk import Homogeneity
from pdprivacy.risk.equivalence_classes import Anonymity
from pdprivacy.risk.repeated_publications import Composition
from pdprivacy.risk.table_risk import Alpha
from pdprivacy.risk.table_risk import Overall
from pdprivacy.types import Labels
from typing import Any
from typing import Literal
from typing import overload

class ProtectedMethods:
    @overload
    def agg(
        self, func: Aggregate | Mapping[Any, Aggregate], columns: Labels | None = None, *, epsilon: Rational,
        split: Split = None, weights: Hashable | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def agg(
        self, func: Sequence[Aggregate] | Mapping[Any, Sequence[Aggregate]], columns: Labels | None = None, *,
        epsilon: Rational, split: Split = None, weights: Hashable | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def agg(
        self, func: Aggregates | Selection | Mapping[Any, Selection], columns: Labels | None = None, *,
        epsilon: Rational, split: Split = None, weights: Hashable | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def anonymity(
        self, by: Labels | None = None, sensitive: Labels | None = None, top: int = 10, *,
        min_records: int = 5, min_labels: int = 2, ordered: Labels | None = None
    ) -> Anonymity: ...
    def assign(
        self, /, *, bounds: Mapping[str, Sequence[float]] | None = None,
        **expressions: str | ProtectedColumn | Callable[[ProtectedFrame], str | ProtectedColumn]
    ) -> ProtectedFrame: ...
    def astype(
        self, dtype: Any
    ) -> ProtectedFrame: ...
    def batch(
        self, *, delta: Rational | None = None, accounting: Method = 'basic', release_id: str | None = None
    ) -> Batch: ...
    def choose_epsilon(
        self, by: Labels | None = None, sensitive: Labels | None = None, max_risk: float = 0.4, *,
        average: risk.Average = 'cells', progress: bool | None = None, measure: risk.Measure = 'local',
        method: Literal['exact', 'published'] = 'exact', alpha: Alpha = None,
        sizes: risk.SizeModel = 'observed', overall: Overall = 'max', zero_truncated: bool = True,
        partial: bool = False, attack: risk.Attack = 'homogeneity', mechanism: MechanismName = 'geometric',
        delta: Rational = 0, p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Bounding | None = None
    ) -> Confidential: ...
    def clip(
        self, lower: End | Mapping[Hashable, End] | None = None,
        upper: End | Mapping[Hashable, End] | None = None, *, columns: Labels | None = None
    ) -> ProtectedFrame: ...
    def compare_sampling(
        self, /, statistic: str, columns: Labels | None = None, *args: Any,
        epsilon: Rational | Sequence[Rational] = ..., rates: Sequence[Rational] = ..., spend: Spend = 'noise',
        repetitions: int = 200, rng: RandomState = None, progress: bool | None = None, **options: Any
    ) -> pd.DataFrame: ...
    def compare_suppression(
        self, /, statistic: str, columns: Labels | None = None, *args: Any,
        epsilon: Rational | Sequence[Rational] = ..., spreads: Sequence[tuple[Rational, Rational]] = ...,
        distance: Distance | None = None, spend: Spend = 'noise', repetitions: int = 200,
        rng: RandomState = None, progress: bool | None = None, **options: Any
    ) -> pd.DataFrame: ...
    def corr(
        self, columns: Labels | None = None, *, epsilon: Rational, constraint: MatrixConstraint | None = None,
        delta: Rational = 0, mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def count(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'geometric',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def count(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'geometric',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def cov(
        self, columns: Labels | None = None, *, epsilon: Rational, constraint: MatrixConstraint | None = None,
        delta: Rational = 0, mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def crosstab(
        self, index: Labels, columns: Labels, *, epsilon: Rational, normalize: Normalize = False,
        margins: bool = False, margins_name: str | None = None, constraint: Constraint | None = None,
        branching: int = 2, weights: Hashable | None = None, values: Labels | None = None,
        aggfunc: Aggregate | Sequence[Aggregate] | None = None, dropna: bool = False, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def cut(
        self, column: Hashable, bins: Sequence[float] | None = None, *, right: bool = True,
        labels: Sequence[Any] | None = None, include_lowest: bool = False, freq: str | None = None
    ) -> ProtectedFrame: ...
    def describe(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def dr_ha(
        self, by: Labels | None = None, sensitive: Labels | None = None, epsilon: Rational = ...,
        measure: risk.Measure = 'local', average: risk.Average = 'cells',
        method: Literal['exact', 'published'] = 'exact', alpha: Alpha = None,
        sizes: risk.SizeModel = 'observed', *, overall: Overall = 'max', zero_truncated: bool = True,
        partial: bool = False, attack: risk.Attack = 'homogeneity', threshold: float = 0.5, draws: int = 1000,
        postprocess: Callable[[Any], Any] | None = None, rng: RandomState = None,
        progress: bool | None = None, mechanism: MechanismName = 'geometric', delta: Rational = 0,
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Bounding | None = None
    ) -> Confidential: ...
    @overload
    def dr_ha(
        self, by: Labels | None = None, sensitive: Labels | None = None, epsilon: Sequence[Rational] = ...,
        measure: risk.Measure = 'local', average: risk.Average = 'cells',
        method: Literal['exact', 'published'] = 'exact', alpha: Alpha = None,
        sizes: risk.SizeModel = 'observed', *, overall: Overall = 'max', zero_truncated: bool = True,
        partial: bool = False, attack: risk.Attack = 'homogeneity', threshold: float = 0.5, draws: int = 1000,
        postprocess: Callable[[Any], Any] | None = None, rng: RandomState = None,
        progress: bool | None = None, mechanism: MechanismName = 'geometric', delta: Rational = 0,
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Bounding | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def dr_ha(
        self, by: Labels | None = None, sensitive: Labels | None = None, epsilon: Rational = ...,
        measure: risk.Measure = 'local', average: None = ..., method: Literal['exact', 'published'] = 'exact',
        alpha: Alpha = None, sizes: risk.SizeModel = 'observed', *, overall: Overall = 'max',
        zero_truncated: bool = True, partial: bool = False, attack: risk.Attack = 'homogeneity',
        threshold: float = 0.5, draws: int = 1000, postprocess: Callable[[Any], Any] | None = None,
        rng: RandomState = None, progress: bool | None = None, mechanism: MechanismName = 'geometric',
        delta: Rational = 0, p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Bounding | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def dr_ha(
        self, by: Labels | None = None, sensitive: Labels | None = None, epsilon: Sequence[Rational] = ...,
        measure: risk.Measure = 'local', average: None = ..., method: Literal['exact', 'published'] = 'exact',
        alpha: Alpha = None, sizes: risk.SizeModel = 'observed', *, overall: Overall = 'max',
        zero_truncated: bool = True, partial: bool = False, attack: risk.Attack = 'homogeneity',
        threshold: float = 0.5, draws: int = 1000, postprocess: Callable[[Any], Any] | None = None,
        rng: RandomState = None, progress: bool | None = None, mechanism: MechanismName = 'geometric',
        delta: Rational = 0, p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Bounding | None = None
    ) -> pd.DataFrame: ...
    @overload
    def dr_ha(
        self, by: Labels | None = None, sensitive: Labels | None = None,
        epsilon: Rational | Sequence[Rational] | None = None, measure: risk.Measure = 'local',
        average: risk.Average | None = 'cells', method: Literal['monte_carlo'] = ..., alpha: Alpha = None,
        sizes: risk.SizeModel = 'observed', *, overall: Overall = 'max', zero_truncated: bool = True,
        partial: bool = False, attack: risk.Attack = 'homogeneity', threshold: float = 0.5, draws: int = 1000,
        postprocess: Callable[[Any], Any] | None = None, rng: RandomState = None,
        progress: bool | None = None, mechanism: MechanismName = 'geometric', delta: Rational = 0,
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Bounding | None = None
    ) -> pd.DataFrame: ...
    def drop(
        self, *, columns: Labels
    ) -> ProtectedFrame: ...
    def dropna(
        self, subset: Labels | None = None, *, how: Literal['any', 'all'] = 'any'
    ) -> ProtectedFrame: ...
    def fillna(
        self, value: Any
    ) -> ProtectedFrame: ...
    def filter(
        self, items: Labels | None = None, like: str | None = None, regex: str | None = None,
        axis: Literal[1, 'columns'] | None = None
    ) -> ProtectedFrame: ...
    def find_bounds(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        method: Literal['reach'] = 'reach', delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.DataFrame: ...
    def find_labels(
        self, columns: Labels, *, epsilon: Rational, delta: Rational = 0, counts: bool = False,
        max_labels: int = 1, rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame | pd.Series[Any]: ...
    def groupby(
        self, by: Labels | pd.Grouper, *, freq: str | None = None, dropna: bool = False
    ) -> GroupBy: ...
    @overload
    def histogram(
        self, column: Hashable, bins: int | Sequence[float] | None = None, *, epsilon: Rational,
        weights: Hashable | None = None, freq: str | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def histogram(
        self, column: Hashable, bins: int | Sequence[float] | None = None, *, epsilon: Rational,
        weights: Hashable | None = None, freq: str | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def homogeneity(
        self, by: Labels | None = None, sensitive: Labels | None = None, top: int = 10
    ) -> Homogeneity: ...
    def kmeans(
        self, columns: Labels | None, k: int, *, epsilon: Rational, delta: Rational = 0, iterations: int = 5,
        mechanism: RoundNoise = 'laplace', calibration: Calibration | None = None, rng: RandomState = None,
        release_id: str | None = None, progress: bool | None = None
    ) -> pd.DataFrame: ...
    def kmedian(
        self, columns: Labels | None, k: int, *, epsilon: Rational, delta: Rational = 0,
        steps: int | None = None, mechanism: WalkSelection = 'exponential', rng: RandomState = None,
        release_id: str | None = None, progress: bool | None = None
    ) -> pd.DataFrame: ...
    def marginals(
        self, columns: Labels | None = None, *, epsilon: Rational, order: int = 2, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', rng: RandomState = None, release_id: str | None = None
    ) -> dict[tuple[Hashable, ...], pd.Series[Any]]: ...
    @overload
    def max(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: Literal[1] = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def max(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def mean(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def mean(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def median(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: Literal[1] = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def median(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.DataFrame: ...
    def merge(
        self, right: pd.DataFrame | ProtectedFrame, how: Literal['left', 'inner'] = 'inner',
        on: Labels | None = None
    ) -> ProtectedFrame: ...
    @overload
    def min(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: Literal[1] = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def min(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def mode(
        self, columns: Labels, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: SelectionName = 'permute_and_flip', noise: SelectionNoise | None = None,
        calibration: SelectionCalibration | None = None, releases: Literal[1] = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def mode(
        self, columns: Labels, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: SelectionName = 'permute_and_flip', noise: SelectionNoise | None = None,
        calibration: SelectionCalibration | None = None, releases: int, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def nunique(
        self, columns: Labels, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def nunique(
        self, columns: Labels, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def ols(
        self, y: Hashable, X: Labels, *, weights: Hashable | None = None, ridge: Rational = 0,
        epsilon: Rational, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def ols(
        self, y: Hashable, X: Labels, *, weights: Hashable | None = None, ridge: Rational = 0,
        epsilon: Rational, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def partition(
        self, by: Hashable, *, epsilon: Rational, delta: Rational = 0, release_id: str | None = None
    ) -> dict[Hashable, ProtectedFrame]: ...
    def per_unit(
        self, columns: Mapping[Hashable, Any] | None = None,
        bounds: Mapping[Hashable, tuple[Rational, Rational]] | None = None
    ) -> ProtectedFrame: ...
    def pivot_table(
        self, values: Labels | None = None, index: Labels | None = None, columns: Labels | None = None,
        aggfunc: Aggregate | Sequence[Aggregate] = 'mean', *, epsilon: Rational, split: Split = None,
        margins: bool = False, margins_name: str | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def plan_releases(
        self, calls: Sequence[Any], *, delta: Rational = 0, accounting: Method = 'best'
    ) -> ReleasePlan: ...
    def pooled_cov(
        self, columns: Labels, *, by: Labels, epsilon: Rational, constraint: MatrixConstraint | None = None,
        delta: Rational = 0, mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def pooled_var(
        self, columns: Labels | None = None, *, by: Labels, epsilon: Rational, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def pooled_var(
        self, columns: Labels | None = None, *, by: Labels, epsilon: Rational, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def proportion(
        self, column: Hashable, value: Any = True, *, epsilon: Rational, weights: Hashable | None = None,
        delta: Rational = 0, mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def proportion(
        self, column: Hashable, value: Any = True, *, epsilon: Rational, weights: Hashable | None = None,
        delta: Rational = 0, mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def quality(
        self
    ) -> CuratorFrame: ...
    @overload
    def quantile(
        self, columns: Labels | None = None, q: Rational = 0.5, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, interval: bool | float | None = None,
        bounding: Literal['project'] | None = 'project', delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: Literal[1] = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def quantile(
        self, columns: Labels | None = None,
        q: Sequence[Rational] | np.ndarray[Any, Any] | pd.Index[Any] | pd.Series[Any] = ..., *,
        epsilon: Rational, split: Split = None, weights: Hashable | None = None,
        interval: bool | float | None = None, bounding: Literal['project'] | None = 'project',
        delta: Rational = 0, mechanism: Literal['exponential'] = 'exponential', releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def quantile(
        self, columns: Labels | None = None, q: Rational | Sequence[Rational] = 0.5, *, epsilon: Rational,
        split: Split = None, weights: Hashable | None = None, interval: bool | float | None = None,
        bounding: Literal['project'] | None = 'project', delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.DataFrame: ...
    def query(
        self, expr: str
    ) -> ProtectedFrame: ...
    def recode(
        self, column: Hashable, mapping: Mapping[Any, Any]
    ) -> ProtectedFrame: ...
    def remaining(
        self, delta: Rational = 0
    ) -> float: ...
    def rename(
        self, columns: Mapping[Hashable, Hashable]
    ) -> ProtectedFrame: ...
    def repeated_risk(
        self, publications: Sequence[Mapping[str, Any]], *, average: risk.Average = 'cells',
        spent: bool = False, accounting: Composition = 'basic', slack: Rational | None = None,
        progress: bool | None = None, measure: risk.Measure = 'local',
        method: Literal['exact', 'published'] = 'exact', alpha: Alpha = None,
        sizes: risk.SizeModel = 'observed', overall: Overall = 'max', zero_truncated: bool = True,
        partial: bool = False, attack: risk.Attack = 'homogeneity', mechanism: MechanismName = 'geometric',
        delta: Rational = 0, p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Bounding | None = None
    ) -> pd.DataFrame: ...
    def risk_curve(
        self, by: Labels | None = None, sensitive: Labels | None = None,
        epsilon: Rational | Sequence[Rational] | None = None, *, progress: bool | None = None,
        measure: risk.Measure = 'local', method: Literal['exact', 'published'] = 'exact', alpha: Alpha = None,
        sizes: risk.SizeModel = 'observed', overall: Overall = 'max', zero_truncated: bool = True,
        partial: bool = False, attack: risk.Attack = 'homogeneity', mechanism: MechanismName = 'geometric',
        delta: Rational = 0, p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Bounding | None = None
    ) -> pd.DataFrame: ...
    def sample(
        self, n: int | None = None, frac: Rational | Mapping[Hashable, Rational] | None = None, *,
        by: Hashable | None = None, spend: Spend = 'noise', rng: RandomState = None
    ) -> ProtectedFrame: ...
    def select(
        self, columns: Labels
    ) -> ProtectedFrame: ...
    @overload
    def split(
        self, epsilon: Rational, into: Mapping[Hashable, Rational]
    ) -> dict[Hashable, Fraction]: ...
    @overload
    def split(
        self, epsilon: Rational, into: int | Sequence[Rational]
    ) -> list[Fraction]: ...
    @overload
    def std(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def std(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def sum(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def sum(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def suppress_outliers(
        self, columns: Labels, m: Rational, M: Rational, *, distance: Distance = 'absolute',
        spend: Spend = 'noise', rng: RandomState = None, progress: bool | None = None
    ) -> ProtectedFrame: ...
    @overload
    def top_k(
        self, columns: list[Any] | pd.Index[Any], k: int, *, epsilon: Rational, split: Split = None,
        delta: Rational = 0, mechanism: SelectionName = 'permute_and_flip',
        noise: SelectionNoise | None = None, calibration: SelectionCalibration | None = None,
        releases: int = 1, rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def top_k(
        self, columns: Hashable, k: int, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: SelectionName = 'permute_and_flip', noise: SelectionNoise | None = None,
        calibration: SelectionCalibration | None = None, releases: Literal[1] = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def top_k(
        self, columns: Labels, k: int, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: SelectionName = 'permute_and_flip', noise: SelectionNoise | None = None,
        calibration: SelectionCalibration | None = None, releases: int, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.DataFrame: ...
    def tradeoff(
        self, by: Labels | None = None, sensitive: Labels | None = None,
        epsilon: Rational | Sequence[Rational] | None = None, *, max_risk: float = 0.4, max_tvd: float = 0.1,
        order: int | Sequence[int] = ..., average: risk.Average = 'cells', draws: int = 200,
        rng: RandomState = None, progress: bool | None = None, measure: risk.Measure = 'local',
        method: Literal['exact', 'published'] = 'exact', alpha: Alpha = None,
        sizes: risk.SizeModel = 'observed', overall: Overall = 'max', zero_truncated: bool = True,
        partial: bool = False, attack: risk.Attack = 'homogeneity', mechanism: MechanismName = 'geometric',
        delta: Rational = 0, p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Bounding | None = None
    ) -> pd.DataFrame: ...
    def use(
        self, released: pd.DataFrame | pd.Series[Any], *, other: str | int | None = '(other)'
    ) -> ProtectedFrame: ...
    def utility(
        self, columns: Labels | None = None, order: int | Sequence[int] = ...,
        epsilon: Rational | Sequence[Rational] = ..., *, draws: int = 200, rng: RandomState = None,
        progress: bool | None = None, mechanism: MechanismName = 'geometric', delta: Rational = 0,
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Bounding | None = None
    ) -> pd.DataFrame: ...
    @overload
    def value_counts(
        self, columns: Labels, *, epsilon: Rational, normalize: bool = False, sort: bool = True,
        dropna: bool = False, constraint: Constraint | None = None, branching: int = 2,
        weights: Hashable | None = None, freq: str | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def value_counts(
        self, columns: Labels, *, epsilon: Rational, normalize: bool = False, sort: bool = True,
        dropna: bool = False, constraint: Constraint | None = None, branching: int = 2,
        weights: Hashable | None = None, freq: str | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def var(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def var(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...

class PlanMethods:
    def corr(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None,
        constraint: MatrixConstraint | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def cov(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None,
        constraint: MatrixConstraint | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def ols(
        self, y: Hashable, X: Labels, *, weights: Hashable | None = None, ridge: Rational = 0,
        epsilon: Levels | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def pooled_cov(
        self, columns: Labels, *, by: Labels, epsilon: Levels | None = None,
        constraint: MatrixConstraint | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def pooled_var(
        self, columns: Labels | None = None, *, by: Labels, epsilon: Levels | None = None,
        delta: Rational = 0, mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def count(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'geometric',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def histogram(
        self, column: Hashable, bins: int | Sequence[float] | None = None, *, epsilon: Levels | None = None,
        weights: Hashable | None = None, freq: str | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def nunique(
        self, columns: Labels, *, epsilon: Levels | None = None, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def value_counts(
        self, columns: Labels, *, epsilon: Levels | None = None, normalize: bool = False, sort: bool = True,
        dropna: bool = False, constraint: Constraint | None = None, branching: int = 2,
        weights: Hashable | None = None, freq: str | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def agg(
        self, func: Aggregates | Selection | Mapping[Any, Selection], columns: Labels | None = None, *,
        epsilon: Levels | None = None, split: Split = None, weights: Hashable | None = None,
        delta: Rational = 0, mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def describe(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        delta: Rational = 0, mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def mean(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def pivot_table(
        self, values: Labels | None = None, index: Labels | None = None, columns: Labels | None = None,
        aggfunc: Aggregate | Sequence[Aggregate] = 'mean', *, epsilon: Levels | None = None,
        split: Split = None, margins: bool = False, margins_name: str | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def proportion(
        self, column: Hashable, value: Any = True, *, epsilon: Levels | None = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def std(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        delta: Rational = 0, mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def sum(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def var(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        delta: Rational = 0, mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def crosstab(
        self, index: Labels, columns: Labels, *, epsilon: Levels | None = None, normalize: Normalize = False,
        margins: bool = False, margins_name: str | None = None, constraint: Constraint | None = None,
        branching: int = 2, weights: Hashable | None = None, values: Labels | None = None,
        aggfunc: Aggregate | Sequence[Aggregate] | None = None, dropna: bool = False, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def max(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int = 1, rows: int | None = None,
        ranks: Ranks | None = None, level: float = 0.95
    ) -> pd.DataFrame: ...
    def median(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        weights: Hashable | None = None, interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int = 1, rows: int | None = None,
        ranks: Ranks | None = None, level: float = 0.95
    ) -> pd.DataFrame: ...
    def min(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int = 1, rows: int | None = None,
        ranks: Ranks | None = None, level: float = 0.95
    ) -> pd.DataFrame: ...
    def quantile(
        self, columns: Labels | None = None, q: Rational | Sequence[Rational] = 0.5, *,
        epsilon: Levels | None = None, split: Split = None, weights: Hashable | None = None,
        interval: bool | float | None = None, bounding: Literal['project'] | None = 'project',
        delta: Rational = 0, mechanism: Literal['exponential'] = 'exponential', releases: int = 1,
        rows: int | None = None, ranks: Ranks | None = None, level: float = 0.95
    ) -> pd.DataFrame: ...
    def find_bounds(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        method: Literal['reach'] = 'reach', delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', rows: int | None = None
    ) -> pd.DataFrame: ...

class BatchMethods:
    def corr(
        self, columns: Labels | None = None, *, epsilon: Rational, constraint: MatrixConstraint | None = None,
        delta: Rational = 0, mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    def cov(
        self, columns: Labels | None = None, *, epsilon: Rational, constraint: MatrixConstraint | None = None,
        delta: Rational = 0, mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def ols(
        self, y: Hashable, X: Labels, *, weights: Hashable | None = None, ridge: Rational = 0,
        epsilon: Rational, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.Series[Any]]: ...
    @overload
    def ols(
        self, y: Hashable, X: Labels, *, weights: Hashable | None = None, ridge: Rational = 0,
        epsilon: Rational, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    def pooled_cov(
        self, columns: Labels, *, by: Labels, epsilon: Rational, constraint: MatrixConstraint | None = None,
        delta: Rational = 0, mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def pooled_var(
        self, columns: Labels | None = None, *, by: Labels, epsilon: Rational, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.Series[Any]]: ...
    @overload
    def pooled_var(
        self, columns: Labels | None = None, *, by: Labels, epsilon: Rational, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def count(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'geometric',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.Series[Any]]: ...
    @overload
    def count(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'geometric',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def histogram(
        self, column: Hashable, bins: int | Sequence[float] | None = None, *, epsilon: Rational,
        weights: Hashable | None = None, freq: str | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.Series[Any]]: ...
    @overload
    def histogram(
        self, column: Hashable, bins: int | Sequence[float] | None = None, *, epsilon: Rational,
        weights: Hashable | None = None, freq: str | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def nunique(
        self, columns: Labels, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.Series[Any]]: ...
    @overload
    def nunique(
        self, columns: Labels, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def value_counts(
        self, columns: Labels, *, epsilon: Rational, normalize: bool = False, sort: bool = True,
        dropna: bool = False, constraint: Constraint | None = None, branching: int = 2,
        weights: Hashable | None = None, freq: str | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.Series[Any]]: ...
    @overload
    def value_counts(
        self, columns: Labels, *, epsilon: Rational, normalize: bool = False, sort: bool = True,
        dropna: bool = False, constraint: Constraint | None = None, branching: int = 2,
        weights: Hashable | None = None, freq: str | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def agg(
        self, func: Aggregate | Mapping[Any, Aggregate], columns: Labels | None = None, *, epsilon: Rational,
        split: Split = None, weights: Hashable | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.Series[Any]]: ...
    @overload
    def agg(
        self, func: Sequence[Aggregate] | Mapping[Any, Sequence[Aggregate]], columns: Labels | None = None, *,
        epsilon: Rational, split: Split = None, weights: Hashable | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def agg(
        self, func: Aggregates | Selection | Mapping[Any, Selection], columns: Labels | None = None, *,
        epsilon: Rational, split: Split = None, weights: Hashable | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    def describe(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def mean(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.Series[Any]]: ...
    @overload
    def mean(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    def pivot_table(
        self, values: Labels | None = None, index: Labels | None = None, columns: Labels | None = None,
        aggfunc: Aggregate | Sequence[Aggregate] = 'mean', *, epsilon: Rational, split: Split = None,
        margins: bool = False, margins_name: str | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def proportion(
        self, column: Hashable, value: Any = True, *, epsilon: Rational, weights: Hashable | None = None,
        delta: Rational = 0, mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.Series[Any]]: ...
    @overload
    def proportion(
        self, column: Hashable, value: Any = True, *, epsilon: Rational, weights: Hashable | None = None,
        delta: Rational = 0, mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def std(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.Series[Any]]: ...
    @overload
    def std(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def sum(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.Series[Any]]: ...
    @overload
    def sum(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def var(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.Series[Any]]: ...
    @overload
    def var(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    def crosstab(
        self, index: Labels, columns: Labels, *, epsilon: Rational, normalize: Normalize = False,
        margins: bool = False, margins_name: str | None = None, constraint: Constraint | None = None,
        branching: int = 2, weights: Hashable | None = None, values: Labels | None = None,
        aggfunc: Aggregate | Sequence[Aggregate] | None = None, dropna: bool = False, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    def kmeans(
        self, columns: Labels | None, k: int, *, epsilon: Rational, delta: Rational = 0, iterations: int = 5,
        mechanism: RoundNoise = 'laplace', calibration: Calibration | None = None, rng: RandomState = None,
        release_id: str | None = None, progress: bool | None = None
    ) -> Pending[pd.DataFrame]: ...
    def kmedian(
        self, columns: Labels | None, k: int, *, epsilon: Rational, delta: Rational = 0,
        steps: int | None = None, mechanism: WalkSelection = 'exponential', rng: RandomState = None,
        release_id: str | None = None, progress: bool | None = None
    ) -> Pending[pd.DataFrame]: ...
    def find_bounds(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        method: Literal['reach'] = 'reach', delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', rng: RandomState = None,
        release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    def find_labels(
        self, columns: Labels, *, epsilon: Rational, delta: Rational = 0, counts: bool = False,
        max_labels: int = 1, rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame | pd.Series[Any]]: ...
    @overload
    def max(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: Literal[1] = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> Pending[pd.Series[Any]]: ...
    @overload
    def max(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int, rng: RandomState = None,
        release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def median(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: Literal[1] = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> Pending[pd.Series[Any]]: ...
    @overload
    def median(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int, rng: RandomState = None,
        release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def min(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: Literal[1] = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> Pending[pd.Series[Any]]: ...
    @overload
    def min(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int, rng: RandomState = None,
        release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def mode(
        self, columns: Labels, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: SelectionName = 'permute_and_flip', noise: SelectionNoise | None = None,
        calibration: SelectionCalibration | None = None, releases: Literal[1] = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> Pending[pd.Series[Any]]: ...
    @overload
    def mode(
        self, columns: Labels, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: SelectionName = 'permute_and_flip', noise: SelectionNoise | None = None,
        calibration: SelectionCalibration | None = None, releases: int, rng: RandomState = None,
        release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def quantile(
        self, columns: Labels | None = None, q: Rational = 0.5, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, interval: bool | float | None = None,
        bounding: Literal['project'] | None = 'project', delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: Literal[1] = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> Pending[pd.Series[Any]]: ...
    @overload
    def quantile(
        self, columns: Labels | None = None,
        q: Sequence[Rational] | np.ndarray[Any, Any] | pd.Index[Any] | pd.Series[Any] = ..., *,
        epsilon: Rational, split: Split = None, weights: Hashable | None = None,
        interval: bool | float | None = None, bounding: Literal['project'] | None = 'project',
        delta: Rational = 0, mechanism: Literal['exponential'] = 'exponential', releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def quantile(
        self, columns: Labels | None = None, q: Rational | Sequence[Rational] = 0.5, *, epsilon: Rational,
        split: Split = None, weights: Hashable | None = None, interval: bool | float | None = None,
        bounding: Literal['project'] | None = 'project', delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int, rng: RandomState = None,
        release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def top_k(
        self, columns: list[Any] | pd.Index[Any], k: int, *, epsilon: Rational, split: Split = None,
        delta: Rational = 0, mechanism: SelectionName = 'permute_and_flip',
        noise: SelectionNoise | None = None, calibration: SelectionCalibration | None = None,
        releases: int = 1, rng: RandomState = None, release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...
    @overload
    def top_k(
        self, columns: Hashable, k: int, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: SelectionName = 'permute_and_flip', noise: SelectionNoise | None = None,
        calibration: SelectionCalibration | None = None, releases: Literal[1] = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> Pending[pd.Series[Any]]: ...
    @overload
    def top_k(
        self, columns: Labels, k: int, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: SelectionName = 'permute_and_flip', noise: SelectionNoise | None = None,
        calibration: SelectionCalibration | None = None, releases: int, rng: RandomState = None,
        release_id: str | None = None
    ) -> Pending[pd.DataFrame]: ...

class GroupMethods:
    @overload
    def count(
        self, *, epsilon: Rational, weights: Hashable | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def count(
        self, *, epsilon: Rational, weights: Hashable | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def size(
        self, *, epsilon: Rational, delta: Rational = 0, mechanism: MechanismName = 'geometric',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def size(
        self, *, epsilon: Rational, delta: Rational = 0, mechanism: MechanismName = 'geometric',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def sum(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def mean(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def var(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def std(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def proportion(
        self, column: Hashable = None, value: Any = True, *, epsilon: Rational,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def describe(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def agg(
        self, /, func: Aggregates | Selection | Mapping[Any, Selection] | None = None,
        columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None,
        **named: tuple[Hashable, Aggregate | Literal['size']]
    ) -> pd.DataFrame: ...
    @overload
    def value_counts(
        self, columns: Labels | None = None, *, epsilon: Rational, normalize: bool = False, sort: bool = True,
        dropna: bool = False, weights: Hashable | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def value_counts(
        self, columns: Labels | None = None, *, epsilon: Rational, normalize: bool = False, sort: bool = True,
        dropna: bool = False, weights: Hashable | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def nunique(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def mode(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: SelectionName = 'permute_and_flip', noise: SelectionNoise | None = None,
        calibration: SelectionCalibration | None = None, releases: int = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.DataFrame: ...
    def quantile(
        self, columns: Labels | None = None, q: Rational | Sequence[Rational] = 0.5, *, epsilon: Rational,
        split: Split = None, interval: bool | float | None = None,
        bounding: Literal['project'] | None = 'project', delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.DataFrame: ...
    def median(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.DataFrame: ...
    def min(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.DataFrame: ...
    def max(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.DataFrame: ...

class SeriesGroupMethods:
    @overload
    def count(
        self, *, epsilon: Rational, weights: Hashable | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def count(
        self, *, epsilon: Rational, weights: Hashable | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def size(
        self, *, epsilon: Rational, delta: Rational = 0, mechanism: MechanismName = 'geometric',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def size(
        self, *, epsilon: Rational, delta: Rational = 0, mechanism: MechanismName = 'geometric',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def sum(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def sum(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def mean(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def mean(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def var(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def var(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def std(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def std(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def proportion(
        self, column: Hashable = None, value: Any = True, *, epsilon: Rational,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    def describe(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def agg(
        self, /, func: Aggregate, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None,
        **named: tuple[Hashable, Aggregate | Literal['size']]
    ) -> pd.Series[Any]: ...
    @overload
    def agg(
        self, /, func: Sequence[Aggregate], columns: Labels | None = None, *, epsilon: Rational,
        split: Split = None, weights: Hashable | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rng: RandomState = None, release_id: str | None = None,
        **named: tuple[Hashable, Aggregate | Literal['size']]
    ) -> pd.DataFrame: ...
    @overload
    def agg(
        self, /, func: Aggregates | Selection | Mapping[Any, Selection] | None = None,
        columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None,
        **named: tuple[Hashable, Aggregate | Literal['size']]
    ) -> pd.DataFrame: ...
    @overload
    def value_counts(
        self, columns: Labels | None = None, *, epsilon: Rational, normalize: bool = False, sort: bool = True,
        dropna: bool = False, weights: Hashable | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def value_counts(
        self, columns: Labels | None = None, *, epsilon: Rational, normalize: bool = False, sort: bool = True,
        dropna: bool = False, weights: Hashable | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def nunique(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: Literal[1] = 1,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def nunique(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: BoundingName | None = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int,
        rng: RandomState = None, release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def mode(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: SelectionName = 'permute_and_flip', noise: SelectionNoise | None = None,
        calibration: SelectionCalibration | None = None, releases: Literal[1] = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def mode(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None, delta: Rational = 0,
        mechanism: SelectionName = 'permute_and_flip', noise: SelectionNoise | None = None,
        calibration: SelectionCalibration | None = None, releases: int, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def quantile(
        self, columns: Labels | None = None, q: Rational | Sequence[Rational] = 0.5, *, epsilon: Rational,
        split: Split = None, interval: bool | float | None = None,
        bounding: Literal['project'] | None = 'project', delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: Literal[1] = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def quantile(
        self, columns: Labels | None = None, q: Rational | Sequence[Rational] = 0.5, *, epsilon: Rational,
        split: Split = None, interval: bool | float | None = None,
        bounding: Literal['project'] | None = 'project', delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def median(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: Literal[1] = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def median(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def min(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: Literal[1] = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def min(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.DataFrame: ...
    @overload
    def max(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: Literal[1] = 1, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.Series[Any]: ...
    @overload
    def max(
        self, columns: Labels | None = None, *, epsilon: Rational, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int, rng: RandomState = None,
        release_id: str | None = None
    ) -> pd.DataFrame: ...

class GroupPlanMethods:
    def count(
        self, *, epsilon: Levels | None = None, weights: Hashable | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def sum(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def mean(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def var(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        delta: Rational = 0, mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def std(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        delta: Rational = 0, mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def proportion(
        self, column: Hashable = None, value: Any = True, *, epsilon: Levels | None = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def describe(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        delta: Rational = 0, mechanism: MechanismName = 'laplace', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def agg(
        self, func: Aggregates | Selection | Mapping[Any, Selection] | None = None,
        columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        weights: Hashable | None = None, delta: Rational = 0, mechanism: MechanismName = 'laplace',
        p: Rational | None = None, calibration: CalibrationName | None = None,
        bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def value_counts(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, normalize: bool = False,
        sort: bool = True, dropna: bool = False, weights: Hashable | None = None, delta: Rational = 0,
        mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def nunique(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        delta: Rational = 0, mechanism: MechanismName = 'geometric', p: Rational | None = None,
        calibration: CalibrationName | None = None, bounding: Boundings = 'project',
        bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None = None, releases: int = 1,
        rows: int | None = None, at: float | None = None, plus_minus: Margins | None = None,
        level: float = 0.95
    ) -> pd.DataFrame: ...
    def quantile(
        self, columns: Labels | None = None, q: Rational | Sequence[Rational] = 0.5, *,
        epsilon: Levels | None = None, split: Split = None, interval: bool | float | None = None,
        bounding: Literal['project'] | None = 'project', delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int = 1, rows: int | None = None,
        ranks: Ranks | None = None, level: float = 0.95
    ) -> pd.DataFrame: ...
    def median(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int = 1, rows: int | None = None,
        ranks: Ranks | None = None, level: float = 0.95
    ) -> pd.DataFrame: ...
    def min(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int = 1, rows: int | None = None,
        ranks: Ranks | None = None, level: float = 0.95
    ) -> pd.DataFrame: ...
    def max(
        self, columns: Labels | None = None, *, epsilon: Levels | None = None, split: Split = None,
        interval: bool | float | None = None, delta: Rational = 0,
        mechanism: Literal['exponential'] = 'exponential', releases: int = 1, rows: int | None = None,
        ranks: Ranks | None = None, level: float = 0.95
    ) -> pd.DataFrame: ...
