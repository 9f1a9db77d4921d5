"""Releases for papers, wikis and spreadsheets: numbers, errors and labels as a notebook shows them."""

from __future__ import annotations

import html
import math
import re
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.errors import MetadataError, MissingExtraError, ParameterError
from pdprivacy.show.export import _in_latex, _in_markdown
from pdprivacy.show.pages import html_of_marked
from pdprivacy.text.numbers import printable
from tests.support.released import RELEASES

ODD = ("a|b", "50 % & more_", "*x* `y` <b>", "new\nline", "[16, 30)", "-3", "=1+1", "{\\~^#$}", "a--b")
ODD += ("[x](y)",)
"""Labels that Markdown, LaTeX and spreadsheets would read as something else."""


@pytest.fixture(scope="module")
def odd():
    """Counts by odd labels, in rows and columns."""
    names = {"a_%": ODD, "b|c": ODD[:3]}
    domain = Domain(
        tuple(Column(name, "category", categories=categories) for name, categories in names.items())
    )
    frame = pd.DataFrame({"a_%": list(ODD), "b|c": [*ODD[:3], *ODD[:3], *ODD[:3], ODD[0]]})
    return frame.dp.protect(domain, epsilon=100).dp.crosstab("a_%", "b|c", epsilon=1)


def shown(released) -> list[list[str]]:
    """The rows of numbers in a notebook, as text: labels, numbers, margins of error."""
    with pd.option_context("display.max_rows", None, "display.max_columns", None):
        page = html_of_marked(released)
    body = re.search(r"<tbody>(.*?)</tbody>", page, re.DOTALL)[1]
    cells = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL) for row in body.split("</tr>")[:-1]]
    return [[html.unescape(re.sub(r"<[^>]*>", "", cell)).strip() for cell in row] for row in cells]


# ------------------------------------------------------------------ Markdown


def rows_of(text) -> list[list[str]]:
    """The cells of a table in Markdown, read by its rules."""
    lines = text.partition("\n\n")[0].splitlines()
    rows = [re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1] for line in lines]
    return [[re.sub(r"\\(.)", r"\1", cell.strip()) for cell in row] for row in rows]


@pytest.mark.full(keep=8)
@pytest.mark.parametrize("name", RELEASES)
def test_markdown_holds_what_a_notebook_shows(private, name):
    released = RELEASES[name](private.dp)
    head, rule, *rows = rows_of(released.dp.to_markdown())
    assert rows == shown(released)
    assert {len(row) for row in (head, rule, *rows)} == {len(rows[0])}
    assert all(re.fullmatch(":-+|-+:", cell) for cell in rule)
    table = released.columns if isinstance(released, pd.DataFrame) else pd.Index([])
    for label, text in zip(table, head[released.index.nlevels :], strict=isinstance(released, pd.DataFrame)):
        for part in label if isinstance(label, tuple) else (label,):
            assert re.search(rf"(^|[ :]){re.escape(str(part))}(,|$)", text)


def test_markdown_says_what_the_error_is_and_the_cost(private):
    mean = private.query("age > 30").dp.mean("age", epsilon=0.5)
    text = mean.dp.to_markdown()
    assert "Mean of age where age \\> 30. ± " in text
    assert (
        "95 % margin of error of each number, of the noise and not of a population. Cost: epsilon 0.5."
        in text
    )
    assert "eeded" not in text
    assert private.dp.mean("age", epsilon=0.5, rng=1).dp.to_markdown().endswith(" Seeded: not private.")
    assert "\n\n" not in mean.dp.to_markdown(note=False)
    assert "ranks of the true quantile" in private.dp.median("age", epsilon=1).dp.to_markdown()
    with pytest.raises(ParameterError, match="'note' must be True or False"):
        mean.dp.to_markdown(note="yes")


def test_markdown_of_odd_labels_is_rendered_as_the_labels(odd):
    markdown = pytest.importorskip("markdown_it", reason="markdown-it-py is not installed")
    page = markdown.MarkdownIt("commonmark").enable("table").render(odd.dp.to_markdown())
    cells = [html.unescape(cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", page)]
    assert not re.search(r"<(?!/?(table|thead|tbody|tr|th|td|p)\b)", page)
    assert cells[0] == "a_%"
    assert cells[1:4] == [f"b|c: {printable(label)}" for label in ODD[:3]]
    assert cells[4::4] == [printable(label) for label in ODD]


# ------------------------------------------------------------------ LaTeX

SIGNS = {
    r"\textbackslash{}": "\\",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\symbol{34}": '"',
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
    r"$\pm$": "±",
    "$-$": "-",
    "{[}": "[",
    "{]}": "]",
    "{*}": "*",
    "{}": "",
    **{f"\\{sign}": sign for sign in "&%$#_{}"},
}
"""The text that LaTeX prints for each command."""


def printed(text) -> str:
    """The text that LaTeX prints; an error for a special character."""
    output, position = "", 0
    while position < len(text):
        for command, sign in SIGNS.items():
            if text.startswith(command, position):
                output, position = output + sign, position + len(command)
                break
        else:
            assert text[position] not in r"\&%$#_{}~^<>|[]*", text
            assert text[position] not in "-`'," or text[position : position + 2] != 2 * text[position], text
            output, position = output + text[position], position + 1
    return output


def lines_of(text) -> tuple[str, list[list[str]], list[list[str]]]:
    """The columns, the head and the rows of a tabular."""
    begin, top, *lines, bottom, end = text.splitlines()
    assert (top, bottom, end) == (r"\toprule", r"\bottomrule", r"\end{tabular}")
    assert all(line == r"\midrule" or line.endswith(r" \\") for line in lines)
    assert not any(
        re.match(r"\s*[\[*]", line) for line in lines
    )  # which would be an argument of the line before
    cells = [re.split(r"(?<!\\)&", line.removesuffix(r" \\")) for line in lines]
    middle = lines.index(r"\midrule")
    spec = re.fullmatch(r"\\begin\{tabular\}\{([lr]+)\}", begin)[1]
    return spec, cells[:middle], [[printed(cell.strip()) for cell in row] for row in cells[middle + 1 :]]


@pytest.mark.full(keep=8)
@pytest.mark.parametrize("name", RELEASES)
def test_latex_holds_what_a_notebook_shows(private, name):
    released = RELEASES[name](private.dp)
    spec, head, rows = lines_of(released.dp.to_latex(note=False))
    assert rows == shown(released)
    assert {len(row) for row in rows} == {len(spec)}
    for row in head:
        spans = [re.match(r"\s*\\multicolumn\{(\d+)\}", cell) for cell in row]
        assert sum(int(match[1]) if match else 1 for match in spans) == len(spec)
    noted = released.dp.to_latex()
    assert noted.startswith(released.dp.to_latex(note=False))
    note = re.search(r"\{\\footnotesize (.*)\\par\}$", noted)[1]
    assert printed(note) == re.sub(r"\\(.)", r"\1", released.dp.to_markdown().rpartition("\n")[2])


def test_latex_prints_odd_labels(odd):
    _, _, rows = lines_of(odd.dp.to_latex(note=False))
    assert [row[0] for row in rows] == [printable(label) for label in ODD]


@given(st.text(max_size=12))
def test_latex_and_markdown_give_back_any_text(text):
    assert printed(_in_latex(text)) == text
    assert re.sub(r"\\([\W_])", r"\1", _in_markdown(text)) == text
    assert not re.search(r"(?<!\\)(\\\\)*\|", _in_markdown(text).replace("\\|", ""))


# ------------------------------------------------------------------ spreadsheets


def sheets_of(released, path):
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    released.dp.to_excel(path)
    return openpyxl.load_workbook(path)


def number(text) -> float:
    return float(text.replace(",", ""))


@pytest.mark.full(keep=8)
@pytest.mark.parametrize("name", RELEASES)
def test_a_spreadsheet_holds_the_numbers_and_the_errors_of_a_notebook(private, tmp_path, name):
    released = RELEASES[name](private.dp)
    book = sheets_of(released, tmp_path / "r.xlsx")
    assert book.sheetnames == ["release", "metadata"]
    _, *rows = book["release"].iter_rows()
    frame = released.to_frame() if isinstance(released, pd.Series) else released
    levels = frame.index.nlevels
    errors = [
        [cell.replace(", unknown", " ± unknown").partition(" ± ")[2] or None for cell in row[levels:]]
        for row in shown(released)
    ]
    if isinstance(released, pd.Series):
        errors = [row[levels + 1 :] for row in shown(released)]
    known = any(map(any, errors))
    for index, row in enumerate(rows):
        cells = row[levels:]
        values = [cell.value for cell in cells[:: 1 + known]]
        numbers = frame.iloc[index].tolist()
        if released.attrs["dp"]["statistic"] not in ("mode", "top_k"):
            assert values == pytest.approx(numbers, rel=1e-15, abs=0)  # as many digits as the format keeps
        else:
            assert values == numbers
        if known:
            words = [error is not None and error.startswith("unknown") for error in errors[index]]
            expected = [
                error if error is None or unknown else number(error)
                for error, unknown in zip(errors[index], words, strict=True)
            ]
            assert [cell.value for cell in cells[1::2]] == expected
            for cell, error, unknown in zip(cells[1::2], errors[index], words, strict=True):
                if error is None or unknown:
                    continue
                decimals = len(error.partition(".")[2])
                assert cell.number_format == ("#,##0." + "0" * decimals if decimals else "#,##0")
    for level in range(levels):
        labels = [row[level].value for row in rows]
        assert labels == [
            "NaN" if pd.isna(label) else label if type(label) in (int, float) else str(label)
            for label in frame.index.get_level_values(level).tolist()
        ]
    facts = dict(book["metadata"].iter_rows(values_only=True))
    assert facts["cost"] == "epsilon 1"
    assert facts["error"]


def test_a_shown_number_and_its_error_hold_the_exact_interval(private, tmp_path):
    mean = private.dp.mean(["age", "family"], epsilon=1)
    book = sheets_of(mean, tmp_path / "r.xlsx")
    interval = mean.dp.interval()
    for row, (_, exact) in zip(book["release"].iter_rows(min_row=2), interval.iterrows(), strict=True):
        value, half = row[1], row[2].value
        decimals = len(value.number_format.partition(".")[2])
        assert value.value == pytest.approx(exact["released"], rel=1e-15)
        assert round(value.value, decimals) - half <= exact["lower"]
        assert round(value.value, decimals) + half >= exact["upper"]


def test_no_label_becomes_a_formula(odd, tmp_path):
    book = sheets_of(odd, tmp_path / "r.xlsx")
    for sheet in book.worksheets:
        for row in sheet.iter_rows():
            assert all(cell.data_type in "sn" for cell in row)
    rows = list(book["release"].iter_rows(min_row=2))
    assert [row[0].value for row in rows] == [printable(label) for label in ODD]
    heads = [cell.value for cell in book["release"][1]]
    assert heads[1:3] == ["b|c: a|b", "± b|c: a|b"]
    seeded = odd.attrs["dp"]["seeded"]
    assert seeded is False


def test_a_seeded_release_says_so_in_its_workbook(private, tmp_path):
    book = sheets_of(private.dp.mean("age", epsilon=1, rng=1), tmp_path / "r.xlsx")
    assert "seeded: not private" in [row[1] for row in book["metadata"].iter_rows(values_only=True)]


def test_paths_of_workbooks_are_checked(private, tmp_path, monkeypatch):
    pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    mean = private.dp.mean("age", epsilon=1)
    for path, words in (
        (tmp_path / "mean.xls", r"must end in \.xlsx \(got 'mean\.xls'\)"),
        (tmp_path / "mean", r"must end in \.xlsx"),
        (3, "must be the path of a file"),
        (tmp_path / "no" / "mean.xlsx", "cannot be written: No such file"),
    ):
        with pytest.raises(ParameterError, match=words):
            mean.dp.to_excel(path)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r'pip install "pdprivacy\[excel\]"'):
        mean.dp.to_excel(tmp_path / "mean.xlsx")
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ one row per number


@pytest.mark.full(keep=8)
@pytest.mark.parametrize("name", RELEASES)
def test_a_frame_has_a_row_for_each_number(private, name):
    released = RELEASES[name](private.dp)
    frame = released.dp.to_frame()
    assert list(frame.columns) == ["released", "standard_error", "lower", "upper"]
    assert len(frame) == released.size
    assert frame["released"].tolist() == released.to_numpy().ravel().tolist() or released.isna().any(
        axis=None
    )
    if "below_best" in released.attrs["dp"]["error"]:
        assert frame[["standard_error", "lower", "upper"]].isna().all(axis=None)
        return
    interval = released.dp.interval()
    if isinstance(released, pd.Series):
        pd.testing.assert_frame_equal(frame, interval)
        return
    levels = released.index.nlevels
    assert list(frame.index.names) == [*released.index.names, *released.columns.names]
    for row, label in enumerate(frame.index):
        at, by = label[:levels], label[levels:]
        cell = at if levels > 1 else at[0], by if len(by) > 1 else by[0]
        position = released.index.get_loc(cell[0]), released.columns.get_loc(cell[1])
        for number_, piece in enumerate(frame.columns):
            exact = interval.iloc[position[0], number_ * released.shape[1] + position[1]]
            assert frame[piece].iloc[row] == exact or (math.isnan(exact) and np.isnan(frame[piece].iloc[row]))
    assert "dp" not in frame.attrs


# ------------------------------------------------------------------ what is not written


@pytest.mark.parametrize("way", ["to_frame", "to_markdown", "to_latex", "to_excel"])
def test_changed_releases_and_other_objects_are_not_written(private, survey, tmp_path, way):
    table = private.dp.crosstab("region", "health", epsilon=1)
    for source, words in (
        (table.assign(yes=table["no"]), "not those that were released, and are not written"),
        (private.dp.quality(), "CONFIDENTIAL: it is no release, and is not written"),
        (private.dp.plan.mean("age", epsilon=1, rows=100), "carries no release metadata"),
        (survey["age"], "carries no release metadata"),
        (private, "carries no release metadata"),
    ):
        with pytest.raises(MetadataError, match=words):
            getattr(source.dp, way)(*[tmp_path / "r.xlsx"] * (way == "to_excel"))
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_charged(private):
    mean = private.dp.mean("age", epsilon=1)
    before = private.dp.budget.spent
    for way in (mean.dp.to_frame, mean.dp.to_markdown, mean.dp.to_latex):
        way()
    assert private.dp.budget.spent == before
    assert pdprivacy.releases.metadata.verify(mean)
