"""Callbacks of a rebalance, ``app.progress()``, ``app.commit()``, and which thread may call them."""

import threading
from typing import Any

import pytest

from kafka_helpers import WAIT_SECONDS, MakeTopic, Running, catch_up, committed, of_kind, produce, running, wait_for
from penstock import App, Record
from penstock import engine as local
from penstock.core.reports import events
from penstock.errors import CallbackError, ConfigError, StateError
from penstock.kafka import Cluster


def test_callbacks_come_before_the_first_record_and_after_the_last_commit(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic(2)
    moments: list[tuple[Any, ...]] = []
    app = App(group)

    def on_revoked(tps: list[tuple[str, int]]) -> None:
        moments.append(("revoked", sorted(tps), committed(cluster, group, source)))

    @app.consume(source, on_assigned=lambda tps: moments.append(("assigned", sorted(tps))), on_revoked=on_revoked)
    def handle(value: bytes) -> None:
        moments.append(("record",))

    produce(brokers, source, range(20))
    catch_up(app, brokers)
    both = [(source, 0), (source, 1)]
    assert moments == [("assigned", both), *[("record",)] * 20, ("revoked", both, {0: 20, 1: 0})]


@pytest.mark.parametrize("option", ["on_assigned", "on_revoked"])
def test_a_callback_that_raises_stops_the_app_and_loses_nothing(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, option: str
) -> None:
    source, seen = make_topic(), []

    def app(**options: Any) -> App:
        made = App(group)

        @made.consume(source, **options)
        def handle(value: int) -> None:
            seen.append(value)

        return made

    def bad(tps: list[tuple[str, int]]) -> None:
        raise LookupError("no cache")

    produce(brokers, source, range(10))
    with pytest.raises(CallbackError, match=f"{option} of handler handle raised LookupError: no cache"):
        catch_up(app(**{option: bad}), brokers)
    assert committed(cluster, group, source) == ({} if option == "on_assigned" else {0: 10})
    catch_up(app(), brokers)
    assert seen == [*range(10)]


def test_progress_has_the_position_of_each_owned_partition(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, gate = make_topic(2), threading.Event()
    app = App(group)

    @app.consume(source, commit_every="100ms")
    def handle(value: int, record: Record) -> None:
        if record.offset == 6:
            assert gate.wait(WAIT_SECONDS)

    with pytest.raises(StateError, match="is not running"):
        app.progress()
    produce(brokers, source, range(10))
    with running(app, brokers):
        wait_for(lambda: committed(cluster, group, source) == {0: 6, 1: 0}, "a commit up to the stuck record")
        wait_for(lambda: len(app.progress()) == 2, "both partitions")
        first, second = wait_for(lambda: (p := app.progress())[0].committed == 6 and p, "the commit's answer")
        assert (first.handler, first.group, first.topic, first.partition) == ("handle", group, source, 0)
        assert (first.position, first.committed, first.end, first.lag, first.in_flight) == (10, 6, 10, 4, 4)
        assert (second.position, second.end, second.lag, second.in_flight) == (0, 0, 0, 0)
        gate.set()
        wait_for(lambda: app.progress()[0].lag == 0, "the rest")
    with pytest.raises(StateError, match="is not running"):
        app.progress()


def test_a_commit_by_hand_finishes_what_was_handled_below_it(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, other, seen = make_topic(), make_topic(), []
    app = App(group)

    @app.consume(source, commit="manual", commit_every="1h")
    def handle(value: int, record: Record) -> None:
        seen.append(value)

    @app.consume(other, group=f"{group}-auto")
    def automatic(value: int) -> None: ...

    with pytest.raises(StateError, match="is not running"):
        app.commit({(source, 0): 3})
    produce(brokers, source, range(10))
    member = Running(app, brokers)
    wait_for(lambda: len(seen) == 10 and len(app.progress()) == 2, "everything to be handled")
    app.commit({(source, 0): 3})
    app.commit({(source, 0): 7})
    wait_for(lambda: committed(cluster, group, source) == {0: 7}, "the commit")
    with pytest.raises(StateError, match=rf"does not own {source}\[1\]"):
        app.commit({(source, 1): 3, (source, 0): 9})
    with pytest.raises(ConfigError, match="commits automatically"):
        app.commit({(other, 0): 1})
    with pytest.raises(ConfigError, match="does not name an offset"):
        app.commit({source: 1})  # type: ignore[dict-item]
    app.commit({(source, 0): 10})
    member.stop()
    assert member.error is None
    assert committed(cluster, group, source) == {0: 10}


def test_the_same_app_does_not_run_twice_at_once(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source = make_topic()
    app = App(group)
    app.consume(source)(lambda _: None)
    with running(app, brokers) as member:
        wait_for(lambda: of_kind(member.events, events.Assigned), "an assignment")
        with pytest.raises(StateError, match="is running already"):
            local.run(app, brokers=brokers, emit=lambda _: None, stop=threading.Event())
    catch_up(app, brokers)  # one after the other is fine


def test_a_pause_survives_a_real_rebalance_and_keeps_the_membership(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, seen = make_topic(4), list[int]()
    app, other = App(group), App(group)

    @app.consume(source)
    def ship(order: int) -> None:
        seen.append(order)

    @other.consume(source)
    def ship_elsewhere(order: int) -> None: ...

    with running(app, brokers) as background:
        wait_for(lambda: len(of_kind(background.events, events.Assigned)) == 4, "all partitions")
        app.pause()
        for partition in range(4):
            produce(brokers, source, range(10), partition=partition)
        with running(other, brokers):
            wait_for(lambda: len(app.progress()) == 2, "the other member to get its share")
            wait_for(lambda: sum(committed(cluster, group, source).values()) == 20, "the other member to handle it")
        wait_for(lambda: len(app.progress()) == 4, "all partitions again")
        assert seen == []
        assert not of_kind(background.events, events.Lost)
        app.resume()
        wait_for(lambda: sum(committed(cluster, group, source).values()) == 40, "the other half")
        assert sorted(seen) == sorted([*range(10)] * 2)
