"""TLS to a real broker: records, commands, and the errors of failed connections."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from cli_helpers import Penstock
from kafka_helpers import catch_up, produce, read_values
from penstock import App
from penstock.errors import ServerError
from penstock.kafka import Cluster
from tls_servers import KEY_PASSWORD, LOGIN_PASSWORD, Authority, SecureBroker

WAYS = ("tls", "certificate", "login")
APP = """
from penstock import App

app = App({group!r})


@app.consume({topic!r}, to={out!r})
def handle(value: int) -> int:
    return value
"""


@pytest.fixture
def topic(secure: SecureBroker) -> str:
    name = f"topic-{uuid4().hex[:8]}"
    Cluster(secure.plain).create_topics([name], partitions=2)
    produce(secure.plain, name, range(10))
    return name


@pytest.fixture
def penstock(
    secure: SecureBroker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Penstock:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return Penstock(secure.mutual, monkeypatch, capsys)


def flags(settings: dict[str, Any], prefix: str = "") -> list[str]:
    return [word for name, value in settings.items() for word in ("--set", f"{prefix}{name}={value}")]


@pytest.mark.parametrize(
    ("way", "assignor"), [*((way, None) for way in WAYS), *((way, "topic-spread") for way in WAYS)]
)
def test_native_and_self_managed_members_read_and_write(
    secure: SecureBroker, topic: str, group: str, way: str, assignor: str | None
) -> None:
    address, settings = {
        "tls": (secure.tls, secure.by_tls()),
        "certificate": (secure.mutual, secure.by_certificate()),
        "login": (secure.login, secure.by_login()),
    }[way]
    app, out = App(group, settings=settings), f"{group}.out"

    @app.consume(topic, to=out, assignor=assignor)
    def double(value: int) -> int:
        return 2 * value

    catch_up(app, address)
    assert sorted(int(value or b"") for value in read_values(secure.plain, out)) == [2 * n for n in range(10)]
    assert Cluster(address, settings).lag(group, [topic]) == 0


@pytest.fixture
def shop(topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An app that copies the topic to another, by its name on the command line."""
    module = f"shop_{topic[6:]}"
    (tmp_path / f"{module}.py").write_text(APP.format(group=topic, topic=topic, out=f"{topic}.out"))
    monkeypatch.syspath_prepend(str(tmp_path))
    return f"{module}:app"


def test_commands_go_by_certificates_and_show_no_password(
    penstock: Penstock, secure: SecureBroker, topic: str, shop: str, tmp_path: Path
) -> None:
    lines = [f'"{name}" = "{value}"' for name, value in secure.by_certificate().items()]
    (tmp_path / "penstock.toml").write_text("\n".join(["[settings]", *lines]))
    shown = {
        command: penstock(*command.split())
        for command in (
            f"produce {topic} --generate 1 --value 10",
            f"tail {topic} --from-beginning",
            f"run {shop} --until-caught-up",
            f"run {shop} --print-config",
            f"lag {topic}",
            # Both use kafka-python too: for share groups, and for sizes on disk.
            "groups ls",
            f"topics describe {topic}",
        )
    }
    assert len(shown[f"tail {topic} --from-beginning"].out.splitlines()) == 11
    assert len(read_values(secure.plain, f"{topic}.out")) == 11
    assert "ssl.key.password" in shown[f"run {shop} --print-config"].out
    for answer in shown.values():
        assert KEY_PASSWORD not in answer.out + answer.err


def test_certificates_may_come_from_the_environment_and_from_flags(
    penstock: Penstock, secure: SecureBroker, topic: str, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = secure.by_certificate()
    shown = [
        penstock("topics", "ls", *flags(settings)),
        penstock("run", shop, "--print-config", *flags(settings, "settings.")),
    ]
    for name, value in settings.items():
        monkeypatch.setenv(f"PENSTOCK_SETTINGS_{name.upper().replace('.', '_')}", value)
    shown += [penstock("topics", "ls"), penstock("run", shop, "--print-config")]
    for listed, config in (shown[:2], shown[2:]):
        assert topic in listed.out
        assert "ssl.key.password" in config.out
        assert KEY_PASSWORD not in listed.out + listed.err + config.out + config.err


def by_tls(secure: SecureBroker, _folder: Path) -> dict[str, Any]:
    return secure.by_tls()


def without_tls(_secure: SecureBroker, _folder: Path) -> dict[str, Any]:
    return {}


def wrong_ca(secure: SecureBroker, folder: Path) -> dict[str, Any]:
    return {**secure.by_tls(), "ssl.ca.location": str(Authority(folder, "stranger").certificate)}


def strange_certificate(secure: SecureBroker, folder: Path) -> dict[str, Any]:
    stranger = Authority(folder, "stranger").sign("strange")
    files = {"ssl.certificate.location": str(stranger.certificate), "ssl.key.location": str(stranger.key)}
    return {**secure.by_tls(), **files}


def wrong_password(secure: SecureBroker, _folder: Path) -> dict[str, Any]:
    return {**secure.by_login(), "sasl.password": "a wrong one"}


# The listener, the settings, what is said about it, and what to do.
REFUSED = {
    "a stranger's authority": ("tls", wrong_ca, "is not trusted", "ssl.ca.location"),
    "another name": ("misnamed", by_tls, "issued for another name", "advertised.listeners"),
    "a certificate of last week": ("expired", by_tls, "has expired", "Renew the broker"),
    "no certificate": ("mutual", by_tls, "requires a certificate", "ssl.certificate.location"),
    "a stranger's certificate": ("mutual", strange_certificate, "does not accept the certificate", "the broker trusts"),
    "no TLS here": ("tls", without_tls, "uses TLS, but security.protocol is plaintext", "security.protocol=ssl"),
    "no TLS there": ("plain", by_tls, "does not use TLS", "TLS listener"),
    "a wrong password": ("login", wrong_password, "did not accept the login", "sasl.password"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_failed_connection_is_one_error_that_says_why_and_what_to_do(
    penstock: Penstock, secure: SecureBroker, tmp_path: Path, case: str
) -> None:
    listener, make, problem, hint = REFUSED[case]
    refused = penstock("lag", "-b", getattr(secure, listener), *flags(make(secure, tmp_path)), ok=False)
    assert refused.code == 3, refused
    first, second = refused.err.strip().splitlines()
    assert problem in first
    assert hint in second
    assert "a wrong one" not in refused.err


def test_an_app_does_not_start_without_a_secure_connection(
    secure: SecureBroker, topic: str, group: str, tmp_path: Path
) -> None:
    app = App(group, settings=wrong_ca(secure, tmp_path))

    @app.consume(topic, assignor="topic-spread")
    def handle(value: int) -> None: ...

    with pytest.raises(ServerError, match="is not trusted"):
        catch_up(app, secure.tls)


def test_a_key_that_does_not_open_is_a_wrong_setting_and_its_password_is_not_shown(
    penstock: Penstock, secure: SecureBroker
) -> None:
    settings = {**secure.by_certificate(), "ssl.key.password": "opens nothing"}
    refused = penstock("lag", *flags(settings), ok=False)
    assert refused.code == 2
    assert "ssl.key.location failed" in refused.err
    assert "ssl.key.password opens the key" in refused.err
    assert "opens nothing" not in refused.err
    assert LOGIN_PASSWORD not in refused.err
