"""The command line: ``pdprivacy declare|ledger|report``, or ``python -m pdprivacy``.

A tool adds its parser to those of the command line by a function ``add(tools)``, where ``tools`` is what
``ArgumentParser.add_subparsers`` gives, and names what it runs by ``set_defaults(run=...)``: a function of
the parsed arguments, which gives an exit code, or None for 0.

Exit codes: 0; 1 where the records of a ledger are not those that were entered; 2 for whatever else is the
matter; 130 after an interrupt, 141 where nobody reads the output any more.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pdprivacy._version import __version__
from pdprivacy.checks import printable
from pdprivacy.command import declare, ledger_command, report
from pdprivacy.errors import PrivacyError, TamperedLedgerError
from pdprivacy.ledger import files, store
from pdprivacy.show.report import costs, inputs

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
    inputs.TRY: "pdprivacy report mean.parquet table.parquet --output report.html",
    'path="report.html".': "--output report.html",
    "leave it out, or edition='curator'.": "leave it out, or --edition curator",
    'pip install "pdprivacy[plot]", or report(..., pictures=False).': (
        'pip install "pdprivacy[plot]", or --no-pictures'
    ),
}
"""Hints at calls of Python, and the command lines to write instead."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, by default that of the process; the exit code."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # no stream at all, or one of another kind
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = _run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except PrivacyError as error:
        hint = error.hint or ""
        text = str(error).removesuffix(hint) + COMMANDS.get(hint, hint)
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
    try:
        chosen = _parser().parse_args(arguments)
    except SystemExit as ended:  # argparse has said what is the matter, or helped
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
    ledger_command.add(tools)
    report.add(tools)
    tools.metavar = "|".join(tools.choices)
    return parser


def _failed(words: str, code: int) -> int:
    """Say in one line on stderr what is the matter; the exit code."""
    with suppress(OSError):
        print(printable(words.replace("\n", " ")), file=sys.stderr)
    return code


def _drop_output() -> None:
    """Let nothing more be written to an output that failed, not even at the end of the process."""
    with suppress(AttributeError, OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
