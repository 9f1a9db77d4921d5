"""The command line: ``pdprivacy declare|ledger|report``, or ``python -m pdprivacy``.

A tool adds its parser to those of the command line by a function of ``tools``, which is what
``ArgumentParser.add_subparsers`` gives, and names what it runs by ``set_defaults(run=...)``: a function of
the parsed arguments, which gives an exit code, or None for 0.

Exit codes: 0; 1 where the records of a ledger are not those that were entered; 2 for whatever else is the
matter; 130 after an interrupt, 141 where nobody reads the output any more.

``pdprivacy ledger`` reads, and changes nothing. What takes long shows a bar, where the standard error is a
terminal and tqdm is installed; ``TQDM_DISABLE=1`` in the environment turns it off.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, get_args

from pdprivacy._version import __version__
from pdprivacy.checks import check_name, printable
from pdprivacy.command import declare
from pdprivacy.errors import ParameterError, PrivacyError, TamperedLedgerError, kind
from pdprivacy.ledger import Ledger, files, store
from pdprivacy.ledger.account import Account, answer_of
from pdprivacy.ledger.audit import with_bar
from pdprivacy.ledger.book import StoredBook
from pdprivacy.ledger.disk import new_file
from pdprivacy.ledger.store import Chain, Row, altered, parse
from pdprivacy.show import pages
from pdprivacy.show.report import TRY, Edition, costs, report
from pdprivacy.text.markup import aligned
from pdprivacy.text.numbers import many

__all__ = ["COMMANDS", "main"]


PROTECT = "df.dp.protect(schema, epsilon=1.0, budget=ledger, name=...)"
COMMANDS = {
    f"{PROTECT} makes it.": "check the address, as in pdprivacy ledger show budget.db",
    f"{PROTECT} opens one.": "pdprivacy ledger show ADDRESS lists the budgets.",
    store.AUDIT: "restore the ledger from a copy; pdprivacy ledger audit ADDRESS says what else was altered.",
    store.RESTORE: "restore the latest copy; pdprivacy ledger audit ADDRESS says what is missing.",
    files.RESTORE: "restore the ledger from a copy.",
    files.RESTORE_ALONE: "restore the ledger from a copy, with neither '-journal' nor '-lock' beside it.",
    'Ledger("budget.db"), or Ledger("postgresql://clerk@db.example.org/privacy").': (
        "pdprivacy ledger show budget.db, or pdprivacy ledger show postgresql://clerk@db.example.org/privacy"
    ),
    "Budget(epsilon=1.0) is kept in memory.": "pdprivacy ledger show budget.db",
    costs.TRY: "--ledger budget.db --name survey-2026",
    TRY: "pdprivacy report mean.parquet table.parquet --output report.html",
    'path="report.html".': "--output report.html",
    "leave it out, or edition='curator'.": "leave it out, or --edition curator",
    'pip install "pdprivacy[plot]", or report(..., pictures=False).': (
        'pip install "pdprivacy[plot]", or --no-pictures'
    ),
}
"""Hints with Python calls, and their replacements by command lines."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, by default the command line of the process; return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # no stream at all, or one of another kind
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = _run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except PrivacyError as error:
        hint = error.hint and COMMANDS.get(error.hint, error.hint)
        text = str(PrivacyError(error.message, hint))
        return _failed(text, 1 if isinstance(error, TamperedLedgerError) else 2)
    except KeyboardInterrupt:
        return _failed("Interrupted.", 130)
    except BrokenPipeError:
        _drop_output()
        return 141
    except OSError as error:
        _drop_output()
        return _failed(f"The output could not be written: {error.strerror or 'the system failed'}.", 2)


def _run(arguments: Sequence[str] | None) -> int:
    words = () if arguments is None else arguments
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise ParameterError(f"'arguments' must be a list of texts (got {kind(arguments)}).")
    try:
        chosen = _parser().parse_args(arguments)
    except SystemExit as ended:  # argparse has written an error or the help
        return ended.code if isinstance(ended.code, int) else 2
    if sys.stdout is None:
        return _failed("There is no output to write to.", 2)
    return chosen.run(chosen) or 0


def _parser() -> argparse.ArgumentParser:
    prog = "pdprivacy" if Path(sys.argv[0]).stem == "pdprivacy" else "python -m pdprivacy"  # as it was called
    parser = argparse.ArgumentParser(prog=prog, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"pdprivacy {__version__}")
    tools = parser.add_subparsers(required=True)
    declare.add(tools)
    _add_ledger(tools)
    _add_report(tools)
    tools.metavar = "|".join(tools.choices)
    return parser


def _failed(words: str, code: int) -> int:
    """Write an error as one line to stderr; return the exit code."""
    with suppress(OSError):
        print(printable(words.replace("\n", " ")), file=sys.stderr)
    return code


def _drop_output() -> None:
    """Let nothing more be written to an output that failed, not even at the end of the process."""
    with suppress(AttributeError, OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


# ---------------------------------------------------------------- reports

PURPOSE = "an HTML report of releases: their cost, their accuracy and the remaining disclosure risk"


def _add_report(tools: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of ``report`` to those of the command line."""
    command = tools.add_parser("report", help=PURPOSE, description=PURPOSE, allow_abbrev=False)
    command.set_defaults(run=_report)
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


def _report(chosen: argparse.Namespace) -> None:
    """Write the report; errors as `report`."""
    address = chosen.declaration
    html_report = report(
        chosen.releases,
        ledger=chosen.ledger,
        name=chosen.name,
        declaration=None if address is None else _declaration_of(address, chosen.output),
        path=chosen.output,
        edition=chosen.edition,
        title=chosen.title,
        pictures=not chosen.no_pictures,
    )
    summary = f"{many(len(html_report.releases), 'release')}, {html_report.edition} edition"
    mark = ", CONFIDENTIAL" if html_report.edition == "curator" else ""
    print(f"{printable(chosen.output)}: {summary}{mark}")


NAME = "schema"
"""The name of the schema in a Python file, such as one that ``python -m pdprivacy declare`` wrote."""


def _declaration_of(address: str, output: str) -> Any:
    """Run a Python file and return its ``schema``, or the object of another name, given as ``FILE:NAME``.

    The caller checks that it is a schema. ``output``: the file that the command will write.

    Raises ParameterError where there is no such file or name, or the file cannot be run; an error of
    the file itself is shown by its type and line alone.
    """
    path, name = Path(address), NAME
    if not path.is_file() and ":" in address:
        before, _, after = address.rpartition(":")
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
    """Return the line of the file in which the error was raised, if it is known."""
    if isinstance(error, SyntaxError):
        return f" in line {error.lineno}"
    traceback, line = error.__traceback__, None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == str(path):
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return "" if line is None else f" in line {line}"


# ---------------------------------------------------------------- ledgers

COLUMNS = ("name", "currency", "total", "spent", "left", "total delta", "spent delta", "left delta")
MORE = ("accounting", "neighbors", "charges", "unanswered")


def _add_ledger(tools: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of ``ledger`` to those of the command line."""
    commands = tools.add_parser("ledger", help="look at a ledger of privacy budgets").add_subparsers(
        dest="command", required=True, metavar="show|audit|export"
    )
    helps = {
        "show": "one line per budget, or one budget and its charges",
        "audit": "check that every record is what was entered, and print the head to remember",
        "export": "all records, or those of one budget, as JSON Lines",
    }
    for name, purpose in helps.items():
        command = commands.add_parser(name, help=purpose, description=purpose, allow_abbrev=False)
        command.set_defaults(run=_read_ledger)
        command.add_argument("address", metavar="ADDRESS", help="the path, or the URL of a database server")
        if name == "audit":
            command.add_argument("--head", help="what an earlier audit printed as the head")
        else:
            named = command.add_mutually_exclusive_group()
            named.add_argument(
                "name", metavar="NAME", nargs="?", default=argparse.SUPPRESS, help="of one budget, not of all"
            )
            named.add_argument("--name", help="the same")
        if name == "export":
            command.add_argument("--output", metavar="FILE", help="a new file, in place of the output")


def _read_ledger(chosen: argparse.Namespace) -> None:
    """Do what was chosen; errors as `Ledger`."""
    ledger = Ledger(chosen.address)
    try:
        if chosen.command == "show":
            _show(ledger, chosen.name)
        elif chosen.command == "audit":
            _audit(ledger, chosen.head)
        else:
            _export(ledger, chosen.name, chosen.output)
    finally:
        ledger.close()


def _show(ledger: Ledger, name: str | None) -> None:
    if name is not None:
        name = check_name(name, "name")
        account, entries = StoredBook(ledger.chain, name).entries()
        shown = [
            replace(entry, label=printable(entry.label), mechanism=printable(entry.mechanism))
            for entry in entries
        ]
        print(pages.charges_block(account, shown, name).plain)
        return
    head, accounts = ledger.accounts()
    waiting = _unanswered(ledger.chain, head)
    rows = [_budget_line(entry, account, len(waiting.get(entry, ()))) for entry, account in accounts.items()]
    table = [(*COLUMNS, *MORE), *rows]
    print(aligned(table, range(len(table[0]))))


def _budget_line(name: str, account: Account, unanswered: int) -> tuple[str, ...]:
    terms = account.terms
    amounts, deltas = zip(*pages.sum_texts(account).values(), strict=True)
    return (
        printable(name),
        terms.currency,
        *amounts,
        *deltas,
        terms.accounting,
        "-" if terms.unit is None else str(terms.unit),
        str(account.charges),
        str(unanswered),
    )


def _unanswered(chain: Chain, head: Row | None) -> dict[str, set[int]]:
    """The charges of each budget whose answers are not known to have been handed out."""
    charges: dict[str, int] = {}
    waiting: dict[str, set[int]] = {}
    for row in with_bar(chain.rows(head), head, "show", None):
        if row.kind == "charge":
            charges[row.budget] = charges.get(row.budget, 0) + 1
            waiting.setdefault(row.budget, set()).add(charges[row.budget])
        elif row.kind == "answer":
            waiting.setdefault(row.budget, set()).discard(answer_of(row)[0])
    return waiting


def _audit(ledger: Ledger, head: str | None) -> None:
    result = ledger.audit(head)
    counts = {name: getattr(result, name) for name in ("records", "budgets", "charges", "unanswered")}
    print("No fault found:", ", ".join(f"{name} {number}" for name, number in counts.items()))
    print(f"head {result.head}".rstrip())


def _export(ledger: Ledger, name: str | None, output: str | None) -> None:
    if name is not None:
        name = check_name(name, "name")
        ledger.budget(name)  # refuses one that is not there
    head = ledger.chain.head()
    with new_file(output, "exported") as file:
        # a bar would be in the way of the output
        rows = ledger.chain.rows(head)
        for row in rows if output is None else with_bar(rows, head, "export", None):
            if name is None or row.budget == name:
                file.write(_json(row))


def _json(row: Row) -> str:
    """The line of a record; the body as it was hashed, byte by byte."""
    parse(row)
    if not (row.body.isascii() and row.body.isprintable()):
        raise altered(row)
    columns = {name: getattr(row, name) for name in ("number", "budget", "kind", "release")}
    return f'{json.dumps(columns)[:-1]}, "body": {row.body}, "hash": "{row.hash.hex()}"}}\n'
