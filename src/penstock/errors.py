"""Every error that reaches a user: what happened, and what to do next."""

from typing import ClassVar


class PenstockError(Exception):
    """Base of all errors that Penstock raises on purpose.

    ``problem`` says what is wrong and ``hint`` what to do about it, each as one plain sentence.
    ``exit_code`` is what the command line ends with. ``traceback`` is that of the user's own code, as text, where an
    error of it led to this one; Python prints it too, as a note.
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
        # Keyword arguments do not survive pickling by default, and errors cross Spark's process borders.
        return _rebuild, (type(self), self.problem, self.hint, self.traceback)


def _rebuild(kind: type[PenstockError], problem: str, hint: str, traceback: str) -> PenstockError:
    return kind(problem, hint=hint, traceback=traceback)


class ConfigError(PenstockError):
    """An option, a setting, an app or a handler declaration that cannot work."""

    exit_code = 2


class SetupError(PenstockError):
    """Something this machine lacks: Java, an extra, disk space, a free port, a download."""

    exit_code = 3


class ServerError(PenstockError):
    """A server that cannot be reached, died or refused."""

    exit_code = 3


class StoreError(ServerError):
    """The place that keeps progress outside of Kafka cannot be reached, or refused."""


class TopicError(PenstockError):
    """A topic that does not exist or cannot be used."""

    exit_code = 4


class HandlerError(PenstockError):
    """A record failed for good and no dead-letter topic was set, so the app stopped before passing it."""

    exit_code = 5


class HandlerBug(PenstockError):  # noqa: N818 - what a retry policy can list, next to errors of the user's own
    """The handler itself is wrong, whatever the record: what it returned cannot be used, or it called ``ack`` in vain.

    Every record would fail in the same way, so the app stops instead of moving good records to the dead letters. List
    it in ``retry={HandlerBug: ...}`` to treat it as any other error.
    """

    exit_code = 5


class CallbackError(PenstockError):
    """``on_assigned``, ``on_revoked`` or ``on_lost`` raised, so the app stopped."""


class StateError(PenstockError):
    """Asked for at the wrong moment, or from the wrong place: the app is not running, or runs already, and so on."""
