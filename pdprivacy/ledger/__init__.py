"""The budget: an append-only list of charges under a cap, and the only mutable object."""

from __future__ import annotations

from pdprivacy.ledger.account import Account, Entry
from pdprivacy.ledger.audit import Audit
from pdprivacy.ledger.budget import Budget
from pdprivacy.ledger.ledger import Ledger

__all__ = ["Account", "Audit", "Budget", "Entry", "Ledger"]
