"""A thread that asks the cluster now and then what members cannot see by themselves."""

import threading
from collections.abc import Sequence
from contextlib import suppress

from penstock.engine.handler_members import HandlerMembers
from penstock.errors import PenstockError

_LOOK_SECONDS = 1.0


class TopicWatcher:
    """On a thread of its own, as a cluster that does not answer must not keep anybody from stopping."""

    def __init__(self, all_members: Sequence[HandlerMembers]) -> None:
        self._teams = all_members
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lookout", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            for handler_members in self._teams:
                # The next look may get an answer.
                with suppress(PenstockError):
                    handler_members.look_after_joining()
                with suppress(PenstockError):
                    handler_members.look_after_ends()
                with suppress(PenstockError):
                    handler_members.look_after_topics()
