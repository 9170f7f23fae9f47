"""Reads the times of single records, and the recent commits of groups from ``__consumer_offsets``."""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping

from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.core.progress.commit_log import COMMIT_LOG, CommitKey, CommitValue, partition_of, read_key, read_value
from penstock.core.records.record import TopicPartition
from penstock.errors import PenstockError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.log_bounds import Found, Logs
from penstock.kafka.client.message_records import tp_of
from penstock.kafka.error_codes import Code
from penstock.kafka.errors import is_final
from penstock.kafka.read.read_records import read_to_end, reader

_PEEK_SECONDS = 5.0
_POLL_SECONDS = 0.1
# One record of each partition is needed. The broker sends at least one batch, whatever this limit is.
_SMALL = {"max.partition.fetch.bytes": 4_096, "queued.min.messages": 1, "queued.max.messages.kbytes": 1_024}

Spot = tuple[str, int, int]
"""Topic, partition, offset."""


def times_at(cluster: Cluster, spots: Iterable[Spot]) -> dict[Spot, float]:
    """Return the time of the record at each offset, or of the next record; what cannot be read is left out."""
    rounds: defaultdict[TopicPartition, list[int]] = defaultdict(list)
    for topic, partition, offset in dict.fromkeys(spots):
        rounds[topic, partition].append(offset)
    found: dict[Spot, float] = {}
    deadline = time.monotonic() + _PEEK_SECONDS
    if not rounds:
        return found
    with reader(cluster, **_SMALL) as consumer:
        while rounds and time.monotonic() < deadline:
            now = {tp: offsets.pop() for tp, offsets in rounds.items()}
            rounds = defaultdict(list, {tp: offsets for tp, offsets in rounds.items() if offsets})
            found |= _one_round(consumer, now, deadline)
    return found


def _one_round(consumer: Consumer, wanted: Mapping[TopicPartition, int], deadline: float) -> dict[Spot, float]:
    """Read one record of each partition. Not read_to_end: it stops after the first record."""
    tps = [KafkaTopicPartition(*tp, offset) for tp, offset in wanted.items()]
    consumer.assign(tps)
    # A partition that the last round paused stays paused, although it is assigned again.
    consumer.resume(tps)
    open_tps, found = set(wanted), {}
    while open_tps and time.monotonic() < deadline:
        for message in consumer.consume(len(open_tps), _POLL_SECONDS):
            tp = tp_of(message)
            if tp not in open_tps:
                continue
            error = message.error()
            if error is None:
                found[*tp, wanted[tp]] = message.timestamp()[1] / 1000
            elif error.code() != Code.LOCAL_PARTITION_EOF and not is_final(error):
                continue
            open_tps.discard(tp)
            consumer.pause([KafkaTopicPartition(*tp)])
    return found


History = dict[str, dict[TopicPartition, list[tuple[float, CommitValue]]]]


def commit_history(cluster: Cluster, groups: Iterable[str], *, since: float, seconds: float) -> History | None:
    """Return the commits of these groups since a time, oldest first; None if the log cannot be read.

    None also if the log was not read to its end within ``seconds``: a part would look as if commits had stopped.
    """
    wanted = set(groups)
    count = cluster.topics().get(COMMIT_LOG)
    if count is None or not wanted:
        return {name: {} for name in wanted}
    tps = {(COMMIT_LOG, partition_of(name, count)) for name in wanted}
    history: History = {name: {} for name in wanted}
    try:
        starts = _starts(cluster, tps, since)
        for message in read_to_end(cluster, starts, doing="reading commits", seconds=seconds):
            _note(message, history)
    except (PenstockError, TimeoutError):
        return None
    return history


def _starts(cluster: Cluster, tps: Iterable[TopicPartition], since: float) -> dict[TopicPartition, int]:
    """Return the first offset at or after the time; partitions without one are left out."""
    answers = Logs(cluster).at_times((tp, since) for tp in tps)
    starts = {}
    for (tp, _), answer in answers.items():
        if not isinstance(answer, Found):
            raise answer
        if answer.offset is not None:
            starts[tp] = answer.offset
    return starts


def _note(message: Message, history: History) -> None:
    key = read_key(bytes(message.key() or b""))
    if not isinstance(key, CommitKey) or key.group not in history:
        return
    value = message.value()
    commit = None if value is None else read_value(bytes(value))
    if commit is not None:
        history[key.group].setdefault(key.tp, []).append((message.timestamp()[1] / 1000, commit))
