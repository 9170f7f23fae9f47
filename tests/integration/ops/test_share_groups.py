"""Share groups are shown and set like in Kafka's own tool. They can be deleted only when they are empty."""

import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

from cli_helpers import Penstock, Sharing, same_lists
from group_tool import GroupTool, GroupTools
from kafka_helpers import MakeTopic, Running, produce, wait_for
from penstock import App

PARTITIONS = 3
WITH_LIBRARY = (
    "penstock.kafka.client.kafka_python",
    "penstock.kafka.group.coordinator",
    "penstock.kafka.admin.share_groups",
)


@pytest.fixture
def tool(kafkas_tools: GroupTools) -> GroupTool:
    return kafkas_tools.shared


def test_a_share_group_of_penstock_from_its_first_record_to_its_last(
    penstock: Penstock,
    tool: GroupTool,
    brokers: str,
    group: str,
    make_topic: MakeTopic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic, app = make_topic(PARTITIONS), App(group, settings={"client.rack": "room-2"})

    @app.consume(topic, mode="share", order="none", dead_letter=f"{group}.dlq")
    def handle(value: int) -> None:
        pass

    produce(brokers, topic, range(10))
    produce(brokers, topic, range(5), partition=1)  # and nothing to the third
    queue = Running(app, brokers)
    try:
        wait_for(lambda: _lags(penstock, group) == [0, 0, None], "all records to be finished")
        _check_lists(penstock, tool, group)
        assert _check_offsets(penstock, tool, group) == ["0", "0", "-"]
        assert _check_state(penstock, tool, group) == "Stable"
        _check_members(penstock, tool, group, topic)
        _check_refusals(penstock, tool, brokers, group, topic)
        with monkeypatch.context() as patch:
            _check_without_library(penstock, patch, group)
    finally:
        queue.stop()

    produce(brokers, topic, range(3))
    assert _check_offsets(penstock, tool, group) == ["3", "0", "-"]
    assert _check_state(penstock, tool, group) == "Empty"
    stopped = penstock("lag", group, "--json", ok=False)
    assert stopped.code == 13  # records wait, and nobody is there
    (reported,) = stopped.json["groups"]
    assert (reported["type"], reported["lag"], reported["lost"], reported["status"]) == ("Share", 3, 0, "STOP")
    assert 0 <= reported["lag_seconds"] < 60
    assert group in penstock("lag", "-p", ok=False).out
    assert penstock.json("groups", "rm", group, "--yes") == {"deleted": [group], "failed": {}}
    assert group not in tool("--list").split()
    gone = penstock("groups", "describe", group, ok=False)
    assert (gone.code, f"There is no group {group!r}" in gone.err) == (1, True), gone


@dataclass
class Queue:
    """A Penstock app on a share group, which runs only inside ``run_until``."""

    brokers: str
    group: str
    topic: str
    handled: list[int] = field(default_factory=list)

    def run_until(self, *values: int) -> None:
        """Run until these values are handled, and no others."""
        self.handled.clear()
        app = App(self.group)
        app.consume(self.topic, mode="share", order="none", dead_letter=f"{self.group}.dlq")(self._handle)
        queue = Running(app, self.brokers)
        try:
            wait_for(lambda: len(self.handled) >= len(values), f"{values}")
        finally:
            queue.stop()
        assert sorted(self.handled) == sorted(values)

    def _handle(self, value: int) -> None:
        self.handled.append(value)


def test_the_start_of_a_share_group_is_set_as_by_kafkas_tool_and_restored(
    penstock: Penstock, tool: GroupTool, brokers: str, group: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(PARTITIONS)
    produce(brokers, topic, range(10))
    produce(brokers, topic, range(10, 14), partition=1)  # and nothing to the third
    queue = Queue(brokers, group, topic)
    queue.run_until(*range(14))
    produce(brokers, topic, [14], partition=1)
    queue.run_until(14)  # a clean stop repeats nothing

    def starts() -> list[str]:
        rows = tool.rows("--describe", "--group", group)
        return [row["START-OFFSET"] for row in sorted(rows, key=lambda row: row["PARTITION"])]

    def planned(*where: str) -> list[tuple[int | None, int]]:
        shown = penstock.json("offsets", "reset", group, *where)
        assert not shown["executed"]
        assert "is a share group" in "".join(shown["warnings"])
        return [(each["old"], each["new"]) for each in shown["moves"]]

    before = starts()  # brokers may move the start offset only later
    for where in (["--to-earliest"], ["--to-latest"], ["--to-datetime", "2001-01-01T00:00:00.000"]):
        theirs = tool.rows("--reset-offsets", "--group", group, "--topic", topic, *where, "--dry-run")
        wanted = [int(row["NEW-OFFSET"]) for row in sorted(theirs, key=lambda row: row["PARTITION"])]
        assert [new for _, new in planned("--topic", topic, *where)] == wanted
    assert planned("--all-topics", "--to-offset", "2") == [(10, 2), (5, 2), (None, 0)]
    assert planned("--topic", f"{topic}:0,1", "--shift-by", "-2") == [(10, 8), (5, 3)]
    assert planned("--topic", f"{topic}:1", "--to-offset", "99") == [(5, 5)]
    assert starts() == before, "a dry run changes nothing"

    penstock("offsets", "reset", group, "--topic", topic, "--to-offset", "3", "--execute", "--yes")
    assert starts() == ["3", "3", "0"]
    assert penstock("offsets", "export", group).out.splitlines() == [f"{topic},0,3", f"{topic},1,3", f"{topic},2,0"]
    penstock("offsets", "undo", group, "--execute", "--yes")
    assert starts() == ["10", "5"], "a partition that was never read has no start offset again"
    penstock("offsets", "reset", group, "--topic", f"{topic}:0", "--to-offset", "7", "--execute", "--yes")
    assert starts() == ["7", "5"]
    queue.run_until(7, 8, 9)


def _lags(penstock: Penstock, group: str) -> list[int | None]:
    """The lag of each partition; empty if the group does not exist."""
    answer = penstock("lag", group, "--json", ok=False)
    return [each["lag"] for each in answer.json["groups"][0]["partitions"]] if answer.code == 0 else []


def _reported(penstock: Penstock, *arguments: str) -> dict[str, Any]:
    (found,) = penstock.json(*arguments)["groups"]
    assert isinstance(found, dict)
    return found


def _check_lists(penstock: Penstock, tool: GroupTool, group: str) -> None:
    listed = same_lists(penstock, tool, group, share=True)
    assert penstock.json("groups", "ls", group)["groups"] == [listed[group]]
    assert group in {each["group"] for each in penstock.json("groups", "ls", "--type", "share")["groups"]}


def _check_offsets(penstock: Penstock, tool: GroupTool, group: str) -> list[str]:
    """Check that both tools report the same; returns the lags."""
    columns = ("GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG")
    theirs = sorted(tuple(row[each] for each in columns) for row in tool.rows("--describe", "--group", group))
    printed = [line.split() for line in penstock("groups", "describe", group).out.splitlines()]
    assert tuple(printed[0][: len(columns)]) == columns
    assert sorted(tuple(line[: len(columns)]) for line in printed[1:]) == theirs
    return [row[-1] for row in theirs]


def _check_state(penstock: Penstock, tool: GroupTool, group: str) -> str:
    (theirs,) = tool.rows("--describe", "--group", group, "--state", "--verbose")
    penstocks = _reported(penstock, "groups", "describe", group, "--state")
    assert theirs["COORDINATOR"] == penstocks["coordinator"].replace(" ", "")
    assert (theirs["STATE"], int(theirs["#MEMBERS"])) == (penstocks["state"], penstocks["members"])
    assert (int(theirs["GROUP-EPOCH"]), int(theirs["ASSIGNMENT-EPOCH"])) == (
        penstocks["epoch"],
        penstocks["assignment_epoch"],
    )
    assert penstocks["type"] == "Share"
    return str(penstocks["state"])


def _check_members(penstock: Penstock, tool: GroupTool, group: str, topic: str) -> None:
    (theirs,) = tool.rows("--describe", "--group", group, "--members", "--verbose")
    (penstocks,) = _reported(penstock, "groups", "describe", group, "--members")["members"]
    assert (theirs["CONSUMER-ID"], theirs["HOST"], theirs["CLIENT-ID"]) == (
        penstocks["id"],
        penstocks["host"],
        penstocks["client"],
    )
    assert penstocks["rack"] == "room-2"
    assert penstocks["assignment"] == [[topic, number] for number in range(PARTITIONS)]
    assert theirs["ASSIGNMENT"] in penstock("groups", "describe", group, "--members").out


def _check_refusals(penstock: Penstock, tool: GroupTool, brokers: str, group: str, topic: str) -> None:
    """A group with members is not deleted, nor are the groups named with it. Other commands refuse share groups."""
    empty, states = f"{group}-empty", {"Stable": 1, "Empty": 0}
    left = Sharing(brokers, empty, topic)
    for state, members in states.items():

        def is_there(state: str = state) -> bool:
            found = penstock.json("groups", "ls", empty)["groups"]
            return [each["state"] for each in found] == [state]

        wait_for(is_there, f"{empty} to be {state}")
        assert _reported(penstock, "groups", "describe", empty, "--state")["members"] == members
        left.close()
    refused = penstock("groups", "rm", empty, group, "--yes", ok=False)
    assert (refused.code, f"Group {group!r} is active" in refused.err) == (1, True), refused
    assert "is not EMPTY" in tool("--delete", "--group", group)
    everything = {each["group"] for each in penstock.json("groups", "describe", "--all", "--state")["groups"]}
    assert {empty, group} <= everything
    penstock("groups", "rm", empty, "--yes")
    refused = penstock("plan", group, ok=False)
    assert (refused.code, f"{group!r} is a share group" in refused.err) == (1, True), refused
    refused = penstock("offsets", "reset", group, "--all-topics", "--to-earliest", "--execute", "--yes", ok=False)
    assert (refused.code, f"Group {group!r} is active (Stable)" in refused.err) == (1, True), refused


def _check_without_library(penstock: Penstock, patch: pytest.MonkeyPatch, group: str) -> None:
    """One line says what to install. Commands that do not need the library work."""
    patch.setitem(sys.modules, "kafka.errors", None)
    for module in WITH_LIBRARY:
        patch.delitem(sys.modules, module, raising=False)
    listed = penstock("groups", "ls", "--json")
    assert group not in {each["group"] for each in listed.json["groups"]}
    assert group in {each["group"] for each in penstock.json("groups", "ls", "--others")["groups"]}
    answers = [
        (listed, 0),
        (penstock("groups", "ls", "--type", "share", ok=False), 2),
        (penstock("groups", "describe", group, ok=False), 1),
        (penstock("groups", "rm", group, "--yes", ok=False), 1),
        (penstock("lag", group, ok=False), 1),
    ]
    for answer, code in answers:
        assert (answer.code, "pip install 'penstock[assignors]'" in answer.err) == (code, True), answer
