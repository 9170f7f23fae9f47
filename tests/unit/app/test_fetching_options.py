"""Options that decide what a handler consumes, where it starts and how it joins its group."""

from datetime import UTC, datetime
from typing import Any

import pytest

from penstock import App
from penstock.app import Handler
from penstock.app.options.consume_options import matches
from penstock.assign import CooperativeSticky, Sticky
from penstock.errors import ConfigError, StateError
from penstock.kafka.client.clients import consumer_config, member_settings


def nothing(value: bytes) -> None: ...
async def later(tps: list[tuple[str, int]]) -> None: ...


def handler(*topics: str, **options: Any) -> Handler:
    app = App("shop")
    app.consume(*topics, **options)(nothing)
    return app.handlers[0]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"pattern": "a.*", "partitions": [("a", 0)]}, "it has pattern and partitions"),
        ({"pattern": "(a"}, "is not a regular expression"),
        ({"pattern": 5}, "is not a regular expression"),
        ({"pattern": r"a\d+"}, r"uses '\\d'"),
        ({"pattern": "(?:a)"}, "uses '(?'"),
        ({"pattern": "a.*?"}, "uses '*?'"),
        ({"pattern": "a.*", "dead_letter": "a.dlq"}, "dead_letter='a.dlq' is also its source"),
        ({"partitions": ["a"]}, "does not list partitions"),
        ({"partitions": [("a", -1)]}, "does not list partitions"),
        ({"partitions": [("a", 0)], "members": 2}, "members= has no effect with partitions="),
        ({"partitions": [("a", 0)], "static_id": "x"}, "static_id= has no effect with partitions="),
        ({"partitions": [("a", 0)], "assignor": "range"}, "assignor= has no effect with partitions="),
        ({"partitions": [("a", 0)], "protocol": "consumer"}, "protocol= has no effect with partitions="),
        ({"partitions": [("a", 0)], "to": "a"}, "to='a' is also its source"),
    ],
)
def test_sources_that_cannot_work_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        handler(**options)
    assert problem in caught.value.problem
    assert caught.value.hint


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"pattern": "b.*"}, "it has topics and pattern"),
        ({"protocol": "new"}, "protocol='new'"),
        ({"assignor": "uniform"}, "no assignor named 'uniform'"),
        ({"assignor": "stiky"}, "no assignor named 'stiky'"),
        ({"assignor": ["sticky", "stiky"]}, "no assignor named 'stiky'"),
        ({"assignor": "sticky", "protocol": "consumer"}, "protocol='consumer' has no assignor="),
        ({"assignor": Sticky(), "protocol": "consumer"}, "protocol='consumer' has no assignor="),
        ({"assignor": 5}, "assignor=5 is not an assignor"),
        ({"assignor": []}, "is empty"),
        ({"assignor": ["sticky", Sticky()]}, "lists an assignor twice"),
        ({"assignor": "roundrobin", "protocol": "consumer"}, "protocol='consumer' has no assignor="),
        (
            {"protocol": "consumer", "settings": {"session.timeout.ms": 9}},
            "the broker decides the setting 'session.timeout.ms'",
        ),
        (
            {"protocol": "consumer", "settings": {"heartbeat.interval.ms": 9}},
            "the broker decides the setting 'heartbeat.interval.ms'",
        ),
        ({"static_id": ""}, "static_id=''"),
        ({"rack": 5}, "rack=5"),
        ({"start": "middle"}, "start='middle'"),
        ({"start": {}}, "start={}"),
        ({"start": {("a", 0): -1}}, "is not a position in a log"),
        ({"start": datetime(2025, 1, 31)}, "has no time zone"),  # noqa: DTZ001 - that is the point
        ({"from_": "middle"}, "from_='middle'"),
        ({"from_": {"a": 1}}, "is not a position in a log"),
        ({"on_assigned": 5}, "on_assigned=5 is not a function"),
        ({"on_revoked": later}, "on_revoked is async"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        handler("a", **options)
    assert problem in caught.value.problem
    assert caught.value.hint


@pytest.mark.parametrize("assignor", ["sticky", Sticky(), ["lag-balanced", "range"], "range", None])
def test_exactly_once_goes_with_every_assignor(assignor: Any) -> None:
    assert handler("a", assignor=assignor, delivery="exactly-once").is_exactly_once


def test_all_kinds_of_starts_are_taken() -> None:
    for start in ("earliest", "latest", datetime(2025, 1, 31, tzinfo=UTC), {("a", 0): 5, ("a", 1): 0}):
        assert handler("a", start=start, from_=start).start == start


def test_a_pattern_stands_for_whole_names_and_no_internal_ones() -> None:
    assert matches(r"orders\..*", "orders.north")
    assert not matches(r"orders\..*", "my.orders.north")
    assert not matches(r"orders", "orders.north")
    assert not matches(r".*", "__consumer_offsets")


def test_a_handler_says_in_words_what_it_consumes() -> None:
    assert handler("a", "b").source == "a, b"
    assert handler(pattern="a.*").source == "topics like a.*"
    assert handler(partitions=[("a", 0), ("a", 2)]).source == "a[0], a[2]"


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        ({"pattern": "a.*"}, {"topics": ["ab"]}, "both consume 'ab'"),
        ({"topics": ["ab"]}, {"pattern": "a.*"}, "both consume 'ab'"),
        ({"partitions": [("a", 0)]}, {"topics": ["a"]}, "both consume 'a'"),
        ({"partitions": [("a", 0)]}, {"partitions": [("a", 0)]}, "consume ('a', 0) twice"),
        ({"partitions": [("a", 0)]}, {"topics": ["b"]}, "both named and assigned partitions"),
        ({"topics": ["a"], "static_id": "x"}, {"topics": ["b"], "static_id": "x"}, "both have the static_id 'x'"),
    ],
)
def test_handlers_of_one_group_leave_each_other_alone(
    first: dict[str, Any], second: dict[str, Any], problem: str
) -> None:
    app = App("shop")
    app.consume(*first.pop("topics", []), **first)(nothing)
    with pytest.raises(ConfigError) as caught:
        app.consume(*second.pop("topics", []), **second)(nothing)
    assert problem in caught.value.problem


def test_two_handlers_may_share_out_the_partitions_of_a_topic() -> None:
    app = App("shop")
    app.consume(partitions=[("a", 0)])(nothing)
    app.consume(partitions=[("a", 1)])(nothing)
    assert len(app.handlers) == 2


def test_membership_becomes_client_settings() -> None:
    assert member_settings(handler("a"), 0) == {
        "group.protocol": "classic",
        "partition.assignment.strategy": "cooperative-sticky",
    }
    assert member_settings(handler("a", assignor="range", static_id="x", rack="r1"), 0) == {
        "group.protocol": "classic",
        "partition.assignment.strategy": "range",
        "group.instance.id": "x",
        "client.rack": "r1",
    }
    several = handler("a", protocol="consumer", assignor="uniform", static_id="x", members=3)
    assert member_settings(several, 2) == {
        "group.protocol": "consumer",
        "group.remote.assignor": "uniform",
        "group.instance.id": "x-2",
    }


def test_an_assignor_that_the_client_lacks_makes_a_self_managed_member_and_the_client_only_fetches() -> None:
    for native in (None, "range", "roundrobin", "cooperative-sticky", ["range"]):
        assert not handler("a", assignor=native).is_self_managed
    for name, cooperates in (("sticky", False), ("lag-balanced", True), (CooperativeSticky(), True)):
        chosen = handler("a", assignor=name, static_id="x", rack="r1")
        assert (chosen.is_self_managed, chosen.cooperates) == (True, cooperates)
        assert member_settings(chosen, 0) == {"client.rack": "r1"}
    # A member that votes for an eager assignor too must be eager, because that assignor may win the vote.
    several = handler("a", assignor=["cooperative-sticky", "range"])
    assert ([each.name for each in several.assignors], several.cooperates) == (["cooperative-sticky", "range"], False)


def test_only_what_the_guarantees_do_not_stand_on_can_be_set() -> None:
    config = consumer_config("b:1", "g", settings={"topic.metadata.refresh.interval.ms": 500}, member={}, reset="error")
    assert config["topic.metadata.refresh.interval.ms"] == 500
    assert (config["auto.offset.reset"], config["enable.auto.commit"]) == ("error", False)
    for name in ("group.instance.id", "partition.assignment.strategy", "group.protocol", "group.remote.assignor"):
        with pytest.raises(ConfigError, match="reserved for Penstock"):
            consumer_config("b:1", "g", settings={name: "x"}, member={}, reset="error")


def test_an_app_that_does_not_run_says_so() -> None:
    app = App("shop")
    with pytest.raises(StateError, match="App 'shop' is not running"):
        app.progress()
    with pytest.raises(StateError, match="App 'shop' is not running"):
        app.commit({("a", 0): 1})


def test_members_that_commit_each_record_learn_of_rebalances_soon() -> None:
    often = {"heartbeat.interval.ms": 500}
    assert often.items() <= member_settings(handler("a", commit="record"), 0).items()
    own = handler("a", commit="record", settings={"heartbeat.interval.ms": 2_000})
    for other in (own, handler("a"), handler("a", commit="record", protocol="consumer")):
        assert "heartbeat.interval.ms" not in member_settings(other, 0)
