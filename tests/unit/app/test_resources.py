"""Declarations of resources: what is refused, and when."""

import pickle
import re
from functools import partial, wraps
from typing import Any

import pytest

from penstock import App, Record
from penstock.app import attempts
from penstock.app.resources import OpenResources
from penstock.core.failures.outcome import DONE, Done, Failed
from penstock.errors import CallbackError, ConfigError, StateError

RECORD = Record("orders", 3, 7, b"key", b"5", (), 0, 1)


def db() -> str:
    return "db"


def test_the_decorators_return_the_function_unchanged() -> None:
    app = App("shop")
    assert app.resource(db) is db

    def cache() -> None: ...

    assert app.resource(scope="worker")(cache) is cache


@pytest.mark.parametrize(
    ("declare", "problem"),
    [
        (lambda app: app.resource(3), r"@app\.resource got 3, which is not a function"),
        (lambda app: app.resource(str), "is not a function"),
        (lambda app: app.resource(lambda: None), "<lambda> has a name that no parameter can have"),
        (lambda app: app.resource(scope="thread")(db), "Resource db: scope='thread' does not exist"),
        (lambda app: (app.resource(db), app.resource(db)), "App 'shop' has two resources called db"),
    ],
)
def test_a_wrong_declaration_is_refused(declare: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        declare(App("shop"))


def test_names_of_parts_of_a_record_are_refused() -> None:
    app = App("shop")

    def headers() -> None: ...

    with pytest.raises(ConfigError, match="Resource headers has a name that handlers use for a part of the record"):
        app.resource(headers)


def test_resources_are_passed_by_name_so_a_positional_only_parameter_is_refused() -> None:
    app = App("shop")

    def cache(db: str, /) -> None: ...

    with pytest.raises(ConfigError, match="its parameter db is positional-only"):
        app.resource(cache)


def test_a_missing_resource_is_named_with_the_handler_that_takes_it() -> None:
    app = App("shop")
    app.resource(db)

    @app.consume("orders")
    def create(order: int, dbs: str) -> None: ...

    problem = "Handler create takes dbs, but the app has no resource of this name. Did you mean db?"
    with pytest.raises(ConfigError, match=re.escape(problem)):
        app.wired_handlers()


def test_a_missing_resource_of_a_resource_is_named_although_nobody_needs_it() -> None:
    app = App("shop")

    @app.resource
    def cache(db: str) -> None: ...

    with pytest.raises(ConfigError, match="Resource cache takes db, but the app has no resource"):
        app.wired_handlers()


def test_a_circle_is_refused_when_its_last_resource_is_declared() -> None:
    app = App("shop")

    @app.resource
    def first(third: str) -> None: ...
    @app.resource
    def second(first: str) -> None: ...
    def third(second: str) -> None: ...

    with pytest.raises(ConfigError, match="first -> third -> second -> first"):
        app.resource(third)

    def own(own: str) -> None: ...

    with pytest.raises(ConfigError, match="Resource own takes itself: its parameter own has its own name"):
        app.resource(own)


@pytest.mark.parametrize(
    ("outer", "inner", "problem"),
    [
        ("process", "worker", "Resource outer .* takes inner .* which is closed before it"),
        ("process", "partition", "which is closed before it"),
        ("worker", "partition", "which is closed before it"),
        ("partition", "worker", "several workers use the resource of one partition"),
    ],
)
def test_a_resource_cannot_take_one_that_is_closed_before_it(outer: Any, inner: Any, problem: str) -> None:
    app = App("shop")

    @app.resource(scope=outer)
    def outer_(inner_: str) -> None: ...
    def inner_() -> None: ...

    with pytest.raises(ConfigError, match=problem.replace("outer", "outer_").replace("inner", "inner_")):
        app.resource(scope=inner)(inner_)


def test_a_def_resource_cannot_take_an_async_one() -> None:
    app = App("shop")

    @app.resource
    async def pool() -> None: ...
    def cache(pool: str) -> None: ...

    with pytest.raises(ConfigError, match="Resource cache takes pool, which is async and belongs to an event loop"):
        app.resource(cache)


def test_a_def_handler_cannot_take_an_async_resource() -> None:
    app = App("shop")

    @app.resource
    async def pool() -> None: ...
    @app.consume("orders")
    def create(order: int, pool: str) -> None: ...

    with pytest.raises(ConfigError, match="Handler create needs pool, an async resource"):
        app.wired_handlers()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"workers": "process"}, "several processes share the records of a partition"),
        ({"mode": "share", "order": "none", "dead_letter": "dead"}, "members of a share group own no partitions"),
        ({"batch": 10}, "a batch may have records of several partitions"),
    ],
)
def test_resources_of_partitions_are_refused_where_a_partition_has_no_owner(options: Any, problem: str) -> None:
    app = App("shop")

    @app.resource(scope="partition")
    def cache() -> None: ...
    def create(orders: list[int], cache: str) -> None: ...
    def create_one(order: int, cache: str) -> None: ...

    app.consume("orders", **options)(create if "batch" in options else create_one)
    with pytest.raises(ConfigError, match=problem):
        app.wired_handlers()


def test_a_parameter_that_looks_like_a_resource_and_would_not_get_it_is_refused() -> None:
    app = App("shop")
    app.resource(db)

    @app.consume("orders")
    def create(db: int) -> None: ...

    with pytest.raises(ConfigError, match="its first parameter db gets the value, and is also named like a resource"):
        app.wired_handlers()

    other = App("other")
    other.resource(db)

    @other.consume("orders")
    def cancel(order: int, db: str = "none") -> None: ...

    with pytest.raises(ConfigError, match="its parameter db is named like a resource, but has a default"):
        other.wired_handlers()


@pytest.mark.parametrize("kind", ["value last", "record last", "record first", "key"])
def test_resources_may_stand_anywhere_after_the_first_parameter(kind: str) -> None:
    app, seen = App("shop"), list[Any]()
    app.resource(db)

    def value_last(record: Record, db: str) -> None:
        seen.append((record.offset, db))

    def record_last(order: int, db: str, record: Record) -> None:
        seen.append((order, db, record.offset))

    def record_first(order: int, record: Record, db: str) -> None:
        seen.append((order, record.offset, db))

    def by_key(order: int, db: str, key: bytes) -> None:
        seen.append((order, db, key))

    chosen, expected = {
        "value last": (value_last, (7, "db")),
        "record last": (record_last, (5, "db", 7)),
        "record first": (record_first, (5, 7, "db")),
        "key": (by_key, (5, "db", b"key")),
    }[kind]
    app.consume("orders")(chosen)  # type: ignore[type-var]
    (handler,) = app.wired_handlers()
    opened = OpenResources()
    opened.make(handler.wiring.of_process)
    assert attempts(handler.with_values(opened.values))(RECORD, 1) == DONE
    assert seen == [expected]


def with_a_default(order: int, db: str, cache: str, limit: int = 3, *, unit: str = "kg") -> str:
    return f"{order} {db} {cache} {limit} {unit}"


class CallableHandler:
    def __call__(self, order: int, db: str, cache: str) -> str:
        return with_a_default(order, db, cache)


def passing_on(function: Any) -> Any:
    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return call


@pytest.mark.parametrize("around", [None, "def", "decorated"])
@pytest.mark.parametrize(
    "function",
    [
        with_a_default,
        partial(with_a_default, unit="kg"),
        CallableHandler(),
        CallableHandler().__call__,
        passing_on(with_a_default),
    ],
    ids=["def", "partial", "callable object", "method", "decorated"],
)
def test_every_kind_of_function_gets_its_resources(function: Any, around: str | None) -> None:
    app = App("shop")
    app.resource(db)

    @app.resource
    def cache(db: str) -> str:
        return f"cache of {db}"

    def add(record: Record, call: Any, cache: str) -> str:
        return f"{call()} {cache}"

    app.consume("orders", to="out")(function)
    if around:
        app.around(add if around == "def" else passing_on(add))
    (handler,) = app.wired_handlers()
    outcome = attempts(handler.with_values({"db": "mine", "cache": "other"}))(RECORD, 1)
    assert isinstance(outcome, Done), outcome
    assert outcome.outputs[0].value == b"5 mine other 3 kg" + b" other" * bool(around)


def test_a_handler_whose_resources_nobody_made_is_not_called() -> None:
    app = App("shop")

    @app.consume("orders")
    def create(order: int, db: str) -> None: ...

    with pytest.raises(StateError, match="Handler create takes db"):
        attempts(app.handlers[0])


def test_a_copy_with_another_name_has_the_same_resources_and_middleware() -> None:
    app = App("shop")
    app.resource(db)
    app.around(lambda record, call: call())

    @app.consume("orders")
    def create(order: int, db: str) -> None: ...

    (handler,) = app.variant("other", lambda _handler: {}).wired_handlers()
    assert [each.name for each in handler.wiring.resources] == ["db"]
    assert len(handler.wiring.around) == 1


def test_a_wired_handler_can_be_pickled_for_another_process() -> None:
    app = App("shop")
    app.resource(db)
    app.consume("orders")(module_handler)
    (handler,) = app.wired_handlers()
    assert pickle.loads(pickle.dumps(handler.wiring)) == handler.wiring


def module_handler(order: int, db: str) -> None: ...


def test_resources_close_in_reverse_order_also_after_an_error() -> None:
    app, seen = App("shop"), []

    @app.resource
    def first() -> Any:
        seen.append("first")
        yield 1
        seen.append("first closed")

    @app.resource
    def second(first: int) -> Any:
        seen.append(f"second {first}")
        yield 2
        raise ValueError("cannot close")

    @app.resource
    def third(second: int) -> Any:
        yield 3
        seen.append("third closed")
        yield 4

    @app.consume("orders")
    def create(order: int, third: int) -> None: ...

    opened = OpenResources()
    opened.make(app.wired_handlers()[0].wiring.of_process)
    problem = opened.close()
    assert seen == ["first", "second 1", "third closed", "first closed"]
    assert problem is not None
    assert problem.problem == "The resource third yields more than once."
    assert "The resource second raised while it was closed ValueError: cannot close." in "".join(problem.__notes__)
    assert opened.close() is None


def test_what_was_made_is_closed_if_the_next_resource_raises() -> None:
    app, seen = App("shop"), []

    @app.resource
    def first() -> Any:
        yield 1
        seen.append("first closed")

    @app.resource
    def second(first: int) -> Any:
        raise ValueError("no")

    @app.consume("orders")
    def create(order: int, second: int) -> None: ...

    with pytest.raises(CallbackError, match="The resource second raised ValueError: no") as raised:
        OpenResources().make(app.wired_handlers()[0].wiring.of_process)
    assert 'raise ValueError("no")' in raised.value.traceback
    assert seen == ["first closed"]


def test_a_generator_without_a_yield_is_refused() -> None:
    app = App("shop")

    @app.resource
    def first() -> Any:
        if app.name == "other":
            yield 1

    @app.consume("orders")
    def create(order: int, first: int) -> None: ...

    with pytest.raises(CallbackError, match="The resource first ended without a yield"):
        OpenResources().make(app.wired_handlers()[0].wiring.of_process)


def test_outcomes_of_a_handler_with_resources_are_as_without() -> None:
    app = App("shop")
    app.resource(db)

    @app.consume("orders")
    def create(order: int, db: str) -> None:
        raise ValueError(db)

    (handler,) = app.wired_handlers()
    outcome = attempts(handler.with_values({"db": "mine"}))(RECORD, 1)
    assert isinstance(outcome, Failed)
    assert (outcome.error_type, outcome.message) == ("ValueError", "mine")
