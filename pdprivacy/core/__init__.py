"""What the guarantee rests on: noise, mechanisms, sensitivities, statistics, reads, accounting and the gate.

Nothing here knows what a release looks like. Whoever wants to trust a number reads this folder, and
`pdprivacy.ledger` for budgets that last. It builds on `pdprivacy.declaration`, and on errors, types, checks
and texts.
"""
