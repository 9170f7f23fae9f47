"""Secrets appear nowhere."""

import logging
from typing import Any

import pytest

from penstock import App
from penstock.core.settings import Settings, client_settings, hide_passwords, is_secret, scrubbed
from penstock.core.settings.names import SETTINGS
from penstock.errors import ConfigError
from penstock.kafka.clients import make_consumer

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
    assert "in *** format" in caught.value.problem  # the text holds this very word, so it serves as a secret
    assert "hunter2" not in str(caught.value) + caplog.text


def test_a_text_is_scrubbed_of_secrets_and_of_passwords_in_urls() -> None:
    settings = client_settings({"sasl.password": "abc", "ssl.key.password": "hunter2-long", "client.id": "me"})
    assert scrubbed("abc abcd xhunter2-longx me", settings) == "*** abcd x***x me"
    assert hide_passwords("postgresql://ann:pw@db/x") == "postgresql://ann:***@db/x"
    assert hide_passwords("http://host:8080/a@b") == "http://host:8080/a@b"
    assert hide_passwords(5) == 5


def test_settings_show_functions_by_their_names() -> None:
    assert repr(Settings({"oauth_cb": print})) == "{'oauth_cb': 'print'}"
