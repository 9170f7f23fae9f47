"""`make test-spark-versions`: one app on the oldest and the newest Spark for handlers, and through Spark Connect.

All runs read the same records, and their outputs and dead letters must be the same: python -m spark_versions FOLDER.
Each PySpark that is not installed here already is installed into that folder, which stays for the next run.
"""

import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.devkit import Embedded, UpOptions
from penstock.kafka import Cluster
from penstock.kafka.read.read_records import read_topic
from spark_versions.app import expected, fill, write_app
from spark_versions.connect_server import ConnectServer

OLDEST, NEWEST = "4.0.0", "4.3.0"
CONNECT = ("grpcio>=1.76", "grpcio-status>=1.76", "googleapis-common-protos", "zstandard")
PARTITIONS = 4


@dataclass(frozen=True)
class Run:
    version: str
    connect: bool = False

    def __str__(self) -> str:
        return f"Spark {self.version}{' through Spark Connect' if self.connect else ''}"


RUNS = (Run(OLDEST), Run(NEWEST), Run(NEWEST, connect=True))


class Versions:
    """The folders to put on the Python path for each version."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def install(self) -> None:
        for version in (OLDEST, NEWEST):
            self._pip(version, "--no-deps", f"pyspark=={version}", "py4j")
        self._pip("connect", *CONNECT)

    def path(self, run: Run) -> list[Path]:
        return [*self._found(run.version), *(self._found("connect") if run.connect else [])]

    def home(self, version: str) -> Path:
        """Where this version's bin and jars are."""
        return next((folder for folder in self._found(version)), _here()) / "pyspark"

    def _found(self, name: str) -> list[Path]:
        return [] if name == importlib.metadata.version("pyspark") else [self._folder / name]

    def _pip(self, name: str, *what: str) -> None:
        for folder in self._found(name):
            if not folder.exists():
                draft = folder.with_name(f"{name}.draft")
                pip = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", str(draft)]
                subprocess.run([*pip, *what], check=True)
                draft.rename(folder)


def _here() -> Path:
    return Path(str(importlib.metadata.distribution("pyspark").locate_file("")))


def main(folder: Path) -> None:
    versions = Versions(folder)
    versions.install()
    with tempfile.TemporaryDirectory(prefix="penstock-versions-") as home:
        kafka = Embedded(Path(home))
        try:
            kafka.up(UpOptions(port=0))
            brokers = str(kafka.bootstrap())
            Cluster(brokers).create_topics(["orders"], partitions=PARTITIONS)
            fill(brokers, "orders", PARTITIONS)
            for run in RUNS:
                check(run, versions, brokers, Path(home))
        finally:
            kafka.down()


def check(run: Run, versions: Versions, brokers: str, home: Path) -> None:
    group = f"shop-{run.version}{'-connect' if run.connect else ''}"
    folder = home / group
    folder.mkdir()
    write_app(folder, group=group, source="orders")
    with _server(run, versions, folder) as master:
        stopped = penstock_run(folder, brokers, master, path=versions.path(run))
    for handler in ("once", "least"):
        for kind, right in expected().items():
            found = sorted(record.value or b"" for record in read_topic(brokers, f"{group}.{handler}.{kind}"))
            if found != right:
                raise SystemExit(f"{run}, {handler}: {len(found)} {kind} with {len(set(found))} values, not {right}")
    lags = Cluster(brokers).lag(f"{group}.once", ["orders"]), Cluster(brokers).lag(f"{group}.least", ["orders"])
    if any(lags):
        raise SystemExit(f"{run}: the groups lag by {lags}")
    seconds = max(each["seconds"] for each in stopped)
    sys.stdout.write(f"{run}: all outputs and dead letters once, by both deliveries, in {seconds} s\n")


def penstock_run(folder: Path, brokers: str, master: str, *, path: list[Path]) -> list[dict[str, Any]]:
    """Run the app with the PySpark on this path, in an own process."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "penstock", "run", "shop:app", "--engine", "spark", "--master", master),
            *("--until-caught-up", "--json"),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "PENSTOCK_BROKERS": brokers},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"penstock run --master {master} ended with {done.returncode}: {done.stdout}")
    return list(json.loads(done.stdout.strip().splitlines()[-1])["stopped"])


@contextmanager
def _server(run: Run, versions: Versions, folder: Path) -> Iterator[str]:
    """The master of this run: a Spark Connect server, or this machine."""
    server = ConnectServer(versions.home(run.version), folder) if run.connect else nullcontext()
    with server as started:
        yield "local[2]" if started is None else started.url


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
