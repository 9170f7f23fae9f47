"""Plans a replay: handlers run once over a range, beside the live group, in a group of their own.

The plan is kept in Kafka, so that an interrupted replay continues: the group of the replay has the progress, and a
second group has the ends, because ``latest`` means another offset at the next start. Both are deleted at the end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.app import App, Handler
from penstock.app.pipelines import Span
from penstock.app.runs.replay_options import Replay, ReplayResult
from penstock.app.runs.replay_range import ReplayRange, check_replayable, replay_group, replayed
from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import RangeRead, Stopped
from penstock.core.text.suggestions import suggestion
from penstock.errors import ConfigError, PenstockError, TopicError
from penstock.kafka import Cluster, source_partitions
from penstock.kafka.admin.log_range import range_offsets

_ENDS = ".ends"


@dataclass(frozen=True)
class HandlerReplay:
    """The replay of one handler: from ``begin`` up to, and without, ``ends`` of each partition.

    ``fresh`` has the partitions of which no earlier start of the same replay has noted a range. ``routes`` names the
    replayed routes if the handler is a route group, and the user has chosen only some of them.
    """

    handler: Handler
    group: str
    begin: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    fresh: Sequence[TopicPartition] = ()
    routes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What is replayed, for people: the handler, or the chosen routes of a group."""
        return ", ".join(self.routes) or self.handler.name

    @property
    def left(self) -> int:
        return sum(max(0, end - self.begin[tp]) for tp, end in self.ends.items())


@dataclass(frozen=True)
class RangeReplay:
    """``plan_replay`` makes it. Call ``apply``, run the app until it has caught up, and then call ``result``."""

    options: Replay
    cluster: Cluster
    parts: Sequence[HandlerReplay]

    @property
    def groups(self) -> list[str]:
        """The groups that keep the progress; a dry run keeps none."""
        return [] if self.options.dry_run else sorted({part.group for part in self.parts})

    @property
    def left(self) -> int:
        """How many offsets are left of all ranges."""
        return sum(part.left for part in self.parts)

    @property
    def is_continued(self) -> bool:
        """Whether this replay was started before and did not finish."""
        return not self.options.dry_run and any(len(part.fresh) < len(part.ends) for part in self.parts)

    @property
    def ranges(self) -> list[RangeRead]:
        return [
            RangeRead(
                handler=part.name,
                topic=topic,
                partition=partition,
                start=min(part.begin[topic, partition], end),
                end=end,
            )
            for part in self.parts
            for (topic, partition), end in sorted(part.ends.items())
        ]

    def apply(self, app: App) -> None:
        """Turn the app into one that handles exactly the range, and note the plan in Kafka."""
        options = self.options
        by_handler = {id(route): part for part in self.parts if part.left for route in part.handler.routes}

        def change(handler: Handler) -> Handler | None:
            part = by_handler.get(id(handler))
            if part is None:
                return None
            what = ReplayRange(part.ends, part.left, dry_run=options.dry_run, routes=part.routes)
            return replayed(handler, what, group=part.group, starts=part.begin, to_topic=options.to_topic)

        app.narrow(change)
        for part in self.parts if not options.dry_run else ():
            # First the starts: if this process dies in between, the next one plans these partitions again.
            self.cluster.commit(part.group, {tp: part.begin[tp] for tp in part.fresh})
            self.cluster.commit(f"{part.group}{_ENDS}", {tp: part.ends[tp] for tp in part.fresh})

    def result(self, stopped: Sequence[Stopped]) -> ReplayResult:
        """Call ``finish``. If the groups cannot be deleted, the range was handled all the same: it is no failure."""
        left, problem = None, None
        try:
            left = self.finish()
        except PenstockError as error:
            problem = f"The groups of the replay could not be looked up or deleted: {error}"
        return ReplayResult(
            replay=self.options,
            ranges=tuple(self.ranges),
            stopped=tuple(stopped),
            groups=tuple(self.groups),
            left=None if self.options.dry_run else left,
            problem=problem,
        )

    def finish(self) -> int:
        """Return how many offsets are left. If the range is finished, delete the groups of the replay."""
        if self.options.dry_run:
            return 0
        left = 0
        for part in self.parts:
            done = self.cluster.stable_offsets(part.group, part.ends)
            left += sum(max(0, end - done.get(tp, part.begin[tp])) for tp, end in part.ends.items())
        for group in self.groups if not left else ():
            self.cluster.delete_group(group)
            self.cluster.delete_group(f"{group}{_ENDS}")
        return left


def plan_replay(app: App, cluster: Cluster, options: Replay) -> RangeReplay:
    """Check that the handlers can be replayed, and look up their ranges. Changes nothing."""
    handlers = _chosen(app, options.names)
    for handler in handlers:
        check_replayable(handler, to_topic=options.to_topic)
    sources = [(handler, source_partitions(handler, cluster)) for handler in handlers]
    _check_named(options.span, sources)
    names = [name for handler in handlers for name in _chosen_routes(handler, options.names) or [handler.name]]
    parts = [_plan(handler, tps, cluster, options, names) for handler, tps in sources]
    return RangeReplay(options, cluster, [part for part in parts if part.ends])


def begin_replay(app: App, brokers: str, options: Replay) -> RangeReplay:
    """Plan the replay and, unless nothing is left of it, turn the app into one that runs it."""
    replay = plan_replay(app, Cluster(brokers, app.settings), options)
    if replay.left:
        replay.apply(app)
    return replay


def _chosen(app: App, names: Sequence[str]) -> list[Handler]:
    known = [handler.name for handler in app.declared_handlers]
    for name in names:
        if not any(_is_named(handler, name) for handler in app.handlers):
            raise ConfigError(f"App {app.name!r} has no handler {name!r}.", hint=suggestion(name, known))
    if not app.handlers:
        raise ConfigError(
            f"App {app.name!r} has no handlers, and replays are only for handlers.",
            hint="To run its pipelines over a range, use `penstock run --engine spark --from START --to END`.",
        )
    if app.pipelines and not names:
        both = ", ".join(pipeline.name for pipeline in app.pipelines)
        raise ConfigError(
            f"App {app.name!r} has handlers and DataFrame pipelines ({both}), and a range is for only one kind.",
            hint="Name the handlers: --handler NAME, or Replay(handler=...). To run the pipelines over a range, put "
            "them into an app of their own.",
        )
    return [handler for handler in app.handlers if not names or any(_is_named(handler, name) for name in names)]


def _is_named(handler: Handler, name: str) -> bool:
    return name == handler.name or any(name == route.name for route in handler.routes)


def _chosen_routes(handler: Handler, names: Sequence[str]) -> tuple[str, ...]:
    """The routes of a group that are replayed, if the user has chosen only some of them; else nothing."""
    chosen = tuple(route.name for route in handler.routes if route.name in names)
    return () if handler.name in names or len(chosen) == len(handler.routes) else chosen


def _check_named(span: Span, sources: Sequence[tuple[Handler, Sequence[TopicPartition]]]) -> None:
    """Refuse offsets of partitions that no handler consumes: they would be left out silently."""
    known = {tp for _, tps in sources for tp in tps}
    named = {tp for position in (span.start, span.end) if isinstance(position, Mapping) for tp in position}
    for topic, partition in sorted(named - known):
        consumed = "; ".join(f"{handler.name} consumes {handler.source}" for handler, _ in sources)
        raise TopicError(
            f"The range names {topic}[{partition}], which no handler of the replay consumes.", hint=f"{consumed}."
        )


def _plan(
    handler: Handler, sources: Sequence[TopicPartition], cluster: Cluster, options: Replay, names: Sequence[str]
) -> HandlerReplay:
    span, what = options.span, f"handler {handler.name}"
    tps = [tp for tp in sources if span.includes(tp)]
    routes = _chosen_routes(handler, options.names)
    group = replay_group(handler, span.start, span.end, names, options.to_topic)
    if options.dry_run:
        return HandlerReplay(handler, group, *range_offsets(cluster, tps, span, what=what), routes=routes)
    ends = cluster.committed(f"{group}{_ENDS}", tps)
    # A transaction of an interrupted replay may still be open: its offsets count only when it has ended.
    begin = cluster.stable_offsets(group, ends) if ends else {}
    fresh = [tp for tp in tps if tp not in begin]
    starts, stops = range_offsets(cluster, fresh, span, what=what)
    return HandlerReplay(handler, group, {**begin, **starts}, {**ends, **stops}, fresh, routes)
