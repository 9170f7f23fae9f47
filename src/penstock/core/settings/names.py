"""Every setting of librdkafka: its name, whether it is for consumers or producers, and the values that it accepts."""

from dataclasses import dataclass
from typing import Literal

Side = Literal["C", "P", "*"]  # consumers, producers, both


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers from ``low`` to ``high``."""

    low: int
    high: int
    whole: bool = True


Kind = Literal["text", "flag", "function"] | Numbers | frozenset[str]


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    side: Side
    kind: Kind


# One setting per line: name, side, and "text", "flag" (true or false), LOW..HIGH, or the allowed words.
_TABLE = """
acks P -1..1000
allow.auto.create.topics * flag
api.version.fallback.ms * 0..604800000
api.version.request * flag
api.version.request.timeout.ms * 1..300000
auto.commit.enable C flag
auto.commit.interval.ms C 0..86400000
auto.offset.reset C smallest|earliest|beginning|largest|latest|end|error
batch.num.messages P 1..1000000
batch.size P 1..2147483647
bootstrap.servers * text
broker.address.family * any|v4|v6
broker.address.ttl * 0..86400000
broker.version.fallback * text
builtin.features * text
check.crcs C flag
client.dns.lookup * use_all_dns_ips|resolve_canonical_bootstrap_servers_only
client.id * text
client.rack * text
compression.codec P none|gzip|snappy|lz4|zstd
compression.level P -1..12
compression.type P none|gzip|snappy|lz4|zstd
connections.max.idle.ms * 0..2147483647
consume.callback.max.messages C 0..1000000
coordinator.query.interval.ms C 1..3600000
debug * text
delivery.report.only.error P flag
delivery.timeout.ms P 0..2147483647
enable.auto.commit C flag
enable.auto.offset.store C flag
enable.gapless.guarantee P flag
enable.idempotence P flag
enable.metrics.push * flag
enable.partition.eof C flag
enable.random.seed * flag
enable.sasl.oauthbearer.unsecure.jwt * flag
enable.ssl.certificate.verification * flag
enabled_events * 0..2147483647
fetch.error.backoff.ms C 0..300000
fetch.max.bytes C 0..2147483135
fetch.message.max.bytes C 1..1000000000
fetch.min.bytes C 0..2147483647
fetch.queue.backoff.ms C 0..300000
fetch.wait.max.ms C 0..300000
group.id C text
group.instance.id C text
group.protocol C classic|consumer
group.protocol.type C text
group.remote.assignor C text
heartbeat.interval.ms C 1..3600000
https.ca.location * text
https.ca.pem * text
internal.termination.signal * 0..128
isolation.level C read_uncommitted|read_committed
linger.ms P 0..900000.0
log.connection.close * flag
log.queue * flag
log.thread.name * flag
log_level * 0..7
max.in.flight * 1..1000000
max.in.flight.requests.per.connection * 1..1000000
max.partition.fetch.bytes C 1..1000000000
max.poll.interval.ms C 1..86400000
max.poll.records C 1..2147483647
message.copy.max.bytes * 0..1000000000
message.max.bytes * 1000..1000000000
message.send.max.retries P 0..2147483647
message.timeout.ms P 0..2147483647
metadata.broker.list * text
metadata.max.age.ms * 1..86400000
metadata.recovery.rebootstrap.trigger.ms * 0..2147483647
metadata.recovery.strategy * none|rebootstrap
offset.store.method C none|file|broker
offset.store.path C text
offset.store.sync.interval.ms C -1..86400000
partition.assignment.strategy C text
partitioner P text
plugin.library.paths * text
produce.offset.report P flag
queue.buffering.backpressure.threshold P 1..1000000
queue.buffering.max.kbytes P 1..2147483647
queue.buffering.max.messages P 0..2147483647
queue.buffering.max.ms P 0..900000.0
queued.max.messages.kbytes C 1..2097151
queued.min.messages C 1..10000000
queuing.strategy P fifo|lifo
receive.message.max.bytes * 1000..2147483647
reconnect.backoff.jitter.ms * 0..3600000
reconnect.backoff.max.ms * 0..3600000
reconnect.backoff.ms * 0..3600000
request.required.acks P -1..1000
request.timeout.ms P 1..900000
retries P 0..2147483647
retry.backoff.max.ms * 1..300000
retry.backoff.ms * 1..300000
sasl.kerberos.keytab * text
sasl.kerberos.kinit.cmd * text
sasl.kerberos.min.time.before.relogin * 0..86400000
sasl.kerberos.principal * text
sasl.kerberos.service.name * text
sasl.mechanism * text
sasl.mechanisms * text
sasl.oauthbearer.assertion.algorithm * RS256|ES256
sasl.oauthbearer.assertion.claim.aud * text
sasl.oauthbearer.assertion.claim.exp.seconds * 1..2147483647
sasl.oauthbearer.assertion.claim.iss * text
sasl.oauthbearer.assertion.claim.jti.include * flag
sasl.oauthbearer.assertion.claim.nbf.seconds * 0..2147483647
sasl.oauthbearer.assertion.claim.sub * text
sasl.oauthbearer.assertion.file * text
sasl.oauthbearer.assertion.jwt.template.file * text
sasl.oauthbearer.assertion.private.key.file * text
sasl.oauthbearer.assertion.private.key.passphrase * text
sasl.oauthbearer.assertion.private.key.pem * text
sasl.oauthbearer.client.credentials.client.id * text
sasl.oauthbearer.client.credentials.client.secret * text
sasl.oauthbearer.client.id * text
sasl.oauthbearer.client.secret * text
sasl.oauthbearer.config * text
sasl.oauthbearer.extensions * text
sasl.oauthbearer.grant.type * client_credentials|urn:ietf:params:oauth:grant-type:jwt-bearer
sasl.oauthbearer.metadata.authentication.type * none|azure_imds|aws_iam
sasl.oauthbearer.method * default|oidc
sasl.oauthbearer.scope * text
sasl.oauthbearer.sub.claim.name * text
sasl.oauthbearer.token.endpoint.url * text
sasl.password * text
sasl.username * text
security.protocol * plaintext|ssl|sasl_plaintext|sasl_ssl
session.timeout.ms C 1..3600000
share.acknowledgement.mode C text
socket.blocking.max.ms * 1..60000
socket.connection.setup.timeout.ms * 1000..2147483647
socket.keepalive.enable * flag
socket.max.fails * 0..1000000
socket.nagle.disable * flag
socket.receive.buffer.bytes * 0..100000000
socket.send.buffer.bytes * 0..100000000
socket.timeout.ms * 10..300000
ssl.ca.certificate.stores * text
ssl.ca.location * text
ssl.ca.pem * text
ssl.certificate.location * text
ssl.certificate.pem * text
ssl.cipher.suites * text
ssl.crl.location * text
ssl.curves.list * text
ssl.endpoint.identification.algorithm * none|https
ssl.engine.id * text
ssl.engine.location * text
ssl.key.location * text
ssl.key.password * text
ssl.key.pem * text
ssl.keystore.location * text
ssl.keystore.password * text
ssl.providers * text
ssl.sigalgs.list * text
statistics.interval.ms * 0..86400000
sticky.partitioning.linger.ms P 0..900000
test.mock.num.brokers * 0..10000
topic.blacklist * text
topic.metadata.propagation.max.ms * 0..3600000
topic.metadata.refresh.fast.cnt * 0..1000
topic.metadata.refresh.fast.interval.ms * 1..60000
topic.metadata.refresh.interval.ms * -1..3600000
topic.metadata.refresh.sparse * flag
transaction.timeout.ms P 1000..2147483647
transactional.id P text
"""

# Callbacks that the Python client (confluent-kafka) adds.
_FUNCTIONS = ("oauth_cb", "stats_cb", "throttle_cb")

# Two names of one setting. Penstock uses the second, which is also the name in the Java client.
ALIASES = {
    "compression.codec": "compression.type",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "queue.buffering.max.ms": "linger.ms",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}


def _kind(text: str) -> Kind:
    if text == "text":
        return "text"
    if text == "flag":
        return "flag"
    low, dots, high = text.partition("..")
    if dots:
        return Numbers(int(low), int(high.removesuffix(".0")), whole="." not in high)
    return frozenset(text.split("|"))


def _rows() -> dict[str, Setting]:
    rows: dict[str, Setting] = {name: Setting(name, "*", "function") for name in _FUNCTIONS}
    for line in _TABLE.split("\n"):
        if line:
            name, side, values = line.split(" ")
            rows[name] = Setting(name, "C" if side == "C" else "P" if side == "P" else "*", _kind(values))
    return rows


SETTINGS = _rows()
