"""Commands to a running app: pause, resume, and set an option. Both engines and the testing kit use these rules."""

import getpass
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar, get_args

from penstock.app.handler import Handler
from penstock.app.options.consume_options import is_topic_partition
from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import Commanded
from penstock.core.scheduling.rate import Rate
from penstock.core.text.plurals import counted
from penstock.core.text.suggestions import suggestion
from penstock.errors import ConfigError, StateError

Action = Literal["pause", "resume", "set"]
SETTABLE = ("concurrency", "rate")
"""The options that can change while the app runs."""


@dataclass(frozen=True, kw_only=True)
class LiveCommand:
    """What to do, to which handlers, and who wants it.

    Without ``handler``, all handlers; without ``partitions``, all of their partitions. ``by`` is a user of this
    machine, ``via`` is what they used, such as ``penstock pause``.
    """

    action: Action
    handler: str | None = None
    partitions: tuple[TopicPartition, ...] = ()
    changes: Mapping[str, Any] = field(default_factory=dict)
    by: str
    via: str

    def __post_init__(self) -> None:
        if self.action not in get_args(Action):
            raise ConfigError(f"{self.action!r} is not a command.", hint="There are pause, resume and set.")
        for tp in self.partitions:
            if not is_topic_partition(tp):
                raise ConfigError(
                    f"{tp!r} is not a partition.", hint='Write --partition orders:3, or partitions=[("orders", 3)].'
                )
        self._check_changes()

    def _check_changes(self) -> None:
        if self.action != "set":
            return
        if self.partitions:
            raise ConfigError("An option applies to a whole handler, not to a partition.", hint="Name no partition.")
        if not self.changes:
            raise ConfigError("No option is named.", hint="Write what to set, such as concurrency=8.")
        for name in self.changes:
            if name not in SETTABLE:
                raise ConfigError(
                    f"{name!r} cannot change while the app runs.",
                    hint=f"These can: {', '.join(SETTABLE)}. For another option, start the app again with --set.",
                )


@dataclass(frozen=True, kw_only=True)
class HandlerState:
    """How a handler of a running app stands, as far as commands change it."""

    handler: str
    group: str
    paused: bool = False
    """Whether a command has paused all of its partitions."""
    paused_partitions: tuple[TopicPartition, ...] = ()
    """Those that were paused one by one."""
    partitions: tuple[TopicPartition, ...] = ()
    """Those that its members in this process own."""
    concurrency: int = 0
    """How many records run at once in a member (on Spark: in a task)."""
    rate: str | None = None
    """How many calls begin in a time, such as ``100 per 1s``; None without a limit."""


class CommandedHandler(Protocol):
    """What the rules need to know of a handler that runs."""

    @property
    def handler(self) -> Handler: ...
    @property
    def refusal(self) -> str | None:
        """Why it takes no command; None if it does."""

    @property
    def state(self) -> HandlerState: ...


C = TypeVar("C", bound=CommandedHandler)


def user_name() -> str:
    """Return the name of the user who runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def addressed(command: LiveCommand, running: Sequence[C]) -> list[C]:
    """Return the handlers that this command is for. Raise an error if it cannot be carried out as a whole."""
    found = _named(command.handler, running)
    if command.partitions:
        found = [each for each in found if not _known(command, each).isdisjoint(command.partitions)]
        _check_known(command, found, running)
    for each in found:
        if each.refusal is not None:
            raise StateError(each.refusal, hint="Name another handler with --handler (in code: handler=).")
        state = each.state
        if command.action == "resume" and command.partitions and state.paused:
            raise StateError(
                f"Handler {state.handler} is paused as a whole, so no single partition of it can be resumed.",
                hint="Resume the handler, and then pause the partitions that must wait.",
            )
        changed_handler(command, each.handler)
    return found


def commanded(command: LiveCommand, handler: Handler, *, at: float) -> Commanded:
    """The event about a command that was carried out for this handler."""
    return Commanded(
        group=handler.group,
        handler=handler.name,
        action=command.action,
        partitions=tuple(f"{topic}[{partition}]" for topic, partition in command.partitions),
        changes={name: each if isinstance(each, int) else str(each) for name, each in command.changes.items()},
        by=command.by,
        via=command.via,
        at=round(at, 3),
    )


def changed_handler(command: LiveCommand, handler: Handler) -> Handler:
    """The handler with the options that the command sets. Raises what its declaration would raise."""
    if not command.changes:
        return handler
    values = dict(command.changes)
    if "rate" in values:
        values["rate"] = _read_rate(values["rate"], handler.rate)
    replace(handler.routes[0], **values)  # raises; the handler of several routes is not checked again
    return replace(handler, **values)


def _read_rate(given: Any, before: Rate | None) -> Rate | None:
    """Return the rate that ``100``, ``100/1m``, ``none`` or a ``Rate`` names; a number keeps whose rate it is."""
    if given is None or isinstance(given, Rate):
        return given
    limit, _, per = str(given).partition("/")
    if limit.strip().lower() == "none":
        return None
    try:
        number = float(limit)
    except ValueError as error:
        raise ConfigError(
            f"rate={given!r} is not a rate.", hint="Write calls per second (rate=100), rate=100/1m, or rate=none."
        ) from error
    return replace(before or Rate(number), limit=number, per=per.strip() or "1s", burst=None)


def _named(name: str | None, running: Sequence[C]) -> list[C]:
    if name is None:
        # Handlers that take no commands, such as pipelines, do not stand in the way of the others.
        return [each for each in running if each.refusal is None] or list(running)
    found = [each for each in running if each.handler.name == name]
    if found:
        return found
    for each in running:
        if name in {route.name for route in each.handler.routes}:
            raise StateError(
                f"Handler {name} shares a member with others, so it cannot be commanded alone.",
                hint=f"Name all of them: {each.handler.name}",
            )
    known = [each.handler.name for each in running]
    raise StateError(f"The app has no handler {name!r}.", hint=suggestion(name, known))


def _known(command: LiveCommand, each: CommandedHandler) -> set[TopicPartition]:
    """The partitions of this handler that the command may name."""
    state = each.state
    return {*state.partitions, *(state.paused_partitions if command.action == "resume" else ())}


def _check_known(command: LiveCommand, found: Sequence[CommandedHandler], running: Sequence[CommandedHandler]) -> None:
    missing = sorted(set(command.partitions).difference(*(_known(command, each) for each in found)))
    if missing:
        topic, partition = missing[0]
        owned = sum(len(each.state.partitions) for each in running)
        raise StateError(
            f"This process does not own {topic}[{partition}] now, so it cannot {command.action} it.",
            hint=f"It owns {counted(owned, 'partition')}. Another process of the group may own this one.",
        )
