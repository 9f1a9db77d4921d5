"""A declaration in a file of Python, such as what ``python -m pdprivacy declare`` began."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from pdprivacy.errors import ParameterError, PrivacyError

__all__ = ["declaration_of"]

NAME = "schema"


def declaration_of(place: str, output: str) -> Any:
    """What a file of Python calls ``schema``, or, given as ``FILE:NAME``, by another name; it is run.

    Whether it is a declaration is for whoever takes it to check. ``output``: what will be written.

    Raises ParameterError where there is no such file or name, or the file cannot be run; what the file
    raises itself is told by its type and line alone.
    """
    path, name = Path(place), NAME
    if not path.is_file() and ":" in place:
        before, _, after = place.rpartition(":")
        if after.isidentifier():
            path, name = Path(before), after
    if path.suffix != ".py" or not path.is_file():
        raise ParameterError(
            f"{str(path)!r} is not a Python file. Nothing was written.",
            f"--declaration schema.py, or --declaration schema.py:NAME unless it is called {NAME!r}",
        )
    if Path(output).resolve() == path.resolve():
        raise ParameterError(
            "'--output' is the file of the declaration, which would be replaced. Nothing was written.",
            "--output report.html",
        )
    spec = spec_from_file_location("declaration_of_a_report", path)
    assert spec is not None  # its name ends in .py
    assert spec.loader is not None
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except PrivacyError:
        raise
    except Exception as error:
        raise ParameterError(
            f"{str(path)!r} cannot be run: {type(error).__name__}{_line(error, path)}. Nothing was written.",
            f"python {path.name} must run by itself",
        ) from None
    if not hasattr(module, name):
        raise ParameterError(
            f"{str(path)!r} defines no {name!r}. Nothing was written.",
            f"--declaration {path.name}:NAME, the name of the schema there",
        )
    return getattr(module, name)


def _line(error: BaseException, path: Path) -> str:
    """Where in the file it came up, if that is known."""
    if isinstance(error, SyntaxError):
        return f" in line {error.lineno}"
    place, found = error.__traceback__, None
    while place is not None:
        if place.tb_frame.f_code.co_filename == str(path):
            found = place.tb_lineno
        place = place.tb_next
    return "" if found is None else f" in line {found}"
