"""Who answers ``App.progress`` and ``App.commit``: the engine that runs the app in this process."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn, Protocol

from penstock.core.records.record import TopicPartition
from penstock.errors import StateError


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProgress:
    """How far one owned partition is."""

    handler: str
    group: str
    topic: str
    partition: int
    position: int | None
    """The offset to be fetched next; None until the first answer of the broker, where the log's start was asked for."""
    committed: int | None
    """What the group has committed; None before the first time."""
    end: int
    """The offset that the next record to be written will get."""
    lag: int | None
    """Offsets between what is committed (without a commit: the position) and the end."""
    in_flight: int
    """Records that were fetched and are not finished."""


class Control(Protocol):
    """An engine's side of ``App.progress`` and ``App.commit``; from any thread."""

    def progress(self) -> list[PartitionProgress]: ...
    def commit(self, offsets: Mapping[TopicPartition, int]) -> None: ...


class NoControl:
    """Stands where an app runs but nobody can answer; says why, and what to do instead."""

    def __init__(self, problem: str, hint: str) -> None:
        self._problem = problem
        self._hint = hint

    def progress(self) -> list[PartitionProgress]:
        self._refuse()

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:  # noqa: ARG002 - the protocol's
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise StateError(self._problem, hint=self._hint)


# What answers for the apps of this process that no engine runs here. Written once, before handlers run.
_elsewhere: Control | None = None


def engine_is_elsewhere(control: Control) -> None:
    """For processes that only run handlers: an app that a handler's module declares there is not the one that runs."""
    global _elsewhere  # noqa: PLW0603 - a fact about the process
    _elsewhere = control


class ControlSlot:
    """The engine that answers for one app in this process, if any.

    Engines write it under the lock at the start and end of a run; any thread reads it. An app may travel to another
    process with its handlers; the engine that runs it here does not travel with it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control: Control | None = None
        self._is_held = False

    def __reduce__(self) -> tuple[type["ControlSlot"], tuple[()]]:
        return (ControlSlot, ())

    @property
    def is_held(self) -> bool:
        """Whether an engine runs the app now."""
        return self._is_held

    def get(self, app: str) -> Control:
        control = self._control or _elsewhere
        if control is None:
            raise StateError(
                f"App {app!r} is not running on the local engine in this process.",
                hint="Ask while it runs, for example in a handler.",
            )
        return control

    @contextmanager
    def held_by(self, control: Control, app: str) -> Iterator[None]:
        """Inside the block this engine answers, and no other may."""
        with self._lock:
            self._refuse_a_second(app)
            self._control, self._is_held = control, True
        try:
            yield
        finally:
            with self._lock:
                self._control, self._is_held = None, False

    def lend(self, control: Control, app: str) -> None:
        """For the testing kit, whose benches take turns: this one answers until another does, or ``release``."""
        with self._lock:
            self._refuse_a_second(app)
            self._control = control

    def release(self, control: Control) -> None:
        with self._lock:
            if self._control is control:
                self._control = None

    def _refuse_a_second(self, app: str) -> None:
        if self._is_held:
            raise StateError(
                f"App {app!r} is running already in this process.",
                hint="Stop it first. For more members of its group, declare members=N or start more processes.",
            )
