"""What pictures say of a release in words: what it is, how it was made, and how far off it may be."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pdprivacy.plot.canvas import Floats

SEEDED = "seeded: not private"
WITHIN = "hatched: cannot be told from 0"
LONGEST = 40
"""Characters of a label; a longer one is cut."""

EDGE = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
BIN = re.compile(rf"^([\[(])({EDGE}), ?({EDGE})([\])])$")


def edges_of(label: object) -> tuple[float, float] | None:
    """The edges of a bin such as ``[16, 30)``; None for another label."""
    found = BIN.match(label) if isinstance(label, str) else None
    return None if found is None else (float(found[2]), float(found[3]))


def cut(text: object, most: int = LONGEST) -> str:
    """A text of at most so many characters, on one line."""
    plain = "".join(one if one.isprintable() else " " for one in str(text))
    return plain if len(plain) <= most else plain[: most - 1].rstrip() + "…"


def label_of(label: object, most: int = LONGEST) -> str:
    """A label of an axis: of several levels one after the other, of a bin with short edges, null in words."""
    if isinstance(label, tuple):
        parts = [label_of(part, most) for part in label if not (isinstance(part, str) and part == "")]
        return cut(", ".join(parts), most)
    if label is None or label != label:
        return "null"
    found = BIN.match(label) if isinstance(label, str) else None
    if found is not None:
        return cut(f"{found[1]}{float(found[2]):.6g}, {float(found[3]):.6g}{found[4]}", most)
    return cut(f"{label:.6g}" if isinstance(label, float) else label, most)


def listed(names: Iterable[object]) -> str:
    """Names one after the other, the last ones counted where there are many."""
    texts = [cut(name) for name in names]
    return ", ".join(texts if len(texts) <= 6 else [*texts[:5], f"{len(texts) - 5} more"])


def title_of(facts: Mapping[str, Any], by: Sequence[object] = ()) -> str:
    """What was released, as a budget lists it; ``by``: the columns that are keys."""
    keys = [str(name) for name in by]
    columns = [str(name) for name in facts.get("columns") or []]
    of = [name for name in columns if name not in keys]
    text = str(facts.get("statistic"))
    text += f" of {listed(of)}" if of else ""
    text += f" by {listed(keys)}" if keys else ""
    shares = {"all": "shares of all", "index": "shares of each row", "columns": "shares of each column"}
    if facts.get("normalize") in shares:
        text += f" ({shares[facts['normalize']]})"
    return text


def cost_of(facts: Mapping[str, Any]) -> str:
    """Epsilon, delta where there is one, the noise, and how many releases share them."""
    text = f"epsilon {_short(facts.get('epsilon'))}"
    if facts.get("delta"):
        text += f", delta {_short(facts['delta'])}"
    how = "mechanism" if "below_best" in facts["error"] else "noise"
    text += f", {str(facts.get('mechanism')).replace('_', ' ')} {how}"
    many = facts.get("releases")
    return text + (f", {many} releases together" if isinstance(many, int) and many > 1 else "")


def _short(number: object) -> str:
    return f"{number:.4g}" if isinstance(number, int | float) else cut(number)


def records_of(facts: Mapping[str, Any]) -> str:
    """Of which records it is: conditions and steps; empty for all."""
    filters, steps = ([str(one) for one in facts.get(name) or []] for name in ("filters", "lineage"))
    text = "where " + " and ".join(filters) if filters else ""
    return text + (" " * bool(text) + "after " + ", ".join(steps) if steps else "")


def notes_of(facts: Mapping[str, Any], noise: str = "") -> list[str]:
    """What stands under a title: cost, records, ``noise`` in words, what was done to numbers, the seed."""
    notes = [cost_of(facts), records_of(facts), noise]
    if facts.get("bounding"):
        notes.append(f"kept in bounds by {facts['bounding']!r}, which biases numbers near them")
    if facts.get("constraint"):
        notes.append(f"errors as before constraint={facts['constraint']!r}")
    notes.append(SEEDED if facts.get("seeded") else "")
    return [cut(note, 200) for note in notes if note]


def level_of(facts: Mapping[str, Any]) -> str:
    """The probability of the intervals, in percent."""
    level = facts["error"].get("level")
    return f"{100 * level:g} %" if isinstance(level, int | float) else "unknown level"


def span(half: Floats, unit: float = 1.0) -> str:
    """``± 6``, or ``± 2.4 to 6`` of different ones; empty where none is known. ``unit``: what is one."""
    known = half[np.isfinite(half)] * unit
    if not known.size:
        return ""
    least, most = (f"{end:,.0f}" if end >= 99.5 else f"{end:.2g}" for end in (known.min(), known.max()))
    return f"± {most}" if least == most else f"± {least} to {most}"


def told(value: float, half: float, percent: bool = False) -> str:
    """A number with what it may be off by, in as many digits as this has a meaning for."""
    factor, sign = (100, " %") if percent else (1, "")
    digits = decimals_for(factor * half)
    text = written(factor * value, digits)
    if math.isfinite(half) and math.isfinite(value):
        text += f" ± {written(factor * half, digits)}"
    return text + sign * math.isfinite(value)


def decimals_for(error: float) -> int:
    """Digits behind the point that show an error of this size in two digits."""
    if not math.isfinite(error) or error <= 0:
        return 3
    return int(np.clip(1 - math.floor(math.log10(error)), 0, 12))


def written(value: float, decimals: int) -> str:
    """A number with so many digits behind the point, if it needs them; a long one by its power of ten."""
    if not math.isfinite(value):
        return "none"
    decimals = 0 if value == round(value) else decimals
    if decimals > 6 or abs(value) >= 1e10:
        return f"{value:.3g}"
    text = f"{value:,.{decimals}f}"
    return text.replace("-", "−") if float(text.replace(",", "")) else text.removeprefix("-")
