"""The events of limits that change while an app runs."""

from dataclasses import dataclass

from penstock.core.reports.event_bases import HandlerEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyChanged(HandlerEvent):
    """With ``concurrency="auto"``: so many records (or batches) of this member run at once from now on.

    At most two a second, and none for small changes. On Spark the member is a task.
    """

    member: str
    concurrency: int
    before: int
