"""What the page of dead letters follows: the topics, the counts of one topic, and the replays."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from itertools import islice

from penstock.core.records.record import TopicPartition
from penstock.dashboard.feed.feed_source import DashboardContext, Publish, Rows
from penstock.ops.dead_letters import Letter, LetterCount, bounds_of, dead_letter_topics, read_letters
from penstock.ops.replay_audit import audited_replays

_AT_ONCE = 5_000
_BARS = 48
_STEPS = (60, 300, 900, 3_600, 4 * 3_600, 86_400, 7 * 86_400, 28 * 86_400)
_MAX_REASONS = 200
_AUDITED = 30


class LetterTopicsSource:
    """Rows: a topic each; ``replay N``: what the audit file says about earlier replays."""

    every = 3.0

    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    def read(self, publish: Publish, visible: frozenset[str]) -> None:  # noqa: ARG002 - there are few
        cluster = self._context.connection.cluster()
        rows: Rows = {name: {"topic": name, "count": count} for name, count in dead_letter_topics(cluster).items()}
        for number, each in enumerate(audited_replays(cluster.id(), limit=_AUDITED)):
            rows[f"replay {number}"] = {"number": number, "replay": asdict(each)}
        publish(rows)

    def close(self) -> None: ...


class LettersSource:
    """Rows: ``topic``, ``times`` and ``reason N``. It reads each dead letter once, and then only new ones."""

    every = 2.0

    def __init__(self, context: DashboardContext, topic: str) -> None:
        self._context = context
        self._topic = topic
        self._reached: dict[TopicPartition, int] = {}
        self._counts: dict[tuple[str, str, str], LetterCount] = {}
        self._minutes: Counter[int] = Counter()

    def read(self, publish: Publish, visible: frozenset[str]) -> None:  # noqa: ARG002 - there are few
        cluster = self._context.connection.cluster()
        cluster.require_topics([self._topic])
        bounds = bounds_of(cluster, self._topic)
        if any(each.end < self._reached.get(tp, 0) for tp, each in bounds.items()):
            self._forget()  # the topic was deleted and created again
        letters = read_letters(cluster, bounds, starts=self._reached)
        while batch := list(islice(letters, _AT_ONCE)):
            for letter in batch:
                self._add(letter)
            if len(batch) == _AT_ONCE:
                publish(self._rows(reading=True))
        self._reached = {tp: each.end for tp, each in bounds.items()}
        publish(self._rows(reading=False))

    def close(self) -> None: ...

    def _forget(self) -> None:
        self._reached, self._counts, self._minutes = {}, {}, Counter()

    def _add(self, letter: Letter) -> None:
        note, record = letter.note, letter.record
        # Noted for each one: the read may fail half-way, and the next one must not count it again.
        self._reached[record.topic, record.partition] = record.offset + 1
        self._counts.setdefault((note.topic, note.group, note.reason), LetterCount()).add(letter)
        self._minutes[int(letter.died_at // 60 * 60)] += 1

    def _rows(self, *, reading: bool) -> Rows:
        rows: Rows = {
            "topic": {"topic": self._topic, "count": self._minutes.total(), "reading": reading},
            "times": {"step": (step := self._step()), "bars": self._bars(step)},
        }
        most = sorted(self._counts.items(), key=lambda each: -each[1].count)[:_MAX_REASONS]
        for (source, group, reason), each in most:
            rows[f"reason {source} {group} {reason}"] = {
                "source": source,
                "group": group,
                "reason": reason,
                "count": each.count,
                "first": each.first,
                "last": each.last,
                "message": each.message[:400],
            }
        return rows

    def _step(self) -> int:
        span = max(self._minutes) - min(self._minutes) if self._minutes else 0
        return next((each for each in _STEPS if span <= each * _BARS), _STEPS[-1])

    def _bars(self, step: int) -> list[list[int]]:
        """Return the counts by time, without gaps: each the beginning and the count."""
        counts: Counter[int] = Counter()
        for minute, count in self._minutes.items():
            counts[minute // step * step] += count
        if not counts:
            return []
        last = max(counts)
        first = max(min(counts), last - step * 2 * _BARS)
        return [[at, counts[at]] for at in range(first, last + 1, step)]


class ReplaysSource:
    """One row for each replay that this dashboard has started."""

    every = 0.5

    def __init__(self, context: DashboardContext) -> None:
        self._replays = context.replays

    def read(self, publish: Publish, visible: frozenset[str]) -> None:  # noqa: ARG002 - there are few
        publish(
            {
                each.id: {
                    "id": each.id,
                    "topic": each.topic,
                    "total": each.total,
                    "sent": each.sent,
                    "state": each.state,
                    "began": each.began,
                    "ended": each.ended,
                    "command": each.command,
                    "problem": each.problem,
                }
                for each in self._replays.all()
            }
        )

    def close(self) -> None: ...


def topics_source(context: DashboardContext, _given: Mapping[str, str]) -> LetterTopicsSource:
    return LetterTopicsSource(context)


def replays_source(context: DashboardContext, _given: Mapping[str, str]) -> ReplaysSource:
    return ReplaysSource(context)
