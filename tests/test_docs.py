"""The site: built without a warning, complete, reachable, and self-contained; links that lead somewhere."""

from __future__ import annotations

import doctest
import functools
import importlib.util
import inspect
import re
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pandas as pd
import pytest

import pdprivacy
from pdprivacy.accessor import DataFrameDP, ProtectedDP, SeriesDP

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
SOURCES = sorted([*PAGES, *DOCS.glob("api/*.rst")])
ABSENT = [name for name in ("sphinx", "myst_parser", "furo") if importlib.util.find_spec(name) is None]

builds = [
    pytest.mark.full,
    pytest.mark.skipif(bool(ABSENT), reason=f"the extra docs is not installed: {', '.join(ABSENT)}"),
    pytest.mark.skipif(
        pd.__version__.startswith("2."), reason="one build suffices, that with the newest pandas"
    ),
]


class Page(HTMLParser):
    """The links of a built page, in its text and at all, and its resources."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text = 0  # how many elements are open in the text of the page
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.ids: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.ids.add(attributes.get("id", ""))
        if tag == "article":
            self.text += 1
        if tag == "a" and self.text:
            self.links.add(attributes.get("href", ""))
        elif tag != "a":
            loaded = (
                attributes.get(name, "") for name in ("src", "href", "srcset", "data", "poster", "action")
            )
            self.loads |= {value for value in loaded if value}
            self.loads |= set(re.findall(r"url\(['\"]?([^)'\"]+)", attributes.get("style", "")))

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self.text -= 1


@functools.cache
def page_of(path: Path) -> Page:
    return Page(path)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "-n", "--keep-going", "-q", "-b", "html"]
    process = subprocess.run(
        [*command, "-d", str(folder / "trees"), str(DOCS), str(folder / "html")],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert process.returncode == 0, process.stderr
    return folder / "html"


def remote(address: str) -> bool:
    return address.startswith(("http:", "https:", "//", "ftp:"))


def inventory(site: Path) -> set[str]:
    """The names of all Python objects that the site describes."""
    content = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    lines = zlib.decompress(content).decode().splitlines()
    return {name for name, kind, *_ in map(str.split, lines) if kind.startswith("py:")}


def public_names() -> set[str]:
    modules = [
        member for name in pdprivacy.__all__ if isinstance(member := getattr(pdprivacy, name), ModuleType)
    ]
    names = {f"{module.__name__}.{name}" for module in [pdprivacy, *modules] for name in module.__all__}
    for accessor in (DataFrameDP, ProtectedDP, SeriesDP):
        names |= {
            f"{accessor.__module__}.{accessor.__name__}.{name}"
            for name in dir(accessor)
            if not name.startswith("_")
        }
    return names


class TestSite:
    pytestmark = builds

    def test_every_public_name_is_described(self, site):
        assert {
            "pdprivacy.Budget",
            "pdprivacy.risk.dr_ha",
            "pdprivacy.accessor.ProtectedDP.mean",
        } <= public_names()
        assert public_names() - inventory(site) == set()

    def test_methods_are_called_as_users_call_them(self, site):
        described = (site / "api" / "releases.html").read_text()
        assert 'id="pdprivacy.accessor.ProtectedDP.crosstab"' in described
        assert "private.dp." in described
        assert "TypeAliasForwardRef" not in described

    def test_every_page_is_reached_from_the_first_by_its_text(self, site):
        seen, waiting = set(), [site / "index.html"]
        while waiting:
            page = waiting.pop()
            if page in seen:
                continue
            seen.add(page)
            for link in page_of(page).links:
                target = (page.parent / unquote(link.partition("#")[0])).resolve()
                if not remote(link) and target.suffix == ".html":
                    waiting.append(target)
        pages = {site / source.relative_to(DOCS).with_suffix(".html") for source in SOURCES}
        assert pages - seen == set()

    def test_no_page_loads_anything_from_elsewhere(self, site):
        loaded = {
            page.name: {load for load in page_of(page).loads if remote(load)} for page in site.rglob("*.html")
        }
        assert "index.html" in loaded
        assert {name: loads for name, loads in loaded.items() if loads} == {}
        for sheet in site.rglob("*.css"):
            addresses = re.findall(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^)'\"\s]+)", sheet.read_text())
            assert addresses == [], sheet.name

    def test_links_within_the_site_lead_somewhere(self, site):
        for page in site.rglob("*.html"):
            for link in page_of(page).links:
                address, _, anchor = link.partition("#")
                target = (page.parent / unquote(address)).resolve() if address else page
                if remote(link) or link.startswith("mailto:"):
                    continue
                assert target.exists(), f"{page.name}: {link}"
                if anchor and target.suffix == ".html":
                    assert unquote(anchor) in page_of(target).ids, f"{page.name}: {link}"


def anchors(path: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ +(.+?)\s*$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "path", [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))], ids=lambda path: path.name
)
def test_links_between_pages_lead_somewhere(path):
    prose = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        if remote(link):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def test_the_citation_names_the_version():
    (version,) = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE)
    assert version == pdprivacy.__version__


OF_PROTECTED = [
    name for name in dir(ProtectedDP) if not name.startswith("_") and name not in dir(DataFrameDP)
]
RELEASED_FROM_RAW = re.compile(rf"\bdf\.dp\.(?:{'|'.join(OF_PROTECTED)})\b.*\n?(.*)")


def test_nothing_shows_a_release_of_a_raw_frame():
    """Releases are methods of a protected frame; an example may show that a raw one refuses."""
    package = Path(pdprivacy.__file__).parent
    texts = [ROOT / "README.md", *SOURCES, *package.rglob("*.py"), *package.rglob("*.pyi")]
    shown = {
        (path.name, match[0])
        for path in texts
        for match in RELEASED_FROM_RAW.finditer(path.read_text())
        if not match[1].startswith("Traceback")
    }
    assert shown == set()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_example_of_a_page_is_run(path):
    for block in re.findall(r"^```python\n(.*?)^```", path.read_text(), flags=re.DOTALL | re.MULTILINE):
        assert block.startswith(">>> "), block


METHODS = {
    name: inspect.getdoc(getattr(accessor, name)) or ""
    for accessor in (DataFrameDP, ProtectedDP)
    for name in dir(accessor)
    if name[0] != "_"
}


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("name", [name for name, text in METHODS.items() if ">>>" in text])
def test_examples_of_methods_run_as_they_are_shown(name):
    """Copied from the page, without what the module around them imports."""
    examples = doctest.DocTestParser().get_doctest(METHODS[name], {}, name, None, 0)
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(examples, out=output.append)
    assert runner.failures == 0, "".join(output)
