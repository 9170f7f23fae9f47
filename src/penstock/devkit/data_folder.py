"""The data folder of the embedded Kafka: formats it, and remembers for which cluster."""

import base64
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec

from penstock.devkit.broker_config import settings_file
from penstock.devkit.cluster_layout import Layout, Node
from penstock.devkit.crash_reasons import find_cause
from penstock.devkit.server_startup import START_SECONDS
from penstock.errors import ServerError, SetupError
from penstock.jvm.private_files import write_durably

MARKER = "penstock-cluster.json"


@dataclass(frozen=True)
class StoredCluster:
    """The cluster of a data folder. A small file in the folder stores it."""

    cluster_id: str
    brokers: int


def new_cluster_id() -> str:
    """Make an id as Kafka does: 22 characters of URL-safe base64 that do not start with a dash."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        continue
    return text


def read_cluster(data: Path) -> StoredCluster | None:
    try:
        return msgspec.json.decode((data / MARKER).read_bytes(), type=StoredCluster)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except msgspec.DecodeError as error:
        raise SetupError(
            f"The data folder {data} is damaged: {MARKER} in it is unreadable.",
            hint="Choose another folder with --data DIR, or delete this folder.",
        ) from error


def was_killed(node_data: Path) -> bool:
    """Return whether the broker of this folder was killed the last time."""
    return (node_data / ".lock").exists() and not (node_data / ".kafka_cleanshutdown").exists()


def format_storage(home: Path, layout: Layout, *, java: Path, jars: Iterable[Path], flags: Sequence[str] = ()) -> None:
    """Format the folders of nodes that are not formatted yet.

    The marker is written first, so that after a kill in between the next start uses the same cluster id.
    """
    data = Path(layout.data)
    data.mkdir(parents=True, exist_ok=True)
    write_durably(data / MARKER, msgspec.json.encode(StoredCluster(layout.cluster_id, len(layout.nodes))))
    fresh = [node for node in layout.nodes if not (layout.node_data(node) / "meta.properties").exists()]
    classpath = os.pathsep.join(map(str, jars))
    with ThreadPoolExecutor(max_workers=len(layout.nodes)) as pool:
        list(pool.map(lambda node: _format(home, layout, node, java=java, classpath=classpath, flags=flags), fresh))


def wipe(data: Path) -> bool:
    """Delete what Penstock created in the folder, and no other files. Return False if it created nothing."""
    if not (data / MARKER).exists():
        return False
    for made in (*data.glob("node-*"), data / "registry"):
        shutil.rmtree(made, ignore_errors=True)
    (data / MARKER).unlink()
    if not any(data.iterdir()):
        data.rmdir()
    return True


def _format(home: Path, layout: Layout, node: Node, *, java: Path, classpath: str, flags: Sequence[str]) -> None:
    command: list[str | Path] = [
        java,
        *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *flags, "-cp", classpath),
        *("kafka.tools.StorageTool", "format", "--ignore-formatted"),
        *("--cluster-id", layout.cluster_id, "--config", settings_file(home, node)),
    ]
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=START_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ServerError(
            f"Java has not formatted the data folder {layout.node_data(node)} within {START_SECONDS} s.",
            hint="Is the machine or its disk very busy? Run the command again.",
        ) from None
    if result.returncode != 0:
        said = (result.stderr + result.stdout).strip()
        cause = find_cause(said)
        raise ServerError(
            f"The data folder {layout.node_data(node)} cannot be formatted: {cause.what if cause else 'see below'}.",
            hint=f"{cause.advice if cause else 'Choose another folder with --data DIR.'}\n{said}",
        )
