"""Penstock does not wait for a client that has missed an answer, for example because the broker restarted."""

import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock.errors import PenstockError, ServerError
from penstock.kafka.admin import answers
from penstock.kafka.client import transactions
from penstock.kafka.client.transactions import Transaction


class Deaf:
    """A producer whose coordinator never answers."""

    def __init__(self) -> None:
        self.patience: list[float] = []

    def begin_transaction(self) -> None:
        pass

    def send_offsets_to_transaction(self, _offsets: Any, _group: Any, seconds: float) -> None:
        self.patience.append(seconds)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


def test_offsets_are_given_up_long_before_their_transaction_is(monkeypatch: pytest.MonkeyPatch) -> None:
    deaf = Deaf()
    monkeypatch.setattr(transactions, "make_producer", lambda *_args, **_options: deaf)
    transaction = Transaction("localhost:1", "group:1", group=b"", settings={"transaction.timeout.ms": 900_000})
    with pytest.raises(ServerError):
        transaction.commit({("orders", 0): 5})
    assert deaf.patience
    assert max(deaf.patience) <= 30


class Gone(Deaf):
    """A producer that does not even return after its timeout."""

    def __init__(self) -> None:
        super().__init__()
        self.ever = threading.Event()
        self.aborted = False

    def send_offsets_to_transaction(self, _offsets: Any, _group: Any, seconds: float) -> None:
        self.patience.append(seconds)
        self.ever.wait()

    def abort_transaction(self, _seconds: float) -> None:
        self.aborted = True


def test_a_client_that_does_not_come_back_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Gone()
    monkeypatch.setattr(transactions, "make_producer", lambda *_args, **_options: gone)
    monkeypatch.setattr(transactions, "_OFFSETS_SECONDS", 0.01)
    monkeypatch.setattr(transactions, "_GRACE_SECONDS", 0.01)
    transaction = Transaction("localhost:1", "group:1", group=b"", settings={})
    with pytest.raises(ServerError), transaction:
        transaction.commit({("orders", 0): 5})
    assert gone.patience == [0.01], "and it gets no more calls"
    assert not gone.aborted
    gone.ever.set()


def test_other_errors_of_a_call_are_raised_to_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "make_producer", lambda *_args, **_options: Deaf())
    with pytest.raises(AttributeError, match="init_transactions"):
        Transaction("localhost:1", "group:1", group=b"", settings={}).fence()
    broken = Gone()
    monkeypatch.setattr(broken, "send_offsets_to_transaction", lambda *_: 1 / 0)
    monkeypatch.setattr(transactions, "make_producer", lambda *_args, **_options: broken)
    with pytest.raises(ZeroDivisionError):
        Transaction("localhost:1", "group:1", group=b"", settings={}).commit({("orders", 0): 5})


class Purged(Deaf):
    """A producer whose transaction failed before its offsets were sent. Its next call says why."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.codes = [code, KafkaError.MSG_SIZE_TOO_LARGE]

    def send_offsets_to_transaction(self, _offsets: Any, _group: Any, _seconds: float) -> None:
        raise KafkaException(KafkaError(self.codes.pop(0)))


@pytest.mark.parametrize("code", [KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError._STATE])
def test_a_transaction_that_fails_under_its_offsets_says_by_what(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.setattr(transactions, "make_producer", lambda *_args, **_options: Purged(code))
    with pytest.raises(PenstockError, match="A record is too large while committing transaction group:1") as caught:
        Transaction("localhost:1", "group:1", group=b"", settings={}).commit({("orders", 0): 5})
    assert isinstance(caught.value.__cause__, KafkaException)
    assert caught.value.__cause__.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_an_admin_request_that_the_client_never_ends_is_an_error_and_not_an_endless_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers, "_LOST_SECONDS", 0.01)
    never: Future[str] = Future()
    with pytest.raises(KafkaException) as raised:
        answers.answer(never)
    assert raised.value.args[0].code() == KafkaError._TIMED_OUT


def test_no_admin_request_is_waited_for_without_a_limit() -> None:
    package = Path(answers.__file__).parents[2]
    endless = [
        str(file)
        for part in ("kafka", "ops")
        for file in (package / part).rglob("*.py")
        if ".result()" in file.read_text()
    ]
    assert not endless, "use penstock.kafka.admin.answers.answer"
