"""Starts, finds and stops the server processes.

Running servers are found in the system's process table, not by saved process ids: after a reboot an id may belong to
another program. Each server has its home, its role and its layout as command-line arguments, so that it is found even
if the state file is lost.
"""

import os
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from penstock.devkit.cluster_layout import REGISTRY_ROLE, Layout, decode_layout, encode_layout

_HOME_FLAG = "-Dpenstock.home="
_ROLE_FLAG = "-Dpenstock.role="
_LAYOUT_FLAG = "-Dpenstock.layout="
_POLITE_SECONDS = 20.0
_LAST_SECONDS = 2.0
_KILL_SECONDS = 10.0
_WAIT_SECONDS = 0.2


@dataclass(frozen=True)
class Server:
    """A running server. Before it sends a signal, psutil checks that the id still belongs to the same process."""

    role: str
    process: psutil.Process
    arguments: tuple[str, ...]

    @property
    def layout(self) -> Layout:
        return decode_layout(_argument(self.arguments, _LAYOUT_FLAG) or "")


def launch(
    home: Path, role: str, layout: Layout, *, java: Path, arguments: Sequence[str | Path], classpath: Iterable[Path]
) -> "subprocess.Popen[bytes]":
    """Start a server that keeps running after this process and its terminal end."""
    command = [
        java,
        f"{_HOME_FLAG}{home}",
        f"{_ROLE_FLAG}{role}",
        f"{_LAYOUT_FLAG}{encode_layout(layout).decode()}",
        *arguments,
    ]
    _set_aside(log_file(home, role))
    with console_file(home, role).open("wb") as output:
        server = subprocess.Popen(
            command,
            cwd=home,
            env=_environment(classpath),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    # Collect the exit status if the server dies first; otherwise it would stay as a zombie.
    threading.Thread(target=server.wait, name=f"reap-{role}", daemon=True).start()
    return server


def find_servers(home: Path) -> list[Server]:
    """Return the servers of this home that are alive."""
    servers = []
    for process in psutil.process_iter(["cmdline", "uids"]):
        arguments, uids = tuple(process.info["cmdline"] or ()), process.info["uids"]
        role = _argument(arguments, _ROLE_FLAG)
        if role and f"{_HOME_FLAG}{home}" in arguments and uids and uids.real == os.getuid():
            servers.append(Server(role, process, arguments))
    return servers


def listens(server: "subprocess.Popen[bytes]", port: int) -> bool:
    """Whether this server itself, and no other program, listens on the port."""
    try:
        connections = psutil.Process(server.pid).net_connections("tcp")
    except psutil.NoSuchProcess:
        return False
    return any(each.status == psutil.CONN_LISTEN and each.laddr.port == port for each in connections)


def newest_layout(servers: Iterable[Server]) -> Layout | None:
    """Return the layout of the server started last, to replace a lost state file."""
    newest = max(servers, key=lambda server: server.process.create_time(), default=None)
    return newest.layout if newest else None


def end(servers: Iterable[Server]) -> None:
    """Stop the servers with SIGTERM, then with SIGKILL.

    A broker that stops hands over its partitions, for which it needs a majority of the controllers. If all stop at
    once, the last ones wait in vain, so they get little time after the majority has stopped.
    """
    roles = {server.process: server.role for server in servers}
    alive = list(roles)
    majority = _count_brokers(roles.values()) // 2 + 1
    for process in alive:
        _signal(process, force=False)
    deadline = time.monotonic() + _POLITE_SECONDS
    majority_gone = False
    while alive and time.monotonic() < deadline:
        _, alive = psutil.wait_procs(alive, timeout=_WAIT_SECONDS)
        if not majority_gone and 0 < _count_brokers(roles[process] for process in alive) < majority:
            majority_gone = True
            deadline = min(deadline, time.monotonic() + _LAST_SECONDS)
    for process in alive:
        _signal(process, force=True)
    psutil.wait_procs(alive, timeout=_KILL_SECONDS)


def console_file(home: Path, role: str) -> Path:
    """Return the file for output of the JVM: almost empty, unless the JVM fails to start."""
    return home / "logs" / f"{role}.out"


def log_file(home: Path, role: str) -> Path:
    return home / "logs" / f"{role}.log"


def _count_brokers(roles: Iterable[str]) -> int:
    return sum(1 for role in roles if role != REGISTRY_ROLE)


def _set_aside(log: Path) -> None:
    """Rename the old log, so that the new log has only the current run."""
    if log.exists():
        log.replace(log.with_suffix(".previous.log"))


def _signal(process: psutil.Process, *, force: bool) -> None:
    try:
        if force:
            process.kill()
        else:
            process.terminate()
    except psutil.NoSuchProcess:
        return


def _argument(arguments: Iterable[str], flag: str) -> str | None:
    return next((argument.removeprefix(flag) for argument in arguments if argument.startswith(flag)), None)


def _environment(classpath: Iterable[Path]) -> Mapping[str, str]:
    # The class path is an environment variable, so that `ps` stays readable. Without a UTF-8 locale, Java cannot open
    # paths with non-ASCII characters.
    return os.environ | {"CLASSPATH": os.pathsep.join(map(str, classpath)), "LC_ALL": "C.UTF-8"}
