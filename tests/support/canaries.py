"""Cells that no message may hold, and how they would show in one."""

from __future__ import annotations

import re

__all__ = ["CANARY", "CELL", "NUMBER"]

NUMBER = 918273645
CANARY = "CANARYx7"
CELL = re.compile(r"918273645|918[_,]273|9\.18273|CANARY", re.IGNORECASE)
