"""Every Kafka error code that Penstock handles: code, name, meaning, retriable or not; and the groups of codes.

Other modules import ``Code`` or a group from here and never name a constant of ``KafkaError``. ``Code`` is an ``int``,
so ``error.code() == Code.X``, ``error.code() in GROUP`` and ``KafkaError(Code.X)`` work.
"""

from enum import IntEnum
from typing import Self

RETRIABLE = True


class Code(IntEnum):
    """The names and numbers are Kafka's. ``LOCAL_X`` is ``KafkaError._X``: a code of librdkafka, which no broker sends.

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
    LOCAL_TRANSPORT = -195, "the connection to a broker failed", RETRIABLE
    LOCAL_ALL_BROKERS_DOWN = -187, "no broker can be reached", RETRIABLE
    LOCAL_TIMED_OUT = -185, "no answer within the client's timeout", RETRIABLE
    LOCAL_MSG_TIMED_OUT = -192, "a record was not written within message.timeout.ms", RETRIABLE
    LOCAL_RESOLVE = -193, "DNS does not know a broker's host name", RETRIABLE
    LOCAL_SSL = -181, "the TLS handshake failed"
    NETWORK_EXCEPTION = 13, "the broker closed the connection", RETRIABLE
    REQUEST_TIMED_OUT = 7, "the broker did not finish the request in time", RETRIABLE

    # Logins and ACLs.
    LOCAL_AUTHENTICATION = -169, "the login failed"
    SASL_AUTHENTICATION_FAILED = 58, "the broker refused the login"
    ILLEGAL_SASL_STATE = 34, "a request came in the middle of a login"
    UNSUPPORTED_SASL_MECHANISM = 33, "the broker does not offer this mechanism"
    TOPIC_AUTHORIZATION_FAILED = 29, "an ACL denies access to a topic"
    GROUP_AUTHORIZATION_FAILED = 30, "an ACL denies access to the group"
    CLUSTER_AUTHORIZATION_FAILED = 31, "an ACL denies access to the cluster"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "an ACL denies access to the transactional id"

    # Topics.
    UNKNOWN_TOPIC_OR_PART = 3, "the topic or partition does not exist", RETRIABLE
    UNKNOWN_TOPIC_ID = 100, "the topic id does not exist", RETRIABLE
    INCONSISTENT_TOPIC_ID = 103, "the topic was recreated and has another id", RETRIABLE
    LOCAL_UNKNOWN_TOPIC = -188, "the client does not know the topic"
    LOCAL_UNKNOWN_PARTITION = -190, "the client does not know the partition"
    TOPIC_EXCEPTION = 17, "the topic's name is not valid"
    TOPIC_ALREADY_EXISTS = 36, "a topic of this name exists"
    INVALID_REPLICATION_FACTOR = 38, "too few brokers for the replication factor"
    INVALID_REGULAR_EXPRESSION = 128, "the pattern is not valid"

    # Groups.
    GROUP_ID_NOT_FOUND = 69, "the group does not exist"
    INVALID_GROUP_ID = 24, "the group's name is not valid"
    INVALID_SESSION_TIMEOUT = 26, "session.timeout.ms is outside the broker's limits"
    INCONSISTENT_GROUP_PROTOCOL = 23, "the members have no assignor in common"
    UNSUPPORTED_ASSIGNOR = 112, "the broker does not have this assignor"
    GROUP_MAX_SIZE_REACHED = 81, "the group has group.max.size members"
    FENCED_INSTANCE_ID = 82, "another member took over the static id"
    UNRELEASED_INSTANCE_ID = 111, "another member still has the static id"
    MEMBER_ID_REQUIRED = 79, "the member must join again with the id of this answer"
    COORDINATOR_LOAD_IN_PROGRESS = 14, "the coordinator is loading the group", RETRIABLE
    COORDINATOR_NOT_AVAILABLE = 15, "the group has no coordinator now", RETRIABLE
    NOT_COORDINATOR = 16, "another broker is the coordinator", RETRIABLE
    LOCAL_WAIT_COORD = -180, "the client is looking for the coordinator", RETRIABLE
    ILLEGAL_GENERATION = 22, "the member's generation is over"
    UNKNOWN_MEMBER_ID = 25, "the coordinator does not know the member"
    REBALANCE_IN_PROGRESS = 27, "the group rebalances, and the member must rejoin"
    FENCED_MEMBER_EPOCH = 110, "the coordinator has fenced the member's epoch"
    STALE_MEMBER_EPOCH = 113, "the request carries an old epoch of the member"
    LOCAL_ASSIGNMENT_LOST = -142, "the member lost its partitions"
    LOCAL_MAX_POLL_EXCEEDED = -147, "no poll within max.poll.interval.ms"

    # Fetching.
    LEADER_NOT_AVAILABLE = 5, "the partition has no leader now", RETRIABLE
    LOCAL_NOENT = -156, "the client knows no leader of any of the partitions", RETRIABLE
    NOT_LEADER_FOR_PARTITION = 6, "another broker is the leader", RETRIABLE
    BROKER_NOT_AVAILABLE = 8, "the broker is not available"
    REPLICA_NOT_AVAILABLE = 9, "the replica is not available", RETRIABLE
    OFFSET_NOT_AVAILABLE = 78, "a new leader does not know the end offset yet", RETRIABLE
    FENCED_LEADER_EPOCH = 74, "the client's metadata names an older leader", RETRIABLE
    UNKNOWN_LEADER_EPOCH = 75, "the broker does not know the new leader yet", RETRIABLE
    KAFKA_STORAGE_ERROR = 56, "the broker's disk failed", RETRIABLE
    OFFSET_OUT_OF_RANGE = 1, "the log does not have the offset"
    LOCAL_AUTO_OFFSET_RESET = -140, "the log does not have the offset (reset=error)"
    LOCAL_LOG_TRUNCATION = -139, "the log was truncated below the position"
    LOCAL_PARTITION_EOF = -191, "the end of the partition: not an error"
    LOCAL_BAD_MSG = -199, "a record batch is corrupt"
    LOCAL_BAD_COMPRESSION = -198, "a record batch cannot be decompressed"
    LOCAL_NOT_IMPLEMENTED = -170, "the client does not support the records' format"
    INVALID_MSG = 2, "a record batch failed its checksum", RETRIABLE
    UNSUPPORTED_COMPRESSION_TYPE = 76, "the compression is not supported"
    UNSUPPORTED_VERSION = 35, "the broker does not support this request version"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "the log's message format is too old"
    LOCAL_UNSUPPORTED_FEATURE = -165, "the broker lacks a feature"
    INVALID_REQUEST = 42, "the broker cannot read the request"

    # Writing and committing.
    MSG_SIZE_TOO_LARGE = 10, "the record is larger than max.message.bytes"
    RECORD_LIST_TOO_LARGE = 18, "the record batch is larger than a log segment"
    INVALID_TIMESTAMP = 32, "the topic does not accept the record's timestamp"
    LOCAL_INVALID_DIFFERENT_RECORD = -138, "the broker refused the batch because of another record"
    INVALID_RECORD = 87, "the broker refuses the record, for example without a key"
    OFFSET_METADATA_TOO_LARGE = 12, "the commit's metadata is too large"
    LOCAL_PURGE_QUEUE = -152, "the client dropped the record before it was sent"
    LOCAL_PURGE_INFLIGHT = -151, "the client dropped the record without an answer"

    # Transactions.
    LOCAL_FENCED = -144, "a newer producer has the same transactional id"
    PRODUCER_FENCED = 90, "a newer producer has the same transactional id"
    INVALID_PRODUCER_EPOCH = 47, "a newer producer has the same transactional id"
    INVALID_TRANSACTION_TIMEOUT = 50, "above transaction.max.timeout.ms"
    UNSTABLE_OFFSET_COMMIT = 88, "an open transaction may change the offsets", RETRIABLE

    # The client itself.
    LOCAL_FATAL = -150, "the client failed and must be replaced"
    LOCAL_STATE = -172, "the client is in a state that does not allow the call"
    LOCAL_INVALID_ARG = -186, "a setting or an argument is not valid"


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

NO_LEADER_YET = frozenset({Code.LEADER_NOT_AVAILABLE, Code.NOT_LEADER_FOR_PARTITION, Code.LOCAL_NOENT})
"""A partition that was just created, or whose leader moves."""

NOT_CREATED_YET = NO_LEADER_YET | {Code.UNKNOWN_TOPIC_OR_PART, Code.LOCAL_UNKNOWN_TOPIC, Code.LOCAL_UNKNOWN_PARTITION}
"""A topic that was just created, and that some brokers do not know yet."""

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

BAD_RECORD = frozenset(
    {
        Code.MSG_SIZE_TOO_LARGE,
        Code.INVALID_RECORD,
        Code.RECORD_LIST_TOO_LARGE,
        Code.INVALID_TIMESTAMP,
        Code.LOCAL_INVALID_DIFFERENT_RECORD,
    }
)
"""The record itself, or another one of its batch, is the cause. Other errors of produce requests are the cluster's."""

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
