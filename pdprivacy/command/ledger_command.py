"""The curator's command line for a ledger: ``pdprivacy ledger show|audit|export ADDRESS [NAME]``.

It reads, and changes nothing. What takes long shows a bar, where the standard error is a terminal and tqdm is
installed; ``TQDM_DISABLE=1`` in the environment turns it off.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from pdprivacy.checks import check_name, printable
from pdprivacy.command import written
from pdprivacy.ledger import Ledger
from pdprivacy.ledger.account import Account, answer_of
from pdprivacy.ledger.audit import with_bar
from pdprivacy.ledger.book import StoredBook
from pdprivacy.ledger.store import Chain, Row, altered, parse
from pdprivacy.privacy import show
from pdprivacy.show import pages
from pdprivacy.show.markup import aligned

__all__ = ["add", "run"]

COLUMNS = ("name", "currency", "total", "spent", "left", "total delta", "spent delta", "left delta")
MORE = ("accounting", "neighbors", "charges", "unanswered")


def add(tools: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
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
        command.set_defaults(run=run)
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


def run(chosen: argparse.Namespace) -> None:
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
            replace(one, label=printable(one.label), mechanism=printable(one.mechanism)) for one in entries
        ]
        print(pages.charges_block(account, shown, name).plain)
        return
    head, accounts = ledger.accounts()
    waiting = _unanswered(ledger.chain, head)
    rows = [_line(one, account, len(waiting.get(one, ()))) for one, account in accounts.items()]
    table = [(*COLUMNS, *MORE), *rows]
    print(aligned(table, range(len(table[0]))))


def _line(name: str, account: Account, unanswered: int) -> tuple[str, ...]:
    terms = account.terms
    amounts = (account.total, account.used, account.left)
    return (
        printable(name),
        terms.currency,
        *(show(one.amount) for one in amounts),
        *(show(one.delta) for one in amounts),
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
    found = ledger.audit(head)
    counts = {name: getattr(found, name) for name in ("records", "budgets", "charges", "unanswered")}
    print("No fault found:", ", ".join(f"{name} {number}" for name, number in counts.items()))
    print(f"head {found.head}".rstrip())


def _export(ledger: Ledger, name: str | None, output: str | None) -> None:
    if name is not None:
        name = check_name(name, "name")
        ledger.budget(name)  # refuses one that is not there
    head = ledger.chain.head()
    with written(output, "exported") as file:
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
