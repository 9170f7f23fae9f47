import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.devkit import up_plan
from penstock.devkit.cluster_layout import Layout, Node
from penstock.devkit.data_folder import StoredCluster
from penstock.devkit.ports import HOST, choose_port
from penstock.devkit.up_options import UpOptions
from penstock.devkit.up_plan import UpPlan, data_folder, plan_up
from penstock.errors import ConfigError, SetupError

DATA = Path("/data")


@pytest.fixture(autouse=True)
def base_port(monkeypatch: pytest.MonkeyPatch) -> int:
    """Use other default ports, because a Kafka may run on this machine."""
    port = next(port for port in range(21_000, 31_000, 10) if all(choose_port([p]) == p for p in range(port, port + 5)))
    monkeypatch.setattr(up_plan, "DEFAULT_PORT", port)
    monkeypatch.setattr(up_plan, "DEFAULT_REGISTRY_PORT", port + 4)
    return port


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server((HOST, 0)) as server:
        yield server.getsockname()[1]


def plan(
    options: UpOptions | None = None,
    *,
    before: Layout | None = None,
    running: tuple[str, ...] = (),
    made_for: StoredCluster | None = None,
) -> UpPlan:
    return plan_up(options or UpOptions(), data=DATA, before=before, running=running, made_for=made_for)


def test_the_first_start_takes_one_broker_on_the_default_port(base_port: int) -> None:
    made = plan()
    assert [node.port for node in made.layout.nodes] == [base_port]
    assert made.missing == ("broker-1",)
    assert made.notes == ()
    assert (made.layout.memory, made.layout.data, len(made.layout.cluster_id)) == ("512m", "/data", 22)


def test_brokers_take_following_ports_and_all_ports_differ(base_port: int) -> None:
    nodes = plan(UpOptions(brokers=3)).layout.nodes
    assert [node.port for node in nodes] == [base_port, base_port + 1, base_port + 2]
    assert len({port for node in nodes for port in (node.port, node.controller_port)}) == 6


def test_a_default_port_in_use_is_replaced_with_a_note(base_port: int) -> None:
    with socket.create_server((HOST, base_port)):
        made = plan()
    assert made.layout.nodes[0].port != base_port
    assert made.notes[0].startswith(f"Port {base_port} is in use by another program, so broker 1 listens on ")


def test_a_taken_port_that_was_asked_for_is_an_error(taken: int) -> None:
    with pytest.raises(SetupError, match=f"Port {taken} is in use"):
        plan(UpOptions(port=taken))


def test_port_zero_is_any(base_port: int) -> None:
    made = plan(UpOptions(port=0))
    assert made.layout.nodes[0].port != base_port
    assert made.notes == ()


def test_after_a_crash_everything_comes_back_on_the_same_ports() -> None:
    before = plan(UpOptions(brokers=3, registry=True, memory="1g")).layout
    again = plan(before=before, made_for=StoredCluster(before.cluster_id, 3))
    assert again.layout == before
    assert again.missing == ("broker-1", "broker-2", "broker-3", "registry")


def test_only_what_died_is_started() -> None:
    before = plan(UpOptions(brokers=3)).layout
    assert plan(before=before, running=("broker-1", "broker-3")).missing == ("broker-2",)


def test_when_all_is_well_nothing_is_started() -> None:
    before = plan().layout
    made = plan(UpOptions(brokers=1), before=before, running=("broker-1",))
    assert (made.layout, made.missing) == (before, ())


def test_a_registry_is_added_to_what_runs(base_port: int) -> None:
    before = plan().layout
    made = plan(UpOptions(registry=True), before=before, running=("broker-1",))
    assert made.missing == ("registry",)
    assert made.layout.registry_port == base_port + 4


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        (UpOptions(brokers=3), "--brokers 1, not 3"),
        (UpOptions(port=1), "--port"),
        (UpOptions(data=Path("/elsewhere")), "--data"),
        (UpOptions(memory="1g"), "--memory 512m, not 1g"),
    ],
)
def test_an_option_that_differs_from_what_runs_is_refused(options: UpOptions, flag: str) -> None:
    before = plan().layout
    with pytest.raises(SetupError, match=flag) as caught:
        plan(options, before=before, running=("broker-1",))
    assert "penstock down" in caught.value.hint


def test_data_of_another_number_of_brokers_is_refused() -> None:
    with pytest.raises(SetupError, match=r"belongs to 3 brokers, not to 1") as caught:
        plan(UpOptions(brokers=1), made_for=StoredCluster("id", 3))
    assert "--data DIR" in caught.value.hint
    assert "--wipe" in caught.value.hint


def test_without_a_number_the_data_decides() -> None:
    made = plan(made_for=StoredCluster("id", 3))
    assert (len(made.layout.nodes), made.layout.cluster_id) == (3, "id")
    assert "belongs to 3 brokers" in made.notes[0]


def test_a_node_that_comes_back_needs_its_port(taken: int) -> None:
    nodes = (Node(1, choose_port([]), 1), Node(2, choose_port([]), taken))
    before = Layout("id", "/data", "512m", nodes)
    with pytest.raises(SetupError, match=f"Port {taken}, which broker-2 used before"):
        plan(before=before, running=("broker-1",))


def test_the_data_folder_is_the_asked_one_else_the_last_else_the_default(tmp_path: Path) -> None:
    before = Layout("id", "/last", "512m", ())
    assert data_folder(UpOptions(data=tmp_path / "x"), before, tmp_path) == tmp_path / "x"
    assert data_folder(UpOptions(), before, tmp_path) == Path("/last")
    assert data_folder(UpOptions(), None, tmp_path) == tmp_path / "data"


@pytest.mark.parametrize("name", ["a,b", "a;b"])
def test_a_data_folder_that_the_servers_would_misread_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot use the data folder"):
        data_folder(UpOptions(), None, tmp_path / name)
