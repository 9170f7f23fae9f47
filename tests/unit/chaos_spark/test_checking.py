"""The check of the Spark run, on outputs that break each promise."""

import pytest

from chaos_spark.chaos_spark_run import check
from penstock.core.records.record import Record


def outputs(*numbers: int, keys: int = 1) -> list[Record]:
    return [Record("out", 0, offset, b"%d" % (n % keys), b"%d" % n, (), 0) for offset, n in enumerate(numbers)]


def test_each_output_once_and_in_order_is_all_well() -> None:
    outcome = check(iter(outputs(0, 2, 1, 3, keys=2)), 4, exactly_once=True)
    assert outcome.problems == []
    assert outcome.figures["outputs"] == 4


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((0, 2), "1 of 3 outputs are missing"),
        ((0, 1, 1, 2), "1 of 3 outputs are repeated"),
        ((0, 2, 1), "1 of 3 outputs are out of order"),
        ((0, 1, 2, 7), "1 of 3 outputs are of no record"),
    ],
)
def test_every_broken_promise_is_reported(numbers: tuple[int, ...], said: str) -> None:
    assert check(iter(outputs(*numbers)), 3, exactly_once=True).problems == [said]


def test_at_least_once_promises_only_that_nothing_is_lost() -> None:
    assert check(iter(outputs(0, 1, 0, 1, 2)), 3, exactly_once=False).problems == []
    assert check(iter(outputs(0, 1)), 3, exactly_once=False).problems == ["1 of 3 outputs are missing"]
