"""The files of a step: each name stays in its folder."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pdprivacy.errors import ParameterError
from pdprivacy.pipeline.folder import check_file_name


@given(st.text(max_size=20))
def test_a_name_stays_in_its_folder(name):
    try:
        plain = check_file_name(name, "release_id")
    except ParameterError:
        return
    assert (Path("to") / plain).parent == Path("to")
    assert not {"/", "\\", "\0"} & set(plain)
    assert plain == plain.strip(" .")
    assert check_file_name(plain, "release_id") == plain
