"""A ledger whose system calls fail, whose disk is full, whose bytes are damaged: it loses no record."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pdprivacy.errors import LedgerError
from pdprivacy.ledger import chain
from pdprivacy.ledger.sqlite import SQLiteStore

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[1]

# Makes the k-th call of a function fail, once or from then on. Memory that is no file is left alone. What
# SQLite waits for is not there, so it waits a twentieth of the time: ten seconds for a log to be recovered.
LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
static const char *armed; static long left; static int number, sticky, fired;
void fault_arm(const char *name, long k, int error, int stay)
{ armed = name; left = k; number = error; sticky = stay; fired = 0; }
int fault_disarm(void) { armed = 0; return fired; }
static int hit(const char *name) {
    if (!armed || strcmp(armed, name)) return 0;
    if (--left > 0 || (left < 0 && !sticky)) return 0;
    fired = 1; errno = number; return 1;
}
#define REAL(type, name, ...) type (*real)(__VA_ARGS__) = dlsym(RTLD_NEXT, #name)
#define MODE va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest)
#define OPEN(name) int name(const char *path, int flags, ...) { MODE; \
    REAL(int, name, const char *, int, ...); return hit("open") ? -1 : real(path, flags, mode); }
OPEN(open) OPEN(open64)
#define OPENAT(name) int name(int at, const char *path, int flags, ...) { MODE; \
    REAL(int, name, int, const char *, int, ...); return hit("open") ? -1 : real(at, path, flags, mode); }
OPENAT(openat) OPENAT(openat64)
ssize_t write(int f, const void *b, size_t n)
{ REAL(ssize_t, write, int, const void *, size_t); return hit("write") ? -1 : real(f, b, n); }
#define PWRITE(name) ssize_t name(int f, const void *b, size_t n, off_t o) \
{ REAL(ssize_t, name, int, const void *, size_t, off_t); return hit("write") ? -1 : real(f, b, n, o); }
PWRITE(pwrite) PWRITE(pwrite64)
#define PREAD(name) ssize_t name(int f, void *b, size_t n, off_t o) \
{ REAL(ssize_t, name, int, void *, size_t, off_t); return hit("read") ? -1 : real(f, b, n, o); }
PREAD(pread) PREAD(pread64)
#define SYNC(name) int name(int f) { REAL(int, name, int); return hit("sync") ? -1 : real(f); }
SYNC(fsync) SYNC(fdatasync)
#define TRUNCATE(name) int name(int f, off_t n) \
{ REAL(int, name, int, off_t); return hit("ftruncate") ? -1 : real(f, n); }
TRUNCATE(ftruncate) TRUNCATE(ftruncate64)
#define MMAP(name) void *name(void *a, size_t n, int p, int flags, int f, off_t o) \
{ REAL(void *, name, void *, size_t, int, int, int, off_t); \
  return f >= 0 && hit("mmap") ? (void *)-1 : real(a, n, p, flags, f, o); }
MMAP(mmap) MMAP(mmap64)
int unlink(const char *p) { REAL(int, unlink, const char *); return hit("unlink") ? -1 : real(p); }
#define FCNTL(name) int name(int f, int c, ...) { \
  va_list r; va_start(r, c); void *a = va_arg(r, void *); va_end(r); \
  REAL(int, name, int, int, ...); return hit("fcntl") ? -1 : real(f, c, a); }
FCNTL(fcntl) FCNTL(fcntl64)
int flock(int f, int o) { REAL(int, flock, int, int); return hit("flock") ? -1 : real(f, o); }
int usleep(unsigned n) { REAL(int, usleep, unsigned); return real(n / 20); }
int nanosleep(const struct timespec *n, struct timespec *rest) {
  REAL(int, nanosleep, const struct timespec *, struct timespec *);
  struct timespec less = {n->tv_sec / 20, (n->tv_sec % 20 * 1000000000L + n->tv_nsec) / 20};
  return real(&less, rest); }
int rename(const char *a, const char *b)
{ REAL(int, rename, const char *, const char *); return hit("rename") ? -1 : real(a, b); }
int link(const char *a, const char *b)
{ REAL(int, link, const char *, const char *); return hit("link") ? -1 : real(a, b); }
int linkat(int x, const char *a, int y, const char *b, int z) {
  REAL(int, linkat, int, const char *, int, const char *, int);
  return hit("link") ? -1 : real(x, a, y, b, z); }
#define STAT(name, first) int name(first p, void *s) { REAL(int, name, first, void *); \
  return hit("stat") ? -1 : real(p, s); }
STAT(stat, const char *) STAT(stat64, const char *) STAT(fstat, int) STAT(fstat64, int)
int statx(int at, const char *p, int flags, unsigned mask, void *s) {
  REAL(int, statx, int, const char *, int, unsigned, void *);
  return hit("stat") ? -1 : real(at, p, flags, mask, s); }
"""

# Each step is done by a fork of this program, with one call made to fail; then the ledger is looked at.
PROGRAM = r"""
import ctypes, errno, json, os, shutil, sys, traceback, types

# the modules that store records, without the rest of the package: that takes longer to import, and to fork
for name in ("pdprivacy", "pdprivacy.ledger"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [os.path.join(os.environ["PYTHONPATH"], *name.split("."))]

from pdprivacy.errors import LedgerError
from pdprivacy.ledger import chain
from pdprivacy.ledger.shared import _SHARED, shared
from pdprivacy.ledger.sqlite import SQLiteStore

folder, library, function = sys.argv[1], ctypes.CDLL(sys.argv[2]), sys.argv[3].encode()
error, stay = getattr(errno, sys.argv[4]), int(sys.argv[5])

def store(path):
    return SQLiteStore(path, patience=0.05)

def append(path, text, count=1):
    with store(path).writing() as writer:
        for _ in range(count):
            writer.append(chain.link(writer.last(), "b", "charge", None, {"text": text}))

def close(path):
    append(path, "new")
    store(path).close()

def read(path):
    with store(path).reading() as reader:
        len(list(reader.rows()))

def texts(path):
    with store(path).reading() as reader:
        rows = list(reader.rows())
    before = chain.ROOT
    for number, row in enumerate(rows, 1):
        assert row.number == number
        chain.check(row, before)
        before = row.hash
    return [json.loads(row.body)["text"] for row in rows]

template = os.path.join(folder, "template.db")
append(template, "old", 30)
store(template).close()

def nothing(path):
    pass

def closed(path):
    shutil.copy(template, path)

def crashed(path):
    shutil.copy(template, path)
    if not (pid := os.fork()):
        append(path, "old")
        os._exit(0)
    os.waitpid(pid, 0)

def opened(path):
    append(path, "older")

def filled(path):
    append(path, "older")
    shared(path).connection.execute("PRAGMA wal_autocheckpoint=1").fetchall()

STEPS = {  # what is done before, in another process and in this one, and what is tried
    "create": (nothing, nothing, lambda path: append(path, "new")),
    "open": (closed, nothing, lambda path: append(path, "new")),
    "append": (closed, opened, lambda path: append(path, "new")),
    "recover": (crashed, nothing, lambda path: append(path, "new")),
    "checkpoint": (closed, filled, lambda path: append(path, "new")),
    "close": (closed, opened, close),
    "read": (closed, nothing, read),
    "backup": (closed, nothing, lambda path: store(path).backup(path + ".copy")),
}

def act(path, ready, action, k, error, stay):
    told = {}
    try:
        ready(path)
        told["held"] = len(texts(path)) if os.path.exists(path) else 0
        library.fault_arm(function, ctypes.c_long(k), error, stay)
        try:
            action(path)
            told["text"] = "entered"
        except LedgerError as caught:
            told["text"], told["chained"] = str(caught), caught.__cause__ is not None
        finally:
            told["fired"] = library.fault_disarm()
        try:
            append(path, "after")
            told["after"] = "entered"
        except LedgerError as caught:
            told["after"] = str(caught)
    except BaseException:
        told["raw"] = traceback.format_exc()
    return told

def attempt(path, step, *fault):
    before, ready, action = STEPS[step]
    before(path)
    end = os.pipe()
    if not (pid := os.fork()):
        os.write(end[1], json.dumps(act(path, ready, action, *fault)).encode())
        os._exit(0)
    os.close(end[1])
    with os.fdopen(end[0]) as stream:
        text = stream.read()
    _, status = os.waitpid(pid, 0)
    told = json.loads(text) if text else {"raw": f"status {status}"}
    try:
        append(path, "later")
        found = texts(path)
        told["found"] = [found.count(text) for text in ("after", "later", "new")]
        told["kept"] = len(found)
        store(path).close()
        if shared(path).connection is None:  # each fork looks at all that were ever open
            del _SHARED[path]
    except BaseException:
        told["raw"] = told.get("raw", "") + traceback.format_exc()
    return told

for step in STEPS:
    k = 0
    while k < 400:
        # SQLite waits for locks: a few of them have to do. Of those after which all fail, every second: each
        # call fails by itself as well, and what cleans up after a failure fails for its neighbours alike.
        # Files are looked at so often that there each call fails either by itself or as the first of all.
        halved = stay or function == b"stat"
        k += 1 + (k // 3 if function == b"fcntl" else halved if k > 4 + stay else 0)
        place = os.path.join(folder, f"{step}.{k}")
        os.mkdir(place)
        told = attempt(os.path.join(place, "budget.db"), step, k, error, stay)
        print(json.dumps({"step": step, "k": k, **told}), flush=True)
        shutil.rmtree(place)
        if not told.get("fired"):
            break
"""

FUNCTIONS = (
    "open",
    "write",
    "read",
    "sync",
    "ftruncate",
    "mmap",
    "unlink",
    "flock",
    "rename",
    "link",
    "stat",
)
FAULTS = [
    *((function, "EIO", False) for function in FUNCTIONS),  # one call fails
    *(
        (function, "ENOSPC", True) for function in ("open", "write", "sync", "ftruncate", "link")
    ),  # and all after
    *((function, "EACCES", True) for function in ("open", "unlink", "flock", "rename", "stat")),
    pytest.param("fcntl", "EIO", False, marks=pytest.mark.full),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> str:
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("no C compiler, or not Linux: system calls cannot be made to fail")
    folder = tmp_path_factory.mktemp("faults")
    (folder / "faults.c").write_text(LIBRARY)
    command = [compiler, "-shared", "-fPIC", "-O1", "-w", "-o", "faults.so", "faults.c", "-ldl"]
    subprocess.run(command, cwd=folder, check=True)
    return str(folder / "faults.so")


@pytest.fixture
def fast(tmp_path) -> Iterator[Path]:
    """A directory in memory where there is one, as thousands of syncs take their time."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def outcomes(library, folder, function, error, stay):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), library, function, error, str(int(stay))],
        env={**os.environ, "LD_PRELOAD": library, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(("function", "error", "stay"), FAULTS)
def test_failing_calls_lose_no_record(library, fast, function, error, stay):
    told = outcomes(library, fast, function, error, stay)
    for one in told:
        assert "raw" not in one, one
        after, later, new = one["found"]
        assert later == 1, one  # the next process goes on
        if one["after"] == "entered":
            assert after == 1, one
        elif "Nothing was entered" in one["after"]:
            assert after == 0, one
        writes = one["step"] not in ("read", "backup")
        if one["text"] == "entered":
            assert bool(new) == writes, one
        elif "Nothing was entered" in one["text"] or not writes:
            assert new == 0, one
        else:
            assert "Whether it was entered is not known" in one["text"], one
        assert not one.get("chained"), one
        assert one["kept"] == one["held"] + after + later + new, one
    fired = {one["step"] for one in told if one["fired"]}
    expected = {"open": 5, "write": 6, "read": 6, "sync": 7, "fcntl": 8, "flock": 6, "link": 2, "stat": 8}
    assert len(fired) >= expected.get(function, 0), fired


def entered(path) -> int:
    store = SQLiteStore(path)
    with store.writing() as writer:
        row = chain.link(writer.last(), "b", "charge", None, {"text": "x" * 500})
        writer.append(row)
    return row.number


def error_of(action, *given) -> str:
    """What the ledger says is wrong, or nothing; never the text of a record or a second error."""
    try:
        action(*given)
    except LedgerError as error:
        return "secret" if error.__cause__ is not None else str(error)
    return ""


def forked(action, path):
    """What an action gives in another process, which ends at once."""
    start, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(end, json.dumps(action(path)).encode())
        finally:
            os._exit(0)
    os.close(end)
    with os.fdopen(start) as stream:
        text = stream.read()
    os.waitpid(pid, 0)
    return json.loads(text)


def test_a_limit_on_the_size_of_files_is_told(tmp_path):
    def fill(path):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        last, told = entered(path), ""
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        while not told:
            told = error_of(entered, path)
            last += not told
        return last, told

    path = str(tmp_path / "budget.db")
    last, told = forked(fill, path)
    assert "cannot be used: " in told
    assert entered(path) - 1 - last in ((0,) if "Nothing was entered" in told else (0, 1))


@pytest.mark.skipif(
    not hasattr(os, "setuid") or os.geteuid() != 0, reason="only root may act as another user"
)
@pytest.mark.parametrize("logged", [False, True])
def test_a_directory_that_is_read_only_can_be_read(logged):
    def visit(path):
        os.setgid(65534)
        os.setuid(65534)
        with SQLiteStore(path).reading() as reader:
            number = reader.last().number
        return number, error_of(entered, path)

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "budget.db")
        assert forked(entered, path) == 1  # and ends without closing it
        if logged:
            assert os.path.getsize(path + "-wal")
        else:
            entered(path)
            SQLiteStore(path).close()
        os.chmod(folder, 0o755)
        names = sorted(os.listdir(folder))
        number, told = forked(visit, path)
        assert number == 2 - logged
        assert "Nothing was entered" in told
        assert sorted(os.listdir(folder)) == names
        assert entered(path) == number + 1
        SQLiteStore(path).close()


def check(store):
    with store.reading() as reader:
        if reader.damage():
            raise LedgerError("damaged")


def read(store, rows):
    with store.reading() as reader:
        found = list(reader.rows())
        reader.latest("b", "charge")
        reader.released("b", "r")
        reader.budgets()
    before = chain.ROOT
    for row in found:
        chain.check(row, before)
        before = row.hash
    assert found == rows[: len(found)]


def test_damaged_bytes_give_an_error_or_the_records(fast):
    path = str(fast / "budget.db")
    store = SQLiteStore(path)
    for _ in range(12):
        with store.writing() as writer:
            for _ in range(3):
                writer.append(chain.link(writer.last(), "b", "charge", None, {"text": "secret " * 40}))
    store.close()
    with store.reading() as reader:
        rows = list(reader.rows())
    store.close()
    good = Path(path).read_bytes()
    chance = random.Random(3)
    places = [*range(0, 100, 3), *(chance.randrange(len(good)) for _ in range(250))]
    errors = 0
    for turn, place in enumerate(places):
        bad = bytearray(good)
        for offset in range(chance.choice([1, 1, 4, 200])):
            bad[(place + offset) % len(bad)] ^= chance.randrange(1, 256)
        copy = fast / f"{turn}.db"
        copy.write_bytes(bad)
        store = SQLiteStore(copy, patience=1)
        told = [error_of(read, store, rows), error_of(entered, copy) or error_of(check, store)]
        assert "secret" not in "".join(told)
        errors += told != ["", ""]
        store.close()
        for end in ("", "-wal", "-shm", "-lock"):
            Path(f"{copy}{end}").unlink(missing_ok=True)
    assert errors > 100
