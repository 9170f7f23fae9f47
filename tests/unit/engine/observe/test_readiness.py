"""When an app is ready."""

import threading
from dataclasses import dataclass

import pytest

from penstock import App, Avro
from penstock.app import Handler
from penstock.engine.observe import readiness
from penstock.engine.observe.readiness import DependencyCheck, readiness_checks
from penstock.errors import StoreError

WAIT_SECONDS = 60.0


@dataclass
class Member:
    handler: Handler
    has_joined: bool = False
    store_error: Exception | None = None

    breaker_problem: str | None = None

    def ping_store(self) -> None:
        if self.store_error is not None:
            raise self.store_error


def problems(app: App, members: list[Member], stop: threading.Event) -> list[str]:
    return [problem for check in readiness_checks(app, members, stop) if (problem := check()) is not None]


def test_every_member_must_have_its_assignment_and_a_stop_ends_it() -> None:
    app, stop = App("shop"), threading.Event()

    @app.consume("orders")
    def ship(order: bytes) -> None: ...

    members = [Member(app.handlers[0], has_joined=True), Member(app.handlers[0])]
    assert problems(app, members, stop) == ["ship has no assignment of group 'shop' yet."]
    members[1].has_joined = True
    assert problems(app, members, stop) == []
    stop.set()
    assert problems(app, members, stop) == ["The app is stopping."]


def test_an_offset_store_that_fails_is_named_once_for_all_members_of_a_handler() -> None:
    app = App("shop")

    @app.consume("orders", offsets="sqlite:///shop.db")
    def ship(order: bytes) -> None: ...

    error = StoreError("The database is down.", hint="Start it.")
    members = [Member(app.handlers[0], has_joined=True, store_error=error) for _ in range(2)]
    assert problems(app, members, threading.Event()) == ["The database is down."]


def test_a_registry_that_cannot_be_reached_is_named_once() -> None:
    app = App("shop", registry="http://127.0.0.1:1")
    schema = {"type": "record", "name": "Order", "fields": []}

    @app.consume("orders", value=Avro(schema), key=Avro(schema))
    def ship(order: dict[str, str], key: dict[str, str]) -> None: ...

    @app.consume("others", value=Avro(schema, schema_id=None))
    def other(order: dict[str, str]) -> None: ...

    (problem,) = problems(app, [], threading.Event())
    assert problem.startswith("The schema registry at http://127.0.0.1:1 cannot be asked:")


def test_a_registry_in_memory_and_a_format_without_a_registry_are_ready() -> None:
    app = App("shop", registry="mock://here")

    @app.consume("orders", value=Avro({"type": "string"}))
    def ship(order: str) -> None: ...

    assert problems(app, [], threading.Event()) == []


def test_a_dependency_that_never_answers_is_asked_once_and_holds_up_no_probe() -> None:
    asked, release = list[int](), threading.Event()

    def ask() -> None:
        asked.append(1)
        release.wait(WAIT_SECONDS)

    check = DependencyCheck("The database", ask, patience=0.01)
    assert check() == "The database has not answered for 0 s."
    assert check() == "The database has not answered for 0 s."
    assert asked == [1]
    release.set()


def test_an_answer_is_kept_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["It is down.", None])
    check = DependencyCheck("The database", lambda: next(answers), patience=WAIT_SECONDS)
    assert [check(), check()] == ["It is down.", "It is down."]
    monkeypatch.setattr(readiness, "_KEPT_SECONDS", -1.0)
    assert check() is None


def test_any_error_of_a_users_store_is_a_problem() -> None:
    def ask() -> None:
        raise KeyError("mine")

    assert DependencyCheck("The store", ask, patience=WAIT_SECONDS)() == "The store failed: KeyError: 'mine'."
