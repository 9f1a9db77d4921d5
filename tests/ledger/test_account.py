"""Records of terms and charges: they say exactly what was entered."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdprivacy import ZCDP, Approx, Pure, Unit
from pdprivacy.core.accounting import Event, GaussianNoise
from pdprivacy.errors import TamperedLedgerError
from pdprivacy.ledger.account import Account, Charge, Terms, answer_of, entry_of, terms_of, time_of
from pdprivacy.ledger.store import Row, canonical, digest, link

FRACTIONS = st.fractions(min_value=Fraction(1, 10**6), max_value=50, max_denominator=10**6)
LOSSES = (
    FRACTIONS.map(Pure)
    | FRACTIONS.map(ZCDP)
    | st.tuples(FRACTIONS, st.fractions(min_value=0, max_value=Fraction(9, 10))).map(
        lambda pair: Approx(*pair)
    )
)


@given(
    st.lists(st.tuples(LOSSES, st.integers(1, 10**6)), min_size=1, max_size=4),
    st.text(max_size=30).filter(lambda text: text.isprintable()),
    st.none() | st.text("abc", min_size=1, max_size=5),
)
def test_records_say_exactly_what_was_entered(losses, label, release):
    account = Account(Terms(ZCDP(10**40), "zcdp", Unit("replace_one"), "f" * 32))
    noise = GaussianNoise(Fraction(7, 3), 2, 99)
    noises = [noise if n % 2 or isinstance(loss, Approx) else None for loss, n in losses]
    events = tuple((Event(loss, drawn), n) for (loss, n), drawn in zip(losses, noises, strict=True))
    entry = account.charge(Charge(*losses[0], label, "laplace", events, release, None))
    row = link(None, "x", "charge", release, entry.to_json())
    assert entry_of(row, account.terms) == entry
    assert row.body == canonical(json.loads(row.body))
    opened = link(row, "x", "open", None, account.terms.to_json(datetime.now(UTC)))
    assert terms_of(opened) == account.terms
    assert opened.hash == digest(row.hash, 2, opened.body)


# ---------------------------------------------------------------- records that were not entered here


def record(kind: str, body: dict[str, Any]) -> Row:
    """A record of a sound chain: its hash fits whatever its body holds."""
    return link(None, "survey", kind, None, body)


CHARGED: dict[str, Any] = {
    "asked": ["1/2", "0"],
    "charge": 2,
    "counted": [{"loss": {"epsilon": "1/2"}, "count": 1}],
    "events": [{"loss": {"epsilon": "1/4"}, "count": 2}],
    "label": "count",
    "loss": {"loss": {"epsilon": "1/2"}, "count": 1},
    "mechanism": "laplace",
    "spent": ["1/2", "0", "0", "0"],
    "time": "2026-05-01T12:00:00+00:00",
    "unstated": False,
}
UNSOUND = {
    "asked": [["1/2"], ["1/2", "0", "0"], ["-1/2", "0"], ["1/0", "0"], [0.5, 0], None, f"1{'0' * 600}"],
    "charge": [0, -1, True, 2.0, "2", None],
    "counted": [[], None, [{"loss": {"epsilon": "1/2"}}], [{"loss": {"epsilon": "-1/2"}, "count": 1}]],
    "events": [[], None, {}, [{"loss": {"epsilon": "1/4"}, "count": 0}]],
    "label": [1, None],
    "loss": [
        None,
        {"loss": {"epsilon": "1/2"}, "count": 0},
        {**CHARGED["loss"], "noise": {"multiplier": "3", "moves": 1, "steps": 1}},
    ],
    "mechanism": [1, None],
    "spent": [["1/2", "0", "0"], {"1/2": 0}, [f"1{'0' * 600}", "0", "0", "0"]],
    "time": [
        "2026-05-01T12:00:00", "2026-05-01T12:00:00+02:00", "1999-12-31T12:00:00+00:00",
        "2000-12-31T12:00:00+00:00", "2200-01-01T12:00:00+00:00", "noon", 3,
    ],
    "unstated": [0, None, "false"],
}  # fmt: skip


@pytest.mark.parametrize("part", UNSOUND)
def test_a_charge_with_an_unsound_part_is_refused(part):
    terms = Terms(Pure(2))
    entry = entry_of(record("charge", CHARGED), terms)
    assert (entry.loss, entry.count, entry.number) == (Pure("1/2"), 1, 2)
    assert entry.events == ((Event(Pure("1/4")), 2),)
    for value in UNSOUND[part]:
        with pytest.raises(TamperedLedgerError, match="is not what was entered"):
            entry_of(record("charge", {**CHARGED, part: value}), terms)
    required = {name: value for name, value in CHARGED.items() if name != part}
    if part not in ("counted", "events"):
        with pytest.raises(TamperedLedgerError, match="is not what was entered"):
            entry_of(record("charge", required), terms)


def test_years_between_the_first_and_the_last_are_times_of_records():
    for year in (2001, 2199):
        assert time_of(f"{year}-05-01T12:00:00+00:00").year == year


@pytest.mark.parametrize("number", [1, 0.5, "1", True, None])
@pytest.mark.parametrize("risk", [None, 0.0, 1.0, 0.5, 1, "0.5", True, -0.25, 1.25, math.nan])
def test_an_answer_with_an_unsound_number_or_risk_is_refused(number, risk):
    row = record("answer", {"charge": number, "dr_ha": None if risk is math.nan else risk})
    if risk is math.nan:  # which no canonical JSON holds
        row = row._replace(body=row.body.replace('"dr_ha":null', '"dr_ha":NaN'))
    if type(number) is int and (risk is None or (type(risk) is float and 0 <= risk <= 1)):
        assert answer_of(row) == (number, risk)
    else:
        with pytest.raises(TamperedLedgerError, match="is not what was entered"):
            answer_of(row)


@pytest.mark.parametrize("reason", [1, 0.5, True, ["weights"]])
def test_an_answer_with_an_unsound_reason_is_refused(reason):
    assert answer_of(record("answer", {"charge": 1, "dr_ha_unknown": "weights"})) == (1, "weights")
    with pytest.raises(TamperedLedgerError, match="is not what was entered"):
        answer_of(record("answer", {"charge": 1, "dr_ha_unknown": reason}))
