"""Flipped bits in a ledger, or in the journal of a killed process, never let a budget pay beyond its cap."""

from __future__ import annotations

import gc
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path

import pytest

from pdprivacy import Ledger, Pure
from pdprivacy.errors import LedgerError, PrivacyError, TamperedLedgerError
from pdprivacy.ledger.sqlite import SQLiteStore
from pdprivacy.ledger.store import Row
from tests.support.system_calls import FAILING_CALLS, compiled

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

ROOT = Path(__file__).parents[2]
NAME = "a survey with a name so long that few of its records fill a page of an index"
CHARGES, CAP = 3, 4
LABEL = "count of the records of the survey" * 4  # longer than a page
SHARDS, JOURNAL_SHARDS = 16, 8
SAMPLE = 40
ENDS = ("", "-lock", "-journal")

Bits = int | range
"""A bit of a file, or several that are flipped together."""

Files = dict[str, bytes]
"""The files of a ledger, by the end of their names."""


def read_files(path: Path) -> Files:
    return {end: Path(f"{path}{end}").read_bytes() for end in ENDS if Path(f"{path}{end}").exists()}


def write_files(files: Files, path: Path) -> None:
    for end, content in files.items():
        Path(f"{path}{end}").write_bytes(content)


def rows_of(path: Path) -> list[Row]:
    return SQLiteStore(path).read(lambda reader: reader.span(0, 1000))


def in_small_pages(path: Path) -> Files:
    """Return the files of a copy of a ledger in pages of 512 bytes, with one more charge."""
    small = path.with_name("small.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA page_size=512")
        connection.execute("VACUUM INTO ?", (str(small),))
    Ledger(small).open("other", Pure(CAP)).charge(Pure(1), "count")  # makes the other files
    return read_files(small)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory) -> Files:
    """Make a ledger with pages of 512 bytes, 3 charges of 1, and room for 1 more."""
    path = tmp_path_factory.mktemp("ledger") / "budget.db"
    with Ledger(path) as ledger:
        ledger.open("other", Pure(CAP))
        budget = ledger.open(NAME, Pure(CAP))
        for number in range(CHARGES):
            entry = budget.charge(Pure(1), LABEL if number == 1 else "count", release_id=f"release {number}")
        budget.answered(entry.number)
    files = in_small_pages(path)
    kinds = {page[0] for page in pages(files[""])[1:]}
    # interior and leaf pages of indexes and of the table, and overflow pages
    assert kinds == {2, 10, 5, 13, 0}
    return files


@pytest.fixture(scope="module")
def content(ledger) -> bytes:
    """Return the database alone, as if it was brought from another place."""
    return ledger[""]


def pages(content: bytes) -> list[bytes]:
    size = int.from_bytes(content[16:18], "big")
    assert size == 512
    assert not len(content) % size
    return [content[start : start + size] for start in range(0, len(content), size)]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder, in memory where there is one, as nothing here is about durability."""
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=shared) as name:
        yield Path(name)


def charged(path: Path) -> int:
    """Return how many charges a ledger takes; it may refuse with any error of this package."""
    number = 0
    with Ledger(path) as ledger:
        with suppress(PrivacyError):  # the budget is there, with another total
            ledger.open(NAME, Pure(100))
        with suppress(PrivacyError):
            budget = ledger.budget(NAME)
            while number < 5:
                entry = budget.charge(Pure(1), "count")
                assert entry.number > CHARGES, "a charge is forgotten"
                number += 1
    return number


def overspends(path: Path) -> str:
    """Describe what is wrong with a damaged ledger; return an empty text if its budget does not overspend."""
    moved = path.with_name(f"{path.name}-moved.db")
    number = charged(path)
    if number:  # under another name, this process takes it for a ledger that it has never seen
        for end in ENDS:
            with suppress(FileNotFoundError):
                os.rename(f"{path}{end}", f"{moved}{end}")
        number += charged(moved)
        for end in ENDS:
            with suppress(FileNotFoundError):
                os.rename(f"{moved}{end}", f"{path}{end}")
    return f"{number} charges pass" if number > CAP - CHARGES else ""


def flipped(content: bytes, bits: Bits) -> bytes:
    damaged = bytearray(content)
    for bit in [bits] if isinstance(bits, int) else bits:
        damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def unused(content: bytes, start: int) -> range:
    """Return the bytes that a page has no use for, between the pointers to its cells and the first cell.

    ``start``: the place of the page in a file. Source: sqlite.org/fileformat2.html, section 1.6.
    """
    head = start + 100 if content[start:].startswith(b"SQLite format 3") else start
    if content[head] == 0:  # an overflow page
        return range(0)
    number, first = (int.from_bytes(content[head + at : head + at + 2], "big") for at in (3, 5))
    return range(head + (12 if content[head] in (2, 5) else 8) + 2 * number, start + first)


def flips(content: bytes, unused: Iterable[int]) -> list[Bits]:
    """Return all bits of a file; the bits of an unused byte are flipped together."""
    together, groups = set(unused), []
    for byte in range(len(content)):
        bits = range(8 * byte, 8 * byte + 8)
        groups += [bits] if byte in together else bits
    return groups


def problems(
    check: Callable[[Path], str], damaged: Iterable[tuple[str, Files]], folder: Path
) -> dict[str, str]:
    """Return what is wrong with damaged ledgers, by name; a forked process checks them, as it may crash."""
    start, end = os.pipe()
    child = os.fork()
    if not child:
        wrong, status = {}, 1
        try:
            for name, files in damaged:
                path = folder / name
                write_files(files, path)
                try:
                    wrong[name] = check(path)
                except Exception as error:
                    wrong[name] = f"{type(error).__name__}: {error}"
                for last in ENDS:
                    with suppress(FileNotFoundError):
                        os.unlink(f"{path}{last}")
            some = [(name, problem) for name, problem in wrong.items() if problem][:20]
            os.write(end, json.dumps(dict(some)).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(end)
    with os.fdopen(start, "rb") as stream:
        text = stream.read()
    assert os.waitpid(child, 0)[1] == 0
    return json.loads(text)


def test_a_forked_process_collects_nothing_that_its_parent_left(folder):
    """Objects of extensions with threads, such as connections of DuckDB, crash where a fork destroys them."""
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    cycle = [connection, connection.sql("SELECT range AS x FROM range(100)").order("x DESC")]
    cycle.append(cycle)

    def check(path: Path) -> str:
        gc.collect()
        return "" if path.exists() else "no file"

    gc.disable()  # the garbage is there when the process is forked
    try:
        del connection, cycle
        assert problems(check, [("file", {"": b"content"})], folder) == {}
    finally:
        gc.enable()


def test_an_intact_ledger_takes_what_is_left_and_no_more(content, folder):
    path = folder / "budget.db"
    path.write_bytes(content)
    assert charged(path) == CAP - CHARGES
    assert Ledger(path).audit().charges == CAP + 1


def bits_of_file(content: bytes, bits: Iterable[Bits]) -> Iterator[tuple[str, Files]]:
    return ((f"bit {bit}", {"": flipped(content, bit)}) for bit in bits)


def test_a_sample_of_flipped_bits_never_lets_a_budget_overspend(content, folder):
    chance = random.Random(9)
    bits = [*range(0, 800, 80), *(chance.randrange(8 * len(content)) for _ in range(SAMPLE))]
    indexes = [index for index, page in enumerate(pages(content)) if page[0] in (2, 10)]
    bits += [8 * 512 * chance.choice(indexes) + chance.randrange(8 * 512) for _ in range(SAMPLE)]
    assert problems(overspends, bits_of_file(content, dict.fromkeys(bits)), folder) == {}


def understates(path: Path) -> str:
    """Describe a number of a damaged ledger that is less than what was charged; it may be refused."""
    ledger = Ledger(path)
    numbers = {
        "spent": lambda: ledger.budget(NAME).spent[0],
        "left": lambda: CAP - ledger.budget(NAME).left[0],
        "budgets": lambda: ledger.budgets["spent"][NAME],
        "entries": lambda: ledger.entries(NAME)["epsilon"].sum(),
    }
    for name, number in numbers.items():
        with suppress(LedgerError):
            if number() < CHARGES:
                return f"{name!r} states less"
    return ""


def first_of(bits: Bits) -> int:
    """Return the bit, or the first of several that are flipped together."""
    return bits if isinstance(bits, int) else bits[0]


def bits_of_indexes(content: bytes) -> list[Bits]:
    """Return the bits of the pages of indexes, those of the kind of a charge first."""
    starts = [512 * index for index, page in enumerate(pages(content)) if page[0] in (2, 10)]
    every = flips(content, chain.from_iterable(unused(content, start) for start in starts))
    inside = [bits for bits in every if first_of(bits) // 8 // 512 * 512 in starts]
    kinds = {at for match in re.finditer(b"charge", content) for at in range(*match.span())}
    return sorted(inside, key=lambda bits: first_of(bits) // 8 not in kinds)


def test_flipped_bits_of_an_index_never_state_less_than_was_charged(content, folder):
    bits = bits_of_indexes(content)
    chance = random.Random(3)
    sample = [*bits[: 8 * len(b"charge") * 2 * CAP : 9], *chance.sample(bits, SAMPLE // 2)]
    assert problems(understates, bits_of_file(content, dict.fromkeys(sample)), folder) == {}


@pytest.mark.full
@pytest.mark.parametrize("shard", range(JOURNAL_SHARDS))
def test_no_flipped_bit_of_an_index_states_less_than_was_charged(content, folder, shard):
    bits = bits_of_indexes(content)[shard::JOURNAL_SHARDS]
    assert problems(understates, bits_of_file(content, bits), folder) == {}


@pytest.mark.full
@pytest.mark.parametrize(
    "shard",
    [
        pytest.param(number, marks=pytest.mark.xdist_group(f"flipped bits {number % 4}"))
        for number in range(SHARDS)
    ],
)
def test_no_flipped_bit_lets_a_budget_overspend(content, folder, shard):
    gaps = [unused(content, 512 * page) for page in range(len(pages(content)))]
    bits = flips(content, chain.from_iterable(gaps))
    assert problems(overspends, bits_of_file(content, bits[shard::SHARDS]), folder) == {}


# ---------------------------------------------------------------- the journal of a killed process

# Charge copies of a ledger in forked processes; kill each process at the next change, until one survives.
PROGRAM = """
import ctypes, itertools, os, shutil, sys
from pdprivacy import Ledger, Pure

library, path, name = ctypes.CDLL(sys.argv[1]), sys.argv[2], sys.argv[3]
for k in itertools.count(1):
    for end in ("", "-lock", "-journal"):
        shutil.copy(path + end, f"{path}.{k}{end}")
    if not (pid := os.fork()):
        budget = Ledger(f"{path}.{k}").budget(name)
        library.fault_arm(b"write", ctypes.c_long(k), 0, 0)
        budget.charge(Pure(1), "killed", release_id="killed")
        os._exit(0)
    if not os.waitpid(pid, 0)[1]:
        break
"""


@pytest.fixture(scope="module")
def kill(tmp_path_factory) -> Callable[[Files], list[Files]]:
    """Return a function that kills processes within a commit and returns the files that each one leaves."""
    library = compiled(FAILING_CALLS, tmp_path_factory.mktemp("library"))

    def files_left(ledger: Files) -> list[Files]:
        path = tmp_path_factory.mktemp("killed") / "budget.db"
        write_files(ledger, path)
        subprocess.run(
            [sys.executable, "-c", PROGRAM, library, str(path), NAME],
            env={**os.environ, "LD_PRELOAD": library, "PYTHONPATH": str(ROOT)},
            check=True,
        )
        number = len(list(path.parent.glob("*.db.*-lock")))
        *files, last = (read_files(path.with_name(f"budget.db.{k}")) for k in range(1, number + 1))
        assert not any(last["-journal"][:28])  # this process was not killed
        torn = [state for state in files if state[""] != ledger[""]]
        assert len({state[""] for state in torn}) == len(torn) > 3
        assert len({len(state["-journal"]) for state in torn}) == 1
        return torn

    return files_left


@pytest.fixture(scope="module")
def killed(ledger, kill) -> list[Files]:
    return kill(ledger)


@pytest.fixture(scope="module")
def rows(ledger, tmp_path_factory) -> list[Row]:
    """Return the records that were reported."""
    path = tmp_path_factory.mktemp("rows") / "budget.db"
    write_files(ledger, path)
    return rows_of(path)


def forgets(rows: list[Row], *, writes: bool = False) -> Callable[[Path], str]:
    """Return a check for charges above the cap, and for missing records that the audit does not find.

    ``writes``: whether the first transaction writes.
    """

    def check(path: Path) -> str:
        if writes:
            with suppress(LedgerError):
                SQLiteStore(path).write(lambda writer: None, create=False)
        problem = overspends(path)
        with suppress(LedgerError):
            if not problem and rows_of(path)[: len(rows)] != rows:
                Ledger(path).audit()
                problem = "a record is missing"
        return problem

    return check


def assert_keeps(rows: list[Row], damaged: Iterable[tuple[str, Files]], folder: Path) -> None:
    """Check ledgers, each with a first transaction that reads and with one that writes."""
    ledgers = list(damaged)
    for first in ("read", "write"):
        named = [(f"{first} {name}", files) for name, files in ledgers]
        assert problems(forgets(rows, writes=first == "write"), named, folder) == {}


def bits_of_journal(files: Files, bits: Iterable[Bits], name: str = "") -> Iterator[tuple[str, Files]]:
    return ((f"{name} bit {bit}", {**files, "-journal": flipped(files["-journal"], bit)}) for bit in bits)


def bits_of_heads(journal: bytes) -> list[int]:
    """Return the bits of the header of a journal, and of the page number and the checksum of each page."""
    records = range(512, len(journal), 520)
    heads = [range(28), *(range(start, start + 4) for start in records)]
    heads += [range(start + 516, start + 520) for start in records]
    return [8 * byte + bit for head in heads for byte in head for bit in range(8)]


def test_a_process_killed_within_a_commit_leaves_all_reported_charges(killed, rows, folder):
    def check(path):
        assert rows_of(path) == rows
        assert Ledger(path).audit().charges == CAP
        return "" if charged(path) == CAP - CHARGES else "another number of charges passes"

    damaged = [(f"killed {number}", files) for number, files in enumerate(killed)]
    assert problems(check, damaged, folder) == {}
    assert_keeps(rows, damaged, folder)


def test_a_sample_of_flipped_bits_in_a_journal_loses_no_reported_charge(killed, rows, folder):
    chance = random.Random(4)
    for number, files in enumerate(killed):
        heads = bits_of_heads(files["-journal"])
        bits = {*chance.sample(heads, 10), *chance.sample(range(8 * len(files["-journal"])), 5)}
        check = forgets(rows, writes=number % 2 == 0)
        assert problems(check, bits_of_journal(files, bits, f"killed {number}"), folder) == {}


@pytest.mark.full
@pytest.mark.parametrize(
    "shard",
    [
        pytest.param(number, marks=pytest.mark.xdist_group(f"flipped bits {number % 4}"))
        for number in range(JOURNAL_SHARDS)
    ],
)
def test_no_flipped_bit_in_a_journal_loses_a_reported_charge(killed, rows, folder, shard):
    """The first transaction reads for one half of the bits, and writes for the other."""
    files = killed[len(killed) // 2]
    journal = files["-journal"]
    gaps = [range(28, 512), *(unused(journal, start + 4) for start in range(512, len(journal), 520))]
    bits = flips(journal, chain.from_iterable(gaps))[shard::JOURNAL_SHARDS]
    for half in (0, 1):
        check = forgets(rows, writes=bool(half))
        assert problems(check, bits_of_journal(files, bits[half::2]), folder) == {}


@pytest.mark.full
@pytest.mark.parametrize("first", ["read", "write"])
def test_no_flipped_bit_in_the_heads_of_a_journal_loses_a_reported_charge(killed, rows, folder, first):
    check = forgets(rows, writes=first == "write")
    for number, files in enumerate(killed):
        bits = bits_of_heads(files["-journal"])
        assert problems(check, bits_of_journal(files, bits, f"killed {number}"), folder) == {}


def test_no_flipped_bit_in_the_head_of_a_cleared_journal_loses_a_charge(ledger, rows, folder):
    path = folder / "budget.db"
    write_files(ledger, path)
    Ledger(path).budget("other").charge(Pure(1), "last")
    files = read_files(path)
    assert not any(files["-journal"][:28])
    bits = [*range(8), *range(8, 8 * 28, 9)]
    assert_keeps(rows_of(path), bits_of_journal(files, bits), folder)


def test_a_ledger_whose_journal_was_removed_is_refused(killed, folder):
    for number, files in enumerate(killed):
        path = folder / f"{number}.db"
        write_files({"": files[""], "-lock": files["-lock"]}, path)
        with pytest.raises(LedgerError):
            rows_of(path)
        assert charged(path) == 0


def test_a_removed_journal_and_lock_lose_no_reported_charge(killed, rows, folder):
    assert_keeps(rows, [(f"killed {number}", {"": files[""]}) for number, files in enumerate(killed)], folder)


@pytest.mark.parametrize("size", [512, pytest.param(2048, marks=pytest.mark.full)])
def test_a_journal_of_another_ledger_is_refused(killed, kill, ledger, folder, size):
    path = folder / "another.db"
    Ledger(path).open(NAME, Pure(CAP)).charge(Pure(1), "count")
    journal = kill(in_small_pages(path) if size == 512 else read_files(path))[-1]["-journal"]
    for number, files in enumerate([ledger, {"": ledger[""]}, *killed]):
        path = folder / f"{number}.db"
        write_files({**files, "-journal": journal}, path)
        with pytest.raises(LedgerError):
            rows_of(path)
        assert charged(path) == 0
        left = read_files(path)
        assert (left[""], left["-journal"]) == (files[""], journal)  # nothing is rolled back


@pytest.mark.parametrize("charges", [0, 2])
@pytest.mark.parametrize("first", ["read", "write"])
def test_the_journal_of_an_earlier_transaction_loses_no_later_charge(killed, folder, charges, first):
    """A copy of the journal of the killed process is put back after later charges."""
    for number in (0, len(killed) - 1):
        path = folder / f"{number}.db"
        write_files(killed[number], path)
        if first == "read":
            rows_of(path)
        budget = Ledger(path).budget("other")
        for _ in range(charges):
            budget.charge(Pure(1), "later")
        rows, files = rows_of(path), {**read_files(path), "-journal": killed[number]["-journal"]}
        damaged = [(f"with lock {number}", files), (f"alone {number}", {**files, "-lock": b""})]
        assert_keeps(rows, damaged, folder)


def test_a_head_tells_that_the_journal_of_the_last_transaction_was_put_back(killed, folder):
    """A ledger with the journal of its last transaction is one whose process was killed within COMMIT."""
    path, moved = folder / "budget.db", folder / "moved.db"
    write_files(killed[0], path)
    rows_of(path)
    Ledger(path).budget("other").charge(Pure(1), "undone")
    head = Ledger(path).head
    write_files({**read_files(path), "-journal": killed[0]["-journal"]}, moved)
    with pytest.raises(TamperedLedgerError, match="missing"):
        Ledger(moved).audit(head)
