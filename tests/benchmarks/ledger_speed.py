"""Speed of the ledger against bare durable transactions of SQLite, interleaved on one disk; run by hand.

    python tests/benchmarks/ledger_speed.py [entries] [--folder FOLDER] [--charges CHARGES]

One million entries by default, in a temporary folder below the current one: a disk, not memory, because what
is measured is what it costs to be durable. A ratio is the median over rounds of what ours took over what the
other took. Where each waits for the disk, they take turns within a round, insert by insert.
"""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pdprivacy import Budget, Ledger, Pure
from pdprivacy.core.accounting import Event
from pdprivacy.ledger.account import Charge
from pdprivacy.ledger.store import Writer

ROUNDS = 9
LABEL = "mean of age where (age > 30 and region == 'north')"
COST = Pure("1/1000")
TOTAL = Pure(10**9)
THREADS, PROCESSES = 16, 4
WRITTEN = 20_000  # records of a transaction while the large ledger is made
SCHEMA = pa.DataFrameSchema({"age": pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})})

missed = 0


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def row(label: str, values: list[float], target: float | None, unit: str = "") -> None:
    """One line of the report: the median of ``values`` against ``target``."""
    global missed
    middle = statistics.median(values)
    mark = ""
    if target is not None:
        met = middle <= target
        missed += not met
        mark = f"{target:>9.3g}  {'ok' if met else 'MISSED'}"
    spread = f"({min(values):.3g}..{max(values):.3g})"
    print(f"{label:<66}{middle:>9.3f} {unit:<3}{spread:>18}{mark}", flush=True)


# ---------------------------------------------------------------- what a durable record costs at least


class Bare:
    """Rows in a table of SQLite, each in a durable transaction with a connection of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.Lock()
        with closing(self.connection()) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS rows (number INTEGER PRIMARY KEY, body TEXT)")

    def connection(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=60)
        connection.execute("PRAGMA journal_mode=PERSIST")
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    def insert(self, text: str) -> None:
        with self.lock, closing(self.connection()) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("INSERT INTO rows (body) VALUES (?)", (text,))
            connection.execute("COMMIT")


def body_of(ledger: Ledger) -> str:
    """The text of the last record, with as many more bytes as the columns beside it have."""
    last = ledger.chain.read(lambda reader: reader.last())
    assert last is not None
    return last.body + "x" * (len(last.budget) + len(last.kind) + len(last.hash))


def in_threads(work: Callable[[], None], number: int) -> float:
    """Seconds until all threads have done the work."""
    threads = [threading.Thread(target=work) for _ in range(number)]

    def run() -> None:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return seconds(run)


def in_processes(kind: str, path: Path, number: int, charges: int) -> float:
    """Seconds per insert, while that many processes insert at once, start-up left out."""
    command = [sys.executable, __file__, "--work", kind, "--folder", str(path), "--charges", str(charges)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = [subprocess.Popen(command, **pipes) for _ in range(number)]
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()
    start = time.perf_counter()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()
    took = time.perf_counter() - start
    for worker in workers:
        worker.communicate()
    return took / (number * charges)


def work(kind: str, path: Path, charges: int) -> None:
    """Run the work of one process of `in_processes`."""
    if kind == "charge":
        budget = Ledger(path).budget("survey")
        task: Callable[[], object] = lambda: budget.charge(COST, LABEL, "laplace")  # noqa: E731
    else:
        bare, text = Bare(path), "x" * 450
        task = lambda: bare.insert(text)  # noqa: E731
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(charges):
        task()
    print("done", flush=True)
    sys.stdin.readline()


# ---------------------------------------------------------------- comparisons


def charging(folder: Path, charges: int) -> None:
    """Charges against bare inserts: one after the other, from threads, from processes."""
    ledger = Ledger(folder / "charges.db")
    budget = ledger.open("survey", TOTAL)
    budget.charge(COST, LABEL, "laplace")
    bare, text = Bare(folder / "bare.db"), body_of(ledger)

    def ours() -> None:
        for _ in range(charges):
            budget.charge(COST, LABEL, "laplace")

    def theirs() -> None:
        for _ in range(charges):
            bare.insert(text)

    ours()
    theirs()
    pairs = []
    for _ in range(ROUNDS):
        took = [0.0, 0.0]
        for _ in range(charges):
            took[0] += seconds(lambda: budget.charge(COST, LABEL, "laplace"))
            took[1] += seconds(lambda: bare.insert(text))
        pairs.append((took[0] / charges, took[1] / charges))
    row("charge", [1000 * first for first, _ in pairs], 1, "ms")
    row("bare durable insert of as much text", [1000 * second for _, second in pairs], None, "ms")
    row("charge / bare durable insert", [first / second for first, second in pairs], None)
    memory = Budget(epsilon=10**9)
    row("charge of a budget in memory", [charge_of(memory, charges) for _ in range(ROUNDS)], None, "ms")
    ratios = [in_threads(ours, THREADS) / in_threads(theirs, THREADS) for _ in range(5)]
    row(f"charges of {THREADS} threads / bare inserts of as many threads", ratios, None)
    ledger.close()
    pairs = [
        (
            in_processes("charge", folder / "charges.db", PROCESSES, charges),
            in_processes("bare", folder / "bare.db", PROCESSES, charges),
        )
        for _ in range(3)
    ]
    row(f"charge, {PROCESSES} processes at once", [1000 * first for first, _ in pairs], None, "ms")
    row(f"bare insert, {PROCESSES} processes at once", [1000 * second for _, second in pairs], None, "ms")
    row(
        f"charges of {PROCESSES} processes / bare inserts of as many",
        [first / second for first, second in pairs],
        None,
    )


def charge_of(budget: Budget, charges: int) -> float:
    """Milliseconds of a charge."""
    return 1000 * seconds(lambda: [budget.charge(COST, LABEL, "laplace") for _ in range(charges)]) / charges


def releasing(folder: Path) -> None:
    """A whole release with the budget in a ledger, against one with it in memory."""
    frame = pd.DataFrame({"age": np.random.default_rng(1).integers(1, 120, 10_000)})
    in_ledger = frame.dp.protect(SCHEMA, epsilon=10**9, budget=Ledger(folder / "release.db"), name="survey")
    plain = frame.dp.protect(SCHEMA, budget=Budget(epsilon=10**9))

    def ours() -> object:
        return in_ledger.dp.mean("age", epsilon=0.001)

    def theirs() -> object:
        return plain.dp.mean("age", epsilon=0.001)

    ours()
    theirs()
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(10 * ROUNDS)]
    row("mean of 10,000 rows, budget in a ledger", [1000 * first for first, _ in pairs], None, "ms")
    row("mean of 10,000 rows, budget in memory", [1000 * second for _, second in pairs], None, "ms")
    row("mean with ledger / without", [first / second for first, second in pairs], None)


def make(path: Path, entries: int) -> None:
    """A ledger of that many charges of one budget, made by the store itself."""
    ledger = Ledger(path)
    ledger.open("survey", TOTAL)
    account = ledger.budget("survey").account
    charge = Charge(COST, 1, LABEL, "laplace", ((Event(COST), 1),), None, None)
    for start in range(0, entries, WRITTEN):
        bodies = []
        for _ in range(min(WRITTEN, entries - start)):
            entry = account.charge(charge)
            account = entry.after
            bodies.append(entry.to_json())

        def add(writer: Writer, bodies: list[dict[str, Any]] = bodies) -> None:
            for body in bodies:
                writer.add("survey", "charge", None, body)

        ledger.chain.write(add)
    ledger.close()


def large(folder: Path, entries: int) -> None:
    """A ledger of many entries: opened anew, charged, audited."""
    path = folder / "large.db"
    took = seconds(lambda: make(path, entries))
    print(f"(ledger of {entries:,} entries made in {took:.0f} s, {path.stat().st_size / 1e6:.0f} MB)")

    def total() -> object:
        ledger = Ledger(path)
        spent = ledger.budget("survey").spent
        ledger.close()
        return spent

    total()
    row(
        f"{entries:,} entries: open, and read the total", [1000 * seconds(total) for _ in range(21)], 50, "ms"
    )
    code = (
        "import sys, time, pdprivacy.ledger.sqlite; start = time.perf_counter();"
        "pdprivacy.Ledger(sys.argv[1]).budget('survey').spent; print(time.perf_counter() - start)"
    )
    fresh = [
        1000 * float(subprocess.check_output([sys.executable, "-c", code, str(path)], text=True))
        for _ in range(5)
    ]
    row("  the same in a fresh process, imports left out", fresh, 50, "ms")
    small, big = Ledger(folder / "small.db").open("survey", TOTAL), Ledger(path).budget("survey")
    for budget in (small, big):
        budget.charge(COST, LABEL)
    ratios = [
        seconds(lambda: big.charge(COST, LABEL)) / seconds(lambda: small.charge(COST, LABEL))
        for _ in range(50 * ROUNDS)
    ]
    row(f"charge of {entries:,} entries / of a few", ratios, 1.5)
    delayed = [delay(path, code) for code in (READ, "pdprivacy.Ledger(sys.argv[1]).audit()")]
    row(
        "  longest charge beside a reader of all entries, beside an audit",
        [1000 * latency for latency in delayed],
        50,
        "ms",
    )
    tracemalloc.start()
    took = seconds(lambda: Ledger(path).entries("survey", -10))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    row(f"{entries:,} entries: the last ten, traced", [took], None, "s")
    row("  memory at most", [peak / 1e6], 100, "MB")
    audits = [seconds(Ledger(path).audit)]
    if audits[0] < 30:
        audits += [seconds(Ledger(path).audit) for _ in range(2)]
    row(f"{entries:,} entries: audit", audits, 10, "s")


READ = "pdprivacy.Ledger(sys.argv[1]).entries('survey', -10)"


def delay(path: Path, code: str) -> float:
    """Seconds of the longest of the charges made while another process reads."""
    program = f"import sys, pdprivacy; {code}"
    budget, longest = Ledger(path).budget("survey"), 0.0
    with subprocess.Popen([sys.executable, "-c", program, str(path)]) as reader:
        while reader.poll() is None:
            longest = max(longest, seconds(lambda: budget.charge(COST, LABEL)))
            time.sleep(0.01)
    return longest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("entries", nargs="?", type=float, default=10**6)
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure")
    parser.add_argument("--charges", type=int, default=100, help="of each run")
    parser.add_argument("--work", choices=["charge", "bare"], help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        work(chosen.work, chosen.folder, chosen.charges)
        return
    print(
        f"SQLite {sqlite3.sqlite_version}, pandas {pd.__version__}, Python {platform.python_version()}, "
        f"{os.cpu_count()} processors"
    )
    print(f"{'what':<66}{'median':>9} {'':<3}{'(min..max)':>18}{'target':>9}")
    with tempfile.TemporaryDirectory(dir=chosen.folder, prefix="ledger_speed_") as name:
        folder = Path(name)
        charging(folder, chosen.charges)
        releasing(folder)
        large(folder, int(chosen.entries))
    print(f"{missed} targets missed" if missed else "all within target")


if __name__ == "__main__":
    main()
