"""The command line of a ledger, as a curator runs it."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import pytest

import pdprivacy
from pdprivacy import ZCDP, Approx, Pure
from pdprivacy import command as command_line
from pdprivacy.command import COMMANDS, main
from pdprivacy.ledger import files, store
from pdprivacy.show import pages, report
from pdprivacy.show.report import costs

HANG = 120  # seconds after which a process is taken to hang
POSIX = pytest.mark.skipif(os.name != "posix", reason="POSIX only")
NAME = "Erhebung ä–Ω 2026"


class Done(NamedTuple):
    """The output of a command, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(capsys) -> Callable[..., Done]:
    """The command line in this process."""

    def run(*arguments: object) -> Done:
        capsys.readouterr()
        return Done(main([str(argument) for argument in arguments]), *capsys.readouterr())

    return run


# Each is a process that runs `python -m pdprivacy` from there to its own end; what it imports was imported
# before it was forked, which takes most of its time.
PROCESSES = """
import json, os, runpy, sys, tempfile
import pdprivacy.command, pdprivacy.ledger.sqlite, sqlite3

told = []
for place, *arguments in json.loads(sys.argv[1]):
    files = [tempfile.TemporaryFile() for _ in range(2)]
    child = os.fork()
    if not child:
        if place == "broken":
            read, write = os.pipe()
            os.close(read)
            os.dup2(write, 1)
        else:
            os.dup2(os.open(place, os.O_WRONLY) if place else files[0].fileno(), 1)
        os.dup2(files[1].fileno(), 2)
        sys.argv = ["pdprivacy", *arguments]
        runpy.run_module("pdprivacy", run_name="__main__", alter_sys=True)
        sys.exit()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = []
    for file in files:
        file.seek(0)
        texts.append(file.read().decode())
    told.append((code, *texts))
print(json.dumps(told))
"""


def processes(calls: list[list[object]], **environment: str) -> list[Done]:
    """The command line in processes of their own, each after where its output goes.

    That is a file, or "broken", a pipe that nobody reads, or else it is read.
    """
    arguments = json.dumps([[str(item) for item in some] for some in calls])
    process = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", PROCESSES, arguments],
        env={**os.environ, **environment}, capture_output=True, encoding="utf-8", timeout=HANG, check=False,
    )  # fmt: skip
    assert (process.returncode, process.stderr) == (0, "")
    return [Done(*item) for item in json.loads(process.stdout)]


def failed(result: Done, code: int) -> str:
    """The error of a failed command: one line, and no traceback."""
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.endswith("\n")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture
def path(tmp_path) -> Path:
    return filled(tmp_path / "budget.db")


def filled(file: Path) -> Path:
    """A ledger of three budgets: two charges, one of them answered; a charge by rho; none."""
    ledger = pdprivacy.Ledger(file)
    budget = ledger.open(NAME, Approx(2, 1e-6))
    budget.answered(budget.charge(Pure("1/3"), "mean of age", "laplace", release_id="week 1").number, 0.25)
    budget.charge(Pure(0.1), "count where (region == 'süd')", "geometric")
    ledger.open("rho", ZCDP(1)).charge(ZCDP(0.125), "count\nwith \x1b[31mred", "gaussian")
    ledger.open("untouched", Pure(1))
    ledger.close()
    return file


@pytest.fixture
def tampered(path) -> Path:
    """The same ledger with a charge made smaller."""
    import sqlite3

    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=MEMORY")
    rows = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE name = 'records_stay_the_same'"
    ).fetchall()
    connection.execute("DROP TRIGGER records_stay_the_same")
    connection.execute(
        """UPDATE records SET body = replace(body, '"1/10"', '"1/11"') WHERE kind = 'charge'"""
    )
    for _, statement in rows:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


# show


def test_show_gives_one_line_per_budget(run, path):
    result = run("ledger", "show", path)
    assert (result.returncode, result.stderr) == (0, "")
    head, *lines = [re.split(r"  +", line) for line in result.stdout.splitlines()]
    assert [dict(zip(head, line, strict=True)) for line in lines] == [
        {
            "name": NAME, "currency": "epsilon", "total": "2", "spent": "0.433334", "left": "1.56666",
            "total delta": "1e-06", "spent delta": "0", "left delta": "1e-06",
            "accounting": "basic", "neighbors": "-", "charges": "2", "unanswered": "1",
        },
        {
            "name": "rho", "currency": "rho", "total": "1", "spent": "0.125", "left": "0.875",
            "total delta": "0", "spent delta": "0", "left delta": "0",
            "accounting": "basic", "neighbors": "-", "charges": "1", "unanswered": "1",
        },
        {
            "name": "untouched", "currency": "epsilon", "total": "1", "spent": "0", "left": "1",
            "total delta": "0", "spent delta": "0", "left delta": "0",
            "accounting": "basic", "neighbors": "-", "charges": "0", "unanswered": "0",
        },
    ]  # fmt: skip


def test_show_of_a_name_is_the_budget_as_it_shows_itself(run, path):
    result = run("ledger", "show", path, "--name", NAME)
    assert result.returncode == 0
    assert result.stdout == repr(pdprivacy.Ledger(path).budget(NAME)) + "\n"
    assert "Count where (region == 'süd')" in result.stdout


def test_show_lists_all_charges_of_a_name(run, tmp_path, monkeypatch):
    budget = pdprivacy.Ledger(tmp_path / "many.db").open("many", Pure(2000))
    monkeypatch.setattr(pages, "MOST_ROWS", 5)
    for number in range(8):
        budget.charge(Pure(1), f"count {number}")
    result = run("ledger", "show", tmp_path / "many.db", "--name", "many")
    assert len(result.stdout.splitlines()) == 4 + 8
    assert "count 7" in result.stdout.splitlines()[-1]


def test_control_characters_are_spelled_out(run, path):
    result = run("ledger", "show", path, "--name", "rho")
    assert r"count\nwith \x1b[31mred" in result.stdout
    assert "\x1b" not in result.stdout
    assert len(result.stdout.splitlines()) == 4 + 1


@pytest.mark.full
@POSIX
def test_names_are_escaped_where_the_output_is_ascii(path):
    calls = [["show"], ["show", "--name", NAME], ["audit"], ["export"], ["show", "--name", "süd"]]
    results = processes(
        [["", "ledger", first, path, *more] for first, *more in calls], PYTHONIOENCODING="ascii"
    )
    for result in results[:4]:
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.isascii()
    assert r"Erhebung \xe4\u2013\u03a9 2026" in results[0].stdout
    assert r"'s\xfcd'" in failed(results[4], 2)


# audit


def test_audit_finds_no_fault_and_gives_the_head(run, path):
    result = run("ledger", "audit", path)
    assert (result.returncode, result.stderr) == (0, "")
    summary, head = result.stdout.splitlines()
    ledger = pdprivacy.Ledger(path)
    assert summary == "No fault found: records 8, budgets 3, charges 3, unanswered 2"
    assert head == f"head {ledger.head}"
    ledger.budget(NAME).charge(Pure(0.1), "one more")
    repeated = run("ledger", "audit", path, "--head", head.removeprefix("head "))
    assert (repeated.returncode, repeated.stderr) == (0, "")
    assert repeated.stdout.splitlines()[1] == f"head {ledger.head}" != head


def test_audit_tells_tampering_by_its_exit_code(run, tampered):
    words = failed(run("ledger", "audit", tampered), 1)
    assert "The ledger is not what was entered: record 5 does not follow from the one before it" in words


def test_audit_with_a_head_tells_an_older_copy(run, path, tmp_path):
    ledger = pdprivacy.Ledger(path)
    ledger.backup(tmp_path / "older.db")
    ledger.budget(NAME).charge(Pure(0.1), "one more")
    assert run("ledger", "audit", tmp_path / "older.db").returncode == 0
    assert "record 9 is missing" in failed(
        run("ledger", "audit", tmp_path / "older.db", "--head", ledger.head), 1
    )


def test_audit_with_a_head_tells_another_chain(run, path, tmp_path):
    other = pdprivacy.Ledger(tmp_path / "other.db")
    for number in range(8):
        other.open(f"made up {number}", Pure(1))
    head = pdprivacy.Ledger(path).head
    assert "is not the one that was remembered" in failed(
        run("ledger", "audit", other.address, "--head", head), 1
    )


@pytest.mark.parametrize("head", ["", "8", "8:", "8:00", "0:" + 64 * "0", "8:" + 64 * "G"])
def test_a_head_that_is_none_is_refused(run, path, head):
    assert "'head' must be what ledger.head gave" in failed(run("ledger", "audit", path, f"--head={head}"), 2)


# export


def lines_of(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_chain_can_be_verified_from_an_export_alone(run, path):
    result = run("ledger", "export", path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.isascii()
    before = bytes(32)
    for number, record in enumerate(lines_of(result.stdout), 1):
        assert list(record) == ["number", "budget", "kind", "release", "body", "hash"]
        body = json.dumps(record["body"], sort_keys=True, separators=(",", ":"))
        before = blake2b(before + number.to_bytes(8, "big") + body.encode(), digest_size=32).digest()
        assert (record["number"], record["hash"]) == (number, before.hex())
        assert [record["body"][name] for name in ("budget", "kind", "release")] == [
            record[name] for name in ("budget", "kind", "release")
        ]
    assert f"{number}:{before.hex()}" == pdprivacy.Ledger(path).head


def test_export_of_a_name_has_its_records_alone(run, path):
    everything = lines_of(run("ledger", "export", path).stdout)
    selected = lines_of(run("ledger", "export", path, "--name", NAME).stdout)
    assert selected == [record for record in everything if record["budget"] == NAME]
    assert [record["kind"] for record in selected] == ["open", "charge", "answer", "charge"]
    assert selected[1]["release"] == "week 1"
    assert selected[2]["body"]["dr_ha"] == 0.25


def test_export_to_a_file_is_the_same_and_replaces_none(run, path, tmp_path):
    target = tmp_path / "records.jsonl"
    result = run("ledger", "export", path, "--output", target)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    content = target.read_bytes()
    assert content.decode() == run("ledger", "export", path).stdout
    assert "exists already. Nothing was exported." in failed(
        run("ledger", "export", path, "--output", target), 2
    )
    assert "exists already" in failed(run("ledger", "export", path, "--output", path), 2)
    assert target.read_bytes() == content
    assert "cannot be written" in failed(run("ledger", "export", path, "--output", tmp_path / "no" / "x"), 2)


def test_an_export_that_fails_leaves_no_file(path, tmp_path, capsys, monkeypatch):
    def stop(row):
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "_json", stop)
    target = tmp_path / "records.jsonl"
    assert main(["ledger", "export", str(path), "--output", str(target)]) == 130
    assert not target.exists()
    assert capsys.readouterr().err == "Interrupted.\n"


@pytest.mark.parametrize("body", ["[1]", '{"budget":""}', '{\n"budget":"","kind":"ledger","release":null}'])
def test_export_writes_no_line_that_is_no_record(run, path, body):
    import sqlite3

    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=MEMORY")
    statement = connection.execute(
        "SELECT sql FROM sqlite_master WHERE name = 'records_stay_the_same'"
    ).fetchone()
    connection.execute("DROP TRIGGER records_stay_the_same")
    connection.execute("UPDATE records SET body = ? WHERE number = 1", [body])
    connection.execute(*statement)
    connection.commit()
    connection.close()
    assert "Record 1 of the ledger is not what was entered." in failed(run("ledger", "export", path), 1)


# What is not there, and what is no command.


@pytest.mark.parametrize("name", ["show", "audit", "export"])
def test_no_ledger_is_made_where_there_is_none(run, tmp_path, name):
    assert "There is no ledger" in failed(run("ledger", name, tmp_path / "none.db"), 2)
    assert "directory" in failed(run("ledger", name, tmp_path / "none" / "none.db"), 2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["show", "audit", "export"])
def test_an_invalid_ledger_is_refused(run, tmp_path, name):
    text = tmp_path / "text.db"
    text.write_text("no database\n" * 100)
    for address in (text, tmp_path):
        failed(run("ledger", name, address), 2)
    assert list(tmp_path.iterdir()) == [text]
    assert "'path' must be the path of a file" in failed(run("ledger", name, ""), 2)


@pytest.mark.parametrize("name", ["show", "export"])
def test_a_name_that_is_none_is_refused(run, path, name):
    assert "The ledger holds no budget 'Erhebung'." in failed(
        run("ledger", name, path, "--name", "Erhebung"), 2
    )
    assert "'name' must be 1 to 200" in failed(run("ledger", name, path, "--name="), 2)


def test_a_secret_in_a_url_is_not_repeated(run, tmp_path):
    pytest.importorskip("psycopg")
    url = "postgresql://ada:s3cr3t@127.0.0.1:1/none?connect_timeout=2"
    for command_ in ("show", "audit", "export"):
        assert "s3cr3t" not in failed(run("ledger", command_, url), 2)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["ledger"],
        ["ledger", "frobnicate", "x"],
        ["ledger", "show"],
        ["ledger", "audit", "x", "--name", "y"],
        ["ledger", "show", "x", "--head", "y"],
        ["ledger", "show", "x", "--nam", "y"],
        ["budget", "show", "x"],
    ],
    ids=" ".join,
)
def test_an_unknown_command_is_explained(run, arguments):
    result = run(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("usage: python -m pdprivacy")
    assert "Traceback" not in result.stderr


def test_the_commands_that_the_documentation_shows_are_commands(run, path, tmp_path, monkeypatch):
    page = Path(__file__).parents[2] / "docs" / "ledger.md"
    lines = [line for line in page.read_text().splitlines() if line.startswith("python -m pdprivacy")]
    monkeypatch.chdir(tmp_path)
    ledger = pdprivacy.Ledger(path)
    ledger.open("survey-2026", Pure(1))
    for line in lines:
        arguments = [
            ledger.head if word.endswith("...") else word for word in shlex.split(line, comments=True)[3:]
        ]
        assert run(*arguments)[::2] == (0, ""), line
    assert len(lines) == 4


def test_a_budget_is_named_by_place_or_by_option(run, path):
    result = run("ledger", "show", path, "rho")
    assert (result.returncode, result.stderr) == (0, "")
    assert (
        result == run("ledger", "show", path, "--name", "rho") == run("ledger", "show", "--name", "rho", path)
    )
    assert result.stdout != run("ledger", "show", path).stdout
    assert (
        run("ledger", "export", path, "rho").stdout == run("ledger", "export", path, "--name", "rho").stdout
    )
    assert run("ledger", "show", path, "rho", "--name", "untouched").returncode == 2


def test_errors_hint_at_command_lines(run, path, tmp_path):
    errors = {
        "no ledger": failed(run("ledger", "show", tmp_path / "none.db"), 2),
        "no budget": failed(run("ledger", "show", path, "none"), 2),
        "no file": failed(run("ledger", "show", ":memory:"), 2),
        "no server": failed(run("ledger", "show", "mysql://host/base"), 2),
    }
    for case, text in errors.items():
        assert "Hint: " in text, case
        assert "pdprivacy ledger show" in text, case
        assert not [call for call in ("df.dp", "Ledger(", "Budget(", "protect(") if call in text], case


def test_every_hint_that_becomes_a_command_line_is_a_hint_of_the_package():
    package = Path(pdprivacy.__file__).parent
    texts = "".join(file.read_text() for file in package.rglob("*.py") if file.name != "main.py")
    imported = {store.AUDIT, store.RESTORE, files.RESTORE, files.RESTORE_ALONE, costs.TRY, report.TRY}
    assert imported <= set(COMMANDS)
    for hint, command in COMMANDS.items():
        assert hint in imported or f'"{hint}"' in texts or f"'{hint}'" in texts, hint
        assert "ledger." not in command.replace("pdprivacy ledger", "")
        assert not re.search(r"\w\(", command), command


def test_the_console_script_is_the_command_line(monkeypatch, capsys):
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module, _, name = project["scripts"]["pdprivacy"].partition(":")
    script = getattr(importlib.import_module(module), name)
    assert script is main
    monkeypatch.setattr(sys, "argv", ["/usr/bin/pdprivacy", "ledger", "--help"])
    assert script() == 0
    assert capsys.readouterr().out.startswith("usage: pdprivacy ledger ")


def test_help_is_there(run):
    result = run("ledger", "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert all(name in result.stdout for name in ("show", "audit", "export"))


# Outputs that take nothing, and interrupts.


@pytest.fixture(scope="module")
def unwritten(tmp_path_factory) -> dict[tuple[str, str], Done]:
    """The outcome of each command where nothing could be written, by place."""
    path = filled(tmp_path_factory.mktemp("unwritten") / "budget.db")
    names = {"show": ["show", path], "audit": ["audit", path], "export": ["export", path]}
    calls = {("broken", name): some for name, some in (names | {"help": ["show", path, "--help"]}).items()}
    if Path("/dev/full").exists():
        calls |= {("/dev/full", name): some for name, some in names.items()}
    results = processes([[output, "ledger", *some] for (output, _), some in calls.items()])
    return dict(zip(calls, results, strict=True))


@pytest.mark.full
@POSIX
@pytest.mark.parametrize("name", ["show", "audit", "export", "help"])
def test_a_pipe_that_nobody_reads_is_no_error(unwritten, name):
    result = unwritten["broken", name]
    assert result.stderr == ""
    assert result.returncode in ((0, 141) if name == "help" else (141,))  # argparse may drop it by itself


@pytest.mark.full
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("name", ["show", "audit", "export"])
def test_an_output_that_is_full_is_told(unwritten, name):
    result = unwritten["/dev/full", name]
    assert result.returncode == 2
    assert result.stderr == "The output could not be written: No space left on device.\n"


@pytest.mark.full
@POSIX
def test_outputs_that_are_closed_are_told(path):
    audit = '"$0" -m pdprivacy ledger audit "$1"'
    script = f"{audit} >&-; echo $?; {audit} >&- 2>&-; echo $?"
    process = subprocess.run(
        ["sh", "-c", script, sys.executable, str(path)],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=True,
    )
    assert process.stdout.split() == ["2", "2"]
    assert process.stderr == "There is no output to write to.\n"


@pytest.mark.full
@POSIX
def test_an_interrupt_is_quiet(path):
    code = (
        "import os, signal, sys; from pdprivacy import command;"
        "command._audit = lambda *given: os.kill(os.getpid(), signal.SIGINT) or signal.pause();"
        "sys.exit(command.main(sys.argv[1:]))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, "ledger", "audit", str(path)],
        capture_output=True, text=True, timeout=HANG, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert (process.returncode, process.stdout, process.stderr) == (130, "", "Interrupted.\n")
