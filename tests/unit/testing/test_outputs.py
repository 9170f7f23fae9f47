"""What a bench shows of outputs that go to several topics."""

from collections.abc import Iterator

import pytest

from penstock import App, Out
from penstock.core.reports.events import DeadLettered
from penstock.errors import ConfigError, ServerError
from penstock.testing import Bench


def shop() -> App:
    app = App("shop")

    @app.consume("orders", to=["receipts", "audit"], dead_letter="orders.dlq")
    def sell(order: int) -> Iterator[dict[str, int] | Out]:
        yield {"id": order}
        yield Out(order, to="audit")
        if order > 5:
            yield Out("large", to="large-orders")

    return app


def test_each_topic_has_its_outputs() -> None:
    bench = Bench(shop())
    bench.produce("orders", 1)
    bench.run_until_idle()
    assert bench.outputs("receipts", dict) == [{"id": 1}]
    assert bench.outputs("audit") == [b"1"], "an Out may hold a value of any type"
    assert bench.outputs("audit", int) == [1]


def test_a_topic_that_only_an_out_names_is_known_once_it_has_an_output() -> None:
    bench = Bench(shop())
    with pytest.raises(ConfigError, match="No handler of app 'shop' writes outputs to topic 'large-orders'"):
        bench.outputs("large-orders")
    bench.produce("orders", 7)
    bench.run_until_idle()
    assert bench.outputs("large-orders", str) == ["large"]


def test_values_that_are_yielded_are_decoded_by_the_return_hint() -> None:
    app = App("shop")

    @app.consume("orders", to="receipts")
    def sell(order: int) -> Iterator[int]:
        yield order
        yield order + 1

    bench = Bench(app)
    bench.produce("orders", 1)
    bench.run_until_idle()
    assert bench.outputs("receipts") == [1, 2]


def test_an_output_that_one_topic_refuses_fails_its_record_once() -> None:
    bench = Bench(shop())
    bench.fail_produce("audit", too_large=True)
    bench.produce("orders", 1)
    bench.run_until_idle()
    assert [letter.error_type for letter in bench.dead_letters("orders.dlq")] == ["OutputRefused"]
    assert len(bench.events_of(DeadLettered)) == 1
    assert bench.outputs("receipts", dict) == [{"id": 1}], "it was written before, and stays there"
    bench.advance("1s")
    assert bench.committed("orders") == {0: 1}


def test_an_output_that_cannot_be_written_now_stops_the_app_and_its_record_comes_again() -> None:
    bench = Bench(shop())
    bench.fail_produce("audit")
    bench.produce("orders", 1)
    with pytest.raises(ServerError, match="audit"):
        bench.run_until_idle()
    assert bench.committed("orders") == {0: 0}
    bench.clear_faults()
    bench.advance("1s")
    assert bench.outputs("audit", int) == [1]
    assert bench.committed("orders") == {0: 1}
