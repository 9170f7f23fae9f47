"""Outputs and dead letters on their way to the broker, each acknowledged before its record counts as finished."""

import threading
from collections import deque
from collections.abc import Iterable
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Producer

from penstock.core.decisions import Send
from penstock.core.outcome import Failed
from penstock.engine.messages import Delivered, Inbox, Refused, Undeliverable
from penstock.kafka.failures import translate

_POLL_SECONDS = 0.1
_CLOSE_SECONDS = 5.0

# What the record itself is to blame for; anything else is the cluster's trouble.
_OWN_FAULT = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD, KafkaError.RECORD_LIST_TOO_LARGE})


class Outbox:
    """Produces from the dispatcher's thread; a thread of its own collects the broker's acknowledgements."""

    def __init__(self, producer: Producer, inbox: Inbox, *, brokers: str) -> None:
        self._producer = producer
        self._inbox = inbox
        self._brokers = brokers
        self._waiting: deque[Send] = deque()
        self._acknowledged: list[Send] = []
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._collect, name="outbox", daemon=True)
        self._thread.start()

    @property
    def is_full(self) -> bool:
        """Whether some wait here because the client's own buffer is full; ``flush`` tries them again."""
        return bool(self._waiting)

    def send(self, sends: Iterable[Send]) -> None:
        self._waiting.extend(sends)
        self.flush()

    def flush(self) -> None:
        while self._waiting:
            send = self._waiting[0]
            out = send.outgoing
            try:
                self._producer.produce(
                    out.topic,
                    value=out.value,
                    key=out.key,
                    headers=list(out.headers),
                    on_delivery=partial(self._on_delivery, send),
                )
            except BufferError:
                return
            except KafkaException as error:
                self._on_refusal(send, error.args[0])
            self._waiting.popleft()

    def close(self) -> None:
        self._closing.set()
        self._thread.join(timeout=_CLOSE_SECONDS)

    def _collect(self) -> None:
        while not self._closing.is_set():
            self._producer.poll(_POLL_SECONDS)
            if self._acknowledged:
                # Callbacks run inside poll, on this thread, so nobody else touches the list.
                self._inbox.put(Delivered(self._acknowledged))
                self._acknowledged = []

    def _on_delivery(self, send: Send, error: KafkaError | None, _message: object) -> None:
        if error is None:
            self._acknowledged.append(send)
        else:
            self._on_refusal(send, error)

    def _on_refusal(self, send: Send, error: KafkaError) -> None:
        self._inbox.put(refusal(send, error, brokers=self._brokers))


def refusal(send: Send, error: KafkaError, *, brokers: str) -> Refused | Undeliverable:
    """What it means that the broker did not take this."""
    # A dead letter has nowhere else to go, so its refusal always stops the member.
    if error.code() in _OWN_FAULT and send.failure is None:
        message = f"topic {send.outgoing.topic} does not take its output: {error.str()}"
        return Refused(send, Failed("OutputRefused", message, final=True))
    doing = f"writing to topic {send.outgoing.topic} what became of {_name(send)}"
    return Undeliverable(send, translate(KafkaException(error), doing=doing, brokers=brokers))


def _name(send: Send) -> str:
    topic, partition = send.tried.epoch.place
    return f"{topic}[{partition}]@{send.tried.offset}"
