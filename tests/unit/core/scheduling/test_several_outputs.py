"""A record with several outputs is finished when the broker has acknowledged all of them."""

import pytest

from dispatch_helpers import OUTPUTS, make_dispatch, records, take
from penstock.core.failures.outcome import Failed
from penstock.core.scheduling.dispatch import Dispatch
from penstock.core.scheduling.effects import Send, by_record

TP = ("t", 0)
REFUSED = Failed("OutputRefused", "too large", final=True)


def with_outputs(*, count: int = 1, dead_letter: bool = True) -> tuple[Dispatch, list[Send]]:
    """A dispatch where so many records were handled, and the three outputs of each are to be sent."""
    dispatch = make_dispatch(dead_letter=dead_letter)
    dispatch.assign(TP, 0)
    dispatch.deliver(TP, records(TP, 0, count))
    (run,) = take(dispatch)
    effects = dispatch.report([(run, [OUTPUTS] * count, True)], now=0.0)
    assert not any(finished for _, finished in effects.finished)
    return dispatch, effects.sends


def commit_point(dispatch: Dispatch) -> int:
    return dispatch.commits(known_too=True)[TP][0]


def test_the_outputs_of_a_record_follow_each_other() -> None:
    _, sends = with_outputs(count=2)
    assert [send.outgoing.topic for send in sends] == ["out", "audit", "out"] * 2
    assert [[send.tried.offset for send in each] for each in by_record(sends)] == [[0, 0, 0], [1, 1, 1]]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_only_the_last_acknowledgement_finishes_the_record(order: list[int]) -> None:
    dispatch, sends = with_outputs()
    (epoch,) = dispatch.epochs
    *early, last = (sends[number] for number in order)
    assert [dispatch.acknowledge(send) for send in early] == [False, False]
    assert (epoch.pending.count, commit_point(dispatch)) == (1, 0)
    assert not epoch.drained
    assert dispatch.acknowledge(last)
    assert (epoch.pending.count, commit_point(dispatch)) == (0, 1)
    assert epoch.drained


def test_a_record_of_which_an_output_is_refused_fails_once_and_is_finished_by_its_dead_letter() -> None:
    dispatch, (first, second, third) = with_outputs()
    (epoch,) = dispatch.epochs
    assert not dispatch.acknowledge(first)
    (letter,) = dispatch.refuse(second, REFUSED).sends
    assert letter.outgoing.topic == "dlq"
    assert not dispatch.refuse(third, REFUSED).sends, "the record has failed already"
    assert epoch.pending.count == 1
    assert dispatch.acknowledge(letter)
    assert (epoch.pending.count, commit_point(dispatch)) == (0, 1)


def test_acknowledgements_after_a_refusal_do_not_finish_the_record() -> None:
    dispatch, (first, second, third) = with_outputs()
    (letter,) = dispatch.refuse(first, REFUSED).sends
    assert not dispatch.acknowledge(second)
    assert not dispatch.acknowledge(third)
    assert commit_point(dispatch) == 0
    assert dispatch.acknowledge(letter)
    assert commit_point(dispatch) == 1


def test_without_a_dead_letter_topic_the_app_stops_at_it() -> None:
    dispatch, sends = with_outputs(dead_letter=False)
    effects = dispatch.refuse(sends[1], REFUSED)
    assert effects.halted is not None
    assert effects.halted[1] is REFUSED


def test_outputs_that_cannot_be_produced_now_leave_their_record_unfinished() -> None:
    dispatch, (first, second, third) = with_outputs()
    (epoch,) = dispatch.epochs
    dispatch.abandon(first)
    dispatch.abandon(second)
    assert epoch.pending.count == 0, "it counts once"
    assert not dispatch.acknowledge(third)
    assert commit_point(dispatch) == 0


def test_acknowledgements_after_the_epoch_have_no_effect() -> None:
    dispatch, sends = with_outputs()
    assert not dispatch.acknowledge(sends[0])
    dispatch.close([TP])
    dispatch.assign(TP, 0)
    assert [dispatch.acknowledge(send) for send in sends[1:]] == [False, False]
    assert commit_point(dispatch) == 0
