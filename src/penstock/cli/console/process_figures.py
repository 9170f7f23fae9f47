"""The CPU and the memory of processes, measured between two looks at them."""

from collections.abc import Mapping
from typing import Any

import psutil

_NONE: Mapping[str, Any] = {"cpu": None, "memory": None}


class ProcessFigures:
    """Keeps the processes: psutil measures the CPU time since the last call for the same object."""

    def __init__(self) -> None:
        self._known: dict[int, psutil.Process] = {}

    def of(self, pid: int) -> Mapping[str, Any]:
        """Return ``cpu`` in percent of one core and ``memory`` in bytes; None for a process that has ended."""
        try:
            process = self._known.get(pid)
            if process is None:
                process = self._known[pid] = psutil.Process(pid)
                process.cpu_percent()  # the first call only begins to measure
                return {"cpu": None, "memory": process.memory_info().rss}
            return {"cpu": process.cpu_percent(), "memory": process.memory_info().rss}
        except psutil.Error:
            self._known.pop(pid, None)
            return _NONE
