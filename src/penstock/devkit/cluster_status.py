"""The status of the servers, from the process table and the brokers' answers."""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
import psutil

from penstock.devkit.cluster_layout import REGISTRY_ROLE, Layout, Node
from penstock.devkit.ports import HOST
from penstock.devkit.server_processes import Server, log_file
from penstock.devkit.server_startup import registry_answers
from penstock.kafka.admin.cluster_probe import ClusterAnswer, ask_cluster

_ASK_SECONDS = 5.0
_QUORUM_STATE = Path("__cluster_metadata-0") / "quorum-state"


class ServerState(StrEnum):
    RUNNING = "running"
    DEAD = "dead"
    SILENT = "not answering"


@dataclass(frozen=True, kw_only=True)
class ServerStatus:
    """The status of one server. The fields of the process are ``None`` if there is no process."""

    state: ServerState
    pid: int | None = None
    uptime_seconds: float | None = None
    memory_bytes: int | None = None
    log: str


@dataclass(frozen=True, kw_only=True)
class BrokerStatus(ServerStatus):
    id: int
    host: str
    port: int


@dataclass(frozen=True, kw_only=True)
class RegistryStatus(ServerStatus):
    url: str
    port: int


@dataclass(frozen=True)
class ClusterStatus:
    """The status of one embedded cluster; it has no brokers if none was started. ``notes`` are for the user."""

    home: str
    brokers: tuple[BrokerStatus, ...] = ()
    bootstrap: str | None = None
    controller: int | None = None
    cluster_id: str | None = None
    data: str | None = None
    logs: str | None = None
    registry: RegistryStatus | None = None
    notes: tuple[str, ...] = ()

    @property
    def running(self) -> bool:
        """Whether there is a cluster and all its servers answer."""
        states = [broker.state for broker in self.brokers]
        if self.registry:
            states.append(self.registry.state)
        return bool(self.brokers) and all(state is ServerState.RUNNING for state in states)

    def as_json(self) -> dict[str, Any]:
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return {"running": self.running, **fields}


def take_status(home: Path, layout: Layout, servers: Mapping[str, Server], notes: tuple[str, ...]) -> ClusterStatus:
    """Ask each broker directly, in parallel: the others would still list a broker that hangs."""
    with ThreadPoolExecutor(max_workers=len(layout.nodes)) as pool:
        answers = list(pool.map(lambda node: _ask(node, servers), layout.nodes))
    brokers = tuple(
        _broker_status(home, node, servers, answer) for node, answer in zip(layout.nodes, answers, strict=True)
    )
    alive = {broker.id for broker in brokers if broker.state is ServerState.RUNNING}
    leader = quorum_leader([layout.node_data(node) for node in layout.nodes])
    return ClusterStatus(
        home=str(home),
        brokers=brokers,
        bootstrap=layout.bootstrap,
        controller=leader if leader in alive else None,
        cluster_id=layout.cluster_id,
        data=layout.data,
        logs=str(home / "logs"),
        registry=_registry_status(home, layout, servers),
        notes=notes,
    )


def quorum_leader(folders: list[Path]) -> int | None:
    """Read the active controller from the nodes' election records.

    A client cannot learn it: with KRaft, brokers name any broker as the controller, which forwards requests.
    """
    elections = [election for folder in folders if (election := _election(folder / _QUORUM_STATE))]
    return max(elections, key=lambda election: election.leaderEpoch).leaderId if elections else None


@dataclass(frozen=True)
class _Election:
    leaderId: int  # noqa: N815 - Kafka's name
    leaderEpoch: int  # noqa: N815 - Kafka's name


def _election(path: Path) -> _Election | None:
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Election)
    except (OSError, msgspec.DecodeError):
        return None
    return found if found.leaderId >= 0 else None


def _ask(node: Node, servers: Mapping[str, Server]) -> ClusterAnswer | None:
    return ask_cluster(node.address, timeout=_ASK_SECONDS) if node.role in servers else None


def _broker_status(home: Path, node: Node, servers: Mapping[str, Server], answer: ClusterAnswer | None) -> BrokerStatus:
    # A fenced broker still answers, but is not in its own list of brokers.
    answers = answer is not None and node.id in answer.brokers
    seen = _look_at(home, node.role, servers, answers=answers)
    return BrokerStatus(**vars(seen), id=node.id, host=HOST, port=node.port)


def _registry_status(home: Path, layout: Layout, servers: Mapping[str, Server]) -> RegistryStatus | None:
    if layout.registry_port is None or layout.registry_url is None:
        return None
    answers = REGISTRY_ROLE in servers and registry_answers(layout.registry_port, timeout=_ASK_SECONDS)
    seen = _look_at(home, REGISTRY_ROLE, servers, answers=answers)
    return RegistryStatus(**vars(seen), url=layout.registry_url, port=layout.registry_port)


def _look_at(home: Path, role: str, servers: Mapping[str, Server], *, answers: bool) -> ServerStatus:
    log = str(log_file(home, role))
    try:
        process = servers[role].process
        with process.oneshot():
            return ServerStatus(
                state=ServerState.RUNNING if answers else ServerState.SILENT,
                pid=process.pid,
                uptime_seconds=round(max(0.0, time.time() - process.create_time()), 1),
                memory_bytes=process.memory_info().rss,
                log=log,
            )
    except (KeyError, psutil.NoSuchProcess):
        return ServerStatus(state=ServerState.DEAD, log=log)
