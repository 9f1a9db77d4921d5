"""The budget that a protection asks for: a new one, an existing one, or one in a ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from pdprivacy.accounting import Accounting
from pdprivacy.checks import check_name
from pdprivacy.errors import ParameterError, check_one_of, got
from pdprivacy.ledger.book import StoredBook
from pdprivacy.ledger.budget import Budget, total_of
from pdprivacy.ledger.ledger import Ledger
from pdprivacy.privacy import Loss, Rational, Unit, rational

__all__ = ["BudgetRequest"]


@dataclass(frozen=True)
class BudgetRequest:
    """A request for a budget, checked before any data is read.

    Raises ParameterError for what does not fit together.
    """

    total: Loss | None
    accounting: Accounting | None
    budget: Budget | Ledger | None
    name: str | None
    redeclare: bool

    @classmethod
    def of(
        cls,
        epsilon: Rational | None,
        delta: Rational,
        rho: Rational | None,
        accounting: Accounting | None,
        budget: Budget | Ledger | None,
        name: str | None,
        redeclare: bool,
    ) -> BudgetRequest:
        """The request of the arguments of `df.dp.protect`."""
        if not (budget is None or isinstance(budget, Budget | Ledger)):
            raise ParameterError(
                f"'budget' must be a pdprivacy.Budget or a pdprivacy.Ledger (got {type(budget).__name__}).",
                'budget=pdprivacy.Ledger("budget.db"), name="survey-2026".',
            )
        if not isinstance(redeclare, bool):
            raise ParameterError(f"'redeclare' must be True or False (got {got(redeclare)}).")
        check_one_of("accounting", accounting, (*get_args(Accounting), None))
        in_ledger = isinstance(budget, Ledger)
        if in_ledger and name is None:
            raise ParameterError(
                "'name' is missing: a ledger keeps a budget per name.", 'name="survey-2026".'
            )
        if in_ledger != (name is not None) or (redeclare and not in_ledger):
            raise ParameterError(
                "'name' and 'redeclare' are for a budget in a ledger, which needs a name.",
                'budget=pdprivacy.Ledger("budget.db"), name="survey-2026".',
            )
        if epsilon is None and rho is None:
            if budget is None:
                raise ParameterError(
                    "'epsilon' is missing: protection needs a budget.",
                    "df.dp.protect(schema, epsilon=1.0), or budget=pdprivacy.Budget(epsilon=1.0).",
                )
            if rational(delta, "delta"):
                raise ParameterError(
                    "'delta' cannot be given together with 'budget', which has a total.",
                    "pass budget= alone.",
                )
            total = None
        else:
            total = total_of(epsilon, delta, rho)
        if isinstance(budget, Budget):
            if budget.of_group:
                raise ParameterError(
                    "The budget is that of a group of partition(), and no other records may spend it.",
                    "pass the budget of the whole table, which paid for the groups.",
                )
            budget.account.terms.check_same(total, accounting)
        named = None if name is None else check_name(name, "name")
        return cls(total, accounting, budget, named, redeclare)

    def serves(self, budget: Budget) -> bool:
        """Whether the request is for this budget."""
        if isinstance(self.budget, Ledger):
            assert self.name is not None
            return budget == Budget.of(StoredBook(self.budget.chain, self.name))
        return budget == self.budget

    def open(self, unit: Unit, declaration: str) -> Budget:
        """The budget, for the data of this unit, declared so.

        Raises ParameterError or BudgetError where it is there on other terms.
        """
        if isinstance(self.budget, Ledger):
            assert self.name is not None
            return self.budget.open(
                self.name,
                self.total,
                self.accounting,
                unit=unit,
                declaration=declaration,
                redeclare=self.redeclare,
            )
        budget = self.budget
        if budget is None:
            assert self.total is not None
            budget = Budget.with_total(self.total, self.accounting or "basic")
        budget.bind(unit, declaration)
        return budget
