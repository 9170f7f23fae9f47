"""``penstock pause``, ``resume`` and ``set``: command running apps of this machine."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from penstock.cli.console.handler_commands import stands
from penstock.cli.console.screen import err, print_json, print_line
from penstock.cli.console.shared_options import Json
from penstock.ops.live_runs import CommandedRun, command_runs, read_changes, read_partition

_PAUSE_EXAMPLES = """
[bold]Examples[/]

  penstock pause shop                            hand out no further record; keep partitions and membership
  penstock pause shop --handler ship             only one handler
  penstock pause shop --partition orders:3       only one partition
  penstock resume shop                           continue
"""
_RESUME_EXAMPLES = """
[bold]Examples[/]

  penstock resume shop                           end all pauses of the app
  penstock resume shop --partition orders:3      only that of one partition
"""
_SET_EXAMPLES = """
[bold]Examples[/]

  penstock set shop concurrency=8                so many records at once, in every handler
  penstock set shop --handler ship concurrency=200
  penstock set shop concurrency=auto             let Penstock find the number
  penstock set shop rate=100/1m                  at most 100 calls a minute; rate=none ends it
"""

Name = Annotated[str, typer.Argument(metavar="NAME", help="An app, a group or a process id.")]
HandlerName = Annotated[
    str | None, typer.Option("--handler", metavar="HANDLER", help="Only this handler. Default: all of the app.")
]
Partitions = Annotated[
    list[str] | None,
    typer.Option("--partition", metavar="TOPIC:PARTITION", help="Only this partition. Repeatable. Default: all."),
]


def register(app: typer.Typer) -> None:
    app.command("pause", epilog=_PAUSE_EXAMPLES)(pause)
    app.command("resume", epilog=_RESUME_EXAMPLES)(resume)
    app.command("set", epilog=_SET_EXAMPLES)(set_)


def pause(name: Name, *, handler: HandlerName = None, partition: Partitions = None, as_json: Json = False) -> None:
    """Let a running app of this machine hand out no further record, until `penstock resume` or its end.

    Records in progress finish and are committed. The app keeps its partitions and its place in the group.
    """
    _command("pause", name, handler, partition or [], as_json=as_json)


def resume(name: Name, *, handler: HandlerName = None, partition: Partitions = None, as_json: Json = False) -> None:
    """Let a paused app of this machine continue."""
    _command("resume", name, handler, partition or [], as_json=as_json)


def set_(
    name: Name,
    options: Annotated[list[str], typer.Argument(metavar="OPTION=VALUE", help="What to set: concurrency=8.")],
    *,
    handler: HandlerName = None,
    as_json: Json = False,
) -> None:
    """Change options of a running app of this machine, until its end."""
    _command("set", name, handler, [], changes=read_changes(options), as_json=as_json)


def _command(
    action: str,
    name: str,
    handler: str | None,
    partitions: Sequence[str],
    *,
    changes: Mapping[str, Any] | None = None,
    as_json: bool,
) -> None:
    request = {
        "call": action,
        "via": f"penstock {action}",
        "handler": handler,
        "partitions": [read_partition(each) for each in partitions],
        "changes": changes or {},
    }
    answers = command_runs(name, request)
    if as_json:
        print_json({"runs": [_as_json(each) for each in answers]})
    else:
        for each in answers:
            _show(each)
    if any(each.refused is not None for each in answers):
        raise typer.Exit(1)


def _show(answer: CommandedRun) -> None:
    run = f"{answer.run.app} (process {answer.run.pid})"
    if answer.refused is not None:
        err.print(f"{run}: {answer.refused}", style="yellow", soft_wrap=True)
    for each in answer.handlers:
        print_line(f"{run}: {each['handler']} {stands(each)}")


def _as_json(answer: CommandedRun) -> dict[str, Any]:
    shown: dict[str, Any] = {"pid": answer.run.pid, "app": answer.run.app, "engine": answer.run.engine}
    if answer.refused is not None:
        return {**shown, "refused": {"problem": answer.refused.problem, "hint": answer.refused.hint}}
    return {**shown, "handlers": list(answer.handlers)}
