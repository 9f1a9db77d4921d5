"""Accounting: what several releases cost together, and how one loss is shared out.

Two kinds, not to be mixed up. What holds when each loss is chosen after seeing the answers before it
enforces a budget: sums (`compose`) and the rules of `rule`. What holds only for losses fixed
beforehand serves plans and reports: `optimal_epsilon`.

No epsilon or delta is below the true one: sums are exact in rational numbers, and every other
number is rounded to the safe side.
"""

from __future__ import annotations

from pdprivacy.accounting.concentrated import Conversion, zcdp_delta, zcdp_epsilon, zcdp_of, zcdp_rho
from pdprivacy.accounting.optimal import optimal_delta, optimal_epsilon, optimal_error
from pdprivacy.accounting.rules import Accounting, Amount, Basic, Concentrated, Filter, Rule, rule
from pdprivacy.accounting.sums import Losses, Spent, compose, shares, times

__all__ = [
    "Accounting",
    "Amount",
    "Basic",
    "Concentrated",
    "Conversion",
    "Filter",
    "Losses",
    "Rule",
    "Spent",
    "compose",
    "optimal_delta",
    "optimal_epsilon",
    "optimal_error",
    "rule",
    "shares",
    "times",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_of",
    "zcdp_rho",
]
