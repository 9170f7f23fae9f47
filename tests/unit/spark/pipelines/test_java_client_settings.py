"""From librdkafka's settings to the Java client's."""

import pickle
import sys

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)

from penstock.core.settings import client_settings
from penstock.errors import ConfigError
from penstock.spark.pipelines.java_client_settings import java_settings
from penstock.spark.pipelines.task_transaction import Transactions
from penstock.spark.session.worker_settings import settings_for_workers

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
        "ssl.endpoint.identification.algorithm": "",
    }


def test_certificates_that_are_given_as_text_pass_as_they_are() -> None:
    given = client_settings(
        {"ssl.truststore.certificates": "CA", "ssl.certificate.pem": "CHAIN", "ssl.keystore.key": FILES["client.key"]}
    )
    assert java_settings(given, read=read) == {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "CA",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "CHAIN",
        "ssl.keystore.key": "-----BEGIN PRIVATE KEY-----",
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
    hush = "-----BEGIN RSA PRIVATE KEY-----\nhush\n-----END RSA PRIVATE KEY-----"
    monkeypatch.setitem(FILES, "client.key", hush)
    with pytest.raises(ConfigError) as caught:
        java_settings({"ssl.certificate.location": "client.pem", "ssl.key.location": "client.key"}, read=read)
    assert "openssl pkcs8" in caught.value.hint
    assert "hush" not in str(caught.value)


PASSWORD = "opens it"
ENCRYPTED = BestAvailableEncryption(PASSWORD.encode())


@pytest.mark.parametrize(
    ("form", "encryption"),
    [
        (PrivateFormat.PKCS8, ENCRYPTED),
        (PrivateFormat.TraditionalOpenSSL, ENCRYPTED),
        (PrivateFormat.TraditionalOpenSSL, NoEncryption()),
    ],
)
def test_a_key_of_any_form_reaches_java_in_the_one_that_it_reads(
    monkeypatch: pytest.MonkeyPatch, form: PrivateFormat, encryption: KeySerializationEncryption
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    monkeypatch.setitem(FILES, "client.key", key.private_bytes(Encoding.PEM, form, encryption).decode() + "CHAIN")
    given = {
        "ssl.certificate.location": "client.pem",
        "ssl.key.location": "client.key",
        "ssl.key.password": PASSWORD,
    }
    found = java_settings(given, read=read)
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    assert (found["ssl.keystore.key"], "ssl.key.password" in found) == (plain, False)
    if encryption is ENCRYPTED:
        with pytest.raises(ConfigError, match=r"cannot be decrypted") as caught:
            java_settings({**given, "ssl.key.password": "does not"}, read=read)
        assert "does not" not in str(caught.value)


def test_without_the_library_that_decrypts_keys_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    monkeypatch.setitem(FILES, "client.key", "-----BEGIN RSA PRIVATE KEY-----\n-----END RSA PRIVATE KEY-----")
    with pytest.raises(ConfigError, match="a form that Java does not read") as caught:
        java_settings({"ssl.certificate.location": "client.pem", "ssl.key.location": "client.key"}, read=read)
    assert "pip install cryptography" in caught.value.hint


def test_workers_elsewhere_get_the_text_of_files_that_they_do_not_have() -> None:
    given = {
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "client.pem",
        "ssl.key.location": "client.key",
        "sasl.password": "hunter2",
        "linger.ms": 7,
    }
    assert settings_for_workers(given, read=read) == {
        "ssl.ca.pem": "CA",
        "ssl.certificate.pem": "CHAIN",
        "ssl.key.pem": FILES["client.key"],
        "sasl.password": "hunter2",
        "linger.ms": 7,
    }
    with pytest.raises(ConfigError, match=r"cannot be read: gone\.pem"):
        settings_for_workers({"ssl.ca.location": "gone.pem"}, read=read)


def test_what_travels_to_workers_prints_no_secret() -> None:
    settings = settings_for_workers({"sasl.password": "hunter2", "ssl.key.location": "client.key"}, read=read)
    shown = repr(Transactions("localhost:9092", "shop", settings))
    assert "linger.ms" not in shown
    assert "hunter2" not in shown
    assert "PRIVATE KEY" not in shown
    copied = pickle.loads(pickle.dumps(Transactions("localhost:9092", "shop", settings)))
    assert copied.settings["sasl.password"] == "hunter2"
    assert "hunter2" not in repr(copied)
