"""The recommendation of ``penstock lag --recommend``: what it is made of, what is not known, and its words."""

from dataclasses import replace

import pytest

from penstock.cli.console.recommendation_text import recommendation_json, recommendation_lines
from penstock.errors import StateError
from penstock.kafka.admin.consumer_groups import DescribedMember, GroupDescription
from penstock.ops.group_lag import GroupLag, PartitionLag
from penstock.ops.member_recommendation import (
    HandlerMeasured,
    Recommendation,
    handlers_measured,
    recommendations,
)
from penstock.ops.run_socket import MeasuredMember


def member(name: str, *tps: tuple[str, int]) -> DescribedMember:
    return DescribedMember(name, name, "host", None, tps, tps)


def group(*members: DescribedMember, arrivals: float | None = 100.0, behind: float | None = None) -> GroupLag:
    parts = [
        PartitionLag(*tp, committed=10, start=0, end=20, member=owner, rate_in=arrivals, rate_behind=behind)
        for owner in members
        for tp in owner.partitions
    ]
    return GroupLag(GroupDescription("shop", "classic", "Stable", "range", "", members), tuple(parts))


A, B = member("a", ("orders", 0), ("orders", 1)), member("b", ("orders", 2))
COUNTS = {"orders": 12, "returns": 4}
MEASURED = HandlerMeasured(frozenset({"orders"}), 2, service_seconds=0.1, concurrency=10, one_per_partition=False)
SHIP = MeasuredMember("shop", "ship", ["orders"], concurrency=10, records=50, seconds=5.0, one_per_partition=False)


def test_apps_of_this_machine_say_what_a_member_can_handle() -> None:
    (found,) = recommendations(group(A, B), [MEASURED], COUNTS)
    assert (found.load.rate_in, found.load.lag, found.load.members, found.load.partitions) == (300.0, 30, 2, 12)
    assert (found.recommended, found.rate_of_a_member, found.load.busy_share) == (5, 100.0, 1.5)
    assert recommendation_lines("shop", [found]) == [
        "TOPICS MEMBERS RECOMMENDED    IN LAG PER-MEMBER BUSY PARTITIONS",
        "orders       2           5 300/s  30      100/s 150%         12",
        "",
        (
            "shop should have 5 members; it has 2. A member can handle 100/s: 100 ms for a record, concurrency 10, "
            "measured by 2 members on this machine."
        ),
    ]


def test_without_them_the_commits_say_it_if_members_had_lag() -> None:
    (found,) = recommendations(group(A, B, behind=60.0), [], COUNTS)
    assert found.rate_of_a_member == pytest.approx(90.0), "120 and 60"
    assert found.recommended == 5
    assert (
        "A member can handle 90.0/s: so fast the group committed while it had lag."
        in recommendation_lines("shop", [found])[-1]
    )
    shown = recommendation_json("shop", [found])
    assert (shown["group"], shown["members"], shown["recommended"]) == ("shop", 2, 5)
    assert (shown["handlers"][0]["source"], shown["handlers"][0]["seconds_per_record"]) == ("commits", None)


@pytest.mark.parametrize("unknown", [group(A, B), group(A, behind=0.0), group(), group(A, arrivals=None)])
def test_without_both_there_is_no_number(unknown: GroupLag) -> None:
    with pytest.raises(StateError, match="is not known") as raised:
        recommendations(unknown, [], COUNTS)
    assert raised.value.hint


def test_each_handler_of_a_group_has_members_and_topics_of_its_own() -> None:
    clerk, idle = member("c", ("returns", 0)), member("d")
    first, second = recommendations(group(A, clerk, idle), [MEASURED], COUNTS)
    assert (first.topics, first.load.members, first.recommended) == (("orders",), 1, 3)
    assert (second.topics, second.load.members, second.recommended) == (("returns",), 1, None)
    lines = recommendation_lines("shop", [first, second])
    assert lines[-1] == "How much a member of shop on returns can handle is not known."
    assert recommendation_json("shop", [first, second])["recommended"] is None
    both = replace(MEASURED, topics=frozenset({"orders", "returns"}))
    (joined,) = recommendations(group(A, clerk, idle), [both], COUNTS)
    assert (joined.topics, joined.load.members, joined.load.partitions) == (("orders", "returns"), 3, 16)


def test_a_topic_without_an_owner_counts_only_if_there_are_no_members() -> None:
    old = PartitionLag("old", 0, committed=0, start=0, end=900, rate_in=50.0)
    there = group(A)
    (found,) = recommendations(replace(there, partitions=(*there.partitions, old)), [MEASURED], COUNTS)
    assert (found.topics, found.load.lag) == (("orders",), 20)
    stopped = replace(group(), partitions=tuple(replace(each, member=None) for each in there.partitions))
    (found,) = recommendations(stopped, [MEASURED], COUNTS)
    assert (found.load.members, found.recommended, found.load.busy_share) == (0, 3, None)


def test_a_partition_without_a_commit_counts_like_the_others_unless_it_is_empty() -> None:
    there = group(A, B)
    first, second, third = there.partitions
    fresh = replace(there, partitions=(first, replace(second, committed=None), third))
    (found,) = recommendations(fresh, [MEASURED], COUNTS)
    assert found.load.lag == 30
    empty = replace(there, partitions=(first, replace(second, committed=None, start=20), third))
    (found,) = recommendations(empty, [MEASURED], COUNTS)
    assert found.load.lag == 20
    none = replace(there, partitions=tuple(replace(each, committed=None) for each in there.partitions))
    (found,) = recommendations(none, [MEASURED], COUNTS)
    assert found.load.lag == 0


def test_the_mean_of_the_last_moment_counts_if_it_has_enough_records() -> None:
    few, many = replace_(records=149, seconds=500.0), replace_(records=150, seconds=505.0)
    assert handlers_measured([SHIP], [few])[0].service_seconds == pytest.approx(500 / 149)
    assert handlers_measured([SHIP], [many])[0].service_seconds == 5.0
    assert handlers_measured([SHIP, replace_(records=0, seconds=0.0)], [many])[0].service_seconds == pytest.approx(
        505 / 150
    ), "one has ended"
    assert handlers_measured([], [replace_(records=0, seconds=0.0)]) == []
    pair = handlers_measured(
        [], [SHIP, MeasuredMember("shop", "ship", ["more"], 30, 150, 15.0, one_per_partition=True)]
    )
    assert pair == [HandlerMeasured(frozenset({"orders", "more"}), 2, 0.1, 20, one_per_partition=False)]


def replace_(*, records: int, seconds: float) -> MeasuredMember:
    return MeasuredMember("shop", "ship", ["orders"], 10, records, seconds, one_per_partition=False)


@pytest.mark.parametrize(
    ("members", "arrivals", "words"),
    [
        (5, 300.0, "shop should have 5 members, as it has."),
        (9, 300.0, "5 members are enough for shop; it has 9."),
        (3, 1.0, "1 member is enough for shop; it has 3."),
        (0, 1.0, "shop should have 1 member; it has 0."),
        (2, 9_000.0, " The work needs 129, but 12 is the limit with 12 partitions."),
    ],
)
def test_the_words_fit_the_numbers(members: int, arrivals: float, words: str) -> None:
    (found,) = recommendations(group(A, B), [MEASURED], COUNTS)
    found = Recommendation(("or\x1bders",), replace(found.load, rate_in=arrivals, lag=0, members=members), MEASURED)
    shown = "\n".join(recommendation_lines("shop", [found]))
    assert words in shown
    assert "\x1b" not in shown
