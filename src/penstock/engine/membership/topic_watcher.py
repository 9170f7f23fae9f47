"""A thread that asks the cluster once a second for changes that the consumers do not report."""

import threading
from collections.abc import Sequence
from contextlib import suppress

from penstock.engine.handler_members import HandlerMembers
from penstock.errors import PenstockError

_INTERVAL_SECONDS = 1.0


class TopicWatcher:
    """Has its own thread, so that a cluster that does not answer cannot delay a stop."""

    def __init__(self, all_members: Sequence[HandlerMembers]) -> None:
        self._all_members = all_members
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="topic-watcher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(_INTERVAL_SECONDS):
            for handler_members in self._all_members:
                # Each check runs again in a second.
                with suppress(PenstockError):
                    handler_members.report_slow_join()
                with suppress(PenstockError):
                    handler_members.check_caught_up()
                with suppress(PenstockError):
                    handler_members.count_partitions()
                with suppress(PenstockError):
                    handler_members.check_recreated_topics()
