"""A task's transaction on a real broker, without Spark: who may commit, and what counts already."""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from bed import WAIT_SECONDS, MakeTopic, committed, read_records, read_values, wait_for
from penstock import App, Record, Reject
from penstock.app import Handler
from penstock.core.reports.record_counts import Counts
from penstock.core.settings import Settings
from penstock.errors import ConfigError, HandlerError, PenstockError, ServerError, StateError
from penstock.kafka import Cluster
from penstock.kafka.client.transactions import Transaction, group_metadata
from penstock.spark.pipelines.checkpoint import Checkpoint
from penstock.spark.pipelines.markers import ExactlyOnceSink
from penstock.spark.pipelines.resume_offsets import EARLIEST
from penstock.spark.task import HaltedTaskError
from penstock.spark.pipelines.task_transaction import Transactions, _cluster, handle_exactly_once

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def rows(topic: str, offsets: range) -> pa.RecordBatch:
    """Records of partition 0 as Spark hands them over; each value is its own offset."""
    count = len(offsets)
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array([topic] * count, pa.string()),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(offsets, pa.int64()),
            "key": pa.array([b"k"] * count, pa.binary()),
            "value": pa.array([str(offset).encode() for offset in offsets], pa.binary()),
            "headers": pa.array([None] * count, HEADERS),
            "timestamp": pa.array([0] * count, pa.timestamp("us", "UTC")),
        }
    )


class Tasks:
    """Tasks of one handler from a source of one partition to an output topic and a topic of dead letters."""

    def __init__(self, brokers: str, group: str, make_topic: MakeTopic) -> None:
        self.source, self.out, self.dlq = make_topic(), make_topic(), make_topic()
        self.brokers, self.group, self.counts = brokers, group, Counts()
        self.settings: dict[str, Any] = {}
        self.ends: dict[tuple[str, int], int] = {}

    def handler(self, function: Callable[..., Any]) -> Handler:
        app = App(self.group)
        app.consume(self.source, to=self.out, dead_letter=self.dlq, delivery="exactly-once")(function)
        return app.handlers[0]

    def run(self, function: Callable[..., Any], *batches: pa.RecordBatch | BaseException) -> None:
        handler, given = self.handler(function), _given(batches)
        assert not list(handle_exactly_once(handler, given, transactions=self.transactions, count=self.count))

    @property
    def transactions(self) -> Transactions:
        return Transactions(self.brokers, self.group, Settings(self.settings), self.ends)

    def count(self, counts: Counts) -> None:
        self.counts += counts

    def outputs(self) -> list[int]:
        return [int(value or b"") for value in read_values(self.brokers, self.out)]


def _given(batches: tuple[pa.RecordBatch | BaseException, ...]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if isinstance(batch, BaseException):
            raise batch
        yield batch


@pytest.fixture
def tasks(brokers: str, group: str, make_topic: MakeTopic) -> Iterator[Tasks]:
    yield Tasks(brokers, group, make_topic)
    _cluster.cache_clear()  # as with the end of a worker process


def echo(value: int) -> int:
    return value


def reason(caught: "pytest.ExceptionInfo[HaltedTaskError]") -> PenstockError:
    error = HaltedTaskError.find(f"{HaltedTaskError.__name__}: {caught.value}")
    assert error is not None
    return error


def test_outputs_and_dead_letters_come_with_the_offset_after_the_last_record(tasks: Tasks, cluster: Cluster) -> None:
    def handle(value: int, record: Record) -> int:
        if value % 5 == 0:
            raise Reject("five")
        return value

    tasks.run(
        handle, rows(tasks.source, range(3, 8)), rows(tasks.source, range(8, 8)), rows(tasks.source, range(9, 13))
    )
    assert tasks.outputs() == [3, 4, 6, 7, 9, 11, 12]
    assert [letter.value for letter in read_records(tasks.brokers, tasks.dlq)] == [b"5", b"10"]
    assert committed(cluster, tasks.group, tasks.source) == {0: 13}
    assert tasks.counts == Counts(read=9, written=7, dead_lettered=2)


def test_what_lies_below_the_marker_is_not_handled_again(tasks: Tasks, cluster: Cluster) -> None:
    tasks.run(echo, rows(tasks.source, range(10)))
    tasks.run(echo, rows(tasks.source, range(5)), rows(tasks.source, range(5, 15)))
    tasks.run(echo, rows(tasks.source, range(12)))
    tasks.run(echo)
    assert tasks.outputs() == list(range(15))
    assert tasks.counts == Counts(read=15, written=15)
    assert committed(cluster, tasks.group, tasks.source) == {0: 15}


def test_records_without_outputs_move_the_marker_too(tasks: Tasks, cluster: Cluster) -> None:
    tasks.run(lambda value: None, rows(tasks.source, range(10)))
    assert committed(cluster, tasks.group, tasks.source) == {0: 10}


def test_a_task_that_fails_after_it_has_written_leaves_nothing(tasks: Tasks, cluster: Cluster) -> None:
    with pytest.raises(KeyboardInterrupt):
        tasks.run(echo, rows(tasks.source, range(10)), KeyboardInterrupt())
    assert tasks.outputs() == []
    assert committed(cluster, tasks.group, tasks.source) == {}
    tasks.run(echo, rows(tasks.source, range(10)))
    assert tasks.outputs() == list(range(10))


def test_a_death_between_the_offsets_and_the_commit_leaves_nothing(
    tasks: Tasks, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "_finish", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        patch.setattr(Transaction, "__exit__", lambda *_: None)  # the dead abort nothing
        with pytest.raises(KeyboardInterrupt):
            tasks.run(echo, rows(tasks.source, range(10)))
    assert tasks.outputs() == []
    tasks.run(echo, rows(tasks.source, range(10)))
    assert tasks.outputs() == list(range(10))
    assert committed(cluster, tasks.group, tasks.source) == {0: 10}


def test_a_zombie_cannot_commit_and_what_began_last_counts(tasks: Tasks, cluster: Cluster) -> None:
    entered, go_on, said = threading.Event(), threading.Event(), list[PenstockError]()

    def stuck(value: int) -> int:
        if value == 12:
            entered.set()
            assert go_on.wait(WAIT_SECONDS)
        return -1

    def zombie() -> None:
        with pytest.raises(HaltedTaskError) as caught:
            tasks.run(stuck, rows(tasks.source, range(10)), rows(tasks.source, range(10, 20)))
        said.append(reason(caught))

    thread = threading.Thread(target=zombie)
    thread.start()
    assert entered.wait(WAIT_SECONDS)
    tasks.run(echo, rows(tasks.source, range(10)), rows(tasks.source, range(10, 20)))
    go_on.set()
    thread.join(WAIT_SECONDS)
    assert isinstance(said[0], ServerError)
    assert "took over" in said[0].problem
    tasks.run(echo, rows(tasks.source, range(20)))  # as a third attempt would find it
    assert tasks.outputs() == list(range(20))
    assert committed(cluster, tasks.group, tasks.source) == {0: 20}


def test_a_marker_that_is_set_back_stays_there_whoever_was_about_to_commit(tasks: Tasks, cluster: Cluster) -> None:
    tp = (tasks.source, 0)
    tasks.run(echo, rows(tasks.source, range(10)))

    def set_back(value: int) -> int:
        if value == 15:
            tasks.transactions.move(tp, 3, back=True)
        return value

    with pytest.raises(HaltedTaskError, match="took over"):
        tasks.run(set_back, rows(tasks.source, range(10, 20)))
    assert cluster.settled(tasks.group, [tp]) == {tp: 3}
    tasks.run(echo, rows(tasks.source, range(20)))
    assert tasks.outputs() == [*range(10), *range(3, 20)]


def test_a_transaction_that_takes_too_long_says_what_to_do_and_leaves_nothing(
    tasks: Tasks, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "penstock.spark.pipelines.arrow_columns._FULL_ROWS", 5
    )  # so that outputs leave before the task is over
    tasks.settings = {"transaction.timeout.ms": 1000, "message.timeout.ms": 1000}
    admin = AdminClient({"bootstrap.servers": tasks.brokers})

    def end(isolation: IsolationLevel) -> int:
        tp = TopicPartition(tasks.out, 0)
        asked = admin.list_offsets({tp: OffsetSpec.latest()}, isolation_level=isolation)
        return int(asked[tp].result().offset)

    def slow(value: int) -> int:
        if value == 10:
            # Written, and then ended by the broker: from there on the end is the same for all readers again.
            wait_for(lambda: end(IsolationLevel.READ_UNCOMMITTED) > 0, "the outputs")
            wait_for(lambda: end(IsolationLevel.READ_COMMITTED) == end(IsolationLevel.READ_UNCOMMITTED), "the abort")
        return value

    with pytest.raises(HaltedTaskError) as caught:
        tasks.run(slow, rows(tasks.source, range(10)), rows(tasks.source, range(10, 20)))
    assert "took longer than transaction.timeout.ms=1000" in reason(caught).problem
    assert "max_in_flight=" in reason(caught).hint
    assert tasks.outputs() == []
    assert committed(cluster, tasks.group, tasks.source) == {}


def test_a_longer_transaction_than_the_broker_allows_is_said_at_once(tasks: Tasks) -> None:
    tasks.settings = {"transaction.timeout.ms": 900_001}
    with pytest.raises(HaltedTaskError) as caught:
        tasks.run(echo, rows(tasks.source, range(10)))
    assert isinstance(reason(caught), ConfigError)
    assert "transaction.max.timeout.ms" in reason(caught).hint


@pytest.mark.parametrize(("size", "allowed"), [(1_500_000, 1_048_588), (150, 100)])
def test_an_output_that_is_too_large_is_said_as_with_the_other_sink(
    tasks: Tasks, cluster: Cluster, make_topic: MakeTopic, size: int, allowed: int
) -> None:
    tasks.out = make_topic(**{"max.message.bytes": str(allowed)})

    def handle(value: int) -> bytes:
        return os.urandom(size)  # which no compression makes smaller

    with pytest.raises(HaltedTaskError) as caught:
        tasks.run(handle, rows(tasks.source, range(3)), rows(tasks.source, range(3, 6)))
    assert isinstance(reason(caught), HandlerError)
    assert "larger than Kafka takes" in reason(caught).problem
    assert committed(cluster, tasks.group, tasks.source) == {}


def test_more_than_the_client_s_buffer_holds_goes_through_it(tasks: Tasks) -> None:
    tasks.settings = {"queue.buffering.max.messages": 10}
    tasks.run(echo, rows(tasks.source, range(3_000)))
    assert tasks.outputs() == list(range(3_000))


def test_records_out_of_order_are_refused_and_nothing_is_committed(tasks: Tasks, cluster: Cluster) -> None:
    with pytest.raises(HaltedTaskError) as caught:
        tasks.run(echo, rows(tasks.source, range(5, 10)), rows(tasks.source, range(5)))
    assert isinstance(reason(caught), StateError)
    assert tasks.outputs() == []
    assert committed(cluster, tasks.group, tasks.source) == {}


def test_a_marker_moves_to_the_end_of_the_batch_past_offsets_without_records(tasks: Tasks, cluster: Cluster) -> None:
    tp = (tasks.source, 0)
    tasks.ends = {tp: 13}
    tasks.run(echo, rows(tasks.source, range(10)))
    assert cluster.settled(tasks.group, [tp]) == {tp: 13}
    tasks.ends = {tp: 15}
    tasks.run(echo, rows(tasks.source, range(10)))  # of which all count already
    assert cluster.settled(tasks.group, [tp]) == {tp: 15}
    tasks.ends = {tp: 14}
    tasks.run(echo, rows(tasks.source, range(10)))
    assert cluster.settled(tasks.group, [tp]) == {tp: 15}
    assert tasks.outputs() == list(range(10))


def test_a_driver_moves_markers_only_forward_and_only_where_no_task_has(
    tasks: Tasks, cluster: Cluster, make_topic: MakeTopic, tmp_path: Path
) -> None:
    here, there = (tasks.source, 0), (make_topic(), 0)
    sink = ExactlyOnceSink(tasks.handler(echo), cluster, Checkpoint(tmp_path))
    tasks.run(echo, rows(tasks.source, range(10)))
    sink.advance({here: 7, there: 0})
    assert cluster.settled(tasks.group, [here, there]) == {here: 10}
    sink.advance({here: 10, there: 5})
    sink.advance({here: 11, there: 3})
    sink.advance({})
    assert cluster.settled(tasks.group, [here, there]) == {here: 11, there: 5}


def test_a_run_that_begins_leaves_alone_what_others_have_committed(
    tasks: Tasks, cluster: Cluster, make_topic: MakeTopic, tmp_path: Path
) -> None:
    here, there, empty = (tasks.source, 0), (make_topic(), 0), (make_topic(), 0)
    sink = ExactlyOnceSink(tasks.handler(echo), cluster, Checkpoint(tmp_path))
    tasks.run(echo, rows(tasks.source, range(10)))
    sink.begin({here: 7, there: 5, empty: EARLIEST}, {here: 4})
    assert cluster.settled(tasks.group, [here, there, empty]) == {here: 10, there: 5}


def test_an_offset_in_an_open_transaction_is_waited_for(cluster: Cluster, group: str, make_topic: MakeTopic) -> None:
    tp = (make_topic(), 0)
    metadata = group_metadata(cluster.brokers, group, settings={})
    asked, read = threading.Event(), list[dict[tuple[str, int], int]]()

    def ask() -> None:
        asked.set()
        read.append(cluster.settled(group, [tp]))

    with Transaction(cluster.brokers, group, group=metadata, settings={}) as transaction:
        transaction.fence()
        transaction.write([(tp[0], None, b"1", None)])
        transaction._send_offsets({tp: 7})  # halfway, as at the moment of a death
        assert cluster.committed(group, [tp]) == {}
        thread = threading.Thread(target=ask)
        thread.start()
        assert asked.wait(WAIT_SECONDS)
        transaction._finish()
    thread.join(WAIT_SECONDS)
    assert read == [{tp: 7}]


def test_a_broker_that_is_gone_is_said_in_one_sentence(group: str) -> None:
    with pytest.raises(ServerError):
        Cluster("127.0.0.1:1").settled(group, [("orders", 0)])
