"""Settings that users cannot set, because Penstock's guarantees depend on them. Most have an option instead."""

_COMMITS = "Penstock commits finished records; see commit_every=."
_STORES = "Penstock stores offsets in Kafka, as commits of finished records."
_DECODING = "The type hint of the handler's parameter decides how a record is decoded."
_ENCODING = "The type of the value that a handler returns decides how it is encoded."
_EVENTS = "Penstock reports errors, commits and rebalances as events; see --events."
_OUTBOX = "Penstock needs every delivery report: an output is finished once the broker has acknowledged it."
_IDEMPOTENT = "Every producer is idempotent: otherwise a retry could write records twice or out of order."
_ACKS = "All in-sync replicas acknowledge every record: otherwise it could be lost with a broker."
_CLIENT = "It is for programs that create the client themselves; Penstock creates it for you."

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
    "enable.partition.eof": "Penstock uses it to detect that it has caught up.",
    "max.poll.records": "Penstock polls as many records as fit into its buffers; see max_in_flight=.",
    "key.deserializer": _DECODING,
    "value.deserializer": _DECODING,
    "key.serializer": "An output has the same key bytes as the record that it was made from.",
    "value.serializer": _ENCODING,
    "enable.idempotence": _IDEMPOTENT,
    "acks": _ACKS,
    "request.required.acks": _ACKS,
    "transactional.id": "Penstock chooses the ids of its transactions.",
    "transaction.two.phase.commit.enable": "Penstock manages its transactions.",
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
