"""Queries that live long: the size of batches, failures that pass, topics that change, others in the group."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.sql import SparkSession

from kafka_helpers import WAIT_SECONDS, CatchUp, MakeTopic, committed, of_kind, produce, read_values, running, wait_for
from penstock import App, Retry
from penstock import spark as engine
from penstock.core.reports import events
from penstock.errors import ConfigError, HandlerError
from penstock.kafka import Cluster
from penstock.spark import stream
from penstock.spark.session.spark_session import spark_session

Start = Callable[[App], Any]


class OnSpark:
    """An app on the session of the test run, in the background."""

    def __init__(self, app: App, brokers: str, session: SparkSession) -> None:
        self.events: list[events.Event] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=lambda: engine.run(app, brokers=brokers, emit=self.events.append, stop=self._stop, session=session),
            daemon=True,
        )
        self._thread.start()

    def read(self) -> int:
        return sum(batch.read for batch in of_kind(self.events, events.BatchFinished))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive(), "the engine did not stop"
        assert not [error for error in of_kind(self.events, events.Error) if error.fatal]


@pytest.fixture
def on_spark(brokers: str, spark: SparkSession) -> Callable[[App], Any]:
    @contextmanager
    def run(app: App) -> Iterator[OnSpark]:
        background = OnSpark(app, brokers, spark)
        yield background
        background.stop()

    return run


def echo(group: str, *sources: str, **options: Any) -> App:
    app = App(group)

    @app.consume(*sources, to=f"{group}.out", **options)
    def handle(value: bytes) -> bytes:
        return value

    return app


def outputs(brokers: str, group: str) -> list[int]:
    return sorted(int(value or b"") for value in read_values(brokers, f"{group}.out"))


def delete_records(brokers: str, topic: str, below: int) -> None:
    admin = AdminClient({"bootstrap.servers": brokers})
    for future in admin.delete_records([TopicPartition(topic, 0, below)]).values():
        future.result()


def sizes(seen: list[events.Event]) -> list[int]:
    return [batch.read for batch in of_kind(seen, events.BatchFinished)]


def test_batches_start_small_and_grow_while_they_are_quick_and_there_is_lag(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic(2)
    for partition in range(2):
        produce(brokers, source, range(1_000), partition=partition)
    # So much time that no machine is too slow for it.
    seen = catch_up(echo(group, source, max_in_flight=20, max_micro_batch=600, micro_batch="10m"))
    assert sizes(seen) == [20, 320, 600, 600, 460]
    assert [batch.next_size for batch in of_kind(seen, events.BatchFinished)][:3] == [320, 600, 600]
    lags = [batch.lag for batch in of_kind(seen, events.BatchFinished)]
    assert lags == [1_980, 1_660, 1_060, 460, 0]
    told = [(event.partition, event.offset, event.lag) for event in of_kind(seen, events.Lagging)]
    assert (0, 10, 990) in told
    assert told[-2:] == [(0, 1_000, 0), (1, 1_000, 0)]
    assert [event.read for event in of_kind(seen, events.Progressed)] == [20, 340, 940, 1_540, 2_000]


def test_batches_that_take_too_long_get_smaller(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    produce(brokers, source, range(2_100))
    # So little time that no machine is quick enough; the first batch, in which workers start, does not count.
    seen = catch_up(echo(group, source, max_in_flight=1_000, micro_batch="1ms"))
    assert sizes(seen) == [1_000, 1_000, 100]
    assert of_kind(seen, events.BatchFinished)[1].next_size == 250


def test_where_this_spark_has_no_place_for_the_limit_the_query_is_begun_anew_for_another_size(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "set_limit", lambda *_: False)
    source = make_topic()
    produce(brokers, source, range(450))
    seen = catch_up(echo(group, source, max_in_flight=100, max_micro_batch=200, micro_batch="10m"))
    assert sizes(seen) == [100, 200, 150]
    (again,) = of_kind(seen, events.Restarting)
    assert (again.attempt, again.seconds, again.reason) == (0, 0, "batches of 200 offsets fit better")
    assert outputs(brokers, group) == list(range(450))


def test_a_crash_of_the_workers_is_reported_and_tried_again_with_half_as_much(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp, tmp_path: Path
) -> None:
    source, crashed = make_topic(), str(tmp_path / "crashed")
    app = App(group)

    @app.consume(source, to=f"{group}.out", max_in_flight=400, restart=Retry(attempts=3, first="50ms"))
    def handle(value: bytes) -> bytes:
        import os  # noqa: PLC0415 - in the worker

        if value == b"100" and not os.path.exists(crashed):  # noqa: PTH110
            open(crashed, "w").close()  # noqa: PTH123
            os._exit(7)
        return value

    produce(brokers, source, range(500))
    seen = catch_up(app)
    (again,) = of_kind(seen, events.Restarting)
    assert again.reason == "A Python process died while it ran handler handle."
    assert again.attempt == 1
    assert 0.04 <= again.seconds <= 0.06
    assert not of_kind(seen, events.Error)
    assert sizes(seen)[0] == 200
    assert set(outputs(brokers, group)) == set(range(500))


def test_failures_without_any_progress_end_in_an_error(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    app = App(group)

    @app.consume(source, restart=Retry(attempts=2, first="1ms"))
    def handle(_value: bytes) -> None:
        import os  # noqa: PLC0415 - in the worker

        os._exit(7)

    produce(brokers, source, range(5))
    with pytest.raises(HandlerError, match="It failed 2 times in a row, with no batch finished in between"):
        catch_up(app)
    assert committed(cluster, group, source) == {}


def test_partitions_that_are_added_while_it_runs_are_read_from_their_start(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, on_spark: Start
) -> None:
    source = make_topic()
    produce(brokers, source, range(5))
    with on_spark(echo(group, source, start="latest", from_="earliest")) as app:
        wait_for(lambda: app.read() == 5, "the first partition")
        admin = AdminClient({"bootstrap.servers": brokers})
        for future in admin.create_partitions([NewPartitions(source, 3)]).values():
            future.result()
        wait_for(lambda: cluster.topics()[source] == 3, "the new partitions")
        produce(brokers, source, range(5, 9), partition=2)
        wait_for(lambda: app.read() == 9, "the records of a new partition")
        assert not of_kind(app.events, events.Error)
        assert not of_kind(app.events, events.Restarting)
    assert committed(cluster, group, source) == {0: 5, 1: 0, 2: 4}
    assert outputs(brokers, group) == list(range(9))


def test_retention_that_overtakes_a_running_query_is_reported_with_what_was_skipped(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, on_spark: Start, tmp_path: Path
) -> None:
    source, entered, gate = make_topic(), str(tmp_path / "entered"), str(tmp_path / "gate")
    app = App(group)

    # So little is fetched at once that most of the log is still to be fetched.
    small = {"fetch.max.bytes": 2_000, "max.partition.fetch.bytes": 1_000}

    @app.consume(source, to=f"{group}.out", max_micro_batch=10, restart=Retry(attempts=5, first="10ms"), settings=small)
    def handle(value: bytes) -> bytes:
        import time  # noqa: PLC0415 - in the worker
        from pathlib import Path  # noqa: PLC0415

        Path(entered).touch()
        while not Path(gate).exists():
            time.sleep(0.01)
        return value

    producer = Producer({"bootstrap.servers": brokers, "batch.num.messages": 1})
    for number in range(100):
        producer.produce(source, f"{number:0500}")
    assert producer.flush(WAIT_SECONDS) == 0
    with on_spark(app) as running_app:
        wait_for(Path(entered).exists, "the first record")
        delete_records(brokers, source, 80)
        Path(gate).touch()
        wait_for(lambda: committed(cluster, group, source) == {0: 100}, "what is left")
    (found,) = of_kind(running_app.events, events.OffsetOutOfRange)
    assert (found.member, found.low, found.high, found.moved_to) == ("spark", 80, 100, 80)
    assert found.skipped == 80 - found.offset
    assert "Records of" in of_kind(running_app.events, events.Restarting)[0].reason
    # A batch may have been cut off in its middle.
    assert set(range(found.offset)) <= set(outputs(brokers, group))
    assert [number for number in outputs(brokers, group) if number >= 80] == list(range(80, 100))


def test_a_topic_that_is_made_anew_while_it_runs_is_read_from_its_new_start(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, on_spark: Start
) -> None:
    source = make_topic()
    produce(brokers, source, range(20))
    with on_spark(echo(group, source, restart=Retry(attempts=20, first="100ms", factor=1))) as app:
        wait_for(lambda: app.read() == 20, "the old records")
        cluster.delete_topics([source])
        wait_for(lambda: source not in cluster.topics(), "the topic to be gone")
        cluster.create_topics([source], partitions=1)
        # More than before, so that nothing seems to be wrong with the old offset.
        produce(brokers, source, range(1_000, 1_050))
        wait_for(lambda: {*range(1_000, 1_050)} <= {*outputs(brokers, group)}, "all of the new log")
        wait_for(lambda: committed(cluster, group, source) == {0: 50}, "the commit of the new log")
    (found,) = of_kind(app.events, events.OffsetOutOfRange)
    assert (found.offset, found.moved_to) == (20, 0)


def test_a_member_that_joins_later_is_reported_once_and_outlasted(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, on_spark: Start
) -> None:
    source = make_topic()
    produce(brokers, source, range(5))
    with on_spark(echo(group, source)) as app:
        wait_for(lambda: committed(cluster, group, source) == {0: 5}, "a commit")
        with running(echo(group, source), brokers) as member:
            wait_for(lambda: of_kind(member.events, events.Assigned), "the member to join")
            for more in (6, 7):
                produce(brokers, source, [more])
                wait_for(lambda: app.read() == more, "Spark to go on")  # noqa: B023
            (warning,) = of_kind(app.events, events.Error)
            assert "has members now, which handle the same records again" in warning.reason
            assert not of_kind(app.events, events.CommitFailed)
        produce(brokers, source, range(8, 11))
        wait_for(lambda: committed(cluster, group, source) == {0: 10}, "commits to be accepted again")
        wait_for(lambda: len(of_kind(app.events, events.Error)) == 2, "word of it")
        _, over = of_kind(app.events, events.Error)
        assert "has no other members any more" in over.reason


def test_a_session_that_runs_in_this_process_is_used_and_left_running(spark: SparkSession) -> None:
    with spark_session("test") as session:
        assert session.sparkContext is spark.sparkContext
    assert spark.range(3).count() == 3
    with pytest.raises(ConfigError, match="runs in this process already"), spark_session("test", master="local[1]"):
        pass
