"""The URLs of Spark masters: checks that one is valid and answers, and whether it is on this machine."""

import re
import socket

from penstock.errors import ConfigError, ServerError
from penstock.spark.session.yarn import resource_managers

DEFAULT_MASTER = "local[*]"
LOOPBACK = "127.0.0.1"
_MASTER = re.compile(r"local|local\[(\*|\d+)(,\s*\d+)?\]|local-cluster\[.+\]|yarn|(spark|k8s)://.+")
_CONNECT_SECONDS = 5.0
_STANDALONE_PORT = 7077
_LAST_PORT = 65_535


def check_master(master: str) -> None:
    """Raise an error if the URL is not valid, or if the master does not answer: Spark itself tries for minutes."""
    if is_connect_url(master):
        return
    if not _MASTER.fullmatch(master):
        raise ConfigError(
            f"{master!r} is not a Spark master.",
            hint="Use local[*], local[4], spark://HOST:PORT, k8s://URL, yarn or sc://HOST:PORT.",
        )
    if master == "yarn":
        managers = resource_managers()
        named = ", ".join(f"{host}:{port}" for host, port in managers)
        if managers:
            _require_answer(managers, f"YARN resource manager answers at {named}")
    if master.startswith("spark://"):
        _require_answer(_addresses(master), f"Spark master answers at {master!r}")


def is_connect_url(master: str) -> bool:
    """Whether this is the address of a Spark Connect server."""
    return master.startswith("sc://")


def is_local(master: str) -> bool:
    """Whether tasks run in the driver's process, with the same files and environment."""
    return master == "local" or master.startswith("local[")


def is_on_this_machine(master: str) -> bool:
    """Whether executors reach the driver on the loopback address; then the driver listens only there."""
    if master.startswith("local"):
        return True
    hosts = {host for host, _ in _addresses(master)} if master.startswith("spark://") else {""}
    return hosts <= {LOOPBACK, "localhost"}


def _require_answer(addresses: list[tuple[str, int]], what: str) -> None:
    """Raise an error unless one of the addresses answers; the others may be standby masters."""
    reason = "no address"
    for address in addresses:
        try:
            socket.create_connection(address, timeout=_CONNECT_SECONDS).close()
        except (OSError, UnicodeError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
        else:
            return
    raise ServerError(f"No {what}: {reason}.", hint="Check that it is running and reachable.")


def _addresses(master: str) -> list[tuple[str, int]]:
    found = []
    for each in master.removeprefix("spark://").split(","):
        host, _, port = each.rpartition(":") if ":" in each else (each, "", str(_STANDALONE_PORT))
        if not host or not port.isdecimal() or int(port) > _LAST_PORT:
            raise ConfigError(f"{master!r} is not a Spark master.", hint="Write it as spark://HOST:PORT.")
        found.append((host, int(port)))
    return found
