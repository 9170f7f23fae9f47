"""Runs one handler from the driver: owns its partitions, starts their slices as Spark jobs, commits what they finished.

It has a thread of its own, which alone uses its state. ``_turn`` shows what the thread does, again and again.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue

from penstock.app import Handler
from penstock.core.progress.slices import PartitionSlices, Slice
from penstock.core.records.record import TopicPartition
from penstock.core.reports import events
from penstock.errors import PenstockError
from penstock.kafka import Cluster, source_partitions
from penstock.spark.driver.callbacks import call_back
from penstock.spark.driver.cluster_retry import ClusterRetry
from penstock.spark.driver.driver_control import DriverControl
from penstock.spark.driver.driver_reports import DriverReports
from penstock.spark.driver.group_member import Commits, make_member
from penstock.spark.driver.merged_results import merged
from penstock.spark.driver.next_slices import next_slices, tasks_commit
from penstock.spark.driver.slice_jobs import JobEnded, MakeJobs, SliceJobs
from penstock.spark.driver.slice_restarts import SliceRestarts
from penstock.spark.driver.spark_errors import job_failure
from penstock.spark.driver.start_offsets import StartOffsets
from penstock.spark.driver.targets import Targets
from penstock.spark.driver.topic_ids import TopicIds
from penstock.spark.driver.uncommitted import Uncommitted
from penstock.spark.tasks.run_slices import DriverMembership
from penstock.spark.tasks.slice_result import SliceResult

# The longest wait for the end of a job, and for the answer to a join or a commit; then the thread serves the client.
_TURN_SECONDS, _ANSWER_SECONDS = 0.05, 0.005
# How often to ask for the ends of the logs; sooner if a slice has just ended at such an end.
_ENDS_SECONDS, _SOON_SECONDS = 0.2, 0.05
# How often to look at other members' progress and to report one's own.
_LOOK_SECONDS = 1.0


class HandlerDriver:
    """Call ``join``, then ``start`` when there is a session. ``is_over`` and ``error`` may be read by any thread."""

    def __init__(
        self,
        handler: Handler,
        cluster: Cluster,
        *,
        root: Path,
        emit: Callable[[events.Event], None],
        until_caught_up: bool,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._handler = self.handler = handler
        self._cluster = cluster
        self._reports = DriverReports(handler, emit)
        self._clock = clock
        self._sources = source_partitions(handler, cluster)  # raises if a topic is missing
        self._starts = StartOffsets(handler, cluster, root=root, at_start=self._sources, emit=emit)
        self._targets = Targets(cluster, handler, self._sources) if until_caught_up or handler.replay_range else None
        self._topic_ids = TopicIds(cluster, {topic for topic, _ in self._sources})
        self._partitions: dict[TopicPartition, PartitionSlices] = {}
        self.control = DriverControl(handler, self._partitions)
        self._unresolved: dict[TopicPartition, bool] = {}  # owned, position unknown; True: its topic was recreated
        self._uncommitted = Uncommitted(self._partitions)
        self._left: dict[TopicPartition, int] = {}  # the positions of partitions that it owned before
        self._owners: dict[TopicPartition, str] = {}
        self._restarts = SliceRestarts(handler)
        self._ended: SimpleQueue[JobEnded] = SimpleQueue()
        self._running: list[Sequence[Slice]] = []
        self._jobs: SliceJobs | None = None
        self._next_slices = partial(next_slices, handler, slots=1)
        self._asked_ends = self._looked = 0.0
        self._ask = ClusterRetry(self._reports.warned)
        self._stop_reason: str | None = None
        self._stopping_at: float | None = None
        self._was_cancelled = self._has_joined = False
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"driver-{handler.name}", daemon=True)
        self._member = make_member(
            handler,
            cluster,
            assigned=self._assigned,
            revoked=self._revoked,
            lost=self._lost,
            answered=self._answered,
            warn=self._reports.warned,
        )
        self.is_over = False
        self.error: PenstockError | None = None

    # Called by the runner's thread.

    def join(self) -> None:
        """Join the group, which may take seconds: meanwhile a session can start."""
        self._thread.start()

    def start(self, jobs: MakeJobs, *, slots: int, per_record: bool = False) -> None:
        """Start slices as Spark jobs from now on, of which ``slots`` tasks run at once."""
        self._next_slices = partial(next_slices, self._handler, slots=max(1, slots), per_record=per_record)
        self._reports.begin()
        self._jobs = jobs(self._ended)
        self._begun.set()

    def stop(self, reason: str) -> None:
        """Start no further slice, and end when those that run are finished."""
        self._stop_reason = self._stop_reason or reason

    def wait(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()

    # The thread.

    def _run(self) -> None:
        try:
            self._member.join()
            was_started = False
            while not self.is_over:
                if not was_started and self._begun.is_set():
                    was_started = True
                    self._reports.started(self._cluster, self._sources)
                self._turn()
        except PenstockError as error:
            self._end(error)
        except Exception as error:  # noqa: BLE001 - without this thread, nobody would report that the handler has ended
            self._end(job_failure(error, self._handler).error)

    def _turn(self) -> None:
        is_starting = not (self._has_joined and self._begun.is_set())
        self._take_ended(_ANSWER_SECONDS if is_starting or self._uncommitted.are_asked else _TURN_SECONDS)
        for error in self._member.poll():
            raise error
        self._ask(self._resume)
        self._commit()
        if self._stop_reason is not None:
            self._check_stop(self._stop_reason)
            return
        self._ask(self._look)
        if self._jobs is not None:
            self._start_slices(self._jobs)
            if self._has_caught_up():
                self.stop("caught up")

    # Partitions come and go.

    def _assigned(self, tps: list[TopicPartition]) -> None:
        self._has_joined, self._looked = True, 0.0
        self._unresolved.update(dict.fromkeys(tps, False))

    def _revoked(self, tps: list[TopicPartition]) -> None:
        """Finish the slices that run, commit, and let the partitions go."""
        going, deadline = set(tps), time.monotonic() + self._handler.drain_timeout
        while any(self._partitions[tp].running for tp in going & self._partitions.keys()):
            if time.monotonic() > deadline:
                break
            self._take_ended(_TURN_SECONDS, starts=False)
        self._member.commit_now(self._uncommitted.now(going))
        self._remove(tps, self._reports.revoked)
        self._call("on_revoked", tps)

    def _lost(self, tps: list[TopicPartition]) -> None:
        self._remove(tps, self._reports.lost)
        self._call("on_lost", tps)

    def _remove(self, tps: Sequence[TopicPartition], report: Callable[[PartitionSlices], None]) -> None:
        for tp in tps:
            self._unresolved.pop(tp, None)
            self._uncommitted.forget(tp)
            self._owners.pop(tp, None)  # another owner fences the producer that this worker keeps
            partition = self._partitions.pop(tp, None)
            if partition is not None:
                self._left[tp] = partition.position
                report(partition)

    def _resume(self) -> None:
        """Find out where partitions resume that were assigned, recreated or out of range."""
        tps = [tp for tp in self._unresolved if tp not in self._partitions or not self._partitions[tp].running]
        if not tps:
            return
        fresh = [tp for tp in tps if tp not in self._partitions]
        # A topic that is deleted is revoked; if it was recreated since, its old positions tell what was skipped.
        # Noted first: if the cluster does not answer below, the ids tell it no second time.
        found_renewed = self._topic_ids.renewed({topic for topic, _ in fresh})
        self._unresolved.update((tp, True) for tp in fresh if tp[0] in found_renewed)
        renewed = {topic for (topic, partition) in tps if self._unresolved[topic, partition]}
        known = {tp: self._left[tp] for tp in fresh if tp[0] in renewed and tp in self._left}
        # Where tasks commit, the group knows more than the driver, except about a topic that was deleted.
        same = [tp for tp in tps if tp not in fresh and (tp[0] in renewed or not self._tasks_commit)]
        known |= {tp: self._partitions[tp].position for tp in same}
        found = self._starts.resume(tps, known, renewed)
        for tp in tps:
            del self._unresolved[tp]
        if fresh and not self._call("on_assigned", fresh):
            return
        for partition in found.partitions:
            before = self._partitions.get(partition.tp)
            self._partitions[partition.tp] = partition
            if before is None:
                self._reports.assigned(partition)
            elif partition.tp[0] not in renewed:
                partition.again_at, partition.waiting = before.again_at, before.waiting
        self._uncommitted.add(found.uncommitted)
        if self._handler.topics or self._handler.pattern:
            self._starts.set_checkpoint_aside()

    # Slices.

    def _start_slices(self, jobs: SliceJobs) -> None:
        waits, is_paused = {*self._unresolved}, self.control.paused.covers
        if self._tasks_commit:
            # Tasks that commit begin at the group's offset, so it must be right before they start.
            waits |= self._uncommitted.partitions
        partitions = [each for tp, each in self._partitions.items() if tp not in waits and not is_paused(tp)]
        for bundle in self._next_slices(partitions, self._clock(), running=len(self._running)):
            self._running.append(bundle.slices)
            owners = {each.tp: self._owners[each.tp] for each in bundle.slices if each.tp in self._owners}
            metadata = self._member.metadata() if self._tasks_commit else None
            jobs.start(bundle.tasks, DriverMembership(metadata, owners, self.control.changes))

    @property
    def _tasks_commit(self) -> bool:
        return tasks_commit(self._handler)

    def _take_ended(self, seconds: float, *, starts: bool = True) -> None:
        """Take the jobs that ended. Waits for one up to ``seconds``."""
        ended: list[JobEnded] = []
        with suppress(Empty):
            ended.append(self._ended.get(timeout=seconds))
            while True:
                ended.append(self._ended.get_nowait())
        if not ended:
            return
        for job in ended:
            first = job.slices[0].tp, job.slices[0].epoch  # a slice of a later epoch may run
            self._running = [each for each in self._running if (each[0].tp, each[0].epoch) != first]
            if job.error is not None:
                self._job_failed(job, job.error)
            else:
                for result in merged(job.results):
                    self._slice_ended(result)
        self._reports.finished([result for job in ended for result in job.results], self._partitions)
        has_more = all(self._partitions[tp].backlog for job in ended for tp in job.tps & self._partitions.keys())
        if starts and not has_more and time.monotonic() - self._asked_ends > _SOON_SECONDS:
            self._asked_ends = 0.0

    def _slice_ended(self, result: SliceResult) -> None:
        partition = self._partitions.get(result.tp)
        if partition is None or partition.epoch != result.epoch:
            return  # it was lost or recreated meanwhile
        self._owners[result.tp] = result.worker
        if result.reached is None:
            self._owners.pop(result.tp, None)
            self._slice_failed(partition, result.error, may_pass=result.may_pass)
            return
        self._restarts.succeeded(result.tp)
        before = partition.position, partition.metadata
        partition.finish(result.reached, self._clock())
        if result.out_of_range:
            self._unresolved[result.tp] = False
        if result.is_committed:
            if (partition.position, partition.metadata) != before:
                self._reports.committed(result.tp, partition.position)
        elif (partition.position, partition.metadata) != before:
            self._uncommitted.add([result.tp])
        if result.error is not None:
            self._fail(result.error)

    def _job_failed(self, job: JobEnded, error: Exception) -> None:
        if self._was_cancelled:
            for each in job.slices:
                self._forget_run(each)
            return
        failure = job_failure(error, self._handler, job.slices)
        for each in job.slices:
            partition = self._partitions.get(each.tp)
            self._owners.pop(each.tp, None)
            if partition is not None and partition.epoch == each.epoch and partition.running:
                self._slice_failed(partition, failure.error, may_pass=failure.may_pass)

    def _forget_run(self, each: Slice) -> None:
        partition = self._partitions.get(each.tp)
        if partition is not None and partition.epoch == each.epoch:
            partition.fail(self._clock(), again_at=0.0)

    def _slice_failed(self, partition: PartitionSlices, error: PenstockError | None, *, may_pass: bool) -> None:
        now = self._clock()
        partition.fail(now, again_at=now)
        if error is None:
            return
        may_restart = may_pass and self._stop_reason is None
        seconds = self._restarts.failed(partition.tp, error, may_restart=may_restart)
        if isinstance(seconds, PenstockError):
            self._fail(seconds)
            return
        partition.again_at = now + seconds
        if self._tasks_commit:
            # The task may have committed before it failed.
            self._unresolved[partition.tp] = False
        self._reports.restarting(self._restarts.failures(partition.tp), error.problem, seconds)

    # Progress.

    def _look(self) -> None:
        now = time.monotonic()
        if self._partitions and now - self._asked_ends >= _ENDS_SECONDS:
            self._asked_ends = now
            # First, so that no slice is planned in a topic that was recreated.
            self._find_recreated()
            for tp, end in self._cluster.stable_ends(self._partitions).items():
                self._partitions[tp].log_ends_at(end)
        if now - self._looked >= _LOOK_SECONDS:
            self._looked = now
            if self._targets is not None and self._has_joined:
                self._targets.ask_others(self._partitions)
            self._reports.progressed(self._partitions.values())

    def _find_recreated(self) -> None:
        for topic in self._topic_ids.renewed({topic for topic, _ in self._partitions}):
            for tp in [tp for tp in self._partitions if tp[0] == topic]:
                self._unresolved[tp] = True
                # The result of a slice that still runs belongs to the old topic.
                self._partitions[tp].epoch = -1
                self._partitions[tp].running = False
            self._running = [each for each in self._running if any(of.tp[0] != topic for of in each)]
            if self._targets is not None:
                self._targets.lower(topic)

    def _has_caught_up(self) -> bool:
        if self._targets is None or self._unresolved or not self._has_joined:
            return False
        return self._targets.are_reached(self._partitions, self._clock())

    # Commits.

    def _commit(self) -> None:
        commits = self._uncommitted.take(without=self._unresolved)
        if commits:
            (self._member.commit_now if self._tasks_commit else self._member.commit)(commits)

    def _answered(self, commits: Commits, reason: str) -> None:
        for tp, commit in commits.items():
            self._uncommitted.answered(tp, commit, accepted=not reason)
            if reason:
                self._reports.commit_failed(tp, commit[0], reason)
            else:
                self._reports.committed(tp, commit[0])

    # The end.

    def _check_stop(self, reason: str) -> None:
        now = time.monotonic()
        if self._stopping_at is None:
            self._stopping_at = now
            self._reports.stopping(reason)
        is_late = now - self._stopping_at > self._handler.drain_timeout
        if is_late and self._running:
            self._reports.cancelled()
            self._cancel()
        is_committed = self._tasks_commit or self._uncommitted.partitions <= self._unresolved.keys()
        if not self._running and (is_late or is_committed):
            self._end(None)

    def _cancel(self) -> None:
        self._was_cancelled = True
        if self._jobs is not None:
            self._jobs.cancel()
        self._running.clear()

    def _fail(self, error: PenstockError) -> None:
        if self.error is None:
            self.error = error
            self._reports.failed(error)
        self.stop("error")

    def _end(self, error: PenstockError | None) -> None:
        if error is not None:
            self._fail(error)
            if self._stopping_at is None:
                self._reports.stopping("error")
            self._cancel()
        for each in self._partitions.values():
            each.running = False
        if not self._tasks_commit:
            self._member.commit_now(self._uncommitted.now())
        self._member.leave()
        self._reports.progressed(self._partitions.values())
        self._reports.stopped()
        self.is_over = True

    def _call(self, option: str, tps: Sequence[TopicPartition]) -> bool:
        """Call the user's function, if there is one; return False, and stop the app, if it raises."""
        error = call_back(self._handler, option, tps)
        if error is not None:
            self._fail(error)
        return error is None
