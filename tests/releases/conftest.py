"""Releases without noise, which are the statistics themselves."""

from __future__ import annotations

import numpy as np
import pytest

from pdprivacy.core import noise
from tests.support.every_dtype import LARGE, MECHANISMS


@pytest.fixture
def silent(monkeypatch):
    """All noise is zero."""
    for name in ("discrete_laplace", "discrete_gaussian"):
        monkeypatch.setattr(noise, name, lambda scale, size, source: np.zeros(size, dtype=np.int64))


@pytest.fixture(params=MECHANISMS, ids=lambda options: options["mechanism"])
def cost(request, silent):
    return {"epsilon": LARGE, **request.param}
