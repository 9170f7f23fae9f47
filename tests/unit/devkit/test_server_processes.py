"""Finding and ending servers, with small Python processes in their place."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from penstock.devkit import Embedded, ServerState
from penstock.devkit.cluster_layout import STATE_FILE, Layout, Node, load_layout, save_layout
from penstock.devkit.server_processes import end, find_servers, launch, log_file, newest_layout

LAYOUT = Layout("id", "/data", "512m", (Node(1, 9092, 20001),))
POLITE = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {POLITE}"
WAIT_SECONDS = 120


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "logs").mkdir()
    yield tmp_path
    for server in find_servers(tmp_path):
        server.process.kill()
        server.process.wait()


def start(home: Path, role: str, program: str = POLITE, layout: Layout = LAYOUT) -> "subprocess.Popen[bytes]":
    """Start Python with the arguments of a server after `-c CODE`, where Python accepts any arguments, like Java."""
    wrapper = home / "python"
    if not wrapper.exists():
        # Python would read these arguments as its own options, so they are after the code.
        wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -c "$4" "$1" "$2" "$3"\n')
        wrapper.chmod(0o755)
    server = launch(home, role, layout, java=wrapper, arguments=[program], classpath=())
    output = home / "logs" / f"{role}.out"
    deadline = time.monotonic() + WAIT_SECONDS
    while "up" not in output.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return server


def test_a_server_is_found_by_its_marks(home: Path) -> None:
    started = start(home, "broker-1")
    [found] = find_servers(home)
    assert (found.role, found.process.pid, found.layout) == ("broker-1", started.pid, LAYOUT)


def test_servers_of_another_home_are_not_found(home: Path, tmp_path: Path) -> None:
    start(home, "broker-1")
    assert find_servers(tmp_path / "other") == []


def test_a_dead_server_is_not_found_even_as_our_own_zombie(home: Path) -> None:
    started = start(home, "broker-1")
    started.kill()
    started.wait()
    assert find_servers(home) == []


def test_servers_from_before_a_crash_or_reboot_are_dead_even_if_their_process_ids_are_in_use(home: Path) -> None:
    save_layout(home, LAYOUT)
    stranger = subprocess.Popen([sys.executable, "-c", POLITE], stdout=subprocess.DEVNULL)
    with stranger:
        status = Embedded(home).status()
        assert [broker.state for broker in status.brokers] == [ServerState.DEAD]
        assert not status.running
        assert Embedded(home).down().roles == ()
        assert stranger.poll() is None
        stranger.kill()
    assert load_layout(home) is None


def test_a_damaged_state_file_is_renewed_from_what_runs(home: Path) -> None:
    newer = Layout("id", "/data", "512m", LAYOUT.nodes, registry_port=8081)
    start(home, "broker-1")
    start(home, "registry", layout=newer)
    (home / STATE_FILE).write_text("{")
    scene = Embedded(home)._look()
    assert "was damaged" in scene.notes[0]
    assert load_layout(home) == newer
    assert newest_layout([]) is None


def test_ending_is_polite_first(home: Path) -> None:
    start(home, "broker-1")
    servers = find_servers(home)
    end(servers)
    assert not any(server.process.is_running() for server in servers)


def test_ending_uses_force_on_those_that_ignore_it(home: Path) -> None:
    for number in (1, 2):
        start(home, f"broker-{number}")
    start(home, "broker-3", STUBBORN)
    pids = [server.process.pid for server in find_servers(home)]
    end(find_servers(home))
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_each_start_has_its_own_log(home: Path) -> None:
    log_file(home, "broker-1").write_text("an earlier run")
    start(home, "broker-1")
    assert not log_file(home, "broker-1").exists()
    assert (home / "logs" / "broker-1.previous.log").read_text() == "an earlier run"
