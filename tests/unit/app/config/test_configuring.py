"""An app configured by code, file, environment and command line."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest

import penstock
from penstock import App, Registry, Retry
from penstock.app import NoControl
from penstock.app.config import Configured, Names, configured, from_environment, from_file, from_flags
from penstock.app.config.environment import OTHERS
from penstock.app.config.option_table import app_options, handler_options
from penstock.app.config.value_readers import reader_for
from penstock.core.text.durations import Duration
from penstock.errors import ConfigError, StateError

FILE = """
brokers = "file:9092"

[settings]
session.timeout.ms = 45000
"fetch.max.wait.ms" = 30

[handlers."*"]
concurrency = 100

[handlers.ship]
commit_every = "5s"
topics = ["orders", "returns"]
retry = {attempts = 5}

[handlers.ship.settings]
fetch.min.bytes = 10
"""

NAMES = Names(["ship", "count"])


def shop() -> App:
    app = App("shop", settings={"client.id": "code", "fetch.wait.max.ms": 20})

    @app.consume("orders", dead_letter="dlq", concurrency=5, retry=Retry(first="2s"))
    def ship(value: bytes) -> None: ...

    @app.consume("orders", group="counting", settings={"fetch.min.bytes": 3})
    def count(value: bytes) -> None: ...

    return app


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configure(
    *, file: str | None = None, environment: Mapping[str, str] | None = None, flags: Sequence[str] = ()
) -> Configured:
    app = shop()
    names = Names.of(app)
    if file is not None:
        Path("penstock.toml").write_text(file)
    return configured(
        app, [from_file(None, names), from_environment(environment or {}, names), from_flags(flags, names)]
    )


def test_without_anything_given_the_app_stays_as_it_is(folder: Path) -> None:
    config = configure()
    before, after = shop(), config.app
    assert (after.name, after.brokers, after.settings) == (before.name, before.brokers, before.settings)
    assert [repr(h).partition("topics")[2] for h in after.handlers] == [
        repr(h).partition("topics")[2] for h in before.handlers
    ]
    ship = config.of_handlers[0].options
    assert (ship["concurrency"].value, ship["concurrency"].origin) == (5, "code")
    assert (ship["order"].value, ship["order"].origin) == ("key", "default")
    assert (ship["group"].value, ship["group"].origin) == ("shop", "default")


def test_the_file_goes_over_code_and_a_handler_s_own_over_everybody_s(folder: Path) -> None:
    config = configure(file=FILE)
    ship, count = config.app.handlers
    assert config.app.brokers == "file:9092"
    assert (ship.concurrency, count.concurrency) == (100, 100)
    assert (ship.commit_every, count.commit_every) == (5.0, 1.0)
    assert ship.topics == ("orders", "returns")
    assert ship.retry == Retry(attempts=5, first="2s")
    assert ship.settings == {
        "client.id": "code",
        "session.timeout.ms": 45_000,
        "fetch.wait.max.ms": 30,
        "fetch.min.bytes": 10,
    }
    assert count.settings["fetch.min.bytes"] == 3
    shown = config.of_handlers[0]
    assert shown.options["commit_every"].origin == "penstock.toml line 12"
    assert shown.options["retry"].parts == {"attempts": "penstock.toml line 14"}
    assert shown.settings["fetch.wait.max.ms"].origin == "penstock.toml line 6"
    assert shown.settings["fetch.min.bytes"].origin == "penstock.toml line 17"
    assert shown.settings["client.id"].origin == "code"


def test_the_environment_goes_over_the_file_and_the_command_line_over_all(folder: Path) -> None:
    config = configure(
        file=FILE,
        environment={
            "PENSTOCK_BROKERS": "env:9092",
            "PENSTOCK_CONCURRENCY": "200",
            "PENSTOCK_COUNT_CONCURRENCY": "300",
            "PENSTOCK_SHIP_RETRY_ATTEMPTS": "7",
            "PENSTOCK_DRAIN_TIMEOUT": "5",
            "PENSTOCK_NULL_KEYS_IN_ORDER": "yes",
            "PENSTOCK_CREATE_TOPICS": "false",
            "PENSTOCK_SETTINGS_SESSION_TIMEOUT_MS": "50000",
            "PENSTOCK_SHIP_SETTINGS_CLIENT_ID": "env",
            "PENSTOCK_ORDER": "",
            "PENSTOCK_HOME": "/x",
            "PENSTOCK_PORT": "tcp://10.0.0.1:80",
            "PENSTOCK_UI_SERVICE_HOST": "10.0.0.1",
            "OTHER": "x",
        },
        flags=[
            "brokers=line:9092",
            "ship.concurrency=400",
            "retry.factor=3",
            "settings.session.timeout.ms=60000",
            "handlers.count.to=out",
            "ship.settings.sasl.password=a=b",
            "*.start=latest",
        ],
    )
    ship, count = config.app.handlers
    assert (config.app.brokers, config.app.create_topics) == ("line:9092", False)
    assert (ship.concurrency, count.concurrency) == (400, 300)
    assert ship.retry == Retry(attempts=7, first="2s", factor=3)
    assert count.retry == Retry(factor=3)
    assert (ship.drain_timeout, ship.null_keys_in_order, ship.start, count.to) == (5.0, True, "latest", "out")
    assert ship.settings["session.timeout.ms"] == count.settings["session.timeout.ms"] == 60_000
    assert (ship.settings["client.id"], count.settings["client.id"]) == ("env", "code")
    assert (ship.settings["sasl.password"], "sasl.password" in count.settings) == ("a=b", False)
    assert config.of_app.options["brokers"].origin == "--set brokers"
    assert config.of_app.options["create_topics"].origin == "PENSTOCK_CREATE_TOPICS"
    assert config.of_handlers[0].options["retry"].parts == {
        "attempts": "PENSTOCK_SHIP_RETRY_ATTEMPTS",
        "factor": "--set retry.factor",
    }


def test_the_registry_comes_whole_or_in_parts_and_reaches_every_handler(folder: Path) -> None:
    config = configure(
        file='[registry]\nurl = "https://file"\nssl_ca_location = "/ca.pem"\ntimeout = 2',
        environment={"PENSTOCK_REGISTRY_BASIC_AUTH_USER_INFO": "ann:hush"},
        flags=["registry.max_retries=3"],
    )
    expected = Registry(
        url="https://file", ssl_ca_location="/ca.pem", timeout=2.0, basic_auth_user_info="ann:hush", max_retries=3
    )
    assert config.app.registry == expected
    assert {handler.registry for handler in config.app.handlers} == {expected}
    Path("penstock.toml").unlink()
    whole = configure(environment={"PENSTOCK_REGISTRY": "http://env", "PENSTOCK_REGISTRY_PROXY": "http://p"})
    assert whole.app.registry == Registry(url="http://env", proxy="http://p")
    with pytest.raises(ConfigError, match="PENSTOCK_REGISTRY_PROXY: registry has no URL"):
        configure(environment={"PENSTOCK_REGISTRY_PROXY": "http://p"})


@pytest.mark.parametrize(
    ("file", "problem", "hint"),
    [
        ("brokers = ", "penstock.toml is not TOML: Invalid value (at end of document)", "quotes"),
        ("brokers = 5", "penstock.toml line 1: brokers=5 is not valid", "It takes text"),
        ("\nbroker = 'b'", "penstock.toml line 2: the app has no option 'broker'", "Did you mean 'brokers'?"),
        ("zzzzzz = 1", "the app has no option 'zzzzzz'", "There are: brokers, create_topics, handlers, pipelines,"),
        ("concurrency = 5", "line 1: 'concurrency' is an option of handlers", '[handlers."*"]'),
        ("settings = 5", "line 1: settings is not a table", "[settings]"),
        ("handlers = 5", "line 1: handlers is not a table", "[handlers.NAME]"),
        ("handlers.ship = 5", "handlers.ship is not a table", "[handlers.ship]"),
        ("[handlers.shp]\nconcurrency = 1", "line 1: there is no handler 'shp'", "Did you mean 'ship'?"),
        ("[handlers.zzz]", "there is no handler 'zzz'", "The app has: ship, count"),
        ("[handlers.ship]\nconcurency = 1", "line 2: a handler has no option 'concurency'", "'concurrency'"),
        ("[handlers.ship]\nconcurrency = '5x'", "line 2: concurrency='5x' is not valid", "a whole number"),
        ("[handlers.ship]\nconcurrency = true", "line 2: concurrency=True is not valid", "a whole number"),
        ("[handlers.ship]\nconcurrency = 0", "line 2: Handler ship: concurrency=0 is not a count", "at least 1"),
        ("[handlers.ship]\ncommit_every = 'often'", "line 2: commit_every='often' is not a duration", '"250ms"'),
        ("[handlers.ship]\ncommit_every = []", "line 2: commit_every=[] is not valid", "a duration"),
        ("[handlers.ship]\norder = 'random'", "line 2: order='random' is not valid", '"partition", "key", "none"'),
        ("[handlers.ship]\ntopics = 5", "line 2: topics=5 is not valid", "a list"),
        ("[handlers.ship]\ntopics = ['a b']", "line 2: Handler ship: 'a b' is not a topic name", "249"),
        ("[handlers.ship]\nretry = 5", "line 2: retry has parts", "attempts, factor"),
        ("[handlers.ship]\nretry = {attempt = 5}", "line 2: retry has no option 'attempt'", "'attempts'"),
        ("[handlers.ship]\nretry.jitter = 5", "line 2: Retry.jitter=5.0 is not a fraction", "from 0 to 1"),
        ("[settings]\nsesion.timeout.ms = 5", "line 2: The setting 'sesion.timeout.ms' is not known", "'session."),
        ("[settings]\n'session.timeout.ms' = -5", "line 2: The setting session.timeout.ms=-5 is out", "from 1"),
        ("[settings]\n'group.id' = 'x'", "line 2: The setting 'group.id' is reserved for Penstock", "group="),
        (
            "[handlers.ship]\ngroup = 'counting'",
            "penstock.toml line 2: Handlers ship and count both consume 'orders'",
            "its own group",
        ),
    ],
)  # fmt: skip
def test_a_wrong_file_is_one_clear_error_with_its_line(folder: Path, file: str, problem: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        configure(file=file)
    assert problem in caught.value.problem
    assert hint in caught.value.hint


def test_a_file_that_cannot_be_read_is_named(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"other.toml cannot be read: no such file"):
        from_file(Path("other.toml"), Names())
    with pytest.raises(ConfigError, match="is a directory"):
        from_file(folder, Names())
    Path("bad.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        from_file(Path("bad.toml"), Names())
    Path("other.toml").write_text('brokers = "b:1"')
    assert [each.value for each in from_file(Path("other.toml"), Names())] == ["b:1"]


@pytest.mark.parametrize(
    ("variable", "value", "problem", "hint"),
    [
        ("PENSTOCK_CONCURENCY", "5", "PENSTOCK_CONCURENCY names no option", "Did you mean PENSTOCK_CONCURRENCY?"),
        ("PENSTOCK_SHIPP_ORDER", "key", "names no option", "Did you mean PENSTOCK_SHIP_ORDER?"),
        ("PENSTOCK_QQQ", "5", "names no option", "PENSTOCK_NAME_OPTION"),
        ("PENSTOCK_SETTINGS_SESION_TIMEOUT_MS", "5", "names no option", "PENSTOCK_SETTINGS_SESSION_TIMEOUT_MS"),
        ("PENSTOCK_SHIP_CONCURRENCY", "many", "PENSTOCK_SHIP_CONCURRENCY: concurrency='many'", "a whole number"),
        ("PENSTOCK_SHIP_CONCURRENCY", "0", "PENSTOCK_SHIP_CONCURRENCY: Handler ship: concurrency=0", "at least 1"),
        ("PENSTOCK_CREATE_TOPICS", "maybe", "create_topics='maybe' is not valid", "true or false"),
        ("PENSTOCK_SHIP_RETRY", "5", "PENSTOCK_SHIP_RETRY: retry has parts", "attempts"),
        ("PENSTOCK_SETTINGS_SASL_JAAS_CONFIG", "hunter2", "is not of the form", "sasl.username"),
    ],
)
def test_a_wrong_variable_is_one_clear_error(folder: Path, variable: str, value: str, problem: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        configure(environment={variable: value})
    assert problem in caught.value.problem
    assert hint in caught.value.hint
    assert "hunter2" not in str(caught.value)


def test_a_variable_with_two_meanings_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"could mean handlers.ship.concurrency or handlers.Ship.concurrency"):
        from_environment({"PENSTOCK_SHIP_CONCURRENCY": "5"}, Names(["ship", "Ship"]))


@pytest.mark.parametrize(
    ("flag", "problem", "hint"),
    [
        ("ship", "--set ship is not of the form NAME=VALUE", "ship.concurrency=200"),
        ("ship.=5", "is not of the form", "ship.concurrency=200"),
        ("ship=5", "--set ship names no option", "ship.concurrency=200"),
        ("settings=5", "names no option", "settings.session.timeout.ms"),
        ("shp.concurrency=5", "there is no handler, pipeline or option 'shp'", "Did you mean ship.concurrency?"),
        ("zzz=5", "there is no handler, pipeline or option 'zzz'", "NAME=VALUE"),
        ("handlers.shp.to=5", "there is no handler 'shp'", "'ship'"),
        ("ship.concurrency.x=5", "concurrency has no option 'x'", "one value"),
        ("settings.sasl.pasword=hunter2", "'sasl.pasword' is not known", "'sasl.password'"),
        ("ship.settings.acks=1", "'acks' is reserved for Penstock", "replicas"),
    ],
)
def test_a_wrong_flag_is_one_clear_error(folder: Path, flag: str, problem: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        configure(flags=[flag])
    assert problem in caught.value.problem
    assert hint in caught.value.hint
    assert "hunter2" not in str(caught.value)


def test_options_come_from_the_signatures() -> None:
    assert {"brokers", "create_topics"} <= set(app_options())
    assert {"topics", "concurrency", "retry", "commit_every"} <= set(handler_options())
    assert "settings" not in handler_options()
    app = shop()
    assert all(hasattr(app, name) for name in app_options())
    declared = app.declarations[0][1]
    assert {*handler_options(), "settings"} == set(declared)


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (str | None, "a", "a"),
        (int | None, "5", 5),
        (float, "1.5", 1.5),
        (bool, "on", True),
        (Duration | None, "5", 5.0),
        (Duration, "5s", "5s"),
        (Literal["a", 1], "1", 1),
        (Literal["thread", "process"] | int, "4", 4),
        (Literal["earliest"] | datetime, "2030-01-01T00:00:00+00:00", datetime(2030, 1, 1, tzinfo=UTC)),
        (Literal["earliest"] | datetime, datetime(2030, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)),
        (Sequence[str] | None, "a, b", ("a", "b")),
        (list[tuple[str, int]], [["orders", 0]], (("orders", 0),)),
        (str | Callable[[], str], "name", "name"),
    ],
)
def test_values_are_read_by_their_type_hints(hint: Any, value: Any, expected: Any) -> None:
    read = reader_for(hint)
    assert read is not None
    assert read(value) == expected


def test_an_option_that_takes_a_python_object_is_refused_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reader_for(Callable[[], None] | None) is None
    assert reader_for(list[Callable[[], None]]) is None
    option = handler_options()["to"]
    monkeypatch.setitem(handler_options(), "to", type(option)("to", None, None))
    with pytest.raises(ConfigError, match="cannot be set here, because it takes a Python object") as caught:
        from_flags(["ship.to=x"], Names(["ship"]))
    assert caught.value.hint == "Set it in code."


@pytest.mark.parametrize(("hint", "value"), [(int, 1.5), (float, True), (str, 5), (datetime, "soon"), (bool, 2)])
def test_a_value_of_another_type_is_refused(hint: Any, value: Any) -> None:
    read = reader_for(hint)
    assert read is not None
    with pytest.raises(ValueError, match=r"a |text|true"):
        read(value)


def test_a_variant_can_be_configured_too(folder: Path) -> None:
    twin = shop().variant("twin", lambda handler: {"group": f"twin-{handler.name}"})
    config = configured(twin, [from_flags(["ship.concurrency=9"], NAMES)])
    assert [(h.group, h.concurrency) for h in config.app.handlers] == [("twin-ship", 9), ("twin-count", 32)]


def test_every_variable_that_penstock_reads_is_known_here() -> None:
    """Another one would be refused as unknown."""
    sources = Path(penstock.__file__).parent.rglob("*.py")
    read = {
        name for path in sources for name in re.findall(r'"(PENSTOCK_[A-Z]+(?:_[A-Z]+)*)"', path.read_text("utf-8"))
    }
    assert read - {"PENSTOCK_BROKERS", "PENSTOCK_REGISTRY"} == set(OTHERS)


def test_the_app_that_the_code_holds_is_the_one_that_is_configured(folder: Path) -> None:
    app = shop()
    config = configured(app, [from_flags(["ship.concurrency=9", "settings.fetch.min.bytes=7"], NAMES)])
    assert config.app is app
    assert [handler.concurrency for handler in app.handlers] == [9, 32]
    assert app.settings["fetch.min.bytes"] == 7


def test_configured_again_an_app_begins_with_its_code(folder: Path) -> None:
    app = shop()
    configured(app, [from_flags(["ship.concurrency=9", "brokers=a:1", "settings.linger.ms=7"], NAMES)])
    config = configured(app, [from_flags(["ship.commit_every=9s"], NAMES)])
    ship = app.handlers[0]
    assert (ship.concurrency, ship.commit_every, app.brokers) == (5, 9, None)
    assert "linger.ms" not in {**app.settings, **ship.settings}
    assert config.of_handlers[0].options["concurrency"].origin == "code"


def test_an_app_stays_as_it_is_when_configuring_fails(folder: Path) -> None:
    app = shop()
    with pytest.raises(ConfigError):
        configured(app, [from_flags(["brokers=a:1", "count.max_in_flight=1"], NAMES)])
    assert (app.brokers, app.handlers[1].max_in_flight) == (None, 10_000)


def test_a_running_app_is_not_configured(folder: Path) -> None:
    app = shop()
    with (
        app.controlled_by(NoControl("It is an engine's.", "")),
        pytest.raises(StateError, match="is running, so it cannot be configured"),
    ):
        configured(app, [])
