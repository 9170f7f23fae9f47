"""Commits that waited too long to be true."""

from pathlib import Path
from queue import SimpleQueue
from shutil import rmtree
from typing import Any

from confluent_kafka import TopicPartition

from penstock.engine.committing import Committer
from penstock.engine.keeper import Keeper
from penstock.engine.messages import Commit, CommitAnswer, Inbox
from penstock.stores import FileOffsets

A, B = ("orders", 0), ("orders", 1)


class Client:
    """Notes what it is asked to commit."""

    def __init__(self) -> None:
        self.asked: list[dict[tuple[str, int], int]] = []

    def commit(self, *, offsets: list[Any], asynchronous: bool) -> None:
        assert asynchronous
        self.asked.append({(each.topic, each.partition): each.offset for each in offsets})


def test_a_commit_that_waited_while_its_partition_was_given_back_is_not_sent() -> None:
    inbox: Inbox = SimpleQueue()
    committer, client = Committer(inbox), Client()
    committer.assigned([A, B])
    both = Commit({A: (3, ""), B: (5, "")}, assignments=1)
    committer.commit(client, both)
    committer.gone([A])
    committer.commit(client, both)
    assert client.asked == [{A: 3, B: 5}, {B: 5}]
    committer.gone([B])
    committer.commit(client, both)
    assert client.asked[2:] == []
    assert inbox.get_nowait() == CommitAnswer({}, {}), "there is an answer to it all the same"


def test_nor_is_one_whose_partition_is_ours_again() -> None:
    committer, client = Committer(SimpleQueue()), Client()
    committer.assigned([A])
    committer.gone([A])
    committer.assigned([A])
    committer.commit(client, Commit({A: (3, "")}, assignments=1))
    assert client.asked == []
    committer.commit(client, Commit({A: (10, "")}, assignments=2))
    assert client.asked == [{A: 10}]


def test_what_another_has_claimed_in_the_store_does_not_reach_kafka(tmp_path: Path) -> None:
    inbox: Inbox = SimpleQueue()
    store = FileOffsets(tmp_path / "progress.json")
    keeper = Keeper(store, "shop")
    committer, client = Committer(inbox, keeper=keeper), Client()
    keeper.claim([A, B])
    committer.assigned([A, B])
    store.claim("shop", [A])
    committer.commit(client, Commit({A: (3, "a"), B: (5, "b")}, assignments=1))
    assert client.asked == [{B: 5}]
    committer.on_commit(None, [TopicPartition(*B, 5, "b")])
    answer = inbox.get_nowait()
    assert isinstance(answer, CommitAnswer)
    assert (answer.commits, list(answer.refused)) == ({A: (3, "a"), B: (5, "b")}, [A])
    kept = store.claim("shop", [A, B])
    assert (kept[A].offset, kept[B].offset, kept[B].note) == (None, 5, "b")


def test_a_store_that_fails_refuses_the_commit_and_kafka_waits_for_it(tmp_path: Path) -> None:
    inbox: Inbox = SimpleQueue()
    keeper = Keeper(FileOffsets(tmp_path / "deep" / "progress.json"), "shop")
    committer, client = Committer(inbox, keeper=keeper), Client()
    keeper.claim([A])
    committer.assigned([A])
    rmtree(tmp_path / "deep")
    (tmp_path / "deep").write_text("in the way")
    committer.commit(client, Commit({A: (3, "")}, assignments=1))
    answer = inbox.get_nowait()
    assert isinstance(answer, CommitAnswer)
    assert "cannot be kept" in answer.refused[A]
    assert client.asked == []
