"""For the curator: what a table would disclose, and what it would be worth, before it is released.

CONFIDENTIAL: all of it is computed from the confidential counts. Nothing is charged, and nothing of it
may be released. What may leave with a release is the risk in its own metadata, and the column ``dr_ha``
of the budget's entries: these are made of released counts.

A table is that of `crosstab`: cells of quasi-identifiers (``by``) and labels of a sensitive column,
where nulls are a label if they are declared.

Source: F. Liu, X. Zhao (2023), "Disclosure risk from homogeneity attack in differentially privately
sanitized frequency distribution".
"""
