"""The event of a command to a running app."""

from dataclasses import dataclass, field

from penstock.core.reports.event_bases import HandlerEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Commanded(HandlerEvent):
    """Somebody has paused, resumed or changed the handler while it runs; one event for each handler.

    ``action`` is ``"pause"``, ``"resume"`` or ``"set"``. ``partitions`` are those that it is for, as ``orders[3]``;
    empty for the whole handler. ``by`` is the user, ``via`` what they used (``penstock pause``, ``dashboard``,
    ``app.pause()``), ``at`` when, in seconds since 1970.
    """

    action: str
    partitions: tuple[str, ...] = ()
    changes: dict[str, int | str] = field(default_factory=dict)
    by: str
    via: str
    at: float
