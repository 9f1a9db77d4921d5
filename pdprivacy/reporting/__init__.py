"""A report on releases, for whoever has to answer for data protection: one page that needs nothing else.

A public edition, made of what the releases say of themselves, the declaration and the sums of the budget; and
the curator's, CONFIDENTIAL, with every charge and what was computed from exact counts.
"""

from pdprivacy.reporting.report import Report, report

__all__ = ["Report", "report"]
