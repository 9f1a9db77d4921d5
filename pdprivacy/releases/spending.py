"""How a budget is shared out: shares of an epsilon, what remains, and groups that do not add up."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction

import numpy as np
import pandas as pd

from pdprivacy.accounting import Concentrated, Event, GaussianNoise, shares
from pdprivacy.errors import ParameterError, TableTooLargeError, got
from pdprivacy.ledger import Budget, counted_by
from pdprivacy.mechanism import noise_multiplier
from pdprivacy.privacy import Approx, Pure, Rational, check_delta, loss, positive
from pdprivacy.protection import Protected, ProtectedFrame, divide
from pdprivacy.release.execute import charge, telling_charges
from pdprivacy.release.spec import Price, labelled
from pdprivacy.releases.columns import columns_of

__all__ = ["partition", "remaining", "split"]

MOST_GROUPS = 10_000

LARGEST = 2.0**40
"""The largest epsilon of a search."""


def split(
    protected: Protected,  # noqa: ARG001
    epsilon: Rational,
    into: int | Sequence[Rational] | Mapping[Hashable, Rational],
) -> list[Fraction] | dict[Hashable, Fraction]:
    """Shares of ``epsilon`` that sum to it exactly; nothing is charged.

    ``into``: how many equal shares, or their weights; weights by name give shares by name.

    Raises ParameterError for an epsilon or a weight that is not positive.

    >>> import pandas as pd, pandera.pandas as pa
    >>> schema = pa.DataFrameSchema({"member": pa.Column(bool, metadata={"dp": {}})})
    >>> private = pd.DataFrame({"member": [True, False]}).dp.protect(schema, epsilon=1)
    >>> [str(share) for share in private.dp.split(1, into=[2, 1])]
    ['2/3', '1/3']
    """
    whole = positive(epsilon, "epsilon")
    if isinstance(into, int | np.integer) and not isinstance(into, bool):
        if not 1 <= into <= 10**6:
            raise ParameterError(f"'into' must be from 1 to 1e6 shares (got {got(into)}).")
        return [whole / int(into)] * int(into)
    if isinstance(into, Mapping):
        return dict(zip(into, (whole * share for share in shares(list(into.values()), "into")), strict=True))
    many = isinstance(into, Sequence | pd.Series) or (isinstance(into, np.ndarray) and into.ndim > 0)
    if isinstance(into, str | bool | int) or not many:
        raise ParameterError(
            f"'into' must be a number of shares, or weights (got {got(into)}).", "into=[2, 1]."
        )
    return [whole * share for share in shares(list(into), "into")]


def remaining(protected: Protected, delta: Rational = 0) -> float:
    """The largest epsilon (up to 1e-9 of it) that one more release with this ``delta`` may ask for, or 0.0.

    Without a delta: a release by Laplace or geometric noise. With one: by Gaussian noise, which an
    accounting in rho counts by its rho. Of a secret part: as the release has to state it; one of suppressed
    outliers may refuse a smaller one, as below `outlier_floor` nothing can be released. A budget that others
    charge, too, may have less when the release comes.

    Raises ParameterError for a delta outside [0, 1).

    >>> import pandas as pd, pandera.pandas as pa
    >>> schema = pa.DataFrameSchema({"member": pa.Column(bool, metadata={"dp": {}})})
    >>> private = pd.DataFrame({"member": [True, False]}).dp.protect(schema, epsilon=1)
    >>> _ = private.dp.count(epsilon=0.25)
    >>> private.dp.remaining()
    0.75
    """
    slack = check_delta(delta)
    account = protected.budget.account
    terms, rule, spent = account.terms, account.terms.rule, account.spent
    secret = protected.secret
    inward = secret is not None and secret.spend == "epsilon"

    def fits(epsilon: float) -> bool:
        if epsilon <= 0:
            return False
        cost = loss(Fraction(repr(epsilon)), slack)
        if secret is not None and inward:
            cost = secret.costing(cost)
        noise = GaussianNoise(noise_multiplier(cost.epsilon, slack), 1, 1) if slack and terms.in_rho else None
        ((counted, count),) = counted_by(terms, cost, 1, [(Event(cost, noise), 1)])
        return rule.fits(spent, counted, count)

    if not slack or not terms.in_rho:
        left = rule.left(spent)
        if secret is not None and left.amount:
            return _largest(fits, secret.room(left.amount))
        bound = math.sqrt(2 * left.amount) if isinstance(rule, Concentrated) else float(left.amount)
        return _largest(fits, bound)
    return _largest(fits, None)


def _largest(fits: Callable[[float], bool], near: float | None) -> float:
    """The largest double that fits: just below ``near``, or searched for."""
    if near is not None:
        for found in (near, math.nextafter(near, 0), near * (1 - 1e-12)):
            if fits(found):
                return found
        return 0.0
    low, high = 1e-5, LARGEST  # below, Gaussian noise is not calibrated
    if not fits(low):
        return 0.0
    if fits(high):
        return high
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@telling_charges()
def partition(
    protected: Protected,
    by: Hashable,
    *,
    epsilon: Rational,
    delta: Rational = 0,
    release_id: str | None = None,
) -> dict[Hashable, ProtectedFrame]:
    """The records of each declared label of a column, each a protected frame with this budget of its own.

    Charged once: the groups are disjoint and declared, so a record more or less is in one of them, and
    whatever is released of the others is the same with it and without (parallel composition; Dwork, Roth
    2014, Section 3.5; McSherry 2009, Theorem 4). Under "replace_one" a record may move from one group to
    another, so twice the budget of a group is charged; where a unit may have several records, as often as it
    can touch groups. What a group does not spend is not given back. The
    budgets of the groups are in memory, also where the budget is in a ledger.

    Parameters
    ----------
    by : a column with declared labels, or with bins.
    epsilon, delta : the budget of each group. Of a secret part with ``spend="noise"`` they are what is paid
        for, and each group has the larger loss that this allows.
    release_id : as of a release.

    Returns a dictionary from each label, in declared order, to its frame; nulls, where the column may hold
    them, are under None.

    Raises
    ------
    DeclarationError : a column without declared cells.
    BudgetExceeded : more than is left; nothing is charged.

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
        raise ParameterError("'by' must be one column.", 'partition("region", epsilon=0.5).')
    if columns[0].cells("partition") > MOST_GROUPS:
        raise TableTooLargeError(
            f"The column has more than {MOST_GROUPS} declared labels.",
            "groupby(...) releases of many groups at once.",
        )
    times = min(columns[0].cells("partition"), protected.scope.moves)
    asked = loss(epsilon, delta).times(times)
    label = labelled(f"partition by {columns[0].name}", protected.filters, protected.brief)

    def price_of(cost: Pure | Approx) -> Price:
        each = loss(cost.epsilon / times, cost.delta / times)
        return Price(each, "", [(Event(each), times)], times=times)

    price, entry = charge(protected, asked, price_of, label, release_id)
    groups = divide(protected, columns[0], lambda: Budget.with_total(price.cost, of_group=True))
    protected.budget.answered(entry.number)
    return groups
