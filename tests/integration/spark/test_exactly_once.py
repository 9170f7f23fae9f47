"""Exactly once on Spark: tasks die at the worst moments, drivers are killed, topics are recreated.

The tests check the outputs and dead letters that a read-committed reader gets.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import Producer

from kafka_helpers import WAIT_SECONDS, CatchUp, MakeTopic, committed, lag, of_kind, produce, read_values, wait_for
from penstock import App, Reject
from penstock.core.reports import events
from penstock.errors import HandlerError
from penstock.kafka import Cluster

# Each handler has a fault that happens once, in the worker process, after many outputs have been written.
FAULTS = """
import os
from pathlib import Path
from penstock import App, Reject
from penstock.kafka.client.transactions import Transaction

app = App("{group}")

def strikes(fault):
    try:
        (Path("{folder}") / fault).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

def result(value):
    if value % 100 == 7:
        raise Reject("seven")
    return value

def consume(fault):
    return app.consume("{source}", group="{group}." + fault, to="{group}." + fault, dead_letter="{group}.dlq." + fault,
                       delivery="exactly-once")

@consume("while_writing")
def while_writing(value: int) -> int:
    if value == 11_000 and strikes("while_writing"):
        os._exit(1)
    return result(value)

@consume("before_commit")
def before_commit(value: int) -> int:
    if value == 11_000 and strikes("before_commit"):
        Transaction._finish = lambda self: os._exit(1)
    return result(value)

@consume("after_commit")
def after_commit(value: int) -> int:
    if value == 11_000 and strikes("after_commit"):
        finish = Transaction._finish
        Transaction._finish = lambda self: (finish(self), os._exit(1))
    return result(value)
"""
KINDS = ("while_writing", "before_commit", "after_commit")
MANY = 12_000

# Slow enough that a kill always hits a slice.
SLOW = """
import time
from penstock import App, Reject

app = App("{group}")

@app.consume("{source}", to="{group}.out", dead_letter="{group}.dlq", delivery="exactly-once", micro_batch="1s")
def handle(value: int) -> int:
    time.sleep(0.005)
    if value % 100 == 7:
        raise Reject("seven")
    return value
"""
RECORDS = 2_000


def app_of(group: str, source: str, **options: Any) -> App:
    """As the slow one, without waiting."""
    app = App(group)

    @app.consume(source, to=f"{group}.out", dead_letter=f"{group}.dlq", delivery="exactly-once", **options)
    def handle(value: int) -> int:
        if value % 100 == 7:
            raise Reject("seven")
        return value

    return app


def numbers(brokers: str, topic: str) -> list[int]:
    return sorted(int(value or b"") for value in read_values(brokers, topic))


def fill(brokers: str, source: str, records: int) -> None:
    for partition in range(2):
        produce(brokers, source, range(partition, records, 2), partition=partition)


def each_is_there_once(brokers: str, out: str, dlq: str, records: int) -> None:
    assert numbers(brokers, out) == [number for number in range(records) if number % 100 != 7]
    assert numbers(brokers, dlq) == list(range(7, records, 100))


class Command:
    """`penstock run --engine spark` in a folder with an app."""

    def __init__(self, folder: Path, brokers: str, app: str, *arguments: str) -> None:
        (folder / "shop.py").write_text(app)
        self._events = folder / "events.jsonl"
        self._events.unlink(missing_ok=True)
        arguments = ("run", "shop:app", "--engine", "spark", "--events", str(self._events), *arguments)
        with (folder / "said").open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "penstock", *arguments],
                cwd=folder,
                env={**os.environ, "PENSTOCK_BROKERS": brokers},
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        self._said = folder / "said"

    def events(self, kind: str) -> list[dict[str, Any]]:
        if not self._events.exists():
            return []
        lines = self._events.read_text().splitlines(keepends=True)
        found = [msgspec.json.decode(line) for line in lines if line.endswith("\n")]
        return [event for event in found if event["event"] == kind]

    def finish(self) -> None:
        assert self.process.wait(WAIT_SECONDS) == 0, self._said.read_text()

    def kill_after_batches(self, count: int) -> None:
        wait_for(
            lambda: len(self.events("batch_finished")) >= count or self.process.poll() is not None,
            f"{count} batches",
        )
        assert self.process.poll() is None, self._said.read_text()
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def penstock_run(tmp_path: Path, brokers: str) -> Iterator[Callable[..., Command]]:
    commands: list[Command] = []

    def start(app: str, *arguments: str) -> Command:
        commands.append(Command(tmp_path, brokers, app, *arguments))
        return commands[-1]

    yield start
    for command in commands:
        command.process.kill()
        command.process.wait()


def test_tasks_that_die_while_writing_before_and_after_the_commit_are_repeated_without_a_trace(
    brokers: str,
    cluster: Cluster,
    group: str,
    make_topic: MakeTopic,
    tmp_path: Path,
    penstock_run: Callable[..., Command],
) -> None:
    source = make_topic()
    produce(brokers, source, range(MANY))
    faults = FAULTS.format(group=group, source=source, folder=tmp_path)
    penstock_run(faults, "--master", "local[2,3]", "--until-caught-up").finish()
    for kind in KINDS:
        assert (tmp_path / kind).exists(), "the fault has happened"
        each_is_there_once(brokers, f"{group}.{kind}", f"{group}.dlq.{kind}", MANY)
        assert committed(cluster, f"{group}.{kind}", source) == {0: MANY}


def test_a_driver_that_is_killed_leaves_each_output_once(
    brokers: str,
    cluster: Cluster,
    group: str,
    make_topic: MakeTopic,
    penstock_run: Callable[..., Command],
    catch_up: CatchUp,
) -> None:
    source = make_topic(2)
    fill(brokers, source, RECORDS)
    penstock_run(SLOW.format(group=group, source=source)).kill_after_batches(2)
    assert lag(cluster, group, source) > 0, "it was killed before the end"
    catch_up(app_of(group, source))
    each_is_there_once(brokers, f"{group}.out", f"{group}.dlq", RECORDS)
    assert lag(cluster, group, source) == 0


def test_if_one_partition_fails_the_other_stays_committed_and_is_not_repeated(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic(2)

    def app_that_fails_on(bad: int) -> App:
        app = App(group)

        @app.consume(source, to=f"{group}.out", delivery="exactly-once")
        def handle(value: int) -> int:
            if value == bad:
                # It fails after the other partition has committed, because the first failure stops the app.
                wait_for(lambda: committed(Cluster(brokers), group, source) == {0: 50}, "the other partition")
                raise Reject("no good")
            return value

        return app

    produce(brokers, source, range(50), partition=0)
    produce(brokers, source, range(50, 100), partition=1)
    with pytest.raises(HandlerError, match=r"\[1\]@5"):
        catch_up(app_that_fails_on(55))
    assert numbers(brokers, f"{group}.out") == list(range(50))
    assert committed(cluster, group, source) == {0: 50}
    seen = catch_up(app_that_fails_on(-1))
    assert sum(stopped.read for stopped in of_kind(seen, events.Stopped)) == 50
    assert numbers(brokers, f"{group}.out") == list(range(100))
    assert committed(cluster, group, source) == {0: 50, 1: 50}


def test_a_recreated_topic_is_handled_from_its_start(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    # The marker is past the end of the new log. If the engine used it, it would skip all new records.
    source = make_topic()
    produce(brokers, source, range(50))
    catch_up(app_of(group, source))
    cluster.delete_topics([source])
    wait_for(lambda: source not in cluster.topics(), "the topic to go")
    cluster.create_topics([source], partitions=1)
    produce(brokers, source, range(100, 120))
    seen = catch_up(app_of(group, source))
    # The broker deletes the offsets of a deleted topic, so there may be no offset to replace.
    assert {event.moved_to for event in of_kind(seen, events.OffsetOutOfRange)} <= {0}
    assert numbers(brokers, f"{group}.out") == [*range(7), *range(8, 50), *range(100, 107), *range(108, 120)]
    assert committed(cluster, group, source) == {0: 20}


def test_the_group_reaches_the_end_past_markers_and_aborted_records(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    # The marker of each transaction has an offset too, and aborted records are invisible.
    source = make_topic(2)
    producer = Producer({"bootstrap.servers": brokers, "transactional.id": group})
    producer.init_transactions(30)
    for partition, end in (
        (0, producer.commit_transaction),
        (0, producer.abort_transaction),
        (1, producer.abort_transaction),
    ):
        producer.begin_transaction()
        producer.produce(source, b"1", partition=partition)
        producer.flush(WAIT_SECONDS)
        end(30)
    catch_up(app_of(group, source))
    assert numbers(brokers, f"{group}.out") == [1]
    assert committed(cluster, group, source) == {0: 4, 1: 2}
    assert lag(cluster, group, source) == 0
