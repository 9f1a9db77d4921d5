"""The command line of reports: ``python -m pdprivacy report RELEASE.parquet ... --output report.html``."""

from __future__ import annotations

import argparse
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, get_args

from pdprivacy.checks import printable
from pdprivacy.errors import ParameterError, PrivacyError
from pdprivacy.show.numbers import many
from pdprivacy.show.report import report
from pdprivacy.show.report.inputs import Edition

__all__ = ["add", "run"]


PURPOSE = "an HTML report of releases: their cost, their accuracy and the remaining disclosure risk"


def add(tools: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of ``report`` to those of the command line."""
    command = tools.add_parser("report", help=PURPOSE, description=PURPOSE, allow_abbrev=False)
    command.set_defaults(run=run)
    command.add_argument("releases", metavar="RELEASE", nargs="+", help="a release as Parquet, CSV or JSON")
    command.add_argument(
        "--output", metavar="FILE", required=True, help="the page; an existing file is replaced"
    )
    command.add_argument("--ledger", metavar="ADDRESS", help="the path, or the URL of a database server")
    command.add_argument("--name", help="the name of the budget in the ledger")
    command.add_argument(
        "--declaration",
        metavar="FILE.py[:NAME]",
        help="a file of Python that declares the data as NAME, or else as schema; it is run",
    )
    command.add_argument(
        "--edition", choices=get_args(Edition), default="public", help="the curator's edition is CONFIDENTIAL"
    )
    command.add_argument("--title", help="the title of the page")
    command.add_argument("--no-pictures", action="store_true", help="tables alone, without matplotlib")


def run(chosen: argparse.Namespace) -> None:
    """Write the report; errors as `report`."""
    place = chosen.declaration
    made = report(
        chosen.releases,
        ledger=chosen.ledger,
        name=chosen.name,
        declaration=None if place is None else _declaration_of(place, chosen.output),
        path=chosen.output,
        edition=chosen.edition,
        title=chosen.title,
        pictures=not chosen.no_pictures,
    )
    what = f"{many(len(made.releases), 'release')}, {made.edition} edition"
    mark = ", CONFIDENTIAL" if made.edition == "curator" else ""
    print(f"{printable(chosen.output)}: {what}{mark}")


NAME = "schema"
"""What a file of Python calls its declaration, such as one that ``python -m pdprivacy declare`` began."""


def _declaration_of(place: str, output: str) -> Any:
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
