"""The broker that coordinates a group dies: another one takes over."""

from confluent_kafka.admin import AdminClient

from kafka_helpers import WAIT_SECONDS, of_kind, wait_for
from load_under_faults import consume_under_faults, kill
from penstock.core.progress.commit_log import COMMIT_LOG
from penstock.core.reports import events
from penstock.devkit import Embedded


def test_a_coordinator_that_dies_is_replaced_and_no_record_is_lost(three: Embedded) -> None:
    brokers = three.bootstrap() or ""
    admin = AdminClient({"bootstrap.servers": brokers})

    def coordinators() -> set[int]:
        """The coordinator of a group is the leader of one of these partitions.

        To describe the group would be simpler. But while its coordinator dies, that may end the process:
        docs/internals/membership-and-rebalances.md, "eonce".
        """
        found = admin.list_topics(COMMIT_LOG, timeout=WAIT_SECONDS).topics[COMMIT_LOG].partitions
        return {partition.leader for partition in found.values()}

    def faults(group: str) -> None:
        old = admin.describe_consumer_groups([group])[group].result(WAIT_SECONDS).coordinator.id
        kill(three, old)
        wait_for(lambda: not coordinators() & {-1, old}, "other brokers to take over")

    member, _, _ = consume_under_faults(brokers, faults)
    offsets: dict[int, list[int]] = {}
    for event in of_kind(member.events, events.Committed):
        offsets.setdefault(event.partition, []).append(event.offset)
    assert all(each == sorted(each) for each in offsets.values()), "no commit overtakes a newer one"
