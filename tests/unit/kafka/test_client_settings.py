"""The table of settings against the client library that is installed."""

import ctypes
import re
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from penstock.core.settings.names import SETTINGS, Numbers
from penstock.core.settings.reserved import RESERVED
from penstock.core.settings.settings_check import WRITABLE
from penstock.errors import ConfigError
from penstock.kafka import Cluster, make_consumer, make_producer
from penstock.kafka.client.clients import consumer_config
from penstock.kafka.client.settings_by_client import admin_settings, consumer_settings, producer_settings

# A line that the library prints about a setting: name, side, range, and somewhere the type.
_LINE = re.compile(r"^(\S+)\s*\|\s*([CP*])\s*\|(.*?)\|.*\*Type: ([^*]+)\*")


def described(folder: Path) -> dict[str, tuple[str, str, str]]:
    """The settings as the library itself describes them."""
    libraries = [
        *Path(confluent_kafka.__file__).parent.parent.glob("confluent_kafka.libs/librdkafka*"),
        *Path(confluent_kafka.__file__).parent.glob(".dylibs/librdkafka*"),
    ]
    if not libraries:
        pytest.skip("the client library is not a file of its own here")
    target = folder / "settings.md"
    library, libc = ctypes.CDLL(str(libraries[0])), ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    libc.fclose.argtypes = library.rd_kafka_conf_properties_show.argtypes = [ctypes.c_void_p]
    stream = libc.fopen(str(target).encode(), b"w")
    library.rd_kafka_conf_properties_show(stream)
    libc.fclose(stream)
    rows: dict[str, tuple[str, str, str]] = {}
    for match in filter(None, map(_LINE.match, target.read_text().splitlines())):
        rows.setdefault(match[1], (match[2], match[3].strip(), match[4]))
    return rows


def test_the_table_has_every_setting_of_the_installed_client(tmp_path: Path) -> None:
    rows = described(tmp_path)
    assert len(rows) > 150
    assert not set(rows) - set(SETTINGS) - set(RESERVED)
    for name, (side, values, kind) in rows.items():
        if name in RESERVED or name not in SETTINGS or SETTINGS[name].kind == "function":
            continue
        mine = SETTINGS[name]
        assert mine.side == side, name
        if isinstance(mine.kind, Numbers):
            assert f"{mine.kind.low} .. {mine.kind.high}" == values
            assert mine.kind.whole == (kind == "integer")
        elif isinstance(mine.kind, frozenset):
            assert mine.kind == set(values.split(", "))
        else:
            assert mine.kind == ("flag" if kind == "boolean" else "text"), name


def test_clients_are_made_from_one_set_of_settings_in_either_language() -> None:
    settings = {
        "fetch.max.wait.ms": 20,
        "receive.buffer.bytes": -1,
        "request.timeout.ms": 10_000,
        "linger.ms": 1,
        "buffer.memory": 1_048_576,
        "session.timeout.ms": 6000,
        "fetch.queue.backoff.ms": 50,
    }
    make_consumer("localhost:1", "g", settings=settings).close()
    make_producer("localhost:1", settings=settings)
    assert consumer_settings(settings)["fetch.wait.max.ms"] == 20
    assert producer_settings(settings)["queue.buffering.max.kbytes"] == 1024
    assert set(admin_settings(settings)) == {"socket.receive.buffer.bytes", "socket.timeout.ms"}


def test_settings_that_only_the_client_can_refuse_are_translated() -> None:
    with pytest.raises(ConfigError, match="Unsupported SASL mechanism: NOPE"):
        make_consumer("localhost:1", "g", settings={"security.protocol": "sasl_plaintext", "sasl.mechanism": "NOPE"})
    with pytest.raises(ConfigError, match="retries"):
        make_producer("localhost:1", settings={"retries": 0})
    assert "retries" in WRITABLE


def test_a_client_with_a_full_buffer_looks_for_room_after_ten_milliseconds() -> None:
    config = consumer_config("localhost:1", "g", settings={}, member={}, reset="error")
    assert config["fetch.queue.backoff.ms"] == 10
    own = consumer_config("localhost:1", "g", settings={"fetch.queue.backoff.ms": 50}, member={}, reset="error")
    assert own["fetch.queue.backoff.ms"] == 50


def test_the_admin_client_of_a_cluster_has_no_callback_for_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody polls it, so errors for a callback would pile up in its queue."""
    configs: list[dict[str, Any]] = []
    monkeypatch.setattr("penstock.kafka.admin.cluster.require_listener", lambda _brokers: None)
    monkeypatch.setattr("penstock.kafka.admin.cluster.AdminClient", lambda config, **_: configs.append(config))
    Cluster("localhost:1", {"client.id": "shop"})
    assert [config["client.id"] for config in configs] == ["shop"]
    assert not [name for config in configs for name in config if name.endswith("_cb")]
