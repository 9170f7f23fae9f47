"""Replays of dead letters in the background of this process, each with its progress."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import uuid4

from penstock.core.text.plurals import counted
from penstock.errors import PenstockError, StateError
from penstock.kafka.admin.cluster import Cluster
from penstock.ops.replay import DeadLetterReplay, ReplayPlan
from penstock.ops.replay_audit import Audit

_KEPT = 20


@dataclass
class ReplayJob:
    """One replay. Its thread writes ``sent``, ``ended`` and ``problem``; others only read them."""

    topic: str
    total: int
    command: str
    id: str = field(default_factory=lambda: uuid4().hex[:12])
    began: float = field(default_factory=time.time)
    stop: threading.Event = field(default_factory=threading.Event)
    sent: int = 0
    ended: float | None = None
    problem: tuple[str, str | None] | None = None
    """What went wrong, and a hint."""

    @property
    def state(self) -> str:
        if self.ended is None:
            return "stopping" if self.stop.is_set() else "running"
        if self.problem is not None:
            return "failed"
        return "stopped" if self.sent < self.total and self.stop.is_set() else "done"


class ReplayJobs:
    """The replays that this process has started. ``_lock`` guards the list."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: list[ReplayJob] = []

    def start(
        self, cluster: Cluster, replay: DeadLetterReplay, plan: ReplayPlan, *, command: str, note: Callable[[str], None]
    ) -> ReplayJob:
        """Start one. Raise a StateError if a replay of this topic runs already."""
        audit = Audit(cluster.id(), command=command)
        job = ReplayJob(replay.request.topic, plan.total, command)
        with self._lock:
            if any(each.topic == job.topic and each.ended is None for each in self._jobs):
                raise StateError(f"A replay of {job.topic} runs already.", hint="Wait for its end, or stop it.")
            self._jobs = [*self._jobs, job][-_KEPT:]

        def run() -> None:
            try:
                replay.carry_out(plan, audit=audit, stop=job.stop, progress=lambda count: setattr(job, "sent", count))
            except PenstockError as error:
                job.problem = error.problem, error.hint
            except Exception as error:  # noqa: BLE001 - the thread's only way to say it
                job.problem = f"The replay has a bug: {type(error).__name__}: {error}", "Please report it."
            finally:
                job.ended = time.time()
            note(f"Replay of {job.topic} {job.state}: {counted(job.sent, 'dead letter')} of {job.total:,} sent.")

        threading.Thread(target=run, name="replay", daemon=True).start()
        return job

    def all(self) -> list[ReplayJob]:
        """Return the last ones, the newest first."""
        with self._lock:
            return self._jobs[::-1]

    def stop(self, job_id: str) -> None:
        """Ask one to end after its current batch."""
        found = next((each for each in self.all() if each.id == job_id), None)
        if found is None:
            raise StateError("This replay is not known.", hint="The dashboard was started again since.")
        found.stop.set()

    def stop_all(self) -> None:
        for each in self.all():
            each.stop.set()
