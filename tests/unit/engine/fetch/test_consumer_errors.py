"""Whether a new consumer can help after an error, and the text of the error."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock import App
from penstock.app import Handler
from penstock.engine.fetch.consumer_errors import StartOverError, is_final_while_running, raise_if_final, to_report
from penstock.errors import ServerError, TopicError
from penstock.kafka.error_codes import Code


def make_handler() -> Handler:
    app = App("shop")

    @app.consume("orders", static_id="pod")
    def ship(value: bytes) -> None:
        pass

    return app.handlers[0]


@pytest.mark.parametrize(
    ("code", "text"),
    [(Code.FENCED_INSTANCE_ID, "Another member of group"), (Code.UNRELEASED_INSTANCE_ID, "still has a member")],
)
def test_two_members_with_one_static_id_stop_the_app(code: Code, text: str) -> None:
    # A fatal error has its cause only in its text.
    error = KafkaException(KafkaError(Code.LOCAL_FATAL, f"Fatal error: {KafkaError(code).str()}"))
    with pytest.raises(ServerError, match=text) as raised:
        raise_if_final(error, make_handler())
    assert "'pod'" in raised.value.problem
    assert "its own static_id" in raised.value.hint


@pytest.mark.parametrize("code", [Code.LOCAL_FATAL, Code.UNKNOWN_TOPIC_OR_PART, Code.LOCAL_TRANSPORT])
def test_a_new_consumer_may_help_after_other_errors(code: Code) -> None:
    assert not is_final_while_running(KafkaError(code))
    raise_if_final(KafkaException(KafkaError(code)), make_handler())


def test_a_final_error_is_raised_again() -> None:
    error = KafkaException(KafkaError(Code.GROUP_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaException) as raised:
        raise_if_final(error, make_handler())
    assert raised.value is error


def test_a_failed_transaction_is_reported_as_its_own_error() -> None:
    cause = ServerError("The transaction failed.", hint="Wait.")
    raise_if_final(StartOverError(cause), make_handler())
    assert to_report(StartOverError(cause), make_handler(), brokers="b:9092", fatal=False) is cause


def test_a_topic_that_disappears_while_the_app_runs_was_deleted() -> None:
    error = KafkaException(KafkaError(Code.UNKNOWN_TOPIC_OR_PART))
    gone = to_report(error, make_handler(), brokers="b:9092", fatal=False)
    missing = to_report(error, make_handler(), brokers="b:9092", fatal=True)
    assert isinstance(gone, TopicError)
    assert "probably deleted" in gone.problem
    assert isinstance(missing, TopicError)
    assert "probably deleted" not in missing.problem
