"""Records of a task that run at the same time, on a real Spark. Handlers report through their outputs or notes."""

import os
import threading
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from conformance.handler_reports import Notes
from kafka_helpers import CatchUp, MakeTopic, committed, of_kind, produce, read_records, wait_for
from penstock import NO_RETRY, App
from penstock.core.reports import events
from penstock.errors import HandlerError
from penstock.kafka import Cluster


def test_records_of_one_partition_run_at_once_and_keys_keep_their_order(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp, tmp_path: Path
) -> None:
    source, out, first = make_topic(), f"{group}.out", Notes(tmp_path / "first")
    app = App(group)

    @app.consume(source, to=out, order="key", concurrency=20)
    def handle(value: int) -> dict[str, float]:
        began = time.monotonic()
        if value % 10 == 0:
            first.add(value)
            # Passes only if ten keys are in progress at the same time.
            wait_for(lambda: len(first) >= 10, "the first record of ten keys")
        return {"value": value, "began": began, "ended": time.monotonic()}

    for key in range(20):
        produce(brokers, source, [key * 10 + n for n in range(10)], key=b"key-%d" % key)
    catch_up(app)
    by_key = defaultdict(list)
    for record in read_records(brokers, out):
        by_key[record.key].append(msgspec.json.decode(record.value or b""))
    assert sorted(each["value"] for written in by_key.values() for each in written) == list(range(200))
    moments = []
    for written in by_key.values():
        assert [each["value"] for each in written] == sorted(each["value"] for each in written)
        assert all(one["ended"] <= two["began"] for one, two in pairwise(written))
        moments += [(each["began"], 1) for each in written] + [(each["ended"], -1) for each in written]
    running = most = 0
    for _, change in sorted(moments):
        running += change
        most = max(most, running)
    assert 10 <= most <= 20


def test_the_threads_of_a_process_serve_many_batches(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source, out = make_topic(), f"{group}.out"
    app = App(group)

    @app.consume(source, to=out, order="none", concurrency=3, max_in_flight=40, max_micro_batch=200)
    def handle(value: int) -> list[int]:
        time.sleep(0.002)
        return [os.getpid(), sum(thread.name == "penstock-worker" for thread in threading.enumerate())]

    produce(brokers, source, range(1_000))
    seen = catch_up(app)
    assert len(of_kind(seen, events.BatchFinished)) >= 5
    threads = defaultdict(list)
    for record in read_records(brokers, out):
        process, count = msgspec.json.decode(record.value or b"")
        threads[process].append(count)
    for counts in threads.values():
        assert max(counts) <= max(3, *counts[:3]), "the first batch started all threads that the others needed"


def test_a_halt_leaves_no_record_in_progress_and_a_restart_handles_all(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp, tmp_path: Path
) -> None:
    source, begun, ended = make_topic(), Notes(tmp_path / "begun"), Notes(tmp_path / "ended")

    def app_that_fails_on(bad: int) -> App:
        app = App(group)

        @app.consume(source, order="none", concurrency=4, retry=NO_RETRY)
        def handle(value: int) -> None:
            begun.add(value)
            time.sleep(0.05)
            ended.add(value)
            if value == bad:
                raise ValueError("no good")

        return app

    produce(brokers, source, range(400))
    with pytest.raises(HandlerError, match=r"ValueError: no good"):
        catch_up(app_that_fails_on(3))
    assert sorted(begun.read()) == sorted(ended.read())
    assert len(begun) < 400
    assert committed(cluster, group, source).get(0, 0) <= 3, "no record after the bad one"
    catch_up(app_that_fails_on(-1))
    assert set(ended.read()) == set(range(400))
    assert committed(cluster, group, source) == {0: 400}


@pytest.mark.parametrize("order", ["key", "none"])
def test_with_scale_cpu_one_partition_is_computed_by_several_processes(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp, order: str, tmp_path: Path
) -> None:
    source, out, workers = make_topic(), f"{group}.out", Notes(tmp_path / "workers")
    app = App(group)

    @app.consume(source, to=out, order=order, scale="cpu")  # type: ignore[arg-type]
    def handle(value: int) -> str:
        if value < 20:
            workers.add(os.getpid())
            wait_for(lambda: len(set(workers.read())) == 2, "another process that has begun too")
        return f"{value} {os.getpid()}"

    for key in range(10):
        produce(brokers, source, [n * 10 + key for n in range(100)], key=b"key-%d" % key)
    produce(brokers, source, range(1_000, 1_100))
    seen = catch_up(app)
    assert of_kind(seen, events.Stopped)[0].written == 1_100
    by_key = defaultdict(list)
    processes = set()
    for record in read_records(brokers, out):
        value, process = (record.value or b"").decode().split()
        by_key[record.key].append(int(value))
        processes.add(process)
    assert sorted(value for values in by_key.values() for value in values) == list(range(1_100))
    assert len(processes) == 2
    if order == "key":
        for named in set(by_key) - {None}:
            assert by_key[named] == sorted(by_key[named])
