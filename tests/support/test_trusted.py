"""The page of what must be right for a number to be private lists files and tests that are there."""

from __future__ import annotations

from pathlib import Path

from tests.support.trusted import PAGE, ROOMS, differences, page

TESTS = Path(__file__).parents[1]


def test_the_page_is_that_of_the_package():
    assert differences(PAGE.read_text(encoding="utf-8")) == []


def test_every_file_of_the_core_is_listed_with_tests_that_are_there():
    rows = [line for line in page().splitlines() if line.startswith("| `")]
    assert len(rows) > 60
    untested = [row for row in rows if row.split(" | ")[3].strip(" |") == "" and "__init__.py" not in row]
    assert untested == []
    for row in rows:
        for name in row.split(" | ")[3].strip(" |").replace("`", "").split(", "):
            assert name == "" or (TESTS / name).is_file(), name
    core = {
        path.name for path in (TESTS.parent / "pdprivacy" / "core").iterdir() if not path.name.startswith("_")
    }
    assert {room.removeprefix("core/") for room in ROOMS if room.startswith("core/")} == core


def test_a_page_that_misses_a_file_or_has_other_sizes_is_out_of_date():
    text = PAGE.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("| `core/noise/bits.py`"))
    assert differences(text.replace(line + "\n", "")) != []
    assert differences(text.replace("Together 1", "Together 3")) == ["The sizes are out of date."]
