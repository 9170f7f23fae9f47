"""What a task does: reads its slices, handles them and returns a result for each. ``run_slices`` is the entry."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Any

from penstock.app import Handler
from penstock.app.dispatching.tuned_gc import tuned_gc
from penstock.core.progress.slices import Reached, Slice
from penstock.core.records.record import TopicPartition
from penstock.errors import CallbackError, ConfigError, HandlerError, PenstockError, SetupError
from penstock.kafka import MESSAGES
from penstock.kafka.error_codes import BAD_RECORD, FENCED
from penstock.kafka.errors import is_final, kafka_error
from penstock.spark.halted_task import HaltedTaskError
from penstock.spark.tasks.outputs import DryOutputs, Outputs, PlainOutputs, TransactionalOutputs
from penstock.spark.tasks.slice_reader import SliceReader
from penstock.spark.tasks.slice_result import SliceResult
from penstock.spark.tasks.slice_task import SliceTask
from penstock.spark.tasks.worker_state import WorkerState, worker_state
from penstock.spark.tasks.workers import make_workers


@dataclass(frozen=True)
class DriverMembership:
    """The driver's membership of the group, when it started the job.

    ``metadata`` lets the broker refuse the transactions of a driver that no longer owns a partition; None if the driver
    is not a member. ``owners`` names the Python worker that ran the last slice of each partition. ``changes`` are the
    options of the handler that commands have changed since the start.
    """

    metadata: bytes | None = None
    owners: dict[TopicPartition, str] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)


def run_slices(packed: bytes, slices: Sequence[Slice], membership: DriverMembership) -> list[SliceResult]:
    """Run these slices in this Python worker. Errors are part of the results.

    Only a bug or a crash raises, and an attempt that a newer one has fenced.
    """
    state = worker_state(packed)
    handler = state.plan.handler
    with tuned_gc():
        if handler.is_exactly_once:
            return [_exactly_once(state, each, membership) for each in slices]
        if handler.is_at_most_once:
            return [_at_most_once(state, each, membership) for each in slices]
        return _at_least_once(state, slices, membership)


def _at_least_once(state: WorkerState, slices: Sequence[Slice], membership: DriverMembership) -> list[SliceResult]:
    began = time.monotonic()
    task, error = _handled_without_transaction(state, slices, membership)
    return _results(state, task, slices, error, began)


def _exactly_once(state: WorkerState, each: Slice, membership: DriverMembership) -> SliceResult:
    """Write outputs, dead letters and the offset after them in one transaction.

    First, all earlier producers of this partition are fenced. So the group's offset is final when it is read, and of
    several tasks that handle the same records, only the last one to start can commit.
    """
    began, tp = time.monotonic(), each.tp
    try:
        with state.open_transaction(tp, is_newest=membership.owners.get(tp) == state.name) as transaction:
            each = _from_committed(state, each)
            outputs = TransactionalOutputs(
                transaction,
                facts=state.facts,
                open_trial=lambda: state.trial(tp),
                offset_of=MESSAGES.offset_of,
            )
            task, halted = _handled(state, [each], outputs, membership)
            if halted is not None:
                _leave_to_the_newer(halted)  # a producer may be fenced at its first output too
            if task is None or halted is not None:
                return _failed(each, halted, began)
            reached = task.reached(tp)
            if (reached.position, reached.metadata) != (each.start, each.metadata):
                offsets = {tp: (reached.position, reached.metadata)}
                transaction.commit(offsets, group=membership.metadata)
            state.keep_transaction(tp, transaction)
        return _result(state, task, each, reached, began, is_committed=True)
    except PenstockError as error:
        state.facts.forget()
        _leave_to_the_newer(error)
        return _failed(each, error, began)


def _at_most_once(state: WorkerState, each: Slice, membership: DriverMembership) -> SliceResult:
    """Commit the end of the slice, and only then handle it. The transaction keeps other tasks from handling it too."""
    began, tp = time.monotonic(), each.tp
    try:
        with state.open_transaction(tp, is_newest=membership.owners.get(tp) == state.name) as transaction:
            each = replace(_from_committed(state, each), seconds=inf)
            if each.end > each.start:
                transaction.commit({tp: (each.end, "")}, group=membership.metadata)
            state.keep_transaction(tp, transaction)
    except PenstockError as error:
        _leave_to_the_newer(error)
        return _failed(each, error, began)
    task, halted = _handled_without_transaction(state, [each], membership)
    found = _results(state, task, [each], halted, began)[0]
    # Whatever happened, these records are not handled again.
    return replace(found, reached=Reached(each.end, "", each.end), is_committed=True)


def _handled_without_transaction(
    state: WorkerState, slices: Sequence[Slice], membership: DriverMembership
) -> tuple[SliceTask | None, PenstockError | None]:
    if state.plan.handler.is_dry_run:
        return _handled(state, slices, DryOutputs(), membership)
    outputs = PlainOutputs(
        state.producer(), make_alone=state.alone_producer, offset_of=MESSAGES.offset_of, brokers=state.plan.brokers
    )
    task, error = _handled(state, slices, outputs, membership)
    if error is not None and not isinstance(error, HandlerError):
        state.drop_producer()
        outputs.close()
    return task, error


def _leave_to_the_newer(error: PenstockError) -> None:
    """Raise to Spark if a newer attempt at the slice has fenced this one: with speculation, two run at once.

    A result would end the task: Spark takes the first result and kills the attempt that can still commit. After an
    exception, Spark waits for the other attempt, or starts one if there is none.
    """
    inner = None if error.__cause__ is None else kafka_error(error.__cause__)
    if inner is not None and inner.code() in FENCED:
        raise HaltedTaskError(error) from error


def _from_committed(state: WorkerState, each: Slice) -> Slice:
    """Return the slice from the group's offset on: an earlier attempt at it may have been committed."""
    found = state.cluster.stable_commits(state.plan.handler.group, [each.tp]).get(each.tp)
    if found is None or found == (each.start, each.metadata):
        return each
    start, metadata = found
    return replace(each, start=start, end=max(start, each.end), metadata=metadata)


def _handled(
    state: WorkerState, slices: Sequence[Slice], outputs: Outputs, membership: DriverMembership
) -> tuple[SliceTask | None, PenstockError | None]:
    """Run the slices. Returns the task, unless nothing of it counts, and the error that ended it."""
    plan = state.plan
    handler: Handler = replace(plan.handler, **membership.changes)
    consumer, is_kept = state.take_consumer(), False
    try:
        state.resources.begin(slices, membership.owners)
        reader = SliceReader(consumer, slices, brokers=plan.brokers)
        task = SliceTask(
            handler,
            slices,
            reader,
            outputs,
            partial(make_workers, handler, time.sleep, resources=state.resources),
            circuit=state.circuit,
            auto=state.auto_for(handler),
            per_record=plan.per_record,
            brokers=plan.brokers,
        )
        task.run()
        reader.close()
        state.give_back(consumer)
        is_kept = True
    except PenstockError as error:
        return None, error
    else:
        return task, task.halted
    finally:
        if not is_kept:
            state.discard(consumer)


def _results(
    state: WorkerState, task: SliceTask | None, slices: Sequence[Slice], error: PenstockError | None, began: float
) -> list[SliceResult]:
    if task is None:
        return [_failed(each, error, began) for each in slices]
    # The counts and events are those of the whole task: they are reported once.
    first, *others = slices
    results = [_result(state, task, first, task.reached(first.tp), began)]
    results += [SliceResult(each.tp, each.epoch, task.reached(each.tp), worker=state.name) for each in others]
    out = task.reader.out_of_range
    results = [replace(found, out_of_range=found.tp in out) for found in results]
    return results if error is None else [replace(results[0], error=error), *results[1:]]


def _result(
    state: WorkerState, task: SliceTask, each: Slice, reached: Reached, began: float, *, is_committed: bool = False
) -> SliceResult:
    return SliceResult(
        each.tp,
        each.epoch,
        reached,
        counts=task.counts,
        route_counts=task.route_counts,
        events=tuple(task.events),
        seconds=time.monotonic() - began,
        is_committed=is_committed,
        out_of_range=each.tp in task.reader.out_of_range,
        worker=state.name,
    )


def _failed(each: Slice, error: PenstockError | None, began: float) -> SliceResult:
    return SliceResult(
        each.tp,
        each.epoch,
        None,
        seconds=time.monotonic() - began,
        error=error,
        may_pass=error is not None and may_pass(error),
    )


def may_pass(error: PenstockError) -> bool:
    """Whether another attempt may succeed: the error is about a broker, the network or a topic."""
    if isinstance(error, HandlerError | ConfigError | SetupError | CallbackError):
        return False
    inner = None if error.__cause__ is None else kafka_error(error.__cause__)
    return inner is None or not is_final(inner) or inner.code() in BAD_RECORD
