"""The Java command lines of the broker and the schema registry."""

from collections.abc import Iterable
from pathlib import Path

from penstock.devkit.broker_config import settings_file
from penstock.devkit.cluster_layout import REGISTRY_ROLE, Layout, Node
from penstock.devkit.ports import HOST
from penstock.devkit.server_processes import log_file
from penstock.devkit.up_options import heap_bytes
from penstock.errors import SetupError

# The serial collector needs the fewest threads, and the C1 compiler alone halves the CPU time of a start. A broker on
# the same two cores as its clients was no slower with them (600,000 records of 100 bytes, written and read).
_COMMON_FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
)
_START_HEAP = 128 << 20
_REGISTRY_HEAP = "384m"
# The registry fails to start if its database takes longer than this. Its default of 5 seconds is too short on a busy
# machine, above all after a kill, when the database has to recover.
_DATABASE_SECONDS = 120


def broker_arguments(home: Path, layout: Layout, node: Node, *, class_archive: Iterable[str] = ()) -> list[str | Path]:
    return [
        *class_archive,
        f"-Xms{min(_START_HEAP, heap_bytes(layout.memory))}",
        f"-Xmx{layout.memory}",
        *_COMMON_FLAGS,
        f"-XX:ErrorFile={home / 'logs' / node.role}-crash.log",
        f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.xml').as_uri()}",
        f"-Dpenstock.log={log_file(home, node.role)}",
        "kafka.Kafka",
        settings_file(home, node),
    ]


def registry_arguments(
    home: Path, layout: Layout, files: list[Path], *, class_archive: Iterable[str] = ()
) -> list[str | Path]:
    """Run Apicurio with a database file. Its default, a database in memory, would lose all schemas at every stop."""
    return [
        *class_archive,
        f"-Xmx{_REGISTRY_HEAP}",
        *_COMMON_FLAGS,
        f"-XX:ErrorFile={home / 'logs' / REGISTRY_ROLE}-crash.log",
        f"-Dquarkus.http.host={HOST}",
        f"-Dquarkus.http.port={layout.registry_port}",
        f"-DREGISTRY_DATASOURCE_URL=jdbc:h2:file:{layout.registry_data / 'registry'}",
        f"-Dquarkus.datasource.jdbc.acquisition-timeout={_DATABASE_SECONDS}",
        # By default it opens 20 connections at the start.
        "-Dquarkus.datasource.jdbc.initial-size=1",
        "-Dquarkus.datasource.jdbc.min-size=1",
        "-Dquarkus.log.console.enable=false",
        "-Dquarkus.log.file.enable=true",
        f"-Dquarkus.log.file.path={log_file(home, REGISTRY_ROLE)}",
        "-Dquarkus.log.file.rotation.max-file-size=5M",
        "-Dquarkus.log.file.rotation.max-backup-index=3",
        "-jar",
        _runner(files),
    ]


def _runner(files: list[Path]) -> Path:
    found = next((file for file in files if file.name.endswith("-runner.jar")), None)
    if found is None:
        raise SetupError(
            "The archive of the schema registry has no runner jar.", hint="This is a bug of Penstock: please report it."
        )
    return found
