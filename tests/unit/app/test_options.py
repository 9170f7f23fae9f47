"""The table of handler options, and everything that follows from it."""

import inspect
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import pytest

from docs_check.environment import ROOT
from penstock import App, Breaker, Rate, Record, by
from penstock.app import Handler, refuse_unsupported
from penstock.app.config.option_table import handler_options
from penstock.app.options import HANDLER_OPTIONS, OPTION_GROUPS, SETTINGS, ConsumeOptions
from penstock.app.options.option_reference import TABLES, filled
from penstock.app.options.option_support import ENGINE_HINTS, ENGINE_NAMES, Engine, Refused
from penstock.errors import ConfigError

PAGES = sorted((ROOT / "docs").glob("*.md"))

# For each option that some engine refuses: a value that works with the other options of the handler below.
REFUSABLE: dict[str, Any] = {
    "pattern": "orders.*",
    "partitions": [("orders", 0)],
    "start": {("orders", 0): 5},
    "from_": "latest",
    "mode": "share",
    "retry_topics": ["1m"],
    "breaker": Breaker(),
    "honor_times": True,
    "dedupe": by.key(for_="1d"),
    "delivery": "at-most-once",
    "commit": "manual",
    "commit_after": 5,
    "offsets": "sqlite:///secret",
    "workers": "process",
    "batch": 5,
    "protocol": "consumer",
    "assignor": "range",
    "static_id": "a",
    "on_assigned": print,
    "on_revoked": print,
    "on_lost": print,
    "max_in_flight_bytes": 5,
    "rate": Rate(5),
    "scale": "cpu",
    "fair_by": by.header("tenant"),
    "weights": {"gold": 3},
    "priority": by.header("priority"),
}


def handle(record: Record) -> None: ...


def handle_batch(records: list[Record]) -> None: ...


def refusals() -> Iterator[tuple[Engine, str]]:
    for engine in ENGINE_NAMES:
        yield from ((engine, name) for name, each in HANDLER_OPTIONS.items() if isinstance(each.on(engine), Refused))


def declared(**options: Any) -> Handler:
    app = App("shop")
    topics = () if {"pattern", "partitions"} & options.keys() else ("orders",)
    function = handle_batch if "batch" in options else handle
    app.consume(*topics, order="none", dead_letter="dlq", **options)(function)
    return app.handlers[0]


def test_every_option_is_a_field_of_the_handler_and_every_field_an_option() -> None:
    others = {"app", "name", "function", "registry", "replay_range", "wiring"}
    assert {each.name for each in fields(Handler)} - others == set(HANDLER_OPTIONS)


def test_the_signature_has_every_option_with_its_type_and_default() -> None:
    parameters = inspect.signature(App.consume).parameters
    assert [*parameters][:2] == ["self", "topics"]
    keywords = {name: each for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY}
    assert ["topics", *keywords] == list(HANDLER_OPTIONS)
    for name, each in keywords.items():
        assert (each.default, each.annotation) == (HANDLER_OPTIONS[name].default, HANDLER_OPTIONS[name].hint)
    assert "F" in str(inspect.signature(App.consume).return_annotation)


def test_type_checkers_see_the_options_of_the_table() -> None:
    assert get_args(get_type_hints(App.consume)["options"]) == (ConsumeOptions,)
    assert ["topics", *get_type_hints(ConsumeOptions)] == list(HANDLER_OPTIONS)
    assert {each.group for each in HANDLER_OPTIONS.values()} == set(OPTION_GROUPS)


def test_a_file_a_variable_and_a_flag_know_every_option() -> None:
    assert {*handler_options(), SETTINGS} == set(HANDLER_OPTIONS)


def test_the_help_describes_every_option() -> None:
    text = inspect.getdoc(App.consume) or ""
    for name in HANDLER_OPTIONS:
        assert text.count(f"\n    {name}: ") == 1
    assert "Refused by: Bench (exactly-once), share groups." in " ".join(text.split())


def test_descriptions_are_sentences_and_reasons_end_a_sentence() -> None:
    for option in HANDLER_OPTIONS.values():
        assert option.text.endswith((".", ").")), option.name
        for engine in ENGINE_NAMES:
            support = option.on(engine)
            assert support is None or not support.reason.endswith("."), (option.name, engine)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_tables_of_the_docs_are_those_of_the_option_table(page: Any) -> None:
    text = page.read_text("utf-8")
    assert filled(text) == text, "Run: make option-tables"


def test_every_table_is_on_one_page() -> None:
    text = "".join(page.read_text("utf-8") for page in PAGES)
    assert all(text.count(make()) == 1 for make in TABLES.values())


@pytest.mark.parametrize(("engine", "name"), list(refusals()))
def test_an_option_that_an_engine_does_not_support_is_refused_with_the_reason(engine: Engine, name: str) -> None:
    support = HANDLER_OPTIONS[name].on(engine)
    assert isinstance(support, Refused)
    value = "exactly-once" if (engine, name) == ("testing", "delivery") else REFUSABLE[name]
    with pytest.raises(ConfigError) as caught:  # noqa: PT012 - a share group refuses when it is declared
        handler = declared(**{name: value}, **({"mode": "share"} if engine == "share" else {}))
        refuse_unsupported(handler, engine)
    assert f" uses {name}" in caught.value.problem
    assert f", which {ENGINE_NAMES[engine]} does not support: {support.reason}." in caught.value.problem
    assert caught.value.hint == (support.hint or ENGINE_HINTS[engine])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("engine", "options"),
    [
        ("local", {}),
        ("spark", {}),
        ("testing", {}),
        ("share", {}),
        ("spark", {"delivery": "exactly-once"}),
        ("spark", {"commit": "record"}),
        ("spark", {"members": 3, "assignor": "range", "commit_every": "5s"}),
        ("spark", {"start": {("orders", 0): 5}}),
        ("testing", {"delivery": "at-most-once"}),
        ("testing", {"start": "latest"}),
        ("testing", {"scale": "cpu", "workers": "auto"}),
        ("local", {"micro_batch": "1s"}),
    ],
)
def test_options_that_an_engine_supports_or_may_ignore_are_accepted(engine: Engine, options: dict[str, Any]) -> None:
    refuse_unsupported(declared(**options), engine)


@pytest.mark.parametrize("declare", [App("shop").consume, App("shop").pipeline])
def test_a_decorator_without_parentheses_is_refused(declare: Any) -> None:
    def handle(order: bytes) -> None: ...

    with pytest.raises(
        ConfigError, match=r"^@app\.\w+ needs the topics in parentheses\. Write @app\.\w+\(\"orders\"\)\.$"
    ):
        declare(handle)
