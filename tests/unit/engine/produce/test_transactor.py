"""Which records are first written in a trial transaction, to see whether the broker accepts them."""

from collections.abc import Iterable, Mapping
from queue import SimpleQueue
from typing import Any, Self, cast

import pytest
from confluent_kafka import KafkaError

from penstock.core.failures.outcome import ProducerRecord
from penstock.core.progress.tracker import Tracker
from penstock.core.scheduling.effects import Attempt, Send, sends_of
from penstock.core.scheduling.lanes import Epoch
from penstock.engine.dispatch.thread_messages import Approved, Inbox, OutputRefused, Undeliverable
from penstock.engine.produce.transactor import Transactor
from penstock.errors import TopicError
from penstock.kafka.client.output_topics import OutputTopicFacts
from penstock.kafka.client.transactions import Row, Transaction
from penstock.kafka.error_codes import Code

WAIT_SECONDS = 120.0


class Bench:
    """A transactor, and what it does: which records it tries out, and which it writes."""

    def __init__(self, *topics: str, refuses: bytes = b"never") -> None:
        self.made: list[str] = []
        self.tried: list[str] = []
        self.written: list[list[str]] = []
        self.refuses = refuses
        self.inbox: Inbox = SimpleQueue()
        self.partitions = {"letters": 3, "audit": 3}
        facts = OutputTopicFacts(
            topics,
            read_limits=lambda wanted: dict.fromkeys(wanted, 10000),
            count_partitions=self.count_partitions,
        )
        self.transactor = Transactor(self.make, facts, self.inbox, brokers="nowhere:1")

    def count_partitions(self, topics: Iterable[str]) -> dict[str, int]:
        for topic in topics:
            if topic not in self.partitions:
                raise TopicError(f"Topic {topic!r} does not exist.")
        return self.partitions

    def make(self, purpose: str, _settings: Mapping[str, Any]) -> Transaction:
        self.made.append(purpose)
        return cast("Transaction", Producer(self))

    def take(self) -> Any:
        return self.inbox.get(timeout=WAIT_SECONDS)

    def __enter__(self) -> Self:
        self.transactor.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.transactor.close()


class Producer:
    """Takes everything but what the bench refuses."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def fence(self) -> None:
        pass

    def abort(self) -> None:
        pass

    def write(self, rows: Iterable[Row]) -> None:
        self.bench.written.append([row[0] for row in rows])

    def try_out(self, row: Row) -> KafkaError | None:
        self.bench.tried.append(row[0])
        return KafkaError(Code.MSG_SIZE_TOO_LARGE) if row[2] == self.bench.refuses else None


def sends(*outputs: ProducerRecord) -> list[Send]:
    epoch = Epoch(("orders", 0), 1, Tracker(), None)
    return sends_of(Attempt(epoch, None, 7, 1), outputs)


LARGE = b"x" * 20_000
SMALL = b"x"


@pytest.mark.parametrize(("value", "trials"), [(b"x" * 2_000, []), (LARGE, ["letters"])])
def test_only_what_may_be_too_large_for_its_topic_is_tried_out(value: bytes, trials: list[str]) -> None:
    """A trial needs a producer of its own, which takes longer to make than a transaction may wait for a hundred."""
    with Bench("letters") as bench:
        # Longer than what is surely short enough, and the limits of topics are not known yet.
        wanted = sends(ProducerRecord("letters", None, value))
        assert bench.transactor.send(wanted) == []
        assert bench.take() == Approved(wanted)
    assert bench.tried == trials
    assert bench.made == ["trial"] * len(trials)


def test_all_outputs_of_a_record_wait_until_the_broker_is_known_to_take_each() -> None:
    with Bench("letters", "audit") as bench:
        alone = sends(ProducerRecord("letters", None, SMALL))
        together = sends(
            ProducerRecord("letters", None, SMALL),
            ProducerRecord("audit", None, LARGE),
            ProducerRecord("letters", None, SMALL),
        )
        assert bench.transactor.send([*alone, *together]) == alone
        assert bench.take() == Approved(together)
        assert bench.transactor.send(together) == together
    assert bench.tried == ["audit"]
    assert bench.written == [["letters"], ["letters", "audit", "letters"]], "together, so in one transaction"


def test_if_one_output_is_refused_nothing_of_its_record_is_written() -> None:
    with Bench("letters", "audit", refuses=LARGE) as bench:
        together = sends(ProducerRecord("letters", None, SMALL), ProducerRecord("audit", None, LARGE))
        assert bench.transactor.send(together) == []
        answer = bench.take()
    assert isinstance(answer, OutputRefused)
    assert answer.send is together[1]
    assert bench.written == []


def test_a_topic_that_only_an_out_names_is_looked_up_once() -> None:
    with Bench("letters") as bench:
        wanted = sends(ProducerRecord("audit", None, SMALL))
        assert bench.transactor.send(wanted) == []
        assert bench.take() == Approved(wanted)
        others = sends(ProducerRecord("audit", None, SMALL))
        assert bench.transactor.send(others) == others
    assert bench.tried == []


def test_a_topic_that_is_missing_stops_the_member() -> None:
    with Bench("letters") as bench:
        bench.transactor.send(sends(ProducerRecord("receipts", None, SMALL)))
        answer = bench.take()
    assert isinstance(answer, Undeliverable)
    assert str(answer.error) == "Topic 'receipts' does not exist."


def test_a_partition_that_a_topic_does_not_have_fails_the_record() -> None:
    with Bench("letters") as bench:
        good = sends(ProducerRecord("letters", None, SMALL, partition=2))
        bench.transactor.send(good)
        assert bench.take() == Approved(good)
        bench.transactor.send(sends(ProducerRecord("letters", None, SMALL, partition=3)))
        answer = bench.take()
        assert isinstance(answer, OutputRefused)
        assert "it has 3 partitions, and no partition 3" in answer.failure.message
        bench.partitions["letters"] = 4
        added = sends(ProducerRecord("letters", None, SMALL, partition=3))
        bench.transactor.send(added)
        assert bench.take() == Approved(added)


def test_an_approval_that_nobody_takes_is_not_taken_for_that_of_another_record() -> None:
    """Its partition was revoked meanwhile, so the dispatcher drops the record."""
    with Bench("letters") as bench:
        bench.transactor.send(sends(ProducerRecord("letters", None, LARGE)))
        approved = id(bench.take().sends[0])
        others = [sends(ProducerRecord("letters", None, LARGE)) for _ in range(1_000)]
        assert approved not in {id(each[0]) for each in others}, "a new object could have the address of a dropped one"
        assert bench.transactor.send(others[0]) == [], "it is tried out first"
