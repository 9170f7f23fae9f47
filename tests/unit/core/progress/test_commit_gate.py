"""At most once: only committed records are handled, and the group gets the uncommitted ones again."""

from collections.abc import Sequence

from dispatch_helpers import take
from penstock import Record
from penstock.core.failures.outcome import DONE
from penstock.core.progress.offset_map import decode, encode
from penstock.core.scheduling.dispatch import Dispatch
from penstock.core.scheduling.in_flight import DEFAULT_BYTES, InFlight
from penstock.core.scheduling.lanes import Order

TP = ("t", 0)


def make(*, order: Order = "none", max_in_flight: int = 100) -> Dispatch:
    return Dispatch(
        order=order,
        concurrency=1,
        in_flight=InFlight(max_in_flight, DEFAULT_BYTES),
        dead_letter_of=None,
        random=lambda: 0.5,
        ahead=True,
    )


def deliver(dispatch: Dispatch, offsets: Sequence[int]) -> None:
    dispatch.deliver(TP, [Record(*TP, offset, None, b"") for offset in offsets])


def accept(dispatch: Dispatch) -> None:
    commits = dispatch.commits()
    dispatch.committing(commits)
    for tp, commit in commits.items():
        dispatch.committed(tp, commit)


def taken(dispatch: Dispatch) -> list[int]:
    """Run all records that may run, one after the other."""
    offsets: list[int] = []
    while runs := take(dispatch, size=1):
        offsets += [record.offset for run in runs for record in run.records]
        dispatch.report([(run, [DONE] * len(run.records), True) for run in runs], 0.0)
    return offsets


def test_nothing_runs_before_its_commit_is_accepted() -> None:
    dispatch = make()
    dispatch.assign(TP, 0)
    deliver(dispatch, [0, 1])
    assert (take(dispatch), dispatch.waits_for_commit) == ([], True)
    commits = dispatch.commits()
    assert commits == {TP: (2, "")}
    dispatch.committing(commits)
    deliver(dispatch, [2])
    dispatch.committed(TP, commits[TP])
    assert taken(dispatch) == [0, 1]
    dispatch.refused(TP)
    assert taken(dispatch) == []
    accept(dispatch)
    assert taken(dispatch) == [2]
    assert dispatch.commits() == {}


def test_a_stop_handles_what_is_committed_and_drops_the_rest_uncommitted() -> None:
    dispatch = make()
    epoch = dispatch.assign(TP, 0)
    deliver(dispatch, [0, 1])
    accept(dispatch)
    deliver(dispatch, [2, 3])
    dispatch.stop_dispatching([TP])
    deliver(dispatch, [4])
    assert dispatch.commits() == {}, "a commit now would skip the dropped records"
    assert not epoch.drained
    assert taken(dispatch) == [0, 1]
    assert epoch.drained


def test_a_commit_that_is_under_way_at_a_stop_decides_about_its_records() -> None:
    for is_accepted in (True, False):
        dispatch = make()
        epoch = dispatch.assign(TP, 0)
        deliver(dispatch, [0, 1])
        commits = dispatch.commits()
        dispatch.committing(commits)
        deliver(dispatch, [2])
        dispatch.stop_dispatching([TP])
        assert not epoch.drained
        if is_accepted:
            dispatch.committed(TP, commits[TP])
        else:
            dispatch.refused(TP)
        assert taken(dispatch) == ([0, 1] if is_accepted else [])
        assert epoch.drained


def test_a_close_ends_it_with_unfinished_records() -> None:
    dispatch = make()
    dispatch.assign(TP, 0)
    deliver(dispatch, [0, 1])
    accept(dispatch)
    dispatch.close([TP])
    assert take(dispatch) == []
    assert dispatch.settled == 2


def test_back_pressure_gives_nothing_back_that_is_committed() -> None:
    dispatch = make(max_in_flight=10)
    dispatch.assign(TP, 0)
    dispatch.assign(("t", 1), 0)
    deliver(dispatch, range(10))
    accept(dispatch)
    dispatch.balance(0.0)
    paused, _ = dispatch.balance(1.0)
    assert [pause.rewind_to for pause in paused] == [None]
    assert taken(dispatch) == [*range(10)]


def test_records_that_an_earlier_run_finished_out_of_order_are_neither_repeated_nor_forgotten() -> None:
    dispatch = make()
    dispatch.assign(TP, 0, encode(0, [(1, 3), (8, 9)]) or "", [(1, 3), (8, 9)])
    deliver(dispatch, [0, 1, 2, 3])
    ((offset, text),) = dispatch.commits().values()
    assert (offset, decode(offset, text)) == (4, [(8, 9)])
    accept(dispatch)
    assert taken(dispatch) == [0, 3]
