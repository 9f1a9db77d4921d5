"""Records of terms and charges: they say exactly what was entered."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from pdprivacy import ZCDP, Approx, Pure, Unit
from pdprivacy.accounting import Event, GaussianNoise
from pdprivacy.ledger.account import Account, Charge, Terms, entry_of, terms_of
from pdprivacy.ledger.store import canonical, digest, link

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
