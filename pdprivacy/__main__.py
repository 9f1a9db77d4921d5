"""The command line: ``python -m pdprivacy``."""

from __future__ import annotations

import sys

from pdprivacy.command import main

if __name__ == "__main__":
    sys.exit(main())
