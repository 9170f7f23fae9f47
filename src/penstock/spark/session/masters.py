"""Spark masters by their URLs: which there are, which are on this machine, and whether one answers."""

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
    """Raise where it is none, or where it certainly does not answer: Spark itself would try for minutes."""
    if master.startswith("sc://"):
        raise ConfigError(
            f"{master!r} is a Spark Connect server, which Penstock cannot run on: there the code between batches runs "
            "in a process of the server, apart from this one, and the checkpoint lies on the server's disk.",
            hint="Name the cluster behind it: spark://HOST:PORT, yarn or k8s://URL.",
        )
    if not _MASTER.fullmatch(master):
        raise ConfigError(
            f"{master!r} is not a Spark master.", hint="Use local[*], local[4], spark://HOST:PORT, k8s://URL or yarn."
        )
    if master == "yarn":
        managers = resource_managers()
        named = ", ".join(f"{host}:{port}" for host, port in managers)
        if managers:
            _require_answer(managers, f"YARN resource manager answers at {named}")
    if master.startswith("spark://"):
        _require_answer(_addresses(master), f"Spark master answers at {master!r}")


def is_local(master: str) -> bool:
    """Whether tasks run in the driver's own process, which sees all that it sees."""
    return master == "local" or master.startswith("local[")


def is_on_this_machine(master: str) -> bool:
    """Whether executors reach the driver on the loopback address, which then is the only one it is to be heard on."""
    if master.startswith("local"):
        return True
    hosts = {host for host, _ in _addresses(master)} if master.startswith("spark://") else {""}
    return hosts <= {LOOPBACK, "localhost"}


def _require_answer(addresses: list[tuple[str, int]], what: str) -> None:
    """One of several is enough: the others stand by."""
    reason = "no address"
    for address in addresses:
        try:
            socket.create_connection(address, timeout=_CONNECT_SECONDS).close()
        except (OSError, UnicodeError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
        else:
            return
    raise ServerError(f"No {what}: {reason}.", hint="See that it is running and reachable.")


def _addresses(master: str) -> list[tuple[str, int]]:
    found = []
    for each in master.removeprefix("spark://").split(","):
        host, _, port = each.rpartition(":") if ":" in each else (each, "", str(_STANDALONE_PORT))
        if not host or not port.isdecimal() or int(port) > _LAST_PORT:
            raise ConfigError(f"{master!r} is not a Spark master.", hint="Write it as spark://HOST:PORT.")
        found.append((host, int(port)))
    return found
