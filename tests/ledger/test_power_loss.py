"""A power cut loses no reported charge, lets no budget overspend, and never makes a ledger unusable.

A preloaded library logs each change that a process makes to files and names in the folder of a ledger. The
tests replay the log up to each change and build the states that a disk can be in after a power cut: the disk
holds everything that was synchronized, and any part of the remaining changes in any order.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from pdprivacy import Ledger, Pure
from pdprivacy.errors import BudgetExceeded, LedgerError, MissingLedgerError
from pdprivacy.ledger.sqlite import SQLiteStore
from pdprivacy.ledger.store import Row
from tests.support.kept_ledgers import FOLDER as KEPT
from tests.support.kept_ledgers import LEDGER as KEPT_NAME
from tests.support.system_calls import compiled

ROOT = Path(__file__).parents[2]
NAME, COPY = "budget.db", "copy.db"
SECTOR = 512
FEW = 4  # up to this number of changes, every subset is built
MANY = 40  # up to this number of changes, each one is lost, kept alone and torn

LIBRARY = r"""
static char folder[PATH_MAX]; static size_t length; static int journal = -1;
void record(const char *where, const char *into) {
    snprintf(folder, sizeof folder, "%s", where); length = strlen(folder);
    journal = syscall(SYS_openat, AT_FDCWD, into, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600); }
void stop(void) { syscall(SYS_close, journal); journal = -1; }
static void note(
    const char *kind, const char *name, const char *other, long at, const void *data, long size) {
    char line[2 * PATH_MAX + 100];
    int n = snprintf(line, sizeof line, "%s\t%s\t%s\t%ld\t%ld\n", kind, name, other, at, size);
    syscall(SYS_write, journal, line, n);
    if (size) syscall(SYS_write, journal, data, size); }
void mark(const char *kind, long number) { if (journal >= 0) note("mark", kind, "", number, 0, 0); }
static const char *inside(const char *path) {
    if (journal < 0 || strncmp(path, folder, length) || (path[length] && path[length] != '/')) return 0;
    return path[length] ? path + length + 1 : path + length; }
static const char *name_of(int file) {
    static char path[PATH_MAX]; char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = journal < 0 ? -1 : readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return inside(path); }
static int opened(const char *path, int flags, int missing, int file) {
    const char *name = inside(path);
    if (name && file >= 0 && missing && (flags & O_CREAT)) note("create", name, "", 0, 0, 0);
    else if (name && file >= 0 && (flags & O_TRUNC)) note("truncate", name, "", 0, 0, 0);
    return file; }
#define OPEN(name) int name(const char *path, int flags, ...) { MODE; \
    REAL(int, name, const char *, int, ...); int missing = access(path, F_OK); \
    return opened(path, flags, missing, real(path, flags, mode)); }
OPEN(open) OPEN(open64)
#define OPENAT(name) int name(int at, const char *path, int flags, ...) { MODE; \
    REAL(int, name, int, const char *, int, ...); int missing = faccessat(at, path, F_OK, 0); \
    return opened(path, flags, missing, real(at, path, flags, mode)); }
OPENAT(openat) OPENAT(openat64)
ssize_t write(int f, const void *b, size_t n) {
    REAL(ssize_t, write, int, const void *, size_t);
    const char *name = name_of(f);
    ssize_t done = real(f, b, n);
    if (name && done > 0) note("write", name, "", lseek(f, 0, SEEK_CUR) - done, b, done);
    return done; }
#define PWRITE(name) ssize_t name(int f, const void *b, size_t n, off_t o) { \
    REAL(ssize_t, name, int, const void *, size_t, off_t); \
    ssize_t done = real(f, b, n, o); const char *path = name_of(f); \
    if (path && done > 0) note("write", path, "", o, b, done); \
    return done; }
PWRITE(pwrite) PWRITE(pwrite64)
#define SYNC(name) int name(int f) { REAL(int, name, int); int failed = real(f); \
    const char *path = name_of(f); if (path && !failed) note("sync", path, "", 0, 0, 0); return failed; }
SYNC(fsync) SYNC(fdatasync)
#define TRUNCATE(name) int name(int f, off_t n) { REAL(int, name, int, off_t); int failed = real(f, n); \
    const char *path = name_of(f); if (path && !failed) note("truncate", path, "", n, 0, 0); return failed; }
TRUNCATE(ftruncate) TRUNCATE(ftruncate64)
#define MMAP(name) void *name(void *a, size_t n, int p, int flags, int f, off_t o) { \
    REAL(void *, name, void *, size_t, int, int, int, off_t); \
    const char *path = f < 0 ? 0 : name_of(f); if (path) note("map", path, "", 0, 0, 0); \
    return real(a, n, p, flags, f, o); }
MMAP(mmap) MMAP(mmap64)
static int named(const char *kind, const char *a, const char *b, int failed) {
    const char *name = inside(a), *other = b ? inside(b) : "";
    if (!failed && name && other) note(kind, name, other, 0, 0, 0);
    return failed; }
int unlink(const char *p) { REAL(int, unlink, const char *); return named("unlink", p, 0, real(p)); }
int mkdir(const char *p, mode_t mode)
{ REAL(int, mkdir, const char *, mode_t); return named("mkdir", p, 0, real(p, mode)); }
int rename(const char *a, const char *b)
{ REAL(int, rename, const char *, const char *); return named("rename", a, b, real(a, b)); }
int link(const char *a, const char *b)
{ REAL(int, link, const char *, const char *); return named("link", a, b, real(a, b)); }
int linkat(int x, const char *a, int y, const char *b, int z) {
    REAL(int, linkat, int, const char *, int, const char *, int);
    return named("link", a, b, real(x, a, y, b, z)); }
"""

# Take steps in the ledgers of several folders. After each step, log how many records the ledger holds: all of
# these were reported.
PROGRAM = r"""
import ctypes, json, os, sys
from pdprivacy import Ledger, Pure
from pdprivacy.ledger.sqlite import SQLiteStore

library = ctypes.CDLL(sys.argv[1])
for folder, into, steps in json.load(open(sys.argv[2])):
    library.record(folder.encode(), into.encode())
    path = os.path.join(folder, "budget.db")
    ledger = Ledger(path)
    for step, *given in steps:
        if step == "open":
            ledger.open(given[0], Pure(given[1]))
        elif step == "charge":
            ledger.budget(given[0]).charge(Pure(given[1]), "count", release_id=given[2])
        elif step == "answer":
            ledger.budget(given[0]).store_answer(given[1], b"answer " * 200, {})
        elif step == "backup":
            ledger.backup(os.path.join(folder, "copy.db"))
        elif step == "write":
            SQLiteStore(path).write(lambda writer: None)
        elif step == "read":
            ledger.audit()
        number = int(ledger.head.split(":")[0])
        library.mark(step.encode(), ctypes.c_long(number))
    library.stop()
"""
ANSWER = b"answer " * 200


# ---------------------------------------------------------------- the disk


@dataclass(frozen=True)
class Change:
    """An entry of the log.

    ``kind``: "write" or "truncate" for the content of a file; "create", "mkdir", "link", "rename" or "unlink"
    for a name; "sync" for a file or a folder; "map" for a file in shared memory; or "mark", at which the
    process has reported ``at`` records. ``file``: the number of the file, as its names change.
    """

    kind: str
    name: str
    other: str = ""
    at: int = 0
    data: bytes = b""
    file: int = -1

    @property
    def of_content(self) -> bool:
        """Whether the content of a file changes, and not a name in a folder."""
        return self.kind in ("write", "truncate")

    def renamed(self, names: dict[str, int]) -> None:
        """Apply the change of a name to the names in a folder."""
        if self.kind in ("rename", "unlink"):
            names.pop(self.name, None)
        if self.kind != "unlink":
            names[self.other or self.name] = self.file

    def written(self, content: bytes) -> bytes:
        """Return the content of a file after the change."""
        if self.kind == "truncate":
            return content[: self.at].ljust(self.at, b"\0")
        return content.ljust(self.at, b"\0")[: self.at] + self.data + content[self.at + len(self.data) :]


def parsed(log: bytes) -> Iterator[Change]:
    """Yield the changes of a log of the library."""
    start = 0
    while start < len(log):
        end = log.index(b"\n", start)
        kind, name, other, at, size = log[start:end].decode().split("\t")
        start = end + 1 + int(size)
        yield Change(kind, name, other, int(at), log[end + 1 : start])


Files = dict[str, bytes | None]
"""The contents of files by name; None for a folder."""


class Disk:
    """The synchronized files of a disk, and the pending changes, of which the disk may hold any part.

    ``ignored``: a pattern; synchronizing a matching file has no effect. The name of the folder is empty.
    """

    def __init__(self, files: Files, ignored: str | None = None) -> None:
        self.ignored = ignored
        self.names = {name: number for number, name in enumerate(files)}
        self.contents = [content or b"" for content in files.values()]
        self.folders = {number for number, content in enumerate(files.values()) if content is None}
        self.pending: list[Change] = []

    def add(self, change: Change) -> None:
        """Apply the next change of the log."""
        names = dict(self.names)
        for earlier in self.pending:
            if not earlier.of_content:
                earlier.renamed(names)
        if change.kind == "sync":
            if self.ignored is None or not re.fullmatch(self.ignored, change.name):
                self._sync(change.name, names.get(change.name))
        elif change.kind in ("create", "mkdir"):
            if change.kind == "mkdir":
                self.folders.add(len(self.contents))
            self.pending.append(replace(change, file=len(self.contents)))
            self.contents.append(b"")
        elif change.kind in ("map", "mark"):
            # SQLite rebuilds the index of a write-ahead log
            assert change.kind == "mark" or change.name.endswith("-shm")
        else:
            self.pending.append(replace(change, file=names[change.name]))

    def _sync(self, name: str, file: int | None) -> None:
        """Make the content of a file durable, or the names in a folder, but never both."""
        waiting = []
        for change in self.pending:
            if change.of_content and change.file == file:
                self.contents[change.file] = change.written(self.contents[change.file])
            elif not change.of_content and os.path.dirname(change.name) == name:
                change.renamed(self.names)
            else:
                waiting.append(change)
        self.pending = waiting

    def files(self, changes: Sequence[Change]) -> Files:
        """Return the files of a disk that holds these pending changes."""
        names, contents = dict(self.names), list(self.contents)
        for change in changes:
            if change.of_content:
                contents[change.file] = change.written(contents[change.file])
            else:
                change.renamed(names)
        return {
            name: None if file in self.folders else contents[file]
            for name, file in sorted(names.items())
            if os.path.dirname(name) in ("", *names)
        }

    def states(self, chance: random.Random) -> Iterator[Files]:
        """Yield the files of the disk for subsets of the pending changes, and for parts of each write."""
        pending = self.pending
        if len(pending) <= FEW:
            for kept in product((True, False), repeat=len(pending)):
                yield self.files([change for change, keep in zip(pending, kept, strict=True) if keep])
        for _ in range(FEW):
            yield self.files([change for change in pending if chance.random() < 0.5])
        for file in {change.file for change in pending}:
            yield self.files([change for change in pending if change.file == file])
            yield self.files([change for change in pending if change.file != file])
        yield self.files(pending)
        for index in sorted(chance.sample(range(len(pending)), min(MANY, len(pending)))):
            before, change, after = pending[:index], pending[index], pending[index + 1 :]
            yield self.files(before)
            yield self.files([change])
            yield self.files(before + after)
            for part in self._parts(change, chance):
                yield self.files([*before, part])
                yield self.files([part])
                yield self.files([*before, part, *after])

    def _parts(self, change: Change, chance: random.Random) -> Iterator[Change]:
        """Yield parts of a write: its first or last sectors; at the end of a file, zeros or random bytes."""
        data = change.data
        for end in range(SECTOR - change.at % SECTOR, len(data), SECTOR):
            yield replace(change, data=data[:end])
            yield replace(change, data=data[end:], at=change.at + end)
        if change.kind == "write" and change.at >= len(self.contents[change.file]):
            yield replace(change, data=bytes(len(data)))
            yield replace(change, data=chance.randbytes(len(data)))


# ---------------------------------------------------------------- recordings


class Cap(NamedTuple):
    """A budget: its total, the loss of a charge, and the number of charges that it holds when it is full."""

    total: str
    loss: str
    charges: int


@dataclass(frozen=True)
class Recording:
    """The changes that processes made in the folder of a ledger.

    ``files``: the files at the start. ``at_start``: the number of records then. ``rows``: the records at
    the end. ``start``: the power is cut after this number of changes at the earliest.
    """

    files: Files
    at_start: int
    changes: list[Change]
    rows: list[Row]
    budgets: Mapping[str, Cap]
    start: int = 0

    @property
    def marks(self) -> list[tuple[int, Change]]:
        """The marks in the log, each with its position."""
        return [(position, change) for position, change in enumerate(self.changes) if change.kind == "mark"]

    @property
    def copied(self) -> int:
        """The number of records in the copy of the ledger."""
        return max([mark.at for _, mark in self.marks if mark.name == "backup"], default=0)


@dataclass(frozen=True)
class State:
    """Files after a power cut.

    ``least``: the number of records that were reported before the cut. ``most``: the number of records whose
    entry had begun. ``copied``: whether a copy of the ledger was reported.
    """

    files: Files
    least: int
    most: int
    copied: bool


def states(recording: Recording, each: int, ignored: str | None = None) -> list[State]:
    """Return distinct states of the disk after a power cut: at most ``each`` for a cut at one change."""
    by_files: dict[tuple[tuple[str, bytes | None], ...], State] = {}
    kept: list[tuple[tuple[str, bytes | None], ...]] = []
    chance = random.Random(1)
    disk = Disk(recording.files, ignored)
    marks = recording.marks
    for position in range(len(recording.changes) + 1):
        if position >= recording.start:
            past = [mark for at, mark in marks if at < position]
            least = max([mark.at for mark in past], default=recording.at_start)
            most = min([mark.at for at, mark in marks if at >= position], default=len(recording.rows))
            copied = any(mark.name == "backup" for mark in past)
            new = []
            for files in disk.states(chance):
                key = tuple(files.items())
                known = by_files.get(key)
                if known is None:
                    by_files[key] = State(files, least, most, copied)
                    new.append(key)
                else:  # the same files after several cuts must meet the requirements of each
                    by_files[key] = State(
                        files, max(least, known.least), min(most, known.most), copied or known.copied
                    )
            kept += chance.sample(new, min(each, len(new)))
        if position < len(recording.changes):
            disk.add(recording.changes[position])
    return [by_files[key] for key in kept]


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> str:
    return compiled(LIBRARY, tmp_path_factory.mktemp("recorder"))


@pytest.fixture(scope="module")
def fast() -> Iterator[Path]:
    """Make a folder, in memory if possible; the tests need no durable disk."""
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        yield Path(folder)


def write_files(files: Files, folder: Path) -> Path:
    """Make a folder with these files; return the path of the ledger in it."""
    folder.mkdir()
    for name, content in files.items():
        if content is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(content)
    return folder / NAME


def rows_of(path: Path) -> list[Row]:
    return SQLiteStore(path).read(lambda reader: reader.span(0, 1000))


Steps = Sequence[tuple[str, ...]]


def recorded(
    library: str, fast: Path, jobs: Sequence[tuple[Files, Steps]]
) -> list[tuple[list[Change], list[Row]]]:
    """Take steps in a new process, for each job in its own folder; return the changes and the records."""
    with tempfile.TemporaryDirectory(dir=fast) as root:
        folders = [Path(root, str(number)) for number in range(len(jobs))]
        given = []
        for (files, steps), folder in zip(jobs, folders, strict=True):
            write_files(files, folder)
            given.append((str(folder), f"{folder}.log", steps))
        Path(root, "jobs.json").write_text(json.dumps(given))
        subprocess.run(
            [sys.executable, "-c", PROGRAM, library, str(Path(root, "jobs.json"))],
            env={**os.environ, "LD_PRELOAD": library, "PYTHONPATH": str(ROOT)},
            check=True,
            timeout=300,
        )
        return [
            (list(parsed(Path(f"{folder}.log").read_bytes())), rows_of(folder / NAME)) for folder in folders
        ]


BUDGETS = {"study": Cap("5", "1", 5), "survey": Cap("5", "1", 5)}
OPENED = [("open", "study", "5"), ("open", "survey", "5")]
CHARGED = [
    ("charge", "study", "1", "1"),
    ("charge", "study", "1", "2"),
    ("charge", "survey", "1", "1"),
    ("answer", "study", "2"),
    ("charge", "study", "1", "3"),
    ("charge", "survey", "1", "2"),
    ("charge", "survey", "1", "3"),
    ("backup",),
    ("charge", "study", "1", "4"),
    ("charge", "survey", "1", "4"),
]
CLERK = "clerk, žluťoučký kůň"  # the ledger of format 1 holds two charges to this budget
LATER = [("charge", CLERK, "0.1", "1"), ("charge", CLERK, "0.1", "2")]


@pytest.fixture(scope="module")
def made(library, fast) -> Recording:
    """Record how a new ledger is made, charged, copied, and charged again."""
    ((changes, rows),) = recorded(library, fast, [({}, OPENED + CHARGED)])
    return Recording({}, 0, changes, rows, BUDGETS)


@pytest.fixture(scope="module")
def recordings(made, library, fast) -> dict[str, Recording]:
    """Record charges to a ledger of format 1 too, and to a ledger that was moved without its lock file."""
    kept = {
        path.name.replace(KEPT_NAME, NAME): path.read_bytes()
        for path in sorted((KEPT / "first" / "in_use").iterdir())
    }
    count = len(rows_of(write_files(kept, fast / "kept")))
    position, mark = made.marks[5]
    brought = {
        name: content
        for name, content in in_use({}, made.changes[:position]).items()
        if not name.endswith(("-lock", "-journal"))
    }
    migrated, moved = recorded(library, fast, [(kept, LATER), (brought, CHARGED[4:6])])
    return {
        "made": made,
        "migrated": Recording(kept, count, *migrated, {CLERK: Cap("1", "0.1", 6)}),
        "moved": Recording(brought, mark.at, *moved, BUDGETS),
    }


def in_use(files: Files, changes: Sequence[Change]) -> Files:
    """Return the files after these changes as processes see them before a power cut."""
    disk = Disk(files)
    for change in changes:
        disk.add(change)
    return disk.files(disk.pending)


# ---------------------------------------------------------------- checks


def fault(state: State, recording: Recording, folder: Path, *, reads: bool) -> str:
    """Describe what is wrong with a ledger after a power cut; return an empty text where all is right.

    A ledger that refuses any use is wrong. ``reads``: whether the first transaction reads.
    """
    path = write_files(state.files, folder)
    ledger = Ledger(path)
    try:
        if reads:
            ledger.audit()
        else:
            SQLiteStore(path).write(lambda writer: None, create=False)
        rows = rows_of(path)
    except MissingLedgerError:
        rows = []
    except LedgerError as error:
        return f"LedgerError: {error}"
    if rows != recording.rows[: len(rows)] or not state.least <= len(rows) <= state.most:
        return f"{len(rows)} records, and not the first {state.least} to {state.most}"
    try:
        for name, cap in recording.budgets.items():
            charges = sum(row.kind == "charge" and row.budget == name for row in rows)
            budget = ledger.open(name, Pure(cap.total))
            if charges < cap.charges:
                budget.charge(Pure(cap.loss), "later", count=cap.charges - charges)
            try:
                budget.charge(Pure(cap.loss), "later")
            except BudgetExceeded:
                continue
            return f"the budget {name!r} holds more than {cap.charges} charges"
        ledger.audit()
        answered = any(row.kind == "answer" and row.budget == "study" for row in rows)
        if answered and ledger.budget("study").stored_answer("2", {}) != ANSWER:
            return "the stored answer differs"
        copy = folder / COPY
        if state.copied or copy.exists():
            if rows_of(copy) != recording.rows[: recording.copied]:
                return "the copy holds other records"
            Ledger(copy).audit()
    except (BudgetExceeded, LedgerError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def faults(sampled: Sequence[State], recording: Recording, fast: Path) -> Iterator[str]:
    """Yield what is wrong in these states; each gets its own path, as a process remembers ledgers by path."""
    with tempfile.TemporaryDirectory(dir=fast) as root:
        for number, state in enumerate(sampled):
            folder = Path(root, str(number))
            problem = fault(state, recording, folder, reads=number % 2 == 0)
            shutil.rmtree(folder)
            if problem:
                yield problem


def test_a_sample_of_power_cuts_loses_no_reported_charge(made, fast):
    assert list(faults(states(made, 1)[::6], made, fast)) == []


@pytest.mark.full
@pytest.mark.parametrize(("name", "number"), [("made", 1400), ("migrated", 400), ("moved", 200)])
def test_power_cuts_lose_no_reported_charge(recordings, fast, name, number):
    sampled = states(recordings[name], 11)
    assert len(sampled) >= number
    assert list(faults(sampled, recordings[name], fast)) == []


def recoveries(made: Recording, library: str, fast: Path, last: Callable[[Change], bool]) -> list[Recording]:
    """Record charges after another process was killed in a charge, after each change that ``last`` picks.

    Each change gives two recordings: the first transaction of one reads, the first of the other writes.
    """
    (before, _), (after, _) = made.marks[-2:]
    positions = [position for position in range(before + 1, after) if last(made.changes[position])]
    jobs: list[tuple[Files, Steps]] = [
        (in_use({}, made.changes[: position + 1]), [(first,), ("charge", "study", "1", "after")])
        for position in positions
        for first in ("read", "write")
    ]
    results = recorded(library, fast, jobs)
    return [
        Recording({}, 0, made.changes[: position + 1] + changes, rows, made.budgets, position + 1)
        for position, pair in zip(positions, zip(results[::2], results[1::2], strict=True), strict=True)
        for changes, rows in pair
    ]


@pytest.mark.full
def test_power_cuts_after_a_killed_process_lose_no_reported_charge(made, library, fast):
    both = recoveries(made, library, fast, lambda change: change.kind in ("write", "sync"))
    chosen = [both[2 * index + index % 2] for index in range(len(both) // 2)]
    assert len(chosen) > 12
    assert [fault for recording in chosen for fault in faults(states(recording, 2), recording, fast)] == []


@pytest.mark.full
def test_power_cuts_after_a_process_killed_at_the_end_of_a_commit_lose_no_record(made, library, fast):
    """The killed process cleared the journal; the power cut can undo this, as it was not synchronized."""
    cleared = Change("write", f"{NAME}-journal", data=bytes(28))
    replays = recoveries(made, library, fast, cleared.__eq__)
    assert len(replays) == 2
    assert [fault for recording in replays for fault in faults(states(recording, 20), recording, fast)] == []


@pytest.mark.parametrize(
    ("ignored", "step"),
    [
        (".*", "charge"),
        pytest.param("", "open", marks=pytest.mark.full),  # the folder
        pytest.param("budget.db-new-.*", "open", marks=pytest.mark.full),
        pytest.param("budget.db", "charge", marks=pytest.mark.full),
        pytest.param("budget.db-journal", "charge", marks=pytest.mark.full),
        pytest.param("budget.db-answers/.*", "answer", marks=pytest.mark.full),
        pytest.param("copy.db-new-.*", "backup", marks=pytest.mark.full),
    ],
)
def test_the_replay_detects_a_missing_synchronization(made, fast, ignored, step):
    number = [mark.name for _, mark in made.marks].index(step)
    start, end = ([(0, None), *made.marks][index][0] for index in (number, number + 1))
    part = replace(made, changes=made.changes[: end + 1], start=start)
    assert next(faults(states(part, 20, ignored), part, fast), "")
