"""The demo's own checks can fail."""

import io
from dataclasses import asdict, replace

import pytest

from penstock import Record
from penstock.app import attempts
from penstock.cli.commands.demo import picture
from penstock.cli.console.screen import Screen
from penstock.core.failures.outcome import Done, Failed, Skipped
from penstock.core.reports.record_counts import Counts
from penstock.demo import shop
from penstock.demo.demo_report import DemoReport, EngineReport, PartitionReport
from penstock.demo.engine_comparison import compare_dead_letters, compare_outputs
from penstock.demo.order_generator import expected_counts, make_orders

COUNTS = Counts(read=10, written=7, dead_lettered=2, skipped=1)
GOOD = EngineReport(
    engine="local",
    group="g",
    output="out",
    dead_letters="dlq",
    counts=COUNTS,
    in_output=7,
    in_dead_letters=2,
    seconds=2.0,
    partitions=(PartitionReport(0, 6, 6), PartitionReport(1, 4, 4)),
)


def test_the_expected_counts_are_what_the_handler_makes_of_the_orders() -> None:
    attempt = attempts(shop.app.handlers[0])
    outcomes = [attempt(Record("orders", 0, 0, key, value), 1) for key, value in make_orders(5_000)]
    assert asdict(expected_counts(5_000)) == {
        "read": 5_000,
        "written": sum(isinstance(outcome, Done) for outcome in outcomes),
        "dead_lettered": sum(isinstance(outcome, Failed) for outcome in outcomes),
        "skipped": sum(isinstance(outcome, Skipped) for outcome in outcomes),
    }
    reasons = {outcome.message for outcome in outcomes if isinstance(outcome, Failed)}
    assert len(reasons) >= 4, "several ways to be malformed, and a rejection"


def test_orders_are_the_same_every_time_and_one_customer_is_hot() -> None:
    orders = list(make_orders(2_000))
    assert orders == list(make_orders(2_000))
    hot = sum(key == b"customer-hot" for key, _ in orders)
    assert 300 < hot < 500


def test_right_counts_are_no_problem() -> None:
    assert GOOD.problems(COUNTS) == []
    assert GOOD.records_per_second == 5.0


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (replace(GOOD, counts=replace(COUNTS, written=6)), "reports written 6, expected 7"),
        (replace(GOOD, in_output=8), "topic out has 8 records, expected 7"),
        (replace(GOOD, in_dead_letters=0), "topic dlq has 0 records"),
        (replace(GOOD, partitions=(PartitionReport(0, 6, 5),)), "lag of 1"),
        (replace(GOOD, partitions=(PartitionReport(0, 6, None),)), "lag of 6"),
    ],
)
def test_a_wrong_count_is_a_problem(wrong: EngineReport, problem: str) -> None:
    (found,) = wrong.problems(COUNTS)
    assert problem in found


def output(key: bytes, value: bytes) -> Record:
    return Record("out", 0, 0, key, value)


def letter(offset: int, reason: bytes = b"bad") -> Record:
    headers = (("penstock-dlq-partition", b"0"), ("penstock-dlq-offset", b"%d" % offset),
               ("penstock-dlq-error-message", reason))  # fmt: skip
    return Record("dlq", 0, 0, b"k", b"v", headers)


def test_outputs_agree_in_the_order_of_each_key_whatever_the_order_of_keys() -> None:
    one = [output(b"a", b"1"), output(b"b", b"1"), output(b"a", b"2")]
    assert compare_outputs(one, [one[1], one[0], one[2]]) == []
    assert compare_outputs(one, [one[2], one[1], one[0]]) == ["the engines differ at key b'a'"]
    assert compare_outputs(one, one[:2]) == ["the engines differ at key b'a'"]
    assert compare_outputs(one, [*one, one[2]]) == ["the engines differ at key b'a'"]


def test_dead_letters_agree_by_origin_and_reason() -> None:
    assert compare_dead_letters([letter(1), letter(2)], [letter(2), letter(1)]) == []
    assert len(compare_dead_letters([letter(1)], [letter(2)])) == 2
    assert len(compare_dead_letters([letter(1)], [letter(1, b"other")])) == 1
    many = compare_dead_letters([letter(n) for n in range(9)], [])
    assert len(many) == 4
    assert many[-1] == "and at 6 more"


def test_a_report_comes_back_from_its_json() -> None:
    report = DemoReport("b:1", "orders", COUNTS, (GOOD,), None, ("lag",))
    assert report.as_json()["ok"] is False
    assert report.as_json()["engines"][0]["records_per_second"] == 5
    assert DemoReport.from_json(report.as_json()) == report


def test_the_title_names_the_engine_if_only_one_has_run() -> None:
    def title(*engines: EngineReport) -> str:
        console = Screen(file=io.StringIO(), width=100, record=True)
        console.print(picture(DemoReport("b:1", "orders", COUNTS, engines, None, ())))
        return console.export_text().splitlines()[0].strip()

    assert title(GOOD) == "10 orders on the local engine"
    assert title(GOOD, replace(GOOD, engine="spark")) == "10 orders on each engine"
