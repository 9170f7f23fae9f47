"""Kafka's VerifiableConsumer as a member of a chaos run; its output becomes events like Penstock's."""

import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from chaos.history import Entry
from jvms import QUICK
from penstock.jvm.coordinates import kafka_tools
from penstock.jvm.jars import resolve
from penstock.jvm.java_runtime import find_java

_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
_STRATEGIES = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
_ASKED_TO_END = 143  # how a JVM ends on SIGTERM, after a clean close


def start_java_member(environment: Mapping[str, str], folder: Path, name: str, out: Path) -> "subprocess.Popen[bytes]":
    config = folder / f"{name}.properties"
    # It does not retry its own commits after a rebalance refuses them, so its last commits would be missing.
    config.write_text("heartbeat.interval.ms=1000\nauto.commit.interval.ms=500\n")
    arguments = {
        "--bootstrap-server": environment["PENSTOCK_BROKERS"],
        "--topic": environment["CHAOS_TOPIC"],
        "--group-id": environment["CHAOS_GROUP"],
        "--session-timeout": "6000",
        "--assignment-strategy": _STRATEGIES[environment["CHAOS_STRATEGY"]],
        "--command-config": str(config),
    }
    words = [word for pair in arguments.items() for word in pair]
    with out.open("w") as reported, (folder / f"{name}.err").open("w") as errors:
        return subprocess.Popen(
            [
                find_java(),
                "-Xmx128m",
                *QUICK,
                _CONSUMER,
                "--verbose",
                "--enable-autocommit",
                *words,
            ],
            cwd=folder,
            env={**os.environ, "CLASSPATH": os.pathsep.join(map(str, resolve(kafka_tools())))},
            stdin=subprocess.DEVNULL,
            stdout=reported,
            stderr=errors,
        )


def ended_well(code: int) -> bool:
    return code in {0, _ASKED_TO_END}


def read_java_events(process: str, lines: Iterable[str]) -> list[Entry]:
    """It handles a record when it gets it. Its ownership of a partition is an epoch from each assignment on."""
    entries: list[Entry] = []
    epochs: dict[tuple[str, int], int] = {}
    for line in lines:
        if line.endswith("\n") and line.startswith("{"):
            entries += _entries(process, len(entries), json.loads(line), epochs)
    return entries


def _entries(
    process: str, index: int, reported: Mapping[str, Any], epochs: dict[tuple[str, int], int]
) -> Iterator[Entry]:
    kinds = {
        "partitions_assigned": ["assigned"],
        "partitions_revoked": ["revoked"],
        "record_data": ["dispatched", "finished"],
    }.get(reported["name"], [])
    for each in reported.get("partitions", [reported]):
        for kind in kinds:
            tp = each["topic"], each["partition"]
            epochs[tp] = epochs.get(tp, 0) + (kind == "assigned")
            yield Entry(
                kind=kind,
                ts=reported["timestamp"] / 1000,
                process=process,
                index=index,
                member=process,
                tp=tp,
                offset=each.get("offset", -1),
                epoch=epochs[tp],
                key=each.get("key"),
            )
            index += 1
