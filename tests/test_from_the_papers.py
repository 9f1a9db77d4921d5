"""The page "From the papers to the package": all items of the papers have rows, and what it names exists."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import typing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain, mechanism
from pdprivacy.accessor import DataFrameDP, PlanDP, ProtectedDP, SeriesDP
from pdprivacy.core.gate import request
from pdprivacy.releases.batches import Batch

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "from_the_papers.md"

# The numbered items of each paper, in the words of the page. Lettered equations are those of supplements.
ITEMS = {
    "Disclosure risk from homogeneity attack": (
        "Definitions 1 to 11; Theorems 1, 3; Corollaries 2, 4; Problem 1; Scenarios 1 to 8; Tables 1, 2; "
        "Figures 1 to 4, S1; (1) to (30); (S1) to (S10)"
    ),
    "Bounding constraints": (
        "Definitions 1 to 3; Propositions 1 to 3, A.1; Lemma A.1; Remarks 1 to 3; Table 1; Figures 1 to 7; "
        "(1) to (10); Appendices A, B, C"
    ),
    "Supplement: sensitivities": "Sections 1 to 6; (1) to (5); Figures S1, S2",
    "Omitting records": (
        "Definitions 2.1, B.5; Theorems 5.1, 5.3, 5.4, B.6, B.21, B.23; Example 5.2; Tables 1, 2; "
        "Figures 1 to 75; Propositions B.1 to B.3, B.8 to B.10, B.12, B.19, B.20; Remarks B.4, B.7, "
        "B.11, B.15, B.22, B.24; Corollary B.13; Lemmas B.14, B.16 to B.18; (B.1) to (B.8)"
    ),
}
WORDS = (
    "definition", "example", "figure", "lemma", "problem", "proposition", "remark", "scenario", "section",
    "table", "theorem",
)  # fmt: skip
KINDS = {
    "appendices": "appendix",
    "appendix": "appendix",
    "corollaries": "corollary",
    "corollary": "corollary",
    **{word + plural: word for word in WORDS for plural in ("", "s")},
}
NUMBER = r"(?:[A-Z]\.?)?\d+(?:\.\d+)?|[A-Z]\b"


def spread(first: str, last: str) -> list[str]:
    """The numbers from ``first`` to ``last``, which differ in their last part alone."""
    prefix, start = re.fullmatch(r"(.*?)(\d+)", first).groups()
    assert last.startswith(prefix)
    return [f"{prefix}{number}" for number in range(int(start), int(last.removeprefix(prefix)) + 1)]


def items(text: str) -> set[tuple[str, str]]:
    """The items of a list such as "Definitions 4, 5; Figures 8 to 10; (1) to (3)"."""
    listed = set()
    for part in text.split(";"):
        kind, _, numbers = part.strip().partition(" ")
        if kind.startswith("("):
            kind, numbers = "equation", part.replace("(", "").replace(")", "")
        if kind.lower() not in {*KINDS, "equation"}:
            continue
        for first, last in re.findall(rf"({NUMBER})(?: to ({NUMBER}))?", numbers):
            every = spread(first, last) if last else [first]
            listed |= {(KINDS.get(kind.lower(), kind), number) for number in every}
    return listed


class Row(typing.NamedTuple):
    items: str
    here: str
    tests: str


@functools.cache
def rows(section: str) -> list[Row]:
    (body,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    lines = [line for line in body.splitlines() if line.startswith("|")][2:]
    return [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]


EVERY = [row for section in ITEMS for row in rows(section)]
IDS = [row.items for row in EVERY]


@pytest.mark.parametrize("section", ITEMS)
def test_every_numbered_item_has_a_row(section):
    named = set().union(*(items(row.items.partition(":")[0]) for row in rows(section)))
    sections = (
        {item for item in named if item[0] == "section"} if section != "Supplement: sensitivities" else set()
    )
    assert named - sections == items(ITEMS[section])


def test_lists_of_items_are_read_as_they_are_meant():
    assert items("Figures 8, 9, 12 to 14") == {("figure", number) for number in ("8", "9", "12", "13", "14")}
    assert items("Remarks B.9 to B.11; (S1), (S3)") == {
        ("remark", "B.9"), ("remark", "B.10"), ("remark", "B.11"), ("equation", "S1"), ("equation", "S3"),
    }  # fmt: skip
    assert items("Appendix B; Adult data") == {("appendix", "B")}


@pytest.mark.parametrize("row", EVERY, ids=IDS)
def test_each_item_has_a_call_with_a_test_or_a_reason(row):
    code, reason = re.findall(r"`([^`]+)`", row.here), re.search(r"Not here\b[^:]*:? [\w ,]{15,}", row.here)
    assert code or reason
    assert row.tests or reason


ROOTS = {
    "private.dp.plan": PlanDP,
    "private.dp": ProtectedDP,
    "private": pdprivacy.ProtectedFrame,
    "frame.dp": DataFrameDP,
    "frame": pd.DataFrame,
    "released.dp": SeriesDP,
    "batch": Batch,
    "pdprivacy": pdprivacy,
}


def resolved(name: str) -> Any:
    """The object of a dotted name, as the page writes it."""
    root = next((root for root in ROOTS if name.startswith(f"{root}.")), "")
    named: Any = ROOTS.get(root, pdprivacy)
    for part in name.removeprefix(f"{root}.").split("."):
        named = getattr(named, part)
    return named


NAMES = vars(request) | vars(mechanism)  # of annotations that methods take from elsewhere


def allowed(function: Any, name: str) -> tuple[str, ...]:
    """The words that an argument takes by its annotation; none where it is no choice among words."""
    annotation = inspect.signature(function).parameters[name].annotation
    made = function.__init__ if inspect.isclass(function) else function
    try:
        hint = eval(annotation, NAMES | inspect.unwrap(made).__globals__)
    except (NameError, SyntaxError, TypeError):  # of a name that only type checkers import
        return ()
    options = [value for option in (hint, *typing.get_args(hint)) for value in typing.get_args(option)]
    return tuple(value for value in options if isinstance(value, str))


def calls_of(code: str) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(code, mode="eval")) if isinstance(node, ast.Call)]


SPANS = sorted({code for row in EVERY for code in re.findall(r"`([^`]+)`", row.here)})
LONE = re.compile(r"\w+=.*")  # an argument by itself, of a call of the same row


def test_every_call_and_example_exists():
    for code in SPANS:
        if code.startswith(("examples/", "tests/")):
            assert (ROOT / code).is_file(), code
        elif not LONE.fullmatch(code) and re.fullmatch(r"[\w.]+", code):
            resolved(code) if "." in code else None
        for call in [] if LONE.fullmatch(code) or code.startswith("examples/") else calls_of(code):
            if isinstance(call.func, ast.Attribute) and not isinstance(call.func.value, ast.Call):
                check(call, code)


def check(call: ast.Call, code: str) -> None:
    name = ast.unparse(call.func)
    function = resolved(name)
    assert callable(function), code
    parameters = inspect.signature(function).parameters
    for keyword in call.keywords:
        assert keyword.arg in parameters, f"{code}: {keyword.arg}"
        options = allowed(function, keyword.arg)
        if options and isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str):
            assert keyword.value.value in options, f"{code}: {options}"


def test_arguments_by_themselves_belong_to_a_call_of_their_row():
    for row in EVERY:
        spans = re.findall(r"`([^`]+)`", row.here)
        calls = [
            call for code in spans if not LONE.fullmatch(code) and "(" in code for call in calls_of(code)
        ]
        known = {
            name
            for call in calls
            if isinstance(call.func, ast.Attribute) and not isinstance(call.func.value, ast.Call)
            for name in inspect.signature(resolved(ast.unparse(call.func))).parameters
        }
        for code in filter(LONE.fullmatch, spans):
            if "options" in known:  # comparisons hand other keywords to the release
                known |= {*inspect.signature(ProtectedDP.mean).parameters}
            assert code.partition("=")[0] in known, (row.items, code)


@functools.cache
def names_in(path: Path) -> set[str]:
    """The tests of a file, those of classes with the name of the class."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            names |= {
                f"{node.name}::{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)
            }
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
    return names


def test_every_test_exists():
    named = [code for row in EVERY for code in re.findall(r"`([^`]+)`", row.tests)]
    assert len(named) > 100
    for code in named:
        path, _, name = code.partition("::")
        assert (ROOT / "tests" / path).is_file(), code
        assert name.startswith("test_") or "::test_" in name, code
        assert name in names_in(ROOT / "tests" / path), code


def test_the_example_of_the_attack_has_one_homogeneous_cell():
    """Table 1 of Liu, Zhao: of three cells, that of white people from 50 on has one condition."""
    races, ages = ("black", "Hispanic", "white"), ("<40", "40-49", ">=50")
    conditions = (
        ["heart disease"] * 2 + ["cancer"] * 3 + ["diabetes"] + ["heart disease"] * 2 + ["diabetes"] * 4
    )
    people = pd.DataFrame(
        {
            "race": [race for race in races for _ in range(4)],
            "age": [age for age in ages for _ in range(4)],
            "condition": conditions,
        }
    )
    domain = Domain(
        (
            Column("race", "category", categories=races, role="quasi_identifier"),
            Column("age", "category", categories=ages, role="quasi_identifier"),
            Column(
                "condition", "category", categories=("heart disease", "cancer", "diabetes"), role="sensitive"
            ),
        )
    )
    report = people.dp.protect(domain, epsilon=1).dp.homogeneity(top=1)
    assert report.summary["cells"].to_dict() == {"homogeneous": 1, "heterogeneous": 2, "all": 3}
    assert report.summary["records"].to_dict() == {"homogeneous": 4, "heterogeneous": 8, "all": 12}
    (cell,) = report.exposed.reset_index().to_dict("records")
    assert (cell["race"], cell["age"], cell["label"], cell["records"]) == ("white", ">=50", "diabetes", 4)


def test_a_filter_narrows_the_bounds_and_the_noise():
    """Example 5.2 of the paper on omission: the sensitivity of a sum is that of the records that may stay."""
    people = pd.DataFrame({"age": [20, 40, 90] * 50})
    private = people.dp.protect(Domain((Column("age", "integer", lower=0, upper=120),)), epsilon=10)
    whole = private.dp.sum("age", epsilon=1).dp.metadata
    part = private.query("age <= 60").dp.sum("age", epsilon=1).dp.metadata
    assert (whole.sensitivity, part.sensitivity) == (120, 60)
    assert part.scale == whole.scale / 2
