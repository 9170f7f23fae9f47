"""Selects from all settings those for a consumer, for a producer, or for both."""

from collections.abc import Mapping
from typing import Any

from penstock.core.settings.names import SETTINGS, Side

_REQUEST_TIMEOUT, _SOCKET_TIMEOUT = "request.timeout.ms", "socket.timeout.ms"
# librdkafka's limit.
_MAX_SOCKET_TIMEOUT_MS = 300_000


def for_side(settings: Mapping[str, Any], side: Side) -> dict[str, Any]:
    """The settings for this side (``*``: those that both share). The client would warn about any other setting."""
    chosen = {name: value for name, value in settings.items() if SETTINGS[name].side in (side, "*")}
    if side != "P" and _REQUEST_TIMEOUT in settings:
        # In Java, this setting limits all requests; in librdkafka only those of producers.
        chosen.setdefault(_SOCKET_TIMEOUT, min(settings[_REQUEST_TIMEOUT], _MAX_SOCKET_TIMEOUT_MS))
    return chosen
