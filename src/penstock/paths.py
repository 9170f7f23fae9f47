"""Every folder and file that Penstock keeps on this machine.

``PENSTOCK_HOME`` moves the state and the logs, ``PENSTOCK_CACHE`` moves the downloads. Without them, the folders are
those that the operating system provides for this user. Each function reads the environment when it is called.
Nothing is created here: ``jvm/private_files.py`` creates folders and files that only this user can read.

With ``PENSTOCK_HOME``::

    PENSTOCK_HOME/                    state_home, and embedded_home: state.json, data/, broker-1/, ...
        audit/CLUSTER.jsonl           audit_file
        checkpoints/CLUSTER/          checkpoint_root
        dedupe/GROUP.sqlite           seen_ids_file
        logs/spark.log                spark_log_file
        offsets/CLUSTER/              offset_backups_root
        runs/PID.json                   run_file
        runs/PID.sock                   run_socket
        runs/PID-BORN.rebalances.jsonl  rebalance_history_file
        runs/PID-BORN.spark             spark_activity_path
        runs/PID-BORN.live              live_activity_path
        runs/PID-BORN.watched           live_watch_path
        launch/PID.html                 launch_path
    PENSTOCK_CACHE/                   cache_home
        classes/                      class_archives
        jars/                         jar_cache
"""

import os
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from platformdirs import user_cache_path, user_data_path, user_log_path, user_state_path

HOME_VARIABLE = "PENSTOCK_HOME"
CACHE_VARIABLE = "PENSTOCK_CACHE"
REBALANCES_SUFFIX = ".rebalances.jsonl"
SPARK_SUFFIX = ".spark"
LIVE_SUFFIX = ".live"
WATCHED_SUFFIX = ".watched"
_APP = "penstock"


def state_home() -> Path:
    """Return the folder of what Penstock must not lose: runs, audit, offset backups and checkpoints."""
    home = _named_by(HOME_VARIABLE)
    return home.resolve() if home else user_state_path(_APP)


def runs_folder() -> Path:
    """Return the folder in which each ``penstock run`` keeps its files."""
    return state_home() / "runs"


def run_file(pid: int) -> Path:
    """Return the file in which the run of this process describes itself."""
    return runs_folder() / f"{pid}.json"


def run_socket(pid: int) -> Path:
    """Return the socket on which the run of this process takes commands. A long path is replaced by a short one."""
    return runs_folder() / f"{pid}.sock"


def rebalance_history_file(pid: int, born: float) -> Path:
    """Return the file with the rebalances of one run. It outlives the run, so its name has the process's birth too."""
    return runs_folder() / f"{pid}-{born:.0f}{REBALANCES_SUFFIX}"


def spark_activity_path(pid: int, born: float) -> Path:
    """Return the file in which a run on Spark says what its handlers and pipelines do."""
    return runs_folder() / f"{pid}-{born:.0f}{SPARK_SUFFIX}"


def live_activity_path(pid: int, born: float) -> Path:
    """Return the file in which a running app says what it does now."""
    return runs_folder() / f"{pid}-{born:.0f}{LIVE_SUFFIX}"


def live_watch_path(pid: int, born: float) -> Path:
    """Return the file that a dashboard touches while somebody looks at the run."""
    return runs_folder() / f"{pid}-{born:.0f}{WATCHED_SUFFIX}"


def launch_path(pid: int) -> Path:
    """Return the page that leads the browser of this user to the dashboard of this process."""
    return state_home() / "launch" / f"{pid}.html"


def audit_file(cluster_id: str) -> Path:
    """Return the file that records who replayed which dead letters of this cluster."""
    return state_home() / "audit" / f"{cluster_id}.jsonl"


def offset_backups_root() -> Path:
    """Return the folder of the offsets that groups had before ``penstock offsets`` changed them."""
    return state_home() / "offsets"


def checkpoint_root() -> Path:
    """Return the folder of Spark's checkpoints, unless ``--checkpoint`` names another one."""
    return state_home() / "checkpoints"


def seen_ids_file(group: str) -> Path:
    """Return the file of the ids that the handlers of a group have seen (``dedupe=``)."""
    # Any text can be a group, and not every text a file name.
    return state_home() / "dedupe" / f"{quote(group, safe='')[:100]}-{sha256(group.encode()).hexdigest()[:16]}.sqlite"


def spark_log_file() -> Path:
    """Return the file to which Spark, its JVM and its Python workers log. What handlers print goes there too."""
    folder = state_home() / "logs" if _named_by(HOME_VARIABLE) else user_log_path(_APP)
    return folder / "spark.log"


def embedded_home() -> Path:
    """Return the folder of the embedded Kafka that the command line uses."""
    return _named_by(HOME_VARIABLE) or user_data_path(_APP) / "kafka"


def cache_home() -> Path:
    """Return the folder of what Penstock can download or create again."""
    return _named_by(CACHE_VARIABLE) or user_cache_path(_APP)


def jar_cache() -> Path:
    """Return the folder of downloaded jars."""
    return cache_home() / "jars"


def class_archives() -> Path:
    """Return the folder of the archives of loaded Java classes."""
    return cache_home() / "classes"


def _named_by(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value).expanduser() if value else None
