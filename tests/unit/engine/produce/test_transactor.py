"""Which records are first written in a trial transaction, to see whether the broker accepts them."""

from collections.abc import Mapping
from queue import SimpleQueue
from typing import Any, cast

import pytest

from penstock.core.failures.outcome import ProducerRecord
from penstock.core.scheduling.effects import Send
from penstock.engine.dispatch.thread_messages import Approved, Inbox
from penstock.engine.produce.transactor import Transactor
from penstock.kafka.client.transactions import Transaction

WAIT_SECONDS = 120.0


class Producer:
    """Accepts everything, and records its arguments and its trials."""

    def __init__(self, purpose: str, tried: list[str]) -> None:
        self.purpose, self.tried = purpose, tried

    def fence(self) -> None:
        pass

    def abort(self) -> None:
        pass

    def write(self, _rows: Any) -> None:
        pass

    def try_out(self, row: Any) -> None:
        self.tried.append(row[0])


@pytest.mark.parametrize(("value", "trials"), [(b"x" * 2_000, []), (b"x" * 20_000, ["letters"])])
def test_only_what_may_be_too_large_for_its_topic_is_tried_out(value: bytes, trials: list[str]) -> None:
    """A trial needs another producer, so many trials would delay a transaction for too long."""
    made: list[str] = []
    tried: list[str] = []
    inbox: Inbox = SimpleQueue()

    def make(purpose: str, _settings: Mapping[str, Any]) -> Transaction:
        made.append(purpose)
        return cast("Transaction", Producer(purpose, tried))

    transactor = Transactor(make, lambda: {"letters": 10_000}, inbox, brokers="nowhere:1")
    transactor.start()
    try:
        # Larger than what every topic accepts, and the limits of the topics are not known yet.
        send = Send(cast("Any", None), ProducerRecord("letters", None, value))
        assert transactor.send([send]) == []
        assert inbox.get(timeout=WAIT_SECONDS) == Approved(send)
    finally:
        transactor.close()
    assert tried == trials
    assert made == ["trial"] * len(trials)
