"""Events in the terminal and in an events file."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.cli.console.progress_bars import Meter, Steps
from penstock.cli.console.screen import Screen
from penstock.cli.runtime.event_listeners import EventsFile, Fanout, TerminalListener, Totals
from penstock.core.reports import events
from penstock.errors import ConfigError

STARTED = events.Started(engine="local", group="g", handler="h", topics=("a", "b"), lag=1_000)
STOPPED = events.Stopped(group="g", handler="h", read=1_000, written=900, dead_lettered=60, skipped=40, seconds=2.5)


def letter(offset: int, traceback: str = "") -> events.DeadLettered:
    return events.DeadLettered(
        member="m",
        epoch=1,
        group="g",
        topic="t",
        partition=0,
        offset=offset,
        attempt=1,
        to="dlq",
        reason="ValueError: [bold]x",
        traceback=traceback,
    )


def narrate(*seen: events.Event, dry_run: bool = False) -> str:
    text = io.StringIO()
    narrator = TerminalListener(Screen(file=text, width=200), dry_run=dry_run)
    for event in seen:
        narrator(event)
    return text.getvalue()


@pytest.mark.parametrize(
    ("engine", "order", "says"),
    [
        ("local", "partition", "behind; 32 at once, in order for each partition"),
        ("local", "key", "behind; 32 at once, in order for each key"),
        ("spark", "none", "behind; 32 at once in each task, in any order"),
    ],
)
def test_the_first_line_says_how_many_records_run_at_once_and_their_order(engine: str, order: str, says: str) -> None:
    assert says in narrate(replace(STARTED, engine=engine, order=order, concurrency=32))


def test_the_narrator_says_what_matters_in_words() -> None:
    text = narrate(
        STARTED,
        events.Joining(
            group="g", handler="h", seconds=5.0, reason="Joining group 'g': the broker counts 1 other member."
        ),
        events.Error(group="g", reason="No Kafka broker answers at b. Penstock retries.", fatal=False),
        events.Lost(member="m", group="g", topic="t", partition=3, epoch=1),
        events.CommitFailed(member="m", group="g", topic="t", partition=1, offset=5, reason="not now"),
        events.HotKey(
            member="m", group="g", topic="t", partition=1, key="anna", epoch=1, waiting=900, of=1_000, seconds=10.0
        ),
        STOPPED,
    )
    assert "t[1]: 900 of 1,000 waiting records have the key 'anna'" in text
    assert "h: consuming a, b as group g on the local engine, up to 1,000 records behind" in text
    assert "No Kafka broker answers at b. Penstock retries." in text
    assert "Joining group 'g': the broker counts 1 other member." in text
    assert "t[3]: lost" in text
    assert "t[1]@5: the broker refused a commit: not now" in text
    assert "h: stopped: 1,000 read, 900 written, 60 dead-lettered, 40 skipped in 2.5 s" in text


def test_the_end_of_a_dry_run_says_what_was_not_written() -> None:
    text = narrate(STOPPED, dry_run=True)
    assert text == "h: stopped: 1,000 read, 900 outputs and 60 dead letters not written, 40 skipped in 2.5 s\n"


def test_rows_that_a_pipeline_does_not_keep_are_told_and_a_flood_is_only_counted() -> None:
    text = narrate(
        events.ExpectationFailed(group="g", handler="h", expectation="amount > 0", rows=1),
        *(events.LateRows(group="g", handler="h", rows=1_200) for _ in range(9)),
    )
    assert "h: 1 row did not meet the expectation 'amount > 0'" in text
    assert text.count("h: Spark dropped 1,200 rows below the watermark") == 4
    assert text.count("further rows of that kind are only counted") == 1


def test_a_backfill_claims_no_group_and_each_stop_names_its_pipeline() -> None:
    text = narrate(
        events.Started(engine="spark", group="g", handler="h", topics=("a",), lag=1, backfill=True),
        events.RangeRead(handler="h", topic="a", partition=0, start=4, end=5),
        events.Stopping(group="g", handler="h", reason="asked to"),
        events.Stopping(group="g", handler="i.large", reason="asked to"),
    )
    assert text.splitlines() == [
        "h: backfill of up to 1 record of a; no offsets are committed",
        "h: a[0] from 4 up to 5: up to 1 record",
        "h: stopping (asked to): finishing the records in progress",
        "i.large: stopping (asked to): finishing the records in progress",
    ]


def test_a_flood_of_dead_letters_is_shown_by_a_few_and_printed_as_it_is() -> None:
    text = narrate(*(letter(n) for n in range(100)))
    assert text.count("dead letter to dlq") == 5
    assert "ValueError: [bold]x" in text
    assert text.count("only counted") == 1


def test_the_events_file_has_every_event_at_once(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    file, totals = EventsFile(path), Totals()
    emit = Fanout([file, totals])
    for event in (STARTED, letter(1), STOPPED):
        emit(event)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["started", "dead_lettered", "stopped"]
    assert all(line["ts"] > 0 for line in lines)
    assert totals.stopped == [STOPPED]
    file.close()


def test_an_events_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written: No such file or directory"):
        EventsFile(tmp_path / "missing" / "events.jsonl")


def test_the_meter_counts_both_engines_and_several_handlers() -> None:
    meter = Meter(Screen(file=io.StringIO()))
    meter(STARTED)
    for handler, read, dead_letters in (("one", 10, 1), ("two", 5, 0), ("one", 30, 2)):
        meter(events.Progressed(
            group="g", handler=handler, read=read, written=0, dead_lettered=dead_letters, skipped=0
        ))  # fmt: skip
    (task,) = meter._progress.tasks
    assert (task.total, task.completed, task.fields["dead_letters"]) == (1_035, 35, 2)
    # The lag that Spark has measured replaces the lag at the start.
    meter(events.BatchFinished(
        group="g", handler="h", batch=7, read=100, written=0, dead_lettered=5, skipped=0, seconds=1, lag=5_000
    ))  # fmt: skip
    meter(events.Progressed(group="g", handler="h", read=100, written=0, dead_lettered=5, skipped=0))
    (task,) = meter._progress.tasks
    assert (task.total, task.completed, task.fields["dead_letters"]) == (5_135, 135, 7)
    assert task.description == "batch 7, 5,000 behind"


def test_skipped_offsets_and_restarts_are_printed() -> None:
    text = io.StringIO()
    narrator = TerminalListener(Screen(file=text, width=200))
    narrator(events.OffsetOutOfRange(
        group="g", member="spark", topic="orders", partition=1, offset=4, low=10, high=90, moved_to=10, skipped=6
    ))  # fmt: skip
    narrator(events.Restarting(group="g", handler="ship", attempt=1, reason="A Python process died.", seconds=1.5))
    assert text.getvalue() == (
        "orders[1]@4: retention has deleted this record; the log begins at 10. Consuming continues at 10; 6 offsets "
        "are skipped.\n"
        "ship restarts in 1.5 s: A Python process died.\n"
    )


def test_each_step_is_printed_once() -> None:
    text = io.StringIO()
    with Steps(Screen(file=text, width=80)) as steps:
        for done in range(3):
            steps.step("Producing", done=done, total=3)
        steps.step("Comparing [both]")
    assert text.getvalue() == "• Producing\n• Comparing [both]\n"
    with Steps(Screen(file=text), quiet=True) as steps:
        steps.step("unheard")
    assert "unheard" not in text.getvalue()


def trace(function: str, message: str = "x") -> str:
    line = f'  File "shop.py", line 7, in {function}'
    return f"Traceback (most recent call last):\n{line}\n    charge()\nValueError: {message}"


def test_a_traceback_is_shown_in_full_the_first_time_and_then_counted() -> None:
    seen = [letter(offset, trace("ship", str(offset))) for offset in range(50)]
    text = narrate(*seen, letter(50, trace("pay")), STOPPED)
    assert text.count("Traceback (most recent call last):") == 2
    assert '      File "shop.py", line 7, in ship\n        charge()\n    ValueError: 0\n' in text
    assert "in pay" in text
    assert '50 times ValueError, File "shop.py", line 7, in ship' in text
    assert "1 times" not in text


def test_generated_code_that_raises_everywhere_does_not_flood_the_terminal() -> None:
    text = narrate(*(letter(offset, trace(f"f{offset}")) for offset in range(1_000)), STOPPED)
    assert text.count("Traceback") == 20
    assert "980 times other errors" in text


def test_the_error_that_stops_the_app_is_shown_with_its_traceback_unless_that_was_seen() -> None:
    stop = events.Error(group="g", reason="Handler ship failed.", fatal=True, traceback=trace("ship"))
    assert narrate(stop).count("Traceback") == 1
    assert narrate(letter(1, trace("ship")), stop).count("Traceback") == 1


def test_a_traceback_cannot_drive_the_terminal() -> None:
    text = narrate(letter(1, trace("ship", "\x1b[2J\u202eevil\rerror: all is well")))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\r" not in text
    assert "\\x1b[2J" in text


def test_a_download_is_counted_in_megabytes() -> None:
    text = io.StringIO()
    with Steps(Screen(file=text, width=120, force_terminal=True, color_system=None)) as steps:
        steps.step("Fetching Kafka", done=10_200_000, total=45_000_000, unit="bytes")
    assert "10.2 of 45.0 MB" in text.getvalue()
    assert "records" not in text.getvalue()


def test_a_step_does_not_keep_the_total_of_the_one_before() -> None:
    text = io.StringIO()
    with Steps(Screen(file=text, width=120, force_terminal=True, color_system=None)) as steps:
        steps.step("Fetching Kafka", done=45_000_000, total=45_000_000, unit="bytes")
        steps.step("Preparing the data folder")
        steps.step("Waiting for the brokers", total=1, unit="brokers")
    after = text.getvalue().partition("• Preparing")[2].partition("Preparing the data folder ")[2]
    assert "45,000,000" not in after
    assert " of " not in after, "a single broker is there or not"
    assert ":" not in after, "no time is left of what is not counted"


def test_the_counts_of_a_step_stay_on_one_line() -> None:
    text = io.StringIO()
    with Steps(Screen(file=text, width=80, force_terminal=True, color_system=None)) as steps:
        steps.step("Running the app on the local engine")
        steps.event(replace(STARTED, lag=100_000))
        steps.event(events.Progressed(group="g", handler="h", read=91_035, written=0, dead_lettered=1_064, skipped=0))
    assert "91,035 of 100,000, 1,064 dead letters" in text.getvalue()


@pytest.mark.parametrize(
    ("offset", "moved_to", "skipped", "reported"),
    [
        (
            500,
            0,
            0,
            "recreated, and this offset belongs to the old topic. Consuming continues at 0",
        ),
        (5_000, 0, 0, "the log ends at 600: the topic was recreated, or this offset is not written yet."),
        (5_000, 600, 600, "Consuming continues at 600; 600 offsets are skipped."),
        (500, 1, 1, "1 offset is skipped."),
    ],
)
def test_the_reason_for_a_moved_offset_is_right(offset: int, moved_to: int, skipped: int, reported: str) -> None:
    moved = events.OffsetOutOfRange(
        group="g",
        member="m",
        topic="t",
        partition=0,
        offset=offset,
        low=0,
        high=600,
        moved_to=moved_to,
        skipped=skipped,
    )
    assert reported in narrate(moved)


def routed(*routes: str, otherwise: str | None = None) -> events.Routed:
    return events.Routed(group="g", handler="+".join(routes), routes=routes, otherwise=otherwise)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (routed("a", "b"), "a+b: tries a, b in this order; the last one takes every record that is left"),
        (routed("a", "b", otherwise="dead_letter"), "a record that none of them takes becomes a dead letter"),
        (routed("a", "b", otherwise="stop"), "a record that none of them takes stops the app"),
        (routed("a", "b", otherwise="skip"), "a record that none of them takes is skipped"),
        (
            routed("a", otherwise="stop"),
            "a: takes the records of its condition; a record that it does not take stops",
        ),
    ],
)
def test_the_start_says_what_happens_to_records_that_no_handler_takes(event: events.Routed, line: str) -> None:
    assert line in narrate(event)


def test_routes_are_named_in_dead_letters_and_counted_at_the_end() -> None:
    counts = {"read": 3, "written": 1, "dead_lettered": 1, "skipped": 0}
    text = narrate(
        routed("a", "b"),
        replace(letter(7), handler="b"),
        events.RouteProgressed(group="g", handler="a", **counts),
        events.RouteProgressed(group="g", handler="b", **{**counts, "read": 4}),
        replace(STOPPED, handler="a+b"),
    )
    assert "b: t[0]@7: dead letter to dlq" in text
    assert "    a: 3 read, 1 written, 1 dead-lettered, 0 skipped\n    b: 4 read" in text
