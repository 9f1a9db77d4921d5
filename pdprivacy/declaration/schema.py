"""A pandera schema read as a `pdprivacy.declaration.domain.Domain`, and run without showing a cell.

Only what is declared is read: dtypes, nullability, the built-in checks by name and
statistics, and ``metadata={"dp": {...}}``. Checks written as functions bound nothing.
Schemas of Polars and PySpark are read as those of pandas are; pandas frames alone are
validated by pandera itself, and `unchecked` tells what that would be for others.
pandera is imported when the first schema is read, not with the package.
"""

from pdprivacy.declaration.declarations import Schema
from pdprivacy.declaration.overlay import Overlay, overlaid, schema_of, warn_of_lost_columns
from pdprivacy.declaration.pandera_reader import present, read_schema, unchecked
from pdprivacy.declaration.validation import FailedCheck, coerce, failed_checks, validate

__all__ = [
    "FailedCheck",
    "Overlay",
    "Schema",
    "coerce",
    "failed_checks",
    "overlaid",
    "present",
    "read_schema",
    "schema_of",
    "unchecked",
    "validate",
    "warn_of_lost_columns",
]
