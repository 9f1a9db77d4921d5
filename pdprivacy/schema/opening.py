"""The ``DataFrameSchema`` of a pandera schema or model, of any engine that a domain is read for.

Which engine a schema is of is told by the modules that its class names, so that reading a schema imports no
engine but its own.
"""

from __future__ import annotations

import inspect
import typing
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pdprivacy.domain import Domain
from pdprivacy.errors import DeclarationError, ParameterError

if TYPE_CHECKING:
    # what the schemas of all engines are
    from pandera.api.dataframe.container import DataFrameSchema
    from pandera.api.dataframe.model import DataFrameModel

Schema: TypeAlias = "DataFrameSchema[Any] | type[DataFrameModel[Any, Any]] | Domain"

_ENGINES = {"pandas": "pandas", "polars": "Polars", "pyspark": "PySpark"}
_AN_EXAMPLE = (
    "import pandera.pandas as pa\n"
    '      schema = pa.DataFrameSchema({"age": pa.Column(int, pa.Check.in_range(18, 65), '
    'metadata={"dp": {}})})'
)


def engine_of(schema: Any) -> str:
    """The part of pandera that a schema or model is of: ``"pandas"``, ``"polars"`` or ``"pyspark"``.

    Raises
    ------
    ParameterError : not a schema, or one of another engine.
    """
    model = inspect.isclass(schema)
    kind = schema if model else type(schema)
    of_pandera = [base.__module__ for base in kind.__mro__ if base.__module__.startswith("pandera.")]
    named = {part for module in of_pandera for part in module.split(".")}
    for engine in _ENGINES:
        if engine in named:
            part = import_module(f"pandera.{engine}")
            if issubclass(kind, part.DataFrameModel if model else part.DataFrameSchema):
                return engine
    name = f"{kind.__module__}.{kind.__name__}" if kind.__module__.startswith("pandera.") else kind.__name__
    raise ParameterError(
        "'schema' must be a pandera DataFrameSchema or DataFrameModel class, of pandera.pandas, "
        f"pandera.polars or pandera.pyspark, or a Domain (got {name}).",
        _AN_EXAMPLE,
    )


def refuse_other_engines(schema: Any) -> None:
    """Refuse a schema that pandera cannot run on a pandas frame.

    Raises
    ------
    ParameterError : not a schema, or one of Polars or PySpark.
    """
    engine = engine_of(schema)
    if engine != "pandas":
        raise ParameterError(
            f"a pandera.{engine} schema validates {_ENGINES[engine]} frames; "
            "a pandas frame needs a pandera.pandas schema.",
            "write the schema with 'import pandera.pandas as pa', or pass pdprivacy.read_schema(schema): "
            "its declared columns alone are checked then",
        )


def opened(schema: Any) -> Any:
    """The pandera ``DataFrameSchema`` of a schema or model.

    Raises
    ------
    ParameterError : as `engine_of`.
    DeclarationError : a model that pandera cannot read.
    """
    engine_of(schema)
    if not inspect.isclass(schema):
        return schema
    model: Any = schema
    _refuse_literals(model)
    try:
        return model.to_schema()
    except Exception as error:
        raise DeclarationError(f"pandera cannot read the model {model.__name__!r}: {error}") from error


def _refuse_literals(model: type[Any]) -> None:
    """Refuse ``Literal`` annotations.

    pandera refuses ``Literal[...]`` and takes the first label of ``Series[Literal[...]]`` for a dtype.
    """
    try:
        annotations = typing.get_type_hints(model, include_extras=True)
    except Exception:  # a name that only pandera can resolve; what it makes of it is read instead
        return
    for name, annotation in annotations.items():
        if labels := _literal(annotation):
            raise DeclarationError(
                f"pandera cannot check the annotation Literal of field {name!r}.",
                f'{name}: {type(labels[0]).__name__} = pa.Field(isin={labels!r}, metadata={{"dp": {{}}}})',
            )


def _literal(annotation: Any) -> list[Any]:
    """The labels of the first ``Literal`` anywhere in an annotation."""
    parts = typing.get_args(annotation)
    if typing.get_origin(annotation) is Literal:
        return list(parts)
    return next((labels for part in parts if (labels := _literal(part))), [])
