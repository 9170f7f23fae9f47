"""Settings of the Java client: those with another name here, and those without a counterpart, each with the reason."""

# Meant alike, and named otherwise.
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

# Where Java says "leave it to the system", or "never", with -1.
MINUS_ONE_IS_ZERO = frozenset({"receive.buffer.bytes", "send.buffer.bytes", "connections.max.idle.ms"})

# Translated together with others, or into several; see logins.py and stores.py.
LOGINS = frozenset({"sasl.jaas.config"})
STORES = frozenset({"ssl.truststore.location", "ssl.truststore.type", "ssl.keystore.location", "ssl.keystore.type"})
BYTES_TO_KBYTES = {"buffer.memory": "queue.buffering.max.kbytes"}

JKS_HINT = (
    "Java's key stores are for Java: export certificates with "
    "`keytool -exportcert -rfc -keystore STORE -alias NAME -file ca.pem` and name the file with ssl.ca.location."
)
_METRICS = "Metrics are events; see --events."
_OPENSSL = "TLS is OpenSSL's here, which chooses by itself; see ssl.cipher.suites, ssl.curves.list and ssl.providers."
_LOGIN = "For tokens of your own use oauth_cb; for an OAuth server, sasl.oauthbearer.method=oidc."
_REFRESH = "The client renews logins by itself, in good time."
_VALIDATION = "It is for brokers, which check tokens; a client only fetches them."
_PARTITIONER = 'Use partitioner; Penstock\'s default, "murmur2_random", puts keys where Java does.'
_BROKER = "It is a broker's setting; set it there."
_REGISTRY = "Give it to the app: App(..., registry=...)."
_READER = "The type hint of the handler's parameter says what a value becomes."

# No counterpart: why, and what to use.
ABSENT = {
    "auto.include.jmx.reporter": _METRICS,
    "bootstrap.controllers": "Use brokers=.",
    "config.providers": "Values come from code, penstock.toml, the environment or the command line.",
    "default.api.timeout.ms": "Penstock bounds each of its questions; for requests to brokers use request.timeout.ms.",
    "exclude.internal.topics": "Topics are consumed by their names, so internal ones only where you name them.",
    "interceptor.classes": "Wrap the handler in a function of your own.",
    "internal.leave.group.on.close": "A member leaves its group when it stops, unless it has a static_id=.",
    "internal.throw.on.fetch.stable.offset.unsupported": "Leave it out.",
    "max.block.ms": "Penstock never waits for room in the producer's buffer: it stops fetching; see max_in_flight=.",
    "metadata.max.idle.ms": "The client forgets unused topics by itself; see metadata.max.age.ms.",
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
    "sasl.oauthbearer.header.urlencode": "The client encodes the login as the OAuth standard asks for.",
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

# Every name that is translated, of those that the client library does not know.
TRANSLATED = frozenset(RENAMED) | LOGINS | STORES | frozenset(BYTES_TO_KBYTES)
