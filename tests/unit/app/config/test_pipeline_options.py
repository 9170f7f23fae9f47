"""Options of pipelines from file, environment and flags, as for handlers."""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock import App, Jdbc, Retry, Table
from penstock.app.config import Configured, Names, configured, from_environment, from_file, from_flags
from penstock.app.config.option_table import pipeline_options
from penstock.app.options import SETTINGS
from penstock.app.pipelines import PIPELINE_OPTIONS
from penstock.errors import ConfigError

FILE = """
[pipelines."*"]
max_micro_batch = 500
trigger = "1s"

[pipelines.lake]
trigger = "2s"
topics = ["eu", "us"]
restart = {attempts = 3}

[pipelines.lake.settings]
fetch.min.bytes = 10
"""


def keep(rows: Any) -> Any:
    return rows


def lake(orders: Any) -> Any:
    return orders


def ship(value: bytes) -> None: ...


def shop() -> App:
    app = App("shop", settings={"client.id": "code"})
    app.consume("payments", concurrency=5)(ship)
    app.pipeline("orders", to=Table("orders", path="/lake"), restart=Retry(attempts=7, first="3s"))(lake)
    app.pipeline("returns", to="kept", micro_batch="5s")(keep)
    return app


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def configure(
    app: App | None = None,
    *,
    file: str | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Sequence[str] = (),
) -> Configured:
    app = app or shop()
    if file is not None:
        Path("penstock.toml").write_text(file)
    names = Names.of(app)
    return configured(
        app, [from_file(None, names), from_environment(environment or {}, names), from_flags(flags, names)]
    )


def test_the_file_the_environment_and_the_flags_override_the_code_in_this_order() -> None:
    config = configure(
        file=FILE,
        environment={"PENSTOCK_LAKE_MAX_MICRO_BATCH": "600", "PENSTOCK_LAKE_RESTART_LIMIT": "9s"},
        flags=["pipelines.*.drain_timeout=4s", "lake.start=latest", "keep.to=elsewhere", "settings.linger.ms=7"],
    )
    first, second = config.app.pipelines
    assert (first.topics, first.trigger, first.max_micro_batch, first.start) == (("eu", "us"), 2.0, 600, "latest")
    assert first.restart == Retry(attempts=3, first="3s", limit="9s")
    assert first.settings == {"client.id": "code", "fetch.min.bytes": 10, "linger.ms": 7}
    assert (second.trigger, second.max_micro_batch, second.micro_batch) == (1.0, 500, 5.0)
    assert second.target_topics == ("elsewhere",)
    assert {first.drain_timeout, second.drain_timeout} == {4.0}
    assert config.app.handlers[0].concurrency == 5
    shown = {part.name: part.options for part in config.of_pipelines}
    assert shown["lake"]["trigger"].origin == "penstock.toml line 7"
    assert shown["lake"]["restart"].parts == {
        "attempts": "penstock.toml line 9", "limit": "PENSTOCK_LAKE_RESTART_LIMIT",
    }  # fmt: skip
    assert (shown["keep"]["micro_batch"].origin, shown["keep"]["output_mode"].origin) == ("code", "default")
    assert (shown["keep"]["group"].value, shown["keep"]["group"].origin) == ("shop", "default")


def test_configured_again_a_pipeline_begins_with_its_code() -> None:
    app = shop()
    configure(app, flags=["lake.trigger=9s", "pipelines.keep.start=latest"])
    first, second = configure(app, flags=["lake.max_micro_batch=5"]).app.pipelines
    assert (first.trigger, first.max_micro_batch, second.start) == (0.2, 5, "earliest")


def test_a_variant_keeps_what_was_configured_and_has_a_group_of_its_own() -> None:
    app = configure(flags=["lake.trigger=9s"]).app
    first, _ = app.variant("twin", lambda _: {}).pipelines
    assert (first.group, first.trigger) == ("twin", 9.0)


@pytest.mark.parametrize(
    ("file", "flag", "problem", "hint"),
    [
        ("[pipelines.lak]", None, "line 1: there is no pipeline 'lak'", "Did you mean 'lake'?"),
        ("pipelines = 5", None, "pipelines is not a table", "[pipelines.NAME]"),
        ("[pipelines.lake]\ntriger = 5", None, "line 2: a pipeline has no option 'triger'", "'trigger'"),
        ("trigger = 5", None, "'trigger' is an option of pipelines", "[pipelines.NAME]"),
        (None, "trigger=5", "'trigger' is an option of pipelines", "pipelines.*.trigger"),
        (None, "lake.sources=5", "takes a Python object", "in code"),
        (None, "lake.value=str", "takes a Python object", "in code"),
        (
            None,
            "lake.max_micro_batch=0",
            "lake.max_micro_batch: Pipeline lake: max_micro_batch=0",
            "whole number",
        ),
        (None, "lake.to=orders", "--set lake.to: Pipeline lake: it writes to 'orders'", "another topic"),
        (None, "lake.delivery=at-most-once", "does not work for pipelines", "exactly-once"),
    ],
)
def test_a_wrong_value_is_one_clear_error(file: str | None, flag: str | None, problem: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        configure(file=file, flags=[flag] if flag else [])
    assert problem in caught.value.problem
    assert hint in caught.value.hint


def test_a_handler_and_a_pipeline_of_one_name_are_told_apart_by_the_long_name() -> None:
    app = shop()
    app.consume("others")(lake)
    with pytest.raises(ConfigError, match="there are a handler and a pipeline 'lake'"):
        configure(app, flags=["lake.micro_batch=3s"])
    with pytest.raises(ConfigError, match=r"could mean handlers.lake.micro_batch or pipelines.lake.micro_batch"):
        configure(app, environment={"PENSTOCK_LAKE_MICRO_BATCH": "3s"})
    config = configure(app, flags=["handlers.lake.micro_batch=3s", "pipelines.lake.micro_batch=4s"])
    assert (config.app.handlers[1].micro_batch, config.app.pipelines[0].micro_batch) == (3.0, 4.0)


def test_signature_help_and_outside_follow_from_one_table() -> None:
    parameters = inspect.signature(App.pipeline).parameters
    keywords = {name: each for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY}
    assert ["topics", *keywords] == list(PIPELINE_OPTIONS)
    for name, each in keywords.items():
        assert (each.default, each.annotation) == (PIPELINE_OPTIONS[name].default, PIPELINE_OPTIONS[name].hint)
    text = inspect.getdoc(App.pipeline) or ""
    assert all(text.count(f"\n    {name}: ") == 1 for name in PIPELINE_OPTIONS)
    assert {*pipeline_options(), SETTINGS} == set(PIPELINE_OPTIONS)
    assert all(each.text.endswith(".") for each in PIPELINE_OPTIONS.values())


def test_a_database_s_password_is_no_option_that_is_shown() -> None:
    app = App("shop")
    app.pipeline("orders", to=Jdbc("jdbc:postgresql://db/shop", "t", password="hunter2"))(lake)
    assert "hunter2" not in repr(configure(app).of_pipelines)
