"""No output contains a secret."""

import json
import logging
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest

from penstock import App
from penstock.app import Jdbc
from penstock.app.attempts.traceback_text import described
from penstock.core.failures.dead_letter import dead_letter
from penstock.core.failures.outcome import failed
from penstock.core.failures.retry_topic import retry_record
from penstock.core.records.record import Record
from penstock.core.settings import (
    Registry,
    Settings,
    client_settings,
    hide_passwords,
    is_secret,
    known,
    redacted,
    redacted_values,
    scrubbed,
    shown_command,
)
from penstock.core.settings.names import SETTINGS
from penstock.errors import ConfigError
from penstock.kafka.client.clients import make_consumer

SECRETS = {
    "sasl.password": "hunter2-p",
    "ssl.key.password": "hunter2-k",
    "ssl.keystore.password": "hunter2-s",
    "ssl.key.pem": "hunter2-pem",
    "sasl.oauthbearer.client.secret": "hunter2-c",
    "sasl.oauthbearer.config": "hunter2-o",
    "sasl.oauthbearer.assertion.private.key.passphrase": "hunter2-a",
    "sasl.oauthbearer.assertion.private.key.pem": "hunter2-x",
}


def test_secrets_are_known_by_their_names() -> None:
    assert all(
        is_secret(name) for name in (*SECRETS, "sasl.jaas.config", "ssl.keystore.key", "ssl.truststore.password")
    )
    shown = {name for name in SETTINGS if not is_secret(name)}
    assert {"sasl.username", "sasl.oauthbearer.token.endpoint.url", "ssl.key.location", "client.id"} <= shown
    assert not [name for name in shown if "password" in name or "secret" in name or "passphrase" in name]


def test_neither_an_app_nor_a_handler_shows_them() -> None:
    app = App("shop", settings={**SECRETS, "client.id": "me"})

    @app.consume(
        "orders", settings={"sasl.jaas.config": 'x.PlainLoginModule required username="u" password="hunter2";'}
    )
    def ship(value: bytes) -> None: ...

    (handler,) = app.handlers
    assert handler.settings["sasl.password"] == "hunter2"
    texts = (
        repr(app),
        str(app),
        repr(handler),
        f"{handler}",
        f"{app.settings} {handler.settings}",
        repr([app.settings]),
    )
    assert not [text for text in texts if "hunter2" in text]
    assert "'client.id': 'me'" in repr(handler)
    assert "'sasl.password': '***'" in repr(handler)
    assert "ship" in repr(app)


@pytest.mark.parametrize(
    "settings",
    [
        {"sasl.password": ["hunter2"]},
        {"sasl.password": True},
        {"sasl.pasword": "hunter2"},
        {"sasl.jaas.config": "hunter2"},
        {"sasl.jaas.config": 'x.PlainLoginModule required password="hunter2";'},
        {"ssl.truststore.password": "hunter2"},
    ],
)
def test_no_error_shows_them(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        App("shop", settings=settings)
    assert "hunter2" not in f"{caught.value} {caught.value!r}"
    assert "True" not in caught.value.problem


def test_the_client_s_own_errors_are_scrubbed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    settings = {"ssl.key.pem": "PEM", "security.protocol": "ssl", "sasl.password": "hunter2-long"}
    with pytest.raises(ConfigError, match="refuses a setting") as caught:
        make_consumer("localhost:1", "g", settings=settings)
    assert "in *** format" in caught.value.problem  # the text contains this word, so the test uses it as a secret
    assert "hunter2" not in str(caught.value) + caplog.text


def test_a_text_is_scrubbed_of_secrets_and_of_passwords_in_urls() -> None:
    settings = client_settings({"sasl.password": "abc", "ssl.key.password": "hunter2-long", "client.id": "me"})
    assert scrubbed("abc abcd xhunter2-longx me", settings) == "*** abcd x***x me"
    assert hide_passwords("postgresql://ann:pw@db/x") == "postgresql://ann:***@db/x"
    assert hide_passwords("http://host:8080/a@b") == "http://host:8080/a@b"
    assert hide_passwords(5) == 5


def test_settings_show_functions_by_their_names() -> None:
    assert repr(Settings({"oauth_cb": print})) == "{'oauth_cb': 'print'}"


CANARY = 'canary "7" \\ ä'


@pytest.mark.parametrize(
    "give",
    [
        lambda: App("shop", settings={"sasl.password": CANARY}),
        lambda: App("shop").consume("orders", settings={"ssl.key.password": CANARY})(_handle),
        lambda: App("shop", settings={"sasl.jaas.config": _jaas(CANARY)}),
        lambda: Registry(url="http://registry", basic_auth_user_info=f"ann:{CANARY}"),
        lambda: Registry(url="http://registry", bearer_auth_token=CANARY),
        lambda: App("shop").consume("orders", offsets=f"postgresql://ann:{quote(CANARY)}@db/shop")(_handle),
        lambda: Jdbc("jdbc:postgresql://db/shop", "orders", user="ann", password=CANARY),
    ],
    ids=["app", "handler", "jaas", "registry", "registry-token", "offsets", "jdbc"],
)
def test_a_process_knows_every_secret_that_it_was_given(give: Callable[[], object]) -> None:
    give()
    assert redacted(f"refused: {CANARY}!") == "refused: ***!"
    assert redacted(f"refused: {CANARY!r}") == "refused: '***'"
    assert redacted(json.dumps({"why": CANARY})) == '{"why": "***"}'
    assert redacted_values({"why": [f"x{CANARY}x"], "at": 5}) == {"why": ["x***x"], "at": 5}


def test_a_secret_is_known_wherever_it_travels_to() -> None:
    registry = pickle.dumps(Registry(url="http://registry", bearer_auth_token="canary-of-the-registry"))
    settings = pickle.dumps(client_settings({"sasl.password": "canary-of-the-client"}))
    known.forget()
    assert pickle.loads(settings) == {"sasl.password": "canary-of-the-client"}
    assert pickle.loads(registry) == Registry(url="http://registry", bearer_auth_token="canary-of-the-registry")
    assert redacted("canary-of-the-client, canary-of-the-registry") == "***, ***"


def test_each_line_of_a_key_is_a_secret() -> None:
    client_settings(
        {"ssl.key.pem": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\nshort\n-----END PRIVATE KEY-----"}
    )
    assert redacted("bad line MIIEvQIBADANBgkqhkiG in -----BEGIN PRIVATE KEY-----") == (
        "bad line *** in -----BEGIN PRIVATE KEY-----"
    )


def test_neither_a_dead_letter_nor_a_retry_carries_one() -> None:
    client_settings({"sasl.password": "canary-p"})
    record = Record("orders", 0, 5, None, b"canary-p is data here", (), 0)
    failure = failed(ValueError("login with canary-p failed"))
    assert failure.message == "login with *** failed"
    raw = replace(failure, message="from another process: canary-p", traceback='  raise Login("canary-p")')
    for letter in (
        dead_letter(record, raw, topic="dlq", group="g", attempts=1, now=0.0),
        retry_record(record, raw, topic="retry", group="g", attempt=2, due=0.0),
    ):
        assert b"canary-p" not in b"".join(value or b"" for _, value in letter.headers)
        assert letter.value == b"canary-p is data here", "records are never changed"


@pytest.mark.parametrize(
    "argument",
    [
        "sasl.password=canary",
        "--set=sasl.password=canary",
        "settings.ssl.key.password=can=ary",
        "sasl.pasword.secret=canary",
        "--registry=http://ann:canary@host:8081/a=b",
        "registry.basic.auth.user.info=ann:canary",
        "spark.hadoop.fs.s3a.secret.key=canary",
    ],
)
def test_a_command_line_is_kept_without_secrets(argument: str) -> None:
    shown = shown_command(["penstock", "dlq", "replay", "a b", argument])
    assert shown.startswith("penstock dlq replay 'a b' ")
    assert "***" in shown
    assert "canary" not in shown
    assert "ary" not in shown


def test_no_traceback_shows_one_not_even_a_part_that_a_bound_leaves() -> None:
    secret = "canary-" + "x" * 300
    client_settings({"sasl.password": secret})
    error = ValueError("a" * 300 + secret)
    error.add_note("b" * 300 + secret)
    try:
        raise error
    except ValueError as caught:
        message, traceback = described(caught)
    assert traceback
    assert "canary" not in message + traceback.replace('"canary-" + ', "")


def test_a_short_secret_hides_no_part_of_a_word_and_a_tiny_one_nothing() -> None:
    client_settings({"sasl.password": "abc", "ssl.key.password": "a"})
    assert redacted("abc abcd a") == "*** abcd a"


def _handle(value: bytes) -> None: ...


def _jaas(password: str) -> str:
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    return f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{quoted}";'
