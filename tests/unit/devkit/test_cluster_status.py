import json
from pathlib import Path

from penstock.devkit import BrokerStatus, ClusterStatus, Embedded, RegistryStatus, ServerState, embedded_brokers
from penstock.devkit.cluster_status import quorum_leader


def broker(state: ServerState) -> BrokerStatus:
    return BrokerStatus(id=1, host="127.0.0.1", port=9092, state=state, log="x")


def registry(state: ServerState) -> RegistryStatus:
    return RegistryStatus(url="http://x", port=8081, state=state, log="x")


def test_a_cluster_is_running_when_all_its_servers_are() -> None:
    assert ClusterStatus("home", (broker(ServerState.RUNNING),)).running
    assert not ClusterStatus("home").running
    assert not ClusterStatus("home", (broker(ServerState.RUNNING), broker(ServerState.SILENT))).running
    assert not ClusterStatus("home", (broker(ServerState.RUNNING),), registry=registry(ServerState.DEAD)).running


def test_a_status_is_plain_json() -> None:
    text = json.loads(json.dumps(ClusterStatus("home", (broker(ServerState.SILENT),)).as_json()))
    assert text["running"] is False
    assert text["brokers"][0] == {
        "id": 1,
        "host": "127.0.0.1",
        "port": 9092,
        "state": "not answering",
        "pid": None,
        "uptime_seconds": None,
        "memory_bytes": None,
        "log": "x",
    }


def test_nothing_was_ever_started(tmp_path: Path) -> None:
    status = Embedded(tmp_path / "new").status()
    assert (status.brokers, status.running, status.notes) == ((), False, ())
    assert embedded_brokers() is None


def quorum_state(folder: Path, leader: int, epoch: int) -> Path:
    path = folder / "__cluster_metadata-0" / "quorum-state"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"leaderId": leader, "leaderEpoch": epoch, "votedId": -1, "data_version": 1}))
    return folder


def test_the_controller_is_the_leader_of_the_latest_election(tmp_path: Path) -> None:
    folders = [quorum_state(tmp_path / "a", 1, 4), quorum_state(tmp_path / "b", 3, 5), tmp_path / "missing"]
    assert quorum_leader(folders) == 3


def test_before_the_first_election_there_is_no_controller(tmp_path: Path) -> None:
    assert quorum_leader([quorum_state(tmp_path / "a", -1, 0)]) is None
    assert quorum_leader([]) is None
