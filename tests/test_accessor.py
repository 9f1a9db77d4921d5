"""The accessor is the functions, and nothing more."""

from __future__ import annotations

import importlib
import inspect
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Budget, Column, Domain, ProtectedFrame, releases
from pdprivacy.accessor import PLANNED, RELEASING, DataFrameDP, PlanDP, ProtectedDP, SeriesDP
from pdprivacy.core.gate.execute import execute
from pdprivacy.core.gate.spec import Release
from pdprivacy.errors import (
    MetadataError,
    NotProtectedError,
    OpaqueFrameError,
    ParameterError,
    PrivacyError,
    UnknownNameError,
    UnstableStepError,
)
from pdprivacy.frames import ROW_STEPS, find
from pdprivacy.ledger import Entry
from pdprivacy.releases import planning
from pdprivacy.releases.batches import VERBS
from pdprivacy.releases.grouped import VERBS_BY_GROUP
from pdprivacy.risk.table_risk import ConfidentialTables
from tests.support import signatures
from tests.support.cases import each
from tests.support.snapshots import records_of

FUNCTIONS = [name for name in releases.__all__ if name[0].islower()]
FOUND = pdprivacy.protect(
    pd.DataFrame({"weight": np.arange(50.0, 90)}),
    pdprivacy.Domain((pdprivacy.Column("weight", "float"),)),
    epsilon=1,
).dp.find_bounds("weight", epsilon=1, rng=1)
# Every way to call a release: name, positional and other arguments.
pytestmark = pytest.mark.filterwarnings("ignore::pdprivacy.errors.OmissionWarning")

CALLS = [
    ("count", (), {"epsilon": 0.5, "rng": 1}),
    ("count", (["income"],), {"epsilon": 0.5, "rng": 1, "mechanism": "laplace"}),
    ("sum", ("age",), {"epsilon": 0.5, "rng": 1}),
    ("mean", (["age", "income"],), {"epsilon": 0.5, "rng": 1, "split": {"age": 1, "income": 3}}),
    ("mean", (), {"epsilon": 0.5, "delta": 1e-6, "mechanism": "gaussian", "rng": 1}),
    ("var", ("age",), {"epsilon": 0.5, "rng": 1}),
    ("std", ("age",), {"epsilon": 0.5, "rng": 1}),
    ("describe", (["age", "income"],), {"epsilon": 0.5, "rng": 1, "split": {"age": 1, "income": 3}}),
    ("cov", (["age", "income"],), {"epsilon": 0.5, "rng": 1}),
    ("corr", (["age", "income"],), {"epsilon": 0.5, "rng": 1}),
    ("ols", ("income", ["age"]), {"epsilon": 0.5, "rng": 1}),
    ("proportion", ("health", "yes"), {"epsilon": 0.5, "rng": 1}),
    ("quantile", (["age", "income"], [0.25, 0.75]), {"epsilon": 0.5, "rng": 1}),
    ("median", ("income",), {"epsilon": 0.5, "rng": 1}),
    ("find_bounds", (["age", "income"],), {"epsilon": 0.5, "rng": 1, "split": {"age": 1, "income": 3}}),
    ("min", ("income",), {"epsilon": 0.5, "rng": 1}),
    ("max", ("income",), {"epsilon": 0.5, "rng": 1, "releases": 2}),
    ("mode", (["region", "health"],), {"epsilon": 0.5, "rng": 1}),
    ("top_k", ("region", 2), {"epsilon": 0.5, "rng": 1, "mechanism": "noisy_max"}),
    ("value_counts", ("region",), {"epsilon": 0.5, "rng": 1, "normalize": True}),
    ("find_labels", ("town",), {"epsilon": 20, "delta": 1e-6, "rng": 1}),
    ("histogram", ("income", 5), {"epsilon": 0.5, "rng": 1}),
    ("crosstab", (["region"], "health"), {"epsilon": 0.5, "rng": 1, "margins": True}),
    ("pooled_var", ("family",), {"by": "region", "epsilon": 0.5, "rng": 1}),
    ("pooled_cov", (["family", "age"],), {"by": "region", "epsilon": 0.5, "rng": 1}),
    ("kmeans", (["age", "income"], 3), {"epsilon": 0.5, "rng": 1, "iterations": 2}),
    ("kmedian", ("family", 2), {"epsilon": 0.5, "rng": 1, "steps": 3}),
    ("query", ("age > 30",), {}),
    ("quality", (), {}),
    ("dr_ha", ("region", "health", [0.1, 1]), {}),
    ("risk_curve", ("region", "health", [0.1, 1]), {"measure": "expected"}),
    ("choose_epsilon", ("region", "health", 0.3), {"mechanism": "laplace"}),
    ("utility", (["region", "health"],), {"draws": 2, "rng": 1}),
    ("tradeoff", ("region", "health", [0.1, 1]), {"draws": 2, "rng": 1}),
    ("homogeneity", (["region", "age"], "health"), {"top": 3}),
    ("anonymity", (["region", "age"], "health"), {"top": 3, "ordered": "health"}),
    ("repeated_risk", ([{"by": "region", "sensitive": "health", "epsilon": 1}],), {}),
    ("groupby", (["region"],), {}),
    ("agg", (["mean", "std"], "age"), {"epsilon": 0.5, "rng": 1}),
    ("pivot_table", ("age", "region", "health"), {"epsilon": 0.5, "rng": 1}),
    ("nunique", (["region", "health"],), {"epsilon": 0.5, "rng": 1}),
    ("rename", ({"age": "years"},), {}),
    ("merge", (pd.DataFrame({"region": ["north"], "area": [3]}),), {"how": "left", "on": "region"}),
    ("astype", ({"age": "float64"},), {}),
    ("partition", ("region",), {"epsilon": 0.5}),
    ("plan_releases", ([("mean", "age", {"epsilon": 0.5, "rng": 1})],), {"delta": 1e-6}),
    ("batch", (), {"release_id": "all"}),
    ("marginals", (["region", "health"],), {"epsilon": 0.5, "rng": 1}),
    ("remaining", (1e-4,), {}),
    ("split", (1, [2, 1]), {}),
    ("clip", (), {"upper": {"age": 60}}),
    ("use", (FOUND,), {}),
    ("assign", (), {"double": "2 * family", "bounds": {"double": (2, 20)}}),
    ("cut", ("age", [18, 40, 90]), {"right": False}),
    ("recode", ("region", {"north": "up", "south": "down"}), {}),
    ("fillna", (0,), {}),
    ("dropna", (), {"subset": ["income"]}),
    ("select", (["age", "region"],), {}),
    ("drop", (), {"columns": ["age"]}),
    ("filter", (), {"items": ["age"]}),
    ("sample", (), {"frac": 0.5, "rng": 1}),
    ("suppress_outliers", ("age", 0.1, 0.2), {"rng": 1}),
    ("compare_sampling", ("mean", "age"), {"rates": [0.5], "repetitions": 2, "rng": 1}),
    ("compare_suppression", ("mode", "region"), {"spreads": [(0.5, 0.5)], "repetitions": 2, "rng": 1}),
]


def test_the_calls_cover_every_function():
    assert {name for name, _, _ in CALLS} == {*FUNCTIONS, *ROW_STEPS} - {"per_unit"}  # for frames with units


RELEASED = [
    "censor",
    "changes",
    "difference",
    "interval",
    "metadata",
    "plot",
    "ratio",
    "relabel",
    "save",
    "schema",
    "to_excel",
    "to_frame",
    "to_latex",
    "to_markdown",
]
RELEASED += ["total", "unprojected", "verify"]
OF_FRAME = {"budget", "domain", "lineage", "plan", "plot"}


def public(owner):
    """The completions of a prompt."""
    return [name for name in dir(owner) if not name.startswith("_")]


def test_names_are_those_of_the_functions():
    assert public(DataFrameDP) == sorted([*RELEASED, "check", "protect"])
    assert public(SeriesDP) == RELEASED
    assert public(ProtectedDP) == sorted({*OF_FRAME, *ROW_STEPS, *FUNCTIONS})
    assert public(PlanDP) == sorted([*PLANNED, "groupby"])
    assert releases.__all__ == sorted(releases.__all__)


def test_the_modules_of_releases_are_what_they_are_said_to_be():
    for module, names in releases.MODULES.items():
        offered = vars(importlib.import_module(f"pdprivacy.{module}"))
        assert set(names) <= set(offered), module
    makes = {
        releases.HOMES[name]
        for name in FUNCTIONS
        if str(inspect.signature(getattr(releases, name)).return_annotation).startswith("Release[")
    }
    assert makes == set(RELEASING)
    assert sorted(planning.PLANS) == sorted(PLANNED)


def test_each_frame_completes_to_what_applies_to_it(survey, schema):
    assert public(survey.dp) == ["check", "protect"]
    assert public(survey["age"].dp) == []
    private = survey.dp.protect(schema, epsilon=10)
    assert public(private.dp) == sorted({*OF_FRAME, *ROW_STEPS, *FUNCTIONS})
    mean, table = private.dp.mean("age", epsilon=1), private.dp.crosstab("region", "health", epsilon=1)
    assert public(mean.dp) == public(table.dp) == RELEASED
    plan = private.dp.plan.mean("age", epsilon=1, rows=100)
    assert public(plan.dp) == public(private.dp.quality().dp) == ["plot"]
    assert public(private.dp.lineage.dp) == []
    assert public(private) == sorted({"columns", "copy", "dp", "loc", "pipe", *ROW_STEPS})
    named = (
        "abs between case_when clip dt fillna isin isna isnull map mask notna notnull replace round str where"
    )
    named += " add sub mul div pow mod floordiv radd rsub rmul rdiv rpow rmod rfloordiv truediv rtruediv"
    named += " divide multiply subtract lt le gt ge eq ne"
    assert public(private["age"]) == public(private["age"] > 3) == sorted(named.split())
    with private.dp.batch() as batch:
        assert public(batch) == sorted({*map(str, VERBS), "constrain", "plan"})
    assert public(private.dp.groupby("region")) == sorted({"keys", "selected", *VERBS_BY_GROUP})


IN_MEMORY = {"kmeans", "sample", "suppress_outliers", "compare_sampling", "compare_suppression"}
OF_THE_WHOLE = {
    *IN_MEMORY - {"kmeans"},
    "anonymity",
    "choose_epsilon",
    "dr_ha",
    "homogeneity",
    "risk_curve",
    "tradeoff",
}


def lazy(survey, schema):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    columns = list(schema.columns)
    domain = survey.dp.protect(schema, epsilon=1).dp.domain
    return pdprivacy.protect(arrow.Table.from_pandas(survey[columns]), domain, epsilon=100)


@each(
    ("make", "hidden"),
    [
        (lazy, IN_MEMORY),
        (lambda survey, schema: survey.dp.protect(schema, epsilon=100).dp.sample(frac=0.5), None),
        (
            lambda survey, schema: survey.dp.protect(schema, epsilon=100).dp.sample(
                frac=0.5, spend="epsilon"
            ),
            OF_THE_WHOLE,
        ),
    ],
)
def test_methods_that_a_frame_does_not_complete_are_refused(survey, schema, make, hidden):
    private = make(survey, schema)
    missing = {*ROW_STEPS, *FUNCTIONS} - {*public(private.dp)}
    assert missing == ({*OF_THE_WHOLE, "batch", "marginals", "plan_releases"} if hidden is None else hidden)
    spent = private.dp.budget.spent
    for name, args, options in CALLS:
        if name in missing:
            with pytest.raises(PrivacyError):
                getattr(private.dp, name)(*args, **options)
    assert missing <= {name for name, _, _ in CALLS}
    assert private.dp.budget.spent == spent


def test_the_frame_of_a_step_completes_to_what_it_keeps(survey, schema, tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    offered = []

    @pdprivacy.release_step(schema=schema, epsilon=1, ledger=tmp_path / "b.db", name="s", to=tmp_path)
    def step(private):
        offered.extend(public(private.dp))
        for name, args, options in CALLS:
            if name not in offered:
                with pytest.raises(PrivacyError, match="is not for steps"):
                    getattr(private.dp, name)(*args, **options)
        return private.dp.count(epsilon=0.5)

    step(survey, release_id="1")
    assert set(offered) == {*OF_FRAME, *ROW_STEPS, *map(str, VERBS), "groupby", "split"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what completes
def test_ipython_completes_what_applies(survey, schema, full):
    """Jedi takes most of a second for each text: by default it completes two of them."""
    completer = pytest.importorskip("IPython.core.completer", reason="IPython is not installed")
    pytest.importorskip("jedi", reason="jedi is not installed")
    private = survey.dp.protect(schema, epsilon=10)
    names = {"df": survey, "private": private, "mean": private.dp.mean("age", epsilon=1)}
    completes = completer.IPCompleter(namespace=names)
    completes.use_jedi = True

    def completed(text):
        with completer.provisionalcompleter():
            return sorted(
                completion.text
                for completion in completes.completions(text, len(text))
                if not completion.text.startswith("_")
            )

    assert completed("df.dp.") == ["check", "protect"]
    assert completed("private.dp.") == public(ProtectedDP)
    if full:
        assert completed("mean.dp.") == RELEASED
        assert completed("private.dp.plan.") == sorted([*PLANNED, "groupby"])
        assert completed('private["age"].') == public(private["age"])
        assert completed("private.dp.me") == ["mean", "median", "merge"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what completes
def test_ipython_completes_what_applies_without_jedi(survey, schema):
    """It then calls no property, and goes by the annotations of classes."""
    evaluation = pytest.importorskip("IPython.core.guarded_eval", reason="IPython is not installed")
    if not hasattr(evaluation, "_collect_annotations"):
        pytest.skip("this IPython does not complete by annotations")
    private = survey.dp.protect(schema, epsilon=10)
    context = evaluation.EvaluationContext({"private": private}, {}, evaluation="limited")

    def completed(text):
        return public(evaluation.guarded_eval(text, context))

    assert completed("private.dp") == public(ProtectedDP)
    assert completed("private.dp.plan") == sorted([*PLANNED, "groupby"])
    assert {"entries", "left", "spent"} <= set(completed("private.dp.budget"))


def test_a_name_that_does_not_apply_says_why(survey, schema):
    private = survey.dp.protect(schema, epsilon=10)
    table = private.dp.crosstab("region", "health", epsilon=1)
    for frame in (survey, table):
        with pytest.raises(NotProtectedError, match="The frame is not protected"):
            frame.dp.mean("age", epsilon=1)
        with pytest.raises(NotProtectedError, match="The frame is not protected"):
            frame.dp.budget  # noqa: B018
    with pytest.raises(ParameterError, match="protected already"):
        private.dp.protect(schema, epsilon=1)
    for name in (
        "metadata",
        "verify",
        "unprojected",
        "interval",
        "schema",
        "to_frame",
        "to_latex",
        "to_markdown",
    ):
        with pytest.raises(MetadataError):
            getattr(private.dp, name)()
    with pytest.raises(OpaqueFrameError, match="'dp' reads cells"):
        private["age"].dp  # noqa: B018
    for frame in (survey, table, private):
        with pytest.raises(UnknownNameError, match=r"no attribute 'average'.*\nHint: private.dp.mean\("):
            frame.dp.average  # noqa: B018


@each("name", FUNCTIONS)
def test_parameters_are_those_of_the_function(name):
    function, method = getattr(releases, name), getattr(ProtectedDP, name)
    first, *rest = inspect.signature(function).parameters.values()
    itself, *others = inspect.signature(method).parameters.values()
    assert first.name == "protected"
    assert itself.name == "self"
    assert rest == others
    assert method.__doc__ == function.__doc__
    assert method.__name__ == name
    assert inspect.signature(getattr(pd.DataFrame().dp, name)).parameters.keys() == {
        parameter.name for parameter in rest
    }


@each("name", ROW_STEPS)
def test_row_steps_are_those_of_the_frame(name):
    step, method = getattr(ProtectedFrame, name), getattr(ProtectedDP, name)
    parameters = [list(inspect.signature(function).parameters.values())[1:] for function in (step, method)]
    assert parameters[0] == parameters[1]
    assert (method.__doc__, method.__name__) == (step.__doc__, name)


@each("name", FUNCTIONS)
def test_parameters_of_the_cost_have_the_same_names_everywhere(name):
    parameters = inspect.signature(getattr(releases, name)).parameters
    free = {"dr_ha", "utility", "tradeoff", "sample", "suppress_outliers"}  # these cost nothing
    if "rng" in parameters and name not in free and not name.startswith("compare_"):
        # one mechanism finds more labels than all others
        for word in ("epsilon", "delta", "rng", *(() if name == "find_labels" else ("mechanism",))):
            assert parameters[word].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters["epsilon"].default is inspect.Parameter.empty
        assert (parameters["delta"].default, parameters["rng"].default) == (0, None)
    assert not {"eps", "lb", "ub", "seed", "random_state", "sensitivity"} & set(parameters)


@pytest.mark.parametrize("name", ["mean", "sum", "var", "std", "cov", "corr", "count", "query", "groupby"])
def test_names_are_those_of_pandas(name):
    assert callable(getattr(pd.DataFrame, name))


@pytest.mark.parametrize("name", ["drop_duplicates", "nlargest", "drop_outliers", "loc", "apply"])
def test_steps_that_look_at_other_records_are_refused_with_a_way_out(survey, schema, name):
    private = survey.dp.protect(schema, epsilon=1)
    with pytest.raises(UnstableStepError, match=r"is not offered: .*\nHint: "):
        getattr(private.dp, name)
    assert not hasattr(private.dp, name)
    with pytest.raises(AttributeError, match="no attribute 'meen'"):
        private.dp.meen("age")


def cells_of(part):
    """A released table, or the records of a protected frame."""
    return records_of(part) if isinstance(part, ProtectedFrame) else pd.DataFrame(part)


@pytest.mark.full(keep=5)
@pytest.mark.parametrize(("name", "arguments", "options"), CALLS, ids=lambda value: str(value)[:40])
def test_accessor_equals_function(survey, schema, name, arguments, options, monkeypatch):
    monkeypatch.setattr(Entry, "id", "0" * 16)  # which depends on the time
    first = survey.dp.protect(schema, epsilon=100, delta=1e-3)
    second = survey.dp.protect(schema, epsilon=100, delta=1e-3)
    by_method = getattr(first.dp, name)(*arguments, **options)
    module, subject = (ProtectedFrame, second) if name in ROW_STEPS else (releases, find(second))
    by_function = getattr(module, name)(subject, *arguments, **options)
    if isinstance(by_function, Release):
        by_function = execute(by_function)
    assert type(by_method) is type(by_function)
    declared = signatures.returned()[name]  # to type checkers
    assert declared == ["Any"] or type(by_method).__name__ in " ".join(declared)
    if isinstance(by_method, releases.GroupBy):
        assert by_method.keys == by_function.keys
        by_method, by_function = (one_.sum("age", epsilon=0.5, rng=1) for one_ in (by_method, by_function))
    if isinstance(by_method, ConfidentialTables):
        *parts, (_, by_method) = by_method.tables()
        *expected, (_, by_function) = by_function.tables()
        for (_, part), (_, other) in zip(parts, expected, strict=True):
            pd.testing.assert_frame_equal(part, other)
    if isinstance(by_method, dict):
        assert list(by_method) == list(by_function)
        by_method, by_function = (
            pd.concat(map(cells_of, groups.values())) for groups in (by_method, by_function)
        )
    if isinstance(by_method, releases.ReleasePlan):
        assert repr(by_method) == repr(by_function)
        (by_method,), (by_function,) = by_method.release(), by_function.release()
    if isinstance(by_method, releases.Batch):
        pending = []
        for one_ in (by_method, by_function):
            with one_ as batch:
                pending.append(batch.mean("age", epsilon=0.5, rng=1))
        by_method, by_function = (one_.result for one_ in pending)
    if isinstance(by_method, list):
        by_method, by_function = pd.Series(by_method), pd.Series(by_function)
    if isinstance(by_method, float):
        assert by_method == by_function
        by_method, by_function = pd.Series([by_method]), pd.Series([by_function])
    if isinstance(by_method, ProtectedFrame):
        by_method, by_function = records_of(by_method), records_of(by_function)
    assert len(by_method) > 0
    if isinstance(by_method, pd.Series):
        pd.testing.assert_series_equal(by_method, by_function)
    else:
        pd.testing.assert_frame_equal(by_method, by_function)
    if "rng" in options and name not in ("sample", "suppress_outliers"):  # of which each has its mark
        assert by_method.attrs == by_function.attrs
    assert first.dp.budget.spent == second.dp.budget.spent
    if "epsilon" in options:  # is the whole cost of the call
        assert first.dp.budget.spent == (options["epsilon"], options.get("delta", 0))
    assert first.dp.budget.entries["release"].tolist() == second.dp.budget.entries["release"].tolist()


@pytest.mark.parametrize("method", VERBS_BY_GROUP)
def test_groups_are_told_by_the_same_words(method):
    _, *parameters = inspect.signature(getattr(releases.GroupBy, method)).parameters
    parameters = [name for name in parameters if name != "named"]  # named aggregations are of groups alone
    whole = list(inspect.signature(getattr(releases, {"size": "count"}.get(method, method))).parameters)
    assert [name for name in parameters if name in whole] == [name for name in whole if name in parameters]
    assert set(parameters) <= set(whole)


def test_the_public_names():
    names = pdprivacy.__all__
    assert set(public(pdprivacy)) | {"__version__"} == set(names)
    assert names == sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    modules = {name for name in names if inspect.ismodule(getattr(pdprivacy, name))}
    assert modules == {
        "accounting",
        "errors",
        "mechanism",
        "postprocess",
        "risk",
        "sensitivity",
        "suppression",
    }
    offered = {name: getattr(pdprivacy, name) for name in (*public(pdprivacy), "__version__")}
    assert {name for name, value in offered.items() if not inspect.ismodule(value)} == set(names) - modules


def test_every_frame_has_the_accessor():
    assert isinstance(pd.DataFrame().dp, DataFrameDP)
    assert isinstance(pd.Series(dtype=float).dp, SeriesDP)
    assert pd.DataFrame.dp is DataFrameDP
    assert pd.Series.dp is SeriesDP


LOADED = {
    "a reload before the first use": "importlib.reload(pdprivacy)",
    "a reload": "pd.DataFrame().dp; importlib.reload(pdprivacy)",
    "another import": "pd.DataFrame().dp; del sys.modules['pdprivacy']; import pdprivacy",
}


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("code", LOADED.values(), ids=LOADED)
def test_the_accessor_survives(code):
    code = f"import importlib, sys, pandas as pd, pdprivacy; {code}; print(type(pd.DataFrame().dp).__name__)"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert process.stdout.strip() == "DataFrameDP", process.stderr


WATCHED = """
import sys, pandas as pd, pdprivacy

lines, without = 0, []

def watch(frame, event, argument):
    global lines
    if not frame.f_code.co_filename.endswith("accessor.py"):
        return None
    lines += 1
    for kind in (pd.DataFrame, pd.Series):
        if "dp" not in vars(kind):
            without.append((kind.__name__, frame.f_code.co_name, frame.f_lineno))
    return watch

sys.settrace(watch)
pd.DataFrame().dp
sys.settrace(None)
print(type(pd.DataFrame().dp).__name__, lines > 100, without)
"""


def test_there_is_an_accessor_at_every_moment_of_the_first_use():
    """Another thread may ask for it between any two lines that put the accessors in place."""
    environment = {"PYTHONPATH": ":".join(sys.path)}
    process = subprocess.run([sys.executable, "-c", WATCHED], env=environment, capture_output=True, text=True)
    assert process.stdout.strip() == "DataFrameDP True []", process.stderr


def test_another_accessor_called_dp_is_replaced_with_a_warning():
    code = "import pandas as pd; pd.DataFrame.dp = 1; import pdprivacy; print(pd.DataFrame.dp.__name__)"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert process.stdout.strip() == "DataFrameDP", process.stderr
    assert "UserWarning: pdprivacy replaces the attribute 'dp' of DataFrame." in process.stderr


def test_the_package_has_no_attribute_that_is_no_name():
    assert not hasattr(pdprivacy, "mean.age")
    assert not hasattr(pdprivacy, "")


def test_the_package_lacks_an_engine_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.delitem(sys.modules, "pdprivacy.polars", raising=False)
    monkeypatch.delattr(pdprivacy, "polars", raising=False)
    with pytest.raises(AttributeError, match=r"pip install \"pdprivacy\[polars\]\""):
        pdprivacy.polars  # noqa: B018
    assert not hasattr(pdprivacy, "polars")


def test_an_accessor_keeps_no_state(private):
    first = private.dp
    first.mean("age", epsilon=1)
    assert private.dp.budget.spent == (1.0, 0.0)
    first.mean("age", epsilon=1)
    assert private.dp.budget.spent == (2.0, 0.0)


def test_a_column_called_dp_does_not_hide_the_accessor():
    frame = pd.DataFrame({"dp": [1, 2, 3]})
    assert isinstance(frame.dp, DataFrameDP)
    private = frame.dp.protect(Domain((Column("dp", "integer", lower=0, upper=9),)), epsilon=10**6)
    assert private.dp.mean("dp", epsilon=10**5, rng=1).tolist() == pytest.approx([2], abs=0.01)
    assert private.dp.query("dp >= 2").dp.count(epsilon=100, rng=1).tolist() == [2]


@each("name", [*FUNCTIONS, "check", "protect", "budget", "domain"])
def test_a_series_points_to_the_frame(survey, name):
    """And shows no name: that of a row of the data may be somebody's."""
    row = pd.DataFrame({"age": [31]}, index=["SOMEBODY"]).iloc[0]
    for series in (survey["age"], row):
        with pytest.raises(
            NotProtectedError, match=f"'{name}' is a method of a (DataFrame|protected frame), not of a Series"
        ) as caught:
            getattr(series.dp, name)
        raw = name in ("check", "protect")
        assert (f"df.dp.{name}(" if raw else f"private.dp.{name}") in caught.value.hint
        assert "SOMEBODY" not in str(caught.value)


def test_a_series_has_no_other_names(survey):
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        survey["age"].dp.nothing  # noqa: B018
    assert not hasattr(survey["age"].dp, "__array__")
    with pytest.raises(MetadataError):
        survey["age"].dp.metadata  # noqa: B018


def test_the_hint_of_a_series_can_be_written(survey):
    for name in ("budget", "domain"):
        with pytest.raises(NotProtectedError) as caught:
            getattr(survey["age"].dp, name)
        assert f"private.dp.{name}(" not in caught.value.hint  # it is no method


def test_budgets_and_domains_show_the_charges_and_the_declaration(private):
    private.dp.mean("age", epsilon=0.5)
    text, page = repr(private.dp.budget), private.dp.budget._repr_html_()
    for piece in ("Mean of age", "0.5", "99.5", "add_remove", "laplace"):
        assert piece in text
        assert piece in page
    assert "midwest" not in repr(private.dp.domain)
    for piece in ("age", "18 to 90", "identifier", "'north'"):
        assert piece in repr(private.dp.domain)


def test_html_is_escaped():
    name = "<b>&"
    domain = Domain((Column(name, "category", categories=("<i>",), role="sensitive"),))
    private = pd.DataFrame({name: ["<i>"]}).dp.protect(domain, epsilon=1)
    private.dp.value_counts(name, epsilon=0.5)
    for page in (private.dp.budget._repr_html_(), private.dp.domain._repr_html_()):
        assert "<b>" not in page
        assert "<i>" not in page
        assert "&lt;b&gt;&amp;" in page


def test_budgets_and_domains_are_the_objects_themselves(survey, schema):
    budget = Budget(1)
    private = survey.dp.protect(schema, budget=budget)
    assert private.dp.budget is budget
    assert private.dp.domain == pdprivacy.read_schema(schema)
    assert pickle.loads(pickle.dumps(private.dp.domain)) == private.dp.domain


def test_quality_is_a_copy(private):
    quality = private.dp.quality()
    quality.loc["age", "null"] = 5
    assert private.dp.quality().loc["age", "null"] == 0
    assert private.dp.quality().loc["income", "null"] == 6


def test_entries_are_a_copy(private):
    private.dp.mean("age", epsilon=1)
    entries = private.dp.budget.entries
    entries.loc[1, "epsilon"] = 0.0
    entries.drop(index=1)
    assert private.dp.budget.entries["epsilon"].tolist() == [1.0]
    assert private.dp.budget.spent == (1.0, 0.0)


def test_seeds_and_generators_give_the_same_numbers(survey, schema):
    private = survey.dp.protect(schema, epsilon=100)
    first, repeated, other = (private.dp.mean("age", epsilon=1, rng=seed).iloc[0] for seed in (1, 1, 2))
    assert first == repeated != other
    generated = private.dp.mean("age", epsilon=1, rng=np.random.default_rng(1)).iloc[0]
    assert generated == first
    fresh = {private.dp.mean("age", epsilon=1).iloc[0] for _ in range(3)}
    assert len(fresh) == 3
