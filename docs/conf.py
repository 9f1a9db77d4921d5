"""The site made of this folder: ``python -m sphinx -W -n --keep-going -b html docs build/site``.

Pages are Markdown; the reference is read off the docstrings, whose prose is nearly reStructuredText.
The functions below read the rest: headings, lists of parameters, drawings, names without their module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pdprivacy import __version__

project = "pdprivacy"
version = release = __version__
extensions = ["sphinx.ext.autodoc", "myst_parser"]
exclude_patterns = ["_static"]

html_theme = "furo"
html_title = f"pdprivacy {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False

myst_heading_anchors = 3
smartquotes = False
default_role = "py:obj"
add_module_names = False
python_display_short_literal_types = True
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"

# types that signatures call by name, and where the reference has them
WORDS = {
    "Accounting": "pdprivacy.accounting.Accounting",
    "Alpha": "pdprivacy.risk.table_risk.Alpha",
    "ArrayLike": "numpy.typing.ArrayLike",
    "Bounding": "pdprivacy.mechanism.Bounding",
    "Calibration": "pdprivacy.mechanism.Calibration",
    "CalibrationName": "pdprivacy.core.gate.request.CalibrationName",
    "Constraint": "pdprivacy.releases.tables.Constraint",
    "Distance": "pdprivacy.suppression.Distance",
    "Fate": "pdprivacy.core.conform.Fate",
    "Floats": "numpy.ndarray",
    "Integers": "numpy.ndarray",
    "Labels": "pdprivacy.types.Labels",
    "Loss": "pdprivacy.core.privacy.Loss",
    "Losses": "pdprivacy.accounting.Losses",
    "Mask": "numpy.ndarray",
    "MatrixConstraint": "pdprivacy.releases.covariances.MatrixConstraint",
    "MechanismName": "pdprivacy.core.gate.request.MechanismName",
    "Neighbors": "pdprivacy.core.privacy.Neighbors",
    "Norm": "pdprivacy.sensitivity.Norm",
    "Normalize": "pdprivacy.releases.tables.Normalize",
    "Overall": "pdprivacy.risk.table_risk.Overall",
    "RandomState": "pdprivacy.core.noise.RandomState",
    "Rational": "pdprivacy.core.privacy.Rational",
    "RoundNoise": "pdprivacy.releases.clustering.RoundNoise",
    "SelectionName": "pdprivacy.core.mechanisms.exponential.SelectionName",
    "SelectionNoise": "pdprivacy.core.mechanisms.exponential.SelectionNoise",
    "Spend": "pdprivacy.amplification.sampling.Spend",
    "Split": "pdprivacy.core.gate.spec.Split",
    "WalkSelection": "pdprivacy.releases.clustering.WalkSelection",
    **{name: f"pdprivacy.risk.{name}" for name in ("Attack", "Average", "Measure", "SizeModel")},
}
autodoc_type_aliases = WORDS

# where a name that a docstring mentions without its module is looked for
PLACES = (
    "pdprivacy.accessor.ProtectedDP",
    "pdprivacy.accessor.DataFrameDP",
    "pdprivacy",
    "pdprivacy.releases",
    "pdprivacy.suppression",
)
# what other libraries explain
FOREIGN = re.compile(r"(DataFrame|DataFrameGroupBy|pandas|numpy|scipy)\.\w+")

# what many docstrings end with is told once: how such an end begins, and the label of the place
SHARED = {
    "Keywords that every release takes": "keywords-of-releases",
    "Keywords that every selection of labels takes": "keywords-of-labels",
    "Keywords that every selection of numbers takes": "keywords-of-numbers",
}
# what users write before the name of a method
CALLED = {"DataFrameDP.": "df.dp.", "ProtectedDP.": "private.dp."}
# the same function under two names
SAME = {"pdprivacy.accessor.DataFrameDP.protect": "As `pdprivacy.protect`, of this frame."}

HEADING = re.compile(r"-{3,}")
ITEM = re.compile(r"(?P<names>[\w.*, ]{1,60}) : (?P<text>.+)")


def read_docstring(_app: Any, what: str, name: str, thing: Any, _options: Any, lines: list[str]) -> None:
    """A docstring for Sphinx."""
    if what == "data":
        lines[:] = [alias(thing)]
    elif name in SAME:
        lines[:] = [SAME[name]]
    else:
        lines[:] = as_rst(without_shared(lines) if name.startswith("pdprivacy.accessor.") else lines)


def skip(_app: Any, _what: str, _name: str, thing: Any, _skip: bool, _options: Any) -> bool | None:
    """Whether to leave out a member: the fields of named tuples, which their signatures tell."""
    return (getattr(thing, "__doc__", None) or "").startswith("Alias for field number") or None


def without_shared(lines: list[str]) -> list[str]:
    """The lines without the end that many have, in whose place is a link."""
    for place, line in enumerate(lines):
        for start, label in SHARED.items():
            if line.startswith(start):
                return [*lines[:place], f"Other keywords: :ref:`as of all such releases <{label}>`.", ""]
    return lines


def as_rst(lines: list[str]) -> Iterator[str]:
    """The lines of a docstring, as reStructuredText."""
    items = drawing = False
    for before, line, after in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
        item = ITEM.fullmatch(line)
        if HEADING.fullmatch(line):
            yield ""
        elif HEADING.fullmatch(after):
            yield f".. rubric:: {line}"
        elif item and (items or not before or HEADING.fullmatch(before)):
            items = True
            yield from (f"``{item['names']}``", f"    {escaped(item['text'])}")
        else:
            if items and line and not line.startswith(" "):
                items = False
                yield ""
            if line.startswith("    ") and not (before or items or drawing):
                drawing = True
                yield from ("::", "")
            drawing = drawing and (not line or line.startswith("    "))
            yield line if drawing or line.lstrip().startswith((">>>", "...")) else escaped(line)


def escaped(line: str) -> str:
    """A line whose vertical bars outside of code are bars, and no substitutions."""
    parts = line.split("``")
    parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
    return "``".join(parts)


def alias(thing: Any) -> str:
    """The meaning of a type, where Sphinx does not say it."""
    text = str(thing)
    return "" if text.startswith("typing.") else "``" + re.sub(r"[a-z_.]+\.(?=[A-Z])", "", text) + "``"


def read_signature(*arguments: Any) -> tuple[str | None, str | None]:
    """A signature whose types are called by name also where they are parts of others."""
    *_, signature, result = arguments
    return plain(signature), plain(result)


def plain(text: str | None) -> str | None:
    """Types by their name, without what Python or Sphinx wraps around it."""
    return text and re.sub(r"~typing\.|TypeAliasForwardRef\('(.*?)'\)", r"\1", text)


def find(app: Any, env: Any, node: Any, text: Any) -> Any:
    """A name that is not where Sphinx looks for it; types that are told nowhere stay without a link."""
    if node.get("refdomain") != "py":
        return None
    name = re.sub(r"^(df|private)\.dp\.", "", node["reftarget"]).rpartition(" ")[2]
    full = WORDS.get(name, name)
    for place in ("", *(f"{place}." for place in PLACES)):
        found = env.domains["py"].resolve_xref(
            env, node["refdoc"], app.builder, "obj", place + full, node, text
        )
        if found is not None:
            return found
    return text if node["reftype"] == "class" or FOREIGN.fullmatch(name) else None


def as_called(_app: Any, _domain: str, _kind: str, content: Any) -> None:
    """Methods of the accessor under the name by which they are called."""
    from docutils.nodes import Text
    from sphinx.addnodes import desc_addname

    for prefix in content.parent.findall(desc_addname):
        if prefix.astext() in CALLED:
            prefix[:] = [Text(CALLED[prefix.astext()])]


def trim(_app: Any, page: Any) -> None:
    """Examples without the empty line that ends them for doctest."""
    from docutils.nodes import Text, literal_block

    for block in page.findall(literal_block):
        block.rawsource = block.astext().rstrip()
        block[:] = [Text(block.rawsource)]


def setup(app: Any) -> None:
    """The entry point of Sphinx."""
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", read_docstring)
    app.connect("autodoc-process-signature", read_signature)
    app.connect("object-description-transform", as_called)
    app.connect("doctree-read", trim)
    app.connect("missing-reference", find)
