"""The results of the demo."""

from dataclasses import asdict, dataclass
from typing import Any, Self

import msgspec

from penstock.core.reports.record_counts import Counts
from penstock.core.text.plurals import counted


@dataclass(frozen=True)
class PartitionReport:
    partition: int
    end: int
    committed: int | None

    @property
    def lag(self) -> int:
        return self.end - (self.committed or 0)


@dataclass(frozen=True)
class EngineReport:
    """The run of one engine: the counts that it reports, and the counts in Kafka afterwards."""

    engine: str
    group: str
    output: str
    dead_letters: str
    counts: Counts
    in_output: int
    in_dead_letters: int
    seconds: float
    partitions: tuple[PartitionReport, ...]

    @property
    def records_per_second(self) -> float:
        return self.counts.read / self.seconds if self.seconds else 0.0

    def problems(self, expected: Counts) -> list[str]:
        """Return a line for each count that is not as expected."""
        found = [
            f"{self.engine} reports {name.replace('_', '-')} {getattr(self.counts, name):,}, expected {right:,}"
            for name, right in asdict(expected).items()
            if getattr(self.counts, name) != right
        ]
        for topic, held, right in (
            (self.output, self.in_output, expected.written),
            (self.dead_letters, self.in_dead_letters, expected.dead_lettered),
        ):
            if held != right:
                found.append(f"topic {topic} has {counted(held, 'record')}, expected {right:,}")
        lag = sum(partition.lag for partition in self.partitions)
        if lag:
            found.append(f"group {self.group} has a lag of {lag:,}, expected 0")
        return found


@dataclass(frozen=True)
class DemoReport:
    brokers: str
    source: str
    expected: Counts
    engines: tuple[EngineReport, ...]
    agreement: str | None
    """What is equal in both outputs; None if only one engine ran, or they differ."""
    problems: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        engines = [
            {
                **asdict(engine),
                "records_per_second": round(engine.records_per_second),
                "partitions": [{**asdict(each), "lag": each.lag} for each in engine.partitions],
            }
            for engine in self.engines
        ]
        return {**asdict(self), "engines": engines, "ok": not self.problems}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        """Read the output of ``as_json``."""
        return msgspec.convert(fields, cls)
