"""One member's access to an offset store: claim partitions, save commit points, open transactions for handlers."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import Any

from penstock.app import Handler
from penstock.app.attempts.record_adapter import Begin, Opened, Remember
from penstock.app.offset_store import ClaimLost, Progress, RememberingStore, SavedProgress, TransactionalStore
from penstock.core.records.record import TopicPartition
from penstock.engine.dispatch.thread_messages import Commits
from penstock.errors import ConfigError, PenstockError
from penstock.stores import OffsetStore, SqlOffsets, open_store

_CLAIMED = "another member has claimed this partition"

TpOf = Callable[[Any], TopicPartition]


class StoreSession:
    """The fetcher thread claims and saves; worker threads open transactions. They share only the tokens.

    A save may wait for the locks of handlers' transactions, so ``start_saving`` saves on a separate thread.
    ``on_close`` closes a store that was opened for this session.
    """

    def __init__(self, store: OffsetStore, group: str, on_close: Callable[[], None] | None = None) -> None:
        self._store = store
        self._on_close = on_close
        self._group = group
        self._tokens: dict[TopicPartition, int] = {}
        # When the store first refused the token of a partition, by the monotonic clock; also written by workers.
        self._overtaken_at: dict[TopicPartition, float] = {}
        self._last_save: Future[dict[TopicPartition, str]] | None = None
        self._store_lock = threading.Lock()  # a member makes one call to the store at a time
        # Fails before anything starts if the store cannot be used.
        store.claim(group, [])

    def claim(self, tps: Sequence[TopicPartition]) -> Mapping[TopicPartition, SavedProgress]:
        with self._store_lock:
            kept = self._store.claim(self._group, tps)
        self._tokens.update({tp: each.token for tp, each in kept.items()})
        self._forget_overtaken(tps)
        return kept

    def take_overtaken(self, seconds: float) -> TopicPartition | None:
        """Return a partition that somebody else claimed so long ago, although this member has not lost it since.

        A member that was frozen may claim partitions that it has lost, before it learns of the loss. Each is returned
        once.
        """
        limit = time.monotonic() - seconds
        found = next((tp for tp, at in [*self._overtaken_at.items()] if at <= limit), None)
        if found is not None:
            self._overtaken_at.clear()
        return found

    def _note_overtaken(self, tp: TopicPartition, token: int) -> None:
        if self._tokens.get(tp) == token:
            self._overtaken_at.setdefault(tp, time.monotonic())

    def _forget_overtaken(self, tps: Iterable[TopicPartition]) -> None:
        for tp in tps:
            self._overtaken_at.pop(tp, None)

    def start_saving(self, commits: Commits) -> Future[dict[TopicPartition, str]]:
        """Save these in the background. The result has the reason for each partition that was not saved."""
        future: Future[dict[TopicPartition, str]] = Future()
        before, self._last_save = self._last_save, future
        # The tokens of now: the partition may be claimed again before the thread runs.
        tokens = {tp: self._tokens[tp] for tp in commits if tp in self._tokens}

        def save() -> None:
            if before is not None:
                wait([before])  # it must not overwrite this one
            try:
                future.set_result(self._save(commits, tokens))
            except BaseException as error:  # noqa: BLE001 - future.result() raises it
                future.set_exception(error)

        threading.Thread(target=save, name=f"{self._group}-saving", daemon=True).start()
        return future

    def _save(self, commits: Commits, tokens: Mapping[TopicPartition, int]) -> dict[TopicPartition, str]:
        progress = {tp: Progress(token, *commits[tp]) for tp, token in tokens.items()}
        refused = dict.fromkeys((tp for tp in commits if tp not in tokens), _CLAIMED)
        try:
            with self._store_lock:
                claimed = self._store.save(self._group, progress)
            refused |= dict.fromkeys(claimed, _CLAIMED)
            for tp in claimed:
                self._note_overtaken(tp, tokens[tp])
        except PenstockError as error:
            refused |= dict.fromkeys(tokens, error.problem)
        return refused

    def forget(self, tps: Iterable[TopicPartition]) -> None:
        tokens = {tp: self._tokens[tp] for tp in tps if tp in self._tokens}
        with self._store_lock:
            self._store.forget(self._group, tokens)

    def gone(self, tps: Iterable[TopicPartition]) -> None:
        tps = [*tps]
        for tp in tps:
            self._tokens.pop(tp, None)
        self._forget_overtaken(tps)

    def ping(self) -> None:
        """Raise an error if the store cannot be used now. Waits while the member uses the store."""
        with self._store_lock:
            if isinstance(self._store, SqlOffsets):
                self._store.ping()
            else:
                self._store.claim(self._group, [])

    def close(self) -> None:
        if self._on_close is not None:
            self._on_close()

    def rememberer(self) -> Remember:
        """Return the function that remembers the id of a record in the transaction of its handler."""
        if not isinstance(self._store, RememberingStore):
            raise ConfigError(
                f"dedupe= with tx needs a store that remembers ids, and {type(self._store).__name__} does not.",
                hint='Use offsets="postgresql://..." or "sqlite:///...".',
            )
        return partial(self._store.remember, group=self._group)

    def transactions(self, tp_of: TpOf, offset_of: Callable[[Any], int]) -> Begin | None:
        """Return the function that begins an attempt's transaction; None if the store has no transactions."""
        store = self._store
        if not isinstance(store, TransactionalStore):
            return None

        @contextmanager
        def begin() -> Iterator[Opened]:
            with store.transaction(self._group) as opened:

                def finish(records: Sequence[Any]) -> None:
                    for tp, same in groupby(sorted(records, key=tp_of), key=tp_of):
                        token = self._tokens.get(tp)
                        if token is None:
                            raise ClaimLost(tp)
                        try:
                            opened.finish(tp, token, [offset_of(record) for record in same])
                        except ClaimLost:
                            self._note_overtaken(tp, token)
                            raise

                yield opened.tx, finish

        return begin


def open_store_session(handler: Handler) -> StoreSession | None:
    if handler.offsets is None:
        return None
    store = open_store(handler.offsets, connections=handler.largest_concurrency)
    # The user closes a store that the user has made.
    on_close = store.close if isinstance(handler.offsets, str) and isinstance(store, SqlOffsets) else None
    return StoreSession(store, handler.group, on_close)
