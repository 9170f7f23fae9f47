"""Settings of the Java client that librdkafka names differently or does not have, with what to use instead."""

# Java's name and librdkafka's name of the same setting.
RENAMED = {
    "compression.gzip.level": "compression.level",
    "compression.lz4.level": "compression.level",
    "compression.zstd.level": "compression.level",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "sasl.oauthbearer.assertion.template.file": "sasl.oauthbearer.assertion.jwt.template.file",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}

# For these, Java's -1 ("system default" or "never") is 0 in librdkafka.
MINUS_ONE_IS_ZERO = frozenset({"receive.buffer.bytes", "send.buffer.bytes", "connections.max.idle.ms"})

# Translated together with other settings, or into several; see logins.py and key_stores.py.
LOGINS = frozenset({"sasl.jaas.config"})
STORES = frozenset({"ssl.truststore.location", "ssl.truststore.type", "ssl.keystore.location", "ssl.keystore.type"})
BYTES_TO_KBYTES = {"buffer.memory": "queue.buffering.max.kbytes"}

JKS_HINT = (
    "JKS is a format of Java only. Export the certificates with "
    "`keytool -exportcert -rfc -keystore STORE -alias NAME -file ca.pem` and name the file with ssl.ca.location."
)
_METRICS = "Penstock reports metrics as events; see --events."
_OPENSSL = "This client uses OpenSSL for TLS; see ssl.cipher.suites, ssl.curves.list and ssl.providers."
_LOGIN = "To provide tokens yourself use oauth_cb; for an OAuth server use sasl.oauthbearer.method=oidc."
_REFRESH = "The client renews logins before they expire."
_VALIDATION = "Brokers use it to validate tokens; a client only fetches them."
_PARTITIONER = 'Use partitioner; Penstock\'s default, "murmur2_random", chooses the same partitions as Java.'
_BROKER = "It is a broker's setting; set it there."
_REGISTRY = "Pass it to the app: App(..., registry=...)."
_READER = "The type hint of the handler's parameter decides how a value is decoded."

# Settings without a counterpart, and what to use instead.
ABSENT = {
    "auto.include.jmx.reporter": _METRICS,
    "bootstrap.controllers": "Use brokers=.",
    "config.providers": "Values come from code, penstock.toml, the environment or the command line.",
    "default.api.timeout.ms": "Penstock has a timeout for each call; for requests to brokers use request.timeout.ms.",
    "exclude.internal.topics": "Penstock consumes internal topics only if you name them.",
    "interceptor.classes": "Wrap the handler in your own function.",
    "internal.leave.group.on.close": "A member leaves its group when it stops, unless it has a static_id=.",
    "internal.throw.on.fetch.stable.offset.unsupported": "Leave it out.",
    "max.block.ms": "If the producer's buffer is full, Penstock stops fetching instead of waiting; see max_in_flight=.",
    "metadata.max.idle.ms": "The client removes unused topics from its metadata; see metadata.max.age.ms.",
    "metric.reporters": _METRICS,
    "metrics.num.samples": _METRICS,
    "metrics.recording.level": _METRICS,
    "metrics.sample.window.ms": _METRICS,
    "offsets.retention.minutes": _BROKER,
    "partitioner.adaptive.partitioning.enable": _PARTITIONER,
    "partitioner.availability.timeout.ms": _PARTITIONER,
    "partitioner.class": _PARTITIONER,
    "partitioner.ignore.keys": _PARTITIONER,
    "replica.selector.class": f"{_BROKER[:-1]}, and client.rack here.",
    "sasl.client.callback.handler.class": _LOGIN,
    "sasl.kerberos.ticket.renew.jitter": "See sasl.kerberos.min.time.before.relogin.",
    "sasl.kerberos.ticket.renew.window.factor": "See sasl.kerberos.min.time.before.relogin.",
    "sasl.login.callback.handler.class": _LOGIN,
    "sasl.login.class": _LOGIN,
    "sasl.login.connect.timeout.ms": "See socket.timeout.ms.",
    "sasl.login.read.timeout.ms": "See socket.timeout.ms.",
    "sasl.login.refresh.buffer.seconds": _REFRESH,
    "sasl.login.refresh.min.period.seconds": _REFRESH,
    "sasl.login.refresh.window.factor": _REFRESH,
    "sasl.login.refresh.window.jitter": _REFRESH,
    "sasl.login.retry.backoff.max.ms": _REFRESH,
    "sasl.login.retry.backoff.ms": _REFRESH,
    "sasl.oauthbearer.clock.skew.seconds": _VALIDATION,
    "sasl.oauthbearer.expected.audience": _VALIDATION,
    "sasl.oauthbearer.expected.issuer": _VALIDATION,
    "sasl.oauthbearer.header.urlencode": "The client encodes the login as the OAuth standard requires.",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": _VALIDATION,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": _VALIDATION,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": _VALIDATION,
    "sasl.oauthbearer.jwks.endpoint.url": _VALIDATION,
    "sasl.oauthbearer.jwt.retriever.class": _LOGIN,
    "sasl.oauthbearer.jwt.validator.class": _VALIDATION,
    "sasl.oauthbearer.scope.claim.name": _VALIDATION,
    "schema.registry.url": _REGISTRY,
    "security.providers": _OPENSSL,
    "share.acquire.mode": "Handlers are members of consumer groups, not of share groups.",
    "socket.connection.setup.timeout.max.ms": "Use socket.connection.setup.timeout.ms.",
    "specific.avro.reader": _READER,
    "ssl.enabled.protocols": _OPENSSL,
    "ssl.engine.factory.class": _OPENSSL,
    "ssl.keymanager.algorithm": _OPENSSL,
    "ssl.protocol": _OPENSSL,
    "ssl.provider": _OPENSSL,
    "ssl.secure.random.implementation": _OPENSSL,
    "ssl.trustmanager.algorithm": _OPENSSL,
    "ssl.truststore.password": JKS_HINT,
}

# Every Java name that librdkafka does not know and Penstock translates.
TRANSLATED = frozenset(RENAMED) | LOGINS | STORES | frozenset(BYTES_TO_KBYTES)
