"""Cells that no message may hold, and how they would show in one."""

from __future__ import annotations

import re
import traceback
from typing import Any

import pandas as pd
import pytest

from pdprivacy.declaration.schema import validate
from pdprivacy.errors import InvalidDataError

__all__ = ["CANARY", "CELL", "NUMBER", "refused"]

NUMBER = 918273645
CANARY = "CANARYx7"
CELL = re.compile(r"918273645|918[_,]273|9\.18273|CANARY", re.IGNORECASE)


def refused(frame: pd.DataFrame, schema: Any) -> str:
    """The message of the refusal of a frame, after looking for cells in every text the error can give."""
    with pytest.raises(InvalidDataError) as caught:
        validate(frame, schema)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    for text in (str(error), repr(error), error.message, *traceback.format_exception(error)):
        assert not CELL.search(text)
    assert error.hint.startswith("declare what the data may hold, or ")
    assert not set(vars(error)) - {"message", "hint"}
    return str(error)
