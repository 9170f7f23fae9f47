"""The log that handlers themselves write, so that checks do not depend only on the engine's events."""

import os
from collections.abc import Iterable, Iterator
from typing import Literal

from chaos.history import History, Note


class HandlerLog:
    """A file to which handlers of one process write, each line with one system call."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, kind: Literal["began", "ended"], topic: str, partition: int, offset: int, key: str) -> None:
        os.write(self._file, f"{kind}\t{topic}\t{partition}\t{offset}\t{key}\n".encode())


def read_handler_log(lines: Iterable[str]) -> list[Note]:
    notes = []
    for line in lines:
        if not line.endswith("\n"):  # its process was killed in the middle of it
            break
        kind, topic, partition, offset, key = line.rstrip("\n").split("\t")
        notes.append(Note("began" if kind == "began" else "ended", ((topic, int(partition)), int(offset)), key))
    return notes


def every_record_was_handled(history: History) -> Iterator[str]:
    handled = {note.record for notes in history.handler_logs.values() for note in notes if note.kind == "ended"}
    if history.handler_logs:
        for (topic, partition), offset in sorted(history.produced.keys() - handled):
            yield f"no handler came to the end of {topic}[{partition}]@{offset}"


def what_is_finished_was_handled_there(history: History) -> Iterator[str]:
    for process, notes in history.handler_logs.items():
        handled = {note.record for note in notes if note.kind == "ended"}
        for entry in history.files.get(process, ()):
            if entry.kind == "finished" and entry.record not in handled:
                yield f"{entry}, and no handler there came to its end"


def a_key_runs_one_record_at_a_time(history: History) -> Iterator[str]:
    for process, notes in history.handler_logs.items():
        running: dict[str, Note] = {}
        for note in notes:
            other = running.pop(note.key, None)
            if note.kind == "began":
                running[note.key] = note
                if other is not None:
                    yield f"in {process}, key {note.key} ran {note.record} while {other.record} was running"
