"""A declaration to fill in: ``python -m pdprivacy declare data.csv > schema.py``.

The skeleton is made of the names and kinds of the columns of a file, and of nothing else in it. Public facts
of a column, its bounds or labels, are left blank: the author must not read them off the data.
Hints at columns that name persons or hold dates are made of names and kinds, too.

In a CSV file the names are the first line, and a kind is what holds for every cell that is read: a number, a
truth value, or else text. Blanks do not count, and neither does whether a number is whole: one cell would
change it for a whole column. In a Parquet file the schema is read, and no row.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import pandas as pd

from pdprivacy.errors import MissingExtraError, ParameterError, PrivacyError
from pdprivacy.ledger.disk import new_file

if TYPE_CHECKING:
    import pyarrow as pa


def add(tools: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of ``declare`` to those of the command line."""
    purpose = "a pandera declaration to fill in, made of the names and kinds of columns"
    parser = tools.add_parser("declare", help=purpose, description=purpose, allow_abbrev=False)
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
    """Write the skeleton, whole or not at all; errors as `of_csv` and `of_parquet`."""
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
    with new_file(chosen.output, "written", encoding="utf-8") as file:
        if chosen.output is None and (sys.stdout.encoding or "").lower().replace("-", "") != "utf8":
            # Python reads the file as UTF-8; what is not ASCII is in string literals only
            text = text.encode("ascii", "backslashreplace").decode()
        file.write(text)


_HEAD = '''\
"""Public facts about each column: a declaration to fill in, made of names and kinds alone.

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
This declaration reveals the first line of the file, and the kind of each column (numbers, truth values,
or else text) in {which}. The kind depends on the cells: one word makes a column of
numbers text. So check the kinds, too, and write what each column is meant to hold: float takes whole
numbers and fractions ("Int64" whole numbers alone, each then a cell of a table). Blanks and fractions
change nothing here. A date is text."""
_PARQUET = """\
This declaration reveals the schema of a Parquet file: names and types. No row was read.
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
    """Return a comment on a column that seems to hold names of persons, or dates."""
    if kind in ("number", "whole", "text", "label") and _PERSON.fullmatch(name):
        return f"  # names persons? Delete the line, and protect(unit={_literal(name)}, max_rows=1)"
    if kind == "date" or (kind == "text" and _DATE.fullmatch(name)):
        return f"  # dates? --dates {_literal(name)} declares them as dates"
    return ""


def _literal(name: str) -> str:
    """The name as Python writes it, on one line; with double quotes where it is plain."""
    return f'"{name}"' if name.isprintable() and '"' not in name and "\\" not in name else repr(name)


# ---------------------------------------------------------------- columns of a file

Kind: TypeAlias = Literal["number", "whole", "truth", "text", "label", "date", "other"]
"""``"whole"``, ``"label"`` (of any type), ``"date"`` and ``"other"`` (not released) are of Parquet alone."""

ROWS_AT_ONCE = 20_000
MOST_LETTERS = 200
"""The longest name of a column; a longer one is likely to be made of cells."""
_BREAKS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
"""Ends of lines, and other signs that no text has."""
_COMPRESSED = (".gz", ".bz2", ".zip", ".xz", ".zst", ".tar", ".tgz")  # which pandas opens by their names
_NAMES_FIRST = "its first line must hold the names of the columns"


class Named(NamedTuple):
    """A column: its name in a pandas frame of the file, and its kind."""

    name: str
    kind: Kind


def is_parquet(path: str) -> bool:
    """Return whether the file starts as Parquet does; ParameterError where it cannot be opened."""
    if path != "-" and Path(path).is_dir():
        raise ParameterError(f"{path!r} is a folder.", "name one file, CSV or Parquet")
    return _start(path).startswith(b"PAR1")


def _start(path: str) -> bytes:
    """Return the first bytes of a file; nothing of a pipe, which gives each byte once."""
    with _without_cells_in_errors(path):
        if path == "-" or (Path(path).exists() and not Path(path).is_file()):
            return b""
        with open(path, "rb") as file:
            return file.read(4096)


def of_csv(
    path: str,
    *,
    separator: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool = False,
    rows: int | None = None,
) -> list[Named]:
    """The columns of a CSV file, in order, as `pandas.read_csv` names them.

    It is read in pieces, so that it may be larger than memory. ``path``: "-" for the input of the process;
    compressed files are recognized by their endings. ``decimal``: the sign before the fraction of a number.
    ``header``: that the first line holds names, even if they look like values. ``rows``: how many are read,
    by default all.

    Raises
    ------
    ParameterError : no such file, or none that can be read as CSV; a first line that seems to hold values.
        No message holds anything of the file.
    """
    kinds: dict[str, Kind | None] | None = None
    options: dict[str, Any] = {"sep": separator, "decimal": decimal, "encoding": encoding, "nrows": rows}
    options |= {"chunksize": ROWS_AT_ONCE, "low_memory": False, "dtype_backend": "numpy_nullable"}
    has_rows = False
    wide = encoding.lower().startswith(("utf-16", "utf-32", "utf16", "utf32", "u16", "u32"))
    if b"\0" in _start(path) and not (wide or Path(path).suffix in _COMPRESSED):  # which pandas 2 leaves out
        raise _no_text(path)
    with _without_cells_in_errors(path), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they may hold cells
        file: Any = sys.stdin.buffer if path == "-" else path
        with pd.read_csv(file, **options) as pieces:
            for piece in pieces:
                if kinds is None:
                    kinds = dict.fromkeys(_checked(list(piece.columns), path, separator, header))
                if not isinstance(piece.index, pd.RangeIndex):  # pandas would take cells for row labels
                    raise ParameterError(
                        f"the rows of {_shown(path)} have more fields than there are names.",
                        f"{_NAMES_FIRST}, all of them; no line ends with a separator",
                    )
                has_rows = has_rows or len(piece) > 0
                for name, known in kinds.items():
                    kinds[name] = _kind_with_more_cells(known, piece[name])
    # pandas takes blanks for missing numbers, and a table of no rows for text
    return [Named(name, kind or ("number" if has_rows else "text")) for name, kind in (kinds or {}).items()]


def _kind_with_more_cells(known: Kind | None, cells: pd.Series[Any]) -> Kind | None:
    """The kind of a column of which more cells are read; None while all are blank."""
    if known == "text" or cells.isna().all():
        return known
    kind: Kind = "text"
    if pd.api.types.is_bool_dtype(cells.dtype):
        kind = "truth"
    elif pd.api.types.is_numeric_dtype(cells.dtype):
        kind = "number"
    return kind if known in (None, kind) else "text"


def _checked(names: list[str], path: str, separator: str, header: bool) -> list[str]:
    """Return the names of the first line; refuse a line that seems to hold cells, or another separator."""
    if any("\0" in name or "\ufffd" in name for name in names):
        raise _no_text(path)
    if any(len(name) > MOST_LETTERS or _BREAKS.search(name) for name in names):
        raise ParameterError(  # a quote that is never closed, or another encoding, makes a name of all cells
            f"a name in the first line of {_shown(path)} has several lines, odd signs, or no end.",
            f"{_NAMES_FIRST}, each on one line; mend its quotes, or add --encoding",
        )
    if header:
        return names
    if len(names) == 1 and (other := re.search(r"[;\t|]", names[0])) and separator not in names[0]:
        named = "tab" if other[0] == "\t" else other[0]
        raise ParameterError(
            f"{_shown(path)} seems to be separated by other than {separator!r}: its first line is one name.",
            f'add --sep "{named}", or --header where it is one name',
        )
    for position, name in enumerate(names, 1):
        if _like_a_value(name):  # it may be a cell, so it is not shown
            raise ParameterError(
                f"the first line of {_shown(path)} seems to hold values, not names (field {position} of it).",
                f"{_NAMES_FIRST}; add --header where it does",
            )
    return names


# truth values, addresses, dates; objects and lists of JSON; pages
_VALUE = re.compile(
    r"""\s*(true|false|\S+@\S+\.\w+|\d{4}-\d\d?-\d\d?.*|[{\[]\s*[{\["\d].*|<[a-z!?/].*)\s*""",
    re.IGNORECASE | re.DOTALL,
)


def _like_a_value(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        figures = any(sign.isdigit() for sign in name) and not any(sign.isalpha() for sign in name)
        return figures or _VALUE.fullmatch(name) is not None
    return True


@contextmanager
def _without_cells_in_errors(path: str) -> Iterator[None]:
    """Whatever is raised in the block as a ParameterError that holds nothing of the file."""
    fault = hint = ""
    try:
        yield
    except PrivacyError:
        raise
    except FileNotFoundError:
        fault, hint = f"There is no file {path!r}.", "check the name, or give the whole path"
    except pd.errors.EmptyDataError:
        fault, hint = f"{_shown(path)} is empty.", _NAMES_FIRST
    except pd.errors.ParserError as error:
        fault, hint = _of_parser(str(error), path)
    except UnicodeError:
        fault = f"{_shown(path)} is not text in this encoding."
        hint = 'add --encoding, such as --encoding "cp1252"; a table of another kind has to be saved as CSV'
    except LookupError:
        fault, hint = "'--encoding' must be one that Python knows.", '--encoding "cp1252"'
    except OSError as error:
        fault, hint = f"{_shown(path)} cannot be read: {error.strerror or 'it is damaged'}.", "check the file"
    except Exception:
        fault, hint = f"{_shown(path)} cannot be read as a table.", "save it as CSV or Parquet"
    if fault:  # outside the except block, so that no error that holds cells is the context
        raise ParameterError(fault, hint)


def _of_parser(text: str, path: str) -> tuple[str, str]:
    """Return the fault of a CSV file and a hint, by the numbers of its lines alone."""
    if match := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", text):
        expected, line, fields = match.groups()
        return (
            f"line {line} of {_shown(path)} has {fields} fields, where there are {expected} names.",
            'mend the line, quote cells that hold the separator, or add --sep, such as --sep ";"',
        )
    if "EOF inside string" in text:
        return f"a quote in {_shown(path)} is never closed.", "mend the file, and double quotes inside cells"
    return f"{_shown(path)} cannot be read as CSV.", "save the table as CSV or Parquet"


def _no_text(path: str) -> ParameterError:
    hint = 'save the table as CSV or Parquet; a text of wide signs needs --encoding "utf-16"'
    return ParameterError(f"{_shown(path)} is not a text file.", hint)


def _shown(path: str) -> str:
    return "the input" if path == "-" else repr(path)


def of_parquet(path: str) -> list[Named]:
    """Return the columns of a Parquet file in order, by its schema; leave out an index that pandas stored.

    Raises
    ------
    MissingExtraError : without pyarrow.
    ParameterError : a damaged file, or two columns of one name.
    """
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtraError(
            "Parquet files need pyarrow.", "pip install pyarrow, or save the table as CSV"
        ) from None
    with _without_cells_in_errors(path):
        schema = parquet.read_schema(path)
        stored = (schema.pandas_metadata or {}).get("index_columns", [])
    names = [name for name in schema.names if name not in stored]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ParameterError(f"{path!r} has several columns {twice!r}.", "give each a name of its own")
    return list(_of_fields(field for field in schema if field.name in names))


def _of_fields(fields: Iterable[pa.Field]) -> Iterator[Named]:
    from pyarrow import types

    tests: tuple[tuple[Kind, Any], ...] = (
        ("label", types.is_dictionary),
        ("truth", types.is_boolean),
        ("whole", types.is_integer),
        ("number", lambda type_: types.is_floating(type_) or types.is_decimal(type_)),
        ("text", lambda type_: str(type_) in ("string", "large_string", "string_view")),
        ("date", lambda type_: types.is_timestamp(type_) or types.is_date(type_)),
    )
    for field in fields:
        kind: Kind = next((name for name, test in tests if test(field.type)), "other")
        yield Named(field.name, kind)
