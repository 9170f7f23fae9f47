"""The bytes that self-managed members write for each other, and the assignment that their leader computes."""

import importlib
import sys
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from hypothesis import given
from hypothesis import strategies as st

from penstock import App
from penstock.assign import Assignment, CooperativeSticky, Group, Range, Topic
from penstock.assign.sticky.user_data import read_cooperative, read_sticky, write_sticky
from penstock.core.progress import group_metadata
from penstock.core.reports.rebalance import SILENT, STALLED
from penstock.errors import ConfigError
from penstock.kafka.client.kafka_python import TESTED_VERSION, ConsumerProtocolSubscription, check_version
from penstock.kafka.client.kafka_python_settings import kafka_python_config
from penstock.kafka.error_codes import Code
from penstock.kafka.group.coordinator import GroupMemberInfo, Identity, Joined, commit_request
from penstock.kafka.group.heartbeats import SilenceError
from penstock.kafka.group.leader import Leader, subscribed_topics
from penstock.kafka.group.membership_events import PartitionsLost
from penstock.kafka.group.self_managed_member import SelfManagedMember
from penstock.kafka.group.subscription_format import (
    PenstockData,
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)

PENSTOCK_DATA = PenstockData(("take-turns", "range"))
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
TPS = st.frozensets(st.tuples(NAMES, st.integers(0, 100)), max_size=8)


def info(name: str = "m", *, topics: str = "t", user_data: bytes | None = None, **options: object) -> GroupMemberInfo:
    known = {"owned": (), "generation": -1, "rack": None, **options}
    written = write_subscription(topics.split(), user_data=user_data, penstock_data=PENSTOCK_DATA, **known)  # type: ignore[arg-type]
    return GroupMemberInfo(name, None, written)


@given(NAMES, TPS, st.integers(-1, 2**31 - 1), st.none() | NAMES, st.none() | st.binary(max_size=40))
def test_a_subscription_is_read_as_it_was_written(
    topic: str, owned: frozenset[tuple[str, int]], generation: int, rack: str | None, user_data: bytes | None
) -> None:
    written = write_subscription(
        [topic], owned=tuple(owned), generation=generation, rack=rack, user_data=user_data, penstock_data=PENSTOCK_DATA
    )
    member, penstock_data = read_subscription(GroupMemberInfo("m", "s", written))
    assert (member.topics, member.rack, frozenset(member.owned)) == ((topic,), rack, owned)
    assert (member.generation, member.static_id) == (None if generation < 0 else generation, "s")
    assert (member.user_data or b"", penstock_data) == (user_data or b"", PENSTOCK_DATA)
    reported = group_metadata.read_subscription(written)
    assert reported is not None
    assert (reported.topics, reported.is_self_managed) == ((topic,), True), "as a client outside the group"


@given(TPS)
def test_an_assignment_is_read_as_it_was_written(tps: frozenset[tuple[str, int]]) -> None:
    assert read_assignment(write_assignment(tuple(tps))) == tps


def test_no_bytes_are_no_partitions() -> None:
    assert read_assignment(b"") == frozenset()


def test_kafkas_assignors_find_their_user_data_before_penstocks() -> None:
    owned = [("t", 1)]
    raw = ConsumerProtocolSubscription.decode(info(user_data=write_sticky(owned, 7)).metadata).user_data
    assert read_sticky(raw) == (owned, 7)
    raw = ConsumerProtocolSubscription.decode(info(user_data=CooperativeSticky().user_data([], 7)).metadata).user_data
    assert read_cooperative(raw) == 7


@given(st.binary(max_size=60))
def test_user_data_of_other_clients_is_left_as_it_is(data: bytes) -> None:
    for tail in (b"", b"\x00penstock", b"\xff\xff\x00penstock"):
        written = ConsumerProtocolSubscription(
            topics=["t"], user_data=data + tail, owned_partitions=[], generation_id=-1, rack_id=None, version=3
        )
        member, penstock_data = read_subscription(GroupMemberInfo("m", None, bytes(written.encode())))
        if penstock_data is None:
            assert member.user_data == data + tail


class Mistaken:
    name = "mistaken"

    def __init__(self, shares: dict[str, list[tuple[str, int]]] | None) -> None:
        self._shares = shares

    def assign(self, _group: Group) -> Assignment:
        if self._shares is None:
            raise KeyError("x")
        return Assignment(self._shares)


def joined(*infos: GroupMemberInfo) -> Joined:
    return Joined("m", 1, "m", "mistaken", infos, skip_assignment=False)


# No assignor here needs the lag.
LEADER = Leader("g", pytest.fail)


@pytest.mark.parametrize(
    ("shares", "problem"),
    [
        (None, "raised KeyError"),
        ({"m": []}, "is assigned to nobody"),
        ({"m": [("t", 0), ("t", 1)], "n": [("t", 1)]}, "invalid assignment"),
        ({"m": [("t", 0), ("t", 1), ("u", 0)]}, "has no subscriber"),
    ],
)
def test_an_invalid_assignment_is_an_error(shares: dict[str, list[tuple[str, int]]] | None, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        LEADER.assign(joined(info()), Mistaken(shares), {"t": Topic(2)})
    assert "check_assignor" in caught.value.hint


def test_only_cooperative_assignors_withhold_partitions_that_move() -> None:
    infos = info("m", owned=(("t", 0), ("t", 1)), generation=3), info("n", topics="t u")
    swapped = Mistaken({"m": [("t", 1)], "n": [("t", 0), ("u", 0)]})
    topics = {"t": Topic(2), "u": Topic(1)}
    assert subscribed_topics(joined(*infos)) == {"t", "u"}
    decision = LEADER.assign(joined(*infos), swapped, topics)
    assert read_assignment(decision.assignments["n"]) == {("u", 0)}
    assert decision.view.pending
    assert [(voter.votes, voter.owned, voter.assigned) for voter in decision.voters] == [
        (PENSTOCK_DATA.votes, 2, 1), (PENSTOCK_DATA.votes, 0, 1),
    ]  # fmt: skip
    decision = LEADER.assign(joined(*infos), Range(), topics)
    assert read_assignment(decision.assignments["n"]) == {("t", 1), ("u", 0)}


def test_connections_are_made_as_the_settings_say() -> None:
    config = kafka_python_config(
        "a:1,b:2",
        {
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "u",
            "sasl.password": "p",
            "ssl.ca.location": "/ca",
            "ssl.endpoint.identification.algorithm": "none",
            "fetch.min.bytes": 5,
        },
    )
    assert config == {
        "bootstrap_servers": ["a:1", "b:2"],
        "client_id": "penstock",
        "reconnect_backoff_max_ms": 1_000,
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "u",
        "sasl_plain_password": "p",
        "ssl_cafile": "/ca",
        "ssl_check_hostname": False,
    }


@pytest.mark.parametrize("name", ["ssl.ca.pem", "sasl.kerberos.keytab", "enable.ssl.certificate.verification"])
def test_half_a_login_is_refused(name: str) -> None:
    value = "false" if name.startswith("enable") else "x"
    with pytest.raises(ConfigError, match=name):
        kafka_python_config("a:1", {name: value})


def test_a_login_that_kafka_python_would_need_more_for_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"cannot be GSSAPI together with share groups") as caught:
        kafka_python_config("a:1", {"sasl.mechanism": "GSSAPI"}, used_for="share groups")
    assert caught.value.hint == "Use one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512."


@pytest.fixture
def member() -> Iterator[SelfManagedMember]:
    """A member that owns a partition, with a session of 1 s; its thread is not started."""
    app = App("g")

    @app.consume("t", assignor="topic-spread", settings={"session.timeout.ms": 1_000, "heartbeat.interval.ms": 300})
    def handle(value: bytes) -> None: ...

    member = SelfManagedMember(app.handlers[0], number=0, brokers="127.0.0.1:1", on_rebalance=lambda _: None)
    member._owned = frozenset({("t", 0)})
    yield member
    member.leave()


def test_a_caller_that_has_not_handled_the_last_loss_cannot_commit(member: SelfManagedMember) -> None:
    member._lose("a test", keep_id=True)
    lost = member.events.get_nowait()
    assert lost == PartitionsLost((("t", 0),), 1)
    with pytest.raises(KafkaException, match="UNKNOWN_MEMBER_ID"):
        member.commit({("t", 0): (5, "")}, losses=0)
    with pytest.raises(KafkaException, match="UNKNOWN_MEMBER_ID"):
        member.commit_later({("t", 0): (5, "")}, losses=0)


def _no_answer(*_: Any, **__: Any) -> None:
    raise KafkaException(KafkaError(Code.LOCAL_TRANSPORT))


def test_partitions_are_lost_when_the_coordinator_is_silent_for_a_session(member: SelfManagedMember) -> None:
    member._heartbeats._connection = SimpleNamespace(heartbeat=_no_answer)  # type: ignore[assignment]
    member._heartbeats.next, member._heartbeats._last_answer = 0.0, time.monotonic()
    member._heartbeat()
    assert member.events.empty(), "the session has not ended yet"
    member._heartbeats.next, member._heartbeats._last_answer = 0.0, time.monotonic() - 1.1
    with pytest.raises(SilenceError):
        member._heartbeat()
    assert member.events.get_nowait() == PartitionsLost((("t", 0),), 1)
    assert member._round is not None
    assert member._round.reason == SILENT, "it rejoins for this reason"


def test_a_member_that_is_not_polled_leaves_the_group(member: SelfManagedMember) -> None:
    left: list[str] = []

    def leave(_identity: Identity, reason: str) -> None:
        left.append(reason)
        member.tick()  # the fetcher polls again

    unknown = KafkaException(KafkaError(Code.UNKNOWN_MEMBER_ID))

    def heartbeat(*_: Any, **__: Any) -> None:
        raise unknown

    coordinator: Any = SimpleNamespace(leave=leave, heartbeat=heartbeat)
    member._connection = member._heartbeats._connection = coordinator
    member._next_reason = None
    member._topics.check_later()
    member._heartbeats.next = time.monotonic() + 0.2  # before, this heartbeat was refused, and lost everything again
    member._polled = time.monotonic() - 301
    member._stay_member()
    assert left == [STALLED]
    assert member.events.get_nowait() == PartitionsLost((("t", 0),), 1)
    assert member._round is not None
    assert (member._round.reason, member._losses) == (STALLED, 1), "it rejoins at once, for this reason"


def test_commit_metadata_ends_with_the_zero_that_librdkafka_reads_up_to() -> None:
    request = commit_request(Identity("g", "m", 1, None), {("t", 0): (5, "pk1:map"), ("t", 1): (7, "")})
    (topic,) = request.topics
    assert [each.committed_metadata for each in topic.partitions] == ["pk1:map\0", ""]


def test_without_kafka_python_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "penstock.kafka.client.kafka_python")
    monkeypatch.setitem(sys.modules, "kafka", None)
    for name in [name for name in sys.modules if name.startswith("kafka.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ConfigError) as caught:
        importlib.import_module("penstock.kafka.client.kafka_python")
    assert "penstock[assignors]" in caught.value.hint


@pytest.mark.parametrize("version", ["3.0.12", "3.0.99", "3.0.13.dev0"])
def test_tested_versions_of_kafka_python_are_accepted(version: str) -> None:
    check_version(version)


@pytest.mark.parametrize("version", ["2.3.0", "3.0.11", "3.1.0", "4.0"])
def test_another_version_of_kafka_python_is_an_error_with_the_command_to_run(version: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_version(version)
    assert f"kafka-python {version} is installed; Penstock is tested with {TESTED_VERSION}" in caught.value.problem
    assert f"pip install kafka-python=={TESTED_VERSION}" in caught.value.hint


def test_a_missing_kafka_python_is_an_error() -> None:
    with pytest.raises(ConfigError, match="which is not installed") as caught:
        check_version(None)
    assert "penstock[assignors]" in caught.value.hint
