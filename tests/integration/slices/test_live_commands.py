"""Commands to an app on Spark: pauses between slices, and another concurrency from the next slice on."""

import asyncio

import pytest

from kafka_helpers import MakeTopic, committed, of_kind, produce, wait_for
from penstock import App
from penstock.core.reports import events
from penstock.errors import ConfigError, StateError
from penstock.kafka import Cluster
from thread_jobs import Start


class Seen:
    """What the handler has seen. Tasks get a copy of the handler, but share this module."""

    running = 0
    most = 0


def test_a_pause_holds_up_the_next_slices_and_a_change_counts_from_the_next_slice(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, start: Start
) -> None:
    source, app = make_topic(2), App(group)

    @app.consume(source, order="none", concurrency=1)
    async def ship(order: int) -> None:
        Seen.running += 1
        Seen.most = max(Seen.most, Seen.running)
        await asyncio.sleep(0.001)
        Seen.running -= 1

    def send(partition: int) -> None:
        produce(brokers, source, range(20), partition=partition)

    def done() -> dict[int, int]:
        return committed(cluster, group, source)

    with start(app) as background:
        wait_for(lambda: len(of_kind(background.events, events.Assigned)) == 2, "both partitions")
        send(0)
        wait_for(lambda: done().get(0) == 20, "the first slice")
        assert Seen.most == 1
        app.pause(partitions=[(source, 1)])
        send(1)
        send(0)
        wait_for(lambda: done().get(0) == 40, "the other partition")
        assert done().get(1, 0) == 0
        app.set("ship", concurrency=8)
        app.resume()
        wait_for(lambda: done().get(1) == 20, "the paused partition")
        assert Seen.most > 1
        told = [(each.action, each.partitions) for each in of_kind(background.events, events.Commanded)]
        assert told == [("pause", (f"{source}[1]",)), ("set", ()), ("resume", ())]
        with pytest.raises(StateError, match=r"does not own .*\[7\]"):
            app.pause(partitions=[(source, 7)])
        with pytest.raises(ConfigError, match="is not a count"):
            app.set(concurrency=0)
