"""The user's settings for each kind of client: checked, with the client library's names, only those that it accepts."""

from collections.abc import Mapping
from typing import Any

from penstock.core.settings import client_settings, for_side


def consumer_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    return for_side(client_settings(settings), "C")


def producer_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    return for_side(client_settings(settings), "P")


def admin_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that consumers and producers share: connections, logins, TLS."""
    return for_side(client_settings(settings), "*")
