"""Exactly once in a task: outputs, dead letters and the offset are one transaction; several tasks may run one slice."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from cli_helpers import Joined
from kafka_helpers import WAIT_SECONDS, MakeTopic, committed, produce, read_values
from penstock import App, Out, Reject
from penstock.core.failures.outcome import DependencyUnavailable
from penstock.core.progress.slices import Slice
from penstock.errors import HandlerError, ServerError
from penstock.kafka import Cluster
from penstock.kafka.client.transactions import Transaction, group_metadata
from penstock.spark.driver.packing import pack
from penstock.spark.halted_task import HaltedTaskError
from penstock.spark.tasks import slice_task, worker_state
from penstock.spark.tasks.run_slices import DriverMembership, run_slices
from penstock.spark.tasks.slice_reader import SliceReader
from penstock.spark.tasks.slice_result import SliceResult

RECORDS = 20


class Held:
    """The place where a handler waits. Handlers are pickled; modules that they import are not."""

    entered = threading.Event()
    go_on = threading.Event()


def echo(value: int) -> int:
    if value == 7:
        raise Reject("seven")
    return value


def stuck(value: int) -> int:
    if value == 12:
        Held.entered.set()
        assert Held.go_on.wait(WAIT_SECONDS)
    return -1


def fails(value: int) -> int:
    if value == 15:
        raise KeyboardInterrupt
    return value


def large(value: int) -> bytes:
    return random.Random(value).randbytes(3_000_000) if value == 5 else b"%d" % value


def to_two_partitions(value: int) -> Out:
    """The output topic has one partition."""
    return Out(b"0", partition=value % 2)


class Tasks:
    """Slices of one partition, as several Python workers would run them."""

    def __init__(self, brokers: str, group: str, make_topic: MakeTopic) -> None:
        self.source, self.out, self.dlq = make_topic(), make_topic(), make_topic()
        self.brokers, self.group = brokers, group
        produce(brokers, self.source, range(RECORDS))

    def run(
        self,
        function: Callable[..., Any],
        start: int = 0,
        end: int = RECORDS,
        metadata: bytes | None = None,
        **options: Any,
    ) -> SliceResult:
        app = App(self.group)
        app.consume(self.source, to=self.out, **{"dead_letter": self.dlq, "delivery": "exactly-once", **options})(
            function
        )
        packed = pack(app.handlers[0], self.brokers, is_local=True, per_record=False)
        (result,) = run_slices(packed, [Slice((self.source, 0), start, end)], DriverMembership(metadata))
        return result

    def outputs(self) -> list[int]:
        return [int(value or b"") for value in read_values(self.brokers, self.out)]


@pytest.fixture
def tasks(brokers: str, group: str, make_topic: MakeTopic) -> Iterator[Tasks]:
    Held.entered, Held.go_on = threading.Event(), threading.Event()
    yield Tasks(brokers, group, make_topic)
    worker_state._states.clear()  # as if the worker process had ended


def test_outputs_and_dead_letters_come_with_the_offset_after_the_last_record(tasks: Tasks, cluster: Cluster) -> None:
    result = tasks.run(echo)
    assert result.is_committed
    assert (result.counts.read, result.counts.written, result.counts.dead_lettered) == (20, 19, 1)
    assert tasks.outputs() == [number for number in range(RECORDS) if number != 7]
    assert list(read_values(tasks.brokers, tasks.dlq)) == [b"7"]
    assert committed(cluster, tasks.group, tasks.source) == {0: RECORDS}


def test_what_is_below_the_committed_offset_is_not_handled_again(tasks: Tasks) -> None:
    tasks.run(echo, end=10)
    again = tasks.run(echo)
    assert again.counts.read == 10
    assert tasks.run(echo).counts.read == 0
    assert tasks.outputs() == [number for number in range(RECORDS) if number != 7]


def test_a_task_that_fails_after_it_has_written_leaves_nothing(tasks: Tasks, cluster: Cluster) -> None:
    result = tasks.run(fails)
    assert isinstance(result.error, HandlerError)
    assert f"{tasks.source}[0]@15" in result.error.problem
    assert result.reached is None
    assert tasks.outputs() == []
    assert committed(cluster, tasks.group, tasks.source) == {}


def test_a_death_between_the_offsets_and_the_commit_leaves_nothing(
    tasks: Tasks, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "_finish", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        patch.setattr(Transaction, "__exit__", lambda *_: None)  # a dead process aborts nothing
        with pytest.raises(KeyboardInterrupt):
            tasks.run(echo)
    assert tasks.outputs() == []
    tasks.run(echo)
    assert len(tasks.outputs()) == RECORDS - 1
    assert committed(cluster, tasks.group, tasks.source) == {0: RECORDS}


def test_a_zombie_cannot_commit_and_the_task_that_began_last_counts(tasks: Tasks, cluster: Cluster) -> None:
    # It raises, because a result would end the task for Spark, while the newer attempt still runs.
    raised: list[HaltedTaskError] = []

    def run_zombie() -> None:
        with pytest.raises(HaltedTaskError) as caught:
            tasks.run(stuck)
        raised.append(caught.value)

    thread = threading.Thread(target=run_zombie)
    thread.start()
    assert Held.entered.wait(WAIT_SECONDS)
    tasks.run(echo)
    Held.go_on.set()
    thread.join(WAIT_SECONDS)
    assert "took over" in str(raised[0])
    assert -1 not in tasks.outputs()
    assert committed(cluster, tasks.group, tasks.source) == {0: RECORDS}


def test_a_transaction_is_refused_after_the_driver_has_lost_its_membership(tasks: Tasks, cluster: Cluster) -> None:
    driver = Joined(tasks.brokers, tasks.group, tasks.source)
    metadata = driver.metadata()
    driver.close()
    other = Joined(tasks.brokers, tasks.group, tasks.source)
    try:
        refused = tasks.run(echo, metadata=metadata)
        assert isinstance(refused.error, ServerError)
        assert refused.reached is None
        assert tasks.outputs() == []
        assert committed(cluster, tasks.group, tasks.source) == {}
        tasks.run(echo, metadata=other.metadata())
    finally:
        other.close()
    assert len(tasks.outputs()) == RECORDS - 1
    assert committed(cluster, tasks.group, tasks.source) == {0: RECORDS}


def test_without_the_driver_s_membership_a_transaction_is_accepted(tasks: Tasks, cluster: Cluster) -> None:
    other = Joined(tasks.brokers, tasks.group, tasks.source)
    try:
        tasks.run(echo)
    finally:
        other.close()
    assert committed(cluster, tasks.group, tasks.source) == {0: RECORDS}


def test_an_output_that_is_too_large_becomes_a_dead_letter_and_the_others_are_written(
    tasks: Tasks, cluster: Cluster
) -> None:
    result = tasks.run(large)
    assert (result.counts.read, result.counts.written, result.counts.dead_lettered) == (20, 19, 1)
    assert tasks.outputs() == [number for number in range(RECORDS) if number != 5]
    assert list(read_values(tasks.brokers, tasks.dlq)) == [b"5"]
    assert committed(cluster, tasks.group, tasks.source) == {0: RECORDS}


def test_without_a_transaction_an_output_that_is_too_large_becomes_a_dead_letter_too(tasks: Tasks) -> None:
    result = tasks.run(large, delivery="at-least-once")
    assert (result.counts.read, result.counts.written, result.counts.dead_lettered) == (20, 19, 1)
    assert sorted(tasks.outputs()) == [number for number in range(RECORDS) if number != 5]
    refused = tasks.run(large, delivery="at-least-once", dead_letter=None)
    assert isinstance(refused.error, HandlerError)
    assert "OutputRefused" in refused.error.problem
    assert refused.reached is None


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_equal_outputs_to_a_partition_that_does_not_exist_become_dead_letters(delivery: str, tasks: Tasks) -> None:
    result = tasks.run(to_two_partitions, delivery=delivery)
    assert (result.counts.read, result.counts.written, result.counts.dead_lettered) == (20, 10, 10)
    assert tasks.outputs() == [0] * 10
    assert sorted(int(value or b"") for value in read_values(tasks.brokers, tasks.dlq)) == [*range(1, RECORDS, 2)]


def test_at_most_once_commits_first_and_never_again(tasks: Tasks, cluster: Cluster) -> None:
    found: list[SliceResult] = []
    thread = threading.Thread(target=lambda: found.append(tasks.run(stuck, delivery="at-most-once")))
    thread.start()
    assert Held.entered.wait(WAIT_SECONDS)
    assert committed(cluster, tasks.group, tasks.source) == {0: RECORDS}
    assert tasks.run(echo, delivery="at-most-once").counts.read == 0
    Held.go_on.set()
    thread.join(WAIT_SECONDS)
    assert found[0].counts.read == RECORDS


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_clients_of_slices_that_failed_end_at_once(
    delivery: str, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ServerError("The broker does not answer.", hint="Wait.")

    threads = psutil.Process().num_threads
    monkeypatch.setattr(SliceReader, "read", broken)
    counts = []
    for _ in range(6):
        result = tasks.run(echo, delivery=delivery)
        assert isinstance(result.error, ServerError)
        counts.append(threads())
    assert max(counts[1:]) - counts[0] < 3


class Away:
    until = 0.0


def needs_a_service(value: int) -> int:
    if value == 5 and time.monotonic() < Away.until:
        raise DependencyUnavailable("the registry does not answer", 1.5)
    return value


def test_at_most_once_handles_all_that_it_has_committed_after_a_service_was_away(tasks: Tasks) -> None:
    Away.until = time.monotonic() + 1.0
    result = tasks.run(needs_a_service, delivery="at-most-once")
    assert result.error is None
    assert result.counts.read == RECORDS
    assert sorted(tasks.outputs()) == [*range(RECORDS)]


def test_at_most_once_handles_all_that_it_has_committed_after_the_broker_was_silent(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, silent_until = SliceReader.read, time.monotonic() + 1.0

    def silent_at_first(self: SliceReader, limit: int, seconds: float) -> Any:
        if time.monotonic() < silent_until:
            time.sleep(0.05)
            return []
        return read(self, limit, seconds)

    monkeypatch.setattr(SliceReader, "read", silent_at_first)
    monkeypatch.setattr(slice_task, "_SILENT_SECONDS", 0.2)
    result = tasks.run(echo, delivery="at-most-once")
    assert (result.error, result.counts.read) == (None, RECORDS)


def test_an_offset_in_an_open_transaction_is_waited_for(cluster: Cluster, group: str, make_topic: MakeTopic) -> None:
    tp = (make_topic(), 0)
    metadata = group_metadata(cluster.brokers, group, settings={})
    asked, read = threading.Event(), list[dict[tuple[str, int], int]]()

    def ask() -> None:
        asked.set()
        read.append(cluster.stable_offsets(group, [tp]))

    with Transaction(cluster.brokers, group, group=metadata, settings={}) as transaction:
        transaction.fence()
        transaction.write([(tp[0], None, b"1", None, -1, 0)])
        transaction._send_offsets({tp: 7})  # without an end, as if the producer had died
        assert cluster.committed(group, [tp]) == {}
        thread = threading.Thread(target=ask)
        thread.start()
        assert asked.wait(WAIT_SECONDS)
        transaction._finish()
    thread.join(WAIT_SECONDS)
    assert read == [{tp: 7}]
