"""A child process that carries out calls, and that its parent survives.

librdkafka's admin client may abort its process ("Assertion `eonce->refcnt > 0' failed") if a broker dies while it
answers. A command may end that way; an app that consumes, and a page that somebody watches, may not.
"""

import os
import pickle
import queue
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from multiprocessing.connection import Connection
from typing import Any

from penstock.errors import ConfigError, PenstockError, ServerError, StateError

Say = Callable[[Any], None]
"""Sends what can be pickled to the parent, at any time and from any thread of the child."""

_CHILD = f"from {__name__} import serve_parent; serve_parent()"
_END_SECONDS = 3.0
# So many calls are carried out at a time. Most of them wait for brokers.
_MOST_CALLS = 256
_PART, _ANSWER, _ERROR, _SAID, _UNUSABLE = range(5)
_Answers = queue.SimpleQueue[tuple[int, Any]]


class ChildProcess:
    """Calls the methods of an object that lives in a child process. Any thread may call it.

    The first call starts the child. If the child dies, the calls that wait raise a ServerError, and the next one starts
    another child. ``make`` makes the object there: it is pickled, so it must be importable. It gets a function that
    sends something to ``hear``, which is called on a thread of this process. ``name`` is what errors call the child.
    """

    def __init__(self, make: Callable[[Say], Any], *, name: str, hear: Say = lambda _said: None) -> None:
        self._make = make
        self._name = name
        self._hear = hear
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """The process id of the child; None if it does not run."""
        running = self._running
        return None if running is None or running.is_dead else running.pid

    def call(self, method: str, *arguments: Any, part: Say | None = None, seconds: float | None = None) -> Any:
        """Call a method and return its answer, or raise what it raised.

        With ``part``, the method gets a function ``part``; what it passes to it comes to yours, on this thread.
        """
        with self._lock:
            if self._is_closed:
                raise StateError(f"{self._name} was ended.")
            if self._running is None or self._running.is_dead:
                self._running = _Running(self._first_message(), self._name, self._hear)
            running = self._running
        return running.call(method, arguments, part, seconds)

    def tell(self, method: str, *arguments: Any) -> None:
        """Call a method of the child that runs, if one does, and ignore its answer."""
        running = self._running
        if running is not None:
            running.send(None, method, arguments, has_parts=False)

    def close(self) -> None:
        """End the child. Calls that wait raise an error, and so do later ones."""
        with self._lock:
            self._is_closed = True
            if self._running is not None:
                self._running.end()

    def _first_message(self) -> bytes:
        try:
            return pickle.dumps(self._make)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ConfigError(
                f"{self._name} cannot get its settings: {error}.",
                hint="Define the functions among the settings at the top level of a module.",
            ) from error


class _Running:
    """One child. Its reader thread writes ``_reason``; ``_lock`` guards the calls that wait and what is sent."""

    def __init__(self, make: bytes, name: str, hear: Say) -> None:
        self._name = name
        self._hear = hear
        self._lock = threading.Lock()
        self._numbers = count()
        self._waiting: dict[int, _Answers] = {}
        self._reason: str | None = None
        self._unusable: PenstockError | None = None
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _CHILD, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # the parent says that it aborted; a view in a terminal stays whole
                start_new_session=True,  # Ctrl+C in the terminal is for the parent
            )
        self._pipe = Connection(os.dup(self._socket.fileno()))
        with suppress(OSError):
            self._pipe.send_bytes(pickle.dumps(sys.path))
            self._pipe.send_bytes(make)
        self._reader = threading.Thread(target=self._read, name="child process", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_dead(self) -> bool:
        return self._reason is not None

    def call(self, method: str, arguments: tuple[Any, ...], part: Say | None, seconds: float | None) -> Any:
        answers = _Answers()
        if not self.send(answers, method, arguments, has_parts=part is not None):
            raise self._death()
        while True:
            try:
                kind, value = answers.get(timeout=seconds)
            except queue.Empty:
                raise ServerError(f"{self._name} has not answered within {seconds:g} s.") from None
            if kind == _PART and part is not None:
                part(value)
            elif kind == _ANSWER:
                return value
            elif kind == _ERROR:
                raise self._death() if value is None else value

    def send(self, answers: "_Answers | None", method: str, arguments: tuple[Any, ...], *, has_parts: bool) -> bool:
        """Send a call. Return whether the child is alive; if it dies later, ``answers`` gets an error."""
        number = next(self._numbers)
        message = pickle.dumps((number, method, arguments, has_parts))
        with self._lock:
            if self._reason is not None:
                return False
            if answers is not None:
                self._waiting[number] = answers
            with suppress(OSError):  # it has died, and the reader says so
                self._pipe.send_bytes(message)
        return True

    def end(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join(2 * _END_SECONDS)

    def _read(self) -> None:
        try:
            while True:
                number, kind, value = pickle.loads(self._pipe.recv_bytes())  # noqa: S301 - the child has written it
                self._take(number, kind, value)
        except (EOFError, OSError):
            self._died()

    def _take(self, number: int, kind: int, value: Any) -> None:
        if kind == _SAID:
            self._hear(value)
        elif kind == _UNUSABLE:
            self._unusable = value
        else:
            with self._lock:
                answers = self._waiting.get(number) if kind == _PART else self._waiting.pop(number, None)
            if answers is not None:
                answers.put((kind, value))

    def _died(self) -> None:
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        with self._lock:
            self._reason = how_it_ended(code)
            waiting, self._waiting = list(self._waiting.values()), {}
        self._pipe.close()
        self._socket.close()
        for each in waiting:
            each.put((_ERROR, None))

    def _death(self) -> PenstockError:
        """Return a new error for each call that the death of the child ends."""
        if self._unusable is not None:
            return type(self._unusable)(self._unusable.problem, hint=self._unusable.hint)
        return ServerError(f"{self._name} has died ({self._reason}).", hint="Another one starts now.")


def how_it_ended(code: int | None) -> str:
    """Return the end of a process in words."""
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


def serve_parent() -> None:
    """Runs in the child process, until the parent closes the socket or dies."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))  # an abort is expected, and its core file helps nobody
    pipe = Connection(int(sys.argv[1]))
    sending = threading.Lock()

    def send(number: int, kind: int, value: Any) -> None:
        message = pickle.dumps((number, kind, value))
        with sending, suppress(OSError):  # the parent has died, and the main thread ends this process
            pipe.send_bytes(message)

    sys.path[:] = pickle.loads(pipe.recv_bytes())  # noqa: S301 - the parent has written it
    made: Any = None
    try:
        made = pickle.loads(pipe.recv_bytes())(lambda said: send(-1, _SAID, said))  # noqa: S301 - the same
        # The threads are used again: glibc gives new ones memory of their own, which would grow.
        callers = ThreadPoolExecutor(_MOST_CALLS, "call")
        while True:
            callers.submit(_carry_out, made, pipe.recv_bytes(), send)
    except (EOFError, OSError):
        if hasattr(made, "close"):
            made.close()
    except Exception as error:  # noqa: BLE001 - the parent says what it is
        problem = error if isinstance(error, PenstockError) else _not_started(error)
        send(-1, _UNUSABLE, problem)
    finally:
        os._exit(0)  # threads that wait for a broker would hold up an orderly exit


def _not_started(error: Exception) -> PenstockError:
    return ConfigError(
        f"A child process could not start: {type(error).__name__}: {error}.",
        hint="Define the functions among the settings at the top level of a module that can be imported.",
    )


def _carry_out(made: Any, message: bytes, send: Callable[[int, int, Any], None]) -> None:
    number, method, arguments, has_parts = pickle.loads(message)  # noqa: S301 - the parent has written it
    more = {"part": lambda value: send(number, _PART, value)} if has_parts else {}
    try:
        send(number, _ANSWER, getattr(made, method)(*arguments, **more))
    except Exception as error:  # noqa: BLE001 - the parent raises it
        send(number, _ERROR, _that_travels(error))


def _that_travels(error: Exception) -> Exception:
    """Return the error, or its text if it cannot be pickled."""
    try:
        found: Exception = pickle.loads(pickle.dumps(error))  # noqa: S301 - it was pickled here
    except Exception:  # noqa: BLE001 - what an exception does when it is made again is not known
        return RuntimeError(f"{type(error).__name__}: {error}")
    return found
