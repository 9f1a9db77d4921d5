"""Tracebacks of errors of this package show the message, the user's own frame, and no cell."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import traceback

import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain, accessor, releases, show
from pdprivacy.errors import DEBUG, BudgetExceeded, PrivacyError, short_traceback
from pdprivacy.frames.column import DateFields, ProtectedColumn
from pdprivacy.pipeline import storage
from pdprivacy.releases import batches, planning
from pdprivacy.show import export

CODE = """
import tempfile
import pandas as pd, pdprivacy
from pdprivacy import Column, Domain

town = Column("town", "category", categories=("up", "down"))
domain = Domain((town, Column("age", "integer", lower=0, upper=99)))

def raw():
    labels = [f"canary1{row}" for row in range(50)]
    return pd.DataFrame({"town": ["up"] * 50, "age": [77] * 50}, index=labels)

private = raw().dp.protect(domain, epsilon=1)
dp = private.dp

def stepped(body):
    folder = tempfile.mkdtemp()
    options = {"schema": domain, "epsilon": 1, "ledger": folder + "/ledger.db", "name": "n", "to": folder}
    return pdprivacy.release_step(**options)(body)

over_budget = stepped(lambda private: private.dp.mean("age", epsilon=5))
no_release = stepped(lambda private: 3)
"""
CALLS = [
    'dp.mean("age", epsilon=5)',
    'dp.mean("canary", epsilon=0.1)',
    'dp.query("age > town")',
    'dp.budget.charge(pdprivacy.Pure(5), "mine")',
    'private[private["age"] > 1000]',
    "pdprivacy.combine(private)",
    'over_budget(raw(), release_id="a")',
    'no_release(raw(), release_id="b")',
    "no_release(raw())",
    'no_release(raw()[["age"]], release_id="c")',
]


@pytest.fixture
def dp():
    domain = Domain((Column("age", "integer", lower=0, upper=99),))
    return pd.DataFrame({"age": [77] * 50}).dp.protect(domain, epsilon=1).dp


def frames_of(error):
    """The files of the frames of this package."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return [file for file in files if "pdprivacy" in file.replace("\\", "/").split("/")[:-1]]


def test_at_most_one_frame_of_the_package_remains(dp):
    with pytest.raises(BudgetExceeded) as caught:
        dp.mean("age", epsilon=5)
    assert len(frames_of(caught.value)) <= 1
    assert caught.value.__cause__ is caught.value.__context__ is None


WRONG = {
    "a missing argument": lambda dp: dp.mean("age"),
    "an argument by position": lambda dp: dp.mean("age", 0.1),
    "a misspelled keyword": lambda dp: dp.query("age > 3", epsilon=1),
    "a plan": lambda dp: dp.plan.mean("age"),
    "a group": lambda dp: dp.groupby("age").mean("age"),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_a_wrong_call_shows_no_frame_of_the_package(dp, call):
    with pytest.raises(PrivacyError) as caught:
        call(dp)
    assert frames_of(caught.value) == []
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_a_wrong_call_keeps_the_error_that_the_caller_handles(dp, call):
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        with pytest.raises(PrivacyError) as caught:
            call(dp)
    assert isinstance(caught.value.__context__, ZeroDivisionError)
    assert not caught.value.__suppress_context__


def test_the_error_that_the_caller_handles_is_kept(dp):
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        with pytest.raises(BudgetExceeded) as caught:
            dp.mean("age", epsilon=5)
    assert isinstance(caught.value.__context__, ZeroDivisionError)
    assert not caught.value.__suppress_context__


PUBLIC = {
    "a budget": lambda private: pdprivacy.Budget(-1),
    "a charge": lambda private: private.dp.budget.charge(pdprivacy.Pure(5), "mine"),
    "a report of a budget": lambda private: private.dp.budget.report(2),
    "a ledger": lambda private: pdprivacy.Ledger("nowhere/ledger.db").budget("clinic"),
    "budgets of a ledger": lambda private: pdprivacy.Ledger("nowhere/ledger.db").budgets,
    "a row step": lambda private: private.query("age > nobody"),
    "a mask": lambda private: private[private["age"] > 1000],
    "a column": lambda private: private["nobody"],
    "an operator": lambda private: private["age"] > [1],
    "a method of a column": lambda private: private["age"].between(0, 1, "some"),
    "a truth value": lambda private: bool(private["age"] > 3),
    "an unknown method": lambda private: private.mean(),
    "an unknown release": lambda private: private.dp.meann,
    "a property": lambda private: pd.DataFrame().dp.metadata,
    "a method of a release": lambda private: pd.Series(dtype=float).dp.interval(),
    "a pending release": lambda private: private.dp.batch().mean("age", epsilon=0.1),
    "an unknown name": lambda private: pdprivacy.mean,
    "a declaration": lambda private: Column("age", "number"),
    "a name of a declaration": lambda private: private.dp.domain["nobody"],
    "a schema": lambda private: pdprivacy.read_schema(3),
    "a stored release": lambda private: pdprivacy.read_release("nowhere.parquet"),
    "a combination": lambda private: pdprivacy.combine(3),
    "a public report": lambda private: pdprivacy.report([3]),
    "a sensitivity": lambda private: pdprivacy.sensitivity.mean(0, 1, 0, neighbors="add_remove"),
    "a share": lambda private: pdprivacy.accounting.shares([-1]),
    "a simplex": lambda private: pdprivacy.postprocess.nearest_psd(3),
    "a risk": lambda private: pdprivacy.risk.dr_ha([[1, 2]], 3),
    "a score": lambda private: pdprivacy.suppression.outlier_scores([[1]], "far"),
    "a mechanism": lambda private: pdprivacy.mechanism.Laplace(epsilon=-1, sensitivity=1),
    "noise": lambda private: pdprivacy.mechanism.Geometric(epsilon=1, sensitivity=1).sample([0.5]),
    "a loss": lambda private: pdprivacy.Pure(-1),
    "a picture": lambda private: show.plots.draw(pd.DataFrame()),
    "a file": lambda private: storage.save(pd.DataFrame(), "table.json"),
    "a text": lambda private: export.markdown(pd.DataFrame()),
    "groups of pandas": lambda private: pd.DataFrame({"age": [1]}).groupby("age").dp,
}


@pytest.mark.parametrize("call", PUBLIC.values(), ids=PUBLIC)
def test_every_public_call_leaves_at_most_one_frame_of_the_package(dp, call):
    with pytest.raises(PrivacyError) as caught:
        call(dp._frame)
    assert len(frames_of(caught.value)) <= 1
    assert caught.value.__cause__ is caught.value.__context__ is None


MODULES = [
    pdprivacy,
    *(member for name in pdprivacy.__all__ if inspect.ismodule(member := getattr(pdprivacy, name))),
]
BESIDE = [
    *(accessor.DataFrameDP, accessor.SeriesDP, accessor.ProtectedDP, accessor.PlanDP),
    *(ProtectedColumn, DateFields, releases.GroupBy, planning.GroupPlans),
    *(batches.Batch, batches.Pending, batches.ReleasePlan, show.report.Report),
    *(storage.save, storage.read_release, show.plots.draw, show.plots.draw_budget),
    *(export.to_frame, export.markdown, export.latex, export.excel),
]
"""What users reach beside the names of these modules."""
QUIET = {"__class_getitem__", "__del__", "__delattr__", "__getattribute__", "__init_subclass__", "__new__"}
QUIET |= {"__post_init__", "__setattr__", "__dir__"}


def functions_of(thing):
    """The functions that a call of a public function, or of a public name of a class, enters first."""
    if inspect.isfunction(thing):
        yield thing.__name__, thing
    if not inspect.isclass(thing) or issubclass(thing, BaseException):
        return
    for base in thing.__mro__:
        if not base.__module__.startswith("pdprivacy.") or getattr(base, "_is_protocol", False):
            continue
        for name, member in list(vars(base).items()):
            if type(member).__name__ == "_Late":  # made when it is first used
                member = getattr(thing, name)
            member = getattr(member, "__func__", member)
            quiet = name in QUIET or (name.startswith("_") and not name.startswith("__"))
            if inspect.isfunction(member) and not quiet:
                generated = member.__code__.co_filename.startswith("<") and name != "__init__"
                if not generated:
                    yield f"{base.__name__}.{name}", member


def test_every_public_name_is_short():
    public = [getattr(module, name) for module in MODULES for name in module.__all__]
    functions = dict(pair for thing in (*public, *BESIDE) for pair in functions_of(thing))
    omits = "_rich_traceback_omit"
    long = {name for name, function in functions.items() if omits not in function.__code__.co_varnames}
    assert long == {"_Accessor.__init__"}  # which stores the frame and raises nothing
    assert len(functions) > 400


@pytest.mark.parametrize("call", ["protect", "groups", "plan", "batch"])
def test_no_frame_of_the_package_shows_records(dp, call):
    domain = Domain((Column("age", "integer", lower=0, upper=99), Column("ill", "boolean")))
    raw = pd.DataFrame({"age": [77, 4242] * 5, "ill": [True, False] * 5})
    private = raw.assign(age=77).dp.protect(domain, epsilon=1)

    def batched():
        with private.dp.batch() as batch:
            batch.mean("age", epsilon=5)

    calls = {
        "protect": lambda: pdprivacy.protect(raw, domain, epsilon=1),
        "groups": lambda: private.dp.groupby("ill").mean("age", epsilon=5),
        "plan": lambda: private.dp.plan_releases([("mean", "age", {"epsilon": 5})]).release(),
        "batch": batched,
    }
    with pytest.raises(PrivacyError) as caught:
        calls[call]()
    assert len(frames_of(caught.value)) <= 1
    text = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    inner = text[text.index("pdprivacy/") :] if "pdprivacy/" in text else ""
    assert "4242" not in inner


def test_a_switch_keeps_all_frames(dp, monkeypatch):
    monkeypatch.setenv(DEBUG, "1")
    with pytest.raises(BudgetExceeded) as caught:
        dp.mean("age", epsilon=5)
    assert len(frames_of(caught.value)) > 3


def test_other_errors_and_signatures_are_left_alone():
    @short_traceback
    def called(number: int) -> int:
        """Return the reciprocal."""
        return 1 // number

    assert called(1) == 1
    assert called.__doc__ == "Return the reciprocal."
    with pytest.raises(ZeroDivisionError):
        called(0)


def test_causes_do_not_show_either():
    @short_traceback
    def called() -> None:
        try:
            raise ValueError("canary")
        except ValueError as error:
            raise PrivacyError("No.") from error

    with pytest.raises(PrivacyError) as caught:
        called()
    assert "canary" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("call", CALLS)
def test_verbose_ipython_shows_the_message_and_the_line_of_the_user(call, capsys):
    interactive = pytest.importorskip("IPython.core.interactiveshell", reason="IPython is not installed")
    config = pytest.importorskip("traitlets.config")
    settings = config.Config()
    settings.HistoryManager.enabled = False
    shell = interactive.InteractiveShell.instance(config=settings)
    try:
        shell.run_cell(CODE)
        shell.InteractiveTB.set_mode("Verbose")
        capsys.readouterr()
        result = shell.run_cell(call)
    finally:
        interactive.InteractiveShell.clear_instance()
    output = re.sub(r"\x1b\[[0-9;]*m", "", "".join(capsys.readouterr()))
    lines = output.splitlines()
    assert isinstance(result.error_in_exec, PrivacyError)
    assert str(result.error_in_exec).splitlines()[0] in output
    assert call in output
    assert len(lines) < 30
    assert not [line for line in lines if "pdprivacy" in line and ".py" in line]
    assert "canary1" not in output


BODIES = ['private.dp.mean("age", epsilon=5)', 'raise KeyError("of the user")']
TESTED = [*CALLS, *(f"stepped(body_{number})(raw(), release_id='d')" for number in range(len(BODIES)))]
BODY = """
def body_{number}(private):
    own = "mine"
    {line}
"""
SUITE = """
def test_{number}():
    {call}
"""


@pytest.fixture(scope="module")
def told_by_pytest(tmp_path_factory):
    """What pytest tells of each call, in a test that fails, with local variables; one process runs all."""
    folder = tmp_path_factory.mktemp("suite")
    file = folder / "test_of_user.py"
    bodies = [BODY.format(number=number, line=line) for number, line in enumerate(BODIES)]
    suite = [SUITE.format(number=number, call=call) for number, call in enumerate(TESTED)]
    file.write_text(CODE + "".join([*bodies, *suite]))
    command = [sys.executable, "-m", "pytest", "--showlocals", "-p", "no:cacheprovider", "-q", str(file)]
    done = subprocess.run(
        [*command, "--rootdir", str(folder)], capture_output=True, text=True, check=False, cwd=folder
    )
    assert f"{len(TESTED)} failed" in done.stdout
    _, *sections = re.split(r"^_+ test_\d+ _+$", done.stdout, flags=re.MULTILINE)
    return dict(zip(TESTED, sections, strict=True))


@pytest.mark.parametrize("call", TESTED)
def test_pytest_with_locals_shows_no_frame_of_the_package(call, told_by_pytest):
    section = told_by_pytest[call]
    assert call in section
    assert not re.search(r"pdprivacy/[\w/]*\.py", section)
    assert "canary1" not in section


@pytest.mark.parametrize(("call", "line"), list(zip(TESTED[len(CALLS) :], BODIES, strict=True)))
def test_the_frames_of_the_body_of_a_step_stay(call, line, told_by_pytest):
    output = told_by_pytest[call]
    assert "own        = 'mine'" in output
    assert re.search(r"^>? +" + re.escape(line), output, re.MULTILINE)


@pytest.mark.parametrize("call", CALLS)
def test_rich_with_locals_shows_no_frame_of_the_package(call):
    console = pytest.importorskip("rich.console", reason="rich is not installed")
    rich = pytest.importorskip("rich.traceback", reason="rich is not installed")
    names = {}
    exec(CODE, names)
    with pytest.raises(PrivacyError) as caught:
        eval(call, names)
    with open("/dev/null", "w") as nowhere:
        recorder = console.Console(record=True, width=200, file=nowhere)
        error = caught.value
        recorder.print(
            rich.Traceback.from_exception(type(error), error, error.__traceback__, show_locals=True)
        )
    text = recorder.export_text()
    assert str(error).splitlines()[0][:60] in text
    assert not re.search(r"pdprivacy/[\w/]*\.py:\d+ in", text)
    assert "canary1" not in text
