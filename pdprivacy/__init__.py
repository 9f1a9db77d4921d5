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

from pdprivacy import accounting, errors, mechanism, postprocess, sensitivity
from pdprivacy._version import __version__
from pdprivacy.accessor import missing as _missing
from pdprivacy.accessor import register as _register
from pdprivacy.domain import Column, Domain
from pdprivacy.ledger import Budget, Ledger
from pdprivacy.metadata import Metadata
from pdprivacy.privacy import ZCDP, Approx, Pure, Unit
from pdprivacy.protection import ProtectedFrame, protect
from pdprivacy.schema import read_schema

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
    "combine",
    "errors",
    "load_ipython_extension",
    "mechanism",
    "postprocess",
    "protect",
    "read_release",
    "read_schema",
    "release_step",
    "report",
    "risk",
    "sensitivity",
    "suppression",
    "unload_ipython_extension",
]

if _typing.TYPE_CHECKING:
    from pdprivacy import risk, suppression
    from pdprivacy.show.notebook import load_ipython_extension, unload_ipython_extension
    from pdprivacy.show.report import report
    from pdprivacy.step import read_release, release_step
    from pdprivacy.synthesis import combine
else:  # a type checker would take any name for one that is there
    _HOMES = {
        "combine": "synthesis",
        "load_ipython_extension": "show.notebook",
        "read_release": "step",
        "release_step": "step",
        "report": "show.report",
        "unload_ipython_extension": "show.notebook",
    }  # imported when they are first asked for, and so are these:
    _LATE = {*_HOMES, "risk", "suppression"}

    def __getattr__(name):
        if name not in _LATE:
            raise _missing(name)
        found = _importlib.import_module(f"pdprivacy.{_HOMES.get(name, name)}")
        globals()[name] = found = getattr(found, name) if name in _HOMES else found
        return found

    def __dir__():
        return sorted({*globals(), *__all__})


_register()
if "IPython" in _sys.modules:
    from pdprivacy.show.notebook import register_where_running as _show

    _show()
