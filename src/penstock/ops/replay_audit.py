"""The audit of replays: who replayed what and when, as JSON lines before and after each transaction."""

import getpass
import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.core.settings import redacted_values
from penstock.jvm.private_files import disk_problems_explained, make_private, open_private
from penstock.paths import HOME_VARIABLE, audit_file, state_home


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


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
