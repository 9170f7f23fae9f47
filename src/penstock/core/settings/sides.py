"""Out of one set of settings, those for a consumer, for a producer, or for both."""

from collections.abc import Mapping
from typing import Any

from penstock.core.settings.names import SETTINGS, Side

_REQUEST_TIMEOUT, _SOCKET_TIMEOUT = "request.timeout.ms", "socket.timeout.ms"
# The client library's own limit.
_MAX_SOCKET_TIMEOUT_MS = 300_000


def for_side(settings: Mapping[str, Any], side: Side) -> dict[str, Any]:
    """Those that this side knows, where ``*`` is what consumers and producers share; the client warns of others."""
    chosen = {name: value for name, value in settings.items() if SETTINGS[name].side in (side, "*")}
    if side != "P" and _REQUEST_TIMEOUT in settings:
        # Java's one name for how long a broker may take; the client library keeps it for what it produces.
        chosen.setdefault(_SOCKET_TIMEOUT, min(settings[_REQUEST_TIMEOUT], _MAX_SOCKET_TIMEOUT_MS))
    return chosen
