"""Exactly-once: what records led to, and the commit that says so, in one transaction after the other."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from queue import Empty, SimpleQueue
from typing import Any

from confluent_kafka import KafkaError

from penstock.core.failures.dead_letter import shortened
from penstock.core.failures.outcome import ProducerRecord
from penstock.core.scheduling.effects import Send
from penstock.engine.dispatch.thread_messages import (
    Approved,
    CommitAnswer,
    Commits,
    EngineError,
    Inbox,
    TransactionFailed,
)
from penstock.engine.produce.outbox import OWN_FAULT, refusal
from penstock.errors import PenstockError, ServerError
from penstock.kafka.client.transactions import Row, Transaction
from penstock.kafka.errors import is_final, kafka_error

_SAFE = "Nothing was lost: what was not committed will be handled again."
_IDLE_SECONDS = 0.1
_CLOSE_SECONDS = 15.0
# How many records may wait for the client; beyond that nothing more is handed to workers.
_MANY = 20_000
# What a batch, a record's header and its parts take at most on top of their bytes.
_BATCH_BYTES, _FIELD_BYTES = 120, 10
_BATCH_SIZE = 1_000_000  # the client's own
_SMALL = 500


@dataclass(frozen=True)
class _CommitPoint:
    """Here one transaction ends and the next begins; ``losses`` are those that the dispatcher knew of."""

    commits: Commits
    losses: int


@dataclass(frozen=True)
class _Trial:
    """This may be too large for its topic."""

    send: Send


class _Reset:
    """Nothing that came before this counts."""


class Transactor:
    """An outbox whose records count when their transaction does, together with the commit that calls them finished.

    One thread owns the producer. The dispatcher puts what is to be written and borders into one queue, so what stands
    before a border belongs to the transaction that the border's commits are of, and nothing else does. A transaction
    is committed as the member of this moment, which only the fetcher knows; so it waits at its border until the
    fetcher, between two polls, comes by with ``authorize``.

    When anything goes wrong nothing of this transaction counts, while the dispatcher takes its records for finished.
    So the member starts over from what is committed, and until it has, all that comes in here is dropped.
    """

    def __init__(
        self,
        make_transaction: Callable[[str, Mapping[str, Any]], Transaction],
        read_limits: Callable[[], Mapping[str, int]],
        inbox: Inbox,
        *,
        brokers: str,
    ) -> None:
        self._make_transaction = make_transaction
        self._read_limits = read_limits
        self._inbox = inbox
        self._brokers = brokers
        self._queue: SimpleQueue[Sequence[Send] | _CommitPoint | _Trial | _Reset] = SimpleQueue()
        self._granted: SimpleQueue[tuple[Any, int]] = SimpleQueue()
        self._queued = self._written = 0
        self._transaction: Transaction | None = None
        self._largest: Mapping[str, int] | None = None
        self._approved: set[int] = set()
        self._broken = False
        self._closing = threading.Event()
        self._wants_metadata = threading.Event()
        self._losses = 0
        self._begun = self._ended = 0
        self._thread = threading.Thread(target=self._run, name="transactor", daemon=True)

    def start(self) -> None:
        self._thread.start()

    # The dispatcher's side.

    @property
    def is_full(self) -> bool:
        return self._queued - self._written > _MANY

    def send(self, sends: Iterable[Send]) -> Sequence[Send]:
        """These count as soon as the next commit does.

        What may be too large is tried out first, and comes back with Approved, or refused: within a transaction it
        would fail all that is in it, again and again.
        """
        wanted = []
        for send in sends:
            if self._may_be_too_large(send):
                self._queue.put(_Trial(send))
            else:
                wanted.append(send)
        if wanted:
            self._queued += len(wanted)
            self._queue.put(wanted)
        return wanted

    def _may_be_too_large(self, send: Send) -> bool:
        if id(send) in self._approved:
            self._approved.discard(id(send))
            return False
        # Until the limits are known, by the smallest that anybody sets.
        limit = _SMALL if self._largest is None else self._largest.get(send.outgoing.topic, inf)
        return _size(send.outgoing) > limit

    def flush(self) -> None:
        """Nothing waits for the dispatcher's thread here."""

    def commit(self, commits: Commits, losses: int) -> None:
        """All that was sent up to now, and these, in one transaction; a CommitAnswer says what became of it."""
        self._begun += 1
        self._queue.put(_CommitPoint(commits, losses))

    def reset(self) -> None:
        """The dispatcher has let go of every epoch, so what comes from now on builds on what is committed."""
        self._queue.put(_Reset())

    def close(self) -> None:
        self._closing.set()
        self._thread.join(timeout=_CLOSE_SECONDS)

    # The fetcher's side.

    def authorize(self, member: Any) -> None:
        """``member`` says who it is: the consumer, or, where that is none, an open member."""
        if self._wants_metadata.is_set():
            self._wants_metadata.clear()
            self._granted.put((member.consumer_group_metadata(), self._losses))

    def lost(self) -> None:
        """Partitions of this member may be others' by now.

        What waits at a border must not be committed as the member that it is from now on: the broker would take it,
        though somebody else has done the same work.
        """
        self._losses += 1

    def abandon(self) -> None:
        """The consumer is of no more use, so what waits for it waits in vain."""
        self._granted.put((None, self._losses))

    @property
    def is_committing(self) -> bool:
        return self._begun != self._ended

    # The thread.

    def _run(self) -> None:
        while not self._closing.is_set() or not self._queue.empty():
            try:
                asked = self._queue.get(timeout=_IDLE_SECONDS)
            except Empty:
                continue
            try:
                self._carry_out(asked)
            except PenstockError as error:
                self._fail(error)
            except BaseException as error:  # noqa: BLE001 - gone unheard, nothing would ever be committed again
                self._broken = True
                problem = f"Writing transactions broke down: {type(error).__name__}: {error}."
                self._inbox.put(EngineError(ServerError(problem, hint=_SAFE), fatal=True))
        self._abort()

    def _carry_out(self, asked: Sequence[Send] | _CommitPoint | _Trial | _Reset) -> None:
        if isinstance(asked, _Reset):
            self._abort()
            self._approved.clear()
            self._broken = False
        elif isinstance(asked, _CommitPoint):
            self._end(asked)
        elif isinstance(asked, _Trial):
            self._try_out(asked.send)
        else:
            self._written += len(asked)
            if not self._broken:
                self._open().write(_row(send.outgoing) for send in asked)

    def _end(self, commit_point: _CommitPoint) -> None:
        reason = "the transaction it belongs to is lost"
        try:
            metadata = None if self._broken else self._await_metadata(commit_point)
            if metadata is not None:
                self._open().commit(commit_point.commits, group=metadata)
                reason = ""
        except PenstockError as error:
            reason = error.problem
            raise
        finally:
            self._ended += 1
            self._inbox.put(
                CommitAnswer(commit_point.commits, dict.fromkeys(commit_point.commits, reason) if reason else {})
            )

    def _await_metadata(self, commit_point: _CommitPoint) -> Any:
        """As whom to commit; None, and all is lost, where this member is not the one any more that did the work."""
        while not self._granted.empty():  # of a consumer that was replaced
            self._granted.get()
        self._wants_metadata.set()
        while not self._closing.is_set():
            with suppress(Empty):
                metadata, losses = self._granted.get(timeout=_IDLE_SECONDS)
                self._broken = metadata is None or losses != commit_point.losses
                return None if self._broken else metadata
        return None

    def _open(self) -> Transaction:
        if self._transaction is None:
            # A batch is refused as a whole, so none may be larger than what its topic takes.
            batch = {"batch.size": min([_BATCH_SIZE, *self._limits().values()])}
            self._transaction = self._make_transaction("", batch)
            self._transaction.fence()
        return self._transaction

    def _open_trial(self) -> Transaction:
        trial = self._make_transaction("trial", {})
        trial.fence()
        return trial

    def _limits(self) -> Mapping[str, int]:
        if self._largest is None:
            self._largest = self._read_limits()
        return self._largest

    def _abort(self) -> None:
        """By a new producer, where there is a next one: what is open under its name is over when it has begun."""
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            transaction.abort()

    def _fail(self, error: PenstockError) -> None:
        """Nothing of this transaction counts: the member is to start over from what is committed."""
        self._broken = True
        self._abort()
        cause = kafka_error(error.__cause__) if error.__cause__ is not None else None
        self._largest = None  # perhaps they have changed
        if cause is not None and is_final(cause) and cause.code() not in OWN_FAULT:
            self._inbox.put(EngineError(error, fatal=True))
        else:
            self._inbox.put(TransactionFailed(error))

    def _try_out(self, send: Send) -> None:
        """Whether the broker takes this, by itself or, where we added headers, with as few of them as will do."""
        if self._broken:
            return
        limits, trial = self._limits(), None
        shorter = [] if send.failure is None else [replace(send, outgoing=shortened(send.outgoing))]
        refused: KafkaError | None = None
        for form in (send, *shorter):
            error = None
            if _size(form.outgoing) > limits.get(form.outgoing.topic, inf):
                # Made only here: it costs a tenth of a second, while a transaction is open.
                trial = trial or self._open_trial()
                error = trial.try_out(_row(form.outgoing))
            if error is None:
                self._approved.add(id(form))
                self._inbox.put(Approved(form))
                return
            refused = refused or error
        if refused is not None:
            self._inbox.put(refusal(send, refused, brokers=self._brokers))


def _row(out: ProducerRecord) -> Row:
    return out.topic, out.key, out.value, list(out.headers)


def _size(out: ProducerRecord) -> int:
    """More than it takes in a batch of its own, without compression."""
    headers = sum(len(name.encode()) + len(value or b"") + _FIELD_BYTES for name, value in out.headers)
    return len(out.key or b"") + len(out.value or b"") + headers + _BATCH_BYTES
