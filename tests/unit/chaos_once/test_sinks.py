"""The check of a run finds lost, repeated and unknown outputs."""

from collections import Counter

from chaos_once.sinks import compared


def test_missing_repeated_and_unknown_outputs_are_named() -> None:
    assert compared("it", Counter(range(10)), 10, once=True) == []
    assert compared("it", Counter([0, 1, 1, 2, 2, 2]), 4, once=True) == [
        "it: 1 of 4 are missing",
        "it: 3 of 4 are there again",
    ]
    assert compared("it", Counter([0, 1, 7]), 2, once=False) == ["it: 1 of 2 are of no record"]
    assert compared("it", Counter([0, 0, 1]), 2, once=False) == [], "a queue may repeat"
