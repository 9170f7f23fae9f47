"""The errors that Penstock raises for users. Each says what happened and what to do next."""

from typing import ClassVar


class PenstockError(Exception):
    """Base of all errors that Penstock raises on purpose.

    ``problem`` says what is wrong, ``hint`` what to do about it, each in plain sentences. The command line exits with
    ``exit_code``. ``traceback`` is the traceback of the user's code, as text, if an exception there caused this error;
    Python prints it as a note.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, problem: str, *, hint: str = "", traceback: str = "") -> None:
        super().__init__(problem, hint)
        self.problem = problem
        self.hint = hint
        self.traceback = traceback
        if traceback:
            self.add_note(traceback)

    def __str__(self) -> str:
        return f"{self.problem} {self.hint}".rstrip()

    def __reduce__(self) -> tuple[object, ...]:
        # By default, pickling loses keyword arguments; Spark sends errors between processes.
        return _rebuild, (type(self), self.problem, self.hint, self.traceback)


def _rebuild(kind: type[PenstockError], problem: str, hint: str, traceback: str) -> PenstockError:
    return kind(problem, hint=hint, traceback=traceback)


class ConfigError(PenstockError):
    """An option, a setting, an app or the declaration of a handler is wrong."""

    exit_code = 2


class SetupError(PenstockError):
    """This machine lacks something: Java, an extra of Penstock, disk space, a free port, a download."""

    exit_code = 3


class ServerError(PenstockError):
    """A server cannot be reached, died, or refused a request."""

    exit_code = 3


class StoreError(ServerError):
    """The store that keeps progress outside of Kafka cannot be reached, or refused a request."""


class TopicError(PenstockError):
    """A topic does not exist or cannot be used."""

    exit_code = 4


class HandlerError(PenstockError):
    """A record failed for good and the handler has no dead-letter topic, so the app stopped and did not commit it."""

    exit_code = 5


class HandlerBug(PenstockError):  # noqa: N818 - users list it in retry policies, next to their own exceptions
    """The handler itself has a bug: it returned an unusable value, or called ``ack`` without ``commit="manual"``.

    Every record would fail in the same way, so the app stops and does not dead-letter good records. List it in
    ``retry={HandlerBug: ...}`` to treat it like any other error.
    """

    exit_code = 5


class CallbackError(PenstockError):
    """A hook or a callback raised or did not end, so the app stopped: ``on_start``, ``on_assigned`` and others."""


class StateError(PenstockError):
    """A call at the wrong time or from the wrong place: for example, the app is not running, or is already running."""
