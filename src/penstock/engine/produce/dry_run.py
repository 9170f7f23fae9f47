"""What replaces the outbox and the commits in a dry run: nothing is written, and everything counts as acknowledged."""

from collections.abc import Callable, Iterable, Sequence

from confluent_kafka import KafkaError
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.core.scheduling.effects import Send

OnCommit = Callable[[KafkaError | None, Sequence[KafkaTopicPartition]], None]


class DryOutbox:
    """Implements ``engine.dispatch.protocols.OutboxSide``."""

    is_full = False

    def send(self, sends: Iterable[Send]) -> Sequence[Send]:
        return list(sends)

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """There is no producer."""


class DryCommitter:
    """Has the method of a consumer that ``CommitSender`` calls. The fetcher thread uses it."""

    def __init__(self, on_commit: OnCommit) -> None:
        self._on_commit = on_commit

    def commit(
        self, *, offsets: Sequence[KafkaTopicPartition], asynchronous: bool
    ) -> Sequence[KafkaTopicPartition] | None:
        if not asynchronous:
            return offsets
        self._on_commit(None, offsets)
        return None
