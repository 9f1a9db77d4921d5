"""Displays of releases, confidential frames, protected frames and budgets in prompts and notebooks.

IPython is not imported here: if it runs, it has been imported.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pdprivacy.core.privacy import Unit
from pdprivacy.declaration.domain import Domain
from pdprivacy.errors import LedgerError, MetadataError, MissingLedgerError, ParameterError, PrivacyError, got
from pdprivacy.exact import near
from pdprivacy.releases.metadata import COUNTS, Released, recognized
from pdprivacy.releases.view import ALTERED, SEEDED, View, neighbors_text, title_of_charge
from pdprivacy.text import markup
from pdprivacy.text.marks import KEY, MARK
from pdprivacy.text.markup import Barred, Block, Markup, ShownCells, Table, aligned, grid
from pdprivacy.text.numbers import cost, label, many, percent, plain, printable, remaining
from pdprivacy.types import Floats

if TYPE_CHECKING:
    from pdprivacy.ledger import Account, Budget, Entry, Ledger
    from pdprivacy.ledger.book import Book


CONFIDENTIAL = "CONFIDENTIAL: made of exact counts, for the curator alone"
LEGEND = "bars: the margin of error around each number (dot), on a scale that holds 0 (tick)"
SIMULATED = "bars: 1.96 standard errors of the simulation around each number"
COMPARED = "bars: from lower to upper"
STEPS = (
    "stability: the records of the result that one record can touch; cost: what the whole pays for releases "
    "whose epsilons add up to epsilon"
)
SECRET = "a secret part"
DAMAGED = "The metadata of this frame cannot be read: attrs['dp'] is damaged ({})."

MOST_CHECKED = 100_000
"""Labels of a release that a display reads to see whether it is unchanged: four seconds per million."""

MOST_BARS = 200
"""Error bars of one table: each is about 400 bytes."""

NORMAL = 1.959963984540054

ALIKE = {*COUNTS, "proportion", "corr"}
"""Statistics whose numbers share a scale."""


Blocks = Iterator[Block]


def _note(line: str) -> Block:
    return Block(line, markup.note(line))


def _html_only(line: str) -> Block:
    """A line of HTML alone: it explains what only HTML shows."""
    return Block("", markup.note(line))


def _warning(line: str) -> Block:
    return Block(f"  {line}", markup.warning(line))


def _facts(rows: Sequence[tuple[str, str]], more: Sequence[tuple[str, str]] = ()) -> Block:
    """Names and values; ``more``: rows of HTML alone, after the first."""
    lines = aligned([("", *row) for row in rows], {0, 1, 2})
    return Block(lines, markup.table([], [*rows[:1], *more, *rows[1:]], text={1}))


def _table_block(table: Table, window: ShownCells) -> Block:
    note = [window.note] if window.note else []
    lines = ["", table.plain(), *note, ""]
    return Block("\n".join(lines), Markup("".join([table.html(), *map(markup.note, note)])))


def _has_bars(table: Table) -> bool:
    return any(isinstance(cell, Barred) for row in table.rows for cell in row)


# ---------------------------------------------------------------- error bars


def _floats(table: pd.DataFrame) -> Floats:
    """The cells of columns of numbers; NaN for others."""
    values = np.full(table.shape, np.nan)
    for column, dtype in enumerate(table.dtypes):
        if dtype.kind in "iuf":
            values[:, column] = table.iloc[:, column].to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def _barred(
    window: ShownCells,
    texts: Sequence[Sequence[str]],
    bars: tuple[Floats, Floats, Floats] | None,
    axis: int | tuple[int, ...] | None = (0, 1),
) -> list[list[str]]:
    """Return texts with their error bars, if the table has any and is small enough.

    ``bars``: lower end, value and upper end, (R, C) each; NaN for none. ``axis``: the axes along which they
    share a scale, which holds 0; None if each has its own.
    """
    if bars is None or window.cells > MOST_BARS:
        return [list(line) for line in texts]
    scales = []
    for end, find in ((bars[0], np.fmin), (bars[2], np.fmax)):
        known = np.where(np.isfinite(end), end, np.nan)
        if axis is not None and known.size:
            known = find.reduce(known, axis=axis, keepdims=True)
        scales.append(np.broadcast_to(find(known, 0.0), end.shape))
    drawn = np.stack([*bars, *scales], axis=-1).tolist()
    return [
        [
            Barred.of(text, bar) if (bar := markup.bar(*ends)) else text
            for text, ends in zip(*line, strict=True)
        ]
        for line in zip(texts, drawn, strict=True)
    ]


# ---------------------------------------------------------------- releases


def _release(view: View) -> Blocks:
    """Return the numbers with their errors and cost; no number of a changed release."""
    yield _note(printable(view.title))
    if view.facts.seeded is not False:
        yield _warning(SEEDED)
    legend = []
    if view.unchanged:
        table, window = _numbers(view)
        legend = [("", LEGEND)] * _has_bars(table)
        yield _table_block(table, window)
    else:
        yield _warning(ALTERED)
    yield _facts(view.rows, legend)


def _numbers(view: View) -> tuple[Table, ShownCells]:
    """The released numbers, each with its error; of a Series in a column beside them."""
    window = ShownCells.of(*view.table.shape)
    rows, columns = window.at
    values, half = _floats(view.table.iloc[rows, columns]), view.half[np.ix_(rows, columns)]
    lower, upper = values - half, values + half
    if view.unknown:  # of counts the margins of error are drawn
        hidden, *limits = (
            each[np.ix_(rows, columns)] for each in (view.limits[0] & ~view.counts, *view.limits[1:])
        )
        lower, upper = (np.where(hidden, *ends) for ends in zip(limits, (lower, upper), strict=True))
    bars, axes = (lower, values, upper), _shared_axes(view)
    return view.grid(window, lambda texts: _barred(window, texts, bars, axes)), window


def _shared_axes(view: View) -> int | tuple[int, ...] | None:
    """The axes along which numbers share a scale; None if each has its own."""
    facts, released = view.facts, view.released
    if facts.statistic in ALIKE:
        return (0, 1)
    names = set(map(str, facts.columns))
    rows = len(released) <= len(names) and set(map(str, released.index)) <= names
    rows = rows or facts.statistic == "ols"  # each coefficient has a unit of its own
    columns = (
        isinstance(released, pd.DataFrame)
        and {str(column[-1] if isinstance(column, tuple) else column) for column in released.columns} <= names
    )
    if facts.statistic in ("agg", "describe"):
        return 0 if view.by else None
    if rows and columns:
        return None
    if rows:
        return 1
    return 0 if columns else (0, 1)


# ---------------------------------------------------------------- frames made of exact counts

MARKED = Block(CONFIDENTIAL, markup.warning(CONFIDENTIAL, confidential=True))


def pages_of(frames: Sequence[tuple[str, Released]]) -> str:
    """Return several confidential frames as HTML under one mark."""
    return _html([MARKED, *(block for kind, frame in frames for block in _confidential(frame, kind))])


def _marked_page(frame: Released, kind: str) -> list[Block]:
    """A confidential frame; the mark alone if the frame holds what cannot be shown."""
    try:
        return [MARKED, *_confidential(frame, kind)]
    except Exception:
        return [MARKED, _note("It cannot be shown here.")]


def _confidential(frame: Released, kind: str) -> Blocks:
    """The arguments and the cells of a confidential frame."""
    stored = frame.attrs.get(KEY)
    arguments = [
        f"{name} {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in (stored if isinstance(stored, Mapping) else {}).items()
        if name != MARK and value is not None
    ]
    arguments += filter(None, [vars(frame).get("summary")])
    if arguments or kind != MARK:
        yield _note(printable(f"{kind}: {'; '.join(arguments)}" if arguments else kind))
    named = isinstance(frame, pd.Series) and frame.name is not None
    whole = frame.to_frame(label(frame.name) if named else "") if isinstance(frame, pd.Series) else frame
    window = ShownCells.of(*whole.shape)
    rows, columns = window.at
    values = [whole.iloc[rows, at].tolist() for at in columns]
    texts = [[plain(column[line]) for column in values] for line in range(len(rows))]
    words = [not all(isinstance(item, int | float) for item in column) for column in values]
    index = whole.index
    if index.nlevels == 1 and index.dtype.kind == "f":
        index = pd.Index([plain(item) for item in index], name=index.name)
    bars, legend = _spans(whole.iloc[rows], columns)
    table = grid(window, index, whole.columns, _barred(window, texts, bars), words)
    yield _table_block(table, window)
    if _has_bars(table):
        yield _html_only(legend)


def _spans(table: pd.DataFrame, columns: list[int]) -> tuple[tuple[Floats, Floats, Floats] | None, str]:
    """Return the intervals of some columns, where other columns of the table hold them, and what they are."""
    names = list(table.columns)
    value, legend = _floats(table), SIMULATED
    if len(set(names)) < len(names):
        return None, ""
    lower, upper = (np.full(table.shape, np.nan) for _ in range(2))
    at = {name: position for position, name in enumerate(names)}
    if {"error", "lower", "upper"} <= set(names):
        legend = COMPARED
        for end, name in ((lower, "lower"), (upper, "upper")):
            end[:, at["error"]] = value[:, at[name]]
    else:
        for column, position in at.items():
            first, *rest = column if isinstance(column, tuple) else (column,)
            error = ("standard_error", *rest) if isinstance(column, tuple) else "standard_error"
            if first in ("risk", "tvd") and error in at:
                half = NORMAL * value[:, at[error]]
                lower[:, position], upper[:, position] = value[:, position] - half, value[:, position] + half
    return (lower[:, columns], value[:, columns], upper[:, columns]), legend


# ---------------------------------------------------------------- budgets

MOST_ROWS = 1000
"""Charges that are shown one by one."""


def budget_block(budget: Budget) -> Block:
    """Return a budget; or why it cannot be read, because what a prompt calls must not raise."""
    try:
        account = budget.account
        listed = budget._book.entries() if account.charges <= MOST_ROWS else (account, [])
        return charges_block(*listed, budget.name)
    except LedgerError as error:
        line = f"{_heading(budget.name)}: it cannot be read. {error}"
        return Block(line, markup.warning(line))


def charges_block(account: Account, entries: Sequence[Entry], name: str = "") -> Block:
    """Return the sums of a budget and a row per charge; of a named one, also which charges lack an answer."""
    terms, heading = account.terms, _heading(name)
    heading += "" if terms.unit is None else f", neighbors {terms.unit}"
    heading += "" if terms.accounting == "basic" else f", accounting {terms.accounting}"
    lines, rows = [heading], []

    def row(head: str, amount: str, delta: str, *more: str) -> None:
        rows.append([head, amount.removeprefix(f"{terms.currency} "), delta.removeprefix("delta "), *more])

    for part, amount, delta in _sums(account, entries):
        lines.append(f"  {part:<6} {amount:<18} {delta}")
        row(part, amount, delta)
    costs = [_amounts_charged(entry) for entry in entries]
    titles = [title_of_charge(entry.label) for entry in entries]
    width = max(map(len, titles), default=0)
    amounts = max([16, *(len(amount) for amount, _ in costs)])
    for entry, title, (amount, delta) in zip(entries, titles, costs, strict=True):
        waiting = "not answered" if name and not entry.answered else ""
        remarks = f"{entry.mechanism}  {waiting}"
        lines.append(f"  {entry.number:>4}  {title:<{width}}  {amount:<{amounts}} {delta:<14} {remarks}")
        description = f"{entry.number}. {title}" + (f" ({waiting})" if waiting else "")
        row(description, amount, delta, entry.mechanism)
    if account.charges > len(entries):
        more = f"{account.charges:,} charges, listed by .entries"
        lines.append(f"  {more}")
        rows.append([more])
    table = markup.table(["", terms.currency, "delta", "mechanism"], rows, caption=heading, text={3})
    return Block("\n".join(line.rstrip() for line in lines), table)


def ledger_html(ledger: Ledger) -> str:
    """Return the budgets of a ledger as HTML, or why they cannot be read."""
    title = f"Ledger {ledger.address}"
    try:
        accounts = ledger.accounts()[1]
    except MissingLedgerError:
        return markup.note(f"{title}: no budget is open yet")
    except LedgerError as error:
        return markup.warning(f"{title}: {error}")
    head = ["name", "total", "spent", "left", "accounting", "neighbors", "charges"]
    rows = []
    for name, account in accounts.items():
        terms = account.terms
        amounts = [
            f"{terms.currency} {amount}" + ("" if terms.currency == "rho" else f", delta {delta}")
            for amount, delta in sum_texts(account).values()
        ]
        unit = "" if terms.unit is None else str(terms.unit)  # none before it is used
        rows.append([name, *amounts, terms.accounting, unit, f"{account.charges:,}"])
    return markup.table(head, rows, caption=title, text={4, 5})


def _heading(name: str) -> str:
    """Return the heading of a budget, with its name in a ledger if it has one."""
    return f"Privacy budget {name!r}" if name else "Privacy budget"


def sum_texts(account: Account) -> dict[str, tuple[str, str]]:
    """Return total, spent and left as texts, each with its delta."""
    sums = {"total": (account.total, cost), "spent": (account.used, cost), "left": (account.left, remaining)}
    return {part: (form(total.amount), form(total.delta)) for part, (total, form) in sums.items()}


def _sums(account: Account, entries: Sequence[Entry]) -> list[tuple[str, str, str]]:
    """(what, epsilon or rho, delta) of total, spent and left, and the risk of all tables so far if known."""
    named = account.terms.currency
    rows = [
        (part, f"{named} {amount}", "" if named == "rho" else f"delta {delta}")
        for part, (amount, delta) in sum_texts(account).items()
    ]
    if risk := _risk_of_tables(entries):
        rows.append(("risk", risk, ""))
    return rows


def _risk_of_tables(entries: Sequence[Entry]) -> str:
    """Return the largest risk of all tables so far, or why it is not known; empty without such tables."""
    risks = [entry.dr_ha for entry in entries if entry.dr_ha is not None]
    reasons = [entry.risk_unknown for entry in entries if entry.risk_unknown is not None]
    of_tables = "of records, the largest of all tables so far, each at the total loss by then"
    text = f"{percent(max(risks))} {of_tables} (cumulative_dr_ha)" if risks else ""
    if not reasons:
        return text
    unknown = f"not known of {many(len(reasons), 'charge')}: {reasons[-1]}"
    return f"{text}; {unknown}" if text else unknown


def _amounts_charged(entry: Entry) -> tuple[str, str]:
    epsilon, delta, rho = entry.amounts
    if epsilon is None or delta is None:
        return f"rho {cost(rho)}", ""
    return f"epsilon {cost(epsilon)}", f"delta {cost(delta)}"


# ---------------------------------------------------------------- charges as tables


ENTRY_TYPES: dict[str, Any] = {"release": str, "mechanism": str, "epsilon": float, "delta": float}
ENTRY_TYPES |= {"rho": float, "time": "datetime64[us, UTC]", "release_id": object}


def _cells(entry: Entry) -> tuple[Any, ...]:
    """Return the cells of a charge; equal texts are kept once."""
    epsilon, delta, rho = entry.amounts
    amounts = (math.nan if amount is None else near(amount) for amount in (epsilon, delta, rho or None))
    return sys.intern(str(entry.label)), sys.intern(str(entry.mechanism)), *amounts, entry.time, entry.release


def _frame(rows: list[tuple[Any, ...]], first: int, answered: Any, reached: Any) -> pd.DataFrame:
    """Return the table of rows that `_cells` made; ``first`` is the number of the first charge."""
    index = pd.RangeIndex(first, first + len(rows), name="charge")
    frame = pd.DataFrame(rows, index, columns=list(ENTRY_TYPES), dtype=object).astype(ENTRY_TYPES)
    frame.insert(6, "answered", np.array(answered, dtype=bool))
    frame.insert(7, "cumulative_dr_ha", np.array(reached, dtype="float64"))
    return frame


def read_table(book: Book, pick: slice = slice(None)) -> tuple[Account, pd.DataFrame]:
    """Return the account, and one row per picked charge; see `Budget.entries`."""
    rows: list[tuple[Any, ...]] = []
    account, answered, risks = book.read(lambda entry: rows.append(_cells(entry)), pick)
    first = pick.indices(account.charges)[0] + 1
    return account, _frame(rows, first, answered[pick], np.fmax.accumulate(risks)[pick])


def entry_table(entries: Sequence[Entry]) -> pd.DataFrame:
    """Return one row per charge; see `Budget.entries`."""
    rows = [_cells(entry) for entry in entries]
    risks = [math.nan if entry.dr_ha is None else entry.dr_ha for entry in entries]
    return _frame(rows, 1, [entry.answered for entry in entries], np.fmax.accumulate(risks))


# ---------------------------------------------------------------- protected frames


@dataclass(frozen=True)
class Standing:
    """The public facts of a protected frame: its declaration, its budget and its row steps.

    ``engine``: the engine of the records. ``lineage``: as of `pdprivacy.core.gate.facts.lineage`.
    ``rows``: the number of records if it is public. ``seeded``: whether a secret sample can be drawn again.
    """

    engine: str
    domain: Domain
    unit: Unit
    budget: Budget
    lineage: pd.DataFrame
    rows: int | None
    seeded: bool

    def blocks(self) -> Blocks:
        """Yield the blocks of its page."""
        yield _note(f"Protected frame of {self.engine}")
        if self.seeded:
            yield _warning(SEEDED)
        yield Block(f"\n{self.domain!r}\n", Markup(self.domain._repr_html_()))
        known = "private" if self.rows is None else f"{self.rows} (public)"
        yield _facts([("neighbors", neighbors_text(self.unit.neighbors, self.unit.column)), ("rows", known)])
        budget = budget_block(self.budget)
        yield Block(f"\n{budget.plain}", budget.html)
        if len(self.lineage):
            yield Block("\nLineage", markup.note("Lineage"))
            yield from _lineage(self.lineage)


def _lineage(frame: Any) -> Blocks:
    """The steps between the raw frame and a protected one."""
    rows = [
        (str(number), printable(step), SECRET if stability is pd.NA else plain(stability), printable(price))
        for number, (step, stability, price) in enumerate(
            zip(*(frame[name].tolist() for name in ("step", "stability", "cost")), strict=True), 1
        )
    ]
    lines = [
        f"  {number}  {step}  stability {stability}  cost {price}" for number, step, stability, price in rows
    ]
    yield Block("\n".join(lines), markup.table(["", "step", "stability", "cost"], rows, text={1, 3}))
    yield _html_only(STEPS)


# ---------------------------------------------------------------- any frame


def html_of_marked(frame: Released) -> str | None:
    """Return the HTML of a release, a confidential frame or a lineage; None for every other frame.

    A release that was changed has none: its metadata no longer describe its numbers.
    """
    known = recognized(frame)
    if known.what == "confidential":
        return _html(_marked_page(frame, known.kind))
    if known.what == "lineage":
        return _html(_lineage(frame))
    view = View.of(frame) if known.what == "release" and len(frame) <= MOST_CHECKED else None
    return _html(_release(view)) if view is not None and view.unchanged else None


def html(frame: Any, standing: Standing | PrivacyError) -> str:
    """Return what ``frame.dp`` shows in a notebook; damaged ``attrs`` raise no error."""
    return _html(_blocks(frame, standing))


def text(frame: Any, standing: Standing | PrivacyError) -> str:
    """Return what ``frame.dp`` shows at a prompt."""
    return "\n".join(block.plain for block in _blocks(frame, standing) if block.plain)


def _html(blocks: Iterable[Block]) -> str:
    return markup.page(*(block.html for block in blocks))


def _blocks(frame: Any, standing: Standing | PrivacyError) -> list[Block]:
    """The blocks of the page of any frame; of an ordinary frame, why there is nothing to show."""
    if isinstance(standing, Standing):
        return list(standing.blocks())
    try:
        known = recognized(frame)
        if known.what == "confidential":
            return _marked_page(frame, known.kind)
        if known.what == "lineage":
            return list(_lineage(frame))
        return list(_release(View.of(frame)) if known.what == "release" else _reason(standing))
    except MetadataError as error:
        return list(_reason(error))
    except Exception as error:  # a damaged mark can hold anything
        line = DAMAGED.format(type(error).__name__)
        return [Block(line, markup.warning(line))]


def _reason(error: PrivacyError) -> Blocks:
    """Return the reason why there is nothing to show, and a valid call."""
    hint = [] if error.hint is None else [f"Hint: {error.hint}"]
    return map(_note, [error.message, *hint])


# ---------------------------------------------------------------- notebook

FORMAT = "text/html"
KINDS: tuple[type, ...] = (pd.DataFrame, pd.Series)


class Formatter:
    """Formats frames that carry a mark as HTML; leaves every other frame to ``before``."""

    def __init__(self, before: Callable[[Any], Any] | None) -> None:
        self.before = before

    def __call__(self, frame: Any) -> Any:
        """Return HTML, or what was shown before; no mark makes it fail."""
        try:
            rendered = html_of_marked(frame) if pd.get_option("display.notebook_repr_html") else None
        except Exception:  # a damaged mark can hold anything
            rendered = None
        return self._as_before(frame) if rendered is None else rendered

    def _as_before(self, frame: Any) -> Any:
        if self.before is not None:
            return self.before(frame)
        method = getattr(frame, "_repr_html_", None)
        return method() if callable(method) else None


def load_ipython_extension(ipython: Any) -> None:
    """Show releases with their errors and costs, and mark confidential frames: ``%load_ext pdprivacy``.

    ``ipython``: the running shell. ``import pdprivacy`` in a notebook does this, too. Other frames are shown
    as before.
    """
    formatter = _formatter_of(ipython)
    for kind in KINDS:
        before = formatter.for_type(kind)
        formatter.for_type(kind, Formatter(before.before if _is_ours(before) else before))


def unload_ipython_extension(ipython: Any) -> None:
    """Show all frames as without pdprivacy: ``%unload_ext pdprivacy``."""
    formatter = _formatter_of(ipython)
    for kind in KINDS:
        printer = formatter.for_type(kind)
        if _is_ours(printer):
            formatter.pop(kind)
            if printer.before is not None:
                formatter.for_type(kind, printer.before)


def _formatter_of(ipython: Any) -> Any:
    """Return what formats HTML in a shell; ParameterError for any other object."""
    formatters = getattr(getattr(ipython, "display_formatter", None), "formatters", None)
    if not isinstance(formatters, Mapping) or FORMAT not in formatters:
        raise ParameterError(
            f"'ipython' must be a running shell of IPython (got {got(ipython)}).", "%load_ext pdprivacy."
        )
    return formatters[FORMAT]


def register_where_running() -> None:
    """Call `load_ipython_extension` if IPython is running; leave a shell without displays alone."""
    shell_of = getattr(sys.modules.get("IPython"), "get_ipython", None)
    try:
        shell = None if shell_of is None else shell_of()
        if shell is not None:
            load_ipython_extension(shell)
    except Exception:  # importing must not depend on what shell this is
        return


def _is_ours(formatter: object) -> bool:
    """Return whether a formatter is of this module, also of one that was loaded before."""
    kind = type(formatter)
    return (kind.__module__, kind.__qualname__) == (Formatter.__module__, Formatter.__qualname__)
