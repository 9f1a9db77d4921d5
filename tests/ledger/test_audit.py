"""Altered, removed, forged and older records of a ledger: an audit, or the next use, finds them."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import re
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from pdprivacy import Ledger, Pure
from pdprivacy.errors import AlreadyCharged, LedgerError, ParameterError, TamperedLedgerError
from pdprivacy.ledger.store import ROOT, canonical, digest


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "budget.db"


class Intruder(sqlite3.Connection):
    """Without the triggers that refuse changes, which are put back in the end."""

    triggers: list[tuple[str, str]]

    def close(self) -> None:
        for _, statement in self.triggers:
            self.execute(statement)
        self.commit()
        super().close()


def raw(path: Path) -> Intruder:
    connection = sqlite3.connect(path, factory=Intruder)
    connection.execute("PRAGMA journal_mode=MEMORY")
    query = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
    connection.triggers = connection.execute(query).fetchall()
    for name, _ in connection.triggers:
        connection.execute(f'DROP TRIGGER "{name}"')
    return connection


def altered(path: Path, *statements: tuple[str, tuple]) -> None:
    connection = raw(path)
    for statement, values in statements:
        assert connection.execute(statement, values).rowcount != 0
    connection.commit()
    connection.close()


@pytest.fixture(scope="module")
def content(tmp_path_factory) -> bytes:
    """A ledger of two budgets, three charges each, with answers; closed, and not seen by this process."""
    code = """
import sys, pdprivacy
ledger = pdprivacy.Ledger(sys.argv[1])
for name in ("one", "two"):
    budget = ledger.open(name, pdprivacy.Pure(1))
    for part in range(3):
        entry = budget.charge(pdprivacy.Pure("0.125"), f"mean {part}", release_id=f"r{part}")
        budget.answered(entry.number, 0.5)
"""
    path = tmp_path_factory.mktemp("filled") / "budget.db"
    subprocess.run([sys.executable, "-c", code, path], check=True)
    assert not any((path.parent / "budget.db-journal").read_bytes()[:28])  # nothing is to be rolled back
    return path.read_bytes()


@pytest.fixture
def filled(path, content) -> Path:
    """A copy of that ledger for each test: a process remembers the records of an address."""
    path.write_bytes(content)
    return path


@pytest.mark.full
def test_a_ledger_as_it_was_entered_passes(filled):
    audit = Ledger(filled).audit()
    assert (audit.records, audit.charges, audit.budgets, audit.unanswered) == (15, 6, 2, 0)
    assert audit.head == Ledger(filled).head
    assert Ledger(filled).audit(audit.head) == audit


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("number", range(1, 16))
def test_a_byte_of_any_record_is_found(filled, number, monkeypatch):
    connection = raw(filled)
    body, row_hash = connection.execute(
        "SELECT body, hash FROM records WHERE number = ?", (number,)
    ).fetchone()
    connection.close()
    rng = np.random.default_rng(number)
    positions = rng.choice(len(body), 6, replace=False).tolist()
    for position in positions:
        other = chr(ord(body[position]) ^ (1 << int(rng.integers(0, 6))))
        altered(
            filled,
            (
                "UPDATE records SET body = ? WHERE number = ?",
                (body[:position] + other + body[position + 1 :], number),
            ),
        )
        with pytest.raises(TamperedLedgerError, match=rf"record {number}\b"):
            Ledger(filled).audit()
        altered(filled, ("UPDATE records SET body = ? WHERE number = ?", (body, number)))
    for position in rng.choice(32, 4, replace=False).tolist():
        broken = row_hash[:position] + bytes([row_hash[position] ^ 1]) + row_hash[position + 1 :]
        altered(filled, ("UPDATE records SET hash = ? WHERE number = ?", (broken, number)))
        # the last one is known by its hash
        with pytest.raises(TamperedLedgerError, match=rf"record {number}\b|what it held before"):
            Ledger(filled).audit()
        monkeypatch.setattr("pdprivacy.ledger.store._seen", {})
        altered(filled, ("UPDATE records SET hash = ? WHERE number = ?", (row_hash, number)))
    Ledger(filled).audit()


@pytest.mark.parametrize(
    "change",
    [
        [("DELETE FROM records WHERE number = ?", (7,))],
        [("DELETE FROM records WHERE number = ?", (1,))],
        [("UPDATE records SET budget = 'three' WHERE number = ?", (3,))],
        [("UPDATE records SET kind = 'answer' WHERE number = ?", (3,))],
        [("UPDATE records SET release = NULL WHERE number = ?", (3,))],
        [("UPDATE records SET release = 'r9' WHERE number = ?", (3,))],
        [("UPDATE records SET number = ? WHERE number = 5", (-5,))],
        [
            ("UPDATE records SET number = 100 WHERE number = ?", (3,)),
            ("UPDATE records SET number = 3 WHERE number = ?", (5,)),
            ("UPDATE records SET number = 5 WHERE number = ?", (100,)),
        ],
        [("UPDATE records SET body = ? WHERE number = 3", (b"\xff\xfe",))],
        [("UPDATE records SET body = ? WHERE number = 3", ("[]",))],
        [("UPDATE records SET body = ? WHERE number = 3", ("[" * 10**5,))],
        [("UPDATE records SET hash = ? WHERE number = 3", ("text",))],
    ],
    ids=lambda change: change[0][0][:60] + str(change[0][1])[:12],
)
def test_records_removed_swapped_or_mislabelled_are_found(filled, change):
    altered(filled, *change)
    with pytest.raises(TamperedLedgerError):
        Ledger(filled).audit()


def rewritten(path: Path, change, text_of=canonical) -> None:
    """A whole new chain of bodies that ``change`` makes of each, as somebody with time may write it."""
    import json

    connection = raw(path)
    rows = connection.execute("SELECT number, body FROM records ORDER BY number").fetchall()
    before = ROOT
    for number, body in rows:
        text = text_of(change(number, json.loads(body)))
        before = digest(before, number, text)
        connection.execute("UPDATE records SET body = ?, hash = ? WHERE number = ?", (text, before, number))
    connection.commit()
    connection.close()


@pytest.mark.parametrize("field", ["loss", "spent", "charge", "asked"])
def test_sums_that_are_not_those_of_the_charges_are_found_in_a_whole_new_chain(filled, field):
    def cheaper(number, body):
        if number != 5:  # the second charge
            return body
        value = {
            "loss": {"count": 1, "loss": {"epsilon": "1/1000"}},
            "spent": ["1/8", "0", "1/64", "0"],
            "charge": 3,
            "asked": ["1/8", "0"],
        }[field]
        assert body[field] != value
        return {**body, field: value}

    rewritten(filled, cheaper)
    with pytest.raises(TamperedLedgerError, match="record 5 does not hold"):
        Ledger(filled).audit()


NO_TEXTS = {
    "space": lambda text: text.replace(",", ", ", 1),
    "before": lambda text: " " + text,
    "behind": lambda text: text + " ",
    "charge first": lambda text: text.replace("{", '{"charge":9,', 1),
    "asked": lambda text: text.replace(',"kind":', ',"asked":["0","0"],"kind":'),
    "charge": lambda text: text.replace(',"kind":', ',"charge":99,"kind":'),
    "charge later": lambda text: text.replace(',"loss":', ',"charge":99,"loss":'),
    "spent": lambda text: text.replace(',"release":', ',"spent":["0","0","0","0"],"release":'),
    "escape": lambda text: text.replace('"label":"', r'"label":"\u0061'),
    "quote": lambda text: re.sub(r'("time":"[0-9-]{10})T', r'\1"', text),
    "line": lambda text: re.sub(r'("time":"[0-9-]{10})T', r"\1\n", text),
    "last": lambda text: text[:-1] + ',"unstated":true}',
    "more": lambda text: text[:-1] + ',"version":2}',
    "release": lambda text: re.sub(r'"release":[^,]*,', "", text),
    "year": lambda text: text.replace('"time":"20', '"time":"19'),
    "kind": lambda text: text.replace('"kind":"charge"', '"kind":"answer"'),
}
"""Other texts of a charge; of two equal keys the last one counts."""


@pytest.mark.parametrize("position", [0, 1, -1])
@pytest.mark.parametrize("change", NO_TEXTS.values(), ids=NO_TEXTS)
def test_a_text_that_no_charge_has_is_found_in_a_whole_new_chain(filled, change, position):
    query = "SELECT number FROM records WHERE kind = 'charge' ORDER BY number"
    with contextlib.closing(raw(filled)) as connection:
        numbers = [number for (number,) in connection.execute(query)]
    turn = iter(range(1, 16))

    def text_of(body):
        return change(canonical(body)) if next(turn) == numbers[position] else canonical(body)

    rewritten(filled, lambda _, body: body, text_of)
    with pytest.raises(TamperedLedgerError, match=f"record {numbers[position]} does not hold"):
        Ledger(filled).audit()


def test_charges_above_the_cap_are_found_in_a_whole_new_chain(filled):
    def smaller(number, body):
        if body["kind"] == "open":
            return {**body, "total": {"count": 1, "loss": {"epsilon": "1/4"}}}
        return body

    rewritten(filled, smaller)
    with pytest.raises(TamperedLedgerError, match="the charges of 'one' are above its cap"):
        Ledger(filled).audit()


def test_only_a_head_kept_elsewhere_tells_a_whole_new_chain(filled, monkeypatch):
    head = Ledger(filled).audit().head
    monkeypatch.setattr("pdprivacy.ledger.store._seen", {})  # as another process
    rewritten(filled, lambda _, body: {**body, "label": "x"} if "label" in body else body)
    Ledger(filled).audit()
    with pytest.raises(TamperedLedgerError, match="record 15 is not the one that was remembered"):
        Ledger(filled).audit(head)


@pytest.mark.full
def test_an_older_copy_is_told_by_the_head(filled, tmp_path):
    older = tmp_path / "older.db"
    older.write_bytes(filled.read_bytes())
    ledger = Ledger(filled)
    ledger.budget("one").charge(Pure("0.5"), "x")
    ledger.close()
    head = Ledger(filled).head
    os.replace(older, filled)
    code = (
        "import sys, pdprivacy; ledger = pdprivacy.Ledger(sys.argv[1]); ledger.audit();"
        "ledger.audit(sys.argv[2])"
    )
    process = subprocess.run([sys.executable, "-c", code, filled, head], capture_output=True, text=True)
    assert "record 16 is missing" in process.stderr
    # this process has seen the later one
    for use in (
        lambda: Ledger(filled).audit(),
        lambda: Ledger(filled).budget("one").charge(Pure("0.1"), "x"),
    ):
        with pytest.raises(TamperedLedgerError, match="does not hold what it held before"):
            use()


@pytest.mark.parametrize(
    "head", ["", "x", "1:", "0:" + "0" * 64, "1:" + "0" * 63, 3, "1:" + "G" * 64, "1:" + "0" * 64 + "\n"]
)
def test_a_head_is_what_the_ledger_gave(filled, head):
    with pytest.raises(ParameterError, match="'head' must be what"):
        Ledger(filled).audit(head)
    with pytest.raises(TamperedLedgerError):
        Ledger(filled).audit("99:" + "0" * 64)


def test_an_altered_last_charge_is_refused_before_the_next_one(filled):
    connection = raw(filled)
    (body,) = connection.execute("SELECT body FROM records WHERE number = 7").fetchone()
    connection.close()
    altered(filled, ("UPDATE records SET body = ? WHERE number = 7", (body.replace('"3/8"', '"1/8"'),)))
    with pytest.raises(TamperedLedgerError, match="Record 7"):
        Ledger(filled).budget("one")
    with pytest.raises(TamperedLedgerError, match="Record 7"):
        Ledger(filled).open("one").charge(Pure("0.125"), "x")


@pytest.mark.full
def test_a_pickled_ledger_still_refuses_an_older_file(filled, tmp_path):
    older = tmp_path / "older.db"
    older.write_bytes(filled.read_bytes())
    ledger = Ledger(filled)
    ledger.budget("one").charge(Pure("0.5"), "x")
    packed = pickle.dumps(ledger)
    ledger.close()
    os.replace(older, filled)
    code = (
        "import sys, pickle, pdprivacy; ledger = pickle.loads(bytes.fromhex(sys.argv[1]));"
        "ledger.budget('one').charge(pdprivacy.Pure('0.5'), 'x')"
    )
    process = subprocess.run([sys.executable, "-c", code, packed.hex()], capture_output=True, text=True)
    assert "does not hold what it held before" in process.stderr


@pytest.mark.parametrize("kind", ["open", "charge"])
def test_an_altered_total_is_refused_before_it_is_used(filled, kind):
    connection = raw(filled)
    (number, body) = connection.execute(
        "SELECT number, body FROM records WHERE kind = ? AND budget = 'one' ORDER BY number DESC", (kind,)
    ).fetchone()
    triggers = connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'").fetchone()
    connection.close()
    assert triggers == (0,)
    other = body.replace('"epsilon":"1"', '"epsilon":"9"').replace('"3/8"', '"1/8"')
    assert other != body
    altered(filled, ("UPDATE records SET body = ? WHERE number = ?", (other, number)))
    with pytest.raises(TamperedLedgerError):
        Ledger(filled).budget("one")


def forged(path: Path, kind: str, change) -> None:
    """One more record at the end, of the right hash, made of the last one of its kind."""
    import json

    connection = raw(path)
    number, before = connection.execute(
        "SELECT number, hash FROM records ORDER BY number DESC LIMIT 1"
    ).fetchone()
    (body,) = connection.execute(
        "SELECT body FROM records WHERE kind = ? AND budget = 'one' ORDER BY number DESC", (kind,)
    ).fetchone()
    text = canonical({**json.loads(body), "release": None, **change})
    connection.execute(
        'INSERT INTO records (number, budget, kind, "release", body, hash) VALUES (?, ?, ?, NULL, ?, ?)',
        (number + 1, "one", kind, text, digest(before, number + 1, text)),
    )
    connection.commit()
    connection.close()


PAID = {"charge": 4, "asked": ["1/2", "0"]}


@pytest.mark.full(keep=5)
@pytest.mark.parametrize(
    "change",
    [
        {**PAID, "counted": [], "spent": ["3/8", "0", "3/64", "0"]},
        {
            **PAID,
            "counted": [{"count": 1, "loss": {"epsilon": "1/1000"}}],
            "spent": ["47/125", "0", "46877/1000000", "0"],
        },
        {**PAID, "spent": ["1" + "0" * 4000, "0", "1/16", "0"]},
        {**PAID, "spent": ["1e99999999", "0", "1/16", "0"]},
        {**PAID, "spent": [1, 0, 0, 0]},
        {**PAID, "spent": "1/2"},
        {**PAID, "spent": None},
        {**PAID, "spent": ["1/2", "0", "1/16", "0"], "time": "0001-01-01T00:00:00+00:00"},
        {**PAID, "spent": ["1/2", "0", "1/16", "0"], "time": "now"},
        {**PAID, "spent": ["1/2", "0", "1/16", "0"], "label": 3},
        {**PAID, "spent": ["1/2", "0", "1/16", "0"], "events": []},
        {**PAID, "spent": ["1/2", "0", "1/16", "0"], "charge": True},
        {**PAID, "spent": ["1/2", "0", "1/16", "0"], "charge": 5},
        {**PAID, "spent": ["1/2", "0", "1/16", "0"], "loss": {"count": 0, "loss": {"epsilon": "1/8"}}},
        {**PAID, "spent": ["1/2", "0", "1/16", "0"], "loss": {"count": 1, "loss": {"epsilon": "0.125"}}},
    ],
    ids=str,
)
def test_a_forged_charge_at_the_end_is_found(filled, change):
    forged(filled, "charge", change)
    with pytest.raises(TamperedLedgerError):
        Ledger(filled).audit()
    for use in (
        lambda: Ledger(filled).budgets,
        lambda: Ledger(filled).entries("one"),
        lambda: Ledger(filled).open("one").charge(Pure("1/100"), "x"),
    ):
        with suppress(LedgerError):
            use()  # nothing else is raised


def test_a_declaration_anew_with_another_total_is_refused_where_it_is_used(filled):
    """The chain is whole: whoever adds a record can compute its hash."""
    connection = raw(filled)
    number, before = connection.execute("SELECT max(number), hash FROM records").fetchone()
    query = "SELECT body FROM records WHERE kind = 'open' AND budget = 'one'"
    body = json.loads(connection.execute(query).fetchone()[0])
    larger = {**body, "kind": "redeclare", "total": {"count": 1, "loss": {"epsilon": "9"}}}
    row = (number + 1, "one", "redeclare", canonical(larger))
    connection.execute(
        "INSERT INTO records (number, budget, kind, body, hash) VALUES (?, ?, ?, ?, ?)",
        (*row, digest(before, row[0], row[-1])),
    )
    connection.commit()
    connection.close()
    for use in (
        lambda: Ledger(filled).budget("one"),
        lambda: Ledger(filled).open("one").charge(Pure(2), "x"),
        lambda: Ledger(filled).audit(),
    ):
        with pytest.raises(TamperedLedgerError):
            use()


def test_a_forged_total_at_the_end_is_refused(filled):
    forged(filled, "open", {"kind": "open", "total": {"count": 1, "loss": {"epsilon": "9"}}})
    with pytest.raises(TamperedLedgerError):
        Ledger(filled).audit()


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DROP TRIGGER records_stay", "the trigger 'records_stay' is missing"),
        ("DROP TRIGGER records_follow", "the trigger 'records_follow' is missing"),
        ("DROP INDEX records_by_kind", "the index 'records_by_kind' is missing"),
        ("DROP INDEX records_by_release", "the index 'records_by_release' is missing"),
        ("CREATE TRIGGER more AFTER INSERT ON records BEGIN SELECT 1; END", "a trigger was added"),
    ],
)
def test_an_audit_finds_what_no_longer_guards_the_records(filled, statement, words):
    connection = sqlite3.connect(filled)
    connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(TamperedLedgerError, match=words):
        Ledger(filled).audit()


def lacking_a_release(path: Path) -> None:
    """Damage what looks records up alone: they are as they were entered."""
    content = bytearray(path.read_bytes())
    size = int.from_bytes(content[16:18], "big")
    for start in range(size, len(content), size):
        page = content[start : start + size]
        if page[0] == 10 and page.count(b"oner0") == 1:  # the leaf of an index of budgets and releases
            content[start + page.index(b"oner0") + 4] ^= 1
            break
    else:
        pytest.fail("there is no such page")
    path.write_bytes(content)


def test_an_audit_finds_an_index_that_lacks_a_release(filled):
    lacking_a_release(filled)
    with pytest.raises(TamperedLedgerError, match="SQLite finds damage"):
        Ledger(filled).audit()


def test_no_copy_is_made_of_altered_records(filled, tmp_path):
    altered(filled, ("UPDATE records SET body = replace(body, 'mean 0', 'mean 9') WHERE number = 3", ()))
    with pytest.raises(TamperedLedgerError, match="Record 3"):
        Ledger(filled).backup(tmp_path / "copy.db")
    assert [path.name for path in tmp_path.iterdir() if "copy" in path.name] == []


def test_a_copy_has_indexes_of_its_own(filled, tmp_path):
    lacking_a_release(filled)
    Ledger(filled).backup(tmp_path / "copy.db")
    assert Ledger(tmp_path / "copy.db").audit().charges == 6
    with pytest.raises(AlreadyCharged):
        Ledger(tmp_path / "copy.db").budget("one").charge(Pure("0.125"), "mean", release_id="r0")


def test_an_index_that_hides_the_last_charge_is_found(filled):
    connection = raw(filled)
    connection.execute("DROP INDEX records_by_kind")
    (statement,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'records'").fetchone()
    assert statement.startswith("CREATE TABLE records")
    # an index of all records but one, under the name and the text of the whole one
    connection.execute("CREATE INDEX records_by_kind ON records (budget, kind, number) WHERE number <> 7")
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_master SET sql = 'CREATE INDEX records_by_kind ON records (budget, kind, number)'"
        " WHERE name = 'records_by_kind'"
    )
    connection.commit()
    connection.close()
    ledger = Ledger(filled)
    for read in (
        lambda: ledger.budget("one").spent,
        lambda: ledger.open("one").left,
        lambda: ledger.budgets,
        lambda: ledger.entries("one"),
    ):
        with pytest.raises(TamperedLedgerError, match="disagree on the last charge"):
            read()
    with pytest.raises(TamperedLedgerError, match="disagree on the last charge"):
        Ledger(filled).budget("one").charge(Pure("0.125"), "mean")
    with pytest.raises(TamperedLedgerError, match="SQLite finds damage"):
        Ledger(filled).audit()
