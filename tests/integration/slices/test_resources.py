"""Resources in tasks of the Spark engine: kept from slice to slice, closed when they are not used any more."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.handler_reports import Notes
from kafka_helpers import CatchUp, MakeTopic, produce, read_values
from penstock import App, Record
from penstock.errors import CallbackError
from penstock.spark.tasks import worker_state


@pytest.fixture(autouse=True)
def own_worker(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The states of one Python worker, which this test may close."""
    states = type(worker_state._states)()
    monkeypatch.setattr(worker_state, "_states", states)
    return states


@pytest.mark.parametrize("options", [{}, {"order": "key"}, {"delivery": "exactly-once"}])
def test_a_python_worker_keeps_resources_from_slice_to_slice(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp, tmp_path: Path, own_worker: Any, options: Any
) -> None:
    source, out, notes, app = make_topic(), make_topic(), Notes(tmp_path / "notes"), App(group)

    @app.resource
    def db() -> Iterator[str]:
        notes.add("open db")
        yield "db"
        notes.add("close db")

    @app.resource(scope="partition")
    def cache(db: str) -> Iterator[list[int]]:
        notes.add("open cache")
        yield []
        notes.add("close cache")

    @app.around
    def add(record: Record, call: Any, db: str) -> Any:
        assert db == "db"
        return call() + 1000

    @app.consume(source, to=out, max_micro_batch=10, **options)
    def handle(value: int, db: str, cache: list[int]) -> int:
        cache.append(value)
        return len(cache)

    # One partition: here tasks are threads, while a Python worker runs one task at a time.
    produce(brokers, source, range(30))
    catch_up(app)
    found = sorted(int(value or b"") for value in read_values(brokers, out))
    if not options:
        # One cache for all slices of the partition.
        assert found == [*range(1001, 1031)]
    assert len(found) == 30
    assert notes.read().count("open db") == 1
    assert notes.read().count("open cache") == 1
    assert "close db" not in notes.read()
    for state in own_worker.values():
        state.close()
    assert notes.read()[-2:] == ["close cache", "close db"]


def test_async_resources_belong_to_the_loop_of_the_python_worker(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp, tmp_path: Path, own_worker: Any
) -> None:
    source, out, notes, app = make_topic(), make_topic(), Notes(tmp_path / "notes"), App(group)

    @app.resource
    async def pool() -> AsyncIterator[str]:
        notes.add("open pool")
        yield "pool"
        notes.add("close pool")

    @app.resource(scope="partition")
    async def cache(pool: str) -> AsyncIterator[list[int]]:
        yield []
        notes.add("close cache")

    @app.consume(source, to=out, max_micro_batch=10)
    async def handle(value: int, cache: list[int]) -> int:
        cache.append(value)
        return len(cache)

    produce(brokers, source, range(30))
    catch_up(app)
    assert sorted(int(value or b"") for value in read_values(brokers, out)) == [*range(1, 31)]
    assert notes.read() == ["open pool"]
    for state in own_worker.values():
        state.close()
    assert notes.read() == ["open pool", "close cache", "close pool"]


def test_a_partition_that_was_assigned_anew_has_a_new_resource(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source, out, app = make_topic(), make_topic(), App(group)

    @app.resource(scope="partition")
    def cache() -> Iterator[list[int]]:
        yield []

    @app.consume(source, to=out)
    def handle(value: int, cache: list[int]) -> int:
        cache.append(value)
        return len(cache)

    for _ in range(2):
        produce(brokers, source, range(5))
        catch_up(app)
    assert sorted(int(value or b"") for value in read_values(brokers, out)) == sorted([*range(1, 6)] * 2)


@pytest.mark.parametrize("options", [{}, {"order": "key"}, {"delivery": "exactly-once"}])
@pytest.mark.parametrize("scope", ["process", "worker"])
def test_a_resource_that_raises_stops_the_app_with_its_traceback(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp, scope: Any, options: Any
) -> None:
    source, app = make_topic(), App(group)

    @app.resource(scope=scope)
    def broken() -> str:
        raise ValueError("no connection")

    @app.consume(source, **options)
    def handle(value: int, broken: str) -> None: ...

    produce(brokers, source, range(5))
    with pytest.raises(CallbackError, match="The resource broken raised ValueError: no connection") as raised:
        catch_up(app)
    assert "in broken" in raised.value.traceback
