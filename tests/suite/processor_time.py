"""How much processor time a worker and everything that it started have used: what a busy machine has too little of."""

import os
import resource
from contextlib import suppress

import psutil

from suite.worker import TOKEN


class ProcessorTime:
    """``lap()`` is the time since the lap before, in seconds.

    A process that ended is counted by the parent that waited for it, so only servers whose parent ended before them
    lose the time after their last lap.
    """

    def __init__(self) -> None:
        self._token = os.environ.get(TOKEN)
        self._before = self._used()

    def lap(self) -> float:
        before, self._before = self._before, self._used()
        return max(0.0, self._before - before)

    def _used(self) -> float:
        used = sum(
            usage.ru_utime + usage.ru_stime
            for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        )
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.pid != os.getpid() and process.environ().get(TOKEN) == self._token:
                    used += sum(process.cpu_times()[:4])
        return used
