"""Releases as a step of a pipeline: each is charged once, however often the step is tried, and stored.

`release_step` makes a step of a function of a protected frame. The ledger charges each release once, under a
release id, and stores its answer; the results are files, which `pdprivacy.read_release` reads.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from pdprivacy._version import __version__
from pdprivacy.checks import check_name
from pdprivacy.core.privacy import Rational
from pdprivacy.declaration import schema as schemas
from pdprivacy.errors import (
    AlreadyCharged,
    ArgumentError,
    ChangedStepError,
    LedgerError,
    MissingLedgerError,
    ParameterError,
    StepError,
    got,
    shorten_from,
)
from pdprivacy.frames import ProtectedFrame, find
from pdprivacy.frames.call_texts import argument_texts, differing
from pdprivacy.frames.protect import protect
from pdprivacy.ledger import Ledger
from pdprivacy.pipeline.folder import Folder, check_file_name, digest_of
from pdprivacy.pipeline.keeper import StepKeeper, another_ledger
from pdprivacy.pipeline.storage import check_pyarrow
from pdprivacy.releases.frame_json import Json

__all__ = ["release_step"]

Body: TypeAlias = Callable[..., Any]
SINGLE = "result"
"""The name of the result of a body that returns one release."""

_OPTIONS = {
    name: parameter.default
    for name, parameter in inspect.signature(protect).parameters.items()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name not in ("budget", "name")
}
"""The keywords of `protect` that a step passes on, and their defaults."""


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
    """Make a step of a pipeline, which may be tried again, from a function of a protected frame.

    The step takes the raw frame in place of the protected one, and a ``release_id``, which names the result
    for good. It validates the frame, charges each release, and stores it before the next one. The first run
    that ends without an error writes the results. A later call with the same ``release_id`` returns the
    stored results and reads, computes and charges nothing. A call after a run that was cut short takes the
    stored releases from the ledger and pays for the others.

    The function returns releases of its frame: one, or a dict of releases, whose keys name the files. It must
    make the same calls, in the same order, each time it is tried. Compute outside of the step what you derive
    from releases.

    Parameters
    ----------
    schema : as in `protect`.
    epsilon, delta, name : the total of the budget of this name in the ledger; None once it is open.
    ledger : a `Ledger`, or its path or URL.
    to : the folder of the results, ``released/2026-05/age.parquet``. Steps keep their notes below it, in
        ``released/.steps``.
    options : other keywords of `protect`, except ``budget``.

    Returns a decorator. The decorated function has the arguments of the function and ``release_id``; it
    returns the results as `read_release` reads them.

    Raises
    ------
    ArgumentError, ParameterError : a keyword, name or function that cannot be used.
    From a call of the step: ChangedStepError where it was tried before with other arguments, another
    declaration or other calls; AlreadyCharged where a release was charged and its answer is lost; StepError
    where another run is under way, the folder cannot be used, or the function returns anything but
    unchanged releases of its frame; and the errors of `protect` and of the releases.

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
    for option in options:
        if option not in _OPTIONS:
            raise ArgumentError(
                f"release_step() got an unexpected keyword argument {option!r}.",
                f"those of df.dp.protect: {', '.join(_OPTIONS)}; the budget is that of ledger and name.",
            )
    if not isinstance(ledger, str | os.PathLike | Ledger):
        raise ParameterError(
            f"'ledger' must be a path, a URL or a Ledger (got {got(ledger)}).", 'ledger="budget.db".'
        )
    if not isinstance(to, str | os.PathLike) or not os.fspath(to):
        raise ParameterError(f"'to' must be the path of a folder (got {got(to)}).", 'to="released".')
    terms = {**_OPTIONS, "epsilon": epsilon, "delta": delta, **options}
    declared = _Declared(schema, ledger, check_name(name, "name"), to, terms)

    def decorate(body: Body) -> Body:
        signature = _with_release_id(body)

        @functools.wraps(body)
        def step(*args: Any, release_id: str | None = None, **kwargs: Any) -> Any:
            __tracebackhide__ = _rich_traceback_omit = True
            handled = sys.exc_info()[1]
            try:
                bound = inspect.signature(body).bind(*args, **kwargs)
                bound.apply_defaults()
                return _Run(declared, body, bound, release_id).result()
            except BaseException as error:
                shorten_from(body, error, handled)
                raise

        step.__signature__ = signature  # type: ignore[attr-defined]
        return step

    return decorate


def _with_release_id(body: Any) -> inspect.Signature:
    """Return the signature of a step; refuse a function that cannot be the body of one."""
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
    added = inspect.Parameter("release_id", inspect.Parameter.KEYWORD_ONLY, annotation=str)
    last = sum(parameter.kind is not inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    return signature.replace(parameters=[*parameters[:last], added, *parameters[last:]])


class _Declared(NamedTuple):
    """The declaration of a step; ``options``: keywords of `protect`."""

    schema: Any
    ledger: str | os.PathLike[str] | Ledger
    name: str
    to: str | os.PathLike[str]
    options: Mapping[str, Any]

    def texts(self) -> dict[str, str]:
        """Return all that must be the same each time a step is tried; not the place of the ledger."""
        left_out = {"redeclare", "columns", *([] if self.options.get("reuse") else ["reuse"])}
        options = {name: value for name, value in self.options.items() if name not in left_out}
        return {
            "schema": schemas.read_schema(self.schema, self.options["columns"]).fingerprint(),
            "name": self.name,
            **argument_texts(options),
        }


class _Run:
    """A call of a step."""

    def __init__(
        self, declared: _Declared, body: Body, bound: inspect.BoundArguments, release_id: str | None
    ) -> None:
        if release_id is None:
            raise ArgumentError(
                "'release_id' is missing: it identifies the step when the call is repeated.",
                'release_id="2026-05".',
            )
        check_pyarrow()
        self._declared, self._body, self._bound = declared, body, bound
        self._folder = Folder(declared.to, check_file_name(release_id, "release_id"))
        self._first, *others = bound.arguments
        self._manifest: Json = {
            "release_id": self._folder.release_id,
            "function": body.__name__,
            "arguments": argument_texts({name: bound.arguments[name] for name in others}),
            "declaration": declared.texts(),
            "version": __version__,
            "results": None,
        }

    def result(self) -> Any:
        """Return the results: the stored ones, or those of the body."""
        folder, manifest = self._folder, self._folder.manifest()
        if manifest is None or manifest.get("results") is None or not folder.results.is_dir():
            with folder.locked():
                manifest = self._finished_manifest()
        elif change := self._change_since(manifest):
            raise change
        results = manifest["results"]
        releases = {
            name: folder.read(folder.result(name), facts["digest"]) for name, facts in results.items()
        }
        return releases[SINGLE] if manifest["single"] else releases

    def _finished_manifest(self) -> Json:
        """Return the manifest, once the results that it names are in their folder."""
        manifest = self._begun()
        if manifest.get("results") is None or not self._folder.show(manifest["results"]):
            manifest = self._run_body(manifest)
        return manifest

    # ------------------------------------------------------------ earlier runs

    def _begun(self) -> Json:
        """Return the manifest of an earlier run, or a new one; refuse a step that was changed."""
        folder, before = self._folder, self._folder.manifest()
        if before is None:
            if folder.results.exists():
                raise StepError(
                    f"{str(folder.results)!r} exists already, and the manifest of the step is missing. "
                    "Nothing was charged.",
                    "move it away: the step writes its results again. Or choose another release_id.",
                )
            return self._manifest
        if not self._holds(before.get("head")):
            raise another_ledger(folder.release_id)
        change = self._change_since(before)
        if change is None:
            return before
        names = {self._declared.name, str(before["declaration"].get("name"))}
        if before.get("results") is not None or any(map(self._has_charges, names)):
            raise change
        return self._manifest  # nothing was paid for under other terms

    def _change_since(self, before: Json) -> ChangedStepError | None:
        """Return the error for a step that differs from its earlier run; None where nothing differs."""
        old, new = _terms(before), _terms(self._manifest)
        changes = [
            f"another {term} ({_short(old.get(term))}, not {_short(new.get(term))})"
            for term in differing(old, new)
        ]
        if not changes:
            return None
        return ChangedStepError(
            f"The step {self._folder.release_id!r} was tried before, with {'; '.join(changes)}. "
            "Nothing was charged.",
            "call it as it was called before, or choose another release_id, which is charged anew.",
        )

    @functools.cached_property
    def _ledger(self) -> Ledger:
        ledger = self._declared.ledger
        return ledger if isinstance(ledger, Ledger) else Ledger(ledger)

    def _has_charges(self, name: str) -> bool:
        """Return whether releases of the step are charged to the budget of a name."""
        try:
            if name not in self._ledger.budgets.index:
                return False
        except MissingLedgerError:
            return False
        charged = self._ledger.entries(name)["release_id"].dropna()
        return bool(charged.astype(str).str.startswith(f"{self._folder.release_id}/").any())

    def _holds(self, head: str | None) -> bool:
        """Return whether the ledger holds the record that was its last when a release was stored."""
        if head is None:
            return True
        try:
            row = self._ledger.chain.read(lambda reader: reader.at(int(head.partition(":")[0])))
        except MissingLedgerError:
            return False
        return row is not None and row.label == head

    # ------------------------------------------------------------ this run

    def _run_body(self, manifest: Json) -> Json:
        """Run the body and store its results; return the manifest that names them."""
        declared, bound = self._declared, self._bound
        frame, terms = bound.arguments[self._first], declared.options

        def note() -> None:
            manifest["head"] = self._ledger.head
            self._folder.note(manifest, "Nothing is charged that is not stored.")

        protected = find(protect(frame, declared.schema, budget=self._ledger, name=declared.name, **terms))
        keeper = StepKeeper(self._folder, protected.budget, self._ledger, _terms(manifest), note)
        bound.arguments[self._first] = ProtectedFrame(replace(protected, keeper=keeper))
        try:
            returned = self._body(*bound.args, **bound.kwargs)
            single = not isinstance(returned, dict)
            results_by_name = keeper.results({SINGLE: returned} if single else returned)
        except BaseException as error:
            if keeper.made and isinstance(error, AlreadyCharged | LedgerError):
                error.add_note(f"The releases before it are in {str(keeper.rescue())!r}.")
            elif keeper.made:
                error.add_note(
                    f"The releases of the step {self._folder.release_id!r} are stored: a call with the same "
                    "release_id returns them at no cost."
                )
            raise
        finally:
            keeper.close()
        results = {
            name: {"release": stored.number, "digest": digest_of(stored.data)}
            for name, stored in results_by_name.items()
        }
        finished = {**manifest, "results": results, "single": single}
        self._folder.finish(finished, {name: stored.data for name, stored in results_by_name.items()})
        return finished


def _terms(manifest: Json) -> dict[str, str]:
    """Return all that makes a run the same step, by the words that errors use."""
    return {
        **{f"argument {name!r}": text for name, text in manifest["arguments"].items()},
        **{f"declaration of {name!r}": text for name, text in manifest["declaration"].items()},
        **{part: repr(manifest.get(part)) for part in ("release_id", "function")},
    }


def _short(text: str | None) -> str:
    return "nothing" if text is None else text if len(text) <= 60 else text[:57] + "..."
