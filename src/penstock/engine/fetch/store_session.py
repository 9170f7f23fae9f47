"""Progress that is kept outside of Kafka: claimed, saved and given to transactions for one member."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import groupby
from typing import Any

from penstock.app import Handler
from penstock.app.offset_store import ClaimLost, Kept, Progress, TransactionalStore
from penstock.app.record_adapter import Begin, Opened
from penstock.core.records.record import TopicPartition
from penstock.engine.dispatch.thread_messages import Commits
from penstock.errors import PenstockError
from penstock.stores import OffsetStore, SqlOffsets, open_store

_CLAIMED = "another member has claimed this partition"

TpOf = Callable[[Any], TopicPartition]


class StoreSession:
    """The fetcher claims and saves; workers ask for transactions. Only the tokens are shared between them.

    A save may have to wait until handlers' transactions let the database go, so ``start_saving`` makes it on a thread
    of its own. ``on_close`` ends what was opened for it.
    """

    def __init__(self, store: OffsetStore, group: str, on_close: Callable[[], None] | None = None) -> None:
        self._store = store
        self._on_close = on_close
        self._group = group
        self._tokens: dict[TopicPartition, int] = {}
        self._calling = threading.Lock()  # a store gets one call of a member at a time
        # Whether it can be used at all is known before anything starts.
        store.claim(group, [])

    def claim(self, tps: Sequence[TopicPartition]) -> Mapping[TopicPartition, Kept]:
        with self._calling:
            kept = self._store.claim(self._group, tps)
        self._tokens.update({tp: each.token for tp, each in kept.items()})
        return kept

    def start_saving(self, commits: Commits) -> Future[dict[TopicPartition, str]]:
        """Keep these, in the background; the result is why not, for those that were not."""
        future: Future[dict[TopicPartition, str]] = Future()
        # What is claimed now decides, not what is claimed when its turn comes.
        tokens = {tp: self._tokens[tp] for tp in commits if tp in self._tokens}

        def save() -> None:
            try:
                future.set_result(self._save(commits, tokens))
            except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
                future.set_exception(error)

        threading.Thread(target=save, name=f"{self._group}-saving", daemon=True).start()
        return future

    def _save(self, commits: Commits, ours: Mapping[TopicPartition, int]) -> dict[TopicPartition, str]:
        progress = {tp: Progress(token, *commits[tp]) for tp, token in ours.items()}
        refused = dict.fromkeys((tp for tp in commits if tp not in ours), _CLAIMED)
        try:
            with self._calling:
                refused |= dict.fromkeys(self._store.save(self._group, progress), _CLAIMED)
        except PenstockError as error:
            refused |= dict.fromkeys(ours, error.problem)
        return refused

    def forget(self, tps: Iterable[TopicPartition]) -> None:
        tokens = {tp: self._tokens[tp] for tp in tps if tp in self._tokens}
        with self._calling:
            self._store.forget(self._group, tokens)

    def gone(self, tps: Iterable[TopicPartition]) -> None:
        for tp in tps:
            self._tokens.pop(tp, None)

    def close(self) -> None:
        if self._on_close is not None:
            self._on_close()

    def transactions(self, tp_of: TpOf, offset_of: Callable[[Any], int]) -> Begin | None:
        """How an attempt begins a transaction, where the store has any."""
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
                        opened.finish(tp, token, [offset_of(record) for record in same])

                yield opened.tx, finish

        return begin


def open_store_session(handler: Handler) -> StoreSession | None:
    if handler.offsets is None:
        return None
    store = open_store(handler.offsets, connections=handler.concurrency)
    # One that the user made is the user's to close.
    on_close = store.close if isinstance(handler.offsets, str) and isinstance(store, SqlOffsets) else None
    return StoreSession(store, handler.group, on_close)
