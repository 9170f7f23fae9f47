import socket
from collections.abc import Iterator

import pytest

from penstock.devkit.ports import HOST, choose_port, is_free


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server((HOST, 0)) as server:
        yield server.getsockname()[1]


def test_a_port_with_a_listener_is_not_free(taken: int) -> None:
    assert not is_free(taken)


def test_a_port_is_free_again_after_its_connections_closed() -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection((HOST, port)) as client:
            accepted, _ = server.accept()
            # The server's side closes first, which leaves its port in TIME_WAIT.
            accepted.close()
            assert client.recv(1) == b""
    assert is_free(port)


def test_the_preferred_port_is_taken_if_free(taken: int) -> None:
    free = choose_port([])
    assert choose_port([taken, free]) == free


def test_ports_given_out_already_are_avoided() -> None:
    first = choose_port([])
    assert choose_port([first], taken={first}) != first
