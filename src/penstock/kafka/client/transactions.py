"""Transactions: records and offsets that count together or not at all, and only those of the newest producer."""

import hashlib
import re
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from queue import Empty, SimpleQueue
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.core.records.record import TopicPartition
from penstock.errors import ServerError, SetupError
from penstock.kafka.client.clients import make_consumer, make_producer
from penstock.kafka.error_codes import CAUSE_UNKNOWN, FENCED, Code
from penstock.kafka.errors import translate

Row = tuple[str, bytes | None, bytes | None, list[Any] | None]
"""What is written: topic, key, value, and headers as pairs."""

_TIMEOUT = "transaction.timeout.ms"
_DEFAULTS: dict[str, Any] = {
    # As long as a broker allows by its default transaction.max.timeout.ms.
    _TIMEOUT: 900_000,
    # The client's own bound is a gigabyte, and a machine may run many transactions at once.
    "queue.buffering.max.kbytes": 65_536,
    # What came from a broker may be larger than what the client sends by its own default, so the broker decides.
    "message.max.bytes": 1_000_000_000,
}
_INIT_SECONDS = 60.0
_ABORT_SECONDS = 10.0
# A broker that restarts has answered by then. The client may have missed the answer, and would wait for the whole time
# that a transaction may take; a new producer finds out.
_OFFSETS_SECONDS = 20.0
# How much longer than it was told to a call of the client may take.
_GRACE_SECONDS = 10.0
_ROOM_SECONDS = 0.01
_METADATA_FORM = b"CGMDv2:"
_GENERATION_BYTES = 4
_NO_GENERATION = -1

Commit = tuple[int, str]
"""An offset and its metadata."""

_ODD_LETTERS = re.compile(r"[^!-~]")
_MAX_NAME_LENGTH = 200
_TAG_LENGTH = 16


def transactional_id(group: str, *parts: str | int) -> str:
    """A name that no other group or parts have: names of topics hold no colon, and a group that is cut has a tag."""
    plain = _ODD_LETTERS.sub("_", group)[:_MAX_NAME_LENGTH]
    tag = "" if plain == group else f"~{hashlib.sha256(group.encode(errors='replace')).hexdigest()[:_TAG_LENGTH]}"
    return ":".join((plain + tag, *map(str, parts)))


def group_metadata(brokers: str, group: str, *, settings: Mapping[str, Any]) -> Any:
    """The group as transactions take it, from one who is no member of it."""
    consumer = make_consumer(brokers, group, settings=settings)
    try:
        return consumer.consumer_group_metadata()
    finally:
        consumer.close()


def metadata_of_member(own: bytes, group: str, member_id: str, generation: int, *, static_id: str | None) -> bytes:
    """What the client would write of itself, if it were this member.

    Transactions take it in this form, which is the client's own affair. So ``own``, what the client has just written of
    itself as one who is no member, has to be what would have been written here.
    """
    if own != _metadata(group, "", _NO_GENERATION, None):
        raise SetupError(
            "The installed confluent-kafka writes down members of a group in a form that Penstock does not know.",
            hint='Use assignor="cooperative-sticky", "range" or "roundrobin" with delivery="exactly-once", or the '
            "version of confluent-kafka that Penstock was tested with.",
        )
    if not member_id or generation == _NO_GENERATION:
        # The broker would take it: from one who is no member, it takes everything.
        raise KafkaException(KafkaError(Code.UNKNOWN_MEMBER_ID))
    return _metadata(group, member_id, generation, static_id)


def _metadata(group: str, member_id: str, generation: int, static_id: str | None) -> bytes:
    names = f"{group}\0{member_id}\0" + ("\1" if static_id is None else f"\0{static_id}\0")
    return _METADATA_FORM + struct.pack("=i", generation) + names.encode()


def generation_in(metadata: bytes | None) -> int | None:
    """The generation in what the client writes of itself; None of one who is no member, or in a form not known here."""
    if metadata is None or not metadata.startswith(_METADATA_FORM):
        return None
    (generation,) = struct.unpack_from("=i", metadata, len(_METADATA_FORM))
    return None if generation == _NO_GENERATION else int(generation)


def member_in(metadata: bytes | None, group: str) -> tuple[str, int, str | None] | None:
    """Member id, generation and static id in what the client writes of itself.

    None of one who is no member, or in a form not known here: written again, it has to be the same.
    """
    generation = generation_in(metadata)
    if metadata is None or generation is None:
        return None
    names = metadata[len(_METADATA_FORM) + _GENERATION_BYTES :].decode(errors="replace").split("\0")
    _, member_id, *rest = [*names, ""]
    static_id = rest[1] if rest[:1] == [""] and len(rest) > 1 else None
    known = bool(member_id) and _metadata(group, member_id, generation, static_id) == metadata
    return (member_id, generation, static_id) if known else None


class Transaction:
    """Transactions of one producer, one after the other; ``with`` aborts one that was not committed.

    After ``fence`` all others of this name are over: committed as a whole, or gone. One begins with the first record
    that is written, as late as it can, because brokers end one that takes too long.
    """

    def __init__(self, brokers: str, name: str, *, group: Any, settings: Mapping[str, Any]) -> None:
        self._brokers = brokers
        self._name = name
        self._group = group
        self._settings = {**_DEFAULTS, **settings}
        self._producer = make_producer(brokers, settings=self._settings, transactional_id=name)
        self._began: float | None = None
        self._is_lost = False  # the client did not come back from a call, and takes no other one

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()

    def abort(self) -> None:
        """What was not committed never will be."""
        if self._began is not None and not self._is_lost:
            # Where that fails, the next of the same name does it.
            with _Catching():
                self._call(self._producer.abort_transaction, _ABORT_SECONDS)
        self._began = None

    def fence(self) -> None:
        with _Catching() as caught:
            self._call(self._producer.init_transactions, _INIT_SECONDS)
        self._check(caught, "starting")

    def write(self, rows: Iterable[Row]) -> None:
        """Returns when the client has them; whether the broker takes them is known when they are committed."""
        with _Catching() as caught:
            self._begin()
            produce = self._producer.produce
            # Written out: this runs for every output, and each call inside of it is felt.
            for topic, key, value, headers in rows:
                while True:
                    try:
                        produce(topic, value, key, headers=headers)
                        break
                    except BufferError:
                        pass
                    self._producer.poll(_ROOM_SECONDS)
            self._producer.poll(0)
        self._check(caught, "writing in")

    def try_out(self, row: Row) -> KafkaError | None:
        """Why the broker does not take this, if it does not; nobody gets to see it."""
        topic, key, value, headers = row
        refused: list[KafkaError | None] = []
        with self, _Catching() as caught:
            self._begin()
            self._producer.produce(
                topic, value, key, headers=headers, on_delivery=lambda error, _message: refused.append(error)
            )
            self._producer.flush(self._seconds_left)
        return next(filter(None, refused), caught.error)

    def commit(self, offsets: Mapping[TopicPartition, int | Commit], *, group: Any = None) -> None:
        """All that was written, and these offsets of the group, at once; ``group`` has its newest metadata."""
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
        """A call of the client, which is given up where it does not come back in time, whatever it was told.

        The client waits without a bound for a thread of its own, and that may have lost the request when the broker
        went away: it was seen to wait for minutes. What is left behind so is fenced by the next producer of this name.
        """
        answers: SimpleQueue[KafkaError | BaseException | None] = SimpleQueue()
        threading.Thread(target=_answer, args=(call, seconds, answers), name=self._name, daemon=True).start()
        try:
            answer = answers.get(timeout=seconds + _GRACE_SECONDS)
        except Empty:
            self._is_lost = True
            answer = KafkaError(Code.LOCAL_TIMED_OUT, "the client did not come back")
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
                hint="Nothing of it counts. Make batches smaller with max_in_flight=, or raise that setting, up to the "
                "broker's transaction.max.timeout.ms.",
            )
        error = KafkaException(cause)
        raise translate(error, doing=doing, brokers=self._brokers, settings=self._settings) from error

    def _cause(self, error: KafkaError) -> KafkaError:
        """A lost transaction says by what it was lost whatever it is asked, unless it is asked to write."""
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
    except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
        answers.put(error)
    else:
        answers.put(caught.error)


class _Catching:
    """Keeps what the client raises inside.

    A fatal error it raises as a KafkaError, which is no exception: no ``except`` names it, and another exception that
    is raised while this one is handled would take it for one. So it is kept here, and dealt with after the block.
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
