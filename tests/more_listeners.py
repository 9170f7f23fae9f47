"""An embedded broker with additional listeners, for clients that log in or use TLS."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.devkit import Embedded, UpOptions
from penstock.devkit import embedded as module
from penstock.devkit.broker_config import broker_settings
from penstock.devkit.ports import HOST, choose_port


def addresses(*names: str) -> dict[str, str]:
    """A free address for each of these listeners."""
    taken: set[int] = set()
    for _ in names:
        taken.add(choose_port([], taken=taken))
    return {name: f"{HOST}:{port}" for name, port in zip(names, sorted(taken), strict=True)}


@contextmanager
def broker_with(
    home: Path, listeners: Mapping[str, str], protocols: Mapping[str, str], more: Mapping[str, object]
) -> Iterator[Embedded]:
    """Start a broker with these additional listeners, protocols and settings."""

    def settings(*arguments: Any, **named: Any) -> dict[str, object]:
        known = broker_settings(*arguments, **named)
        added = ",".join(f"{name}://{address}" for name, address in listeners.items())
        kinds = ",".join(f"{name}:{protocol}" for name, protocol in protocols.items())
        return {
            **known,
            "listeners": f"{known['listeners']},{added}",
            "advertised.listeners": f"{known['advertised.listeners']},{added}",
            "listener.security.protocol.map": f"{known['listener.security.protocol.map']},{kinds}",
            **more,
        }

    kafka = Embedded(home)
    try:
        # Only for this broker: others may be started while it runs.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "broker_settings", settings)
            kafka.up(UpOptions(port=0))
        yield kafka
    finally:
        kafka.down()
