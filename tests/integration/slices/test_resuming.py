"""Where a run resumes: at the group's offsets, whichever engine has committed them."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from kafka_helpers import WAIT_SECONDS, CatchUp, MakeTopic, committed, of_kind, produce, read_values, running, wait_for
from kafka_helpers import catch_up as catch_up_locally
from penstock import App, Retry
from penstock.core.progress.offset_map import decode
from penstock.core.reports import events
from penstock.kafka import Cluster
from thread_jobs import run_on_threads


def echo(group: str, source: str, **options: object) -> App:
    app = App(group)

    @app.consume(source, to=f"{group}.out", **options)  # type: ignore[arg-type]
    def handle(value: bytes) -> bytes:
        return value

    return app


def read(seen: list[events.Event]) -> int:
    return sum(stopped.read for stopped in of_kind(seen, events.Stopped))


def outputs(brokers: str, group: str) -> list[int]:
    return sorted(int(value or b"") for value in read_values(brokers, f"{group}.out"))


def test_what_the_local_engine_has_handled_meanwhile_is_not_repeated(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    produce(brokers, source, range(10))
    catch_up(echo(group, source))
    produce(brokers, source, range(10, 20))
    catch_up_locally(echo(group, source), brokers)
    produce(brokers, source, range(20, 30))
    assert read(catch_up(echo(group, source))) == 10
    assert outputs(brokers, group) == list(range(30))


def test_an_old_checkpoint_is_read_once_and_set_aside(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp, tmp_path: Path
) -> None:
    source = make_topic()
    produce(brokers, source, range(10))
    folder = tmp_path / group / "handle"
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    (folder / "offsets" / "0").write_text(f'v1\n{{}}\n{{"{source}":{{"0":7}}}}')
    (folder / "commits" / "0").write_text('v1\n{"nextBatchWatermarkMs":0}')
    seen = catch_up(echo(group, source), checkpoint=tmp_path)
    assert outputs(brokers, group) == [7, 8, 9]
    (said,) = of_kind(seen, events.Error)
    assert "was read for the last time" in said.reason
    assert not folder.exists()
    # From now on, only the group's offsets count.
    cluster.commit(group, {(source, 0): 5})
    assert read(catch_up(echo(group, source), checkpoint=tmp_path)) == 5


def test_from_the_end_means_the_end_at_the_first_start(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    produce(brokers, source, range(10))
    assert read(catch_up(echo(group, source, start="latest"))) == 0
    assert committed(cluster, group, source) == {0: 10}
    produce(brokers, source, range(10, 13))
    assert read(catch_up(echo(group, source, start="latest"))) == 3


def test_records_that_were_deleted_unhandled_are_reported_and_passed(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    produce(brokers, source, range(10))
    catch_up(echo(group, source))
    produce(brokers, source, range(10, 20))
    admin = AdminClient({"bootstrap.servers": brokers})
    for future in admin.delete_records([TopicPartition(source, 0, 15)]).values():
        future.result()
    (found,) = of_kind(catch_up(echo(group, source)), events.OffsetOutOfRange)
    assert (found.offset, found.low, found.high, found.moved_to, found.skipped) == (10, 15, 20, 15, 5)
    assert outputs(brokers, group) == [*range(10), *range(15, 20)]


def test_start_and_from_take_offsets_and_moments_as_on_the_local_engine(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic(2)
    for partition in range(2):
        produce(brokers, source, range(10 * partition, 10 * partition + 5), partition=partition)
    after = datetime.now(UTC) + timedelta(seconds=30)
    starts: list[tuple[dict[str, Any], int]] = [
        ({"start": {(source, 0): 3}}, 2 + 5),
        ({"start": after}, 0),
        ({"start": datetime(2020, 1, 1, tzinfo=UTC)}, 10),
        ({"start": {(source, 1): 99}}, 5),  # beyond the end of the log, so no record of it is read
    ]
    for number, (options, expected) in enumerate(starts):
        assert read(catch_up(echo(f"{group}-{number}", source, **options))) == expected
    forced = catch_up(echo(f"{group}-0", source, from_={(source, 1): 1}))
    assert read(forced) == 4, "only the partition that it names"
    (event,) = of_kind(forced, events.StartOverridden)
    assert (event.partition, event.offset, event.committed) == (1, 1, 5)
    assert committed(cluster, f"{group}-0", source) == {0: 5, 1: 5}
    (found,) = of_kind(catch_up(echo(f"{group}-4", source, start={(source, 1): 99})), events.OffsetOutOfRange)
    assert (found.offset, found.moved_to) == (99, 5)


def test_a_pattern_takes_what_matches_at_the_start_and_what_appears_later_and_partitions_only_those_named(
    brokers: str, cluster: Cluster, group: str, catch_up: CatchUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, later, other = (f"{group}.{name}" for name in ("in.first", "in.later", "other"))
    cluster.create_topics([first, other], partitions=2)
    for topic in (first, other):
        produce(brokers, topic, range(3), partition=1)
    app = App(group)

    @app.consume(pattern=rf"{group}\.in\..*", to=f"{group}.out")
    def handle(value: bytes) -> bytes:
        return value

    seen: list[events.Event] = []
    stop = threading.Event()
    thread = threading.Thread(
        target=lambda: seen.extend(run_on_threads(app, brokers, stop, patch=monkeypatch)), daemon=True
    )
    thread.start()
    wait_for(lambda: committed(cluster, group, first) == {1: 3}, "the first topic")
    cluster.create_topics([later], partitions=1)
    produce(brokers, later, range(3, 5))
    wait_for(lambda: committed(cluster, group, later) == {0: 2}, "the topic that came later")
    stop.set()
    thread.join(WAIT_SECONDS)
    assert of_kind(seen, events.Started)[0].topics == (first,)
    assert outputs(brokers, group) == list(range(5))
    assert read(catch_up(app)) == 0, "it continues at its committed offset"

    alone = App(f"{group}-alone")

    @alone.consume(partitions=[(first, 1)])
    def handle_one(value: bytes) -> None: ...

    assert read(catch_up(alone)) == 3
    assert committed(cluster, f"{group}-alone", first) == {1: 3}


def test_what_the_local_engine_finished_ahead_of_its_commit_is_not_repeated(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source, gate = make_topic(), threading.Event()
    produce(brokers, source, range(30))
    app = App(group)

    @app.consume(source, to=f"{group}.out", order="none", concurrency=4, drain_timeout="200ms", commit_every="50ms")
    def handle(value: bytes) -> bytes:
        if value in (b"3", b"20"):
            gate.wait(WAIT_SECONDS)
        return value

    with running(app, brokers) as member:
        wait_for(lambda: len(of_kind(member.events, events.Finished)) == 28, "all but the stuck ones")
    gate.set()
    commit = cluster.commits(group, [(source, 0)])[source, 0]
    assert (commit[0], decode(*commit)) == (3, [(4, 20), (21, 30)])
    # Slices have 10 offsets. The second one ends between finished records.
    seen = catch_up(echo(group, source, max_micro_batch=10))
    assert read(seen) == 2
    assert outputs(brokers, group) == list(range(30))
    assert cluster.commits(group, [(source, 0)]) == {(source, 0): (30, "")}


def test_what_spark_finished_ahead_of_its_commit_is_not_repeated_by_the_local_engine(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, stop = make_topic(), threading.Event()
    for number in range(30):
        produce(brokers, source, [number], key=b"%d" % number)
    options = {"order": "key", "retry": Retry(attempts=9, first="1h", limit="1h")}
    app = App(group)

    @app.consume(source, to=f"{group}.out", **options)  # type: ignore[arg-type]
    def handle(value: bytes) -> bytes:
        if value in (b"3", b"20"):
            raise OSError("away")
        return value

    thread = threading.Thread(target=lambda: run_on_threads(app, brokers, stop, patch=monkeypatch), daemon=True)
    thread.start()
    wait_for(lambda: committed(cluster, group, source) == {0: 3}, "all but those that wait")
    stop.set()
    thread.join(WAIT_SECONDS)
    commit = cluster.commits(group, [(source, 0)])[source, 0]
    assert (commit[0], decode(*commit)) == (3, [(4, 20), (21, 30)])
    assert read(catch_up_locally(echo(group, source), brokers)) == 2
    assert outputs(brokers, group) == list(range(30))


def test_a_reset_counts_at_once(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    produce(brokers, source, range(20))
    catch_up(echo(group, source))
    cluster.commit(group, {(source, 0): 5})
    assert read(catch_up(echo(group, source))) == 15
    cluster.commit(group, {(source, 0): 18})
    assert read(catch_up(echo(group, source))) == 2
