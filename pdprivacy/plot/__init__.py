"""Pictures of released numbers, tables, plans and budgets, and of the curator's frames.

Those of the curator are made of exact counts, and each says so. matplotlib (the extra ``plot``) is imported
when something is drawn; none of its settings is changed. Colours are those of Okabe and Ito; dashes,
markers, hatches and shades tell the same things apart in grey.
"""

from pdprivacy.plot.canvas import MARK
from pdprivacy.plot.drawing import draw
from pdprivacy.plot.spent import draw_budget

__all__ = ["MARK", "draw", "draw_budget"]
