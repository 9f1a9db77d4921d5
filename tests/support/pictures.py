"""Conditions on the texts of every picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["check_texts"]


def check_texts(figure: Any, texts: Sequence[tuple[str, Any]]) -> None:
    """Assert that no text, with its box in pixels, lies out of the figure or on another."""
    for index, (text, box) in enumerate(texts):
        assert figure.bbox.x0 - 1 <= box.x0 <= box.x1 <= figure.bbox.x1 + 2, text
        assert figure.bbox.y0 - 1 <= box.y0 <= box.y1 <= figure.bbox.y1 + 2, text
        for other, other_box in texts[index + 1 :]:
            assert not box.padded(-1.5).overlaps(other_box.padded(-1.5)), (text, other)
