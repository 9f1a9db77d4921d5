"""A source of random bits that plays back given bytes."""

from __future__ import annotations

import numpy as np

from pdprivacy.core.noise import Source

__all__ = ["Tape"]


class Tape:
    """A source that plays back given bytes, and integers as 64 bits each; it has nothing after them."""

    def __init__(self, *parts: np.ndarray | bytes | int) -> None:
        self.data = b"".join(
            part.to_bytes(8, "little") if isinstance(part, int) else bytes(part) for part in parts
        )

    def read(self, n: int) -> bytes:
        assert n <= len(self.data), "more bits were drawn than needed"
        chunk, self.data = self.data[:n], self.data[n:]
        return chunk

    @property
    def source(self) -> Source:
        return Source(self.read, seeded=True)
