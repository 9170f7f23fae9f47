"""Produces outputs, dead letters and retry records. A record is finished when the broker has acknowledged them."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from queue import SimpleQueue

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from penstock.core.failures.outcome import ProducerRecord
from penstock.core.scheduling.effects import Send
from penstock.engine.dispatch.thread_messages import Delivered, Inbox, OutputRefused, Undeliverable
from penstock.kafka.client.proven_producer import is_proven
from penstock.kafka.client.refused_output import final_failure, forms_of, undeliverable
from penstock.kafka.error_codes import BAD_RECORD, DROPPED_BY_CLIENT

_POLL_SECONDS = 0.1
# How often the client is polled while nothing was sent that it has not answered.
_IDLE_SECONDS = 1.0
_CLOSE_SECONDS = 5.0


class Outbox:
    """Produces on the dispatcher's thread; its own thread collects the broker's acknowledgements.

    The client sends records in batches, and the broker refuses a batch as a whole. So each refused record is sent again
    alone, by a second client that ``make_alone`` creates when it is first needed. A dead letter or retry record that is
    refused again is sent a third time with shortened headers. Only then has the record failed. A record whose delivery
    report proves nothing (``is_proven``) is sent again alone, too. Records that were sent later may arrive before it.
    """

    def __init__(self, producer: Producer, inbox: Inbox, *, make_alone: Callable[[], Producer], brokers: str) -> None:
        self._producer = producer
        self._inbox = inbox
        self._make_alone = make_alone
        self._brokers = brokers
        self._waiting: deque[Send] = deque()
        self._acknowledged: list[Send] = []
        self._refused: SimpleQueue[tuple[Send, list[ProducerRecord]]] = SimpleQueue()
        self._alone: Producer | None = None
        self._purged: SimpleQueue[tuple[Send, KafkaError]] = SimpleQueue()
        self._fatal: KafkaError | None = None
        self._closing = threading.Event()
        self._wake = threading.Event()  # something was sent, or the outbox closes
        self._thread = threading.Thread(target=self._collect, name="outbox", daemon=True)
        self._thread.start()

    @property
    def is_full(self) -> bool:
        """Whether records wait because the client's buffer is full; ``flush`` tries them again."""
        return bool(self._waiting)

    def send(self, sends: Iterable[Send]) -> Sequence[Send]:
        self._waiting.extend(sends)
        self.flush()
        return ()

    def flush(self) -> None:
        if self._waiting:
            self._produce_waiting()
            # After the records: the thread that wakes up now must find them in the client.
            self._wake.set()

    def _produce_waiting(self) -> None:
        while self._waiting:
            send = self._waiting[0]
            try:
                _produce(self._producer, send.outgoing, partial(self._on_delivery, send))
            except BufferError:
                return
            except KafkaException as error:
                self._on_refusal(send, error.args[0])
            self._waiting.popleft()

    def close(self) -> None:
        self._closing.set()
        self._wake.set()
        self._thread.join(timeout=_CLOSE_SECONDS)
        # The parts of a member refer to each other, so the client would live until Python's garbage collector finds the
        # cycle. It has threads and connections, so drop it now.
        if not self._thread.is_alive():
            del self._producer, self._alone

    def _collect(self) -> None:
        while not self._closing.is_set():
            # Cleared before the look, so that a record that is sent meanwhile sets it again.
            self._wake.clear()
            if not self._is_busy():
                self._wake.wait(_IDLE_SECONDS)
            self._poll(self._producer, _POLL_SECONDS if self._is_busy() else 0)
            self._send_refused_alone()
            self._report_purged()
            if self._acknowledged:
                # Delivery callbacks run inside poll, on this thread, so no other thread uses the list.
                self._inbox.put(Delivered(self._acknowledged))
                self._acknowledged = []

    def _is_busy(self) -> bool:
        """Whether an answer of a client, or a record to send again, is due."""
        alone = self._alone is not None and len(self._alone) > 0
        return len(self._producer) > 0 or alone or not (self._refused.empty() and self._purged.empty())

    def _poll(self, producer: Producer, seconds: float) -> None:
        try:
            producer.poll(seconds)
        except KafkaException as error:
            self._fatal = self._fatal or error.args[0]

    def _report_purged(self) -> None:
        """Report purged records, with the fatal error if it is known: it may arrive after the first of them."""
        while not self._purged.empty():
            send, error = self._purged.get()
            self._give_up(send, self._fatal or error)

    def _on_delivery(self, send: Send, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._on_refusal(send, error)
        elif is_proven(message):
            self._acknowledged.append(send)
        else:
            self._refused.put((send, forms_of(send)))

    def _on_refusal(self, send: Send, error: KafkaError) -> None:
        if error.code() in DROPPED_BY_CLIENT:  # after a fatal error, whose reason the client reports only once
            self._purged.put((send, error))
        elif error.code() in BAD_RECORD:
            self._refused.put((send, forms_of(send)))
        else:
            self._give_up(send, error)

    def _send_refused_alone(self) -> None:
        while not self._refused.empty():
            send, forms = self._refused.get()
            if self._alone is None:
                self._alone = self._make_alone()
            try:
                _produce(self._alone, forms[0], partial(self._on_delivery_alone, send, forms))
            except BufferError:
                self._refused.put((send, forms))
                break
            except KafkaException as error:
                self._on_refusal_alone(send, forms, error.args[0])
        if self._alone is not None:
            self._poll(self._alone, 0)

    def _on_delivery_alone(
        self, send: Send, forms: list[ProducerRecord], error: KafkaError | None, message: Message
    ) -> None:
        if error is not None:
            self._on_refusal_alone(send, forms, error)
        elif is_proven(message):
            self._acknowledged.append(send)
        else:
            self._refused.put((send, forms))

    def _on_refusal_alone(self, send: Send, forms: list[ProducerRecord], error: KafkaError) -> None:
        if error.code() in BAD_RECORD and len(forms) > 1:
            self._refused.put((send, forms[1:]))
        else:
            self._give_up(send, error)

    def _give_up(self, send: Send, error: KafkaError) -> None:
        self._inbox.put(refusal(send, error, brokers=self._brokers))


def _produce(producer: Producer, out: ProducerRecord, on_delivery: Callable[..., None]) -> None:
    producer.produce(
        out.topic,
        value=out.value,
        key=out.key,
        partition=out.partition,
        on_delivery=on_delivery,
        timestamp=out.timestamp_ms,
        headers=list(out.headers),
    )


def refusal(send: Send, error: KafkaError, *, brokers: str) -> OutputRefused | Undeliverable:
    """The message for a record that the broker has refused in every form."""
    failure = final_failure(send, error)
    if failure is not None:
        return OutputRefused(send, failure)
    return Undeliverable(send, undeliverable(send, error, brokers=brokers))
