"""The keys by which results say what they are: in ``attrs``, and in confidential figures."""

KEY = "dp"
"""The key in ``attrs`` of what a release says of itself, or of the mark of what is confidential."""

ANSWERED_BEFORE = "dp_answered_before"
"""The key in ``attrs`` of a release that was given again, and its number in its plan."""

MARK = "confidential"
"""The mark of what is computed from exact counts, for the curator."""
