"""How long a member may continue without a response from its broker."""

from typing import Any

import pytest

from penstock import App
from penstock.engine.member import lease_seconds


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ({}, 41.5),
        ({"settings": {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 1_000}}, 4.5),
        ({"settings": {"session.timeout.ms": 4_000, "heartbeat.interval.ms": 3_000}}, 2.0),
        ({"protocol": "consumer"}, 39.5),
    ],
)
def test_a_lease_ends_before_the_session_that_began_a_heartbeat_earlier(options: Any, seconds: float) -> None:
    app = App("shop")

    @app.consume("orders", **options)
    def handle(value: bytes) -> None:
        pass

    assert lease_seconds(app.handlers[0]) == seconds
