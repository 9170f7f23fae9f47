"""Translates the client's errors to errors that say what happened and what to do, and says which of them are final."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from penstock.core.settings import scrubbed
from penstock.errors import ConfigError, PenstockError, ServerError, TopicError
from penstock.kafka.error_codes import FINAL, ONLY_MEMBERS_COMMIT, Code

# For each code: the type of the error, what happened, what to do.
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
    "Check ssl.ca.location (the CA that signed the broker's certificate) and that the port uses TLS.",
)
_MECHANISM: _Row = (
    ServerError,
    "The broker at {brokers} does not offer this login: {text}.",
    "Set sasl.mechanism to a mechanism that the broker offers.",
)
_NO_TOPIC: _Row = (TopicError, "A topic is missing while {doing}: {text}.", "Create the topic, or check its name.")
_UNSUPPORTED: _Row = (
    ServerError,
    "The broker at {brokers} is too old for {doing}, or lacks a feature: {text}.",
    "Remove the option that needs it (such as group.protocol=consumer), or run a newer Kafka.",
)
_COORDINATOR: _Row = (
    ServerError,
    "The group's coordinator does not answer while {doing}: {text}.",
    "It usually recovers within seconds. If not, check that the brokers of __consumer_offsets are up.",
)
_LEADER: _Row = (
    ServerError,
    "A partition has no leader that answers while {doing}: {text}.",
    "It usually recovers within seconds. If not, check that enough brokers are up.",
)
_NOT_A_MEMBER: _Row = (
    ServerError,
    "This member is not in the group's current generation while {doing}: {text}.",
    "It rejoins automatically, and Kafka redelivers the records that were not committed.",
)
_CORRUPT: _Row = (
    ServerError,
    "A record is corrupt while {doing}: {text}.",
    "Nothing past it was committed. Restore the partition from a replica, or move the group's offset past it.",
)
_STATIC_ID: _Row = (
    ConfigError,
    "Another member has the same static id while {doing}: {text}.",
    "Give each process its own static_id=.",
)
_OUT_OF_RANGE: _Row = (
    TopicError,
    "The group's offset is no longer in the log while {doing}: {text}.",
    "Records were deleted before the group read them. Reset the group's offsets, and check the topic's retention.ms.",
)
_FENCED: _Row = (
    ServerError,
    "Another producer with the same transactional id took over while {doing}: {text}.",
    "This transaction was aborted. If this happens again, check that the app runs only once.",
)
_TABLE: dict[int, _Row] = {
    Code.LOCAL_TRANSPORT: _UNREACHABLE,
    Code.LOCAL_ALL_BROKERS_DOWN: _UNREACHABLE,
    Code.LOCAL_TIMED_OUT: _UNREACHABLE,
    Code.NETWORK_EXCEPTION: _UNREACHABLE,
    Code.LOCAL_RESOLVE: (
        ServerError,
        "DNS does not know the host name in brokers={brokers!r}.",
        "Check the spelling of the host name.",
    ),
    Code.REQUEST_TIMED_OUT: (
        ServerError,
        "The broker took too long while {doing}: {text}.",
        "Check the broker. If it is only slow, raise request.timeout.ms in settings.",
    ),
    # Logins and ACLs.
    Code.LOCAL_AUTHENTICATION: _LOGIN,
    Code.SASL_AUTHENTICATION_FAILED: _LOGIN,
    Code.ILLEGAL_SASL_STATE: _LOGIN,
    Code.UNSUPPORTED_SASL_MECHANISM: _MECHANISM,
    Code.LOCAL_SSL: _TLS,
    Code.TOPIC_AUTHORIZATION_FAILED: (
        ServerError,
        "The broker denied {doing}: {text}.",
        "Ask for an ACL: READ and DESCRIBE on what is consumed, WRITE on outputs and dead letters.",
    ),
    Code.GROUP_AUTHORIZATION_FAILED: (
        ServerError,
        "The broker denied the group while {doing}: {text}.",
        "Ask for an ACL: READ on the group to consume (DESCRIBE to look, DELETE to delete), or use another group.",
    ),
    Code.CLUSTER_AUTHORIZATION_FAILED: (
        ServerError,
        "The broker denied {doing}, which needs access to the whole cluster: {text}.",
        "Ask for an ACL: WRITE on the topic to produce (on old brokers IDEMPOTENT_WRITE too), CREATE to create topics.",
    ),
    Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        ServerError,
        "The broker denied a transaction while {doing}: {text}.",
        "Ask for an ACL: WRITE and DESCRIBE on the transactional id.",
    ),
    # Topics.
    Code.UNKNOWN_TOPIC_OR_PART: _NO_TOPIC,
    Code.UNKNOWN_TOPIC_ID: _NO_TOPIC,
    Code.INCONSISTENT_TOPIC_ID: _NO_TOPIC,
    Code.LOCAL_UNKNOWN_TOPIC: _NO_TOPIC,
    Code.LOCAL_UNKNOWN_PARTITION: _NO_TOPIC,
    Code.TOPIC_EXCEPTION: (
        TopicError,
        "A topic's name is not valid while {doing}: {text}.",
        "Use at most 249 letters, digits, dots, dashes and underscores.",
    ),
    Code.INVALID_REGULAR_EXPRESSION: (
        ConfigError,
        "The broker cannot read the pattern while {doing}: {text}.",
        "With group.protocol=consumer, write the pattern in RE2 syntax.",
    ),
    # The group.
    Code.INVALID_GROUP_ID: (
        ConfigError,
        "The group's name is not valid: {text}.",
        "Choose another name with group=.",
    ),
    Code.INVALID_SESSION_TIMEOUT: (
        ConfigError,
        "The broker does not accept this session timeout: {text}.",
        "Set session.timeout.ms between the broker's group.min.session.timeout.ms and group.max.session.timeout.ms.",
    ),
    Code.INCONSISTENT_GROUP_PROTOCOL: (
        ConfigError,
        "The members of the group have no assignor in common: {text}.",
        "Give all of them the same partition.assignment.strategy and group.protocol, or use another group.",
    ),
    Code.UNSUPPORTED_ASSIGNOR: (
        ConfigError,
        "The broker does not know the assignor: {text}.",
        "Set group.remote.assignor to uniform or range, or remove it.",
    ),
    Code.GROUP_MAX_SIZE_REACHED: (
        ServerError,
        "The group has as many members as the broker allows: {text}.",
        "Run fewer members with more concurrency=, or raise the broker's group.max.size.",
    ),
    Code.FENCED_INSTANCE_ID: _STATIC_ID,
    Code.UNRELEASED_INSTANCE_ID: _STATIC_ID,
    Code.COORDINATOR_LOAD_IN_PROGRESS: _COORDINATOR,
    Code.COORDINATOR_NOT_AVAILABLE: _COORDINATOR,
    Code.NOT_COORDINATOR: _COORDINATOR,
    Code.LOCAL_WAIT_COORD: _COORDINATOR,
    Code.ILLEGAL_GENERATION: _NOT_A_MEMBER,
    Code.UNKNOWN_MEMBER_ID: _NOT_A_MEMBER,
    Code.REBALANCE_IN_PROGRESS: _NOT_A_MEMBER,
    Code.FENCED_MEMBER_EPOCH: _NOT_A_MEMBER,
    Code.STALE_MEMBER_EPOCH: _NOT_A_MEMBER,
    Code.LOCAL_ASSIGNMENT_LOST: _NOT_A_MEMBER,
    Code.LOCAL_MAX_POLL_EXCEEDED: (
        ServerError,
        "This member did not poll in time, so other members got its partitions: {text}.",
        "The process was blocked: check its CPU and memory, or raise max.poll.interval.ms in settings.",
    ),
    # Fetching.
    Code.LEADER_NOT_AVAILABLE: _LEADER,
    Code.LOCAL_NOENT: _LEADER,
    Code.NOT_LEADER_FOR_PARTITION: _LEADER,
    Code.BROKER_NOT_AVAILABLE: _LEADER,
    Code.REPLICA_NOT_AVAILABLE: _LEADER,
    Code.OFFSET_NOT_AVAILABLE: _LEADER,
    Code.FENCED_LEADER_EPOCH: _LEADER,
    Code.UNKNOWN_LEADER_EPOCH: _LEADER,
    Code.KAFKA_STORAGE_ERROR: _LEADER,
    Code.OFFSET_OUT_OF_RANGE: _OUT_OF_RANGE,
    Code.LOCAL_AUTO_OFFSET_RESET: _OUT_OF_RANGE,
    Code.LOCAL_LOG_TRUNCATION: _OUT_OF_RANGE,
    Code.MSG_SIZE_TOO_LARGE: (
        ServerError,
        "A record is too large while {doing}: {text}.",
        (
            "For reading, raise receive.message.max.bytes (and fetch.max.bytes) in settings above its size; for "
            "writing, max.message.bytes of the topic and message.max.bytes in settings."
        ),
    ),
    Code.LOCAL_BAD_MSG: _CORRUPT,
    Code.LOCAL_BAD_COMPRESSION: _CORRUPT,
    Code.INVALID_MSG: _CORRUPT,
    Code.LOCAL_NOT_IMPLEMENTED: (
        ServerError,
        "This client cannot read the format of the records while {doing}: {text}.",
        "Nothing past them was committed. Install a newer confluent-kafka.",
    ),
    Code.UNSUPPORTED_COMPRESSION_TYPE: _UNSUPPORTED,
    Code.UNSUPPORTED_VERSION: _UNSUPPORTED,
    Code.UNSUPPORTED_FOR_MESSAGE_FORMAT: _UNSUPPORTED,
    Code.LOCAL_UNSUPPORTED_FEATURE: _UNSUPPORTED,
    # Committing.
    Code.OFFSET_METADATA_TOO_LARGE: (
        ServerError,
        "The broker accepts less commit metadata than Penstock writes: {text}.",
        "Set the broker's offset.metadata.max.bytes to 4096, its default.",
    ),
    # Transactions.
    Code.LOCAL_FENCED: _FENCED,
    Code.PRODUCER_FENCED: _FENCED,
    Code.INVALID_PRODUCER_EPOCH: _FENCED,
    Code.INVALID_TRANSACTION_TIMEOUT: (
        ConfigError,
        "transaction.timeout.ms is larger than the broker allows, while {doing}.",
        "In settings, set it to at most the broker's transaction.max.timeout.ms.",
    ),
    Code.UNSTABLE_OFFSET_COMMIT: (
        ServerError,
        "Another producer's open transaction has offsets of the group while {doing}: {text}.",
        "Check that no other app commits for this group. An abandoned transaction ends at its transaction.timeout.ms.",
    ),
    Code.LOCAL_INVALID_ARG: (
        ConfigError,
        "The Kafka client refuses a setting: {text}.",
        "Check the names and values in settings.",
    ),
}
_SSL_FILES = (
    "Check that the files of ssl.ca.location, ssl.certificate.location and ssl.key.location exist and contain PEM, and "
    "that ssl.key.password opens the key."
)
_OTHER: _Row = (
    ServerError,
    "Kafka failed while {doing}: {text} ({name}).",
    "If this happens again, look at the brokers' logs.",
)
_NOT_A_KAFKA_ERROR: _Row = (ServerError, "Kafka failed while {doing}: {text}.", "")


def is_final(error: KafkaError) -> bool:
    """Return whether this error of a consumer stops the app. Other errors are reported, and consuming continues."""
    return error.code() in FINAL


def commit_refusal(error: KafkaError, *, is_member: bool) -> str:
    """Return the reason why the broker refused a commit of a member, or of a client that is not a member."""
    text = error.str()
    if error.code() not in ONLY_MEMBERS_COMMIT:
        return text
    if not is_member:
        return f"the group has members, and the broker accepts commits only from them ({text})"
    if error.code() == Code.REBALANCE_IN_PROGRESS:
        return f"the group is rebalancing ({text}); the offset is committed after that"
    return f"this member is not in the group's current generation ({text}); it rejoins, and gets its records again"


def kafka_error(error: BaseException) -> KafkaError | None:
    """Return the KafkaError inside an exception of the client, or None."""
    inner = error.args[0] if isinstance(error, KafkaException) and error.args else error
    return inner if isinstance(inner, KafkaError) else None


def translate(
    error: BaseException, *, doing: str, brokers: str, settings: Mapping[str, Any] | None = None
) -> PenstockError:
    """Return an error that says what failed while ``doing`` something (as in "reading topic orders"), and what to do.

    ``settings`` are the client's: their secrets are removed from the client's text.
    """
    inner = kafka_error(error)
    text = (inner.str() if inner is not None else str(error) or type(error).__name__).strip().rstrip(".")
    kind, problem, hint = _NOT_A_KAFKA_ERROR if inner is None else _TABLE.get(inner.code(), _OTHER)
    name = "" if inner is None else inner.name()
    if kind is ConfigError and text.partition(" failed: error:")[0].rpartition(" ")[2].startswith("ssl."):
        hint = _SSL_FILES
    filled = problem.format(doing=doing, text=scrubbed(text, settings or {}), brokers=brokers, name=name)
    return kind(filled, hint=hint)
