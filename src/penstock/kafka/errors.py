"""The client's errors, translated once into what a user can act on, and which of them trying again does not mend."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from penstock.core.settings import scrubbed
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
    "Check security.protocol, sasl.mechanism, sasl.username and sasl.password in settings.",
)
_TLS: _Row = (
    ServerError,
    "There is no secure connection to {brokers}: {text}.",
    "Check ssl.ca.location (who signed the broker's certificate) and that the port speaks TLS.",
)
_MECHANISM: _Row = (
    ServerError,
    "The broker at {brokers} does not offer this login: {text}.",
    "Set sasl.mechanism to one that it offers.",
)
_NO_TOPIC: _Row = (TopicError, "A topic is missing while {doing}: {text}.", "Create it, or check its name.")
_UNSUPPORTED: _Row = (
    ServerError,
    "The broker at {brokers} is too old for {doing}, or lacks a feature: {text}.",
    "Leave out the option that asks for it (such as group.protocol=consumer), or run a newer Kafka.",
)
_COORDINATOR: _Row = (
    ServerError,
    "The group's coordinator cannot be asked while {doing}: {text}.",
    "It is mostly back in seconds; if not, see that the brokers of __consumer_offsets are up.",
)
_LEADER: _Row = (
    ServerError,
    "A partition has no broker that answers for it while {doing}: {text}.",
    "It is mostly back in seconds; if not, see that enough brokers are up.",
)
_MOVED_ON: _Row = (
    ServerError,
    "The group went on without this member while {doing}: {text}.",
    "It joins again by itself; what was not committed is delivered again.",
)
_CORRUPT: _Row = (
    ServerError,
    "A record is corrupt while {doing}: {text}.",
    "Nothing past it was committed. Restore the partition from a replica, or move the group's offset past it.",
)
_STATIC_ID: _Row = (
    ConfigError,
    "Another member has the same static id while {doing}: {text}.",
    "Give every process its own static_id=.",
)
_GONE: _Row = (
    TopicError,
    "The group's offset is no longer in the log while {doing}: {text}.",
    "Records were deleted before they were read. Set the group's offsets anew, and see the topic's retention.ms.",
)
_FENCED: _Row = (
    ServerError,
    "Another run of the same work took over while {doing}: {text}.",
    "Nothing of this one counts. If it stays, see that the app runs only once.",
)
_TABLE: dict[int, _Row] = {
    KafkaError._TRANSPORT: _UNREACHABLE,
    KafkaError._ALL_BROKERS_DOWN: _UNREACHABLE,
    KafkaError._TIMED_OUT: _UNREACHABLE,
    KafkaError.NETWORK_EXCEPTION: _UNREACHABLE,
    KafkaError._RESOLVE: (ServerError, "The host name in brokers={brokers!r} is not known.", "Check its spelling."),
    KafkaError.REQUEST_TIMED_OUT: (
        ServerError,
        "The broker took too long over {doing}: {text}.",
        "See that it is well; if it is only slow, raise request.timeout.ms in settings.",
    ),
    # Who we are, and what we may do.
    KafkaError._AUTHENTICATION: _LOGIN,
    KafkaError.SASL_AUTHENTICATION_FAILED: _LOGIN,
    KafkaError.ILLEGAL_SASL_STATE: _LOGIN,
    KafkaError.UNSUPPORTED_SASL_MECHANISM: _MECHANISM,
    KafkaError._SSL: _TLS,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: (
        ServerError,
        "The broker denied {doing}: {text}.",
        "Ask for an ACL: READ and DESCRIBE on what is consumed, WRITE on outputs and dead letters.",
    ),
    KafkaError.GROUP_AUTHORIZATION_FAILED: (
        ServerError,
        "The broker denied the group while {doing}: {text}.",
        "Ask for an ACL: READ on the group to consume (DESCRIBE to look, DELETE to delete), or use another group.",
    ),
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: (
        ServerError,
        "The broker denied {doing} as a matter of the whole cluster: {text}.",
        "Ask for an ACL: WRITE on the topic to produce (on old brokers IDEMPOTENT_WRITE too), CREATE to create topics.",
    ),
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        ServerError,
        "The broker denied a transaction while {doing}: {text}.",
        "Ask for an ACL: WRITE and DESCRIBE on the transactional id.",
    ),
    # Topics.
    KafkaError.UNKNOWN_TOPIC_OR_PART: _NO_TOPIC,
    KafkaError.UNKNOWN_TOPIC_ID: _NO_TOPIC,
    KafkaError.INCONSISTENT_TOPIC_ID: _NO_TOPIC,
    KafkaError._UNKNOWN_TOPIC: _NO_TOPIC,
    KafkaError._UNKNOWN_PARTITION: _NO_TOPIC,
    KafkaError.TOPIC_EXCEPTION: (
        TopicError,
        "A topic cannot be used while {doing}: {text}.",
        "Kafka takes up to 249 letters, digits, dots, dashes and underscores.",
    ),
    KafkaError.INVALID_REGULAR_EXPRESSION: (
        ConfigError,
        "The broker does not understand the pattern while {doing}: {text}.",
        "With group.protocol=consumer, patterns are those of RE2.",
    ),
    # The group.
    KafkaError.INVALID_GROUP_ID: (
        ConfigError,
        "The group's name is not one that Kafka takes: {text}.",
        "Name another with group=.",
    ),
    KafkaError.INVALID_SESSION_TIMEOUT: (
        ConfigError,
        "The broker does not take this session timeout: {text}.",
        "Set session.timeout.ms between the broker's group.min.session.timeout.ms and group.max.session.timeout.ms.",
    ),
    KafkaError.INCONSISTENT_GROUP_PROTOCOL: (
        ConfigError,
        "The members of the group do not share a way to assign partitions: {text}.",
        "Give all of them the same partition.assignment.strategy and group.protocol, or use a group of your own.",
    ),
    KafkaError.UNSUPPORTED_ASSIGNOR: (
        ConfigError,
        "The broker does not know the assignor: {text}.",
        "Brokers know uniform and range; set group.remote.assignor to one of them, or leave it out.",
    ),
    KafkaError.GROUP_MAX_SIZE_REACHED: (
        ServerError,
        "The group has as many members as the broker allows: {text}.",
        "Run fewer members with more concurrency=, or raise the broker's group.max.size.",
    ),
    KafkaError.FENCED_INSTANCE_ID: _STATIC_ID,
    KafkaError.UNRELEASED_INSTANCE_ID: _STATIC_ID,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS: _COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE: _COORDINATOR,
    KafkaError.NOT_COORDINATOR: _COORDINATOR,
    KafkaError._WAIT_COORD: _COORDINATOR,
    KafkaError.ILLEGAL_GENERATION: _MOVED_ON,
    KafkaError.UNKNOWN_MEMBER_ID: _MOVED_ON,
    KafkaError.REBALANCE_IN_PROGRESS: _MOVED_ON,
    KafkaError.FENCED_MEMBER_EPOCH: _MOVED_ON,
    KafkaError.STALE_MEMBER_EPOCH: _MOVED_ON,
    KafkaError._ASSIGNMENT_LOST: _MOVED_ON,
    KafkaError._MAX_POLL_EXCEEDED: (
        ServerError,
        "This member did not poll in time, so its partitions went to others: {text}.",
        "The process stood still: see its CPU and memory, or raise max.poll.interval.ms in settings.",
    ),
    # Fetching.
    KafkaError.LEADER_NOT_AVAILABLE: _LEADER,
    KafkaError.NOT_LEADER_FOR_PARTITION: _LEADER,
    KafkaError.BROKER_NOT_AVAILABLE: _LEADER,
    KafkaError.REPLICA_NOT_AVAILABLE: _LEADER,
    KafkaError.OFFSET_NOT_AVAILABLE: _LEADER,
    KafkaError.FENCED_LEADER_EPOCH: _LEADER,
    KafkaError.UNKNOWN_LEADER_EPOCH: _LEADER,
    KafkaError.KAFKA_STORAGE_ERROR: _LEADER,
    KafkaError.OFFSET_OUT_OF_RANGE: _GONE,
    KafkaError._AUTO_OFFSET_RESET: _GONE,
    KafkaError._LOG_TRUNCATION: _GONE,
    KafkaError.MSG_SIZE_TOO_LARGE: (
        ServerError,
        "A record is too large while {doing}: {text}.",
        (
            "For reading, raise receive.message.max.bytes (and fetch.max.bytes) in settings above its size; for "
            "writing, max.message.bytes of the topic and message.max.bytes in settings."
        ),
    ),
    KafkaError._BAD_MSG: _CORRUPT,
    KafkaError._BAD_COMPRESSION: _CORRUPT,
    KafkaError.INVALID_MSG: _CORRUPT,
    KafkaError._NOT_IMPLEMENTED: (
        ServerError,
        "Records are in a form that this client does not read while {doing}: {text}.",
        "Nothing past them was committed. Install a newer confluent-kafka.",
    ),
    KafkaError.UNSUPPORTED_COMPRESSION_TYPE: _UNSUPPORTED,
    KafkaError.UNSUPPORTED_VERSION: _UNSUPPORTED,
    KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT: _UNSUPPORTED,
    KafkaError._UNSUPPORTED_FEATURE: _UNSUPPORTED,
    # Committing.
    KafkaError.OFFSET_METADATA_TOO_LARGE: (
        ServerError,
        "The broker takes less metadata with a commit than Penstock writes: {text}.",
        "Set the broker's offset.metadata.max.bytes to 4096, its default.",
    ),
    # Transactions.
    KafkaError._FENCED: _FENCED,
    KafkaError.PRODUCER_FENCED: _FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH: _FENCED,
    KafkaError.INVALID_TRANSACTION_TIMEOUT: (
        ConfigError,
        "The broker does not let a transaction last as long as transaction.timeout.ms says, while {doing}.",
        "Set it in settings to at most the broker's transaction.max.timeout.ms.",
    ),
    KafkaError.UNSTABLE_OFFSET_COMMIT: (
        ServerError,
        "A transaction of somebody else holds offsets of the group while {doing}: {text}.",
        "See that nobody else commits for this group; an abandoned transaction ends by its transaction.timeout.ms.",
    ),
    KafkaError._INVALID_ARG: (
        ConfigError,
        "The Kafka client refuses a setting: {text}.",
        "Check the names and values in settings.",
    ),
}
# What a commit is answered that comes from somebody who is no member, or not of the current generation.
OF_MEMBERS_ONLY = frozenset(code for code, row in _TABLE.items() if row is _MOVED_ON)
_SSL_FILES = (
    "See that the files of ssl.ca.location, ssl.certificate.location and ssl.key.location are there and hold PEM, and "
    "that ssl.key.password opens the key."
)
_OTHER: _Row = (
    ServerError,
    "Kafka failed while {doing}: {text} ({name}).",
    "If it stays, look for it in the brokers' logs.",
)
_FOREIGN: _Row = (ServerError, "Kafka failed while {doing}: {text}.", "")

# What does not go away by itself, or what the client would step over: a corrupt batch, one in a form it does not read.
# All else the client mends or tries again by itself, and it is only reported.
_FINAL_CODES = frozenset(
    {
        KafkaError._FATAL,
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.INVALID_REGULAR_EXPRESSION,
        KafkaError.INVALID_GROUP_ID,
        KafkaError.INVALID_SESSION_TIMEOUT,
        KafkaError.INCONSISTENT_GROUP_PROTOCOL,
        KafkaError.UNSUPPORTED_ASSIGNOR,
        KafkaError.GROUP_MAX_SIZE_REACHED,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
        KafkaError._UNSUPPORTED_FEATURE,
        KafkaError._AUTO_OFFSET_RESET,
        KafkaError._LOG_TRUNCATION,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError._BAD_MSG,
        KafkaError._BAD_COMPRESSION,
        KafkaError._NOT_IMPLEMENTED,
    }
)


def is_final(error: KafkaError) -> bool:
    """Whether this error of a consumer stops the app; others are reported, and the client goes on, or the next one."""
    return error.code() in _FINAL_CODES


def commit_refusal(error: KafkaError, *, is_member: bool) -> str:
    """Why the broker did not take a commit, by a member of the group or by somebody else."""
    text = error.str()
    if error.code() not in OF_MEMBERS_ONLY:
        return text
    if not is_member:
        return f"the group has members, and the broker takes commits from these only ({text})"
    if error.code() == KafkaError.REBALANCE_IN_PROGRESS:
        return f"the group is rebalancing ({text}); the offset is committed after that"
    return f"this member is not in the group's current generation ({text}); it rejoins, and its records come again"


def kafka_error(error: BaseException) -> KafkaError | None:
    """The client's own error inside what it raised, if there is one."""
    inner = error.args[0] if isinstance(error, KafkaException) and error.args else error
    return inner if isinstance(inner, KafkaError) else None


def translate(
    error: BaseException, *, doing: str, brokers: str, settings: Mapping[str, Any] | None = None
) -> PenstockError:
    """What went wrong while ``doing`` something (as in "reading topic orders"), and what to do about it.

    ``settings`` are those of the client, whose secrets its text must not show.
    """
    inner = kafka_error(error)
    text = (inner.str() if inner is not None else str(error) or type(error).__name__).strip().rstrip(".")
    kind, problem, hint = _FOREIGN if inner is None else _TABLE.get(inner.code(), _OTHER)
    name = "" if inner is None else inner.name()
    if kind is ConfigError and text.partition(" failed: error:")[0].rpartition(" ")[2].startswith("ssl."):
        hint = _SSL_FILES
    filled = problem.format(doing=doing, text=scrubbed(text, settings or {}), brokers=brokers, name=name)
    return kind(filled, hint=hint)
