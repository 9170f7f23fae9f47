"""Three real brokers and a schema registry: one broker is lost, all are stopped and started, and no data is lost."""

import http.client
import json
import os
import signal
from typing import Any
from urllib.parse import urlsplit

import pytest

from kafka_helpers import WAIT_SECONDS, produce, read_values, wait_for
from penstock.devkit import ClusterStatus, Embedded, ServerState, UpOptions
from penstock.kafka import Cluster

MEDIA_TYPE = {"Content-Type": "application/vnd.schemaregistry.v1+json"}


@pytest.fixture
def kafka(three: Embedded) -> Embedded:
    """The brokers and a registry."""
    three.up(UpOptions(registry=True))
    return three


def ask_registry(status: ClusterStatus, path: str, body: dict[str, Any] | None = None) -> Any:
    assert status.registry is not None
    url = urlsplit(status.registry.url)
    connection = http.client.HTTPConnection(url.netloc, timeout=WAIT_SECONDS)
    try:
        method, content = ("POST", json.dumps(body)) if body else ("GET", None)
        connection.request(method, url.path + path, content, MEDIA_TYPE)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def test_status_lists_three_brokers_a_controller_and_the_registry(kafka: Embedded) -> None:
    status = kafka.status()
    assert status.running
    assert [broker.id for broker in status.brokers] == [1, 2, 3]
    assert len({broker.pid for broker in status.brokers}) == 3
    assert status.controller in {1, 2, 3}
    assert Cluster(status.bootstrap or "").id() == status.cluster_id


def test_a_lost_broker_is_seen_survived_and_started_again(kafka: Embedded) -> None:
    status = kafka.status()
    bootstrap = status.bootstrap or ""
    Cluster(bootstrap).create_topics(["replicated"], partitions=3)
    produce(bootstrap, "replicated", [b"before"])

    lost = status.brokers[1]
    assert lost.pid is not None
    os.kill(lost.pid, signal.SIGKILL)
    wait_for(lambda: kafka.status().brokers[1].state is ServerState.DEAD, "the broker's end")
    produce(bootstrap, "replicated", [b"without one"])

    healed = kafka.up()
    assert healed.running
    assert [broker.port for broker in healed.brokers] == [broker.port for broker in status.brokers]
    assert [broker.pid for broker in healed.brokers if broker.id != lost.id] == [
        broker.pid for broker in status.brokers if broker.id != lost.id
    ]
    assert read_values(bootstrap, "replicated") == [b"before", b"without one"]


def test_records_and_schemas_survive_down_and_up(kafka: Embedded) -> None:
    status = kafka.status()
    Cluster(status.bootstrap or "").create_topics(["kept"], partitions=1)
    produce(status.bootstrap or "", "kept", [b"here"])
    registered = ask_registry(status, "/subjects/orders-value/versions", {"schema": '{"type": "string"}'})
    assert registered["id"] >= 1

    assert kafka.down().roles == ("broker-1", "broker-2", "broker-3", "registry")
    again = kafka.up(UpOptions(port=0, registry=True))
    assert again.running
    assert again.cluster_id == status.cluster_id
    assert read_values(again.bootstrap or "", "kept") == [b"here"]
    assert ask_registry(again, "/subjects") == ["orders-value"]
    assert ask_registry(again, f"/schemas/ids/{registered['id']}")["schema"] == '{"type": "string"}'
