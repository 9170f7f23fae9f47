"""The check of a run finds lost, repeated and unknown outputs."""

from collections import Counter

from chaos_once.sinks import compared, outputs_compared


def test_missing_repeated_and_unknown_outputs_are_named() -> None:
    assert compared("it", Counter(range(10)), 10, once=True) == []
    assert compared("it", Counter([0, 1, 1, 2, 2, 2]), 4, once=True) == [
        "it: 1 of 4 are missing",
        "it: 3 of 4 are there again",
    ]
    assert compared("it", Counter([0, 1, 7]), 2, once=False) == ["it: 1 of 2 are of no record"]
    assert compared("it", Counter([0, 0, 1]), 2, once=False) == [], "a queue may repeat"


def test_a_record_with_some_of_its_outputs_is_found() -> None:
    twice = Counter(dict.fromkeys(range(5), 2))
    assert outputs_compared("it", [Counter(range(5)), twice], 5) == []
    assert outputs_compared("it", [Counter([0, 1, 1, 2]), Counter({0: 2, 1: 2, 2: 1, 3: 2})], 4) == [
        "it, first topic: 1 of 4 are missing",
        "it, first topic: 1 of 4 are there again",
        "it, second topic: 1 records have 1 of their 2 outputs",
        "it: 1 records have some of their outputs only",
    ]
