"""Idioms of the pandas user guide: each works or is refused with a hint that works, as the page says."""

from __future__ import annotations

from tests.support.engine_frames import ON_NEWEST_PANDAS
from tests.support.idioms import IDIOMS, PAGE, outcome_of, page

REASON_ALONE = {"apply", "rank", "cumsum", "cummax", "shift", "diff", "pct_change", "astype", "upper"}
"""Names of refused idioms for which there is nothing to write instead, of one column."""


def test_there_are_about_as_many_idioms_as_the_page_says():
    codes = [code for _, _, code in IDIOMS]
    assert len(codes) > 400
    assert len({*zip([of for of, _, _ in IDIOMS], codes, strict=True)}) >= len(codes) - 5


def test_each_idiom_works_or_its_hint_does():
    """No idiom raises another error than those of the package, and no call in a hint raises any."""
    outcomes = {code: outcome_of(code) for _, _, code in IDIOMS}
    faults = {code: each.fault for code, each in outcomes.items() if each.fault}
    assert faults == {}
    bare = [code for code, each in outcomes.items() if not each.works and not each.hint]
    assert [code for code in bare if not any(f".{name}(" in code for name in REASON_ALONE)] == []


@ON_NEWEST_PANDAS
def test_the_page_is_that_of_the_idioms():
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "python -m tests.support.idioms --write"
