"""Where narwhals and the engines below it are called: absent, unknown, or failing halfway."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from pdprivacy.engine_narwhals import duckdb_relations, spark_frames
from pdprivacy.errors import EngineError, MissingExtraError, ParameterError

__all__ = ["ENGINES", "framed", "guarded", "in_partitions", "narwhals", "opened"]

Found = TypeVar("Found")

ENGINES = {
    "polars": "Polars",
    "duckdb": "DuckDB",
    "dask": "Dask",
    "pyspark": "Spark",
    "pyarrow": "PyArrow",
    "pandas": "pandas",
}
"""The engines whose arithmetic is known to be the one that the sensitivities rest on."""

SETTLED = {"pyspark": spark_frames.settled, "duckdb": duckdb_relations.settled}
"""What makes the columns of frames comparable, where an engine has settings of its own."""

EXTRAS = {"duckdb": "duckdb", "_duckdb": "duckdb", "dask": "dask", "dask_expr": "dask", "pyspark": "spark"}
"""The extra of the package that a frame is of; that of Polars brings no more than narwhals for the others."""


def narwhals(frame: Any = None) -> Any:
    """The stable interface of narwhals.

    Raises MissingExtraError where it is not installed, naming the extra of the engine of ``frame``.
    """
    try:
        import narwhals.stable.v2 as library
    except ImportError:
        extra = EXTRAS.get(type(frame).__module__.partition(".")[0], "polars")
        raise MissingExtraError(
            "Frames of other engines than pandas need narwhals.", f'pip install "pdprivacy[{extra}]"'
        ) from None
    return library


def framed(frame: Any) -> Any:
    """A frame of an engine as narwhals has it."""
    with warnings.catch_warnings():
        # of a Dask frame no more than its columns is asked of narwhals: its partitions are pandas frames
        warnings.filterwarnings("ignore", "Dask support is moving", FutureWarning)
        return narwhals(frame).from_native(frame)


def guarded(what: str, engine: str, action: Callable[[], Found]) -> Found:
    """What the action gives; its failure as one error that holds nothing of what the engine says.

    An engine's message may print a cell, and so may whatever caused it: neither is kept.
    """
    try:
        return action()
    except EngineError as error:  # our own
        found = error
    except Exception as error:
        found = EngineError(
            f"{engine} failed to compute {what} ({type(error).__name__}).",
            "what the engine said may hold data and is left out; compute the frame by itself to see it",
        )
    # raised after the handler: the failure is no context of this error
    raise found.with_traceback(None) from None


def in_partitions(frame: Any, run: Callable[[Any], list[Any]]) -> list[Any]:
    """What ``run`` gives of the partitions of a Dask frame, all of them in one computation.

    One task per partition: a plan of Dask expressions takes longer to prepare than most frames to read.

    Raises EngineError where a partition has another type than Dask says: in single precision, numbers would
    be put on the grid by other additions, and a null of one type is none of another.
    """
    import dask

    library = narwhals()
    kinds = dict(frame.dtypes.items())

    def checked(part: Any) -> list[Any]:
        for name, kind in kinds.items():
            if not _same_kind(part[name].dtype, kind):
                raise EngineError(
                    f"A partition of Dask has column {name!r} as {_named(part[name].dtype)}, and the frame "
                    f"has it as {_named(kind)}.",
                    "give all partitions one type: frame.astype({column: type}), or when they are read",
                )
        return run(library.from_native(part))

    task = dask.delayed(checked)
    return [found for one in dask.compute(*map(task, frame.to_delayed())) for found in one]


def _same_kind(found: Any, said: Any) -> bool:
    """Whether types are the same; all of texts are, and all of categories, since each label is its own."""
    if str(found) == str(said) == "category" or found == said:
        return True
    texts = [kind == object or str(kind).startswith(("str", "large_string")) for kind in (found, said)]  # noqa: E721
    return all(texts)


def _named(kind: Any) -> str:
    """A type without its labels."""
    return str(getattr(kind, "name", kind)).partition("[")[0]


def opened(frame: Any) -> tuple[Any, str, Any]:
    """A frame as narwhals has it, the name of its engine, and the types of its columns.

    Raises ParameterError for what is no frame of a known engine, or has two columns of one name.
    """
    library = narwhals(frame)
    kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"
    spark_frames.refuse_connect(frame)
    native = spark_frames.of_pandas_api(frame)
    try:
        found = framed(native)
    except TypeError:
        found = None
    except ValueError:  # what pandas, Dask and PyArrow allow and narwhals refuses
        found = native
    known = ", ".join(ENGINES.values())
    if found is None or isinstance(found, library.Series):
        raise ParameterError(f"'frame' must be a frame of {known} (got {kind}).")
    if found is native:
        raise ParameterError("'frame' must have one column of each name.")
    name = found.implementation.value
    if name not in ENGINES:
        raise ParameterError(f"Frames of {name} cannot be read (of {known} only).")
    if name == "pyspark":
        spark_frames.refuse_twins(native)

    def typed(action: Callable[[], Any]) -> Any:
        return guarded("the types of its columns", ENGINES[name], action)

    if name in SETTLED:
        found = framed(typed(lambda: SETTLED[name](native)))
    schema = typed(found.collect_schema)
    if len(set(schema)) < len(schema.names()) or len(set(_names(native))) < len(_names(native)):
        raise ParameterError("'frame' must have one column of each name.")
    if name == "pyspark":
        schema = typed(lambda: spark_frames.types(found.to_native(), schema, library))
    return found, ENGINES[name], schema


def _names(frame: Any) -> list[Any]:
    """The names of the columns where the engine has them at hand."""
    names = getattr(frame, "column_names", None)
    if names is None and type(frame).__module__.startswith(
        ("pandas", "dask", "duckdb", "_duckdb", "pyspark")
    ):
        names = frame.columns
    return [] if names is None else list(names)
