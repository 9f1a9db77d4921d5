"""The disclosure risk of what was released, from released counts alone, and what the budget notes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pdprivacy import risk
from pdprivacy.errors import PrivacyError
from pdprivacy.ledger import Entry
from pdprivacy.mechanism import MECHANISMS
from pdprivacy.release.calibration import calibrate, released_by
from pdprivacy.release.publish import Floats
from pdprivacy.release.spec import Price
from pdprivacy.request import Request

__all__ = ["reached_risk", "released_risk"]

MOST_RISK_WORK = 10**9
"""Multiply-adds spent on the risk of a released table: about a second."""

MOST_RISK_RECORDS = 10**10
"""In one cell; more are not what a table of people holds."""

MOST_RISK_SCALE = 10**4
"""With noise of a larger scale the table says nothing of a cell, and the estimate would take long."""


def released_risk(counts: Floats, price: Price, request: Request) -> dict[str, Any] | None:
    """The expected risk estimated from released counts alone.

    None where no count is positive, where the table is so large that the estimate would take
    longer than the release, or where it fails: what is paid for is released, estimate or not.
    """
    seen = np.clip(np.rint(counts), 0, 2.0**52).astype(np.int64)
    if price.mechanisms[0].scale > MOST_RISK_SCALE or not 0 < seen.sum(dtype=np.float64) <= 2.0**52:
        return None
    try:
        cells = risk.Cells.of(seen)
        if cells.sizes.max() > MOST_RISK_RECORDS or risk.expected_cost(cells) > MOST_RISK_WORK:
            return None
        noise = released_by(price.mechanisms[0], price.parts[0], request.bounding)
        each = risk.dr_ha(cells, noise, "expected", None)
    except (PrivacyError, ArithmeticError, MemoryError):
        return None
    filled = cells.which >= 0
    return {
        "measure": "expected",
        "source": "released counts",
        "by_cells": float(each[filled].mean()),
        "by_records": float(np.average(each[filled], weights=cells.all_sizes[filled])),
    }


def reached_risk(
    request: Request, price: Price, entry: Entry | None, counts: Floats, found: dict[str, Any] | None
) -> float | None:
    """The risk of released counts with the noise of all that was spent so far, for the budget to note.

    Noise that takes no delta is that of the epsilon spent. The risk of the release itself stands where
    no such noise is known: for truncated and generalized Gaussian noise. Source: Liu, Zhao (2023),
    section 4.3.
    """
    if entry is None or found is None:
        return None
    reached, so_far = found["by_records"], entry.so_far
    known = request.p is None and request.bounding != "truncated"
    if known and so_far is not None and so_far != price.cost:
        classic = request.calibration == "classic" and so_far.epsilon >= 1  # holds below 1 only
        asked = Request(
            so_far.epsilon,
            so_far.delta if MECHANISMS[request.mechanism].takes_delta() else 0,
            mechanism=request.mechanism,
            calibration=None if classic else request.calibration,
            bounding=request.bounding,
        )
        try:
            together = replace(price, mechanisms=calibrate(price.parts, asked))
        except (PrivacyError, ArithmeticError):  # an epsilon so large that there is no such noise
            together = price
        more = released_risk(counts, together, asked)
        reached = reached if more is None else more["by_records"]
    return float(min(reached, 1.0))
