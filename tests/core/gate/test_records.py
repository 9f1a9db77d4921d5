"""Records are sealed: nothing that a method is handed reaches a cell."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Mapping
from types import FunctionType, ModuleType

import numpy as np
import pandas as pd
import pytest

from pdprivacy import Column, Domain, ProtectedFrame, protect
from pdprivacy.core.gate.records import Sealed, records_of
from pdprivacy.errors import ParameterError
from pdprivacy.frames import find


def test_facts_hold_no_cell_of_the_records():
    """Each field that every method is handed is of a type that has no cells, and the seal shows none."""
    facts = find(private_frame())
    fields = {field.name: getattr(facts, field.name) for field in dataclasses.fields(facts)}
    seal = fields.pop("sealed")
    assert not [name for name, value in fields.items() if reaches_cells(value)]
    assert not hasattr(seal, "__dict__")
    assert {name for name in dir(seal) if not name.startswith("__")} == {"_sealed", "engine"}
    assert SECRET not in repr(facts)
    with pytest.raises(ParameterError):
        pickle.dumps(seal)
    with pytest.raises(ParameterError):
        copy.copy(seal)


SECRET = "4711"


def private_frame() -> ProtectedFrame:
    domain = Domain((Column("age", "integer", lower=0, upper=9000),))
    return protect(pd.DataFrame({"age": [int(SECRET)] * 3}), domain, epsilon=1)


def reaches_cells(value: object) -> bool:
    """Return whether a frame, a column or an array of cells is reached from a value by its attributes."""
    seen, waiting = set(), [value]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, str | bytes | type | FunctionType | ModuleType | Sealed):
            continue
        seen.add(id(value))
        if isinstance(value, pd.DataFrame | pd.Series | np.ndarray):
            return True
        if isinstance(value, Mapping):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += value
        else:
            waiting += vars(value).values() if hasattr(value, "__dict__") else []
            slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
            waiting += [getattr(value, name) for name in slots if hasattr(value, name)]
    return False


def test_the_walk_over_attributes_finds_a_cell():
    """So that the test above can fail."""
    records = records_of(find(private_frame()))
    assert reaches_cells(records)
    assert reaches_cells({"a": [(1, records.cells)]})
    assert not reaches_cells({"a": [(1, "text")]})


def test_records_that_are_transformed_when_they_are_read_are_untouched_before():
    made: list[int] = []

    class Doubled:
        keep = None

        def assigned(self, frame: pd.DataFrame) -> pd.DataFrame:
            made.append(len(frame))
            return frame * 2

    records = records_of(find(private_frame()))
    waiting = dataclasses.replace(records, pending=(Doubled(), Doubled()))
    assert made == []
    assert waiting.made().snapshot["age"].tolist() == [4 * int(SECRET)] * 3
    assert made == [3, 3]
    assert records.snapshot["age"].tolist() == waiting.snapshot["age"].tolist() == [int(SECRET)] * 3
