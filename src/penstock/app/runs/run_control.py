"""How ``App.progress``, ``App.commit``, ``App.pause`` and others reach the engine that runs the app in this process."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn, Protocol

from penstock.app.runs.live_command import HandlerState, LiveCommand
from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError, StateError


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProgress:
    """The progress of one owned partition."""

    handler: str
    group: str
    topic: str
    partition: int
    position: int | None
    """The next offset to fetch; None while the consumer waits for the broker to resolve the start of the log."""
    committed: int | None
    """The committed offset of the group; None before the first commit."""
    end: int
    """The end of the log: the offset of the next record that a producer writes."""
    lag: int | None
    """Offsets from the committed offset (without a commit: from the position) to the end."""
    in_flight: int
    """Records that are fetched and not finished."""


class Control(Protocol):
    """What an engine implements for the methods of ``App`` that ask or change a running app. Any thread may call it."""

    def progress(self) -> list[PartitionProgress]: ...
    def commit(self, offsets: Mapping[TopicPartition, int]) -> None: ...
    def states(self) -> list[HandlerState]: ...
    def command(self, command: LiveCommand) -> list[HandlerState]:
        """Carry out the command and report it as an event. Returns how the handlers stand that it was for."""


class NoControl:
    """For processes in which the app runs but cannot answer: raises an error that says why, and what to do."""

    def __init__(self, problem: str, hint: str) -> None:
        self._problem = problem
        self._hint = hint

    def progress(self) -> list[PartitionProgress]:
        self._refuse()

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:  # noqa: ARG002 - the protocol's
        self._refuse()

    def states(self) -> list[HandlerState]:
        self._refuse()

    def command(self, command: LiveCommand) -> list[HandlerState]:  # noqa: ARG002 - the protocol's
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise StateError(self._problem, hint=self._hint)


# Answers for apps that no engine runs in this process. Written once, before handlers run.
_elsewhere: Control | None = None


def engine_is_elsewhere(control: Control) -> None:
    """For processes that only run handlers: the app that a handler's module declares there is not the running one."""
    global _elsewhere  # noqa: PLW0603 - a fact about the process
    _elsewhere = control


def refuse_elsewhere(call: str) -> None:
    """Raise an error in a process that only runs handlers: the run of the app is in another process."""
    if _elsewhere is not None:
        raise StateError(
            f"{call} was called in a process that only runs handlers: the app runs in another process.",
            hint="Call it in the process that started the app.",
        )


# The module that a command imports now to find the app in it.
_imported: str | None = None


@contextmanager
def importing(module: str) -> Iterator[None]:
    """For commands: inside the block the module of an app is imported, and must not run the app itself."""
    global _imported  # noqa: PLW0603 - a fact about the process
    before, _imported = _imported, module
    try:
        yield
    finally:
        _imported = before


def refuse_while_imported(call: str) -> None:
    """Raise an error if a module runs an app as soon as a command imports it: the command would wait for its end."""
    if _imported is not None:
        raise ConfigError(
            f"Module {_imported!r} calls {call} while it is imported.",
            hint='Put the call below: if __name__ == "__main__":',
        )


class ControlSlot:
    """The engine that answers for one app in this process, if any.

    Engines write it under the lock at the start and end of a run; any thread reads it. When an app is pickled for
    another process, the copy has an empty slot: the engine stays here.
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
                hint="Call it while the app runs, for example in a handler.",
            )
        return control

    @contextmanager
    def held_by(self, control: Control, app: str) -> Iterator[None]:
        """Inside the block this engine answers, and no other engine may run the app."""
        with self._lock:
            self._require_free(app)
            self._control, self._is_held = control, True
        try:
            yield
        finally:
            with self._lock:
                self._control, self._is_held = None, False

    def attach(self, control: Control, app: str) -> None:
        """For the testing kit, where several benches may use one app: the last one that attached answers."""
        with self._lock:
            self._require_free(app)
            self._control = control

    def detach(self, control: Control) -> None:
        with self._lock:
            if self._control is control:
                self._control = None

    def _require_free(self, app: str) -> None:
        if self._is_held:
            raise StateError(
                f"App {app!r} is running already in this process.",
                hint="Stop it first. For more members of its group, declare members=N or start more processes.",
            )
