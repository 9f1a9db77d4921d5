"""Frames bound to a declaration and a budget."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import pandas as pd

from pdprivacy.checks import check_name, flag, one_of, whole
from pdprivacy.core import noise
from pdprivacy.core.accounting import Accounting
from pdprivacy.core.conform import (
    Conformed,
    Fate,
    check,
    check_types,
    clipped,
    conform,
    survey,
    valid_records,
)
from pdprivacy.core.gate.copies import copied_columns
from pdprivacy.core.gate.facts import Facts, Step
from pdprivacy.core.gate.records import seal
from pdprivacy.core.privacy import Loss, Neighbors, Rational, Unit, rational
from pdprivacy.core.rows.cells import column_of, date_numbers_of_frame
from pdprivacy.core.rows.cells import whole as whole_numbers
from pdprivacy.core.rows.missing import columns_without_codes, frame_without_codes
from pdprivacy.core.statistics import Scope
from pdprivacy.declaration import schema as schemas
from pdprivacy.declaration.cell_types import declared_integers, is_float, refuse_rounded
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.errors import (
    DeclarationWarning,
    InvalidDataError,
    InvalidDataWarning,
    ParameterError,
    got,
    short_traceback,
    warn,
)
from pdprivacy.exact import EXACT
from pdprivacy.frames.answers import AnswerMemory
from pdprivacy.frames.conversions import conversion
from pdprivacy.frames.frame import ProtectedFrame
from pdprivacy.frames.second_budgets import warn_of_second_budget
from pdprivacy.frames.unit_steps import unit_name
from pdprivacy.hints.suggestions import with_hints
from pdprivacy.ledger import Budget, Ledger
from pdprivacy.ledger.budget import total_of
from pdprivacy.types import Mask

if TYPE_CHECKING:
    from pdprivacy.core.engines.other import EngineFrame, Piecewise


@short_traceback
@with_hints
def protect(
    frame: Any,
    schema: Any = None,
    *,
    columns: schemas.Overlay | None = None,
    epsilon: Rational | None = None,
    delta: Rational = 0,
    rho: Rational | None = None,
    accounting: Accounting | None = None,
    budget: Budget | Ledger | None = None,
    name: str | None = None,
    redeclare: bool = False,
    neighbors: Neighbors = "add_remove",
    public_rows: int | None = None,
    unit: Hashable = None,
    max_rows: int | None = None,
    on_invalid: Fate = "raise",
    reuse: bool = False,
    rng: noise.RandomState = None,
) -> ProtectedFrame:
    """Bind a frame to its declaration and a budget: a protected frame, with releases under ``.dp``.

    Frames of Polars, DuckDB, Dask, Spark and PyArrow stay where they are: what a release needs is computed by
    one query of the engine, and only counts and sums come back. One pass over the frame checks it against the
    declaration; pandera checks beyond the declaration are not run. A lazy frame is computed anew by each
    release, and may hold other records each time: the number of its rows is never public, and
    ``public_rows`` is refused.

    Parameters
    ----------
    frame : a pandas DataFrame; a Polars DataFrame or LazyFrame, a DuckDB relation, a Dask DataFrame, a Spark
        DataFrame (or one of its pandas API) or a PyArrow Table (extras ``polars``, ``duckdb``, ``dask``,
        ``spark``; see docs/engines.md).
    schema : a pandera ``DataFrameSchema`` or ``DataFrameModel`` of pandas, Polars or PySpark, or a
        `pdprivacy.Domain`; columns opt in by ``metadata={"dp": {...}}``. None: the schema by which pandera
        validated this pandas frame (``df.pandera.schema``).
    columns : declarations beside the schema, a dict by column of what ``metadata={"dp": {...}}`` would say:
        ``{"age": {}, "health": {"role": "sensitive"}}``. They override those of the schema key by key.
    epsilon : the total budget, for a new `pdprivacy.Budget`.
    delta : the delta of that budget.
    rho : in their place, a total in rho (zero-concentrated losses).
    accounting : how losses add up under the total: "basic" (None), "filter" or "zcdp"; see
        `pdprivacy.Budget`.
    budget : instead of these, a budget that other protections of the same data share; or a
        `pdprivacy.Ledger`, which keeps the budget called ``name`` for other processes and later days. State
        the total when the name is new; later it may be left out.
    name : the name of the data in a ledger, the same one for all protections of the same data.
    redeclare : whether the data of this name in the ledger is declared anew, with other columns, bounds or
        labels than before. Other neighbours are possible only before the first charge.
    neighbors : "add_remove" (one record more or less; the number of rows is private) or
        "replace_one" (one record with other values; the number of rows is public).
    public_rows : under "add_remove", a number of rows that everybody knows the table to have
        at least.
    unit : the column that names the privacy unit of each record, such as a person who may have several:
        neighbours then differ in all records of one unit. It need not be declared, and must not hold nulls.
    max_rows : with ``unit``, the contribution bound: so many records of each unit are kept, chosen uniformly.
        All sensitivities grow with it. `quality` says how many records were left out.
    on_invalid : what happens to values that do not meet the declaration: "raise"; "clip"
        (numbers to the nearest bound, all else raises); "drop" (the record is left out). A column of another
        type than declared is refused as a whole in each case, and so is a pandas column of objects that
        holds a cell of another type: one record may have decided how all others were read. `check` tells the
        curator beforehand what does not meet the declaration.
    reuse : whether an equal call of this frame is answered by the earlier release again, at no cost, until
        the process ends, as when a cell of a notebook is run again. Equal calls have the same method,
        arguments and row steps; for new noise, give the call another ``release_id``. Calls with a seed and
        batches with constraints are charged each time. Not for lazy frames, which may hold other records each
        time.
    rng : None, or a seed or generator for tests: the randomness that chooses the records of a unit in pandas
        frames.

    Returns
    -------
    A `pdprivacy.ProtectedFrame`, which shows no cell. It keeps a copy of the declared columns of a pandas
    frame, so that no later change of the frame reaches a release.

    Raises
    ------
    DeclarationError, InvalidDataError, ParameterError, BudgetError, LedgerError; for other engines also
    MissingExtraError and EngineError. Warns (DeclarationWarning) where a declared bound equals the data's own
    extreme, unless ``metadata={"dp": {"bounds": "public"}}`` confirms it, where a model lost a declaration of
    a class above it, for other engines where the schema checks more than is declared, and in an interactive
    session where the same frame gets a second budget. Always warns
    (InvalidDataWarning) with ``on_invalid="clip"`` and "drop", whatever the data is: how much was clipped or
    left out is in `quality`, for the curator.

    >>> import pandas as pd, pandera.pandas as pa
    >>> import pdprivacy
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> schema = pa.DataFrameSchema({"age": age})
    >>> private = pdprivacy.protect(pd.DataFrame({"age": [31, 54, 27, 39]}), schema, epsilon=1.0)
    >>> noisy = private.dp.mean("age", epsilon=0.5)
    >>> private.dp.budget.left
    (0.5, 0.0)
    """
    arguments = Arguments(
        Unit(neighbors, unit_name(unit)),
        public_rows,
        unit,
        most_rows(unit, max_rows, public_rows),
        on_invalid,
        flag(reuse, "reuse"),
    )
    open_budget = opener(epsilon, delta, rho, accounting, budget, name, redeclare)
    protected = bound_frame(frame, schema, columns, arguments, open_budget, rng)
    if budget is None:
        warn_of_second_budget(frame)
    return protected


def bound_frame(
    frame: Any,
    schema: Any,
    columns: schemas.Overlay | None,
    arguments: Arguments,
    open_budget: Callable[[Unit, str], Budget],
    rng: noise.RandomState,
) -> ProtectedFrame:
    """Bind a frame to its declaration and to the budget that ``open_budget`` opens once it is checked."""
    source, unit = noise.source(rng), arguments.unit
    if isinstance(frame, ProtectedFrame):
        raise ParameterError(
            "The frame is protected already, and losses of the same people add up.",
            "go on with it, or protect the raw frame again with budget=private.dp.budget.",
        )
    refuse_no_frame(frame)
    if isinstance(frame, pd.DataFrame):
        labels: list[Hashable] = list(frame.columns)
    else:
        from pdprivacy.core.engines.other import EngineFrame

        engine_frame = EngineFrame.of(frame)
        labels = list(engine_frame.names)
        arguments.check_engine_support(engine_frame, seeded=rng is not None)
    if unit is not None and sum(bool(label == unit) for label in labels) != 1:
        raise ParameterError("'unit' must be the label of one column of the frame.", 'unit="person_id".')
    given = schemas.schema_of(frame, "df.dp.protect(schema, epsilon=1.0)") if schema is None else schema
    declared = schemas.overlaid(given, columns)
    whole_domain = schemas.read_schema(declared)
    schemas.warn_of_lost_columns(given, whole_domain)
    domain = schemas.present(whole_domain, declared, labels)
    if unit in domain and domain[unit].missing:
        raise ParameterError(
            f"The column of the unit cannot have missing-value codes ({unit!r} has some): a record of nobody "
            "cannot be counted.",
            "leave such records out before the frame is protected, or give each a name of its own.",
        )
    fate = arguments.on_invalid
    if isinstance(fate, str) and fate in _MAY_CHANGE:
        # the warning precedes all reads, so that it depends on no cell
        warn(_MAY_CHANGE[fate], InvalidDataWarning)
    if isinstance(frame, pd.DataFrame):
        return _of_pandas(frame, declared, domain, arguments, open_budget, source)
    return _of_engine(engine_frame, declared, domain, arguments, open_budget)


_MAY_CHANGE = {
    "clip": 'on_invalid="clip" moves numbers that are out of bounds to the nearest bound, however many there '
    "are. private.dp.quality() tells the curator how many.",
    "drop": 'on_invalid="drop" leaves out records that do not meet the declaration, however many there are. '
    "private.dp.quality() tells the curator how many.",
}


def refuse_no_frame(frame: Any) -> None:
    """Refuse an object that is not a frame of any engine, whether other engines are installed or not."""
    code = None if isinstance(frame, pd.DataFrame) else conversion(frame)
    if code is not None:
        raise ParameterError(
            "'frame' must be a frame of Polars, DuckDB, Dask, Spark, PyArrow or pandas "
            f"(got {type(frame).__module__.partition('.')[0]}.{type(frame).__name__}).",
            code,
        )


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments of a protection, without those of the budget.

    ``names``: where the unit of each record is noted by its name, for tables that are protected together.
    ``title``: the name of such a table.
    """

    whose: Unit
    public_rows: Any
    unit: Hashable
    most: int
    on_invalid: Fate
    reuse: bool = False
    names: list[pd.Series[Any]] | None = None
    title: str | None = None

    def check_engine_support(self, source: EngineFrame, *, seeded: bool) -> None:
        """Refuse arguments that frames of other engines do not support."""
        if seeded:
            raise ParameterError(
                f"'rng' is for pandas frames: {source.engine} draws the records of a unit itself.",
                "leave it out; releases take one on every engine.",
            )
        if source.lazy and self.public_rows is not None:
            raise ParameterError(
                f"'public_rows' is not for lazy frames of {source.engine}, which may hold other rows each "
                "time they are computed.",
                "leave it out, or compute the frame first.",
            )
        if source.lazy and self.reuse:
            raise ParameterError(
                f"'reuse' is not for lazy frames of {source.engine}, which may hold other records each time "
                "they are computed: an earlier answer may be one of other records.",
                "leave it out, or compute the frame first.",
            )

    def keeper(self) -> AnswerMemory | None:
        """Return a new memory of answers, where equal calls are to be answered again."""
        return AnswerMemory() if self.reuse else None

    def scope(self, rows: int, *, lazy: bool) -> Scope:
        """Return the public facts of a number of rows."""
        neighbors = self.whose.neighbors
        public = None if self.unit is not None else self._public(rows)
        # the number of left out records is private: a neighbour's record may be one of them; and so is the
        # number of records of a unit
        filtered = self.on_invalid == "drop" or self.unit is not None or lazy
        return Scope(neighbors, None if filtered else public, filtered, contribution=self.most)

    def _public(self, rows: int) -> int | None:
        """Return the public number of rows: exact, a lower bound, or None where it is private."""
        public_rows, replaced = self.public_rows, self.whose.neighbors == "replace_one"
        if public_rows is None:
            return rows if replaced else None
        public = whole(public_rows, "public_rows", 1)
        if self.on_invalid == "drop":
            raise ParameterError(
                "'public_rows' cannot be combined with on_invalid='drop': how many records are left is "
                "private."
            )
        if replaced:
            raise ParameterError(
                "'public_rows' is for neighbors='add_remove'; under 'replace_one' the number of rows is "
                "public."
            )
        if rows < public:
            raise InvalidDataError(
                "The frame has fewer rows than 'public_rows' states.",
                "public_rows is a number of rows that everybody knows the table to have at least.",
            )
        return public

    @property
    def lineage(self) -> tuple[Step, ...]:
        """The first step, where a column names the unit."""
        if self.unit is None:
            return ()
        call = "protect(" if self.title is None else f"protect_tables({self.title!r}, "
        return (Step(f"{call}unit={self.unit!r}, max_rows={self.most})", self.most),)


def _warn_of_touching(touching: Sequence[Hashable]) -> None:
    if touching:
        named = ", ".join(repr(name) for name in touching)
        warn(
            f"A declared bound of {named} equals the data's own minimum or maximum. Bounds read off the "
            "data are not public knowledge; declare what is known without looking. If these are, "
            'metadata={"dp": {"bounds": "public"}} confirms it.',
            DeclarationWarning,
        )


# ---------------------------------------------------------------- pandas


def _of_pandas(
    frame: pd.DataFrame,
    schema: Any,
    domain: Domain,
    arguments: Arguments,
    open_budget: Callable[[Unit, str], Budget],
    source: noise.Source,
) -> ProtectedFrame:
    conformed, names = _conform(frame, schema, domain, arguments.on_invalid)
    scope = arguments.scope(len(conformed.frame), lazy=False)
    codes = None
    if arguments.unit is not None:
        from pdprivacy.core.engines.unit_codes import bounded, codes_of

        codes = codes_of(names, arguments.unit)
    _warn_of_touching(conformed.touching)
    left, quality, seeded, dropped = conformed.frame, conformed.quality, False, conformed.dropped
    if codes is not None:
        stay = bounded(codes, arguments.most, source)
        excess = int(len(stay) - stay.sum())
        quality, dropped = _with_dropped(quality, arguments.unit, excess), dropped + excess
        left, codes = _selected_records(left, stay), codes[stay]
        seeded = source.seeded
        if arguments.names is not None:
            arguments.names.append(names[arguments.unit][stay])
    omitted, lineage = (dropped, len(frame)), arguments.lineage
    left = _with_date_numbers(left, domain)
    records = copied_columns(left, domain)
    purse, protected = open_budget(arguments.whose, domain.fingerprint()), domain.without_codes
    return ProtectedFrame(
        Facts(
            protected,
            arguments.whose,
            purse,
            scope,
            seal(records, quality, omitted, codes),
            lineage,
            seeded=seeded,
            keeper=arguments.keeper(),
        )
    )


def _with_date_numbers(frame: pd.DataFrame, domain: Domain) -> pd.DataFrame:
    """Return the frame with numbers instead of dates, as statistics read them."""
    counted = frame.copy(deep=False)
    for name, values in date_numbers_of_frame(frame, domain).items():
        counted[name] = values.array  # by position: an index may hold a label twice
    return counted


def _selected_records(frame: pd.DataFrame, stay: Mask) -> pd.DataFrame:
    """Return the selected records of a frame, if pandas can select records of its types."""
    if stay.all():
        return frame
    try:
        return frame.loc[stay]
    except NotImplementedError:  # of views of texts, say
        raise InvalidDataError(
            "A column has an Arrow type of which pandas cannot select records.",
            'convert it, such as by df["name"].astype("string[pyarrow]").',
        ) from None


def _conform(
    frame: pd.DataFrame, schema: Any, domain: Domain, on_invalid: Fate
) -> tuple[Conformed, pd.DataFrame]:
    """The frame made to meet the declaration and the whole schema; and the same records unclipped.

    Types come first: pandera would refuse most of them, too, but cannot tell how to convert them. Two units
    whose names are clipped to one bound are still two.
    """
    types = zip(frame.columns, frame.dtypes, strict=True)
    refuse_rounded({name for name, dtype in types if is_float(dtype)}, domain)
    # twice: a text may be a code, and may be coerced to a number that is one
    coerced = frame_without_codes(schemas.coerce(frame_without_codes(frame, domain), schema), domain)
    if isinstance(on_invalid, str) and on_invalid == "raise":
        check_types(coerced, domain)
        conformed = conform(schemas.validate(coerced, schema), domain, on_invalid)
        return conformed, conformed.frame
    conformed = conform(coerced, domain, on_invalid)
    conformed = replace(conformed, frame=schemas.validate(conformed.frame, schema))
    return conformed, coerced if on_invalid == "clip" else conformed.frame


# ---------------------------------------------------------------- other engines


def _of_engine(
    frame: EngineFrame,
    schema: Any,
    domain: Domain,
    arguments: Arguments,
    open_budget: Callable[[Unit, str], Budget],
) -> ProtectedFrame:
    from pdprivacy.core.engines.other import Piecewise

    check(pd.Index(frame.names, dtype=object), domain, arguments.on_invalid)
    _warn_of_unchecked(frame.engine, schema)
    names = list(domain)
    units = [] if arguments.unit is None or arguments.unit in names else [arguments.unit]
    if arguments.unit is not None:
        frame.check_unit(arguments.unit)
    source = frame.select([*names, *units]).in_own_memory()
    source.check(domain)
    dated = _source_with_date_numbers(source, domain)
    pieces = dated.select(names).each("the check of the declaration", lambda piece: survey(piece, domain))
    survey_of_frame = sum(pieces[1:], pieces[0])
    survey_of_frame.meet(domain, arguments.on_invalid, frame.engine)
    quality = survey_of_frame.quality(arguments.on_invalid)
    dropped = survey_of_frame.dropped if arguments.on_invalid == "drop" else 0
    scope = arguments.scope(survey_of_frame.rows, lazy=source.lazy)
    if arguments.on_invalid == "drop":
        valid = Piecewise(tuple(names), (), lambda piece, _: ({}, valid_records(piece, domain)), filters=True)
        source = dated = dated.then(valid)
    if arguments.unit is not None:
        excess = source.excess(arguments.unit, arguments.most)
        quality, dropped = _with_dropped(quality, arguments.unit, excess), dropped + excess
        source = source.bounded(arguments.unit, arguments.most)
        # dates are converted after it, of which the engine has the frame as its own
        dated = source if arguments.on_invalid == "drop" else _source_with_date_numbers(source, domain)
    result = dated.select(names)
    outside = [column for column in domain.columns if survey_of_frame.columns[column.name].outside]
    coded = [column for column in domain.columns if column.missing]
    if arguments.on_invalid == "clip" and outside:
        # before anything is made of them
        result = result.then(_each_by_itself(outside, clipped))
        coded = [column for column in coded if column not in outside]  # a number moved to a code is none
    if coded:
        result = result.then(_each_by_itself(coded, columns_without_codes))
    result = _source_with_wide_integers(result, domain)
    _warn_of_touching(survey_of_frame.touching(domain))
    omitted = dropped, survey_of_frame.rows
    purse, protected = open_budget(arguments.whose, domain.fingerprint()), domain.without_codes
    return ProtectedFrame(
        Facts(
            protected,
            arguments.whose,
            purse,
            scope,
            seal(result, quality, omitted),
            arguments.lineage,
            keeper=arguments.keeper(),
        )
    )


def _source_with_date_numbers(source: EngineFrame, domain: Domain) -> EngineFrame:
    """Return the frame with numbers in place of dates; all other columns stay in the engine."""
    dates = [column for column in domain.columns if column.timeline is not None]
    if not dates:
        return source
    columns = source.then(_each_by_itself(dates, date_numbers_of_frame))
    columns.check(domain.counted)
    return columns


def _source_with_wide_integers(source: EngineFrame, domain: Domain) -> EngineFrame:
    """Return the frame with integers in place of decimals, where doubles do not tell declared integers apart.

    Engines read decimals as doubles.
    """
    whole = [
        column
        for column in domain.columns
        if column.kind == "integer"
        or (column.kind == "category" and set(map(type, column.categories or ())) == {int})
    ]
    wide = [column for column in whole if any(abs(number) >= EXACT for number in declared_integers(column))]
    decimals = source.in_decimals([column.name for column in wide])
    columns = tuple(column for column in wide if column.name in decimals)
    if not columns:
        return source

    def integers(piece: pd.DataFrame, read: Domain) -> dict[Hashable, pd.Series[Any]]:
        cells = {column: whole_numbers(piece[column.name], column) for column in read.columns}
        return {column.name: column_of(*cells[column], column, piece.index) for column in read.columns}

    return source.then(_each_by_itself(columns, integers))


def _each_by_itself(
    columns: Sequence[Column],
    function: Callable[[pd.DataFrame, Domain], dict[Hashable, pd.Series[Any]]],
) -> Piecewise:
    """Return the step that computes each of these columns anew from itself."""
    from pdprivacy.core.engines.other import Piecewise

    names = tuple(column.name for column in columns)
    declared = Domain(tuple(columns))

    def run(piece: pd.DataFrame, made: Sequence[Hashable]) -> tuple[dict[Hashable, pd.Series[Any]], None]:
        return function(piece, Domain(tuple(declared[name] for name in made))), None

    return Piecewise(names, tuple(columns), run, {name: (name,) for name in names})


def _warn_of_unchecked(engine: str, schema: Any) -> None:
    beyond = schemas.unchecked(schema)
    if beyond:
        warn(
            f"{engine} frames are held to what is declared for release alone; the schema checks more, which "
            f"is not run ({'; '.join(beyond)}). Validate the frame by pandera where that matters.",
            DeclarationWarning,
        )


# ---------------------------------------------------------------- units

MOST_ROWS = 10**9
"""The largest number of records of a unit."""


def most_rows(unit: Hashable, max_rows: Any, public_rows: Any) -> int:
    """Return the contribution bound: the number of records of a unit that are kept; one without units."""
    if (unit is None) != (max_rows is None):
        raise ParameterError(
            "'unit' and 'max_rows' must be given together: the column of the unit, and the number of its "
            "records that are kept.",
            'unit="person_id", max_rows=3.',
        )
    if unit is None:
        return 1
    most = whole(max_rows, "max_rows", 1)
    if public_rows is not None:
        raise ParameterError(
            "'public_rows' cannot be combined with 'unit': how many rows are kept is private."
        )
    if most > MOST_ROWS:
        raise ParameterError(f"'max_rows' must be at most {MOST_ROWS} (got {got(max_rows)}).")
    return most


def _with_dropped(quality: pd.DataFrame, unit: Hashable, dropped: int) -> pd.DataFrame:
    """The curator's figures with the records that were too many of their unit."""
    names = list(quality.index)
    rows = dict(zip(names, quality.to_dict("records"), strict=True))
    row = rows.setdefault(unit, dict.fromkeys(quality.columns, 0))
    row["dropped"] += dropped
    index = pd.Index(list(rows), name=quality.index.name, tupleize_cols=False)
    return pd.DataFrame(list(rows.values()), index=index, columns=quality.columns)


# ---------------------------------------------------------------- budgets


def opener(
    epsilon: Rational | None,
    delta: Rational,
    rho: Rational | None,
    accounting: Accounting | None,
    budget: Budget | Ledger | None,
    name: str | None,
    redeclare: bool,
) -> Callable[[Unit, str], Budget]:
    """Return the function that opens the budget of `protect` for a unit and a declaration.

    Raises ParameterError for arguments that contradict each other. The function raises ParameterError or
    BudgetError where the budget exists on other terms.
    """
    _refuse_misnamed(budget, name, redeclare)
    one_of(accounting, "accounting", (*get_args(Accounting), None))
    total = _total(epsilon, delta, rho, budget)
    if isinstance(budget, Budget):
        if budget.of_group:
            raise ParameterError(
                "The budget is that of a group of partition(), and no other records may spend it.",
                "pass the budget of the whole table, which paid for the groups.",
            )
        budget.account.terms.check_same(total, accounting)
    named = None if name is None else check_name(name, "name")

    def opened(unit: Unit, declaration: str) -> Budget:
        if isinstance(budget, Ledger):
            assert named is not None
            return budget.open(
                named, total, accounting, unit=unit, declaration=declaration, redeclare=redeclare
            )
        purse = budget
        if purse is None:
            assert total is not None
            purse = Budget.with_total(total, accounting or "basic")
        purse.bind(unit, declaration)
        return purse

    return opened


def _refuse_misnamed(budget: object, name: str | None, redeclare: bool) -> None:
    if not (budget is None or isinstance(budget, Budget | Ledger)):
        raise ParameterError(
            f"'budget' must be a pdprivacy.Budget or a pdprivacy.Ledger (got {type(budget).__name__}).",
            'budget=pdprivacy.Ledger("budget.db"), name="survey-2026".',
        )
    flag(redeclare, "redeclare")
    in_ledger = isinstance(budget, Ledger)
    if in_ledger and name is None:
        raise ParameterError("'name' is missing: a ledger keeps a budget per name.", 'name="survey-2026".')
    if in_ledger != (name is not None) or (redeclare and not in_ledger):
        raise ParameterError(
            "'name' and 'redeclare' are for a budget in a ledger, which needs a name.",
            'budget=pdprivacy.Ledger("budget.db"), name="survey-2026".',
        )


def _total(
    epsilon: Rational | None, delta: Rational, rho: Rational | None, budget: Budget | Ledger | None
) -> Loss | None:
    """The total of the budget; None where the budget has one."""
    if epsilon is not None or rho is not None:
        return total_of(epsilon, delta, rho)
    if budget is None:
        raise ParameterError(
            "'epsilon' is missing: protection needs a budget.",
            "df.dp.protect(schema, epsilon=1.0), or budget=pdprivacy.Budget(epsilon=1.0).",
        )
    if rational(delta, "delta"):
        raise ParameterError(
            "'delta' cannot be given together with 'budget', which has a total.", "pass budget= alone."
        )
    return None
