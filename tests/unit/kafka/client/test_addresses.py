"""Bootstrap addresses."""

import socket
from collections.abc import Iterator

import pytest

from penstock.errors import ConfigError, ServerError
from penstock.kafka.client.addresses import parse_brokers, require_listener


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def silence() -> int:
    """A port where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        ("kafka", [("kafka", 9092)]),
        ("a:1, b:2 ,", [("a", 1), ("b", 2)]),
        ("SASL_SSL://kafka.example:9093", [("kafka.example", 9093)]),
        ("[::1]:9092", [("::1", 9092)]),
        ("[::1]", [("::1", 9092)]),
    ],
)
def test_addresses_are_read_as_the_clients_read_them(written: str, expected: list[tuple[str, int]]) -> None:
    assert parse_brokers(written) == expected


@pytest.mark.parametrize("written", ["", " , ", "host:", "host:abc", "host:0", "host:70000", ":9092"])
def test_an_invalid_address_is_refused(written: str) -> None:
    with pytest.raises(ConfigError, match="is not a valid address"):
        parse_brokers(written)


def test_one_listener_among_several_addresses_is_enough(listener: int, silence: int) -> None:
    require_listener(f"127.0.0.1:{silence},127.0.0.1:{listener}")


def test_an_address_without_a_listener_is_an_error_that_says_what_to_do(silence: int) -> None:
    with pytest.raises(ServerError, match="No Kafka broker answers") as caught:
        require_listener(f"127.0.0.1:{silence}")
    assert "penstock up" in caught.value.hint


def test_an_unknown_host_has_its_own_error() -> None:
    with pytest.raises(ServerError, match="DNS does not know the host name"):
        require_listener("no-such-host.invalid:9092")
