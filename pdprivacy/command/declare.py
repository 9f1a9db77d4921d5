"""A declaration to fill in: ``python -m pdprivacy declare data.csv > schema.py``.

The skeleton is made of names and kinds alone, as `pdprivacy.command.file_columns` reads them. What everybody
knows of a column, its bounds or labels, is left blank: whoever writes it must not read it off the data. Hints
at columns that name persons or hold dates are made of names and kinds, too.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Collection, Iterable

from pdprivacy.command.file_columns import Kind, Named, is_parquet, of_csv, of_parquet
from pdprivacy.command.output import written
from pdprivacy.errors import ParameterError

__all__ = ["add", "run", "skeleton"]


def add(tools: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of ``declare`` to those of the command line."""
    told = "a pandera declaration to fill in, made of the names and kinds of columns"
    parser = tools.add_parser("declare", help=told, description=told, allow_abbrev=False)
    parser.set_defaults(run=run)
    parser.add_argument(
        "path",
        metavar="FILE",
        help='CSV with the names of the columns in its first line, or Parquet; "-": input',
    )
    parser.add_argument("--sep", default=",", metavar="SIGN", help='of CSV: what parts the cells, or "tab"')
    parser.add_argument("--decimal", default=".", metavar="SIGN", help="of CSV: the sign before fractions")
    parser.add_argument(
        "--dates", action="append", default=[], metavar="NAME", help="a column of dates; may be repeated"
    )
    parser.add_argument("--encoding", default="utf-8", metavar="NAME", help="of CSV")
    parser.add_argument(
        "--header",
        action="store_true",
        help="of CSV: the first line holds names, though they look like values",
    )
    parser.add_argument("--rows", type=int, metavar="N", help="of CSV: read the first N rows only, not all")
    parser.add_argument("--output", metavar="FILE", help="a new file, in place of the output")


def run(chosen: argparse.Namespace) -> None:
    """Write the skeleton, whole or not at all; errors as `columns.of_csv` and `columns.of_parquet`."""
    separator = {"tab": "\t", "\\t": "\t"}.get(chosen.sep, chosen.sep)
    if len(separator) != 1 or separator in '"\n\r':
        raise ParameterError("'--sep' must be one sign.", '--sep ";" or --sep tab')
    if len(chosen.decimal) != 1 or chosen.decimal in '"\n\r-+' or chosen.decimal.isalnum():
        raise ParameterError("'--decimal' must be one sign.", '--decimal ","')
    if chosen.decimal == separator:
        raise ParameterError("'--decimal' and '--sep' must be different signs.", '--sep ";" --decimal ","')
    if chosen.rows is not None and chosen.rows < 1:
        raise ParameterError("'--rows' must be a positive whole number.", "--rows 10000")
    if is_parquet(chosen.path):
        text = skeleton(of_parquet(chosen.path), _PARQUET, chosen.dates)
    else:
        columns = of_csv(
            chosen.path,
            separator=separator,
            decimal=chosen.decimal,
            encoding=chosen.encoding,
            header=chosen.header,
            rows=chosen.rows,
        )
        which = "all rows" if chosen.rows is None else f"the first {chosen.rows} rows"
        text = skeleton(columns, _CSV.format(which=which), chosen.dates)
    with written(chosen.output, "written", encoding="utf-8") as file:
        if chosen.output is None and (sys.stdout.encoding or "").lower().replace("-", "") != "utf8":
            # Python reads the file as UTF-8; what is not ASCII is in string literals only
            text = text.encode("ascii", "backslashreplace").decode()
        file.write(text)


_HEAD = '''\
"""What is public about each column: a declaration to fill in, made of names and kinds alone.

Replace each ... by what everybody may know WITHOUT looking at the data: the lowest and the highest
value that a column can have, or all the labels that it can hold. Delete the line of a column that is
not to be released, such as a name or a number of a person. Then:

    private = df.dp.protect(schema, epsilon=1.0)

{read}

    nullable=True                                   beside metadata, where cells may be blank
    metadata={{"dp": {{"bins": [0, 18, 65, 120]}}}}     numbers as rows or columns of a table
    metadata={{"dp": {{"role": "quasi_identifier"}}}}   what others may know of a person
    metadata={{"dp": {{"role": "sensitive"}}}}          and would learn from a table
"""

import pandera.pandas as pa

schema = pa.DataFrameSchema(
    {{
'''
_CSV = """\
What it tells of the data is the first line of the file, and of each column whether it holds numbers,
truth values, or else text, in {which}. That depends on the cells: one word makes a column of
numbers text. So check the kinds, too, and write what each column is meant to hold: float takes whole
numbers and fractions ("Int64" whole numbers alone, each then a cell of a table). Blanks and fractions
change nothing here. A date is text."""
_PARQUET = """\
What it tells of the data is the schema of a Parquet file: names and types. No row was read.
Whole numbers are "Int64", which takes blanks, too."""

_BOUNDS = "[pa.Check.ge(...), pa.Check.le(...)]"
_OPTED_IN = 'metadata={"dp": {}}'
_LINES: dict[Kind, str] = {
    "number": f"pa.Column(float, {_BOUNDS}, coerce=True, {_OPTED_IN})",
    "whole": f'pa.Column("Int64", {_BOUNDS}, coerce=True, {_OPTED_IN})',
    "truth": f'pa.Column("boolean", coerce=True, {_OPTED_IN})',
    "text": f"pa.Column(str, pa.Check.isin([...]), {_OPTED_IN})",
    "label": f"pa.Column(None, pa.Check.isin([...]), {_OPTED_IN})",
    "date": f"pa.Column(None, pa.Check.isin([...]), {_OPTED_IN})",
}
_DATED = f'pa.Column("datetime64[ns]", {_BOUNDS}, coerce=True, {_OPTED_IN})'
_DATES = """

The columns of dates are read so that one cell does not decide how all others are read:

    df[NAME] = pd.to_datetime(df[NAME], format="%Y-%m-%d", errors="coerce")

Their bounds are dates, such as pd.Timestamp("2020-01-01"); what is no date becomes a blank."""

_LAST_WORD = r"(?:.*[\W_])?(?:{})"
_PERSON = re.compile(
    _LAST_WORD.format("id|uid|uuid|guid|ssn|iban|e_?mail|phone|passport|(?:first|last|sur)?_?name"),
    re.IGNORECASE,
)
_DATE = re.compile(
    _LAST_WORD.format("date|day|dob|birthday|birthdate|born|joined|time|timestamp|datetime|at|since"),
    re.IGNORECASE,
)


def skeleton(columns: Iterable[Named], read: str, dates: Collection[str] = ()) -> str:
    """The text of a Python file that declares these columns, every bound and label a blank.

    ``read``: what it says of how the kinds were read. ``dates``: the names of columns that hold dates.

    Raises ParameterError for a name in ``dates`` of no column.

    >>> print(skeleton([Named("age", "number")], "").splitlines()[-3])
            "age": pa.Column(float, [pa.Check.ge(...), pa.Check.le(...)], coerce=True, metadata={"dp": {}}),
    """
    known = list(columns)
    if missing := set(dates) - {name for name, _ in known}:
        raise ParameterError(
            f"'--dates' names no column of the file (got {min(missing)!r}).", "--dates NAME, for each column"
        )
    lines = [_line(name, kind, name in dates) for name, kind in known]
    return (
        _HEAD.format(read=read + _DATES * bool(dates))
        + "".join(f"        {line}\n" for line in lines)
        + "    }\n)\n"
    )


def _line(name: str, kind: Kind, dated: bool) -> str:
    if dated:
        return f"{_literal(name)}: {_DATED},"
    if kind == "other":
        return f"# {_literal(name)} is of a type that is not released"
    return f"{_literal(name)}: {_LINES[kind]},{_hint(name, kind)}"


def _hint(name: str, kind: Kind) -> str:
    """A comment on a column whose name and kind are those of a name of a person, or of dates."""
    if kind in ("number", "whole", "text", "label") and _PERSON.fullmatch(name):
        return f"  # names persons? Delete the line, and protect(unit={_literal(name)}, max_rows=1)"
    if kind == "date" or (kind == "text" and _DATE.fullmatch(name)):
        return f"  # dates? --dates {_literal(name)} declares them as dates"
    return ""


def _literal(name: str) -> str:
    """The name as Python writes it, on one line; with double quotes where it is plain."""
    return f'"{name}"' if name.isprintable() and '"' not in name and "\\" not in name else repr(name)
