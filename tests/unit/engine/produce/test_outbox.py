"""The outbox with producers in memory: when a record counts as produced, and what follows a refusal."""

from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock.core.failures.dead_letter_headers import DEAD_LETTER_PREFIX
from penstock.core.failures.outcome import Failed, ProducerRecord
from penstock.core.progress.tracker import Tracker
from penstock.core.scheduling.effects import Attempt, Send
from penstock.core.scheduling.lanes import Epoch
from penstock.engine.dispatch.thread_messages import Delivered, Inbox, OutputRefused, Undeliverable
from penstock.engine.produce.outbox import Outbox

WAIT_SECONDS = 60.0
TOO_LARGE = KafkaError.MSG_SIZE_TOO_LARGE
DENIED = KafkaError.TOPIC_AUTHORIZATION_FAILED
FAILURE = Failed("ValueError", "broken", final=True)


class Producer:
    """Answers each record when it is polled: with the error of ``answer_of``, or "ok"; "later" holds it back.

    "unproven" is a report without an offset.
    """

    def __init__(self, answer_of: Callable[[dict[str, Any]], KafkaError | str]) -> None:
        self.answer_of = answer_of
        self.produced: list[dict[str, Any]] = []
        self.unanswered: deque[tuple[dict[str, Any], Callable[..., None]]] = deque()
        self.room = 1_000
        self.fatal: KafkaError | None = None

    def produce(self, topic: str, *, on_delivery: Callable[..., None], **record: Any) -> None:
        if not self.room:
            raise BufferError
        self.room -= 1
        self.produced.append({"topic": topic, **record})
        self.unanswered.append((self.produced[-1], on_delivery))

    def __len__(self) -> int:
        return len(self.unanswered) + (self.fatal is not None)

    def poll(self, _seconds: float) -> None:
        for _ in range(len(self.unanswered)):
            record, on_delivery = self.unanswered.popleft()
            answer = self.answer_of(record)
            if isinstance(answer, KafkaError):  # asked first: to compare one with a text raises
                on_delivery(answer, None)
            elif answer == "later":
                self.unanswered.append((record, on_delivery))
            else:
                on_delivery(None, SimpleNamespace(offset=lambda answer=answer: None if answer == "unproven" else 7))
        if self.fatal is not None:
            fatal, self.fatal = self.fatal, None
            raise KafkaException(fatal)


class Bench:
    """An outbox whose thread is not started: the test collects, as the thread would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Thread, "start", lambda _thread: None)
        self.inbox: Inbox = SimpleQueue()
        self.batched = Producer(lambda _record: "ok")
        self.alone = Producer(lambda _record: "ok")
        self.made_alone = 0
        self.outbox = Outbox(cast("Any", self.batched), self.inbox, make_alone=self._make_alone, brokers="nowhere:1")

    def _make_alone(self) -> Any:
        self.made_alone += 1
        return self.alone

    def collect(self) -> list[Any]:
        """One round of the outbox's thread; returns the messages to the dispatcher."""
        rounds = iter([False, True])
        self.outbox._closing.is_set = lambda: next(rounds)  # type: ignore[method-assign]
        self.outbox._collect()
        messages = []
        while True:
            try:
                messages.append(self.inbox.get_nowait())
            except Empty:
                return messages


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def send_of(offset: int, *, failure: Failed | None = None, delay: float | None = None) -> Send:
    epoch = Epoch(("orders", 0), 1, Tracker(0), None)
    headers = (
        ((f"{DEAD_LETTER_PREFIX}topic", b"orders"), (f"{DEAD_LETTER_PREFIX}traceback", b"x" * 100)) if failure else ()
    )
    out = ProducerRecord("out", b"k", b"%d" % offset, headers)
    return Send(Attempt(epoch, None, offset, 1), out, failure, delay)


def test_a_record_is_delivered_only_when_the_broker_has_acknowledged_it(bench: Bench) -> None:
    bench.batched.answer_of = lambda _record: "later"
    send = send_of(0)
    assert bench.outbox.send([send]) == (), "the next commit must not count it as finished"
    assert [record["value"] for record in bench.batched.produced] == [b"0"]
    assert bench.collect() == []
    bench.batched.answer_of = lambda _record: "ok"
    assert bench.collect() == [Delivered([send])]
    assert bench.collect() == [], "and only once"


def test_each_record_of_a_refused_batch_is_sent_again_alone(bench: Bench) -> None:
    bench.batched.answer_of = lambda _record: KafkaError(TOO_LARGE)
    bench.alone.answer_of = lambda record: KafkaError(TOO_LARGE) if record["value"] == b"1" else "ok"
    sends = [send_of(0), send_of(1), send_of(2)]
    bench.outbox.send(sends)
    refused, delivered = bench.collect()
    assert [record["value"] for record in bench.alone.produced] == [b"0", b"1", b"2"]
    assert bench.made_alone == 1
    assert delivered == Delivered([sends[0], sends[2]])
    assert isinstance(refused, OutputRefused)
    assert refused.send is sends[1]
    assert refused.failure.final
    assert refused.failure.error_type == "OutputRefused"


def test_a_record_whose_report_proves_nothing_is_sent_again_until_one_does(bench: Bench) -> None:
    reports = iter(["unproven", "ok"])
    bench.batched.answer_of = lambda record: "unproven" if record["value"] == b"0" else "ok"
    bench.alone.answer_of = lambda _record: next(reports)
    sends = [send_of(0), send_of(1)]
    bench.outbox.send(sends)
    assert bench.collect() == [Delivered([sends[1]])]
    assert bench.collect() == [Delivered([sends[0]])]
    assert [record["value"] for record in bench.alone.produced] == [b"0", b"0"]


def test_a_record_that_is_not_refused_needs_no_second_client(bench: Bench) -> None:
    bench.outbox.send([send_of(0)])
    bench.collect()
    assert bench.made_alone == 0


def test_a_dead_letter_is_sent_once_more_with_short_headers(bench: Bench) -> None:
    bench.batched.answer_of = lambda _record: KafkaError(TOO_LARGE)
    bench.alone.answer_of = lambda record: KafkaError(TOO_LARGE) if len(record["headers"]) > 1 else "ok"
    letter = send_of(0, failure=FAILURE)
    bench.outbox.send([letter])
    assert bench.collect() == []
    assert bench.collect() == [Delivered([letter])]
    assert [len(record["headers"]) for record in bench.alone.produced] == [2, 1]


@pytest.mark.parametrize(
    ("failure", "delay", "kind"),
    [(None, None, OutputRefused), (FAILURE, 60.0, OutputRefused), (FAILURE, None, Undeliverable)],
    ids=["an output fails its record", "a retry record fails its record", "a dead letter stops the member"],
)
def test_a_record_that_the_broker_refuses_in_every_form_is_answered_according_to_its_kind(
    bench: Bench, failure: Failed | None, delay: float | None, kind: type
) -> None:
    bench.batched.answer_of = bench.alone.answer_of = lambda _record: KafkaError(TOO_LARGE)
    bench.outbox.send([send_of(7, failure=failure, delay=delay)])
    (answer,) = [*bench.collect(), *bench.collect()]
    assert isinstance(answer, kind)
    if isinstance(answer, OutputRefused) and failure is not None:
        assert answer.failure.error_type == "ValueError", "the reason stays what failed first"
        assert "topic out refused its retry record" in answer.failure.message


def test_a_problem_of_the_cluster_stops_the_member_without_a_second_try(bench: Bench) -> None:
    bench.batched.answer_of = lambda _record: KafkaError(DENIED)
    bench.outbox.send([send_of(7)])
    (answer,) = bench.collect()
    assert isinstance(answer, Undeliverable)
    assert "writing the result of orders[0]@7 to topic out" in answer.error.problem
    assert bench.alone.produced == []


def test_a_purged_record_is_reported_with_the_fatal_error_that_follows_it(bench: Bench) -> None:
    bench.batched.answer_of = lambda _record: KafkaError(KafkaError._PURGE_QUEUE)
    bench.batched.fatal = KafkaError(DENIED)
    bench.outbox.send([send_of(0)])
    (answer,) = bench.collect()
    assert isinstance(answer, Undeliverable)
    cause = answer.error.__cause__
    assert "authoriz" in f"{answer.error.problem} {cause}".lower()


def test_records_wait_in_order_while_the_client_s_buffer_is_full(bench: Bench) -> None:
    bench.batched.room = 1
    bench.outbox.send([send_of(0), send_of(1), send_of(2)])
    was_full = bench.outbox.is_full
    bench.outbox.flush()
    assert len(bench.batched.produced) == 1
    bench.batched.room = 10
    bench.outbox.flush()
    assert (was_full, bench.outbox.is_full) == (True, False)
    assert [record["value"] for record in bench.batched.produced] == [b"0", b"1", b"2"]


def test_the_thread_collects_until_it_is_closed() -> None:
    inbox: Inbox = SimpleQueue()
    producer = Producer(lambda _record: "ok")
    outbox = Outbox(cast("Any", producer), inbox, make_alone=cast("Any", None), brokers="nowhere:1")
    send = send_of(0)
    outbox.send([send])
    assert inbox.get(timeout=WAIT_SECONDS) == Delivered([send])
    outbox.close()
    assert not outbox._thread.is_alive()
