"""Settings by their Kafka names: accepted, translated and refused ones."""

from typing import Any

import pytest

from penstock.core.settings import client_settings, for_side
from penstock.core.settings.java_names import ABSENT, RENAMED
from penstock.core.settings.names import ALIASES, SETTINGS
from penstock.core.settings.reserved import RESERVED
from penstock.core.settings.settings_check import WRITABLE
from penstock.errors import ConfigError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ({"fetch.min.bytes": 5}, {"fetch.min.bytes": 5}),
        ({"fetch.min.bytes": "5"}, {"fetch.min.bytes": 5}),
        ({"fetch.max.wait.ms": 20}, {"fetch.wait.max.ms": 20}),
        ({"fetch.max.bytes": 5_000_000}, {"fetch.max.bytes": 5_000_000}),
        ({"max.partition.fetch.bytes": 9}, {"max.partition.fetch.bytes": 9}),
        ({"fetch.message.max.bytes": 9}, {"max.partition.fetch.bytes": 9}),
        ({"session.timeout.ms": 6000, "heartbeat.interval.ms": 2000}, None),
        ({"max.poll.interval.ms": 60_000}, None),
        ({"request.timeout.ms": 9000}, None),
        ({"client.id": "me", "client.rack": "eu-1a"}, None),
        ({"client.id": 7}, {"client.id": "7"}),
        ({"client.rack": None}, {}),
        ({"receive.buffer.bytes": -1}, {"socket.receive.buffer.bytes": 0}),
        ({"send.buffer.bytes": "65536"}, {"socket.send.buffer.bytes": 65_536}),
        ({"connections.max.idle.ms": -1}, {"connections.max.idle.ms": 0}),
        ({"buffer.memory": 33_554_433}, {"queue.buffering.max.kbytes": 32_769}),
        ({"max.request.size": 2_000_000}, {"message.max.bytes": 2_000_000}),
        ({"check.crcs": "TRUE"}, {"check.crcs": True}),
        ({"linger.ms": "0.5"}, {"linger.ms": 0.5}),
        ({"queue.buffering.max.ms": 7}, {"linger.ms": 7}),
        ({"isolation.level": "READ_COMMITTED"}, {"isolation.level": "read_committed"}),
        ({"security.protocol": "SASL_SSL"}, {"security.protocol": "sasl_ssl"}),
        ({"ssl.endpoint.identification.algorithm": ""}, {"ssl.endpoint.identification.algorithm": "none"}),
        (
            {"sasl.jaas.config": f'{PLAIN} username="ann" password="a\\"b;c";'},
            {"sasl.username": "ann", "sasl.password": 'a"b;c'},
        ),
        (
            {"sasl.jaas.config": "a.ScramLoginModule required password='p' username=ann;"},
            {"sasl.password": "p", "sasl.username": "ann"},
        ),
        (
            {"sasl.jaas.config": 'a.OAuthBearerLoginModule required clientId="i" clientSecret="s";'},
            {
                "sasl.oauthbearer.client.id": "i",
                "sasl.oauthbearer.client.secret": "s",
                "sasl.oauthbearer.method": "oidc",
            },
        ),
        (
            {"sasl.jaas.config": 'com.sun.Krb5LoginModule required useKeyTab=true keyTab="/k" principal="me";'},
            {"sasl.kerberos.keytab": "/k", "sasl.kerberos.principal": "me"},
        ),
        ({"ssl.truststore.location": "/ca.pem"}, {"ssl.ca.location": "/ca.pem"}),
        ({"ssl.truststore.type": "pem", "ssl.truststore.location": "/ca"}, {"ssl.ca.location": "/ca"}),
        ({"ssl.truststore.certificates": "CERT"}, {"ssl.ca.pem": "CERT"}),
        (
            {"ssl.keystore.location": "/k", "ssl.keystore.type": "PEM"},
            {"ssl.certificate.location": "/k", "ssl.key.location": "/k"},
        ),
        ({"ssl.keystore.location": "/k.jks", "ssl.keystore.type": "PKCS12"}, {"ssl.keystore.location": "/k.jks"}),
        (
            {"ssl.keystore.certificate.chain": "C", "ssl.keystore.key": "K"},
            {"ssl.certificate.pem": "C", "ssl.key.pem": "K"},
        ),
    ],
)
def test_a_setting_is_kept_under_one_name_with_the_right_type(
    written: dict[str, Any], kept: dict[str, Any] | None
) -> None:
    once = client_settings(written)
    assert once == (written if kept is None else kept)
    assert client_settings(once) == once


# Every setting that the chapter on consumers names, with a value, and its translation.
OF_THE_CHAPTER: dict[str, tuple[Any, str]] = {
    "fetch.min.bytes": (1, ""),
    "fetch.max.wait.ms": (500, ""),
    "fetch.max.bytes": (52_428_800, ""),
    "max.poll.records": (500, "max_in_flight="),
    "max.partition.fetch.bytes": (1_048_576, ""),
    "session.timeout.ms": (10_000, ""),
    "heartbeat.interval.ms": (3_000, ""),
    "max.poll.interval.ms": (300_000, ""),
    "max.poll.timeout.ms": (5, "Did you mean 'max.poll.interval.ms'?"),
    "default.api.timeout.ms": (60_000, "request.timeout.ms"),
    "request.timeout.ms": (30_000, ""),
    "auto.offset.reset": ("earliest", "start="),
    "enable.auto.commit": (True, "commit_every="),
    "auto.commit.interval.ms": (5_000, "commit_every="),
    "partition.assignment.strategy": ("org.apache.kafka.clients.consumer.RangeAssignor", "assignor="),
    "client.id": ("me", ""),
    "client.rack": ("eu", ""),
    "replica.selector.class": ("x", "client.rack"),
    "group.instance.id": ("one", "static_id="),
    "group.id": ("g", "group="),
    "bootstrap.servers": ("b:9092", "brokers="),
    "key.deserializer": ("x", "type hint"),
    "value.deserializer": ("x", "type hint"),
    "receive.buffer.bytes": (-1, ""),
    "send.buffer.bytes": (-1, ""),
    "offsets.retention.minutes": (5, "broker"),
    "schema.registry.url": ("http://r", "registry=..."),
    "specific.avro.reader": ("true", "type hint"),
}


@pytest.mark.parametrize("name", OF_THE_CHAPTER)
def test_each_setting_of_the_chapter_works_or_is_explained(name: str) -> None:
    value, explanation = OF_THE_CHAPTER[name]
    if not explanation:
        assert for_side(client_settings({name: value}), "C")
        return
    with pytest.raises(ConfigError) as caught:
        client_settings({name: value})
    assert name in caught.value.problem
    assert explanation in caught.value.hint


@pytest.mark.parametrize(
    ("settings", "problem", "hint"),
    [
        ({"sesion.timeout.ms": 5}, "'sesion.timeout.ms' is not known", "Did you mean 'session.timeout.ms'?"),
        ({"zzz": 5}, "'zzz' is not known", "librdkafka or the Java client"),
        ({5: 5}, "5 is not known", "librdkafka"),
        ({"session.timeout.ms": "soon"}, "session.timeout.ms='soon' is not a number", "milliseconds, from 1 to"),
        ({"session.timeout.ms": -1}, "session.timeout.ms=-1 is out of range", "from 1 to 3600000"),
        ({"session.timeout.ms": True}, "session.timeout.ms=True has the wrong type", "a whole number"),
        ({"log_level": 9}, "log_level=9 is out of range", "a whole number, from 0 to 7"),
        ({"fetch.min.bytes": 1.5}, "is not a whole number", "bytes"),
        ({"fetch.max.wait.ms": "x"}, "fetch.max.wait.ms='x' is not a number", "milliseconds"),
        ({"linger.ms": "nan"}, "is out of range", "a number of milliseconds"),
        ({"client.id": ["a"]}, "'client.id' is a list", "text"),
        ({"check.crcs": "maybe"}, "is neither true nor false", "true or false"),
        ({"compression.type": "lz5"}, "compression.type='lz5' is not an allowed value", "Did you mean 'lz4'?"),
        ({"isolation.level": "none"}, "is not an allowed value", "read_committed"),
        ({"oauth_cb": 5}, "is not a function", "in code"),
        ({"partition.assignment.strategy": "sticky"}, "partition.assignment.strategy", "assignor="),
        ({"group.protocol": "consumer"}, "group.protocol", "protocol="),
        ({"heartbeat.interval.ms": 9, "session.timeout.ms": 9}, "is 9 and 'session.timeout.ms' is 9", "shorter"),
        ({"session.timeout.ms": 9, "max.poll.interval.ms": 8}, "'max.poll.interval.ms' is 8", "no longer"),
        ({"ssl.truststore.location": "/t.jks"}, "names a JKS store", "keytool -exportcert"),
        ({"ssl.truststore.location": "/t.p12"}, "names a PKCS12 store", "openssl pkcs12"),
        ({"ssl.truststore.password": "x"}, "does not exist in this client", "keytool"),
        ({"ssl.keystore.location": "/k", "ssl.keystore.type": "JKS"}, "names a JKS store", "-importkeystore"),
        ({"ssl.keystore.location": "/k", "ssl.keystore.type": "ZIP"}, "not a type of store", "PEM"),
        ({"sasl.jaas.config": 5}, "is not of the form", "sasl.username"),
        ({"sasl.jaas.config": f"{PLAIN} username=a;"}, "names no password", "sasl.username"),
        ({"sasl.jaas.config": "x.OwnLoginModule required a=b;"}, "'OwnLoginModule'", "sasl.username"),
    ],
)
def test_an_impossible_setting_is_one_clear_error(settings: dict[Any, Any], problem: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        client_settings(settings)
    assert problem in caught.value.problem
    assert hint in caught.value.hint


def test_a_consumer_and_a_producer_each_get_their_own() -> None:
    settings = client_settings(
        {"fetch.min.bytes": 5, "linger.ms": 7, "client.id": "me", "request.timeout.ms": 900_000, "oauth_cb": print}
    )
    shared = {"client.id": "me", "oauth_cb": print}
    assert for_side(settings, "C") == {"fetch.min.bytes": 5, "socket.timeout.ms": 300_000, **shared}
    assert for_side(settings, "P") == {"linger.ms": 7, "request.timeout.ms": 900_000, **shared}
    assert for_side(settings, "*") == {"socket.timeout.ms": 300_000, **shared}
    both = client_settings({"socket.timeout.ms": 10, "request.timeout.ms": 20})
    assert for_side(both, "C")["socket.timeout.ms"] == 10


def test_the_tables_agree_with_each_other() -> None:
    assert set(ALIASES.values()) <= set(SETTINGS)
    assert set(RENAMED.values()) <= set(SETTINGS)
    assert not set(RENAMED) & set(SETTINGS)
    assert not set(ABSENT) & (set(SETTINGS) | set(RENAMED) | set(RESERVED))
    assert not WRITABLE & set(RESERVED)
    assert all(hint.endswith((".", ":")) for hint in (*RESERVED.values(), *ABSENT.values()))


# Of kafka-clients 4.3, by ConsumerConfig, ProducerConfig and AdminClientConfig; those that librdkafka does not know.
OF_JAVA = """
auto.include.jmx.reporter bootstrap.controllers buffer.memory compression.gzip.level compression.lz4.level
compression.zstd.level config.providers default.api.timeout.ms exclude.internal.topics fetch.max.wait.ms
interceptor.classes internal.leave.group.on.close internal.throw.on.fetch.stable.offset.unsupported key.deserializer
key.serializer max.block.ms max.request.size metadata.max.idle.ms metric.reporters metrics.num.samples
metrics.recording.level metrics.sample.window.ms partitioner.adaptive.partitioning.enable
partitioner.availability.timeout.ms partitioner.class partitioner.ignore.keys receive.buffer.bytes
sasl.client.callback.handler.class sasl.jaas.config sasl.kerberos.ticket.renew.jitter
sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class sasl.login.class
sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.oauthbearer.assertion.template.file
sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.refresh.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
sasl.oauthbearer.scope.claim.name security.providers send.buffer.bytes share.acquire.mode
socket.connection.setup.timeout.max.ms ssl.enabled.protocols ssl.engine.factory.class ssl.keymanager.algorithm
ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.type ssl.protocol ssl.provider
ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location
ssl.truststore.password ssl.truststore.type transaction.two.phase.commit.enable value.deserializer value.serializer
"""


@pytest.mark.parametrize("name", OF_JAVA.split())
def test_every_java_name_is_known(name: str) -> None:
    assert name in WRITABLE or name in RESERVED or name in ABSENT
