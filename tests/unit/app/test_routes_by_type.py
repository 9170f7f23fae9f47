"""Routes by the type of the value: one union, decoded once, and a handler for each of its members."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import msgspec
import pytest
from pydantic import BaseModel, Field

from penstock import App, Later, Record
from penstock.app import RecordAdapter, attempts, batch_attempts
from penstock.core.failures.outcome import DONE, Failed
from penstock.core.reports import events
from penstock.errors import ConfigError
from penstock.testing import Bench


class Created(msgspec.Struct, tag="created"):
    id: int


class Cancelled(msgspec.Struct, tag="cancelled"):
    id: int


class Shipped(msgspec.Struct, tag="shipped"):
    id: int


Event = Created | Cancelled | Shipped


class CreatedModel(BaseModel):
    type: Literal["created"]
    id: int


class CancelledModel(BaseModel):
    type: Literal["cancelled"]
    id: int


AnyModel = Annotated[CreatedModel | CancelledModel, Field(discriminator="type")]


def record(kind: str, number: int = 1, **headers: bytes) -> Record:
    return Record("orders", 0, 0, b"k", b'{"type":"%s","id":%d}' % (kind.encode(), number), tuple(headers.items()))


def attempt(app: App, each: Record) -> Any:
    (handler,) = app.handlers
    return attempts(handler)(each, 1)


@pytest.fixture
def got() -> list[tuple[str, Any]]:
    return []


@pytest.fixture
def app(got: list[tuple[str, Any]]) -> App:
    app = App("shop")

    @app.consume("orders", value=Event)
    def created(event: Created) -> None:
        got.append(("created", event))

    @app.consume("orders", value=Event)
    def others(event: Cancelled | Shipped, record: Record, key: str) -> None:
        got.append((key, event))
        assert record.value is not None

    return app


def test_the_tag_of_the_value_chooses_the_handler(app: App, got: list[tuple[str, Any]]) -> None:
    outcomes = [attempt(app, record(kind)) for kind in ("created", "cancelled", "shipped")]
    assert got == [("created", Created(1)), ("k", Cancelled(1)), ("k", Shipped(1))]
    assert [each.handler for each in outcomes] == ["created", "others", "others"]
    assert outcomes == [DONE] * 3


def test_the_discriminator_of_pydantic_models_chooses_the_handler(got: list[tuple[str, Any]]) -> None:
    app = App("shop")

    @app.consume("orders", value=AnyModel)
    def created(event: CreatedModel) -> None:
        got.append(("created", event))

    @app.consume("orders", value=AnyModel)
    def cancelled(event: CancelledModel) -> None:
        got.append(("cancelled", event))

    assert [attempt(app, record(kind)) for kind in ("cancelled", "created")] == [DONE] * 2
    assert [(name, event.id) for name, event in got] == [("cancelled", 1), ("created", 1)]
    bad = attempt(app, record("refunded"))
    assert isinstance(bad, Failed)
    assert bad.error_type == "Undecodable"
    assert "'created', 'cancelled'" in bad.message


def test_a_value_with_another_tag_cannot_be_decoded_and_goes_to_no_handler(
    app: App, got: list[tuple[str, Any]]
) -> None:
    bad = attempt(app, record("refunded"))
    assert isinstance(bad, Failed)
    assert (bad.error_type, bad.final, got) == ("Undecodable", True, [])


def test_a_member_of_the_union_without_a_handler_is_taken_by_none() -> None:
    app = App("shop")

    @app.consume("orders", value=Event)
    def created(event: Created) -> None: ...

    outcome = attempt(app, record("shipped"))
    assert isinstance(outcome, Failed)
    assert outcome.error_type == "Unrouted"


def test_a_handler_for_the_whole_union_is_no_route() -> None:
    app = App("shop")

    @app.consume("orders", value=Event)
    def everything(event: Created | Cancelled | Shipped) -> None: ...

    assert app.handlers == app.declared_handlers


def test_the_value_is_decoded_once(got: list[tuple[str, Any]]) -> None:
    app, read = App("shop"), []

    def value_of(each: Record) -> bytes | None:
        read.append(each)
        return each.value

    @app.consume("orders", value=Event)
    def created(event: Created) -> None: ...

    @app.consume("orders", value=Event)
    def shipped(event: Shipped) -> None:
        got.append(("shipped", event))

    attempt_one = attempts(app.handlers[0], RecordAdapter(value_of=value_of))
    assert attempt_one(record("shipped"), 1) == DONE
    assert (len(read), got) == (1, [("shipped", Shipped(1))])


def test_headers_and_types_hold_together(got: list[tuple[str, Any]]) -> None:
    app = App("shop")

    @app.consume("orders", value=Event, when={"trace": True})
    def traced(event: Created) -> None:
        got.append(("traced", event))

    @app.consume("orders", value=Event)
    def rest(event: Event) -> None:
        got.append(("rest", event))

    for each in (record("created"), record("created", trace=b"1"), record("shipped", trace=b"1")):
        attempt(app, each)
    assert [name for name, _ in got] == ["rest", "traced", "rest"]


def test_null_has_a_handler_where_the_union_has_null(got: list[tuple[str, Any]]) -> None:
    app = App("shop")

    @app.consume("orders", value=Created | Cancelled | None)
    def created(event: Created) -> None:
        got.append(("created", event))

    @app.consume("orders", value=Created | Cancelled | None)
    def gone(event: Cancelled | None) -> None:
        got.append(("gone", event))

    for each in (record("created"), Record("orders", 0, 1, None, None)):
        assert attempt(app, each) == DONE
    assert got == [("created", Created(1)), ("gone", None)]


def test_routes_by_type_share_one_union() -> None:
    app = App("shop")

    @app.consume("orders", value=Event)
    def created(event: Created) -> None: ...

    with pytest.raises(ConfigError, match="different unions"):

        @app.consume("orders", value=Created | Cancelled)
        def cancelled(event: Cancelled) -> None: ...


def test_batches_are_divided_by_type() -> None:
    app, got = App("shop"), []

    @app.consume("orders", value=Event, batch=10, order="none")
    def created(events: list[Created]) -> None:
        got.append([each.id for each in events])

    @app.consume("orders", value=Event, batch=10, order="none")
    def cancelled(events: list[Cancelled], records: list[Record]) -> None:
        got.append([each.id for each in events])
        assert len(records) == len(events)

    records = [record("created", 1), record("cancelled", 2), record("created", 3)]
    assert batch_attempts(app.handlers[0])(records, [1, 1, 1]) == [DONE] * 3
    assert got == [[1, 3], [2]]


def test_a_transaction_finishes_the_record_and_not_its_decoded_form(got: list[tuple[str, Any]]) -> None:
    app = App("shop")
    finished: list[Record] = []

    @contextmanager
    def begin() -> Iterator[Any]:
        yield "open", finished.extend

    @app.consume("orders", value=Event, offsets="sqlite:///unused.db")
    def created(event: Created, tx: Any) -> None:
        got.append((tx, event))

    each = record("created")
    assert attempts(app.handlers[0], RecordAdapter(begin=begin))(each, 1) == DONE
    assert (finished, got) == ([each], [("open", Created(1))])


def test_a_route_by_type_can_ask_for_later_and_its_records_wait_in_retry_topics(got: list[tuple[str, Any]]) -> None:
    app = App("shop")
    options: dict[str, Any] = {"value": Created | Cancelled, "retry_topics": ["1m"], "honor_times": True}

    @app.consume("orders", **options)
    def create(event: Created, record: Record) -> None:
        got.append(("create", record.topic))
        if record.topic == "orders":
            raise Later("90s")

    @app.consume("orders", **options)
    def cancel(event: Cancelled) -> None:
        got.append(("cancel", event.id))

    bench = Bench(app)
    bench.produce("orders", b'{"type":"created","id":1}')
    bench.produce("orders", b'{"type":"cancelled","id":2}', not_before="30s")
    bench.advance("1s")
    assert got == [("create", "orders")]
    bench.advance("80s")
    assert got[1:] == [("cancel", 2)]
    bench.advance("60s")
    assert got[2:] == [("create", "orders.retry.1m")]
    assert {event.handler for event in bench.events_of(events.Delayed)} == {"create", "cancel"}
