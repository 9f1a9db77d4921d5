"""Idioms of the pandas user guide, tried on a protected frame and on releases; the page that lists them.

``python -m tests.support.idioms --write`` writes the tables of `docs/from_pandas.md`; without ``--write`` it
says what differs. An idiom works, or it is refused with a hint, whose own call is tried, too.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.declaration.timeline import Timeline
from pdprivacy.errors import PrivacyError
from pdprivacy.frames import ProtectedFrame
from pdprivacy.frames.column import ProtectedColumn
from pdprivacy.releases.excerpts import as_release

__all__ = ["IDIOMS", "PAGE", "Outcome", "outcome_of", "page"]

PAGE = Path(__file__).parents[2] / "docs" / "from_pandas.md"

DOMAIN = Domain(
    (
        Column("age", "integer", lower=0, upper=120, bins=(0, 18, 30, 65, 120)),
        Column("income", "float", nullable=True, lower=0, upper=90_000),
        Column("region", "category", categories=("north", "south", "west")),
        Column("health", "category", nullable=True, categories=("no", "yes")),
        Column("size", "category", categories=("S", "M", "L"), ordered=True),
        Column("member", "boolean"),
        Column("when", "integer", lower=0, upper=799, timeline=Timeline(18262, "D")),
    )
)
"""Seven columns; dates from 2020-01-01 on."""

ON_PROTECTED: dict[str, str] = {
    "Looking at data": """
        private
        private.columns
        private.copy()
        private.head()
        private.tail(3)
        private.sample(10)
        private.shape
        private.size
        private.empty
        private.index
        private.dtypes
        private.info()
        float(private["income"])
        int(private["age"])
        "%.2f" % private["income"]
        f"{private['income']:.2f}"
        private.values
        private.to_numpy()
        private.T
        private.describe()
        private["age"].describe()
        private.memory_usage()
        private.nunique()
        private["region"].nunique()
        private["region"].unique()
        private["region"].value_counts()
        private.value_counts(["region", "member"])
        len(private)
        list(private.columns)
        "age" in private.columns
        for row in private: pass
        private.iterrows()
        private.itertuples()
        private.to_csv("records.csv")
        private.to_dict()
        private.hist()
        private["age"].hist()
    """,
    "Selecting": """
        private["age"]
        private[["age", "region"]]
        private.age
        private.get("age")
        private.loc[:, "age"]
        private.loc[:, ["age", "region"]]
        private.loc[private["age"] >= 18]
        private.loc[private["age"] >= 18, "income"]
        private.loc[private["age"] >= 18, ["income", "region"]]
        private.loc[lambda df: df["age"] >= 18]
        private.loc[0]
        private.loc[0, "age"]
        private.loc[0:5]
        private.iloc[0]
        private.iloc[:10]
        private.at[0, "age"]
        private.iat[0, 0]
        private[0:10]
        private[private["age"] >= 18]
        private[lambda df: df["age"] >= 18]
        private[(private["age"] >= 18) & (private["region"] == "north")]
        private[(private["age"] < 18) | private["member"]]
        private[~private["member"]]
        private[private["age"] >= 18 & private["member"]]
        private[private["age"] >= 18 and private["member"]]
        private[private["region"].isin(["north", "south"])]
        private[~private["region"].isin(["north"])]
        private[private["age"].between(18, 64)]
        private[private["age"].between(18, 64, inclusive="left")]
        private[private["age"] != 30]
        private[private["income"].notna()]
        private[private["income"] > private["age"] * 100]
        private[private["income"] > private["income"].mean()]
        private[private["income"] > private["income"].quantile(0.9)]
        private[private["age"].gt(30)]
        private[private["age"].eq(30)]
        private[private["region"].eq("north")]
        private.query("age >= 18")
        private.query("age >= 18 and region == 'north'")
        private.query("18 <= age < 65")
        private.query("region in ['north', 'south']")
        private.query("region not in ['north']")
        private.query("age > @limit")
        private.query("region == @home")
        private.query("region in @homes")
        private.query("income.isna()")
        private.query("age > age.mean()")
        private.query("index > 3")
        private.filter(items=["age", "region"])
        private.filter(like="e")
        private.filter(regex="^in")
        private.select_dtypes("number")
        private.drop(columns=["age"])
        private.drop(columns="age")
        private.drop(["age"], axis=1)
        private.drop(index=[0])
        private.pop("age")
        del private["age"]
        private.truncate(before=3)
        private.xs(3)
        private.take([0, 1])
        private.nlargest(5, "income")
        private.nsmallest(5, "income")
        private["income"].nlargest(5)
        private.sample(frac=0.5)
        private.first_valid_index()
        private.drop_duplicates()
        private.duplicated()
        private["region"].drop_duplicates()
        private.sort_values("age")
        private.sort_index()
        private.set_index("region")
        private.reset_index()
        private.reindex([0, 1])
        private.isin(["north"])
        private["age"].where(private["age"] >= 18)
        private["age"].where(private["age"] >= 18, 18)
        private["age"].mask(private["age"] > 90, 90)
        private.where(private["age"] >= 18)
        private["income"].idxmax()
        private["income"].argmax()
    """,
    "New columns": """
        private["net"] = private["income"] * 0.8
        private.assign(net=private["income"] * 0.8)
        private.assign(net=lambda df: df["income"] * 0.8)
        private.assign(net="income * 0.8")
        private.assign(a=private["age"] + 1, b=lambda df: df["a"] * 2)
        private.assign(adult=private["age"] >= 18)
        private.assign(share=private["income"] / private["age"])
        private.assign(share=private["income"] / (private["age"] + 1))
        private.assign(log=np.log(private["income"] + 1))
        private.assign(log=np.log1p(private["income"]))
        private.assign(log=np.log(private["income"]))
        private.assign(root=np.sqrt(private["income"]))
        private.assign(most=np.maximum(private["age"], 18))
        private.assign(age2=private["age"] ** 2)
        private.assign(tens=private["age"] // 10)
        private.assign(rest=private["age"] % 10)
        private.assign(size=np.where(private["age"] >= 18, "adult", "minor"))
        private.assign(size=np.select([private["age"] < 18, private["age"] < 65], ["a", "b"], "c"))
        private.assign(x=private["age"].case_when([(private["age"] > 90, 90)]))
        private.assign(x=private["age"].clip(18, 90))
        private.assign(x=private["income"].round(-3))
        private.assign(x=round(private["income"]))
        private.assign(x=private["income"].abs())
        private.assign(x=-private["age"])
        private.assign(x=private["income"].apply(lambda cell: cell * 2))
        private.assign(x=private["income"].rank())
        private.assign(x=private["income"].cumsum())
        private.assign(x=private["income"].shift())
        private.assign(x=private["income"].diff())
        private.assign(x=private["income"] - private["income"].mean())
        private.assign(x=private.groupby("region")["income"].transform("mean"))
        private.assign(x=pd.Series([1, 2, 3]))
        private.assign(x=1)
        private.assign(x="1")
        private.insert(0, "x", private["age"])
        private.eval("income * 0.8")
        private.apply(np.log)
        private.map(str)
        private["age"].map({1: 2})
        private["age"].add(1)
        private["age"].mul(2)
        private["age"].sub(private["income"])
        private["age"].div(2)
        private["age"].pow(2)
        private.pipe(lambda df: df.query("age >= 18"))
        private.rename(columns={"age": "years"})
        private.add_prefix("x_")
        private.set_axis(list("abcdefg"), axis=1)
        private.astype({"age": "float64"})
        private["age"].astype("float64")
        private["age"].astype(str)
        private.convert_dtypes()
        private.clip(upper={"age": 90})
        private.round({"income": -3})
        pd.cut(private["age"], [0, 18, 65, 120])
        private.cut("age", [0, 18, 65, 120])
        pd.qcut(private["income"], 4)
        pd.get_dummies(private["region"])
        private.explode("region")
    """,
    "Statistics": """
        private.mean()
        private["income"].mean()
        private["income"].sum()
        private["income"].median()
        private["income"].std()
        private["income"].var()
        private["income"].min()
        private["income"].max()
        private["income"].quantile(0.9)
        private["income"].mode()
        private["income"].count()
        private.count()
        private["income"].sem()
        private["income"].skew()
        private["income"].kurt()
        private["income"].prod()
        private["income"].cummax()
        private["income"].pct_change()
        private["income"].corr(private["age"])
        private.corr()
        private.cov()
        private.corrwith(private["age"])
        private.agg(["mean", "std"])
        private["income"].agg("mean")
        private.mode()
        private["member"].any()
        private["member"].all()
        private["member"].sum()
        private["member"].mean()
        (private["age"] >= 18).sum()
        (private["age"] >= 18).mean()
        sum(private["age"])
        max(private["age"])
        np.mean(private["income"])
        np.median(private["income"])
        np.histogram(private["age"])
        pd.crosstab(private["region"], private["health"])
        private.dp.mean("income", epsilon=0.1)
        private.dp.agg(["mean", "std"], "income", epsilon=0.1)
        private.dp.agg("median", "income", epsilon=0.1)
        private.dp.agg(["min", "median", "max"], "income", epsilon=0.1)
        private.dp.agg(["mean", "median"], "income", epsilon=0.1)
        private.dp.agg({"age": "mean", "income": "std"}, epsilon=0.1)
        private.dp.describe("age", epsilon=0.1)
        private.dp.value_counts("region", epsilon=0.1)
        private.dp.value_counts("region", normalize=True, epsilon=0.1)
        private.dp.quantile("age", [0.25, 0.5, 0.75], epsilon=0.1)
        private.dp.quantile(0.5, epsilon=0.1)
        private.dp.corr(["age", "income"], epsilon=0.1)
        private.dp.mean("age")
        private.dp.mean("agee", epsilon=0.1)
        private.dp.nunique("region", epsilon=0.1)
        private.dp.sample(frac=0.5)
    """,
    "Grouping": """
        private.groupby("region")
        private.groupby("region")["income"].mean()
        private.groupby("region").size()
        private.groupby("region").agg({"income": "mean"})
        private.groupby(["region", "member"])["income"].sum()
        private.resample("M")
        private.rolling(3)
        private.expanding()
        private.ewm(span=3)
        private.pivot_table("income", index="region")
        private.dp.groupby("region").size(epsilon=0.1)
        private.dp.groupby("region").count(epsilon=0.1)
        private.dp.groupby("region")["income"].mean(epsilon=0.1)
        private.dp.groupby("region").mean("income", epsilon=0.1)
        private.dp.groupby("region").sum("income", epsilon=0.1)
        private.dp.groupby("region").std("income", epsilon=0.1)
        private.dp.groupby("region").median("income", epsilon=0.1)
        private.dp.groupby("region").min("income", epsilon=0.1)
        private.dp.groupby("region").quantile("income", 0.9, epsilon=0.1)
        private.dp.groupby("region").nunique("health", epsilon=0.1)
        private.dp.groupby("region").describe("income", epsilon=0.1)
        private.dp.groupby("region").value_counts("health", epsilon=0.1)
        private.dp.groupby("region").agg("median", "income", epsilon=0.1)
        private.dp.groupby("region").agg(["mean", "std"], "income", epsilon=0.1)
        private.dp.groupby("region").agg(["mean", "median"], "income", epsilon=0.1)
        private.dp.groupby("region").agg({"income": "mean", "age": "std"}, epsilon=0.1)
        private.dp.groupby("region").agg(pay=("income", "mean"), n=("age", "size"), epsilon=0.1)
        private.dp.groupby(["region", "member"]).mean("income", epsilon=0.1)
        private.dp.groupby("age").count(epsilon=0.1)
        private.dp.groupby("income").count(epsilon=0.1)
        private.dp.groupby("when", freq="Q").count(epsilon=0.1)
        private.dp.groupby(pd.Grouper(key="when", freq="QE")).count(epsilon=0.1)
        private.dp.groupby("health", dropna=True).count(epsilon=0.1)
        private.dp.groupby("region").apply(len)
        private.dp.groupby("region").transform("mean")
        private.dp.groupby("region").filter(lambda group: len(group) > 9)
        private.dp.groupby("region").first()
        private.dp.groupby("region").head(1)
        private.dp.groupby("region").cumcount()
        private.dp.groupby("region").rank()
        private.dp.groupby("region").idxmax()
        private.dp.groupby("region").groups
        private.dp.groupby("region").ngroups
        private.dp.groupby("region").get_group("north")
        for name, group in private.dp.groupby("region"): pass
        len(private.dp.groupby("region"))
    """,
    "Reshaping": """
        private.dp.crosstab("region", "health", epsilon=0.1)
        private.dp.crosstab("region", "health", margins=True, epsilon=0.1)
        private.dp.crosstab("region", "health", normalize="index", epsilon=0.1)
        private.dp.crosstab("region", "health", values="income", aggfunc="mean", epsilon=0.1)
        private.dp.pivot_table("income", index="region", columns="member", epsilon=0.1)
        private.dp.pivot_table("income", index="region", aggfunc="sum", epsilon=0.1)
        private.dp.pivot_table("income", index="region", aggfunc="median", epsilon=0.1)
        private.pivot(index="region", columns="member", values="income")
        private.melt()
        private.stack()
        private.unstack()
        private.transpose()
        private.merge(private, on="region")
        private.merge(pd.DataFrame({"region": ["north"], "area": [3]}), on="region", how="left")
        private.join(private)
        private.append(private)
        private.combine_first(private)
        private.compare(private)
        private.squeeze()
    """,
    "Categoricals": """
        private["size"].cat.codes
        private["size"].cat.categories
        private["size"].cat.rename_categories({"S": "small"})
        private["size"].cat.ordered
        private[private["size"] <= "M"]
        private[private["region"] <= "north"]
        private["size"].map({"S": 1, "M": 2, "L": 3})
        private["size"].replace({"S": "small"})
        private["size"].replace("S", "small")
        private.replace({"region": {"north": "N"}})
        private.recode("region", {"north": "N"})
        private["region"].astype("category")
        private.astype({"region": pd.CategoricalDtype(["west", "south", "north"], ordered=True)})
        private["region"].factorize()
        private["region"].where(private["region"] != "west", "other")
    """,
    "Time series": """
        private["when"].dt.year
        private["when"].dt.month
        private["when"].dt.quarter
        private["when"].dt.day
        private["when"].dt.dayofweek
        private["when"].dt.weekday
        private["when"].dt.day_name()
        private["when"].dt.month_name()
        private["when"].dt.hour
        private["when"].dt.date
        private["when"].dt.normalize()
        private["when"].dt.to_period("M")
        private["when"].dt.floor("D")
        private["when"].dt.strftime("%Y-%m")
        private["when"].dt.is_month_end
        private["when"].dt.isocalendar()
        private["when"].dt.tz_localize("UTC")
        private[private["when"] >= "2020-06-01"]
        private[private["when"] >= day]
        private[private["when"].between("2020-03-01", "2020-05-31")]
        private.query("when < '2020-06-01'")
        private.query("when < @day")
        private.assign(days=private["when"] - "2020-01-01")
        private["when"] - pd.Timestamp("2020-01-01")
        private["when"] + pd.Timedelta(days=1)
        private.cut("when", freq="M")
        private.dp.value_counts("when", freq="M", epsilon=0.1)
        private.dp.mean("when", epsilon=0.1)
        private["when"].min()
        private["when"].diff()
        pd.to_datetime(private["when"])
        private.set_index("when").resample("M")
        private.between_time("9:00", "17:00")
        private.asfreq("D")
    """,
    "Missing data": """
        private["income"].isna()
        private["income"].isnull()
        private["income"].isna().sum()
        private.isna()
        private.isna().sum()
        private.notna()
        private["income"].fillna(0)
        private.fillna(0)
        private.fillna({"income": 0})
        private["income"].fillna(private["income"].mean())
        private.fillna(private.mean())
        private["income"].ffill()
        private.ffill()
        private.bfill()
        private["income"].interpolate()
        private.dropna()
        private.dropna(subset=["income"])
        private.dropna(how="all")
        private.dropna(thresh=2)
        private["income"].dropna()
        private["income"].hasnans
        private[private["income"] == None]
        private[private["income"] == np.nan]
        private["income"].replace(-99, np.nan)
        private["income"].mask(private["income"] > 80_000)
        private["health"].fillna("unknown")
        private.dp.value_counts("health", epsilon=0.1)
        private.dp.value_counts("health", dropna=False, epsilon=0.1)
    """,
    "Text": """
        private["region"].str.upper()
        private["region"].str.lower()
        private["region"].str.strip()
        private["region"].str.len()
        private["region"].str[:2]
        private["region"].str[0]
        private["region"].str.slice(0, 2)
        private["region"].str.replace("n", "N")
        private["region"].str.contains("th")
        private[private["region"].str.contains("th")]
        private[private["region"].str.startswith("n")]
        private["region"].str.match("n.*")
        private["region"].str.split("o")
        private["region"].str.cat(private["health"])
        private["region"].str.get(0)
        private["region"].str.extract("(n)")
        private["region"].str.zfill(8)
        private["region"].str.get_dummies()
        private["age"].str.upper()
        private["region"] + private["health"]
        private["region"] + "!"
    """,
}
"""Idioms on a protected frame, by topic."""

ON_RELEASES: dict[str, str] = {
    "Selecting": """
        counts["north"]
        counts.loc["north"]
        counts.loc[["north", "west"]]
        counts.iloc[0]
        counts.iloc[:2]
        counts.head(2)
        counts.tail(1)
        counts[counts > 10]
        counts.nlargest(2)
        counts.drop("west")
        counts.idxmax()
        count.item()
        f"{count.item():.1f}"
        table["yes"]
        table[["yes"]]
        table.loc["north"]
        table.loc["north", "yes"]
        table.loc[["north", "west"], ["yes"]]
        table.iloc[0, 0]
        table.query("yes > 10")
        table[table["yes"] > 10]
        table.filter(like="y")
        table.at["north", "yes"]
    """,
    "Sorting and reshaping": """
        counts.sort_values()
        counts.sort_values(ascending=False)
        counts.sort_index()
        counts.reindex(["west", "north", "south"])
        counts.to_frame()
        counts.reset_index()
        counts.rename("people")
        counts.rename({"north": "N"})
        counts.dp.relabel({"north": "N"})
        table.T
        table.sort_values("yes")
        table.unstack()
        table.melt()
        table.reset_index()
        table.rename(columns={"yes": "ill"})
        table.rename_axis("area")
        by_two.unstack()
        by_two.swaplevel()
        by_two.xs("north")
        pd.concat([counts, counts])
        pd.concat([counts.dp.to_frame(), counts.dp.to_frame()])
    """,
    "Arithmetic and display": """
        counts.round(-1)
        means.round(1)
        counts + 1
        counts / counts.sum()
        counts.sum()
        table.sum()
        table.sum(axis=1)
        table.div(table.sum(axis=1), axis=0)
        table["yes"] / table["no"]
        means.mean()
        counts.astype(float)
        counts.clip(lower=0)
        counts.where(counts > 5)
        counts.cumsum()
        counts.pct_change()
        counts.describe()
        counts.dp.interval()
        counts.dp.total()
        counts.dp.difference("north", "west")
        counts.dp.ratio("north", "west")
        counts.dp.censor(100)
        table.dp.total(axis=1)
        table.dp.ratio("yes", "no")
        counts.dp.to_frame()
        counts.dp.to_markdown()
        counts.to_csv()
        counts.to_dict()
        counts.copy()
        counts == counts
        counts.equals(counts)
        counts.dp.verify()
    """,
}
"""Idioms on releases: counts of regions, a table of regions by health, means, and counts by two columns."""

IDIOMS: list[tuple[str, str, str]] = [
    (subject, topic, line.strip())
    for subject, topics in (("protected", ON_PROTECTED), ("released", ON_RELEASES))
    for topic, block in topics.items()
    for line in block.strip().splitlines()
]
"""Whether an idiom is of a protected frame or of a release, its topic, and the idiom."""


@dataclass(frozen=True)
class Outcome:
    """What came of an idiom: how it ``works``, or the ``reason`` and the calls that its error suggests."""

    works: str = ""
    reason: str = ""
    hint: str = ""
    calls: tuple[str, ...] = ()
    fault: str = ""


@functools.cache
def frame() -> pd.DataFrame:
    """A frame of 400 records."""
    n = np.arange(400)
    return pd.DataFrame(
        {
            "age": 18 + n * 7 % 60,
            "income": np.where(n % 9, n * 101.0 % 70_000 + 100, np.nan),
            "region": np.array(["north", "south", "west"])[n % 3],
            "health": np.array(["no", "yes", None], dtype=object)[n % 3 * (n % 2)],
            "size": np.array(["S", "M", "L"])[n % 3],
            "member": n % 4 > 0,
            "when": pd.Timestamp("2020-02-01") + pd.to_timedelta(n, unit="D"),
        }
    )


@functools.cache
def _names() -> dict[str, Any]:
    """The names that idioms use."""
    import datetime

    private = pdprivacy.protect(frame(), DOMAIN, epsilon=10**9)
    cost = {"epsilon": 0.5, "rng": 3}
    return {
        "pd": pd,
        "np": np,
        "pdprivacy": pdprivacy,
        "private": private,
        "day": datetime.date(2020, 6, 1),
        "limit": 30,
        "home": "north",
        "homes": ["north", "south"],
        "counts": private.dp.value_counts("region", sort=False, **cost),
        "count": private.dp.count(**cost),
        "table": private.dp.crosstab("region", "health", **cost),
        "means": private.dp.mean(["age", "income"], **cost),
        "by_two": private.dp.groupby(["region", "member"]).mean("age", **cost),
    }


def _run(code: str) -> Any:
    """The result of an expression or a statement."""
    names = dict(_names())
    if code.startswith("del ") or re.match(r"for |[\w\[\]\"']+ = ", code):
        exec(code, names)
        return None
    return eval(code, names)


def _works(result: Any) -> str:
    """What is made of a result, in words; errors of its use are raised."""
    if isinstance(result, ProtectedFrame):
        result.dp.count(epsilon=1)
        return "a protected frame"
    if isinstance(result, ProtectedColumn):
        ProtectedFrame(result._protected).assign(new=result)
        return "a column"
    if isinstance(result, pd.DataFrame | pd.Series) and "dp" in result.attrs:
        return "with errors" if as_release(result) is not None else "numbers alone"
    return "a value"


@functools.cache
def outcome_of(code: str) -> Outcome:
    """Try an idiom, and the calls that its error suggests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return Outcome(works=_works(_run(code)))
        except PrivacyError as error:
            reason, hint = error.message, error.hint or ""
        except Exception as error:
            return Outcome(reason=str(error), fault=f"{type(error).__name__}: {error}")
        calls, faults = tuple(calls_in(hint)), []
        for call in calls:
            try:
                _works(_run(call))
            except Exception as error:
                faults.append(f"{call}: {type(error).__name__}: {error}")
        return Outcome(reason=reason, hint=hint, calls=calls, fault="; ".join(faults))


_START = re.compile(r"(?<![\w.])(?:private|counts|table|np|pd)(?=[.\[(])")


def calls_in(hint: str) -> Iterator[str]:
    """The calls and columns in a hint: the longest expressions that begin with a name of the idioms."""
    position = 0
    while (match := _START.search(hint, position)) is not None:
        position = match.end()
        brackets = [end for end in range(len(hint), match.end(), -1) if hint[end - 1] in ")]"]
        for end in [*brackets, match.end()]:
            rest = re.compile(r"(\.\w+)*").match(hint, end)
            text = hint[match.start() : rest.end() if rest else end]
            try:
                body = ast.parse(text, mode="eval").body
            except SyntaxError:
                continue
            if not isinstance(body, ast.Tuple):
                yield text
                position = match.start() + len(text)
                break


# ---------------------------------------------------------------- the page

MARK = "<!-- The tables below are written by: python -m tests.support.idioms --write -->"
HEADS = {"protected": "On a protected frame", "released": "On a release"}
WORDS = {
    "a protected frame": "works: a protected frame",
    "a column": "works: a column",
    "with errors": "works, with errors",
    "numbers alone": "works: the numbers alone",
    "a value": "works",
}


def page(head: str) -> str:
    """The text of the page below its own head: a table of idioms by topic."""
    outcomes = {code: outcome_of(code) for _, _, code in IDIOMS}
    count = sum(bool(each.works) for each in outcomes.values())
    lines = [
        head.partition(MARK)[0] + MARK,
        "",
        f"Of {len(outcomes)} idioms, {count} work, and {len(outcomes) - count} are refused.",
    ]
    for subject, title in HEADS.items():
        lines += ["", f"## {title}"]
        topics = dict.fromkeys(topic for of, topic, _ in IDIOMS if of == subject)
        for topic in topics:
            lines += ["", f"### {topic}", "", "| pandas | here |", "| --- | --- |"]
            lines += [
                f"| {_code(code)} | {_cell(outcomes[code])} |"
                for of, own, code in IDIOMS
                if (of, own) == (subject, topic)
            ]
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def _cell(outcome: Outcome) -> str:
    """What came of an idiom, for readers: the calls in a hint as code."""
    if outcome.works:
        return WORDS[outcome.works]
    if not outcome.hint:
        return _plain(outcome.reason)
    shown, position = "", 0
    for call in outcome.calls:
        start = outcome.hint.index(call, position)
        shown += _plain(outcome.hint[position:start]) + _code(call)
        position = start + len(call)
    return shown + _plain(outcome.hint[position:].removesuffix("."))


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def main() -> None:
    """Write the page, or say what differs."""
    before = PAGE.read_text(encoding="utf-8")
    after = page(before)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(after, encoding="utf-8")
    elif before != after:
        lines = set(before.splitlines())
        print(*(line for line in after.splitlines() if line not in lines), sep="\n")
        sys.exit("docs/from_pandas.md differs: python -m tests.support.idioms --write")


if __name__ == "__main__":
    main()
