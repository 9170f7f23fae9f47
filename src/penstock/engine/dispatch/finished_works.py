"""How workers report finished works to the dispatcher, without waking it where nothing waits for them."""

from collections import deque
from contextlib import suppress

from penstock.app import Handler
from penstock.app.attempts.work import Work
from penstock.core.scheduling.dispatch import Dispatch
from penstock.engine.dispatch.thread_messages import Inbox, Worked


class FinishedWorks:
    """Works that only succeeded and that nothing waits for, until the dispatcher takes them.

    To wake a thread costs more processor time than a small handler. So such works wait here for the dispatcher's next
    look at all works, for a commit, for a message other than fetched records, or until something waits for them. While
    something waits for workers (``are_awaited``), and for every other outcome, a work goes into the inbox, which wakes
    the dispatcher.

    Workers call ``add``; the dispatcher calls the rest. No work is left here while something waits for it: the
    dispatcher first sets ``are_awaited`` and then looks here, and a worker first puts its work here and then reads
    ``are_awaited`` again.
    """

    def __init__(self, inbox: Inbox, *, are_all_awaited: bool = True) -> None:
        self._inbox = inbox
        self._are_all_awaited = are_all_awaited
        self._quiet: deque[Work] = deque()
        self.are_awaited = True

    def add(self, work: Work) -> None:
        if self._is_awaited_now() or not work.only_succeeded:
            self._inbox.put(Worked(work))
            return
        self._quiet.append(work)
        if self._is_awaited_now():
            try:
                self._quiet.remove(work)
            except ValueError:
                return  # the dispatcher has taken it
            self._inbox.put(Worked(work))

    def are_awaited_by(self, dispatch: Dispatch) -> bool:
        """Whether something waits for works; the dispatcher's thread calls it."""
        return self._are_all_awaited or dispatch.awaits_outcomes

    def _is_awaited_now(self) -> bool:
        return self.are_awaited

    @property
    def has_any(self) -> bool:
        """Whether works wait of which the dispatcher was not woken."""
        return bool(self._quiet)

    def take(self) -> list[Work]:
        """Take the works of which the dispatcher was not woken."""
        taken: list[Work] = []
        if not self._quiet:
            return taken
        with suppress(IndexError):  # not "while self._quiet": a worker may take its work back meanwhile
            while True:
                taken.append(self._quiet.popleft())
        return taken


def are_all_awaited(handler: Handler, *, per_record: bool, runs_to_an_end: bool) -> bool:
    """Whether something of this member waits for every work: a commit, an event, a measurement, or its end."""
    return (
        per_record
        or runs_to_an_end
        or handler.commit != "auto"
        or handler.commit_after is not None
        or handler.is_exactly_once
        or handler.is_at_most_once
        or handler.breaker is not None
        or handler.concurrency == "auto"
    )
