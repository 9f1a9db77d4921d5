"""Faults of one token in the package, and whether the tests that belong to them fail.

    nice python tests/benchmarks/mutation.py --modules core --sample 200

Each mutant changes one place of one module: an operator, a comparison, a constant by 1, a truth value, a
condition, a sign, min for max, or the order of the first two arguments. Text, annotations and what is raised
stay as they are. The sample is drawn with a seed, so that the same call plants the same faults.

Mutants are made in a copy of the tree. For each of them one process runs the test file of the module (the one
that `docs/trust.md` lists), the examples in its docstrings, the test files that import it, those of its
folder, and `GENERAL`; it stops at the first failure. A mutant that the tests do not finish with in time
counts as caught. First, all of these tests must pass without a fault.

Printed are the caught share and the survivors. A survivor is equivalent (no call can tell it from the code)
or lacks a test.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode
from random import Random

ROOT = Path(__file__).parents[2]
GENERAL = ("tests/test_oracle.py", "tests/test_exact.py", "tests/core/gate/test_execute.py")
"""The tests of the whole package that run for every mutant, last."""

NEAREST = 6
"""The largest number of further test files that import a module, the shortest first."""

LEFT_OUT = shutil.ignore_patterns(
    ".git", "__pycache__", ".*_cache", ".hypothesis", "*.pyc", "build", "_build", "node_modules"
)

BINARY = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "*"), ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.BitXor: ("^", "&"),
}  # fmt: skip
COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
NAMES = {
    "min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum",
    "floor": "ceil", "ceil": "floor", "lower": "upper", "upper": "lower", "low": "high", "high": "low",
    "argmin": "argmax", "argmax": "argmin",
}  # fmt: skip
"""Names of functions and attributes, and those that stand in their place."""


@dataclass(frozen=True)
class Mutant:
    """The bytes of a module from ``start`` to ``end`` that are replaced."""

    path: str
    line: int
    start: int
    end: int
    text: str

    def applied(self, code: bytes) -> bytes:
        """Return the module with the fault."""
        return code[: self.start] + self.text.encode() + code[self.end :]

    def difference(self, code: bytes) -> str:
        """Return the lines that change, without and with the fault."""
        first = code.rfind(b"\n", 0, self.start) + 1
        last = code.find(b"\n", self.end)
        after = self.applied(code)
        lines = code[first:last].decode(), after[first : last + len(after) - len(code)].decode()
        return "\n".join(
            f"  {sign} {line}" for sign, text in zip("-+", lines, strict=True) for line in text.split("\n")
        )


class Sites(ast.NodeVisitor):
    """All mutants of a module."""

    def __init__(self, path: str, code: bytes) -> None:
        self.path, self.code, self.mutants = path, code, list[Mutant]()
        self.lines = [0]
        for line in code.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.visit(ast.parse(code))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return where a node begins and ends, in bytes."""
        begin, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        first, last = (self.lines[line - 1] + column for line, column in (begin, end))
        return first, last

    def source(self, node: ast.AST) -> str:
        """Return the text of a node."""
        start, end = self.span(node)
        return self.code[start:end].decode()

    def replace(self, node: ast.AST, start: int, end: int, text: str) -> None:
        """Add the mutant that replaces these bytes."""
        self.mutants.append(Mutant(self.path, node.lineno, start, end, text))  # type: ignore[attr-defined]

    def between(self, node: ast.AST, left: ast.AST, right: ast.AST, old: str, new: str) -> None:
        """Replace the operator between two nodes; comments and brackets may stand there, too."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = re.sub(rb"#[^\n]*", lambda comment: b"#" * len(comment[0]), self.code[start:end])
        pattern = rb"\s+".join(map(re.escape, old.encode().split()))
        operator = re.search(pattern, gap)
        assert operator is not None, (self.path, node.lineno)  # type: ignore[attr-defined]
        self.replace(node, start + operator.start(), start + operator.end(), new)

    def negate(self, condition: ast.expr) -> None:
        """Replace a condition by its negation."""
        start, end = self.span(condition)
        self.replace(condition, start, end, f"(not ({self.source(condition)}))")

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Another operator."""
        if type(node.op) in BINARY:
            self.between(node, node.left, node.right, *BINARY[type(node.op)])
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Another operator."""
        if type(node.op) in BINARY:
            old, new = BINARY[type(node.op)]
            self.between(node, node.target, node.value, f"{old}=", f"{new}=")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Another comparison."""
        for left, operator, right in zip(
            [node.left, *node.comparators], node.ops, node.comparators, strict=False
        ):
            self.between(node, left, right, *COMPARISONS[type(operator)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """``and`` for ``or``."""
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        self.between(node, node.values[0], node.values[1], old, new)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """No sign, and no negation."""
        if isinstance(node.op, ast.USub | ast.Not | ast.Invert):
            start, _ = self.span(node)
            self.replace(node, start, start + (3 if isinstance(node.op, ast.Not) else 1), "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """A number that is 1 larger or smaller, the other truth value."""
        start, end = self.span(node)
        if isinstance(node.value, bool):
            self.replace(node, start, end, str(not node.value))
        elif isinstance(node.value, int | float):
            for change in (1, -1):
                self.replace(node, start, end, f"({node.value + change})")

    def visit_Call(self, node: ast.Call) -> None:
        """The first two arguments in the other order."""
        plain = len(node.args) > 1 and not any(isinstance(arg, ast.Starred) for arg in node.args[:2])
        if plain and self.source(node.args[0]) != self.source(node.args[1]):
            start, end = self.span(node.args[0])[0], self.span(node.args[1])[1]
            gap = self.code[self.span(node.args[0])[1] : self.span(node.args[1])[0]].decode()
            if "(" not in gap and ")" not in gap:
                self.replace(node, start, end, f"{self.source(node.args[1])}{gap}{self.source(node.args[0])}")
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        """``max`` for ``min``."""
        if isinstance(node.ctx, ast.Load) and NAMES.get(node.id, node.id) != node.id:
            self.replace(node, *self.span(node), NAMES[node.id])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """``math.ceil`` for ``math.floor``, ``part.upper`` for ``part.lower``."""
        if isinstance(node.ctx, ast.Load) and node.attr in NAMES:
            end = self.span(node)[1]
            self.replace(node, end - len(node.attr), end, NAMES[node.attr])
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """The other branch."""
        if self.source(node.test) != "TYPE_CHECKING":
            self.negate(node.test)
            self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        """The other condition."""
        self.negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """The other branch."""
        self.negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """The other elements."""
        for condition in node.ifs:
            self.negate(condition)
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """The body; no decorators."""
        for statement in node.body:
            self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Defaults and the body; no annotations and no decorators."""
        for part in (*node.args.defaults, *(d for d in node.args.kw_defaults if d), *node.body):
            self.visit(part)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """The value; not the annotation."""
        if node.value is not None and "TypeAlias" not in ast.unparse(node.annotation):
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Text stays as it is."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """What is raised stays as it is."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """Assertions are for type checkers."""


def sites(modules: str) -> Iterator[Mutant]:
    """Yield all mutants of a module or folder of the package."""
    package = ROOT / "pdprivacy"
    chosen = package / modules
    files = [chosen] if chosen.suffix == ".py" else sorted(chosen.rglob("*.py"))
    for file in files:
        yield from Sites(file.relative_to(ROOT).as_posix(), file.read_bytes()).mutants


def tests_for(path: str) -> list[str]:
    """Return the test files of a module, those first that are likeliest to fail and short."""
    from tests.support.trusted import tests_of

    file = ROOT / path
    listed = [f"tests/{name}" for name in re.findall(r"`([^`]+)`", tests_of(file))]
    dotted = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    room, _, stem = dotted.rpartition(".")
    naming = re.compile(
        rf"{re.escape(dotted)}\b|from {re.escape(room)} import [^\n]*\b{stem}\b|\b{stem}\.py\b"
    )
    files = sorted((ROOT / "tests").rglob("test_*.py"), key=lambda test: test.stat().st_size)
    importing = [
        test.relative_to(ROOT).as_posix() for test in files if naming.search(test.read_text("utf-8"))
    ]
    folder = ROOT / "tests" / file.parent.relative_to(ROOT / "pdprivacy")
    near = [test.relative_to(ROOT).as_posix() for test in files if test.parent == folder]
    chosen = [*listed, path, *importing[:NEAREST], *near, *GENERAL]
    return list(dict.fromkeys(name for name in chosen if not name.startswith("tests/examples/")))


def run(copy: Path, tests: list[str], limit: float) -> str:
    """Run tests in the copy; return the first that fails, "time" or "" where all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command,
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "time"
    if process.returncode == 0:
        return ""
    failure = re.search(r"^_+ (.+?) _+$", output, re.MULTILINE)
    return failure[1] if failure else f"exit {process.returncode}"


def copied(folder: Path) -> Path:
    """Return a copy of the tree, compiled so that a changed module is compiled anew whatever its time."""
    copy = folder / "tree"
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
    compileall.compile_dir(copy / "pdprivacy", quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    code = "import pdprivacy; print(pdprivacy.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    imported = subprocess.check_output([sys.executable, "-c", code], cwd=copy, env=environment, text=True)
    assert Path(imported.strip()).is_relative_to(copy.resolve()), imported
    return copy


def main() -> None:
    """Plant the faults and print what the tests say."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--modules", default="core", help="a folder or file of the package")
    parser.add_argument("--sample", type=int, default=200, help="number of faults")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--skip", type=int, default=0, help="number of the sample's faults to leave out")
    parser.add_argument("--limit", type=float, default=300, help="seconds for the tests of one fault")
    parser.add_argument("--list", action="store_true", help="print the faults, and run nothing")
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests without a fault")
    options = parser.parse_args()
    every = list(sites(options.modules))
    sample = Random(options.seed).sample(every, min(options.sample, len(every)))[options.skip :]
    print(f"{len(sample)} of {len(every)} faults of {options.modules}, seed {options.seed}", flush=True)
    if options.list:
        for mutant in sample:
            print(f"{mutant.path}:{mutant.line}\n{mutant.difference((ROOT / mutant.path).read_bytes())}")
        return
    with tempfile.TemporaryDirectory() as folder:
        copy, survivors = copied(Path(folder)), []
        tests = {mutant.path: tests_for(mutant.path) for mutant in sample}
        if not options.unchecked:
            every_test = list(dict.fromkeys(name for names in tests.values() for name in names))
            if failure := run(copy, every_test, 3600):
                sys.exit(f"Without a fault, the tests fail: {failure}")
        for number, mutant in enumerate(sample, 1):
            file, start = copy / mutant.path, time.monotonic()
            code = file.read_bytes()
            file.write_bytes(mutant.applied(code))
            failure = run(copy, tests[mutant.path], options.limit)
            file.write_bytes(code)
            seconds = time.monotonic() - start
            outcome = f"caught by {failure}" if failure else "SURVIVED"
            print(f"{number:4} {mutant.path}:{mutant.line} {seconds:.0f} s {outcome}", flush=True)
            if not failure:
                survivors.append(mutant)
                print(mutant.difference(code), flush=True)
        share = 1 - len(survivors) / max(len(sample), 1)
        print(f"\ncaught: {len(sample) - len(survivors)} of {len(sample)} ({share:.0%}); survivors:")
        for mutant in survivors:
            print(f"{mutant.path}:{mutant.line}\n{mutant.difference((copy / mutant.path).read_bytes())}")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
