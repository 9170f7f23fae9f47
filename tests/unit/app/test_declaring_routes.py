"""Several handlers of one topic and group: which may share a member, and which errors name what is wrong."""

from functools import partial
from typing import Any

import pytest

from penstock import App, Record, Retry, key_like
from penstock.app import RouteGroup
from penstock.app.config import Given, configured
from penstock.app.config.given_values import Owner
from penstock.errors import ConfigError
from penstock.ops.record_view import by_app

CREATED = {"type": "created"}


def create(record: Record) -> None: ...
def cancel(record: Record) -> None: ...
def rest(record: Record) -> None: ...
async def later(record: Record) -> None: ...
def is_big(record: Record) -> bool:
    return len(record.value or b"") > 10


def app_of(*declared: tuple[Any, dict[str, Any]]) -> App:
    app = App("shop")
    for function, options in declared:
        app.consume("orders", **options)(function)
    return app


def group_of(*declared: tuple[Any, dict[str, Any]]) -> RouteGroup:
    (handler,) = app_of(*declared).handlers
    assert isinstance(handler, RouteGroup)
    return handler


def test_handlers_with_when_share_one_member_in_order_of_declaration() -> None:
    app = app_of((create, {"when": CREATED}), (cancel, {"when": is_big}), (rest, {}))
    (group,) = app.handlers
    assert group.name == "create+cancel+rest"
    assert [route.name for route in group.routes] == ["create", "cancel", "rest"]
    assert [handler.name for handler in app.declared_handlers] == ["create", "cancel", "rest"]


def test_a_handler_without_when_is_itself_for_the_engines() -> None:
    app = app_of((rest, {}))
    assert app.handlers == app.declared_handlers
    assert app.handlers[0].routes == app.handlers


def test_handlers_of_other_topics_and_groups_have_members_of_their_own() -> None:
    app = app_of((create, {"when": CREATED}), (rest, {"group": "other"}))
    app.consume("returns")(cancel)
    assert [handler.name for handler in app.handlers] == ["create", "rest", "cancel"]


def test_the_name_of_many_routes_stays_short() -> None:
    def numbered(number: int) -> Any:
        def handle(record: Record) -> None: ...

        handle.__name__ = f"handle{number}"
        return handle

    group = group_of(*((numbered(number), {"when": {"n": str(number)}}) for number in range(12)))
    assert group.name == "handle0+handle1+handle2+9more"


def test_a_group_writes_to_the_topics_of_all_routes() -> None:
    def receipt(record: Record) -> dict[str, int]:
        return {}

    def audit(record: Record) -> dict[str, int]:
        return {}

    group = group_of(
        (create, {"when": CREATED}), (receipt, {"when": is_big, "to": "receipts"}), (audit, {"to": "audit"})
    )
    assert group.output_topics == ("receipts", "audit")


def test_settings_of_no_route_go_to_other_processes() -> None:
    password = {"sasl.password": "secret"}
    group = group_of((create, {"when": CREATED, "settings": password}), (rest, {"settings": password}))
    sent = group.without_settings()
    assert [each.settings for each in (sent, *sent.routes)] == [{}, {}, {}]
    assert group.routes[0].settings == password


def test_what_no_handler_takes_becomes_a_dead_letter_or_stops_the_app_unless_told_otherwise() -> None:
    assert group_of((create, {"when": CREATED})).chosen_otherwise == "stop"
    assert group_of((create, {"when": CREATED, "dead_letter": "dlq"})).chosen_otherwise == "dead_letter"
    said = ((create, {"when": CREATED}), (cancel, {"when": is_big, "otherwise": "skip"}))
    assert group_of(*said).chosen_otherwise == "skip"
    assert group_of((create, {"when": CREATED}), (rest, {})).chosen_otherwise is None


@pytest.mark.parametrize(
    ("when", "problem"),
    [
        ("created", "when='created' is not a condition"),
        (True, "when=True is not a condition"),
        ({}, "would take every record"),
        ({"type": 1}, "is no value of a header"),
        ({"type": None}, "is no value of a header"),
        ({"type": []}, "is no value of a header"),
        ({"type": ["a", 1]}, "is no value of a header"),
        ({1: "created"}, "which is not a text"),
        (lambda: True, "cannot be called with a record"),
        (lambda one, two: True, "cannot be called with a record"),
        (later, "async function"),
        (int, "is a class"),
    ],
)
def test_what_is_no_condition_is_an_error(when: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match="Handler create: ") as raised:
        app_of((create, {"when": when}))
    assert problem in raised.value.problem
    assert raised.value.hint


@pytest.mark.parametrize(
    "when",
    [{"type": "a"}, {"type": b"a"}, {"type": ["a", b"b"]}, {"type": {"a"}}, {"trace": False}, key_like("a"), is_big,
     partial(is_big), lambda record, more=1: more > 0],
)  # fmt: skip
def test_conditions(when: Any) -> None:
    assert group_of((create, {"when": when})).routes[0].when is when


def test_two_handlers_without_when_are_an_error_that_teaches_when() -> None:
    with pytest.raises(ConfigError, match="both consume 'orders' in group 'shop', so each would get only a part") as e:
        app_of((create, {}), (cancel, {}))
    assert 'when={"type": "created"}' in e.value.hint


def test_only_the_last_may_be_without_when() -> None:
    with pytest.raises(ConfigError, match="rest has no when=, so cancel would never get a record"):
        app_of((create, {"when": CREATED}), (rest, {}), (cancel, {"when": is_big}))
    with pytest.raises(ConfigError, match="so each would get only a part"):
        app_of((create, {"when": CREATED}), (rest, {}), (cancel, {}))


def test_routes_of_one_member_have_different_names() -> None:
    with pytest.raises(ConfigError, match="are called create"):
        app_of((create, {"when": CREATED}), (create, {"when": {"type": "again"}}))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("concurrency", 5),
        ("order", "key"),
        ("dead_letter", "dlq"),
        ("delivery", "at-most-once"),
        ("commit", "record"),
        ("members", 2),
        ("batch", 10),
        ("workers", "process"),
        ("start", "latest"),
        ("max_in_flight", 100),
        ("settings", {"fetch.min.bytes": 2}),
    ],
)
def test_what_belongs_to_the_member_is_the_same_for_all_routes(option: str, value: Any) -> None:
    def batched(records: list[Record]) -> None: ...

    function = batched if option == "batch" else cancel
    retries = {"retry": Retry(attempts=1)} if value == "at-most-once" else {}
    with pytest.raises(ConfigError, match=f"Handlers create and {function.__name__} share .* differ in {option}="):
        app_of((create, {"when": CREATED, **retries}), (function, {"when": is_big, option: value, **retries}))


def test_topics_are_the_same_for_all_routes() -> None:
    app = app_of((create, {"when": CREATED}))
    with pytest.raises(ConfigError, match="differ in topics, which"):
        app.consume("orders", "returns", when=is_big)(cancel)
    with pytest.raises(ConfigError, match="differ in topics, which"):
        app.consume(pattern="orders.*", when=is_big)(cancel)


def test_routes_differ_in_what_is_their_own() -> None:
    def text(value: str, key: str) -> str:
        return value + key

    group = group_of(
        (create, {"when": CREATED, "retry": Retry(attempts=1)}),
        (text, {"when": is_big, "to": "out", "to_value": str.encode, "retry": Retry(attempts=9)}),
    )
    assert [route.retry for route in group.routes] == [Retry(attempts=1), Retry(attempts=9)]


def test_def_and_async_def_do_not_share_a_member() -> None:
    with pytest.raises(ConfigError, match="later is async def and create is def"):
        app_of((create, {"when": CREATED}), (later, {"when": is_big}))
    with pytest.raises(ConfigError, match="later is async def and create is def"):
        app_of((later, {"when": CREATED}), (create, {"when": is_big}))


def test_otherwise_is_checked() -> None:
    with pytest.raises(ConfigError, match="otherwise='drop' does not exist"):
        app_of((create, {"when": CREATED, "otherwise": "drop"}))
    with pytest.raises(ConfigError, match="it takes every record"):
        app_of((create, {"otherwise": "skip"}))
    with pytest.raises(ConfigError, match="needs a dead-letter topic"):
        app_of((create, {"when": CREATED, "otherwise": "dead_letter"}))
    with pytest.raises(ConfigError, match="otherwise= of handler create has no effect: handler rest has no when="):
        app_of((create, {"when": CREATED, "otherwise": "skip"}), (rest, {}))
    with pytest.raises(ConfigError, match='one has otherwise="skip" and the other otherwise="stop"'):
        app_of((create, {"when": CREATED, "otherwise": "skip"}), (cancel, {"when": is_big, "otherwise": "stop"}))


def test_a_pattern_and_partitions_have_routes_too() -> None:
    app = App("shop")
    app.consume(pattern="orders.*", when=CREATED)(create)
    app.consume(pattern="orders.*")(rest)
    app.consume(partitions=[("returns", 0)], when=CREATED, group="alone")(create)
    app.consume(partitions=[("returns", 0)], group="alone")(rest)
    assert [handler.name for handler in app.handlers] == ["create+rest", "create+rest"]


def test_tools_decode_a_record_as_the_route_that_takes_it() -> None:
    app = App("shop")

    @app.consume("orders", when={"type": "number"})
    def number(value: int) -> None: ...

    @app.consume("orders", when={"type": "text"})
    def text(value: str) -> None: ...

    see = by_app(app)("orders", "shop").see
    values = {kind: see(Record("orders", 0, 0, None, b"x", (("type", kind),))) for kind in (b"number", b"text", b"odd")}
    assert values[b"number"].value_problem
    assert (values[b"text"].value, values[b"text"].value_problem) == ("x", None)
    assert (values[b"odd"].value, values[b"odd"].value_problem) == ("x", None)


def test_a_file_sets_options_of_routes_and_of_their_member() -> None:
    app = app_of((create, {"when": CREATED}), (rest, {}))
    (group,) = configured(app, [[Given(Owner("handler", "*"), ("concurrency",), 5, "a file")]]).app.handlers
    assert [each.concurrency for each in (group, *group.routes)] == [5, 5, 5]
    with pytest.raises(ConfigError, match=r"a file: Handlers create and rest share .* differ in concurrency="):
        configured(app, [[Given(Owner("handler", "create"), ("concurrency",), 5, "a file")]])


def test_a_group_has_all_that_its_routes_need_and_each_route_its_own() -> None:
    app = App("shop")

    @app.resource
    def base() -> int:
        return 1

    @app.resource(scope="partition")
    def cache(base: int) -> list[int]:
        return [base]

    @app.around(handlers=["second"])
    def timed(record: Record, call: Any) -> Any:
        return call()

    @app.consume("orders", when=CREATED, to=["a", "b"], dead_letter="dlq")
    def first(value: int, cache: list[int]) -> int:
        return value

    @app.consume("orders", to=["b", "c"], dead_letter="dlq")
    def second(value: int) -> int:
        return value

    (group,) = app.wired_handlers({"base": 7})
    assert group.written_topics == ("a", "b", "c", "dlq")
    assert [each.name for each in group.wiring.resources] == ["base", "cache"]
    assert [[each.name for each in route.wiring.resources] for route in group.routes] == [["base", "cache"], []]
    assert [[each.name for each in route.wiring.around] for route in group.routes] == [[], ["timed"]]
    made = group.with_values({"more": 8})
    assert [each.wiring.supplied for each in (made, *made.routes)] == [{"base": 7, "more": 8}] * 3
    assert group.routes[0].wiring.supplied == {"base": 7}
