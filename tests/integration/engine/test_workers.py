"""Workers besides threads: processes that compute and may die, batches, several members."""

import os
from pathlib import Path

import pytest

import process_handlers
from kafka_helpers import (
    MakeTopic,
    Running,
    catch_up,
    committed,
    lag,
    of_kind,
    produce,
    read_records,
    read_values,
    wait_for,
)
from penstock import App, PenstockError, Record, Reject, Retry
from penstock.core.reports import events
from penstock.kafka import Cluster


def test_processes_compute_side_by_side_outside_of_this_one(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source, out = make_topic(), make_topic()
    produce(brokers, source, range(40))
    app = App(group)
    app.consume(source, to=out, workers="process", concurrency=2, order="none")(process_handlers.name_process)
    catch_up(app, brokers)
    lines = [(value or b"").decode().split() for value in read_values(brokers, out)]
    assert sorted(int(number) for number, _ in lines) == list(range(40))
    processes = {int(pid) for _, pid in lines}
    assert 1 <= len(processes) <= 2
    assert os.getpid() not in processes


def test_a_process_that_dies_is_a_failed_attempt_and_no_lost_record(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, out, dlq = make_topic(), make_topic(), make_topic()
    produce(brokers, source, ["a", "cold", "b", "poison", "c"])
    app = App(group)
    app.consume(
        source,
        to=out,
        dead_letter=dlq,
        workers="process",
        order="partition",
        retry=Retry(attempts=2, first="10ms"),
    )(process_handlers.die_on_poison)
    seen = catch_up(app, brokers)
    assert read_values(brokers, out) == [b"a 1", b"cold 2", b"b 1", b"c 1"]
    (letter,) = read_records(brokers, dlq)
    headers = dict(letter.headers)
    assert letter.value == b"poison"
    assert headers["penstock-dlq-error-type"] == b"WorkerDied"
    assert headers["penstock-dlq-error-message"] == b"the worker process died (killed by SIGKILL)"
    assert [event.attempt for event in of_kind(seen, events.Retried)] == [1, 1]
    assert lag(cluster, group, source) == 0


def test_if_a_batch_kills_its_process_only_the_poison_record_fails(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    source, dlq = make_topic(), make_topic()
    produce(brokers, source, ["a", "b", "poison", "c"])
    app = App(group)
    app.consume(
        source, dead_letter=dlq, workers="process", concurrency=1, batch=10, retry=Retry(attempts=1), linger="1s"
    )(process_handlers.die_in_a_batch)
    catch_up(app, brokers)
    assert read_values(brokers, dlq) == [b"poison"]


def test_a_stop_does_not_wait_for_a_process_beyond_its_drain_timeout_and_leaves_none_behind(
    brokers: str, group: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    source, file = make_topic(), tmp_path / "pid"
    produce(brokers, source, [file])
    app = App(group)
    app.consume(source, workers="process", concurrency=1, drain_timeout="200ms")(process_handlers.write_pid_and_wait)
    engine = Running(app, brokers)
    pid = int(wait_for(lambda: file.exists() and file.read_text(), "the child to begin"))
    engine.stop()
    wait_for(lambda: not Path(f"/proc/{pid}").exists() or _is_dead(pid), "the child to be gone")


def _is_dead(pid: int) -> bool:
    return ") Z " in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")


@pytest.mark.parametrize("order", ["partition", "key", "none"])
def test_a_batch_has_one_outcome_for_each_record_and_its_poison_fails_alone(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, order: str
) -> None:
    source, out, dlq, sizes = make_topic(), make_topic(), make_topic(), list[int]()
    produce(brokers, source, [*range(500), b"no number", *range(500, 1000)])
    app = App(group)

    @app.consume(source, to=out, dead_letter=dlq, batch=100, order=order, retry=Retry(attempts=1))  # type: ignore[arg-type]
    def double(values: list[int], records: list[Record]) -> list[int | Exception]:
        sizes.append(len(values))
        assert [int(record.value or b"") for record in records] == values
        return [Reject("seven") if value == 7 else value * 2 for value in values]

    catch_up(app, brokers)
    doubled = [int(value or b"") for value in read_values(brokers, out)]
    assert sorted(doubled) == [n * 2 for n in range(1000) if n != 7]
    assert sorted(read_values(brokers, dlq), key=str) == [b"7", b"no number"]
    assert max(sizes) <= 100
    assert len(sizes) < 200, "records are delivered in batches"
    assert committed(cluster, group, source) == {0: 1001}


def test_a_batch_that_raises_is_repeated_one_by_one(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source, dlq, handled = make_topic(), make_topic(), list[int]()
    produce(brokers, source, range(300))
    app = App(group)

    @app.consume(source, dead_letter=dlq, batch=50, linger="1s", retry=Retry(attempts=1))
    async def handle(values: list[int]) -> None:
        if 123 in values:
            raise ValueError("one of them")
        handled.extend(values)

    catch_up(app, brokers)
    assert read_values(brokers, dlq) == [b"123"]
    assert sorted(handled) == [n for n in range(300) if n != 123]


def test_a_handler_that_no_process_can_import_stops_the_app_at_once(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic()
    app = App(group)

    @app.consume(source, workers="process")
    def local_only(value: str) -> None: ...

    with pytest.raises(PenstockError, match="local_only cannot run in a worker process"):
        catch_up(app, brokers)
