"""Commits that are outdated when they are sent."""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from shutil import rmtree
from typing import Any

import pytest
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.core.records.record import TopicPartition
from penstock.engine.dispatch.thread_messages import Commit, CommitAnswer, Inbox
from penstock.engine.fetch.commit_sender import CommitSender
from penstock.engine.fetch.store_session import StoreSession
from penstock.stores import FileOffsets, Progress, SavedProgress

A, B = ("orders", 0), ("orders", 1)


class Client:
    """Records its commits."""

    def __init__(self) -> None:
        self.asked: list[dict[tuple[str, int], int]] = []

    def commit(self, *, offsets: list[Any], asynchronous: bool) -> Any:
        assert asynchronous
        self.asked.append({(each.topic, each.partition): each.offset for each in offsets})


def attend_when_saved(commit_sender: CommitSender, client: Client) -> None:
    assert commit_sender._saving is not None
    commit_sender._saving.refused.exception(timeout=120)
    commit_sender.attend(client)


class BusyStore:
    """Saves only while the database is not locked."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.saved: list[int] = []

    def claim(self, _group: str, tps: Sequence[TopicPartition]) -> dict[TopicPartition, SavedProgress]:
        return {tp: SavedProgress(1) for tp in tps}

    def save(self, _group: str, progress: Mapping[TopicPartition, Progress]) -> list[TopicPartition]:
        assert self.free.wait(120)
        self.saved += [each.offset for each in progress.values()]
        return []

    def forget(self, _group: str, tps: Mapping[TopicPartition, int]) -> None: ...


class Saving:
    """A commit sender with a busy store, and a client that waits for the last commits."""

    def __init__(self) -> None:
        self.store, self.inbox, self.client = BusyStore(), Inbox(), LastClient()
        session = StoreSession(self.store, "shop")
        session.claim([A, B])
        self.commit_sender = CommitSender(self.inbox, store_session=session)
        self.commit_sender.assigned([A, B])
        self.commit_sender.commit(self.client, Commit({A: (3, ""), B: (5, "")}, assignments=1))


class LastClient(Client):
    def commit(self, *, offsets: list[Any], asynchronous: bool) -> Any:  # noqa: ARG002
        super().commit(offsets=offsets, asynchronous=True)
        return offsets


def test_polls_continue_while_handlers_keep_the_database_from_a_save() -> None:
    saving = Saving()
    saving.commit_sender.attend(saving.client)
    assert saving.client.asked == [], "Kafka follows the store"
    saving.store.free.set()
    attend_when_saved(saving.commit_sender, saving.client)
    assert (saving.store.saved, saving.client.asked) == ([3, 5], [{A: 3, B: 5}])


def test_a_partition_that_is_revoked_during_its_save_is_not_committed_to_kafka() -> None:
    saving = Saving()
    saving.commit_sender.gone([A])
    saving.store.free.set()
    attend_when_saved(saving.commit_sender, saving.client)
    assert saving.client.asked == [{B: 5}]


def test_a_last_commit_is_saved_after_the_one_under_way() -> None:
    saving = Saving()
    threading.Timer(0.01, saving.store.free.set).start()
    saving.commit_sender.commit_last(saving.client, {A: (4, "")})
    assert saving.store.saved == [3, 5, 4]
    assert saving.client.asked == [{A: 3, B: 5}, {A: 4}]
    assert saving.inbox.get_nowait() == CommitAnswer({A: (4, "")}, {}, is_last=True)
    assert saving.inbox.empty()
    saving.commit_sender.on_commit(None, [KafkaTopicPartition(*A, 3, ""), KafkaTopicPartition(*B, 5, "")])
    assert saving.inbox.get_nowait() == CommitAnswer({A: (3, ""), B: (5, "")}, {}), "the answer to what was asked"


def test_saves_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a thread, and the thread of the second one may be the first to run."""
    targets: list[Callable[[], None]] = []

    class Thread:
        def __init__(self, *, target: Callable[[], None], **_: Any) -> None:
            self.start = lambda: targets.append(target)

    store = BusyStore()
    store.free.set()
    session = StoreSession(store, "shop")
    session.claim([A])
    with monkeypatch.context() as patched:
        patched.setattr(threading, "Thread", Thread)
        saves = [session.start_saving({A: (offset, "")}) for offset in (1, 2)]
    second = threading.Thread(target=targets[1])
    second.start()
    second.join(0.05)  # long enough to save, if it does not wait
    targets[0]()
    for each in saves:
        assert each.result(timeout=120) == {}
    assert store.saved == [1, 2]


def test_a_commit_whose_consumer_broke_during_its_save_is_refused() -> None:
    saving = Saving()
    saving.commit_sender.abandon("it broke")
    saving.store.free.set()
    saving.commit_sender.attend(saving.client)
    assert saving.client.asked == []
    answer = saving.inbox.get_nowait()
    assert isinstance(answer, CommitAnswer)
    assert answer.refused == {A: "it broke", B: "it broke"}


def test_a_commit_that_waited_while_its_partition_was_revoked_is_not_sent() -> None:
    inbox: Inbox = SimpleQueue()
    commit_sender, client = CommitSender(inbox), Client()
    commit_sender.assigned([A, B])
    both = Commit({A: (3, ""), B: (5, "")}, assignments=1)
    commit_sender.commit(client, both)
    commit_sender.gone([A])
    commit_sender.commit(client, both)
    assert client.asked == [{A: 3, B: 5}, {B: 5}]
    commit_sender.gone([B])
    commit_sender.commit(client, both)
    assert client.asked[2:] == []
    assert inbox.get_nowait() == CommitAnswer({}, {}), "it is answered nevertheless"


def test_a_commit_whose_partition_was_revoked_and_assigned_again_is_not_sent() -> None:
    commit_sender, client = CommitSender(SimpleQueue()), Client()
    commit_sender.assigned([A])
    commit_sender.gone([A])
    commit_sender.assigned([A])
    commit_sender.commit(client, Commit({A: (3, "")}, assignments=1))
    assert client.asked == []
    commit_sender.commit(client, Commit({A: (10, "")}, assignments=2))
    assert client.asked == [{A: 10}]


def test_a_partition_that_another_member_claimed_in_the_store_is_not_committed_to_kafka(tmp_path: Path) -> None:
    inbox: Inbox = SimpleQueue()
    store = FileOffsets(tmp_path / "progress.json")
    session = StoreSession(store, "shop")
    commit_sender, client = CommitSender(inbox, store_session=session), Client()
    session.claim([A, B])
    commit_sender.assigned([A, B])
    store.claim("shop", [A])
    commit_sender.commit(client, Commit({A: (3, "a"), B: (5, "b")}, assignments=1))
    attend_when_saved(commit_sender, client)
    assert client.asked == [{B: 5}]
    commit_sender.on_commit(None, [KafkaTopicPartition(*B, 5, "b")])
    answer = inbox.get_nowait()
    assert isinstance(answer, CommitAnswer)
    assert (answer.commits, list(answer.refused)) == ({A: (3, "a"), B: (5, "b")}, [A])
    kept = store.claim("shop", [A, B])
    assert (kept[A].offset, kept[B].offset, kept[B].metadata) == (None, 5, "b")


def test_a_store_that_fails_refuses_the_commit_and_kafka_waits_for_it(tmp_path: Path) -> None:
    inbox: Inbox = SimpleQueue()
    session = StoreSession(FileOffsets(tmp_path / "deep" / "progress.json"), "shop")
    commit_sender, client = CommitSender(inbox, store_session=session), Client()
    session.claim([A])
    commit_sender.assigned([A])
    rmtree(tmp_path / "deep")
    (tmp_path / "deep").write_text("in the way")
    commit_sender.commit(client, Commit({A: (3, "")}, assignments=1))
    attend_when_saved(commit_sender, client)
    answer = inbox.get_nowait()
    assert isinstance(answer, CommitAnswer)
    assert "cannot be saved" in answer.refused[A]
    assert client.asked == []
