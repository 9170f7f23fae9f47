"""Writes the outputs, dead letters and retry records of a slice.

Each is written without waiting for the broker. ``flush`` waits for all of them, before the task returns its result.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from penstock.core.failures.outcome import ProducerRecord
from penstock.core.scheduling.effects import Attempt, Send
from penstock.core.scheduling.lanes import AnyRecord, Epoch
from penstock.kafka.client.output_topics import OutputTopicFacts
from penstock.kafka.client.refused_output import final_failure, forms_of, undeliverable
from penstock.kafka.client.transactions import Row, Transaction, row_of
from penstock.kafka.error_codes import BAD_RECORD

# How long to wait for room in the client's buffer, before another try.
_ROOM_SECONDS = 0.01
_FLUSH_SECONDS = 1.0
# So many rows are written to a transaction at once.
_ROWS = 1_000

ONLY_ERRORS = {
    "delivery.report.only.error": True,
    # With several requests under way, the client may take a lost batch for delivered (see ProvenProducer).
    "max.in.flight.requests.per.connection": 1,
}
"""The settings of the producer for ``PlainOutputs``: an output costs no callback, and no report proves its delivery."""

Refusals = list[tuple[Send, KafkaError]]


class Outputs(Protocol):
    def write(self, epoch: Epoch, records: list[AnyRecord], outputs: list[ProducerRecord]) -> None:
        """Write the outputs of records that have one each, in this order. It keeps both lists.

        A short form of ``send``, because nearly every record comes this way.
        """

    def write_values(
        self, epoch: Epoch, topic: str, records: list[AnyRecord], keys: list[bytes | None], values: list[bytes]
    ) -> None:
        """As ``write``, for outputs to one topic that have only a key and a value. It keeps the lists."""

    def send(self, together: Sequence[Send]) -> None:
        """Write what a consumed record produces: its outputs, a dead letter or a retry record.

        A transaction gets all of it, or nothing if the broker refuses a part.
        """

    def flush(self) -> Refusals:
        """Wait until the broker has everything. Returns what it refuses in every form; raises if it does not answer."""


class OutputList:
    """Collects the outputs of records that have one each, to write them together, and counts all outputs."""

    def __init__(self, outputs: Outputs) -> None:
        self._outputs = outputs
        self._epoch: Epoch | None = None
        self.records: list[AnyRecord] = []
        self.outputs: list[ProducerRecord] = []
        self.count = 0

    def begin(self, epoch: Epoch) -> None:
        """Outputs of this epoch follow."""
        if self._epoch is not epoch:
            self.write()
            self._epoch = epoch

    def write(self) -> None:
        if self._epoch is not None and self.outputs:
            self._outputs.write(self._epoch, self.records, self.outputs)
            self.count += len(self.outputs)
            self.records, self.outputs = [], []

    def write_values(
        self, epoch: Epoch, topic: str, records: list[AnyRecord], keys: list[bytes | None], values: list[bytes]
    ) -> None:
        self._outputs.write_values(epoch, topic, records, keys, values)
        self.count += len(values)


class PlainOutputs:
    """Outputs without a transaction, by a producer with the settings ``ONLY_ERRORS``.

    The client sends records in batches, and the broker refuses a batch as a whole. So each refused record is sent again
    alone, by a second client that ``make_alone`` makes when it is first needed.
    """

    def __init__(
        self,
        producer: Producer,
        *,
        make_alone: Callable[[], Producer],
        offset_of: Callable[[AnyRecord], int],
        brokers: str,
    ) -> None:
        self._producer = producer
        self._make_alone = make_alone
        self._offset_of = offset_of
        self._brokers = brokers
        self._refused: Refusals = []

    def write(self, epoch: Epoch, records: list[AnyRecord], outputs: list[ProducerRecord]) -> None:
        # One callback for all: to make one for each output takes longer than all else that an output costs.
        written = _WrittenOutputs(epoch, records, lambda: outputs)
        on_error = partial(self._on_error, written)
        produce = self._producer.produce
        for index, out in enumerate(outputs):
            if out.headers or out.timestamp_ms or out.partition >= 0:
                self.send([self._send_of(epoch, records[index], out)])
                continue
            try:
                produce(out.topic, out.value, out.key, -1, on_error)
            except (BufferError, KafkaException):
                refusal = self._produce(out, on_error)
                if refusal is not None:
                    self._refuse(written, out.topic, out.key, out.value, refusal)
        self._producer.poll(0)

    def write_values(
        self, epoch: Epoch, topic: str, records: list[AnyRecord], keys: list[bytes | None], values: list[bytes]
    ) -> None:
        written = _WrittenOutputs(epoch, records, partial(_outputs_to, topic, keys, values))
        on_error = partial(self._on_error, written)
        produce = self._producer.produce
        for key, value in zip(keys, values, strict=True):
            try:
                produce(topic, value, key, -1, on_error)
            except (BufferError, KafkaException):
                refusal = self._produce(ProducerRecord(topic, key, value), on_error)
                if refusal is not None:
                    self._refuse(written, topic, key, value, refusal)
        self._producer.poll(0)

    def send(self, together: Sequence[Send]) -> None:
        for send in together:
            refusal = self._produce(send.outgoing, partial(self._on_refusal, send))
            if refusal is not None:
                self._on_refusal(send, refusal)

    def flush(self) -> Refusals:
        while self._producer.flush(_FLUSH_SECONDS):
            pass
        refused, self._refused = self._refused, []
        if not refused:
            return []
        alone = self._make_alone()
        return [each for each in refused if not self._send_alone(alone, *each)]

    def close(self) -> None:
        """Let go of the producer, which may be broken. Its threads would live until Python looks for cycles."""
        del self._producer

    def _produce(self, out: ProducerRecord, on_error: Callable[..., None]) -> KafkaError | None:
        """Give the record to the client, when it has room. Returns why it does not take it."""
        while True:
            try:
                _produce(self._producer, out, on_error)
            except BufferError:
                self._producer.poll(_ROOM_SECONDS)
            except KafkaException as error:
                found: KafkaError = error.args[0]
                return found
            else:
                return None

    def _on_error(self, written: "_WrittenOutputs", error: KafkaError, message: Message) -> None:
        self._refuse(written, message.topic(), message.key(), message.value(), error)

    def _refuse(
        self, written: "_WrittenOutputs", topic: str | None, key: bytes | None, value: bytes | None, error: KafkaError
    ) -> None:
        self._on_refusal(self._send_of(written.epoch, *written.take(topic, key, value)), error)

    def _send_of(self, epoch: Epoch, record: AnyRecord, out: ProducerRecord) -> Send:
        offset = self._offset_of(record)
        return Send(Attempt(epoch, record, offset, epoch.attempt_at(offset)), out)

    def _on_refusal(self, send: Send, error: KafkaError, _message: object = None) -> None:
        self._refused.append((send, error))

    def _send_alone(self, alone: Producer, send: Send, error: KafkaError) -> bool:
        """Return whether the broker takes this record alone, or with shortened headers if it has a failure."""
        if final_failure(send, error) is not None and error.code() not in BAD_RECORD:
            return False
        if error.code() not in BAD_RECORD:
            raise undeliverable(send, error, brokers=self._brokers)
        return any(_takes(alone, out) for out in forms_of(send))


class _WrittenOutputs:
    """Outputs that were written together, to find the records of those that are refused: reports do not name records.

    Reports have topic, key and value, so outputs with anything else are not among these.
    """

    def __init__(
        self, epoch: Epoch, records: list[AnyRecord], list_outputs: Callable[[], list[ProducerRecord]]
    ) -> None:
        self.epoch = epoch
        self._records = records
        self._list_outputs = list_outputs
        self._outputs: list[ProducerRecord] = []
        self._left: dict[tuple[str | None, bytes | None, bytes | None], list[int]] | None = None

    def take(self, topic: str | None, key: bytes | None, value: bytes | None) -> tuple[AnyRecord, ProducerRecord]:
        """Take a record whose output this is, and the output. Of equal ones, each is as good: the same is refused."""
        if self._left is None:
            self._left = {}
            self._outputs = self._list_outputs()
            for index, out in enumerate(self._outputs):
                if not (out.headers or out.timestamp_ms or out.partition >= 0):
                    self._left.setdefault((out.topic, out.key, out.value), []).append(index)
        try:
            index = self._left[topic, key, value].pop(0)
        except LookupError:
            raise LookupError(f"the client reports an output to {topic} that this task did not write") from None
        return self._records[index], self._outputs[index]


class DryOutputs:
    """Outputs of a dry run: nothing is written."""

    def write(self, epoch: Epoch, records: list[AnyRecord], outputs: list[ProducerRecord]) -> None:
        pass

    def write_values(
        self, epoch: Epoch, topic: str, records: list[AnyRecord], keys: list[bytes | None], values: list[bytes]
    ) -> None:
        pass

    def send(self, together: Sequence[Send]) -> None:
        pass

    def flush(self) -> Refusals:
        return []


class TransactionalOutputs:
    """Outputs in one transaction. A record that may be too large for its topic is first tried out in another one.

    In the real transaction, a refused record would fail all others.
    """

    def __init__(
        self,
        transaction: Transaction,
        *,
        facts: OutputTopicFacts,
        open_trial: Callable[[], Transaction],
        offset_of: Callable[[AnyRecord], int],
    ) -> None:
        self._transaction = transaction
        self._facts = facts
        self._open_trial = open_trial
        self._offset_of = offset_of
        self._rows: list[Row] = []
        self._refused: Refusals = []

    def write(self, epoch: Epoch, records: list[AnyRecord], outputs: list[ProducerRecord]) -> None:
        if self._are_small(outputs):
            self._write_rows()
            self._transaction.write_small(outputs)
            return
        for record, out in zip(records, outputs, strict=True):
            if self._facts.may_refuse(out):
                offset = self._offset_of(record)
                self.send([Send(Attempt(epoch, record, offset, epoch.attempt_at(offset)), out)])
            else:
                self._add([out])

    def write_values(
        self, epoch: Epoch, topic: str, records: list[AnyRecord], keys: list[bytes | None], values: list[bytes]
    ) -> None:
        largest_key = max((len(key) for key in keys if key is not None), default=0)
        if max(map(len, values)) + largest_key >= self._facts.room(topic):
            self.write(epoch, records, _outputs_to(topic, keys, values))
            return
        self._write_rows()
        self._transaction.write_values(topic, keys, values)

    def _are_small(self, outputs: list[ProducerRecord]) -> bool:
        """Whether no broker refuses any of these, and none has a header, partition or timestamp: nearly always."""
        topic, room = "", 0.0
        for out in outputs:
            if out.topic != topic:
                topic, room = out.topic, self._facts.room(out.topic)
            if len(out.value or b"") + len(out.key or b"") >= room or out.headers or out.partition >= 0:
                return False
            if out.timestamp_ms:
                return False
        return True

    def send(self, together: Sequence[Send]) -> None:
        accepted = []
        for send in together:
            form = self._facts.accepted_form(send, self._try_out)
            if isinstance(form, KafkaError):
                self._refused.append((send, form))
                return
            accepted.append(form)
        self._add(accepted)

    def _try_out(self, out: ProducerRecord) -> KafkaError | None:
        with self._open_trial() as trial:
            return trial.try_out(row_of(out))

    def flush(self) -> Refusals:
        """Write everything to the transaction; its commit waits for the broker."""
        self._write_rows()
        refused, self._refused = self._refused, []
        return refused

    def _add(self, outputs: Sequence[ProducerRecord]) -> None:
        self._rows += map(row_of, outputs)
        if len(self._rows) >= _ROWS:
            self._write_rows()

    def _write_rows(self) -> None:
        if self._rows:
            self._transaction.write(self._rows)
            self._rows.clear()


def _outputs_to(topic: str, keys: list[bytes | None], values: list[bytes]) -> list[ProducerRecord]:
    return [ProducerRecord(topic, key, value) for key, value in zip(keys, values, strict=True)]


def _produce(producer: Producer, out: ProducerRecord, on_delivery: Callable[..., None]) -> None:
    producer.produce(
        out.topic,
        out.value,
        out.key,
        out.partition,
        on_delivery,
        timestamp=out.timestamp_ms,
        headers=list(out.headers),
    )


def _takes(producer: Producer, out: ProducerRecord) -> bool:
    """Return whether the broker takes this record; waits for its answer."""
    answers: list[KafkaError | None] = []

    def answer(error: KafkaError | None, _message: object) -> None:
        answers.append(error)

    _produce(producer, out, answer)
    while producer.flush(_FLUSH_SECONDS):
        pass
    # Not by ==: an error of the client cannot be compared with None.
    return len(answers) == 1 and answers[0] is None
