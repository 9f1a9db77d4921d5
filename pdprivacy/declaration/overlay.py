"""Declarations for release beside a pandera schema that has none, or other ones."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Hashable, Mapping
from typing import Any, TypeAlias

import pandas as pd

from pdprivacy.declaration.declarations import AN_EXAMPLE, KEYS, Schema, opened
from pdprivacy.declaration.domain import Domain
from pdprivacy.errors import DeclarationWarning, ParameterError, PrivacyError, got, warn
from pdprivacy.hints.suggestions import nearest

Overlay: TypeAlias = Mapping[Hashable, Mapping[str, Any]]
"""By column, what ``metadata={"dp": ...}`` of the schema would say."""

_VALUES = {
    "role": '"sensitive"',
    "bins": "[0, 18, 65, 120]",
    "bounds": "[0, 120]",
    "categories": '["no", "yes"]',
    "resolution": '"s"',
    "missing": '[-99, "n/a"]',
    "labels": '"private"',
}
"""A value of each key, as code."""


def overlaid(schema: Schema, columns: Overlay | None) -> Schema:
    """Return a copy of the schema whose ``metadata={"dp": ...}`` says what ``columns`` says, too.

    A column of ``columns`` is declared for release, with the keys that it has there, and those that it has in
    the schema alone. The schema itself is not changed; without ``columns`` it is returned.

    Raises
    ------
    ParameterError : ``columns`` is not a dict of dicts, has a column that the schema does not have or a key
        that no declaration has, or is beside a `Domain`; or ``schema`` is not a schema.

    >>> import pandera.pandas as pa
    >>> from pdprivacy.declaration.schema import read_schema
    >>> schema = pa.DataFrameSchema({"age": pa.Column(int, pa.Check.in_range(0, 120))})
    >>> read_schema(overlaid(schema, {"age": {"role": "quasi_identifier"}}))["age"].role
    'quasi_identifier'
    """
    if columns is None:
        return schema
    if isinstance(schema, Domain):
        raise ParameterError(
            "'columns' adds declarations to a pandera schema, and a Domain has them all.",
            'domain.replace(pdprivacy.Column("age", "integer", lower=0, upper=120)).',
        )
    if not isinstance(columns, Mapping):
        raise ParameterError(f"'columns' must be a dict (got {got(columns)}).", 'columns={"age": {}}.')
    result = copy.copy(opened(schema))
    result.columns = dict(result.columns)
    for name, options in columns.items():
        if name not in result.columns:
            raise _unknown(name, result)
        if not isinstance(options, Mapping):
            raise ParameterError(
                f"'columns' must have a dict for the column {name!r} (got {got(options)}).",
                f"columns={{{name!r}: {{}}}}.",
            )
        if unknown := [key for key in options if key not in KEYS]:
            raise _unknown_key(name, unknown[0])
        column = result.columns[name] = copy.copy(result.columns[name])
        metadata = column.metadata or {}
        declared = metadata.get("dp", {})
        # what is no dict is refused when it is read
        merged = {**declared, **options} if isinstance(declared, Mapping) else declared
        column.metadata = {**metadata, "dp": merged}
    return result  # type: ignore[no-any-return]


def _unknown(name: Hashable, schema: Any) -> ParameterError:
    labels = list(schema.columns)
    near = nearest(name, labels) if isinstance(name, str) else None
    return ParameterError(
        f"'columns' has the column {name!r}, which the schema does not have.",
        f"columns={{{near if near is not None else next(iter(labels), 'age')!r}: {{}}}}.",
    )


def _unknown_key(name: Hashable, key: object) -> ParameterError:
    known = ", ".join(f'"{word}"' for word in KEYS)
    near = nearest(key, KEYS) if isinstance(key, str) else None
    example = f'columns={{{name!r}: {{"{near}": {_VALUES[near]}}}}}.' if near in _VALUES else None
    return ParameterError(
        f"'columns' has the unknown key {got(key)} for the column {name!r} (allowed: {known}).",
        example or f'columns={{{name!r}: {{"role": "sensitive"}}}}.',
    )


def schema_of(frame: Any, call: str) -> Schema:
    """Return the schema by which pandera validated a pandas frame.

    pandera keeps it with the frame that ``validate`` returns, and with no copy or part of that frame.
    Raises ParameterError where there is none; its hint ends in ``call``.
    """
    schema: Any = None
    if isinstance(frame, pd.DataFrame):
        schema = getattr(getattr(frame, "pandera", None), "schema", None)
    if type(schema).__module__.startswith("pandera."):
        return schema  # type: ignore[no-any-return]
    raise ParameterError(
        "'schema' is missing, and pandera keeps none with this frame: only with the one that "
        "schema.validate(df) returns.",
        f"{AN_EXAMPLE}\n      {call}",
    )


def warn_of_lost_columns(schema: Schema, domain: Domain) -> None:
    """Warn of fields of a model that lost their declaration because the model declares them again.

    pandera reads such a field as a new one, without the metadata (and the checks) of the class above. The
    schema of a model (``model.to_schema()``, and that of a frame that the model validated) is traced back to
    the model; a changed copy of it cannot be.
    """
    model = None if isinstance(schema, Domain) else _model_of(schema)
    if model is None:
        return
    for name, base in _lost(model, domain).items():
        warn(
            f"{model.__name__} declares the field {name!r} again, so pandera drops the metadata that {base} "
            f'has for it, and the column is not released. metadata={{"dp": {{}}}} in the field, or '
            f"columns={{{name!r}: {{}}}}, declares it.",
            DeclarationWarning,
        )


def _model_of(schema: Any) -> type[Any] | None:
    """Return the model that a schema was made of, by the schemas that pandera keeps; None if unknown."""
    if inspect.isclass(schema):
        return schema
    for module in _MODULES_OF_MODELS:
        kept: Any = getattr(sys.modules.get(module), "MODEL_CACHE", None)
        for key, made in list(kept.items()) if isinstance(kept, dict) else ():
            model = key[0] if isinstance(key, tuple) and key else key
            if made is schema and inspect.isclass(model):
                return model
    return None


_MODULES_OF_MODELS = ("pandera.api.dataframe.model", "pandera.api.pyspark.model")
"""The modules of pandera that keep the schema of each model."""


def _lost(model: type[Any], domain: Domain) -> dict[Hashable, str]:
    """The columns that a class above the model declares for release and the model does not, by that class."""
    lost: dict[Hashable, str] = {}
    fields = opened(model).columns
    for base in model.__mro__[1:]:
        try:
            columns = opened(base).columns
        except PrivacyError:  # no model
            continue
        for name, column in columns.items():
            if "dp" in (column.metadata or {}) and name in fields and name not in domain:
                lost.setdefault(name, base.__name__)
    return lost
