"""Faults that a test has switched on."""

from dataclasses import dataclass, field

from confluent_kafka import KafkaError

from penstock.kafka.error_codes import Code


@dataclass
class Faults:
    produce: dict[str, KafkaError] = field(default_factory=dict)
    """By topic: the error of every write."""
    commits: KafkaError | None = None
    """The error of every commit; None while commits are accepted."""

    def fail_produce(self, topic: str, *, too_large: bool) -> None:
        code = Code.MSG_SIZE_TOO_LARGE if too_large else Code.TOPIC_AUTHORIZATION_FAILED
        self.produce[topic] = KafkaError(code)

    def refuse_commits(self) -> None:
        self.commits = KafkaError(Code.ILLEGAL_GENERATION)

    def clear(self) -> None:
        self.produce.clear()
        self.commits = None
