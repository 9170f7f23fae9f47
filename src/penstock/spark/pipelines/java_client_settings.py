"""Translates the settings of the local engine's client (librdkafka) to those of the Java client that Spark uses."""

from collections.abc import Mapping

from penstock.errors import ConfigError
from penstock.spark.pipelines.private_keys import key_for_java
from penstock.spark.session.worker_settings import PEM_TEXTS, Read, read_file, read_text

_IDENTIFICATION = "ssl.endpoint.identification.algorithm"

# Settings with the same name and meaning in both clients.
_SAME = frozenset(
    "client.id client.rack client.dns.lookup security.protocol sasl.mechanism sasl.kerberos.service.name "
    "sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin ssl.key.password ssl.keystore.location "
    f"ssl.keystore.password {_IDENTIFICATION} metadata.max.age.ms connections.max.idle.ms reconnect.backoff.ms "
    "reconnect.backoff.max.ms retry.backoff.ms retry.backoff.max.ms request.timeout.ms "
    "socket.connection.setup.timeout.ms allow.auto.create.topics isolation.level check.crcs fetch.min.bytes "
    "fetch.max.bytes max.partition.fetch.bytes batch.size compression.type delivery.timeout.ms linger.ms "
    "max.in.flight.requests.per.connection retries transaction.timeout.ms".split()
)

# Settings with the same meaning and another name.
_RENAMED = {
    "compression.codec": "compression.type",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "message.max.bytes": "max.request.size",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "queue.buffering.max.ms": "linger.ms",
    "sasl.mechanisms": "sasl.mechanism",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.timeout.ms": "request.timeout.ms",
}

# Settings of group members. Spark is not a member, so these change nothing here; the local engine uses them.
_OF_MEMBERS = frozenset(
    {
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "max.poll.interval.ms",
        "partition.assignment.strategy",
        "session.timeout.ms",
    }
)

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_LOGIN = ("sasl.username", "sasl.password")


def java_settings(settings: Mapping[str, object], *, read: Read = read_file) -> dict[str, str]:
    """Return the settings for the Java client. No error of this function shows a value: some values are secrets.

    Reads certificates and keys here and passes them as text, so that executors on other machines need no files.
    """
    texts = {name: _text(name, value) for name, value in settings.items() if name not in _OF_MEMBERS}
    translated = {_RENAMED.get(name, name): value for name, value in texts.items()}
    login = {name: translated.pop(name) for name in _LOGIN if name in translated}
    pems = {
        **{name: translated.pop(text) for name, text in PEM_TEXTS.items() if text in translated},
        **{name: read_text(name, translated.pop(name), read) for name in PEM_TEXTS if name in translated},
    }
    if translated.get(_IDENTIFICATION) == "none":
        translated[_IDENTIFICATION] = ""  # Java's word for none
    for name in translated:
        if name not in _SAME and name not in _RENAMED.values():
            raise ConfigError(
                f"The setting {name!r} has no counterpart in the Java client that Spark uses.",
                hint="Leave it out, or run this app on the local engine.",
            )
    stores = _pem_stores(pems, translated.get("ssl.key.password"))
    if "ssl.keystore.key" in stores:
        translated.pop("ssl.key.password", None)  # the key is decrypted now, and Java would try to decrypt it again
    return {**translated, **_jaas(translated.get("sasl.mechanism"), login), **stores}


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ConfigError(
        f"The setting {name!r} is a {type(value).__name__}, which Spark cannot pass to its Java client.",
        hint="Use text, a number or a boolean, or run this app on the local engine.",
    )


def _jaas(mechanism: str | None, login: Mapping[str, str]) -> dict[str, str]:
    if not login:
        return {}
    if mechanism not in _LOGIN_MODULES:
        raise ConfigError(
            f"sasl.username and sasl.password work with sasl.mechanism {', '.join(_LOGIN_MODULES)}, "
            f"and it is {mechanism!r}.",
            hint="Set sasl.mechanism to the one that the broker asks for.",
        )
    if len(login) < len(_LOGIN):
        missing = next(name for name in _LOGIN if name not in login)
        raise ConfigError(f"The setting {missing!r} is missing.", hint="A login needs sasl.username and sasl.password.")
    name, password = (_quoted(login[key]) for key in _LOGIN)
    return {"sasl.jaas.config": f"{_LOGIN_MODULES[mechanism]} required username={name} password={password};"}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _pem_stores(pems: Mapping[str, str], password: str | None) -> dict[str, str]:
    stores: dict[str, str] = {}
    if "ssl.ca.location" in pems:
        stores |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": pems["ssl.ca.location"]}
    chain, key = pems.get("ssl.certificate.location"), pems.get("ssl.key.location")
    if (chain is None) != (key is None):
        raise ConfigError(
            "Only one of ssl.certificate.location and ssl.key.location (or their .pem) is set.",
            hint="Set both: a client certificate needs its private key.",
        )
    if chain is not None and key is not None:
        stores |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": chain,
            "ssl.keystore.key": key_for_java(key, password),
        }
    return stores
