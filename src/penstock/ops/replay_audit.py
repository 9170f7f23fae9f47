"""The audit of replays: who replayed what and when, as JSON lines before and after each transaction."""

import getpass
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from penstock.core.settings import redacted_values
from penstock.jvm.private_files import disk_problems_explained, make_private, open_private
from penstock.paths import HOME_VARIABLE, audit_file, state_home

# How much of the end of the file is read.
_READ_BYTES = 512_000


class Audit:
    """Writes a line before and after each batch. If the second is missing, Kafka has all of the batch or nothing."""

    def __init__(self, cluster_id: str, *, command: str) -> None:
        self.path = audit_file(cluster_id)
        self._common = {"by": _user(), "pid": os.getpid(), "command": command}
        self._batch = 0

    def sending(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._batch += 1
        self._write({"event": "sending", "batch": self._batch, "records": list(records)})

    def sent(self) -> None:
        self._write({"event": "sent", "batch": self._batch})

    def _write(self, line: Mapping[str, Any]) -> None:
        with disk_problems_explained(self.path.parent, setting=HOME_VARIABLE):
            make_private(self.path.parent, home=state_home())
            with open_private(self.path, "a") as file:
                file.write(json.dumps(redacted_values({"ts": time.time(), **self._common, **line})) + "\n")


@dataclass
class AuditedReplay:
    """One replay, as its lines tell. ``open`` dead letters are of a batch without its second line."""

    at: float
    by: str
    command: str
    topic: str
    sent: int = 0
    open: int = 0


def audited_replays(cluster_id: str, *, limit: int) -> list[AuditedReplay]:
    """Return the last replays of dead letters of a cluster, the newest first. Lines that are damaged are left out."""
    try:
        with audit_file(cluster_id).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _READ_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return []
    found: list[AuditedReplay] = []
    running: dict[tuple[object, object], AuditedReplay] = {}
    for text in lines:
        with suppress(ValueError, KeyError, TypeError, IndexError):
            line = json.loads(text)
            who = (line["pid"], line["command"])
            if line["event"] == "sending":
                if line["batch"] == 1 or who not in running:
                    topic = str(line["records"][0]["from"]).rpartition("[")[0]
                    running[who] = AuditedReplay(float(line["ts"]), str(line["by"]), str(line["command"]), topic)
                    found.append(running[who])
                running[who].open += len(line["records"])
            elif who in running:
                running[who].sent += running[who].open
                running[who].open = 0
    return found[: -limit - 1 : -1]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
