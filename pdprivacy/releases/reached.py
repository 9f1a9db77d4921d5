"""The disclosure risk of what was released, from released counts alone, and what the budget notes of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pdprivacy import risk
from pdprivacy.errors import PrivacyError
from pdprivacy.ledger import Entry
from pdprivacy.mechanism import MECHANISMS
from pdprivacy.release.calibration import PartMechanism, calibrate, released_by
from pdprivacy.release.publish import Floats
from pdprivacy.release.spec import Price
from pdprivacy.request import Request

__all__ = ["released_risk"]

MOST_RISK_WORK = 10**9
"""Multiply-adds spent on the risk of a released table: about a second."""

MOST_RISK_RECORDS = 10**10
"""In one cell; more are not what a table of people holds."""

MOST_RISK_DEVIATION = 10**4
"""With noise of a larger standard deviation the table says nothing of a cell, and the estimate takes long."""


def released_risk(
    counts: Floats, price: Price, request: Request, entry: Entry | None
) -> tuple[dict[str, Any] | None, float | None]:
    """The expected risk of a release, and that of its counts with the noise of all that was spent so far.

    Both are estimated from released counts alone. The release publishes the first, and the budget notes the
    second, which is None in a plan; source: Liu, Zhao (2023), section 4.3.

    Neither is known where no count is positive, where the table is so large that the estimate would take
    longer than the release, or where it fails: what is paid for is released, estimate or not.
    """
    seen = np.clip(np.rint(counts), 0, 2.0**52).astype(np.int64)
    if price.mechanisms[0].std > MOST_RISK_DEVIATION or not 0 < seen.sum(dtype=np.float64) <= 2.0**52:
        return None, None
    try:
        cells = risk.Cells.of_checked(seen)
        if cells.sizes.max() > MOST_RISK_RECORDS or risk.expected_cost(cells) > MOST_RISK_WORK:
            return None, None
        noises = [released_by(price.mechanisms[0], price.parts[0], request.bounding)]
        noises += [] if entry is None else _noise_so_far(price, request, entry)
        each = risk.dr_ha(cells, noises, "expected", None)
    except (PrivacyError, ArithmeticError, MemoryError):
        return None, None
    filled = cells.which >= 0
    each, sizes = each[:, filled], cells.all_sizes[filled]
    by_records = (each * sizes).sum(axis=1) / sizes.sum()
    own = {
        "measure": "expected",
        "source": "released counts",
        "by_cells": float(each[0].mean()),
        "by_records": float(by_records[0]),
    }
    return own, None if entry is None else float(min(by_records[-1], 1.0))


def _noise_so_far(price: Price, request: Request, entry: Entry) -> list[PartMechanism]:
    """The noise of the counts at all that was spent so far; none where that is the release's own.

    Noise that takes no delta is that of the epsilon spent. The risk of the release itself stands where
    no such noise is known: for truncated and generalized Gaussian noise.
    """
    so_far = entry.so_far
    known = request.p is None and request.bounding != "truncated"
    if not known or so_far is None or so_far == price.cost:
        return []
    classic = request.calibration == "classic" and so_far.epsilon >= 1  # holds below 1 only
    asked = Request(
        so_far.epsilon,
        so_far.delta if MECHANISMS[request.mechanism].takes_delta() else 0,
        mechanism=request.mechanism,
        calibration=None if classic else request.calibration,
        bounding=request.bounding,
    )
    try:
        (noise,) = calibrate(price.parts, asked)
        if noise.std > MOST_RISK_DEVIATION:
            return []
        return [released_by(noise, price.parts[0], asked.bounding)]
    except (PrivacyError, ArithmeticError):  # an epsilon so large that there is no such noise
        return []
