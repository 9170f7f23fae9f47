"""The settings of the brokers: Kafka's defaults, except what a small cluster on one machine needs."""

import json
from collections.abc import Mapping
from pathlib import Path

from penstock.devkit.cluster_layout import Layout, Node
from penstock.devkit.ports import HOST
from penstock.devkit.server_startup import START_SECONDS

_MOST_REPLICAS = 3
# A broker on a busy machine may get no CPU for seconds. With Kafka's 9 seconds or less the controller would fence it,
# with all of its partitions, although it only waits for the CPU.
_SESSION_MS = 18_000
# But the controller considers a killed broker alive until its session ends, and only then can the broker join again. A
# transaction that times out in between stays open forever: Kafka treats partitions without a leader as deleted, and
# does not end transactions there.
_SESSION_AFTER_A_KILL_MS = 3_000
_HEARTBEAT_MS = 500
# By default an idle controller writes a record every 500 ms, which all brokers read: a third of an idle broker's CPU.
_IDLE_MS = 10_000
# Enough for one machine, and faster to create and load than Kafka's 50.
_INTERNAL_PARTITIONS = 10
# Kafka's 128 MB would be a quarter of the heap, for compaction that a development machine hardly needs.
_CLEANER_BYTES = 16 << 20


def broker_settings(layout: Layout, node: Node, *, was_killed: bool = False) -> dict[str, object]:
    replicas = min(_MOST_REPLICAS, len(layout.nodes))
    in_sync = max(1, replicas - 1)
    return {
        "process.roles": "broker,controller",
        "node.id": node.id,
        # Each broker has its own rack, to try rack-aware assignment.
        "broker.rack": f"rack-{node.id}",
        "controller.quorum.voters": ",".join(f"{peer.id}@{HOST}:{peer.controller_port}" for peer in layout.nodes),
        "listeners": f"PLAINTEXT://{node.address},CONTROLLER://{HOST}:{node.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{node.address}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": layout.node_data(node),
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": 0,
        "broker.session.timeout.ms": _SESSION_AFTER_A_KILL_MS if was_killed else _SESSION_MS,
        "broker.heartbeat.interval.ms": _HEARTBEAT_MS,
        # By default a broker ends if it has no controller after a minute, while `up` would wait longer.
        "initial.broker.registration.timeout.ms": START_SECONDS * 1000,
        "metadata.max.idle.interval.ms": _IDLE_MS,
        "log.cleaner.dedupe.buffer.size": _CLEANER_BYTES,
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "offsets.topic.num.partitions": _INTERNAL_PARTITIONS,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": _INTERNAL_PARTITIONS,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": _INTERNAL_PARTITIONS,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
    }


def settings_file(home: Path, node: Node) -> Path:
    return home / node.role / "server.properties"


def render_properties(settings: Mapping[str, object]) -> str:
    """Return Java's properties format. Its escapes are those of JSON."""
    return "".join(f"{name}={json.dumps(str(value))[1:-1]}\n" for name, value in settings.items())
