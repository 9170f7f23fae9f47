"""Outputs without a transaction: which consumed record the client's error belongs to."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock.core.failures.outcome import ProducerRecord
from penstock.core.progress.tracker import Tracker
from penstock.core.scheduling.lanes import Epoch
from penstock.kafka.error_codes import Code
from penstock.spark.tasks.outputs import PlainOutputs

TOO_LARGE = KafkaError(Code.MSG_SIZE_TOO_LARGE)


class Client:
    """A producer that takes everything, and answers when it is flushed."""

    def __init__(self, refuses: Callable[[bytes], bool], *, at_once: bytes | None = None) -> None:
        self.refuses = refuses
        self._at_once = at_once
        self._sent: list[tuple[Any, ...]] = []

    def produce(self, topic: str, value: bytes, key: bytes, _partition: int, on_error: Any, **_: Any) -> None:
        if value == self._at_once:
            raise KafkaException(TOO_LARGE)
        self._sent.append((topic, value, key, on_error))

    def poll(self, _seconds: float) -> int:
        return 0

    def flush(self, _seconds: float) -> int:
        sent, self._sent = self._sent, []
        for topic, value, key, on_error in sent:
            if self.refuses(value):
                on_error(
                    TOO_LARGE,
                    SimpleNamespace(topic=lambda t=topic: t, value=lambda v=value: v, key=lambda k=key: k),
                )
        return 0


def refused(client: Client, *values: bytes) -> list[int]:
    """The offsets of the records whose outputs were refused. Alone, they are refused too."""
    outputs = PlainOutputs(
        client,  # type: ignore[arg-type]
        make_alone=lambda: Client(client.refuses),  # type: ignore[arg-type,return-value]
        offset_of=lambda offset: offset,
        brokers="somewhere",
    )
    epoch = Epoch(("orders", 0), 1, Tracker(0), None)
    records = [*range(len(values))]
    outputs.write(epoch, records, [ProducerRecord("out", b"key", value) for value in values])
    return [send.tried.record for send, _ in outputs.flush()]


@pytest.mark.parametrize("at_once", [None, b"large"])
def test_a_refused_output_belongs_to_the_record_that_wrote_it(at_once: bytes | None) -> None:
    assert refused(Client(b"large".__eq__, at_once=at_once), b"a", b"large", b"b") == [1]


def test_equal_outputs_that_are_refused_belong_to_one_record_each() -> None:
    assert sorted(refused(Client(b"large".__eq__), b"large", b"a", b"large", b"large")) == [0, 2, 3]
