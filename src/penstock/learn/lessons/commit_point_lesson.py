"""Lesson 6: many workers on one partition, and the commit point."""

import threading
import time
from collections.abc import Sequence
from typing import Any

from penstock.app import App
from penstock.core.progress.offset_map import UnreadableMapError, decode
from penstock.core.records.record import Record
from penstock.learn.picture import FactTable, Grid, GridRow, LessonStep, Mark, offset_columns, pointer_row
from penstock.learn.sandbox import Sandbox

_KEYS = ("anna", "ben", "carl", "dora", "emil")
_RECORDS = 15
_SLOW_KEY = "carl"
_DRAIN = "200ms"
_WORK_SECONDS = 0.01
_LEGEND = {
    Mark.DONE: "finished",
    Mark.RUNNING: "in progress",
    Mark.WAITING: "waits for its key",
    Mark.POINTER: "committed",
}


def run(sandbox: Sandbox) -> dict[str, Any]:
    topic, group = sandbox.topic("orders"), sandbox.group("shop")
    keys = [_KEYS[number % len(_KEYS)] for number in range(_RECORDS)]
    sandbox.produce(topic, [f"order {n}" for n in range(_RECORDS)], keys=keys)
    slow = [offset for offset, key in enumerate(keys) if key == _SLOW_KEY]
    quick = [offset for offset, key in enumerate(keys) if key != _SLOW_KEY]
    release = threading.Event()
    sandbox.keep(release.set)
    first, threads = _run_with_a_stuck_key(sandbox, topic, group, quick, release)
    sandbox.show(_parallel_step(first, keys, threads))
    sandbox.show(_map_step(first))
    release.set()
    again: list[int] = []
    sandbox.catch_up(_app(topic, group, again, set(), release))
    sandbox.show(_restart_step(first, again))
    return {
        **first,
        "slow": slow,
        "threads": threads,
        "again": sorted(again),
        "committed_at_the_end": sandbox.committed(group, topic),
    }


def _run_with_a_stuck_key(
    sandbox: Sandbox, topic: str, group: str, quick: Sequence[int], release: threading.Event
) -> tuple[dict[str, Any], int]:
    """Run the app until Kafka has every finished record in the metadata of the commit; then stop it."""
    handled: list[int] = []
    threads: set[str] = set()
    app = _app(topic, group, handled, threads, release)
    with sandbox.running(app):
        facts = sandbox.wait_until(
            lambda: _committed(sandbox, group, topic, finished=len(quick)), "the finished records are in the commit"
        )
    return facts, len(threads)


def _app(topic: str, group: str, handled: list[int], threads: set[str], release: threading.Event) -> App:
    app = App(group)

    @app.consume(topic, order="key", concurrency=8, commit_every="100ms", drain_timeout=_DRAIN)
    def handle(record: Record) -> None:
        threads.add(threading.current_thread().name)
        if record.key == _SLOW_KEY.encode() and not release.is_set():
            release.wait()
            return
        time.sleep(_WORK_SECONDS)
        handled.append(record.offset)

    return app


def _committed(sandbox: Sandbox, group: str, topic: str, *, finished: int) -> dict[str, Any] | None:
    """What the group has committed; None until so many records are finished."""
    found = sandbox.cluster.commits(group, [(topic, 0)]).get((topic, 0))
    if found is None:
        return None
    offset, metadata = found
    try:
        ranges = decode(offset, metadata)
    except UnreadableMapError:
        return None
    above = [number for first, end in ranges for number in range(first, end)]
    if offset + len(above) < finished:
        return None
    return {"committed": offset, "finished_above": above, "metadata_bytes": len(metadata)}


def _grid(facts: dict[str, Any], title: str) -> Grid:
    point, above = facts["committed"], {*facts["finished_above"]}
    marks = [
        Mark.DONE if offset < point or offset in above else Mark.RUNNING if offset == point else Mark.WAITING
        for offset in range(_RECORDS)
    ]
    rows = (GridRow("orders", tuple(marks)), pointer_row("committed", point, width=_RECORDS))
    return Grid(title, offset_columns(_RECORDS), rows, _LEGEND)


def _parallel_step(facts: dict[str, Any], keys: Sequence[str], threads: int) -> LessonStep:
    return LessonStep(
        "Many workers on one partition",
        f'An app with order="key" and concurrency=8 handles {_RECORDS} records of {len({*keys})} keys, all in one '
        f"partition. The handler hangs at the first record of {_SLOW_KEY}, offset {facts['committed']}.",
        (_grid(facts, "orders, partition 0"),),
        f"{threads} workers handled records of one partition. The stuck record delays only its own key; all other keys "
        "are finished. The committed offset stays at the lowest unfinished record: the commit point.",
    )


def _map_step(facts: dict[str, Any]) -> LessonStep:
    rows = (
        ("committed offset", str(facts["committed"])),
        ("metadata", f"{facts['metadata_bytes']} bytes"),
        ("finished above it", " ".join(map(str, facts["finished_above"]))),
    )
    return LessonStep(
        "One committed offset, and what is finished above it",
        "Kafka keeps one offset for each partition, and up to 4,096 bytes of text beside it. This is the commit of the "
        "group, as Kafka returns it:",
        (FactTable("the commit of the group", ("", ""), rows),),
        "The metadata is the offset map: Penstock writes into it which records above the commit point are finished.",
    )


def _restart_step(facts: dict[str, Any], again: Sequence[int]) -> LessonStep:
    marks = dict.fromkeys(again, Mark.AGAIN)
    row = GridRow("orders", tuple(marks.get(offset, Mark.DONE) for offset in range(_RECORDS)))
    legend = {Mark.DONE: "finished before the restart", Mark.AGAIN: "handled after it"}
    return LessonStep(
        "After a restart, only the unfinished records are handled",
        "The app was stopped while the record hung, and started again without the fault.",
        (Grid("orders, partition 0", offset_columns(_RECORDS), (row,), legend),),
        f"It handled {len(again)} of {_RECORDS - facts['committed']} records above the commit point: it read the map, "
        "and left out what was finished. A client without the map would handle all of them again.",
    )
