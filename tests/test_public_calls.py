"""Any call of the public surface ends in a result or in an error of the package, which shows no cell.

The callables are found by walking the public names, so that a new one is called, too.
"""

from __future__ import annotations

import inspect
import io
import random
import signal
import traceback
import warnings
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from itertools import islice

import pytest

from pdprivacy.errors import PrivacyError
from tests.support.canaries import CELL
from tests.support.public_calls import arguments_of, callables, public_names, things

SECONDS = 20
"""What a call may take; the slowest, which import other libraries, take less than ten."""


class TooLong(BaseException):
    """A call that takes longer."""


@contextmanager
def within_time():
    def stop(*_):
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run(function, positional, named):
    """Call a function and look at its result as a prompt would; its error, and whatever was written."""
    written = io.StringIO()
    error = None
    with warnings.catch_warnings(record=True) as recorded, redirect_stdout(written), redirect_stderr(written):
        warnings.simplefilter("always")
        try:
            with within_time():
                result = function(*positional, **named)
                if inspect.isgenerator(result):
                    result = list(islice(result, 3))
        except Exception as raised:
            error = raised
    texts = [written.getvalue(), *(str(warning.message) for warning in recorded)]
    if error is not None:
        texts += [str(error), repr(error), *traceback.format_exception(error)]
        texts += [repr(value) for value in vars(error).values()]
    return error, texts


def test_every_public_class_is_met():
    """The methods of a public class are called on an object, which `things` makes."""
    kinds = {kind for thing in things().values() for kind in type(thing).__mro__}
    classes = {thing for _, thing in public_names() if inspect.isclass(thing)}
    missing = {kind.__name__ for kind in classes - kinds if not issubclass(kind, BaseException)}
    # protocols, and values without methods
    assert missing == {"HasCdf", "Mechanism", "OutlierPeak", "OutlierSearch", "Sizes"}


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("seed", range(16))
def test_calls_with_odd_arguments_end_in_results_or_errors_of_the_package(tmp_path, monkeypatch, full, seed):
    monkeypatch.chdir(tmp_path)  # some calls write files
    draw = random.Random(seed)
    failures = {}
    for _ in range(6 if full else 1):
        known = things()
        calls = sorted(callables(known).items())
        for name, function in draw.sample(calls, 210):
            positional, named = arguments_of(function, known, draw)
            charges = len(known["budget"].entries)
            error, texts = run(function, positional, named)
            if error is not None and not isinstance(error, PrivacyError):
                failures.setdefault(name, f"{type(error).__name__} of {positional!r:.200}, {named!r:.200}")
            elif any(map(CELL.search, texts)):
                failures.setdefault(name, "a cell is shown")
            elif error is not None and len(known["budget"].entries) > charges:
                failures.setdefault(name, "a refused call is charged")
    assert not failures
