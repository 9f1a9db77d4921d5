"""Terms and charges as the JSON of records, and back; every number is exact."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

from pdprivacy.accounting import Spent, from_json, to_json
from pdprivacy.accounting.events import NUMBER, loss_json
from pdprivacy.errors import LedgerError, PrivacyError
from pdprivacy.ledger.chain import altered, canonical, parse
from pdprivacy.ledger.entry import MOST, Account, Entry, Losses, Terms
from pdprivacy.ledger.store import Row
from pdprivacy.privacy import Approx, Loss, Unit

__all__ = ["account_of", "answer_of", "charge_text", "entry_of", "moment", "terms_body", "terms_of"]


FIRST_YEAR, LAST_YEAR = 2000, 2200


def terms_body(terms: Terms, time: datetime) -> dict[str, Any]:
    """The body of a record that opens a budget or declares it anew."""
    return {
        "total": _loss_json(terms.total),
        "accounting": terms.accounting,
        "neighbors": None if terms.unit is None else terms.unit.neighbors,
        "declaration": terms.declaration,
        "time": _stamp(time),
        # where each record is a unit, nothing more is said of it
        **({} if terms.unit is None or terms.unit.column is None else {"unit": terms.unit.column}),
    }


def _plain(entry: Entry) -> bool:
    """Whether what was released says no more than the loss."""
    if len(entry.events) != 1:
        return False
    ((event, count),) = entry.events
    plain = event.noise is None and event.group is None
    return plain and event.loss == entry.loss and count == entry.count


def terms_of(row: Row) -> Terms:
    """The terms of a record that `terms_body` made."""
    body = parse(row)
    try:
        neighbors, declaration = body["neighbors"], body["declaration"]
        if not (declaration is None or isinstance(declaration, str)):
            raise altered(row)
        unit = None if neighbors is None else Unit(neighbors, body.get("unit"))
        return Terms(_loss_of(body["total"]), body["accounting"], unit, declaration)
    except (PrivacyError, KeyError, TypeError, ValueError):
        raise altered(row) from None


def charge_text(entry: Entry, budget: str) -> str:
    """The record of a charge of a budget: what `canonical` makes of it, in a fifth of the time.

    What says nothing beyond the loss, ``counted`` and ``events``, is left out.
    """
    after, spent = entry.after, entry.after.spent
    asked = ((entry.loss, entry.count),)
    counted = "" if entry.counted == asked else f'"counted":{canonical(_losses_json(entry.counted))},'
    events = "" if _plain(entry) else f'"events":{canonical(to_json(entry.events))},'
    release = "null" if entry.release is None else quoted(entry.release)
    sums = f'"{spent.epsilon}","{spent.delta}"'
    if after.asked[0] is not spent.epsilon or after.asked[1] is not spent.delta:
        stated = f'"{after.asked[0]}","{after.asked[1]}"'
    else:
        stated = sums
    return (
        f'{{"asked":[{stated}],"budget":{quoted(budget)},"charge":{entry.number},{counted}{events}'
        f'"kind":"charge","label":{quoted(entry.label)},'
        f'"loss":{{"count":{entry.count},"loss":{{{_amounts(entry.loss)}}}}},'
        f'"mechanism":{quoted(entry.mechanism)},"release":{release},'
        f'"spent":[{sums},"{spent.squares}","{spent.rho}"],'
        f'"time":"{_stamp(entry.time)}","unstated":{"true" if after.unstated else "false"}}}'
    )


def _amounts(item: Loss) -> str:
    """What `canonical` makes of a loss, without its braces."""
    named = loss_json(item)
    if isinstance(item, Approx):
        return f'"delta":"{named["delta"]}","epsilon":"{named["epsilon"]}"'
    ((name, number),) = named.items()
    return f'"{name}":"{number}"'


def entry_of(row: Row, terms: Terms) -> Entry:
    """The charge of a record that `charge_text` made, not answered."""
    body = parse(row)
    try:
        ((event, count),) = from_json([body["loss"]])
        time = moment(body["time"])
        texts = (body["label"], body["mechanism"])
        number, unstated = body["charge"], body["unstated"]
        epsilon, delta = map(_fraction, body["asked"])
        spent = Spent(*map(_fraction, body["spent"]))
        asked = ((event.loss, count),)
        counted = asked if "counted" not in body else _losses_of(body["counted"])
        events = [(event, count)] if "events" not in body else from_json(body["events"])
        sound = all(isinstance(text, str) for text in texts) and type(number) is int and number > 0
        sound = sound and event.noise is None and len(counted) > 0 and len(events) > 0
        if not sound or type(unstated) is not bool:
            raise altered(row)
    except (PrivacyError, KeyError, TypeError, ValueError, ZeroDivisionError):
        raise altered(row) from None
    after = Account(terms, spent, (epsilon, delta), unstated, number)
    return Entry(number, *texts, event.loss, count, counted, tuple(events), time, after, row.release)


def _stamp(time: datetime) -> str:
    """The time of a record as text; LedgerError where no clock can be right that tells it."""
    if not FIRST_YEAR < time.year < LAST_YEAR:
        raise LedgerError(
            f"The clock of this machine says that it is the year {time.year}. Nothing was entered.",
            "set the clock right: a ledger tells when each charge was made.",
        )
    return time.isoformat()


def moment(text: Any) -> datetime:
    """The time of a record, in UTC; ValueError or TypeError for what is none."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is not UTC or not FIRST_YEAR < time.year < LAST_YEAR:
        raise ValueError
    return time


def account_of(row: Row | None, terms: Terms) -> Account:
    """The account after the charge of a record; the one before the first where there is none."""
    return Account(terms) if row is None else entry_of(row, terms).after


def answer_of(row: Row) -> tuple[int, float | None]:
    """Which charge a record says is answered, and the risk of what was released."""
    body = parse(row)
    number, risk = body.get("charge"), body.get("dr_ha")
    if type(number) is not int or not (risk is None or (isinstance(risk, float) and 0 <= risk <= 1)):
        raise altered(row)
    return number, risk


def _losses_json(losses: Losses) -> list[dict[str, Any]]:
    return [{"loss": loss_json(item), "count": count} for item, count in losses]


def _losses_of(entries: Any) -> Losses:
    return tuple((event.loss, count) for event, count in from_json(entries))


def _loss_json(item: Loss) -> dict[str, Any]:
    return _losses_json(((item, 1),))[0]


def _loss_of(entry: Mapping[str, Any]) -> Loss:
    ((event, _),) = from_json([entry])
    return event.loss


@lru_cache(maxsize=64)  # what was asked for is mostly what was spent, and some sums stay 0
def _fraction(text: object) -> Fraction:
    """A sum of losses, as it was written: in lowest terms, not negative."""
    if not isinstance(text, str) or not NUMBER.fullmatch(text):
        raise TypeError
    number = Fraction(text)
    if number > MOST**2 or str(number) != text:
        raise ValueError
    return number
