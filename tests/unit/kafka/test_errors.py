"""Errors of the client are translated to errors that say what to do; some of them stop the app."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock.errors import ConfigError, PenstockError, ServerError, TopicError
from penstock.kafka.error_codes import FINAL
from penstock.kafka.errors import _TABLE, commit_refusal, is_final, translate

CODES = {
    name: code
    for name in dir(KafkaError)
    if name.lstrip("_").isupper() and isinstance(code := getattr(KafkaError, name), int)
}


def translated(code: int, text: str = "so it says") -> PenstockError:
    return translate(KafkaException(KafkaError(code, text)), doing="reading orders", brokers="b:9092")


@pytest.mark.parametrize("name", CODES)
def test_every_code_of_the_client_has_a_message(name: str) -> None:
    error = translated(CODES[name])
    assert error.hint
    assert "{" not in str(error)
    if CODES[name] not in _TABLE:
        assert f"({KafkaError(CODES[name]).name()})" in error.problem
        assert "so it says" in error.problem


@pytest.mark.parametrize(
    ("code", "kind", "problem", "hint"),
    [
        (KafkaError._AUTHENTICATION, ServerError, "did not accept the login", "sasl.password"),
        (KafkaError.SASL_AUTHENTICATION_FAILED, ServerError, "did not accept the login", "sasl.mechanism"),
        (KafkaError.UNSUPPORTED_SASL_MECHANISM, ServerError, "does not offer this login", "sasl.mechanism"),
        (KafkaError._SSL, ServerError, "no secure connection to b:9092", "ssl.ca.location"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ServerError, "denied reading orders", "READ and DESCRIBE"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, ServerError, "denied the group", "READ on the group"),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, ServerError, "the whole cluster", "IDEMPOTENT_WRITE"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, TopicError, "A topic is missing", "Create the topic"),
        (KafkaError.UNSUPPORTED_VERSION, ServerError, "too old for reading orders", "newer Kafka"),
        (KafkaError._UNSUPPORTED_FEATURE, ServerError, "lacks a feature", "group.protocol"),
        (KafkaError.INVALID_GROUP_ID, ConfigError, "The group's name", "group="),
        (KafkaError.INVALID_SESSION_TIMEOUT, ConfigError, "session timeout", "group.max.session.timeout.ms"),
        (KafkaError.MSG_SIZE_TOO_LARGE, ServerError, "is too large while", "receive.message.max.bytes"),
        (KafkaError.OFFSET_OUT_OF_RANGE, TopicError, "no longer in the log", "retention.ms"),
        (KafkaError._BAD_MSG, ServerError, "A record is corrupt", "Nothing past it was committed"),
        (KafkaError.COORDINATOR_NOT_AVAILABLE, ServerError, "coordinator does not answer", "__consumer_offsets"),
        (KafkaError.LEADER_NOT_AVAILABLE, ServerError, "no leader that answers", "brokers are up"),
        (KafkaError.FENCED_INSTANCE_ID, ConfigError, "same static id", "static_id="),
        (KafkaError._MAX_POLL_EXCEEDED, ServerError, "did not poll in time", "max.poll.interval.ms"),
        (KafkaError._TRANSPORT, ServerError, "No Kafka broker answers at b:9092", "penstock up"),
    ],
)
def test_each_error_says_what_to_do(code: int, kind: type[PenstockError], problem: str, hint: str) -> None:
    error = translated(code)
    assert type(error) is kind
    assert problem in error.problem
    assert hint in error.hint


def test_final_errors_stop_the_app_and_others_do_not() -> None:
    assert all(is_final(KafkaError(code)) for code in FINAL)
    # An error that is fatal for a consumer does not stop the app: the engine creates another consumer.
    assert not is_final(KafkaError(KafkaError._STATE, "x", True))  # noqa: FBT003 - marked as fatal by the client
    passing = (
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._SSL,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError._MAX_POLL_EXCEEDED,
        KafkaError.UNKNOWN,
    )
    assert not [code for code in passing if is_final(KafkaError(code))]
    # Errors that stop the app have their own messages. For a fatal error, the client's text says more than its code.
    assert FINAL - set(_TABLE) == {KafkaError._FATAL}


def test_other_exceptions_are_reported_with_their_name() -> None:
    error = translate(TimeoutError(), doing="committing", brokers="b")
    assert str(error) == "Kafka failed while committing: TimeoutError."


def test_an_unreadable_file_and_a_wrong_setting_have_different_hints() -> None:
    unread = translated(
        KafkaError._INVALID_ARG, "Failed to create consumer: ssl.key.location failed: error:0A08:PEM lib"
    )
    assert "ssl.key.location failed" in unread.problem
    assert "ssl.key.password opens the key" in unread.hint
    assert "names and values" in translated(KafkaError._INVALID_ARG, "No such configuration property").hint


def test_a_refused_commit_has_different_reasons_for_members_and_for_others() -> None:
    unknown, rebalancing = KafkaError(KafkaError.UNKNOWN_MEMBER_ID), KafkaError(KafkaError.REBALANCE_IN_PROGRESS)
    assert commit_refusal(unknown, is_member=False).startswith(
        "the group has members, and the broker accepts commits only from"
    )
    assert commit_refusal(unknown, is_member=True).startswith("this member is not in the group's current generation")
    assert commit_refusal(rebalancing, is_member=True).startswith("the group is rebalancing")
    other = KafkaError(KafkaError.OFFSET_METADATA_TOO_LARGE)
    assert commit_refusal(other, is_member=False) == other.str()
