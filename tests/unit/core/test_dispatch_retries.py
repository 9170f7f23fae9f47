"""Retry topics and the breaker, in the dispatcher's rules."""

from dispatch_helpers import BLOCKED, FAILURE, OUTPUT, POISON, SLOW_FAILURE, make_dispatch, records, returned, take
from penstock import Breaker
from penstock.core.failures.outcome import DONE, HELD, Done, Skipped
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.backpressure import FULL_SECONDS, NAP_SECONDS

SOURCE: TopicPartition = ("t", 0)
LATER: TopicPartition = ("t.retry.1m", 0)


def test_a_record_sent_to_a_retry_topic_blocks_no_other_and_is_finished_once_the_broker_has_it() -> None:
    dispatch = make_dispatch(retry_topics=[60.0])
    epoch = dispatch.assign(SOURCE, 0)
    dispatch.deliver(SOURCE, records(SOURCE, 0, 3))
    (run,) = take(dispatch)
    effects = dispatch.report([(run, [SLOW_FAILURE], True)], now=0.0)
    (send,) = effects.sends
    assert (send.outgoing.topic, send.failure, send.delay) == ("t.retry.60s", SLOW_FAILURE, 60.0)
    assert not effects.retried
    (rest,) = take(dispatch)
    assert [record.offset for record in rest.records] == [1, 2]
    dispatch.report([(rest, [DONE, DONE], True)], now=0.0)
    assert epoch.tracker.commit_point == 0, "it is not in the retry topic yet"
    assert not epoch.drained
    assert dispatch.acknowledge(send)
    assert dispatch.commits() == {SOURCE: (3, "")}
    assert epoch.failures == {}


def test_a_record_that_is_blocked_holds_its_lane_and_spends_no_attempt() -> None:
    dispatch = make_dispatch(order="key", retry_topics=[1.0], breaker=Breaker(share=0.1, window=10))
    epoch = dispatch.assign(SOURCE, 0)
    dispatch.deliver(SOURCE, records(SOURCE, 0, 4))  # keys a, b, c, a
    now = 0.0
    for _ in range(50):
        (run,) = (run for run in take(dispatch, now) if run.records[0].offset == 0)
        effects = dispatch.report([(run, [BLOCKED], True)], now=now)
        ((tried, failure, delay),) = effects.blocked
        assert (tried.offset, tried.attempt, failure) == (0, 1, BLOCKED)
        assert not effects.retried
        assert not effects.sends
        assert effects.halted is None
        now += delay
        assert all(run.records[0].key != b"a" for run in take(dispatch, now - 0.01))
    (run,) = take(dispatch, now)
    assert [record.offset for record in run.records] == [0, 3]
    dispatch.report([(run, [DONE, DONE], True)], now=now)
    assert epoch.failures == {}


def test_a_short_wait_is_still_spent_in_memory() -> None:
    dispatch = make_dispatch(retry_topics=[60.0])
    dispatch.assign(SOURCE, 0)
    dispatch.deliver(SOURCE, records(SOURCE, 0, 1))
    (run,) = take(dispatch)
    effects = dispatch.report([(run, [FAILURE], True)], now=0.0)
    assert not effects.sends
    assert [delay for _, _, delay in effects.retried] == [1.0]


def test_a_record_that_the_retry_topic_refuses_becomes_a_dead_letter() -> None:
    dispatch = make_dispatch(retry_topics=[60.0])
    dispatch.assign(SOURCE, 0)
    dispatch.deliver(SOURCE, records(SOURCE, 0, 1))
    (run,) = take(dispatch)
    (send,) = dispatch.report([(run, [SLOW_FAILURE], True)], now=0.0).sends
    (letter,) = dispatch.refuse(send, POISON).sends
    assert (letter.outgoing.topic, letter.delay) == ("dlq", None)


def test_a_retry_topic_is_paused_until_its_next_record_is_due_and_has_nothing_in_flight() -> None:
    dispatch = make_dispatch(retry_topics=[60.0])
    epoch = dispatch.assign(LATER, 0)
    begun = dispatch.deliver_returned(LATER, returned(LATER, 0, [0, 0, 20, 21], failures=4), now=100.0)
    assert [each.record.offset for each in begun] == [0, 1]
    assert dispatch.settled == 2, "waiting records do not count as in flight"
    (run,) = take(dispatch)
    assert [(record.offset, epoch.attempt_at(record.offset)) for record in run.records] == [(0, 5), (1, 5)]
    dispatch.report([(run, [DONE, DONE], True)], now=100.0)
    assert dispatch.commits() == {LATER: (2, "")}
    assert epoch.failures == {}


def test_a_retry_topic_is_paused_and_sought_back_once_and_resumes_when_its_record_is_due() -> None:
    dispatch = make_dispatch(retry_topics=[60.0])
    epoch = dispatch.assign(LATER, None)
    dispatch.deliver_returned(LATER, returned(LATER, 5, [20.0, 20.5]), now=100.0)
    ((pause,), resumed) = dispatch.balance(100.0)
    assert (pause.epoch, pause.rewind_to, resumed) == (epoch, 5, [])
    assert dispatch.next_due() == 120.0
    # Records that were fetched before are dropped. They are delivered again.
    assert dispatch.deliver_returned(LATER, returned(LATER, 7, [0.0]), now=100.0) == []
    dispatch.reach(LATER, 8)
    assert dispatch.commits() == {LATER: (5, "")}, "so that a restart finds it, with any start option"
    dispatch.rewound(LATER)
    assert dispatch.balance(119.0) == ([], [])
    assert dispatch.balance(120.0) == ([], [epoch])
    assert dispatch.next_due() is None
    assert len(dispatch.deliver_returned(LATER, returned(LATER, 5, [0.0, 0.0]), now=120.0)) == 2
    assert dispatch.settled == 3
    assert dispatch.balance(120.0) == ([], [])


def test_records_that_fall_due_one_after_the_other_are_fetched_some_at_a_time() -> None:
    dispatch = make_dispatch(retry_topics=[60.0])
    epoch = dispatch.assign(LATER, 0)
    dispatch.deliver_returned(LATER, returned(LATER, 0, [0.001]), now=0.0)
    dispatch.balance(0.0)
    assert dispatch.balance(NAP_SECONDS - 0.01) == ([], [])
    assert dispatch.balance(NAP_SECONDS) == ([], [epoch])


def test_records_of_other_groups_are_skipped() -> None:
    dispatch = make_dispatch(retry_topics=[60.0])
    dispatch.assign(LATER, 0)
    theirs = returned(LATER, 0, [0, 0], of_this_group=False)
    assert dispatch.deliver_returned(LATER, theirs, now=0.0) == []
    assert take(dispatch) == []
    assert dispatch.commits() == {LATER: (2, "")}
    assert dispatch.settled == 2
    assert dispatch.deliver_returned(LATER, [], now=0.0) == []


def test_a_dropped_record_keeps_the_attempts_that_failed_here_instead_of_its_headers_count() -> None:
    dispatch = make_dispatch(order="key", retry_topics=[60.0], max_in_flight=4, concurrency=8)
    epoch = dispatch.assign(LATER, 0)
    dispatch.assign(SOURCE, 0)
    dispatch.deliver_returned(LATER, returned(LATER, 0, [0] * 4, failures=1), now=0.0)
    (a, b, c) = take(dispatch)
    results = [(a, [], True), (b, [FAILURE], True), (c, [FAILURE], True)]  # their second attempt
    dispatch.report(results, now=0.0)
    dispatch.balance(0.0)
    ((pause,), _) = dispatch.balance(FULL_SECONDS)
    assert pause.rewind_to == 2
    dispatch.rewound(LATER)
    dispatch.deliver_returned(LATER, returned(LATER, 2, [0, 0], failures=1), now=1.0)
    assert [epoch.attempt_at(offset) for offset in range(4)] == [2, 3, 3, 2]


def test_a_paused_retry_topic_drops_records_like_any_other_topic() -> None:
    dispatch = make_dispatch(retry_topics=[60.0], max_in_flight=8, concurrency=8)
    epoch, other = dispatch.assign(LATER, 0), dispatch.assign(SOURCE, 0)
    dispatch.deliver_returned(LATER, returned(LATER, 0, [0] * 7 + [50]), now=0.0)
    ((nap,), _) = dispatch.balance(0.0)
    assert nap.rewind_to == 7
    dispatch.rewound(LATER)
    (run,) = take(dispatch, size=1)
    ((pause,), _) = dispatch.balance(FULL_SECONDS)
    assert (pause.epoch, pause.rewind_to) == (epoch, 4)
    assert epoch.fetch_state.wake_at is None, "the retracted record is due"
    assert not other.fetch_state.paused
    dispatch.rewound(LATER)
    dispatch.report([(run, [DONE], True)], now=1.0)
    (rest,) = take(dispatch)
    dispatch.report([(rest, [DONE] * 3, True)], now=1.0)
    assert dispatch.balance(1.0) == ([], [epoch])


def test_one_that_is_full_when_it_wakes_stays_paused() -> None:
    dispatch = make_dispatch(retry_topics=[60.0], max_in_flight=4, concurrency=8)
    epoch = dispatch.assign(LATER, 0)
    dispatch.assign(SOURCE, 0)
    dispatch.deliver_returned(LATER, returned(LATER, 0, [0] * 3 + [1]), now=0.0)
    dispatch.balance(0.0)
    dispatch.rewound(LATER)
    (run,) = take(dispatch)
    ((pause,), resumed) = dispatch.balance(1.0)
    assert (pause.epoch, pause.rewind_to, resumed) == (epoch, None, [])
    dispatch.report([(run, [DONE] * 3, True)], now=1.0)
    assert dispatch.balance(1.0) == ([], [epoch])


def test_caught_up_does_not_wait_for_what_is_not_due_but_for_what_was() -> None:
    dispatch = make_dispatch(retry_topics=[60.0])
    dispatch.assign(LATER, 0)
    dispatch.deliver_returned(LATER, returned(LATER, 0, [0, 50]), now=0.0)
    (run,) = take(dispatch)
    assert not dispatch.caught_up({LATER: 2})
    dispatch.report([(run, [DONE], True)], now=0.0)
    assert dispatch.caught_up({LATER: 2})


def test_records_of_a_retry_topic_that_was_revoked_are_dropped() -> None:
    dispatch = make_dispatch(retry_topics=[60.0])
    assert dispatch.deliver_returned(LATER, returned(LATER, 0, [0, 5]), now=0.0) == []
    assert dispatch.settled == 2


def test_a_breaker_halts_before_the_next_dead_letter_and_lets_nothing_more_through() -> None:
    dispatch = make_dispatch(order="none", concurrency=20, breaker=Breaker(share=0.5, window=4))
    dispatch.assign(SOURCE, 0)
    dispatch.deliver(SOURCE, records(SOURCE, 0, 10))
    runs = take(dispatch, size=1)
    first = dispatch.report([(run, [POISON], True) for run in runs[:2]], now=0.0)
    good = dispatch.report([(runs[2], [OUTPUT], True), (runs[3], [DONE], True)], now=0.0)
    assert first.halted is None
    for send in (*first.sends, *good.sends):
        dispatch.acknowledge(send)
    assert dispatch.commits() == {SOURCE: (4, "")}
    tripped = dispatch.report([(run, [POISON], True) for run in runs[4:7]], now=0.0)
    assert tripped.sends == []
    assert tripped.halted is not None
    late = dispatch.report([(runs[7], [DONE], True), (runs[8], [POISON], True)], now=0.0)
    assert late.sends == []
    assert late.halted is not None
    ((point, _),) = dispatch.commits().values()
    assert point == 4, "the commit point does not pass unwritten records"


def test_a_breaker_counts_whatever_way_a_record_is_finished() -> None:
    dispatch = make_dispatch(order="none", concurrency=20, breaker=Breaker(share=0.2, window=5))
    dispatch.assign(SOURCE, 0)
    dispatch.deliver(SOURCE, records(SOURCE, 0, 8))
    runs = take(dispatch, size=1)
    offset_0, offset_1 = runs[0].records[0], runs[1].records[0]
    dispatch.ack(SOURCE, 0, offset_0)  # while its handler still runs
    held = [(runs[0], [HELD], True), (runs[1], [HELD], True), (runs[2], [HELD], True)]
    dispatch.report(held, now=0.0)
    dispatch.ack(SOURCE, 1, offset_1)
    dispatch.ack_below(SOURCE, 3)
    dispatch.report([(runs[3], [Done()], True), (runs[4], [Skipped("why")], True)], now=0.0)
    assert dispatch.commits() == {SOURCE: (5, "")}
    first = dispatch.report([(runs[5], [POISON], True)], now=0.0)
    assert first.halted is None, "none of the last five was a dead letter"
    second = dispatch.report([(runs[6], [POISON], True), (runs[7], [POISON], True)], now=0.0)
    assert second.halted is not None
    assert second.halted[0].offset == 6, "the first of them is named"


def test_without_a_breaker_a_flood_of_poison_goes_to_the_dead_letters() -> None:
    dispatch = make_dispatch(max_in_flight=10_000)
    dispatch.assign(SOURCE, 0)
    dispatch.deliver(SOURCE, records(SOURCE, 0, 2_000))
    (run, *_) = take(dispatch)
    effects = dispatch.report([(run, [POISON] * len(run.records), True)], now=0.0)
    assert effects.halted is None
    assert len(effects.sends) == len(run.records)
