"""The connection to the cluster: it is made once, again after a failure, and nobody but its users waits for it."""

import threading
from typing import cast

import pytest

from penstock.dashboard.feed.cluster_connection import ClusterConnection
from penstock.errors import ServerError, TopicError
from penstock.kafka import Cluster

_WAIT = 60


class Found:
    """Stands for a cluster."""

    brokers = "127.0.0.1:9092"


class Slow:
    """Connects as soon as the test allows it."""

    def __init__(self) -> None:
        self.began, self.allowed = threading.Event(), threading.Event()

    def __call__(self) -> Cluster:
        self.began.set()
        assert self.allowed.wait(_WAIT)
        return cast(Cluster, Found())


def test_a_failure_is_noted_without_waiting_for_a_broker() -> None:
    """The event loop notes failures of endpoints: all pages would stand still meanwhile."""
    slow = Slow()
    connection = ClusterConnection(slow)
    user = threading.Thread(target=connection.cluster)
    user.start()
    assert slow.began.wait(_WAIT)
    noted = threading.Thread(target=connection.failed, args=(ServerError("No broker answers."),))
    noted.start()
    noted.join(1)
    was_waiting = noted.is_alive()
    slow.allowed.set()
    user.join(_WAIT)
    noted.join(_WAIT)
    assert not was_waiting


@pytest.mark.parametrize(("error", "count"), [(ServerError("No broker answers."), 2), (TopicError("No topic."), 1)])
def test_it_connects_again_only_after_a_failure_of_the_servers(error: Exception, count: int) -> None:
    made: list[Found] = []

    def connect() -> Cluster:
        made.append(Found())
        return cast(Cluster, made[-1])

    connection = ClusterConnection(connect)
    assert connection.cluster() is connection.cluster()
    assert connection.brokers == Found.brokers
    connection.failed(error)
    connection.cluster()
    assert len(made) == count
