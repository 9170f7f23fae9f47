"""A run that has ended leaves no Kafka client behind: no thread, no connection, no file descriptor."""

import gc
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from kafka_helpers import MakeTopic, catch_up, produce, wait_for
from penstock import App
from penstock.errors import TopicError
from penstock.kafka import Cluster


@pytest.fixture(autouse=True)
def _no_garbage_collection() -> Iterator[None]:
    """It runs rarely in programs with few new objects, so clients must end without it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def echo(value: bytes) -> bytes:
    return value


@pytest.mark.parametrize(
    "options",
    [{}, {"delivery": "exactly-once"}, {"delivery": "at-most-once"}, {"assignor": "sticky"}],
    ids=lambda options: "-".join(options.values()) or "default",
)
def test_all_clients_of_a_run_end_with_it(
    brokers: str, group: str, make_topic: MakeTopic, options: dict[str, Any]
) -> None:
    source = make_topic(2)
    produce(brokers, source, range(100))
    this = psutil.Process()
    before = this.num_fds()
    app = App(group)
    app.consume(source, to=f"{group}-out", **options)(echo)
    catch_up(app, brokers)
    wait_for(lambda: this.num_fds() <= before, "the end of all clients")


def test_the_clients_of_a_cluster_end_with_it_also_after_an_error(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic()
    this = psutil.Process()
    before = this.num_fds()
    cluster = Cluster(brokers)
    cluster.commit(group, {(source, 0): 0})
    with pytest.raises(TopicError):
        cluster.end_offsets([(f"{source}-missing", 0)])
    del cluster
    wait_for(lambda: this.num_fds() <= before, "the end of all clients")
