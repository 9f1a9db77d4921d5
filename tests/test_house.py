"""Facts about the source itself: import direction, third parties, names and docstrings."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import SimpleNamespace

import pytest

import pdprivacy
import pdprivacy.releases
from pdprivacy import accessor as accessors
from pdprivacy.core.mechanisms import MECHANISMS
from tests.conftest import FAST, OLDEST_TOO, covering

PACKAGE = Path(pdprivacy.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# Each part of the package, in layers; it may import from layers before its own.
LAYERS = (
    {"_version", "exact", "hints.examples", "text.marks", "types"},
    {"errors", "hints", "text", "text.numbers"},
    {"checks", "hints.suggestions", "text.markup", "text.progress"},
    {"declaration"},
    {"core"},
    {"core.distributions", "core.privacy"},
    {"core.noise"},
    {"core.accounting", "core.sensitivities"},
    {"core.mechanisms"},
    {"core.statistics", "core.rows"},
    {"core.conform", "core.engines"},
    {"core.gate"},
    {"ledger", "postprocess"},
    {"frames"},
    {"risk"},
    {"releases"},
    {"inference"},
    {"amplification"},
    {"pipeline"},
    {"show"},
    {"accounting", "mechanism", "sensitivity", "suppression"},
    {"accessor", "command", "signatures"},
    {"polars", "dask", "spark", "__main__"},
    {"__init__"},
)
ROOMS = ("text", "hints", "core")
"""The rooms whose modules and folders are parts of their own."""

THIRD_PARTIES = {
    "pandera": {"declaration", "pipeline"},
    "scipy": {
        "amplification",
        "core.distributions",
        "core.engines",
        "core.mechanisms",
        "core.noise",
        "core.statistics",
        "declaration",
        "inference",
        "risk",
    },
    "pyarrow": {"command", "core.engines", "core.gate", "declaration", "pipeline"},
    "openpyxl": {"show"},
    "matplotlib": {"show"},
    "jinja2": {"show"},
    "tqdm": {"text.progress"},
    "psycopg": {"ledger"},
    "dp_accounting": {"core.accounting"},
    "narwhals": {"core.engines"},
    "dask": {"core.engines", "dask"},
    "polars": {"core.engines", "polars"},
    "duckdb": {"core.engines"},
    "pyspark": {"core.engines", "spark"},
    "pandas": {
        "__init__",
        "accessor",
        "amplification",
        "command",
        "core.conform",
        "core.engines",
        "core.gate",
        "core.rows",
        "declaration",
        "frames",
        "inference",
        "ledger",
        "pipeline",
        "releases",
        "risk",
        "show",
        "text.markup",
        "text.numbers",
    },
}


def part(path: Path) -> str:
    """The room that a file belongs to, or the module or folder in the rooms that `ROOMS` divides."""
    return part_of(dotted(path).removeprefix("pdprivacy.")) if path.parent != PACKAGE else path.stem


def part_of(name: str) -> str:
    first, *rest = name.split(".")
    return f"{first}.{rest[0]}" if first in ROOMS and rest else first


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """The syntax of a file, parsed once for all tests; nobody changes it."""
    return ast.parse(path.read_text())


@functools.cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree_of(path)))


def dotted(path: Path) -> str:
    parts = ["pdprivacy", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)
"""What holds statements; no expression does."""


@functools.cache
def imports(path: Path, *, types: bool = False) -> frozenset[str]:
    """Every dotted name that a file imports when it runs, at its top or inside a function.

    ``types``: also what it imports for type checkers alone.
    """
    names: set[str] = set()
    waiting: list[ast.AST] = [tree_of(path)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING") and not types:
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            assert node.module is not None
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        waiting += [part for part in ast.iter_child_nodes(node) if isinstance(part, STATEMENTS)]
    return frozenset(names)


OWN = {dotted(file) for file in FILES}


@functools.cache
def own_modules(path: Path, *, types: bool = False) -> frozenset[str]:
    """The modules of the package that a file imports."""
    names = set()
    for name in imports(path, types=types):
        if name.split(".")[0] == "pdprivacy":
            names.add(name if name in OWN else name.rpartition(".")[0])
    return frozenset(names - {dotted(path)})


def own_parts(path: Path, *, types: bool = False) -> set[str]:
    names = {name.removeprefix("pdprivacy.") for name in own_modules(path, types=types) if "." in name}
    return {part_of(name) for name in names} - {part(path)}


def rank(name: str) -> int:
    for position, layer in enumerate(LAYERS):
        if name in layer:
            return position
    raise AssertionError(f"{name!r} has no layer: give it one here and in the design")


def test_there_are_modules_to_look_at():
    assert {"core.gate", "accessor", "errors"} <= {part(path) for path in FILES}
    assert "pdprivacy.core.noise" in own_modules(PACKAGE / "core/gate/execute.py")
    assert "pdprivacy.ledger" in own_modules(PACKAGE / "core/gate/execute.py", types=True)


AT_DISPLAY = {"ledger", "risk"}
"""The rooms whose objects ask `show` for their display when they are displayed."""
UPWARDS = {
    ("core.statistics.counts", "postprocess"),  # noisy counts of a tree become consistent ones
    # of objects that the gate is handed, for type checkers alone
    ("core.gate.facts", "amplification"),
    ("core.gate.facts", "ledger"),
    ("core.gate.execute", "ledger"),
    ("core.gate.parts", "amplification"),
    ("core.gate.parts", "ledger"),
    ("core.gate.spec", "ledger"),
    ("frames.frame", "accessor"),
}
"""The modules that import a room above their own, for type checkers too; the set may shrink."""


def test_imports_go_downwards():
    """Of type checkers alone, too, but within a room."""
    upwards = set()
    for path in FILES:
        own, room = part(path), part(path).split(".")[0]
        below = own_parts(path)
        below |= {name for name in own_parts(path, types=True) if name.split(".")[0] != room}
        allowed = {"signatures"} | ({"show"} if own in AT_DISPLAY else set())
        higher = {name for name in below - allowed if rank(name) >= rank(own)}
        upwards |= {(dotted(path).removeprefix("pdprivacy."), name) for name in higher}
    assert upwards == UPWARDS


def test_displays_are_imported_when_something_is_displayed():
    at_once = {
        dotted(path)
        for path in FILES
        if part(path) in AT_DISPLAY
        for node in tree_of(path).body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pdprivacy.show")
    }
    assert at_once == set()


def test_no_module_is_in_a_cycle():
    graph = {dotted(path): own_modules(path) for path in FILES}
    for path in FILES:  # importing a.b runs a first, unless a is still importing b
        graph[dotted(path)] = {
            name for name in graph[dotted(path)] if not dotted(path).startswith(name + ".")
        }
    try:
        order = tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise AssertionError(f"imported in a circle: {error.args[1]}") from None
    assert set(graph) <= set(order)


def test_only_the_gate_may_know_both_data_and_noise():
    readers = {
        dotted(path)
        for path in FILES
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute) and node.attr == "draw" and ast.unparse(node.value) == "task"
    }
    assert readers == {"pdprivacy.core.gate.execute"}
    both = {dotted(path) for path in FILES if {"core.engines", "core.mechanisms"} <= own_parts(path)}
    assert both == set()


OF_RECORDS = {"Records", "records_of", "_sealed"}
"""Names by which `pdprivacy.core.gate.records` gives records."""

CURATORS = {
    "pdprivacy.amplification.omission",
    "pdprivacy.risk.data_quality",
    "pdprivacy.risk.repeated_publications",
    "pdprivacy.risk.table_risk",
    "pdprivacy.risk.table_utility",
}
"""The modules that look at exact numbers for the curator, and publish none of them."""


def opening(nodes: Iterable[ast.AST]) -> set[str]:
    """The names of records in a module: of variables, attributes and imports, and texts for ``getattr``."""
    texts = set()
    for node in nodes:
        match node:
            case (
                ast.Name(id=text) | ast.Attribute(attr=text) | ast.alias(name=text) | ast.Constant(value=text)
            ):
                texts.add(text)
    return OF_RECORDS & texts


def test_records_are_opened_in_the_folder_of_the_gate_alone():
    gate = [path for path in FILES if part(path) == "core.gate"]
    assert set().union(*(opening(nodes_of(path)) for path in gate)) == OF_RECORDS
    assert [dotted(path) for path in FILES if path not in gate and opening(nodes_of(path))] == []


@pytest.mark.parametrize(
    "line",
    [
        "from pdprivacy.core.gate.records import records_of as look",
        "records.records_of(release.facts).snapshot.iloc[0]",
        'metadata["first"] = release.facts.sealed._sealed.cells.iloc[0].to_dict()',
        'getattr(protected.sealed, "_sealed")',
    ],
)
def test_a_line_that_opens_records_is_noticed(line):
    text = (PACKAGE / "releases/publish.py").read_text(encoding="utf-8")
    assert not opening(ast.walk(ast.parse(text)))
    assert opening(ast.walk(ast.parse(f"{text}\n{line}")))


def test_exact_numbers_are_for_the_curator_and_the_gate_alone():
    gate = {"pdprivacy.core.gate.curator", "pdprivacy.core.gate.execute", "pdprivacy.core.gate.parts"}
    users = {dotted(path) for path in FILES if "pdprivacy.core.gate.curator" in own_modules(path, types=True)}
    assert users == CURATORS
    openers = {
        dotted(path)
        for path in FILES
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "records_of"
    }
    assert openers == gate


def test_the_gate_charges_before_it_reads():
    """In the order of the lines of `_made`, which `execute` calls, and of `execute_together`."""
    for function in ("_made", "execute_together"):
        (body,) = (
            node
            for node in nodes_of(PACKAGE / "core/gate/execute.py")
            if isinstance(node, ast.FunctionDef) and node.name == function
        )
        calls = {ast.unparse(node.func): node.lineno for node in ast.walk(body) if isinstance(node, ast.Call)}
        reads = [line for callee, line in calls.items() if callee.endswith(("read_and_draw", ".collect"))]
        assert reads, function
        assert calls["charge"] < min(reads), function


def test_nothing_outside_asks_which_mechanism_noise_is_from():
    """A mechanism is one class: what others need of it are its attributes and methods."""
    classes = {mechanism.__name__ for mechanism in MECHANISMS.values()}
    asking = {
        (dotted(path), name)
        for path in FILES
        if part(path) != "core.mechanisms"
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass", "type")
        for name in classes & set(re.findall(r"\w+", ast.unparse(node)))
    }
    assert asking == set()


def test_random_numbers_come_from_one_module():
    for path in FILES:
        drawn = {
            text
            for node in nodes_of(path)
            if isinstance(node, ast.Attribute)
            and (text := ast.unparse(node)).startswith(("np.random.", "random.", "secrets.", "os.urandom"))
        }
        if part(path) != "core.noise":
            assert drawn <= {"np.random.Generator"}, dotted(path)
            assert not {"random", "secrets"} & imports(path), dotted(path)


@pytest.mark.parametrize("third", THIRD_PARTIES)
def test_each_third_party_is_known_to_its_own_modules(third):
    users = {part(path) for path in FILES if third in {name.split(".")[0] for name in imports(path)}}
    assert users <= THIRD_PARTIES[third]


def test_no_other_third_party_is_imported():
    known = set(sys.stdlib_module_names) | set(THIRD_PARTIES) | {"numpy", "pdprivacy", "__future__"}
    for path in FILES:
        assert {name.split(".")[0] for name in imports(path)} <= known, dotted(path)


LATE = {
    "amplification",
    "command",
    "core.engines",
    "core.gate.execute",
    "inference",
    "ledger.postgres",
    "ledger.sqlite",
    "pipeline",
    "risk",
    "show",
    *pdprivacy.releases.MODULES,
}
"""Modules that a session with one mean does not import, except those that the mean itself needs."""


def loaded_by(code: str) -> list[set[str]]:
    """The modules that each line that a process prints names."""
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    )
    return [set(line.split()) for line in process.stdout.splitlines()]


def within(modules: set[str], parts: set[str]) -> set[str]:
    """Those of the modules that belong to parts of the package."""
    return {name for name in modules if any(f"{name}.".startswith(f"pdprivacy.{part}.") for part in parts)}


def test_a_session_imports_only_the_modules_that_it_uses():
    assert within({f"pdprivacy.{name}" for name in LATE}, LATE) == {f"pdprivacy.{name}" for name in LATE}
    assert {f"pdprivacy.{name}" for name in LATE} <= OWN
    at_first, after_mean = loaded_by("""
import sys
import pandas as pd, pdprivacy
print(*sys.modules)
domain = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=99),))
pdprivacy.protect(pd.DataFrame({"age": [31, 54]}), domain, epsilon=1).dp.mean("age", epsilon=0.5)
print(*sys.modules)
""")
    assert {name for name in at_first if name.startswith("pdprivacy")} == {"pdprivacy", "pdprivacy._version"}
    used = {"core.engines", "core.gate.execute", "releases.moments"}
    assert within(after_mean, LATE - used) == set()
    assert within(after_mean, used)


def test_importing_the_package_is_light():
    (loaded,) = loaded_by("""
import sys, pandas
before = set(sys.modules)
import pdprivacy
print(*sorted({name.split(".")[0] for name in set(sys.modules) - before}))
assert "IPython" not in sys.modules
import pdprivacy.show.plots, pdprivacy.ledger.postgres  # which need more only when they are used
assert not {"matplotlib", "psycopg"} & set(sys.modules)
""")
    assert "pdprivacy" in loaded
    heavy = {"pandera", "scipy", "pyarrow", "matplotlib", "hypothesis", "pydantic", "polars"}
    heavy |= {"narwhals", "duckdb", "dask", "pyspark"}
    assert loaded & (heavy | {"sqlite3", "psycopg", "dp_accounting", "absl"}) == set()


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").is_file()


def test_no_module_is_named_after_nothing():
    vague = {"utils", "util", "helpers", "helper", "base", "manager", "common", "misc"}
    assert vague & {path.stem for path in FILES} == set()


PUBLIC_ONLY = {
    "accounting": "core.accounting",
    "mechanism": "core.mechanisms",
    "sensitivity": "core.sensitivities",
    "suppression": "amplification.suppression",
}
"""Modules that hand on the public names of another one."""


@pytest.mark.parametrize("name", PUBLIC_ONLY)
def test_a_module_of_public_names_is_what_lives_elsewhere(name):
    public = importlib.import_module(f"pdprivacy.{name}")
    home = importlib.import_module(f"pdprivacy.{PUBLIC_ONLY[name]}")
    assert public.__all__ == home.__all__
    assert public.__doc__ == home.__doc__
    assert all(getattr(public, each) is getattr(home, each) for each in home.__all__)


TESTS = Path(__file__).parent
TOPICS = {
    ".": {
        "all_noise",
        "bad_input",
        "docs",
        "first_minutes",
        "from_pandas",
        "from_the_papers",
        "house",
        "oracle",
        "peers_benchmark",
        "planted_faults",
        "proofs",
        "public_calls",
        "typing",
    },
    "core/engines": {"ranks", "wide_integers"},
    "core/engines/other": {"spark", "steps_alike"},
    "core/gate": {"failures_after_charge", "neighbours", "one_person", "random_calls"},
    "core/mechanisms": {"bounded_accuracy", "bounded_privacy", "in_releases"},
    "core/noise": {"bounded"},
    "core/rows": {"date_steps"},
    "core/statistics": {"accuracy"},
    "declaration": {"dates"},
    "frames": {"constants", "earlier_columns", "lineage_texts", "own_hints", "refused_names", "units"},
    "ledger": {"faults", "flips", "intrusions", "kept", "migration", "power_loss"},
    "releases": {
        "aggregated_selections",
        "bounding",
        "describe",
        "joint_constraints",
        "quantile_intervals",
        "spending",
    },
    "risk": {"derived_columns"},
    "show": {"dates_shown"},
}
"""Names of test files beside those of modules, by folder: topics that cross modules."""


def topics_of_tests() -> dict[str, set[str]]:
    """The test files that are named neither after a module of their folder nor after the folder."""
    beside: dict[str, set[str]] = {}
    for path in TESTS.rglob("test_*.py"):
        folder = path.parent.relative_to(TESTS)
        tested = TESTS / folder if folder.name == "support" else PACKAGE / folder
        name = path.stem.removeprefix("test_")
        if name != folder.name and not (tested / f"{name}.py").is_file():
            beside.setdefault(folder.as_posix(), set()).add(name)
    return beside


def modules_without_tests() -> set[str]:
    """The modules that have no test file of their name."""
    modules = [path.relative_to(PACKAGE) for path in FILES if not path.stem.startswith("_")]
    return {path.stem for path in modules if not (TESTS / path.with_stem(f"test_{path.stem}")).is_file()}


def test_the_tree_of_tests_mirrors_the_package():
    """The tests of a module are in the file of its name, or in one whose first line names it in backticks.

    Other test files are about topics, or examples. What test files share is in their support.
    """
    beside = topics_of_tests()
    assert {"health_survey", "notebooks"} <= beside.pop("examples")
    assert beside == TOPICS
    files = list(TESTS.rglob("test_*.py"))
    first_lines = [path.read_text().partition("\n")[0] for path in files]
    named = {name for line in first_lines for name in re.findall(r"`(\w+)`", line)}
    assert modules_without_tests() - named == set(PUBLIC_ONLY)
    assert named <= {path.stem for path in FILES}
    imported = set().union(*(imports(path) for path in [*files, *TESTS.glob("support/*.py")]))
    assert {name for name in imported if re.match(r"tests\.(.*\.test_|benchmarks)", name)} == set()


def test_fast_tests_and_long_ones_of_the_oldest_dependencies_are_there():
    assert {path.stem for path in TESTS.rglob("*")} >= OLDEST_TOO | FAST


@pytest.mark.parametrize("number", [None, 5, 12])
@pytest.mark.parametrize("other", ["text"])
def test_parameters_that_a_test_keeps_cover_its_values(number, other, request):
    """Ten of 4 times 10 parameters have every value of both."""

    class Item:
        def __init__(self, *ids):
            self.callspec = SimpleNamespace(_idlist=ids)

    items = [Item(a, b) for a in "wxyz" for b in "0123456789"]
    chosen = [item.callspec._idlist for item in covering(items, number)]
    assert len(chosen) == (number or 10)
    assert [len(set(ids)) for ids in zip(*chosen, strict=True)] == [4, min(10, len(chosen))]
    assert request.node.callspec._idlist == [other, str(number)]  # one of each decorator


def test_the_loops_of_the_makefile_are_those_of_the_guide_and_of_the_check_of_a_checkout():
    makefile, guide, check = (
        (TESTS.parent / name).read_text() for name in ("Makefile", "CONTRIBUTING.md", ".ci/run")
    )
    commands = re.findall(r"^\t(.+)$", makefile, re.MULTILINE)
    assert [command for command in commands if f"`{command}`" not in guide] == []
    assert [command for command in commands if command not in check] == ["pytest -m fast"]


def test_names_are_unique():
    """No two modules and no two public classes share a name."""
    stems = Counter(path.stem for path in FILES if path.stem not in ("__init__", "__main__"))
    classes = Counter(
        node.name
        for path in FILES
        for node in nodes_of(path)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    shared = {name: count for names in (stems, classes) for name, count in names.items() if count > 1}
    assert shared == {}


def test_modules_stay_short():
    lines = {dotted(path): path.read_text().count("\n") for path in FILES}
    assert {name: count for name, count in lines.items() if count > 800} == {}


def modules():
    loaded = [pdprivacy]
    for info in pkgutil.walk_packages([str(PACKAGE)], "pdprivacy."):
        try:
            loaded.append(importlib.import_module(info.name))
        except pdprivacy.errors.MissingExtraError:
            assert info.name in {"pdprivacy.polars", "pdprivacy.dask", "pdprivacy.spark"}
    return loaded


MODULES = modules()


def protocol_members() -> set[str]:
    """The members of protocols, which the protocol documents and its classes need not."""
    classes = {
        thing
        for module in MODULES
        for thing in vars(module).values()
        if inspect.isclass(thing) and thing.__module__.startswith("pdprivacy.")
    }
    protocols = [thing for thing in classes if getattr(thing, "_is_protocol", False)]
    return {name for protocol in protocols for name in vars(protocol) if not name.startswith("_")}


PROTOCOL_MEMBERS = protocol_members()


def undocumented(module) -> Iterator[str]:
    """The module and those of its public names, or of names without an underscore, that have no docstring."""
    if not module.__name__.endswith("_version") and not (module.__doc__ or "").strip():
        yield module.__name__
    own = [
        name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__
    ]
    for name in getattr(module, "__all__", [name for name in own if not name.startswith("_")]):
        value = getattr(module, name)  # __all__ lists nothing that is not there
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        if not (value.__doc__ or "").strip():
            yield f"{module.__name__}.{name}"
        if not inspect.isclass(value) or not value.__module__.startswith("pdprivacy"):
            continue
        for attribute, member in vars(value).items():
            if attribute.startswith("_") or attribute in PROTOCOL_MEMBERS:
                continue
            function = member.fget if isinstance(member, property) else member
            if isinstance(function, staticmethod | classmethod):
                function = function.__func__
            is_own = inspect.isfunction(function) and function.__qualname__.split(".")[0] == value.__name__
            if is_own and not (inspect.getdoc(function) or "").strip():
                yield f"{module.__name__}.{name}.{attribute}"


def test_public_names_exist_once():
    for module in MODULES:
        names = list(getattr(module, "__all__", []))
        assert len(set(names)) == len(names), module.__name__


# Public names whose examples are elsewhere, and why.
WITHOUT_EXAMPLE = {
    "pdprivacy.load_ipython_extension": "needs a notebook",
    "pdprivacy.unload_ipython_extension": "needs a notebook",
    "pdprivacy.accounting.pld_epsilon": "needs an extra",
    "pdprivacy.accounting.to_dp_events": "needs an extra",
    "pdprivacy.accounting.Rule": "is what `rule` makes",
    "DataFrameDP.plot": "needs an extra",
    "DataFrameDP.to_excel": "needs an extra",
    "ProtectedDP.plot": "needs an extra",
}


def public_things() -> Iterator[tuple[str, object]]:
    """Functions and classes that users are offered, and methods of the accessors."""
    public = [
        pdprivacy,
        *(value for name in pdprivacy.__all__ if inspect.ismodule(value := getattr(pdprivacy, name))),
    ]
    for module in public:
        for name in module.__all__:
            value = getattr(module, name)
            # errors, protocols and named tuples are made by functions, which have examples
            exempt = inspect.isclass(value) and issubclass(value, Exception | tuple)
            exempt = exempt or getattr(value, "_is_protocol", False)
            if (inspect.isclass(value) or inspect.isfunction(value)) and not exempt:
                yield f"{module.__name__}.{name}", value
    for accessor in (accessors.DataFrameDP, accessors.ProtectedDP, accessors.PlanDP):
        yield accessor.__name__, accessor
        if accessor is not accessors.PlanDP:
            for name in dir(accessor):
                if not name.startswith("_") and inspect.isfunction(value := getattr(accessor, name)):
                    yield f"{accessor.__name__}.{name}", value


def test_public_names_have_an_example():
    """In their own docstring; of a class, also in that of its module."""
    missing = set()
    for name, value in public_things():
        texts = [inspect.getdoc(value) or ""]
        if inspect.isclass(value):
            texts.append(sys.modules[name.rpartition(".")[0] or value.__module__].__doc__ or "")
        short = name.rpartition(".")[2]
        lines = [line for line in texts[0].splitlines() if line.startswith(">>>")]
        lines += [
            line for text in texts[1:] for line in text.splitlines() if f"{short}(" in line and ">>>" in line
        ]
        if not lines:
            missing.add(name)
    assert missing == set(WITHOUT_EXAMPLE)


VAGUE = {"found", "one", "asked", "held", "place", "told"}


def bound_names(path: Path) -> Iterator[str]:
    """The parameters and variables of a module."""
    for node in nodes_of(path):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_names_say_what_they_hold():
    """The field ``found`` of the metadata is named as its entry in ``attrs["dp"]``."""
    modules = [*FILES, *TESTS.rglob("*.py")]
    vague = {path: VAGUE.intersection(bound_names(path)) for path in modules}
    vague[PACKAGE / "releases/metadata.py"] -= {"found"}
    assert [str(path) for path, names in vague.items() if names] == []


# ------------------------------------------------------------------ said once

# Who reads or writes what `attrs` say. The view of a release is `metadata.read`; the others mark what they
# make, recognize a mark, or take over a whole entry.
MARKS = {
    "accessor",
    "frames.answers",
    "pipeline.keeper",
    "pipeline.shapes",
    "pipeline.storage",
    "releases.excerpts",
    "releases.metadata",
    "risk.data_quality",
    "risk.table_risk",
    "show.pages",
    "show.report",
}
ESCAPES = {"text.markup"}
ROUNDS_OUTWARDS = {"declaration.intervals", "exact", "risk.compositions"}


DECIMAL_CONTEXTS = {"exact"}
SETS_FROZEN_FIELDS = {"types"}


def modules_with(matches: Callable[[ast.AST], bool]) -> set[str]:
    return {
        dotted(path).removeprefix("pdprivacy.")
        for path in FILES
        if any(matches(node) for node in nodes_of(path))
    }


def is_of_attrs(node: ast.AST) -> bool:
    """Whether it is ``frame.attrs[...]`` or ``frame.attrs.get(...)``."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "attrs"
    return isinstance(node, ast.Attribute) and ast.unparse(node).endswith(".attrs.get")


def called(*names: str) -> Callable[[ast.AST], bool]:
    """Whether a function of one of these names is called."""
    return lambda node: isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in names


@pytest.mark.parametrize(
    ("matches", "known"),
    [
        (is_of_attrs, MARKS),
        (lambda node: isinstance(node, ast.Attribute) and ast.unparse(node) == "html.escape", ESCAPES),
        (called("nextafter"), ROUNDS_OUTWARDS),
        (called("Context"), DECIMAL_CONTEXTS),
        (
            lambda node: isinstance(node, ast.Attribute) and ast.unparse(node) == "object.__setattr__",
            SETS_FROZEN_FIELDS,
        ),
    ],
    ids=[
        "marks of frames",
        "escapes of HTML",
        "directed roundings",
        "contexts of decimals",
        "fields of frozen values",
    ],
)
def test_phrases_with_one_home_are_in_no_other_module(matches, known):
    """These sets may shrink: a module that leaves one does not come back."""
    assert modules_with(matches) - known == set()


def formats_a_number(node: ast.AST) -> bool:
    """Whether a number is formatted as by ``f"{share:.2f}"`` or ``f"{share:g}"``."""
    if not isinstance(node, ast.FormattedValue) or node.format_spec is None:
        return False
    return ast.unparse(node.format_spec).rstrip("'\"")[-1:] in "efgEFG%"


def test_numbers_are_formatted_by_one_module():
    outside = {name for name in modules_with(formats_a_number) if name.startswith(("show.", "text."))}
    assert outside == {"text.numbers"}


CLASSES = {
    name: value
    for name in pdprivacy.mechanism.__all__
    if inspect.isclass(value := getattr(pdprivacy.mechanism, name))
    and not getattr(value, "_is_protocol", False)
    if name != "Bounds"
}


def test_a_mechanism_is_known_to_its_own_file():
    """No ladder of ``isinstance`` over mechanisms."""

    def asks(node: ast.AST) -> bool:
        if not called("isinstance")(node):
            return False
        return any(isinstance(child, ast.Name) and child.id in CLASSES for child in ast.walk(node))

    assert {name for name in modules_with(asks) if not name.startswith("core.mechanisms")} == set()


# They draw sums of noise by its name, and release weighted counts (no integers).
COMPARES_MECHANISMS = {"core.noise.bits", "releases.tables"}


def test_names_of_mechanisms_are_compared_by_few_modules():
    """The set may shrink: a module that leaves it does not come back."""

    def compares(node: ast.AST) -> bool:
        inner = ast.walk(node) if isinstance(node, ast.Compare) else ()
        return any(isinstance(child, ast.Constant) and child.value in MECHANISMS for child in inner)

    outside = {name for name in modules_with(compares) if not name.startswith("core.mechanisms")}
    assert outside - COMPARES_MECHANISMS == set()


def test_an_additive_mechanism_has_a_file_of_its_own():
    files = [mechanism.__module__ for mechanism in CLASSES.values() if hasattr(mechanism, "draw")]
    assert len(files) > 5
    assert len(set(files)) == len(files)


def test_public_names_are_documented():
    assert [name for module in MODULES for name in undocumented(module)] == []


def test_errors_are_one_tree_and_drawn_in_full():
    from pdprivacy import errors

    assert errors.__doc__ is not None
    for name in errors.__all__:
        error = getattr(errors, name)
        assert issubclass(error, errors.PrivacyError | UserWarning), name
        assert name in errors.__doc__, name
    raised = {
        ast.unparse(node.exc.func)
        for path in FILES
        for node in nodes_of(path)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
    }
    named = {name for name in raised if name.endswith(("Error", "Exceeded", "Exception")) and "." not in name}
    # what Python raises for an unknown attribute or keyword, and a system for a file
    assert named - set(errors.__all__) <= {"AttributeError", "TypeError", "OSError", "FileExistsError"}


READS_TEXTS = {
    "pdprivacy": "shows the whole of it",
    "command.declare": "of the parser of pandas",
    "hints.suggestions": "of Python, on a call that does not fit a signature",
}


def reads_texts(path: Path) -> bool:
    """Whether a file takes ``str(error)`` or ``error.args`` of an error that it catches or is given."""
    names = {node.name for node in nodes_of(path) if isinstance(node, ast.ExceptHandler)}
    given = [node for node in nodes_of(path) if isinstance(node, ast.arg) and node.annotation is not None]
    names |= {
        argument.arg
        for argument in given
        if ast.unparse(argument.annotation).endswith(("Error", "Exception"))
    }
    texts = {text for name in names for text in (f"str({name})", f"repr({name})", f"{name}.args")}
    return any(
        isinstance(node, ast.Call | ast.Attribute) and ast.unparse(node) in texts for node in nodes_of(path)
    )


def test_nothing_takes_an_error_apart():
    """`PrivacyError` has its message and its hint; f-strings show the whole."""
    readers = {dotted(path).removeprefix("pdprivacy.") for path in FILES if reads_texts(path)}
    assert readers == set(READS_TEXTS)


def test_the_tests_of_a_file_stay_together(request):
    """What is made once per file is made once: the group is part of the name by which tests are given out."""
    if not hasattr(request.config, "workerinput"):
        pytest.skip("there is one process")
    assert request.node.nodeid.endswith("@tests/test_house.py")
