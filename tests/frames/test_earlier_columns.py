"""Columns of an earlier frame hold in a later one, exactly while their records and cells are the same."""

from __future__ import annotations

import random
import warnings
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.errors import ParameterError, PrivacyError, QueryError
from pdprivacy.frames import ProtectedFrame, find
from tests.support.engine_frames import BESIDE_PANDAS, frame_of
from tests.support.snapshots import records_of

DOMAIN = Domain(
    (
        Column("a", "integer", lower=-1, upper=10),
        Column("b", "float", lower=0, upper=9, nullable=True),
        Column("z", "category", categories=("n", "s", "w")),
        Column("f", "boolean"),
        Column(1, "integer", lower=-1, upper=10),
        Column("an age", "integer", lower=-1, upper=10),
    )
)
REFUSED = r"different protected frames|another protected frame"


def records() -> pd.DataFrame:
    rng = random.Random(1)
    frame = pd.DataFrame({
        "a": [rng.randrange(10) for _ in range(60)],
        "b": [rng.choice([None, 1.0, 4.0, 8.0]) for _ in range(60)],
        "z": [rng.choice("nsw") for _ in range(60)],
        "f": [rng.random() < 0.5 for _ in range(60)],
        1: [rng.randrange(10) for _ in range(60)],
        "an age": [rng.randrange(10) for _ in range(60)],
    })  # fmt: skip
    frame["b"] = frame["b"].astype(float)
    return frame


def protected() -> ProtectedFrame:
    return records().dp.protect(DOMAIN, epsilon=1000)


@dataclass(eq=False)
class Mirror:
    """A protected frame, the pandas frame of its records, what made each column, and the frame before."""

    private: ProtectedFrame
    frame: pd.DataFrame
    makers: dict[Any, object]
    before: Mirror | None = None

    def chain(self) -> list[Mirror]:
        """This frame and all before it."""
        return [self, *(self.before.chain() if self.before else ())]

    def after(self, private: ProtectedFrame, frame: pd.DataFrame, *made: Any) -> Mirror:
        maker = object()
        makers = {name: maker if name in made else self.makers[name] for name in frame.columns}
        return Mirror(private, frame, makers, self)

    def of_records(self, private: ProtectedFrame) -> Mirror:
        """A frame of some of the records."""
        return self.after(private, self.frame.loc[records_of(private).index])


def numbers(mirror: Mirror) -> list[Any]:
    return [column.name for column in mirror.private.dp.domain.columns if column.kind in ("integer", "float")]


def stepped(mirror: Mirror, rng: random.Random) -> Mirror:
    """The frame after one random step, which may be refused for what is declared."""
    private, frame = mirror.private, mirror.frame
    name, other = rng.choice(list(frame.columns)), rng.choice(list(frame.columns))
    number = rng.choice(numbers(mirror))
    match rng.randrange(13):
        case 0 | 1 | 2:
            limit = rng.randrange(5)
            return mirror.after(private[private[number] >= limit], frame[frame[number] >= limit])
        case 3:
            return mirror.after(private[private["f"]], frame[frame["f"].astype(bool)])
        case 4:
            chosen = rng.sample(list(frame.columns), rng.randrange(1, len(frame.columns) + 1))
            return mirror.after(private[chosen], frame[chosen])
        case 5:
            return mirror.after(private.dropna(), frame.dropna())
        case 6:
            plain = frame.copy()
            plain[number] = frame[number].clip(upper=6)
            return mirror.after(private.clip(upper={number: 6}), plain, number)
        case 7:
            new = rng.choice(["a", "x"])
            return mirror.after(
                private.assign(**{new: private[number] + 1}), frame.assign(**{new: frame[number] + 1}), new
            )
        case 8:
            filled = ["b"] if private.dp.domain["b"].nullable else []  # otherwise the step changes nothing
            return mirror.after(private.fillna({"b": 2}), frame.assign(b=frame["b"].fillna(2)), *filled)
        case 9:
            return mirror.after(
                private.recode("z", {"n": "s"}), frame.assign(z=frame["z"].replace("n", "s")), "z"
            )
        case 10:
            names = {name: other, other: name} if rng.random() < 0.5 else {name: "renamed"}
            new = [name for old, name in names.items() if old != name]
            return mirror.after(private.rename(names), frame.rename(columns=names), *new)
        case 11:
            return mirror.of_records(private.dp.sample(frac=0.9, rng=rng.randrange(99)))
        case _:
            groups = private.dp.partition("z", epsilon=private.dp.budget.left[0] / 9)
            return mirror.of_records(groups[rng.choice(list(groups))])


def condition(mirror: Mirror, name: Any) -> tuple[Any, pd.Series]:
    """A condition on a column, and its mask."""
    if name in numbers(mirror):
        return abs(mirror.private[name]) >= 3, mirror.frame[name].abs() >= 3
    if mirror.private.dp.domain[name].kind == "boolean":
        return ~mirror.private[name], ~mirror.frame[name].astype(bool)
    return mirror.private[name] == "n", mirror.frame[name] == "n"


def aligned(mask: pd.Series, frame: pd.DataFrame) -> pd.DataFrame:
    """What pandas selects by a mask of a frame that these records come from."""
    return frame[mask.reindex(frame.index)]


def outcome(private: ProtectedFrame, chosen: Any) -> Any:
    """The frame that a condition selects, or the error."""
    try:
        return private[chosen]
    except (ParameterError, QueryError) as error:
        return error


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("seed", range(15))
def test_a_condition_of_an_earlier_frame_chooses_the_records_that_pandas_chooses(seed):
    """Random steps: accepted is what holds the same cells, and nothing else is."""
    rng = random.Random(seed)
    start = records()
    mirrors = [Mirror(protected(), start, dict.fromkeys(start.columns, object()))]
    accepted = refused = 0
    for _ in range(14):
        with warnings.catch_warnings(action="ignore"):
            try:
                mirrors.append(stepped(rng.choice(mirrors[-4:]), rng))
            except (PrivacyError, KeyError, IndexError):  # nothing to do it with
                continue
    for later in mirrors:
        for earlier in mirrors:
            for name in earlier.frame.columns:
                try:
                    chosen, mask = condition(earlier, name)
                except QueryError:  # of a label that is no longer declared
                    continue
                same = earlier in later.chain() and later.makers.get(name) is earlier.makers[name]
                filtered = outcome(later.private, chosen)
                if not same:
                    assert "another protected frame" in str(filtered), (find(later.private).lineage, name)
                    refused += 1
                    continue
                own = outcome(later.private, condition(later, name)[0])
                if isinstance(filtered, QueryError):
                    assert str(filtered) == str(own)
                    continue
                assert records_of(filtered).index.equals(aligned(mask, later.frame).index)
                assert own.dp.domain == filtered.dp.domain
                assert own.dp.lineage.equals(filtered.dp.lineage)
                accepted += earlier is not later
    assert accepted > 20
    assert refused > 20


def test_conditions_of_earlier_frames_narrow_what_is_declared():
    private = protected()
    adults = private[private["a"] > 3][private["z"] == "n"]
    assert adults.dp.domain["a"].bounds("mean") == (4.0, 10.0)
    assert adults.dp.domain["z"].categories == ("n",)
    assert adults[private["a"] < 7].dp.domain["a"].bounds("mean") == (4.0, 6.0)
    assert private.select(["a", "z"])[private["a"] > 3].columns.tolist() == ["a", "z"]
    with pytest.raises(QueryError, match="no declared record"):
        adults[private["a"] < 3]


USES = {
    "comparison": lambda f, g: f["a"] >= g[1],
    "conditions": lambda f, g: (f["a"] > 5) & (g["f"] | (g[1] < 3)),
    "negation": lambda f, g: ~((g["an age"] > 5) | f["f"]),
    "arithmetic": lambda f, g: abs(f["a"] - g["an age"]) + 2 * g[1] > 7,
    "between": lambda f, g: f["a"].between(g[1], g["an age"]),
}


@pytest.mark.parametrize("use", USES)
def test_operands_of_two_frames_are_those_of_the_later_one(use):
    private = protected()
    later = private[private["a"] > 1].dropna()
    own = later[USES[use](later, later)]
    for pair in ((private, later), (later, private)):
        mixed = USES[use](*pair)
        assert records_of(later[mixed]).equals(records_of(own))
        assert later[mixed].dp.domain == own.dp.domain
        with pytest.raises(ParameterError, match="another protected frame"):
            private[mixed]
        made = later.assign(new=mixed)
        assert records_of(made).equals(records_of(later.assign(new=USES[use](later, later))))


def test_columns_of_unrelated_later_and_changed_frames_are_refused():
    private, same = protected(), protected()
    left, right = private[private["a"] > 3], private[private["a"] > 3]
    older = private.assign(a="a + 1")
    swapped, without = private.rename({"a": "c"}), private.select(["z"])
    again = without.assign(a="z == 'n'")
    for use in (
        lambda: private[same["a"] > 3],
        lambda: left[right["a"] > 3],
        lambda: private[left["a"] > 3],
        lambda: older[private["a"] > 3],
        lambda: older.assign(x=private["a"] + older[1]),
        lambda: private["a"] + older[1],
        lambda: older["a"] + private["a"],
        lambda: swapped[private["a"] > 3],
        lambda: without[private["a"] > 3],
        lambda: again[private["a"] > 3],
    ):
        with pytest.raises(ParameterError, match=REFUSED):
            use()
    assert older[private[1] > 3].dp.domain[1].bounds("mean") == (4.0, 10.0)
    named = private.assign(abs="a + 1")
    assert records_of(named[abs(private["a"]) > 3]).equals(records_of(named[named["a"] > 3]))


@pytest.mark.parametrize("label", ["`1`", "1"])
def test_labels_of_one_text_are_not_confused(label):
    domain = Domain((Column(1, "integer", lower=-1, upper=10), Column("1", "integer", lower=-1, upper=10)))
    private = pd.DataFrame([[1, 8], [8, 1]], columns=pd.Index([1, "1"], dtype=object)).dp.protect(
        domain, epsilon=1
    )
    key = 1 if label == "`1`" else "1"
    later = private[private[key] > 0]
    assert records_of(later[private[key] > 5])[key].tolist() == [8]
    alone = private.select([key])
    try:
        filtered = alone[private[key] > 5]
    except ParameterError:
        return
    assert records_of(filtered)[key].tolist() == [8]


@pytest.mark.parametrize("engine", [name for name in BESIDE_PANDAS if name != "Spark"])
def test_every_engine_takes_conditions_of_earlier_frames(engine):
    domain = Domain(DOMAIN.columns[:4])
    private = pdprivacy.protect(frame_of(engine, records()[["a", "b", "z", "f"]]), domain, epsilon=1000)
    plain = records()
    count = private[private["a"] > 3][private["z"] == "n"].dp.count(epsilon=500, rng=1)
    assert count.iloc[0] == ((plain["a"] > 3) & (plain["z"] == "n")).sum()
    with pytest.raises(ParameterError, match="another protected frame"):
        private.clip(upper={"a": 5})[private["a"] > 3]
