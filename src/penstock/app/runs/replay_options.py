"""``Replay``: the range that ``app.run(replay=...)`` handles again. ``ReplayResult``: what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.app.options.consume_options import Start, check_start, is_topic_name
from penstock.app.pipelines.backfill_range import Span, read_log_position
from penstock.core.reports.events import RangeRead, Stopped
from penstock.core.text.suggestions import suggests_options
from penstock.errors import ConfigError


@suggests_options
@dataclass(frozen=True, kw_only=True)
class Replay:
    """Handle a range once, beside the live group, in a group of its own.

    Args:
        from_: Where the range starts, inclusive: a time (a datetime with a time zone, or a text such as
            ``"2026-01-31"``, UTC by default), ``"earliest"``, or offsets (``{("orders", 0): 42}``, ``"orders:0=42"``).
        to: Where it ends, exclusive: as ``from_``, or ``"latest"``.
        handler: The name of the handler to replay, or several; without it, all handlers of the app.
        to_topic: Write all outputs to this topic.
        dry_run: Call the handlers and count their outcomes, but write and commit nothing to Kafka.
    """

    from_: Start | str = "earliest"
    to: Start | str = "latest"
    handler: str | Sequence[str] | None = None
    to_topic: str | None = None
    dry_run: bool = False

    def __post_init__(self) -> None:
        for option in ("from_", "to"):
            object.__setattr__(self, option, _position(f"Replay.{option}", getattr(self, option)))
        given = () if self.handler is None else self.handler
        names = (given,) if isinstance(given, str) else given
        if not isinstance(names, Sequence) or not all(isinstance(name, str) and name.strip() for name in names):
            raise ConfigError(
                f"Replay.handler={self.handler!r} does not name a handler.",
                hint='Use the name of a handler\'s function, such as "invoice", or a list of names.',
            )
        object.__setattr__(self, "handler", tuple(names))
        if self.to_topic is not None and not is_topic_name(self.to_topic):
            raise ConfigError(
                f"Replay.to_topic={self.to_topic!r} is not the name of a topic.",
                hint="Use up to 249 letters, digits, dots, hyphens and underscores.",
            )
        if not isinstance(self.dry_run, bool):
            raise ConfigError(f"Replay.dry_run={self.dry_run!r} is not a bool.", hint="Use True or False.")
        if self.to_topic is not None and self.dry_run:
            raise ConfigError(
                "Replay.to_topic has no effect with dry_run=True, which writes nothing.", hint="Leave one of them out."
            )

    @property
    def span(self) -> Span:
        return Span(self.from_, self.to)  # type: ignore[arg-type]  # __post_init__ has read the texts

    @property
    def names(self) -> tuple[str, ...]:
        """The handlers to replay; empty: all."""
        return tuple(self.handler or ())


def _position(option: str, value: Start | str) -> Start:
    read: Start = read_log_position(value, name=option) if isinstance(value, str) else value
    check_start(option, read, lambda problem, hint: ConfigError(problem, hint=hint))
    return read


@dataclass(frozen=True, kw_only=True)
class ReplayResult:
    """What a replay has handled. It is the same that ``penstock run --json`` prints."""

    replay: Replay
    """What was asked for."""
    ranges: tuple[RangeRead, ...]
    """The offsets of each partition. A replay that continues starts where it was interrupted."""
    stopped: tuple[Stopped, ...]
    """The counts of each handler in this run. Empty if the range had no records that were left to handle."""
    groups: tuple[str, ...]
    """The groups of the replay, which are deleted when it is finished. A dry run has none."""
    left: int | None
    """How many offsets are left: above 0 if the replay was stopped. None if it is unknown, as after a dry run."""
    problem: str | None = None
    """Why the groups of the replay could not be looked up or deleted."""

    @property
    def read(self) -> int:
        return sum(each.read for each in self.stopped)

    @property
    def written(self) -> int:
        """Outputs, of all handlers. A dry run has not written them."""
        return sum(each.written for each in self.stopped)

    @property
    def dead_lettered(self) -> int:
        """Dead letters, of all handlers. A dry run has not written them."""
        return sum(each.dead_lettered for each in self.stopped)

    @property
    def skipped(self) -> int:
        return sum(each.skipped for each in self.stopped)
