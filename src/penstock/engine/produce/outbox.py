"""Outputs, dead letters and retries on their way to the broker, each acknowledged before its record is finished."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from queue import SimpleQueue

from confluent_kafka import KafkaError, KafkaException, Producer

from penstock.core.failures.dead_letter import shortened
from penstock.core.failures.outcome import Failed, ProducerRecord
from penstock.core.scheduling.effects import Send
from penstock.engine.dispatch.thread_messages import Delivered, Inbox, Refused, Undeliverable
from penstock.kafka.error_codes import BAD_RECORD, DROPPED_BY_CLIENT
from penstock.kafka.errors import translate

_POLL_SECONDS = 0.1
_CLOSE_SECONDS = 5.0

# What the record itself is to blame for; anything else is the cluster's trouble.
OWN_FAULT = BAD_RECORD
# Where the client has given up for good, it says this of each record, and what it was once.
_GIVEN_UP = DROPPED_BY_CLIENT


class Outbox:
    """Produces from the dispatcher's thread; a thread of its own collects the broker's acknowledgements.

    The client sends records in batches, and the broker refuses a batch as a whole. So what is refused is sent again by
    itself, by a second client that ``make_alone`` makes when it is needed. Where we added headers it has one more
    chance, with as few of them as will do. Only then is the record to blame. What was sent after it may be there first.
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
        self._given_up: SimpleQueue[tuple[Send, KafkaError]] = SimpleQueue()
        self._fatal: KafkaError | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._collect, name="outbox", daemon=True)
        self._thread.start()

    @property
    def is_full(self) -> bool:
        """Whether some wait here because the client's own buffer is full; ``flush`` tries them again."""
        return bool(self._waiting)

    def send(self, sends: Iterable[Send]) -> Sequence[Send]:
        self._waiting.extend(sends)
        self.flush()
        return ()

    def flush(self) -> None:
        while self._waiting:
            send = self._waiting[0]
            try:
                _produce(self._producer, send.outgoing, partial(self._on_delivery, send))
            except BufferError:
                return
            except KafkaException as error:
                self._on_delivery(send, error.args[0])
            self._waiting.popleft()

    def close(self) -> None:
        self._closing.set()
        self._thread.join(timeout=_CLOSE_SECONDS)

    def _collect(self) -> None:
        while not self._closing.is_set():
            self._poll(self._producer, _POLL_SECONDS)
            self._send_refused_alone()
            self._explain()
            if self._acknowledged:
                # Callbacks run inside poll, on this thread, so nobody else touches the list.
                self._inbox.put(Delivered(self._acknowledged))
                self._acknowledged = []

    def _poll(self, producer: Producer, seconds: float) -> None:
        try:
            producer.poll(seconds)
        except KafkaException as error:
            self._fatal = self._fatal or error.args[0]

    def _explain(self) -> None:
        """What was given up, with the reason for it, which may have come after."""
        while not self._given_up.empty():
            send, error = self._given_up.get()
            self._give_up(send, self._fatal or error)

    def _on_delivery(self, send: Send, error: KafkaError | None, _message: object = None) -> None:
        if error is None:
            self._acknowledged.append(send)
        elif error.code() in _GIVEN_UP:
            self._given_up.put((send, error))
        elif error.code() in OWN_FAULT:
            out = send.outgoing
            self._refused.put((send, [out] if send.failure is None else [out, shortened(out)]))
        else:
            self._give_up(send, error)

    def _send_refused_alone(self) -> None:
        while not self._refused.empty():
            send, forms = self._refused.get()
            if self._alone is None:
                self._alone = self._make_alone()
            answer = partial(self._on_delivery_alone, send, forms[1:])
            try:
                _produce(self._alone, forms[0], answer)
            except BufferError:
                self._refused.put((send, forms))
                break
            except KafkaException as error:
                answer(error.args[0], None)
        if self._alone is not None:
            self._poll(self._alone, 0)

    def _on_delivery_alone(
        self, send: Send, other_forms: list[ProducerRecord], error: KafkaError | None, _: object
    ) -> None:
        if error is None:
            self._acknowledged.append(send)
        elif error.code() in OWN_FAULT and other_forms:
            self._refused.put((send, other_forms))
        else:
            self._give_up(send, error)

    def _give_up(self, send: Send, error: KafkaError) -> None:
        self._inbox.put(refusal(send, error, brokers=self._brokers))


def _produce(producer: Producer, out: ProducerRecord, on_delivery: Callable[..., None]) -> None:
    producer.produce(out.topic, value=out.value, key=out.key, headers=list(out.headers), on_delivery=on_delivery)


def refusal(send: Send, error: KafkaError, *, brokers: str) -> Refused | Undeliverable:
    """What it means that the broker does not take this, in no form."""
    # A dead letter has nowhere else to go, so its refusal always stops the member.
    is_dead_letter = send.failure is not None and send.delay is None
    if error.code() in OWN_FAULT and not is_dead_letter:
        return Refused(send, _why(send, error))
    doing = f"writing to topic {send.outgoing.topic} what became of {_name(send)}"
    return Undeliverable(send, translate(KafkaException(error), doing=doing, brokers=brokers))


def _why(send: Send, error: KafkaError) -> Failed:
    """Why the record has failed for good: by its output, or by what failed before it could not wait."""
    why = f"topic {send.outgoing.topic} does not take"
    if send.failure is None:
        return Failed("OutputRefused", f"{why} its output: {error.str()}", final=True)
    return replace(send.failure, message=f"{send.failure.message} ({why} it: {error.str()})", final=True)


def _name(send: Send) -> str:
    topic, partition = send.tried.epoch.tp
    return f"{topic}[{partition}]@{send.tried.offset}"
