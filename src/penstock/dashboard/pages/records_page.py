"""The records of a topic: from the end, from a time or an offset, by a filter, and as they come."""

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from penstock.core.filters.expression import Expression
from penstock.core.records.record import Record, TopicPartition
from penstock.dashboard.feed.feed_source import DashboardContext, Publish, Rows
from penstock.dashboard.pages.given_parameters import needed_text, text_of, time_of, whole_of
from penstock.dashboard.pages.page_contract import DashboardPage, Endpoint
from penstock.dashboard.pages.record_texts import record_line, whole_record
from penstock.errors import ConfigError, TopicError
from penstock.kafka.read.read_records import read_positions, read_span
from penstock.ops.dead_letters import record_values
from penstock.ops.record_view import RecordDecoder
from penstock.ops.tail_topic import RecordFilter, Start, Tail
from penstock.ops.topic_facts import require_bounds

_LISTED = 100
# A filter reads at most so many records for one answer; the page says how far it came.
_SCANNED = 50_000
_TAILED = 100
_MAX_PARTITION = 1_000_000


class _Wanted:
    """What a request wants to see: topic, partition, filter and format."""

    def __init__(self, context: DashboardContext, given: Mapping[str, Any]) -> None:
        self.topic = needed_text(given, "topic")
        self.partition = whole_of(given, "partition", most=_MAX_PARTITION)
        self.decoder: RecordDecoder = context.decoding.decoder_for(text_of(given, "as"))(self.topic, "")
        where = text_of(given, "where").strip()
        key = text_of(given, "key")
        self.filter = RecordFilter(
            key=key.encode() if key else None,
            where=Expression(where, option="The filter") if where else None,
            values=lambda record: record_values(record, self.decoder.see(record)),
        )

    @property
    def partitions(self) -> list[int]:
        return [] if self.partition is None else [self.partition]

    @property
    def has_filter(self) -> bool:
        return self.filter.where is not None or self.filter.key is not None

    def line(self, record: Record) -> dict[str, Any]:
        return record_line(record, self.decoder.see(record))


def _read(context: DashboardContext, given: Mapping[str, Any]) -> Any:
    """Return up to 100 records, ordered by time, and how many were read for them."""
    wanted = _Wanted(context, given)
    cluster = context.connection.cluster()
    cluster.require_topics([wanted.topic])
    offset, since = whole_of(given, "offset"), time_of(given, "since")
    if offset is not None and since is not None:
        raise ConfigError("Choose an offset or a time, not both.")
    from_end = offset is None and since is None
    start = Start(last=_SCANNED if wanted.has_filter else _LISTED, offset=offset, since=since)
    scanned = _Count(islice(Tail(cluster, wanted.topic, wanted.partitions).present(start), _SCANNED))
    matches = (record for record in scanned if wanted.filter.fits(record))
    found = list(deque(matches, maxlen=_LISTED) if from_end else islice(matches, _LISTED))
    found.sort(key=lambda record: (record.timestamp_ms, record.partition, record.offset))
    where = wanted.filter.where
    return {
        "records": [wanted.line(record) for record in found],
        "scanned": scanned.count,
        "cut": not from_end and scanned.count >= _SCANNED and len(found) < _LISTED,
        "misses": where.misses if where else 0,
        "example": where.example if where else "",
    }


class _Count:
    """Counts what is taken of the records."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._records = records
        self.count = 0

    def __iter__(self) -> Any:
        for record in self._records:
            self.count += 1
            yield record


def _one(context: DashboardContext, given: Mapping[str, Any]) -> Any:
    """Return one record in full."""
    wanted = _Wanted(context, given)
    offset = whole_of(given, "offset")
    if wanted.partition is None or offset is None:
        raise ConfigError("A record has a partition and an offset.")
    cluster = context.connection.cluster()
    cluster.require_topics([wanted.topic])
    found = next(iter(read_positions(cluster, {(wanted.topic, wanted.partition): [offset]})), None)
    if found is None:
        raise TopicError(
            f"{wanted.topic}-{wanted.partition} has no record at offset {offset:,}.",
            hint="Retention or compaction has deleted it, it is a transaction marker, or it is not written yet.",
        )
    return whole_record(found, wanted.decoder.see(found))


class NewRecordsSource:
    """The last records that were written since somebody looks; ``state`` says how many there were."""

    every = 1.0

    def __init__(self, context: DashboardContext, given: Mapping[str, str]) -> None:
        self._context = context
        self._wanted = _Wanted(context, given)
        self._reached: dict[TopicPartition, int] | None = None
        self._last = deque[dict[str, Any]](maxlen=_TAILED)
        self._seen = self._skipped = 0

    def read(self, publish: Publish, visible: frozenset[str]) -> None:  # noqa: ARG002 - there are few
        cluster, wanted = self._context.connection.cluster(), self._wanted
        cluster.require_topics([wanted.topic])
        tps = [
            tp
            for tp in cluster.topic_partitions([wanted.topic])
            if wanted.partition is None or tp[1] == wanted.partition
        ]
        ends = {tp: each.end for tp, each in require_bounds(cluster, tps).items()}
        reached = self._reached or {}
        # Of more than can be read in time, the first ones are left out.
        most = _SCANNED // max(1, len(ends)) if wanted.has_filter else _TAILED
        starts = {tp: max(min(reached.get(tp, end), end), end - most) for tp, end in ends.items()}
        new = [record for record in read_span(cluster, starts, ends) if wanted.filter.fits(record)]
        new.sort(key=lambda record: (record.timestamp_ms, record.partition, record.offset))
        # Only now: a read that fails is repeated from where the last one ended.
        self._reached = ends
        self._skipped += sum(max(0, start - reached.get(tp, start)) for tp, start in starts.items())
        self._seen += len(new)
        self._last.extend(wanted.line(record) for record in new)
        rows: Rows = {"state": {"seen": self._seen, "skipped": self._skipped}}
        for each in self._last:
            rows[f"record {each['partition']}:{each['offset']}"] = each
        publish(rows)

    def close(self) -> None: ...


def _new_records(context: DashboardContext, given: Mapping[str, str]) -> NewRecordsSource:
    return NewRecordsSource(context, given)


PAGE = DashboardPage(
    "records",
    under="topics",
    sources={"new-records": _new_records},
    endpoints=(Endpoint("read", _read), Endpoint("one", _one)),
    has_style=True,
)
