"""The proofs of the guarantee cover the code as it is, and name tests that are there."""

from __future__ import annotations

import ast
import hashlib

import pytest

from pdprivacy import releases
from pdprivacy.core.mechanisms import MECHANISMS
from pdprivacy.core.mechanisms.exponential import SELECTIONS, NoisyMax
from pdprivacy.frames.frame import ROW_STEPS
from tests.support import proofs
from tests.support.proofs import (
    FOLDER,
    SECTIONS,
    WITHOUT_A_PAGE,
    canonical,
    digest,
    index,
    known_tests,
    pages,
)

PAGES = pages()
RELEASES = {
    name
    for name, module in releases.HOMES.items()
    if name.islower() and (module.startswith("releases.") or module == "amplification.sampling")
}
EXPECTED = {
    "Releases": RELEASES,
    "Mechanisms": {*MECHANISMS, *SELECTIONS, NoisyMax.name, "partition_selection"},
    "Row steps": {*ROW_STEPS},
}

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path.stem)


@each_page
def test_a_page_covers_the_code_as_it_is_and_names_tests_that_are_there(page):
    changes = page.out_of_date()
    assert changes == [], (
        "read each of these pages again beside the changed code, mend its proof or the code, "
        "and then call: python -m tests.support.proofs --write"
    )


@each_page
def test_a_page_has_all_sections(page):
    sections = page.sections
    assert tuple(sections) == SECTIONS
    assert all(sections.values())
    assert "**Given**" in sections["Claim"]
    assert "**Then**" in sections["Claim"]
    assert sections["Algorithm"].count("```") == 2
    assert "### Lemma 1" in sections["Proof"]
    assert page.code
    assert page.tests


@each_page
def test_a_proof_can_be_read_in_one_go(page):
    sections = page.sections
    assert len(sections["Algorithm"].splitlines()) <= 60
    assert len(sections["Proof"]) <= 9000  # two pages


def test_whatever_is_released_names_its_page():
    tables = index()
    named = {heading: [row.name for row in tables[heading]] for heading in EXPECTED}
    assert {heading: len(names) - len(set(names)) for heading, names in named.items()} == dict.fromkeys(
        named, 0
    )
    missing = {
        (heading, name)
        for heading, names in EXPECTED.items()
        for name in names.symmetric_difference(named[heading])
    }
    assert {name for _, name in missing} == set(WITHOUT_A_PAGE)


def test_a_row_of_the_index_leads_to_code_and_tests():
    covered = {page.path.name: set(page.code) for page in PAGES}
    for rows in index().values():
        for row in rows:
            assert row.pages, row.name
            assert row.functions, row.name
            assert row.tests, row.name
            assert set(row.pages) <= set(covered), row.name
            assert set(row.functions) <= set().union(*(covered[name] for name in row.pages)), row.name
            assert [(file, test) for file, test in row.tests if test not in known_tests(file)] == [], row.name


def test_the_index_lists_every_page():
    text = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert [page.path.stem for page in PAGES if f"]({page.path.name}" not in text] == []
    listed = text.partition("```{toctree}")[2].partition("```")[0].split()
    assert sorted(word for word in listed if (FOLDER / f"{word}.md").is_file()) == [
        page.path.stem for page in PAGES
    ]


SOURCE = '''
class Laplace:
    """Noise."""

    scale: int = 3
    """The scale."""

    def draw(self, size: int) -> list[int]:
        """Draw."""
        if size < 0:
            raise ValueError(f"{size} is too small")
        return [self.scale] * size
'''


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ('"""Draw."""', '"""Draw exact noise."""', False),
        ('    """The scale."""\n', "", False),
        ("size: int", "size: float", False),
        ("is too small", "must not be negative", False),
        ("return [self", "return  [self", False),
        ("* size", "* (size)  # times", False),
        ("* size", "* size + [0]", True),
        ("size < 0", "size <= 0", True),
        ("= 3", "= 4", True),
        ("scale: int", "scale: ClassVar[int]", True),
    ],
)
def test_a_digest_is_that_of_what_runs(before, after, changes):
    changed = SOURCE.replace(before, after)
    assert changed != SOURCE
    assert (canonical(ast.parse(changed)) != canonical(ast.parse(SOURCE))) is changes


MUCH_SYNTAX = '''
@final
class Laplace(Base, order=1):
    steps: dict[str, int] = {"a": 1, **OTHER}

    def draw(self, size: int, /, *more, exact=False, **words) -> list[int]:
        """Draw."""
        with lock as held, other:
            match size:
                case [int(), *rest] if rest:
                    return [*rest]
                case _:
                    pass
        try:
            return [f"{x:>{size}}{x!r}" for x in range(size) if (y := x) > 1]
        except* (KeyError, ValueError):
            raise Refused(f"{size}") from None
'''


def test_a_digest_is_the_same_on_every_version_of_python():
    """The digest is one that Python 3.11 and 3.13 gave; 3.12 splits a text otherwise."""
    text = canonical(ast.parse(MUCH_SYNTAX))
    assert hashlib.sha256(text.encode()).hexdigest()[:12] == "2d3a63662f4c"


def test_functions_methods_classes_and_constants_have_digests():
    assert (
        len(
            {
                digest(name)
                for name in (
                    "pdprivacy.core.mechanisms.laplace.Laplace",
                    "pdprivacy.core.mechanisms.laplace.Laplace._calibrate",
                    "pdprivacy.core.mechanisms.support.GRID_BITS",
                    "pdprivacy.core.mechanisms.MECHANISMS",
                )
            }
        )
        == 4
    )
    with pytest.raises(LookupError):
        digest("pdprivacy.core.mechanisms.laplace.Laplace._uncalibrate")


def test_a_change_of_code_shows_until_the_page_is_renewed(tmp_path, monkeypatch):
    page = proofs.Page(tmp_path / "page.md")
    page.path.write_text(
        "# Page\n\n## Code\n\n| function | digest |\n| --- | --- |\n| `pdprivacy.exact.near` | `` |\n"
    )
    assert page.out_of_date() == ["page.md: pdprivacy.exact.near has changed"]
    page.renew()
    assert page.out_of_date() == []
    monkeypatch.setattr(proofs, "definitions", lambda name: ast.parse("near = float").body)
    assert page.out_of_date() == ["page.md: pdprivacy.exact.near has changed"]


def test_what_is_gone_is_left_to_mend_by_hand(tmp_path):
    page = proofs.Page(tmp_path / "page.md")
    page.path.write_text(
        "# Page\n\n## Code\n\n| `pdprivacy.exact.far` | `0123456789ab` |\n\n"
        "## Tests\n\n- `tests/test_exact.py::test_nothing`\n"
    )
    page.renew()
    assert "`0123456789ab`" in page.text
    assert page.out_of_date() == [
        "page.md: the package has no pdprivacy.exact.far",
        "page.md: there is no tests/test_exact.py::test_nothing",
    ]
