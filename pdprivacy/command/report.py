"""The command line of reports: ``python -m pdprivacy report RELEASE.parquet ... --output report.html``."""

from __future__ import annotations

import argparse
from typing import get_args

from pdprivacy.checks import printable
from pdprivacy.schema.script import declaration_of
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
    made = report(
        chosen.releases,
        ledger=chosen.ledger,
        name=chosen.name,
        declaration=None if chosen.declaration is None else declaration_of(chosen.declaration, chosen.output),
        path=chosen.output,
        edition=chosen.edition,
        title=chosen.title,
        pictures=not chosen.no_pictures,
    )
    what = f"{many(len(made.releases), 'release')}, {made.edition} edition"
    mark = ", CONFIDENTIAL" if made.edition == "curator" else ""
    print(f"{printable(chosen.output)}: {what}{mark}")
