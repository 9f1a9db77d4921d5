"""Integrals by quadrature."""

from __future__ import annotations

import itertools
import math

from scipy import integrate


def integral(function, law: tuple[float, float], start: float, stop: float) -> float:
    """Integral of ``function(e)`` times the density of noise e of order p and scale b, in pieces."""
    p, b = law
    height = 1 / (2 * b * math.gamma(1 + 1 / p))
    reach = b * 60 ** (1 / p)
    start, stop = max(start, -reach), min(stop, reach)
    inner = [x for x in (-reach / 4, 0.0, reach / 4) if start < x < stop]
    pieces = itertools.pairwise([start, *inner, stop])
    return math.fsum(
        integrate.quad(
            lambda e: function(e) * height * math.exp(-(abs(e / b) ** p)), *piece, epsabs=0, epsrel=1e-12
        )[0]
        for piece in pieces
        if piece[0] < piece[1]
    )
