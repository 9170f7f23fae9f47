"""``penstock run --from ... --to ...`` for handlers: the flags, what is said before and after, and the result."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from penstock.app import App
from penstock.app.pipelines import Span
from penstock.app.runs.replay_options import Replay, ReplayResult
from penstock.core.text.plurals import at_most, counted
from penstock.errors import ConfigError
from penstock.lifecycle import AppRun, RangeReplay

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


def run_to_end(app_run: AppRun, replay: RangeReplay | None, say: Callable[[str], None]) -> ReplayResult | None:
    """Run the app. If a replay fails or is stopped, the same command continues it later."""
    if replay is not None and replay.left:
        say(_announcement(replay))
    result = app_run.run_beside()
    ending = None if result is None else _ending(result)
    if ending is not None:
        say(ending)
    return result


def _ending(result: ReplayResult) -> str | None:
    if result.problem is not None:
        return result.problem
    if result.left:
        return f"Stopped with {counted(result.left, 'offset')} left. The same command continues."
    if all(each.start == each.end for each in result.ranges):
        return "The range has no records that are left to handle."
    return None if result.replay.dry_run else f"The range is finished; deleted {', '.join(result.groups)}."


def _announcement(replay: RangeReplay) -> str:
    count = at_most(replay.left, "record")
    if replay.options.dry_run:
        return (
            f"Dry run over {count}: the handlers are called, and what your own code does happens. Nothing is "
            "written or committed to Kafka."
        )
    verb = "Continuing" if replay.is_continued else "Starting"
    return f"{verb} the replay of {count} as group {', '.join(replay.groups)}; the live group is not affected."


def replay_as_json(result: ReplayResult) -> dict[str, Any]:
    replay = result.replay
    return {
        "groups": [*result.groups],
        "dry_run": replay.dry_run,
        "to_topic": replay.to_topic,
        "ranges": [asdict(each) for each in result.ranges],
        **({} if replay.dry_run else {"left": result.left}),
    }


def check_replay_flags(span: Span | None, names: Sequence[str], to_topic: str | None, *, dry_run: bool) -> None:
    flags = {"--handler": bool(names), "--to-topic": to_topic is not None, "--dry-run": dry_run}
    given = [flag for flag, is_given in flags.items() if is_given]
    if given and span is None:
        raise ConfigError(f"{given[0]} is for replays of a range.", hint="Add --from and --to, or leave it out.")
    if to_topic is not None and dry_run:
        raise ConfigError(
            "--to-topic has no effect with --dry-run, which writes nothing.", hint="Leave one of them out."
        )


def chosen_replay(
    app: App, span: Span | None, names: Sequence[str], to_topic: str | None, *, dry_run: bool
) -> Replay | None:
    """What the flags ask for; None without a range, or if the app has only pipelines."""
    if span is None:
        return None
    if not app.handlers:
        if names or to_topic is not None or dry_run:
            raise ConfigError(
                f"App {app.name!r} has no handlers, and --handler, --to-topic and --dry-run are only for handlers.",
                hint="Leave them out.",
            )
        return None
    return Replay(from_=span.start, to=span.end, handler=names, to_topic=to_topic, dry_run=dry_run)
