"""A member of a consumer group: the threads that consume for one handler."""

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import count
from queue import Empty, SimpleQueue

from confluent_kafka import Producer

from penstock.app import Handler
from penstock.core.events import Event
from penstock.core.lease import Lease
from penstock.core.record import TopicPartition
from penstock.engine.acking import acking
from penstock.engine.dispatcher import Dispatcher
from penstock.engine.fetcher import Fetcher
from penstock.engine.health import Health
from penstock.engine.messages import AckedBelow, Inbox, Owned, Renew, Stop, Survey
from penstock.engine.outbox import Outbox
from penstock.engine.positions import FirstTimes
from penstock.engine.reporter import Reporter
from penstock.engine.siblings import Siblings
from penstock.engine.workers import make_workers
from penstock.kafka import MESSAGES, make_producer

_JOIN_SECONDS = 10.0
# How long to wait for an answer before looking whether anybody is there to give one.
_SURVEY_SECONDS = 0.2
_NUMBERS = count(1)
_SESSION_TIMEOUT_MS = 45_000  # Kafka's own default
_MAX_MESSAGE_BYTES = 1_000_000_000  # as much as the client allows


def _session_seconds(handler: Handler) -> float:
    return float(handler.settings.get("session.timeout.ms", _SESSION_TIMEOUT_MS)) / 1000


@dataclass(frozen=True)
class Crew:
    """What the members of one handler in one process share."""

    siblings: Siblings = field(default_factory=Siblings)
    first_times: FirstTimes = field(default_factory=FirstTimes)


class Member:
    """Start it, ask it to stop (twice is fine), join it; then ``error`` says whether it stopped because of one."""

    def __init__(
        self,
        handler: Handler,
        *,
        brokers: str,
        emit: Callable[[Event], None],
        per_record: bool,
        until: Mapping[TopicPartition, int] | None,
        crew: Crew | None = None,
        number: int = 0,
    ) -> None:
        crew = crew or Crew()
        self.handler = self._handler = handler
        self._inbox: Inbox = SimpleQueue()
        self._reading = acking(MESSAGES, self._inbox) if handler.commit == "manual" else MESSAGES
        self._name = f"{socket.gethostname()}-{os.getpid()}-{next(_NUMBERS)}"
        self._reporter = Reporter(handler, emit, member=self._name, reading=self._reading, per_record=per_record)
        self._lease = Lease(_session_seconds(handler))
        self._dispatcher = Dispatcher(
            handler,
            self._inbox,
            self._reporter,
            reading=self._reading,
            lease=self._lease,
            until=until,
            siblings=crew.siblings,
        )
        self._fetcher = Fetcher(
            handler,
            self._inbox,
            brokers=brokers,
            in_flight_room=self._dispatcher.in_flight_room,
            lease=self._lease,
            first_times=crew.first_times,
            number=number,
        )
        self._producer = make_producer(brokers, settings=handler.settings)
        self._brokers = brokers
        self._thread = threading.Thread(target=self._run, name=f"{handler.name}-dispatcher", daemon=True)
        self._crash: BaseException | None = None

    def start(self, lag: int, topics: tuple[str, ...]) -> None:
        self._reporter.started(lag, topics)
        self._thread.start()

    def stop(self, reason: str) -> None:
        self._inbox.put(Stop(reason))

    def survey(self) -> dict[TopicPartition, Owned]:
        """What it owns, and how far that is; nothing where it has stopped. From any thread."""
        answer: SimpleQueue[dict[TopicPartition, Owned]] = SimpleQueue()
        self._inbox.put(Survey(answer))
        while self._thread.is_alive():
            with suppress(Empty):
                return answer.get(timeout=_SURVEY_SECONDS)
        return {}

    def ack_below(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._inbox.put(AckedBelow(offsets))

    def renew(self, places: Sequence[TopicPartition]) -> None:
        """Their topics were made anew: begin their logs again. From any thread."""
        self._fetcher.ask(Renew(places))

    def join(self, timeout: float) -> bool:
        """Whether it has stopped."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def error(self) -> BaseException | None:
        return self._crash or self._dispatcher.error

    def health(self) -> Health:
        """From any thread."""
        finished, in_flight, longest = self._dispatcher.health()
        return Health(
            handler=self._handler.name,
            group=self._handler.group,
            member=self._name,
            polled_seconds_ago=round(time.monotonic() - self._fetcher.polled, 3),
            finished_seconds_ago=None if finished is None else round(finished, 3),
            in_flight=in_flight,
            longest=longest,
        )

    def _run(self) -> None:
        try:
            with ExitStack() as stack:
                workers = make_workers(self._handler, self._inbox, self._reading, self._lease)
                stack.callback(workers.close)
                outbox = Outbox(
                    self._producer, self._inbox, make_alone=self._make_alone_producer, brokers=self._brokers
                )
                stack.callback(outbox.close)
                self._dispatcher.attach(self._fetcher, workers, outbox)
                self._fetcher.start()
                stack.callback(self._fetcher.join, _JOIN_SECONDS)
                stack.callback(self._fetcher.leave)
                self._dispatcher.run()
        except BaseException as crash:  # noqa: BLE001 - handed to whoever joins; nothing more is committed after it
            self._crash = crash

    def _make_alone_producer(self) -> Producer:
        """A producer that sends each record by itself, so that the broker's answer is about that one.

        What came from a broker may be larger than what the client sends by its own default, so the broker decides.
        """
        settings = {"message.max.bytes": _MAX_MESSAGE_BYTES, **self._handler.settings, "batch.num.messages": 1}
        return make_producer(self._brokers, settings=settings)
