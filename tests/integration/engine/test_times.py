"""Later, time limits and times of producers on a real broker, with kills."""

import threading
from functools import partial
from pathlib import Path

import process_handlers
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
from penstock import App, Producer, Retry
from penstock.core.reports import events
from penstock.kafka import Cluster
from shop_process import ShopProcess

SHOP = """
from time import time
from penstock import App, Later, Record, by

app = App("{group}")

@app.consume("{source}", order="key", settings={{"session.timeout.ms": 6000}}, {options})
def handle(value: int, record: Record) -> None:
    with open("seen", "a") as seen:
        print(value, record.attempt, round(time() * 1000), file=seen)
    {body}
"""

Shop = partial(ShopProcess, SHOP)


def test_a_record_that_waits_for_its_producer_s_time_survives_a_kill_and_is_not_early(
    tmp_path: Path, brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic()
    shop = Shop(
        tmp_path, brokers, group=group, source=source, options='honor_times=True, commit_every="100ms"', body="pass"
    )
    with Producer(brokers) as producer:
        producer.send(source, 1, key="a", not_before="20s")
        producer.send(source, 2, key="b")
    (timed, _) = read_records(brokers, source)
    not_before = int(dict(timed.headers)["penstock-not-before"] or 0)
    with shop.run():
        wait_for(shop.seen, "one of them to be handled")
    with shop.run() as again:
        wait_for(lambda: any(value == 1 for value, *_ in shop.seen()), "its time")
        again.terminate()
        _, err = again.communicate(timeout=WAIT_SECONDS)
        assert again.returncode == 0, err
    ((_, attempt, at),) = [each for each in shop.seen() if each[0] == 1]
    assert attempt == 1
    assert at >= not_before
    assert cluster.lag(group, [source]) == 0


def test_a_kill_while_a_record_waits_after_later_loses_nothing_and_counts_no_attempt(
    tmp_path: Path, brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic()
    shop = Shop(
        tmp_path,
        brokers,
        group=group,
        source=source,
        options='retry_topics=["2s"], commit_every="100ms"',
        body=f'if record.topic == "{source}" and value < 10: raise Later("5s")',
    )
    produce(brokers, source, range(20))
    with shop.run():
        wait_for(lambda: len(shop.events("delayed")) == 10, "ten to wait")
        wait_for(lambda: committed(cluster, group, source) == {0: 20}, "the source's commit")
    with shop.run() as again:
        wait_for(lambda: len(shop.seen()) >= 30, "all to come back")
        again.terminate()
        _, err = again.communicate(timeout=WAIT_SECONDS)
        assert again.returncode == 0, err
    assert {attempt for _, attempt, _ in shop.seen()} == {1}
    for value in range(10):
        asked, *later = [at for seen, _, at in shop.seen() if seen == value]
        assert later[0] - asked >= 4_990, "not before its time, over two waits in the retry topic and one in memory"
    assert cluster.lag(group, [source, f"{source}.retry.2s"]) == 0


def test_a_worker_process_is_killed_at_its_limit_and_replaced(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, out, dlq = make_topic(), make_topic(), make_topic()
    produce(brokers, source, ["a", "hang", "b"])
    app = App(group)
    app.consume(
        source, to=out, dead_letter=dlq, workers="process", concurrency=1, timeout="10s",
        retry={TimeoutError: Retry(attempts=1)},
    )(process_handlers.hang_on_demand)  # fmt: skip
    catch_up(app, brokers)
    first, second = ((record.value or b"").decode().split() for record in read_records(brokers, out))
    assert (first[0], second[0]) == ("a", "b")
    assert first[1] != second[1], "another process"
    (letter,) = read_records(brokers, dlq)
    headers = dict(letter.headers)
    assert (letter.value, headers["penstock-dlq-error-type"]) == (b"hang", b"TimeoutError")
    says = (headers["penstock-dlq-error-message"] or b"").decode()
    assert says.startswith("the handler took longer than its timeout of 10 s: Penstock killed its worker process ")
    assert says.endswith(f"{first[1]} and replaces it")
    assert not Path(f"/proc/{first[1]}").exists()
    assert cluster.lag(group, [source]) == 0


def test_a_thread_is_reported_where_it_hangs_and_its_late_output_is_dropped(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    source, out, dlq, go_on = make_topic(), make_topic(), make_topic(), threading.Event()
    app = App(group)

    @app.consume(source, to=out, dead_letter=dlq, order="key", timeout="5s", retry=Retry(attempts=1))
    def handle(value: int) -> int:
        if value == 1:
            go_on.wait()
        return value

    produce(brokers, source, [1, 2], key=b"same")
    produce(brokers, source, [3], key=b"other")
    with running(app, brokers) as background:
        wait_for(lambda: of_kind(background.events, events.Overdue), "the report")
        wait_for(lambda: read_records(brokers, out), "the other key to go on")
        assert [record.value for record in read_records(brokers, out)] == [b"3"], "its own lane waits"
        go_on.set()
        wait_for(lambda: len(read_records(brokers, out)) == 2, "its lane to go on")
    (overdue,) = of_kind(background.events, events.Overdue)
    assert (overdue.offset, overdue.attempt) == (0, 1)
    assert "go_on.wait()" in overdue.stack
    assert [record.value for record in read_records(brokers, out)] == [b"3", b"2"]
    (letter,) = read_records(brokers, dlq)
    assert (letter.value, dict(letter.headers)["penstock-dlq-error-type"]) == (b"1", b"TimeoutError")


def test_duplicates_are_known_after_a_kill_and_a_record_is_none_of_itself(
    tmp_path: Path, brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic()
    options = 'dedupe=by.key(for_="1h"), commit_every="1h"'
    shop = Shop(tmp_path, brokers, group=group, source=source, options=options, body="pass")
    for key in (b"a", b"b"):
        produce(brokers, source, [1, 1], key=key)
    with shop.run():
        wait_for(lambda: len(shop.events("duplicate")) == 2, "two duplicates")
    assert committed(cluster, group, source) == {}, "the kill came before any commit"
    produce(brokers, source, [2], key=b"a")
    with shop.run() as again:
        wait_for(lambda: len(shop.events("duplicate")) == 5, "the same two, and the new one")
        again.terminate()
        _, err = again.communicate(timeout=WAIT_SECONDS)
        assert again.returncode == 0, err
    assert [value for value, *_ in shop.seen()] == [1, 1, 1, 1], "each key twice: a run again is no duplicate"
    assert cluster.lag(group, [source]) == 0
