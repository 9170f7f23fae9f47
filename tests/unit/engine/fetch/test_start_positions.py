"""Where fetching goes on when the log does not have an offset."""

from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from penstock import App
from penstock.engine.fetch.start_positions import find_new_position

PLACE = ("orders", 0)


class Log:
    """A consumer that only knows where one log begins and ends."""

    def __init__(self, low: int, high: int) -> None:
        self._low, self._high = low, high

    def offsets_for_times(self, asked: list[TopicPartition], **_: float) -> list[TopicPartition]:
        return [
            TopicPartition(each.topic, each.partition, self._low if each.offset == OFFSET_BEGINNING else self._high)
            for each in asked
        ]


def moved_to(offset: int, **options: Any) -> tuple[int, int]:
    app = App("shop")
    app.consume("orders", **options)(print_it)
    found = find_new_position(Log(5, 50), app.handlers[0], PLACE, offset)
    return found.moved_to, found.skipped


def print_it(value: bytes) -> None: ...


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_from_above_the_end_goes_on_at_the_end_and_replays_nothing(start: str) -> None:
    assert moved_to(1_000, from_={PLACE: 1_000}, start=start) == (50, 45)


def test_a_start_above_the_end_does_too() -> None:
    assert moved_to(1_000, start={PLACE: 1_000}) == (50, 45)


def test_an_offset_of_a_log_that_was_recreated_goes_on_as_start_says() -> None:
    assert moved_to(1_000, start="earliest") == (5, 0)
    assert moved_to(1_000, start="latest") == (50, 45)
    assert moved_to(1_000, start="earliest", from_={PLACE: 7}) == (5, 0)


def test_what_retention_has_removed_is_passed_over_up_to_the_first_record() -> None:
    assert moved_to(2, from_={PLACE: 2}) == (5, 3)
