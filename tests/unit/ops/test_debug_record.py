"""One record through its handler: each attempt, what would follow, and what would be written."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from penstock import App, Record, Reject, Retry, Skip
from penstock.core.failures.outcome import Failed
from penstock.core.records.record import Header, TopicPartition
from penstock.errors import ConfigError, TopicError
from penstock.ops import debug_record
from penstock.ops.debug_record import DebuggedAttempt, debug_attempts, find_record, first_attempt, handler_of, route_of

TP = ("orders", 0)


def record(value: bytes | None = b"1", topic: str = "orders", headers: tuple[Header, ...] = ()) -> Record:
    return Record(topic, 0, 42, b"key", value, headers)


def debugged(app: App, value: bytes | None = b"1", *, most: int = 10, **options: Any) -> list[DebuggedAttempt]:
    return list(debug_attempts(app.handlers[0], record(value), most=most, **options))


def failing(error: BaseException, **options: Any) -> App:
    app = App("shop")

    @app.consume("orders", **options)
    def handle(value: int) -> None:
        raise error

    return app


def test_an_output_is_shown_and_the_record_finished() -> None:
    app = App("shop")

    @app.consume("orders", to="doubles")
    def double(value: int) -> int:
        return 2 * value

    (only,) = debugged(app, b"21")
    (out,) = only.writes
    assert (only.then, out.topic, out.key, out.value) == ("finished", "doubles", b"key", b"42")


def test_each_attempt_of_the_retry_is_made_without_its_wait_and_then_comes_the_dead_letter() -> None:
    app = failing(ValueError("no"), retry=Retry(attempts=3, first="10s", factor=2), dead_letter="orders.dlq")
    tried = debugged(app)
    assert [each.number for each in tried] == [1, 2, 3]
    assert [each.then for each in tried] == [
        "next attempt after 10 s",
        "next attempt after 20 s",
        "dead letter to orders.dlq",
    ]
    (letter,) = tried[-1].writes
    assert letter.topic == "orders.dlq"
    assert dict(letter.headers)["penstock-dlq-attempts"] == b"3"
    failed = tried[-1].outcome
    assert isinstance(failed, Failed)
    assert "raise error" in failed.traceback
    assert isinstance(tried[-1].error, ValueError)


def test_a_retry_topic_is_named_and_waits_for_nothing_here() -> None:
    app = failing(ValueError("no"), retry=Retry(attempts=2, first="1m"), retry_topics=["1m"], dead_letter="orders.dlq")
    assert [each.then for each in debugged(app)] == [
        "next attempt after 60 s in a retry topic",
        "dead letter to orders.dlq",
    ]


def test_a_record_that_waits_in_a_retry_topic_continues_with_its_next_attempt() -> None:
    app = failing(ValueError("no"), retry=Retry(attempts=3, first="1m"), retry_topics=["1m"])
    waiting = record(topic="orders.retry.1m", headers=(("penstock-retry-attempt", b"3"),))
    assert first_attempt(app.handlers[0], waiting) == 3
    assert first_attempt(app.handlers[0], record()) == 1


def test_without_a_dead_letter_topic_the_app_would_stop() -> None:
    assert [each.then for each in debugged(failing(Reject("no")))] == ["the app stops"]


def test_a_skip_and_a_record_that_cannot_be_decoded() -> None:
    assert [each.then for each in debugged(failing(Skip("no")))] == ["finished without an output"]
    (bad,) = debugged(failing(Skip(), dead_letter="orders.dlq"), b"x")
    assert bad.then == "dead letter to orders.dlq"
    assert isinstance(bad.outcome, Failed)
    assert bad.outcome.error_type == "Undecodable"


def test_the_number_of_attempts_has_a_limit() -> None:
    assert len(debugged(failing(ValueError(), retry=Retry(attempts=100)), most=4)) == 4


def test_async_handlers_have_a_real_event_loop_and_batches_have_one_record() -> None:
    app = App("shop")

    @app.consume("orders", to="doubles")
    async def double(value: int) -> int:
        return await asyncio.to_thread(lambda: 2 * value)

    @app.consume("events", batch=10, to="counts", group="counting")
    def count(values: list[int]) -> list[int]:
        return [len(values)]

    @app.consume("events", batch=10, to="counts", group="counting-too")
    async def count_too(values: list[int]) -> list[int]:
        return [10 * len(values)]

    written = [
        [out.value for each in debug_attempts(handler, record(), most=1) for out in each.writes]
        for handler in app.handlers
    ]
    assert written == [[b"2"], [b"1"], [b"10"]]


def test_a_manual_acknowledgement_is_noticed_and_commits_nothing() -> None:
    app = App("shop")

    @app.consume("orders", commit="manual")
    def handle(value: int, record: Record) -> None:
        if value:
            record.ack()

    assert [each.then for each in debugged(app, b"1")] == ["finished by record.ack()"]
    assert [each.then for each in debugged(app, b"0")] == ["unfinished until record.ack() is called"]


def test_a_transaction_of_a_database_is_refused() -> None:
    app = App("shop")

    @app.consume("orders", offsets="sqlite:///shop.db")
    def handle(value: int, tx: Any) -> None: ...

    with pytest.raises(ConfigError, match="takes tx, whose transaction would write"):
        debugged(app)


def test_a_debugger_may_call_the_function() -> None:
    app, calls = App("shop"), []

    @app.consume("orders", to="doubles")
    def double(value: int) -> int:
        return 2 * value

    def call(function: Any, *arguments: Any) -> Any:
        calls.append(arguments)
        return function(*arguments)

    (only,) = debugged(app, b"4", call=call)
    assert (calls, only.writes[0].value) == ([(4,)], b"8")


def test_a_debugger_cannot_step_into_a_coroutine() -> None:
    app = App("shop")

    @app.consume("orders")
    async def handle(value: int) -> None: ...

    with pytest.raises(ConfigError, match="--step cannot step into handle, which is async"):
        debugged(app, call=lambda *_: None)


def test_the_handler_is_the_one_that_consumes_the_partition() -> None:
    app = App("shop")

    @app.consume("orders", dead_letter="orders.dlq")
    def first(value: int) -> None: ...

    @app.consume("orders", group="other")
    def second(value: int) -> None: ...

    @app.consume(partitions=[("events", 1)], group="events")
    def third(value: int) -> None: ...

    assert handler_of(app, TP, "second").name == "second"
    assert handler_of(app, ("events", 1), None).name == "third"
    with pytest.raises(ConfigError, match=r"2 handlers .* consume orders\[0\]: first, second"):
        handler_of(app, TP, None)
    with pytest.raises(ConfigError, match=r"No handler of app 'shop' consumes events\[0\]"):
        handler_of(app, ("events", 0), None)
    with pytest.raises(ConfigError, match=r"Handler third does not consume orders\[0\]"):
        handler_of(app, TP, "third")
    with pytest.raises(ConfigError, match="has no handler 'frist'") as unknown:
        handler_of(app, TP, "frist")
    assert "first" in unknown.value.hint
    with pytest.raises(ConfigError, match="No handler") as letter:
        handler_of(app, ("orders.dlq", 0), None)
    assert "penstock dlq show" in letter.value.hint


def routed() -> App:
    app = App("shop")

    @app.resource
    def prices() -> dict[int, int]:
        return {7: 70}

    @app.consume("orders", when={"type": "created"}, to="out")
    def create(value: int, prices: dict[int, int]) -> int:
        return prices[value]

    @app.consume("orders", when={"type": "cancelled"})
    def cancel(value: int) -> None: ...

    return app


def test_the_record_chooses_the_route() -> None:
    handler = handler_of(routed(), TP, None)
    created = record(b"7", headers=(("type", b"created"),))
    route = route_of(handler, created, None)
    (only,) = debug_attempts(route, created, most=5)
    assert (route.name, only.then, only.writes[0].value) == ("create", "finished", b"70")
    odd = record(b"7", headers=(("type", b"odd"),))
    group = route_of(handler, odd, None)
    (only,) = debug_attempts(group, odd, most=5)
    assert (group.name, only.then) == ("create+cancel", "the app stops")
    assert isinstance(only.outcome, Failed)
    assert only.outcome.error_type == "Unrouted"


def test_a_route_that_is_named_must_be_the_one_that_gets_the_record() -> None:
    created, odd = record(headers=(("type", b"created"),)), record()
    handler = handler_of(routed(), TP, "cancel")
    assert route_of(handler, created, "create").name == route_of(handler, created, "create+cancel").name == "create"
    with pytest.raises(
        ConfigError, match=r"cancel does not get orders\[0\]@42: of the .* \(create, cancel\), create gets"
    ):
        route_of(handler, created, "cancel")
    with pytest.raises(ConfigError, match="none of them gets it"):
        route_of(handler, odd, "cancel")


class FakeCluster:
    """orders has one partition with the offsets 10 to 19, of which 18 and 19 are in an open transaction."""

    def require_topics(self, names: Iterable[str]) -> dict[str, int]:
        return dict.fromkeys(names, 1)

    def start_offsets(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(tps, 10)

    def end_offsets(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(tps, 20)

    def stable_ends(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(tps, 18)


@pytest.mark.parametrize(
    ("tp", "offset", "reason"),
    [
        (("orders", 4), 12, "has no partition 4"),
        (TP, 9, r"orders\[0\]@9 is not in the log any more: .* below 10"),
        (TP, 20, r"orders\[0\]@20 is not written yet: the log ends at 20"),
        (TP, 18, "transaction that is still open"),
        (TP, 12, "compacted away, its transaction was aborted, or it is the marker"),
    ],
)
def test_a_record_that_is_not_there_is_an_error_that_says_why(
    tp: TopicPartition, offset: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: object) -> Iterator[Record]:
        yield from ()

    monkeypatch.setattr(debug_record, "read_positions", nothing)
    with pytest.raises(TopicError, match=reason) as missing:
        find_record(FakeCluster(), tp, offset)  # type: ignore[arg-type]
    assert missing.value.hint
