"""Releases for papers, wikis and spreadsheets: Markdown, LaTeX, Excel, and one row per number.

Numbers and margins of error are those of a prompt, a notebook and a report.
"""

from __future__ import annotations

import io
import math
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from pdprivacy import checks
from pdprivacy.errors import MissingExtraError, ParameterError, got, short_public
from pdprivacy.pipeline.storage import write_or_refuse
from pdprivacy.releases import metadata
from pdprivacy.releases.excerpts import check_release
from pdprivacy.releases.view import SEEDED, View
from pdprivacy.text.markup import ShownCells, Spanning, Table
from pdprivacy.text.numbers import UNKNOWN, plain

PIECES = ["released", "standard_error", "lower", "upper"]
WORKBOOK = 'released.dp.to_excel("table.xlsx").'

_MARKDOWN = re.compile(r"[\\|*_`<>~$&]|\](?=[(\[:])")
"""Signs that Markdown may read as something else than themselves."""

_LATEX = re.compile(r"""[\\&%$#_{}~^<>|"\[\]*±]|([-`',])(?=\1)""")
"""Signs that LaTeX reads as commands, as arguments of the line before, or together with the next one."""
_LATEX_SIGNS = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\symbol{34}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "±": r"$\pm$",
}


def to_frame(released: Any) -> pd.DataFrame:
    """Return a frame with a row for each released number: the number, its standard error and its interval.

    The labels of a table's columns become further levels of the index. The errors are those of
    ``released.dp.interval()``, of the noise alone; they are NaN where they are not known, as of a quantile,
    whose error is in ranks.

    Raises MetadataError for anything but an unchanged release.

    >>> import pandas as pd, pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("x", "boolean"), pdprivacy.Column("y", "boolean")))
    >>> private = pdprivacy.protect(pd.DataFrame({"x": [True], "y": [False]}), domain, epsilon=1)
    >>> table = to_frame(private.dp.crosstab("x", "y", epsilon=0.5))
    >>> list(table.index.names), table.shape
    (['x', 'y'], (4, 4))
    """
    view = View.of(check_release(released, "written"))
    release, width = view.released, view.table.shape[1]
    parts = [release.to_numpy().ravel(), *[np.full(release.size, np.nan)] * 3]
    if not view.selected and np.isfinite(view.half).any():
        intervals: Any = metadata.interval(release)
        parts = [intervals.iloc[:, at : at + width].to_numpy().ravel() for at in range(0, 4 * width, width)]
    index = metadata.cell_labels(release.axes)
    return pd.DataFrame(dict(zip(PIECES, parts, strict=True)), index=index).infer_objects()


def markdown(released: Any, *, note: bool = True) -> str:
    """Return a release as a table in Markdown, each number with its margin of error.

    ``note``: whether a line below the table says what was released, what ± means, the cost, and the
    disclosure risk.

    Raises MetadataError for anything but an unchanged release.

    >>> import pandas as pd, pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=120),))
    >>> private = pdprivacy.protect(pd.DataFrame({"age": [31, 54] * 500}), domain, epsilon=1)
    >>> print(markdown(private.dp.count(epsilon=0.5, rng=1), note=False))
    |      | released |   ± |
    | :--- | -------: | --: |
    | rows |      999 |   6 |
    """
    view, table = _read(released, note)
    rows = [[_in_markdown(cell) for cell in row] for row in [_heads(table), *table.rows]]
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
    rule = [f":{'-' * (n - 1)}" if at in table.left else f"{'-' * (n - 1)}:" for at, n in enumerate(widths)]
    lines = []
    for row in (rows[0], rule, *rows[1:]):
        cells = enumerate(zip(row, widths, strict=True))
        lines.append([cell.ljust(n) if at in table.left else cell.rjust(n) for at, (cell, n) in cells])
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{text}\n\n{_in_markdown(_note(view))}" if note else text


def latex(released: Any, *, note: bool = True) -> str:
    r"""Return a release as a ``tabular`` of LaTeX, each number with its margin of error.

    The document needs ``\usepackage{booktabs}``, as for `DataFrame.to_latex`. ``note``: whether a line below
    the table says what was released, what ± means, the cost, and the
    disclosure risk.

    Raises MetadataError for anything but an unchanged release.

    >>> import pandas as pd, pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=120),))
    >>> private = pdprivacy.protect(pd.DataFrame({"age": [31, 54] * 500}), domain, epsilon=1)
    >>> print(latex(private.dp.count(epsilon=0.5, rng=1), note=False))
    \begin{tabular}{lrr}
    \toprule
     & released & $\pm$ \\
    \midrule
    rows & 999 & 6 \\
    \bottomrule
    \end{tabular}
    """
    view, table = _read(released, note)
    spec = "".join("l" if at in table.left else "r" for at in range(len(_heads(table))))
    above = [[_spanning(span) for span in row] for row in table.above]
    head = [*above, *([[_in_latex(cell) for cell in table.head]] if table.head else [])]
    body = [[_in_latex(cell) for cell in row] for row in table.rows]
    lines = [r"\toprule", *map(_line, head), r"\midrule", *map(_line, body), r"\bottomrule"]
    text = "\n".join([rf"\begin{{tabular}}{{{spec}}}", *lines, r"\end{tabular}"])
    return f"{text}\n\\par\\smallskip{{\\footnotesize {_in_latex(_note(view))}\\par}}" if note else text


def excel(released: Any, path: str | os.PathLike[str]) -> None:
    """Write a release to an Excel workbook: each number, and its margin of error in a column of its own.

    Numbers stay numbers, to 15 digits, shown to the place of their margin of error. A second sheet
    holds cost, mechanism and error. An existing file is replaced. Needs openpyxl (extra ``excel``).

    Raises
    ------
    MetadataError : the frame is no release, or was changed.
    ParameterError : a path that does not end in ``.xlsx``, or a file that cannot be written.
    MissingExtraError : openpyxl is not installed.
    """
    view, table = _read(released)
    name = checks.path(path, "path", WORKBOOK)
    if not name.lower().endswith(".xlsx"):
        raise ParameterError(f"'path' must end in .xlsx (got {got(os.path.basename(name))}).", WORKBOOK)
    try:
        from openpyxl import Workbook
    except ImportError:
        raise MissingExtraError(
            "Excel workbooks are written with openpyxl.", 'pip install "pdprivacy[excel]".'
        ) from None
    book, buffer = Workbook(), io.BytesIO()
    for title, rows in (("release", _numbers(view, table)), ("metadata", _facts(view))):
        sheet = book.create_sheet(title)
        for row, cells in enumerate(rows, 1):
            for column, value in enumerate(cells, 1):
                _put(sheet.cell(row, column), *value)
    book.remove(book.worksheets[0])
    book.save(buffer)
    write_or_refuse({Path(name): buffer.getvalue()}, WORKBOOK)


# ---------------------------------------------------------------- tables


def _read(released: Any, note: Any = True) -> tuple[View, Table]:
    """Return the view of an unchanged release, and its numbers as a table of text."""
    checks.flag(note, "note")
    view = View.of(check_release(released, "written"))
    rows, columns = view.table.shape
    return view, view.grid(ShownCells(list(range(rows)), list(range(columns)), (rows, columns)))


def _heads(table: Table) -> list[str]:
    """Return one line of heads: the labels of all levels of a column in one text."""
    names = [str(header) for header in table.head] or [""] * table.heads
    levels = []
    for row in table.above:
        title, *parts = [text for header in row for text in [str(header.text)] * header.columns][
            table.heads - 1 :
        ]
        levels.append([f"{title}: {part}" if title else part for part in parts])
    labels = map(", ".join, zip(*levels, strict=True)) if levels else names[table.heads :]
    return [*names[: table.heads], *labels]


def _note(view: View) -> str:
    """Return what a reader of the numbers has to know."""
    error = view.error if view.span or view.selected else "The error is not known"
    sentences = [f"{view.title} {view.records}".rstrip(), error.rstrip(".")]
    sentences += [view.part.capitalize()] * bool(view.part)
    sentences += [f"Cost: {view.cost}" + f" for all {view.all_numbers:,} numbers" * bool(view.part)]
    if view.risk:
        sentences.append(f"Risk: {view.risk.rstrip('.')}")
    if view.facts.seeded is not False:
        sentences.append(SEEDED.capitalize())
    return f"{'. '.join(sentences)}."


def _in_markdown(text: object) -> str:
    return _MARKDOWN.sub(lambda sign: f"\\{sign[0]}", str(text))


def _in_latex(text: object) -> str:
    escaped = _LATEX.sub(lambda sign: _LATEX_SIGNS.get(sign[0], sign[0] + "{}"), str(text))
    return re.sub(r"^-(?=[\d.])", "$-$", escaped)


def _spanning(span: Spanning) -> str:
    text = _in_latex(span.text)
    return text if span.columns == 1 else rf"\multicolumn{{{span.columns}}}{{c}}{{{text}}}"


def _line(cells: Iterable[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


# ---------------------------------------------------------------- spreadsheets

Cells: TypeAlias = list[tuple[Any, ...]]
"""The values of a row, those that have a margin of error with their text elsewhere."""


def _numbers(view: View, table: Table) -> list[Cells]:
    """Return head and rows of the sheet of numbers."""
    shape, index = view.table.shape, view.table.index
    pairs = view.pairs(range(shape[0]), range(shape[1]))
    width = 1 + any(error for line in pairs for _, error in line)
    heads = _heads(table)
    labels, names = heads[: table.heads], heads[table.heads :][: shape[1]]
    head = [*labels, *(text for name in names for text in (name, f"± {name}")[:width])]
    rows: list[Cells] = [[(text,) for text in head]]
    levels = [index.get_level_values(level).tolist() for level in range(index.nlevels)]
    columns = [view.table.iloc[:, position].tolist() for position in range(shape[1])]
    for position, line in enumerate(pairs):
        cells: Cells = [(level[position],) for level in levels]
        for column, (number, error) in zip(columns, line, strict=True):
            # the error of a date is a text with its unit, that of a number that is all noise the limits
            text = "unit" in view.facts.error or error.startswith(UNKNOWN)
            half = float(error.replace(",", "")) if error and not text else error
            cells += ((column[position], number if error else ""), (half, error))[:width]
        rows.append(cells)
    return rows


def _facts(view: View) -> list[Cells]:
    """Return the rows of the sheet of metadata."""
    seeded = [] if view.facts.seeded is False else [("", SEEDED)]
    return [[(text,) for text in row] for row in (("release", view.title), *seeded, *view.rows)]


def _put(cell: Any, value: Any, shown: str = "") -> None:
    """Write a value into a cell; all but finite numbers as text, which is never read as a formula.

    ``shown``: the text of the number elsewhere, for as many digits.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        cell.value = value
        decimals = len(shown.partition(".")[2])
        if shown and "e" not in shown:
            cell.number_format = "#,##0" + "." * (decimals > 0) + "0" * decimals
    elif text := plain(value):
        cell.value, cell.data_type = text, "s"
        cell.quotePrefix = text.startswith("=")


short_public(sys.modules[__name__], ("excel", "latex", "markdown", "to_frame"))
