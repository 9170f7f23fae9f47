"""delivery="at-most-once" on a real broker: no record is handled twice, whatever is killed."""

import subprocess
import sys
import threading
from collections import Counter
from functools import partial
from pathlib import Path

from kafka_helpers import WAIT_SECONDS, MakeTopic, Running, catch_up, committed, of_kind, produce, running, wait_for
from penstock import App
from penstock.core.reports import events
from penstock.kafka import Cluster

APP = """
import os, time
from penstock import App

app = App({group!r})
notes = os.open({notes!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

@app.consume({source!r}, delivery="at-most-once", order="none", concurrency=16, max_in_flight=200,
             settings={{"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000}})
def handle(value: int) -> None:
    os.write(notes, b"%d\\n" % value)
    time.sleep(0.002)
"""


def test_members_that_are_killed_leave_nothing_handled_twice(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    source, total, notes = make_topic(4), 3_000, tmp_path / "notes"
    for partition in range(4):
        produce(brokers, source, range(partition, total, 4), partition=partition)
    (tmp_path / "shop.py").write_text(APP.format(group=group, source=source, notes=str(notes)))
    command = [sys.executable, "-m", "penstock", "run", "shop:app", "-b", brokers]

    def handled() -> list[int]:
        return [*map(int, notes.read_text().split())] if notes.exists() else []

    def has(least: int) -> bool:
        return len(handled()) >= least

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    running_now = [start(), start()]
    try:
        for kill, least in ((0, 800), (1, 1_200)):
            wait_for(partial(has, least), f"{least} records")
            running_now[kill].kill()
            running_now[kill].wait()
            running_now[kill] = start()
        wait_for(lambda: sum(committed(cluster, group, source).values()) == total, "the end")
    finally:
        for process in running_now:
            process.terminate()
            process.wait(WAIT_SECONDS)
    counts = Counter(handled())
    assert set(counts.values()) == {1}, "nothing is handled twice"
    # Each kill may lose the records that were committed and not handled: at most max_in_flight.
    assert total - len(counts) <= 2 * 200


def test_stops_and_rebalances_lose_nothing(brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic) -> None:
    source, seen, helped = make_topic(4), list[int](), threading.Event()

    def make() -> App:
        app = App(group)

        @app.consume(
            source,
            delivery="at-most-once",
            order="key",
            concurrency=8,
            max_in_flight=400,
            settings={"heartbeat.interval.ms": 300},
        )
        def handle(value: int) -> None:
            # Slow until the second member has worked, so that there are records left for it.
            helped.wait(0.02)
            seen.append(value)

        return app

    for partition in range(4):
        produce(brokers, source, range(partition * 1_000, (partition + 1) * 1_000), partition=partition)
    with running(make(), brokers) as first:
        wait_for(lambda: len(seen) > 200, "the first to work")
        second = Running(make(), brokers)
        wait_for(lambda: of_kind(second.events, events.Finished), "the second to help")
        helped.set()
        second.stop()
        wait_for(lambda: len(seen) > 2_000, "the first to have it all again")
    assert not of_kind(first.events, events.Lost)
    catch_up(make(), brokers)
    assert sorted(seen) == list(range(4_000))
    assert committed(cluster, group, source) == dict.fromkeys(range(4), 1_000)
