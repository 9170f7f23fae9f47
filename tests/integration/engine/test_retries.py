"""Retries on the local engine, on a real broker: by the type of the error, and by way of retry topics."""

from collections import Counter
from functools import partial
from pathlib import Path
from time import monotonic, time

from kafka_helpers import (
    WAIT_SECONDS,
    MakeTopic,
    catch_up,
    committed,
    of_kind,
    produce,
    read_records,
    running,
    wait_for,
)
from penstock import NO_RETRY, App, Record, Reject, Retry
from penstock.core.reports import events
from penstock.kafka import Cluster, make_producer
from shop_process import ShopProcess


def test_the_type_of_an_error_decides_how_often_it_is_tried(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source, dlq, attempts = make_topic(), f"{group}.dlq", Counter[str]()
    app = App(group)
    errors = {"away": ConnectionResetError, "wrong": UnicodeError, "other": KeyError}

    @app.consume(
        source,
        dead_letter=dlq,
        order="none",
        retry={
            ConnectionError: Retry(attempts=5, first="10ms", limit="20ms"),
            ValueError: NO_RETRY,
            Exception: Retry(attempts=2, first="10ms"),
        },
    )
    def handle(value: str) -> None:
        attempts[value] += 1
        raise errors[value]

    produce(brokers, source, errors)
    catch_up(app, brokers)
    assert attempts == {"away": 5, "wrong": 1, "other": 2}
    letters = {record.value: dict(record.headers)["penstock-dlq-attempts"] for record in read_records(brokers, dlq)}
    assert letters == {b"away": b"5", b"wrong": b"1", b"other": b"2"}


def test_a_record_comes_back_from_the_retry_topic_in_time_while_its_lane_continues(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, calls = make_topic(2), []
    app = App(group)

    @app.consume(source, retry=Retry(first="2s", jitter=0), retry_topics=["2s"])
    def handle(value: str, record: Record) -> None:
        calls.append((value, record.attempt, record.topic, str(record.origin), monotonic()))
        if value == "1" and record.attempt == 1:
            raise OSError("away")

    produce(brokers, source, range(4), partition=1)
    with running(app, brokers) as background:
        wait_for(lambda: len(calls) == 5, "the second attempt")
        wait_for(lambda: committed(cluster, group, source).get(1) == 4, "the source's commit")
    later = f"{source}.retry.2s"
    assert [call[:2] for call in calls] == [("0", 1), ("1", 1), ("2", 1), ("3", 1), ("1", 2)]
    assert {call[2:4] for call in calls if call[0] == "1"} == {(source, f"{source}[1]@1"), (later, f"{source}[1]@1")}
    assert calls[4][4] - calls[1][4] >= 1.99, "not before it is due, while its lane continued"
    (postponed,) = of_kind(background.events, events.Postponed)
    assert (postponed.offset, postponed.attempt, postponed.to, postponed.seconds) == (1, 1, later, 2.0)
    assert sum(committed(cluster, group, later).values()) == 1
    assert [(e.topic, e.partitions) for e in of_kind(background.events, events.TopicCreated)] == [(later, 2)]


def test_after_the_last_attempt_the_dead_letter_names_the_source_and_counts_every_attempt(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    source, dlq = make_topic(3), f"{group}.dlq"
    app = App(group)

    @app.consume(
        source,
        dead_letter=dlq,
        retry=Retry(attempts=4, first="10ms", factor=10, limit="1s", jitter=0),  # 10 ms, 100 ms, 1 s
        retry_topics=["100ms", "1s"],
    )
    def handle(value: bytes) -> None:
        if value == b"bad":
            raise OSError("away")

    produce(brokers, source, ["good", "good", "bad"], partition=2, key=b"k")
    with running(app, brokers) as background:
        wait_for(lambda: of_kind(background.events, events.DeadLettered), "the dead letter")
    (letter,) = read_records(brokers, dlq)
    original = next(record for record in read_records(brokers, source) if record.value == b"bad")
    headers = dict(letter.headers)
    assert (letter.key, letter.value) == (b"k", b"bad")
    reported = {
        name: headers[f"penstock-dlq-{name}"] for name in ("topic", "partition", "offset", "timestamp", "attempts")
    }
    assert reported == {
        "topic": source.encode(),
        "partition": b"2",
        "offset": b"2",
        "timestamp": str(original.timestamp_ms).encode(),
        "attempts": b"4",
    }
    assert not [name for name in headers if name.startswith("penstock-retry-")]
    assert [e.to for e in of_kind(background.events, events.Postponed)] == [
        f"{source}.retry.100ms",
        f"{source}.retry.1s",
    ]
    (waited,) = read_records(brokers, f"{source}.retry.1s")
    assert len(waited.headers) == len(read_records(brokers, f"{source}.retry.100ms")[0].headers), "replaced, not added"
    (stopped,) = of_kind(background.events, events.Stopped)
    assert (stopped.read, stopped.dead_lettered) == (3, 1), "a record counts once, however often it waited"


def test_records_that_wait_in_a_retry_topic_take_no_room_from_the_source(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    source, seen = make_topic(), []
    app = App(group)

    @app.consume(
        source,
        max_in_flight=4,
        order="partition",
        concurrency=2,
        retry=Retry(first="1h", limit="1h"),
        retry_topics=["1h"],
    )
    def handle(value: int) -> None:
        seen.append(value)
        if value < 50:
            raise OSError("away")

    produce(brokers, source, range(50))
    with running(app, brokers) as background:
        wait_for(lambda: len(of_kind(background.events, events.Postponed)) == 50, "all to leave")
        wait_for(lambda: of_kind(background.events, events.Paused), "the retry topic to rest")
        produce(brokers, source, range(50, 250))
        wait_for(lambda: len(seen) == 250, "the source to flow")
    assert seen == list(range(250))


def test_each_group_retries_only_its_own(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source, attempts = make_topic(), Counter[str]()
    app = App(group)

    def declare(name: str, bad: str) -> None:
        @app.consume(source, group=f"{group}-{name}", retry=Retry(first="500ms", jitter=0), retry_topics=["500ms"])
        def handle(value: str, record: Record) -> None:
            attempts[f"{name} {value} {record.attempt}"] += 1
            if value == bad and record.attempt == 1:
                raise OSError("away")

    declare("one", "a")
    declare("two", "b")
    produce(brokers, source, ["a", "b"])
    with running(app, brokers):
        wait_for(lambda: attempts["one a 2"] and attempts["two b 2"], "both to come back")
    expected = ["one a 1", "one a 2", "one b 1", "two a 1", "two b 1", "two b 2"]
    assert attempts == dict.fromkeys(expected, 1)


def test_damaged_headers_are_reported_and_the_record_is_handled_at_once(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    source, seen = make_topic(), []
    app = App(group)

    @app.consume(source, retry_topics=["1h"])
    def handle(value: bytes, record: Record) -> None:
        seen.append((value, record.attempt, record.origin.topic))

    later = f"{source}.retry.1h"
    with running(app, brokers) as background:
        wait_for(lambda: of_kind(background.events, events.Assigned), "its partitions")
        producer = make_producer(brokers, settings={})
        hostile: list[tuple[str, str | bytes | None]] = [
            ("penstock-retry-due", b"9" * 400),
            ("penstock-retry-attempt", b"\xff\x00"),
            ("penstock-retry-offset", b"-1"),
            ("penstock-retry-group", group.encode()),
        ]
        producer.produce(later, b"hostile", headers=hostile)
        producer.produce(later, b"bare")
        producer.flush(WAIT_SECONDS)
        wait_for(lambda: len(seen) == 2, "both")
    assert seen == [(b"hostile", 1, later), (b"bare", 1, later)]
    reported = " ".join(event.reason for event in of_kind(background.events, events.Error))
    assert "penstock-retry-due is not a possible time" in reported
    assert "penstock-retry-attempt is not the number" in reported


def test_until_caught_up_leaves_what_is_not_due_for_a_later_run(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    source, seen = make_topic(), []
    app = App(group)

    @app.consume(source, retry=Retry(first="2s", jitter=0), retry_topics=["2s"])
    def handle(value: str, record: Record) -> None:
        seen.append((value, record.attempt))
        if record.attempt == 1:
            raise OSError("away")

    produce(brokers, source, ["a"])
    catch_up(app, brokers)
    (waiting,) = read_records(brokers, f"{source}.retry.2s")
    due = int(dict(waiting.headers)["penstock-retry-due"] or 0) / 1000
    catch_up(app, brokers)
    assert seen == [("a", 1)] or time() > due
    wait_for(lambda: time() > due, "its time")
    catch_up(app, brokers)
    assert seen == [("a", 1), ("a", 2)]


SHOP = """
from penstock import App, Breaker, Record, Reject, Retry

app = App("{group}")

@app.consume("{source}", dead_letter="{group}.dlq", commit_every="100ms", settings={{"session.timeout.ms": 6000}},
             {options})
def handle(value: int, record: Record) -> None:
    {body}
"""

Shop = partial(ShopProcess, SHOP)


def test_a_kill_while_records_wait_loses_none_of_them(
    tmp_path: Path, brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic(2)
    shop = Shop(
        tmp_path,
        brokers,
        group=group,
        source=source,
        options='retry=Retry(first="4s", jitter=0), retry_topics=["4s"]',
        body='if record.attempt == 1: raise OSError("away")',
    )
    for partition in range(2):
        produce(brokers, source, range(20), partition=partition)
    with shop.run():
        wait_for(lambda: len(shop.events("postponed")) == 40, "all to wait")
        wait_for(lambda: committed(cluster, group, source) == {0: 20, 1: 20}, "the source's commits")
    assert not shop.events("finished"), "killed before any came back"
    with shop.run() as again:
        wait_for(lambda: len(shop.events("finished")) >= 40, "all to come back")
        again.terminate()
        _, err = again.communicate(timeout=WAIT_SECONDS)
        assert again.returncode == 0, err
    back = {(r.origin.partition, r.origin.offset) for r in read_records(brokers, f"{source}.retry.4s")}
    assert back == {(partition, offset) for partition in range(2) for offset in range(20)}
    assert cluster.lag(group, [source, f"{source}.retry.4s"]) == 0
    assert {event["attempt"] for event in shop.events("finished")} == {2}


def test_a_breaker_stops_the_app_instead_of_dead_lettering_everything(
    tmp_path: Path, brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic()
    shop = Shop(
        tmp_path,
        brokers,
        group=group,
        source=source,
        options="breaker=Breaker(share=0.9, window=50)",
        body='if value >= 100: raise Reject("all of them")',
    )
    produce(brokers, source, range(1_000))
    with shop.run("--until-caught-up") as process:
        _, err = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 5, err
    assert f"to the dead letters, so it stopped before the next one, {source}[0]@145: Reject: all of them" in " ".join(
        err.split()
    )
    assert len(read_records(brokers, f"{group}.dlq")) == 45
    assert committed(cluster, group, source) == {0: 145}
    (fatal,) = [event for event in shop.events("error") if event["fatal"]]
    assert "45 of the last 50 records" in fatal["reason"]


def test_a_burst_of_poison_stops_no_app_without_a_breaker(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, dlq = make_topic(), f"{group}.dlq"
    app = App(group)

    @app.consume(source, dead_letter=dlq)
    def handle(value: int) -> None:
        if 1_000 <= value < 3_000:
            raise Reject("poison")

    produce(brokers, source, range(10_000))
    (stopped,) = of_kind(catch_up(app, brokers), events.Stopped)
    assert (stopped.read, stopped.dead_lettered) == (10_000, 2_000)
    assert committed(cluster, group, source) == {0: 10_000}


def test_a_steady_stream_of_retries_comes_back_whole_and_each_after_its_time(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, done, failed_at, early = make_topic(4), Counter[int](), {}, []
    app = App(group)

    @app.consume(
        source, order="none", max_in_flight=500, retry=Retry(attempts=3, first="500ms", jitter=0, factor=1),
        retry_topics=["500ms"], commit_every="100ms",
    )  # fmt: skip
    def handle(value: int, record: Record) -> None:
        if value % 3 >= record.attempt:  # a third fails once, a third twice
            failed_at[value] = monotonic()
            raise OSError("away")
        if record.attempt > 1 and monotonic() - failed_at[value] < 0.499:
            early.append(value)
        done[value] += 1

    with running(app, brokers):
        for start in range(0, 6_000, 2_000):
            for partition in range(4):
                produce(
                    brokers, source, range(start + partition * 500, start + (partition + 1) * 500), partition=partition
                )
        wait_for(lambda: len(done) == 6_000, "all of them")
        topics = [source, f"{source}.retry.500ms"]
        wait_for(lambda: cluster.lag(group, topics) == 0, "their commits")
    assert set(done.values()) == {1}
    assert early == []
