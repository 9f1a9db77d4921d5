"""The steps that treat the records of a unit together: one row for each unit, and rows of the same unit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np

from pdprivacy.checks import has_hash, one_of, plain, printable
from pdprivacy.core.gate import parts
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.rows.per_unit import features_of
from pdprivacy.errors import ParameterError, kind
from pdprivacy.hints.examples import EXAMPLES


def one_row_per_unit(facts: Facts, columns: object, bounds: object) -> Facts:
    """Return the frame of one row per unit; see `ProtectedFrame.per_unit`."""
    facts = facts.admitted("per_unit")
    _refuse_parts(facts, "per_unit")
    if not isinstance(columns, Mapping) or not columns:
        raise ParameterError(
            f"'columns' must map new names to pairs of a column and a function (got {kind(columns)}).",
            EXAMPLES["per_unit"],
        )
    features, text = features_of(facts.domain, columns, bounds, facts.scope.contribution)
    return parts.per_unit(facts, features, text)


def with_rows_of_the_unit(facts: Facts, other: Facts, how: str, on: Any) -> Facts:
    """Return the frame with the columns of a frame of the same units; see `ProtectedFrame.merge`."""
    facts, other = facts.admitted("merge"), other.admitted("merge")
    one_of(how, "how", ("left", "inner"))
    _refuse_parts(facts, "merge")
    _refuse_parts(other, "merge")
    if facts.origin is not other.origin and (facts.tables is None or facts.tables is not other.tables):
        raise ParameterError(
            "'merge' takes a public table, or a frame of a table that was protected together with this one.",
            'pdprivacy.protect_tables({"persons": (df, schema), ...}, unit="person_id", epsilon=1.0)',
        )
    if facts.budget is not other.budget:
        raise ParameterError(
            "'merge' takes a frame that spends the same budget, and these are groups of partition().",
            "merge the whole frames, and divide the result.",
        )
    (label,) = on if isinstance(on, list) and len(on) == 1 else (on,)
    if label is not None and not (has_hash(label) and unit_name(label) == facts.unit.column):
        raise ParameterError(
            f"'on' must be the column of the unit, {facts.unit.column}, between protected frames.",
            "leave 'on' out.",
        )
    if other.scope.contribution > 1:
        raise ParameterError(
            "a unit may have several rows in the merged frame, so that a record would become several.",
            "per_unit, which makes one row of them; or the other frame's merge, with this frame.",
        )
    # the frame has the column of the unit, or may not know it
    added = [
        name for name in other.domain if other.domain[name].role != "identifier" or name not in facts.domain
    ]
    twice = [name for name in added if name in facts.domain]
    if twice:
        raise ParameterError(
            f"column {twice[0]!r} is declared in both frames.",
            f"rename(columns={{{twice[0]!r}: NAME}}) first",
        )
    if not added:
        raise ParameterError("'merge' would add no column.")
    return parts.joined(facts, other, added, how)


_TYPED = re.compile(r"(str|int|float|tuple|date|datetime|Timestamp|datetime64|timedelta64) ")
"""The beginning of the text of a label that is not a string, and of a string that could be taken for one."""


def unit_name(unit: Any) -> str | None:
    """The label of the column of the unit as text, another one for each label."""
    unit = plain(unit)
    if unit is None or (isinstance(unit, str) and unit.isprintable() and not _TYPED.match(unit)):
        return unit
    if not isinstance(unit, str | int | float | tuple | date | np.generic) or isinstance(unit, bool):
        raise ParameterError(
            f"'unit' must be a column label (got {type(unit).__name__}).", 'unit="person_id".'
        )
    try:
        return printable(f"{type(unit).__name__} {unit!r}")
    except ValueError:  # a whole number of more digits than Python writes
        raise ParameterError("'unit' must be the label of one column of the frame.") from None


def _refuse_parts(facts: Facts, method: str) -> None:
    if facts.unit.column is None:
        raise ParameterError(
            f"{method!r} is for frames of which a column names the unit of each record.",
            'df.dp.protect(schema, unit="person_id", max_rows=10, epsilon=1.0)',
        )
    if facts.secret is not None or facts.in_secret:
        raise ParameterError(
            f"{method!r} is for whole tables, and these records are a secret part of one.",
            f"{method} before sample or suppress_outliers",
        )
    facts.refuse_other_engines_for(method)
