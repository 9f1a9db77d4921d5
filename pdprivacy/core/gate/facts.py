"""The public facts of a protected frame: its declaration, unit, budget and row steps."""

from __future__ import annotations

import keyword
import operator
import unicodedata
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from pdprivacy.core.gate.records import Sealed, in_another_engine
from pdprivacy.declaration.domain import Domain, Role
from pdprivacy.errors import ParameterError

if TYPE_CHECKING:
    from pdprivacy.amplification.sampling import Secret
    from pdprivacy.core.privacy import Unit
    from pdprivacy.core.statistics import Scope
    from pdprivacy.ledger import Budget


@dataclass(frozen=True, slots=True)
class Step:
    """A row step: a change of the records between the raw frame and a release.

    ``stability``: how many records of the result one unit more, less or replaced can touch; None where the
    records are a secret part, which `law` says. ``condition``: what the records left meet. ``made``: the
    columns whose cells are new or replaced. ``decided_by``: the name and the role of each column that the
    condition reads. ``mixed``: the new columns that are made of a sensitive column and of another one.
    ``without_nulls``: the sensitive columns whose nulls, as they were declared, were left out. ``domain``:
    the declaration after a step that may change it.
    """

    text: str
    stability: int | None = 1
    condition: str | None = None
    law: str | None = None
    made: frozenset[Hashable] = frozenset()
    decided_by: tuple[tuple[Hashable, Role | None], ...] = ()
    mixed: frozenset[Hashable] = frozenset()
    without_nulls: frozenset[Hashable] = frozenset()
    domain: Domain | None = field(default=None, repr=False, compare=False)

    @property
    def declaration(self) -> str | None:
        """The fingerprint of the declaration after the step, which the text may leave open."""
        return None if self.domain is None else self.domain.fingerprint()


_IN_MEMORY = {"kmeans", "sample", "suppress_outliers", "compare_sampling", "compare_suppression"}
"""Methods for records in memory."""
_OF_THE_WHOLE = {
    *_IN_MEMORY - {"kmeans"},
    "anonymity",
    "choose_epsilon",
    "dr_ha",
    "homogeneity",
    "risk_curve",
    "tradeoff",
}
"""Methods for a whole table, not for a secret part of it."""
_CHARGED_TOGETHER = {"batch", "marginals", "plan_releases"}


class Keeper(Protocol):
    """A store of the releases of a frame, which returns an earlier one again (`pdprivacy.pipeline`)."""

    def admits(self, method: str) -> bool:
        """Return whether the result of a method of the frame can be kept."""

    def admit(self, method: str) -> None:
        """Refuse a method of the frame whose result cannot be kept."""

    def keep(
        self,
        release: Any,
        method_call: Any,
        make: Callable[[str | None], tuple[Any, int, float | str | None]],
    ) -> Any:
        """Return the kept answer of an equal release, or the one that ``make`` returns for a new id.

        ``make`` returns the number of the charge and the disclosure risk, too; the keeper notes the answer.
        """


@dataclass(frozen=True, eq=False)
class Facts:
    """The public facts of a protected frame, and its records under a seal.

    ``lineage``: the steps that led here. ``secret``: the secret part that the records are. ``seeded``:
    whether its coins, or the noise of a release that was used, can be drawn again. ``keeper``: of the
    releases, where they are a step's or may be given again. ``origin``: one object for all frames that row
    steps make of one protected frame. ``tables``: one object for all frames of tables that were protected
    together.
    """

    domain: Domain
    unit: Unit
    budget: Budget
    scope: Scope
    sealed: Sealed
    lineage: tuple[Step, ...] = ()
    secret: Secret | None = None
    seeded: bool = False
    keeper: Keeper | None = field(default=None, repr=False)
    origin: object = field(default_factory=object, repr=False)
    tables: object = field(default=None, repr=False)

    def __reduce_ex__(self, _: Any) -> Any:
        raise ParameterError(
            "What belongs to a protected frame cannot be pickled: the copy would hold its records.",
            "protect the frame where it is used, with the same pdprivacy.Ledger.",
        )

    def __deepcopy__(self, _: Any) -> Facts:
        return self

    def admitted(self, method: str) -> Facts:
        """Return the contents for a method that the keeper of the releases admits."""
        if self.keeper is not None:
            self.keeper.admit(method)
        return self

    def offers(self, method: str) -> bool:
        """Return whether a method applies to these records, for completion; a call may be refused anyway."""
        together = self.secret is None or self.secret.spend != "noise" or method not in _CHARGED_TOGETHER
        in_memory = self.in_memory or method not in _IN_MEMORY
        whole = not self.in_secret or method not in _OF_THE_WHOLE
        return together and in_memory and whole and (self.keeper is None or self.keeper.admits(method))

    @cached_property
    def names(self) -> dict[str, Hashable]:
        """The labels that are not Python names, by the text of each in an expression.

        A string stands in backticks, as in `DataFrame.query`; any other label as ``private[1]``. So no two
        labels have the same text.
        """
        names: dict[str, Hashable] = {}
        for label in self.domain:
            if is_python_name(label):
                continue
            key = f"`{label}`" if isinstance(label, str) and "`" not in label else f"private[{label!r}]"
            while key in names:  # objects that print alike
                key += "'"
            names[key] = label
        return names

    @cached_property
    def written(self) -> dict[Hashable, str]:
        """The text of each label that is not a Python name."""
        return {label: key for key, label in self.names.items()}

    def keeps(self, names: Iterable[Hashable], earlier: Facts) -> bool:
        """Return whether row steps led here from an earlier frame, and left the cells of these columns alone.

        The same steps are the same objects: steps of one text may leave other records.
        """
        known = len(earlier.lineage)
        if self.origin is not earlier.origin or len(self.lineage) < known:
            return False
        if not all(map(operator.is_, self.lineage, earlier.lineage)):
            return False
        made = frozenset[Hashable]().union(*(step.made for step in self.lineage[known:]))
        return all(
            name in self.domain and name not in made and self.written.get(name) == earlier.written.get(name)
            for name in names
        )

    @cached_property
    def in_secret(self) -> bool:
        """Whether the records are a secret part, or of one that was paid for as a whole."""
        return any(step.stability is None for step in self.lineage)

    @cached_property
    def filters(self) -> tuple[str, ...]:
        """The conditions that the records meet."""
        return tuple(step.condition for step in self.lineage if step.condition is not None)

    @cached_property
    def decided_by(self) -> dict[Hashable, Role | None]:
        """The role of each column that decided which records these are; sensitive if it ever was."""
        pairs = [pair for step in self.lineage for pair in step.decided_by]
        return dict(sorted(pairs, key=lambda pair: pair[1] == "sensitive"))

    @cached_property
    def made(self) -> frozenset[Hashable]:
        """The columns whose cells a row step made."""
        return frozenset[Hashable]().union(*(step.made for step in self.lineage))

    @cached_property
    def mixed(self) -> frozenset[Hashable]:
        """The columns that are made of a sensitive column and of another one."""
        mixed = frozenset[Hashable]()
        for step in self.lineage:
            mixed = (mixed - step.made) | step.mixed
        return mixed

    @cached_property
    def without_nulls(self) -> frozenset[Hashable]:
        """The sensitive columns whose declared nulls were left out."""
        return frozenset[Hashable]().union(*(step.without_nulls for step in self.lineage))

    @cached_property
    def steps(self) -> tuple[str, ...]:
        """All other steps."""
        return tuple(step.text for step in self.lineage if step.condition is None)

    @cached_property
    def brief(self) -> tuple[str, ...]:
        """The steps in few words: those that change the loss of a release in full, others by name."""
        return tuple(
            step.text.partition("(")[0] if step.stability == 1 else step.text
            for step in self.lineage
            if step.condition is None
        )

    @property
    def in_memory(self) -> bool:
        """Whether the records are a pandas frame, one after the other."""
        return self.sealed.engine == "pandas"

    def refuse_other_engines_for(self, method: str) -> None:
        """Refuse a method that needs records in memory, where another engine holds them."""
        if not self.in_memory:
            raise in_another_engine(repr(method), self.sealed.engine)


def lineage(protected: Facts) -> pd.DataFrame:
    """The steps between the raw frame and this one, and how far each takes neighbours apart.

    Returns a DataFrame with a row per step: ``step``; ``stability``, the records of the result that one
    record more, less or replaced can touch (of a unit, where several may be one's), NA for a secret part;
    ``cost``: the loss of the whole by releases of total ``epsilon``.

    Source: "The adverse effects of omitting records in differential privacy", Definition 4 and Theorem 5.1.
    """
    steps = protected.lineage
    return pd.DataFrame(
        {
            "step": np.array([step.text for step in steps], dtype=object),
            "stability": pd.array([step.stability for step in steps], dtype="Int64"),
            "cost": np.array(["epsilon" if step.law is None else step.law for step in steps], dtype=object),
        },
        index=pd.RangeIndex(1, len(steps) + 1),
    )


def is_python_name(label: Hashable) -> bool:
    """Return whether a label is a name of Python, in the spelling that Python reads it in."""
    return (
        isinstance(label, str)
        and label.isidentifier()
        and not keyword.iskeyword(label)
        and unicodedata.is_normalized("NFKC", label)
    )


def declared(protected: Facts, name: Hashable) -> bool:
    """Return whether a column may be released at all."""
    return name in protected.domain and protected.domain[name].role != "identifier"
