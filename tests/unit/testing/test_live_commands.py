"""Commands to a running app on the bench: the real dispatcher with the bench's time."""

import asyncio
from collections.abc import Callable

import pytest

from penstock import App, Record
from penstock.core.reports.events import Commanded, Dispatched, Paused, Resumed
from penstock.errors import ConfigError, PenstockError, StateError
from penstock.testing import Bench

ORDERS = [("orders", 0), ("orders", 1)]


def app_of(seen: list[int], **options: object) -> App:
    app = App("shop")

    @app.consume("orders", **{"order": "key", **options})  # type: ignore[arg-type]
    def ship(order: int) -> None:
        seen.append(order)
        if order < 0:
            app.pause()

    return app


def produce(bench: Bench, *orders: int, partition: int = 0) -> None:
    for order in orders:
        bench.produce("orders", order, key=f"key-{order % 3}", partition=partition)


@pytest.mark.parametrize("options", [{}, {"order": "partition"}, {"order": "none"}])
def test_a_paused_app_hands_out_nothing_commits_what_is_finished_and_resumes(options: dict[str, object]) -> None:
    seen: list[int] = []
    app = app_of(seen, **options)
    bench = Bench(app)
    produce(bench, 1, 2, -3, 4, 5)
    bench.run_until_idle()
    handled, handed_out = [*seen], len(bench.events_of(Dispatched))
    assert -3 in handled, "the handler that called app.pause() has ended"
    assert len(handled) < 5, "records that a worker had not begun are taken back"
    produce(bench, *range(10, 20))
    bench.advance("1h")
    assert (seen, len(bench.events_of(Dispatched))) == (handled, handed_out)
    assert sum(each.in_flight for each in app.progress()) <= 5, "it fetches nothing either"
    app.resume()
    bench.advance("2s")
    assert sorted(seen) == [-3, 1, 2, 4, 5, *range(10, 20)]
    assert bench.lag("orders") == 0


@pytest.mark.parametrize("end", [Bench.rebalance, Bench.stop])
def test_a_partition_that_a_paused_app_gives_up_is_not_fetched_once_more(end: Callable[[Bench], None]) -> None:
    seen: list[int] = []
    app = app_of(seen)
    bench = Bench(app)
    produce(bench, 1)
    bench.run_until_idle()
    app.pause()
    produce(bench, 2, 3)
    bench.run_until_idle()
    end(bench)
    assert seen == [1]
    assert bench.events_of(Resumed) == []


def test_finished_work_is_committed_while_the_app_is_paused() -> None:
    app, gate = App("shop"), asyncio.Event()

    @app.consume("orders")
    async def ship(order: int) -> None:
        await gate.wait()

    bench = Bench(app)
    produce(bench, 1, 2, 3)
    bench.run_until_idle()
    app.pause()
    gate.set()
    bench.advance("1m")
    assert bench.committed("orders") == {0: 1}, "the record in progress, and no other one"


@pytest.mark.parametrize("lose", [(), ORDERS])
@pytest.mark.parametrize("delivery", ["at-least-once", "at-most-once"])
def test_a_pause_survives_a_rebalance(lose: list[tuple[str, int]], delivery: str) -> None:
    seen: list[int] = []
    app = app_of(seen, delivery=delivery)
    bench = Bench(app, partitions=2)
    bench.run_until_idle()
    app.pause(partitions=[("orders", 1)])
    produce(bench, 1, 2)
    produce(bench, 11, 12, partition=1)
    bench.advance("1s")
    bench.rebalance(lose=lose)
    bench.advance("1m")
    assert sorted(seen) == [1, 2], "the other partition is handled"
    app.resume("ship", partitions=[("orders", 1)])
    bench.advance("1s")
    assert sorted(seen) == [1, 2, 11, 12]


def test_at_most_once_a_revoke_runs_what_is_committed_also_while_it_is_paused() -> None:
    seen: list[int] = []
    app = app_of(seen, delivery="at-most-once", concurrency=1)
    bench = Bench(app)
    produce(bench, -1, 2, 3)
    bench.advance("1s")
    assert seen == [-1]
    assert bench.committed("orders") == {0: 3}
    produce(bench, 4)
    bench.rebalance()
    assert sorted(seen) == [-1, 2, 3], "Kafka delivers these to nobody else"
    bench.advance("1m")
    assert bench.committed("orders") == {0: 3}, "no further record is committed ahead"
    bench.stop()
    assert sorted(seen) == [-1, 2, 3]
    bench.advance("1s")
    assert sorted(seen) == [-1, 2, 3, 4], "the pause ended with the run"


@pytest.mark.parametrize("end", [Bench.stop, Bench.crash])
def test_a_pause_ends_with_the_run_and_does_not_hold_up_a_stop(end: Callable[[Bench], None]) -> None:
    seen: list[int] = []
    app = app_of(seen)
    bench = Bench(app)
    bench.run_until_idle()
    app.pause()
    produce(bench, 1, 2)
    bench.advance("1m")
    end(bench)
    assert seen == []
    bench.run_until_idle()
    assert seen == [1, 2]


def test_only_the_named_handler_pauses() -> None:
    app, seen = App("shop"), list[str]()

    @app.consume("orders", group="a")
    def ship(order: int) -> None:
        seen.append("ship")

    @app.consume("orders", group="b")
    def bill(order: int) -> None:
        seen.append("bill")

    bench = Bench(app)
    bench.run_until_idle()
    app.pause("ship")
    produce(bench, 1)
    bench.run_until_idle()
    assert seen == ["bill"]
    assert {each.handler: each.paused for each in app.live_states()} == {"ship": True, "bill": False}
    app.pause(partitions=[("orders", 0)])
    assert [each.paused_partitions for each in app.live_states()] == [(("orders", 0),)] * 2
    app.resume()
    bench.run_until_idle()
    assert seen == ["bill", "ship"]


def test_concurrency_can_be_changed() -> None:
    app, running, most = App("shop"), 0, 0

    @app.consume("orders", order="none", concurrency=2)
    async def ship(order: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(1)
        running -= 1

    bench = Bench(app)
    produce(bench, *range(30))
    bench.advance("3s")
    assert most == 2
    app.set(concurrency=8)
    bench.advance("2s")
    assert most == 8
    assert [each.concurrency for each in app.live_states()] == [8]
    app.set("ship", concurrency="auto")
    bench.advance("2m")
    assert bench.lag("orders") == 0


def test_the_rate_can_be_changed_and_ended() -> None:
    seen: list[int] = []
    app = app_of(seen)
    bench = Bench(app)
    bench.run_until_idle()
    app.set(rate="60/1m")
    assert [each.rate for each in app.live_states()] == ["60 per 1m"]
    produce(bench, *range(100))
    bench.advance("10s")
    assert len(seen) <= 60 // 10 + 12, "a burst, and one each second"
    app.set("ship", rate=10)
    before = len(seen)
    bench.advance("3s")
    assert 25 <= len(seen) - before <= 35
    app.set(rate=None)
    bench.run_until_idle()
    assert len(seen) == 100
    assert [each.changes for each in bench.events_of(Commanded)] == [{"rate": each} for each in ("60/1m", 10, "None")]
    with pytest.raises(ConfigError, match="rate='fast' is not a rate"):
        app.set(rate="fast")


def test_each_command_is_an_event_with_who_and_when() -> None:
    app = app_of([])
    bench = Bench(app)
    bench.run_until_idle()
    app.pause(partitions=[("orders", 0)])
    bench.run_until_idle()
    app.set(concurrency=3)
    app.resume()
    bench.run_until_idle()
    pause, change, resume = bench.events_of(Commanded)
    assert (pause.action, pause.partitions, pause.handler, pause.via) == (
        "pause",
        ("orders[0]",),
        "ship",
        "app.pause()",
    )
    assert pause.by
    assert pause.at == bench.now.timestamp()
    assert (change.action, change.changes, change.via) == ("set", {"concurrency": 3}, "app.set()")
    assert (resume.action, resume.partitions) == ("resume", ())
    assert len(bench.events_of(Paused)) == len(bench.events_of(Resumed)) == 1


def route_app() -> App:
    app = App("shop")

    @app.consume("orders", when=lambda record: record.key == b"a")
    def one(record: Record) -> None: ...

    @app.consume("orders")
    def other(record: Record) -> None: ...

    return app


@pytest.mark.parametrize(
    ("command", "problem", "hint"),
    [
        (lambda app: app.pause("shp"), "no handler 'shp'", "Did you mean 'ship'?"),
        (
            lambda app: app.pause(partitions=[("orders", 9)]),
            r"does not own orders\[9\] now, so it cannot pause",
            "owns 1",
        ),
        (lambda app: app.pause(partitions=["orders"]), "is not a partition", "orders:3"),
        (lambda app: app.set(concurrency=0), "concurrency=0 is not a count", "at least 1"),
        (lambda app: app.set(max_in_flight=3), "'max_in_flight' cannot change", "concurrency"),
        (lambda app: app.set(), "No option is named", "concurrency=8"),
        (
            lambda app: (app.pause(), app.resume(partitions=[("orders", 0)])),
            "paused as a whole",
            "Resume the handler",
        ),
    ],
)
def test_wrong_commands_are_refused_with_what_to_do(command: Callable[[App], None], problem: str, hint: str) -> None:
    app = app_of([])
    bench = Bench(app)
    bench.run_until_idle()
    with pytest.raises((ConfigError, StateError), match=problem) as raised:
        command(app)
    assert hint in raised.value.hint


def test_handlers_that_share_a_member_are_commanded_together() -> None:
    app = route_app()
    bench = Bench(app)
    bench.run_until_idle()
    with pytest.raises(StateError, match="shares a member"):
        app.pause("one")
    with pytest.raises(ConfigError, match="is not a count"):
        app.set(concurrency=-1)
    app.set(concurrency=5)
    app.pause("one+other")
    assert [(each.paused, each.concurrency) for each in app.live_states()] == [(True, 5)]


def test_an_app_that_does_not_run_takes_no_command() -> None:
    with pytest.raises(PenstockError, match="not running"):
        app_of([]).pause()
