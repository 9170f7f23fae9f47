"""The declaration of hooks."""

import pickle
from typing import Any

import pytest

from penstock import App
from penstock.errors import ConfigError
from penstock.events import DeadLettered, Event, Finished, Retried


def test_the_decorators_return_the_function_unchanged() -> None:
    app = App("shop")

    def hook() -> None: ...
    def listen(event: Event) -> None: ...

    assert app.on_start(hook) is hook
    assert app.on_stop(hook) is hook
    assert app.on_event(Event)(listen) is listen


@pytest.mark.parametrize(
    ("declare", "problem"),
    [
        (lambda app: app.on_start(3), r"@app\.on_start got 3, which is not a function"),
        (lambda app: app.on_start(lambda app: None), "with no arguments, which it does not accept"),
        (lambda app: app.on_stop(lambda app: None), "with no arguments, which it does not accept"),
        (lambda app: app.on_event(), "names no event"),
        (lambda app: app.on_event(lambda event: None), "which is not a class of events"),
        (lambda app: app.on_event("retried"), "'retried', which is not a class of events"),
        (lambda app: app.on_event(Retried)(lambda: None), "with one argument, the event, which it does not accept"),
    ],
)
def test_a_wrong_declaration_is_refused(declare: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        declare(App("shop"))


def test_events_of_single_records_are_wanted_only_by_those_who_name_them() -> None:
    app = App("shop")
    app.on_event(Event)(print)
    assert not app.hooks.per_record
    app.on_event(DeadLettered, Finished)(print)
    assert app.hooks.per_record


def test_a_copy_with_another_name_has_the_same_hooks_and_a_pickled_one_has_none() -> None:
    app = App("shop")
    app.on_start(lambda: None)
    assert app.variant("other", lambda _handler: {}).hooks == app.hooks
    assert not pickle.loads(pickle.dumps(app)).hooks
