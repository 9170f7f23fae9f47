"""mode="share": a queue with more consumers than partitions, on a real broker."""

import asyncio
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kafka_helpers import (
    WAIT_SECONDS,
    MakeTopic,
    Running,
    of_kind,
    produce,
    read_records,
    read_values,
    running,
    wait_for,
)
from penstock import App, Reject, Retry, Skip
from penstock.core.reports import events


def numbers(brokers: str, topic: str) -> list[int]:
    return sorted(int(value or b"-1") for value in read_values(brokers, topic))


def test_outcomes_are_acknowledged_released_and_rejected_with_a_dead_letter_first(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    source, out, dlq, app, tried = make_topic(), make_topic(), f"{group}.dlq", App(group), Counter[int]()

    @app.consume(source, to=out, dead_letter=dlq, mode="share", order="none", concurrency=50, retry=Retry(attempts=3))
    def handle(value: int) -> int | None:
        tried[value] += 1
        if value % 10 == 1:
            raise Skip
        if value % 10 == 2:
            raise Reject("no")
        if value % 10 == 3:
            raise OSError("always")
        if value % 10 == 4 and tried[value] == 1:
            raise OSError("once")
        return value

    produce(brokers, source, range(300))
    good = [n for n in range(300) if n % 10 not in {1, 2, 3}]
    bad = [n for n in range(300) if n % 10 in {2, 3}]
    with running(app, brokers) as member:
        wait_for(lambda: len(read_values(brokers, out)) >= len(good), "all outputs")
        wait_for(lambda: len(read_values(brokers, dlq)) >= len(bad), "all dead letters")
    assert numbers(brokers, out) == good
    assert numbers(brokers, dlq) == bad
    assert {n: tried[n] for n in (0, 1, 2, 3, 4)} == {0: 1, 1: 1, 2: 1, 3: 3, 4: 2}
    attempts = {(r.value, dict(r.headers)["penstock-dlq-attempts"]) for r in read_records(brokers, dlq)}
    assert {(b"2", b"1"), (b"3", b"3")} <= attempts
    assert len(of_kind(member.events, events.Skipped)) == 30
    # Nothing is left for the next one.
    seen = Running(app, brokers)
    produce(brokers, source, [1_000])
    wait_for(lambda: 1_000 in numbers(brokers, out), "the next record")
    seen.stop()
    assert [event.offset for event in of_kind(seen.events, events.Finished)] == [300]


def test_one_partition_is_worked_on_by_many_at_once(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source, app, at_once, most = make_topic(), App(group), [0], [0]

    @app.consume(source, mode="share", order="none", dead_letter=f"{group}.dlq", concurrency=16, members=3)
    async def handle(value: int) -> None:
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        await asyncio.sleep(0.01)
        at_once[0] -= 1

    produce(brokers, source, range(600))
    with running(app, brokers) as member:
        wait_for(lambda: len(of_kind(member.events, events.Finished)) >= 600, "all of it")
    assert most[0] > 8
    assert len({(event.offset) for event in of_kind(member.events, events.Finished)}) == 600


APP = """
import os, time
from penstock import App

app = App({group!r})
notes = os.open({notes!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

@app.consume({source!r}, mode="share", order="none", dead_letter={dlq!r}, concurrency=16)
def handle(value: int) -> None:
    time.sleep(0.002)
    os.write(notes, b"%d\\n" % value)
"""


def test_a_member_that_is_killed_loses_nothing(brokers: str, group: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    source, total, notes = make_topic(), 3_000, tmp_path / "notes"
    produce(brokers, source, range(total))
    # Locks last half a minute by default, which a killed member's records wait for.
    set_lock(brokers, group, milliseconds=15_000)
    (tmp_path / "shop.py").write_text(APP.format(group=group, source=source, notes=str(notes), dlq=f"{group}.dlq"))
    command = [sys.executable, "-m", "penstock", "run", "shop:app", "-b", brokers]

    def handled() -> set[int]:
        return {*map(int, notes.read_text().split())} if notes.exists() else set()

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    members = [start(), start()]
    try:
        wait_for(lambda: len(handled()) >= 500, "a start")
        members[0].kill()
        members[0].wait()
        wait_for(lambda: len(handled()) == total, "all of it")
    finally:
        for process in members:
            process.terminate()
            process.wait(WAIT_SECONDS)


def set_lock(brokers: str, group: str, *, milliseconds: int) -> None:
    resource = ConfigResource(ResourceType.GROUP, group)
    entry = ConfigEntry("share.record.lock.duration.ms", str(milliseconds), incremental_operation=AlterConfigOpType.SET)
    resource.add_incremental_config(entry)
    admin = AdminClient({"bootstrap.servers": brokers})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(WAIT_SECONDS)


def test_a_clean_stop_releases_unfinished_records(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source, app, held = make_topic(), App(group), threading.Event()

    @app.consume(source, mode="share", order="none", dead_letter=f"{group}.dlq", concurrency=8, drain_timeout="300ms")
    def handle(value: int) -> None:
        if not held.is_set():
            held.wait(WAIT_SECONDS)

    produce(brokers, source, range(8))
    first = Running(app, brokers)
    wait_for(lambda: of_kind(first.events, events.Started), "a start")
    wait_for(lambda: threading.active_count() > 8, "workers")
    first.stop()
    held.set()
    with running(app, brokers) as second:
        wait_for(lambda: len(of_kind(second.events, events.Finished)) == 8, "them to come again")
