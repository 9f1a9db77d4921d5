"""Progress bars of what takes long; interrupts, and what was charged and released by then."""

from __future__ import annotations

import inspect
import io
import itertools
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Ledger, Pure
from pdprivacy.accessor import ProtectedDP
from pdprivacy.errors import MissingExtraError, ParameterError
from pdprivacy.ledger.audit import audit
from pdprivacy.text.progress import shown

PACKAGE = Path(pdprivacy.__file__).parent
ROOT = PACKAGE.parent
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals, forks and terminals of POSIX")


class Terminal(io.StringIO):
    """The text written to a terminal, and the text left on it afterwards."""

    encoding = "utf-8"  # else digits draw the bar

    def isatty(self) -> bool:
        return True

    @property
    def seen(self) -> str:
        return seen(self.getvalue())


def seen(text: str) -> str:
    """The text on a terminal after lines that were begun anew."""
    lines = []
    for line in text.replace("\r\n", "\n").split("\n"):
        cells: list[str] = []
        for part in line.split("\r"):
            cells[: len(part)] = part
        lines.append("".join(cells).rstrip())
    return "\n".join(lines).strip("\n")


@pytest.fixture
def open_terminal(monkeypatch):
    """Put a terminal in the place of the standard error, where a second goes by at each look at the clock."""
    std = pytest.importorskip("tqdm.std", reason="tqdm is not installed")
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    monkeypatch.setattr(std.tqdm, "monitor_interval", 0)  # no thread that outlives the test
    ticks = itertools.count()
    monkeypatch.setattr(std, "time", lambda: float(next(ticks)))

    def opened():  # in the test itself: pytest puts its own in place after the fixtures
        written = Terminal()
        monkeypatch.setattr(sys, "stderr", written)
        return written

    return opened


# What a bar shows.


def test_a_bar_tells_the_share_of_the_work_and_no_number(open_terminal):
    terminal = open_terminal()
    assert list(shown(range(1234), 1234, "rounds", True)) == list(range(1234))
    shares = [int(share) for share in re.findall(r"(\d+)%", terminal.getvalue())]
    assert len(set(shares)) > 50
    assert shares == sorted(shares)
    assert not re.search(r"\d", re.sub(r"rounds: +\d+%", "", terminal.getvalue()))


def test_a_bar_with_times_tells_no_other_number(open_terminal):
    terminal = open_terminal()
    list(shown(range(1234), 1234, "rounds", True, timed=True))
    times = re.findall(r"\d+:\d\d", terminal.getvalue())
    assert len(set(times)) > 50
    assert not re.search(r"\d", re.sub(r"rounds: +\d+%|[\d:]*\d:\d\d", "", terminal.getvalue()))


@pytest.mark.parametrize(("progress", "drawn"), [(None, False), (True, True), (False, False)])
def test_calls_within_a_second_show_no_bar_by_default(open_terminal, monkeypatch, progress, drawn):
    terminal = open_terminal()
    monkeypatch.setattr("tqdm.std.time", lambda: 0.5)
    assert list(shown(range(100), 100, "rounds", progress, long=True)) == list(range(100))
    assert bool(terminal.getvalue()) is drawn


@pytest.mark.parametrize(("long", "drawn"), [(True, True), (False, False)])
def test_longer_calls_show_a_bar(open_terminal, long, drawn):
    terminal = open_terminal()
    list(shown(range(100), 100, "rounds", None, long=long))
    assert ("rounds:  50%" in terminal.getvalue()) is drawn


@pytest.mark.parametrize("end", ["all", "break", "error", "interrupt"])
def test_a_bar_leaves_nothing_on_the_screen(open_terminal, end):
    terminal = open_terminal()
    errors = {"error": ZeroDivisionError, "interrupt": KeyboardInterrupt}
    bar = shown(range(20), 20, "rounds", True)  # held, as by a variable of a function

    def work():
        for item in bar:
            if item == 10 and end != "all":
                assert "rounds:  50%" in terminal.seen
                if end == "break":
                    break
                raise errors[end]
        assert terminal.seen == ""

    if end not in errors:
        return work()
    with pytest.raises(errors[end]) as caught:  # which holds the frames of the loop
        work()
    assert caught.value.__traceback__ is not None
    assert terminal.seen == ""
    return None


def test_a_bar_is_drawn_when_the_work_begins(open_terminal):
    terminal = open_terminal()
    bar = shown(range(20), 20, "rounds", True)
    assert terminal.getvalue() == ""
    iter(bar)
    assert terminal.getvalue() == ""
    next(iter(bar))
    assert terminal.getvalue() != ""


# Where it is shown, and how it is turned off.


@pytest.mark.parametrize("progress", [None, True])
def test_the_environment_turns_bars_off(open_terminal, monkeypatch, progress):
    terminal = open_terminal()
    monkeypatch.setenv("TQDM_DISABLE", "1")
    assert list(shown(range(100), 100, "rounds", progress, long=True)) == list(range(100))
    assert terminal.getvalue() == ""


@pytest.mark.parametrize(("progress", "drawn"), [(None, False), (True, True)])
def test_a_log_gets_a_bar_only_where_it_was_asked_for(open_terminal, monkeypatch, progress, drawn):
    terminal = open_terminal()
    monkeypatch.setattr(Terminal, "isatty", lambda _: False)
    list(shown(range(100), 100, "rounds", progress, long=True))
    assert bool(terminal.getvalue()) is drawn


@pytest.mark.parametrize("progress", [None, True])
def test_without_an_output_there_is_no_bar(open_terminal, monkeypatch, progress):
    open_terminal()
    monkeypatch.setattr(sys, "stderr", None)
    assert list(shown(range(100), 100, "rounds", progress, long=True)) == list(range(100))


@pytest.mark.parametrize(("config", "drawn"), [({"IPKernelApp": {}}, True), ({}, False), (None, False)])
def test_a_notebook_gets_a_bar_of_text(open_terminal, monkeypatch, config, drawn):
    terminal = open_terminal()
    monkeypatch.setattr(Terminal, "isatty", lambda _: False)  # as the output of a kernel says
    shell = None if config is None else SimpleNamespace(config=config)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    before = set(sys.modules)
    list(shown(range(100), 100, "rounds", None, long=True))  # a warning of absent widgets would be an error
    assert bool(terminal.getvalue()) is drawn
    assert not {
        name for name in set(sys.modules) - before if name.startswith(("ipywidgets", "tqdm.notebook"))
    }
    assert terminal.seen == ""


# The functions that have one.

SPENT = {"kmeans", "kmedian"}
BY, TOP = ["age", "region"], "health"
CALLS = {
    "kmeans": lambda p, bar: p.dp.kmeans(["age", "family"], 2, epsilon=1, rng=1, progress=bar),
    "kmedian": lambda p, bar: p.dp.kmedian("family", 2, epsilon=1, steps=9, rng=1, progress=bar),
    "compare_sampling": lambda p, bar: p.dp.compare_sampling(
        "kmedian", "family", 2, steps=2, epsilon=[1], rates=[0.5], repetitions=3, rng=1, progress=bar
    ),
    "compare_suppression": lambda p, bar: p.dp.compare_suppression(
        "kmeans", ["age", "family"], 2, epsilon=[2], spreads=[(0.1, 0.2)], repetitions=3, rng=1, progress=bar
    ),
    "suppress_outliers": lambda p, bar: p.dp.suppress_outliers(
        ["age", "family"], m=0.1, M=0.2, distance="euclidean", rng=1, progress=bar
    ).dp.count(epsilon=2, rng=2),
    "dr_ha": lambda p, bar: p.dp.dr_ha(BY, TOP, [1, 2], "expected", progress=bar),
    "dr_ha, simulated": lambda p, bar: p.dp.dr_ha(
        BY, TOP, [1, 2], method="monte_carlo", draws=60, postprocess=np.round, rng=1, progress=bar
    ),
    "risk_curve": lambda p, bar: p.dp.risk_curve(BY, TOP, [1, 2], measure="marginal", progress=bar),
    "choose_epsilon": lambda p, bar: p.dp.choose_epsilon(BY, TOP, max_risk=0.5, progress=bar),
    "repeated_risk": lambda p, bar: p.dp.repeated_risk(
        [{"by": BY, "sensitive": TOP, "epsilon": 1}], attack="plurality", progress=bar
    ),
    "utility": lambda p, bar: p.dp.utility([*BY, TOP], draws=9, rng=1, progress=bar),
    "tradeoff": lambda p, bar: p.dp.tradeoff(BY, TOP, [1, 2], draws=9, rng=1, progress=bar),
}


def test_these_are_the_functions_with_a_bar():
    methods = {name: getattr(ProtectedDP, name) for name in dir(ProtectedDP) if not name.startswith("_")}
    with_bar = {
        name
        for name, method in methods.items()
        if callable(method) and "progress" in inspect.signature(method).parameters
    }
    assert with_bar == {name.partition(",")[0] for name in CALLS}
    for name in with_bar:
        assert inspect.signature(methods[name]).parameters["progress"].default is None, name
        assert "progress" in inspect.getdoc(methods[name]), name


@pytest.mark.full(keep=3)
@pytest.mark.filterwarnings("ignore::pdprivacy.errors.OmissionWarning")
@pytest.mark.parametrize("name", CALLS)
def test_a_bar_changes_no_answer_and_tells_no_count(private, open_terminal, name):
    terminal = open_terminal()
    call = CALLS[name]
    silent = call(private, False)
    assert terminal.getvalue() == ""
    answer = call(private, True)
    if isinstance(silent, float):
        assert answer == silent
    else:
        assert answer.equals(silent)
    text = terminal.getvalue()
    assert re.search(r"\w+: +\d+%", text)
    rest = re.sub(r": +\d+%", "", text)
    if name.startswith(("kmeans", "kmedian", "suppress")):  # by those who may publish what comes out
        assert not re.search(r"\d|left", rest)
    assert not re.search(r"\d", re.sub(r"[\d:]*\d:\d\d", "", rest))
    assert terminal.seen == ""


@pytest.mark.full(keep=4)
@pytest.mark.filterwarnings("ignore::pdprivacy.errors.OmissionWarning")
@pytest.mark.parametrize("name", CALLS)
def test_invalid_choices_of_a_bar_are_refused_before_a_charge(private, monkeypatch, name):
    with pytest.raises(ParameterError, match="'progress' must be True, False or None"):
        CALLS[name](private, "yes")
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(MissingExtraError, match=r'pip install "pdprivacy\[progress\]"'):
        CALLS[name](private, True)
    assert private.dp.budget.entries.empty


@pytest.mark.full(keep=3)
@pytest.mark.filterwarnings("ignore::pdprivacy.errors.OmissionWarning")
@pytest.mark.parametrize("name", CALLS)
def test_nothing_needs_tqdm_that_was_not_asked_to_show_a_bar(private, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    CALLS[name](private, None)


def test_an_audit_has_a_bar(tmp_path, open_terminal):
    terminal = open_terminal()
    ledger = Ledger(tmp_path / "budget.db")
    budget = ledger.open("survey", Pure(100))
    for _ in range(20):
        budget.charge(Pure(1), "count")
    for progress, drawn in ((False, False), (None, True), (True, True)):
        before = len(terminal.getvalue())
        assert audit(ledger.chain, progress=progress).charges == 20
        assert ("audit:  50%" in terminal.getvalue()[before:]) is drawn
        assert terminal.seen == ""


# Risks that are computed some at a time.


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    "options",
    [
        {"measure": "local"},
        {"measure": "expected"},
        {"measure": "marginal"},
        {"measure": "marginal", "partial": True},
        {"measure": "shrinkage", "alpha": "flat"},
        {"measure": "marginal_shrinkage", "alpha": "flat"},
        {"attack": "plurality"},
        {"attack": "probabilistic"},
        {"measure": "expected", "method": "published"},
    ],
    ids=lambda options: " ".join(map(str, options.values())),
)
def test_risks_do_not_depend_on_how_many_are_computed_at_a_time(survey, schema, monkeypatch, options):
    from pdprivacy.risk import table_risk

    drawn = np.random.default_rng(1)
    frame = survey.iloc[np.sort(drawn.geometric(0.08, 600) % len(survey))].reset_index(drop=True)
    frame["health"] = drawn.choice(["no", "yes"], len(frame)).astype(object)
    private = frame.dp.protect(schema, epsilon=1)
    call = (BY, "health", [0.1, 1, 3])
    whole = private.dp.dr_ha(*call, average=None, **options)
    for name, value in (("AT_ONCE", 2), ("WORK", 1), ("FEWEST", 2)):
        monkeypatch.setattr(table_risk, name, value)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    turns = []
    monkeypatch.setattr(table_risk, "shown", lambda items, *_, **__: turns.extend(items) or turns)
    pd.testing.assert_frame_equal(private.dp.dr_ha(*call, average=None, **options), whole, rtol=1e-12)
    assert len(turns) > 2
    assert (
        sum(len(rows) for rows, _ in turns) >= len(np.unique(np.concatenate([rows for rows, _ in turns]))) > 5
    )


# Interrupts: charged or not charged, and never released and not charged.


def interrupting(after):
    """A stand-in for tqdm: an interrupt comes while the bar moves on."""

    class Bar:
        def __init__(self, items, **_):
            self.items = items

        def __iter__(self):
            yield from itertools.islice(self.items, after)
            raise KeyboardInterrupt

    return SimpleNamespace(tqdm=Bar)


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("kept", ["memory", "ledger"])
@pytest.mark.parametrize("after", [0, 1, 5])
@pytest.mark.parametrize("name", ["kmeans", "kmedian"])
def test_an_interrupt_within_a_release_leaves_it_charged(
    survey, schema, monkeypatch, tmp_path, name, after, kept
):
    book = {"budget": Ledger(tmp_path / "budget.db"), "name": "survey"} if kept == "ledger" else {}
    private = survey.dp.protect(schema, epsilon=100, **book)
    with monkeypatch.context() as context:
        context.setitem(sys.modules, "tqdm", interrupting(after))
        with pytest.raises(KeyboardInterrupt) as caught:
            # of six rounds or ten selections
            private.dp.kmeans(["age", "family"], 2, epsilon=1, iterations=6, progress=True) if (
                name == "kmeans"
            ) else CALLS[name](private, True)
    assert caught.value.__traceback__ is not None  # it holds the frames, and what they hold
    assert private.dp.budget.spent == (1, 0)
    assert private.dp.budget.entries["answered"].tolist() == [False]
    assert_free(private.dp.budget)
    CALLS[name](private, False)
    assert private.dp.budget.entries["answered"].tolist() == [False, True, True]
    assert private.dp.budget.spent == (3, 0)


def assert_free(budget):
    """Another thread can charge the budget: nobody holds a lock."""
    charged = []
    other = threading.Thread(target=lambda: charged.append(budget.charge(Pure(1), "other")), daemon=True)
    other.start()
    other.join(60)
    assert charged
    budget.answered(charged[0].number)


class Interrupt:
    """An interrupt where Python looks for one: as a function begins, or one of C that it called has ended.

    ``at``: the how manieth of those of the package.
    """

    def __init__(self, at):
        self.left = at

    def __call__(self, frame, event, arg):
        if event not in ("call", "c_return") or not frame.f_code.co_filename.startswith(str(PACKAGE)):
            return
        self.left -= 1
        if self.left == 0:
            sys.setprofile(None)
            raise KeyboardInterrupt


def count_calls(action):
    """How many places for an interrupt the action has."""
    watcher = Interrupt(-1)
    sys.setprofile(watcher)
    try:
        action()
    finally:
        sys.setprofile(None)
    return -1 - watcher.left


def interrupted(action, at):
    """Whether an interrupt at this place came before the action was over; its error is held meanwhile."""
    try:
        sys.setprofile(Interrupt(at))
        action()
    except KeyboardInterrupt as error:
        return error
    finally:
        sys.setprofile(None)
    return None


@pytest.mark.full
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # Python closes what was just opened
def test_an_interrupt_at_any_call_within_a_charge_leaves_a_ledger_whole(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    budget = ledger.open("survey", Pure(10**6))
    outcomes = []

    def charge():
        budget.charge(Pure(1), "count")

    def attempt(at):
        before = budget.spent[0]
        error = interrupted(charge, at)
        charged = budget.spent[0] - before
        assert charged in ((0, 1) if error else (1,))
        outcomes.append((error is not None, charged))
        assert ledger.audit().charges == len(budget.entries) == before + charged
        charge()  # whatever an interrupt left to be done anew is done: the next charge is like any other

    charge()
    assert budget.spent == (1, 0)  # it reads the file, as before each attempt
    calls = count_calls(charge)
    assert calls > 120
    # all over the charge, and each of its last calls: what follows the commit is among them
    for at in range(1, calls - 60, 7):
        attempt(at)
    while outcomes[-1][0]:
        attempt(at := at + 1)
    assert set(outcomes) == {(True, 0), (True, 1), (False, 1)}
    assert_free(budget)


SERVER = r"""
import faulthandler, gc, json, os, random, signal, sys, time
import numpy as np, pandas as pd, scipy.special  # and what else a child would be interrupted in importing
from pdprivacy import Column, Domain, Ledger
from pdprivacy.command import main

path, times, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
drawn = np.random.default_rng(seed)
columns = [Column(name, "integer", lower=0, upper=40, role="quasi_identifier") for name in "ab"]
labels = ("x", "y", "z")
domain = Domain((*columns, Column("top", "category", categories=labels, role="sensitive")))
frame = pd.DataFrame({name: drawn.integers(1, 40, 5000) for name in "ab"})
frame["top"] = drawn.choice(labels, 5000, p=[0.7, 0.2, 0.1])
NAME = "survey"


def released(number, turn=0):
    print(f"released {number}/{turn}", flush=True)


def counts(private, number):
    for turn in range(40):
        private.dp.count(epsilon=1, release_id=f"{number}/{turn}")
        released(number, turn)


def kmedian(private, number):
    private.dp.kmedian(["a", "b"], 4, epsilon=1, steps=20, release_id=f"{number}/0")
    released(number)


def kmeans(private, number):
    private.dp.kmeans(["a", "b"], 8, epsilon=1, iterations=300, release_id=f"{number}/0")
    released(number)


JOBS = {
    "counts": counts,
    "kmedian": kmedian,
    "kmeans": kmeans,
    "simulated": lambda private, _: private.dp.dr_ha(["a", "b"], "top", 1, method="monte_carlo", draws=400),
    "marginal": lambda private, _: private.dp.risk_curve(["a", "b"], "top", [0.1, 1, 10], measure="marginal"),
    "tradeoff": lambda private, _: private.dp.tradeoff(["a", "b"], "top", draws=50),
    "sampling": lambda private, _: private.dp.compare_sampling("mean", "a", repetitions=100),
    "suppression": lambda private, _: private.dp.compare_suppression("median", "a", repetitions=100),
    "audit": lambda *_: [Ledger(path).audit() for _ in range(20)],
    "command": lambda *_: [main(["ledger", "audit", path]) and sys.exit(130) for _ in range(20)],
}


def attempt(job, number, moment):
    # the exit code, and what was printed, of a process that is interrupted at the moment after it began
    read, write = os.pipe()
    faulthandler.cancel_dump_traceback_later()  # whose thread a fork would not have
    child = os.fork()
    if child == 0:
        os.dup2(write, 1)
        os.dup2(write, 2)
        faulthandler.dump_traceback_later(60, exit=True)  # whatever waits for ever says where
        signal.signal(signal.SIGINT, signal.default_int_handler)
        private = frame.dp.protect(domain, epsilon=10**6, budget=Ledger(path), name=NAME)
        os.write(1, b"begun\n")
        JOBS[job](private, number)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("done", flush=True)
        sys.exit()
    faulthandler.dump_traceback_later(120, exit=True)
    os.close(write)
    with open(read, "rb") as output:
        printed = output.readline()
        time.sleep(moment)
        os.kill(child, signal.SIGINT)
        printed += output.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), printed.decode()


frame.dp.protect(domain, epsilon=10**6, budget=Ledger(path), name=NAME)
gc.collect()
gc.freeze()  # no child copies the memory of all that is imported to look for garbage in it
moments, known, facts = random.Random(seed), 0, []
for number in range(times):
    job = list(JOBS)[number % len(JOBS)]
    code, printed = attempt(job, number, moments.uniform(0, 0.15) * moments.choice([0.2, 1]))
    ledger = Ledger(path)
    audit = ledger.audit()                        # raises where a record is not what was entered
    entries = ledger.entries(NAME).iloc[known:]
    known += len(entries)
    ledger.open("other", ledger.budget(NAME).total).charge(ledger.budget(NAME).total.__class__(1), "free")
    facts.append(
        {
            "job": job,
            "code": code,
            "printed": printed,
            "charged": entries["release_id"].tolist(),
            "answered": entries.loc[entries["answered"], "release_id"].tolist(),
            "spent": ledger.budget(NAME).spent[0] - (known - len(entries)),
            "audited": audit.charges - number - known,
        }
    )
print(json.dumps(facts))
"""


HELD = r"""
import faulthandler, io, os, signal, sys, tqdm
from pdprivacy import Ledger, Pure
faulthandler.dump_traceback_later(60, exit=True)
if sys.argv[2] == "shown":
    sys.stderr = type("Terminal", (io.StringIO,), {"isatty": lambda _: True})()
list(tqdm.tqdm(range(3), file=io.StringIO()))       # somebody's own bar, before the fork
ledger = Ledger(sys.argv[1])
ledger.open("survey", Pure(9)).charge(Pure(1), "count")
ledger.audit()
ledger.close()
faulthandler.cancel_dump_traceback_later()
child = os.fork()
if not child:
    signal.alarm(30)
    tqdm.tqdm.get_lock().acquire()                  # as an interrupt leaves it
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
faulthandler.dump_traceback_later(20, exit=True, file=sys.__stderr__)
print(ledger.audit().charges)
os._exit(sys.stdout.flush() or 0)                   # tqdm itself waits for ever at the end
"""


@pytest.mark.full
@POSIX
@pytest.mark.parametrize("bar", [pytest.param("shown", marks=pytest.mark.full), "hidden"])
def test_a_lock_of_tqdm_that_another_process_holds_holds_nobody_up(tmp_path, bar):
    pytest.importorskip("tqdm", reason="tqdm is not installed")
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", HELD, str(tmp_path / "budget.db"), bar],
        env={**{k: v for k, v in os.environ.items() if k != "TQDM_DISABLE"}, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip() == "1"


@pytest.mark.full
@POSIX
def test_interrupts_at_random_moments_lose_no_charge(tmp_path):
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SERVER, str(tmp_path / "budget.db"), "30", "1"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    facts = json.loads(process.stdout)
    for fact in facts:
        # an interrupt between a text and the end of its line puts the traceback on that line
        printed = re.findall(r"released (\d+/\d+)", fact["printed"])
        over = "done" in fact["printed"].split()
        stopped = fact["job"] == "command" and fact["printed"].endswith("Interrupted.\n")
        note = r"Charge (\d+).* is entered, but its .*|It is unknown whether the charge is entered.*"
        ends = re.search(rf"KeyboardInterrupt\n(?:{note}\n)?$", fact["printed"])
        assert stopped or over or ends, fact
        if ends and ends[1]:
            assert len(fact["charged"]) == len(printed) + 1, fact
        assert fact["code"] == (130 if stopped else 0 if over else -2), fact
        # in order; and of what was not printed, at most the one that was under way
        assert printed == fact["charged"][: len(printed)], fact
        assert len(fact["charged"]) - len(printed) <= (0 if over else 1), fact
        assert set(printed) <= set(fact["answered"]), fact
        assert fact["spent"] == len(fact["charged"]), fact
        assert fact["audited"] == 0, fact
        if fact["job"] not in ("counts", "kmedian", "kmeans"):
            assert fact["charged"] == [], fact
    assert sum("done" not in fact["printed"].split() for fact in facts) >= 5
    # some interrupt hits between a charge and the line about its release
    assert any(len(fact["charged"]) > fact["printed"].count("released ") for fact in facts)


PRESSED = """
import numpy as np, pandas as pd
from pdprivacy import Column, Domain
columns = tuple(Column(name, "integer", lower=0, upper=99) for name in "ab")
frame = pd.DataFrame({name: np.random.default_rng(1).integers(1, 99, 20_000) for name in "ab"})
private = frame.dp.protect(Domain(columns), epsilon=1)
private.dp.utility(["a", "b"], epsilon=[0.1, 1, 10], draws=100_000)
"""


@pytest.mark.full
@POSIX
def test_control_c_in_a_terminal_wipes_the_bar_off(tmp_path):
    pytest.importorskip("tqdm", reason="tqdm is not installed")
    import fcntl
    import pty
    import struct
    import termios

    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(PYTHONPATH=str(ROOT), OPENBLAS_NUM_THREADS="1", PYTHON_COLORS="0")
        os.environ.pop("TQDM_DISABLE", None)
        os.execv(sys.executable, [sys.executable, "-W", "ignore", "-c", PRESSED])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    text, pressed = "", False
    with open(terminal, "r+b", buffering=0) as screen:
        while True:
            try:
                more = screen.read(4096)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            text += more.decode(errors="replace")
            if not pressed and "%|" in text:
                screen.write(b"\x03")
                pressed = True
    _, status = os.waitpid(child, 0)
    assert pressed
    assert os.waitstatus_to_exitcode(status) == -2
    assert seen(text).endswith("KeyboardInterrupt")
    assert "%|" not in seen(text)
