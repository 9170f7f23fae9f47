"""Settings that are not the user's: the guarantees stand on them, and most have an option in Penstock's own words."""

_COMMITS = "Penstock commits what is finished; see commit_every=."
_STORES = "Penstock keeps offsets itself: in Kafka, as commits of finished work."
_DECODING = "The type hint of the handler's parameter decides how a record is decoded."
_ENCODING = "What a handler returns is encoded by its type."
_EVENTS = "Errors, commits and rebalances are events; see --events."
_OUTBOX = "An output counts once the broker has acknowledged it, so Penstock listens to every answer."
_IDEMPOTENT = "Every producer is idempotent: else what it sends again could be there twice, or out of order."
_ACKS = "Every record is acknowledged by all replicas that are in sync: else a broker that dies could take it along."
_CLIENT = "It is for programs that make the client themselves; Penstock makes it for you."

RESERVED = {
    "bootstrap.servers": "Use brokers=.",
    "metadata.broker.list": "Use brokers=.",
    "group.id": "Use group=.",
    "group.instance.id": "Use static_id=.",
    "group.protocol": "Use protocol=.",
    "group.remote.assignor": "Use assignor=.",
    "partition.assignment.strategy": 'Use assignor=: "cooperative-sticky", "range", "roundrobin" or another.',
    "auto.offset.reset": "Use start=.",
    "enable.auto.commit": _COMMITS,
    "auto.commit.enable": _COMMITS,
    "auto.commit.interval.ms": _COMMITS,
    "enable.auto.offset.store": _COMMITS,
    "offset.store.method": _STORES,
    "offset.store.path": _STORES,
    "offset.store.sync.interval.ms": _STORES,
    "enable.partition.eof": "Penstock needs it to know that it has caught up.",
    "max.poll.records": "Penstock takes records as it has room for them; see max_in_flight=.",
    "key.deserializer": _DECODING,
    "value.deserializer": _DECODING,
    "key.serializer": "An output has the key of the record it came from, byte by byte.",
    "value.serializer": _ENCODING,
    "enable.idempotence": _IDEMPOTENT,
    "acks": _ACKS,
    "request.required.acks": _ACKS,
    "transactional.id": "Penstock names its own transactions.",
    "transaction.two.phase.commit.enable": "Penstock makes its own transactions.",
    "delivery.report.only.error": _OUTBOX,
    "on_delivery": _OUTBOX,
    "dr_cb": _OUTBOX,
    "dr_msg_cb": _OUTBOX,
    "error_cb": _EVENTS,
    "on_commit": _EVENTS,
    "offset_commit_cb": _EVENTS,
    "rebalance_cb": _EVENTS,
    "logger": "Configure the logger penstock.kafka.",
    "log_cb": "Configure the logger penstock.kafka.",
    "log.queue": "Configure the logger penstock.kafka.",
    "oauthbearer_token_refresh_cb": "Use oauth_cb.",
    "ssl_ca": "Use ssl.ca.pem or ssl.ca.location.",
    "ssl_certificate": "Use ssl.certificate.pem or ssl.certificate.location.",
    "ssl_key": "Use ssl.key.pem or ssl.key.location.",
    "default_topic_conf": "Put its settings among the others.",
    "default.topic.config": "Put its settings among the others.",
    **dict.fromkeys(
        (
            "background_event_cb",
            "builtin.features",
            "closesocket_cb",
            "connect_cb",
            "consume_cb",
            "consume.callback.max.messages",
            "enabled_events",
            "interceptors",
            "internal.termination.signal",
            "msg_order_cmp",
            "opaque",
            "open_cb",
            "partitioner_cb",
            "resolve_cb",
            "socket_cb",
            "ssl.certificate.verify_cb",
            "ssl_engine_callback_data",
        ),
        _CLIENT,
    ),
}
