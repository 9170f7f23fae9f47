"""Transactions: records and offsets are committed together or not at all, and only by the newest producer of an id."""

import hashlib
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.core.failures.outcome import ProducerRecord
from penstock.core.records.record import TopicPartition
from penstock.errors import ServerError
from penstock.kafka.client.clients import make_consumer, make_producer
from penstock.kafka.error_codes import CAUSE_UNKNOWN, FENCED, Code
from penstock.kafka.errors import translate

Row = tuple[str, bytes | None, bytes | None, list[Any] | None, int, int]
"""A record to write: topic, key, value, headers as pairs, partition and timestamp, as in ``ProducerRecord``."""

_TIMEOUT = "transaction.timeout.ms"
_DEFAULTS: dict[str, Any] = {
    # The broker's default of transaction.max.timeout.ms.
    _TIMEOUT: 900_000,
    # The client's default is a gigabyte, and a machine may run many transactions at once.
    "queue.buffering.max.kbytes": 65_536,
    # A consumed record may be larger than the client's default, so only the broker's limit applies.
    "message.max.bytes": 1_000_000_000,
}
_INIT_SECONDS = 60.0
_ABORT_SECONDS = 10.0
# Longer than the restart of a broker. The client may have missed the answer, and would wait for the whole transaction
# timeout; a new producer learns the result.
_OFFSETS_SECONDS = 20.0
# How much longer than its timeout a call of the client may take.
_GRACE_SECONDS = 10.0
_ROOM_SECONDS = 0.01

Commit = tuple[int, str]
"""An offset and its metadata."""

# The most that a batch, and each field of a record, take in addition to their bytes.
BATCH_BYTES, _FIELD_BYTES = 120, 10

_NOT_ASCII = re.compile(r"[^!-~]")
_MAX_NAME_LENGTH = 200
_TAG_LENGTH = 16


def transactional_id(group: str, *parts: str | int) -> str:
    """Return a unique id for the group and parts: topic names have no colon, and a changed group name gets a tag."""
    plain = _NOT_ASCII.sub("_", group)[:_MAX_NAME_LENGTH]
    tag = "" if plain == group else f"~{hashlib.sha256(group.encode(errors='replace')).hexdigest()[:_TAG_LENGTH]}"
    return ":".join((plain + tag, *map(str, parts)))


def group_metadata(brokers: str, group: str, *, settings: Mapping[str, Any]) -> Any:
    """Return the group metadata of a client that is not a member, for transactions."""
    consumer = make_consumer(brokers, group, settings=settings)
    try:
        return consumer.consumer_group_metadata()
    finally:
        consumer.close()


def row_of(out: ProducerRecord) -> Row:
    return out.topic, out.key, out.value, list(out.headers) or None, out.partition, out.timestamp_ms


def size_of(out: ProducerRecord) -> int:
    """Return an upper bound for its size in a batch of its own, without compression."""
    headers = sum(len(name.encode()) + len(value or b"") + _FIELD_BYTES for name, value in out.headers)
    return len(out.key or b"") + len(out.value or b"") + headers + BATCH_BYTES


class Transaction:
    """The transactions of one producer, one after the other; the end of ``with`` aborts one that was not committed.

    After ``fence``, all earlier producers of this transactional id have committed or aborted. A transaction begins with
    the first record, as late as possible, because brokers abort a transaction that takes too long.
    """

    def __init__(self, brokers: str, name: str, *, group: Any, settings: Mapping[str, Any]) -> None:
        self._brokers = brokers
        self._name = name
        self._group = group
        self._settings = {**_DEFAULTS, **settings}
        self._producer = make_producer(brokers, settings=self._settings, transactional_id=name, proven=False)
        self._began: float | None = None
        self._is_lost = False  # a call of the client did not return, so the client cannot be used

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()

    def abort(self) -> None:
        """Abort the open transaction, if there is one."""
        if self._began is not None and not self._is_lost:
            # If this fails, the next producer of the same id aborts the transaction.
            with _Catching():
                self._call(self._producer.abort_transaction, _ABORT_SECONDS)
        self._began = None

    def close(self) -> None:
        """End the client and its threads now; nothing may be called afterwards. An open transaction is not aborted."""
        del self._producer

    def fence(self) -> None:
        with _Catching() as caught:
            self._call(self._producer.init_transactions, _INIT_SECONDS)
        self._check(caught, "starting")

    def write(self, rows: Iterable[Row]) -> None:
        """Queue the records in the client. ``commit`` raises if the broker refuses one."""
        with _Catching() as caught:
            self._begin()
            produce = self._producer.produce
            # Inlined, because this runs for every output and each call costs.
            for topic, key, value, headers, partition, timestamp_ms in rows:
                try:
                    if headers or timestamp_ms:
                        produce(topic, value, key, partition, timestamp=timestamp_ms, headers=headers)
                    else:
                        produce(topic, value, key, partition)
                except BufferError:
                    self._write_later(topic, value, key, partition, timestamp=timestamp_ms, headers=headers)
            self._producer.poll(0)
        self._check(caught, "writing in")

    def write_small(self, outputs: Iterable[ProducerRecord]) -> None:
        """Queue records that have no header, partition and timestamp: as ``write``, without making rows."""
        with _Catching() as caught:
            self._begin()
            produce = self._producer.produce
            for out in outputs:
                try:
                    produce(out.topic, out.value, out.key)
                except BufferError:
                    self._write_later(out.topic, out.value, out.key)
            self._producer.poll(0)
        self._check(caught, "writing in")

    def write_values(self, topic: str, keys: Iterable[bytes | None], values: Iterable[bytes]) -> None:
        """The same for records of one topic, given as keys and values."""
        with _Catching() as caught:
            self._begin()
            produce = self._producer.produce
            for key, value in zip(keys, values, strict=True):
                try:
                    produce(topic, value, key)
                except BufferError:
                    self._write_later(topic, value, key)
            self._producer.poll(0)
        self._check(caught, "writing in")

    def _write_later(self, *values: Any, **more: Any) -> None:
        """Queue a record as soon as the client has room for it."""
        while True:
            self._producer.poll(_ROOM_SECONDS)
            with suppress(BufferError):
                self._producer.produce(*values, **more)
                return

    def try_out(self, row: Row) -> KafkaError | None:
        """Return why the broker refuses this record, or None.

        The transaction is aborted, so no reader sees the record.
        """
        topic, key, value, headers, partition, timestamp_ms = row
        refused: list[KafkaError | None] = []
        with self, _Catching() as caught:
            self._begin()
            self._producer.produce(
                topic,
                value,
                key,
                partition,
                timestamp=timestamp_ms,
                headers=headers,
                on_delivery=lambda error, _message: refused.append(error),
            )
            self._producer.flush(self._seconds_left)
        return next(filter(None, refused), caught.error)

    def commit(self, offsets: Mapping[TopicPartition, int | Commit], *, group: Any = None) -> None:
        """Commit all written records and these offsets of the group; ``group`` is its newest metadata."""
        self._group = self._group if group is None else group
        with _Catching() as caught:
            self._begin()
            self._send_offsets(offsets)
            self._finish()
        self._check(caught, "committing")
        self._began = None

    def _begin(self) -> None:
        if self._began is None:
            self._producer.begin_transaction()
            self._began = time.monotonic()

    def _send_offsets(self, offsets: Mapping[TopicPartition, int | Commit]) -> None:
        wanted = [
            KafkaTopicPartition(*tp, at) if isinstance(at, int) else KafkaTopicPartition(*tp, *at)
            for tp, at in offsets.items()
        ]
        send, seconds = self._producer.send_offsets_to_transaction, min(_OFFSETS_SECONDS, self._seconds_left)
        self._call(lambda bound: send(wanted, self._group, bound), seconds)

    def _finish(self) -> None:
        self._call(self._producer.commit_transaction, self._seconds_left)

    def _call(self, call: Callable[[float], None], seconds: float) -> None:
        """Call the client on a separate thread, and abandon the call if it does not return after its timeout.

        The client waits without a limit for its own thread, which may have lost the request when the broker died: waits
        of minutes were seen. The next producer of this id fences the abandoned one.
        """
        answers: SimpleQueue[KafkaError | BaseException | None] = SimpleQueue()
        threading.Thread(target=_answer, args=(call, seconds, answers), name=self._name, daemon=True).start()
        try:
            answer = answers.get(timeout=seconds + _GRACE_SECONDS)
        except Empty:
            self._is_lost = True
            answer = KafkaError(Code.LOCAL_TIMED_OUT, "the client's call did not return")
        if isinstance(answer, KafkaError):
            raise KafkaException(answer)
        if answer is not None:
            raise answer

    def _check(self, caught: "_Catching", doing: str) -> None:
        if caught.error is None:
            return
        doing, cause = f"{doing} transaction {self._name}", self._cause(caught.error)
        if cause.code() in FENCED and self._is_overdue:
            raise ServerError(
                f"The broker ended a transaction that took longer than {_TIMEOUT}={self._timeout_ms}, while {doing}.",
                hint="The transaction was aborted. Make batches smaller with max_in_flight=, or raise that setting, at "
                "most to the broker's transaction.max.timeout.ms.",
            )
        error = KafkaException(cause)
        raise translate(error, doing=doing, brokers=self._brokers, settings=self._settings) from error

    def _cause(self, error: KafkaError) -> KafkaError:
        """Return the real cause: after a failure, any call but a write raises the error that aborted it."""
        if error.code() not in CAUSE_UNKNOWN or self._group is None or self._is_lost:
            return error
        with _Catching() as caught:
            self._send_offsets({("-", 0): 0})
        return caught.error or error

    @property
    def _timeout_ms(self) -> int:
        return int(self._settings[_TIMEOUT])

    @property
    def _is_overdue(self) -> bool:
        return self._began is not None and (time.monotonic() - self._began) * 1000 >= self._timeout_ms

    @property
    def _seconds_left(self) -> float:
        spent = 0.0 if self._began is None else time.monotonic() - self._began
        return max(_ABORT_SECONDS, self._timeout_ms / 1000 - spent)


def _answer(
    call: Callable[[float], None], seconds: float, answers: "SimpleQueue[KafkaError | BaseException | None]"
) -> None:
    caught = _Catching()
    try:
        with caught:
            call(seconds)
    except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
        answers.put(error)
    else:
        answers.put(caught.error)


class _Catching:
    """Catches errors of the client and keeps them in ``error``.

    The client raises a fatal error as a KafkaError, which is not an exception: no ``except`` can catch it, and it must
    not become the context of another exception. So it is kept here and handled after the block.
    """

    def __init__(self) -> None:
        self.error: KafkaError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> bool:
        if isinstance(error, KafkaException):
            error = error.args[0]
        if isinstance(error, KafkaError):
            self.error = error
        return self.error is not None
