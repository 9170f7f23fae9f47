"""Waits until the servers are ready, or says why they are not."""

import http.client
import subprocess
import time
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path

from penstock.devkit.cluster_layout import REGISTRY_ROLE, Layout
from penstock.devkit.crash_reasons import death, tail
from penstock.devkit.ports import HOST
from penstock.devkit.server_processes import console_file, listens, log_file
from penstock.errors import ServerError
from penstock.jvm.progress_callback import ProgressCallback
from penstock.kafka.admin.cluster_probe import ClusterAnswer, ask_cluster, round_trip

# A server that dies ends the wait at once, so only a very busy machine needs this long.
START_SECONDS = 240
# Timeout of one request: short at first, because between two requests we check that the servers are alive, then longer,
# because a server on a very busy machine is slow.
_FIRST_ASK_SECONDS = 0.5
_LONGEST_ASK_SECONDS = 4.0
_PAUSE_SECONDS = 0.1
_REGISTRY_PATH = "/apis/ccompat/v7/subjects"


class Startup:
    """Waits for the servers that are being started. Every wait ends early if one of them dies."""

    def __init__(self, home: Path, layout: Layout, launched: Mapping[str, "subprocess.Popen[bytes]"]) -> None:
        self._home = home
        self._layout = layout
        self._launched = launched
        self._deadline = time.monotonic() + START_SECONDS

    def wait(self, progress: ProgressCallback) -> None:
        total = len(self._layout.nodes)
        self._wait_for_brokers(progress, total)
        progress("Checking that a record can be written and read", done=total, total=total, unit="brokers")
        round_trip(
            self._layout.bootstrap,
            timeout=max(0.0, self._deadline - time.monotonic()),
            before_retry=self._check_lives,
        )
        if self._layout.registry_port is not None:
            progress("Waiting for the schema registry")
            self._wait_for_registry(self._layout.registry_port)

    def _wait_for_brokers(self, progress: ProgressCallback, total: int) -> None:
        for ready, node in enumerate(self._layout.nodes):
            progress("Waiting for the brokers", done=ready, total=total, unit="brokers")
            for seconds in _patience():
                answer = ask_cluster(node.address, timeout=seconds)
                if answer and self._is_ready(answer):
                    break
                self._check_time(f"{node.role} did not join the cluster of {total}", node.role)

    def _is_ready(self, answer: ClusterAnswer) -> bool:
        # The broker of another cluster may have taken the port first; then ours is about to end.
        is_ours = answer.cluster_id == self._layout.cluster_id
        # Each broker must list all brokers: one with old metadata would mislead clients.
        return is_ours and len(answer.brokers) == len(self._layout.nodes)

    def _wait_for_registry(self, port: int) -> None:
        launched = self._launched.get(REGISTRY_ROLE)
        for seconds in _patience():
            # Another registry may have taken the port first, and answer instead of ours.
            if registry_answers(port, timeout=seconds) and (launched is None or listens(launched, port)):
                break
            self._check_time("The schema registry did not answer", REGISTRY_ROLE)

    def _check_lives(self) -> None:
        for role, server in self._launched.items():
            if (exit_code := server.poll()) is not None:
                raise death(role, exit_code, [log_file(self._home, role), console_file(self._home, role)])

    def _check_time(self, problem: str, role: str) -> None:
        self._check_lives()
        if time.monotonic() > self._deadline:
            raise ServerError(
                f"{problem} within {START_SECONDS} seconds.",
                hint=f"The machine may be too busy: try again. The end of its log:\n{tail(log_file(self._home, role))}",
            )
        time.sleep(_PAUSE_SECONDS)


def _patience() -> Iterator[float]:
    seconds = _FIRST_ASK_SECONDS
    while True:
        yield seconds
        seconds = min(seconds * 2, _LONGEST_ASK_SECONDS)


def registry_answers(port: int, *, timeout: float) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=timeout)
    try:
        connection.request("GET", _REGISTRY_PATH)
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
