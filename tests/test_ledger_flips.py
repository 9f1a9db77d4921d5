"""No single flipped bit in the file of a ledger lets a budget pay for more than its cap."""

from __future__ import annotations

import multiprocessing
import os
import random
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pandas as pd
import pytest

from pdprivacy import Ledger, Pure
from pdprivacy.errors import PrivacyError

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

NAME = "a survey with a name so long that few records fill a page of an index"
CHARGES, CAP = 5, 7
LABEL = "count of the records of the survey" * 4  # longer than a page
SHARDS = 16
SAMPLE = 40


@pytest.fixture(scope="module")
def content(tmp_path_factory) -> bytes:
    """A closed ledger of pages of 512 bytes; 5 charges of 1 were entered, 2 more may be."""
    path = tmp_path_factory.mktemp("ledger") / "budget.db"
    with Ledger(path) as ledger:
        budget, other = ledger.open(NAME, Pure(CAP)), ledger.open("other", Pure(CAP))
        other.charge(Pure(1), "count")
        for number in range(CHARGES):
            entry = budget.charge(Pure(1), LABEL if number == 2 else "count", release_id=f"release {number}")
        budget.answered(entry.number)
    small = path.with_name("small.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("PRAGMA page_size=512")
        connection.execute("VACUUM INTO ?", (str(small),))
    with Ledger(small) as ledger:  # as every ledger is kept: with a log
        ledger.open("another", Pure(1))
    kinds = {page[0] for page in pages(small.read_bytes())[1:]}
    # interior and leaf pages of indexes and of the table, and overflow pages
    assert kinds == {2, 10, 5, 13, 0}
    return small.read_bytes()


def pages(content: bytes) -> list[bytes]:
    size = int.from_bytes(content[16:18], "big")
    assert size == 512
    assert not len(content) % size
    return [content[start : start + size] for start in range(0, len(content), size)]


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is such a folder, as nothing here is about durability."""
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=shared) as name:
        yield Path(name)


def charged(path: Path) -> int:
    """How many charges a ledger takes; whatever it refuses with is an error of this package."""
    number = 0
    with Ledger(path) as ledger:
        with suppress(PrivacyError):  # the budget is there, with another total
            ledger.open(NAME, Pure(100))
        with suppress(PrivacyError):
            budget = ledger.budget(NAME)
            while number < 5:
                budget.charge(Pure(1), "count")
                number += 1
    return number


def overspends(content: bytes, bit: int, folder: Path) -> str:
    """What is wrong with a ledger of which one bit is flipped, in the words of an error; else nothing."""
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    path, moved = folder / f"{bit}.db", folder / f"{bit}-moved.db"
    path.write_bytes(damaged)
    try:
        number = charged(path)
        if number:  # under another name, this process takes it for a ledger that it has never seen
            for end in ("", "-wal", "-shm"):
                if (part := Path(f"{path}{end}")).exists():
                    part.rename(f"{moved}{end}")
            number += charged(moved)
    except Exception as error:
        return f"bit {bit} raises {type(error).__name__}: {error}"
    finally:
        for one in folder.glob(f"{bit}*"):
            one.unlink()
    return f"bit {bit} lets {number} charges pass" if number > CAP - CHARGES else ""


def test_a_whole_ledger_takes_what_is_left_and_no_more(content, folder):
    path = folder / "budget.db"
    path.write_bytes(content)
    assert charged(path) == CAP - CHARGES
    assert Ledger(path).audit().charges == CAP + 1


def overspending(content: bytes, bits: Sequence[int], folder: Path) -> list[str]:
    """What is wrong with the ledgers that have one of these bits flipped; in processes that end soon."""
    some = [bits[start : start + 200] for start in range(0, len(bits), 200)]
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        found = pool.starmap(_overspending, [(content, part, folder) for part in some], chunksize=1)
    return [one for part in found for one in part if one]


def _overspending(content: bytes, bits: Sequence[int], folder: Path) -> list[str]:
    return [overspends(content, bit, folder) for bit in bits]


def test_a_sample_of_flipped_bits_lets_no_charge_too_many_pass(content, folder):
    chance = random.Random(9)
    bits = [*range(0, 800, 80), *(chance.randrange(8 * len(content)) for _ in range(SAMPLE))]
    indexes = [place for place, page in enumerate(pages(content)) if page[0] in (2, 10)]
    bits += [8 * 512 * chance.choice(indexes) + chance.randrange(8 * 512) for _ in range(SAMPLE)]
    assert overspending(content, bits, folder) == []


@pytest.mark.full
@pytest.mark.skipif(pd.__version__.startswith("2."), reason="one version of the dependencies suffices")
@pytest.mark.parametrize(
    "shard",
    [pytest.param(one, marks=pytest.mark.xdist_group(f"flipped bits {one % 4}")) for one in range(SHARDS)],
)
def test_every_flipped_bit_lets_no_charge_too_many_pass(content, folder, shard):
    assert overspending(content, range(shard, 8 * len(content), SHARDS), folder) == []
