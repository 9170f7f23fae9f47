"""``app.progress()`` and ``app.commit()`` of the user's own app while a bench runs it."""

import asyncio
import gc
import pickle

import pytest

from penstock import App, Record
from penstock.app import NoControl, PartitionProgress
from penstock.errors import ConfigError, StateError
from penstock.testing import Bench


def test_a_handler_asks_its_own_app_how_far_it_is() -> None:
    app, seen = App("shop"), list[PartitionProgress]()

    @app.consume("orders")
    def handle(value: int) -> None:
        seen.extend(app.progress())

    bench = Bench(app)
    bench.produce("orders", 1)
    bench.produce("orders", 2)
    bench.run_until_idle()
    assert [(each.handler, each.group, each.topic, each.partition) for each in seen] == [
        ("handle", "shop", "orders", 0)
    ] * 2
    assert [(each.position, each.committed, each.end, each.lag, each.in_flight) for each in seen] == [
        (2, None, 2, 0, 2),
        (2, None, 2, 0, 1),
    ]
    bench.advance("1s")
    (after,) = app.progress()
    assert (after.committed, after.lag, after.in_flight) == (2, 0, 0)


def test_a_handler_commits_by_hand_on_its_own_app() -> None:
    app = App("shop")

    @app.consume("orders", commit="manual", commit_every="1h")
    async def handle(value: int, record: Record) -> None:
        await asyncio.sleep(0)
        if value == 2:  # the current record and those after it are not finished yet
            app.commit({("orders", 0): 2})

    bench = Bench(app)
    for number in range(4):
        bench.produce("orders", number)
    bench.run_until_idle()
    assert bench.committed("orders") == {0: 2}
    app.commit({("orders", 0): 4})
    bench.run_until_idle()
    assert bench.committed("orders") == {0: 4}
    with pytest.raises(StateError, match=r"This process does not own orders\[1\]"):
        app.commit({("orders", 1): 1})


def test_a_handler_that_commits_automatically_refuses_manual_commits() -> None:
    app = App("shop")
    app.consume("orders")(lambda _: None)
    bench = Bench(app)
    bench.run_until_idle()
    with pytest.raises(ConfigError, match="commits automatically"):
        app.commit({("orders", 0): 1})


def test_a_commit_by_hand_is_for_the_handler_that_commits_by_hand() -> None:
    app = App("shop")

    @app.consume("orders", group="automatic")
    def count(value: int) -> None: ...

    @app.consume("orders", commit="manual")
    def handle(value: int, record: Record) -> None: ...

    bench = Bench(app)
    bench.produce("orders", 1)
    bench.run_until_idle()
    app.commit({("orders", 0): 1})
    bench.run_until_idle()
    assert bench.committed("orders", group="shop") == {0: 1}


def test_the_app_answers_from_the_start_of_its_bench_to_the_end() -> None:
    app = App("shop")
    app.consume("orders")(lambda _: None)
    bench = Bench(app)
    for end in (bench.stop, bench.crash):
        with pytest.raises(StateError, match="App 'shop' is not running"):
            app.progress()
        bench.run_until_idle()
        assert len(app.progress()) == 1
        end()
    bench.run_until_idle()
    del bench, end
    gc.collect()
    with pytest.raises(StateError, match="App 'shop' is not running"):
        app.progress()


def test_two_benches_of_one_app_take_turns() -> None:
    app, ends = App("shop"), list[int]()

    @app.consume("orders")
    def handle(value: int) -> None:
        ends.append(app.progress()[0].end)

    first, second = Bench(app), Bench(app, registry="mock://any")
    first.produce("orders", 1)
    first.run_until_idle()
    second.produce("orders", 1)
    second.produce("orders", 2)
    second.run_until_idle()
    first.produce("orders", 2)
    first.produce("orders", 3)
    first.run_until_idle()
    assert ends == [1, 2, 2, 3, 3]


def test_a_bench_leaves_an_app_alone_that_an_engine_runs() -> None:
    app = App("shop")
    app.consume("orders")(lambda _: None)
    with (
        app.controlled_by(NoControl("It is an engine's.", "")),
        pytest.raises(StateError, match="is running already in this process"),
    ):
        Bench(app).run_until_idle()


def test_an_app_travels_without_the_engine_that_runs_it() -> None:
    app = App("shop")
    with app.controlled_by(NoControl("It is an engine's.", "")):
        travelled = pickle.loads(pickle.dumps(app))
    with pytest.raises(StateError, match="App 'shop' is not running"):
        travelled.progress()
