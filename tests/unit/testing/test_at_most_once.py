"""delivery="at-most-once": committed before it is handled, so never handled twice."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import NO_RETRY, App, Rate, Retry
from penstock.app.options import Delivery
from penstock.core.reports import events
from penstock.errors import ConfigError, HandlerError
from penstock.testing import Bench

ONCE: Delivery = "at-most-once"


def test_a_record_is_handled_only_after_its_commit_is_accepted() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", delivery=ONCE)
    def handle(value: int) -> None:
        seen.append((value, bench.committed("orders")[0]))

    bench = Bench(app)
    for number in range(3):
        bench.produce("orders", number)
    bench.refuse_commits()
    bench.run_until_idle()
    assert seen == []
    bench.clear_faults()
    bench.advance("1s")
    assert [value for value, _ in seen] == [0, 1, 2]
    assert all(committed > value for value, committed in seen)


def test_a_record_that_took_the_process_down_does_not_come_again() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", delivery=ONCE, concurrency=1)
    def handle(value: int) -> None:
        seen.append(value)
        if value == 1:
            bench.crash()

    bench = Bench(app)
    for number in range(3):
        bench.produce("orders", number)
    bench.run_until_idle()
    bench.produce("orders", 3)
    bench.run_until_idle()
    # The records that were committed together with it are lost.
    assert seen == [0, 1, 3]


def test_a_failed_record_is_a_dead_letter_after_one_attempt() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", delivery=ONCE, dead_letter="dlq")
    def handle(value: int) -> None:
        seen.append(value)
        raise ValueError("no")

    bench = Bench(app)
    bench.produce("orders", 7)
    bench.advance("60s")
    assert seen == [7]
    assert [letter.attempts for letter in bench.dead_letters("dlq")] == [1]


def test_a_batch_that_raises_is_not_attempted_record_by_record() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", delivery=ONCE, dead_letter="dlq", batch=3)
    def handle(values: list[int]) -> None:
        seen.append(values)
        raise ValueError("no")

    bench = Bench(app)
    for number in range(3):
        bench.produce("orders", number)
    bench.advance("5s")
    assert seen == [[0, 1, 2]]
    assert len(bench.dead_letters("dlq")) == 3


def test_without_dead_letters_a_failed_record_stops_the_app_and_is_not_redelivered() -> None:
    app = App("shop")

    @app.consume("orders", delivery=ONCE)
    def handle(value: int) -> None:
        raise ValueError("no")

    bench = Bench(app)
    bench.produce("orders", 7)
    with pytest.raises(HandlerError, match="is not redelivered"):
        bench.run_until_idle()
    bench.run_until_idle()
    assert bench.committed("orders") == {0: 1}


@pytest.mark.parametrize(
    "options",
    [{"retry": Retry(attempts=2)}, {"retry_topics": ["10s"]}, {"commit": "record"}, {"commit_after": 5}],
)
def test_options_that_handle_a_record_again_are_refused(options: dict[str, object]) -> None:
    app = App("shop")
    with pytest.raises(ConfigError, match=f"{next(iter(options))}=.* has no effect with"):
        app.consume("orders", delivery=ONCE, **options)(lambda value: None)  # type: ignore[arg-type]
    app.consume("orders", delivery=ONCE, retry=NO_RETRY)(lambda value: None)


PLAIN = ["run", "advance", "crash", "stop", "rebalance", "lose", "refuse", "clear"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("produce"), st.integers(1, 20)),
        st.tuples(
            st.sampled_from(["run", "advance", "crash", "stop", "rebalance", "lose", "refuse", "clear"]), st.just(0)
        ),
        st.tuples(st.just("die at"), st.integers(0, 60)),
    ),
    max_size=25,
)


@settings(max_examples=150)
@given(steps=STEPS, order=st.sampled_from(["partition", "key", "none"]))
def test_nothing_is_handled_twice_and_without_a_crash_nothing_is_lost(steps: list[tuple[str, int]], order: str) -> None:
    app, seen, fatal = App("shop"), list[int](), set[int]()

    @app.consume("orders", delivery=ONCE, order=order, concurrency=3, max_in_flight=16)  # type: ignore[arg-type]
    def handle(value: int) -> None:
        seen.append(value)
        if value in fatal:
            bench.crash()

    bench, produced = Bench(app, partitions=2), 0
    plain: dict[str, Callable[[], None]] = {
        "run": bench.run_until_idle,
        "advance": lambda: bench.advance("3s"),
        "stop": bench.stop,
        "rebalance": bench.rebalance,
        "refuse": bench.refuse_commits,
        "clear": bench.clear_faults,
        "crash": bench.crash,
        "lose": lambda: bench.rebalance(lose=[("orders", 0)]),
    }
    for step, number in [*steps, ("clear", 0), ("advance", 0)]:
        if step == "produce":
            for value in range(produced, produced + number):
                bench.produce("orders", value, key=str(value % 5))
            produced += number
        elif step == "die at":
            fatal.add(number)
        else:
            plain[step]()
    assert len(seen) == len(set(seen))
    if not {"crash", "lose", "die at"} & {step for step, _ in steps}:
        assert set(seen) == set(range(produced))
        assert not bench.events_of(events.Error)


@pytest.mark.parametrize("end", ["stop", "lose"])
def test_records_that_are_committed_and_never_handled_are_reported(end: str) -> None:
    """They wait for the rate of the handler, which is too slow for ``drain_timeout``."""
    app, seen = App("shop"), []

    @app.consume("orders", delivery=ONCE, rate=Rate(1, per="1m", burst=1))
    def handle(value: int) -> None:
        seen.append(value)

    bench = Bench(app)
    for number in range(3):
        bench.produce("orders", number)
    bench.run_until_idle()
    assert seen == [0]
    if end == "stop":
        bench.stop()
    else:
        bench.rebalance(lose=[("orders", 0)])
    (warned,) = bench.events_of(events.Error)
    assert not warned.fatal
    assert warned.reason.startswith("2 records of orders[0] did not finish ")
    assert "Kafka does not redeliver what is committed" in warned.reason


def test_a_clean_end_reports_no_losses() -> None:
    app = App("shop")
    app.consume("orders", delivery=ONCE)(lambda _value: None)
    bench = Bench(app)
    bench.produce("orders", 1)
    bench.run_until_idle()
    bench.stop()
    assert bench.events_of(events.Error) == []
