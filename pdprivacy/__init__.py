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
import sys as _sys
import typing as _typing

from pdprivacy import accounting, errors, mechanism, postprocess, sensitivity, suppression
from pdprivacy._version import __version__
from pdprivacy.accessor import missing as _missing
from pdprivacy.accessor import register as _register
from pdprivacy.domain import Column, Domain
from pdprivacy.ledger import Budget, Ledger
from pdprivacy.metadata import Metadata
from pdprivacy.privacy import ZCDP, Approx, Pure, Unit
from pdprivacy.protection import ProtectedFrame, protect
from pdprivacy.schema import read_schema
from pdprivacy.show.tracebacks import short_functions as _short_functions
from pdprivacy.show.tracebacks import short_tracebacks as _short_tracebacks

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
    from pdprivacy import risk
    from pdprivacy.inference import combine
    from pdprivacy.releases.declaration_check import check
    from pdprivacy.show.notebook import load_ipython_extension, unload_ipython_extension
    from pdprivacy.show.report import report
    from pdprivacy.significance import chi2_contingency, pearsonr, ttest_ind
    from pdprivacy.step import release_step
    from pdprivacy.storage import read_release
else:  # a type checker would take any name for one that is there
    _HOMES = {
        "check": "releases.declaration_check",
        "chi2_contingency": "significance",
        "combine": "inference",
        "load_ipython_extension": "show.notebook",
        "pearsonr": "significance",
        "read_release": "storage",
        "release_step": "step",
        "report": "show.report",
        "ttest_ind": "significance",
        "unload_ipython_extension": "show.notebook",
    }

    def __getattr__(name):
        """What is imported when it is first asked for."""
        if name == "risk":
            return _importlib.import_module("pdprivacy.risk")
        if name not in _HOMES:
            raise _missing(name)
        module = _importlib.import_module(f"pdprivacy.{_HOMES[name]}")
        _short_functions(module, [name])
        globals()[name] = found = getattr(module, name)
        return found

    def __dir__():
        return sorted({*__all__, *(name for name in globals() if name.startswith("_"))})


for _class in (Budget, Column, Domain, Ledger, Metadata):
    _short_tracebacks(_class)
for _module in (accounting, mechanism, postprocess, sensitivity, suppression):
    _short_functions(_module, _module.__all__)
_short_functions(_sys.modules[__name__], ["read_schema"])
_register()
if "IPython" in _sys.modules:
    from pdprivacy.show.notebook import register_where_running as _show

    _show()
