"""The public Producer: every record is acknowledged, or its error is raised."""

import atexit
import logging
import os
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException, Message

from penstock.core.records.time_headers import time_headers
from penstock.core.settings import client_settings
from penstock.core.text.durations import Duration
from penstock.core.text.plurals import counted
from penstock.errors import ConfigError, PenstockError, StateError
from penstock.kafka.client.clients import make_producer
from penstock.kafka.error_codes import Code
from penstock.kafka.errors import translate
from penstock.serde import encode

_POLL_SECONDS = 0.1
_ROOM_SECONDS = 0.05
_CLOSE_SECONDS = 5.0
_EXIT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Written:
    """Where a record was written; all in-sync replicas have it."""

    topic: str
    partition: int
    offset: int


class Delivery(Future[Written]):
    """The broker's answer to one record. If you do not read its error here, ``flush`` or ``close`` raises it."""

    def __init__(self) -> None:
        super().__init__()
        self.was_seen = False

    def result(self, timeout: float | None = None) -> Written:
        try:
            return super().result(timeout)
        finally:
            self.was_seen = self.done()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        try:
            return super().exception(timeout)
        finally:
            self.was_seen = self.done()


class Producer:
    """Writes each record once: idempotent, acknowledged by all in-sync replicas. Every error is raised.

    ``send`` passes a record to a background thread and returns at once; if the buffer is full, it waits for room. Use
    the producer as a context manager, or call ``close``, which raises an error if a record was not acknowledged. A
    producer that is still open when the process exits is flushed for up to 30 seconds. If records are then still not
    written, this is reported on standard error, and the process exits with code 1.

        with Producer("localhost:9092") as producer:
            producer.send("orders", {"id": 1}, key="customer-7")

    Args:
        brokers: Bootstrap servers.
        settings: Client settings by their Kafka names. Keys go to the same partitions as with Java's clients
            (``partitioner=murmur2_random``) unless you set another partitioner. Settings that could lose, duplicate or
            reorder records are refused.
    """

    def __init__(self, brokers: str, *, settings: Mapping[str, Any] | None = None) -> None:
        if not isinstance(brokers, str) or not brokers.strip():
            raise ConfigError(f"Producer({brokers!r}) names no brokers.", hint='Name some: Producer("localhost:9092").')
        self._brokers = brokers
        self._settings = client_settings(settings or {})
        self._producer = make_producer(brokers, settings=self._settings)
        self._lock = threading.Lock()
        self._failed: list[Delivery] = []
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._collect, name="penstock-producer", daemon=True)
        self._thread.start()
        self._process = os.getpid()
        _open.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None:
            self.close()
        else:  # the caller gets the error of the block, not errors of records
            self._end(None)

    def send(
        self,
        topic: str,
        value: Any,
        *,
        key: bytes | str | None = None,
        headers: Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]] = (),
        partition: int | None = None,
        timestamp: datetime | None = None,
        not_before: datetime | Duration | None = None,
        expires: datetime | Duration | None = None,
    ) -> Delivery:
        """Write one record. The returned future has its partition and offset, or its error.

        Args:
            topic: The topic.
            value: Bytes unchanged, text as UTF-8, None as a tombstone; other types are encoded like handlers' outputs.
            key: Decides the partition. Records of one partition stay in order.
            headers: A mapping, or pairs if a name occurs twice.
            partition: Use this partition instead of the key's.
            timestamp: By default the time of ``send``.
            not_before: Handlers with ``honor_times=True`` get the record at this time, or after this duration from now;
                the header ``penstock-not-before`` has the time.
            expires: From then on, handlers with ``honor_times=True`` do not get the record; in ``penstock-expires``.
        """
        if self._closing.is_set():
            raise StateError("This producer is closed.", hint="Send before close(), or make another Producer.")
        delivery = Delivery()
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        options: dict[str, Any] = {} if timestamp is None else {"timestamp": round(timestamp.timestamp() * 1000)}
        raw = None if value is None else encode(value)
        named: list[tuple[str, str | bytes | None]] = [(name, _to_bytes(text)) for name, text in pairs]
        if not_before is not None or expires is not None:
            named += time_headers(not_before, expires, now=time.time())
        while True:
            try:
                self._producer.produce(
                    topic,
                    raw,
                    _to_bytes(key),
                    -1 if partition is None else partition,
                    lambda error, message: self._settle(delivery, topic, error, message),
                    headers=named,
                    **options,
                )
            except BufferError:
                self._producer.poll(_ROOM_SECONDS)
            except KafkaException as error:
                raise self._translated(error, topic) from error
            else:
                return delivery

    def flush(self, timeout: float | None = None) -> None:
        """Wait until the broker has answered for every record; raise the first error that you have not read yet."""
        waiting = self._producer.flush(-1 if timeout is None else timeout)
        self._raise_failures()
        if waiting:
            raise self._translated(KafkaException(KafkaError(Code.LOCAL_TIMED_OUT)), f"({counted(waiting, 'record')})")

    def close(self, timeout: float | None = None) -> None:
        """Flush and close. A second call does nothing."""
        self._end(timeout)
        self._raise_failures()

    def _end(self, timeout: float | None) -> None:
        if self._closing.is_set():
            return
        self._closing.set()
        _open.discard(self)
        if self._producer.flush(-1 if timeout is None else timeout):
            # Drop the waiting records, so that none is written after its failure was reported.
            self._producer.purge()
            self._producer.flush(_CLOSE_SECONDS)
        self._thread.join(_CLOSE_SECONDS)

    def end_at_exit(self, seconds: float) -> tuple[int, str]:
        """Close at process exit; return how many records were not written, and why."""
        if self._process != os.getpid():
            return 0, ""  # a forked process has neither the client's threads nor its records
        self._end(seconds)
        with self._lock:
            unseen = [delivery for delivery in self._failed if not delivery.was_seen]
        return len(unseen), str(unseen[0].exception()) if unseen else ""

    def _collect(self) -> None:
        while not self._closing.is_set():
            self._producer.poll(_POLL_SECONDS)

    def _settle(self, delivery: Delivery, topic: str, error: KafkaError | None, message: Message) -> None:
        if error is None:
            delivery.set_result(Written(topic, message.partition() or 0, message.offset() or 0))
            return
        with self._lock:
            self._failed.append(delivery)
        delivery.set_exception(self._translated(KafkaException(error), topic))

    def _raise_failures(self) -> None:
        with self._lock:
            unseen = [delivery for delivery in self._failed if not delivery.was_seen]
            self._failed = []
        if unseen:
            error = unseen[0].exception()
            if isinstance(error, PenstockError) and len(unseen) > 1:
                others = counted(len(unseen) - 1, "more record")
                raise type(error)(f"{error.problem} So did {others}.", hint=error.hint) from error
            raise error or StateError("A record was not delivered.")

    def _translated(self, error: KafkaException, topic: str) -> PenstockError:
        return translate(error, doing=f"writing to topic {topic}", brokers=self._brokers, settings=self._settings)


_open: set[Producer] = set()


def _close_all() -> None:
    """At exit: nobody is left to raise an error to, so what is lost is reported."""
    deadline = time.monotonic() + _EXIT_SECONDS
    lost = [producer.end_at_exit(max(0.0, deadline - time.monotonic())) for producer in [*_open]]
    count = sum(number for number, _ in lost)
    if not count:
        return
    what = "1 record was" if count == 1 else f"{count:,} records were"
    reason = next(why for number, why in lost if number)
    sys.stderr.write(
        f"error: {what} not written to Kafka before the process ended: {reason}\n"
        "Close a Producer before the end: with Producer(...) as producer, or producer.close(), which raises errors.\n"
    )
    # The exit code was decided before, and only this changes it. What else is to be done at exit is to flush logs.
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


# When this module is imported, so that nearly all of what others do at exit comes before.
atexit.register(_close_all)


def _to_bytes(text: bytes | str | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text
