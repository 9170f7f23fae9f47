"""The target of a reset, and the records that it repeats or skips."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.progress.reset_rules import Effect, LogBounds, Scenario, To, effect, target
from penstock.errors import ConfigError

LOG = LogBounds(start=10, end=100)


@pytest.mark.parametrize(
    ("scenario", "committed", "expected"),
    [
        (Scenario(To.EARLIEST), 50, 10),
        (Scenario(To.LATEST), 50, 100),
        (Scenario(To.CURRENT), 50, 50),
        (Scenario(To.CURRENT), None, 100),
        (Scenario(To.CURRENT), 5, 5),
        (Scenario(To.OFFSET, 70), 50, 70),
        (Scenario(To.OFFSET, 5), 50, 10),
        (Scenario(To.OFFSET, 500), None, 100),
        (Scenario(To.SHIFT, -7), 50, 43),
        (Scenario(To.SHIFT, -70), 50, 10),
        (Scenario(To.SHIFT, 70), 50, 100),
    ],
)
def test_each_scenario_leads_where_kafkas_tool_goes(scenario: Scenario, committed: int | None, expected: int) -> None:
    assert target(scenario, LOG, committed, tp="orders-0").offset == expected


def test_a_time_resets_to_the_first_record_from_then_on_or_to_the_end() -> None:
    assert target(Scenario(To.TIME, 1), LogBounds(10, 100, at_time=42), 50, tp="orders-0").offset == 42
    assert target(Scenario(To.TIME, 1), LOG, 50, tp="orders-0").offset == 100


def test_an_offset_that_the_log_does_not_have_is_reported() -> None:
    assert target(Scenario(To.OFFSET, 500), LOG, 50, tp="orders-0").note == "500 is past the end"
    assert target(Scenario(To.OFFSET, 5), LOG, 50, tp="orders-0").note == "5 is before the start"


def test_a_partition_without_a_commit_cannot_be_shifted() -> None:
    with pytest.raises(ConfigError, match="orders-0 cannot be shifted"):
        target(Scenario(To.SHIFT, 1), LOG, None, tp="orders-0")


def test_an_offset_map_is_counted_in_what_is_repeated_and_not_in_what_is_skipped() -> None:
    finished = [(52, 55), (60, 61)]
    assert effect(50, 40, LOG, finished) == Effect(repeated=14, skipped=0)
    assert effect(50, 50, LOG, finished) == Effect(repeated=4, skipped=0)
    assert effect(50, 54, LOG, finished) == Effect(repeated=2, skipped=2)


@given(st.integers(0, 120), st.integers(0, 120), st.sets(st.integers(0, 110)))
def test_effects_are_what_a_model_counts(old: int, new: int, above: set[int]) -> None:
    finished = {offset for offset in above if old < offset < LOG.end}
    done = {offset for offset in range(LOG.start, LOG.end) if offset < old} | {each for each in finished if each >= 10}
    will_come = {offset for offset in range(LOG.start, LOG.end) if offset >= new}
    ranges = [(offset, offset + 1) for offset in sorted(finished)]
    expected = Effect(len(done & will_come), len(set(range(LOG.start, LOG.end)) - done - will_come))
    assert effect(old, new, LOG, ranges) == expected


def test_without_a_commit_the_number_of_repeated_records_is_unknown() -> None:
    assert effect(None, 50, LOG) == Effect(0, 0)
