"""The one session of Spark that tests use, on this machine alone."""

from __future__ import annotations

import os
import shutil
import sys
from importlib import import_module
from typing import Any

__all__ = ["missing", "session"]

SETTINGS = {
    "driver.bindAddress": "127.0.0.1",
    "driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "driver.host": "127.0.0.1",
    "driver.memory": "512m",
    "log.level": "OFF",  # what fails upstream is meant to
    "sql.adaptive.enabled": "false",
    "sql.execution.arrow.localRelationThreshold": "64KB",  # larger frames are read in parts
    "sql.execution.arrow.pyspark.enabled": "true",
    "sql.session.timeZone": "America/New_York",
    "sql.shuffle.partitions": "2",
    "sql.timestampType": "TIMESTAMP_NTZ",
    "ui.enabled": "false",
    "ui.showConsoleProgress": "false",
}


def missing() -> str:
    """Return what Spark lacks here; empty where a session can be started."""
    try:
        import_module("pyspark.sql.pandas.utils").require_minimum_pyarrow_version()
    except ModuleNotFoundError:
        return "Spark is not installed"
    except ImportError as error:
        return f"Spark needs a newer Arrow: {error}"
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        return "Spark needs a Java machine (java on the path, or JAVA_HOME)"
    return ""


def session() -> Any:
    """Start the session, or return the one that runs."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else the first one on the path
    builder = import_module("pyspark.sql").SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(f"spark.{name}", value)
    return builder.getOrCreate()
