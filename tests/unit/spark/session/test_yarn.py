"""Where YARN is, by the files that Hadoop's own tools read, before any JVM starts."""

import socket
from pathlib import Path

import pytest

from penstock.errors import ConfigError, ServerError
from penstock.spark.session.masters import check_master
from penstock.spark.session.yarn import resource_managers


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    return tmp_path


def write(folder: Path, **values: str) -> None:
    """Names of the resource manager's settings, with an underscore for a dot."""
    items = {f"yarn.resourcemanager.{name.replace('_', '.')}": value for name, value in values.items()}
    text = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in items.items())
    (folder / "yarn-site.xml").write_text(f"<configuration>{text}</configuration>")


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({}, [("0.0.0.0", 8032)]),
        ({"hostname": "rm1"}, [("rm1", 8032)]),
        ({"hostname": "rm1", "address": "rm2:8050"}, [("rm2", 8050)]),
        ({"hostname": "rm1", "address": "${yarn.resourcemanager.hostname}:8050"}, [("rm1", 8050)]),
        ({"address": "${elsewhere}:8050"}, [("${elsewhere}", 8050)]),
        (
            {"ha_enabled": "true", "ha_rm-ids": "a, b", "hostname_a": "rm1", "address_b": "rm2:1"},
            [("rm1", 8032), ("rm2", 1)],
        ),
        ({"ha_enabled": "false", "ha_rm-ids": "a,b", "hostname": "rm1"}, [("rm1", 8032)]),
    ],
)
def test_resource_managers_are_found_as_hadoop_finds_them(
    folder: Path, values: dict[str, str], found: list[tuple[str, int]]
) -> None:
    write(folder, **values)
    assert resource_managers() == found


def test_values_that_name_each_other_come_to_an_end(folder: Path) -> None:
    write(folder, hostname="${yarn.resourcemanager.hostname}")
    assert len(resource_managers()) == 1


def test_without_a_file_it_is_left_to_spark(folder: Path) -> None:
    assert resource_managers() == []
    check_master("yarn")


@pytest.mark.parametrize("text", ["<configuration>", "", "rm1:8032"])
def test_a_file_that_cannot_be_read_is_named(folder: Path, text: str) -> None:
    (folder / "yarn-site.xml").write_text(text)
    with pytest.raises(ConfigError, match=r"yarn-site\.xml cannot be read"):
        check_master("yarn")


@pytest.mark.parametrize("address", ["rm1:port", "rm1:70000", "rm1:1:2"])
def test_what_is_no_address_is_an_error(folder: Path, address: str) -> None:
    write(folder, address=address)
    with pytest.raises(ConfigError, match=address) as caught:
        check_master("yarn")
    assert "HOST:PORT" in caught.value.hint


def test_a_master_that_does_not_answer_is_an_error_and_one_of_several_is_enough(folder: Path) -> None:
    with socket.socket() as server, socket.socket() as free:
        server.bind(("127.0.0.1", 0))
        server.listen()
        free.bind(("127.0.0.1", 0))
        deaf, heard = (f"127.0.0.1:{each.getsockname()[1]}" for each in (free, server))
        write(folder, address=deaf)
        with pytest.raises(ServerError, match=f"No YARN resource manager answers at {deaf}: connection refused"):
            check_master("yarn")
        write(folder, **{"ha_enabled": "true", "ha_rm-ids": "a,b", "address_a": deaf, "address_b": heard})
        check_master("yarn")
