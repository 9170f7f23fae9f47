"""Share groups: shown as Kafka's own tool shows them, deleted when they are empty, refused while they are not."""

import sys
from typing import Any

import pytest

from bed import MakeTopic, Running, produce, wait_for
from group_tool import GroupTool, GroupTools
from ops_bed import Penstock, Sharing
from penstock import App

PARTITIONS = 3
WITH_LIBRARY = ("penstock.kafka.wire", "penstock.kafka.coordinator", "penstock.kafka.share_groups")


@pytest.fixture
def tool(kafkas_tools: GroupTools) -> GroupTool:
    return kafkas_tools.shared


def test_a_queue_of_ours_from_its_first_record_to_its_end(
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
    (told,) = stopped.json["groups"]
    assert (told["type"], told["lag"], told["lost"], told["status"]) == ("Share", 3, 0, "STOP")
    assert 0 <= told["lag_seconds"] < 60
    assert group in penstock("lag", "-p", ok=False).out
    assert penstock.json("groups", "rm", group, "--yes") == {"deleted": [group], "failed": {}}
    assert group not in tool("--list").split()
    gone = penstock("groups", "describe", group, ok=False)
    assert (gone.code, f"There is no group {group!r}" in gone.err) == (1, True), gone


def _lags(penstock: Penstock, group: str) -> list[int | None]:
    """None before there is such a group."""
    answer = penstock("lag", group, "--json", ok=False)
    return [each["lag"] for each in answer.json["groups"][0]["partitions"]] if answer.code == 0 else []


def _told(penstock: Penstock, *arguments: str) -> dict[str, Any]:
    (found,) = penstock.json(*arguments)["groups"]
    assert isinstance(found, dict)
    return found


def _check_lists(penstock: Penstock, tool: GroupTool, group: str) -> None:
    listed = {each["group"]: each for each in penstock.json("groups", "ls", "--type", "share")["groups"]}
    assert set(tool("--list").split()) == set(listed)
    states = {row["GROUP"]: row["STATE"] for row in tool.rows("--list", "--state")}
    assert states == {name: each["state"] for name, each in listed.items()}
    assert penstock.json("groups", "ls", group)["groups"] == [listed[group]]


def _check_offsets(penstock: Penstock, tool: GroupTool, group: str) -> list[str]:
    """That both say the same; returns the lags."""
    columns = ("GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG")
    theirs = sorted(tuple(row[each] for each in columns) for row in tool.rows("--describe", "--group", group))
    printed = [line.split() for line in penstock("groups", "describe", group).out.splitlines()]
    assert tuple(printed[0][: len(columns)]) == columns
    assert sorted(tuple(line[: len(columns)]) for line in printed[1:]) == theirs
    return [row[-1] for row in theirs]


def _check_state(penstock: Penstock, tool: GroupTool, group: str) -> str:
    (theirs,) = tool.rows("--describe", "--group", group, "--state", "--verbose")
    ours = _told(penstock, "groups", "describe", group, "--state")
    assert theirs["COORDINATOR"] == ours["coordinator"].replace(" ", "")
    assert (theirs["STATE"], int(theirs["#MEMBERS"])) == (ours["state"], ours["members"])
    assert (int(theirs["GROUP-EPOCH"]), int(theirs["ASSIGNMENT-EPOCH"])) == (ours["epoch"], ours["assignment_epoch"])
    assert ours["type"] == "Share"
    return str(ours["state"])


def _check_members(penstock: Penstock, tool: GroupTool, group: str, topic: str) -> None:
    (theirs,) = tool.rows("--describe", "--group", group, "--members", "--verbose")
    (ours,) = _told(penstock, "groups", "describe", group, "--members")["members"]
    assert (theirs["CONSUMER-ID"], theirs["HOST"], theirs["CLIENT-ID"]) == (ours["id"], ours["host"], ours["client"])
    assert ours["rack"] == "room-2"
    assert ours["assignment"] == [[topic, number] for number in range(PARTITIONS)]
    assert theirs["ASSIGNMENT"] in penstock("groups", "describe", group, "--members").out


def _check_refusals(penstock: Penstock, tool: GroupTool, brokers: str, group: str, topic: str) -> None:
    """A live one is not deleted, nor what was named with it; nor is it what other commands are for."""
    empty, states = f"{group}-empty", {"Stable": 1, "Empty": 0}
    left = Sharing(brokers, empty, topic)
    for state, members in states.items():

        def is_there(state: str = state) -> bool:
            found = penstock.json("groups", "ls", empty)["groups"]
            return [each["state"] for each in found] == [state]

        wait_for(is_there, f"{empty} to be {state}")
        assert _told(penstock, "groups", "describe", empty, "--state")["members"] == members
        left.close()
    refused = penstock("groups", "rm", empty, group, "--yes", ok=False)
    assert (refused.code, f"Group {group!r} is active" in refused.err) == (1, True), refused
    assert "is not EMPTY" in tool("--delete", "--group", group)
    everything = {each["group"] for each in penstock.json("groups", "describe", "--all", "--state")["groups"]}
    assert {empty, group} <= everything
    penstock("groups", "rm", empty, "--yes")
    for command in (["plan"], ["offsets", "reset", "--all-topics", "--to-earliest"]):
        refused = penstock(*command, group, ok=False)
        assert (refused.code, f"{group!r} is a share group" in refused.err) == (1, True), refused


def _check_without_library(penstock: Penstock, patch: pytest.MonkeyPatch, group: str) -> None:
    """One line says what to install, and what needs no library goes on."""
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
