"""Whether a running app is ready: its members have their partitions, and what it depends on can be reached."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Protocol

from penstock.app import App, Handler
from penstock.codecs import registry_checks
from penstock.errors import PenstockError

# A probe usually waits one second or a few for its answer. A dependency that takes longer counts as not reachable.
_PATIENCE_SECONDS = 2.0
# Probes come every few seconds, from several programs. They share an answer for this long.
_KEPT_SECONDS = 5.0

Check = Callable[[], str | None]
"""Returns a sentence about what is wrong, or None."""


class ProbedMember(Protocol):
    """What this module needs of a member."""

    @property
    def handler(self) -> Handler: ...
    @property
    def has_joined(self) -> bool: ...
    @property
    def breaker_problem(self) -> str | None: ...
    def ping_store(self) -> None: ...


class DependencyCheck:
    """Asks a dependency on a thread of its own, so that one that never answers holds up neither probes nor the app."""

    def __init__(self, name: str, ask: Check, *, patience: float = _PATIENCE_SECONDS) -> None:
        self._name = name
        self._ask = ask
        self._patience = patience
        self._lock = threading.Lock()
        # Under the lock: the last question, and when it was asked.
        self._asked: Future[str | None] | None = None
        self._asked_at = 0.0

    def __call__(self) -> str | None:
        with self._lock:
            now = time.monotonic()
            asked = self._asked
            if asked is None or (asked.done() and now - self._asked_at > _KEPT_SECONDS):
                asked = self._asked = Future()
                self._asked_at = now
                threading.Thread(target=self._answer, args=(asked,), name="readiness", daemon=True).start()
            asked_at = self._asked_at
        if wait([asked], self._patience).done:
            return asked.result()
        return f"{self._name} has not answered for {time.monotonic() - asked_at:.0f} s."

    def _answer(self, asked: "Future[str | None]") -> None:
        try:
            asked.set_result(self._ask())
        except PenstockError as error:
            asked.set_result(error.problem)
        except Exception as error:  # noqa: BLE001 - a store of the user may raise anything
            asked.set_result(f"{self._name} failed: {type(error).__name__}: {error}.")


def readiness_checks(app: App, members: Sequence[ProbedMember], stop: threading.Event) -> list[Check]:
    """Return one check for each member and for each registry and offset store that the app uses."""
    checks: list[Check] = [lambda: "The app is stopping." if stop.is_set() else None]
    checks += [partial(_not_joined, member) for member in members]
    checks += [partial(_paused_by_breaker, member) for member in members]
    checks += [DependencyCheck(name, ask) for name, ask in registry_checks(app)]
    by_store = {(each.handler.name, str(each.handler.offsets)): each for each in members if each.handler.offsets}
    checks += [
        DependencyCheck(f"The offset store of handler {handler}", partial(_ping_store, member))
        for (handler, _), member in by_store.items()
    ]
    return checks


def _not_joined(member: ProbedMember) -> str | None:
    handler = member.handler
    return None if member.has_joined else f"{handler.name} has no assignment of group {handler.group!r} yet."


def _paused_by_breaker(member: ProbedMember) -> str | None:
    problem = member.breaker_problem
    return None if problem is None else f"{member.handler.name} is paused: {problem}."


def _ping_store(member: ProbedMember) -> None:
    member.ping_store()
