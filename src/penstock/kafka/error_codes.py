"""Every Kafka error code that Penstock handles: code, name, meaning, retriable or not; and the groups of codes.

Other modules import ``Code`` or a group from here and never name a constant of ``KafkaError``. ``Code`` is an ``int``,
so ``error.code() == Code.X``, ``error.code() in GROUP`` and ``KafkaError(Code.X)`` work.
"""

from enum import IntEnum
from typing import Self

from confluent_kafka import KafkaError

RETRIABLE = True


class Code(IntEnum):
    """The names are Kafka's. ``LOCAL_X`` is ``KafkaError._X``: a code of librdkafka, which no broker sends.

    ``retriable`` says whether the same request may succeed later without a change. For the codes of brokers, this is
    Kafka's own classification.
    """

    meaning: str
    retriable: bool

    def __new__(cls, code: int, meaning: str, retriable: bool = False) -> Self:  # noqa: FBT001, FBT002 - rows of a table
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        member.retriable = retriable
        return member

    # Connections.
    LOCAL_TRANSPORT = KafkaError._TRANSPORT, "the connection to a broker failed", RETRIABLE
    LOCAL_ALL_BROKERS_DOWN = KafkaError._ALL_BROKERS_DOWN, "no broker can be reached", RETRIABLE
    LOCAL_TIMED_OUT = KafkaError._TIMED_OUT, "no answer within the client's timeout", RETRIABLE
    LOCAL_MSG_TIMED_OUT = KafkaError._MSG_TIMED_OUT, "a record was not written within message.timeout.ms", RETRIABLE
    LOCAL_RESOLVE = KafkaError._RESOLVE, "DNS does not know a broker's host name", RETRIABLE
    LOCAL_SSL = KafkaError._SSL, "the TLS handshake failed"
    NETWORK_EXCEPTION = KafkaError.NETWORK_EXCEPTION, "the broker closed the connection", RETRIABLE
    REQUEST_TIMED_OUT = KafkaError.REQUEST_TIMED_OUT, "the broker did not finish the request in time", RETRIABLE

    # Logins and ACLs.
    LOCAL_AUTHENTICATION = KafkaError._AUTHENTICATION, "the login failed"
    SASL_AUTHENTICATION_FAILED = KafkaError.SASL_AUTHENTICATION_FAILED, "the broker refused the login"
    ILLEGAL_SASL_STATE = KafkaError.ILLEGAL_SASL_STATE, "a request came in the middle of a login"
    UNSUPPORTED_SASL_MECHANISM = KafkaError.UNSUPPORTED_SASL_MECHANISM, "the broker does not offer this mechanism"
    TOPIC_AUTHORIZATION_FAILED = KafkaError.TOPIC_AUTHORIZATION_FAILED, "an ACL denies access to a topic"
    GROUP_AUTHORIZATION_FAILED = KafkaError.GROUP_AUTHORIZATION_FAILED, "an ACL denies access to the group"
    CLUSTER_AUTHORIZATION_FAILED = KafkaError.CLUSTER_AUTHORIZATION_FAILED, "an ACL denies access to the cluster"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = (
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "an ACL denies access to the transactional id",
    )

    # Topics.
    UNKNOWN_TOPIC_OR_PART = KafkaError.UNKNOWN_TOPIC_OR_PART, "the topic or partition does not exist", RETRIABLE
    UNKNOWN_TOPIC_ID = KafkaError.UNKNOWN_TOPIC_ID, "the topic id does not exist", RETRIABLE
    INCONSISTENT_TOPIC_ID = KafkaError.INCONSISTENT_TOPIC_ID, "the topic was recreated and has another id", RETRIABLE
    LOCAL_UNKNOWN_TOPIC = KafkaError._UNKNOWN_TOPIC, "the client does not know the topic"
    LOCAL_UNKNOWN_PARTITION = KafkaError._UNKNOWN_PARTITION, "the client does not know the partition"
    TOPIC_EXCEPTION = KafkaError.TOPIC_EXCEPTION, "the topic's name is not valid"
    TOPIC_ALREADY_EXISTS = KafkaError.TOPIC_ALREADY_EXISTS, "a topic of this name exists"
    INVALID_REPLICATION_FACTOR = KafkaError.INVALID_REPLICATION_FACTOR, "too few brokers for the replication factor"
    INVALID_REGULAR_EXPRESSION = KafkaError.INVALID_REGULAR_EXPRESSION, "the pattern is not valid"

    # Groups.
    GROUP_ID_NOT_FOUND = KafkaError.GROUP_ID_NOT_FOUND, "the group does not exist"
    INVALID_GROUP_ID = KafkaError.INVALID_GROUP_ID, "the group's name is not valid"
    INVALID_SESSION_TIMEOUT = KafkaError.INVALID_SESSION_TIMEOUT, "session.timeout.ms is outside the broker's limits"
    INCONSISTENT_GROUP_PROTOCOL = KafkaError.INCONSISTENT_GROUP_PROTOCOL, "the members have no assignor in common"
    UNSUPPORTED_ASSIGNOR = KafkaError.UNSUPPORTED_ASSIGNOR, "the broker does not have this assignor"
    GROUP_MAX_SIZE_REACHED = KafkaError.GROUP_MAX_SIZE_REACHED, "the group has group.max.size members"
    FENCED_INSTANCE_ID = KafkaError.FENCED_INSTANCE_ID, "another member took over the static id"
    UNRELEASED_INSTANCE_ID = KafkaError.UNRELEASED_INSTANCE_ID, "another member still has the static id"
    MEMBER_ID_REQUIRED = KafkaError.MEMBER_ID_REQUIRED, "the member must join again with the id of this answer"
    COORDINATOR_LOAD_IN_PROGRESS = (
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        "the coordinator is loading the group",
        RETRIABLE,
    )
    COORDINATOR_NOT_AVAILABLE = KafkaError.COORDINATOR_NOT_AVAILABLE, "the group has no coordinator now", RETRIABLE
    NOT_COORDINATOR = KafkaError.NOT_COORDINATOR, "another broker is the coordinator", RETRIABLE
    LOCAL_WAIT_COORD = KafkaError._WAIT_COORD, "the client is looking for the coordinator", RETRIABLE
    ILLEGAL_GENERATION = KafkaError.ILLEGAL_GENERATION, "the member's generation is over"
    UNKNOWN_MEMBER_ID = KafkaError.UNKNOWN_MEMBER_ID, "the coordinator does not know the member"
    REBALANCE_IN_PROGRESS = KafkaError.REBALANCE_IN_PROGRESS, "the group rebalances, and the member must rejoin"
    FENCED_MEMBER_EPOCH = KafkaError.FENCED_MEMBER_EPOCH, "the coordinator has fenced the member's epoch"
    STALE_MEMBER_EPOCH = KafkaError.STALE_MEMBER_EPOCH, "the request carries an old epoch of the member"
    LOCAL_ASSIGNMENT_LOST = KafkaError._ASSIGNMENT_LOST, "the member lost its partitions"
    LOCAL_MAX_POLL_EXCEEDED = KafkaError._MAX_POLL_EXCEEDED, "no poll within max.poll.interval.ms"

    # Fetching.
    LEADER_NOT_AVAILABLE = KafkaError.LEADER_NOT_AVAILABLE, "the partition has no leader now", RETRIABLE
    NOT_LEADER_FOR_PARTITION = KafkaError.NOT_LEADER_FOR_PARTITION, "another broker is the leader", RETRIABLE
    BROKER_NOT_AVAILABLE = KafkaError.BROKER_NOT_AVAILABLE, "the broker is not available"
    REPLICA_NOT_AVAILABLE = KafkaError.REPLICA_NOT_AVAILABLE, "the replica is not available", RETRIABLE
    OFFSET_NOT_AVAILABLE = KafkaError.OFFSET_NOT_AVAILABLE, "a new leader does not know the end offset yet", RETRIABLE
    FENCED_LEADER_EPOCH = KafkaError.FENCED_LEADER_EPOCH, "the client's metadata names an older leader", RETRIABLE
    UNKNOWN_LEADER_EPOCH = KafkaError.UNKNOWN_LEADER_EPOCH, "the broker does not know the new leader yet", RETRIABLE
    KAFKA_STORAGE_ERROR = KafkaError.KAFKA_STORAGE_ERROR, "the broker's disk failed", RETRIABLE
    OFFSET_OUT_OF_RANGE = KafkaError.OFFSET_OUT_OF_RANGE, "the log does not have the offset"
    LOCAL_AUTO_OFFSET_RESET = KafkaError._AUTO_OFFSET_RESET, "the log does not have the offset (reset=error)"
    LOCAL_LOG_TRUNCATION = KafkaError._LOG_TRUNCATION, "the log was truncated below the position"
    LOCAL_PARTITION_EOF = KafkaError._PARTITION_EOF, "the end of the partition: not an error"
    LOCAL_BAD_MSG = KafkaError._BAD_MSG, "a record batch is corrupt"
    LOCAL_BAD_COMPRESSION = KafkaError._BAD_COMPRESSION, "a record batch cannot be decompressed"
    LOCAL_NOT_IMPLEMENTED = KafkaError._NOT_IMPLEMENTED, "the client does not support the records' format"
    INVALID_MSG = KafkaError.INVALID_MSG, "a record batch failed its checksum", RETRIABLE
    UNSUPPORTED_COMPRESSION_TYPE = KafkaError.UNSUPPORTED_COMPRESSION_TYPE, "the compression is not supported"
    UNSUPPORTED_VERSION = KafkaError.UNSUPPORTED_VERSION, "the broker does not support this request version"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT, "the log's message format is too old"
    LOCAL_UNSUPPORTED_FEATURE = KafkaError._UNSUPPORTED_FEATURE, "the broker lacks a feature"
    INVALID_REQUEST = KafkaError.INVALID_REQUEST, "the broker cannot read the request"

    # Writing and committing.
    MSG_SIZE_TOO_LARGE = KafkaError.MSG_SIZE_TOO_LARGE, "the record is larger than max.message.bytes"
    RECORD_LIST_TOO_LARGE = KafkaError.RECORD_LIST_TOO_LARGE, "the record batch is larger than a log segment"
    INVALID_RECORD = KafkaError.INVALID_RECORD, "the broker refuses the record, for example without a key"
    OFFSET_METADATA_TOO_LARGE = KafkaError.OFFSET_METADATA_TOO_LARGE, "the commit's metadata is too large"
    LOCAL_PURGE_QUEUE = KafkaError._PURGE_QUEUE, "the client dropped the record before it was sent"
    LOCAL_PURGE_INFLIGHT = KafkaError._PURGE_INFLIGHT, "the client dropped the record without an answer"

    # Transactions.
    LOCAL_FENCED = KafkaError._FENCED, "a newer producer has the same transactional id"
    PRODUCER_FENCED = KafkaError.PRODUCER_FENCED, "a newer producer has the same transactional id"
    INVALID_PRODUCER_EPOCH = KafkaError.INVALID_PRODUCER_EPOCH, "a newer producer has the same transactional id"
    INVALID_TRANSACTION_TIMEOUT = KafkaError.INVALID_TRANSACTION_TIMEOUT, "above transaction.max.timeout.ms"
    UNSTABLE_OFFSET_COMMIT = KafkaError.UNSTABLE_OFFSET_COMMIT, "an open transaction may change the offsets", RETRIABLE

    # The client itself.
    LOCAL_FATAL = KafkaError._FATAL, "the client failed and must be replaced"
    LOCAL_STATE = KafkaError._STATE, "the client is in a state that does not allow the call"
    LOCAL_INVALID_ARG = KafkaError._INVALID_ARG, "a setting or an argument is not valid"


NO_ANSWER = frozenset({Code.LOCAL_TRANSPORT, Code.LOCAL_TIMED_OUT, Code.LOCAL_ALL_BROKERS_DOWN})
"""No broker answers."""

LOGIN_REFUSED = frozenset({Code.LOCAL_AUTHENTICATION, Code.SASL_AUTHENTICATION_FAILED, Code.UNSUPPORTED_SASL_MECHANISM})

AUTHORIZATION = frozenset(
    {
        Code.TOPIC_AUTHORIZATION_FAILED,
        Code.GROUP_AUTHORIZATION_FAILED,
        Code.CLUSTER_AUTHORIZATION_FAILED,
        Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
"""An ACL denies the request."""

COORDINATOR_MOVED = frozenset({Code.NOT_COORDINATOR, Code.COORDINATOR_NOT_AVAILABLE})
NO_COORDINATOR_YET = COORDINATOR_MOVED | {Code.COORDINATOR_LOAD_IN_PROGRESS}
"""Usually over within a second: a cluster that has just started, a coordinator that moves."""

COORDINATOR_UNREACHABLE = NO_COORDINATOR_YET | {Code.LOCAL_TRANSPORT}
"""The same, or the coordinator's broker has died."""

NO_BROKERS_YET = frozenset({Code.INVALID_REPLICATION_FACTOR, Code.LOCAL_TIMED_OUT})
"""In a cluster that has just started, the controller may know no broker yet that could host a new topic."""

NO_LEADER_YET = frozenset({Code.LEADER_NOT_AVAILABLE, Code.NOT_LEADER_FOR_PARTITION})
"""A partition that was just created, or whose leader moves."""

NOT_STABLE_YET = NO_COORDINATOR_YET | {Code.UNSTABLE_OFFSET_COMMIT}
"""A transaction may still change the group's offsets, or there is no coordinator yet."""

NOT_A_MEMBER = frozenset({Code.UNKNOWN_MEMBER_ID, Code.ILLEGAL_GENERATION})
"""The coordinator does not know this member, or not in this generation."""

REBALANCING = frozenset({Code.ILLEGAL_GENERATION, Code.REBALANCE_IN_PROGRESS, Code.STALE_MEMBER_EPOCH})
"""The client joins a rebalance in the background, so its generation may be a moment older than the group's."""

ONLY_MEMBERS_COMMIT = NOT_A_MEMBER | REBALANCING | frozenset({Code.FENCED_MEMBER_EPOCH, Code.LOCAL_ASSIGNMENT_LOST})
"""The broker refuses a commit because it does not come from a member of the current generation."""

OUT_OF_RANGE = frozenset({Code.OFFSET_OUT_OF_RANGE, Code.LOCAL_AUTO_OFFSET_RESET, Code.LOCAL_LOG_TRUNCATION})
"""The log does not have the requested offset."""

BAD_RECORD = frozenset({Code.MSG_SIZE_TOO_LARGE, Code.INVALID_RECORD, Code.RECORD_LIST_TOO_LARGE})
"""The record itself is the cause; every other error of a produce request is the cluster's."""

FENCED = frozenset({Code.LOCAL_FENCED, Code.PRODUCER_FENCED, Code.INVALID_PRODUCER_EPOCH})
"""A newer producer has the same transactional id."""

DROPPED_BY_CLIENT = frozenset({Code.LOCAL_FATAL, Code.LOCAL_PURGE_QUEUE, Code.LOCAL_PURGE_INFLIGHT})
"""After a fatal error the client drops its records, each with one of these."""

CAUSE_UNKNOWN = DROPPED_BY_CLIENT | {Code.LOCAL_STATE}
"""The client reports only that an earlier request of the transaction failed."""

SHARE_GROUPS_UNSUPPORTED = frozenset({Code.UNSUPPORTED_VERSION, Code.INVALID_REQUEST})
"""The answers of brokers that do not know share groups, or only an older version of them."""

NO_SUCH_SHARE_GROUP = frozenset({Code.GROUP_ID_NOT_FOUND, Code.UNSUPPORTED_VERSION})

CORRUPT = frozenset({Code.LOCAL_BAD_MSG, Code.LOCAL_BAD_COMPRESSION, Code.LOCAL_NOT_IMPLEMENTED})
"""A record batch that the client cannot read and would skip."""

FINAL = (
    LOGIN_REFUSED
    | AUTHORIZATION
    | CORRUPT
    | {
        Code.LOCAL_FATAL,
        Code.UNKNOWN_TOPIC_OR_PART,
        Code.TOPIC_EXCEPTION,
        Code.INVALID_REGULAR_EXPRESSION,
        Code.INVALID_GROUP_ID,
        Code.INVALID_SESSION_TIMEOUT,
        Code.INCONSISTENT_GROUP_PROTOCOL,
        Code.UNSUPPORTED_ASSIGNOR,
        Code.GROUP_MAX_SIZE_REACHED,
        Code.FENCED_INSTANCE_ID,
        Code.UNSUPPORTED_VERSION,
        Code.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        Code.UNSUPPORTED_COMPRESSION_TYPE,
        Code.LOCAL_UNSUPPORTED_FEATURE,
        Code.LOCAL_AUTO_OFFSET_RESET,
        Code.LOCAL_LOG_TRUNCATION,
        Code.MSG_SIZE_TOO_LARGE,
    }
)
"""Errors of a consumer that stop the app: a retry does not help, or the client would skip records.

The client retries after all others, so those are only reported.
"""

NOT_FINAL_WHILE_RUNNING = frozenset({Code.UNKNOWN_TOPIC_OR_PART, Code.LOCAL_FATAL})
"""Final at the start of an app, but not later: a deleted topic may be recreated, and a new consumer may work."""
