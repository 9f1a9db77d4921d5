"""The curator's command line for a ledger: ``python -m pdprivacy ledger show|audit|export ADDRESS``.

It reads, and changes nothing. Exit codes: 0; 1 where the records are not those that were entered; 2 for
whatever else is the matter; 130 after an interrupt, 141 where nobody reads the output any more.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TextIO

from pdprivacy.errors import ParameterError, PrivacyError, TamperedLedgerError
from pdprivacy.ledger import text
from pdprivacy.ledger.budget import check_name, printable
from pdprivacy.ledger.chain import altered, parse
from pdprivacy.ledger.durable import StoredBook
from pdprivacy.ledger.entry import Account
from pdprivacy.ledger.ledger import Ledger
from pdprivacy.ledger.records import answer_of
from pdprivacy.ledger.store import Reader, Row
from pdprivacy.privacy import ZCDP, show

__all__ = ["main"]

COLUMNS = ("name", "currency", "total", "spent", "left", "total delta", "spent delta", "left delta")
MORE = ("accounting", "neighbors", "charges", "unanswered")


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
    except TamperedLedgerError as error:
        return _failed(str(error), 1)
    except PrivacyError as error:
        return _failed(str(error), 2)
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
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pdprivacy", allow_abbrev=False)
    tools = parser.add_subparsers(required=True, metavar="ledger")
    commands = tools.add_parser("ledger", help="look at a ledger of privacy budgets").add_subparsers(
        dest="command", required=True, metavar="show|audit|export"
    )
    helps = {
        "show": "one line per budget, or one budget and its charges",
        "audit": "check that every record is what was entered, and print the head to remember",
        "export": "all records, or those of one budget, as JSON Lines",
    }
    for name, told in helps.items():
        command = commands.add_parser(name, help=told, description=told, allow_abbrev=False)
        command.add_argument("address", metavar="ADDRESS", help="the path, or the URL of a database server")
        if name == "audit":
            command.add_argument("--head", help="what an earlier audit printed as the head")
        else:
            command.add_argument("--name", help="of one budget")
        if name == "export":
            command.add_argument("--output", metavar="FILE", help="a new file, in place of the output")
    return parser


def _show(ledger: Ledger, name: str | None) -> None:
    if name is not None:
        name = check_name(name, "name")
        account, entries = StoredBook(ledger.chain, name).entries()
        shown = [
            replace(one, label=printable(one.label), mechanism=printable(one.mechanism)) for one in entries
        ]
        print(text.plain(account, shown, name))
        return
    with ledger.chain.reading() as reader:
        open_charges = _unanswered(reader)
        rows = [
            _line(one, StoredBook(ledger.chain, one).account_in(reader), open_charges[one])
            for one in reader.budgets()
        ]
    table = [(*COLUMNS, *MORE), *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print("  ".join(f"{value:<{width}}" for value, width in zip(row, widths, strict=True)).rstrip())


def _line(name: str, account: Account, unanswered: int) -> tuple[str, ...]:
    terms = account.terms
    amounts = (account.total, terms.rule.spent(account.spent), terms.rule.left(account.spent))
    return (
        printable(name),
        "rho" if isinstance(terms.total, ZCDP) else "epsilon",
        *(show(one.amount) for one in amounts),
        *(show(one.delta) for one in amounts),
        terms.accounting,
        "-" if terms.unit is None else str(terms.unit),
        str(account.charges),
        str(unanswered),
    )


def _unanswered(reader: Reader) -> dict[str, int]:
    """How many charges of each budget no answer is known of."""
    charges: dict[str, int] = {}
    waiting: dict[str, set[int]] = {}
    for row in reader.rows():
        if row.kind == "charge":
            charges[row.budget] = charges.get(row.budget, 0) + 1
            waiting.setdefault(row.budget, set()).add(charges[row.budget])
        elif row.kind == "answer":
            waiting.setdefault(row.budget, set()).discard(answer_of(row)[0])
    return {name: len(waiting.get(name, ())) for name in reader.budgets()}


def _audit(ledger: Ledger, head: str | None) -> None:
    found = ledger.audit(head)
    counts = {name: getattr(found, name) for name in ("records", "budgets", "charges", "unanswered")}
    print("No fault found:", ", ".join(f"{name} {number}" for name, number in counts.items()))
    print(f"head {found.head}".rstrip())


def _export(ledger: Ledger, name: str | None, output: str | None) -> None:
    if name is not None:
        name = check_name(name, "name")
        ledger.budget(name)  # refuses one that is not there
    with _written(output) as file, ledger.chain.reading() as reader:
        for row in reader.rows(name):
            file.write(_json(row))


def _json(row: Row) -> str:
    """The line of a record; the body as it was hashed, byte by byte."""
    parse(row)
    if not (row.body.isascii() and row.body.isprintable()):
        raise altered(row)
    columns = {name: getattr(row, name) for name in ("number", "budget", "kind", "release")}
    return f'{json.dumps(columns)[:-1]}, "body": {row.body}, "hash": "{row.hash.hex()}"}}\n'


@contextmanager
def _written(path: str | None) -> Iterator[TextIO]:
    """A new file, on disk when the block is left and gone when it fails; or the output."""
    if path is None:
        yield sys.stdout
        return
    try:
        file = open(path, "x", encoding="ascii", newline="\n")  # noqa: SIM115
    except FileExistsError:
        raise ParameterError(f"{path!r} exists already. Nothing was exported.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no file can have that name"
        raise ParameterError(f"{path!r} cannot be written: {reason}. Nothing was exported.") from None
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise


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
