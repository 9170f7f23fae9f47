"""Looking at records outside of any group: the time of single ones, and the recent log of commits."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.core.progress.commit_log import COMMIT_LOG, CommitKey, CommitValue, partition_of, read_key, read_value
from penstock.core.records.record import TopicPartition
from penstock.errors import PenstockError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.log_bounds import Found, Logs
from penstock.kafka.client.clients import make_consumer
from penstock.kafka.error_codes import Code
from penstock.kafka.errors import is_final, translate

_PEEK_SECONDS = 5.0
_POLL_SECONDS = 0.1
_BATCH = 1_000
# Of each partition one record is wanted, and the broker sends at least one batch whatever this says.
_SMALL = {"max.partition.fetch.bytes": 4_096, "queued.min.messages": 1, "queued.max.messages.kbytes": 1_024}

Spot = tuple[str, int, int]
"""Topic, partition, offset."""


@contextmanager
def reader(cluster: Cluster, **settings: object) -> Iterator[Consumer]:
    """A consumer that joins no group and commits nothing."""
    consumer = make_consumer(cluster.brokers, "penstock-reader", settings=cluster.settings, member=settings)
    try:
        yield consumer
    finally:
        consumer.close()


def times_at(cluster: Cluster, spots: Iterable[Spot]) -> dict[Spot, float]:
    """When the record at each offset, or the next one there is, was written; what cannot be read is left out."""
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
    tps = [KafkaTopicPartition(*tp, offset) for tp, offset in wanted.items()]
    consumer.assign(tps)
    # What was paused in the round before stays so, though it is assigned anew.
    consumer.resume(tps)
    open_tps, found = set(wanted), {}
    while open_tps and time.monotonic() < deadline:
        for message in consumer.consume(len(open_tps), _POLL_SECONDS):
            tp = (message.topic() or "", message.partition() or 0)
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
    """What these groups have committed since then, with times, oldest first; None where that cannot be read.

    A log that was not read to its end within ``seconds`` tells nothing: it would look as if commits had ceased.
    """
    wanted = set(groups)
    count = cluster.topics().get(COMMIT_LOG)
    if count is None or not wanted:
        return {name: {} for name in wanted}
    tps = {(COMMIT_LOG, partition_of(name, count)) for name in wanted}
    history: History = {name: {} for name in wanted}
    try:
        starts = _starts(cluster, tps, since)
        for message in _to_the_end(cluster, starts, seconds):
            _note(message, history)
    except (PenstockError, TimeoutError):
        return None
    return history


def _starts(cluster: Cluster, tps: Iterable[TopicPartition], since: float) -> dict[TopicPartition, int]:
    """Where to begin; a partition with nothing since then is left out."""
    answers = Logs(cluster).at_times((tp, since) for tp in tps)
    starts = {}
    for (tp, _), answer in answers.items():
        if not isinstance(answer, Found):
            raise answer
        if answer.offset is not None:
            starts[tp] = answer.offset
    return starts


def _to_the_end(cluster: Cluster, starts: Mapping[TopicPartition, int], seconds: float) -> Iterator[Message]:
    if not starts:
        return
    deadline = time.monotonic() + seconds
    with reader(cluster) as consumer:
        consumer.assign([KafkaTopicPartition(*tp, offset) for tp, offset in starts.items()])
        ended: set[int] = set()
        while len(ended) < len(starts):
            if time.monotonic() > deadline:
                raise TimeoutError
            for message in consumer.consume(_BATCH, _POLL_SECONDS):
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == Code.LOCAL_PARTITION_EOF:
                    ended.add(message.partition() or 0)
                elif is_final(error):
                    raise translate(KafkaException(error), doing="reading commits", brokers=cluster.brokers)


def _note(message: Message, history: History) -> None:
    key = read_key(bytes(message.key() or b""))
    if not isinstance(key, CommitKey) or key.group not in history:
        return
    value = message.value()
    commit = None if value is None else read_value(bytes(value))
    if commit is not None:
        history[key.group].setdefault(key.tp, []).append((message.timestamp()[1] / 1000, commit))
