"""The same lists, descriptions, offsets and refusals as Kafka's own tool for consumer groups."""

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition

from cli_helpers import Joined, Joining, Penstock, offsets_of, same_lists, set_offsets
from group_tool import GroupTool, GroupTools
from kafka_helpers import WAIT_SECONDS, MakeTopic, wait_for
from penstock.kafka import Cluster
from penstock.kafka.admin.consumer_groups import CommittedOffset

RECORDS = 10
PARTITIONS = 3
HOUR = 3600


@pytest.fixture
def tool(kafkas_tools: GroupTools) -> GroupTool:
    return kafkas_tools.consumers


@pytest.fixture
def topic(brokers: str, cluster: Cluster, make_topic: MakeTopic) -> str:
    """A record for each of the last ten hours in three partitions; the first two of partition 1 are deleted."""
    name, now = make_topic(PARTITIONS), time.time()
    producer = Producer({"bootstrap.servers": brokers})
    for hours in range(RECORDS, 0, -1):
        for partition in range(PARTITIONS):
            producer.produce(name, b"x", partition=partition, timestamp=round((now - hours * HOUR) * 1000))
    assert producer.flush(WAIT_SECONDS) == 0
    for future in cluster.admin.delete_records([TopicPartition(name, 1, 2)]).values():
        future.result(WAIT_SECONDS)
    return name


def _hours_ago(hours: float) -> str:
    return datetime.fromtimestamp(time.time() - hours * HOUR, UTC).strftime("%Y-%m-%dT%H:%M:%S.000")


SCENARIOS = [
    ["--to-earliest"],
    ["--to-latest"],
    ["--to-current"],
    ["--to-offset", "4"],
    ["--to-offset", "0"],
    ["--to-offset", "999"],
    ["--to-datetime", _hours_ago(4.5)],
    ["--to-datetime", _hours_ago(-5)],
    ["--by-duration", "PT3H30M"],
    ["--by-duration", "P30D"],
]


def test_every_scenario_leads_to_the_same_offsets(
    penstock: Penstock, tool: GroupTool, cluster: Cluster, group: str, topic: str, tmp_path: Path
) -> None:
    penstocks, theirs = f"{group}-ours", f"{group}-theirs"
    committed: dict[tuple[str, int], int | CommittedOffset] = {
        (topic, 0): 5,
        (topic, 1): 7,
    }  # and nothing for partition 2
    file = tmp_path / "offsets.csv"
    file.write_text(f"{topic},0,1\n{topic},1,0\n{topic},2,99\n")
    scopes = [["--topic", topic], ["--topic", f"{topic}:0,1"], ["--all-topics"]]
    cases = [(scopes[0], scenario) for scenario in SCENARIOS]
    cases += [(scope, ["--shift-by", number]) for scope in scopes[1:] for number in ("-3", "2", "-100", "100")]
    cases += [([], ["--from-file", str(file)])]
    for scope, scenario in cases:
        for name in (penstocks, theirs):
            set_offsets(cluster, name, committed)
        tool("--reset-offsets", "--group", theirs, *scope, *scenario, "--execute")
        penstock("offsets", "reset", penstocks, *scope, *scenario, "--execute", "--yes")
        assert offsets_of(cluster, penstocks) == offsets_of(cluster, theirs), (scope, scenario)
        for name in (penstocks, theirs):
            cluster.delete_group(name)


def test_both_tools_refuse_the_same_and_change_nothing(
    penstock: Penstock, tool: GroupTool, brokers: str, cluster: Cluster, group: str, topic: str
) -> None:
    cases = [
        ["--topic", topic, "--shift-by", "1"],  # partition 2 has no commit
        ["--topic", f"{topic}-missing", "--to-earliest"],
        ["--topic", f"{topic}:7", "--to-earliest"],
        ["--topic", f"{topic}:x", "--to-earliest"],
        ["--topic", topic, "--to-datetime", "noon"],
        ["--topic", topic, "--by-duration", "long"],
    ]
    penstocks, theirs = f"{group}-ours", f"{group}-theirs"
    for case in cases:
        for name in (penstocks, theirs):
            set_offsets(cluster, name, {(topic, 0): 5})
        said = tool("--reset-offsets", "--group", theirs, *case, "--execute")
        assert "Error" in said or "Exception" in said, (case, said)
        assert penstock("offsets", "reset", penstocks, *case, "--execute", "--yes", ok=False).code != 0, case
        assert offsets_of(cluster, penstocks) == offsets_of(cluster, theirs) == {(topic, 0): 5}
    active = f"{group}-active"
    member = Joined(brokers, active, topic)
    try:
        member.commit(topic, 0, 4)
        words = ["--topic", topic, "--to-earliest"]
        said = tool("--reset-offsets", "--group", active, *words, "--execute")
        assert "Error: Assignments can only be reset if the group" in said
        assert penstock("offsets", "reset", active, *words, "--execute", "--yes", ok=False).code != 0
        assert "Error: Deletion of some consumer groups failed" in tool("--delete", "--group", active)
        assert penstock("groups", "rm", active, "--yes", ok=False).code != 0
        assert offsets_of(cluster, active) == {(topic, 0): 4}
    finally:
        member.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_lists_and_descriptions_say_the_same(
    penstock: Penstock,
    tool: GroupTool,
    brokers: str,
    cluster: Cluster,
    group: str,
    topic: str,
    protocol: str,
) -> None:
    member = Joined(brokers, group, topic, **{"group.protocol": protocol, "client.rack": "room-2"})
    empty = f"{group}-empty"
    try:
        member.commit(topic, 0, 4)
        set_offsets(cluster, empty, {(topic, 1): 3})
        listed = same_lists(penstock, tool, group, empty, share=False)
        types = {row["GROUP"]: row["TYPE"].lower() for row in tool.rows("--list", "--type")}
        assert all(types[name] == listed[name]["type"].lower() for name in (group, empty))

        for name in (group, empty):
            rows = tool.rows("--describe", "--group", name, "--offsets")
            columns = (
                "GROUP",
                "TOPIC",
                "PARTITION",
                "CURRENT-OFFSET",
                "LOG-END-OFFSET",
                "LAG",
                "CONSUMER-ID",
                "HOST",
                "CLIENT-ID",
            )
            theirs = sorted(tuple(row[column] for column in columns) for row in rows)
            printed = penstock("groups", "describe", name).out.splitlines()
            assert tuple(printed[0].split()[: len(columns)]) == columns
            assert sorted(tuple(line.split()[: len(columns)]) for line in printed[1:]) == theirs

        (row,) = tool.rows("--describe", "--group", group, "--members", "--verbose")
        (penstocks,) = penstock.json("groups", "describe", group, "--members")["groups"][0]["members"]
        assert (row["CONSUMER-ID"], row["HOST"], row["CLIENT-ID"]) == (
            penstocks["id"],
            penstocks["host"],
            penstocks["client"],
        )
        assert int(row["#PARTITIONS"]) == len(penstocks["assignment"]) == PARTITIONS
        assert penstocks["rack"] == "room-2"
        mine = penstock("groups", "describe", group, "--members").out
        assert row["CURRENT-ASSIGNMENT"] in mine
        assert row["CURRENT-ASSIGNMENT"] == f"{topic}:0,1,2"

        for name in (group, empty):
            (state,) = tool.rows("--describe", "--group", name, "--state")
            (penstocks,) = penstock.json("groups", "describe", name, "--state")["groups"]
            assert state["COORDINATOR"] == penstocks["coordinator"].replace(" ", "")
            assert state["STATE"] == penstocks["state"]
            assert state["ASSIGNMENT-STRATEGY"] == (penstocks["assignor"] or "-")
            assert int(state["#MEMBERS"]) == penstocks["members"]
        (state,) = tool.rows("--describe", "--group", group, "--state", "--verbose")
        (penstocks,) = penstock.json("groups", "describe", group, "--state")["groups"]
        # For classic groups Kafka's tool shows no epoch, but the broker has written it to its log.
        assert penstocks["epoch"] >= 1
        assert state["GROUP-EPOCH"] in ("-", str(penstocks["epoch"]))
    finally:
        member.close()


def test_a_group_that_rebalances_by_the_newer_protocol_is_shown_as_rebalancing(
    penstock: Penstock, tool: GroupTool, brokers: str, group: str, topic: str
) -> None:
    newer = {"group.protocol": "consumer"}
    # It does not poll, so it does not give up the partitions for the second member.
    holding = Joined(brokers, group, topic, **newer)
    joining = Joining(brokers, group, topic, **newer)
    try:

        def reconciles() -> bool:
            joining.poll()
            (row,) = tool.rows("--describe", "--group", group, "--state")
            return row["STATE"] == "Reconciling"

        wait_for(reconciles, "the rebalance to begin")
        assert penstock.json("groups", "describe", group, "--state")["groups"][0]["state"] == "Rebalancing"
        listed = {each["group"]: each["state"] for each in penstock.json("groups", "ls")["groups"]}
        assert listed[group] == "Rebalancing"
    finally:
        joining.close()
        holding.close()


def test_each_tool_imports_what_the_other_exports(
    penstock: Penstock, tool: GroupTool, cluster: Cluster, group: str, topic: str, tmp_path: Path
) -> None:
    set_offsets(cluster, group, {(topic, 0): 5, (topic, 2): 1})
    theirs = tool("--reset-offsets", "--group", group, "--all-topics", "--to-current", "--export", "--dry-run")
    penstocks = penstock("offsets", "export", group).out
    assert sorted(theirs.split()) == sorted(penstocks.split())
    file = tmp_path / "theirs.csv"
    file.write_text(theirs)
    other = f"{group}-other"
    penstock("offsets", "import", other, str(file), "--new-group", "--execute", "-y")
    assert offsets_of(cluster, other) == {(topic, 0): 5, (topic, 2): 1}
