"""The client's errors, translated once into what a user can act on."""

from confluent_kafka import KafkaError, KafkaException

from penstock.errors import ConfigError, PenstockError, ServerError, TopicError

# Code by code: the kind of error, what happened, what to do. The client marks its own codes with an underscore.
_Row = tuple[type[PenstockError], str, str]
_UNREACHABLE: _Row = (
    ServerError,
    "No Kafka broker answers at {brokers}.",
    "Start the embedded one with `penstock up`, or name a running one with --brokers.",
)
_LOGIN: _Row = (
    ServerError,
    "The broker at {brokers} did not accept the login: {text}.",
    "Check security.protocol, sasl.* and ssl.* in settings.",
)
_DENIED: _Row = (ServerError, "The broker denied {doing}: {text}.", "Ask for an ACL that allows it.")
_NO_TOPIC: _Row = (TopicError, "A topic is missing while {doing}: {text}.", "Create it, or check its name.")
_TABLE: dict[int, _Row] = {
    KafkaError._TRANSPORT: _UNREACHABLE,
    KafkaError._ALL_BROKERS_DOWN: _UNREACHABLE,
    KafkaError._TIMED_OUT: _UNREACHABLE,
    KafkaError._RESOLVE: (ServerError, "The host name in brokers={brokers!r} is not known.", "Check its spelling."),
    KafkaError._AUTHENTICATION: _LOGIN,
    KafkaError._SSL: _LOGIN,
    KafkaError.SASL_AUTHENTICATION_FAILED: _LOGIN,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: _DENIED,
    KafkaError.GROUP_AUTHORIZATION_FAILED: _DENIED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: _DENIED,
    KafkaError.UNKNOWN_TOPIC_OR_PART: _NO_TOPIC,
    KafkaError._UNKNOWN_TOPIC: _NO_TOPIC,
    KafkaError._UNKNOWN_PARTITION: _NO_TOPIC,
    KafkaError._INVALID_ARG: (
        ConfigError,
        "The Kafka client refuses a setting: {text}.",
        "Check the names and values in settings.",
    ),
}
_OTHER: _Row = (ServerError, "Kafka failed while {doing}: {text}.", "")


def kafka_error(error: BaseException) -> KafkaError | None:
    """The client's own error inside what it raised, if there is one."""
    inner = error.args[0] if isinstance(error, KafkaException) and error.args else error
    return inner if isinstance(inner, KafkaError) else None


def translate(error: BaseException, *, doing: str, brokers: str) -> PenstockError:
    """What went wrong while ``doing`` something (as in "reading topic orders"), and what to do about it."""
    inner = kafka_error(error)
    text = (inner.str() if inner is not None else str(error) or type(error).__name__).rstrip(".")
    kind, problem, hint = _OTHER if inner is None else _TABLE.get(inner.code(), _OTHER)
    return kind(problem.format(doing=doing, text=text, brokers=brokers), hint=hint)
