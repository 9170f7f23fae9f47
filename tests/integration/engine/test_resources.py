"""Resources and middleware on a real broker: when they are made, and when they are closed."""

import os
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import resource_handlers
from kafka_helpers import (
    QUICK,
    WAIT_SECONDS,
    MakeTopic,
    Running,
    catch_up,
    committed,
    of_kind,
    produce,
    read_values,
    running,
    wait_for,
)
from penstock import App, Record
from penstock.core.reports import events
from penstock.errors import CallbackError, HandlerError
from penstock.kafka import Cluster


def test_one_resource_for_the_process_and_one_for_each_worker(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source, out, seen = make_topic(), make_topic(), []
    produce(brokers, source, range(20))
    app = App(group)
    barrier = threading.Barrier(2)

    @app.resource
    def db() -> Iterator[object]:
        seen.append("open db")
        yield object()
        seen.append("close db")

    @app.resource(scope="worker")
    def session(db: object) -> Iterator[str]:
        name = threading.current_thread().name
        seen.append(f"open {name}")
        yield name
        assert threading.current_thread().name == name
        seen.append(f"close {name}")

    @app.consume(source, to=out, concurrency=2, order="none")
    def handle(value: int, session: str, db: object, record: Record) -> str:
        if record.offset < 2:
            barrier.wait(WAIT_SECONDS)  # both workers have one
        assert session == threading.current_thread().name
        return session

    catch_up(app, brokers)
    assert len(read_values(brokers, out)) == 20
    names = {"handle-worker-1", "handle-worker-2"}
    assert seen[0] == "open db"
    assert set(seen[1:3]) == {f"open {name}" for name in names}
    assert set(seen[3:5]) == {f"close {name}" for name in names}
    assert seen[5:] == ["close db"]


def test_async_resources_belong_to_the_event_loop_of_the_handler(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    import asyncio  # noqa: PLC0415

    source, out, seen = make_topic(), make_topic(), []
    produce(brokers, source, range(5))
    app = App(group)

    @app.resource
    def name() -> str:
        return "pool"

    @app.resource
    async def pool(name: str) -> AsyncIterator[Any]:
        async with asyncio.timeout(WAIT_SECONDS):
            seen.append(f"open {name}")
            yield asyncio.get_running_loop()
        seen.append(f"close {name}")

    @app.around
    async def check(record: Record, call: Any, pool: Any) -> Any:
        assert pool is asyncio.get_running_loop()
        return await call()

    @app.consume(source, to=out)
    async def handle(value: int, pool: Any) -> int:
        assert pool is asyncio.get_running_loop()
        return value

    catch_up(app, brokers)
    assert len(read_values(brokers, out)) == 5
    assert seen == ["open pool", "close pool"]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_resource_that_raises_stops_the_app_before_anything_is_consumed(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, *, is_async: bool
) -> None:
    source, seen = make_topic(), []
    produce(brokers, source, range(5))
    app = App(group)

    def broken() -> str:
        raise ValueError("no connection")

    async def broken_async() -> str:
        raise ValueError("no connection")

    @app.consume(source)
    def other(value: int) -> None:
        seen.append(value)

    if is_async:
        app.resource(broken_async)

        @app.consume(make_topic(), group=f"{group}-async")
        async def handle_async(value: int, broken_async: str) -> None: ...

    else:
        app.resource(broken)

        @app.consume(make_topic(), group=f"{group}-def")
        def handle(value: int, broken: str) -> None: ...

    with pytest.raises(CallbackError, match="raised ValueError: no connection") as raised:
        catch_up(app, brokers)
    assert "in broken" in raised.value.traceback
    assert seen == []
    assert committed(cluster, group, source) == {}


def test_resources_close_after_an_error_and_an_error_of_closing_does_not_hide_it(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    source, seen = make_topic(), []
    produce(brokers, source, range(5))
    app = App(group)

    @app.resource
    def first() -> Iterator[None]:
        yield
        seen.append("close first")

    @app.resource
    def second(first: None) -> Iterator[None]:
        yield
        seen.append("close second")
        raise ValueError("cannot close")

    @app.consume(source)
    def handle(value: int, second: None) -> None:
        raise RuntimeError("bad record")

    app.handlers  # noqa: B018 - declared
    with pytest.raises(HandlerError, match="bad record") as raised:
        catch_up(App.variant(app, group, lambda _: {}), brokers)
    assert seen == ["close second", "close first"]
    assert any("cannot close" in note for note in raised.value.__notes__)


@pytest.mark.parametrize("scope", ["process", "worker"])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_shutdown_that_never_ends_is_reported_and_given_up(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, scope: Any, *, is_async: bool
) -> None:
    import asyncio  # noqa: PLC0415

    source, never = make_topic(), threading.Event()
    produce(brokers, source, range(5))
    app = App(group)

    def endless() -> Iterator[None]:
        yield
        never.wait()

    async def endless_async() -> AsyncIterator[None]:
        yield
        await asyncio.Event().wait()

    if is_async:
        app.resource(scope=scope)(endless_async)

        @app.consume(source, drain_timeout="300ms")
        async def handle_async(value: int, endless_async: None) -> None: ...

    else:
        app.resource(scope=scope)(endless)

        @app.consume(source, drain_timeout="300ms")
        def handle(value: int, endless: None) -> None: ...

    with pytest.raises(CallbackError, match=r"did not close within 0\.3 s"):
        catch_up(app, brokers)
    never.set()
    assert committed(cluster, group, source) == {0: 5}


@pytest.mark.parametrize("is_async", [False, True])
def test_the_resource_of_a_partition_closes_after_its_last_commit_when_it_is_revoked(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, *, is_async: bool
) -> None:
    source, opened, closed = make_topic(2), list[int](), list[tuple[int, dict[int, int]]]()

    def make(name: str) -> App:
        app = App(group)

        def cache() -> Iterator[list[int]]:
            state: list[int] = []
            opened.append(len(opened))
            yield state
            closed.append((sum(state), committed(cluster, group, source)))

        async def cache_async() -> AsyncIterator[list[int]]:
            state: list[int] = []
            opened.append(len(opened))
            yield state
            closed.append((sum(state), committed(cluster, group, source)))

        if is_async:
            app.resource(scope="partition")(cache_async)

            @app.consume(source, settings=QUICK, commit_every="1h")
            async def handle_async(value: int, cache_async: list[int]) -> None:
                cache_async.append(1)

        else:
            app.resource(scope="partition")(cache)

            @app.consume(source, settings=QUICK, commit_every="1h")
            def handle(value: int, cache: list[int]) -> None:
                cache.append(1)

        return app

    produce(brokers, source, range(10), partition=0)
    produce(brokers, source, range(20), partition=1)
    with running(make("first"), brokers) as first:
        wait_for(lambda: len(opened) == 2, "both partitions")
        wait_for(lambda: sum(e.read for e in of_kind(first.events, events.Progressed)) == 30, "all records")
        assert closed == []
        with running(make("second"), brokers) as second:
            # Cooperative: one partition moves.
            wait_for(lambda: len(closed) == 1, "the revoked partition to close")
            ((count, commits),) = closed
            assert count in commits.values()
            wait_for(lambda: of_kind(second.events, events.Assigned), "the partition to move")
        # A stop in the middle of a rebalance is the subject of other tests.
        wait_for(lambda: len(of_kind(first.events, events.Assigned)) == 3, "the partition to come back")
    assert sorted(count for count, _ in closed) == [10, 20]
    assert all(count in commits.values() for count, commits in closed), closed


def test_worker_processes_make_their_own_and_close_them(
    brokers: str, group: str, make_topic: MakeTopic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(resource_handlers.FOLDER, str(tmp_path))
    source, out = make_topic(), make_topic()
    produce(brokers, source, range(10))
    app = App(group)
    app.resource(resource_handlers.db)
    app.resource(scope="worker")(resource_handlers.session)
    app.around(resource_handlers.timed)
    app.consume(source, to=out, workers="process", concurrency=2, order="none")(resource_handlers.name_session)
    catch_up(app, brokers)
    lines = [(value or b"").decode().split() for value in read_values(brokers, out)]
    assert len(lines) == 10
    processes = set()
    for line in lines:
        # timed 3 session with db of PID in PID
        assert line[0] == "timed"
        assert line[-1] == line[-3]
        processes.add(int(line[-1]))
    assert os.getpid() not in processes
    notes = (tmp_path / "notes").read_text("utf-8").splitlines()
    for pid in processes:
        ours = [line.rsplit(" ", 1)[0] for line in notes if line.endswith(f" {pid}")]
        assert ours == ["open db", "open session", "close session", "close db"]


def test_a_resource_that_raises_in_a_worker_process_stops_the_app_with_its_traceback(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic()
    produce(brokers, source, range(5))
    app = App(group)
    app.resource(resource_handlers.broken)
    app.consume(source, workers="process", concurrency=1)(resource_handlers.take_broken)
    with pytest.raises(CallbackError, match="The resource broken raised ValueError: no connection") as raised:
        catch_up(app, brokers)
    assert "in broken" in raised.value.traceback
    assert committed(cluster, group, source) in ({}, {0: 0})


def test_a_worker_process_whose_shutdown_never_ends_is_killed_and_reported(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, out = make_topic(), make_topic()
    produce(brokers, source, range(3))
    app = App(group)
    app.resource(resource_handlers.endless)
    app.consume(source, to=out, workers="process", concurrency=1, drain_timeout="2s")(resource_handlers.take_endless)
    with pytest.raises(CallbackError, match=r"did not close within 2 s"):
        catch_up(app, brokers)
    assert len(read_values(brokers, out)) == 3
    assert committed(cluster, group, source) == {0: 3}


def test_share_groups_have_resources_and_middleware(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source, dlq, seen, done = make_topic(), make_topic(), [], threading.Event()
    app = App(group)

    @app.resource
    def db() -> Iterator[str]:
        seen.append("open db")
        yield "db"
        seen.append("close db")

    @app.resource(scope="worker")
    def session(db: str) -> Iterator[str]:
        yield f"session of {db}"
        seen.append("close session")

    @app.around
    def timed(record: Record, call: Any) -> Any:
        return call(value=f"timed {call.arguments['value']}")

    @app.consume(source, mode="share", order="none", dead_letter=dlq, concurrency=1)
    def handle(value: str, session: str) -> None:
        seen.append(f"{value} {session}")
        done.set()

    engine = Running(app, brokers)

    def is_handled() -> bool:
        # A share group begins at the end of the log.
        produce(brokers, source, ["one"])
        return done.is_set() or not engine.is_alive

    wait_for(is_handled, "a record")
    engine.stop()
    assert seen[0] == "open db"
    assert "timed one session of db" in seen
    assert seen[-2:] == ["close session", "close db"]
