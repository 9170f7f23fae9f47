"""Spans around attempts: a trace continues from the producer of a record through its handler to its output."""

import subprocess
import sys
from importlib import util
from typing import Any

import pytest
from opentelemetry import baggage, trace

from penstock import App, Reject, Retry, Skip
from penstock.errors import ConfigError, SetupError
from penstock.testing import Bench
from spans import Spans, carried, ids


def test_a_trace_goes_from_the_producer_through_handlers_to_the_last_output() -> None:
    app, spans = App("shop"), Spans()

    @app.consume("orders", to="bills", tracing=True)
    def bill(value: int) -> int:
        with trace.get_tracer("shop").start_as_current_span("look up"):
            return value * 2

    @app.consume("bills", group="mail", to="mails", order="none", tracing=True)
    async def mail(value: int) -> int:
        assert baggage.get_baggage("customer") == "7"
        return value + 1

    bench = Bench(app)
    spans.produce(lambda carrier: bench.produce("orders", 1, headers={**carrier, "baggage": "customer=7"}))
    bench.run_until_idle()
    assert spans.tree() == {
        "send": None,
        "process orders": "send",
        "look up": "process orders",
        "process bills": "process orders",
    }
    (last,), (sent,) = spans.named("process bills"), bench.records("mails")
    assert carried(sent) == [ids(last)]
    assert dict(sent.headers)["baggage"] == b"customer=7"
    attributes: dict[str, Any] = dict(last.attributes or {})
    assert attributes["messaging.destination.name"] == "bills"
    assert attributes["messaging.consumer.group.name"] == "mail"
    assert (attributes["messaging.kafka.offset"], attributes["penstock.attempt"]) == (0, 1)


def test_retries_and_dead_letters_are_in_the_same_trace_and_show_what_failed() -> None:
    app, spans = App("shop"), Spans()

    @app.consume("orders", dead_letter="dead", retry=Retry(attempts=2, first="1m"), retry_topics=["1m"], tracing=True)
    def bill(value: int) -> None:
        raise ValueError("no")

    bench = Bench(app)
    spans.produce(lambda carrier: bench.produce("orders", 1, headers=carrier))
    bench.run_until_idle()
    bench.advance("2m")
    assert spans.tree() == {"send": None, "process orders": "send", "process orders.retry.1m": "process orders"}
    (last,), (letter,) = spans.named("process orders.retry.1m"), bench.records("dead")
    assert (last.attributes or {})["error.type"] == "ValueError"
    assert last.status.description == "ValueError: no"
    assert carried(letter) == [ids(last)]


def test_a_batch_is_one_span_with_a_link_to_each_trace() -> None:
    app, spans = App("shop"), Spans()

    @app.consume("orders", dead_letter="dead", to="bills", batch=3, tracing=True)
    def bill(values: list[int]) -> list[Any]:
        return [Reject("negative") if value < 0 else value for value in values]

    bench = Bench(app)
    for value in (1, -1, 3):
        spans.produce(lambda carrier, value=value: bench.produce("orders", value, headers=carrier))  # type: ignore[misc]
    bench.run_until_idle()
    (span,) = spans.named("process orders")
    assert [(link.context.trace_id, link.context.span_id) for link in span.links] == [*map(ids, spans.named("send"))]
    assert span.parent is None
    written = [*bench.records("bills"), *bench.records("dead")]
    assert [carried(each) for each in written] == [[ids(span)]] * 3


def test_a_record_without_a_trace_or_with_a_damaged_one_begins_its_own() -> None:
    app, spans = App("shop"), Spans()

    @app.consume("orders", tracing=True)
    def bill(value: int) -> None:
        raise Skip

    bench = Bench(app)
    with trace.get_tracer("tests").start_as_current_span("unrelated"):
        bench.produce("orders", 1)
        bench.produce("orders", 2, headers=[("traceparent", b"\xff\xfe"), ("tracestate", None)])
        bench.run_until_idle()
    assert [span.parent for span in spans.named("process orders")] == [None, None]


def test_without_it_headers_stay_as_they_are() -> None:
    app, spans = App("shop"), Spans()

    @app.consume("orders", to="bills")
    def bill(value: int) -> int:
        return value

    bench = Bench(app)
    spans.produce(lambda carrier: bench.produce("orders", 1, headers=carrier))
    bench.run_until_idle()
    assert bench.records("bills")[0].headers == ()
    assert [span.name for span in spans.ended] == ["send"]


def test_nothing_of_it_is_imported_unless_it_is_switched_on() -> None:
    program = (
        "import sys\n"
        "from penstock import App\n"
        "from penstock.testing import Bench\n"
        "app = App('shop')\n"
        "app.consume('orders')(lambda value: None)\n"
        "bench = Bench(app); bench.produce('orders', b'1'); bench.run_until_idle()\n"
        "print('opentelemetry' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_the_package_a_declaration_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.app.options.tracing_option.find_spec", lambda name: util.find_spec(f"no_{name}"))
    with pytest.raises(SetupError, match=r"penstock\[otel\]"):
        App("shop").consume("orders", tracing=True)(lambda value: None)
    with pytest.raises(ConfigError, match="is not a bool"):
        App("shop").consume("orders", tracing="yes")(lambda value: None)  # type: ignore[arg-type]
