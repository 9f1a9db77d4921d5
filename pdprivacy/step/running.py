"""The decorator of a step, and one run of it: in, charge, release, out."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pdprivacy import schema as schemas
from pdprivacy._version import __version__
from pdprivacy.checks import check_name
from pdprivacy.errors import (
    ArgumentError,
    ChangedStepError,
    MissingLedgerError,
    ParameterError,
    StepError,
    got,
)
from pdprivacy.ledger import Ledger
from pdprivacy.privacy import Rational
from pdprivacy.protection import ProtectedFrame, find, protect
from pdprivacy.step.folder import STORED, Folder, check_file_name
from pdprivacy.step.opened import Opened, Purse
from pdprivacy.step.parquet import check_pyarrow
from pdprivacy.step.texts import argument_texts, differing

__all__ = ["release_step"]

Body: TypeAlias = Callable[..., Any]
SINGLE = "result"
"""The name of what a body returns where it is one release."""

_OPTIONS = {
    name: parameter.default
    for name, parameter in inspect.signature(protect).parameters.items()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name not in ("budget", "name")
}
"""The keywords of `protect` that a step passes on, and what they are by default."""


def release_step(
    *,
    schema: Any,
    ledger: str | os.PathLike[str] | Ledger,
    name: str,
    to: str | os.PathLike[str] = "released",
    epsilon: Rational | None = None,
    delta: Rational = 0,
    **options: Any,
) -> Callable[[Body], Body]:
    """A function from a protected frame to releases, made a step of a pipeline that may be tried again.

    The step takes a raw frame where the function takes the protected one, and a ``release_id``, which names
    the result for good. It validates the frame, charges each release, and stores it before the next one. The
    first run that comes to its end writes the results; whoever calls again with the same ``release_id`` is
    given them as they were stored: nothing is read, computed or charged. A run that follows one that was cut
    short is given the releases that are stored, and pays for the others.

    The function returns releases that it made of its frame: one, or a dict of them, whose keys name the
    files. Its calls must be the same, in the same order, each time it is tried. What is computed from
    releases is computed outside.

    Parameters
    ----------
    schema : as of `protect`.
    epsilon, delta, name : the total of the data of this name, in the ledger; once it is open, None will do.
    ledger : the path or URL of a `Ledger`, or one.
    to : the folder of the results, ``released/2026-05/age.parquet``, and of what steps note, in
        ``released/.steps``.
    options : other keywords of `protect`, but ``budget``.

    Returns a decorator. The function it makes has the same arguments, and ``release_id``; it returns the
    results as `read_release` reads them.

    Raises
    ------
    ArgumentError, ParameterError : a keyword, name or function that cannot be used.
    From a call of the step: ChangedStepError where it was tried before with other arguments, declaration or
    calls; AlreadyCharged where a release was charged and its answer is lost; StepError where another run is
    under way, the folder cannot be used, or the function returns what is no release of its frame; and what
    `protect` and the releases raise.

    >>> import pandas as pd, pandera.pandas as pa, tempfile, pdprivacy
    >>> schema = pa.DataFrameSchema({"age": pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})})
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = pdprivacy.Ledger(f"{folder.name}/budget.db")
    >>> @release_step(schema=schema, epsilon=1, ledger=ledger, name="survey", to=folder.name)
    ... def monthly(private, columns):
    ...     return {"age": private.dp.mean(columns, epsilon=0.5)}
    >>> ages = pd.DataFrame({"age": [31, 54, 27, 39]})
    >>> first, again = (monthly(ages, columns="age", release_id="2026-05")["age"] for _ in range(2))
    >>> first.equals(again), ledger.budget("survey").left
    (True, (0.5, 0.0))
    >>> ledger.close(); folder.cleanup()
    """
    for given in options:
        if given not in _OPTIONS:
            raise ArgumentError(
                f"release_step() got an unexpected keyword argument {given!r}.",
                f"those of df.dp.protect: {', '.join(_OPTIONS)}; the budget is that of ledger and name.",
            )
    if not isinstance(ledger, str | os.PathLike | Ledger):
        raise ParameterError(
            f"'ledger' must be a path, a URL or a Ledger (got {got(ledger)}).", 'ledger="budget.db".'
        )
    if not isinstance(to, str | os.PathLike) or not os.fspath(to):
        raise ParameterError(f"'to' must be the path of a folder (got {got(to)}).", 'to="released".')
    wanted = {**_OPTIONS, "epsilon": epsilon, "delta": delta, **options}
    declared = _Declared(schema, ledger, check_name(name, "name"), to, wanted)

    def decorate(body: Body) -> Body:
        signature = _with_release_id(body)

        @functools.wraps(body)
        def step(*args: Any, release_id: str | None = None, **kwargs: Any) -> Any:
            bound = inspect.signature(body).bind(*args, **kwargs)
            bound.apply_defaults()
            return _Run(declared, body, bound, release_id).result()

        step.__signature__ = signature  # type: ignore[attr-defined]
        return step

    return decorate


def _with_release_id(body: Any) -> inspect.Signature:
    """The signature of a step; refuses what cannot be a body."""
    named = callable(body) and hasattr(body, "__name__")
    if not named or inspect.iscoroutinefunction(body) or inspect.isasyncgenfunction(body):
        raise ParameterError(
            f"A step is made of a plain function (got {got(body)}).", "def monthly(private, by): ..."
        )
    signature = inspect.signature(body)
    parameters = list(signature.parameters.values())
    takes_frame = parameters and parameters[0].kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    if not takes_frame or "release_id" in signature.parameters:
        raise ParameterError(
            "The function of a step takes the protected frame first, and no 'release_id': the step adds it.",
            "def monthly(private, by): ...",
        )
    rest = [one for one in parameters if one.kind is inspect.Parameter.VAR_KEYWORD]
    added = inspect.Parameter("release_id", inspect.Parameter.KEYWORD_ONLY, annotation=str)
    return signature.replace(parameters=[*parameters[: len(parameters) - len(rest)], added, *rest])


@dataclass(frozen=True)
class _Declared:
    """What a step is declared to be; ``options``: of `protect`."""

    schema: Any
    ledger: str | os.PathLike[str] | Ledger
    name: str
    to: str | os.PathLike[str]
    options: Mapping[str, Any]

    def texts(self) -> dict[str, str]:
        """What has to be the same each time a step is tried; not the data, and not where the ledger is."""
        kept = {name: value for name, value in self.options.items() if name != "redeclare"}
        return {
            "schema": schemas.read_schema(self.schema).fingerprint(),
            "name": self.name,
            **argument_texts(kept),
        }


class _Run:
    """One call of a step."""

    def __init__(
        self, declared: _Declared, body: Body, bound: inspect.BoundArguments, release_id: str | None
    ) -> None:
        if release_id is None:
            raise ArgumentError(
                "'release_id' is missing: it is what makes a call that is tried again the same step.",
                'release_id="2026-05".',
            )
        check_pyarrow()
        self._declared, self._body, self._bound = declared, body, bound
        self._folder = Folder(declared.to, check_file_name(release_id, "release_id"))
        self._first, *others = bound.arguments
        self._asked: dict[str, Any] = {
            "release_id": self._folder.release_id,
            "function": body.__name__,
            "arguments": argument_texts({name: bound.arguments[name] for name in others}),
            "declaration": declared.texts(),
        }

    def result(self) -> Any:
        """The results: those that are there, or those that are made now."""
        manifest = self._folder.manifest()
        if manifest is None or manifest.get("results") is None or not self._folder.results.is_dir():
            with self._folder.locked():
                manifest = self._finished()
        elif changes := self._changes(manifest):
            raise self._changed(changes)
        results = manifest["results"]
        found = {name: self._folder.result(name, facts["digest"]) for name, facts in results.items()}
        return found[SINGLE] if manifest["single"] else found

    def _finished(self) -> dict[str, Any]:
        """The manifest, with the results it names in their folder."""
        manifest = self._begun()
        if manifest.get("results") is None:
            made, single = self._made()
            manifest = {**manifest, "results": made, "single": single}
            self._folder.note(manifest, STORED)
        self._folder.finish({name: facts["release"] for name, facts in manifest["results"].items()})
        return manifest

    # ------------------------------------------------------------ what was done before

    def _begun(self) -> dict[str, Any]:
        """The manifest of this step, new or resumed; refuses one that was tried otherwise before."""
        folder, before = self._folder, self._folder.manifest()
        asked = {**self._asked, "version": __version__, "results": None}
        if before is None:
            if folder.results.exists() or folder.made():
                raise StepError(
                    f"{str(folder.results)!r} is there already, or releases for it are, but not what a step "
                    "notes of them. Nothing was charged.",
                    "choose another release_id, or another folder.",
                )
            folder.note(asked)
            return asked
        changes = self._changes(before)
        if changes:
            names = {self._declared.name, str(before["declaration"].get("name"))}
            if before.get("results") is not None or folder.made() or any(map(self._charges, names)):
                raise self._changed(changes)
            folder.note(asked)  # nothing was paid for under the old terms
            return asked
        if before.get("results") is None and folder.made():
            self._check_charges()
        return before

    def _changed(self, changes: str) -> ChangedStepError:
        return ChangedStepError(
            f"The step {self._folder.release_id!r} was tried before, with {changes}. Nothing was charged.",
            "call it as it was called before, or choose another release_id, which is charged anew.",
        )

    def _changes(self, before: Mapping[str, Any]) -> str:
        """What is not as it was, in words; empty where all is."""
        found, now = [], self._asked
        for part, word in (("arguments", "argument"), ("declaration", "declaration of")):
            old, new = before.get(part, {}), now[part]
            found += [
                f"another {word} {name!r} ({_short(old.get(name))}, not {_short(new.get(name))})"
                for name in differing(old, new)
            ]
        for part in ("release_id", "function"):
            if before.get(part) != now[part]:
                found.append(f"another {part} ({before.get(part)!r}, not {now[part]!r})")
        return "; ".join(found)

    def _ledger(self) -> Ledger:
        ledger = self._declared.ledger
        return ledger if isinstance(ledger, Ledger) else Ledger(ledger)

    def _charges(self, name: str) -> dict[int, tuple[int, bool]]:
        """The releases of this id charged under this name: number of the charge, and whether answered."""
        ledger, start = self._ledger(), f"{self._folder.release_id}/"
        try:
            if name not in ledger.budgets.index:
                return {}
        except MissingLedgerError:
            return {}
        entries = ledger.entries(name)
        found = {}
        for charge, release, answered in zip(
            entries.index, entries["release_id"], entries["answered"], strict=True
        ):
            if release is not None and release.startswith(start) and release[len(start) :].isdecimal():
                found[int(release[len(start) :])] = (int(charge), bool(answered))
        return found

    def _check_charges(self) -> None:
        """Refuse a ledger that does not hold what stored releases cost; note there which are stored."""
        charges, made = self._charges(self._declared.name), self._folder.made()
        missing = [str(number) for number in made if number not in charges]
        if missing:
            raise StepError(
                f"Releases of the step {self._folder.release_id!r} are stored ({', '.join(missing)}), but "
                f"the ledger holds no charge for them under {self._declared.name!r}: it is another ledger, "
                "or an older copy. Nothing was charged.",
                "name the ledger that paid for them.",
            )
        budget = self._ledger().budget(self._declared.name)
        for number in made:
            charge, answered = charges[number]
            noted = self._folder.noted(number)
            if not answered and noted is not None:
                budget.answered(charge, noted["risk"])

    # ------------------------------------------------------------ what is done now

    def _made(self) -> tuple[dict[str, Any], bool]:
        """Number and file digest of each release that the body returns; and whether it returned only one."""
        declared, bound = self._declared, self._bound
        private = protect(
            bound.arguments[self._first],
            declared.schema,
            budget=self._ledger(),
            name=declared.name,
            **declared.options,
        )
        found = find(private)
        purse = Purse(found.budget)
        opened = Opened(self._folder, purse)
        facts = replace(found, budget=purse, keeper=opened)
        frame = ProtectedFrame(facts)
        bound.arguments[self._first] = frame
        try:
            returned = self._body(*bound.args, **bound.kwargs)
            several = isinstance(returned, dict)
            return opened.results(returned if several else {SINGLE: returned}), not several
        except BaseException as error:
            if opened.made:
                error.add_note(
                    f"What the step {self._folder.release_id!r} has released is stored: called again with "
                    "the same release_id, it takes that from there, at no cost."
                )
            raise
        finally:
            opened.close()


def _short(text: str | None) -> str:
    return "nothing" if text is None else text if len(text) <= 60 else text[:57] + "..."
