"""Two connections of one member, of which one at a time commits."""

import threading
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from penstock import App
from penstock.engine.fetch.commit_connection import CommitConnection, open_commit_connection
from penstock.kafka.client.librdkafka_internals import _write
from penstock.kafka.group.coordinator import Identity

A = ("orders", 0)
Answer = dict[tuple[str, int], int] | KafkaException
BROKEN = KafkaException(KafkaError(KafkaError._TRANSPORT))


class Client:
    """The Kafka client, which records its commits."""

    def __init__(self) -> None:
        self.generation = 7
        self.commits: list[tuple[int, bool]] = []

    def consumer_group_metadata(self) -> bytes:
        return _write("shop", "member-1", self.generation, None)

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition] | None:
        self.commits.append((offsets[0].offset, asynchronous))
        return None if asynchronous else offsets


class Connection:
    """The network and its connection. Asynchronous commits are answered when the test says so."""

    def __init__(self) -> None:
        self.commits: list[tuple[int, Identity]] = []
        self.next_answer: Answer = {}
        self._waiting: SimpleQueue[Callable[[Answer], None]] = SimpleQueue()

    def connect(self, _group: str) -> "Connection":
        return self

    def commit_later(
        self, identity: Identity, commits: Mapping[Any, tuple[int, str]], on_answer: Callable[[Answer], None]
    ) -> None:
        self.commits.append((commits[A][0], identity))
        self._waiting.put(on_answer)

    def commit(self, identity: Identity, commits: Mapping[Any, tuple[int, str]]) -> dict[tuple[str, int], int]:
        self.commits.append((commits[A][0], identity))
        if isinstance(self.next_answer, KafkaException):
            raise self.next_answer
        return self.next_answer

    def answer(self, answer: Answer) -> None:
        self._waiting.get(timeout=60)(answer)

    @property
    def offsets(self) -> list[int]:
        return [offset for offset, _ in self.commits]


class HandlerMember:
    """A member with both, and the answers that its dispatcher gets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.client, self.connection = Client(), Connection()
        self.answers: list[tuple[int, list[str]]] = []
        self.commits = CommitConnection(
            self.client,
            "shop",
            self.connection,
            identity=Identity,
            answered=lambda commits, refused: self.answers.append((commits[A][0], [*refused.values()])),
            clock=lambda: self.now,
        )

    def commit(self, offset: int, *, wait: bool = False) -> None:
        self.commits.commit(offsets=[TopicPartition(*A, offset)], asynchronous=not wait)


def test_commits_use_the_second_connection_with_the_client_s_membership() -> None:
    member = HandlerMember()
    member.commit(3)
    member.connection.answer({})
    member.client.generation = 8
    member.commit(4, wait=True)
    assert member.connection.commits == [
        (3, Identity("shop", "member-1", 7, None)),
        (4, Identity("shop", "member-1", 8, None)),
    ]
    assert member.client.commits == []
    assert member.answers == [(3, [])]


def test_a_refusal_is_an_answer_and_the_connection_stays_in_use() -> None:
    member = HandlerMember()
    member.commit(3)
    member.connection.answer({A: KafkaError.REBALANCE_IN_PROGRESS})
    ((offset, (reason,)),) = member.answers
    assert (offset, "the group is rebalancing" in reason) == (3, True)
    member.connection.next_answer = {A: KafkaError.ILLEGAL_GENERATION}
    with pytest.raises(KafkaException) as caught:
        member.commit(4, wait=True)
    assert caught.value.args[0].code() == KafkaError.ILLEGAL_GENERATION
    assert member.connection.offsets == [3, 4]


def test_the_last_commit_of_a_revoke_is_sent_when_the_one_under_way_is_answered() -> None:
    member = HandlerMember()
    member.commit(3)
    last = threading.Thread(target=member.commit, args=(5,), kwargs={"wait": True})
    last.start()
    assert member.connection.offsets == [3]
    member.connection.answer({})
    last.join(60)
    assert member.connection.offsets == [3, 5]


@pytest.mark.parametrize("failure", [BROKEN, {A: KafkaError.NOT_COORDINATOR}], ids=["connection", "coordinator moved"])
def test_after_a_failure_the_client_commits_until_it_owes_no_answer(failure: Answer) -> None:
    member = HandlerMember()
    member.commit(3)
    member.connection.answer(failure)
    assert [offset for offset, reasons in member.answers if reasons] == [3]
    member.commit(4)
    member.now = 1_000
    member.commit(5)  # the client may still have to send the one before
    member.commits.client_answered()
    member.commit(6)
    assert member.client.commits == [(4, True), (5, True), (6, True)]
    member.commits.client_answered()
    member.commits.client_answered()
    member.commit(7)
    assert member.connection.offsets == [3, 7]


@pytest.mark.parametrize("failure", [BROKEN, {A: KafkaError.NOT_COORDINATOR}], ids=["connection", "coordinator moved"])
def test_a_last_commit_that_fails_is_made_by_the_client(failure: Answer) -> None:
    member = HandlerMember()
    member.connection.next_answer = failure
    member.commit(3, wait=True)
    assert member.client.commits == [(3, False)]


def test_a_client_that_is_no_member_or_says_so_in_another_form_commits_itself() -> None:
    member = HandlerMember()
    member.client.generation = -1
    member.commit(3)
    assert (member.connection.offsets, member.client.commits) == ([], [(3, True)])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"commit": "record", "protocol": "consumer"},
        {"commit": "record", "assignor": "range"},
        {"commit": "record", "assignor": "sticky"},
        {"commit": "record", "settings": {"security.protocol": "sasl_ssl", "sasl.mechanism": "GSSAPI"}},
        {"commit": "record", "offsets": "sqlite:///progress.db"},
    ],
    ids=["by time", "new protocol", "eager", "self-managed", "another login", "offsets in a database"],
)
def test_members_that_do_not_commit_each_record_have_no_commit_connection(options: dict[str, Any]) -> None:
    app = App("shop")
    app.consume("orders", **options)(lambda _: None)
    assert open_commit_connection(app.handlers[0], Client(), "127.0.0.1:1", answered=lambda *_: None) is None
