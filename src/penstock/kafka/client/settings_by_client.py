"""A user's settings as each kind of client gets them: checked, under the client library's names, its own side only."""

from collections.abc import Mapping
from typing import Any

from penstock.core.settings import client_settings, for_side


def consumer_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    return for_side(client_settings(settings), "C")


def producer_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    return for_side(client_settings(settings), "P")


def admin_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What consumers and producers share: connections, logins, TLS."""
    return for_side(client_settings(settings), "*")
