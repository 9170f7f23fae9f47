"""Where the Spark engine keeps its files. ``PENSTOCK_HOME`` moves them all to one place."""

import os
from pathlib import Path

from platformdirs import user_log_path, user_state_path


def checkpoint_root() -> Path:
    home = _home()
    return (home or user_state_path("penstock")) / "checkpoints"


def log_file() -> Path:
    """What Spark, its JVM and the Python workers have to say; handlers print into it too."""
    home = _home()
    return (home / "logs" if home else user_log_path("penstock")) / "spark.log"


def _home() -> Path | None:
    chosen = os.environ.get("PENSTOCK_HOME")
    return Path(chosen).expanduser().resolve() if chosen else None
