"""What the local engine had finished ahead, as Spark reads it."""

from penstock.core.progress.offset_map import encode
from penstock.core.records.record import TopicPartition
from penstock.spark.finished import above, count, read_maps

A: TopicPartition = ("orders", 0)
B: TopicPartition = ("orders", 1)


def test_maps_are_read_from_the_group_s_commits_and_a_damaged_one_costs_a_warning() -> None:
    warnings: list[str] = []
    commits = {A: (10, encode(10, [(12, 15), (20, 21)]) or ""), B: (5, "written by somebody else"), ("x", 0): (3, "")}
    assert read_maps(commits, warnings.append) == {A: [(12, 15), (20, 21)]}
    (warning,) = warnings
    assert warning.startswith("The metadata of the commit orders[1]@5 is ignored")


def test_only_what_is_still_to_come_is_left_of_them() -> None:
    finished = {A: [(12, 15), (20, 21)], B: [(3, 9)]}
    assert count(finished) == 10
    assert above(finished, {A: 13, B: 9}) == {A: [(13, 15), (20, 21)]}
    assert above(finished, {}) == finished
    assert above(finished, {A: 21, B: 100}) == {}
