"""A worker's own process, for CPU-bound handlers: it runs the attempts, and nothing else."""

import multiprocessing
import pickle
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, cast

from penstock.app import Handler, NoControl, RecordAdapter, attempts, batch_attempts, called, engine_is_elsewhere
from penstock.app.attempts.time_limit import time_limit_error
from penstock.app.resources import OpenResources, never_closed
from penstock.codecs import RECORDS
from penstock.core.failures.outcome import Failed, Outcome, WorkerDied, failed
from penstock.core.records.record import Record
from penstock.errors import CallbackError, ConfigError
from penstock.kafka.child_process import how_it_ended

# A fork would copy threads and the Kafka client in an unknown state, so children start as new processes.
_SPAWN = multiprocessing.get_context("spawn")
_CLOSE_SECONDS = 1.0


def check_importable(handler: Handler) -> None:
    """Raise a ConfigError if the handler or its decoders cannot be pickled: a child imports them by name."""
    for route in handler.routes:
        imported = route.function, route.value, route.key, route.headers, route.to_value, route.when, route.wiring
        try:
            pickle.dumps(imported)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ConfigError(
                f"Handler {route.name} cannot run in a worker process: {error}.",
                hint="Define it, its condition, its resources and middleware, and what it decodes and encodes with, at "
                "the top level of a module, under its own name.",
            ) from error


class Child:
    """A child process that one thread calls like an attempt.

    If the child dies, the attempt has failed, and the next attempt starts another child.
    """

    def __init__(self, handler: Handler, adapter: RecordAdapter) -> None:
        # A child needs no client settings, which may hold secrets and functions.
        self._handler = handler.without_settings()
        self._to_record = adapter.to_record
        self._is_up = False

    def __call__(self, records: Any, numbers: Any) -> Any:
        """Attempt one record, or a batch of records with a list of their attempt numbers."""
        if not isinstance(records, list):
            return self._ask(self._to_record(records, numbers))
        return self._ask_batch([self._to_record(*each) for each in zip(records, numbers, strict=True)])

    def _ask_batch(self, records: list[Record]) -> list[Outcome]:
        outcomes = self._ask(records)
        if not isinstance(outcomes, Failed):
            return cast("list[Outcome]", outcomes)
        if len(records) == 1 or self._handler.is_at_most_once:
            return [outcomes] * len(records)
        # One record killed the process. Attempt each alone to find out which.
        return [outcome for record in records for outcome in self._ask_batch([record])]

    def close(self) -> CallbackError | None:
        """Let an idle child close its resources and exit, and kill it if it does not. Returns what went wrong."""
        problem = self._close_resources() if self._is_up and self._handler.wiring.resources else None
        self._end()
        return problem

    def _end(self) -> None:
        """Close the pipe, at which an idle child exits at once, and kill the child if it does not."""
        if self._is_up:
            self._is_up = False
            self._pipe.close()
            self._process.join(_CLOSE_SECONDS)
            self._process.kill()

    def _close_resources(self) -> CallbackError | None:
        limit = self._handler.drain_timeout
        with suppress(EOFError, OSError):
            self._pipe.send(None)
            if not self._pipe.poll(limit):
                return never_closed(f"The resources of a worker process of handler {self._handler.name}", limit)
            problem: CallbackError | None = self._pipe.recv()
            return problem
        return None

    def kill(self) -> None:
        """Kill the child at once; other threads may call it."""
        if self._is_up:
            self._process.kill()

    def _start(self) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_serve, args=(self._handler, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._is_up = True
        try:
            failure = self._pipe.recv()  # what its resources raised; None says that it is ready
        except (EOFError, OSError):
            self._end()
            module, ended = called(self._handler.function).__module__, how_it_ended(self._process.exitcode)
            raise ConfigError(
                f"A worker process of handler {self._handler.name} did not start ({ended}).",
                hint=f'It imports the handler by its name. Try it alone: python -c "import {module}".',
            ) from None
        if failure is not None:
            self._end()
            raise failure

    def _end_late_child(self, limit: float) -> Failed:
        number = self._process.pid
        self.kill()  # at once: the handler may ignore the closed pipe for as long as it runs
        self.close()
        error = time_limit_error(limit, f"Penstock killed its worker process {number} and replaces it")
        return failed(error, self._handler.retry, breaker=self._handler.breaker)

    def _ask(self, sent: Record | list[Record]) -> Any:
        if not self._is_up:
            self._start()
        limit = self._handler.timeout
        try:
            self._pipe.send(sent)
            while limit is None or self._pipe.poll(limit):
                answer = self._pipe.recv()
                if answer is not None:  # None: a call of the handler begins or ends, so its limit starts again
                    return answer
            return self._end_late_child(limit)
        except (EOFError, OSError):
            self._end()
            death = WorkerDied(f"the worker process died ({how_it_ended(self._process.exitcode)})")
            return failed(death, self._handler.retry, breaker=self._handler.breaker)


def _serve(handler: Handler, pipe: Connection) -> None:
    """Run the child until the pipe closes; it also closes when the parent dies."""
    # Ctrl+C reaches all processes of the group, but only the parent decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    engine_is_elsewhere(
        NoControl(
            f"Handler {handler.name} runs in a worker process, where app.progress() and app.commit() have no answer.",
            'Call them in the process that runs the app, or leave workers="process" out.',
        )
    )
    opened = OpenResources()
    try:
        opened.make(handler.wiring.of_worker)
    except CallbackError as error:
        pipe.send(error)
        return
    asked = _answer(handler.with_values(opened.values), pipe)
    problem = opened.close()
    if asked:
        pipe.send(problem)


def _telling_clock(pipe: Connection) -> Callable[[], float]:
    """A clock that tells the parent when it is read, which is before and after each call of a handler with a limit."""

    def clock() -> float:
        pipe.send(None)
        return time.monotonic()

    return clock


def _answer(handler: Handler, pipe: Connection) -> bool:
    """Attempt what the parent sends. Returns whether it asked for the end; if not, it has died or gone on."""
    # A batch may take several calls, such as one for each route, and the limit is for one. They read the clock.
    adapter = RECORDS if handler.timeout is None or not handler.batch else replace(RECORDS, clock=_telling_clock(pipe))
    attempt_all, attempt = (
        (batch_attempts(handler, adapter), None) if handler.batch else (None, attempts(handler, adapter))
    )
    pipe.send(None)  # ready, and from now on a time limit counts
    while True:
        try:
            asked = pipe.recv()
        except (EOFError, OSError):
            return False
        if asked is None:
            return True
        outcome: Outcome | list[Outcome]
        if attempt is not None:
            outcome = attempt(asked, asked.attempt)
        elif attempt_all is not None:
            outcome = attempt_all(asked, [record.attempt for record in asked])
        pipe.send(outcome)
