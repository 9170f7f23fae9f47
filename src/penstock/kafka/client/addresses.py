"""Bootstrap addresses: parse them, and check quickly whether anything listens there."""

import socket

from penstock.errors import ConfigError, ServerError

_DEFAULT_PORT = 9092
_CONNECT_SECONDS = 3.0


def parse_brokers(brokers: str) -> list[tuple[str, int]]:
    """Parse ``host:port,host:port`` as the Kafka clients do."""
    return [_parse(each.strip(), brokers) for each in brokers.split(",") if each.strip()] or [_parse("", brokers)]


def require_listener(brokers: str) -> None:
    """Raise at once if nothing listens at any of the addresses; the client would retry until its timeout."""
    problems = [_problem(host, port) for host, port in parse_brokers(brokers)]
    if None in problems:
        return
    if all(isinstance(problem, socket.gaierror) for problem in problems):
        raise ServerError(
            f"DNS does not know the host name in brokers={brokers!r}.", hint="Check the spelling of the host name."
        )
    raise ServerError(
        f"No Kafka broker answers at {brokers}.",
        hint="Start the embedded one with `penstock up`, or name a running one with --brokers.",
    )


def _problem(host: str, port: int) -> OSError | None:
    try:
        with socket.create_connection((host, port), timeout=_CONNECT_SECONDS):
            return None
    except OSError as error:
        return error


def _parse(address: str, brokers: str) -> tuple[str, int]:
    host, port = address.rpartition("://")[2], str(_DEFAULT_PORT)
    if not host.endswith("]") and ":" in host:
        host, _, port = host.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ConfigError(
            f"brokers={brokers!r} is not a valid address.", hint="Write host:port, with commas between several."
        )
    return host, int(port)
