"""Without permission every command prints one line about it, ends with an exit code, and shows no password."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from acl_broker import LOOKER, NOBODY, PASSWORD, READER, broker_with_acls, login
from cli_helpers import Penstock, Sharing, set_offsets
from kafka_helpers import produce, wait_for
from penstock.kafka import Cluster
from penstock.ops.groups_of_any_kind import all_groups

# Commands that need permission to describe.
HIDDEN = [
    (["groups", "ls"], "The list of groups at"),
    (["groups", "ls", "--others"], "The list of groups at"),
    (["groups", "describe", "g"], "denied the group"),
    (["groups", "describe", "g", "--members"], "denied the group"),
    (["groups", "describe", "g", "--state"], "denied the group"),
    (["groups", "rm", "g", "--yes"], "denied the group"),
    (["groups", "ls", "--type", "share"], "The list of groups at"),
    (["groups", "describe", "shared"], "denied the group"),
    (["groups", "describe", "shared", "--members"], "denied the group"),
    (["groups", "rm", "shared", "--yes"], "denied the group"),
    (["lag", "shared"], "denied the group"),
    (["lag"], "The list of groups at"),
    (["lag", "g"], "denied the group"),
    (["lag", "g", "--watch"], "denied the group"),
    (["offsets", "reset", "g", "--topic", "t", "--to-earliest"], "denied the group"),
    (["offsets", "export", "g"], "denied the group"),
    (["offsets", "reset", "shared", "--topic", "t", "--to-earliest"], "denied the group"),
    (["offsets", "export", "shared"], "denied the group"),
    (["dlq", "ls"], "The list of topics at"),
    (["dlq", "ls", "t"], "denied describing topic t"),
    (["dlq", "show", "t"], "denied describing topic t"),
    (["dlq", "replay", "t"], "denied describing topic t"),
    (["topics", "ls"], "The list of topics at"),
    (["topics", "describe", "t"], "denied describing topic t"),
    (["topics", "create", "new"], "denied creating topic new"),
    (["topics", "keys", "t"], "denied describing topic t"),
    (["tail", "t"], "denied describing topic t"),
    (["produce", "t", "--generate", "1"], "denied describing topic t"),
]
# Commands that need more than the permission to describe.
SEEN = [
    (["groups", "rm", "g", "--yes"], "denied the group"),
    (["groups", "rm", "shared", "--yes"], "denied the group"),
    (["offsets", "reset", "g", "--topic", "t", "--to-earliest", "--execute", "--yes"], "denied"),
    (["offsets", "reset", "shared", "--topic", "t", "--to-earliest", "--execute", "--yes"], "denied the group"),
    (["dlq", "ls", "t"], "denied"),
    (["dlq", "show", "t"], "denied"),
    (["topics", "create", "new"], "denied creating topic new"),
    (["topics", "keys", "t"], "denied"),
    (["tail", "t"], "denied"),
    (["produce", "t", "--generate", "1"], "denied"),
]
ALLOWED = [
    ["groups", "ls"],
    ["groups", "describe", "g"],
    ["groups", "describe", "shared"],
    ["groups", "describe", "shared", "--members"],
    ["groups", "describe", "shared", "--state"],
    ["lag", "g"],
    ["lag", "shared"],
    ["topics", "ls"],
    ["topics", "describe", "t"],
    ["offsets", "export", "g"],
    ["offsets", "reset", "g", "--topic", "t", "--to-earliest"],
    ["offsets", "reset", "shared", "--topic", "t", "--to-earliest"],
]
APP = """
from penstock import App
app = App("g")

@app.consume("t", to="out")
def handle(value: int) -> int:
    return value
"""


@pytest.fixture(scope="module")
def listener(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The listener with logins of a broker that has a topic ``t``, a group ``g`` and a share group ``shared``."""
    with broker_with_acls(tmp_path_factory.mktemp("guarded")) as (everything, guarded):
        cluster = Cluster(everything)
        cluster.create_topics(["t", "out"], partitions=1)
        produce(everything, "t", range(5))
        set_offsets(cluster, "g", {("t", 0): 2})
        member = Sharing(everything, "shared", "t")
        wait_for(lambda: [each.state for each in all_groups(cluster)[0] if each.name == "shared"] == ["Stable"], "it")
        member.close()
        yield guarded


@pytest.fixture
def penstock(
    listener: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Penstock:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    return Penstock(listener, monkeypatch, capsys)


def check_refused(penstock: Penstock, command: list[str], user: str, reason: str) -> None:
    refused = penstock(*command, *login(user), ok=False)
    assert refused.code == 3, refused
    # It may print before what it is about to do.
    problem, hint = refused.err.strip().splitlines()[-2:]
    assert problem.startswith("error: ")
    assert reason in problem
    assert "ACL" in hint
    assert PASSWORD not in refused.out + refused.err


@pytest.mark.parametrize(
    ("command", "reason"), HIDDEN, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_a_login_without_permissions_gets_an_error_that_says_so(
    penstock: Penstock, command: list[str], reason: str
) -> None:
    check_refused(penstock, command, NOBODY, reason)


@pytest.mark.parametrize(
    ("command", "reason"), SEEN, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_a_login_with_only_describe_can_neither_read_nor_change(
    penstock: Penstock, command: list[str], reason: str
) -> None:
    check_refused(penstock, command, LOOKER, reason)


def test_a_login_with_describe_can_look(penstock: Penstock) -> None:
    for command in ALLOWED:
        penstock(*command, *login(LOOKER))


def test_a_wrong_password_is_an_error_that_does_not_show_it(penstock: Penstock) -> None:
    refused = penstock("lag", *login(NOBODY), "--set", "sasl.password=a wrong one", ok=False)
    assert refused.code == 3
    assert "a wrong one" not in refused.out + refused.err
    reported = penstock.json("topics", "describe", "t", *login(NOBODY), ok=False)
    assert "denied describing topic t" in reported["error"]["problem"]


@pytest.mark.parametrize(
    ("user", "reason"),
    [(NOBODY, "denied describing topic t"), (LOOKER, "denied the group"), (READER, "denied writing")],
)
def test_an_app_stops_with_the_reason(
    penstock: Penstock, user: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"shop_of_{user}"
    (tmp_path / f"{name}.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    settings = [
        word.replace("sasl.", "settings.sasl.").replace("security.", "settings.security.") for word in login(user)
    ]
    refused = penstock("run", f"{name}:app", *settings, ok=False)
    assert refused.code == 3
    assert f"error: The broker {reason}" in refused.err
    assert PASSWORD not in refused.out + refused.err
