"""Differential privacy for people who live in pandas: importing it puts ``dp`` on every DataFrame.

>>> import pandas as pd, pandera.pandas as pa
>>> import pdprivacy
>>> schema = pa.DataFrameSchema({"member": pa.Column(bool, metadata={"dp": {}})})
>>> private = pd.DataFrame({"member": [True, False, True]}).dp.protect(schema, epsilon=1)
>>> table = private.dp.value_counts("member", epsilon=0.5)
>>> table.dp.metadata.mechanism, table.dp.metadata.epsilon
('geometric', 0.5)
"""

import importlib as _importlib
import importlib.util as _util
import sys as _sys
import typing as _typing
import warnings as _warnings

import pandas as _pd

from pdprivacy._version import __version__

__all__ = [
    "ZCDP",
    "Approx",
    "Budget",
    "Column",
    "Domain",
    "Ledger",
    "Metadata",
    "ProtectedFrame",
    "Pure",
    "Unit",
    "__version__",
    "accounting",
    "check",
    "chi2_contingency",
    "combine",
    "errors",
    "load_ipython_extension",
    "mechanism",
    "pearsonr",
    "postprocess",
    "protect",
    "protect_tables",
    "read_release",
    "read_schema",
    "release_step",
    "report",
    "risk",
    "sensitivity",
    "suppression",
    "ttest_ind",
    "unload_ipython_extension",
]

if _typing.TYPE_CHECKING:
    from pdprivacy import accounting, errors, mechanism, postprocess, risk, sensitivity, suppression
    from pdprivacy.core.privacy import ZCDP, Approx, Pure, Unit
    from pdprivacy.declaration.domain import Column, Domain
    from pdprivacy.declaration.schema import read_schema
    from pdprivacy.frames.frame import ProtectedFrame
    from pdprivacy.frames.protect import protect
    from pdprivacy.frames.protected_tables import protect_tables
    from pdprivacy.inference.combining import combine
    from pdprivacy.inference.significance import chi2_contingency, pearsonr, ttest_ind
    from pdprivacy.ledger import Budget, Ledger
    from pdprivacy.pipeline.step import release_step
    from pdprivacy.pipeline.storage import read_release
    from pdprivacy.releases.metadata import Metadata
    from pdprivacy.risk.data_quality import check
    from pdprivacy.show.pages import load_ipython_extension, unload_ipython_extension
    from pdprivacy.show.report import report
else:  # a type checker would take any name for one that is there
    _HOMES = {
        **dict.fromkeys(("ZCDP", "Approx", "Pure", "Unit"), "core.privacy"),
        **dict.fromkeys(("Budget", "Ledger"), "ledger"),
        **dict.fromkeys(("Column", "Domain"), "declaration.domain"),
        "Metadata": "releases.metadata",
        **dict.fromkeys(("ProtectedFrame", "protect"), "accessor"),  # which puts dp on protected frames
        "check": "risk.data_quality",
        "chi2_contingency": "inference.significance",
        "combine": "inference.combining",
        "load_ipython_extension": "show.pages",
        "pearsonr": "inference.significance",
        "protect_tables": "frames.protected_tables",
        "read_release": "pipeline.storage",
        "read_schema": "declaration.schema",
        "release_step": "pipeline.step",
        "report": "show.report",
        "ttest_ind": "inference.significance",
        "unload_ipython_extension": "show.pages",
    }

    def __getattr__(name):
        """Import a public name or a module of the package when it is first used."""
        if name in _HOMES:
            from pdprivacy.errors import short_public

            if name in ("protect_tables", "release_step"):
                # puts dp on the frames that it returns, or that a step is given
                _importlib.import_module("pdprivacy.accessor")
            globals()[name] = getattr(_importlib.import_module(f"pdprivacy.{_HOMES[name]}"), name)
            short_public(_sys.modules[__name__], [name])
            return globals()[name]
        if name.isidentifier() and name[0] != "_" and _util.find_spec(f"pdprivacy.{name}") is not None:
            from pdprivacy.errors import MissingExtraError

            try:
                return _importlib.import_module(f"pdprivacy.{name}")
            except MissingExtraError as error:  # an attribute that is absent, as `hasattr` expects
                raise AttributeError(str(error)) from None
        raise _importlib.import_module("pdprivacy.accessor").missing(name)

    def __dir__():
        return sorted({*__all__, *(name for name in globals() if name.startswith("_"))})


class _FirstUse:
    """The attribute ``dp`` of pandas objects until its first use, which imports the accessors."""

    def __get__(self, instance: _typing.Any, owner: _typing.Any) -> _typing.Any:
        __tracebackhide__ = _rich_traceback_omit = True
        _importlib.import_module("pdprivacy.accessor")  # which puts them in this place
        return (owner if instance is None else instance).dp


if "pdprivacy.accessor" not in _sys.modules:  # a reload leaves the accessors in their place
    for _kind in (_pd.DataFrame, _pd.Series, _pd.api.typing.DataFrameGroupBy, _pd.api.typing.SeriesGroupBy):
        if type(vars(_kind).get("dp")).__name__ not in ("NoneType", "_FirstUse"):
            _warnings.warn(f"pdprivacy replaces the attribute 'dp' of {_kind.__name__}.", stacklevel=2)
        setattr(_kind, "dp", _FirstUse())  # noqa: B010  (type checkers know no such attribute)
if "IPython" in _sys.modules:
    from pdprivacy.show.pages import register_where_running as _show

    _show()
