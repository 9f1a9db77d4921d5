"""What a release did, told so that a better accountant can charge it anew."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from pdprivacy.accounting.sums import whole
from pdprivacy.errors import ParameterError, got
from pdprivacy.privacy import ZCDP, Approx, Loss, Pure, Rational, loss, positive

__all__ = ["Event", "Kind", "events_of"]

Kind: TypeAlias = Literal["laplace", "geometric", "gaussian", "pure", "approx", "zcdp"]
NOISES = ("laplace", "geometric", "gaussian")


@dataclass(frozen=True, slots=True)
class Event:
    """One kind of release, ``count`` times.

    Parameters
    ----------
    kind : "laplace", "geometric" or "gaussian" noise; or a loss of which no more is known: "pure",
        "approx" or "zcdp".
    noise_multiplier : of noise, its scale per unit of sensitivity: b / l1 sensitivity for Laplace noise
        exp(-|x| / b) on numbers or integers, sigma / l2 sensitivity for Gaussian noise.
    epsilon, delta : the loss of "pure" and "approx"; of noise, what one release was charged, by default
        epsilon = 1 / noise_multiplier and for Gaussian noise rho = 1 / (2 noise_multiplier^2).
    rho : the loss of "zcdp".
    sensitivity : of geometric noise, in steps of its integers.
    count : how many such releases.

    Raises
    ------
    ParameterError : an unknown kind, a parameter that is missing, of another kind or out of range.

    >>> Event("gaussian", noise_multiplier=5).loss
    ZCDP(rho=Fraction(1, 50))
    """

    kind: Kind
    noise_multiplier: Fraction | None
    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None
    sensitivity: int
    count: int

    def __init__(
        self,
        kind: Kind,
        noise_multiplier: Rational | None = None,
        epsilon: Rational | None = None,
        delta: Rational = 0,
        rho: Rational | None = None,
        sensitivity: int = 1,
        count: int = 1,
    ) -> None:
        if kind not in get_args(Kind):
            kinds = ", ".join(map(repr, get_args(Kind)))
            raise ParameterError(f"'kind' must be one of {kinds} (got {got(kind)}).")
        needed = {"pure": "epsilon", "approx": "epsilon", "zcdp": "rho"}.get(kind, "noise_multiplier")
        given = {"noise_multiplier": noise_multiplier, "epsilon": epsilon, "rho": rho}
        for name, value in given.items():
            if value is None and name == needed:
                raise ParameterError(f"An event of kind {kind!r} needs {name!r}.")
            if value is not None and name != needed and not (kind in NOISES and name == "epsilon"):
                raise ParameterError(f"An event of kind {kind!r} takes no {name!r}.")
        slack = Fraction(0) if epsilon is None else Approx(epsilon, delta).delta
        if (slack or (epsilon is None and delta)) and not (
            kind == "approx" or (kind == "gaussian" and slack)
        ):
            raise ParameterError(f"An event of kind {kind!r} takes no 'delta'.")
        if kind == "gaussian" and epsilon is not None and not slack:
            raise ParameterError("Gaussian noise that was charged an 'epsilon' needs its 'delta'.")
        object.__setattr__(self, "kind", kind)
        for name, value in given.items():
            object.__setattr__(self, name, None if value is None else positive(value, name))
        object.__setattr__(self, "delta", slack)
        try:
            object.__setattr__(self, "sensitivity", whole(sensitivity))
        except ParameterError:
            raise ParameterError(
                f"'sensitivity' must be a positive whole number of steps (got {got(sensitivity)})."
            ) from None
        if self.sensitivity != 1 and kind != "geometric":
            raise ParameterError(f"An event of kind {kind!r} takes no 'sensitivity'.")
        object.__setattr__(self, "count", whole(count))

    @classmethod
    def of(cls, item: Loss, count: int = 1) -> Event:
        """``count`` releases of which only the loss is known."""
        if isinstance(item, ZCDP):
            return cls("zcdp", rho=item.rho, count=count)
        if item.delta:
            return cls("approx", epsilon=item.epsilon, delta=item.delta, count=count)
        return cls("pure", epsilon=item.epsilon, count=count)

    @property
    def loss(self) -> Loss:
        """What one of the releases was charged."""
        if self.epsilon is not None:
            return loss(self.epsilon, self.delta)
        if self.rho is not None:
            return ZCDP(self.rho)
        assert self.noise_multiplier is not None
        if self.kind == "gaussian":
            return self.least
        return Pure(1 / self.noise_multiplier)

    @property
    def least(self) -> Loss:
        """What the noise of one of the releases loses, for sums of rho: less than it was charged, maybe.

        Source: Bun, Steinke (2016), Proposition 1.6; discrete Gaussian noise likewise (Canonne, Kamath,
        Steinke 2020, Theorem 4).
        """
        if self.noise_multiplier is None:
            return self.loss
        if self.kind == "gaussian":
            return ZCDP(1 / (2 * self.noise_multiplier**2))
        return Pure(1 / self.noise_multiplier)

    def times(self, count: int) -> Event:
        """``count`` times as many releases."""
        return _many(self, self.count * whole(count))


def _many(event: Event, count: int) -> Event:
    """The same event so many times."""
    return replace(event, count=count)


def events_of(items: Iterable[Loss | Event]) -> list[Event]:
    """Events, each different one once, with all its count; a loss becomes the event that has it.

    Raises ParameterError for anything else.
    """
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise ParameterError(f"'events' must be a list of losses or events (got {got(items)}).")
    counts: dict[Event, int] = {}
    for item in items:
        if not isinstance(item, Event | Pure | Approx | ZCDP):
            raise ParameterError(f"'events' must hold losses or events (got {got(item)}).")
        event = item if isinstance(item, Event) else Event.of(item)
        one = _many(event, 1)
        counts[one] = counts.get(one, 0) + event.count
    if not counts:
        raise ParameterError("'events' must hold at least one loss or event.")
    return [_many(event, count) for event, count in counts.items()]
