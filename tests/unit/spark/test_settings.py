"""From librdkafka's settings to the Java client's."""

import pytest

from penstock.errors import ConfigError
from penstock.spark.settings import java_settings

FILES = {"ca.pem": "CA", "client.pem": "CHAIN", "client.key": "-----BEGIN PRIVATE KEY-----"}


def read(path: str) -> str:
    if path not in FILES:
        raise FileNotFoundError(2, "No such file or directory", path)
    return FILES[path]


def test_what_both_clients_name_alike_passes_as_text() -> None:
    given = {"client.rack": "a", "fetch.min.bytes": 5, "check.crcs": True, "allow.auto.create.topics": False}
    assert java_settings(given) == {
        "client.rack": "a",
        "fetch.min.bytes": "5",
        "check.crcs": "true",
        "allow.auto.create.topics": "false",
    }


def test_what_they_name_otherwise_is_renamed() -> None:
    given = {"message.max.bytes": 10, "sasl.mechanisms": "GSSAPI", "fetch.wait.max.ms": 7}
    assert java_settings(given) == {"max.request.size": "10", "sasl.mechanism": "GSSAPI", "fetch.max.wait.ms": "7"}


def test_what_only_members_of_a_group_need_is_left_out() -> None:
    assert java_settings({"session.timeout.ms": 9000, "partition.assignment.strategy": "range"}) == {}


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", "plain.PlainLoginModule"), ("SCRAM-SHA-256", "scram.ScramLoginModule")],
)
def test_a_login_becomes_a_jaas_line(mechanism: str, module: str) -> None:
    given = {"sasl.mechanism": mechanism, "sasl.username": "me", "sasl.password": 'p"a\\s;s'}
    assert java_settings(given) == {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"org.apache.kafka.common.security.{module} required "
        'username="me" password="p\\"a\\\\s;s";',
    }


def test_pem_files_are_handed_over_as_text() -> None:
    given = {
        "security.protocol": "SSL",
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "client.pem",
        "ssl.key.location": "client.key",
        "ssl.key.password": "secret",
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert java_settings(given, read=read) == {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "CA",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "CHAIN",
        "ssl.keystore.key": "-----BEGIN PRIVATE KEY-----",
        "ssl.key.password": "secret",
        "ssl.endpoint.identification.algorithm": "",
    }


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"queued.min.messages": 5}, "queued.min.messages"),
        ({"enable.ssl.certificate.verification": False}, "enable.ssl.certificate.verification"),
        ({"oauth_cb": print}, "oauth_cb"),
        ({"ssl.ca.location": "nowhere.pem"}, "nowhere.pem: no such file"),
        ({"ssl.certificate.location": "client.pem"}, "ssl.key.location"),
        ({"sasl.username": "me", "sasl.mechanism": "PLAIN"}, "sasl.password"),
        ({"sasl.username": "me", "sasl.password": "hush", "sasl.mechanism": "OAUTHBEARER"}, "OAUTHBEARER"),
        ({"sasl.username": "me", "sasl.password": "hush"}, "sasl.mechanism"),
    ],
)
def test_what_cannot_be_translated_is_named_and_no_secret_is(settings: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        java_settings(settings, read=read)
    assert named in caught.value.problem
    assert "hush" not in str(caught.value)


def test_a_key_that_java_cannot_read_is_refused_with_the_way_to_convert_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILES, "client.key", "-----BEGIN RSA PRIVATE KEY-----\nhush")
    with pytest.raises(ConfigError) as caught:
        java_settings({"ssl.certificate.location": "client.pem", "ssl.key.location": "client.key"}, read=read)
    assert "openssl pkcs8" in caught.value.hint
    assert "hush" not in str(caught.value)
