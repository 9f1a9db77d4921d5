"""The pages of `docs/proofs`: the claims that the guarantee rests on, with the code and the tests of each.

``python -m tests.support.proofs`` says which pages are out of date. ``--write`` renews the digests of the
functions that the pages cover: to be called once each of these pages was read again beside the changed code.

A digest is that of the syntax tree: comments, docstrings, line breaks, annotations of arguments and the words
of errors do not count. It is the same on every version of Python.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import hashlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pdprivacy

__all__ = ["FOLDER", "SECTIONS", "WITHOUT_A_PAGE", "Page", "Row", "digest", "index", "known_tests", "pages"]

PACKAGE = Path(pdprivacy.__file__).parent
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "proofs"
SECTIONS = ("Claim", "Algorithm", "Proof", "Code", "Tests", "Assumed")
"""The sections of each page, in this order."""

WITHOUT_A_PAGE: tuple[str, ...] = ()
"""The releases, mechanisms and row steps whose claim is not written down yet."""

CODE = re.compile(r"^\| `(pdprivacy[\w.]+)` \| `([0-9a-f]*)` \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
LEFT_OUT = {"ctx", "kind", "type_comment", "type_params", "returns", "annotation"}
"""Fields that say nothing of what runs, or that not every version of Python has."""


# ---------------------------------------------------------------- digests


def canonical(node: object) -> str:
    """Return the text of a syntax tree that is the same on every version of Python."""
    if isinstance(node, list):
        parts = [canonical(item) for item in node if not is_text(item)]
        return f"[{','.join(parts)}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        return f"Raise({canonical(node.exc.func)})"
    if isinstance(node, ast.JoinedStr):  # Python 3.12.1 ends some with an empty text
        parts = [
            value for value in node.values if not (isinstance(value, ast.Constant) and value.value == "")
        ]
        return f"JoinedStr(values={canonical(parts)})"
    left_out = LEFT_OUT - ({"annotation"} if isinstance(node, ast.AnnAssign) else set())
    fields = [
        f"{name}={canonical(value)}"
        for name, value in ast.iter_fields(node)
        if name not in left_out and value is not None and value != []
    ]
    return f"{type(node).__name__}({','.join(fields)})"


def is_text(node: object) -> bool:
    """Return whether a statement is a text alone, such as a docstring."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def definitions(name: str) -> list[ast.stmt]:
    """Return the definitions of a function, class, method or constant of the package; LookupError without."""
    _, *parts = name.split(".")
    for length in range(len(parts) - 1, -1, -1):
        path = PACKAGE.joinpath(*parts[:length])
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if file.is_file():
            nodes: list[ast.stmt] = [*tree_of(file).body]
            for position, part in enumerate(parts[length:]):
                if position:
                    nodes = [child for node in nodes if isinstance(node, ast.ClassDef) for child in node.body]
                nodes = [node for node in nodes if part in names_of(node)]
            if nodes and length < len(parts):
                return nodes
    raise LookupError(f"the package has no {name}")


def names_of(node: ast.stmt) -> set[str]:
    """Return the names that a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def digest(name: str) -> str:
    """Return the digest of all definitions of a name of the package."""
    text = "\n".join(canonical(node) for node in definitions(name))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


# ---------------------------------------------------------------- pages


@dataclass(frozen=True)
class Page:
    """A page: its sections by name, the digest of each function that it covers, and its tests."""

    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def sections(self) -> dict[str, str]:
        """The text of each section, in order."""
        _, *parts = re.split(r"^## ", self.text, flags=re.MULTILINE)
        return {
            heading.strip(): body.strip() for heading, _, body in (part.partition("\n") for part in parts)
        }

    @property
    def code(self) -> dict[str, str]:
        """The digest of each function, as it is written."""
        return dict(CODE.findall(self.sections.get("Code", "")))

    @property
    def tests(self) -> list[tuple[str, str]]:
        """The file and the name of each test."""
        return TEST.findall(self.sections.get("Tests", ""))

    def out_of_date(self) -> list[str]:
        """Return the functions that have changed or are gone, and the tests that are gone."""
        changes = []
        for name, written in self.code.items():
            try:
                if digest(name) != written:
                    changes.append(f"{self.path.name}: {name} has changed")
            except LookupError as error:
                changes.append(f"{self.path.name}: {error}")
        gone = [f"{file}::{test}" for file, test in self.tests if test not in known_tests(file)]
        return changes + [f"{self.path.name}: there is no {test}" for test in gone]

    def renew(self) -> None:
        """Write the digests of the functions as they are; those of functions that are gone stay."""

        def renewed(match: re.Match[str]) -> str:
            with contextlib.suppress(LookupError):
                return f"| `{match[1]}` | `{digest(match[1])}` |"
            return match[0]

        self.path.write_text(CODE.sub(renewed, self.text), encoding="utf-8")


@dataclass(frozen=True)
class Row:
    """A row of the index: a release, mechanism or row step, and what it rests on."""

    name: str
    pages: tuple[str, ...]
    functions: tuple[str, ...]
    tests: tuple[tuple[str, str], ...]


def pages() -> list[Page]:
    """Return all pages but the index."""
    return [Page(path) for path in sorted(FOLDER.glob("*.md")) if path.name != "index.md"]


def index() -> dict[str, list[Row]]:
    """Return the rows of each table of the index, by its heading."""
    return {heading: list(rows_of(body)) for heading, body in Page(FOLDER / "index.md").sections.items()}


def rows_of(text: str) -> Iterator[Row]:
    """Yield the rows of a table: name, lemmas, functions, tests."""
    for line in re.findall(r"^\| `.*\|$", text, re.MULTILINE):
        name, lemmas, functions, tests = line.strip("| ").split(" | ")
        yield Row(
            name.strip("`"),
            tuple(dict.fromkeys(re.findall(r"\((\w+\.md)[#)]", lemmas))),
            tuple(re.findall(r"`(pdprivacy[\w.]+)`", functions)),
            tuple(TEST.findall(tests)),
        )


@functools.cache
def known_tests(file: str) -> frozenset[str]:
    """Return the names of the tests of a file."""
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    return frozenset(node.name for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef))


def main() -> int:
    """Renew the digests, or say which pages are out of date; after renewing, what is left to mend by hand."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="renew the digests in docs/proofs")
    if parser.parse_args().write:
        for page in pages():
            page.renew()
    changes = [change for page in pages() for change in page.out_of_date()]
    print("\n".join(changes) or "docs/proofs is up to date.")
    return 1 if changes else 0


if __name__ == "__main__":
    sys.exit(main())
