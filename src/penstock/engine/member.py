"""A member of a consumer group: the threads that consume for one handler."""

import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any

from penstock.app import Handler, Reading
from penstock.core.events import Event
from penstock.core.record import Record, TopicPartition
from penstock.engine.dispatcher import Dispatcher
from penstock.engine.fetcher import Fetcher
from penstock.engine.messages import Acked, AckedBelow, Inbox, Owned, Renew, Stop, Survey
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
        self._reading = self._acking(MESSAGES) if handler.commit == "manual" else MESSAGES
        name = f"{socket.gethostname()}-{os.getpid()}-{next(_NUMBERS)}"
        self._reporter = Reporter(handler, emit, member=name, reading=self._reading, per_record=per_record)
        self._dispatcher = Dispatcher(
            handler, self._inbox, self._reporter, reading=self._reading, until=until, siblings=crew.siblings
        )
        self._fetcher = Fetcher(
            handler,
            self._inbox,
            brokers=brokers,
            in_flight_room=self._dispatcher.in_flight_room,
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

    def _run(self) -> None:
        workers = make_workers(self._handler, self._inbox, self._reading)
        outbox = Outbox(self._producer, self._inbox, brokers=self._brokers)
        self._fetcher.start()
        try:
            self._dispatcher.run(self._fetcher, workers, outbox)
        except BaseException as crash:  # noqa: BLE001 - handed to whoever joins; nothing more is committed after it
            self._crash = crash
            self._fetcher.leave()
        finally:
            workers.close()
            outbox.close()
            self._fetcher.join(_JOIN_SECONDS)

    def _acking(self, reading: Reading) -> Reading:
        """Records of this reading can be acknowledged, which reaches the dispatcher."""

        def to_record(source: Any, attempt: int) -> Record:
            record = reading.to_record(source, attempt)
            acked = Acked((record.topic, record.partition), record.offset, source)
            return record.acknowledged_by(lambda: self._inbox.put(acked))

        return replace(reading, to_record=to_record)
