"""Commits that waited too long to be true."""

from queue import SimpleQueue
from typing import Any

from penstock.engine.committing import Committer
from penstock.engine.messages import Commit, CommitAnswer, Inbox

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
