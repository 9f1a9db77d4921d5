"""The report in headless Chromium: what it fetches, how it reads, who can read it, and how it prints."""

from __future__ import annotations

import io
import os
import re
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain, Pure
from pdprivacy.releases import metadata

missing = [name for name in ("playwright", "axe_playwright_python", "pypdf") if find_spec(name) is None]
if missing:
    pytest.skip(f"not installed: {', '.join(missing)}", allow_module_level=True)
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = os.environ.get("PDPRIVACY_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
if CHROMIUM is None:
    pytest.skip("no Chromium on the path; PDPRIVACY_CHROMIUM names one elsewhere", allow_module_level=True)

from axe_playwright_python.sync_playwright import Axe  # noqa: E402
from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402
from pypdf import PdfReader  # noqa: E402

pytestmark = pytest.mark.full

DRAWN = find_spec("matplotlib") is not None
MANY = 80
"""Rows of the long table: more than a page of A4 has."""

A4 = (595.28, 841.89)  # points
MARGINS = (16.0, 18.0)  # mm, of a printed page, beside and above
NASTY = '<img src=x onerror=alert(1)>"<script>alert(2)</script>'


def long_table() -> pd.Series:
    """A release of many numbers, each of them told apart by its value; its own half width for each."""
    index = pd.Index([f"row{row:03d}" for row in range(MANY)], name="key")
    released = pd.Series(np.arange(MANY) + 70_000.0, index=index)
    facts = {
        "statistic": "sum", "columns": ["key"], "mechanism": "laplace", "epsilon": 0.5, "delta": 0.0,
        "neighbors": "add_remove", "sensitivity": 1.0, "scale": 2.0, "split": {"sum": 1.0},
        "error": {
            "level": 0.95, "standard_error": 10.0, "plus_minus": np.linspace(20, 60, MANY).round(3).tolist()
        },
        "budget": {"total": [9.0, 0.0], "spent": [0.5, 0.0]}, "seeded": False,
        "version": pdprivacy.__version__,
    }  # fmt: skip
    metadata.attach(released, facts)
    return released


DOMAIN = Domain(
    (
        Column("region", "category", categories=("north", "south", NASTY), role="quasi_identifier"),
        Column("ill", "category", categories=("no", "yes"), role="sensitive"),
        Column("pneumonoultramicroscopicsilicovolcanoconiosis" * 2, "boolean"),
    )
)
PLACES = {"public": {}, "curator": {}, "seeded": {"rng": 1}}


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> dict[str, Path]:
    """A page of each edition, and one that is not private."""
    folder = tmp_path_factory.mktemp("reports")
    rows = np.arange(3000)
    frame = pd.DataFrame(
        {
            "region": np.array(["north", "south"], dtype=object)[rows % 2],
            "ill": np.array(["no", "yes"], dtype=object)[(rows % 7 == 0).astype(int)],
            DOMAIN.names[2]: rows % 3 == 0,
        }
    )
    ledger = pdprivacy.Ledger(folder / "budget.db")
    private = frame.dp.protect(DOMAIN, epsilon=20, delta=1e-6, budget=ledger, name="survey")
    ledger.budget("survey").charge(Pure(0.125), f"{NASTY} {'x' * 120}", "laplace", release_id="y" * 80)
    paths = {}
    for edition, options in PLACES.items():
        results: dict[str, Any] = {
            "table": private.dp.crosstab("region", "ill", epsilon=1, **options),
            f"{NASTY} {'w' * 90}": private.dp.value_counts("region", epsilon=1, **options),
            "most": private.dp.mode("ill", epsilon=0.5, **options),
            "a share of that": private.dp.proportion(DOMAIN.names[2], epsilon=1, bounding="clamp", **options),
            "many": long_table(),
        }
        curator = edition == "curator"
        if curator:
            results["curve"] = private.dp.risk_curve("region", "ill", epsilon=[0.1, 1, 10])
            results["cells"] = private.dp.homogeneity("region", "ill")
        paths[edition] = folder / f"{edition}.html"
        pdprivacy.report(
            results, ledger=ledger, name="survey", declaration=private, path=paths[edition],
            edition="curator" if curator else "public", title="A survey & more",
            pictures=DRAWN and edition != "seeded",
        )  # fmt: skip
    ledger.close()
    return paths


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # tests in a container run as root, for whom Chromium has no sandbox
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


class Watched:
    """A page, and what happens on it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.told: list[str] = []
        self.fetched: list[str] = []
        page.on("console", lambda message: self.told.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.told.append(str(error)))
        page.on("dialog", lambda dialog: (self.told.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: self.fetched.append(request.url))


@pytest.fixture
def look(browser) -> Iterator[Callable[..., Watched]]:
    """Open a page: how wide, and in which scheme of colours."""
    contexts = []

    def opened(path: Path, width: int = 1000, scheme: str = "light") -> Watched:
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme))
        watched = Watched(contexts[-1].new_page())
        watched.page.goto(path.as_uri())
        return watched

    yield opened
    for context in contexts:
        context.close()


every_page = pytest.mark.parametrize("edition", PLACES)


@every_page
def test_nothing_is_fetched_and_nothing_runs(reports, look, edition):
    visit = look(reports[edition])
    visit.page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    assert visit.told == []
    outside = [url for url in visit.fetched if not url.startswith("data:image/")]
    assert outside == [reports[edition].as_uri()]
    pictures = visit.page.evaluate(
        "Array.from(document.images, one => [one.complete, one.naturalWidth, one.alt.length])"
    )
    assert all(complete and width > 100 and words for complete, width, words in pictures)
    assert bool(pictures) == (DRAWN and edition != "seeded")


LOOKS = [
    ("public", 1000, "light"), ("public", 400, "dark"), ("curator", 400, "light"), ("curator", 1000, "dark"),
    ("seeded", 400, "light"),
]  # fmt: skip


@pytest.mark.parametrize(("edition", "width", "scheme"), LOOKS)
def test_the_checker_of_accessibility_finds_nothing(reports, look, edition, width, scheme):
    result = Axe().run(look(reports[edition], width, scheme).page).response
    assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in result["violations"]] == []
    passed = {rule["id"] for rule in result["passes"]}
    assert {"color-contrast", "html-has-lang", "heading-order", "landmark-unique", "region"} <= passed
    assert width > 400 or "scrollable-region-focusable" in passed


def test_the_checker_would_find_something(reports, look, tmp_path):
    html = reports["public"].read_text("utf-8")
    broken = tmp_path / "broken.html"
    broken.write_text(html.replace(' lang="en"', "").replace("--soft:#4b5563", "--soft:#ccc"), "utf-8")
    violated = {rule["id"] for rule in Axe().run(look(broken).page).response["violations"]}
    assert {"html-has-lang", "color-contrast"} <= violated


def test_the_dark_page_is_dark_and_the_light_one_light(reports, look):
    def brightness(scheme: str) -> tuple[float, float]:
        page = look(reports["public"], scheme=scheme).page
        colours = page.evaluate(
            "(({backgroundColor, color}) => [backgroundColor, color])(getComputedStyle(document.body))"
        )
        return tuple(sum(map(int, re.findall(r"\d+", colour)[:3])) / 765 for colour in colours)

    (light_page, light_text), (dark_page, dark_text) = brightness("light"), brightness("dark")
    assert light_page > 0.9 > 0.2 > light_text
    assert dark_page < 0.15 < 0.8 < dark_text


@every_page
def test_a_narrow_page_reads_without_scrolling_aside(reports, look, edition):
    page = look(reports[edition], 400).page
    over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert over <= 0
    sizes = page.evaluate(
        "Array.from(document.querySelectorAll('p,li,td,th,dd,dt,caption'), "
        "one => parseFloat(getComputedStyle(one).fontSize))"
    )
    assert min(sizes) >= 13
    # what is wider than the page scrolls by itself, and can be reached by the keyboard
    wide = page.evaluate(
        "Array.from(document.querySelectorAll('table')).filter(one => one.scrollWidth > innerWidth)"
        ".map(one => [one.parentElement.tabIndex, getComputedStyle(one.parentElement).overflowX])"
    )
    assert wide
    assert {tuple(entry) for entry in wide} == {(0, "auto")}


def test_the_mark_of_the_curator_stays_in_sight(reports, look):
    page = look(reports["curator"], 400).page
    for offset in ("0", "document.body.scrollHeight / 2", "document.body.scrollHeight"):
        page.evaluate(f"window.scrollTo(0, {offset})")
        box = page.locator("aside.mark").bounding_box()
        assert box is not None
        assert -1 <= box["y"] <= 1
        assert "CONFIDENTIAL" in page.locator("aside.mark").inner_text()
    assert look(reports["public"]).page.locator("aside.mark").count() == 0


# ------------------------------------------------------------------ paper


@pytest.fixture(scope="module")
def printed(reports, browser) -> dict[str, list[str]]:
    """The text of each page of paper; also that all are A4."""
    pages = {}
    for edition, path in reports.items():
        page = browser.new_page()
        page.goto(path.as_uri())
        sheets = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True))).pages
        page.close()
        for sheet in sheets:
            assert [float(sheet.mediabox.width), float(sheet.mediabox.height)] == pytest.approx(A4, abs=1)
        pages[edition] = [sheet.extract_text() for sheet in sheets]
    return pages


@every_page
def test_no_row_of_a_table_is_cut(printed, edition):
    """All cells of a row are on one sheet, once, below the head of the table."""
    sheets = printed[edition]
    pages_of = [
        [number for number, text in enumerate(sheets) if re.search(rf"\brow{row:03d}\b", text)]
        for row in range(MANY)
    ]
    assert all(len(numbers) == 1 for numbers in pages_of)
    assert len({numbers[0] for numbers in pages_of}) > 1  # it goes over several sheets
    for row, (number,) in enumerate(pages_of):
        assert sheets[number].count(f"row{row:03d}") == 1
        assert re.search(rf"row{row:03d}\s+{70_000 + row:,}(\.\d+)?\s+±", sheets[number])
    for number in {numbers[0] for numbers in pages_of}:
        assert re.search(r"key\s+released\s+±", sheets[number])


@every_page
def test_nothing_is_wider_than_the_paper(reports, look, edition):
    across = (210 - 2 * MARGINS[0]) / 25.4 * 96
    page = look(reports[edition], int(across)).page
    page.emulate_media(media="print")
    over = page.evaluate(
        "Array.from(document.querySelectorAll('body *'), one => one.getBoundingClientRect())"
        ".filter(box => box.width && box.right > innerWidth + 1).length"
    )
    inside = page.evaluate(
        "Array.from(document.querySelectorAll('td,th')).filter(one => one.scrollWidth > one.clientWidth + "
        "1).length"
    )
    assert (over, inside) == (0, 0)


def test_short_tables_are_whole_and_no_head_is_left_behind(printed):
    for sheets in printed.values():
        (sheet,) = [text for text in sheets if "Cost of each result" in text]
        assert all(name in sheet for name in ("table", "most", "a share of that", "many"))
        for text in sheets:
            last = text.rstrip().splitlines()[-1]
            assert not last.endswith(("±", "as released", "epsilon delta", "(confidential)"))
            assert last not in ("What was released", "What was declared", "What it cost", "Total")


def test_each_sheet_says_which_edition_it_is(printed):
    marks = {
        "curator": "CONFIDENTIAL: curator's edition, not for publication",
        "seeded": "NOT PRIVATE: made with",
    }
    for edition, sheets in printed.items():
        for number, text in enumerate(sheets, 1):
            assert f"page {number} of {len(sheets)}" in text
            assert ("CONFIDENTIAL" in text) == (edition == "curator")
            assert edition not in marks or marks[edition] in text
            assert edition != "public" or "Privacy report, public edition" in text
