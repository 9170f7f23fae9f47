"""One real broker is started, killed, frozen, damaged and stopped, and loses no data."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kafka_helpers import WAIT_SECONDS, produce, read_values, wait_for
from penstock.devkit import ClusterStatus, Embedded, ServerState, UpOptions, ports, up_plan
from penstock.devkit.cluster_layout import STATE_FILE
from penstock.devkit.ports import HOST, is_free
from penstock.devkit.server_processes import find_servers
from penstock.errors import ServerError, SetupError
from penstock.kafka import Cluster
from penstock.paths import jar_cache

UP = """
import sys
import time
from pathlib import Path
from penstock.devkit import Embedded, UpOptions

def progress(text, **_):
    print(text, flush=True)
    # A test that wants to interrupt it has all the time that it needs.
    while text == sys.argv[2]:
        time.sleep(0.02)

Embedded(Path(sys.argv[1])).up(UpOptions(port=0), progress=progress)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("one")
    yield folder
    Embedded(folder).down()


@pytest.fixture
def kafka(home: Path) -> Embedded:
    """The module's broker, running."""
    embedded = Embedded(home)
    embedded.up(None if embedded.bootstrap() else UpOptions(port=0))
    return embedded


@pytest.fixture
def spare(tmp_path: Path) -> Iterator[Embedded]:
    """A separate home, for tests that end without a running broker."""
    embedded = Embedded(tmp_path / "home with ä space")
    yield embedded
    embedded.down()


def test_a_broker_starts_with_the_classes_that_one_before_it_archived(
    spare: Embedded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars, cache = jar_cache(), tmp_path / "cache"
    cache.mkdir()
    (cache / "jars").symlink_to(jars)
    monkeypatch.setenv("PENSTOCK_CACHE", str(cache))
    spare.up(UpOptions(port=0))

    def archive_after_a_restart() -> Path | None:
        # On a busy machine, a broker may be killed before it has written an archive.
        spare.down()
        spare.up()
        return next((cache / "classes").glob("*.jsa"), None)

    archive = wait_for(archive_after_a_restart, "an archive")
    (broker,) = find_servers(spare.home)
    assert str(archive) in {mapped.path for mapped in broker.process.memory_maps()}


def test_a_port_that_another_kafka_takes_first_is_exchanged_for_another(
    kafka: Embedded, spare: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two brokers choose the default port while it is free, and only one gets it."""
    taken = int(str(kafka.bootstrap()).rpartition(":")[2])
    monkeypatch.setattr(up_plan, "DEFAULT_PORT", taken)
    looks = iter([True, True])  # one when the port is chosen, one when all ports of the plan are checked
    monkeypatch.setattr(ports, "is_free", lambda port: next(looks, False) if port == taken else is_free(port))
    monkeypatch.setattr(up_plan, "is_free", ports.is_free)
    steps: list[str] = []
    status = spare.up(progress=lambda text, **_: steps.append(text))
    assert "Another program took a port: choosing again" in steps
    assert status.running
    assert status.brokers[0].port != taken
    assert status.cluster_id != kafka.status().cluster_id
    assert spare.bootstrap() == status.bootstrap


def pid_of(status: ClusterStatus) -> int:
    pid = status.brokers[0].pid
    assert pid is not None
    return pid


def run_up(home: Path, *, hold_at: str = "") -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", UP, str(home), hold_at]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_until_gone(pid: int) -> None:
    wait_for(lambda: not psutil.pid_exists(pid), f"the end of process {pid}")


def test_data_and_port_survive_kill_9(kafka: Embedded) -> None:
    before = kafka.status()
    bootstrap = before.bootstrap or ""
    Cluster(bootstrap).create_topics(["survivors"], partitions=1)
    produce(bootstrap, "survivors", [b"one", b"two"])

    os.kill(pid_of(before), signal.SIGKILL)
    wait_until_gone(pid_of(before))
    dead = kafka.status()
    assert (dead.brokers[0].state, dead.brokers[0].pid, dead.running) == (ServerState.DEAD, None, False)

    after = kafka.up()
    assert after.running
    assert (after.bootstrap, after.cluster_id) == (bootstrap, before.cluster_id)
    assert pid_of(after) != pid_of(before)
    assert read_values(bootstrap, "survivors") == [b"one", b"two"]


def test_up_twice_is_fine(kafka: Embedded) -> None:
    first = kafka.status()
    again = kafka.up()
    assert pid_of(again) == pid_of(first)
    assert again.notes == ("Kafka was already running.",)


def test_the_probe_leaves_nothing_behind(kafka: Embedded) -> None:
    assert not [name for name in Cluster(kafka.bootstrap() or "").topics() if "probe" in name]


def test_another_number_of_brokers_is_refused_while_it_runs(kafka: Embedded) -> None:
    with pytest.raises(SetupError, match="--brokers 1, not 3"):
        kafka.up(UpOptions(brokers=3))
    assert kafka.status().running


def test_a_frozen_broker_is_not_answering(kafka: Embedded) -> None:
    pid = pid_of(kafka.status())
    os.kill(pid, signal.SIGSTOP)
    try:
        assert kafka.status().brokers[0].state is ServerState.SILENT
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_damaged_state_file_is_reported_and_healed(kafka: Embedded) -> None:
    before = kafka.status()
    (kafka.home / STATE_FILE).write_text('{"cluster_id": ')
    healed = kafka.status()
    assert "was damaged" in healed.notes[0]
    assert (healed.bootstrap, healed.running) == (before.bootstrap, True)
    assert kafka.status().notes == ()


def test_a_home_that_runs_in_one_folder_leaves_others_alone(kafka: Embedded, spare: Embedded) -> None:
    assert spare.down().roles == ()
    assert spare.status().brokers == ()
    assert kafka.status().running


def test_a_port_that_was_asked_for_and_is_taken_is_an_error(spare: Embedded) -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(SetupError, match=f"Port {port} is in use"):
            spare.up(UpOptions(port=port))
    assert spare.status().brokers == ()


def test_data_that_cannot_be_written_is_one_clear_error(spare: Embedded, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="Cannot write to") as caught:
        spare.up(UpOptions(port=0, data=tmp_path / "file" / "data"))
    assert "--data" in caught.value.hint


def test_two_ups_at_once_start_one_broker_that_outlives_them(spare: Embedded) -> None:
    for run in [run_up(spare.home), run_up(spare.home)]:
        output, _ = run.communicate(timeout=WAIT_SECONDS)
        assert run.returncode == 0, output
    assert len(find_servers(spare.home)) == 1
    status = spare.status()
    assert status.running

    # `down` leaves no process, keeps the data, and succeeds if there is nothing to do.
    assert spare.down().roles == ("broker-1",)
    assert not psutil.pid_exists(pid_of(status))
    assert is_free(status.brokers[0].port)
    assert spare.down().roles == ()
    assert Path(status.data or "").exists()
    assert spare.down(wipe_data=True).wiped == status.data
    assert not Path(status.data or "").exists()


def test_a_broker_that_dies_at_start_shows_its_log_and_leaves_nothing_running(spare: Embedded) -> None:
    data = Path(spare.up(UpOptions(port=0)).data or "")
    spare.down()
    identity = data / "node-1" / "meta.properties"
    identity.write_text(identity.read_text().replace("node.id=1", "node.id=7"))

    with pytest.raises(ServerError, match="broker-1 ended during its start: the data folder is damaged") as caught:
        spare.up(UpOptions(port=0))
    assert "The end of its log:" in caught.value.hint
    assert "meta.properties" in caught.value.hint
    assert find_servers(spare.home) == []
    assert spare.status().brokers == ()


def test_an_interrupted_up_leaves_nothing_running(spare: Embedded) -> None:
    with run_up(spare.home, hold_at="Waiting for the brokers") as run:
        try:
            assert run.stdout is not None
            assert any(line.startswith("Waiting for the brokers") for line in run.stdout)
            # For a moment after its start, a process has no arguments by which the test could recognize it.
            wait_for(lambda: len(find_servers(spare.home)) == 1, "the broker")
            run.send_signal(signal.SIGINT)
            assert "The start failed: stopping the servers" in run.stdout.read()
        except BaseException:
            run.kill()  # otherwise it would run forever
            raise
    assert run.returncode
    assert find_servers(spare.home) == []
    assert spare.status().brokers == ()
