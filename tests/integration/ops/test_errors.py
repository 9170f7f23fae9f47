"""Every command reports an error in one clear line, with an exit code."""

import socket
from collections.abc import Iterator

import pytest

from cli_helpers import Penstock
from kafka_helpers import MakeTopic

COMMANDS = [
    ["groups", "ls"],
    ["groups", "describe", "g"],
    ["groups", "describe", "g", "--members"],
    ["groups", "describe", "g", "--state"],
    ["groups", "rm", "g", "--yes"],
    ["lag"],
    ["lag", "g"],
    ["lag", "g", "--watch"],
    ["offsets", "reset", "g", "--topic", "t", "--to-earliest"],
    ["offsets", "undo", "g"],
    ["offsets", "export", "g"],
    ["dlq", "ls"],
    ["dlq", "ls", "t"],
    ["dlq", "show", "t"],
    ["dlq", "replay", "t"],
    ["topics", "ls"],
    ["topics", "describe", "t"],
    ["topics", "create", "t"],
    ["topics", "keys", "t"],
    ["tail", "t"],
    ["produce", "t", "--generate", "1"],
]
WRONG_GROUP = [
    ["groups", "describe", "{}"],
    ["groups", "describe", "{}", "--members"],
    ["groups", "describe", "{}", "--state"],
    ["groups", "rm", "{}", "--yes"],
    ["lag", "{}"],
    ["offsets", "reset", "{}", "--all-topics", "--to-earliest"],
    ["offsets", "undo", "{}"],
    ["offsets", "export", "{}"],
]
WRONG_TOPIC = [
    ["dlq", "ls", "{}"],
    ["dlq", "show", "{}"],
    ["dlq", "replay", "{}"],
    ["topics", "describe", "{}"],
    ["topics", "keys", "{}"],
    ["tail", "{}"],
    ["produce", "{}", "--generate", "1"],
]
WRONG_FLAG = [
    ["groups", "ls", "--nope"],
    ["groups", "describe", "g", "--members", "--state"],
    ["groups", "describe"],
    ["lag", "--window", "soon"],
    ["offsets", "reset", "g"],
    ["offsets", "reset", "g", "--to-earliest"],
    ["offsets", "reset", "g", "--all-topics", "--to-earliest", "--to-latest"],
    ["offsets", "reset", "--all-topics", "--to-earliest"],
    ["offsets", "reset", "g", "--topic", "t:x", "--to-earliest"],
    ["offsets", "reset", "g", "--all-topics", "--to-datetime", "noon"],
    ["offsets", "import", "g", "/nowhere/to/be.csv"],
    ["dlq", "show", "t", "--at", "seven"],
    ["dlq", "show", "t", "--where", "value["],
    ["dlq", "replay", "t", "--edit"],
    ["dlq", "show", "t", "--since", "noon"],
    ["topics", "create", "t", "--with", "retention"],
    ["tail", "t", "--last", "1", "--offset", "1"],
    ["produce", "t", "/nowhere/to/be.txt"],
    ["produce", "t", "--key", "k"],
    ["lag", "--set", "nope.nope=1"],
    ["lag", "--config", "/nowhere/penstock.toml"],
]


def name_of(command: list[str]) -> str:
    return " ".join(command)


def check(penstock: Penstock, *arguments: str, mentions: str = "") -> int:
    refused = penstock(*arguments, ok=False)
    assert refused.code != 0
    assert refused.err.startswith("error: ")
    assert "Traceback" not in refused.err
    assert len(refused.err.strip().splitlines()) <= 2, refused.err
    assert mentions in refused.err
    asked_for_json = penstock.json(*arguments, ok=False)
    assert asked_for_json["error"]["problem"]
    return refused.code


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A server that accepts connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield int(listening.getsockname()[1])


@pytest.mark.parametrize("command", COMMANDS, ids=name_of)
def test_no_broker(
    command: list[str], closed_port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    penstock = Penstock(f"127.0.0.1:{closed_port}", monkeypatch, capsys)
    assert check(penstock, *command, mentions=f"127.0.0.1:{closed_port}") == 3


def test_a_broker_that_never_answers(
    silent_port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    penstock = Penstock(f"127.0.0.1:{silent_port}", monkeypatch, capsys)
    refused = penstock("lag", "g", ok=False)
    assert refused.code == 3
    assert "No Kafka broker answers" in refused.err


@pytest.mark.parametrize("command", WRONG_GROUP, ids=name_of)
def test_a_group_that_does_not_exist(penstock: Penstock, group: str, command: list[str]) -> None:
    assert check(penstock, *(word.format(group) for word in command), mentions=group) == 1


@pytest.mark.parametrize("command", WRONG_TOPIC, ids=name_of)
def test_a_topic_that_does_not_exist(penstock: Penstock, make_topic: MakeTopic, command: list[str]) -> None:
    topic = make_topic()
    misspelled = f"{topic}x"
    assert check(penstock, *(word.format(misspelled) for word in command), mentions=f"Did you mean {topic!r}?") == 4


@pytest.mark.parametrize("command", WRONG_FLAG, ids=name_of)
def test_a_wrong_flag(penstock: Penstock, command: list[str]) -> None:
    assert check(penstock, *command) == 2
