"""Where the Spark engine keeps its files. ``PENSTOCK_HOME`` moves them all to one folder."""

import os
from pathlib import Path

from platformdirs import user_log_path

from penstock.jvm.private_files import state_home


def checkpoint_root() -> Path:
    return state_home() / "checkpoints"


def log_file() -> Path:
    """Return the log of Spark, its JVM and the Python workers; the output of handlers goes there too."""
    moved = bool(os.environ.get("PENSTOCK_HOME"))
    return (state_home() / "logs" if moved else user_log_path("penstock")) / "spark.log"
