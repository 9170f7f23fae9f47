"""Finds free ports on this machine."""

import random
import socket
from collections.abc import Collection, Iterable

HOST = "127.0.0.1"
# Below the range that Linux uses for outgoing connections, so that a free port stays free.
_SEARCH_RANGE = range(20_000, 32_000)
_ATTEMPTS = 1000


def is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As Java does: ports of connections that are closing count as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def choose_port(preferred: Iterable[int], *, taken: Collection[int] = ()) -> int:
    """Return the first free preferred port, else a random one: two simultaneous starts rarely choose the same."""
    dice = random.SystemRandom()
    candidates = [*preferred, *(dice.choice(_SEARCH_RANGE) for _ in range(_ATTEMPTS))]
    return next(port for port in candidates if port not in taken and is_free(port))
