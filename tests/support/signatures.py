"""Signatures of the methods of ``private.dp``, plans and batches, as a stub for type checkers.

``python -m tests.support.signatures --write`` writes ``pdprivacy/signatures.pyi`` from the functions that
these methods forward to; without ``--write`` it says whether the stub is that.

A type checker sees neither methods that are attached when the package is imported, nor keywords that stand
for others, nor which argument decides the type of the answer. The stub spells all three out.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import functools
import importlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pdprivacy
from pdprivacy import releases
from pdprivacy.accessor import PlanDP, ProtectedDP
from pdprivacy.core.gate import request
from pdprivacy.frames import ROW_STEPS
from pdprivacy.releases import moments, planning, rank_plans, selection
from pdprivacy.releases.batches import VERBS
from pdprivacy.releases.grouped import VERBS_BY_GROUP
from pdprivacy.releases.planning import PLANS, PLANS_BY_GROUP
from pdprivacy.risk import table_risk

__all__ = ["PATH", "returned", "stub"]

PATH = Path(pdprivacy.__file__).parent / "signatures.pyi"
COMMAND = "python -m tests.support.signatures --write"
WIDTH, INDENT = 110, 8 * " "
SERIES, FRAME = "pd.Series[Any]", "pd.DataFrame"

Changes = tuple[Mapping[str, str], str]
"""Parameters that a type checker is told otherwise, as text, and what is returned then."""

LISTED = "columns: list[Any] | pd.Index[Any]"
ONE_EPSILON, EPSILONS = "epsilon: Rational = ...", "epsilon: Sequence[Rational] = ..."
EACH_CELL = "average: None = ..."
OVER_CELLS = "average: risk.Average = 'cells'"
COMPUTED = "method: Literal['exact', 'published'] = 'exact'"
OVERLOADS: Mapping[str, tuple[Changes, ...]] = {
    "dr_ha": (
        ({"epsilon": ONE_EPSILON, "average": OVER_CELLS, "method": COMPUTED}, "Confidential"),
        ({"epsilon": EPSILONS, "average": OVER_CELLS, "method": COMPUTED}, SERIES),
        ({"epsilon": ONE_EPSILON, "average": EACH_CELL, "method": COMPUTED}, SERIES),
        ({"epsilon": EPSILONS, "average": EACH_CELL, "method": COMPUTED}, FRAME),
        ({"method": "method: Literal['monte_carlo'] = ..."}, FRAME),
    ),
    "quantile": (
        ({"q": "q: Rational = 0.5"}, SERIES),
        ({"q": "q: Sequence[Rational] | np.ndarray[Any, Any] | pd.Index[Any] | pd.Series[Any] = ..."}, FRAME),
    ),
    "top_k": (({"columns": LISTED}, FRAME), ({"columns": "columns: Hashable"}, SERIES)),
    "agg": (
        ({"func": "func: Aggregate | Mapping[Any, Aggregate]"}, SERIES),
        ({"func": "func: Sequence[Aggregate] | Mapping[Any, Sequence[Aggregate]]"}, FRAME),
    ),
    "of one column agg": (
        ({"func": "func: Aggregate"}, SERIES),
        ({"func": "func: Sequence[Aggregate]"}, FRAME),
    ),
    **{
        f"of one column {name}": (({}, SERIES),)
        for name in ("sum", "mean", "var", "std", "mode", "nunique", "quantile", "median", "min", "max")
    },
    "split": (
        ({"into": "into: Mapping[Hashable, Rational]"}, "dict[Hashable, Fraction]"),
        ({"into": "into: int | Sequence[Rational]"}, "list[Fraction]"),
    ),
}
"""Methods whose arguments decide what they return."""

ONE, SEVERAL = "releases: Literal[1] = 1", "releases: int"
"""The number of releases: several come as a DataFrame."""

HEADER = f'''"""Signatures of the methods of ``private.dp``, of plans and of batches, for type checkers.

Made by ``{COMMAND}``.
"""

# mypy: disable-error-code="overload-overlap"
# pyright: reportOverlappingOverload=false
'''


class Origins:
    """The imports that the names in annotations need."""

    def __init__(self) -> None:
        self.lines: dict[str, str] = {}

    def add(self, annotation: str, module: str) -> None:
        """Find the names of an annotation that is written in a module."""
        for node in ast.walk(ast.parse(annotation, mode="eval")):
            if isinstance(node, ast.Name) and not hasattr(builtins, node.id):
                # keywords of a TypedDict are spelled out in the words of its own module
                sources = (
                    module,
                    *(
                        other.__name__
                        for other in (moments, planning, rank_plans, request, selection, table_risk)
                    ),
                )
                line = next(line for source in sources if (line := imported(node.id, source)) is not None)
                if self.lines.setdefault(node.id, line) != line:
                    raise ValueError(f"{node.id} is {line!r} and {self.lines[node.id]!r}")


@functools.cache
def nodes_of(module: str) -> tuple[ast.AST, ...]:
    """The syntax of a module."""
    source = Path(str(importlib.import_module(module).__file__)).read_text(encoding="utf-8")
    return tuple(ast.walk(ast.parse(source)))


@functools.cache
def imported(name: str, module: str, asname: str = "") -> str | None:
    """The line that imports a name of a module from where it is defined; None where there is no such name."""
    renamed = f" as {asname}" if asname and asname != name else ""
    for node in nodes_of(module):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if name != (alias.asname or alias.name):
                    continue
                if isinstance(node, ast.Import):
                    return f"import {alias.name}" + (f" as {name}" if alias.asname else "")
                own = str(node.module).startswith("pdprivacy.")
                deeper = imported(alias.name, str(node.module), asname or name) if own else None
                local_name = asname or name
                plain = f"from {node.module} import {alias.name}"
                return deeper or (plain if local_name == alias.name else f"{plain} as {local_name}")
        elif isinstance(node, ast.ClassDef) and node.name == name:
            return f"from {module} import {name}{renamed}"
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return f"from {module} import {name}{renamed}"
    return None


def default(value: Any) -> str:
    """A default as a stub writes it."""
    return repr(value) if value is None or isinstance(value, bool | int | float | str) else "..."


def parameters(signature: inspect.Signature, changes: Mapping[str, str]) -> Iterator[str]:
    """The parameters after the first, as text."""
    _, *rest = signature.parameters.values()
    yield "self"
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in rest):
        yield "/"
    starred = False
    for parameter in rest:
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            yield "*"
            starred = True
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        text = f"{stars}{parameter.name}: {parameter.annotation}"
        yield changes.get(
            parameter.name,
            text if parameter.default is parameter.empty else f"{text} = {default(parameter.default)}",
        )


def answer(annotation: str) -> str:
    """The return type of an executed release."""
    return annotation.removeprefix("Release[").removesuffix("]") if "Release[" in annotation else annotation


def cases(name: str, signature: inspect.Signature) -> Iterator[Changes]:
    """The overloads of a method."""
    result = answer(str(signature.return_annotation))
    for changes, returns in OVERLOADS.get(name, (({}, result),)):
        yield ({**changes, "releases": ONE}, returns) if returns == SERIES else (changes, returns)
    named = OVERLOADS.get(name, (({}, result),))
    if "releases" in signature.parameters and any(returns == SERIES for _, returns in named):
        yield {"releases": SEVERAL}, FRAME


def method(
    name: str,
    function: Callable[..., Any],
    origins: Origins,
    wrap: Callable[[str], str] = str,
    verb: Callable[..., Any] | None = None,
    overloads: str | None = None,
) -> Iterator[str]:
    """The lines of a method; ``overloads``: where not under its name."""
    signature, module = inspect.signature(function), inspect.unwrap(verb or function).__module__
    every = list(cases(overloads or name, signature))
    for changes, result in every:
        if len(every) > 1:
            origins.lines["overload"] = "from typing import overload"
            yield "    @overload"
        listed = list(parameters(signature, changes))
        annotations = [part.partition(":")[2].partition("=")[0].strip() for part in listed]
        for annotation in (*filter(None, annotations), result):
            origins.add(annotation, module)
        yield f"    def {name}("
        whole = ", ".join(
            parameter.replace(" ", "\0") for parameter in listed
        )  # a parameter stays on one line
        lines = textwrap.wrap(whole, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)
        yield from (line.replace("\0", " ") for line in lines)
        yield f"    ) -> {wrap(result)}: ..."


def stub() -> str:
    """The text of the stub."""
    origins = Origins()
    origins.lines["Pending"] = "from pdprivacy.releases.batches import Pending"
    attached = sorted({*releases.__all__, *ROW_STEPS} & {*vars(ProtectedDP)})
    body = ["", "class ProtectedMethods:"]
    for name in attached:
        body += method(name, getattr(ProtectedDP, name), origins)
    body += ["", "class PlanMethods:"]
    for name in PLANS:
        body += method(name, getattr(PlanDP, name), origins, verb=VERBS[name], overloads=f"plan {name}")
    body += ["", "class BatchMethods:"]
    for name in VERBS:
        body += method(str(name), VERBS[name], origins, "Pending[{}]".format)
    body += ["", "class GroupMethods:"]
    for name, verb in VERBS_BY_GROUP.items():
        body += method(
            name, getattr(releases.GroupBy, name), origins, verb=verb, overloads=f"by group {name}"
        )
    body += ["", "class SeriesGroupMethods:"]
    for name, verb in VERBS_BY_GROUP.items():
        body += method(
            name, getattr(releases.GroupBy, name), origins, verb=verb, overloads=f"of one column {name}"
        )
    body += ["", "class GroupPlanMethods:"]
    for name, plan in PLANS_BY_GROUP.items():
        body += method(name, plan, origins, verb=VERBS_BY_GROUP[name], overloads=f"by group {name}")
    imports = sorted(set(origins.lines.values()), key=lambda line: (line.startswith("from"), line))
    return "\n".join([HEADER, *imports, *body]).rstrip() + "\n"


@functools.cache
def returned() -> dict[str, list[str]]:
    """The return type of each method of ``private.dp`` in the stub."""
    classes = [node for node in ast.parse(stub()).body if isinstance(node, ast.ClassDef)]
    returns: dict[str, list[str]] = {}
    for node in classes[0].body:
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            returns.setdefault(node.name, []).append(ast.unparse(node.returns))
    return returns


def main() -> int:
    """Write the stub, or say whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        PATH.write_text(stub(), encoding="utf-8")
        return 0
    same = PATH.is_file() and PATH.read_text(encoding="utf-8") == stub()
    print("up to date" if same else f"{PATH.name} differs: {COMMAND}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
