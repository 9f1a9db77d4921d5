"""What the guarantee rests on: exact noise, mechanisms, sensitivities, statistics, reads, accounting and the gate.

Nothing here knows how a release looks. Whoever wants to trust a number reads this folder, and `pdprivacy.ledger`
for budgets that last. It imports the ground floor (errors, types, checks, texts) and `pdprivacy.declaration`.
"""
