"""Variables of the caller in expressions, such as ``query("age >= @limit")``: plain constants alone."""

from __future__ import annotations

import datetime
import os
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from pdprivacy.checks import finite
from pdprivacy.core.rows.reader import PASSED_OVER
from pdprivacy.errors import QueryError, kind

_PACKAGE = str(Path(__file__).parent.parent) + os.sep
_VARIABLE = re.compile(PASSED_OVER + r"|@(?P<variable>[^\W\d]\w*(?P<rest>\.\w+|\[|\()?)", re.DOTALL)
_DATES = (datetime.date, datetime.datetime)


def with_constants(text: Any) -> Any:
    """Return an expression with constants in place of the variables that it names by ``@``.

    Variables are those of the nearest caller outside the package, local ones first, as in `DataFrame.query`.
    The constants are part of the expression, so the lineage of later releases shows them.

    Raises
    ------
    QueryError : an unknown variable, or one that is not a finite number, a string, a truth value or a date.

    >>> limit, day = -5, datetime.date(2020, 1, 31)
    >>> with_constants("pay > @limit and joined < @day and name != '@limit'")
    "pay > (-5) and joined < '2020-01-31' and name != '@limit'"
    """
    if type(text) is not str or "@" not in text:
        return text
    caller = _caller()

    def constant(match: re.Match[str]) -> str:
        if match["variable"] is None:
            return match[0]
        if match["rest"]:
            raise QueryError(
                f"{match[0]!r} is not the name of a variable.",
                "a variable of its own, limit = ..., and then @limit in the text.",
            )
        return _constant(match["variable"], caller, text)

    return _VARIABLE.sub(constant, text)


def _caller() -> FrameType | None:
    """The nearest frame of code outside the package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def _constant(name: str, caller: FrameType | None, text: str) -> str:
    """The value of a variable as it is written in an expression."""
    variables = {} if caller is None else {**caller.f_globals, **caller.f_locals}
    if name not in variables:
        raise QueryError(f"the variable '@{name}' of {text!r} is not defined.", f"{name} = 18")
    value = variables[name]
    if type(value) in _DATES:
        return repr(str(value))
    if type(value) in (bool, str):
        return repr(value)
    if type(value) in (int, float) and finite(value):
        return repr(value) if value >= 0 else f"({value!r})"
    message = f"'@{name}' must be a plain number, string, date, True or False (got {kind(value)})."
    raise QueryError(message, _instead(name, value, text))


def _instead(name: str, value: Any, text: str) -> str:
    """What to write where a variable holds no plain constant."""
    if isinstance(value, list | tuple | set):
        return "put the constants into the text: f" + repr(re.sub(rf"@{name}\b", f"{{{name}}}", text))
    if isinstance(value, _DATES):  # of pandas
        return f"{name} = str({name})"
    return f"{name} = {name}.item()" if hasattr(value, "item") else f"{name} = 18"
