"""Servers that many tests share. After each test it checks that all of them still run."""

import signal
from contextlib import suppress

import psutil

from penstock.devkit import Embedded, UpOptions
from penstock.devkit.cluster_layout import REGISTRY_ROLE
from penstock.devkit.server_processes import find_servers


class SharedServers:
    """Remembers the processes of clusters, so that a check of them takes little time."""

    def __init__(self) -> None:
        self._processes: dict[Embedded, dict[str, psutil.Process]] = {}

    def watch(self, kafka: Embedded) -> None:
        """Each process that runs now must still run after each test."""
        self._processes[kafka] = {server.role: server.process for server in find_servers(kafka.home)}

    def forget(self, kafka: Embedded) -> None:
        self._processes.pop(kafka, None)

    def revive(self) -> list[str]:
        """Restart dead servers and resume frozen ones; returns their names."""
        return [name for kafka in tuple(self._processes) for name in self._revive(kafka)]

    def _revive(self, kafka: Embedded) -> list[str]:
        known = self._processes[kafka]
        frozen = [role for role, process in known.items() if _is_frozen(process)]
        for role in frozen:
            with suppress(psutil.NoSuchProcess):
                known[role].send_signal(signal.SIGCONT)
        missing: set[str] = set()
        if not all(process.is_running() for process in known.values()):
            # The test may have started it again itself.
            missing = known.keys() - {server.role for server in find_servers(kafka.home)}
            if missing:
                kafka.up(UpOptions(registry=REGISTRY_ROLE in known))
            self.watch(kafka)
        return [*frozen, *sorted(missing)]


def _is_frozen(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_STOPPED)
    except psutil.NoSuchProcess:
        return False
