"""One view of a release: title, cost, mechanism, numbers with errors, risk and lineage."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from pdprivacy.core.mechanisms import MECHANISMS
from pdprivacy.frames.answers import was_answered_before
from pdprivacy.releases import excerpts, metadata
from pdprivacy.releases.metadata import Metadata, Released
from pdprivacy.text.markup import ShownCells, Table, grid
from pdprivacy.text.numbers import (
    cost,
    dated,
    duration,
    half_width,
    joined,
    label,
    listed,
    loss_text,
    paired,
    percent,
    plain,
    printable,
    short,
    span,
    unknown,
)
from pdprivacy.types import Floats, Mask

Texts: TypeAlias = list[list[str]]

SEEDED = "seeded: not private"
ALTERED = "changed since it was released: cost and errors below are of what was released, not of what is here"

ANSWERED_BEFORE = "answered before: nothing was charged again"

LABELS = ("mode", "top_k", "find_labels")
"""Statistics whose values are labels."""

NOT_GROUPED = ("proportion", "value_counts", "histogram", "find_labels")
"""Statistics whose rows are labels of what is counted, not of groups."""

TABLES = ("crosstab", "proportion")
"""Statistics whose columns are labels of what is counted, not of groups."""

TITLES = {
    "sum": "Sum",
    "mean": "Mean",
    "median": "Median",
    "mode": "Mode",
    "count": "Count",
    "proportion": "Proportion",
    "histogram": "Histogram",
    "agg": "Statistics",
    "var": "Variance",
    "std": "Standard deviation",
    "describe": "Summary",
    "cov": "Covariance",
    "corr": "Correlation",
    "pooled_var": "Pooled variance",
    "pooled_cov": "Pooled covariance",
    "quantile": "Quantiles",
    "min": "Minimum",
    "max": "Maximum",
    "top_k": "Most frequent labels",
    "find_bounds": "Bounds",
    "find_labels": "Labels",
    "nunique": "Number of labels",
    "value_counts": "Counts",
    "crosstab": "Contingency table",
    "ols": "Regression",
    "kmeans": "k-means centres",
    "kmedian": "k-median centres",
}
"""The title of each statistic."""

SHARES = {"all": "shares of all", "index": "shares of each row", "columns": "shares of each column"}
TITLES_OF_MECHANISMS = {
    **{name: mechanism.title for name, mechanism in MECHANISMS.items()},
    "exponential": "exponential mechanism",
    "permute_and_flip": "permute-and-flip",
    "partition_selection": "partition selection",
}
NEIGHBORS = {"add_remove": "one record more or less", "replace_one": "one record with other values"}
UNITS = {"add_remove": "more or less", "replace_one": "with other values"}
MOST_NAMES = 6
DETAILS = re.compile(r"(, \d+ (release|iteration|step)s?)?( (where \(|after ).*)?\Z", re.DOTALL)
"""The end of the label of a charge: repetitions, conditions and row steps."""

ROUGH = 10
"""The largest rank from the end that still counts as a minimum or maximum."""


def title_of(
    statistic: str, columns: Iterable[object], by: Sequence[str] = (), normalize: str | None = None
) -> str:
    """Return the title of a release; ``by``: those of its columns that are keys of groups.

    >>> title_of("mean", ["hours", "income"], ["income"]), title_of("corr", ["age", "hours"])
    ('Mean of hours by income', 'Correlation of age and hours')
    """
    names = [printable(name, None) for name in columns]
    if statistic == "ols" and len(names) > 1:
        return f"{TITLES[statistic]} of {names[0]} on {listed(names[1:], MOST_NAMES)}"
    of = [name for name in names if name not in by]
    text = TITLES.get(statistic, statistic.replace("_", " ").capitalize())
    text += f" of {listed(of, MOST_NAMES)}" if of else ""
    text += f" by {listed(by, MOST_NAMES)}" if by else ""
    return text + (f" ({SHARES[normalize]})" if normalize in SHARES else "")


def title_of_charge(label: str) -> str:
    """Return the title of a charge, as of its release; another label is returned as it is.

    >>> title_of_charge("ols of pay, age, hours where (age > 30)"), title_of_charge("partition by region")
    ('Regression of pay on age and hours where (age > 30)', 'partition by region')
    """
    whole = DETAILS.sub("", label, count=1)
    head, _, weights = whole.partition(" weighted by ")
    head, _, by = head.partition(" by ")
    statistic, _, of = head.partition(" of ")
    if statistic not in TITLES:
        return label
    names, keys = (part.split(", ") if part else [] for part in (of, by))
    weighted = f", weighted by {weights}" if weights else ""
    return title_of(statistic, [*names, *keys], keys) + weighted + label.removeprefix(whole)


def mechanism_text(name: str, p: float | None = None) -> str:
    """Return the name of a mechanism in words; ``p``: the order of generalized Gaussian noise.

    >>> mechanism_text("laplace"), mechanism_text("generalized_gaussian", 3)
    ('Laplace noise', 'generalized Gaussian noise of order 3')
    """
    text = TITLES_OF_MECHANISMS.get(name, name.replace("_", " "))
    return text if p is None else f"{text} of order {short(p)}"


def neighbors_text(named: str, unit: str | None) -> str:
    """Return how neighbouring datasets differ.

    >>> neighbors_text("add_remove", None)
    'add_remove: one record more or less'
    """
    return f"{named}: {NEIGHBORS[named] if unit is None else f'all records of one {unit} {UNITS[named]}'}"


def conditions_text(filters: Iterable[object]) -> str:
    """Return the conditions that records meet.

    >>> conditions_text(["age > 30"]), conditions_text(["age > 30", "member"])
    ('age > 30', '(age > 30) and (member)')
    """
    each = [str(condition) for condition in filters]
    return each[0] if len(each) == 1 else " and ".join(f"({condition})" for condition in each)


def records_text(filters: Iterable[object], lineage: Iterable[object]) -> str:
    """Return of which records a number is; empty for all."""
    parts = {"where": conditions_text(filters), "after": ", ".join(map(str, lineage))}
    return " ".join(f"{name} {text}" for name, text in parts.items() if text)


@dataclass(frozen=True)
class View:
    """A release or an excerpt as people see it.

    ``unchanged``: whether its numbers are released ones. ``again``: whether an equal call was charged before.
    """

    released: Released
    facts: Metadata
    unchanged: bool
    again: bool = False

    @classmethod
    def of(cls, released: Released) -> View:
        """Read a release. Raises MetadataError for a frame without release metadata, or with damaged ones."""
        facts = metadata.read(released)
        metadata.check(facts)
        original, again = excerpts.as_release(released), was_answered_before(released)
        if original is None:
            return cls(released, facts, False, again)
        return cls(original, metadata.read(original), True, again)

    @cached_property
    def by(self) -> list[str]:
        """The released columns that are keys of groups."""
        facts, index = self.facts, self.released.index
        columns = [str(name) for name in facts.columns]
        if facts.statistic.startswith("pooled"):
            labels = set(map(str, index))
            return [name for name in columns if name not in labels]
        names = [str(name) for name in index.names if name is not None]
        if facts.statistic in NOT_GROUPED and set(names) >= set(columns):
            return []
        # quantiles of groups have a level more, which has no name
        levels = index.nlevels - int(facts.statistic == "quantile" and index.nlevels > 1)
        if len(names) != levels or not set(names) <= set(columns):
            return []
        if facts.statistic in TABLES or not isinstance(self.released, pd.DataFrame):
            return names
        return names + [str(name) for name in self.released.columns.names if str(name) in columns]

    @property
    def title(self) -> str:
        """The title of the release, such as "Mean of hours by region"."""
        facts, weights = self.facts, self.facts.weights
        title = title_of(facts.statistic, facts.columns, self.by, facts.normalize)
        return title if weights is None else f"{title}, weighted by {printable(weights, None)}"

    @property
    def cost(self) -> str:
        """The privacy loss of the release."""
        return loss_text(self.facts.epsilon, self.facts.delta)

    @property
    def mechanism(self) -> str:
        """The mechanism, and how it was options for."""
        facts = self.facts
        bounding = None if facts.bounding == metadata.PROJECT else facts.bounding
        calibration = None if self.selected else facts.calibration  # which the mechanism of a selection names
        options = [("calibration", calibration), ("bounding", bounding)]
        options.append(("constraint", facts.constraint))
        texts = [f"{name} {value}" for name, value in options if value is not None]
        return ", ".join([mechanism_text(str(facts.mechanism), facts.p), *texts])

    @property
    def conditions(self) -> str:
        """The conditions that the records meet."""
        return conditions_text(self.facts.filters)

    @property
    def records(self) -> str:
        """The records that the numbers are of; empty for all."""
        return records_text(self.facts.filters, self.facts.lineage)

    @property
    def selected(self) -> bool:
        """Whether the values were selected among candidates, so that errors are ranks or counts."""
        return "below_best" in self.facts.error

    @property
    def without_margins(self) -> bool:
        """Whether no cell has a margin of error: selected values, and bounds and labels that were found."""
        return self.selected or (self.facts.found is not None and "plus_minus" not in self.facts.error)

    @property
    def level(self) -> str:
        """The probability of the margins of error."""
        level = self.facts.error.get("level")
        return f"{short(100 * level)} %" if isinstance(level, int | float) else "an unknown probability"

    @cached_property
    def half(self) -> Floats:
        """(R, C) margins of error; NaN where they are not known."""
        shape = self.released.shape
        known = "plus_minus" in self.facts.error
        half = self.facts.error_of_each("plus_minus", shape) if known else np.full(shape, np.nan)
        return half.reshape(self.table.shape)

    @cached_property
    def unknown(self) -> dict[tuple[int, int], str]:
        """What stands beside the numbers that are all noise, by row and column."""
        if not self.unchanged or not {"plus_minus", "lower"} & {*self.facts.error}:
            return {}
        _, low, high = self.limits
        texts = {}
        for row, column in np.argwhere(self.limits[0]).tolist():
            half = float(self.half[row, column]) if self.counts[row, column] else None
            texts[row, column] = unknown(self._limit(low[row, column]), self._limit(high[row, column], half))
        return texts

    @cached_property
    def counts(self) -> Mask:
        """(R, C) which numbers are counts."""
        counts = metadata.are_counts(self.released, self.facts)
        return np.broadcast_to(counts, self.released.shape).reshape(self.table.shape)

    @cached_property
    def limits(self) -> tuple[Mask, Floats, Floats]:
        """(R, C) which numbers are all noise, and the least and the largest that these may be."""
        mask, low, high = metadata.unknown(self.released, self.facts)
        shape = self.table.shape
        return mask.reshape(shape), low.reshape(shape), high.reshape(shape)

    def _limit(self, limit: float, half: float | None = None) -> str:
        if half is not None:  # of a count, which ends at its margin of error
            return paired(int(limit) if limit == int(limit) else float(limit), half)[0]
        return f"{pd.Timestamp(limit, unit='s').date()}" if self.dates else plain(float(limit))

    @cached_property
    def _all_half(self) -> Floats:
        """Margins of error of all numbers; of a changed release, of all that were released."""
        stored = self.facts.error.get("plus_minus")
        if self.unchanged or stored is None:
            return self.half
        return self.facts.error_of_each("plus_minus", np.shape(stored))

    @cached_property
    def table(self) -> pd.DataFrame:
        """The numbers as a frame."""
        return self.released.to_frame() if isinstance(self.released, pd.Series) else self.released

    @property
    def dates(self) -> bool:
        """Whether the numbers are dates, with errors in seconds."""
        return all(dtype.kind == "M" for dtype in self.table.dtypes)

    @cached_property
    def whole(self) -> bool:
        """Whether all numbers are whole by their dtype, so that their rounding moves nothing."""
        return all(dtype.kind in "iu" for dtype in self.table.dtypes)

    def pairs(self, rows: Sequence[int], columns: Sequence[int]) -> list[list[tuple[str, str]]]:
        """Return the numbers at some places with their margins of error, as texts."""
        cells = [self.table.iloc[list(rows), column].tolist() for column in columns]
        return [
            [self._pair(cells[at][position], row, column) for at, column in enumerate(columns)]
            for position, row in enumerate(rows)
        ]

    def _pair(self, value: Any, row: int, column: int) -> tuple[str, str]:
        if beside := self.unknown.get((row, column)):
            shown = dated if isinstance(value, pd.Timestamp) else paired
            return shown(value, float(self.half[row, column]))[0], beside
        if isinstance(value, pd.Timestamp):
            return dated(value, float(self.half[row, column]))
        if self.facts.statistic in LABELS or isinstance(value, bool) or not isinstance(value, int | float):
            return label(value), ""
        return paired(value, float(self.half[row, column]))

    def grid(self, window: ShownCells, drawn: Callable[[Texts], Texts] = list) -> Table:
        """Return the numbers in the window, each with its margin of error; of a Series in a column beside.

        ``drawn``: takes the texts of the margins of error, of a table with the numbers, and adds what else is
        shown with them.
        """
        rows, columns = window.at
        pairs, table = self.pairs(rows, columns), self.table
        words = [table.dtypes.iloc[column].kind not in "iuf" for column in columns]
        if isinstance(self.released, pd.DataFrame):
            texts = [list(map(joined, line)) for line in pairs]
            return grid(window, table.index, table.columns, drawn(texts), words)
        name = self.released.name
        heads = pd.Index(["released" if name is None else printable(name), "±"])
        beside = drawn([[error] for ((_, error),) in pairs])
        cells = [[value, *line] for ((value, _),), line in zip(pairs, beside, strict=True)]
        if not any(error for ((_, error),) in pairs):
            heads, cells = heads[:1], [line[:1] for line in cells]
        whole = ShownCells(window.rows, list(range(len(heads))), window.shape)
        return grid(whole, table.index, heads, cells, [*words, False][: len(heads)])

    @property
    def span(self) -> str:
        """The margins of error of all numbers; empty if none is known."""
        return span(self._all_half, self.whole, self.dates)

    @property
    def error(self) -> str:
        """The error of the release, in a sentence."""
        if self.selected:
            return self._selection_error()
        if "always" in self.facts.error:
            return self._error_of_labels()
        regression = self.regressions
        if not self.span:
            return str((regression[0] if regression else self.facts.error).get("note") or "not known")
        more = "" if np.isfinite(self._all_half).all() else "; not known of all numbers"
        more += self._hidden
        if most := self._largest(self.facts.error.get("rounding_per_record")):
            more += f"; not of rounding, at most {most} per record"
            over = {"sum": "", "agg": ", of means over the sum of the weights"}
            more += over.get(self.facts.statistic, " over the sum of the weights")
        each = f"{self.level} margin of error of each number, of the noise and "
        of = str(regression[0].get("interval_of") or "population") if regression else ""
        each += f"the sample, for a {of}" if regression else "not of a population"
        return f"{self.span}: {each}{more}"

    @property
    def part(self) -> str:
        """How an excerpt differs from the release; empty for a whole release."""
        return excerpts.part_text(self.facts)

    @property
    def all_numbers(self) -> int:
        """How many numbers the release has that an excerpt is a part of."""
        return int(self.released.size if self.facts.part is None else self.facts.part["numbers"])

    @property
    def regressions(self) -> list[Mapping[str, Any]]:
        """Published facts of each regression beside its coefficients; empty for other statistics."""
        stored = self.facts.regression
        return [] if stored is None else list(stored) if isinstance(stored, list) else [stored]

    @property
    def regression(self) -> str:
        """The fit of a regression; empty for other statistics."""
        fits = self.regressions
        if len(fits) != 1:
            return ""
        records, variance, share = (
            fits[0].get(name) for name in ("records", "residual_variance", "r_squared")
        )
        text = f"about {plain(round(float(records or 0)))} records, residual variance {plain(variance)}"
        return text if share is None else f"{text}, R squared {plain(round(share, 2))}"

    def _error_of_labels(self) -> str:
        error = self.facts.error
        text = f"labels of {error['always']} records or more are always found, others with a probability"
        if not self.span:
            return text
        return f"{self.span}: {self.level} margin of error of each noisy count; {text}. {error.get('note')}"

    @property
    def _hidden(self) -> str:
        """How many of the numbers are all noise; empty if none is."""
        hidden = self.facts.error.get("all_noise")
        return f"; {hidden:,} of them all noise" if isinstance(hidden, int) and hidden else ""

    def _selection_error(self) -> str:
        error, statistic = self.facts.error, self.facts.statistic
        most = _by_name(error["below_best"])
        if not most:
            return "not known"
        start = f"With {self.level} probability"
        if statistic == "kmedian":
            return (
                f"{start} these centres cost at most {most} more than the best ones that were tried, in "
                "lengths of a column range."
            )
        if statistic in LABELS:
            return f"{start} the count of each label is at most {most} below that of the best label left."
        text = f"{start} the released value is within {most} ranks of {self._sought()}."
        cut = error.get("cut")
        if cut is True or (isinstance(cut, Mapping) and any(was_cut is True for was_cut in cut.values())):
            text += " There were too few public records for this rank: the value may lie beyond all records."
        if "lower" in error:
            name = "quantile" if self.facts.statistic not in ("min", "max") else extreme_of(self.facts)
            text += f" released.dp.interval() returns an interval for the {name} of these data"
            text += f"{self._hidden}."
        return text + self._in_value()

    def _sought(self) -> str:
        """The estimand of a selection by rank."""
        rank = _by_name(self.facts.error.get("rank"))
        if self.facts.statistic not in ("min", "max"):
            return "the true quantile" + (f", or of rank {rank} from the end" if rank else "")
        end = "lower" if self.facts.statistic == "min" else "upper"
        return f"rank {rank} from the {end} end, which stands for the true {extreme_of(self.facts)}"

    def _in_value(self) -> str:
        """The error in value of a minimum or maximum, with advice where its rank is rough."""
        error, statistic = self.facts.error, self.facts.statistic
        widest, step = (_by_name(error.get(name), plain) for name in ("widest", "step"))
        if statistic not in ("min", "max") or not widest or not step:
            return ""
        text = f" In value it may be off by up to {widest}, in steps of at most {step}."
        rank = error["rank"]
        if max(rank.values() if isinstance(rank, Mapping) else [rank]) > ROUGH:
            q = 0.01 if statistic == "min" else 0.99
            text += f" Rather ask for private.dp.quantile({self.facts.columns[0]!r}, {q}, epsilon=0.1)."
        return text

    @property
    def projected(self) -> str:
        """The numbers that a projection moved; empty if there is none."""
        projection = self.facts.projection
        if projection is None:
            return ""
        at = projection["at"]
        cells = self.released.to_numpy().ravel()[at].tolist()
        if self.dates:
            cells = [str(pd.Timestamp(cell)) for cell in self.released.to_numpy().ravel()[at]]
        moved = sum(cell != before for cell, before in zip(cells, projection["values"], strict=True))
        if not moved:
            return ""
        nearest = "matrix" if self.facts.statistic in metadata.MATRICES else "number"
        target = "into the order of q" if self.selected else f"to the nearest possible {nearest}"
        text = f"{moved:,} of {self.released.size:,} moved {target}"
        if missed := len(projection["missed"]):
            text += f", {missed:,} of them with the whole interval"
        return f"{text}; released.dp.unprojected() returns the numbers before"

    @property
    def bias(self) -> str:
        """The bias by bounding; empty without bounding, or where a projection hardly biases any number."""
        error = self.facts.error
        if self.facts.bounding is None or not (self.facts.bounding != metadata.PROJECT or self._biased):
            return ""
        if "note" in error:
            return str(error["note"])
        if (largest := self._largest(error.get("bias"))) is None:
            return "not known"
        rmse, worst = self._largest(error.get("rmse")), error.get("worst_case")
        text = f"at most {largest}" + (f" (root mean squared error {rmse})" if rmse else "")
        text += " if the true numbers are the released ones"
        most = self._largest(worst.get("bias")) if isinstance(worst, Mapping) else None
        return text if most is None else f"{text}; at most {most} for any data"

    @property
    def _biased(self) -> bool:
        """Whether a bias is more than a hundredth of the standard error of its number."""
        shape, error = self.released.shape, self.facts.error
        if not self.unchanged:  # what is here may have another shape
            return True
        if error.get("bias") is None:
            return "note" in error and bool(self.projected)
        biases, errors = (self.facts.error_of_each(name, shape) for name in ("bias", "standard_error"))
        return bool((np.abs(biases) > errors / 100).any())

    def _largest(self, numbers: Any) -> str | None:
        """Format the largest size of several numbers; None if none is known."""
        try:
            sizes = np.abs(np.asarray(numbers, dtype=np.float64).ravel())
        except (TypeError, ValueError):
            return None
        finite = sizes[np.isfinite(sizes)]
        if not finite.size:
            return None
        return duration(float(finite.max())) if self.dates else half_width(float(finite.max()), whole=True)

    @property
    def budget(self) -> str:
        """The spent part of the budget after the release."""
        stored = self.facts.budget
        (spent, spent_delta), (total, total_delta) = stored["spent"], stored["total"]
        after = f", accounting {stored['accounting']}" if "accounting" in stored else ""
        if stored.get("currency") == "rho":
            return f"rho {cost(spent)} of {cost(total)} spent{after}"
        delta = f", delta {cost(spent_delta)} of {cost(total_delta)}"
        return f"epsilon {cost(spent)} of {cost(total)}{delta} spent{after}"

    @property
    def risk(self) -> str:
        """The estimated disclosure risk, or why it is not known; empty for releases without one."""
        risk = self.facts.dr_ha
        if risk is None:
            return ""
        if "reason" in risk:
            return f"not estimated (dr_ha): {risk['reason']}"
        own, reached = percent(float(risk["by_records"])), risk.get("at_total_loss")
        text = f"{own} of records in this table (dr_ha, estimated from the released counts)"
        if reached is None or percent(float(reached)) == own:
            return text
        return f"{text}; {percent(float(reached))} at the total loss by then, which the budget counts"

    @property
    def rows(self) -> list[tuple[str, str]]:
        """The facts of the release, by name."""
        facts = self.facts
        rows = [
            ("error", self.error),
            ("part", self.part),
            ("fit", self.regression),
            ("cost", self.cost),
            ("charge", ANSWERED_BEFORE if self.again else ""),
            ("mechanism", self.mechanism),
            ("neighbors", neighbors_text(facts.neighbors, facts.unit)),
            ("budget", self.budget),
            ("projected", self.projected),
            ("bias", self.bias),
            ("risk", self.risk),
            ("releases", f"{facts.releases}, which share the cost" if facts.releases > 1 else ""),
            ("rows", "" if facts.rows is None else f"{facts.rows:,} (public)"),
            ("where", self.conditions),
            ("after", ", ".join(map(str, facts.lineage))),
            ("release id", facts.release_id),
        ]
        return [(name, printable(text)) for name, text in rows if text]


def extreme_of(facts: Metadata) -> str:
    """Return the name of a minimum or maximum."""
    return TITLES[facts.statistic].lower()


def _by_name(
    stored: Any, form: Callable[[float], str] = lambda number: half_width(number, whole=True)
) -> str:
    """Format numbers (of records), one for all or one per name; empty if none is known."""
    if not isinstance(stored, Mapping):
        return "" if stored is None else form(float(stored))
    texts = {name: form(float(number)) for name, number in stored.items() if number is not None}
    if len(set(texts.values())) == 1 and len(texts) == len(stored):
        return next(iter(texts.values()))
    return listed(f"{text} ({name})" for name, text in texts.items())
