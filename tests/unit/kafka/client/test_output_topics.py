"""What a transaction may write without asking the broker first."""

from hypothesis import example, given
from hypothesis import strategies as st

from penstock.core.failures.outcome import ProducerRecord
from penstock.kafka.client.output_topics import OutputTopicFacts

LIMITS = {"large": 1_000, "tiny": 100}


@given(
    topic=st.sampled_from(["large", "tiny", "unreadable", "undeclared"]),
    key=st.none() | st.binary(max_size=600),
    size=st.none() | st.integers(0, 1_200),
    is_looked_up=st.booleans(),
)
@example(topic="large", key=None, size=880, is_looked_up=True)
@example(topic="large", key=None, size=879, is_looked_up=True)
def test_what_has_room_is_never_refused(topic: str, key: bytes | None, size: int | None, *, is_looked_up: bool) -> None:
    facts = OutputTopicFacts(
        ["large", "tiny", "unreadable"], read_limits=lambda _: LIMITS, count_partitions=lambda _: {}
    )
    if is_looked_up:
        facts.limits()
    out = ProducerRecord(topic, key, None if size is None else bytes(size))
    if len(out.key or b"") + len(out.value or b"") <= facts.room(topic) - 1:
        assert not facts.may_refuse(out)
    else:
        assert facts.may_refuse(out) or facts.room(topic) == len(out.key or b"") + len(out.value or b"")
