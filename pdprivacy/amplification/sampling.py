"""Parts of the records: declared groups, a secret random sample, and the records left by suppression."""

from __future__ import annotations

import math
import os
import threading
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from pdprivacy.amplification.suppression import Distance, keep_probabilities, outlier_scores
from pdprivacy.amplification.suppression.amplification import (
    Amplification,
    Outliers,
    Poisson,
    WithoutReplacement,
    check_rate,
    check_spread,
    outlier_floor,
)
from pdprivacy.checks import one_of, whole
from pdprivacy.core import noise
from pdprivacy.core.accounting import Event, Events
from pdprivacy.core.gate.execute import charge, noting_charges
from pdprivacy.core.gate.facts import Facts, Step
from pdprivacy.core.gate.parts import (
    AlikeCoins,
    Coins,
    LabelCoins,
    SomeOf,
    WeightedCoins,
    divided,
    drawn,
)
from pdprivacy.core.gate.spec import Price, columns_of, label_with_steps
from pdprivacy.core.noise import RandomState
from pdprivacy.core.privacy import Approx, Pure, Rational, loss, show
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import BudgetError, OmissionWarning, ParameterError, TableTooLargeError, got, warn
from pdprivacy.frames import ProtectedFrame
from pdprivacy.hints.examples import EXAMPLES
from pdprivacy.ledger import Budget, Entry
from pdprivacy.text.numbers import percent
from pdprivacy.types import Floats, Integers, Labels

HUNDREDTH = Fraction(1, 100)

MOST_GROUPS = 10_000

RISK_OF_GROUPS = "The budgets of the groups show the risks of their releases."
"""Why the budget of the whole does not know the risk of what the groups release."""


@noting_charges()
def partition(
    protected: Facts,
    by: Hashable,
    *,
    epsilon: Rational,
    delta: Rational = 0,
    release_id: str | None = None,
) -> dict[Hashable, ProtectedFrame]:
    """Split the records by the declared labels of a column into protected frames with their own budgets.

    The frame is charged the budget of one group, once. The groups are disjoint and declared, so an added or
    removed record is in one group, and releases of the other groups do not depend on it (parallel
    composition; Dwork, Roth 2014, Section 3.5; McSherry 2009, Theorem 4). Under "replace_one" a record may
    move from one group to another, so twice the budget of a group is charged. Where a unit may have several
    records, the charge is this budget times the number of groups that the unit can touch. Budget that a group
    does not spend is not refunded. The budgets of the groups are kept in memory, even if the budget of the
    frame is in a ledger.

    Parameters
    ----------
    by : a column with declared labels, or with bins.
    epsilon, delta : the budget of each group. For a secret part with ``spend="noise"`` they are the charge,
        and each group has the larger budget that this allows.
    release_id : as for a release.

    Returns a dictionary from each label, in declared order, to its frame. If the column may hold nulls, the
    key None has the records with a null.

    Raises
    ------
    DeclarationError : a column without declared cells.
    BudgetExceeded : the charge is more than what is left; nothing is charged.

    >>> import pandas as pd, pandera.pandas as pa
    >>> schema = pa.DataFrameSchema({"member": pa.Column(bool, metadata={"dp": {}})})
    >>> private = pd.DataFrame({"member": [True, False]}).dp.protect(schema, epsilon=1)
    >>> groups = private.dp.partition("member", epsilon=0.5)
    >>> counts = {label: group.dp.count(epsilon=0.5) for label, group in groups.items()}
    >>> private.dp.budget.left
    (0.5, 0.0)
    """
    columns = columns_of(protected, [by] if isinstance(by, tuple) else by, "partition")
    if len(columns) != 1:
        raise ParameterError("'by' must be one column.", EXAMPLES["partition"])
    if columns[0].cells("partition") > MOST_GROUPS:
        raise TableTooLargeError(
            f"The column has more than {MOST_GROUPS} declared labels.",
            "groupby(...) releases of many groups at once.",
        )
    times = min(columns[0].cells("partition"), protected.scope.l0)
    total = loss(epsilon, delta).times(times)
    label = label_with_steps(f"partition by {columns[0].name}", protected.filters, protected.brief)

    def price_of(cost: Pure | Approx) -> Price:
        each = loss(cost.epsilon / times, cost.delta / times)
        return Price(each, "", [(Event(each), times)], times=times)

    price, entry = charge(protected, total, price_of, label, release_id)
    groups = divided(protected, columns[0], lambda: Budget.with_total(price.cost, of_group=True))
    sensitive = any(column.role == "sensitive" for column in protected.domain.columns)
    protected.budget.answered(entry.number, RISK_OF_GROUPS if sensitive else None)
    return {label: ProtectedFrame(group) for label, group in groups.items()}


def sample(
    protected: Facts,
    n: int | None = None,
    frac: Rational | Mapping[Hashable, Rational] | None = None,
    *,
    by: Hashable | None = None,
    spend: Spend = "noise",
    rng: RandomState = None,
) -> ProtectedFrame:
    """Draw a secret random sample, as `DataFrame.sample`; its releases are amplified.

    Under "add_remove", pass ``frac``: each record is kept independently with this probability (Poisson
    sampling). Under "replace_one", pass ``n``: this number of records is kept, without replacement. Where a
    column names the unit, units are sampled with all their records.

    Releases of the sample describe the sample: its count is about ``frac`` times the count of all records.
    The losses of its releases add up to an epsilon of the sample, and the whole pays
    ln(1 + rate (e^epsilon - 1)) for this sum. The amplification applies to the sum and not to each release,
    because the sample is drawn once. The sample must stay secret.

    Parameters
    ----------
    n : the number of records, under "replace_one".
    frac : the share of the records, in (0, 1], under "add_remove". With ``by``, a mapping from each declared
        label of this column to the share of its records (the key None for nulls, where the column may hold
        them; undeclared values have the least share). The largest share is the rate of the amplification.
    by : a column with declared labels, which must be that of the record alone: one record per unit.
    spend : how the amplification is used. "noise": a release pays the epsilon it states, and has the
        noise of a larger epsilon: ``ln((e^epsilon - 1 + rate) / rate)``, with ``delta / rate``, for the first
        release. "epsilon": the stated epsilon calibrates the noise, and the release pays less.
    rng : as for a release.

    Warns (OmissionWarning), because sampling nearly always loses: the sampling error exceeds the reduction of
    the noise. `compare_sampling` measures both.

    Raises
    ------
    ParameterError : ``n`` or ``frac`` is out of range or does not fit the neighbours or the labels of ``by``,
        or ``n`` is given where the number of records is private.
    DeclarationError : ``by`` has no declared labels.
    BudgetError : a budget whose accounting is not "basic", which cannot count releases of one sample.

    Source: Li, Qardaji, Su (2012), Theorem 1; Balle, Barthe, Gaboardi (2018), Theorems 8 and 9; shares by
    label: "The adverse effects of omitting records in differential privacy", Theorem 5.3.

    >>> import pandas as pd, pandera.pandas as pa
    >>> schema = pa.DataFrameSchema({"member": pa.Column(bool, metadata={"dp": {}})})
    >>> private = pd.DataFrame({"member": [True, False] * 50}).dp.protect(schema, epsilon=1)
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     half = private.dp.sample(frac=0.5)
    >>> half.dp.count(epsilon=0.5).dp.metadata.lineage
    ['sample(frac=0.5)']
    """
    one_of(spend, "spend", get_args(Spend))
    source = noise.source(rng)
    replaced = protected.unit.neighbors == "replace_one"
    if (n is None) == (frac is None):
        raise ParameterError(
            "'sample' needs either 'n' or 'frac'.", "sample(n=1000)." if replaced else "sample(frac=0.3)."
        )
    if replaced and n is None:
        raise ParameterError(
            "'frac' is for neighbors='add_remove': under 'replace_one' a sample whose size tells how many "
            "records were drawn amplifies nothing.",
            "sample(n=1000).",
        )
    if not replaced and frac is None:
        raise ParameterError(
            "'n' is for neighbors='replace_one': under 'add_remove' an added record replaces another record "
            "in the sample.",
            "sample(frac=0.3).",
        )
    _check_part(protected, "sample")
    law: Amplification
    coins: Coins
    if by is not None or isinstance(frac, Mapping):
        column, rates = _rates_by_label(protected, frac, by)
        rate, least = max(rates), min(rates)
        shares = show(rate) if least == rate else f"{show(least)} to {show(rate)}"
        law, text, rows = Poisson(rate), f"sample(frac={shares}, by={column.name!r})", None
        coins = LabelCoins(column, [*rates, least])
    elif frac is not None:
        rate = least = check_rate(frac, "frac")
        law, text, rows = Poisson(rate), f"sample(frac={show(rate)})", None
        coins = AlikeCoins(rate)
    else:
        size, total = _sample_size(protected, n)
        rate = least = Fraction(size, total)
        law, text, rows = WithoutReplacement(rate), f"sample(n={size})", size
        coins = SomeOf(size)
    if least < 1:
        _warn_of_sampling(rate, least)
    step = Step(text, None, law=str(law))
    return ProtectedFrame(drawn(protected, coins, source, step, Secret(law, spend), rows=rows))


def suppress_outliers(
    protected: Facts,
    columns: Labels,
    m: Rational,
    M: Rational,
    *,
    distance: Distance = "absolute",
    spend: Spend = "noise",
    rng: RandomState = None,
    progress: bool | None = None,
) -> ProtectedFrame:
    """Suppress records at random, with a higher probability for outliers; the result is secret.

    Each record is left out independently with probability ``m + (M - m) score``. The score of a record is its
    mean distance to all records, in [0, 1]: the "absolute" difference for one column of numbers, "discrete"
    (0 or 1) for one column of labels, the "euclidean" distance for several columns of numbers. Numbers are
    scaled to [0, 1] by their declared bounds.

    The probability of keeping a record depends on all other records, which costs privacy. Releases pay
    `pdprivacy.suppression.outlier_epsilon` of the sum of their losses. This is at least `outlier_floor`
    (m, M), however small the sum, and exceeds the epsilon of the same releases of all records unless M is
    near m. With m = M this is Poisson sampling at rate 1 - m. The records that are left must stay secret. A
    release with a delta must be the only release.

    Parameters
    ----------
    columns : one column, or several for "euclidean"; without nulls.
    m, M : the least and the largest probability, in [0.01, 0.99], in whole hundredths; m is at most M.
    distance : as above.
    spend : how the change of the loss is used, as in `sample`.
    rng : as for a release.
    progress : whether to show a bar for "euclidean", whose time grows with the square of the number of
        records; None: in long calls.

    Warns (OmissionWarning), because suppression nearly always loses; `compare_suppression` measures the loss.

    Raises
    ------
    ParameterError : neighbours other than "add_remove", several records per unit, ``m`` or ``M`` out of
        range, or a column that does not fit the distance.
    BudgetError : a budget whose accounting is not "basic".

    Source: "The adverse effects of omitting records in differential privacy", Theorem 5.4.

    >>> import warnings
    >>> import pandas as pd, pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=120),))
    >>> private = pdprivacy.protect(pd.DataFrame({"age": [31, 54] * 500}), domain, epsilon=10)
    >>> with warnings.catch_warnings(action="ignore"):
    ...     part = private.dp.suppress_outliers("age", 0.5, 0.6, rng=1)
    >>> part.dp.lineage["step"].tolist()
    ["suppress_outliers('age', m=0.5, M=0.6, distance='absolute')"]
    """
    one_of(distance, "distance", get_args(Distance))
    one_of(spend, "spend", get_args(Spend))
    source = noise.source(rng)
    low, high = spread_of(m, M)
    refuse_units(protected)
    _check_part(protected, "suppress_outliers")
    chosen = columns_of(protected, columns, "suppress_outliers")
    limits = limits_of(chosen, distance, "suppress_outliers")
    coins = OutlierScores(chosen, distance, limits, progress).coins(low, high)
    law = Outliers(low, high)
    _warn_of_suppression(law)
    names = [column.name for column in chosen]
    text = f"{names[0] if len(names) == 1 else names!r}, m={show(low)}, M={show(high)}, distance={distance!r}"
    step = Step(f"suppress_outliers({text})", None, law=str(law))
    return ProtectedFrame(drawn(protected, coins, source, step, Secret(law, spend)))


def _check_part(protected: Facts, method: str) -> None:
    protected.refuse_other_engines_for(method)
    if protected.in_secret:
        raise ParameterError(
            f"{method!r} cannot be used on what is a secret part already.",
            "draw one part, from the whole frame.",
        )
    if protected.budget.account.terms.rule.in_rho:
        raise BudgetError(
            "The losses of one secret part add up by sums alone, and this budget counts otherwise.",
            'a budget in epsilon with accounting="basic".',
        )


def _rates_by_label(protected: Facts, frac: Any, by: Any) -> tuple[Column, list[Fraction]]:
    """Return the column and the rate of each of its declared cells."""
    if by is None or not isinstance(frac, Mapping):
        raise ParameterError(
            "'by' and a 'frac' that maps its labels to shares go together.",
            "sample(frac={LABEL: 0.5, OTHER_LABEL: 0.1}, by=COLUMN).",
        )
    if protected.unit.column is not None or protected.scope.contribution > 1:
        raise ParameterError(
            "Shares by label are for one record per unit: the records of a unit may have several labels.",
            "sample(frac=0.3).",
        )
    columns = columns_of(protected, [by] if isinstance(by, tuple) else by, "sample")
    if len(columns) != 1:
        raise ParameterError("'by' must be one column.")
    cells = [*columns[0].labels("sample"), *([None] if columns[0].nullable else [])]
    if len(frac) != len(cells) or any(cell not in frac for cell in cells):
        shares = ", ".join(f"{cell!r}: 0.5" for cell in cells[:3]) + (", ..." if len(cells) > 3 else "")
        nulls = ", and to None for nulls" if columns[0].nullable else ""
        raise ParameterError(
            f"'frac' must give a share to each declared label of column {columns[0].name!r}{nulls}.",
            f"sample(frac={{{shares}}}, by={by!r}).",
        )
    return columns[0], [check_rate(frac[cell], "frac") for cell in cells]


def _sample_size(protected: Facts, n: Any) -> tuple[int, int]:
    """Return the number of sampled records and the number of all records."""
    size = whole(n, "n", 1)
    scope = protected.scope
    if scope.rows is None or scope.filtered or protected.unit.column is not None:
        raise ParameterError(
            "'n' needs a public number of records, and the number of these records is private.",
            "sample the frame before it is filtered.",
        )
    if size > scope.rows:
        raise ParameterError(f"'n' must be at most the number of records (got {got(n)}).")
    return size, scope.rows


def spread_of(m: Rational, M: Rational) -> tuple[Fraction, Fraction]:
    """Return the least and the largest probability of suppression; refuse pairs without a proved bound."""
    low, high = check_spread(m, M)
    if low < high and (low % HUNDREDTH or high % HUNDREDTH):
        raise ParameterError(
            "'m' and 'M' must be whole hundredths: between them no bound is proved.", "m=0.1, M=0.2."
        )
    return low, high


def refuse_units(protected: Facts) -> None:
    """Refuse neighbours for which no bound of the loss of suppression is known."""
    if protected.unit.neighbors == "replace_one" or protected.scope.contribution > 1:
        raise ParameterError(
            "Suppression of outliers is for neighbors='add_remove' and one record per unit: no bound of "
            "its loss is known otherwise.",
            "sample(n=1000), or protect(..., neighbors='add_remove').",
        )


def limits_of(columns: Sequence[Column], distance: Distance, method: str) -> list[tuple[float, float]]:
    """Return the bounds that scale numbers to [0, 1]; refuse columns that do not fit the distance."""
    if not columns or (distance != "euclidean" and len(columns) != 1):
        raise ParameterError(f"distance={distance!r} is for one column.", 'distance="euclidean" for several.')
    for column in columns:
        if column.nullable:
            raise ParameterError(
                f"Column {column.name!r} may hold nulls, whose distance is not defined.",
                "private.dropna([...]) or private.fillna({...}) first.",
            )
    if distance == "discrete":
        columns[0].labels(method)
        return []
    limits = [column.bounds(method) for column in columns]
    for column, (lower, upper) in zip(columns, limits, strict=True):
        if not 0 < upper - lower < math.inf:
            raise ParameterError(
                f"The bounds of column {column.name!r} must differ, and by less than the largest double.",
                "leave the column out: its records are all at one place.",
            )
    return limits


@dataclass(slots=True)
class OutlierScores:
    """The outlier score of each record, from columns and their `limits_of`; computed once."""

    columns: Sequence[Column]
    distance: Distance
    limits: Sequence[tuple[float, float]]
    progress: bool | None
    _scores: Floats | None = field(default=None, repr=False)

    def coins(self, low: Fraction, high: Fraction) -> Coins:
        """Return the coins of suppression with the least and the largest probability."""
        if low == high:
            return AlikeCoins(1 - low)
        return WeightedCoins(
            self.columns,
            self.distance == "discrete",
            lambda arrays: keep_probabilities(self._of(arrays), low, high),
        )

    def _of(self, arrays: Sequence[Integers | Floats]) -> Floats:
        if self._scores is None:
            if self.distance == "discrete":
                self._scores = outlier_scores(arrays[0], self.distance)
            else:
                single = self.distance == "absolute"
                table = arrays[0] if single else np.column_stack(arrays)
                bounds: Any = self.limits[0] if single else list(self.limits)
                self._scores = outlier_scores(table, self.distance, bounds, progress=self.progress)
        return self._scores


def _warn_of_sampling(rate: Fraction, least: Fraction) -> None:
    if least < rate:
        loss = "No factor scales a count up to all records, because labels have different shares."
    else:
        inner = float(Poisson(rate).part(Fraction(1)))
        loss = (
            f"At epsilon 1 a count scaled up to all records has {1 / (float(rate) * inner):.3g} times the "
            "noise of a count of all, and sampling error in addition."
        )
    warn(f"Sampling nearly always loses. {loss}", OmissionWarning)


def _warn_of_suppression(law: Outliers) -> None:
    floor, whole = outlier_floor(law.m, law.M), float(law.whole(Fraction(1)))
    warn(
        f"Suppression of outliers nearly always loses. A release of epsilon 1 costs {whole:.3g} here, and no "
        f"release costs less than {floor:.3g}; what is released leaves out {percent(float(law.m))} to "
        f"{percent(float(law.M))} of the records, not at random.",
        OmissionWarning,
    )


# ---------------------------------------------------------------- what a secret part costs the whole

Spend: TypeAlias = Literal["noise", "epsilon"]

LEAST = Fraction(1, 10**30)


@dataclass(eq=False)
class Secret:
    """A part that was drawn once: its releases are one group, whose summed loss is amplified.

    ``law``: how it was drawn. ``spend``: "noise", where the epsilon of a release is what the whole pays, and
    the noise is less for it; "epsilon", where it calibrates the noise, and the whole pays less.
    ``inner``, ``outer``: the epsilons of all releases so far, as of the part and as charged.
    """

    law: Amplification
    spend: Spend
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    inner: Fraction = Fraction(0)
    outer: Fraction = Fraction(0)
    closed: bool = False
    process: int = field(default_factory=os.getpid, repr=False)
    lock: Any = field(default_factory=threading.RLock, repr=False)

    def __reduce__(self) -> Any:
        raise ParameterError(
            "A secret part of a frame cannot be copied or pickled: the copy would not know of later releases."
        )

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Price and charge one release at a time.

        Raises BudgetError in a forked process, which would not know of releases of the other one.
        """
        if os.getpid() != self.process:
            raise BudgetError(
                "A secret part belongs to the process that drew it: others do not know what was released.",
                "release there, or draw another part here.",
            )
        with self.lock:
            yield

    def loss_of_part(self, cost: Pure | Approx) -> Pure | Approx:
        """Return the loss that a release of this cost may have for the part.

        Raises ParameterError where a delta does not fit earlier releases, or nothing is left.
        """
        if self.closed or (self.law.one_delta and cost.delta and self.inner):
            raise ParameterError(
                "A release with a delta must be the only release of this part.",
                "plan several: private.dp.plan_releases([...]) charges them as one; or draw another part.",
            )
        if self.spend == "epsilon":
            return cost
        epsilon = self.law.part(self.outer + cost.epsilon) - self.inner
        delta = cost.delta / self.law.delta_share(self.inner)
        if delta >= 1:
            raise ParameterError(
                "'delta' must be below the sampling rate: a release of the part has delta / rate.",
                "a smaller delta, or more records.",
            )
        return loss(max(epsilon, LEAST), delta)

    def cost_of_whole(self, within: Pure | Approx) -> Pure | Approx:
        """Return the loss that the whole pays for one more release of this loss to the part."""
        epsilon = self.law.whole(self.inner + within.epsilon) - self.outer
        return loss(max(epsilon, LEAST), within.delta * self.law.delta_share(self.inner))

    def largest_epsilon(self, left: Fraction) -> float:
        """The largest epsilon that a release can state where so much is left to the whole, or a bit more."""
        most = self.law.most
        if most is not None and self.outer + left > self.law.whole(most):
            left = self.law.whole(most) - self.outer
        try:
            within = self.law.part(self.outer + left) - self.inner
        except ParameterError:
            return 0.0
        return float(left if self.spend == "noise" else within)

    def stated_loss(self, entry: Entry | None, cost: Pure | Approx) -> Pure | Approx:
        """Return the loss of a release to the whole, for its metadata; a plan has no entry."""
        if entry is not None and isinstance(entry.loss, Pure | Approx):
            return entry.loss
        return cost if self.spend == "noise" else self.cost_of_whole(cost)

    def charge(
        self, within: Pure | Approx, stated: Pure | Approx, enter: Callable[[Pure | Approx, Events], Entry]
    ) -> Entry:
        """Charge what the whole pays for this loss of the part, by ``enter``, and remember both.

        Raises ParameterError where the whole would pay more than the release ``stated``.
        """
        outer = self.cost_of_whole(within)
        if self.spend == "noise":
            if outer.epsilon > stated.epsilon or outer.delta > stated.delta:
                raise ParameterError(
                    "The release costs more than its epsilon, which a secret part cannot state beforehand.",
                    'another calibration, or spend="epsilon".',
                )
            outer = stated
        entry = enter(outer, [(Event(outer, group=self.name), 1)])
        self.inner += within.epsilon
        self.outer += outer.epsilon
        self.closed = self.law.one_delta and bool(within.delta)
        return entry
