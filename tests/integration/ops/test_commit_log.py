"""The partition of ``__consumer_offsets`` that has a group's records, checked against the log of the brokers."""

from uuid import uuid4

from cli_helpers import commit_log_partitions, set_offsets
from kafka_helpers import MakeTopic
from penstock.core.progress.commit_log import COMMIT_LOG
from penstock.core.reports.rebalance import Coordinator
from penstock.kafka import Cluster


def test_each_group_is_in_the_partition_that_its_name_leads_to(
    brokers: str, cluster: Cluster, make_topic: MakeTopic
) -> None:
    topic, mark = make_topic(), uuid4().hex[:6]
    names = ["orders", "polygenelubricants", f"bücher-{mark}", f"\U0001f600-{mark}"]
    names += [f"{mark}-{number}" for number in range(40)]
    for name in names:
        set_offsets(cluster, name, {(topic, 0): 0})
    partitions = cluster.topics()[COMMIT_LOG]
    answers = {
        name: Coordinator.of(name, node=1, address="here:9092", offsets_partitions=partitions).partition
        for name in names
    }
    kept = commit_log_partitions(brokers)
    assert {name: kept[name] for name in names} == {name: {partition} for name, partition in answers.items()}
    assert len(set(answers.values())) == partitions, "the names lead to different partitions"
