"""A member of a consumer group: the threads that consume for one handler."""

import os
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from queue import SimpleQueue
from typing import Any

from confluent_kafka import Producer

from penstock.app import Handler, Reading
from penstock.core.events import Event
from penstock.core.record import Record, TopicPartition
from penstock.engine.dispatcher import Dispatcher
from penstock.engine.fetcher import Fetcher
from penstock.engine.messages import Acked, Inbox, Stop
from penstock.engine.outbox import Outbox
from penstock.engine.reporter import Reporter
from penstock.engine.workers import make_workers
from penstock.kafka import MESSAGES, make_producer

_JOIN_SECONDS = 10.0
_NUMBERS = count(1)
_MAX_MESSAGE_BYTES = 1_000_000_000  # as much as the client allows


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
    ) -> None:
        self._handler = handler
        self._inbox: Inbox = SimpleQueue()
        self._reading = self._acking(MESSAGES) if handler.commit == "manual" else MESSAGES
        name = f"{socket.gethostname()}-{os.getpid()}-{next(_NUMBERS)}"
        self._reporter = Reporter(handler, emit, member=name, reading=self._reading, per_record=per_record)
        self._dispatcher = Dispatcher(handler, self._inbox, self._reporter, reading=self._reading, until=until)
        self._fetcher = Fetcher(handler, self._inbox, brokers=brokers, in_flight_room=self._dispatcher.in_flight_room)
        self._producer = make_producer(brokers, settings=handler.settings)
        self._brokers = brokers
        self._thread = threading.Thread(target=self._run, name=f"{handler.name}-dispatcher", daemon=True)
        self._crash: BaseException | None = None

    def start(self, lag: int) -> None:
        self._reporter.started(lag)
        self._thread.start()

    def stop(self, reason: str) -> None:
        self._inbox.put(Stop(reason))

    def join(self, timeout: float) -> bool:
        """Whether it has stopped."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def error(self) -> BaseException | None:
        return self._crash or self._dispatcher.error

    def _run(self) -> None:
        workers = make_workers(self._handler, self._inbox, self._reading)
        outbox = Outbox(self._producer, self._inbox, make_alone=self._make_alone_producer, brokers=self._brokers)
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

    def _make_alone_producer(self) -> Producer:
        """A producer that sends each record by itself, so that the broker's answer is about that one.

        What came from a broker may be larger than what the client sends by its own default, so the broker decides.
        """
        settings = {"message.max.bytes": _MAX_MESSAGE_BYTES, **self._handler.settings, "batch.num.messages": 1}
        return make_producer(self._brokers, settings=settings)

    def _acking(self, reading: Reading) -> Reading:
        """Records of this reading can be acknowledged, which reaches the dispatcher."""

        def to_record(source: Any, attempt: int) -> Record:
            record = reading.to_record(source, attempt)
            acked = Acked((record.topic, record.partition), record.offset, source)
            return record.acknowledged_by(lambda: self._inbox.put(acked))

        return replace(reading, to_record=to_record)
