"""``penstock run --from ... --to ...`` for handlers: the flags, what is said before and after, and the result."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from penstock.app import App
from penstock.app.pipelines import Span
from penstock.core.reports.events import Event
from penstock.core.text.plurals import at_most, counted
from penstock.errors import ConfigError, PenstockError
from penstock.kafka import Cluster
from penstock.lifecycle import AppRun, RangeReplay, ReplayOptions, plan_replay

HandlerNames = Annotated[
    list[str] | None,
    typer.Option("--handler", metavar="NAME", help="With --from or --to: only this handler. Repeatable."),
]
ReplayTo = Annotated[
    str | None,
    typer.Option(metavar="TOPIC", help="With --from or --to: write all outputs of the handlers to this topic."),
]
ReplayDryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="With --from or --to: call the handlers and count their outcomes, but write and commit nothing to Kafka. "
        "What your own code does besides happens.",
    ),
]


class ReplayRun:
    """The replay of one ``penstock run``."""

    def __init__(self, replay: RangeReplay) -> None:
        self._replay = replay
        self._total = self._left = replay.left

    def run(self, app_run: AppRun, emit: Callable[[Event], None], say: Callable[[str], None]) -> None:
        """Run the app up to the end of the range. If it fails or is stopped, the same command continues later."""
        replay = self._replay
        groups = ", ".join(replay.groups)
        if self._total:
            say(self._announcement(groups))
            for each in replay.ranges:
                emit(each)
            app_run.run_beside()
        try:
            self._left = replay.finish()
        except PenstockError as error:
            say(f"The groups of the replay could not be looked up or deleted: {error}")
            return
        if self._left:
            say(f"Stopped with {counted(self._left, 'offset')} left. The same command continues.")
        elif not self._total:
            say("The range has no records that are left to handle.")
        elif not replay.options.dry_run:
            say(f"The range is finished; deleted {groups}.")

    def _announcement(self, groups: str) -> str:
        count = at_most(self._total, "record")
        if self._replay.options.dry_run:
            return (
                f"Dry run over {count}: the handlers are called, and what your own code does happens. Nothing is "
                "written or committed to Kafka."
            )
        verb = "Continuing" if self._replay.is_continued else "Starting"
        return f"{verb} the replay of {count} as group {groups}; the live group is not affected."

    def as_json(self) -> dict[str, Any]:
        options = self._replay.options
        return {
            "groups": self._replay.groups,
            "dry_run": options.dry_run,
            "to_topic": options.to_topic,
            "ranges": [asdict(each) for each in self._replay.ranges],
            **({} if options.dry_run else {"left": self._left}),
        }


def check_replay_flags(span: Span | None, names: Sequence[str], to_topic: str | None, *, dry_run: bool) -> None:
    flags = {"--handler": bool(names), "--to-topic": to_topic is not None, "--dry-run": dry_run}
    given = [flag for flag, is_given in flags.items() if is_given]
    if given and span is None:
        raise ConfigError(f"{given[0]} is for replays of a range.", hint="Add --from and --to, or leave it out.")


def begin_replay(
    app: App, brokers: str, span: Span | None, names: Sequence[str], to_topic: str | None, *, dry_run: bool
) -> ReplayRun | None:
    """Plan the replay of the app's handlers and apply it; None without a range, or if the app has only pipelines."""
    if span is None:
        return None
    if not app.handlers:
        if names or to_topic is not None or dry_run:
            raise ConfigError(
                f"App {app.name!r} has no handlers, and --handler, --to-topic and --dry-run are only for handlers.",
                hint="Leave them out.",
            )
        return None
    options = ReplayOptions(span=span, names=names, to_topic=to_topic, dry_run=dry_run)
    replay = plan_replay(app, Cluster(brokers, app.settings), options)
    if replay.left:
        replay.apply(app)
    return ReplayRun(replay)
