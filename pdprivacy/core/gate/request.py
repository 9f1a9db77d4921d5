"""The noise that a release asks for, checked as a whole before anything is charged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, TypedDict, get_args

from pdprivacy.checks import one_of, whole
from pdprivacy.core.mechanisms import MECHANISMS, Bounding, Calibration, MechanismName
from pdprivacy.core.mechanisms.additive import Additive
from pdprivacy.core.mechanisms.exponential import MOST_RELEASES
from pdprivacy.core.mechanisms.generalized_gaussian import check_order
from pdprivacy.core.mechanisms.support import bounding_name
from pdprivacy.core.noise import RandomState
from pdprivacy.core.privacy import Approx, Pure, Rational, loss
from pdprivacy.errors import ParameterError
from pdprivacy.types import settle

__all__ = ["Bounding", "BoundingName", "CalibrationName", "MechanismName", "Options", "Request"]


CalibrationName: TypeAlias = Calibration | Literal["published"]
BoundingName: TypeAlias = Bounding | Literal["project"]

PROJECT: Literal["project"] = "project"
"""The default bounding: released numbers are moved to the nearest possible ones, after the noise."""

MECHANISM_NAMES = get_args(MechanismName)


class Options(TypedDict, total=False):
    """Keywords that every release takes in addition to ``epsilon``.

    delta : the delta of the cost; needed by "gaussian", "discrete_gaussian" and "generalized_gaussian" (of
        order above 1).
    mechanism : the noise: "laplace", "gaussian", "generalized_gaussian", "staircase" (only where a record
        changes one number of a table or column), "geometric" or "discrete_gaussian" (whole numbers, for
        counts).
    p : the order of "generalized_gaussian", from 1 (Laplace) over 2 (Gaussian) to 100.
    calibration : "analytic" (None), "classic" or "pdp" of Gaussian noise; "published" is the paper's
        truncated Laplace, which costs more than the stated ``epsilon``: the true cost is charged.
    bounding : keeps released numbers within their bounds. "project" (the default) moves a mean, a share, a
        variance, a deviation or a matrix to the nearest possible one, at no cost and with the same noise;
        sums and counts stay as they are, because their biases would add up, and to give "project" for these
        alone is refused. The metadata keep the numbers
        before (``released.dp.unprojected()``). "truncated" (noise conditioned on staying inside, with the
        larger scale that this needs unless it is Gaussian) and "clamp" (also called "bit") bound each noisy
        part, also of sums and counts. None: no bounding.
    bounds : with "truncated" or "clamp", narrower public bounds than the declaration implies: (lower, upper),
        None for an open end, or a mapping from columns to such pairs where there is a number per column. Not
        for matrices, shares, or counts with a constraint, whose bounds follow.
    releases : the number of independent releases that share the cost. Several are returned as a DataFrame
        whose (outer) column level "release" numbers them; see `pdprivacy.combine`.
    rng : None for real releases; a seed or generator for tests.
    release_id : a name for the release. A repeated call with this name is refused
        (`pdprivacy.errors.AlreadyCharged`), so it is neither charged nor released twice.
    """

    delta: Rational
    mechanism: MechanismName
    p: Rational | None
    calibration: CalibrationName | None
    bounding: BoundingName | None
    bounds: Sequence[float] | Mapping[Any, Sequence[float]] | None
    releases: int
    rng: RandomState
    release_id: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """The noise that a release asks for.

    Parameters
    ----------
    epsilon, delta : the loss of all ``releases`` together.
    mechanism, p, calibration, releases : as in `Options`.
    bounding : how the noise or the noisy parts are bounded; None for "project", too.
    projects : whether released numbers are moved to the nearest possible ones.

    Raises
    ------
    ParameterError : an unknown name, or arguments that do not fit each other.

    >>> Request(1, mechanism="laplace", releases=4).each
    Pure(epsilon=Fraction(1, 4))
    """

    cost: Pure | Approx
    mechanism: MechanismName
    p: Fraction | None
    calibration: CalibrationName | None
    bounding: Bounding | None
    releases: int
    projects: bool

    def __init__(
        self,
        epsilon: Rational,
        delta: Rational = 0,
        *,
        mechanism: MechanismName,
        p: Rational | None = None,
        calibration: CalibrationName | None = None,
        bounding: BoundingName | None = None,
        releases: int = 1,
    ) -> None:
        one_of(mechanism, "mechanism", MECHANISM_NAMES)
        noise = MECHANISMS[mechanism]
        if (p is not None) != noise.takes_order:
            raise ParameterError(
                "'p' is the order of generalized Gaussian noise, and needed there.",
                'mechanism="generalized_gaussian", p=3.',
            )
        order = None if p is None else check_order(p)
        noise_bounding, projects = _bounding(bounding)
        if calibration is not None:
            _check_calibration(calibration, noise, noise_bounding)
        cost = loss(epsilon, delta)
        stated = float(cost.delta)
        if (stated > 0) != noise.takes_delta(order):
            raise _wrong_delta(noise.title, stated)
        settle(
            self,
            cost=cost,
            mechanism=mechanism,
            p=order,
            calibration=calibration,
            bounding=noise_bounding,
            releases=whole(releases, "releases", 1, MOST_RELEASES),
            projects=projects,
        )

    def with_cost(self, cost: Pure | Approx) -> Request:
        """The same noise at another cost."""
        if cost == self.cost:
            return self
        names = ("mechanism", "p", "calibration", "releases")
        options = {name: getattr(self, name) for name in names}
        bounding = PROJECT if self.projects else self.bounding
        return Request(cost.epsilon, cost.delta, bounding=bounding, **options)

    @property
    def each(self) -> Pure | Approx:
        """The loss of one of the releases."""
        if self.releases == 1:
            return self.cost
        return loss(self.cost.epsilon / self.releases, self.cost.delta / self.releases)


def _bounding(bounding: Any) -> tuple[Bounding | None, bool]:
    """Return how noise is bounded, and whether released numbers are projected."""
    if bounding is not None and not (isinstance(bounding, str) and bounding == "bit"):
        one_of(bounding, "bounding", ("truncated", "clamp", PROJECT))
        if bounding == PROJECT:
            return None, True
    return bounding_name(bounding), False


def _check_calibration(calibration: str, noise: type[Additive], bounding: Bounding | None) -> None:
    offering = {name: owner for owner in MECHANISMS.values() for name in owner.calibrations}
    one_of(calibration, "calibration", sorted(offering))
    owner = offering[calibration]
    needed = owner.calibrations[calibration]
    if noise is owner and needed in (None, bounding):
        return
    name, hint = owner.title, f'mechanism="{owner.name}"'
    if needed is not None:
        name, hint = f"{needed} {name}", f'{hint}, bounding="{needed}", calibration="{calibration}"'
    raise ParameterError(f"calibration={calibration!r} is for {name}.", f"{hint}.")


def _wrong_delta(title: str, delta: float) -> ParameterError:
    if delta == 0:
        return ParameterError(
            f"'delta' must be positive for {title} (got 0).",
            'mechanism="laplace", which needs none; or delta=1e-6, of a budget that has a delta.',
        )
    return ParameterError(
        f"'delta' must be 0 for {title} (got {delta:g}).",
        'leave delta out, or use mechanism="gaussian".',
    )
