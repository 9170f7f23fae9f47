"""The page of plans: the command line that it offers, and what it refuses to compute."""

import shlex
from collections.abc import Mapping

import pytest

from penstock.assign import ASSIGNORS, Group, Member, Topic
from penstock.dashboard.feed.cluster_connection import ClusterConnection
from penstock.dashboard.feed.feed_source import DashboardContext
from penstock.dashboard.pages import whatif_page
from penstock.errors import ConfigError
from penstock.ops.group_plans import PlannedGroup

OWNED = (("orders", 0), ("orders", 1))
GROUP = Group((Member(id="a", topics=("orders",), owned=OWNED, client="shop"),), {"orders": Topic(2, lag=(5, 0))})


def answer(monkeypatch: pytest.MonkeyPatch, given: Mapping[str, object], group: Group = GROUP) -> dict[str, object]:
    def refuse() -> None:
        raise AssertionError

    monkeypatch.setattr(whatif_page, "look_to_plan", lambda *_: PlannedGroup(group, assignor="sticky"))
    context = DashboardContext(ClusterConnection(refuse), allow_writes=False, note=print)  # type: ignore[arg-type]
    monkeypatch.setattr(context.connection, "cluster", lambda: None)
    (endpoint,) = whatif_page.PAGE.endpoints
    found: dict[str, object] = endpoint.answer(context, {"name": "shipping", **given})
    return found


def test_the_plan_comes_with_its_command_and_with_all_assignors(monkeypatch: pytest.MonkeyPatch) -> None:
    found = answer(monkeypatch, {"members": ["+1"], "partitions": {"orders": 4}, "assignor": "range"})
    assert found["command"] == "penstock plan shipping --assignor range --members +1 --partitions orders=4"
    assert [each["assignor"] for each in found["others"]] == list(ASSIGNORS)  # type: ignore[attr-defined]
    assert found["plan"]["moves"][-1]["why"] == "new"  # type: ignore[index]
    assert found["labels"] == {"a": "shop", "new-1": "new-1"}


def test_a_group_without_members_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = Group((), {"orders": Topic(2)})
    assert answer(monkeypatch, {}, empty)["empty"] is True
    assert len(answer(monkeypatch, {"members": ["+2"]}, empty)["plan"]["moves"]) == 2  # type: ignore[index]


@pytest.mark.parametrize("given", [{"members": ["+2000"]}, {"members": ["=5000"]}, {"partitions": {"orders": 20_001}}])
def test_plans_that_would_keep_the_server_busy_are_refused(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, object]
) -> None:
    with pytest.raises(ConfigError, match="at most"):
        answer(monkeypatch, given)


@pytest.mark.parametrize(
    "given",
    [
        {"members": 3},
        {"members": "+3"},
        {"members": ["=" + "9" * 5_000]},
        {"partitions": ["orders"]},
        {"partitions": {"orders": "many"}},
        {"partitions": {"orders": None}},
        {"partitions": {"orders": 10**12, "returns": -(10**12)}},
        {"by": ["lag"]},
        {"assignor": {"name": "range"}},
    ],
)
def test_a_request_that_no_page_sends_is_refused(monkeypatch: pytest.MonkeyPatch, given: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        answer(monkeypatch, given)


@pytest.mark.parametrize("name", ["shipping", "-odd", "two words; rm *"])
def test_the_command_line_quotes_any_name(name: str) -> None:
    line = whatif_page.plan_command_line(
        name, brokers="k:9092", assignor=None, by="rate", members=["-a b"], partitions={"t'": 3}
    )
    words = shlex.split(line)
    assert (words[:2], words.count(name)) == (["penstock", "plan"], 1)
    assert not name.startswith("-") or words[-2:] == ["--", name]
    assert {"-a b", "t'=3", "k:9092"} <= set(words)
