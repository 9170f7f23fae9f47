"""Errors of the bench for wrong tests."""

import subprocess
import sys

import pytest

import penstock.testing
from penstock import App
from penstock.errors import ConfigError
from penstock.testing import Bench


def make_bench() -> Bench:
    app = App("shop")

    @app.consume("orders", to="shipments", dead_letter="orders.dlq")
    def ship(value: int) -> int:
        return value

    @app.consume("orders", group="other")
    def other(value: int) -> None: ...

    return Bench(app)


def test_a_topic_that_the_app_does_not_know_is_named_with_its_nearest_neighbour() -> None:
    bench = make_bench()
    with pytest.raises(ConfigError, match=r"consumes topic 'ordres'. Did you mean 'orders'\?"):
        bench.produce("ordres", 1)
    with pytest.raises(ConfigError, match=r"writes outputs to topic 'orders.dlq'. Did you mean 'shipments'\?"):
        bench.outputs("orders.dlq")
    with pytest.raises(ConfigError, match=r"writes dead letters to topic 'order.dlq'. Did you mean 'orders.dlq'\?"):
        bench.dead_letters("order.dlq")
    with pytest.raises(ConfigError, match="reads or writes topic 'nothing'"):
        bench.records("nothing")
    with pytest.raises(ConfigError, match="writes to topic 'orders'"):
        bench.fail_produce("orders")


def test_a_partition_that_does_not_exist_is_an_error() -> None:
    bench = make_bench()
    with pytest.raises(ConfigError, match="no partition 1"):
        bench.produce("orders", 1, partition=1)
    with pytest.raises(ConfigError, match="no partition 3"):
        bench.skip_offsets("orders", partition=3)
    with pytest.raises(ConfigError, match="no partition 2 of topic 'orders'"):
        bench.rebalance(lose=[("orders", 2)])


def test_if_several_groups_consume_a_topic_one_must_be_named() -> None:
    bench = make_bench()
    with pytest.raises(ConfigError, match=r"consumed by these groups: other, shop. Name one with group="):
        bench.committed("orders")
    with pytest.raises(ConfigError, match="these groups: other, shop"):
        bench.lag("orders", group="third")
    assert bench.lag("orders", group="other") == 0


def test_an_app_without_handlers_is_no_app() -> None:
    with pytest.raises(ConfigError, match="has no handlers"):
        Bench(App("empty"))


def test_a_handler_may_produce_and_take_time_but_not_drive_the_bench() -> None:
    app, seen = App("shop"), []

    @app.consume("orders")
    def handle(value: int) -> None:
        seen.append(value)
        bench.advance("10s")
        if value < 3:
            bench.produce("orders", value + 1)
        with pytest.raises(ConfigError, match="cannot drive the bench"):
            bench.run_until_idle()

    bench = Bench(app)
    start = bench.now
    bench.produce("orders", 1)
    bench.run_until_idle()
    assert seen == [1, 2, 3]
    assert (bench.now - start).total_seconds() == 30


def test_handlers_that_feed_each_other_forever_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.testing.bench_process._MAX_ROUNDS", 1_000)
    app = App("shop")

    @app.consume("ping", to="pong")
    def ping(value: int) -> int:
        return value

    @app.consume("pong", to="ping")
    def pong(value: int) -> int:
        return value

    bench = Bench(app)
    bench.produce("ping", 1)
    with pytest.raises(ConfigError, match="in an endless loop"):
        bench.run_until_idle()


def test_a_failed_assertion_of_pytest_in_a_handler_fails_the_test() -> None:
    app = App("shop")

    @app.consume("orders", dead_letter="dlq")
    def handle(value: int) -> None:
        pytest.fail("not to be called")

    bench = Bench(app)
    bench.produce("orders", 1)
    with pytest.raises(pytest.fail.Exception, match="not to be called"):
        bench.run_until_idle()
    assert bench.dead_letters("dlq") == []


def test_the_public_names_are_these_and_cost_no_spark() -> None:
    assert penstock.testing.__all__ == ["Bench", "DeadLetter", "check_assignor"]
    program = "import sys, penstock.testing; print([m for m in ('pyspark', 'rich', 'typer') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_exactly_once_needs_a_broker_and_is_refused_with_a_word_on_where_to_test_it() -> None:
    app = App("shop")

    @app.consume("orders", delivery="exactly-once")
    def handle(value: int) -> None: ...

    with pytest.raises(
        ConfigError, match='uses delivery="exactly-once", which the testing kit does not support'
    ) as caught:
        Bench(app)
    assert "penstock up" in caught.value.hint
