"""Start positions: the commit, else ``start``; ``from_`` overrides both. And offsets that the log does not have."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, KafkaError, KafkaException, TopicPartition

from penstock import App, Retry
from penstock.app import Handler
from penstock.app.offset_store import SavedProgress
from penstock.engine.dispatch.thread_messages import Assigned
from penstock.engine.fetch.start_positions import KnownPartitions, find_new_position, find_positions
from penstock.engine.fetch.store_session import StoreSession
from penstock.kafka.error_codes import Code

P0, P1 = ("orders", 0), ("orders", 1)
LOW, HIGH = 5, 50
# The log has one record per second from this time on: the record at offset 5 + n was written n seconds later.
EPOCH_MS = 1_700_000_000_000


class Log:
    """A consumer whose partitions have the offsets 5 to 49, and these commits."""

    def __init__(self, commits: Mapping[tuple[str, int], tuple[int, str]] | None = None) -> None:
        self.commits = dict(commits or {})
        self.error: KafkaError | None = None
        self.looked_up: list[tuple[tuple[str, int], int]] = []

    def committed(self, asked: list[TopicPartition], **_: float) -> list[Any]:
        if self.error is not None:
            return [SimpleNamespace(topic=each.topic, partition=each.partition, error=self.error) for each in asked]
        found = []
        for each in asked:
            offset, metadata = self.commits.get((each.topic, each.partition), (OFFSET_INVALID, ""))
            found.append(TopicPartition(each.topic, each.partition, offset, metadata))
        return found

    def offsets_for_times(self, asked: list[TopicPartition], **_: float) -> list[TopicPartition]:
        self.looked_up += [((each.topic, each.partition), each.offset) for each in asked]
        return [TopicPartition(each.topic, each.partition, self._at(each.offset)) for each in asked]

    @staticmethod
    def _at(when: int) -> int:
        if when in (OFFSET_BEGINNING, OFFSET_END):
            return LOW if when == OFFSET_BEGINNING else HIGH
        offset = max(LOW, LOW - (EPOCH_MS - when) // 1000)
        return offset if offset < HIGH else OFFSET_END


class Store:
    """A store session that has this progress."""

    def __init__(self, kept: Mapping[tuple[str, int], SavedProgress]) -> None:
        self._kept = kept
        self.forgotten: list[tuple[str, int]] = []

    def claim(self, tps: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], SavedProgress]:
        return {tp: self._kept.get(tp, SavedProgress(token=1)) for tp in tps}

    def forget(self, tps: Iterable[tuple[str, int]]) -> None:
        self.forgotten += tps


def handler(**options: Any) -> Handler:
    app = App("shop")
    app.consume("orders", **options)(print_it)
    return app.handlers[0]


def print_it(value: bytes) -> None: ...


def assign(
    log: Log,
    before: KnownPartitions | None = None,
    tps: Sequence[Any] = (P0,),
    store: Store | None = None,
    **options: Any,
) -> Assigned:
    session = cast("StoreSession | None", store)
    return find_positions(log, handler(**options), tps, before or KnownPartitions(tps), session)


def moved_to(offset: int, **options: Any) -> tuple[int, int]:
    found = find_new_position(Log(), handler(**options), P0, offset)
    return found.moved_to, found.skipped


# The group's commit, else start.


@pytest.mark.parametrize("start", ["earliest", "latest", {P0: 30}])
def test_the_group_s_commit_comes_before_start(start: Any) -> None:
    log = Log({P0: (20, "map")})
    assigned = assign(log, start=start)
    assert assigned.committed == {P0: (20, "map")}
    assert assigned.starts == {}
    assert assigned.forced == frozenset()
    assert log.looked_up == [], "start is resolved only if it is needed"


def test_a_commit_of_offset_0_is_a_commit() -> None:
    assert assign(Log({P0: (0, "")}), start="latest").committed == {P0: (0, "")}
    assert assign(Log({P0: (0, "")}), start="latest").starts == {}


@pytest.mark.parametrize(
    ("start", "offset"),
    [
        ("earliest", None),
        ("latest", HIGH),
        ({P0: 30}, 30),
        ({P1: 30}, None),
        (datetime.fromtimestamp(EPOCH_MS / 1000 + 10, UTC), LOW + 10),
        (datetime.fromtimestamp(EPOCH_MS / 1000 - 10, UTC), LOW),
        (datetime.fromtimestamp(EPOCH_MS / 1000 + 1_000, UTC), HIGH),
    ],
    ids=["earliest", "latest", "offset", "another partition's offset", "time", "before the log", "beyond the end"],
)
def test_without_a_commit_start_decides(start: Any, offset: int | None) -> None:
    assigned = assign(Log(), start=start)
    assert assigned.committed == {P0: None}
    assert assigned.starts == {P0: offset}
    assert assigned.forced == frozenset()


def test_each_partition_is_decided_separately() -> None:
    assigned = assign(Log({P1: (7, "")}), tps=[P0, P1], start="latest")
    assert assigned.committed == {P0: None, P1: (7, "")}
    assert assigned.starts == {P0: HIGH}


@pytest.mark.parametrize("start", ["latest", datetime.fromtimestamp(EPOCH_MS / 1000 + 1_000, UTC)])
@pytest.mark.parametrize("option", ["start", "from_"])
def test_a_partition_that_was_added_while_the_app_runs_begins_at_its_start(option: str, start: Any) -> None:
    assigned = assign(Log(), KnownPartitions([P0]), tps=[P0, P1], **{option: start})
    assert assigned.starts == {P0: HIGH, P1: None}


@pytest.mark.parametrize("from_", ["earliest", "latest"])
def test_from_does_not_move_a_retry_topic(from_: str) -> None:
    options: dict[str, Any] = {"from_": from_, "retry": Retry(attempts=2), "retry_topics": ["1m"]}
    (retry_topic,) = handler(**options).delayed
    log = Log({P0: (20, ""), (retry_topic, 0): (7, "")})
    assert assign(log, tps=[P0, (retry_topic, 0)], **options).forced == {P0}


def test_nothing_is_asked_for_an_empty_assignment() -> None:
    log = Log()
    log.error = KafkaError(Code.LOCAL_TIMED_OUT)
    assert assign(log, tps=[]) == Assigned({})


# from_ overrides both, once.


@pytest.mark.parametrize("commits", [{}, {P0: (20, "map")}])
@pytest.mark.parametrize(("from_", "offset"), [("earliest", None), ("latest", HIGH), ({P0: 30}, 30)])
def test_from_overrides_the_commit_and_start(commits: Any, from_: Any, offset: int | None) -> None:
    assigned = assign(Log(commits), from_=from_, start={P0: 11})
    assert assigned.starts == {P0: offset}
    assert assigned.forced == {P0}
    assert assigned.committed == {P0: commits.get(P0)}


def test_from_with_offsets_applies_only_to_the_partitions_it_names() -> None:
    assigned = assign(Log({P0: (20, ""), P1: (21, "")}), tps=[P0, P1], from_={P1: 30})
    assert assigned.starts == {P1: 30}
    assert assigned.forced == {P1}


def test_from_applies_only_to_the_first_assignment_in_a_run() -> None:
    log, before = Log({P0: (20, "")}), KnownPartitions()
    assert assign(log, before, from_="earliest").forced == {P0}
    again = assign(log, before, tps=[P0, P1], from_="earliest")
    assert again.forced == {P1}, "another member, or this one, has had P0 before"
    assert again.starts == {P1: None}


def test_after_an_error_the_next_assignment_is_still_the_first() -> None:
    log, before = Log({P0: (20, "")}), KnownPartitions()
    log.error = KafkaError(Code.NOT_COORDINATOR)
    with pytest.raises(KafkaException) as caught:
        assign(log, before, from_="earliest")
    assert caught.value.args[0].code() == Code.NOT_COORDINATOR
    log.error = None
    assert assign(log, before, from_="earliest").forced == {P0}


# A store.


def test_the_store_comes_before_the_group_s_commit() -> None:
    assigned = assign(Log({P0: (20, "old")}), store=Store({P0: SavedProgress(1, 40, "new", [(42, 43)])}))
    assert assigned.committed == {P0: (40, "new")}
    assert assigned.starts == {}
    assert assigned.finished == {P0: [(42, 43)]}
    assert assigned.behind == {P0}, "Kafka's commit must follow the store"


def test_a_commit_that_equals_the_store_is_not_behind() -> None:
    assigned = assign(Log({P0: (40, "same")}), store=Store({P0: SavedProgress(1, 40, "same")}))
    assert assigned.behind == frozenset()


@pytest.mark.parametrize(("commits", "starts"), [({P0: (20, "")}, {}), ({}, {P0: HIGH})])
def test_without_progress_in_the_store_the_commit_or_start_decides(commits: Any, starts: Any) -> None:
    assigned = assign(Log(commits), store=Store({}), start="latest")
    assert assigned.committed == {P0: commits.get(P0)}
    assert assigned.starts == starts
    assert assigned.behind == frozenset()


def test_from_overrides_the_store_which_forgets_what_was_finished() -> None:
    store = Store({P0: SavedProgress(1, 40, "", [(42, 43)]), P1: SavedProgress(1, 41, "", [(44, 45)])})
    assigned = assign(Log(), tps=[P0, P1], store=store, from_={P0: 10})
    assert assigned.starts == {P0: 10}
    assert assigned.finished == {P1: [(44, 45)]}, "or records that are read again would count as finished"
    assert store.forgotten == [P0]


# The log does not have the offset.


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_from_above_the_end_continues_at_the_end_and_replays_nothing(start: str) -> None:
    assert moved_to(1_000, from_={P0: 1_000}, start=start) == (HIGH, HIGH - LOW)


def test_a_start_above_the_end_does_too() -> None:
    assert moved_to(1_000, start={P0: 1_000}) == (HIGH, HIGH - LOW)


def test_an_offset_of_a_log_that_was_recreated_continues_as_start_says() -> None:
    assert moved_to(1_000, start="earliest") == (LOW, 0)
    assert moved_to(1_000, start="latest") == (HIGH, HIGH - LOW)
    assert moved_to(1_000, start="earliest", from_={P0: 7}) == (LOW, 0)


def test_records_that_retention_has_deleted_are_skipped_up_to_the_first_record() -> None:
    assert moved_to(2, from_={P0: 2}) == (LOW, 3)
    assert moved_to(2, start="latest") == (HIGH, HIGH - 2)
