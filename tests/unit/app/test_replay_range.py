"""Which handlers can be replayed, and what a replay changes of them."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from penstock import App, Record
from penstock.app import Handler
from penstock.app.runs.replay_range import ReplayRange, check_replayable, replay_group, replayed
from penstock.errors import ConfigError

TP = ("orders", 0)


def handler(**options: Any) -> Handler:
    app = App("shop")
    topics = () if "pattern" in options else ("orders",)

    @app.consume(*topics, **options)
    def handle(order: bytes, record: Record) -> bytes | None:
        return None

    return app.handlers[0]


def with_output(**options: Any) -> Handler:
    return handler(to="invoices", dead_letter="orders.dlq", **options)


def as_replay(of: Handler, *, dry_run: bool = False, to_topic: str | None = None) -> Handler:
    what = ReplayRange({TP: 9}, 5, dry_run=dry_run)
    return replayed(of, what, group="shop-replay-1", starts={TP: 4}, to_topic=to_topic)


def refusal(of: Handler, **options: Any) -> str:
    with pytest.raises(ConfigError) as refused:
        check_replayable(of, **options)
    assert refused.value.hint
    return refused.value.problem


def test_a_share_group_manual_commits_and_stores_are_refused_with_the_reason() -> None:
    shared = handler(mode="share", order="none", dead_letter="orders.dlq", to="invoices")
    assert "share group" in refusal(shared)
    manual = App("shop")

    @manual.consume("orders", commit="manual")
    def handle(record: Record) -> None: ...

    assert "record.ack()" in refusal(manual.handlers[0])
    assert "offsets=" in refusal(handler(offsets="sqlite:///shop.db", to="invoices"))


def test_a_topic_for_outputs_needs_a_handler_with_outputs() -> None:
    app = App("shop")

    @app.consume("orders")
    def note(order: bytes) -> None: ...

    assert "--to-topic" in refusal(app.handlers[0], to_topic="new")
    check_replayable(with_output(), to_topic="new")


def test_all_deliveries_can_be_replayed() -> None:
    for delivery in ("at-least-once", "at-most-once", "exactly-once"):
        check_replayable(with_output(delivery=delivery))


def test_a_replay_runs_alone_on_its_partitions_whatever_the_membership_of_the_live_handler() -> None:
    live = with_output(members=3, assignor="range", static_id="a", start="latest", from_="earliest")
    found = as_replay(live)
    assert (found.topics, found.partitions, found.group) == ((), (TP,), "shop-replay-1")
    assert (found.start, found.from_) == ({TP: 4}, None)
    assert (found.to, found.dead_letter) == ("invoices", "orders.dlq")
    assert not found.is_dry_run


def test_records_of_a_replay_wait_in_memory_because_the_live_group_reads_the_retry_topics() -> None:
    assert not as_replay(with_output(retry_topics=["1m"])).delayed


def test_outputs_go_to_another_topic_and_dead_letters_to_the_usual_one() -> None:
    found = as_replay(with_output(), to_topic="new")
    assert (found.to, found.dead_letter) == ("new", "orders.dlq")
    with pytest.raises(ConfigError, match="also its source"):
        as_replay(with_output(), to_topic="orders")


def test_a_dry_run_needs_no_transactions_and_no_commits() -> None:
    found = as_replay(with_output(delivery="exactly-once"), dry_run=True)
    assert found.is_dry_run
    assert (found.delivery, found.commit) == ("at-least-once", "auto")


def group(start: Any = "earliest", end: Any = "latest", names: Any = ("handle",), to: str | None = None) -> str:
    return replay_group(with_output(), start, end, names, to)


def test_the_same_replay_has_the_same_group() -> None:
    assert group() == group()
    assert group().startswith("shop-replay-")
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert group(noon) == group(noon.astimezone(timezone(timedelta(hours=2))))
    assert group({TP: 1, ("orders", 1): 2}) == group({("orders", 1): 2, TP: 1})
    assert group(names=["a", "b"]) == group(names=["b", "a"])


def test_another_range_other_handlers_or_another_topic_is_another_replay() -> None:
    different = [group(), group(start={TP: 0}), group(end={TP: 1}), group(names=["other"]), group(to="new")]
    assert len(set(different)) == len(different)
