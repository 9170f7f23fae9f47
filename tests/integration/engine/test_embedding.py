"""Apps inside other programs: scripts, event loops, several apps in one process."""

import asyncio
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from kafka_helpers import QUICK, WAIT_SECONDS, MakeTopic, committed, lag, produce, wait_for
from penstock import NO_RETRY, App, Reject
from penstock.errors import HandlerError, ServerError, TopicError
from penstock.events import DeadLettered, Finished
from penstock.kafka import Cluster

SCRIPT = """
import threading
from functools import partial
from pathlib import Path

from penstock import App

app = App({group!r}, brokers={brokers!r})

@app.consume({source!r})
def handle(value: int) -> None:
    with Path({seen!r}).open("a") as file:
        file.write(f"{{value}}\\n")
    threading.Event().wait(0.01)

if __name__ == "__main__":
    {ending}
    print("the end of the script")
"""


def script(folder: Path, ending: str, **names: str) -> subprocess.Popen[str]:
    (folder / "script.py").write_text(SCRIPT.format(ending=ending, seen=str(folder / "seen"), **names), "utf-8")
    (folder / "seen").touch()
    return subprocess.Popen(
        [sys.executable, "script.py"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def seen_by(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "seen").read_text("utf-8").split()]


def test_one_app_runs_twice_in_a_row_and_repeats_nothing(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, seen = make_topic(2), list[int]()
    app = App(group, brokers=brokers, settings=QUICK)

    @app.consume(source)
    def handle(value: int) -> None:
        seen.append(value)

    for partition, values in enumerate([range(10), range(10, 20)]):
        produce(brokers, source, values, partition=partition)
        app.start()
        wait_for(lambda: len(app.progress()) == 2, "the partitions")
        wait_for(partial(set(values).issubset, seen), "the records")
        app.stop()
    assert sorted(seen) == list(range(20))
    assert lag(cluster, group, source) == 0


def test_two_apps_run_in_one_process_and_stop_on_their_own(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source, seen = make_topic(), {"one": list[int](), "other": list[int]()}
    apps = {name: App(f"{group}-{name}", brokers=brokers, settings=QUICK) for name in seen}

    @apps["one"].consume(source)
    def handle(value: int) -> None:
        seen["one"].append(value)

    @apps["other"].consume(source)
    async def handle_async(value: int) -> None:
        seen["other"].append(value)

    async def program() -> None:
        async with apps["one"], apps["other"]:
            produce(brokers, source, range(5))
            await asyncio.to_thread(wait_for, lambda: all(len(each) == 5 for each in seen.values()), "both apps")
            await asyncio.to_thread(apps["one"].stop)
            produce(brokers, source, range(5, 8))
            await asyncio.to_thread(wait_for, lambda: len(seen["other"]) == 8, "the other app")
            assert not apps["one"].is_running

    asyncio.run(program())
    assert seen == {"one": list(range(5)), "other": list(range(8))}


def test_a_failure_is_raised_where_the_app_is_awaited(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source = make_topic()
    app = App(group, brokers=brokers, settings=QUICK)

    @app.consume(source, retry=NO_RETRY)
    def handle(value: int) -> None:
        raise ValueError(f"no {value}")

    produce(brokers, source, range(1))
    app.start()
    with pytest.raises(HandlerError, match="no 0"):
        app.wait(timeout=WAIT_SECONDS)
    with pytest.raises(HandlerError, match="no 0"):
        asyncio.run(app.serve())
    with pytest.raises(HandlerError, match="no 0"):
        app.run()


def test_an_app_that_cannot_start_raises_in_start(brokers: str, group: str) -> None:
    app = App(group, settings={"socket.connection.setup.timeout.ms": 1_000})

    @app.consume(f"{group}-missing")
    def handle(value: int) -> None: ...

    with pytest.raises(TopicError, match="missing"):
        app.start(brokers=brokers)
    with pytest.raises(ServerError):
        app.start(brokers="127.0.0.1:1")
    assert not app.is_running


def test_a_handler_may_stop_its_app(brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic) -> None:
    source, errors = make_topic(), list[BaseException]()
    app = App(group, brokers=brokers, settings=QUICK)

    @app.consume(source)
    def handle(value: int) -> None:
        try:
            app.start()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            errors.append(error)
        app.stop()

    produce(brokers, source, range(3))
    app.run()
    assert "app.start() was called in a handler" in str(errors[0])
    assert committed(cluster, group, source) == {0: len(errors)}


def test_ctrl_c_ends_a_script_cleanly_and_the_next_run_repeats_nothing(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    source = make_topic()
    produce(brokers, source, range(300))
    names = {"group": group, "brokers": brokers, "source": source}
    process = script(tmp_path, "app.run()", **names)
    wait_for(lambda: len(seen_by(tmp_path)) > 20, "some records")
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=WAIT_SECONDS)
    assert (process.returncode, output) == (0, "the end of the script\n")
    assert errors == "Stopping cleanly. Press Ctrl+C or send the signal again to stop at once.\n"
    assert committed(cluster, group, source) == {0: len(seen_by(tmp_path))}
    process = script(tmp_path, "app.run(until_caught_up=True)", **names)
    assert process.communicate(timeout=WAIT_SECONDS) == ("the end of the script\n", "")
    assert seen_by(tmp_path) == list(range(300))


def test_a_script_that_ends_without_a_stop_stops_cleanly(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    source = make_topic()
    produce(brokers, source, range(300))
    ending = "app.start(); [threading.Event().wait(0.01) for _ in iter(lambda: Path('seen').stat().st_size > 50, True)]"
    process = script(tmp_path, ending, group=group, brokers=brokers, source=source)
    assert process.communicate(timeout=WAIT_SECONDS) == ("the end of the script\n", "")
    handled = seen_by(tmp_path)
    assert 0 < len(handled) < 300
    assert committed(cluster, group, source) == {0: len(handled)}


def test_a_cancelled_serve_finishes_the_record_in_progress(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, entered, release = make_topic(), threading.Event(), threading.Event()
    app = App(group, brokers=brokers, settings=QUICK)
    threads: list[threading.Thread] = []

    @app.consume(source)
    async def handle(value: int) -> None:
        threads.append(threading.current_thread())
        entered.set()
        await asyncio.to_thread(release.wait, WAIT_SECONDS)

    produce(brokers, source, range(1))

    async def program() -> None:
        serving = asyncio.create_task(app.serve())
        await asyncio.to_thread(entered.wait, WAIT_SECONDS)
        serving.cancel()
        await asyncio.sleep(0)
        assert not serving.done()
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await serving

    asyncio.run(program())
    assert threads[0] is not threading.main_thread()
    assert committed(cluster, group, source) == {0: 1}


def test_hooks_surround_a_run_and_listeners_get_the_dead_letters(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, calls = make_topic(), list[str]()
    app = App(group, brokers=brokers, settings=QUICK)
    app.on_start(lambda: calls.append(f"start at {committed(cluster, group, source)}"))
    app.on_stop(lambda: calls.append(f"stop at {committed(cluster, group, source)}"))

    @app.on_event(DeadLettered, Finished)
    async def note(event: DeadLettered | Finished) -> None:
        calls.append(f"{type(event).__name__} {event.offset}")

    @app.consume(source, dead_letter=f"{source}.dlq")
    def handle(value: int) -> None:
        if value == 1:
            raise Reject("no")

    produce(brokers, source, range(3))
    app.run(until_caught_up=True)
    assert (calls[0], calls[-1]) == ("start at {}", "stop at {0: 3}")
    assert sorted(calls[1:-1]) == ["DeadLettered 1", "Finished 0", "Finished 2"]


def test_a_start_hook_that_raises_ends_penstock_run_with_its_traceback_before_a_record(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    source = make_topic()
    produce(brokers, source, range(3))
    ending = "pass"
    script(tmp_path, ending, group=group, brokers=brokers, source=source).communicate(timeout=WAIT_SECONDS)
    with (tmp_path / "script.py").open("a", encoding="utf-8") as file:
        file.write("\n@app.on_start\ndef connect() -> None:\n    raise ConnectionError('no database')\n")
    command = [sys.executable, "-m", "penstock", "run", "script:app"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=WAIT_SECONDS)
    assert done.returncode == 1
    assert "error: The on_start hook connect raised ConnectionError: no database." in done.stderr
    assert "raise ConnectionError('no database')" in done.stderr
    assert seen_by(tmp_path) == []
    assert committed(cluster, group, source) == {}
