"""The breaker opens when nearly all records fail."""

from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import Breaker
from penstock.core.failures.breaker import Circuit
from penstock.errors import ConfigError


def test_it_opens_before_the_dead_letter_that_follows_a_window_full_of_them() -> None:
    circuit = Circuit(Breaker(share=0.5, window=4))
    assert [circuit.lets_through() for _ in range(4)] == [True] * 4, "it never opens before the window is full"
    assert not circuit.lets_through()
    assert str(circuit) == "4 of the last 4 records"


def test_once_open_it_stays_open() -> None:
    circuit = Circuit(Breaker(share=1, window=1))
    assert circuit.lets_through()
    assert not circuit.lets_through()
    circuit.finished(1_000)
    assert circuit.is_open
    assert not circuit.lets_through()


def test_a_burst_of_poison_among_good_records_does_not_open_it() -> None:
    circuit = Circuit(Breaker())
    circuit.finished(8_000)
    assert all(circuit.lets_through() for _ in range(899))
    circuit.finished(0)
    circuit.finished(101)
    for _ in range(100):
        circuit.finished(4)
        assert circuit.lets_through()
    assert not circuit.is_open


@given(
    window=st.integers(1, 12),
    share=st.floats(0.05, 1),
    steps=st.lists(st.one_of(st.just("dead"), st.integers(0, 20)), max_size=60),
)
def test_stretches_say_what_a_plain_list_of_the_last_records_would(
    window: int, share: float, steps: list[int | str]
) -> None:
    circuit, last, is_open = Circuit(Breaker(share=share, window=window)), deque[bool](maxlen=window), False
    for step in steps:
        if isinstance(step, int):
            circuit.finished(step)
            last.extend([False] * step)
            continue
        is_open = is_open or (len(last) == window and sum(last) / window >= share)
        assert circuit.lets_through() is not is_open
        if not is_open:
            last.append(True)
        assert circuit.is_open is is_open


@pytest.mark.parametrize(
    "wrong",
    [{"share": 0}, {"share": 1.5}, {"share": True}, {"share": "x"}, {"window": 0}, {"window": 2.5}, {"window": True}],
)
def test_a_breaker_that_cannot_work_is_refused_when_it_is_written(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"Breaker.{next(iter(wrong))}"):
        Breaker(**wrong)
