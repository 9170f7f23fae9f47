"""Outputs without a transaction: which consumed record the client's error belongs to."""

import time
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
NO_PARTITION = KafkaError(Code.LOCAL_UNKNOWN_PARTITION)


class Client:
    """A producer that takes everything, and answers when it is flushed."""

    def __init__(
        self, refuses: Callable[[bytes], bool], *, at_once: bytes | None = None, bad_partition: int = 9
    ) -> None:
        self.refuses = refuses
        self._at_once = at_once
        self._bad_partition = bad_partition
        self._sent: list[tuple[Any, ...]] = []

    def produce(self, topic: str, value: bytes, key: bytes, partition: int, on_error: Any, **more: Any) -> None:
        if value == self._at_once:
            raise KafkaException(TOO_LARGE)
        error = (
            TOO_LARGE
            if self.refuses(value) or any(map(self.refuses, dict(more.get("headers") or ()).values()))
            else None
        )
        if partition == self._bad_partition:
            error = NO_PARTITION
        self._sent.append((topic, value, key, on_error, error))

    def poll(self, _seconds: float) -> int:
        return 0

    def flush(self, _seconds: float) -> int:
        sent, self._sent = self._sent, []
        for topic, value, key, on_error, error in sent:
            if error is not None:
                on_error(
                    error,
                    SimpleNamespace(topic=lambda t=topic: t, value=lambda v=value: v, key=lambda k=key: k),
                )
        return 0


def refused(client: Client, *values: bytes) -> list[int]:
    """The offsets of the records whose outputs were refused. Alone, they are refused too."""
    return refused_of(client, *(ProducerRecord("out", b"key", value) for value in values))


def plain_outputs(client: Client) -> PlainOutputs:
    return PlainOutputs(
        client,  # type: ignore[arg-type]
        make_alone=lambda: Client(client.refuses),  # type: ignore[arg-type,return-value]
        offset_of=lambda offset: offset,
        brokers="somewhere",
    )


def refused_of(client: Client, *outs: ProducerRecord) -> list[int]:
    outputs = plain_outputs(client)
    epoch = Epoch(("orders", 0), 1, Tracker(0), None)
    outputs.write(epoch, [*range(len(outs))], [*outs])
    return [send.tried.record for send, _ in outputs.flush()]


def refused_values(client: Client, *values: bytes) -> list[int]:
    outputs = plain_outputs(client)
    records, keys = [*range(len(values))], [b"key"] * len(values)
    outputs.write_values(Epoch(("orders", 0), 1, Tracker(0), None), "out", records, [*keys], [*values])
    return [send.tried.record for send, _ in outputs.flush()]


@pytest.mark.parametrize("refused", [refused, refused_values])
@pytest.mark.parametrize("at_once", [None, b"large"])
def test_a_refused_output_belongs_to_the_record_that_wrote_it(
    at_once: bytes | None, refused: Callable[..., list[int]]
) -> None:
    assert refused(Client(b"large".__eq__, at_once=at_once), b"a", b"large", b"b") == [1]


@pytest.mark.parametrize("refused", [refused, refused_values])
def test_equal_outputs_that_are_refused_belong_to_one_record_each(refused: Callable[..., list[int]]) -> None:
    assert sorted(refused(Client(b"large".__eq__), b"large", b"a", b"large", b"large")) == [0, 2, 3]


def test_outputs_that_differ_only_in_their_partition_are_told_apart() -> None:
    outs = [ProducerRecord("out", b"key", b"a", partition=number) for number in (0, 9, 1)]
    assert refused_of(Client(b"large".__eq__), *outs) == [1]


def test_outputs_that_differ_only_in_their_headers_are_told_apart() -> None:
    outs = [ProducerRecord("out", b"key", b"a", (("note", note),)) for note in (b"small", b"large", b"small")]
    assert refused_of(Client(b"large".__eq__), *outs) == [1]


def test_one_object_may_be_the_output_of_several_records() -> None:
    out = ProducerRecord("out", b"key", b"large")
    assert sorted(refused_of(Client(b"large".__eq__), out, out)) == [0, 1]


def test_many_refused_outputs_take_no_time_that_grows_with_their_square() -> None:
    values = [b"large%d" % number for number in range(20_000)]
    began = time.process_time()
    assert refused(Client(lambda value: value.startswith(b"large")), *values) == [*range(20_000)]
    assert time.process_time() - began < 5
