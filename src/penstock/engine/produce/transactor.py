"""Exactly-once: writes outputs and the commits of their consumed records in one transaction after the other."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import Any

from confluent_kafka import KafkaError

from penstock.core.failures.outcome import ProducerRecord
from penstock.core.scheduling.effects import Send, by_record
from penstock.engine.dispatch.thread_messages import (
    Approved,
    CommitAnswer,
    Commits,
    EngineError,
    Inbox,
    TransactionFailed,
    Undeliverable,
)
from penstock.engine.produce.outbox import refusal
from penstock.errors import PenstockError, ServerError, TopicError
from penstock.kafka.client.output_topics import OutputTopicFacts
from penstock.kafka.client.transactions import Transaction, row_of
from penstock.kafka.error_codes import BAD_RECORD
from penstock.kafka.errors import is_final, kafka_error

_SAFE = "No record is lost: Penstock handles uncommitted records again."
_IDLE_SECONDS = 0.1
_CLOSE_SECONDS = 15.0
# If more records than this are queued for the client, the dispatcher hands no more work out.
_MAX_QUEUED = 20_000
_BATCH_SIZE = 1_000_000  # the client's default of batch.size


@dataclass(frozen=True)
class _CommitPoint:
    """The end of one transaction; ``losses`` is how many Lost messages the dispatcher had taken."""

    commits: Commits
    losses: int


@dataclass(frozen=True)
class _Trial:
    """What a consumed record produces, if the broker may refuse a part of it."""

    sends: Sequence[Send]


class _Reset:
    """Drop everything that was queued before this."""


class Transactor:
    """An outbox that produces records and commits their consumed records in the same transaction.

    One thread owns the producer. The dispatcher puts records and commit points into one queue, so a transaction
    contains exactly the records before its commit point. It must be committed with the current group metadata
    (generation and member id), which only the fetcher can read; so the thread waits at each commit point until the
    fetcher, between two polls, calls ``authorize``.

    If anything fails, the transaction is aborted, but the dispatcher has already marked its records as finished. So
    the member starts over from its commits, and until then everything that is queued here is dropped.
    """

    def __init__(
        self,
        make_transaction: Callable[[str, Mapping[str, Any]], Transaction],
        facts: OutputTopicFacts,
        inbox: Inbox,
        *,
        brokers: str,
    ) -> None:
        self._make_transaction = make_transaction
        self._facts = facts
        self._inbox = inbox
        self._brokers = brokers
        self._queue: SimpleQueue[Sequence[Send] | _CommitPoint | _Trial | _Reset] = SimpleQueue()
        self._authorizations: SimpleQueue[tuple[Any, int]] = SimpleQueue()
        self._queued = self._written = 0
        self._transaction: Transaction | None = None
        self._approved: set[Send] = set()
        self._has_failed = False
        self._closing = threading.Event()
        self._wants_metadata = threading.Event()
        self._losses = 0
        self._begun = self._ended = 0
        self._thread = threading.Thread(target=self._run, name="transactor", daemon=True)

    def start(self) -> None:
        self._thread.start()

    # Called by the dispatcher.

    @property
    def is_full(self) -> bool:
        return self._queued - self._written > _MAX_QUEUED

    def send(self, sends: Iterable[Send]) -> Sequence[Send]:
        """Queue these for the transaction of the next commit; returns those that were queued.

        What the broker may refuse is tried first, in a transaction that is aborted, and answered with Approved or
        Refused: in the real transaction it would fail all other records, again and again. All outputs of a record wait
        for that answer, so that they are in the same transaction.
        """
        wanted: list[Send] = []
        for together in by_record(sends):
            if self._may_be_refused(together):
                self._queue.put(_Trial(together))
            else:
                wanted += together
        if wanted:
            self._queued += len(wanted)
            self._queue.put(wanted)
        return wanted

    def _may_be_refused(self, together: Sequence[Send]) -> bool:
        if together[0] in self._approved:
            self._approved.discard(together[0])
            return False
        return any(self._facts.may_refuse(send.outgoing) for send in together)

    def flush(self) -> None:
        """Nothing to do: records never wait for the dispatcher's thread here."""

    def commit(self, commits: Commits, losses: int) -> None:
        """Commit everything that was sent up to now, with these commits; a CommitAnswer follows."""
        self._begun += 1
        self._queue.put(_CommitPoint(commits, losses))

    def reset(self) -> None:
        """The dispatcher has ended every epoch, so what it sends from now on starts at the commits."""
        self._queue.put(_Reset())

    def close(self) -> None:
        self._closing.set()
        self._thread.join(timeout=_CLOSE_SECONDS)

    # Called by the fetcher.

    def authorize(self, member: Any) -> None:
        """Pass on the group metadata of ``member``: the consumer, or the self-managed member if there is one."""
        if self._wants_metadata.is_set():
            self._wants_metadata.clear()
            self._authorizations.put((member.consumer_group_metadata(), self._losses))

    def lost(self) -> None:
        """This member has lost partitions, which other members may own by now.

        A commit point from before the loss must not be committed with the metadata from after it: the broker would
        accept it, although another member has handled the same records.
        """
        self._losses += 1

    def abandon(self) -> None:
        """The consumer is unusable, so no group metadata will come: end the wait for it."""
        self._authorizations.put((None, self._losses))

    @property
    def is_committing(self) -> bool:
        return self._begun != self._ended

    # On the transactor's own thread.

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
            except BaseException as error:  # noqa: BLE001 - unreported, nothing would ever be committed again
                self._has_failed = True
                problem = f"Writing transactions failed because of {type(error).__name__}: {error}."
                self._inbox.put(EngineError(ServerError(problem, hint=_SAFE), fatal=True))
        self._abort()

    def _carry_out(self, asked: Sequence[Send] | _CommitPoint | _Trial | _Reset) -> None:
        if isinstance(asked, _Reset):
            self._abort()
            self._approved.clear()
            self._has_failed = False
        elif isinstance(asked, _CommitPoint):
            self._end(asked)
        elif isinstance(asked, _Trial):
            self._try_out(asked.sends)
        else:
            self._written += len(asked)
            if not self._has_failed:
                self._open().write(row_of(send.outgoing) for send in asked)

    def _end(self, commit_point: _CommitPoint) -> None:
        reason = "the transaction it belongs to is lost"
        try:
            metadata = None if self._has_failed else self._await_metadata(commit_point)
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
        """Wait for the group metadata to commit with; None if this member has lost partitions since."""
        while not self._authorizations.empty():  # left over from a consumer that was replaced
            self._authorizations.get()
        self._wants_metadata.set()
        while not self._closing.is_set():
            with suppress(Empty):
                metadata, losses = self._authorizations.get(timeout=_IDLE_SECONDS)
                self._has_failed = metadata is None or losses != commit_point.losses
                return None if self._has_failed else metadata
        return None

    def _open(self) -> Transaction:
        if self._transaction is None:
            # The broker refuses a batch as a whole, so no batch may be larger than the smallest limit of a topic.
            batch = {"batch.size": min([_BATCH_SIZE, *self._facts.limits().values()])}
            self._transaction = self._make_transaction("", batch)
            self._transaction.fence()
        return self._transaction

    def _open_trial(self) -> Transaction:
        trial = self._make_transaction("trial", {})
        trial.fence()
        return trial

    def _abort(self) -> None:
        """Abort the open transaction. The next producer with the same transactional id would fence it, too."""
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            transaction.abort()

    def _fail(self, error: PenstockError) -> None:
        """The transaction is lost: abort it, and ask the member to start over from its commits."""
        self._has_failed = True
        self._abort()
        cause = kafka_error(error.__cause__) if error.__cause__ is not None else None
        self._facts.forget()  # read them again, as they may have changed
        if cause is not None and is_final(cause) and cause.code() not in BAD_RECORD:
            self._inbox.put(EngineError(error, fatal=True))
        else:
            self._inbox.put(TransactionFailed(error))

    def _try_out(self, together: Sequence[Send]) -> None:
        """Find out whether the broker takes all that a record produces; what has a failure, with shortened headers."""
        if self._has_failed:
            return
        trials: list[Transaction] = []
        accepted = []

        def try_out(out: ProducerRecord) -> KafkaError | None:
            # Created only if needed: it takes a tenth of a second, while a transaction is open.
            if not trials:
                trials.append(self._open_trial())
            return trials[0].try_out(row_of(out))

        for send in together:
            try:
                form = self._facts.accepted_form(send, try_out)
            except TopicError as missing:
                self._inbox.put(Undeliverable(send, missing))
                return
            if isinstance(form, KafkaError):
                self._inbox.put(refusal(send, form, brokers=self._brokers))
                return
            accepted.append(send if form is send.outgoing else replace(send, outgoing=form))
        self._approved.add(accepted[0])
        self._inbox.put(Approved(accepted))
