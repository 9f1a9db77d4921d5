"""Protected frames of other engines than pandas."""

from __future__ import annotations

from typing import Any

from pdprivacy.engine_narwhals import Source
from pdprivacy.errors import ParameterError
from pdprivacy.protection.core import Protected

__all__ = ["ProtectedFrame"]


class ProtectedFrame:
    """A protected frame of Polars, DuckDB, Dask, Spark or PyArrow, as `pdprivacy.protect` gives it.

    Nothing can be asked of it but what ``.dp`` offers: releases, declared transforms, and the curator's
    methods. It holds the frame as its engine does, lazily where that is lazy, and no cell is ever shown.
    """

    __slots__ = ("__weakref__", "_protected")
    dp: property  # of `pdprivacy.accessor.DataFrameDP`, which puts it here

    def __init__(self, protected: Protected) -> None:
        self._protected = protected

    def __repr__(self) -> str:
        facts = self._protected
        engine = facts.records.engine if isinstance(facts.records, Source) else "pandas"
        steps = [step.text for step in facts.lineage]
        lines = [f"Protected frame of {engine}", str(facts.domain)]
        lines += [f"after {', '.join(steps)}"] if steps else []
        left = ", ".join(
            f"{name} {left:g}" for name, left in zip(("epsilon", "delta"), facts.budget.left, strict=False)
        )
        return "\n".join([*lines, f"left in the budget: {left}"])

    def _repr_html_(self) -> str:
        return str(self.dp._repr_html_())

    def __reduce__(self) -> Any:
        raise ParameterError(
            "A protected frame cannot be copied or pickled: the copy would not know what is spent.",
            "protect the frame where it is used, with the same pdprivacy.Ledger.",
        )
