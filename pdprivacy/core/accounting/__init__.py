"""Accounting: the total loss of several releases, and the split of one loss.

There are two kinds of accounting. Sums (`compose`) and the rules of `rule` hold even when each loss is
chosen after seeing the answers before it; they enforce budgets. `optimal_epsilon`, and `epsilon` of
events, hold only for losses fixed beforehand; they serve plans and reports.

No returned epsilon or delta is below the true one: sums are exact in rational numbers, and every other
number is rounded to the safe side.
"""

from __future__ import annotations

import sys

from pdprivacy.core.accounting.events import Event, Events, GaussianNoise, from_json, to_json
from pdprivacy.core.accounting.optimal import optimal_delta, optimal_epsilon, optimal_error
from pdprivacy.core.accounting.reports import Bound, Method, epsilon, pld_epsilon, report, to_dp_events
from pdprivacy.core.accounting.rules import (
    Accounting,
    Amount,
    Basic,
    Concentrated,
    Conversion,
    Filter,
    Losses,
    Rule,
    Spent,
    compose,
    rule,
    shares,
    times,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_of,
    zcdp_rho,
)
from pdprivacy.errors import short_public

__all__ = [
    "Accounting",
    "Amount",
    "Basic",
    "Bound",
    "Concentrated",
    "Conversion",
    "Event",
    "Events",
    "Filter",
    "GaussianNoise",
    "Losses",
    "Method",
    "Rule",
    "Spent",
    "compose",
    "epsilon",
    "from_json",
    "optimal_delta",
    "optimal_epsilon",
    "optimal_error",
    "pld_epsilon",
    "report",
    "rule",
    "shares",
    "times",
    "to_dp_events",
    "to_json",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_of",
    "zcdp_rho",
]

short_public(sys.modules[__name__], __all__)
