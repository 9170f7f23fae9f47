"""Remedies for topics in which a few keys have most of the records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.records.key_skew_rules import KeyCount, KeySurvey, Remedy, fullest_if, remedies, salts_for
from penstock.core.records.partitioner import partition_for


def survey(keys: dict[str, int], *, partitions: int = 6, others: int = 0, unkeyed: int = 0) -> KeySurvey:
    """``others`` are records of rare keys or without a key, which are spread evenly."""
    counts = [(others + unkeyed) // partitions] * partitions
    found = []
    for key, count in sorted(keys.items(), key=lambda each: -each[1]):
        home = partition_for(key.encode(), partitions)
        counts[home] += count
        found.append(KeyCount(key.encode(), count, count, (home,)))
    return KeySurvey("orders", tuple(counts), tuple(found), unkeyed, len(keys))


def fitting(found: KeySurvey) -> list[str]:
    return [each.name for each in remedies(found) if each.fits]


def named(found: KeySurvey, name: str) -> Remedy:
    return next(each for each in remedies(found) if each.name == name)


EVEN = {f"customer-{number}": 10 for number in range(3_000)}


def in_partition(number: int, *, partitions: int, count: int) -> list[str]:
    names = (f"key-{at}" for at in range(10_000))
    return [name for name in names if partition_for(name.encode(), partitions) == number][:count]


def test_an_even_topic_needs_nothing() -> None:
    assert fitting(survey(EVEN)) == []
    assert fitting(survey({}, others=6_000)) == []


def test_one_hot_key_is_helped_by_giving_up_its_order_or_by_salts() -> None:
    found = survey({"whale": 9_000, **EVEN})
    assert fitting(found) == ["no order, or a share group", "salted keys"]
    assert "stays in one partition" in named(found, "more partitions").why
    assert "stays one lane" in named(found, "order by key").why
    salted = fullest_if(found, partitions=6, salts=salts_for(found))
    assert salted < 0.7 * found.fullest
    assert named(found, "salted keys").commands == (f"penstock topics keys orders --salt {salts_for(found)}",)


def test_many_warm_keys_in_one_partition_are_helped_by_lanes_by_key_and_by_more_partitions() -> None:
    warm = dict.fromkeys(in_partition(2, partitions=6, count=40), 60)
    found = survey({**warm, **{f"customer-{number}": 1 for number in range(3_000)}})
    assert fitting(found)[:2] == ["order by key", "more partitions"]
    assert "salted keys" not in fitting(found)
    assert fullest_if(found, partitions=12) < found.fullest


def test_keys_of_other_partitioners_are_not_predicted() -> None:
    whole = survey(EVEN)
    moved = tuple(KeyCount(each.key, each.least, each.most, (0, 1)) for each in whole.keys)
    found = KeySurvey("orders", (30_000, 0, 0, 0, 0, 0), moved)
    assert len(found.strays) == len(EVEN)
    assert "more partitions" not in fitting(found)


def test_records_without_keys_lose_nothing_without_an_order() -> None:
    found = KeySurvey("orders", (900, 50, 50), (), unkeyed=1_000)
    assert fitting(found) == ["no order, or a share group"]
    assert "no order is lost" in named(found, "no order, or a share group").why


@pytest.mark.parametrize("partitions", [1, 2, 3, 12, 100])
def test_every_remedy_has_a_reason_a_price_and_a_command(partitions: int) -> None:
    for each in remedies(survey({"whale": 90, "cod": 10}, partitions=partitions)):
        assert each.why.endswith(".")
        assert each.costs.endswith(".")
        assert each.commands


@given(st.dictionaries(st.text(max_size=5), st.integers(1, 1_000), min_size=1), st.integers(1, 30))
def test_the_prediction_for_the_present_number_of_partitions_is_the_present_distribution(
    keys: dict[str, int], partitions: int
) -> None:
    found = survey(keys, partitions=partitions)
    assert fullest_if(found, partitions=partitions) == pytest.approx(found.fullest)
    assert found.strays == ()


@given(st.dictionaries(st.text(max_size=5), st.integers(1, 1_000), min_size=1), st.integers(1, 30), st.integers(0, 500))
def test_skewed_topics_have_a_remedy_and_others_have_none(keys: dict[str, int], partitions: int, others: int) -> None:
    found = survey(keys, partitions=partitions, others=others)
    assert bool(fitting(found)) == (found.has_hot_key or not found.is_even)
