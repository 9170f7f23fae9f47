"""A worker's own process, for handlers that compute: the attempt happens there, everything else stays here."""

import multiprocessing
import signal
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from penstock.app import Handler, Reading, attempts, batch_attempts
from penstock.core.outcome import Failed, Outcome, WorkerDied, failed
from penstock.core.record import Record

# A fork would copy threads and the Kafka client in an unknown state, so children start afresh.
_SPAWN = multiprocessing.get_context("spawn")
_CLOSE_SECONDS = 1.0


class Child:
    """Called like an attempt. It belongs to one thread; a child that dies is a failed attempt, and is started again."""

    def __init__(self, handler: Handler, reading: Reading) -> None:
        # A child needs no client settings, which may hold secrets and functions.
        self._handler = replace(handler, settings={})
        self._to_record = reading.to_record
        self._start()

    def __call__(self, records: Any, numbers: Any) -> Any:
        """Attempt one record, or a batch with as many numbers."""
        if isinstance(records, list):
            sent: Any = [self._to_record(record, number) for record, number in zip(records, numbers, strict=True)]
        else:
            sent = self._to_record(records, numbers)
        outcomes = self._ask(sent)
        if not isinstance(outcomes, Failed) or not isinstance(sent, list):
            return outcomes
        if len(sent) == 1:
            return [outcomes]
        # One of them took the process along. Alone, each shows whether it was the one.
        return [outcome for record in sent for outcome in self([record], [record.attempt])]

    def close(self) -> None:
        self._pipe.close()
        self._process.join(_CLOSE_SECONDS)
        self._process.kill()

    def _start(self) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_serve, args=(self._handler, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def _ask(self, sent: Record | list[Record]) -> Any:
        try:
            self._pipe.send(sent)
            return self._pipe.recv()
        except (EOFError, OSError):
            self.close()
            death = WorkerDied(f"the worker process died ({_how(self._process.exitcode)})")
            self._start()
            return failed(death, self._handler.retry)


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


def _serve(handler: Handler, pipe: Connection) -> None:
    """The child's life: until the pipe closes, which the end of its parent does too."""
    # Ctrl+C reaches the whole group of processes; when to stop is the parent's decision.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    attempt_all, attempt = (batch_attempts(handler), None) if handler.batch else (None, attempts(handler))
    while True:
        try:
            asked = pipe.recv()
        except (EOFError, OSError):
            return
        outcome: Outcome | list[Outcome]
        if attempt is not None:
            outcome = attempt(asked, asked.attempt)
        elif attempt_all is not None:
            outcome = attempt_all(asked, [record.attempt for record in asked])
        pipe.send(outcome)
