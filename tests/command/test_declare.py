"""The skeleton of a declaration: made of names and kinds, and of no cell."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import runpy
import string
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdprivacy
from pdprivacy import Budget
from pdprivacy.command import declare, main
from pdprivacy.command.declare import skeleton
from pdprivacy.errors import DeclarationError, ParameterError

CANARY = "Zoltan-8831"
TABLE = """\
age,pay,region,member,nothing
31,1200.5,north,True,
,900,south,,
54,,north,false,
"""
KINDS = {"age": "number", "pay": "number", "region": "text", "member": "truth", "nothing": "number"}
FILLED = (("ge(...)", "ge(0)"), ("le(...)", "le(5000)"), ("isin([...])", 'isin(["north", "south"])'))


class Done(NamedTuple):
    """The output of a command, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(capsys):
    """The command line in this process."""

    def run(*arguments: object) -> Done:
        capsys.readouterr()
        return Done(main(["declare", *map(str, arguments)]), *capsys.readouterr())

    return run


@pytest.fixture
def table(tmp_path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    return path


def schema_of(text: str) -> pa.DataFrameSchema:
    """The schema of the file, imported."""
    names: dict[str, object] = {}
    exec(compile(text, "schema.py", "exec"), names)
    schema = names["schema"]
    assert isinstance(schema, pa.DataFrameSchema)
    return schema


def filled(text: str) -> str:
    for blank, value in FILLED:
        text = text.replace(blank, value)
    return text


def kinds_of(text: str) -> dict[str, str]:
    """The kind of each column that is declared, told by its dtype and checks."""
    kinds = {}
    for name, column in schema_of(text).columns.items():
        assert column.metadata == {"dp": {}}
        checks = {check.name: check.statistics for check in column.checks}
        if "isin" in checks:
            assert checks == {"isin": {"allowed_values": [...]}}
            kinds[name] = "text" if column.dtype is not None else "label"
        elif checks:
            assert checks == {
                "greater_than_or_equal_to": {"min_value": ...},
                "less_than_or_equal_to": {"max_value": ...},
            }
            assert column.coerce
            kinds[name] = {"float64": "number", "Int64": "whole"}[str(column.dtype)]
        else:
            assert (str(column.dtype), column.coerce) == ("boolean", True)
            kinds[name] = "truth"
    return kinds


def of_cells(text: str, **options) -> dict[str, str]:
    """The kinds of a CSV file with this content."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        path.write_text(text, encoding="utf-8", newline="")
        return dict(declare.of_csv(str(path), **options))


# ------------------------------------------------------------------ names and kinds, and nothing else


def test_a_skeleton_holds_names_kinds_and_blanks(run, table):
    result = run(table)
    assert (result.returncode, result.stderr) == (0, "")
    assert kinds_of(result.stdout) == KINDS
    for cell in ("31", "54", "1200", "900", "north", "south"):
        assert cell not in result.stdout
    assert "in all rows" in result.stdout


def test_the_file_says_what_it_tells_of_the_data_and_what_it_does_not(run, table):
    words = " ".join(run(table).stdout.split())
    for piece in (
        "WITHOUT looking at the data",
        "The kind depends on the cells: one word makes a column of numbers text.",
        "Blanks and fractions change nothing here.",
        "A date is text.",
        "nullable=True",
    ):
        assert piece in words


_CELLS = {
    "number": st.one_of(
        st.integers(-(10**15), 10**15).map(str),
        st.floats(-1e15, 1e15, allow_nan=False).map(repr),
    ),
    "truth": st.sampled_from(["True", "False", "true", "FALSE"]),
    "text": st.text(string.ascii_letters + " ,\"'\n#é", min_size=1, max_size=12).map(lambda text: f"q{text}"),
}


def drawn(data, names: list[str], kinds: list[str]) -> str:
    """A table of such cells and blanks, in which each column has at least one cell."""
    rows = data.draw(st.integers(1, 6))
    cells = []
    for kind in kinds:
        column = [data.draw(st.one_of(st.just(""), _CELLS[kind])) for _ in range(rows)]
        column[data.draw(st.integers(0, rows - 1))] = data.draw(_CELLS[kind])
        cells.append(column)
    written = io.StringIO()
    csv.writer(written).writerows([names, *zip(*cells, strict=True)])
    return written.getvalue()


@given(st.data(), st.lists(st.sampled_from(sorted(_CELLS)), min_size=2, max_size=4), st.integers(1, 3))
def test_tables_of_the_same_names_and_kinds_have_the_same_skeleton(data, kinds, at_once):
    names = [f"column {number}" for number in range(len(kinds))]
    texts = []
    for _ in range(2):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(declare, "ROWS_AT_ONCE", at_once)
            by_name = of_cells(drawn(data, names, kinds))
        texts.append(skeleton(by_name.items(), "read"))
    assert texts[0] == texts[1] == skeleton(zip(names, kinds, strict=True), "read")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("1\n2\n3", "1\n\n3\n"),  # a blank, which makes float64 of int64 in pandas
        ("1\n2\n3", "1\n2.5\n3"),  # a fraction, which does as well
        ("1\n2\n3", "1\n2\n3\n4"),
        ("1\n2", "-1e300\n9007199254740993"),
        ("1\n2", "inf\nnan"),
        ("True\nFalse", "True\n\nFalse"),  # which makes object of bool
        ("a\nb", "c\n\n"),
        ("a\nb", "a\n5"),
        ("True\nx", "x\ny"),
    ],
)
def test_one_cell_more_or_other_changes_no_kind_as_it_changes_a_dtype(before, after):
    first, second = (
        of_cells("x,y\n" + "".join(f"{cell},0\n" for cell in cells.split("\n"))) for cells in (before, after)
    )
    assert first == second
    assert set(first) == {"x", "y"}


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_a_kind_holds_for_all_rows(at_once, monkeypatch):
    monkeypatch.setattr(declare, "ROWS_AT_ONCE", at_once)
    cells = "\n".join(["1,True,,7"] * 4)
    assert of_cells(f"a,b,c,d\n{cells}\nx,2,,\n") == {"a": "text", "b": "text", "c": "number", "d": "number"}
    assert of_cells(f"a,b,c,d\n{cells}\nx,2,,\n", rows=4)["a"] == "number"


def test_a_table_is_read_in_pieces(run, table, monkeypatch):
    lengths = []

    def joined(known, cells):
        lengths.append(len(cells))
        return known

    monkeypatch.setattr(declare, "ROWS_AT_ONCE", 2)
    monkeypatch.setattr(declare, "_kind_with_more_cells", joined)
    assert run(table).returncode == 0
    assert lengths == [2] * 5 + [1] * 5


def test_the_first_rows_alone_are_read_where_that_is_asked(run, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n3,4\nx,y\n")
    result = run(path, "--rows", 2)
    assert kinds_of(result.stdout) == {"a": "number", "b": "number"}
    assert "in the first 2 rows" in result.stdout
    assert kinds_of(run(path).stdout) == {"a": "text", "b": "text"}


def test_a_table_without_rows_is_of_texts(run, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n")
    assert kinds_of(run(path).stdout) == {"a": "text", "b": "text"}


def test_no_column_is_taken_for_an_identifier(run, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("person_id,ssn,email\n1,2,a\n")
    assert kinds_of(run(path).stdout) == {"person_id": "number", "ssn": "number", "email": "text"}
    assert "identifier" not in run(path).stdout.replace("quasi_identifier", "")


NAMED = "person_id,email,birthdate,visit_date,updated_at,region,identity,band,age,day\n1,a,b,c,d,e,f,g,2,3\n"


def hints(text: str) -> dict[str, str]:
    """The comments on columns, by name."""
    lines = [line for line in text.split("import pandera", 1)[1].splitlines() if "  # " in line]
    return {line.split('"')[1]: line.partition("  # ")[2] for line in lines}


def test_names_and_kinds_alone_hint_at_persons_and_dates(run, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(NAMED)
    hinted = hints(run(path).stdout)
    assert set(hinted) == {"person_id", "email", "birthdate", "visit_date", "updated_at"}
    assert 'unit="person_id", max_rows=' in hinted["person_id"]
    assert '--dates "visit_date"' in hinted["visit_date"]
    path.write_text(NAMED.replace(",c,", ",2024-05-06,").replace(",b,", ",1980-01-01,"))
    assert hints(run(path).stdout) == hinted  # whatever the cells are


def test_columns_of_dates_are_declared_between_dates(run, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(NAMED)
    text = run(path, "--dates", "visit_date", "--dates", "updated_at").stdout
    columns = schema_of(text).columns
    for name, column in columns.items():
        assert (str(column.dtype) == "datetime64[ns]") == (name in ("visit_date", "updated_at"))
    assert {check.name for check in columns["visit_date"].checks} == {
        "greater_than_or_equal_to", "less_than_or_equal_to"
    }  # fmt: skip
    assert 'pd.to_datetime(df[NAME], format="%Y-%m-%d", errors="coerce")' in text
    assert "pd.to_datetime" not in run(path).stdout
    only = pa.DataFrameSchema({"visit_date": columns["visit_date"]})
    assert 'pa.Check.ge(pd.Timestamp("2020-01-01"))' in refused(lambda: pdprivacy.read_schema(only)).hint
    assert "'--dates' names no column of the file (got 'left')" in failed(run(path, "--dates", "left"))


def test_a_decimal_comma_makes_numbers(run, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("pay;share;word\n1200,5;0,25;a,b\n900;1;c\n")
    comma = kinds_of(run(path, "--sep", ";", "--decimal", ",").stdout)
    assert comma == {"pay": "number", "share": "number", "word": "text"}
    assert kinds_of(run(path, "--sep", ";").stdout)["pay"] == "text"
    assert '--sep ";" --decimal ","' in failed(run(path, "--decimal", ","))
    for sign in ("", ",,", "1", "-", "x"):
        assert "'--decimal' must be one sign" in failed(run(path, "--sep", ";", f"--decimal={sign}"))


# ------------------------------------------------------------------ blanks


def refused(use) -> DeclarationError:
    with pytest.raises(DeclarationError) as caught:
        use()
    assert caught.value.hint
    return caught.value


def test_a_skeleton_that_is_not_filled_in_is_refused_by_the_names_of_columns(run, table):
    schema = schema_of(run(table).stdout)
    budget = Budget(1)
    frame = pd.read_csv(table)
    for use in (lambda: pdprivacy.read_schema(schema), lambda: frame.dp.protect(schema, budget=budget)):
        error = refused(use)
        assert "column 'age' is not filled in yet (pa.Check.ge(...), pa.Check.le(...))" in str(error)
        assert "nor are 'pay', 'region', 'nothing'" in str(error)
        assert "pa.Check.ge(0), pa.Check.le(120)" in error.hint
        assert "without the data" in error.hint
    assert len(budget.entries) == 0


@pytest.mark.parametrize("on_invalid", ["raise", "clip", "drop"])
def test_every_single_blank_is_found(run, table, on_invalid):
    text = run(table).stdout
    head, body = text.split("import pandera")
    spans = [match.span() for match in re.finditer(r"\.\.\.", body)]
    assert len(spans) == 2 * 3 + 1
    for start, end in spans:
        marked = f"{body[:start]}BLANK{body[end:]}"
        code = head + "import pandera" + filled(re.sub(r"\((\[?)\.\.\.", r"(\g<1>0", marked))
        code = code.replace("[0]", '["north", "south"]').replace("ge(0)", "ge(0)").replace("le(0)", "le(9e9)")
        schema = schema_of(code.replace("BLANK", "..."))
        (name,) = [name for name in KINDS if f'"{name}"' in body[:start].splitlines()[-1]]
        protect = partial(pd.read_csv(table).dp.protect, schema, epsilon=1, on_invalid=on_invalid)
        error = refused(protect)
        assert f"column {name!r} is not filled in yet" in str(error)
        assert "nor are" not in str(error)


def test_a_blank_in_a_column_that_is_not_released_is_refused_too():
    schema = pa.DataFrameSchema(
        {
            "age": pa.Column(float, pa.Check.in_range(0, 120), metadata={"dp": {}}),
            "city": pa.Column(str, pa.Check.isin([...])),
        }
    )
    assert "column 'city'" in str(refused(lambda: pdprivacy.read_schema(schema)))


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ({"bounds": [0, ...]}, '"bounds": [0, 120]'),
        ({"bounds": ...}, '"bounds": [0, 120]'),
        ({"bins": [0, ..., 9]}, '"bins": [0, 18, 65, 120]'),
        ({"categories": ["a", ...]}, '"categories": ["no", "yes"]'),
        ({"role": ...}, '"quasi_identifier" or "sensitive"'),
    ],
)
def test_blanks_of_metadata_are_found(option, says):
    schema = pa.DataFrameSchema({"x": pa.Column(float, metadata={"dp": option})})
    assert says in refused(lambda: pdprivacy.read_schema(schema)).hint


def test_blanks_are_found_in_models_and_in_schemas_of_polars():
    polars = pytest.importorskip("pandera.polars")

    class Model(pa.DataFrameModel):
        age: float = pa.Field(ge=..., metadata={"dp": {}})

    checks = [polars.Check.ge(0), polars.Check.le(...)]
    other = polars.DataFrameSchema({"age": polars.Column(float, checks, metadata={"dp": {}})})
    assert "pa.Check.ge(...)" in str(refused(lambda: pdprivacy.read_schema(Model)))
    assert "(pa.Check.le(...))" in str(refused(lambda: pdprivacy.read_schema(other)))


def test_a_skeleton_that_is_filled_in_protects_the_table_it_was_made_of(run, table):
    schema = schema_of(filled(run(table).stdout).replace("metadata", "nullable=True, metadata"))
    private = pd.read_csv(table).dp.protect(schema, epsilon=10**7)
    assert private.dp.mean("pay", epsilon=10**6, rng=1)["pay"] == pytest.approx(1050.25, abs=0.1)
    assert private.dp.count("age", epsilon=1000, rng=1)["age"] == 2
    assert private.dp.value_counts("region", epsilon=1000, sort=False, rng=1).tolist()[:2] == [2, 1]
    assert private.dp.value_counts("member", epsilon=1000, sort=False, rng=1).tolist() == [1, 1, 1]


# ------------------------------------------------------------------ names


def names_in(text: str) -> list[str]:
    return list(schema_of(text).columns)


ODD = [
    'say "when"', "it's", "back\\slash", "tab\there", "class", "1st", "größe", "年齢",
    "a b", "{x}", "...", "f'{1}'", "\u202eright", "#", "\U0001f600", '"""', "%s", "{read}", "x.1", "None",
]  # fmt: skip


def test_odd_names_are_written_as_pandas_reads_them(run, tmp_path):
    path = tmp_path / "table.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([ODD, ["1"] * len(ODD)])
    text = run(path).stdout
    assert names_in(text) == list(pd.read_csv(path).columns) == ODD


@pytest.mark.full
def test_names_are_written_so_that_python_reads_them_whatever_the_output_is(tmp_path):
    path = tmp_path / "table.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([ODD, ["1"] * len(ODD)])
    # the process begins with ASCII; the others are what it would begin with elsewhere
    code = """
import io, sys
from pdprivacy.command import main
for encoding in ("latin-1", "cp1252", "utf-8"):
    held, sys.stdout = sys.stdout, io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding)
    assert main(sys.argv[1:]) == 0
    sys.stdout.flush()
    sys.stdout = held
    print(end="\\0", flush=True)
sys.exit(main(sys.argv[1:]))
"""
    process = subprocess.run(
        [sys.executable, "-c", code, "declare", str(path)],
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    texts = process.stdout.decode("utf-8").split("\0")
    assert len(texts) == 4
    for text in texts:
        assert names_in(text) == ODD


@given(st.lists(st.text(max_size=8), min_size=2, max_size=4))
def test_any_names_are_those_of_pandas_or_refused(names):
    written = io.StringIO()
    csv.writer(written).writerows([names, ["1"] * len(names)])
    try:
        text = written.getvalue()
        columns = of_cells(text, header=True)
    except (ParameterError, UnicodeEncodeError):
        assert (
            "\0" in text or "\ufffd" in text or not text.isascii() or text.count("\r") + text.count("\n") > 4
        ) or re.search("[\x01-\x08\x0b-\x1f\x7f]", "".join(names))
        return
    read = pd.read_csv(io.StringIO(text))
    if isinstance(read.index, pd.RangeIndex):
        assert names_in(skeleton(columns.items(), "")) == list(read.columns) == list(columns)


@pytest.mark.parametrize("header", [(), ("--header",)], ids=["plain", "header"])
@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('name,"notes\nAnn CANARY,"ill"\nBob,x\n', ()),
        ("name,notes\x1eAnn,CANARY\x1e", ()),
        ("name,notes\nAnn,CANARY\n" * 40, ("--encoding", "cp037")),
    ],
    ids=["a quote left open", "other ends of lines", "another encoding"],
)
def test_cells_that_were_read_as_names_are_not_shown(run, tmp_path, text, options, header):
    path = tmp_path / "table.csv"
    path.write_text(text)
    result = run(path, *options, *header)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "Hint: " in result.stderr
    assert not [
        canary for canary in ("CANARY", "Ann", text.encode().decode("cp037")[:9]) if canary in result.stderr
    ]


def test_names_that_repeat_or_are_missing_are_those_that_pandas_gives(run, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,a,,a.1,\n1,2,3,4,5\n")
    names = names_in(run(path).stdout)
    assert names == list(pd.read_csv(path).columns)
    assert len(set(names)) == 5


# ------------------------------------------------------------------ files


@pytest.mark.parametrize(
    ("content", "arguments"),
    [
        (TABLE.replace(",", ";").encode(), ["--sep", ";"]),
        (TABLE.replace(",", "\t").encode(), ["--sep", "tab"]),
        (TABLE.replace(",", "\t").encode(), ["--sep", "\\t"]),
        (b"\xef\xbb\xbf" + TABLE.encode(), []),
        (TABLE.encode("utf-16"), ["--encoding", "utf-16"]),
        (TABLE.replace("north", "nörd").encode("cp1252"), ["--encoding", "cp1252"]),
        (TABLE.replace("\n", "\r\n").encode(), []),
    ],
)
def test_tables_of_other_signs_are_read(run, tmp_path, content, arguments):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    assert kinds_of(run(path, *arguments).stdout) == KINDS


def test_compressed_tables_and_the_input_are_read(run, table, tmp_path, monkeypatch):
    whole = run(table).stdout
    packed = tmp_path / "table.csv.gz"
    packed.write_bytes(gzip.compress(TABLE.encode()))
    assert run(packed).stdout == whole
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TABLE.encode())))
    assert run("-").stdout == whole


def failed(result: Done) -> str:
    """The error of a failed command: one line with a hint, and nothing on the output."""
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert " Hint: " in result.stderr
    assert CANARY not in result.stderr
    assert "8831" not in result.stderr
    return result.stderr


BAD = {
    "empty": (b"", [], "is empty"),
    "blank lines": (b"\n\n\n", [], "is empty"),
    "no text": (b"\x89PNG\r\n\x1a\n\0\0\0" + bytes(range(256)), [], "is not a text file"),
    "no text at all": (b"\x89\xff\xfe,\xfd\n1,2\n", [], "--encoding"),
    "zeros": (b"\0" * 3000, [], "is not a text file"),
    "zeros in names": (b"a\0b,c\n1,2\n", [], "is not a text file"),
    "zeros of UTF-16": ("age,pay\n1,2\n".encode("utf-16-le"), [], "is not a text file"),
    "another encoding": ("größe,x\n1,2\n".encode("cp1252"), [], '--encoding "cp1252"'),
    "no encoding": (TABLE.encode(), ["--encoding", "none"], "--encoding"),
    "semicolons": (TABLE.replace(",", ";").encode(), [], '--sep ";"'),
    "tabs": (TABLE.replace(",", "\t").encode(), [], '--sep "tab"'),
    "long sign": (TABLE.encode(), ["--sep", ";;"], "'--sep' must be one sign"),
    "no sign": (TABLE.encode(), ["--sep="], "'--sep' must be one sign"),
    "no rows": (TABLE.encode(), ["--rows", "0"], "'--rows' must be a positive"),
    "more fields": (f"a,b\n1,2\n3,{CANARY},5,6\n".encode(), [], "line 3 of"),
    "more fields in all": (f"a,b\n1,{CANARY},5\n".encode(), [], "more fields than there are names"),
    "no end of a quote": (f'a,b\n"{CANARY},1\n'.encode(), [], "never closed"),
    "numbers first": (b"8831,north\n12,south\n", [], "field 1 of it"),
    "a date first": (b"x,2024-05-06\n1,2\n", [], "field 2 of it"),
    "a truth value first": (b"x,y,True\n1,2,False\n", [], "field 3 of it"),
    "an address first": (f"x,{CANARY}@example.org\n1,2\n".encode(), [], "field 2 of it"),
    "a sum first": (b"x,$1'883.10\n1,2\n", [], "field 2 of it"),
    "lines of JSON": (b'{"age": 31; "name": "Zoltan-8831"}\n', [], "--"),
    "a page": (b"<html>\n<p>8831</p>\n", [], "field 1 of it"),
}


@pytest.mark.parametrize("bad", BAD)
def test_an_invalid_table_is_refused_without_a_cell(run, tmp_path, bad):
    content, arguments, says = BAD[bad]
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    assert says in failed(run(path, *arguments))
    assert says in failed(run(path, *arguments, "--output", tmp_path / "schema.py"))
    assert not (tmp_path / "schema.py").exists()


def test_names_that_look_like_values_are_taken_where_that_is_said(run, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("country,2019,2020\nx,1,2\n")
    assert "add --header" in failed(run(path))
    assert names_in(run(path, "--header").stdout) == ["country", "2019", "2020"]


def test_an_invalid_file_is_refused(run, tmp_path):
    assert "There is no file" in failed(run(tmp_path / "none.csv"))
    assert "is a folder" in failed(run(tmp_path))
    assert "cannot be read" in failed(run("a\0b"))
    damaged = tmp_path / "table.csv.gz"
    damaged.write_bytes(gzip.compress(TABLE.encode() * 50)[:40])
    assert "cannot be read" in failed(run(damaged))
    damaged.write_text("no archive")
    assert "cannot be read" in failed(run(damaged))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a user who may not read all")
def test_unreadable_files_are_refused(run, table):
    table.chmod(0)
    assert "Permission denied" in failed(run(table))


# ------------------------------------------------------------------ output


def test_the_output_file_is_new_and_whole(run, table, tmp_path):
    path = tmp_path / "schema.py"
    result = run(table, "--output", path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert path.read_text(encoding="utf-8") == run(table).stdout
    path.write_text("mine")
    assert "exists already. Nothing was written." in failed(run(table, "--output", path))
    assert path.read_text() == "mine"
    assert "cannot be written" in run(table, "--output", tmp_path / "no" / "schema.py").stderr


@pytest.mark.full
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_output_that_is_full_is_told(table):
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "pdprivacy", "declare", str(table)],
            stdout=full, stderr=subprocess.PIPE, encoding="utf-8", timeout=120, check=False,
        )  # fmt: skip
    assert (process.returncode, process.stderr) == (
        2,
        "The output could not be written: No space left on device.\n",
    )


@pytest.mark.full
def test_the_command_of_the_readme_makes_a_file_that_imports(table, tmp_path):
    path = tmp_path / "schema.py"
    with path.open("w") as output:
        subprocess.run(
            [sys.executable, "-m", "pdprivacy", "declare", str(table)], stdout=output, timeout=120, check=True
        )
    path.write_text(filled(path.read_text()))
    schema = runpy.run_path(str(path))["schema"]
    assert list(pdprivacy.read_schema(schema)) == list(KINDS)


def test_the_version_is_that_of_the_package(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pdprivacy {pdprivacy.__version__}\n"


@pytest.mark.parametrize(
    "arguments", [[], ["a", "b"], ["a", "--row", "3"], ["a", "--rows", "x"]], ids=" ".join
)
def test_an_unknown_command_is_explained(run, arguments):
    result = run(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("usage: python -m pdprivacy ")


# ------------------------------------------------------------------ Parquet


@pytest.fixture
def parquet(tmp_path) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as files

    cells = {
        "whole": pyarrow.array([8831, None], pyarrow.int32()),
        "number": pyarrow.array([0.8831, None], pyarrow.float32()),
        "money": pyarrow.array([None, None], pyarrow.decimal128(9, 2)),
        "truth": pyarrow.array([True, None]),
        "text": pyarrow.array([CANARY, None]),
        "label": pyarrow.array([CANARY, None]).dictionary_encode(),
        "day": pyarrow.array([8831, None], pyarrow.date32()),
        "time": pyarrow.array([8831, None], pyarrow.timestamp("us", tz="UTC")),
        "list": pyarrow.array([[8831], None]),
        "bytes": pyarrow.array([b"8831", None]),
        "größe": pyarrow.array([1, 2]),
    }
    path = tmp_path / "table.parquet"
    files.write_table(pyarrow.table(cells), path)
    return path


def test_a_skeleton_of_parquet_is_of_its_schema(run, parquet):
    result = run(parquet)
    assert (result.returncode, result.stderr) == (0, "")
    assert kinds_of(result.stdout) == {
        "whole": "whole", "number": "number", "money": "number", "truth": "truth", "text": "text",
        "label": "label", "day": "label", "time": "label", "größe": "whole",
    }  # fmt: skip
    assert '# "list" is of a type that is not released' in result.stdout
    assert '# "bytes" is of a type' in result.stdout
    assert "No row was read" in result.stdout
    assert CANARY not in result.stdout
    assert "8831" not in result.stdout


def test_no_row_of_parquet_is_read(run, parquet):
    before = run(parquet).stdout
    content = bytearray(parquet.read_bytes())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    content[4:footer] = bytes(footer - 4)
    parquet.write_bytes(content)
    with pytest.raises(Exception, match=r"."):
        pd.read_parquet(parquet)
    assert run(parquet).stdout == before


def test_a_skeleton_of_parquet_protects_what_pandas_reads(run, parquet):
    text = run(parquet).stdout
    text = text.replace("ge(...)", "ge(0)").replace("le(...)", "le(9000)")
    text = text.replace("isin([...])", f"isin([{CANARY!r}])").replace("metadata", "nullable=True, metadata")
    code = "\n".join(
        line for line in text.splitlines() if not line.lstrip().startswith(('"day', '"time', '"mon'))
    )
    private = pd.read_parquet(parquet).dp.protect(schema_of(code), epsilon=10**7)
    assert private.dp.sum("whole", epsilon=10**6, rng=1)["whole"] == pytest.approx(8831, abs=1)
    assert private.dp.value_counts("label", epsilon=100, sort=False, rng=1).tolist() == [1, 1]


def test_an_index_is_no_column_of_parquet(run, tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"age": [1, 2]}, index=pd.Index(["a", "b"], name="person"))
    frame.to_parquet(tmp_path / "table.parquet")
    assert names_in(run(tmp_path / "table.parquet").stdout) == ["age"]


def test_parquet_that_cannot_be_read_is_refused(run, parquet, monkeypatch):
    import pyarrow
    from pyarrow import parquet as files

    twice = pyarrow.table([[1], [2]], names=["a", "a"])
    files.write_table(twice, parquet)
    assert "several columns 'a'" in failed(run(parquet))
    parquet.write_bytes(b"PAR1" + b"8831" * 9)
    assert "cannot be read" in failed(run(parquet))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert "pip install pyarrow" in failed(run(parquet))
