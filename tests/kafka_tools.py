"""Kafka's command line tools, to compare their answers with Penstock's."""

import json
import os
import subprocess
import sys

from jvms import QUICK
from penstock.jvm.coordinates import kafka_tools
from penstock.jvm.jars import resolve
from penstock.jvm.java_runtime import find_java

_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_READER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
_ANSWER_SECONDS = 240
_READ_SECONDS = 600
_COLUMNS = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")


def read_committed_by_java(brokers: str, topic: str, *, quiet_seconds: float = 6.0) -> list[bytes]:
    """The values of a topic as Java's own client reads them with read_committed, a line each.

    It ends when nothing more comes, and says so among them.
    """
    done = subprocess.run(
        [find_java(), "-Xmx512m", *QUICK, _READER, "--bootstrap-server", brokers, "--topic", topic, "--from-beginning",
         "--timeout-ms", str(round(quiet_seconds * 1000)), "--command-property", "isolation.level=read_committed"],
        env={**os.environ, "CLASSPATH": os.pathsep.join(map(str, resolve(kafka_tools())))},
        capture_output=True, timeout=_READ_SECONDS, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


def lag_by_kafka(brokers: str, group: str) -> dict[tuple[str, int], int]:
    """The lag of each partition as ConsumerGroupCommand describes the group."""
    done = subprocess.run(
        [find_java(), "-Xmx256m", *QUICK, _COMMAND, "--bootstrap-server", brokers, "--describe", "--group", group],
        env={**os.environ, "CLASSPATH": os.pathsep.join(map(str, resolve(kafka_tools())))},
        capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=True,
    )  # fmt: skip
    rows = [line.split() for line in done.stdout.splitlines() if line.strip()]
    header = next((number for number, row in enumerate(rows) if tuple(row[: len(_COLUMNS)]) == _COLUMNS), None)
    if header is None:
        raise ValueError(f"ConsumerGroupCommand said something else: {done.stdout}{done.stderr}")
    named = [dict(zip(_COLUMNS, row, strict=False)) for row in rows[header + 1 :]]
    return {(row["TOPIC"], int(row["PARTITION"])): int(row["LAG"]) for row in named}


def lag_by_penstock(brokers: str, group: str) -> int:
    """Run the tool in its own process, as an operator does."""
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "lag", group, "--brokers", brokers, "--json"],
        capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=False,
    )  # fmt: skip
    (found,) = json.loads(done.stdout)["groups"]
    return int(found["lag"])
