"""Middleware: what it may change, and what is refused."""

import asyncio
import inspect
from functools import wraps
from typing import Any

import pytest

from penstock import App, Record, Reject, Skip
from penstock.app import attempts, attempts_async, batch_attempts
from penstock.core.failures.outcome import DONE, Done, Failed, Outcome, Skipped
from penstock.errors import ConfigError

RECORD = Record("orders", 3, 7, b"key", b"5", (), 0, 1)


def attempted(app: App, record: Record = RECORD) -> Outcome:
    (handler,) = app.wired_handlers()
    if handler.signature.is_async:

        async def attempt() -> Outcome:
            return await attempts_async(handler)(record, 1)

        return asyncio.run(attempt())
    return attempts(handler)(record, 1)


def shop(**options: Any) -> App:
    app = App("shop")

    @app.consume("orders", **options)
    def handle(order: int) -> Any:
        return order + 1 if options else None

    return app


def test_the_first_declared_is_the_outermost() -> None:
    app, seen = shop(), []

    @app.around
    def first(record: Record, call: Any) -> Any:
        seen.append(f"first {record.offset}")
        result = call()
        seen.append("first after")
        return result

    @app.around
    def second(record: Record, call: Any) -> Any:
        seen.append(f"second {call.arguments}")
        return call()

    assert attempted(app) == DONE
    assert seen == ["first 7", "second {'order': 5}", "first after"]


def test_it_changes_arguments_and_the_returned_value() -> None:
    app = shop(to="out")

    @app.around
    def add(record: Record, call: Any) -> Any:
        return call(order=call.arguments["order"] + 10) * 100

    outcome = attempted(app)
    assert isinstance(outcome, Done)
    (output,) = outcome.outputs
    assert output.value == b"1600"


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("takes", ["value", "record", "value and record", "key"])
def test_each_form_of_a_handler_gets_what_middleware_changes(takes: str, layers: int, is_async: Any) -> None:
    def by_value(order: int) -> str:
        return f"{order}"

    def by_record(record: Record) -> str:
        return f"{record.value!r} {record.offset}"

    def by_both(order: int, record: Record) -> str:
        return f"{order} {record.offset}"

    def by_key(order: int, key: str) -> str:
        return f"{order} {key}"

    other = Record("orders", 3, 7, b"key", b"6", (), 0, 1)
    forms: dict[str, tuple[Any, dict[str, Any], dict[str, Any], str]] = {
        "value": (by_value, {"order": 6}, {"order": 5}, "6"),
        "record": (by_record, {"record": other}, {"record": RECORD}, "b'6' 7"),
        "value and record": (by_both, {"order": 6}, {"order": 5, "record": RECORD}, "6 7"),
        "key": (by_key, {"key": "mine"}, {"order": 5, "key": "key"}, "5 mine"),
    }
    function, change, arguments, result = forms[takes]
    app, seen = App("shop"), list[Any]()

    def look(record: Record, call: Any) -> Any:
        seen.append((record, call.arguments))
        return call()

    def change_one(record: Record, call: Any) -> Any:
        return call(**change)

    for middleware in (look, change_one, look)[: layers + 1]:
        app.around(as_async(middleware) if is_async else middleware)
    app.consume("orders", to="out")(as_async(function) if is_async else function)
    outcome = attempted(app)
    assert isinstance(outcome, Done), outcome
    assert outcome.outputs[0].value == result.encode()
    inside = change.get("record", RECORD), {**arguments, **change}
    assert seen == [(RECORD, arguments), inside][:layers]


def as_async(function: Any) -> Any:
    """The same as ``async def``; what it returns may be awaited first."""

    @wraps(function)
    async def call(*arguments: Any) -> Any:
        result = function(*arguments)
        return await result if inspect.isawaitable(result) else result

    return call


def test_it_may_answer_without_the_handler() -> None:
    app = shop(to="out")
    app.around(lambda record, call: 42)
    outcome = attempted(app)
    assert isinstance(outcome, Done)
    (output,) = outcome.outputs
    assert output.value == b"42"


def test_it_raises_other_outcomes_and_turns_errors_into_success() -> None:
    def skip(record: Record, call: Any) -> Any:
        raise Skip("by middleware")

    def reject(record: Record, call: Any) -> Any:
        call()
        raise Reject("no")

    app = shop()
    app.around(skip)
    assert attempted(app) == Skipped("by middleware")
    app = shop()
    app.around(reject)
    outcome = attempted(app)
    assert isinstance(outcome, Failed)
    assert outcome.error_type == "Reject"

    app = App("shop")

    @app.consume("orders")
    def fail(order: int) -> None:
        raise ValueError("no")

    @app.around
    def forgive(record: Record, call: Any) -> Any:
        try:
            return call()
        except ValueError:
            return None

    assert attempted(app) == DONE


def test_a_middleware_that_drops_what_the_handler_returned_is_a_bug() -> None:
    app = shop(to="out")

    @app.around
    def forgetful(record: Record, call: Any) -> Any:
        call()

    outcome = attempted(app)
    assert isinstance(outcome, Failed)
    assert outcome.halts
    assert "middleware forgetful returned nothing, but the handler returned int" in outcome.message


def test_a_middleware_that_does_not_run_the_handler_is_a_bug() -> None:
    app = shop()
    app.around(lambda record, call: None)
    outcome = attempted(app)
    assert isinstance(outcome, Failed)
    assert outcome.halts
    assert "did not run the handler, and returned nothing" in outcome.message


def test_a_change_of_a_parameter_that_the_handler_does_not_have_is_a_bug() -> None:
    app = shop()
    app.around(lambda record, call: call(amount=3))
    outcome = attempted(app)
    assert isinstance(outcome, Failed)
    assert outcome.halts
    assert "a middleware changed amount, but the handler takes (order)" in outcome.message


def test_async_around_async() -> None:
    app = App("shop")

    @app.consume("orders", to="out")
    async def handle(order: int) -> int:
        return order

    @app.around
    async def double(record: Record, call: Any) -> Any:
        await asyncio.sleep(0)
        return 2 * await call()

    outcome = attempted(app)
    assert isinstance(outcome, Done)
    (output,) = outcome.outputs
    assert output.value == b"10"


def test_an_async_call_that_nobody_awaits_is_a_bug() -> None:
    app = App("shop")

    @app.consume("orders")
    async def handle(order: int) -> None: ...
    @app.around
    async def forgetful(record: Record, call: Any) -> Any:
        call().close()

    outcome = attempted(app)
    assert isinstance(outcome, Failed)
    assert "did not run the handler" in outcome.message


async def async_middleware(record: Record, call: Any) -> Any:
    return await call()


def def_middleware(record: Record, call: Any) -> Any:
    return call()


def test_a_mix_is_refused_at_the_declaration_that_comes_second() -> None:
    app = shop()
    with pytest.raises(ConfigError, match=r"async_middleware is async def, and handler handle, .* is def"):
        app.around(async_middleware)
    app = App("shop")
    app.around(def_middleware)
    with pytest.raises(ConfigError, match=r"def_middleware is def, and handler handle, .* is async def"):

        @app.consume("orders")
        async def handle(order: int) -> None: ...

    assert app.handlers == ()


def test_named_handlers_only() -> None:
    app, seen = App("shop"), []

    @app.consume("orders")
    def create(order: int) -> None: ...
    @app.consume("cancellations", group="b")
    def cancel(order: int) -> None: ...
    @app.around(handlers=[create])
    def around_create(record: Record, call: Any) -> Any:
        seen.append("create")
        return call()

    @app.around(handlers=["cancel"])
    def around_cancel(record: Record, call: Any) -> Any:
        seen.append("cancel")
        return call()

    for handler in app.wired_handlers():
        assert attempts(handler)(RECORD, 1) == DONE
    assert seen == ["create", "cancel"]


def test_a_name_of_no_handler_is_refused_at_the_start() -> None:
    app = shop()
    app.around(handlers=["handel"])(def_middleware)
    with pytest.raises(ConfigError, match="handlers= names handel, which is not a handler of app"):
        app.wired_handlers()


@pytest.mark.parametrize(
    ("declare", "problem"),
    [
        (lambda app: app.around(3), r"@app\.around got 3, which is not a function"),
        (lambda app: app.around(lambda record: None), "with the record and the call, which it does not accept"),
        (lambda app: app.around(handlers="create")(def_middleware), "is not a list of handlers"),
        (lambda app: app.around(handlers=[3])(def_middleware), "has 3, which is not a handler"),
        (lambda app: app.around(handlers=[])(def_middleware), "is not a list of handlers"),
    ],
)
def test_a_wrong_declaration_is_refused(declare: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        declare(App("shop"))


def test_it_takes_resources_by_name() -> None:
    app, seen = shop(), []

    @app.resource
    def metrics() -> str:
        return "metrics"

    @app.around
    def count(record: Record, call: Any, metrics: str) -> Any:
        seen.append(metrics)
        return call()

    (handler,) = app.wired_handlers()
    assert attempts(handler.with_values({"metrics": "mine"}))(RECORD, 1) == DONE
    assert seen == ["mine"]


def test_it_cannot_take_the_resource_of_a_partition() -> None:
    app = shop()

    @app.resource(scope="partition")
    def cache() -> None: ...
    @app.around
    def count(record: Record, call: Any, cache: str) -> Any: ...

    with pytest.raises(ConfigError, match="Middleware count takes cache, which has scope="):
        app.wired_handlers()


def test_a_batch_has_a_list_of_records() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", batch=10, to="out")
    def handle(orders: list[int]) -> list[int]:
        return orders

    @app.around
    def look(records: list[Record], call: Any) -> Any:
        seen.append([record.offset for record in records])
        return [order + 1 for order in call()]

    (handler,) = app.wired_handlers()
    outcomes = batch_attempts(handler)([RECORD, RECORD], [1, 1])
    assert [each.outputs[0].value for each in outcomes if isinstance(each, Done)] == [b"6", b"6"]
    assert seen == [[7, 7]]


def test_without_middleware_and_resources_the_function_itself_is_called() -> None:
    from penstock.app.attempts.called_handler import called_handler  # noqa: PLC0415

    (handler,) = shop().wired_handlers()
    assert called_handler(handler) is handler
