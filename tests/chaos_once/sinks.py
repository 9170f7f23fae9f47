"""The sinks of a run. Each checks its own guarantees."""

from collections import Counter
from types import TracebackType
from typing import Protocol, Self

import sqlalchemy as sa
from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from chaos.traffic import Background
from kafka_tools import read_committed_by_java
from penstock.kafka import make_consumer
from postgres import Postgres

_POLL_SECONDS = 0.2
_READ_LIMIT = 5_000


class Sink(Protocol):
    environment: dict[str, str]

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def progress(self) -> int:
        """How many records have arrived, each counted once."""

    def problems(self, records: int) -> list[str]:
        """The promises that were broken, a sentence each."""


class TopicSink(Background):
    """A topic, with a reader that sees each output when it is committed, from the start of the run on."""

    def __init__(self, brokers: str, topic: str, partitions: int, *, once: bool) -> None:
        super().__init__()
        self.environment = {"CHAOS_OUT": topic}
        self._brokers, self._topic, self._partitions, self._once = brokers, topic, partitions, once
        self.seen: Counter[int] = Counter()
        self._last: dict[bytes | None, int] = {}
        self.disordered = 0

    def progress(self) -> int:
        return len(self.seen)

    def problems(self, records: int) -> list[str]:
        found = compared("a reader that was there all the time", self.seen, records, once=self._once)
        if self._once:
            lines = read_committed_by_java(self._brokers, self._topic)
            by_java = Counter(int(line) for line in lines if line.isdigit())
            found += compared("Java's reader", by_java, records, once=True)
            if self.disordered:
                found.append(f"{self.disordered:,} outputs came before an earlier one of their key")
        return found

    def _run(self) -> None:
        consumer = make_consumer(self._brokers, "chaos-reader", settings={"isolation.level": "read_committed"})
        consumer.assign([TopicPartition(self._topic, each, OFFSET_BEGINNING) for each in range(self._partitions)])
        while not self._ending.is_set():
            for message in consumer.consume(_READ_LIMIT, _POLL_SECONDS):
                if message.error() is None:
                    self._note(message.key(), int(message.value() or b"-1"))
        consumer.close()

    def _note(self, key: bytes | None, number: int) -> None:
        self.seen[number] += 1
        self.disordered += number < self._last.get(key, -1)
        self._last[key] = max(number, self._last.get(key, -1))


class TableSink:
    """A table of a real PostgreSQL, without a constraint that would hide a second row."""

    def __init__(self) -> None:
        self._server = Postgres()
        url = self._server.database()
        self.environment = {"CHAOS_DATABASE": url}
        self._engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=sa.NullPool)
        self._ask("CREATE TABLE sold (id BIGINT NOT NULL)")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()

    def progress(self) -> int:
        return self._count()[1]

    def problems(self, records: int) -> list[str]:
        count, distinct = self._count()
        if (count, distinct) == (records, records):
            return []
        return [f"SELECT count(*), count(DISTINCT id) gives {count:,} and {distinct:,} for {records:,} records"]

    def _count(self) -> tuple[int, int]:
        with self._engine.begin() as connection:
            count, distinct = connection.execute(sa.text("SELECT count(*), count(DISTINCT id) FROM sold")).one()
        return int(count), int(distinct)

    def _ask(self, statement: str) -> None:
        with self._engine.begin() as connection:
            connection.execute(sa.text(statement))


def compared(who: str, seen: Counter[int], records: int, *, once: bool) -> list[str]:
    missing = sum(1 for number in range(records) if not seen[number])
    promised = {"missing": missing, "of no record": len(seen) - (records - missing)}
    if once:
        promised["there again"] = sum(seen.values()) - len(seen)
    return [f"{who}: {count:,} of {records:,} are {what}" for what, count in promised.items() if count]
